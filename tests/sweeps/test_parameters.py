"""The parameters of rows: they follow their distributions and do not depend on the chunk."""

from __future__ import annotations

import numpy as np
import pytest
import sweep_robots
from sweep_distributions import ALL
from sweep_robots import DURATION, WAVE, recipe_of

import robokit as rk
from robokit.sim.starts import ground_gaps
from robokit.sweeps.distributions import Choice, Grid, Normal, Uniform
from robokit.sweeps.parameters import draw_parameters, grid_size
from robokit.sweeps.recipe import Recipe, make_recipe, prepare_rows

MANY = 20_000


def test_draws_follow_their_distributions():
    from scipy import stats  # takes half a second, in each process that collects tests

    rows = draw_parameters({str(k): x for k, x in enumerate(ALL)}, 3, 0, MANY)
    truncated = stats.truncnorm(-0.5, 2.0)
    for k, law in ((0, stats.uniform(-1.0, 4.0)), (1, stats.norm(2.0, 0.5)), (2, truncated)):
        assert stats.kstest(rows[str(k)], law.cdf).pvalue > 1e-3
    assert (rows["3"] == 1.0).all()
    assert set(rows["4"]) == {1.0, 5.0} and abs((rows["4"] == 5.0).mean() - 0.75) < 0.02
    assert abs((rows["5"] == "a").mean() - 0.5) < 0.02
    assert abs(np.corrcoef(rows["0"], rows["1"])[0, 1]) < 0.03
    assert rows["2"].min() >= -0.5 and rows["2"].max() <= 2.0


def test_a_row_is_the_same_in_every_chunk_and_beside_other_parameters():
    parameters = {str(k): x for k, x in enumerate(ALL)}
    whole = draw_parameters(parameters, 7, 0, 300)
    for first, last in ((0, 1), (17, 18), (100, 257), (299, 300)):
        part = draw_parameters(parameters, 7, first, last)
        assert all((part[name] == whole[name][first:last]).all() for name in parameters)
    alone = draw_parameters({"1": ALL[1]}, 7, 0, 300)
    assert (alone["1"] == whole["1"]).all()
    assert not (draw_parameters({"1": ALL[1]}, 8, 0, 300)["1"] == whole["1"]).any()


def test_grids_make_all_combinations():
    parameters = {"tilt": Grid(0.0, 1.0, 3), "robot": Grid(["a", "b"]), "speed": Grid([5.0, 6.0])}
    assert grid_size(parameters) == 12
    rows = draw_parameters(parameters, 0, 0, 24)
    first = list(zip(*(rows[name][:12].tolist() for name in parameters), strict=True))
    assert len(set(first)) == 12
    assert rows["robot"][:4].tolist() == ["a", "b", "a", "b"]
    assert rows["tilt"][:12].tolist() == [0.0] * 4 + [0.5] * 4 + [1.0] * 4
    assert (rows["tilt"][12:] == rows["tilt"][:12]).all()


# ---- What parameters do to a row: its start, masses, ground, pushes and servos -------------------


def _runs(recipe, first=0, last=16):
    name = next(iter(recipe.robots))
    values = recipe.rows(first, last)
    return prepare_rows(recipe, name, np.arange(first, last, dtype=np.uint64), values), values


def test_starts_hang_over_the_ground_as_asked(recipe, robot):
    runs, values = _runs(recipe)
    gaps = ground_gaps(robot, runs.q, rk.Ground())
    assert np.allclose(gaps, values["height"], atol=1e-12)
    R = rk.forward_kinematics(robot, runs.q)["trunk"][0]
    assert np.allclose(np.arccos(R[:, 2, 2]), values["tilt"], atol=1e-9)
    # The robot's z axis leans towards the direction, and the base moves there.
    expected = np.stack([np.cos(values["direction"]), np.sin(values["direction"])], axis=1)
    assert np.allclose(R[:, :2, 2], np.sin(values["tilt"])[:, None] * expected, atol=1e-12)
    linear = np.einsum("bij,bj->bi", R, runs.v[:, 3:6])
    assert np.allclose(linear[:, :2], values["speed"][:, None] * expected, atol=1e-12)
    angular = np.einsum("bij,bj->bi", R, runs.v[:, :3])
    assert np.allclose(angular[:, 2], values["spin"]) and np.allclose(angular[:, :2], 0.0, atol=1e-12)
    assert np.allclose(runs.v[:, 6], values["joint_velocity:hip"])
    assert len(set(runs.q[:, 7])) == 16 and np.abs(runs.q[:, 7]).max() <= 1.0


def test_masses_are_those_of_a_robot_built_so(recipe, robot):
    runs, values = _runs(recipe, 0, 3)
    for k in range(3):
        s, p, d = (values[name][k] for name in ("mass", "mass:pack", "com_x:trunk"))
        trunk, pack, leg = robot.links
        expected = robot.with_inertias(
            {
                "trunk": (trunk.mass * s, None, trunk.inertia * s),
                "pack": (pack.mass * s * p, None, pack.inertia * s * p),
                "leg": (leg.mass * s, None, leg.inertia * s),
            }
        ).inertial_parameters.copy()
        # The shift is that of the whole body: trunk and pack together.
        m, h, c = expected[1, 0], expected[1, 1:4].copy(), expected[1, 1:4] / expected[1, 0]
        moved = c + np.array([d, 0.0, 0.0])
        h = m * moved
        steiner = m * ((moved @ moved - c @ c) * np.eye(3) - np.outer(moved, moved) + np.outer(c, c))
        expected[1, 1:4] = h
        expected[1, 4:] += steiner[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
        assert np.allclose(runs.robot.inertial_parameters[k], expected, rtol=1e-12, atol=1e-15)
    assert np.allclose(runs.ground.friction, values["friction"])


@pytest.mark.slow
def test_a_push_changes_the_momentum_by_its_size(robot):
    parameters = {
        "push": Uniform(0.5, 2.0),
        "push_direction": Uniform(-3.0, 3.0),
        "push_time": Uniform(0.0, 0.0199),
        "push_link": Choice(["trunk", "leg"]),
    }
    recipe = make_recipe(robot, parameters=parameters, ground=None, count=6, duration=DURATION)
    _, values = _runs(recipe, 0, 6)
    for k in range(6):
        motion = recipe.trajectory(k, record_every=1)
        change = motion.momentum[-1, 3:5] - motion.momentum[0, 3:5]
        size, where = values["push"][k], values["push_direction"][k]
        assert np.allclose(change, [size * np.cos(where), size * np.sin(where)], atol=1e-9)
        before = motion.t <= values["push_time"][k] - 1.5 * recipe.dt["hopper"]
        assert np.abs(motion.momentum[before, 3:5]).max(initial=0.0) < 1e-9


def test_a_row_that_makes_no_sense_is_a_row_with_a_reason(robot):
    recipe = make_recipe(robot, parameters={"mass": Normal(1.0, 1.0)}, count=30, duration=0.004)
    table = recipe.compute(0, 30)
    bad = np.array(table["mass"]) <= 0.0
    assert 0 < bad.sum() < 15
    reasons = np.array([x is not None for x in table["failure"].to_pylist()])
    assert (reasons == bad).all()
    assert "mass = -" in next(x for x in table["failure"].to_pylist() if x)
    assert (np.array(table["final_hash"])[bad] == 0).all()
    with pytest.raises(rk.SimulationError, match="mass"):
        recipe.trajectory(int(bad.argmax()))


@pytest.mark.slow
def test_ground_and_joints_of_a_row_are_its_own(robot):
    parameters = {
        "restitution": Uniform(0.0, 0.8),
        "friction:leg": Uniform(0.1, 0.9),
        "ground_tilt": Uniform(0.0, 0.5),
        "ground_tilt_direction": Uniform(-3.0, 3.0),
        "damping": Uniform(0.0, 20.0),
        "gravity": Choice([9.81, 1.62]),
    }
    starts = {"height": Uniform(0.0, 0.01), "joint_velocity:hip": 2.0}
    recipe = make_recipe(
        robot, starts=starts, parameters=parameters, count=6, duration=0.06, measures=["energy"]
    )
    table, rows = recipe.compute(0, 6), recipe.rows(0, 6)
    assert table["failure"].null_count == 6 and len(set(rows["gravity"])) == 2
    for k in range(3):
        tilt, where = rows["ground_tilt"][k], rows["ground_tilt_direction"][k]
        normal = [np.sin(tilt) * np.cos(where), np.sin(tilt) * np.sin(where), np.cos(tilt)]
        ground = rk.Ground(
            normal=normal,
            restitution=rows["restitution"][k],
            friction={"leg": rows["friction:leg"][k]},
        )
        again = recipe.trajectory(k)
        assert again.ground is not None and np.allclose(again.ground.up, normal)
        text = sweep_robots.HOPPER.format(name="hopper")
        own = rk.loads_urdf(
            text.replace('damping="0.2"', f'damping="{float(0.2 * rows["damping"][k])!r}"'), base="floating"
        )
        one = rk.simulate(
            own, again.q[0], again.v[0], duration=0.06, dt=recipe.dt["hopper"], ground=ground,
            gravity=[0.0, 0.0, -rows["gravity"][k]],
        )  # fmt: skip
        assert np.allclose(one.q, again.q, atol=1e-9) and np.allclose(one.v, again.v, atol=1e-6)
        gap = ground_gaps(robot, again.q[:1], ground)[0]
        assert gap == pytest.approx(rows["height"][k], abs=1e-9)
    for bad, words in (
        ({"gravity": Uniform(1.0, 9.0)}, "gravity"),
        ({"gravity": Grid(1.0, 9.0, 9)}, "8"),
        ({"ground_tilt_direction": 1.0}, "no ground_tilt"),
        ({"restitution": Uniform(0.0, 1.5)}, "restitution"),
    ):
        with pytest.raises(rk.ShapeError, match=words):
            make_recipe(robot, parameters=bad, count=2)


@pytest.mark.slow
def test_a_row_that_cannot_start_is_a_row_with_a_reason():
    robot = sweep_robots.hopper()
    given = {"count": 12, "duration": 0.002, "dt": 1e-3, "measures": ["energy"]}
    deep = make_recipe(robot, starts={"height": Uniform(-0.4, 0.1)}, **given)
    why = deep.compute(0, 12)["failure"].to_pylist()
    heights = deep.rows(0, 12)["height"]
    assert [x is not None for x in why] == (heights < -0.1).tolist() and None in why
    assert any("below the ground" in x for x in why if x)
    bar = rk.load_urdf(rk.find_robot("four_bar"))
    given |= {"ground": None, "count": 40}
    loops = make_recipe(bar, starts={"joint_noise": 5.0}, parameters={"mass": Uniform(0.5, 2.0)}, **given)
    table = loops.compute(0, 40)
    failed = [k for k, x in enumerate(table["failure"].to_pylist()) if x]
    for k in (*failed[:2], 7, 20):  # the loops of a row close as they do alone
        alone = loops.compute(k, k + 1)
        assert alone["final_hash"][0] == table["final_hash"][k] and alone["failure"][0] == table["failure"][k]
    spin = make_recipe(bar, starts={f"joint:{bar.joint_names[0]}": Choice([0.1, 1e12])}, **given)
    why = spin.compute(0, 40)["failure"].to_pylist()
    assert None in why and "beyond" in next(x for x in why if x)


# ---- Sweeps of driven robots: parameters change actuators from row to row ------------------------


@pytest.fixture(scope="module")
def driven():
    return sweep_robots.hopper(base="fixed")


def rows_of(recipe, first=0, last=5):
    values = recipe.rows(first, last)
    name = next(iter(recipe.robots))
    return prepare_rows(recipe, name, np.arange(first, last, dtype=np.uint64), values), values


def test_rows_have_their_own_servos(driven):
    parameters = {
        "kp": Uniform(0.5, 2.0),
        "kd:hip": Uniform(0.5, 2.0),
        "effort": Uniform(0.1, 1.0),
        "target_noise": 0.1,
        "target:hip": Uniform(-0.5, 0.5),
    }
    recipe = recipe_of(driven, rk.PD(kp=200.0, kd={"hip": 3.0}, armature=0.02), parameters)
    assert Recipe.from_json(recipe.to_json()).hash == recipe.hash
    runs, values = rows_of(recipe)
    (servo,) = runs.actuators
    np.testing.assert_array_equal(servo.kp, 200.0 * values["kp"][:, None])
    np.testing.assert_array_equal(servo.kd, 3.0 * values["kd:hip"][:, None])
    np.testing.assert_array_equal(servo.effort, 50.0 * values["effort"][:, None])
    off = servo.target[0, :, 0] - values["target:hip"]
    assert 0.01 < np.abs(off).mean() < 0.4 and len(set(off)) == 5
    # The same as by hand, the rotor too.
    table = recipe.compute(0, 5)
    start = driven.neutral()
    for k in range(5):
        by_hand = rk.PD(
            kp=servo.kp[k], kd=servo.kd[k], effort=servo.effort[k], target=servo.target[0, k], armature=0.02
        )
        run = rk.simulate(driven, start, duration=0.02, dt=1e-3, actuators=by_hand, reproducible=True)
        found = recipe.trajectory(k)
        np.testing.assert_array_equal(found.q[-1], run.q[-1])
        assert recipe.compute(k, k + 1)["final_hash"][0] == table["final_hash"][k]
    assert len(set(table["final_hash"].to_pylist())) == 5


def test_noise_moves_targets_that_change_with_time(driven):
    recipe = recipe_of(driven, rk.PD(kp=100.0, kd=1.0, target=WAVE), {"target_noise": 0.2})
    runs, _ = rows_of(recipe)
    off = runs.actuators[0].feedforward[0, :, 0] / 100.0
    moved = rk.Keyframes(WAVE.time, WAVE.joints, WAVE.values + off[3])
    run = rk.simulate(
        driven, duration=0.02, dt=1e-3, actuators=rk.PD(kp=100.0, kd=1.0, target=moved), reproducible=True
    )
    np.testing.assert_allclose(recipe.trajectory(3).q[-1], run.q[-1], atol=1e-12)
