"""The text of a COLLADA file: parsed without entities, and its lists of numbers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from robokit.meshes.untrusted import check_tags

CHUNK = 1 << 20
"""Characters of a list of numbers that are taken apart at once: as strings they need thirty times as much."""

_SPACE = re.compile(r"\s")
_ENCODING = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
_OTHER_ENCODINGS = re.compile(r"iso-8859-\d+|windows-125\d|cp125\d|gbk|gb2312|gb18030|shift_jis|euc-(jp|kr)")


def parse_collada(content: bytes) -> Any:
    """The root element of a file, with tags freed of their namespace.

    Raises:
        ValueError: no COLLADA, a DOCTYPE, or too many elements.
        lxml.etree.XMLSyntaxError: no XML.
    """
    from lxml import etree

    text = _utf8(content)
    # Parsers expand entities in attributes whatever their options say, so no file may define any.
    if b"<!DOCTYPE" in text:
        raise ValueError("it has a DOCTYPE, which COLLADA does not use and which is not read")
    check_tags(text.count(b"<"), "tags")
    # Lists of vertices are longer than the 10 MB that XML readers take unless told otherwise.
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
    )
    root = etree.fromstring(text, parser)
    for element in root.iter():
        if isinstance(element.tag, str):
            element.tag = etree.QName(element).localname
    if root.tag != "COLLADA":
        raise ValueError(f"its root is <{str(root.tag)[:40]}>; a COLLADA document begins with <COLLADA>")
    return root


def _utf8(content: bytes) -> bytes:
    """The text in UTF-8, in which a DOCTYPE cannot hide behind another encoding."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16").encode()
    declared = _ENCODING.match(content[:400].lstrip())
    name = declared[1].decode().lower() if declared else "utf-8"
    if _OTHER_ENCODINGS.fullmatch(name):
        return content.decode(name).encode()
    return content


def read_numbers(element: Any, kind: type = float) -> np.ndarray:
    """The numbers in an element's text, flat.

    Args:
        element: with the text, or None for no numbers.
        kind: float or int.

    Raises:
        ValueError: something that is no number of that kind.
    """
    text = (element.text or "") if element is not None else ""
    parts: list[np.ndarray] = []
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + CHUNK)
        end = space.start() if space else len(text)
        words = text[start:end].split()
        try:
            parts.append(np.array(words, dtype=kind))
        except (ValueError, OverflowError) as problem:
            accepted = "whole numbers" if kind is int else "numbers"
            raise ValueError(f"<{element.tag}> holds something else than {accepted}: {problem}") from problem
        start = end
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
