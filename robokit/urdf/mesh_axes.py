"""COLLADA's up axis in the description: shapes turned so that z is up in their meshes.

A mesh that says that y is up is turned by 90 degrees about x, as a reader that honours the axis does. The
shape's origin is turned, and the scale's factors change places, so that whatever reads the mesh reads it as
it is written.
"""

from __future__ import annotations

import numpy as np

from robokit.model.geometry import Mesh
from robokit.urdf.description import RobotDescription, ShapeDescription
from robokit.urdf.mesh_files import Resolver


def with_z_up(robot: RobotDescription, resolver: Resolver) -> RobotDescription:
    """The same robot with its shapes of meshes turned where the file says that x or y is up."""
    from robokit.meshes.collada import TO_Z_UP, up_axis

    axes: dict[str, str] = {}

    def turned(shape: ShapeDescription) -> ShapeDescription:
        mesh = shape.geometry
        if not isinstance(mesh, Mesh):
            return shape
        if mesh.filename not in axes:
            axes[mesh.filename] = up_axis(resolver(mesh.filename).path)
        if axes[mesh.filename] == "Z":
            return shape
        R = np.array(TO_Z_UP[axes[mesh.filename]])
        # The scale acts along z-up axes: S R = R (R^T S R).
        x, y, z = (np.abs(R).T @ mesh.scale).tolist()
        origin = shape.origin._replace(
            rpy=(0.0, 0.0, 0.0), quat_xyzw=_quaternion(shape.origin.rotation() @ R)
        )
        return shape._replace(geometry=Mesh(mesh.filename, (x, y, z), mesh.path), origin=origin)

    links = (
        link._replace(
            visuals=tuple(map(turned, link.visuals)), collisions=tuple(map(turned, link.collisions))
        )
        for link in robot.links
    )
    return robot._replace(links=tuple(links))


def _quaternion(R: np.ndarray) -> tuple[float, float, float, float]:
    """The unit quaternion x, y, z, w of a rotation: the eigenvector of the largest eigenvalue.

    Source: I. Y. Bar-Itzhack, "New method for extracting the quaternion from a rotation matrix" (2000).
    """
    (a, b, c), (d, e, f), (g, h, i) = R.tolist()
    K = [
        [a - e - i, b + d, c + g, h - f],
        [b + d, e - a - i, f + h, c - g],
        [c + g, f + h, i - a - e, d - b],
        [h - f, c - g, d - b, a + e + i],
    ]
    x, y, z, w = np.linalg.eigh(np.array(K))[1][:, -1].tolist()
    return x, y, z, w
