"""What a call of ``Simulation.step`` costs beside the step itself, and ``mj_step`` of MuJoCo in one process.

python benchmarks/step_by_step.py [humanoid]

Processor time, the least of interleaved repeats. "of Python" is a call for each step, less the same steps in
one call. MuJoCo has the same robot on a plane, with its own defaults.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import mujoco
import numpy as np
from measure import machine, prepare_to_measure
from mujoco_model import model_on_a_plane

import robokit as rk
from robokit.contact.step import step_kernel

STEPS, REPEATS = 500, 15


def seconds(calls: dict[str, tuple[Callable[[], None], Callable[[], None]]]) -> dict[str, float]:
    """Least processor time of each, a step [us]; ``calls``: what goes before, and what is measured."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(REPEATS):
        for name, (before, run) in calls.items():
            before()
            begun = time.process_time()
            run()
            found[name] = min(found[name], 1e6 * (time.process_time() - begun) / STEPS)
    return found


def main(name: str) -> None:
    """Print the table."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    q0, tau, targets = rk.standing_configuration(robot), np.zeros(robot.nv), np.zeros(robot.nv - 6)
    step_kernel(False).well = True  # the code of the first steps is there sooner, and slower
    pd = rk.PD(kp=100.0, kd=5.0)
    rows = {
        "step()": (rk.Simulation(robot, q0, ground=True, record_every=0), {}),
        "step(tau)": (rk.Simulation(robot, q0, ground=True, record_every=0), {"tau": tau}),
        "step(targets)": (
            rk.Simulation(robot, q0, ground=True, record_every=0, actuators=pd), {"targets": targets}
        ),
        "step(), recorded": (rk.Simulation(robot, q0, ground=True), {}),
    }  # fmt: skip
    calls = {}
    for what, (sim, given) in rows.items():

        def each(sim: rk.Simulation = sim, given: dict[str, np.ndarray] = given) -> None:
            for _ in range(STEPS):
                sim.step(**given)

        def together(sim: rk.Simulation = sim, given: dict[str, np.ndarray] = given) -> None:
            sim.step(**given, steps=STEPS)

        calls[what], calls[f"{what} in one call"] = (sim.reset, each), (sim.reset, together)
    damping = {joint.name: joint.damping for joint in robot.joints}
    model = model_on_a_plane(robot, 1e-3, damping)
    data = mujoco.MjData(model)

    def reset() -> None:
        mujoco.mj_resetData(model, data)

    def mj_each() -> None:
        for _ in range(STEPS):
            mujoco.mj_step(model, data)

    calls["mj_step"] = reset, mj_each
    calls["mj_step in one call"] = reset, lambda: mujoco.mj_step(model, data, nstep=STEPS)
    found = seconds(calls)
    print(machine())
    print(f"{name}: {STEPS} steps of 1 ms, microseconds a step of processor time")
    for what in (*rows, "mj_step"):
        whole, inside = found[what], found[f"{what} in one call"]
        print(f"  {what:18} {whole:7.2f}   in one call {inside:7.2f}   of Python {whole - inside:5.2f}")


if __name__ == "__main__":
    prepare_to_measure()
    main(sys.argv[1] if len(sys.argv) > 1 else "humanoid")
