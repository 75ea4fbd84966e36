"""What happens in single steps of "contact", as these note it (contact/monitor.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.sim.contact_state import ContactState
from robokit.sim.motion.state_facts import state_facts
from robokit.sim.record.step_facts import StepFacts, Subjects, past_of
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps


class _Looker:
    """The facts of a simulation's last step, which the step itself notes (contact/monitor.py)."""

    def __init__(self, subjects: Subjects, simulation: ContactState) -> None:
        self.simulation = simulation
        self.driven = [place for *_, place in subjects.driven]
        simulation.arrays["watched"][0] = 1

    def look(self) -> list[np.ndarray]:
        """Of links, stops and motors, and what bodies met."""
        x = self.simulation.arrays
        links = np.concatenate([x["link_force"][:-1, :3], x["link_contact"][:-1]], axis=1)
        return [links, x["stop_force"].copy(), x["motor_force"][self.driven], x["met"].copy()]


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
        looker, counts = _Looker(subjects, replay.kernel.simulation(dt)), list[int]()
        replay.look = lambda: found.append(looker.look())
        for count, (q, v, tau, *_) in replay.steps():
            counts.append(count)
            states.append((q, v, tau))
        return np.repeat(np.arange(len(counts)), counts), None
    taker = ContactSteps(program)
    looker = _Looker(subjects, taker.in_parts(dt))
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
