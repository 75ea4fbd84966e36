"""Impacts without restitution act whole in the step in which something lands, whenever in it that is."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, ModelBuilder, Robot, Shape


def a_box() -> Robot:
    edges = np.array([0.1, 0.14, 0.2])
    inertia = np.diag(edges @ edges - edges**2) / 12.0
    return (
        ModelBuilder("box")
        .link("b", 1.0, inertia=inertia, collisions=[Shape(Box(tuple(edges)))])
        .build("floating")
    )


def lowest(box: Robot, q: np.ndarray) -> float:
    R = rk.forward_kinematics(box, q)["b"][0]
    return float(q[6] - np.abs(R[2]) @ [0.05, 0.07, 0.1])


@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_what_an_impact_leaves_hardly_depends_on_when_in_the_step_it_lands(seed: int, dt: float) -> None:
    """A box comes onto a corner without turning, at 1 m/s, sliding: spins afterwards differed by 0.2 to 0.7
    rad/s when an impact was spread over two steps, with any dt.
    """
    rng, box, ground = np.random.default_rng(seed), a_box(), rk.Ground(friction=0.5)
    q, v, turn = box.neutral(), np.zeros(6), rng.standard_normal(4)
    q[:4] = turn / np.linalg.norm(turn)
    v[3:] = rk.forward_kinematics(box, q)["b"][0].T @ [*rng.uniform(-1.0, 1.0, 2), -1.0]
    spins = []
    for share in np.linspace(0.0, 1.0, 9)[:-1]:
        q[6] += 20.0 * dt + share * dt - lowest(box, q)
        run = rk.simulate(box.with_gravity([0.0, 0.0, 0.0]), q, v, 26.0 * dt, dt, ground=ground)
        spins.append(run.v[-1, :3])
    assert np.abs(spins).max() > 1.0
    assert np.ptp(spins, axis=0).max() < 0.02


def test_what_lands_somewhere_leaves_other_contacts_as_they_are() -> None:
    """One box slides while another one, far away, lands or stays in the air."""
    box = a_box()
    world = rk.together({"slides": box, "falls": box})
    near, far = box.neutral(), box.neutral()
    near[6], far[4] = 0.1, 40.0
    v = np.zeros(12)
    v[3:5] = 2.0, 1.0
    ends = []
    for height in (0.11, 1.0):
        far[6] = height
        run = rk.simulate(world, np.r_[near, far], v, 0.1, 1e-3, ground=True, self_collision=True)
        ends.append(run)
    lands, stays = (run.contacts.links for run in ends)
    assert "falls/b" in lands and "falls/b" not in stays
    for part in (run.q[:, :7] for run in ends), (run.v[:, :6] for run in ends):
        a, b = part
        assert np.abs(a - b).max() < 1e-6
