"""What holds for every robot of ours: same bytes again, well formed, inertias as the shapes say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import trimesh


def test_generator_writes_the_same_files(robots_folder, tmp_path):
    script = robots_folder / "generate.py"
    subprocess.run([sys.executable, "-B", script, "--output", tmp_path], check=True)
    committed = {p.name: p.read_bytes() for p in robots_folder.glob("*.urdf")}
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == committed


def test_names_are_unique_and_the_joints_make_a_tree(robot_file):
    root = robot_file.root
    links = [e.get("name") for e in root.findall("link")]
    joints = [e.get("name") for e in root.findall("joint")]
    children = [e.get("link") for e in root.iterfind("joint/child")]
    assert len(set(links)) == len(links)
    assert len(set(joints)) == len(joints)
    assert len(set(children)) == len(children) == len(links) - 1
    assert set(robot_file.poses()) == set(links)  # every link is reached, parents written before children
    defined = {e.get("name") for e in root.findall("material")}
    assert {e.get("name") for e in root.iterfind("link/visual/material")} == defined
    assert root.get("name") == robot_file.path.stem


def test_every_movable_joint_has_limits_that_contain_zero_and_dynamics(robot_file):
    for joint in robot_file.root.findall("joint"):
        if joint.get("type") == "fixed":
            assert joint.find("axis") is None
            continue
        axis = np.array([float(x) for x in joint.find("axis").get("xyz").split()])
        assert np.linalg.norm(axis) == 1
        limit, dynamics = joint.find("limit").attrib, joint.find("dynamics").attrib
        assert float(limit["effort"]) > 0
        assert float(limit["velocity"]) > 0
        assert float(dynamics["damping"]) >= 0
        assert float(dynamics["friction"]) >= 0
        if joint.get("type") == "revolute":
            assert float(limit["lower"]) < 0 < float(limit["upper"])
        else:
            assert joint.get("type") == "continuous"
            assert not {"lower", "upper"} & set(limit)


def second_moment(kind, size):
    """Integral of x x^T over a solid, divided by its volume, with the volume."""
    match kind:
        case "box":
            return np.diag(size**2) / 12, np.prod(size)
        case "sphere":
            return np.eye(3) * size[0] ** 2 / 5, 4 / 3 * np.pi * size[0] ** 3
    r, length = size
    return np.diag([r**2 / 4, r**2 / 4, length**2 / 12]), np.pi * r**2 * length


def test_inertia_is_that_of_the_shapes_at_one_density(robot_file):
    for body in robot_file.bodies.values():
        volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
        for kind, size, p, R in body.visuals:
            S, v = second_moment(kind, size)
            volume += v
            first += v * p
            second += v * (R @ S @ R.T + np.outer(p, p))
        com = first / volume
        covariance = second / volume - np.outer(com, com)
        inertia = body.mass * (np.trace(covariance) * np.eye(3) - covariance)
        np.testing.assert_allclose(body.com, com, atol=1e-9)
        np.testing.assert_allclose(body.inertia, inertia, atol=1e-8 * inertia.max())


def test_inertia_agrees_with_meshes_of_the_shapes(humanoid):
    for name in ("left_foot", "right_hand", "head"):
        body = humanoid.bodies[name]
        meshes = []
        for kind, size, p, R in body.visuals:
            match kind:
                case "box":
                    mesh = trimesh.creation.box(size)
                case "sphere":
                    mesh = trimesh.creation.icosphere(subdivisions=4, radius=size[0])
                case _:
                    mesh = trimesh.creation.cylinder(radius=size[0], height=size[1], sections=128)
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = R, p
            meshes.append(mesh.apply_transform(pose))
        together = trimesh.util.concatenate(meshes)
        together.density = body.mass / together.volume
        np.testing.assert_allclose(together.center_mass, body.com, atol=1e-4)
        np.testing.assert_allclose(together.moment_inertia, body.inertia, atol=5e-3 * np.max(body.inertia))


def test_inertias_are_positive_and_obey_the_triangle_inequality_strictly(robot_file):
    for body in robot_file.bodies.values():
        assert body.mass > 0
        a, b, c = np.linalg.eigvalsh(body.inertia)
        assert a > 0
        assert a + b > c * (1 + 1e-6)


def test_contact_points_stay_few(robot_file):
    points = {"sphere": 1, "box": 8, "cylinder": 16}
    count = sum(points[kind] for b in robot_file.bodies.values() for kind, *_ in b.collisions)
    assert 0 < count <= 100


def test_nothing_of_the_humanoid_reaches_below_its_soles(humanoid):
    poses = humanoid.poses()
    lowest = []
    for name, body in humanoid.bodies.items():
        R, p = poses[name]
        for kind, size, at, turn in body.visuals + body.collisions:
            if kind == "sphere":
                reach = size[0]
            elif kind == "box":
                reach = np.abs((R @ turn)[2]) @ size / 2
            else:
                along = abs((R @ turn)[2, 2])
                reach = along * size[1] / 2 + size[0] * np.sqrt(max(0.0, 1 - along**2))
            lowest.append(((p + R @ at)[2] - reach, name))
    depth, name = min(lowest)
    assert name in ("left_foot", "right_foot")
    assert abs(depth + 0.935) < 1e-9
