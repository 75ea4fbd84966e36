"""The page's step as it comes with robokit: one WebAssembly module for all robots, which nobody waits for.

The file begins with the digest of the sources that it was made of. Where these have changed since, it is
passed over, and the module is made anew. After a change of the step, for a release:

    python -m robokit.sim.stepping.shipped_step
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from robokit import disk_cache

FILE = Path(__file__).with_name("page_step.wasm.gz")

ROOT = Path(__file__).resolve().parents[2]

SOURCES = ("contact", "collision", "engine", "spatial", "model/joints.py", "sim/stepping/contact_page.py")
"""Folders and files of robokit that decide what the module does."""


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


def shipped_module() -> bytes | None:
    """The module, compressed by gzip, if it is that of this source."""
    try:
        content = FILE.read_bytes()
    except OSError:
        return None
    digest = sources_digest()
    return content[len(digest) :] if digest and content.startswith(digest) else None


def main() -> None:
    """Write the file."""
    from robokit.sim.stepping.contact_page import made_module

    FILE.write_bytes(sources_digest() + made_module())


if __name__ == "__main__":
    main()
