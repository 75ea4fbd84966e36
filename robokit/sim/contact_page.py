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

A compiled module comes with robokit, so that nobody waits for it. It begins with the digest of the sources
that it was made of; where these have changed since, it is passed over. After a change of the step:

    python -m robokit.sim.contact_page
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache
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
from robokit.errors import RobokitError
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

FILE = Path(__file__).with_name("page_step.wasm.gz")

ROOT = Path(__file__).resolve().parents[1]

SOURCES = ("contact", "collision", "engine", "spatial", "model/joints.py", "sim/contact_page.py")
"""Folders and files of robokit that decide what the module does."""

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


def sources_digest() -> bytes:
    """Hash of these; empty where they are not the source of the code that runs."""
    total = hashlib.sha256()
    for source in SOURCES:
        place = ROOT / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = disk_cache.source_file(path)
            if content is None:
                return b""
            total.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode() + content)
    return total.digest()


def shipped_module() -> bytes | None:
    """The module, compressed by gzip, if it is that of this source."""
    try:
        content = FILE.read_bytes()
    except OSError:
        return None
    digest = sources_digest()
    return content[len(digest) :] if digest and content.startswith(digest) else None


@functools.cache
def page_module() -> bytes:
    """The module, compressed by gzip: that which comes with robokit, or one made once a machine."""
    shipped = shipped_module()
    if shipped is not None:
        return shipped
    source = disk_cache.source_digest()
    name = disk_cache.digest("page module", source)
    found = disk_cache.load(name) if source else None
    if found is not None:
        return found[1]
    content = made_module()
    if source:
        disk_cache.store(name, {"kernel": "contact_step", "part": "page"}, content)
    return content


def made_module() -> bytes:
    """The module as this source makes it, compressed by gzip."""
    return gzip.compress(wasm_module([step_kernel(reproducible=True), look_kernel()]), 9, mtime=0)


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
    """Write the file."""
    digest = sources_digest()
    if not digest:
        raise RobokitError("a source of the step is newer than this process: run it again")
    FILE.write_bytes(digest + made_module())


if __name__ == "__main__":
    main()
