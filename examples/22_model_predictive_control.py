"""A swing-up with disturbances: model predictive control with CasADi.

Every 50 ms the controller plans the next two seconds from the current state of the double pendulum, and
applies the first torque of the plan. The plan respects the motors' limits; that of the shoulder is half of
the largest gravity torque there. CasADi gets the operations of robokit's forward dynamics,

    f = rk.functions["aba"].to_casadi(robot)

and IPOPT starts from the last plan, so it needs only a few iterations. The simulation runs at 1 ms. Install
the extra with `pip install 'robokit[casadi]'`.

The page shows the swing-up, pushed at 1.5 s and, when it stands, at 4 s. The ghost replays the torques of a
run without pushes and fails.

Check: it stands at the end despite the pushes, with torques within the limits; the ghost does not.
"""

import argparse
import webbrowser
from pathlib import Path

import casadi as ca
import numpy as np

import robokit as rk
from robokit.viewer import compare

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("mpc.html"), metavar="FILE")
arguments = parser.parse_args()
robot, h, steps = rk.load_urdf(rk.find_robot("double_pendulum")), 0.05, 40
most, up = np.array([7.0, 3.0]), np.array([np.pi, 0.0])
f, problem = rk.functions["aba"].to_casadi(robot), ca.Opti()
q, v, tau = (problem.variable(2, n) for n in (steps + 1, steps + 1, steps))
now = problem.parameter(4)
problem.subject_to(ca.vertcat(q[:, 0], v[:, 0]) == now)
for k in range(steps):
    middle = (q[:, k] + q[:, k + 1]) / 2, (v[:, k] + v[:, k + 1]) / 2
    problem.subject_to(q[:, k + 1] == q[:, k] + h * middle[1])
    problem.subject_to(v[:, k + 1] == v[:, k] + h * f(*middle, tau[:, k]))
    problem.subject_to(problem.bounded(-most, tau[:, k], most))
away = ca.sumsqr(q[:, 1:] - up) + 0.1 * ca.sumsqr(v) + 20.0 * ca.sumsqr(ca.vertcat(q[:, -1] - up, v[:, -1]))
problem.minimize(away + 0.01 * ca.sumsqr(tau))
quiet = {"print_level": 0, "sb": "yes", "max_iter": 100, "warm_start_init_point": "yes"}
problem.solver("ipopt", {"print_time": False, "error_on_fail": False}, quiet)


def run(pushes=(), torques=None):
    """Six seconds by plans, or by given torques: the trajectory, and its torques."""
    sim, applied = rk.Simulation(robot, dt=1e-3, pushes=pushes), []
    plan = np.zeros((2, steps + 1)), np.zeros((2, steps + 1)), np.zeros((2, steps))
    for k in range(120):
        if torques is None:
            problem.set_value(now, np.concatenate([sim.q, sim.v]))
            for x, last in zip((q, v, tau), plan, strict=True):
                problem.set_initial(x, np.hstack([last[:, 1:], last[:, -1:]]))
            found = problem.solve_limited()
            plan = [found.value(x) for x in (q, v, tau)]
        applied.append(plan[2][:, 0] if torques is None else torques[k])
        sim.step(applied[k], steps=50)
    return sim.trajectory(), np.array(applied)


pushes = [rk.Push("lower", (x, 0.0, 0.0), (0.0, 0.0, -0.5), start, 0.1) for x, start in ((15, 1.5), (8, 4))]
_, plain = run()
(held, torques), (missed, _) = run(pushes), run(pushes, plain)
compare(held, missed, arguments.output, labels=("planned anew", "torques of a run without pushes"))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
off = [abs(r.q[-1] - up).max() for r in (held, missed)]
print(f"{off[0]:.4f} rad from upright, the ghost {off[1]:.2f}; torques up to {abs(torques).max(axis=0)} N m")
assert off[0] < 0.01 and off[1] > 0.5 and (abs(torques) < most + 1e-6).all(), "it does not stand, or cheats"
