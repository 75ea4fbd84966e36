"""Robots by name: our own, and those of the data package example-robot-data where it is installed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from robokit.errors import MissingDependency, RobokitError, UnknownName

EXAMPLES = "example-robot-data"


@lru_cache(maxsize=1)
def own_robots() -> dict[str, Path]:
    """Name -> URDF of the robots that come with robokit."""
    here = Path(__file__).resolve().parent
    # In a wheel the folder lies inside the package, in a checkout beside it.
    folder = here / "robots" if (here / "robots").is_dir() else here.parent / "robots"
    return {path.stem: path for path in sorted(folder.glob("*.urdf"))}


@lru_cache(maxsize=1)
def example_robots() -> dict[str, Path]:
    """Name -> URDF of the robots of example-robot-data; empty where it is not installed.

    A robot answers to its file's name and, shorter, to its folder's: g1 is g1_29dof_rev_1_0.
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
        MissingDependency: it is not installed.
    """
    files = sorted(set(example_robots().values()))
    if not files:
        raise MissingDependency(f"the package {EXAMPLES} is not installed; pip install {EXAMPLES}")
    return files


def find_robot(name: str | Path) -> Path:
    """The URDF that a command-line argument means.

    Args:
        name: a path, the name of one of our robots, or "example-robot-data:NAME".

    Raises:
        UnknownName: no such robot; says the nearest names.
        MissingDependency: example-robot-data is asked for and not installed.
    """
    text = str(name)
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
    path = Path(text).expanduser()
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
