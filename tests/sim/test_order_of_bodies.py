"""In which order bodies are added to a world makes no difference to how they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, ModelBuilder, Shape, Sphere

ONE = {"capsules": Capsule(0.04, 0.2), "discs": Cylinder(0.1, 0.03), "cylinders": Cylinder(0.06, 0.15)}


def pile(shapes: list[Any], seed: int) -> tuple[list[rk.Robot], np.ndarray, np.ndarray]:
    """Bodies above each other, turned at random, with their q and v."""
    rng, robots, q, v = np.random.default_rng(seed), [], [], []
    for k, shape in enumerate(shapes):
        inertia = np.diag([2.0, 2.0, 1.5]) * 1e-3
        builder = ModelBuilder("body").link(
            "body", 0.5 + 0.1 * k, inertia=inertia, collisions=(Shape(shape),)
        )
        robots.append(builder.build("floating"))
        turn = rng.normal(size=4)
        q.append([*turn / np.linalg.norm(turn), *rng.uniform(-0.03, 0.03, 2), 0.15 + 0.25 * k])
        v.append([*rng.normal(size=3), 0.0, 0.0, -0.5])
    return robots, np.array(q), np.array(v)


def places(robots: list[rk.Robot], q: np.ndarray, v: np.ndarray, order: list[int], **ground: Any) -> Any:
    """Poses of the bodies in time, in the order in which they are given."""
    world = rk.together({f"body{k}": robots[k] for k in order})
    how = {"duration": 0.5, "dt": 1e-3, "ground": rk.Ground(**ground)}
    run = rk.simulate(world, q[order].ravel(), v[order].ravel(), **how)
    assert run.summary["steps_not_settled"] == 0
    return run.q.reshape(len(run.t), len(order), 7)[:, np.argsort(order)]


@pytest.mark.parametrize("name", [*ONE, "all"])
def test_the_order_of_bodies_changes_nothing(name: str) -> None:
    """It was 1 to 20 cm: rims rolled on one of two discs alone, and of two segments one was the reference.

    Steps are solved to 1e-6 of their impulses, and the last of it depends on the order of rows.
    """
    several = [Box((0.1, 0.15, 0.2)), Sphere(0.08), *ONE.values()]
    shapes = [ONE[name]] * 4 if name in ONE else several
    robots, q, v = pile(shapes, 0)
    n = len(shapes)
    given, *others = (
        places(robots, q, v, order, friction=0.6, rolling=1e-3)
        for order in (list(range(n)), list(range(n))[::-1], [1, 3, 0, 2, *range(4, n)])
    )
    for other in others:
        np.testing.assert_allclose(other, given, rtol=0.0, atol=1e-6)
