"""Rows of rollouts in lanes: the bits of rows one after the other, whatever their neighbours do."""

import math

import numpy as np
import pytest
import sim_models as m
import working_memory
from test_loops_simulated import spatial_loop

import robokit as rk
from robokit.contact.step_in_lanes import may_go_in_lanes
from robokit.engine.loops.kernel import LoopKernel
from robokit.sim import contact_rows
from robokit.sim.contact_rows import Lanes

pytestmark = pytest.mark.slow

GIVEN = {"dt": 1e-3, "integrator": "contact", "record_every": 40}


@pytest.fixture
def both(monkeypatch):
    """A function: the same rollout one row after the other, and in lanes; how many rows went in these."""

    def run(*arguments, **given):
        taken, found = [], []
        own = Lanes.run
        monkeypatch.setattr(
            Lanes, "run", lambda self, a, b, *rest: (taken.append(b - a), own(self, a, b, *rest))
        )
        for lanes in (False, True):
            monkeypatch.setattr(LoopKernel, "at_hand", lambda *_, lanes=lanes: lanes)
            working_memory.fill(monkeypatch, *((math.nan, 1) if lanes else (0.0, 0)))
            found.append(rk.rollout(*arguments, **GIVEN | given))
            assert lanes or not taken
        return *found, sum(taken)

    return run


def humanoids(rows, spread=0.5):
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q = np.tile(rk.standing_configuration(robot, height=0.01), (rows, 1))
    return robot, q, spread * np.random.default_rng(3).normal(size=(rows, robot.nv))


def same(one, other):
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.failed.tolist() == other.failed.tolist()
    for row in (0, len(one.q[0]) - 1):
        a, b = one.trajectory(row), other.trajectory(row)
        assert a.summary == b.summary


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("collisions", [False, True])
def test_falls_have_the_bits_of_single_rows(both, collisions, dtype):
    """Of 11 humanoids, on two threads; a motor's torques differ by row and step, and one row fails."""
    robot, q, v = humanoids(11)
    tau = 0.5 * np.random.default_rng(4).normal(size=(240, 11, robot.nv))
    tau[150:, 6] = np.finfo(dtype).max
    given = {
        "dtype": dtype,
        "tau": tau,
        "ground": rk.Ground(friction=np.linspace(0.1, 1.0, 11)),
        "threads": 2,
    }
    with pytest.warns(UserWarning, match="finite"):
        one, other, taken = both(robot, q, v, self_collision=collisions, duration=0.24, **given)
    same(one, other)
    assert one.failed.tolist() == [6] and taken >= 11


def test_robots_of_other_masses_go_in_lanes(both):
    """As for learning: masses, and with them the stiffness of limits, differ by row."""
    robot, q, v = humanoids(9, spread=2.0)
    many = robot.with_inertias(robot.inertial_parameters * np.linspace(0.7, 1.4, 9)[:, None, None])
    one, other, taken = both(many, q, v, ground=True, duration=0.24)
    same(one, other)
    assert taken >= 8


def test_rows_that_need_more_place_leave_their_neighbours_alone(both):
    """Boxes that fall on a floor of tiles, one of them on nine; the others beside it."""
    tiles = [
        rk.Solid(rk.model.Box((0.04, 0.04, 0.02)), (0.05 * (k % 4), 0.05 * (k // 4), -0.01))
        for k in range(16)
    ]
    ground = rk.Ground(height=-1.0, shapes=tiles)
    q, v = np.tile(m.box().neutral(), (6, 1)), 2.0 * np.random.default_rng(5).normal(size=(6, 6))
    q[:, -1] = 0.15
    q[:5, 4], q[5, 4:], v[5] = 9.0, (0.075, 0.075, 0.11), 0.0
    one, other, taken = both(m.box(), q, v, ground=ground, duration=0.4)
    same(one, other)
    assert taken >= 6 and abs(one.v[-1, 5]).max() < 0.1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "ground", [{"restitution": 0.6}, {"torsional": 0.01, "rolling": 0.002}], ids=["bounces", "turns"]
)
def test_bounces_and_turning_friction_go_in_lanes(both, ground, dtype):
    robot, q, v = humanoids(9)
    q[:, 6] += 0.05 * np.arange(9)
    given = {"ground": rk.Ground(**ground), "self_collision": True, "duration": 0.24, "dtype": dtype}
    one, other, taken = both(robot, q, v, **given)
    same(one, other)
    assert taken >= 8


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["planes", "friction", "all"])
def test_landings_go_in_lanes(both, kind, dtype):
    """Each row lands at a time of its own, at 1 m/s or more: few lanes have a second solution at once."""
    robot, q, v = humanoids(9)
    q[:, 6] += 2.3e-3 * np.arange(9)
    v[:, 5] -= 2.0
    ground = rk.Ground(torsional=0.01) if kind == "all" else True
    given = {"ground": ground, "self_collision": kind != "planes", "duration": 0.06, "record_every": 1}
    one, other, taken = both(robot, q, v, dtype=dtype, **given)
    same(one, other)
    lands = [np.argmax(one.trajectory(row).contact_force[:, 2] > 0.0) for row in range(9)]
    assert taken >= 8 and min(lands) > 0 and len(set(lands)) >= 5


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_impacts_that_are_passed_on_go_in_lanes(both, dtype):
    """Two balls on each other land, in some rows with a gap between, so that lanes take different turns."""
    robot = rk.together({f"{k}": m.ball() for k in range(2)})
    q, v, row = np.zeros((9, 2, 7)), np.zeros((9, 2, 6)), np.arange(9)[:, None]
    q[..., 0], v[..., 5] = 1.0, -4.0
    q[..., 6] = 0.12 + 0.01 * row + (0.2 + 1e-3 * (row % 3)) * np.arange(2)
    pairs = rk.collision_pairs(robot).with_law(restitution=1.0, friction=0.0)
    given = {"ground": rk.Ground(restitution=1.0), "self_collision": pairs, "duration": 0.1, "dtype": dtype}
    one, other, taken = both(robot, q.reshape(9, -1), v.reshape(9, -1), **given)
    same(one, other)
    assert taken >= 8 and (one.v[-1].reshape(9, 2, 6)[..., 5] > 2.0).all()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_loops_go_in_lanes(both, dtype):
    """A linkage that floats and falls on the ground: loops and contacts in each row."""
    robot = spatial_loop(base="floating")
    q = np.tile(rk.standing_configuration(robot, height=0.02), (9, 1))
    v = np.random.default_rng(1).normal(size=(9, robot.nv))
    one, other, taken = both(robot, q, v, ground=True, duration=0.2, dtype=dtype)
    same(one, other)
    assert taken >= 8 and one.summary["loop_gap"] < 1e-5 and one.contact_force.any()
    assert np.isfinite(one.q).all()


def test_springs_and_prescribed_motions_go_in_lanes(both):
    """Hands that springs draw together, and a head that nods; each row has its own way of that."""
    robot, q, v = humanoids(6)
    hands = [link.name for link in robot.links if "hand" in link.name][:2]
    spring = rk.Spring(*hands, stiffness=200.0, damping=2.0)
    joint = next(joint for joint in robot.joints if "shoulder" in joint.name).name
    t = 1e-3 * np.arange(201)[:, None]
    motion = rk.PrescribedMotion(joint, 0.1 * np.arange(6) * np.sin(9.0 * t))
    given = {"springs": [spring], "motions": [motion], "ground": True, "duration": 0.2}
    one, other, taken = both(robot, q, v, **given)
    same(one, other)
    assert taken >= 4 and np.ptp(one.q[-1], axis=0).max() > 0.1


def test_few_steps_are_no_reason_to_compile(monkeypatch):
    monkeypatch.setattr(LoopKernel, "at_hand", lambda *_: False)
    monkeypatch.setattr(LoopKernel, "improve", may_go_in_lanes)  # which would be an error
    robot, q, v = humanoids(4)
    monkeypatch.setattr(contact_rows, "Lanes", may_go_in_lanes)  # which would be an error
    rk.rollout(robot, q, v, ground=True, self_collision=False, duration=0.01, **GIVEN)


def test_rows_go_over_to_lanes_on_the_way_with_the_same_bits(monkeypatch):
    """Once they have run as long as compiling takes, in the middle of a rollout."""
    robot, q, v = humanoids(6)
    given = GIVEN | {"ground": True, "self_collision": False, "duration": 0.3}
    monkeypatch.setattr(LoopKernel, "at_hand", lambda kernel, *_: kernel in come)
    monkeypatch.setattr(LoopKernel, "seconds_to_compile", lambda *_: math.inf)
    come = set()
    one = rk.rollout(robot, q, v, **given)

    def improve(kernel, *_):
        come.add(kernel)
        kernel.version += 1

    taken, own = [], Lanes.run
    monkeypatch.setattr(LoopKernel, "improve", improve)
    monkeypatch.setattr(LoopKernel, "seconds_to_compile", lambda *_: 0.0)
    monkeypatch.setattr(
        Lanes, "run", lambda self, a, b, *rest: (taken.append((b - a) * rest[1]), own(self, a, b, *rest))
    )
    other = rk.rollout(robot, q, v, **given)
    same(one, other)
    assert come and 0 < sum(taken) < 6 * 300
