"""From a path or a text to an XML tree, safely.

No DOCTYPE, so no entities; no network; nesting and attribute sizes bounded by the XML library; the
encoding is decoded here, strictly, and only encodings of plain text are known.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robokit.errors import quoted
from robokit.meshes.untrusted import FETCH, POINTER
from robokit.robot_names import EXAMPLES, own_robots
from robokit.urdf.findings import Report

if TYPE_CHECKING:
    from lxml import etree

MAX_BYTES = 64 * 2**20
"""Largest accepted file [bytes]."""

_LONGEST = 300  # characters of the XML library's message

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
_SPACE = "[ \t\r\n]"  # XML's white space
_DECLARATION = re.compile(rf"{_SPACE}*<\?xml\s[^>]*?\?>")
_DECLARED = re.compile(rb"""[ \t\r\n]*<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_PROLOGUE = re.compile(rf"{_SPACE}+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_SKIPPED = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_PREFIX = re.compile(rb"[<\s]([A-Za-z_][A-Za-z0-9_.-]*):")

UNDECLARED = "undeclared:"
"""Prefixes that the text does not declare get namespaces that begin like this."""

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
        report.add(
            "file-unreadable", "file", 0, f"cannot be read: {getattr(problem, 'strerror', None) or problem}"
        )
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
            report.add(
                "file-compressed", "file", 0, f"is a {name} archive, not XML", f"unpack it first ({name})"
            )
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
        if _looks_binary(data) and not encoding.startswith(("utf-16", "utf-32")):
            report.add("file-binary", "file", 0, "is not text")
        else:
            report.add(
                "file-encoding",
                "file",
                line,
                f"byte {problem.start} (0x{data[problem.start]:02x}) is not valid {encoding}",
                'save it as UTF-8, or declare its encoding: <?xml version="1.0" encoding="iso-8859-1"?>',
            )
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


def _looks_binary(data: bytes) -> bool:
    head = data[:4096]
    odd = sum(1 for b in head if b < 9 or 13 < b < 32)
    return odd > len(head) // 50


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
            _tell_prefixes(lines, report)
        return root, lines
    except etree.XMLSyntaxError as problem:
        if _has_control_characters(body, report):  # these end the parsing, too
            return None
        line = problem.lineno or 0
        # It can quote white space by the thousand: made short before any pattern looks at it.
        message = " ".join(str(problem.msg).split())[:_LONGEST]
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


def _tell_prefixes(lines: dict[etree._Element, int], report: Report) -> None:
    """Warns once of each prefix that is not declared; xacro's have a finding of their own."""
    mark = f"{{{UNDECLARED}"
    for element, line in lines.items():
        for name in (element.tag, *element.keys()):
            if name.startswith(mark):
                prefix, _, local = name.removeprefix(mark).partition("}")
                if prefix != "xacro":
                    message = f"the prefix of {prefix}:{local} is declared nowhere"
                    report.once("xml-prefix-undeclared", prefix, "file", line, message)


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
