"""Centroidal momentum: a humanoid tumbles without gravity, and its momentum stays constant.

No external force acts on the robot. So its momentum about the centre of mass cannot change, whatever its
joints do. The momentum is linear in the velocities,

    h_G = A_G(q) v,    rows [angular; linear] in world axes

with A_G from rk.centroidal_momentum_matrix(robot, q). Its rate is A_G a + (d/dt A_G) v. The second part,
rk.centroidal_momentum_bias(robot, q, v), is the rate at zero acceleration; without forces the accelerations
must cancel it exactly. Controllers of walking robots use both parts.

Constant angular momentum is not constant angular velocity: the limbs swing, the inertia changes with them,
and the pelvis turns faster and slower although h_G is constant.

Check: A_G a + bias is zero at every recorded instant; the bias is the derivative of A_G along the motion, by
finite differences; and h_G is constant, as the simulator ensures at every step.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("tumble.html"), metavar="FILE")
parser.add_argument("--duration", type=float, default=3.0, help="seconds, default 3")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating").with_gravity((0, 0, 0))
v0 = 0.5 * np.random.default_rng(0).standard_normal(robot.nv)
v0[:6] = [1.0, 3.0, 0.5, 0.0, 0.0, 0.0]  # the base's [angular; linear] velocity in base axes
trajectory = rk.simulate(robot, robot.neutral(), v0, duration=arguments.duration)
trajectory.to_html(arguments.output)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

q, v = trajectory.q, trajectory.v
A = rk.centroidal_momentum_matrix(robot, q)
h = np.einsum("tij,tj->ti", A, v)
spread = np.abs(h - h[0]).max()
print(f"h_G = {np.round(h[0], 3)}, changes by {spread:.1e} in {arguments.duration:g} s")
speed = np.linalg.norm(v[:, :3], axis=1)
print(f"pelvis turns at {speed.min():.2f} to {speed.max():.2f} rad/s")

a = rk.aba(robot, q, v, np.zeros_like(v))
bias = rk.centroidal_momentum_bias(robot, q, v)
e = 1e-6
ahead, behind = (rk.centroidal_momentum_matrix(robot, robot.integrate(q, s * v)) for s in (e, -e))
by_differences = np.einsum("tij,tj->ti", (ahead - behind) / (2 * e), v)
assert spread < 1e-6, "the momentum changed although nothing acts on the robot"
assert np.abs(np.einsum("tij,tj->ti", A, a) + bias).max() < 1e-7, "the rate of momentum is not zero"
assert np.abs(by_differences - bias).max() < 1e-5, "the bias is not (d/dt A_G) v"
