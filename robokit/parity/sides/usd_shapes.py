"""Poses and collision shapes of prims of a USD stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.geometry import Placement

Shape = tuple[str, tuple[float, ...], Placement, str]
"""Kind, size, pose in the body and name of the prim, as a SideShape has them."""

TURNS = {
    "X": np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    "Y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "Z": np.eye(3),
}
"""Axis of a cylinder -> rotation that takes z there."""


def axis_letter(schema: Any, absent: str) -> str:
    """The axis of a joint or shape: "X", "Y" or "Z".

    Raises:
        RobokitError: it is another word.
    """
    letter = str(schema.GetAxisAttr().Get() or absent)
    if letter not in TURNS:
        raise RobokitError(f"{schema.GetPath()}: its axis is {letter!r}; expected X, Y or Z")
    return letter


def rigid_pose(prim: Any, metres: float) -> tuple[Placement, np.ndarray]:
    """Pose of a prim in the stage's world without its scale, and the scale, (3,)."""
    from pxr import UsdGeom

    matrix = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(prim), dtype=float)
    # Rows are the prim's axes: USD multiplies row vectors.
    axes = matrix[:3, :3]
    scale = np.linalg.norm(axes, axis=1)
    scale[scale == 0.0] = 1.0
    return Placement((axes / scale[:, None]).T, matrix[3, :3] * metres), scale


def collision_shapes(body: Any, metres: float) -> tuple[list[Shape], float | None]:
    """The colliders below a body, and the mass in stage units that a density gives them, None without one."""
    from pxr import Usd, UsdPhysics

    origin, _ = rigid_pose(body, metres)
    found: list[Shape] = []
    for prim in Usd.PrimRange(body, Usd.TraverseInstanceProxies()):
        if prim != body and prim.HasAPI(UsdPhysics.RigidBodyAPI):
            continue
        if not prim.HasAPI(UsdPhysics.CollisionAPI):
            continue
        enabled = UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr().Get()
        if enabled is False:
            continue
        pose, scale = rigid_pose(prim, metres)
        shape = _shape(prim, scale * metres)
        if shape is not None:
            kind, size, turn = shape
            own = origin.inverse() @ pose @ Placement(turn)
            found.append((kind, size, own, prim.GetName()))
    density = UsdPhysics.MassAPI(body).GetDensityAttr().Get()
    volume = sum(_volume(kind, size) for kind, size, _, _ in found)
    return found, float(density) * volume if density and volume else None


def _shape(prim: Any, scale: np.ndarray) -> tuple[str, tuple[float, ...], np.ndarray] | None:
    from pxr import UsdGeom

    kind = prim.GetTypeName()
    if kind == "Cube":
        edge = float(UsdGeom.Cube(prim).GetSizeAttr().Get())
        return "box", tuple(float(edge * s) for s in scale), np.eye(3)
    if kind == "Sphere":
        return "sphere", (float(UsdGeom.Sphere(prim).GetRadiusAttr().Get() * scale.max()),), np.eye(3)
    if kind in ("Cylinder", "Capsule"):
        typed = UsdGeom.Cylinder(prim) if kind == "Cylinder" else UsdGeom.Capsule(prim)
        letter = axis_letter(typed, "Z")
        k = "XYZ".index(letter)
        across = float(np.delete(scale, k).max())
        size = (
            float(typed.GetRadiusAttr().Get()) * across,
            float(typed.GetHeightAttr().Get()) * float(scale[k]),
        )
        return kind.lower(), size, TURNS[letter]
    if kind == "Mesh":
        return "mesh", (1.0, 1.0, 1.0), np.eye(3)
    return None


def _volume(kind: str, size: tuple[float, ...]) -> float:
    if kind == "box":
        return float(np.prod(size))
    if kind == "sphere":
        return float(4.0 / 3.0 * np.pi * size[0] ** 3)
    if kind in ("cylinder", "capsule"):
        caps = 4.0 / 3.0 * np.pi * size[0] ** 3 if kind == "capsule" else 0.0
        return float(np.pi * size[0] ** 2 * size[1] + caps)
    return 0.0
