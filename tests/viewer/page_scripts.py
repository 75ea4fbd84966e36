"""Which keys of the payload the page's JavaScript reads, found in its text.

The scripts keep to one rule, which makes this possible: a name that stands for an object of the payload says
which class it has (:data:`NAMES`). Followed are chains such as ``data.joints[k].axis``, the parameters of
``map`` and its like, ``for ... of`` and destructuring.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass

from robokit.viewer import payload_keys as keys

NAMES = {
    "data": keys.Payload,
    "robot": keys.RobotData,
    "link": keys.LinkData,
    "joint": keys.JointData,
    "shape": keys.ShapeData,
    "node": keys.NodeData,
    "userData": keys.NodeData,
    "ground": keys.GroundData,
    "counts": keys.CountData,
    "cost": keys.CostData,
    "frames": keys.FramesData,
    "curve": keys.CurveData,
    "series": keys.SeriesData,
    "linkForce": keys.LinkForceData,
    "peak": keys.PeaksData,
    "stopped": keys.StoppedData,
    "happening": keys.HappeningData,
    "answer": keys.AnswerData,
    "touched": keys.TouchedData,
    "reached": keys.ReachedData,
    "finding": keys.FindingData,
    "inertia": keys.InertiaData,
    "ghost": keys.GhostData,
    "compared": keys.ComparedData,
    "walk": keys.WalkData,
    "program": keys.ProgramData,
    "algorithm": keys.AlgorithmData,
    "listing": keys.ListingData,
    "sweep": keys.SweepData,
    "letter": keys.LetterData,
    "form": keys.FormData,
    "live": keys.LiveData,
    "stepper": keys.StepperData,
    "module": keys.ModuleData,
    "slot": keys.SlotData,
    "motors": keys.MotorsData,
    "motor": keys.MotorData,
    "tie": keys.TieData,
    "attachment": keys.AttachmentData,
    "report": keys.ReportData,
    "columnData": keys.ColumnData,
    "reasonData": keys.ReasonData,
    "rerunData": keys.RerunData,
    "inputData": keys.InputData,
    "partData": keys.PartData,
}
"""What a name of the scripts stands for, as a variable or, ``data`` and ``userData``, as a property."""

PROPERTIES = ("data", "userData")
EACH = ("map", "filter", "find", "forEach", "flatMap", "some", "every")

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<number>\d[\w.]*(?:(?<=[eE])[+-]\d+)?)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<name>[A-Za-z_$][\w$]*)
      | (?P<mark>\?\.(?!\d)|=>|\.\.\.|&&|\|\||\?\?|.)""",
    re.X | re.S,
)
REGEX = re.compile(r"/(?![/*])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[\n])+/[a-z]*")
BEFORE_REGEX = {"(", ",", "=", ":", "[", "!", "&&", "||", "?", "{", "}", ";", "=>", "return", ""}


def tokens(text: str) -> list[str]:
    """Names and marks of a script; a string, number or regular expression is one token, "0"."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            at = _template(text, at + 1, found)
            continue
        if (match := REGEX.match(text, at)) and (found[-1] if found else "") in BEFORE_REGEX:
            found.append("0")
        else:
            match = TOKEN.match(text, at)
            assert match is not None
            if match.lastgroup in ("name", "mark"):
                found.append(match.group())
            elif match.lastgroup != "space":
                found.append("0")
        at = match.end()
    return found


def _template(text: str, at: int, found: list[str]) -> int:
    """The tokens inside ${...} of a template whose text begins here; where the template ends."""
    found.append("0")
    while text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            end, depth = at + 2, 1
            while depth:
                if text[end] == "`":
                    end = _template(text, end + 1, [])
                    continue
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            found += [";", *tokens(text[at + 2 : end - 1]), ";"]
            at = end
        else:
            at += 1
    return at + 1


@dataclass
class Reading:
    """What scripts read.

    Attributes:
        read: (class, key) of every key that is read.
        problems: reads of keys that do not exist, and names against the rule.
    """

    read: set[tuple[type, str]] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    def script(self, text: str) -> None:
        """Follow the chains of one script."""
        self.tokens = tokens(text)
        self.names: dict[str, object] = dict(NAMES)
        size = 0
        while size != len(self.names):  # destructuring gives names to lists
            size = len(self.names)
            for k, token in enumerate(self.tokens):
                before = self.tokens[k - 1] if k else ""
                if token in self.names and (before not in (".", "?.") or token in PROPERTIES):
                    self.bound(k, *self.chain(k + 1, self.names[token]))

    def chain(self, k: int, kind: object) -> tuple[int, object]:
        """Follow a chain from a token after its first name; where it ends, and what it is there."""
        while k < len(self.tokens):
            token, after = self.tokens[k], self.tokens[k + 1 : k + 3]
            if token in (".", "?.") and after and after[0] != "[":
                if is_dataclass(kind):
                    k, kind = k + 2, self.key(kind, after[0])
                elif _element(kind) and after[0] in EACH and after[1] == "(":
                    end = self.closing(k + 2)
                    self.parameter(k + 3, _element(kind))
                    k, kind = end, {"find": _element(kind), "filter": kind}.get(after[0])
                else:
                    return k, None
            elif token == "[" and is_dataclass(kind):
                self.problems.append(f"a key of {kind.__name__} is computed")  # type: ignore[attr-defined]
                return k, None
            elif token == "[":
                k, kind = self.closing(k), _element(kind)
            else:
                break
        return k, kind

    def key(self, kind: object, name: str) -> object:
        """The type of a key, which is noted as read."""
        if name not in {f.name for f in fields(kind)}:  # type: ignore[arg-type]
            self.problems.append(f"{kind.__name__} has no key {name!r}")  # type: ignore[attr-defined]
            return None
        self.read.add((kind, name))  # type: ignore[arg-type]
        return _some(typing.get_type_hints(kind)[name])

    def parameter(self, k: int, kind: object) -> None:
        """The first parameter of a function that is called with every element."""
        if self.tokens[k] == "(":
            k += 1
        self.name_or_pattern(k, kind)

    def bound(self, start: int, end: int, kind: object) -> None:
        """What a chain is given to: const NAME = chain; const {A, B} = chain; for (const NAME of chain)."""
        k = start - 1
        while k > 0 and self.tokens[k] in (".", "?.", "this"):
            k -= 1
        whole = self.tokens[end : end + 1] in ([], [";"], [")"], [","], ["||"], ["??"])
        if self.tokens[k] not in ("=", "of") or not whole:
            return
        kind = kind if self.tokens[k] == "=" else _element(kind)
        if self.tokens[k - 1] == "}":
            self.name_or_pattern(max(i for i in range(k) if self.tokens[i] == "{"), kind)
        elif self.tokens[k - 2] in ("const", "let"):
            self.name_or_pattern(k - 1, kind)

    def name_or_pattern(self, k: int, kind: object) -> None:
        """A name, or names in braces, that stand for something of this type from now on."""
        if self.tokens[k] == "{" and is_dataclass(kind):
            for name in self.tokens[k + 1 : self.closing(k) - 1]:
                if name != ",":
                    self.name(name, self.key(kind, name))
        elif self.tokens[k] not in ("{", "["):
            self.name(self.tokens[k], kind)

    def name(self, name: str, kind: object) -> None:
        """A variable of this type: its name is the class's own, or stands for a list."""
        if is_dataclass(kind) and NAMES.get(name) is not kind:
            self.problems.append(f"{name!r} stands for {kind.__name__}")  # type: ignore[attr-defined]
        elif is_dataclass(_element(kind)):
            self.names.setdefault(name, kind)

    def closing(self, k: int) -> int:
        """The token after the bracket that closes the one at k."""
        depth = 0
        while True:
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.tokens[k], 0)
            k += 1
            if depth == 0:
                return k


def _some(kind: object) -> object:
    """A type without None."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return next(arm for arm in typing.get_args(kind) if arm is not type(None))
    return kind


def _element(kind: object) -> object:
    """The type of a list's elements; None for what is no list."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) in (list, tuple) else None


def declared() -> Iterator[tuple[type, str]]:
    """(class, key) of every key of the payload."""
    todo: list[object] = [keys.Payload, keys.ReportData]
    done = set()
    while todo:
        kind = todo.pop()
        kind = _element(kind) or kind
        if is_dataclass(kind) and kind not in done:
            done.add(kind)
            for name, hint in typing.get_type_hints(kind).items():
                yield kind, name  # type: ignore[misc]
                todo.append(_some(hint))
