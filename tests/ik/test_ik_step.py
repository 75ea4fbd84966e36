"""A step of inverse kinematics solves the damped normal equations."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative

from robokit.ik import _direction


@pytest.mark.parametrize(("m", "n"), [(6, 7), (6, 6), (9, 4), (3, 1), (1, 3)])
def test_both_forms_of_the_step_solve_the_damped_normal_equations(m, n):
    rng = np.random.default_rng(m * n)
    A, r = rng.standard_normal((m, n)), rng.standard_normal(m)
    back, D = rng.standard_normal(n), rng.uniform(0.1, 2.0, n)
    free = np.ones(n)
    free[:: 3 if n > 3 else n + 1] = 0.0
    F = free > 0.0
    for given in ((), np.where(F, 0.0, 0.3)):
        got = _direction(A.tolist(), r, back, D, free, list(given))
        expected = np.zeros(n) if len(given) == 0 else given.copy()
        slope = A.T @ (r + A @ expected) + back
        expected[F] = -np.linalg.solve(A[:, F].T @ A[:, F] + np.diag(D[F]), slope[F])
        assert relative(got, expected) < 1e-12
