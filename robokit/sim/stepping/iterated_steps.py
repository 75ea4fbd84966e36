"""Steps whose kick is iterated until it has settled to an accuracy (``Ground(accuracy=)``).

A step is a kernel with loops that calls the three parts of the kick (step/iterated_kick.py). Each state goes
on until it has settled, for itself: the result does not depend on what else is computed with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.engine import Kernel
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.loops.runs import Steps
from robokit.engine.signature import ArrayOf
from robokit.sim.motion import ledger
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.drift_kick_drift import kick
from robokit.sim.step.iterated_kick import Parts, finish_kick, memory_size
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.acceleration import Known, memory, mix
from robokit.sim.stepping.newton_steps import NewtonSteps
from robokit.spatial.control_flow import call, cond, for_range, while_loop
from robokit.spatial.scalars import Scalar, maximum, where

MOST_SWEEPS = 400
"""Sweeps of a step, at most."""

LARGE = 1e300
"""Of the first sweep, which has nothing to be measured by."""


def stepper(program: Program) -> Kernel | Steps | NewtonSteps:
    """What takes the steps of a program: its kernel, or the iteration."""
    if program.newton:
        return NewtonSteps(program)
    if not program.iterated:
        return program.kernel()
    return Steps(*_iteration(program))


def iterates(
    program: Program,
    dt: float,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
    carried: np.ndarray,
    given: Sequence[np.ndarray],
) -> list[np.ndarray]:
    """(y, memory) before the last sweep of the step from each state (T, ...); nothing without an accuracy."""
    if not program.iterated:
        return []
    steps, parameters, tables = stepper(program), program.parameters(dt), program.tables()
    assert isinstance(steps, Steps)
    entries, found = np.zeros(program.entries), (list[Any](), list[Any]())
    for row in zip(q, v, tau, carried, *given, strict=True):
        steps(*row[:3], entries, row[3], parameters, *row[4:], *tables)
        for rows, name in zip(found, ("y", "kept"), strict=True):
            rows.append(steps.work[name].copy())
    sizes = program.robot.nv, memory_size(program)
    return [np.array(rows).reshape(len(q), n) for rows, n in zip(found, sizes, strict=True)]


def kick_again(
    program: Program,
    p: Problem,
    q: Rows,
    v: Rows,
    tau: Rows,
    dt: Scalar,
    carried: Carried,
    settled: Sequence[Any],
) -> tuple[Rows, Settled]:
    """The kick of a step: the last sweep after the iterates that are given, or all of it without any."""
    if not settled:
        return kick(p, q, v, tau, dt, carried)
    y, memory = settled
    return finish_kick(p, q, v, tau, dt, carried, program.robot.split_v(y), memory)


def tally(program: Program, entries: np.ndarray, dt: float) -> dict[str, Any]:
    """Figures for a run's summary, of the ledgers at its end (..., size); NaN in those that failed."""
    if program.newton:
        own = entries.reshape(-1, entries.shape[-1])[:, : program.sums]
        last = own[np.isfinite(own).all(axis=1)]
        steps, iterations, most, missed = last[:, -len(ledger.NEWTON) :].T
        return {
            "contact_iterations_mean": float(iterations.sum() / max(1.0, steps.sum())),
            "contact_iterations_most": int(most.max(initial=0.0)),
            "residual_largest": float(last[:, ledger.AT["residual"]].max(initial=0.0)),
            "steps_not_settled": int(missed.sum()),
        }
    if not program.iterated:
        return {}
    assert program.ground is not None
    last = entries.reshape(-1, entries.shape[-1])[:, program.sums - len(ledger.ITERATION) : program.sums]
    steps, sweeps, most, missed, first, largest = last[np.isfinite(last).all(axis=1)].T
    late = first[first > 0.0]
    return {
        "accuracy": program.ground.accuracy,
        "steps_not_settled": int(missed.sum()),
        "first_not_settled": float(late.min() - 1.0) * dt if len(late) else None,
        "residual_largest": float(largest.max(initial=0.0)),
        "sweeps_mean": float(sweeps.sum() / max(1.0, steps.sum())),
        "sweeps_most": int(most.max(initial=0.0)),
    }


# ---- as kernels --------------------------------------------------------------------------------------


def _iteration(program: Program) -> tuple[LoopKernel, dict[str, int]]:
    """The kernel of a step, and what its sizes are; "y" and "kept" are before the last sweep."""
    parts = Parts(program)
    begin = parts.begin.signature
    sizes = dict(begin.arguments) | {"kept": memory_size(program), "most": MOST_SWEEPS}
    sizes |= {"ledger": program.entries, "at": program.sums - len(ledger.ITERATION)}
    sizes = {_size(name): n for name, n in sizes.items()}

    def make() -> LoopKernel:
        state, names = ("q", "v", "ledger", "carried"), [name for name, _ in begin.inputs]
        names.insert(3, "ledger")
        arrays = [ArrayOf(name, (_size(name),), "inout" if name in state else "in") for name in names]
        arrays += [ArrayOf(name, (_size(name),), shared=True) for name, _ in begin.tables]
        last = len(arrays)
        work: dict[str, str | int] = {
            "y": _size("v"),
            "kept": _size("kept"),
            "y_next": _size("v"),
            "kept_next": _size("kept"),
            "measures": 2,
        }
        work |= {f"{name}_next": _size(name) for name in state}
        arrays += [ArrayOf(name, (size,), "work") for name, size in work.items()] + memory(_size("v"))

        def text(*given: Any) -> None:
            n = {name.removeprefix("n_"): size for name, size in zip(sizes, given, strict=False)}
            a = {each.name: x for each, x in zip(arrays, given[len(sizes) :], strict=True)}
            before = a["q"], a["v"], a["tau"]
            after = [a[each.name] for each in arrays[4:last]]
            sweeps, residual = _sweeps(parts, n, a, before, after)
            ends = [a[f"{name}_next"] for name in state]
            call(parts.finish, *before, a["ledger"], a["y"], a["kept"], *after, *ends)
            for name, end in zip(state, ends, strict=True):
                _copy(end, a[name], n[name])
            _enter(a["ledger"], n["at"], sweeps, residual, residual <= a["parameters"][1])

        return LoopKernel("iterated_step", text, list(sizes), arrays, program.reproducible)

    return program.kept("iterated step", make), sizes


def _size(name: str) -> str:
    """Name of the size of an array."""
    return f"n_{name}"


def _sweeps(
    parts: Parts, n: dict[str, Any], a: dict[str, Any], state: Sequence[Any], after: Sequence[Any]
) -> tuple[Any, Scalar]:
    """Iterate y and what is kept; sweeps, and the measure of the last one, NaN where it is not finite."""
    y, kept, new, kept_next, measures = (a[k] for k in ("y", "kept", "y_next", "kept_next", "measures"))
    accuracy = a["parameters"][1]
    call(parts.begin, *state, *after, y, kept)

    def goes_on(sweeps: Any, residual: Scalar) -> Any:
        return (residual > accuracy) & (residual < math.inf) & (sweeps < n["most"])

    def sweep(sweeps: Any, residual: Scalar, *known: Any) -> Any:
        call(parts.again, *state, y, kept, *after, new, kept_next, measures)
        both = measures[0] + measures[1]
        residual = where(both < math.inf, maximum(measures[0], measures[1]), both)

        def mixed() -> Known:
            dy, df, y_before, f_before = (a[k.name] for k in memory("v"))
            return mix(n["v"], y, new, dy, df, y_before, f_before, Known(*known))

        def taken() -> Known:
            _copy(new, y, n["v"])
            return Known(*known)

        found = cond(goes_on(sweeps + 1, residual), mixed, taken)
        _copy(kept_next, kept, n["kept"])
        return sweeps + 1, residual, *found

    start = Known()
    found = while_loop(lambda sweeps, residual, *_: goes_on(sweeps, residual), sweep, 1, LARGE, *start)
    return found[0], found[1]


def _copy(source: Any, to: Any, size: Any) -> None:
    for_range(size, lambda k: to.__setitem__(k, source[k]))


def _enter(entries: Any, at: Any, sweeps: Any, residual: Scalar, settled: Any) -> None:
    """Enter a step into the ledger (ledger.ITERATION)."""
    steps, total, most, missed, first, largest = (entries[at + k] for k in range(len(ledger.ITERATION)))
    count = 0.0 + sweeps
    late = where(settled, first, where(first > 0.0, first, steps + 1.0))
    after = steps + 1.0, total + count, maximum(most, count), missed + where(settled, 0.0, 1.0), late
    for k, x in enumerate((*after, maximum(largest, residual))):
        entries[at + k] = x
