"""Which body of B is which link of A, which joint is which, and where each link of A is in B.

Bodies and joints are paired by name, else by geometry. The two worlds are laid on each other link by link,
so that one misplaced joint is one difference, and not one for each link behind it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from robokit.formats.description import DescribedBody, DescribedJoint, Description
from robokit.model.geometry import Placement
from robokit.parity.inertials import (
    CAUSE_THRESHOLD,
    LENGTH_FACTORS,
    NO_MASS,
    ROUNDING_TOLERANCE,
    Rigid,
    Slack,
    number,
    other_rotations,
)
from robokit.parity.verdict import Finding
from robokit.urdf.description import JointDescription

NAME_VOTES = 1000  # votes of a joint's name for a pair of groups; a link's name has 2


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

    side: Description
    into: dict[str, DescribedJoint]
    group: dict[str, int] = field(default_factory=dict)
    members: list[list[str]] = field(default_factory=list)
    carrier: list[DescribedJoint | None] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)


@dataclass
class Pairing:
    """What belongs together."""

    # a, b: the two trees
    a: Tree
    b: Tree
    # link of A -> (body of B, pose of the link's frame in it), where a name says so
    direct: dict[str, tuple[str, Placement]] = field(default_factory=dict)
    home: dict[str, str] = field(default_factory=dict)  # link of A -> body of B that it is part of
    # name of a movable joint of A -> the joint of B
    joints: dict[str, DescribedJoint] = field(default_factory=dict)
    groups: dict[int, int] = field(default_factory=dict)  # group of A -> group of B
    # links of A that were found by geometry -> body of B
    unnamed: dict[str, str] = field(default_factory=dict)
    # body of B -> bodies fixed to it that are no link's home: its links are merged in A, or have other names
    beside: dict[str, list[str]] = field(default_factory=dict)

    def links_of(self) -> dict[str, list[str]]:
        """Body of B -> the links of A that are part of it."""
        found: dict[str, list[str]] = {}
        for link, body in self.home.items():
            found.setdefault(body, []).append(link)
        return found


def rigid_groups(side: Description) -> Tree:
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


def pair_descriptions(a: Description, b: Description) -> Pairing:
    """Match two sides."""
    pairing = Pairing(rigid_groups(a), rigid_groups(b))
    _by_name(pairing)
    _match_groups(pairing)
    _match_joints(pairing)
    _find_homes(pairing)
    _find_beside(pairing)
    return pairing


def plain_name(name: str) -> str:
    """A name without what converters change: case, folders, signs that a format does not allow."""
    return re.sub(r"[^a-z0-9]+", "_", re.split(r"[/:]+", name)[-1].lower()).strip("_")


def lookup(names: list[str]) -> dict[str, str]:
    """Plain name -> name, for the plain names that only one name has."""
    count = Counter(map(plain_name, names))
    return {plain_name(name): name for name in names if count[plain_name(name)] == 1}


def _by_name(pairing: Pairing) -> None:
    b = pairing.b.side
    frames = {frame: (body.name, pose) for body in b.bodies.values() for frame, pose in body.frames.items()}
    near_body, near_frame = lookup(list(b.bodies)), lookup(list(frames))
    alike = lookup(list(pairing.a.side.bodies))
    for name, body in pairing.a.side.bodies.items():
        own = plain_name(name) if alike.get(plain_name(name)) == name else None
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
            name = joint.name if joint.name in named else near.get(plain_name(joint.name), "")
            if name:
                votes[g, named[name]] += NAME_VOTES
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


def is_base_fixed(pairing: Pairing, base: str | None = None) -> bool:
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
    m, n = (sum(x.side.bodies[name].mass for name in x.members[k]) for x, k in ((a, i), (b, j)))
    cost += min(2.0, abs(math.log(m / n))) if m > 0 and n > 0 else 2.0 * (m != n)
    sizes = _descendants(a, i), _descendants(b, j)
    return cost + abs(sizes[0] - sizes[1])


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


# ---- Where each link of A is in B: the two worlds laid on each other link by link ----------------


@dataclass
class Alignment:
    """The result of the alignment: where the links are."""

    # link of A -> map from B's world to A's, as far as this link is concerned
    maps: dict[str, Placement] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)  # joints that are placed otherwise
    # links whose frame is elsewhere in B, although the body is not
    reframed: list[str] = field(default_factory=list)


def close(a: Placement, b: Placement, tolerance: float, size: float = 1.0) -> bool:
    """Whether two poses agree: angles in radians, distances by the size of the robot."""
    return near(a, b, tolerance, tolerance * size)


def near(a: Placement, b: Placement, tolerance: float, reach: float) -> bool:
    """Whether two poses agree: entries of the rotations to a tolerance, positions to a reach [m]."""
    far = float(np.abs(a.position - b.position).max())
    return float(np.abs(a.rotation - b.rotation).max()) <= tolerance and far <= reach


class Aligner:
    """Lays B on A, from the base outwards."""

    def __init__(self, pairing: Pairing, tolerance: float) -> None:
        self.pairing, self.tolerance = pairing, tolerance
        self.a, self.b = pairing.a.side, pairing.b.side
        self._reframing = False
        places = [body.pose.position for body in self.a.bodies.values()]
        self.size = max(float(np.ptp(np.array(places), axis=0).max()), 0.1)
        self._heads = pairing.links_of()
        self._children: dict[str, list[DescribedJoint]] = {}
        for joint in self.a.joints:
            self._children.setdefault(joint.parent, []).append(joint)

    def align(self) -> Alignment:
        """The maps of all links, and what is placed otherwise."""
        out = self._aligned()
        if out.reframed and out.findings:
            # B has frames of its own: what nothing but a frame speaks for is no difference.
            self._reframing = True
            out = self._aligned()
        return out

    def _aligned(self) -> Alignment:
        out = Alignment()
        for name, body in self.a.bodies.items():
            joint = self.pairing.a.into.get(name)
            if joint is None or (joint.kind == "floating" and self.a.is_base(joint)):
                out.maps[name] = self._root(name, body)
                by_frame = self._frame_map(name, body)
                if by_frame is not None and not close(by_frame, out.maps[name], self.tolerance, self.size):
                    out.reframed.append(name)
            else:
                out.maps[name] = self._child(joint, body, out)
        return out

    def _frame_map(self, name: str, body: DescribedBody) -> Placement | None:
        """The map that lays the frame of this name on A's."""
        found = self.pairing.direct.get(name)
        if found is None:
            return None
        return body.pose @ (self.b.bodies[found[0]].pose @ found[1]).inverse()

    def _root(self, name: str, body: DescribedBody) -> Placement:
        by_frame = self._frame_map(name, body)
        home = self.pairing.home.get(name)
        if body.static or home is None:
            first = next((n for n in self.a.bodies if n in self.pairing.direct), None)
            if body.static and first is not None and self.b.base == "floating":
                return self._frame_map(first, self.a.bodies[first]) or Placement()
            return by_frame or Placement()
        options = [by_frame] if by_frame is not None else []
        options += [Placement(), body.pose @ self.b.bodies[home].pose.inverse()]
        # Where the root's own frame is elsewhere, what it carries may say where it is.
        carried = (self.a.bodies[joint.child] for joint in self._children.get(name, ()))
        maps = (self._frame_map(child.name, child) for child in carried)
        options += [each for each in maps if each is not None]
        return max(options, key=lambda option: self._fits(name, option))

    def _child(self, joint: DescribedJoint, body: DescribedBody, out: Alignment) -> Placement:
        before = out.maps[joint.parent]
        by_frame = self._frame_map(body.name, body)
        if by_frame is not None:
            if close(by_frame, before, self.tolerance, self.size):
                return before  # not by_frame: rounding would add up along the tree
            kept, moved = self._fits(body.name, before), self._fits(body.name, by_frame)
            if kept > moved or (kept == moved > 0.0 and self._reframing):
                out.reframed.append(body.name)
                return before
            earlier = self._earlier(joint, max(kept, moved), out)
            if earlier is not None:
                out.reframed.append(body.name)
                return earlier
            self._say(joint, before, by_frame, out)
            return by_frame
        if self._fits(body.name, before) >= 1.0 or joint.written is None:
            return before
        return self._guessed(joint, body, before, out)

    def _earlier(self, joint: DescribedJoint, score: float, out: Alignment) -> Placement | None:
        """The map of a link further up, where what the link carries fits it better than its parent's map.

        So a frame that is elsewhere, without mass or shapes, says nothing of the links behind it.
        """
        into = self.pairing.a.into
        up: DescribedJoint | None = joint
        while up is not None and up.parent in out.maps and not up.moves:
            up = into.get(up.parent)
            if up is None or up.parent not in out.maps:
                return None
            fits = self._fits(joint.child, out.maps[up.parent])
            if fits > score and fits > 0.5:
                return out.maps[up.parent]
        return None

    def _guessed(
        self, joint: DescribedJoint, body: DescribedBody, before: Placement, out: Alignment
    ) -> Placement:
        """The map of a link without a frame of its name in B, by what a known cause would make of it."""
        assert joint.written is not None
        if body.name not in self.pairing.home or not joint.moves or joint.name not in self.pairing.joints:
            return before
        parent = self.a.bodies[joint.parent].pose
        right = joint.written.origin.placement()
        best, score = before, self._fits(body.name, before)
        for _, _, wrong in origin_causes(joint.written):
            option = parent @ right @ wrong.inverse() @ parent.inverse() @ before
            fits = self._fits(body.name, option)
            if fits > score + 1e-9:
                best, score = option, fits
        if best is not before:
            self._say(joint, before, best, out)
        return best

    def _say(self, joint: DescribedJoint, before: Placement, after: Placement, out: Alignment) -> None:
        parent, child = self.a.bodies[joint.parent].pose, self.a.bodies[joint.child].pose
        # In A's parent frame: where A's child frame is, and where B has it.
        right = parent.inverse() @ child
        theirs = parent.inverse() @ before @ after.inverse() @ child
        found = placement_text(joint, right, theirs, self.tolerance, self.size)
        if found is not None:
            line = joint.written.origin.line or joint.line if joint.written else 0
            cause, text, also = found
            out.findings.append(Finding(cause, "joint", joint.name or joint.child, line, text, also))

    def _fits(self, name: str, option: Placement) -> float:
        """Which part of what a link carries is where A has it: inertia, shapes, joints."""
        hits = list(self._content(name, option))
        return sum(hits) / len(hits) if hits else 0.0

    def _content(self, name: str, option: Placement) -> Iterator[bool]:
        home = self.pairing.home.get(name)
        joint = self.pairing.a.into.get(name)
        if joint is not None and joint.name in self.pairing.joints and joint.moves:
            theirs = self.pairing.joints[joint.name]
            yield self._joint_fits(joint, theirs, option)
        for child in self._children.get(name, []):
            if child.moves and child.name in self.pairing.joints:
                other = self.pairing.joints[child.name]
                yield self._joint_fits(child, other, option)
                if child.kind in ("revolute", "prismatic"):
                    yield float(option.rotation @ other.axis @ child.axis) > 0.0
            elif not child.moves and child.child in self.pairing.direct:
                held, frame = self.pairing.direct[child.child]
                there = option @ self.b.bodies[held].pose @ frame
                yield close(there, self.a.bodies[child.child].pose, 10 * self.tolerance, self.size)
        if home is None or (joint is not None and self.pairing.home.get(joint.parent) == home):
            return
        yield from self._matter_fits(home, option)

    def _matter_fits(self, home: str, option: Placement) -> Iterator[bool]:
        """Whether mass and shapes of a body of B are where those of its links are in A."""
        there = self.b.bodies[home]
        own = (self.a.bodies[link] for link in self._heads[home])
        ours = sum((Rigid(x.mass, x.com, x.inertia).at(x.pose) for x in own), NO_MASS)
        if ours.mass > 0.0 and not there.static:
            its = (there, *(self.b.bodies[name] for name in self.pairing.beside.get(home, ())))
            theirs = sum((Rigid(x.mass, x.com, x.inertia).at(option @ x.pose) for x in its), NO_MASS)
            reach = max(float(np.linalg.norm(self.a.bodies[link].com)) for link in self._heads[home])
            size = Rigid(ours.mass, np.zeros(3), ours.inertia).size + reach
            yield bool(np.abs(ours.com - theirs.com).max() <= 10 * self.tolerance * max(size, 1e-3))
            yield Slack(10 * self.tolerance).inertia_same(ours, theirs)
        links = self._heads[home]
        if len(links) == 1:
            body = self.a.bodies[links[0]]
            for shape, other in zip(body.collisions, there.collisions, strict=False):
                off = (body.pose @ shape.pose).position - (option @ there.pose @ other.pose).position
                yield bool(np.abs(off).max() <= 10 * self.tolerance * self.size)

    def _joint_fits(self, a: DescribedJoint, b: DescribedJoint, option: Placement) -> bool:
        """Whether B's axis, as a line without direction, is A's."""
        if a.kind not in ("revolute", "prismatic") or b.kind != a.kind:
            return bool(np.abs(option.rotation @ b.anchor + option.position - a.anchor).max() < 1e-5)
        axis = option.rotation @ b.axis
        if float(np.linalg.norm(np.cross(axis, a.axis))) > 10 * self.tolerance:
            return False
        off = option.rotation @ b.anchor + option.position - a.anchor
        across = np.cross(off, a.axis)
        return a.kind == "prismatic" or float(np.linalg.norm(across)) <= 10 * self.tolerance * self.size


# ---- What becomes of a joint's <origin> if a reader goes wrong in a known way --------------------

Wrong = tuple[str, str, Placement]  # cause, what it says of the origin, and the placement


def origin_causes(joint: JointDescription) -> Iterator[Wrong]:
    """The known ways, the more usual first."""
    P, rpy = joint.origin.placement(), joint.origin.rpy
    R, p, line = P.rotation, P.position, joint.origin.line
    zero, one = np.zeros(3), np.eye(3)
    if joint.origin.rotated:
        it = f"the origin's rotation of line {line}"
        yield "origin-rotation-lost", f"{it} left out", Placement(one, p)
        yield "origin-rotation-twice", f"{it} applied twice", Placement(R @ R, p)
        yield "origin-rotation-inverted", f"{it} applied backwards", Placement(R.T, p)
        if joint.origin.quat_xyzw is None:
            for text, S in other_rotations(rpy):
                cause = "origin-degrees" if "degrees" in text else "origin-rotation-convention"
                yield cause, f"{it} {text}", Placement(S, p)
        yield (
            "origin-position-turned",
            f"its position turned by its rotation (line {line})",
            Placement(R, R @ p),
        )
        back = f"its position turned back by its rotation (line {line})"
        yield "origin-position-turned", back, Placement(R, R.T @ p)
    if p.any():
        it = f"the origin's position of line {line}"
        yield "origin-position-lost", f"{it} left out", Placement(R, zero)
        yield "origin-position-twice", f"{it} applied twice", Placement(R, 2.0 * p)
        yield "origin-position-inverted", f"{it} negated", Placement(R, -p)
        for k in LENGTH_FACTORS:
            yield "origin-units", f"{it} times {k:g}", Placement(R, k * p)
        for k, letter in enumerate("xyz"):
            mirrored = p.copy()
            mirrored[k] = -p[k]
            yield "origin-mirrored", f"{it} mirrored in {letter}", Placement(R, mirrored)
    if joint.origin.rotated and p.any():
        yield "origin-lost", f"the whole origin of line {line} left out", Placement()


def placement_text(
    joint: DescribedJoint, right: Placement, theirs: Placement, tolerance: float, size: float
) -> tuple[str, str, tuple[str, ...]] | None:
    """Cause, verdict and other causes of a joint of A that B places otherwise; None if it does not.

    ``right`` and ``theirs`` are the poses of the child's frame in the parent's, in A and in B. The tolerance
    is of angles [rad], and of distances as a part of the robot's size [m].
    """
    reach = max(tolerance * size, 10 * tolerance * float(np.abs(theirs.position).max()))
    if near(right, theirs, 3 * tolerance, 3 * reach):
        return None
    if joint.written is not None:
        found: list[tuple[str, str]] = []
        for k in (1.0, 10.0):  # B's numbers may be rounded
            if k > 1.0 and (
                found or near(theirs, right, CAUSE_THRESHOLD * k * tolerance, CAUSE_THRESHOLD * k * reach)
            ):
                break
            found = [
                (cause, text)
                for cause, text, wrong in origin_causes(joint.written)
                if near(wrong, theirs, 10 * k * tolerance, 10 * k * reach)
                and not near(wrong, right, CAUSE_THRESHOLD * k * tolerance, k * reach)
            ]
        if found:
            also = tuple(dict.fromkeys(cause for cause, _ in found[1:] if cause != found[0][0]))
            return found[0][0], f"B has the joint with {found[0][1]}", also
    far = float(np.linalg.norm(theirs.position - right.position))
    turn = right.rotation.T @ theirs.rotation
    angle = math.acos(min(1.0, max(-1.0, (float(np.trace(turn)) - 1.0) / 2.0)))
    own = float(np.abs(right.position).max())
    rough = (
        far <= max(ROUNDING_TOLERANCE * own, 0.1 * ROUNDING_TOLERANCE * size) and angle <= ROUNDING_TOLERANCE
    )
    parts = [f"{number(far * 1e3)} mm away"] if far > reach else []
    parts += [f"turned by {number(math.degrees(angle))} deg"] if angle > tolerance else []
    place = " and ".join(parts) or "elsewhere"
    if rough:
        return "rounded", f"B has the joint's origin rounded ({place})", ()
    if joint.written is not None:
        shifted = _zero(joint, right.inverse() @ theirs, tolerance, reach)
        if shifted is not None:
            return "zero-position", shifted, ()
    return "origin-differs", f"B has the joint {place}; no known cause fits", ()


def _zero(joint: DescribedJoint, off: Placement, tolerance: float, reach: float) -> str | None:
    """The same joint with another zero: the child is turned about, or shifted along, the axis."""
    assert joint.written is not None
    axis = np.array(joint.written.axis) / (math.hypot(*joint.written.axis) or 1.0)
    if joint.kind == "revolute" and float(np.abs(off.position).max()) <= 10 * reach:
        if float(np.abs(off.rotation @ axis - axis).max()) > 10 * tolerance:
            return None
        w = off.rotation
        sine = float(axis @ np.array([w[2, 1] - w[1, 2], w[0, 2] - w[2, 0], w[1, 0] - w[0, 1]])) / 2.0
        angle = math.atan2(sine, (float(np.trace(w)) - 1.0) / 2.0)
        return f"B's zero is A's {number(angle)} rad ({number(math.degrees(angle))} deg)"
    if joint.kind == "prismatic" and float(np.abs(off.rotation - np.eye(3)).max()) <= 10 * tolerance:
        shift = float(off.position @ axis)
        if float(np.abs(off.position - shift * axis).max()) <= 10 * reach:
            return f"B's zero is A's {number(shift)} m"
    return None
