"""The falls whose bits are frozen, and how they are taken on any processor that this one can stand for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from ladder import box_with_bar

import robokit as rk
from robokit.contact.step import ADDED
from robokit.engine.backend import llvm
from robokit.model import Robot
from robokit.sim.steppers import ContactState, first_carried, step_numbers

DT, EVERY = 1e-3, 5

FALL: dict[str, Any] = {"ground": True, "reproducible": True}

FROZEN = {
    ("toy", 1.0): "171fbc83f42bfc2b6f95e4342eca82ce8de214b4b77d65dda046cf17c3cda83b",
    ("humanoid", 10.0): "504d2adc0b375647c97d6c2bae294e0cdb96d3857050c6372dd042cdbfdf29d0",
    ("g1", 10.0): "cd0b2232b8c834f7db88bdb87ed5c38122ec1ca68aad1a8695603516b8056c97",
}
"""SHA-256 of q and v, each state of 5 ms, by robot and seconds. Other bits here are other bits
everywhere. A change of the step or of a robot changes them; nothing else may."""

PROCESSORS = {
    "SSE2, 1 lane": ("x86-64", 1, "sse2"),
    "SSE2, 2 lanes": ("x86-64", 2, "sse2"),
    "SSE2, 4 lanes": ("x86-64", 4, "sse2"),
    "AVX2, 4 lanes": ("x86-64-v3", 4, "avx2"),
    "AVX2, 8 lanes": ("x86-64-v3", 8, "avx2"),
    "AVX-512, 2 lanes": ("x86-64-v4", 2, "avx512f"),
    "AVX-512, 8 lanes": ("x86-64-v4", 8, "avx512f"),
}
"""LLVM's name, numbers in a vector, and the feature that this processor must have."""


def robot_of(name: str) -> Robot:
    """A new robot: it has no code yet."""
    if name == "toy":
        return box_with_bar()
    found = name if name == "humanoid" else f"example-robot-data:{name}"
    return rk.load_urdf(rk.find_robot(found), base="floating")


def start(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Tilted and turning in the air: numbers that no library computes."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[:4], q[4:7] = (0.7, 0.1, 0.1, 0.7), (0.25, -0.5, 1.25)
    v[:6] = 0.5, -1.0, 0.25, 0.75, 0.0, -0.5
    v[6:] = 0.125
    return q, v


def fingerprint(q: np.ndarray, v: np.ndarray) -> str:
    """SHA-256 of all bytes of q, then of v."""
    return hashlib.sha256(b"".join(np.asarray(x, "<f8").tobytes() for x in (q, v))).hexdigest()


@contextmanager
def processor(name: str) -> Iterator[None]:
    """While it lasts, code is made for another processor, and for so many lanes; kernels made before stay."""
    kind, width, _ = PROCESSORS[name]
    before = llvm.host, llvm.vector_width, llvm.identity
    llvm.host, llvm.vector_width = lambda: (kind, ""), lambda: width
    llvm.identity = lambda: f"{llvm.release()} {kind} {width}"
    try:
        yield
    finally:
        llvm.host, llvm.vector_width, llvm.identity = before


def runs_here(name: str) -> bool:
    """Whether this processor can stand for that one."""
    return PROCESSORS[name][2] in llvm.processor_flags()


def single(robot: Robot, seconds: float, **more: Any) -> rk.Trajectory:
    """The fall, taken alone."""
    q, v = start(robot)
    return rk.simulate(robot, q, v, seconds, DT, record_every=EVERY, **FALL, **more)


def batch(robot: Robot, seconds: float, rows: int, row: int, threads: int | None = 1) -> str:
    """The hash of the fall, taken as one row among others that fall from elsewhere."""
    q, v = start(robot)
    starts = np.tile(q, (rows, 1)), np.tile(v, (rows, 1))
    starts[0][:, 6] += 0.0625 * (np.arange(rows) - row)
    starts[0][:, 6] = np.maximum(starts[0][:, 6], 1.0)
    assert starts[0][row, 6] == q[6]
    found = rk.rollout(robot, *starts, seconds, DT, record_every=EVERY, threads=threads, **FALL)
    return fingerprint(found.q[:, row], found.v[:, row])


def on_arm(motion: rk.Trajectory) -> str:
    """The hash of the fall on ARM64."""
    from arm_program import states

    program, (q, v) = motion.program, start(motion.robot)
    assert program is not None

    def begun() -> ContactState:
        found = ContactState(program.robot, DT, step_numbers(program, DT), reproducible=True)
        found.arrays["q"][:], found.arrays["v"][:] = q, v
        found.unpack(first_carried(program, q[None], v[None])[0])
        return found

    here, there = begun(), begun()
    here.take(int(motion.summary["steps"]))  # tells how large the arrays must be
    there.make_room({name: here.sizes[name] for name in ADDED})
    ends = zip((q, v), states(there, EVERY, len(motion) - 1), strict=True)
    return fingerprint(*(np.concatenate([x[None], y]) for x, y in ends))
