"""MuJoCo models of robokit's robots: the same bodies, joints and inertias, with or without shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

import robokit as rk
from robokit.meshes.hull import hull_corners
from robokit.model import Box, Capsule, Cylinder, Mesh, Sphere


def model_without_shapes(robot: rk.Robot) -> Any:
    """mujoco.MjModel of the tree and its inertias alone."""
    return tree_spec(robot).compile()


def model_on_a_plane(robot: rk.Robot, timestep: float, damping: dict[str, float]) -> Any:
    """mujoco.MjModel with joint limits, damping, collision shapes and a ground plane; self-collision off.

    Dry friction of the joints is left out; it would give MuJoCo a constraint more for each joint.

    Args:
        robot: a floating robot.
        timestep: of the simulation [s].
        damping: joint name -> damping in use [N m s/rad].
    """
    import mujoco

    spec = tree_spec(robot, damping)
    spec.option.timestep = timestep
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        contype=1,
        conaffinity=2,
        friction=[0.8, 0.005, 0.0001],
    )
    bodies = {body.name: body for body in spec.bodies}
    pairs = [(link, shape) for link in robot.links for shape in link.collisions]
    for k, (link, shape) in enumerate(pairs):
        at = link.placement @ shape.placement
        bodies[robot.body_name(link.body)].add_geom(
            pos=at.position,
            quat=_quat(at.rotation),
            contype=2,
            conaffinity=1,
            mass=0,
            friction=[0.8, 0.005, 0.0001],
            **_geometry(spec, shape.geometry, f"mesh{k}"),
        )
    return spec.compile()


def _geometry(spec: Any, geometry: Any, name: str) -> dict[str, Any]:
    """Type and size of a MuJoCo geom; of a mesh MuJoCo takes the convex hull."""
    import mujoco

    if isinstance(geometry, Box):
        return {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": [x / 2 for x in geometry.size]}
    if isinstance(geometry, Sphere):
        return {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [geometry.radius, 0, 0]}
    if isinstance(geometry, Cylinder):
        return {"type": mujoco.mjtGeom.mjGEOM_CYLINDER, "size": [geometry.radius, geometry.length / 2, 0]}
    if isinstance(geometry, Capsule):
        return {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "size": [geometry.radius, geometry.length / 2, 0]}
    if isinstance(geometry, Mesh) and geometry.path is not None:
        if geometry.path.suffix.lower() in (".stl", ".obj"):
            spec.add_mesh(name=name, file=str(geometry.path), scale=list(geometry.scale))
        else:
            spec.add_mesh(name=name, uservert=hull_corners(geometry).ravel())
        return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": name}
    raise TypeError(f"no MuJoCo geom for {geometry}")


def _quat(R: np.ndarray) -> np.ndarray:
    import mujoco

    quat = np.empty(4)
    mujoco.mju_mat2Quat(quat, np.ascontiguousarray(R).reshape(9))
    return quat


def tree_spec(robot: rk.Robot, damping: dict[str, float] | None = None, least: float = 0.0) -> Any:
    """mujoco.MjSpec of the bodies and joints; with ``damping``, also with the joints' limits.

    ``least``: mass [kg] and moments of inertia [kg m²] of what has none, which MuJoCo refuses.
    """
    import mujoco

    spec = mujoco.MjSpec()
    spec.compiler.degree = False  # joint ranges are in radians
    spec.compiler.balanceinertia = False
    spec.compiler.boundmass = spec.compiler.boundinertia = 0
    spec.option.gravity = robot.gravity
    tree, bodies = robot.tree, {0: spec.worldbody}
    for i in tree.outward():
        joint, X, I = robot.joints[i - 1], tree.XT[i], tree.I[i]
        body = bodies[tree.parent[i]].add_body(
            name=robot.body_name(i), pos=list(X.r), quat=_quat(np.array(X.E.T.rows))
        )
        m = max(I.m, least)
        c = np.array(list(I.h)) / (m or 1.0)
        Ic = np.array(I.Ibar.full().rows) - m * (c @ c * np.eye(3) - np.outer(c, c))
        if np.linalg.eigvalsh(Ic)[0] < least:
            Ic += least * np.eye(3)
        body.mass, body.ipos = m, c
        body.fullinertia = [Ic[0, 0], Ic[1, 1], Ic[2, 2], Ic[0, 1], Ic[0, 2], Ic[1, 2]]
        body.explicitinertial = True
        if joint.kind == "floating":
            body.add_freejoint(name=joint.name)
        else:
            kind = mujoco.mjtJoint.mjJNT_SLIDE if joint.kind == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
            limited = damping is not None and np.isfinite(joint.lower) and np.isfinite(joint.upper)
            options = (
                {"limited": True, "range": [joint.lower, joint.upper]} if limited else {"limited": False}
            )
            body.add_joint(
                name=joint.name,
                type=kind,
                axis=joint.axis,
                damping=(damping or {}).get(joint.name, 0.0),
                **options,
            )
        bodies[i] = body
    return spec
