"""The contact law's constants, and a plane as the bodies see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.model.tree import Tree
from robokit.sim.touching.surfaces import Surface
from robokit.spatial import Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar, where

OVERHEAD = -0.83
"""Upward part of a normal below which a surface's tangents are found from below."""


@dataclass(frozen=True)
class GroundLaw:
    """Constants of the contact law as scalars: plain numbers or inputs of a kernel.

    Attributes:
        height: of a horizontal ground at rest [m].
        k, d: of a point [N/m], [N s/m].
        slip: speed below which friction fades out [m/s]; None where points have anchors.
        mu: friction coefficient of each touching body.
        mass: effective mass of each touching body [kg].
        restitution: of each touching body; None where the springs and dampers decide.
        torsional, rolling: friction against turning about the normal and about the tangents [m], or None.
        plane: normal in world axes, distance from the origin, and the motion of its surface or None, of a
            plane that is not horizontal or moves.
        surfaces: of a ground that has more than a plane.
    """

    height: Scalar
    k: Scalar
    d: Scalar
    slip: Scalar | None
    mu: Sequence[Scalar]
    mass: Sequence[Scalar]
    restitution: Sequence[Scalar] | None = None
    torsional: Scalar | None = None
    rolling: Scalar | None = None
    plane: tuple[Vector3, Scalar, Motion | None] | None = None
    surfaces: Sequence[Surface] = ()


@dataclass(frozen=True)
class Axes:
    """A surface in a body's coordinates: normal, two tangents, height of the body's origin over it [m]."""

    n: Vector3
    along_x: Vector3
    along_y: Vector3
    z: Scalar

    def seen(self, a: Vector3) -> Vector3:
        """A vector in body coordinates: its parts along the two tangents and the normal."""
        return Vector3(self.along_x.dot(a), self.along_y.dot(a), self.n.dot(a))

    @staticmethod
    def of_plane(n: Vector3, d: Scalar) -> Axes:
        """Those of the plane n . x = d, in world axes: x and y, turned by the shortest way to n.

        They change from one form to another where few surfaces are: at walls, rounding would change the
        axes in which bristles are kept.

        Source: J. Frisvad (2012) and T. Duff et al. (2017), orthonormal bases without branches.
        """
        s = where(n.z < OVERHEAD, -1.0, 1.0)
        a = -1.0 / (s + n.z)
        b = n.x * n.y * a
        return Axes(
            n, Vector3(1.0 + s * n.x * n.x * a, s * b, -(s * n.x)), Vector3(b, s + n.y * n.y * a, -n.y), -d
        )


def ground_axes(tree: Tree, X: Sequence[Transform | None], world: Axes) -> list[Axes]:
    """A plane's axes, given in those of the world, in the coordinates of the bodies 0..N."""
    out = [world]
    for i in tree.outward():
        Xi, above = X[i], out[tree.parent[i]]
        assert Xi is not None
        n, x, y = (Xi.E @ axis for axis in (above.n, above.along_x, above.along_y))
        out.append(Axes(n, x, y, above.z + above.n.dot(Xi.r)))
    return out
