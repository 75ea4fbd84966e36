"""A humanoid stands on its motors, is pushed, and falls.

Each joint has a position servo that holds its start, within the effort and velocity limits of the URDF:

    stand = rk.PD(kp=1000.0, kd=50.0)
    push = rk.Push("chest", (200.0, 0, 0), (0, 0, 0.2), start=10.0, duration=0.2)
    rk.simulate(robot, q0, duration=13.0, ground=True, actuators=stand, pushes=push)

The servo is part of the implicit step, so high gains do not make it unstable. Nothing balances the robot: it
stands as long as its centre of mass is above its feet. The push of 40 N s tips it over its toes, and it falls
like a statue.

    trajectory.actuator_force         forces of the motors [N m], means between the recorded states
    trajectory.summary["saturated"]   share of the time that each was at a limit

Check: it does not move before the push, the momentum changes by the impulses of the push and of the ground,
no motor exceeds its limit, and the balances of energy and momentum close.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("stand.html"), metavar="FILE")
parser.add_argument("--stand", type=float, default=10.0, help="seconds until the push, default 10")
parser.add_argument("--force", type=float, default=200.0, help="newtons, for 0.2 s, default 200")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q0 = rk.standing_configuration(robot)
stand = rk.PD(kp=1000.0, kd=50.0)
push = rk.Push("chest", (arguments.force, 0.0, 0.0), (0.0, 0.0, 0.2), arguments.stand, 0.2)
run = rk.simulate(robot, q0, duration=arguments.stand + 3, ground=True, actuators=stand, pushes=push)
run.to_html(arguments.output)
print("\n".join(run.report()))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

before = run.t < arguments.stand
moved = np.ptp(run.q[(run.t > 0.5) & before, 4:7], axis=0).max()
largest = np.abs(run.actuator_force).max(axis=0)[6:] / [joint.effort for joint in robot.joints[1:]]
print(f"moves {1e3 * moved:.3f} mm before the push; then the motors reach {largest.max():.0%} of a limit")
print(f"the pelvis ends {run.q[-1, 6]:.2f} m above the floor")
assert moved < 1e-3, "it does not stand still"
assert largest.max() < 1.0 + 1e-9, "a motor is stronger than it is"
assert run.summary["momentum_balance_linear"] < 1e-6, "impulse and momentum disagree"
assert run.summary["energy_balance"] < 0.01 * run.energy.mechanical[0], "the energy balance is off"
