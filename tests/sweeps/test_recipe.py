"""The recipe: JSON both ways, rows that do not depend on their chunk, and their hashes."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sweep_robots
from sweep_robots import DURATION, OTHERS, STARTS, WAVE, recipe_of

import robokit as rk
from robokit.cli import main
from robokit.collision.scene import robot_shapes
from robokit.serialize import to_json
from robokit.sweeps import recipe as recipes
from robokit.sweeps.distributions import Grid, Uniform
from robokit.sweeps.folder import SweepFile, read_sweep_file
from robokit.sweeps.recipe import Recipe, StoredMeasure, make_recipe, prepare_rows, state_hash


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


# ---- From arguments to a recipe: robots and starts take turns, and errors name the argument ------


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


def test_a_grid_of_starts_needs_no_count(robot):
    recipe = make_recipe(robot, starts={"tilt": Grid(0.0, 0.4, 3), "yaw": Grid([0.0, 1.0])}, duration=0.01)
    assert recipe.count == 6


@pytest.mark.parametrize(
    "actuators, parameters, words",
    [
        (None, {"kp": 2.0}, "kp: there are no actuators"),
        (rk.Torque(1.0), {"kp": 2.0}, "no actuator with such a value"),
        (rk.PD(kp=1.0, target=WAVE), {"target:hip": 0.1}, "changes with time"),
        (rk.PD(kp=1.0, target=lambda t, q, v: 0.0), {}, "no functions"),
        (rk.PD(kp=np.ones((5, 1))), {}, "one set of numbers"),
        (rk.PD(kp=1.0), {"kp": Uniform(-1.0, 1.0)}, "above 0"),
        ({"hopp": rk.PD(kp=1.0)}, {}, "no robot named 'hopp'"),
    ],
)
def test_actuators_that_make_no_sense_are_refused(actuators, parameters, words):
    with pytest.raises(rk.RobokitError, match=words):
        recipe_of(sweep_robots.hopper(base="fixed"), actuators, parameters)


# ---- Measures of the user's own: kept with the recipe, run only where a sweep goes on ------------


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


def test_a_measure_of_a_foreign_sweep_runs_when_it_goes_on_and_not_before(tmp_path):
    class Trap:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    folder, robot = tmp_path / "sweep", sweep_robots.hopper()
    run = {"ground": None, "duration": 0.002, "dt": 0.001, "measures": ["energy"], "workers": 0}
    starts = {"spin": rk.Uniform(0.0, 1.0)}
    rk.sweep(robot, starts=starts, count=2, out=folder, **run)
    given = read_sweep_file(folder)
    about = {"name": "trap", "reduce": "max", "threshold": None, "unit": "", "link": None}
    text = json.loads(given.recipe)
    text["measures"] = [StoredMeasure(about, "", pickle.dumps(Trap())).record()]
    for path in (folder / "chunks").iterdir():
        path.unlink()
    SweepFile(json.dumps(text, separators=(",", ":")), given.chunk, given.count).write(folder)
    found = rk.open_sweep(folder)
    repr(found), len(found), found.replay(0)
    with pytest.raises(rk.RobokitError, match="has no rows yet"):
        found.report(tmp_path / "page.html")
    assert not (tmp_path / "ran").exists()
    with pytest.raises(rk.RobokitError, match="could not be computed"):
        rk.open_sweep(folder).resume(workers=0)
    assert (tmp_path / "ran").exists()


def test_help_says_what_runs(capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--resume executes the code of its user-defined measures (rk.Measure)" in said


def test_a_measure_of_ones_own_module_needs_no_module_elsewhere(tmp_path, monkeypatch):
    """The workers do not find it, since the current folder is not on their path."""
    text = "import robokit as rk\nimport factors_of_mine\n\n"
    text += "@rk.function(inputs=('q', 'v'), outputs={'turning': ()})\n"
    text += "def turning(tree, q, v):\n    return [factors_of_mine.FACTOR * v[1][0]]\n"
    (tmp_path / "measures_of_mine.py").write_text(text)
    (tmp_path / "factors_of_mine.py").write_text("FACTOR = 3.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("measures_of_mine")
    kept = StoredMeasure.of(rk.Measure(module.turning, "max"), [])
    monkeypatch.undo()
    for name in ("measures_of_mine", "factors_of_mine"):
        monkeypatch.delitem(sys.modules, name)
    assert kept.measure.function.name == "turning"
    assert not {"measures_of_mine", "factors_of_mine"} & set(sys.modules)
