"""What a step enters into the ledger, and the momentum that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.model.tree import Tree
from robokit.sim.step.carried import Carried
from robokit.sim.step.implicit_sweep import body_velocities
from robokit.sim.step.ledger import Ledger
from robokit.sim.step.momentum_projection import at_base, floats, keep_momentum
from robokit.sim.step.moving_axes import Rows
from robokit.sim.step.settle import Settled
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar, sqrt


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

    The change of 1/2 v^T H v is the force times the mean of the velocities before and after: exact.

    Returns:
        the ground's impulse about the centre of mass, world axes [N m s; N s]; None where nothing can touch.
    """
    if not done.contacts:
        return None
    total = [Force.zero() for _ in done.X]
    taken: Scalar = 0.0
    for acting in done.contacts:
        i, f = acting.body.i, acting.impulse
        taken = taken + (done.V_before[i] + done.V[i]).dot(f)
        total[i] = total[i] + f
        for phi in acting.body.phi:
            ledger.largest("depth", -phi)
        for name in ("pressed", "pulled", "outside"):
            ledger.add(name, getattr(acting, name))
    ledger.add("contact", -0.5 * taken)
    here: list[Any] = at_base(tree, done.X) if floats(tree) else list(done.X)
    for i in tree.inward():
        total[tree.parent[i]] = total[tree.parent[i]] + here[i].T @ total[i]
    m, h = composite_moment(tree, here)
    impulse = about(total[0], h * (1.0 / m))
    ledger.add_impulse(impulse)
    ledger.largest("residual", done.residual)
    ledger.add("residual_sum", done.residual)
    return impulse


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
