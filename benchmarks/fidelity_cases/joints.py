"""What acts in joints: PD control, and a loop that closes."""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Others
from fidelity_cases.table import Found, Look, case
from robokit.model import ModelBuilder


@case("pd", "Joints", "A stiff PD controller on a light joint")
def pd(look: Look) -> Found:
    """A joint with 1e-3 kg m² and kd = 3 N m s/rad, kp = 30 N m/rad, set to 1 rad. Measured: the largest
    angle and the error after 1 s compared with the exact 4.5e-5 rad.
    """
    builder = ModelBuilder("wheel").link("base")
    builder.link("wheel", 1.0, inertia=np.eye(3) * 1e-3)
    builder.joint("joint", "continuous", "base", "wheel", axis=(0, 0, 1))
    robot, found = builder.build("fixed"), Found()
    servo = rk.PD(kp=30.0, kd=3.0, target=1.0, effort=math.inf)
    for dt in (1e-3, 4e-3):
        one = dt == 1e-3
        t = s.fall(robot, np.zeros(1), duration=1.0, dt=dt, joint_damping=0.0, record_every=1,
                   ground=s.ground(height=-5.0), actuators=servo)  # fmt: skip
        label = f"{1e3 * dt:g} ms"
        found.add(f"{label}: largest angle", "rad", np.abs(t.q).max(), most=1.0 if one else None)
        error = abs(1.0 - t.q[-1, 0] - math.exp(-10.0)) if t.t[-1] > 0.999 else math.inf
        found.add(f"{label}: error after 1 s", "rad", error, most=1e-4 if one else None)
    if look.peer:
        found.add("1 ms: error after 1 s, with its implicit integrator", "rad", mujoco=_pd_there(robot))
    return found


def _pd_there(robot: rk.Robot) -> float:
    from mujoco_model import tree_spec

    spec = tree_spec(robot, {})
    spec.option.timestep, spec.option.gravity = 1e-3, [0, 0, 0]
    import mujoco

    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    servo = spec.add_actuator(target="joint", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    servo.set_to_position(kp=30.0, kv=3.0)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.ctrl[0] = 1.0
    mujoco.mj_step(model, data, nstep=1000)
    return abs(1.0 - float(data.qpos[0]) - math.exp(-10.0))


@case("four_bar", "Joints", "A four-bar linkage, 5 s")
def four_bar(look: Look) -> Found:
    """robokit's four-bar swings without friction for 5 s at 1 ms. Measured: the gap of the loop and the
    energy error, over what moved.
    """
    found = Found()
    with s.quiet():
        robot = rk.load_urdf(rk.find_robot("four_bar"))
    robot = s.with_joints(robot, damping=0.0, friction=0.0)
    t = s.fall(robot, robot.neutral(), duration=5.0, joint_damping=0.0)
    loop = robot.loop_joints[0]
    poses = rk.forward_kinematics(robot, t.q)
    ends = []
    for link, place in ((loop.predecessor, loop.predecessor_placement),
                        (loop.successor, loop.successor_placement)):  # fmt: skip
        R, p = poses[link]
        ends.append(np.einsum("tij,j->ti", R, place.position) + p)
    gap = np.linalg.norm(ends[0] - ends[1], axis=1)
    others = Others(look, robot, 1e-3)
    others.run(robot.neutral(), None, 5000, 10)
    gaps = others.of(lambda q, v: 1e6 * s.loop_gap(robot, q))
    found.add("largest gap of the loop", "µm", 1e6 * gap.max(), **gaps, most=1.0)
    moved = np.ptp(t.energy.potential)

    def drift(q: np.ndarray, v: np.ndarray) -> float:
        total = sum(s.rollout_energies(robot, q[:, None], v[:, None]))
        return float(np.abs(total - total[0]).max() / moved)

    error = np.abs(t.energy.total - t.energy.total[0]).max() / moved
    found.add("energy's error, of what moved", "", error, **others.of(drift), most=1e-6)
    found.add("largest speed of the crank", "rad/s", np.abs(t.v[:, 0]).max())
    return found
