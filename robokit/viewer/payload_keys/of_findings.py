"""What the importer found, on the page of a check."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.errors import Severity


@dataclass(frozen=True)
class FindingData:
    """What the importer found: a Diagnostic, and where it points.

    Attributes:
        severity: "error", "warning" or "note".
        code: stable identifier.
        element: path of the element in words.
        line: in the file, 0 where there is none.
        message: what was found.
        hint: what to do; may be empty.
        link: name of the link that it is about, or None.
        body: number of that link's body, or None.
    """

    severity: Severity
    code: str
    element: str
    line: int
    message: str
    hint: str
    link: str | None
    body: int | None


@dataclass(frozen=True)
class InertiaData:
    """A row of the table of inertias.

    Attributes:
        link: its name.
        body: number of its body.
        mass: [kg].
        box: edges of the equivalent box [m].
        moments: principal moments, ascending [kg m^2].
        odd: whether a finding doubts them.
    """

    link: str
    body: int
    mass: float
    box: list[float]
    moments: list[float]
    odd: bool


@dataclass(frozen=True)
class CheckData:
    """The check panel: the findings, and the inertia of every link that has mass."""

    findings: list[FindingData]
    inertias: list[InertiaData]
