"""Runs functions under a line tracer and keeps what each line read and wrote.

The functions stay as they are. The interpreter tells of each line (``sys.settrace``); which values that line
is about is read from the text itself (:mod:`robokit.viewer.walk.text_statements`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType
from typing import Any

from robokit.viewer.walk.recorded_values import Value, recorded
from robokit.viewer.walk.text_statements import Place, Statement, loops, statements

NOWHERE = -1


@dataclass(frozen=True)
class Seen:
    """A value that a step read or wrote.

    Attributes:
        place: in the text.
        where: body that it belongs to, in whose coordinates spatial vectors stand; of an entry of the
            matrix row (n + 1) + column, with column n for a whole row; -1 where neither makes sense.
        value: kind and numbers.
    """

    place: Place
    where: int
    value: Value


@dataclass
class Step:
    """One line at work.

    Attributes:
        statement: the line.
        stage: number of the main function's loop that it belongs to, from 0; -1 outside.
        indices: values of the named indices, -1 where the line does not speak of them.
        seen: values, read ones first.
    """

    statement: Statement
    stage: int
    indices: tuple[int, ...]
    seen: list[Seen] = field(default_factory=list)


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
    """There are more steps than wanted."""


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
            return  # the loop is over: it has written nothing
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
                continue  # nobody reads all of a matrix at once
            try:
                value, at = eval(place.code, frame.f_globals, known)
            except (NameError, IndexError, TypeError):
                continue  # not there yet
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
