"""The regressor of inverse dynamics beside Pinocchio's: first call, single call, batch on one core.

python benchmarks/regressors.py                     G1, Talos and Panda of example-robot-data
python benchmarks/regressors.py humanoid --base floating

The dense matrix of a humanoid has 80 kB a state, so that memory sets the pace of a batch; the entries that
the tree leaves nonzero are a third of it. "fill" is NumPy's fill of the dense result, for comparison.
"""

from __future__ import annotations

import time

import numpy as np
from measure import arguments_of, chosen, machine, minima, nothing_compiled, one_core, prepare_to_measure
from models import G1, in_pinocchio, states

import robokit as rk

DEFAULT = ((G1, "floating"), ("example-robot-data:talos", "floating"), ("example-robot-data:panda", "fixed"))
BATCH = 4096


def compare(name: str, base: str, seconds: float) -> None:
    """Check, measure and print one robot."""
    import pinocchio as pin

    robot = rk.load_urdf(rk.find_robot(name), base=base)
    q, v, a = states(robot, BATCH)
    one = q[0], v[0], a[0]
    model, data, to = in_pinocchio(robot)
    theirs = to.q(one[0]), to.v(one[1]), to.v(one[2])
    pi = np.concatenate([inertia.toDynamicParameters() for inertia in model.inertias[1:]])
    started = time.perf_counter()
    Y = rk.regressor(robot, *one)
    first = time.perf_counter() - started
    tau = to.v_back(pin.computeJointTorqueRegressor(model, data, *theirs) @ pi)
    assert np.allclose(Y @ robot.inertial_parameters[1:].ravel(), tau, rtol=1e-9, atol=1e-9)
    dense, entries = rk.regressor(robot, q, v, a), rk.regressor_nonzeros(robot, q, v, a)
    contestants = {
        "Pinocchio": lambda: pin.computeJointTorqueRegressor(model, data, *theirs),
        "single": lambda: rk.regressor(robot, *one),
        "batch": lambda: rk.regressor(robot, q, v, a, out=dense),
        "batch, nonzeros": lambda: rk.regressor_nonzeros(robot, q, v, a, out=entries),
        "fill": lambda: dense.fill(0.0),
    }
    with one_core():
        found = minima(contestants, seconds)
    print(f"{robot.name}, {base} base, Y {Y.shape}; first call {first:.2f} s")
    for what, t in found.items():
        many = what not in ("Pinocchio", "single")
        each = t / BATCH if many else t
        ratio = found["Pinocchio"] / each
        print(f"  {what:<18}{1e6 * each:8.2f} us a state   {ratio:6.2f} times Pinocchio's speed")


def main() -> None:
    """Parse, measure, print."""
    arguments = arguments_of(__doc__, 3.0)
    print(machine())
    with nothing_compiled():
        for name, base in chosen(arguments, DEFAULT):
            compare(name, base, arguments.seconds)


if __name__ == "__main__":
    prepare_to_measure()
    main()
