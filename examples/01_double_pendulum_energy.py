"""A double pendulum swings freely and keeps its energy.

Without friction, kinetic energy turns into potential energy and back, and their sum stays constant. The
motion is chaotic, so there is no reference solution to compare with; the energy shows whether it is right.

Without a ground, rk.simulate uses a fourth-order Runge-Kutta method on the joints' manifolds ("rkmk4"), with
four accelerations a step. For comparison, the same motion is computed by the midpoint rule, of second order.
Its energy error is the red curve.

    trajectory = rk.simulate(robot, q0, duration=10.0)
    trajectory.energy.kinetic, .potential, .dissipated, .total        one value per recorded instant

Check: the fourth-order method keeps the energy to 1e-7 of the largest kinetic energy, and halving the step
reduces the error by about 2^4, as expected for fourth order.
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


def energy(integrator: str, dt: float) -> tuple[np.ndarray, rk.Trajectory]:
    """Error of the total energy over time [J], and the motion."""
    motion = rk.simulate(robot, q0, duration=arguments.duration, dt=dt, integrator=integrator)
    return abs(motion.energy.total - motion.energy.total[0]), motion


error, motion = energy("rkmk4", 1e-3)
coarse, _ = energy("rkmk4", 2e-3)
second, _ = energy("midpoint", 1e-3)
most = motion.energy.kinetic.max()
print(f"energy error {error.max():.1e} J, {coarse.max():.1e} J at twice the step, of {most:.1f} J")

above, below = Figure(figsize=(8, 6), layout="constrained").subplots(2, sharex=True)
for name in ("kinetic", "potential", "total"):
    above.plot(motion.t, getattr(motion.energy, name), label=name)
below.semilogy(motion.t, error + 1e-16, label="rkmk4, 1 ms")
below.semilogy(motion.t, second + 1e-16, color="red", label="midpoint, 1 ms")
above.set(ylabel="energy [J]"), below.set(ylabel="error [J]", xlabel="t [s]")
above.legend(), below.legend()
above.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

assert error.max() < 1e-7 * most, "energy is not conserved"
assert 8 < coarse.max() / error.max() < 32, "halving the step does not divide the error by about 16"
