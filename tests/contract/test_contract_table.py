"""What every row of the table of algorithms promises, from the row alone."""

from __future__ import annotations

import functools
from dataclasses import replace

import ladder
import numpy as np
import pytest
import table_calls
from ladder import State, follower, relative
from table_calls import PUBLIC, arrays, batch_of, call, of_states, values

import robokit as rk
from robokit.dynamics import build, layout, table
from robokit.model import couple

B = 3


LARGE = {
    "coriolis_matrix",
    "inverse_mass_matrix",
    *(name for name in PUBLIC if "derivatives" in name or "regressor" in name),
}
"""Rows whose code for that robot takes seconds to compile: their own tests have every joint kind."""


@functools.cache
def robot_of(name: str) -> rk.Robot:
    """Every joint kind once on a floating base; a small robot for large rows."""
    if name in LARGE:
        return ladder.random_tree(0, "floating", ("revolute", "spherical", "prismatic"), n=3)
    return ladder.random_tree(0, "floating", n=len(ladder.ALL_KINDS))


@functools.cache
def states_of(robot: rk.Robot):
    """Its states one by one, and as a batch."""
    many = [State(robot, k) for k in range(B)]
    return [values(robot, s) for s in many], batch_of(robot, many)


@pytest.fixture
def tree(name):
    """The robot of a row."""
    return robot_of(name)


@pytest.fixture
def states(tree):
    """States of that robot."""
    return states_of(tree)


def test_every_row_has_its_public_function():
    inner = {"body_poses", "body_reactions", "ltdl_solve", "regressor_armature", "wrenches_in_bodies"}
    assert {row.name for row in table.ALGORITHMS} - inner == set(PUBLIC)
    assert set(PUBLIC) <= set(rk.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_shapes_are_those_of_the_kind_and_rows_of_a_batch_are_its_states(tree, states, name):
    each, batch = states
    shapes = table_calls.shapes(name, tree)
    many = arrays(call(name, tree, batch))
    assert [x.shape for x in many] == [(B, *shape) for shape in shapes]
    for k in range(B):
        one = arrays(call(name, tree, each[k]))
        assert [x.shape for x in one] == shapes
        assert max(relative(x[k], y) for x, y in zip(many, one, strict=True)) < 1e-11


@pytest.mark.parametrize("name", PUBLIC)
def test_machine_code_computes_the_function(tree, states, name):
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
        pairs = (
            arrays(call(name, tree, given, dtype="float32", **how)),
            arrays(call(name, tree, given, **how)),
        )
        for got, expected in zip(*pairs, strict=True):
            assert got.dtype == np.float32 or got.ndim == 0
            assert relative(got, expected) < rough


def _in(dtype, given):
    """The arguments with their arrays of floats in another type."""
    return {
        k: x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype == float else x for k, x in given.items()
    }


@pytest.mark.filterwarnings("ignore:forward_dynamics")
@pytest.mark.parametrize("name", PUBLIC)
def test_the_type_of_the_result_is_that_of_the_arrays_of_floats_given(tree, states, name):
    """float32 in, float32 out, to the last bit what dtype asks for; NumPy's rule where types are mixed."""
    row, with_dtype = PUBLIC[name], "dtype" in table_calls.TAKES[name]
    for given in (states[0][0], states[1]):
        low = _in("float32", given)
        got = arrays(call(name, tree, low))
        assert all(x.dtype == np.float32 or x.ndim == 0 for x in got)
        if with_dtype:
            asked = arrays(call(name, tree, low, dtype="float32"))
            assert all(np.array_equal(x, y) for x, y in zip(got, asked, strict=True))
            wide = arrays(call(name, tree, low, dtype="float64"))
            assert all(x.dtype == np.float64 for x in wide)
        others = [x for x in table_calls.inputs(row) if x in given][1:]
        for mixed in [low | {x: given[x]} for x in others] if with_dtype else []:
            assert all(x.dtype == np.float64 for x in arrays(call(name, tree, mixed)))
        lists = low | {x: given[x].tolist() for x in others}
        assert all(x.dtype == np.float32 or x.ndim == 0 for x in arrays(call(name, tree, lists)))


@pytest.mark.filterwarnings("ignore:forward_dynamics")
@pytest.mark.parametrize("name", [n for n in of_states("out") if n != "forward_kinematics"])
def test_out_may_raise_the_type_but_not_lower_it(tree, states, name):
    low = _in("float32", states[1])
    for dtype, given in (("float64", low), ("float32", low)):
        expected = arrays(call(name, tree, given, dtype=dtype))
        outs = [np.full(x.shape, np.nan, dtype) for x in expected]
        found = arrays(call(name, tree, given, out=outs if len(outs) > 1 else outs[0]))
        assert all(
            x is out and np.array_equal(out, y) for x, out, y in zip(found, outs, expected, strict=True)
        )
    outs = [np.full(x.shape, np.nan, "float32") for x in expected]
    with pytest.raises(rk.ShapeError, match=r"out(\[0\])?: expected float64"):
        call(name, tree, states[1], out=outs if len(outs) > 1 else outs[0])


@pytest.mark.parametrize("name", of_states("f_ext"))
def test_forces_from_outside_count_as_arrays(tree, states, name):
    low = _in("float32", states[0][0])
    link, rows = tree.link_names[-1], State(tree).f_body
    for f_ext, dtype in (
        (rows, np.float64),
        (rows.astype("float32"), np.float32),
        ({link: rows[0]}, np.float64),
        ({link: rows[0].astype("float32")}, np.float32),
        ({link: rows[0].tolist()}, np.float32),
    ):
        how = {"method": "aba"} if name == "forward_dynamics" else {"engine": "python"}
        assert {x.dtype for x in arrays(call(name, tree, low, f_ext=f_ext, **how))} == {np.dtype(dtype)}


@pytest.mark.parametrize("name", [n for n in of_states("out") if n != "forward_kinematics"])
def test_out_is_written_to_and_returned(tree, states, name):
    for given in (states[0][0], states[1]):
        expected = arrays(call(name, tree, given))
        outs = [np.full(x.shape, np.nan) for x in expected]
        found = call(name, tree, given, out=outs if len(outs) > 1 else outs[0])
        assert all(x is out for x, out in zip(arrays(found), outs, strict=True))
        assert all((out == x).all() for out, x in zip(outs, expected, strict=True))


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
    if kind is layout.HYBRID:
        tau, a = call(name, robot, given)
        assert relative(rk.rnea(robot, given["q"], given["v"], a), tau) < 1e-9
        return
    if kind is layout.BASE_AND_FORCES or (PUBLIC[name].floating and base == "fixed"):
        return  # test_hybrid_dynamics.py has it; there is nothing to ask of a fixed base
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
    expected = arrays(call(name, full, wide, engine="python"))
    if kind is layout.ENTRIES:
        rows, columns = rk.inertia_entries(robot)
        expected = [rk.crba(robot, given["q"])[rows, columns]]
    if kind is layout.REGRESSOR_ENTRIES:
        expected = [rk.regressor(robot, *(given[x] for x in "qva"))[rk.regressor_entries(robot)]]
    for got, wanted in zip(results, expected, strict=True):
        assert relative(got, projected(kind, G, wanted)) < 1e-11


@pytest.mark.parametrize("name", of_states())
def test_row_k_is_computed_with_the_inertias_of_sample_k(name):
    robot = ladder.chain(2, "floating")
    scale = np.array([1.0, 1.7, 0.6])[:, None, None]
    varied = robot.with_inertias(robot.inertial_parameters * scale)
    batch = batch_of(robot, [State(robot, k) for k in range(B)])
    many = arrays(call(name, varied, batch))
    for k in range(B):
        alone = {x: batch[x][k] if x in layout.INPUTS else batch[x] for x in batch}
        for got, expected in zip(
            many, arrays(call(name, varied.sample(k), alone, engine="python")), strict=True
        ):
            assert relative(got[k], expected) < 1e-11


def test_a_row_counts_whatever_its_function_is_called():
    # Once the table looked at which function a row held: a copy gave other numbers on coupled joints.
    def another_aba(tree, q, qd, tau, f_ext=None):
        return table.aba(tree, q, qd, tau, f_ext)

    original = table.KERNELS["aba"]
    copy = replace(original, function=another_aba, name="another_aba")
    robot = couple(follower())
    s = State(robot)
    flat = [x.tolist() for x in (s.q, s.v, s.tau)]
    assert build.flat_function(copy, robot)(*flat) == build.flat_function(original, robot)(*flat)


def test_a_motion_without_a_function_for_coupled_joints_is_refused():
    with pytest.raises(ValueError, match=r"aba: no projection .* function for"):
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


@pytest.mark.parametrize("rows", [(), (4,)])
def test_configurations_moved_along_the_manifold_keep_the_type(rows):
    robot = ladder.random_tree(0, "floating", n=3)
    q = np.broadcast_to(robot.random_configuration(0), (*rows, robot.nq)).astype(np.float32)
    dv = np.full((*rows, robot.nv), 0.1, np.float32)
    assert robot.integrate(q, dv).dtype == robot.difference(q, robot.integrate(q, dv)).dtype == np.float32
    assert robot.integrate(q, dv.tolist()).dtype == np.float32
    assert robot.integrate(q.astype(float), dv).dtype == robot.integrate(q, dv.astype(float)).dtype == float


def test_own_functions_and_derivatives_keep_the_type():
    robot = ladder.random_tree(0, "fixed", n=3)
    q = robot.random_configuration(0).astype(np.float32)
    slope = rk.functions["potential_energy"].gradient("q")
    assert slope(robot, q, engine="python").dtype == np.float32
    place = rk.functions["link_jacobian"]
    for at, dtype in (
        (np.zeros(3), np.float64),
        (np.zeros(3, np.float32), np.float32),
        ([0, 0, 0], np.float32),
    ):
        assert place(robot, q, at, link=robot.link_names[-1], engine="python").dtype == dtype
        assert rk.link_jacobian(robot, q, robot.link_names[-1], at=at, engine="python").dtype == dtype
        assert rk.link_jacobian(robot, q, robot.link_names[-2:], at=at, engine="python").dtype == dtype
    factor = rk.ltdl(robot, rk.crba(robot, q, engine="python"), engine="python")
    assert factor.L.dtype == factor.solve([1.0] * robot.nv).dtype == np.float32
    assert factor.solve(np.ones(robot.nv)).dtype == np.float64
    assert rk.crba(robot, q, sparse=True, engine="python").dtype == np.float32
