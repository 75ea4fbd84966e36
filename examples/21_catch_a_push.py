"""A humanoid catches a push that linear feedback cannot, by iLQR.

The linear feedback of example 19 is valid for small changes only, not for feet that tip or arms that swing.
iLQR optimises the whole motion: a backward pass through the derivatives of its 350 steps,

    step = rk.step_derivatives(robot, q, v, tau, ground=True, dt=dt)        # q (350, nq), A (350, 74, 74)

gives feedbacks K and changes k of the torques, which a forward pass applies in the simulator. The push starts
at a size that the linear feedback can catch, and grows.

The page shows 300 N at the pelvis for 0.1 s. The robot yields at ankles and hips, rises on its toes and comes
down again; the ghost has the linear feedback only.

Check: the ghost falls; with iLQR the robot comes to rest standing, even after a push that is 3 % larger.
"""

import argparse
import warnings
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np

import robokit as rk
from robokit.viewer import compare

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("catch.html"), metavar="FILE")
arguments = parser.parse_args()
robot, dt, T = rk.load_urdf(rk.find_robot("humanoid"), base="floating"), 4e-3, 350
robot = replace(robot, joints=tuple(replace(joint, friction=0.0) for joint in robot.joints))
bend = {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3}
rest = robot.configuration({f"{side}_{joint}": x for side in ("left", "right") for joint, x in bend.items()})
servos, rest = rk.PD(kp=2000.0, kd=100.0), rk.standing_configuration(robot, q=rest)
rest = rk.simulate(robot, rest, duration=3.0, dt=dt, ground=True, actuators=servos).q[-1]
n, hold = robot.nv - 6, np.zeros(robot.nv)
Q, R = np.diag(np.repeat([300.0, 30.0, 10.0, 0.3], [6, n, 6, n])), 0.01 * np.eye(n)


def backwards(A, B, P, x, w):
    """Feedbacks K and changes k for states x and torques w, counted from rest; and P at the start."""
    K, k, p = [0] * len(w), 0.0 * w, P @ x[-1]
    for t in reversed(range(len(w))):
        H, G = R + B[t].T @ P @ B[t], B[t].T @ P @ A[t]
        K[t], k[t] = np.linalg.solve(H, G), -np.linalg.solve(H, B[t].T @ p + R @ w[t])
        p, P = Q @ x[t] + A[t].T @ p + G.T @ k[t], Q + A[t].T @ P @ A[t] - G.T @ K[t]
        P = 0.5 * (P + P.T)
    return K, k, P


def forwards(force, K, k, x, w):
    """A push, answered by w + k - K (x' - x): its cost, the run, and its q, v, x and w."""
    push, found, torques = rk.Push("pelvis", (force, 0.0, 0.0), duration=0.1), [], []
    sim = rk.Simulation(robot, rest, ground=True, dt=dt, pushes=push)
    for t in range(T + 1):
        found.append((sim.q, sim.v, np.concatenate([robot.difference(rest, sim.q), sim.v])))
        if t < T:
            torques.append(w[t] + k[t] - K[t] @ (found[t][2] - x[t]))
            sim.step(hold + np.pad(torques[t], (6, 0)))
    q, v, x, w = *map(np.array, zip(*found, strict=True)), np.array(torques)
    return np.vdot(x @ Q, x) + np.vdot(w @ R, w) + x[-1] @ end @ x[-1], sim, q, v, x, w


for _ in range(8):
    step = rk.step_derivatives(robot, rest, 0.0 * hold, hold, ground=True, dt=dt)
    hold[6:] -= np.linalg.lstsq(step.B[-robot.nv :, 6:], step.v, rcond=1e-6)[0]
x, w = np.zeros((601, 2 * robot.nv)), np.zeros((600, n))
K, _, end = backwards([step.A] * 600, [step.B[:, 6:]] * 600, Q, x, w)  # of example 19
alone, best = (forwards(force, K[:1] * T, w, x, w) for force in (300.0, 200.0))
for force in (200.0, 200.0, 240.0, 240.0, 300.0, 300.0, 300.0):
    _, _, q, v, x, w = best
    step = rk.step_derivatives(robot, q[:-1], v[:-1], hold + np.pad(w, ((0, 0), (6, 0))), ground=True, dt=dt)
    K, k, _ = backwards(step.A, step.B[:, :, 6:], end, x, w)
    best = min((forwards(force, K, part * k, x, w) for part in (1.0, 0.3, 0.0)), key=lambda each: each[0])
    print(f"{force:g} N: cost {best[0]:.0f}")
more = forwards(309.0, K, 0.0 * k, *best[4:])
warnings.simplefilter("ignore", rk.SimulationWarning)  # on the ground the ghost flails by its feedback
compare(best[1].trajectory(), alone[1].trajectory(), arguments.output, labels=("iLQR", "feedback alone"))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
ends = [abs(run[4][-1]).max() for run in (best, more)]
print(f"in the end {ends[0]:.4f} from rest; after a push that is 3 % larger {ends[1]:.4f}")
assert alone[2][-1, 6] < 0.5 and max(ends) < 0.05, "it does not stand, or would anyway"
