"""The files of keyframes: .csv, .json and .npz. Errors name the file, the line, the column and the joint."""

from __future__ import annotations

import csv
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import ShapeError, shown

LARGEST_FILE = 256 * 2**20
"""Bytes of a file of keyframes."""

Table = tuple[np.ndarray, tuple[str, ...], np.ndarray, tuple[str, ...]]
"""Times (K,), n joints, values (K, n), K names."""


def read(path: Path) -> Table:
    """Read a file by its ending.

    Raises:
        ShapeError: another ending, no such file, or no keyframes in it.
    """
    readers = {".csv": _csv, ".json": _json, ".npz": _npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ShapeError(f"{path}: expected a file of keyframes that ends in {', '.join(readers)}")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ShapeError(f"{path}: larger than {LARGEST_FILE // 2**20} MiB; no file of keyframes is")
        return reader(path)
    except OSError as error:
        raise ShapeError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ShapeError(f"{path}: expected text in UTF-8") from None


def _csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, skipinitialspace=True)
        try:
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
        except csv.Error as error:
            raise ShapeError(f"{path}, line {reader.line_num}: {error}") from None
    rows = [(line, row) for line, row in rows if any(row) and not row[0].startswith("#")]
    if not rows:
        raise ShapeError(f"{path}: expected a header 'time, joint, ...', found nothing")
    line, header = rows[0]
    if "time" not in header:
        raise ShapeError(f"{path}, line {line}: expected a column 'time' in the header, got {shown(header)}")
    for name in ("time", "name"):
        if header.count(name) > 1:
            raise ShapeError(f"{path}, line {line}: expected one column {name!r}, got {header.count(name)}")
    columns = [k for k, name in enumerate(header) if name not in ("time", "name")]
    if any(not header[k] for k in columns):
        k = next(k for k in columns if not header[k])
        raise ShapeError(f"{path}, line {line}, column {k + 1}: expected the name of a joint")
    if not columns or len(rows) < 2:
        raise ShapeError(f"{path}: expected at least one joint and one keyframe")
    time, values, names = [], [], []
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ShapeError(f"{path}, line {line}: expected {len(header)} columns, got {len(row)}")
        where = {k: f"{path}, line {line}, column {k + 1} ({header[k]!r})" for k in range(len(row))}
        at = header.index("time")
        time.append(_number(where[at], row[at]))
        values.append([_number(where[k], row[k]) for k in columns])
        names.append(row[header.index("name")] if "name" in header else "")
    return np.array(time), tuple(header[k] for k in columns), np.array(values), tuple(names)


def _json(path: Path) -> Table:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ShapeError(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise ShapeError(f"{path}: nested too deeply for keyframes") from None
    frames = data.get("keyframes") if isinstance(data, dict) else None
    if not isinstance(frames, list) or not frames or not all(isinstance(x, dict) for x in frames):
        raise ShapeError(f"{path}: expected an object with a list 'keyframes' of objects")
    joints = data.get("joints")
    if joints is None:
        first = frames[0].get("values")
        joints = list(first) if isinstance(first, dict) else None
    if not isinstance(joints, list) or not joints or not all(isinstance(x, str) for x in joints):
        raise ShapeError(f"{path}: expected 'joints', a list of joint names, or values that name them")
    time, values, names = [], [], []
    for k, frame in enumerate(frames):
        where = f"{path}, keyframe {k}"
        time.append(_number(f"{where}, 'time'", frame.get("time")))
        row = frame.get("values")
        if isinstance(row, list) and len(row) == len(joints):
            row = dict(zip(joints, row, strict=True))
        if not isinstance(row, dict):
            raise ShapeError(f"{where}: expected {len(joints)} 'values', got {shown(row)}")
        for joint in (*row, *joints):
            if joint not in joints or joint not in row:
                raise ShapeError(f"{where}: expected a value for each of 'joints'; look at {shown(joint)}")
        values.append([_number(f"{where}, joint {joint!r}", row[joint]) for joint in joints])
        names.append(str(frame.get("name", "")))
    return np.array(time), tuple(joints), np.array(values), tuple(names)


def _npz(path: Path) -> Table:
    if not zipfile.is_zipfile(path):
        raise ShapeError(f"{path}: not an .npz file, as numpy.savez writes it")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name in ("time", "joints", "values", "name")}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise ShapeError(f"{path}: not an .npz file of plain arrays ({error})") from None
    for name in ("time", "joints", "values"):
        if name not in arrays:
            raise ShapeError(f"{path}: expected an array {name!r}; it has {', '.join(arrays) or 'none'}")
    time, values, joints = arrays["time"], arrays["values"], arrays["joints"]
    names = arrays.get("name", np.zeros(0, str))
    if joints.dtype.kind != "U" or joints.ndim != 1 or names.dtype.kind != "U" or names.ndim > 1:
        raise ShapeError(f"{path}: expected names as an array of text (n,) in 'joints' and 'name'")
    if values.ndim != 2 or values.dtype.kind not in "fiu" or time.dtype.kind not in "fiu":
        raise ShapeError(f"{path}: expected numbers (K,) in 'time' and (K, n) in 'values'")
    bad = np.argwhere(~np.isfinite(values.astype(float)))
    if len(bad):
        k, j = bad[0]
        joint = str(joints[j]) if j < len(joints) else "?"
        raise ShapeError(f"{path}: values[{k}, {j}] (joint {joint!r}) is not finite")
    return time.astype(float), tuple(joints.tolist()), values.astype(float), tuple(names.ravel().tolist())


def _number(where: str, text: Any) -> float:
    """A finite number of a file."""
    try:
        number = math.nan if isinstance(text, bool) or text is None else float(text)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ShapeError(f"{where}: expected a finite number, got {shown(text)}")
    return number
