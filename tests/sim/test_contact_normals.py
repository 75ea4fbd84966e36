"""Normals of contacts: those of the surface that is touched, known from its geometry alone."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Shape, Sphere

RADIUS, CENTRE = 0.5, np.array([0.0, 0.0, 0.2])


def box():
    shape = Shape(Box((0.2, 0.3, 0.1)))
    b = rk.ModelBuilder("box").link("box", 2.0, inertia=np.diag([0.02, 0.01, 0.02]), collisions=(shape,))
    return b.build("floating")


@pytest.fixture(scope="module")
def run():
    """A box falls on a ball and slides off it onto a slope."""
    ground = rk.Ground(tilt=0.2, friction=0.3, shapes=[rk.Solid(Sphere(RADIUS), tuple(CENTRE))])
    robot = box()
    q = robot.configuration((0.05, 0.02, 1.0), (1.0, 0.0, 0.0, 0.0))
    return rk.simulate(robot, q, duration=1.5, dt=1e-3, ground=ground)


def test_they_are_those_of_slope_and_ball(run, tmp_path):
    touch = np.any(run.contacts.forces != 0.0, axis=-1)
    points, forces, normals = (
        x[touch] for x in (run.contacts.points, run.contacts.forces, run.contacts.normals)
    )
    np.testing.assert_allclose(np.linalg.norm(normals, axis=-1), 1.0, atol=1e-12)
    ball = np.linalg.norm(points - CENTRE, axis=-1) < RADIUS + 0.01
    # Contacts are where bodies overlap a little, at the step's middle.
    radial = (points - CENTRE) / np.linalg.norm(points - CENTRE, axis=-1, keepdims=True)
    slope = np.array([np.sin(0.2), 0.0, np.cos(0.2)])
    on_slope = np.abs(points @ slope) < 0.01
    assert np.all(ball | on_slope) and (ball & ~on_slope).sum() > 10 and (on_slope & ~ball).sum() > 10
    np.testing.assert_allclose(normals[ball & ~on_slope], radial[ball & ~on_slope], atol=2e-3)
    np.testing.assert_allclose(
        normals[on_slope & ~ball], np.tile(slope, ((on_slope & ~ball).sum(), 1)), atol=1e-9
    )
    # What presses pushes, within Coulomb's cone.
    along = np.sum(forces * normals, axis=-1)
    across = np.linalg.norm(forces - along[:, None] * normals, axis=-1)
    assert np.all(along > 0.0) and np.all(across <= 0.3 * along * (1.0 + 1e-6) + 1e-9)
    assert not np.any(run.contacts.normals[~touch])
    loaded = rk.Trajectory.load(run.save(tmp_path / "run.npz"))
    np.testing.assert_array_equal(loaded.contacts.normals, run.contacts.normals)


def test_a_step_has_them_too(run):
    sim = rk.Simulation(run.robot, run.q[-1], run.v[-1], ground=run.ground, dt=1e-3)
    sim.step()
    contacts = sim.contacts
    assert contacts.normals.shape == contacts.forces.shape
    pressed = np.any(contacts.forces != 0.0, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(contacts.normals[pressed], axis=-1), 1.0, atol=1e-12)
