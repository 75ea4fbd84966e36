"""Steps for a host that takes them without Python, and what that host shows of a state.

Passive motion has two WebAssembly modules of the robot:

    step            the next state, energy accounting and solver state
    look            what a state looks like: poses, energies, momentum, and what the first step is handed

Gravity and a wrench on every body are inputs of both; controllers of the run are left out, and its pushes
unless they are asked for. Everything else is as in :func:`robokit.simulate`: the same functions.

The step of contact/step.py is one WebAssembly module for all robots:

    contact_step    the step
    contact_look    what a state looks like: poses, energies, momentum

What touched in a step is what the step notes (contact/monitor.py) where ``watched`` is 2.

The robot, its shapes and the ground are arrays in the module's memory, by the names of :data:`ARRAYS`. Both
functions take all sizes, then the places of all arrays; those of :data:`LOOK` come last, and the step does
not take them. The states are those of ``rk.simulate(..., integrator="contact", reproducible=True)``, bit for
bit, as long as nobody pulls, pushes or changes gravity, friction or the time step. What a driven joint wants
is the first column of ``motor_command``. The last two pushes are the host's: at any point of any body.

A compiled module comes with robokit (robokit/shipped_code.py). After a change of the step:

    python -m robokit.sim.page_step
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit import disk_cache, shipped_code
from robokit.algorithms import energy
from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.kinematics import forward_kinematics
from robokit.collision.detect import detect_kernel
from robokit.contact.kinematics import (
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_mass,
)
from robokit.contact.step import ARRAYS as STEP_ARRAYS
from robokit.contact.step import step_kernel
from robokit.contact.vectors import about
from robokit.dataclass_tools import frozen
from robokit.engine import Kernel
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel, wasm_module
from robokit.engine.reproducible import wanted
from robokit.model.regrouping import regrouped
from robokit.sim.integrators import Problem
from robokit.sim.joint_forces import GivenLayout
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import ContactState, kept_of, step_numbers
from robokit.spatial.control_flow import for_range

# ==== passive motion ==============================================================================


@frozen
class PageStep:
    """The two kernels of a run."""

    program: Program  # the step, without pushes where they are left out, with a wrench on every body
    # (q, v, tau, ledger, gravity, carried, parameters, held) -> (q_next, v_next, ledger_next, carried_next):
    # tau is not read; held (6 N) are wrenches in body coordinates [N m; N]
    step: Kernel
    # (q, v, tau, gravity, carried, parameters, held) -> (places, figures, kept): for each body 1..N the rows
    # of the rotation from world to body axes, then its origin in the world (N, 12); centre of mass, kinetic
    # and potential energy, centroidal momentum (11); momentum and energy that the first step is handed (7)
    look: Kernel


def page_step(program: Program, reproducible: bool | None = None, pushes: bool = False) -> PageStep:
    """The kernels of a run's program.

    With ``reproducible=True``, or of a program that is so, the states of the page are those of
    ``rk.simulate(..., reproducible=True)`` and of ``rk.rollout(..., reproducible=True)``, bit for bit, as
    long as nobody pulls, pushes or changes gravity, friction or the time step. A host with both modules
    (``kernel.compiled(WASM)``, or viewer.live_data.module_data) takes a row of a rollout so:

        1. both are given ``gravity`` (robot.gravity) and ``parameters``, the row's own of
           ``program.parameters(dt)``: (P,) for all rows, or (B, P) where rows of a robot of ``with_inertias``
           differ. Time step and inertial parameters are all in it: the row needs nothing else;
        2. ``tau``, ``held``, ``ledger`` and ``carried`` are 0; q and v are the row's start;
        3. look(); if the layout of the program keeps momentum, carried[0:6] = kept[0:6], and if it keeps
           energy, the last of carried = kept[6];
        4. each step(): q, v, ledger, carried = q_next, v_next, ledger_next, carried_next.

    assets/live/physics.js does this.

    Args:
        program: of the run, passive motion. Where joints are driven both kernels have one more input,
            "drives", with what each of them wants.
        reproducible: None for what the program, or else the environment, says.
        pushes: keep the pushes of the run: both kernels have one more input, "pushes", with the wrench of
            each place as ``robokit.sim.force_elements.OutsideForces`` gives it for the step.
    """
    kept = program if pushes else without_pushes(program)
    bare = replace(
        kept,
        dtype="float64",
        given=GivenLayout(kept.given.drives, kept.given.places, bodies=program.robot.nbodies),
        given_numbers=tuple(kept.given_numbers),
        reproducible=program.reproducible or wanted(reproducible),
    )
    robot = bare.robot
    step = bare.kernel("page_step", _step_text, [("gravity", 3)])
    look = bare.built(
        "page_look",
        _look_text,
        [("gravity", 3)],
        [("places", (robot.nbodies, 12)), ("figures", (11,)), ("kept", (7,))],
    )
    return PageStep(bare, step, look)


def without_pushes(program: Program) -> Program:
    """The step with its driven joints, without pushes and without a controller's wrench on the base."""
    drives = program.given.drives
    numbers = list(program.given_numbers)[: sum(len(drive.parameters) for drive in drives)]
    return replace(program, given=GivenLayout(drives), given_numbers=tuple(numbers))


def _problem(program: Program, gravity: Sequence[Any], parameters: Any, more: Sequence[Any]) -> Problem:
    """The problem under a gravity that is an input.

    Its inertias are regrouped: only sums over the bodies are asked for, and each zero saves code. Of a
    reproducible step they are not, for those of simulate are not.
    """
    p = program.problem(parameters, more)
    I = p.tree.I if program.open or program.reproducible else regrouped(p.tree, to_ground=False)
    return replace(p, tree=replace(p.tree, gravity=tuple(gravity), I=I))


def _step_text(program: Program) -> Any:
    def text(
        q: Any, v: Any, tau: Any, entries: Any, gravity: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p = _problem(program, gravity, parameters, more)
        return program.step(p, q, v, [0.0] * len(tau), entries, carried, parameters)

    return text


def _look_text(program: Program) -> Any:
    robot = program.robot

    def text(
        q: Any, v: Any, tau: Any, gravity: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p = _problem(program, gravity, parameters, more)
        tree, rows, speeds = p.tree, robot.split_q(q), robot.split_v(v)
        X, X0 = tree.transforms(rows), forward_kinematics(tree, rows)
        places = [x for pose in X0[1:] for x in (*(e for row in pose.E.rows for e in row), *pose.r)]
        m, h = composite_moment(tree, X)
        com = h * (1.0 / m)
        T, V = energy.kinetic_energy(tree, rows, speeds), tree.a0.dot(h)
        momentum = list(centroidal_momentum(tree, rows, speeds))
        kept = kept_of(program, tree, rows, speeds)
        return [places, [*com, T, V, *momentum], kept]

    return text


# ==== the step of contact/step.py =================================================================

LOOK = (
    real("places", "n_bodies", 12, role="out"),  # rows of the rotation from world to body axes, origin
    real("figures", 11, role="out"),  # centre of mass [m], T and V [J], momentum about it, angular first
)
"""What a state looks like."""

ARRAYS = (*STEP_ARRAYS, *LOOK)  # all arrays of the module, in the order in which their places are given

FILE = "page_step.wasm.gz"

HANDS = 2  # pushes that are the host's


@functools.cache
def look_kernel() -> LoopKernel:
    """The look of all robots."""
    return kernel_of("contact_look", look, ARRAYS, reproducible=True)


def look(x: Any) -> None:
    """Poses, energies and momentum of the state."""
    place_bodies(x, x.q)
    velocities(x, x.v, x.V)
    for_range(x.n_bodies, lambda b: _place(x, b))
    h, (mass, moment) = spatial_momentum(x, x.V), whole_mass(x)
    com = moment * (1.0 / mass)
    world = [c + x.origin[k] for k, c in enumerate(com)]
    energies = kinetic_energy(x, x.v, x.V), potential_energy(x)
    for k, number in enumerate([*world, *energies, *about(h, com)]):
        x.figures[k] = number


def _place(x: Any, b: Any) -> None:
    for r in range(3):
        for c in range(3):
            x.places[b, 3 * r + c] = x.R[b, 3 * c + r]
        x.places[b, 9 + r] = x.p[b, r] + x.seat[b, r] + x.origin[r]


@functools.cache
def page_module() -> bytes:
    """The module, compressed by gzip: that which comes with robokit, or one made once a machine."""
    shipped = shipped_code.read(FILE)
    if shipped is not None:
        return shipped
    source = disk_cache.source_digest()
    name = disk_cache.digest("page module", source)
    found = disk_cache.load(name) if source else None
    if found is not None:
        return found[1]
    content = gzip.compress(made_module(), 9, mtime=0)
    if source:
        disk_cache.store(name, {"kernel": "contact_step", "part": "page"}, content)
    return content


def made_module() -> bytes:
    """The module as this source makes it."""
    return wasm_module([step_kernel(reproducible=True), look_kernel()])


@frozen
class ContactPage:
    """A robot and its ground in the arrays of the module."""

    sizes: Mapping[str, int]  # by name, in the order in which they are given
    # arrays that do not change in a run, by name; without those that are all zeros
    numbers: Mapping[str, np.ndarray]

    @property
    def grips(self) -> list[float]:
        """Coefficients of friction that there are on the ground."""
        x = self.numbers
        count = int(x["ground_shapes"][0]) if "ground_shapes" in x else 0
        friction, body = (
            x.get(f"shape_{name}", np.zeros(self.sizes["n_shapes"])) for name in ("friction", "body")
        )
        own, of_links = friction[:count], friction[body > 0]
        found = [*own[own >= 0.0], *(of_links if (own < 0.0).any() else ())]
        return [float(mu) for mu in found] if len(of_links) else []


def contact_page(program: Program, dt: float, pushes: bool = False) -> ContactPage:
    """Data of a program with steps of dt [s] for the module; ``pushes``: include those of the run."""
    kept = replace(program, accuracy=None, felt=False)
    kept = kept if pushes else without_pushes(kept)
    given = step_numbers(kept, dt)
    given["push_body"] = np.append(given["push_body"], np.ones(HANDS, np.int32))
    given["push_in_world"] = np.append(given["push_in_world"], np.zeros(HANDS, np.int32))
    given["push_point"] = np.concatenate([given["push_point"], np.zeros((HANDS, 3))])
    given["push_wrench"] = np.zeros((len(given["push_body"]), 6))
    made = ContactState(program.robot, dt, given, reproducible=True)
    sizes = {name: made.sizes[name] for name in made.kernel.sizes}
    numbers = {a.name: made.arrays[a.name] for a in STEP_ARRAYS if a.role == "in"}
    numbers = {name: x for name, x in numbers.items() if np.any(x)}
    return ContactPage(sizes, numbers)


def main() -> None:
    """Write the shipped files: the module, and the code with which a fall begins on x86-64."""
    shipped_code.write(FILE, made_module())
    for kernel in (step_kernel(), detect_kernel()):
        for name, content in kernel.to_be_shipped().items():
            shipped_code.write(name, content)


if __name__ == "__main__":
    main()
