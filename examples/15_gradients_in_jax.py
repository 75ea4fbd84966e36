"""Gradients through a motion, in JAX.

With which velocity must a double pendulum start to reach a given place after a quarter of a second? The
motion is a JAX loop, `jax.lax.scan`, around robokit's forward dynamics. JAX differentiates the loop and uses
robokit's derivative of robokit's function:

    f = rk.functions["aba"].to_jax(robot)

`jax.vmap` computes 32 pendulums at once. Install the extra with `pip install 'robokit[jax]'`.

Check: every pendulum reaches its place, and the derivative agrees with a difference quotient.
"""

import argparse
import webbrowser
from pathlib import Path

import jax
import numpy as np
from matplotlib import pyplot as plt

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("arrivals.png"), metavar="FILE")
arguments = parser.parse_args()

jax.config.update("jax_enable_x64", True)
robot = rk.load_urdf(rk.find_robot("double_pendulum"))
f, h = rk.functions["aba"].to_jax(robot), 0.01


def arrival(v, q):
    """Where a pendulum that starts at q with v is after 25 steps."""

    def step(x, _):
        v = x[1] + h * f(*x, jax.numpy.zeros(2))
        return (x[0] + h * v, v), None

    return jax.lax.scan(step, (q, v), length=25)[0][0]


rng = np.random.default_rng(0)
q, v = rng.uniform(-0.5, 0.5, (32, 2)), jax.numpy.zeros((32, 2))
goal = jax.vmap(arrival)(rng.uniform(-2.0, 2.0, (32, 2)), q)
both, misses = jax.jit(jax.vmap(lambda *x: (arrival(*x), jax.jacrev(arrival)(*x)))), []
for _ in range(8):
    place, slope = both(v, q)
    misses.append(np.abs(place - goal).max(axis=1))
    v = v - jax.numpy.linalg.solve(slope, (place - goal)[..., None])[..., 0]
print("largest miss after each step [rad]:", *(f"{x.max():.0e}" for x in misses))
plt.semilogy(np.array(misses) + 1e-17), plt.xlabel("step of Newton's method"), plt.ylabel("miss [rad]")
plt.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

assert misses[-1].max() < 1e-10, "a pendulum did not arrive"
more, less = (arrival(v[0] + jax.numpy.array([d, 0.0]), q[0]) for d in (1e-6, -1e-6))
assert np.abs((more - less) / 2e-6 - slope[0, :, 0]).max() < 1e-7, "the derivative is wrong"
