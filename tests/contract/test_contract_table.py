"""What every row of the table of algorithms promises, from the row alone."""

from __future__ import annotations

from dataclasses import replace

import ladder
import numpy as np
import pytest
import table_calls
from ladder import State, relative
from table_calls import PUBLIC, arrays, batch_of, call, of_states, values

import robokit as rk
from robokit.dynamics import build, layout, table
from robokit.model import couple

B = 3


def follower(base: str = "floating") -> rk.Robot:
    """A branched robot with a mimic joint on each branch; their coordinates are its own."""
    robot = rk.ModelBuilder("follower")
    rng = np.random.default_rng(3)
    for k in range(6):
        mass = float(rng.uniform(0.5, 2.0))
        robot.link(f"l{k}", mass, rng.uniform(-0.2, 0.2, 3), ladder.inertia(rng, mass))
    place = [rk.Placement(ladder.rotation(rng), rng.uniform(-0.3, 0.3, 3)) for _ in range(5)]
    robot.joint("a", "revolute", "l0", "l1", place[0], (0, 1, 0))
    robot.joint("b", "revolute", "l1", "l2", place[1], (1, 2, 0), mimic=rk.Mimic("a", -1.5, 0.2))
    robot.joint("c", "prismatic", "l0", "l3", place[2], (0, 0, 1))
    robot.joint("d", "revolute", "l3", "l4", place[3], (1, 0, 0), mimic=rk.Mimic("c", 0.7, -0.1))
    robot.joint("e", "revolute", "l4", "l5", place[4], (0, 1, 1))
    return robot.build(base)


@pytest.fixture(scope="module")
def tree():
    """The richest robot: every joint kind on a floating base."""
    return ladder.random_tree(0, "floating")


@pytest.fixture(scope="module")
def states(tree):
    many = [State(tree, k) for k in range(B)]
    return [values(tree, s) for s in many], batch_of(tree, many)


def test_every_row_has_its_public_function():
    inner = {"ltdl_solve", "wrenches_in_bodies"}
    assert {row.name for row in table.ALGORITHMS} - inner == set(PUBLIC)
    assert set(PUBLIC) <= set(rk.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_shapes_are_those_of_the_kind_and_rows_of_a_batch_are_its_states(tree, states, name):
    each, batch = states
    shapes = PUBLIC[name].result.shapes(tree)
    many = arrays(call(name, tree, batch))
    assert [x.shape for x in many] == [(B, *shape) for shape in shapes]
    for k in range(B):
        one = arrays(call(name, tree, each[k]))
        assert [x.shape for x in one] == shapes
        assert max(relative(x[k], y) for x, y in zip(many, one, strict=True)) < 1e-11


@pytest.mark.parametrize("name", PUBLIC)
def test_machine_code_computes_the_text(tree, states, name):
    given = states[0][0]
    expected = table_calls.plain(PUBLIC[name], tree, given)
    for how in ({}, {"engine": "python"}):
        got = arrays(call(name, tree, given, **how))
        assert max(relative(x, y) for x, y in zip(got, expected, strict=True)) < 1e-11


@pytest.mark.parametrize("name", of_states("dtype"))
def test_single_precision_is_asked_for_by_dtype(tree, states, name):
    for given in (states[0][0], states[1]):
        how = {"method": "aba"} if name == "forward_dynamics" else {}  # by H it warns
        rough = 5e-2 if PUBLIC[name].result.finite else 1e-4
        several = (call(name, tree, given, **more, **how) for more in ({"dtype": "float32"}, {}))
        for got, expected in zip(*map(arrays, several), strict=True):
            assert got.dtype == np.float32 or got.ndim == 0
            assert relative(got, expected) < rough


@pytest.mark.parametrize("name", [n for n in of_states("out") if n != "forward_kinematics"])
def test_out_is_written_to_and_returned(tree, states, name):
    for given in (states[0][0], states[1]):
        expected = arrays(call(name, tree, given))
        outs = [np.full(x.shape, np.nan) for x in expected]
        got = call(name, tree, given, out=outs if len(outs) > 1 else outs[0])
        written = got if len(outs) > 1 else (got,)
        assert all(a is b and (a == c).all() for a, b, c in zip(outs, written, expected, strict=True))


@pytest.mark.parametrize("name", of_states("f_ext"))
def test_external_forces_change_the_result_and_no_forces_do_not(tree, states, name):
    given = states[0][0]
    rows = State(tree).f_body
    without, none, some = (arrays(call(name, tree, given, f_ext=x)) for x in (None, 0.0 * rows, rows))
    assert max(relative(x, y) for x, y in zip(none, without, strict=True)) < 1e-12
    assert max(relative(x, y) for x, y in zip(some, without, strict=True)) > 1e-3


def projected(kind, G, full):
    """The rule of a coupling v_full = G v for a kind of result, in matrices."""
    if kind in (layout.FORCE, layout.REGRESSOR):
        return G.T @ full
    if kind in (layout.MATRIX, layout.MATRICES):
        return G.T @ full @ G
    if kind in (layout.COLUMNS, layout.POINT_COLUMNS, layout.SETS_OF_COLUMNS):
        return full @ G
    return full


@pytest.mark.parametrize("name", of_states())
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_coupled_joints_follow_the_rule_of_the_kind(name, base):
    full = follower(base)
    robot = couple(full)
    kind, G = PUBLIC[name].result, robot.coupling.G
    given = values(robot, State(robot))
    results = arrays(call(name, robot, given))
    if kind in (layout.INVERSE, layout.INVERSES):
        assert relative(results[-1] @ rk.crba(robot, given["q"]), np.eye(robot.nv)) < 1e-11
        if kind is layout.INVERSES:
            a = rk.aba(robot, given["q"], given["v"], given["tau"])
            by = rk.rnea_derivatives(robot, given["q"], given["v"], a)
            assert all(relative(results[-1] @ -x, y) < 1e-11 for x, y in zip(by, results, strict=False))
        return
    if kind is layout.MOTION:
        (got,) = results
        H, C = rk.crba(robot, given["q"]), rk.bias_forces(robot, given["q"], given["v"])
        assert relative(H @ got + C, given["tau"]) < 1e-9
        return
    wide = given | {x: G @ given[x] for x in ("v", "a")}
    wide["q"] = np.array(robot.coupling.full_q(given["q"]))
    expected = arrays(call(name, full, wide))
    if kind is layout.ENTRIES:
        rows, columns = rk.inertia_entries(robot)
        expected = [rk.crba(robot, given["q"])[rows, columns]]
    if kind is layout.REGRESSOR_ENTRIES:
        expected = [rk.regressor(robot, *(given[x] for x in "qva"))[rk.regressor_entries(robot)]]
    for got, wanted in zip(results, expected, strict=True):
        assert relative(got, projected(kind, G, wanted)) < 1e-11


@pytest.mark.parametrize("name", of_states())
def test_row_k_is_computed_with_the_inertias_of_sample_k(name):
    robot = ladder.chain(4, "floating")
    scale = np.array([1.0, 1.7, 0.6])[:, None, None]
    varied = robot.with_inertias(robot.inertial_parameters * scale)
    batch = batch_of(robot, [State(robot, k) for k in range(B)])
    results = arrays(call(name, varied, batch))
    for k in range(B):
        alone = {x: batch[x][k] if x in layout.INPUTS else batch[x] for x in batch}
        expected = arrays(call(name, varied.sample(k), alone))
        assert max(relative(x[k], y) for x, y in zip(results, expected, strict=True)) < 1e-11


def test_a_row_counts_whatever_its_text_is_called():
    # Once the table looked at which function a row held: a copy gave other numbers on coupled joints.
    def another_aba(tree, q, qd, tau, f_ext=None):
        return table.aba(tree, q, qd, tau, f_ext)

    original = table.KERNELS["aba"]
    copy = replace(original, text=another_aba, name="another_aba")
    robot = couple(follower())
    s = State(robot)
    flat = [x.tolist() for x in (s.q, s.v, s.tau)]
    assert build.flat_text(copy, robot)(*flat) == build.flat_text(original, robot)(*flat)


def test_a_motion_without_a_text_for_coupled_joints_is_refused():
    with pytest.raises(ValueError, match=r"aba: no projection .* text for"):
        table.Algorithm(table.aba, "q v tau", layout.MOTION, "a")


def test_inputs_and_choices_without_a_row_are_refused():
    with pytest.raises(ValueError, match=r"crba: layout.py has no row for colour, frame"):
        table.Algorithm(table.crba, "q colour", layout.MATRIX, "H", about="frame")


def test_a_chain_of_mimics_is_composed_from_its_leader_on():
    def chain(*multipliers):
        b = rk.ModelBuilder("chain").link("l0")
        for k, m in enumerate((None, *multipliers)):
            b.link(f"l{k + 1}", 1.0, inertia=np.eye(3))
            mimic = None if m is None else rk.Mimic(f"j{k - 1}", m)
            b.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", axis=(0, 0, 1), mimic=mimic)
        return b.build()

    # From the other end the product of the last two would overflow.
    assert couple(chain(1e-200, 1e200, 1e200)).coupling.v_from[-1] == (0, pytest.approx(1e200))
    with pytest.raises(rk.ModelError, match=r"'j2' follows 'j0' by inf q \+ 0, which is not finite"):
        couple(chain(1e200, 1e200))
