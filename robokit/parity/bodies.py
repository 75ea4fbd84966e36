"""Bodies and joints of two descriptions compared."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from robokit.formats.description import (
    DescribedBody,
    DescribedJoint,
    DescribedShape,
    Description,
    Law,
    Relation,
)
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
    unit_of,
    unknown_cause,
)
from robokit.parity.matching import Alignment, Pairing, close
from robokit.parity.verdict import Finding

# ==== Masses and inertias of B's bodies beside those of A's links, merged links included ==========

SUM_ROUNDING = 1e-11  # rounding of a sum of bodies, relative to the sum
Cluster = tuple[list[str], list[str]]  # links of A and bodies of B that are the same matter


class Bodies:
    """The comparison of all bodies of two sides; ``find`` says where a mesh file of A is."""

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
            whole = [name for links, _ in group for name in links], [name for _, b in group for name in b]
            if len(wrong) > 1 and self._same(whole):
                names = ", ".join(repr(name) for links, _ in wrong for name in links)
                self.notes.append(
                    f"mass is distributed differently over {names}, which are fixed to each other"
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
        clusters: dict[str, Cluster] = {}
        for link in self.a:
            home = self.pairing.home.get(link)
            if home is not None and not self.b[home].static and not self.a[link].static:
                bodies = [home, *self.pairing.beside.get(home, ())]
                moving = [name for name in bodies if not self.b[name].static]
                clusters.setdefault(home, ([], moving))[0].append(link)
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

    def _of(self, *links: str) -> Rigid:
        """Links of A as one body in B's world."""
        return sum((_rigid(self.a[link]).at(self._place(link)) for link in links), NO_MASS)

    def _sum(self, cluster: Cluster) -> tuple[Rigid, Rigid]:
        bodies = (self.b[name] for name in cluster[1])
        return self._of(*cluster[0]), sum((_rigid(body).at(body.pose) for body in bodies), NO_MASS)

    def _same(self, cluster: Cluster) -> bool:
        ours, theirs = self._sum(cluster)
        # About A's centre of mass: distances from the world's origin would hide small ones.
        here = Placement(position=-ours.com)
        size = Rigid(ours.mass, ours.com * 0.0, ours.inertia).size
        reach = max((float(abs(self.a[link].com).max()) for link in cluster[0]), default=0.0)
        slack = Slack(self.tolerance, length=self.tolerance * max(reach, size), inertia=0.0)
        return slack.same(ours.at(here), theirs.at(here))

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
            rougher = slack.roundings(total, theirs)
            scaled = next(filter(None, (scale_causes(total, theirs, each) for each in rougher)), [])
            whole = [found for found in scaled if "inertia are" in found[1]]
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
        left = self._of(*(link for link in links if link not in dict(missing)))
        slack = self._slack(total, len(links))
        if not any(each.same(left, theirs) for each in slack.roundings(total, theirs)):
            return []
        told = []
        for link, joint in missing:
            text = f"{_merging(joint)}: {number(self.a[link].mass)} kg"
            finding = Finding("fixed-link-dropped", "link", link, self.a[link].line, text)
            told.append((finding, [("fixed-link-dropped", text)]))
        return told

    def _slack(self, total: Rigid, links: int) -> Slack:
        size = max(total.size, 1e-6)
        length = SUM_ROUNDING * size
        if links == 1:
            return Slack(self.tolerance, 0.0, length, SUM_ROUNDING * abs(total.mass) * size**2 * 1e-2)
        mass = SUM_ROUNDING * total.mass
        return Slack(self.tolerance, mass, length, mass * size**2)

    def _explained(self, link: str, links: list[str], total: Rigid, theirs: Rigid) -> list[Found]:
        """The causes if this link alone is to be the reason."""
        body, place = self.a[link], self._place(link)
        rest = self._of(*(other for other in links if other != link))
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
                text = f"B merges it into {joint.parent!r} {how} (line {joint.line})"
                found = [f for f in found if f[0] not in WEAK_CAUSES]
                found.append(("fixed-link-merged-wrongly", text))
        return found

    def _added(self, link: str, parent: str, links: list[str], theirs: Rigid, total: Rigid) -> str:
        """How B adds the link to its parent, if it does so wrongly; "" if that is not the difference."""
        rest = self._of(*(other for other in links if other not in (link, parent)))
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
            parts = (
                by_link[link][0].body.at(self._place(link)) if link in by_link else self._of(link)
                for link in links
            )
            sum_ = sum(parts, NO_MASS)
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


def _rigid(body: DescribedBody) -> Rigid:
    return Rigid(body.mass, body.com, body.inertia)


def _rank(found: list[Found]) -> int:
    return 1 if not found or found[0][0] in WEAK_CAUSES else 0


def _values(body: Rigid) -> dict[str, object]:
    return {"mass": body.mass, "com": body.com.tolist(), "inertia": body.inertia.tolist()}


# ---- What goes wrong when a link behind a fixed joint is merged into its parent: candidates for B's body


def merge_candidates(
    body: DescribedBody, joint: DescribedJoint, parent_in_child: Placement
) -> Iterator[Candidate]:
    """The link at a wrong pose; ``parent_in_child`` is the pose of the parent link in the link's frame."""
    assert joint.written is not None
    own, origin = _rigid(body), joint.written.origin
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
    """The link ``own`` added wrongly to its parent ``a``, in whose axes its pose is: words for it, and the
    sum.
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


# ==== Collision shapes of B beside those of A: scale, size, place, kind ===========================

READ_BY_MUJOCO = (".stl", ".obj", ".msh")

QUARTER_TURN_TOLERANCE = 1e-2  # how far a box may be from quarter turns that exchange its edges
OTHER_MESH_THRESHOLD = 1e-2  # relative difference of bounding boxes of two different meshes
OTHER_KIND_COST, NEARBY_COST = 4.0, 0.05  # of pairing shapes of two kinds, and how far away they may be
Placed = tuple[str, DescribedShape, Placement]  # body, shape, and the shape's pose in A's world


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

        def compared(body: DescribedBody) -> list[DescribedShape]:
            known = (shape for shape in body.collisions if meshes or shape.kind != "mesh")
            return [shape for shape in known if min(map(abs, shape.size), default=1.0) > 0.0]

        for home, those in self.pairing.links_of().items():
            ours = [
                (link, shape, self.a.bodies[link].pose @ shape.pose)
                for link in those
                for shape in compared(self.a.bodies[link])
            ]
            # The map of the link that the body is called after; the others are fixed to it.
            main = next((n for n in those if self.pairing.direct.get(n, ("",))[0] == home), those[0])
            theirs = [
                (home, shape, self.maps[main] @ each.pose @ shape.pose)
                for each in (self.b.bodies[name] for name in (home, *self.pairing.beside.get(home, ())))
                for shape in compared(each)
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
        beside = Path(self.b.file).parent / b.file
        ours = self._bounds(self.find(a.file))
        theirs = self._bounds(beside if beside.is_file() else self.find(b.file))
        if ours is None or theirs is None:
            return False
        return float(np.abs(ours - theirs).max()) > OTHER_MESH_THRESHOLD * float(np.ptp(ours, axis=0).max())

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
    if not np.array_equal(near @ near.T, np.eye(3)) or np.abs(turn - near).max() > QUARTER_TURN_TOLERANCE:
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
        S = np.eye(3)
        S[:, 2] += same * w - z
        return Placement(np.eye(3), here.position), Placement(S, there.position)
    if a.kind == "box":
        turn = here.rotation.T @ there.rotation
        if float(np.abs(np.abs(turn) - np.eye(3)).max()) < 1e-4:  # half turns about its axes
            return Placement(np.abs(turn), here.position), Placement(np.eye(3), there.position)
    return here, there


# ==== Joints of B beside those of A: kind, axis, limits, passive forces, mimic laws ===============

AXIS_TOLERANCE = 1e-4  # angle between two axes that rounding of the file may make [rad]


def joint_findings(
    pairing: Pairing, alignment: Alignment, tolerance: float, size: float
) -> Iterator[Finding]:
    """One finding for each property of a joint that differs; misplacements are told by the alignment.

    ``tolerance`` is the largest relative difference that counts as equal, ``size`` that of the robot [m].
    """
    maps = alignment.maps
    placed = {finding.name for finding in alignment.findings}
    for joint in pairing.a.side.movable:
        other = pairing.joints.get(joint.name)
        if other is None:
            yield _absent(joint, pairing)
            continue
        R = maps[joint.child].rotation
        axis_also: list[str] = []
        for cause, text in _one_joint(joint, other, R, pairing, tolerance, axis_also):
            also = tuple(axis_also) if cause.startswith("axis-") and cause != "axis-length" else ()
            yield Finding(cause, "joint", joint.name, _line(joint, cause), text, also)
        if joint.name not in placed and joint.kind == other.kind:
            for cause, text in _anchor(joint, other, maps[joint.child], tolerance, size):
                yield Finding(cause, "joint", joint.name, _line(joint, cause), text)
    yield from _extra(pairing)


def _line(joint: DescribedJoint, cause: str) -> int:
    written = joint.written
    if written is None:
        return 0
    part = cause.split("-")[0]
    if part == "axis":
        return written.axis_line
    if part in ("limits", "effort", "velocity") and written.limit is not None:
        return written.limit.line
    if part in ("damping", "friction", "armature") and written.dynamics is not None:
        return written.dynamics.line
    if part == "mimic" and written.mimic is not None:
        return written.mimic.line
    return written.line


def _absent(joint: DescribedJoint, pairing: Pairing) -> Finding:
    child, parent = pairing.home.get(joint.child), pairing.home.get(joint.parent)
    if child is not None and parent is not None and pairing.b.group[child] == pairing.b.group[parent]:
        text = f"B has it fixed; A's is {joint.kind}"
        return Finding("joint-welded", "joint", joint.name, joint.line, text)
    return Finding("joint-missing", "joint", joint.name, joint.line, "B has no such joint")


def _extra(pairing: Pairing) -> Iterator[Finding]:
    taken = {id(joint) for joint in pairing.joints.values()}
    links = pairing.links_of()
    for joint in pairing.b.side.movable:
        if id(joint) in taken:
            continue
        link = next((name for name in links.get(joint.child, []) if name in pairing.direct), None)
        ours = pairing.a.into.get(link) if link is not None else None
        if ours is not None and not ours.moves:
            yield Finding("joint-freed", "joint", ours.name, ours.line, f"fixed in A, {joint.kind} in B")
        else:
            yield Finding("joint-added", "joint", joint.name, 0, f"only B has it; it is {joint.kind}")


def _one_joint(
    a: DescribedJoint, b: DescribedJoint, R: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    if a.kind != b.kind:
        yield "joint-type", f"{b.kind} in B, {a.kind} in A"
        return
    flipped, negated = False, _limits_are_negated(a, b, tolerance)
    if a.kind in ("revolute", "prismatic", "planar"):
        for found in _axis(a, R @ b.axis, pairing, tolerance, also):
            flipped = found[0] == "axis-flipped"
            middle = (a.lower or 0.0) + (a.upper or 0.0)  # NaN, never larger, without limits
            if flipped and negated and abs(middle) > tolerance:
                found = (found[0], found[1] + "; its limits are negated too: q of B is -q of A")
            yield found
    if a.written is not None and b.written is not None and a.written.has_axis:
        ours, theirs = math.hypot(*a.written.axis), math.hypot(*b.written.axis)
        if abs(theirs - ours) > 1e-3 * max(ours, theirs):
            text = (
                f"B's axis has length {number(theirs)} (its line {b.written.axis_line}), A's {number(ours)}"
            )
            yield "axis-length", f"{text}: not every reader normalises"
    if not (flipped and negated):
        yield from limit_causes(a, b, pairing.b.side.format, tolerance)
    yield from value_causes(a, b, tolerance)
    if b.stiffness and not a.stiffness:
        yield "spring-added", f"B has a spring of {number(b.stiffness)} in it; A has none"


def _anchor(
    a: DescribedJoint, b: DescribedJoint, lay: Placement, tolerance: float, size: float
) -> Iterator[Found]:
    """Whether B's joint turns about another line or point than A's, although B's child link is where A's is.

    Formats other than URDF place a joint apart from its child's frame. Lines that are not parallel are told
    by their axes.
    """
    off = lay.rotation @ b.anchor + lay.position - a.anchor
    if a.kind == "revolute":
        if float(np.linalg.norm(np.cross(lay.rotation @ b.axis, a.axis))) > AXIS_TOLERANCE:
            return
        off = np.cross(off, a.axis)
    elif a.kind != "spherical":  # a slide is everywhere the same, and free bodies have no anchor
        return
    far = float(np.linalg.norm(off))
    if far <= 10 * tolerance * size:
        return
    if far <= ROUNDING_TOLERANCE * size:
        yield "rounded", "B's anchor is A's rounded"
        return
    what = "an axis" if a.kind == "revolute" else "a point"
    yield (
        "origin-differs",
        f"B turns it about {what} {number(far * 1e3)} mm away from A's; no known cause fits",
    )


def _limits_are_negated(a: DescribedJoint, b: DescribedJoint, tolerance: float) -> bool:
    if a.lower is None or b.lower is None or a.upper is None or b.upper is None:
        return False
    pairs = (-a.lower, b.upper), (-a.upper, b.lower)
    return all(x == y or abs(x - y) <= tolerance * max(1.0, abs(x)) for x, y in pairs)


def _axis(
    a: DescribedJoint, axis: np.ndarray, pairing: Pairing, tolerance: float, also: list[str]
) -> Iterator[Found]:
    """Why B's axis, turned into A's world, is not A's; other causes of the same go to ``also``."""
    off = float(np.linalg.norm(axis - a.axis))
    if off <= 10 * tolerance or (a.kind == "planar" and np.linalg.norm(axis + a.axis) <= 10 * tolerance):
        return
    line = a.written.axis_line if a.written else 0
    same: list[Found] = []
    for allowed in (10 * tolerance, AXIS_TOLERANCE):
        if not same and (allowed < AXIS_TOLERANCE or off > CAUSE_THRESHOLD * AXIS_TOLERANCE):
            same = [
                (cause, text)
                for cause, text, candidate in _axes(a, pairing)
                if float(np.linalg.norm(axis - candidate)) <= allowed
            ]
    if same:
        cause, text = same[0]
        also += dict.fromkeys(other for other, _ in same[1:] if other != cause)
        yield cause, f"B's axis is A's of line {line} {text}" if cause != "axis-default" else text
        return
    if off <= AXIS_TOLERANCE:
        yield "rounded", "B's axis is A's rounded"
        return
    angle = math.degrees(math.acos(max(-1.0, min(1.0, float(axis @ a.axis)))))
    yield "axis-differs", f"B's axis is {number(angle)} deg from A's; no known cause fits"


def _axes(a: DescribedJoint, pairing: Pairing) -> Iterator[tuple[str, str, np.ndarray]]:
    yield "axis-flipped", "negated", -a.axis
    if a.written is None:
        return
    bodies = pairing.a.side.bodies
    child, parent = bodies[a.child].pose.rotation, bodies[a.parent].pose.rotation
    own = np.array(a.written.axis) / (math.hypot(*a.written.axis) or 1.0)
    yield "axis-frame", "taken in the parent's axes", parent @ own
    yield "axis-frame", "turned twice by the joint's origin", child @ parent.T @ child @ own
    yield "axis-frame", "taken in the world's axes", own
    for axis, whose in (((1, 0, 0), "URDF's"), ((0, 0, 1), "MJCF's, SDF's and many programs'")):
        text = (
            f"B's axis is {' '.join(map(str, axis))}, {whose} default, not that of line {a.written.axis_line}"
        )
        yield "axis-default", text, child @ np.array(axis, dtype=float)
    link = bodies[a.child].written
    if link is not None and link.inertial is not None:
        turned = np.asarray(link.inertial.origin.rotation())
        yield "axis-frame", "turned by the link's inertial rotation", child @ turned @ own
        yield "axis-frame", "turned back by the link's inertial rotation", child @ turned.T @ own
    nearest = np.where(np.arange(3) == np.abs(own).argmax(), np.copysign(1.0, own), 0.0)
    yield "axis-snapped", "moved to the nearest of x, y and z", child @ nearest
    for order in ((1, 2, 0), (2, 0, 1), (1, 0, 2), (0, 2, 1), (2, 1, 0)):
        letters = "".join("xyz"[i] for i in order)
        yield "axis-permuted", f"with x, y, z in the order {letters}", child @ own[list(order)]


# ---- Numbers of a joint that differ: limits, effort, velocity, damping, friction, rotor inertia --

DEGREES = 180.0 / math.pi

UNLIMITED_POSITION = 1e6  # a limit from which on a joint is unlimited [rad | m]
UNLIMITED_RATIO = 1e3  # limits that are so many times A's are none


def near(x: float, y: float, tolerance: float) -> bool:
    """Whether two numbers agree, infinities with themselves."""
    finite = math.isfinite(x) and math.isfinite(y)
    return x == y or (finite and abs(x - y) <= tolerance * max(abs(x), abs(y)))


def limit_causes(a: DescribedJoint, b: DescribedJoint, format: str, tolerance: float) -> Iterator[Found]:
    """The cause of different position limits."""
    if a.lower is None or a.upper is None or b.lower is None or b.upper is None:
        return
    if format != "URDF":  # others write very large numbers for no limit
        a, b = (dataclasses.replace(x, lower=_far(x.lower), upper=_far(x.upper)) for x in (a, b))
    assert a.lower is not None and a.upper is not None and b.lower is not None and b.upper is not None
    ours, theirs = (a.lower, a.upper), (b.lower, b.upper)
    reach = max((abs(x) for x in (*ours, *theirs) if math.isfinite(x)), default=1.0)

    def same(x: tuple[float, float], y: tuple[float, float], allowed: float = tolerance) -> bool:
        return all(p == q or abs(p - q) <= allowed * reach for p, q in zip(x, y, strict=True))

    if same(ours, theirs):
        return
    if a.lower == a.upper and not math.isfinite(b.lower) and format != "URDF":
        return  # MuJoCo takes no range of one position
    unit = "rad" if a.kind == "revolute" else "m"
    said = f"{number(b.lower)} .. {number(b.upper)} for {number(a.lower)} .. {number(a.upper)} {unit}"
    if same(ours, theirs, ROUNDING_TOLERANCE):
        yield "rounded", f"B's limits are A's rounded: {said}"
        return
    causes = _range_cause, _range_factor  # any range is some factor of another: that comes last
    for cause, rounding in itertools.product(causes, ROUNDINGS):
        if rounding and same(ours, theirs, CAUSE_THRESHOLD * rounding):
            continue
        found = cause(ours, theirs, a.kind == "revolute", max(tolerance, rounding))
        if found is not None:
            yield found[0], f"{found[1]}: {said}"
            return
    which = [
        w
        for w, x, y in (("lower", a.lower, b.lower), ("upper", a.upper, b.upper))
        if not (x == y or abs(x - y) <= ROUNDING_TOLERANCE * reach)
    ]
    yield "limits-differ", f"B's {' and '.join(which)} limit differ{'s' * (len(which) == 1)}: {said}"


Range = tuple[float, float]


def _range_cause(ours: Range, theirs: Range, turns: bool, tolerance: float) -> Found | None:
    """What makes B's range of A's; None if nothing known does."""

    def is_theirs(lower: float, upper: float) -> bool:
        reach = max((abs(x) for x in (lower, upper, *theirs) if math.isfinite(x)), default=1.0)
        pairs = zip((lower, upper), theirs, strict=True)
        return all(p == q or abs(p - q) <= tolerance * reach for p, q in pairs)

    lower, upper = ours
    unit = "rad" if turns else "m"
    if not any(map(math.isfinite, theirs)):
        return "limits-lost", "B has no limits"
    if not any(map(math.isfinite, ours)):
        return "limits-added", "B has limits, A has none"
    if theirs == (0.0, 0.0):
        return "limits-lost", "B's limits are zero, so that the joint cannot move"
    if turns and is_theirs(lower * DEGREES, upper * DEGREES):
        return "limits-degrees", "B's limits are A's in degrees, read as radians"
    if turns and is_theirs(lower / DEGREES, upper / DEGREES):
        return "limits-degrees", "B's limits are A's radians, read as degrees"
    if is_theirs(upper, lower):
        return "limits-swapped", "B's lower and upper limit are exchanged"
    if is_theirs(-upper, -lower):
        return "limits-negated", "B's limits are A's negated, but not its axis"
    if is_theirs(-lower, -upper):
        return "limits-swapped", "B's limits are A's with the signs exchanged"
    if not all(map(math.isfinite, (*ours, *theirs))):
        return None
    if turns and any(is_theirs(-k * math.pi, k * math.pi) for k in (1.0, 2.0, 4.0)):
        return "limits-lost", "B's limits are whole turns, a default"
    reach = max(map(abs, (*ours, *theirs)))
    if reach >= UNLIMITED_RATIO * max(map(abs, ours)) and -theirs[0] == theirs[1]:
        return "limits-lost", "B's limits are so wide that they have no effect"
    shift = theirs[0] - lower
    if abs(theirs[1] - upper - shift) <= tolerance * reach:
        return "limits-shifted", f"B's limits are A's plus {number(shift)} {unit}"
    return None


def _range_factor(ours: Range, theirs: Range, _: bool, tolerance: float) -> Found | None:
    if not all(map(math.isfinite, (*ours, *theirs))):
        return None
    ratios = [y / x for x, y in zip(ours, theirs, strict=True) if x]
    zeros = all(y == 0.0 for x, y in zip(ours, theirs, strict=True) if not x)
    if zeros and ratios and all(near(ratios[0], ratio, 10 * tolerance) for ratio in ratios):
        k = ratios[0]
        if len(ratios) == 2 or unit_of(k):  # one number alone is any other number times something
            said = factor(k) if "metres" in unit_of(k) else number(k)
            return "limits-scaled", f"B's limits are A's times {said}"
    return None


def _far(x: float | None) -> float | None:
    return math.copysign(math.inf, x) if x is not None and abs(x) >= UNLIMITED_POSITION else x


def value_causes(a: DescribedJoint, b: DescribedJoint, tolerance: float) -> Iterator[Found]:
    """The causes of different effort, velocity, damping, friction and armature."""
    turns = a.kind == "revolute"
    (least, effort), velocity = _efforts(a), _limit(a.velocity)
    (their_least, their_effort), their_velocity = _efforts(b), _limit(b.velocity)
    if _exchanged((effort, velocity), (their_effort, their_velocity), tolerance):
        yield "effort-velocity-swapped", "B's limits of effort and velocity are exchanged"
    else:
        yield from _effort((least, effort), (their_least, their_effort), tolerance)
        yield from _value("velocity", velocity, their_velocity, math.inf, turns, tolerance)

    if _exchanged((a.damping, a.friction), (b.damping, b.friction), tolerance):
        yield "damping-friction-swapped", "B's damping and friction are exchanged"
    else:
        yield from _value("damping", a.damping, b.damping, 0.0, turns, tolerance)
        yield from _value("friction", a.friction, b.friction, 0.0, False, tolerance)
    yield from _value("armature", a.armature, b.armature, 0.0, False, tolerance)


Numbers = tuple[float | None, float | None]  # two numbers of a joint, None where not known


def _exchanged(a: Numbers, b: Numbers, tolerance: float) -> bool:
    """Whether two unlike numbers of A are B's in the other order."""
    (x, y), (p, q) = a, b
    if x is None or y is None or p is None or q is None:
        return False
    return not near(x, y, tolerance) and near(x, q, tolerance) and near(y, p, tolerance)


def _efforts(joint: DescribedJoint) -> Numbers:
    """Least and largest effort."""
    least, most = joint.effort_lower, joint.effort
    if least is not None and (least or most):
        return least, most  # of a range only one end may be zero
    most = _limit(most)
    return None if most is None else -most, most


def _effort(a: Numbers, b: Numbers, tolerance: float) -> Iterator[Found]:
    """The causes of different ranges of effort: of both ends alike, or of either."""
    if None in (*a, *b):
        return
    (least, most), (their_least, their_most) = a, b
    assert least is not None and most is not None and their_least is not None and their_most is not None
    up, down = (
        list(_value("effort", x, y, math.inf, False, tolerance))
        for x, y in ((most, their_most), (-least, -their_least))
    )
    if not up and not down:
        return
    one_factor = near(their_least * most, their_most * least, tolerance)
    lost = math.isinf(their_most) and math.isinf(their_least)
    causes = [[cause for cause, _ in found] for found in (up, down)]
    if causes[0] == causes[1] and (one_factor or lost or causes[0] == ["rounded"]):
        yield from up
        return
    if {cause for cause, _ in (*up, *down)} == {"rounded"}:
        yield (*up, *down)[0]
        return
    ours, theirs = (f"{number(x)} .. {number(y)}" for x, y in ((least, most), (their_least, their_most)))
    yield "effort-range", f"B's range of effort is another: {theirs} for {ours}"


def _limit(x: float | None) -> float | None:
    """Exporters write 0 for an effort or velocity limit that they do not know."""
    return math.inf if x == 0.0 else x


def _value(
    what: str, a: float | None, b: float | None, none: float, angular: bool, tolerance: float
) -> Iterator[Found]:
    if a is None or b is None or near(a, b, tolerance):
        return
    name = {"effort": "limit of effort", "velocity": "limit of velocity", "armature": "rotor inertia"}.get(
        what, what
    )
    said = f"{number(b)} for {number(a)}"
    if b == none:
        yield f"{what}-lost", f"B has no {name}; A's is {number(a)}"
    elif a == none:
        yield f"{what}-added", f"B has a {name} of {number(b)}; A has none"
    elif angular and any(near(b, a * k, 10 * tolerance) for k in (DEGREES, 1.0 / DEGREES)):
        way = "in degrees, read as radians" if abs(b) > abs(a) else "in radians, read as degrees"
        yield f"{what}-degrees", f"B's {name} is A's {way}: {said}"
    elif near(a, b, ROUNDING_TOLERANCE):
        yield "rounded", f"B's {name} is A's rounded: {said}"
    else:
        yield f"{what}-scaled", f"B's {name} is A's times {factor(b / a)}: {said}"


# ---- Mimic laws: dropped, changed, or at work together with an actuator --------------------------


def mimic_findings(pairing: Pairing, tolerance: float) -> Iterator[Finding]:
    """One finding for each joint whose law differs, and each relation that only B has.

    Straight laws are linear equations between joints. A law is the same if it follows from the other side's
    equations, whichever of them is written, in which direction, through which other joints or tendon.
    """
    a, b = pairing.a.side, pairing.b.side
    back = {theirs.name: mine for mine, theirs in pairing.joints.items()}
    ours, theirs = Couplings(a, {}, tolerance), Couplings(b, back, tolerance)
    ends = {joint.name: joint for joint in a.joints}, {joint.name: joint for joint in b.joints}
    told = set()
    for joint in a.movable:
        other = pairing.joints.get(joint.name)
        if other is None or joint.laws is None or other.laws is None:
            continue
        found = [*_driven_twice(joint, other)]
        curved = [law for law in other.laws if _law_of_leader(law, ends[1]).curve]
        if curved:
            found.append(("mimic-curved", f"B's law is no straight line: {_power_series(curved[0])}"))
        elif not (theirs.hold(ours.of(joint)) and ours.hold(theirs.of(other))):
            found += _one_law(joint, other, *ends, back, theirs.relations, tolerance)
        for cause, text in found:
            told.add(joint.name)
            yield Finding(cause, "joint", joint.name, _line(joint, "mimic"), text)
    for relation in b.relations:
        names = [back.get(name, name) for name in relation.factors]
        if not ours.hold([theirs.equation(relation.factors, relation.constant)]) and not told & set(names):
            text = f"{relation.name or 'a tendon'} of B couples {' and '.join(names)}; A does not"
            yield Finding("mimic-added", "joint", names[0], 0, text)


Equation = tuple[dict[str, float], float]  # factors of joints, by A's names, and the constant that the sum is


class Couplings:
    """The linear equations between the joints of a side; ``names`` gives A's name for the side's own."""

    def __init__(self, side: Description, names: dict[str, str], tolerance: float) -> None:
        self.names, self.tolerance, self.relations = names, tolerance, side.relations
        self.fixed = {joint.name for joint in side.joints if not joint.moves and joint.name}
        self.equations = [equation for joint in side.joints for equation in self.of(joint)]
        self.equations += [self.equation(each.factors, each.constant) for each in side.relations]

    def of(self, joint: DescribedJoint) -> list[Equation]:
        """The equations that the joint's straight laws are."""
        return [
            self.equation({joint.name: 1.0, law.leader: -law.multiplier}, law.offset)
            for law in joint.laws or ()
            if not law.curve
        ]

    def equation(self, factors: dict[str, float], constant: float) -> Equation:
        """An equation with A's names; fixed joints stand at zero."""
        kept = {n: x for n, x in factors.items() if n and x and n not in self.fixed}
        return {self.names.get(n, n): x for n, x in kept.items()}, constant

    def hold(self, equations: list[Equation]) -> bool:
        """Whether equations follow from those of this side."""
        return all(self._follows(*equation) for equation in equations)

    def _follows(self, factors: dict[str, float], constant: float) -> bool:
        names = sorted({name for equation in (*self.equations, (factors, 0.0)) for name in equation[0]})
        if not self.equations:
            return False
        rows = np.array([[own.get(name, 0.0) for name in names] for own, _ in self.equations])
        sums = np.array([sum_ for _, sum_ in self.equations])
        wanted = np.array([factors.get(name, 0.0) for name in names])
        weights = np.linalg.lstsq(rows.T, wanted, rcond=None)[0]
        off = np.abs(weights @ rows - wanted)
        ours = float(weights @ sums)
        # 2: an equation and its reverse are each within the tolerance of their own multiplier.
        straight = bool(
            (off <= 2.0 * self.tolerance * np.abs(wanted) + 1e-12 * np.abs(wanted).max(initial=0.0)).all()
        )
        return straight and abs(ours - constant) <= 2.0 * self.tolerance * max(abs(constant), 1e-6)


def _power_series(law: Law) -> str:
    terms = enumerate((law.offset, law.multiplier, *law.curve))
    return " + ".join(f"{number(x)} q^{k}" if k > 1 else f"{number(x)} q" if k else number(x)
                      for k, x in terms if x)  # fmt: skip


def _driven_twice(a: DescribedJoint, b: DescribedJoint) -> Iterator[Found]:
    assert b.laws is not None
    if a.laws and b.laws:
        if len(b.laws) > 1:
            yield "mimic-twice", f"B drives it twice: {len(b.laws)} mimic laws act on it"
        elif b.drives and not a.drives:
            yield "mimic-twice", "B drives it twice: by its mimic law and by an actuator"


def _one_law(
    a: DescribedJoint,
    b: DescribedJoint,
    ours: dict[str, DescribedJoint],
    theirs: dict[str, DescribedJoint],
    back: dict[str, str],
    relations: list[Relation],
    tolerance: float,
) -> Iterator[Found]:
    """Why laws that do not follow from each other differ."""
    assert a.laws is not None and b.laws is not None
    if not a.laws:
        law = b.laws[0]
        yield "mimic-added", f"B {_follows(law)}; A does not"
        return
    law = a.laws[0]
    direct = b.laws[0] if b.laws else _of_a_tendon(b.name, law.leader, relations, back)
    if direct is None:
        yield "mimic-dropped", f"B has no mimic law; in A it follows {law.leader!r}"
        return
    mine, his = _law_of_leader(law, ours), _law_of_leader(direct, theirs)
    leaders = {back.get(his.leader, his.leader), back.get(direct.leader, direct.leader)}
    if law.leader not in leaders and mine.leader not in leaders:
        yield "mimic-leader", f"B {_follows(direct)}; in A it follows {law.leader!r}"
        return
    same_leader = back.get(direct.leader, direct.leader) == law.leader
    other = direct if same_leader else his
    yield from _law_numbers(law if same_leader else mine, other.multiplier, other.offset, tolerance)


def _follows(law: Law) -> str:
    return f"makes it follow {law.leader!r}" if law.leader else f"holds it at {number(law.offset)}"


def _of_a_tendon(name: str, leader: str, relations: list[Relation], back: dict[str, str]) -> Law | None:
    """The law that a relation of two joints is, where one of them is the leader's counterpart."""
    for relation in relations:
        others = [n for n in relation.factors if n != name]
        own = relation.factors.get(name, 0.0)
        if own and len(others) == 1 and back.get(others[0], others[0]) == leader:
            return Law(others[0], -relation.factors[others[0]] / own, relation.constant / own)
    return None


def _law_numbers(law: Law, k: float, o: float, tolerance: float) -> Iterator[Found]:
    m, off = law.multiplier, law.offset
    if near(k, m, ROUNDING_TOLERANCE) and (near(o, off, ROUNDING_TOLERANCE) or abs(o - off) <= 1e-12):
        yield "rounded", "B's mimic law is A's rounded"
        return
    said = f"{number(k)} for {number(m)}"
    if not near(k, m, tolerance):
        causes = (
            (-m, "mimic-multiplier", "B's multiplier is A's negated"),
            (1.0 / m if m else math.nan, "mimic-inverted", "B's multiplier is the inverse of A's"),
            (m * m, "mimic-twice", "B applies the multiplier twice"),
            (1.0, "mimic-multiplier", "B leaves the multiplier out"),
            (k, "mimic-multiplier", "B's multiplier differs"),
        )
        yield next((cause, f"{text}: {said}") for x, cause, text in causes if near(k, x, tolerance))
    if not near(o, off, tolerance) and abs(o - off) > 1e-12:
        said = f"{number(o)} for {number(off)}"
        how = "B's offset differs"
        if o == 0.0:
            how = "B leaves the offset out"
        elif near(o, -off, tolerance):
            how = "B's offset is A's negated"
        elif any(near(o, off * u, tolerance) for u in (DEGREES, 1.0 / DEGREES)):
            how = "B's offset is A's with degrees for radians"
        yield "mimic-offset", f"{how}: {said}"


def _law_of_leader(law: Law, joints: dict[str, DescribedJoint]) -> Law:
    """The law of the joint at the end of a chain of mimics; a constant where that joint is fixed."""
    seen = set()
    series = np.polynomial.Polynomial([law.offset, law.multiplier, *law.curve])
    leader = law.leader
    while leader in joints and leader not in seen:
        seen.add(leader)
        if not joints[leader].moves:
            leader = ""
            break
        further = joints[leader].laws
        if not further:
            break
        up = further[0]
        series = series(np.polynomial.Polynomial([up.offset, up.multiplier, *up.curve]))
        leader = up.leader
    law = Law.of(leader, series.trim())
    return law if leader and (law.multiplier or law.curve) else Law("", 0.0, law.offset)
