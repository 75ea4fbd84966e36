"""Numbers as URDF writes them: Python's float() would accept more.

``1_000``, ``nan``, ``inf``, ``1e999``, ``0x1p3`` and digits of other scripts are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from robokit.errors import quoted

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
        if _plain(text) and math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    # Something is odd: say what.
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
        if _plain(text):
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


def plain_numbers(texts: Sequence[str]) -> list[float]:
    """One number of each text, where :func:`parse_number` would take all of them at once.

    Raises:
        ValueError: a text that needs a closer look; it can be a number all the same.
    """
    values = list(map(float, texts))
    if not (_plain("".join(texts)) and math.isfinite(sum(values))):
        raise ValueError
    return values


def _plain(text: str) -> bool:
    """Whether float() reads the text as URDF does, or raises ValueError, or gives no finite number."""
    return len(text) <= _LONGEST and text.isascii() and text.isprintable() and "_" not in text
