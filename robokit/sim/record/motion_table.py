"""A motion as a table: a column for each coordinate, velocity, force and energy, a row for each record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from robokit.files import replacing
from robokit.model.robot import Robot

QUATERNION, ANGULAR = ("qw", "qx", "qy", "qz"), ("wx", "wy", "wz")

PARTS = {
    "spherical": (QUATERNION, ANGULAR),
    "floating": ((*QUATERNION, "px", "py", "pz"), (*ANGULAR, "vx", "vy", "vz")),
    "cylindrical": (("angle", "shift"), ("angle", "shift")),
    "planar": (("angle", "x", "y"), ("angle", "x", "y")),
}
"""Names of the entries of q and of v, for kinds of joints with several."""

MOMENTUM = ("kx", "ky", "kz", "lx", "ly", "lz")

ROWS = 4096
"""Rows that are text at once."""


def columns(run: Any, robot: Robot) -> Iterator[tuple[str, np.ndarray]]:
    """Name and numbers (T,) of each column: see :meth:`Trajectory.to_dataframe`."""
    yield "time", run.t
    by_joint = {"q": run.q, "v": run.v, "tau": run.tau, "actuator_force": run.actuator_force}
    for name, array in by_joint.items():
        if array is None:
            continue
        for joint in robot.joints:
            place = joint.q_slice if name == "q" else joint.v_slice
            parts = PARTS.get(joint.kind, (("",), ("",)))[0 if name == "q" else 1]
            for k, part in zip(range(place.start, place.stop), parts, strict=True):
                yield f"{name}/{joint.name}" + (f"/{part}" if part else ""), array[:, k]
    for each in fields(run.energy):
        yield f"energy/{each.name}", getattr(run.energy, each.name)
    for k, part in enumerate(MOMENTUM):
        yield f"momentum/{part}", run.momentum[:, k]
    if run.ground is not None:
        for k, part in enumerate("xyz"):
            yield f"contact_force/{part}", run.contact_force[:, k]


def write_csv(run: Any, robot: Robot, path: Path) -> None:
    """Write the table as comma-separated values, numbers with all their digits.

    Raises:
        WriteError: the file cannot be written.
    """
    names, arrays = zip(*columns(run, robot), strict=True)
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(map(_cell, names)) + "\n")
        for first in range(0, len(run.t), ROWS):
            rows = np.column_stack([x[first : first + ROWS] for x in arrays]).tolist()
            file.writelines(",".join(map(repr, row)) + "\n" for row in rows)


def _cell(name: str) -> str:
    """A name as a cell: one with a comma, a quotation mark or a break is quoted."""
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\r\n') else name
