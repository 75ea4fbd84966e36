"""A step with contacts and its derivatives, one state after the other.

Derivatives are those of the problem that a step solves, so it is solved to TIGHT here. A run stops earlier:
its steps end as near to these as their tolerance is. What only moves freely ends as in a run, bit for bit.
"""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Hashable, Iterator, MutableSequence, Sequence
from dataclasses import replace
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import batch_size, check_finite, is_finite, one_of
from robokit.contact.accounts import NOTHING
from robokit.contact.bounce_derivatives import aims_kernel
from robokit.contact.constraints.motors import NEAR, SERIES
from robokit.contact.detection_derivatives import detection_derivatives_kernel
from robokit.contact.fields import DETECTION_DERIVATIVES, LINE, MOTOR, STEP_DERIVATIVES
from robokit.contact.groups import SHARE
from robokit.contact.landing_derivatives import landed_kernel
from robokit.contact.step_derivatives import derivatives_kernel, pullback_kernel
from robokit.dataclass_tools import Recent, short_repr
from robokit.dynamics.differentiate import near, velocity
from robokit.engine import ENGINES, Kernel
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.passes.derivative import along
from robokit.errors import ShapeError, UnknownName
from robokit.model.robot import Robot, check_robot
from robokit.sim.actuators import PD, Actuator, actuators_of, with_rotors
from robokit.sim.force_elements import springs_of
from robokit.sim.ground import Ground
from robokit.sim.kernel_rows import on_arrays
from robokit.sim.motion import floats
from robokit.sim.run_inputs import DrivenJoints, RunInputs, Setup, set_up
from robokit.sim.starts import buried_depth, check_coordinates, check_starts, states
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import ContactState, kept_of, step_numbers

ONE_BY_ONE = 2  # of contact_bounces
OF_PARAMETERS = "of_shape", "of_between", "of_gravity", "of_drag", "of_inertia"  # what these are worth
OF_ENDS = {"S": "end_S", "R": "end_R", "p": "end_p", "c_E": "end_E"}  # the robot and its loops' rows
TIGHT = 1e-13  # of the residual, over the impulses of the step: differences over 1e-7 then see six digits


class LinearSteps:
    """The first step of a program from given states, and the derivatives of its end by these.

    ``simulation``: the arrays of the step; ``found``: gradients with respect to parameters from the last
    pullback (STEP_PULLBACK of contact/fields.py); ``passed_on``: whether impacts were passed on in it;
    ``wanted``: motor inputs besides joint forces, (n_motors,) [N m | N]; None leaves their command.
    """

    def __init__(self, program: Program, dt: float, engine: str | None = None) -> None:
        """The arrays of steps of dt [s]; ``engine``: "python" for no machine code."""
        self.robot = program.robot
        options = {"engine": engine, "springs": program.springs.functions}
        self.simulation = ContactState(program.robot, dt, step_numbers(program, dt), **options)
        self.simulation.arrays["orders"][:] = 0  # derivatives read the pattern by rows
        self.found: dict[str, np.ndarray] = {}
        self.wanted: np.ndarray | None = None
        self.passed_on = False
        self._calls: dict[str, Any] = {}
        self._end: dict[str, np.ndarray] = {}
        self._motion: dict[str, np.ndarray] = {}
        self._of: Any = None
        self._parameters: StepParameters | None = None

    def __call__(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after a step and its derivatives by q, v and tau in tangent spaces, (2 nv, 3 nv).

        Numbers are NaN where the step has no finite end. The derivatives are written over by the next call.
        """
        closed, nv = self._taken(q, v, tau), len(v)
        if closed is None:
            return np.full(len(q), math.nan), np.full(nv, math.nan), np.full((2 * nv, 3 * nv), math.nan)
        apart = self._of_two(with_parameters=0)
        slopes = self._run(derivatives_kernel(), "next") if apart is None else apart
        slopes = slopes.reshape(2 * nv, 3 * nv)
        if self.wanted is not None and apart is None:
            # Joint forces of driven joints go through their motors: none is felt beyond the largest effort.
            x = {**self.simulation.arrays, **self.simulation.work}
            rows = np.flatnonzero(x["r_kind"][: x["n_of"][1]] == MOTOR)
            j, gain, limit = x["r_row"][rows], x["r_gain"][rows], x["r_speed_R"][rows]
            u = gain * x["y"][j]
            free = (x["r_aim"][rows] - u) / x["r_R"][rows]
            g = np.clip(free, x["r_low"][rows], x["r_high"][rows])
            slower = x["r_speed"][rows] - np.where(g < 0.0, -u, u) < limit * np.abs(g)
            slopes[:, 2 * nv + j[slower | (np.abs(g) < np.abs(free))]] = 0.0
        return *(closed or self._end_of_drift()), slopes

    def end(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) after a step, without derivatives; NaN where it has no finite end."""
        x = self.simulation.arrays
        given = float(x["tolerance"][0])
        x["keeps"][:] = NOTHING
        for tolerance in (TIGHT, given):
            x["tolerance"][:] = tolerance
            if not self._step(q, v, tau):
                return np.full(len(q), math.nan), np.full(len(v), math.nan)
            if not self.simulation.work["solved"][2]:
                break
        x["tolerance"][:] = given
        return self.simulation.arrays["q"].copy(), self.simulation.arrays["v"].copy()

    def parameters(self, kept: KeptSteps) -> StepParameters:
        """The parameters of these steps, of the cached ones ``kept``."""
        if self._parameters is None:
            self._parameters = StepParameters(kept, self)
        return self._parameters

    def depth(self) -> float:
        """How deep bodies were in each other, or in the ground, in the step that was taken last [m]."""
        x = self.simulation.work
        return float(-x["contact_gap"][: x["counts"][0]].min(initial=0.0))

    def _end_of_drift(self) -> tuple[np.ndarray, np.ndarray]:
        return self.found["q_next"].copy(), self.found["v_next"].copy()

    def pullback(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, of_q: np.ndarray, of_v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(q, v) after a step; how a number changes with q, v and tau, (3, nv), in reverse mode.

        ``of_q`` and ``of_v``, (nv,): how it changes with the next q, in the tangent space, and the next v.
        """
        nv = len(self.simulation.arrays["v"])
        closed = self._taken(q, v, tau)
        if closed is None:
            self.found = {}
            return np.full(len(q), math.nan), np.full(nv, math.nan), np.full((3, nv), math.nan)
        found = self.pulled(of_q, of_v)
        return *(closed or self._end_of_drift()), found

    def pulled(self, of_q: np.ndarray, of_v: np.ndarray, again: bool = False) -> np.ndarray:
        """Gradients with respect to q, v and tau, (3, nv), after a step that :meth:`pullback` has taken.

        ``of_q`` and ``of_v``, (nv,), are the gradients with respect to the next q and v; ``again``: nothing
        else has used the arrays since.
        """
        of_end, driven = np.array([of_q, of_v]), self.wanted is not None
        self.passed_on = bool((self._bounces() == ONE_BY_ONE).any())
        apart = self._of_two(with_parameters=1, of_end=of_end)
        if apart is None:
            found = self._run(pullback_kernel(), "of_start", of_end=of_end, again=int(again))
        else:
            found = np.tensordot(of_end, apart.reshape(2, len(of_q), 3, len(of_q)), 2)
        if driven:
            x = self.simulation.arrays
            rows = x["dof_row"][x["motor_dof"]]
            if apart is None:
                found[2, rows] = self.found["of_motor"]
            else:
                self.found["of_motor"][...] = found[2, rows]
        return found

    def _taken(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | tuple[()] | None:
        """Take a step that stops after its kick, which is in the arrays then.

        Its end where that closes loops, (); None where the kick is not finite.
        """
        x = self.simulation.arrays
        given = float(x["tolerance"][0])
        end: tuple[np.ndarray, np.ndarray] | tuple[()] = ()
        loops: dict[str, np.ndarray] = {}
        for tolerance in (TIGHT, given):
            x["tolerance"][:] = tolerance
            if self.simulation.sizes["n_loops"]:
                x["keeps"][:] = NOTHING
                if not self._step(q, v, tau):
                    break
                about_one_origin(self.simulation.arrays | self.simulation.work)
                end, loops = (x["q"].copy(), x["v"].copy()), {"end_v": x["v"].copy()}
                loops |= {to: self.simulation.work[name].copy() for name, to in OF_ENDS.items()}
            x["keeps"][:] = NOTHING - 1
            if not self._step(q, v, tau) or not self._unsettled(tolerance):
                break  # else the shift of a contact has no end: the step as a run takes it
        x["tolerance"][:] = given
        about_one_origin(self.simulation.arrays | self.simulation.work)
        if self.simulation.sizes["n_loops"]:
            self._place_loops(loops)
        if not is_finite(self.simulation.work["y"]):
            return None
        if self.simulation.work["counts"][0]:
            self._ran(detection_derivatives_kernel())
        return end

    def _unsettled(self, tolerance: float) -> bool:
        """Whether the step is to be taken as a run takes it."""
        x = self.simulation.work
        return bool(x["solved"][2]) or (tolerance == TIGHT and bool(x["landed"][1]))

    def _of_two(self, with_parameters: int, **more: Any) -> np.ndarray | None:
        """Derivatives of a step of two solutions, else None: something lands fast or bounces.

        ``more``: what the kernel is given besides.
        """
        x, aims, bounces = self.simulation.work, {}, bool(self._bounces().size)
        limited = bounces and not (x["by_group"][:, SHARE] == 1.0).all()
        if not (limited or x["landed"][0]):
            return None
        driven = {"through_motors": int(self.wanted is not None)}
        if bounces:
            found = self._apart(aims_kernel(), with_parameters=0, **driven)
            aims = {name: found[name] for name in ("aims", "aim_rates", "c_closer")}
        given = {"limited": int(limited), "with_parameters": with_parameters, **driven, **aims, **more}
        self.found = found = self._apart(landed_kernel(), **given)
        if bounces and with_parameters:
            of_fall = self._apart(aims_kernel(), with_parameters=1, of_aims=found["of_aims"], **driven)
            self.found = found | {name: found[name] + of_fall[name] for name in OF_PARAMETERS}
        return found["next"]

    def _bounces(self) -> np.ndarray:
        """Of the contacts that bounce in the step, which value of ``contact_bounces`` they have."""
        x = self.simulation.work
        values = x["contact_bounces"][: x["counts"][0]]
        return values[values > 0]

    def _apart(self, kernel: LoopKernel, **more: Any) -> dict[str, np.ndarray]:
        """The same as :meth:`_ran` of a kernel that works with copies of the step's arrays."""
        return self._ran(kernel, True, **more)

    def _place_loops(self, found: dict[str, np.ndarray]) -> None:
        """Where the kernels find them: rows in the places that they have in the kick."""
        sizes, x = self.simulation.sizes, self.simulation.work
        wanted = {a.name: a for a in STEP_DERIVATIVES if a.name.startswith("end_")}
        known = {name: each.shape for name, each in self._end.items()}
        if known != {name: tuple(a.at(sizes)) for name, a in wanted.items()}:
            self._end, self._calls = {name: a.zeros(sizes) for name, a in wanted.items()}, {}
        if not found:
            return
        rows = np.flatnonzero(x["c_kind"][: x["n_of"][0]] == LINE)
        for name, given in found.items():
            if name == "end_E":
                self._end[name][rows] = given[: len(rows)]
            else:
                self._end[name][...] = given

    def _step(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> bool:
        """One step, the first from there; whether its end is finite."""
        x = self.simulation.arrays
        self.simulation.forget()
        x["q"][:], x["v"][:] = q, v
        x["joint_forces"][:] = tau
        if self.wanted is not None:
            rows = x["dof_row"][x["motor_dof"]]
            x["motor_command"][:, 0] = self.wanted + tau[rows]
            x["joint_forces"][rows] = 0.0
        return self.simulation.take(1) == 1

    def _run(self, kernel: LoopKernel, wanted: str, **more: Any) -> np.ndarray:
        """An output of a kernel on the arrays of the step as they are, and on more."""
        self.found = self._ran(kernel, **more)
        found: np.ndarray = self.found[wanted]
        return found

    def _ran(self, kernel: LoopKernel, apart: bool = False, **more: Any) -> dict[str, np.ndarray]:
        """The arrays of a kernel that has run, but for those of the step; ``apart``: it writes to those."""
        if self._of is not self.simulation.work:
            self._of, self._calls = self.simulation.work, {}
            self._motion = {a.name: a.zeros(self.simulation.sizes) for a in DETECTION_DERIVATIVES[:1]}
        if kernel.name not in self._calls:
            of_step = self.simulation.arrays | self.simulation.work | self._end | self._motion
            taken = {a.name: of_step[a.name] for a in kernel.taken if a.name in of_step}
            copies = {name: each.copy() for name, each in taken.items()} if apart else {}
            pairs = [(each, taken[name]) for name, each in copies.items()]
            self._calls[kernel.name] = pairs, *self._runs(kernel, taken | copies)
        pairs, run, own = self._calls[kernel.name]
        for copy, each in pairs:
            copy[...] = each
        for name, given in more.items():
            own[name][...] = given
        run()
        return own

    def _runs(self, kernel: LoopKernel, of_step: dict[str, np.ndarray]) -> tuple[Any, dict[str, np.ndarray]]:
        """A function that runs a kernel on arrays of the step, and the arrays that the step has not."""
        sizes = {n: self.simulation.sizes[n] for n in kernel.sizes}
        own = {a.name: a.zeros(sizes) for a in kernel.taken if a.name not in of_step}
        given = [(of_step | own)[a.name] for a in kernel.taken]
        compiled = self.simulation.refused is None and not self.simulation.plain
        return on_arrays(kernel, sizes, given, compiled), own


def about_one_origin(x: dict[str, np.ndarray]) -> None:
    """Move the vectors of a step from the seats to its origin: derivatives move several mechanisms at once.

    ``x``: arrays of the step (contact/fields.py); those of MOTION and the places of constraints are changed.
    Seats are 0 then.
    """
    seat, I, count = x["seat"], x["I"], x["n_of"][0]
    if not seat.any():
        return
    for V, place in ((x["V"], seat), (x["S"], seat[x["dof_body"]])):
        V[:, 3:] += np.cross(place, V[:, :3])
    n = min(len(x["S"]), x["S_by_row"].shape[1])
    x["S_by_row"][:, :n] = x["S"][:n].T
    E, place = x["c_E"][:count].reshape(-1, 3, 6), seat[x["c_bodies"][:count, 1]] + x["c_arms"][:count, 1]
    E[..., :3] += np.cross(place[:, None], E[..., 3:])
    m, h = I[:, :1], 2.0 * I[:, 1:4] + I[:, :1] * seat
    outer = h[:, :, None] * seat[:, None]
    more = (h * seat).sum(1)[:, None, None] * np.eye(3) - 0.5 * (outer + outer.transpose(0, 2, 1))
    I[:, 4:] += more[:, (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)]
    I[:, 1:4] += m * seat
    x["p"] += seat
    seat[:], x["c_arms"][:] = 0.0, 0.0


# ==== step derivatives ============================================================================
# Derivatives of a time step: how the next state changes with this one, the joint forces and parameters.
#
# Those of steps with contact come from the implicit function theorem (contact/step_derivatives.py). The step
# of passive motion is differentiated along one direction (engine/passes/derivative.py), and all 3 nv
# directions of a state are the rows of one batch. So the code is a few times that of a step.
#
# A contact that opens, closes, sticks or slides changes in a jump; the derivative is that of what the step
# has chosen at this state.
#
# Parameters of a step with contacts, and what they are worth in reverse mode:
#
#     friction, restitution            of the ground, of all bodies alike
#     pair_friction, pair_restitution  between bodies
#     gravity                          (3,)
#     inertias                         (N + 1, 10), as Robot.inertial_parameters
#     target, velocity, feedforward, kp, kd   of actuators, (n,) in the order of their joints
#
# The law of a motor is linear in its target, and in its gains but for b, lag and the factor of wanted speeds
# (contact/constraints/motors.py), whose slopes are taken here.


# ---- steps that are kept ----------------------------------------------------------------------------------

KEPT = 4  # sets of arguments whose steps a robot keeps


class KeptSteps:
    """The step of a set of arguments.

    Attributes:
        setup: what the arguments make.
        robot: the robot with the rotors of its actuators.
        contact: whether the step has derivatives by the implicit function theorem.
        rows: whether inertias, or the ground, differ from row to row.
        buried: depth in the ground beyond which a start is refused [m].
        inputs: of the actuators, at the neutral configuration; None without any.
    """

    def __init__(
        self, robot: Robot, arguments: dict[str, Any], engine: str | None, actuators: Sequence[Actuator]
    ) -> None:
        """Set them up for arguments of ``simulate``; ``engine``: "python" for no machine code.

        Raises as :func:`set_up`, and ShapeError for actuators with a step without contact.
        """
        self.robot, self._actuators, self._engine = with_rotors(robot, actuators), actuators, engine
        self._given = given = dict(arguments)  # alive, as their ids may be what tells them
        self.setup: Setup = set_up(
            self.robot, 0.0, given["dt"], given["ground"], given["integrator"], None, given["joint_damping"],
            many=True, self_collision=given["self_collision"],
            springs=springs_of(given.get("springs"), self.robot),
        )  # fmt: skip
        program = self.setup.program
        self.contact, ground = program.contact, program.ground
        self.buried = buried_depth(program.robot, ground)
        self.rows = robot.samples is not None or (ground is not None and ground.rows is not None)
        self.inputs: RunInputs | None = None
        if actuators:
            if not self.contact or self.rows:
                raise ShapeError(
                    "actuators: expected a step with contact, of one robot and one ground; give a ground, or "
                    "integrator='contact'"
                )
            self.inputs = self._inputs(robot.neutral())
            program = replace(program, given=self.inputs.layout, given_numbers=self.inputs.numbers)
        self.program = program
        self._held = any(isinstance(a, PD) and a.target is None for a in actuators)
        self._free: deque[LinearSteps] = deque()

    def _inputs(self, q: np.ndarray) -> RunInputs:
        return RunInputs(self.robot, self._actuators, (), self.setup.dt, 1, q[None], 1, False)

    @contextlib.contextmanager
    def steps(self) -> Iterator[LinearSteps]:
        """Steps that no other thread works with at the same time."""
        try:
            own = self._free.pop()
        except IndexError:
            own = LinearSteps(self.program, self.setup.dt, self._engine)
        yield own
        self._free.append(own)

    def row(self, k: int) -> KeptSteps:
        """The parameters of row k, where rows differ."""
        setup, robot, ground = self.setup, self.setup.program.robot, self.setup.program.ground
        alone = robot if robot.samples is None else robot.sample(k)
        own = {"dt": setup.dt, "ground": ground and ground.row(k), "integrator": setup.program.name}
        return KeptSteps(alone, self._given | own, self._engine, ())

    def wanted(self, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """What the actuators want of a step from a state, (n,) [N m | N]; None without any."""
        return None if self.inputs is None else self.driven(q).at(0, q, v)[0]

    def driven(self, q: np.ndarray) -> DrivenJoints:
        """The driven joints, whose targets may be the configuration at the start."""
        assert self.inputs is not None
        return (self._inputs(q) if self._held else self.inputs).driven


class StoredSteps:
    """The steps that a robot keeps. ``last``: the arguments of the last call, and its steps."""

    def __init__(self) -> None:
        """None yet."""
        self.known: Recent[KeptSteps] = Recent(KEPT)
        self.last: tuple[tuple[Any, ...], KeptSteps] | None = None


def kept_steps(robot: Robot, engine: str | None, actuators: Any = None, **arguments: Any) -> KeptSteps:
    """Steps for arguments of ``simulate``, cached with the robot; ``engine``: "python" for no
    machine code.
    """
    given, stored = (engine, actuators, *arguments.values()), robot.derived.get("steps", StoredSteps)
    last = stored.last
    if last is not None and all(map(is_, given, last[0])):
        return last[1]
    drives = actuators_of(actuators)
    told = (engine, *arguments.values(), *drives)
    about = *map(type, told), *told
    try:
        hash(about)
    except TypeError:
        about = *map(type, told), *map(_known, told)
    found = stored.known.get(about, lambda: KeptSteps(robot, arguments, engine, drives))
    if not isinstance(actuators, MutableSequence):
        stored.last = given, found
    return found


def _known(given: Any) -> Hashable:
    """What tells an argument from others of its type: its value, or which object it is."""
    try:
        hash(given)
    except TypeError:
        return id(given)
    return given


# ---- forward mode -----------------------------------------------------------------------------------------

ROWS = 30_000  # directions that are computed at once, about


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

    It is the first step that :func:`simulate` takes from (q, v). Derivatives are in tangent spaces on both
    sides, along ``robot.integrate(q, dq)``. At a switch, where a contact opens or begins to slide, they are
    those of the side that the step is on; where several points are at a switch at once, as
    corners that just touch, no single side need be that of every direction. Loops are not closed first, as
    :func:`simulate` does with a start that leaves them open: A holds for every small change of a state that
    the loops allow, also for those that open them, up to terms of second order in dt. Of a state whose
    velocities open loops it is only an approximation.

    A step with contact is solved to rounding here, a run's to its tolerance (1e-3 of its impulses, squared by
    the last correction). Momentum and energy, which the end of a step corrects by terms of third order in dt,
    are not corrected in A and B. Targets of actuators are held constant.

    Source: contact/step_derivatives.py; else the step (robokit.sim.step_kernel), forward mode.
    Cost: with contact about that of a step, otherwise 3 nv times that of a few steps.

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
        v: velocity, (nv,) or (B, nv).
        tau: joint forces held over the step, (nv,) or (B, nv); zero by default. On a floating base the first
            six are an external wrench.
        ground, dt, integrator, joint_damping, self_collision: as in :func:`simulate`.
        springs: as in :func:`simulate`.
        actuators: as in :func:`simulate`, of steps with contact; tau is added to theirs, within their effort.
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
    if kept.contact:
        each = []
        for own, row in each_row(kept, given):
            with own.steps() as steps:
                steps.wanted = own.wanted(*row[:2])
                end_q, end_v, slopes = steps(*row)
                each.append((end_q, end_v, *np.split(slopes.copy(), [2 * robot.nv], axis=1)))
                _check_depth(kept, steps, given[0])
        if single:
            return StepDerivatives._make(each[0])
        room = _room(robot, len(each))
        for k, parts in enumerate(each):
            for whole, part in zip(room, parts, strict=True):
                whole[k] = part
        return room
    setup = kept.setup
    program = setup.program
    if floats(robot.tree):
        # As simulate takes them where there are any: nothing keeps the momentum against them.
        program = program.with_given(replace(program.given, base=True), program.given_numbers)
    parameters = program.parameters(setup.dt)
    rows = [x if len(x) != 1 else x[0] for x in given] + [parameters]
    count = batch_size(["q", "v", "tau", "robot"], rows)
    count = 1 if count is None else count
    found = _in_blocks(program, given, parameters, count, engine)
    return StepDerivatives(*(x[0] for x in found)) if single else found


FLOAT = np.dtype(float)


def _is_plain(x: Any, n: int) -> bool:
    """Whether something is an array of n finite numbers, at which nothing is to be done."""
    plain = x.__class__ is np.ndarray and x.dtype is FLOAT and x.shape == (n,)
    return plain and math.isfinite(np.vdot(x, x))


def checked_states(
    robot: Robot, q: Any, v: Any, tau: Any, engine: str | None
) -> tuple[list[np.ndarray], bool]:
    """q, v and tau, (B or 1, n) each, and whether one state was given."""
    check_robot(robot)
    nv = robot.nv
    rows = ("q", q, robot.nq), ("v", v, nv), ("tau", np.zeros(nv) if tau is None else tau, nv)
    if robot.samples is None and all(_is_plain(x, n) for _, x, n in rows):
        check_coordinates("q", robot, q)
        if engine is not None:
            one_of("engine", engine, ENGINES)
        return [x[None] for _, x, _ in rows], True
    given = [states(name, x, n, 0) for name, x, n in rows]
    single = robot.samples is None and all(np.ndim(x) == 1 for _, x, _ in rows)
    if not single:
        for (name, _, _), x in zip(rows, given, strict=True):
            check_finite(name, x)
    check_coordinates("q", robot, given[0][0] if single else given[0])
    if engine is not None:
        one_of("engine", engine, ENGINES)
    return given, single


def _check_depth(kept: KeptSteps, steps: LinearSteps, q: np.ndarray) -> None:
    """Raise ShapeError where a start is deep inside the ground, which a step would have found."""
    if steps.depth() > kept.buried:
        check_starts(kept.setup.program, q, "q")


def each_row(kept: KeptSteps, given: Sequence[np.ndarray]) -> Iterator[tuple[KeptSteps, list[np.ndarray]]]:
    """The step of each row of a batch, and its arrays of ``given`` ones, (B or 1, n) each."""
    if not kept.rows and all(len(x) == 1 for x in given):
        yield kept, [x[0] for x in given]
        return
    names = ["q", "v", "tau", "dq", "dv"][: len(given)]
    sizes = [x if len(x) != 1 else x[0] for x in given]
    if kept.rows:
        names, sizes = [*names, "robot"], [*sizes, kept.setup.program.parameters(kept.setup.dt)]
    count = batch_size(names, sizes)
    for k in range(1 if count is None else count):
        yield kept.row(k) if kept.rows else kept, [x[k if len(x) > 1 else 0] for x in given]


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


def step_along(program: Program) -> Kernel:
    """The kernel of a step and its derivative along a direction (dq, dv, dtau)."""
    robot, numbers = program.robot, program.parameters(1.0).shape[-1]

    def text(bare: Program) -> Any:
        robot, layout, nv = bare.robot, bare.layout, bare.robot.nv

        def from_near(q: Any, v: Any, tau: Any, dq: Any, carried: Any, parameters: Any, *more: Any) -> Any:
            """A step from near q; what it is handed follows from the state, as at the start of a run."""
            start, kept = near(robot, q, dq), list(carried)
            if layout.momentum or layout.energy:
                tree = bare.problem(parameters).tree
                found = kept_of(bare, tree, robot.split_q(start), robot.split_v(v))
                if layout.momentum:
                    kept[:6] = found[:6]
                if layout.energy:
                    kept[-1] = found[6]
            return bare.text(start, v, tau, [0.0] * bare.entries, kept, parameters, *more)[:2]

        sizes = [("q", robot.nq), ("v", nv), ("tau", nv), ("dq", nv), ("carried", layout.size)]
        sizes += [("parameters", numbers), *bare.given.inputs]
        derived = along(from_near, sizes, [("q", (robot.nq,)), ("v", (nv,))], [3, 1, 2])

        def changed(
            q: Any, v: Any, tau: Any, dq: Any, dv: Any, dtau: Any, carried: Any, parameters: Any, *more: Any
        ) -> Any:
            values = [q, v, tau, [0.0] * nv, carried, parameters, *more]
            (q1, v1), (rate, change) = derived(*values, dq, dv, dtau)
            return [q1, v1, velocity(robot, q1, rate), change]

        return changed

    return program.built(
        "step_along",
        text,
        inputs=[("dq", robot.nv), ("dv", robot.nv), ("dtau", robot.nv)],
        outputs=[
            ("q_next", (robot.nq,)),
            ("v_next", (robot.nv,)),
            ("dq_next", (robot.nv,)),
            ("dv_next", (robot.nv,)),
        ],
    )


# ---- parameters -------------------------------------------------------------------------------------------

OF_PAIRS = {
    "friction": ("shape_friction", slice(None)),
    "restitution": ("shape_restitution", slice(None)),
    "pair_friction": ("between", slice(0, 1)),
    "pair_restitution": ("between", slice(1, 2)),
}
"""Array of each, and which part of it."""

OF_MOTORS = ("target", "velocity", "feedforward", "kp", "kd")


def shape_of(kept: KeptSteps, name: str) -> tuple[int, ...]:
    """The shape of a parameter's value; UnknownName where there is none of this name."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(OF_PAIRS, ())
    shapes |= {"gravity": (3,), "inertias": (kept.robot.nbodies + 1, 10)}
    if kept.inputs is not None:
        shapes |= dict.fromkeys(OF_MOTORS, (len(kept.inputs.layout.drives),))
    if name not in shapes:
        raise UnknownName("parameter", name, tuple(shapes))
    return shapes[name]


class StepParameters:
    """The parameters of the steps that are in use. ``names``: of all parameters."""

    def __init__(self, kept: KeptSteps, steps: LinearSteps) -> None:
        self.kept, self.steps = kept, steps
        self._entered: dict[str, np.ndarray] = {}
        self.names = [*OF_PAIRS, "gravity", "inertias", *(OF_MOTORS if kept.inputs is not None else ())]

    def values(self, names: Sequence[str]) -> list[np.ndarray]:
        """The present values of the parameters in the arrays of the steps, to be entered again."""
        x = self.steps.simulation.arrays
        arrays = {"gravity": "gravity", "inertias": "inertia"}
        found = {name: x[array].copy() for name, array in arrays.items()}
        found |= {name: x[array][part].copy() for name, (array, part) in OF_PAIRS.items()}
        self._entered = {}
        return [found[name] if name in found else x["motor_gains"].copy() for name in names]

    def enter(self, names: Sequence[str], values: Sequence[np.ndarray]) -> None:
        """Let steps have these."""
        x = self.steps.simulation.arrays
        for name, value in zip(names, values, strict=True):
            if name in OF_PAIRS:
                array, part = OF_PAIRS[name]
                x[array][part] = value
            elif name == "gravity":
                x["gravity"][:] = value
            elif name == "inertias":
                x["inertia"][1:] = value[1:]
            elif value.ndim == 2:  # all gains, as they were
                x["motor_gains"][:] = value
            else:
                self._entered[name] = value
                if name in ("kp", "kd"):
                    x["motor_gains"][:, ("kp", "kd").index(name)] = value

    def wanted(self, q0: np.ndarray, state: tuple[np.ndarray, np.ndarray]) -> np.ndarray | None:
        """Actuator inputs at a state, q and v, with the entered parameters, (n,) [N m | N].

        Positions that are not given are held at q0, the start.
        """
        if self.kept.inputs is None:
            return None
        driven, x = self.kept.driven(q0), self.steps.simulation.arrays
        u = driven.at(0, *state)[0]
        if not self._entered:
            return u
        _, place, speed = driven.kinds_and_wants(*state)
        given, own = driven.gains(), self._entered
        more = u - given[0] * place - self._follow(*given) * speed
        _, servo, place, speed = self._wants(driven, state)
        more = np.where(servo, own.get("feedforward", more), own.get("target", more))
        kp, kd = x["motor_gains"].T
        return np.asarray(kp * place + self._follow(kp, kd) * speed + more)

    def _wants(self, driven: DrivenJoints, state: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Which joints have a PD and which a servo; positions and speeds that are wanted, 0 where none is."""
        kind, place, speed = driven.kinds_and_wants(*state)
        pd, servo, own = kind == "PD", kind != "Torque", self._entered
        speeds = own.get("velocity", speed), own.get("target", speed)
        return pd, servo, np.where(pd, own.get("target", place), 0.0), np.select([pd, servo], speeds, 0.0)

    def _follow(self, kp: np.ndarray, kd: np.ndarray) -> np.ndarray:
        """Factor of wanted speeds."""
        x = self.steps.simulation.arrays
        R = kp * x["dt"][0] ** 2 / x["motor_inertia"]
        return kd + 2.0 * x["dt"][0] * kp * R / (1.0 + 2.0 * R)

    def worth(self, q: np.ndarray, v: np.ndarray) -> dict[str, Any]:
        """Gradients with respect to all parameters, after a pullback from (q, v).

        They are NaN if the step was not finite; and, if it passed impacts on, for parameters whose
        derivatives are then not known: contacts, gravity, inertias and gains.
        """
        found = self.steps.found
        if not found:
            return {name: np.full(shape_of(self.kept, name), np.nan) for name in self.names}
        of: dict[str, Any] = dict(
            zip(OF_PAIRS, (*found["of_shape"].sum(axis=0), *found["of_between"]), strict=True)
        )
        of["gravity"], of["inertias"] = found["of_gravity"].copy(), found["of_inertia"].copy()
        if self.steps.passed_on:
            of = {name: x * np.nan for name, x in of.items()}
        return of if self.kept.inputs is None else of | self._of_motors(q, v)

    def _of_motors(self, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        of_force, of_b = self.steps.found["of_motor"], self.steps.found["of_drag"]
        if self.steps.passed_on:
            of_b = of_b * np.nan
        x = {**self.steps.simulation.work, **self.steps.simulation.arrays}
        kp, kd, m, dt = x["motor_gains"][:, 0], x["motor_gains"][:, 1], x["motor_inertia"], x["dt"][0]
        dof = x["motor_dof"]
        here = x["coordinate"][x["joint_coordinate"][x["dof_body"][dof]]]
        before = x["v0"][x["dof_row"][dof]]
        pd, servo, place, speed = self._wants(self.kept.driven(q), (q, v))
        alpha, slope = end_share_slope(dt * kd / m)
        R = kp * dt * dt / m
        extra, by_kp = 2.0 * dt * kp * R / (1.0 + 2.0 * R), 4.0 * dt * R * (1.0 + R) / (1.0 + 2.0 * R) ** 2
        by_kd = alpha + slope * dt * kd / m
        follow = kd + extra
        return {
            "target": of_force * np.select([pd, servo], [kp, follow], 1.0),
            "velocity": of_force * np.where(pd, follow, 0.0),
            "feedforward": np.where(servo, of_force, 0.0),
            "kp": np.where(pd, of_force * (place - here + by_kp * speed) + by_kp * of_b, 0.0),
            "kd": np.where(servo, of_force * (speed - (1.0 - by_kd) * before) + by_kd * of_b, 0.0),
        }


def end_share_slope(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """alpha = 1 / (1 - e^-z) - 1 / z and its slope, for z >= 0."""
    series, slope = np.zeros_like(z), np.zeros_like(z)
    for k, c in reversed(list(enumerate(SERIES))):
        series, slope = c + z * z * series, (2 * k + 1) * c + z * z * slope
    far = np.maximum(z, NEAR)
    less = -np.expm1(-far)
    direct, steep = 1.0 / less - 1.0 / far, 1.0 / far**2 - (1.0 - less) / less**2
    near = z < NEAR
    return np.where(near, 0.5 + z * series, direct), np.where(near, slope, steep)


# ---- reverse mode -----------------------------------------------------------------------------------------


class StepGradient(NamedTuple):
    """A step, and the gradient of a scalar that depends on its result.

    Attributes:
        q: configuration after the step, (nq,) or (B, nq).
        v: velocity after the step, (nv,) or (B, nv).
        dq: gradient with respect to the configuration before the step, in the tangent space, (nv,) or (B,
            nv).
        dv: gradient with respect to the velocity before the step.
        dtau: gradient with respect to the joint forces.
        parameters: {name: gradient with respect to this parameter}, see :func:`step_vjp`; for a batch with a
            leading B. Empty without contact.
    """

    q: np.ndarray
    v: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    parameters: dict[str, np.ndarray]

    def __repr__(self) -> str:
        return short_repr(self)


def step_vjp(
    robot: Robot,
    q: Any,
    v: Any,
    dq: Any,
    dv: Any,
    tau: Any = None,
    ground: Ground | bool | None = None,
    dt: float | None = None,
    *,
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    springs: Any = None,
    actuators: Any = None,
    engine: str | None = None,
) -> StepGradient:
    """One time step of the simulator in reverse mode: a vector-Jacobian product.

    From the gradient (dq, dv) of a scalar with respect to the next state, it computes the gradient with
    respect to this state, the joint forces and the parameters of the step, in one back substitution. For many
    steps, chain it. It is ``dq @ A[:nv] + dv @ A[nv:]`` of :func:`step_derivatives`, and costs less.

    ``parameters`` are "friction" and "restitution" of the ground, of all bodies alike, "pair_friction" and
    "pair_restitution" between bodies, "gravity" (3,), "inertias" (N + 1, 10) as
    :attr:`Robot.inertial_parameters`, and with actuators "target", "velocity", "feedforward", "kp" and "kd"
    (n,), in the order of their joints. Stiffness and damping of contacts and joints are held constant, and
    so are, with loops, the inertias by which the projection that closes them is weighted. Where touching
    contacts pass impacts on, as in a row of balls, only gradients by targets, velocities and feedforward are
    known; the others are NaN.

    Source: contact/step_derivatives.py.  Cost: about that of a step.

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
        v: velocity, (nv,) or (B, nv).
        dq: gradient with respect to the next configuration, in its tangent space, (nv,) or (B, nv).
        dv: gradient with respect to the next velocity, (nv,) or (B, nv).
        tau, ground, dt, integrator, joint_damping, self_collision, springs, actuators, engine: as of
            :func:`step_derivatives`.

    Returns:
        the next state and the gradients.

    Raises:
        as :func:`step_derivatives`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> q, zero = rk.standing_configuration(robot), np.zeros(robot.nv)
        >>> height = np.eye(robot.nv)[5]
        >>> found = rk.step_vjp(robot, q, zero, zero, height, ground=True)
        >>> found.dtau.shape, sorted(found.parameters)[:3]
        ((18,), ['friction', 'gravity', 'inertias'])
    """
    given, single = checked_states(robot, q, v, tau, engine)
    for name, x in (("dq", dq), ("dv", dv)):
        if _is_plain(x, robot.nv):
            given.append(x[None])
            continue
        given.append(states(name, x, robot.nv, 0))
        check_finite(name, given[-1])
        single = single and np.ndim(x) == 1
    options: dict[str, Any] = {
        "integrator": integrator, "joint_damping": joint_damping, "self_collision": self_collision,
        "springs": springs,
    }  # fmt: skip
    kept = kept_steps(robot, engine, actuators, dt=dt, ground=ground, **options)
    if not kept.contact:  # by its forward derivatives
        q, v, tau, of_q, of_v = given
        step = step_derivatives(robot, q, v, tau, ground, dt, engine=engine, **options)
        nv, of = robot.nv, np.hstack(np.broadcast_arrays(of_q, of_v))
        of_x, of_tau = (np.einsum("...r,...rc->...c", of, M) for M in (step.A, step.B))
        count = max(len(of_x), len(step.q))
        ends = [np.broadcast_to(x, (count, x.shape[-1])) for x in (step.q, step.v)]
        found = StepGradient._make([*ends, of_x[:, :nv], of_x[:, nv:], of_tau, {}])
    else:
        rows = []
        for own, row in each_row(kept, given):
            with own.steps() as steps:
                steps.wanted = own.wanted(*row[:2])
                end_q, end_v, slopes = steps.pullback(*row)
                worth = steps.parameters(own).worth(*row[:2])
                rows.append(StepGradient._make([end_q, end_v, *slopes.copy(), worth]))
                _check_depth(kept, steps, given[0])
        if single:
            return rows[0]
        names = rows[0].parameters if rows else {}
        sizes = (robot.nq, *[robot.nv] * 4)
        arrays = [np.array([row[k] for row in rows]).reshape(len(rows), n) for k, n in enumerate(sizes)]
        of_rows = {name: np.array([row.parameters[name] for row in rows]) for name in names}
        found = StepGradient._make([*arrays, of_rows])
    if not single:
        return found
    alone = {name: x[0] for name, x in found.parameters.items()}
    return StepGradient._make([*(x[0] for x in found[:5]), alone])
