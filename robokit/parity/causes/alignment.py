"""Where each link of A is in B: the two worlds laid on each other link by link.

So one misplaced joint is one difference, and not one for each link behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.causes.finding import Finding
from robokit.parity.causes.pairing import Pairing
from robokit.parity.causes.placement_candidates import origin_causes, placement_text
from robokit.parity.causes.rigid import NOTHING, Rigid, Slack
from robokit.parity.sides.side import SideBody, SideJoint


@dataclass
class Alignment:
    """Where links are.

    Attributes:
        maps: link of A -> map from B's world to A's, as far as this link is concerned.
        findings: joints that are placed otherwise.
        reframed: links whose frame is elsewhere in B, although the body is not.
    """

    maps: dict[str, Placement] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    reframed: list[str] = field(default_factory=list)


def close(a: Placement, b: Placement, tolerance: float, size: float = 1.0) -> bool:
    """Whether two poses agree: angles in radians, distances by the size of the robot."""
    far = float(np.abs(a.position - b.position).max())
    return float(np.abs(a.rotation - b.rotation).max()) <= tolerance and far <= tolerance * size


class Aligner:
    """Lays B on A, from the base outwards."""

    def __init__(self, pairing: Pairing, tolerance: float) -> None:
        self.pairing, self.tolerance = pairing, tolerance
        self.a, self.b = pairing.a.side, pairing.b.side
        self._reframing = False
        places = [body.pose.position for body in self.a.bodies.values()]
        self.size = max(float(np.ptp(np.array(places), axis=0).max()), 0.1)
        self._heads: dict[str, list[str]] = {}
        for link, body in pairing.home.items():
            self._heads.setdefault(body, []).append(link)
        self._children: dict[str, list[SideJoint]] = {}
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

    def _frame_map(self, name: str, body: SideBody) -> Placement | None:
        """The map that lays the frame of this name on A's."""
        found = self.pairing.direct.get(name)
        if found is None:
            return None
        return body.pose @ (self.b.bodies[found[0]].pose @ found[1]).inverse()

    def _root(self, name: str, body: SideBody) -> Placement:
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

    def _child(self, joint: SideJoint, body: SideBody, out: Alignment) -> Placement:
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

    def _earlier(self, joint: SideJoint, score: float, out: Alignment) -> Placement | None:
        """The map of a link further up, where what the link carries fits it better than its parent's map.

        So a frame that is elsewhere, without mass or shapes, says nothing of the links behind it.
        """
        into = self.pairing.a.into
        up: SideJoint | None = joint
        while up is not None and up.parent in out.maps and not up.moves:
            up = into.get(up.parent)
            if up is None or up.parent not in out.maps:
                return None
            fits = self._fits(joint.child, out.maps[up.parent])
            if fits > score and fits > 0.5:
                return out.maps[up.parent]
        return None

    def _guessed(self, joint: SideJoint, body: SideBody, before: Placement, out: Alignment) -> Placement:
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

    def _say(self, joint: SideJoint, before: Placement, after: Placement, out: Alignment) -> None:
        parent, child = self.a.bodies[joint.parent].pose, self.a.bodies[joint.child].pose
        # In A's parent frame: where A's child frame is, and where B has it.
        right = parent.inverse() @ child
        theirs = parent.inverse() @ before @ after.inverse() @ child
        found = placement_text(joint, right, theirs, self.tolerance, self.size)
        if found is not None:
            line = joint.written.origin.line or joint.written.line if joint.written else 0
            cause, text, also = found
            out.findings.append(Finding(cause, "joint", joint.name or joint.child, line, text, also))

    def _fits(self, name: str, option: Placement) -> float:
        """Which part of what a link carries is where A has it: inertia, shapes, joints."""
        hits = total = 0.0
        for hit in self._content(name, option):
            hits, total = hits + hit, total + 1.0
        return hits / total if total else 0.0

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
        ours = NOTHING
        for link in self._heads[home]:
            own = self.a.bodies[link]
            ours = ours + Rigid(own.mass, own.com, own.inertia).at(own.pose)
        if ours.mass > 0.0 and not there.static:
            theirs = NOTHING
            for each in (there, *(self.b.bodies[name] for name in self.pairing.beside.get(home, ()))):
                theirs = theirs + Rigid(each.mass, each.com, each.inertia).at(option @ each.pose)
            size = Rigid(ours.mass, np.zeros(3), ours.inertia).size + self._reach(home)
            yield bool(np.abs(ours.com - theirs.com).max() <= 10 * self.tolerance * max(size, 1e-3))
            yield Slack(10 * self.tolerance).inertia_same(ours, theirs)
        links = self._heads[home]
        if len(links) == 1:
            body = self.a.bodies[links[0]]
            for shape, other in zip(body.collisions, there.collisions, strict=False):
                off = (body.pose @ shape.pose).position - (option @ there.pose @ other.pose).position
                yield bool(np.abs(off).max() <= 10 * self.tolerance * self.size)

    def _reach(self, home: str) -> float:
        """Largest distance of a centre of mass from its link's frame."""
        return max(float(np.linalg.norm(self.a.bodies[link].com)) for link in self._heads[home])

    def _joint_fits(self, a: SideJoint, b: SideJoint, option: Placement) -> bool:
        """Whether B's axis, as a line without direction, is A's."""
        if a.kind not in ("revolute", "prismatic") or b.kind != a.kind:
            return bool(np.abs(option.rotation @ b.anchor + option.position - a.anchor).max() < 1e-5)
        axis = option.rotation @ b.axis
        if float(np.linalg.norm(np.cross(axis, a.axis))) > 10 * self.tolerance:
            return False
        off = option.rotation @ b.anchor + option.position - a.anchor
        across = np.cross(off, a.axis)
        return a.kind == "prismatic" or float(np.linalg.norm(across)) <= 10 * self.tolerance * self.size
