"""Masses of the whole robot: joints that move nothing, bodies without mass, sums that overflow."""

from __future__ import annotations

import bisect
import itertools
import math

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.urdf.checks.extent import HERE, compose
from robokit.urdf.checks.structure import LinkTree
from robokit.urdf.description import JointDescription, LinkDescription, RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.own_base import own_base


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
    mass, turn = _accumulated(own_mass, tree), _accumulated(own_turn, tree)
    joints: list[JointDescription | None] = [tree.incoming.get(name) for name in tree.order]
    moving = [k for k, joint in enumerate(joints) if joint is not None and joint.moves]
    if not mass[0] and not turn[0]:
        names = [joints[k].name for k in moving]  # type: ignore[union-attr]
        if base == "floating":
            names.insert(0, FLOATING_BASE)
        if names:
            shown = ", ".join(map(repr, names[:4])) + (
                f" and {len(names) - 4} more" if len(names) > 4 else ""
            )
            joined = f"joints {shown} move" if len(names) > 1 else f"joint {shown} moves"
            message = f"no link has a mass, so {joined} no inertia: kinematics works, but H is zero"
            report.add("massless-subtree", "robot", robot.line, message)
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
        if told is not None and base == "floating":
            message = (
                f"the floating base carries no inertia of its own and moves the same body as joint "
                f"{told.name!r}: H is singular"
            )
            report.add("massless-subtree", f"joint {FLOATING_BASE!r}", robot.line, message)
        elif told is not None:
            message = (
                f"has no inertia and carries nothing but joint {told.name!r}: with base='floating' "
                "both would move the same body, and H would be singular"
            )
            report.add("base-massless", f"link {tree.order[0]!r}", links[tree.order[0]].line, message)


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


def _accumulated(own: list[bool], tree: LinkTree) -> list[bool]:
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
