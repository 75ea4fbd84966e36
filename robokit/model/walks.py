"""Walks over a robot's links and joints by name, in the order of its numbering."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Mapping

from robokit.conventions import FLOATING_BASE
from robokit.model.parts import Joint
from robokit.model.robot import Robot


def joints_in_order(robot: Robot) -> list[Joint]:
    """All joints but a floating base's, in an order for which a builder gives the robot's own numbers."""
    hung = {j.name: j.parent_link for j in (*robot.body_joints, *robot.fixed_joints) if not is_base(robot, j)}
    return [robot.joint(name) for name in arranged(robot, hung)]


def arranged(robot: Robot, hung: Mapping[str, str]) -> list[str]:
    """Names of joints in an order for which a builder gives the robot's own numbers.

    Joints of one parent are sorted by the bodies beyond them, and those of bodies come in the order of their
    numbers. Fixed joints keep their order where that does not contradict it.

    Args:
        robot: whose bodies give the order.
        hung: joint name -> the link that it hangs on now.
    """
    below = children(robot)
    order = outward(robot, below)
    # The first body that each link, and what it carries, opens; none where all of it is fixed.
    first: dict[str, float] = dict.fromkeys(order, math.inf)
    first.update((j.child_link, j.body) for j in robot.body_joints)
    for name in reversed(order):
        for joint in below[name]:
            first[name] = min(first[name], first[joint.child_link])
    place = {name: k for k, name in enumerate(order)}
    opens = {name: first[robot.joint(name).child_link] for name in hung}
    rank = {name: place[robot.joint(name).child_link] for name in hung}
    siblings: dict[str, list[str]] = {}
    for name in sorted(hung, key=opens.__getitem__):
        if opens[name] < math.inf:
            siblings.setdefault(hung[name], []).append(name)
    rows = [[j.name for j in robot.body_joints if j.name in hung], *siblings.values()]
    fixed = [j.name for j in robot.fixed_joints if j.name in hung]
    return _merged([fixed, *rows], rank) or _merged(rows, rank)


def _merged(rows: list[list[str]], rank: Mapping[str, int]) -> list[str]:
    """All names, low ranks first, in an order that keeps that of every row; [] if the rows contradict."""
    after: dict[str, list[str]] = {name: [] for name in rank}
    waits = dict.fromkeys(rank, 0)
    for row in rows:
        for one, follower in itertools.pairwise(row):
            after[one].append(follower)
            waits[follower] += 1
    ready = [(rank[name], name) for name, count in waits.items() if count == 0]
    heapq.heapify(ready)
    out: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        out.append(name)
        for follower in after[name]:
            waits[follower] -= 1
            if waits[follower] == 0:
                heapq.heappush(ready, (rank[follower], follower))
    return out if len(out) == len(rank) else []


def is_base(robot: Robot, joint: Joint) -> bool:
    """Whether the joint is the one that ``base="floating"`` adds."""
    return robot.base == "floating" and joint.name == FLOATING_BASE


def children(robot: Robot) -> dict[str, list[Joint]]:
    """Link -> the joints that hang on it."""
    below: dict[str, list[Joint]] = {link.name: [] for link in robot.links}
    for joint in (*robot.body_joints, *robot.fixed_joints):
        if not is_base(robot, joint):
            below[joint.parent_link].append(joint)
    return below


def outward(robot: Robot, below: dict[str, list[Joint]]) -> list[str]:
    """All links, the root first, each after the one that carries it."""
    carried = {j.child_link for joints in below.values() for j in joints}
    return subtree(next(link.name for link in robot.links if link.name not in carried), below)


def subtree(link: str, below: dict[str, list[Joint]]) -> list[str]:
    """A link and all that it carries, each after the one that carries it."""
    order, stack = [], [link]
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(joint.child_link for joint in reversed(below[name]))
    return order
