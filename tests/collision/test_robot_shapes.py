"""What of a robot can touch: which shapes of its links, where they are, and what stands for missing ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
import trimesh

import robokit as rk
from robokit.collision.shapes import round_hull
from robokit.model import Mesh, ModelBuilder, Placement, Shape, Sphere

TETRAHEDRON_DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit meter="0.001"/><up_axis>Y_UP</up_axis></asset>
 <library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array count="12">0 0 0 100 0 0 0 100 0 0 0 100</float_array></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/>
   <p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles></mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="w"><node><instance_geometry url="#g"/></node></visual_scene>
 </library_visual_scenes><scene><instance_visual_scene url="#w"/></scene>
</COLLADA>"""

HALF = 0.5 * math.sqrt(0.15)
"""Half the height of the box of even density that has the mass and the inertia of the robot below [m]."""


def one_link(**link) -> rk.Robot:
    builder = ModelBuilder("r").link("a", mass=2.0, inertia=np.diag([0.1, 0.2, 0.25]), **link)
    return builder.build("floating")


def height(robot: rk.Robot, turn=(1.0, 0.0, 0.0, 0.0), **ground) -> float:
    """How far the base's origin is over its lowest point when turned so [m]."""
    return rk.standing_height(robot, [*turn, 0.0, 0.0, 0.0], ground=rk.Ground(**ground))


def test_shapes_are_where_shape_link_and_joint_put_them():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    builder = ModelBuilder("r").link("a", mass=1.0, inertia=np.eye(3))
    builder.link("b", collisions=(Shape(Sphere(0.1), Placement(turn, np.array([1.0, 0, 0]))),))
    builder.joint("f", "fixed", "a", "b", Placement(turn, np.array([0, 0, 2.0])))
    robot, s = builder.build("floating"), math.sqrt(0.5)
    assert height(robot) == pytest.approx(0.1 - 2.0)
    assert height(robot, (s, s, 0, 0)) == pytest.approx(0.1 - 1.0)  # y is up: the ball is at (0, 1, 2)


def test_collision_shapes_then_visual_ones_then_the_box_of_the_inertia():
    a, b = (Shape(Sphere(0.1)),), (Shape(Sphere(0.2)),)
    assert height(one_link(collisions=a, visuals=b)) == pytest.approx(0.1)
    assert height(one_link(visuals=b)) == pytest.approx(0.2)
    assert height(one_link(com=(0.0, 0.0, 0.5))) == pytest.approx(HALF - 0.5)


@pytest.mark.parametrize("error", [5e-3, 1.5e-2])
def test_a_mesh_is_its_hull_within_the_error(tmp_path, error):
    path = tmp_path / "s.stl"
    trimesh.creation.icosphere(subdivisions=3, radius=0.5).export(path)
    robot = one_link(collisions=(Shape(Mesh("s.stl", (2.0, 1.0, 1.0), path)),))
    true = trimesh.load(path).vertices * [2.0, 1.0, 1.0]
    for turn in np.random.default_rng(0).normal(size=(20, 4)):
        w, x, y, z = turn = turn / np.linalg.norm(turn)
        up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])
        assert height(robot, turn, shape_error=error) == pytest.approx(-(true @ up).min(), abs=error)


def test_collada_meshes_touch_where_they_are_seen(tmp_path):
    """In millimetres: the unit counts, for contact as for the picture."""
    (tmp_path / "t.dae").write_text(TETRAHEDRON_DAE)
    robot = one_link(collisions=(Shape(Mesh("t.dae", (2.0, 1.0, 1.0), tmp_path / "t.dae")),))
    s = math.sqrt(0.5)
    for turn, low in (((1, 0, 0, 0), 0.0), ((0, 1, 0, 0), 0.1), ((s, 0, s, 0), 0.2), ((s, -s, 0, 0), 0.1)):
        assert height(robot, turn) == pytest.approx(low, abs=1e-12), turn


def test_what_stands_for_a_mesh_that_cannot_be_read():
    missing = (Shape(Mesh("gone.stl")),)
    for visuals, wanted in (((), HALF), ((Shape(Sphere(0.3)),), 0.3)):
        robot = one_link(collisions=missing, visuals=visuals)
        with pytest.warns(UserWarning, match="gone"):
            run = rk.simulate(robot, [1, 0, 0, 0, 0, 0, 1.0], duration=1e-3, ground=True)
        assert height(run.robot) == pytest.approx(wanted)


def test_unreadable_meshes_are_named_once():
    builder = ModelBuilder("r")
    for k in range(3):
        mesh = Mesh(f"gone{k}.dae")
        builder.link(f"l{k}", mass=1.0, inertia=np.eye(3), collisions=(Shape(mesh), Shape(mesh)))
    builder.joint("j0", "continuous", "l0", "l1").joint("j1", "continuous", "l1", "l2")
    q = [1, 0, 0, 0, 0, 0, 5.0, 0, 0]
    with pytest.warns(UserWarning, match="gone") as caught:
        rk.simulate(builder.build("floating"), q, duration=1e-3, ground=True)
    found = [str(x.message) for x in caught if "gone" in str(x.message)]
    assert len(found) == 1 and "'l0'" in found[0] and "2 more links" in found[0]


def lens(power: float, half: float) -> np.ndarray:
    """Points of a lens with the outline |x|^power + |y|^power = 0.1^power [m], of power 2 an ellipse."""
    turn, up = np.linspace(0.0, 2.0 * np.pi, 200, endpoint=False), np.linspace(-1.0, 1.0, 61)
    around = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    around *= 0.1 * (np.abs(around) ** power).sum(axis=1, keepdims=True) ** (-1.0 / power)
    wide = np.sqrt(1.0 - up**2)[:, None, None] * around
    points = np.concatenate([wide, np.broadcast_to(half * up[:, None, None], (*wide.shape[:2], 1))], axis=2)
    return np.unique(points.reshape(-1, 3), axis=0)


@pytest.mark.parametrize("half", [0.05, 0.01, 0.002])
def test_only_a_lens_with_the_outline_of_an_ellipse_is_an_ellipsoid(half):
    """However flat it is: that of power 2.1 is 1.7 mm farther out at its corners."""
    found = round_hull(lens(2.0, half), 1e-3)
    assert found is not None and found.size == pytest.approx((0.1, 0.1, half))
    assert round_hull(lens(2.1, half), 1e-3) is None


@pytest.mark.filterwarnings("error")
def test_a_flat_mesh_is_no_ellipsoid():
    assert round_hull(lens(2.0, 0.0), 1e-3) is None
