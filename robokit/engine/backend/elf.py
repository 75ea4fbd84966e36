"""Object files become one image of code that is copied into memory and run: for Linux on x86-64.

LLVM's own loader would do, but it comes with LLVM's whole library, whose import takes ten times as long
as loading a kernel from the cache; and the parts of a large module that were compiled side by side must
be put together somehow. The modules are simple: position-independent code and constants, no variables, and no
symbol from outside. Whatever else an object file may hold is refused, and LLVM loads it.

An image is MAGIC, the length of its head, the head (JSON) and the bytes, in which only the head's "absolute"
words depend on where they lie.
"""

from __future__ import annotations

import ctypes
import functools
import json
import mmap
import platform
import struct
import sys
from collections.abc import Sequence
from typing import Any

MAGIC = b"robokit image 1\n"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_X86_64, _RELOCATABLE = 62, 1
_PROGBITS, _SYMBOLS, _RELOCATIONS, _NOBITS = 1, 2, 4, 8
_ALLOCATED = 2
_UNWINDING = 0x70000001
_ABSOLUTE, _RELATIVE, _CALL = 1, 2, 4
"""Relocations: a 64-bit address, 32-bit distances to data and to functions."""


class NotLinked(Exception):
    """An object file holds what this linker does not know."""


@functools.cache
def possible() -> bool:
    """Whether images can be run here."""
    return (
        sys.platform == "linux"
        and platform.machine() == "x86_64"
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.implementation.name == "cpython"
    )


class _Object:
    """The sections and symbols of one object file, and where its sections are placed in the image."""

    def __init__(self, content: bytes) -> None:
        header = _HEADER.unpack_from(content)
        identity, kind, machine, first, count = header[0], header[1], header[2], header[6], header[12]
        if identity[:6] != b"\x7fELF\x02\x01" or (kind, machine) != (_RELOCATABLE, _X86_64):
            raise NotLinked("no relocatable object of x86-64")
        self.content = content
        self.sections = [_SECTION.unpack_from(content, first + k * _SECTION.size) for k in range(count)]
        self.places: dict[int, int] = {}
        self.symbols: list[tuple[str, int, int, int]] = []
        for section in self.sections:
            if section[1] == _SYMBOLS:
                names = self.sections[section[6]][4]
                for at in range(section[4], section[4] + section[5], _SYMBOL.size):
                    name, info, _, index, value, _ = _SYMBOL.unpack_from(content, at)
                    start = names + name
                    text = content[start : content.index(b"\0", start)].decode()
                    self.symbols.append((text, info >> 4, index, value))

    def place(self, image: bytearray) -> None:
        """Append the sections that are needed to run."""
        for number, (_, kind, flags, _, offset, size, _, _, align, _) in enumerate(self.sections):
            if not flags & _ALLOCATED or not size or kind == _UNWINDING:
                continue  # nothing is ever thrown through this code
            if kind == _NOBITS:
                raise NotLinked("variables")
            if kind != _PROGBITS:
                continue  # notes
            image.extend(bytes(-len(image) % max(align, 1)))
            self.places[number] = len(image)
            image.extend(self.content[offset : offset + size])

    def defined(self) -> dict[str, int]:
        """Where its global symbols are in the image."""
        return {
            name: self.places[index] + value
            for name, binding, index, value in self.symbols
            if binding and index in self.places
        }

    def connect(self, image: bytearray, known: dict[str, int]) -> list[int]:
        """Fill in the distances; places of words that need the image's own address."""
        absolute = []
        for section in self.sections:
            base = self.places.get(section[7])
            if section[1] != _RELOCATIONS or base is None:
                continue
            for at in range(section[4], section[4] + section[5], _RELOCATION.size):
                offset, kind, symbol, addend = _RELOCATION.unpack_from(self.content, at)
                place, target = base + offset, self._target(symbol, known) + addend
                if kind in (_RELATIVE, _CALL):
                    struct.pack_into("<i", image, place, target - place)
                elif kind == _ABSOLUTE:
                    struct.pack_into("<Q", image, place, target)
                    absolute.append(place)
                else:
                    raise NotLinked(f"relocation {kind}")
        return absolute

    def _target(self, number: int, known: dict[str, int]) -> int:
        name, _, index, value = self.symbols[number]
        if index in self.places:
            return self.places[index] + value
        if name not in known:
            raise NotLinked(f"symbol {name!r} from outside")
        return known[name]


def image(objects: Sequence[bytes]) -> bytes:
    """Put object files together.

    Args:
        objects: their contents; a symbol that one leaves open is another's.

    Raises:
        NotLinked: one of them holds what an image cannot.
    """
    parts = [_Object(content) for content in objects]
    code = bytearray()
    for part in parts:
        part.place(code)
    known: dict[str, int] = {}
    for part in parts:
        for name, place in part.defined().items():
            if name in known:
                raise NotLinked(f"symbol {name!r} twice")
            known[name] = place
    absolute = [place for part in parts for place in part.connect(code, known)]
    head = json.dumps({"symbols": known, "absolute": absolute}).encode()
    return MAGIC + len(head).to_bytes(8, "little") + head + code


class Image:
    """An image in memory, where it may be run and no longer be written."""

    def __init__(self, content: bytes) -> None:
        """Copy it there.

        Raises:
            OSError: the system lets this process run no new code.
        """
        start = len(MAGIC) + 8
        end = start + int.from_bytes(content[len(MAGIC) : start], "little")
        head: dict[str, Any] = json.loads(content[start:end])
        code = memoryview(content)[end:]
        self._symbols: dict[str, int] = head["symbols"]
        self._memory = mmap.mmap(-1, max(len(code), 1))
        self._memory[: len(code)] = code
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for place in head["absolute"]:
            (word,) = struct.unpack_from("<Q", self._memory, place)
            struct.pack_into("<Q", self._memory, place, word + self._base)
        if _mprotect()(self._base, len(self._memory), mmap.PROT_READ | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "memory cannot be made executable")

    def address(self, symbol: str) -> int:
        """Address of a function."""
        return self._base + self._symbols[symbol]


@functools.cache
def _mprotect() -> Any:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
