"""Which body of B is which link of A, and which joint is which: by name, else by geometry."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.sides.side import Side, SideJoint

NAMED = 1000
"""Votes of a joint's name for a pair of groups; a link's name has 2."""


@dataclass
class Tree:
    """A side with its rigid groups: bodies that fixed joints hold together.

    Attributes:
        side: the description.
        into: body -> the joint that carries it.
        group: body -> number of its group; groups are numbered parents first.
        members: bodies of each group, parents first.
        carrier: joint that carries each group, None for that of the base.
        parent: group that carries each group, -1 for the base.
    """

    side: Side
    into: dict[str, SideJoint]
    group: dict[str, int] = field(default_factory=dict)
    members: list[list[str]] = field(default_factory=list)
    carrier: list[SideJoint | None] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)


@dataclass
class Pairing:
    """What belongs together.

    Attributes:
        a, b: the two trees.
        direct: link of A -> (body of B, pose of the link's frame in it), where a name says so.
        home: link of A -> body of B that it is part of.
        joints: name of a movable joint of A -> the joint of B.
        groups: group of A -> group of B.
        unnamed: links of A that were found by geometry -> body of B.
        beside: body of B -> bodies fixed to it that are no link's home: its links are merged in A, or
            have other names.
    """

    a: Tree
    b: Tree
    direct: dict[str, tuple[str, Placement]] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)
    joints: dict[str, SideJoint] = field(default_factory=dict)
    groups: dict[int, int] = field(default_factory=dict)
    unnamed: dict[str, str] = field(default_factory=dict)
    beside: dict[str, list[str]] = field(default_factory=dict)


def grouped(side: Side) -> Tree:
    """The rigid groups of a side."""
    tree = Tree(side, side.into())
    for name in side.bodies:
        joint = tree.into.get(name)
        if joint is not None and not joint.moves:
            g = tree.group[joint.parent]
        else:
            g = len(tree.members)
            tree.members.append([])
            free = joint is not None and joint.kind == "floating" and side.is_base(joint)
            tree.carrier.append(None if free else joint)
            tree.parent.append(-1 if joint is None or free else tree.group[joint.parent])
        tree.group[name] = g
        tree.members[g].append(name)
    return tree


def paired(a: Side, b: Side) -> Pairing:
    """Match two sides."""
    pairing = Pairing(grouped(a), grouped(b))
    _by_name(pairing)
    _match_groups(pairing)
    _match_joints(pairing)
    _find_homes(pairing)
    _find_beside(pairing)
    return pairing


def plain(name: str) -> str:
    """A name without what converters change: case, folders, signs that a format does not allow."""
    return re.sub(r"[^a-z0-9]+", "_", re.split(r"[/:]+", name)[-1].lower()).strip("_")


def lookup(names: list[str]) -> dict[str, str]:
    """Plain name -> name, for the plain names that only one name has."""
    count = Counter(map(plain, names))
    return {plain(name): name for name in names if count[plain(name)] == 1}


def _by_name(pairing: Pairing) -> None:
    b = pairing.b.side
    frames = {frame: (body.name, pose) for body in b.bodies.values() for frame, pose in body.frames.items()}
    near_body, near_frame = lookup(list(b.bodies)), lookup(list(frames))
    alike = lookup(list(pairing.a.side.bodies))
    for name, body in pairing.a.side.bodies.items():
        own = plain(name) if alike.get(plain(name)) == name else None
        if name in frames:  # a frame called like the link, where the body's name is taken or merged
            pairing.direct[name] = frames[name]
        elif name in b.bodies and b.bodies[name].static == body.static:
            pairing.direct[name] = (name, Placement())
        elif own in near_body and not b.bodies[near_body[own]].static:
            pairing.direct[name] = (near_body[own], Placement())
        elif own in near_frame:
            pairing.direct[name] = frames[near_frame[own]]


def _match_groups(pairing: Pairing) -> None:
    a, b = pairing.a, pairing.b
    votes: Counter[tuple[int, int]] = Counter()
    for name, (body, _) in pairing.direct.items():
        votes[a.group[name], b.group[body]] += 2
    named = {j.name: b.group[j.child] for j in b.side.joints if j.moves and j.name}
    near = lookup(list(named))
    for g, joint in enumerate(a.carrier):
        if joint is not None:
            name = joint.name if joint.name in named else near.get(plain(joint.name), "")
            if name:
                votes[g, named[name]] += NAMED
    taken: set[int] = set()
    roots = root_group(a), root_group(b)
    pairing.groups[roots[0]] = roots[1]
    taken.add(roots[1])
    for (g, h), _ in sorted(votes.items(), key=lambda item: (-item[1], item[0])):
        # A moving group is no counterpart of the base: there its joint would be welded.
        if g in pairing.groups or h in taken or (h == roots[1]) != (g == roots[0]):
            continue
        pairing.groups[g] = h
        taken.add(h)
    for g in range(len(a.members)):
        if g in pairing.groups and a.parent[g] >= 0:
            _match_children(pairing, a.parent[g], taken)
    for g in range(len(a.members)):
        _match_children(pairing, g, taken)


def root_group(tree: Tree) -> int:
    """The group of the base: the first one that is not a bare fixed frame below a floating base."""
    freed = [g for g, p in enumerate(tree.parent) if p < 0 and tree.side.bodies[tree.members[g][0]].static]
    others = [g for g, p in enumerate(tree.parent) if p < 0 and g not in freed]
    return others[0] if others else 0


def is_static(tree: Tree, g: int) -> bool:
    """Whether a group is the fixed frame or welded to it."""
    return any(tree.side.bodies[name].static for name in tree.members[g])


def held(pairing: Pairing, base: str | None = None) -> bool:
    """Whether the base of the two sides is fixed: by either of them, or because the caller says so."""
    a, b = pairing.a, pairing.b
    return base == "fixed" or is_static(a, root_group(a)) or is_static(b, root_group(b))


def _match_children(pairing: Pairing, g: int, taken: set[int]) -> None:
    """Pair the children of a paired group that no name has paired, by where they are and how they move."""
    a, b = pairing.a, pairing.b
    if g not in pairing.groups:
        return
    ours = [k for k, p in enumerate(a.parent) if p == g and k not in pairing.groups]
    theirs = [k for k, p in enumerate(b.parent) if p == pairing.groups[g] and k not in taken]
    if not ours or not theirs:
        return
    from scipy.optimize import linear_sum_assignment

    costs = np.array([[_unlike(a, i, b, j) for j in theirs] for i in ours])
    for i, j in zip(*linear_sum_assignment(costs), strict=True):
        pairing.groups[ours[i]] = theirs[j]
        taken.add(theirs[j])


def _unlike(a: Tree, i: int, b: Tree, j: int) -> float:
    """How unlike two groups are: joint, place and mass; 0 for the same."""
    p, q = a.carrier[i], b.carrier[j]
    assert p is not None and q is not None
    cost = 0.0 if p.kind == q.kind else 2.0
    here = a.side.bodies[a.members[i][0]]
    scale = max(float(np.linalg.norm(here.pose.position)), 0.1)
    cost += min(3.0, float(np.linalg.norm(p.anchor - q.anchor)) / scale)
    cost += 1.0 - abs(float(p.axis @ q.axis))
    m, n = (_mass(tree, k) for tree, k in ((a, i), (b, j)))
    cost += min(2.0, abs(math.log(m / n))) if m > 0 and n > 0 else 2.0 * (m != n)
    sizes = _descendants(a, i), _descendants(b, j)
    return cost + abs(sizes[0] - sizes[1])


def _mass(tree: Tree, g: int) -> float:
    return sum(tree.side.bodies[name].mass for name in tree.members[g])


def _descendants(tree: Tree, g: int) -> int:
    inside = {g}
    for k in range(g + 1, len(tree.parent)):
        if tree.parent[k] in inside:
            inside.add(k)
    return len(inside)


def _match_joints(pairing: Pairing) -> None:
    a, b = pairing.a, pairing.b
    for g, h in pairing.groups.items():
        ours, theirs = a.carrier[g], b.carrier[h]
        if ours is not None and theirs is not None:
            pairing.joints[ours.name] = theirs


def _find_homes(pairing: Pairing) -> None:
    a, b = pairing.a, pairing.b
    for g, members in enumerate(a.members):
        at_home = [name for name in members if name in pairing.direct]
        for name in members:
            if name in pairing.direct:
                pairing.home[name] = pairing.direct[name][0]
        if not at_home and g in pairing.groups:
            body = _main(b, pairing.groups[g])
            main = _main(a, g)
            if not b.side.bodies[body].static or a.parent[g] < 0:
                pairing.unnamed[main] = body
                pairing.home[main] = body
        for name in members:
            if name in pairing.home:
                continue
            joint = a.into.get(name)
            up = pairing.home.get(joint.parent) if joint is not None else None
            if joint is not None and not joint.moves and up is not None:
                pairing.home[name] = up
        rest = [name for name in members if name not in pairing.home]
        found = [name for name in members if name in pairing.home]
        for name in reversed(rest):
            # A root without a name of its own in B: where the links behind its fixed joints are.
            below = [m for m in found if a.into[m].parent == name] or found
            joint = a.into.get(name)
            if below:
                pairing.home[name] = pairing.home[below[0]]
            elif joint is not None and joint.parent in pairing.home:
                pairing.home[name] = pairing.home[joint.parent]  # welded
            else:
                continue
            found.append(name)


def _find_beside(pairing: Pairing) -> None:
    b, homes = pairing.b, set(pairing.home.values())
    for name in b.side.bodies:
        if name in homes:
            continue
        into, group = b.into.get(name), b.members[b.group[name]]
        near = [into.parent] if into is not None and not into.moves else []
        home = next((other for other in (*near, *group) if other in homes), None)
        if home is not None:
            pairing.beside.setdefault(home, []).append(name)


def _main(tree: Tree, g: int) -> str:
    """The heaviest body of a group, the first of several."""
    return max(tree.members[g], key=lambda name: tree.side.bodies[name].mass)
