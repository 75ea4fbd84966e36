"""What rows hand to the step, packed for the page so that every bit comes back.

Most entries are the same in all rows, or a number times a parameter of the row, as inertias are times its
mass. So an entry is kept as the difference to that, counted in the float64 numbers between them: 0 or close
to it.
"""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from robokit.viewer.data.packing import deflated
from robokit.viewer.payload_keys import InputData, PartData

TRIED = 2048
"""Rows by which the factor of an entry is chosen."""


def in_planes(values: np.ndarray) -> str:
    """Numbers as deflated text, all lowest bytes first, then all second ones and so on."""
    array = np.ascontiguousarray(values)
    size = array.dtype.itemsize
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    content = np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, size).T)
    return base64.b64encode(zlib.compress(content.tobytes(), 6)).decode("ascii")


def packed_input(name: str, values: np.ndarray, factors: Sequence[np.ndarray]) -> InputData:
    """An input of the step for n rows.

    Args:
        name: of the input.
        values: (n, width).
        factors: numbers of the rows that entries may be proportional to, (n,) each.
    """
    values = np.ascontiguousarray(values, dtype=np.float64)
    base = values[0].copy()
    kept: dict[tuple[int, int], list[tuple[int, np.ndarray]]] = defaultdict(list)
    varying = np.flatnonzero((values.view(np.int64) != base.view(np.int64)).any(axis=0))
    for entry in varying.tolist():
        column = np.ascontiguousarray(values[:, entry])
        factor, start = _proportional(column, factors)
        if factor < 0:
            kept[-1, 8].append((entry, column))
            continue
        base[entry] = start
        with np.errstate(all="ignore"):
            guess = start * factors[factor]
        away = column.view(np.int64) - guess.view(np.int64)
        most = int(np.abs(away).max())
        if most < 2**7:
            kept[factor, 1].append((entry, away.astype(np.int8)))
        elif most < 2**15:
            kept[factor, 2].append((entry, away.astype(np.int16)))
        else:
            base[entry] = 0.0
            kept[-1, 8].append((entry, column))
    parts = [
        PartData(
            [int(entry) for entry, _ in rows],
            factor,
            size,
            in_planes(np.stack([column for _, column in rows], axis=1)),
        )
        for (factor, size), rows in kept.items()
    ]
    return InputData(name, deflated(base, "<f8"), parts)


def unpacked_input(given: InputData, factors: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """What :func:`packed_input` packed, (rows, width), as the page unpacks it."""
    base = np.frombuffer(zlib.decompress(base64.b64decode(given.base)), "<f8")
    out = np.tile(base, (rows, 1))
    for part in given.parts:
        dtype = np.dtype({1: "<i1", 2: "<i2", 8: "<f8"}[part.bytes])
        raw = np.frombuffer(zlib.decompress(base64.b64decode(part.values)), np.uint8)
        kept = np.ascontiguousarray(raw.reshape(part.bytes, -1).T).reshape(-1).view(dtype)
        table = kept.reshape(rows, len(part.entries))
        for j, entry in enumerate(part.entries):
            if part.bytes == 8:
                out[:, entry] = table[:, j]
            else:
                guess = base[entry] * factors[part.factor]
                out[:, entry] = (guess.view(np.int64) + table[:, j]).view(np.float64)
    return out


def factors_of(parameters: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Parameters that entries may be proportional to: finite numbers that differ, and 1 for all rows."""
    found = []
    for values in parameters.values():
        if values.dtype.kind == "f" and np.isfinite(values).all() and np.ptp(values) > 0:
            found.append(np.ascontiguousarray(values, dtype=np.float64))
    return found


def _proportional(column: np.ndarray, factors: Sequence[np.ndarray]) -> tuple[int, float]:
    """Place of the factor that a column is proportional to, to rounding, and the number before it; or -1."""
    few = column[:TRIED]
    if not np.isfinite(column).all() or (few == 0.0).any():
        return -1, 0.0
    for k, factor in enumerate(factors):
        some = factor[:TRIED]
        if (some == 0.0).any():
            continue
        ratio = few / some
        if np.ptp(ratio) <= 1e-13 * abs(ratio[0]):
            return k, float(np.median(ratio))
    return -1, 0.0
