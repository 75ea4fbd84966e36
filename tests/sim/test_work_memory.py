"""What memory holds before a step begins: no run depends on it."""

from __future__ import annotations

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.engine.loops import environment
from robokit.model import ModelBuilder, Placement


def cradle() -> tuple[rk.Robot, np.ndarray, np.ndarray, dict]:
    """Balls that touch, of which one is hit: the first step begins with impacts that are passed on."""
    robot = rk.together({f"{k}": m.ball() for k in range(5)})
    q, v = np.zeros((5, 7)), np.zeros((5, 6))
    q[:, 0], q[:, 4] = 1.0, 0.2 * np.arange(5)
    v[0, 3] = 2.0
    pairs = rk.collision_pairs(robot).with_law(restitution=0.5)
    return robot, q.ravel(), v.ravel(), {"self_collision": pairs, "gravity": (0.0, 0.0, 0.0)}


def falls(name: str, **options: object) -> tuple[rk.Robot, np.ndarray, np.ndarray, dict]:
    """A robot that lands at once, on a hand or a foot."""
    robot = rk.load(rk.find_robot(name), base="floating")
    q = rk.standing_configuration(robot, height=1e-3, tilt=0.3, seed=2)
    v = np.zeros(robot.nv)
    v[5] = -2.0
    return robot, q, v, {"ground": True, "self_collision": True, **options}


def deep_loops() -> tuple[rk.Robot, np.ndarray, np.ndarray, dict]:
    """A long chain that lands and slides, closed between far links."""
    chain, q, v, options = falls("chain")
    places, b = rk.forward_kinematics(chain, q), ModelBuilder.from_robot(chain)
    (R, p), (S, s) = (places[name] for name in ("link_020", "link_040"))
    middle = 0.5 * (np.array(p) + np.array(s))
    ends = (Placement(position=np.array(A).T @ (middle - a)) for A, a in ((R, p), (S, s)))
    b.loop_joint("loop", "spherical", "link_020", "link_040", *ends)
    return b.build("floating"), q, v, options


WORLDS = {
    "a cradle": cradle,
    "a landing": lambda: falls("humanoid"),
    "a bounce": lambda: falls("humanoid", ground=rk.Ground(restitution=0.5)),
    "motors": lambda: falls("quadruped", actuators=rk.PD(kp=80.0, kd=4.0, effort=20.0)),
    "loops": lambda: falls("four_bar"),
    "a deep tree": lambda: falls("chain"),
    "loops of a deep tree": deep_loops,
}


@pytest.mark.parametrize("world", WORLDS)
def test_no_run_depends_on_what_memory_holds_before(world, monkeypatch):
    """A machine's new memory is mostly zeros, so what a step forgets to write is seldom seen."""
    robot, q, v, options = WORLDS[world]()

    def run() -> list[np.ndarray]:
        one = rk.simulate(robot, q, v, duration=0.02, dt=1e-3, **options)
        rows = rk.rollout(robot, [q] * 3, [v] * 3, duration=0.02, dt=1e-3, **options)
        return [one.q, one.v, rows.q, rows.v]

    found, aligned = run(), environment.aligned

    def garbage(*arguments: object) -> np.ndarray:
        memory = aligned(*arguments)
        memory.view(np.uint8).fill(255)  # NaN, and -1
        return memory

    monkeypatch.setattr(environment, "aligned", garbage)
    for a, b in zip(found, run(), strict=True):
        assert np.isfinite(b).all() and (a == b).all()
