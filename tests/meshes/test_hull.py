"""Circles of hulls: discs, cones and tyres have them, boxes and ovals none."""

import itertools
import math

import numpy as np
import pytest

import robokit as rk
from robokit.meshes.hull import _hull, circles, hull_corners
from robokit.model.geometry import Mesh

BOX = np.array(list(itertools.product((-0.1, 0.1), (-0.2, 0.2), (-0.05, 0.05))))


def _polygon(sides, radius, z):
    turns = 2.0 * math.pi / sides * np.arange(sides)
    return np.stack([radius * np.cos(turns), radius * np.sin(turns), np.full(sides, z)], axis=1)


def test_cones_and_rounded_discs_have_their_circles_and_boxes_none():
    cone = np.concatenate([_polygon(40, 0.1, 0.0), [[0.0, 0.0, 0.2]]])
    (base,) = circles(cone, 1e-3)
    assert base.flat and base.radius == pytest.approx(0.1) and abs(base.axis[2]) == pytest.approx(1.0)
    turns = np.linspace(-math.pi / 2, math.pi / 2, 25)
    tyre = np.concatenate([_polygon(64, 0.1 + 0.02 * math.cos(t), 0.02 * math.sin(t)) for t in turns])
    found = circles(tyre, 1e-3)
    assert [c.flat for c in found].count(True) == 2 and 4 <= len(found) < 15
    n = np.random.default_rng(1).normal(size=(600, 3))
    ellipsoid = n / np.linalg.norm(n, axis=1, keepdims=True) * [0.2, 0.1, 0.05]
    assert circles(BOX, 1e-3) == [] and circles(ellipsoid, 1e-3) == []
    assert circles(_polygon(11, 0.1, 0.0), 1e-3) == []
    oval = np.concatenate([_polygon(64, 0.1, z) for z in (-0.02, 0.02)]) * [1.0, 0.9, 1.0]
    assert circles(oval, 1e-3) == []


PLATE = """<robot name="plate"><link name="a"><inertial><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="a.obj"/></geometry></collision></link></robot>"""


@pytest.mark.parametrize("corners", [3, 5])
def test_a_mesh_of_triangles_in_one_plane_is_a_thin_plate(tmp_path, corners, recwarn):
    points = [(0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0.2, 0.2, 0), (0.1, 0.1, 0)][:corners]
    lines = [f"v {x} {y} {z}\n" for x, y, z in points]
    lines += [f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in itertools.combinations(range(corners), 3)]
    (tmp_path / "a.obj").write_text("".join(lines))
    found = hull_corners(Mesh("a.obj", path=tmp_path / "a.obj"))
    assert sorted(map(tuple, found.tolist())) == sorted(p for p in points if p != (0.1, 0.1, 0))
    (tmp_path / "a.urdf").write_text(PLATE)
    robot = rk.load_urdf(tmp_path / "a.urdf", base="floating")
    q = robot.neutral()
    q[6] = 0.002
    run = rk.simulate(robot, q, duration=0.1, ground=True)
    assert abs(run.q[-1, 6]) < 1e-4 and not recwarn


def test_plates_at_any_angle_have_the_corners_of_their_polygon():
    """Their thickness is rounding, which is large along no axis of the file."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        flat = np.pad(rng.normal(size=(rng.integers(4, 40), 2)), ((0, 0), (0, 1)))
        flat[:3, 2] = 1e-15 * rng.normal(size=3)
        points = flat @ turn.T + rng.normal(size=3)
        around = rng.normal(size=(40, 2)) @ turn[:, :2].T
        reach = (points @ around.T).max(axis=0)
        np.testing.assert_allclose((_hull(points) @ around.T).max(axis=0), reach, rtol=0, atol=1e-12)
