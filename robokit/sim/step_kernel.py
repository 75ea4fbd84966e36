"""The time step of a robot with all that goes into it, and the step of passive motion as a kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import Any, Protocol

import numpy as np

from robokit.algorithms.loop_dynamics import PROXIMAL
from robokit.collision.scene import bodies_in, robot_shapes
from robokit.contact.measures import MEASURES, Subjects
from robokit.dataclass_tools import frozen
from robokit.dynamics.build import without_inertias
from robokit.engine import Kernel
from robokit.model.constraints import loop_models
from robokit.model.inertial_parameters import inertias
from robokit.model.regrouping import similar_inputs
from robokit.model.robot import Robot
from robokit.sim import motion
from robokit.sim.distances import NO_CONTACTS, BodyContacts, body_names
from robokit.sim.force_elements import NO_SPRINGS, Spring, Springs
from robokit.sim.ground import Ground
from robokit.sim.integrators import Held, Method, Problem, StepTaken
from robokit.sim.joint_forces import NOTHING, PROXIMAL_SINGLE, GivenLayout, JointLaw, LoopLaw, pressing
from robokit.sim.motion import Carried, CarriedLayout, Rows, body_velocities, floats, may_keep_energy
from robokit.spatial import Motion
from robokit.spatial.scalars import Scalar, maximum

# ==== measures in every step ======================================================================
# What is measured while a rollout runs: numbers of each row that every step brings up to date.
#
# They stand at the end of the ledger. The first is the number of steps taken. The others belong to measures
# (contact/measures.py, rollout_measures.py), each of which has some numbers, and makes the next ones of
# them and of what happens in the step. So a peak is that of a step, however few steps are recorded, and no
# state is kept for it. This is for passive motion; steps with contact do it themselves (contact/monitor.py).


@dataclass
class Happened:
    """A step that was taken."""

    p: Problem  # the robot and all that acts on it
    step: Scalar  # number of the step, from 0
    # q, v, tau: state and joint forces before the step, by joint
    q: Rows
    v: Rows
    tau: Rows
    # q and v after it, and the joint forces, flat lists
    flat: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[Scalar]]
    held: Held | None  # joint forces of the step; None where nothing but given forces acts on the joints
    parameters: Sequence[Scalar]  # of the kernel; the first is the time step [s]
    # of the ground on each link that can touch it, then on the whole robot, world axes [N], flat
    forces: Sequence[Scalar] = (0.0, 0.0, 0.0)
    subjects: Subjects = field(default_factory=Subjects)  # whom measures are about
    _V: list[Motion] | None = field(default=None, repr=False)

    @property
    def dt(self) -> Scalar:
        """Time step [s]."""
        return self.parameters[0]

    @property
    def V(self) -> list[Motion]:
        """Velocities of the bodies where the step begins, body coordinates."""
        if self._V is None:
            if self.held is not None and self.held.V is not None:
                self._V = self.held.V
            else:
                tree = self.p.tree
                self._V = body_velocities(tree, tree.transforms(self.q), self.v)
        return self._V

    @property
    def limits(self) -> Iterator[tuple[Scalar, Scalar, Scalar]]:
        """Of each joint with limits: force of its stop, velocity, and how far it is past a limit."""
        for _, i in self.subjects.joints:
            stop, q = self.p.joints.stop[i], self.q[i][0]
            assert stop is not None and self.held is not None
            past = maximum(q - stop.upper, stop.lower - q)
            yield pressing(stop, q, self.held.stops[i][0]), self.v[i][0], past


class Tracker(Protocol):
    """Some of the numbers that are measured, and how a step changes them."""

    @property
    def start(self) -> Sequence[float]:
        """The numbers before the first step."""

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """The numbers after a step."""


@frozen
class Kept:
    """The numbers of one of robokit's measures; a tracker."""

    name: str
    subjects: Subjects

    @property
    def start(self) -> Sequence[float]:
        """See Tracker."""
        return MEASURES[self.name].start(self.subjects)

    def after(self, numbers: Sequence[Scalar], happened: Happened) -> Sequence[Scalar]:
        """See Tracker."""
        return MEASURES[self.name].passive(numbers, replace(happened, subjects=self.subjects))


@frozen
class MeasuredLayout:
    """What is measured."""

    trackers: tuple[Tracker, ...] = ()  # whose numbers they are, in this order

    @property
    def size(self) -> int:
        """Numbers in all."""
        return len(self.start)

    @property
    def start(self) -> list[float]:
        """The numbers before the first step."""
        return [0.0, *(x for each in self.trackers for x in each.start)] if self.trackers else []

    def part(self, tracker: Tracker) -> slice:
        """Where the numbers of a tracker are among all."""
        at = 1
        for each in self.trackers:
            if each == tracker:
                break
            at += len(each.start)
        return slice(at, at + len(tracker.start))

    def after(self, before: Sequence[Scalar], happened: Callable[[Scalar], Happened]) -> list[Scalar]:
        """The numbers after a step from those before; ``happened``: facts of the step by their number."""
        if not self.trackers:
            return []
        step, at = before[0], 1
        now, out = happened(step), [step + 1.0]
        for each in self.trackers:
            size = len(each.start)
            out += each.after(before[at : at + size], now)
            at += size
        return out


NOTHING_MEASURED = MeasuredLayout()


# ==== the step of a robot =========================================================================

PARTS = ("sums", "outside", "drives", "own", "control", "measured")  # of the ledger, in this order


@dataclass
class Program:
    """A robot's step with everything but the state.

    ``loops``: the loop joints, or None; ``layout``: of what a step of passive motion hands to the next;
    ``open``: whether inertias, and what follows from them, are an input of the step, not constants.
    """

    robot: Robot  # the robot
    name: str  # of the method
    method: Method  # row of the table of methods
    joints: JointLaw  # damping, friction and limits
    ground: Ground | None = None  # the ground, or None
    dtype: str = "float64"  # of the numbers that the kernel computes with, "float64" or "float32"
    given: GivenLayout = NOTHING  # actuators and forces from outside
    given_numbers: Sequence[Any] = ()  # their parameters, floats or (B,)
    between: BodyContacts = NO_CONTACTS  # bodies that may touch each other
    measured: MeasuredLayout = NOTHING_MEASURED  # what is measured in each step
    # whether the kernels give the same bits everywhere (robokit.engine.reproducible)
    reproducible: bool = False
    # to which steps of "contact" are divided (contact/step_control.py); None: they are not
    accuracy: float | None = None
    springs: Springs = NO_SPRINGS  # between points and at joints
    felt: bool = False  # whether a step with contact keeps the net contact force on each link

    def __post_init__(self) -> None:
        self.open = self.robot.parameters is not None
        to_world = bool((self.between.runs[:, 0] == 0).any())
        to_world = to_world or any(isinstance(each, Spring) for each in self.springs.given)
        self.given = replace(self.given, fixed_links=to_world)
        models = loop_models(self.robot)
        share = PROXIMAL if self.dtype == "float64" else PROXIMAL_SINGLE
        self.loops = LoopLaw(models, share) if models else None
        tree = self.robot.tree
        self.layout = CarriedLayout(
            floats(tree), self.joints.wound, self.method.keeps_energy and may_keep_energy(tree)
        )

    @property
    def contact(self) -> bool:
        """Whether its steps are those of contact/step.py."""
        return self.method.contact

    @property
    def touching_links(self) -> tuple[str, ...]:
        """Links that can touch the ground, in the order of the measures."""
        if self.ground is None:
            return ()
        placed = robot_shapes(self.robot, self.ground.shape_error)
        return tuple(dict.fromkeys(c.link for c in placed if c.body))

    @property
    def parts(self) -> dict[str, slice]:
        """Where the parts of the ledger are.

        "sums" are those of all steps; "outside" the impulse from outside about the centre of mass, world axes
        [N m s; N s]; "drives" for each drive the sum of its force times dt [N m s | N s] and the time at a
        limit [s]; "own" are of steps of "contact" (motion.OWN), and "control" where these are divided to an
        accuracy; "measured" is what measures keep.
        """
        given, steps = self.given, (len(motion.OWN), len(motion.CONTROL))
        own, control = steps[0] * self.contact, steps[1] * (self.accuracy is not None)
        sizes = motion.SIZE, 6 * given.outside, 2 * len(given.drives), own, control, self.measured.size
        ends = accumulate(sizes)
        return {name: slice(end - n, end) for name, n, end in zip(PARTS, sizes, ends, strict=True)}

    @property
    def sums(self) -> int:
        """Size of the ledger without the measures, which come after it."""
        return self.parts["measured"].start

    @property
    def entries(self) -> int:
        """Size of the ledger."""
        return self.parts["measured"].stop

    def parameters(self, dt: float) -> np.ndarray:
        """Numbers that may change without another kernel, (P,), or (B, P) where rows differ in them.

        They are dt, those of actuators and pushes, and where inertias are an input, the gains of the stops
        and the inertial parameters.
        """
        numbers: list[Any] = [dt, *(self.joints.gains if self.open else ()), *self.given_numbers]
        first = np.stack(np.broadcast_arrays(*numbers), axis=-1)
        if not self.open:
            return first
        inertial = self.robot.inertial_parameters
        parts = [first, inertial.reshape(*inertial.shape[:-2], -1)]
        samples = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        rows = [np.broadcast_to(part, (*samples, part.shape[-1])) for part in parts]
        return np.concatenate(rows, axis=-1, dtype=float)

    def problem(self, parameters: Sequence[Any], more: Sequence[Any] = ()) -> Problem:
        """The step's problem, of plain numbers or scalars of a kernel: parameters as in
        :meth:`parameters`, and inputs.
        """
        rest, tree, joints = iter(parameters[1:]), self.robot.tree, self.joints
        if self.open:
            joints = joints.with_gains(list(islice(rest, len(joints.gains))))
        given = self.given.problem(islice(rest, len(self.given_numbers)), more)
        if self.open:
            tree = replace(tree, I=inertias(list(rest)))
        return Problem(tree, joints, self.loops, given)

    def text(
        self, q: Any, v: Any, tau: Any, entries: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        """One step: the next q, v, ledger and carried numbers."""
        return self.step(self.problem(parameters, more), q, v, tau, entries, carried, parameters)

    def step(
        self, p: Problem, q: Any, v: Any, tau: Any, entries: Any, carried: Any, parameters: Any
    ) -> list[list[Any]]:
        """The same of a problem."""
        robot, sums, kept = self.robot, motion.Ledger(entries), Carried(self.layout, carried)
        rows = robot.split_q(q), robot.split_v(v), robot.split_tau(tau)
        taken = StepTaken(p, *rows, parameters[0], kept, sums)
        assert self.method.step is not None
        after = self.method.step(taken)
        q1, v1, entries = robot.join_q(after[0]), robot.join_v(after[1]), sums.entries[: self.sums]
        entries += self.measured.after(
            sums.entries[self.sums :],
            lambda step: Happened(p, step, *rows, (q1, v1, tau), taken.held, parameters),
        )
        return [q1, v1, entries, kept.after()]

    def kernel(
        self,
        what: str = "step",
        text: Callable[[Program], Callable[..., Any]] = lambda program: program.text,
        inputs: Sequence[tuple[str, int]] = (),
    ) -> Kernel:
        """The step as a kernel, built once for a robot; where inertias are an input, once for all of them.

        Arguments are of :meth:`built`, for one that has more inputs.
        """
        return self.built(
            what,
            text,
            inputs=[("ledger", self.entries), *inputs],
            outputs=[
                ("q_next", (self.robot.nq,)),
                ("v_next", (self.robot.nv,)),
                ("ledger_next", (self.entries,)),
                ("carried_next", (self.layout.size,)),
            ],
            feedback={"q_next": "q", "v_next": "v", "ledger_next": "ledger", "carried_next": "carried"},
        )

    def built(
        self,
        what: str,
        text: Callable[[Program], Callable[..., Any]],
        inputs: Sequence[tuple[str, int]],
        outputs: Sequence[tuple[str, tuple[int, ...]]],
        feedback: Mapping[str, str] | None = None,
    ) -> Kernel:
        """A kernel of the step, or of the part named ``what``, built once.

        ``text`` is of this program, or of the same without its inertias; ``inputs`` come after q, v and tau,
        before carried numbers and parameters; ``outputs`` are of the text, and ``feedback`` is as in
        :class:`Kernel`.
        """
        robot = self.robot
        program, kernels, name, key = self._place(what)
        if name not in kernels:
            built = Kernel(
                what,
                inputs=[
                    ("q", robot.nq),
                    ("v", robot.nv),
                    ("tau", robot.nv),
                    *inputs,
                    ("carried", self.layout.size),
                    ("parameters", self.parameters(1.0).shape[-1]),
                    *self.given.inputs,
                ],
                outputs=outputs,
                function=text(program),
                key=key,
                feedback=feedback,
                dtype=self.dtype,
                reproducible=self.reproducible,
                superword_seeds=similar_inputs(robot, [True, False, False]),
            )
            kernels.setdefault(name, built)
        return kernels[name]

    def _place(self, what: str) -> tuple[Program, dict[Any, Any], str, bytes]:
        """Whose text a kernel is, where it is kept, by which name, and what it depends on."""
        robot, kernels = self.robot, self.robot.kernels
        key, program, joints = robot.fingerprint, self, self.joints
        if self.open:
            program = copy(self)  # without the inertias and all that depends on them
            joints = joints.with_gains([0.0] * len(joints.gains))
            program.robot, program.joints = without_inertias(robot), joints
            kernels = robot.kernels_of_all_inertias()
            key = robot.fingerprint_without_inertias + b"inertial parameters"
        loops = [model.key for model in self.loops.models] if self.loops else None
        described: tuple[Any, ...] = (self.name, joints, loops)
        described += (self.given,) if self.given.inputs or self.given.base else ()
        described += (self.measured,) if self.measured.trackers else ()
        if what != "step":
            described += (what,)
        key += repr(described).encode()
        name = (
            f"{what}_{hashlib.sha256(key).hexdigest()[:16]} {self.dtype}{' reproducible' * self.reproducible}"
        )
        return program, kernels, name, key

    def with_given(self, given: GivenLayout, numbers: Sequence[Any]) -> Program:
        """The same step with these actuators and forces from outside; nothing is computed anew."""
        found = copy(self)
        found.given, found.given_numbers = replace(given, fixed_links=self.given.fixed_links), numbers
        return found

    def sample(self, k: int) -> Program:
        """The same step for row k alone: its sample of the robot and its ground."""
        robot = self.robot if self.robot.samples is None else self.robot.sample(k)
        gains = [gain[k] if np.ndim(gain) else gain for gain in self.joints.gains]
        ground = self.ground and self.ground.row(k)
        given = [x[k] if np.ndim(x) else x for x in self.given_numbers]
        joints = self.joints.with_gains(gains)
        return replace(self, robot=robot, joints=joints, ground=ground, given_numbers=given)


def subjects_of(program: Program) -> Subjects:
    """Whom measures and events of a program are about."""
    robot, drives = program.robot, program.given.drives
    joints, bodies = {joint.body: joint.name for joint in robot.body_joints}, body_names(robot)
    masses = np.atleast_2d(robot.inertial_parameters[..., 1:, 0])
    return Subjects(
        program.touching_links,
        tuple((joints[i], i) for i, stop in enumerate(program.joints.stop) if stop is not None),
        tuple((np.flatnonzero(masses.any(axis=0)) + 1).tolist()),
        tuple((joints[d.body], d.body, k) for k, d in enumerate(drives) if d.effort or d.speed),
        tuple((bodies[i], i) for i in bodies_in(robot, program.between.runs).tolist()),
    )
