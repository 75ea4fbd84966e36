"""The public function: arguments in, result out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.conventions import LARGEST_ANGLE
from robokit.engine import ENGINES
from robokit.errors import ShapeError, WrongType
from robokit.ik.solver import Search
from robokit.ik.step import REACHED, STALLED, STATE
from robokit.ik.targets import TargetArrays, read_targets
from robokit.model.robot import Robot, check_robot


def inverse_kinematics(
    robot: Robot,
    targets: Any,
    q0: Any = None,
    limits: bool = True,
    *,
    at: Any = None,
    weights: Any = None,
    center_of_mass: Any = None,
    posture: Any = None,
    posture_weight: Any = 0.1,
    starts: int = 20,
    seed: Any = 0,
    tolerance: float = 1e-6,
    iterations: int = 100,
    engine: str | None = None,
) -> InverseKinematicsResult:
    """A configuration that places points or frames of links at targets.

    Levenberg-Marquardt steps on the robot's manifold, damped by the error, for all rows of a batch at once.
    Joints that do not move any target keep their values in q0. A floating base is free to move; its joint has
    no limits. If a start leads to a local minimum, other starts follow. If none meets the targets, q is the
    nearest configuration that was found, and ``converged`` is False.

    Source: Nielsen 1999, Sugihara 2011 (the steps); RBDA sections 2.3, 4.1 (Jacobians).
    Cost: O(n) a step and the solution of the smaller of (rows of the error, joints) equations.

    Args:
        robot: the robot.
        targets: {link: target}: a position (3,) in the world [m]; or a pose: (R (3, 3), p (3,)),
            (quat_wxyz (4,), p (3,)), an array (4, 4) or (3, 4), or (7,) [quat_wxyz, position]. Each may be a
            batch with a leading B.
        q0: start, (nq,) or (B, nq). By default the neutral configuration, with joints whose limits exclude
            zero in the middle of their range. A joint of q0 outside its limits starts at the nearest limit.
        limits: whether to respect the joints' position limits, and those of the joints that follow them.
        at: {link: point (3,) in the link's frame [m]} that is to be at the target's position; the link's
            origin by default.
        weights: {link: number, or (3,) for a position in world axes, or (6,) for a pose, [angular; linear] in
            the target's axes}; 1 by default. An axis of weight 0 is free. The key "center of mass" is for
            the target of the centre of mass.
        center_of_mass: target of the centre of mass in the world, (3,) or (B, 3) [m].
        posture: preferred configuration among those that meet the targets, (nq,): the weighted sum of all
            errors is minimised first, then that of the targets alone, starting from there. It does not apply
            to joints of several coordinates, such as a floating base.
        posture_weight: weight of a joint's distance from the posture, a number or (nv,).
        starts: number of starts: q0 and, if it fails, random ones within the limits until one succeeds. Use 1
            if q must stay near q0, as in a control loop that follows a moving target.
        seed: of the random starts: a whole number or a generator of NumPy.
        tolerance: largest error of a target that is met [m | rad].
        iterations: steps from each start, at most.
        engine: as in :func:`rnea`.

    Returns:
        q and the errors that are left, (nq,) or (B, nq).

    Raises:
        UnknownName: no such link.
        ShapeError: an argument of a wrong shape or content, or no target.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.
        WrongType: an argument of a wrong type.
        SingularInertia: a target of the centre of mass where nothing that moves has mass.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("arm"))
        >>> hand = robot.link_names[-1]
        >>> found = rk.inverse_kinematics(robot, {hand: (0.4, 0.2, 0.5)})
        >>> found.converged
        True
        >>> rk.forward_kinematics(robot, found.q)[hand][1].round(3)
        array([0.4, 0.2, 0.5])
    """
    check_robot(robot)
    arrays = read_targets(robot, targets, at, weights, center_of_mass)
    if arrays.com and robot.samples is not None:
        raise ShapeError("center_of_mass: the robot has samples of inertias; take one with robot.sample(k)")
    if not isinstance(limits, bool):
        raise WrongType("limits", limits, "True or False")
    if engine is not None:
        check.one_of("engine", engine, ENGINES)
    starts = check.whole_number("starts", starts, 1)
    iterations = check.whole_number("iterations", iterations, 1)
    tolerance = check.real_number("tolerance", tolerance, above=0.0)
    if seed.__class__ is not int or seed < 0:
        seed = check.random_generator("seed", seed)
    search = Search(robot, arrays, limits, tolerance, iterations, engine == "python")
    start = search.solver.configuration("q0", default_start(robot, limits) if q0 is None else q0)
    start = search.solver.within(start, limits)
    count = check.batch_size(["q0", "targets"], [start, arrays.goals])
    if posture is not None:
        search.prefer(search.solver.configuration("posture", posture), posture_weight)
    if count is None:
        q, state = search.run(start, arrays.goals)
        if starts == 1 or state[2] == REACHED:
            return single_result(arrays, q, state, 1, tolerance)
        q, state = q[None], state[None]
    else:
        q, state = search.run_many(
            np.broadcast_to(start, (count, robot.nq)),
            np.broadcast_to(arrays.goals, (count, arrays.goals.shape[-1])),
        )
    rng = check.random_generator("seed", seed)
    tried = search.retry(q, state, np.atleast_2d(start), np.atleast_2d(arrays.goals), starts, rng)
    if count is None:
        return single_result(arrays, q[0], state[0], int(tried[0]), tolerance)
    return batch_result(arrays, q, state, tried, tolerance)


def default_start(robot: Robot, limits: bool) -> np.ndarray:
    """The neutral configuration, with joints whose limits exclude zero in the middle of their range, (nq,).

    Where such a range ends on one side only, at that end.

    Args:
        limits: whether position limits count.
    """
    q = robot.neutral()
    for joint in robot.joints if limits else ():
        if joint.q_slice.stop == joint.q_slice.start + 1:
            low, high = robot.position_range(joint)
            if not low <= 0.0 <= high:
                bounded = max(abs(low), abs(high)) < LARGEST_ANGLE
                q[joint.q_slice] = 0.5 * (low + high) if bounded else min(max(0.0, low), high)
    return q


# ---- the result --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InverseKinematicsResult:
    """Configurations, and their remaining errors.

    Attributes:
        q: configuration, (nq,) or (B, nq), within the limits.
        converged: whether all targets are met within the tolerance, bool or (B,).
        error: the largest of the errors below [m | rad], float or (B,).
        position_error: {target: distance [m]}, float or (B,) each; axes of weight 0 do not count.
        rotation_error: {link: angle [rad]} for targets with an orientation, float or (B,) each.
        iterations: number of iterations from the start that led to q, int or (B,).
        starts: number of starts that were tried, int or (B,).
        message: which target is not met and why; "" if all are met.
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
    arrays: TargetArrays, q: np.ndarray, state: np.ndarray, tried: int, tolerance: float
) -> InverseKinematicsResult:
    """The result of one problem."""
    numbers = state.tolist()
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for (name, angle), x in zip(arrays.parts, numbers[STATE:], strict=True):
        errors[angle][name] = 4.0 * math.atan(x / 4.0) if angle else x
    largest = max((*errors[0].values(), *errors[1].values()))
    met = numbers[2] == REACHED
    message = "" if met else _missed(arrays, numbers, tried, tolerance)
    return InverseKinematicsResult(q, met, largest, *errors, int(numbers[3]), tried, message)


def batch_result(
    arrays: TargetArrays, q: np.ndarray, state: np.ndarray, tried: np.ndarray, tolerance: float
) -> InverseKinematicsResult:
    """The result of many problems."""
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    largest = np.zeros(len(q))
    for (name, angle), x in zip(arrays.parts, state.T[STATE:], strict=True):
        errors[angle][name] = 4.0 * np.arctan(x / 4.0) if angle else x.copy()
        largest = np.maximum(largest, errors[angle][name])
    met, message = state[:, 2] == REACHED, ""
    if not met.all():
        row, count = int(met.argmin()), int(np.count_nonzero(~met))
        missed = _missed(arrays, state[row].tolist(), int(tried[row]), tolerance)
        message = f"{count} of {len(q)} not met; row {row}: {missed}"
    return InverseKinematicsResult(q, met, largest, *errors, state[:, 3].astype(int), tried, message)


def _missed(arrays: TargetArrays, state: list[float], tried: int, tolerance: float) -> str:
    """Which targets were missed, by how much and why, after so many starts."""
    size, (name, angle) = max(zip(state[STATE:], arrays.parts, strict=True))
    left = f"{4.0 * math.atan(size / 4.0):.3g} rad" if angle else f"{size:.3g} m"
    why = "it was still improving: allow more iterations"
    if state[2] == STALLED:
        found = "nothing better is near" if tried == 1 else f"none of {tried} starts came nearer"
        why = f"{found}: it is out of reach, or more starts may find a way (starts={max(20, 5 * tried)})"
    return f"target of {name!r} missed by {left} (tolerance {tolerance:g}); {why}"
