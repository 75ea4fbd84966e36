"""The physics of a description: inertias, axes, limits and damping, and joints that move no inertia.

Values are never corrected. Tolerances are relative, wide enough for numbers printed with few digits.
"""

from __future__ import annotations

import bisect
import itertools
import math

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import listed
from robokit.urdf.description import InertialDescription, JointDescription, LinkDescription, RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.rewrites import own_base
from robokit.urdf.structure import HERE, LinkTree, compose

INERTIA_TOLERANCE = 1e-3
"""Violation of an inertia's inequalities that rounding can explain, relative to its largest moment."""

ZERO_GYRATION = 1e-12
"""Inertia per mass [m^2] below which it counts as zero: that of a body of a micrometre."""

DEFINITE_MINOR = 1e-9
"""Smallest minor, of an inertia scaled to 1, that no rounding can have made positive."""

AXIS_TOLERANCE = 1e-3
"""Deviation of an axis' length from 1 that rounding can explain."""


def check_inertias(robot: RobotDescription, report: Report) -> None:
    """Signs, positive definiteness and the triangle inequality of every link's inertia."""
    regular: list[tuple[LinkDescription, InertialDescription]] = []
    for link in robot.links:
        inertial = link.inertial
        if inertial is None:
            continue
        largest = max(map(abs, inertial.inertia))
        x, y, z = inertial.origin.xyz
        reach = x * x + y * y + z * z
        finite = math.isfinite(9.0 * largest + abs(inertial.mass) * reach)  # what turning and moving can give
        ordinary = largest > 0 and _surely_of_a_body(inertial, largest)
        if finite and ordinary and 0 < ZERO_GYRATION * inertial.mass < largest:
            continue
        where = f"link {link.name!r} inertial"
        if inertial.mass < 0:
            report.add("mass-negative", where, inertial.line, f"mass {inertial.mass:g} kg is below zero")
        if not finite:
            message = "the inertia about the link's origin is beyond the largest double, 1.8e308"
            report.add("number-not-finite", where, inertial.line, message, "mind the units: kg and metres")
            continue
        if largest <= ZERO_GYRATION * inertial.mass:
            if inertial.mass > 0:
                noise = f" (at most {largest:.1g} kg m^2)" if largest else ""
                message = f"mass {inertial.mass:g} kg, but the rotational inertia is zero{noise}"
                report.add("inertia-zero", where, inertial.line, message)
            continue
        if largest == 0:  # beside a negative mass
            continue
        if inertial.mass == 0:
            report.once(
                "inertia-without-mass",
                "",
                where,
                inertial.line,
                "has a rotational inertia, but its mass is zero",
            )
        if not ordinary:
            regular.append((link, inertial))
    if not regular:
        return
    table = np.array([inertial.inertia for _, inertial in regular])
    scale = np.abs(table).max(axis=1)
    # Scaled to order one, so that no size of robot overflows or vanishes.
    moments = np.linalg.eigvalsh((table / scale[:, None])[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3))
    slack = INERTIA_TOLERANCE * np.abs(moments).max(axis=1)
    not_psd = moments[:, 0] < -slack
    triangle = ~not_psd & (moments[:, 0] + moments[:, 1] < moments[:, 2] - slack)
    for k in np.flatnonzero(not_psd | triangle):
        link, inertial = regular[k]
        shown = ", ".join(f"{m * scale[k]:.4g}" if abs(m) > 1e-12 else "0" for m in moments[k])
        if not_psd[k]:
            code, what = "inertia-not-psd", "one is negative, which no body has"
        else:
            code, what = "inertia-triangle", "the largest exceeds the sum of the other two, which no body has"
        message = f"principal moments {shown} kg m^2: {what}; taken as written"
        report.add(code, f"link {link.name!r} inertial", inertial.line, message)


def _surely_of_a_body(inertial: InertialDescription, largest: float) -> bool:
    """Whether the second moments, half the trace minus the inertia, are positive by far more than rounding.

    Then the moments are positive and satisfy the triangle inequality. Nearly every inertia passes, and no
    principal moments need to be found. The leading minors are compared (Sylvester's criterion).
    """
    xx, xy, xz, yy, yz, zz = [x / largest for x in inertial.inertia]
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    minor = a * b - xy * xy
    return min(a, minor, minor * c - a * yz * yz - b * xz * xz - 2.0 * xy * xz * yz) > DEFINITE_MINOR


def check_joints(robot: RobotDescription, report: Report) -> None:
    """Axes, limits and dynamics of every joint."""
    for joint in robot.joints:
        if joint.has_axis and not abs(math.hypot(*joint.axis) - 1) <= AXIS_TOLERANCE:
            _check_axis(joint, report)
        if joint.type == "fixed":
            continue
        if not _has_usual_limit(joint):
            _check_limit(joint, report)
        dynamics = joint.dynamics
        if dynamics is None:
            continue
        for name, value in (("damping", dynamics.damping), ("friction", dynamics.friction)):
            if value < 0:
                message = f"{name} {value:g} is below zero: it feeds energy in"
                report.add(f"{name}-negative", f"joint {joint.name!r} dynamics", dynamics.line, message)
        if dynamics.armature < 0:
            message = (
                f"armature {dynamics.armature:g} is below zero, which no rotor has; taken as written: where "
                "it outweighs what the joint moves, H is not positive definite and nothing can be accelerated"
            )
            report.add("armature-negative", f"joint {joint.name!r} dynamics", dynamics.line, message)


def _check_axis(joint: JointDescription, report: Report) -> None:
    length = math.hypot(*joint.axis)
    where = f"joint {joint.name!r} axis"
    shown = " ".join(f"{x:g}" for x in joint.axis)
    if length == 0:
        message = f"the axis of this {joint.type} joint is {shown}: it has no direction"
        report.add("axis-zero", where, joint.axis_line, message)
    else:
        message = f"({shown}) has length {length:.4g}; it was normalised"
        report.add("axis-not-unit", where, joint.axis_line, message)


def _has_usual_limit(joint: JointDescription) -> bool:
    """Whether there is a range, an effort and a velocity, and nothing to say about them."""
    if joint.limit is None or joint.type not in ("revolute", "prismatic"):
        return False
    lower, upper, effort, velocity, _ = joint.limit
    if lower is None or upper is None or effort is None or velocity is None:
        return False
    return lower < upper and effort >= 0 and velocity >= 0


def _check_limit(joint: JointDescription, report: Report) -> None:
    limit, ranged = joint.limit, joint.type in ("revolute", "prismatic")
    if limit is None:
        if ranged:
            message = f"this {joint.type} joint has no <limit>: it is loaded without limits"
            report.add("limit-missing", f"joint {joint.name!r}", joint.line, message)
        return
    where = f"joint {joint.name!r} limit"
    if ranged:
        _check_range(joint, report)
    elif joint.type == "continuous" and (limit.lower or limit.upper):
        message = "position limits on a continuous joint are ignored"
        report.once("limit-on-continuous", "", where, limit.line, message)
    bounds = {"effort": limit.effort, "velocity": limit.velocity}
    missing = [name for name, value in bounds.items() if value is None]
    if missing and joint.type in ("revolute", "prismatic", "continuous"):
        message = f"<limit> has no {' and no '.join(missing)}: the joint is loaded without"
        report.add("limit-incomplete", where, limit.line, message, f"add {' and '.join(missing)}")
    for name, value in bounds.items():
        if value is not None and value < 0:
            report.add(f"limit-{name}-negative", where, limit.line, f"{name} {value:g} is below zero")


def _check_range(joint: JointDescription, report: Report) -> None:
    limit, where = joint.limit, f"joint {joint.name!r} limit"
    assert limit is not None
    if limit.range is None:
        message = "<limit> has neither lower nor upper: the joint is loaded without a range"
        report.add("limit-range-missing", where, limit.line, message)
        return
    lower, upper = limit.range
    if lower > upper:
        absent = "; lower is left out, which means 0" if limit.lower is None else ""
        absent = "; upper is left out, which means 0" if limit.upper is None else absent
        message = f"lower {lower:g} is above upper {upper:g}{absent}"
        report.add("limit-inverted", where, limit.line, message)
    elif lower == upper:
        message = f"lower and upper are both {lower:g}: the joint cannot move"
        report.once("limit-locked", "", where, limit.line, message)


# ---- masses of the whole robot -------------------------------------------------------------------
# Joints that move no inertia, moving bodies without mass, sums that overflow.


def check_masses(robot: RobotDescription, tree: LinkTree, base: str, report: Report) -> None:
    """Joints that move no inertia, which make H singular.

    A joint is reported when its whole subtree lacks what it needs: mass where it shifts, mass or rotational
    inertia where it turns; and when the one rigid body it turns has its point masses on the axis. Of nested
    such joints only the outermost is reported.
    """
    links = {link.name: link for link in robot.links}
    inertials = [links[name].inertial for name in tree.order]
    own_mass = [i is not None and i.mass > 0 for i in inertials]
    own_turn = [i is not None and any(i.inertia) for i in inertials]
    mass, turn = _subtree_flags(own_mass, tree), _subtree_flags(own_turn, tree)
    joints: list[JointDescription | None] = [tree.incoming.get(name) for name in tree.order]
    moving = [k for k, joint in enumerate(joints) if joint is not None and joint.moves]
    if not mass[0] and not turn[0]:
        _tell_no_mass(robot, [joints[k].name for k in moving], base, report)  # type: ignore[union-attr]
        return
    bodies = _bodies(tree)
    _check_seen(tree, links, bodies, base, [m or t for m, t in zip(mass, turn, strict=True)], report)
    counts = [0, *itertools.accumulate(own_mass)]  # of masses before a position
    covered = 0
    for k in moving:
        joint = joints[k]
        assert joint is not None
        if k < covered:
            continue
        lacks = _lacks(joint, k, mass, turn)
        if lacks is None and not turn[k] and joint.type in ("revolute", "continuous"):
            beyond = counts[tree.end[k]] - counts[k] - sum(own_mass[m] for m in bodies[k])
            lacks = None if beyond else _on_axis(bodies[k], joint, tree, links)
        if lacks is None:
            continue
        inner = 0
        if not mass[k] and not turn[k]:
            covered = tree.end[k]
            inner = bisect.bisect_left(moving, covered) - bisect.bisect_right(moving, k)
        more = f", like the {inner} beyond it" if inner else ""
        message = f"with link {joint.child!r} it moves {lacks}{more}: H is singular"
        report.add("massless-subtree", f"joint {joint.name!r}", joint.line, message)
    if base != "fixed" and own_base(robot) is None:
        told = _moves_what_the_base_moves(tree, joints, own_mass, own_turn, mass)
        if told is not None:
            _tell_base(robot, links[tree.order[0]], told, base, report)


def _tell_no_mass(robot: RobotDescription, names: list[str], base: str, report: Report) -> None:
    """Tell of a robot without any mass or inertia; ``names`` are its moving joints."""
    if base == "floating":
        names.insert(0, FLOATING_BASE)
    if names:
        shown = listed(map(repr, names), 4)
        joined = f"joints {shown} move" if len(names) > 1 else f"joint {shown} moves"
        message = f"no link has a mass, so {joined} no inertia: kinematics works, but H is zero"
        report.add("massless-subtree", "robot", robot.line, message)


def _tell_base(
    robot: RobotDescription, root: LinkDescription, joint: JointDescription, base: str, report: Report
) -> None:
    """Tell of a floating base that moves the same body as the one joint on the root."""
    if base == "floating":
        message = (
            f"the floating base carries no inertia of its own and moves the same body as joint "
            f"{joint.name!r}: H is singular"
        )
        report.add("massless-subtree", f"joint {FLOATING_BASE!r}", robot.line, message)
    else:
        message = (
            f"has no inertia and carries nothing but joint {joint.name!r}: with base='floating' "
            "both would move the same body, and H would be singular"
        )
        report.add("base-massless", f"link {root.name!r}", root.line, message)


def _bodies(tree: LinkTree) -> dict[int, list[int]]:
    """Position of a body's first link in the order -> positions of all its links, the first included."""
    bodies: dict[int, list[int]] = {}
    top: list[int] = []
    for k, name in enumerate(tree.order):
        joint = tree.incoming.get(name)
        top.append(k if joint is None or joint.moves else top[tree.parent[k]])
        bodies.setdefault(top[k], []).append(k)
    return bodies


def _check_seen(
    tree: LinkTree,
    links: dict[str, LinkDescription],
    bodies: dict[int, list[int]],
    base: str,
    heavy: list[bool],
    report: Report,
) -> None:
    """Bodies that move and are seen although none of their links has an ``<inertial>``.

    Args:
        tree, links, bodies: the robot.
        base: "floating" where the root's body moves too.
        heavy: by position in the tree's order, whether the link or one beyond it has mass or inertia. Where
            none has, the finding about the joint that moves them says enough.
        report: gets the warnings.
    """
    for k, body in bodies.items():
        members = [links[tree.order[m]] for m in body]
        if not heavy[k] or members[0].inertial or any(link.inertial for link in members):
            continue
        seen = next((link for link in members if link.visuals), None)
        if seen is None:
            continue
        if k or base == "floating":
            message = "moves and is seen, but neither it nor a link fixed to it has an <inertial>: massless"
            report.add("inertial-missing", f"link {seen.name!r}", seen.line, message)


def check_sums(robot: RobotDescription, tree: LinkTree, report: Report) -> None:
    """Masses and inertias of links that are fixed to each other, whose sum is beyond the largest double.

    Distances are added up along the links, so that no rotation matters: the sum is an upper bound.
    """
    links = {link.name: link for link in robot.links}
    top: list[int] = []
    reach: list[float] = []  # distance of a link's frame from that of the body, at most [m]
    total = [0.0] * len(tree.order)
    mass = 0.0
    for k, name in enumerate(tree.order):
        joint, above = tree.incoming.get(name), tree.parent[k]
        welded = joint is not None and not joint.moves
        top.append(top[above] if welded else k)
        reach.append(reach[above] + math.hypot(*joint.origin.xyz) if joint is not None and welded else 0.0)
        inertial = links[name].inertial
        if inertial is None:
            continue
        body, weight = top[k], abs(inertial.mass)
        before = total[body], mass
        far = reach[k] + math.hypot(*inertial.origin.xyz) if weight else 0.0
        total[body] += 9.0 * max(map(abs, inertial.inertia)) + weight * far * far
        mass += weight
        if math.isfinite(total[body] + mass):
            continue
        what = ""
        if not math.isfinite(total[body]) and math.isfinite(before[0]):
            what = f"the inertia of link {tree.order[body]!r} and the links that are fixed to it is"
        elif not math.isfinite(mass) and math.isfinite(before[1]):
            what = "the mass of all links together is"
        if what:
            message = f"with this link, {what} beyond the largest double, 1.8e308"
            where = f"link {name!r} inertial"
            report.add("number-not-finite", where, inertial.line, message, "mind the units: kg and metres")


def _subtree_flags(own: list[bool], tree: LinkTree) -> list[bool]:
    total = list(own)
    for k in range(len(total) - 1, 0, -1):
        if total[k] and tree.parent[k] >= 0:
            total[tree.parent[k]] = True
    return total


def _lacks(joint: JointDescription, k: int, mass: list[bool], turn: list[bool]) -> str | None:
    if not mass[k] and not turn[k]:
        return "nothing that has mass or inertia"
    if not mass[k] and joint.type in ("prismatic", "planar", "floating"):
        return "nothing that has mass"
    return None


def _on_axis(
    body: list[int], joint: JointDescription, tree: LinkTree, links: dict[str, LinkDescription]
) -> str | None:
    """Whether the point masses of the one rigid body that the joint turns all lie on its axis."""
    axis = np.array([x / math.hypot(*joint.axis) for x in joint.axis])
    poses = {body[0]: HERE}
    for m in body:
        name = tree.order[m]
        if m != body[0]:
            poses[m] = compose(poses[tree.parent[m]], tree.incoming[name].origin)
        inertial = links[name].inertial
        if inertial is not None and inertial.mass > 0:
            R, p = poses[m]
            com = R @ np.array(inertial.origin.xyz) + p
            if np.linalg.norm(np.cross(axis, com)) > 1e-9 * (1.0 + np.linalg.norm(com)):
                return None
    return "point masses on its own axis only"


def _moves_what_the_base_moves(
    tree: LinkTree,
    joints: list[JointDescription | None],
    own_mass: list[bool],
    own_turn: list[bool],
    mass: list[bool],
) -> JointDescription | None:
    """The only joint on a root without inertia, if there is one: a floating base would move the same body.

    Beside floating joints, which can follow every motion of the base, one other joint is the only one, too.
    """
    on_base = [True] * len(joints)
    carried: list[JointDescription] = []
    for k, joint in enumerate(joints):
        if joint is not None:
            on_base[k] = on_base[tree.parent[k]] and not joint.moves
            if joint.moves and on_base[tree.parent[k]] and mass[k]:
                carried.append(joint)
        if on_base[k] and (own_mass[k] or own_turn[k]):
            return None
    others = [joint for joint in carried if joint.type != "floating"]
    return (others or carried)[0] if carried and len(others) < 2 else None
