"""Energies and momentum of states, by the kinematics of the step: no time for few of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from robokit.contact.fields import MOTION, ROBOT, STATE
from robokit.contact.kinematics import (
    kinetic_energy,
    place_bodies,
    potential_energy,
    spatial_momentum,
    velocities,
    whole_inertia,
)
from robokit.contact.robot_data import robot_data
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel
from robokit.model.robot import Robot


def _facts(x: Any) -> None:
    place_bodies(x, x.q)
    velocities(x, x.v, x.V)
    h, I = spatial_momentum(x, x.V), whole_inertia(x)
    m = I.m + 1e-300
    ang = h.ang - (I.h * (1.0 / m)).cross(h.lin)
    facts = (kinetic_energy(x, x.v, x.V), potential_energy(x), *ang, *h.lin)
    for k, fact in enumerate(facts):
        x.facts[k] = fact


@functools.cache
def _kernel() -> LoopKernel:
    arrays = [*ROBOT, *STATE, *MOTION, real("facts", 8, role="out")]
    return kernel_of("state_facts", _facts, arrays, by_source=True, seldom=True)


def state_facts(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """T, V [J] and momentum about the centre of mass, world axes [N m s; N s], of states (T, ...): (T, 8)."""
    kernel, data = _kernel(), robot_data(robot)
    sizes = {"nq": robot.nq, "nv": robot.nv}
    for a in kernel.taken:
        if a.name in data:
            given = zip(a.shape, data[a.name].shape, strict=True)
            sizes |= {name: n for name, n in given if isinstance(name, str)}
    arrays = {a.name: data[a.name] if a.name in data else a.zeros(sizes) for a in kernel.taken}
    taken = [np.ascontiguousarray(arrays[a.name]) for a in kernel.taken]
    try:
        call = kernel.single(sizes, taken)
    except NoMachineCode:

        def call() -> None:
            kernel.on_memory(*(sizes[name] for name in kernel.sizes), *taken)

    out = np.empty((len(q), 8))
    for row, one, other in zip(out, q, v, strict=True):
        arrays["q"][:], arrays["v"][:] = one, other
        call()
        row[:] = arrays["facts"]
    return out
