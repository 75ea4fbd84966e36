"""The narrow phase beside coal on random pairs of all kinds, from deep overlap to well apart."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from scenes import arrays, box, capsule, cone, contacts_of, cylinder, ellipsoid, hull, sphere
from scipy.spatial import ConvexHull
from test_narrow import separation

try:
    import coal
except ModuleNotFoundError:  # the light suite has none, and runs nothing of this file
    coal = None

pytestmark = [pytest.mark.parity, pytest.mark.slow]

PAIRS = 5000  # of each of the two tests


def coal_hull(corners: np.ndarray) -> Any:
    points, triangles, found = coal.StdVec_Vec3s(), coal.StdVec_Triangle(), ConvexHull(corners)
    for p in corners:
        points.append(p)
    for (i, j, k), (*n, _) in zip(found.simplices.tolist(), found.equations, strict=True):
        outward = np.cross(corners[j] - corners[i], corners[k] - corners[i]) @ n > 0
        triangles.append(coal.Triangle(i, j, k) if outward else coal.Triangle(i, k, j))
    return coal.Convex(points, triangles)


def shape(rng: np.random.Generator, kind: str) -> tuple[dict, Any]:
    a, b, c = rng.uniform(0.2, 1, 3)
    if kind == "hull":
        p = rng.normal(size=(int(rng.choice([8, 16, 32, 64])), 3))
        made = hull(p / np.linalg.norm(p, axis=1)[:, None] * [a, b, c])
        return made, coal_hull(made["corners"])
    return {
        "sphere": lambda: (sphere(a), coal.Sphere(a)),
        "capsule": lambda: (capsule(a / 2, b), coal.Capsule(a / 2, 2 * b)),
        "box": lambda: (box(a, b, c), coal.Box(2 * a, 2 * b, 2 * c)),
        "cylinder": lambda: (cylinder(a, b), coal.Cylinder(a, 2 * b)),
        "cone": lambda: (cone(a, b), coal.Cone(a, 2 * b)),
        "ellipsoid": lambda: (ellipsoid(a, b, c), coal.Ellipsoid(a, b, c)),
    }[kind]()


def rotation(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    w, x, y, z = q / np.linalg.norm(q)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


def compared(kinds: list[str], seed: int) -> list[tuple[Any, ...]]:
    """Shapes, poses, coal's distance and normal, ours."""
    rng = np.random.default_rng(seed)
    pool = [shape(rng, kinds[k % len(kinds)]) for k in range(70)]
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 400
    pairs, poses, theirs = [], [], []
    for _ in range(PAIRS):
        (a, coal_a), (b, coal_b) = (pool[k] for k in rng.integers(0, len(pool), 2))
        d, p = rng.normal(size=3), rng.normal(size=3)
        P, Q = (rotation(rng), p), (rotation(rng), p + d * rng.uniform(0, 2.5) / np.linalg.norm(d))
        result = coal.DistanceResult()
        gap = coal.distance(coal_a, coal.Transform3s(*P), coal_b, coal.Transform3s(*Q), request, result)
        theirs.append((gap, np.array(result.normal)))
        pairs.append((a, b))
        poses.append((P, Q))
    numbers = np.arange(2 * PAIRS).reshape(-1, 2)
    ours = contacts_of(arrays([*chain(*pairs)], numbers, [*chain(*poses)]), 1e9, 16 * PAIRS)
    nearest_last = np.lexsort((-ours["gap"], ours["pair"]))
    nearest = dict(zip(ours["pair"][nearest_last].tolist(), nearest_last.tolist(), strict=True))
    return [
        ((*pairs[k], *poses[k]), *theirs[k], ours["gap"][nearest[k]], ours["normal"][nearest[k]])
        for k in range(PAIRS)
    ]


def test_spheres_capsules_boxes_hulls() -> None:
    found = compared(["sphere", "capsule", "box", "hull", "hull"], 0)
    theirs, ours = np.array([f[1] for f in found]), np.array([f[3] for f in found])
    assert np.abs(theirs - ours).max() < 1e-9
    assert 0.2 < np.mean(theirs < 0) < 0.8
    aligned = np.array([f[2] @ f[4] for f in found])
    # Of two features that are equally deep either may be chosen.
    assert np.mean(aligned > 1 - 1e-9) > 0.999


def test_cylinders_cones_ellipsoids_among_all() -> None:
    """coal misses many of the overlaps of round shapes; so its direction is judged, not its number."""
    kinds = ["cylinder", "cone", "ellipsoid", "cylinder", "box", "hull", "sphere", "capsule"]
    worse = 0
    for pair, theirs, n, ours, m in compared(kinds, 1):
        assert abs(separation(*pair, m) - ours) < 2e-9  # of shapes of up to 2 m
        if np.isfinite(n).all() and np.linalg.norm(n) > 0.5:
            # Nearly round shapes whose centres almost coincide have no nearest face to find in 128 corners.
            assert separation(*pair, n) < ours + (2e-9 if ours > 0 else 2e-8 if ours > -0.3 else 1e-3)
        worse += theirs < ours - 1e-6
        if ours > 0:
            assert theirs < ours + 2e-9
    assert worse > 50
