"""Contact points from shapes."""

import math

import numpy as np
import pytest

from robokit.model import Box, Capsule, Cylinder, Mesh, ModelBuilder, Placement, Shape, Sphere
from robokit.sim.shapes.contact_points import contact_points, primitive_points
from robokit.sim.shapes.touching_size import extent, loose_extent, steady
from robokit.sim.touching.point_moments import Moments, along, isotropic
from robokit.spatial import Motion, Vector3

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


def _robot(**link):
    builder = ModelBuilder("r")
    builder.link("a", mass=2.0, inertia=np.diag([0.1, 0.2, 0.25]), **link)
    return builder.build("floating")


@pytest.mark.parametrize(
    ("shape", "count", "lowest", "sideways"),
    [
        (Sphere(0.3), 1, -0.3, -0.3),
        (Capsule(0.1, 0.5), 2, -0.35, -0.1),
        (Box((0.2, 0.4, 0.6)), 8, -0.3, -0.1),
        (Cylinder(0.2, 0.5), 5, -0.25, -0.2),
    ],
)
def test_primitives(shape, count, lowest, sideways):
    points = primitive_points(shape)
    assert len(points) == count
    assert min(p.at(Vector3(0.0, 0.0, 1.0)).z for p in points) == pytest.approx(lowest)
    assert min(p.at(Vector3(1.0, 0.0, 0.0)).x for p in points) == pytest.approx(sideways)


def test_placement_of_shape_and_link():
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    builder = ModelBuilder("r")
    builder.link("a", mass=1.0, inertia=np.eye(3))
    builder.link("b", collisions=(Shape(Sphere(0.1), Placement(turn, np.array([1.0, 0, 0]))),))
    builder.joint("f", "fixed", "a", "b", Placement(turn, np.array([0, 0, 2.0])))
    points = contact_points(builder.build("floating"))
    assert points.link == ("b",) and points.body.tolist() == [1]
    assert points.position == pytest.approx(np.array([[0.0, 1.0, 2.0]]))


def test_collision_then_visual_then_inertia_box():
    a, b = (Shape(Sphere(0.1)),), (Shape(Sphere(0.2)),)
    assert contact_points(_robot(collisions=a, visuals=b)).radius.tolist() == [0.1]
    assert contact_points(_robot(visuals=b)).radius.tolist() == [0.2]
    box = contact_points(_robot(com=(0.5, 0, 0)))
    assert len(box) == 8 and box.position.mean(axis=0) == pytest.approx([0.5, 0, 0])
    size = np.ptp(box.position, axis=0)
    squares = size**2
    assert 2.0 / 12.0 * (squares.sum() - squares) == pytest.approx([0.1, 0.2, 0.25])


def test_links_that_do_not_move_are_left_out():
    builder = ModelBuilder("r")
    builder.link("base", mass=1.0, collisions=(Shape(Sphere(1.0)),))
    builder.link("arm", mass=1.0, inertia=np.eye(3), collisions=(Shape(Sphere(0.1)),))
    builder.joint("j", "continuous", "base", "arm")
    assert contact_points(builder.build("fixed")).link == ("arm",)


def test_mesh_hull_is_thinned_and_missing_mesh_falls_back(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "s.stl"
    trimesh.creation.icosphere(subdivisions=3, radius=0.5).export(path)
    mesh = Mesh("s.stl", (2.0, 1.0, 1.0), path)
    points = contact_points(_robot(collisions=(Shape(mesh),)), shape_error=5e-3)
    corners = np.concatenate([shape.corners for shape in points.shape])
    assert len(points) <= 5 and 32 < len(corners) < 500 and points.error == 5e-3
    assert np.linalg.norm(corners / [2, 1, 1], axis=1) == pytest.approx(np.full(len(corners), 0.5), abs=1e-6)
    true = trimesh.load(path).vertices * [2.0, 1.0, 1.0]
    for n in np.random.default_rng(0).normal(size=(200, 3)):
        up = Vector3(*(n / np.linalg.norm(n)))
        low = min(up.dot(shape.at(up)) for shape in points.shape)
        assert low == pytest.approx((true @ [*up]).min(), abs=5e-3)
    coarse = contact_points(_robot(collisions=(Shape(mesh),)), shape_error=4e-2)
    assert sum(len(shape.corners) for shape in coarse.shape) < len(corners) / 4
    uneven = contact_points(_robot(collisions=(Shape(mesh),)), None, 5e-3, plane=False).shape
    assert len(uneven) == 5 and sorted(c for s in uneven for c in s.corners) == sorted(map(tuple, corners))
    assert all(np.ptp(shape.corners, axis=0).max() < 1.9 for shape in uneven)  # no two opposite sides
    missing = (Shape(Mesh("gone.stl")),)
    with pytest.warns(UserWarning, match="'a'"):
        box = contact_points(_robot(collisions=missing))
    assert len(box) == 8
    with pytest.warns(UserWarning, match="gone"):
        assert contact_points(_robot(collisions=missing, visuals=(Shape(Sphere(0.1)),))).radius.tolist() == [
            0.1
        ]


def test_fewer_points_hold_the_same_corners(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "b.stl"
    trimesh.creation.box((0.2, 0.3, 0.4)).export(path)
    robot = _robot(collisions=(Shape(Mesh("b.stl", path=path)),))
    for most, count in ((None, 4), (3, 3), (1, 2)):
        points = contact_points(robot, most)
        assert len(points) == count and sum(len(shape.corners) for shape in points.shape) == 8


def test_collada_meshes_touch_where_they_are_seen(tmp_path):
    # In millimetres: the unit counts, for contact as for the picture.
    (tmp_path / "t.dae").write_text(TETRAHEDRON_DAE)
    points = contact_points(_robot(collisions=(Shape(Mesh("t.dae", (2.0, 1.0, 1.0), tmp_path / "t.dae")),)))
    assert len(points) == 4
    assert np.array(sorted(points.position.tolist())) == pytest.approx(
        np.array([[0.0, 0, 0], [0, 0, 0.1], [0, 0.1, 0], [0.2, 0, 0]])
    )


def test_unreadable_meshes_are_named_once(tmp_path):
    builder = ModelBuilder("r")
    for k in range(3):
        mesh = Mesh(f"gone{k}.dae")
        builder.link(f"l{k}", mass=1.0, inertia=np.eye(3), collisions=(Shape(mesh), Shape(mesh)))
    builder.joint("j0", "continuous", "l0", "l1").joint("j1", "continuous", "l1", "l2")
    with pytest.warns(UserWarning, match="gone") as caught:
        assert len(contact_points(builder.build("floating"))) == 24
    assert len(caught) == 1 and "'l0'" in str(caught[0].message) and "2 more links" in str(caught[0].message)


def test_points_are_computed_once():
    robot = _robot(collisions=(Shape(Sphere(0.1)),))
    assert contact_points(robot) is contact_points(robot)


def test_moments_give_the_forces_of_the_points():
    """The moments are all it takes: against the sum over the points, one by one."""
    rng = np.random.default_rng(0)
    n = np.array([0.36, 0.48, 0.8])
    V = Motion(Vector3(*rng.normal(size=3)), Vector3(*rng.normal(size=3)))
    weights, coefficients, places = rng.uniform(size=5), rng.uniform(size=5), rng.normal(size=(5, 3))
    G, C = Moments(), Moments()
    expected = np.zeros(6)
    for w, c, p in zip(weights, coefficients, places, strict=True):
        G, C = G + Moments.of(w - c, Vector3(*np.cross(p, n))), C + Moments.of(c, Vector3(*p))
        u = np.array([*V.lin]) + np.cross([*V.ang], p)
        f = c * u + (w - c) * n * (n @ u)
        expected += [*np.cross(p, f), *f]
    K = isotropic(C) + along(G, Vector3(*n))
    assert [*(K @ V)] == pytest.approx(expected.tolist())
    assert math.isclose(C.s0, coefficients.sum())


def test_the_size_of_a_robot_does_not_depend_on_which_corners_share_a_point():
    robot = _robot(collisions=(Shape(Box((0.2, 0.4, 0.6))),))
    sizes = [extent(robot, contact_points(robot, plane=plane)) for plane in (True, False)]
    assert sizes == pytest.approx([0.3, 0.3])
    sizes = [loose_extent(robot, contact_points(robot, plane=plane)) for plane in (True, False)]
    assert sizes == pytest.approx([0.02, 0.02])  # a tenth of what is 40 cm long
    depths = [steady(robot, contact_points(robot, plane=plane)) for plane in (True, False)]
    assert depths == pytest.approx([3e-3 * 0.2**2 / 0.6] * 2)
