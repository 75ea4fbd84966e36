"""Compiled code that comes with robokit, so that nobody waits for it.

A file begins with the digest of the sources that it was made of. Where these are others, it is passed over,
and the code is made here. After a change of them:

    python -m robokit.sim.page_step
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from pathlib import Path

from robokit import disk_cache
from robokit.errors import RobokitError

ROOT = Path(__file__).parent

FOLDER = ROOT / "shipped"

SOURCES = ("contact", "collision", "engine", "spatial", "model/joints.py", "sim/page_step.py")
"""Folders and files of robokit that decide what the code does."""


@functools.cache
def sources_digest() -> bytes:
    """Hash of these; empty where they are not the source of the code that runs."""
    total = hashlib.sha256()
    for source in SOURCES:
        place = ROOT / source
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = disk_cache.source_file(path)
            if content is None:
                return b""
            total.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode() + content)
    return total.digest()


def read(name: str) -> bytes | None:
    """Content of a file, compressed by gzip, if it was made of this source.

    Args:
        name: of the file.
    """
    try:
        content = (FOLDER / name).read_bytes()
    except OSError:
        return None
    digest = sources_digest()
    return content[len(digest) :] if digest and content.startswith(digest) else None


def write(name: str, content: bytes) -> None:
    """Write a file, compressed here; RobokitError if a source was changed after this process read it."""
    digest = sources_digest()
    if not digest:
        raise RobokitError("a source of the step is newer than this process: run it again")
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_bytes(digest + gzip.compress(content, 9, mtime=0))
