"""A humanoid falls, in the browser.

Load a robot with a floating base, put it above the ground, let it fall, and look at the motion:

    robot = rk.load_urdf("humanoid.urdf", base="floating")
    q0 = rk.standing_configuration(robot, height=0.02, tilt=0.07)
    trajectory = rk.simulate(robot, q0, duration=3.0, ground=rk.Ground())
    trajectory.to_html("fall.html")

The page is one file with the robot, its motion and the curves. It needs no network. The space bar plays and
pauses; the curves, the contacts and the tree of the robot are beside the picture. On the command line,
`robokit fall` does all of this.

No motor drives the joints. The energy of the robot becomes heat in the contacts and in the joints. The
simulation accounts for all parts: the total is kinetic + potential + dissipated energy.

Check: the total energy stays constant, the ground's impulse equals the change of momentum, and no contact
penetrates deeply.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("fall.html"), metavar="FILE")
parser.add_argument("--duration", type=float, default=3.0, help="seconds, default 3")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q0 = rk.standing_configuration(robot, height=0.02, tilt=0.07)
trajectory = rk.simulate(robot, q0, duration=arguments.duration, ground=rk.Ground())
trajectory.to_html(arguments.output)
print(f"{arguments.output} ({arguments.output.stat().st_size / 1e6:.1f} MB)")
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

summary, start = trajectory.summary, trajectory.energy.mechanical[0]
weight = robot.total_mass * np.linalg.norm(robot.gravity)
print(f"energy is {summary['energy_balance']:.2f} J off at most, of {start:.0f} J")
print(f"momentum is {summary['momentum_balance_linear']:.2f} N s off at most")
print(f"deepest contact {1e3 * summary['deepest_penetration']:.1f} mm")
assert summary["energy_balance"] < 0.01 * start, "energy came from nowhere or got lost"
assert summary["momentum_balance_linear"] < 0.002 * weight * trajectory.t[-1], "impulse and momentum disagree"
assert summary["deepest_penetration"] < 0.01, "a contact sank into the ground"
