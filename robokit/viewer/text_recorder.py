"""Runs functions under a line tracer and keeps what each line read and wrote.

The functions stay as they are. The interpreter tells of each line (``sys.settrace``); which values that line
is about is read from the text itself (:func:`statements`).
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from types import CodeType, FrameType
from typing import Any

from robokit.engine.trace.scalar import Scalar
from robokit.model.joints import MotionSubspace
from robokit.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform

NOWHERE = -1


@dataclass(frozen=True)
class Seen:
    """A value that a step read or wrote."""

    place: Place  # in the text
    # body that it belongs to, in whose coordinates spatial vectors stand; of an entry of the matrix row (n +
    # 1) + column, with column n for a whole row; -1 where neither makes sense
    where: int
    value: Value  # kind and numbers


@dataclass
class Step:
    """One line at work."""

    statement: Statement  # the line
    stage: int  # number of the main function's loop that it belongs to, from 0; -1 outside
    indices: tuple[int, ...]  # values of the named indices, -1 where the line does not speak of them
    seen: list[Seen] = field(default_factory=list)  # values, read ones first


@dataclass(frozen=True)
class Recipe:
    """What to record of some functions.

    Attributes:
        functions: whose lines are recorded; the first one's loops are the stages.
        indices: names of the indices, that of the body at work first.
        matrix: name of the matrix whose entries are told apart, or "".
        blocks: name of a function (H, tree, i, j, ...) that writes the block i, j of the matrix, or "".
    """

    functions: tuple[Callable[..., Any], ...]
    indices: tuple[str, ...]
    matrix: str = ""
    blocks: str = ""


class _Enough(Exception):
    """Raised when there are more steps than wanted."""


@dataclass
class _Frame:
    """A call of a recorded function."""

    statement: Statement | None = None
    step: Step | None = None
    number: int = 0
    coordinates: dict[str, int] = field(default_factory=dict)


class Recorder:
    """Records calls of a recipe's functions.

    Args:
        recipe: what to record.
        parent: lambda(i) of bodies 0..N.
        v_slice: dofs of each body, for the blocks of the matrix.
        most: number of steps after which the recording ends.

    Attributes:
        steps: recorded so far.
        complete: whether the functions came to their end.
    """

    def __init__(self, recipe: Recipe, parent: Sequence[int], v_slice: Sequence[slice], most: int) -> None:
        self.recipe, self.parent, self.v_slice, self.most = recipe, parent, v_slice, most
        self.texts = {f.__code__: statements(f) for f in recipe.functions}
        self.main, self.stages = recipe.functions[0].__code__, loops(recipe.functions[0])
        self.steps: list[Step] = []
        self.complete = False
        self._frames: dict[FrameType, _Frame] = {}
        self._stage = NOWHERE

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns; None if there were more steps than wanted."""
        before = sys.gettrace()
        sys.settrace(self._call)
        try:
            result = function(*arguments)
            self.complete = True
        except _Enough:
            result = None
        finally:
            sys.settrace(before)
            self._frames.clear()
        return result

    # ---- what the interpreter tells ----------------------------------------------------------------

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in self.texts:
            return None
        self._frames.setdefault(frame, _Frame())
        return self._event

    def _event(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            statement = self.texts[frame.f_code].get(frame.f_lineno)
            call = self._frames[frame]
            # The same one again: a statement of several lines, or a comprehension in it.
            if statement is not None and statement is not call.statement:
                self._arrive(frame, call, statement)
        elif event == "return":
            self._finish(frame, self._frames[frame], None)
        return self._event

    def _arrive(self, frame: FrameType, call: _Frame, statement: Statement) -> None:
        self._finish(frame, call, statement)
        if len(self.steps) >= self.most:
            raise _Enough
        if frame.f_code is self.main:
            self._stage = _within(self.stages, statement.first)
        call.statement = statement
        step = Step(statement, self._stage, self._indices(frame, statement))
        step.seen = self._values(frame, call, statement.reads)
        call.step, call.number = step, len(self.steps)
        self.steps.append(step)

    def _finish(self, frame: FrameType, call: _Frame, after: Statement | None) -> None:
        """The statement before is done: what it wrote is there now."""
        statement, step = call.statement, call.step
        call.statement = call.step = None
        if statement is None or step is None:
            return
        low, high = statement.body
        if statement.loop and not (after is not None and low <= after.first <= high):
            step.indices = (NOWHERE,) * len(step.indices)
            return  # the loop has ended and has written nothing
        indices = self._indices(frame, statement)
        if call.number != len(self.steps) - 1:
            # Lines of a function that it called stand between: it is at work a second time.
            if statement.loop:
                step.indices = (NOWHERE,) * len(step.indices)
            step = Step(statement, step.stage, indices)
        step.indices = indices
        self._note_coordinates(frame, call, statement)
        written = self._values(frame, call, statement.writes) + self._block(frame, statement)
        step.seen += written
        if written and step is not self.steps[call.number]:
            self.steps.append(step)

    # ---- what is looked at -------------------------------------------------------------------------

    def _indices(self, frame: FrameType, statement: Statement) -> tuple[int, ...]:
        known = frame.f_locals
        return tuple(
            known[name] if name in statement.mentions and isinstance(known.get(name), int) else NOWHERE
            for name in self.recipe.indices
        )

    def _values(self, frame: FrameType, call: _Frame, places: tuple[Place, ...]) -> list[Seen]:
        if not places:
            return []
        known, found = frame.f_locals, []
        for place in places:
            of_matrix = place.name == self.recipe.matrix
            if of_matrix and not place.depth and not place.written:
                continue  # a line never reads a whole matrix
            try:
                value, at = eval(place.code, frame.f_globals, known)
            except (NameError, IndexError, TypeError):
                continue  # it is not bound yet
            numbers = recorded(value, place.written and not at)
            if numbers is not None:
                found.append(Seen(place, self._where(known, call, place, at, of_matrix), numbers))
        return found

    def _where(
        self, known: dict[str, Any], call: _Frame, place: Place, at: tuple[Any, ...], of_matrix: bool
    ) -> int:
        if of_matrix:
            n = self.v_slice[-1].stop
            return at[0] * (n + 1) + (at[1] if len(at) > 1 else n) if at else NOWHERE
        if at and isinstance(at[-1], int):
            return at[-1]
        body = known.get(self.recipe.indices[0])
        return call.coordinates.get(place.name, body if isinstance(body, int) else NOWHERE)

    def _note_coordinates(self, frame: FrameType, call: _Frame, statement: Statement) -> None:
        """In which body's coordinates a new value stands."""
        known = frame.f_locals
        body = known.get(self.recipe.indices[0], NOWHERE)
        if statement.taken_back is not None:
            body = self.parent[eval(statement.taken_back, frame.f_globals, known)]
        for place in statement.writes:
            if not place.depth:
                call.coordinates[place.name] = body

    def _block(self, frame: FrameType, statement: Statement) -> list[Seen]:
        """The entries of the matrix that a function called by the line wrote."""
        known = frame.f_locals
        arguments = dict(statement.calls).get(self.recipe.blocks) if self.recipe.blocks else None
        if arguments is None:
            return []
        H, _, i, j = (eval(code, frame.f_globals, known) for code in arguments[:4])
        n, place = len(H), _entry(self.recipe.matrix)
        rows, columns = (range(n)[self.v_slice[body]] for body in (i, j))
        return [Seen(place, r * (n + 1) + c, ("scalar", (H[r][c],))) for r in rows for c in columns]


@lru_cache
def _entry(matrix: str) -> Place:
    """An entry of a matrix, as a place."""
    return Place(f"{matrix}[i][j]", matrix, compile(matrix, "<place>", "eval"), 2, True)


def _within(stages: Sequence[tuple[int, int]], line: int) -> int:
    return next((k for k, (first, last) in enumerate(stages) if first <= line <= last), NOWHERE)


# ---- the statements of a function ----------------------------------------------------------------
# Taken from the text itself. A value is a name with the subscripts behind it, as ``v[p]`` or
# ``tree.joint[i].S``; what a subscript says is evaluated while the function runs.


@dataclass(frozen=True, eq=False)
class Place:
    """A value in the text."""

    text: str  # as it is written, without trailing attributes that are views of it (``.T``)
    name: str  # what it begins with
    code: CodeType  # gives the value and the tuple of its subscripts, in the function's variables
    depth: int  # number of subscripts
    written: bool  # whether the statement writes it; else it reads it


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement, or the head of a loop or branch."""

    file: str  # of the function
    # first, last: its lines in the file, from 1
    first: int
    last: int
    body: tuple[int, int]  # first and last line of what a loop or branch holds; (0, 0) for others
    loop: bool  # whether it is the head of a ``for``
    # reads, writes: its values
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    mentions: frozenset[str]  # names that it or a loop around it speaks of
    # gives i where the right side begins with ``X[i].T``, so that its result stands in the coordinates of i's
    # parent; else None
    taken_back: CodeType | None
    # names of the plain functions that it calls, with their arguments
    calls: tuple[tuple[str, tuple[CodeType, ...]], ...]


@lru_cache
def statements(function: Callable[..., Any]) -> dict[int, Statement]:
    """The statement at each line of a function, by line number in its file."""
    lines, start = inspect.getsourcelines(function)
    file = inspect.getsourcefile(function)
    tree = ast.parse(inspect.cleandoc("".join(lines)) if lines[0][0].isspace() else "".join(lines))
    ast.increment_lineno(tree, start - 1)
    definition = tree.body[0]
    assert file is not None and isinstance(definition, ast.FunctionDef)
    found: dict[int, Statement] = {}
    for node, around in _walk(definition.body, frozenset()):
        statement = _statement(node, file, around)
        for line in range(statement.first, statement.last + 1):
            found[line] = statement
    return found


def loops(function: Callable[..., Any]) -> list[tuple[int, int]]:
    """First and last lines of the outermost ``for`` loops of a function, in its file."""
    found = [s for s in dict.fromkeys(statements(function).values()) if s.loop]
    outer: list[tuple[int, int]] = []
    for statement in found:
        if not outer or statement.first > outer[-1][1]:
            outer.append((statement.first, statement.body[1]))
    return outer


def _walk(body: list[ast.stmt], around: frozenset[str]) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """Statements, each with the names that the loops around it speak of."""
    for node in body:
        yield node, around
        inner = around
        if isinstance(node, ast.For):
            inner = around | _names(node.target)
        elif isinstance(node, ast.While):
            inner = around | _names(node.test)
        yield from _walk(getattr(node, "body", []), inner)
        yield from _walk(getattr(node, "orelse", []), around)


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _statement(node: ast.stmt, file: str, around: frozenset[str]) -> Statement:
    reads, writes = _parts(node)
    body: list[ast.stmt] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    heads = [*reads, *writes] if body else [node]
    last = max([node.lineno, *(n.end_lineno or n.lineno for n in heads)])
    own = _own_names(reads)
    mentioned = frozenset().union(*(_names(part) for part in (*reads, *writes))) - own
    return Statement(
        file=file,
        first=node.lineno,
        last=last,
        body=(body[0].lineno, max(n.end_lineno or n.lineno for n in body)) if body else (0, 0),
        loop=isinstance(node, ast.For),
        reads=_once(p for part in reads for p in _places(part, own, written=False)),
        writes=_once(p for part in writes for p in _places(part, own, written=True)),
        mentions=mentioned | around,
        taken_back=_taken_back(reads[0]) if reads else None,
        calls=tuple(_calls(reads)),
    )


def _parts(node: ast.stmt) -> tuple[list[ast.expr], list[ast.expr]]:
    """The expressions that a statement reads and those that it writes."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [value], targets
        case ast.For(target=target, iter=source):
            return [source], [target]
        case ast.While(test=test) | ast.If(test=test):
            return [test], []
        case ast.Return(value=value) if value is not None:
            return [value], []
        case ast.Expr(value=ast.Yield(value=value)) if value is not None:
            return [value], []
        case ast.Expr(value=ast.Constant()):
            return [], []
        case ast.Expr(value=value):
            return [value], []
    return [], []


def _own_names(parts: list[ast.expr]) -> frozenset[str]:
    """Names of comprehensions: they mean nothing outside."""
    return frozenset(
        name
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.comprehension)
        for name in _names(node.target)
    )


def _places(node: ast.AST, own: frozenset[str], *, written: bool) -> Iterator[Place]:
    """The values of an expression; subscripts are part of a value, not values themselves."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for argument in node.args:
            yield from _places(argument, own, written=written)
        return
    chain: ast.AST = node
    while isinstance(chain, ast.Subscript | ast.Attribute):
        if isinstance(chain, ast.Subscript) and isinstance(chain.slice, ast.Slice):
            node = chain.value
        chain = chain.value
    if isinstance(chain, ast.Name) and isinstance(node, ast.expr):
        if isinstance(node, ast.Attribute) and node.attr != "S":
            node = node.value  # X[i].T is a view of X[i], v[i].cross a method of v[i]
        if not _names(node) & own:
            yield _place(node, chain.id, written)
        return
    for child in ast.iter_child_nodes(node):
        yield from _places(child, own, written=written)


def _once(places: Iterator[Place]) -> tuple[Place, ...]:
    """Each text once, at its first place."""
    found: dict[str, Place] = {}
    for place in places:
        found.setdefault(place.text, place)
    return tuple(found.values())


def _place(node: ast.expr, name: str, written: bool) -> Place:
    subscripts: list[str] = []
    part: ast.expr = node
    while isinstance(part, ast.Subscript | ast.Attribute):
        if isinstance(part, ast.Subscript):
            subscripts.insert(0, ast.unparse(part.slice))
        part = part.value
    text = ast.unparse(node)
    code = compile(f"({text}, ({''.join(f'{each}, ' for each in subscripts)}))", "<place>", "eval")
    return Place(text, name, code, len(subscripts), written)


def _calls(parts: list[ast.expr]) -> Iterator[tuple[str, tuple[CodeType, ...]]]:
    for node in (node for part in parts for node in ast.walk(part)):
        if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
            continue
        if isinstance(node.func, ast.Name):
            yield node.func.id, tuple(_compiled(argument) for argument in node.args)


def _taken_back(value: ast.expr) -> CodeType | None:
    for node in ast.walk(value):
        match node:
            case ast.Attribute(value=ast.Subscript(value=ast.Name(id="X"), slice=i), attr="T"):
                return _compiled(i)
    return None


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.unparse(node), "<place>", "eval")


# ---- values as rows of numbers -------------------------------------------------------------------

KINDS = (
    "scalar",
    "motion",  # angular, linear
    "force",  # moment, force
    "transform",  # E by rows, r
    "rigid",  # m, h, xx yy zz xy xz yz of the rotational inertia about the origin
    "articulated",  # xx yy zz xy xz yz of A, B by rows, the same of M
    "vector",
    "matrix",  # square, by rows
    "motions",  # columns, one after another
    "forces",
)
"""Kinds of values; the page's data says them by their place here."""

LARGEST = 64
"""Numbers of a value that is read; larger ones are kept where a name is bound to them."""

NUMBERS = (float, Scalar)

Value = tuple[str, tuple[Any, ...]]
"""Kind and numbers: floats, or scalars of the tracer."""


def recorded(value: Any, whole: bool = False) -> Value | None:
    """Kind and numbers of a value; None for what is no value of the mathematics (indices, trees, ranges).

    Args:
        value: anything that a variable holds.
        whole: whether large vectors and matrices are wanted too.
    """
    found = _recorded(value)
    if found is None or not found[1] or (len(found[1]) > LARGEST and not whole):
        return None
    return found


def _recorded(value: Any) -> Value | None:
    if isinstance(value, list):
        return _list(value)
    rule = _RULES.get(type(value))
    return None if rule is None else rule(value)


def _list(entries: list[Any]) -> Value | None:
    if all(isinstance(x, NUMBERS) for x in entries):
        return "vector", tuple(entries)
    if all(isinstance(x, Force) for x in entries):
        return "forces", tuple(chain(*entries))
    square = all(isinstance(row, list) and len(row) == len(entries) for row in entries)
    if square and all(isinstance(x, NUMBERS) for row in entries for x in row):
        return "matrix", tuple(chain(*entries))
    return None


def _factored(factors: tuple[Any, ...]) -> Value | None:
    """L D L^T of what ``ldl`` returns, (L, 1/D): the matrix that a reader knows by its letter."""
    if len(factors) != 2 or not all(isinstance(part, list) for part in factors):
        return None
    L, inverses = factors
    k = len(L)
    D = [1.0 / x for x in inverses]
    return "matrix", tuple(
        sum(L[i][m] * D[m] * L[j][m] for m in range(min(i, j) + 1)) for i in range(k) for j in range(k)
    )


_RULES: dict[type, Callable[[Any], Value | None]] = {
    float: lambda x: ("scalar", (x,)),
    Scalar: lambda x: ("scalar", (x,)),
    Motion: lambda m: ("motion", tuple(m)),
    Force: lambda f: ("force", tuple(f)),
    Transform: lambda X: ("transform", (*chain(*X.E.rows), *X.r)),
    RigidInertia: lambda I: ("rigid", (I.m, *I.h, *I.Ibar)),
    ArticulatedInertia: lambda I: ("articulated", tuple(I)),
    MotionSubspace: lambda S: ("motions", tuple(chain(*S.columns))),
    tuple: _factored,
}
