"""Scene: something is always drawn, at the right place, and meshes come out as their file says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from viewer_cases import pendulum

import robokit as rk
from robokit.errors import ShapeError
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.surface import simplified_surfaces
from robokit.model import Box, Mesh, ModelBuilder, Placement, Shape
from robokit.viewer.live import capsule_triangles
from robokit.viewer.scene import (
    MISSING_COLOUR,
    Triangles,
    body_poses,
    bounds,
    drawn_size,
    frame_indices,
    inertia_box,
    quaternions_xyzw,
    rotate,
    sane_frames,
    scene,
)

TRIANGLE_DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
 <asset><unit meter="0.001"/><up_axis>Y_UP</up_axis></asset>
 <library_effects><effect id="e"><profile_COMMON><technique sid="t"><phong><diffuse>
  <color>0.2 0.4 0.6 1</color></diffuse></phong></technique></profile_COMMON></effect></library_effects>
 <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
 <library_geometries><geometry id="g"><mesh>
  <source id="p"><float_array id="pa" count="12">0 0 0 1000 0 0 0 1000 0 0 0 1000</float_array></source>
  <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
  <polylist material="s" count="2"><input semantic="VERTEX" source="#v" offset="0"/>
   <input semantic="NORMAL" source="#p" offset="1"/><vcount>3 4</vcount>
   <p>0 0 1 0 2 0 0 0 1 0 2 0 3 0</p></polylist>
 </mesh></geometry></library_geometries>
 <library_visual_scenes><visual_scene id="w"><node><translate>0 0 2000</translate><rotate>0 0 1 90</rotate>
  <instance_geometry url="#g"><bind_material><technique_common><instance_material symbol="s" target="#m"/>
  </technique_common></bind_material></instance_geometry></node></visual_scene></library_visual_scenes>
 <scene><instance_visual_scene url="#w"/></scene>
</COLLADA>"""


def volume(triangles):
    a, b, c = (triangles.vertices[triangles.faces[:, k]] for k in range(3))
    return np.sum(a * np.cross(b, c)) / 6.0


def test_a_robot_without_shapes_is_seen_as_inertia_boxes_and_axes():
    seen = [node for node in scene(pendulum()) if node.role == "visual"]
    assert len(seen) == 4


def test_collisions_stand_in_for_visuals():
    b = ModelBuilder("box")
    b.link("body", mass=1.0, inertia=np.eye(3) * 0.01, collisions=(Shape(Box((1, 2, 3))),))
    seen = [node for node in scene(b.build(base="floating")) if node.role == "visual"]
    assert [node.geometry for node in seen] == [Box((1, 2, 3))]


def test_visuals_are_the_robot_where_there_are_some(shapes):
    nodes = scene(pendulum(shapes=shapes))
    seen = [node for node in nodes if node.role == "visual"]
    assert len(seen) == 8
    assert {node.role for node in nodes} == {"visual", "inertia", "axis"}


def test_the_inertia_box_has_the_links_inertia():
    link = pendulum().link("upper")
    box, placement = inertia_box(link)
    a, b, c = box.size
    moments = link.mass / 12.0 * np.array([b**2 + c**2, a**2 + c**2, a**2 + b**2])
    rotation = placement.rotation
    assert np.allclose(rotation @ np.diag(moments) @ rotation.T, link.inertia, atol=1e-9)
    assert np.allclose(placement.position, link.com)


def test_links_behind_fixed_joints_ride_on_their_body():
    b = ModelBuilder("tool")
    b.link("base")
    b.link("arm", mass=1.0, inertia=np.eye(3) * 0.01)
    b.link("tool", visuals=(Shape(Box((0.1,) * 3)),))
    b.joint("hinge", "revolute", "base", "arm", axis=(0, 0, 1))
    b.joint("weld", "fixed", "arm", "tool", placement=Placement(position=np.array([0.5, 0.0, 0.0])))
    node = next(node for node in scene(b.build(base="fixed")) if node.role == "visual")
    assert node.body == 1 and np.allclose(node.placement.position, [0.5, 0, 0])


def test_a_missing_mesh_is_a_box_and_one_warning():
    shape = Shape(Mesh("package://nowhere/arm.stl"))
    with pytest.warns(UserWarning, match=r"package://nowhere/arm\.stl.*drawn as a box") as caught:
        nodes = scene(pendulum(shapes=(shape,)))
    assert len(caught) == 1
    assert sum(node.rgba == MISSING_COLOUR for node in nodes) == 2


@pytest.mark.parametrize("scale", [(1, 1, 1), (0.001, 0.001, 0.001), (1, -1, 1), (-2, -1, 3)])
def test_scaled_and_mirrored_meshes_keep_their_outside_out(tmp_path, scale):
    import trimesh

    trimesh.creation.box((1, 2, 3)).export(tmp_path / "box.stl")
    (triangles,), _ = simplified_surfaces(list(read_mesh(tmp_path / "box.stl")), scale, 1500)
    assert volume(triangles) == pytest.approx(6.0 * abs(np.prod(scale)))


def test_meshes_are_simplified_for_display(tmp_path):
    import trimesh

    ball = trimesh.creation.icosphere(subdivisions=5, radius=0.3)
    ball.export(tmp_path / "ball.stl")
    (triangles,), _ = simplified_surfaces(list(read_mesh(tmp_path / "ball.stl")), (1.0, 1.0, 1.0), 1500)
    assert len(triangles.faces) <= 1500 < len(ball.faces)
    assert volume(triangles) == pytest.approx(4 / 3 * np.pi * 0.3**3, rel=0.03)


def test_meshes_share_the_triangles_that_small_ones_leave(tmp_path, monkeypatch):
    import trimesh

    shapes, sizes = [], (1, 2, 3)
    for k in sizes:
        trimesh.creation.icosphere(k, 0.1).export(tmp_path / f"ball{k}.stl")
        shapes.append(Shape(Mesh(f"ball{k}.stl", path=tmp_path / f"ball{k}.stl")))
    robot = ModelBuilder("balls").link("l", 1.0, (0, 0, 0), np.eye(3), visuals=tuple(shapes)).build()

    def shown(triangles):
        monkeypatch.setitem(scene.__globals__, "TRIANGLES", triangles)
        monkeypatch.setitem(scene.__globals__, "LEAST_TRIANGLES", 8)
        return [len(n.geometry.faces) for n in scene(robot) if isinstance(n.geometry, Triangles)]

    whole = [20 * 4**k for k in sizes]
    assert shown(sum(whole)) == whole
    few = shown(1000)  # equal shares of 333 would thin the largest to a third
    assert few[:2] == whole[:2] and 550 <= few[2] <= 600
    assert [len(n.geometry.faces) for n in scene(robot, 100) if isinstance(n.geometry, Triangles)] == [
        pytest.approx(min(each, 100), abs=10) for each in whole
    ]


def test_collada_geometry_units_transforms_and_colour(tmp_path):
    (tmp_path / "t.dae").write_text(TRIANGLE_DAE)
    (surface,) = read_mesh(tmp_path / "t.dae")
    points, faces, colour = surface.vertices, surface.faces, surface.rgba
    assert colour == (0.2, 0.4, 0.6, 1.0)
    assert len(faces) == 3
    # (1, 0, 0) m turned by 90 degrees about z and lifted by 2 m; the up axis is not applied.
    assert np.isclose(points, [0, 1, 2]).all(axis=1).any()


def test_collada_vertex_lists_may_be_long(tmp_path):
    # XML readers stop at texts of 10 MB unless told otherwise; the Go1's trunk is longer.
    (tmp_path / "t.dae").write_text(
        TRIANGLE_DAE.replace("0 0 1000</float", "0 0" + " " * 10_100_000 + "1000</float")
    )
    (surface,) = read_mesh(tmp_path / "t.dae")
    points = surface.vertices
    assert points.shape == (4, 3)


def test_capsules_are_closed_and_wound_outward():
    from robokit.model import Capsule

    capsule = Capsule(0.1, 0.4)
    exact = np.pi * 0.01 * 0.4 + 4 / 3 * np.pi * 0.001
    assert volume(capsule_triangles(capsule, around=96, rings=32)) == pytest.approx(exact, rel=0.01)


def test_quaternions_rotate_as_their_matrices_and_do_not_jump():
    angles = np.linspace(0.0, 9.0, 400)
    axis = np.array([0.48, -0.6, 0.64])
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    matrices = (
        np.eye(3)
        + np.sin(angles)[:, None, None] * cross
        + (1 - np.cos(angles))[:, None, None] * cross @ cross
    )
    quats = quaternions_xyzw(matrices)
    vector = np.array([0.3, -1.0, 2.0])
    assert np.allclose(rotate(quats, vector[None]), matrices @ vector, atol=1e-12)
    assert (np.sum(quats[1:] * quats[:-1], axis=1) > 0.9).all()


def test_body_poses_are_forward_kinematics(humanoid):
    q = humanoid.random_configuration(3)
    poses = body_poses(humanoid, q[None])[0]
    expected = rk.forward_kinematics(humanoid, q)
    for link in humanoid.links:
        rotation, position = expected[link.name]
        place = poses[link.body]
        assert np.allclose(rotate(place[3:], link.placement.position) + place[:3], position, atol=1e-9)
        assert np.allclose(rotate(place[3:], link.placement.rotation[:, 0]), rotation[:, 0], atol=1e-9)


def test_frames_keep_both_ends_and_the_rate():
    t = np.arange(0.0, 5.0005, 0.001)
    chosen = frame_indices(t)
    assert chosen[0] == 0 and chosen[-1] == len(t) - 1
    assert len(chosen) == 301 and np.ptp(np.diff(t[chosen])) < 0.0021
    assert list(frame_indices(np.array([0.0, 0.1, 0.2]))) == [0, 1, 2]
    assert list(frame_indices(np.array([0.0]))) == [0]
    for wrong in (0.0, -60.0, float("nan")):
        with pytest.raises(ShapeError, match="max_fps"):
            frame_indices(t, wrong)


def test_the_bounding_box_holds_the_whole_motion():
    b = ModelBuilder("ball")
    b.link("ball", mass=1.0, inertia=np.eye(3) * 0.1, visuals=(Shape(Box((0.2, 0.2, 0.2))),))
    robot = b.build(base="floating")
    q = np.tile(robot.neutral(), (2, 1))
    q[1, 4:] = [1.0, 2.0, 3.0]
    box = bounds(scene(robot), body_poses(robot, q))
    assert np.allclose(box, [[-0.1, -0.1, -0.1], [1.1, 2.1, 3.1]])


def test_a_scene_warns_about_nothing_when_all_is_there(humanoid):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scene(humanoid)


def test_the_size_is_that_of_what_is_drawn_not_of_inertia_boxes():
    heavy = np.diag([40.0, 40.0, 40.0])  # of a box of metres
    b = ModelBuilder("small")
    b.link("base", mass=1.0, inertia=heavy, visuals=(Shape(Box((0.2, 0.1, 0.2))),))
    robot = b.build(base="floating")
    assert drawn_size(robot, scene(robot)) == pytest.approx(0.15)


def test_a_motion_that_blew_up_is_trusted_up_to_there():
    t = np.linspace(0.0, 1.0, 11)
    poses = np.zeros((11, 2, 7))
    poses[:, :, 6] = 1.0
    poses[:, 1, 2] = 50.0 - 0.5 * 9.81 * t**2
    assert sane_frames(t, poses, 0.5) == 11
    poses[8, 1, 0] = 1e4
    assert sane_frames(t, poses, 0.5) == 8
    poses[6, 1, 3] = np.nan
    assert sane_frames(t, poses, 0.5) == 6
    poses[0] = np.nan
    assert sane_frames(t, poses, 0.5) == 1


@pytest.mark.parametrize(("given", "shown"), [((0, 0, 0, 1), (0.2, 0.4, 0.6)), ((0.9, 0, 0, 1), (0.9, 0, 0))])
def test_black_in_the_description_leaves_a_mesh_file_its_own_colour(tmp_path, given, shown):
    path = tmp_path / "painted.dae"
    path.write_text(TRIANGLE_DAE)
    b = ModelBuilder("painted")
    b.link("base", visuals=(Shape(Mesh(path.name, path=path), rgba=tuple(map(float, given))),))
    (node,) = [node for node in scene(b.build()) if node.role == "visual"]
    assert node.rgba[:3] == pytest.approx(shown)
