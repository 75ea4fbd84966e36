"""Results of benchmarks/run.py as pictures: ratios, growth, the roofline.

python benchmarks/plots.py results.json      results_ratios.svg, results_growth.svg, results_roofline.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(results: dict[str, Any], place: Callable[[str], Path]) -> None:
    """Draw what was measured; nothing is drawn of parts that were not.

    Args:
        results: as benchmarks/run.py writes them.
        place: file of the plot of that name.
    """
    import matplotlib

    matplotlib.use("Agg")
    for name, draw in (("ratios", ratios), ("growth", growth), ("roofline", roofline)):
        figure = draw(results)
        if figure is not None:
            figure.savefig(place(name))


def _axes(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def ratios(results: dict[str, Any]) -> Any:
    """Bars: times as many states a second as Pinocchio, for each algorithm and robot."""
    robots = [robot for robot in results["dynamics"] if "pinocchio" in robot.get("rnea", {})]
    if not robots:
        return None
    rows = [k for k in robots[0] if isinstance(robots[0][k], dict)]
    figure, axes = _axes(9, 0.42 * len(rows) + 1.6)
    height = 0.8 / len(robots)
    for k, robot in enumerate(robots):
        ratio = [robot[row]["pinocchio"] / robot[row]["batch"] if row in robot else 0.0 for row in rows]
        places = [i + (k - (len(robots) - 1) / 2) * height for i in range(len(rows))]
        axes.barh(places, ratio, height * 0.9, label=f"{robot['robot'].split(':')[-1]}, nv {robot['nv']}")
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.axvline(15, color="0.3", linewidth=0.8, linestyle=":")
    axes.set_xlabel("states per second, robokit's batches of 4096 over Pinocchio called from Python")
    axes.legend(frameon=False, fontsize=8)
    return figure


def growth(results: dict[str, Any]) -> Any:
    """Lines: nanoseconds a joint of chains."""
    found = results["engine"].get("growth", {})
    chains = {
        int(name.split()[-1]): row for name, row in found.items() if name.startswith("chain") and "aba" in row
    }
    if not chains:
        return None
    figure, axes = _axes(6.4, 3.6)
    for name, label in (("rnea", "RNEA"), ("aba", "ABA")):
        axes.plot(list(chains), [row[name]["ns a joint"] for row in chains.values()], "o-", label=label)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xticks(list(chains), [str(n) for n in chains])
    axes.set_xlabel("joints of a chain")
    axes.set_ylabel("ns a joint and state, batches of 1024")
    axes.legend(frameon=False)
    return figure


def roofline(results: dict[str, Any]) -> Any:
    """Points below the two roofs of the machine: its multiply-adds, and its memory."""
    found = results["engine"].get("peak", {})
    points = found.get("roofline", {})
    if not points:
        return None
    most, memory = found["Gflop/s"], found["GB/s"]
    figure, axes = _axes(6.4, 4.0)
    low, high = 0.25, 16.0
    axes.plot([low, most / memory, high], [low * memory, most, most], color="0.3", linewidth=1.2)
    axes.plot([most / memory, high], [most / 2, most / 2], color="0.3", linewidth=0.8, linestyle=":")
    axes.annotate(f"{most:.0f} Gflop/s", (high, most), ha="right", va="bottom", fontsize=8, color="0.3")
    axes.annotate("half of it", (most / memory, most / 2), ha="left", va="bottom", fontsize=8, color="0.3")
    axes.annotate(
        f"{memory:.0f} GB/s",
        (low, low * memory),
        xytext=(6, 0),
        textcoords="offset points",
        fontsize=8,
        color="0.3",
    )
    for name, point in points.items():
        place = point["flops a byte"], point["Gflop/s"]
        axes.plot(*place, "o")
        label = name.replace("_", " ").replace("centroidal momentum matrix", "A_G")
        shift = (6, -10) if label in ("A_G", "aba") else (6, -4)
        axes.annotate(label, place, xytext=shift, textcoords="offset points", fontsize=8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(low, high)
    axes.set_xticks([0.25, 0.5, 1, 2, 4, 8, 16], ["1/4", "1/2", "1", "2", "4", "8", "16"])
    ticks = [4, 8, 16, 32, 64, 128]
    axes.set_yticks(ticks, [str(x) for x in ticks])
    axes.set_ylim(3.0, 1.4 * most)
    axes.set_xlabel("operations for each byte of arguments and results")
    axes.set_ylabel("Gflop/s, G1, batches of 4096")
    return figure


def main() -> None:
    """Draw a file's results beside it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="a file that benchmarks/run.py wrote")
    path = parser.parse_args().results
    write(json.loads(path.read_text()), lambda name: path.with_name(f"{path.stem}_{name}.svg"))


if __name__ == "__main__":
    main()
