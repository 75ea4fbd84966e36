"""H = L^T D L on the tree: the factor, its pattern, the solve, the counts."""

from __future__ import annotations

import numpy as np
import pytest
from dense import Dense
from hypothesis import given
from hypothesis import strategies as st
from ladder import State, relative

from robokit.algorithms.inverse_mass_matrix import factors
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.errors import ModelError
from robokit.model.tree import cholesky_fill, dof_depths, factorisation_counts, inertia_pattern, ltdl_counts


@pytest.fixture
def case(robot):
    s = State(robot, 2)
    H = Dense(robot, s.q, s.v).H
    L, D = ltdl(robot.tree.dof_parent, H.tolist())
    return robot, s, H, np.array(L), np.array(D)


def test_factors_multiply_to_the_mass_matrix(case):
    _, _, H, L, D = case
    assert relative(L.T @ np.diag(D) @ L, H) < 1e-12
    assert (np.diag(L) == 1.0).all() and (np.triu(L, 1) == 0.0).all()
    assert D.min() > 0.0


def test_row_by_row_gives_the_same_factors(case):
    robot, _, H, L, D = case
    rows, reciprocals = factors(robot.tree.dof_parent, H.tolist())
    assert relative(np.array(rows), L) < 1e-12
    assert relative(1.0 / np.array(reciprocals), D) < 1e-12


def test_no_fill_in(case):
    # L has the pattern of H's lower triangle: zero exactly where H is zero by structure.
    robot, _, H, L, _ = case
    pattern = inertia_pattern(robot.tree.dof_parent)
    assert (H[~pattern] == 0.0).all()
    assert (L[~np.tril(pattern)] == 0.0).all()


def test_pattern_is_that_of_a_generic_mass_matrix(robot):
    # Summed over states no structural entry stays zero unless the axes make it so; none outside appears.
    total = sum(np.abs(Dense(robot, s.q, s.v).H) for s in (State(robot, k) for k in range(3)))
    pattern = inertia_pattern(robot.tree.dof_parent)
    assert (total[~pattern] == 0.0).all()
    if robot.name.startswith("tree"):
        kinds = {j.kind: j.v_slice for j in robot.joints}
        free = np.ones(robot.nv, dtype=bool)
        for kind in ("floating", "planar", "spherical", "cylindrical"):
            if kind in kinds:
                free[kinds[kind]] = False
        generic = np.outer(free, free)
        assert (total[pattern & generic] > 0.0).mean() > 0.9


def test_solve(case):
    robot, s, H, L, D = case
    x = ltdl_solve(robot.tree.dof_parent, L.tolist(), D.tolist(), s.tau.tolist())
    assert relative(x, np.linalg.solve(H, s.tau)) < 1e-10


def test_entries_outside_the_pattern_are_not_read(case):
    robot, _, H, L, D = case
    dirty = np.where(inertia_pattern(robot.tree.dof_parent), H, np.nan)
    again, D2 = ltdl(robot.tree.dof_parent, dirty.tolist())
    lower = np.tril(inertia_pattern(robot.tree.dof_parent))
    assert (np.array(again)[lower] == L[lower]).all() and (np.array(D2) == D).all()


@st.composite
def dof_parents(draw):
    n = draw(st.integers(1, 18))
    return tuple(draw(st.integers(-1, i - 1)) for i in range(n))


def random_h(parent, seed=0):
    """A positive definite matrix of the tree's pattern."""
    rng = np.random.default_rng(seed)
    L = np.tril(inertia_pattern(parent)) * rng.standard_normal((len(parent),) * 2)
    np.fill_diagonal(L, 1.0)
    return L.T @ np.diag(rng.uniform(0.5, 2.0, len(parent))) @ L


@given(dof_parents())
def test_factor_and_solve_on_any_tree(parent):
    H = random_h(parent)
    pattern = inertia_pattern(parent)
    assert (H[~pattern] == 0.0).all()
    L, D = ltdl(parent, H.tolist())
    assert relative(np.array(L).T @ np.diag(D) @ np.array(L), H) < 1e-12
    assert (np.array(L)[~np.tril(pattern)] == 0.0).all()
    b = np.arange(1.0, len(parent) + 1)
    assert relative(H @ ltdl_solve(parent, L, D, b.tolist()), b) < 1e-8


@given(dof_parents())
def test_operation_counts_are_what_the_loops_do(parent):
    multiply_adds = divisions = 0
    for k in range(len(parent)):
        i = parent[k]
        while i >= 0:
            divisions += 1
            j = i
            while j >= 0:
                multiply_adds += 1
                j = parent[j]
            i = parent[i]
    counts = ltdl_counts(parent)
    assert counts["factorise"] == multiply_adds and counts["divisions"] == divisions
    assert counts["nonzeros"] == inertia_pattern(parent).sum()
    assert counts["solve"] == 2 * (np.tril(inertia_pattern(parent)).sum() - len(parent))


@given(dof_parents())
def test_plain_cholesky_fills_in(parent):
    pattern = inertia_pattern(parent)
    fill = cholesky_fill(pattern)
    assert (fill | ~np.tril(pattern)).all()
    # The fill is exact: numeric Cholesky of a generic matrix of this pattern has these entries.
    L = np.linalg.cholesky(random_h(parent, 1))
    assert (np.abs(L[~fill]) < 1e-12).all()
    assert factorisation_counts(fill)["factorise"] >= ltdl_counts(parent)["factorise"]


def test_counts_of_a_chain_and_of_separate_bodies():
    chain = ltdl_counts(range(-1, 9))
    assert chain["factorise"] == chain["factorise_dense"] == 165 and chain["zeros"] == 0
    assert chain["factorise_ratio"] == chain["solve_ratio"] == 1.0
    apart = ltdl_counts([-1] * 4)
    assert apart["factorise"] == apart["solve"] == 0 and apart["zeros"] == 12
    assert dof_depths([-1, 0, 1, 0, -1]).tolist() == [1, 2, 3, 2, 1]


@pytest.mark.parametrize("parent", [[0], [-1, 1], [-2], [-1, 0, 5]])
def test_counts_refuse_what_is_no_tree(parent):
    with pytest.raises(ModelError, match="dof_parent"):
        inertia_pattern(parent)
