"""What acts in joints: PD control, and a loop that closes."""

from __future__ import annotations

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.table import Found, Look, NotYet, case
from robokit.model import ModelBuilder


@case("pd", "Joints", "A stiff PD controller on a light joint")
def pd(look: Look) -> Found:
    """A joint with 1e-3 kg m² and kd = 3 N m s/rad, kp = 30 N m/rad at 1 ms, set to 1 rad. Counted is the
    largest angle and the error after 1 s (exact: 4.5e-5 rad).
    """
    builder = ModelBuilder("wheel").link("base")
    builder.link("wheel", 1.0, inertia=np.eye(3) * 1e-3)
    builder.joint("joint", "continuous", "base", "wheel", axis=(0, 0, 1))
    robot, found = builder.build("fixed"), Found()
    if s.knows("actuators"):
        raise NotYet("to be written: simulate(actuators=)")
    found.notes.append(
        "simulate(actuators=) is not there; the controller is a Python function, explicit in time."
    )
    t = s.fall(robot, np.zeros(1), duration=1.0, dt=1e-3, joint_damping=0.0, record_every=1,
               controller=lambda t, q, v: 30.0 * (1.0 - q) - 3.0 * v)  # fmt: skip
    found.add("largest angle", "rad", np.abs(t.q).max(), most=1.001)
    found.add("error after 1 s", "rad", abs(t.q[-1, 0] - 1.0) if t.t[-1] > 0.999 else np.inf, most=1e-3)
    return found


@case("four_bar", "Joints", "A four-bar linkage, 5 s")
def four_bar(look: Look) -> Found:
    """robokit's four-bar swings without friction for 5 s at 1 ms. Counted are the gap of the loop and the
    energy's error, over what moved.
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
    found.add("largest gap of the loop", "µm", 1e6 * gap.max(), most=1.0)
    moved = np.ptp(t.energy.potential)
    found.add("energy's error, of what moved", "", np.abs(t.energy.total - t.energy.total[0]).max() / moved,
              most=1e-3)  # fmt: skip
    found.add("largest speed of the crank", "rad/s", np.abs(t.v[:, 0]).max())
    found.plot("four_bar", "Gap of the loop", "s", "m", {"robokit": (t.t, np.maximum(gap, 1e-16))}, log="y")
    return found
