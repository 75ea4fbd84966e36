"""The tree beside the patterns of the mass matrix and of its factors, for papers and slides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robokit.errors import library
from robokit.files import figure_path, replacing
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot
from robokit.model.tree import cholesky_fill, factorisation_counts, inertia_pattern, ltdl_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRY, FILL, ZERO, INK, SOFT, BRANCH = "#1c7ed6", "#f08c00", "#eef1f5", "#1b2333", "#5f6b7e", "#b6c0cf"

MOST_SQUARES = 120  # rows of a matrix whose cells are drawn one by one; more are smaller than a point
PATTERN_POINTS = 243.0  # edge of a drawn pattern, about [pt]
LONGEST_NAME = 28  # characters of a joint's name
MOST_LINES = 60  # rows of a matrix with white lines between its cells
GAP = 0.05  # white on each side of a cell, in cells


def draw_sparsity(robot: Robot, path: str | Path) -> Path:
    """Write the figure of :func:`sparsity_figure` to a file.

    Args:
        robot: the Robot.
        path: .png, .svg, .pdf or another format that matplotlib writes; ".png" is appended if it has no
            suffix.

    Returns:
        The path.

    Raises:
        ShapeError: a suffix that matplotlib does not write.
        WriteError: the file cannot be written.

    Example:
        >>> from robokit.viewer import draw_sparsity
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> draw_sparsity(robot, "h.svg").name
        'h.svg'
    """
    path = figure_path(path)
    figure = sparsity_figure(robot)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=180, facecolor="white")
    return path


def sparsity_figure(robot: Robot) -> Figure:
    """The kinematic tree, H, L of H = LᵀDL and L of plain Cholesky, with exact operation counts.

    Args:
        robot: the Robot.

    Returns:
        A matplotlib Figure that is not registered with pyplot, so it need not be closed.

    Raises:
        WrongType: not a robot.

    Example:
        >>> from robokit.viewer import sparsity_figure
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> figure = sparsity_figure(robot)
        >>> len(figure.axes) > 0
        True
    """
    check_robot(robot)
    Figure = library("matplotlib.figure", "plots", "a picture of the sparsity pattern").Figure
    parents = list(robot.dof_parent)
    pattern = inertia_pattern(parents)
    lower, filled = np.tril(pattern), cholesky_fill(pattern)
    joints = [joint for joint in robot.joints if joint.v_slice.stop > joint.v_slice.start]
    longest = max((len(_short(joint.name)) for joint in joints), default=0)
    figure = Figure(figsize=(15.0 + 0.075 * longest, 5.6))
    # An empty column between tree and H leaves room for the names of the rows.
    grid = figure.add_gridspec(
        1,
        5,
        left=0.02,
        right=0.985,
        top=0.85,
        bottom=0.235,
        wspace=0.12,
        width_ratios=(1.05, 0.1 + 0.0145 * longest, 1, 1, 1),
    )
    figure.suptitle(
        f"{_plain(robot.name)}: {robot.nbodies} bodies, {len(parents)} degrees of freedom, {robot.base} base",
        x=0.02,
        y=0.965,
        ha="left",
        fontsize=13,
        fontweight="bold",
        color=INK,
    )
    _draw_tree(figure.add_subplot(grid[0]), robot)
    panels = [figure.add_subplot(grid[k]) for k in (2, 3, 4)]
    _draw_pattern(panels[0], "mass matrix H", pattern.astype(int))
    _draw_pattern(panels[1], "L of H = LᵀDL: no fill-in", lower.astype(int))
    fill = int(filled.sum() - lower.sum())
    entries = f"{fill:,} entries fill in".replace(",", " ") if fill else "no fill-in here"
    _draw_pattern(panels[2], f"L of H = LLᵀ: {entries}", lower.astype(int) + 2 * (filled & ~lower))
    for k, axes in enumerate(panels):
        _mark_joints(axes, joints, len(parents), named=k == 0)
    for k, line in enumerate(count_lines(parents)):
        figure.text(0.02, 0.115 - 0.043 * k, line, fontsize=10.5, color=INK if k == 0 else SOFT)
    return figure


def count_lines(dof_parent: Sequence[int]) -> list[str]:
    """The three lines under the picture, of each dof's parent (-1 for none): zeros, factorisation, solve."""
    c = ltdl_counts(dof_parent)
    cholesky = factorisation_counts(cholesky_fill(inertia_pattern(dof_parent)))

    def number(x: float) -> str:
        return f"{int(x):,}".replace(",", " ")

    def times(x: float) -> str:
        if not np.isfinite(x):
            return "nothing left to do"
        return f"{x:.1f} times fewer than dense" if x > 1.0 else "as many as dense"

    return [
        f"{c['zeros_share']:.0%} of H is zero by structure "
        f"({number(c['zeros'])} of {number(c['entries'])} entries).",
        f"Factorisation, multiply-adds: dense (n³ − n)/6 = {number(c['factorise_dense'])}, "
        f"Cholesky with fill-in {number(cholesky['factorise'])}, "
        f"LᵀDL on the tree Σ d(d − 1)/2 = {number(c['factorise'])}: {times(c['factorise_ratio'])}.",
        f"Solve, multiply-adds: dense n² − n = {number(c['solve_dense'])}, "
        f"on the tree 2 Σ (d − 1) = {number(c['solve'])}: {times(c['solve_ratio'])}.",
    ]


def _draw_pattern(axes: Axes, title: str, values: np.ndarray) -> None:
    """One pattern: 0 zero, 1 entry, 2 fill-in."""
    n = len(values)
    if n <= MOST_SQUARES:
        _fill(axes, np.array([[0.0, 0.0, n, n]]), ZERO)
        _fill(axes, rectangles(values == 1), ENTRY)
        _fill(axes, rectangles(values == 2), FILL)
        # White lines part the cells: far fewer shapes than a square for each cell.
        lines = [(k - GAP, 0.0, k + GAP, float(n)) for k in range(n + 1)] if n <= MOST_LINES else []
        _fill(axes, np.array(lines + [(y0, x0, y1, x1) for x0, y0, x1, y1 in lines]), "white")
        axes.set_xlim(0, max(n, 1))
        axes.set_ylim(max(n, 1), 0)
    else:
        from matplotlib.colors import ListedColormap

        colours = ListedColormap([ZERO, ENTRY, FILL])
        axes.imshow(values, cmap=colours, vmin=0, vmax=2, interpolation="nearest", extent=(0, n, n, 0))
    axes.set_aspect("equal", anchor="N")
    axes.set_title(title, fontsize=11, color=INK, pad=8)
    for side in axes.spines.values():
        side.set_visible(False)


def _mark_joints(axes: Axes, joints: Sequence[Joint], n: int, named: bool) -> None:
    """Numbers of the joints, those of the bodies that they move, at the middle of their rows and columns.

    As many as fit; the rows of a named pattern have the names of their joints, too.
    """
    row = PATTERN_POINTS / max(n, 1)
    size = float(np.clip(0.88 * row, 5.0, 8.0))
    for axis, room in ((axes.yaxis, 1.08 * size), (axes.xaxis, 1.6 * size)):
        shown: list[Joint] = []
        for joint in joints:
            if not shown or (_middle(joint) - _middle(shown[-1])) * row >= room:
                shown.append(joint)
        names = named and axis is axes.yaxis
        texts = [(f"{_plain(_short(joint.name))}  " if names else "") + str(joint.body) for joint in shown]
        axis.set_ticks([_middle(joint) for joint in shown], texts, fontsize=size, color=SOFT)
        axis.set_tick_params(length=0, pad=3)
    axes.set_xlabel("joint, numbered as in the tree", fontsize=8.5, color=SOFT, labelpad=4)
    if named:
        axes.set_ylabel("joint", fontsize=8.5, color=SOFT, labelpad=4)


def _middle(joint: Joint) -> float:
    """Middle of a joint's rows, from the top of the pattern, in rows."""
    return 0.5 * (joint.v_slice.start + joint.v_slice.stop)


def _short(name: str) -> str:
    """A joint's name without the word joint at its end, and at most :data:`LONGEST_NAME` characters."""
    short = re.sub(r"(?<=.)[_-]?joint$", "", name, flags=re.IGNORECASE)
    return short if len(short) <= LONGEST_NAME else short[: LONGEST_NAME - 1] + "…"


def rectangles(cells: np.ndarray) -> np.ndarray:
    """Rectangles that together cover exactly the cells (n, n) that are True, (k, 4).

    Neighbours in a row are joined, then equal pieces of rows that follow each other. Each is its corners x0,
    y0, x1, y1 with x along the columns and y along the rows.
    """
    done: list[tuple[int, int, int, int]] = []
    growing: dict[tuple[int, int], int] = {}  # (first column, end) -> first row
    for row, line in enumerate([*cells, np.zeros(len(cells), dtype=bool)]):
        changes = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
        pieces = set(zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True))
        done += [(x0, y0, x1, row) for (x0, x1), y0 in growing.items() if (x0, x1) not in pieces]
        growing = {piece: growing.get(piece, row) for piece in pieces}
    return np.array(sorted(done), dtype=float).reshape(-1, 4)


def _fill(axes: Axes, corners: np.ndarray, colour: str) -> None:
    """Rectangles (k, 4) in one colour, as a single path, which keeps vector formats small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    if not len(corners):
        return
    x0, y0, x1, y1 = corners.T
    vertices = np.stack([x0, y0, x1, y0, x1, y1, x0, y1, x0, y0], axis=1).reshape(-1, 2)
    codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY]
    axes.add_patch(PathPatch(Outline(vertices, codes * len(corners)), facecolor=colour, linewidth=0))


def _draw_tree(axes: Axes, robot: Robot) -> None:
    """The tree as circles with body numbers, the root on top, leaves side by side."""
    parent = list(robot.tree.parent)
    x, depth = tree_layout(parent)
    # A circle takes two thirds of the distance between neighbours, across or down, whichever is smaller.
    room = min(240.0 / (np.ptp(x) + 1.2), 235.0 / (depth.max() + 1.2))
    size = float(np.clip(0.66 * room, 1.5, 22.0))
    # One line for all edges: NaN ends one and begins the next.
    ends = np.stack([np.array(parent[1:]), np.arange(1, len(parent)), np.full(len(parent) - 1, -1)], axis=1)
    edges = np.append(np.stack([x, -depth], axis=1), [[np.nan, np.nan]], axis=0)[ends.reshape(-1).astype(int)]
    axes.plot(*edges.T, color=BRANCH, linewidth=1.3, zorder=1)
    for p, s in robot.tree.loops:
        axes.plot(x[[p, s]], -depth[[p, s]], color=FILL, linewidth=1.3, linestyle=(0, (4, 3)), zorder=1)
    axes.scatter(x[1:], -depth[1:], s=size**2, color=ENTRY, zorder=2, linewidths=0, clip_on=False)
    axes.scatter(
        x[:1], -depth[:1], s=size**2, color="white", edgecolors=SOFT, zorder=2, linewidths=1.2, clip_on=False
    )
    if size >= 8.5:
        font = min(9.0, 0.5 * size)
        for i in range(len(parent)):
            tint = "white" if i else SOFT
            text = axes.text(x[i], -depth[i], str(i), fontsize=font, color=tint, zorder=3)
            text.set(ha="center", va="center_baseline")
    loops = bool(robot.tree.loops)
    axes.set_title(
        "tree; dashed: loop joints" if loops else "tree: joint i moves body i", fontsize=11, color=INK, pad=8
    )
    margin = 0.06 * max(float(np.ptp(x)), 2.0)
    axes.set_xlim(x.min() - margin - 0.3, x.max() + margin + 0.3)
    axes.set_ylim(-float(depth.max()) - 0.5, 0.5)
    axes.axis("off")


def tree_layout(parent: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Places for a drawing of the tree of parents lambda(i), -1 for body 0: x and depth, (n + 1,) each.

    Leaves are at x = 0, 1, 2, ... in numbering order, others over the middle of their children; body 0 at
    depth 0.
    """
    n = len(parent)
    children: list[list[int]] = [[] for _ in range(n)]
    depth = np.zeros(n)
    for i in range(1, n):
        children[parent[i]].append(i)
        depth[i] = depth[parent[i]] + 1
    x = np.zeros(n)
    for k, leaf in enumerate(i for i in range(n) if not children[i]):
        x[leaf] = k
    for i in reversed(range(n)):
        if children[i]:
            x[i] = 0.5 * (x[children[i][0]] + x[children[i][-1]])
    return x, depth


def _plain(text: str) -> str:
    """A name without matplotlib's math mark-up."""
    return text.replace("$", r"\$")
