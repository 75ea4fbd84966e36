"""A humanoid stands by linear feedback (LQR).

It has bent knees and no servos. A step of 4 ms is linear in small changes x of its state and u of its
torques, x' = A x + B u; rk.step_derivatives returns A and B, including the contacts of the feet. If a step
costs x^T Q x + u^T R u, the Riccati recursion gives u = -K x: each torque depends on all 74 numbers of the
state. Dry joint friction is removed, since a joint that it holds has zero derivatives. The page shows a push
at the pelvis, 150 N for 0.1 s. The ghost has constant torques only.

Check: it stands where it stood, the ghost falls, and after a nudge it sways as A - B K predicts.
"""

import argparse
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np

import robokit as rk
from robokit.viewer import compare

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("lqr.html"), metavar="FILE")
arguments = parser.parse_args()
robot, dt = rk.load_urdf(rk.find_robot("humanoid"), base="floating"), 4e-3
robot = replace(robot, joints=tuple(replace(joint, friction=0.0) for joint in robot.joints))
bend = {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3}
q = robot.configuration({f"{side}_{joint}": x for side in ("left", "right") for joint, x in bend.items()})
servos, q = rk.PD(kp=2000.0, kd=100.0), rk.standing_configuration(robot, q=q)
q = rk.simulate(robot, q, duration=3.0, dt=dt, ground=True, actuators=servos).q[-1]  # at rest
nv, hold = robot.nv, np.zeros(robot.nv)
for _ in range(8):
    step = rk.step_derivatives(robot, q, 0.0 * hold, hold, ground=True, dt=dt)
    hold[6:] -= np.linalg.lstsq(step.B[nv:, 6:], step.v, rcond=1e-6)[0]
A, B, R = step.A, step.B[:, 6:], 0.01 * np.eye(nv - 6)
P = Q = np.diag(np.repeat([300.0, 30.0, 10.0, 0.3], [6, nv - 6, 6, nv - 6]))
for _ in range(600):
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    P = Q + A.T @ P @ (A - B @ K)


def run(feedback, pushes=None, v0=None):
    """The trajectory, and x before each step."""
    sim, x = rk.Simulation(robot, q, v0, ground=True, dt=dt, pushes=pushes), []
    for _ in range(500):
        x.append(np.concatenate([robot.difference(q, sim.q), sim.v]))
        sim.step(hold - np.pad(feedback @ x[-1], (6, 0)))
    return sim.trajectory(), np.array(x)


push = rk.Push("pelvis", (150.0, 0.0, 0.0), duration=0.1)
(stands, x), (falls, _), (_, nudged) = run(K, push), run(0.0 * K, push), run(K, v0=0.02 * np.eye(nv)[4])
compare(stands, falls, arguments.output, labels=("feedback", "the same torques throughout"))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
sways = (np.linalg.matrix_power(A - B @ K, 100) @ nudged[0])[:6:2]  # roll, yaw and y after 0.4 s
off = abs(sways - nudged[100, :6:2]).max() / abs(sways).max()
print(f"pushed: {abs(x[-1, :6]).max():.4f} from where it stood; nudged: it sways as foreseen to {off:.2%}")
assert abs(x[-1, :6]).max() < 0.01 and falls.q[-1, 6] < 0.5 and off < 0.01, "it does not stand, or by chance"
