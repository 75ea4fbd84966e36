"""Collision shapes of B beside those of A: scale, size, place, kind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from robokit.formats.description import DescribedShape
from robokit.model.geometry import Placement
from robokit.parity.inertials import LARGEST_MESH_FILE, ROUNDING_TOLERANCE, Finder, factor, number
from robokit.parity.matching import Pairing, close
from robokit.parity.verdict import Finding

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
