"""What rows hand to the step, packed for the page so that every bit comes back.

Most entries are the same in all rows, or a number times a parameter of the row, as inertias are times its
mass. So an entry is kept as the difference to that, counted in the float64 numbers between them: 0 or close
to it. Rows come in blocks, for all of them unpacked may be more than the memory holds.
"""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robokit.viewer.data.packing import deflated
from robokit.viewer.payload_keys import InputData, PartData


def in_planes(values: np.ndarray) -> str:
    """Numbers as deflated text, all lowest bytes first, then all second ones and so on."""
    array = np.ascontiguousarray(values)
    size = array.dtype.itemsize
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    content = np.ascontiguousarray(little.reshape(-1).view(np.uint8).reshape(-1, size).T)
    return base64.b64encode(zlib.compress(content.tobytes(), 6)).decode("ascii")


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
        """An entry that begins to differ in this block; all rows before had that of the base."""
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


def unpacked_input(given: InputData, factors: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """What :class:`PackedInput` packed, (rows, width), as the page unpacks it."""
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
