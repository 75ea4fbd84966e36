"""Identification from a log: smoothed, thinned, fitted, and judged on what the fit has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from robokit.arguments import real_number
from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import short_repr
from robokit.errors import ShapeError
from robokit.identification import Identification, identify
from robokit.identification.estimate import LEAST_NOISE, UNEXPLAINED_SHARE, shorten
from robokit.identification.measurements import (
    FRICTION,
    MOTOR,
    Columns,
    check_measurements,
    compress_equations,
    dof_names,
    one_blas_thread,
)
from robokit.logs.torques import SmoothMotion, model_forces, smooth
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory

SHARE = 0.75
"""Fraction of a log that is fitted; the rest validates the fit, unless another log does."""

CARRIED_SHARE = 0.1
"""Largest force on a floating base that counts as flying, as a fraction of the robot's weight."""

LEAST_SHARE = 0.1
"""Least fraction of a joint's forces that is used even if the others are next to reversals."""

GOOD_CONDITION = 100.0
"""Condition number of the scaled equations up to which a motion excites its combinations well.

Source: M. Gautier, W. Khalil, 1992, who look for motions below it.
"""


@dataclass(frozen=True, eq=False)
class LogIdentification:
    """The result of :func:`identify_log`.

    Attributes:
        found: the estimate: its ``robot``, ``summary()``, ``plot(path)``.
        names: of the degrees of freedom with measured forces, n of them.
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
        ShapeError: no efforts, too few samples, another robot in ``validation``, or a floating base that
            something carries.
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
        raise ShapeError("log: no efforts, from which alone masses can be told")
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
            warnings.warn(
                f"identify_log: {left:.3g} of {size:.3g} of the force of joint {names[k]!r} is unexplained; "
                "look at contacts, and at signs and units of its position and effort",
                stacklevel=2,
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
    """Check that no external force acts on a floating base.

    Raises:
        ShapeError: something does, which the log has no forces of.
    """
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
    is what each joint's own equations leave.
    """
    step = float(motion.t[1] - motion.t[0])
    reach = max(1, int(0.5 / (motion.cutoff * step)))
    weights = np.ones((len(chosen), robot.nv))
    for joint in robot.joints:
        if joint.name not in motion.efforts and joint.name != FLOATING_BASE:
            weights[:, joint.v_slice] = 0.0
            continue
        for k in range(joint.v_slice.start, joint.v_slice.stop if joint.name != FLOATING_BASE else 0):
            turns = np.flatnonzero(np.diff(np.sign(motion.v[:, k])) != 0)
            near = np.searchsorted(turns, chosen + reach) - np.searchsorted(turns, chosen - reach) > 0
            # A joint that hardly moves turns all the time: its friction is not to be told anyway.
            if np.count_nonzero(~near) > LEAST_SHARE * len(near):
                weights[near, k] = 0.0
    q, v, a, tau = (x[chosen] for x in (motion.q, motion.v, motion.a, motion.tau))
    columns = Columns(robot, (*FRICTION, MOTOR))
    with one_blas_thread():
        parts = compress_equations(columns, check_measurements(robot, q, v, a, tau, weights=weights))
    noise = np.array([np.sqrt(part.rest / max(1, part.count - part.rank)) for part in parts])
    least = LEAST_NOISE * np.sqrt(np.mean([part.scale for part in parts])) or LEAST_NOISE
    return weights / np.maximum(noise, least), noise
