"""What a step enters into the ledger, and the momentum that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.model.tree import Tree
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.momentum_projection import at_base, floats, keep_momentum
from robokit.sim.motion.moving_axes import Rows
from robokit.sim.step.problem import Problem
from robokit.sim.step.settle import Settled
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar, likewise, sqrt


def along(x: Rows, s: Scalar, y: Rows) -> Rows:
    """x + s y."""
    return [[a + s * b for a, b in zip(u, w, strict=True)] for u, w in zip(x, y, strict=True)]


def half_way(v: Rows, y: Rows, dt: Scalar) -> Rows:
    """The displacement dt (v + y) / 2, over which constant forces that change v to y do their work."""
    return [[0.5 * dt * (a + b) for a, b in zip(x, z, strict=True)] for x, z in zip(v, y, strict=True)]


def power(x: Sequence[Scalar], y: Sequence[Scalar]) -> Scalar:
    """x . y."""
    return sum((a * b for a, b in zip(x, y, strict=True)), 0.0)


def enter_joint_work(ledger: Ledger, theta: Rows, tau: Rows, rub: Rows, stops: Rows) -> None:
    """Enter the work of constant joint forces over the displacement theta into the ledger."""
    for name, sign, forces in (("work", 1.0, tau), ("friction", -1.0, rub), ("stops", -1.0, stops)):
        ledger.add(name, sign * sum((power(f, s) for f, s in zip(forces, theta, strict=True)), 0.0))


def enter_contacts(ledger: Ledger, tree: Tree, done: Settled) -> Force | None:
    """Enter what the ground does: the energy it takes, its impulse, the deepest point and the residual.

    The change of 1/2 v^T H v is the force times the mean of the velocities before and after: exact. What a
    belt gives, the force times the velocity of its surface, is work; the ground takes the rest.

    Returns:
        the ground's impulse about the centre of mass, world axes [N m s; N s]; None where nothing can touch.
    """
    if not done.contacts:
        return None
    gathered = [Force.zero() for _ in done.X]
    taken: Scalar = 0.0
    given: Scalar = 0.0
    for acting in likewise(done.contacts):
        i, f = acting.body.i, acting.impulse
        taken = taken + (done.V_before[i] + done.V[i]).dot(f)
        gathered[i] = gathered[i] + f
        ledger.largest("depth", acting.depth)
        for name in ("pressed", "pulled", "outside"):
            ledger.add(name, getattr(acting, name))
        given = given + acting.work
    ledger.add("contact", given - 0.5 * taken)
    ledger.add("work", given)
    here = seen(tree, done.X)
    for i in tree.inward():
        gathered[tree.parent[i]] = gathered[tree.parent[i]] + here[i].T @ gathered[i]
    m, h = composite_moment(tree, here)
    impulse = about(gathered[0], h * (1.0 / m))
    ledger.add_impulse(impulse)
    ledger.largest("residual", done.residual)
    ledger.add("residual_sum", done.residual)
    return impulse


def enter_meetings(p: Problem, ledger: Ledger, done: Settled) -> Force | None:
    """Enter what bodies do to each other: the energy that it takes, and the deepest overlap.

    Returns:
        the impulse of the fixed base of another robot on robots that hang on nothing, about the centre of
        mass, world axes [N m s; N s], which is entered as from outside; None where they cannot touch one.
    """
    if done.met is None:
        return None
    taken: Scalar = 0.0
    for i, f in done.met.impulse.items():
        if i:
            taken = taken + (done.V_before[i] + done.V[i]).dot(f)
    ledger.add("collision", -0.5 * taken)
    ledger.largest("overlap", done.met.overlap)
    if not p.given.layout.walls:
        return None
    m, h = composite_moment(p.tree, done.X)
    impulse = about(-done.met.impulse[0], h * (1.0 / m))
    for k, x in enumerate(impulse):
        ledger.add_more(k, x)
    return impulse


def enter_outside(p: Problem, ledger: Ledger, done: Settled, dt: Scalar) -> Force | None:
    """Enter the forces from outside of a kick and return their impulse about the centre of mass.

    The mean of the velocities before and after makes their work exact, as that of contacts.
    """
    if not p.given.layout.outside:
        return None
    V = [(a + b) * 0.5 for a, b in zip(done.V_before, done.V, strict=True)]
    return p.given.enter_outside(ledger, p.tree, seen(p.tree, done.X), done.outside, V, dt)


def seen(tree: Tree, X: Sequence[Any]) -> list[Any]:
    """The transforms from world axes at the base of a robot that floats; else from the world."""
    return at_base(tree, X) if floats(tree) else list(X)


def total(a: Force | None, b: Force | None) -> Force | None:
    """The sum of what there is."""
    return b if a is None else a if b is None else a + b


def keep(
    ledger: Ledger, tree: Tree, q: Rows, v: Rows, dt: Scalar, carried: Carried, impulse: Force | None = None
) -> tuple[Rows, Rows]:
    """The state (q, v) after a step, its momentum changed by gravity and the impulse from outside only."""
    if carried.momentum is None:
        return q, v
    wanted = carried.momentum if impulse is None else carried.momentum + impulse
    mass = sum((tree.I[i].m for i in tree.outward()), 0.0)
    wanted = Force(wanted.ang, wanted.lin - tree.a0 * (mass * dt))
    X = tree.transforms(q)
    kept, missing = keep_momentum(tree, wanted, v, X, body_velocities(tree, X, v))
    carried.momentum = wanted
    ledger.add("corrected_k", sqrt(missing.ang.dot(missing.ang)))
    ledger.add("corrected_l", sqrt(missing.lin.dot(missing.lin)))
    return q, kept
