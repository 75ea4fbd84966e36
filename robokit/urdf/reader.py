"""Reads attributes, numbers and child elements of XML elements, and reports everything odd about them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from robokit.errors import quoted
from robokit.urdf.description import Origin, Triple
from robokit.urdf.findings import Report
from robokit.urdf.source import UNDECLARED

if TYPE_CHECKING:
    from lxml import etree

Version = tuple[int, int]

VERSIONS: tuple[Version, ...] = ((1, 0), (1, 1), (1, 2))
"""Versions of URDF. 1.1 brought quat_xyzw and the capsule, 1.2 limits of acceleration, deceleration and jerk.

Source: urdfdom 6.0, which refuses every other version, and more or fewer than two numbers.
"""

UNIT_TOLERANCE = 1e-3
"""Deviation of a length from 1 that rounding can explain."""

ZERO: Triple = (0.0, 0.0, 0.0)
_PHYSICS = frozenset(("gazebo", "transmission", "ros2_control", "contact", "contact_coefficients", "mujoco"))


class Reader:
    """Access to one XML tree; every problem goes to the report, with the element's line.

    Attributes:
        report: where findings go.
        line: the line of an element's start tag, ``line(element)``.
        read: the numbers of a text that holds 1, 3 or 4 of them, ``read[3]["0 0 1"]``.
        version: of URDF that the file claims, 1.0 where it claims none; None where there is no such version.
    """

    def __init__(self, root: etree._Element, lines: dict[etree._Element, int], report: Report) -> None:
        self.report = report
        self.line = lines.__getitem__
        self.version: Version | None = VERSIONS[0]
        self._root = root
        self._names: dict[str, str] = {}
        self.read = {count: KnownNumbers(count) for count in (1, 3, 4)}
        self._namespace = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else None

    def tag(self, element: etree._Element) -> str:
        """The tag without the document's own namespace; other namespaces show as "prefix:name"."""
        tag = element.tag
        name = self._names.get(tag)
        if name is None:
            name = tag
            if tag.startswith("{"):
                namespace, _, local = tag[1:].partition("}")
                prefix = "xacro" if "xacro" in namespace else element.prefix
                name = local if namespace == self._namespace or not prefix else f"{prefix}:{local}"
            self._names[tag] = name
        return name

    def children(
        self, element: etree._Element, where: str, known: frozenset[str]
    ) -> Iterator[tuple[str, etree._Element]]:
        """(tag, child) of the known children; the others are noted once per kind."""
        for child in element:
            tag = self._names.get(child.tag) or self.tag(child)
            if tag in known:
                yield tag, child
            else:
                self._note_ignored(tag, child, element, where)

    def parts(self, element: etree._Element, where: str, known: frozenset[str]) -> dict[str, etree._Element]:
        """Known children by tag where each may come once; a second is a warning."""
        found: dict[str, etree._Element] = {}
        for child in element:
            tag = self._names.get(child.tag) or self.tag(child)
            if tag not in known:
                self._note_ignored(tag, child, element, where)
            elif tag in found:
                self.warn_repeated(tag, child, where)
            else:
                found[tag] = child
        return found

    def first(self, element: etree._Element, where: str, known: frozenset[str]) -> etree._Element | None:
        """The first known child; those before it are noted, those behind it count for nothing."""
        for child in element:
            tag = self._names.get(child.tag) or self.tag(child)
            if tag in known:
                return child
            self._note_ignored(tag, child, element, where)
        return None

    def warn_repeated(self, tag: str, element: etree._Element, where: str) -> None:
        """Warns of a second element of a kind that may come once."""
        message = f"has a second <{tag}>; the first one counts"
        self.report.add("element-repeated", where, self.line(element), message)

    def claim(self, text: str | None) -> None:
        """Take the version that the file claims; one that URDF does not have is a warning."""
        if text is None:
            return
        known = {".".join(map(str, version)): version for version in VERSIONS}
        self.version = known.get(text)
        if self.version is None:
            message = f"version={quoted(text)}: there are {', '.join(known)}; urdfdom refuses the file"
            self.report.add("version-unknown", "robot", self.line(self._root), message)

    def before(self, version: Version) -> bool:
        """Whether the file claims an earlier version of URDF."""
        return self.version is not None and self.version < version

    def note_ignored(self, tag: str, child: etree._Element) -> None:
        """Notes an element of the root that says nothing of use here."""
        self._note_ignored(tag, child, self._root, self.tag(self._root))

    def _note_ignored(self, tag: str, child: etree._Element, within: etree._Element, where: str) -> None:
        parent, line = self.tag(within), self.line(child)
        if tag.startswith("xacro:"):
            self.report.once(
                "xacro-leftover", "", where, line, f"<{tag}> is left over from xacro and ignored"
            )
        elif tag.rpartition(":")[2] in _PHYSICS or tag.partition(":")[0] in ("drake", "mujoco"):
            message = f"<{tag}> is ignored; what it says about the physics does not apply here"
            self.report.once("physics-ignored", f"{parent}/{tag}", where, line, message)
        elif not child.tag.startswith(f"{{{UNDECLARED}"):  # these have a warning
            message = f"<{tag}> inside <{parent}> is not URDF and is ignored"
            self.report.once("tag-unknown", f"{parent}/{tag}", where, line, message)

    def attributes(self, element: etree._Element, where: str, known: tuple[str, ...]) -> None:
        """Notes attributes that URDF does not have: a misspelt one would be lost silently."""
        for name in element.keys():  # noqa: SIM118  of an XML element
            if name not in known:
                self._unknown(element, where, known)
                return

    def _unknown(self, element: etree._Element, where: str, known: tuple[str, ...]) -> None:
        tag, line = self.tag(element), self.line(element)
        given = element.keys()
        free = [name for name in known if name not in given]
        for name in given:
            if name in known or name.startswith("{") or ":" in name:
                continue
            hint = self.report.nearest(name, free, most=1) or f"known: {', '.join(known)}"
            message = f"the attribute {name!r} of <{tag}> is not URDF and is ignored"
            self.report.once("attribute-unknown", f"{tag}/{name}", where, line, message, hint)

    def text(self, element: etree._Element, attribute: str, where: str) -> str | None:
        """An attribute's text verbatim, None where it is absent; unexpanded xacro is an error."""
        value = element.get(attribute)
        if value is not None and "$" in value and ("${" in value or "$(" in value):
            self._report_unexpanded(element, attribute, where, value)
        return value

    def _report_unexpanded(self, element: etree._Element, attribute: str, where: str, value: str) -> None:
        message = f"{attribute}={quoted(value)} is a xacro expression: this is a macro file, not yet a URDF"
        self.report.once("xacro-unexpanded", "", where, self.line(element), message)

    def numbers(
        self, element: etree._Element, attribute: str, count: int, where: str
    ) -> tuple[float, ...] | Literal[False] | None:
        """The attribute's numbers: None where it is absent, False where they are bad (and reported).

        Args:
            element, attribute: where they stand.
            count: how many there must be: 1, 3 or 4.
            where: place in the file, in words.
        """
        text = element.get(attribute)
        if text is None:
            return None
        try:
            return self.read[count][text]
        except NumberError as problem:
            if "${" in text or "$(" in text:
                self._report_unexpanded(element, attribute, where, text)
                return False
            message = f"<{self.tag(element)}> {attribute}={quoted(text)}: {problem}"
            if count == 1 and problem.code != "number-count":
                message = f"<{self.tag(element)}> {attribute}: {problem}"
            self.report.add(problem.code, where, self.line(element), message, problem.hint)
            return False

    def number(
        self, element: etree._Element, attribute: str, where: str, absent: float | None, bad: float | None
    ) -> float | None:
        """One number, ``absent`` where there is none and ``bad`` where it is unreadable (and reported)."""
        values = self.numbers(element, attribute, 1, where)
        if values:
            return values[0]
        return absent if values is None else bad

    def several(
        self,
        element: etree._Element,
        names: tuple[str, ...],
        where: str,
        absent: float | None,
        bad: float | None,
        others: tuple[str, ...] = (),
    ) -> list[float | None]:
        """One number of each of these attributes, as :meth:`number` gives them.

        Args:
            element: the element.
            names: of the attributes.
            where: place in the file, in words.
            absent, bad: stand for numbers that are not there or are unreadable.
            others: attributes that may be there too; all but these and the names are noted.
        """
        read = self.read[1]
        try:
            if tuple(element.keys()) == names:  # the usual case
                return [read[text][0] for text in element.values()]
            self.attributes(element, where, (*names, *others))
            texts = map(element.get, names)
            return [absent if text is None else read[text][0] for text in texts]
        except NumberError:
            return [self.number(element, name, where, absent, bad) for name in names]

    def triple(self, element: etree._Element, attribute: str, where: str, default: Triple) -> Triple:
        """Three numbers, the default where they are absent or bad (and reported)."""
        values = self.numbers(element, attribute, 3, where)
        return values or default  # type: ignore[return-value]

    def required_numbers(
        self, element: etree._Element, attribute: str, count: int, where: str
    ) -> tuple[float, ...] | None:
        """Numbers that must be there; None where they are not (and reported)."""
        values = self.numbers(element, attribute, count, where)
        if values is None:
            self.report_missing(element, attribute, where)
        return values or None

    def report_missing(self, element: etree._Element, attribute: str, where: str) -> None:
        """Reports an attribute that must be there and is not."""
        message = f"<{self.tag(element)}> has no {attribute}"
        self.report.add("attribute-missing", where, self.line(element), message, f'add {attribute}="..."')

    def origin(self, element: etree._Element, where: str, others: tuple[str, ...] = ()) -> Origin:
        """An ``<origin>``, or another element that has its attributes beside others of its own."""
        line, xyz, rpy = self.line(element), element.get("xyz"), element.get("rpy")
        if len(element.keys()) == (xyz is not None) + (rpy is not None):  # nothing else: nearly always
            read = self.read[3]
            try:
                return Origin(
                    ZERO if xyz is None else read[xyz],  # type: ignore[arg-type]
                    ZERO if rpy is None else read[rpy],  # type: ignore[arg-type]
                    None,
                    line,
                )
            except NumberError:
                pass  # reported below
        tag = self.tag(element)
        self.attributes(element, where, (*others, "xyz", "rpy", "quat_xyzw"))
        quat = self.numbers(element, "quat_xyzw", 4, where)
        if quat:
            if rpy is not None:
                self.report.add("orientation-twice", where, line, f"<{tag}> has both rpy and quat_xyzw")
            if not any(quat):
                self.report.add("number-invalid", where, line, f"<{tag}> quat_xyzw: zero is no rotation")
                quat = None
            else:
                self._judge_quaternion(quat, where, line)
        return Origin(
            self.triple(element, "xyz", where, ZERO),
            self.triple(element, "rpy", where, ZERO),
            quat or None,  # type: ignore[arg-type]
            line,
        )

    def _judge_quaternion(self, quat: tuple[float, ...], where: str, line: int) -> None:
        length = math.hypot(*quat)
        if not abs(length - 1.0) <= UNIT_TOLERANCE:
            shown = " ".join(f"{x:.6g}" for x in quat)
            message = f"quat_xyzw ({shown}) has length {length:.4g}; it was normalised, as urdfdom does"
            self.report.add("quat-not-unit", where, line, message)
        if self.before((1, 1)):
            claimed = ".".join(map(str, self.version or ()))
            message = (
                f"quat_xyzw is URDF 1.1, and the file is of version {claimed}, in which urdfdom ignores it; "
                "MuJoCo and Drake ignore it in every version; it is taken as written"
            )
            self.report.once("quat-needs-version", "", where, line, message)


# ---- numbers -------------------------------------------------------------------------------------
# As URDF writes them. Python's float() would also accept ``1_000``, ``nan``, ``inf``, ``1e999`` (as infinity)
# and digits of other scripts; all of these are refused.

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
_SPACE = " \t\r\n"  # XML's white space; str.split would take a no-break space too
_GAP = re.compile(f"[{_SPACE}]+")
_LONGEST = 400  # characters; a double needs 25


class NumberError(ValueError):
    """A text that is no finite number.

    Attributes:
        code: "number-invalid", "number-not-finite" or "number-count".
        hint: advice, or None for the usual one.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def parse_number(text: str) -> float:
    """One finite number; XML's white space around it is allowed.

    Raises:
        NumberError: for anything else.
    """
    try:
        if _is_simple(text) and math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    # Something is wrong: report what.
    text = text.strip(_SPACE)
    if len(text) > _LONGEST:
        raise NumberError("number-invalid", f"{quoted(text)} is not a number: {len(text)} characters")
    if not _NUMBER.fullmatch(text):
        if _WORDS.fullmatch(text):
            raise NumberError("number-not-finite", f"{text!r} is not a finite number")
        hint = None
        if not text:
            raise NumberError("number-invalid", "is empty, expected a number")
        if not text.isascii():
            hint = "write ASCII digits, and plain blanks between numbers"
        if "," in text:
            hint = "write decimals with a point and separate numbers by spaces, not commas"
        raise NumberError("number-invalid", f"{quoted(text)} is not a number", hint)
    value = float(text)
    if not math.isfinite(value):
        raise NumberError("number-not-finite", f"{text!r} is beyond the largest double, 1.8e308")
    return value


def parse_numbers(text: str, count: int) -> tuple[float, ...]:
    """Exactly ``count`` finite numbers between XML's white space: blanks, tabs and line breaks.

    Raises:
        NumberError: for anything else.
    """
    try:
        if _is_simple(text):
            values = tuple(map(float, text.split()))
            if len(values) == count and math.isfinite(sum(values)):
                return values
    except ValueError:
        pass
    # Something is odd: look at the numbers one by one.
    stripped = text.strip(_SPACE)
    parts = _GAP.split(stripped, count + 1) if stripped else []
    values = tuple(parse_number(part) for part in parts[:count])
    if len(parts) != count:
        found = f"{len(parts)}" if len(parts) < count else f"more than {count}"
        hint = f"write {count} numbers"
        raise NumberError("number-count", f"{quoted(text)} holds {found} numbers, expected {count}", hint)
    return values


class KnownNumbers(dict[str, tuple[float, ...]]):
    """Text -> its numbers, so many of them, read once: "0 0 0" comes a thousand times.

    What :func:`parse_numbers` raises is raised here, too.
    """

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, text: str) -> tuple[float, ...]:
        try:
            # As parse_numbers, without a call: this is done for every number of a file.
            if len(text) <= _LONGEST and text.isascii() and text.isprintable() and "_" not in text:
                found = tuple(map(float, text.split()))
                if len(found) == self._count and math.isfinite(sum(found)):
                    self[text] = found
                    return found
        except ValueError:
            pass
        found = self[text] = parse_numbers(text, self._count)
        return found


def _is_simple(text: str) -> bool:
    """Whether float() reads the text as URDF does, or raises ValueError, or gives no finite number."""
    return len(text) <= _LONGEST and text.isascii() and text.isprintable() and "_" not in text
