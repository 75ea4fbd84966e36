"""What a log holds, as it was written: CSV and NumPy files, ROS 1 and ROS 2 bags, MCAP files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.child_process import Child, OutOfBounds
from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import frozen
from robokit.errors import MissingDependency, ShapeError, UrdfError, listed, nearest_names, one_line, quoted
from robokit.files import open_regular, read_arrays
from robokit.logs import bag_child
from robokit.logs.bag_child import QUANTITIES, joint_state, message_field, stamp_of
from robokit.model.robot import Robot

# ==== What a log holds, before it is brought to a robot: blocks of samples as they were written ===

GAP = 10.0  # of the usual step: longer ones are gaps; a step back by more is a clock that was reset


@frozen(eq=False)
class Block:
    """Messages of one topic, or rows of a table, that name the same joints in the same order."""

    topic: str  # where they came from; "" for a table
    names: tuple[str, ...]  # of the joints, or of coordinates of joints with several ("wrist/qw")
    number: np.ndarray  # place of each message in the log, (M,)
    t: np.ndarray  # stamps [ns], (M,)
    # position, velocity and effort, (M, n) each, or None where the messages have none
    values: tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]


@frozen(eq=False)
class Poses:
    """Poses of a frame over time."""

    topic: str  # where they came from
    kind: str  # "odometry", "pose" or "tf"
    # parent, child: names of the frame that they are in and of the frame that moves; "" where not said
    parent: str
    child: str
    t: np.ndarray  # stamps [ns], (M,)
    pose: np.ndarray  # px, py, pz [m], qw, qx, qy, qz of the child in the parent, (M, 7)
    # angular and linear velocity in the child's axes [rad/s; m/s], (M, 6), or None
    twist: np.ndarray | None = None


@dataclass
class Recording:
    """All that was read of a log."""

    source: str  # the file, for messages
    blocks: list[Block] = field(default_factory=list)  # states of joints
    poses: list[Poses] = field(default_factory=list)  # motion of frames
    description: str | None = None  # URDF text of the robot, or None
    topics: dict[str, str] = field(default_factory=dict)  # type of each topic of a bag
    notes: list[str] = field(default_factory=list)  # what was noticed, in words


# ==== tables ======================================================================================
# Logs that are tables: CSV with a header of joint names, and NumPy files.
#
# A column is known by its header: "hip", "hip_position", "q/hip", "/joint_states/hip/velocity", "hip [deg]"
# or, for joints by number, "q0", "dq[3]", "tau_7". A table without any names has q, v and tau in the robot's
# order.

WORDS = {
    "position": {"position", "positions", "pos", "q", "qpos", "angle", "angles"},
    "velocity": {"velocity", "velocities", "vel", "v", "dq", "qd", "qdot", "qvel", "speed"},
    "effort": {"effort", "efforts", "eff", "tau", "torque", "torques", "trq", "force"},
}
"""What a quantity is called in headers, in lower case."""

QUANTITY_OF = {word: quantity for quantity, words in WORDS.items() for word in words}

FILLERS = {"est", "estimated", "measured", "meas", "actual", "act", "state", "states", "joint", "joints", "j"}
"""Words of a header that change nothing; "tau_J" is that of Franka's robots."""

OTHERS = {"cmd", "command", "commanded", "target", "desired", "des", "ref", "reference", "goal", "error"}
OTHERS |= {"spring", "springs", "prescribed", "contact", "external"}
"""Words before a name that say it is no measurement of the joint's motion or actuator."""

UNITS = {"rad": 1.0, "m": 1.0, "s": 1.0, "rads": 1.0, "nm": 1.0, "n": 1.0, "deg": math.pi / 180}
UNITS |= {"degree": UNITS["deg"], "degrees": UNITS["deg"], "degs": UNITS["deg"], "mm": 1e-3}
"""Units in a header, to SI."""

NANOSECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}  # units of time that a column may have
LATEST = 2.0**62  # stamps from this one on are invalid [ns]: it is in the year 2116

TIME = {"time", "t", "timestamp", "stamp", "timestamps", "times", "rosbagtimestamp", "elapsed", "clock"}
CLOCKS = [[word] for word in sorted(TIME)]
SECONDS, REST = {"sec", "secs", "seconds"}, {"nsec", "nsecs", "nanosec", "nanosecs", "nanoseconds"}
NAMES = {"names", "name", "joint_names", "joints", "joint"}

OWN = ("energy/", "momentum/", "contact_force/", "actuator_force/", "spring/", "prescribed_force/")
"""Beginnings of columns that ``Trajectory.to_csv`` writes beside the states and joint forces."""

SEPARATORS = r"[\s_./:\-\[\](){}|]+"


@frozen
class Coordinates:
    """The names that a table's columns may have: those of a robot."""

    # of each coordinate, nq of them: the joint's, with "/qw" and so on where it has several
    q: tuple[str, ...]
    v: tuple[str, ...]  # of each velocity, nv of them
    joints: tuple[str, ...]  # of the joints of one degree of freedom, in the order of v

    def of(self, width: int, quantity: str) -> tuple[str, ...] | None:
        """The names of an array of so many columns without names; None where none fit."""
        whole = self.q if quantity == "position" else self.v
        return whole if width == len(whole) else self.joints if width == len(self.joints) else None


@frozen
class Column:
    """A column that is understood."""

    name: str  # of the joint or coordinate
    quantity: str  # "position", "velocity" or "effort"
    factor: float  # to SI units
    place: int  # which one of the table it is


def read_table(
    path: Path,
    coordinates: Coordinates,
    rate: float | None = None,
    time_unit: str | None = None,
    rename: Mapping[str, str] | None = None,
) -> Recording:
    """The samples of a CSV, .npz or .npy file, with the robot's ``coordinates``.

    ``rate`` is for a table without times [1/s]; ``time_unit`` is "s", "ms", "us" or "ns", guessed, and noted,
    if None; ``rename`` has names in the table and what the robot calls them. Raises ShapeError for another
    file, a damaged one, or one whose columns are not understood.
    """
    recording = Recording(str(path))
    table = _Table(recording, coordinates, rate, time_unit, rename or ())
    try:
        if path.suffix.lower() == ".npz":
            table.arrays(read_arrays(path))
        elif path.suffix.lower() == ".npy":
            with open_regular(path) as file:
                table.array(np.asarray(np.load(file, allow_pickle=False)))
        else:
            with open_regular(path) as file:
                table.text(file.read())
    except ShapeError:
        raise
    except (OSError, ValueError, EOFError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise ShapeError(f"{path}: {reason}") from None
    return recording


def words_of(header: str) -> list[str]:
    """The words of a header, in lower case."""
    return [word for word in re.split(SEPARATORS, header.strip().lower()) if word]


def column_of(header: str, names: Iterable[str]) -> tuple[str, str, float] | None:
    """Name, quantity and factor to SI units of a header; None where it is no measurement.

    ``names`` are those known, the longest first.
    """
    text = header.strip().strip("\"'").lstrip("/")
    for name in names:
        for found in re.finditer(re.escape(name), text):
            before, after = text[: found.start()], text[found.end() :]
            if (before and not re.search(SEPARATORS + "$", before)) or (
                after and not re.match(SEPARATORS, after)
            ):
                continue
            said = _said(words_of(before), words_of(after))
            if said is not None:
                return (name, *said)
    return None


def _said(before: list[str], after: list[str]) -> tuple[str, float] | None:
    """The quantity and the factor to SI units that the words around a name mean."""
    if OTHERS.intersection(before):
        return None
    factor, quantity = 1.0, None
    for word in after:
        if word in QUANTITY_OF and quantity is None:
            quantity = QUANTITY_OF[word]
        elif word in UNITS:
            factor = UNITS[word] if factor == 1.0 else factor
        elif word not in FILLERS:
            return None
    if quantity is None:
        quantity = next((QUANTITY_OF[word] for word in before[::-1] if word in QUANTITY_OF), "position")
    return quantity, factor


def numbered_column(header: str) -> tuple[str, int] | None:
    """Quantity and number of a header like "q0", "joint_states.position[3]" or "tau_7"; None for others."""
    found = re.fullmatch(r"(.*?)[\s_.\[(]*(\d+)[\])]?", header.strip())
    if found is None:
        return None
    words = words_of(found[1])
    if not words or OTHERS.intersection(words):
        return None
    while len(words) > 1 and words[-1] in FILLERS:
        words.pop()
    quantity = QUANTITY_OF.get(words[-1])
    return None if quantity is None else (quantity, int(found[2]))


def _is_own(cells: Sequence[str]) -> bool:
    """Whether a table is one that ``Trajectory.to_csv`` wrote."""
    return "energy/kinetic" in cells and "momentum/kx" in cells


def _is_part(column: Column, cells: Sequence[str], at: Mapping[int, np.ndarray]) -> bool:
    """Whether a column of a table of ``to_csv`` is a part of another: an actuator's force includes tau.

    A joint without an actuator has a zero there, beside the controller's tau.
    """
    own, force = f"tau/{column.name}", f"actuator_force/{column.name}"
    if not _is_own(cells) or own not in cells or force not in cells:
        return False
    return cells[column.place] == (own if at[cells.index(force)].any() else force)


class _Table:
    """A table on its way into a recording."""

    def __init__(
        self,
        recording: Recording,
        coordinates: Coordinates,
        rate: float | None,
        time_unit: str | None,
        more_names: Iterable[str],
    ) -> None:
        self.recording, self.coordinates, self.rate = recording, coordinates, rate
        self.time_unit = time_unit
        known = {*coordinates.q, *coordinates.v, *more_names}
        self.names = sorted(known, key=lambda name: (-len(name), name))

    # ---- CSV -------------------------------------------------------------------------------------

    def text(self, data: bytes) -> None:
        """Take in a CSV file."""
        if b"\0" in data[:4096]:
            raise ShapeError(
                f"{self.recording.source}: neither a table of text nor a file of a known ending: .csv, .npz, "
                ".npy, .bag, .mcap, .db3, or the folder of a ROS 2 bag"
            )
        text = data.decode("utf-8-sig", "replace")
        start, first = _first_line(text)
        if not first:
            raise ShapeError(f"{self.recording.source}: an empty file")
        delimiter = _delimiter(first)
        cells = [cell.strip() for cell in next(csv.reader([first.lstrip("#% ")], delimiter=delimiter or " "))]
        cells = [cell for cell in cells if cell or delimiter]
        if all(_is_number(cell) for cell in cells):
            headers = [f"column {k}" for k in range(len(cells))]
            places = list(range(len(cells)))
            self.array(_rows(self.recording, text, delimiter, places, headers, start))
            return
        body = text.index("\n", start) + 1 if "\n" in text[start:] else len(text)
        columns, times = self._columns(cells, self._names_in_rows(cells, text[body:], delimiter))
        if not text[body:].strip():
            raise ShapeError(f"{self.recording.source}: a header without any row")
        places = sorted({c.place for c in columns} | {place for place, _ in times})
        rows = _rows(self.recording, text, delimiter, places, cells, body)
        at = {place: rows[:, k] for k, place in enumerate(places)}
        t = self._times([(at[place], cells[place], unit) for place, unit in times], len(rows))
        columns = [c for c in columns if not _is_part(c, cells, at)]
        self._block(t, [(c.name, c.quantity, c.factor * at[c.place]) for c in columns])

    def _names_in_rows(self, cells: list[str], body: str, delimiter: str | None) -> dict[int, str]:
        """Names by number, where columns like "field.name0" hold them, as rostopic echo -p writes."""
        found = {
            k: m for k, cell in enumerate(cells) if (m := re.fullmatch(r"(?:.*\W)?name\[?(\d+)\]?", cell))
        }
        if not found:
            return {}
        row = next(csv.reader(io.StringIO(body), delimiter=delimiter or " "), [])
        return {int(m[1]): row[k].strip() for k, m in found.items() if k < len(row)}

    def _columns(
        self, cells: list[str], by_number: dict[int, str]
    ) -> tuple[list[Column], list[tuple[int, str | None]]]:
        """The columns that are understood, and those of time with the units that their headers say."""
        columns, numbered = list[Column](), dict[tuple[str, int], int]()
        times = _time_columns(cells)
        for place, cell in enumerate(cells):
            if place in {k for k, _ in times}:
                continue
            found = column_of(cell, self.names)
            if found is not None:
                columns.append(Column(*found, place))
            elif (number := numbered_column(cell)) is not None:
                numbered.setdefault(number, place)
        if numbered and (by_number or not columns):
            columns += self._numbered(numbered, by_number)
        if not columns:
            near = [n for cell in cells[:200] for n in nearest_names(cell, self.names, 1, 0.7)][:3]
            advice = f"did you mean {', '.join(map(repr, near))}? " if near else ""
            raise ShapeError(
                f"{self.recording.source}: no column is named after a joint of the robot; {advice}"
                f"columns: {listed(map(quoted, cells))}; "
                f"joints: {listed(map(quoted, self.coordinates.joints))}"
            )
        taken = {c.place for c in columns} | {k for k, _ in times}
        expected = OWN if _is_own(cells) else ()
        rest = [
            cell
            for place, cell in enumerate(cells)
            if place not in taken
            and cell
            and not cell.startswith(expected)
            and words_of(cell)[-1:] not in CLOCKS
        ]
        if rest:
            self.recording.notes.append(f"columns that are not read: {listed(map(quoted, rest))}")
        return columns, times

    def _numbered(self, numbered: dict[tuple[str, int], int], by_number: dict[int, str]) -> list[Column]:
        """Columns by number: the names that rows say, or the robot's order."""
        out = []
        for quantity in QUANTITIES:
            numbers = sorted(number for kind, number in numbered if kind == quantity)
            if not numbers:
                continue
            if by_number:
                names = {k: by_number[k] for k in numbers if k in by_number}
            else:
                order = self._order(len(numbers), quantity, f"columns of {quantity}")
                names = dict(zip(numbers, order, strict=True))
            out += [Column(name, quantity, 1.0, numbered[quantity, k]) for k, name in names.items()]
        if not by_number:
            self.recording.notes.append(
                "columns have numbers, not names: taken in the robot's order of joints"
            )
        return out

    def _order(self, width: int, quantity: str, what: str) -> tuple[str, ...]:
        names = self.coordinates.of(width, quantity)
        if names is None:
            whole = self.coordinates.q if quantity == "position" else self.coordinates.v
            raise ShapeError(
                f"{self.recording.source}: {width} {what} without names of the robot's joints; it has "
                f"{len(whole)} coordinates and {len(self.coordinates.joints)} joints of one degree of "
                "freedom; name the columns by its joints"
            )
        return names

    # ---- NumPy -----------------------------------------------------------------------------------

    def array(self, table: np.ndarray) -> None:
        """Take in an array without names, (T, n), or one with named fields, (T,)."""
        if table.dtype.names:
            self.arrays({name: table[name] for name in table.dtype.names})
            return
        self._check_numbers("its array", table)
        if table.ndim != 2:
            raise ShapeError(f"{self.recording.source}: expected an array (T, n), got shape {table.shape}")
        nq, nv, width = len(self.coordinates.q), len(self.coordinates.v), table.shape[1]
        for timed in (1, 0):
            for sizes in ((nq,), (nq, nv), (nq, nv, nv)):
                if width != timed + sum(sizes) or (not timed and self.rate is None):
                    continue
                rows = table.astype(float)
                t = self._times([(rows[:, 0], "column 0", None)] if timed else [], len(rows))
                columns, at = list[tuple[str, str, np.ndarray]](), timed
                for size, quantity in zip(sizes, QUANTITIES, strict=False):
                    names = self.coordinates.q if quantity == "position" else self.coordinates.v
                    columns += [(name, quantity, rows[:, at + k]) for k, name in enumerate(names)]
                    at += size
                what = ", ".join(["time"] * timed + list(QUANTITIES[: len(sizes)]))
                self.recording.notes.append(f"no names: read as {what} in the robot's order")
                self._block(t, columns)
                return
        raise ShapeError(
            f"{self.recording.source}: {width} columns without names; expected a time and then nq = {nq} "
            f"positions, nv = {nv} velocities and {nv} efforts (the last two may be missing), or a header; "
            "a table without times needs rate="
        )

    def arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take arrays by name: times (T,), names of joints, and q, v, tau, (T, n) or a column per joint."""
        texts = {key.lower(): a for key, a in arrays.items() if a.dtype.kind in "US" and a.ndim == 1}
        names = next((tuple(map(str, a)) for key, a in texts.items() if key in NAMES), None)
        timed = [(key, a) for key, a in arrays.items() if set(words_of(key)) & TIME and a.ndim == 1]
        columns, rest, T = list[tuple[str, str, np.ndarray]](), list[str](), None
        for key, array in arrays.items():
            if array.dtype.kind in "US" or any(key == other for other, _ in timed):
                continue
            if array.ndim == 1 and (found := column_of(key, self.names)) is not None:
                self._check_numbers(key, array)
                columns.append((found[0], found[1], found[2] * array.astype(float)))
            elif array.ndim == 2 and (quantity := _quantity(key)) is not None:
                self._check_numbers(key, array)
                order = names if names is not None and len(names) == array.shape[1] else None
                order = order or self._order(array.shape[1], quantity, f"columns of {key!r}")
                columns += [
                    (name, quantity, column)
                    for name, column in zip(order, array.T.astype(float), strict=True)
                ]
            else:
                rest.append(key)
                continue
            if T is not None and len(array) != T:
                raise ShapeError(f"{self.recording.source}: {key!r} has {len(array)} rows, others have {T}")
            T = len(array)
        if T is None:
            raise ShapeError(
                f"{self.recording.source}: expected arrays t (T,), q (T, n), and v, tau, names where "
                f"there are any; got {listed(map(quoted, arrays))}"
            )
        if rest:
            self.recording.notes.append(f"arrays that are not read: {listed(map(quoted, rest))}")
        t = self._times([(a.astype(float), key, _unit(words_of(key))) for key, a in timed[:1]], T)
        self._block(t, columns)

    def _check_numbers(self, key: str, array: np.ndarray) -> None:
        if array.dtype.kind not in "fiub":
            raise ShapeError(f"{self.recording.source}: {key!r} holds {array.dtype}, expected real numbers")

    # ---- times and blocks ------------------------------------------------------------------------

    def _times(self, given: list[tuple[np.ndarray, str, str | None]], rows: int) -> np.ndarray:
        """Stamps of the rows [ns], (T,)."""
        if not given:
            if self.rate is None:
                raise ShapeError(
                    f"{self.recording.source}: no column of time (time, t, timestamp, ...); give the samples "
                    "per second: rate=500.0 (--rate 500)"
                )
            return np.round(np.arange(rows) * (1e9 / self.rate)).astype(np.int64)
        if any(len(x) != rows for x, _, _ in given):
            raise ShapeError(f"{self.recording.source}: as many times as rows are expected, {rows}")
        if len(given) == 2:  # seconds and nanoseconds
            whole, part = (np.nan_to_num(x) for x, _, _ in given)
            return whole.astype(np.int64) * 1_000_000_000 + part.astype(np.int64)
        values, header, unit = given[0]
        good = np.abs(values) < LATEST
        if not good.any():
            raise ShapeError(f"{self.recording.source}: column {header!r} of time holds no times")
        if self.time_unit is not None:
            unit = self.time_unit
        elif unit is None:
            unit, why = guessed_unit(values[good])
            if why:  # guessed from the step alone
                self.recording.notes.append(
                    f"time {header!r} is read as {unit}: {why}; time_unit= (--time-unit) says another"
                )
        good &= np.abs(values) < LATEST / NANOSECONDS[unit]
        # NaN as the smallest stamp: where it is left out, like other broken samples.
        stamps = np.full(rows, np.iinfo(np.int64).min)
        stamps[good] = np.round(values[good] * NANOSECONDS[unit]).astype(np.int64)
        return stamps

    def _block(self, t: np.ndarray, columns: Sequence[tuple[str, str, np.ndarray]]) -> None:
        names = tuple(dict.fromkeys(name for name, _, _ in columns))
        values: list[np.ndarray | None] = [None, None, None]
        for name, quantity, numbers in columns:
            k, j = QUANTITIES.index(quantity), names.index(name)
            if values[k] is None:
                values[k] = np.full((len(t), len(names)), np.nan)
            table = values[k]
            assert table is not None
            if np.isnan(table[:, j]).all():
                table[:, j] = numbers
            else:
                self.recording.notes.append(
                    f"two columns are the {quantity} of {name!r}: the first one counts"
                )
        good = t != np.iinfo(np.int64).min
        if not good.all():
            self.recording.notes.append(f"{np.count_nonzero(~good)} rows without a time left out")
        cut = [None if x is None else x[good] for x in values]
        block = Block("", names, np.flatnonzero(good), t[good], (cut[0], cut[1], cut[2]))
        self.recording.blocks.append(block)


def guessed_unit(values: np.ndarray) -> tuple[str, str]:
    """The unit of times, and why where that is a guess worth a note.

    Times since 1970 show it by their size. Of others the step does: no robot is logged once a second.
    """
    largest = float(np.abs(values).max())
    for unit, size in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)):
        if largest > size:
            return unit, ""
    steps = np.diff(np.sort(values))
    step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    if largest > 1e8 or step < 0.5:
        return "s", ""
    unit = "ms" if step < 500.0 else "us" if step < 5e5 else "ns"
    return unit, f"its usual step is {step:.4g}"


def _unit(words: list[str]) -> str | None:
    return next((word for word in words[::-1] if word in NANOSECONDS), None)


def _time_columns(cells: list[str]) -> list[tuple[int, str | None]]:
    """Places of the columns of time, and the units that they say: one, or seconds and nanoseconds."""
    words = [words_of(cell.lstrip("%")) for cell in cells]
    for k, own in enumerate(words):
        if own and own[-1] in SECONDS and (len(own) == 1 or own[-2] in ("stamp", "header", "time")):
            for j, other in enumerate(words):
                if other and other[-1] in REST and other[:-1] == own[:-1]:
                    return [(k, "s"), (j, "ns")]
    best = []
    for k, own in enumerate(words):
        rest = [word for word in own if word not in NANOSECONDS]
        if rest and rest[-1] in TIME and not any(w in QUANTITY_OF for w in own[:-1]):
            unit = _unit(own) or ("ns" if cells[k].startswith("%") and own == ["time"] else None)
            best.append((0 if "stamp" in own and "header" in own else 1, k, unit))
        elif own and own[-1] in SECONDS and len(own) == 1:
            best.append((2, k, "s"))
    return [(k, unit) for _, k, unit in sorted(best)[:1]]


def _first_line(text: str) -> tuple[int, str]:
    """Where the header begins, and the header; the first line with numbers where there is none.

    A comment before numbers is a header if it has as many cells as they.
    """
    start, comments = 0, list[tuple[int, str]]()
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if bare.startswith("#"):
            comments.append((start, line.rstrip("\r\n")))
        elif bare:
            mark = _delimiter(bare)
            numbers = all(_is_number(x) for x in re.split(r"[,;\s]+", bare.strip(",; \t")) if x)
            for place, comment in comments[::-1]:
                if numbers and len(comment.lstrip("# ").split(mark)) == len(bare.split(mark)):
                    return place, comment
            return start, line.rstrip("\r\n")
        start += len(line)
    return 0, ""


def _delimiter(line: str) -> str | None:
    """What separates cells; None for blanks."""
    counts = {mark: line.count(mark) for mark in ",;\t"}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows(
    recording: Recording, text: str, delimiter: str | None, places: list[int], headers: list[str], start: int
) -> np.ndarray:
    """The numbers in these columns of the text behind ``start``, (T, n)."""
    body = text[start:].rstrip("\0")
    try:
        return np.loadtxt(
            io.StringIO(body), delimiter=delimiter, usecols=places, ndmin=2, comments="#", quotechar='"'
        )
    except ValueError:
        pass
    # A table with empty cells, decimal commas or an incomplete last line is read row by row.
    rows, short = list[list[float]](), 0
    line = text.count("\n", 0, start)
    lines = text[start:].splitlines()
    reader = csv.reader(lines, delimiter=delimiter) if delimiter else (each.split() for each in lines)
    for row in reader:
        line += 1
        if not row or row[0].lstrip().startswith("#"):
            continue
        if len(row) <= places[-1]:
            short = line
            continue
        if short:
            break
        rows.append([_cell(recording, row[k], delimiter, headers[k], line) for k in places])
    if short and short < line:
        raise ShapeError(f"{recording.source}: line {short} has fewer than {places[-1] + 1} cells")
    if short:
        recording.notes.append(f"line {short}, the last one, breaks off: left out")
    return np.array(rows, float).reshape(len(rows), len(places))


EMPTY = {"", "nan", "none", "null", "na", "n/a", "-"}


def _cell(recording: Recording, cell: str, delimiter: str | None, header: str, line: int) -> float:
    cell = cell.strip()
    if cell.lower() in EMPTY:
        return math.nan
    with_point = cell.replace(",", ".") if delimiter == ";" else cell
    try:
        return float(with_point)
    except ValueError:
        raise ShapeError(
            f"{recording.source}: line {line}, column {quoted(header)}: expected a number, got {quoted(cell)}"
        ) from None


def _quantity(key: str) -> str | None:
    words = [word for word in words_of(key) if word not in FILLERS]
    if OTHERS.intersection(words):
        return None
    return QUANTITY_OF.get(words[-1]) if words else None


# ==== ROS 1 and ROS 2 bags and MCAP files, read without ROS by the packages rosbags and mcap ======

MESSAGES = 4096  # messages of one answer of the child, each of which has bounds of time and memory of its own

BAR = "{desc} {percentage:3.0f} % |{bar}| {remaining} left"

MISSING = {"mcap_protobuf": "mcap-protobuf-support", "google": "mcap-protobuf-support"}
"""Package on PyPI of a module, where the two differ."""

MOST_TOPICS = 20  # topics that a message lists


def read_bag(path: Path, topics: tuple[str, ...] = (), progress: bool = False) -> Recording:
    """The states of joints, poses and the description of the robot in a .bag, .mcap or .db3 file, or a ROS 2
    folder.

    ``topics`` are those of states of joints to read, all by default; ``progress`` shows a bar on stderr.
    Raises ShapeError for another file, a damaged one, or one without states of joints, with its topics;
    UnknownName for a topic that it has not; MissingDependency where rosbags or mcap is not installed.
    """
    with _opened(path) as (child, recording):
        _read(child, path, recording, _wanted(recording, topics), progress)
    return recording


def topics_of(path: Path) -> dict[str, str]:
    """The type of each topic of a bag; errors are as in :func:`read_bag`."""
    with _opened(path) as (_, recording):
        return recording.topics


def robot_description(path: Path) -> str:
    """The text of /robot_description in a bag; ShapeError where there is none, else as :func:`read_bag`."""
    with _opened(path) as (child, recording):
        _read(child, path, recording, _descriptions(recording.topics), progress=False)
    return described(recording)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[Child, Recording]]:
    """The process that has a bag open, and what will be read of it: so far its topics."""
    _check_files(path)
    try:
        with Child(bag_child.__file__, work="reads") as child:
            yield (
                child,
                Recording(str(path), topics=_ask(child, path, ("open", str(path.absolute())))["topics"]),
            )
    except OutOfBounds as problem:
        raise ShapeError(f"{path}: {problem}") from problem


def described(recording: Recording) -> str:
    """The description of the robot in a recording; ShapeError where there is none."""
    if recording.description is None:
        raise ShapeError(
            f"robot: {recording.source} has no /robot_description (std_msgs/String); give the robot: "
            "read_log(path, robot)"
        )
    return recording.description


def robot_of_description(text: str, source: str, **options: Any) -> Robot:
    """The robot of a URDF in /robot_description of ``source``, which messages name.

    ``options``: of robokit.loads_urdf. Raises UrdfError where it cannot become a robot.
    """
    from robokit.urdf import loads_urdf

    try:
        return loads_urdf(text, **options)
    except UrdfError as error:
        words = str(error).replace("<string>", f"{source}: /robot_description")
        raise UrdfError(words, error.diagnostics) from error


def _descriptions(kinds: dict[str, str]) -> set[str]:
    return {t for t, kind in kinds.items() if kind == bag_child.TEXT and t.endswith("robot_description")}


def _check_files(path: Path) -> None:
    """See that there are only regular files: a pipe would block whoever opens it."""
    files = [path] if not path.is_dir() else [path / "metadata.yaml"]
    for file in files:
        try:
            open_regular(file).close()
        except FileNotFoundError:
            if file is path:
                raise ShapeError(f"{path}: there is no such file") from None
            raise ShapeError(
                f"{path}: a folder without metadata.yaml, not a ROS 2 bag; give its .db3 or .mcap file"
            ) from None
        except (OSError, ValueError) as problem:
            raise ShapeError(f"{file}: {problem}") from None


def _ask(child: Child, path: Path, question: Any) -> dict[str, Any]:
    found: dict[str, Any] = child.ask(question)
    if "missing" in found:
        name = str(found["missing"]).partition(".")[0]
        package = MISSING.get(name, name)
        raise MissingDependency(f"{path}: needs {package}: pip install 'robokit[logs]'")
    if "problem" in found:
        raise ShapeError(f"{path}: cannot be read as a bag: {one_line(str(found['problem']), 300)}")
    return found


def _wanted(recording: Recording, topics: tuple[str, ...]) -> set[str]:
    """The topics to read; ShapeError for one that is not there, or none that has states of joints."""
    kinds = recording.topics
    joints = {t for t, kind in kinds.items() if kind in bag_child.JOINTS or "JointState" in kind}
    for topic in topics:
        if topic not in kinds:
            near = nearest_names(topic, kinds) or sorted(joints)
            advice = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has " + _topics(kinds)
            raise ShapeError(f"topic: {recording.source} has no topic {topic!r}; {advice}")
    if not joints and not topics:
        raise ShapeError(
            f"{recording.source}: no topic has states of joints (sensor_msgs/JointState, "
            "control_msgs/DynamicJointState, foxglove.JointStates); " + _topics(kinds)
        )
    others = {t for t, kind in kinds.items() if kind in bag_child.POSES}
    return (set(topics) or joints) | others | _descriptions(kinds)


def _topics(kinds: dict[str, str]) -> str:
    if not kinds:
        return "it has no topics at all"
    topics = (f"{topic} ({kind or 'no type'})" for topic, kind in sorted(kinds.items()))
    return f"its topics: {listed(topics, MOST_TOPICS)}"


def _read(child: Child, path: Path, recording: Recording, topics: set[str], progress: bool) -> None:
    """Add the messages of some topics to a recording."""
    _ask(child, path, ("read", sorted(topics)))
    bar = None
    if progress:
        from tqdm import tqdm

        bar = tqdm(total=1.0, desc="reading", leave=False, file=sys.stderr, bar_format=BAR)
    skipped: Counter[tuple[str, str]] = Counter()
    unstamped: Counter[str] = Counter()
    done, share = False, 0.0
    while not done:
        found = _ask(child, path, ("next", MESSAGES))
        done = found["done"]
        if bar is not None:
            bar.update(max(0.0, found["share"] - share))
        share = max(share, found["share"])
        for topic, names, number, stamps, received, values in found["blocks"]:
            unstamped[topic] += int(np.count_nonzero(stamps == 0))
            t = np.where(stamps == 0, received, stamps)
            recording.blocks.append(Block(topic, tuple(names), number, t, values))
        recording.poses += [Poses(*row) for row in found["poses"]]
        for _, text in found["texts"]:
            recording.description = text or recording.description
        for topic, why, n in found["skipped"]:
            skipped[topic, why] += n
        recording.notes += found["notes"]
    if bar is not None:
        bar.close()
    for (name, why), n in skipped.items():
        recording.notes.append(f"{name}: {n} message{'s' * (n > 1)} left out: {one_line(why, 200)}")
    for name, n in unstamped.items():
        if n:
            recording.notes.append(f"{name}: {n} messages without a stamp, taken at the time of recording")


# ==== joint stream ================================================================================
# States of joints that come in line by line, as JSON: what drives a live view.
#
# {"name": ["hip", "knee"], "position": [0.1, 0.2]}      as sensor_msgs/JointState in JSON
# {"hip": 0.1, "knee": 0.2}                              by joint
# {"pose": {"position": {...}, "orientation": {...}}}    of a floating base, alone or beside joints

LONGEST_LINE = 1 << 20  # characters of a line; longer ones are skipped in pieces
NAMED = 5  # bad lines that are named one by one; the others are counted
POLL = 0.02  # seconds between looks at a file that has not grown
STDIN = 0  # file descriptor of standard input
LONGEST_WAIT = 1.0  # seconds that a line waits for its stamp at most


class JointStream:
    """Configurations from lines of JSON. Joints keep their last positions until a line names them again.

    Args:
        robot: the robot.
        warn: takes a text about a bad line.

    Attributes:
        q: the latest configuration, (nq,).
        states: lines that were taken.
        skipped: lines that were not.

    Example:
        >>> from robokit.logs.recording import JointStream
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> stream = JointStream(robot, print)
        >>> stream.take('{"name": ["lower_joint"], "position": [0.5]}')
        True
        >>> stream.q
        array([0. , 0.5])
        >>> stream.take("[1, 2]")
        line 2 skipped: expected a JSON object, got a list
        False
    """

    def __init__(self, robot: Robot, warn: Callable[[str], None]) -> None:
        self.robot, self._warn = robot, warn
        self.q = robot.neutral()
        self.states = self.skipped = self._lines = 0
        self.stamp = 0
        self._places = {
            j.name: j.q_slice.start for j in robot.joints if j.q_slice.stop - j.q_slice.start == 1
        }
        self._followers = {j.name for j in robot.mimic_joints}
        self._strangers: set[str] = set()

    def take(self, line: str) -> bool:
        """Take a line; False, and a warning, where it is none. Empty lines are no lines."""
        self._lines += 1
        if not line.strip():
            return False
        try:
            q, stamp = self._read(line)
        except (ValueError, RecursionError) as problem:
            self.skipped += 1
            if self.skipped <= NAMED:
                self._warn(f"line {self._lines} skipped: {one_line(str(problem), 200)}")
            return False
        self.q, self.stamp = q, stamp
        self.states += 1
        return True

    def _read(self, line: str) -> tuple[np.ndarray, int]:
        if len(line) >= LONGEST_LINE:
            raise ValueError(f"longer than {LONGEST_LINE} characters")
        try:
            message = json.loads(line)
        except ValueError as problem:
            raise ValueError(f"no JSON ({problem})") from None
        if not isinstance(message, dict):
            raise ValueError(f"expected a JSON object, got a {type(message).__name__}")
        q, pose = self.q.copy(), message.pop("pose", None)
        if pose is not None:
            self._place(q, pose)
        rest = {
            k: x
            for k, x in message.items()
            if k not in ("header", "stamp", "timestamp", "child_frame_id", "twist")
        }
        if rest or pose is None:
            state = joint_state(message)
            positions = state.values[0]
            if positions is None:
                raise ValueError("no positions")
            self._set(q, state.names, positions)
        return q, stamp_of(message)

    def _set(self, q: np.ndarray, names: tuple[str, ...], positions: Any) -> None:
        known = [name for name in names if name in self._places or name in self._followers]
        strangers = [name for name in names if name not in self._places and name not in self._followers]
        for name, x in zip(names, positions, strict=True):
            if name in self._places:
                if not math.isfinite(x):
                    raise ValueError(f"position of {quoted(name)} is {x}")
                q[self._places[name]] = x
        if strangers and not known:
            near = nearest_names(strangers[0], self._places, 1)
            advice = (
                f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(list(self._places)[:6])}"
            )
            raise ValueError(f"no joint of the robot: {quoted(strangers[0])}{advice}")
        for name in set(strangers) - self._strangers:
            if len(self._strangers) < NAMED:
                self._warn(f"line {self._lines}: robot {self.robot.name!r} has no joint {quoted(name)}")
            self._strangers.add(name)

    def _place(self, q: np.ndarray, pose: Any) -> None:
        joint = next((j for j in self.robot.joints if j.name == FLOATING_BASE), None)
        if joint is None:
            raise ValueError("a pose, and the robot has a fixed base; --base floating moves it")
        pose = message_field(pose, "pose", pose)
        p, r = message_field(pose, "position"), message_field(pose, "orientation")
        try:
            numbers = [float(message_field(r, k)) for k in "wxyz"] + [
                float(message_field(p, k)) for k in "xyz"
            ]
        except TypeError:
            raise ValueError("pose: expected position x, y, z and orientation x, y, z, w") from None
        size = math.hypot(*numbers[:4])
        if not all(map(math.isfinite, numbers)) or not 0.9 < size < 1.1:
            raise ValueError("pose: expected finite numbers and a quaternion of unit length")
        q[joint.q_slice] = [*(x / size for x in numbers[:4]), *numbers[4:]]

    def follow(self, file: IO[str], stop: Callable[[], bool] = lambda: False) -> Iterator[np.ndarray]:
        """Configurations of the lines of an open file, as they come and not sooner than their stamps say.

        A regular file is followed as it grows until ``stop`` says so; a pipe ends, and so does standard
        input, also where it is a file.
        """
        grows = file.fileno() != STDIN and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        start: tuple[int, float] | None = None
        part = ""
        while not stop():
            line = file.readline(LONGEST_LINE)
            if not line:
                if not grows:
                    break
                time.sleep(POLL)
                continue
            part += line
            if not line.endswith("\n") and len(part) < LONGEST_LINE and grows:
                continue  # the rest of the line is still to be written
            taken, part = self.take(part), ""
            if not taken:
                continue
            if self.stamp:
                start = start or (self.stamp, time.monotonic())
                ahead = 1e-9 * (self.stamp - start[0]) - (time.monotonic() - start[1])
                if ahead > LONGEST_WAIT or ahead < -LONGEST_WAIT:  # a gap, or a clock that was reset
                    start = (self.stamp, time.monotonic())
                elif ahead > 0.0:
                    time.sleep(ahead)
            yield self.q
