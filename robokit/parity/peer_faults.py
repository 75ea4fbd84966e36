"""Faults of other programs that people meet, each with the versions in which it was measured.

Measured with the releases that PyPI has, by reading one file with each and comparing with the numbers in it.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robokit.parity.foreign import PROGRAMS
from robokit.parity.state import some

Version = tuple[int, ...]


@dataclass(frozen=True)
class Fault:
    """A fault of a program.

    Attributes:
        program: key of ``robokit.parity.foreign.PROGRAMS``.
        first, fixed: the first version that has it, and the first after it that does not.
        concerns: names of the links of a file that it concerns, by the root of its XML.
        text: what the program does.
    """

    program: str
    first: Version
    fixed: Version
    concerns: Callable[[Any], list[str]]
    text: str


def _turned(root: Any) -> list[str]:
    """Links of a URDF whose inertia is turned by the rpy of its <inertial>."""
    found = []
    for link in root.iterfind("link"):
        origin, inertia = link.find("inertial/origin"), link.find("inertial/inertia")
        if origin is None or inertia is None or not any(_numbers(origin.get("rpy", ""))):
            continue
        xx, yy, zz, *products = (
            (_numbers(inertia.get(f"i{pair}", "")) or [0.0])[0]
            for pair in ("xx", "yy", "zz", "xy", "xz", "yz")
        )
        if not xx == yy == zz or any(products):
            found.append(link.get("name", ""))
    return found


def _fused(root: Any) -> list[str]:
    """Links with mass that MuJoCo's importer merges into another that moves."""
    if root.tag == "mujoco":
        compiler = root.find("compiler")
        on = compiler is not None and compiler.get("fusestatic") == "true"
        bodies = root.iterfind("worldbody//body/body") if on else ()
        return [b.get("name", "") for b in bodies if b.find("joint") is None and b.find("freejoint") is None]
    compiler = root.find("mujoco/compiler")
    if compiler is not None and compiler.get("fusestatic") == "false":
        return []
    into = {j.find("child").get("link"): j for j in root.iterfind("joint") if j.find("child") is not None}
    massive = {x.get("name") for x in root.iterfind("link") if x.find("inertial/mass") is not None}

    def moves(link: str | None) -> bool:
        seen = set()
        while link in into and link not in seen:
            seen.add(link)
            if into[link].get("type") != "fixed":
                return True
            parent = into[link].find("parent")
            link = None if parent is None else parent.get("link")
        return False

    return [name for name, j in into.items() if j.get("type") == "fixed" and name in massive and moves(name)]


FAULTS = (
    Fault(
        "mujoco",
        (3, 1, 3),
        (3, 14),
        _turned,
        "drops the rotation of <inertial> when it reads a URDF",
    ),
    Fault(
        "mujoco",
        (3, 3, 3),
        (3, 11),
        _fused,
        "places and turns the inertia of links that it fuses (fusestatic) wrongly",
    ),
)
"""Every fault that is known."""


def peer_faults(program: str, read: Callable[[], bytes], fuses: bool = True) -> list[str]:
    """The faults of the installed version that concern a file, a sentence each.

    Args:
        program: key of ``robokit.parity.foreign.PROGRAMS``.
        read: gives the file, URDF or MJCF; called only where a fault may concern it.
        fuses: whether links behind fixed joints are merged in this reading.
    """
    from lxml import etree

    known = [fault for fault in FAULTS if fault.program == program]
    version = _installed(program) if known else ""
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    mine = [f for f in known if f.first <= number < f.fixed and (fuses or f.concerns is not _fused)]
    if not mine:
        return []
    try:
        root = etree.fromstring(
            read(),
            etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True),
        )
    except etree.XMLSyntaxError:  # whoever reads the file says so
        return []
    told = []
    name = PROGRAMS[program].name
    for fault in mine:
        links = fault.concerns(root)
        if links:
            first, fixed = (".".join(map(str, which)) for which in (fault.first, fault.fixed))
            told.append(
                f"{name} {version} {fault.text}: {some(links)}; a fault of {name} from {first} on, mended in "
                f"{fixed}: pip install -U {PROGRAMS[program].package}"
            )
    return told


def _installed(program: str) -> str:
    try:
        return importlib.metadata.version(PROGRAMS[program].package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(text: str) -> list[float]:
    found = []
    for word in text.split():
        try:
            found.append(float(word))
        except ValueError:
            return []
    return found
