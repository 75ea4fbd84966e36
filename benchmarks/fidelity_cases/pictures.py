"""The curves of the cases as pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

STYLES = {"MuJoCo": "--", "wanted": ":"}


def write(found: dict[str, Any], place: Callable[[str], Path]) -> None:
    """Draw all plots of a file of figures.

    Args:
        found: as benchmarks/fidelity.py writes it.
        place: file of the plot of that name.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams |= {"svg.hashsalt": "robokit", "svg.fonttype": "none"}
    for entry in found["cases"].values():
        for plot in entry.get("plots", ()):
            figure = draw(plot)
            figure.savefig(place(plot["name"]), metadata={"Date": None})
            plt.close(figure)


def draw(plot: dict[str, Any]) -> Any:
    """One picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.6, 3.0), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    for label, (x, y) in plot["lines"].items():
        style = next((dash for word, dash in STYLES.items() if word in label), "-")
        axes.plot(x, y, style, linewidth=1.3, label=label)
    for axis in plot["log"]:
        getattr(axes, f"set_{axis}scale")("log")
    if "x" in plot["log"]:  # the numbers of powers of ten between them would lie over one another
        places = sorted({x for xs, _ in plot["lines"].values() for x in xs})
        axes.set_xticks(places, [f"{x:g}" for x in places])
        axes.minorticks_off()
    axes.set_title(plot["title"], fontsize=9)
    axes.set_xlabel(plot["x"], fontsize=8)
    axes.set_ylabel(plot["y"], fontsize=8)
    axes.tick_params(labelsize=8)
    figure.legend(loc="outside right upper", frameon=False, fontsize=7)  # over no line, wherever lines go
    return figure
