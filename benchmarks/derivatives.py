"""Derivatives, H^-1 and the Coriolis matrix beside Pinocchio's: first call, single call, batch on one core.

python benchmarks/derivatives.py                    G1, Talos and Panda of example-robot-data
python benchmarks/derivatives.py humanoid --base floating
python benchmarks/derivatives.py --avx2             code as a processor without AVX-512 has it

Three matrices of a humanoid are 30 kB a state, so that memory sets the pace of large batches; the results of
64 states stay in the caches. The last column is operations, in units of the RNEA's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import (
    arguments_of,
    chosen,
    machine,
    minima,
    nothing_compiled,
    one_core,
    prepare_to_measure,
    without_avx512,
)
from models import G1, in_pinocchio, states

import robokit as rk
from robokit.dynamics.cost import algorithm_cost

DEFAULT = ((G1, "floating"), ("example-robot-data:talos", "floating"), ("example-robot-data:panda", "fixed"))
BATCH, FEW = 4096, 64
FUNCTIONS = {
    "rnea_derivatives": "computeRNEADerivatives",
    "aba_derivatives": "computeABADerivatives",
    "inverse_mass_matrix": "computeMinverse",
    "coriolis_matrix": "computeCoriolisMatrix",
    "centroidal_momentum_derivatives": "computeCentroidalDynamicsDerivatives",
}
ARGUMENTS = {"inverse_mass_matrix": 1, "coriolis_matrix": 2}


def theirs(robot: rk.Robot, state: tuple[np.ndarray, ...]) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions on converted arguments, checked against ours."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    given = to.q(state[0]), to.v(state[1]), to.v(state[2])
    tau_by_q, *_ = pin.computeRNEADerivatives(model, data, *given)
    assert np.allclose(to.matrix_back(tau_by_q), rk.rnea_derivatives(robot, *state)[0], rtol=1e-9, atol=1e-9)
    calls = {}
    for ours, name in FUNCTIONS.items():
        function, taken = getattr(pin, name), given[: ARGUMENTS.get(ours, 3)]
        calls[ours] = lambda function=function, taken=taken: function(model, data, *taken)
    return calls


def compare(name: str, base: str, seconds: float) -> None:
    """Measure and print one robot."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    columns = states(robot, BATCH)
    rnea = algorithm_cost(robot, "rnea").flops or 1
    print(f"\n{robot.name}, {base} base, nv {robot.nv}; microseconds a state, minimum of interleaved repeats")
    print(
        f"  {'':<31}{'first call':>11}{'Pinocchio':>10}{'single':>9}{'ratio':>8}"
        f"{f'batch {BATCH}':>11}{'ratio':>8}{f'batch {FEW}':>10}{'ratio':>8}{'RNEAs':>7}"
    )
    firsts, peers = {}, {}
    for what in FUNCTIONS:
        function, taken = getattr(rk, what), [x[0] for x in columns[: ARGUMENTS.get(what, 3)]]
        started = time.perf_counter()
        function(robot, *taken)
        firsts[what] = time.perf_counter() - started
    peers = theirs(robot, tuple(x[0] for x in columns))
    for what in FUNCTIONS:
        function, many = getattr(rk, what), columns[: ARGUMENTS.get(what, 3)]
        one, few = [x[0] for x in many], [x[:FEW] for x in many]
        out, out_few = function(robot, *many), function(robot, *few)
        contestants = {
            "peer": peers[what],
            "single": lambda function=function, one=one: function(robot, *one),
            "batch": lambda function=function, many=many, out=out: function(robot, *many, out=out),
            "few": lambda function=function, few=few, out=out_few: function(robot, *few, out=out),
        }
        with one_core():
            t = {k: 1e6 * x for k, x in minima(contestants, seconds).items()}
        batch, flops = t["batch"] / BATCH, algorithm_cost(robot, what).flops or 0
        print(
            f"  {what:<31}{firsts[what]:9.2f} s{t['peer']:10.2f}{t['single']:9.2f}"
            f"{t['single'] / t['peer']:7.2f}x{batch:11.3f}{t['peer'] / batch:7.1f}x"
            f"{t['few'] / FEW:10.3f}{t['peer'] / t['few'] * FEW:7.1f}x{flops / rnea:7.1f}"
        )


def main() -> None:
    """Parse, measure, print."""
    arguments = arguments_of(
        __doc__, 1.5, more=lambda parser: parser.add_argument("--avx2", action="store_true")
    )
    print(machine() + (", code for AVX2" if arguments.avx2 else ""))
    if arguments.avx2:
        without_avx512()
    with nothing_compiled():
        for name, base in chosen(arguments, DEFAULT):
            compare(name, base, arguments.seconds)


if __name__ == "__main__":
    prepare_to_measure()
    main()
