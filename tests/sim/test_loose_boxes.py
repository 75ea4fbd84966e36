"""Loose boxes and cylinders: rest, sliding, towers, collisions, and that no constant has a unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Cylinder, Mesh, Shape

STEP = 1e-3


def box(mass: float = 1.0, size: float = 0.2) -> rk.Robot:
    i = mass * size * size / 6.0
    inertia = f'<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/>'
    shape = f'<geometry><box size="{size} {size} {size}"/></geometry>'
    return rk.loads_urdf(
        f'<robot name="box"><link name="box"><inertial><mass value="{mass}"/>{inertia}</inertial>'
        f"<collision>{shape}</collision></link></robot>",
        base="floating",
    )


@pytest.mark.parametrize("count", [1, 5, 10])
def test_a_tower_stands(count: int) -> None:
    robot = rk.together({f"box{k}": box() for k in range(count)})
    q = robot.neutral()
    q[6::7] = 0.2 * (np.arange(count) + 0.5)
    run = rk.simulate(robot, q, duration=1.0, dt=STEP, ground=True)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert np.abs(run.q[-1].reshape(-1, 7)[:, 4:6]).max() < 1e-6
    assert run.contact_force[-1, 2] == pytest.approx(robot.total_mass * 9.81, rel=1e-6)
    assert run.summary["steps_not_settled"] == 0
    assert run.summary["momentum_balance_linear"] < 1e-9


def test_cylinders_and_a_box_on_each_other_come_to_rest() -> None:
    """Not exactly above each other, so each leans a little to one side; none rocks from step to step."""
    rng, robots, q = np.random.default_rng(2), {}, []
    for k, shape in enumerate((Cylinder(0.1, 0.05), Cylinder(0.1, 0.05), Box((0.3, 0.3, 0.05)))):
        inertia = np.diag([1e-3, 1e-3, 2e-3])
        builder = rk.ModelBuilder("body").link("body", 0.5, inertia=inertia, collisions=[Shape(shape)])
        robots[f"body{k}"] = builder.build("floating")
        q += [1.0, 0.0, 0.0, 0.0, *rng.uniform(-2e-3, 2e-3, 2), 0.05 * k + 0.025]
    run = rk.simulate(rk.together(robots), q, duration=1.0, dt=2.0 * STEP, ground=True)
    assert np.abs(run.v[-1]).max() < 1e-9


def tower_of(shape: Shape, count: int, seed: int) -> tuple[rk.Robot, np.ndarray]:
    """Bodies 5 cm high, turned and not exactly above each other, and their configuration."""
    rng, robots, q = np.random.default_rng(seed), {}, []
    for k in range(count):
        builder = rk.ModelBuilder("body").link(
            "body", 0.5, inertia=np.diag([1e-3, 1e-3, 2e-3]), collisions=[shape]
        )
        robots[f"body{k}"] = builder.build("floating")
        half = rng.uniform(0.0, np.pi)
        q += [np.cos(half), 0.0, 0.0, np.sin(half), *rng.uniform(-2e-3, 2e-3, 2), 0.05 * k + 0.025]
    return rk.together(robots), np.array(q)


@pytest.mark.parametrize("sides", [5, 12, 24])
def test_prisms_on_each_other_come_to_rest(sides: int, tmp_path: Path) -> None:
    """Their faces have more than 8 common corners. Of 8 that were chosen in each step some took turns."""
    import trimesh

    angle = 2.0 * np.pi * np.arange(sides) / sides
    rim = np.column_stack([0.1 * np.cos(angle), 0.08 * np.sin(angle)])
    corners = np.vstack([np.column_stack([rim, np.full(sides, z)]) for z in (-0.025, 0.025)])
    trimesh.convex.convex_hull(corners).export(tmp_path / "prism.stl")
    robot, q = tower_of(Shape(Mesh("prism.stl", path=tmp_path / "prism.stl")), 6, 0)
    run = rk.simulate(robot, q, duration=0.5, dt=STEP, ground=True)
    assert np.abs(run.v[-1]).max() < 1e-9


@pytest.mark.parametrize("seed", [0, 13, 18])
def test_discs_on_each_other_come_to_rest(seed: int) -> None:
    """The polygons of round faces turned with tilts of 1e-7, and corners of one crossed sides of the next."""
    robot, q = tower_of(Shape(Cylinder(0.1, 0.05)), 12, seed)
    run = rk.simulate(robot, q, duration=0.6, dt=STEP, ground=True)
    assert np.abs(run.v[-1]).max() < 1e-9


def sway_of_a_tower(count: int, size: float, mass: float, aside: float, k: float, d: float) -> complex:
    """Slowest mode [1/s] of boxes on each other, each second one aside: its growth and its frequency.

    In the plane, linear: each face stands on two springs and dampers (k, d) at either end, 200 times as stiff
    along it, by implicit Euler; its load tips, at the pose of the step's middle.
    """
    K, D, tips = np.zeros((3, 3 * count, 3 * count))
    M = np.kron(np.eye(count), np.diag([mass, mass, mass * size**2 / 6.0]))
    at = aside * (np.arange(count) % 2)
    for i in range(count):
        below = at[i - 1] if i else at[i]
        for x in (max(at[i], below) - 0.5 * size, min(at[i], below) + 0.5 * size):
            for along, factor in ((0, 200.0), (1, 1.0)):
                row = np.zeros(3 * count)
                for b, sign in ((i, 1.0), (i - 1, -1.0)) if i else ((i, 1.0),):
                    row[3 * b + along] = sign
                    row[3 * b + 2] = sign * (-(x - at[b]) if along else -sign * 0.5 * size)
                K += 2.0 * factor * k * np.outer(row, row)
                D += 2.0 * factor**0.5 * d * np.outer(row, row)
        tips[3 * i + 2, 3 * i + 2] = (2 * (count - i) - 1) * mass * 9.81 * 0.5 * size
    kick = np.linalg.solve(M + STEP * D + STEP**2 * K, np.hstack([STEP * (tips - K), M]))
    n = 3 * count
    step = np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + STEP * kick, kick])
    modes = np.log(np.linalg.eigvals(step).astype(complex)) / STEP
    return complex(modes[np.argmax(modes.real)])


def test_a_tower_of_twenty_sways_as_its_springs_let_it() -> None:
    """It is 2 m high and 10 cm wide: by its springs its sway takes 13 s to become a fiftieth."""
    count, size, aside, sink, time = 20, 0.1, 1e-3, 2.5e-4, 1e-2
    robot = rk.together({f"box{k}": box(size=size) for k in range(count)})
    q = robot.neutral()
    q[4::7], q[6::7] = aside * (np.arange(count) % 2), size * (np.arange(count) + 0.5)
    ground = rk.Ground(sink=sink, time=time)
    run = rk.simulate(robot, q, duration=2.5, dt=STEP, ground=ground, record_every=10)
    k = count * 9.81 / sink
    mode = sway_of_a_tower(count, size, 1.0, aside, k, k * time)
    late = run.t > 1.0
    t, x = run.t[late], run.q[late, -3]
    waves = np.exp(mode.real * t)[:, None] * np.stack([np.cos(mode.imag * t), np.sin(mode.imag * t)], axis=1)
    left = np.column_stack([waves, np.ones_like(t)])
    found = np.linalg.lstsq(left, x, rcond=None)[0]
    assert np.abs(found[:2]).max() > 1e-5  # it sways
    assert np.abs(left @ found - x).max() < 1e-7


def test_a_box_slides_as_far_as_coulomb_says_and_does_not_rise() -> None:
    q, v = np.array([1, 0, 0, 0, 0, 0, 0.1]), np.array([0, 0, 0, 2.0, 0, 0])
    ground = rk.Ground(friction=0.5)
    run = rk.simulate(box(), q, v, duration=1.0, dt=STEP, ground=ground)
    assert run.q[-1, 4] == pytest.approx(2.0**2 / (2 * 0.5 * 9.81), rel=1e-4)
    assert (run.q[:, 6] - 0.1).max() < 1e-6


def test_two_robots_that_collide_keep_their_momentum() -> None:
    robot = rk.together({"a": box(1.0, 0.2), "b": box(2.0, 0.3)}).with_gravity([0, 0, 0])
    q, v = robot.neutral(), np.zeros(12)
    q[4:6] = -0.5, 0.03
    v[:4] = 0.1, 1.0, 2.0, 2.0
    run = rk.simulate(robot, q, v, duration=0.6, dt=STEP, self_collision=True)
    assert run.summary["dissipated_by_collision"] > 0.5
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-9
    assert (run.energy.total - run.energy.total[0]).max() < 1e-12


def test_a_fall_scales_with_lengths_and_masses() -> None:
    ends = []
    for length, mass in ((1.0, 1.0), (0.1, 1.0), (1.0, 1e-6)):
        robot, time = box(mass, 0.2 * length), length**0.5
        q = np.r_[np.array([0.9, 0.3, 0.2, 0.06**0.5]), 0.0, 0.0, 0.5 * length]
        v = np.array([1, 2, 3, 0, 0, 0]) / time
        kw = {"duration": 1.0 * time, "dt": STEP * time, "ground": True}
        ends.append(rk.simulate(robot, q, v, **kw).q[-1] / np.r_[np.ones(4), np.full(3, length)])
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-9)


@pytest.mark.parametrize("given", ["friction", "normal"])
def test_rows_have_ground_of_their_own(given: str) -> None:
    q, v = np.array([1, 0, 0, 0, 0, 0, 0.1]), np.array([0, 0, 0, 2.0, 0, 0])
    values: dict[str, Any] = {
        "friction": [0.2, 0.5, 0.9],
        "normal": [(0.0, 0.0, 1.0), (0.02, 0.0, 1.0), (0.0, 0.03, 1.0)],
    }
    options: Any = {"dt": STEP}
    ground = rk.Ground(**{given: values[given]})
    rows = rk.rollout(box(), np.stack([q] * 3), np.stack([v] * 3), steps=200, ground=ground, **options)
    assert not np.allclose(rows.q[-1, 0], rows.q[-1, 1])
    for k, value in enumerate(values[given]):
        run = rk.simulate(box(), q, v, duration=0.2, ground=rk.Ground(**{given: value}), **options)
        assert np.array_equal(rows.q[-1, k], run.q[-1])
