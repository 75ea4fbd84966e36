"""Time steps: methods as rows of a table, and the text of those for passive motion.

    name             order  for
    contact            2    falls: all forces as one problem (contact/step.py)
    midpoint           2    long passive motion at little cost
    rkmk4              4    passive motion, the default without a ground
    energy_momentum    4    the same; its energy is kept, too (energy_momentum.py)

"euler" is an old name of "contact".

midpoint, rkmk4 and energy_momentum compute damping, friction and limits by an implicit solve at the start of
the step and hold these forces constant during it. However stiff they are, they cannot make the step unstable.
rkmk4 and energy_momentum integrate on the joints' manifolds; midpoint drifts along velocities
(moving_axes.py).

All methods keep the momentum of a floating robot to rounding (momentum_projection.py).

Source: Runge-Kutta-Munthe-Kaas, H. Munthe-Kaas, "High order Runge-Kutta methods on manifolds" (1999).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.algorithms.aba import aba
from robokit.algorithms.coupling import coupled_forward_dynamics
from robokit.algorithms.loop_dynamics import LoopSystem, loop_dynamics
from robokit.errors import UnknownName
from robokit.model.tree import Tree
from robokit.sim.joints.loop_impulses import project
from robokit.sim.joints.step_inputs import BodyForces, as_list
from robokit.sim.joints.step_inputs import power as power_outside
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.ledger import Carried, Ledger
from robokit.sim.motion.momentum_projection import at_base, floats, keep_momentum
from robokit.sim.motion.moving_axes import Rows, advance, free_base
from robokit.sim.step.energy_momentum import conserve
from robokit.sim.step.held_forces import Problem, Step, held_forces
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.scalars import Scalar, added, maximum, minimum, sqrt


def along(x: Rows, s: Scalar, y: Rows) -> Rows:
    """x + s y."""
    return [[a + s * b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]


def half_way(v: Rows, y: Rows, dt: Scalar) -> Rows:
    """The displacement dt (v + y) / 2, over which constant forces that change v to y do their work."""
    return [[0.5 * dt * (a + b) for a, b in zip(x, z, strict=True)] for x, z in zip(v, y, strict=True)]


def power(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """x . y."""
    return added((a * b for a, b in zip(x, y, strict=True)), 0.0)


def enter_joint_work(ledger: Ledger, theta: Rows, tau: Rows, rub: Rows, stops: Rows) -> None:
    """Enter the work of constant joint forces over the displacement theta into the ledger."""
    for name, sign, forces in (("work", 1.0, tau), ("friction", -1.0, rub), ("stops", -1.0, stops)):
        ledger.add(name, sign * added((power(f, s) for f, s in zip(forces, theta, strict=True)), 0.0))


def seen(tree: Tree, X: Sequence[Any]) -> list[Any]:
    """The transforms from world axes at the base of a robot that floats; else from the world."""
    return at_base(tree, X) if floats(tree) else list(X)


def sum_of(a: Force | None, b: Force | None) -> Force | None:
    """The sum of what there is."""
    return b if a is None else a if b is None else a + b


def keep(
    ledger: Ledger, tree: Tree, q: Rows, v: Rows, dt: Scalar, carried: Carried, impulse: Force | None = None
) -> tuple[Rows, Rows]:
    """The state (q, v) after a step, its momentum changed by gravity and the impulse from outside only."""
    if carried.momentum is None:
        return q, v
    wanted = carried.momentum if impulse is None else carried.momentum + impulse
    mass = added((tree.I[i].m for i in tree.outward()), 0.0)
    wanted = Force(wanted.ang, wanted.lin - tree.a0 * (mass * dt))
    X = tree.transforms(q)
    kept, missing = keep_momentum(tree, wanted, v, X, body_velocities(tree, X, v))
    carried.momentum = wanted
    ledger.add("corrected_k", sqrt(missing.ang.dot(missing.ang)))
    ledger.add("corrected_l", sqrt(missing.lin.dot(missing.lin)))
    return q, kept


# ---- methods ----------------------------------------------------------------------------------------------


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
        step: one time step; None of the step that knows contact (contact/step.py).
        keeps_energy: whether the energy of the start is handed on from step to step.
    """

    order: int
    step: Step | None
    keeps_energy: bool = False

    @property
    def contact(self) -> bool:
        """Whether it knows contact."""
        return self.step is None


# ---- pieces ------------------------------------------------------------------------------------------


class Dynamics:
    """Accelerations by the ABA; for coupled joints by a solve with H_r, for loop joints with their forces.

    Attributes:
        loops: of the last call, or None.
    """

    def __init__(self, p: Problem) -> None:
        self.tree, self.law = p.tree, p.loops
        self.loops: LoopSystem | None = None

    def __call__(self, q: Rows, v: Rows, tau: Rows, outside: BodyForces | None = None) -> Rows:
        """By joint."""
        f_ext = None if outside is None else as_list(outside)
        if self.law is not None:
            a, _, self.loops = loop_dynamics(self.tree, self.law.models, q, v, tau, self.law.proximal, f_ext)
            return a
        text = aba if self.tree.coupling is None else coupled_forward_dynamics
        return [list(row) for row in text(self.tree, q, v, tau, f_ext)]

    def close(self, q: Rows, v: Rows) -> tuple[Rows, Rows]:
        """The state at the step's end with its loops closed."""
        if self.law is None or self.loops is None:
            return q, v
        return project(self.law, self.tree, self.loops.factor, q, v)


def acceleration(dynamics: Dynamics, q: Rows, v: Rows, tau: Rows, outside: BodyForces | None = None) -> Rows:
    """The base's linear acceleration as seen from axes that do not turn."""
    a, tree = dynamics(q, v, tau, outside), dynamics.tree
    for i in tree.outward():
        if free_base(tree, i):
            turning = Vector3(*v[i][:3]).cross(Vector3(*v[i][3:]))
            a[i] = [*a[i][:3], *(x + y for x, y in zip(a[i][3:], turning, strict=True))]
    return a


# ---- steps -------------------------------------------------------------------------------------------


def midpoint_step(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """Half a step of q, v by the acceleration at mid pose and mid velocity, the other half of q.

    The mid velocity lies a little beyond the middle: see :func:`beyond_the_middle`.
    """
    tree, dynamics = p.tree, Dynamics(p)
    held = held_forces(p, q, v, tau, dt, carried, ledger)
    total = along(along(held.given, 1.0, held.rub), 1.0, held.stops)
    qm, vm = advance(tree, q, v, 0.5 * dt)
    outside, X = forces_outside(p, qm, tau)
    share = beyond_the_middle(tree, qm, vm, dt)
    middle = along(vm, share * dt, acceleration(dynamics, qm, vm, total, outside))
    v1 = along(vm, dt, acceleration(dynamics, qm, middle, total, outside))
    q1, v1_turned = advance(tree, qm, v1, 0.5 * dt)
    enter_joint_work(ledger, half_way(vm, v1, dt), held.given, held.rub, held.stops)
    impulse = None
    if outside is not None:
        V = body_velocities(tree, X, half_way(vm, v1, 1.0))
        impulse = p.given.enter_outside(ledger, tree, seen(tree, X), outside, V, dt)
    return keep(ledger, tree, *dynamics.close(q1, v1_turned), dt, carried, impulse)


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


def rkmk_step(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """The Runge-Kutta-Munthe-Kaas method of order 4, and the momentum of the start."""
    q1, v1, _, impulse = rkmk(RK4, p, q, v, tau, dt, ledger, carried)
    return keep(ledger, p.tree, q1, v1, dt, carried, impulse)


def energy_momentum_step(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows]:
    """The same, and the energy of the start too."""
    q1, v1, work, impulse = rkmk(RK4, p, q, v, tau, dt, ledger, carried)
    return conserve(p.tree, q, q1, v1, dt, work, ledger, carried, impulse)


def rkmk(
    tableau: Tableau, p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, ledger: Ledger, carried: Carried
) -> tuple[Rows, Rows, Scalar, Force | None]:
    """q = q exp(theta), with theta and v by a Runge-Kutta method in the joints' Lie algebras.

    Returns:
        the state by joint after the step, the work of joint forces and of those from outside [J], and the
        impulse of these about the centre of mass [N m s; N s], None where there is none.
    """
    tree, dynamics = p.tree, Dynamics(p)
    held = held_forces(p, q, v, tau, dt, carried, ledger)
    total = along(along(held.given, 1.0, held.rub), 1.0, held.stops)
    rates: list[Rows] = []
    accelerations: list[Rows] = []
    impulse, work = None, 0.0
    for row, weight in zip(tableau.a, tableau.b, strict=True):
        theta, vs = _sum(dt, row, rates, v, zero=True), _sum(dt, row, accelerations, v)
        qs = [
            tree.joint[i].integrate(q[i], theta[i]) if i and rates else q[i]  # type: ignore[union-attr]
            for i in range(tree.n + 1)
        ]
        outside, X = forces_outside(p, qs, tau)
        if outside is not None:
            V = body_velocities(tree, X, vs)
            share = p.given.enter_outside(ledger, tree, seen(tree, X), outside, V, weight * dt)
            impulse, work = sum_of(impulse, share), work + weight * dt * power_outside(outside, V)
        accelerations.append(dynamics(qs, vs, total, outside))
        rates.append([dexpinv(tree, i, theta[i], vs[i]) for i in range(tree.n + 1)])
    theta, v1 = _sum(dt, tableau.b, rates, v, zero=True), _sum(dt, tableau.b, accelerations, v)
    q1 = [[], *(tree.joint[i].integrate(q[i], theta[i]) for i in tree.outward())]  # type: ignore[union-attr]
    enter_joint_work(ledger, theta, held.given, held.rub, held.stops)
    work = work + added((power(f, s) for f, s in zip(total, theta, strict=True)), 0.0)
    return *dynamics.close(q1, v1), work, impulse


def forces_outside(p: Problem, q: Rows, tau: Rows) -> tuple[BodyForces | None, Sequence[Any]]:
    """(forces from outside by body, transforms) in the configuration q; (None, ()) where there are none."""
    if not p.given.layout.outside:
        return None, ()
    X = p.tree.transforms(q)
    return p.given.outside(p.tree, X, tau), X


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


METHODS: dict[str, Method] = {
    "contact": Method(2, None, keeps_energy=True),
    "midpoint": Method(2, midpoint_step),
    "rkmk4": Method(RK4.order, rkmk_step),
    "energy_momentum": Method(RK4.order, energy_momentum_step, keeps_energy=True),
}


def method(name: Any, contact: bool) -> tuple[str, Method]:
    """The method of that name; None takes "contact" where it is needed and "rkmk4" elsewhere.

    Args:
        name: what was asked for.
        contact: whether something can touch.

    Raises:
        UnknownName: no such method, or one that knows no contact where something can touch.
    """
    if name is None:
        name = "contact" if contact else "rkmk4"
    if isinstance(name, str) and name == "euler":
        warnings.warn("integrator: 'euler' is now 'contact'", DeprecationWarning, stacklevel=4)
        name = "contact"
    if not isinstance(name, str) or name not in METHODS:
        raise UnknownName("integrator", name, METHODS)
    if contact and not METHODS[name].contact:
        known = [each for each in METHODS if METHODS[each].contact]
        raise UnknownName("integrator with a ground", name, known, "(this one knows no contact)")
    return name, METHODS[name]
