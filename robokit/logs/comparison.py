"""A log beside the model: forces that the model cannot explain, parameters from them, and the simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import real_number
from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import frozen, short_repr
from robokit.dynamics import crba, link_jacobian, rnea
from robokit.errors import ShapeError, SimulationError, WrongType, warn
from robokit.files import output_path
from robokit.identification import Identification, identify
from robokit.identification.estimate import LEAST_NOISE, UNEXPLAINED_SHARE, shorten
from robokit.identification.measurements import (
    FRICTION,
    MOTOR,
    Columns,
    CompressedEquations,
    check_measurements,
    compress_equations,
    dof_names,
    one_blas_thread,
)
from robokit.logs.read import ROWS, continuous, quaternion_rates, rotations
from robokit.logs.recording import GAP
from robokit.model.robot import Robot, quaternion_offsets
from robokit.momentum_observer import friction_forces
from robokit.sim import PD, Ground, Torque, simulate
from robokit.sim.starts import ground_gaps
from robokit.sim.steppers import default_step, size_of
from robokit.sim.trajectory import Trajectory

# ==== torques =====================================================================================
# What the model says of a log: smoothed motion, and the joint forces that the model cannot explain.
#
#     unexplained = F tau - (RNEA(q, v, a) + damping v + friction sign(v)),    q = F q_measured
#
# F is the same low-pass for positions and forces, run forwards and backwards: it delays nothing, and v and a
# are differences of the smoothed positions. Its cutoff is the one from which the least error of a is
# expected.
#
# Source: zero-phase Butterworth filter and central differences, as M. Gautier, 1997, "Dynamic identification
# of robots with power model"; the cutoff by C. L. Mallows, 1973.

ORDER = 4  # order of the Butterworth filter; run twice, its response is 1 / (1 + (f/fc)^8)
CUTOFFS = 60  # number of frequencies that are compared
BASE = "base"  # beginning of the names of a floating base's six rows
HIGHEST_CUTOFF = 0.15  # of the sampling rate: fourth-order differences err by 1 %, (2 pi 0.15)^4 / 90

MARGIN = 4.0
"""Periods of the cutoff next to ends and gaps that do not count.

There the filter rings; its slowest pole, at 2 pi fc sin(pi / 8), leaves exp(-9.6) of that.
"""

LEAST_SAMPLES = 30  # least number of samples of a log that is smoothed: twice the filter's padding


@frozen(eq=False)
class SmoothMotion:
    """A log smoothed, at equal time steps."""

    robot: Robot  # the robot
    t: np.ndarray  # times, (T,) [s]
    # q, v, a: configurations, velocities, accelerations, (T, nq), (T, nv), (T, nv)
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray  # joint forces, smoothed likewise, (T, nv) [N m | N]; zeros where there are none
    efforts: tuple[str, ...]  # joints with measured forces
    cutoff: float  # of the filter: frequency that it halves [Hz]
    good: np.ndarray  # whether a state counts, boolean (T,): not next to the ends or a gap

    __repr__ = short_repr


def smooth(log: Trajectory, cutoff: float | None = None) -> SmoothMotion:
    """Smooth a trajectory with its robot, read or simulated, and differentiate it twice: the motion at equal
    steps.

    ``cutoff`` is the frequency that the filter halves [Hz]; None: chosen from motion and noise. Raises
    WrongType for no trajectory; ShapeError for too few samples, or a cutoff beyond half the sampling rate.
    """
    robot = robot_of(log)
    if len(log.t) < LEAST_SAMPLES:
        raise ShapeError(
            f"log: {len(log.t)} samples are too few to differentiate twice; give {LEAST_SAMPLES}"
        )
    t = np.asarray(log.t, float)
    step = float(np.median(np.diff(t)))
    even = t[0] + step * np.arange(round(float(t[-1] - t[0]) / step) + 1)
    q = log.q.copy()
    places = [slice(k, k + 4) for k in quaternion_offsets(robot)]
    for place in places:
        q[:, place] = continuous(q[:, place])
    q = np.stack([np.interp(even, t, x) for x in q.T], axis=1)
    times, forces = forces_of(log)
    tau = np.stack([np.interp(even, times, x) for x in forces.T], axis=1)
    rate = 1.0 / step
    if cutoff is None:
        cutoff = best_cutoff(q / _units(robot), rate)
    elif not real_number("cutoff", cutoff, above=0.0) < 0.5 * rate:
        raise ShapeError(
            f"cutoff: expected less than half of the sampling rate, {rate:.4g} Hz, got {cutoff:g}"
        )
    q, tau = low_pass(q, rate, cutoff), low_pass(tau, rate, cutoff)
    for place in places:
        q[:, place] /= np.linalg.norm(q[:, place], axis=1, keepdims=True)
    v, a = _derivatives(robot, q, step)
    good = _good(even, t, step, cutoff)
    return SmoothMotion(robot, even, q, v, a, tau, efforts_of(log), float(cutoff), good)


def robot_of(log: Any) -> Robot:
    """The robot of a log. Raises WrongType: it is no trajectory; ShapeError: it has no robot."""
    if not isinstance(log, Trajectory):
        raise WrongType("log", log, "a Trajectory: robokit.read_log(path, robot)")
    if log.robot is None:
        raise ShapeError("log: the trajectory was loaded without its robot: Trajectory.load(path, robot=...)")
    return log.robot


def forces_of(log: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Joint forces (S, nv) and their times (S,): measured ones, zeros where there are none.

    Those of a simulation's actuators, with what a controller adds there, are means since the record before,
    and count in the middle; those of a controller elsewhere hold over the step after each record.
    """
    t = np.asarray(log.t, float)
    simulated = log.program is not None or "steps" in log.summary
    held = t + 0.5 * log.summary["dt"] if simulated else t
    if log.actuator_force is None:
        return (t, np.zeros_like(log.v)) if log.tau is None else (held, log.tau)
    if not simulated:
        return t, log.actuator_force
    middle, forces = 0.5 * (t[1:] + t[:-1]), log.actuator_force[1:].copy()
    if log.tau is not None:
        for k in np.flatnonzero(~log.actuator_force.any(axis=0)):  # of no actuator
            forces[:, k] = np.interp(middle, held, log.tau[:, k])
    return middle, forces


def efforts_of(log: Trajectory) -> tuple[str, ...]:
    """Names of the joints with measured forces."""
    robot = robot_of(log)
    if "efforts" in log.summary:
        return tuple(log.summary["efforts"])
    if log.tau is None and log.actuator_force is None:
        return ()
    return tuple(j.name for j in robot.joints if j.name != FLOATING_BASE)


def _units(robot: Robot) -> np.ndarray:
    """What coordinates are measured by, (nq,): 1 for angles and quaternions, the robot's size for lengths."""
    units = np.ones(robot.nq)
    for joint in robot.joints:
        if joint.kind == "floating":
            units[joint.q_slice.start + 4 : joint.q_slice.stop] = size_of(robot)
        elif joint.kind == "prismatic":
            units[joint.q_slice] = size_of(robot)
    return np.where(units > 0.0, units, 1.0)


def low_pass(x: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Columns (T, n) through the Butterworth filter, forwards and backwards."""
    from scipy.signal import butter, sosfiltfilt

    if not x.size:
        return x.copy()
    sos = butter(ORDER, cutoff, fs=rate, output="sos")
    pad = min(len(x) - 1, int(3 * rate / cutoff))
    return np.asarray(sosfiltfilt(sos, x, axis=0, padtype="odd", padlen=pad))


def best_cutoff(q: np.ndarray, rate: float) -> float:
    """The cutoff [Hz] from which accelerations are expected to be nearest to the true ones.

    With power P of the positions at the frequency f, noise N and the filter's response H, one expects of the
    acceleration the squared error

        sum f^4 ((1 - H)^2 (P - N) + H^2 N),

    unbiased where the noise is white. N is what there is in the upper half of the frequencies. Columns are
    tapered, so that their ends do not look like motion, and their errors added.

    Source: C. L. Mallows, 1973 (C_p), in the norm of the second derivative.
    """
    T = len(q)
    highest, lowest = HIGHEST_CUTOFF * rate, 4.0 * rate / T
    line = np.linspace(0.0, 1.0, T)[:, None]
    rest = q - (1 - line) * q[0] - line * q[-1]
    moving = np.ptp(rest, axis=0) > 1e-12 * np.maximum(1.0, np.abs(q).max(axis=0))
    if not moving.any() or highest <= lowest:
        return highest
    taper = np.sin(np.pi * (np.arange(T) + 0.5) / T)[:, None] ** 4
    power = np.abs(np.fft.rfft(taper * rest[:, moving], axis=0)[1:]) ** 2
    f = rate * np.arange(1, len(power) + 1) / T
    noise = power[len(power) // 2 :].mean(axis=0)
    signal, noise = (power - noise).sum(axis=1), noise.sum()
    frequencies = np.geomspace(lowest, highest, CUTOFFS)
    scores = []
    for fc in frequencies:
        # The bilinear transform of the filter maps frequencies by a tangent.
        ratio = np.tan(np.minimum(np.pi * f / rate, 1.57)) / np.tan(np.pi * fc / rate)
        H = 1.0 / (1.0 + ratio ** (2 * ORDER))
        scores.append(float(np.sum(f**4 * ((1.0 - H) ** 2 * signal + H**2 * noise))))
    return float(frequencies[int(np.argmin(scores))])


def _derivatives(robot: Robot, q: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """v and a of configurations at equal steps, (T, nv) each."""
    v, a = np.zeros((len(q), robot.nv)), np.zeros((len(q), robot.nv))
    # Of fourth order; of second order next to the ends.
    first = np.gradient(q, step, axis=0)
    second = np.gradient(first, step, axis=0)
    second[1:-1] = (q[2:] - 2 * q[1:-1] + q[:-2]) / step**2
    far, near = q[4:] - q[:-4], q[3:-1] - q[1:-3]
    first[2:-2] = (8 * near - far) / (12 * step)
    sums = q[4:] + q[:-4], q[3:-1] + q[1:-3]
    second[2:-2] = (16 * sums[1] - sums[0] - 30 * q[2:-2]) / (12 * step**2)
    for joint in robot.joints:
        x, y = joint.q_slice, joint.v_slice
        if joint.kind not in ("floating", "spherical"):
            v[:, y], a[:, y] = first[:, x], second[:, x]
            continue
        turn, spin = slice(x.start, x.start + 4), slice(y.start, y.start + 3)
        v[:, spin] = quaternion_rates(q[:, turn], first[:, turn])
        a[:, spin] = quaternion_rates(q[:, turn], second[:, turn])
        if joint.kind == "floating":
            R = rotations(q[:, turn])
            place, shift = slice(x.start + 4, x.stop), slice(y.start + 3, y.stop)
            v[:, shift] = np.einsum("tji,tj->ti", R, first[:, place])
            # v is in axes that turn: its components change by omega x v less than the point accelerates.
            a[:, shift] = np.einsum("tji,tj->ti", R, second[:, place]) - np.cross(v[:, spin], v[:, shift])
    return v, a


def _good(even: np.ndarray, t: np.ndarray, step: float, cutoff: float) -> np.ndarray:
    """Which states count: those that the filter's ringing at ends and gaps does not reach."""
    good = np.ones(len(even), dtype=bool)
    margin = min(MARGIN / cutoff, 0.1 * (t[-1] - t[0]))
    ends = [(t[0], t[0]), (t[-1], t[-1])]
    ends += [(t[k], t[k + 1]) for k in np.flatnonzero(np.diff(t) > GAP * step)]
    for first, last in ends:
        a, b = np.searchsorted(even, [first - margin, last + margin])
        good[a:b] = False
    if not good.any():
        raise ShapeError("log: a gap is within the filter's reach of every sample; give a higher cutoff")
    return good


# ---- forces that the model cannot explain --------------------------------------------------------


@frozen(eq=False)
class TorqueComparison:
    """Joint forces of a log, measured and from the model: the result of :func:`unexplained_torques`.

    Attributes:
        motion: the smoothed motion: ``motion.t``, ``motion.q``, ``motion.good``, ...
        names: names of the n degrees of freedom that are compared: those with measured forces, and the six of
            a floating base ("base moment x", ...).
        dofs: their indices in v, (n,).
        model: forces that the model needs for the motion, (T, n) [N m | N].
        measured: (T, n) [N m | N]; 0 for a base.
        wrenches: fitted wrenches on the links named in ``contacts``, [moment; force] about the link's origin
            in world axes, (T, 6) [N m; N] each.
    """

    motion: SmoothMotion
    names: tuple[str, ...]
    dofs: np.ndarray
    model: np.ndarray
    measured: np.ndarray
    wrenches: dict[str, np.ndarray] = field(default_factory=dict)

    __repr__ = short_repr

    def __str__(self) -> str:
        return "\n".join(self.table())

    @property
    def unexplained(self) -> np.ndarray:
        """Measured minus modelled forces, (T, n) [N m | N]; they include the effect of external forces."""
        return self.measured - self.model

    def rms(self, x: np.ndarray) -> np.ndarray:
        """Root mean square of columns (T, n) over the states that are compared, (n,)."""
        return np.sqrt(np.mean(x[self.motion.good] ** 2, axis=0))

    def table(self) -> list[str]:
        """Root mean squares by joint, in lines of at most 80 columns."""
        good = self.motion.good
        t = (self.motion.t - self.motion.t[0])[good]
        measured, off = self.measured[good], self.unexplained[good]
        lines = [f"{'joint':<20}{'measured':>10}{'unexplained':>12}{'':>8}{'mean':>9}{'largest':>21}"]
        base: list[str] = []
        for k, name in enumerate(self.names):
            x = off[:, k]
            of_base = name.startswith(BASE)
            if of_base:  # what must act from outside
                x = -x
            size, left = (float(np.sqrt(np.mean(y**2))) for y in (measured[:, k], x))
            most = int(np.argmax(np.abs(x)))
            if of_base or not size:
                share = ""
            elif left < 1e-3 * size:
                share = "<0.1 %"
            else:
                share = f"{100 * left / size:.3g} %" if left < 9.995 * size else ">999 %"
            row = f"{shorten(name, 19):<20}" + (10 * " " if of_base else f"{size:10.3g}")
            row += f"{left:12.3g}{share:>8}{x.mean():9.2g}{f'{x[most]:.2g} at {t[most]:.4g} s':>21}"
            (base if of_base else lines).append(row)
        if base:
            lines += ["", "Wrench on the base that the model needs from outside, base axes [N m; N]", *base]
        return lines


def unexplained_torques(
    log: Trajectory, cutoff: float | None = None, *, contacts: Sequence[str] = ()
) -> TorqueComparison:
    """The joint forces in a log that the robot's model cannot explain.

    They are due to friction, wrong masses, contacts, or wrong units and signs. The six rows of a floating
    base are the external wrench that the model needs, in base axes.

    Links that touch something can be named. At each state, wrenches on them are then fitted to all rows by
    least squares, and only what they cannot explain remains.

    Source: M. Gautier, 1997 (zero-phase low-pass, central differences).
    Cost: O(T n); with contacts O(T n^2).

    Args:
        log: a log from :func:`robokit.read_log`, or any trajectory with ``tau`` or ``actuator_force``.
        cutoff: frequency at which the low-pass filter halves the amplitude [Hz]; chosen from motion and noise
            if None.
        contacts: links that touch something, such as the feet.

    Returns:
        measured and modelled forces, and :meth:`TorqueComparison.table`.

    Raises:
        ShapeError: a log without efforts, or with too few samples.
        WrongType: not a trajectory.
        UnknownName: there is no such link.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> push = rk.Torque(lambda t, q, v: [3 * np.sin(9 * t), np.cos(7 * t)])
        >>> run = rk.simulate(robot, duration=1.0, actuators=push, record_every=1)
        >>> found = rk.unexplained_torques(run, cutoff=40.0)
        >>> bool((found.rms(found.unexplained) < 0.02 * found.rms(found.measured)).all())
        True
    """
    motion = smooth(log, cutoff)
    robot, efforts = motion.robot, set(motion.efforts)
    if not efforts:
        raise ShapeError(
            "log: no efforts, so there is nothing to compare with the model; they are the third field of "
            "JointState, or columns named JOINT_effort"
        )
    names, dofs = dof_names(robot), list[int]()
    for joint in robot.joints:
        own = range(joint.v_slice.start, joint.v_slice.stop)
        if joint.name == FLOATING_BASE:
            names[joint.v_slice] = [f"{BASE} {what} {x}" for what in ("moment", "force") for x in "xyz"]
        if joint.name in efforts or joint.name == FLOATING_BASE:
            dofs += own
    places = np.array(dofs, dtype=int)
    model, measured = model_forces(robot, motion.q, motion.v, motion.a)[:, places], motion.tau[:, places]
    wrenches: dict[str, np.ndarray] = {}
    if contacts:
        wrenches, of_contacts = _contact_wrenches(robot, motion.q, places, model - measured, contacts)
        model = model - of_contacts
    found = TorqueComparison(motion, tuple(names[k] for k in dofs), places, model, measured, wrenches)
    off, turned = found.rms(found.unexplained), found.rms(found.measured + model)
    joints = found.rms(found.measured) > 0.0
    if joints.any() and (turned < 0.5 * off)[joints].mean() > 0.5:
        warn(
            "unexplained_torques: the efforts of most joints are near the model's forces with the opposite "
            "sign; look at what an effort means in this log",
            UserWarning,
        )
    return found


def _contact_wrenches(
    robot: Robot, q: np.ndarray, dofs: np.ndarray, needed: np.ndarray, links: Sequence[str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Wrenches on links that account best for forces (T, n), and the forces that they make, (T, n)."""
    if isinstance(links, str):
        raise WrongType("contacts", links, "names of links")
    for link in links:
        robot.link(link)
    parts, made = [], np.zeros_like(needed)
    for first in range(0, len(q), ROWS // 16):
        part = slice(first, first + ROWS // 16)
        J = np.concatenate([link_jacobian(robot, q[part], link) for link in links], axis=1)[:, :, dofs]
        f = np.einsum("tji,tj->ti", np.linalg.pinv(J, rcond=1e-6), needed[part])
        made[part] = np.einsum("tij,ti->tj", J, f)
        parts.append(f.reshape(-1, len(links), 6))
    wrenches = np.concatenate(parts)
    return {link: wrenches[:, k] for k, link in enumerate(links)}, made


def model_forces(robot: Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Joint forces that a motion needs, with damping and friction of the description, (T, nv) [N m | N]."""
    tau = np.zeros_like(v)
    for first in range(0, len(q), ROWS):
        part = slice(first, first + ROWS)
        tau[part] = rnea(robot, q[part], v[part], a[part])
    return tau + friction_forces(robot, v)


# ==== identify ====================================================================================
# Identification from a log: smoothed, thinned, fitted, and judged on what the fit has not seen.

SHARE = 0.75  # fraction of a log that is fitted; the rest validates the fit, unless another log does
CARRIED_SHARE = 0.1  # largest force on a base that counts as flying, over the robot's weight
LEAST_SHARE = 0.1  # least fraction of a joint's forces that is used even if the others are next to reversals

GOOD_CONDITION = 100.0
"""Condition number of the scaled equations up to which a motion excites its combinations well.

Source: M. Gautier, W. Khalil, 1992, who look for motions below it.
"""


@frozen(eq=False)
class LogIdentification:
    """The result of :func:`identify_log`.

    Attributes:
        found: the estimate: its ``robot``, ``summary()``, ``plot(path)``.
        names: names of the n degrees of freedom with measured forces.
        measured: root mean square of the forces used for validation, (n,) [N m | N].
        before: root mean square of their residuals with the description, (n,).
        after: root mean square of their residuals with the estimate, (n,).
        judged_by: description of the validation data, in words.
        cutoff: cutoff frequency of the low-pass filter [Hz].
        states: number of states that were fitted.
    """

    found: Identification
    names: tuple[str, ...]
    measured: np.ndarray
    before: np.ndarray
    after: np.ndarray
    judged_by: str
    cutoff: float
    states: int

    __repr__ = short_repr

    def __str__(self) -> str:
        return "\n".join(self.table())

    @property
    def robot(self) -> Robot:
        """The robot with the parameters that were found."""
        return self.found.robot

    @property
    def condition(self) -> float:
        """Condition number of the equations, with columns of length 1: up to 100 is good."""
        return self.found.base.condition

    def excitation(self) -> str:
        """In words, how well the motion excites the parameters."""
        found = self.found
        well = int(found.well_determined.sum())
        judged = (
            "well excited"
            if self.condition <= GOOD_CONDITION
            else "poorly excited: robokit.excitation makes better motions"
        )
        return (
            f"condition number {self.condition:.3g} ({judged}); {len(found.base)} of "
            f"{found.possible_combinations} combinations excited, {well} well determined"
        )

    def table(self) -> list[str]:
        """Residuals before and after by joint, in lines of at most 80 columns."""
        lines = [f"{'joint':<30}{'measured':>12}{'before':>12}{'after':>12}{'':>12}"]
        for k, name in enumerate(self.names):
            share = f"{100 * self.after[k] / self.before[k]:.3g} %" if self.before[k] > 0.0 else ""
            numbers = "".join(f"{x[k]:12.4g}" for x in (self.measured, self.before, self.after))
            lines.append(f"{shorten(name, 29):<30}{numbers}{share:>12}")
        return lines


def identify_log(
    log: Trajectory,
    *,
    friction: bool | str | Iterable[str] = True,
    armature: bool = False,
    validation: Trajectory | None = None,
    cutoff: float | None = None,
    prior_deviation: float = 1.0,
    fixed: Iterable[str] = (),
    progress: bool = False,
) -> LogIdentification:
    """Inertial parameters and friction of a robot from a log of its motion.

    The log is filtered without delay (see :func:`robokit.unexplained_torques`), subsampled to independent
    states, and fitted by :func:`robokit.identify`. The result is validated on its last quarter, or on another
    log.

    Source: Gautier 1997 for the signals; Wensing, Kim, Slotine 2018 for the fit.

    Args:
        log: a log from :func:`robokit.read_log`, with efforts. The model has no contacts: the robot must not
            touch anything, and a floating robot must be in flight.
        friction: "viscous", "coulomb", True for both or False.
        armature: whether to estimate the inertia of the motors.
        validation: another log of the same robot for validation; all of ``log`` is then fitted.
        cutoff: cutoff frequency of the low-pass filter [Hz]; chosen from motion and noise if None.
        prior_deviation, fixed: as in :func:`robokit.identify`.
        progress: whether to show a bar on stderr.

    Returns:
        the estimate, and residuals before and after.

    Raises:
        ShapeError: no efforts, too few samples, another robot in ``validation``, or a floating base on which
            external forces act.
        UnknownName: a link or a kind of friction that does not exist.

    Warns:
        UserWarning: as :func:`robokit.identify`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> heavy = robot.with_inertias(robot.inertial_parameters * 1.3)
        >>> push = rk.Torque(lambda t, q, v: [4 * np.sin(5 * t), 3 * np.sin(9 * t)])
        >>> run = rk.simulate(heavy, duration=3.0, actuators=push, record_every=2)
        >>> run.robot = robot  # what the description says
        >>> fit = rk.identify_log(run, friction=False, cutoff=30.0)
        >>> bool((fit.after < 0.1 * fit.before).all())
        True
    """
    motion = smooth(log, cutoff)
    robot = motion.robot
    if not motion.efforts:
        raise ShapeError("log: no efforts; masses can be identified only from them")
    if validation is not None:
        other = smooth(validation, motion.cutoff if cutoff is None else cutoff)
        if other.robot.nv != robot.nv or other.robot.joint_names != robot.joint_names:
            raise ShapeError("validation: expected a log of the same robot")
        fitted, judging, words = _states(motion, 0.0, 1.0), _states(other, 0.0, 1.0), "another log"
        judge = other
    else:
        fitted, judging, judge = _states(motion, 0.0, SHARE), _states(motion, SHARE, 1.0), motion
        words = f"the last {1 - SHARE:.0%} of the log, not fitted"
    if not len(judging):
        raise ShapeError("log: nothing is left to judge the fit; give a longer log, or validation=")
    real_number("prior_deviation", prior_deviation, above=0.0)
    _check_flight(robot, motion, fitted)
    weights, noise = _weights(robot, motion, fitted)
    found = identify(
        robot,
        *(x[fitted] for x in (motion.q, motion.v, motion.a, motion.tau)),
        friction=friction,
        armature=armature,
        prior_deviation=prior_deviation,
        weights=weights,
        fixed=fixed,
        progress=progress,
    )
    found = replace(found, noise=noise)
    dofs = [k for j in robot.joints if j.name in motion.efforts for k in range(*j.v_slice.indices(robot.nv))]
    measured = judge.tau[judging][:, dofs]
    tests = judge.q[judging], judge.v[judging], judge.a[judging]
    before = measured - model_forces(robot, *tests)[:, dofs]
    after = measured - found.predict(*tests)[:, dofs]
    names = dof_names(robot)
    for k, size, left in zip(dofs, _rms(measured), _rms(after), strict=True):
        if left > UNEXPLAINED_SHARE * size:
            warn(
                f"identify_log: {left:.3g} of {size:.3g} of the force of joint {names[k]!r} is unexplained; "
                "look at contacts, and at signs and units of its position and effort",
                UserWarning,
            )
    return LogIdentification(
        found=found,
        names=tuple(names[k] for k in dofs),
        measured=_rms(measured),
        before=_rms(before),
        after=_rms(after),
        judged_by=words,
        cutoff=motion.cutoff,
        states=len(fitted),
    )


def _check_flight(robot: Robot, motion: SmoothMotion, chosen: np.ndarray) -> None:
    """Raise ShapeError where an external force, of which the log has none, acts on a floating base."""
    base = next((j.v_slice for j in robot.joints if j.name == FLOATING_BASE), None)
    if base is None:
        return
    wrench = model_forces(robot, motion.q[chosen], motion.v[chosen], motion.a[chosen])[:, base]
    carried = float(np.sqrt(np.mean(np.sum(wrench[:, 3:] ** 2, axis=1))))
    weight = float(robot.total_mass * np.linalg.norm(robot.gravity))
    if carried > CARRIED_SHARE * weight:
        raise ShapeError(
            f"log: something carries the floating base, {carried:.4g} N of its {weight:.4g} N, "
            "and the log has no forces of contacts; identify a robot that is held: base='fixed'"
        )


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(x**2, axis=0))


def _states(motion: SmoothMotion, first: float, last: float) -> np.ndarray:
    """Indices of the states that count in a part of a motion, as many as the low-pass leaves independent."""
    T = len(motion.t)
    step = float(motion.t[1] - motion.t[0])
    every = max(1, int(0.5 / (motion.cutoff * step)))
    chosen = np.arange(int(first * T), int(last * T), every)
    return chosen[motion.good[chosen]]


def _weights(robot: Robot, motion: SmoothMotion, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (B, nv), 1/noise and 0 for forces not measured or next to a reversal; and the noise (nv,).

    Where a joint reverses, its friction jumps, and the low-pass smears that over its time constant. The noise
    is what each joint's own equations leave: nothing, if its parameters can explain any forces in so few
    states. Then the states next to reversals count, too.

    Raises ShapeError: all states of a joint are too few.
    """
    step = float(motion.t[1] - motion.t[0])
    reach = max(1, int(0.5 / (motion.cutoff * step)))
    near = np.zeros((len(chosen), robot.nv), dtype=bool)
    weights = np.ones(near.shape)
    for joint in robot.joints:
        if joint.name not in motion.efforts and joint.name != FLOATING_BASE:
            weights[:, joint.v_slice] = 0.0
            continue
        for k in range(joint.v_slice.start, joint.v_slice.stop if joint.name != FLOATING_BASE else 0):
            turns = np.flatnonzero(np.diff(np.sign(motion.v[:, k])) != 0)
            near[:, k] = np.searchsorted(turns, chosen + reach) - np.searchsorted(turns, chosen - reach) > 0
    # A joint that hardly moves turns all the time: its friction is not to be told anyway.
    near &= np.count_nonzero(~near, axis=0) > LEAST_SHARE * len(near)
    q, v, a, tau = (x[chosen] for x in (motion.q, motion.v, motion.a, motion.tau))
    columns = Columns(robot, (*FRICTION, MOTOR))

    def equations() -> tuple[list[CompressedEquations], np.ndarray]:
        """Of each joint; and which of them explain any forces."""
        data = check_measurements(robot, q, v, a, tau, weights=np.where(near, 0.0, weights))
        with one_blas_thread():
            parts = compress_equations(columns, data)
        return parts, np.array([0 < part.count <= part.rank for part in parts])

    parts, exact = equations()
    if (near & exact).any():
        near &= ~exact
        parts, exact = equations()
    if exact.any():
        k = int(np.argmax(exact))
        raise ShapeError(
            f"log: too short for joint {dof_names(robot)[k]!r}: the low-pass of {motion.cutoff:.3g} Hz "
            f"leaves {parts[k].count} independent states, too few to tell right parameters from "
            "wrong ones; give a longer log, or a higher cutoff"
        )
    weights[near] = 0.0
    noise = np.array([np.sqrt(part.rest / max(1, part.count - part.rank)) for part in parts])
    least = LEAST_NOISE * np.sqrt(np.mean([part.scale for part in parts])) or LEAST_NOISE
    return weights / np.maximum(noise, least), noise


# ==== replay ======================================================================================
# A log beside the simulation of its start with its torques: the motions, and the page of both.

STATES = 200  # states of a log at which its lowest point is looked for
TOGETHER = 8  # joints whose unexplained torques share a plot, beside its own: as many as one tells apart

FORCE = "N m | N"

SERVO = 4.0  # samples of the log in which servos bring joints without efforts to where the log has them


def simulate_log(log: Trajectory, ground: Ground | bool | None = None, progress: bool = False) -> Trajectory:
    """Simulate the robot of a log from the log's first state with the log's torques.

    Joints without efforts follow the log by stiff servos. The simulation is otherwise open-loop: it drifts
    away from the log, sooner for a worse model, and if the motion is unstable for any model.

    Args:
        log: a trajectory with its robot.
        ground: as in :func:`robokit.simulate`; None gives a floating robot a horizontal plane at the height
            of its lowest point in the log; False omits the ground.
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
        # The horizontal plane that the robot's lowest point reaches in the log.
        chosen = np.unique(np.linspace(0, len(log.q) - 1, STATES).astype(int))
        ground = Ground(height=float(ground_gaps(robot, log.q[chosen], Ground()).min()))
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
        log: a log from :func:`robokit.read_log`.
        path: path of the page; ".html" is appended if it has no suffix.
        torques: the result of :func:`robokit.unexplained_torques`, or None.
        run: the result of :func:`simulate_log`, or None.

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
