"""Edits: lock joints, remove and graft subtrees, merge links, replace inertias.

Each function leaves its robot as it is and returns a new one, numbered again. Findings and source of the
old robot are carried along. ``robokit.urdf.dump`` writes the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import ModelError, WrongType, shown
from robokit.model.arguments import checked_placement, finite
from robokit.model.builder import ModelBuilder
from robokit.model.geometry import Placement, turned, turned_inertia
from robokit.model.mimics import couple
from robokit.model.parts import Link
from robokit.model.robot import Robot, check_robot
from robokit.model.walks import arranged, children, is_base, outward, subtree

Inertial = tuple[float, Sequence[float], Any]
"""Mass [kg], centre of mass in the link frame [m], (3, 3) inertia about it in link axes [kg m^2]."""


def lock_joints(robot: Robot, positions: Mapping[str, float | Sequence[float]]) -> Robot:
    """Joints become fixed where they stand; what they carry folds into the parent's body.

    A joint that mimics a locked one keeps its value: the locked position goes into its offset. Locking
    the floating base gives a fixed robot; away from the world frame it hangs on a new root link, "world".

    Args:
        robot: any robot.
        positions: joint name -> position [rad | m], or the joint's nq values. Limits are not looked at.

    Raises:
        UnknownName: no such joint.
        ModelError: the joint is fixed already.
        ShapeError: a wrong number of values.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.

    Example:
        >>> from robokit.model import lock_joints
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> lock_joints(robot, {"lower_joint": 0.3}).joint_names
        ('upper_joint',)
    """
    check_robot(robot)
    if not isinstance(positions, Mapping):
        raise WrongType("positions", positions, "a mapping of joint names to positions")
    for name in positions:
        if robot.joint(name).kind == "fixed":
            raise ModelError(f"joint {name!r} of robot {robot.name!r} is fixed already")
    q = robot.configuration(joints=positions)
    builder = ModelBuilder.from_robot(robot)
    base = robot.base
    for name in positions:
        joint = robot.joint(name)
        X = robot.tree.joint[joint.body].XJ(q[joint.q_slice].tolist())
        moved = Placement(np.array(X.E.rows, dtype=float).T, np.array(list(X.r), dtype=float))
        if is_base(robot, joint):
            base = "fixed"
            _stand(builder, joint.child_link, moved)
            continue
        draft = builder._joints[name]
        builder._joints[name] = replace(
            draft,
            kind="fixed",
            placement=draft.placement @ moved,
            axis=np.array([1.0, 0.0, 0.0]),
            pitch=0.0,
            lower=-math.inf,
            upper=math.inf,
            effort=math.inf,
            velocity=math.inf,
            damping=0.0,
            friction=0.0,
            armature=0.0,
            mimic=None,
            safety=None,
            calibration=None,
        )
    for name, draft in builder._joints.items():
        mimic = draft.mimic
        if mimic is not None and mimic.joint in positions and name not in positions:
            at = q[robot.joint(mimic.joint).q_slice]
            if at.size == 1:  # there is no telling what following a joint of several coordinates means
                offset = mimic.offset + mimic.multiplier * float(at[0])
                builder._joints[name] = replace(draft, mimic=replace(mimic, offset=offset))
    return _rebuilt(robot, builder, base)


def remove_subtree(robot: Robot, link: str) -> Robot:
    """The robot without a link, all that it carries, the joint that leads to it, and loops that end there.

    Raises:
        UnknownName: no such link.
        ModelError: the link is the root, or a joint that stays mimics one that goes.

    Example:
        >>> from robokit.model import remove_subtree
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> remove_subtree(robot, "lower").link_names
        ('mount', 'upper')
    """
    check_robot(robot)
    robot.link(link)
    below = children(robot)
    if link == outward(robot, below)[0]:
        raise ModelError(f"link {link!r} is the root of robot {robot.name!r}: nothing would be left")
    gone = set(subtree(link, below))
    builder = ModelBuilder.from_robot(robot)
    removed = {name for name, d in builder._joints.items() if d.child in gone}
    builder._links = {name: d for name, d in builder._links.items() if name not in gone}
    builder._joints = {name: d for name, d in builder._joints.items() if name not in removed}
    builder._loops = {
        name: d for name, d in builder._loops.items() if not {d.predecessor, d.successor} & gone
    }
    for name, draft in builder._joints.items():
        if draft.mimic is not None and draft.mimic.joint in removed:
            raise ModelError(
                f"joint {name!r} mimics joint {draft.mimic.joint!r}, which goes with link {link!r}; "
                f"lock or remove {name!r} first"
            )
    return _rebuilt(robot, builder)


def graft(
    robot: Robot,
    other: Robot,
    link: str,
    placement: Placement | None = None,
    prefix: str = "",
    joint: str | None = None,
) -> Robot:
    """Another robot's tree, fixed to a link; its own floating base, if any, is left out.

    Args:
        robot: what is grafted onto; name, base and gravity are its.
        other: what is grafted.
        link: the link of ``robot`` that carries it.
        placement: of the other's root link in the frame of ``link``; the same frame if None.
        prefix: goes before the other's link and joint names.
        joint: name of the new fixed joint; "<prefix><other's root>_joint" if None.

    Raises:
        UnknownName: no such link.
        ModelError: names that both robots have, or a placement with an improper rotation.

    Example:
        >>> from robokit.model import graft
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> graft(robot, robot, "lower", prefix="second_").joint_names
        ('upper_joint', 'lower_joint', 'second_upper_joint', 'second_lower_joint')
    """
    check_robot(robot)
    check_robot(other, "other")
    robot.link(link)
    placement = checked_placement("placement of the graft", placement)
    builder, added = ModelBuilder.from_robot(robot), ModelBuilder.from_robot(other)
    root = outward(other, children(other))[0]
    taken = {*builder._joints, *builder._loops}
    new = [prefix + name for name in (*added._joints, *added._loops)]
    joint = f"{prefix}{root}_joint" if joint is None else joint
    both = [n for n in map(prefix.__add__, added._links) if n in builder._links]
    both += [n for n in (*new, joint) if n in taken] + [joint] * (joint in new)
    if both:
        names = ", ".join(map(repr, both[:6])) + (", ..." if len(both) > 6 else "")
        raise ModelError(f"both robots have the name {names}; give another prefix= or joint=")
    builder.joint(joint, "fixed", link, prefix + root, placement)
    builder._include(added, prefix)
    return _rebuilt(robot, builder)


def merge_links(robot: Robot, links: Iterable[str] | str | None = None) -> Robot:
    """Links behind fixed joints become part of the link that they are fixed to.

    Their inertias add up, their shapes move over, and what hung on them hangs on that link; their names and
    fixed joints are gone. Bodies, and so H and C, stay the same.

    Args:
        robot: any robot.
        links: names of the links that go; all behind fixed joints if None.

    Raises:
        UnknownName: no such link.
        ModelError: a link that no fixed joint carries.

    Example:
        >>> from robokit.model import lock_joints, merge_links
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> merge_links(lock_joints(robot, {"lower_joint": 0.0})).link_names
        ('mount', 'upper')
    """
    check_robot(robot)
    if links is not None and (isinstance(links, bytes) or not isinstance(links, Iterable)):
        raise WrongType("links", links, "the name of a link, or names")
    fixed = {j.child_link: j for j in robot.fixed_joints}
    chosen = set(fixed) if links is None else {links} if isinstance(links, str) else set(links)
    for name in sorted(chosen):
        robot.link(name)
        if name not in fixed:
            raise ModelError(f"link {name!r} is not behind a fixed joint; lock_joints makes a joint fixed")
    below = children(robot)
    builder = ModelBuilder.from_robot(robot)
    # Where each link's frame stands, and on which link of those that stay.
    host: dict[str, tuple[str, Placement | None]] = {}
    parts: dict[str, list[tuple[Link, Placement]]] = {}
    for name in outward(robot, below):
        host[name] = (name, None)
        if name in chosen:
            joint = fixed[name]
            above, there = host[joint.parent_link]
            placed = joint.origin if there is None else there @ joint.origin
            host[name] = (above, placed)
            parts.setdefault(above, []).append((robot.link(name), placed))
            del builder._links[name], builder._joints[joint.name]
    for name, merged in parts.items():
        draft = builder._links[name]
        shapes = [
            tuple(replace(s, placement=at @ s.placement) for link, at in merged for s in getattr(link, which))
            for which in ("visuals", "collisions")
        ]
        mass, com, inertia = _sum((draft.mass, draft.com, draft.inertia), merged)
        builder._links[name] = replace(
            draft,
            mass=mass,
            com=com,
            inertia=inertia,
            visuals=draft.visuals + shapes[0],
            collisions=draft.collisions + shapes[1],
        )
    for name, d in builder._joints.items():
        above, there = host[d.parent]
        if there is not None:
            builder._joints[name] = replace(d, parent=above, placement=there @ d.placement)
    for name, p in builder._loops.items():
        ends: dict[str, Any] = {}
        for which, end in (("predecessor", p.predecessor), ("successor", p.successor)):
            above, there = host[end]
            if there is not None:
                ends |= {which: above, f"{which}_placement": there @ getattr(p, f"{which}_placement")}
        builder._loops[name] = replace(p, **ends)
    _refuse_followers(builder, {fixed[name].name for name in chosen})
    # What hung on several links now hangs on one: the joints' order keeps the bodies in theirs.
    order = arranged(robot, {name: d.parent for name, d in builder._joints.items()})
    builder._joints = {name: builder._joints[name] for name in order}
    return _rebuilt(robot, builder)


def replace_inertia(robot: Robot, inertials: Mapping[str, Inertial]) -> Robot:
    """The robot with other inertias.

    Args:
        robot: any robot.
        inertials: link name -> (mass [kg], centre of mass (3,) in the link frame [m], inertia (3, 3) about
            the centre of mass in link axes [kg m^2]).

    Raises:
        UnknownName: no such link.
        ModelError: an entry that is no such triple, or a mass, centre or inertia that cannot be.

    Example:
        >>> from robokit.model import replace_inertia
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> heavier = replace_inertia(robot, {"lower": (3.0, (0, 0, -0.4), np.diag([0.1, 0.1, 0.01]))})
        >>> heavier.link("lower").mass
        3.0
    """
    check_robot(robot)
    if not isinstance(inertials, Mapping):
        raise WrongType("inertials", inertials, "a mapping of link names to (mass, com, inertia)")
    builder = ModelBuilder.from_robot(robot)
    for name, inertial in inertials.items():
        draft = builder._links[robot.link(name).name]
        try:
            mass, com, inertia = inertial
        except (TypeError, ValueError):
            raise ModelError(f"link {name!r}: expected (mass, com, inertia), got {shown(inertial)}") from None
        checked = ModelBuilder(robot.name).link(name, mass, com, inertia)._links[name]
        builder._links[name] = replace(checked, visuals=draft.visuals, collisions=draft.collisions)
    return _rebuilt(robot, builder)


# ---- what the edits share ----------------------------------------------------------------------


def _rebuilt(robot: Robot, builder: ModelBuilder, base: str | None = None) -> Robot:
    built = builder.build(base or robot.base, robot.diagnostics, robot.tree.gravity)
    return built if robot.coupling is None else couple(built)


def _stand(builder: ModelBuilder, root: str, placement: Placement) -> None:
    """Hangs the root on a new link "world", where the placement is not the identity."""
    if np.array_equal(placement.rotation, np.eye(3)) and not placement.position.any():
        return
    if "world" in builder._links:
        raise ModelError("the root hangs on a new link 'world', but there is a link of that name")
    links, joints = builder._links, builder._joints
    builder._links, builder._joints = {}, {}
    builder.link("world").joint(FLOATING_BASE, "fixed", "world", root, placement)
    builder._links |= links
    builder._joints |= joints


def _sum(
    own: tuple[float, np.ndarray, np.ndarray], merged: list[tuple[Link, Placement]]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia about it of one link and others placed on it."""
    bodies = [own]
    for link, at in merged:
        R = at.rotation
        bodies.append((link.mass, turned(R, link.com) + at.position, turned_inertia(R, link.inertia)))
    heavy = [b for b in bodies if b[0] > 0.0]
    mass = sum(b[0] for b in heavy)
    com = heavy[0][1] if len(heavy) == 1 else own[1]
    if len(heavy) > 1:
        com = sum((m / mass * c for m, c, _ in heavy), np.zeros(3))
    inertia = np.zeros((3, 3))
    for m, c, I in bodies:
        d = c - com if m > 0.0 else np.zeros(3)
        inertia = inertia + I + m * ((d * d).sum() * np.eye(3) - np.outer(d, d))
    return mass, com, finite("merged inertia", 0.5 * (inertia + inertia.T), (3, 3))


def _refuse_followers(builder: ModelBuilder, gone: set[str]) -> None:
    """Raise ModelError for a joint that mimics one that is to go: it must be locked first."""
    for name, draft in builder._joints.items():
        if draft.mimic is not None and draft.mimic.joint in gone:
            raise ModelError(
                f"joint {name!r} mimics the fixed joint {draft.mimic.joint!r}, which goes; lock {name!r} "
                f"at its constant {draft.mimic.offset:g} first"
            )
