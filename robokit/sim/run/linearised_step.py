"""Derivatives of a time step: how the next state changes with this one and with the joint forces.

Those of steps with contact come from the implicit function theorem (contact/step_derivatives.py). The step of
passive motion is differentiated along one direction (engine/passes/derivative.py), and all 3 nv directions of
a state are the rows of one batch. So the code is a few times that of a step.

A contact that opens, closes, sticks or slides changes in a jump; the derivative is that of what the step has
chosen at this state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import batch_size, check_finite, one_of
from robokit.dataclass_tools import short_repr
from robokit.dynamics.differentiate import near, velocity
from robokit.engine import ENGINES, Kernel
from robokit.engine.passes.derivative import along
from robokit.model.robot import Robot, check_robot
from robokit.sim.ground import Ground
from robokit.sim.motion.momentum_projection import floats, momentum_at_base
from robokit.sim.run.kept_steps import KeptSteps, kept_steps
from robokit.sim.starts.given_states import check_angles, check_quaternions, states
from robokit.sim.starts.start_warnings import BURIED, check_starts
from robokit.sim.step.energy_momentum import kept_energy
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.linear_steps import LinearSteps

ROWS = 30_000
"""Directions that are computed at once, about."""


class StepDerivatives(NamedTuple):
    """A step and its derivatives; x = (q, v) in the tangent space, nv + nv numbers.

    Attributes:
        q: configuration after the step, (nq,) or (B, nq).
        v: velocity after the step, (nv,) or (B, nv).
        A: derivative of the next x with respect to x, (2 nv, 2 nv) or (B, 2 nv, 2 nv).
        B: derivative of the next x with respect to tau, (2 nv, nv) or (B, 2 nv, nv).
    """

    q: np.ndarray
    v: np.ndarray
    A: np.ndarray
    B: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def step_derivatives(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any = None,
    ground: Ground | bool | None = None,
    dt: float | None = None,
    *,
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    actuators: Any = None,
    springs: Any = None,
    engine: str | None = None,
) -> StepDerivatives:
    """One time step of the simulator and its derivatives: A and B of linear control.

    The step is the first that :func:`simulate` takes from (q, v). Derivatives are in tangent spaces on both
    sides, along ``robot.integrate(q, dq)``. At a switch, where a contact opens or begins to slide, they are
    those of the side that the step is on, and never NaN; where several points are at a switch at once, as
    corners that just touch, no single side need be that of every direction. Loops are not closed first, as
    :func:`simulate` does with a start that leaves them open: A holds for every small change of a state that
    the loops allow, also for those that open them, up to terms of second order in dt. Of a state whose
    velocities open loops it is only an approximation.

    A step with contact is solved to rounding here, a run's to its tolerance (1e-3 of its impulses, squared by
    the last correction). Momentum and energy, which the end of a step corrects by terms of third order in dt,
    are not corrected in A and B. Targets of actuators are held.

    Source: contact/step_derivatives.py; else the step (robokit.sim.step), forward mode.  Cost: with contact
    about that of a step, else 3 nv times that of a few steps.

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
        v: velocity, (nv,) or (B, nv).
        tau: joint forces held over the step, (nv,) or (B, nv); zero by default. On a floating base the first
            six are a wrench from outside.
        ground, dt, integrator, joint_damping, self_collision: as of :func:`simulate`.
        springs: as of :func:`simulate`.
        actuators: as of :func:`simulate`, of steps with contact; tau is added to theirs, within their effort.
        engine: as in :func:`rnea`.

    Returns:
        the next state (q, v), A and B.

    Raises:
        ShapeError: a wrong shape or content, a start deep inside the ground, or actuators and a step without
            contact.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.
        ModelError: a joint's dry friction is below zero.
        UnknownName: no such integrator or engine.
        SingularInertia: a joint moves no inertia.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> step = rk.step_derivatives(robot, [0.5, 0.2], [0, 0], dt=0.01, integrator="contact")
        >>> step.A.shape, step.B.shape
        ((4, 4), (4, 2))
    """
    given, single = checked_states(robot, q, v, tau, engine)
    kept = kept_steps(
        robot, engine, actuators, dt=dt, ground=ground, integrator=integrator, joint_damping=joint_damping,
        self_collision=self_collision, springs=springs,
    )  # fmt: skip
    setup = kept.setup
    program = setup.program
    if kept.contact:
        found = _by_implicit_function(kept, given, engine, joint_damping, self_collision)
        return StepDerivatives(*(x[0] for x in found)) if single else found
    if floats(robot.tree):
        # As simulate takes them where there are any: nothing keeps the momentum against them.
        program = program.with_given(replace(program.given, base=True), program.given_numbers)
    parameters = program.parameters(setup.dt)
    rows = [x if len(x) != 1 else x[0] for x in given] + [parameters]
    count = batch_size(["q", "v", "tau", "robot"], rows)
    count = 1 if count is None else count
    found = _in_blocks(program, given, parameters, count, engine)
    return StepDerivatives(*(x[0] for x in found)) if single else found


def checked_states(
    robot: Robot, q: Any, v: Any, tau: Any, engine: str | None
) -> tuple[list[np.ndarray], bool]:
    """q, v and tau, (B or 1, n) each, and whether one state was given."""
    check_robot(robot)
    given = [
        states("q", q, robot.nq, 0),
        states("v", v, robot.nv, 0),
        states("tau", np.zeros(robot.nv) if tau is None else tau, robot.nv, 0),
    ]
    single = robot.samples is None and all(np.ndim(x) == 1 for x in (q, v))
    single = single and (tau is None or np.ndim(tau) == 1)
    for name, x in zip(("q", "v", "tau"), given, strict=True):
        check_finite(name, x)
    check_quaternions("q", robot, given[0])
    check_angles("q", robot, given[0])
    if engine is not None:
        one_of("engine", engine, ENGINES)
    return given, single


def _by_implicit_function(
    kept: KeptSteps, given: Sequence[np.ndarray], engine: str | None, joint_damping: Any, self_collision: Any
) -> StepDerivatives:
    """All states, one after the other; with inertias or a ground of its own each has its own numbers."""
    nv = kept.robot.nv
    rows = list(each_row(kept, given, engine, joint_damping, self_collision))
    found = _room(kept.robot, len(rows))
    for k, (own, state) in enumerate(rows):
        with own.steps() as steps:
            steps.wanted = own.wanted(*state[:2])
            found.q[k], found.v[k], slopes = steps(*state)
            check_depth(kept, steps, given[0])
            found.A[k], found.B[k] = slopes[:, : 2 * nv], slopes[:, 2 * nv :]
    return found


def check_depth(kept: KeptSteps, steps: LinearSteps, q: np.ndarray) -> None:
    """Raise ShapeError where a start is deep inside the ground, which a step would have found."""
    if steps.depth() > BURIED:
        check_starts(kept.setup.program, q, "q")


def each_row(
    kept: KeptSteps, given: Sequence[np.ndarray], engine: str | None, joint_damping: Any, self_collision: Any
) -> Iterator[tuple[KeptSteps, list[np.ndarray]]]:
    """The step of each row of a batch, and the row's arrays.

    Args:
        kept: of the whole batch.
        given: q, v, tau and others of nv numbers, (B or 1, n) each.
        engine, joint_damping, self_collision: of the step.
    """
    program, dt = kept.setup.program, kept.setup.dt
    robot, ground = program.robot, program.ground
    names = ["q", "v", "tau", "dq", "dv"][: len(given)]
    sizes = [x if len(x) != 1 else x[0] for x in given]
    count = batch_size([*names, "robot"], [*sizes, program.parameters(dt)])
    for k in range(1 if count is None else count):
        own = kept
        if kept.rows:
            alone = robot if robot.samples is None else robot.sample(k)
            own = KeptSteps(
                alone,
                {
                    "dt": dt, "ground": None if ground is None else ground.row(k), "integrator": program.name,
                    "joint_damping": joint_damping, "self_collision": self_collision,
                    "springs": kept.springs,
                },
                engine,
                (),
            )  # fmt: skip
        yield own, [x[k if len(x) > 1 else 0] for x in given]


def _room(robot: Robot, count: int) -> StepDerivatives:
    """Arrays for so many states."""
    nv = robot.nv
    return StepDerivatives(
        np.empty((count, robot.nq)),
        np.empty((count, nv)),
        np.empty((count, 2 * nv, 2 * nv)),
        np.empty((count, 2 * nv, nv)),
    )


def _in_blocks(
    program: Program, given: Sequence[np.ndarray], parameters: np.ndarray, count: int, engine: str | None
) -> StepDerivatives:
    """All states, as many at once as have ROWS directions."""
    robot = program.robot
    nv = robot.nv
    found = _room(robot, count)
    carried = np.zeros(program.layout.size)
    kernel = step_along(program)
    block = max(1, ROWS // max(3 * nv, 1))
    # Without degrees of freedom there is no direction, and one row says what the next state is.
    width = max(3 * nv, 1)
    directions = np.eye(width, 3 * nv)
    run = kernel.python if engine == "python" else kernel
    for start in range(0, count, block):
        n = min(block, count - start)

        def each(x: np.ndarray, part: slice = slice(start, start + n)) -> np.ndarray:
            """The rows of a part, one for each direction."""
            some = np.atleast_2d(x)
            return np.repeat(some[part], width, axis=0) if len(some) > 1 else some[0]

        changes = np.tile(directions, (n, 1))
        moves = [np.ascontiguousarray(changes[:, k * nv : (k + 1) * nv]) for k in range(3)]
        q, v, tau = (each(x) for x in given)
        q1, v1, dq, dv = run(q, v, tau, *moves, carried, each(parameters))
        part = slice(start, start + n)
        found.q[part], found.v[part] = q1[::width], v1[::width]
        changed = np.concatenate([dq, dv], axis=1).reshape(n, width, 2 * nv)[:, : 3 * nv]
        found.A[part] = np.swapaxes(changed[:, : 2 * nv], 1, 2)
        found.B[part] = np.swapaxes(changed[:, 2 * nv :], 1, 2)
    return found


def _text_near(program: Program) -> Any:
    """The text of such a kernel."""
    robot = program.robot

    def text(q: Any, v: Any, tau: Any, dq: Any, carried: Any, parameters: Any, *more: Any) -> Any:
        """A step from near q; what it is handed follows from the state, as at the start of a run."""
        start = near(robot, q, dq)
        kept = _first_carried(program, start, v, carried, parameters)
        return program.text(start, v, tau, [0.0] * program.entries, kept, parameters, *more)[:2]

    return text


def step_along(program: Program) -> Kernel:
    """The kernel of a step and its derivative along a direction (dq, dv, dtau)."""
    robot, numbers = program.robot, program.parameters(1.0).shape[-1]
    return program.built(
        "step_along",
        lambda bare: _text_along(bare, numbers),
        inputs=[("dq", robot.nv), ("dv", robot.nv), ("dtau", robot.nv)],
        outputs=[
            ("q_next", (robot.nq,)),
            ("v_next", (robot.nv,)),
            ("dq_next", (robot.nv,)),
            ("dv_next", (robot.nv,)),
        ],
    )


def _text_along(program: Program, numbers: int) -> Any:
    """The text of such a kernel, whose parameters are so many numbers."""
    robot, given = program.robot, program.given.inputs
    nq, nv = robot.nq, robot.nv
    sizes = [("q", nq), ("v", nv), ("tau", nv), ("dq", nv), ("carried", program.layout.size)]
    sizes += [("parameters", numbers), *given]
    derived = along(_text_near(program), sizes, [("q", (nq,)), ("v", (nv,))], [3, 1, 2])

    def text(
        q: Any, v: Any, tau: Any, dq: Any, dv: Any, dtau: Any, carried: Any, parameters: Any, *more: Any
    ) -> Any:
        still = [0.0] * nv
        values = [q, v, tau, still, carried, parameters, *more]
        (q1, v1), (rate, change) = derived(*values, dq, dv, dtau)
        return [q1, v1, velocity(robot, q1, rate), change]

    return text


def _first_carried(program: Program, q: Any, v: Any, carried: Any, parameters: Any) -> list[Any]:
    """Carried numbers with the momentum and the energy of a state."""
    layout, robot = program.layout, program.robot
    kept = list(carried)
    if layout.momentum or layout.energy:
        tree = program.problem(parameters).tree
        state = robot.split_q(q), robot.split_v(v)
        if layout.momentum:
            kept[:6] = momentum_at_base(tree, *state)
        if layout.energy:
            kept[-1] = kept_energy(tree, *state)
    return kept
