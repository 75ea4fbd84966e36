"""What inverse kinematics found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.ik.ik_targets import Asked
from robokit.ik.lm_step import REACHED, STALLED, STATE


@dataclass(frozen=True, eq=False)
class InverseKinematicsResult:
    """Configurations, and how far they leave the targets.

    Attributes:
        q: configuration, (nq,) or (B, nq), within the limits.
        converged: whether all targets are met within the tolerance, bool or (B,).
        error: the largest of the errors below [m | rad], float or (B,).
        position_error: {target: distance [m]}, float or (B,) each; axes of weight 0 do not count.
        rotation_error: {link: angle [rad]} of the targets with an orientation, float or (B,) each.
        iterations: steps taken from the start that gave q, int or (B,).
        starts: starts that were tried, int or (B,).
        message: in words, what is not met and why; "" where all targets are.
    """

    q: np.ndarray
    converged: Any
    error: Any
    position_error: dict[str, Any]
    rotation_error: dict[str, Any]
    iterations: Any
    starts: Any
    message: str

    def __repr__(self) -> str:
        if self.q.ndim == 1:
            met = "converged" if self.converged else "not converged"
            return f"<InverseKinematicsResult: {met}, error {self.error:.3g}, {self.iterations} iterations>"
        return f"<InverseKinematicsResult: {int(np.sum(self.converged))} of {len(self.q)} converged>"


def result(
    asked: Asked, q: np.ndarray, state: np.ndarray, tried: np.ndarray, tolerance: float, single: bool
) -> InverseKinematicsResult:
    """The result of rows of q and state, or of the only one."""
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    largest = np.zeros(len(q))
    for k, (name, angle) in enumerate(asked.parts):
        found = state[:, STATE + k]
        if angle:
            found = 4.0 * np.arctan(found / 4.0)
        largest = np.maximum(largest, found)
        errors[angle][name] = float(found[0]) if single else found
    met, steps = state[:, 2] == REACHED, state[:, 3].astype(int)
    message = _message(asked, q, state, met, tolerance, single)
    if single:
        return InverseKinematicsResult(
            q[0], bool(met[0]), float(largest[0]), *errors, int(steps[0]), int(tried[0]), message
        )
    return InverseKinematicsResult(q, met, largest, *errors, steps, tried, message)


def _message(
    asked: Asked, q: np.ndarray, state: np.ndarray, met: np.ndarray, tolerance: float, single: bool
) -> str:
    if met.all():
        return ""
    row = int(np.flatnonzero(~met)[0])
    k = int(state[row, STATE:].argmax())
    name, angle = asked.parts[k]
    size = state[row, STATE + k]
    left = f"{4.0 * np.arctan(size / 4.0):.3g} rad" if angle else f"{size:.3g} m"
    if state[row, 2] == STALLED:
        why = "nothing better is near: it is out of reach, or other starts may avoid this place (starts=20)"
    else:
        why = "it was still improving; allow more iterations"
    which = "" if single else f"{int((~met).sum())} of {len(q)} not met; the first, row {row}: "
    return f"{which}target of {name!r} missed by {left} (tolerance {tolerance:g}); {why}"
