"""Collects findings, so that all problems of a file are reported at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from robokit.errors import COMPARED, Diagnostic, Severity, UrdfError, nearest_names, one_line
from robokit.urdf.codes import CODES

_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
_SHOWN = 20  # findings in the message of an error; the rest is in .diagnostics
_LONGEST = 600  # characters of each

MOST_COMPARED = 10_000
"""Pairs of names that are compared for the hints of one report; after that there are no more hints."""


class Report:
    """The findings about one file.

    Attributes:
        file: the file's name in every diagnostic.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self._pairs = MOST_COMPARED
        self._found: list[Diagnostic] = []
        self._codes: set[str] = set()
        self._repeated: dict[tuple[str, str], tuple[str, int, str, int, str | None]] = {}

    def add(self, code: str, element: str, line: int, message: str, hint: str | None = None) -> None:
        """One finding; the hint defaults to the code's usual fix."""
        self._codes.add(code)
        self._found.append(self._diagnostic(code, element, line, message, hint))

    def once(
        self, code: str, kind: str, element: str, line: int, message: str, hint: str | None = None
    ) -> None:
        """A finding that is reported once for all its repetitions of the same kind, with their number."""
        self._codes.add(code)
        first = self._repeated.get((code, kind))
        if first is None:
            self._repeated[code, kind] = (element, line, message, 1, hint)
        else:
            self._repeated[code, kind] = (*first[:3], first[3] + 1, first[4])

    def nearest(self, name: str, known: Collection[str], most: int = 2) -> str | None:
        """A hint with the known names that are most like a wrong one; None where there are none.

        The time of all hints of a report is bounded: there are none after MOST_COMPARED pairs of names.
        """
        compared = min(len(known), COMPARED)
        if compared > self._pairs:
            return None
        self._pairs -= compared
        near = nearest_names(name, known, most)
        return "did you mean " + " or ".join(map(repr, near)) + "?" if near else None

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(CODES[code].severity == "error" for code in self._codes)

    def has(self, code: str) -> bool:
        """Whether there is a finding of this code."""
        return code in self._codes

    def diagnostics(self) -> list[Diagnostic]:
        """All findings: errors, warnings, notes; each in the file's order."""
        out = list(self._found)
        for (code, _), (element, line, message, count, hint) in self._repeated.items():
            if count > 1:
                message = f"{message} ({count} times; first here)"
            out.append(self._diagnostic(code, element, line, message, hint))
        return sorted(out, key=lambda d: (_ORDER[d.severity], d.line))

    def _diagnostic(self, code: str, element: str, line: int, message: str, hint: str | None) -> Diagnostic:
        row = CODES[code]
        return Diagnostic(
            row.severity, code, element, self.file, line, message, row.fix if hint is None else hint
        )


def refusal(file: str, diagnostics: Iterable[Diagnostic], strict: bool = False) -> UrdfError | None:
    """The error that these findings amount to, or None where the file can be loaded.

    Args:
        file: name for the first line of the message.
        diagnostics: the findings.
        strict: whether warnings refuse the file too.
    """
    diagnostics = list(diagnostics)
    errors = [d for d in diagnostics if d.severity == "error"]
    warnings = [d for d in diagnostics if d.severity == "warning"] if strict else []
    told = errors + warnings
    if not told:
        return None
    counts = [_count(len(errors), "error")] if errors else []
    if warnings:
        counts.append(_count(len(warnings), "warning") + " (refused by strict=True)")
    shown = [f"  {one_line(str(d), _LONGEST)}" for d in told[:_SHOWN]]
    lines = [f"{one_line(file)}: {' and '.join(counts)}", *shown]
    if len(told) > _SHOWN:
        lines.append(f"  and {len(told) - _SHOWN} more, all in .diagnostics")
    return UrdfError("\n".join(lines), diagnostics)


def _count(n: int, word: str) -> str:
    return f"{n} {word}" + ("s" if n != 1 else "")
