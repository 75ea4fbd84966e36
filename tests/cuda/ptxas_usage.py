"""What ptxas says of the functions that it compiles."""

from __future__ import annotations

import re

import pytest

from robokit.dataclass_tools import frozen
from robokit.engine.cuda import assemble


@frozen
class Usage:
    """What ptxas reports about a function."""

    name: str  # of the function
    registers: int  # of a thread
    frame: int  # bytes of local memory, spilled registers included
    # stores, loads: bytes of registers that are spilled, and read again, each time the code runs once
    stores: int
    loads: int


def assembled(text: str, arch: str) -> tuple[bytes, list[Usage]]:
    """Code of a text for a card, and what each of its functions uses."""
    said, run = [], assemble._run

    def talking(command: list[str]) -> str:
        said.append(run([command[0], "-v", *command[1:]]) if "ptxas" in command[0] else run(command))
        return said[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "_run", talking)
        code = assemble.assemble(text, arch)
    return code, usages("\n".join(said))


def usages(said: str) -> list[Usage]:
    """What ptxas -v reports about each function."""
    found, frame = list[Usage](), (0, 0, 0)
    pattern = re.compile(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads|Used (\d+) registers|"
        r"(?:Compiling entry function|Function properties for) '?(\w+)"
    )
    name = ""
    for m in pattern.finditer(said):
        if m[5]:
            name = m[5]
        elif m[4] is None:
            frame = int(m[1]), int(m[2]), int(m[3])
            found.append(Usage(name, 0, *frame))
        elif found:
            last = found.pop()
            found.append(Usage(last.name, int(m[4]), last.frame, last.stores, last.loads))
    return found
