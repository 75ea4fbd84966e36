"""A robot in code, with joints that URDF does not have.

A nut turns on a vertical screw and rises by the screw's pitch; a rod hangs under it on a ball joint. URDF
knows neither helical nor spherical joints, so this robot is built link by link:

    b = rk.ModelBuilder("screw")
    b.link(name, mass, com, inertia)                inertia about the centre of mass, in link axes
    b.joint(name, kind, parent, child, placement)   placement of the joint in the parent link

Links and joints may come in any order; build() numbers the bodies and checks that they form a tree. The ball
joint has four coordinates, a unit quaternion wxyz, and three velocities, so q is longer than v:
robot.joint("ball").q_slice says where they are, and robot.integrate(q, dv) moves q along a velocity.

Check: a screw's inertia is J + m p^2, and the torque that holds it is m g p, where J is the inertia about the
screw, m the mass that rises and p the pitch in metres per radian. Without motors the whole machine keeps its
energy.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("screw.html"), metavar="FILE")
parser.add_argument("--duration", type=float, default=4.0, help="seconds, default 4")
arguments = parser.parse_args()

pitch = 0.02
b = rk.ModelBuilder("screw")
b.link("column")
b.link("nut", mass=2.0, inertia=np.diag([0.01, 0.01, 0.02]))
b.link("rod", mass=0.5, com=(0, 0, -0.3), inertia=np.diag([0.015, 0.015, 0.0004]))
b.joint("thread", "helical", "column", "nut", axis=(0, 0, 1), pitch=pitch)
b.joint("ball", "spherical", "nut", "rod", rk.Placement(position=np.array([0.15, 0.0, 0.0])))
robot = b.build()
print(robot)

neutral = robot.neutral()
J = 0.02 + 0.0004 + 0.5 * 0.15**2
assert np.isclose(rk.crba(robot, neutral)[0, 0], J + 2.5 * pitch**2), "H of the screw is not J + m p^2"
assert np.isclose(rk.gravity_forces(robot, neutral)[0], 2.5 * 9.81 * pitch), "the screw's torque is not m g p"

q = robot.integrate(neutral, [0.0, 0.5, -0.3, 0.0])  # the rod swung out about x and y
v = np.array([3.0, 0.0, 0.0, 2.0])  # thread, then the ball's angular velocity in rod axes [rad/s]
trajectory = rk.simulate(robot, q, v, duration=arguments.duration)
trajectory.to_html(arguments.output)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

energy = trajectory.energy
drift, most = np.ptp(energy.total), energy.kinetic.max()
print(f"energy drifts by {drift:.1e} J in {trajectory.t[-1]:g} s, kinetic energy reaches {most:.1f} J")
assert drift < 1e-6 * most, "energy is not conserved"
