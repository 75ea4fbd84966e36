"""A double pendulum balances upright, by the derivatives of its forward dynamics.

Near its upright rest, x = [q - up, v] obeys x' = A x + B u. The blocks of A and B are what

    da_dq, da_dv, da_dtau = rk.aba_derivatives(robot, up, v, tau)

returns. Only the elbow has a motor: B is one column of da_dtau. If a step of 10 ms costs x^T Q x + u^2, the
Riccati solution P gives the cost-to-go, x^T P x, and the feedback u = -K x that stabilises the real robot.

Check: the pendulum ends upright, which is unstable without the motor, and the actual cost is x^T P x to 2 %.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp
from scipy.linalg import expm, solve_discrete_are

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("balance.png"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("double_pendulum"))
up, rest, dt = np.array([np.pi, 0.0]), np.zeros(2), 0.01
da_dq, da_dv, da_dtau = rk.aba_derivatives(robot, up, rest, rest)
rows = np.vstack([np.eye(2, 5, k=2), np.hstack([da_dq, da_dv, da_dtau[:, 1:]])])
step = expm(dt * np.vstack([rows, np.zeros(5)]))  # u stays the same through a step
A, B, Q = step[:4, :4], step[:4, 4:], np.eye(4)
P = solve_discrete_are(A, B, Q, np.eye(1))
K = (B.T @ P @ A)[0] / (1.0 + B.T @ P @ B)[0]


def rate(_, x, u):
    """dx/dt of the nonlinear robot."""
    return np.concatenate([x[2:], rk.aba(robot, up + x[:2], x[2:], np.array([0.0, u]))])


x, log = np.array([0.01, -0.01, 0.0, 0.0]), []
foreseen = x @ P @ x
for _ in range(400):
    u = -K @ x
    log.append((*x[:2], u, x @ Q @ x + u * u))
    x = solve_ivp(rate, (0.0, dt), x, args=(u,), rtol=1e-8, atol=1e-12).y[:, -1]

axes = Figure(figsize=(8, 4), layout="constrained").subplots()
axes.plot(dt * np.arange(400), np.array(log)[:, :3], label=("shoulder [rad]", "elbow [rad]", "torque [N m]"))
axes.legend(title="over seconds")
axes.figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
paid, growth = np.array(log)[:, 3].sum(), abs(np.linalg.eigvals(A)).max()
print(f"cost paid {paid:.3f}, foreseen {foreseen:.3f}; without the motor, {growth:.3f} times in a step")
assert growth > 1.0 and abs(x).max() < 1e-3, "the pendulum does not end upright"
assert abs(paid - foreseen) < 0.02 * foreseen, "the derivatives do not foresee the cost"
