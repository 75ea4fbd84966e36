"""Robots by name: those of robokit, and of the packages example-robot-data and robot_descriptions."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from robokit.errors import MissingDependency, RobokitError, UnknownName, WrongType, nearest_names, one_line

EXAMPLES = "example-robot-data"  # name of the package of example robots

DESCRIPTIONS = "robot_descriptions"
"""Name of the package that knows where on the network the descriptions of some hundred robots are."""


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
    """The URDFs of all robots of example-robot-data; MissingDependency where it is not installed."""
    files = sorted(set(example_robots().values()))
    if not files:
        raise MissingDependency(f"the package {EXAMPLES} is not installed; pip install {EXAMPLES}")
    return files


def expanded(name: str | Path) -> Path:
    """The path with the user's home folder for a leading "~"; RobokitError where that is not known."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        raise RobokitError(f"{name}: no home folder is known for '~'; give the whole path") from None


def described_robots() -> dict[str, Path]:
    """Name -> module, of the descriptions of the package robot_descriptions; empty if it is not installed."""
    found = importlib.util.find_spec(DESCRIPTIONS)
    folders = found.submodule_search_locations if found else None
    modules = (path for folder in folders or () for path in Path(folder).glob("*_description.py"))
    names = {path.stem.removesuffix("_description"): path for path in sorted(modules)}
    return names


def _described(text: str, name: str, fetch: bool) -> Path:
    """The URDF, xacro or MJCF file of a description of robot_descriptions; a name ending in "_mj" is an MJCF.

    Its modules clone a repository when they are imported, unless it is in their cache; without ``fetch`` git
    may use files only meanwhile. ``text`` is what the user gave.
    """
    known = described_robots()
    if not known:
        raise MissingDependency(
            f"{text}: the package {DESCRIPTIONS} is not installed; pip install {DESCRIPTIONS}, "
            "or 'robokit[descriptions]'"
        )
    name = name.removesuffix("_description")
    if name not in known:
        raise UnknownName(f"robot in {DESCRIPTIONS}", name, known)
    before = os.environ.get("GIT_ALLOW_PROTOCOL")
    if not fetch:
        os.environ["GIT_ALLOW_PROTOCOL"] = "file"
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it tells what it clones
            module: Any = importlib.import_module(f"{DESCRIPTIONS}.{name}_description")
    except Exception as error:  # of git, or of the package
        call = f"python -c 'import {DESCRIPTIONS}.{name}_description'"
        reason = one_line(f"{type(error).__name__}: {error}", 300)
        what = (
            f"the package clones them and could not ({reason}); is the network there? By hand: {call}"
            if fetch
            else f"and robokit fetches nothing here; this clones their repository: {call} ({reason})"
        )
        raise RobokitError(f"{text}: its files are not on this disk; {what}") from error
    finally:
        if not fetch and before is None:
            del os.environ["GIT_ALLOW_PROTOCOL"]
        elif not fetch:
            os.environ["GIT_ALLOW_PROTOCOL"] = before or ""
    paths = (getattr(module, each, None) for each in ("URDF_PATH", "XACRO_PATH", "MJCF_PATH"))
    found = next((path for path in paths if path), None)
    if found is None:
        raise RobokitError(f"{text}: the description has neither URDF, xacro nor MJCF")
    return Path(found)


def find_robot(name: str | Path, fetch: bool = False) -> Path:
    """Find the file of a robot by its name.

    Args:
        name: a path; the name of one of robokit's robots, or of one of the package example-robot-data;
            "example-robot-data:NAME", or "robot_descriptions:NAME" for one of that package.
        fetch: whether robot_descriptions may clone files that are not in its cache, from GitHub.

    Raises:
        UnknownName: there is no such robot; the error names the nearest ones.
        RobokitError: there is no such file.
        MissingDependency: a robot of a package that is not installed.

    Example:
        >>> rk.find_robot("humanoid").name
        'humanoid.urdf'
        >>> rk.find_robot("humanoyd")
        Traceback (most recent call last):
            ...
        robokit.errors.UnknownName: no robot named 'humanoyd'; did you mean 'humanoid'? ...
    """
    if not isinstance(name, (str, os.PathLike)):
        raise WrongType("name", name, "the name of a robot, or the path of its file")
    text = str(name)
    if not text:
        raise RobokitError("the name of the robot is empty; give a robot's name or the path of its file")
    package, colon, wanted = text.partition(":")
    if colon and package.replace("-", "_") == DESCRIPTIONS:
        return _described(text, wanted, fetch)
    if colon and package.replace("_", "-") == EXAMPLES:
        known = example_robots()
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
    if text.lstrip().startswith("<"):
        raise RobokitError(
            "expected a path or the name of a robot, got XML; rk.loads_urdf reads the text of a URDF"
        )
    if path.suffix or len(path.parts) > 1:
        raise RobokitError(
            f"no file {text!r}; give the path of a URDF, xacro, MJCF, SDF or USD file, one of "
            f"{', '.join(own)}, {EXAMPLES}:NAME or {DESCRIPTIONS}:NAME"
        )
    examples = example_robots()
    if text in examples:
        return examples[text]
    more = (
        f"{EXAMPLES}:NAME, {DESCRIPTIONS}:NAME"
        if examples
        else f"pip install {EXAMPLES} for more, such as g1 and talos"
    )
    known = examples if nearest_names(text, examples) and not nearest_names(text, own, cutoff=0.5) else own
    raise UnknownName("robot", text, known, f"(or a path, or {more})")
