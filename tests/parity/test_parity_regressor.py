"""The regressors against Pinocchio's, column by column: the same parameters in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative

import robokit as rk

pytestmark = pytest.mark.parity

STATES = 3
EXAMPLES = {
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "talos": "talos_data/robots/talos_full_v2.urdf",
    "icub": "icub_description/robots/icub.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "solo12": "solo_description/robots/solo12.urdf",
}


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_regressors_are_pinocchios(name, base, record_error):
    import pinocchio as pin
    from peers import PinocchioPeer, example

    path = example(EXAMPLES[name])
    robot = rk.load_urdf(path, base=base)
    peer = PinocchioPeer(robot, path)
    model, data, to = peer.model, peer.data, peer.adapter
    # Pinocchio sorts branches by name: its ten columns of a joint are ours of the body that it moves.
    bodies = [model.getJointId(joint.name) for joint in robot.joints if joint.kind != "floating"]
    order = [*([1] if base == "floating" else []), *bodies]
    columns = (10 * (np.array(order) - 1)[:, None] + np.arange(10)).ravel()
    pi = np.concatenate([model.inertias[k].toDynamicParameters() for k in order])
    worst = [relative(robot.inertial_parameters[1:].ravel(), pi)]
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        q = robot.random_configuration(rng)
        v, a = rng.standard_normal((2, robot.nv))
        pq, pv, pa = to.q(q), to.v(v), to.v(a)
        theirs = np.array(pin.computeJointTorqueRegressor(model, data, pq, pv, pa))[:, columns]
        Y = rk.regressor(robot, q, v, a, engine="python")
        worst.append(relative(Y, np.array([to.v_back(column) for column in theirs.T]).T))
        worst.append(relative(Y @ pi, rk.rnea(robot, q, v, a, engine="python")))
        T, V = rk.energy_regressor(robot, q, v, engine="python")
        worst.append(relative(T, np.ravel(pin.computeKineticEnergyRegressor(model, data, pq, pv))[columns]))
        worst.append(relative(V, np.ravel(pin.computePotentialEnergyRegressor(model, data, pq))[columns]))
    record_error("pinocchio", name, base, "regressor", max(worst))
    assert max(worst) < 1e-10
