"""A push on an arm, estimated from its motor torques.

The force is not measured. The generalised momentum p = H v changes by motor torques, gravity, velocity
products and external torques. The observer of De Luca and Mattone compares it with the momentum that the
motors account for,

    r = gain (p - p_0 - integral of (tau + C^T v - g + r) dt)

and r follows the external torques with the time constant 1/gain, without accelerations or the inverse of H.
Use ``rk.MomentumObserver`` step by step, or ``rk.external_torques`` for a whole run or log.
``rk.external_force`` finds the force on the gripper that causes these torques.

Servos move the arm to a new posture; from 0.5 s to 1 s it is pushed at the gripper. Its dry friction is
removed, since at rest it cannot be distinguished from a push.

Check: once the observer has converged, the force is right to 2 per cent; after the push it is zero.
"""

import argparse
import webbrowser
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the figure")
parser.add_argument("--output", type=Path, default=Path("push.png"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("arm"))
robot = replace(robot, joints=tuple(replace(joint, friction=0.0) for joint in robot.joints))
force, point, gain = np.array([12.0, -7.0, 20.0]), (0.02, 0.0, 0.05), 100.0
q0 = np.array([0.3, 0.6, -0.2, -1.2, 0.4, 0.9, 0.1])
servos = rk.PD(kp=300.0, kd=30.0, target=q0 + 0.3, effort=np.inf)
push = rk.Push("gripper", force, point, start=0.5, duration=0.5)
run = rk.simulate(robot, q0, duration=1.5, dt=2.5e-4, record_every=4, pushes=push, actuators=servos)

observer, residuals = rk.MomentumObserver(robot, gain), []
for q, v, tau in zip(run.q, run.v, run.actuator_force, strict=True):
    residuals.append(observer.step(q, v, tau, 1e-3))
found = rk.external_force(robot, run.q, np.array(residuals), "gripper", point=point)
true = np.where(((run.t > 0.5) & (run.t <= 1.0))[:, None], force, 0.0)
figure, axes = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
for k, (name, color) in enumerate(zip("xyz", ("#c4473a", "#2f8f4e", "#1f5fbf"), strict=True)):
    axes.plot(run.t, found[:, k], color=color, label=f"{name}, felt")
    axes.plot(run.t, true[:, k], color=color, ls=":", label=f"{name}, true")
axes.set(xlabel="time [s]", ylabel="force on the gripper [N]", xlim=(0.0, 1.5))
axes.legend(loc="upper left", fontsize=8, frameon=False)
figure.savefig(arguments.output, dpi=150)
off = np.linalg.norm(found - true, axis=1) / np.linalg.norm(force)
followed = (run.t > 0.5 + 6 / gain) & (run.t <= 1.0)
left = off[run.t > 1.1].max()
print(f"the push is felt to {off[followed].max():.2%} of its size; {left:.2%} is left afterwards")
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
assert off[followed].max() < 0.02 and left < 0.02, "the force is felt as it was"
