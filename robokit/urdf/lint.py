"""``robokit check``, many files at once: which files are robots, what was found in each, as lines or JSON."""

from __future__ import annotations

import glob
import math
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from robokit.dataclass_tools import frozen
from robokit.errors import LONGEST_NAME, Diagnostic, RobokitError, Severity, one_line
from robokit.urdf.checks import link_boxes, total_mass
from robokit.urdf.description import RobotDescription
from robokit.urdf.findings import CODES, Report
from robokit.urdf.load import PathLike, check_urdf
from robokit.urdf.source import Reader, decode, parse_xml, read_file
from robokit.urdf.xacro import is_xacro

if TYPE_CHECKING:
    from lxml import etree

# ---- which files are robots ----------------------------------------------------------------------
# Nothing is expanded here: the elements of a .xacro file say enough.

_NO_CONTENT = frozenset(("xacro:macro", "xacro:property", "xacro:arg", "xacro:insert_block"))
_CONTROL = frozenset(("xacro:if", "xacro:unless", "xacro:include", "xacro:element", "xacro:attribute"))


def is_robot_file(path: Path) -> bool:
    """Whether the ending is that of a URDF or of a macro file."""
    return path.suffix.lower() in (".urdf", ".xacro")


def robot_files(folder: Path) -> Iterator[Path]:
    """URDFs and xacro files in a folder and below it.

    Hidden folders are left out, and links to folders are not followed, so that it ends.
    """
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (path for path in (Path(here) / name for name in names) if is_robot_file(path))


def without_parts(paths: Iterable[Path]) -> list[Path]:
    """The paths but for xacro files that hold nothing but macros, or that another of the files includes.

    A xacro file is a robot where something outside its macros makes links: a ``<link>``, the call of a
    macro, or, in a robot with a name, an included file. A file that cannot be read stays and is reported.
    """
    paths = list(paths)
    macros = {path: _root(path) for path in paths if is_xacro(path)}
    whole = [path for path in paths if (root := macros.get(path)) is None or _makes_links(*root)]
    parts = [part for path, root in macros.items() if root for part in _included_files(path, *root)]
    return [path for path in whole if path not in macros or not _is_one_of(path, parts)]


def _is_one_of(path: Path, parts: Iterable[str]) -> bool:
    place = path.absolute().as_posix()
    return any(place == part or place.endswith(f"/{part}") for part in parts)


def _root(path: Path) -> tuple[etree._Element, Reader] | None:
    report = Report(str(path))
    data = read_file(path, report)
    text = None if data is None else decode(data, report)
    parsed = None if text is None else parse_xml(text, report)
    return None if parsed is None else (parsed[0], Reader(*parsed, report))


def _outside_macros(root: etree._Element, reader: Reader) -> Iterator[tuple[str, etree._Element]]:
    """(tag, element) of all elements outside of macros."""
    stack = [root]
    while stack:
        element = stack.pop()
        tag = reader.tag(element)
        if tag not in _NO_CONTENT:
            yield tag, element
            stack.extend(element)


def _makes_links(root: etree._Element, reader: Reader) -> bool:
    named = bool(root.get("name"))
    return any(
        tag == "link"
        or (tag.startswith("xacro:") and tag not in _CONTROL)
        or (tag == "xacro:include" and named)
        for tag, _ in _outside_macros(root, reader)
    )


def _included_files(path: Path, root: etree._Element, reader: Reader) -> Iterator[str]:
    """The files that one includes: whole paths, or their ends behind ``$(find ...)``."""
    for element in root.iter():
        name = element.get("filename")
        if not name or reader.tag(element) != "xacro:include":
            continue
        if "$" not in name:
            yield Path(os.path.normpath(path.absolute().parent / name)).as_posix()
        elif end := name[max(name.rfind(")"), name.rfind("}")) + 1 :].lstrip("/"):
            yield end


# ---- files and exit status -----------------------------------------------------------------------

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

FINDING = ("severity", "code", "element", "line", "message", "hint")
"""What is told of a finding, beside its file."""

UNREADABLE = ("file-missing", "file-not-regular", "file-unreadable")
"""Codes of files that could not be read: exit status 2."""

Check = Callable[..., tuple[RobotDescription | None, list[Diagnostic]] | None]
"""Judges a file of another format; see ``check_files``."""

FORMAT = 1  # version of the JSON; a key may be added without a new number, none is renamed or removed


@frozen
class CheckedFile:
    """One file and what was found."""

    file: str  # its path as given
    description: RobotDescription | None  # what it says, None where it cannot be read
    diagnostics: list[Diagnostic]  # the findings, errors first

    def count(self, severity: Severity) -> int:
        """Findings of one severity."""
        return sum(d.severity == severity for d in self.diagnostics)

    def status(self, strict: bool = False) -> int:
        """0: clean, 1: has errors (strict: or warnings), 2: cannot be read."""
        if any(d.code in UNREADABLE for d in self.diagnostics):
            return 2
        return 1 if self.count("error") or (strict and self.count("warning")) else 0


def urdf_files(names: Iterable[str], find: Callable[[str], Path]) -> tuple[list[Path], list[str]]:
    """The files that arguments mean, each once and in their order; and a line for each argument that means
    none.

    Arguments are paths, folders, patterns, and names of robots. A folder means all .urdf files and robots in
    .xacro files in it and below it, hidden folders left out; a pattern may hold ``*``, ``?``, ``[...]`` and
    ``**``. ``find`` gives the path of any other, or raises RobokitError.
    """
    files: dict[Path, None] = {}
    problems = []
    for name in names:
        path = Path(name).expanduser()
        if path.is_dir():
            found = without_parts(sorted(robot_files(path)))
            missing = f"no .urdf file, and no robot in a .xacro file, in folder {name!r} or below it"
        elif glob.has_magic(name) and not path.exists():
            found = without_parts(sorted(set(_matching(str(path)))))
            missing = f"no .urdf file, and no robot in a .xacro file, matches {name!r}"
        else:
            try:
                found, missing = [find(name)], ""
            except RobokitError as error:
                found, missing = [], str(error)
        files.update(dict.fromkeys(found))
        if not found:
            problems.append(missing)
    return list(files), problems


def _matching(pattern: str) -> Iterable[Path]:
    """Files that a pattern matches, and the robot files in folders that it matches."""
    for name in glob.glob(pattern, recursive=True):
        path = Path(name)
        if path.is_file() and (is_robot_file(path) or not pattern.endswith("*")):
            yield path
        elif path.is_dir() and not pattern.endswith("**"):
            yield from robot_files(path)


def check_files(
    paths: Iterable[PathLike],
    base: str = "either",
    package_dirs: Sequence[PathLike] = (),
    meshes: bool = False,
    ignore: Collection[str] = (),
    mimic: str | None = None,
    xacro_args: Mapping[str, Any] | None = None,
    mesh_up_axis: str = "ignore",
    loops: str = "declared",
    root: str | None = None,
    others: Check | None = None,
) -> list[CheckedFile]:
    """Judge files one after the other; never raises over a file.

    ``xacro_args`` are for .xacro files, ``ignore`` has codes to leave out. ``others`` judges a file that is
    no URDF, with ``root``, the robot of one that has several, and gives None for a URDF. Other arguments are
    as for :func:`robokit.urdf.check_urdf`.
    """
    checked = []
    for path in paths:
        args = xacro_args if is_xacro(path) else None
        elsewhere = others and others(
            Path(path),
            base=base,
            package_dirs=package_dirs,
            meshes=meshes,
            mimic=mimic,
            xacro_args=args,
            mesh_up_axis=mesh_up_axis,
            loops=loops,
            root=root,
        )
        description, found = elsewhere or check_urdf(
            path, base, package_dirs, True, meshes, mimic, args, mesh_up_axis, loops
        )
        checked.append(CheckedFile(os.fspath(path), description, [d for d in found if d.code not in ignore]))
    return checked


def exit_status(checked: Iterable[CheckedFile], strict: bool = False) -> int:
    """The worst status of all files."""
    return max((one.status(strict) for one in checked), default=0)


def as_json(
    checked: Sequence[CheckedFile], strict: bool = False, inertias: bool = False, problems: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything found as a dictionary for ``json.dumps``: ``format``, ``status``, ``counts``, ``problems``,
    ``files``.

    Each file has ``file``, ``status``, ``robot``, ``links``, ``joints``, ``moving_joints``, ``mass_kg``,
    ``counts`` and ``diagnostics``, whose entries have ``severity``, ``code``, ``element``, ``line``,
    ``message`` and ``hint``. The figures of a file that cannot be read are null. ``strict``: warnings count
    in the status; ``inertias``: add every link's mass, principal moments and axes, and equivalent box;
    ``problems``: lines on arguments that mean no file.
    """
    return {
        "format": FORMAT,
        "status": 2 if problems else exit_status(checked, strict),
        "counts": {s: sum(one.count(s) for one in checked) for s in SEVERITIES},
        "problems": list(problems),
        "files": [_file_json(one, strict, inertias) for one in checked],
    }


def _file_json(one: CheckedFile, strict: bool, inertias: bool) -> dict[str, Any]:
    robot = one.description
    table: dict[str, Any] = {
        "file": one.file,
        "status": one.status(strict),
        "robot": one_line(robot.name) if robot else None,
        "links": len(robot.links) if robot else None,
        "joints": len(robot.joints) if robot else None,
        "moving_joints": sum(j.moves for j in robot.joints) if robot else None,
        "mass_kg": _finite(total_mass(robot)) if robot else None,
        "counts": {s: one.count(s) for s in SEVERITIES},
        "diagnostics": [{name: getattr(d, name) for name in FINDING} for d in one.diagnostics],
    }
    if inertias and robot:
        table["inertias"] = [
            {
                "link": one_line(link),
                "mass_kg": inertial.mass,
                "com_m": list(inertial.origin.xyz),
                "principal_moments_kg_m2": box.moments.tolist(),
                "principal_axes": box.axes.T.tolist(),
                "box_m": box.size.tolist(),
            }
            for link, inertial, box in link_boxes(robot)
        ]
    return table


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


# ---- SARIF, for GitHub and editors ---------------------------------------------------------------


def as_sarif(
    checked: Sequence[CheckedFile], version: str, strict: bool = False, problems: Sequence[str] = ()
) -> dict[str, Any]:
    """Everything found as a SARIF 2.1.0 log for ``json.dumps``, as GitHub's code scanning reads it.

    Source: OASIS SARIF 2.1.0; each code that was found is a rule, each finding a result at its line, and
    severities have the names of SARIF's levels. ``version`` is robokit's; other arguments are as for
    :func:`as_json`.
    """
    found = [(one, d) for one in checked for d in one.diagnostics]
    codes = sorted({d.code for _, d in found})
    notifications = [{"level": "error", "message": {"text": problem}} for problem in problems]
    driver = {"name": "robokit", "semanticVersion": version, "rules": [_sarif_rule(code) for code in codes]}
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not problems, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(one.file, d, codes.index(d.code), strict) for one, d in found],
    }
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _sarif_rule(code: str) -> dict[str, Any]:
    row = CODES[code]
    return {
        "id": code,
        "shortDescription": {"text": row.meaning},
        "help": {"text": row.fix or row.meaning},
        "defaultConfiguration": {"level": row.severity},
    }


def _sarif_result(file: str, d: Diagnostic, rule: int, strict: bool) -> dict[str, Any]:
    # Relative to the working folder, the root of a checkout, where the file is below it; else absolute.
    path = Path(os.path.abspath(file))
    here = Path.cwd()
    uri = quote(path.relative_to(here).as_posix()) if path.is_relative_to(here) else path.as_uri()
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if d.line:
        place["region"] = {"startLine": d.line}
    text = f"{d.element}: {d.message}"
    return {
        "ruleId": d.code,
        "ruleIndex": rule,
        "level": "error" if strict and d.severity == "warning" else d.severity,
        "message": {"text": f"{text} ({d.hint})" if d.hint else text},
        "locations": [{"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": d.element}]}],
    }


# ---- lines for a terminal ------------------------------------------------------------------------
# By file, then by severity, then by code.

WIDTH = 80  # columns of a line; only longer words, such as paths, exceed it
MOST_LISTED = 100  # findings of one code that are listed for a file

_STYLES = {"error": "1;31", "warning": "1;33", "note": "1;36", "file": "1", "clean": "32", "quiet": "2"}


class Paint:
    """Puts colour codes round a text, if it is ``on``."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, style: str, text: str) -> str:
        """The text in a style of the table above."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def wants_colour(choice: str, stream: IO[str] | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to colour what goes to a stream, None where a program was started with that output closed.

    ``choice`` is "always", "never", or "auto": on a terminal, unless NO_COLOR is set in ``environ`` or TERM
    is dumb.
    """
    if choice != "auto":
        return choice == "always"
    if stream is None or environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def listing(checked: Sequence[CheckedFile], paint: Paint, inertias: bool = False) -> Iterator[str]:
    """The lines of all files, with their sum where there are several.

    ``inertias``: add a table of every link's mass, principal moments and equivalent box.
    """
    for one in checked:
        yield from _file_lines(one, paint)
        if inertias and one.description:
            yield from _inertia_lines(one.description)
        if one.diagnostics or inertias:
            yield ""
    if len(checked) > 1:
        total = {s: sum(one.count(s) for one in checked) for s in SEVERITIES}
        with_errors = sum(one.count("error") > 0 for one in checked)
        said = f"{len(checked)} files: {_counts(total, paint) or paint('clean', 'nothing to report')}"
        yield said + (f"; {with_errors} cannot be loaded" if with_errors else "")


def _file_lines(one: CheckedFile, paint: Paint) -> Iterator[str]:
    counts = {s: one.count(s) for s in SEVERITIES}
    said = _counts(counts, paint) or paint("clean", "nothing to report")
    yield f"{paint('file', one_line(one.file))}: {said}"
    for severity in SEVERITIES:
        groups: dict[str, list[Diagnostic]] = {}
        for diagnostic in one.diagnostics:
            if diagnostic.severity == severity:
                groups.setdefault(diagnostic.code, []).append(diagnostic)
        for code, found in groups.items():
            yield from _group(code, found, paint)
    if one.description and one.diagnostics:
        robot = one.description
        moving, links = sum(joint.moves for joint in robot.joints), len(robot.links)
        sizes = f"{links} link{'s' * (links != 1)}, {moving} moving joint{'s' * (moving != 1)}"
        name = one_line(robot.name, LONGEST_NAME) or "no name"
        yield from _wrap(f"{name}: {sizes}, {total_mass(robot):.4g} kg", "  ", "  ")


def _group(code: str, found: Sequence[Diagnostic], paint: Paint) -> Iterator[str]:
    severity: Severity = found[0].severity
    head = f"{severity} {code}"
    meaning = list(_wrap(f"{head}: {CODES[code].meaning}" if code in CODES else head, "  ", "    "))
    yield meaning[0].replace(head, paint(severity, head), 1)
    yield from meaning[1:]
    # Copied values are common: the same words about many elements are said once.
    # Codes of other formats have all names of a kind in one element.
    words = [(d.message, d.hint, "" if code in CODES else d.element) for d in found]
    same, told = Counter(words), dict[tuple[str, str, str], Diagnostic]()
    for key, d in zip(words, found, strict=True):
        told.setdefault(key, d)
    found, left_out = list(told.values())[:MOST_LISTED], len(told) - MOST_LISTED
    margin = max(len(str(d.line)) for d in found)
    indent = " " * (margin + 11)
    for k, d in enumerate(found):
        where = f"line {d.line:>{margin}}" if d.line else ""
        more = same[d.message, d.hint, ""] - 1 if code in CODES else 0
        element = f"{d.element} and {more} more" if more else d.element
        yield from _wrap(f"{element}: {d.message}", f"    {where:{margin + 5}}  ", indent)
        following = found[k + 1].hint if k + 1 < len(found) else None
        if d.hint and d.hint != following:
            yield from (paint("quiet", line) for line in _wrap(f"fix: {d.hint}", indent, indent + "     "))
    if left_out > 0:
        yield f"{indent}and {left_out} more like these: --json lists all"


def _wrap(text: str, first: str, rest: str) -> Iterator[str]:
    """Text in lines of at most 80 columns; words are never broken."""
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}
    yield from textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, **whole)


def _counts(counts: Mapping[Severity, int], paint: Paint) -> str:
    return ", ".join(paint(s, f"{n} {s}{'s' * (n != 1)}") for s, n in counts.items() if n)


def _inertia_lines(robot: RobotDescription) -> Iterator[str]:
    rows = [("kg", "principal moments [kg m^2]", "equivalent box [m]", "link")]
    for link, inertial, box in link_boxes(robot):
        moments, edges = " ".join(f"{m:.3g}" for m in box.moments), " x ".join(f"{x:.2g}" for x in box.size)
        rows.append((f"{inertial.mass:.4g}", moments, edges, one_line(link)))
    widths = [max(len(row[k]) for row in rows) for k in range(3)]
    for row in rows:
        cells = [row[0].rjust(widths[0]), row[1].ljust(widths[1]), row[2].ljust(widths[2])]
        left = "  " + "  ".join(cells) + "  "
        room = max(WIDTH - len(left), 12)
        yield left + (row[3] if len(row[3]) <= room else row[3][: room - 3] + "...")
