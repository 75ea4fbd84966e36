"""Robots made of robots: lock joints, remove and graft subtrees, merge links, replace inertias and rotors.

Also: mimic joints coupled, several robots in one world. Each function leaves its robot as it is and returns a
new one, numbered again. Findings and source of the old robot are carried along. ``robokit.urdf.dump`` writes
the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE, WORLD
from robokit.errors import ModelError, UnknownName, WrongType, shown
from robokit.model.builder import ModelBuilder, new_joint
from robokit.model.geometry import Placement, turned, turned_inertia
from robokit.model.parts import Joint, Link, Scene, checked_name, checked_placement, finite, not_negative
from robokit.model.robot import Robot, check_robot, children, is_base, joint_order, outward, subtree
from robokit.model.tree import NO_COORDINATE, Coupling, reduced_parents
from robokit.spatial.scalars import added

Inertial = tuple[float, Sequence[float], Any]
"""Mass [kg], centre of mass in the link frame [m], (3, 3) inertia about it in link axes [kg m^2]."""


def lock_joints(robot: Robot, positions: Mapping[str, float | Sequence[float]]) -> Robot:
    """Fix joints at given positions; the links that they carry are merged into the parent's body.

    A joint that mimics a locked one keeps its value: the locked position goes into its offset. Locking the
    floating base gives a robot with a fixed base; if its root is not at the world frame, a new root link,
    "world", carries it.

    Args:
        robot: any robot.
        positions: joint name -> position [rad | m], or the joint's nq values. Limits are not checked.

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
        ends = joint.parent_link, joint.child_link
        builder._joints[name] = new_joint(name, "fixed", *ends, joint.origin @ moved)
    for name, joint in builder._joints.items():
        mimic = joint.mimic
        if mimic is not None and mimic.joint in positions and name not in positions:
            at = q[robot.joint(mimic.joint).q_slice]
            if at.size == 1:  # it is undefined what following a joint of several coordinates means
                offset = mimic.offset + mimic.multiplier * float(at[0])
                builder._joints[name] = replace(joint, mimic=replace(mimic, offset=offset))
    return _rebuilt(robot, builder, base)


def remove_subtree(robot: Robot, link: str) -> Robot:
    """The robot without a link and everything that it carries: the joint that moves it and loops that end
    there go too.

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
    removed = {name for name, d in builder._joints.items() if d.child_link in gone}
    builder._links = {name: d for name, d in builder._links.items() if name not in gone}
    builder._joints = {name: d for name, d in builder._joints.items() if name not in removed}
    builder._loops = {
        name: d for name, d in builder._loops.items() if not {d.predecessor, d.successor} & gone
    }
    for name, joint in builder._joints.items():
        if joint.mimic is not None and joint.mimic.joint in removed:
            raise ModelError(
                f"joint {name!r} mimics joint {joint.mimic.joint!r}, which goes with link {link!r}; "
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
        robot: the robot that carries the other; the result has its name, base and gravity.
        other: the robot that is grafted onto it.
        link: the link of ``robot`` that carries it.
        placement: of the other's root link in the frame of ``link``; the same frame if None.
        prefix: put in front of the other's link and joint names.
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
    """Merge links behind fixed joints into the link that they are fixed to.

    That link gets their inertias, shapes and child joints; their names and fixed joints disappear. Bodies,
    and therefore H and C, stay the same.

    Args:
        robot, links: any robot, and names of the links to merge; None for all links behind fixed joints.

    Raises:
        UnknownName: no such link.
        ModelError: a link that is not carried by a fixed joint.

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
        own = builder._links[name]
        shapes = [
            tuple(replace(s, placement=at @ s.placement) for link, at in merged for s in getattr(link, which))
            for which in ("visuals", "collisions")
        ]
        mass, com, inertia = _sum((own.mass, own.com, own.inertia), merged)
        visuals, collisions = own.visuals + shapes[0], own.collisions + shapes[1]
        builder._links[name] = replace(
            own, mass=mass, com=com, inertia=inertia, visuals=visuals, collisions=collisions
        )
    for name, d in builder._joints.items():
        above, there = host[d.parent_link]
        if there is not None:
            builder._joints[name] = replace(d, parent_link=above, origin=there @ d.origin)
    for name, p in builder._loops.items():
        ends: dict[str, Any] = {}
        for which, end in (("predecessor", p.predecessor), ("successor", p.successor)):
            above, there = host.get(end, (end, None))
            if there is not None:
                ends |= {which: above, f"{which}_placement": there @ getattr(p, f"{which}_placement")}
        builder._loops[name] = replace(p, **ends)
    _refuse_followers(builder, {fixed[name].name for name in chosen})
    # What hung on several links now hangs on one: the joints' order keeps the bodies in theirs.
    order = joint_order(robot, {name: d.parent_link for name, d in builder._joints.items()})
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
        ModelError: an entry that is not such a triple, or a physically impossible mass, centre or inertia.

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
        own = builder._links[robot.link(name).name]
        try:
            mass, com, inertia = inertial
        except (TypeError, ValueError):
            raise ModelError(f"link {name!r}: expected (mass, com, inertia), got {shown(inertial)}") from None
        checked = ModelBuilder(robot.name).link(name, mass, com, inertia)._links[name]
        builder._links[name] = replace(checked, visuals=own.visuals, collisions=own.collisions)
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
    mass = added(b[0] for b in heavy)
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
    for name, joint in builder._joints.items():
        if joint.mimic is not None and joint.mimic.joint in gone:
            raise ModelError(
                f"joint {name!r} mimics the fixed joint {joint.mimic.joint!r}, which goes; lock {name!r} "
                f"at its constant {joint.mimic.offset:g} first"
            )


# ---- mimic joints --------------------------------------------------------------------------------


def couple(robot: Robot) -> Robot:
    """Couple mimic joints: the robot without their coordinates.

    ``nq``, ``nv``, ``joints`` and ``joint_names`` of the result are those of the joints that keep their
    coordinates. ``robot.joint(name)`` of a mimic joint still has its body, axis and limits; its slices are
    empty. A robot without mimic joints comes back as it is.

    Args:
        robot: a robot whose mimic joints have coordinates of their own.

    Raises:
        ModelError: a mimic joint, or the joint that it follows, has several coordinates, or mimic joints
            follow each other in a circle.
        UnknownName: a mimic joint follows a joint that does not exist.

    Example:
        >>> from robokit.model import couple
        >>> builder = rk.ModelBuilder("gripper").link("palm").link("left", 0.1).link("right", 0.1)
        >>> builder = builder.joint("close", "prismatic", "palm", "left", axis=(0, 1, 0))
        >>> follow = rk.Mimic("close", multiplier=-1.0)
        >>> builder = builder.joint("follow", "prismatic", "palm", "right", axis=(0, 1, 0), mimic=follow)
        >>> gripper = builder.build()
        >>> gripper.nv, couple(gripper).nv
        (2, 1)
    """
    check_robot(robot)
    mimics = tuple(joint for joint in robot.joints if joint.mimic is not None)
    if not mimics:
        return robot
    tree = robot.tree
    q_from: list[tuple[int, float, float]] = [(NO_COORDINATE, 0.0, 0.0)] * tree.nq
    v_from: list[tuple[int, float]] = [(NO_COORDINATE, 0.0)] * tree.nv
    kept, own_q, own_v = _own_coordinates(robot)
    for k, at in enumerate(own_q):
        q_from[at] = (k, 1.0, 0.0)
    for k, at in enumerate(own_v):
        v_from[at] = (k, 1.0)
    for joint in mimics:
        leader, multiplier, offset = _leader(robot, joint)
        at_q, at_v = joint.q_slice.start, joint.v_slice.start
        if leader.q_slice == slice(0, 0):
            q_from[at_q], v_from[at_v] = (NO_COORDINATE, 0.0, offset), (NO_COORDINATE, 0.0)
        else:
            q_from[at_q] = (q_from[leader.q_slice.start][0], multiplier, offset)
            v_from[at_v] = (v_from[leader.v_slice.start][0], multiplier)
    nv = len(own_v)
    coupling = Coupling(
        len(own_q),
        nv,
        tuple(q_from),
        tuple(v_from),
        reduced_parents(tree.dof_parent, [k for k, _ in v_from], nv),
        tuple(own_q),
        tuple(own_v),
    )
    followers = tuple(replace(joint, q_slice=slice(0, 0), v_slice=slice(0, 0)) for joint in mimics)
    return replace(robot, tree=replace(tree, coupling=coupling), joints=tuple(kept), mimic_joints=followers)


def _own_coordinates(robot: Robot) -> tuple[list[Joint], list[int], list[int]]:
    """The joints that mimic none, renumbered, and the places of their coordinates in the full q and v."""
    kept: list[Joint] = []
    own_q: list[int] = []
    own_v: list[int] = []
    for joint in robot.joints:
        if joint.mimic is not None:
            continue
        nq, nv = len(own_q), len(own_v)
        own_q += range(joint.q_slice.start, joint.q_slice.stop)
        own_v += range(joint.v_slice.start, joint.v_slice.stop)
        kept.append(replace(joint, q_slice=slice(nq, len(own_q)), v_slice=slice(nv, len(own_v))))
    return kept, own_q, own_v


def _leader(robot: Robot, joint: Joint) -> tuple[Joint, float, float]:
    """The joint at the end of a chain of mimics, multiplier and offset of the whole chain."""
    leader, laws = joint, []
    seen = set()
    while leader.mimic is not None and leader.kind != "fixed":
        if leader.name in seen:
            raise ModelError(
                f"joint {joint.name!r} mimics in a circle; let one of the joints move on its own"
            )
        seen.add(leader.name)
        law = leader.mimic
        try:
            followed = robot.joint(law.joint)
        except UnknownName as error:
            raise UnknownName(
                "joint", law.joint, robot.all_joint_names, f"(mimicked by {leader.name!r})"
            ) from error
        for end in (leader, followed):
            if end.q_slice.stop - end.q_slice.start > 1 or end.v_slice.stop - end.v_slice.start > 1:
                raise ModelError(
                    f"joint {leader.name!r} mimics {followed.name!r}: {end.name!r} is {end.kind} and has "
                    "several coordinates; only joints with one can be coupled"
                )
        laws.append(law)
        leader = followed
    multiplier, offset = 1.0, 0.0
    for law in reversed(laws):  # from the leader on, so that each product is the law of a joint of the chain
        multiplier, offset = law.multiplier * multiplier, law.multiplier * offset + law.offset
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        raise ModelError(
            f"joint {joint.name!r} follows {leader.name!r} by {multiplier:g} q + {offset:g}, which is not "
            "finite; give the mimics between them smaller multipliers"
        )
    return leader, multiplier, offset


# ---- rotors of motors ----------------------------------------------------------------------------
# A rotor of inertia I behind a gear of ratio n turns n times as fast as its joint. It adds n^2 I to the
# joint's own entry on the diagonal of H. Spins about axes that the links turn are left out, and so are the
# rotors' weights, which belong to the links' own.
#
# Source: RBDA section 9.6.


def replace_armature(robot: Robot, armature: Mapping[str, Any] | float) -> Robot:
    """The robot with other rotor inertias on its joints.

    Args:
        robot: the robot.
        armature: {joint: inertia of its rotors as the joint feels it, gear ratio squared included}
            [kg m^2 | kg], for each of the joint's velocities; joints that are not named keep theirs. A single
            number is for all joints of one degree of freedom.

    Raises:
        UnknownName: no such joint.
        ModelError: a negative value, one that is not a number, or a joint that does not move.
        WrongType: ``armature`` is neither a mapping nor a number.

    Example:
        >>> from robokit.model import replace_armature
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> geared = replace_armature(robot, {"upper_joint": 0.5})
        >>> (rk.crba(geared, [0, 0]) - rk.crba(robot, [0, 0])).round(6)
        array([[0.5, 0. ],
               [0. , 0. ]])
    """
    check_robot(robot)
    moving = {joint.name: joint for joint in robot.body_joints}
    tree = robot.tree
    if isinstance(armature, Mapping):
        for name in armature:
            if name not in moving:
                raise UnknownName("joint that moves", name, moving, f"in robot {robot.name!r}")
        given = {name: not_negative(f"armature of joint {name!r}", x) for name, x in armature.items()}
    elif isinstance(armature, int | float | np.number) and not isinstance(armature, bool):
        number = not_negative("armature", armature)
        given = {name: number for name, joint in moving.items() if tree.joint[joint.body].kind.nv == 1}
    else:
        raise WrongType("armature", armature, "a number, or a mapping of joint names to numbers")
    if robot.base == "floating" and given.get(robot.body_joints[0].name):
        raise ModelError(f"joint {robot.body_joints[0].name!r} is the floating base, which no motor drives")

    def changed(joint: Joint) -> Joint:
        return replace(joint, armature=given.get(joint.name, joint.armature))

    rows = [(changed(joint).armature,) * tree.joint[joint.body].kind.nv for joint in robot.body_joints]
    return replace(
        robot,
        tree=replace(tree, armature=((), *rows) if any(map(any, rows)) else ()),
        joints=tuple(map(changed, robot.joints)),
        mimic_joints=tuple(map(changed, robot.mimic_joints)),
        shared_kernels={},
    )


def armature_by_dof(robot: Robot) -> np.ndarray:
    """The contribution of the rotors to the diagonal of H, (nv,) [kg m^2 | kg].

    The rotors of coupled mimic joints are added to that of the joint that they follow.

    Example:
        >>> from robokit.model import armature_by_dof, replace_armature
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> armature_by_dof(replace_armature(robot, {"upper_joint": 0.5}))
        array([0.5, 0. ])
    """
    found = np.zeros(robot.nv)
    tree = robot.tree
    flat = [x for row in tree.armature for x in row]
    for at, x in enumerate(flat):
        k, m = (at, 1.0) if tree.coupling is None else tree.coupling.v_from[at]
        if k >= 0:
            found[k] += m * m * x
    return found


# ---- several robots in one world -----------------------------------------------------------------


def together(robots: Mapping[str, Any], name: str = WORLD) -> Robot:
    """Several robots in one world.

    The result is one robot with a fixed base, the link "world". It carries robots with a floating base by a
    floating joint, "<key>/floating_base", and the others by a fixed joint. Links and joints of each are named
    "<key>/<name>". Its q consists of the robots' q, one after the other; in the neutral configuration, each
    robot is at its placement. Gravity is that of the first robot. Of the robots' scenes, only the pairs of
    links that never collide are kept.

    Args:
        robots: {key: robot, or (robot, placement)}, with the placement of its root's frame in the world; the
            pose of a floating base in q is relative to it.
        name: of the whole.

    Raises:
        WrongType: robots is no mapping of names to robots.
        ModelError: no robot, a placement with an improper rotation, robots with samples of inertias, or some
            robots with coupled and others with uncoupled mimic joints.

    Example:
        >>> arm = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> beside = rk.Placement(position=np.array([0.0, 1.0, 0.0]))
        >>> both = rk.together({"left": arm, "right": (arm, beside)})
        >>> both.joint_names
        ('left/upper_joint', 'left/lower_joint', 'right/upper_joint', 'right/lower_joint')
    """
    if not isinstance(robots, Mapping):
        raise WrongType("robots", robots, "a mapping of names to robots, or to (robot, placement)")
    if not robots:
        raise ModelError("robots: give at least one")
    builder = ModelBuilder(name)
    builder.link(WORLD)
    coupled, free = [], []
    first: Robot | None = None
    for key, given in robots.items():
        prefix = checked_name("robot", key) + "/"
        robot, placement = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        check_robot(robot, f"robots[{key!r}]")
        if robot.parameters is not None:
            raise ModelError(f"robots[{key!r}]: its inertias are an input; give a robot as it was loaded")
        first = first or robot
        root = outward(robot, children(robot))[0]
        kind = "floating" if robot.base == "floating" else "fixed"
        rotor = robot.body_joints[0].armature if robot.base == "floating" else 0.0
        placement = checked_placement(f"placement of robot {key!r}", placement)
        builder.joint(f"{prefix}{FLOATING_BASE}", kind, WORLD, prefix + root, placement, armature=rotor)
        builder._include(ModelBuilder.from_robot(robot), prefix)
        if robot.coupling is not None:
            coupled.append(key)
        elif any(joint.mimic is not None for joint in robot.joints):
            free.append(key)
    if coupled and free:
        raise ModelError(
            f"robots: the mimic joints of {coupled[0]!r} are coupled and those of {free[0]!r} are not; load "
            "both with the same mimic="
        )
    assert first is not None
    apart = [
        (f"{key}/{a}", f"{key}/{b}")
        for key, given in robots.items()
        if (own := given[0] if isinstance(given, tuple) else given).scene is not None
        for a, b in own.scene.apart
    ]
    builder.scene = Scene(apart=tuple(apart)) if apart else None
    built = builder.build("fixed", gravity=first.tree.gravity)
    return couple(built) if coupled else built
