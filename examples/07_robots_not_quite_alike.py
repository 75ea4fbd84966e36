"""Five hundred quadrupeds with different masses, each on a floor with different friction.

The masses of a robot and the friction of a floor are never known exactly. Draw them at random for each row,
and see how the motion depends on them (domain randomisation):

    P = robot.inertial_parameters                                    (nbodies + 1, 10)
    many = robot.with_inertias(P * scale)                            (500, nbodies + 1, 10)
    rollout = rk.rollout(many, q0, v0, ground=rk.Ground(friction=mu))

Row k is the robot of sample k on a floor with friction mu[k]. Inertias and friction are inputs of one kernel,
so new values compile nothing. dtype="float32" records in half the memory.

All robots start at the same speed. The picture shows how far each slides, coloured by its mass.

Check: a row is what rk.simulate computes for its sample, more friction means a shorter distance, and single
precision gives the same mean.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("not_alike.png"), metavar="FILE")
parser.add_argument("--duration", type=float, default=0.8, help="seconds, default 0.8")
parser.add_argument("--robots", type=int, default=500, help="how many, default 500")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
rng = np.random.default_rng(0)
P = robot.inertial_parameters
many = robot.with_inertias(P * rng.uniform(0.7, 1.3, (arguments.robots, len(P), 1)))
mu = rng.uniform(0.1, 0.8, arguments.robots)
q0, v0 = rk.standing_configuration(robot), np.zeros(robot.nv)
v0[3] = 1.0
motion = {"duration": arguments.duration, "ground": rk.Ground(friction=mu)}
rollout = rk.rollout(many, q0, v0, **motion)
single = rk.rollout(many, q0, v0, **motion, dtype="float32")
for found in (rollout, single):
    print(f"{found.summary['dtype']}: {found.summary['steps_per_second']:,.0f} steps a second")

distance = rollout.q[-1, :, 4] - q0[4]
axes = Figure(figsize=(6, 4), layout="constrained").subplots()
axes.figure.colorbar(axes.scatter(mu, distance, c=many.total_mass, s=8), label="mass [kg]")
axes.set(xlabel="friction coefficient", ylabel="distance [m]", title=f"after {rollout.t[-1]:g} s")
axes.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

print(f"{distance.min():.2f} to {distance.max():.2f} m, masses {np.ptp(many.total_mass):.2f} kg apart")
one = rk.simulate(many.sample(3), q0, v0, duration=0.05, ground=rk.Ground(friction=mu[3]))
assert np.allclose(rollout.q[: len(one), 3], one.q, atol=1e-9), "a row moves otherwise than its sample"
assert np.corrcoef(distance, mu)[0, 1] < -0.5, "friction does not shorten the distance"
assert abs(single.q[-1, :, 4].mean() - rollout.q[-1, :, 4].mean()) < 5e-3, "single precision differs"
