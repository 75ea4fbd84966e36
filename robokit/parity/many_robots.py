"""Many robots compared with every installed engine, one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robokit.errors import RobokitError, UrdfError
from robokit.parity.compare import Comparison, compare
from robokit.stages import stage
from robokit.urdf.load import load_urdf
from robokit.urdf.read.xacro import is_xacro


@dataclass
class FileComparison:
    """One file, with one base, compared with the engines.

    Attributes:
        file: the URDF, as given.
        base: "fixed" or "floating".
        nv: degrees of freedom; 0 if robokit cannot load the file.
        failure: why robokit cannot load it, or "".
        engines: one comparison for each installed engine.
    """

    file: Path
    base: str
    nv: int = 0
    failure: str = ""
    engines: list[Comparison] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether robokit and all engines can load the file and agree."""
        return not self.failure and all(c.agrees for c in self.engines)


def compare_files(
    files: Iterable[Path],
    bases: Sequence[str] = ("fixed", "floating"),
    states: int = 3,
    mimic: str | None = None,
    run: str | None = "python",
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    loops: str = "declared",
) -> Iterator[FileComparison]:
    """Compare the robots of many files, one after the other.

    Args:
        files: URDFs.
        bases: "fixed", "floating" or both.
        states, run: as for :func:`compare`. By default robokit's Python engine runs, because compiling would
            take most of the time.
        mimic, package_dirs, loops: as for :func:`robokit.load_urdf`.
        xacro_args: for those of the files that are .xacro files.

    Example:
        >>> from robokit.parity import compare_files
        >>> files = [rk.find_robot("double_pendulum")]
        >>> [one.nv for one in compare_files(files, bases=["fixed"], states=1)]
        [2]
    """
    for file in files:
        for base in bases:
            try:
                given: dict[str, Any] = {
                    "xacro_args": xacro_args if is_xacro(file) else None,
                    "package_dirs": package_dirs,
                }
                with stage(f"comparing {file.name}, {base} base"):
                    robot = load_urdf(file, base=base, mimic=mimic, loops=loops, **given)
                    found = compare(file, robot, states, run=run, **given)
                    row = FileComparison(file, base, robot.nv, "", found)
            except RobokitError as error:
                row = FileComparison(file, base, failure=_reason(error))
            yield row


def _reason(error: RobokitError) -> str:
    """The first error of a file, and how many more there are."""
    if isinstance(error, UrdfError):
        first = next((d for d in error.diagnostics if d.severity == "error"), None)
        if first is not None:
            more = sum(d.severity == "error" for d in error.diagnostics) - 1
            return f"{first.code}: {first.element} {first.message}" + (f" (and {more} more)" if more else "")
    return str(error)
