"""The recipe: JSON both ways, rows that do not depend on their chunk, and what parameters do to a row."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sweep_robots

import robokit as rk
from robokit.collision.scene import robot_shapes
from robokit.serialize import from_json, to_json
from robokit.sim.starts.ground_gaps import ground_gaps
from robokit.sweeps.distributions import Choice, Grid, Normal, Sobol, Uniform
from robokit.sweeps.make_recipe import make_recipe
from robokit.sweeps.recipe import Recipe, prepare_rows

STARTS = {
    "tilt": Uniform(0.0, 0.8),
    "direction": Uniform(-3.0, 3.0),
    "height": Uniform(0.0, 0.1),
    "speed": Uniform(0.0, 1.0),
    "spin": Normal(0.0, 1.0),
    "joint_noise": 0.2,
    "joint_velocity:hip": Uniform(-1.0, 1.0),
}
OTHERS = {
    "mass": Uniform(0.8, 1.2),
    "mass:pack": Sobol(0.5, 2.0),
    "com_x:trunk": Uniform(-0.05, 0.05),
    "friction": Uniform(0.2, 1.0),
    "push": Uniform(0.0, 2.0),
    "push_time": Uniform(0.0, 0.015),
    "push_link": Choice(["trunk", "leg"]),
}
DURATION = 0.02


@pytest.fixture(scope="module")
def robot():
    return sweep_robots.hopper()


@pytest.fixture(scope="module")
def recipe(robot):
    return make_recipe(
        robot, starts=STARTS, parameters=OTHERS, count=40, duration=DURATION, seed=5, measures=["peak_force"]
    )


def _runs(recipe, first=0, last=16):
    name = next(iter(recipe.robots))
    values = recipe.rows(first, last)
    return prepare_rows(recipe, name, np.arange(first, last, dtype=np.uint64), values), values


def test_a_recipe_is_its_text(recipe):
    text = recipe.to_json()
    again = Recipe.from_json(text)
    assert again.to_json() == text and again.hash == recipe.hash
    robot, made = recipe.robots["hopper"].robot, again.robots["hopper"].robot
    assert made.fingerprint == robot.fingerprint == sweep_robots.hopper().fingerprint
    assert to_json(again.robots["hopper"].shapes) == to_json(robot_shapes(robot))
    other = make_recipe(sweep_robots.hopper(), starts=STARTS, parameters=OTHERS, count=40, duration=0.03)
    assert other.hash != recipe.hash


def test_numbers_of_another_machine_come_back_to_the_bit(recipe):
    given = json.loads(recipe.to_json())
    again = Recipe.from_json(json.dumps(given))
    numbers = again.robots["hopper"].numbers
    for x in numbers.values():
        x += np.abs(x) * 2.0**-52  # as if its sines were others in their last bits
    robot = again.robots["hopper"].robot
    assert (robot.inertial_parameters == numbers["parameters"]).all()
    assert robot.tree.XT[2].r.x == numbers["joints"][1][9]
    assert (robot.links[1].placement.rotation.ravel() == numbers["links"][1][:9]).all()


def test_a_row_has_the_same_bits_in_every_chunk(recipe):
    whole = recipe.compute(0, 40)
    again = Recipe.from_json(recipe.to_json())
    for first, last in ((7, 12), (31, 32)):
        part, same = again.compute(first, last), whole.slice(first, last - first)
        assert part.column_names == whole.column_names
        assert repr(part.to_pylist()) == repr(same.to_pylist())  # every digit, and NaN is like NaN
    assert whole["failure"].null_count == 40
    assert len(set(whole["final_hash"].to_pylist())) == 40


def test_a_row_made_again_ends_with_the_same_bits(recipe):
    from robokit.sweeps.recipe import state_hash

    table = recipe.compute(20, 23)
    for row in (20, 22):
        motion = recipe.trajectory(row)
        assert int(state_hash(motion.q[-1], motion.v[-1])) == table["final_hash"][row - 20].as_py()
        assert motion.t[-1] == pytest.approx(DURATION)
    with pytest.raises(rk.ShapeError, match="row"):
        recipe.trajectory(40)


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


def test_several_robots_and_starts_take_turns():
    robots = {"one": sweep_robots.hopper("a"), "two": sweep_robots.hopper("b")}
    q = np.tile(robots["one"].neutral(), (3, 1))
    q[:, 6], q[:, 7] = 1.0, [0.1, 0.2, 0.3]
    recipe = make_recipe(robots, starts={"q": q}, count=12, duration=0.002)
    rows = recipe.rows(0, 12)
    assert rows["robot"].tolist() == ["one", "two"] * 6
    assert rows["start"].tolist() == [0, 0, 1, 1, 2, 2] * 2
    one, same, other = (_start(recipe, row) for row in (0, 1, 2))
    assert (one == same).all() and not (one == other).all()


def _start(recipe, row):
    values = recipe.rows(row, row + 1)
    return prepare_rows(recipe, values["robot"][0], np.array([row], np.uint64), values).q


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ({"parameters": {"weight": 1.0}}, rk.UnknownName, "weight"),
        ({"parameters": {"mass:trnk": 1.0}}, rk.UnknownName, "trunk"),
        ({"parameters": {"joint:strap": 1.0}}, rk.ShapeError, "one degree of freedom"),
        ({"parameters": {"joint": 1.0}}, rk.ShapeError, "joint:NAME"),
        ({"parameters": {"tilt:leg": 1.0}}, rk.ShapeError, "single link"),
        ({"parameters": {"mass": Uniform(0.0, 1.0)}}, rk.ShapeError, "above 0"),
        ({"parameters": {"friction": -1.0}}, rk.ShapeError, "friction"),
        ({"parameters": {"friction": 1.0}, "ground": None}, rk.ShapeError, "no ground"),
        ({"parameters": {"push_time": 1.0}}, rk.ShapeError, "no push"),
        ({"parameters": {"robot": "other"}}, rk.UnknownName, "other"),
        ({"starts": {"tilt": 1.0}, "parameters": {"tilt": 1.0}}, rk.ShapeError, "among the starts"),
        ({"count": None}, rk.ShapeError, "count"),
        ({"count": 0}, rk.ShapeError, "count"),
        ({"seed": -1}, rk.ShapeError, "seed"),
        ({"dt": 0.01}, rk.ShapeError, "dt"),
        ({"ground": 3}, rk.ShapeError, "ground"),
        ({"starts": np.zeros(3)}, rk.ShapeError, "starts"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused(robot, arguments, error, words):
    with pytest.raises(error, match=words):
        make_recipe(robot, **({"count": 4, "duration": 0.01} | arguments))


def test_a_fixed_base_has_no_tilt():
    with pytest.raises(rk.ShapeError, match="fixed base"):
        make_recipe(sweep_robots.hopper(base="fixed"), starts={"tilt": 0.1}, count=2)


def test_an_old_recipe_says_which_version_reads_it(recipe):
    given = json.loads(recipe.to_json()) | {"format": 0, "versions": {"robokit": "0.0.7"}}
    with pytest.raises(rk.ModelError, match=r"robokit==0\.0\.7"):
        Recipe.from_json(json.dumps(given))
    for text in ("", "{}", "[]", json.dumps(json.loads(recipe.to_json()) | {"robots": 3})):
        with pytest.raises(rk.ModelError, match="recipe"):
            Recipe.from_json(text)


def test_a_grid_of_starts_needs_no_count(robot):
    recipe = make_recipe(robot, starts={"tilt": Grid(0.0, 0.4, 3), "yaw": Grid([0.0, 1.0])}, duration=0.01)
    assert recipe.count == 6


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
def test_a_measure_of_ones_own_is_kept_with_the_recipe(robot):
    @rk.function(inputs=("q", "v"), outputs={"turning": ()})
    def turning(tree, q, v):
        return [v[1][0] * v[1][0] + v[1][1] * v[1][1] + v[1][2] * v[1][2]]

    measure = rk.Measure(turning, "max", unit="1/s^2")
    starts = {"spin": Uniform(1.0, 5.0)}
    recipe = make_recipe(robot, starts=starts, ground=None, measures=[measure], count=3, duration=0.004)
    again = Recipe.from_json(recipe.to_json())
    assert again.hash == recipe.hash and again.to_json() == recipe.to_json()
    table = again.compute(0, 3)
    assert np.allclose(table["turning"], np.square(table["spin"]), rtol=1e-3)
    assert table.field("turning").metadata[b"unit"] == b"1/s^2"
    assert Recipe.from_json(recipe.to_json()).compute(0, 0).num_rows == 0


@pytest.mark.slow
def test_bodies_are_kept_apart_as_in_a_simulation():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    how = {"starts": {"height": 0.001}, "count": 2, "duration": 0.02}
    recipe = make_recipe(robot, **how)
    again = Recipe.from_json(recipe.to_json())
    pairs = rk.collision_pairs(robot)
    assert again.robots["quadruped"].pairs == pairs
    motion = again.trajectory(1)
    one = rk.simulate(robot, motion.q[0], duration=0.02, dt=recipe.dt["quadruped"], ground=rk.Ground())
    assert np.allclose(one.q, motion.q, atol=1e-9)
    assert from_json(rk.CollisionPairs, to_json(pairs)) == pairs
    fewer = pairs.remove(*pairs.pairs[0]).with_law(friction=0.2)
    assert make_recipe(robot, **how, self_collision=fewer).robots["quadruped"].pairs == fewer
    assert make_recipe(robot, **how, self_collision=False).robots["quadruped"].pairs is None


def test_a_recipe_of_the_earlier_step_says_what_to_do(recipe):
    """Its rows would not be those that it had: contact points stood for shapes."""
    given = json.loads(recipe.to_json())
    (robot,) = given["robots"].values()
    robot["points"] = robot.pop("shapes")
    with pytest.raises(rk.ModelError, match=r"robokit"):
        Recipe.from_json(json.dumps(given))
