"""A step of Levenberg and Marquardt towards the targets: what the kernels of this folder compute.

    minimise  E = 1/2 |W e(q)|^2 + 1/2 |w (q - rest)|^2   within the joints' limits

    (A^T A + D) d = -(A^T r + w^2 (q - rest)),   r = W e,  A = W J,  D = w^2 + alpha |r|^2
    q' = the limits' nearest point to q (+) d, taken where E falls

- The damping is alpha times the squared error: it vanishes with the error, so that the last steps are
  Newton's, and it is large far away and at targets out of reach. alpha follows the gain ratio.
- Joints that stand at a limit and are pushed into it are left out of the step.
- With fewer rows than joints the system is solved by rows, d = -D^-1 A^T (1 + A D^-1 A^T)^-1 ..., which is
  the same step at less work.

Source: H. B. Nielsen, "Damping parameter in Marquardt's method" (1999), for the gain ratio; T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method" (2011), and J. Fan, Y. Yuan
(2005), for damping by the error; D. Bertsekas (1982) for the joints at limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.center_of_mass_motion import center_of_mass_jacobian
from robokit.algorithms.coupling import reduced_force
from robokit.algorithms.pose_error import Frame, Target, pose_error, pose_error_columns
from robokit.model.robot import Robot
from robokit.spatial import Matrix3, Transform, Vector3
from robokit.spatial.linear import ldl, ldl_solve
from robokit.spatial.scalars import Scalar, clamp, is_zero, maximum, minimum, sqrt, where

LONGEST_STEP = 2.0
"""Longest step, norm over all joints [rad | m]: far from the target its linear picture is of no use."""

LEAST_DAMPING, MAX_DAMPING = 1e-12, 1e12
"""Where the error vanishes the system must stay regular; above the largest, no step will help any more."""

ALPHA, LEAST_ALPHA = 0.1, 1e-9
"""Damping over squared error: at first, and at least."""

LARGEST_SQUARED_ERROR = 1e4
"""Squared error from which damping and the least progress grow no further: no step would be left
[m^2 | rad^2]."""

CROSSINGS = 1
"""How often joints that a step would take past their limits are held there, and the others solved again."""

LEAST_PROGRESS = 1e-7
"""A step that lessens the squared error by a smaller part is the last one."""

RUNNING, REACHED, STALLED = 0.0, 1.0, 2.0
"""Status: not done yet; within tolerance of all targets; no better place nearby."""


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
    parts, new_parts = _parts(problem, counts, e), _parts(problem, counts, e_new)
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


def _parts(problem: Problem, counts: Scalars, e: Scalars) -> list[Scalar]:
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

STATE = 4
"""Numbers of the state before the errors: alpha, the factor of its next increase, status, steps taken."""


@dataclass(frozen=True)
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
