"""Steps that are divided until their error is below a tolerance.

A step of dt is taken in parts of n ticks; TICKS of them are dt. Each part is computed once in a single step
and once in two halves, and continues from the halves. The difference of the two is the error of the single
step; that of the halves is a quarter of it, or half in an impact:

    error = max over the coordinates of weight |q_halves - q_whole|

If the error is above the tolerance, the part is halved: its first half is then the single step. If it is
below a quarter of the tolerance, the next part is doubled, since its error is expected to be four times as
large; a part only begins at multiples of its own length. So all lengths are dt over powers of two, and follow
from the state alone. A part of two ticks is accepted in any case, and counted (`not_met`) if its error is
above the tolerance.

The step (step.py) is a kernel of its own, and the same machine code whoever calls it.

Source: step doubling as in Press et al., Numerical Recipes, 17.2; that configurations decide, as in CENIC (V.
Kurtz, A. Castro 2025).
Cost: three steps for a part, two of which advance the state; two for one that is rejected.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from robokit.contact.step import ARRAYS, step_kernel
from robokit.contact.vectors import put, write_row
from robokit.engine.loops.fields import kernel_of, real, whole
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import call, cond, for_range, while_loop
from robokit.spatial.scalars import Scalar, maximum, where

TICKS = 1024  # Of a step: a power of two, so that all lengths are exact. Halves are not shorter than one.

ENTRIES = ("rejected", "shortest", "longest", "not_met")
"""Of ``control``: parts that were not gone on from; shortest and longest halves [s]; parts of two ticks whose
error was above the tolerance."""

GONE_ON = 0.25  # share of the tolerance below which a part is doubled: errors grow as squares

KEPT = tuple(a for a in ARRAYS if a.role == "inout" and a.name != "needed")
"""What a part that is rejected must leave as it was."""

CONTROL = (
    real("accuracy", 1),  # tolerance of the error
    real("coordinate_weight", "nq"),  # 1 of angles, 2 of quaternions, 1 over the size of lengths
    real("control", len(ENTRIES), role="inout"),
    whole("part", 3, role="inout"),  # ticks of the next part, where it begins, steps of dt that were taken
    whole("parts", TICKS + 1, role="out"),  # how many parts the step took, and ticks of each
    real("part_dt", 1, role="work"),
    real("part_of_step", 2, role="work"),  # step_share of the part
    real("q_whole", "nq", role="work"),
    real("q_half", "nq", role="work"),
    *(replace(a, name=f"before_{a.name}", role="work") for a in KEPT),
)

STEP_TAKES = tuple(a for a in ARRAYS if a.role != "work")

CONTROLLED = (*STEP_TAKES, *CONTROL)  # all that a controlled step takes


@functools.cache
def controlled_kernel(reproducible: bool = False, springs: tuple[Any, ...] = ()) -> LoopKernel:
    """The kernel of a controlled step; it serves all robots. ``springs`` as in :func:`step_kernel`."""
    inner = step_kernel(reproducible, springs)
    return kernel_of(
        "contact_controlled_step" + "_of_springs" * bool(springs),
        lambda x: controlled_step(x, inner),
        CONTROLLED,
        sizes=inner.sizes,
        reproducible=reproducible,
    )


def controlled_step(x: Any, step: LoopKernel) -> None:
    """One step of dt, in parts."""
    put(x.part, 0, where(x.part[0] == 0, TICKS, x.part[0]))
    put(x.parts, 0, 0)
    parts_before = where(x.part[1] > 0, 1.0, 0.0)
    for_range(
        x.n_felt, lambda k: write_row(x.net_force, k, [parts_before * x.net_force[k, m] for m in range(3)])
    )

    def more(at: Any, n: Any, again: Any) -> Any:
        return (at < TICKS) & (x.needed[0] == 0)

    def trial(at: Any, n: Any, again: Any) -> tuple[Any, Any, Any]:
        _copy(x, "", "before_")
        cond(again > 0, lambda: None, lambda: _whole(x, step, at, n))
        half = n // 2
        _take(x, step, at, half)
        _note(x.q, x.q_half, x.nq)
        _take(x, step, at + half, half)
        error = _error(x)
        met = error <= x.accuracy[0]
        good = (met | (n <= 2)) & (x.needed[0] == 0)
        cond(good, lambda: _accept(x, n, met), lambda: _reject(x))
        now = where(good, at + n, at)
        grown = 2 * n
        grows = (error <= GONE_ON * x.accuracy[0]) & (now // grown * grown == now) & (grown <= TICKS)
        longer = where(grows, grown, n)
        shorter = where(x.needed[0] == 0, half, n)  # where there was no place it is the same part again
        return now, where(good, longer, shorter), where(good, 0, 1)

    at, n, _ = while_loop(more, trial, x.part[1], x.part[0], 0)
    fits = x.needed[0] == 0
    put(x.part, 0, n)
    put(x.part, 1, where(fits, 0, at))
    put(x.part, 2, x.part[2] + where(fits, 1, 0))


def _take(x: Any, step: LoopKernel, at: Any, n: Any) -> None:
    """Take a step of n ticks that begins after so many ticks."""
    share = (0.0 + n) * (1.0 / TICKS)
    put(x.part_dt, 0, x.dt[0] * share)
    put(x.part_of_step, 0, share)
    put(x.part_of_step, 1, 0.5 * share)
    given = {"dt": x.part_dt, "step_share": x.part_of_step}
    call(
        step,
        *(getattr(x, size) for size in step.sizes),
        *(given.get(a.name, getattr(x, a.name)) for a in STEP_TAKES),
    )


def _whole(x: Any, step: LoopKernel, at: Any, n: Any) -> None:
    _take(x, step, at, n)
    _note(x.q, x.q_whole, x.nq)
    _copy(x, "before_", "")


def _accept(x: Any, n: Any, met: Any) -> None:
    half, count = x.dt[0] * ((0.0 + n) * (0.5 / TICKS)), x.parts[0]
    put(x.parts, count + 1, n)
    put(x.parts, 0, count + 1)
    shortest = x.control[1]
    put(x.control, 1, where((shortest > 0.0) & (shortest < half), shortest, half))
    put(x.control, 2, maximum(x.control[2], half))
    put(x.control, 3, x.control[3] + where(met, 0.0, 1.0))


def _reject(x: Any) -> None:
    """Reject a part: its first half becomes the single step of the next part."""
    _copy(x, "before_", "")
    _note(x.q_half, x.q_whole, x.nq)
    put(x.control, 0, x.control[0] + where(x.needed[0] == 0, 1.0, 0.0))


def _error(x: Any) -> Scalar:
    """The error as above; not a number if a state is not finite."""

    def coordinate(k: Any, most: Scalar) -> Scalar:
        off = x.coordinate_weight[k] * abs(x.q[k] - x.q_whole[k])
        return where(off <= most, most, off)

    return for_range(x.nq, coordinate, 0.0)


def _note(source: Any, to: Any, n: Any) -> None:
    for_range(n, lambda k: put(to, k, source[k]))


def _copy(x: Any, source: str, to: str) -> None:
    """Copy the state that a step passes on, between arrays whose names have these two prefixes."""
    for a in KEPT:
        _copy_array(a, getattr(x, source + a.name), getattr(x, to + a.name))


def _copy_array(a: ArrayOf, source: Any, to: Any) -> None:
    rows, *columns = to.shape

    def copy(k: Any) -> None:
        if columns:
            for c in range(columns[0]):
                put(to, (k, c), source[k, c])
        else:
            put(to, k, source[k])

    for_range(rows, copy)
