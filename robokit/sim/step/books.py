"""What a step enters into the ledger, and the momentum that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.momentum_projection import at_base, floats, keep_momentum
from robokit.sim.motion.moving_axes import Rows
from robokit.spatial import Force
from robokit.spatial.scalars import Scalar, added, sqrt


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
    mass = added((tree.I[i].m for i in tree.outward()), 0.0)
    wanted = Force(wanted.ang, wanted.lin - tree.a0 * (mass * dt))
    X = tree.transforms(q)
    kept, missing = keep_momentum(tree, wanted, v, X, body_velocities(tree, X, v))
    carried.momentum = wanted
    ledger.add("corrected_k", sqrt(missing.ang.dot(missing.ang)))
    ledger.add("corrected_l", sqrt(missing.lin.dot(missing.lin)))
    return q, kept
