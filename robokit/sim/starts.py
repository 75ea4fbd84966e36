"""Where runs begin: closed loops, configurations that stand on the ground, and what is wrong with others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from robokit.algorithms.coupling import reduced_force
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.loop_dynamics import closed_loops
from robokit.arguments import (
    check_finite,
    check_quaternion,
    check_values,
    random_generator,
    real_array,
    real_number,
)
from robokit.collision.detect import Arrays, Detector
from robokit.collision.fields import FIELD, PLANE
from robokit.collision.scene import Scene, robot_shapes, scene
from robokit.collision.shapes import Core, PlacedCore
from robokit.collision.support import SUPPORTS
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.dataclass_tools import Spare, frozen
from robokit.dynamics.build import angle_bounds
from robokit.dynamics.equations_of_motion import crba
from robokit.dynamics.singular import refuse, singular
from robokit.errors import InvalidValue, ShapeError, WrongType, warn
from robokit.model.constraints import loop_models
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot, of_joint, quaternion_offsets
from robokit.sim.distances import CollisionPairs, body_contacts, body_names
from robokit.sim.ground import Ground, plane_of, world_of
from robokit.sim.motion import state_poses
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import SPIN, contact_scale, fastest_spin, ground_stiffness, scene_of
from robokit.spatial import Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_multiply
from robokit.spatial.scalars import added, sine_and_cosine

# ==== loop closure ================================================================================
# The least change that closes the loops, to first order, is taken again and again:
#
#     dq = -K^T (K K^T + mu)^+ delta
#
# with mu by the rule of Levenberg and Marquardt: smaller after a step that helped, larger after one that did
# not. A joint stays inside its limits; one that stands at its limit, and is pushed beyond, takes no part.
#
# Source: D. W. Marquardt, "An algorithm for least-squares estimation of nonlinear parameters" (1963).

CLOSED = 1e-4  # loops that are open by less are closed [rad | m]; files round the poses of their joints
STEPS = 100  # steps until a start is given up
LONGEST = 0.3  # longest step of a joint [rad | m]: a longer one may jump to another way of closing the loop
ROUNDED = 1e-10  # loops open by less that do not close further are closed but for rounding [rad | m]
DEPENDENT = 1e-9  # what is left of a constraint that repeats others, as a share of the largest
LEAST = 1e-14  # steps shorter than this change nothing [rad | m]


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
    check_robot(robot)
    given = real_array("q", robot.neutral() if q is None else q, f"({robot.nq},) or (B, {robot.nq})")
    if given.ndim not in (1, 2) or given.shape[-1] != robot.nq:
        raise ShapeError(f"q: expected shape ({robot.nq},) or (B, {robot.nq}), got {given.shape}")
    check_finite("q", given)
    if isinstance(keep, str) or not isinstance(keep, Sequence):
        raise WrongType("keep", keep, "a list of joint names")
    dofs: list[int] = []
    for name in keep:
        joint = robot.joint(name)
        if joint not in robot.joints:
            raise ShapeError(f"keep: joint {name!r} has no coordinate of its own")
        dofs += range(joint.v_slice.start, joint.v_slice.stop)
    return closed(robot, given, "q", dofs)


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

    q and v are (nq,) and (nv,), or rows of them; one row of either serves for all rows of the other. The dofs
    ``keep`` stay as they are, with their velocities. Raises ShapeError where a loop cannot be closed from
    there.
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


REGULAR = 1e-11  # least inertia of a motion that the loops allow, over that of the robot: less is rounding


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
    left = gaps(robot, q).max(axis=0, initial=0.0)
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
        left = _product(K, v_good)
        K[..., list(keep)] = 0.0
        out[good] = v_good - _product(np.linalg.pinv(K, rcond=DEPENDENT), left)
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


def _product(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A b of matrices (B, m, n) and vectors (B, n), (B, m)."""
    return np.stack([_dot(A[:, i], b) for i in range(A.shape[1])], axis=1)


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


def _single(robot: Robot) -> list[Joint]:
    """The joints of one coordinate."""
    return [joint for joint in robot.joints if joint.q_slice.stop - joint.q_slice.start == 1]


def _limited(robot: Robot) -> list[Joint]:
    """Those that may have limits."""
    return [joint for joint in _single(robot) if joint.kind != "continuous"]


def _bounds(robot: Robot) -> tuple[np.ndarray, ...]:
    """(places in q, places in v, lower, upper, PAST) of the joints that have limits."""

    def made() -> tuple[np.ndarray, ...]:
        rows = [
            (j.q_slice.start, j.v_slice.start, j.lower, j.upper, PAST[j.kind == "prismatic"])
            for j in _limited(robot)
        ]
        place, dof, *rest = np.array(rows, float).reshape(-1, 5).T
        return place.astype(int), dof.astype(int), *rest

    return robot.derived.get("limits of joints", made)


def _solve(robot: Robot, q: np.ndarray, keep: Sequence[int], steps: int = STEPS) -> np.ndarray:
    place, dof, lower, upper, _ = _bounds(robot)
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


# ==== ground gaps =================================================================================
# How far a robot's shapes are from a ground, and how far it is to be lowered onto it.
#
# Every number comes from the configuration by + - * / and square roots in an order that is written here, so
# that starts of sweeps have the same bits on every machine.

CLOSE = 1e-10  # gap that is none [m]
LOOKED = 0.25  # of the robot's size: how far ahead it is looked when it is lowered
ROUNDS = 10_000  # of lowering, at most


def touching_shapes(robot: Robot, ground: Ground) -> list[PlacedCore]:
    """Shapes of a robot that can touch a ground: those of bodies that move."""
    return [c for c in robot_shapes(robot, ground.shape_error) if c.body]


def ground_gaps(robot: Robot, q: np.ndarray, ground: Ground) -> np.ndarray:
    """Distance of the robot from the ground in each row of q (B, nq), below 0 inside; (B,) [m].

    Infinite for a robot without shapes. Where the ground is not one plane, it is infinite, too, for what is
    farther away than a quarter of the robot's size.
    """
    shapes, n, found = touching_shapes(robot, ground), ground.up, np.full(len(q), math.inf)
    if not shapes:
        return found
    if not ground.only_plane:
        over = _Uneven(robot, ground)
        return np.array([over.gap(row, k) for k, row in enumerate(q)])
    X0 = forward_kinematics(robot.tree, robot.split_q(list(q.T)))
    with np.errstate(all="ignore"):
        for c in shapes:
            X = X0[c.body]
            place = c.placement if c.core.own is None else c.placement @ c.core.own
            down = [*(X.E @ Vector3(*n))]
            x, y, z = place.position.tolist()
            at = n[0] * X.r.x + n[1] * X.r.y + n[2] * (X.r.z - ground.height)
            at = at + (down[0] * x + down[1] * y + down[2] * z)
            own = [added(place.rotation[k, m] * down[k] for k in range(3)) for m in range(3)]
            found = np.minimum(found, at + lowest(c.core, own) - c.core.radius)
    return found


def lowered(robot: Robot, q: np.ndarray, ground: Ground, clearance: Any) -> np.ndarray:
    """Heights of the base, (B,) [m], at which each row of q (B, nq) hangs ``clearance`` over the ground.

    The robot's base floats; its height in q does not matter. ``clearance`` is the gap of the nearest shape, a
    number or (B,) [m]. NaN where there is nothing under the robot.
    """
    wanted = np.broadcast_to(clearance, len(q))
    if ground.only_plane:
        return np.asarray(q[:, 6] + (wanted - ground_gaps(robot, q, ground)) / ground.up[2])
    over = _Uneven(robot, ground)
    return np.array([over.lowered(row, k, float(wanted[k])) for k, row in enumerate(q)])


def body_poses(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (B, N + 1, 3, 3) to world axes and origins (B, N + 1, 3) of bodies 0..N [m]."""
    B, n = len(q), robot.nbodies + 1
    R, p = np.zeros((B, n, 3, 3)), np.zeros((B, n, 3))
    R[:, 0] = np.eye(3)
    for i, X in enumerate(forward_kinematics(robot.tree, robot.split_q(list(q.T)))[1:], 1):
        for k, row in enumerate(X.E.rows):
            for m, x in enumerate(row):
                R[:, i, m, k] = x
        for k, x in enumerate(X.r):
            p[:, i, k] = x
    return R, p


def lowest(core: Core, n: Any) -> Any:
    """Least n . x of the points x of a core without its radius, for unit vectors n of three (B,) [m]."""
    if core.hull is None:
        down = -Vector3(*n)
        return -SUPPORTS[core.kind](Vector3(*core.size), down).dot(down)
    corners = core.hull.corners
    heights = [corners[:, k][:, None] * np.atleast_1d(s) for k, s in enumerate(n)]
    return (heights[0] + heights[1] + heights[2]).min(axis=0)


class _Uneven:
    """A robot over a ground that is not one plane."""

    def __init__(self, robot: Robot, ground: Ground) -> None:
        found = scene(robot, world_of(ground), error=ground.shape_error)
        self.robot, self.ground, self.arrays = robot, ground, found.arrays
        own = np.array([bool(link) for link in found.links])
        x = found.arrays
        self.bodies, self.centres = x["shape_body"][own], x["shape_centre"][own]
        self.bounds = x["shape_bound"][own]
        centres = self._centres(*self._poses(robot.neutral()))
        self.far = LOOKED * (float(np.ptp(centres, axis=0).max()) + self.bounds.max())
        self.detector = Detector(found.arrays, robot.nbodies + 1, self.far, reproducible=True)
        self.own_plane = ground.plane and np.ndim(ground.normal) == 2

    def _poses(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotations (N + 1, 3, 3) to world axes and origins (N + 1, 3) of bodies 0..N [m]."""
        R, p = body_poses(self.robot, q[None])
        return R[0], p[0]

    def _centres(self, R: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Centres of balls around the shapes, (K, 3) [m]."""
        turned = R[self.bodies]
        return p[self.bodies] + sum(turned[:, :, k] * self.centres[:, None, k] for k in range(3))

    def gap(self, q: np.ndarray, row: int) -> float:
        """Distance in a configuration."""
        return self._gap(*self._poses(q), row) if np.isfinite(q).all() else math.nan

    def _gap(self, R: np.ndarray, p: np.ndarray, row: int) -> float:
        if self.own_plane:
            plane, _ = plane_of(self.ground.row(row))
            placement = np.concatenate([plane.rotation.ravel(), plane.position])
            self.detector.arrays["shape_placement"][0] = placement
        return float(self.detector.at(R, p)["contact_gap"].min(initial=math.inf))

    def lowered(self, q: np.ndarray, row: int, clearance: float) -> float:
        """Height of the base, lowered from above all of the ground until the first shape is near."""
        if not np.isfinite(q).all():
            return math.nan
        R, p = self._poses(np.concatenate([q[:6], [0.0], q[7:]]))
        centres = self._centres(R, p)
        ends = list(self._ends(centres, self.bounds, clearance, row))
        height = max(float((high - centres[:, 2]).max()) for _, high in ends)
        bottom = min(float((low - centres[:, 2]).min()) for low, _ in ends)
        for _ in range(ROUNDS):
            lifted = p.copy()
            lifted[1:, 2] += height  # the base carries all of the robot
            # No shape meets the ground before it has gone its distance from it.
            step = min(self._gap(R, lifted, row), self.far) - clearance
            height -= step if abs(step) > 0.0 else 0.0
            if abs(step) < CLOSE:
                return height
            if height < bottom:
                return math.nan
        return height

    def _ends(
        self, centres: np.ndarray, bounds: np.ndarray, clearance: float, row: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Heights at which balls are under and over all of each surface, (K,) each [m]."""
        x, ground, away = self.arrays, self.ground, bounds + abs(clearance)
        for k in np.flatnonzero(x["shape_body"] == 0).tolist():
            kind, z = int(x["shape_kind"][k]), float(x["shape_centre"][k, 2])
            if kind == PLANE:
                n = ground.row(row).up
                level = ground.height - (n[0] * centres[:, 0] + n[1] * centres[:, 1]) / n[2]
                yield level - away / n[2], level + away / n[2]
            elif kind == FIELD:
                least, most = float(x["heights"].min()), float(x["heights"].max())
                yield z + least - self.far - away, z + most + away
            else:
                yield z - x["shape_bound"][k] - away, z + x["shape_bound"][k] + away


# ==== Starts of runs, checked: their states, what overlaps there, spins too fast for a step =======


def numbers(what: str, value: Any, n: int, robot: Robot | None = None) -> np.ndarray:
    """value as n finite numbers; with the robot, errors name the joint."""
    return _row(what, real_array(what, value, f"({n},)"), n, robot)


def _row(what: str, array: np.ndarray, n: int, robot: Robot | None) -> np.ndarray:
    """A copy, if it has n finite numbers."""
    if array.shape != (n,):
        rows = what in ("q0", "v0") and array.ndim == 2 and array.shape[1] == n
        hint = "; rk.rollout simulates many states" if rows else ""
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}{hint}")
    try:
        check_finite(what, array)
    except InvalidValue as error:
        raise (of_joint(robot, error) if robot else error) from None
    return array.copy()


def states(what: str, value: Any, n: int, least: int = 1, robot: Robot | None = None) -> np.ndarray:
    """value as rows of n numbers, (B, n) or (1, n); numbers given for all rows must be finite."""
    array = real_array(what, value, f"({n},) or (B, {n})")
    if array.ndim == 1:
        return _row(what, array, n, robot)[None]
    if array.ndim != 2 or array.shape[1] != n or len(array) < least:
        some = f" with B >= {least}" if least else ""
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}){some}, got {array.shape}")
    return array


def check_coordinates(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where q, (nq,) or (B, nq), has a quaternion not unit or too large an angle."""
    check_quaternions(what, robot, q)

    def found() -> tuple[float, Any]:
        bounds = angle_bounds(robot)
        return min((most for _, most in bounds), default=math.inf), bounds

    least, bounds = robot.derived.get("bounds of angles", found)
    if np.vdot(q, q) < least * least or not np.count_nonzero(np.abs(q) > least):
        return
    finite = np.where(np.isfinite(q), q, 0.0)  # rows that are not finite are marked as such later
    check_values((what,), (finite,), (), [(0, k, most) for k, most in bounds])


def check_quaternions(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        check_quaternion(what, q, k)


# ---- what overlaps -----------------------------------------------------------------------------------------

ROWS = 1024  # starts whose poses are computed together


@frozen
class StartContacts:
    """The deepest overlaps at the starts of B rows; 0 for a start that is not finite."""

    depth: np.ndarray  # in the ground [m], (B,)
    link: list[str]  # that is there, B names
    overlap: np.ndarray  # of bodies [m], (B,)
    bodies: np.ndarray  # that overlap, (B, 2)
    energy: np.ndarray  # that the springs of all these contacts hold [J], (B,)


def start_contacts(program: Program, q: np.ndarray) -> StartContacts:
    """What overlaps in the rows of q (B, nq)."""
    ground = program.ground
    B = len(q)
    if ground is not None and ground.rows is not None and B == 1:
        B = ground.rows
    found = StartContacts(np.zeros(B), [""] * B, np.zeros(B), np.zeros((B, 2), int), np.zeros(B))
    for row, contacts, shapes, _ in _contacts(program, q, B):
        depth, links = -contacts["contact_gap"], scene_of(program).links
        found.energy[row] = float(np.square(np.maximum(depth, 0.0)).sum())
        inside = np.array([not links[k] for k in shapes[:, 0]])
        for which, deepest in ((inside, found.depth), (~inside, found.overlap)):
            if which.any():
                at = int(np.where(which, depth, -np.inf).argmax())
                deepest[row] = max(float(depth[at]), 0.0)
                if which is inside:
                    found.link[row] = links[shapes[at, 1]]
                else:
                    found.bodies[row] = contacts["contact_bodies"][at]
    if found.energy.any():
        found.energy[:] *= 0.5 * ground_stiffness(program, 0)
    return found


def _contacts(
    program: Program, q: np.ndarray, B: int
) -> Iterator[tuple[int, Arrays, np.ndarray, np.ndarray]]:
    """Of rows of q, (B, nq) or one for all B, that have contacts: number, contacts, their shapes (K, 2), and
    the rotations of bodies (N + 1, 3, 3). They hold until the next row.
    """
    ground, robot = program.ground, program.robot
    if not program.contact:
        return
    scene = scene_of(program)
    if not len(scene.arrays["runs"]):
        return
    spare: Spare[tuple[Scene, Detector]] = robot.derived.get("spare detectors", lambda: Spare(2))
    _, detector = kept = spare.take(id(scene), lambda: (scene, Detector(scene.arrays, robot.nbodies + 1)))
    normals = ground is not None and bool(ground.plane) and np.ndim(ground.normal) == 2
    for first in range(0, B, ROWS):
        some = q[first : first + ROWS] if len(q) == B else np.broadcast_to(q, (min(ROWS, B), q.shape[1]))
        with np.errstate(all="ignore"):
            poses = state_poses if robot.samples is None else body_poses
            R, p = poses(robot, some)
        for m in np.flatnonzero(np.isfinite(R).all(axis=(1, 2, 3)) & np.isfinite(p).all(axis=(1, 2))):
            row = first + int(m)
            if normals and ground is not None:
                plane, _ = plane_of(ground.row(row))
                placement = np.concatenate([plane.rotation.ravel(), plane.position])
                detector.arrays["shape_placement"][0] = placement
            contacts = detector.at(R[m], p[m])
            if len(contacts["contact_gap"]):
                yield row, contacts, contacts["contact_shapes"], R[m]
    if not normals:  # else its plane is not that of the scene
        spare.give(id(scene), kept)


# ---- bodies that have gone into each other -----------------------------------------------------------------


def half_widths(program: Program) -> np.ndarray:
    """Half of the least width of each shape in a program's scene [m], cached with the scene.

    For hulls it is the least width across a face, for cones half of the smaller one of height and diameter.
    Infinite for points, planes and height fields.
    """
    kept, shapes = vars(scene_of(program)), scene_of(program).arrays
    if "half widths" not in kept:
        half = shapes["shape_radius"].copy()
        for k, kind in enumerate(shapes["shape_kind"].tolist()):
            first, many = shapes["shape_faces"][k]
            if kind in SUPPORTS:
                half[k] += min(size for size in shapes["shape_size"][k].tolist() if size > 0.0)
            elif many:
                normals = shapes["face_normal"][first : first + many]
                half[k] += 0.5 * np.ptp(_corners(shapes, k) @ normals.T, axis=0).min()
        kept["half widths"] = np.where(half > 0.0, half, np.inf)
    found: np.ndarray = kept["half widths"]
    return found


def _corners(shapes: Arrays, s: int) -> np.ndarray:
    at, count = shapes["shape_corners"][s]
    return shapes["corners"][at : at + count]


def _half_width(shapes: Arrays, s: int, d: np.ndarray) -> float:
    """Half of the width of shape s along a unit vector d of its body's axes [m]; not of planes and fields."""
    if (support := SUPPORTS.get(int(shapes["shape_kind"][s]))) is None:
        reach = float(np.ptp(_corners(shapes, s) @ d))
    else:
        own = Vector3(*(d @ shapes["shape_placement"][s, :9].reshape(3, 3)).tolist())
        size = Vector3(*shapes["shape_size"][s].tolist())
        reach = (support(size, own) - support(size, -own)).dot(own)
    return float(shapes["shape_radius"][s]) + 0.5 * reach


def entered(program: Program, q: np.ndarray) -> tuple[float, float, int, list[str]] | None:
    """The overlap of two shapes in the states q (T, nq) that is most, over half of the thinner one's width.

    Widths are those along the contact's normal: what overlaps by more has its middle beyond the surface of
    the other one. Of a body in a solid of the ground only the solid's counts, whose other side it may leave
    by; planes and height fields have one side. Returns the depth and that half width [m], the number of the
    state, and whose the shapes are, in words; None where no overlap is that deep.
    """
    least, most, found = half_widths(program), 1.0, None
    scene, names = scene_of(program), body_names(program.robot)
    for row, contacts, shapes, R in _contacts(program, q, len(q)):
        depth = -contacts["contact_gap"]
        for k in np.flatnonzero(depth > least[shapes].min(axis=1)).tolist():
            n, bodies = contacts["contact_frame"][k, 6:], contacts["contact_bodies"][k].tolist()
            both = list(zip(shapes[k].tolist(), bodies, strict=True))
            counted = [(s, i) for s, i in both[: 1 + bool(scene.links[both[0][0]])] if depth[k] > least[s]]
            thin = min((_half_width(scene.arrays, s, n @ R[i]) for s, i in counted), default=math.inf)
            if depth[k] > most * thin:
                most = depth[k] / thin
                whose = [
                    f"body {names[i]!r}" if scene.links[s] else f"solid {scene.solid[s]}" for s, i in both
                ]
                found = float(depth[k]), thin, row, whose
    return found


# ---- errors and warnings -----------------------------------------------------------------------------------

# At a scale of contacts of 1 (``contact_scale``), with which these lengths go:
OVERLAP = 1e-3  # bodies that overlap by more at the start are worth a warning [m]
DEEP = 0.01  # a link deeper in the ground than this is worth a warning [m]
BURIED = 0.1  # a start deeper in the ground than this is a mistake, of small robots too [m]

PAST = 0.05, 5e-3
"""A start this far past the limit of a joint is worth a warning [rad], of a slide [m]."""


def check_starts(program: Program, q: np.ndarray, what: str = "q0") -> StartContacts:
    """Find overlaps at the starts (nq,) or (B, nq), which the caller knows as ``what``.

    Raises ShapeError for a start deep inside the ground, which would throw the robot away.
    """
    found = start_contacts(program, np.atleast_2d(q))
    for row, why in buried(program, found):
        raise ShapeError(f"{what}{f'[{row}]' if q.ndim == 2 else ''}: {why}")
    return found


def buried_depth(robot: Robot, ground: Ground | None) -> float:
    """Depth beyond which a start is refused [m]."""
    return BURIED * max(1.0, contact_scale(robot, ground))


def buried(program: Program, found: StartContacts) -> Iterator[tuple[int, str]]:
    """The rows that start deep inside the ground, and the text of the warning."""
    ground, robot = program.ground, program.robot
    for row in np.flatnonzero(found.depth > buried_depth(program.robot, program.ground)).tolist():
        assert ground is not None
        depth = found.depth[row]
        above = "" if ground.horizontal else ", ground=ground"
        remedy = (
            f"start from rk.standing_configuration(robot{above}), or raise the base: "
            f"q0[..., 6] = rk.standing_height(robot, q0{above})"
            if robot.base == "floating"
            else "start elsewhere"
        )
        if ground.horizontal:
            remedy += f", or lower it with Ground(height={ground.height - depth:.3g})"
        yield row, f"link {found.link[row]!r} starts {depth:.3g} m below the ground; {remedy}"


def checked_starts(robot: Robot, program: Program, q: np.ndarray, v: np.ndarray, dt: float) -> float:
    """Refuse starts deep inside the ground, and warn of those that no run should have.

    ``robot`` is as it was given; that of the program may have rotors besides. The starts are (nq,) and (nv,),
    or rows of them; a single row goes with many. Returns how deep in the ground the start is [m], where it
    was warned of that; else 0. Raises ShapeError as :func:`check_starts`.
    """
    found, one, scale = check_starts(program, q), program.robot, contact_scale(program.robot, program.ground)
    _of_limits(robot, q)
    one, depth = one if one.samples is None else one.sample(0), 0.0
    if count := int((found.overlap > OVERLAP * scale).sum()):
        row, names = int(found.overlap.argmax()), body_names(one)
        first, second = (names[i] for i in found.bodies[row].tolist())
        warn(
            f"{_place(len(found.overlap), row, count)}: bodies {first!r} and "
            f"{second!r} overlap by {1e3 * found.overlap[row]:.3g} mm and push each other apart: start "
            "with them apart, or remove the pair with self_collision=rk.collision_pairs(robot).remove(...)"
        )
    if count := int((found.depth > DEEP * scale).sum()):
        row = int(found.depth.argmax())
        depth = float(found.depth[row])
        warn(
            f"{_place(len(found.depth), row, count)}: link {found.link[row]!r} starts {1e3 * depth:.3g} mm "
            "inside the ground, which pushes it out: start from rk.standing_configuration(robot, "
            "ground=ground), or higher"
        )
    speed, row, body = fastest_spin(one, q, v, SPIN / dt) if program.accuracy is None else (0.0, 0, 0)
    if body:
        where = f"v0[{row}]" if max(len(np.atleast_2d(x)) for x in (q, v)) > 1 else "v0"
        warn(
            f"{where}: body {one.body_name(body)!r} spins at {speed:.3g} rad/s, {speed * dt:.2g} rad per "
            f"step of {dt:g} s, where {SPIN} is fine: use dt = {two_digits(SPIN / speed):.2g}"
        )
    return depth


def _place(rows: int, row: int, count: int) -> str:
    """Which of the rows, in words."""
    if rows == 1:
        return "q0"
    return f"q0[{row}]" + (f" (and {count - 1} more)" if count > 1 else "")


def two_digits(dt: float) -> float:
    """A step with two digits, not longer."""
    digits = 10.0 ** math.floor(math.log10(dt) - 1)
    return math.floor(dt / digits) * digits


def _of_limits(robot: Robot, q: np.ndarray) -> None:
    """Warn of a start q, (nq,) or (B, nq), past a joint's limit: the stop's spring throws it back."""
    place, _, lower, upper, least = _bounds(robot)
    at = np.atleast_2d(q)[:, place]
    past = np.stack([lower - at, at - upper])
    most = np.fmax.reduce(past, axis=1, initial=-math.inf)
    beyond = np.argwhere((most > least).T)
    if not len(beyond):
        return
    k, side = beyond[0]
    joint = _limited(robot)[k]
    unit = "m" if joint.kind == "prismatic" else "rad"
    limit = (joint.lower, joint.upper)[side]
    warn(
        f"q0: joint {joint.name!r} starts {most[side, k]:.3g} {unit} beyond its {('lower', 'upper')[side]} "
        f"limit, {limit:.4g} {unit}; the limit pushes it back: start within the limits"
    )


# ==== Configurations to start from: a robot just above the ground =================================

SHAKE = 0.02  # standard deviation of the random change of every joint [rad | m] and of the tilt [rad]


def standing_height(
    robot: Robot,
    q: Any = None,
    clearance: float = 0.0,
    ground_height: float = 0.0,
    ground: Ground | bool | None = None,
) -> Any:
    """Height of a floating base at which the lowest point of the robot is ``clearance`` above the ground.

    Args:
        robot: a robot with a floating base.
        q: configuration, (nq,) or (B, nq), of which the base's own height does not matter; by default
            neutral.
        clearance: gap under the lowest point [m].
        ground_height: of a horizontal ground in the world [m].
        ground: instead of a height: the ground, onto which the robot is lowered until its first point is
            ``clearance`` away from it. True: a horizontal plane, as in :func:`simulate`.

    Returns:
        z of the base in the world [m], a float or (B,).

    Raises:
        WrongType: robot is not a Robot.
        ShapeError: a fixed base, or another argument of the wrong shape or content.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> q = robot.random_configuration(0, size=100)
        >>> q[:, 6] = rk.standing_height(robot, q)
        >>> round(rk.standing_height(robot), 3)
        0.935
    """
    _check_stands(robot)
    rows = states("q", robot.neutral() if q is None else q, robot.nq, robot=robot)
    check_finite("q", rows)
    check_quaternions("q", robot, rows)
    clearance = real_number("clearance", clearance)
    ground_height = real_number("ground_height", ground_height)
    if ground is None or isinstance(ground, bool):  # as in simulate: True is the ground of default values
        ground = Ground(height=ground_height)
    if not isinstance(ground, Ground):
        raise WrongType("ground", ground, "rk.Ground(...), True or None")
    z = np.full(len(rows), ground.height + clearance)
    if touching_shapes(robot, ground):
        z = lowered(robot, rows, ground, clearance)
    if np.isnan(z).any():
        raise ShapeError("ground: nothing is under the robot; put it over a solid, or add the plane")
    return z if np.ndim(q) == 2 else float(z[0])


def standing_configuration(
    robot: Robot,
    height: float = 0.0,
    tilt: float | Sequence[float] = 0.0,
    seed: int | None = None,
    q: Any = None,
    ground_height: float = 0.0,
    ground: Ground | bool | None = None,
    self_collision: CollisionPairs | bool | None = None,
) -> np.ndarray:
    """A configuration of a robot standing on or above the ground, with its loops closed.

    Its bodies do not overlap: if the random change of ``seed``, or limits that exclude the neutral
    configuration, make some overlap, the joints between them are moved until they are apart. A ``q`` without
    a seed keeps its joints.

    Args:
        robot: a robot with a floating base.
        height: gap between the ground and the lowest point of the robot [m].
        tilt: angle by which the robot leans forward, about its y axis [rad], or a unit quaternion wxyz that
            turns the whole robot.
        seed: seed of a small random change of joints and tilt, so that falls differ; None for no change.
        q: configuration to start from, (nq,); neutral by default.
        ground_height: height of a horizontal ground in the world [m].
        ground: instead of a height: the ground, as in :func:`standing_height`.
        self_collision: pairs of bodies that can collide, as in :func:`robokit.simulate`.

    Returns:
        q, (nq,).

    Raises:
        WrongType: robot is not a Robot.
        ShapeError: a fixed base, another argument of the wrong shape or content, or loops that cannot be
            closed from q.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        >>> q = rk.standing_configuration(robot, height=0.02, tilt=0.07)
        >>> q.shape
        (38,)
    """
    own = q is None or seed is not None
    _check_stands(robot)
    q = numbers("q", robot.neutral() if q is None else q, robot.nq, robot)
    check_quaternions("q", robot, q)
    height, turn = real_number("height", height), real_array("tilt", tilt, "() or (4,)")
    if turn.shape == ():
        s, c = sine_and_cosine(0.5 * real_number("tilt", float(turn)))
        turn = np.array([c, 0.0, s, 0.0])
    elif turn.shape != (4,) or not abs(float(turn @ turn) - 1.0) <= UNIT_QUATERNION_TOLERANCE:
        raise ShapeError(f"tilt: expected an angle [rad] or a unit quaternion wxyz, got {tilt!r}")
    dv = np.zeros(robot.nv)
    if seed is not None:
        dv = random_generator("seed", seed).normal(0.0, SHAKE, robot.nv)
        dv[3:6] = 0.0
    q = robot.integrate(q, dv)
    for joint in _single(robot):
        k = joint.q_slice.start
        q[k] = min(max(q[k], joint.lower), joint.upper)
    q = closed(robot, q, "q")
    # In the neutral configuration no pairs overlap.
    if own and not np.array_equal(q, robot.neutral()):
        q = moved_apart(robot, body_contacts(robot, self_collision, True).runs, q)
    q[:4] = quat_multiply(turn.tolist(), q[:4].tolist())
    q[:4] /= np.linalg.norm(q[:4])
    q[6] = standing_height(robot, q, height, ground_height, ground)
    return q


def _check_stands(robot: Any) -> None:
    """Raise an error for what is not one robot with a floating base."""
    check_robot(robot)
    if robot.base != "floating":
        if any(joint.kind == "floating" for joint in robot.joints):
            raise ShapeError(
                f"robot {robot.name!r} is a world of robots, each with a base of its own; let each stand "
                "alone, and give their q one after the other: "
                "np.concatenate([rk.standing_configuration(a), rk.standing_configuration(b)])"
            )
        raise ShapeError(
            f"robot {robot.name!r} has a fixed base and cannot stand; load it with base='floating'"
        )


# ---- bodies moved apart ------------------------------------------------------------------------------------

STANDING_ROUNDS = 30  # at most: each takes overlaps as linear in the joints; most starts need two to four
DECIMALS = 6  # of the change of a coordinate [rad | m]: the last bits of distances differ between processors
SLIGHT = 1e-4  # change of a coordinate that tells the slope of a distance [rad | m]
CLEAR = 1e-3  # distance to which bodies that overlap are moved apart [m]


def moved_apart(robot: Robot, bodies: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The configuration q, (nq,), with joints moved that keep pairs of bodies, runs (n, 3), from overlapping.

    One overlap after the other is undone by the least change of the joints with one coordinate that lie
    between its bodies, inside their limits (Kaczmarz), until none is left. Loops stay closed. Where nothing
    overlaps q is returned as it is; where no way out is found overlaps are left.
    """
    if not len(bodies):
        return q
    detector = Detector(scene(robot, None, bodies).arrays, robot.nbodies + 1)
    lower, upper = np.full(robot.nq, -np.inf), np.full(robot.nq, np.inf)  # of every coordinate
    for joint in _single(robot):
        lower[joint.q_slice], upper[joint.q_slice] = joint.lower, joint.upper
    lower, upper = np.minimum(lower, q), np.maximum(upper, q)
    for _ in range(STANDING_ROUNDS):
        R, p = body_poses(robot, q[None])
        found = detector.at(R[0], p[0])
        if not (found["contact_gap"] < 0.0).any():
            break
        q = _one_round(robot, q, found, lower, upper)
    return q


def _one_round(
    robot: Robot, q: np.ndarray, found: Arrays, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """q after one correction of every overlap, the deepest first."""
    gaps, change = found["contact_gap"], np.zeros(robot.nq)
    moving = [joint.q_slice.start for joint in _single(robot)]
    rows = np.repeat(q[None], 1 + len(moving), axis=0)
    rows[1 + np.arange(len(moving)), moving] += SLIGHT
    R, p = body_poses(robot, rows)
    deepest: dict[int, int] = {}
    for k in np.argsort(gaps, kind="stable").tolist():
        if gaps[k] < 0.0:
            deepest.setdefault(int(found["contact_pair"][k]), k)
    for k in deepest.values():
        a, b = found["contact_bodies"][k].tolist()
        place, n = found["contact_place"][k], found["contact_frame"][k, 6:]
        apart = _moved(R[:, b], p[:, b], place) - _moved(R[:, a], p[:, a], place)
        slope = np.zeros(robot.nq)
        slope[moving] = ((apart[1:] - apart[0]) @ n) / SLIGHT
        # A joint at its limit cannot help.
        slope[((q + change >= upper) & (slope > 0.0)) | ((q + change <= lower) & (slope < 0.0))] = 0.0
        steep = float(slope @ slope)
        wanted = CLEAR - float(gaps[k]) - float(slope @ change)
        if steep > 0.0 and wanted > 0.0:
            change = np.clip(q + change + slope * (wanted / steep), lower, upper) - q
    moved = np.clip(q + np.round(change, DECIMALS), lower, upper)
    closed, open_ = closed_rows(robot, moved[None])
    return q if open_ else closed[0]


def _moved(R: np.ndarray, p: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Where a point of a body that is at a place in the first of its poses is in each, (B, 3)."""
    own = R[0].T @ (place - p[0])
    return R @ own + p
