"""Time steps: methods as rows of a table, and the text of those for passive motion.

    name      order  sweeps  for
    contact     2       3    falls: contact, limits, damping and friction in implicit sweeps
    euler       2       2    the same without a ground
    midpoint    2       2    long passive motion at little cost
    rkmk4       4       4    passive motion, the default without a ground

midpoint and rkmk4 compute damping, friction and limits by an implicit solve at the start of the step and hold
these forces constant during it. However stiff they are, they cannot make the step unstable. rkmk4 integrates
on the joints' manifolds; the others drift along velocities (moving_axes.py).

All methods keep the momentum of a floating robot to rounding (momentum_projection.py).

Source: Runge-Kutta-Munthe-Kaas, H. Munthe-Kaas, "High order Runge-Kutta methods on manifolds" (1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from robokit.algorithms.aba import aba
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.errors import UnknownName
from robokit.model.tree import Tree
from robokit.sim.step.books import along, enter_joint_work, half_way, keep
from robokit.sim.step.carried import Carried
from robokit.sim.step.drift_kick_drift import drift_kick_drift
from robokit.sim.step.ledger import Ledger
from robokit.sim.step.moving_axes import Rows, advance, free_base
from robokit.sim.step.problem import Problem, Step
from robokit.sim.step.settle import settle
from robokit.spatial import Motion, Vector3
from robokit.spatial.scalars import Scalar


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
class Method:
    """A row of the table.

    Attributes:
        order: of the error in free motion.
        calls: articulated-body sweeps a step.
        step: one time step.
    """

    order: int
    calls: int
    step: Step


# ---- pieces ------------------------------------------------------------------------------------------


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


# ---- steps -------------------------------------------------------------------------------------------


def midpoint_step(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """Half a step of q, v by the acceleration at mid pose and mid velocity, the other half of q."""
    tree = p.tree
    rub, stops = held_forces(p, q, v, tau, dt, carried)
    total = along(along(tau, 1.0, rub), 1.0, stops)
    qm, vm = advance(tree, q, v, 0.5 * dt)
    middle = along(vm, 0.5 * dt, acceleration(tree, qm, vm, total))
    v1 = along(vm, dt, acceleration(tree, qm, middle, total))
    q1, v1_turned = advance(tree, qm, v1, 0.5 * dt)
    enter_joint_work(ledger, half_way(vm, v1, dt), tau, rub, stops)
    return keep(ledger, tree, q1, v1_turned, dt, carried)


def rkmk_step(
    tableau: Tableau, p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """q = q exp(theta), with theta and v by a Runge-Kutta method in the joints' Lie algebras."""
    tree = p.tree
    rub, stops = held_forces(p, q, v, tau, dt, carried)
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
    return keep(ledger, tree, q1, v1, dt, carried)


def held_forces(p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried) -> tuple[Rows, Rows]:
    """(damping and friction, stops) that an implicit first-order step would apply, by joint."""
    if not p.joints.active:
        zero = [[0.0] * len(row) for row in v]
        return zero, zero
    done = settle(replace(p, ground=None), q, v, tau, dt, carried)
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


def _rkmk4(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    return rkmk_step(RK4, p, q, v, tau, dt, ledger, carried)


METHODS: dict[str, Method] = {
    "contact": Method(2, 3, drift_kick_drift),
    "euler": Method(2, 2, drift_kick_drift),
    "midpoint": Method(2, 2, midpoint_step),
    "rkmk4": Method(RK4.order, 4, _rkmk4),
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
    if ground and METHODS[name].step is not drift_kick_drift:
        raise UnknownName("integrator with a ground", name, ["contact"], "(this one knows no contact)")
    return name, METHODS[name]
