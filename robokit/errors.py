"""Every error that robokit raises on purpose.

    RobokitError
    ├── UrdfError          a file that cannot become a robot; .diagnostics holds all its problems
    ├── ModelError         a model built in code that contradicts itself
    ├── ShapeError         an array argument of the wrong shape, dtype or content (also a ValueError)
    ├── WrongType          an argument that is no robot, no path, no mapping (also a TypeError)
    ├── UnknownName        no such joint, link, robot or option; says the nearest (also a KeyError)
    ├── SingularInertia    a joint that moves no inertia, so H cannot be inverted; .joint names it
    ├── SimulationError    a simulation that left the finite numbers; .trajectory holds what it computed
    └── MissingDependency  an optional package that is not installed; says the install line

An error says what was given, what is accepted and what to do next.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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


class RobokitError(Exception):
    """Base class of all errors below; catch it to catch them all."""


class UrdfError(RobokitError):
    """A URDF that cannot be loaded.

    Attributes:
        diagnostics: every problem found, errors first [list of Diagnostic].
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)


class ModelError(RobokitError, ValueError):
    """A model built in code whose parts contradict each other."""


class ShapeError(RobokitError, ValueError):
    """An array argument of the wrong shape, dtype or content."""


class WrongType(RobokitError, TypeError):
    """An argument of a type that is not accepted."""

    def __init__(self, argument: str, given: Any, accepted: str, hint: str = "") -> None:
        words = "None" if given is None else f"{type(given).__name__} {given!r}"
        words = words if len(words) <= 80 else f"{words[:77]}..."
        super().__init__(f"{argument}: expected {accepted}, got {words}" + (f"; {hint}" if hint else ""))


class UnknownName(RobokitError, KeyError):
    """A name that does not exist, with the nearest ones that do."""

    def __init__(self, what: str, name: Any, known: Iterable[str], hint: str = "") -> None:
        known = sorted(known)
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
        if near:
            advice = "did you mean " + " or ".join(repr(n) for n in near) + "?"
        elif not known:
            advice = f"there is no {what} at all"
        else:
            shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            advice = f"known: {shown}"
        self.message = f"no {what} named {name!r}; {advice}" + (f" {hint}" if hint else "")
        super().__init__(self.message)

    def __str__(self) -> str:
        # KeyError shows the repr of its argument: a message wants to be read.
        return self.message


class SingularInertia(RobokitError, ArithmeticError):
    """A joint that moves no inertia: H has no inverse.

    Attributes:
        joint: name of the joint.
    """

    def __init__(self, message: str, joint: str) -> None:
        super().__init__(message)
        self.joint = joint


class SimulationError(RobokitError, ArithmeticError):
    """A simulation whose state is no longer finite.

    Attributes:
        trajectory: what was computed until then (a Trajectory).
    """

    def __init__(self, message: str, trajectory: Any = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory


class MissingDependency(RobokitError, ImportError):
    """An optional package that a feature needs and that is not installed."""
