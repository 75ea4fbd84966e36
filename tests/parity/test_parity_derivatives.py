"""Derivatives, H^-1 and the Coriolis matrix against Pinocchio's, on well-known robots, by the texts alone."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from ladder import relative

import robokit as rk
from robokit.algorithms.aba_derivatives import aba_derivatives

pytestmark = pytest.mark.parity

ROBOTS = ("g1", "talos", "icub", "panda", "solo12")
TOLERANCE = 1e-10
ROUGH = 1e-8  # of what goes through the inverse of iCub's H, where Pinocchio's rounding is 1e-9
ACCELERATIONS = ("da/dq", "da/dv", "da/dtau", "H^-1")


def given(name, base):
    """The robot and a random state."""
    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"), base=base)
    rng = np.random.default_rng([7, robot.nv])
    return robot, robot.random_configuration(rng), *rng.standard_normal((3, robot.nv))


def theirs(robot, q, v, a, tau):
    """The same quantities by Pinocchio, in robokit's order."""
    import pinocchio as pin
    from peers import PinocchioPeer

    peer = PinocchioPeer(robot, robot.source)
    model, data, to = peer.model, peer.data, peer.adapter
    q, v, a, tau = to.q(q), to.v(v), to.v(a), to.v(tau)
    found = {}
    by_q, by_v, _ = pin.computeRNEADerivatives(model, data, q, v, a)
    found |= {"dtau/dq": by_q.copy(), "dtau/dv": by_v.copy()}
    by_q, by_v, by_tau = pin.computeABADerivatives(model, data, q, v, tau)
    found |= {"da/dq": by_q.copy(), "da/dv": by_v.copy(), "da/dtau": by_tau.copy()}
    inverse = np.triu(pin.computeMinverse(model, data, q))
    found |= {"H^-1": inverse + np.triu(inverse, 1).T}
    found |= {"C": pin.computeCoriolisMatrix(model, data, q, v).copy()}
    found = {name: to.matrix_back(A) for name, A in found.items()}
    sets = pin.computeCentroidalDynamicsDerivatives(model, data, q, v, a)
    names = ("dh/dq", "drate/dq", "drate/dv", "drate/da")
    return found | {name: to.centroidal_back(A) for name, A in zip(names, sets, strict=True)}


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ROBOTS)
def test_agrees(name, base, record_error):
    robot, q, v, a, tau = given(name, base)
    text = {"engine": "python"}
    got = dict(zip(("dtau/dq", "dtau/dv"), rk.rnea_derivatives(robot, q, v, a, **text), strict=True))
    by = rk.aba_derivatives(robot, q, v, tau, **text)
    got |= dict(zip(("da/dq", "da/dv", "da/dtau"), by, strict=True))
    got |= {"H^-1": rk.inverse_mass_matrix(robot, q, **text), "C": rk.coriolis_matrix(robot, q, v, **text)}
    sets = rk.centroidal_momentum_derivatives(robot, q, v, a, **text)
    got |= dict(zip(("dh/dq", "drate/dq", "drate/dv", "drate/da"), sets, strict=True))
    for what, expected in theirs(robot, q, v, a, tau).items():
        worst = relative(got[what], expected)
        record_error("pinocchio, derivatives", name, base, what, worst)
        assert worst < (ROUGH if name == "icub" and what in ACCELERATIONS else TOLERANCE), what


def test_accelerations_of_icub_in_fifty_digits(record_error):
    """H of the floating iCub has a condition number of 1e8: Pinocchio and robokit differ by 1e-9 there."""
    mp = pytest.importorskip("mpmath")
    importlib.import_module("fifty_digits")  # its functions
    robot, q, v, _, tau = given("icub", "floating")
    with mp.workdps(50):
        by_joint = [
            split([mp.mpf(float(x)) for x in values])
            for split, values in ((robot.split_q, q), (robot.split_v, v), (robot.split_v, tau))
        ]
        exact = [np.array(A, dtype=float) for A in aba_derivatives(robot.tree, *by_joint)]
    got = rk.aba_derivatives(robot, q, v, tau, engine="python")
    for what, x, y in zip(ACCELERATIONS, got, exact, strict=False):
        record_error("50 digits, derivatives", "icub", "floating", what, relative(x, y))
        assert relative(x, y) < 1e-11, what
