"""Vectors, matrices and inertias in rows of arrays, and out of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from robokit.engine.loops.fields import by_lane
from robokit.spatial import Force, Matrix3, Motion, RigidInertia, Symmetric3, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar


def nothing() -> None:
    """Do nothing: the other branch of a condition."""


def in_lanes(x: Any) -> bool:
    """Whether rows are computed in lanes (step_in_lanes.py)."""
    return hasattr(x, "somewhere")


def of_all_forces(x: Any) -> bool:
    """Whether there may be forces besides contacts with friction and those in joints."""
    return not in_lanes(x) or hasattr(x, "all_forces")


def anywhere(x: Any, truth: Any) -> Any:
    """Whether a condition holds; in lanes, whether it holds in any of them."""
    if not in_lanes(x):
        return truth
    found = x.somewhere
    found[0] = 0
    cond(truth, lambda: put(found, 0, 1), nothing)
    return found[0] > 0


def one_by_one(x: Any, function: Callable[[Any], Any]) -> None:
    """Call ``function(x)``; in lanes, for one row after the other, as it takes different branches in each."""
    if in_lanes(x):
        by_lane(x, function)
    else:
        function(x)


def put(A: Any, place: Any, value: Any) -> None:
    """Write one entry of an array."""
    A[place] = value


def add(A: Any, place: Any, value: Any) -> None:
    """Add to one entry of an array."""
    A[place] = A[place] + value


def write(A: Any, first: Any, values: Any) -> None:
    """Write numbers to consecutive entries, from a place on."""
    for k, value in enumerate(values):
        A[first + k] = value


def write_row(A: Any, row: Any, values: Any) -> None:
    """Write numbers to a row; of an array of rows of rows, its two numbers say which."""
    at = row if isinstance(row, tuple) else (row,)
    for k, value in enumerate(values):
        A[(*at, k)] = value


def vector(A: Any, row: Any = None, first: int = 0) -> Vector3:
    """Three numbers of a row, or of an array that is one; ``row`` as in :func:`write_row`."""
    at = () if row is None else row if isinstance(row, tuple) else (row,)
    return Vector3(*(A[(*at, first + k)] if at else A[first + k] for k in range(3)))


def matrix(A: Any, row: Any) -> Matrix3:
    """A matrix from the first nine numbers of a row."""
    return Matrix3([[A[row, 3 * r + c] for c in range(3)] for r in range(3)])


def entries(A: Matrix3) -> list[Scalar]:
    """The entries of a matrix by rows."""
    return [entry for row in A.rows for entry in row]


def motion(A: Any, row: Any, first: int = 0) -> Motion:
    """A motion from six numbers of a row."""
    return Motion(vector(A, row, first), vector(A, row, first + 3))


def force(A: Any, row: Any, first: int = 0) -> Force:
    """A force from six numbers of a row."""
    return Force(vector(A, row, first), vector(A, row, first + 3))


def about(f: Force, place: Vector3) -> Force:
    """A force about a point as one about another, ``place`` from there [m]."""
    return Force(f.ang - place.cross(f.lin), f.lin)


def moved(V: Motion, place: Vector3) -> Motion:
    """A velocity about a point as one about another, ``place`` from there [m]."""
    return Motion(V.ang, V.lin + V.ang.cross(place))


def of_force(six: Any) -> Force:
    """A force from six numbers."""
    return Force(Vector3(*six[:3]), Vector3(*six[3:]))


def inertia(A: Any, row: Any) -> RigidInertia:
    """An inertia from ten numbers of a row."""
    return of_ten([A[row, k] for k in range(10)])


def of_ten(values: Any) -> RigidInertia:
    """An inertia from ten numbers."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = values
    return RigidInertia(m, Vector3(hx, hy, hz), Symmetric3(xx, yy, zz, xy, xz, yz))


def ten(I: RigidInertia) -> list[Scalar]:
    """The ten numbers of an inertia: m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz."""
    J = I.Ibar
    return [I.m, *I.h, J.xx, J.xy, J.yy, J.xz, J.yz, J.zz]
