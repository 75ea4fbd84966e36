"""What branches save: LTDL in the tree's sparsity beside the same text without it and LAPACK, one matrix.

Run as ``python benchmarks/engine.py sparsity``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from measure import minima
from models import G1, chain, states

import robokit as rk
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.dynamics.build import kernel
from robokit.engine import Kernel

ROBOTS = (
    *(("humanoid", "floating"), (G1, "floating"), ("example-robot-data:talos", "floating")),
    *(("example-robot-data:icub", "floating"), ("quadruped", "floating")),
    *(("example-robot-data:solo12", "floating"), ("example-robot-data:panda", "fixed")),
    *(("chain 30", "fixed"), ("chain", "fixed")),
)
STRAIGHT = 60  # degrees of freedom up to which the factorisation is one straight line


def dense_text(n: int) -> tuple[Kernel, Kernel]:
    """The factorisation and the solve of a full matrix by the same text: a tree that is one path."""
    path = range(-1, n - 1)

    def square(flat: Any) -> list[Any]:
        return [flat[i * n : (i + 1) * n] for i in range(n)]

    def factor(H: Any) -> list[Any]:
        L, D = ltdl(path, square(H))
        return [[x for row in L for x in row], D]

    def solve(L: Any, D: Any, b: Any) -> list[Any]:
        return [ltdl_solve(path, square(L), D, b)]

    nn = n * n
    return (
        Kernel("dense ltdl", [("H", nn)], [("L", (n, n)), ("D", (n,))], factor),
        Kernel("dense solve", [("L", nn), ("D", n), ("b", n)], [("x", (n,))], solve),
    )


def sparsity(seconds: float, found: dict[str, Any]) -> None:
    """LTDL in the tree's sparsity, the same text without it, and LAPACK's dense Cholesky, one matrix [us]."""
    from scipy.linalg import cho_factor, cho_solve

    print(f"  {'':<18}{'n':>4}{'LTDL':>9}{'dense':>9}{'LAPACK':>9}   solve{'':>4}{'dense':>9}{'LAPACK':>9}")
    for name, base in ROBOTS:
        robot = chain(30) if name == "chain 30" else rk.load_urdf(rk.find_robot(name), base=base)
        n, (q, v, _) = robot.nv, (x[0] for x in states(robot, 1))
        H = rk.crba(robot, q)
        lapack = cho_factor(H)
        straight = n < STRAIGHT
        flat = np.ascontiguousarray(H.reshape(-1))
        L, D = kernel(robot, "ltdl")(flat) if straight else (rk.ltdl(robot, H).L, rk.ltdl(robot, H).D)
        row = {"n": n, **counted(robot)}
        contestants = {
            "Cholesky": partial(cho_factor, H, check_finite=False),
            "Cholesky solve": partial(cho_solve, lapack, v, check_finite=False),
        }
        if straight:
            given = [np.ascontiguousarray(x.reshape(-1)) for x in (L, D)]
            contestants["factor"] = partial(kernel(robot, "ltdl"), flat)
            contestants["solve"] = partial(kernel(robot, "ltdl_solve"), *given, v)
            dense, solve = dense_text(n)
            full = [np.ascontiguousarray(x.reshape(-1)) for x in dense(flat)]
            contestants["dense"] = partial(dense, flat)
            contestants["dense solve"] = partial(solve, *full, v)
        else:
            contestants["factor"] = partial(rk.ltdl, robot, H)
            contestants["solve"] = partial(rk.ltdl(robot, H).solve, v)
        for way in ("solve", "dense solve"):
            x = contestants[way]() if way in contestants else None
            assert x is None or np.abs(H @ x - v).max() < 1e-6 * np.abs(v).max()
        row |= {k: 1e6 * x for k, x in minima(contestants, seconds).items()}
        found[name.split(":")[-1]] = row
        cells = (f"{row[k]:9.2f}" if k in row else " " * 9 for k in WAYS)
        wrong = "" if not row["counts off"] else "  NOT the formulas' counts"
        print(f"  {name.split(':')[-1]:<18}{n:4d}{''.join(cells)}{wrong}")


WAYS = ("factor", "dense", "Cholesky", "solve", "dense solve", "Cholesky solve")


def counted(robot: rk.Robot) -> dict[str, int]:
    """Operations of factor and solve, of dense ones, and how far off Featherstone's formulas they are."""
    cost = robot.cost()
    off, flops = 0, dict[str, int]()
    for name in ("ltdl", "ltdl_solve"):
        row = cost[name]
        assert row.formula is not None and row.flops is not None
        off += sum(abs(getattr(row, k) - count) for k, count in row.formula.items())
        flops[f"{name} flops"] = row.flops
    n = robot.nv
    dense = {
        "dense flops": 2 * cost.dense[0] + n * (n - 1) // 2 + n - 1,
        "dense solve flops": 2 * cost.dense[1] + n,
    }
    return {**flops, **dense, "counts off": off}
