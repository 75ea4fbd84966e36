"""Bodies of a robot that touch: momentum, energy, restitution, rest."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.collision.fields import CANDIDATES
from robokit.model import Capsule, ModelBuilder, Placement, Shape, Sphere
from robokit.sim.steppers import ContactState, step_numbers

MASSES = (1.0, 2.0)


def _rods() -> rk.Robot:
    """Three floating rods on ball joints: they tumble and hit each other."""
    builder = ModelBuilder("rods")
    rod = (Shape(Capsule(0.03, 0.4), Placement(position=np.array([0, 0, -0.3]))),)
    builder.link("hub", mass=1.0, inertia=np.eye(3) * 0.01, collisions=(Shape(Sphere(0.05)),))
    for k in range(3):
        inertia = np.diag([0.01, 0.011, 0.001])
        builder.link(f"rod{k}", mass=0.5 + 0.3 * k, com=(0, 0, -0.3), inertia=inertia, collisions=rod)
        place = Placement(position=0.1 * np.array([np.cos(2.1 * k), np.sin(2.1 * k), 0.0]))
        builder.joint(f"ball{k}", "spherical", "hub", f"rod{k}", place)
    return builder.build("floating")


def _nearest_rods(robot, q) -> float:
    """The least distance of two rods in any of the states, by points 2 mm apart on their axes [m]."""
    poses = rk.forward_kinematics(robot, q)
    z = np.linspace(-0.5, -0.1, 201)
    axes = [R[..., 2][:, None] * z[:, None] + x[:, None] for R, x in (poses[f"rod{k}"] for k in range(3))]
    away = (
        np.linalg.norm(axes[i][:, :, None] - axes[k][:, None], axis=-1).min()
        for i, k in ((0, 1), (0, 2), (1, 2))
    )
    return min(away) - 2 * 0.03


@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("dt", [2.5e-4, 1e-3, 4e-3])
def test_balls_driven_at_each_other_bounce_by_their_restitution(restitution, dt):
    robot = m.sliders()
    pairs = rk.collision_pairs(robot).with_law(restitution=restitution)
    v0 = np.array([1.0, -0.5])
    run = rk.simulate(robot, v0=v0, duration=0.4, dt=dt, self_collision=pairs, gravity=(0, 0, 0))
    v = run.v[-1]
    assert v @ MASSES == pytest.approx(v0 @ MASSES, abs=1e-13)
    assert (v[1] - v[0]) / 1.5 == pytest.approx(restitution, abs=0.005)
    gap = 0.3 + run.q[:, 1] - run.q[:, 0]
    assert -1.1e-5 < gap.min() < 1.5 * dt
    lost = 0.5 * np.array(MASSES) @ (v0**2 - v**2)
    assert run.summary["dissipated_by_collision"] == pytest.approx(lost, rel=1e-12)
    assert run.summary["self_collision_pairs"] == 1
    assert any("1 pair that can collide" in line for line in run.report())


def test_rods_that_tumble_keep_their_momentum_and_gain_no_energy():
    robot = _rods()
    pairs = rk.collision_pairs(robot)
    hits = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        v0 = np.concatenate([rng.normal(size=6), 6.0 * rng.normal(size=9)])
        run = rk.simulate(
            robot, v0=v0, duration=1.0, gravity=(0, 0, 0), self_collision=pairs, integrator="contact"
        )
        size = np.abs(run.momentum[0]).max()
        assert np.abs(run.momentum - run.momentum[0]).max() < 1e-11 * size
        kinetic = run.energy.kinetic
        assert np.diff(kinetic).max() < 1e-3 * kinetic[0]
        hits += run.summary["dissipated_by_collision"] > 0.01 * kinetic[0]
        assert _nearest_rods(robot, run.q[::5]) > -2e-3
    assert hits >= 1, "they do not meet: the test tests nothing"


def test_a_ball_that_lies_on_another_sinks_in_until_the_spring_carries_it_and_stays_there():
    builder = ModelBuilder("pile").link("rail")
    for k, mass in enumerate(MASSES):
        builder.link(f"ball{k}", mass, inertia=np.eye(3) * 0.01, collisions=(m.BALL,))
        place = Placement(position=np.array([0, 0, 0.21 * k]))
        builder.joint(f"slide{k}", "prismatic", "rail", f"ball{k}", place, (0, 0, 1), lower=-k, upper=1.0)
    robot = builder.build("fixed")
    run = rk.simulate(robot, duration=1.5, dt=1e-3, ground=rk.Ground(height=-5.0), self_collision=True)
    gap = 0.01 + run.q[:, 1] - run.q[:, 0]
    # One point alone would carry the weight of the robot at a depth of 1 mm. It trembles by a millionth.
    assert gap[-1] == pytest.approx(-1e-3 * MASSES[1] / sum(MASSES), rel=3e-5)
    assert np.abs(run.v[-1]).max() < 1e-6


@pytest.mark.slow
def test_a_heap_of_links_comes_to_rest():
    """How long a heap creeps is chaotic. After 6 s all are slow and most are at rest; two suffice."""
    robot, at_rest, by_collision, farthest = m.humanoid(), 0, 0.0, []
    weight = m.G * robot.total_mass
    lower, upper = np.array([(j.lower, j.upper) for j in robot.joints[1:]]).T
    for seed in range(8):
        q0 = rk.standing_configuration(robot, 0.02, np.radians(4.0), seed)
        run = rk.simulate(robot, q0, duration=7.0, dt=1e-3, ground=True, self_collision=True)
        by_collision += run.summary["dissipated_by_collision"]
        late = run.t > 6.0
        # Of some hundred joules, and of 400 N; in the worst of sixty falls 0.01 J and 3 N.
        assert run.energy.kinetic[late].max() < 0.1
        assert run.contact_force[-1] == pytest.approx([0.0, 0.0, weight], abs=30.0)
        over = np.maximum(run.q[:, 7:] - upper, lower - run.q[:, 7:])
        farthest.append(over.max())
        assert over[-1].max() < 0.05
        if run.energy.kinetic[late].max() < 1e-9:
            at_rest += 1
            assert np.abs(run.q[late] - run.q[-1]).max() < 1e-3
            assert run.contact_force[-1] == pytest.approx([0.0, 0.0, weight], abs=0.1)
    assert at_rest >= 2
    assert by_collision > 50.0
    assert np.median(farthest) < 0.1, "joints go far through their stops"


@pytest.mark.slow
def test_no_limb_creeps_for_ever():
    """What other bodies lift is left to the ground: in each of these falls a limb crept, by 7 to 40 um/s."""
    robot, moved = m.humanoid(), []
    for seed in (0, 35, 38):
        q0 = rk.standing_configuration(robot, 0.02, np.radians(4.0), seed)
        run = rk.simulate(robot, q0, duration=25.0, dt=1e-3, ground=True, record_every=1000)
        places = rk.forward_kinematics(robot, run.q[20:]).position
        moved.append(np.linalg.norm(places - places[:1], axis=-1).max())
    assert np.sort(moved)[-2] < 1e-6, f"{moved} m; in one of them a limb may still fall over"


@pytest.mark.slow
def test_feet_and_hands_on_each_other_do_not_tremble_for_ever():
    """In each of these falls points of two boxes jumped to and fro, at 0.05 to 1 rad/s, and gave energy."""
    robot = m.humanoid()
    q0 = [rk.standing_configuration(robot, 0.02, np.radians(4.0), seed) for seed in (42, 54, 73, 118)]
    run = rk.rollout(robot, q0, duration=16.0, dt=1e-3, ground=True, record_every=100)
    late = np.abs(run.v[run.t > 14.0]).max(axis=(0, 2))
    assert np.sort(late)[-2] < 1e-6, f"{late}; in one of them a limb may still fall over"


def test_bodies_touch_by_default_where_there_is_a_ground():
    robot = m.quadruped()
    q0, pairs = rk.standing_configuration(robot), len(rk.collision_pairs(robot))
    runs = {
        given: rk.simulate(robot, q0, duration=0.002, ground=True, self_collision=given)
        for given in (None, True, False)
    }
    assert {given: run.summary["self_collision_pairs"] for given, run in runs.items()} == {
        None: pairs,
        True: pairs,
        False: 0,
    }
    assert np.array_equal(runs[None].q, runs[True].q)
    many = rk.rollout(robot, q0, duration=0.002, ground=True)
    assert many.summary["self_collision_pairs"] == pairs
    assert any(f"{pairs} pairs that can collide" in line for line in runs[None].report())
    assert any("self-collision is off" in line for line in runs[False].report())


def test_free_motion_keeps_its_integrator_by_default(monkeypatch):
    monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # two steps take less time than to compile them
    run = rk.simulate(m.quadruped(), duration=0.002)
    assert run.summary["self_collision_pairs"] == 0
    assert run.summary["integrator"] == "rkmk4"


@pytest.mark.parametrize("given", ["yes", 1, {"head": "hand"}])
def test_self_collision_is_refused_in_words(given):
    with pytest.raises(rk.ShapeError, match="self_collision: expected True, False, None or"):
        rk.simulate(m.sliders(), self_collision=given)


def test_pairs_of_another_robot_are_refused():
    with pytest.raises(rk.ShapeError, match="not of 'sliders'"):
        rk.simulate(m.sliders(), self_collision=rk.collision_pairs(_rods()))


@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-3), ("float32", 2e-3)])
def test_balls_that_overlap_in_the_neutral_configuration_meet_where_they_are_added(dtype, near):
    """Two of three pairs are apart: what is nowhere near must be no number divided by nothing either."""
    builder = ModelBuilder("beads").link("wire")
    for k in range(3):
        builder.link(f"bead{k}", 1.0, inertia=np.eye(3) * 0.01, collisions=(Shape(Sphere(0.1)),))
        builder.joint(f"slide{k}", "prismatic", "wire", f"bead{k}")
    robot = builder.build(gravity=(0, 0, 0))
    pairs = rk.collision_pairs(robot)
    assert not len(pairs) and len(pairs.left_out["touching in the neutral pose"]) == 3
    pairs = pairs.add("bead0", "bead1").add("bead1", "bead2").add("bead0", "bead2")
    pairs = pairs.with_law(restitution=0.5)
    run = rk.rollout(robot, [[0, 0.5, 1.5]], [[1.0, 0, 0]], duration=0.6, self_collision=pairs, dtype=dtype)
    assert not len(run.failed)
    assert run.v[-1, 0] == pytest.approx([0.25, 0.75, 0.0], abs=near)


def test_rollouts_move_as_single_runs_do():
    robot = _rods()
    rng = np.random.default_rng(0)
    v0 = np.concatenate([rng.normal(size=(5, 6)), 6.0 * rng.normal(size=(5, 9))], axis=1)
    options = {"duration": 0.3, "dt": 1e-3, "self_collision": True, "gravity": (0, 0, 0)}
    many = rk.rollout(robot, v0=v0, **options)
    one = rk.simulate(robot, v0=v0[3], **options)
    assert np.abs(many.q[-1, 3] - one.q[-1]).max() < 1e-6
    assert many.summary["self_collision_pairs"] == len(rk.collision_pairs(robot))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_what_is_known_of_gaps_changes_no_bit(name: str, dtype: str) -> None:
    """A fall beside one that forgets before each step which pairs cannot touch; both jump now and then."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    start = rk.standing_configuration(robot, height=0.02)
    program = rk.Simulation(robot, start, ground=True, self_collision=True, dt=2e-3)._program
    one, other = (ContactState(robot, 2e-3, step_numbers(program, 2e-3), dtype=dtype) for _ in range(2))
    rng, known = np.random.default_rng(3), 0
    for step in range(240):
        if step % 60 == 0:
            q, v = robot.integrate(start, 0.1 * rng.normal(size=robot.nv)), 2.0 * rng.normal(size=robot.nv)
            for each in (one, other):
                each.arrays["q"][:], each.arrays["v"][:] = q, v
        for array in CANDIDATES:
            other.arrays[array.name][...] = 0
        assert one.take(1) == other.take(1) == 1
        known += int((one.arrays["least_gap"] > 0.0).sum())
        for x in "qv":
            np.testing.assert_array_equal(one.arrays[x], other.arrays[x])
    assert known > 240
