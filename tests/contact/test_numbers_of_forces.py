"""Numbers of forces: what they follow from, and rows of joints that follow others."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from dense import Dense, skew
from step_of_forces import ForcesStep

import robokit as rk
from robokit.collision.fields import CYLINDER, POINT, POLYTOPE
from robokit.contact.constraints.contacts import arms, friction, restitution
from robokit.contact.constraints.motors import decay, end_share, servo_numbers
from robokit.contact.materials import (
    Surface,
    contact_numbers,
    joint_numbers,
    loop_numbers,
    mobilities,
    motor_numbers,
    sizes,
)
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.sim.joint_forces import joint_law
from robokit.sim.run_inputs import servo_numbers as of_arrays


def box_robot(half):
    shape = Shape(Box(tuple(2.0 * np.array(half))), Placement())
    return (
        ModelBuilder("box")
        .link("box", 2.0, (0, 0, 0), np.eye(3) * 0.01, collisions=(shape,))
        .build("floating")
    )


def box_shapes(half):
    corners = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]) * half
    return {
        "shape_body": np.array([1]),
        "shape_kind": np.array([POLYTOPE]),
        "shape_placement": np.array([[*np.eye(3).ravel(), 0.0, 0.0, 0.0]]),
        "shape_size": np.zeros((1, 3)),
        "shape_radius": np.zeros(1),
        "shape_corners": np.array([[0, 8]]),
        "corners": corners,
    }


@pytest.mark.parametrize("half", [(0.1, 0.1, 0.1), (0.05, 0.1, 0.3), (0.5, 0.5, 0.02)])
def test_the_ground_is_as_firm_under_a_box_as_it_needs_to_stand(half):
    """A tenth of its size, which counts up to 20 cm; 3e-3 w^2 / h, of proportions up to 1:4."""
    found = sizes(box_robot(half), box_shapes(half))
    thin, long = 2.0 * min(half), 2.0 * max(half)
    assert found.size == pytest.approx(0.1 * min(max(half), 0.2), rel=1e-12)
    assert found.steady == pytest.approx(3e-3 * max(thin**2 / long, long / 16.0), rel=1e-12)


def test_each_of_several_boxes_may_carry_all():
    """One point then sinks as far under the weight of all three as it may under that of one alone."""
    half = (0.05, 0.1, 0.3)
    alone, shapes = sizes(box_robot(half), box_shapes(half)), box_shapes(half)
    shapes = {name: np.concatenate([a] * 3) for name, a in shapes.items()} | {"shape_body": np.arange(1, 4)}
    found = sizes(rk.together({name: box_robot(half) for name in "abc"}), shapes)
    assert found.size == pytest.approx(alone.size) and found.steady == pytest.approx(alone.steady)


def test_a_round_body_and_a_point_have_their_sizes():
    robot, shapes = box_robot((0.1, 0.1, 0.1)), box_shapes((0.1, 0.1, 0.1))
    shapes |= {"shape_kind": np.array([CYLINDER]), "shape_size": np.array([[0.05, 0.15, 0.0]])}
    long, thin = 0.3, 0.1
    assert sizes(robot, shapes).steady == pytest.approx(3e-3 * thin**2 / long / 4.0)
    shapes |= {
        "shape_kind": np.array([POINT]),
        "shape_corners": np.array([[0, 1]]),
        "corners": np.zeros((1, 3)),
    }
    assert sizes(robot, shapes).size == np.inf


def test_mobilities_are_those_of_the_tree():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    found = mobilities(robot)
    dense = Dense(robot, robot.neutral(), np.zeros(robot.nv))
    W = np.linalg.inv(dense.H)
    np.testing.assert_allclose(found.dof, np.diag(W), rtol=1e-9)
    for i in range(1, robot.nbodies + 1):
        link = next(link for link in robot.links if link.body == i and link.mass > 0.0)
        I, place, T = robot.tree.I[i], link.placement, dense.T[link.name]
        c = T[:3, :3] @ (place.rotation.T @ (np.array(list(I.h)) / I.m - place.position)) + T[:3, 3]
        J = np.hstack([-skew(c), np.eye(3)]) @ dense.J[link.name]
        assert found.move[i] == pytest.approx(np.trace(J @ W @ J.T) / 3.0, rel=1e-9)


def test_what_only_turns_about_its_middle_gives_way_there_where_it_is_touched():
    """A disc on an axle: the mean over its mass of how far points give way in its plane, over 2 and 3."""
    builder = rk.ModelBuilder("disc").link("world")
    builder.link("disc", 5.0, (0.1, 0.2, 0.3), np.diag([0.06, 0.1, 0.06]))
    place = rk.Placement(position=np.array([0.4, 0.0, 0.0]))
    builder.joint("axle", "continuous", "world", "disc", place, axis=(0, 1, 0))
    about = 0.1 + 5.0 * (0.1**2 + 0.3**2)
    of_centre = (0.1**2 + 0.3**2) / about / 3.0
    assert mobilities(builder.build("fixed")).move[1] == pytest.approx(of_centre, rel=1e-12)
    builder = rk.ModelBuilder("disc").link("world")
    builder.link("disc", 5.0, inertia=np.diag([0.06, 0.1, 0.06]))
    builder.joint("axle", "continuous", "world", "disc", place, axis=(0, 1, 0))
    assert mobilities(builder.build("fixed")).move[1] == pytest.approx(1.0 / 5.0 / 6.0, rel=1e-12)


def test_joints_have_the_numbers_of_their_law():
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    law, _ = joint_law(robot, None)
    found = joint_numbers(robot, law)
    assert found["damping"] == pytest.approx([b for row in law.damping for b in row])
    stops = [stop for stop in law.stop if stop]
    assert sorted(found["stop_bound"]) == pytest.approx(
        sorted([x for s in stops for x in (s.lower, s.upper)])
    )
    assert len(found["stop_dof"]) == 2 * len(stops)


def test_contacts_have_the_friction_of_the_link_or_of_the_solid():
    """The third shape is a link's that is fixed to the world: touching it is touching a body."""
    body, pairs = np.array([0, 0, 0, 1, 2]), np.array([[0, 3], [1, 3], [1, 4], [3, 4], [2, 4]])
    own, ground = np.array([np.nan, 0.1, np.nan, np.nan, np.nan]), np.array([1, 1, 0, 0, 0], bool)
    surface = Surface(ground, np.array([0.0, 0.8, 0.3]), np.array([0.0, 0.2, 0.0]), own, 0.01, 0.02)
    found = contact_numbers(body, (1e5, 1e3, 5.0), surface, (0.5, 0.9))
    x = SimpleNamespace(contact_shapes=pairs, **found)
    assert [friction(x, c) for c in range(5)] == [0.8, 0.1, 0.1, 0.5, 0.5]
    assert [restitution(x, c) for c in range(5)] == [0.2, 0.2, 0.0, 0.9, 0.9]
    assert [arms(x, c) for c in range(5)] == [(0.01, 0.02)] * 3 + [(0.0, 0.0)] * 2


def test_a_servo_alone_is_exact():
    """A damper of gain kd on an inertia m: e^-z a step, whatever the step."""
    b = ModelBuilder("wheel").link("frame").link("wheel", 1.0, (0, 0, 0), np.eye(3) * 0.3)
    robot = b.joint("axle", "continuous", "frame", "wheel").build()
    for dt in (1e-3, 0.1, 2.0):
        step = ForcesStep(robot, dt, **motor_numbers(robot, [1], (0.0, 2.0)))
        _, v = step.step(np.zeros(1), np.ones(1))
        assert v[0] == pytest.approx(np.exp(-dt * 2.0 / 0.3), rel=1e-9)


@pytest.mark.parametrize(
    "kp, kd, m, dt", [(0.0, 1.0, 2.0, 1e-3), (1e7, 1e4, 0.5, 4e-3), (300.0, 10.0, 1e-3, 1e-2)]
)
def test_servo_numbers_in_loops_are_those_of_arrays(kp, kd, m, dt):
    assert servo_numbers(kp, kd, m, dt) == pytest.approx(
        [float(x) for x in of_arrays(kp, kd, m, dt)], rel=1e-12
    )


def test_the_share_of_a_damper_goes_from_a_half_to_one():
    z = np.geomspace(1e-6, 39.0, 40)
    for one in z.tolist():
        assert decay(one) == pytest.approx(np.exp(-one), rel=1e-13)
    assert end_share(1e-9) == pytest.approx(0.5)
    assert end_share(1e6) == pytest.approx(1.0, abs=2e-6)


FOLLOWER = """<robot name="pair"><link name="base"/>
<link name="a"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/>
<inertia ixx="0.2" iyy="0.2" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="leader" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="10" velocity="10"/></joint>
<joint name="follower" type="revolute"><parent link="base"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-0.5" upper="3" effort="10" velocity="10"/><dynamics damping="{damping}" friction="{friction}"/>
<mimic joint="leader" multiplier="-2" offset="0.1"/></joint></robot>"""


def follower(tmp_path, damping=0.0, friction=0.0):
    path = tmp_path / "pair.urdf"
    path.write_text(FOLLOWER.format(damping=damping, friction=friction))
    return rk.load_urdf(path, mimic="couple")


def test_a_limit_of_a_follower_holds_its_leader(tmp_path):
    step = ForcesStep(follower(tmp_path), 1e-3)
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(1000):
        q, v = step.step(q, v, 4.0)
    (m,) = np.flatnonzero(step.x.stop_bound == -0.5)
    depth = (4.0 / 2.0) / step.x.stop_gains[m, 0]
    assert -2.0 * q[0] + 0.1 == pytest.approx(-0.5 - depth, abs=1e-3 * depth)


def test_damping_and_friction_of_a_follower_are_felt_by_its_leader(tmp_path):
    inertia = 0.1 + 4.0 * 0.2
    step = ForcesStep(follower(tmp_path, damping=0.3), 1e-3)
    _, v = step.step(np.zeros(1), np.ones(1))
    assert v[0] == pytest.approx(1.0 / (1.0 + 1e-3 * 4.0 * 0.3 / inertia), rel=1e-9)
    step = ForcesStep(follower(tmp_path, friction=0.5), 1e-3)
    _, v = step.step(np.zeros(1), np.ones(1))
    assert v[0] == pytest.approx(1.0 - 1e-3 * 2.0 * 0.5 / inertia, rel=1e-9)
    q, v = np.zeros(1), np.zeros(1)
    for _ in range(20):
        q, v = step.step(q, v, 0.99)
    assert abs(v[0]) < 1e-8


def test_samples_have_the_numbers_of_each():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    heavy = robot.with_inertias(robot.inertial_parameters * 2.5)
    both = robot.with_inertias(np.stack([robot.inertial_parameters, heavy.inertial_parameters]))
    found = mobilities(both)
    np.testing.assert_allclose(
        found.move, np.stack([mobilities(one).move for one in (robot, heavy)]), rtol=1e-9
    )
    assert found.dof.shape == (2, robot.nv)
    each = [loop_numbers(one)["loop_mobility"] for one in (robot, heavy)]
    np.testing.assert_allclose(loop_numbers(both)["loop_mobility"], each, rtol=1e-9)
    assert each[0].shape == (1, 2)
