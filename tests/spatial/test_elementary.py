"""exp, log, tan, atan2 and their like: on floats, arrays, in machine code, and their derivatives."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from ladder import pendulum

import robokit as rk
from robokit.spatial import elementary
from robokit.spatial.scalars import where

TINY, HUGE = np.finfo(float).tiny, np.finfo(float).max
EVERYWHERE = np.concatenate([np.linspace(-6.0, 6.0, 481), [-1e-9, 1e-9, -40.3, 37.7]])
POSITIVE = np.concatenate([np.geomspace(1e-300, 1e300, 301), np.linspace(0.9, 1.1, 41), [TINY, HUGE, 5e-324]])
INSIDE = np.concatenate([np.linspace(-1.0, 1.0, 401), [1.0 - 1e-12, 1e-9]])
EXPONENTS = np.concatenate([EVERYWHERE, [-745.0, -708.5, -700.2, 700.2, 709.7]])

CASES = {
    "exp": (EXPONENTS, math.exp),
    "log": (POSITIVE, math.log),
    "tan": (EVERYWHERE, math.tan),
    "tanh": (np.concatenate([EVERYWHERE, [-800.0, 800.0]]), math.tanh),
    "atan": (np.concatenate([EVERYWHERE, [-1e30, 1e30]]), math.atan),
    "asin": (INSIDE, math.asin),
    "acos": (INSIDE, math.acos),
}
SLOPES = {
    "exp": lambda x: math.exp(x),
    "log": lambda x: 1.0 / x,
    "tan": lambda x: 1.0 / math.cos(x) ** 2,
    "tanh": lambda x: 1.0 / math.cosh(x) ** 2,
    "atan": lambda x: 1.0 / (1.0 + x * x),
    "asin": lambda x: 1.0 / math.sqrt((1.0 - x) * (1.0 + x)),
    "acos": lambda x: -1.0 / math.sqrt((1.0 - x) * (1.0 + x)),
}


def of_x(function, *names):
    """A function of numbers, on a robot that does not matter."""
    return rk.function(
        lambda tree, *x: function(*x), inputs=dict.fromkeys(names or "x", ()), outputs={"y": ()}, name="of_x"
    )


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_c_library_to_a_few_units_in_the_last_place(name):
    x, exact = CASES[name]
    f, right = getattr(elementary, name), np.array([exact(each) for each in x.tolist()])
    scale = np.maximum(np.abs(right), 1e-15 if name in ("tan", "tanh", "atan", "asin") else 1e-300)
    assert np.max(np.abs([f(each) for each in x.tolist()] - right) / scale) < 1e-15
    np.testing.assert_array_equal(f(x), [f(each) for each in x.tolist()])


def test_machine_code_has_the_values_and_the_slopes():
    robot = pendulum()
    inside = np.linspace(0.05, 0.95, 40)
    every = list(CASES)
    f = rk.function(
        lambda tree, x: [getattr(elementary, name)(x) for name in every],
        inputs={"x": ()},
        outputs=dict.fromkeys(every, ()),
    )
    for name, y, slope in zip(every, f(robot, inside), f.derivative("x")(robot, inside), strict=True):
        np.testing.assert_allclose(y, [CASES[name][1](x) for x in inside], rtol=2e-15)
        np.testing.assert_allclose(slope[:, 0], [SLOPES[name](x) for x in inside], rtol=1e-14)
    single = f(robot, inside, dtype="float32")
    np.testing.assert_allclose(single, f(robot, inside), rtol=2e-6)


def test_angles_in_all_quadrants_and_their_gradient():
    robot = pendulum()
    angle = np.linspace(-3.1, 3.1, 125)
    y, x = 0.7 * np.sin(angle), 0.7 * np.cos(angle)
    f = of_x(elementary.atan2, "y", "x")
    np.testing.assert_allclose(f(robot, y, x), angle, rtol=1e-15, atol=1e-15)
    by_y, by_x = f.gradient("y", "x")(robot, y, x)
    np.testing.assert_allclose([by_y[:, 0], by_x[:, 0]], np.array([x, -y]) / 0.49, rtol=1e-14, atol=1e-14)
    assert f(robot, 0.0, 0.0) == 0.0 and f(robot, 0.0, -2.0) == math.pi


def test_outside_their_range_they_are_infinite_or_not_a_number():
    robot, how = pendulum(), {"engine": "python"}
    found = of_x(elementary.log)(robot, np.array([0.0, -1.0, 1.0]), **how)
    np.testing.assert_array_equal(found, [-math.inf, math.nan, 0.0])
    found = of_x(elementary.exp)(robot, np.array([800.0, -800.0, 0.0]), **how)
    np.testing.assert_array_equal(found, [math.inf, 0.0, 1.0])
    assert math.isnan(of_x(elementary.asin)(robot, 1.5, **how))


def test_powers_remainders_and_numpys_functions_in_a_text():
    robot, x, y = pendulum(), 0.7, 1.3

    def function(x, y):
        pair = np.array([x, y])
        return [
            *(x**1.5, x**-2, 2**x, x**y, x % 0.3, -x // 0.3, np.sin(x), np.linalg.norm([x, y])),
            *np.sin(pair),
            pair @ [2.0, 3.0],
            *(np.array([1.0, 2.0]) * x),
            np.arctan2(y, x),
            np.maximum(x, 1.0),
        ]

    f = rk.function(lambda tree, x, y: function(x, y), inputs={"x": (), "y": ()}, outputs={"z": (15,)})
    np.testing.assert_allclose(f(robot, x, y), function(x, y), rtol=4e-15)
    np.testing.assert_allclose(f(robot, x, y, engine="python"), function(x, y), rtol=4e-15)
    with pytest.raises(rk.FunctionError, match=r"np\.expm1 takes no scalars .* robokit\.spatial\.elementary"):
        of_x(np.expm1)(robot, x)


@pytest.mark.parametrize(
    "power", [2, -3, 65, 66, -65, 100.0, np.int64(2), np.int64(65), np.float64(3.0), np.array(2)]
)
def test_whole_powers_of_numbers_below_zero(power):
    """Products up to 64, exp and log beyond; NumPy's whole numbers are whole, too."""
    robot, f = pendulum(), of_x(lambda x: x**power)
    n = float(power)
    for x in (-1.1, 1.1, -0.9):
        assert f(robot, x) == pytest.approx(x**n, rel=1e-13)
        assert f.gradient("x")(robot, x)[0] == pytest.approx(n * x ** (n - 1), rel=1e-12)
    assert f(robot, 0.0) == (0.0 if n > 0 else math.inf)


def test_powers_whose_exponent_is_known_only_later():
    """As NumPy's, also of 0 and of numbers below it; a constant base has them, too."""
    x = np.array([0.0, 0.0, 0.0, -1.0, -2.0, -0.5, -2.0, -2.0, 3.0, 2.0])
    y = np.array([0.0, 2.0, 0.5, -1.0, 3.0, 2.0, 0.0, 0.5, 0.5, -1.5])
    function = rk.function(
        lambda tree, x, y: [x**y, (-2) ** y, 0.0 ** abs(y)], inputs={"x": (), "y": ()}, outputs={"z": (3,)}
    )
    with np.errstate(invalid="ignore"):
        expected = np.stack([x**y, (-2.0) ** y, 0.0 ** abs(y)], 1)
    np.testing.assert_allclose(function(pendulum(), x, y), expected, rtol=4e-15)
    slopes = function.derivative("x", "y")(pendulum(), [-2.0, 3.0], [3.0, 0.5])
    np.testing.assert_allclose(slopes.dz_dx[:, 0, 0], [12.0, 0.5 / np.sqrt(3.0)], rtol=1e-14)


@pytest.mark.parametrize("power", [1.5, 2.5, 1.3, 64.5, 70.5])
@pytest.mark.parametrize("engine", ["python", "llvm"])
def test_powers_above_one_start_flat_at_zero(power, engine):
    robot, f = pendulum(), of_x(lambda x: x**power)
    for x in (0.0, 0.4):
        assert f(robot, x, engine=engine) == pytest.approx(x**power, rel=1e-13)
        slope = f.gradient("x")(robot, x, engine=engine)[0]
        assert slope == pytest.approx(power * x ** (power - 1.0), rel=1e-12)
    assert math.isnan(f(robot, -1.0, engine="python"))


def test_a_scalar_may_stand_on_either_side_of_an_array():
    """What numbers do, on both sides of every operation; comparisons are made numbers by where."""
    robot, A = pendulum(), np.array([1.0, 2.0, 3.0])
    operations = (
        *(operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.floordiv),
        operator.mod,
    )
    comparisons = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)

    def function(x):
        found = [op(*pair) for op in operations for pair in ((x, A), (A, x))]
        truths = [op(*pair) for op in comparisons for pair in ((x, A), (A, x))]
        return [*found, *([where(t, 1.0, 0.0) for t in row] for row in truths)]

    f = rk.function(lambda tree, x: function(x), inputs={"x": ()}, outputs={"y": (26, 3)})
    for x in (2.5, 2.0):
        np.testing.assert_allclose(f(robot, x), function(x), rtol=4e-15)
    np.testing.assert_allclose(f(robot, [2.5, 2.0])[1], function(2.0), rtol=4e-15)


@pytest.mark.parametrize("function", [elementary.log, lambda x: x**0.3, elementary.asin])
def test_where_there_is_no_value_there_is_no_slope(function):
    """In both modes: one of them had 0 for the logarithm below 0."""
    f = of_x(function)
    for slope in (f.gradient("x"), f.derivative("x")):
        assert np.isnan(slope(pendulum(), -1.5))
