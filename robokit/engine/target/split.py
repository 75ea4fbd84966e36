"""One module of IR as several of about the same size, so that processors can compile them side by side.

The straight lines that other functions only call, which are nearly all of the code, move to other
modules under hidden names; some call others. What they need of the rest, sines and intrinsics, each module
has for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from robokit.engine.emit.ir import HURRIED

LEAST = 200_000
"""Characters from which on a second module pays: starting a thread is quick, but every module has its own
tables and sines."""

MOST = 1_500_000
"""Characters of a module, about: a third of a second of compilation, which Ctrl-C does not cut short.

In modules of 500,000 a text of two million takes a tenth more of the processor.
"""

HURRY = "; level 0\n"
"""First line of a module that is to be compiled in a hurry."""

LOOPS = "; loops\n"
"""First line of a module with loops, which LLVM's passes over loops gain much for."""

_MOVABLE = re.compile(r"define internal void @((?:chunk|step|write)[0-9x]+)\(([^)]*)\) (#\d)?")
_CALLS = re.compile(r"call void @((?:chunk|step|write)[0-9x]+)\(")
_NEEDED = re.compile(r"define internal [^@]*@sincos(?:_\d+)?\(")
_SHARED = ("declare ", "attributes ")
_SINES = "define internal void @sincos_run("
_INTRINSIC = re.compile(r"@llvm[.\w]+")


def _parts(text: str) -> Iterator[str]:
    """The functions of a module, and the lines between them."""
    for piece in text.split("\n}\n"):
        start = 0
        while start < len(piece) and not piece.startswith("define ", start):
            end = piece.find("\n", start) + 1 or len(piece)
            yield piece[start:end]
            start = end
        if start < len(piece):
            yield piece[start:] + "\n}\n"


def sines_apart(text: str) -> tuple[str, str]:
    """A module without the function for the sines of all joints, and a module with that function alone.

    It is the same in all modules of a processor, and longer than a small robot's code. Where there is none:
    the text, and "".
    """
    start = text.find(_SINES)
    if start < 0 or text.startswith(LOOPS):
        return text, ""
    end = text.index("\n}\n", start) + 3
    function = text[start:end].replace("define internal", "define hidden", 1)
    called = set(_INTRINSIC.findall(function))
    declared = text[: text.index("define ")].splitlines()
    needed = [line for line in declared if called.intersection(_INTRINSIC.findall(line))]
    attributes = text.rindex("attributes #0 ")
    needed.append(text[attributes : text.index("\n", attributes)])
    heading = text[start : text.index(" {", start)]
    declaration = heading.replace("define internal", "declare hidden", 1)
    return f"{text[:start]}{declaration}\n{text[end:]}", "\n".join([*needed, function])


def divided(text: str, count: int) -> list[str]:
    """Modules that together are the given one; the first holds the drivers.

    Functions that are to be generated in a hurry are in modules of their own, which begin with :data:`HURRY`.

    Args:
        text: a module as the emitters write it.
        count: processors that will compile. There is at most one module for each, or, of a long text,
            the same number for each, of about :data:`MOST` characters at most.
    """
    if _number(len(text), count) < 2:
        return [text]
    shared, moved, kept = [], [], []
    for part in _parts(text):
        heading = _MOVABLE.match(part)
        if heading:
            moved.append((heading, part))
        elif part.startswith(_SHARED) or _NEEDED.match(part):
            shared.append(part)
        else:
            kept.append(part)
    if len(moved) < 2:
        return [text]
    hurried = sum(len(part) for heading, part in moved if heading[3] == HURRIED)
    calm = _number(len(text) - hurried, count)
    quick = _number(hurried, count) if hurried else 0
    shares: list[list[str]] = [[*shared, *kept], *([*shared] for _ in range(calm - 1))]
    shares += [[HURRY, *shared] for _ in range(quick)]
    sizes = [sum(map(len, share)) for share in shares]
    called = [set(_CALLS.findall(part)) if "call void" in part else set[str]() for _, part in moved]
    wanted: set[str] = set().union(*called)  # a straight line may call another one, in any module
    homes, declared = dict[str, int](), dict[str, str]()
    calls: list[set[str]] = [set() for _ in shares]
    for (heading, part), names in sorted(zip(moved, called, strict=True), key=lambda each: -len(each[0][1])):
        name, parameters, attributes = heading.groups()
        homely = range(calm, calm + quick) if attributes == HURRIED else range(calm)
        k = min(homely, key=sizes.__getitem__)
        sizes[k] += len(part)
        homes[name] = k
        declared[name] = f"declare hidden void @{name}({parameters}) #0\n"
        calls[k] |= names
        if k or name in wanted:
            part = part.replace("define internal", "define hidden", 1)
        shares[k].append(part)
    calls[0] |= {name for name, k in homes.items() if k}
    for k, (share, names) in enumerate(zip(shares, calls, strict=True)):
        share += [declared[name] for name in sorted(names) if homes[name] != k]
    return ["".join(share) for share in shares]


def _number(characters: int, count: int) -> int:
    """Modules for so many characters, and so many processors."""
    rounds = -(-characters // (count * MOST))
    return rounds * count if rounds > 1 else min(count, characters // LEAST + 1)
