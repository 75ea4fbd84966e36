"""Robots with hundreds of joints: H by entries or by columns, its factors through LAPACK.

H of a chain of a thousand joints has half a million entries, and its factorisation 1e8 operations; H of a
star of a thousand joints has a million places, nearly all of them zero. None of this can be written out as
straight-line code. Above :data:`MOST` operations

- H is filled with the entries that the tree leaves nonzero, where these can be written out; else it comes
  from one batch of inverse dynamics, H e_k = ID(q, 0, e_k) without gravity (dynamics notes eq. 15);
- L and D come from LAPACK. With P the permutation that reverses the order, P H P = (P L^T P) (P D P) (P L P)
  and P L^T P is a lower triangle: the factors of H = L^T D L are the reversed LDL^T ones of P H P. No entry
  outside the tree's pattern fills in, because RBDA 6.5 eliminates in that very order;
- the regressor comes from inverse dynamics of robots that have one inertial parameter each, of size 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.layout import lower_entries, parameter_entries
from robokit.engine import NotFinite
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.sparsity import dof_depths

Ways = dict[str, tuple[str, Callable[..., Any]]]

MOST = 200_000
"""Operations that are written out."""

MOST_PARAMETERS = 4_000_000
"""Inertial parameters that are in memory at once for a regressor."""


def long_way(
    robot: Robot, name: Key, dtype: str = "float64", ways: Ways | None = None
) -> Callable[..., Any] | None:
    """The function that replaces a kernel of too many operations; None if there are few enough.

    Args:
        robot: the robot.
        name: of the kernel. What is returned takes its arguments, and ``out``.
        dtype: of the result; the computation is in double precision all the same.
        ways: in place of :data:`WAYS`.
    """
    ways = WAYS if ways is None else ways
    if not isinstance(name, str) or name not in ways:
        return None
    needs, way = ways[name]
    if _cost(robot, needs) <= MOST:
        return None
    if (
        robot.parameters is not None
        and needs != "regressor"
        and not (way is mass_matrix and _few_entries(robot))
    ):
        return None

    def run(*arguments: Any, out: Any = None) -> Any:
        results = way(robot, *arguments)
        several = isinstance(results, tuple)
        if out is None:
            if dtype == "float64":
                return results
            return tuple(x.astype(dtype) for x in results) if several else results.astype(dtype)
        outs = out if several else (out,)
        if len(outs) != (len(results) if several else 1):
            raise check.ShapeError(f"out: expected {len(results)} arrays, got {len(outs)}")
        for x, result in zip(outs, results if several else (results,), strict=True):
            check.output("out", x, result.shape, dtype)[...] = result
        return out

    return run


def _cost(robot: Robot, what: str) -> int:
    """Operations to write out, roughly.

    Some 12 an entry of H, RBDA 6.5 for the factors, 4 an entry for a solution, 6 an entry of the
    regressor. The places of a dense matrix count too: to read one takes as long to compile as 2
    operations, to write one as 4.
    """
    return robot.derived.get("costs written out", lambda: _costs(robot))[what]


def _costs(robot: Robot) -> dict[str, int]:
    depth = dof_depths(robot.dof_parent)
    entries, factors, places = int(depth.sum()), int((depth * (depth - 1)).sum()), robot.nv**2
    return {
        "H": max(12 * entries, 4 * places),
        "entries": 12 * entries,
        "factors": max(factors, 6 * places),
        "solution": max(4 * entries, 2 * places),
        "accelerations": factors,
        "regressor": 6 * len(parameter_entries(robot)) + 2 * robot.nv * COUNT * robot.nbodies,
        "derivatives": max(120 * entries, 8 * places),
        "inverse": 2 * len(depth) * entries,
        "derivatives of accelerations": 4 * len(depth) * entries,
    }


def _few_entries(robot: Robot) -> bool:
    """Whether the entries of H that the tree leaves nonzero can be written out."""
    return _cost(robot, "entries") <= MOST


def mass_matrix(robot: Robot, q: Any) -> np.ndarray:
    """H, (nv, nv) or (B, nv, nv).

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
    """
    return (_filled if _few_entries(robot) else _by_columns)(robot, q)


def _filled(robot: Robot, q: Any) -> np.ndarray:
    """H from its entries, zero elsewhere."""
    rows, columns = robot.derived.get("lower entries", lambda: np.array(lower_entries(robot)).T)
    entries = kernel(robot, "crba_nonzeros")(q)
    H = np.zeros((*entries.shape[:-1], robot.nv, robot.nv))
    H[..., rows, columns] = entries
    H[..., columns, rows] = entries
    return H


def _by_columns(robot: Robot, q: Any) -> np.ndarray:
    """H from one batch of inverse dynamics."""
    q = check.argument("q", q, robot.nq)
    run = kernel(robot.with_gravity((0.0, 0.0, 0.0)), "rnea")
    rest, unit = np.zeros(robot.nv), np.eye(robot.nv)
    H = np.empty((len(np.atleast_2d(q)), robot.nv, robot.nv))
    for state, columns in zip(np.atleast_2d(q), H, strict=True):
        run(state, rest, unit, out=columns)
    # Equal up to rounding; made equal, and exactly 0 where no path is.
    H = 0.5 * (H + np.swapaxes(H, -1, -2)) * robot.inertia_pattern
    return H if q.ndim == 2 else H[0]


def factors(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L (..., n, n) and D (..., n) of H = L^T D L; NaN where H is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    L, D = np.zeros_like(H), np.empty(H.shape[:-1])
    for place in np.ndindex(H.shape[:-2]):
        try:
            C = cholesky(H[place][::-1, ::-1], lower=True, check_finite=False)
        except LinAlgError:
            L[place], D[place] = np.nan, np.nan
            continue
        diagonal = np.diagonal(C)
        L[place] = (C / diagonal)[::-1, ::-1].T
        D[place] = diagonal[::-1] ** 2
    return L, D


def solution(L: np.ndarray, D: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x of L^T D L x = b, (..., n)."""
    from scipy.linalg import solve_triangular

    batch = np.broadcast_shapes(L.shape[:-2], b.shape[:-1])
    L, D = np.broadcast_to(L, (*batch, *L.shape[-2:])), np.broadcast_to(D, (*batch, D.shape[-1]))
    b = np.broadcast_to(b, (*batch, D.shape[-1]))
    x = np.empty(b.shape)
    how = {"lower": True, "unit_diagonal": True, "check_finite": False}
    for place in np.ndindex(batch):
        y = solve_triangular(L[place], b[place], trans="T", **how)
        x[place] = solve_triangular(L[place], y / D[place], **how)
    return x


def _entries(robot: Robot, q: Any) -> np.ndarray:
    rows, columns = np.array(lower_entries(robot)).T
    return mass_matrix(robot, q)[..., rows, columns]


def _square(robot: Robot, name: str, flat: Any) -> np.ndarray:
    flat = check.argument(name, flat, robot.nv**2)
    check.check_values([name], [flat], ())
    return flat.reshape(*flat.shape[:-1], robot.nv, robot.nv)


def _factors(robot: Robot, H: Any) -> tuple[np.ndarray, np.ndarray]:
    return factors(_square(robot, "H", H))


def _solution(robot: Robot, L: Any, D: Any, b: Any) -> np.ndarray:
    given = [check.argument(name, x, robot.nv) for name, x in (("D", D), ("b", b))]
    check.check_values(["D", "b"], given, ())
    return solution(_square(robot, "L", L), *given)


def _accelerations(robot: Robot, q: Any, v: Any, tau: Any, *f_ext: Any) -> np.ndarray:
    tau = check.argument("tau", tau, robot.nv)
    check.check_values(["tau"], [tau], ())
    C = kernel(robot, "bias_forces_f_ext" if f_ext else "bias_forces")(q, v, *f_ext)
    a = solution(*factors(mass_matrix(robot, q)), tau - C)
    if not np.isfinite(a).all():
        raise NotFinite("forward_dynamics", a)
    return a


def regressor(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    """Y, (nv, 10 N) or (B, nv, 10 N): a column is ID of bodies of which one has one parameter."""
    names, sizes = ("q", "v", "a"), (robot.nq, robot.nv, robot.nv)
    given = [check.argument(name, x, n) for name, x, n in zip(names, (q, v, a), sizes, strict=True)]
    many = check.batch_size(names, given)
    bare = robot.derived.get("without rotors", lambda: _without_rotors(robot))
    Y = np.zeros((many or 1, robot.nv, COUNT * robot.nbodies))
    at_once = max(1, MOST_PARAMETERS // (COUNT**2 * (robot.nbodies + 1)))
    for first in range(1, robot.nbodies + 1, at_once):
        bodies = np.arange(first, min(first + at_once, robot.nbodies + 1))
        unit = np.zeros((len(bodies), COUNT, robot.nbodies + 1, COUNT))
        unit[np.arange(len(bodies))[:, None], np.arange(COUNT), bodies[:, None], np.arange(COUNT)] = 1.0
        # Not by with_inertias, which would refuse them: no such bodies exist.
        run = kernel(bare._with_parameters(unit.reshape(-1, robot.nbodies + 1, COUNT), bare.links), "rnea")
        columns = slice(COUNT * (first - 1), COUNT * int(bodies[-1]))
        for k, out in enumerate(Y):
            out[:, columns] = run(*(x[k] if x.ndim == 2 else x for x in given)).T
    return Y[0] if many is None else Y


def _regressor_armature(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    Y = regressor(robot, q, v, a)
    rates = check.argument("a", a, robot.nv)[..., None] * np.eye(robot.nv)
    return np.concatenate([Y, np.broadcast_to(rates, (*Y.shape[:-1], robot.nv))], axis=-1)


def _without_rotors(robot: Robot) -> Robot:
    return replace(robot, tree=replace(robot.tree, armature=()), parameters=None, shared_kernels={})


def _regressor_entries(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    rows, columns = np.array(parameter_entries(robot)).T
    return regressor(robot, q, v, a)[..., rows, columns]


WAYS: Ways = {
    "crba": ("H", mass_matrix),
    "crba_nonzeros": ("entries", _entries),
    "ltdl": ("factors", _factors),
    "ltdl_solve": ("solution", _solution),
    "forward_dynamics": ("accelerations", _accelerations),
    "forward_dynamics_f_ext": ("accelerations", _accelerations),
    "regressor": ("regressor", regressor),
    "regressor_armature": ("regressor", _regressor_armature),
    "regressor_nonzeros": ("regressor", _regressor_entries),
}
"""For each kernel what may make it too long, and the other way."""
