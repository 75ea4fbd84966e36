"""Kinematics and dynamics of robots that are data, against the algorithms and the laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ladder
import numpy as np
import pytest

import robokit as rk
from robokit.contact import kinematics as kin
from robokit.contact.fields import MOTION, ROBOT
from robokit.contact.robot_data import robot_data
from robokit.engine.loops.fields import kernel_of, real
from robokit.model import couple

ALL = (*ROBOT, *(replace(a, role="out") for a in MOTION))
STATE = (real("q", "nq"), real("v", "nv"))


def _everything(x: Any) -> None:
    kin.place_bodies(x, x.q)
    kin.velocities(x, x.v, x.V)
    kin.mass_matrix(x)
    kin.bias(x, x.v, x.C)
    kin.multiply(x, x.v, x.Hv)
    for k, value in enumerate(kin.spatial_momentum(x, x.V)):
        x.numbers[k] = value
    for k, value in enumerate(kin.center_of_mass(x)):
        x.numbers[6 + k] = value
    x.numbers[9], x.numbers[10] = kin.kinetic_energy(x, x.v, x.V), kin.potential_energy(x)


OUT = (real("C", "nv", role="out"), real("Hv", "nv", role="out"), real("numbers", 11, role="out"))
EVERYTHING = kernel_of("test_kinematics", _everything, (*ALL, *STATE, *OUT))


def _advance(x: Any) -> None:
    kin.advance(x, x.q, x.v, x.h[0])


MOVED = (real("q", "nq", role="inout"), real("v", "nv", role="inout"), real("h", 1))
ADVANCE = kernel_of("test_advance", _advance, (*ROBOT, *MOVED))

ROBOTS = {
    **{
        f"tree {seed} {base}": ladder.random_tree(seed, base)
        for seed in (0, 1)
        for base in ("fixed", "floating")
    },
}


@pytest.mark.parametrize("name", ROBOTS)
def test_it(name: str) -> None:
    robot = ROBOTS[name]
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
    found = EVERYTHING(**robot_data(robot), q=q, v=v)
    H = rk.crba(robot, q)
    assert np.abs(found["H"] - np.tril(H)).max() < 1e-12 * np.abs(H).max()
    assert np.allclose(found["Hv"], H @ v, rtol=1e-11)
