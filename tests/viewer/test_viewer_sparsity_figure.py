"""The picture of the mass matrix: every format is written and the figures stand in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from viewer_cases import pendulum

import robokit as rk
from robokit.errors import WrongType
from robokit.viewer import draw_sparsity, sparsity_figure
from robokit.viewer.mass_matrix_figure import ENTRY, ZERO, count_lines, rectangles, tree_layout

START = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", ["png", "pdf"])  # and as SVG below
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


def test_vector_pictures_are_small(tmp_path):
    # A square for every cell of the chain's 106 x 106 patterns took 3.5 MB.
    path = draw_sparsity(rk.load_urdf(rk.find_robot("chain"), base="floating"), tmp_path / "h.svg")
    assert path.read_bytes().startswith(START["svg"]) and 5000 < path.stat().st_size < 250_000


@given(st.integers(0, 9).flatmap(lambda n: arrays(bool, (n, n))))
def test_rectangles_cover_each_cell_once_and_no_other(cells):
    covered = np.zeros(cells.shape, dtype=int)
    for x0, y0, x1, y1 in rectangles(cells).astype(int):
        covered[y0:y1, x0:x1] += 1
    assert (covered == cells).all()


def test_cells_have_their_colours_and_white_between_them(humanoid):
    figure = sparsity_figure(humanoid)
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(200)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255.0
    n = humanoid.nv

    def seen(x, y):
        column, row = figure.axes[1].transData.transform((x, y))
        return pixels[len(pixels) - 1 - int(row), int(column)]

    for i, j in np.random.default_rng(1).integers(0, n, (60, 2)):
        expected = to_rgb(ENTRY if humanoid.inertia_pattern[i, j] else ZERO)
        assert np.allclose(seen(j + 0.5, i + 0.5), expected, atol=0.01)
    assert seen(5.0, 5.5).min() > min(to_rgb(ENTRY)) + 0.2


def test_what_is_no_robot_is_refused(tmp_path):
    with pytest.raises(WrongType, match=r"rk.load\('arm.urdf'\)"):
        draw_sparsity("arm.urdf", tmp_path / "h.svg")


def labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_rows_and_columns_have_the_numbers_of_the_tree_and_the_names_of_joints(base):
    robot = rk.load_urdf(rk.find_robot("humanoid"), base=base)
    tree, H, L, _ = sparsity_figure(robot).axes
    numbers = {text.get_text() for text in tree.texts}
    assert numbers == {str(i) for i in range(robot.nbodies + 1)}
    for joint, label, middle in zip(robot.joints, labels(H.yaxis), H.get_yticks(), strict=True):
        assert label == f"{joint.name}  {joint.body}"
        assert middle == 0.5 * (joint.v_slice.start + joint.v_slice.stop)
    assert labels(L.yaxis) == [str(joint.body) for joint in robot.joints]
    assert H.get_xlabel() == "joint, numbered as in the tree" and H.get_ylabel() == "joint"


def test_names_of_a_long_robot_are_thinned_and_loops_dashed():
    axes = sparsity_figure(rk.load_urdf(rk.find_robot("chain"))).axes
    assert 20 < len(labels(axes[1].yaxis)) < 50 and len(labels(axes[1].xaxis)) < 40
    tree = sparsity_figure(rk.load_urdf(rk.find_robot("four_bar"))).axes[0]
    assert "loop" in tree.get_title() and len(tree.lines) == 2
