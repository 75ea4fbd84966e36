"""What parameters do to a row: its start, masses, ground, pushes and servos."""

from __future__ import annotations

import numpy as np
import pytest
import sweep_robots
from sweep_robots import DURATION

import robokit as rk
from robokit.sim.starts import ground_gaps
from robokit.sweeps.distributions import Choice, Grid, Normal, Uniform
from robokit.sweeps.recipe import make_recipe, prepare_rows


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
