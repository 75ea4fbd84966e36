"""A double pendulum swings up by its elbow alone, found by iLQR.

Only the elbow has a motor, too weak to lift anything at once. iLQR improves a whole motion of 200 steps:

    step = rk.step_derivatives(robot, q, v, tau, dt=0.02, integrator="contact")

is the next state and its derivatives A and B. In a backward pass through these, the Riccati recursion gives a
change k of each torque and a feedback K. In a forward pass, the simulator applies the change, or a part of
it, with the feedback. It starts from a small sine, and takes some 50 iterations.

The page shows the swing-up, followed by two seconds of balancing with the upright feedback.

Check: it stands at the end, also from a start 0.02 rad off, which needs the feedback; its torque is always
less than half of the largest gravity torque at the shoulder.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("swing_up.html"), metavar="FILE")
arguments = parser.parse_args()
robot, options = rk.load_urdf(rk.find_robot("double_pendulum")), {"dt": 0.02, "integrator": "contact"}
up, elbow, T = np.array([np.pi, 0.0, 0.0, 0.0]), np.array([0.0, 1.0]), 200
Q, r, end = np.diag([2e-3, 2e-3, 2e-4, 2e-4]), 2e-3, np.diag([1e3, 1e3, 100.0, 100.0])  # costs


def backwards(A, b, P, x, u):
    """Feedbacks K and changes k of the torques, and P at the start."""
    K, k, p = np.zeros((len(u), 4)), np.zeros(len(u)), P @ (x[-1] - up)
    for t in reversed(range(len(u))):
        h = r + b[t] @ P @ b[t]
        K[t], k[t] = b[t] @ P @ A[t] / h, -(b[t] @ p + r * u[t]) / h
        p, P = Q @ (x[t] - up) + (A[t] - np.outer(b[t], K[t])).T @ p - r * u[t] * K[t], A[t].T @ P @ A[t]
        P = Q + 0.5 * (P + P.T) - h * np.outer(K[t], K[t])
    return K, k, P


def forwards(start, K, k, x, u):
    """Steps with u + k - K (x' - x): cost, x, u, A and b."""
    new_x, new_u, A, b = [np.array(start)], [], [], []
    for t in range(len(u)):
        new_u.append(u[t] + k[t] - K[t] @ (new_x[t] - x[t]))
        step = rk.step_derivatives(robot, new_x[t][:2], new_x[t][2:], new_u[t] * elbow, **options)
        new_x.append(np.concatenate([step.q, step.v])), A.append(step.A), b.append(step.B @ elbow)
        if abs(step.v).max() > 50.0:
            return (np.inf,)
    e = np.array(new_x) - up
    return (e @ Q * e).sum() + r * np.dot(new_u, new_u) + e[-1] @ end @ e[-1], new_x, new_u, A, b


rest, none = np.zeros(4), np.zeros((T, 4))
best = forwards(rest, none, 0.1 * np.sin(0.06 * np.arange(T)), [rest] * T, np.zeros(T))
for _ in range(60):
    cost, x, u, A, b = best
    K, k, _ = backwards(A, b, end, x, u)
    tries = (forwards(rest, K, part * k, x, u) for part in (1.0, 0.5, 0.2, 0.1, 0.05))
    best = next((each for each in tries if each[0] < cost), best)
cost, x, u, *_ = best
step = rk.step_derivatives(robot, up[:2], up[2:], **options)
balance = backwards([step.A] * T, [step.B @ elbow] * T, Q, [up] * (T + 1), np.zeros(T))[0][0]
sim = rk.Simulation(robot, rest[:2], **options)
for t in range(300):
    now = np.concatenate([sim.q, sim.v])
    sim.step((u[t] - K[t] @ (now - x[t]) if t < T else -balance @ (now - up)) * elbow)
sim.trajectory().to_html(arguments.output)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
off = [abs(forwards([0.02, 0, 0, 0], gain, 0 * k, x, u)[1][-1] - up)[:2].max() for gain in (K, none)]
level = abs(rk.gravity_forces(robot, [np.pi / 2, 0.0])[0])
print(f"torque up to {max(map(abs, u)):.1f} N m, gravity {level:.1f} N m; 0.02 rad off at first:",
      f"{off[0]:.3f} rad off in the end, {off[1]:.3f} without feedback")  # fmt: skip
assert abs(sim.q - up[:2]).max() < 0.01 and max(map(abs, u)) < 0.5 * level, "it is not up, or was lifted"
assert off[0] < 0.05 < off[1], "the feedback is of no use"
