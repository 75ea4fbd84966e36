"""Three hundred humanoids, pushed in every direction.

One robot, many states: rk.rollout computes all steps of all states in machine code, on all processors.

    starts = np.zeros((300, robot.nv));  starts[:, 3:6] = push      base: [angular; linear] in base axes
    rollout = rk.rollout(robot, q0, starts, duration=1.5, ground=rk.Ground(sink=5e-4))
    rollout.q                                                        (states recorded, 300, nq)

Each row moves as in rk.simulate, independent of the other rows. rollout.trajectory(k) gives row k with its
energies and contact forces. If a row failed, it would be NaN from then on, and rollout.failed would list it.

The picture shows the final position of each pelvis, coloured by the speed of the push. No motor drives the
joints, so all robots fall; the push decides how far.

Check: no row failed, the row of the strongest push is what rk.simulate computes, and no contact penetrated by
more than 3 mm. The summary counts steps that did not converge.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("pushed.png"), metavar="FILE")
parser.add_argument("--duration", type=float, default=1.5, help="seconds, default 1.5")
parser.add_argument("--robots", type=int, default=300, help="how many, default 300")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q0 = rk.standing_configuration(robot)
rng = np.random.default_rng(0)
speed, angle = rng.uniform(0.2, 2.0, arguments.robots), rng.uniform(0.0, 2.0 * np.pi, arguments.robots)
starts = np.zeros((arguments.robots, robot.nv))
starts[:, 3], starts[:, 4] = speed * np.cos(angle), speed * np.sin(angle)
ground = rk.Ground(sink=5e-4)  # stiffer than usual: a few of hundreds of heads hit it hard
rollout = rk.rollout(robot, q0, starts, duration=arguments.duration, ground=ground, progress=True)
print(f"{rollout}, {rollout.summary['steps_per_second']:,.0f} steps a second")
settled = f"{rollout.summary['steps_not_settled']} steps not settled"
print(f"{settled}, deepest contact at {1e3 * rollout.deepest.max():.2f} mm")

x, y, height = rollout.q[-1, :, 4:7].T
axes = Figure(figsize=(6, 5), layout="constrained").subplots()
axes.figure.colorbar(axes.scatter(x, y, c=speed, s=8), label="push [m/s]")
axes.set(xlabel="x [m]", ylabel="y [m]", title=f"pelvis after {rollout.t[-1]:g} s", aspect="equal")
axes.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

k = int(speed.argmax())
print(f"pelvis at {height.min():.2f} to {height.max():.2f} m; row {k} was pushed at {speed[k]:.2f} m/s")
one = rk.simulate(robot, q0, starts[k], duration=0.2, ground=ground)
assert not len(rollout.failed), "a row is not finite"
assert np.allclose(rollout.q[: len(one), k], one.q, atol=1e-8), "a row moves otherwise than a simulation"
assert rollout.deepest.max() < 3e-3, "a contact sank into the ground"
