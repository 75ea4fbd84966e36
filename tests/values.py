"""Spatial values from plain numbers and back to NumPy arrays; what hypothesis draws them from."""

from __future__ import annotations

import numpy as np
from dense import skew
from hypothesis import strategies as st

from robokit.spatial import Force, Matrix3, Motion, Transform, Vector3
from robokit.spatial.rotation import quat_normalized, quat_wxyz_to_rotation

number = st.floats(-8.0, 8.0, allow_nan=False, width=32)
three = st.tuples(number, number, number)
six = st.tuples(*[number] * 6)
quaternion = st.tuples(*[number] * 4).filter(lambda c: sum(x * x for x in c) > 1e-2)


def motion(c) -> Motion:
    return Motion(Vector3(*c[:3]), Vector3(*c[3:]))


def force(c) -> Force:
    return Force(Vector3(*c[:3]), Vector3(*c[3:]))


def transform(quat, r) -> Transform:
    return Transform(quat_wxyz_to_rotation(quat_normalized(quat)).T, Vector3(*r))


def array(x) -> np.ndarray:
    return np.array(x.rows if isinstance(x, Matrix3) else list(x), dtype=float)


def matrix(X: Transform) -> np.ndarray:
    """X = [[E, 0], [-E r x, E]] (RBDA eq. 2.24)."""
    E = array(X.E)
    return np.block([[E, np.zeros((3, 3))], [-E @ skew(array(X.r)), E]])
