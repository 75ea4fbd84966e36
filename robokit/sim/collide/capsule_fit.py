"""Capsules in place of a convex shape, by its support function.

A convex shape is given by points with radii, of which it is the hull: h(d) = max_j (p_j . d + r_j). So is a
set of k capsules, with 2 k points and k radii. Once it is known which point is the farthest in which
direction, the best points and radii in the least-squares sense solve a linear system; both are computed in
turn, as in k-means.

Cost: k least-squares problems of 7 k unknowns, a few milliseconds a shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

DIRECTIONS = 400
ROUNDS = 12
MOST_CAPSULES = 3

WORTH = 0.012
"""Another capsule must make the error smaller by this much [m]."""

STUBBY = 0.08
"""A capsule shorter than this part of its radius becomes a sphere."""

FADED = 1e-3
"""Weight that keeps points and radii that no direction determines where they were."""


@dataclass(frozen=True)
class CapsuleSet:
    """k capsules; a sphere is one of length 0.

    Attributes:
        start, end: (k, 3) ends of the axes [m].
        radius: (k,) [m].
        error: largest difference of the support functions of shape and capsules [m].
    """

    start: np.ndarray
    end: np.ndarray
    radius: np.ndarray
    error: float


def directions(n: int) -> np.ndarray:
    """n unit vectors that cover the sphere evenly, (n, 3): a Fibonacci lattice."""
    k = np.arange(n) + 0.5
    z, turn = 1.0 - 2.0 * k / n, math.pi * (1.0 + math.sqrt(5.0)) * k
    s = np.sqrt(1.0 - z * z)
    return np.stack([s * np.cos(turn), s * np.sin(turn), z], axis=1)


def support(points: np.ndarray, radii: np.ndarray, d: np.ndarray) -> np.ndarray:
    """h(d) of the hull of balls, for directions (n, 3) [m]."""
    return (d @ points.T + radii).max(axis=1)


def fit_capsules(points: np.ndarray, radii: np.ndarray) -> CapsuleSet:
    """The capsules that stand for the hull of balls: as many as make the error clearly smaller.

    Args:
        points: (n, 3) centres [m].
        radii: (n,) [m]; 0 for corners.
    """
    exact = _exact(points, radii)
    if exact is not None:
        return exact
    best = _fit(points, radii, 1)
    for k in range(2, MOST_CAPSULES + 1):
        more = _fit(points, radii, k)
        if more.error < best.error - WORTH * (k - len(best.radius)):
            best = more
    return best


def _exact(points: np.ndarray, radii: np.ndarray) -> CapsuleSet | None:
    """What is a sphere or a capsule already."""
    if len(points) == 1 or (len(points) == 2 and radii[0] == radii[1]):
        return CapsuleSet(points[:1], points[-1:], radii[:1].astype(float), 0.0)
    return None


def _fit(points: np.ndarray, radii: np.ndarray, k: int) -> CapsuleSet:
    d = directions(DIRECTIONS)
    wanted = support(points, radii, d)
    ends, r = _first_guess(points, radii, k)
    for _ in range(ROUNDS):
        farthest = (d @ ends.T + np.repeat(r, 2)).argmax(axis=1)
        A = np.zeros((len(d) + 7 * k, 7 * k))
        for axis in range(3):
            A[np.arange(len(d)), 3 * farthest + axis] = d[:, axis]
        A[np.arange(len(d)), 6 * k + farthest // 2] = 1.0
        A[len(d) :] = FADED * np.eye(7 * k)
        before = np.concatenate([ends.ravel(), r])
        found = np.linalg.lstsq(A, np.concatenate([wanted, FADED * before]), rcond=None)[0]
        ends, r = found[: 6 * k].reshape(-1, 3), np.maximum(found[6 * k :], 0.0)
    start, end = ends[0::2].copy(), ends[1::2].copy()
    stubby = np.linalg.norm(end - start, axis=1) < STUBBY * r
    middle = 0.5 * (start + end)[stubby]
    start[stubby], end[stubby] = middle, middle
    check = directions(3 * DIRECTIONS)
    got = support(np.concatenate([start, end]), np.concatenate([r, r]), check)
    return CapsuleSet(start, end, r, float(np.abs(got - support(points, radii, check)).max()))


def _first_guess(points: np.ndarray, radii: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends (2 k, 3) and radii of k capsules along the longest axis, side by side along the second."""
    d = directions(DIRECTIONS)
    surface = (
        points[(d @ points.T + radii).argmax(axis=1)]
        + d * radii[(d @ points.T + radii).argmax(axis=1)][:, None]
    )
    _, axes = np.linalg.eigh(np.cov(surface.T))
    low = np.array([-support(points, radii, -axes.T[i : i + 1])[0] for i in range(3)])
    high = np.array([support(points, radii, axes.T[i : i + 1])[0] for i in range(3)])
    order = np.argsort(high - low)
    axes, middle, half = axes[:, order], (0.5 * (low + high))[order], (0.5 * (high - low))[order]
    r = min(half[0], half[1] / k) if k > 1 else 0.5 * (half[0] + half[1])
    r = min(r, half[2])
    shifts = np.linspace(-(half[1] - r), half[1] - r, k) if k > 1 else np.zeros(1)
    ends = []
    for s in shifts:
        for sign in (-1.0, 1.0):
            ends.append(axes @ (middle + np.array([0.0, s, sign * (half[2] - r)])))
    return np.array(ends), np.full(k, r)
