"""Energies and momentum of states, by the kinematics of the step: no time for few of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.caching import Spare
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
from robokit.engine.maker import engine
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


def _poses(x: Any) -> None:
    place_bodies(x, x.q)


@functools.cache
def _kernel(text: Callable[[Any], None]) -> LoopKernel:
    arrays = [replace(a, role="out") if a.name in ("R", "p", "origin") else a for a in (*ROBOT, *MOTION)]
    arrays += [*STATE, real("facts", 8, role="out")]
    return kernel_of(f"state{text.__name__}", text, arrays, by_source=True, seldom=True)


class _Call:
    """One of these for single states: its arrays, and a function that runs it on them."""

    def __init__(self, robot: Robot, text: Callable[[Any], None]) -> None:
        kernel, data = _kernel(text), robot_data(robot)
        sizes = {"nq": robot.nq, "nv": robot.nv}
        for a in kernel.taken:
            if a.name in data:
                given = zip(a.shape, data[a.name].shape, strict=True)
                sizes |= {name: n for name, n in given if isinstance(name, str)}
        self.arrays = {
            a.name: np.ascontiguousarray(data[a.name]) if a.name in data else a.zeros(sizes)
            for a in kernel.taken
        }
        taken = list(self.arrays.values())
        try:
            if engine() == "python":
                raise NoMachineCode("")
            self.run: Callable[[], Any] = kernel.single(sizes, taken)
        except NoMachineCode:
            self.run = functools.partial(kernel.on_memory, *(sizes[n] for n in kernel.sizes), *taken)


def _each(robot: Robot, text: Callable[[Any], None], *states: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of a kernel after it ran on each state; they hold until the next."""
    spare: Spare[_Call] = robot.derived.get("spare state kernels", lambda: Spare(4))
    key = text.__name__, engine()
    call = spare.take(key, lambda: _Call(robot, text))
    for row in zip(*states, strict=True):
        for name, numbers in zip(("q", "v"), row, strict=False):
            call.arrays[name][:] = numbers
        call.run()
        yield call.arrays
    spare.give(key, call)


def state_facts(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """T, V [J] and momentum about the centre of mass, world axes [N m s; N s], of states (T, ...): (T, 8)."""
    return np.array([x["facts"].copy() for x in _each(robot, _facts, q, v)]).reshape(len(q), 8)


def state_poses(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (T, N + 1, 3, 3) to world axes and origins (T, N + 1, 3) of bodies 0..N [m]."""
    n, R, p = robot.nbodies + 1, list[np.ndarray](), list[np.ndarray]()
    for x in _each(robot, _poses, q):
        R.append(x["R"].copy())
        p.append(x["p"] + x["origin"])
        p[-1][0] = 0.0
    return np.array(R).reshape(len(q), n, 3, 3), np.array(p).reshape(len(q), n, 3)
