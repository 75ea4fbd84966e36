"""The figure of an identification: forces measured and predicted, and how certain each combination is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robokit.arguments import path_argument
from robokit.identification.measurements import Measured
from robokit.identification.parameter_names import dof_names

if TYPE_CHECKING:
    from robokit.identification.identified import Identification

MOST_JOINTS, MOST_NAMES = 8, 90
MEASURED, PREDICTED, LEFT = "#9aa7b8", "#1f5fbf", "#c4473a"


def write_figure(found: Identification, data: Measured, path: str | Path) -> Path:
    """Draw to a file; see :meth:`Identification.plot`."""
    from matplotlib.figure import Figure

    path = path_argument("path", path)
    predicted = found.predict(data.q, data.v, data.a)
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    shown = np.sort(np.argsort(-size, kind="stable")[:MOST_JOINTS])
    figure = Figure(figsize=(11.0, 1.4 + 1.15 * max(3, len(shown))), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.6, 1.0))
    left, right = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
    names = dof_names(found.columns.robot)
    panels = left.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
    for axes, k in zip(panels, shown, strict=False):
        axes.plot(data.tau[:, k], color=MEASURED, lw=2.2, label="measured")
        axes.plot(predicted[:, k], color=PREDICTED, lw=0.9, label="predicted")
        axes.plot(data.tau[:, k] - predicted[:, k], color=LEFT, lw=0.7, label="difference")
        rms = np.sqrt(np.mean((data.tau[:, k] - predicted[:, k]) ** 2))
        axes.set_title(f"{_plain(names[k])}: {rms:.3g} of {size[k]:.3g} left", fontsize=8, loc="left", pad=2)
        axes.tick_params(labelsize=7)
        axes.margins(x=0)
    panels[-1].set_xlabel("state", fontsize=8)
    left.supylabel("joint force [N m | N]", fontsize=8)
    panels[0].legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    _draw_combinations(right.subplots(), found)
    figure.savefig(path, dpi=130, facecolor="white")
    return path


def _draw_combinations(axes, found: Identification) -> None:
    """Each combination's estimate from its prior on, in deviations of the prior."""
    before = found.base_before
    prior = np.zeros(len(found.x))
    prior[: found.prior.size] = found.prior.ravel()
    scale = np.where(before > 0.0, before, 1.0)
    off = (found.base_values - found.base.matrix @ prior) / scale
    bars = found.base_deviations / scale
    order = np.argsort(bars, kind="stable")
    well = found.well_determined[order]
    places = np.arange(len(order))
    for chosen, color in ((well, PREDICTED), (~well, LEFT)):
        axes.errorbar(
            off[order][chosen], places[chosen], xerr=2 * bars[order][chosen], fmt="o", ms=3, lw=1, color=color
        )
    axes.axvline(0.0, color=MEASURED, lw=1)
    axes.set(xlim=(-3.0, 3.0), ylim=(-1.0, len(order)))
    axes.set_title(
        f"{len(found.base)} combinations, blue: well determined ({int(well.sum())})", fontsize=8, loc="left"
    )
    axes.set_xlabel("estimate - prior [deviations of the prior]", fontsize=8)
    words = found.base.expressions
    named = len(order) <= MOST_NAMES
    axes.set_yticks(places if named else [], [_short(words[k]) for k in order] if named else [], fontsize=4.5)
    axes.tick_params(axis="x", labelsize=7)


def _short(expression: str, most: int = 34) -> str:
    return _plain(expression if len(expression) <= most else expression[: most - 3] + "...")


def _plain(name: str) -> str:
    """Without matplotlib's math mark-up."""
    return name.replace("$", r"\$")
