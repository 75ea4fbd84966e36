"""Shapes as arrays, made without the package's own builder, and a kernel of the narrow phase alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from robokit.collision.fields import (
    CONE,
    CYLINDER,
    ELLIPSOID,
    MEMORY,
    PLANE,
    POINT,
    POLYTOPE,
    POSES,
    SEGMENT,
    SHAPES,
)
from robokit.collision.narrow import narrow
from robokit.collision.support import pair_number
from robokit.engine.loops.fields import kernel_of, real, whole
from robokit.spatial.control_flow import for_range

FOUND = [
    whole("pair_shapes", "n_pairs", 2),
    real("far", 1),
    whole("found", 1, role="out"),
    whole("pair", "room", role="out"),
    whole("feature", "room", role="out"),
    real("place", "room", 3, role="out"),
    real("gap", "room", role="out"),
    real("normal", "room", 3, role="out"),
]


def _all(x: Any) -> None:
    def pair(p: Any) -> None:
        def add(feature: Any, place: Any, gap: Any, n: Any) -> None:
            i = x.found[0]
            x.found[0] = i + 1
            x.pair[i], x.feature[i], x.gap[i] = p, feature, gap
            for k in range(3):
                x.place[i, k], x.normal[i, k] = place[k], n[k]

        shapes = x.pair_shapes[p, 0], x.pair_shapes[p, 1]
        narrow(x, shapes, x.far[0], x.near_direction[p], x.near_corners[p], add)

    for_range(x.n_pairs, pair)


NARROW = kernel_of("narrow_alone", _all, [*SHAPES, *POSES, *MEMORY, *FOUND])


def numbered(arrays: Mapping[str, np.ndarray]) -> dict[int, tuple[int, int]]:
    """Pairs of shapes that may touch, by their number, ascending; of the arrays PAIRS."""
    x, found = SimpleNamespace(shape_pairs=arrays["shape_pairs"]), {}
    for a, (first, count) in enumerate(arrays["shape_runs"].tolist()):
        for start, end in arrays["runs"][first : first + count].tolist():
            for b in range(start, end):
                number = int(pair_number(x, a, b))
                assert number not in found
                found[number] = a, b
    return dict(sorted(found.items()))


def sphere(radius: float) -> dict:
    return {"kind": POINT, "corners": np.zeros((1, 3)), "radius": radius}


def capsule(radius: float, half: float) -> dict:
    return {"kind": SEGMENT, "corners": np.array([[0, 0, -half], [0, 0, half]]), "radius": radius}


def box(*half: float) -> dict:
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    return hull(corners)


def cylinder(radius: float, half: float) -> dict:
    return {"kind": CYLINDER, "size": (radius, half, 0.0)}


def cone(radius: float, half: float) -> dict:
    return {"kind": CONE, "size": (radius, half, 0.0)}


def ellipsoid(*axes: float) -> dict:
    return {"kind": ELLIPSOID, "size": axes}


def plane() -> dict:
    return {"kind": PLANE}


def hull(points: np.ndarray) -> dict:
    """With flat faces of as many corners as they have."""
    points = np.asarray(points, float)
    found = ConvexHull(points)
    used = np.sort(found.vertices)
    number = {int(v): k for k, v in enumerate(used)}
    groups: list[list[Any]] = []
    for triple, equation in zip(found.simplices, found.equations, strict=True):
        for group in groups:
            if np.allclose(group[0], equation, atol=1e-9 * np.ptp(points)):
                group[1].update(number[int(v)] for v in triple)
                break
        else:
            groups.append([equation, {number[int(v)] for v in triple}])
    corners, faces = points[used], []
    for equation, members in groups:
        n, p = equation[:3], corners[sorted(members)]
        t = np.cross(n, [1, 0, 0] if abs(n[0]) < 0.7 else [0, 1, 0])
        q = p - p.mean(0)
        order = np.argsort(np.arctan2(q @ np.cross(n, t), q @ t))
        faces.append((n, [sorted(members)[k] for k in order]))
    return {"kind": POLYTOPE, "corners": corners, "faces": faces}


def flat(corners: np.ndarray, faces: list) -> dict:
    """A degenerate hull, whose faces (normal, corners) are given."""
    return {"kind": POLYTOPE, "corners": np.asarray(corners, float), "faces": faces}


def arrays(shapes: list[dict], pairs: list[tuple[int, int]], poses: list | None = None) -> dict:
    """Each shape on a body of its own, with a pose (R, p). What is one object in shapes is there once."""
    n, known = len(shapes), dict[int, int]()
    poses = poses or [(np.eye(3), np.zeros(3))] * n
    corners, links, neighbours, normals, face_corners = [], [], [], [], []
    polygon: list[int] = []
    shape_corners, shape_faces = [], []
    for k, s in enumerate(shapes):
        if (first := known.setdefault(id(s), k)) < k:
            shape_corners.append(shape_corners[first])
            shape_faces.append(shape_faces[first])
            continue
        own = s.get("corners", np.zeros((0, 3)))
        shape_corners.append((len(corners), len(own)))
        near: list[set[int]] = [set() for _ in own]
        shape_faces.append((len(normals), len(s.get("faces", ()))))
        for normal, members in s.get("faces", ()):
            normals.append(normal)
            face_corners.append((len(polygon), len(members)))
            polygon += members
            for i, j in zip(members, [*members[1:], members[0]], strict=True):
                near[i].add(j), near[j].add(i)
        if not s.get("faces"):
            near = [{j for j in range(len(own)) if j != i} for i in range(len(own))]
        for each in near:
            links.append((len(neighbours), len(each)))
            neighbours += sorted(each)
        corners += list(own)
    identity = np.r_[np.eye(3).ravel(), 0, 0, 0]

    def table(rows: list, *shape: int, dtype: Any = float) -> np.ndarray:
        return np.array(rows, dtype).reshape(-1, *shape) if rows else np.zeros((1, *shape), dtype)

    return {
        "shape_body": np.arange(n, dtype=np.int32),
        "shape_kind": np.array([s["kind"] for s in shapes], np.int32),
        "shape_placement": np.tile(identity, (n, 1)),
        "shape_radius": np.array([s.get("radius", 0.0) for s in shapes]),
        "shape_size": np.array([s.get("size", (0.0, 0.0, 0.0)) for s in shapes], float),
        "shape_centre": np.zeros((n, 3)),
        "shape_bound": np.full(n, np.inf),
        "shape_corners": np.array(shape_corners, np.int32),
        "shape_faces": np.array(shape_faces, np.int32),
        "corners": table(corners, 3),
        "corner_links": table(links, 2, dtype=np.int32),
        "neighbours": table(neighbours, dtype=np.int32),
        "face_normal": table(normals, 3),
        "face_corners": table(face_corners, 2, dtype=np.int32),
        "polygon": table(polygon, dtype=np.int32),
        "surface_velocity": np.zeros((n, 6)),
        "shape_beside": np.zeros((n, 3), np.int32),
        "beside": np.zeros(1, np.int32),
        "shape_starts": np.full(n, -1, np.int32),
        "starts": np.zeros(1, np.int32),
        "corner_climbs": np.zeros((max(len(corners), 1), 2), np.int32),
        "climbs": np.zeros(1, np.int32),
        "heights": np.zeros(1),
        "field": np.ones(2, np.int32),
        "pair_shapes": np.array(pairs, np.int32).reshape(-1, 2),
        "R": np.array([np.asarray(R).ravel() for R, _ in poses]),
        "p": np.array([p for _, p in poses], float),
        "V": np.zeros((n, 6)),
        "seat": np.zeros((n, 3)),
        "origin": np.zeros(3),
        "near_pair": np.arange(len(pairs), dtype=np.int32),
        "near_direction": np.zeros((len(pairs), 3)),
        "near_corners": np.full((len(pairs), 6), -1, np.int32),
    }


def contacts_of(given: dict, far: float = 1e9, room: int = 64, **options: Any) -> dict:
    """All contacts of arrays: pair, feature, place, gap, normal; and the last directions."""
    found = NARROW(**given, far=np.array([far]), room=room, **options)
    m = int(found["found"][0])
    assert m <= room
    return {name: found[name][:m] for name in ("pair", "feature", "place", "gap", "normal")} | {
        "direction": found["near_direction"]
    }


def contacts(
    a: dict, b: dict, pose_a: Any, pose_b: Any, far: float = 1e9, direction: Any = None, **options: Any
) -> dict:
    """The contacts of two shapes, as :func:`contacts_of`."""
    given = arrays([a, b], [(0, 1)], [pose_a, pose_b])
    if direction is not None:
        given["near_direction"] = np.array([direction], float)
    return contacts_of(given, far, **options)


@cache
def turned(seed: int) -> np.ndarray:
    """A random rotation."""
    Q, R = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q if np.linalg.det(Q) > 0 else -Q
