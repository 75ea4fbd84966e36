"""The figure of an identification: forces measured and predicted, and how certain each combination is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robokit.written_files import figure_path, replacing

MOST_JOINTS, MOST_NAMES = 8, 90
MEASURED, PREDICTED, LEFT = "#9aa7b8", "#1f5fbf", "#c4473a"


@dataclass(frozen=True)
class Certainty:
    """Combinations of parameters, in standard deviations of the prior.

    Attributes:
        names: of the combinations, n.
        off: estimates minus prior, (n,).
        deviations: of the estimates, (n,).
        well: which are well determined, boolean (n,).
    """

    names: Sequence[str]
    off: np.ndarray
    deviations: np.ndarray
    well: np.ndarray


def write_figure(
    path: str | Path, joints: Sequence[str], tau: np.ndarray, predicted: np.ndarray, certainty: Certainty
) -> Path:
    """Draw to a file; see :meth:`Identification.plot`."""
    from matplotlib.figure import Figure

    path = figure_path("path", path)
    size = np.sqrt(np.mean(tau**2, axis=0))
    shown = np.sort(np.argsort(-size, kind="stable")[:MOST_JOINTS])
    figure = Figure(figsize=(11.0, 1.4 + 1.15 * max(3, len(shown))), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.6, 1.0))
    left, right = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
    panels = left.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
    for axes, k in zip(panels, shown, strict=False):
        axes.plot(tau[:, k], color=MEASURED, lw=2.2, label="measured")
        axes.plot(predicted[:, k], color=PREDICTED, lw=0.9, label="predicted")
        axes.plot(tau[:, k] - predicted[:, k], color=LEFT, lw=0.7, label="difference")
        rms = np.sqrt(np.mean((tau[:, k] - predicted[:, k]) ** 2))
        axes.set_title(f"{_plain(joints[k])}: {rms:.3g} of {size[k]:.3g} left", fontsize=8, loc="left", pad=2)
        axes.tick_params(labelsize=7)
        axes.margins(x=0)
    panels[-1].set_xlabel("state", fontsize=8)
    left.supylabel("joint force [N m | N]", fontsize=8)
    panels[0].legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    _draw_combinations(right.subplots(), certainty)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=130, facecolor="white")
    return path


def _draw_combinations(axes: Any, certainty: Certainty) -> None:
    """Each combination's estimate and two deviations of it, the most certain at the bottom."""
    order = np.argsort(certainty.deviations, kind="stable")
    off, bars, well = (x[order] for x in (certainty.off, certainty.deviations, certainty.well))
    places = np.arange(len(order))
    for chosen, color in ((well, PREDICTED), (~well, LEFT)):
        axes.errorbar(off[chosen], places[chosen], xerr=2 * bars[chosen], fmt="o", ms=3, lw=1, color=color)
    axes.axvline(0.0, color=MEASURED, lw=1)
    axes.set(xlim=(-3.0, 3.0), ylim=(-1.0, len(order)))
    axes.set_title(
        f"{len(order)} combinations, blue: well determined ({int(well.sum())})", fontsize=8, loc="left"
    )
    axes.set_xlabel("estimate - prior [deviations of the prior]", fontsize=8)
    named = len(order) <= MOST_NAMES
    words = [_short(certainty.names[k]) for k in order] if named else []
    axes.set_yticks(places if named else [], words, fontsize=4.5)
    axes.tick_params(axis="x", labelsize=7)


def _short(expression: str, most: int = 34) -> str:
    return _plain(expression if len(expression) <= most else expression[: most - 3] + "...")


def _plain(name: str) -> str:
    """Without matplotlib's math mark-up."""
    return name.replace("$", r"\$")
