"""Sparsity: the structural functions agree with numbers counted by hand and with numeric factorisations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robokit.errors import ModelError
from robokit.model.tree import cholesky_fill, dof_depths, factorisation_counts, inertia_pattern, ltdl_counts

trees = st.integers(1, 12).flatmap(lambda n: st.tuples(*[st.integers(-1, i - 1) for i in range(n)]))


def g1():
    """Degrees of freedom of a 29-joint humanoid on a floating base: legs 6 and 6, waist 3, arms 7 and 7."""
    parents = [-1, 0, 1, 2, 3, 4]

    def branch(start, length):
        for k in range(length):
            parents.append(start if k == 0 else len(parents) - 1)
        return len(parents) - 1

    branch(5, 6), branch(5, 6)
    waist = branch(5, 3)
    branch(waist, 7), branch(waist, 7)
    return parents


def test_a_fork_by_hand():
    """One base and two arms of two: the arms do not see each other."""
    pattern = inertia_pattern([-1, 0, 1, 0, 3])
    expected = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 0, 0, 1, 1], [1, 0, 0, 1, 1]])
    assert (pattern == expected.astype(bool)).all()
    counts = ltdl_counts([-1, 0, 1, 0, 3])
    assert counts["zeros"] == 8 and counts["nonzeros"] == 17
    # depths 1, 2, 3, 2, 3: sum d(d-1)/2 = 0 + 1 + 3 + 1 + 3, sum (d-1) = 6
    assert counts["factorise"] == 8 and counts["divisions"] == 6 and counts["solve"] == 12
    assert counts["factorise_dense"] == 20 and counts["solve_dense"] == 20
    # Eliminating the base first couples the arms: four entries fill in.
    assert cholesky_fill(pattern).sum() - np.tril(pattern).sum() == 4


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_a_chain_has_no_zeros(n):
    counts = ltdl_counts(list(range(-1, n - 1)))
    assert counts["zeros"] == 0 and counts["zeros_share"] == 0.0
    assert counts["factorise"] == counts["factorise_dense"] == (n**3 - n) // 6
    assert counts["factorise_ratio"] == 1.0


def test_the_figures_of_a_floating_humanoid():
    counts = ltdl_counts(g1())
    assert counts["n"] == 35
    assert round(100 * counts["zeros_share"]) == 47
    assert round(counts["factorise_ratio"], 1) == 4.1
    assert (
        factorisation_counts(cholesky_fill(inertia_pattern(g1())))["factorise"] == counts["factorise_dense"]
    )


@given(trees)
def test_ltdl_counts_are_those_of_the_pattern(parents):
    lower = np.tril(inertia_pattern(parents))
    counts = ltdl_counts(parents)
    below = lower.sum(axis=1) - 1
    assert counts["nonzeros"] == inertia_pattern(parents).sum()
    assert counts["factorise"] == (below * (below + 1) // 2).sum()
    assert counts["solve"] == 2 * below.sum()
    assert (dof_depths(parents) == lower.sum(axis=1)).all()


@given(trees, st.integers(0, 2**31))
def test_fill_in_is_what_a_numeric_cholesky_shows(parents, seed):
    pattern = inertia_pattern(parents)
    values = np.random.default_rng(seed).uniform(0.5, 1.0, pattern.shape) * pattern
    matrix = values + values.T + 4 * len(pattern) * np.eye(len(pattern))
    factor = np.linalg.cholesky(matrix)
    assert ((np.abs(factor) > 1e-15) <= cholesky_fill(pattern)).all()
    # In reverse order, which is what L of LᵀDL is, nothing fills in.
    backward = np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1].T
    assert ((np.abs(backward) > 1e-15) <= np.tril(pattern)).all()


def test_a_parent_after_its_child_is_an_error():
    with pytest.raises(ModelError, match=r"dof_parent\[1\] is 1"):
        inertia_pattern([-1, 1])


def test_nothing_that_moves_has_nothing_to_count():
    assert ltdl_counts([])["factorise_ratio"] == 1.0
    assert inertia_pattern([]).shape == (0, 0)
