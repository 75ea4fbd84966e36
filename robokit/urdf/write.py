"""A robot as URDF text, which :func:`robokit.urdf.loads_urdf` reads as the same robot.

Numbers are written as Python prints them, so that every one is read back to the last bit. Inertias are in
link axes about the centre of mass; equal colours and textures share one material.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

from robokit.errors import ModelError
from robokit.model.geometry import Mesh, Shape
from robokit.model.robot import Robot, check_robot
from robokit.urdf.checks.check import check
from robokit.urdf.describe import Losses, describe
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.xml_text import write
from robokit.written_files import output_path, write_text

_SHOWN = 20  # reasons in a message


def dump(robot: Robot, path: str | os.PathLike[str] | None = None) -> str:
    """The robot as URDF text, written to a file too where a path is given.

    Reading it with ``base=robot.base`` gives the same robot. Rotations are written as roll, pitch and
    yaw: to the last bit where they came from a URDF's angles in their usual range, else to rounding. Loop
    joints become ``<loop_joint>``, which is no part of URDF. Gravity has no place in a URDF.

    Mesh and texture names stay as they were read. With a path, a relative one that would lead elsewhere from
    there is replaced by the file's absolute path.

    Args:
        robot: any robot.
        path: the file to write, UTF-8; an existing one is replaced.

    Returns:
        the text.

    Raises:
        ModelError: a URDF cannot say it: helical, cylindrical and spherical joints, one-sided limits, names
            or numbers that XML cannot hold, mimics of nothing. The message has every reason.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: something was left out: limits of a joint that URDF gives none, the part of a matrix that
            is no rotation.

    Example:
        >>> from robokit.urdf import dump
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> again = rk.loads_urdf(dump(robot))
        >>> np.array_equal(rk.crba(again, [0.5, 0.2]), rk.crba(robot, [0.5, 0.2]))
        True
    """
    check_robot(robot)
    file = None if path is None else output_path("path", path)
    losses = Losses()
    description = describe(robot if file is None else _placed(robot, file.absolute().parent), losses)
    text = write(description, losses.refused)
    if not losses.refused:
        # The importer's own verdicts: what it would refuse is not written.
        report = Report("")
        check(description, report, Resolver(), robot.base)
        losses.refused += [f"{d.element}: {d.message}" for d in report.diagnostics() if d.severity == "error"]
    if losses.refused:
        reasons = [f"\n  {reason}" for reason in losses.refused[:_SHOWN]]
        more = len(losses.refused) - _SHOWN
        reasons += [f"\n  and {more} more"] if more > 0 else []
        raise ModelError(f"robot {robot.name!r} cannot be written as URDF:{''.join(reasons)}")
    if losses.dropped:
        shown = "; ".join(losses.dropped[:_SHOWN]) + ("; ..." if len(losses.dropped) > _SHOWN else "")
        warnings.warn(f"the URDF of robot {robot.name!r} leaves out {shown}", stacklevel=2)
    if file is not None:
        write_text(file, text, newline="\n")
    return text


def _placed(robot: Robot, folder: Path) -> Robot:
    """The robot with file names that lead to its files from a folder."""
    resolver = Resolver(folder)

    def name(written: str, path: Path) -> str:
        if written.startswith(("package://", "model://")) or resolver(written).path == path:
            return written
        return str(path)

    def seen(shape: Shape) -> Shape:
        geometry = shape.geometry
        if isinstance(geometry, Mesh) and geometry.path is not None:
            geometry = replace(geometry, filename=name(geometry.filename, geometry.path))
        texture = shape.texture_filename
        if texture is not None and shape.texture is not None:
            texture = name(texture, Path(shape.texture))
        return replace(shape, geometry=geometry, texture_filename=texture)

    links = tuple(
        replace(link, visuals=tuple(map(seen, link.visuals)), collisions=tuple(map(seen, link.collisions)))
        for link in robot.links
    )
    return replace(robot, links=links)
