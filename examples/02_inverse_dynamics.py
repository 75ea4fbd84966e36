"""Inverse dynamics: which torques does a motion need?

An arm swings from one pose to another and comes to rest. Its joints follow q(t) = q0 + s(t) (q1 - q0) with s
= (1 - cos(pi t / T)) / 2, so velocities and accelerations are known at every instant. The recursive
Newton-Euler algorithm gives the joint torques:

    tau = rk.rnea(robot, q, v, a)

One call computes the whole motion, one row per instant. One part of the torques, rk.gravity_forces(robot, q),
holds the arm against gravity; rk.joint_reactions(robot, q, v, a) has the loads on the bearings.

Check: the work of the motors, the integral of tau . v dt, is the change of energy, and forward dynamics of
these torques returns the original accelerations.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import simpson

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("inverse_dynamics.png"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("arm"))
q0, q1 = robot.random_configuration(1), robot.random_configuration(2)
T = 1.5
t = np.linspace(0.0, T, 1501)
w = np.pi / T
q = q0 + np.outer((1 - np.cos(w * t)) / 2, q1 - q0)
v = np.outer(w * np.sin(w * t) / 2, q1 - q0)
a = np.outer(w**2 * np.cos(w * t) / 2, q1 - q0)

tau = rk.rnea(robot, q, v, a)
hold = rk.gravity_forces(robot, q)
bearings = np.linalg.norm(rk.joint_reactions(robot, q, v, a).force, axis=2).max(axis=0)
print("largest torque of each joint, largest against gravity, limit [N m]; force in its bearing [N]")
for k, joint in enumerate(robot.joints):
    most, still = abs(tau[:, k]).max(), abs(hold[:, k]).max()
    print(f"  {joint.name:10} {most:8.2f} {still:8.2f} {joint.effort:8.1f} {bearings[k]:8.1f}")

axes = Figure(figsize=(8, 4), layout="constrained").subplots()
axes.plot(t, tau, label=robot.joint_names)
axes.set(xlabel="t [s]", ylabel="joint torque [N m]")
axes.legend(fontsize="small")
axes.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

work = simpson(np.sum(tau * v, axis=1), x=t)
energy = rk.kinetic_energy(robot, q, v) + rk.potential_energy(robot, q)
print(f"work of the motors {work:.6f} J, energy gained {energy[-1] - energy[0]:.6f} J")
assert abs(work - (energy[-1] - energy[0])) < 1e-8, "the work of the torques is not the energy gained"
assert np.allclose(rk.aba(robot, q, v, tau), a, atol=1e-8), "forward dynamics does not undo inverse dynamics"
