"""What simulate and rollout make of their arguments, and which of them they refuse."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robokit.arguments import real_number, whole_number
from robokit.dynamics.singular import check_inertia
from robokit.engine.reproducible import wanted
from robokit.errors import ShapeError, SimulationWarning, shown
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.sim.body_pairs import body_contacts
from robokit.sim.ground import Ground
from robokit.sim.integrators import method
from robokit.sim.joint_forces import joint_law
from robokit.sim.loop_closure import held_by_loops
from robokit.sim.motion import may_keep_energy
from robokit.sim.prescribed import PrescribedMotion
from robokit.sim.springs import NO_SPRINGS, Springs
from robokit.sim.step_kernel import Program
from robokit.sim.stepping.default_step import default_step, step_for_spin

FRAME = 5e-3
"""Time between recorded states by default [s]."""

LARGEST_CONTACT_STEP = 4e-3
"""Longest step with a ground that is not warned of [s]."""

MOST_STEPS = 1e10
"""Steps of a run; a year of them."""


@dataclass(frozen=True)
class Setup:
    """What simulate and rollout make of the arguments that they share.

    Attributes:
        program: the step.
        dt: time step [s].
        steps: number of steps.
        every: steps between two records.
        summary: entries for the summary.
    """

    program: Program
    dt: float
    steps: int
    every: int
    summary: dict[str, Any]


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
    """Check the arguments that simulate and rollout share, and make the step of them.

    ``start`` are q and v at the starts, whose spins a default step knows. ``by_step`` says whether something
    is given anew in each step: such steps are not longer with an accuracy than without. Warnings point at
    the caller's caller; for errors see :func:`robokit.simulate`.
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
    by_contact = surface is not None or bool(between.bodies) or asked
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
        dt = step_for_spin(dt, robot, *start)
    steps = _steps(duration, dt) if steps is None else steps
    if surface is not None and dt > LARGEST_CONTACT_STEP:
        warnings.warn(
            f"dt = {dt:g} s is long for contact: take 4 ms or less", SimulationWarning, stacklevel=3
        )
    if light is None:
        check_inertia(robot)
    damping = None if surface is not None else 0.0
    if joint_damping is not None:
        damping = real_number("joint_damping", joint_damping, least=0.0)
    law, defaulted = joint_law(robot, damping)
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
    summary: dict[str, Any] = {"dt_chosen": chosen, "self_collision_pairs": len(between.bodies)}
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
    """The ground that was given, True for that of default values, or None."""
    if ground is None or ground is False:
        return None
    surface = Ground() if ground is True else ground
    if not isinstance(surface, Ground):
        raise ShapeError(f"ground: expected rk.Ground(...), True or None, got {shown(ground)}")
    if surface.rows is not None and not many:
        raise ShapeError(
            f"ground: {surface.by_row} has {surface.rows} values, one a row of rk.rollout; give one here"
        )
    for given in (surface.friction, surface.restitution):
        for link in given if isinstance(given, Mapping) else ():
            robot.link(link)  # raises for a misspelt link, which would get the default
    return surface
