"""A log beside the simulation of its start with its torques: the motions, and the page of both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.dynamics import crba
from robokit.errors import SimulationError
from robokit.files import output_path
from robokit.logs.torques import BASE, TorqueComparison, efforts_of, forces_of, robot_of
from robokit.model.robot import Robot
from robokit.sim import PD, Ground, Torque, simulate
from robokit.sim.starts import ground_gaps
from robokit.sim.steppers import default_step
from robokit.sim.trajectory import Trajectory

STATES = 200
"""States of a log at which its lowest point is looked for."""

TOGETHER = 8
"""Joints whose unexplained torques share a plot: as many as one tells apart. Each has its own, too."""

FORCE = "N m | N"

SERVO = 4.0
"""Samples of the log in which servos bring joints without efforts to where the log has them."""


def simulate_log(log: Trajectory, ground: Ground | bool | None = None, progress: bool = False) -> Trajectory:
    """Simulate the robot of a log from the log's first state with the log's torques.

    Joints without efforts follow the log by stiff servos. The simulation is otherwise open-loop: it drifts
    away from the log, sooner for a worse model, and if the motion is unstable for any model.

    Args:
        log: a trajectory with its robot.
        ground: as of :func:`robokit.simulate`; None puts a floating robot on the horizontal plane that its
            lowest point reaches in the log; False is none.
        progress: whether to show a bar on stderr.

    Returns:
        the simulated trajectory; if the simulation failed, up to that point (``summary["stopped"]``).

    Raises:
        WrongType, ShapeError: not a trajectory with its robot, or a start that cannot be simulated.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> push = rk.Torque([0.5, -0.2])
        >>> log = rk.simulate(robot, [0.3, 0.2], duration=0.1, actuators=push, record_every=1)
        >>> again = rk.simulate_log(log)
        >>> bool(abs(again.q[-1] - log.q[-1]).max() < 1e-3)
        True
    """
    robot = robot_of(log)
    t = log.t - log.t[0]
    usual = float(np.median(np.diff(t)))
    if ground is None and robot.base == "floating":
        ground = _ground(robot, log)
    # A whole part of the log's step, no longer than the simulator would choose.
    dt = usual / max(1, math.ceil(usual / default_step(robot, bool(ground)) - 1e-9))
    steps = max(1, round(float(t[-1]) / dt))
    middle = (np.arange(steps) + 0.5) * dt
    try:
        return simulate(
            robot, log.q[0], log.v[0], duration=steps * dt, dt=dt, ground=ground or None,
            actuators=_actuators(robot, log, t, middle), progress=progress,
        )  # fmt: skip
    except SimulationError as error:
        return error.trajectory


def _ground(robot: Robot, log: Trajectory) -> Ground:
    """The horizontal plane that the robot's lowest point reaches in a log."""
    chosen = np.unique(np.linspace(0, len(log.q) - 1, STATES).astype(int))
    return Ground(height=float(ground_gaps(robot, log.q[chosen], Ground()).min()))


def _actuators(robot: Robot, log: Trajectory, t: np.ndarray, middle: np.ndarray) -> list[Any]:
    """The log's torques, and servos along the log for joints without them."""
    efforts = set(efforts_of(log))
    times, forces = forces_of(log)
    single = [j for j in robot.joints if j.v_slice.stop - j.v_slice.start == 1 and j.name != FLOATING_BASE]
    driven = [j for j in single if j.name in efforts]
    led = [j for j in single if j.name not in efforts]
    actuators: list[Any] = []
    unlimited = {"effort": math.inf, "max_velocity": math.inf}
    if driven:
        own = times - log.t[0]
        rows = [np.interp(middle, own, forces[:, j.v_slice.start]) for j in driven]
        actuators.append(Torque(joints=[j.name for j in driven], target=np.stack(rows, axis=1), **unlimited))
    if led:
        inertia = np.diag(crba(robot, log.q[0]))[[j.v_slice.start for j in led]]
        q, v = (
            np.stack([np.interp(middle, t, x[:, place.start]) for place in places], axis=1)
            for x, places in ((log.q, [j.q_slice for j in led]), (log.v, [j.v_slice for j in led]))
        )
        rate = 1.0 / (SERVO * float(np.median(np.diff(t))))
        gains = {"kp": inertia * rate**2, "kd": 2.0 * inertia * rate}
        actuators.append(PD(joints=[j.name for j in led], target=q, velocity=v, **gains, **unlimited))
    return actuators


def differences(log: Trajectory, run: Trajectory) -> dict[str, tuple[float, float]]:
    """By joint of one degree of freedom: how far a simulation is from a log, rms and at the end [rad | m]."""
    robot = robot_of(log)
    t, own = log.t - log.t[0], run.t - run.t[0]
    reached = t <= own[-1] + 1e-9
    out = {}
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1:
            k = joint.q_slice.start
            off = np.interp(t[reached], own, run.q[:, k]) - log.q[reached, k]
            out[joint.name] = (float(np.sqrt(np.mean(off**2))), float(off[-1]))
    return out


def write_log_page(
    log: Trajectory, path: str | Path, torques: TorqueComparison | None = None, run: Trajectory | None = None
) -> Path:
    """Write the page of a log: the motion, curves of unexplained torques, and a simulation as a ghost.

    Args:
        log: of :func:`robokit.read_log`.
        path: where to; ".html" is appended where there is no suffix.
        torques: of :func:`robokit.unexplained_torques`, or None.
        run: of :func:`simulate_log`, or None.

    Returns:
        The path of the file.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> log = rk.simulate(robot, [0.3, 0.2], duration=0.1, record_every=1)
        >>> rk.write_log_page(log, "log.html").name
        'log.html'
    """
    from robokit.viewer import compare, write_page

    path = output_path("path", path, ".html")
    curves = {} if torques is None else _curves(torques)
    if run is None:
        return write_page(log, path, curves=curves)
    return compare(log, run, path, ("log", "simulation"), curves=curves)


def _curves(torques: TorqueComparison) -> dict[str, Any]:
    """Unexplained torques of the joints with the largest together, wrenches, and each joint's by itself."""
    from robokit.viewer import Curve

    t, good = torques.motion.t, torques.motion.good[:, None]

    def curve(y: np.ndarray, unit: str, labels: Sequence[str]) -> Curve:
        return Curve(np.ma.masked_array(y, ~np.broadcast_to(good, y.shape)), unit, labels, t)

    off, sizes = torques.unexplained, torques.rms(torques.unexplained)
    joints = [k for k, name in enumerate(torques.names) if not name.startswith(BASE)]
    base = [k for k, name in enumerate(torques.names) if name.startswith(BASE)]
    largest = sorted(sorted(joints, key=lambda k: -sizes[k])[:TOGETHER])
    title = "unexplained torque" + (f", {TOGETHER} largest" if len(joints) > TOGETHER else "")
    curves = {}
    if largest:
        curves[title] = curve(off[:, largest], FORCE, [torques.names[k] for k in largest])
    for link, wrench in torques.wrenches.items():
        curves[f"force on {link}"] = curve(wrench[:, 3:], "N", list("xyz"))
    if base:
        curves["force on base from outside"] = curve(-off[:, base[3:]], "N", list("xyz"))
        curves["moment on base from outside"] = curve(-off[:, base[:3]], "N m", list("xyz"))
    for k in joints:
        rows = np.stack([torques.measured[:, k], torques.model[:, k], off[:, k]], axis=1)
        curves[f"{torques.names[k]}: torque"] = curve(rows, FORCE, ["measured", "model", "unexplained"])
    return curves
