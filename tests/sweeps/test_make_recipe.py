"""From arguments to a recipe: robots and starts take turns, and errors name the argument."""

from __future__ import annotations

import numpy as np
import pytest
import sweep_robots
from sweep_robots import WAVE, recipe_of

import robokit as rk
from robokit.sweeps.distributions import Grid, Uniform
from robokit.sweeps.recipe import make_recipe, prepare_rows


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
