"""The page's step of contact: one module for all robots, and the bits of Python."""

from __future__ import annotations

import numpy as np
import pytest
from test_viewer_worker import START, told

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.viewer.live_data import live_data
from robokit.viewer.page import WORKER, joined, json_for_html

STEPS, EVERY = 200, 20


def fallen(robot, q, **given):
    """A fall by reproducible steps."""
    return rk.simulate(
        robot, q, duration=STEPS * 1e-3, dt=1e-3, record_every=EVERY, reproducible=True,
        **{"ground": True, **given},
    )  # fmt: skip


def tilted(name):
    """A robot and a configuration from which it falls on its side, into itself."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    q = rk.standing_configuration(robot)
    q[:4] = np.array([0.99, 0.1, 0.05, 0.0]) / np.linalg.norm([0.99, 0.1, 0.05])
    q[6] += 0.02
    return robot, q


def same_bits(motion, trace):
    assert motion.v.any()
    for key, others in (("q", motion.q), ("v", motion.v)):
        assert np.array_equal(np.reshape(trace[key], others.shape), others), key


def taken(motion, *before):
    """States of the Worker at the times of the records."""
    start = {**START, "q": None, "v": None}
    return told(motion, *before, start, {"kind": "trace", "steps": STEPS, "every": EVERY})[-1]


@pytest.mark.node
@pytest.mark.slow
@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_the_worker_has_the_bits_of_python(name):
    motion = fallen(*tilted(name))
    assert motion.summary["self_collision_pairs"] > 10
    same_bits(motion, taken(motion))


@pytest.mark.node
@pytest.mark.slow
def test_faces_of_hulls_have_the_same_normals():
    """A page makes them again from the corners."""
    corners = np.random.default_rng(5).normal(size=(40, 3))
    corners *= 0.3 / np.linalg.norm(corners, axis=1)[:, None]
    robot, q = tilted("quadruped")
    q[6] += 0.29
    stone = rk.Solid(corners, Placement(position=np.array([0.1, 0.05, 0.0])))
    motion = fallen(robot, q, ground=rk.Ground(shapes=[stone]))
    assert motion.contact_force[-1, 2] > 0.0
    same_bits(motion, taken(motion))


@pytest.mark.node
def test_a_step_that_finds_no_place_is_taken_again():
    """Ten boxes in a row on the ground have forty contacts; there is place for sixteen at first."""
    b = ModelBuilder("row")
    for k in range(10):
        b.link(f"box {k}", mass=1.0, inertia=np.eye(3) * 2e-3, collisions=(Shape(Box((0.1, 0.1, 0.1))),))
        if k:
            place = Placement(position=np.array([0.2, 0.0, 0.0]))
            b.joint(f"hinge {k}", "revolute", f"box {k - 1}", f"box {k}", place, axis=(0, 1, 0))
    robot = b.build(base="floating")
    q = robot.neutral()
    q[6] = 0.051
    motion = fallen(robot, q)
    assert sum(force[-1, 2] > 0.0 for force in motion.contact_forces.values()) == 10
    same_bits(motion, taken(motion))


def closed_chain():
    """A plate on the ground with a loop of three bars on it, and a ball on a spherical joint."""
    b = ModelBuilder("closed chain")
    inertia = 2e-3 * np.eye(3)
    b.link("plate", 2.0, inertia=10 * inertia, collisions=(Shape(Box((0.6, 0.3, 0.1))),))
    bar = (Shape(Box((0.04, 0.04, 0.28)), Placement(position=np.array([0.0, 0.0, 0.15]))),)
    b.link("left", 0.3, (0, 0, 0.15), inertia, collisions=bar).link("right", 0.3, (0, 0, 0.15), inertia)
    b.link("top", 0.3, (0.2, 0, 0), inertia)
    b.link("ball", 0.4, (0, 0, -0.1), inertia, collisions=(Shape(Box((0.1, 0.1, 0.1))),))
    places = {"left": (-0.2, 0, 0.06), "right": (0.2, 0, 0.06), "top": (0, 0, 0.3), "ball": (0.4, 0.2, 0)}
    place = {name: Placement(position=np.array(at, float)) for name, at in places.items()}
    b.joint("a", "revolute", "plate", "left", place["left"], axis=(0, 1, 0))
    b.joint("b", "revolute", "plate", "right", place["right"], axis=(0, 1, 0))
    b.joint("c", "revolute", "left", "top", place["top"], axis=(0, 1, 0))
    b.joint("d", "spherical", "plate", "ball", place["ball"])
    b.loop_joint(
        "e", "revolute", "top", "right", axis=(0, 1, 0),
        predecessor_placement=Placement(position=np.array([0.4, 0.0, 0.0])), successor_placement=place["top"],
    )  # fmt: skip
    return b.build(base="floating")


@pytest.mark.node
def test_a_robot_with_loops_has_the_bits_and_the_forces_of_python():
    """What closes a loop is solved after the contacts: it must not hide them."""
    robot = closed_chain()
    q = robot.neutral()
    q[6] = 0.06
    motion = fallen(robot, q, v0=np.full(robot.nv, 0.2))
    trace = taken(motion)
    same_bits(motion, trace)
    mine = np.reshape(trace["forceByBody"], (len(motion), robot.nbodies, 3))
    assert motion.contact_forces["plate"][-1, 2] > 5.0
    for link, force in motion.contact_forces.items():
        np.testing.assert_allclose(mine[:, robot.link(link).body - 1], force, rtol=1e-12, atol=1e-9)
    frame = told(motion, START, {"kind": "step", "count": STEPS})[-1]
    contacts, normals = np.reshape(frame["contacts"], (-1, 6)), np.reshape(frame["contactNormals"], (-1, 3))
    np.testing.assert_allclose(contacts[:, 3:].sum(axis=0), motion.contact_force[-1], rtol=1e-5, atol=1e-4)
    assert len(normals) == len(contacts) == len(frame["contactBody"])
    np.testing.assert_allclose(normals, np.tile([0.0, 0.0, 1.0], (len(normals), 1)), atol=1e-6)


@pytest.mark.node
def test_bodies_on_one_another_and_springs_have_the_bits_and_forces_of_python():
    b = ModelBuilder("pile").link("ground")
    for name in ("lower", "upper"):
        b.link(name, 1.0, inertia=7e-3 * np.eye(3), collisions=(Shape(Box((0.2, 0.2, 0.2))),))
        b.joint(f"{name} moves", "floating", "ground", name)
    robot = b.build("fixed")
    q = robot.neutral()
    for joint, height in (("lower moves", 0.1), ("upper moves", 0.3)):
        q[robot.joint(joint).q_slice][6:] = height
    rope = rk.Spring(
        "world", "upper", (0.3, 0, 0.5), (0, 0, 0.1), stiffness=20.0, damping=1.0, rest_length=0.1
    )
    motion = fallen(robot, q, springs=rope)
    same_bits(motion, taken(motion))
    between, spring = motion.body_contacts.at(-1), motion.springs[0]
    assert set(zip(between.links, between.against, strict=True)) == {("upper", "lower")}
    met = np.reshape(told(motion, START, {"kind": "step", "count": STEPS})[-1]["met"], (-1, 9))
    mine = np.hstack([between.points, between.forces, between.normals])[between.forces.any(axis=1)]
    np.testing.assert_allclose(met, mine, rtol=1e-5, atol=1e-5)
    # The lower box carries what the spring leaves of the upper one's weight.
    start, end = spring.points[-1]
    pull = spring.force[-1] * (start - end) / spring.length[-1]
    np.testing.assert_allclose(between.forces.sum(axis=0), [-pull[0], 0.0, 9.81 - pull[2]], atol=0.02)


@pytest.mark.node
def test_a_world_of_robots_on_solids_has_the_bits_of_python():
    box = ModelBuilder("box").link(
        "box", 1.0, inertia=2e-3 * np.eye(3), collisions=(Shape(Box((0.2, 0.1, 0.1))),)
    )
    box, far = box.build(base="floating"), Placement(position=np.array([0.3, 0.02, 0.12]))
    pendulum = rk.load_urdf(rk.find_robot("double_pendulum"))
    beside = Placement(position=np.array([2.0, 0.0, 1.5]))
    world = rk.together({"a": box, "b": (box, far), "c": (pendulum, beside)})
    ground = rk.Ground(shapes=[rk.Solid(Box((0.4, 0.4, 0.2)), (0.35, 0.0, 0.0))])
    one = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.06])
    q = np.concatenate([one, [*one[:4], 0.05, 0.0, 0.04], [0.4, 0.1]])
    motion = fallen(world, q, ground=ground, v0=np.full(world.nv, 0.3))
    assert {"a/box", "b/box"} == {name for name, f in motion.contact_forces.items() if f.any()}
    same_bits(motion, taken(motion))


@pytest.mark.parametrize("name", ["double_pendulum", "quadruped"])
def test_the_step_of_a_page_is_small(name):
    """300 kB for any robot, the robot's own numbers and the Worker included."""
    robot = rk.load_urdf(rk.find_robot(name))
    motion = rk.simulate(robot, duration=1e-3, dt=1e-3, integrator="contact")
    live = live_data(motion, joined(WORKER))
    assert 60_000 < len(json_for_html(live)) < 160_000
    assert 80_000 < live.stepper.bytes < 240_000


def test_all_robots_have_one_module():
    one, other = (
        rk.simulate(rk.load_urdf(rk.find_robot(name)), duration=1e-3, dt=1e-3, integrator="contact")
        for name in ("double_pendulum", "quadruped")
    )
    first, second = (live_data(motion, "").stepper for motion in (one, other))
    assert first.module == second.module and first.numbers != second.numbers


@pytest.mark.node
def test_friction_of_all_the_ground_may_change():
    """A box on ice goes on; as recorded, it stops."""
    b = ModelBuilder("box")
    b.link("box", mass=1.0, inertia=np.eye(3) * 2e-3, collisions=(Shape(Box((0.1, 0.1, 0.1))),))
    robot = b.build(base="floating")
    q, v = robot.neutral(), np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    q[6] = 0.05
    motion = fallen(robot, q, v0=v)
    ways = [
        told(motion, *before, START, {"kind": "step", "count": STEPS})[-1]["q"][4]
        for before in (
            [],
            [{"kind": "set", "friction": 0.0}],
            [{"kind": "set", "friction": 0.0}, {"kind": "set", "friction": None}],
        )
    ]
    assert ways[0] == motion.q[-1, 4] == ways[2] < 0.15
    assert ways[1] == pytest.approx(0.2, abs=1e-6)


MIXED = """
<mujoco model="mixed">
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="torso" pos="0 0 0.8">
      <freejoint/>
      <geom type="capsule" fromto="-0.2 0 0 0.2 0 0" size="0.08" mass="3"/>
      <body name="leg" pos="0.2 0 0">
        <joint name="hip_x" type="hinge" axis="1 0 0" range="-60 60" stiffness="2"/>
        <joint name="hip_y" type="hinge" axis="0 1 0" range="-60 60" damping="0.2"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.35" size="0.05" mass="1"/>
        <body name="foot" pos="0 0 -0.35">
          <joint name="ankle" type="ball"/><geom type="sphere" size="0.07" mass="0.5"/>
        </body>
      </body>
      <body name="bar_a" pos="-0.2 0.15 0">
        <joint name="a" type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03" mass="0.3"/>
        <body name="bar_b" pos="0 0 -0.3">
          <joint name="b" type="hinge" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="0.3"/>
          <body name="bar_c" pos="0.3 0 0">
            <joint name="c" type="hinge" axis="0 1 0"/>
            <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.3"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><connect body1="bar_c" body2="torso" anchor="0 0 0.3"/></equality>
  <actuator>
    <position name="hx" joint="hip_x" kp="50"/><motor name="my" joint="hip_y" gear="5"/>
  </actuator>
</mujoco>
"""


@pytest.mark.node
@pytest.mark.parity
def test_a_robot_of_mjcf_has_the_bits_of_python(tmp_path):
    """Several joints on a body, a ball joint, a loop, springs, and the file's own actuators and ground."""
    (tmp_path / "mixed.xml").write_text(MIXED)
    robot = rk.load(tmp_path / "mixed.xml")
    q = rk.standing_configuration(robot)
    actuators = robot.scene.actuators
    assert len(actuators) == 2 and robot.loop_joints
    motion = fallen(robot, q, v0=np.full(robot.nv, 0.3), actuators=actuators, ground=robot.scene.ground)
    assert motion.contact_force[-1, 2] > 0.0
    same_bits(motion, taken(motion))
    motors = live_data(motion, "").motors
    assert [(m.joint, m.kind) for m in motors.list] == [("hip_x", "position"), ("hip_y", "force")]
