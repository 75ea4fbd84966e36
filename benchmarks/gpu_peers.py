"""MuJoCo Warp and MJX on a card, each as its manual recommends: a process of its own, told when to measure.

``benchmarks/gpu.py`` starts it. A line of JSON for each result; between compiling and measuring it waits for
a line, so that two programs never use the card at the same time.

Both get the same robots and shapes (:class:`fidelity_cases.peer.Peer`) in single precision. MuJoCo Warp runs
from a CUDA graph with room for the contacts that MuJoCo counted in the same falls, and says if that was too
little. MJX is one compiled loop over vectorised steps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np

DT = 1e-3
REPEATS = 2
MOST = 2.0
"""Measuring time of one figure [s]; a fall that takes longer is cut, and the number of its steps is said."""


def say(**what: Any) -> None:
    """One result."""
    print(json.dumps(what), flush=True)


def fallen(name: str, collide: bool, steps: int) -> tuple[Any, np.ndarray, np.ndarray, int, int]:
    """MuJoCo's model, states of falls in its terms, and most contacts and constraint rows in what follows."""
    from fidelity_cases.peer import Peer
    from gpu import load, moments

    import robokit as rk

    robot = load(name)
    peer = Peer(robot, DT, pairs=rk.collision_pairs(robot) if collide else None)
    q, v = moments(name)
    contacts, constraints = 0, 0
    for state in list(zip(q, v, strict=True))[::7]:
        peer.start(*state)
        for _ in range(steps):
            peer.step()
            contacts, constraints = max(contacts, peer.data.ncon), max(constraints, peer.data.nefc)
    qvel = np.array([peer.to.v(*state) for state in zip(q, v, strict=True)], np.float32)
    return peer.model, np.array([peer.to.q(x) for x in q], np.float32), qvel, contacts, constraints


class Warp:
    """MuJoCo Warp."""

    name = "MuJoCo Warp"

    def __init__(self, robot: str, collide: bool, steps: int) -> None:
        import mujoco
        import mujoco_warp as mjw
        import warp as wp

        wp.config.log_level = wp.LOG_WARNING
        self.steps = steps
        self.mjm, self.q, self.v, contacts, constraints = fallen(robot, collide, steps)
        self.data = mujoco.MjData(self.mjm)
        self.data.qpos[:] = self.q[0]
        mujoco.mj_forward(self.mjm, self.data)
        self.model = mjw.put_model(self.mjm)
        # Bodies that are near take room too before it is known that they do not touch.
        self.room = {"nconmax": 2 * contacts + 16, "njmax": constraints + constraints // 2 + 16}

    def compile(self, worlds: int) -> None:
        """Take a step."""
        import mujoco_warp as mjw
        import warp as wp

        mjw.step(self.model, mjw.put_data(self.mjm, self.data, nworld=32, **self.room))
        wp.synchronize()

    def rate(self, worlds: int) -> dict[str, Any]:
        """Steps a second of so many worlds, the best of the repeats."""
        import mujoco_warp as mjw
        import warp as wp

        d = mjw.put_data(self.mjm, self.data, nworld=worlds, **self.room)
        q, v = (np.resize(x, (worlds, x.shape[1])) for x in (self.q, self.v))

        def reset() -> None:
            d.qpos.assign(q)
            d.qvel.assign(v)
            d.qacc_warmstart.zero_()
            wp.synchronize()

        reset()
        mjw.step(self.model, d)
        with wp.ScopedCapture() as captured:
            mjw.step(self.model, d)
        best, steps = 0.0, self.steps
        for _ in range(REPEATS):
            reset()
            started = time.perf_counter()
            for k in range(steps):
                wp.capture_launch(captured.graph)
                if k % 50 == 49:
                    wp.synchronize()
                    if time.perf_counter() - started > MOST:
                        steps = k + 1
                        break
            wp.synchronize()
            spent = time.perf_counter() - started
            best = max(best, worlds * steps / spent)
            if spent > MOST / 2:
                break
        x = d.qpos.numpy()
        lost = int((d.overflow.numpy() != 0).sum()) if hasattr(d, "overflow") else None
        return {"rate": best, "steps": steps, "not_finite": int((~np.isfinite(x).all(axis=1)).sum()),
                "dropped_contacts": lost, **self.room}  # fmt: skip


class Mjx:
    """MJX."""

    name = "MJX"

    def __init__(self, robot: str, collide: bool, steps: int) -> None:
        from mujoco import mjx

        self.steps, self.chunk = steps, min(50, steps)
        self.mjm, self.q, self.v, *_ = fallen(robot, collide, steps)
        self.model = mjx.put_model(self.mjm, impl="jax")
        self.run: Any = None

    def start(self, worlds: int) -> Any:
        """Data of so many worlds."""
        import jax
        from mujoco import mjx

        data = mjx.make_data(self.mjm, impl="jax")
        both = (jax.numpy.asarray(np.resize(x, (worlds, x.shape[1]))) for x in (self.q, self.v))
        return jax.vmap(lambda qpos, qvel: data.replace(qpos=qpos, qvel=qvel))(*both)

    def compile(self, worlds: int) -> None:
        """Compile for so many worlds: the size is part of the code."""
        import jax
        from mujoco import mjx

        step = jax.vmap(mjx.step, in_axes=(None, 0))

        def some(model: Any, data: Any) -> Any:
            return jax.lax.fori_loop(0, self.chunk, lambda _, d: step(model, d), data)

        self.run = jax.jit(some).lower(self.model, self.start(worlds)).compile()

    def rate(self, worlds: int) -> dict[str, Any]:
        """Steps a second of so many worlds."""
        import jax

        best, steps = 0.0, self.steps
        for _ in range(REPEATS):
            data = jax.block_until_ready(self.start(worlds))
            started = time.perf_counter()
            for k in range(0, steps, self.chunk):
                data = jax.block_until_ready(self.run(self.model, data))
                if time.perf_counter() - started > MOST:
                    steps = k + self.chunk
                    break
            spent = time.perf_counter() - started
            best = max(best, worlds * steps / spent)
            if spent > MOST / 2:
                break
        bad = int((~np.isfinite(np.asarray(data.qpos)).all(axis=1)).sum())
        return {"rate": best, "steps": steps, "not_finite": bad}


PEERS = {
    Warp.name: (Warp, ("mujoco-warp", "warp-lang", "mujoco")),
    Mjx.name: (Mjx, ("mujoco-mjx", "jax", "mujoco")),
}


def main() -> None:
    """Compile what the first argument, JSON, asks for; wait for a line; measure. What fails is said."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    asked = json.loads(sys.argv[1])
    kind: Any
    kind, packages = PEERS[asked["who"]]
    row = {key: asked[key] for key in ("who", "robot", "collide")}
    say(versions={name: version(name) for name in packages})
    started = time.perf_counter()
    try:
        peer = kind(asked["robot"], asked["collide"], asked["steps"])
        peer.compile(asked["worlds"][0])
    except Exception as problem:
        say(**row, failed=f"{type(problem).__name__}: {problem}"[:300])
        return
    first = round(time.perf_counter() - started, 1)
    say(ready=True)
    sys.stdin.readline()
    for worlds in asked["worlds"]:
        try:
            say(**row, first=first, worlds=worlds, **peer.rate(worlds))
        except Exception as problem:
            say(**row, worlds=worlds, failed=f"{type(problem).__name__}: {problem}"[:300])


if __name__ == "__main__":
    main()
