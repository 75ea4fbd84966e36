"""Derivatives, H^-1 and the Coriolis matrix against Pinocchio's, on well-known robots, by the texts alone."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative

import robokit as rk

pytestmark = pytest.mark.parity

ROBOTS = ("g1", "talos", "icub", "panda", "solo12")
TOLERANCE = 1e-10
SWAP = [3, 4, 5, 0, 1, 2]


def theirs(robot, q, v, a, tau):
    """The same quantities by Pinocchio, in robokit's order."""
    import pinocchio as pin
    from peers import PinocchioPeer

    peer = PinocchioPeer(robot, robot.source)
    model, data, to = peer.model, peer.data, peer.adapter
    q, v, a, tau = to.q(q), to.v(v), to.v(a), to.v(tau)
    found = {}
    by_q, by_v, H = pin.computeRNEADerivatives(model, data, q, v, a)
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
    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"), base=base)
    rng = np.random.default_rng([7, robot.nv])
    q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
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
        print(name,base,what,worst)
        assert worst < TOLERANCE, what
