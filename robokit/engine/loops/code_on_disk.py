"""Code of kernels with loops on disk: under its own text, and under the source that the text is made from.

Under a text is machine code. Under a source is the name of that code, and what else a recording would tell:
a process that finds it there records nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robokit import disk_cache
from robokit.engine.backend import llvm


def name_of(text: str) -> str:
    """Under which the code of a module is."""
    return disk_cache.digest(llvm.identity(), text)


def code_of(kernel: str, text: str, key: tuple[Any, ...]) -> llvm.Loaded:
    """Code of a module, kept on disk under its text."""
    place = name_of(text)
    found = disk_cache.load(place)
    if found is None:
        from robokit.engine.maker import logged  # which needs kernels with loops itself

        with logged(kernel, " ".join(map(str, key[2:])) or "single"):
            content = llvm.assemble(text)
        disk_cache.store(place, {"kernel": kernel, "part": " ".join(map(str, key))}, content)
    return llvm.Loaded(content if found is None else found[1])


@dataclass(frozen=True)
class Source:
    """Robokit's source, where it tells all that a kernel does.

    Attributes:
        digest: of the source as it was when this process began.
        name: of what the disk has under it.
    """

    digest: bytes
    name: str

    @staticmethod
    def of(function: Callable[..., None], *made_from: Any) -> Source | None:
        """None where it is not known what source this process runs, or the function is not one of robokit.

        Args:
            function: it reads nothing that may change.
            made_from: what else the code depends on, with an exact repr.
        """
        where = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
        own = where[0].startswith("robokit.") and getattr(sys.modules[where[0]], where[1], None) is function
        digest = disk_cache.source_digest() if own else b""
        if not digest:
            return None
        return Source(digest, disk_cache.digest("loops", llvm.identity(), digest, *where, *made_from))

    def load(self) -> tuple[llvm.Loaded, bool] | None:
        """The code, and whether its calls may fail; None if it is not there."""
        noted = disk_cache.load(self.name)
        found = disk_cache.load(noted[1].decode("ascii", "replace")) if noted else None
        return (llvm.Loaded(found[1]), bool(noted[0].get("fails", True))) if noted and found else None

    def note(self, kernel: str, text: str, fails: bool) -> None:
        """Keep the name of the code, unless the source has changed since this process began.

        Modules that were imported after the change are not the ones that the digest is of.
        """
        with contextlib.suppress(OSError):
            if disk_cache.source_digest.__wrapped__() == self.digest:
                meta = {"kernel": kernel, "part": "name of code", "fails": fails}
                disk_cache.store(self.name, meta, name_of(text).encode())
