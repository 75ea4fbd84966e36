"""The recipe: JSON both ways, rows that do not depend on their chunk, and their hashes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
import sweep_robots
from sweep_robots import DURATION, OTHERS, STARTS

import robokit as rk
from robokit.collision.scene import robot_shapes
from robokit.serialize import to_json
from robokit.sweeps import recipe as recipes
from robokit.sweeps.folder import read_sweep_file
from robokit.sweeps.recipe import Recipe, make_recipe, state_hash


def test_a_recipe_is_its_text(recipe):
    text = recipe.to_json()
    again = Recipe.from_json(text)
    assert again.to_json() == text and again.hash == recipe.hash
    robot, made = recipe.robots["hopper"].robot, again.robots["hopper"].robot
    assert made.fingerprint == robot.fingerprint == sweep_robots.hopper().fingerprint
    assert to_json(again.robots["hopper"].shapes) == to_json(robot_shapes(robot))
    other = make_recipe(sweep_robots.hopper(), starts=STARTS, parameters=OTHERS, count=40, duration=0.03)
    assert other.hash != recipe.hash


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


def test_an_old_recipe_says_which_version_reads_it(recipe):
    given = json.loads(recipe.to_json()) | {"format": 0, "versions": {"robokit": "0.0.7"}}
    with pytest.raises(rk.ModelError, match=r"robokit==0\.0\.7"):
        Recipe.from_json(json.dumps(given))
    formats = ('{"format": 2}', '{"format": 2, "versions": []}', '{"format": true}', '{"format": []}')
    wrong = ("", "{}", "[]", "[" * 100_000, *formats)
    for text in (*wrong, json.dumps(json.loads(recipe.to_json()) | {"robots": 3})):
        with pytest.raises(rk.ModelError, match="recipe"):
            Recipe.from_json(text)


def test_a_recipe_of_the_earlier_step_says_what_to_do(recipe):
    """Its rows would not be those that it had: contact points stood for shapes."""
    given = json.loads(recipe.to_json())
    (robot,) = given["robots"].values()
    robot["points"] = robot.pop("shapes")
    with pytest.raises(rk.ModelError, match=r"robokit"):
        Recipe.from_json(json.dumps(given))


def test_a_recipe_that_makes_no_sense_is_refused_by_name(swings):
    given = read_sweep_file(swings)
    for field, value, words in (
        ("duration", "long", "duration: expected a finite number > 0"),
        ("duration", 1e300, "steps of"),
        ("seed", 0.0, "seed: expected a whole number"),
        ("trajectories", [6], "trajectories: expected a whole number from 0 to 5"),
        ("dt", {}, "double_pendulum"),
        ("standing", {"double_pendulum": 1}, "standing.*expected true or false"),
        ("options", {"run": "code"}, "options: expected integrator and joint_damping"),
        ("measures", ["energie"], "no measure named 'energie'"),
        ("robots", {}, "robots: expected at least one"),
        ("robots", {"it": 7}, r"robots\['it'\]: expected an object, got 7"),
        ("robots", {"it": {}}, r"robots\['it'\]: 'name' is missing"),
        ("ground", 0.0, "ground: expected an object, got 0.0"),
        ("trajectories", "x", "trajectories: expected a list"),
        ("parameters", {"weight": {"kind": "constant", "value": 1.0}}, "no parameter of a sweep named"),
        ("parameters", {"mass": {"kind": "constant", "value": "x"}}, "mass: expected numbers"),
    ):
        with pytest.raises(rk.ModelError, match=words):
            rk.Recipe.from_json(json.dumps(json.loads(given.recipe) | {field: value}))


def test_rows_that_were_interrupted_are_not_taken_for_whole(monkeypatch):
    cut = SimpleNamespace(summary={"interrupted": True})
    monkeypatch.setattr(recipes, "rollout", lambda *_, **__: cut)
    robots = {"robot": SimpleNamespace(pairs=None)}
    recipe = SimpleNamespace(robots=robots, duration=1.0, dt={"robot": 1e-3}, options={})
    with pytest.raises(KeyboardInterrupt):
        recipes.run_rows(recipe, "robot", recipes.Runs(None, None, None, None, [], [], {}))


def test_rows_have_the_hashes_that_they_have_alone():
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(5, 7)), rng.normal(size=(5, 6))
    together = state_hash(q, v)
    assert together.dtype == np.uint64 and together.shape == (5,)
    assert [int(h) for h in together] == [int(state_hash(*one)) for one in zip(q, v, strict=True)]
    assert int(state_hash(np.zeros(2), np.ones(1))) == 12610246625012555911


def test_every_bit_counts():
    state = np.array([1.0, -2.0, 3.0])
    known = {int(state_hash(state[:2], state[2:]))}
    for k in range(3):
        for bit in range(64):
            other = state.copy()
            other.view(np.uint64)[k] ^= np.uint64(1 << bit)
            known.add(int(state_hash(other[:2], other[2:])))
    assert len(known) == 1 + 3 * 64
    assert state_hash(np.zeros(1), np.zeros(1)) != state_hash(-np.zeros(1), np.zeros(1))
