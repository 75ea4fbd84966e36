"""A closed loop: a four-bar linkage swings, and the torque that holds it still.

A URDF describes a tree. The element <loop_joint> closes a loop between two of its links:

    <loop_joint name="closing_joint" type="revolute">
      <predecessor link="coupler"><origin xyz="0.36 0 0.15"/></predecessor>
      <successor link="rocker"><origin xyz="-0.125 0 0.3"/></successor>
      <axis xyz="0 1 0"/>
    </loop_joint>

The simulator keeps it closed. rk.close_loops finds a configuration in which it is: keep= names the joints
that stay where they are, here the crank, and the others follow. trajectory.loop_forces has the wrench of the
loop joint.

Check: the loop is closed to a micrometre in every state. The torque on the crank that balances gravity agrees
with the principle of virtual work, dV/d(crank), with V the potential energy along the motion that the loop
allows.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("four_bar.html"), metavar="FILE")
parser.add_argument("--duration", type=float, default=5.0, help="seconds, default 5")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("four_bar"))


def at(crank):
    """The configuration with the loop closed at a crank angle [rad]."""
    return rk.close_loops(robot, [crank, 0.0, 0.0], keep=["crank_joint"])


trajectory = rk.simulate(robot, at(1.0), duration=arguments.duration)
trajectory.to_html(arguments.output)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
print(*trajectory.report(), sep="\n")
pin = np.linalg.norm(trajectory.loop_forces["closing_joint"][:, 3:], axis=1)
print(f"the closing joint carries {pin.min():.2f} to {pin.max():.2f} N")
assert trajectory.summary["loop_gap"] < 1e-6, "the loop came apart"

step = 1e-4
lift = rk.potential_energy(robot, at(1.0 + step)) - rk.potential_energy(robot, at(1.0 - step))
torque = lift / (2.0 * step)
held = rk.simulate(robot, at(1.0), duration=0.2, controller=lambda t, q, v: [torque, 0.0, 0.0])
print(f"{torque:.4f} N m on the crank hold it still: it moves by {np.ptp(held.q[:, 0]):.1e} rad in 0.2 s")
assert np.ptp(held.q[:, 0]) < 1e-6, "the torque does not hold the linkage"
