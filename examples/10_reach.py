"""Reaching: a humanoid stands on both feet and puts its hand on a circle.

Inverse kinematics asks for a configuration that meets several targets at once. Here both feet stay where they
are, the left hand goes to a point, and the centre of mass stays above the feet. Its weight is zero along z,
so the robot may bend its knees.

    found = rk.inverse_kinematics(robot, targets, q0, center_of_mass=balance, weights=weights)

The targets of one call may be a batch. The hand has one for each point of the circle, the others are the same
for all. Every configuration is within the joint limits.

Check: forward kinematics puts the hand on the circle and the feet where they were, and a point out of reach
is reported.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk
from robokit.viewer import write_pose_page

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("reach.html"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q0 = rk.standing_configuration(robot)
stands = rk.forward_kinematics(robot, q0)
angle = np.linspace(0.0, 2.0 * np.pi, 200)
circle = np.stack([0 * angle + 0.25, 0.1 * np.cos(angle), 0.1 * np.sin(angle)], axis=1)
targets = {foot: stands[foot] for foot in ("left_foot", "right_foot")}
targets["left_hand"] = stands["left_hand"][1] + circle
balance = rk.center_of_mass(robot, q0)
weights = {"center of mass": (1.0, 1.0, 0.0)}

found = rk.inverse_kinematics(robot, targets, q0, center_of_mass=balance, weights=weights)
print(found)
print(f"largest error {found.error.max():.1e} [m | rad] after at most {found.iterations.max()} steps")
write_pose_page(robot, arguments.output, found.q[0])
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

poses = rk.forward_kinematics(robot, found.q)
hand, foot = poses["left_hand"][1], poses["left_foot"][1]
assert found.converged.all(), found.message
assert np.abs(hand - targets["left_hand"]).max() < 1e-6, "the hand is not on the circle"
assert np.abs(foot - stands["left_foot"][1]).max() < 1e-6, "a foot has moved"
far = rk.inverse_kinematics(robot, targets | {"left_hand": (5.0, 0.0, 1.0)}, q0)
print(far.message)
assert not far.converged, "nobody reaches so far"
