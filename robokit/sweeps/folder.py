"""The folder of a sweep: its recipe, and its chunks, computed, written, each byte checked."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from robokit.arguments import whole_number
from robokit.dataclass_tools import frozen
from robokit.disk_cache import source_digest
from robokit.errors import MissingDependency, RobokitError, ShapeError, one_line, shown
from robokit.files import open_regular, shell_word
from robokit.sweeps.recipe import MAX_ROWS, Recipe, versions
from robokit.sweeps.table import (
    FAILURE,
    HASH_LETTERS,
    RowTable,
    add_seal,
    content_hash,
    is_sealed,
    parquet_bytes,
    read_parquet,
)

# ==== The folder of a sweep: writing files completely or not at all, and its sweep.json ===========

CHUNKS = "chunks"  # folder of the chunks, in that of the sweep

_BINARY = getattr(os, "O_BINARY", 0)


def regular_bytes(path: Path) -> bytes:
    """The content of a regular file: a folder may come from anywhere, and a pipe in it would never end.

    Raises OSError if it cannot be read or is none, MemoryError if it is larger than the memory.
    """
    try:
        with open_regular(path) as file:
            return file.read(os.fstat(file.fileno()).st_size)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"it is {error}", str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole, and on the disk, or not at all; then OSError says why."""
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

FORMAT = 2  # number of the folder's layout, raised when an older robokit could not read it or would change it
SEALED = 2  # the first layout whose files have a hash of all that is in them

SWEEP_FILE = "sweep.json"


@frozen
class SweepFile:
    """What sweep.json says."""

    recipe: str  # text of the recipe, as :func:`canonical_json` writes it
    chunk: int  # rows of a chunk; the last one may have fewer
    count: int  # rows of the sweep
    layout: int = FORMAT  # number of the folder's layout

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
        """Write it to a folder, whole or not at all; then OSError says why."""
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

    Raises RobokitError if it is no folder of a sweep, is one of another version, or contradicts itself.
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
    """Make the folder of a new sweep; RobokitError if it holds anything already, or cannot be written."""
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
        f"{folder} holds another sweep: its {differs}; use the same arguments, or give another folder"
    )


def difference(text: str, other: str) -> str:
    """How a recipe differs from another one, in words: "'seed' is 3, not 4"."""
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

    Raises RobokitError where another command holds it.
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


# ==== chunks ======================================================================================
# The chunks of a sweep: computed, written completely or not at all, and checked when they are read.
#
# The folder of a sweep contains ``sweep.json`` and, in ``chunks/``, a Parquet file for each chunk:
# FIRST-HASH.parquet, with the number of its first row and the hash of its content (``table.content_hash``). A
# file is written under a temporary name, flushed to disk and renamed. A file without a temporary name is
# therefore complete, whenever a process was killed, and two workers that compute the same rows write the same
# file.
#
# Every reader first checks all bytes of a chunk (``table.is_sealed``), and that it belongs to ``sweep.json``.
# A damaged chunk is computed again when the sweep is resumed. If all intact chunks contradict ``sweep.json``,
# nothing is changed, because nobody can tell which of the two is wrong.
#
# Everything else in ``chunks/`` was left by killed processes: temporary files, whose names begin with a dot.

_NAME = re.compile(rf"(\d+)-([0-9a-f]{{{HASH_LETTERS}}})\.parquet", re.ASCII)
_TEMPORARY = re.compile(rf"\.(sweep|\d+-[0-9a-f]{{{HASH_LETTERS}}})\.[0-9a-f]+\.tmp|\.[0-9a-f]+\.probe\.tmp")


class DamagedChunk(Exception):
    """A chunk that differs from what was written; the text says how."""


@dataclass(frozen=True, order=True)
class ChunkFile:
    """The file of a chunk."""

    first: int  # number of its first row
    path: Path  # of the file
    hash: str  # of its content, as its name has it


@frozen
class Chunk:
    """A chunk that is as it was written."""

    file: ChunkFile  # that it is in
    rows: int  # their number
    recipe: str  # text of the recipe that they were computed from
    table: RowTable  # its rows, or those of their columns that were asked for


def chunk_files(folder: Path) -> list[ChunkFile]:
    """The chunks of a sweep's folder by their names, ascending; their content is not looked at.

    Raises RobokitError if the folder cannot be read.
    """
    found = []
    try:
        with os.scandir(folder / CHUNKS) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match:
                    found.append(ChunkFile(int(match[1]), Path(entry.path), match[2]))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and folder.is_dir():
            return []  # all of them are missing
        raise RobokitError(f"cannot read {folder / CHUNKS}: {error.strerror or error}") from error
    return sorted(found)


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files of killed processes, in a sweep's folder and among its chunks; OSError if
    that fails.
    """
    for path in [*folder.iterdir(), *(folder / CHUNKS).iterdir()]:
        if _TEMPORARY.fullmatch(path.name) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def set_aside(file: ChunkFile, folder: Path, keep: bool = False) -> str:
    """Make room for a chunk that is to be computed again; OSError if that fails.

    With ``keep`` the file is moved beside ``chunks/`` in place of being removed. A folder is moved in any
    case, for what is in it is none of the sweep's. Returns where it was moved to, in words; "" otherwise.
    """
    if not keep and (file.path.is_symlink() or not file.path.is_dir()):
        file.path.unlink(missing_ok=True)
        return ""
    aside = folder / f"{file.path.name}.{os.urandom(4).hex()}"
    file.path.rename(aside)
    return f"; it was moved to {aside.name}"


def probe_name() -> str:
    """Name of a file by which a worker finds out whether it shares the folder."""
    return f".{os.urandom(8).hex()}.probe.tmp"


def recipe_hash(text: str) -> str:
    """The hash of the recipe of a text."""
    return Recipe.from_json(text).hash


def open_chunk(
    file: ChunkFile,
    layout: int,
    columns: list[str] | None = None,
    hash_of: Callable[[str], str] = recipe_hash,
) -> Chunk:
    """A chunk, every byte of which was checked.

    Args:
        file: of the chunk.
        layout: number of the folder's layout; before SEALED, chunks had no seal, and their values are
            compared with the hash in the file's name.
        columns: names of those that are wanted, None for all; those that there are not are left out.
        hash_of: the hash of a recipe by its text.

    Raises DamagedChunk if it is not as it was written, MissingDependency without pyarrow.
    """
    try:
        content = regular_bytes(file.path)
        is_whole = is_sealed(content, file.path.name)
        if not is_whole and layout >= SEALED:
            ends = content[:4] == content[-4:] == b"PAR1"
            cut = (
                "has other bytes than were written, or another name"
                if ends
                else "is cut off, or no Parquet file"
            )
            raise DamagedChunk(cut if content else "is empty")
        recipe, rows, table = read_parquet(content, columns if is_whole else None)
        if not is_whole:
            if content_hash(table, hash_of(recipe)) != file.hash:
                raise DamagedChunk("does not have the content that its name says")
            if table.num_rows and table["row"][0] != file.first:
                raise DamagedChunk(
                    f"has the rows from {table['row'][0]} on, its name those from {file.first} on"
                )
    except (DamagedChunk, MissingDependency):
        raise
    except OSError as error:
        raise DamagedChunk(f"cannot be read: {one_line(error.strerror or str(error), 100)}") from error
    except Exception as error:  # whatever a decoder makes of damaged bytes
        raise DamagedChunk(
            f"cannot be decoded: {one_line(str(error) or type(error).__name__, 100)}"
        ) from error
    return Chunk(file, rows, recipe, table)


def check_belongs(chunk: Chunk, folder: Path, sweep_file: SweepFile) -> None:
    """Raise RobokitError for a chunk that is sound and contradicts sweep.json."""
    wanted = sweep_file.rows_from(chunk.file.first)
    if chunk.recipe != sweep_file.recipe:
        what = f"the chunk's recipe {difference(chunk.recipe, sweep_file.recipe)}"
    elif chunk.rows != wanted:
        there = f"a chunk of {wanted:,}" if wanted else "no chunk"
        what = f"{chunk.rows:,} rows begin with row {chunk.file.first:,}, where 'chunk' "
        what += f"{sweep_file.chunk:,} and 'count' {sweep_file.count:,} have {there}"
    else:
        return
    raise RobokitError(
        f"{folder / SWEEP_FILE} and {CHUNKS}/{chunk.file.path.name} contradict each other: {what}; put the "
        f"right {SWEEP_FILE} back, or move the chunk to its own sweep; nothing was changed"
    )


def read_chunks(
    folder: Path,
    columns: list[str] | None = None,
    only: list[ChunkFile] | None = None,
    sweep_file: SweepFile | None = None,
) -> Iterator[RowTable]:
    """The chunks' rows, one table a chunk, ascending: of all chunks and columns, or of those that are named.

    Raises RobokitError where a chunk is damaged, is there twice, or contradicts sweep.json.
    """
    sweep_file = sweep_file or read_sweep_file(folder)
    before, names = -1, None
    for file in chunk_files(folder) if only is None else only:
        try:
            if file.first == before:
                raise DamagedChunk("exists more than once, with different content")
            chunk = open_chunk(file, sweep_file.layout, columns)
            names = names or chunk.table.column_names
            if chunk.table.column_names != names:
                raise DamagedChunk("has other columns than the chunks before it")
        except DamagedChunk as error:
            raise RobokitError(
                f"{file.path} is damaged: it {error}; robokit sweep --resume {shell_word(folder)} "
                "computes its rows again"
            ) from error
        check_belongs(chunk, folder, sweep_file)
        before = file.first
        yield chunk.table


# ---- what a worker does ------------------------------------------------------------------------


@frozen
class Place:
    """Where a sweep's chunks belong."""

    folder: str  # of the sweep, absolute
    probe: str  # name of a file in it, by which a worker finds out whether it shares the folder
    count: int  # rows of the sweep
    source: bytes  # hash of robokit's source, which must be the same on all machines
    device: str | None = None  # that computes, as in :func:`robokit.rollout`; None for the processor


@frozen
class ComputedChunk:
    """A chunk that was computed."""

    first: int  # number of its first row
    rows: int  # their number
    failures: int  # rows that failed
    name: str  # of its file
    content: bytes | None  # the file's bytes where the worker did not write them, else None
    memory: int  # largest memory of the worker's process so far [bytes], 0 where the system does not tell


def compute_chunk(
    text: str, reader: Callable[[str], Any], first: int, last: int, place: Place
) -> ComputedChunk:
    """Compute the rows first..last-1 of a chunk and write them, or hand them back.

    ``reader`` makes the recipe of its text. Raises RobokitError if this process has another robokit than the
    command.
    """
    # Rows are not computed by another text than the command's; an unknown one (edited files) is let be.
    here = source_digest()
    if here and place.source and here != place.source:
        raise RobokitError(
            f"worker {socket.gethostname()}:{os.getpid()} has another robokit, in "
            f"{Path(__file__).resolve().parents[1]}, than the command; install the same one, and start the "
            "worker again"
        )
    recipe = _cached_recipe(reader, text)
    how = {} if place.device is None else {"device": card_of_worker(place.device)}
    table = recipe.compute_rows(first, last, **how)
    if table.num_rows != last - first:
        raise RobokitError(f"rows {first} to {last - 1}: {table.num_rows} rows were computed")
    # Names sort as the rows do.
    name = f"{first:0{len(str(max(place.count - 1, 0)))}d}-{content_hash(table, recipe.hash)}.parquet"
    content = add_seal(parquet_bytes(table, text), name)
    handed_back = None if _write_here(place, name, content) else content
    return ComputedChunk(first, last - first, table.failures, name, handed_back, peak_memory())


def card_of_worker(device: str) -> str:
    """The card of this process: of "cuda", where workers of Dask share a machine, each has the next one."""
    from robokit.engine.cuda import driver

    if device != "cuda" or "distributed" not in sys.modules:
        return device
    from distributed import get_worker

    try:
        number = str(get_worker().name).rpartition("-")[2]
    except ValueError:  # no worker
        return device
    return f"cuda:{int(number) % driver.count()}" if number.isdecimal() else device


def peak_memory() -> int:
    """Largest memory of this process so far [bytes]; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


@lru_cache(maxsize=2)
def _cached_recipe(reader: Callable[[str], Any], text: str) -> Any:
    """The recipe, with all that its first chunk has compiled."""
    return reader(text)


def _write_here(place: Place, name: str, content: bytes) -> bool:
    folder = Path(place.folder)
    with contextlib.suppress(OSError):
        if (folder / place.probe).exists():
            write_whole(folder / CHUNKS / name, content)
            return True
    return False


# ---- the same arithmetic -----------------------------------------------------------------------


def check_same_bits(recipe: Any, folder: Path, text: str, file: ChunkFile) -> None:
    """Refuse, by RobokitError, to go on with a sweep whose rows come out otherwise here.

    ``text`` is the recipe as the folder has it, ``file`` a chunk of which one row is computed again.
    """
    begun = json.loads(text).get("versions")
    if begun is None or (begun == versions() and begun.get("source")):
        return
    kept = next(read_chunks(folder, only=[file]))
    sound = [k for k, why in enumerate(kept[FAILURE]) if why is None]
    place = sound[0] if sound else 0
    row = file.first + place
    again = recipe.compute_rows(row, row + 1)
    if content_hash(again, recipe.hash) == content_hash(kept.take([place]), recipe.hash):
        return
    columns = [name for name in kept.column_names if name in again.column_names]
    differ = [name for name in columns if not _same(kept[name][place], again[name][0])]
    what = f", in {differ[0]!r}" if differ else ""
    raise RobokitError(
        f"{folder} was begun with {_version_words(begun)}; here, with {_version_words(versions())}, row "
        f"{row} comes out otherwise{what}: the rows would not belong together; go on with that robokit, or "
        "begin a new sweep in another folder"
    )


def _same(x: Any, y: Any) -> bool:
    return bool(x == y or (x != x and y != y))


def _version_words(made: dict[str, str]) -> str:
    source = f" (source {made['source']})" if made.get("source") else ""
    return f"robokit {made.get('robokit')}{source} on {made.get('processor', 'another machine')}"
