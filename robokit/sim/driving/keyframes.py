"""Keyframes: joint values at points in time, from a file or from arrays.

Files, by their ending; errors name the file, the line, the column and the joint:

    .csv    a header "time, joint, joint, ..." (a column "name" may be there too), then a row a keyframe
    .json   {"joints": [...], "keyframes": [{"time": 0, "name": "stand", "values": [...]}, ...]}; values may
            be a mapping from joints, and "joints" is then not needed
    .npz    arrays time (K,), joints (n,), values (K, n), and name (K,) if there are names
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.arguments import check_finite, not_a_robot, one_of, path_argument, real_array
from robokit.dataclass_tools import short_repr
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType, one_line, shown
from robokit.files import check_size, open_regular, read_arrays, read_regular
from robokit.model.robot import Robot

CURVES = ("linear", "cubic")


@dataclass(frozen=True, eq=False)
class Keyframes:
    """Values of named joints over time, interpolated between keyframes: targets of actuators.

    Values before the first and after the last keyframe are constant.

    Attributes:
        time: (K,) ascending [s].
        joints: n joint names.
        values: (K, n) [rad | m].
        name: of each keyframe, "" where it has none.
        curve: "linear", or "cubic": a spline with continuous accelerations, at rest at both ends.

    Example:
        >>> wave = rk.Keyframes(np.array([0.0, 1.0, 2.0]), ("upper_joint",), np.array([[0.0], [0.5], [0.0]]))
        >>> position, velocity = wave.at([0.0, 0.5, 1.0])
        >>> position.ravel()
        array([0.  , 0.25, 0.5 ])
    """

    time: np.ndarray
    joints: tuple[str, ...]
    values: np.ndarray
    name: tuple[str, ...] = ()
    curve: str = "cubic"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        one_of("curve", self.curve, CURVES)
        time = real_array("Keyframes(time=...)", self.time, "(K,)")
        values = real_array("Keyframes(values=...)", self.values, "(K, n)")
        if isinstance(self.joints, str) or not isinstance(self.joints, Iterable):
            raise WrongType("Keyframes(joints=...)", self.joints, "a sequence of joint names")
        joints = tuple(map(str, self.joints))
        if time.ndim != 1 or not len(time) or values.shape != (len(time), len(joints)):
            raise ShapeError(
                f"Keyframes: expected times (K,) and values (K, {len(joints)}) of {len(joints)} joints, got "
                f"{time.shape} and {values.shape}"
            )
        for label, given in (("time", time), ("values", values)):
            check_finite(f"Keyframes({label}=...)", given)
        if (np.diff(time) <= 0.0).any():
            k = int((np.diff(time) <= 0.0).argmax())
            raise ShapeError(
                f"Keyframes(time=...): expected ascending times, got {time[k]:g} s and then {time[k + 1]:g} s"
            )
        if len(set(joints)) < len(joints):
            twice = min(joint for joint, count in Counter(joints).items() if count > 1)
            raise ShapeError(f"Keyframes(joints=...): {shown(twice)} occurs twice")
        name = tuple(map(str, self.name)) or ("",) * len(time)
        if len(name) != len(time):
            raise ShapeError(f"Keyframes(name=...): expected {len(time)} names, got {len(name)}")
        for attribute, value in (("time", time), ("values", values), ("joints", joints), ("name", name)):
            object.__setattr__(self, attribute, value)

    @staticmethod
    def load(path: str | os.PathLike[str], robot: Robot | None = None, curve: str = "cubic") -> Keyframes:
        """Read a .csv, .json or .npz file.

        Args:
            path: the file.
            robot: if given, every joint must be one of its.
            curve: between the keyframes, "linear" or "cubic".

        Raises:
            ShapeError: a file that holds no keyframes; names the file, the line or the keyframe, the column
                and the joint.
            UnknownName: a joint that the robot does not have, or no such curve.
        """
        path = path_argument("path", path)
        time, joints, values, name = read(path)
        if robot is not None:
            if not isinstance(robot, Robot):
                raise not_a_robot(robot)
            known = set(robot.joint_names)
            for column, joint in enumerate(joints, 1):
                if joint not in known:
                    where = f"({os.fspath(path)}, joint {column} of {len(joints)})"
                    raise UnknownName("joint", joint, robot.joint_names, where)
        try:
            return Keyframes(time, joints, values, name, curve)
        except (InvalidValue, ShapeError) as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from None

    def at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values and their rates of change at the times t (T,): (T, n) each [rad | m; rad/s | m/s]."""
        t = np.clip(np.asarray(t, dtype=float), self.time[0], self.time[-1])
        if len(self.time) == 1:
            held = np.repeat(self.values, len(t), axis=0)
            return held, np.zeros_like(held)
        k = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2)
        h = np.diff(self.time)[k][:, None]
        s = (t - self.time[k])[:, None] / h
        a, b = self.values[k], self.values[k + 1]
        moving = ((t > self.time[0]) & (t < self.time[-1]))[:, None]
        if self.curve == "linear":
            return a + s * (b - a), np.where(moving, (b - a) / h, 0.0)
        u, v = (self._rates()[k + j] * h for j in (0, 1))
        c, d = 3.0 * (b - a) - 2.0 * u - v, 2.0 * (a - b) + u + v
        return a + s * (u + s * (c + s * d)), np.where(moving, (u + s * (2.0 * c + 3.0 * s * d)) / h, 0.0)

    def _rates(self) -> np.ndarray:
        """Rates of the cubic spline at the keyframes, zero at both ends, (K, n)."""
        K, h = len(self.time), np.diff(self.time)
        rates = np.zeros_like(self.values)
        if K == 2:
            return rates
        # Tridiagonal, and solved by plain arithmetic: LAPACK has other bits on other processors.
        slope = np.diff(self.values, axis=0) / np.square(h)[:, None]
        right, pivots = 3.0 * (slope[:-1] + slope[1:]), 2.0 / h[:-1] + 2.0 / h[1:]
        for k in range(1, K - 2):
            share = 1.0 / (h[k] * pivots[k - 1])
            pivots[k] -= share / h[k]
            right[k] -= share * right[k - 1]
        for k in range(K - 3, -1, -1):
            rates[k + 1] = (right[k] - rates[k + 2] / h[k + 1]) / pivots[k]
        return rates

    def configuration(self, robot: Robot, which: str | int = 0, q: Any = None) -> np.ndarray:
        """A keyframe as a configuration of the robot, (nq,).

        Args:
            robot: the robot.
            which: name or number of the keyframe.
            q: configuration whose other joints stay, (nq,); neutral by default.

        Raises:
            UnknownName: no such keyframe, or a joint that the robot does not have.
            ShapeError: no keyframe of that number.
        """
        if not isinstance(robot, Robot):
            raise not_a_robot(robot)
        if isinstance(which, str):
            known = [name for name in self.name if name]
            if which not in known:
                raise UnknownName("keyframe", which, known)
            which = self.name.index(which)
        if not isinstance(which, int | np.integer) or not -len(self.time) <= which < len(self.time):
            raise ShapeError(f"which: expected a name or a number below {len(self.time)}, got {shown(which)}")
        out = robot.neutral() if q is None else np.array(real_array("q", q, f"({robot.nq},)"), dtype=float)
        if out.shape != (robot.nq,):
            raise ShapeError(f"q: expected shape ({robot.nq},), got {out.shape}")
        for joint, value in zip(self.joints, self.values[which], strict=True):
            out[robot.joint(joint).q_slice] = value
        return out


# ---- files -------------------------------------------------------------------------------------------------


LARGEST_FILE = 256 << 20
"""Bytes of a .csv, which is read row by row, and of numbers in a .npz."""

LARGEST_JSON = 64 << 20
"""Bytes of a .json, which is in memory as a whole, as objects that are some times larger."""

MOST_ENTRIES = 4_000_000
"""Entries of a .json: each takes far more memory than its characters."""

LONGEST_ROW = 1 << 20
"""Characters of a row of a .csv; one of a humanoid has a thousand."""

MOST_JOINTS = 10_000
"""More than any robot has: names and columns beyond are those of another file."""

Table = tuple[np.ndarray, tuple[str, ...], np.ndarray, tuple[str, ...]]
"""Times (K,), n joints, values (K, n), K names."""


class _Wrong(ValueError):
    """What is wrong in a file, for a message after the file's name."""


def read(path: Path) -> Table:
    """Read a file by its ending.

    Raises:
        ShapeError: another ending, no such file, no regular or a damaged one, one that would take far more
            memory than keyframes do, or no keyframes in it.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ShapeError(f"{path}: expected a file of keyframes that ends in {', '.join(READERS)}")
    try:
        return reader(path)
    except _Wrong as error:
        raise ShapeError(f"{path}{error}") from None
    except UnicodeDecodeError:
        raise ShapeError(f"{path}: expected text in UTF-8") from None
    except OSError as error:
        raise ShapeError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ShapeError(f"{path}: {one_line(str(error), 300)}") from None


def _csv(path: Path) -> Table:
    with open_regular(path) as raw:
        check_size(path.stat().st_size, LARGEST_FILE)
        rows = _rows(raw)
        line, header = next(rows, (0, []))
        if not header:
            raise _Wrong(": expected a header 'time, joint, ...', found nothing")
        at, columns, named = _columns(line, header)
        time, values, names = array("d"), array("d"), []
        for line, row in rows:
            if len(row) != len(header):
                raise _Wrong(f", line {line}: expected {len(header)} columns, got {len(row)}")
            try:
                numbers = [float(row[k]) for k in (at, *columns)]
            except ValueError:
                numbers = [math.nan]
            if not all(map(math.isfinite, numbers)):
                bad = next(k for k in (at, *columns) if not _is_finite(row[k]))
                where = f", line {line}, column {bad + 1} ({shown(header[bad])})"
                raise _Wrong(f"{where}: expected a finite number, got {shown(row[bad])}")
            time.append(numbers[0])
            values.extend(numbers[1:])
            names.append("" if named is None else row[named])
    if not time:
        raise _Wrong(": expected at least one joint and one keyframe")
    joints = tuple(header[k] for k in columns)
    return np.array(time), joints, np.array(values).reshape(len(time), len(joints)), tuple(names)


def _rows(raw: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are neither empty nor remarks, with the line at which each ends."""
    text, left = io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""), LONGEST_ROW

    def lines() -> Iterator[str]:
        nonlocal left
        while piece := text.readline(left + 1):
            left -= len(piece)
            if left < 0:
                raise _Wrong(f", line {reader.line_num + 1}: a row of more than {LONGEST_ROW:,} characters")
            yield piece

    reader = csv.reader(lines(), skipinitialspace=True)
    try:
        for row in reader:
            left = LONGEST_ROW
            cells = [cell.strip() for cell in row]
            if any(cells) and not cells[0].startswith("#"):
                yield reader.line_num, cells
    except csv.Error as error:
        raise _Wrong(f", line {reader.line_num}: {error}") from None


def _columns(line: int, header: list[str]) -> tuple[int, list[int], int | None]:
    """Where the times, the joints' values and the names, if any, stand in a row."""
    if "time" not in header:
        raise _Wrong(f", line {line}: expected a column 'time' in the header, got {shown(header[:20])}")
    for name in ("time", "name"):
        if header.count(name) > 1:
            raise _Wrong(f", line {line}: expected one column {name!r}, got {header.count(name)}")
    columns = [k for k, name in enumerate(header) if name not in ("time", "name")]
    _check_joints(f", line {line}", len(columns))
    for k in columns:
        if not header[k]:
            raise _Wrong(f", line {line}, column {k + 1}: expected the name of a joint")
    if not columns:
        raise _Wrong(": expected at least one joint and one keyframe")
    return header.index("time"), columns, header.index("name") if "name" in header else None


def _check_joints(where: str, count: int) -> None:
    if count > MOST_JOINTS:
        raise _Wrong(f"{where}: {count:,} joints; at most {MOST_JOINTS:,} are read")


def _json(path: Path) -> Table:
    content = read_regular(path, LARGEST_JSON)
    entries = sum(map(content.count, (b",", b"[", b"{")))
    if entries > MOST_ENTRIES:
        raise _Wrong(f": {entries:,} entries; at most {MOST_ENTRIES:,} are read; write it as .npz")
    try:
        data = json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise _Wrong(f", line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _Wrong(": nested too deeply for keyframes") from None
    frames = data.get("keyframes") if isinstance(data, dict) else None
    if not isinstance(frames, list) or not frames or not all(isinstance(x, dict) for x in frames):
        raise _Wrong(": expected an object with a list 'keyframes' of objects")
    joints = data.get("joints")
    if joints is None:
        first = frames[0].get("values")
        joints = list(first) if isinstance(first, dict) else None
    if not isinstance(joints, list) or not joints or not all(isinstance(x, str) for x in joints):
        raise _Wrong(": expected 'joints', a list of joint names, or values that name them")
    _check_joints("", len(joints))
    time, values, names = array("d"), array("d"), []
    for k, frame in enumerate(frames):
        where = f", keyframe {k}"
        time.append(_number(f"{where}, 'time'", frame.get("time")))
        values.extend(_frame_values(where, joints, frame.get("values")))
        name = frame.get("name")
        if isinstance(name, list | dict):
            raise _Wrong(f"{where}, 'name': expected text, got {shown(name)}")
        names.append("" if name is None else str(name))
    return np.array(time), tuple(joints), np.array(values).reshape(len(time), len(joints)), tuple(names)


def _frame_values(where: str, joints: list[str], row: Any) -> list[float]:
    """The values of a keyframe in the order of the joints."""
    if isinstance(row, dict):
        for joint in (*(row.keys() - set(joints)), *(x for x in joints if x not in row)):
            raise _Wrong(f"{where}: expected a value for each of 'joints'; look at {shown(joint)}")
        row = [row[joint] for joint in joints]
    if not isinstance(row, list) or len(row) != len(joints):
        raise _Wrong(f"{where}: expected {len(joints)} 'values', got {shown(row)}")
    if all(isinstance(x, float) and math.isfinite(x) for x in row):
        return row
    return [_number(f"{where}, joint {shown(joint)}", x) for joint, x in zip(joints, row, strict=True)]


def _npz(path: Path) -> Table:
    try:
        arrays = read_arrays(path, ("time", "joints", "values", "name"))
    except ValueError as error:
        raise _Wrong(f": not an .npz file, as numpy.savez writes it ({one_line(str(error), 300)})") from None
    for name in ("time", "joints", "values"):
        if name not in arrays:
            raise _Wrong(f": expected an array {name!r}; it has {', '.join(arrays) or 'none'}")
    time, values, joints = arrays["time"], arrays["values"], arrays["joints"]
    names = arrays.get("name", np.zeros(0, str))
    if joints.dtype.kind != "U" or joints.ndim != 1 or names.dtype.kind != "U" or names.ndim > 1:
        raise _Wrong(": expected names as an array of text (n,) in 'joints' and 'name'")
    if values.ndim != 2 or values.dtype.kind not in "fiu" or time.dtype.kind not in "fiu":
        raise _Wrong(": expected numbers (K,) in 'time' and (K, n) in 'values'")
    _check_joints("", len(joints))
    K, n = values.shape
    if time.shape != (K,) or joints.shape != (n,) or names.size not in (0, K):
        raise _Wrong(
            f": expected times (K,), values (K, n), n joints and K names or none, got {time.shape}, "
            f"{values.shape}, {joints.shape} and {names.shape}"
        )
    check_size(8 * values.size, LARGEST_FILE)  # as float64, whatever it is in the file
    with np.errstate(over="ignore"):
        time, values = time.astype(float), values.astype(float)
    if not np.isfinite(values).all():
        k, j = divmod(int(np.isfinite(values).ravel().argmin()), n)
        raise _Wrong(f": values[{k}, {j}] (joint {shown(str(joints[j]))}) is not finite")
    return time, tuple(joints.tolist()), values, tuple(names.ravel().tolist())


def _number(where: str, given: Any) -> float:
    """A finite number of a file."""
    if isinstance(given, bool) or given is None or not _is_finite(given):
        raise _Wrong(f"{where}: expected a finite number, got {shown(given)}")
    return float(given)


def _is_finite(given: Any) -> bool:
    try:
        return math.isfinite(float(given))
    except (TypeError, ValueError, OverflowError):
        return False


READERS: dict[str, Callable[[Path], Table]] = {".csv": _csv, ".json": _json, ".npz": _npz}
"""By the ending of the file."""
