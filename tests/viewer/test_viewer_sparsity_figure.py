"""The picture of the mass matrix: every format is written and the figures stand in it."""

from __future__ import annotations

import numpy as np
import pytest
from viewer_cases import pendulum

from robokit.viewer import draw_sparsity, sparsity_figure
from robokit.viewer.mass_matrix_figure import count_lines, tree_layout

START = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", START)
def test_each_format_is_written(tmp_path, humanoid, kind):
    path = draw_sparsity(humanoid, tmp_path / f"h.{kind}")
    assert path.read_bytes().startswith(START[kind]) and path.stat().st_size > 5000


def test_a_name_with_dollar_signs_is_no_formula(tmp_path):
    draw_sparsity(pendulum(name="$\\frac{$"), tmp_path / "h.svg")


def test_the_lines_under_the_picture_count_exactly(humanoid):
    first, second, third = count_lines(list(humanoid.tree.dof_parent))
    n = humanoid.nv
    assert "zero by structure" in first
    assert f"{(n**3 - n) // 6:,}".replace(",", " ") in second
    assert f"{n * n - n:,}".replace(",", " ") in third
    assert "as many as dense" in count_lines([-1, 0, 1])[1]


def test_the_figure_has_a_tree_and_three_patterns(humanoid):
    titles = [axes.get_title() for axes in sparsity_figure(humanoid).axes]
    assert titles[0].startswith("tree") and titles[1] == "mass matrix H" and len(titles) == 4


def test_the_tree_is_laid_out_without_crossings():
    x, depth = tree_layout([-1, 0, 1, 2, 1, 4, 0])
    assert list(depth) == [0, 1, 2, 3, 2, 3, 1]
    assert list(x[[3, 5, 6]]) == [0, 1, 2] and x[1] == 0.5
    assert np.isclose(x[0], 1.25)
