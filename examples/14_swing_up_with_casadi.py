"""A swing-up, optimised by CasADi.

A double pendulum hangs down and must stand upright after three seconds, with as little effort as possible.
CasADi gets the operations of robokit's forward dynamics, and differentiates them twice for the solver IPOPT:

    f = rk.functions["aba"].to_casadi(robot)

The motion is discretised with the midpoint rule, and the states and torques of all steps are the unknowns
(direct transcription). Install the extra with `pip install 'robokit[casadi]'`.

Check: robokit's motion with these torques ends upright, and every torque is smaller than the one that would
hold the pendulum level, so it has to swing.
"""

import argparse
import webbrowser
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib import pyplot as plt

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("swing_up.png"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("double_pendulum"))
f = rk.functions["aba"].to_casadi(robot)
steps, h = 60, 0.05
problem = ca.Opti()
q, v, tau = (problem.variable(2, n) for n in (steps + 1, steps + 1, steps))
for k in range(steps):
    middle = (q[:, k] + q[:, k + 1]) / 2, (v[:, k] + v[:, k + 1]) / 2
    problem.subject_to(q[:, k + 1] == q[:, k] + h * middle[1])
    problem.subject_to(v[:, k + 1] == v[:, k] + h * f(*middle, tau[:, k]))
for place, angles in ((0, [0.0, 0.0]), (steps, [np.pi, 0.0])):
    problem.subject_to(q[:, place] == angles)
    problem.subject_to(v[:, place] == 0.0)
problem.minimize(h * ca.sumsqr(tau))
problem.set_initial(q[0, :], np.linspace(0.0, np.pi, steps + 1))
problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
found = problem.solve()
q, v, tau = (found.value(x).T for x in (q, v, tau))
print(f"effort {found.value(problem.f):.1f} N^2 m^2 s after {found.stats()['iter_count']} iterations")

plt.plot(h * np.arange(steps + 1), q, h * (np.arange(steps) + 0.5), tau, "--")
plt.legend([f"{name} {what}" for what in ("[rad]", "[N m]") for name in robot.joint_names])
plt.xlabel("time [s]")
plt.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

a = rk.aba(robot, (q[:-1] + q[1:]) / 2, (v[:-1] + v[1:]) / 2, tau)
assert np.abs(v[1:] - v[:-1] - h * a).max() < 1e-6, "CasADi and robokit disagree about the motion"
assert np.abs(q[-1] - [np.pi, 0.0]).max() < 1e-6, "it is not upright"
level = np.abs(rk.gravity_forces(robot, [np.pi / 2, 0.0])).max()
assert np.abs(tau).max() < 0.6 * level, "it was lifted, not swung"
