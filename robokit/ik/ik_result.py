"""What inverse kinematics found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.ik.ik_problem import STATE
from robokit.ik.ik_targets import Asked
from robokit.ik.lm_step import REACHED, STALLED


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


def single_result(
    asked: Asked, q: np.ndarray, state: np.ndarray, tried: int, tolerance: float
) -> InverseKinematicsResult:
    """The result of one problem."""
    numbers = state.tolist()
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for (name, angle), x in zip(asked.parts, numbers[STATE:], strict=True):
        errors[angle][name] = 4.0 * math.atan(x / 4.0) if angle else x
    largest = max((*errors[0].values(), *errors[1].values()))
    met = numbers[2] == REACHED
    message = "" if met else _missed(asked, numbers, tried, tolerance)
    return InverseKinematicsResult(q, met, largest, *errors, int(numbers[3]), tried, message)


def batch_result(
    asked: Asked, q: np.ndarray, state: np.ndarray, tried: np.ndarray, tolerance: float
) -> InverseKinematicsResult:
    """The result of many."""
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    largest = np.zeros(len(q))
    for (name, angle), x in zip(asked.parts, state.T[STATE:], strict=True):
        errors[angle][name] = 4.0 * np.arctan(x / 4.0) if angle else x.copy()
        largest = np.maximum(largest, errors[angle][name])
    met, message = state[:, 2] == REACHED, ""
    if not met.all():
        row, count = int(met.argmin()), int(np.count_nonzero(~met))
        missed = _missed(asked, state[row].tolist(), int(tried[row]), tolerance)
        message = f"{count} of {len(q)} not met; row {row}: {missed}"
    return InverseKinematicsResult(q, met, largest, *errors, state[:, 3].astype(int), tried, message)


def _missed(asked: Asked, state: list[float], tried: int, tolerance: float) -> str:
    """What is missed by how much, and why, after so many starts."""
    size, (name, angle) = max(zip(state[STATE:], asked.parts, strict=True))
    left = f"{4.0 * math.atan(size / 4.0):.3g} rad" if angle else f"{size:.3g} m"
    why = "it was still improving: allow more iterations"
    if state[2] == STALLED:
        found = "nothing better is near" if tried == 1 else f"none of {tried} starts came nearer"
        why = f"{found}: it is out of reach, or more starts may find a way (starts={max(20, 5 * tried)})"
    return f"target of {name!r} missed by {left} (tolerance {tolerance:g}); {why}"
