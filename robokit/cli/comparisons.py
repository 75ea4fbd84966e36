"""--compare KEY=VALUE: the same start once more, with one thing changed."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
from pathlib import Path
from typing import Any

from robokit.errors import RobokitError

SIMULATE = ("dt", "integrator", "joint_damping", "self_collision")
"""What may differ, of ``rk.simulate``."""

GROUND = (
    "friction",
    "restitution",
    "torsional",
    "rolling",
    "sink",
    "time",
    "spin",
    "shape_error",
)
"""The same of ``rk.Ground``."""

WORDS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False, "none": None}


def changed_option(text: str) -> tuple[str, Any]:
    """The name and the value of ``--compare``.

    Raises:
        ArgumentTypeError: not NAME=VALUE, or no such name.
    """
    name, equals, given = text.partition("=")
    name = name.strip().replace("-", "_")
    known = (*SIMULATE, *GROUND)
    if not equals or not given.strip():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as dt=0.0005, got {text!r}")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise argparse.ArgumentTypeError(f"no option {name!r}{hint} There are {', '.join(known)}")
    return name, _value(name, given.strip())


def _value(name: str, text: str) -> Any:
    if name == "integrator":
        return text
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or name == "self_collision":
        kind = "on or off" if name == "self_collision" else "a number"
        raise argparse.ArgumentTypeError(f"{name}: expected {kind}, got {text!r}")
    return number


class Second:
    """The second run of a comparison.

    Args:
        q0: configuration at the start, (nq,).
        options: those of ``rk.simulate`` in the first run.
        change: name and value of what differs.

    Attributes:
        labels: of the two runs; none before :meth:`write`.

    Raises:
        RobokitError: there is no ground whose property could differ, the value is not accepted, or it is that
            of the first run.
    """

    def __init__(self, q0: Any, options: dict[str, Any], change: tuple[str, Any]) -> None:
        self.q0 = q0
        self.labels: tuple[str, str] | None = None
        self._first, self._name = options, change[0]
        name, value = change
        ground = options["ground"]
        if name not in GROUND:
            before, self._options = options.get(name), {**options, name: value}
            if name == "self_collision":
                before = ground is not None if before is None else before
        elif ground is None:
            raise RobokitError(f"--compare {name}: there is no ground; add --ground")
        else:
            before = getattr(ground, name)
            self._options = {**options, "ground": dataclasses.replace(ground, **{name: value})}
        if before == value:
            self._refuse(_label(name, value))

    def write(self, first: Any, path: Path) -> None:
        """Make the second run and write the page of both.

        Args:
            first: the first run, a Trajectory.
            path: of the page.
        """
        import robokit as rk
        from robokit.viewer import compare

        try:
            second = rk.simulate(first.robot, self.q0, **self._options)
            broke = " (interrupted)" if second.summary.get("interrupted") else ""
        except rk.SimulationError as error:
            second, broke = error.trajectory, " (broke down)"
        one, other = self._named(first, self._first), self._named(second, self._options)
        if one == other:
            self._refuse(one)
        self.labels = (one, other + broke)
        compare(first, second, path, self.labels)

    def _named(self, run: Any, options: dict[str, Any]) -> str:
        name = self._name
        if name in GROUND:
            return _label(name, getattr(options["ground"], name))
        if name == "self_collision":
            return _label(name, run.summary["self_collision_pairs"] > 0)
        return _label(name, run.summary["dt"] if name == "dt" else options.get(name))

    def _refuse(self, label: str) -> None:
        raise RobokitError(f"--compare {self._name}: the first run has {label}, too; give another value")


def _label(name: str, value: Any) -> str:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    if value is None:
        return f"{name} by default"
    if name == "dt":
        return f"dt = {1e3 * value:g} ms"
    return f"{name} = {value:g}" if isinstance(value, (int, float)) else f"{name} = {value}"
