"""Functions of the user's own with loops whose length is known only when they run."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial

import numpy as np
import pytest
import waiting
from c_compiler import run_check

import robokit as rk
from robokit.algorithms.energy import kinetic_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.dynamics import differentiate
from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.loops import kernel as loop_kernel
from robokit.engine.loops.recorded_once import FlatKernel
from robokit.engine.trace.record import UNROLLED, RunTimeLoop
from robokit.errors import FunctionError
from robokit.spatial import Vector3
from robokit.spatial.control_flow import call, cond, for_range, solution, vmap, while_loop, whole, zeros
from robokit.spatial.elementary import log
from robokit.spatial.scalars import maximum, sin, where

ROBOT = rk.load_urdf(rk.find_robot("double_pendulum"))
QUADRUPED = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
RANDOM = np.random.default_rng(3)
POINTS = 5


@rk.function(inputs={"points": (POINTS, 3), "count": ()}, outputs={"total": (), "largest": ()})
def total(tree, points, count):
    """Sum of x y + z over the first points, and the largest x."""

    def add(k, s, most):
        x, y, z = (points[3 * k + j] for j in range(3))
        return s + x * y + z, cond(x > most, lambda: x, lambda: most)

    return list(for_range(count, add, 0.0, -10.0))


@rk.function(inputs={"q": "q", "height": ()}, outputs={"angle": (), "turns": ()})
def touch(tree, q, height):
    """The angle of the first joint at which a point of the last link is at a height, by bisection."""

    def gap(angle):
        return forward_kinematics(tree, [q[0], [angle], *q[2:]])[-1].point(Vector3(0.0, 0.0, -0.5)).z - height

    def halve(low, high, turns):
        middle = 0.5 * (low + high)
        low, high = cond(gap(middle) > 0.0, lambda: (low, middle), lambda: (middle, high))
        return low, high, turns + 1.0

    low, high, turns = while_loop(lambda low, high, _: high - low > 1e-12, halve, 0.1, 2.5, 0.0)
    return [0.5 * (low + high), turns]


@rk.function(inputs={"a": (), "tolerance": ()}, outputs={"root": ()})
def root(tree, a, tolerance):
    """Newton's iteration, at most 50 turns."""
    return while_loop(lambda x: abs(x * x - a) > tolerance, lambda x: 0.5 * (x + a / x), a, most=50)


@rk.function(inputs={"q": "q", "v": "v", "n": ()}, outputs={"energy": ()})
def energies(tree, q, v, n):
    """An algorithm inside a loop."""

    def at(k, s):
        return s + kinetic_energy(tree, q, [[x * (1.0 + 0.1 * k) for x in row] for row in v])

    return for_range(n, at, 0.0)


@rk.function(inputs={"x": (6,), "n": ()}, outputs={"y": (6,), "found": ()})
def sorted_part(tree, x, n):
    """The first n numbers sorted, in memory; and an entry of what came out."""
    a = zeros(6)
    for k in range(6):
        a[k] = x[k]

    def pass_over(i):
        def swap(j):
            low, high = cond(a[j] > a[j + 1], lambda: (a[j + 1], a[j]), lambda: (a[j], a[j + 1]))
            a[j], a[j + 1] = low, high

        for_range(whole(n) - 1 - i, swap)

    for_range(n, pass_over)
    return {"y": [a[k] for k in range(6)], "found": a[whole(n / 2.0)]}


CASES = {
    "total": (
        total, ROBOT, [RANDOM.uniform(-1, 1, (6, POINTS, 3)), np.array([0.0, 1.0, 5.0, 3.0, 2.9, 4.0])]
    ),
    "touch": (touch, ROBOT, [RANDOM.uniform(-0.2, 0.2, (6, 2)), RANDOM.uniform(-0.9, -0.6, 6)]),
    "root": (root, ROBOT, [np.array([2.0, 9, 1e4, 1, 0.3, 5]), np.array([1e-9, 1, 1e-6, 0.1, 1e-12, 3])]),
    "energies": (
        energies, QUADRUPED,
        [np.tile(QUADRUPED.neutral(), (6, 1)), RANDOM.uniform(-1, 1, (6, QUADRUPED.nv)), np.arange(6.0)],
    ),
    "sorted": (sorted_part, ROBOT, [RANDOM.uniform(-1, 1, (6, 6)), np.array([0.0, 1.0, 6.0, 3.0, 2.0, 5.0])]),
}  # fmt: skip

each = pytest.mark.parametrize("name", CASES)


def columns(result):
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def changes_a_variable(n, x, total):
    def body(k, s):
        nonlocal total
        total = total + x
        return s

    for_range(n, body, 0.0)
    return total


def changes_an_entry(n, x, total):
    kept = {"list": [total]}
    for_range(n, lambda k, s: kept["list"].__setitem__(0, kept["list"][0] + x) or s, 0.0)
    return kept["list"][0]


def changes_an_array(n, x, total):
    counts = np.zeros(3)
    while_loop(lambda k: k < n, lambda k: k + counts.__iadd__(1.0)[0], 0.0)
    return counts[0] + total


def changes_in_a_branch(n, x, total):
    sign = [1.0]
    y = cond(n > 1.0, lambda: sign.__setitem__(0, 2.0) or x, lambda: sign.__setitem__(0, 3.0) or x)
    return y * sign[0] + total


def changes_in_a_branch_of_a_loop(n, x, total):
    return for_range(n, lambda k, s: s + changes_in_a_branch(1.0 * k, x, total), 0.0)


def reads_what_the_turn_before_left(n, x, total):
    kept = [total]

    def body(k, s):
        step = s - kept[0]
        kept[0] = s
        return 0.5 * s + step

    return for_range(n, body, x)


def reads_it_in_a_loop_with_a_bound(n, x, total):
    def body(k, s):
        nonlocal total
        step, total = s - total, s
        return k + 1.0, 0.5 * s + step

    return while_loop(lambda k, s: k < n, body, 0.0, x, most=9)[1]


def reads_it_in_an_inner_loop(n, x, total):
    return for_range(n, lambda k, s: s + reads_what_the_turn_before_left(n, x, total), 0.0)


def reads_what_the_other_branch_changed(n, x, total):
    kept = [1.0]
    return cond(n > 1.0, lambda: kept.__setitem__(0, 2.0) or x, lambda: x * kept[0]) + total


def counts_and_uses_it(n, x, total):
    kept = {"turns": 0}
    for_range(n, lambda k, s: kept.update(turns=kept["turns"] + 1) or s, 0.0)
    return x * sin(kept["turns"]) + total


def counts_and_stores_it(n, x, total):
    kept, memory = [0], zeros(1)

    def body(k, s):
        kept[0] += 1
        memory[0] = kept[0]
        return s

    return for_range(n, body, x) + memory[0] + total


class Kept:
    """Has attributes."""

    total, numbers = 1.0, (1.0, 2.0)

    def __init__(self):
        self.held, self.count, self.turned = {"total": [1.0]}, 0.0, deque([1.0, 2.0])

    def add(self, k, s):
        self.count += 1.0
        return s + self.count


def uses_a_method_that_counts(n, x, total):
    return for_range(n, Kept().add, x) + total


def changes_an_attribute(n, x, total):
    kept = Kept()
    for_range(n, lambda k, s: setattr(kept, "count", x) or s, x)
    return kept.count + total


def changes_an_attribute_in_a_branch(n, x, total):
    kept = Kept()
    y = cond(x > n, lambda: setattr(kept, "count", 1.0) or x, lambda: setattr(kept, "count", 2.0) or -x)
    return y + kept.count + total


def changes_a_list_of_an_attribute(n, x, total):
    kept = Kept()

    def body(k, s):
        kept.held["total"][0] += 1.0
        return s + kept.held["total"][0]

    return for_range(n, body, x) + total


def changes_a_list_in_a_tuple(n, x, total):
    kept = ([1.0],)

    def body(k, s):
        kept[0][0] += 1.0
        return s + kept[0][0]

    return for_range(n, body, x) + total


def appends_to_a_list(n, x, total):
    kept = []
    for_range(n, lambda k: kept.append(x))
    return sum(kept) + total


@pytest.mark.parametrize(
    "function",
    [
        appends_to_a_list, changes_a_variable, changes_an_entry, changes_an_array, changes_in_a_branch,
        changes_in_a_branch_of_a_loop, reads_what_the_turn_before_left, reads_it_in_a_loop_with_a_bound,
        reads_it_in_an_inner_loop, reads_what_the_other_branch_changed, counts_and_uses_it,
        counts_and_stores_it, uses_a_method_that_counts, changes_an_attribute,
        changes_an_attribute_in_a_branch, changes_a_list_of_an_attribute, changes_a_list_in_a_tuple,
    ],
)  # fmt: skip
def test_what_a_body_changes_around_it_once_is_an_error(function):
    """Plain Python changes it in each turn: machine code, which does not, would give something else."""
    f = rk.function(
        lambda tree, n, x: function(n, x, 0.0), inputs={"n": (), "x": ()}, outputs={"y": ()}, name="f"
    )
    with pytest.raises(
        FunctionError, match=r"(body of a loop|branch of cond) changes '(total|kept|counts|sign|self)'"
    ):
        f(ROBOT, 3.0, 2.0)
    assert np.isfinite(f(ROBOT, 3.0, 2.0, engine="python"))


def _count(kept, key):
    kept[key] = kept.get(key, 0.0) + 1.0
    return kept[key]


def _flip(kept):
    kept.append(1.0)
    return len(kept)


SEEN = {}

OTHERWISE = {  # what a body does in the first turn, given what is around it, and what Python's next turns do
    "entries of an empty dict": lambda x: partial(_count, {}, "turns"),
    "entries of a global dict": lambda x: partial(_count, SEEN, "turns"),
    "the length of a list": lambda x: partial(_flip, []),
    "an iterator": lambda x: iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).__next__,
    "random numbers": lambda x: np.random.default_rng(3).random,
    "a queue": lambda x: (lambda kept: lambda: kept.rotate() or kept[0])(deque([1.0, 2.0])),
    "which of two": lambda x: (lambda it: lambda: [x, 2.0 * x][next(it)])(iter([0, 1, 0, 1, 0, 1])),
    "a comparison": lambda x: (lambda it: lambda: cond(x > next(it), lambda: x, lambda: -x))(iter(range(9))),
    "which memory": lambda x: (lambda both, it: lambda: both[next(it)][0])(
        (zeros(1), zeros(1)), iter([0, 1, 0, 1, 0, 1])
    ),
    "an inner loop": lambda x: (lambda it: lambda: for_range(whole(x), lambda k, s: s + next(it), x))(
        iter(range(99))
    ),
    "a called function": lambda x: (lambda it: lambda: call(lambda y: y * next(it), x))(iter(range(9))),
    "mapped functions": lambda x: (lambda it: lambda: sum(vmap(lambda y: y * next(it))([x, 2.0])))(
        iter(range(9))
    ),
    "what is written": lambda x: (lambda kept, it: lambda: kept.__setitem__(0, 1.0 * next(it)) or kept[0])(
        zeros(1), iter(range(9))
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_body_that_does_something_else_in_the_next_turn_is_an_error(what):
    """Machine code does in each turn what the body does once, plain Python something else."""

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
    def f(tree, n, x):
        turn = OTHERWISE[what](x)
        return for_range(n, lambda k, s: s + turn(), x)

    with pytest.raises(FunctionError, match=r"does something else when it runs again|\n  made at"):
        f(ROBOT, 3.0, 2.0)


@pytest.mark.parametrize("how", ["loops", "straight"])
@pytest.mark.parametrize("map_it", [False, True])
@pytest.mark.parametrize("what", ["entries of an empty dict", "an iterator", "random numbers", "a queue"])
def test_a_called_function_that_does_something_else_in_the_next_call_is_an_error(what, map_it, how):
    """Calls share code: machine code does in each what the first one does."""

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
    def f(tree, n, x):
        turn = OTHERWISE[what](x)
        scaled = lambda y: sin(y) * turn() + y * y  # noqa: E731
        found = sum(vmap(scaled)([x, n, x])) if map_it else call(scaled, x) + call(scaled, x)
        return for_range(n, lambda k, s: s + 1.0, found) if how == "loops" else found

    with pytest.raises(FunctionError, match="a function of call or vmap does something else when it runs ag"):
        f(ROBOT, 3.0, 2.0)


@pytest.mark.parametrize("engine", ["python", "llvm"])
@pytest.mark.parametrize("loops", [False, True])
def test_what_is_carried_and_passed_is_changed_for_nobody_else(loops, engine):
    """Lists and arrays of numbers are values, as in JAX: who changes his changes no others."""

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": (7,)})
    def f(tree, n, x):
        begin, array, rows = [x, [n]], np.array([x, n], object), [[x], [n]]

        def body(k, own, more):
            own[1][0] = own[1][0] + x
            more += 1.0
            return own, more

        def passed(own):
            own[0] = own[0] * 2.0
            return own[0]

        count = n if loops else 3
        end, more = for_range(count, body, begin, array)
        last = while_loop(
            lambda k, s: k < count, lambda k, s: (k + 1.0, s.__setitem__(0, s[0] + x) or s), 0.0, rows[0]
        )
        found = call(passed, begin) + sum(vmap(passed)(rows))
        return [end[1][0], *more, found, begin[0] + begin[1][0], array[0], last[1][0] + rows[0][0]]

    n, x = 3.0, 0.7
    want = [n + 3 * x, x + 3, n + 3, 2 * x + 2 * x + 2 * n, x + n, x, 5 * x]
    np.testing.assert_allclose(f(ROBOT, n, x, engine=engine), want, rtol=1e-14)


@pytest.mark.parametrize("engine", ["python", "llvm"])
@pytest.mark.parametrize("loops", [False, True])
def test_inputs_are_carried_and_passed(loops, engine):
    """Lists of inputs and of joints' coordinates are lists as others."""
    tip = Vector3(0.0, 0.0, 0.5)

    @rk.function(inputs={"q": "q", "p": (2,), "n": ()}, outputs={"y": (4,)})
    def f(tree, q, p, n):
        count, product = n if loops else 3, lambda r: sin(r[0]) * r[1] * r[1] + r[0]
        joints = for_range(count, lambda k, s: [s[0], [s[1][0] + 1.0], s[2]], q)
        moved = for_range(count, lambda k, s: [x + 1.0 for x in s], p)
        height = call(lambda s: forward_kinematics(tree, [[], s["upper_joint"], s[2]])[-1].point(tip).z, q)
        return [joints[1][0], moved[1], call(product, p) + sum(vmap(product)([p, moved])), height]

    q, p = [0.3, 0.4], np.array([0.5, 2.0])
    scaled = [np.sin(a) * b * b + a for a, b in (p, p + 3.0)]
    height = forward_kinematics(ROBOT.tree, [[], *([x] for x in q)])[-1].point(tip).z
    want = [q[0] + 3.0, p[1] + 3.0, 2.0 * scaled[0] + scaled[1], height]
    np.testing.assert_allclose(f(ROBOT, q, p, 3.0, engine=engine), want, rtol=1e-14)


def test_what_is_done_alike_in_each_turn_is_no_error():
    """Constants that are computed once, functions made in the body, and sums in whatever order they stand."""
    known = {}

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": (), "z": ()})
    def f(tree, n, x):
        kept, memory = Kept(), zeros(2)

        def body(k, s):
            if "scale" not in known:
                known["scale"] = 0.5
            if not hasattr(kept, "product"):
                kept.product = x * n - 0.25  # of what no turn changes
            half = lambda y: known["scale"] * y - kept.product  # noqa: E731
            kept.count += 1.0
            memory[k % 2] = memory[k % 2] - 0.125 - s
            inner = for_range(k, lambda j, u: 0.3 - u * kept.product, s)
            chosen = cond(s > x - 0.7, lambda: -half(s), lambda: 0.1 - call(half, inner))
            logarithm = log(1.0 + s * s) - 0.5 * where(s > x, 0.0, -s) - where(s > n, -0.3, 0.1 - s)
            odd = sin(s - maximum(x, n))  # as itself, or less the sine of the other difference
            captured = call(lambda y: odd, s) + sum(vmap(lambda y: odd)([1.0, x]))
            turns = vmap(lambda y: while_loop(lambda j: y + 0.5 * j < n, lambda j: j + 1.0, 0.0))([s, x])
            more = logarithm + captured + 0.1 * turns[0] - turns[1]
            return sin(-chosen) - 0.1 + sum(vmap(half)([s, inner])) + more

        return [for_range(n, body, x), memory[0] - memory[1]]

    for n in (0.0, 1.0, 4.0):
        np.testing.assert_allclose(f(ROBOT, n, 0.7), f(ROBOT, n, 0.7, engine="python"), rtol=1e-13)


@pytest.mark.parametrize("map_it", [False, True])
def test_a_called_function_with_nan_is_no_error(map_it):
    """The logarithm has NaN below 0, which is not equal to itself."""

    @rk.function(inputs={"x": ()}, outputs={"y": ()})
    def f(tree, x):
        scaled = lambda y: log(y) * sin(y)  # noqa: E731
        return sum(vmap(scaled)([x, 2.0 * x])) if map_it else call(scaled, x) + call(scaled, 2.0 * x)

    want = sum(np.log(y) * np.sin(y) for y in (0.7, 1.4))
    np.testing.assert_allclose(f(ROBOT, 0.7), want, rtol=1e-13)


def test_what_a_body_has_changed_is_there_again_after_the_recording():
    kept, total = [0.5], 0.25

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
    def f(tree, n, x):
        def body(k, s):
            nonlocal total
            kept[0] = total = s * 2.0
            return kept[0] + x + total

        y = for_range(n, body, x)
        return cond(y > 1.0, lambda: kept.__setitem__(0, 3.0) or y, lambda: -y)

    assert f(ROBOT, 2.0, 1.0) > 0.0 and (kept, total) == ([0.5], 0.25)


SHARED = [0.0, 0.0]


def scratch_of_a_loop(n, x):
    space, turns, half = {"rows": [[0.0], np.zeros(2, object)]}, 0, None
    last = 0.0

    def inner(j, u):
        nonlocal last
        last = 0.25 * u
        return last + x

    def body(k, s):
        nonlocal turns, half
        turns += 1
        if half is None:
            half = np.array([0.5])
        space["rows"][0][0] = s * half[0]
        space["rows"][1][:] = [space["rows"][0][0] + x, s]
        return for_range(n, inner, space["rows"][1][0])

    return for_range(n, body, x)


def scratch_of_branches(n, x):
    space, other = SHARED, [0.0]

    def low(s):
        space[0] = other[0] = s * 2.0
        return space[0] + other[0]

    def high(s):
        space[0] = s * 3.0
        return space[0] - x

    y = cond(n > 2.0, lambda: low(x), lambda: high(x))
    y = while_loop(
        lambda k, s: k < n, lambda k, s: (k + 1.0, cond(s > 1.0, partial(low, s), lambda: -s)), 0.0, y
    )[1]
    space[0] = y
    return space[0]


@pytest.mark.parametrize("function", [scratch_of_a_loop, scratch_of_branches])
def test_lists_around_a_body_may_be_scratch_space(function):
    """What is written before it is read is the same in each turn, also with derivatives and batches."""
    f = rk.function(lambda tree, n, x: function(n, x), inputs={"n": (), "x": ()}, outputs={"y": ()}, name="f")
    rows = np.array([[0.0, 1.5], [1.0, -0.7], [3.0, 2.0], [4.0, 0.3]])
    for robot in (ROBOT, QUADRUPED):
        want = [f(robot, *row, engine="python") for row in rows]
        np.testing.assert_allclose([f(robot, *row) for row in rows], want, rtol=1e-14)
        np.testing.assert_array_equal(f(robot, *rows.T), [f(robot, *row) for row in rows])
        ahead, behind = (f(robot, rows[:, 0], rows[:, 1] + h) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(
            f.derivative("x")(robot, *rows.T).ravel(), (ahead - behind) / 2e-6, rtol=1e-7, atol=1e-7
        )


def test_what_is_around_a_function_is_there_again_when_it_is_recorded():
    """Bodies run once then, on numbers that mean nothing later: what they wrote anew is taken back."""
    space, objects, turns, table = [1.0, "kept"], np.array([2.0], object), 0, {"branch": 3.0, "twice": 4.0}

    def inner(j, u):
        space[0] = table["twice"] = u
        return space[0]

    def body(k, s):
        nonlocal turns
        turns += 1
        space[0] = objects[0] = 0.5 * s
        return for_range(2, inner, space[0] + objects[0]) + for_range(whole(s), inner, s)

    for looped in (False, True):

        @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
        def f(tree, n, x, looped=looped):
            y = cond(x > 1.0, lambda: table.update(branch=x) or x, lambda: x)
            y = for_range(n, body, y) if looped else y
            if looped:
                table["twice"] = 5.0
                y = for_range(n, inner, y)
            return y

        assert f(ROBOT, 2.0, 3.0) == (12.0 if looped else 3.0)
        assert (space, objects.tolist(), turns) == ([1.0, "kept"], [2.0], 0)
        assert table == {"branch": 3.0, "twice": 5.0 if looped else 4.0}


class Gains:
    def __init__(self, gain):
        self.gain = gain

    def times(self, u):
        return sin(u) * self.gain


@pytest.mark.parametrize("how", ["loops", "straight"])
@pytest.mark.parametrize(
    "what", ["list", "dict", "objects", "numbers", "attribute", "variable", "inner", "method"]
)
def test_what_a_called_function_uses_may_change_from_call_to_call(what, how):
    """Calls share code only as long as it is the same: as in plain Python, each has what is there then."""

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
    def changing(tree, n, x):
        held, gains, number = {"list": [x], "dict": {"x": x}}, Gains(x), x
        held["objects"], held["numbers"] = np.array([x], object), np.array([1.5])
        inner = lambda u: sin(u) * held["list"][0]  # noqa: E731
        used = held.get(what, [x])
        functions = {
            "dict": lambda u: sin(u) * used["x"], "attribute": lambda u: sin(u) * gains.gain,
            "variable": lambda u: sin(u) * number, "inner": lambda u: inner(u) + u, "method": gains.times,
        }  # fmt: skip
        once = functions.get(what, lambda u: sin(u) * used[0])

        def function(u):
            for _ in range(100):
                u = 0.5 * once(u) + 0.3 * u
            return u

        total = for_range(n, lambda k, s: 0.5 * s, x) if how == "loops" else x
        for k in range(3):
            total = total + call(function, x) + sum(vmap(function)([x, n]))
            number = gains.gain = 0.5 * x + 0.1 * k
            used["x" if what == "dict" else 0] = 0.7 if what == "numbers" else number
            held["list"][0] = number
        return total

    for robot in (ROBOT, QUADRUPED):
        want = changing(robot, 3.0, 0.8, engine="python")
        assert changing(robot, 3.0, 0.8) == pytest.approx(want, rel=1e-12)


def test_a_body_may_note_what_it_likes_and_use_lists_of_its_own():
    notes, cache = [], {"old": 1.0}

    @rk.function(inputs={"n": (), "x": ()}, outputs={"y": ()})
    def noting(tree, n, x):
        same = np.array([1.0, np.nan])

        def body(k, s):
            notes.append(k)
            cache["new"] = same[1] = np.nan
            own = [s, s]
            own[0] = cond(s > 1.0, lambda: own[1], lambda: x)
            return own[0] + 1.0

        return for_range(n, body, 0.0)

    assert noting(ROBOT, 3.0, 2.0) == noting(ROBOT, 3.0, 2.0, engine="python") == 5.0 and len(notes) == 5


@pytest.mark.parametrize(
    "use",
    [
        lambda x, n, old: for_range(n, lambda k, s: s + old, 0.0),
        lambda x, n, old: x * old,
        lambda x, n, old: x - old,
        lambda x, n, old: x / old,
        lambda x, n, old: old + 1.0,
        lambda x, n, old: where(x > old, 1.0, 2.0),
        lambda x, n, old: where((x > 0.0) & (old > 0.0), x, 2.0),
        lambda x, n, old: where(old > 0.0, 1.0, 2.0),
        lambda x, n, old: cond(x > 0.0, lambda: x, lambda: old),
        lambda x, n, old: sum(vmap(lambda y: y * old)([x, n])),
        lambda x, n, old: for_range(whole(n), lambda k, s: s + 1.0, old),
    ],
)
def test_what_an_earlier_recording_has_computed_is_not_taken_for_something_else(use):
    """A cache outside of the function holds what the first of two recordings has computed."""
    kept = {}

    @rk.function(inputs={"x": (), "n": ()}, outputs={"y": ()})
    def remembering(tree, x, n):
        return use(x, n, kept.setdefault("x", x * x))

    with pytest.raises(FunctionError, match="must not keep what it computes in a global, a cache"):
        for robot in (ROBOT, QUADRUPED):
            remembering(robot, 3.0, 2.0)


@each
def test_a_row_of_a_batch_has_the_bits_of_its_single_run(name):
    """Lanes that differ in their counts and stop at different turns; reproducible, Python has them too."""
    function, robot, arguments = CASES[name]
    for reproducible in (None, True):
        batch = columns(function(robot, *arguments, reproducible=reproducible))
        for k in range(6):
            alone = function(robot, *(x[k] for x in arguments), reproducible=reproducible)
            for one, many in zip(columns(alone), batch, strict=True):
                np.testing.assert_array_equal(one, many[k])
    for one, many in zip(
        columns(function(robot, *arguments, engine="python", reproducible=True)), batch, strict=True
    ):
        np.testing.assert_array_equal(one, many)


@each
def test_plain_python_and_single_precision_agree(name):
    function, robot, arguments = CASES[name]
    found = columns(function(robot, *arguments))
    for one, many in zip(columns(function(robot, *arguments, engine="python")), found, strict=True):
        np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-11)
    if name != "touch" and name != "root":  # their tolerance is below that of single precision
        for one, many in zip(columns(function(robot, *arguments, dtype="float32")), found, strict=True):
            np.testing.assert_allclose(one, many, rtol=2e-5, atol=2e-5)
            assert one.dtype == np.float32


def test_values():
    points, count = CASES["total"][2]
    want = [sum(x * y + z for x, y, z in p[: int(n)]) for p, n in zip(points, count, strict=True)]
    np.testing.assert_allclose(total(ROBOT, points, count).total, want, atol=1e-14)
    q, height = CASES["touch"][2]
    angle, turns = touch(ROBOT, q, height)
    tip = np.stack([angle, q[:, 1]], axis=1)
    p = [forward_kinematics(ROBOT.tree, [[], [a], [b]])[-1].point(Vector3(0.0, 0.0, -0.5)).z for a, b in tip]
    np.testing.assert_allclose(p, height, atol=1e-11)
    assert turns.tolist() == [42.0] * 6
    x, n = CASES["sorted"][2]
    for row, part, y in zip(x, n.astype(int), sorted_part(ROBOT, x, n).y, strict=True):
        assert y.tolist() == [*sorted(row[:part]), *row[part:]]


def test_forward_derivatives():
    """Of the sum by all its points; of the touching angle, by differences; of an algorithm, by its own."""
    points, count = CASES["total"][2]
    d, _ = total.derivative("points")(ROBOT, points, count)
    d = d.reshape(6, 5, 3)
    for k, n in enumerate(count.astype(int)):
        want = np.zeros((5, 3))
        want[:n] = np.stack([points[k, :n, 1], points[k, :n, 0], np.ones(n)], axis=1)
        np.testing.assert_allclose(d[k], want, atol=1e-15)
    a = np.array([2.0, 3.0])
    np.testing.assert_allclose(root.derivative("a")(ROBOT, a, 1e-14)[:, 0], 0.5 / np.sqrt(a), rtol=1e-12)
    q, v = QUADRUPED.neutral(), RANDOM.uniform(-1, 1, QUADRUPED.nv)
    H = rk.crba(QUADRUPED, q)
    slope = energies.derivative("v")(QUADRUPED, q, v, 3.0)
    np.testing.assert_allclose(slope, H @ v * (1.0 + 1.1**2 + 1.2**2), rtol=1e-10)
    np.testing.assert_allclose(
        energies.derivative("v").derivative("v")(QUADRUPED, q, v, 1.0), H, rtol=1e-10, atol=1e-12
    )
    step, e = 1e-6, np.eye(QUADRUPED.nv)[8]
    ends = [energies(QUADRUPED, QUADRUPED.integrate(q, s * e), v, 2.0) for s in (step, -step)]
    by_q = energies.derivative("q")(QUADRUPED, q, v, 2.0)
    assert by_q[8] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


def test_what_a_loop_has_found_is_differentiated_by_its_equation():
    """The turns of a bisection have no derivative; its outcome has one, in loops and straight lines."""

    def program(tree, a, b, most):
        f = lambda x: x * x * x + a * x - b  # noqa: E731

        def halve(low, high):
            middle = 0.5 * (low + high)
            return cond(f(middle) > 0.0, lambda: (low, middle), lambda: (middle, high))

        low, high = while_loop(lambda low, high: high - low > 1e-13, halve, 0.0, 4.0, most=most)
        return sin(solution(f, 0.5 * (low + high)))

    loops = rk.function(
        lambda tree, a, b: for_range(b - b + 2.0, lambda k, s: s + program(tree, a, b, 60), 0.0),
        inputs={"a": (), "b": ()}, outputs={"y": ()},
    )  # fmt: skip
    a, b = np.array([1.0, 2.0]), np.array([2.0, 5.0])
    x = np.array(
        [np.real(r) for p, c in zip(a, b, strict=True) for r in np.roots([1, 0, p, -c]) if abs(r.imag) < 1e-9]
    )
    np.testing.assert_allclose(loops(ROBOT, a, b), 2 * np.sin(x), rtol=1e-10)
    for engine in (None, "python"):
        by_a, by_b = loops.derivative("a", "b")(ROBOT, a, b, engine=engine)
        slope = np.cos(x) / (3 * x * x + a)
        np.testing.assert_allclose(by_b[:, 0], 2 * slope, rtol=1e-9)
        np.testing.assert_allclose(by_a[:, 0], -2 * x * slope, rtol=1e-9)
    second = loops.derivative("b").derivative("b")(ROBOT, a, b)
    steps = [loops.derivative("b")(ROBOT, a, b + s)[:, 0] for s in (1e-5, -1e-5)]
    np.testing.assert_allclose(second[:, 0, 0], (steps[0] - steps[1]) / 2e-5, rtol=1e-6)


def test_gradients_and_pullbacks_go_through_loops_by_columns():
    a = np.array([2.0, 3.0, 0.7])
    for engine in (None, "python"):
        slope = root.gradient("a")(ROBOT, a, 1e-12, engine=engine)
        np.testing.assert_allclose(slope[:, 0], 0.5 / np.sqrt(a), rtol=1e-12)
    rng = np.random.default_rng(0)
    points, counts, weights = rng.normal(size=(4, POINTS, 3)), np.arange(4.0), rng.normal(size=(2, 4))
    jacobians = total.derivative("points")(ROBOT, points, counts)
    wanted = np.einsum("or,rok->rk", weights, np.stack([x.reshape(4, -1) for x in jacobians], axis=1))
    pullback = total._host(ROBOT, {}).pullback  # what JAX and PyTorch call
    found = pullback(points, counts, *weights)[0]
    np.testing.assert_allclose(np.reshape(found, (4, -1)), wanted, rtol=1e-12, atol=1e-12)


def test_second_derivatives_along_a_direction_go_through_loops():
    """Of Newton's root and of a sum of products by hand; of an algorithm as of its straight line."""
    rng = np.random.default_rng(7)
    a, step = np.array([2.0, 3.0, 0.7]), np.array([[1.0], [-2.0], [0.5]])
    for engine in (None, "python"):
        bent = root.hessian_vector("a")(ROBOT, a, 1e-14, step, engine=engine)
        np.testing.assert_allclose(bent, -0.25 * a[:, None] ** -1.5 * step, rtol=1e-11)
    third = root.hessian_vector("a").derivative("a")(ROBOT, 2.0, 1e-14, [1.0])
    np.testing.assert_allclose(np.ravel(third), 0.375 * 2.0**-2.5, rtol=1e-10)
    q, v, n = QUADRUPED.random_configuration(rng), rng.normal(size=18), np.array([0.0, 1.0, 3.0])
    factors = np.array([0.0, 1.0, 1.0 + 1.1**2 + 1.2**2])
    for name in ("q", "v"):
        d = rng.normal(size=18)
        straight = rk.functions["kinetic_energy"].hessian_vector(name)(QUADRUPED, q, v, d)
        qs, vs, ds = (np.tile(x, (3, 1)) for x in (q, v, d))
        for engine in (None, "python"):
            found = energies.hessian_vector(name)(QUADRUPED, qs, vs, n, ds, engine=engine)
            scale = abs(straight).max()
            np.testing.assert_allclose(found, np.outer(factors, straight), rtol=0, atol=1e-12 * scale)


def test_second_derivatives_of_a_solved_equation_in_a_loop():
    """x^3 + a x = b, whose root sin(x) is summed of: against the implicit function theorem by hand."""

    @rk.function(inputs={"p": (2,), "n": ()}, outputs={"y": ()})
    def sums(tree, p, n):
        a, b = p
        f = lambda x: x * x * x + a * x - b  # noqa: E731
        newton = while_loop(lambda x: abs(f(x)) > 1e-15, lambda x: x - f(x) / (3 * x * x + a), b, most=60)
        return for_range(n, lambda k, s: s + sin(solution(f, newton)), 0.0)

    a, b, n, d = 1.3, 2.1, 3.0, np.array([0.4, -0.7])
    x = next(r.real for r in np.roots([1, 0, a, -b]) if abs(r.imag) < 1e-9)
    slope = 3 * x * x + a
    dx = np.array([-x, 1.0]) / slope
    bent = -(6 * x * np.outer(dx, dx) + np.outer(dx, [1, 0]) + np.outer([1, 0], dx)) / slope
    H = n * (np.cos(x) * bent - np.sin(x) * np.outer(dx, dx))
    for engine in (None, "python"):
        found = sums.hessian_vector("p")(ROBOT, [a, b], n, d, engine=engine)
        np.testing.assert_allclose(found, H @ d, rtol=1e-12)


def test_words_in_one_function_and_functions_in_functions():
    @rk.function(inputs={"x": (3,), "n": ()}, outputs={"y": (3,)})
    def both(tree, x, n):
        def long(a, b):
            for _ in range(5):
                a, b = sin(a) * b + 0.5, 0.5 * a * a + 0.1
            return a + b

        shared = call(long, x[0], x[1]) + call(long, x[1], x[2])
        sums = vmap(lambda a, b: for_range(n, lambda k, s: s + a * b * (k + 1.0), 0.0))(x[:2], x[1:])
        return [shared, sums[0] + sums[1], root(tree, x[2] * x[2] + 1.0, 1e-12)]

    x = np.array([0.3, -0.4, 0.9])
    found = both(ROBOT, np.tile(x, (3, 1)), [0.0, 2.0, 4.0])
    np.testing.assert_allclose(
        found, both(ROBOT, np.tile(x, (3, 1)), [0.0, 2.0, 4.0], engine="python"), rtol=1e-13
    )
    np.testing.assert_allclose(found[:, 2], np.sqrt(x[2] ** 2 + 1.0), rtol=1e-12)


def test_what_is_known_is_a_straight_line_and_a_long_one_a_loop():
    def made(turns):
        @rk.function(inputs={"x": ()}, outputs={"y": ()})
        def spiral(tree, x):
            return for_range(turns, lambda k, s: sin(s) * x + 0.3 * s * s - 0.1, x)

        return spiral

    short, long = made(50), made(UNROLLED)
    assert short.program(ROBOT).counts["sincos"] == 50
    assert short.gradient("x")(ROBOT, 0.3) == pytest.approx(short.derivative("x")(ROBOT, 0.3)[0], rel=1e-12)
    assert long(ROBOT, 0.3) == pytest.approx(long(ROBOT, 0.3, engine="python"), rel=1e-12)
    assert long.flat(ROBOT).has_loops and not short.flat(ROBOT).has_loops
    with pytest.raises(RunTimeLoop, match="no straight line"):
        root.program(ROBOT)


def test_all_that_it_reads_is_read_once(monkeypatch):
    """Single states, batches and derivatives are made of one recording, whatever changes later."""
    factor = [2.0]

    @rk.function(inputs={"x": (), "n": ()}, outputs={"y": ()})
    def scaled(tree, x, n):
        return for_range(n, lambda k, s: s + factor[0] * x, 0.0)

    assert scaled(ROBOT, 1.0, 3.0) == 6.0
    factor[0] = 5.0
    assert scaled(ROBOT, [1.0, 1.0], [3.0, 1.0]).tolist() == [6.0, 2.0]
    assert scaled.derivative("x")(ROBOT, 1.0, 3.0).tolist() == [6.0]
    assert scaled(ROBOT, 1.0, 3.0, engine="python") == 15.0
    fresh = rk.load_urdf(rk.find_robot("double_pendulum"))
    assert scaled(fresh, 1.0, 3.0) == 15.0


ERRORS = {
    "index": (lambda x, n: for_range(n, lambda k, s: s + x[k], 0.0), 4.0, "out of range|has 3 numbers"),
    "whole": (lambda x, n: for_range(n * 1e300, lambda k, s: s, 0.0), 1.0, "beyond 32 bits"),
    "kinds": (lambda x, n: for_range(n, lambda k, s: (s, s), 0.0), 1.0, "in number|carries 1 numbers"),
    "test": (lambda x, n: while_loop(lambda s: s, lambda s: s - 1.0, n), 1.0, "outcome of a comparison"),
    "branch": (
        lambda x, n: cond(n > 0.5, lambda: (x[0], n), lambda: for_range(n, lambda k, s: s, 0.0)), 1.0, None
    ),
    "real index": (lambda x, n: for_range(n, lambda k, s: s + x[n * 1.0], 0.0), 1.0, "whole"),
}  # fmt: skip


# Plain Python runs one branch, so it cannot see that two differ.
BOTH = [
    (name, engine) for name in ERRORS for engine in (None, "python") if (name, engine) != ("branch", "python")
]


@pytest.mark.parametrize(("name", "engine"), BOTH)
def test_errors_name_the_function_and_the_line(name, engine):
    body, n, message = ERRORS[name]
    program = lambda tree, x, n: body(x, n)  # noqa: E731
    wrong = rk.function(program, inputs={"x": (3,), "n": ()}, outputs={"y": ()}, name="wrong")
    with pytest.raises((FunctionError, ValueError), match=message or "must be the same") as caught:
        wrong(ROBOT, [1.0, 2.0, 3.0], n, engine=engine)
    assert "wrong: " in str(caught.value) or name == "whole"
    assert "test_own_loops.py" in str(caught.value) or name == "whole"


def test_a_function_that_calls_itself_is_told_to_loop():
    def halved(x):
        return cond(x > 0.5, lambda: call(halved, 0.5 * x), lambda: x)

    @rk.function(inputs={"x": ()}, outputs={"y": ()})
    def recursive(tree, x):
        return halved(x)

    message = r"recursive: .* calls itself without end.*write a loop"
    with pytest.raises(FunctionError, match=message) as caught:
        recursive(ROBOT, 3.0)
    assert "test_own_loops.py" in str(caught.value)
    assert recursive(ROBOT, 3.0, engine="python") == 0.375  # there the condition ends it


def test_joints_are_no_array():
    @rk.function(inputs={"q": "q", "n": ()}, outputs={"y": ()})
    def sum_of(tree, q, n):
        return for_range(n, lambda k, s: s + q[k + 1][0], 0.0)

    with pytest.raises(FunctionError, match="loop over them with for, in Python"):
        sum_of(ROBOT, [0.1, 0.2], 2.0)


def test_arguments_are_checked_as_for_all_functions():
    with pytest.raises(rk.ShapeError, match=r"points: expected shape \(5, 3\)"):
        total(ROBOT, np.zeros(15), 1.0)
    with pytest.raises(rk.InvalidValue, match="count: expected finite numbers"):
        total(ROBOT, np.zeros((5, 3)), np.nan)
    q, v = QUADRUPED.neutral(), np.zeros(QUADRUPED.nv)
    for _ in range(2):  # the first call and the short way of all others
        with pytest.raises(rk.InvalidValue, match="unit quaternion"):
            energies(QUADRUPED, 2.0 * q, v, 1.0)
        assert energies(QUADRUPED, q, v, 1.0) == 0.0
    out = np.empty(6)
    arguments = CASES["root"][2]
    assert root(ROBOT, *arguments, out=out) is out and (out == root(ROBOT, *arguments)).all()


def test_without_a_compiler_it_runs_in_python(monkeypatch):
    monkeypatch.setattr(maker, "engine", lambda: "python")
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    points, count = CASES["total"][2]
    np.testing.assert_allclose(
        total(robot, points, count).total, total(ROBOT, points, count).total, rtol=1e-13, atol=1e-15
    )


@rk.function(inputs={"x": (6,), "q": "q", "n": ()}, outputs={"y": ()})
def doubled(tree, x, q, n):
    """An entry of memory whose size is known only when it runs; below 0 there is none."""
    count = whole(n)
    a = zeros(count + 1)

    def write(k):
        a[k] = 2.0 * x[k]

    for_range(count, write)
    return a[count] + x[whole(n - 1.0)] + q[1][0]


def test_c_of_a_function_with_memory_runs_its_check(tmp_path):
    """The program gives it a workspace, and a state at which it does not end early."""
    header, source, check = doubled.codegen(ROBOT, tmp_path)
    done = run_check(tmp_path, [source, check])
    assert done.returncode == 0 and done.stdout.count("right") == 1, done.stdout
    said = header.read_text()
    assert "double *work, int work_size" in said and "Returns 0, or why it ended" in said
    assert f"0  {ROBOT.joint_names[0]}" in said


def test_derivatives_of_long_functions_go_through_the_directions_in_a_loop(monkeypatch):
    """Their code is that of one direction; numbers and second derivatives are as of those side by side."""
    q, v, n = np.array([0.3, -0.2]), np.array([1.0, 0.5]), np.array([0.0, 2.0, 3.0])
    expected = energies.derivative("q", "v")(ROBOT, q, v, n)
    second = root.derivative("a").derivative("a")(ROBOT, 2.0, 1e-12)
    bent = energies.hessian_vector("q")(ROBOT, q, v, n, np.tile([0.3, 1.0], (3, 1)))
    monkeypatch.setattr(differentiate, "UNROLLED", 0)
    monkeypatch.setattr(differentiate, "jacobian_with_loops", None)  # side by side
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    found = energies.derivative("q", "v")(robot, q, v, n)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(root.derivative("a").derivative("a")(robot, 2.0, 1e-12), second, rtol=1e-12)
    found = energies.hessian_vector("q")(robot, q, v, n, np.tile([0.3, 1.0], (3, 1)))
    np.testing.assert_allclose(found, bent, rtol=1e-12, atol=1e-15)


def test_a_list_that_is_given_to_another_function_is_its_input():
    """Which it may index by what is known only later, as what callers give."""

    @rk.function(inputs={"x": (3,), "n": ()}, outputs={"y": ()})
    def inner(tree, x, n):
        return for_range(n, lambda k, s: s + x[k], 0.0)

    @rk.function(inputs={"x": (3,), "n": ()}, outputs={"y": ()})
    def outer(tree, x, n):
        doubled = inner(tree, [2.0 * each for each in x], n)
        return doubled + for_range(n, lambda k, s: s + inner(tree, [x[k], 1.0, k], n=1.0 * k), 0.0)

    x, n = [0.5, 2.0, 4.0], np.array([0.0, 1.0, 3.0])
    for engine in (None, "python"):
        assert outer(ROBOT, x, n, engine=engine).tolist() == [0.0, 1.0, 13.0 + 2.0 + 4.0 + 1.0]
    assert outer.derivative("x")(ROBOT, x, 2.0).tolist() == [2.0, 3.0, 0.0]


def _missing(*_):
    raise llvm.CompilerMissing("no llvmlite")


@pytest.mark.parametrize("batch", [False, True])
def test_where_the_compiler_is_missing_it_runs_in_python(monkeypatch, batch):
    """As all functions do, whichever is called first: values, and derivatives."""
    monkeypatch.setattr(loop_kernel.LoopKernel, "_replace", _missing)
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    points, count = CASES["total"][2]
    given = (points, count) if batch else (points[0], count[0])
    for function in (total, total.derivative("points")):
        np.testing.assert_array_equal(function(robot, *given)[0], function(ROBOT, *given, engine="python")[0])


def test_a_value_that_leaves_its_loop_in_what_is_returned():
    def leaving(tree, x, n):
        kept = []
        for_range(n, lambda k: kept.append(x[k]))
        return kept[0]

    wrong = rk.function(leaving, inputs={"x": (3,), "n": ()}, outputs={"y": ()})
    with pytest.raises(FunctionError, match=r"outside of it: carry it(.|\n)*made at test_own_loops.py:\d+"):
        wrong(ROBOT, [1.0, 2.0, 3.0], 2.0)


@pytest.mark.parametrize("map_it", [False, True])
@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("alone", [False, True])
def test_a_value_that_leaves_a_called_function_of_a_straight_line(map_it, which, alone):
    def leaving(tree, x):
        kept = []

        def square(y):
            kept.extend([y, y * y])
            return kept[-1] + 1.0

        found = vmap(square)(x) if map_it else [call(square, y) for y in x]
        return kept[which] if alone else found[0] + kept[which]

    wrong = rk.function(leaving, inputs={"x": (3,)}, outputs={"y": ()})
    with pytest.raises(FunctionError, match=r"a value of a called function .* return it from the function"):
        wrong(ROBOT, [1.0, 2.0, 3.0])


def test_a_comparison_is_no_number():
    for program in (
        lambda tree, n: n + (n > 1.0),
        lambda tree, n: for_range(n, lambda k, s: s + (k > 1), 0.0),
    ):
        with pytest.raises(FunctionError, match="a comparison is no number: where"):
            rk.function(program, inputs={"n": ()}, outputs={"y": ()})(ROBOT, 3.0)


def test_derivatives_name_the_line_of_a_wrong_index():
    """They are played back from the recording, whose lines they keep."""
    read = rk.function(
        lambda tree, x, n: x[whole(n)] * for_range(n, lambda k, s: s + 1.0, 0.0),
        inputs={"x": (3,), "n": ()},
        outputs={"y": ()},
        name="read",
    )
    for function in (read, read.derivative("x")):
        with pytest.raises(FunctionError, match=r"has 3 entries(.|\n)*here at test_own_loops.py:\d+: lambda"):
            function(ROBOT, [1.0, 2.0, 3.0], 3.0)


OF_NUMPY = {
    "counts": (
        lambda x, n: for_range(np.array(2), lambda k, s: s + x[whole(np.int64(1))], whole(n) * 0.0), 8.0
    ),
    "indices": (lambda x, n: for_range(n, lambda k, s: s + x[maximum(np.int64(1), k)], 0.0), 4.0 + 4.0),
    "functions": (lambda x, n: for_range(n, lambda k, s: s + np.sqrt(k) * np.maximum(k, 1), 0.0), 1.0),
    "choices": (lambda x, n: for_range(n, lambda k, s: s + x[where(k > 0, np.int64(0), k)], 0.0), 2.0),
    "sizes": (lambda x, n: zeros(np.array(3))[whole(n)] + x[whole(np.array(n) * 1.0)], 0.5),
    "carried": (
        lambda x, n: sum(for_range(n, lambda k, s: s * 2.0 + np.array([x[k], 1.0]), np.zeros(2))), 6.0 + 3.0
    ),
    "tested": (
        lambda x, n: while_loop(lambda s: s[0] < n, lambda s: s + np.array([1.0, x[0]]), np.zeros(2))[1], 2.0
    ),
    "chosen": (
        lambda x, n: cond(whole(n) > 1, lambda: np.array([[x[0], x[1]]]), lambda: np.zeros((1, 2)))[0, 1],
        4.0,
    ),
    "given": (lambda x, n: call(lambda a, k: a * k, np.array([x[0], x[1]]), whole(n))[1], 8.0),
    "no axes": (lambda x, n: for_range(n, lambda k, s: s + np.array(x[k]), np.array(0.0)), 5.0),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numbers_and_arrays_of_numpy_in_loops(name):
    """They are the numbers that they hold, and what is carried and chosen may be arrays of numbers."""
    program, wanted = OF_NUMPY[name]
    f = rk.function(
        lambda tree, x, n: program(x, n), inputs={"x": (3,), "n": ()}, outputs={"y": ()}, name="f"
    )
    x = np.array([[1.0, 4.0, 0.5], [2.0, 3.0, 4.0]])
    assert f(ROBOT, x[0], 2.0) == wanted == f(ROBOT, x[0], 2.0, engine="python")
    assert f(ROBOT, x, [2.0, 1.0])[0] == wanted
    np.testing.assert_allclose(
        f.derivative("x")(ROBOT, x[0], 2.0) @ [1.0, 0.0, 0.0],
        (f(ROBOT, x[0] + [0.5, 0.0, 0.0], 2.0) - f(ROBOT, x[0] - [0.5, 0.0, 0.0], 2.0)), atol=1e-12,
    )  # fmt: skip


def test_what_no_loop_carries_is_named_with_the_line():
    program = lambda tree, x, n: for_range(n, lambda k, s: s * 2.0, Vector3(*x)).x  # noqa: E731
    wrong = rk.function(program, inputs={"x": (3,), "n": ()}, outputs={"y": ()}, name="f")
    with pytest.raises(
        FunctionError, match=r"this is a Vector3(.|\n)*test_own_loops.py, line .*, in <lambda>"
    ):
        wrong(ROBOT, [1.0, 2.0, 3.0], 2.0)
    with pytest.raises(FunctionError, match="one element at a time: write a loop\n"):
        rk.function(
            lambda tree, n: zeros(2).__setitem__(slice(0, 2), n), inputs={"n": ()}, outputs={"y": ()}
        )(ROBOT, 2.0, engine="python")


def test_no_rows():
    assert total(ROBOT, np.zeros((0, POINTS, 3)), np.zeros(0)).total.shape == (0,)
    assert total.derivative("points")(ROBOT, np.zeros((0, POINTS, 3)), np.zeros(0))[0].shape[0] == 0


def test_arrays_of_numpy_say_what_to_use_instead():
    table = np.arange(3.0)
    wrong = rk.function(
        lambda tree, n: for_range(n, lambda k, s: s + table[k], 0.0),
        inputs={"n": ()},
        outputs={"y": ()},
        name="f",
    )
    with pytest.raises(FunctionError, match=r"copy them to zeros\(n\)"):
        wrong(ROBOT, 2.0)


def test_tables_of_known_numbers():
    """A list of Python's has no entry at a place that is known only later; zeros has."""

    @rk.function(inputs={"x": ()}, outputs={"y": ()})
    def stepped(tree, x):
        table = zeros(3)
        for k, value in enumerate((0.5, 2.0, 3.5)):
            table[k] = value
        return table[whole(x)]

    assert stepped(ROBOT, [0.0, 1.9, 2.0]).tolist() == [0.5, 2.0, 3.5]


def test_c_code_with_loops_runs_its_check(tmp_path):
    for function, robot in ((total, ROBOT), (sorted_part, ROBOT), (root.derivative("a"), ROBOT)):
        _, source, check = function.codegen(robot, tmp_path)
        done = run_check(tmp_path, [source, check])
        assert done.returncode == 0 and "right" in done.stdout, done.stdout


def test_no_call_waits_for_that_of_another_thread(monkeypatch):
    """A child that is forked meanwhile has the locks of that thread, and nobody who gives them back."""
    two, begun, end = root(ROBOT, 2.0, 1e-12), threading.Event(), threading.Event()
    found, done = [], FlatKernel._done

    def slow(kernel, call):
        if threading.current_thread() is first:
            begun.set()
            end.wait(2.0 * waiting.PATIENCE)
        done(kernel, call)

    def called(a):
        found.append(root(ROBOT, a, 1e-12))

    monkeypatch.setattr(FlatKernel, "_done", slow)
    first, second = (threading.Thread(target=called, args=(a,), daemon=True) for a in (9.0, 2.0))
    first.start()
    assert begun.wait(waiting.PATIENCE)
    second.start()
    second.join(waiting.PATIENCE)
    assert found == [two]
    end.set()
    first.join(waiting.PATIENCE)
    assert found[1:] == [pytest.approx(3.0)]


@pytest.mark.parametrize("begin", [0, 0.0])
def test_a_search_whose_first_turn_is_certain_is_a_loop(begin):
    """The index is known in the first turn and becomes a number of its row: the loop is not unrolled."""

    @rk.function(inputs={"x": (6,), "sought": ()}, outputs={"at": ()})
    def search(tree, x, sought):
        def look(i, there):
            return cond(x[i] == sought, lambda: (i, there + 1), lambda: (i + 1, there))

        return while_loop(lambda i, there: (i < 6) & (there < 1), look, 0, begin)[0]

    x = np.tile(np.arange(6.0), (4, 1))
    np.testing.assert_array_equal(search(ROBOT, x, np.array([0.0, 3.0, 9.0, 5.0])), [0, 3, 6, 5])


def test_powers_whose_exponent_is_the_index_of_a_loop():
    """Sums of x**k, 2**k and (-1)**k over k, also where x < 0, k < 0 and the index itself is the base."""

    @rk.function(inputs={"x": (), "first": (), "count": ()}, outputs={"s": (4,)})
    def powers(tree, x, first, count):
        def add(i, *sums):
            k = whole(first) + i
            terms = x**k, 2**k, (-1) ** k, (i + 1) ** k
            return [s + term for s, term in zip(sums, terms, strict=True)]

        return [for_range(count, add, 0.0, 0.0, 0.0, 0.0)]

    x, first, count = np.array([-1.5, 0.7, 2.0]), np.array([-3.0, 0.0, 2.0]), np.array([7.0, 0.0, 5.0])
    found, slope = powers(ROBOT, x, first, count), powers.derivative("x")(ROBOT, x, first, count)
    for row in range(3):
        k = first[row] + np.arange(count[row])
        terms = [x[row] ** k, 2.0**k, (-1.0) ** k, (np.arange(count[row]) + 1) ** k]
        np.testing.assert_allclose(found[row], [sum(term) for term in terms], rtol=1e-14, atol=1e-14)
        np.testing.assert_array_equal(powers(ROBOT, x[row], first[row], count[row]), found[row])
        rates = (k * x[row] ** (k - 1)).sum(), 0.0, 0.0, 0.0
        np.testing.assert_allclose(slope[row].ravel(), rates, rtol=1e-13, atol=1e-13)
