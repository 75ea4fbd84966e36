"""Public names exist with one canonical path, and give the promised shapes, single and in batches."""

from __future__ import annotations

import inspect

import ladder
import numpy as np
import pytest
import table_calls
from for_each import for_each
from ladder import State, relative

import robokit as rk

NAMES = [
    "load_urdf",
    "loads_urdf",
    "forward_kinematics",
    "rnea",
    "bias_forces",
    "gravity_forces",
    "crba",
    "ltdl",
    "aba",
    "forward_dynamics",
    "center_of_mass",
    "kinetic_energy",
    "potential_energy",
    "centroidal_momentum_matrix",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "inertia_sparsity",
    "simulate",
    "rollout",
    "Ground",
    "Trajectory",
    "Rollout",
    "RobokitError",
    "UrdfError",
    "ShapeError",
    "UnknownName",
    "SingularInertia",
    "SimulationError",
    "SimulationWarning",
    "Diagnostic",
    "Robot",
    "ModelBuilder",
]
ROBOT = [
    "name",
    "nq",
    "nv",
    "nbodies",
    "total_mass",
    "base",
    "joint_names",
    "joint",
    "link_names",
    "frame",
    "tree",
    "diagnostics",
    "neutral",
    "random_configuration",
    "configuration",
    "integrate",
    "difference",
]
JOINT = [
    "kind",
    "q_slice",
    "v_slice",
    "axis",
    "lower",
    "upper",
    "effort",
    "velocity",
    "damping",
    "friction",
    "mimic",
    "body",
]
TREE = ["parent", "children", "subtree", "support", "predecessor", "successor"]
B = 3


@for_each("name", NAMES)
def test_public_names_exist_and_are_documented(name):
    thing = getattr(rk, name)
    assert inspect.getdoc(thing), f"rk.{name} has no docstring"


def test_robot_joint_and_tree_have_the_promised_attributes(robot):
    for name in ROBOT:
        getattr(robot, name)
    for name in TREE:
        getattr(robot.tree, name)
    for joint in robot.joint_names:
        for name in JOINT:
            getattr(robot.joint(joint), name)


@for_each("name", [*table_calls.PUBLIC, "inertia_sparsity"])
def test_dynamics_docstrings_say_shapes_units_source_and_cost(name):
    text = inspect.getdoc(getattr(rk, name))
    assert ("Source:" in text and "Cost:" in text) or (name == "forward_dynamics" and "O(n)" in text)
    assert "Returns:" in text and ("(nv" in text or "(nq" in text or "as in :func:" in text)


@pytest.fixture(scope="module")
def tree():
    """The richest robot: every joint kind on a floating base."""
    return ladder.random_tree(0, "floating")


@pytest.fixture(scope="module")
def states(tree):
    many = [State(tree, k) for k in range(B)]
    return many[0], {x: np.array([getattr(s, x) for s in many]) for x in ("q", "v", "a", "tau")}


@pytest.mark.parametrize("name", ["rnea", "aba", "crba", "centroidal_momentum"])
@pytest.mark.parametrize("rung", ["pendulum", "chain"])
def test_compiled_functions_on_the_first_rungs(rung, name):
    robot = {"pendulum": ladder.pendulum, "chain": ladder.chain}[rung]()
    given = table_calls.values(robot, State(robot))
    (expected,) = table_calls.plain(table_calls.PUBLIC[name], robot, given)
    assert relative(table_calls.call(name, robot, given), expected) < 1e-12


def test_single_values_are_numbers():
    robot = ladder.pendulum()
    assert type(rk.kinetic_energy(robot, [0.1], [0.2])) is float
    assert type(rk.potential_energy(robot, [0.1])) is float
    assert rk.crba(robot, [0.1]).dtype == np.float64


def test_batches_of_one_and_of_none():
    robot = ladder.chain()
    s = State(robot)
    assert rk.crba(robot, s.q[None]).shape == (1, robot.nv, robot.nv)
    assert rk.rnea(robot, np.empty((0, robot.nq)), s.v, s.a).shape == (0, robot.nv)


def test_one_state_goes_with_a_batch():
    robot = ladder.chain()
    s, v = State(robot), np.random.default_rng(0).standard_normal((B, robot.nv))
    got = rk.rnea(robot, s.q, v, s.a)
    assert got.shape == (B, robot.nv)
    assert relative(got[1], rk.rnea(robot, s.q, v[1], s.a)) < 1e-13


def test_arguments_are_left_alone_and_strides_do_not_matter():
    robot = ladder.chain()
    s = State(robot)
    wide = np.zeros((robot.nq, 2))
    wide[:, 0] = s.q
    expected = rk.crba(robot, s.q)
    for q in (wide[:, 0], s.q.tolist(), tuple(s.q), s.q[::-1].copy()[::-1], np.asfortranarray(s.q)):
        assert relative(rk.crba(robot, q), expected) < 1e-15
    fixed = s.q.copy()
    fixed.setflags(write=False)
    rk.aba(robot, fixed, s.v, s.tau)
    assert (fixed == s.q).all()


def test_results_are_fresh_arrays():
    robot = ladder.chain()
    s = State(robot)
    first = rk.rnea(robot, s.q, s.v, s.a)
    kept = first.copy()
    rk.rnea(robot, s.q, 2 * s.v, s.a)
    assert (first == kept).all()


def test_out_is_written_to():
    robot = ladder.chain()
    s, out = State(robot), np.full(robot.nv, np.nan)
    rk.rnea(robot, s.q, s.v, s.a, out=out)
    assert relative(out, rk.rnea(robot, s.q, s.v, s.a)) == 0.0
    H = np.full((robot.nv, robot.nv), np.nan)
    rk.crba(robot, s.q, out=H)
    assert relative(H, rk.crba(robot, s.q)) == 0.0


def test_sparse_mass_matrix_and_its_pattern(tree, states):
    import scipy.sparse

    one, _ = states
    H = rk.crba(tree, one.q)
    S = rk.crba(tree, one.q, sparse=True)
    assert scipy.sparse.issparse(S)
    assert relative(S.toarray(), H) < 1e-13
    pattern = rk.inertia_sparsity(tree)
    assert pattern.dtype == bool and pattern.shape == H.shape and (pattern == pattern.T).all()
    assert (H[~pattern] == 0.0).all() and S.nnz == pattern.sum() < tree.nv**2


def test_nonzeros_of_the_mass_matrix_single_and_batch(tree, states):
    one, batch = states
    rows, columns = rk.inertia_entries(tree)
    assert (rows >= columns).all() and len(rows) == np.tril(rk.inertia_sparsity(tree)).sum()
    for q in (one.q, batch["q"]):
        assert relative(rk.crba_nonzeros(tree, q), rk.crba(tree, q)[..., rows, columns]) < 1e-13


def test_factor_of_the_mass_matrix(tree, states):
    one, _ = states
    H = rk.crba(tree, one.q)
    factor = rk.ltdl(tree, H)
    assert factor.L.shape == H.shape and factor.D.shape == (tree.nv,)
    assert relative(factor.L.T @ np.diag(factor.D) @ factor.L, H) < 1e-11
    assert relative(H @ factor.solve(one.tau), one.tau) < 1e-9


def test_link_poses_by_name(tree, states):
    one, batch = states
    poses = rk.forward_kinematics(tree, one.q)
    R, p = poses["link3"]
    k = tree.link_names.index("link3")
    assert R.shape == (3, 3) and p.shape == (3,)
    assert (poses.rotation[k] == R).all() and (p == poses.position[k]).all()
    assert list(poses) == list(tree.link_names) and len(poses) == len(tree.links)
    R, p = rk.forward_kinematics(tree, batch["q"])["link3"]
    assert R.shape == (B, 3, 3) and p.shape == (B, 3)
    with pytest.raises(rk.UnknownName, match="link3"):
        poses["lnk3"]


def test_forward_dynamics_by_name_of_method(tree, states):
    one, _ = states
    by_aba = rk.forward_dynamics(tree, one.q, one.v, one.tau)
    assert relative(by_aba, rk.aba(tree, one.q, one.v, one.tau)) == 0.0
    assert relative(rk.forward_dynamics(tree, one.q, one.v, one.tau, method="crba"), by_aba) < 1e-10
    with pytest.raises(rk.UnknownName, match="'aba'"):
        rk.forward_dynamics(tree, one.q, one.v, one.tau, method="abba")
