"""Derivatives made on the recorded graph against Pinocchio's, and against the texts of the book."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative

import robokit as rk

pytestmark = pytest.mark.parity

PYTHON = {"engine": "python"}


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["g1", "talos", "icub", "panda", "solo12"])
def test_agrees(name, base, record_error):
    import pinocchio as pin
    from peers import PinocchioPeer

    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"), base=base)
    rng = np.random.default_rng([3, robot.nv])
    q, (v, a) = robot.random_configuration(rng), rng.standard_normal((2, robot.nv))
    peer = PinocchioPeer(robot, robot.source)
    to, state = peer.adapter, (robot, q, v, a)
    given = peer.model, peer.data, to.q(q), to.v(v), to.v(a)
    theirs = [to.matrix_back(A.copy()) for A in pin.computeRNEADerivatives(*given)[:2]]
    graph = rk.functions["rnea"].derivative("q", "v")(*state, **PYTHON)
    text = rk.rnea_derivatives(*state, **PYTHON)
    for what, x, y, z in zip(("dtau/dq", "dtau/dv"), graph, theirs, text, strict=True):
        record_error("pinocchio, graph derivatives", name, base, what, relative(x, y))
        assert relative(x, y) < 1e-10
        assert relative(x, z) < 1e-12
    graph = rk.functions["aba"].derivative("q", "tau")(*state, **PYTHON)
    mass = rk.crba(robot, q, **PYTHON)
    by_q, _, by_tau = (to.matrix_back(A.copy()) for A in pin.computeABADerivatives(*given))
    for what, x, y in zip(("da/dq", "da/dtau"), graph, (by_q, by_tau), strict=True):
        record_error("pinocchio, graph derivatives", name, base, what, relative(x, y))
        if name == "icub":  # the condition of its H, 1e8, takes its digits from both
            assert relative(mass @ x, mass @ y) < 1e-7
        else:
            assert relative(x, y) < 1e-10
