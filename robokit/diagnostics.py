"""What the importer found: one value per finding, one line to print it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a robot description.

    Attributes:
        severity: "error" (cannot be loaded), "warning" (loaded as written, look at it) or "note".
        code: stable identifier in kebab case, e.g. "mass-negative".
        element: the element's path in words, e.g. "link 'left_foot' inertial".
        file: file name as given, or "<string>".
        line: line in the file, 0 where there is none.
        message: what was found and what is accepted.
        hint: what to do about it; may be empty.
    """

    severity: Severity
    code: str
    element: str
    file: str
    line: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{where}: {self.severity} {self.code}: {self.element}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text
