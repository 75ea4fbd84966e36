"""What is given to the steps of a run besides joint forces: actuators, pushes, prescribed motions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from robokit.arguments import check_call, check_finite, real_number, several, whole_number
from robokit.contact.constraints.motors import NEAR, SERIES
from robokit.dataclass_tools import frozen
from robokit.dynamics.singular import check_inertia
from robokit.engine.reproducible import wanted
from robokit.errors import ShapeError, WrongType, warn
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot
from robokit.sim.actuators import (
    Actuator,
    Layout,
    Motions,
    PrescribedMotion,
    Signal,
    actuators_of,
    by_joint,
    driven,
    label_of,
    with_rotors,
)
from robokit.sim.distances import body_contacts
from robokit.sim.force_elements import NO_SPRINGS, OutsideForces, Push, Springs, pushes_of, springs_of
from robokit.sim.ground import Ground, ground_of
from robokit.sim.integrators import method
from robokit.sim.joint_forces import Drive, GivenLayout, joint_law
from robokit.sim.motion import effective_inertias, may_keep_energy
from robokit.sim.starts import check_coordinates, checked_starts, closed_start, held_by_loops, numbers, states
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import SHORTEST, SPIN, default_step, fastest_spin, halved

# ==== What simulate and rollout make of their arguments, and which of them they refuse ============

FRAME = 5e-3  # time between recorded states by default [s]
LARGEST_CONTACT_STEP = 4e-3  # longest step with Ground() that is not warned of [s]
MOST_STEPS = 1e10  # steps of a run; a year of them
NEVER = np.iinfo(np.int64).max  # number of a step that does not come
TOGETHER = 256  # steps whose targets are found together: a step alone takes nearly as long


@frozen
class Setup:
    """The step of a run, how long it is and how many there are."""

    program: Program  # the step
    dt: float  # time step [s]
    steps: int  # number of steps
    every: int  # steps between two records
    summary: dict[str, Any]  # entries for the summary


def set_up(
    robot: Robot,
    duration: Any,
    dt: Any,
    ground: Any,
    integrator: Any,
    record_every: Any,
    joint_damping: Any,
    steps: int | None = None,
    dtype: str = "float64",
    many: bool = False,
    self_collision: Any = None,
    accuracy: Any = None,
    reproducible: Any = None,
    by_step: bool = False,
    start: Sequence[Any] = (),
    springs: Springs = NO_SPRINGS,
    motions: Sequence[PrescribedMotion] = (),
) -> Setup:
    """Check the arguments that say what a step is, and make the step of them.

    ``start`` are q and v at the starts, whose spins a default step knows. ``by_step`` says whether something
    is given anew in each step: such steps are not longer with an accuracy than without.
    For errors and warnings see :func:`robokit.simulate`.
    """
    duration = real_number("duration", duration, least=0.0)
    if record_every is not None:
        record_every = whole_number("record_every", record_every, 1)
    surface = _surface(robot, ground, many)
    if accuracy is not None:
        accuracy = real_number("accuracy", accuracy, above=0.0)
    between = body_contacts(robot, self_collision, surface is not None)
    light = held_by_loops(robot)
    asked = _ask_for_contact(integrator, accuracy, light, springs, motions)
    by_contact = surface is not None or between.count > 0 or asked
    name, row = method(integrator, by_contact)
    if name == "energy_momentum" and not may_keep_energy(robot.tree):
        raise ShapeError(
            f"integrator: 'energy_momentum' keeps the energy of one robot, and {robot.name!r} has several, "
            "of which one floats: take 'rkmk4'"
        )
    chosen = dt is None
    if accuracy is not None and not row.contact:
        raise ShapeError(
            f"accuracy: divides the steps of 'contact', not those of {name!r}; give integrator='contact', or "
            "a shorter dt"
        )
    dt = default_step(robot, row.contact) if chosen else real_number("dt", dt, above=0.0)
    if chosen and accuracy is not None and not by_step:
        dt = LARGEST_CONTACT_STEP
    if chosen and start:
        dt = halved(dt, fastest_spin(robot, start[0], start[1], SPIN / dt, SPIN / SHORTEST)[0])
    steps = _steps(duration, dt) if steps is None else steps
    if surface is not None and dt > longest_step(surface):
        warn(f"dt = {dt:g} s is long for contact: take {1e3 * longest_step(surface):.3g} ms or less")
    if light is None:
        check_inertia(robot)
    damping = None if surface is not None else 0.0
    if joint_damping is not None:
        damping = real_number("joint_damping", joint_damping, least=0.0)
    law, defaulted = joint_law(robot, damping, None if surface is None else surface.sink)
    program = Program(
        robot,
        name,
        row,
        law,
        surface,
        dtype,
        between=between,
        reproducible=wanted(reproducible),
        accuracy=accuracy,
        springs=springs,
    )
    summary: dict[str, Any] = {"dt_chosen": chosen, "self_collision_pairs": between.count}
    if defaulted:
        summary |= {
            "default_damping": "inertia" if damping is None else damping,
            "default_damping_joints": len(defaulted),
        }
    return Setup(program, dt, steps, record_every or max(1, round(FRAME / dt)), summary)


def _ask_for_contact(
    integrator: Any,
    accuracy: float | None,
    light: Joint | None,
    springs: Springs,
    motions: Sequence[PrescribedMotion],
) -> bool:
    """Whether there is something that the step of "contact" alone knows; another one is refused."""
    asked = "springs" if springs.given else "motions" if motions else ""
    others = integrator is not None and not (
        isinstance(integrator, str) and integrator in ("contact", "euler")
    )
    if light is not None and others:
        raise ShapeError(
            f"integrator: {integrator!r} divides by inertias, and joint {light.name!r} moves none without "
            "its loop; take 'contact'"
        )
    if asked and others:
        raise ShapeError(f"integrator: {integrator!r} takes no {asked}; take 'contact', or leave it out")
    if motions and accuracy is not None:
        raise ShapeError("accuracy: expected None with motions, which are prescribed for whole steps")
    return light is not None or bool(asked)


def longest_step(ground: Ground) -> float:
    """Longest step with a ground that is not warned of [s]: as the time constants of limits, it goes with the
    root of ``sink``. Small robots are not asked for shorter ones: those that turn fast are (steppers.SPIN).
    """
    return LARGEST_CONTACT_STEP * math.sqrt(ground.scale())


def _steps(duration: float, dt: float) -> int:
    """How many steps a duration takes."""
    if not duration / dt <= MOST_STEPS:
        raise ShapeError(
            f"duration: {duration:g} s are {duration / dt:.3g} steps of {dt:g} s; at most {MOST_STEPS:.0e} "
            "are taken: take a shorter duration or a longer dt"
        )
    if 0.0 < duration <= 0.5 * dt:
        raise ShapeError(f"duration: {duration:g} s is half a step of {dt:g} s or less: take a shorter dt")
    return round(duration / dt)


def _surface(robot: Robot, ground: Any, many: bool) -> Ground | None:
    """The ground of a run; ``many``: one that differs by row is taken."""
    surface = ground_of(ground)
    if surface is None:
        return None
    if surface.rows is not None and not many:
        raise ShapeError(
            f"ground: {surface.by_row} has {surface.rows} values, one per row of rk.rollout; give one here"
        )
    for given in (surface.friction, surface.restitution):
        for link in given if isinstance(given, Mapping) else ():
            robot.link(link)  # raises for a misspelt link, which would get the default
    return surface


# ---- all that simulate, rollout and Simulation share -------------------------------------------------------


@frozen
class RunSetup(Setup):
    """A run before its first step."""

    robot: Robot  # as it was given, in the run's gravity
    moving: Robot  # with the rotors of its actuators
    q: np.ndarray  # the start, on its prescribed motions and with its loops closed: (nq,), or rows of it
    v: np.ndarray  # (nv,), or rows of it
    drives: Sequence[Actuator]
    pushes: Sequence[Push]
    prescribed: tuple[PrescribedMotion, ...]
    motions: Motions  # the same, fitted
    rows: int  # how many there are
    counted: bool  # whether another argument than q0 and v0 says that
    depth: float  # how deep in the ground the start is, where it was warned of that [m]; else 0

    def inputs(self, rows: int | None, base: bool, steps: int | None = None) -> RunInputs:
        """Actuators, pushes and prescribed motions as inputs of the steps; arguments as of RunInputs."""
        return RunInputs(
            self.moving, self.drives, self.pushes, self.dt, self.steps if steps is None else steps,
            np.atleast_2d(self.q), rows, base, self.program.accuracy is not None, self.prescribed,
        )  # fmt: skip


def check_controller(controller: Any) -> None:
    """Raise WrongType where a controller is neither None nor a function of t, q and v."""
    if controller is None:
        return
    if not callable(controller):
        raise WrongType("controller", controller, "a function (t, q, v) -> joint forces, or None")
    check_call("controller", controller, ("t", "q", "v"), "joint forces")


def set_up_run(
    robot: Robot,
    q0: Any,
    v0: Any,
    duration: Any,
    dt: Any,
    ground: Any,
    integrator: Any,
    record_every: Any,
    joint_damping: Any,
    gravity: Any,
    actuators: Any,
    pushes: Any,
    springs: Any,
    motions: Any,
    *,
    many: bool = False,
    rows: int | None = None,
    by_step: bool = False,
    **options: Any,
) -> RunSetup:
    """Check the arguments that simulate, rollout and Simulation share, and prepare the run.

    ``many``: q0 and v0 may be rows; ``rows``: how many, None where the arguments say it; ``by_step``: the
    caller gives something anew in each step; ``options``: others of :func:`set_up`. Raises and warns as
    :func:`robokit.simulate`.
    """
    check_robot(robot)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if robot.samples is not None and not many:
        raise ShapeError(
            f"robot: expected one, got {robot!r}; rk.rollout takes them all, robot.sample(k) is one of them"
        )
    given = robot.neutral() if q0 is None else q0, np.zeros(robot.nv) if v0 is None else v0
    q, v = states_at_start(robot, *given, many, None if rows is None else (rows,))
    drives, acting = actuators_of(actuators), pushes_of(pushes)
    accepted = "rk.PrescribedMotion(...), or a list of these"
    prescribed = several("motions", motions, (PrescribedMotion,), accepted)
    fitted, moving = Motions.at_start(robot, prescribed, dt), with_rotors(robot, drives)
    counts = [("robot", robot.samples), *(("pushes", push.rows) for push in acting), ("motions", fitted.rows)]
    if many and isinstance(ground, Ground):
        counts.append((f"Ground({ground.by_row}=...)", ground.rows))
    number, counted = _count_rows(q, v, counts, rows if many else 1)
    q1, v1, closing = closed_start(robot, *fitted.start(q, v), fitted.dofs)
    setup = set_up(
        moving, duration, dt, ground, integrator, record_every, joint_damping, many=many, start=(q1, v1),
        by_step=bool(by_step or drives or acting), springs=springs_of(springs, robot), motions=prescribed,
        **options,
    )  # fmt: skip
    if prescribed and setup.dt != dt:  # whose velocities are differences over a step
        fitted = Motions.at_start(robot, prescribed, setup.dt)
        q1, v1, closing = closed_start(robot, *fitted.start(q, v), fitted.dofs)
    depth = checked_starts(robot, setup.program, q1, v1, setup.dt)
    shared = vars(setup) | {"summary": setup.summary | closing}
    return RunSetup(
        **shared, robot=robot, moving=moving, q=q1, v=v1, drives=drives, pushes=acting,
        prescribed=prescribed, motions=fitted, rows=number, counted=counted, depth=depth,
    )  # fmt: skip


def states_at_start(
    robot: Robot,
    q: Any,
    v: Any,
    many: bool,
    counts: Sequence[int] | None = None,
    names: tuple[str, str] = ("q0", "v0"),
    chosen: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A start as it was given, checked: (nq,) and (nv,), or with ``many`` rows of them.

    ``counts`` says how many rows there may be besides one, all finite; None for any number, of which some may
    fail. ``names`` are those of q and v to the caller. ``chosen`` are the rows that are wanted of as many as
    counts[0]; the others may be anything.
    """
    found = []
    for name, given, n in zip(names, (q, v), (robot.nq, robot.nv), strict=True):
        x = states(name, given, n, robot=robot) if many else numbers(name, given, n, robot)
        if counts is not None:
            if len(x) not in (1, *counts):
                *first, last = [f"({n},)", *(f"({rows}, {n})" for rows in counts)]
                raise ShapeError(f"{name}: expected shape {', '.join(first)} or {last}, got {x.shape}")
            x = x if chosen is None or len(x) != counts[0] else x[chosen]
            check_finite(name, x)
        found.append(x)
    check_coordinates(names[0], robot, found[0])
    return found[0], found[1]


def _count_rows(
    q: np.ndarray, v: np.ndarray, counts: Sequence[tuple[str, int | None]], known: int | None = None
) -> tuple[int, bool]:
    """The number of rows, and whether it is known or one of ``counts`` says it; ShapeError where they differ.

    q and v are starts, (nq,) and (nv,), or rows of them. ``counts`` has (name, number of rows or None) of
    other arguments that may have one value a row; ``known`` is the number, None where the arguments say it.
    """
    sizes = [len(np.atleast_2d(x)) for x in (q, v)]
    rows, counted = known or max(sizes), known is not None
    if min(sizes) not in (1, rows):
        raise ShapeError(f"v0: expected {sizes[0]} rows like q0, got {sizes[1]}")
    for what, count in counts:
        if count is None:
            continue
        if known == 1 and count != 1:
            raise ShapeError(f"{what}: expected one set of numbers, got {count} rows; rk.rollout takes them")
        for name, size in zip(("q0", "v0"), sizes, strict=True):
            if known is None and size not in (1, count):
                raise ShapeError(f"{name}: expected 1 row or {count}, as {what} has, got {size}")
        if counted and count != rows:
            raise ShapeError(f"{what}: expected {rows}, one per row, got {count}")
        rows, counted = count, True
    return rows, counted


# ==== actuators and pushes as inputs of the steps: driven joints ==================================

ENDLESS = 1e30  # stands for no limit in a row where others have one


class DrivenJoints:
    """The driven joints of a run, in the order of the actuators.

    ``joints``: the joints; ``drives``: what the step's text depends on; ``rows``: B where gains or targets
    differ from row to row of a rollout, else None; ``by_function``: whether a target is a function of the
    state.
    """

    def __init__(
        self,
        robot: Robot,
        actuators: Sequence[Actuator],
        dt: float,
        steps: int,
        q0: np.ndarray,
        rows: int | None,
        divided: bool = False,
    ) -> None:
        """Fit actuators that were checked to steps of dt [s] from configurations q0, (B or 1, nq).

        ``rows`` is B of a rollout, 1 in a simulation, and None where nothing else says it; ``divided``: steps
        are taken in parts, to an accuracy. Raises UnknownName without such a joint; ShapeError for a joint
        that cannot be driven, or is driven twice, and for gains or targets that do not fit.
        """
        self.robot, self.dt, self.steps, self.count, self.divided = robot, dt, steps, rows, divided
        self.joints: list[Joint] = []
        self.drives: list[Drive] = []
        self.rows: int | None = None
        self._numbers: list[Any] = []
        self._laws: list[ActuatorLaw] = []
        self._damping: list[np.ndarray] = []
        self._known = 0, np.zeros((0, 0))  # number of a step, and what is wanted from it on, (K, n)
        for k, actuator in enumerate(actuators):
            self._add(label_of(actuators, k), actuator, q0)
        names = [joint.name for joint in self.joints]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise ShapeError(f"actuators: joint {name!r} is driven twice")

    def _add(self, label: str, actuator: Actuator, q0: np.ndarray) -> None:
        robot = self.robot
        joints = driven(label, robot, actuator)
        names = tuple(joint.name for joint in joints)
        v_at = [joint.v_slice.start for joint in joints]
        q_at = [joint.q_slice.start for joint in joints]
        gains = {
            name: self._by_joint(f"{label}({name}=...)", getattr(actuator, name), joints)
            for name in actuator.gains
        }
        effort = self._limits(f"{label}(effort=...)", actuator.effort, joints, "effort")
        speed = self._limits(f"{label}(max_velocity=...)", actuator.max_velocity, joints, "velocity")
        zeros = np.zeros(len(joints))
        kp, kd = gains.get("kp", zeros), gains.get("kd", gains.get("gain", zeros))
        mass = np.stack(
            np.broadcast_arrays(*effective_inertias(robot, [(j.body, 0) for j in joints])), axis=-1
        )
        b, lag, follow = servo_numbers(kp, kd, mass, self.dt)
        if self.divided:  # what a step adds to kd goes with its length, and parts of steps have their own
            follow = kd + 0.0 * follow
        for k, joint in enumerate(joints):
            servo = bool((follow[..., k] > 0.0).any())
            limits = [bool(np.isfinite(x[..., k]).any()) for x in (effort, speed)]
            self.drives.append(Drive(joint.body, servo, *limits))
            limit, fastest = (np.minimum(x[..., k], ENDLESS) for x in (effort, speed))
            own = {"kp": kp[..., k], "b": b[..., k], "lag": lag[..., k], "effort": limit, "speed": fastest}
            own["mass"] = mass[..., k]
            self._numbers += [own[name] for name in self.drives[-1].parameters]
        self.joints += joints

        in_v, in_q = (
            Layout(names, at, size, self.steps, self.count)
            for at, size in ((v_at, robot.nv), (q_at, robot.nq))
        )
        zero = np.zeros((1, 1, len(joints)))
        here = q0[None][:, :, q_at]
        kind = type(actuator).__name__
        signals: dict[str, Signal] = {}
        for name in ("target", "velocity", "feedforward"):
            if hasattr(actuator, name):
                position = kind == "PD" and name == "target"
                signals[name] = Signal(
                    f"{label}({name}=...)",
                    getattr(actuator, name),
                    in_q if position else in_v,
                    here if position else zero,
                )
                if position and getattr(actuator, name) is None:
                    continue  # the starts count their rows themselves
                self._count(f"{label}({name}=...)", signals[name].rows)
        self._laws.append(ActuatorLaw(kind, kp, follow, speed, signals))
        self._damping.append(np.asarray(kd))

    def _count(self, what: str, rows: int | None) -> None:
        if rows is not None:
            if self.rows not in (None, rows) or self.count not in (None, rows):
                if self.count == 1:
                    raise ShapeError(
                        f"{what}: expected one set of numbers, got {rows} rows; rk.rollout takes them"
                    )
                raise ShapeError(f"{what}: expected {self.rows or self.count} rows, got {rows}")
            self.rows = rows

    def _by_joint(
        self, what: str, value: Any, joints: Sequence[Joint], default: Sequence[float] | None = None
    ) -> np.ndarray:
        array = by_joint(what, value, joints, self.robot.nv, default)
        self._count(what, len(array) if array.ndim == 2 else None)
        return array

    def _limits(self, what: str, value: Any, joints: Sequence[Joint], attribute: str) -> np.ndarray:
        """Limits (n,) or (B, n), inf for none; those of the description where none are given."""
        found = [getattr(joint, attribute) or math.inf for joint in joints]
        if value is not None:
            return self._by_joint(what, value, joints, found)
        zero = [joint.name for joint in joints if not getattr(joint, attribute)]
        if zero:
            warn(
                f"joint {zero[0]!r}" + f" and {len(zero) - 1} more" * (len(zero) > 1) + f": the description "
                f"limits the {attribute} to 0, which is taken as no limit; {what} sets one",
                UserWarning,
            )
        return np.array(found)

    # ---- what the kernel takes -----------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.drives)

    def parameters(self) -> list[Any]:
        """The numbers of the drives in the order of ``Drive.parameters``, each () or (B,)."""
        return self._numbers

    @property
    def _signals(self) -> Iterator[Signal]:
        return (signal for law in self._laws for signal in law.signals.values())

    @cached_property
    def by_function(self) -> bool:
        """Whether a target is a function of the state."""
        return any(signal.function is not None for signal in self._signals)

    @cached_property
    def _last(self) -> int:
        """The step from which all stays the same."""
        return max((signal.last(self.dt) for signal in self._signals), default=0)

    def at(self, step: int, q: Any = None, v: Any = None) -> tuple[np.ndarray, int]:
        """What the drives want in a step of a simulation, (n,), and the next step at which that changes."""
        change = step + 1 if step < self._last else NEVER
        if self.by_function or change == NEVER:
            return self.table(np.array([step]), q, v)[0, 0], change
        first, known = self._known
        if not first <= step < first + len(known):
            first, known = self._known = step, self.table(np.arange(step, step + TOGETHER))[:, 0]
        return known[step - first], change

    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """kp and kd of each joint, (n,) each."""
        return np.concatenate([law.kp for law in self._laws]), np.concatenate(self._damping)

    def kinds_and_wants(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each joint in the first step: kind of its actuator, wanted position and speed, (n,) each.

        The position is 0 where a speed or a force is wanted, the speed likewise.
        """
        wants = [law.wants(np.zeros(1, int), self.dt, q, v)[1:] for law in self._laws]
        place, rate = (np.concatenate([x[0, 0] for x in each]) for each in zip(*wants, strict=True))
        return np.repeat([law.kind for law in self._laws], [len(x[0, 0]) for x, _ in wants]), place, rate

    @cached_property
    def linear(self) -> tuple[np.ndarray, ...] | None:
        """(feedforward, gain, limit, rest), (B or 1, n) each; None where velocities or feedforwards change.

        Targets t give u = feedforward + gain clip(t, -limit, limit) + rest.
        """
        parts: list[list[np.ndarray]] = []
        for law in self._laws:
            tables = {name: signal.table for name, signal in law.signals.items() if name != "target"}
            if any(table is None or len(table) > 1 for table in tables.values()):
                return None
            none = np.zeros((1, law.kp.shape[-1]))
            ahead, speed = (none if x is None else x[0] for x in map(tables.get, ("feedforward", "velocity")))
            rest = law.follow * np.clip(speed, -law.speed, law.speed)
            gain = {"Torque": none + 1.0, "PD": law.kp, "Velocity": law.follow}[law.kind]
            parts.append([ahead, gain, law.speed if law.kind == "Velocity" else none + np.inf, rest])
        if not parts:
            return (np.zeros((1, 0)),) * 4
        rows = max(len(x) for part in parts for x in map(np.atleast_2d, part))
        each = ([np.broadcast_to(x, (rows, x.shape[-1])) for x in part] for part in parts)
        return tuple(np.concatenate(x, axis=1) for x in zip(*each, strict=True))

    def whole_table(self) -> np.ndarray:
        """Targets of all steps and rows of a rollout, (T or 1, B or 1, n); ShapeError for a function."""
        for signal in self._signals:
            if signal.function is not None:
                raise ShapeError(f"{signal.name}: a rollout takes arrays and keyframes, no functions")
        moving = any(signal.last(self.dt) for signal in self._signals)
        return self.table(np.arange(max(1, self.steps) if moving else 1))

    def table(self, steps: np.ndarray, q: Any = None, v: Any = None) -> np.ndarray:
        """What the drives want in these steps, (T or 1, B or 1, n)."""
        parts = []
        for law in self._laws:
            ahead, place, rate = law.wants(steps, self.dt, q, v)
            parts.append(ahead + law.kp * place + law.follow * rate)
        shape = np.broadcast_shapes(*(part.shape[:2] for part in parts))
        return np.concatenate([np.broadcast_to(p, (*shape, p.shape[2])) for p in parts], axis=2)


@frozen
class ActuatorLaw:
    """The inputs of the joints of one actuator: u = ahead + kp place + follow rate."""

    kind: str  # name of its class
    kp: np.ndarray  # stiffness, (n,) or (B, n)
    follow: np.ndarray  # factor of wanted velocities, kd + extra, likewise
    speed: np.ndarray  # the largest, likewise
    signals: dict[str, Signal]  # of its arguments that may change with time

    def wants(self, steps: np.ndarray, dt: float, q: Any, v: Any) -> tuple[np.ndarray, ...]:
        """(ahead, place, rate) in these steps, (T or 1, B or 1, n) each; zeros for terms that it does not
        use.
        """
        found = {name: signal.at(steps, dt, q, v) for name, signal in self.signals.items()}
        target, zero = found["target"], np.zeros((1, 1, found["target"].shape[-1]))
        if self.kind == "Torque":
            return target, zero, zero
        if self.kind == "Velocity":
            return found["feedforward"], zero, np.clip(target, -self.speed, self.speed)
        curve, velocity = self.signals["target"].rates(steps, dt), self.signals["velocity"]
        rate = found["velocity"] if curve is None or velocity.table is not velocity.default else curve
        return found["feedforward"], target, np.clip(rate, -self.speed, self.speed)


# ---- servos ------------------------------------------------------------------------------------------------
# robokit.sim.joint_forces has the law. Everything is computed by + - * / and powers of two, so the numbers
# are the same to the bit with every C library and every NumPy, as reproducible runs need them.

FAR = 700.0  # beyond it e^-z is next to nothing

LOG2_E = 1.4426950408889634
LN_2 = (0.693147180369123816490, 1.90821492927058770002e-10)
"""ln 2 in two parts, the first with zeros at its end: small multiples of it are exact."""


def servo_numbers(kp: Any, kd: Any, mass: Any, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(b, lag, factor of target velocities) of robokit.sim.joint_forces, for time steps dt [s].

    The arrays have any shape: stiffness kp [N m/rad | N/m], damping kd [N m s/rad | N s/m], and the inertia
    that the joint moves, mass [kg m^2 | kg].
    """
    alpha = end_share(dt * kd / mass)
    R = kp * dt * dt / mass
    extra = kp * dt * (2.0 * R / (1.0 + 2.0 * R))
    return alpha * kd + extra, (1.0 - alpha) * kd, kd + extra + 0.0 * mass


def end_share(z: Any) -> np.ndarray:
    """alpha = 1 / (1 - e^-z) - 1 / z for z >= 0: from 1/2, where a damper is weak, to 1."""
    z = np.asarray(z, dtype=float)
    square = z * z
    series = np.zeros_like(z)
    for c in SERIES[::-1]:
        series = c + square * series
    far = np.minimum(np.maximum(z, NEAR), FAR)
    direct = 1.0 / (1.0 - decay(far)) - 1.0 / np.maximum(z, NEAR)
    return np.where(z < NEAR, 0.5 + z * series, direct)


def decay(z: np.ndarray) -> np.ndarray:
    """e^-z for 0 <= z <= FAR, to some 1e-16 of itself."""
    k = np.floor(z * LOG2_E + 0.5)
    r = (z - k * LN_2[0]) - k * LN_2[1]
    found = np.ones_like(r)
    for n in range(14, 0, -1):
        found = 1.0 - found * r / n
    return np.ldexp(found, -k.astype(int))


# ---- all inputs -------------------------------------------------------------------------------------------


class RunInputs:
    """Actuators and pushes of a run.

    Attributes:
        layout: what the step's text depends on.
        numbers: parameters of the kernel, floats or (B,).
        driven: the driven joints.
        rows: B where they differ from row to row of a rollout, else None.
        instead: gives what driven joints of a single run get in place of what their actuators want, (1, n),
            or None.
    """

    instead: Callable[[], np.ndarray | None] | None = None

    def __init__(
        self,
        robot: Robot,
        actuators: Sequence[Actuator],
        pushes: Sequence[Push],
        dt: float,
        steps: int,
        q0: np.ndarray,
        rows: int | None,
        base: bool,
        divided: bool = False,
        motions: Sequence[PrescribedMotion] = (),
    ) -> None:
        """Fit actuators, pushes and motions that were checked to the robot and steps of dt [s] from q0, (B or
        1, nq).

        ``rows`` are those of a rollout, None where nothing else says how many; ``base``: the first six joint
        forces are a wrench on a base that floats; ``divided``: steps are taken in parts, to an accuracy.
        """
        self.driven = DrivenJoints(robot, actuators, dt, steps, q0, rows, divided)
        self.outside = OutsideForces(robot, pushes, dt, steps)
        self.motions = Motions(robot, motions, dt, steps)
        places = self.outside.places
        self.layout = GivenLayout(
            tuple(self.driven.drives),
            tuple((body, point is None) for body, point in places),
            base,
            links=tuple(self.outside.links),
            motions=tuple(self.motions.bodies),
        )
        points = [x for _, point in places if point is not None for x in point]
        self.numbers: list[Any] = [*self.driven.parameters(), *points]
        counts = {x for x in (self.driven.rows, self.outside.rows, self.motions.rows) if x is not None}
        self.rows = max(counts, default=None)

    @property
    def by_function(self) -> bool:
        """Whether a target is a function of the state."""
        return self.driven.by_function

    @property
    def law(self) -> tuple[np.ndarray, ...] | None:
        """How targets of the driven joints of a single run become their inputs, as in StepInputs."""
        linear = self.driven.linear if self.driven else None
        return None if linear is None else tuple(each[0] for each in linear)

    def at(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[list[np.ndarray], int]:
        """The inputs of a step of a simulation, and the next step at which they change."""
        found, change = [], NEVER
        if self.driven:
            u, change = self.driven.at(step, q, v)
            given = None if self.instead is None else self.instead()
            found.append(u if given is None else given[0])
        if self.outside:
            wrenches, next_change = self.outside.at(step)
            found.append(wrenches)
            change = min(change, next_change)
        if self.motions:
            found.append(self.motions.at(step))
            change = step + 1
        return found, change

    def tables(self, steps: int, dtype: str) -> list[np.ndarray]:
        """The inputs of all steps and rows of a rollout, (T or 1, B or 1, n) each."""
        found = []
        if self.driven:
            found.append(self.driven.whole_table())
        if self.outside:
            found.append(self.outside.table(steps))
        if self.motions:
            found.append(self.motions.table(steps))
        return [np.ascontiguousarray(x, dtype=dtype) for x in found]
