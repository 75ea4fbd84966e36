"""Other programs at work: their readers run in a child with bounded time and memory.

One child (:mod:`robokit.child_process`) serves a whole run: importing Drake, MuJoCo or USD takes longer than
reading a robot. Known faults of these programs stand at the end.
"""

from __future__ import annotations

import atexit
import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable
from typing import Any

from robokit.child_process import MOST_MEMORY, Child, OutOfBounds
from robokit.dataclass_tools import frozen
from robokit.errors import MissingDependency, RobokitError
from robokit.formats import worker

ANSWER_MODULES = ("robokit.formats.description", "robokit.model.geometry", "robokit.errors", "pathlib")
"""Modules with the classes that answers are made of."""


@frozen
class Program:
    """Another program."""

    name: str  # its own
    module: str  # the Python module that is imported
    package: str  # the package that has it
    extra: str  # robokit's extra with it


PROGRAMS = {
    "mujoco": Program("MuJoCo", "mujoco", "mujoco", "mjcf"),
    "drake": Program("Drake", "pydrake.multibody.parsing", "drake", "parity"),
    "pinocchio": Program("Pinocchio", "pinocchio", "pin", "parity"),
    "usd": Program("USD", "pxr.Usd", "usd-core", "usd"),
}

_child = Child(worker.__file__, modules=ANSWER_MODULES)
atexit.register(_child.close)


class NoAnswer(RobokitError):
    """A program gave none: it took too long, too much memory, or crashed."""


def call(module: str, function: str, *arguments: Any) -> Any:
    """What a function of robokit returns, called in the child; the module may import other programs.

    The arguments can be pickled. Raises NoAnswer where there is none, and the function's MissingDependency or
    RobokitError.
    """
    try:
        kind, content = _child.ask((module, function, arguments))
    except OutOfBounds as problem:
        raise NoAnswer(f"{problem}; {problem.hint}" if problem.hint else str(problem)) from None
    if kind == "MissingDependency":
        raise MissingDependency(str(content))
    if kind != "done":
        raise RobokitError(str(content))
    return content


def require(key: str) -> None:
    """Raise MissingDependency unless a program of ``PROGRAMS`` can be imported, in the child."""
    program = PROGRAMS[key]
    if importlib.util.find_spec(program.module.partition(".")[0]) is None:
        raise MissingDependency(
            f"{program.name} is needed and not installed; pip install {program.package}, "
            f"or 'robokit[{program.extra}]'"
        )
    try:
        broken = call(__name__, "import_problem", program.module)
    except NoAnswer as problem:
        broken = str(problem)
    if broken:
        raise MissingDependency(
            f"{program.name} is installed and cannot be imported, so no file was read: {broken}; "
            f"pip install --force-reinstall {program.package}"
        )


def import_problem(module: str) -> str:
    """Why a module cannot be imported; "" if it can."""
    try:
        importlib.import_module(module)
    except MemoryError:
        raise
    except Exception as problem:  # a broken installation raises anything
        return f"{type(problem).__name__}: {one_line(problem)}"
    return ""


def one_line(refusal: BaseException) -> str:
    """The message of another program's exception, in one line."""
    said = " ".join(str(refusal).split()) or type(refusal).__name__
    out_of_memory = isinstance(refusal, MemoryError) or "allocate memory" in said
    return f"{said}; it has {MOST_MEMORY / (1 << 30):g} GiB for a file" if out_of_memory else said


def count_and_names(links: list[str]) -> str:
    """How many links, and the names of the first."""
    shown = ", ".join(map(repr, links[:3])) + (", ..." if len(links) > 3 else "")
    return f"{len(links)} link{'s' if len(links) > 1 else ''} ({shown})"


# ---- Faults of other programs that people meet, each with the versions in which it was measured --

Version = tuple[int, ...]


@frozen
class Fault:
    """A fault of a program."""

    program: str  # key of ``robokit.formats.other_programs.PROGRAMS``
    # first, fixed: the first version that has it, and the first after it that does not
    first: Version
    fixed: Version
    # names of the links of a file that it concerns, by the root of its XML
    concerns: Callable[[Any], list[str]]
    text: str  # what the program does


def _rotated_inertials(root: Any) -> list[str]:
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


def _merged_links(root: Any) -> list[str]:
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
        _rotated_inertials,
        "drops the rotation of <inertial> when it reads a URDF",
    ),
    Fault(
        "mujoco",
        (3, 3, 3),
        (3, 11),
        _merged_links,
        "places and turns the inertia of links that it fuses (fusestatic) wrongly",
    ),
)
"""Every fault that is known."""


def peer_faults(program: str, read: Callable[[], bytes], fuses: bool = True) -> list[str]:
    """The faults of a program's installed version that concern a file, a sentence each.

    ``read`` gives the file, URDF or MJCF, and is called only where a fault may concern it; ``fuses``: links
    behind fixed joints are merged in this reading.
    """
    from lxml import etree

    known = [fault for fault in FAULTS if fault.program == program]
    version = installed_version(PROGRAMS[program].package) if known else ""
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    mine = [f for f in known if f.first <= number < f.fixed and (fuses or f.concerns is not _merged_links)]
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
                f"{name} {version} {fault.text}: {count_and_names(links)}; a fault of {name} from {first} "
                f"on, mended in {fixed}: pip install -U {PROGRAMS[program].package}"
            )
    return told


def installed_version(package: str) -> str:
    """The version of an installed package; "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
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
