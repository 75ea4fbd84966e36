"""Inverse kinematics: the targets as arrays, the search from one start or from random ones, the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.center_of_mass_motion import center_of_mass_jacobian
from robokit.algorithms.coupling import reduced_force
from robokit.algorithms.pose_error import Frame, Target, pose_error, pose_error_columns
from robokit.arguments import batch_size, check_finite, real_array
from robokit.conventions import LARGEST_ANGLE, UNIT_QUATERNION_TOLERANCE
from robokit.dataclass_tools import cached_attribute, frozen
from robokit.dynamics.build import angle_bounds, without_inertias
from robokit.dynamics.choices import link_frame
from robokit.dynamics.singular import check_mass
from robokit.engine import ENGINES, Kernel
from robokit.engine.batch_calls import RolloutRunner
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType, shown
from robokit.model.robot import Robot, check_robot, quaternion_offsets
from robokit.spatial import Matrix3, Transform, Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.rotation import quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, clamp, is_zero, maximum, minimum, sqrt, where

# ==== A step of Levenberg and Marquardt towards the targets: what the kernels of this folder compute ====
#     minimise  E = 1/2 |W e(q)|^2 + 1/2 |w (q - rest)|^2   within the joints' limits
#
#     (A^T A + D) d = -(A^T r + w^2 (q - rest)),   r = W e,  A = W J,  D = w^2 + alpha |r|^2
#     q' = the limits' nearest point to q (+) d, taken where E falls
#
# - The damping is alpha times the squared error: it vanishes with the error, so that the last steps are
#   Newton's, and it is large far away and at targets out of reach. alpha follows the gain ratio.
# - Joints that stand at a limit and are pushed into it are left out of the step.
# - With fewer rows than joints the system is solved by rows, d = -D^-1 A^T (1 + A D^-1 A^T)^-1 ..., which is
#   the same step at less work.
#
# Source: H. B. Nielsen, "Damping parameter in Marquardt's method" (1999), for the gain ratio; T. Sugihara,
# "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method" (2011), and J. Fan, Y. Yuan
# (2005), for damping by the error; D. Bertsekas (1982) for the joints at limits.


LONGEST_STEP = 2.0  # norm over all joints [rad | m]: the linear picture is of no use far from the target

LEAST_DAMPING, MAX_DAMPING = 1e-12, 1e12
"""Where the error vanishes the system must stay regular; above the largest, no step will help any more."""

ALPHA, LEAST_ALPHA = 0.1, 1e-9  # damping over squared error: at first, and at least

LARGEST_SQUARED_ERROR = 1e4
"""Squared error from which damping and the least progress grow no further: no step would be left
[m^2 | rad^2]."""

CROSSINGS = 1  # how often joints that pass their limits in a step are held there, and the others solved again
LEAST_PROGRESS = 1e-7  # a step that lessens the squared error by a smaller part is the last one
RUNNING, REACHED, STALLED = 0.0, 1.0, 2.0  # not done; within tolerance of all targets; no better place near


def step(
    problem: Problem,
    q: Scalars,
    state: Scalars,
    goals: Scalars,
    limits: Scalars,
    settings: Scalars,
    rest: Scalars = (),
) -> list[Scalars]:
    """q and state after a step; both stay what they are once the status is not RUNNING.

    Args:
        problem: what is asked.
        q: configuration, (nq,).
        state: alpha, factor, status, steps, then the error of each part [rad | m].
        goals: see :attr:`Problem.goal_size`.
        limits: lower, then upper bounds of the dofs.
        settings: tolerance [rad | m], flatness at which to stop; point in the link of each target; weights of
            all rows; whether each row counts as error, 1 or 0.
        rest: rest values, then weights of the dofs.
    """
    n, m, numbers = len(problem.dofs), sum(problem.rows), FlatInput(settings)
    tolerance, flat = numbers.take(2)
    targets = Targets(problem, goals, numbers)
    weight, counts = numbers.take(m), numbers.take(m)
    own = problem.coordinates
    alpha, factor, status, taken = state[:STATE]

    e, J = targets.errors(q), targets.jacobian(q)
    A = [[x * w for x in row] for row, w in zip(J, weight, strict=True)]
    r = _times(weight, e)
    away = [q[own[k]] - rest[i] if rest and k in own else 0.0 for i, k in enumerate(problem.dofs)]
    pull = [rest[n + i] * rest[n + i] if rest and k in own else 0.0 for i, k in enumerate(problem.dofs)]
    back = _times(pull, away)
    twice_E = _dot(r, r) + _dot(back, away)

    columns = [[row[k] for row in A] for k in range(n)]
    gradient = [_dot(column, r) + b for column, b in zip(columns, back, strict=True)]
    free = _free_dofs(problem, q, limits, gradient)
    gradient = _times(free, gradient)
    damping = alpha * minimum(twice_E, LARGEST_SQUARED_ERROR) + LEAST_DAMPING
    D = [w + damping for w in pull]
    d = _direction(A, r, back, D, free)
    for _ in range(CROSSINGS):
        d, free = _clamp_crossing(problem, q, d, limits, free)
        d = _direction(A, r, back, D, free, d)
    shorter = minimum(1.0, LONGEST_STEP / sqrt(_dot(d, d) + 1e-300))
    new, moved = _move(problem, q, [x * shorter for x in d], limits)

    e_new = targets.errors(new)
    r_new = _times(weight, e_new)
    away = [c + x for c, x in zip(away, moved, strict=True)]
    at_rest = _dot(pull, _times(away, away))
    twice_new = _dot(r_new, r_new) + at_rest
    expected = [x + _dot(row, moved) for x, row in zip(r, A, strict=True)]
    gain = (twice_E - twice_new) / maximum(twice_E - _dot(expected, expected) - at_rest, 1e-300)

    running, better = status == RUNNING, twice_new < twice_E
    parts, new_parts = _parts(counts, e), _parts(counts, e_new)
    go = running & better & _any_above(parts, tolerance)
    parts = [where(go, a, b) for a, b in zip(new_parts, parts, strict=True)]
    slow = better & (twice_E - twice_new <= LEAST_PROGRESS * minimum(twice_E, LARGEST_SQUARED_ERROR))
    stuck = slow | (_dot(gradient, gradient) <= flat * flat * twice_E) | (damping > MAX_DAMPING)
    ended = where(_any_above(parts, tolerance), where(stuck, STALLED, RUNNING), REACHED)

    u = 2.0 * gain - 1.0
    less = maximum(alpha * maximum(1.0 / 3.0, 1.0 - u * u * u), LEAST_ALPHA)
    more = minimum(alpha * factor, 1e30)
    return [
        [where(go, a, b) for a, b in zip(new, q, strict=True)],
        [
            where(running, where(better, less, more), alpha),
            where(running, where(better, 2.0, minimum(2.0 * factor, 1e10)), factor),
            where(running, ended, status),
            taken + where(running, 1.0, 0.0),
            *parts,
        ],
    ]


def _free_dofs(problem: Problem, q: Scalars, limits: Scalars, gradient: Scalars) -> list[Scalar]:
    """0 for a dof at a limit that the gradient pushes it into, else 1."""
    n, own = len(problem.dofs), problem.coordinates
    free: list[Scalar] = [1.0] * n
    for i, k in enumerate(problem.dofs):
        if k in own:
            x, g = q[own[k]], gradient[i]
            held = ((x <= limits[i]) & (g > 0.0)) | ((x >= limits[n + i]) & (g < 0.0))
            free[i] = where(held, 0.0, 1.0)
    return free


def _clamp_crossing(
    problem: Problem, q: Scalars, d: Scalars, limits: Scalars, free: Scalars
) -> tuple[list[Scalar], list[Scalar]]:
    """The part of d for dofs that would cross a limit, 0 for all others; and which dofs stay free."""
    n, own = len(problem.dofs), problem.coordinates
    part, free = [0.0] * n, list(free)
    for i, k in enumerate(problem.dofs):
        if k in own:
            low, high = limits[i] - q[own[k]], limits[n + i] - q[own[k]]
            crosses = (d[i] < low) | (d[i] > high)
            part[i] = where(crosses, clamp(d[i], low, high), 0.0)
            free[i] = where(crosses, 0.0, free[i])
    return part, free


def _direction(
    A: list[list[Scalar]], r: Scalars, back: Scalars, D: Scalars, free: Scalars, preset: Scalars = ()
) -> list[Scalar]:
    """d, by rows or by columns, whichever are fewer; what is not free goes as far as is given, or not."""
    m, n = len(A), len(D)
    if preset:
        r = [x + _dot(row, preset) for x, row in zip(r, A, strict=True)]
    if m <= n:
        inverse = [f / x for f, x in zip(free, D, strict=True)]
        scaled = [_times(row, inverse) for row in A]
        S = [[_dot(a, b) + float(i == j) for j, b in enumerate(A)] for i, a in enumerate(scaled)]
        y = ldl_solve(ldl(S), [x - _dot(row, back) for x, row in zip(r, scaled, strict=True)])
        d = [-(inverse[k] * (_dot([row[k] for row in A], y) + back[k])) for k in range(n)]
    else:
        columns = [[row[k] * free[k] for row in A] for k in range(n)]
        H = [[_dot(a, b) for b in columns] for a in columns]
        for k in range(n):
            H[k][k] = H[k][k] + D[k]
        slope = [_dot(column, r) + free[k] * back[k] for k, column in enumerate(columns)]
        d = [-x for x in ldl_solve(ldl(H), slope)]
    return [x + y for x, y in zip(d, preset, strict=True)] if preset else d


def _move(problem: Problem, q: Scalars, d: Scalars, limits: Scalars) -> tuple[list[Scalar], list[Scalar]]:
    """q moved along d and brought back to the limits; and the d that it went."""
    n, place = len(problem.dofs), {k: i for i, k in enumerate(problem.dofs)}
    new, moved = list(q), list(d)
    for joint in problem.robot.joints:
        i = place.get(joint.v_slice.start)
        if i is None or not joint.v_slice.stop > joint.v_slice.start:
            continue
        wide = joint.v_slice.stop - joint.v_slice.start
        x = problem.robot.tree.joint[joint.body].integrate(q[joint.q_slice], d[i : i + wide])
        if joint.v_slice.start in problem.coordinates:
            x = [clamp(x[0], limits[i], limits[n + i])]
            moved[i] = x[0] - q[joint.q_slice.start]
        new[joint.q_slice] = x
    return new, moved


def _parts(counts: Scalars, e: Scalars) -> list[Scalar]:
    """Length of each part of the error, of the rows that count."""
    return [sqrt(_dot(counts[k : k + 3], _times(e[k : k + 3], e[k : k + 3]))) for k in range(0, len(e), 3)]


def _any_above(parts: Scalars, tolerance: Scalar) -> Scalar:
    """Whether one of the parts exceeds its tolerance."""
    found = parts[0] > tolerance
    for part in parts[1:]:
        found = found | (part > tolerance)
    return found


def _dot(a: Scalars, b: Scalars) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(x) or is_zero(y)):
            total = total + x * y
    return total


def _times(a: Scalars, b: Scalars) -> list[Scalar]:
    return [0.0 if is_zero(x) or is_zero(y) else x * y for x, y in zip(a, b, strict=True)]


# ---- the problem: what is asked, its errors and their derivatives ------------------------------

Scalars = Sequence[Scalar]

STATE = 4  # numbers before the errors: alpha, the factor of its next increase, status, steps taken


@frozen
class Problem:
    """A problem of inverse kinematics without its numbers."""

    robot: Robot  # the robot
    frames: tuple[Frame, ...]  # of links with targets
    com: bool  # whether the centre of mass has a target
    rest: bool  # whether there is a rest configuration

    def __post_init__(self) -> None:
        tree, coupling = self.robot.tree, self.robot.coupling
        bodies = set(tree.outward()) if self.com else {j for f in self.frames for j in tree.support[f.body]}
        full = [k for j in sorted(bodies) for k in range(tree.v_slice[j].start, tree.v_slice[j].stop)]
        dofs = {k if coupling is None else coupling.v_from[k][0] for k in full}
        object.__setattr__(self, "bodies", tuple(sorted(bodies)))
        object.__setattr__(self, "dofs", tuple(sorted(dofs - {-1})))

    bodies: tuple[int, ...] = ()
    """Bodies that support the links, in ascending order."""
    dofs: tuple[int, ...] = ()
    """Degrees of freedom that move them: the others keep their values."""

    @property
    def rows(self) -> list[int]:
        """Numbers of error of each target, the centre of mass last."""
        return [6 if f.turned else 3 for f in self.frames] + [3] * self.com

    @property
    def parts(self) -> list[int]:
        """Number of parts with units of their own: 2 for a pose (angle, position), 1 for a point."""
        return [2 if f.turned else 1 for f in self.frames] + [1] * self.com

    @property
    def goal_size(self) -> int:
        """Numbers that say where the targets are: R by rows and p, or p."""
        return sum(12 if f.turned else 3 for f in self.frames) + 3 * self.com

    @property
    def coordinates(self) -> dict[int, int]:
        """Place in q of each of the dofs whose joint has one plain coordinate: those with limits and rest."""
        return {
            joint.v_slice.start: joint.q_slice.start
            for joint in self.robot.joints
            if joint.v_slice.start in self.dofs
            and joint.q_slice.stop == joint.q_slice.start + 1
            and joint.v_slice.stop == joint.v_slice.start + 1
        }

    def sizes(self) -> list[tuple[str, int]]:
        """(name, length) of each input of :func:`step`."""
        n, m = len(self.dofs), sum(self.rows)
        return [
            ("q", self.robot.nq),
            ("state", STATE + sum(self.parts)),
            ("goals", self.goal_size),
            ("limits", 2 * n),
            ("settings", 2 + 2 * m + 3 * len(self.frames)),
            *([("rest", 2 * n)] if self.rest else []),
        ]


class FlatInput:
    """Hands out a flat input piece by piece."""

    def __init__(self, flat: Scalars) -> None:
        self.flat, self.at = flat, 0

    def take(self, n: int) -> Scalars:
        """The next n numbers."""
        self.at += n
        return self.flat[self.at - n : self.at]


class Targets:
    """Errors and their derivatives for the numbers of one call."""

    def __init__(self, problem: Problem, goals: Scalars, settings: FlatInput) -> None:
        self.problem = problem
        numbers = FlatInput(goals)
        self.targets = []
        for frame in problem.frames:
            R = None
            if frame.turned:
                nine = numbers.take(9)
                R = Matrix3((nine[0:3], nine[3:6], nine[6:9]))
            p = Vector3(*numbers.take(3))
            self.targets.append(Target(Vector3(*settings.take(3)), p, R))
        self.com = Vector3(*numbers.take(3)) if problem.com else None

    def at(self, q: Scalars) -> tuple[list[Sequence[Scalar]], dict[int, Transform]]:
        """q by body, and ^iX_0 of the bodies that matter."""
        tree = self.problem.robot.tree
        by_body = self.problem.robot.split_q(q)
        X0 = {0: Transform.identity()}
        for j in self.problem.bodies:
            X0[j] = tree.X(j, by_body[j]) @ X0[tree.parent[j]]
        return by_body, X0

    def errors(self, q: Scalars) -> list[Scalar]:
        """e of all targets."""
        by_body, X0 = self.at(q)
        e: list[Scalar] = []
        for frame, target in zip(self.problem.frames, self.targets, strict=True):
            e += pose_error(frame, target, X0)
        if self.com is not None:
            e += list(center_of_mass(self.problem.robot.tree, by_body) - self.com)
        return e

    def jacobian(self, q: Scalars) -> list[list[Scalar]]:
        """J by rows, a column for each of the problem's dofs."""
        tree = self.problem.robot.tree
        by_body, X0 = self.at(q)
        rows: list[list[Scalar]] = []
        for frame, target in zip(self.problem.frames, self.targets, strict=True):
            block = [[0.0] * tree.nv for _ in range(6 if frame.turned else 3)]
            for k, column in pose_error_columns(tree, frame, target, X0).items():
                for row, x in zip(block, column, strict=True):
                    row[k] = x
            rows += block
        if self.com is not None:
            rows += center_of_mass_jacobian(tree, by_body)
        rows = [reduced_force(tree, row) for row in rows]
        return [[row[k] for k in self.problem.dofs] for row in rows]


# ==== the search ==================================================================================


# ---- targets, read into the arrays of the kernel ------------------------------------------------

CENTER_OF_MASS = "center of mass"  # its name among the errors of a result, and among the weights
LARGEST_COORDINATE = 1e9  # largest coordinate of a target [m]

FORMS = (
    "a position (3,), a pose (R (3, 3), p (3,)) or (quat_wxyz (4,), p (3,)), or an array (4, 4), (3, 4) or "
    "(7,) [quat_wxyz, position]; each with a leading B for a batch"
)


@frozen
class TargetArrays:
    """Targets as arrays."""

    # (name, whether its orientation has a target too) of each, in the robot's order
    links: tuple[tuple[str, bool], ...]
    com: bool  # whether the centre of mass has one
    goals: np.ndarray  # (G,) or (B, G): R by rows and p, or p, of each link; p of the centre of mass
    points: list[float]  # the point of each link that is to be moved, in its frame [m], 3 numbers each
    weights: list[float]  # of all rows of the error, (m,)
    is_default: bool  # whether neither points nor weights are given

    @property
    def counts(self) -> list[float]:
        """1 for each row that counts as error, 0 for those of weight 0."""
        return [float(w > 0.0) for w in self.weights]

    @cached_attribute
    def parts(self) -> list[tuple[str, bool]]:
        """(target, whether it is an angle) of each part of the error."""
        found = []
        for link, turned in self.links:
            found += [(link, True)] * turned + [(link, False)]
        return found + [(CENTER_OF_MASS, False)] * self.com


def read_targets(robot: Robot, targets: Any, at: Any, weights: Any, com: Any) -> TargetArrays:
    """Check targets and make arrays of them; arguments and errors as of :func:`inverse_kinematics`."""
    targets = _mapping("targets", targets, f"link names to targets; a target is {FORMS}")
    points = _mapping("at", at, "link names to points")
    link_weights = _mapping("weights", weights, "link names to weights")
    for link in targets:
        robot.link(link)
    known = [*targets, *[CENTER_OF_MASS] * (com is not None)]
    for link in points:
        if link not in targets:
            raise UnknownName("target", link, targets, "(argument at)")
    for name in link_weights:
        if name not in known:
            raise UnknownName("target", name, known, "(argument weights)")
    if not known:
        raise ShapeError("targets: expected at least one, {link: target} or center_of_mass=(x, y, z)")
    links, names, goals = [], [], []
    places: list[float] = []
    rows: list[float] = []
    for link in sorted(targets, key=robot.link_index.__getitem__) if len(targets) > 1 else targets:
        name = f"targets[{link!r}]"
        R, p = _pose(name, targets[link])
        links.append((link, R is not None))
        if R is None:
            names.append(name)
            goals.append(p)
        else:
            names += (name, name)
            goals += (R, p)
        rows += _weights(link, link_weights.get(link), 3 if R is None else 6)
        places += _point(link, points.get(link))
    if com is not None:
        names.append("center_of_mass")
        goals.append(_position("center_of_mass", com))
        rows += _weights(CENTER_OF_MASS, link_weights.get(CENTER_OF_MASS), 3)
    count = batch_size(names, goals)
    if count is not None:
        goals = [np.broadcast_to(g, (count, g.shape[-1])) for g in goals]
    is_default = not (points or link_weights)
    return TargetArrays(
        tuple(links), com is not None, np.concatenate(goals, axis=-1), places, rows, is_default
    )


def _mapping(name: str, value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise WrongType(name, value, f"a mapping from {what}")
    return value


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not (np.abs(array) <= LARGEST_COORDINATE).all():  # NaN is not either
        check_finite(name, array)
        raise ShapeError(
            f"{name}: expected numbers of at most {LARGEST_COORDINATE:g}, got {np.abs(array).max():g}"
        )
    return array


def _position(name: str, value: Any) -> np.ndarray:
    p = real_array(name, value, "(3,) or (B, 3)")
    if p.ndim not in (1, 2) or p.shape[-1] != 3:
        raise ShapeError(f"{name}: expected a position (3,) or (B, 3) [m], got shape {p.shape}")
    return _finite(name, p)


def _point(link: str, value: Any) -> list[float]:
    if value is None:
        return [0.0, 0.0, 0.0]
    p = real_array(f"at[{link!r}]", value, "(3,)")
    if p.shape != (3,):
        raise ShapeError(f"at[{link!r}]: expected a point (3,) in the link's frame [m], got shape {p.shape}")
    return _finite(f"at[{link!r}]", p).tolist()


def _weights(name: str, value: Any, rows: int) -> list[float]:
    if value is None:
        return [1.0] * rows
    w = real_array(f"weights[{name!r}]", value, f"a number or ({rows},)")
    if w.shape not in ((), (rows,)) or not (np.isfinite(w).all() and (w >= 0.0).all()):
        kind = "[angular; linear] of a pose" if rows == 6 else "of a point"
        raise ShapeError(
            f"weights[{name!r}]: expected a number or ({rows},) {kind}, finite and >= 0, got {shown(value)}"
        )
    return np.broadcast_to(w, rows).tolist()


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        return ()


def _pose(name: str, value: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """(R by rows (..., 9), p (..., 3)); None for R where only a position is asked for."""
    if isinstance(value, tuple | list) and len(value) == 2 and _shape(value[1])[-1:] == (3,):
        shape = _shape(value[0])
        if shape[-2:] == (3, 3):
            return _rotation(name, real_array(name, value[0], FORMS)), _position(name, value[1])
        if shape[-1:] == (4,):
            return _of_quaternion(name, real_array(name, value[0], FORMS)), _position(name, value[1])
    array = real_array(name, value, FORMS)
    shape = array.shape
    if shape[-2:] in ((4, 4), (3, 4)) and array.ndim in (2, 3):
        if shape[-2] == 4 and np.abs(array[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > 1e-9:
            raise ShapeError(f"{name}: the last row of a pose (4, 4) must be (0, 0, 0, 1)")
        return _rotation(name, array[..., :3, :3]), _position(name, array[..., :3, 3])
    if shape[-1:] == (7,) and array.ndim in (1, 2):
        return _of_quaternion(name, array[..., :4]), _position(name, array[..., 4:])
    if shape[-1:] == (3,) and array.ndim in (1, 2):
        if shape == (3, 3) and _off_a_rotation(array.ravel()) <= ROTATION_TOLERANCE:
            raise ShapeError(
                f"{name}: expected {FORMS}; got a rotation matrix without a position: give (R, p), and a "
                "weight (1, 1, 1, 0, 0, 0) for the orientation alone; three positions that look like one, "
                "in two calls"
            )
        return None, _finite(name, array)
    raise ShapeError(f"{name}: expected {FORMS}; got shape {shape}")


ROTATION_TOLERANCE = 1e-6  # largest error of a rotation matrix that is accepted, in the products of its rows


def _off_a_rotation(nine: np.ndarray) -> float:
    """Largest error of the products of rows of (9,) or (B, 9) by rows, which is 0 for rotations."""
    single = nine.ndim == 1  # then Python's floats are quicker; and NumPy's own products of 3 x 3 are slow
    a, b, c, d, e, f, g, h, i = nine.tolist() if single else nine.T
    off = [a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, a * d + b * e + c * f]
    off += [b * f - c * e - g, c * d - a * f - h, a * e - b * d - i]
    if single:  # max() of Python's passes over NaN
        return max(map(abs, off)) if not math.isnan(sum(off)) else math.nan
    return float(np.abs(off).max(initial=0.0))


def _rotation(name: str, R: np.ndarray) -> np.ndarray:
    if R.ndim not in (2, 3):
        raise ShapeError(f"{name}: expected a rotation (3, 3) or (B, 3, 3), got shape {R.shape}")
    nine = R.reshape(*R.shape[:-2], 9)
    off = _off_a_rotation(nine)
    if not off <= ROTATION_TOLERANCE:  # NaN is not either
        raise ShapeError(
            f"{name}: expected a rotation matrix, R R^T = 1 and det R = 1, got one that is off by {off:.3g}"
        )
    return nine


def _of_quaternion(name: str, quat: np.ndarray) -> np.ndarray:
    if quat.ndim not in (1, 2):
        raise ShapeError(f"{name}: expected a quaternion (4,) or (B, 4), got shape {quat.shape}")
    norm = np.linalg.norm(quat, axis=-1)
    good = np.abs(norm**2 - 1.0) <= UNIT_QUATERNION_TOLERANCE
    if not good.all():
        got = f"{np.atleast_1d(norm)[~np.atleast_1d(good)][0]:.6g}"
        raise InvalidValue(
            f"{name}: expected a unit quaternion (quat_wxyz), got norm {got}; divide it by that", name
        )
    rows = quat_wxyz_to_rotation([quat[..., k] for k in range(4)]).rows
    return np.stack([x for row in rows for x in row], axis=-1)


STATIONARY_TOLERANCE = 1e-5  # gradient over error below which there is no better configuration nearby
POSTURE_TOLERANCE = 1e-3  # the same for the search with a posture, whose optimum targets alone decide

ROW_STEPS_BETWEEN_CHECKS, MAX_STEPS_BETWEEN_CHECKS = 2048, 8
"""Rows times steps between two looks at who is done, and at most so many steps: a look costs some 20 us."""

MAX_ROWS = 1 << 14  # starts that are tried together
STARTS_TOGETHER = 16  # random starts of one problem that are tried together


class Search:
    """A problem with its numbers, and the ways to run its kernel."""

    def __init__(
        self,
        robot: Robot,
        arrays: TargetArrays,
        limits: bool,
        tolerance: float,
        iterations: int,
        in_python: bool,
    ) -> None:
        self.robot, self.arrays, self.iterations, self.in_python = robot, arrays, iterations, in_python
        self.limits, self.solver = limits, solver(robot, arrays.links, arrays.com, False)
        self.bounds = self.solver.bounds[limits]
        defaults = self.solver.default_settings
        settings = defaults.get(tolerance) if arrays.is_default else None
        if settings is None:
            settings = np.array(
                [tolerance, STATIONARY_TOLERANCE, *arrays.points, *arrays.weights, *arrays.counts]
            )
            if arrays.is_default:
                defaults.clear()
                defaults[tolerance] = settings
        self.settings, self.state = settings, self.solver.state
        self.rest: tuple[Solver, np.ndarray, np.ndarray] | None = None

    def prefer(self, posture: np.ndarray, weight: Any) -> None:
        """Draw the joints to a posture."""
        if posture.ndim != 1:
            raise ShapeError(f"posture: expected shape ({self.robot.nq},), got {posture.shape}")
        w = check.real_array("posture_weight", weight, f"a number or ({self.robot.nv},)")
        if w.shape not in ((), (self.robot.nv,)) or not (np.isfinite(w).all() and (w >= 0.0).all()):
            raise ShapeError(
                f"posture_weight: expected a number or ({self.robot.nv},), all finite and >= 0, got {weight}"
            )
        dofs = list(self.solver.problem.dofs)
        values = np.zeros(len(dofs))
        values[self.solver.scalar_dofs] = posture[self.solver.scalar_places]
        rest = np.concatenate([values, np.broadcast_to(w, self.robot.nv)[dofs]])
        rough = self.settings.copy()
        rough[:2] = -1.0, POSTURE_TOLERANCE
        self.rest = solver(self.robot, self.arrays.links, self.arrays.com, True), rough, rest

    # -- from one start ---------------------------------------------------------------------------

    def run(self, q: np.ndarray, goals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q and state of one problem."""
        before = 0.0
        if self.rest is not None:
            first, rough, rest = self.rest
            q, state = self._loop(first, q, goals, rough, (rest,))
            before = state[3]
        q, state = self._loop(self.solver, q, goals, self.settings, ())
        state[3] += before
        return q, state

    def _loop(
        self, by: Solver, q: np.ndarray, goals: np.ndarray, settings: np.ndarray, rest: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        kernel, state, same = by.kernel, self.state, (goals, self.bounds, settings, *rest)
        step = kernel.python if self.in_python else kernel.fast
        for _ in range(self.iterations):
            found = step(q, state, *same)
            if found is None:  # arguments that the fast way does not take
                found = kernel(q, state, *same)
            elif state is self.state and not self.in_python:
                step = kernel.fast  # the kernel has existed since its first call
            q, state = found
            if state[2] != RUNNING:
                break
        return q, state

    def run_many(self, q: np.ndarray, goals: np.ndarray, group: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """q and state of each row, of its start and goals.

        ``group`` rows in turn are starts of one problem, which is done when one has arrived.
        """
        if self.rest is None:
            return self._loop_many(self.solver, q, goals, self.settings, (), group)
        first, rough, rest = self.rest
        q, before = self._loop_many(first, q, goals, rough, (rest,), group)
        q, state = self._loop_many(self.solver, q, goals, self.settings, (), group)
        state[:, 3] += before[:, 3]
        return q, state

    def _loop_many(
        self,
        by: Solver,
        q: np.ndarray,
        goals: np.ndarray,
        settings: np.ndarray,
        rest: tuple[np.ndarray, ...],
        group: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are done leave the batch when they are a quarter of it."""
        all_q, all_state = np.array(q), np.tile(self.state, (len(q), 1))
        rows, taken = np.arange(len(q)), 0
        now_q, now_state, now_goals = all_q.copy(), all_state.copy(), np.ascontiguousarray(goals)
        while len(rows) and taken < self.iterations:
            steps = min(
                max(1, ROW_STEPS_BETWEEN_CHECKS // len(rows)),
                MAX_STEPS_BETWEEN_CHECKS,
                self.iterations - taken,
            )
            self._advance(by, steps, now_q, now_state, now_goals, settings, *rest)
            taken += steps
            running = now_state[:, 2] == RUNNING
            if group > 1 and (arrived := rows[now_state[:, 2] == REACHED]).size:
                running &= ~np.isin(rows // group, arrived // group)
            if np.count_nonzero(running) <= 0.75 * len(rows):
                all_q[rows], all_state[rows] = now_q, now_state
                rows, now_q, now_state, now_goals = (x[running] for x in (rows, now_q, now_state, now_goals))
        all_q[rows], all_state[rows] = now_q, now_state
        return all_q, all_state

    def _advance(self, by: Solver, steps: int, q: np.ndarray, state: np.ndarray, *others: np.ndarray) -> None:
        """Take steps with all rows, in place."""
        goals, *same = others
        if self.in_python:
            for _ in range(steps):
                q[...], state[...] = by.kernel.python(q, state, goals, self.bounds, *same)
            return
        inputs = [x[None] for x in (q, state, goals)] + [x[None, None] for x in (self.bounds, *same)]
        if by.runner().roll(inputs, len(q), (0, steps), lambda *_: None)[1]:
            raise KeyboardInterrupt

    # -- from more of them ------------------------------------------------------------------------

    def retry(
        self,
        q: np.ndarray,
        state: np.ndarray,
        start: np.ndarray,
        goals: np.ndarray,
        starts: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Try random starts for the rows that have not reached their targets; write what is better.

        ``q``, ``state``, ``start`` and ``goals`` are of all rows, or of one for all; ``starts`` are tried,
        the first included. Returns how many were, (B,).
        """
        tried = np.ones(len(q), int)
        left = np.flatnonzero(state[:, 2] != REACHED)
        while len(left):
            several = min(STARTS_TOGETHER, starts - int(tried[left[0]]))
            if several <= 0:
                break
            drawn = self.solver.draw(several, rng)
            for part in np.array_split(left, -(-len(left) * several // MAX_ROWS)):
                first, wanted = (x[part if len(x) > 1 else part * 0] for x in (start, goals))
                first = self.solver.random(first, self.limits, drawn)
                found = self.run_many(first, np.repeat(wanted, several, axis=0), several)
                new_q, new_state = (x.reshape(len(part), several, -1) for x in found)
                met, error = new_state[..., 2] == REACHED, new_state[..., STATE:].max(axis=-1)
                best = np.where(met, new_state[..., 3] - 1e9, error).argmin(axis=1)
                each = np.arange(len(part)), best
                better = met[each] | (error[each] < state[part, STATE:].max(axis=1))
                q[part[better]], state[part[better]] = new_q[each][better], new_state[each][better]
            tried[left] += several
            left = left[state[left, 2] != REACHED]
        return tried


# ---- the kernel --------------------------------------------------------------------------------

Links = tuple[tuple[str, bool], ...]

NO_LIMIT = 1e9  # stands for no limit [rad | m]


class Solver:
    """A kernel, the problem whose step it computes, and what calls need to know of both.

    Attributes:
        problem: what is arrays of the robot.
        kernel: of its step.
        scalar_dofs: which of the problem's dofs have a joint of one coordinate.
        scalar_places: where these stand in q.
        bounds: by ``limits``, lower and upper bounds of the problem's dofs.
        largest: largest magnitude of each coordinate in a q that is accepted, (nq,).
        spherical: where q holds the quaternions of the spherical joints that matter.
        quaternions: where q holds unit quaternions.
        default_settings: tolerance -> settings of calls without points and weights; the last one.
        state: at the start.
    """

    def __init__(self, robot: Robot, links: Links, com: bool, rest: bool) -> None:
        if com:
            check_mass(robot)
        bare = robot if com else without_inertias(robot)
        frames = [Frame(*link_frame(robot, link), turned) for link, turned in links]
        self.problem = Problem(bare, tuple(frames), com, rest)
        own, dofs = self.problem.coordinates, self.problem.dofs
        self.scalar_dofs = np.array([i for i, k in enumerate(dofs) if k in own], int)
        self.scalar_places = np.array([own[k] for k in dofs if k in own], int)
        self.spherical = [j.q_slice for j in bare.joints if j.kind == "spherical" and j.v_slice.start in dofs]
        self.quaternions, bounds = quaternion_offsets(robot), angle_bounds(robot)
        self.largest = np.full(robot.nq, np.finfo(float).max)
        for k, most in bounds:
            self.largest[k] = most
        self._box = {limits: self._of_q(robot, limits) for limits in (True, False)}
        self.bounds = {limits: self._of_dofs(box) for limits, box in self._box.items()}
        fingerprint = robot.fingerprint if com else robot.fingerprint_without_inertias
        sizes = self.problem.sizes()
        self.kernel = Kernel(
            "inverse_kinematics",
            inputs=sizes,
            outputs=[("q", (robot.nq,)), ("state", (dict(sizes)["state"],))],
            function=lambda *flat: step(self.problem, *flat),
            key=fingerprint + repr((links, com, rest)).encode(),
            feedback={"q": "q", "state": "state"},
            quaternions=[(0, k) for k in self.quaternions],
            bounds=[(0, k, most) for k, most in bounds],
        )
        self._runner: RolloutRunner | None = None
        self.default_settings: dict[float, np.ndarray] = {}
        self.state = np.zeros(dict(sizes)["state"])
        self.state[:2] = ALPHA, 2.0

    def _of_q(self, robot: Robot, limits: bool) -> np.ndarray:
        """Bounds of all of q, (2, nq); the largest numbers where there is no limit."""
        box = np.repeat(np.finfo(float).max * np.array([[-1.0], [1.0]]), robot.nq, axis=1)
        for joint in robot.joints if limits else ():
            if joint.q_slice.stop == joint.q_slice.start + 1:
                box[:, joint.q_slice.start] = robot.position_range(joint)
        return box

    def _of_dofs(self, box: np.ndarray) -> np.ndarray:
        """Lower, then upper bounds of the problem's dofs."""
        bounds = np.repeat([[-NO_LIMIT], [NO_LIMIT]], len(self.problem.dofs), axis=1)
        bounds[:, self.scalar_dofs] = np.clip(box[:, self.scalar_places], -NO_LIMIT, NO_LIMIT)
        return bounds.ravel()

    def runner(self) -> RolloutRunner:
        """The kernel's runner for many rows."""
        if self._runner is None:
            self._runner = self.kernel.rollout_runner()
        return self._runner

    def configuration(self, name: str, values: Any) -> np.ndarray:
        """An argument (nq,) or (B, nq), checked; ShapeError if it is no configuration."""
        q = check.argument(name, values, self.problem.robot.nq)
        if self.quaternions or not (np.abs(q) <= self.largest).all():
            bounds = [(0, k, most) for k, most in enumerate(self.largest.tolist())]
            check.check_values([name], [q], [(0, k) for k in self.quaternions], bounds)
        return q

    def within(self, q: np.ndarray, limits: bool) -> np.ndarray:
        """A copy of q with the joints brought to their limits, those that move no target too."""
        low, high = self._box[limits]
        return np.minimum(np.maximum(q, low), high)

    def draw(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Numbers for random starts: (count, plain joints) in 0..1, and (count, 4) a spherical joint."""
        quats = [rng.standard_normal((count, 4)) for _ in self.spherical]
        fractions = rng.random((count, len(self.scalar_places)))
        return [fractions, *(quat / np.linalg.norm(quat, axis=1, keepdims=True) for quat in quats)]

    def random(self, q: np.ndarray, limits: bool, drawn: list[np.ndarray]) -> np.ndarray:
        """The drawn starts for each row of q, (B count, nq): joints that matter anywhere within their limits.

        Where a joint can turn further than twice around: within half a turn of where it is. A floating base
        stays. All rows take the same numbers, so that a row of a batch starts where it would alone.
        """
        rows, q = len(q), np.repeat(q, len(drawn[0]), axis=0)
        now = q[:, self.scalar_places]
        low, high = self.bounds[limits].reshape(2, -1)[:, self.scalar_dofs]
        narrow = high - low < 4.0 * np.pi
        low = np.where(narrow, low, np.maximum(low, now - np.pi))
        high = np.where(narrow, high, np.minimum(high, now + np.pi))
        q[:, self.scalar_places] = low + np.tile(drawn[0], (rows, 1)) * (high - low)
        for place, quat in zip(self.spherical, drawn[1:], strict=True):
            q[:, place] = np.tile(quat, (rows, 1))
        return q


def solver(robot: Robot, links: Links, com: bool, rest: bool) -> Solver:
    """The robot's solver for targets of these links, made at the first call.

    ``links`` are names, each with whether its orientation has a target too; ``com`` and ``rest`` whether
    there is a target of the centre of mass, and a rest configuration.
    """
    place: Any = ("inverse_kinematics", links, com, rest)
    found = robot.kernels.get(place)
    if found is None:
        found = robot.kernels.setdefault(place, Solver(robot, links, com, rest))
    return found


# ---- the public function ------------------------------------------------------------------------


def inverse_kinematics(
    robot: Robot,
    targets: Any,
    q0: Any = None,
    limits: bool = True,
    *,
    at: Any = None,
    weights: Any = None,
    center_of_mass: Any = None,
    posture: Any = None,
    posture_weight: Any = 0.1,
    starts: int = 20,
    seed: Any = 0,
    tolerance: float = 1e-6,
    iterations: int = 100,
    engine: str | None = None,
) -> InverseKinematicsResult:
    """A configuration that places points or frames of links at targets.

    Levenberg-Marquardt steps on the robot's manifold, damped by the error, for all rows of a batch at once.
    Joints that do not move any target keep their values in q0. A floating base is free to move; its joint has
    no limits. If a start leads to a local minimum, other starts follow. If none meets the targets, q is the
    nearest configuration that was found, and ``converged`` is False.

    Source: Nielsen 1999, Sugihara 2011 (the steps); RBDA sections 2.3, 4.1 (Jacobians).
    Cost: O(n) a step and the solution of the smaller of (rows of the error, joints) equations.

    Args:
        robot: the robot.
        targets: {link: target}: a position (3,) in the world [m]; or a pose: (R (3, 3), p (3,)),
            (quat_wxyz (4,), p (3,)), an array (4, 4) or (3, 4), or (7,) [quat_wxyz, position]. Each may be a
            batch with a leading B.
        q0: start, (nq,) or (B, nq). By default the neutral configuration, with joints whose limits exclude
            zero in the middle of their range. A joint of q0 outside its limits starts at the nearest limit.
        limits: whether to respect the joints' position limits, and those of the joints that follow them.
        at: {link: point (3,) in the link's frame [m]} that is to be at the target's position; the link's
            origin by default.
        weights: {link: number, or (3,) for a position in world axes, or (6,) for a pose, [angular; linear] in
            the target's axes}; 1 by default. An axis of weight 0 is free. The key "center of mass" is the
            weight of the target ``center_of_mass``.
        center_of_mass: target of the centre of mass in the world, (3,) or (B, 3) [m].
        posture: preferred configuration among those that meet the targets, (nq,): the weighted sum of all
            errors is minimised first, then that of the targets alone, starting from there. It does not apply
            to joints of several coordinates, such as a floating base.
        posture_weight: weight of a joint's distance from the posture, a number or (nv,).
        starts: number of starts: q0 and, if it fails, random ones within the limits until one succeeds. Use 1
            if q must stay near q0, as in a control loop that follows a moving target.
        seed: seed of the random starts, or a random generator of NumPy.
        tolerance: a target is met if its error is at most this large [m | rad].
        iterations: largest number of steps from each start.
        engine: as in :func:`rnea`.

    Returns:
        q, (nq,) or (B, nq), and the remaining errors.

    Raises:
        UnknownName: no such link.
        ShapeError: an argument of a wrong shape or content, or no target.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.
        WrongType: an argument of a wrong type.
        SingularInertia: a target of the centre of mass for a robot whose moving links have no mass.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("arm"))
        >>> hand = robot.link_names[-1]
        >>> found = rk.inverse_kinematics(robot, {hand: (0.4, 0.2, 0.5)})
        >>> found.converged
        True
        >>> rk.forward_kinematics(robot, found.q)[hand][1].round(3)
        array([0.4, 0.2, 0.5])
    """
    check_robot(robot)
    arrays = read_targets(robot, targets, at, weights, center_of_mass)
    if arrays.com and robot.samples is not None:
        raise ShapeError("center_of_mass: the robot has samples of inertias; take one with robot.sample(k)")
    if not isinstance(limits, bool):
        raise WrongType("limits", limits, "True or False")
    if engine is not None:
        check.one_of("engine", engine, ENGINES)
    starts = check.whole_number("starts", starts, 1)
    iterations = check.whole_number("iterations", iterations, 1)
    tolerance = check.real_number("tolerance", tolerance, above=0.0)
    if seed.__class__ is not int or seed < 0:
        seed = check.random_generator("seed", seed)
    search = Search(robot, arrays, limits, tolerance, iterations, engine == "python")
    start = search.solver.configuration("q0", default_start(robot, limits) if q0 is None else q0)
    start = search.solver.within(start, limits)
    count = check.batch_size(["q0", "targets"], [start, arrays.goals])
    if posture is not None:
        search.prefer(search.solver.configuration("posture", posture), posture_weight)
    if count is None:
        q, state = search.run(start, arrays.goals)
        if starts == 1 or state[2] == REACHED:
            return single_result(arrays, q, state, 1, tolerance)
        q, state = q[None], state[None]
    else:
        q, state = search.run_many(
            np.broadcast_to(start, (count, robot.nq)),
            np.broadcast_to(arrays.goals, (count, arrays.goals.shape[-1])),
        )
    rng = check.random_generator("seed", seed)
    tried = search.retry(q, state, np.atleast_2d(start), np.atleast_2d(arrays.goals), starts, rng)
    if count is None:
        return single_result(arrays, q[0], state[0], int(tried[0]), tolerance)
    return batch_result(arrays, q, state, tried, tolerance)


def default_start(robot: Robot, limits: bool) -> np.ndarray:
    """The neutral configuration, (nq,), with joints whose limits exclude zero in the middle of their range.

    Where such a range ends on one side only, at that end. ``limits``: whether limits count.
    """
    q = robot.neutral()
    for joint in robot.joints if limits else ():
        if joint.q_slice.stop == joint.q_slice.start + 1:
            low, high = robot.position_range(joint)
            if not low <= 0.0 <= high:
                bounded = max(abs(low), abs(high)) < LARGEST_ANGLE
                q[joint.q_slice] = 0.5 * (low + high) if bounded else min(max(0.0, low), high)
    return q


# ---- the result --------------------------------------------------------------------------------


@frozen(eq=False)
class InverseKinematicsResult:
    """Configurations, and their remaining errors.

    Attributes:
        q: configuration, (nq,) or (B, nq), within the limits.
        converged: whether all targets are met within the tolerance, bool or (B,).
        error: the largest of the errors below [m | rad], float or (B,).
        position_error: {target: distance [m]}, float or (B,) each; axes of weight 0 do not count.
        rotation_error: {link: angle [rad]} for targets with an orientation, float or (B,) each.
        iterations: number of iterations from the start that led to q, int or (B,).
        starts: number of starts that were tried, int or (B,).
        message: which target is not met and why; "" if all are met.
    """

    q: np.ndarray
    converged: Any
    error: Any
    position_error: dict[str, Any]
    rotation_error: dict[str, Any]
    iterations: Any
    starts: Any
    message: str

    def __repr__(self) -> str:
        if self.q.ndim == 1:
            met = "converged" if self.converged else "not converged"
            return f"<InverseKinematicsResult: {met}, error {self.error:.3g}, {self.iterations} iterations>"
        return f"<InverseKinematicsResult: {int(np.sum(self.converged))} of {len(self.q)} converged>"


def single_result(
    arrays: TargetArrays, q: np.ndarray, state: np.ndarray, tried: int, tolerance: float
) -> InverseKinematicsResult:
    """The result of one problem."""
    numbers = state.tolist()
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for (name, angle), x in zip(arrays.parts, numbers[STATE:], strict=True):
        errors[angle][name] = 4.0 * math.atan(x / 4.0) if angle else x
    largest = max((*errors[0].values(), *errors[1].values()))
    met = numbers[2] == REACHED
    message = "" if met else _missed(arrays, numbers, tried, tolerance)
    return InverseKinematicsResult(q, met, largest, *errors, int(numbers[3]), tried, message)


def batch_result(
    arrays: TargetArrays, q: np.ndarray, state: np.ndarray, tried: np.ndarray, tolerance: float
) -> InverseKinematicsResult:
    """The result of many problems."""
    errors: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    largest = np.zeros(len(q))
    for (name, angle), x in zip(arrays.parts, state.T[STATE:], strict=True):
        errors[angle][name] = 4.0 * np.arctan(x / 4.0) if angle else x.copy()
        largest = np.maximum(largest, errors[angle][name])
    met, message = state[:, 2] == REACHED, ""
    if not met.all():
        row, count = int(met.argmin()), int(np.count_nonzero(~met))
        missed = _missed(arrays, state[row].tolist(), int(tried[row]), tolerance)
        message = f"{count} of {len(q)} not met; row {row}: {missed}"
    return InverseKinematicsResult(q, met, largest, *errors, state[:, 3].astype(int), tried, message)


def _missed(arrays: TargetArrays, state: list[float], tried: int, tolerance: float) -> str:
    """Which targets were missed, by how much and why, after so many starts."""
    size, (name, angle) = max(zip(state[STATE:], arrays.parts, strict=True))
    left = f"{4.0 * math.atan(size / 4.0):.3g} rad" if angle else f"{size:.3g} m"
    why = "it was still improving: allow more iterations"
    if state[2] == STALLED:
        found = "nothing better is near" if tried == 1 else f"none of {tried} starts came nearer"
        why = f"{found}: it is out of reach, or more starts may find a way (starts={max(20, 5 * tried)})"
    return f"target of {name!r} missed by {left} (tolerance {tolerance:g}); {why}"
