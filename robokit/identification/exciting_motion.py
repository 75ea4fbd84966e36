"""Exciting motions: finite Fourier series within the limits of the joints, chosen for what they tell.

    q(t) = offset + sum_k A_k sin(k w t) + B_k cos(k w t),   w = 2 pi / duration

with sum k A_k = 0 and sum k^2 B_k = 0, so that the motion starts and ends at rest. The amplitudes of each
joint are then scaled to fill its limits, which leaves an optimisation without constraints.

Source: Swevers, Ganseman, Tuekel, De Schutter, Van Brussel 1997 (periodic excitation).
Differs: rest at both ends, and scaling to the limits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.arguments import one_of, random_generator, real_number, whole_number
from robokit.dataclass_tools import frozen
from robokit.dynamics.equations_of_motion import regressor_entries, regressor_nonzeros
from robokit.errors import ModelError, ShapeError
from robokit.identification.measurements import (
    BaseParameters,
    Columns,
    one_blas_thread,
    structural_combinations,
)
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot, check_robot

CRITERIA = ("volume", "condition")
DEFAULT_HALF_RANGES = {"angle": math.pi, "shift": 0.5}  # half the range of a joint without limits [rad | m]
DEFAULT_SPEED_LIMIT = 2.0  # limit of the velocity of a joint that has none [rad/s | m/s]
JUDGED_STATES = 120  # states at which a motion is judged


@frozen(eq=False)
class Excitation:
    """A motion that determines inertial parameters well.

    Attributes:
        t: times from 0 to the duration [s], (T,).
        q, v, a: states [rad | m, /s, /s^2], (T, nv) each.
        condition: condition number of the regressor of the combinations, with columns of equal length.
        evaluations: number of motions that were tried.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    condition: float
    evaluations: int

    def __repr__(self) -> str:
        return f"<Excitation of {self.t[-1]:g} s, {len(self.t)} states, condition {self.condition:.3g}>"


class _Series:
    """Fourier series of all joints that start and end at rest, as amplitudes of free shapes."""

    def __init__(self, robot: Robot, duration: float, harmonics: int, margin: float, top: float) -> None:
        joints = robot.joints
        middle, half, speed = [], [], []
        for joint in joints:
            both = math.isfinite(joint.lower) and math.isfinite(joint.upper)
            free = DEFAULT_HALF_RANGES["shift" if joint.kind == "prismatic" else "angle"]
            middle.append((joint.lower + joint.upper) / 2 if both else 0.0)
            half.append((joint.upper - joint.lower) / 2 if both else free)
            speed.append(joint.velocity if 0.0 < joint.velocity < math.inf else DEFAULT_SPEED_LIMIT)
        self.middle, self.half = np.array(middle), margin * np.array(half)
        self.speed, self.top = margin * np.array(speed), top
        k = np.arange(1, harmonics + 1)
        self.w, self.k = 2 * np.pi / duration, k
        # Bases of k A and k B with rest at t = 0.
        self.sines = np.linalg.svd(np.ones((1, harmonics)))[2][1:]
        self.cosines = np.linalg.svd(k[None, :] * 1.0)[2][1:]
        self.size = len(joints) * 2 * (harmonics - 1)
        self.n = len(joints)

    def states(self, u: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a at times t, scaled to the limits."""
        amplitude = u.reshape(self.n, 2, -1)
        A, B = amplitude[:, 0] @ self.sines / self.k, amplitude[:, 1] @ self.cosines / self.k
        kw = self.k * self.w
        s, c = np.sin(np.outer(t, kw)), np.cos(np.outer(t, kw))
        q = s @ A.T + c @ B.T
        v = (c * kw) @ A.T - (s * kw) @ B.T
        a = -(s * kw**2) @ A.T - (c * kw**2) @ B.T
        low, high = q.min(axis=0), q.max(axis=0)
        tiny = 1e-12
        fit = np.minimum(2 * self.half / (high - low + tiny), self.speed / (np.abs(v).max(axis=0) + tiny))
        fit = np.minimum(fit, self.top / (np.abs(a).max(axis=0) + tiny))
        return self.middle + (q - (low + high) / 2) * fit, v * fit, a * fit


def excitation(
    robot: Robot,
    duration: float = 10.0,
    *,
    harmonics: int = 5,
    rate: float = 100.0,
    margin: float = 0.9,
    acceleration: float = 20.0,
    criterion: str = "volume",
    effort: int = 2000,
    rng: np.random.Generator | int | None = 0,
    progress: bool = False,
) -> Excitation:
    """A motion within the joints' limits from which the inertial parameters can be identified well.

    It is a finite Fourier series for each joint, at rest at both ends. The best of several random motions is
    improved step by step. Collisions are not considered: inspect the motion before a robot performs it.

    Source: Swevers and others 1997.

    Args:
        robot: a fixed robot whose joints have one degree of freedom each; lock or fix the others.
        duration: duration of the motion [s].
        harmonics: frequencies of the series, 1/duration to harmonics/duration [Hz]; at least 2.
        rate: states per second.
        margin: fraction of the position and velocity limits that is used, at most 1.
        acceleration: largest acceleration of a joint [rad/s^2 | m/s^2].
        criterion: "volume", of the estimate's confidence ellipsoid, or "condition", the condition number of
            the regressor with columns of equal length.
        effort: number of motions to try.
        rng: random generator of NumPy, or a seed.
        progress: whether to show a bar on stderr.

    Returns:
        times and states; ``.condition`` says how well the regressor is conditioned.

    Raises:
        ModelError: a floating base, coupled or loop joints, or a joint of several degrees of freedom.
        ShapeError: an argument with an invalid value.
        UnknownName: another criterion.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> motion = rk.excitation(robot, duration=4.0, rate=25.0, effort=20)
        >>> motion.q.shape, bool(motion.condition < 100)
        ((101, 2), True)
    """
    check_robot(robot)
    many = [joint.name for joint in robot.joints if joint.v_slice.stop - joint.v_slice.start != 1]
    if many or robot.coupling is not None or robot.loop_joints or not robot.nv:
        what = "loop joints" if robot.loop_joints else "coupled joints" if robot.nv else "no joints"
        what = f"joint {many[0]!r} has several" if many else what
        raise ModelError(
            f"excitation: expected a fixed robot whose joints have one degree of freedom each, got {what}; "
            "load it with base='fixed', lock joints with robokit.model.edit.lock_joints"
        )
    duration = real_number("duration", duration, above=0.0)
    rate = real_number("rate", rate, above=0.0)
    margin = real_number("margin", margin, above=0.0)
    if margin > 1.0:
        raise ShapeError(f"margin: expected a share of the limits, at most 1, got {margin:g}")
    top = real_number("acceleration", acceleration, above=0.0)
    harmonics, effort = whole_number("harmonics", harmonics, 2), whole_number("effort", effort, 1)
    one_of("criterion", criterion, CRITERIA)
    generator = random_generator("rng", rng)
    judged = np.linspace(0.0, duration, JUDGED_STATES, endpoint=False)
    t = np.linspace(0.0, duration, max(2, round(duration * rate) + 1))
    with one_blas_thread():
        base, series = (
            structural_combinations(Columns(robot)),
            _Series(robot, duration, harmonics, margin, top),
        )

        def cost(u: np.ndarray) -> float:
            values = _spectrum(robot, base, series.states(u, judged), equal=criterion == "condition")
            return float(-np.log(values).sum() if criterion == "volume" else np.log(values[-1] / values[0]))

        best = _search(cost, series.size, effort, generator, progress)
        q, v, a = series.states(best, t)
        values = _spectrum(robot, base, (q, v, a), equal=True)
    return Excitation(t, q, v, a, float(np.sqrt(values[-1] / values[0])), effort)


def _spectrum(
    robot: Robot, base: BaseParameters, states: tuple[np.ndarray, np.ndarray, np.ndarray], equal: bool
) -> np.ndarray:
    """Eigenvalues of W^T W for the combinations, ascending; equal: W's columns made equally long."""
    rows, places = regressor_entries(robot)
    Y = np.zeros((len(states[0]), robot.nv, COUNT * robot.nbodies))
    Y[:, rows, places] = regressor_nonzeros(robot, *states)
    W = Y[:, :, base.independent].reshape(-1, len(base))
    if equal:
        W = W / np.maximum(np.linalg.norm(W, axis=0), 1e-12)
    return np.maximum(np.linalg.eigvalsh(W.T @ W), 1e-16)


def _search(cost: Any, size: int, effort: int, rng: np.random.Generator, progress: bool) -> np.ndarray:
    """The best of random shapes, then an evolution strategy of one parent with the 1/5 rule."""
    bar: Any = None
    if progress:
        from tqdm import tqdm

        bar = tqdm(total=effort, unit="motion", leave=False)
    best, least, step = rng.standard_normal(size), np.inf, 0.3
    for k in range(effort):
        u = rng.standard_normal(size) if k < effort // 10 else best + step * rng.standard_normal(size)
        now = cost(u)
        step *= 1.0 if k < effort // 10 else 1.22 if now < least else 0.95
        if now < least:
            best, least = u, now
        if bar is not None:
            bar.update()
    if bar is not None:
        bar.close()
    return best
