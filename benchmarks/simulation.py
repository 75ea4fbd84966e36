"""Simulation: steps a second beside MuJoCo's on the same shapes, and what integrators conserve.

First both programs swing each robot in free space; nothing is timed unless they move alike.

python benchmarks/simulation.py              falls, rollouts, the drift table, for G1 and robokit's humanoid
                                             (rollouts in both precisions, inertias shared or one set a row)
python benchmarks/simulation.py --part rollout humanoid
"""

from __future__ import annotations

import argparse
import copy
import functools
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from agree import Disagreement
from measure import machine, prepare_to_measure
from models import frictionless
from mujoco_model import model_on_a_plane

import robokit as rk
from robokit.interop import MujocoAdapter

DT = 1e-3

SWING, FINE = 0.05, 1e-5
"""Duration and time step of the free swing that is compared [s]."""

ALIKE = 1e-7
"""Largest difference after the swing, relative to the motion."""


DAMPING = 0.1
"""Of joints whose description has none, in both programs [N m s/rad | N s/m]."""

MOTION: dict[str, Any] = {"ground": rk.Ground(), "joint_damping": DAMPING, "self_collision": False}
"""What all runs of robokit have in common."""


def swing(name: str) -> float:
    """Largest relative difference between robokit and MuJoCo after a free swing above the ground.

    The joints start in the middle of their ranges, with random velocities. Both have damping and limits.

    Raises:
        Disagreement: a constraint of MuJoCo acts at the start, or the motions differ.
    """
    import mujoco

    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    robot = replace(robot, joints=tuple(replace(joint, friction=0.0) for joint in robot.joints))
    q0 = robot.neutral()
    for joint in robot.joints:
        if joint.q_slice.stop - joint.q_slice.start == 1 and np.isfinite(joint.upper - joint.lower):
            q0[joint.q_slice] = (joint.lower + joint.upper) / 2.0
    q0 = rk.standing_configuration(robot, height=1.0, q=q0, seed=0)
    v0 = 0.3 * np.random.default_rng(0).standard_normal(robot.nv)
    ends = []
    for dt in (FINE, FINE / 2.0):
        model = model_on_a_plane(robot, dt, {j.name: j.damping or DAMPING for j in robot.joints})
        data, to, steps = mujoco.MjData(model), MujocoAdapter(robot, model), round(SWING / dt)
        data.qpos[:], data.qvel[:] = to.q(q0), to.v(q0, v0)
        mujoco.mj_forward(model, data)
        if data.nefc:
            raise Disagreement(f"MuJoCo, {robot.name}: {data.nefc} constraints act at the start of the swing")
        mujoco.mj_step(model, data, nstep=steps)
        ours = rk.simulate(robot, q0, v0, duration=SWING, dt=dt, **MOTION, record_every=steps).q[-1]
        ends.append((ours, to.q_back(data.qpos)))
    # With damping both methods are of first order.
    ours, theirs = (2.0 * fine - coarse for coarse, fine in zip(*ends, strict=True))
    difference = float(np.abs(ours - theirs).max() / np.abs(ours - q0).max())
    if not difference <= ALIKE:
        raise Disagreement(f"MuJoCo, {robot.name}: the free swing differs by {difference:.1e} of the motion")
    return difference


def race(name: str, seconds: float, repeats: int) -> None:
    """Steps a second of one robot's fall, robokit and MuJoCo in turns."""
    import mujoco

    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    q0 = rk.standing_configuration(robot, height=0.02, tilt=np.radians(4.0), seed=0)
    steps = round(seconds / DT)
    damping = {j.name: j.damping or DAMPING for j in robot.joints}
    model = model_on_a_plane(robot, DT, damping)
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    ours, theirs, depth = 0.0, 0.0, 0.0
    for _ in range(repeats):
        fall = rk.simulate(robot, q0, duration=seconds, dt=DT, **MOTION, record_every=steps)
        ours = max(ours, fall.summary["steps_per_second"])
        mujoco.mj_resetData(model, data)
        data.qpos[:] = to.q(q0)
        started = time.perf_counter()
        mujoco.mj_step(model, data, nstep=steps)
        theirs = max(theirs, steps / (time.perf_counter() - started))
    depth = 1e3 * fall.summary["deepest_penetration"]
    shapes = sum(len(link.collisions) for link in robot.links)
    print(
        f"  {robot.name:<18} {shapes:3} shapes  robokit {ours:9,.0f}  MuJoCo {theirs:9,.0f} steps/s  "
        f"{ours / theirs:5.2f}x   deepest {depth:.2g} mm"
    )


def rollout(name: str, seconds: float, rows: int, repeats: int) -> None:
    """States x steps a second of processor time, robokit.rollout and mujoco.rollout in turns.

    Processor time counts all threads, so the figures are those of one core, whoever else uses it. Once with
    one robot for all rows, once with masses and inertias of its own for each (MuJoCo: a model a row).
    """
    import mujoco
    from mujoco.rollout import Rollout

    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    rng = np.random.default_rng(0)
    q0 = rk.standing_configuration(robot, height=0.02, tilt=np.radians(4.0), seed=0)
    v0 = 0.3 * rng.standard_normal((rows, robot.nv))
    steps = round(seconds / DT)
    model = model_on_a_plane(robot, DT, {j.name: j.damping or DAMPING for j in robot.joints})
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    starts = np.empty((rows, mujoco.mj_stateSize(model, full)))
    for start, v in zip(starts, v0, strict=True):
        data.qpos[:], data.qvel[:] = to.q(q0), to.v(q0, v)
        mujoco.mj_getState(model, data, start, full)
    scale = rng.uniform(0.8, 1.2, rows)
    many = robot.with_inertias(robot.inertial_parameters * scale[:, None, None])
    models = [_heavier(model, factor) for factor in scale]
    motion: dict[str, Any] = {**MOTION, "dt": DT, "record_every": 5}
    for each in (robot, many):
        for dtype in ("float64", "float32"):
            rk.rollout(each, q0, v0, steps=1, dtype=dtype, **motion)
    for threads in (1, 2):
        datas = [mujoco.MjData(model) for _ in range(threads)]
        with Rollout(nthread=threads) as pool:
            cases = {
                "MuJoCo": lambda: pool.rollout(model, datas, starts, nstep=steps),  # noqa: B023
                "MuJoCo, inertias a row": lambda: pool.rollout(models, datas, starts, nstep=steps),  # noqa: B023
            }
            for each, label in ((robot, ""), (many, ", inertias a row")):
                for dtype in ("float64", "float32"):
                    cases[f"{dtype}{label}"] = functools.partial(
                        rk.rollout, each, q0, v0, steps=steps, threads=threads, dtype=dtype, **motion
                    )
            speed, last = dict.fromkeys(cases, 0.0), {}
            for _ in range(repeats):
                for label, run in cases.items():
                    started = time.process_time()
                    last[label] = run()
                    speed[label] = max(speed[label], rows * steps / (time.process_time() - started))
        print(f"  {robot.name}, {rows} x {steps}, threads {threads}: states x steps/s/core")
        for label, figure in speed.items():
            peer = speed["MuJoCo, inertias a row" if label.endswith("row") else "MuJoCo"]
            fall, more = last[label], ""
            if not label.startswith("MuJoCo"):
                deep = 1e3 * fall.summary["deepest_penetration"]
                more = f"  {figure / peer:5.1f}x   deepest {deep:.2g} mm, {len(fall.failed)} rows failed"
            print(f"    {label:<26}{figure:12,.0f}{more}")


def _heavier(model, factor: float):
    """A copy of a MuJoCo model with all masses and inertias multiplied."""
    import mujoco

    other = copy.copy(model)
    other.body_mass *= factor
    other.body_inertia *= factor
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return other


def drift() -> None:
    """Largest errors of energy and momentum over 10 s at 1 ms, a row an integrator.

    The momentum is kept by a projection at each step; "missed" is the sum of what it gave back.
    """
    rng = np.random.default_rng(1)
    pendulum = rk.load_urdf(rk.find_robot("double_pendulum"))
    swing = pendulum.configuration(joints={pendulum.joint_names[0]: 2.0, pendulum.joint_names[1]: 0.5})
    tumbler = rk.load_urdf(rk.find_robot("example-robot-data:g1"), base="floating")
    tumble = tumbler.neutral(), rng.standard_normal(tumbler.nv)
    print(
        "\n10 s at 1 ms: largest |dE| [J], |dl| [N s], |dk| [N m s], and what steps missed of l and k, summed"
    )
    print(f"  {'':<16}{'double pendulum':>16}  G1 tumbling without gravity")
    print(f"  {'':<16}{'|dE|':>16}{'|dE|':>12}{'|dl|':>12}{'|dk|':>12}{'missed l':>12}{'missed k':>12}")
    for integrator in ("euler", "midpoint", "rkmk4", "energy_momentum"):
        t = rk.simulate(pendulum, swing, duration=10.0, dt=DT, integrator=integrator)
        dE = np.abs(t.energy.total - t.energy.total[0]).max()
        f = rk.simulate(
            frictionless(tumbler), *tumble, duration=10.0, dt=DT, integrator=integrator, gravity=(0, 0, 0)
        )
        dF = np.abs(f.energy.total - f.energy.total[0]).max()
        dh = np.abs(f.momentum - f.momentum[0]).max(axis=0)
        missed = [f.summary[f"momentum_corrected_{k}"] for k in ("linear", "angular")]
        figures = (dF, dh[3:].max(), dh[:3].max(), *missed)
        print(f"  {integrator:<16}{dE:16.1e}" + "".join(f"{x:12.1e}" for x in figures))


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robot", nargs="*", default=["example-robot-data:g1", "humanoid"])
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated time of a fall")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=128, help="states of a rollout")
    parser.add_argument("--no-drift", action="store_true", help="without the drift table")
    parser.add_argument("--part", choices=("fall", "rollout", "drift"), help="only this part")
    arguments = parser.parse_args()
    part = arguments.part
    print(machine())
    if part != "drift":
        print(f"\nA free swing of {1e3 * SWING:g} ms: largest difference, over the motion")
        for name in arguments.robot:
            try:
                print(f"  {name:<26}{swing(name):.0e}")
            except Disagreement as problem:
                sys.exit(f"nothing was timed: {problem}")
    if part in (None, "fall"):
        print("\nFalls on a plane at 1 ms, self-collision off in both")
        for name in arguments.robot:
            race(name, arguments.seconds, arguments.repeats)
    if part in (None, "rollout"):
        print("\nRollouts of pushed robots on a plane at 1 ms, self-collision off in both")
        for name in arguments.robot:
            rollout(name, arguments.seconds / 4, arguments.rows, arguments.repeats)
    if part in (None, "drift") and not arguments.no_drift:
        drift()


if __name__ == "__main__":
    prepare_to_measure()
    main()
