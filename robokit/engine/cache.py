"""Compiled code on disk: content-addressed, verified, and never needed.

A file is named by the hash of everything that its content depends on, so it is never out of date, only
unused. It carries the hash of its own bytes: a torn or foreign file is ignored and written anew. Files
appear by an atomic rename, so any number of processes may race; the losers overwrite with the same. A
folder that is missing, full or read-only costs compile time and nothing else.

The folder is $ROBOKIT_CACHE_DIR, else robokit under the platform's folder for caches of the user. It
holds machine code that will be run: give it to nobody else to write.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

_MAGIC = b"robokit1"
_LIMIT_BYTES = 1 << 29
_log = logging.getLogger(__name__)


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
    """Hash of robokit's own source: what a kernel computes may depend on any line of it."""
    root = Path(__file__).resolve().parents[1]
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        try:
            content = path.read_bytes()
        except OSError:  # an editor is saving it: not the file of this process anyway
            continue
        total.update(f"{path.relative_to(root)}\0{len(content)}\0".encode())
        total.update(content)
    return total.digest()


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
        path = folder() / f"{name}.bin"
        content = path.read_bytes()
        with contextlib.suppress(OSError):
            os.utime(path)  # the oldest are removed first
    except (OSError, RuntimeError):
        return None
    try:
        start = len(_MAGIC) + 32
        if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _hash(content[start:]):
            raise ValueError("hash differs")
        size = int.from_bytes(content[start : start + 4], "little")
        meta = json.loads(content[start + 4 : start + 4 + size])
        if meta.pop("name") != name:
            raise ValueError("renamed")
        return meta, content[start + 4 + size :]
    except (ValueError, KeyError) as error:
        _log.info("ignored damaged cache file %s: %s", path, error)
        return None


def store(name: str, meta: dict[str, Any], code: bytes) -> None:
    """Keep metadata and code under a name; failure is not an error."""
    header = json.dumps({**meta, "name": name}).encode()
    content = len(header).to_bytes(4, "little") + header + code
    temporary = None
    try:
        where = folder()
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _prune(where)
        temporary = where / f"{name}.{os.getpid()}.{os.urandom(6).hex()}.tmp"
        temporary.write_bytes(_MAGIC + _hash(content) + content)
        os.replace(temporary, where / f"{name}.bin")
    except (OSError, RuntimeError) as error:
        _log.info("compiled code was not kept: %s", error)
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _prune(where: Path) -> None:
    """Remove the files unused for longest once there is half a gigabyte."""
    files = []
    for entry in os.scandir(where):
        with contextlib.suppress(OSError):
            state = entry.stat()
            if entry.name.endswith((".bin", ".tmp")):
                files.append((state.st_mtime, state.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total < _LIMIT_BYTES:
            break
        with contextlib.suppress(OSError):
            os.unlink(path)
        total -= size
