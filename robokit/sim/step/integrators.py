"""Time steps: methods as rows of a table, and the text of each.

    name      order  ABA calls  for
    contact     1        1      falls: contact, limits, damping and friction in one implicit sweep
    euler       1        1      the same without a ground
    midpoint    2        2      long passive motion at little cost
    rkmk4       4        4      passive motion, the default without a ground
    energy_momentum  4   4      the same with its energy kept too

A floating base turns during a step. contact, euler and midpoint therefore keep its linear velocity in axes
that do not turn during the step; rkmk4 integrates on the joints' manifolds and does not need this.
midpoint and rkmk4 compute damping, friction and limits by an implicit solve at the start of the step and hold
these forces constant during it. However stiff they are, they cannot make the step unstable.

All methods keep the momentum of a floating robot to rounding (momentum_projection.py).

Source: Runge-Kutta-Munthe-Kaas, H. Munthe-Kaas, "High order Runge-Kutta methods on manifolds" (1999).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from robokit.algorithms.aba import aba
from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.errors import UnknownName
from robokit.model.tree import Tree
from robokit.sim.step.contact import BodyPoint, GroundLaw, Settled, body_velocities, settle
from robokit.sim.step.energy_momentum import conserve
from robokit.sim.step.joint_forces import JointLaw
from robokit.sim.step.ledger import Ledger
from robokit.sim.step.momentum_projection import at_base, centroidal_state, floats, keep_momentum
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.rotation import quat_exp, quat_wxyz_to_rotation
from robokit.spatial.scalars import Scalar, maximum, minimum, sqrt

Rows = list[Any]
"""Scalars by joint: one list for each body 0..N."""


@dataclass(frozen=True)
class Tableau:
    """Coefficients of an explicit Runge-Kutta method.

    Attributes:
        a: row s holds the weights of the stages before s.
        b: weights of the stages in the step.
        order: of the error per unit of time.
    """

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    order: int

    def __post_init__(self) -> None:
        c = [sum(row) for row in self.a]
        if abs(sum(self.b) - 1.0) > 1e-15:
            raise ValueError(f"the weights b must add up to 1, not {sum(self.b)}")
        if [len(row) for row in self.a] != list(range(len(self.b))):
            raise ValueError("an explicit method needs a strictly lower triangular a")
        if self.order >= 2 and abs(sum(b * t for b, t in zip(self.b, c, strict=True)) - 0.5) > 1e-15:
            raise ValueError("a method of order 2 or more needs sum b c = 1/2")


RK4 = Tableau(a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6), order=4)


@dataclass(frozen=True)
class Problem:
    """What a step needs besides the state: the robot, its joint forces, its contact points and the ground."""

    tree: Tree
    joints: JointLaw
    points: Sequence[Sequence[BodyPoint]] = ()
    ground: GroundLaw | None = None
    iterations: int = 2


Step = Callable[[Problem, Rows, Rows, Rows, Scalar, Ledger], tuple[Rows, Rows]]


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        order: of the error in free motion.
        calls: articulated-body sweeps a step.
        step: (problem, q, v, tau, dt, ledger) -> (q, v), all by joint.
    """

    order: int
    calls: int
    step: Step


# ---- pieces ------------------------------------------------------------------------------------------


def free_base(tree: Tree, i: int) -> bool:
    """Whether joint i is the free joint between world and base."""
    joint = tree.joint[i]
    return tree.parent[i] == 0 and joint is not None and joint.kind.name == "floating"


def dynamics(tree: Tree, q: Rows, v: Rows, tau: Rows) -> Rows:
    """ABA, or for coupled joints the solve with H_r, by joint."""
    return (aba if tree.coupling is None else coupled_forward_dynamics)(tree, q, v, tau)


def acceleration(tree: Tree, q: Rows, v: Rows, tau: Rows) -> Rows:
    """ABA, with the base's linear acceleration as seen from axes that do not turn."""
    a = [list(row) for row in dynamics(tree, q, v, tau)]
    for i in tree.outward():
        if free_base(tree, i):
            turning = Vector3(*v[i][:3]).cross(Vector3(*v[i][3:]))
            a[i] = [*a[i][:3], *(x + y for x, y in zip(a[i][3:], turning, strict=True))]
    return a


def advance(tree: Tree, q: Rows, v: Rows, dt: Scalar) -> tuple[Rows, Rows]:
    """q moved along v for dt, and v seen from the base's new axes."""
    q1: Rows = [[]]
    v1: Rows = [[]]
    for i in tree.outward():
        joint = tree.joint[i]
        assert joint is not None
        step = [s * dt for s in v[i]]
        if free_base(tree, i):
            shift = quat_wxyz_to_rotation(q[i][:4]) @ Vector3(*step[3:])
            turned = joint.integrate(q[i], [*step[:3], 0.0, 0.0, 0.0])
            q1.append([*turned[:4], *(x + y for x, y in zip(q[i][4:], shift, strict=True))])
            E = quat_wxyz_to_rotation(quat_exp(Vector3(*step[:3])))
            v1.append([*v[i][:3], *E.transpose_apply(Vector3(*v[i][3:]))])
        else:
            q1.append(joint.integrate(q[i], step))
            v1.append(list(v[i]))
    return q1, v1


def along(x: Rows, s: Scalar, y: Rows) -> Rows:
    """x + s y."""
    return [[a + s * b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]


def power(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """x . y."""
    return sum((a * b for a, b in zip(x, y, strict=True)), 0.0)


# ---- steps -------------------------------------------------------------------------------------------


def implicit_step(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger) -> tuple[Rows, Rows]:
    """v* by the ABA, the sweep for everything stiff, then q along the new velocity."""
    tree = p.tree
    X = tree.transforms(q)
    v_star = along(v, dt, acceleration(tree, q, v, tau))
    done = settle(tree, X, q, v, v_star, dt, p.joints, p.points, p.ground, p.iterations)
    theta = [[0.5 * dt * (a + b) for a, b in zip(x, y, strict=True)] for x, y in zip(v, done.y, strict=True)]
    enter_joint_work(ledger, theta, tau, *(list(rows) for rows in zip(*done.joint_force, strict=True)))
    impulse = enter_contacts(ledger, tree, X, done, body_velocities(tree, X, v))
    return keep(ledger, tree, q, v, *advance(tree, q, done.y, dt), dt, impulse)


def midpoint_step(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger) -> tuple[Rows, Rows]:
    """Half a step of q, v by the acceleration at mid pose and mid velocity, the other half of q.

    The mid velocity lies a little beyond the middle: see :func:`beyond_the_middle`.
    """
    tree = p.tree
    rub, stops = held_forces(p, q, v, tau, dt)
    total = along(along(tau, 1.0, rub), 1.0, stops)
    qm, vm = advance(tree, q, v, 0.5 * dt)
    share = beyond_the_middle(tree, qm, vm, dt)
    middle = along(vm, share * dt, acceleration(tree, qm, vm, total))
    v1 = along(vm, dt, acceleration(tree, qm, middle, total))
    q1, v1_turned = advance(tree, qm, v1, 0.5 * dt)
    theta = [[0.5 * dt * (a + b) for a, b in zip(x, y, strict=True)] for x, y in zip(vm, v1, strict=True)]
    enter_joint_work(ledger, theta, tau, rub, stops)
    return keep(ledger, tree, q, v, q1, v1_turned, dt)


def beyond_the_middle(tree: Tree, q: Rows, v: Rows, dt: Scalar) -> Scalar:
    """Part of a step after which midpoint takes its mid velocity: 1/2 + (omega dt)^2, at most 1.

    With exactly 1/2 a nutation of frequency w grows by (w dt)^4 / 8 of itself a step. w is at most twice the
    angular velocity omega of the fastest body, so that the addition outweighs this up to omega dt = 0.45.
    It is of second order and leaves the order of the step as it is.
    """
    V = body_velocities(tree, tree.transforms(q), v)
    fastest: Scalar = 0.0
    for i in tree.outward():
        fastest = maximum(fastest, V[i].ang.dot(V[i].ang))
    return minimum(0.5 + dt * dt * fastest, 1.0)


def rkmk_step(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger) -> tuple[Rows, Rows]:
    """The Runge-Kutta-Munthe-Kaas method of order 4, and the momentum of its start."""
    q1, v1, _ = rkmk(RK4, p, q, v, tau, dt, ledger)
    return keep(ledger, p.tree, q, v, q1, v1, dt)


def energy_momentum_step(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger
) -> tuple[Rows, Rows]:
    """The same with the energy of its start too (energy_momentum.py)."""
    q1, v1, work = rkmk(RK4, p, q, v, tau, dt, ledger)
    return conserve(p.tree, q, v, q1, v1, dt, work, ledger)


def rkmk(
    tableau: Tableau, p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger
) -> tuple[Rows, Rows, list[Scalar]]:
    """q = q exp(theta), with theta and v by a Runge-Kutta method in the joints' Lie algebras.

    Returns:
        the state by joint after the step, and the work of the joints' forces by joint [J].
    """
    tree = p.tree
    rub, stops = held_forces(p, q, v, tau, dt)
    total = along(along(tau, 1.0, rub), 1.0, stops)
    rates: list[Rows] = []
    accelerations: list[Rows] = []
    for row in tableau.a:
        theta, vs = _sum(dt, row, rates, v, zero=True), _sum(dt, row, accelerations, v)
        qs = [
            tree.joint[i].integrate(q[i], theta[i]) if i and rates else q[i]  # type: ignore[union-attr]
            for i in range(tree.n + 1)
        ]
        accelerations.append([list(a) for a in dynamics(tree, qs, vs, total)])
        rates.append([dexpinv(tree, i, theta[i], vs[i]) for i in range(tree.n + 1)])
    theta, v1 = _sum(dt, tableau.b, rates, v, zero=True), _sum(dt, tableau.b, accelerations, v)
    q1 = [[], *(tree.joint[i].integrate(q[i], theta[i]) for i in tree.outward())]  # type: ignore[union-attr]
    enter_joint_work(ledger, theta, tau, rub, stops)
    return q1, v1, [power(f, s) for f, s in zip(total, theta, strict=True)]


def held_forces(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar) -> tuple[Rows, Rows]:
    """(damping and friction, stops) that an implicit first-order step would apply, by joint."""
    if not p.joints.active:
        zero = [[0.0] * len(row) for row in v]
        return zero, zero
    tree = p.tree
    v_star = along(v, dt, acceleration(tree, q, v, tau))
    done = settle(tree, tree.transforms(q), q, v, v_star, dt, p.joints, (), None, p.iterations)
    return [rub for rub, _ in done.joint_force], [stops for _, stops in done.joint_force]


def _sum(dt: Scalar, weights: Sequence[float], stages: list[Rows], v: Rows, zero: bool = False) -> Rows:
    total = [[0.0] * len(row) for row in v] if zero else v
    for w, stage in zip(weights, stages, strict=True):
        if w:
            total = along(total, dt * w, stage)
    return total


def dexpinv(tree: Tree, i: int, theta: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """Rate of theta for the body velocity v: v + [theta, v]/2 + [theta, [theta, v]]/12, to order 4."""
    if len(v) < 2:
        return list(v)
    first = _bracket(tree, i, theta, v)
    second = _bracket(tree, i, theta, first)
    return [a + 0.5 * b + c / 12.0 for a, b, c in zip(v, first, second, strict=True)]


def _bracket(tree: Tree, i: int, x: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
    """S^T (S x X S y): every joint's S spans a subalgebra and has orthonormal columns."""
    S = tree.joint[i].S  # type: ignore[union-attr]
    m: Motion = (S * x).cross(S * y)
    return [c.ang.dot(m.ang) + c.lin.dot(m.lin) for c in S.columns]


def keep(
    ledger: Ledger, tree: Tree, q: Rows, v: Rows, q1: Rows, v1: Rows, dt: Scalar, impulse: Force | None = None
) -> tuple[Rows, Rows]:
    """The state after a step from (q, v), its momentum changed by gravity and the ground only."""
    if not floats(tree):
        return q1, v1
    X, X1 = tree.transforms(q), tree.transforms(q1)
    h, I, _ = centroidal_state(tree, at_base(tree, X), body_velocities(tree, X, v))
    wanted = h if impulse is None else h + impulse
    wanted = Force(wanted.ang, wanted.lin - tree.a0 * (I.m * dt))
    kept, missing = keep_momentum(tree, wanted, v1, X1, body_velocities(tree, X1, v1))
    ledger.add("corrected_k", sqrt(missing.ang.dot(missing.ang)))
    ledger.add("corrected_l", sqrt(missing.lin.dot(missing.lin)))
    return q1, kept


def enter_joint_work(ledger: Ledger, theta: Rows, tau: Rows, rub: Rows, stops: Rows) -> None:
    """Enter the work of constant joint forces over the displacement theta into the ledger."""
    for name, sign, forces in (("work", 1.0, tau), ("friction", -1.0, rub), ("stops", -1.0, stops)):
        ledger.add(name, sign * sum((power(f, s) for f, s in zip(forces, theta, strict=True)), 0.0))


def enter_contacts(ledger: Ledger, tree: Tree, X: list[Any], done: Settled, V: list[Motion]) -> Force | None:
    """Enter what the ground does: the energy it takes, its impulse, the deepest point and the residual.

    The change of 1/2 v^T H v is the force times the mean of the velocities before and after: exact.
    """
    if not done.contacts:
        return None
    total = [Force.zero() for _ in X]
    taken: Scalar = 0.0
    for body in done.contacts:
        f = done.impulse[body.i]
        assert f is not None
        taken = taken + (V[body.i] + done.V[body.i]).dot(f)
        total[body.i] = total[body.i] + f
        for phi in body.phi:
            ledger.largest("depth", -phi)
    ledger.add("contact", -0.5 * taken)
    here = at_base(tree, X) if floats(tree) else X
    for i in tree.inward():
        total[tree.parent[i]] = total[tree.parent[i]] + here[i].T @ total[i]
    m, h = composite_moment(tree, here)
    impulse = about(total[0], h * (1.0 / m))
    ledger.add_impulse(impulse)
    ledger.largest("residual", done.residual)
    ledger.add("residual_sum", done.residual)
    return impulse


METHODS: dict[str, Method] = {
    "contact": Method(1, 1, implicit_step),
    "euler": Method(1, 1, implicit_step),
    "midpoint": Method(2, 2, midpoint_step),
    "rkmk4": Method(RK4.order, 4, rkmk_step),
    "energy_momentum": Method(RK4.order, 4, energy_momentum_step),
}


def method(name: str | None, ground: bool) -> tuple[str, Method]:
    """The method of that name; None takes "contact" with a ground and "rkmk4" without.

    Raises:
        UnknownName: no such method, or one that knows no contact together with a ground.
    """
    if name is None:
        name = "contact" if ground else "rkmk4"
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownName("integrator", name, METHODS)
    if ground and METHODS[name].step is not implicit_step:
        raise UnknownName("integrator with a ground", name, ["contact"], "(this one knows no contact)")
    return name, METHODS[name]
