"""Regrouped inertias: the same motion of the whole from fewer numbers, on every kind of joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ladder import ALL_KINDS, OWN, ROBOTS, State, chain, random_tree, relative
from table_calls import values

import robokit as rk
from robokit.dynamics.build import example_key, flat_function, parameters_for, sizes, tree_for
from robokit.dynamics.cost import GROWTH
from robokit.dynamics.table import KERNELS
from robokit.model import Mimic, Placement, couple
from robokit.model.inertial_parameters import rigid_inertia
from robokit.model.inertial_parameters import row as ten
from robokit.model.joints import JOINT_TABLE, JointModel
from robokit.model.regrouping import places_left_empty, regrouped, shifts, slid
from robokit.spatial import Motion, Vector3

SUMS = sorted(name for name, row in KERNELS.items() if row.sums)


def given(row, robot: rk.Robot, seed: int = 0, dtype=float) -> list:
    """Flat inputs of a row at a random state."""
    state = State(robot, seed)
    found = {**values(robot, state), "f_ext": state.f_body}
    flat = [np.asarray(found[name]).ravel() for name, _ in sizes(row, robot)]
    return [[dtype(x) for x in each] for each in flat]


def both(name: str, robot: rk.Robot, seed: int = 0, dtype=float) -> tuple[np.ndarray, np.ndarray]:
    """The result from the regrouped inertias and that from the bodies' own."""
    row = KERNELS[name]
    flat = given(row, robot, seed, dtype)
    key = example_key(row, robot)
    results = (flat_function(each, robot, key)(*flat) for each in (row, replace(row, sums="")))
    return tuple(np.concatenate([np.array(x, dtype=float) for x in result]) for result in results)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", SUMS)
def test_the_motion_of_the_whole_stays(name, base):
    if KERNELS[name].floating and base == "fixed":
        return  # there is no such function
    for robot in (chain(6, base), random_tree(0, base)):
        assert relative(*both(name, robot)) < 1e-10


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind not in ("floating", "fixed")])
def test_what_moves_is_carried_by_the_parent_alike_in_every_configuration(kind):
    robot = random_tree(3, kinds=(kind,), n=6)
    tree, rng = robot.tree, np.random.default_rng(0)
    found = regrouped(tree, to_ground=True)
    for i in tree.outward():
        S = tree.joint[i].S
        empty = places_left_empty(S)
        left = robot.tree.I[i]
        assert empty, "every kind but the floating joint passes something on"
        values = ten(found[i])
        assert all(values[k] == 0.0 for k in empty)
        if not tree.children[i]:  # its own inertia, less what its parent has
            moved = np.array(ten(left)) - values
            dI = rigid_inertia(moved.tolist())
            for column in S.columns:
                assert max(abs(x) for x in dI @ column) < 1e-13
            carried = []
            for _ in range(2):
                q = tree.joint[i].random(rng, [-1.0] * tree.joint[i].kind.nq, [1.0] * tree.joint[i].kind.nq)
                X = tree.X(i, q)
                carried.append(ten(X.T @ dI @ X))
            assert np.allclose(*carried, rtol=0.0, atol=1e-12)


def test_as_many_parameters_stay_as_the_literature_says():
    # Gautier and Khalil: of ten, 3 go where a joint turns, 6 where it slides; else by dI S = 0.
    expected = {"revolute": 7, "continuous": 7, "prismatic": 4, "spherical": 9, "floating": 10}
    expected |= {"helical": 9, "cylindrical": 9, "planar": 9}
    for kind, count in expected.items():
        joint = JointModel(JOINT_TABLE[kind], Vector3(0.0, 1.0, 0.0), 0.3)
        assert 10 - len(places_left_empty(joint.S)) == count
        # The rank of the conditions: dI S = 0, and d/dq X^T dI X = 0 along each column.
        conditions = []
        for k in range(10):
            dI = rigid_inertia([float(j == k) for j in range(10)])
            rows = [x for column in joint.S.columns for x in dI @ column]
            for s in joint.S.columns:
                for m in np.eye(6).tolist():
                    w = Motion(Vector3(*m[:3]), Vector3(*m[3:]))
                    rows += list(s.cross_force(dI @ w) - dI @ s.cross(w))
            conditions.append(rows)
        assert np.linalg.matrix_rank(np.array(conditions)) == count


def test_the_ground_may_not_have_what_the_whole_needs():
    robot = random_tree(0, "fixed", kinds=("revolute", "prismatic"))
    kept = {name for name in SUMS if KERNELS[name].sums == "whole"}
    assert {"center_of_mass", "potential_energy", "centroidal_momentum_matrix"} <= kept
    for name in kept:
        row = KERNELS[name]
        flat = given(row, robot)
        results = (flat_function(replace(row, sums=s), robot)(*flat) for s in ("", "joints"))
        right, wrong = ([x for output in result for x in output] for result in results)
        assert relative(wrong, right) > 1e-3, name
    assert sum(I.m for I in tree_for(KERNELS["center_of_mass"], robot).I[1:]) == pytest.approx(
        robot.total_mass, rel=1e-14
    )


def test_samples_are_regrouped_row_by_row():
    robot = random_tree(2, "floating")
    scale = np.random.default_rng(0).uniform(0.5, 2.0, (3, robot.nbodies + 1, 1))
    varied = robot.with_inertias(robot.inertial_parameters * scale)
    for name in ("rnea", "center_of_mass"):
        row = KERNELS[name]
        rows = parameters_for(row, varied).reshape(3, robot.nbodies + 1, 10)
        for k in range(3):
            one = np.array([ten(I) for I in tree_for(row, varied.sample(k)).I])
            assert relative(rows[k], one) < 1e-14
    assert np.array_equal(
        parameters_for(KERNELS["wrenches_in_bodies"], varied).reshape(rows.shape), varied.inertial_parameters
    )


def test_rotors_stay_with_their_joints():
    robot = random_tree(4, "floating")
    rotors = tuple(tuple(0.3 + k for k in range(s.start, s.stop)) for s in robot.tree.v_slice)
    robot = replace(robot, tree=replace(robot.tree, armature=rotors))
    for name in ("crba", "aba", "kinetic_energy"):
        assert relative(*both(name, robot)) < 1e-11


def test_coupled_joints_need_nothing_of_their_own():
    b = rk.ModelBuilder("finger").link("palm", 1.0, (0, 0, 0.1), np.eye(3))
    for k in range(3):
        b.link(f"l{k}", 0.5 + k, (0.1, 0.02, 0.3), np.diag([0.1, 0.2, 0.25]))
        mimic = Mimic("j0", 0.7, 0.1) if k else None
        place = Placement(np.eye(3), (0.3, 0.1, 0.2))
        b.joint(
            f"j{k}", "revolute", f"l{k - 1}" if k else "palm", f"l{k}", place, axis=(0, 1, 0), mimic=mimic
        )
    robot = couple(b.build("floating"))
    assert robot.coupling is not None
    for name in ("rnea", "crba", "aba", "centroidal_momentum_matrix", "kinetic_energy"):
        assert relative(*both(name, robot)) < 1e-12


@pytest.mark.parametrize("name", ["rnea", "aba", "crba"])
def test_single_precision_is_no_worse(name):
    robot = rk.load_urdf(ROBOTS / "humanoid.urdf", base="floating")
    errors = np.zeros(2)
    for seed in range(4):
        _, exact = both(name, robot, seed)
        for k, got in enumerate(both(name, robot, seed, np.float32)):
            errors[k] = max(errors[k], relative(got, exact))
    assert 0.0 < errors[0] < 2.0 * errors[1]


@pytest.mark.parametrize("name", [name for name in OWN if name != "chain"])
def test_fewer_operations(name, monkeypatch):
    few = ("rnea", "crba", "aba", "ltdl", "gravity_forces", "centroidal_momentum_matrix")
    monkeypatch.setattr("robokit.dynamics.cost.GROWTH", {x: GROWTH[x] for x in few})
    cost = rk.load_urdf(ROBOTS / f"{name}.urdf", base="fixed").cost()
    for row in cost.values():
        assert row.flops <= row.before, row.algorithm
    assert cost["rnea"].flops < 0.9 * cost["rnea"].before and cost["ltdl"].flops == cost["ltdl"].before


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_frames_that_slide_on_their_axes_leave_every_result(base):
    for robot in (chain(6, base), random_tree(5, base), rk.load_urdf(ROBOTS / "arm.urdf", base=base)):
        tree = robot.tree
        for I in (tree.I, ()):
            w = shifts(tree, True, I)
            other = replace(robot, tree=slid(tree, w))
            assert any(any(shift) for shift in w)
            for i in tree.outward():
                for column in tree.joint[i].S.columns:
                    assert max(abs(x) for x in w[i].cross(column.ang)) < 1e-13, "S stays"
            offsets = [sum(x != 0.0 for X in t.XT for x in X.r) for t in (tree, other.tree)]
            assert offsets[1] <= offsets[0]
            for name in ("rnea", "aba", "crba", "centroidal_momentum_matrix", "potential_energy"):
                row = replace(KERNELS[name], sums="")
                flat = given(row, robot)
                (got,), (expected,) = (flat_function(row, each)(*flat) for each in (other, robot))
                assert relative(got, expected) < 1e-11


def test_an_arm_needs_the_offsets_of_denavit_and_hartenberg():
    tree = rk.load_urdf(ROBOTS / "arm.urdf", base="fixed").tree
    after = slid(tree, shifts(tree, True, tree.I))
    moving = [[sum(x != 0.0 for x in t.XT[i].r) for i in t.outward() if t.parent[i]] for t in (tree, after)]
    assert sum(moving[1]) < sum(moving[0])
