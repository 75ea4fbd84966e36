"""The generalised momentum observer: forces from outside, from positions, velocities and motor torques alone.

    p = H v,    dp/dt = tau + C^T v - g + tau_ext
    r = K (p - p_0 - integral of (tau + C^T v - g + r) dt),    so that dr/dt = K (tau_ext - r)

The residual r is tau_ext behind a low-pass of first order: no accelerations are needed, and no H^-1.

Source: A. De Luca, R. Mattone, 2003 and 2005; S. Haddadin, A. De Luca, A. Albu-Schäffer, 2017.
Differs: the integral of dr/dt over a step is taken exactly for the mean of tau_ext over it, which is known
as (p_1 - p_0) / dt less the mean of tau + C^T v - g: stable for any gain and step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number
from robokit.dynamics import coriolis_matrix, crba, gravity_forces, link_jacobian
from robokit.errors import ShapeError, WrongType
from robokit.model.robot import Robot, check_robot

__all__ = ["MomentumObserver", "external_force", "external_torques"]

RCOND = 1e-6  # share of the largest singular value of J^T below which a direction of force moves no joint
ROWS = 4096  # states whose matrices are in memory at once


def _momenta(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p = H v and C^T v - g less friction, of states (B, ...): (B, nv) each."""
    p = np.einsum("bij,bj->bi", crba(robot, q), v)
    rest = np.einsum("bji,bj->bi", coriolis_matrix(robot, q, v), v) - gravity_forces(robot, q)
    return p, rest - friction_forces(robot, v)


def friction_forces(robot: Robot, v: np.ndarray) -> np.ndarray:
    """Forces against damping and friction of the description, (..., nv) [N m | N]."""
    damping, friction = np.zeros(robot.nv), np.zeros(robot.nv)
    for joint in robot.joints:
        damping[joint.v_slice], friction[joint.v_slice] = joint.damping, joint.friction
    return damping * v + friction * np.sign(v)


class MomentumObserver:
    """Momentum observer: estimates external joint forces, step by step.

    Damping and friction of the description are part of the model, not of the estimate.

    Args:
        robot: the robot.
        gain: gain of the observer [1/s]: the estimate follows with a time constant of 1/gain.

    Attributes:
        residual: the estimate, (nv,) [N m | N].

    Raises:
        ShapeError: a gain that is not positive, or in :meth:`step` arrays of a wrong shape.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> observer = rk.MomentumObserver(robot, gain=50.0)
        >>> sim = rk.Simulation(robot, dt=1e-3)
        >>> for k in range(100):
        ...     tau = rk.gravity_forces(robot, sim.q)
        ...     sim.step(tau + [0.5, 0.0])  # 0.5 N m of which the observer is not told
        ...     r = observer.step(sim.q, sim.v, tau, 1e-3)
        >>> bool(abs(r - [0.5, 0.0]).max() < 0.01)
        True
    """

    def __init__(self, robot: Robot, gain: float = 50.0) -> None:
        check_robot(robot)
        self.robot, self.gain = robot, real_number("gain", gain, above=0.0)
        self.residual = np.zeros(robot.nv)
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def reset(self) -> None:
        """Discard all steps; the next one is the first of a new motion."""
        self.residual = np.zeros(self.robot.nv)
        self._before = None

    def step(self, q: Any, v: Any, tau: Any, dt: float) -> np.ndarray:
        """Process the next state.

        Args:
            q, v: the state now, (nq,) and (nv,).
            tau: mean motor forces since the previous state, (nv,) [N m | N]; zero for a floating base.
            dt: time since then [s].

        Returns:
            the estimate, (nv,) [N m | N]; zeros at the first state.

        Raises:
            ShapeError: a wrong shape, or a time that is not positive.
        """
        robot, dt = self.robot, real_number("dt", dt, above=0.0)
        sizes = {"q": robot.nq, "v": robot.nv, "tau": robot.nv}
        q, v, tau = (_vector(name, x, n) for (name, n), x in zip(sizes.items(), (q, v, tau), strict=True))
        p, rest = (x[0] for x in _momenta(robot, q[None], v[None]))
        if self._before is not None:
            mean = (p - self._before[0]) / dt - tau - 0.5 * (rest + self._before[1])
            self.residual = self.residual + (1.0 - math.exp(-self.gain * dt)) * (mean - self.residual)
        self._before = p, rest
        return self.residual.copy()


def _vector(name: str, value: Any, n: int) -> np.ndarray:
    array = real_array(name, value, (n,))
    if array.shape != (n,):
        raise ShapeError(f"{name}: expected shape ({n},), got {array.shape}")
    return array


def external_torques(
    trajectory: Any = None,
    gain: float = 50.0,
    *,
    robot: Robot | None = None,
    t: Any = None,
    q: Any = None,
    v: Any = None,
    tau: Any = None,
) -> np.ndarray:
    """External joint forces over a motion, estimated by the momentum observer.

    They include errors of the model (friction, wrong masses): see :func:`robokit.unexplained_torques` and
    :func:`robokit.identify_log`.

    Source: De Luca, Mattone 2003.  Cost: O(T n d^2).

    Args:
        trajectory: a Trajectory with its robot, from :func:`robokit.read_log` or a simulation; its
            ``actuator_force``, otherwise its ``tau``, are the motor forces. None if the arrays are given
            instead.
        gain: gain of the observer [1/s]; its time constant is 1/gain.
        robot: the robot, for arrays.
        t: increasing times, (T,) [s].
        q, v: states, (T, nq) and (T, nv).
        tau: motor forces at these times, (T, nv) [N m | N], linearly interpolated in between.

    Returns:
        the estimate at each time, (T, nv) [N m | N]; the first six of a floating base are the wrench on it,
        in base axes.

    Raises:
        ShapeError: a trajectory without robot or forces, arrays that do not fit, times that do not increase.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> push = rk.Push("lower", [10.0, 0.0, 0.0], [0.0, 0.0, -0.4], start=0.2, duration=0.5)
        >>> run = rk.simulate(
        ...     robot, duration=0.6, pushes=push, actuators=rk.PD(kp=400, kd=20), record_every=1, dt=5e-4
        ... )
        >>> r = rk.external_torques(run, gain=200.0)
        >>> force = rk.external_force(robot, run.q, r, "lower", point=[0.0, 0.0, -0.4])
        >>> bool(abs(force[-1] - [10.0, 0.0, 0.0])[[0, 2]].max() < 0.2)
        True
    """
    means = None
    if trajectory is not None:
        robot, t, q, v, tau, means = _of_trajectory(trajectory)
    if robot is None:
        raise ShapeError("robot: expected a robot beside t, q, v and tau, or a trajectory alone")
    check_robot(robot)
    gain, T = real_number("gain", gain, above=0.0), real_array("t", t, "(T,)").size
    shapes = {"t": (T,), "q": (T, robot.nq), "v": (T, robot.nv), "tau": (T, robot.nv)}
    arrays = {}
    for (name, shape), value in zip(shapes.items(), (t, q, v, tau), strict=True):
        arrays[name] = real_array(name, value, shape)
        if arrays[name].shape != shape:
            raise ShapeError(f"{name}: expected shape {shape}, got {arrays[name].shape}")
    t, steps = arrays["t"], np.diff(arrays["t"])
    if T < 2 or not (steps > 0.0).all():
        raise ShapeError("t: expected at least two times that increase")
    parts = [_momenta(robot, arrays["q"][k : k + ROWS], arrays["v"][k : k + ROWS]) for k in range(0, T, ROWS)]
    p, rest = (np.concatenate([part[k] for part in parts]) for k in range(2))
    between = means[1:] if means is not None else 0.5 * (arrays["tau"][1:] + arrays["tau"][:-1])
    mean = np.diff(p, axis=0) / steps[:, None] - between - 0.5 * (rest[1:] + rest[:-1])
    r = np.zeros((T, robot.nv))
    for k, share in enumerate(-np.expm1(-gain * steps)):
        r[k + 1] = r[k] + share * (mean[k] - r[k])
    return r


def _of_trajectory(run: Any) -> tuple[Any, ...]:
    """Robot, t, q, v, forces at the times, and their means since the time before where those are known."""
    robot = getattr(run, "robot", None)
    if robot is None:
        raise ShapeError("trajectory: expected a Trajectory with its robot")
    if run.actuator_force is not None:
        return robot, run.t, run.q, run.v, run.actuator_force, run.actuator_force
    tau = run.tau
    if tau is None:
        raise ShapeError(
            "trajectory: no forces of motors; a log needs efforts, a simulation actuators or a controller"
        )
    if getattr(run, "program", None) is not None:  # a controller's forces hold over the step after each state
        return robot, run.t, run.q, run.v, tau, np.concatenate([tau[:1], tau[:-1]])
    return robot, run.t, run.q, run.v, tau, None


def external_force(
    robot: Robot, q: Any, external: Any, link: str | Sequence[str], *, point: Any = None, moment: bool = False
) -> np.ndarray:
    """The force on a link that best explains external joint forces.

    external = J^T f, by least squares over all joints between the link and the world, and over the six rows
    of a floating base. A force that moves no joint, such as one along a stretched arm, cannot be observed; of
    all forces that explain the rest, the smallest is returned.

    Args:
        robot: the robot.
        q: configurations, (nq,) or (T, nq).
        external: external joint forces, (nv,) or (T, nv) [N m | N], from :func:`external_torques`.
        link: link on which the force acts, or several links for one force each.
        point: point of application in link axes [m], (3,), or one for each of several links, (L, 3); the
            origin if None.
        moment: whether a moment acts too.

    Returns:
        forces in world axes, (3,) or (T, 3) [N]; with ``moment``, [moment; force], (6,) or (T, 6) [N m; N].
        With several links there is one more axis before the last, (T, L, 3).

    Raises:
        UnknownName: there is no such link.
        ShapeError: arrays that do not fit.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> q, force = [0.4, 0.7], [3.0, 0.0, -2.0]
        >>> tau = rk.link_jacobian(robot, q, "lower", at=(0, 0, -0.5))[3:].T @ force
        >>> rk.external_force(robot, q, tau, "lower", point=(0, 0, -0.5)).round(3)
        array([ 3.,  0., -2.])
    """
    check_robot(robot)
    if not isinstance(link, Sequence) or not link:
        raise WrongType("link", link, "the name of a link, or names of several")
    links = [link] if isinstance(link, str) else list(link)
    for name in links:
        robot.link(name)
    q, tau = (
        real_array("q", q, f"({robot.nq},) or (T, {robot.nq})"),
        real_array("external", external, f"({robot.nv},)"),
    )
    single = q.ndim == 1
    q, tau = np.atleast_2d(q), np.atleast_2d(tau)
    if q.shape[1:] != (robot.nq,) or tau.shape != (len(q), robot.nv):
        raise ShapeError(
            f"external: expected shape ({len(q)}, {robot.nv}) to go with q {q.shape}, got {tau.shape}"
        )
    points = np.zeros((len(links), 3)) if point is None else real_array("point", point, "(3,)").reshape(-1, 3)
    if len(points) != len(links):
        raise ShapeError(f"point: expected one for each of {len(links)} links, got {len(points)}")
    size = 6 if moment else 3
    out = np.zeros((len(q), len(links), size))
    for first in range(0, len(q), ROWS):
        part = slice(first, first + ROWS)
        J = [
            link_jacobian(robot, q[part], name, at=p)[:, 6 - size :]
            for name, p in zip(links, points, strict=True)
        ]
        inverse = np.linalg.pinv(np.swapaxes(np.concatenate(J, axis=1), 1, 2), rcond=RCOND)
        out[part] = np.einsum("tij,tj->ti", inverse, tau[part]).reshape(-1, len(links), size)
    found = out[:, 0] if isinstance(link, str) else out
    return found[0] if single else found
