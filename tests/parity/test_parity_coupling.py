"""Coupled mimic joints against Pinocchio's full model projected by G, on robots that others made."""

from __future__ import annotations

import numpy as np
import pytest
from public import error

import robokit as rk
from robokit import robot_names

pytestmark = pytest.mark.parity

ROBOTS = ("baxter", "panda", "pr2", "tiago_pro")


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_projection_of_pinocchio(name, base, record_error):
    from peers import PinocchioPeer

    path = robot_names.example_robots()[name]
    full, robot = rk.load_urdf(path, base=base), rk.load_urdf(path, base=base, mimic="couple")
    assert robot.nv < full.nv
    peer = PinocchioPeer(full, path)
    G = robot.coupling.G
    for seed in range(2):
        rng = np.random.default_rng(seed)
        q, (v, a, tau) = robot.random_configuration(rng), rng.normal(size=(3, robot.nv))
        qf = np.array(robot.coupling.full_q(q))
        x = peer.quantities(qf, G @ v, G @ a, np.zeros(full.nv), {})
        H, C = G.T @ x["H"] @ G, G.T @ x["C"]
        for what, got, expected in (
            ("H", rk.crba(robot, q), H),
            ("C", rk.bias_forces(robot, q, v), C),
            ("tau", rk.rnea(robot, q, v, a), G.T @ x["tau"]),
            ("qdd", rk.aba(robot, q, v, tau), np.linalg.solve(H, tau - C)),
            ("A_G", rk.centroidal_momentum_matrix(robot, q), x["A_G"] @ G),
            ("bias", rk.centroidal_momentum_bias(robot, q, v), x["bias"]),
            ("position", rk.forward_kinematics(robot, q).position, x["position"]),
        ):
            worst = error(got, expected)
            record_error("pinocchio", f"{name} coupled", base, what, worst)
            assert worst < 1e-10, what


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_hands_without_mass_are_singular_coupled_or_not(base):
    """romeo's hands: no link behind LHand and RHand has a mass, so their rows of H_r are zero."""
    robot = rk.load_urdf(robot_names.example_robots()["romeo"], base=base, mimic="couple")
    q, v = robot.random_configuration(0), np.zeros(robot.nv)
    H = rk.crba(robot, q)
    zero = [name for name in robot.joint_names if not H[robot.joint(name).v_slice].any()]
    assert zero == ["LHand", "RHand"]
    with pytest.raises(rk.SingularInertia, match="singular at joint 'RHand'"):
        rk.aba(robot, q, v, v)
