"""The rows of a report: which of them it holds, and what the page needs to run them again."""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.sim.contact_state import differ, row_numbers, scene_of
from robokit.sim.pushes import OutsideForces
from robokit.sim.rollouts import Rollout
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import first_carried
from robokit.viewer.curves import deflated
from robokit.viewer.live_data import live_data_of
from robokit.viewer.page import WORKER as LIVE_WORKER
from robokit.viewer.page import joined, json_for_html
from robokit.viewer.payload import motionless_payload
from robokit.viewer.payload_keys import InputData, PartData, RerunData

WORKER = (*LIVE_WORKER[:-1], "live/rerun.js", LIVE_WORKER[-1])
"""The page's Worker, which also takes whole runs."""

BLOCK = 4096
"""Rows whose inputs are made at once."""

INSTEAD = "the command below makes the page of this row"

MAX_RERUN = 30_000
"""Rows of a robot that run again in the page: their inputs take about a second a thousand."""

MAX_BYTES = 16_000_000
"""Of the starts of rows, unpacked; rows beyond it are left to ``robokit replay``."""


@dataclass(frozen=True)
class RowStarts:
    """Rows before their first step.

    Attributes:
        rollout: of them, without pushes and without a step.
        pushes: that act on them, or None.
    """

    rollout: Rollout
    pushes: OutsideForces | None

    @property
    def program(self) -> Program:
        """Their step, with places for the pushes."""
        program = self.rollout.program
        assert program is not None
        if self.pushes is None:
            return program
        places = self.pushes.places
        layout = replace(program.given, places=tuple((body, point is None) for body, point in places))
        points = [x for _, point in places if point is not None for x in point]
        return replace(program, given=layout, given_numbers=(*program.given_numbers, *points))

    def inputs(self, dt: float) -> dict[str, np.ndarray]:
        """What the first step of each row is given, and its pushes, (n, width) each.

        A push is nine numbers: its place, its first step, the one after its last, and the wrench.
        """
        program, q, v = self.program, self.rollout.q[0], self.rollout.v[0]
        n, found = len(q), {"q": q, "v": v}
        if program.contact:
            found |= _own_arrays(program, dt, n)
        else:
            parameters = program.parameters(dt)
            with np.errstate(all="ignore"):
                found["carried"] = first_carried(program, q, v)
            found["parameters"] = np.broadcast_to(parameters, (n, parameters.shape[-1]))
        if program.given.drives:
            wanted = self.rollout.given[0][0]
            found["drives"] = np.broadcast_to(wanted, (n, wanted.shape[-1]))
        if self.pushes is not None:
            spans: list[Any] = [*self.pushes.spans]
            spans += [(place, when, when + 1, wrench) for place, when, wrench in self.pushes.by_row]
            columns = [[place, first, last, *np.moveaxis(w, -1, 0)] for place, first, last, w in spans]
            one = [np.broadcast_to(x, n).astype(float) for column in columns for x in column]
            found["push_spans"] = np.stack(one, axis=1)
        return found


def _own_arrays(program: Program, dt: float, rows: int) -> dict[str, np.ndarray]:
    """Arrays of the step in which rows differ, (n, width) each, but for what driven joints want."""
    if not differ(program):
        return {}
    found = row_numbers(program, dt, scene_of(program), np.arange(rows))
    return {name: x.reshape(rows, -1) for name, x in found.items() if x.size and x.dtype == float}


@dataclass(frozen=True)
class RobotRows:
    """Rows of one robot, to be run again.

    Attributes:
        name: of the robot in the table.
        robot: with the shapes that are drawn, without samples.
        dt: time step [s].
        steps: of a row.
        places: of the rows among those of the page, ascending, (n,).
        special: which of them come first where not all fit, (n,).
        start: the start of the rows at these places, (k,).
        parameters: of the rows, (n,) each.
        hashes: of their last states, uint64 (n,); or None.
        problem: why they cannot run again in the page; "" where nothing is known of that.
    """

    name: str
    robot: Robot
    dt: float
    steps: int
    places: np.ndarray
    special: np.ndarray
    start: Callable[[np.ndarray], RowStarts]
    parameters: Mapping[str, np.ndarray]
    hashes: np.ndarray | None
    problem: str = ""


def rerun_data(rows: RobotRows) -> tuple[RerunData, int]:
    """The data with which the page runs a robot's rows again, and how many of them it can run again."""
    none = RerunData(rows.name, "", rows.steps, "", [], [], None, False, "")
    if rows.problem:
        return replace(none, problem=f"{rows.problem}; {INSTEAD}"), 0
    first = rows.start(np.arange(1))
    program, start = first.program, first.inputs(rows.dt)
    try:
        q, v, own = start["q"][0], start["v"][0], start.get("parameters", np.zeros((1, 0)))[0]
        live = live_data_of(program, rows.dt, q, v, joined(WORKER), True, own, True)
    except RobokitError as error:
        return replace(none, problem=f"{str(error).partition('; write')[0]}; {INSTEAD}"), 0
    pose = q if np.isfinite(q).all() else rows.robot.neutral()
    payload = replace(
        motionless_payload(rows.robot, program.ground and program.ground.row(0), pose),
        live=live,
    )
    factors = factors_of(rows.parameters)
    chosen = thin_rows(len(rows.places), rows.special, fitting(rows, factors))
    n, own = len(chosen), [factor[chosen] for factor in factors]
    packed = {name: PackedInput(name, x.shape[1], own, n) for name, x in start.items()}
    for at in range(0, n, BLOCK):
        for name, values in rows.start(chosen[at : at + BLOCK]).inputs(rows.dt).items():
            packed[name].add(values)
    made = RerunData(
        robot=rows.name,
        payload=deflate_text(json_for_html(payload).encode("utf-8")),
        steps=rows.steps,
        places=deflate_text(np.asarray(rows.places[chosen], "<u4").tobytes()),
        factors=[in_planes(factor) for factor in own],
        inputs=[one.packed() for one in packed.values()],
        hashes=None if rows.hashes is None else in_planes(rows.hashes[chosen].astype(np.uint64)),
        inertial=program.open,
        problem="",
    )
    return made, n


def fitting(rows: RobotRows, factors: Sequence[np.ndarray]) -> int:
    """How many of the rows fit into a page: as many as their own numbers leave room for."""
    n = len(rows.places)
    few = rows.start(np.arange(min(n, 64))).inputs(rows.dt)
    width = 0
    for name, values in few.items():
        one = PackedInput(name, values.shape[1], [factor[:64] for factor in factors], len(values))
        one.add(values)
        width += sum(entry.kept.dtype.itemsize for entry in one.entries.values() if entry.factor < 0)
    return min(n, MAX_RERUN, max(1000, MAX_BYTES // max(1, width)))


# ---- inputs of rows, packed --------------------------------------------------------------------


def deflate_text(content: bytes) -> str:
    """Bytes as deflated text in base64."""
    return base64.b64encode(zlib.compress(content, 6)).decode("ascii")


def in_planes(values: np.ndarray) -> str:
    """Numbers as deflated text, all lowest bytes first, then all second ones and so on."""
    array = np.ascontiguousarray(values)
    size = array.dtype.itemsize
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    content = np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, size).T)
    return deflate_text(content.tobytes())


@dataclass
class _Entry:
    """An entry of the input that is not the same in all rows.

    Attributes:
        factor: place of the factor that it is proportional to; -1 where it is kept as it is.
        start: the number before the factor.
        kept: differences to the product (int8 or int16), or the numbers themselves (float64), (n,).
    """

    factor: int
    start: float
    kept: np.ndarray


class PackedInput:
    """An input of the step for n rows, block by block.

    Args:
        name: of the input.
        width: numbers of a row.
        factors: numbers of the rows that entries may be proportional to, (n,) each.
        rows: n.
    """

    def __init__(self, name: str, width: int, factors: Sequence[np.ndarray], rows: int) -> None:
        self.name, self.factors, self.rows = name, factors, rows
        self.base = np.zeros(width)
        self.entries: dict[int, _Entry] = {}
        self.filled = 0

    def add(self, values: np.ndarray) -> None:
        """Add the next rows, (k, width)."""
        values = np.ascontiguousarray(values, dtype=np.float64)
        if not self.filled:
            self.base[:] = values[0]
        part = slice(self.filled, self.filled + len(values))
        same = (values.view(np.int64) == self.base.view(np.int64)).all(axis=0)
        for place in sorted({*np.flatnonzero(~same).tolist(), *self.entries}):
            column = np.ascontiguousarray(values[:, place])
            entry = self.entries.get(place)
            if entry is None:
                entry = self.entries[place] = self._begun(place, column, part)
            self._keep(entry, column, part)
        self.filled = part.stop

    def packed(self) -> InputData:
        """What the page gets of it."""
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        base = self.base.copy()
        for place, entry in self.entries.items():
            groups[entry.factor, entry.kept.dtype.itemsize].append(place)
            base[place] = entry.start if entry.factor >= 0 else 0.0
        parts = []
        for (factor, size), places in groups.items():
            table = np.stack([self.entries[place].kept for place in places], axis=1)
            parts.append(PartData(places, factor, size, in_planes(table)))
        return InputData(self.name, deflated(base, "<f8"), parts)

    def _begun(self, place: int, column: np.ndarray, part: slice) -> _Entry:
        """Begin an entry that differs in this block; all rows before had the value of the base."""
        if part.start == 0:
            factor, start = _proportional(column, [x[part] for x in self.factors])
            if factor >= 0:
                return _Entry(factor, start, np.zeros(self.rows, np.int8))
        kept = np.zeros(self.rows)
        kept[: part.start] = self.base[place]
        return _Entry(-1, 0.0, kept)

    def _keep(self, entry: _Entry, column: np.ndarray, part: slice) -> None:
        if entry.factor >= 0:
            away = column.view(np.int64) - self._guess(entry, part).view(np.int64)
            most = int(np.abs(away).max()) if np.isfinite(column).all() else 2**15
            if most >= 2**7 and entry.kept.dtype == np.int8:
                entry.kept = entry.kept.astype(np.int16)
            if most < 2**15:
                entry.kept[part] = away
                return
            before = slice(0, part.start)
            whole = np.zeros(self.rows)
            whole[before] = (self._guess(entry, before).view(np.int64) + entry.kept[before]).view(np.float64)
            entry.factor, entry.start, entry.kept = -1, 0.0, whole
        entry.kept[part] = column

    def _guess(self, entry: _Entry, part: slice) -> np.ndarray:
        return np.ascontiguousarray(entry.start * self.factors[entry.factor][part])


def factors_of(parameters: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Parameters that entries may be proportional to: finite numbers, not 0, that differ from row to row."""
    found = []
    for values in parameters.values():
        if values.dtype.kind == "f" and np.isfinite(values).all() and values.all() and np.ptp(values) > 0:
            found.append(np.ascontiguousarray(values, dtype=np.float64))
    return found


def _proportional(column: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[int, float]:
    """Place of the factor that a column is proportional to, to rounding, and the number before it; or -1."""
    if np.isfinite(column).all() and column.all():
        for k, factor in enumerate(factors):
            ratio = column / factor
            if np.ptp(ratio) <= 2e-12 * abs(ratio[0]):
                return k, float(np.median(ratio))
    return -1, 0.0


# ---- which rows a page holds -------------------------------------------------------------------

MAX_ROWS = 100_000
"""Rows of a page: as many as a browser opens within a second or two."""

WORST = 100
"""Rows with the largest and with the smallest values of each measure that a page holds in any case."""

MAX_FAILURES = 20_000
"""Rows that failed, of those that a page holds in any case."""


@dataclass(frozen=True)
class PageRows:
    """Rows of a page.

    Attributes:
        places: of them among those of the sweep, ascending.
        special: of those that failed or are among the most extreme, ascending.
        sentence: which rows the page holds; "" where it holds all.
    """

    places: np.ndarray
    special: np.ndarray
    sentence: str


def page_rows(
    count: int, measures: Mapping[str, np.ndarray], failed: np.ndarray, most: int = MAX_ROWS
) -> PageRows:
    """The rows that a page holds.

    The sample is the same for the same sweep: rows at equal distances, one row being as random as another.

    Args:
        count: rows of the sweep.
        measures: numbers by name, (count,) each; NaN for none.
        failed: which rows failed, (count,).
        most: rows of the page; what stands out may add to them.

    """
    failures = np.flatnonzero(failed)
    kept = [failures[:MAX_FAILURES]]
    for values in measures.values():
        known = np.flatnonzero(np.isfinite(values))
        if len(known) <= 2 * WORST:
            kept.append(known)
            continue
        for sign in (-1.0, 1.0):
            kept.append(known[np.argpartition(sign * values[known], WORST - 1)[:WORST]])
    special = np.unique(np.concatenate(kept))
    if count <= most:
        return PageRows(np.arange(count), special, "")
    even = np.unique(np.linspace(0, count - 1, most).astype(np.int64))
    places = np.union1d(even, special)
    those = _spaced(len(failures))
    if len(failures) > MAX_FAILURES:
        those = f"the first {_spaced(MAX_FAILURES)} of {those}"
    sentence = (
        f"This page holds {_spaced(len(places))} of {_spaced(count)} rows: {_spaced(most)} at equal "
        f"distances, {those} that failed, and the {WORST} with the largest and {WORST} with the smallest "
        "value of each measure. The distributions count all rows of the sweep; what a filter leaves of them "
        "is scaled up from the rows of the page."
    )
    return PageRows(places, special, sentence)


def thin_rows(rows: int, special: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the rows: those that stand out first, then others at equal distances.

    Args:
        rows: how many there are.
        special: which stand out, (rows,).
        most: how many are wanted.

    Returns:
        Their places, ascending.
    """
    if rows <= most:
        return np.arange(rows)
    first = np.flatnonzero(special)[:most]
    rest = np.flatnonzero(~special)
    if not len(rest) or most == len(first):
        return first
    even = np.unique(np.linspace(0, len(rest) - 1, most - len(first)).astype(np.int64))
    return np.union1d(first, rest[even])


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")
