"""The contacts of recorded states, from the steps that led to them, as they acted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robokit.contact.fields import FRICTION
from robokit.sim.contact_state import ContactState
from robokit.sim.record.contact_record import Contacts
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps
from robokit.sim.stepping.step_numbers import scene_of


def step_contacts(program: Program, steps: Sequence[np.ndarray], dt: float) -> Contacts:
    """Places and forces of the ground's contacts, each step taken once more.

    A link has as many points as it ever has at once. One that does not touch is at the link's origin.

    Args:
        program: the step.
        steps: from where the steps set out, and with what: q, v, tau, carried numbers, inputs, (T, ...) each.
        dt: time step [s].
    """
    robot, links = program.robot, scene_of(program).links
    taker = ContactSteps(program)
    found: list[list[tuple[str, np.ndarray, np.ndarray]]] = []
    origins: list[np.ndarray] = []
    for q, v, tau, carried, *given in zip(*steps, strict=True):
        *_, (simulation, last) = taker.parts(q, v, tau, carried, dt, *given)
        found.append(_contacts(simulation, links, last) if found else [])
        origins.append(simulation.work["p"] + simulation.work["origin"])
    most: dict[str, int] = {}
    for row in found:
        names = [name for name, *_ in row]
        most |= {name: max(most.get(name, 0), names.count(name)) for name in names}
    columns = [name for name, count in most.items() for _ in range(count)]
    bodies = {link.name: link.body for link in robot.links}
    T, K = len(found), len(columns)
    points, forces = np.zeros((T, K, 3)), np.zeros((T, K, 3))
    for t, row in enumerate(found):
        points[t] = origins[t][[bodies[name] for name in columns]]
        free = {name: columns.index(name) for name in most}
        for name, place, force in row:
            points[t, free[name]], forces[t, free[name]] = place, force
            free[name] += 1
    return Contacts(points, forces, tuple(columns))


def _contacts(
    simulation: ContactState, links: Sequence[str], dt: float
) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(link, place, force) of the contacts of the last step that pressed on the ground."""
    work, pairs = simulation.work, simulation.arrays["pair_shapes"]
    out = []
    for i in range(int(work["n_of"][0])):
        if work["c_kind"][i] != FRICTION or work["c_bodies"][i, 0] or work["c_g"][i, 2] <= 0.0:
            continue
        c = work["c_of"][i]
        force = work["c_g"][i] @ work["contact_frame"][c].reshape(3, 3) / dt
        shape = pairs[work["contact_pair"][c], 1]
        out.append((links[shape], work["contact_place"][c] + simulation.arrays["middle"], force))
    return out
