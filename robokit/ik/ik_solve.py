"""The public function: arguments in, result out."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.conventions import LARGEST_ANGLE
from robokit.engine import ENGINES
from robokit.errors import ShapeError, WrongType
from robokit.ik.ik_result import InverseKinematicsResult, batch_result, single_result
from robokit.ik.ik_search import Search
from robokit.ik.ik_targets import read_targets
from robokit.ik.lm_step import REACHED
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
    """A configuration that puts points or frames of links where they are wanted.

    Levenberg-Marquardt steps on the robot's manifold, damped by the error; the same for all rows of a batch
    at once. Joints that support no target keep their values in q0. A floating base is free to move; its
    joint has no limits. Where a start leads to a local minimum, others follow. Where none meets the targets,
    q is the nearest that was found and ``converged`` is False.

    Source: Nielsen 1999, Sugihara 2011 (the steps); RBDA sections 2.3, 4.1 (Jacobians).
    Cost: O(n) a step and the solution of the smaller of (rows of the error, joints) equations.

    Args:
        robot: the robot.
        targets: {link: target}: a position (3,) in the world [m]; or a pose: (R (3, 3), p (3,)),
            (quat_wxyz (4,), p (3,)), an array (4, 4) or (3, 4), or (7,) [quat_wxyz, position]. Each may be a
            batch with a leading B.
        q0: where to start, (nq,) or (B, nq). By default the neutral configuration, with joints whose limits
            exclude zero in the middle of their range. A joint of q0 outside its limits starts at the nearest
            of them.
        limits: keep to the joints' position limits, and to those of the joints that follow them.
        at: {link: point (3,) in the link's frame [m]} that is to be at the target's position; the link's
            origin by default.
        weights: {link: number, or (3,) for a position in world axes, or (6,) for a pose, [angular; linear] in
            the target's axes}; 1 by default. What has weight 0 is left free. "center of mass" stands for the
            target of that name.
        center_of_mass: target of the centre of mass in the world, (3,) or (B, 3) [m].
        posture: configuration that is preferred among those that meet the targets, (nq,): the weighted sum of
            all errors is minimised first, that of the targets alone from there. Joints of several
            coordinates, the floating base too, have none.
        posture_weight: of a joint's distance from it, a number or (nv,).
        starts: starts to try: q0, then, where that fails, random ones within the limits, of which the first
            to arrive is taken. Where q must stay near q0, as in control that follows a moving target, take 1.
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
    asked = read_targets(robot, targets, at, weights, center_of_mass)
    if asked.com and robot.samples is not None:
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
    search = Search(robot, asked, limits, tolerance, iterations, engine == "python")
    start = search.solver.configuration("q0", default_start(robot, limits) if q0 is None else q0)
    start = search.solver.within(start, limits)
    count = check.batch_size(["q0", "targets"], [start, asked.goals])
    if posture is not None:
        search.prefer(search.solver.configuration("posture", posture), posture_weight)
    if count is None:
        q, state = search.run(start, asked.goals)
        if starts == 1 or state[2] == REACHED:
            return single_result(asked, q, state, 1, tolerance)
        q, state = q[None], state[None]
    else:
        q, state = search.run_many(
            np.broadcast_to(start, (count, robot.nq)),
            np.broadcast_to(asked.goals, (count, asked.goals.shape[-1])),
        )
    rng = check.random_generator("seed", seed)
    tried = search.retry(q, state, np.atleast_2d(start), np.atleast_2d(asked.goals), starts, rng)
    if count is None:
        return single_result(asked, q[0], state[0], int(tried[0]), tolerance)
    return batch_result(asked, q, state, tried, tolerance)


def default_start(robot: Robot, limits: bool) -> np.ndarray:
    """The neutral configuration, with joints whose limits exclude zero in the middle of their range, (nq,).

    Where such a range ends on one side only, at that end.

    Args:
        robot: the robot.
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
