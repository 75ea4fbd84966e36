"""Bodies clear of the ground: what is skipped for them would have done nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import robokit as rk
from robokit.engine import Kernel
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.sim.shapes.contact_shapes import Ball
from robokit.sim.step import settle
from robokit.sim.touching.near_ground import box_around, lowest, near_ground
from robokit.spatial import Motion, Vector3


def test_the_lowest_corner_and_the_fastest_point_bound_all_points():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, r = rng.uniform(-1.0, 1.0, (6, 3)), rng.uniform(0.0, 0.2, 6)
        n = rng.standard_normal(3)
        n /= np.linalg.norm(n)
        w, u, z = rng.standard_normal(3), rng.standard_normal(3), rng.uniform(-1.0, 1.0)
        box = box_around([Ball(tuple(x), radius) for x, radius in zip(p.tolist(), r.tolist(), strict=True)])
        height, speed = lowest(box, Vector3(*n), z, Motion(Vector3(*w), Vector3(*u)))
        assert height <= (p @ n + z - r).min() + 1e-12
        assert speed >= np.abs((u + np.cross(w, p - r[:, None] * n)) @ n).max() - 1e-12


def test_near_is_what_the_fastest_body_could_throw_at_the_ground():
    law = SimpleNamespace(surfaces=[])
    axes = SimpleNamespace(n=Vector3(0.0, 0.0, 1.0), z=0.101)
    cube = [Ball((x, y, z)) for x in (-0.1, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)]

    def near(*speeds):  # bodies 1 mm over the ground
        bodies = [
            SimpleNamespace(i=k, law=law, axes=axes, motion=None, falling=0.01) for k in range(len(speeds))
        ]
        V = [Motion(Vector3.zero(), Vector3(0.0, 0.0, -speed)) for speed in speeds]
        return near_ground(bodies, [cube] * len(speeds), V, 1e-3)

    assert near(0.9) == [True]  # its own speed, and twice the fastest: 2.7 mm
    assert near(0.3) == [False]
    assert near(0.3, 0.6) == [True, True]
    law.surfaces.append(None)
    assert near(0.0) == [True]


def two_blocks() -> rk.Robot:
    """Two cubes on a hinge, which need not both be near the ground."""
    builder = ModelBuilder("two_blocks")
    for name in ("low", "high"):
        cube = Shape(Box((0.2, 0.2, 0.2)))
        builder.link(name, mass=1.0, inertia=np.eye(3) * 0.01, collisions=(cube,))
    place = Placement(position=np.array([0.0, 0.0, 0.4]))
    builder.joint("hinge", "revolute", "low", "high", axis=(0, 1, 0), placement=place)
    return builder.build("floating")


def test_a_step_is_the_same_with_nothing_skipped(monkeypatch):
    robot, states = two_blocks(), []
    q0 = rk.standing_configuration(robot, height=0.02, tilt=0.3, seed=0)
    run = Kernel.__call__
    monkeypatch.setattr(Kernel, "__call__", lambda k, *a, **more: states.append(a) or run(k, *a, **more))
    rk.simulate(robot, q0, duration=0.6, dt=1e-3, ground=rk.Ground(), record_every=1)
    monkeypatch.undo()
    (kernel,) = (k for name, k in robot.kernels.items() if name.startswith("step_"))
    steps = [a for a in states if len(a) == len(kernel.signature.inputs)]
    columns = [np.array(column) for column in zip(*steps, strict=True)]
    skipped, inside = kernel.batch(*columns), kernel.guarded
    for k in range(0, 600, 50):  # neighbours decide what is computed, and change no bit
        alone = kernel.batch(*(column[k : k + 1] for column in columns))
        assert all((one[0] == many[k]).all() for one, many in zip(alone, skipped, strict=True))

    monkeypatch.setattr(settle, "near_ground", lambda contacts, *rest: [True] * len(contacts))
    whole = Kernel.build("step", kernel.signature.inputs, kernel.signature.outputs, kernel.text)
    everything = whole.batch(*columns)
    assert sum(inside.values()) > 0.3 * sum(whole.counts.values())
    assert sum(whole.guarded.values()) < 0.5 * sum(inside.values()), "the sweep that goes on, alone"
    for k in (0, 1, 2):  # bristles of points in the air are bent to no effect: the carried numbers differ
        np.testing.assert_allclose(skipped[k], everything[k], rtol=1e-9, atol=1e-9)
    assert len(columns[0]) >= 600
