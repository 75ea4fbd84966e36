"""Logs that are tables: CSV with a header of joint names, and NumPy files.

A column is known by its header: "hip", "hip_position", "q/hip", "/joint_states/hip/velocity", "hip [deg]" or,
for joints by number, "q0", "dq[3]", "tau_7". A table without any names has q, v and tau in the robot's order.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robokit.errors import ShapeError, listed, nearest_names, quoted
from robokit.files import open_regular, read_arrays
from robokit.logs.bag_child import QUANTITIES
from robokit.logs.recording import Block, Recording

WORDS = {
    "position": {"position", "positions", "pos", "q", "qpos", "angle", "angles"},
    "velocity": {"velocity", "velocities", "vel", "v", "dq", "qd", "qdot", "qvel", "speed"},
    "effort": {"effort", "efforts", "eff", "tau", "torque", "torques", "trq", "force"},
}
"""What a quantity is called in headers, in lower case."""

FILLERS = {"est", "estimated", "measured", "meas", "actual", "act", "state", "states", "joint", "joints", "j"}
"""Words of a header that change nothing; "tau_J" is that of Franka's robots."""

OTHERS = {"cmd", "command", "commanded", "target", "desired", "des", "ref", "reference", "goal", "error"}
"""Words of a header that say it is no measurement."""

UNITS = {"rad": 1.0, "m": 1.0, "s": 1.0, "rads": 1.0, "nm": 1.0, "n": 1.0, "deg": math.pi / 180}
UNITS |= {"degree": UNITS["deg"], "degrees": UNITS["deg"], "degs": UNITS["deg"], "mm": 1e-3}
"""Units in a header, to SI."""

NANOSECONDS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
"""Units of time that a column may have."""

LATEST = 2.0**62
"""Stamps from this one on are invalid [ns]: it is in the year 2116."""

TIME = {"time", "t", "timestamp", "stamp", "timestamps", "times", "rosbagtimestamp", "elapsed", "clock"}
CLOCKS = [[word] for word in sorted(TIME)]
SECONDS, REST = {"sec", "secs", "seconds"}, {"nsec", "nsecs", "nanosec", "nanosecs", "nanoseconds"}
NAMES = {"names", "name", "joint_names", "joints", "joint"}

OWN = ("energy/", "momentum/", "contact_force/", "actuator_force/")
"""Beginnings of columns that ``Trajectory.to_csv`` writes and that follow from the others."""

SEPARATORS = r"[\s_./:\-\[\](){}|]+"


@dataclass(frozen=True)
class Coordinates:
    """The names that a table's columns may have: those of a robot.

    Attributes:
        q: of each coordinate, nq of them: the joint's, with "/qw" and so on where it has several.
        v: of each velocity, nv of them.
        joints: of the joints of one degree of freedom, in the order of v.
    """

    q: tuple[str, ...]
    v: tuple[str, ...]
    joints: tuple[str, ...]

    def of(self, width: int, quantity: str) -> tuple[str, ...] | None:
        """The names of an array of so many columns without names; None where none fit."""
        whole = self.q if quantity == "position" else self.v
        return whole if width == len(whole) else self.joints if width == len(self.joints) else None


@dataclass(frozen=True)
class Column:
    """A column that is understood.

    Attributes:
        name: of the joint or coordinate.
        quantity: "position", "velocity" or "effort".
        factor: to SI units.
        place: which one of the table it is.
    """

    name: str
    quantity: str
    factor: float
    place: int


def read_table(
    path: Path,
    coordinates: Coordinates,
    rate: float | None = None,
    time_unit: str | None = None,
    rename: Mapping[str, str] | None = None,
) -> Recording:
    """The samples of a CSV, .npz or .npy file.

    Args:
        coordinates: of the robot.
        rate: samples per second [1/s], of a table without times.
        time_unit: "s", "ms", "us" or "ns"; guessed, and noted, if None.
        rename: names in the table and what the robot calls them.

    Raises:
        ShapeError: not such a file, a damaged one, or one whose columns are not understood.
    """
    recording = Recording(str(path))
    table = _Table(recording, coordinates, rate, time_unit, rename or ())
    try:
        if path.suffix.lower() == ".npz":
            table.arrays(read_arrays(path))
        elif path.suffix.lower() == ".npy":
            table.array(_read_npy(path))
        else:
            with open_regular(path) as file:
                table.text(file.read())
    except ShapeError:
        raise
    except (OSError, ValueError, EOFError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise ShapeError(f"{path}: {reason}") from None
    return recording


def _read_npy(path: Path) -> np.ndarray:
    with open_regular(path) as file:
        return np.asarray(np.load(file, allow_pickle=False))


def words_of(header: str) -> list[str]:
    """The words of a header, in lower case."""
    return [word for word in re.split(SEPARATORS, header.strip().lower()) if word]


def column_of(header: str, names: Iterable[str]) -> tuple[str, str, float] | None:
    """What a header says: a name, a quantity and a factor to SI units; None where it is no measurement.

    Args:
        header: of the column.
        names: that are known, the longest first.
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
        found = next((k for k, known in WORDS.items() if word in known), None)
        if found is not None and quantity is None:
            quantity = found
        elif word in UNITS:
            factor = UNITS[word] if factor == 1.0 else factor
        elif word not in FILLERS:
            return None
    if quantity is None and before:
        quantity = next((k for word in before[::-1] for k, known in WORDS.items() if word in known), None)
    return quantity or "position", factor


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
    quantity = next((k for k, known in WORDS.items() if words[-1] in known), None)
    return None if quantity is None else (quantity, int(found[2]))


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
            rows = _rows(
                self.recording,
                text,
                delimiter,
                list(range(len(cells))),
                [f"column {k}" for k in range(len(cells))],
                start,
            )
            self.array(rows)
            return
        body = text.index("\n", start) + 1 if "\n" in text[start:] else len(text)
        columns, times = self._columns(cells, self._names_in_rows(cells, text[body:], delimiter))
        if not text[body:].strip():
            raise ShapeError(f"{self.recording.source}: a header without any row")
        places = sorted({c.place for c in columns} | {place for place, _ in times})
        rows = _rows(self.recording, text, delimiter, places, cells, body)
        at = {place: rows[:, k] for k, place in enumerate(places)}
        t = self._times([(at[place], cells[place], unit) for place, unit in times], len(rows))
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
        rest = [
            cell
            for place, cell in enumerate(cells)
            if place not in taken and cell and not cell.startswith(OWN) and words_of(cell)[-1:] not in CLOCKS
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
                f"{self.recording.source}: {width} {what} without names; the robot has {len(whole)} and "
                f"{len(self.coordinates.joints)} joints of one degree of freedom; give names, a row a sample"
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
        """Take in arrays by name: times (T,), names, and q, v, tau (T, n) or a column a joint."""
        names = next((tuple(map(str, a.ravel())) for key, a in arrays.items() if _names_key(key, a)), None)
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
        if rest and rest[-1] in TIME and not any(w in known for w in own[:-1] for known in WORDS.values()):
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
            for place, comment in comments[::-1]:
                if _numbers_only(bare) and len(comment.lstrip("# ").split(mark)) == len(bare.split(mark)):
                    return place, comment
            return start, line.rstrip("\r\n")
        start += len(line)
    return 0, ""


def _numbers_only(line: str) -> bool:
    return all(_is_number(cell) for cell in re.split(r"[,;\s]+", line.strip(",; \t")) if cell)


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
        return _slow_rows(recording, text, delimiter, places, headers, start)


EMPTY = {"", "nan", "none", "null", "na", "n/a", "-"}


def _slow_rows(
    recording: Recording, text: str, delimiter: str | None, places: list[int], headers: list[str], start: int
) -> np.ndarray:
    """As :func:`_rows`, for a table with empty cells, decimal commas or an incomplete last line."""
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


def _names_key(key: str, array: np.ndarray) -> bool:
    return key.lower() in NAMES and array.dtype.kind in "US" and array.ndim == 1


def _quantity(key: str) -> str | None:
    words = [word for word in words_of(key) if word not in FILLERS]
    if OTHERS.intersection(words):
        return None
    whole = "_".join(words)
    return next((k for k, known in WORDS.items() if whole in known or (words and words[-1] in known)), None)
