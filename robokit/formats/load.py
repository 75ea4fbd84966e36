"""``robokit.load``: a robot from a file of any format, or by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from robokit.model.robot import Robot

PathLike = str | os.PathLike[str]


def load(
    path: PathLike,
    base: str | None = None,
    package_dirs: Sequence[PathLike] = (),
    strict: bool = False,
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
    root: str | None = None,
) -> Robot:
    """Load a robot from a file (URDF, xacro, MJCF, SDF or USD) or by name."""
    raise NotImplementedError
