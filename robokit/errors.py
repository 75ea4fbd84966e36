"""Every error that robokit raises on purpose.

    RobokitError
    ├── LoadError          a description that cannot become a robot; .diagnostics holds all its problems
    │   ├── UrdfError      one that is a URDF
    │   └── OptionError    an option that is for files of another format
    ├── ModelError         a model built in code that contradicts itself
    ├── ShapeError         an array of the wrong shape or dtype, a number out of range (also a ValueError)
    ├── InvalidValue       an array with NaN or infinity, or a quaternion that is not of unit length (also a
    │                      ValueError); .argument and .place say where
    ├── WrongType          an argument of a wrong type, such as a path for a robot (also a TypeError)
    ├── UnknownName        no such joint, link, robot or option; says the nearest (also a KeyError)
    ├── FunctionError      a function of your own (rk.function) that cannot be run; .file and .line say where
    ├── SingularInertia    a joint that moves no inertia, so H cannot be inverted; .joint names it
    ├── DeviceError        a graphics card that is not there or cannot do it; says what is missing
    ├── WriteError         a file that cannot be written (also an OSError)
    ├── SimulationError    a simulation that broke down; .trajectory holds what it computed
    └── MissingDependency  an optional package that is not installed; says the install line

``simulate`` and ``rollout`` issue warnings of the class SimulationWarning.

An error says what was given, what is accepted and what to do next.
"""

from __future__ import annotations

import bisect
import difflib
import heapq
import importlib
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]

COMPARED = 500  # known names that a wrong one is compared with, those next to it in the alphabet
LONGEST_NAME = 60  # characters of a name that a message shows and a search for similar names looks at


def quoted(name: object) -> str:
    """The repr of a name, cut to a length that a message can hold."""
    text = name if isinstance(name, str) else str(name)
    return repr(text) if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]!r}..."


def shown(value: object, longest: int = LONGEST_NAME + 2) -> str:
    """What a caller gave, for a message: its repr in one line of bounded length, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # an int of more than 4,300 digits, or a user's object whose repr fails
        text = f"a value of type {type(value).__name__}"
    return one_line(text, longest)


def one_line(text: str, longest: int = 1000) -> str:
    """The text in one line of bounded length: breaks become blanks, unseen characters are escaped.

    Args:
        text: any text, for example one that quotes a file.
        longest: characters of the result; the middle of a longer text is left out.
    """
    if len(text) > longest:
        text = f"{text[: 2 * longest // 3]} ... {text[-(longest // 3 - 5) :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else _seen(c) for c in text)


def _seen(character: str) -> str:
    return " " if character in "\t\n\r\u2028\u2029" else ascii(character)[1:-1]


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a message, at most so many of them: "a, b, c and 7 more"."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def counted(n: int, thing: str) -> str:
    """A number and a noun in its right form: "1 joint", "2 joints", "2 bodies"."""
    plural = thing[:-1] + "ies" if thing.endswith("y") else thing + "s"
    return f"{n} {thing if n == 1 else plural}"


def nearest_names(name: str, known: Iterable[str], most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names that are most like a wrong one, the nearest first.

    The time is bounded whatever the names are: of many names only those that stand next to the wrong one in
    the alphabet are compared, and names of more than 60 characters are not.

    Args:
        name: the wrong name.
        known: the right ones.
        most: number of names in the result, at most.
        cutoff: likeness from which a name counts, 0 to 1.
    """
    if len(name) > LONGEST_NAME:
        return []
    names = sorted(k for k in known if len(k) <= LONGEST_NAME)
    if len(names) > COMPARED:
        start = bisect.bisect(names, name) - COMPARED // 2
        start = min(max(start, 0), len(names) - COMPARED)
        names = names[start : start + COMPARED]
    alike: dict[str, list[str]] = {}  # names that differ in capitals alone are the same here
    for each in names:
        alike.setdefault(each.lower(), []).append(each)
    near = difflib.get_close_matches(name.lower(), alike, n=most, cutoff=cutoff)
    return [each for lower in near for each in alike[lower]][:most]


@dataclass(frozen=True)
class Diagnostic:
    """One finding about a robot description.

    Attributes:
        severity: "error" (cannot be loaded), "warning" (loaded as written, look at it) or "note".
        code: stable identifier in kebab case, e.g. "mass-negative".
        element: the element's path in words, e.g. "link 'left_foot' inertial".
        file: file name as given, or "<string>".
        line: line in the file, 0 if there is none.
        message: what was found and what is accepted.
        hint: what to do about it; "" if there is nothing to say.

    Element, message and hint are single lines of bounded length, whatever they quote.
    """

    severity: Severity
    code: str
    element: str
    file: str
    line: int
    message: str
    hint: str = ""

    def __post_init__(self) -> None:
        for name, longest in (("element", 250), ("message", 1000), ("hint", 500)):
            object.__setattr__(self, name, one_line(getattr(self, name), longest))

    def __str__(self) -> str:
        file = one_line(self.file)
        where = f"{file}:{self.line}" if self.line else file
        text = f"{where}: {self.severity} {self.code}: {self.element}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


class RobokitError(Exception):
    """Base class of all errors below; catch it to catch them all.

    Errors can be pickled and copied, with their attributes and notes: workers of a pool raise them, too.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's way calls the class with the message, which is not what each __init__ takes.
        return _made_again, (type(self), self.args), self.__dict__


def _made_again(kind: type[RobokitError], arguments: tuple[Any, ...]) -> RobokitError:
    """An error of a message, made as the class of Python's that it is; its attributes come as its state."""
    error = kind.__new__(kind)
    super(RobokitError, error).__init__(*arguments)
    return error


class LoadError(RobokitError):
    """A robot description, of any format, that cannot be loaded.

    Attributes:
        diagnostics: every problem found, errors first [list of Diagnostic].
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)


class UrdfError(LoadError):
    """A URDF that cannot be loaded."""


class OptionError(LoadError):
    """An option of :func:`robokit.load` that the format of the file does not have."""


class ModelError(RobokitError, ValueError):
    """A model built in code that is inconsistent."""


class ShapeError(RobokitError, ValueError):
    """An array argument of the wrong shape or dtype, or a number that is out of range."""


class InvalidValue(RobokitError, ValueError):
    """An array of the right shape with invalid numbers.

    NaN, infinity, a quaternion that is not of unit length, or an angle that is too large.

    Attributes:
        argument: its name, e.g. "q".
        place: index of the number, or of the first one of a quaternion.
    """

    def __init__(self, message: str, argument: str = "", place: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.argument, self.place = argument, tuple(place)


class WrongType(RobokitError, TypeError):
    """An argument of a type that is not accepted."""

    def __init__(self, argument: str, given: Any, accepted: str, hint: str = "") -> None:
        words = "None" if given is None else f"{type(given).__name__} {shown(given)}"
        super().__init__(f"{argument}: expected {accepted}, got {words}" + (f"; {hint}" if hint else ""))


class UnknownName(RobokitError, KeyError):
    """A name that does not exist; the message suggests similar names."""

    def __init__(self, what: str, name: Any, known: Iterable[str], hint: str = "") -> None:
        known = list(known)
        near = nearest_names(name, known, cutoff=0.5) if isinstance(name, str) else []
        if near:
            advice = "did you mean " + " or ".join(map(repr, near)) + "?"
        elif not known:
            advice = f"there is no {what} at all"
        else:
            some = [one_line(k, LONGEST_NAME) for k in heapq.nsmallest(8, known)]
            advice = "known: " + ", ".join(some) + (", ..." if len(known) > 8 else "")
        given = quoted(name) if isinstance(name, str) else shown(name)
        self.message = f"no {what} named {given}; {advice}" + (f" {hint}" if hint else "")
        super().__init__(self.message)

    def __str__(self) -> str:
        # KeyError shows the repr of its argument: a message wants to be read.
        return self.message


class FunctionError(RobokitError):
    """A user-defined function that raised an error, or returned something other than it declares.

    Attributes:
        file: of the text.
        line: in the file.
    """

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.file, self.line = file, line


class SingularInertia(RobokitError, ArithmeticError):
    """A joint that moves no inertia, so that H is singular.

    Attributes:
        joint: name of the joint.
    """

    def __init__(self, message: str, joint: str) -> None:
        super().__init__(message)
        self.joint = joint


class SimulationError(RobokitError, ArithmeticError):
    """A simulation that failed: its state is not finite, or its energy grew without a cause.

    Attributes:
        trajectory: the motion up to the failure (a Trajectory).
    """

    def __init__(self, message: str, trajectory: Any = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory


class SimulationWarning(UserWarning):
    """A doubtful start or result of a run; the message says what was found and what to do."""


_TOLD: ContextVar[list[str] | None] = ContextVar("told", default=None)


@contextmanager
def warnings_into(told: list[str]) -> Iterator[None]:
    """robokit's warnings in here go to a list, in this thread only.

    Python's ``catch_warnings`` changes the filters of all threads, and two that overlap leave them changed.
    """
    before = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(before)


def warn(message: str, category: type[Warning] = SimulationWarning) -> None:
    """Warn at the line outside of robokit that led here, however deep the caller is."""
    if (told := _TOLD.get()) is not None:
        told.append(message)
        return
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "robokit" and frame.f_back is not None:
        frame = frame.f_back
    names = frame.f_globals
    seen = names.setdefault("__warningregistry__", {})
    place = frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "__main__"), seen
    warnings.warn_explicit(message, category, *place)


class WriteError(RobokitError, OSError):
    """A file that cannot be written.

    Attributes:
        filename: of the file.
        errno: the system's number of the reason.
    """

    def __init__(self, message: str, filename: Any = None, number: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.filename = None if filename is None else str(filename)
        self.errno = number
        self.strerror = os.strerror(number) if number else message

    def __str__(self) -> str:
        return self.message  # OSError would print the error number

    def __reduce__(self) -> tuple[Any, ...]:
        numbers = {"filename": self.filename, "errno": self.errno, "strerror": self.strerror}
        return _made_again, (type(self), self.args), self.__dict__ | numbers  # not in OSError's __dict__


class MissingDependency(RobokitError, ImportError):
    """An optional package that a feature needs and that is not installed."""


class DeviceError(RobokitError):
    """What a card cannot do: there is no such card, no driver, no compiler, or too little memory."""


def library(module: str, extra: str, purpose: str = "") -> Any:
    """Import a module that only some of robokit's functions need.

    Args:
        module: its name, as in ``import``.
        extra: the extra of robokit that installs it.
        purpose: what needs it, the start of a sentence that goes on "needs ...".

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        what = f"{purpose} needs {name}, which" if purpose else name
        raise MissingDependency(
            f"{what} is not installed ({error}): pip install 'robokit[{extra}]'"
        ) from error
