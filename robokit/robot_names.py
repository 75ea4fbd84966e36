"""Robots by name: those of robokit, and those of the package example-robot-data if it is installed."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from robokit.errors import MissingDependency, RobokitError, UnknownName, WrongType

EXAMPLES = "example-robot-data"
"""Name of the package of example robots."""


@lru_cache(maxsize=1)
def own_robots() -> dict[str, Path]:
    """Name -> URDF, of the robots that come with robokit."""
    here = Path(__file__).resolve().parent
    # In a wheel the folder lies inside the package, in a checkout beside it.
    folder = here / "robots" if (here / "robots").is_dir() else here.parent / "robots"
    return {path.stem: path for path in sorted(folder.glob("*.urdf"))}


@lru_cache(maxsize=1)
def example_robots() -> dict[str, Path]:
    """Name -> URDF, of the robots of example-robot-data; empty if it is not installed.

    The name of a robot is that of its file or, shorter, that of its folder: g1 is g1_29dof_rev_1_0.
    """
    from importlib import metadata  # 30 ms that only this function needs

    try:
        files = metadata.files(EXAMPLES) or []
    except metadata.PackageNotFoundError:
        return {}
    paths = sorted(Path(str(f.locate())).resolve() for f in files if f.suffix == ".urdf")
    names: dict[str, Path] = {}
    # The shortest file name of a folder is its plain variant.
    for path in sorted(paths, key=lambda p: (len(p.stem), p.stem)):
        folder = next(
            (part for part in reversed(path.parts[:-1]) if part not in ("urdf", "robots")), path.stem
        )
        for suffix in ("_description", "_data"):
            folder = folder.removesuffix(suffix)
        names.setdefault(folder, path)
        names.setdefault(path.stem.removesuffix("_robot"), path)
        names.setdefault(path.stem, path)
    return dict(sorted(names.items()))


def example_files() -> list[Path]:
    """The URDFs of all robots of example-robot-data.

    Raises:
        MissingDependency: the package is not installed.
    """
    files = sorted(set(example_robots().values()))
    if not files:
        raise MissingDependency(f"the package {EXAMPLES} is not installed; pip install {EXAMPLES}")
    return files


def expanded(name: str | Path) -> Path:
    """The path with the user's home folder for a leading "~".

    Raises:
        RobokitError: the home folder is not known.
    """
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise RobokitError(f"{name}: no home folder is known for '~'; give the whole path") from None


def find_robot(name: str | Path) -> Path:
    """The URDF that a name stands for.

    Args:
        name: a path, the name of one of robokit's robots, or "example-robot-data:NAME".

    Raises:
        UnknownName: there is no such robot; the error names the nearest ones.
        RobokitError: there is no such file.
        MissingDependency: a robot of example-robot-data, which is not installed.

    Example:
        >>> rk.find_robot("humanoid").name
        'humanoid.urdf'
        >>> rk.find_robot("humanoyd")
        Traceback (most recent call last):
            ...
        robokit.errors.UnknownName: no robot named 'humanoyd'; did you mean 'humanoid'? ...
    """
    if not isinstance(name, (str, os.PathLike)):
        raise WrongType("name", name, "the name of a robot, or the path of a URDF")
    text = str(name)
    if not text:
        raise RobokitError("the name of the robot is empty; give the path of a URDF or a robot's name")
    if text.startswith(EXAMPLES + ":"):
        known = example_robots()
        wanted = text.partition(":")[2]
        if not known:
            raise MissingDependency(
                f"{text}: the package {EXAMPLES} is not installed; pip install {EXAMPLES}"
            )
        if wanted not in known:
            raise UnknownName(f"robot in {EXAMPLES}", wanted, known)
        return known[wanted]
    path = expanded(text)
    if path.exists():
        return path
    own = own_robots()
    if text in own:
        return own[text]
    if path.suffix or len(path.parts) > 1:
        raise RobokitError(
            f"no file {text!r}; give the path of a URDF, one of {', '.join(own)}, or {EXAMPLES}:NAME"
        )
    raise UnknownName("robot", text, own, f"(or a path, or {EXAMPLES}:NAME)")
