"""Throughput of whole batches, each program by the fastest way that it offers Python: states a second.

python benchmarks/throughput.py                     the robots of benchmarks/dynamics.py
python benchmarks/throughput.py humanoid --base floating

Pinocchio: a loop in Python, and its thread pool (ModelPool, rneaInParallel, abaInParallel). MuJoCo: a loop
of mj_inverse or mj_forward, and mujoco.rollout. Drake: a loop. A "free step" is one of 20 steps of 1 ms
without contact: MuJoCo's semi-implicit Euler (first order), robokit's "euler" (second order, energy kept).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import arguments_of, chosen, machine, minima, one_core, prepare_to_measure
from models import frictionless, in_pinocchio, states

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.engine.batch_calls import processors
from robokit.interop import MujocoAdapter

BATCH, ROWS, STEPS, DT = 4096, 256, 20, 1e-3
Calls = dict[str, dict[str, Callable[[], Any]]]  # by row ("inverse dynamics") and way ("Pinocchio, loop")


def looped(call: Callable[..., Any], out: np.ndarray, *rows: Any) -> Callable[[], np.ndarray]:
    """A loop in Python that calls for each row and keeps the results."""

    def run() -> np.ndarray:
        for k, given in enumerate(zip(*rows, strict=True)):
            out[k] = call(*given)
        return out

    return run


def with_robokit(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, threads: int) -> Calls:
    """Batches by so many threads."""
    who, found = f"robokit, {threads} thread{'s' * (threads > 1)}", {}
    for row, name in (("inverse dynamics", "rnea"), ("forward dynamics", "aba")):
        run, out = kernel(robot, name).batch, np.empty((len(q), robot.nv))
        found[row] = {who: partial(run, q, v, a, out=out, threads=threads)}
    free, start, speed = frictionless(robot), q[:ROWS], v[:ROWS]  # as MuJoCo's model without shapes
    options = {"dt": DT, "steps": STEPS, "record_every": STEPS, "integrator": "euler", "threads": threads}
    found["free step"] = {who: partial(rk.rollout, free, start, speed, **options)}
    return found


def with_pinocchio(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, threads: int) -> Calls:
    """The pool with so many threads; with one, the loop too."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    pq, pv, pa = (np.stack([f(x) for x in xs]) for f, xs in ((to.q, q), (to.v, v), (to.v, a)))
    found: Calls = {"inverse dynamics": {}, "forward dynamics": {}}
    rows = {"inverse dynamics": ("rnea", pin.rnea), "forward dynamics": ("aba", pin.aba)}
    columns = [np.asfortranarray(x.T) for x in (pq, pv, pa)]
    for row, (name, single) in rows.items():
        if threads == 1:
            found[row]["Pinocchio, loop"] = looped(
                partial(single, model, data), np.empty_like(pv), pq, pv, pa
            )
        if hasattr(pin, f"{name}InParallel"):
            pool, out = pin.ModelPool(model, threads), np.empty_like(columns[1])
            run = getattr(pin, f"{name}InParallel")
            found[row][f"Pinocchio, pool of {threads}"] = partial(run, threads, pool, *columns, out)
    return found


def with_mujoco(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, threads: int) -> Calls:
    """mujoco.rollout with so many threads; with one, loops too. Nothing where MuJoCo refuses the robot."""
    import mujoco
    from mujoco.rollout import Rollout
    from mujoco_model import model_without_shapes

    try:
        model = model_without_shapes(robot)
    except ValueError:
        return {}
    model.opt.timestep = DT
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    starts = np.empty((ROWS, mujoco.mj_stateSize(model, full)))
    for start, q0, v0 in zip(starts, q, v, strict=False):
        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = to.q(q0), to.v(q0, v0)
        mujoco.mj_getState(model, data, start, full)
    pool, datas = Rollout(nthread=threads), [mujoco.MjData(model) for _ in range(threads)]
    found: Calls = {
        "free step": {
            f"MuJoCo, rollout by {threads}": lambda: pool.rollout(model, datas, starts, nstep=STEPS)
        }
    }
    if threads == 1:

        def inverse(qpos: np.ndarray, qvel: np.ndarray, qacc: np.ndarray) -> np.ndarray:
            data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
            mujoco.mj_inverse(model, data)
            return data.qfrc_inverse

        def forward(qpos: np.ndarray, qvel: np.ndarray, force: np.ndarray) -> np.ndarray:
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, force
            mujoco.mj_forward(model, data)
            return data.qacc

        mq, mv, force = ([f(*x) for x in xs] for f, xs in (
            (to.q, zip(q, strict=True)), (to.v, zip(q, v, strict=True)), (to.v, zip(q, a, strict=True))
        ))  # fmt: skip
        ma, out = [to.a(*x) for x in zip(q, v, a, strict=True)], np.empty_like(v)
        found["inverse dynamics"] = {"MuJoCo, loop": looped(inverse, out, mq, mv, ma)}
        found["forward dynamics"] = {"MuJoCo, loop": looped(forward, out, mq, mv, force)}
    return found


def with_drake(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray, threads: int) -> Calls:
    """Loops; nothing with two threads, nor where Drake refuses the robot."""
    from drake_model import Drake, Refused

    if threads > 1:
        return {}
    try:
        drake = Drake(robot)
    except Refused:
        return {}
    calls, out = drake.calls(), np.empty_like(v)
    x = [drake.state(*each) for each in zip(q, v, strict=True)]
    da = [drake.a(*each) for each in zip(q, v, a, strict=True)]
    tau = [drake.force(*each) for each in zip(q, a, strict=True)]
    return {
        "inverse dynamics": {"Drake, loop": looped(calls["rnea"], out, x, da)},
        "forward dynamics": {"Drake, loop": looped(calls["aba"], out, x, tau)},
    }


WAYS = {"pinocchio": with_pinocchio, "mujoco": with_mujoco, "pydrake": with_drake}


def compare(name: str, base: str, seconds: float, found: dict[str, Any]) -> None:
    """Measure one robot, print its table and put states a second into ``found``, by row and way."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    q, v, a = states(robot, BATCH)
    print(f"\n{robot.name}, {base} base, nv {robot.nv}; states a second, batches of {BATCH}")
    print(f"  {'':<24}{'inverse dynamics':>20}{'forward dynamics':>20}{'free step':>20}")
    for threads in (1, 2):
        if threads > processors():
            print("  this process may use one processor only: two threads are not measured")
            break
        with one_core(threads == 1):
            calls = with_robokit(robot, q, v, a, threads)
            for module, way in WAYS.items():
                if importlib.util.find_spec(module):
                    for row, ways in way(robot, q, v, a, threads).items():
                        calls[row] |= ways
            best: dict[str, dict[str, float]] = {}
            for row, ways in calls.items():
                count = ROWS * STEPS if row == "free step" else BATCH
                for who, x in minima(ways, 2 * seconds).items():
                    best.setdefault(who, {})[row] = found.setdefault(row, {})[who] = count / x
            for who, rates in best.items():
                cells = (f"{rates[row]:20,.0f}" if row in rates else " " * 20 for row in calls)
                print(f"  {who:<24}{''.join(cells)}")


def main() -> None:
    """Parse, measure, print."""
    from dynamics import DEFAULT

    arguments = arguments_of(__doc__, 1.0)
    print(machine())
    for name, base in chosen(arguments, DEFAULT):
        compare(name, base, arguments.seconds, {})


if __name__ == "__main__":
    prepare_to_measure()
    main()
