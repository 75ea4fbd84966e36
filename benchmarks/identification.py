"""Identification of simulated arms: what it finds of noisy torques, and how long it takes.

python benchmarks/identification.py

Each arm makes an exciting motion of 10 s at 100 Hz, with friction, and noise of 3 % on each joint's torque.
The fit begins with other bodies, changed at random by some 30 %. "held out" is the largest error of a joint's
torque over 500 random states, as a share of its root mean square; "off" is the root mean square of estimate
minus truth over its deviation, which is 1 where deviations are right; "least" the smallest second moment of a
body, positive where all bodies can exist.
"""

from __future__ import annotations

import time

import numpy as np
from measure import machine, prepare_to_measure

import robokit as rk
from robokit.identification.estimate import nearest_possible, parameters_of, pseudo_inertia
from robokit.model.edit import lock_joints

NOISE, CHANGE, JUDGED_STATES = 0.03, 0.3, 500


def robots() -> list[rk.Robot]:
    """Our arm, the right arm of G1, and Panda."""
    g1 = rk.load_urdf(rk.find_robot("example-robot-data:g1"))
    arm = ("right_shoulder", "right_elbow", "right_wrist")
    rest = {joint.name: 0.0 for joint in g1.joints if not joint.name.startswith(arm)}
    panda = rk.load_urdf(rk.find_robot("example-robot-data:panda"))
    fingers = {f"panda_finger_joint{k}": 0.02 for k in (1, 2)}
    return [rk.load_urdf(rk.find_robot("arm")), lock_joints(g1, rest), lock_joints(panda, fingers)]


def other_bodies(robot: rk.Robot, rng: np.random.Generator) -> np.ndarray:
    """Inertial parameters of bodies that can exist, near the robot's."""
    rows = robot.inertial_parameters.copy()
    for k, P in enumerate(pseudo_inertia(nearest_possible(rows[1:])), 1):
        half = np.linalg.cholesky(P) @ (np.eye(4) + CHANGE * rng.standard_normal((4, 4)))
        rows[k] = parameters_of(half @ half.T)
    return rows


def identified(robot: rk.Robot, rng: np.random.Generator) -> None:
    """Simulate, identify, print a row."""
    motion = rk.excitation(robot, 10.0)
    viscous, coulomb = rng.uniform(0.1, 0.6, (2, robot.nv))

    def torques(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return rk.rnea(robot, q, v, a) + viscous * v + coulomb * np.sign(v)

    states = motion.q, motion.v, motion.a
    tau = torques(*states)
    tau += NOISE * np.sqrt(np.mean(tau**2, axis=0)) * rng.standard_normal(tau.shape)
    prior = other_bodies(robot, rng)
    rk.identify(robot, *states, tau, friction=True, prior=prior)  # compiles
    started = time.perf_counter()
    found = rk.identify(robot, *states, tau, friction=True, prior=prior)
    seconds = time.perf_counter() - started
    q = np.array([robot.random_configuration(rng) for _ in range(JUDGED_STATES)])
    v, a = rng.standard_normal((2, JUDGED_STATES, robot.nv))
    exact = torques(q, v, a)
    left = np.sqrt(np.mean((found.predict(q, v, a) - exact) ** 2, axis=0) / np.mean(exact**2, axis=0))
    true = found.base.values([*robot.inertial_parameters[1:].ravel(), *viscous, *coulomb])
    off = np.sqrt(np.mean(((found.base_values - true) / found.base_deviations) ** 2))
    print(
        f"{robot.name:<18}{len(found.base):>13}{left.max():>10.2%}{off:>7.2f}"
        f"{found.second_moments.min():>10.1e}{found.steps:>7}{1e3 * seconds:>8.0f}"
    )


def main() -> None:
    """Print the table."""
    print(machine())
    print(f"{'':<18}{'combinations':>13}{'held out':>10}{'off':>7}{'least':>10}{'steps':>7}{'ms':>8}")
    for robot in robots():
        identified(robot, np.random.default_rng(5))


if __name__ == "__main__":
    prepare_to_measure()
    main()
