"""What happens in single steps of the integrator "contact", seen in the arrays that they leave."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.contact.constraints.motors import limited
from robokit.contact.fields import FRICTION, MOTOR, STOP
from robokit.contact.solver import relative
from robokit.contact.step import ARRAYS
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import kernel_of, real, whole
from robokit.engine.loops.kernel import LoopKernel
from robokit.sim.record.state_facts import state_facts
from robokit.sim.record.step_facts import CONE, SLIDING, StepFacts, Subjects, past_of
from robokit.sim.simulation import Simulation
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps
from robokit.sim.stepping.step_numbers import scene_of
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import maximum, sqrt, where

READ = (
    "dt", "n_of", "c_kind", "c_of", "c_bodies", "c_E", "c_g", "c_u", "c_mu", "contact_frame",
    "contact_surface", "contact_pair", "pair_shapes", "r_kind", "r_of", "r_row", "r_gain", "r_R", "r_aim",
    "r_g", "y", "V",
)  # fmt: skip
"""Arrays of the step that are looked at."""

FACTS = (
    whole("shape_link", "n_shapes"),  # column of each shape's link, or -1
    whole("stop_joint", "n_stops"),  # of each stop's joint
    whole("motor_column", "n_motors"),  # of each motor with limits, or -1
    real("of_links", "n_links", 7, role="out"),  # force, normal and sliding part, speeds of sliding, approach
    real("of_stops", "n_joints", role="out"),  # force of each joint's stops
    real("of_motors", "n_driven", 2, role="out"),  # force; 1 at a limit
    real("met", "n_bodies", 3, role="out"),  # impulse of other bodies [N s]
)
"""Whom the columns are about, and the facts of a step."""

TAKEN = (*(replace(a, role="in") for a in ARRAYS if a.name in READ), *FACTS)


@functools.cache
def _kernel() -> LoopKernel:
    return kernel_of("contact_facts", facts, TAKEN, by_source=True)


def facts(x: Any) -> None:
    """The facts of the step that was taken last."""
    for_range(x.n_links, lambda k: _clear(x.of_links, k, 7))
    for_range(x.n_driven, lambda k: _clear(x.of_motors, k, 2))
    for_range(x.n_bodies, lambda k: _clear(x.met, k, 3))

    def clear(k: Any) -> None:
        x.of_stops[k] = 0.0

    for_range(x.n_joints, clear)
    for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: _contact(x, i), _nothing))
    for_range(x.n_of[1], lambda i: _row(x, i))


def _contact(x: Any, i: Any) -> None:
    c = x.c_of[i]
    g = [x.c_g[i, k] for k in range(3)]
    impulse = [sum(x.contact_frame[c, 3 * r + k] * g[r] for r in range(3)) for k in range(3)]
    link = x.shape_link[x.pair_shapes[x.contact_pair[c], 1]]

    def meet() -> None:
        for k, part in enumerate(impulse):
            x.met[x.c_bodies[i, 0], k] = x.met[x.c_bodies[i, 0], k] - part
            x.met[x.c_bodies[i, 1], k] = x.met[x.c_bodies[i, 1], k] + part

    def on_ground() -> None:
        cond(link < 0, _nothing, lambda: _touch(x, i, c, link, impulse))

    cond(x.c_bodies[i, 0] > 0, meet, on_ground)


def _touch(x: Any, i: Any, c: Any, link: Any, impulse: Sequence[Any]) -> None:
    per, N = 1.0 / x.dt[0], maximum(x.c_g[i, 2], 0.0)
    off = [x.c_u[i, k] - x.contact_surface[c, k] for k in range(2)]
    speed = sqrt(off[0] * off[0] + off[1] * off[1])
    most, along = CONE * x.c_mu[i] * N, x.c_g[i, 0] * x.c_g[i, 0] + x.c_g[i, 1] * x.c_g[i, 1]
    slides = (along >= most * most) & (speed > SLIDING) & (N > 0.0)
    out, approach = x.of_links, -relative(x, i, x.V)[2]
    for k, part in enumerate(impulse):
        out[link, k] = out[link, k] + part * per
    out[link, 3] = out[link, 3] + N * per
    out[link, 4] = out[link, 4] + where(slides, N * per, 0.0)
    out[link, 5] = maximum(out[link, 5], where(slides, speed, 0.0))
    out[link, 6] = maximum(out[link, 6], where(N > 0.0, approach, 0.0))


def _row(x: Any, i: Any) -> None:
    kind, force = x.r_kind[i], x.r_gain[i] * x.r_g[i] / x.dt[0]

    def stop() -> None:
        j = x.stop_joint[x.r_of[i]]
        x.of_stops[j] = x.of_stops[j] + force

    def motor() -> None:
        k = x.motor_column[x.r_of[i]]

        def write() -> None:
            x.of_motors[k, 0] = force
            x.of_motors[k, 1] = limited(x, i)

        cond(k < 0, _nothing, write)

    cond(kind == STOP, stop, lambda: cond(kind == MOTOR, motor, _nothing))


def _clear(A: Any, row: Any, columns: int) -> None:
    for k in range(columns):
        A[row, k] = 0.0


def _nothing() -> None:
    """The other branch of what is only done sometimes."""


class _Looker:
    """The facts of a simulation's last step, by the kernel above."""

    def __init__(self, program: Program, subjects: Subjects, simulation: Simulation) -> None:
        self.simulation = simulation
        x, links = simulation.arrays, {name: k for k, name in enumerate(subjects.links)}
        column = {body: k for k, (_, body) in enumerate(subjects.joints)}
        driven = {place: k for k, (*_, place) in enumerate(subjects.driven)}
        self.own = {
            "shape_link": [links.get(name, -1) for name in scene_of(program).links],
            "stop_joint": [column[int(b)] for b in x["dof_body"][x["stop_dof"]]],
            "motor_column": [driven.get(k, -1) for k in range(len(x["motor_dof"]))],
        }
        self.sizes = {"n_links": len(links), "n_joints": len(column), "n_driven": len(driven)}
        self.call: Callable[[], None] | None = None
        self.place: Any = None

    def look(self) -> list[np.ndarray]:
        """Of links, stops and motors, and what bodies met."""
        simulation, kernel = self.simulation, _kernel()
        if self.place is not simulation.work:  # it moves when it grows
            sizes = {**simulation.sizes, **self.sizes}
            have = {**simulation.arrays, **simulation.work}
            have |= {name: np.array(values, np.int32) for name, values in self.own.items()}
            given = [have[a.name] if a.name in have else a.zeros(sizes) for a in kernel.taken]
            self.out, self.place = given[-4:], simulation.work
            own = {name: sizes[name] for name in kernel.sizes}
            try:
                if simulation.refused:
                    raise NoMachineCode(simulation.refused)
                self.call = kernel.single(own, given)
            except NoMachineCode:
                self.call = functools.partial(kernel.on_memory, *own.values(), *given)
        assert self.call is not None
        self.call()
        return [part.copy() for part in self.out]


def contact_facts(program: Program, dt: float, replay: Any) -> StepFacts:
    """The facts of all steps, or of all their parts.

    Args:
        program: the step.
        dt: time step [s].
        replay: Replay of the states, whose steps are looked at as it takes them.
    """
    robot, subjects = program.robot, Subjects.of(program)
    states: list[tuple[np.ndarray, ...]] = []
    found: list[list[np.ndarray]] = []
    order, lengths = _looked_at(program, subjects, dt, replay, states, found)
    S, L = len(states), len(subjects.links)
    q, v, tau = (
        np.array([row[k] for row in states]).reshape(S, n)
        for k, n in enumerate((robot.nq, robot.nv, robot.nv))
    )
    links, stops, motors, met = (
        np.array([row[k] for row in found]).reshape(S, *shape)
        for k, shape in enumerate(((L, 7), (len(subjects.joints),), (len(subjects.driven), 2), (-1, 3)))
    )
    rows = list(q.T), list(v.T)
    at, rate = robot.split_q(rows[0]), robot.split_v(rows[1])

    def columns(values: Sequence[Any]) -> np.ndarray:
        return np.stack([np.broadcast_to(x, S) for x in values], axis=1) if values else np.zeros((S, 0))

    bodies = [i for _, i in subjects.joints]
    energy = state_facts(robot, q, v)[:, 0]
    mass = max(robot.total_mass, 1e-300)
    facts = StepFacts(
        links[..., :3], links[..., 3], links[..., 4], links[..., 5], links[..., 6], stops,
        columns([rate[i][0] for i in bodies]),
        columns([past_of(at[i][0], program.joints.stop[i]) for i in bodies]),
        motors[..., 0], motors[..., 1],
        np.linalg.norm(met[:, [i for _, i in subjects.meeting]], axis=-1),
        np.sqrt(np.maximum(2.0 * energy, 0.0) / mass),
        v, q, tau, lengths,
    )  # fmt: skip
    return facts.of(order)


def _looked_at(
    program: Program,
    subjects: Subjects,
    dt: float,
    replay: Any,
    states: list[tuple[np.ndarray, ...]],
    found: list[list[np.ndarray]],
) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of the states that the steps set out from, for all steps, and the lengths of parts of steps.

    Args:
        program: the step.
        subjects: whom the facts are about.
        dt: time step [s].
        replay: of the run.
        states: gets q, v and tau before each step that is looked at.
        found: gets what is seen in it.
    """
    if program.accuracy is None:
        looker, counts = _Looker(program, subjects, replay.kernel.simulation(dt)), list[int]()
        replay.look = lambda: found.append(looker.look())
        for count, (q, v, tau, *_) in replay.steps():
            counts.append(count)
            states.append((q, v, tau))
        return np.repeat(np.arange(len(counts)), counts), None
    taker = ContactSteps(program)
    looker = _Looker(program, subjects, taker.in_parts(dt))
    order, lengths = list[int](), list[float]()
    for count, (q, v, tau, carried, *given) in replay.steps():
        first = len(states)
        before: tuple[Any, ...] = q, v
        for simulation, length in taker.parts(q, v, tau, carried, dt, *given):
            states.append((*before, tau))
            found.append(looker.look())
            lengths.append(length / dt)
            before = tuple(simulation.arrays[name].copy() for name in ("q", "v"))
        order += [*range(first, len(states))] * count
    return np.array(order, int), np.array(lengths)
