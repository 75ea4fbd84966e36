"""A double pendulum swings freely, and its energy is the check.

Without friction nothing may be gained or lost: kinetic and potential energy trade places thousands of
times while their sum stands still. The motion itself is chaotic, so no table could tell whether it is
right; the energy can.

Without a ground rk.simulate takes a fourth-order Runge-Kutta method on the joints' manifolds, four
articulated-body sweeps a step ("rkmk4"). The same motion by the first-order method ("euler"), which is
meant for contact, shows what the order is worth: its energy error is the red curve.

    trajectory = rk.simulate(robot, q0, duration=10.0)
    trajectory.energy.kinetic, .potential, .dissipated, .total        one value per recorded instant

Check: the fourth-order method keeps the energy to 1e-7 of its largest kinetic part; halving its step
reduces the error by about 2^4, so its order is what it claims.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("double_pendulum.png"), metavar="FILE")
parser.add_argument("--duration", type=float, default=10.0, help="seconds, default 10")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("double_pendulum"))
q0 = robot.configuration(joints=dict.fromkeys(robot.joint_names, 1.5))


def swing(integrator: str, dt: float) -> rk.Trajectory:
    """The motion from rest at q0."""
    return rk.simulate(robot, q0, duration=arguments.duration, dt=dt, integrator=integrator)


fine, euler = swing("rkmk4", 1e-3), swing("euler", 1e-3)
