"""simulate: one robot through time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.arguments import check_call, not_a_robot
from robokit.errors import ShapeError, SimulationError, WrongType
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator, Motions, PrescribedMotion, actuators_of, motions_of, with_rotors
from robokit.sim.contact_state import size_of
from robokit.sim.distances import CollisionPairs
from robokit.sim.force_elements import pushes_of, springs_of
from robokit.sim.ground import Ground
from robokit.sim.loop_closure import closed_start
from robokit.sim.motion import floats
from robokit.sim.run_inputs import RunInputs, set_up
from robokit.sim.run_loop import Controller, Run, warn_of, warn_of_whips
from robokit.sim.starts import check_coordinates, checked_starts, numbers
from robokit.sim.steppers import SPIN, fastest_spin, in_blocks
from robokit.sim.trajectory import Trajectory

# ==== the same run with half the step =============================================================
# How far a run can be trusted: it is taken once more with half the step, and the two are compared.

AGREEMENT = 0.01
"""Distance of the centres of mass up to which the runs agree, over the robot's size."""


def with_rows_twice(actuators: Sequence[Actuator], steps: int) -> list[Actuator]:
    """The same actuators for twice the steps: targets with one row per step have each row twice."""
    out = []
    for one in actuators:
        changed: dict[str, Any] = {}
        for name in ("target", "velocity", "feedforward"):
            value = getattr(one, name, None)
            if isinstance(value, np.ndarray | list | tuple) and np.ndim(value) > 1 and len(value) == steps:
                changed[name] = np.repeat(np.asarray(value), 2, axis=0)
        out.append(replace(one, **changed) if changed else one)
    return out


def compare(run: Trajectory, finer: Trajectory) -> dict[str, Any]:
    """What half the step changes.

    Args:
        run: the run.
        finer: the same with half the step, and recorded at the same times, as far as it came.

    Returns:
        dt of the finer run [s]; largest distance of the centres of mass and that at the end [m]; the robot's
        size [m]; the time until which they agree within AGREEMENT of it [s]; with a ground the time of the
        first contact [s] and the largest normal force of a step [N], or None, and how much they change (the
        force relative to the larger); "stopped", the finer run's reason to stop early, or None; all
        of it in "words".
    """
    robot = run.program.robot if run.program is not None else run.robot
    assert robot is not None
    n = min(len(run), len(finer))
    apart = np.linalg.norm(centers(robot, run.q[:n]) - centers(robot, finer.q[:n]), axis=1)
    size = size_of(robot)
    far = np.flatnonzero(~(apart <= AGREEMENT * size))
    last = int(far[0]) - 1 if len(far) else n - 1
    found: dict[str, Any] = {
        "dt": finer.summary["dt"],
        "center_of_mass_largest": float(apart.max()),
        "center_of_mass_end": float(apart[-1]),
        "size": size,
        "agrees_until": float(run.t[max(last, 0)]),
        "agrees": last == len(run) - 1,
        "stopped": finer.summary["stopped"]["reason"] if "stopped" in finer.summary else None,
    }
    if run.ground is not None:
        (touched, again), (force, other) = zip(*(_contact(x) for x in (run, finer)), strict=True)
        both = touched is not None and again is not None
        found |= {
            "first_contact": touched,
            "first_contact_change": again - touched if both else None,
            "peak_force": force,
            "peak_force_change": (other - force) / max(force, other) if force and other else None,
        }
    found["words"] = words(found)
    return found


def words(estimate: Mapping[str, Any]) -> str:
    """The same in a line."""
    largest, end = (1e3 * estimate[f"center_of_mass_{k}"] for k in ("largest", "end"))
    text = f"half the step moves the centre of mass by up to {largest:.2g} mm ({end:.2g} mm at the end)"
    if estimate.get("first_contact_change") is not None:
        text += f", the first contact by {1e3 * estimate['first_contact_change']:.2g} ms"
    if estimate.get("peak_force_change") is not None:
        text += f", the peak force by {100 * estimate['peak_force_change']:.2g} %"
    if estimate["stopped"]:
        text += f"; it stopped early: {estimate['stopped'].rstrip('.')}"
    until = "throughout" if estimate["agrees"] else f"until {estimate['agrees_until']:.4g} s"
    return f"{text}; within {100 * AGREEMENT:g} % of the robot's size {until}"


def centers(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Centres of mass of states (T, nq), (T, 3) [m]; 0 of a robot without mass."""
    if not robot.total_mass:
        return np.zeros((len(q), 3))
    return in_blocks(lambda qs: list(center_of_mass(robot.tree, robot.split_q(qs))), 3, q)


def _contact(run: Trajectory) -> tuple[float | None, float]:
    """(time of the first contact or None, largest normal force of a step)."""
    facts = run.step_facts
    assert facts is not None
    total = facts.normal.sum(axis=1)
    steps = np.flatnonzero(total > 0.0)
    middles = 0.5 * (facts.edges[1:] + facts.edges[:-1]) * run.summary["dt"]
    time = float(middles[steps[0]]) if len(steps) else None
    return time, float(total.max(initial=0.0))


# ==== one run =====================================================================================


def simulate(
    robot: Robot,
    q0: Any = None,
    v0: Any = None,
    duration: float = 1.0,
    dt: float | None = None,
    ground: Ground | bool | None = None,
    controller: Controller | None = None,
    integrator: str | None = None,
    gravity: Sequence[float] | None = None,
    record_every: int | None = None,
    joint_damping: float | None = None,
    progress: bool = False,
    actuators: Actuator | Sequence[Actuator] | None = None,
    pushes: Any = None,
    self_collision: CollisionPairs | bool | None = None,
    accuracy: float | None = None,
    estimate: bool = False,
    reproducible: bool | None = None,
    springs: Any = None,
    motions: Any = None,
) -> Trajectory:
    """Simulate a robot: passive or controlled motion, in free space or falling on a ground.

    Damping, dry friction and position limits of the description act on the joints. Mimic joints act if the
    robot was loaded with ``mimic="couple"``. With a ground, bodies of the robot also collide with each other.
    Joints that close loops act, and loops that are open at the start are closed first
    (:func:`robokit.close_loops`). Ctrl-C ends the simulation and returns the motion so far, with
    ``summary["interrupted"]`` set.

    Args:
        robot: the robot.
        q0: configuration at the start, (nq,); neutral by default.
        v0: velocity at the start, (nv,); zero by default.
        duration: [s]; rounded to whole steps.
        dt: time step [s]; with a ground at most 4 ms. None: 1 ms, or less if light links or a fast spin at
            the start need it (``summary["dt"]``; see robokit.sim.steppers).
        ground: ``rk.Ground(...)``, True for one with default values, None for none.
        controller: (t, q, v) -> joint forces (nv,) [N m | N], held over a step. It is evaluated for the
            middle of the step in which it acts: t, q and v are predicted half a step ahead
            (robokit.sim.run_loop), which makes the motion second-order accurate. On a floating
            base, the forces are an external wrench.
        integrator: "contact" (default with a ground or self-collision), "rkmk4" (default without),
            "energy_momentum" or "midpoint"; see robokit.sim.integrators.
        gravity: (3,) in world axes [m/s^2]; the robot's own by default.
        record_every: steps between recorded states; by default those of about 5 ms. The last state is
            recorded always.
        joint_damping: damping of joints whose description has none [N m s/rad | N s/m]; by default, with a
            ground, the inertia that the joint carries divided by 0.5 s, and without a ground none.
            ``summary["default_damping"]`` says what was used.
        progress: show a progress bar.
        actuators: ``rk.Torque(...)``, ``rk.PD(...)``, ``rk.Velocity(...)``, or a list of these. Joint forces
            of the controller on a driven joint are added to its actuator's, within its limits.
        pushes: external forces: ``rk.Push(...)``, tuples (link, wrench, point, start, duration), or a list of
            these.
        self_collision: whether bodies of the robot collide with each other: True for the pairs of
            ``rk.collision_pairs(robot)``, an edited list of pairs, or False for none. By default they do if
            there is a ground. ``summary["self_collision_pairs"]`` is their number. Without a ground, the
            integrator becomes "contact".
        accuracy: largest error of a part of a step, for "contact": dt is then the longest step (None: 4 ms,
            or the usual default if a controller, actuators or pushes act), and each step is divided into
            parts as short as the motion requires, down to dt/1024. The error is the largest difference of a
            coordinate between a part and its two halves: angles in rad, lengths relative to the robot's size;
            1e-3 is usual. ``summary`` has the numbers of parts taken and rejected, the shortest and the
            longest, and how many of the shortest missed the accuracy (robokit.contact.step_control).
        estimate: whether to repeat the run with half the step and a quarter of the accuracy, and to report
            the changes in ``summary["estimate"]`` and :meth:`Trajectory.report`: see
            robokit.sim.simulator. Controllers and targets that are functions are called again, twice as
            often.
        reproducible: whether the states are the same bits on every processor, as a row of a rollout and in
            the page (:doc:`/reproducible`); None asks the environment variable ``ROBOKIT_REPRODUCIBLE``.
        springs: ``rk.Spring(...)`` between two points, ``rk.JointSpring(...)``, or a list of these; the step
            is then that of "contact".
        motions: ``rk.PrescribedMotion(...)`` of a joint, or a list of these; the integrator is then
            "contact".

    Returns:
        the trajectory.

    Raises:
        ShapeError: an argument of the wrong shape or content, a start deep inside the ground, or one
            whose loops cannot be closed.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.
        WrongType: robot is not a Robot, controller is not callable, or estimate is neither True nor False.
        UnknownName: there is no such integrator, joint or link.
        SingularInertia: a joint moves no inertia; the error names it.
        ModelError: a joint's dry friction is below zero.
        SimulationError: the state is no longer finite, the energy has grown without a cause (see
            robokit.sim.run_loop), or the controller failed. ``.trajectory`` has the motion before,
            and its ``summary["stopped"]`` time, reason and remedy.

    Warns:
        SimulationWarning: a step too long for contact; a start past a joint's limit, with bodies that
            overlap, inside the ground, or that spins by more than 0.3 rad a step; deep penetration, steps
            that did not converge; a light link that is whipped about too fast for the step.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.05)
        >>> run.t.shape, run.q.shape
        ((11,), (11, 2))
        >>> bool(abs(run.energy.total - run.energy.total[0]).max() < 1e-9)
        True
    """
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)
    if controller is not None and not callable(controller):
        raise WrongType("controller", controller, "a function (t, q, v) -> joint forces, or None")
    if controller is not None:
        check_call("controller", controller, ("t", "q", "v"), "joint forces")
    if not isinstance(estimate, bool):
        raise WrongType("estimate", estimate, "True or False")
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if robot.samples is not None:
        raise ShapeError(
            f"robot: expected one, got {robot!r}; rk.rollout takes them all, robot.sample(k) is one of them"
        )
    q = numbers("q0", robot.neutral() if q0 is None else q0, robot.nq, robot)
    v = numbers("v0", np.zeros(robot.nv) if v0 is None else v0, robot.nv, robot)
    check_coordinates("q0", robot, q)
    held, prescribed = springs_of(springs, robot), motions_of(motions)
    put = Motions.at_start(robot, prescribed, dt)
    if put.rows is not None:
        raise ShapeError("motions: a simulation takes one motion per joint; rk.rollout takes one per row")
    q, v, closing = closed_start(robot, *put.start(q, v), put.dofs)
    drives = actuators_of(actuators)
    acting, moving = pushes_of(pushes), with_rotors(robot, drives)
    setup = set_up(
        moving,
        duration,
        dt,
        ground,
        integrator,
        record_every,
        joint_damping,
        self_collision=self_collision,
        accuracy=accuracy,
        reproducible=reproducible,
        start=(q, v),
        by_step=bool(controller is not None or drives or acting),
        springs=held,
        motions=prescribed,
    )
    program = setup.program
    buried = checked_starts(robot, program, q, v, setup.dt)

    base = controller is not None and floats(robot.tree)

    def once(
        dt: float, steps: int, every: int, drives: Sequence[Actuator], given: Sequence[PrescribedMotion]
    ) -> Run:
        more = 1, base, accuracy is not None, given
        inputs = RunInputs(moving, drives, acting, dt, steps, q[None], *more)
        if inputs.outside.rows is not None:
            raise ShapeError("pushes: a simulation takes one wrench per push; rk.rollout takes one per row")
        fitted = replace(program, given=inputs.layout, given_numbers=inputs.numbers)
        run = Run(fitted, q, v, dt, every, controller, inputs)
        run.go(steps, progress)
        return run

    run = once(setup.dt, setup.steps, setup.every, drives, prescribed)
    trajectory = run.trajectory()
    trajectory.robot = robot
    trajectory.summary |= setup.summary | closing
    if run.stop is not None:
        raise SimulationError(str(run.stop), trajectory) from run.stop.cause
    if estimate and not run.interrupted:
        twice = with_rows_twice(drives, setup.steps)
        if accuracy is not None:  # errors of parts go with the square of their length
            program = replace(program, accuracy=0.25 * accuracy)
        halved = 0.5 * setup.dt, 2 * setup.steps, 2 * setup.every
        finer = once(*halved, twice, [motion.at_half_steps(setup.dt) for motion in prescribed])
        trajectory.summary["estimate"] = compare(trajectory, finer.trajectory())
    warn_of(trajectory.summary, buried)
    if not fastest_spin(program.robot, q, v, SPIN / setup.dt)[2]:  # of that the start was warned
        warn_of_whips(trajectory)
    return trajectory
