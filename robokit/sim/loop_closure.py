"""Configurations and velocities that close a robot's loops.

The least change that closes them, to first order, is taken again and again:

    dq = -K^T (K K^T + mu)^+ delta

with mu by the rule of Levenberg and Marquardt: smaller after a step that helped, larger after one that did
not. A joint stays inside its limits; one that stands at its limit, and is pushed beyond, does not take part.

Source: D. W. Marquardt, "An algorithm for least-squares estimation of nonlinear parameters" (1963).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.coupling import reduced_force
from robokit.algorithms.loop_dynamics import closed_loops
from robokit.arguments import check_finite, not_a_robot, real_array
from robokit.dynamics.equations_of_motion import crba
from robokit.dynamics.singular import refuse, singular
from robokit.errors import ShapeError, WrongType
from robokit.model.constraints import loop_models
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.spatial.linear import ldl, ldl_solve

CLOSED = 1e-4
"""A loop that is open by less than this is closed [rad | m]; files round the poses of their joints."""

STEPS = 100
"""Steps until a start is given up."""

LONGEST = 0.3
"""Longest step of a joint [rad | m]: a longer one may jump to another way of closing the loop."""

ROUNDED = 1e-10
"""A loop that is open by less, and does not close further, is closed but for rounding [rad | m]."""

DEPENDENT = 1e-9
"""What is left of a constraint beside the others, as a share of the largest, where it repeats them."""

LEAST = 1e-14
"""Steps shorter than this change nothing [rad | m]."""


def close_loops(robot: Robot, q: Any = None, keep: Sequence[str] = ()) -> np.ndarray:
    """The configuration in which all loops are closed, close to q.

    Simulations call it for their start. The base of a floating robot does not move, and joints stay within
    their limits.

    Args:
        robot: the robot; without loop joints q is returned unchanged.
        q: configurations to start from, (nq,) or (B, nq); neutral by default.
        keep: names of joints that stay as they are.

    Returns:
        q of the same shape.

    Raises:
        WrongType: robot is not a Robot.
        ShapeError: q has the wrong shape or content, or its loops cannot be closed from there; the error
            names the loop joint that stays open and by how much.
        UnknownName: no such joint.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("four_bar"))
        >>> q = rk.close_loops(robot, [0.3, 0.0, 0.0], keep=[robot.joint_names[0]])
        >>> round(float(q[0]), 3)
        0.3
    """
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)
    given = real_array("q", robot.neutral() if q is None else q, f"({robot.nq},) or (B, {robot.nq})")
    if given.ndim not in (1, 2) or given.shape[-1] != robot.nq:
        raise ShapeError(f"q: expected shape ({robot.nq},) or (B, {robot.nq}), got {given.shape}")
    check_finite("q", given)
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise WrongType("keep", keep, "a list of joint names")
    dofs = [dof for name in keep for dof in _dofs(robot, name)]
    return closed(robot, given, "q", dofs)


def _dofs(robot: Robot, name: str) -> range:
    joint = robot.joint(name)
    if joint not in robot.joints:
        raise ShapeError(f"keep: joint {name!r} has no coordinate of its own")
    return range(joint.v_slice.start, joint.v_slice.stop)


def closed(robot: Robot, q: np.ndarray, what: str, keep: Sequence[int] = ()) -> np.ndarray:
    """:func:`close_loops` for numbers that are checked; rows that are not finite stay as they are."""
    if not loop_models(robot):
        return q.copy()
    rows = np.atleast_2d(q).astype(float)
    good = np.isfinite(rows).all(axis=1)
    with np.errstate(all="ignore"):
        found = _solve(robot, rows[good], keep)
        _check(robot, found, what if q.ndim == 1 else None, what, np.flatnonzero(good))
    rows[good] = found
    return rows.reshape(q.shape)


def closed_rows(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, dict[int, str]]:
    """Rows of q (B, nq) with their loops closed, and why those cannot be closed that stay open.

    Rows that are not finite stay as they are.
    """
    found = q.copy()
    if not loop_models(robot):
        return found, {}
    good = np.flatnonzero(np.isfinite(q).all(axis=1))
    with np.errstate(all="ignore"):
        found[good] = _solve(robot, q[good], ())
    why = {}
    for row in good.tolist():
        try:
            _check(robot, found[row : row + 1], "start", "start", np.zeros(1, int))
        except ShapeError as error:
            why[row] = str(error)
    return found, why


def closed_start(
    robot: Robot, q: np.ndarray, v: np.ndarray, keep: Sequence[int] = ()
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """The start of a simulation with its loops closed, and what that changed, for the summary.

    Args:
        q, v: (nq,) and (nv,), or rows of them; one row of either serves for all rows of the other.
        keep: dofs that stay as they are, with their velocities.

    Raises:
        ShapeError: a loop cannot be closed from there.
    """
    if not loop_models(robot):
        return q, v, {}
    q1, rows = closed(robot, q, "q0", keep), np.atleast_2d(v)
    _check_regular(robot, q1)
    many = max(len(rows), len(np.atleast_2d(q1)))
    v1 = tangent(robot, np.broadcast_to(np.atleast_2d(q1), (many, robot.nq)), rows, keep)
    changes = {"loop_start_change": q1 - q, "loop_start_velocity_change": v1 - rows}
    said = {name: float(np.nan_to_num(np.abs(x)).max(initial=0.0)) for name, x in changes.items()}
    return q1, v1 if v.ndim == 2 else v1[0], said


REGULAR = 1e-11
"""Least inertia of a motion that the loops allow, over that of the robot: less is rounding."""


def held_by_loops(robot: Robot) -> Joint | None:
    """A joint that moves no inertia, if there is one, of a robot whose loops may say how it moves."""
    return singular(robot) if loop_models(robot) else None


def _check_regular(robot: Robot, q: np.ndarray) -> None:
    """Raise SingularInertia where a motion that the loops allow moves no inertia.

    [H K^T; K 0] is regular, but for loops that repeat each other, where H is positive on what K leaves free.
    """
    joint = held_by_loops(robot)
    if joint is None or robot.samples is not None:
        return
    rows = np.atleast_2d(q)
    for row in rows[np.isfinite(rows).all(axis=1)]:
        H = crba(robot, row)
        K = _constraints(robot, row[None])[1][0]
        # Rows and columns as forces and motions of one size: an angle counts as a length on the robot.
        scale = 1.0 / np.sqrt(np.where(np.diag(H) > 0.0, np.diag(H), np.max(np.diag(H))))
        _, s, V = np.linalg.svd(K * scale)
        free = V[int((s > DEPENDENT * s[0]).sum()) :]
        if not len(free):
            return
        values, motions = np.linalg.eigh(free @ (H * scale[:, None] * scale) @ free.T)
        if values[0] <= REGULAR:
            still = np.abs(motions[:, 0] @ free)
            name = next(j for j in robot.joints if still.argmax() in range(robot.nv)[j.v_slice])
            refuse(robot, name, "it moves no inertia, and no loop joint says how it moves")


def gaps(robot: Robot, q: np.ndarray) -> np.ndarray:
    """What is left of delta in each loop joint, (B, loops): its largest entry [rad | m], q (B, nq)."""
    with np.errstate(all="ignore"):
        delta, _ = _constraints(robot, q)
        ends = np.cumsum([model.rows for model in loop_models(robot)])[:-1]
        return np.stack([np.abs(part).max(axis=1) for part in np.split(delta, ends, axis=1)], axis=1)


def torn(robot: Robot, q: np.ndarray) -> str | None:
    """Name of a loop joint that is open in states (B, nq) of a run, the one that is most; None if none is."""
    left = gaps(robot, q).max(axis=0)
    return loop_models(robot)[int(left.argmax())].name if left.max() > CLOSED else None


def distances(robot: Robot, q: np.ndarray) -> np.ndarray:
    """By how far each loop joint is open, (B, loops) [m], q (B, nq)."""
    columns = list(q.T)
    tree = robot.tree
    loops = closed_loops(tree, loop_models(robot), tree.transforms(robot.split_q(columns)))
    return np.stack([np.broadcast_to(loop.gap, len(q)) for loop in loops], axis=1)


def tangent(robot: Robot, q: np.ndarray, v: np.ndarray, keep: Sequence[int] = ()) -> np.ndarray:
    """The velocities nearest to v, (B, nv), that the loops allow in q (B, nq); dofs to keep have theirs."""
    if not loop_models(robot):
        return v
    out = np.array(np.broadcast_to(v, (len(q), robot.nv)), dtype=float)
    good = np.isfinite(q).all(axis=1) & np.isfinite(out).all(axis=1)
    _, K = _constraints(robot, q[good])
    v_good = out[good]
    if keep:
        left = np.einsum("bij,bj->bi", K, v_good)
        K[..., list(keep)] = 0.0
        out[good] = v_good - np.einsum("bij,bj->bi", np.linalg.pinv(K, rcond=DEPENDENT), left)
        return out
    for unit in _row_space(K):
        v_good -= unit * _dot(unit, v_good)[:, None]
    out[good] = v_good
    return out


def _row_space(K: np.ndarray) -> list[np.ndarray]:
    """Orthonormal vectors (B, nv) that span the rows of K (B, n_c, nv); zero for rows that repeat others.

    Gram-Schmidt, twice, in plain arithmetic.
    """
    largest = np.zeros(len(K))
    for i in range(K.shape[1]):
        largest = np.maximum(largest, np.sqrt(_dot(K[:, i], K[:, i])))
    found: list[np.ndarray] = []
    for i in range(K.shape[1]):
        rest = K[:, i].copy()
        for unit in (*found, *found):
            rest -= unit * _dot(unit, rest)[:, None]
        size = np.sqrt(_dot(rest, rest))
        new = size > DEPENDENT * largest
        found.append(rest * np.where(new, 1.0 / np.where(new, size, 1.0), 0.0)[:, None])
    return found


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products of rows (B, n), (B,), added up in order: NumPy's sums have orders of their own."""
    total = np.zeros(len(a))
    for k in range(a.shape[1]):
        total = total + a[:, k] * b[:, k]
    return total


def _constraints(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Delta, (B, n_c), and K of the robot's own dofs, (B, n_c, nv)."""
    tree, B = robot.tree, len(q)
    loops = closed_loops(tree, loop_models(robot), tree.transforms(robot.split_q(list(q.T))))
    delta = [np.broadcast_to(x, B) for loop in loops for x in loop.delta]
    K = [
        [np.broadcast_to(x, B) for x in reduced_force(tree, row)] for loop in loops for row in loop.jacobian()
    ]
    return np.stack(delta, axis=1), np.moveaxis(np.array(K), -1, 0)


def _bounds(robot: Robot) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(places in q, places in v, lower, upper) of the joints that have limits."""
    limited = [
        joint
        for joint in robot.joints
        if joint.q_slice.stop - joint.q_slice.start == 1 and joint.kind != "continuous"
    ]
    place = np.array([joint.q_slice.start for joint in limited], int)
    dof = np.array([joint.v_slice.start for joint in limited], int)
    lower = np.array([joint.lower for joint in limited], float)
    return place, dof, lower, np.array([joint.upper for joint in limited], float)


def _solve(robot: Robot, q: np.ndarray, keep: Sequence[int], steps: int = STEPS) -> np.ndarray:
    place, dof, lower, upper = _bounds(robot)
    mu = np.full(len(q), 1e-6)
    delta, K = _constraints(robot, q)
    K[..., list(keep)] = 0.0
    size = _dot(delta, delta)
    done = np.zeros(len(q), bool)
    for _ in range(steps):
        at = q[:, place]
        # Where a limit holds a joint that would go beyond, the others have to close the loop.
        dv = _step(K, delta, mu)
        held = ((at <= lower) & (dv[:, dof] < 0.0)) | ((at >= upper) & (dv[:, dof] > 0.0))
        if held.any():
            free = np.ones(dv.shape, bool)
            free[:, dof] = ~held
            dv = _step(K * free[:, None, :], delta, mu)
        tried = robot.integrate(q, dv)
        inside = np.clip(tried[:, place], np.minimum(at, lower), np.maximum(at, upper))
        tried[:, place] = inside
        delta1, K1 = _constraints(robot, tried)
        K1[..., list(keep)] = 0.0
        size1 = _dot(delta1, delta1)
        better = (size1 < size) & ~done  # what a row comes to does not depend on the others
        mu = np.where(better, mu * 0.1, mu * 10.0)
        q, size = np.where(better[:, None], tried, q), np.where(better, size1, size)
        delta, K = np.where(better[:, None], delta1, delta), np.where(better[:, None, None], K1, K)
        moved = np.abs(dv).max(axis=1)
        rounded = ~better & (size < ROUNDED**2)
        done |= (moved < LEAST) | (mu > 1e12) | (size < LEAST**2) | rounded
        if done.all():
            break
    return q


def _step(K: np.ndarray, delta: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """-K^T (K K^T + mu scale 1)^-1 delta by plain arithmetic: BLAS and LAPACK have bits of their own."""
    n = K.shape[1]
    A = np.zeros((len(K), n, n))
    for k in range(K.shape[2]):
        A += K[:, :, None, k] * K[:, None, :, k]
    scale = sum(A[:, i, i] for i in range(n)) / n + 1e-300
    least = np.maximum(mu, 1e-12) * scale
    damped = [[A[:, i, j] + least if i == j else A[:, i, j] for j in range(n)] for i in range(n)]
    y = ldl_solve(ldl(damped), list(delta.T))
    dv = np.zeros((len(K), K.shape[2]))
    for i in range(n):
        dv -= K[:, i] * y[i][:, None]
    return dv * np.minimum(1.0, LONGEST / np.maximum(np.abs(dv).max(axis=1), LONGEST))[:, None]


def _check(robot: Robot, q: np.ndarray, one: str | None, what: str, rows: np.ndarray) -> None:
    """Raise ShapeError for the first row in which a loop is open."""
    if not len(q):
        return
    left = gaps(robot, q)
    open_ = ~(left <= CLOSED)
    if not open_.any():
        return
    row = int(open_.any(axis=1).argmax())
    k = int(np.nan_to_num(left[row], nan=np.inf).argmax())
    name = one or f"{what}[{rows[row]}]"
    models = loop_models(robot)
    gap = float(distances(robot, q[row : row + 1])[0, k])
    raise ShapeError(
        f"{name}: loop joint {models[k].name!r} cannot be closed from there: it stays open by {gap:.3g} m "
        f"and {left[row, k]:.3g} in its largest error [rad | m]; start closer to a configuration that closes "
        "it, or check its frames"
    )
