"""The least effort to hold a tool: a function of your own and its gradient.

An arm with seven joints can hold its tool at a point in many postures. Which of them takes the least torque?
robokit has no function for that, so the example writes one:

    @rk.function(inputs=("q",), outputs={"effort": ()})
    def effort(tree, q): ...

It is compiled for the arm, and effort.gradient("q") is a function, too: all that SciPy needs.

Check: the effort is less than 0.6 of that in the posture of inverse kinematics, the tool is where it was, and
no small motion that keeps it there reduces the effort.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

import robokit as rk
from robokit.algorithms.bias import gravity_forces

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("effort.png"), metavar="FILE")
arguments = parser.parse_args()
robot, target = rk.load_urdf(rk.find_robot("arm")), np.array([0.45, 0.2, 0.5])


@rk.function(inputs=("q",), outputs={"effort": ()})
def effort(tree, q):
    """Sum of the squares of the torques that hold the arm still [N^2 m^2]."""
    return sum(t * t for row in gravity_forces(tree, q) for t in row)


def missed(q):
    """From the target to the tool [m]."""
    return rk.forward_kinematics(robot, q)["gripper"][1] - target


start = rk.inverse_kinematics(robot, {"gripper": target}, robot.neutral() + 0.3).q
cost = {"fun": lambda q: effort(robot, q), "jac": lambda q: effort.gradient("q")(robot, q)}
held = {"type": "eq", "fun": missed, "jac": lambda q: rk.link_jacobian(robot, q, "gripper")[3:]}
how = {"bounds": [(j.lower, j.upper) for j in robot.joints], "options": {"ftol": 1e-10, "maxiter": 300}}
best = minimize(x0=start, method="SLSQP", constraints=held, **cost, **how)
axes = Figure(figsize=(8, 4), layout="constrained").subplots(subplot_kw={"ylabel": "torque that holds [N m]"})
for shift, label, q in ((-0.2, "inverse kinematics", start), (0.2, "least effort", best.x)):
    axes.bar(np.arange(7) + shift, np.abs(rk.gravity_forces(robot, q)), 0.4, label=label)
axes.legend(title=f"effort {effort(robot, start):.0f} and {best.fun:.0f} N² m²")
axes.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
g, J = cost["jac"](best.x), held["jac"](best.x)
left = np.abs(g - J.T @ np.linalg.lstsq(J.T, g)[0]).max() / np.abs(g).max()
print(f"effort {effort(robot, start):.1f} -> {best.fun:.1f} N^2 m^2; {left:.0e} of the gradient is left")
assert np.abs(missed(best.x)).max() < 1e-9, "the tool has moved"
assert best.fun < 0.6 * effort(robot, start) and left < 1e-6, "this is not the least effort"
