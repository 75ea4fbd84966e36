"""Rows of a thread in the lanes of vectors, by the kernel of contact/step_in_lanes.py."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Mapping

import numpy as np

from robokit.contact.step_in_lanes import ARRAYS, LANES, kind_of_lanes, lanes_kernel, may_go_in_lanes
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.memory import address
from robokit.sim.contact_state import STEPS

Arrays = Mapping[str, np.ndarray]

CALL = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.c_void_p)
"""Of the driver "batch" (engine/loops/rows.py)."""

PAYS = 500_000
"""Steps of rows, in all calls of a process, by which lanes save the time of their compilation (3 to 5 s)."""

_alone: Counter[str] = Counter()

INPUTS = {a.name for a in ARRAYS if a.role == "in"}


def pays(rows: int, steps: int, shared: Arrays, reproducible: bool, dtype: str) -> bool:
    """Whether so many steps are sooner over in lanes, if they can go so."""
    kernel = lanes_kernel(kind_of_lanes(shared), reproducible, LANES[dtype])
    if rows < LANES[dtype]:
        return False
    _alone[kernel.name] += rows * steps
    return _alone[kernel.name] >= PAYS or kernel.at_hand("batch", dtype)


class Lanes:
    """What takes steps of rows in lanes.

    Args:
        shared: arrays of a step.
        rows: what each row has of its own, (rows, ...) each.
        sizes: of these arrays.
        reproducible: whether its results are the same bits everywhere.
        dtype: of its numbers.

    Raises:
        NoMachineCode: there is none, or the rows cannot go so.
    """

    def __init__(
        self, shared: Arrays, rows: Arrays, sizes: Mapping[str, int], reproducible: bool, dtype: str
    ) -> None:
        inputs = {name: x for name, x in rows.items() if name in INPUTS}
        if not may_go_in_lanes(shared, inputs):
            raise NoMachineCode("")
        kind = kind_of_lanes({**shared, **inputs})
        self.kernel, self.rows = lanes_kernel(kind, reproducible, LANES[dtype]), rows
        numbers = {**shared, **{name: x[0] for name, x in inputs.items()}}
        own = [not a.shared and a.name in rows for a in self.kernel.taken]
        self._held = [
            rows[a.name] if one else numbers[a.name] for a, one in zip(self.kernel.taken, own, strict=True)
        ]
        self._places = np.array([address(x) for x in self._held], np.int64)
        self._strides = np.array(
            [x.strides[0] if one else 0 for x, one in zip(self._held, own, strict=True)], np.int64
        )
        self._number = {a.name: k for k, a in enumerate(self.kernel.taken)}
        self._environment = self.kernel.environment(sizes, dtype, many=True)
        self._call = CALL(self.kernel.driver("batch", dtype))

    def run(self, a: int, b: int, given: Arrays, steps: int, done: np.ndarray) -> None:
        """Steps of rows a..b.

        Args:
            a, b: rows.
            given: inputs, (steps or 1, rows or 1, ...) each.
            steps: how many.
            done: gets how many each row took. Where these are fewer, its state is not finite, or ``needed``
                says that they are to be taken again.
        """
        places, strides = self._places + a * self._strides, self._strides.copy()
        jumps = np.zeros_like(strides)
        for name, x in given.items():
            k = self._number[name]
            places[k] = address(x)
            strides[k], jumps[k] = (x.strides[m] if x.shape[m] > 1 else 0 for m in (1, 0))
        counts = self.rows["ledger"][a:b, STEPS]
        before = counts.copy()
        words = places, strides, self._environment
        self._call(*map(address, words), 0, b - a, steps, address(jumps))
        self.kernel.looked_at(self._environment)
        done[:] = counts - before
        finite = np.isfinite(self.rows["q"][a:b]).all(axis=1) & np.isfinite(self.rows["v"][a:b]).all(axis=1)
        self.rows["needed"][a:b, 0] = finite & (done < steps)
