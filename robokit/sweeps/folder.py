"""The folder of a sweep: writing files completely or not at all, and its sweep.json."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robokit.arguments import whole_number
from robokit.errors import RobokitError, ShapeError, one_line, shown
from robokit.files import open_regular, shell_word
from robokit.sweeps.recipe import MAX_ROWS
from robokit.sweeps.table import is_sealed, read_parquet

CHUNKS = "chunks"
"""Folder of the chunks, in that of the sweep."""

_BINARY = getattr(os, "O_BINARY", 0)


def regular_bytes(path: Path) -> bytes:
    """The content of a regular file; a folder may come from anywhere, and a pipe in it would never end.

    Raises:
        OSError: it cannot be read, or is no regular file.
        MemoryError: it is larger than the memory.
    """
    try:
        with open_regular(path) as file:
            return file.read(os.fstat(file.fileno()).st_size)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"it is {error}", str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole, and on the disk, or not at all.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    beside = path.with_name(f".{path.stem}.{os.urandom(6).hex()}.tmp")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system can."""
    with contextlib.suppress(OSError):  # Windows, and some network file systems
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def disk_problem(folder: Path, error: OSError) -> str:
    """Why a folder takes no files, in words."""
    why = error.strerror or str(error)
    if not folder.exists():
        return f"{folder} has gone ({why}); bring it back"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"cannot write to {folder}: {why}; make room"
    return f"cannot write to {folder}: {why}"


# ---- sweep.json --------------------------------------------------------------------------------

FORMAT = 2
"""Number of the folder's layout, raised when an older robokit could not read it or would change it."""

SEALED = 2
"""The first layout whose files have a hash of all that is in them."""

SWEEP_FILE = "sweep.json"


@dataclass(frozen=True)
class SweepFile:
    """What sweep.json says.

    Attributes:
        recipe: text of the recipe, as :func:`canonical_json` writes it.
        chunk: rows of a chunk; the last one may have fewer.
        count: rows of the sweep.
        layout: number of the folder's layout.
    """

    recipe: str
    chunk: int
    count: int
    layout: int = FORMAT

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Of each chunk the first row and the row after its last, one after the other: there may be many."""
        return ((k, min(k + self.chunk, self.count)) for k in range(0, self.count, self.chunk))

    def rows_from(self, first: int) -> int:
        """The rows of the chunk that begins with this row; 0 where none does."""
        return max(0, min(self.chunk, self.count - first)) if first % self.chunk == 0 else 0

    @property
    def hash(self) -> str:
        """SHA-256 of the layout, the size of chunks, the number of rows and the recipe."""
        return hashlib.sha256(f"{self.layout} {self.chunk} {self.count} {self.recipe}".encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write it to a folder, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        head = {"format": self.layout, "chunk": self.chunk, "count": self.count, "sha256": self.hash}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        recipe = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in json.loads(self.recipe).items()]
        lines.append(' "recipe": {\n' + ",\n".join(recipe) + "\n }")
        write_whole(folder / SWEEP_FILE, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def canonical_json(text: str) -> str:
    """A JSON text as it is kept and compared: the same values in the same order are the same text."""
    return json.dumps(json.loads(text), separators=(",", ":"))


def read_sweep_file(folder: Path) -> SweepFile:
    """What a sweep's folder says of itself.

    Raises:
        RobokitError: it is no folder of a sweep, or one of another version of robokit, or what it says
            contradicts itself.
    """
    path = folder / SWEEP_FILE
    try:
        found = json.loads(regular_bytes(path).decode())
    except (FileNotFoundError, NotADirectoryError):
        what = f"no {SWEEP_FILE} in {folder}" if folder.is_dir() else f"there is no folder {str(folder)!r}"
        raise RobokitError(
            f"{what}: give the folder of a sweep (robokit sweep ROBOT -o FOLDER makes one)"
        ) from None
    except OSError as error:
        raise RobokitError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _no_sweep(path, one_line(str(error) or "it is larger than the memory", 100)) from error
    try:
        layout, recipe = found["format"], found["recipe"]
        chunk, count = found["chunk"], found["count"]
    except (KeyError, TypeError) as error:
        if isinstance(found, dict) and found.get("format", FORMAT) not in range(1, FORMAT + 1):
            raise _another_format(path, found["format"]) from None
        raise _no_sweep(path, f"{one_line(str(error), 100)} is missing") from error
    if type(layout) is not int or not 1 <= layout <= FORMAT:
        raise _another_format(path, layout)
    try:
        whole_number("'chunk'", chunk, 1)
        whole_number("'count'", count, 1, MAX_ROWS)
    except ShapeError as error:
        raise _no_sweep(path, str(error)) from None
    if not isinstance(recipe, dict):
        raise _no_sweep(path, f"'recipe': expected an object, got {shown(recipe)}")
    if type(recipe.get("count")) is not int or recipe["count"] != count:
        own = shown(recipe.get("count"))
        raise RobokitError(
            f"{path} contradicts itself: its 'count' is {count}, its recipe's {own}; {_CHANGED}"
        )
    sweep_file = SweepFile(json.dumps(recipe, separators=(",", ":")), chunk, count, layout)
    if layout >= SEALED and found.get("sha256") != sweep_file.hash:
        raise RobokitError(
            f"{path} is not as it was written: its content does not have its 'sha256'"
            f"{_changed(folder, sweep_file)}; {_CHANGED}"
        )
    return sweep_file


_CHANGED = (
    f"put the {SWEEP_FILE} back that was there; nothing was changed (each file of {CHUNKS}/ has the recipe "
    "in its metadata, too)"
)


def _changed(folder: Path, sweep_file: SweepFile) -> str:
    """How sweep.json differs from the recipe in a chunk, in words; "" where no chunk can be read."""
    with contextlib.suppress(Exception):  # without it, the error says a little less
        for path in sorted((folder / CHUNKS).glob("*.parquet")):
            content = regular_bytes(path)
            if is_sealed(content, path.name):
                recipe, _, _ = read_parquet(content, [])
                if recipe == sweep_file.recipe:
                    return " (its recipe is that of the chunks)"
                return f": beside the recipe of {CHUNKS}/{path.name}, {difference(sweep_file.recipe, recipe)}"
    return ""


def _no_sweep(path: Path, why: str) -> RobokitError:
    return RobokitError(f"{path} is not the file of a sweep: {why}")


def _another_format(path: Path, number: Any) -> RobokitError:
    return RobokitError(
        f"{path} has format {shown(number)}, this robokit reads 1 and {FORMAT}; use the one that wrote it"
    )


def create_folder(folder: Path, sweep_file: SweepFile) -> None:
    """Make the folder of a new sweep.

    Raises:
        RobokitError: it holds a sweep already, or something else, or it cannot be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise RobokitError(f"out: {folder} is a file; give a folder")
        if (folder / SWEEP_FILE).exists():
            raise RobokitError(
                f"out: {folder} holds a sweep already; go on with it by resume=True (robokit sweep --resume "
                f"{shell_word(folder)}), or give another folder"
            )
        others = [path.name for path in folder.iterdir()] if folder.exists() else []
        foreign = [name for name in others if name != CHUNKS and not name.startswith(".sweep.")]
        if foreign:
            raise RobokitError(
                f"out: {folder} is not empty ({one_line(min(foreign), 60)}); give a new folder"
            )
        (folder / CHUNKS).mkdir(parents=True, exist_ok=True)
        sweep_file.write(folder)
    except OSError as error:
        raise RobokitError(f"out: cannot write to {folder}: {error.strerror or error}") from error


def another_sweep(folder: Path, found: SweepFile, sweep_file: SweepFile) -> RobokitError:
    """The error for a folder that holds another sweep than the one that is to go on."""
    differs = difference(found.recipe, sweep_file.recipe)
    return RobokitError(
        f"{folder} holds another sweep: its {differs}; go on with the same arguments, or give another folder"
    )


def difference(text: str, other: str) -> str:
    """In what a recipe differs from another one, in words: "'seed' is 3, not 4"."""
    theirs, ours, path = json.loads(text), json.loads(other), list[str]()
    while True:
        if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
            theirs, ours = ({str(k): x for k, x in enumerate(each)} for each in (theirs, ours))
        if not (isinstance(theirs, dict) and isinstance(ours, dict)):
            break
        keys = dict.fromkeys([*theirs, *ours])
        differ = [key for key in keys if json.dumps(theirs.get(key)) != json.dumps(ours.get(key))]
        if not differ:
            break
        path.append(next((key for key in differ if key != "versions"), differ[0]))
        theirs, ours = theirs.get(path[-1]), ours.get(path[-1])
    where, said, mine = repr("/".join(path)), shown(theirs, 60), shown(ours, 60)
    return f"{where} is {said}, not {mine}" if said != mine else f"{where} has other content"


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
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
        descriptor = os.open(folder / SWEEP_FILE, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
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
