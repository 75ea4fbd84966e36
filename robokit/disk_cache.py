"""Compiled code, and what was computed of meshes, on disk: content-addressed, verified, and never needed.

A file is named by the hash of everything that its content depends on, so it is never out of date, only
unused. It carries the hash of its own bytes: a torn or foreign file is ignored and written anew. Files
appear by an atomic rename, so any number of processes may race; the losers overwrite with the same. Of
several that need the same code at once one compiles it, and the others wait. A folder that is missing, full
or read-only costs compile time and nothing else.

The folder is $ROBOKIT_CACHE_DIR, else robokit under the platform's folder for caches of the user. It
holds machine code that will be run. A folder that somebody else may write to, or could put in its place, is
not used, which costs compile time, and a warning says why; nor is a file of somebody else.
Nobody else may write to the files made here, whatever the umask.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import warn
from robokit.interpreter import at_fork

_MAGIC = b"robokit1"
_START = len(_MAGIC) + 32
_LIMIT_BYTES = 1 << 29
_LARGEST_BYTES = 1 << 28  # of one file
_LOOKS = 64  # at the whole folder, on average, while the limit is written once
_NAME = re.compile(r"[0-9a-f]{64}\.(bin|lock|\d+\.[0-9a-f]{12}\.tmp)")
_ABANDONED_SECONDS = 3600.0
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would write line ends otherwise
_LOADED = time.time() - 1.0  # a second for coarse clocks, and for what was imported before this file
_warned: dict[Path, NotTrusted] = {}  # folders that a warning told of
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path  # of the file
    size: int  # [bytes]
    used: float  # when it was last used [s since the epoch]
    kernel: str  # name of the kernel, "" where the file does not say
    part: str  # "single", "batch" or "mesh", "" where the file does not say


def folder() -> Path:
    """Where the files are; it may not exist."""
    chosen = os.environ.get("ROBOKIT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "robokit"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "robokit"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "robokit"


@cache
def source_digest() -> bytes:
    """Hash of robokit's own source: what a kernel computes may depend on any line of it.

    Empty where the files are not the source of the code that runs: there are none (a zipped or frozen
    program), or some were edited or upgraded after they were imported.
    """
    root = os.path.dirname(os.path.realpath(__file__))
    total = hashlib.sha256()
    paths = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith(".py")
    )
    for path in paths:
        content = source_file(path)
        if content is None:
            return b""
        total.update(f"{path[len(root) :]}\0{len(content)}\0".encode())
        total.update(content)
    return total.digest() if paths else b""


def source_file(path: str | Path) -> bytes | None:
    """Content of a source file, None if it is gone or may be newer than what this process runs."""
    try:
        with open(path, "rb") as file:
            state = os.fstat(file.fileno())
            return None if max(state.st_mtime, state.st_ctime) > _LOADED else file.read()
    except OSError:
        return None


def digest(*parts: Any) -> str:
    """Name of a file from all that its content depends on (bytes, or values with an exact repr)."""
    total = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        total.update(len(content).to_bytes(8, "little"))
        total.update(content)
    return total.hexdigest()


def load(name: str) -> tuple[dict[str, Any], bytes] | None:
    """Metadata and code stored under that name; None if there is no such file or it is damaged."""
    try:
        where = _usable(folder())
        if where is None:
            return None
        path = where / f"{name}.bin"
        content = read_trusted(path, _LARGEST_BYTES)
        with contextlib.suppress(OSError):
            os.utime(path)  # the oldest are removed first
    except NotTrusted as error:
        _log.info("ignored cache file: %s", error)
        return None
    except (OSError, RuntimeError):
        return None
    try:
        if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : _START] != _hash(content[_START:]):
            raise ValueError("hash differs")
        meta, end = _metadata(content)
        if meta.pop("name") != name:
            raise ValueError("renamed")
        return meta, content[end:]
    except (ValueError, KeyError) as error:
        _log.info("ignored damaged cache file %s: %s", path, error)
        return None


def store(name: str, meta: dict[str, Any], code: bytes) -> None:
    """Keep metadata and code under a name; failure is not an error."""
    header = json.dumps({**meta, "name": name}).encode()
    content = len(header).to_bytes(4, "little") + header + code
    temporary = None
    try:
        where = _usable(folder(), make=True)
        if where is None:
            return
        whole = _hash(content)
        if _due(whole, len(content)):
            _prune(where)
        temporary = where / f"{name}.{os.getpid()}.{os.urandom(6).hex()}.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o644)
        with open(descriptor, "wb") as file:
            file.write(_MAGIC + whole + content)
        os.replace(temporary, where / f"{name}.bin")
        temporary = None
    except (OSError, RuntimeError) as error:
        _log.info("compiled code was not kept: %s", error)
    finally:  # after Ctrl-C too
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def making(name: str) -> contextlib.AbstractContextManager[bool]:
    """Lock the making of a file; yields whether another process had the lock: then the file may exist now."""
    with contextlib.suppress(OSError, RuntimeError):
        if (where := _usable(folder(), make=True)) is not None:
            return file_lock(where / f"{name}.lock")
    return contextlib.nullcontext(False)


def arrays(
    label: str, key: Sequence[Any] | None, make: Callable[[], Sequence[np.ndarray]], part: str = "mesh"
) -> list[np.ndarray]:
    """Arrays of numbers that take long to compute, from the folder or made now and kept there.

    ``key`` is all that they depend on besides robokit's own source, as for :func:`digest`; where it is None,
    because that is not known, they are not kept. ``label`` and ``part`` are for ``robokit cache``.
    """
    source = b"" if key is None else source_digest()
    name = digest("arrays", source, *(key or ()))
    found = load(name) if source else None
    if found is not None:
        return _unpacked(*found)
    made = [np.asarray(each) for each in make()]
    if source:
        kinds = [(each.dtype.str, each.shape) for each in made]
        content = b"".join(each.tobytes() for each in made)
        store(name, {"kernel": label, "part": part, "arrays": kinds}, content)
    return made


def _unpacked(meta: dict[str, Any], content: bytes) -> list[np.ndarray]:
    """The arrays of a file, which stand one after another in it."""
    found, offset = [], 0
    for kind, shape in meta["arrays"]:
        count = math.prod(shape)
        each = np.frombuffer(content, kind, count, offset).reshape(shape).copy()
        found.append(each)
        offset += each.nbytes
    return found


def entries() -> list[Entry]:
    """The cache's files, those used last first; none if there is no folder; OSError if it cannot be read."""
    found = []
    for path, state in _files(folder()):
        kernel = part = ""
        try:
            meta, _ = _metadata(read_trusted(path, _LARGEST_BYTES, head=1 << 16))
            kernel, part = str(meta.get("kernel", "")), str(meta.get("part", ""))
        except (OSError, ValueError, NotTrusted):  # damaged, or another user's: it still takes its room
            pass
        found.append(Entry(path, state.st_size, state.st_mtime, kernel, part))
    return sorted(found, key=lambda entry: -entry.used)


def clear() -> list[Entry]:
    """Remove the cache's files, and nothing else that may lie in the folder; returns what was removed.

    Programs that run are not disturbed: they compile again what they look for next. Raises OSError if the
    folder cannot be read, or a file cannot be removed.
    """
    removed = entries()
    for entry in removed:
        entry.path.unlink(missing_ok=True)
    return removed


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _metadata(content: bytes) -> tuple[dict[str, Any], int]:
    """A file's metadata, and where its code begins."""
    end = _START + 4 + int.from_bytes(content[_START : _START + 4], "little")
    meta = json.loads(content[_START + 4 : end])
    if not isinstance(meta, dict):
        raise ValueError("no metadata")
    return meta, end


def _usable(where: Path, make: bool = False) -> Path | None:
    """The folder; None where somebody else may write to it, of which a warning tells once.

    Raises OSError if it is not there and is not to be made, or cannot be made.
    """
    try:
        try:
            check_folder(where)
        except FileNotFoundError:
            if not make:
                raise
            make_folder(where)
            check_folder(where)
    except NotTrusted as error:
        if _warned.setdefault(where, error) is error:  # no other thread was faster
            warn(
                f"the cache folder {where} is not used, since code in it could be another user's: {error}. "
                "Or set ROBOKIT_CACHE_DIR to a folder of your own. Until then everything is compiled anew "
                "in each process",
                UserWarning,
            )
        return None
    return where


def _files(where: Path) -> list[tuple[Path, os.stat_result]]:
    """The files that are the cache's own, by their names."""
    found = []
    with contextlib.suppress(FileNotFoundError), os.scandir(where) as every:
        for entry in every:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):  # another process was faster
                    found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return found


def _due(whole: bytes, size: int) -> bool:
    """Whether it is time to look at all files: by chance, as likely as the new one of this hash and size is
    large.

    Of thousands of files a look takes as long as compiling. No process can tell how much the others have
    written since the last one; in this way the folder outgrows its limit by a hundredth or two.
    """
    return int.from_bytes(whole[:8], "little") * _LIMIT_BYTES < (size * _LOOKS) << 64


def _prune(where: Path) -> None:
    """Remove what killed processes left, and the files unused for longest once there is half a gigabyte."""
    files = sorted(((s.st_mtime, s.st_size, path) for path, s in _files(where)), key=lambda each: each[0])
    total = sum(size for _, size, _ in files)
    for used, size, path in files:
        if total >= _LIMIT_BYTES or (path.suffix != ".bin" and used < time.time() - _ABANDONED_SECONDS):
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size


# ---- Who could have written a file: what this process runs must be this user's or root's alone ---

MOST_LINKS = 40  # on one way, as the system itself has it

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Windows would write line ends otherwise, and knows the others not at all.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, f"O_{name}", 0) for name in ("BINARY", "NOFOLLOW", "NONBLOCK", "CLOEXEC", "NOCTTY")
)


class NotTrusted(Exception):
    """Somebody else may write there; the text says where, and what to do."""


def check_folder(folder: Path) -> None:
    """Raise NotTrusted where somebody else may write to a folder, or to one on the way to it; OSError
    without it.
    """
    if not hasattr(os, "geteuid"):
        return
    # Step by step as the system goes: ".." after a link is not what the text looks like.
    rest = list(reversed(Path(os.path.join(os.getcwd(), folder)).parts))
    place, links = rest.pop(), 0
    while True:
        state = os.lstat(place)
        if state.st_uid not in (os.geteuid(), 0):
            raise NotTrusted(f"{place} belongs to {_user(state.st_uid)}")
        if stat.S_ISLNK(state.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise NotTrusted(f"{place} is one of more than {MOST_LINKS} links")
            target = os.readlink(place)
            rest += reversed(Path(target).parts)
            place = rest.pop() if os.path.isabs(target) else os.path.dirname(place)
            continue
        if not stat.S_ISDIR(state.st_mode):
            raise NotADirectoryError(place)
        passing = bool(state.st_mode & stat.S_ISVTX and rest)
        if state.st_mode & _OTHERS and not passing and not _only_by_its_owner(state):
            raise NotTrusted(
                f"{place} can be written to by other users (mode {stat.S_IMODE(state.st_mode):o}); "
                f"if it should be yours alone: chmod go-w {place}"
            )
        if not rest:
            return
        part = rest.pop()
        place = os.path.dirname(place) if part == ".." else os.path.join(place, part)


def make_folder(folder: Path) -> None:
    """Make a folder and those on the way to it, for this user alone whatever the umask."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def read_trusted(path: Path, most: int, head: int = -1) -> bytes:
    """Content of a file, in a folder that was checked, that nobody else may write to; its head, if asked for.

    Neither a link nor a pipe nor a device, which could be endless. Raises NotTrusted for these, for another
    user's file, one that others may write to, and one of more than ``most`` bytes; OSError if it cannot be
    read.
    """
    with open(os.open(path, _FLAGS), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise NotTrusted(f"{path} is not a regular file")
        if state.st_size > most:
            raise NotTrusted(f"{path} has {state.st_size:,} bytes")
        if hasattr(os, "geteuid"):
            if state.st_uid not in (os.geteuid(), 0):
                raise NotTrusted(f"{path} belongs to {_user(state.st_uid)}")
            if state.st_mode & _OTHERS:
                raise NotTrusted(f"{path} can be written to by other users")
        return file.read(state.st_size if head < 0 else head)


def _only_by_its_owner(state: os.stat_result) -> bool:
    """Whether the group that may write is the owner's own, as some systems give one to every user."""
    import grp
    import pwd

    if state.st_mode & stat.S_IWOTH:
        return False
    try:
        owner, group = pwd.getpwuid(state.st_uid).pw_name, grp.getgrgid(state.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner and not set(group.gr_mem) - {owner}


def _user(uid: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name!r}"
    except KeyError:
        return f"user {uid}"


# ---- one process does a piece of work, and others that come to it wait: a lock on a file ---------

LOCK_PATIENCE = 600.0  # longest wait for another process [s]

_PAUSE = 0.02  # [s]

_locks: set[int] = set()  # descriptors of this process


def _let_go() -> None:
    """A forked child has the descriptors of other threads' locks: it must not hold what nobody gives back."""
    for descriptor in _locks:
        os.close(descriptor)
    _locks.clear()


at_fork(after_in_child=_let_go)


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, which is made for that, in an existing folder, and removed again.

    Yields:
        whether another process held it meanwhile, and may have done the work.
    """
    waited, until = False, time.monotonic() + LOCK_PATIENCE
    descriptor = None
    with contextlib.suppress(ImportError, OSError):
        while descriptor is None and time.monotonic() < until:
            descriptor = _taken(path)
            if descriptor is None:
                waited = True
                time.sleep(_PAUSE)
    try:
        yield waited
    finally:
        if descriptor in _locks:  # not in a child that was forked meanwhile
            with contextlib.suppress(OSError):
                path.unlink()
            _locks.discard(descriptor)
            os.close(descriptor)


def _taken(path: Path) -> int | None:
    """An open descriptor of the file with its lock; None if another process has it.

    Raises OSError where there are no locks, or ImportError, as in Windows.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _locks.add(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
