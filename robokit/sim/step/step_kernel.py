"""The time step of a robot as a kernel, and what goes into it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from robokit.algorithms.loop_dynamics import PROXIMAL
from robokit.dynamics.build import without_inertias
from robokit.engine import Kernel
from robokit.model.inertial_parameters import inertias
from robokit.model.loop_models import loop_models
from robokit.model.robot import Robot
from robokit.model.twin_limbs import twin_inputs
from robokit.sim.collide import CollisionPairs
from robokit.sim.ground import Ground
from robokit.sim.ground.ground_inputs import ground_numbers, ground_tables, layouts
from robokit.sim.joints.given import NOTHING, GivenLayout
from robokit.sim.joints.joint_law import JointLaw
from robokit.sim.joints.loop_impulses import PROXIMAL_SINGLE, LoopLaw
from robokit.sim.meeting.nearest_pairs import slots_of
from robokit.sim.meeting.pair_contact import PairLaw
from robokit.sim.meeting.pair_shapes import pair_shapes
from robokit.sim.motion import ledger
from robokit.sim.motion.carried import Carried, CarriedLayout
from robokit.sim.motion.effective_mass import effective_masses, mobilities
from robokit.sim.motion.momentum_projection import floats, hangs_on_nothing, may_keep_energy
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.shapes.contact_points import ContactPoints, contact_points
from robokit.sim.shapes.contact_shapes import Ball, ContactShape
from robokit.sim.shapes.touching_size import extent, loose_extent, steady
from robokit.sim.step.integrators import Method
from robokit.sim.step.measured import NOTHING as NOTHING_MEASURED
from robokit.sim.step.measured import Happened, MeasuredLayout
from robokit.sim.step.problem import Problem
from robokit.sim.touching.ground_law import GroundLaw
from robokit.sim.touching.surfaces import read_ground


@dataclass(frozen=True)
class Between:
    """Friction and restitution of bodies on each other."""

    friction: float = 0.5
    restitution: float = 0.0


@dataclass
class Program:
    """A robot's step with everything but the state.

    Attributes:
        robot: the robot.
        name: of the method.
        method: row of the table of methods.
        joints: damping, friction and limits.
        ground: the ground, or None.
        sweeps: of the contact step.
        dtype: of the numbers that the kernel computes with, "float64" or "float32".
        given: actuators and forces from outside.
        given_numbers: their parameters, floats or (B,).
        pairs: bodies that may touch each other, or None.
        measured: what is measured in each step.
        reproducible: whether the kernels give the same bits everywhere (robokit.engine.reproducible).
        touching_bodies: pairs of bodies that may touch each other in "newton".
        between: the law between these.
        points: contact points, or None without a ground.
        by_body: the same by body.
        loops: the loop joints, or None.
        layout: of what a step hands to the next.
        masses: effective mass of each touching body.
        size: radius of the robot's contact points [m].
        loose: the same that counts under its loose bodies [m].
        steady: depth on which these stand [m].
        open: whether inertias, and what follows from them, are an input of the step, not constants.
    """

    robot: Robot
    name: str
    method: Method
    joints: JointLaw
    ground: Ground | None
    sweeps: int
    dtype: str = "float64"
    given: GivenLayout = NOTHING
    given_numbers: Sequence[Any] = ()
    pairs: CollisionPairs | None = None
    measured: MeasuredLayout = NOTHING_MEASURED
    reproducible: bool = False
    touching_bodies: Sequence[tuple[int, int]] = ()
    between: Between = Between()

    def __post_init__(self) -> None:
        n = self.robot.nbodies
        self.open = self.robot.parameters is not None
        self.points: ContactPoints | None = None
        self.size: Any = 0.0
        self.by_body: list[list[ContactShape]] = [[] for _ in range(n + 1)]
        self.corners: list[tuple[int, int]] = []
        """(body, place in its list) of the points that move with the inertia."""
        if self.ground is not None:
            ground = self.ground
            which = ground.max_points, ground.shape_error, ground.only_plane, ground.solids
            points = self.points = contact_points(self.robot, *which)
            self.size = self.robot.derived.get(("extent", *which), lambda: extent(self.robot, points))
            self.by_body = self.points.by_body(n)
            flags = [self.points.of_inertia[self.points.body == i] for i in range(n + 1)]
            self.corners = [(i, int(k)) for i, row in enumerate(flags) for k in np.flatnonzero(row)]
        self.touching = [i for i in range(1, n + 1) if self.by_body[i]]
        self.loose, self.steady = math.inf, math.inf
        if self.points is not None:
            self.loose = loose_extent(self.robot, self.points)
            self.steady = steady(self.robot, self.points)
        self.masses: list[Any] = self.robot.derived.get(
            ("effective masses", tuple(self.touching)), lambda: effective_masses(self.robot, self.touching)
        )
        self.shapes = None if self.pairs is None else pair_shapes(self.pairs)
        self.given = self._with_walls(self.given)
        self.bouncing = self.pairs is not None and self.pairs.restitution > 0.0
        stuck = self.ground is not None and self.ground.slip is None
        contacts = sum(len(self.by_body[i]) for i in self.touching)
        models = loop_models(self.robot)
        share = PROXIMAL if self.dtype == "float64" else PROXIMAL_SINGLE
        self.loops = LoopLaw(models, share) if models else None
        tree = self.robot.tree
        self.layout = CarriedLayout(
            floats(tree),
            contacts if stuck else 0,
            contacts,
            self.joints.wound,
            self.method.keeps_energy and may_keep_energy(tree),
            0 if self.shapes is None else slots_of(self.shapes),
        )

    def parameters(self, dt: float) -> np.ndarray:
        """Numbers that may change without another kernel, (P,), or (B, P) where rows differ in them.

        They are dt; the accuracy, where steps are iterated to one; surfaces, k, d, slip and friction by body
        of the ground; and where inertias are an input, the gains of the stops, the corners of inertias' boxes
        and the inertial parameters.
        """
        numbers: list[Any] = [dt]
        if self.iterated:
            assert self.ground is not None
            numbers.append(self.ground.accuracy)
        if self.ground is not None and self.points is not None:
            k, d = self.gains
            bodies, links = self.points.body[::-1], self.points.link[::-1]
            first = {int(i): link for i, link in zip(bodies, links, strict=True)}
            mu = [self.ground.coefficient(first[i]) for i in self.touching]
            numbers += [*ground_numbers(self.ground), k, d, *self.ground.fades, *mu]
            if self.ground.restitution is not None:
                numbers += [self.ground.bounce(first[i]) for i in self.touching]
            if self.open:
                numbers += self.masses
        if self.pairs is not None and self.shapes is not None:
            numbers += [
                self.pairs.friction,
                self.pairs.restitution,
                *(self.gains if self.touching else (self.ground or Ground()).gains(self.robot)),
                *mobilities(self.robot, self.shapes.bodies),
            ]
        if self.open:
            numbers += self.joints.gains
        numbers += self.given_numbers
        parts = [np.stack(np.broadcast_arrays(*numbers), axis=-1)]
        if not self.open:
            return parts[0]
        if self.points is not None:
            moved = [k for k in self.points.order(self.robot.nbodies) if self.points.of_inertia[k]]
            parts.append(self.points.position[..., moved, :].reshape(*self.points.position.shape[:-2], -1))
        inertial = self.robot.inertial_parameters
        parts.append(inertial.reshape(*inertial.shape[:-2], -1))
        samples = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        rows = [np.broadcast_to(part, (*samples, part.shape[-1])) for part in parts]
        return np.concatenate(rows, axis=-1, dtype=float)

    @property
    def gains(self) -> tuple[Any, Any]:
        """k [N/m] and d [N s/m] of the points on the ground."""
        assert self.ground is not None
        return self.ground.gains(self.robot, np.minimum(self.size, self.loose), self.steady)

    @property
    def iterated(self) -> bool:
        """Whether the kick of each step is iterated to an accuracy."""
        given = self.ground is not None and self.ground.accuracy is not None
        return given and self.method.falls and not self.newton

    @property
    def sums(self) -> int:
        """Size of the ledger without what is measured, which comes after it."""
        own = len(ledger.NEWTON) if self.newton else len(ledger.ITERATION) * self.iterated
        return ledger.SIZE + self.given.entries + own

    @property
    def newton(self) -> bool:
        """Whether its steps are those of contact/step.py."""
        return self.name == "newton"

    @property
    def entries(self) -> int:
        """Size of the ledger."""
        return self.sums + self.measured.size

    def problem(self, parameters: Sequence[Any], more: Sequence[Any] = ()) -> Problem:
        """The step's problem, of plain numbers or scalars of a kernel.

        Args:
            parameters: as of :meth:`parameters`.
            more: inputs from outside, and the tables of :meth:`tables`, which may be left out.
        """
        n = len(self.given.inputs)
        inputs, tables = more[:n], more[n:] or self.tables()
        rest = iter(parameters[1 + self.iterated :])
        law, tree, joints, points = None, self.robot.tree, self.joints, self.by_body
        if self.ground is not None:
            height, plane, surfaces = read_ground(self.ground, rest, tables)
            k, d = islice(rest, 2)
            slip, torsional, rolling = (
                next(rest) if given else None
                for given in (self.ground.slip, self.ground.torsional, self.ground.rolling)
            )
            mu, masses = list(islice(rest, len(self.touching))), self.masses
            bounce = None
            if self.ground.restitution is not None:
                bounce = list(islice(rest, len(self.touching)))
            if self.open:
                masses = list(islice(rest, len(self.touching)))
            law = GroundLaw(
                height, k, d, slip, mu, masses, bounce, torsional, rolling, plane, surfaces
            )  # fmt: skip
        pairs = None
        if self.shapes is not None:
            friction, restitution, stiff, damp, *mobility = islice(rest, 4 + len(self.shapes.bodies))
            bounces = restitution if self.bouncing else None
            pairs = PairLaw(self.shapes, mobility, friction, bounces, stiff, damp)
        if self.open:
            joints = joints.with_gains(list(islice(rest, len(joints.gains))))
        given = self.given.problem(list(islice(rest, len(self.given_numbers))), inputs)
        if self.open:
            points = [list(row) for row in points]
            for i, place in self.corners:
                x, y, z = islice(rest, 3)
                points[i][place] = Ball((x, y, z))
            tree = replace(tree, I=inertias(list(rest)))
        return Problem(tree, joints, points, law, self.sweeps, self.loops, given, pairs)

    def text(
        self, q: Any, v: Any, tau: Any, entries: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        """One step: the next q, v, ledger and carried numbers."""
        robot, p = self.robot, self.problem(parameters, more)
        rows = robot.split_q(q), robot.split_v(v), robot.split_tau(tau)
        sums, kept = ledger.Ledger(entries), Carried(self.layout, carried)
        q1, v1 = self.method.step(p, *rows, parameters[0], sums, kept)
        return self.outputs(p, rows, (q1, v1), tau, sums, kept, parameters)

    def outputs(
        self,
        p: Problem,
        before: tuple[Rows, Rows, Rows],
        after: tuple[Rows, Rows],
        tau: Sequence[Any],
        sums: ledger.Ledger,
        kept: Carried,
        parameters: Sequence[Any],
    ) -> list[list[Any]]:
        """What the kernel of a step returns: the next q, v, ledger and carried numbers.

        Args:
            p: the step's problem.
            before: q, v and joint forces before, by joint.
            after: q and v after, by joint.
            tau: the joint forces, flat.
            sums, kept: ledger and carried numbers after the step.
            parameters: of the kernel.
        """
        q1, v1 = self.robot.join_q(after[0]), self.robot.join_v(after[1])
        entries = sums.entries[: self.sums]
        if self.measured.trackers:
            flat, done = (q1, v1, tau), (sums.done, sums.impulse, parameters)
            entries += self.measured.after(
                sums.entries[self.sums :], lambda step: Happened(p, step, *before, flat, *done)
            )
        return [q1, v1, entries, kept.after()]

    def kernel(self) -> Kernel:
        """The step as a kernel, built once for a robot; where inertias are an input, once for all of them."""
        return self.built(
            "step",
            lambda program: program.text,
            inputs=[("ledger", self.entries)],
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
        """A kernel of the step, or of a part of it, built once.

        Args:
            what: name of the kernel.
            text: of this program, or of the same without its inertias.
            inputs: that are given after q, v and tau, before carried numbers and parameters.
            outputs: of the text.
            feedback: as of :meth:`Kernel.build`.
        """
        robot = self.robot
        program, kernels, name, key = self._place(what)
        if name not in kernels:
            built = Kernel.build(
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
                text=text(program),
                key=key,
                feedback=feedback,
                dtype=self.dtype,
                tables=[(name, len(table)) for name, table in self.named_tables()],
                reproducible=self.reproducible,
                superword_seeds=twin_inputs(robot, [True, False, False]),
            )
            kernels.setdefault(name, built)
        return kernels[name]

    def kept(self, what: str, make: Callable[[], Any]) -> Any:
        """What follows from the step but for its numbers, made once for a robot."""
        _, kernels, name, _ = self._place(what)
        return kernels[name] if name in kernels else kernels.setdefault(name, make())

    def _place(self, what: str) -> tuple[Program, dict[Any, Any], str, bytes]:
        """Whose text a kernel is, where it is kept, by which name, and what it depends on."""
        robot, kernels = self.robot, self.robot.kernels
        described: tuple[Any, ...]
        stuck = self.ground is None or self.ground.slip is None
        loops = [model.key for model in self.loops.models] if self.loops else None
        uneven = None if self.ground is None or self.ground.horizontal else layouts(self.ground)
        law: tuple[Any, ...] = (self.ground is None, stuck, uneven, loops, self.shapes, self.bouncing)
        if self.ground is not None:
            law += (
                self.iterated,
                self.ground.restitution is None,
                bool(self.ground.torsional),
                bool(self.ground.rolling),
            )
        described = (self.name, self.sweeps, self.joints, self.by_body, *law)
        described += (self.given,) if self.given.inputs or self.given.base else ()
        described += (self.measured,) if self.measured.trackers else ()
        key, program = robot.fingerprint, self
        if self.open:
            program = self._bare()
            kernels = robot.kernels_of_all_inertias()
            described = (*described[:2], program.joints, program.by_body, *described[4:])
            key = robot.fingerprint_without_inertias + b"inertial parameters"
        if what != "step":
            described += (what,)
        key += repr(described).encode()
        name = (
            f"{what}_{hashlib.sha256(key).hexdigest()[:16]} {self.dtype}{' reproducible' * self.reproducible}"
        )
        return program, kernels, name, key

    def tables(self) -> list[np.ndarray]:
        """What the kernel is given besides, (n,) each and of its dtype: the heights of a ground."""
        return [np.ascontiguousarray(table, self.dtype) for _, table in self.named_tables()]

    def named_tables(self) -> list[tuple[str, np.ndarray]]:
        """(name, numbers) of each table, in double precision."""
        return [] if self.ground is None else ground_tables(self.ground)

    def with_given(self, given: GivenLayout, numbers: Sequence[Any]) -> Program:
        """The same step with these actuators and forces from outside; nothing is computed anew."""
        found = copy(self)
        found.given, found.given_numbers = self._with_walls(given), numbers
        return found

    def _with_walls(self, given: GivenLayout) -> GivenLayout:
        """The same; says whether robots that hang on nothing may touch the fixed base of another."""
        walls = self.shapes is not None and 0 in self.shapes.bodies and hangs_on_nothing(self.robot.tree)
        return replace(given, walls=walls)

    def sample(self, k: int) -> Program:
        """The same step for row k alone: its sample of the robot and its ground."""
        robot = self.robot if self.robot.samples is None else self.robot.sample(k)
        gains = [gain[k] if np.ndim(gain) else gain for gain in self.joints.gains]
        ground = self.ground and self.ground.row(k)
        given = [x[k] if np.ndim(x) else x for x in self.given_numbers]
        joints = self.joints.with_gains(gains)
        return replace(self, robot=robot, joints=joints, ground=ground, given_numbers=given)

    def _bare(self) -> Program:
        """The same step without the inertias and all that depends on them: these are inputs of the kernel."""
        bare = copy(self)
        bare.robot, bare.points = without_inertias(self.robot), None
        bare.joints = self.joints.with_gains([0.0] * len(self.joints.gains))
        bare.masses = [0.0] * len(self.masses)
        bare.by_body = [list(row) for row in self.by_body]
        for i, place in self.corners:
            bare.by_body[i][place] = Ball((0.0, 0.0, 0.0))
        return bare
