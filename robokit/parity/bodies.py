"""Masses, inertias and collision shapes of two descriptions compared, merged links included."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from robokit.formats.description import DescribedBody, DescribedJoint, DescribedShape
from robokit.model.geometry import Placement
from robokit.parity.inertials import (
    CAUSE_THRESHOLD,
    LARGEST_MESH_FILE,
    NO_MASS,
    ROUNDING_TOLERANCE,
    ROUNDINGS,
    WEAK_CAUSES,
    Candidate,
    Finder,
    Found,
    Rigid,
    Slack,
    candidates,
    causes_of,
    factor,
    number,
    scale_causes,
    shape_candidates,
    steiner,
    unknown_cause,
)
from robokit.parity.matching import Alignment, Pairing, close
from robokit.parity.verdict import Finding

# ==== bodies ======================================================================================
# Masses and inertias of B's bodies beside those of A's links, merged links included.


SUM_ROUNDING = 1e-11
"""Rounding of a sum of bodies, relative to the sum."""

Cluster = tuple[list[str], list[str]]
"""Links of A and bodies of B that are the same matter."""


class Bodies:
    """The comparison of all bodies of two sides.

    Args:
        pairing, alignment: what belongs together, and where it is.
        tolerance: largest relative difference that counts as none.
        find: where a mesh file of A is.
    """

    def __init__(self, pairing: Pairing, alignment: Alignment, tolerance: float, find: Finder) -> None:
        self.pairing, self.maps, self.tolerance, self.find = pairing, alignment.maps, tolerance, find
        self.a, self.b = pairing.a.side.bodies, pairing.b.side.bodies
        self.notes: list[str] = []
        self.massive = 0

    def findings(self) -> Iterator[Finding]:
        """One finding for each body, or cluster of bodies, that differs."""
        clusters = self._clusters()
        self.massive = sum(any(self.a[link].mass > 0.0 for link in links) for links, _ in clusters)
        told: list[tuple[Finding, list[Found]]] = []
        by_group: dict[int, list[Cluster]] = {}
        for cluster in clusters:
            by_group.setdefault(self.pairing.a.group[cluster[0][0]], []).append(cluster)
        for group in by_group.values():
            wrong = [cluster for cluster in group if not self._same(cluster)]
            if len(wrong) > 1 and self._same_sum(group):
                names = ", ".join(repr(name) for links, _ in wrong for name in links)
                self.notes.append(
                    f"mass is distributed otherwise over {names}, which are fixed to each other"
                )
                continue
            for cluster in wrong:
                finding, found = self._finding(*cluster)
                dropped = [] if found and found[0][0] not in WEAK_CAUSES else self._dropped(cluster)
                told += dropped or [(finding, found)]
        yield from _ranked_by_support(told)
        for name, body in self.a.items():
            if name not in self.pairing.home and body.mass > 0.0:
                text = f"B has no such link; its {number(body.mass)} kg are left out"
                yield Finding("link-missing", "link", name, body.line, text)

    def _clusters(self) -> list[Cluster]:
        by_body: dict[str, list[str]] = {}
        for link in self.a:
            home = self.pairing.home.get(link)
            if home is not None and not self.b[home].static and not self.a[link].static:
                by_body.setdefault(home, []).append(link)
        clusters = {body: (links, [body]) for body, links in by_body.items()}
        for home, (_, bodies) in clusters.items():
            bodies += [name for name in self.pairing.beside.get(home, ()) if not self.b[name].static]
        return list(clusters.values())

    def extra(self) -> Iterator[str]:
        """Bodies of B with mass that belong to no link of A."""
        used = {name for _, bodies in self._clusters() for name in bodies}
        for name, body in self.b.items():
            if name not in used and not body.static and body.mass > 0.0:
                group = self.pairing.b.group[name]
                if not self.b[self.pairing.b.members[group][0]].static:
                    yield name

    def _place(self, link: str) -> Placement:
        """Where a link of A would be in B's world."""
        return self.maps[link].inverse() @ self.a[link].pose

    def _of(self, link: str) -> Rigid:
        return _rigid(self.a[link]).at(self._place(link))

    def _sum(self, cluster: Cluster) -> tuple[Rigid, Rigid]:
        ours, theirs = NO_MASS, NO_MASS
        for link in cluster[0]:
            ours = ours + self._of(link)
        for body in cluster[1]:
            theirs = theirs + _rigid(self.b[body]).at(self.b[body].pose)
        return ours, theirs

    def _same(self, cluster: Cluster) -> bool:
        ours, theirs = self._sum(cluster)
        # About A's centre of mass: distances from the world's origin would hide small ones.
        here = Placement(position=-ours.com)
        size = Rigid(ours.mass, ours.com * 0.0, ours.inertia).size
        reach = max((float(abs(self.a[link].com).max()) for link in cluster[0]), default=0.0)
        slack = Slack(self.tolerance, length=self.tolerance * max(reach, size), inertia=0.0)
        return slack.same(ours.at(here), theirs.at(here))

    def _same_sum(self, group: list[Cluster]) -> bool:
        whole = [name for links, _ in group for name in links], [name for _, b in group for name in b]
        return self._same(whole)

    def _finding(self, links: list[str], bodies: list[str]) -> tuple[Finding, list[Found]]:
        """The finding of a cluster, and every cause that explains it."""
        total, theirs = self._sum((links, bodies))
        best: tuple[str, list[Found]] | None = None
        explained: dict[str, set[str]] = {}
        for link in links:
            found = self._explained(link, links, total, theirs)
            if found:
                explained[link] = {cause for cause, _ in found}
            # Of two that explain it alike: that of which B has no body of this name.
            rank = _rank(found), link in self.pairing.direct
            if found and (best is None or rank < (_rank(best[1]), best[0] in self.pairing.direct)):
                best = link, found
        heavy = [link for link in links if self.a[link].mass > 0.0 or self.a[link].inertia.any()]
        if len(heavy) > 1 and (best is None or _rank(best[1])):
            slack = self._slack(total, len(links))
            whole = [found for found in _scale_causes(total, theirs, slack) if "inertia are" in found[1]]
            best = (heavy[0], whole) if whole else best
        if best is None:
            best = self._together(links, total, theirs)
        if best is not None:
            link, found = best
            cause, text = found[0]
            also = tuple(other for other, _ in found[1:])
            instead = tuple(other for other in explained if other != link and cause in explained[other])
            line = self.a[link].line
            return Finding(cause, "link", link, line, text, also, instead=instead), found
        head = max(links, key=lambda name: self.a[name].mass)
        frame = self._place(head).inverse()
        ours = total.at(frame)
        cause, text = unknown_cause(ours, theirs.at(frame), self._slack(total, len(links)))
        if len(links) > 1:
            text += f" (with {', '.join(name for name in links if name != head)}, fixed to it)"
        values = _values(ours), _values(theirs.at(frame))
        return Finding(cause, "link", head, self.a[head].line, text, (), *values), []

    def _dropped(self, cluster: Cluster) -> list[tuple[Finding, list[Found]]]:
        """A finding for each link behind a fixed joint, where leaving out some of them explains B's body.

        Mass, first and second moments add up, so which of the links are missing is a linear system with
        unknowns 0 or 1, whose least squares solution within 0..1 is rounded and tried.
        """
        links = cluster[0]
        total, theirs = self._sum(cluster)
        joints = {link: self.pairing.a.into.get(link) for link in links}
        behind = [
            (link, joint)
            for link, joint in joints.items()
            if joint is not None and not joint.moves and joint.parent in links and self.a[link].mass > 0.0
        ]
        if not behind or total.mass <= 0.0:
            return []
        from scipy.optimize import lsq_linear

        size = max(Rigid(total.mass, np.zeros(3), total.inertia).size, 1e-6)
        columns = np.array([_moments(self._of(link), total.com, size) for link, _ in behind]).T
        off = _moments(total, total.com, size) - _moments(theirs, total.com, size)
        share = lsq_linear(columns, off, (0.0, 1.0)).x
        missing = [each for each, part in zip(behind, share, strict=True) if part > 0.5]
        if not missing:
            return []
        left = NO_MASS
        for link in links:
            if link not in dict(missing):
                left = left + self._of(link)
        slack = self._slack(total, len(links))
        fits = (
            slack.rougher(rounding).same(left, theirs)
            for rounding in ROUNDINGS
            if not rounding or not slack.rougher(CAUSE_THRESHOLD * rounding).same(total, theirs)
        )
        if not any(fits):
            return []
        told = []
        for link, joint in missing:
            text = f"{_merging(joint)}: {number(self.a[link].mass)} kg"
            finding = Finding("fixed-link-dropped", "link", link, self.a[link].line, text)
            told.append((finding, [("fixed-link-dropped", text)]))
        return told

    def _slack(self, total: Rigid, links: int) -> Slack:
        if links == 1:
            size = max(total.size, 1e-6)
            return Slack(
                self.tolerance, 0.0, SUM_ROUNDING * size, SUM_ROUNDING * abs(total.mass) * size**2 * 1e-2
            )
        size = max(total.size, 1e-6)
        return Slack(
            self.tolerance,
            SUM_ROUNDING * total.mass,
            SUM_ROUNDING * size,
            SUM_ROUNDING * total.mass * size**2,
        )

    def _explained(self, link: str, links: list[str], total: Rigid, theirs: Rigid) -> list[Found]:
        """The causes if this link alone is to be the reason."""
        body, place = self.a[link], self._place(link)
        rest = NO_MASS
        for other in links:
            if other != link:
                rest = rest + self._of(other)
        a, b = _rigid(body), (theirs - rest).at(place.inverse())
        slack = self._slack(total, len(links))
        joint = self.pairing.a.into.get(link)
        more: tuple[Candidate, ...] = ()
        behind = joint is not None and not joint.moves and joint.parent in links and len(links) > 1
        if behind and joint is not None and joint.written is not None and body.mass > 0.0:
            up = (body.pose.inverse()) @ self.a[joint.parent].pose
            more = tuple(merge_candidates(body, joint, up))
        own = body.written.inertial if body.written is not None else None
        found = causes_of(own, a, b, slack, lambda: shape_candidates(body, a, self.find), more)
        if behind and joint is not None:
            dropped = _merging(joint)
            what = f"{number(a.mass)} kg" if a.mass else "inertia without mass"
            if found and found[0][0] == "inertial-lost":
                found = [("fixed-link-dropped", f"{dropped}: {what}"), *(found if a.mass else [])]
            how = self._added(link, joint.parent, links, theirs, total) if body.mass > 0.0 else ""
            if how:
                line = joint.written.line if joint.written else 0
                text = f"B merges it into {joint.parent!r} {how} (line {line})"
                found = [f for f in found if f[0] not in WEAK_CAUSES]
                found.append(("fixed-link-merged-wrongly", text))
        return found

    def _added(self, link: str, parent: str, links: list[str], theirs: Rigid, total: Rigid) -> str:
        """How B adds the link to its parent, if it does so wrongly; "" if that is not the difference."""
        rest = NO_MASS
        for other in links:
            if other not in (link, parent):
                rest = rest + self._of(other)
        frame = self._place(parent)
        pose = frame.inverse() @ self._place(link)
        slack = self._slack(total, len(links))
        made = sum_candidates(_rigid(self.a[parent]), _rigid(self.a[link]), pose)
        wrong = [(text, rest + each.at(frame)) for text, each in made]
        for rounding in ROUNDINGS:
            rougher, clear = (
                slack.rougher(rounding),
                slack.rougher(max(CAUSE_THRESHOLD * rounding, slack.relative)),
            )
            for text, each in wrong:
                if rougher.same(each, theirs) and not clear.same(each, total):
                    return text
        return ""

    def _together(self, links: list[str], total: Rigid, theirs: Rigid) -> tuple[str, list[Found]] | None:
        """The one cause that acts on every link of a merged body."""
        clear = self._slack(total, len(links)).rougher(CAUSE_THRESHOLD * ROUNDINGS[1])
        if len(links) < 2 or clear.same(total, theirs):
            return None
        made: dict[str, dict[str, list[Candidate]]] = {}
        for link in links:
            written = self.a[link].written
            if written is not None and written.inertial is not None:
                for candidate in candidates(written.inertial):
                    made.setdefault(candidate.cause, {}).setdefault(link, []).append(candidate)
        for cause, by_link in made.items():
            if len(by_link) < 2:
                continue
            sum_ = NO_MASS
            for link in links:
                body = by_link[link][0].body.at(self._place(link)) if link in by_link else self._of(link)
                sum_ = sum_ + body
            slack = self._slack(sum_, len(links))
            if slack.rougher(CAUSE_THRESHOLD * ROUNDINGS[1]).same(total, theirs):
                return None  # rounding alone would do
            if slack.rougher(ROUNDINGS[1]).same(sum_, theirs):
                first = next(iter(by_link))
                others = ", ".join(name for name in by_link if name != first)
                text = f"{by_link[first][0].text}, and so for {others}"
                return first, [(cause, text)]
        return None


def _merging(joint: DescribedJoint) -> str:
    return f"B drops it where it merges the links behind the fixed joint {joint.name!r}"


def _moments(body: Rigid, origin: np.ndarray, size: float) -> np.ndarray:
    """Mass, first and second moments about a point, (13,) [kg], with lengths in units of the size [m]."""
    c = (body.com - origin) / size
    about = body.inertia / size**2 + steiner(body.mass, c)
    return np.concatenate([[body.mass], body.mass * c, about.ravel()])


def _ranked_by_support(told: list[tuple[Finding, list[Found]]]) -> Iterator[Finding]:
    """The findings; where several causes explain one, that which explains most of the others comes first."""
    support = Counter(_sign(each) for _, found in told for each in found)
    for finding, found in told:
        best = max(found, key=lambda each: support[_sign(each)], default=None)
        if best is None or support[_sign(best)] < max(3, support[_sign((finding.cause, finding.text))] + 1):
            yield finding
            continue
        also = tuple(cause for cause, _ in found if cause != best[0])
        yield replace(finding, cause=best[0], text=best[1], also=also)


def _sign(found: Found) -> Found:
    """What findings of one cause have in common: a number that was taken from B, if any."""
    return found[0], found[1].partition(":")[0] if found[0] in WEAK_CAUSES else ""


def _scale_causes(a: Rigid, b: Rigid, slack: Slack) -> list[Found]:
    """:func:`scale_causes`, with the rounding that it takes."""
    for rounding in ROUNDINGS:
        if rounding and slack.rougher(CAUSE_THRESHOLD * rounding).same(a, b):
            break
        found = scale_causes(a, b, slack.rougher(rounding))
        if found:
            return found
    return []


def _rigid(body: DescribedBody) -> Rigid:
    return Rigid(body.mass, body.com, body.inertia)


def _rank(found: list[Found]) -> int:
    return 1 if not found or found[0][0] in WEAK_CAUSES else 0


def _values(body: Rigid) -> dict[str, object]:
    return {"mass": body.mass, "com": body.com.tolist(), "inertia": body.inertia.tolist()}


# What goes wrong when a link behind a fixed joint is merged into its parent: candidates for B's body
# ---------------------------------------------------------------------------------------------------


def merge_candidates(
    body: DescribedBody, joint: DescribedJoint, parent_in_child: Placement
) -> Iterator[Candidate]:
    """The link at a wrong pose.

    Args:
        body: the link.
        joint: the fixed joint.
        parent_in_child: pose of the parent link in the link's frame.
    """
    assert joint.written is not None
    own, origin = Rigid(body.mass, body.com, body.inertia), joint.written.origin
    P = origin.placement()
    line = f" of line {origin.line}" if origin.line else ""
    fixed = f"fixed joint {joint.name!r}"
    turned, moved = bool(origin.rotated), any(origin.xyz)
    wrong = []
    if turned and moved:
        wrong.append((f"without the rotation{line} of {fixed}", Placement(np.eye(3), P.position)))
        wrong.append((f"without the position{line} of {fixed}", Placement(P.rotation, np.zeros(3))))
    if turned:
        back = Placement(P.rotation.T, P.position)
        wrong.append((f"with the rotation{line} of {fixed} backwards", back))
    if turned or moved:
        wrong.append((f"as if the origin{line} of {fixed} were zero", Placement()))
    for text, other in wrong:
        yield Candidate("fixed-link-merged-wrongly", f"B merges it {text}", own.at(parent_in_child @ other))


def sum_candidates(a: Rigid, own: Rigid, pose: Placement) -> Iterator[tuple[str, Rigid]]:
    """The link added wrongly: what is said of it, and the sum.

    Args:
        a: the parent, in its own axes.
        own: the link, in its own axes.
        pose: of the link in its parent's axes.
    """
    b = own.at(pose)
    right = a + b
    m, c, plain = right.mass, right.com, a.inertia + b.inertia
    of_a, of_b = steiner(a.mass, a.com - c), steiner(b.mass, b.com - c)
    axes = "its parallel-axis term"
    yield f"without {axes}", Rigid(m, c, plain)
    yield f"without {axes}", Rigid(m, c, plain + of_b)
    yield f"without {axes}", Rigid(m, c, plain + of_a)
    yield f"without {axes}, keeping the link's centre of mass", Rigid(m, b.com, plain)
    kept = "keeping its parent's centre of mass"
    yield kept, Rigid(m, a.com, right.inertia)
    yield f"without {axes}, {kept}", Rigid(m, a.com, plain)
    yield f"by its mass alone, {kept}", Rigid(m, a.com, a.inertia)
    yield "without an inertia for it", Rigid(m, c, a.inertia)
    R, p = pose.rotation, pose.position
    turned = "its inertia not turned into the parent's axes"
    yield f"with {turned}", a + Rigid(b.mass, b.com, own.inertia)
    yield f"with {turned} but back", a + Rigid(b.mass, b.com, R.T @ own.inertia @ R)
    yield (
        "with its centre of mass not turned into the parent's axes",
        a + Rigid(b.mass, p + own.com, b.inertia),
    )
    zero = np.zeros(3)
    for inertia in (right.inertia, plain):
        yield "with the centre of mass of the sum at its parent's origin", Rigid(m, zero, inertia)
        yield "with the mean of the two centres of mass", Rigid(m, (a.com + b.com) / 2.0, inertia)
    about = plain + steiner(a.mass, a.com) + steiner(b.mass, b.com)
    yield "with the inertia of the sum about its parent's origin", Rigid(m, c, about)
    yield "twice", right + b


# ==== shapes ======================================================================================
# Collision shapes of B beside those of A: scale, size, place, kind.


READ_BY_MUJOCO = (".stl", ".obj", ".msh")

QUARTER_TURN_TOLERANCE = 1e-2
"""How far a box may be from quarter turns for its edges to be taken in another order."""

OTHER_MESH_THRESHOLD = 1e-2
"""Relative difference of bounding boxes above which two files hold different meshes."""

OTHER_KIND_COST, NEARBY_COST = 4.0, 0.05
"""Cost of pairing shapes of two kinds, and of how far away they may be for that."""

Placed = tuple[str, DescribedShape, Placement]
"""Name of the body, its shape, and the shape's pose in A's world."""


class Shapes:
    """The comparison of collision shapes, body by body."""

    def __init__(self, pairing: Pairing, maps: dict[str, Placement], tolerance: float, find: Finder) -> None:
        self.pairing, self.maps, self.tolerance, self.find = pairing, maps, tolerance, find
        self.a, self.b = pairing.a.side, pairing.b.side
        self.notes: list[str] = []
        self._left_out = 0
        self._boxes: dict[Path, np.ndarray | None] = {}

    def findings(self) -> Iterator[Finding]:
        """One finding for each shape that differs."""
        if "none" in (self.a.shapes, self.b.shapes):
            self.notes.append("collision shapes are not compared: B's are not known")
            return
        meshes = "primitives" not in (self.a.shapes, self.b.shapes)
        links: dict[str, list[str]] = {}
        for link, home in self.pairing.home.items():
            links.setdefault(home, []).append(link)
        for home, those in links.items():
            ours = [
                (link, shape, self.a.bodies[link].pose @ shape.pose)
                for link in those
                for shape in self.a.bodies[link].collisions
                if (meshes or shape.kind != "mesh") and min(map(abs, shape.size), default=1.0) > 0.0
            ]
            body = self.b.bodies[home]
            # The map of the link that the body is called after; the others are fixed to it.
            main = next((n for n in those if self.pairing.direct.get(n, ("",))[0] == home), those[0])
            beside = [self.b.bodies[name] for name in self.pairing.beside.get(home, ())]
            theirs = [
                (home, shape, self.maps[main] @ each.pose @ shape.pose)
                for each in (body, *beside)
                for shape in each.collisions
                if (meshes or shape.kind != "mesh") and min(map(abs, shape.size), default=1.0) > 0.0
            ]
            yield from self._body(ours, theirs)
        if not meshes and any(s.kind == "mesh" for body in self.a.bodies.values() for s in body.collisions):
            self.notes.append("collision shapes that are meshes are not compared")
        if self._left_out:
            self.notes.append(f"B leaves out {self._left_out} collision meshes that MuJoCo cannot read")

    def _body(self, ours: list[Placed], theirs: list[Placed]) -> Iterator[Finding]:
        if len(ours) == len(theirs) and all(map(self._same, ours, theirs)):
            return
        if self.b.format == "MJCF" and len(theirs) < len(ours):
            kept = [x for x in ours if x[1].kind != "mesh" or self._readable(x[1].file)]
            self._left_out += len(ours) - len(kept)
            ours = kept
        pairs, rest, extra = self._pairs(ours, theirs)
        for (link, shape, pose), (_, other, there) in pairs:
            for cause, text in self._one(link, shape, pose, other, there):
                yield Finding(cause, "link", link, shape.line, text)
        for link, shape, _ in rest:
            yield Finding("shape-missing", "link", link, shape.line, f"B has no collision {_name(shape)}")
        for home, shape, _ in extra:
            link = next((n for n, body in self.pairing.home.items() if body == home), home)
            yield Finding("shape-added", "link", link, 0, f"only B has the collision {_name(shape)}")

    def _readable(self, name: str) -> bool:
        """Whether MuJoCo can read a mesh file of A."""
        path = self.find(name)
        if path is None or path.suffix.lower() not in READ_BY_MUJOCO:
            return False
        with path.open("rb") as file:
            text = file.read(5) == b"solid" and b"facet" in file.read(300)
        return not (text and path.suffix.lower() == ".stl")

    def _pairs(
        self, ours: list[Placed], theirs: list[Placed]
    ) -> tuple[list[tuple[Placed, Placed]], list[Placed], list[Placed]]:
        if not ours or not theirs:
            return [], ours, theirs
        from scipy.optimize import linear_sum_assignment

        costs = np.array([[_unlike(x, turned_box(x, y)) for y in theirs] for x in ours])
        rows, columns = linear_sum_assignment(costs)
        # Another kind is a replacement only at the same place.
        both = [
            (i, j)
            for i, j in zip(rows, columns, strict=True)
            if ours[i][1].kind == theirs[j][1].kind or costs[i, j] < OTHER_KIND_COST + NEARBY_COST
        ]
        rest = [x for i, x in enumerate(ours) if i not in {i for i, _ in both}]
        extra = [y for j, y in enumerate(theirs) if j not in {j for _, j in both}]
        return [(ours[i], turned_box(ours[i], theirs[j])) for i, j in both], rest, extra

    def _same(self, x: Placed, y: Placed) -> bool:
        """Whether two shapes agree as they are, which most do."""
        a, b = x[1], y[1]
        alike = a.kind == b.kind and _sizes_near(a, b, self.tolerance) and _stem(a) == _stem(b)
        return alike and close(x[2], y[2], self.tolerance, 0.1)

    def _one(
        self, link: str, a: DescribedShape, here: Placement, b: DescribedShape, there: Placement
    ) -> Iterator[tuple[str, str]]:
        name = _name(a)
        if a.kind != b.kind:
            yield "shape-kind", f"B's collision {name} is a {b.kind}"
            return
        if not _sizes_near(a, b, self.tolerance):
            yield self._size(a, b, name)
        elif a.kind == "mesh" and self._other_file(a, b):
            yield "mesh-file", f"B has another mesh in the place of the collision {name}: {_name(b)}"
            return
        size = max(float(np.linalg.norm(a.pose.position)), float(np.abs(a.size).max()), 0.01)
        size = size if a.kind != "mesh" else max(float(np.linalg.norm(a.pose.position)), 0.1)
        if close(*_symmetric(a, here, there), 10 * self.tolerance, size):
            return
        frame = here @ a.pose.inverse()  # the link's
        theirs = frame.inverse() @ there
        for text, wrong in (
            ("its origin left out", Placement()),
            ("its rotation left out", Placement(position=a.pose.position)),
            ("its position left out", Placement(a.pose.rotation)),
        ):
            if close(*_symmetric(a, wrong, theirs), 10 * self.tolerance, size):
                yield "shape-pose", f"B has the collision {name} with {text}"
                return
        far = float(np.linalg.norm(theirs.position - a.pose.position))
        if far <= ROUNDING_TOLERANCE * size and close(
            *_symmetric(a, a.pose, theirs), ROUNDING_TOLERANCE, size
        ):
            yield "rounded", f"B's pose of the collision {name} is A's rounded"
            return
        place = f"{number(far * 1e3)} mm away" if far > 10 * self.tolerance * size else "turned"
        yield "shape-pose", f"B has the collision {name} {place}"

    def _other_file(self, a: DescribedShape, b: DescribedShape) -> bool:
        """Whether two mesh files of different names, both there, have different bounding boxes."""
        if _stem(a) == _stem(b):
            return False
        ours, theirs = self._bounds(self.find(a.file)), self._bounds(self._file_of_b(b.file))
        if ours is None or theirs is None:
            return False
        return float(np.abs(ours - theirs).max()) > OTHER_MESH_THRESHOLD * float(np.ptp(ours, axis=0).max())

    def _file_of_b(self, name: str) -> Path | None:
        beside = Path(self.b.file).parent / name
        return beside if beside.is_file() else self.find(name)

    def _bounds(self, path: Path | None) -> np.ndarray | None:
        """Corners of a mesh's bounding box, (2, 3) [m]; None if it cannot be read."""
        from robokit.meshes.read_mesh import read_mesh

        if path is None or not path.is_file() or path.stat().st_size > LARGEST_MESH_FILE:
            return None
        if path not in self._boxes:
            try:
                points = np.concatenate([surface.vertices for surface in read_mesh(path)])
                self._boxes[path] = np.array([points.min(axis=0), points.max(axis=0)])
            except (ValueError, OSError):
                self._boxes[path] = None
        return self._boxes[path]

    def _size(self, a: DescribedShape, b: DescribedShape, name: str) -> tuple[str, str]:
        ratios = [y / x for x, y in zip(a.size, b.size, strict=True) if x]
        said = f"{_numbers(b.size)} for {_numbers(a.size)}"
        same = len(ratios) == len(a.size) and all(abs(r / ratios[0] - 1.0) <= 1e-5 for r in ratios)
        if a.kind == "mesh":
            if all(abs(abs(y) - 1.0) < 1e-9 for y in b.size):
                return "mesh-scale", f"B leaves the mesh's scale out: {said} ({name})"
            if same:
                return "mesh-scale", f"B's mesh scale is A's times {factor(ratios[0])}: {said} ({name})"
            return "mesh-scale", f"B's mesh scale differs: {said} ({name})"
        if (
            same
            and all(abs(r - ratios[0]) <= ROUNDING_TOLERANCE for r in ratios)
            and abs(ratios[0] - 1.0) <= ROUNDING_TOLERANCE
        ):
            return "rounded", f"B's size of the collision {name} is A's rounded"
        if same:
            hint = {0.5: " (half sizes for full ones)", 2.0: " (full sizes for half ones)"}
            k = round(ratios[0], 6)
            return "shape-size", f"B's collision {name} is A's times {factor(ratios[0])}{hint.get(k, '')}"
        return "shape-size", f"B's collision {name} has another size: {said} m"


def turned_box(x: Placed, y: Placed) -> Placed:
    """The second shape; a box with its edges in the first one's order, where quarter turns lie between."""
    name, shape, pose = y
    if x[1].kind != "box" or shape.kind != "box":
        return y
    turn = x[2].rotation.T @ pose.rotation
    near = np.rint(turn)
    if (
        not np.array_equal(near @ near.T, np.eye(3))
        or float(np.abs(turn - near).max()) > QUARTER_TURN_TOLERANCE
    ):
        return y
    size = tuple(map(float, np.abs(near) @ np.array(shape.size)))
    straight = replace(shape, size=size)
    # With other edges it is another box, or one whose rotation is lost.
    if not _sizes_near(x[1], straight, ROUNDING_TOLERANCE):
        return y
    return name, straight, Placement(pose.rotation @ near.T, pose.position)


def _name(shape: DescribedShape) -> str:
    if shape.kind == "mesh":
        return f"mesh {PurePosixPath(shape.file.replace(chr(92), '/')).name!r}"
    return shape.kind


def _stem(shape: DescribedShape) -> str:
    return PurePosixPath(shape.file.replace(chr(92), "/")).stem.lower()


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(map(number, values))


def _sizes_near(a: DescribedShape, b: DescribedShape, tolerance: float) -> bool:
    return len(a.size) == len(b.size) and all(
        abs(x - y) <= 10 * tolerance * max(abs(x), abs(y)) for x, y in zip(a.size, b.size, strict=True)
    )


def _unlike(x: Placed, y: Placed) -> float:
    a, b = x[1], y[1]
    cost = 0.0 if a.kind == b.kind else OTHER_KIND_COST
    if a.kind == b.kind == "mesh":
        cost += 0.0 if _stem(a) == _stem(b) else 2.0
    far = float(np.linalg.norm(x[2].position - y[2].position))
    cost += min(1.0, 10.0 * far) + 0.3 * min(1.0, float(np.abs(x[2].rotation - y[2].rotation).max()))
    if a.kind == b.kind and not _sizes_near(a, b, 1e-6):
        p, q = (math.prod(map(abs, s.size)) for s in (a, b))
        cost += min(1.0, abs(math.log(p / q))) if p > 0.0 and q > 0.0 else 1.0
    return cost


def _symmetric(a: DescribedShape, here: Placement, there: Placement) -> tuple[Placement, Placement]:
    """The two poses without what the shape's symmetry hides."""
    if a.kind == "sphere":
        return Placement(position=here.position), Placement(position=there.position)
    if a.kind in ("cylinder", "capsule"):
        z, w = here.rotation[:, 2], there.rotation[:, 2]
        same = 1.0 if float(z @ w) >= 0.0 else -1.0
        R = np.eye(3)
        S = np.eye(3)
        S[:, 2] += same * w - z
        return Placement(R, here.position), Placement(S, there.position)
    if a.kind == "box":
        turn = here.rotation.T @ there.rotation
        if float(np.abs(np.abs(turn) - np.eye(3)).max()) < 1e-4:  # half turns about its axes
            return Placement(np.abs(turn), here.position), Placement(np.eye(3), there.position)
    return here, there
