"""The statements of a function: the lines of each, and the values that it reads and writes.

Taken from the text itself. A value is a name with the subscripts behind it, as ``v[p]`` or
``tree.joint[i].S``; what a subscript says is evaluated while the function runs.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any


@dataclass(frozen=True, eq=False)
class Place:
    """A value in the text.

    Attributes:
        text: as it is written, without trailing attributes that are views of it (``.T``).
        name: what it begins with.
        code: gives the value and the tuple of its subscripts, in the function's variables.
        depth: number of subscripts.
        written: whether the statement writes it; else it reads it.
    """

    text: str
    name: str
    code: CodeType
    depth: int
    written: bool


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement, or the head of a loop or branch.

    Attributes:
        file: of the function.
        first, last: its lines in the file, from 1.
        body: first and last line of what a loop or branch holds; (0, 0) for others.
        loop: whether it is the head of a ``for``.
        reads, writes: its values.
        mentions: names that it or a loop around it speaks of.
        taken_back: gives i where the right side begins with ``X[i].T``, so that its result stands in the
            coordinates of i's parent; else None.
        calls: names of the plain functions that it calls, with their arguments.
    """

    file: str
    first: int
    last: int
    body: tuple[int, int]
    loop: bool
    reads: tuple[Place, ...]
    writes: tuple[Place, ...]
    mentions: frozenset[str]
    taken_back: CodeType | None
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
    """Each text once, where it stands first."""
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
