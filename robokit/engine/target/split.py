"""One module of IR as several of about the same size, so that processors can compile them side by side.

The straight lines that other functions only call, which are nearly all of the code, move to other
modules under hidden names; some call others. What they need of the rest, sines and intrinsics, each module
has for itself.
"""

from __future__ import annotations

import re

LEAST = 200_000
"""Characters from which on a second module pays: starting a thread is quick, but every module has its own
tables and sines."""

MOST = 500_000
"""Characters of a module, about: a second of compilation, which Ctrl-C does not cut short."""

_PART = re.compile(r"^define [^\n]*\{\n.*?^\}\n|^[^\n]*\n", re.MULTILINE | re.DOTALL)
_MOVABLE = re.compile(r"define internal void @((?:chunk|step|write)[0-9x]+)\(([^)]*)\)")
_CALLS = re.compile(r"call void @((?:chunk|step|write)[0-9x]+)\(")
_NEEDED = re.compile(r"define internal [^@]*@sincos(?:_\d+)?\(")
_SHARED = ("declare ", "attributes ")


def divided(text: str, count: int) -> list[str]:
    """Modules that together are the given one; the first holds the drivers.

    Args:
        text: a module as the emitters write it.
        count: processors that will compile. There is at most one module for each, or, of a long text,
            the same number for each, of about :data:`MOST` characters at most.
    """
    rounds = -(-len(text) // (count * MOST))
    count = rounds * count if rounds > 1 else min(count, len(text) // LEAST + 1)
    if count < 2:
        return [text]
    shared, moved, kept = [], [], []
    for part in _PART.findall(text):
        heading = _MOVABLE.match(part)
        if heading:
            moved.append((heading, part))
        elif part.startswith(_SHARED) or _NEEDED.match(part):
            shared.append(part)
        else:
            kept.append(part)
    if len(moved) < 2:
        return [text]
    shares: list[list[str]] = [[*shared, *kept], *([*shared] for _ in range(count - 1))]
    sizes = [sum(map(len, share)) for share in shares]
    called = [set(_CALLS.findall(part)) for _, part in moved]
    wanted: set[str] = set().union(*called)  # a straight line may call another one, in any module
    homes, declared = dict[str, int](), dict[str, str]()
    calls: list[set[str]] = [set() for _ in shares]
    for (heading, part), names in sorted(zip(moved, called, strict=True), key=lambda each: -len(each[0][1])):
        k = min(range(count), key=sizes.__getitem__)
        sizes[k] += len(part)
        name, parameters = heading.groups()
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
