"""Capsules in place of a convex shape, fitted to its surface.

A convex shape is given by balls of which it is the hull. How far it reaches out of the capsules is looked at
on points of its surface: the distance from the nearest capsule. How far they reach out of it follows from
the support functions, h(d) = max_j (p_j . d + r_j). The first counts COVERED times as much: bodies may seem
a little larger than they are before they may sink into each other. Gauss and Newton's method makes the
largest of these errors small, by sums of powers.

Cost: 10 milliseconds for each capsule that is tried; what was found is kept on disk (body_shapes.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from robokit.sim.collide.hull_surface import corners, directions, edges_and_normals, support, surface

SAMPLES, CHECKS = 300, 1200
"""Points of the surface and as many directions, for the fit and for its errors."""

ROUNDS = 25
MOST_CAPSULES = 3

COVERED = 2.5
"""What a shape reaches out of its capsules counts so much more than what they reach out of it."""

WORTH = 0.012
"""Another capsule must make the error, so counted, smaller by this much [m]."""

EXACT = 1e-9
"""What reaches out of a capsule by no more than this is inside it [m]."""

STUBBY = 0.08
"""A capsule shorter than this part of its radius becomes a sphere."""

EXPONENT = 6.0
"""Sums of so high powers of the errors are made small: nearly their largest."""

WITHIN = 0.3
"""Weight of a surface that lies under that of the other side."""

STRIDE, LONGEST = 0.6, 0.1
"""Part of a Newton step that is made, and its length at most over that of the shape."""


@dataclass(frozen=True)
class CapsuleSet:
    """k capsules; a sphere is one of length 0.

    Attributes:
        start, end: (k, 3) ends of the axes [m].
        radius: (k,) [m].
        missed: how far the shape reaches out of all of them [m].
        added: how far any of them reaches out of the shape [m].
    """

    start: np.ndarray
    end: np.ndarray
    radius: np.ndarray
    missed: float
    added: float

    @property
    def error(self) -> float:
        """That by which sets are compared [m]."""
        return max(COVERED * self.missed, self.added)


def side_of_cylinder(radius: float, length: float) -> CapsuleSet | None:
    """The capsule along z with the side of a cylinder, on which it rolls; None of what is wider than long.

    Its ends are where what they miss of the rims, counted COVERED times, is what they add.
    """
    if length < 2.0 * radius:
        return None
    low, high = 0.0, 1.0  # of how far the ends of the axis are inside, over the radius
    for _ in range(50):
        s = 0.5 * (low + high)
        low, high = (s, high) if COVERED * (math.hypot(1.0, s) - 1.0) < 1.0 - s else (low, s)
    end = np.array([[0.0, 0.0, 0.5 * length - low * radius]])
    missed, added = (math.hypot(1.0, low) - 1.0) * radius, (1.0 - low) * radius
    return CapsuleSet(-end, end, np.array([radius]), missed, added)


def fit_capsules(points: np.ndarray, radii: np.ndarray) -> CapsuleSet:
    """The capsules that stand for the hull of balls: as many as make the error clearly smaller.

    Args:
        points: (n, 3) centres [m].
        radii: (n,) [m]; 0 for corners.
    """
    exact = _one_capsule(points, radii)
    if exact is not None:
        return exact
    rays, d = surface(points, radii, CHECKS), directions(SAMPLES)
    some = np.concatenate([rays[:: CHECKS // SAMPLES], corners(points, radii, SAMPLES)])
    x = np.concatenate([rays, corners(points, radii, CHECKS)])
    wanted = support(points, radii, d)

    def fitted(k: int) -> CapsuleSet:
        found = [_descended(some, d, wanted, *guess) for guess in _guesses(some, k)]
        _, ends, r = min(found, key=lambda each: each[0])
        start, end = ends[0::2].copy(), ends[1::2].copy()
        stubby = np.linalg.norm(end - start, axis=1) < STUBBY * r
        middle = 0.5 * (start + end)[stubby]
        start[stubby], end[stubby] = middle, middle
        return CapsuleSet(start, end, r, *_errors(points, radii, x, start, end, r, directions(CHECKS)))

    best = fitted(1)
    for k in range(2, MOST_CAPSULES + 1):
        more = fitted(k)
        if more.error < best.error - WORTH * (k - len(best.radius)):
            best = more
    # Spread points and directions come near the worst places; edges and faces are where they are.
    balls, own, normals = edges_and_normals(points, radii)
    ends = best.start, best.end, best.radius
    missed, added = _errors(points, radii, balls, *ends, normals, own)
    return replace(best, missed=max(best.missed, missed), added=max(best.added, added))


def _one_capsule(points: np.ndarray, radii: np.ndarray) -> CapsuleSet | None:
    """The capsule or sphere that the hull of balls is: all lie between two of the largest; None of others."""
    largest = points[radii == radii.max()]
    one = np.linalg.norm(largest - largest[0], axis=1).argmax()
    other = np.linalg.norm(largest - largest[one], axis=1).argmax()
    start, end = largest[[min(one, other)]], largest[[max(one, other)]]
    over = _distances(points, start, end)[0][:, 0] + radii - radii.max()
    if not over.max() <= EXACT:
        return None
    return CapsuleSet(start, end, radii.max(keepdims=True).astype(float), 0.0, 0.0)


def _errors(
    points: np.ndarray,
    radii: np.ndarray,
    x: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    radius: np.ndarray,
    d: np.ndarray,
    around: np.ndarray | float = 0.0,
) -> tuple[float, float]:
    """How far the hull of balls reaches out of capsules, and any of these out of the hull [m].

    Args:
        points, radii: (n, 3), (n,) of the hull [m].
        x: (m, 3) points on its surface [m], or
        around: (m,) centres of balls in it with these radii [m].
        start, end, radius: (k, 3), (k, 3), (k,) of the capsules [m].
        d: (l, 3) directions in which these are looked at.
    """
    out = (_distances(x, start, end)[0] - radius).min(axis=1) + around
    over = support(np.concatenate([start, end]), np.tile(radius, 2), d) - support(points, radii, d)
    return float(out.max(initial=0.0)), float(over.max(initial=0.0))


def _descended(
    x: np.ndarray, d: np.ndarray, wanted: np.ndarray, ends: np.ndarray, r: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """(error, ends (2 k, 3), radii (k,)) of the best iterate.

    Args:
        x: points on the surface [m].
        d, wanted: directions, and the support function there [m].
        ends, r: to begin with; the ends of a capsule follow each other [m].
    """
    n, k = len(x), len(r)
    rows, longest = np.arange(n), LONGEST * float(np.ptp(x, axis=0).max())
    best = (np.inf, ends, r)
    for _ in range(ROUNDS):
        distance, away, t = _distances(x, ends[0::2], ends[1::2])
        near = (distance - r).argmin(axis=1)
        out = distance[rows, near] - r[near]
        far = (d @ ends.T + np.repeat(r, 2)).argmax(axis=1)
        over = (d * ends[far]).sum(axis=1) + r[far // 2] - wanted
        largest = max(COVERED * float(out.max()), float(over.max()))
        if largest < best[0]:
            best = (largest, ends, r)
        J = np.zeros((n + len(d), 7 * k))
        normal = away[rows, near] / np.maximum(distance[rows, near], 1e-9)[:, None]
        share = t[rows, near]
        for axis in range(3):
            J[rows, 6 * near + axis] = -normal[:, axis] * (1.0 - share)
            J[rows, 6 * near + 3 + axis] = -normal[:, axis] * share
            J[n + np.arange(len(d)), 3 * far + axis] = d[:, axis]
        J[rows, 6 * k + near] = -1.0
        J[n + np.arange(len(d)), 6 * k + far // 2] = 1.0
        scale = np.concatenate([np.where(out > 0.0, COVERED, WITHIN), np.where(over > 0.0, 1.0, WITHIN)])
        error = np.concatenate([out, over])
        weight = scale * (np.abs(scale * error) / max(largest, 1e-9) + 0.1) ** (0.5 * EXPONENT - 1.0)
        A = J * weight[:, None]
        M = A.T @ A
        change = np.linalg.solve(M + 3e-4 * np.trace(M) / len(M) * np.eye(len(M)), A.T @ (-error * weight))
        change *= STRIDE * min(1.0, longest / max(float(np.abs(change).max()), 1e-12))
        ends, r = ends + change[: 6 * k].reshape(-1, 3), np.maximum(r + change[6 * k :], 0.0)
    return best


def _distances(
    x: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of points from segments: distance (n, k) [m], the vector from the nearest place, where it is, 0..1."""
    way = end - start
    square = np.maximum((way * way).sum(axis=1), 1e-18)
    t = np.clip(((x[:, None] - start) * way).sum(axis=2) / square, 0.0, 1.0)
    away = x[:, None] - (start + t[..., None] * way)
    return np.sqrt((away * away).sum(axis=2)), away, t


def _guesses(x: np.ndarray, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ends (2 k, 3) and radii of k capsules along the longest axis: side by side, then in a row."""
    middle = x.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(x.T))
    axes = axes[:, ::-1]  # the longest first
    local = (x - middle) @ axes
    low, high = local.min(axis=0), local.max(axis=0)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    r = min(half[2], half[1] / k) if k > 1 else 0.5 * (half[1] + half[2])
    r = min(r, half[0])
    beside = np.linspace(-(half[1] - r), half[1] - r, k) if k > 1 else np.zeros(1)
    places = [[sign * (half[0] - r), s, 0.0] for s in beside for sign in (-1.0, 1.0)]
    yield middle + (centre + np.array(places)) @ axes.T, np.full(k, r)
    if k == 1:
        return
    r = min(0.5 * (half[1] + half[2]), 0.7 * half[0])
    cuts = np.linspace(low[0] + 0.7 * r, high[0] - 0.7 * r, k + 1)
    places, radii = [], []
    for first, last in pairwise(cuts.tolist()):
        piece = local[(local[:, 0] >= first - r) & (local[:, 0] <= last + r)]
        piece = piece if len(piece) else local
        lowest, highest = piece.min(axis=0), piece.max(axis=0)
        across = 0.5 * (lowest + highest)
        places += [[s, across[1], across[2]] for s in (first, last)]
        radii.append(0.25 * (highest - lowest)[1:].sum())
    yield middle + np.array(places) @ axes.T, np.array(radii)
