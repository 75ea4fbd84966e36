"""Values of an algorithm as rows of numbers, plain or traced, each with its kind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from robokit.engine.trace.scalar import Scalar
from robokit.model.joints import MotionSubspace
from robokit.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform

KINDS = (
    "scalar",
    "motion",  # angular, linear
    "force",  # moment, force
    "transform",  # E by rows, r
    "rigid",  # m, h, xx yy zz xy xz yz of the rotational inertia about the origin
    "articulated",  # xx yy zz xy xz yz of A, B by rows, the same of M
    "vector",
    "matrix",  # square, by rows
    "motions",  # columns, one after another
    "forces",
)
"""Kinds of values; the page's data says them by their place here."""

LARGEST = 64
"""Numbers of a value that is read; larger ones are kept where a name is bound to them."""

NUMBERS = (float, Scalar)

Value = tuple[str, tuple[Any, ...]]
"""Kind and numbers: floats, or scalars of the tracer."""


def recorded(value: Any, whole: bool = False) -> Value | None:
    """Kind and numbers of a value; None for what is no value of the mathematics (indices, trees, ranges).

    Args:
        value: anything that a variable holds.
        whole: whether large vectors and matrices are wanted too.
    """
    found = _recorded(value)
    if found is None or not found[1] or (len(found[1]) > LARGEST and not whole):
        return None
    return found


def _recorded(value: Any) -> Value | None:
    if isinstance(value, list):
        return _list(value)
    rule = _RULES.get(type(value))
    return None if rule is None else rule(value)


def _list(entries: list[Any]) -> Value | None:
    if all(isinstance(x, NUMBERS) for x in entries):
        return "vector", tuple(entries)
    if all(isinstance(x, Force) for x in entries):
        return "forces", tuple(chain(*entries))
    square = all(isinstance(row, list) and len(row) == len(entries) for row in entries)
    if square and all(isinstance(x, NUMBERS) for row in entries for x in row):
        return "matrix", tuple(chain(*entries))
    return None


def _factored(factors: tuple[Any, ...]) -> Value | None:
    """L D L^T of what ``ldl`` returns, (L, 1/D): the matrix that a reader knows by its letter."""
    if len(factors) != 2 or not all(isinstance(part, list) for part in factors):
        return None
    L, inverses = factors
    k = len(L)
    D = [1.0 / x for x in inverses]
    return "matrix", tuple(
        sum(L[i][m] * D[m] * L[j][m] for m in range(min(i, j) + 1)) for i in range(k) for j in range(k)
    )


_RULES: dict[type, Callable[[Any], Value | None]] = {
    float: lambda x: ("scalar", (x,)),
    Scalar: lambda x: ("scalar", (x,)),
    Motion: lambda m: ("motion", tuple(m)),
    Force: lambda f: ("force", tuple(f)),
    Transform: lambda X: ("transform", (*chain(*X.E.rows), *X.r)),
    RigidInertia: lambda I: ("rigid", (I.m, *I.h, *I.Ibar)),
    ArticulatedInertia: lambda I: ("articulated", tuple(I)),
    MotionSubspace: lambda S: ("motions", tuple(chain(*S.columns))),
    tuple: _factored,
}
