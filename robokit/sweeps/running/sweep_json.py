"""sweep.json: the recipe of a sweep's folder and the size of its chunks, from which all files follow."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from robokit.errors import RobokitError, one_line, shown
from robokit.sweeps.running.chunk_files import CHUNKS, disk_problem, write_whole

FORMAT = 1
"""Number of the folder's layout, raised when an older robokit could not read it."""

NAME = "sweep.json"


@dataclass(frozen=True)
class SweepJson:
    """What sweep.json says.

    Attributes:
        recipe: text of the recipe, as :func:`canonical` writes it.
        chunk: rows of a chunk; the last one may have fewer.
        count: rows of the sweep.
    """

    recipe: str
    chunk: int
    count: int

    def chunks(self) -> list[tuple[int, int]]:
        """Of each chunk the first row and the row after its last."""
        return [(k, min(k + self.chunk, self.count)) for k in range(0, self.count, self.chunk)]

    def write(self, folder: Path) -> None:
        """Write it to a folder, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        head = {"format": FORMAT, "chunk": self.chunk, "count": self.count}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        recipe = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in json.loads(self.recipe).items()]
        lines.append(' "recipe": {\n' + ",\n".join(recipe) + "\n }")
        write_whole(folder / NAME, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def canonical(text: str) -> str:
    """A JSON text as it is kept and compared: the same values in the same order are the same text."""
    return json.dumps(json.loads(text), separators=(",", ":"))


def read_sweep_json(folder: Path) -> SweepJson:
    """What a sweep's folder says of itself.

    Raises:
        RobokitError: it is no folder of a sweep, or one of another version of robokit.
    """
    path = folder / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        what = f"no {NAME} in {folder}" if folder.is_dir() else f"there is no folder {str(folder)!r}"
        raise RobokitError(
            f"{what}: give the folder of a sweep (robokit sweep ROBOT -o FOLDER makes one)"
        ) from None
    except OSError as error:
        raise RobokitError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise RobokitError(f"{path} is not the file of a sweep: {one_line(str(error), 100)}") from error
    try:
        version, recipe = found["format"], found["recipe"]
        if version != FORMAT:
            raise RobokitError(
                f"{path} has format {shown(version)}, this robokit reads {FORMAT}; use the one that wrote it"
            )
        return SweepJson(json.dumps(recipe, separators=(",", ":")), int(found["chunk"]), int(found["count"]))
    except (KeyError, TypeError, ValueError) as error:
        raise RobokitError(
            f"{path} is not the file of a sweep: {one_line(str(error), 100)} is missing"
        ) from error


def begin(folder: Path, given: SweepJson) -> None:
    """Make the folder of a new sweep.

    Raises:
        RobokitError: it holds a sweep already, or something else, or it cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RobokitError(f"out: {folder} is a file; give a folder")
        if (folder / NAME).exists():
            raise RobokitError(
                f"out: {folder} holds a sweep already; go on with it by resume=True (robokit sweep --resume "
                f"{shlex.quote(str(folder))}), or give another folder"
            )
        others = [path.name for path in folder.iterdir()] if folder.exists() else []
        foreign = [name for name in others if name != CHUNKS and not name.startswith(".sweep.")]
        if foreign:
            raise RobokitError(
                f"out: {folder} is not empty ({one_line(min(foreign), 60)}); give a new folder"
            )
        (folder / CHUNKS).mkdir(parents=True, exist_ok=True)
        given.write(folder)
    except OSError as error:
        raise RobokitError(f"out: cannot write to {folder}: {error.strerror or error}") from error


def another_sweep(folder: Path, found: SweepJson, given: SweepJson) -> RobokitError:
    """The error for a folder that holds another sweep than the one that is to go on."""
    ours, theirs = json.loads(given.recipe), json.loads(found.recipe)
    differ = [key for key in theirs if json.dumps(theirs[key]) != json.dumps(ours.get(key))]
    key = next((key for key in differ if key != "versions"), "versions")
    return RobokitError(
        f"{folder} holds another sweep: its {key!r} is {shown(theirs.get(key), 60)}, not "
        f"{shown(ours.get(key), 60)}; go on with the same arguments, or give another folder"
    )


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, so that no two commands write to it at once; the system lets go of it at any end.

    Raises:
        RobokitError: another command holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows: chunks are written whole there, too
        yield
        return
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY)
    except OSError as error:
        raise RobokitError(disk_problem(folder, error)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RobokitError(f"{folder} is being written by another command; wait for its end") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(descriptor)
