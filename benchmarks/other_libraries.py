"""Functions in CasADi, JAX and PyTorch: what a call, a gradient and a state of a batch take from there.

python benchmarks/other_libraries.py                          aba of G1, in those that are installed
python benchmarks/other_libraries.py humanoid --function rnea
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import machine, minima, one_core, prepare_to_measure

import robokit as rk
from robokit.dynamics.build import kernel
from robokit.dynamics.other_libraries import host_function

BATCH = 4096
Calls = dict[str, Callable[[], Any]]


def in_robokit(f: rk.Function, robot: rk.Robot, one: list[np.ndarray], many: list[np.ndarray]) -> Calls:
    """Calls of the function itself."""
    host = host_function(robot, f.key(), {})
    back = [np.ones(shape) for _, shape in host.outputs]
    print(
        f"operations: {kernel(robot, host.key).flops:,}, gradient by all inputs "
        f"{kernel(robot, host.pullback.key).flops:,}"
    )
    return {
        "call": lambda: f(robot, *one),
        "gradient": lambda: host.pullback(*one, *back),
        "batch": lambda: f(robot, *many),
        "batch gradient": lambda: host.pullback(*many, *back),
    }


def in_casadi(f: rk.Function, robot: rk.Robot, one: list[np.ndarray], many: list[np.ndarray]) -> Calls:
    """Calls of the casadi.Function, which CasADi interprets."""
    started = time.perf_counter()
    there = f.to_casadi(robot)
    seconds = time.perf_counter() - started
    print(f"CasADi: {there.n_instructions():,} instructions, made in {seconds:.2f} s")
    return {"call": lambda: there(*one)}


def in_jax(f: rk.Function, robot: rk.Robot, one: list[np.ndarray], many: list[np.ndarray]) -> Calls:
    """Compiled calls of the function of JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    there = f.to_jax(robot)
    slope = jax.grad(lambda *x: there(*x).sum(), argnums=tuple(range(len(one))))
    x, xs = ([jax.numpy.asarray(a) for a in given] for given in (one, many))
    call, gradient = jax.jit(there), jax.jit(slope)
    batch, batch_gradient = jax.jit(jax.vmap(there)), jax.jit(jax.vmap(slope))
    return {
        "call": lambda: call(*x).block_until_ready(),
        "gradient": lambda: gradient(*x)[0].block_until_ready(),
        "batch": lambda: batch(*xs).block_until_ready(),
        "batch gradient": lambda: batch_gradient(*xs)[0].block_until_ready(),
    }


def in_torch(f: rk.Function, robot: rk.Robot, one: list[np.ndarray], many: list[np.ndarray]) -> Calls:
    """Calls of the function of PyTorch."""
    import torch

    torch.set_num_threads(1)
    there = f.to_torch(robot)
    x, xs = ([torch.tensor(a, requires_grad=True) for a in given] for given in (one, many))
    return {
        "call": lambda: there(*x),
        "gradient": lambda: torch.autograd.grad(there(*x).sum(), x),
        "batch": lambda: there(*xs),
        "batch gradient": lambda: torch.autograd.grad(there(*xs).sum(), xs),
    }


LIBRARIES = {"casadi": in_casadi, "jax": in_jax, "torch": in_torch}


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robot", nargs="?", default="example-robot-data:g1", help="as on the command line")
    parser.add_argument("--base", choices=("fixed", "floating"), default="floating")
    parser.add_argument("--function", default="aba", help="of q, or of q, v and a or tau")
    parser.add_argument("--seconds", type=float, default=2.0, help="measuring time a library")
    arguments = parser.parse_args()
    robot = rk.load_urdf(rk.find_robot(arguments.robot), base=arguments.base)
    f, rng = rk.functions[arguments.function], np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(BATCH)])
    many = [q, *rng.standard_normal((2, BATCH, robot.nv))][: len(f.inputs)]
    print(machine())
    print(
        f"{arguments.function} of {robot.name}, {robot.base} base; microseconds a state, minimum of repeats"
    )
    with one_core():
        installed = {k: make for k, make in LIBRARIES.items() if importlib.util.find_spec(k)}
        for name, make in {"robokit": in_robokit, **installed}.items():
            calls = make(f, robot, [x[0] for x in many], many)
            times = {k: 1e6 * t for k, t in minima(calls, arguments.seconds).items()}
            shown = (f"{k} {t / BATCH if 'batch' in k else t:.2f}" for k, t in times.items())
            print(f"  {name:<8} {',  '.join(shown)}")


if __name__ == "__main__":
    prepare_to_measure()
    main()
