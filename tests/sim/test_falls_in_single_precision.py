"""Falls whose steps are computed in float32, by the laws that hold in double precision."""

import math

import numpy as np
import pytest
import sim_models as m
from test_loops_simulated import spatial_loop

import robokit as rk

pytestmark = pytest.mark.slow

EPS = float(np.finfo(np.float32).eps)
G1 = pytest.param("example-robot-data:g1", marks=pytest.mark.parity)
TALOS = pytest.param("example-robot-data:talos", marks=pytest.mark.parity)
ICUB = pytest.param("example-robot-data:icub", marks=pytest.mark.parity)


def falls(name, dtype, rows=6, duration=1.2):
    """Robots that lean, and joints that move, 5 cm above the ground."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    q = [rk.standing_configuration(robot, height=0.05, tilt=0.2, seed=k) for k in range(rows)]
    v = 0.5 * np.random.default_rng(0).normal(size=(rows, robot.nv))
    options = {"duration": duration, "dt": 1e-3, "ground": True, "self_collision": True, "record_every": 20}
    return robot, rk.rollout(robot, q, v, dtype=dtype, **options)


def energies(robot, run):
    q, v = (x.astype(float).reshape(-1, x.shape[-1]) for x in (run.q, run.v))
    return (rk.kinetic_energy(robot, q, v) + rk.potential_energy(robot, q)).reshape(run.q.shape[:2])


@pytest.mark.parametrize("name", ["humanoid", "quadruped", G1, TALOS, ICUB])
def test_falls_keep_the_laws(name):
    robot, run = falls(name, "float32")
    _, double = falls(name, "float64")
    assert run.q.dtype == np.float32 and not len(run.failed)
    assert run.summary["steps_not_settled"] <= double.summary["steps_not_settled"] + 2  # of 7,200
    deepest = [x.summary["deepest_penetration"] for x in (run, double)]
    assert 0.0 < deepest[0] < 1.5 * deepest[1]
    total = energies(robot, run)
    assert (total - total[0]).max() < 100 * EPS * np.abs(total[0]).max()
    lost = (total[0] - total[-1]) / (energies(robot, double)[0] - energies(robot, double)[-1])
    assert np.median(lost) == pytest.approx(1.0, abs=0.03)
    # Until the first of them touches, all go the same way as in double precision.
    free = np.argmax(np.abs(run.contact_force).max(axis=(1, 2)) > 0.0)
    assert np.abs(run.q - double.q)[:free].max() < 1e-3 and free >= 3


def test_momentum_is_that_of_the_forces():
    robot, run = falls("humanoid", "float32")
    for row in range(3):
        summary = run.trajectory(row).summary
        assert summary["momentum_balance_linear"] < 1e-4 * robot.total_mass
        assert summary["momentum_balance_angular"] < 1e-4 * robot.total_mass


def test_what_has_come_to_rest_stays_there():
    """The rounding of places shakes forces by 1e-4: what friction holds at its bound gives way to that."""
    _, run = falls("quadruped", "float32", rows=10, duration=4.0)
    moved = np.sort(np.abs(run.q[-1] - run.q[-51]).max(axis=1))  # in the last second
    assert moved[-2] < 1e-4 and moved[-1] < 5e-3
    assert np.median(np.abs(run.v[-1]).max(axis=1)) < 1e-4


def test_a_box_holds_below_the_cone_and_slides_above():
    """Of friction 0.5, on slopes of 0.95 and 1.05 of that, for two seconds."""
    box, ends = m.box(), []
    for share in (0.95, 1.05):
        robot = box.with_gravity(m.tilted(math.atan(0.5 * share)))
        run = rk.rollout(
            robot,
            rk.standing_configuration(robot),
            duration=2.0,
            ground=rk.Ground(friction=0.5),
            dtype="float32",
        )
        ends.append(np.abs(run.q[-1, 0, 4:6]).max())
    slope = math.atan(0.5 * 1.05)
    slid = 0.5 * m.G * (math.sin(slope) - 0.5 * math.cos(slope)) * 2.0**2
    assert ends[0] < 1e-4 and ends[1] == pytest.approx(slid, rel=0.02)


def test_a_tower_of_ten_boxes_stands():
    robot = rk.together({f"box{k}": m.box() for k in range(10)})
    q = robot.neutral()
    q[6::7] = 0.2 * (np.arange(10) + 0.5)
    run = rk.rollout(robot, q, duration=1.0, dt=1e-3, ground=True, dtype="float32")
    assert run.summary["steps_not_settled"] == 0
    assert np.abs(run.q[-1].reshape(-1, 7)[:, 4:6]).max() < 1e-4 and np.abs(run.v[-1]).max() < 1e-3
    assert run.contact_force[-1, 0, 2] == pytest.approx(robot.total_mass * m.G, rel=1e-3)


def test_loops_stay_closed_and_momentum_stays():
    robot = spatial_loop(base="floating").with_gravity((0, 0, 0))
    v = np.random.default_rng(2).standard_normal(robot.nv)
    run = rk.rollout(robot, None, v[None], duration=1.0, dt=1e-3, integrator="contact", dtype="float32")
    double = rk.rollout(robot, None, v[None], duration=1.0, dt=1e-3, integrator="contact")
    assert run.summary["loop_gap"] < 30 * EPS and run.summary["steps_not_settled"] == 0
    assert np.abs(run.q - double.q).max() < 1e-3
