"""The tree beside the patterns of the mass matrix and of its factors, for papers and slides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robokit.model.sparsity import cholesky_fill, factorisation_counts, inertia_pattern, ltdl_counts

ENTRY, FILL, ZERO, INK, SOFT = "#1c7ed6", "#f08c00", "#eef1f5", "#1b2333", "#5f6b7e"


def draw_sparsity(robot: Any, path: str | Path) -> Path:
    """Write the figure to a file.

    Args:
        robot: the Robot.
        path: .png, .svg, .pdf or another format that matplotlib writes.

    Returns:
        The path.
    """
    path = Path(path)
    sparsity_figure(robot).savefig(path, dpi=180, facecolor="white")
    return path


def sparsity_figure(robot: Any) -> Any:
    """The kinematic tree, H, L of H = LᵀDL and L of plain Cholesky, with exact operation counts.

    Args:
        robot: the Robot.

    Returns:
        A matplotlib Figure of its own, outside of pyplot's list.
    """
    from matplotlib.figure import Figure

    parents = list(robot.dof_parent)
    pattern = inertia_pattern(parents)
    lower, filled = np.tril(pattern), cholesky_fill(pattern)
    figure = Figure(figsize=(15.0, 5.4))
    grid = figure.add_gridspec(
        1, 4, left=0.02, right=0.985, top=0.84, bottom=0.2, wspace=0.12, width_ratios=(1.15, 1, 1, 1)
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
    _draw_pattern(figure.add_subplot(grid[1]), "mass matrix H", pattern.astype(int))
    _draw_pattern(figure.add_subplot(grid[2]), "L of H = LᵀDL: no fill-in", lower.astype(int))
    fill = int(filled.sum() - lower.sum())
    title = (
        f"L of H = LLᵀ: {fill:,} entries fill in".replace(",", " ")
        if fill
        else "L of H = LLᵀ: no fill-in here"
    )
    _draw_pattern(figure.add_subplot(grid[3]), title, lower.astype(int) + 2 * (filled & ~lower))
    for k, line in enumerate(count_lines(parents)):
        figure.text(0.02, 0.125 - 0.045 * k, line, fontsize=10.5, color=INK if k == 0 else SOFT)
    return figure


def count_lines(dof_parent: list[int]) -> list[str]:
    """The figures under the picture: zeros, factorisation, solve.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        Three lines of text.
    """
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


def _draw_pattern(axes: Any, title: str, values: np.ndarray) -> None:
    """One pattern: 0 zero, 1 entry, 2 fill-in."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import PathPatch

    n = len(values)
    if n <= 120:
        for value, colour in enumerate((ZERO, ENTRY, FILL)):
            if np.any(values == value):
                axes.add_patch(PathPatch(_squares(values == value), facecolor=colour, linewidth=0))
        axes.set_xlim(0, max(n, 1))
        axes.set_ylim(max(n, 1), 0)
    else:
        colours = ListedColormap([ZERO, ENTRY, FILL])
        axes.imshow(values, cmap=colours, vmin=0, vmax=2, interpolation="nearest", extent=(0, n, n, 0))
    axes.set_aspect("equal", anchor="N")
    axes.set_title(title, fontsize=11, color=INK, pad=8)
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if n / s <= 9)
    marks = np.array(sorted({1, *range(step, n + 1, step)})) if n else np.array([])
    if step == 2:
        marks = marks[marks != 1]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(marks - 0.5, [str(m) for m in marks], fontsize=8, color=SOFT)
        axis.set_tick_params(length=0, pad=3)
    for side in axes.spines.values():
        side.set_visible(False)


def _squares(cells: np.ndarray) -> Any:
    """One path of small squares, one for each cell that is True: a compact drawing in vector formats."""
    from matplotlib.path import Path as Outline

    gap = 0.05
    corners = np.array([[gap, gap], [1 - gap, gap], [1 - gap, 1 - gap], [gap, 1 - gap], [gap, gap]])
    rows, columns = np.nonzero(cells)
    vertices = (np.stack([columns, rows], axis=1)[:, None] + corners).reshape(-1, 2)
    codes = [Outline.MOVETO, Outline.LINETO, Outline.LINETO, Outline.LINETO, Outline.CLOSEPOLY]
    return Outline(vertices, codes * len(rows))


def _draw_tree(axes: Any, robot: Any) -> None:
    """The tree as circles with body numbers, the root on top, leaves side by side."""
    parent = list(robot.tree.parent)
    x, depth = tree_layout(parent)
    # Circles of points that leave a third of the room between neighbours, whichever way it is tighter.
    room = min(240.0 / (np.ptp(x) + 1.2), 235.0 / (depth.max() + 1.2))
    size = float(np.clip(0.66 * room, 1.5, 22.0))
    for i in range(1, len(parent)):
        axes.plot(x[[parent[i], i]], -depth[[parent[i], i]], color="#b6c0cf", linewidth=1.3, zorder=1)
    axes.scatter(x[1:], -depth[1:], s=size**2, color=ENTRY, zorder=2, linewidths=0, clip_on=False)
    axes.scatter(
        x[:1], -depth[:1], s=size**2, color="white", edgecolors=SOFT, zorder=2, linewidths=1.2, clip_on=False
    )
    if size >= 8.5:
        font = min(9.0, 0.5 * size)
        for i in range(len(parent)):
            axes.text(
                x[i],
                -depth[i],
                str(i),
                ha="center",
                va="center_baseline",
                fontsize=font,
                color="white" if i else SOFT,
                zorder=3,
            )
    axes.set_title("tree: joint i moves body i", fontsize=11, color=INK, pad=8)
    margin = 0.06 * max(float(np.ptp(x)), 2.0)
    axes.set_xlim(x.min() - margin - 0.3, x.max() + margin + 0.3)
    axes.set_ylim(-float(depth.max()) - 0.5, 0.5)
    axes.axis("off")


def tree_layout(parent: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Places for a drawing of the tree.

    Args:
        parent: lambda(i), -1 for body 0, (n + 1,).

    Returns:
        x: leaves at 0, 1, 2, ... in numbering order, others over the middle of their children; depth: 0 at
        body 0. Both (n + 1,).
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
