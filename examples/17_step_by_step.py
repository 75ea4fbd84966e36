"""Step by step: a humanoid squats, with targets computed in Python.

The program sets the targets of the motors before every step, and can read the results after it: ``sim.q``,
``sim.v``, ``sim.contacts``, ``sim.sensors``:

    sim = rk.Simulation(robot, q0, ground=True, dt=2e-3, actuators=rk.PD(kp=1000.0, kd=50.0))
    sim.step(targets)

These steps are those of ``rk.simulate`` to the last bit.

    there = sim.state()
    sim.restore(there)

returns to an earlier state, to the last bit. ``sim.trajectory()`` is the recorded motion, for the page.

Check: the feet stay on the ground, the head sinks by 4 cm and rises, and going back gives the same bits.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("squat.html"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
servos = rk.PD(kp=1000.0, kd=50.0)
sim = rk.Simulation(robot, rk.standing_configuration(robot), ground=True, dt=2e-3, actuators=servos)
bend = {"hip_pitch": -0.5, "knee": 1.0, "ankle_pitch": -0.5}
deep = np.array([sum(x for part, x in bend.items() if part in name) for name in sim.driven])
heads, loads = [], []


def squat(steps):
    """So many steps; a squat takes two seconds."""
    for _ in range(steps):
        sim.step(0.3 * (1.0 - np.cos(np.pi * sim.time)) * deep)
        heads.append(rk.forward_kinematics(robot, sim.q)["head"][1][2])
        loads.append(sim.contacts.forces[:, 2].sum() / (9.81 * robot.total_mass))


squat(500)
there = sim.state()
squat(500)
end = sim.q
sim.restore(there)
squat(500)
sim.trajectory().to_html(arguments.output)
print(f"the head sinks by {heads[0] - min(heads):.3f} m; the feet carry at least {min(loads):.0%}")
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
sinks, rises = heads[0] - min(heads), heads[999] - min(heads)
assert np.array_equal(sim.q, end), "the same steps from the same state end in the same bits"
assert min(loads) > 0.5 and sinks > 0.04 and rises > 0.04, "it squats, and its feet stay on the ground"
