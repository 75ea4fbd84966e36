"""Inverse kinematics beside a Pinocchio loop, Pink and Mink: share of targets met, and time a problem.

python benchmarks/reach.py                        the Panda's hand and the G1's left wrist (with its waist)
python benchmarks/reach.py --problems 500 --json reach.json

Everyone gets the same reachable targets (of random configurations within the limits), the same starts, the
same tolerance (1e-6 m and rad), limits on, and at most 100 steps. "near" starts within 0.3 rad of a solution,
"anywhere" at random. Peers are set up after their own examples: Pinocchio with a Levenberg-Marquardt step
damped by the squared error, on the model reduced to the joints that matter; Pink and Mink with a frame task
damped in the same way, a configuration limit and the solver daqp. Who is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import machine, one_core, prepare_to_measure

import robokit as rk
from robokit.model import edit

TOLERANCE, STEPS = 1e-6, 100
CASES = (
    ("example-robot-data:panda", "panda_hand"),
    ("example-robot-data:g1", "left_wrist_yaw_link"),
)
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[bool, int]]


def only_the_arm(robot: rk.Robot, link: str) -> rk.Robot:
    """The robot with every joint locked that does not move the link: the same task for all."""
    support = set(robot.tree.support[robot.link(link).body])
    others = [joint.name for joint in robot.joints if joint.body not in support]
    return edit.lock_joints(robot, dict.fromkeys(others, 0.0)) if others else robot


def pinocchio_loop(robot: rk.Robot, link: str) -> Solve:
    """Levenberg-Marquardt in Python on Pinocchio: one call a quantity, nothing allocated twice."""
    import pinocchio as pin

    full = pin.buildModelFromUrdf(str(robot.source))
    keep = set(robot.joint_names)
    locked = [k for k in range(1, full.njoints) if full.names[k] not in keep]
    model = pin.buildReducedModel(full, locked, pin.neutral(full))
    assert list(model.names)[1:] == list(robot.joint_names) and model.nq == robot.nq
    data, frame = model.createData(), model.getFrameId(link)
    low, high, one = model.lowerPositionLimit, model.upperPositionLimit, np.eye(6)

    def solve(q: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[bool, int]:
        target = pin.SE3(R, p)
        for k in range(STEPS):
            pin.computeJointJacobians(model, data, q)
            seen = pin.updateFramePlacement(model, data, frame).actInv(target)
            error = pin.log6(seen).vector
            if np.abs(error).max() < TOLERANCE:
                return True, k
            J = pin.Jlog6(seen.inverse()) @ pin.getFrameJacobian(model, data, frame, pin.LOCAL)
            S = J @ J.T + (0.1 * (error @ error) + 1e-9) * one
            q = np.clip(pin.integrate(model, q, J.T @ np.linalg.solve(S, error)), low, high)
        return False, STEPS

    return solve


def pink_loop(robot: rk.Robot, link: str) -> Solve:
    """Pink: a quadratic program a step."""
    import pink
    import pinocchio as pin
    from pink.limits import ConfigurationLimit
    from pink.tasks import FrameTask

    full = pin.buildModelFromUrdf(str(robot.source))
    keep = set(robot.joint_names)
    locked = [k for k in range(1, full.njoints) if full.names[k] not in keep]
    model = pin.buildReducedModel(full, locked, pin.neutral(full))
    task = FrameTask(link, position_cost=1.0, orientation_cost=1.0, lm_damping=0.1)
    limits = [ConfigurationLimit(model, config_limit_gain=1.0)]

    def solve(q: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[bool, int]:
        task.set_target(pin.SE3(R, p))
        configuration = pink.Configuration(model, model.createData(), q)
        for k in range(STEPS):
            if np.abs(task.compute_error(configuration)).max() < TOLERANCE:
                return True, k
            v = pink.solve_ik(
                configuration, [task], 1.0, "daqp", damping=1e-9, limits=limits, safety_break=False
            )
            configuration.integrate_inplace(v, 1.0)
        return False, STEPS

    return solve


def mink_loop(robot: rk.Robot, link: str) -> Solve:
    """Mink: the same on MuJoCo."""
    import mink
    from mujoco_model import tree_spec

    spec = tree_spec(robot, dict.fromkeys(robot.joint_names, 0.0))
    bodies = {body.name: body for body in spec.bodies}
    place = robot.link(link).placement
    body = bodies[robot.body_name(robot.link(link).body)]
    body.add_site(name="goal", pos=place.position, quat=mink.SO3.from_matrix(place.rotation).wxyz)
    model = spec.compile()
    task = mink.FrameTask("goal", "site", position_cost=1.0, orientation_cost=1.0, lm_damping=0.1)
    limits = [mink.ConfigurationLimit(model, gain=1.0)]
    configuration = mink.Configuration(model)

    def solve(q: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[bool, int]:
        task.set_target(mink.SE3.from_rotation_and_translation(mink.SO3.from_matrix(R), p))
        configuration.update(q)
        for k in range(STEPS):
            if np.abs(task.compute_error(configuration)).max() < TOLERANCE:
                return True, k
            v = mink.solve_ik(configuration, [task], 1.0, "daqp", damping=1e-9, limits=limits)
            configuration.integrate_inplace(v, 1.0)
        return False, STEPS

    return solve


def robokit_call(robot: rk.Robot, link: str) -> Solve:
    """The public function, one problem a call."""

    def solve(q: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[bool, int]:
        found = rk.inverse_kinematics(
            robot, {link: (R, p)}, q, tolerance=TOLERANCE, iterations=STEPS, starts=1
        )
        return found.converged, found.iterations

    return solve


PEERS = (("pinocchio", pinocchio_loop), ("pink", pink_loop), ("mink", mink_loop))


def each(solve: Solve, q: np.ndarray, R: np.ndarray, p: np.ndarray, rounds: int) -> dict[str, float]:
    """Share of problems that are solved, steps of these, and time of a call: the mean of each one's least."""
    best = np.full(len(q), np.inf)
    found: list[tuple[bool, int]] = []
    for _ in range(rounds):
        found = []
        for k in range(len(q)):
            started = time.perf_counter()
            found.append(solve(q[k], R[k], p[k]))
            best[k] = min(best[k], time.perf_counter() - started)
    met = np.array([x for x, _ in found])
    steps = np.array([n for _, n in found])
    return {
        "met": float(met.mean()),
        "steps": float(steps[met].mean()) if met.any() else float("nan"),
        "us": 1e6 * float(best.mean()),
    }


def batch(
    robot: rk.Robot, link: str, q: np.ndarray, R: np.ndarray, p: np.ndarray, starts: int = 1
) -> dict[str, float]:
    """The same problems in one call."""
    least = np.inf
    for _ in range(7):
        started = time.perf_counter()
        found = rk.inverse_kinematics(
            robot, {link: (R, p)}, q, tolerance=TOLERANCE, iterations=STEPS, starts=starts
        )
        least = min(least, time.perf_counter() - started)
    return {
        "met": float(found.converged.mean()),
        "steps": float(found.iterations[found.converged].mean()),
        "us": 1e6 * least / len(q),
    }


def compare(name: str, link: str, problems: int, rounds: int) -> dict[str, Any]:
    """Measure one arm and print its table."""
    robot = only_the_arm(rk.load_urdf(rk.find_robot(name), base="fixed"), link)
    rng = np.random.default_rng(0)
    many = 4096
    goal = np.array([robot.random_configuration(rng) for _ in range(many)])
    low, high = np.array([robot.position_range(joint) for joint in robot.joints]).T
    starts = {
        "near": np.clip(goal + rng.uniform(-0.3, 0.3, goal.shape), low, high),
        "anywhere": np.array([robot.random_configuration(rng) for _ in range(many)]),
    }
    R, p = rk.forward_kinematics(robot, goal)[link]
    started = time.perf_counter()
    rk.inverse_kinematics(robot, {link: (R[0], p[0])}, goal[0])
    first = time.perf_counter() - started
    loops = {peer: make(robot, link) for peer, make in PEERS if importlib.util.find_spec(peer)}
    loops["robokit"] = robokit_call(robot, link)
    print(f"\n{robot.name}, {link}: {robot.nv} joints; first call {first:.2f} s; microseconds a problem")
    print(f"  {'start':<10}{'':<22}{'met':>7}{'steps':>8}{'us':>10}{'Pinocchio / it':>16}")
    figures: dict[str, Any] = {"robot": name, "link": link, "nv": robot.nv, "first_call_s": first}
    for kind, q in starts.items():
        rows = {
            who: each(solve, q[:problems], R[:problems], p[:problems], rounds) for who, solve in loops.items()
        }
        rows[f"robokit, batch {many}"] = batch(robot, link, q, R, p)
        rows["  with starts=20"] = batch(robot, link, q, R, p, 20)
        base = rows.get("pinocchio", {"us": float("nan")})["us"]
        for who, row in rows.items():
            row["ratio"] = base / row["us"]
            met = f"{100 * row['met']:6.1f}%"
            print(f"  {kind:<10}{who:<22}{met}{row['steps']:8.1f}{row['us']:10.2f}{row['ratio']:15.2f}x")
        figures[kind] = rows
    return figures


def main() -> None:
    """Parse, measure, print, and write JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=200, help="that are solved one by one")
    parser.add_argument("--rounds", type=int, default=3, help="least time of so many")
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    print(machine())
    with one_core():
        results = [compare(name, link, arguments.problems, arguments.rounds) for name, link in CASES]
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine(), "results": results}, file, indent=1)


if __name__ == "__main__":
    prepare_to_measure()
    main()
