"""An arm draws a circle, within its limits and around a ball: velocity IK as a quadratic program.

Every 10 ms the joint velocities v solve a small problem, which DAQP does in microseconds:

    minimise   |J v - x'|^2 + 1e-4 |v|^2             x': along the circle, and back to it
    such that  v and the next q are within the joints' limits
               gradient . v >= 3 (0.03 m - d)        of each distance d below 0.2 m

rk.distance computes the distances of links from each other and from the ball, with gradients. Servos of a
simulated arm follow v. On the page, the hand leaves the circle near the ball; the tab Curves shows the
smallest distance. Install the extra with `pip install 'robokit[control]'`.

Check: no distance falls below 2.8 cm, no speed exceeds its limit, and elsewhere it is a circle to 5 mm.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from qpsolvers import solve_qp

import robokit as rk
from robokit.model import Sphere

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("circle.html"), metavar="FILE")
arguments = parser.parse_args()
arm, dt, turn = rk.load_urdf(rk.find_robot("arm")), 0.01, 2.0 * np.pi / 5.0  # [s, rad/s]
hand, world = arm.link_names[-1], rk.Ground(plane=False, shapes=[rk.Solid(Sphere(0.05), (0.5, -0.3, 0.75))])
low, high, fast = np.array([(joint.lower, joint.upper, 0.4 * joint.velocity) for joint in arm.joints]).T


def circle(t):
    """Where the hand shall be, and its velocity."""
    y, z = 0.25 * np.sin(turn * t), 0.25 * np.cos(turn * t)
    return np.array([0.45, y, 0.75 + z]), turn * np.array([0.0, z, -y])


def velocities(t, q):
    """The best joint velocities."""
    x, J = rk.forward_kinematics(arm, q)[hand][1], rk.link_jacobian(arm, q, hand)[3:]
    near, (goal, rate) = rk.distance(arm, q, ground=world, max_distance=0.2, gradient=True), circle(t)
    G, h = -near.gradient, 3.0 * (np.minimum(near.distance, 0.2) - 0.03)
    P, p = J.T @ J + 1e-4 * np.eye(arm.nv), -J.T @ (rate + 5.0 * (goal - x))
    ends = np.maximum(-fast, (low - q) / dt), np.minimum(fast, (high - q) / dt)
    return solve_qp(P, p, G, h, lb=ends[0], ub=ends[1], solver="daqp")


q0 = rk.inverse_kinematics(arm, {hand: circle(0.0)[0]}, np.array([0.0, 0.5, 0.0, 1.2, 0.0, 0.8, 0.0])).q
servos, share = rk.Velocity(gain=500.0, effort=np.inf), 0.0
sim = rk.Simulation(arm, q0, ground=world, dt=1e-3, actuators=servos)
while sim.time < 7.5:
    v = velocities(sim.time, sim.q)
    share = max(share, (abs(v) / fast).max())
    sim.step(v, tau=rk.bias_forces(arm, sim.q, sim.v), steps=10)
run = sim.trajectory()
least = rk.distance(arm, run.q, ground=world).distance.min(axis=1)
run.to_html(arguments.output, curves={"least distance [m]": least})
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
there = np.array([circle(t)[0] for t in run.t])
off = np.linalg.norm(rk.forward_kinematics(arm, run.q)[hand][1] - there, axis=1)
away = (run.t > 1.0) & (np.sin(turn * run.t) > 0.2)
print(f"least distance {least.min():.4f} m; off the circle by {off[away].max():.4f} m away from the ball and",
      f"{off.max():.3f} m beside it; largest share of a joint's speed {share:.2f}")  # fmt: skip
assert least.min() > 0.028 and share < 1.0 + 1e-6, "too near, or too fast"
assert off[away].max() < 5e-3 and off.max() > 0.04, "no circle, or the ball does not matter"
