"""Forces on links beside gravity and contact: springs and dampers between points or at joints, and pushes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.arguments import check_call, check_finite, one_of, real_array, real_number, several
from robokit.conventions import WORLD
from robokit.dataclass_tools import frozen
from robokit.dynamics import forward_kinematics, link_velocity
from robokit.dynamics.layout import located
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.errors import InvalidValue, RobokitError, ShapeError, WrongType, shown
from robokit.model.parts import Joint, finite
from robokit.model.robot import Robot

# ==== springs and dampers =========================================================================
# Springs and dampers between two points, or at a joint: as they are given, and fitted to a robot.


Tension = Callable[[Any, Any], Any]  # (length, rate) -> tension

BOUNDS = {None: (-math.inf, math.inf), "pull": (0.0, math.inf), "push": (-math.inf, 0.0)}
"""Least and largest tension of what acts one way only."""

STEP = 1e-6  # change of a length over the robot's size, and of an angle in rad, by which slopes are taken
NODES = 8  # of Gauss's rule, by which energies of functions are integrated from one record to the next


@dataclass(frozen=True, kw_only=True)
class SpringLaw:
    """What springs between points and those at joints share: the tension is

        preload + stiffness (length - rest) + damping rate

    or ``force(length, rate)`` in its place. It pulls the ends together; at a joint, length is the coordinate
    and the joint feels minus the tension.
    """

    stiffness: float = 0.0  # [N/m], of angles [N m/rad]; not negative
    damping: float = 0.0  # [N s/m | N m s/rad]; not negative
    preload: float = 0.0  # tension at the length at rest [N | N m]
    # (length, rate) -> tension, traced into machine code as :func:`robokit.function` is: it computes with ``+
    # - * /`` and the functions of ``robokit.spatial.scalars`` and ``.elementary``, and does not branch on its
    # arguments
    force: Tension | None = None
    # "pull" for what only pulls (a cable, taut beyond its length at rest), "push" for what only pushes (a
    # bumper), None for both
    acts: str | None = None
    name: str | None = None  # in results; None names it after its ends

    def _check(self) -> None:
        kind = type(self).__name__
        for what, least in (("stiffness", 0.0), ("damping", 0.0), ("preload", -math.inf)):
            given = real_number(f"{kind}({what}=...)", getattr(self, what), least=least)
            object.__setattr__(self, what, given)
        if self.acts is not None:
            one_of(f"{kind}(acts=...)", self.acts, [key for key in BOUNDS if key])
        if self.name is not None and not isinstance(self.name, str):
            raise WrongType(f"{kind}(name=...)", self.name, "a name, or None")
        if self.force is None:
            return
        if not callable(self.force):
            raise WrongType(f"{kind}(force=...)", self.force, "a function (length, rate) -> tension, or None")
        check_call(f"{kind}(force=...)", self.force, ("length", "rate"), "the tension")
        if self.stiffness or self.damping or self.preload or self.acts:
            raise ShapeError(f"{kind}(force=...): expected none beside stiffness, damping, preload or acts")

    def tension(self, length: np.ndarray, rate: np.ndarray, rest: float) -> np.ndarray:
        """The tension at lengths and rates, of one shape."""
        if self.force is not None:
            each = [float(self.force(x, u)) for x, u in zip(length.ravel(), rate.ravel(), strict=True)]
            return np.reshape(np.array(each, float), length.shape)
        pull = self.preload + self.stiffness * (length - rest) + self.damping * rate
        return np.clip(pull, *BOUNDS[self.acts])

    def energy(self, length: np.ndarray, rest: float) -> np.ndarray:
        """What it stores at lengths (T,), 0 at rest [J]: the integral of its tension where nothing moves."""
        if self.force is None:
            x = length - rest
            if self.acts is None:
                return self.preload * x + 0.5 * self.stiffness * x * x
            soft = self.preload + self.stiffness * x  # of what acts one way the taut part counts
            taut = np.clip(soft, *BOUNDS[self.acts])
            start = np.clip(self.preload, *BOUNDS[self.acts])
            if self.stiffness:
                return (taut * taut - start * start) / (2.0 * self.stiffness)
            return start * x
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        ends = np.concatenate([[rest], length])
        half = 0.5 * np.diff(ends)
        at = ends[:-1, None] + half[:, None] * (1.0 + nodes)
        return np.cumsum((self.tension(at, np.zeros_like(at), rest) @ weights) * half)


@frozen
class Spring(SpringLaw):
    """A spring and damper between two points.

    Attributes:
        a, b: links; "world" for the world.
        at_a, at_b: the points in the links' frames (3,) [m].
        rest_length: length at which its tension is the preload [m]; None: the distance of the points in the
            neutral configuration.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> spring = rk.Spring("world", robot.link_names[-1], (0.5, 0, 1), stiffness=50.0, damping=0.5)
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.1, springs=spring)
        >>> record = run.springs[0]
        >>> record.length[:1].round(4), record.force[:1].round(4)
        (array([1.5688]), array([-0.6185]))
    """

    a: str = WORLD
    b: str = WORLD
    at_a: Any = (0.0, 0.0, 0.0)
    at_b: Any = (0.0, 0.0, 0.0)
    rest_length: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._check()
        for end in ("a", "b"):
            if not isinstance(getattr(self, end), str):
                raise WrongType(f"Spring({end}=...)", getattr(self, end), "the name of a link, or 'world'")
            point = finite(f"Spring(at_{end}=...)", getattr(self, f"at_{end}"), (3,)).tolist()
            object.__setattr__(self, f"at_{end}", tuple(point))
        if self.rest_length is not None:
            real_number("Spring(rest_length=...)", self.rest_length, least=0.0)


@frozen
class JointSpring(SpringLaw):
    """A spring and damper at a joint of one degree of freedom; the joint force is minus its tension.

    Attributes:
        joint: its name.
        rest: position at which its tension is the preload [rad | m].

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> cubic = rk.JointSpring("upper_joint", force=lambda angle, rate: 5.0 * angle**3 + 0.1 * rate)
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.02, springs=[cubic])
        >>> run.springs[0].force[:2].round(3)
        array([5.   , 4.975])
    """

    joint: str = ""
    rest: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        self._check()
        if not isinstance(self.joint, str):
            raise WrongType("JointSpring(joint=...)", self.joint, "the name of a joint")
        object.__setattr__(self, "rest", real_number("JointSpring(rest=...)", self.rest))


ACCEPTED = "rk.Spring(...), rk.JointSpring(...), or a list of these"


@frozen
class SpringRecord:
    """A spring in the recorded states."""

    name: str  # its own, or that of its ends
    length: np.ndarray  # (T,) distance of its ends [m], or coordinate of its joint [rad | m]
    rate: np.ndarray  # (T,) of that
    force: np.ndarray  # (T,) tension [N], at a joint [N m | N]: positive where it pulls
    energy: np.ndarray  # (T,) stored, 0 at its length at rest [J]
    points: np.ndarray | None = None  # (T, 2, 3) its ends in the world [m]; None at a joint
    # the link of each end, and the point in that link's frame [m]; empty at a joint
    ends: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @property
    def numbers(self) -> np.ndarray:
        """All of it as (T, 10), for a file."""
        points = np.full((len(self.length), 6), np.nan)
        if self.points is not None:
            points = self.points.reshape(-1, 6)
        return np.column_stack([self.length, self.rate, self.force, self.energy, points])

    @staticmethod
    def of(name: str, numbers: np.ndarray, ends: Any = ()) -> SpringRecord:
        """From :attr:`numbers`, and the ends as a file has them."""
        read = tuple((str(link), tuple(map(float, at))) for link, at in ends)
        if any(len(at) != 3 or not np.all(np.isfinite(at)) for _, at in read) or len(read) not in (0, 2):
            raise ValueError("its springs do not have two ends")
        points = numbers[:, 4:].reshape(-1, 2, 3)
        length, rate, force, energy = numbers[:, :4].T.copy()
        known = None if np.isnan(points).any() else points
        return SpringRecord(name, length, rate, force, energy, known, read)


@frozen
class Springs:
    """The springs of a run, fitted to its robot."""

    given: tuple[Spring | JointSpring, ...] = ()  # as they were given
    rest: tuple[float, ...] = ()  # length at rest of each
    names: tuple[str, ...] = ()  # of each

    @property
    def functions(self) -> tuple[Tension, ...]:
        """The tensions that are functions, each once."""
        return tuple(dict.fromkeys(each.force for each in self.given if each.force is not None))

    def numbers(self, robot: Robot, size: float = 1.0) -> dict[str, np.ndarray]:
        """The arrays of the step, see contact/fields.py; ``size`` of the robot [m]."""
        n, functions = len(self.given), self.functions
        bodies, points = np.zeros((n, 2), np.int32), np.zeros((n, 6))
        dofs, laws = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        law, steps = np.zeros((n, 4)), np.ones(n)
        for k, (each, rest) in enumerate(zip(self.given, self.rest, strict=True)):
            law[k] = each.stiffness, each.damping, rest, each.preload
            laws[k] = functions.index(each.force) if each.force is not None else -1
            steps[k] = STEP * size
            if isinstance(each, JointSpring):
                joint = _joint(robot, each)
                bodies[k] = robot.tree.parent[joint.body], joint.body
                dofs[k] = robot.tree.v_slice[joint.body].start
                steps[k] = steps[k] if joint.kind == "prismatic" else STEP
                continue
            ends = [_end(robot, link, at) for link, at in ((each.a, each.at_a), (each.b, each.at_b))]
            if ends[1][0] == 0:  # only the first may be the world
                ends.reverse()
            bodies[k] = [body for body, _ in ends]
            points[k] = np.concatenate([point for _, point in ends])
        bounds = [BOUNDS[each.acts] for each in self.given]
        return {
            "spring_bodies": bodies, "spring_points": points, "spring_dof": dofs, "spring_law": laws,
            "spring_numbers": law, "spring_bounds": np.reshape(np.array(bounds, float), (n, 2)),
            "spring_step": steps,
        }  # fmt: skip

    def records(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[SpringRecord, ...]:
        """Lengths, tensions and energies in states (T, ...)."""
        found = []
        for each, rest, name in zip(self.given, self.rest, self.names, strict=True):
            points: np.ndarray | None = None
            ends: tuple[tuple[str, tuple[float, ...]], ...] = ()
            if isinstance(each, JointSpring):
                length, rate = _coordinate(robot, _joint(robot, each), q, v)
            else:
                points, speeds = _ends(robot, each, q, v)
                ends = (each.a, each.at_a), (each.b, each.at_b)
                apart = points[:, 1] - points[:, 0]
                length = np.linalg.norm(apart, axis=1)
                along = apart / np.maximum(length, 1e-300)[:, None]
                rate = np.sum(along * (speeds[:, 1] - speeds[:, 0]), axis=1)
            force = each.tension(length, rate, rest)
            found.append(SpringRecord(name, length, rate, force, each.energy(length, rest), points, ends))
        return tuple(found)

    def stored(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """Energy that all of them hold in configurations (T, nq), (T,) [J]."""
        total = np.zeros(len(q))
        for record in self.records(robot, q, np.zeros((len(q), robot.nv))):
            total = total + record.energy
        return total


NO_SPRINGS = Springs()


def springs_of(given: Any, robot: Robot) -> Springs:
    """What was given as ``springs``, fitted to a robot.

    Raises WrongType for what is none; UnknownName without such a link or joint; ShapeError for a joint of
    several degrees of freedom, or both ends on one body; InvalidValue and FunctionError for a function whose
    tension is no number, or that cannot be traced.
    """
    springs = several("springs", given, (Spring, JointSpring), ACCEPTED)
    rests, names = [], []
    for k, each in enumerate(springs):
        what = f"springs[{k}]"
        if isinstance(each, JointSpring):
            _joint(robot, each)
            rest, name = each.rest, each.joint
        else:
            bodies = [_end(robot, *end)[0] for end in ((each.a, each.at_a), (each.b, each.at_b))]
            if bodies[0] == bodies[1]:
                raise ShapeError(f"{what}: links {each.a!r} and {each.b!r} are one body; a spring needs two")
            rest, name = each.rest_length or 0.0, f"{each.a} - {each.b}"
            if each.rest_length is None:
                q = robot.neutral()[None]
                points, _ = _ends(robot, each, q, np.zeros((1, robot.nv)))
                rest = float(np.linalg.norm(points[0, 1] - points[0, 0]))
        if each.force is not None:
            _check_tension(f"{what}: force", each.force, rest)
        rests.append(rest)
        names.append(each.name if each.name is not None else name)
    for k, name in enumerate(names):
        if name in names[:k]:
            names[k] = f"{name} {names[:k].count(name) + 1}"
    return Springs(springs, tuple(rests), tuple(names))


def _check_tension(what: str, force: Tension, rest: float) -> None:
    """See that a function gives one number, of numbers and of what is known only when the step runs."""

    def text(x: Any, out: Any) -> None:
        out[0] = 0.0 + force(x[0], x[1])

    arrays = [ArrayOf("x", (2,)), ArrayOf("out", (1,), "out")]
    try:
        found = real_array(what, force(rest, 0.0), "one number")
        if not found.ndim:
            LoopKernel("tension", text, [], arrays).record()
    except RobokitError:
        raise
    except Exception as error:
        raise located(what, force, error) from None
    if found.ndim or not np.isfinite(found):
        raise InvalidValue(f"{what}({rest:g}, 0): expected one finite number, got {shown(found)}")


def _joint(robot: Robot, spring: JointSpring) -> Joint:
    joint = robot.joint(spring.joint)
    if joint in robot.fixed_joints or robot.tree.joint[joint.body].kind.nv != 1:
        raise ShapeError(
            f"JointSpring(joint={spring.joint!r}): expected one degree of freedom, this is {joint.kind}"
        )
    return joint


def _end(robot: Robot, link: str, at: Sequence[float]) -> tuple[int, np.ndarray]:
    """Body and point in it of an end."""
    body, placement = robot.frame(link)
    return body, placement.rotation @ np.array(at) + placement.position


def _coordinate(robot: Robot, joint: Joint, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinate and rate of a joint, (T,) each; also of one that follows another."""
    rows, rates = robot.split_q(list(q.T)), robot.split_v(list(v.T))
    each = [np.asarray(x[joint.body][0], float) for x in (rows, rates)]
    return np.broadcast_to(each[0], len(q)).copy(), np.broadcast_to(each[1], len(q)).copy()


def _ends(robot: Robot, spring: Spring, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and velocities of both ends in the world, (T, 2, 3) each."""
    points, speeds = np.zeros((len(q), 2, 3)), np.zeros((len(q), 2, 3))
    poses = forward_kinematics(robot, q)
    for k, (link, at) in enumerate(((spring.a, spring.at_a), (spring.b, spring.at_b))):
        if link == WORLD and link not in robot.link_index:
            points[:, k] = at
            continue
        R, p = poses[link]
        points[:, k] = p + R @ np.array(at)
        speeds[:, k] = link_velocity(robot, q, v, link, at=at)[..., 3:]
    return points, speeds


# ==== pushes ======================================================================================
# Pushes: forces from outside on links, for a time or at once.


FRAMES = ("link", "world")

ROUNDED = 1e-6  # part of a step that a push may be longer or shorter by rounding

Place = tuple[int, tuple[float, float, float] | None]
"""Body and point in its coordinates [m]; None where the wrench is about the world's origin."""


@frozen
class Push:
    """An external force on a link.

    Attributes:
        link: its name.
        wrench: (3,) force [N], or (6,) moment about the point and force [N m; N], in world axes. If
            ``duration`` is 0, an impulse [N s], [N m s; N s], applied within one step. In rollouts also (B,
            3) or (B, 6), one per row.
        point: (3,) point at which it acts [m].
        start: time at which it begins [s]; for an impulse in rollouts also (B,), one per row.
        duration: how long it acts [s]; 0 for an impulse. A step that it covers in part gets that part.
        frame: frame of ``point``: "link", so that it moves with the link, or "world", so that it does not
            move.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> kick = rk.Push("lower", (0.5, 0, 0), (0, 0, -0.5))  # an impulse of 0.5 N s
        >>> run = rk.simulate(robot, duration=0.05, pushes=kick)
        >>> bool(abs(run.v[-1]).max() > 1.0)
        True
    """

    link: str
    wrench: Any
    point: Any = (0.0, 0.0, 0.0)
    start: Any = 0.0
    duration: float = 0.0
    frame: str = "link"

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise WrongType("Push(link=...)", self.link, "the name of a link")
        wrench = real_array("Push(wrench=...)", self.wrench, "(3,) or (6,)")
        if wrench.ndim not in (1, 2) or wrench.shape[-1] not in (3, 6) or not len(wrench):
            raise ShapeError(
                f"Push(wrench=...): expected a force (3,) or moment and force (6,), got shape {wrench.shape}"
            )
        point = real_array("Push(point=...)", self.point, "(3,)")
        if point.shape != (3,):
            raise ShapeError(f"Push(point=...): expected shape (3,), got {point.shape}")
        for name, array in (("wrench", wrench), ("point", point)):
            check_finite(f"Push({name}=...)", array)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "duration", real_number("Push(duration=...)", self.duration, least=0.0))
        object.__setattr__(self, "start", self._start())
        one_of("frame", self.frame, FRAMES)

    @property
    def rows(self) -> int | None:
        """B where there is one wrench or one start a row of a rollout, else None."""
        if isinstance(self.start, np.ndarray):
            return len(self.start)
        return len(self.wrench) if self.wrench.ndim == 2 else None

    def _start(self) -> Any:
        """When it begins: a number, or (B,)."""
        if np.ndim(self.start) == 0:
            return real_number("Push(start=...)", self.start, least=0.0)
        given = real_array("Push(start=...)", self.start, "() or (B,)")
        if given.ndim != 1 or not len(given) or not (np.isfinite(given) & (given >= 0.0)).all():
            raise ShapeError(f"Push(start=...): expected times >= 0, got {shown(self.start)}")
        if self.duration != 0.0:
            raise ShapeError("Push(start=...): one per row goes with impulses alone; leave out duration")
        if self.wrench.ndim == 2 and len(self.wrench) != len(given):
            raise ShapeError(
                f"Push(start=...): expected {len(self.wrench)} times, one per row as the wrench has, "
                f"got {len(given)}"
            )
        return given


def pushes_of(given: Any) -> tuple[Push, ...]:
    """What was given as ``pushes``: Push, tuples of its first five attributes, or several; else WrongType."""
    if given is None:
        return ()
    if isinstance(given, Push) or (isinstance(given, tuple) and given and isinstance(given[0], str)):
        given = [given]
    accepted = "rk.Push(...), a tuple (link, wrench, point, start, duration), or a list of these"
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise WrongType("pushes", given, accepted)
    found = []
    for k, one in enumerate(given):
        if not isinstance(one, Push):
            if not isinstance(one, tuple | list) or not 2 <= len(one) <= 5:
                raise WrongType(f"pushes[{k}]", one, accepted)
            one = Push(*one)
        found.append(one)
    return tuple(found)


def _covered(push: Push, dt: float) -> list[tuple[int, int, float]]:
    """(first step, step after the last, factor of the wrench) of the steps that a push covers.

    A step that it covers in part gets that part, so that impulse and time are those asked for.
    """
    if push.duration == 0.0:
        first = round(push.start / dt)
        return [(first, first + 1, 1.0 / dt)]
    start, end = push.start / dt, (push.start + push.duration) / dt
    first, last = math.floor(start + ROUNDED), math.ceil(end - ROUNDED)
    if last - first < 2:
        return [(first, first + 1, end - start)]
    whole = [first + (start - first > ROUNDED), last - (last - end > ROUNDED)]
    parts = [
        (first, whole[0], first + 1 - start),
        (whole[0], whole[1], 1.0),
        (whole[1], last, end - last + 1),
    ]
    return [part for part in parts if part[1] > part[0]]


class OutsideForces:
    """Pushes fitted to a robot and to the steps of a run.

    ``places``: where they act: (body, point in it or None); ``links``: of these places; ``rows``: B where
    wrenches differ from row to row of a rollout, else None.
    """

    def __init__(self, robot: Robot, pushes: Sequence[Push], dt: float, steps: int) -> None:
        """Fit them.

        Raises UnknownName without such a link; ShapeError for a link that cannot move, a start after the end
        of the run, or different numbers of rows.
        """
        self.places: list[Place] = []
        self.links: list[str] = []
        self.rows: int | None = None
        self.spans: list[tuple[int, int, int, np.ndarray]] = []
        """(place, first step, step after the last, wrench (6,) or (B, 6)) of each push."""
        self.by_row: list[tuple[int, np.ndarray, np.ndarray]] = []
        """(place, step (B,), wrench (6,) or (B, 6)) of each impulse with a time by row."""
        for k, push in enumerate(pushes):
            body, placement = robot.frame(push.link)
            if body == 0:
                raise ShapeError(
                    f"pushes[{k}]: link {push.link!r} is fixed to the world and cannot be pushed"
                )
            latest = float(np.max(push.start))
            if latest >= steps * dt - 0.5 * dt:
                raise ShapeError(
                    f"pushes[{k}]: starts at {latest:g} s, after the last step of the run, which ends at "
                    f"{steps * dt:g} s"
                )
            if push.rows is not None:
                if self.rows not in (None, push.rows):
                    raise ShapeError(
                        f"pushes[{k}]: expected {self.rows} wrenches, one per row, got {push.rows}"
                    )
                self.rows = push.rows
            self._add(push, body, placement, dt, steps)

    def _add(self, push: Push, body: int, placement: Any, dt: float, steps: int) -> None:
        wrench = push.wrench
        if wrench.shape[-1] == 3:
            wrench = np.concatenate([np.zeros_like(wrench), wrench], axis=-1)
        point: tuple[float, float, float] | None = None
        if push.frame == "link":
            x, y, z = (placement.rotation @ push.point + placement.position).tolist()
            point = (x, y, z)
        else:  # about the world's origin
            moment = wrench[..., :3] + np.cross(push.point, wrench[..., 3:])
            wrench = np.concatenate([moment, wrench[..., 3:]], axis=-1)
        known = list(zip(self.places, self.links, strict=True))
        at = ((body, point), push.link)
        if at not in known:
            self.places.append(at[0])
            self.links.append(at[1])
        place = known.index(at) if at in known else len(known)
        if isinstance(push.start, np.ndarray):
            when = np.minimum(np.rint(push.start / dt).astype(int), steps - 1)
            self.by_row.append((place, when, wrench * (1.0 / dt)))
            return
        for first, last, share in _covered(push, dt):
            if first < steps:
                self.spans.append((place, first, min(last, steps), wrench * share))

    def __bool__(self) -> bool:
        return bool(self.places)

    def at(self, step: int) -> tuple[np.ndarray, int]:
        """The wrenches of a step by place, (6 P,) or (B, 6 P), and the next step at which they change."""
        shape = () if self.rows is None else (self.rows,)
        out, change = np.zeros((*shape, len(self.places), 6)), np.iinfo(np.int64).max
        for place, first, last, wrench in self.spans:
            if first <= step < last:
                out[..., place, :] += wrench
            change = min([change, *(k for k in (first, last) if k > step)])
        for place, when, wrench in self.by_row:
            out[..., place, :] += np.where((when == step)[:, None], wrench, 0.0)
            later = np.concatenate([when, when + 1])
            change = min([change, *later[later > step].tolist()])
        return out.reshape(*shape, -1), int(change)

    def table(self, steps: int) -> np.ndarray:
        """The wrenches of all steps, (T, B or 1, 6 P)."""
        out = np.zeros((max(1, steps), self.rows or 1, len(self.places), 6))
        for place, first, last, wrench in self.spans:
            out[first:last, :, place] += wrench
        for place, when, wrench in self.by_row:
            out[when, np.arange(len(when)), place] += wrench
        return out.reshape(len(out), len(out[0]), -1)
