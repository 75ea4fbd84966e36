"""What a case is, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

CASES: dict[str, Case] = {}
"""All cases by name, in the order of the page."""


class NotYet(Exception):
    """The simulator cannot do this; the message says what is missing."""


@dataclass(frozen=True)
class Look:
    """How closely to look.

    Attributes:
        quick: fewer and shorter runs.
        peer: whether MuJoCo is measured too.
        draw: whether curves are computed that only a plot needs.
    """

    quick: bool = False
    peer: bool = True
    draw: bool = True

    def some(self, many: int, few: int) -> int:
        """A number of runs."""
        return few if self.quick else many


@dataclass(frozen=True)
class Figure:
    """One measured figure beside what is wanted; None is "not measured".

    Attributes:
        what: it is, in words.
        unit: of all figures.
        robokit, mujoco, stiff: measured; MuJoCo at its defaults, and set to be stiff (see peer.py).
        most, least: what is wanted of robokit.
    """

    what: str
    unit: str = ""
    robokit: float | None = None
    mujoco: float | None = None
    stiff: float | None = None
    most: float | None = None
    least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether robokit's figure is as wanted; None where nothing is wanted or nothing was measured."""
        if self.robokit is None or (self.most is None and self.least is None):
            return None
        low = -math.inf if self.least is None else self.least
        high = math.inf if self.most is None else self.most
        return bool(low <= self.robokit <= high)  # False for NaN


@dataclass(frozen=True)
class Plot:
    """Curves of one picture.

    Attributes:
        name: of its file.
        title, x, y: labels.
        lines: label -> (x, y).
        log: axes with logarithmic scales, "", "x", "y" or "xy".
    """

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, tuple[Sequence[float], Sequence[float]]]
    log: str = ""


@dataclass
class Found:
    """What a case found."""

    figures: list[Figure] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, what: str, unit: str = "", robokit: Any = None, **more: Any) -> None:
        """Add a figure; arguments as of :class:`Figure`."""
        numbers = {k: None if x is None else float(x) for k, x in more.items()}
        self.figures.append(Figure(what, unit, None if robokit is None else float(robokit), **numbers))

    def plot(self, name: str, title: str, x: str, y: str, lines: dict[str, Any], log: str = "") -> None:
        """Add a picture; curves are thinned to 200 points and four digits."""
        self.plots.append(Plot(name, title, x, y, {k: _thin(*xy) for k, xy in lines.items()}, log))

    def as_dict(self) -> dict[str, Any]:
        """For JSON; numbers that are not finite become words."""
        figures = [{**asdict(f), "met": f.met} for f in self.figures]
        return _plain({"figures": figures, "plots": [asdict(p) for p in self.plots], "notes": self.notes})


@dataclass(frozen=True)
class Case:
    """A case: its name, the heading of the page that it belongs to, what it is, and the code."""

    name: str
    topic: str
    title: str
    about: str
    run: Callable[[Look], Found]


def case(name: str, topic: str, title: str) -> Callable[[Callable[[Look], Found]], Callable[[Look], Found]]:
    """Register a function; its docstring is what the page says about the case."""

    def register(run: Callable[[Look], Found]) -> Callable[[Look], Found]:
        about = " ".join((run.__doc__ or "").split())
        CASES[name] = Case(name, topic, title, about, run)
        return run

    return register


def _thin(x: Any, y: Any) -> tuple[list[float], list[float]]:
    """At most 200 points, four digits."""
    a, b = np.asarray(x, float), np.asarray(y, float)
    keep = np.unique(np.linspace(0, len(a) - 1, min(len(a), 200)).astype(int))
    return [float(f"{v:.4g}") for v in a[keep]], [float(f"{v:.4g}") for v in b[keep]]


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    if isinstance(x, float | np.floating):
        return float(f"{x:.6g}") if math.isfinite(x) else str(float(x))
    return x
