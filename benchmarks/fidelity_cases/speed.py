"""Speed at equal error."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.falls import FINEST, apart, ours, starts, theirs
from fidelity_cases.peer import Peer
from fidelity_cases.table import Found, Look, case
from robokit.engine.backend import llvm

STEPS = (4e-3, 2e-3, 1e-3, 0.5e-3, 0.25e-3, 0.125e-3)
END, EVERY = 0.5, 0.02
ROBOTS = (("humanoid", "humanoid"), ("G1", s.G1))


@case("speed", "Speed", "Speed at equal error")
def speed(look: Look) -> Found:
    """Falls of half a second with the same shapes; self-collision is off in both. The median error of the
    centre of mass at the end of each program against its own falls at 1/16 ms says which step robokit may
    take to be as exact as MuJoCo at 1 ms (and 2 ms). Measured: simulated seconds a second of processor
    time: robokit's over MuJoCo's. Rollouts are of 128 rows on one thread; single falls record every 5 ms,
    and their steps are timed.
    """
    found = Found()
    wide = llvm.vector_width() >= 8
    for label, name in ROBOTS[: look.some(2, 1)]:
        rows = look.some(60, 6)
        robot, q0, v0 = starts(name, rows)
        mine = _errors(ours, name, rows, STEPS)
        if not look.peer:
            found.notes.append("MuJoCo is not there.")
            return found
        there = (2e-3, 1e-3) if not look.quick else (1e-3,)
        them = {stiff: _errors(partial(theirs, stiff=stiff), name, rows, there) for stiff in (False, True)}
        for dt, error in mine.items():
            soft, hard = (1e3 * them[k][dt] if dt in them[k] else None for k in (False, True))
            found.add(f"{label}: error at {1e3 * dt:g} ms", "mm", 1e3 * error, mujoco=soft, stiff=hard)
        for stiff, dt in ((False, 1e-3), (True, 1e-3), (False, 2e-3)):
            if dt not in there:
                continue
            error = them[stiff][dt]
            equal, reached = _step_of(mine, error), min(mine.values()) <= error
            ways = {
                "rollout": (_rollout(robot, q0, v0, equal), _rollout_there(robot, q0, v0, dt, stiff)),
                "single": (_single(robot, q0, v0, equal), _single_there(robot, q0, v0, dt, stiff)),
            }
            which = f"{label}, as exact as {'stiff ' * stiff}MuJoCo at {1e3 * dt:g} ms"
            found.add(f"{which}: step" + ", still less exact" * (not reached), "ms", 1e3 * equal)
            for way, (mine_run, their_run) in ways.items():
                a, b = _race(mine_run, their_run, look.some(4, 2))
                least = {"rollout": 20.0 if wide else 12.0, "single": 4.0}[way] if dt == 1e-3 else None
                ratio = a / b if reached else 0.0
                found.add(f"{which}, {way}: times as fast", "", ratio, least=least)
                peer = {"stiff": b} if stiff else {"mujoco": b}
                found.add(f"{which}, {way}: simulated seconds a second", "", a, **peer)
        same = _race(_rollout(robot, q0, v0, 1e-3), _rollout_there(robot, q0, v0, 1e-3, False), 2)
        found.add(f"{label}, both at 1 ms, rollout: times as fast", "", same[0] / same[1])
        same = _race(_single(robot, q0, v0, 1e-3), _single_there(robot, q0, v0, 1e-3, False), 2)
        found.add(f"{label}, both at 1 ms, single: times as fast", "", same[0] / same[1])
    return found


def _errors(
    run: Callable[..., np.ndarray], name: str, rows: int, steps: tuple[float, ...]
) -> dict[float, float]:
    """Step -> median error of the centre of mass after half a second [m], beside the program itself."""
    robot, _, _ = starts(name, rows)
    fine = run(name, rows, FINEST, END, EVERY)
    centre = (apart(robot, run(name, rows, dt, END, EVERY), fine)[1][-1] for dt in steps)
    return {dt: float(np.nanmedian(errors)) for dt, errors in zip(steps, centre, strict=True)}


def _step_of(errors: dict[float, float], wanted: float) -> float:
    """The longest step with at most this error, between the measured ones; at most 4 ms."""
    steps = np.array(sorted(errors))
    logs = np.log([max(errors[dt], 1e-12) for dt in steps])
    rising = np.maximum.accumulate(logs)
    if np.log(wanted) >= rising[-1]:
        return float(steps[-1])
    return float(np.exp(np.interp(np.log(wanted), rising + 1e-9 * np.arange(len(steps)), np.log(steps))))


def _rollout(robot: rk.Robot, q0: Any, v0: Any, dt: float) -> Callable[[], float]:
    """A run of 128 rows that returns its simulated time."""
    k = np.arange(128) % len(q0)
    steps = round(END / dt)
    every = max(1, round(5e-3 / dt))

    def run() -> float:
        s.many(robot, q0[k], v0[k], steps=steps, dt=dt, ground=s.ground(), record_every=every, threads=1)
        return 128 * steps * dt

    return run


def _rollout_there(robot: rk.Robot, q0: Any, v0: Any, dt: float, stiff: bool) -> Callable[[], float]:
    import mujoco
    from mujoco.rollout import Rollout

    peer = Peer(robot, dt, stiff)
    full, steps = mujoco.mjtState.mjSTATE_FULLPHYSICS, round(END / dt)
    states = np.empty((128, mujoco.mj_stateSize(peer.model, full)))
    for k, state in enumerate(states):
        peer.start(q0[k % len(q0)], v0[k % len(q0)])
        mujoco.mj_getState(peer.model, peer.data, state, full)
    pool, data = Rollout(nthread=1), [mujoco.MjData(peer.model)]

    def run() -> float:
        pool.rollout(peer.model, data, states, nstep=steps)
        return 128 * steps * dt

    return run


def _single(robot: rk.Robot, q0: Any, v0: Any, dt: float) -> Callable[[], float]:
    """One fall of simulate, with its records, by the processor time that its steps take."""
    turn = iter(range(10**9))

    def run() -> float:
        k = next(turn) % len(q0)
        every = max(1, round(5e-3 / dt))
        options = s.alone({"ground": s.ground(), "record_every": every})
        with s.in_processor_time():
            t = s.fall(robot, q0[k], v0[k], duration=END, dt=dt, **options)
        run.seconds = t.summary["step_seconds"]  # type: ignore[attr-defined]
        return END

    return run


def _single_there(robot: rk.Robot, q0: Any, v0: Any, dt: float, stiff: bool) -> Callable[[], float]:
    peer, turn = Peer(robot, dt, stiff), iter(range(10**9))

    def run() -> float:
        k = next(turn) % len(q0)
        peer.start(q0[k], v0[k])
        peer.step(round(END / dt))
        return END

    return run


def _race(mine: Callable[[], float], them: Callable[[], float], repeats: int) -> tuple[float, float]:
    """Best simulated time over processor time of both, in turns; a run may say its time itself."""
    best = [0.0, 0.0]
    mine(), them()
    for _ in range(repeats):
        for k, run in enumerate((mine, them)):
            started = time.process_time()
            simulated = run()
            seconds = getattr(run, "seconds", time.process_time() - started)
            best[k] = max(best[k], simulated / seconds)
    return best[0], best[1]
