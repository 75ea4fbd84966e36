"""The hand of an arm moves in a straight line, whatever the elbow does.

An operational-space controller controls the acceleration of the hand, not of the joints. Lambda is the
inertia felt by a force at the hand, J the Jacobian of its position, and Jbar the dynamically consistent
inverse of J:

    tau = J^T Lambda (x'' - J' v) + C + (1 - J^T Jbar^T) tau_posture

The law for the hand is x'' = kp (goal - x) - kd x', a spring and a damper along each axis of the world. With
kd^2 = 4 kp, the remaining distance at time t is (1 + w t) exp(-w t) of the whole, w^2 = kp. The arm has four
joints more than the position of its hand needs. A second spring pulls them to another posture; its effect on
the hand is projected out.

Check: the arm has no friction. In the simulation the hand follows the closed-form line of half a metre to
half a millimetre, while the other joints turn by up to a radian and a half.
"""

import argparse
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("operational_space.html"), metavar="FILE")
arguments = parser.parse_args()

arm = rk.load_urdf(rk.find_robot("arm"))
arm = replace(arm, joints=tuple(replace(joint, damping=0.0, friction=0.0) for joint in arm.joints))
hand, w = arm.link_names[-1], 5.0
q0 = np.array([0.2, 0.5, 0.0, 1.2, 0.0, 0.8, 0.0])
rest = q0 + np.array([0.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.0])
start = rk.forward_kinematics(arm, q0)[hand][1]
goal = start + np.array([-0.25, 0.35, 0.25])


def controller(t, q, v):
    """Joint forces of the hand's spring and damper, and of the posture in what the hand does not feel."""
    x, J = rk.forward_kinematics(arm, q)[hand][1], rk.link_jacobian(arm, q, hand)[3:]
    space = rk.operational_space_inertia(arm, q, [(hand, (0, 0, 0), "position")], damping=1e-9)
    product = rk.link_acceleration(arm, q, v, 0 * v, hand, classical=True)[3:]
    force = space.inertia @ (w**2 * (goal - x) - 2 * w * (J @ v) - product)
    posture = rk.crba(arm, q) @ (9.0 * (rest - q) - 6.0 * v)
    return J.T @ (force - space.inverse_jacobian.T @ posture) + posture + rk.bias_forces(arm, q, v)


run = rk.simulate(arm, q0, duration=2.0, controller=controller)
run.to_html(arguments.output)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
left = (1.0 + w * run.t) * np.exp(-w * run.t)
path = np.array([rk.forward_kinematics(arm, q)[hand][1] for q in run.q])
off = np.abs(path - goal - left[:, None] * (start - goal)).max()
print(f"hand: {np.linalg.norm(goal - start):.2f} m, at most {1e3 * off:.3f} mm off the closed-form line")
print("joints turned by", np.round(run.q[-1] - q0, 2), "rad")
assert off < 5e-4, "the hand left its line"
