"""The step of contact/step.py for a host that takes it without Python: one WebAssembly module for all robots.

    contact_step    the step
    contact_look    what a state looks like: poses, energies, momentum

What touched in a step is what the step notes (contact/monitor.py) where ``watched`` is 2.

The robot, its shapes and the ground are arrays in the module's memory, by the names of :data:`ARRAYS`. Both
functions take all sizes, then the places of all arrays; those of :data:`LOOK` come last, and the step does
not take them. The states are those of ``rk.simulate(..., integrator="contact", reproducible=True)``, bit for
bit, as long as nobody pulls, pushes or changes gravity, friction or the time step.

Controllers of the run are left out, and its pushes unless they are asked for. What a driven joint wants is
the first column of ``motor_command``. The last two pushes are the host's: at any point of any body.

A compiled module comes with robokit (robokit/shipped_code.py). After a change of the step:

    python -m robokit.sim.contact_page
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit import disk_cache, shipped_code
from robokit.collision.detect import detect_kernel
from robokit.contact.kinematics import (
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_inertia,
)
from robokit.contact.step import ARRAYS as STEP_ARRAYS
from robokit.contact.step import step_kernel
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel, wasm_module
from robokit.sim.contact_state import ContactState, step_numbers
from robokit.sim.page_step import without_pushes
from robokit.sim.step_kernel import Program
from robokit.spatial.control_flow import for_range

LOOK = (
    real("places", "n_bodies", 12, role="out"),  # rows of the rotation from world to body axes, origin
    real("figures", 11, role="out"),  # centre of mass [m], T and V [J], momentum about it, angular first
)
"""What a state looks like."""

ARRAYS = (*STEP_ARRAYS, *LOOK)
"""All arrays of the module, in the order in which their places are given."""

FILE = "page_step.wasm.gz"

HANDS = 2
"""Pushes that are the host's."""


@functools.cache
def look_kernel() -> LoopKernel:
    """The look of all robots."""
    return kernel_of("contact_look", look, ARRAYS, reproducible=True)


def look(x: Any) -> None:
    """Poses, energies and momentum of the state."""
    place_bodies(x, x.q)
    velocities(x, x.v, x.V)
    for_range(x.n_bodies, lambda b: _place(x, b))
    h, I = spatial_momentum(x, x.V), whole_inertia(x)
    com = I.h * (1.0 / I.m)
    world = [c + x.origin[k] for k, c in enumerate(com)]
    energies = kinetic_energy(x, x.v, x.V), potential_energy(x)
    for k, number in enumerate([*world, *energies, *(h.ang - com.cross(h.lin)), *h.lin]):
        x.figures[k] = number


def _place(x: Any, b: Any) -> None:
    for r in range(3):
        for c in range(3):
            x.places[b, 3 * r + c] = x.R[b, 3 * c + r]
        x.places[b, 9 + r] = x.p[b, r] + x.origin[r]


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


@dataclass(frozen=True)
class ContactPage:
    """A robot and its ground in the arrays of the module."""

    sizes: Mapping[str, int]  # by name, in the order in which they are given
    # arrays that do not change in a run, by name; without those that are all zeros
    numbers: Mapping[str, np.ndarray]

    @property
    def grips(self) -> list[float]:
        """Coefficients of friction on the ground, by pair of shapes."""
        x = self.numbers
        if "pair_friction" not in x:
            return []
        between = x.get("pair_of_links", np.zeros(len(x["pair_friction"])))
        return [float(mu) for mu in x["pair_friction"][between == 0]]


def contact_page(program: Program, dt: float, pushes: bool = False) -> ContactPage:
    """What the module is given of a program.

    Args:
        dt: time step [s].
        pushes: keep the pushes of the run; they are the first ones.
    """
    kept = replace(program, accuracy=None)
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
    """Write what comes with robokit: the module, and the code with which a fall begins on x86-64."""
    shipped_code.write(FILE, made_module())
    for kernel in (step_kernel(), detect_kernel()):
        shipped_code.write(kernel.shipped_file, kernel.to_be_shipped())


if __name__ == "__main__":
    main()
