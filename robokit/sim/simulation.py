"""One run, or step by step: :func:`simulate` and :class:`Simulation`.

    run = rk.simulate(robot, ground=True, duration=1.0)

    sim = rk.Simulation(robot, ground=True, dt=1e-3)
    for _ in range(1000):
        sim.step(tau)
    sim.q, sim.v, sim.time, sim.contacts, sim.sensors.imu("chest")

n steps of a Simulation are the n steps of :func:`simulate` to the last bit: friction anchors and warm starts
of the solver are handed on from step to step, and :meth:`Simulation.state` holds them.
"""

from __future__ import annotations

import functools
import math
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.arguments import check_finite, real_array, real_number, whole_number
from robokit.dataclass_tools import frozen
from robokit.dynamics.choices import beside, card_number, check_gradient, dtype_there, on_card, on_host
from robokit.dynamics.run import dtype_name
from robokit.errors import (
    DeviceError,
    RobokitError,
    ShapeError,
    SimulationError,
    UnknownName,
    WrongType,
    shown,
)
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator
from robokit.sim.distances import CollisionPairs
from robokit.sim.events import Contacts, Notes, contacts_of
from robokit.sim.ground import Ground
from robokit.sim.motion import floats
from robokit.sim.rollouts import runner_of
from robokit.sim.run_inputs import (
    MOST_STEPS,
    RunInputs,
    RunSetup,
    check_controller,
    set_up_run,
    states_at_start,
)
from robokit.sim.run_loop import (
    Controller,
    History,
    Records,
    Run,
    warn_of,
    warn_of_entered,
    warn_of_missed_energy,
    warn_of_whips,
)
from robokit.sim.sensors import Imu, JointForce, Sensors
from robokit.sim.starts import closed_start
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import (
    LAYOUT,
    SPIN,
    ContactStepper,
    fastest_spin,
    first_carried,
    in_blocks,
    kernel_inputs,
    not_finite,
    size_of,
)
from robokit.sim.trajectory import Trajectory

# ==== the same run with half the step =============================================================
# How far a run can be trusted: it is taken once more with half the step, and the two are compared.

AGREEMENT = 0.01  # distance of the centres of mass up to which the runs agree, over the robot's size


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
            robokit.sim.simulation. Controllers and targets that are functions are called again, twice as
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
            overlap, inside the ground, or that spins by more than 0.3 rad a step; deep penetration, a shape
            whose middle is inside another one, steps that did not converge or missed much energy; a light
            link that is whipped about too fast for the step.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.05)
        >>> run.t.shape, run.q.shape
        ((11,), (11, 2))
        >>> bool(abs(run.energy.total - run.energy.total[0]).max() < 1e-9)
        True
    """
    check_controller(controller)
    if not isinstance(estimate, bool):
        raise WrongType("estimate", estimate, "True or False")
    setup = set_up_run(
        robot, q0, v0, duration, dt, ground, integrator, record_every, joint_damping, gravity, actuators,
        pushes, springs, motions, by_step=controller is not None, self_collision=self_collision,
        accuracy=accuracy, reproducible=reproducible,
    )  # fmt: skip
    run = _taken(setup, controller, progress)
    trajectory = run.trajectory()
    trajectory.robot = setup.robot
    trajectory.summary |= setup.summary
    if run.stop is not None:
        raise SimulationError(str(run.stop), trajectory) from run.stop.cause
    if estimate and not run.interrupted:
        finer = _taken(_with_half_steps(setup), controller, progress).trajectory()
        trajectory.summary["estimate"] = compare(trajectory, finer)
    _warn(trajectory, run.records, setup)
    return trajectory


def _warn(run: Trajectory, records: Records, setup: RunSetup) -> None:
    """Warn of all that makes a run from this start doubtful."""
    program = run.program
    assert program is not None
    warn_of(run.summary, setup.depth, None if run.notes is None else (records, run.notes))
    q, t = (run.q, run.t) if run.notes is None else run.notes.kicks
    warn_of_entered(program, run.summary, q, t)
    warn_of_missed_energy(run)
    if not fastest_spin(setup.moving, setup.q, setup.v, SPIN / setup.dt)[2]:  # of that the start was warned
        warn_of_whips(run)


def _taken(setup: RunSetup, controller: Controller | None, progress: bool) -> Run:
    """A run with all of its steps taken."""
    inputs = setup.inputs(1, controller is not None and floats(setup.robot.tree))
    program = setup.program.with_given(inputs.layout, inputs.numbers)
    run = Run(program, setup.q, setup.v, setup.dt, setup.every, controller, inputs)
    run.go(setup.steps, progress)
    return run


def _with_half_steps(setup: RunSetup) -> RunSetup:
    """The same run with half the step; errors of parts of steps go with the square of their length."""
    program, dt = setup.program, setup.dt
    if program.accuracy is not None:
        program = replace(program, accuracy=0.25 * program.accuracy)
    drives = []
    for one in setup.drives:
        changed: dict[str, Any] = {}  # targets with one row per step have each row twice
        for name in ("target", "velocity", "feedforward"):
            x = getattr(one, name, None)
            if isinstance(x, np.ndarray | list | tuple) and np.ndim(x) > 1 and len(x) == setup.steps:
                changed[name] = np.repeat(np.asarray(x), 2, axis=0)
        drives.append(replace(one, **changed) if changed else one)
    prescribed = tuple(motion.at_half_steps(dt) for motion in setup.prescribed)
    return replace(
        setup, program=program, drives=drives, prescribed=prescribed, dt=0.5 * dt, steps=2 * setup.steps,
        every=2 * setup.every,
    )  # fmt: skip


# ==== step by step ================================================================================

if TYPE_CHECKING:
    from robokit.sim.card_rows import CardStates

NOTED = 1000  # steps that are noted before the notes are dropped, where nothing is recorded


@frozen
class SimulationState:
    """The state of a simulation, from which :meth:`Simulation.restore` continues to the last bit.

    Attributes:
        time: [s].
        q, v: configuration and velocity, (nq,) and (nv,), or (B, ...).
        steps: taken since the start.
        memory: further data that one step passes to the next: friction anchors, warm start of the solver; for
            a batch its arrays.
        entries: energy and impulse accounting so far; None for a batch.
        targets: the targets given last; None if the actuators follow their own.
        commanded: the controller's joint forces, (nv,) or (B, nv); None for a batch without a controller.
        about: the arguments of the simulation; a simulation with other arguments refuses the state.
        path: the run of the simulation to which the state belongs.
        history: velocities of the last steps, from which the middle of the next step is predicted.
    """

    time: float
    q: np.ndarray
    v: np.ndarray
    steps: int
    memory: Any
    entries: Any
    targets: np.ndarray | None
    commanded: np.ndarray | None = None
    about: tuple[Any, ...] = ()
    path: str = ""
    history: History = ()


Method = TypeVar("Method", bound=Callable[..., Any])


def _locked(name: str) -> Callable[[Method], Method]:
    """A decorator of methods that hold this lock, and so wait until other threads release it."""

    def of(method: Method) -> Method:
        @functools.wraps(method)
        def waits(self: Simulation, *arguments: Any, **options: Any) -> Any:
            with getattr(self, name):
                return method(self, *arguments, **options)

        return cast(Method, waits)

    return of


_reads = _locked("_lock")
_changes = _locked("_turn")


class Simulation:
    """A simulation that you advance step by step; threads that share it wait for each other.

    Its arguments stay what they are: an attribute cannot be assigned to.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> sim = rk.Simulation(robot, [1.0, 0.0], dt=1e-3)
        >>> for _ in range(50):
        ...     sim.step([0.1, 0.0])
        >>> sim.time, sim.q.shape, len(sim.trajectory())
        (0.05, (2,), 11)
    """

    __slots__ = (
        "__weakref__", "_about", "_batch", "_broken", "_call", "_control", "_driven", "_dt", "_forced",
        "_law", "_law_every", "_lock", "_many", "_motions", "_names", "_needed", "_noted",
        "_place", "_program", "_quick", "_recording", "_robot", "_run", "_setup", "_start", "_state",
        "_targets", "_turn", "_until",
    )  # fmt: skip

    def __init__(
        self,
        robot: Robot,
        q0: Any = None,
        v0: Any = None,
        *,
        dt: float | None = None,
        ground: Ground | bool | None = None,
        actuators: Actuator | Sequence[Actuator] | None = None,
        controller: Controller | None = None,
        control_every: int = 1,
        pushes: Any = None,
        batch: int | None = None,
        integrator: str | None = None,
        gravity: Sequence[float] | None = None,
        joint_damping: float | None = None,
        self_collision: CollisionPairs | bool | None = None,
        accuracy: float | None = None,
        record_every: int | None = None,
        threads: int | None = None,
        reproducible: bool | None = None,
        springs: Any = None,
        motions: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Put a robot at its start; nothing moves before the first step.

        Args:
            robot: the robot.
            q0: configuration at the start, (nq,), or (B, nq) with a batch; neutral by default.
            v0: velocity at the start, (nv,) or (B, nv); zero by default.
            dt: time step [s]; None as in :func:`robokit.simulate`.
            ground, actuators, pushes: as in :func:`robokit.simulate`.
            controller: (t, q, v) -> joint forces (nv,) [N m | N], called at the middle of each step as in
                :func:`robokit.simulate`, and added to those given to :meth:`step`. Of a batch only on a card.
            control_every: steps from one call of the controller to the next. From 2 on it is a sampled one:
                it sees the state as it is when it is called, and its forces are held until the next call.
            batch: B rows that move independently of each other; None for one robot.
            integrator, gravity, joint_damping, self_collision: as in :func:`robokit.simulate`.
            accuracy: the same; without a dt the longest step is always the usual default, as each step may
                have inputs of its own.
            record_every: steps between the states that :meth:`trajectory` has; None for those of about 5 ms,
                0 for none. A batch records nothing.
            threads: of a batch; None for as many as pay.
            reproducible, springs, motions: as in :func:`robokit.simulate`; with a batch arrays of motions may
                be (steps + 1, B). After its end an array holds its last position.
            device: of a batch: "cuda", or "cuda:1", keeps the rows on a graphics card (:doc:`/gpu`). ``q``
                and ``v`` are then arrays there that every step writes, of the library whose arrays are given
                as start, joint forces or targets (PyTorch or CuPy), on whose current stream the steps are;
                else views that ``torch.as_tensor`` and ``cupy.asarray`` take as they are. A controller is
                then (t, q, v) -> (B, nv) of such arrays, called before a step. None: where the start is.
            dtype: of a batch on a card: "float64" or "float32", of the states and of the steps. None: that of
                a start on a card, else "float64".

        Raises:
            RobokitError: what :func:`robokit.simulate` refuses, and what is for a batch alone or not for one;
                the text names the argument, what was given and what is accepted.
        """
        check_controller(controller)
        # who steps has both locks, but for functions of the user: meanwhile other threads may read the state
        self._turn = self._lock = threading.RLock()
        number, real = _device(device, dtype, batch, threads, (q0, v0))
        batch, control_every, threads, record_every = _counts(
            batch, control_every, threads, record_every, controller is not None, number is not None
        )
        recorded = None if record_every == 0 or batch else record_every
        setup = set_up_run(
            robot, on_host("q0", q0), on_host("v0", v0), 0.0, dt, ground, integrator, recorded, joint_damping,
            gravity, actuators, pushes, springs, motions, many=bool(batch), rows=batch, by_step=True,
            dtype=real, self_collision=self_collision, accuracy=accuracy, reproducible=reproducible,
        )  # fmt: skip
        self._robot, self._dt, self._batch, self._start = setup.robot, setup.dt, batch, (setup.q, setup.v)
        self._motions, self._setup = setup.motions, setup
        inputs = setup.inputs(batch or 1, floats(setup.robot.tree), int(MOST_STEPS))
        if batch and inputs.by_function:
            raise ShapeError("actuators: a batch takes arrays and keyframes as targets, no functions")
        self._driven = inputs.driven
        program = setup.program.with_given(inputs.layout, inputs.numbers)
        self._program = replace(program, felt=True)
        self._names = tuple(joint.name for joint in self._driven.joints)
        self._recording = not batch and record_every != 0
        self._targets: np.ndarray | None = None
        self._quick: _QuickInputs | None = None
        self._many: ManyStates | CardStates | None = None
        self._law, self._law_every = (controller, control_every) if batch else (None, 1)
        self._control: Any = None
        if controller is not None or inputs.by_function:
            self._lock = threading.RLock()
        self._place = "cpu" if number is None else f"cuda, {real}"
        self._about: tuple[Any, ...] | None = None
        self._broken = False
        if batch:
            start = self._program, *self._start, batch, self._dt, inputs
            if number is None:
                self._many = ManyStates(*start, threads)
                return
            from robokit.engine.cuda.arrays import library_of  # what a processor's need not import
            from robokit.sim.card_rows import CardStates

            library = next((found for x in (q0, v0) if (found := library_of(x))), None)
            self._many = CardStates(*start, number, library)
            return
        every = setup.every if self._recording else 0
        inputs.instead = lambda: self._wanted(None)
        self._run = Run(self._program, *self._start, setup.dt, every, controller, inputs, alone=True)
        self._run.control_every, self._run.lock = control_every, self._lock
        self._begin()
        self._ask_first()

    # ---- what there is -----------------------------------------------------------------------------------

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Simulation cannot be pickled or copied: pickle its state(), and restore it in another "
            "Simulation with the same arguments"
        )

    def __repr__(self) -> str:
        rows = f", {self._batch} rows" if self._batch else ""
        return f"<Simulation of {self._robot.name!r}{rows} at {self.time:g} s>"

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self._robot

    @property
    def dt(self) -> float:
        """Time step [s]."""
        return self._dt

    @property
    def batch(self) -> int | None:
        """Number of rows, B, or None for one robot."""
        return self._batch

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the driven joints, in the order of ``targets``."""
        return self._names

    @property
    def q(self) -> np.ndarray:
        """Configuration, a copy (nq,); of a batch (B, nq) an array to be read, which each step changes."""
        with self._lock:
            return self._many.q if self._many else self._run.stepper.q.copy()

    @property
    def v(self) -> np.ndarray:
        """Velocity, a copy (nv,); of a batch (B, nv) an array to be read, which each step changes."""
        with self._lock:
            return self._many.v if self._many else self._run.stepper.v.copy()

    @property
    def time(self) -> float:
        """Time since the start, or the last reset of all rows [s]."""
        return self._dt * self.steps

    @property
    @_reads
    def middle(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Predicted time, configuration and velocity in the middle of the next step: the arguments of a
        controller.

        ``sim.step(tau=law(*sim.middle))`` in every step equals ``controller=law``, to the last bit. Not
        available for a batch.
        """
        if self._many is not None:
            raise RobokitError("middle: only a simulation of one robot has it; a batch has q and v")
        return self._run.middle(self._run.done, self._run.stepper.q, self._run.stepper.v)

    @property
    def steps(self) -> int:
        """Steps since the start."""
        return self._many.done if self._many else self._run.done

    @property
    def failed(self) -> np.ndarray:
        """(B,) rows whose state is no longer finite; they stand still until they are reset."""
        if self._many is None:
            raise RobokitError("failed: only a batch has it, and this simulation is of one robot")
        return self._many.failed.copy()

    @property
    @_reads
    def contacts(self) -> Contacts | None:
        """Contacts of the last step with the ground and with links that are fixed to the world.

        ``links`` (K names) touch ``against`` ("": the ground) at ``points`` with ``forces`` and ``normals``
        (K, 3): places in the world [m], forces on the robot [N] and unit normals out of what is touched, in
        world axes; None without a ground.
        """
        if self._program.ground is None:
            return None
        if self._many is None and self._run.last_step() is None:
            none = np.zeros((0, 3))
            return Contacts(none, none, (), (), none, none)
        notes, q = self._last_step("contacts"), self._run.stepper.q
        return contacts_of(notes, [0, self._run.done], np.array([q, q])).at(1)

    @property
    @_reads
    def net_contact_forces(self) -> Any:
        """Net contact force on each link in the last step, (L, 3), or of a batch (B, L, 3) [N].

        Links are in the order of ``robot.link_names``, forces in world axes. Each is the sum over all
        contacts of the link: with the ground, with other links and with other robots. A force is the mean
        over that step; it is exactly 0 where nothing touches, before the first step and after a reset. Of
        rows that have failed it means nothing. ``contacts``, and ``contact_force`` of
        :class:`robokit.Measure`, leave out contacts between links that move.

        The array is a copy; with ``device="cuda"`` it is memory there that every step writes from the first
        use on, as ``q`` is.
        """
        if self._many is not None:
            return self._many.net_contact_forces()
        own = self._run.stepper
        if isinstance(own, ContactStepper):
            return own.arrays["net_force"].copy()
        return np.zeros((len(self._robot.links), 3))

    @property
    @_reads
    def sensors(self) -> StepSensors:
        """Sensor values of the last step: ``imu``, ``contact_wrench``, ``joint_force``."""
        notes, own, done = self._last_step("sensors"), self._run.stepper, self._run.done
        q, v = own.q[None].copy(), own.v[None].copy()

        def contacts() -> Contacts | None:
            if notes.program.ground is None:
                return None
            return contacts_of(notes, [0, done], np.concatenate([q, q])).at(slice(1, None))

        return StepSensors(Sensors(notes, np.array([done - 1]), [q, v], contacts))

    @_reads
    def trajectory(self) -> Trajectory:
        """The motion recorded since the start, for plots, events and the page (:meth:`Trajectory.to_html`).

        Raises:
            RobokitError: nothing is recorded (``record_every=0``, or a batch).

        Warns:
            SimulationWarning: what :func:`robokit.simulate` warns of at the end of a run. Steps do not.
        """
        if not self._recording:
            raise RobokitError("trajectory: nothing is recorded; give record_every, and no batch")
        run, own = self._run, self._run.records
        recorded = len(own.steps)
        try:
            if own.steps[-1:] != [run.done]:  # the last state, for now
                run.record()
            found = run.trajectory()
            found.robot, found.tau = self._robot, own.inputs.rows(found.marks)[0]
            _warn(found, own, self._setup)
        finally:  # also after Ctrl-C
            own.cut(recorded)
        return found

    # ---- steps -------------------------------------------------------------------------------------------

    def step(self, control: Any = None, *, tau: Any = None, targets: Any = None, steps: int = 1) -> None:
        """Take a step, or several with the same inputs.

        Args:
            control: targets of the actuators, or joint forces where there are no actuators.
            tau: joint forces in these steps, (nv,) or (B, nv) [N m | N]; on a floating base an external
                wrench. None for none.
            targets: targets of the actuators, one number per driven joint in the order of ``driven``, (n,) or
                (B, n), or for one robot a mapping from joint names: positions for PD, velocities for
                Velocity, forces for Torque. They hold until new ones are given; None keeps the last ones, or
                at first the actuators' own targets.
            steps: how many.

        Raises:
            ShapeError, InvalidValue, UnknownName: an input is invalid; no step is taken.
            SimulationError: the state is no longer finite, or the energy has grown without a cause. The
                energy is checked in the recorded states, after 64 of them, 128, and so on; with
                ``record_every=0`` it is not checked. A batch marks rows that are not finite in ``failed``
                instead.

        On a GPU, a call with a ground waits until its steps are done, to see whether a row has more contacts
        than memory was reserved for. Inside a CUDA graph, which may record steps after a first one outside of
        it, it does not wait: such a row stands still from there on, and ``time`` counts the recorded steps,
        not those of replays.
        """
        if steps.__class__ is not int or steps < 0:
            steps = whole_number("steps", steps, 0)
        if control is not None:
            if self._names:
                targets = control if targets is None else _twice("targets")
            else:
                tau = control if tau is None else _twice("tau")
        with self._turn:
            if self._many is not None:
                self._step_many(self._many, tau, targets, steps)
                return
            with self._lock:
                if tau is not None or targets is not None or self._forced:
                    self._give(tau, targets)
                if steps == 1 and self._run.done + 1 < self._until:
                    self._quickly()
                    return
            self._slowly(steps)

    def _quickly(self) -> None:
        """A step for which nothing else is to be done."""
        run = self._run
        try:
            if self._noted is not None:
                self._noted.fill(0)
            self._call(1)
            q, v = self._state
            good = not (self._needed[0] or not math.isfinite(q.dot(q) + v.dot(v))) or self._mend()
            run.done += good
        except BaseException:  # Ctrl-C comes between any two instructions
            self._interrupted()
            raise
        if not good:
            run.fail()
            self._fail()

    def _step_many(self, many: ManyStates | CardStates, tau: Any, targets: Any, steps: int) -> None:
        """Steps of a batch; on a card a controller may have its say before some of them."""
        forces, wanted = self._forces(tau), self._wanted(targets)
        if self._law is None:
            with self._lock:
                many.step(forces, wanted, steps)
            return
        end = many.done + steps
        while many.done < end:
            due = many.done % self._law_every == 0
            if due or self._control is None:
                self._control = self._forces(self._law(self.time, many.q, many.v))
            few = min(end - many.done, self._law_every - many.done % self._law_every)
            own = self._control
            if own is not None and forces is not None:
                own = own + (forces if on_card(forces) else beside(own, forces))
            with self._lock:
                many.step(forces if own is None else own, wanted, few)

    def _interrupted(self) -> None:
        """The next step begins with what is due before it."""
        self._run.recount()
        self._broken, self._until = True, 0

    def _begin(self) -> None:
        """Before the first step."""
        run = self._run
        run.stepper.noting = True
        run.stepper.take(0)
        if self._recording:
            run.record()
        self._forced = self._broken = False
        self._until = 0

    def _ask_first(self) -> None:
        """Find the inputs of the first step."""
        self._run.control()
        with self._lock:
            self._ready()

    def _ready(self) -> None:
        """What a quick step needs at hand."""
        run, own = self._run, self._run.stepper
        self._state = own.q, own.v
        self._until = run.next_stop
        if isinstance(own, ContactStepper) and own.kernel.soon(1, own.dtype):
            self._until = min(self._until, run.done + NOTED)  # for better code
        x = own.arrays if isinstance(own, ContactStepper) else None
        if run.controller is None and self._driven.linear is not None:
            old = self._quick and self._quick.x
            if self._quick is None or (x and old and old["joint_forces"] is not x["joint_forces"]):
                self._quick = _QuickInputs(self, x)
        if isinstance(own, ContactStepper):
            self._call, self._needed = own.ready(), own.arrays["needed"]
            kept = self._recording and not run.dropped
            self._noted = None if kept else own.arrays["noted"]
        else:
            self._call, self._needed, self._noted = own.take, np.zeros(1, np.int32), None

    def _slowly(self, steps: int) -> None:
        """Steps on whose way something is to be done."""
        run, end = self._run, self._run.done + steps
        try:
            with np.errstate(all="ignore"):
                if self._broken:  # what an interruption has left undone between two steps
                    with self._lock:
                        self._broken = False
                        run.ask_anew()
                        if self._recording:
                            run.records.cut()
                            if run.done % run.every == 0 and run.records.steps[-1] != run.done:
                                run.record()
                while run.done < end and run.stop is None:
                    if not self._recording:  # but for the last step, of :attr:`contacts` and :attr:`sensors`
                        with self._lock:
                            run.stepper.forget_notes()
                    run.until(end if self._recording else min(end, run.done + NOTED))
        except BaseException:
            self._interrupted()
            raise
        with self._lock:
            if run.stop is not None and all(np.isfinite(x).all() for x in (run.stepper.q, run.stepper.v)):
                run.recount()  # a stop for energy is before the state
            self._ready()
            if run.stop is not None:
                self._fail()

    def _mend(self) -> bool:
        """After a quick step that found no place: again. Whether its state is finite."""
        run = self._run
        if self._needed[0]:
            with np.errstate(all="ignore"):
                good = bool(run.stepper.take(1))
            self._ready()
            return good
        return bool(np.isfinite(self._state[0]).all() and np.isfinite(self._state[1]).all())

    def _fail(self) -> None:
        stop, self._run.stop = self._run.stop, None
        assert stop is not None
        raise SimulationError(str(stop), self._run.trajectory() if self._recording else None) from stop.cause

    # ---- inputs ------------------------------------------------------------------------------------------

    def _give(self, tau: Any, targets: Any) -> None:
        """Inputs of the steps to come."""
        if self._quick is not None and self._quick.give(tau, targets):
            self._forced = tau is not None
            return
        run = self._run
        forces = self._forces(tau)
        wanted = self._wanted(targets) if targets is not None else None
        own, run.beside = run.commanded, forces
        run.tau = own if forces is None else own + forces
        if wanted is not None:
            run.given = [wanted[0], *run.given[1:]]
        self._forced = forces is not None
        run.give()

    def _forces(self, tau: Any) -> np.ndarray | None:
        """Joint forces, checked: (nv,), or (B, nv) of a batch."""
        return None if tau is None else self._checked("tau", tau, self._robot.nv)

    def _checked(self, name: str, given: Any, n: int) -> Any:
        """Finite numbers, (n,) or (B, n) of a batch: an array on a card as it is, another one copied."""
        if on_card(given):
            from robokit.engine.cuda.arrays import common

            many = self._many
            if isinstance(many, ManyStates | None):
                raise DeviceError(
                    f'{name}: on a card, and the simulation is not; give rk.Simulation(device="cuda")'
                )
            common([name], [given], many.card.number, many.dtype.name)
            check_gradient(name, given)
            if tuple(given.shape) in ((n,), (self._batch, n)):
                return given
            raise ShapeError(f"{name}: expected shape {self._shapes(n)}, got {tuple(given.shape)}")
        plain = given.__class__ is np.ndarray and given.dtype == float
        x = np.array(given if plain else real_array(name, given, self._shapes(n)))
        if x.shape != (n,) and not (self._batch and x.shape == (self._batch, n)):
            raise ShapeError(f"{name}: expected shape {self._shapes(n)}, got {x.shape}")
        check_finite(name, x)
        return x

    def _wanted(self, targets: Any) -> np.ndarray | None:
        """What driven joints are given, (B or 1, n); None where the actuators' own targets hold."""
        if targets is None and self._targets is None:
            return None
        n = len(self._names)
        wanted = self._targets if targets is None else self._checked_targets(targets, n)
        linear = self._driven.linear
        if linear is None:
            raise ShapeError("targets: actuators whose velocity or feedforward changes take none")
        self._targets = wanted
        if on_card(wanted):
            from robokit.sim.card_rows import wanted_on_card

            return wanted_on_card(wanted, linear)
        ahead, gain, limit, rest = linear
        assert wanted is not None
        t = np.maximum(np.minimum(wanted, limit), -limit)
        return ahead + gain * t + rest

    def _checked_targets(self, targets: Any, n: int) -> np.ndarray:
        if not n:
            raise ShapeError("targets: there are no actuators; give rk.Simulation(actuators=...), or tau")
        if isinstance(targets, Mapping):
            old = np.zeros(n) if self._targets is None else self._targets.copy()
            unknown = [name for name in targets if name not in self._names]
            if unknown:
                raise UnknownName("driven joint", unknown[0], self._names, "(targets)")
            if self._targets is None and len(targets) < n:
                missing = next(name for name in self._names if name not in targets)
                raise ShapeError(f"targets: expected all {n} driven joints at first, {missing!r} is missing")
            at = [self._names.index(name) for name in targets]
            given = list(targets.values())
            if not {*map(type, given)} <= {float, np.float64} or not np.isfinite(given).all():
                given = [
                    real_number(f"targets[{name!r}]", each[()] if isinstance(each, np.ndarray) else each)
                    for name, each in targets.items()
                ]
            old[..., at] = given
            return old
        return self._checked("targets", targets, n)

    def _shapes(self, n: int) -> str:
        return f"({n},) or ({self._batch}, {n})" if self._batch else f"({n},)"

    # ---- there and back ----------------------------------------------------------------------------------

    @_changes
    def reset(self, q: Any = None, v: Any = None, *, rows: Any = None) -> None:
        """Return to the start, or to a given state. This clears the history and sets the time to 0.

        Args:
            q: configuration, (nq,) or of a batch (B, nq); that of the start by default.
            v: velocity, (nv,) or (B, nv), likewise.
            rows: of a batch: the rows that are reset, a mask (B,) or row numbers in ascending order; the
                others, and the time, go on. ``q`` and ``v`` have one state for all, one for each row of the
                batch, or one for each reset row.

        Raises:
            ShapeError, InvalidValue: an invalid state.
        """
        names = ("q", "v")
        if self._many is None:
            if rows is not None:
                raise ShapeError("rows: expected none, of one robot; rk.Simulation(batch=...) has rows")
            if q is not None or v is not None:
                q, v = states_at_start(self._robot, *self._or_start(q, v), False, names=names)
                q, v, _ = closed_start(self._robot, *self._motions.start(q, v), self._motions.dofs)
            with self._lock:
                self._targets = None
                self._run.begin(*self._or_start(q, v))
                self._begin()
            self._ask_first()
            return
        B = self._many.rows
        q, v, rows = on_host("q", q), on_host("v", v), on_host("rows", rows)
        at = np.arange(B) if rows is None else _chosen(rows, B)
        counts = (B,) if len(at) == B else (B, len(at))
        given = states_at_start(self._robot, *self._or_start(q, v), True, counts, names, at)
        starts = [np.broadcast_to(x, (len(at), x.shape[1])) for x in given]
        step = 0 if rows is None else self._many.done  # for the others, time goes on
        chosen_rows = None if self._motions.rows is None else at
        q, v = self._motions.start(starts[0], starts[1], chosen_rows, step)
        q, v, _ = closed_start(self._robot, q, v, self._motions.dofs)
        self._many.reset(at, q, v)
        if rows is None:
            self._many.done = self._many.change = 0
            self._targets = None

    def _or_start(self, q: Any, v: Any) -> tuple[Any, Any]:
        """A state; what of it is None is that of the start."""
        return self._start[0] if q is None else q, self._start[1] if v is None else v

    @_reads
    def state(self) -> SimulationState:
        """The state on which all later steps depend: :meth:`restore` continues from it, to the last bit."""
        targets = None if self._targets is None else np.array(on_host("targets", self._targets))
        if self._many is not None:
            many = self._many
            q, v = np.array(on_host("q", many.q)), np.array(on_host("v", many.v))
            held = None if self._control is None else np.array(on_host("controller", self._control))
            now = q, v, many.done, many.state(), None, targets, held
            return SimulationState(self.time, *now, self._arguments())
        run = self._run
        memory, entries = run.stepper.memory().copy(), run.stepper.entries().copy()
        last = run.commanded, self._arguments(), run.path[-1][0], run.middle.history
        return SimulationState(self.time, self.q, self.v, run.done, memory, entries, targets, *last)

    def _arguments(self) -> tuple[Any, ...]:
        """What a state must have in common with the simulation that goes on from it, with names."""
        if self._about is None:
            robot, program = self._robot, self._program
            given = program.given.drives, program.given.inputs, program.given_numbers
            about = program.name, program.joints, program.ground, program.between, given, program.measured
            try:
                digest = sha256(
                    pickle.dumps((*about, program.springs, program.accuracy, program.reproducible))
                ).hexdigest()
            except (pickle.PicklingError, AttributeError, TypeError):  # functions of the user
                digest = ""
            same = robot.name, robot.joint_names, robot.nq, robot.nv, float(np.max(robot.total_mass))
            self._about = (
                ("layout", LAYOUT), ("robot", same), ("batch", self._batch), ("dt", self._dt),
                ("integrator", program.name), ("accuracy", program.accuracy),
                ("device or dtype", self._place),
                ("ground, actuators, pushes or other arguments", digest),
            )  # fmt: skip
        return self._about

    @_changes
    def restore(self, state: SimulationState) -> None:
        """Continue from a state of this simulation, or of one of the same robot with the same arguments.

        Records after its time are discarded. If the state does not belong to the current run, as after a
        reset or in a second simulation, all records are discarded and the trajectory begins at the state.

        Raises:
            WrongType, ShapeError: not a state, or one of a simulation with other arguments or of a version of
                robokit whose steps pass on other data.
        """
        if not isinstance(state, SimulationState):
            raise WrongType("state", state, "what Simulation.state() gave")
        if state.q.shape != np.shape(self.q if self._many is None else self._many.q):
            raise ShapeError(f"state: expected one of q {np.shape(self.q)}, got {state.q.shape}")
        of_state = dict(state.about)
        if of_state.get("layout") != LAYOUT:
            raise ShapeError(
                "state: expected one of this version of robokit, got one of another, whose steps hand on "
                "other numbers; start again from its configuration and velocity: reset(state.q, state.v)"
            )
        for name, own in self._arguments():
            its = of_state[name]
            if own != its:
                told = (
                    f": {its} instead of {own}" if isinstance(own, float | str) and len(str(own)) < 40 else ""
                )
                raise ShapeError(
                    f"state: expected one of a simulation with the same arguments, got one with other "
                    f"{name}{told}"
                )
        with self._lock:
            self._targets = None if state.targets is None else state.targets.copy()
            if self._many is not None:
                many, held = self._many, state.commanded
                there = held is not None and getattr(many, "library", None) is not None
                self._control = beside(many.q, held) if there else held
                many.restore(state.memory, state.steps)
                return
            run = self._run
            assert state.commanded is not None
            run.tau = run.commanded = state.commanded
            run.go_back(state)
            if not run.controlled:
                run.control()
            if self._recording and not run.records.steps:
                run.record()
            self._forced = self._broken = False
            self._ready()

    # ---- for the properties ------------------------------------------------------------------------------

    def _last_step(self, what: str) -> Notes:
        """Notes of the last step."""
        if self._many is not None:
            raise RobokitError(f"{what}: only a simulation of one robot has it; a batch has q, v and failed")
        found = self._run.last_step()
        if found is None:
            raise RobokitError(f"{what}: of the last step, and none was taken yet")
        return found


# ==== rows on the processor =======================================================================
class ManyStates:
    """Rows that are stepped together, in place.

    ``rows``: B; ``q``, ``v``: the states, (B, ...), to be read; ``failed``: (B,) rows whose state is no
    longer finite; ``done``: steps taken.
    """

    def __init__(
        self,
        program: Program,
        q: np.ndarray,
        v: np.ndarray,
        rows: int,
        dt: float,
        inputs: RunInputs,
        threads: int | None,
    ) -> None:
        """At starts q and v, (B or 1, ...), with steps of dt [s]; ``threads``: None for as many as pay."""
        self.rows = rows
        self.program, self.dt, self.inputs, self.threads = program, dt, inputs, threads
        self._start = [np.array(np.broadcast_to(x, (rows, x.shape[1]))) for x in (q, v)]
        given, self.change = self._at(0, rows)
        none = np.zeros((1, rows, program.robot.nv))
        self.arrays = kernel_inputs(program, self._start[0], self._start[1], dt, none, given)
        self.q, self.v = (x[0].view() for x in self.arrays[:2])
        self.q.flags.writeable = self.v.flags.writeable = False  # steps with contact have states of their own
        self.failed, self.done = np.zeros(rows, bool), 0
        self.runner = runner_of(program, dt)
        if program.contact:
            self.runner.begin(self.arrays, rows, threads)

    def _at(self, step: int, rows: int) -> tuple[list[np.ndarray], int]:
        """Inputs of a step, (1, B, n) each, and the step at which they change."""
        found, change = self.inputs.at(step, self._start[0], self._start[1])
        each = (np.broadcast_to(x, (rows, x.shape[-1])) for x in found)
        return [np.array(x, order="C")[None] for x in each], change

    def step(self, tau: np.ndarray | None, u: np.ndarray | None, steps: int) -> None:
        """So many steps, none where it is interrupted.

        tau are joint forces, (nv,) or (B, nv), or None; u is what driven joints are given, (B or 1, n), None
        for what they have.
        """
        before, done = self.state(), self.done
        try:
            self.arrays[2][0] = 0.0 if tau is None else tau
            end = self.done + steps
            while self.done < end:
                if self.done >= self.change:
                    given, self.change = self._at(self.done, len(self.q))
                    self.arrays[6:] = given
                if u is not None:
                    self.arrays[6][0] = u
                marks = [self.done, min(end, self.change)]
                with np.errstate(all="ignore"):
                    run = self.arrays, len(self.q), marks, lambda *_: None, self.threads
                    if self.runner.roll(*run)[1]:
                        raise KeyboardInterrupt
                self.failed[:] = not_finite(self.q, self.v)
                self.done = marks[1]
        except BaseException:  # Ctrl-C: threads have come to different steps
            self.restore(before, done)
            raise

    def reset(self, rows: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set some rows, by number, to states (n, ...): nothing was before."""
        self.arrays[0][0, rows], self.arrays[1][0, rows] = q, v
        self.arrays[3][0, rows] = 0.0
        if self.program.robot.samples is None:
            self.arrays[4][0, rows] = first_carried(self.program, self.q[rows], self.v[rows])
        else:  # a sample for each row
            self.arrays[4][0, rows] = first_carried(self.program, self.q, self.v)[rows]
        if self.program.contact:
            self.runner.reset(rows, q, v)
        self.failed[rows] = False

    def net_contact_forces(self) -> np.ndarray:
        """Net contact force on each link, (B, L, 3) [N]."""
        if self.program.contact:
            return self.runner.net_contact_forces()
        return np.zeros((self.rows, len(self.program.robot.links), 3))

    def state(self) -> Any:
        """All that :meth:`restore` needs."""
        if self.program.contact:
            return self.runner.state()
        return [x.copy() for x in (*self.arrays[:2], *self.arrays[3:5])]

    def restore(self, state: Any, done: int) -> None:
        """Go on from there."""
        if self.program.contact:
            self.runner.restore(state)
        else:
            for x, old in zip((*self.arrays[:2], *self.arrays[3:5]), state, strict=True):
                x[...] = old
        self.failed[:] = not_finite(self.q, self.v)
        self.done, self.change = done, 0


# ==== what a Simulation reads and is given ========================================================


@frozen
class StepSensors:
    """Sensor values of one step of a simulation: as ``Trajectory.sensors``, without the time axis.

    They belong to the step after which they were read, even if more steps have been taken since.
    """

    _of: Sensors = field(repr=False)

    def imu(self, link: str) -> Imu:
        """Angular velocity [rad/s] and specific force [m/s^2] at a link's origin, in its axes, (3,) each."""
        found = self._of.imu(link)
        return Imu(found.angular_velocity[0], found.specific_force[0])

    def contact_wrench(self, link: str) -> np.ndarray:
        """Wrench of the ground on a link about its origin, in its axes, (6,) [N m; N]."""
        return self._of.contact_wrench(link)[0]

    def joint_force(self, joint: str) -> JointForce:
        """Forces of actuator and controller, of friction and of limits in a joint, (dofs,) [N m | N]."""
        found = self._of.joint_force(joint)
        return JointForce(found.actuator[0], found.friction[0], found.stop[0])


class _QuickInputs:
    """Inputs of steps that are arrays of float64, in a few microseconds."""

    def __init__(self, simulation: Simulation, x: dict[str, np.ndarray] | None) -> None:
        """Prepare it; ``x``: arrays of the step of contact."""
        self.simulation, self.run, self.x = simulation, simulation._run, x
        linear = simulation._driven.linear
        assert linear is not None
        self.ahead, self.gain, limit, self.rest = (each[0] for each in linear)
        self.limit = limit if np.isfinite(limit).any() else None
        self.plain = not (self.ahead.any() or self.rest.any())
        self.none = np.zeros(simulation.robot.nv)
        if x is not None:
            self.rows, self.tau = x["dof_row"][x["motor_dof"]], x["joint_forces"]
            self.command = x["motor_command"][:, 0]

    def give(self, tau: Any, targets: Any) -> bool:
        """Whether that was possible: nothing is changed otherwise."""
        run, own = self.run, self.none
        if tau is not None:
            if tau.__class__ is not np.ndarray or tau.dtype != float or tau.shape != own.shape:
                return False
            own = tau.copy()
            if not math.isfinite(np.vdot(own, own)):  # which says nothing of an overflow
                return False
        if targets is not None:
            t = targets
            if t.__class__ is not np.ndarray or t.dtype != float or t.shape != self.gain.shape or not len(t):
                return False
            if not math.isfinite(np.vdot(t, t)):
                return False
            self.simulation._targets = t = t.copy()
            if self.limit is not None:
                t = np.maximum(np.minimum(t, self.limit), -self.limit)
            u = t * self.gain
            if not self.plain:
                u += self.ahead
                u += self.rest
            run.given = [u, *run.given[1:]]
        if self.x is None:
            run.stepper.give(own, run.given)
        else:
            if tau is not None or run.tau is not own:
                self.tau[:] = own
            if len(self.rows):  # joint forces of driven joints go through the motors
                self.command[:] = run.given[0]
                if tau is not None:
                    self.command += own[self.rows]
                    self.tau[self.rows] = 0.0
        run.tau = own
        if run.every:
            run.records.inputs.add(run.done, own, run.given)
        return True


def _chosen(rows: Any, count: int) -> np.ndarray:
    """Numbers of the rows, of so many, that a mask or their numbers choose."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (count,):
        return np.flatnonzero(given)
    if given.ndim == 1 and (given.dtype.kind in "iu" or (not given.size and given.dtype != bool)):
        numbers = given.astype(np.int64)
        if (np.diff(numbers, prepend=-1, append=count) > 0).all():
            return numbers
    raise ShapeError(
        f"rows: expected a mask of bool ({count},) or row numbers from 0 to {count - 1} in ascending order, "
        f"got {shown(rows)}"
    )


def _twice(name: str) -> Any:
    raise ShapeError(f"control: expected it or {name}, got both")


def _device(
    device: Any, dtype: Any, batch: Any, threads: Any, start: Sequence[Any]
) -> tuple[int | None, str]:
    """Number of the card that has the rows, None for the processor, and the dtype of their numbers."""
    number = card_number(device, *start)
    if number is None:
        if dtype is not None and dtype_name(dtype) != "float64":
            raise ShapeError(f'dtype: expected None or "float64" on the processor, got {dtype!r}')
        return None, "float64"
    if batch is None:
        raise DeviceError(f'device="cuda:{number}": a card moves many robots at once; give batch=...')
    if threads is not None:
        raise ShapeError(f"threads: expected None, since a card takes the steps, got {threads}")
    return number, dtype_name(dtype_there(dtype, *start))


def _counts(
    batch: Any, control_every: Any, threads: Any, record_every: Any, controlled: bool, there: bool
) -> tuple[int | None, int, int | None, int | None]:
    """The whole numbers among the arguments; whether there is a controller, and rows are on a card."""
    if batch is not None:
        batch = whole_number("batch", batch, 1)
    if batch and ((controlled and not there) or record_every):
        what = "record_every" if record_every else "controller"
        raise ShapeError(f"{what}: expected none with batch={batch}; give tau or targets to each step")
    control_every = whole_number("control_every", control_every, 1)
    if control_every > 1 and not controlled:
        raise ShapeError(f"control_every: expected 1 without a controller, got {control_every}")
    if threads is not None:
        threads = whole_number("threads", threads, 1)
        if not batch:
            raise ShapeError(f"threads: expected None, of one robot, got {threads}; it is for batch=...")
    if record_every is not None:
        record_every = whole_number("record_every", record_every, 0)
    return batch, control_every, threads, record_every
