"""The points of a robot's bodies on its ground: one plane for all, or a surface for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robokit.model.tree import Tree
from robokit.sim.shapes.contact_shapes import ContactShape
from robokit.sim.touching.contact import BodyContact
from robokit.sim.touching.ground_law import Axes, GroundLaw, ground_axes
from robokit.sim.touching.uneven_contact import UnevenContact
from robokit.spatial import Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar, likewise, maximum


def on_ground(
    tree: Tree,
    X: Sequence[Transform | None],
    bodies: Sequence[int],
    points: Sequence[Sequence[ContactShape]],
    law: GroundLaw,
    dt: Scalar,
) -> Iterator[BodyContact]:
    """The contact of each of these bodies.

    Args:
        tree: the tree.
        X: ^iX_lambda(i).
        bodies: that have points.
        points: of all bodies 0..N.
        law: of the ground.
        dt: step [s].
    """
    bouncing = law.restitution or [None] * len(bodies)
    given = zip(bodies, law.mu, law.mass, bouncing, strict=True)
    if law.surfaces:
        pose = poses(tree, X)
        for i, mu, mass, e in given:
            yield UnevenContact(i, points[i], pose[i], mu, mass, law, dt, tree.a0, e)
        return
    n, d, motion = law.plane or (Vector3(0.0, 0.0, 1.0), law.height, None)
    axes = ground_axes(tree, X, Axes.of_plane(n, d))
    falling = maximum(tree.a0.dot(n), 0.0) * dt
    moved = [None] * (tree.n + 1) if motion is None else in_bodies(tree, X, motion)
    for i, mu, mass, e in likewise(given):
        yield BodyContact(i, points[i], axes[i], mu, mass, law, dt, falling, moved[i], e)


def poses(tree: Tree, X: Sequence[Transform | None]) -> list[Transform]:
    """^iX_0 of the bodies 0..N."""
    out = [Transform.identity()]
    for i in tree.outward():
        out.append(X[i] @ out[tree.parent[i]])  # type: ignore[operator]
    return out


def in_bodies(tree: Tree, X: Sequence[Transform | None], motion: Motion) -> list[Motion]:
    """A motion, given in world axes about the world's origin, in the coordinates of the bodies 0..N."""
    out = [motion]
    for i in tree.outward():
        out.append(X[i] @ out[tree.parent[i]])  # type: ignore[operator]
    return out
