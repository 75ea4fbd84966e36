"""Constraints as algorithms see them: loop joints and contacts, by body and frame, without names of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from robokit.arguments import one_of
from robokit.conventions import SNAP
from robokit.dataclass_tools import frozen
from robokit.errors import WrongType
from robokit.model.builder import snap
from robokit.model.geometry import Placement
from robokit.model.joints import LOOP_TABLE, JointModel
from robokit.model.parts import finite
from robokit.model.robot import Robot
from robokit.spatial import Matrix3, Transform, Vector3

# ---- loop joints ---------------------------------------------------------------------------------
# Source: RBDA section 8.2: loop joint k connects body p(k) to body s(k), its frame placed on either.

X_AXIS = Vector3(1.0, 0.0, 0.0)


@frozen
class LoopModel:
    """A loop joint between two bodies."""

    name: str  # of the loop joint
    # p, s: numbers of the predecessor and successor body
    p: int
    s: int
    # Xp, Xs: transforms from these bodies to the joint's frame on them
    Xp: Transform
    Xs: Transform
    joint: JointModel  # kind, axis and pitch
    axis2: Vector3 = X_AXIS  # of a universal joint, in its frame on the successor; else the x axis
    length: float = 0.0  # of a distance joint [m], else 0

    @property
    def rows(self) -> int:
        """Number of constraints: 6 less the joint's degrees of freedom."""
        return 6 - self.joint.kind.nv

    @property
    def key(self) -> str:
        """Everything a kernel depends on, as text."""
        frames = [(X.E.rows, tuple(X.r)) for X in (self.Xp, self.Xs)]
        joint = self.joint
        more = {"universal": (tuple(self.axis2),), "distance": (self.length,)}.get(joint.kind.name, ())
        return repr((self.p, self.s, frames, joint.kind.name, tuple(joint.axis), joint.pitch, *more))


def loop_models(robot: Robot) -> tuple[LoopModel, ...]:
    """The robot's loop joints that constrain anything, in their order (a floating one does not)."""
    return robot.derived.get("loop models", lambda: _loop_models(robot))


def _loop_models(robot: Robot) -> tuple[LoopModel, ...]:
    found = []
    for loop in robot.loop_joints:
        (p, at_p), (s, at_s) = robot.frame(loop.predecessor), robot.frame(loop.successor)
        Xp = _to_frame(at_p @ loop.predecessor_placement)
        Xs = _to_frame(at_s @ loop.successor_placement)
        joint = JointModel(LOOP_TABLE[loop.kind], Vector3(*loop.axis.tolist()), loop.pitch)
        model = LoopModel(loop.name, p, s, Xp, Xs, joint)
        if loop.axis2 is not None:
            model = replace(model, axis2=Vector3(*loop.axis2.tolist()))
        model = replace(model, length=loop.length) if loop.length else model
        if model.rows:
            found.append(model)
    return tuple(found)


def _to_frame(at: Placement) -> Transform:
    """The transform to a frame placed in a body."""
    columns = [snap(column) for column in at.rotation.T.tolist()]
    return Transform(Matrix3(columns), Vector3(*(0.0 if abs(x) < SNAP else x for x in at.position.tolist())))


# ---- contacts ------------------------------------------------------------------------------------

HELD = {"position": 3, "pose": 6}  # what is held of a link, and how many numbers that is


@frozen
class Contact:
    """A point of a link, or a frame at this point, that :func:`robokit.constrained_dynamics` holds.

    Attributes:
        link: name of the link.
        at: the point in the link's frame (3,) [m].
        kind: "position", the point alone (3 rows: x, y, z of the world), or "pose", the point and the link's
            orientation (6 rows, angular first).
    """

    link: str
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    kind: str = "position"

    def __post_init__(self) -> None:
        one_of("kind of contact", self.kind, HELD)
        x, y, z = finite("at", self.at, (3,)).tolist()
        object.__setattr__(self, "at", (x, y, z))

    def __hash__(self) -> int:
        return hash(self.link)  # kept with the string: a contact is part of a key at every call


class ContactModel(NamedTuple):
    """A contact as an algorithm sees it."""

    body: int  # number of the link's body
    X: Transform  # transform from the body's coordinates to the link's axes at the point
    turns: bool  # whether the orientation is held too

    @property
    def rows(self) -> int:
        """Number of constraints."""
        return 6 if self.turns else 3


ConstraintModel = ContactModel | LoopModel


def contact_model(robot: Robot, contact: Contact) -> ContactModel:
    """The contact by number; raises UnknownName where the robot has no such link."""
    body, placement = robot.frame(contact.link)
    R = Matrix3(placement.rotation.tolist())
    link = Transform(R.T, Vector3(*placement.position.tolist()))
    at = Transform(Matrix3.identity(), Vector3(*contact.at))
    return ContactModel(body, at @ link, contact.kind == "pose")


def contact_models(robot: Robot, contacts: Sequence[Contact]) -> tuple[ContactModel, ...]:
    """Contacts by number."""
    return tuple(contact_model(robot, contact) for contact in contacts)


def example_contact(robot: Robot) -> tuple[Contact, ...]:
    """A contact of any robot, for tables of costs and for tests."""
    return (Contact(example_link(robot), (0.1, 0.2, -0.1)),)


def example_link(robot: Robot) -> str:
    """A link that moves, where any does."""
    return robot.body_name(robot.nbodies) if robot.nbodies else robot.link_names[-1]


def constraint_models(robot: Robot, constraints: Sequence[Contact | str]) -> tuple[ConstraintModel, ...]:
    """Contacts, and loop joints by their names, by number."""
    loops = {model.name: model for model in loop_models(robot)}
    return tuple(loops[c] if isinstance(c, str) else contact_model(robot, c) for c in constraints)


def constraints_key(robot: Robot, constraints: Sequence[Contact | str]) -> str:
    """Everything that a kernel depends on: where a loop joint is belongs to no fingerprint of the tree."""
    loops = {model.name: model for model in loop_models(robot)}
    return repr([loops[c].key if isinstance(c, str) else c for c in constraints])


def as_contact(name: str, given: Any) -> Contact:
    """A contact of what stands for one: a link's name (its pose), or (link, at, kind)."""
    if isinstance(given, Contact):
        return given
    if isinstance(given, str):
        return Contact(given, kind="pose")
    if isinstance(given, Sequence) and 1 <= len(given) <= 3:
        return Contact(*given)
    raise WrongType(name, given, "the name of a link, a Contact or (link, at, kind)")
