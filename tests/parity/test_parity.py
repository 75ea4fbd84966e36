"""robokit against Pinocchio and MuJoCo, live, on robots that others made and on ours.

    pytest tests/parity -m parity

A peer that is not installed makes these tests fail; they are left out of an ordinary run by their marker.
"""

from __future__ import annotations

from functools import cache

import ladder
import numpy as np
import pytest
from public import QUANTITIES, error, quantities

import robokit as rk

pytestmark = pytest.mark.parity

TOLERANCE = 1e-10
STATES = 5
EXAMPLES = {
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
    "erd_double_pendulum": "double_pendulum_description/urdf/double_pendulum.urdf",
}
POINT_MASSES = ("icub",)  # MuJoCo refuses them: compared there with a little inertia added
ROBOTS = [(name, base) for name in (*EXAMPLES, *ladder.OWN) for base in ("fixed", "floating")]
"""Long code is compiled for one base: the texts of all robots have both in test_parity_all.py."""
for long in (("talos", "fixed"), ("icub", "fixed")):
    ROBOTS.remove(long)
MUJOCO_HAS = tuple(x for x in QUANTITIES if x not in ("tau_f_ext", "A_G", "bias"))


@cache
def loaded(name: str, base: str):
    from peers import example

    path = example(EXAMPLES[name]) if name in EXAMPLES else ladder.ROBOTS / f"{name}.urdf"
    return rk.load_urdf(path, base=base), path


def inputs(robot: rk.Robot, seed: int) -> dict:
    rng = np.random.default_rng([7, seed, robot.nv])
    moving = [link.name for link in robot.links if link.body > 0 and link.mass > 0]
    pushed = rng.choice(moving, min(3, len(moving)), replace=False)
    return {
        "q": robot.random_configuration(rng),
        "v": rng.standard_normal(robot.nv),
        "a": rng.standard_normal(robot.nv),
        "tau": rng.standard_normal(robot.nv) * 10.0,
        "f_ext": {str(link): rng.standard_normal(6) * 5.0 for link in pushed},
    }


@cache
def compared(peer: str, name: str, base: str) -> dict[str, float]:
    """Largest error of each quantity over the states."""
    from peers import MujocoPeer, PinocchioPeer, with_inertia

    robot, path = loaded(name, base)
    if peer == "pinocchio":
        other = PinocchioPeer(robot, path)
    elif name in POINT_MASSES:
        text = with_inertia(path)
        robot = rk.loads_urdf(text, base=base)
        other = MujocoPeer(robot, path, text)
    else:
        other = MujocoPeer(robot, path)
    worst: dict[str, float] = {}
    for seed in range(STATES):
        x = inputs(robot, seed)
        got, expected = quantities(robot, **x), other.quantities(**x)
        for key, value in expected.items():
            worst[key] = max(worst.get(key, 0.0), error(got[key], value))
    return worst


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_pinocchio(name, base, record_error):
    worst = compared("pinocchio", name, base)
    assert set(worst) == set(QUANTITIES)
    for quantity in QUANTITIES:
        record_error("pinocchio", name, base, quantity, worst[quantity])
    assert {k: e for k, e in worst.items() if not e < TOLERANCE} == {}


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_mujoco(name, base, record_error):
    worst = compared("mujoco", name, base)
    missing = {"h_G"} if base == "fixed" else set()
    assert set(worst) == set(MUJOCO_HAS) - missing
    for quantity in (x for x in MUJOCO_HAS if x in worst):
        record_error("mujoco", name, base, quantity, worst[quantity])
    assert {k: e for k, e in worst.items() if not e < TOLERANCE} == {}


def test_mujoco_refuses_point_masses_and_robokit_does_not():
    from peers import MujocoPeer

    robot, path = loaded("icub", "floating")
    with pytest.raises(ValueError, match="inertia"):
        MujocoPeer(robot, path)
    assert sum(d.code == "inertia-zero" for d in robot.diagnostics) >= 6


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["g1", "panda", "double_pendulum"])
def test_adapters_go_both_ways(name, base):
    from peers import MujocoPeer, PinocchioPeer

    robot, path = loaded(name, base)
    pinocchio, mj = PinocchioPeer(robot, path).adapter, MujocoPeer(robot, path).adapter
    x = inputs(robot, 0)
    q, v, a = x["q"], x["v"], x["a"]
    assert error(robot.difference(q, pinocchio.q_back(pinocchio.q(q))), np.zeros(robot.nv)) < 1e-12
    assert error(pinocchio.v_back(pinocchio.v(v)), v) == 0.0
    assert error(mj.q_back(mj.q(q)), q) < 1e-15
    assert error(mj.v_back(q, mj.v(q, v)), v) < 1e-14
    assert error(mj.a_back(q, v, mj.a(q, v, a)), a) < 1e-14


def test_adapters_refuse_what_would_be_wrong_in_silence():
    from peers import MujocoPeer, PinocchioPeer

    robot, path = loaded("double_pendulum", "floating")
    for adapter in (PinocchioPeer(robot, path).adapter, MujocoPeer(robot, path).adapter):
        q = robot.neutral()
        q[:4] = 0.7, 0.7, 0.7, 0.0
        with pytest.raises(rk.ShapeError, match="unit"):
            adapter.q(q)
    stranger = loaded("four_bar", "floating")[0]
    for peer in (PinocchioPeer(robot, path), MujocoPeer(robot, path)):
        with pytest.raises(rk.UnknownName, match="crank_joint"):
            type(peer.adapter)(stranger, peer.model)


@pytest.mark.parametrize("name", ["g1", "solo12"])
def test_base_velocity_is_that_of_the_moving_frame(name):
    # MuJoCo integrates qpos with its qvel: a small step must be the same motion as robokit's.
    import mujoco
    from peers import MujocoPeer

    robot, path = loaded(name, "floating")
    peer, x, h = MujocoPeer(robot, path), inputs(robot, 1), 1e-5
    qpos = peer.adapter.q(x["q"])
    mujoco.mj_integratePos(peer.model, qpos, peer.adapter.v(x["q"], x["v"]), h)
    step = robot.difference(x["q"], peer.adapter.q_back(qpos)) / h
    assert error(step, x["v"]) < 1e-4
