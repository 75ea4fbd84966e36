"""Inside the algorithms: what their source does, line by line, for any state that the page shows."""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.algorithms import composites, crba, ltdl, rnea
from robokit.algorithms.aba import aba
from robokit.dataclass_tools import frozen
from robokit.dynamics.layout import INPUTS
from robokit.dynamics.singular import singular_joint
from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import CONST, INPUT, OPERATIONS
from robokit.engine.trace.scalar import Scalar
from robokit.interpreter import without_collector
from robokit.model.joints import MotionSubspace
from robokit.model.robot import Robot
from robokit.serialize import from_json
from robokit.sim.trajectory import Trajectory
from robokit.spatial import ArticulatedInertia, Force, Motion, RigidInertia, Transform
from robokit.stages import stage
from robokit.viewer.motion_data import deflated, deflated_whole
from robokit.viewer.payload_keys import (
    AlgorithmData,
    FormData,
    LetterData,
    ListingData,
    ProgramData,
    SweepData,
    WalkData,
    Whole,
)

# ==== runs functions under a line tracer and keeps what each line read and wrote ==================
# The functions stay as they are. The interpreter tells of each line (``sys.settrace``); which values that
# line is about is read from the text itself (:func:`statements`).


NOWHERE = -1


@frozen
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


@frozen
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
    """Records calls of a recipe's functions, up to ``most`` steps.

    ``parent`` are lambda(i) of bodies 0..N, ``v_slice`` their dofs, for the blocks of the matrix. ``steps``
    are recorded so far; ``complete`` says whether the functions came to their end.
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
                self._finish(frame, call, statement)
                if len(self.steps) >= self.most:
                    raise _Enough
                if frame.f_code is self.main:
                    around = (
                        k for k, (first, last) in enumerate(self.stages) if first <= statement.first <= last
                    )
                    self._stage = next(around, NOWHERE)
                call.statement = statement
                step = Step(statement, self._stage, self._indices(frame, statement))
                step.seen = self._values(frame, call, statement.reads)
                call.step, call.number = step, len(self.steps)
                self.steps.append(step)
        elif event == "return":
            self._finish(frame, self._frames[frame], None)
        return self._event

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
        # In which body's coordinates a new value stands.
        body = frame.f_locals.get(self.recipe.indices[0], NOWHERE)
        if statement.taken_back is not None:
            body = self.parent[eval(statement.taken_back, frame.f_globals, frame.f_locals)]
        for place in statement.writes:
            if not place.depth:
                call.coordinates[place.name] = body
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


# ---- the statements of a function ----------------------------------------------------------------
# Taken from the text itself. A value is a name with the subscripts behind it, as ``v[p]`` or
# ``tree.joint[i].S``; what a subscript says is evaluated while the function runs.


@frozen(eq=False)
class Place:
    """A value in the text."""

    text: str  # as it is written, without trailing attributes that are views of it (``.T``)
    name: str  # what it begins with
    code: CodeType  # gives the value and the tuple of its subscripts, in the function's variables
    depth: int  # number of subscripts
    written: bool  # whether the statement writes it; else it reads it


@frozen(eq=False)
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
    for node, around in _statements(definition.body, frozenset()):
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


def _statements(body: list[ast.stmt], around: frozenset[str]) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """Statements, each with the names that the loops around it speak of."""
    for node in body:
        yield node, around
        inner = around
        if isinstance(node, ast.For):
            inner = around | _names(node.target)
        elif isinstance(node, ast.While):
            inner = around | _names(node.test)
        yield from _statements(getattr(node, "body", []), inner)
        yield from _statements(getattr(node, "orelse", []), around)


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _statement(node: ast.stmt, file: str, around: frozenset[str]) -> Statement:
    reads, writes = _parts(node)
    body: list[ast.stmt] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
    heads = [*reads, *writes] if body else [node]
    last = max([node.lineno, *(n.end_lineno or n.lineno for n in heads)])
    # Names of comprehensions mean nothing outside.
    own = frozenset(
        name
        for part in reads
        for node in ast.walk(part)
        if isinstance(node, ast.comprehension)
        for name in _names(node.target)
    )
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
            subscripts: list[str] = []
            part: ast.expr = node
            while isinstance(part, ast.Subscript | ast.Attribute):
                if isinstance(part, ast.Subscript):
                    subscripts.insert(0, ast.unparse(part.slice))
                part = part.value
            text = ast.unparse(node)
            code = compile(f"({text}, ({''.join(f'{each}, ' for each in subscripts)}))", "<place>", "eval")
            yield Place(text, chain.id, code, len(subscripts), written)
        return
    for child in ast.iter_child_nodes(node):
        yield from _places(child, own, written=written)


def _once(places: Iterator[Place]) -> tuple[Place, ...]:
    """Each text once, at its first place."""
    found: dict[str, Place] = {}
    for place in places:
        found.setdefault(place.text, place)
    return tuple(found.values())


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

LARGEST = 64  # numbers of a value that is read; larger ones are kept where a name is bound to them

NUMBERS = (float, Scalar)

Value = tuple[str, tuple[Any, ...]]  # kind and numbers: floats, or scalars of the tracer


def recorded(value: Any, whole: bool = False) -> Value | None:
    """Kind and numbers of a value; None for values without a mathematical meaning (indices, trees, ranges).

    Large vectors and matrices are none either, unless ``whole`` is asked for.
    """
    rule = _RULES.get(type(value))
    found = None if rule is None else rule(value)
    if found is None or not found[1] or (len(found[1]) > LARGEST and not whole):
        return None
    return found


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
    list: _list,
    tuple: _factored,
}


# ==== Data of a page that follow from the robot alone and take long to make, kept on disk =========


def kept(label: str, robot: Robot, key: tuple[Any, ...], kind: Any, make: Callable[[], Any]) -> Any:
    """Load a result from disk, or compute and store it.

    ``label``: for ``robokit cache``; ``robot``, ``key``: on what it depends: the dynamics of a single robot,
    and exact reprs; ``kind``: its type: of the payload's classes, lists, tuples, text, numbers and None;
    ``make``: computes it.
    """
    source = disk_cache.source_digest()
    names = [joint.name for joint in robot.body_joints]
    name = disk_cache.digest(
        "page",
        label,
        source,
        robot.fingerprint,
        robot.base,
        names,
        robot.tree.loops,
        key,
        sys.version_info[:2],
    )
    found = disk_cache.load(name) if source else None
    if found is not None:
        return from_json(kind, json.loads(found[1]))
    made = make()
    if source:
        content = json.dumps(made, separators=(",", ":"), default=vars).encode()
        disk_cache.store(name, {"kernel": label, "part": "page"}, content)
    return made


# ==== The algorithms that the page walks through: their functions, passes, symbols and units ======


@frozen
class Letter:
    """A name in the source text: its symbol (``I^A`` has a superscript), its meaning, its unit."""

    symbol: str
    meaning: str
    unit: str = ""


@frozen
class Walked:
    """An algorithm of the page."""

    key: str  # of the algorithm
    title: str  # its long name
    gives: str  # what goes in and what comes out
    recipe: Recipe  # what is recorded of it
    passes: tuple[SweepData, ...]  # one for each loop of the main function
    letters: dict[str, Letter]  # by name in the text
    begin: Callable[..., Any]  # what is called


VELOCITY, ACCELERATION, FORCE = "rad/s; m/s", "rad/s²; m/s²", "N m; N"
INERTIA = "kg, kg m, kg m²"

SHARED = {
    "q": Letter("q", "joint position", "rad | m | unit quaternion"),
    "qd": Letter("q̇", "joint velocity", "rad/s | m/s"),
    "X": Letter("X", "from the parent's coordinates to the body's", "rotation E; origin r in m"),
    "S": Letter("S", "motion subspace: the directions that the joint leaves free"),
    "vJ": Letter("v^J", "velocity across the joint, S q̇", VELOCITY),
    "v": Letter("v", "velocity of the body", VELOCITY),
    "a": Letter("a", "acceleration of the body, gravity included as a₀ = −g", ACCELERATION),
    "I": Letter("I", "inertia of the body", INERTIA),
    "f_ext": Letter("f^x", "force of the ground on the body", FORCE),
}


RNEA = Walked(
    "rnea",
    "Recursive Newton-Euler algorithm",
    "τ from q, q̇, q̈",
    Recipe((rnea.rnea,), ("i", "p")),
    (
        SweepData("velocities, accelerations and each body's own force", outward=True),
        SweepData("forces summed up, projected on the joints", outward=False),
    ),
    SHARED
    | {
        "qdd": Letter("q̈", "joint acceleration", "rad/s² | m/s²"),
        "f": Letter("f", "force across the joint; before the sum, what moves the body alone", FORCE),
        "tau": Letter("τ", "joint force", "N m | N"),
    },
    rnea.rnea,
)

CRBA = Walked(
    "crba",
    "Composite-rigid-body algorithm",
    "H from q",
    Recipe((crba.composite, crba.crba, composites.composite_inertias), ("i", "j", "p"), "H", "_put"),
    (SweepData("inertias summed up; a force carried to the root fills H", outward=False),),
    SHARED
    | {
        "Ic": Letter("I^c", "composite inertia: the body with all bodies beyond it, joints locked", INERTIA),
        "F": Letter(
            "F", "force for unit acceleration of the composite about the joint, a column per dof", FORCE
        ),
        "block": Letter("S^T F", "block of H on the diagonal", "kg m² | kg m | kg"),
        "H": Letter("H", "entry of the mass matrix", "kg m² | kg m | kg"),
    },
    crba.crba,
)

LTDL = Walked(
    "ltdl",
    "Sparse factorisation H = LᵀDL",
    "L and D from H",
    Recipe((ltdl.ltdl,), ("k", "i", "j"), "L"),
    (
        SweepData("rows eliminated along the branches", outward=False),
        SweepData("unit diagonal of L", outward=True),
    ),
    {
        "L": Letter("L", "entry: of H, then of what elimination leaves, in the end of L"),
        "H": Letter("H", "mass matrix", "kg m² | kg m | kg"),
        "D": Letter("D", "diagonal factor", "kg m² | kg"),
        "d": Letter("d", "1 / D of row k"),
        "a": Letter("a", "multiplier of row i"),
    },
    ltdl.ltdl,
)

ABA = Walked(
    "aba",
    "Articulated-body algorithm",
    "q̈ from q, q̇, τ",
    Recipe((aba,), ("i", "p")),
    (
        SweepData("velocities and each body's own inertia and bias force", outward=True),
        SweepData("articulated inertias and bias forces", outward=False),
        SweepData("accelerations", outward=True),
    ),
    SHARED
    | {
        "c": Letter("c", "velocity-product acceleration, v × v^J", ACCELERATION),
        "IA": Letter("I^A", "articulated inertia: the body with its subtree, joints free", INERTIA),
        "pA": Letter("p^A", "bias force of the articulated body", FORCE),
        "U": Letter("U", "I^A S, a column a dof"),
        "D": Letter("D", "S^T U, kept factorised", "kg m² | kg m | kg"),
        "rows": Letter("S^T U", "what becomes D", "kg m² | kg m | kg"),
        "u": Letter("u", "joint force left to accelerate: τ − S^T p^A", "N m | N"),
        "tau": Letter("τ", "joint force", "N m | N"),
        "Ia": Letter("I^a", "what the parent feels of I^A across the joint", INERTIA),
        "pa": Letter("p^a", "what the parent feels of p^A across the joint", FORCE),
        "qdd": Letter("q̈", "joint acceleration", "rad/s² | m/s²"),
    },
    aba,
)

WALKED = (RNEA, CRBA, LTDL, ABA)  # all of them, in the order of the page


# ---- the algorithms run on a state ---------------------------------------------------------------

MOST_STEPS = 8_000  # lines of one algorithm that are recorded; the humanoid's CRBA has 1,073
MOST_ENTRY_STEPS = 16_000  # lines of LTDL, by single numbers, that are recorded; TALOS has 13,593
MOST_NODES = 20_000_000  # more than so many lines can record: they are what ends a long robot's walk


@frozen
class State:
    """The inputs of the algorithms."""

    gravity: Sequence[Any]  # acceleration of free fall in world axes, 3 numbers [m/s^2]
    # q, v, tau: configuration, velocity, joint forces, nq and nv numbers
    q: Sequence[Any]
    v: Sequence[Any]
    tau: Sequence[Any]
    # of the ground on the bodies 0..N in their coordinates, 6 (N + 1) numbers [N m; N]; or None where nothing
    # pushes
    f_ext: Sequence[Any] | None = None

    def flat(self) -> list[Any]:
        """All of these numbers one after another: the inputs of the page's program."""
        return list(chain(self.gravity, self.q, self.v, self.tau, self.f_ext or ()))


@frozen
class Walk:
    """An algorithm that was recorded."""

    steps: list[Step]  # its lines
    result: Any  # what it returned, or None
    whole: bool  # whether it came to its end


def traced_state(robot: Robot, pushed: bool) -> State:
    """A state of traced scalars, of one graph; with forces on the bodies where it is pushed."""
    graph = Graph(MOST_NODES)
    sizes = (3, robot.nq, robot.nv, robot.nv, 6 * (robot.nbodies + 1) if pushed else 0)
    rows = [
        [Scalar(graph, graph.add((INPUT, k, offset))) for offset in range(size)]
        for k, size in enumerate(sizes)
    ]
    return State(rows[0], rows[1], rows[2], rows[3], rows[4] if pushed else None)


def walks(robot: Robot, state: State, without: Sequence[Walked] = ()) -> dict[str, Walk]:
    """RNEA, CRBA, LTDL and ABA recorded at a state of floats or of scalars of one graph, by key.

    ABA finds the accelerations, which the RNEA then takes; LTDL takes the H of CRBA. A robot with coupled
    joints has RNEA and CRBA alone, of its full tree: the coupling comes afterwards. So has one whose mass
    matrix is singular. Without ABA, or where it does not come to its end, the accelerations are 0; without
    all of H there is no LTDL.
    """
    tree = replace(robot.tree, gravity=tuple(state.gravity))  # type: ignore[arg-type]
    q, v, tau = robot.split_q(state.q), robot.split_v(state.v), robot.split_tau(state.tau)
    forces = () if state.f_ext is None else (INPUTS["f_ext"].split(robot, state.f_ext),)
    found: dict[str, Walk] = {}

    def walk(walked: Walked, *arguments: Any) -> Any:
        if walked in without:
            return None
        most = MOST_ENTRY_STEPS if walked is LTDL else MOST_STEPS
        recorder = Recorder(walked.recipe, tree.parent, tree.v_slice, most)
        result = recorder.run(walked.begin, *arguments)
        found[walked.key] = Walk(recorder.steps, result, recorder.complete)
        return result

    solved = robot.coupling is None
    if solved:
        solved = robot.derived.get("singular joint", lambda: singular_joint(robot)) is None
    a = walk(ABA, tree, q, v, tau, *forces) if solved else None
    walk(RNEA, tree, q, v, a or [[0.0] * len(rates) for rates in v], *forces)
    H = walk(CRBA, tree, q)
    if solved and H is not None:
        walk(LTDL, tree.dof_parent, H)
    return {walked.key: found[walked.key] for walked in WALKED if walked.key in found}


# ==== What each line of the algorithms does, in a sentence, by the line's own text ================

CAPTIONS = {
    # loops and branches, of several algorithms
    "for i in tree.outward():": "From the root to the tips: a parent comes before its children.",
    "for i in tree.inward():": "From the tips to the root: children come before their parent.",
    "p = tree.parent[i]": "The parent of body i.",
    "if p != 0:": "Is the parent a moving body?",
    "if f_ext is not None:": "Are there external forces?",
    "S = tree.joint[i].S": "The directions that joint i leaves free.",
    "X[i] = tree.X(i, q[i])": "From the parent's coordinates to the body's, at the joint position q.",
    "vJ = S * qd[i]": "What the joint itself adds to the velocity.",
    "v[0] = Motion.zero()": "The root stands still.",
    "a[0] = Motion(Vector3.zero(), tree.a0)": "The root accelerates with −g: so gravity enters.",
    # RNEA
    "X, v, a, f, tau = tree.lists(5)": "Lists for the quantities of each body.",
    "p, S, I = tree.parent[i], tree.joint[i].S, tree.I[i]": "Body i: its parent, its joint, its inertia.",
    "v[i] = X[i] @ v[p] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "a[i] = X[i] @ a[p] + S * qdd[i] + v[i].cross(vJ)": (
        "The parent's acceleration, the joint's, and the velocity-product acceleration."
    ),
    "f[i] = I @ a[i] + v[i].cross_force(I @ v[i])": "Newton and Euler: the force that moves this body alone.",
    "f[i] = f[i] - f_ext[i]": "Minus the external force, which the joint need not exert.",
    "tau[i] = rotor_forces(tree, i, tree.joint[i].S.T @ f[i], qdd[i])": (
        "The joint force: the component of f along the free directions, plus that of the rotor."
    ),
    "f[p] = f[p] + X[i].T @ f[i]": "The parent's joint carries the child's force too.",
    "return tau": "The joint forces of all joints.",
    # CRBA
    "return composite(tree, tree.transforms(q), tree.I)": "All transforms first, then the composites.",
    "H = [[0.0] * tree.nv for _ in range(tree.nv)]": "Zeros, which stay for joints on different branches.",
    "for i, Ic in composite_inertias(tree, X, I):": "The next body, with its composite inertia.",
    "F = S.of(Ic)": "The force that gives the composite unit acceleration about joint i.",
    "block = [S.T @ column for column in F]": "Its component about joint i itself: the diagonal of H.",
    "add_rotors(tree, i, block)": "The joint's rotor adds to the diagonal, if it has one.",
    "_put(H, tree, i, i, block)": "The diagonal entry of H is done.",
    "j = i": "Now from i to the root, along its branch.",
    "while tree.parent[j] != 0:": "Is there another joint on the way to the root?",
    "F = [X[j].T @ column for column in F]": "The same force, in the parent's coordinates.",
    "j = tree.parent[j]": "One body closer to the root.",
    "_put(H, tree, i, j, [tree.joint[j].S.T @ column for column in F])": (
        "What joint j feels of the force: the entries H(i, j) and H(j, i)."
    ),
    "return H": "All entries on common branches are there, the others stay 0.",
    "Ic = list(I)": "Each composite begins as the body alone.",
    "Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]": "The parent's composite gains body i's, in its own coordinates.",
    "yield i, Ic[i]": "I^c of body i is complete: everything beyond it is in.",
    # LTDL
    "n = len(parent)": "The number of degrees of freedom.",
    "L = [list(row) for row in H]": "L begins as a copy of H.",
    "for k in reversed(range(n)):": "From the last degree of freedom to the first, so that nothing fills in.",
    "d = 1.0 / L[k][k]": "The pivot of row k.",
    "i = parent[k]": "The row above k on its branch.",
    "while i >= 0:": "Still on the branch? Rows elsewhere have nothing to do with k.",
    "a = L[k][i] * d": "How much of row k goes into row i.",
    "while j >= 0:": "Only columns on the branch: the others are 0 and stay 0.",
    "L[i][j] = L[i][j] - L[k][j] * a": "Elimination: row i loses its share of row k.",
    "j = parent[j]": "The column before it on the branch.",
    "L[k][i] = a": "The multiplier is the entry of L.",
    "i = parent[i]": "The row before it on the branch.",
    "D = [L[k][k] for k in range(n)]": "What is left on the diagonal is D.",
    "for k in range(n):": "Row by row:",
    "L[k] = [*L[k][:k], 1.0, *[0.0] * (n - k - 1)]": "L gets ones on its diagonal and zeros above.",
    "return L, D": "H = LᵀDL, and L is as sparse as H.",
    # ABA
    "X, U, D, v, c, IA, pA, u, a, qdd = *(factor or tree.lists(3)), *tree.lists(7)": (
        "Lists for the quantities of each body."
    ),
    "S, I = tree.joint[i].S, tree.I[i]": "Body i: its joint and its inertia.",
    "v[i] = X[i] @ v[tree.parent[i]] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "c[i] = v[i].cross(vJ)": "The acceleration due to velocities alone.",
    "IA[i] = I.articulated()": "The articulated inertia begins as the body alone.",
    "pA[i] = v[i].cross_force(I @ v[i])": "The force of the body at zero acceleration.",
    "pA[i] = pA[i] - f_ext[i]": "Minus the external force.",
    "p, S = tree.parent[i], tree.joint[i].S": "Body i: its parent and its joint.",
    "U[i] = S.of(IA[i])": "The force for unit acceleration about joint i, all joints beyond it free.",
    "rows = [S.T @ column for column in U[i]]": "What joint i feels of it: its apparent inertia.",
    "rotors = add_rotors(tree, i, rows)": "The joint's rotor adds to it, if it has one.",
    "D[i] = ldl(rows)": "Its factors, to solve with it.",
    "u[i] = [t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]": (
        "The joint force left for acceleration: tau minus the component of the bias force."
    ),
    "Ia = without_joint(IA[i], U[i], D[i], () if rotors else S.axes)": (
        "The parent does not feel inertia along the free directions; without rotors, nothing is left along S."
    ),
    "pa = pA[i] + Ia @ c[i] + combine(U[i], ldl_solve(D[i], u[i]))": "The bias force that the parent feels.",
    "IA[p] = IA[p] + X[i].T @ Ia @ X[i]": "The parent's articulated inertia gains it, in own coordinates.",
    "pA[p] = pA[p] + X[i].T @ pa": "And so does its bias force.",
    "a[i] = X[i] @ a[tree.parent[i]] + c[i]": "The acceleration due to the parent.",
    "qdd[i] = ldl_solve(D[i], [ui - a[i].dot(column) for ui, column in zip(u[i], U[i], strict=True)])": (
        "The joint acceleration: what is left of u, divided by D."
    ),
    "a[i] = a[i] + S * qdd[i]": "The body's own acceleration, for its children.",
    "return qdd": "The accelerations of all joints.",
}
"""Sentences by line; where two algorithms have the same line, one sentence serves both."""


# ==== inside the algorithms as the page's data: recorded once for all states, packed, within a size ====

MOST_BYTES = 300_000  # largest size of the walk in a page [bytes]


def touched_bodies(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> Whole | None:
    """The body of each point of ``FramesData.contacts``; None where points are not known."""
    contacts = trajectory.contacts
    if contacts is None:
        return None
    body = {link.name: link.body for link in robot.links}
    bodies = np.array([body.get(link, 0) for link in contacts.links], dtype=int)
    touch = np.any(contacts.forces[chosen] != 0.0, axis=-1)
    return deflated_whole(np.broadcast_to(bodies, touch.shape)[touch])


def walk_data(
    robot: Robot, pushed: bool = False, touched: Whole | None = None, most_bytes: int = MOST_BYTES
) -> WalkData | None:
    """The walk of a page of a single robot; None where there is nothing to walk through, or no room.

    ``pushed``: whether there may be forces on its bodies; ``touched``: the body of each point of contact.
    Where ``most_bytes`` are too few, the longest algorithms are left out.
    """
    room = most_bytes - (len(touched) if touched else 0)

    def made(room: int) -> WalkData | None:
        key = pushed, room, MOST_STEPS, MOST_ENTRY_STEPS
        found: WalkData | None = kept(
            "walk of a page", robot, key, WalkData | None, lambda: _walk(robot, pushed, room)
        )
        return found

    found = made(most_bytes)
    if found is not None and len(json.dumps(found, default=vars)) > room:
        found = made(room)
    return None if found is None else replace(found, touched=touched)


@stage("recording the algorithms")
@without_collector()
def _walk(robot: Robot, pushed: bool, most_bytes: int) -> WalkData | None:
    """The walk without the touched bodies."""
    if robot.nbodies == 0:
        return None
    without: list[Walked] = []
    state = traced_state(robot, pushed)
    found = walks(robot, state)
    while found:
        data = _packed(robot, state, found)
        if len(json.dumps(data, default=vars)) <= most_bytes:
            return data
        longest = max((w for w in WALKED if w.key in found), key=lambda w: len(found[w.key].steps))
        without.append(longest)
        del found[longest.key]
        if longest is ABA:  # without the ABA, the RNEA takes other accelerations
            state = traced_state(robot, pushed)
            found = walks(robot, state, without=without)
    return None


def _packed(robot: Robot, state: State, found: dict[str, Walk]) -> WalkData:
    graph = state.q[0].graph
    algorithms = [w for w in WALKED if w.key in found]
    tables = [ValueTable(graph, found[w.key]) for w in algorithms]
    program = WalkProgram.of(graph, (ref for table in tables for ref in table.refs()))
    return WalkData(
        program=program.data(state),
        gravity=[float(g) for g in robot.tree.gravity],
        touched=None,
        rows=[i for i, dofs in enumerate(robot.tree.v_slice) for _ in range(dofs.stop - dofs.start)],
        kinds=list(KINDS),
        algorithms=[
            algorithm_data(w, found[w.key], table, program)
            for w, table in zip(algorithms, tables, strict=True)
        ],
        notes=_notes(robot, state, found),
    )


def _notes(robot: Robot, state: State, found: dict[str, Walk]) -> list[str]:
    """What the numbers stand for."""
    notes = [
        "Numbers are those of the state that the scene shows.",
        "Vectors and inertias are in the coordinates of their body, angular part first.",
    ]
    given = "Given: q, q̇ and τ of the motion"
    if state.f_ext is None:
        notes.append(f"{given}; of a pose q, with q̇ = 0 and τ = 0.")
    else:
        notes.append(
            f"{given}, with the forces of the ground. In live runs, τ = 0 and pulls are left out. In poses "
            "set by sliders, q̇ = 0 and τ = 0, without external forces."
        )
    notes.append("These algorithms do not include joint damping, friction and limits.")
    if RNEA.key in found:
        solved = ABA.key in found and found[ABA.key].whole
        notes.append("RNEA takes the accelerations that ABA finds." if solved else "RNEA takes q̈ = 0.")
    if robot.coupling is not None:
        notes.append("Coupled joints: RNEA and CRBA see the full tree, the coupling comes afterwards.")
    if LTDL.key in found:
        notes.append("LTDL counts degrees of freedom from 0, as its source does; rows of H count from 1.")
    missing = [w.key.upper() for w in WALKED if w.key not in found]
    if missing:
        notes.append(f"Left out for this robot: {', '.join(missing)}.")
    return notes


# ---- the recorded graph as the page's program ----------------------------------------------------

OPERANDS = 3  # largest number of operands of an operation


@frozen
class WalkProgram:
    """The part of a graph that some values need.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.
    """

    graph: Graph  # the graph
    # constants, inputs, order: numbers of its nodes
    constants: list[int]
    inputs: list[int]
    order: list[int]
    slot: np.ndarray  # of each node of the graph; of those that are not in this part, anything

    @classmethod
    def of(cls, graph: Graph, refs: Iterable[int]) -> WalkProgram:
        """The part that these signed references need."""
        nodes = graph.nodes
        needed = bytearray(len(nodes))
        for ref in refs:
            needed[abs(ref)] = 1
        for number in range(len(nodes) - 1, 0, -1):
            if needed[number] and nodes[number][0] > CONST:
                for operand in nodes[number][1:]:
                    needed[operand] = 1
        found = [number for number in range(1, len(nodes)) if needed[number]]
        constants = [number for number in found if nodes[number][0] == CONST]
        inputs = [number for number in found if nodes[number][0] < CONST]
        order = [number for number in found if nodes[number][0] > CONST]
        slot = np.zeros(len(nodes), dtype=np.int64)
        slot[[*constants, *inputs, *order]] = np.arange(len(found))
        return cls(graph, constants, inputs, order, slot)

    def places(self, refs: Iterable[int]) -> np.ndarray:
        """Signed references as the page has them: twice the slot, and 1 more where its sign is turned."""
        given = np.fromiter(refs, np.int64)
        return 2 * self.slot[np.abs(given)] + (given < 0)

    def data(self, state: State) -> ProgramData:
        """The page's data; ``state`` has the traced scalars that the graph began with."""
        nodes = self.graph.nodes
        place = {scalar.ref: k for k, scalar in enumerate(state.flat())}
        codes = [nodes[number][0] for number in self.order]
        used = sorted(set(codes))
        return ProgramData(
            operations=[OPERATIONS[code].name for code in used],
            codes=deflated([used.index(code) for code in codes], "u1"),
            operands=[deflated_whole(self._operands(k)) for k in range(OPERANDS)],
            constants=deflated([nodes[number][1] for number in self.constants], "<f8"),
            inputs=deflated_whole([place[number] for number in self.inputs]),
        )

    def _operands(self, k: int) -> np.ndarray:
        """Operand k of the operations that have one: how far back it is, or -1 - slot of what is given."""
        nodes = self.graph.nodes
        having = [number for number in self.order if len(nodes[number]) > k + 1]
        slot = self.slot[[nodes[number][k + 1] for number in having]]
        given = slot < len(self.constants) + len(self.inputs)
        return np.where(given, -1 - slot, self.slot[having] - slot)


# ---- one algorithm -------------------------------------------------------------------------------


class ValueTable:
    """The different values of an algorithm, as signed references into the graph.

    ``rows`` are kind and references of each; ``places`` where the values of the steps stand, one after
    another.
    """

    def __init__(self, graph: Graph, walk: Walk) -> None:
        """The values of all steps of a walk."""
        constant = cache(graph.constant)  # most are 0 or 1
        place: dict[tuple[str, tuple[int, ...]], int] = {}
        self.places = []
        for step in walk.steps:
            for seen in step.seen:
                kind, numbers = seen.value
                refs = [x.ref if type(x) is Scalar else constant(x) for x in numbers]
                self.places.append(place.setdefault((kind, tuple(refs)), len(place)))
        self.rows = list(place)

    def refs(self) -> Iterator[int]:
        """All references."""
        return chain.from_iterable(refs for _, refs in self.rows)


def algorithm_data(walked: Walked, walk: Walk, table: ValueTable, program: WalkProgram) -> AlgorithmData:
    """The page's data of an algorithm as it was recorded, with its values and the program that finds them."""
    files = list(dict.fromkeys(inspect.getsourcefile(f) or "" for f in walked.recipe.functions))
    letters: dict[tuple[str, bool], int] = {}
    places: list[Place] = []
    forms: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
    steps: list[int] = []
    number: dict[Place, int] = {}
    for step in walk.steps:
        for seen in step.seen:
            if (place := seen.place) not in number:
                letter = place.text, place.written
                if letter not in letters:
                    letters[letter] = len(places)
                    places.append(place)
                number[place] = letters[letter]
        spoken = tuple([number[seen.place] for seen in step.seen])
        statement = step.statement
        form = (files.index(statement.file), statement.first, statement.last, step.stage, spoken)
        steps.append(forms.setdefault(form, len(forms)))
    listings = [ListingData(Path(file).name, Path(file).read_text(encoding="utf-8")) for file in files]
    lines = [listing.text.split("\n") for listing in listings]
    every = [seen for step in walk.steps for seen in step.seen]
    return AlgorithmData(
        key=walked.key,
        title=walked.title,
        gives=walked.gives,
        listings=listings,
        sweeps=list(walked.passes),
        indices=list(walked.recipe.indices),
        by_dof=walked is LTDL,
        matrix=walked.recipe.matrix,
        letters=[_letter(walked, place) for place in places],
        forms=[
            FormData(*form[:4], list(form[4]), CAPTIONS.get(lines[form[0]][form[1] - 1].strip(), ""))
            for form in forms
        ],
        steps=deflated_whole(steps),
        counters=deflated_whole([step.indices for step in walk.steps]),
        places=deflated_whole([seen.where for seen in every]),
        seen=deflated_whole(np.diff(table.places, prepend=0)),
        shapes=deflated_whole([(KINDS.index(kind), len(refs)) for kind, refs in table.rows]),
        numbers=deflated_whole(np.diff(program.places(table.refs()), prepend=0)),
        whole=walk.whole,
    )


def _letter(walked: Walked, place: Place) -> LetterData:
    """How a value is written in books."""
    name = {"tree.joint[": "S", "tree.I[": "I"}.get(place.text.partition("[")[0] + "[", place.name)
    letter = walked.letters.get(name, Letter(name, ""))
    subscripts = place.text.replace("tree.parent[i]", "λ(i)").split("[")[1:]
    below = ", ".join(part.split("]")[0] for part in subscripts)
    entry = place.name == walked.recipe.matrix and place.depth > 0
    return LetterData(place.text, letter.symbol, below, letter.meaning, letter.unit, place.written, entry)
