"""A file or a text to an XML tree, safely, and the attributes, numbers and children of its elements."""

from __future__ import annotations

import codecs
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from robokit.errors import quoted
from robokit.meshes.untrusted import FETCH, POINTER
from robokit.robot_names import EXAMPLES, own_robots
from robokit.urdf.description import Origin, Triple
from robokit.urdf.findings import Report

if TYPE_CHECKING:
    from lxml import etree

# ==== XML, read safely ============================================================================
# From a path or a text to an XML tree, safely.
#
# No DOCTYPE, so no entities; no network; nesting and attribute sizes bounded by the XML library; the
# encoding is decoded here, strictly, and only encodings of plain text are known.

MAX_BYTES = 64 * 2**20  # largest accepted file [bytes]

_LONGEST_MESSAGE = 300  # characters of the XML library's message

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODINGS = re.compile(
    r"utf-(8|16|32)(-[lb]e|-sig)?|ascii|iso8859-\d+|cp\d+|mac-\w+|koi8-[rut]|gb2312|gbk|gb18030|big5(hkscs)?"
    r"|shift_jis\w*|euc_\w+|tis-620"
)
_MARK = "\ufeff"
_BLANK = "[ \t\r\n]"  # XML's white space
_DECLARATION = re.compile(rf"{_BLANK}*<\?xml\s[^>]*?\?>")
_DECLARED = re.compile(rb"""[ \t\r\n]*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_PROLOGUE = re.compile(rf"{_BLANK}+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_SKIPPED = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_PREFIX = re.compile(rb"[<\s]([A-Za-z_][A-Za-z0-9_.-]*):")

UNDECLARED = "undeclared:"  # prefixes that the text does not declare get namespaces that begin like this

_LIMITS = (
    (
        re.compile("Excessive depth"),
        "elements are nested more than 256 deep",
        "a URDF is 5 levels deep: look for elements that are not closed",
    ),
    (
        re.compile("Resource limit|too big|huge"),
        "a run of text or white space, or a tag, of more than 10,000,000 characters",
        "delete what is too long: a URDF has no such text",
    ),
)
"""Words of the XML library, what they mean, what to do about it."""

_NOT_XML_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_ARCHIVES = ((b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"))


def read_file(path: str | os.PathLike[str], report: Report) -> bytes | None:
    """The bytes of a regular file, or None with an error in the report."""
    try:
        found = os.stat(path)
        mode, size = found.st_mode, found.st_size
        if stat.S_ISDIR(mode):
            urdfs = sorted(p.name for p in Path(path).glob("*.urdf"))[:5]
            hint = f"it holds {', '.join(urdfs)}" if urdfs else None
            report.add("file-not-regular", "file", 0, "is a directory, not a URDF file", hint)
        elif not stat.S_ISREG(mode):
            report.add("file-not-regular", "file", 0, "is a device or a pipe, not a file")
        elif size > MAX_BYTES:
            report.add("file-too-large", "file", 0, f"has {size} bytes, at most {MAX_BYTES} are read")
        else:
            with open(path, "rb") as file:
                return file.read()
    except (FileNotFoundError, NotADirectoryError):
        report.add("file-missing", "file", 0, "there is no such file", _missing_hint(path))
    except (OSError, ValueError) as problem:  # ValueError: a NUL character in the path
        why = getattr(problem, "strerror", None) or problem
        report.add("file-unreadable", "file", 0, f"cannot be read: {why}")
    return None


def _missing_hint(path: str | os.PathLike[str]) -> str:
    if str(path).lstrip()[:1] == "<":
        return "this looks like the text of a URDF: use loads_urdf"
    name = os.fspath(path)
    if isinstance(name, str) and name in own_robots():
        return f"this is the name of a robot: use load_urdf(find_robot({name!r}))"
    if isinstance(name, str) and name.startswith(f"{EXAMPLES}:"):
        return f"this is the name of a robot in {EXAMPLES}: use load_urdf(find_robot({name!r}))"
    return f"looked in {Path(path).absolute().parent}"


def decode(data: bytes, report: Report) -> str | None:
    """The text of a file by its byte order mark, its declaration, or UTF-8."""
    if not data.strip(b" \t\r\n\0"):
        report.add("file-empty", "file", 0, f"is empty ({len(data)} bytes)")
        return None
    for magic, name in _ARCHIVES:
        if data.startswith(magic):
            what, hint = f"is a {name} archive, not XML", f"unpack it first ({name})"
            report.add("file-compressed", "file", 0, what, hint)
            return None
    encoding = _encoding(data)
    if encoding == "utf-8" and b"\0" in data[:4096]:
        report.add("file-binary", "file", 0, "holds NUL bytes: it is not text")
        return None
    try:
        name = codecs.lookup(encoding).name
        if not _ENCODINGS.fullmatch(name):
            raise LookupError
        return data.decode(encoding)
    except LookupError:
        report.add("file-encoding", "file", 1, f"declares the encoding {encoding!r}, which is not known here")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        head = data[:4096]
        binary = sum(1 for b in head if b < 9 or 13 < b < 32) > len(head) // 50
        if binary and not encoding.startswith(("utf-16", "utf-32")):
            report.add("file-binary", "file", 0, "is not text")
        else:
            what = f"byte {problem.start} (0x{data[problem.start]:02x}) is not valid {encoding}"
            hint = 'save it as UTF-8, or declare its encoding: <?xml version="1.0" encoding="iso-8859-1"?>'
            report.add("file-encoding", "file", line, what, hint)
    return None


def _encoding(data: bytes) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return encoding
    # UTF-16 without a mark shows as a NUL beside "<".
    if data[:2] == b"<\0":
        return "utf-16-le"
    if data[:2] == b"\0<":
        return "utf-16-be"
    declared = _DECLARED.match(data)
    if not declared:
        return "utf-8"
    name = declared[1].decode("ascii").lower()
    # A declaration that could be read as ASCII cannot be in a wide encoding, whatever it claims.
    return "utf-8" if name.startswith(("utf-16", "utf16", "utf-32", "utf32")) else name


def parse_xml(text: str, report: Report) -> tuple[etree._Element, dict[etree._Element, int]] | None:
    """The root element of a text and every element's line, or None with errors in the report."""
    from lxml import etree

    body = without_declaration(text)
    if not body.strip():
        report.add("file-empty", "file", 0, "is empty")
        return None
    if _is_pointer(body, report) or _has_doctype(body, report):
        return None
    data = body.encode("utf-8", "surrogatepass")
    if len(data) > MAX_BYTES:
        if _has_control_characters(body, report):
            return None
        report.add("file-too-large", "file", 0, f"has {len(data)} bytes, at most {MAX_BYTES} are read")
        return None
    parser = _parser()
    try:
        try:
            root, undeclared = etree.fromstring(data, parser), False
        except etree.XMLSyntaxError:
            if any(e.type_name != "NS_ERR_UNDEFINED_NAMESPACE" for e in parser.error_log):
                raise
            # Undeclared prefixes, such as a leftover xacro:, are no reason to stop.
            root = etree.fromstring(_with_prefixes(data), _parser())
            undeclared = True
        if root.getroottree().docinfo.internalDTD is not None:  # the check of the text may miss it
            _refuse_doctype(0, report)
            return None
        lines = _line_table(data, root)
        if undeclared:
            # Each prefix that is not declared is told once; xacro's have a finding of their own.
            mark = f"{{{UNDECLARED}"
            for element, place in lines.items():
                for full in (element.tag, *element.keys()):
                    if full.startswith(mark):
                        prefix, _, local = full.removeprefix(mark).partition("}")
                        if prefix != "xacro":
                            message = f"the prefix of {prefix}:{local} is declared nowhere"
                            report.once("xml-prefix-undeclared", prefix, "file", place, message)
        return root, lines
    except etree.XMLSyntaxError as problem:
        if _has_control_characters(body, report):  # these end the parsing, too
            return None
        line = problem.lineno or 0
        # It can quote white space by the thousand: made short before any pattern looks at it.
        message = " ".join(str(problem.msg).split())[:_LONGEST_MESSAGE]
        message = re.sub(r"(, line \d+, column \d+)?( \(<string>, line \d+\))?$", "", message)
        what, hint = f"is not well-formed XML: {message.strip()}", _syntax_hint(body)
        for words, limit, advice in _LIMITS:
            if words.search(message):
                what, hint = f"is beyond a limit of the XML library: {limit}", advice
        report.add("xml-syntax", "file", line, what, hint)
    return None


def without_declaration(text: str) -> str:
    """The text without its XML declaration, which no longer holds, and byte order marks; lines stay."""
    text = text.lstrip(_MARK)
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    return "\n" * declaration[0].count("\n") + text[declaration.end() :].lstrip(_MARK)


def _with_prefixes(data: bytes) -> bytes:
    """The text with declarations of the prefixes that lack one, so that the rest can be read."""
    from lxml import etree

    declared = etree.fromstring(data, _parser(recover=True)).nsmap
    used = {prefix.decode() for prefix in _PREFIX.findall(data)} - {"xml", "xmlns"} - declared.keys()
    blank = _SKIPPED.sub(lambda m: b" " * len(m[0]), data)
    start = re.search(rb"<[^\s/>]+", blank)
    assert start is not None  # the recovering parser has found a root element
    names = "".join(f' xmlns:{prefix}="{UNDECLARED}{prefix}"' for prefix in sorted(used))
    return data[: start.end()] + names.encode() + data[start.end() :]


def _parser(recover: bool = False) -> etree.XMLParser:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        remove_blank_text=True,  # between elements: half of all nodes
        collect_ids=False,  # a table of xml:id, which nobody asks for
        recover=recover,
        encoding="utf-8",
    )


def is_refused(text: str, report: Report) -> bool:
    """Whether the text is a Git LFS pointer, begins with a DOCTYPE or holds characters that XML forbids.

    The reason is reported.
    """
    return _is_pointer(text, report) or _has_doctype(text, report) or _has_control_characters(text, report)


def _is_pointer(text: str, report: Report) -> bool:
    if not text.lstrip().startswith(tuple(mark.decode() for mark in POINTER)):
        return False
    report.add("file-lfs-pointer", "file", 0, "is a Git LFS pointer, not the file itself", FETCH)
    return True


def _has_doctype(text: str, report: Report) -> bool:
    at = 0
    while match := _PROLOGUE.match(text, at):
        at = match.end()
    if text[at : at + 15].lower().startswith("<!doctype html"):
        line = text.count("\n", 0, at) + 1
        report.add(
            "root-not-robot", "file", line, "is an HTML page", "a download page was saved, not its file"
        )
        return True
    if text.startswith("<!DOCTYPE", at):
        _refuse_doctype(text.count("\n", 0, at) + 1, report)
        return True
    return False


def _has_control_characters(text: str, report: Report) -> bool:
    odd = _NOT_XML_TEXT.search(text)
    if odd is None:
        return False
    line = text.count("\n", 0, odd.start()) + 1
    what = f"holds the control character U+{ord(odd[0]):04X}, which XML does not allow"
    code = "file-binary" if text.lstrip()[:1] != "<" else "xml-syntax"
    report.add(code, "file", line, what)
    return True


def _refuse_doctype(line: int, report: Report) -> None:
    message = "has a DOCTYPE; it is refused because entities can come with it"
    report.add("xml-doctype", "file", line, message)


def _syntax_hint(text: str) -> str | None:
    head = text.lstrip()
    if head[:1] != "<":
        single = "\n" not in head.strip()
        if single and head.strip().lower().endswith((".urdf", ".xml", ".xacro")):
            return "this looks like a path: use load_urdf"
        return f"it begins with {quoted(head[:20])}; a URDF begins with <robot> or <?xml ...?>"
    if "</robot>" not in head and "<robot" in head:
        return "the closing </robot> is missing: the file may be cut off"
    return None


def _line_table(data: bytes, root: etree._Element) -> dict[etree._Element, int]:
    """Line of each element's start tag.

    The XML library gives the line where a start tag ends and loses count after 65,535 lines; start tags
    come in document order, so counting them in the text is exact.
    """
    if b"<?" in data or b"<![" in data:
        data = _SKIPPED.sub(lambda m: b"\n" * m[0].count(b"\n"), data)
    elif b"<!--" in data:  # a comment ends at the first "-->", and holds no other
        before, *others = data.split(b"<!--")
        parts = (other.partition(b"-->") for other in others)
        data = before + b"".join(b"\n" * inside.count(b"\n") + behind for inside, _, behind in parts)
    text = np.frombuffer(data, dtype=np.uint8)
    starts = np.flatnonzero(text == ord("<"))
    starts = starts[text[starts + 1] != ord("/")]
    lines = (np.searchsorted(np.flatnonzero(text == ord("\n")), starts) + 1).tolist()
    return dict(zip(root.iter(), lines, strict=True))


# ==== attributes, numbers, children ===============================================================
# Reads attributes, numbers and child elements of XML elements, and reports everything odd about them.

Version = tuple[int, int]

VERSIONS: tuple[Version, ...] = ((1, 0), (1, 1), (1, 2))
"""Versions of URDF. 1.1 brought quat_xyzw and the capsule, 1.2 limits of acceleration, deceleration and jerk.

Source: urdfdom 6.0, which refuses every other version, and more or fewer than two numbers.
"""

UNIT_TOLERANCE = 1e-3  # deviation of a length from 1 that rounding can explain

FULL_TURN = 6.3  # an angle of 2 pi, rounded as files have it [rad]

ZERO: Triple = (0.0, 0.0, 0.0)
_PHYSICS = frozenset(("gazebo", "transmission", "ros2_control", "contact", "contact_coefficients", "mujoco"))


class Reader:
    """Access to one XML tree; every problem goes to the report, with the element's line.

    ``report``: where findings go; ``line``: the line of an element's start tag, ``line(element)``; ``read``:
    the numbers of a text that holds 1, 3 or 4 of them, ``read[3]["0 0 1"]``; ``version``: of URDF that the
    file claims, 1.0 where it claims none; None where there is no such version.
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
        """The first known child; others are noted, and a further known one is a warning."""
        found: etree._Element | None = None
        for child in element:
            tag = self._names.get(child.tag) or self.tag(child)
            if tag not in known:
                self._note_ignored(tag, child, element, where)
            elif found is None:
                found = child
            else:
                message = f"<{self.tag(element)}> holds <{tag}> beside <{self.tag(found)}>; the first counts"
                self.report.add("element-repeated", where, self.line(child), message)
        return found

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
        given = element.keys()
        unknown = [x for x in given if x not in known and not x.startswith("{") and ":" not in x]
        if not unknown:
            return
        tag, line, free = self.tag(element), self.line(element), [name for name in known if name not in given]
        for name in unknown:
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
        """The attribute's numbers, ``count`` of them, 1, 3 or 4: None where it is absent, False where they
        are bad.

        What is bad is reported, ``where`` in the file.
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

        ``where`` is the place in the file, in words. ``absent`` and ``bad`` stand for numbers that are not
        there or are unreadable; ``others`` are attributes that may be there too: all but these and the
        names are noted.
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
                place: Triple = ZERO if xyz is None else read[xyz]  # type: ignore[assignment]
                angles: Triple = ZERO if rpy is None else read[rpy]  # type: ignore[assignment]
            except NumberError:
                pass  # reported below
            else:
                self._judge_angles(angles, where, line)
                return Origin(place, angles, None, line)
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
                length = math.hypot(*quat)
                if not abs(length - 1.0) <= UNIT_TOLERANCE:
                    shown = " ".join(f"{x:.6g}" for x in quat)
                    message = (
                        f"quat_xyzw ({shown}) has length {length:.4g}; it was normalised, as urdfdom does"
                    )
                    self.report.add("quat-not-unit", where, line, message)
                if self.before((1, 1)):
                    claimed = ".".join(map(str, self.version or ()))
                    message = (
                        f"quat_xyzw is URDF 1.1, and the file is of version {claimed}, in which urdfdom "
                        "ignores it; MuJoCo and Drake ignore it in every version; it is taken as written"
                    )
                    self.report.once("quat-needs-version", "", where, line, message)
        place = self.triple(element, "xyz", where, ZERO)
        angles = self.triple(element, "rpy", where, ZERO)
        self._judge_angles(angles, where, line)
        return Origin(place, angles, quat or None, line)  # type: ignore[arg-type]

    def _judge_angles(self, rpy: Triple, where: str, line: int) -> None:
        if max(rpy) > FULL_TURN or min(rpy) < -FULL_TURN:
            shown = " ".join(f"{x:g}" for x in rpy)
            message = f"rpy ({shown}) turns by more than a full turn: angles are in radians; taken as written"
            self.report.add("angle-beyond-turn", where, line, message)


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

    ``code``: "number-invalid", "number-not-finite" or "number-count"; ``hint``: advice, or None for the usual
    one.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def parse_number(text: str) -> float:
    """One finite number, with XML's white space around it; NumberError for anything else."""
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
    """``count`` finite numbers between XML's blanks, tabs and line breaks; NumberError for anything else."""
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
