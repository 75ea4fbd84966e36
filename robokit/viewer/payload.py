"""The data of a page: one dictionary that JSON can hold, numbers packed as base64 float32.

    robot       name and figures for the title
    bodies, links, joints                 what the page names
    geometries, nodes, pictures           what it draws
    structure   parent array and patterns of H, L of LᵀDL, L of Cholesky
    frames      body poses, q, centre of mass, momentum, contacts at display rate (or one pose)
    curves      energies, momenta, contact force at plotting rate
    summary     figures for the strip at the top

Curves and frames have their own clocks: a frame is for the eye, a curve keeps what happens in between.
"""

from __future__ import annotations

import base64
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from robokit.model.sparsity import cholesky_fill, factorisation_counts, inertia_pattern, ltdl_counts
from robokit.viewer.nodes import Drawable, Node, Triangles
from robokit.viewer.poses import body_poses, bounds, frame_indices, pose_numbers
from robokit.viewer.scene import robot_size, scene
from robokit.viewer.textures import data_uri

MAX_CURVE_POINTS = 1600


def trajectory_payload(
    trajectory: Any, max_triangles: int | None = None, max_fps: float = 60.0
) -> dict[str, Any]:
    """Everything the page of a motion shows.

    Args:
        trajectory: the Trajectory.
        max_triangles: display triangles of one mesh; None shares out what a page shows well.
        max_fps: frames per second at most; the page interpolates between them.

    Returns:
        A dictionary for ``json.dumps``.
    """
    robot = trajectory.robot
    t = np.asarray(trajectory.t, dtype=float)
    chosen = frame_indices(t, max_fps)
    q = np.asarray(trajectory.q, dtype=float)[chosen]
    poses = body_poses(robot, q)
    payload = robot_payload(robot, poses, max_triangles)
    ground = ground_height(trajectory)
    payload["ground"] = ground
    payload["frames"] = {
        "count": len(chosen),
        "t": packed(t[chosen] - t[0]),
        "poses": packed(poses[:, 1:]),
        "q": packed(q),
        "com": packed(_centres_of_mass(robot, q)),
        **_optional_frames(trajectory, chosen),
    }
    payload["curves"] = curves(trajectory)
    payload["summary"] = summary(trajectory)
    return payload


def pose_payload(robot: Any, q: np.ndarray | None = None, max_triangles: int | None = None) -> dict[str, Any]:
    """Everything the page of a single pose shows.

    Args:
        robot: the Robot.
        q: configuration, (nq,); the neutral one by default.
        max_triangles: display triangles of one mesh; None shares out what a page shows well.

    Returns:
        A dictionary for ``json.dumps``.
    """
    q = np.atleast_2d(robot.neutral() if q is None else np.asarray(q, dtype=float))
    poses = body_poses(robot, q)
    payload = robot_payload(robot, poses, max_triangles)
    # A floating robot stands on its lowest point; a fixed base keeps the world's own z = 0.
    payload["ground"] = (
        min(0.0, payload["bounds"][0][2]) if robot.base == "fixed" else payload["bounds"][0][2]
    )
    payload["frames"] = {
        "count": 1,
        "t": packed(np.zeros(1)),
        "poses": packed(poses[:, 1:]),
        "q": packed(q),
        "com": packed(_centres_of_mass(robot, q)),
    }
    payload["curves"] = []
    payload["summary"] = []
    return payload


def robot_payload(robot: Any, poses: np.ndarray, max_triangles: int | None) -> dict[str, Any]:
    """What does not depend on the motion, but for the box that holds it."""
    nodes = scene(robot, max_triangles)
    geometries, drawn, pictures = _nodes(nodes)
    tree = robot.tree
    return {
        "format": 1,
        "robot": {
            "name": robot.name,
            "mass": float(robot.total_mass),
            "dof": int(robot.nv),
            "base": robot.base,
            "bodies": int(robot.nbodies),
            "links": len(robot.links),
            "joints": sum(joint.kind != "floating" for joint in robot.joints),
            "size": robot_size(robot),
        },
        "bodies": {
            "name": [robot.body_name(i) for i in range(len(tree.parent))],
            "parent": [int(i) for i in tree.parent],
        },
        "links": [
            {"name": link.name, "body": int(link.body), "pose": pose_numbers(link.placement)}
            for link in robot.links
        ],
        "joints": _joints(robot),
        "geometries": geometries,
        "nodes": drawn,
        "pictures": pictures,
        "structure": structure(robot),
        "bounds": np.round(bounds(nodes, poses), 5).tolist(),
    }


def structure(robot: Any) -> dict[str, Any]:
    """Patterns of H and of the two factors, with their operation counts."""
    parents = list(robot.dof_parent)
    pattern = inertia_pattern(parents)
    filled = cholesky_fill(pattern)
    counts: dict[str, Any] = {
        key: value if math.isfinite(value) else None for key, value in ltdl_counts(parents).items()
    }
    cholesky = factorisation_counts(filled)
    counts["cholesky_factorise"] = cholesky["factorise"]
    counts["cholesky_solve"] = cholesky["solve"]
    counts["fill"] = int(filled.sum() - np.tril(pattern).sum())
    return {
        "n": len(parents),
        "parent": parents,
        "cholesky": _bits(filled),
        "pattern": _bits(pattern),
        "counts": counts,
    }


def curves(trajectory: Any) -> list[dict[str, Any]]:
    """The plots: title, unit and series over time, thinned to a screen's width."""
    t = np.asarray(trajectory.t, dtype=float)
    keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), MAX_CURVE_POINTS)).round().astype(int))
    time = packed(t[keep] - t[0])

    def plot(key: str, title: str, unit: str, **series: Any) -> dict[str, Any]:
        lines = [{"name": name, "y": packed(np.asarray(y)[keep])} for name, y in series.items()]
        return {"key": key, "title": title, "unit": unit, "t": time, "series": lines}

    energy = trajectory.energy
    work = getattr(energy, "work", None)
    plots = [
        plot(
            "energy",
            "Energy",
            "J",
            kinetic=energy.kinetic,
            potential=energy.potential,
            dissipated=energy.dissipated,
            **({"work": work} if work is not None and np.any(work) else {}),
            total=energy.total,
        )
    ]
    total = np.asarray(energy.total, dtype=float)
    if trajectory.contact_force is not None and np.any(trajectory.contact_force):
        force = np.asarray(trajectory.contact_force)
        plots.append(plot("force", "Contact force", "N", x=force[:, 0], y=force[:, 1], z=force[:, 2]))
    if trajectory.momentum is not None:
        h = np.asarray(trajectory.momentum)
        plots.append(plot("linear", "Linear momentum", "N s", x=h[:, 3], y=h[:, 4], z=h[:, 5]))
        plots.append(
            plot("angular", "Angular momentum about the CoM", "N m s", x=h[:, 0], y=h[:, 1], z=h[:, 2])
        )
    plots.append(plot("drift", "Energy balance: total less its start", "J", drift=total - total[0]))
    return plots


def summary(trajectory: Any) -> list[dict[str, Any]]:
    """Figures for the strip: key and value, as the trajectory gives them."""
    given = dict(getattr(trajectory, "summary", None) or {})
    if "energy_balance" not in given:
        total = np.asarray(trajectory.energy.total, dtype=float)
        given["energy_balance"] = float(np.abs(total - total[0]).max()) if len(total) else 0.0
    kept = []
    for key, value in given.items():
        if isinstance(value, (bool, np.bool_)):
            continue
        if isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value):
            kept.append({"key": str(key), "value": float(value)})
        elif isinstance(value, str):
            kept.append({"key": str(key), "value": value})
    return kept


def ground_height(trajectory: Any) -> float | None:
    """Height of the ground plane [m], None for a motion without one."""
    ground = getattr(trajectory, "ground", None)
    if ground is not None:
        return float(getattr(ground, "height", 0.0))
    force = getattr(trajectory, "contact_force", None)
    return 0.0 if force is not None and np.any(force) else None


def packed(values: Any) -> str:
    """Numbers as base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


def _optional_frames(trajectory: Any, chosen: np.ndarray) -> dict[str, Any]:
    """Velocity, momentum, contact force and contact points at the frames, where there are any."""
    found: dict[str, Any] = {}
    for key, attribute in (("v", "v"), ("tau", "tau"), ("momentum", "momentum"), ("force", "contact_force")):
        value = getattr(trajectory, attribute, None)
        if value is not None and (attribute != "contact_force" or np.any(value)):
            found[key] = packed(np.asarray(value)[chosen])
    contacts = getattr(trajectory, "contacts", None)
    if contacts is not None:
        points = np.asarray(contacts.points, dtype=float)[chosen]
        forces = np.asarray(contacts.forces, dtype=float)[chosen]
        # Most points of most frames touch nothing: only those that do are stored.
        touching = np.any(forces != 0.0, axis=-1)
        found["contact_count"] = packed(touching.sum(axis=1))
        found["contacts"] = packed(np.concatenate([points[touching], forces[touching]], axis=1))
    return found


def _centres_of_mass(robot: Any, q: np.ndarray) -> np.ndarray:
    """Centre of mass at each configuration, (T, 3) [m]; NaN for a robot without mass."""
    from robokit.dynamics import center_of_mass

    if not robot.total_mass > 0:
        return np.full((len(q), 3), np.nan)
    return np.asarray(center_of_mass(robot, q)).reshape(len(q), 3)


def _joints(robot: Any) -> list[dict[str, Any]]:
    """The joint table with the placement of each body in its parent at the undisplaced configuration."""
    rest = body_poses(robot, robot.neutral()[None])[0]
    tree, parents = robot.tree, robot.tree.parent
    joints = []
    coupled = {joint.body for joint in robot.mimic_joints}
    for joint in robot.body_joints:
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind,
                "body": int(joint.body),
                "q": [int(joint.q_slice.start), int(joint.q_slice.stop)],
                "v": [int(joint.v_slice.start), int(joint.v_slice.stop)],
                "axis": None if joint.axis is None else [float(x) for x in joint.axis],
                "pitch": float(getattr(joint, "pitch", 0.0) or 0.0),
                "lower": _finite(joint.lower),
                "upper": _finite(joint.upper),
                "follows": robot.coupling.q_from[tree.q_slice[joint.body].start][:2]
                if joint.body in coupled
                else None,
                "mimic": None if joint.mimic is None else joint.mimic.joint,
                "parent_link": joint.parent_link,
                "child_link": joint.child_link,
                "placement": _relative(rest[parents[joint.body]], rest[joint.body]),
            }
        )
    return joints


def _relative(parent: np.ndarray, child: np.ndarray) -> list[float]:
    """Pose of a child in its parent from the world poses of both, seven numbers."""
    from robokit.viewer.poses import rotate

    inverse = parent[3:] * np.array([-1.0, -1.0, -1.0, 1.0])
    position = rotate(inverse, child[:3] - parent[:3])
    a, b, s, t = inverse[:3], child[3:6], inverse[3], child[6]
    quat = np.append(s * b + t * a + np.cross(a, b), s * t - a @ b)
    return [round(float(x), 9) for x in (*position, *quat)]


def _finite(value: Any) -> float | None:
    """A limit, or None where there is none."""
    return float(value) if value is not None and math.isfinite(value) else None


def _bits(pattern: np.ndarray) -> str:
    """A boolean matrix as base64 of its packed rows."""
    return base64.b64encode(np.packbits(pattern.reshape(-1)).tobytes()).decode("ascii")


def _nodes(nodes: list[Node]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]:
    """Geometries, each once, the nodes that refer to them, and the pictures that cover some."""
    index: dict[Any, int] = {}
    geometries: list[dict[str, Any]] = []
    pictures: dict[Any, str | None] = {}
    drawn = []
    for node in nodes:
        key = id(node.geometry) if isinstance(node.geometry, Triangles) else node.geometry
        if key not in index:
            index[key] = len(geometries)
            geometries.append(_geometry(node.geometry))
        covered = {"picture": found} if (found := _picture(node, pictures)) is not None else {}
        drawn.append(
            {
                "geometry": index[key],
                "body": int(node.body),
                "pose": pose_numbers(node.placement),
                "rgba": [round(float(c), 4) for c in node.rgba],
                "role": node.role,
                "link": node.link,
                **covered,
            }
        )
    return geometries, drawn, [uri for uri in pictures.values() if uri is not None]


def _picture(node: Node, known: dict[Any, str | None]) -> int | None:
    """Number of a node's picture among those that can be shown; None where there is none."""
    picture = node.picture
    if picture is None:
        return None
    key = str(picture) if isinstance(picture, (str, Path)) else id(picture)
    if key not in known:
        try:
            known[key] = data_uri(picture)
        except Exception as problem:  # pictures come from anywhere, as meshes do
            known[key] = None
            name = key if isinstance(key, str) else "inside a mesh"
            warnings.warn(f"picture {name!r} of link {node.link!r} is left out: {problem}", stacklevel=2)
    shown = [each for each, uri in known.items() if uri is not None]
    return shown.index(key) if known[key] is not None else None


def _geometry(geometry: Drawable) -> dict[str, Any]:
    """A geometry for the page; mesh corners as 16-bit steps of their box, which is finer than a pixel."""
    if not isinstance(geometry, Triangles):
        return {"type": type(geometry).__name__.lower(), **vars(geometry)}
    low, high = geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    step = np.where(high > low, (high - low) / 65535.0, 1.0)
    corners = np.round((geometry.vertices - low) / step).astype("<u2")
    wide = len(corners) > 65535
    faces = geometry.faces.astype("<u4" if wide else "<u2")
    looks: dict[str, Any] = {}
    if geometry.colours is not None:
        colours = np.ascontiguousarray(geometry.colours, dtype=np.uint8)
        looks["colours"] = base64.b64encode(colours.tobytes()).decode("ascii")
    if geometry.uv is not None:
        looks["uv"] = packed(geometry.uv)
    return {
        "type": "mesh",
        "low": [float(x) for x in low],
        "step": [float(x) for x in step],
        "wide": wide,
        "vertices": base64.b64encode(corners.tobytes()).decode("ascii"),
        "faces": base64.b64encode(np.ascontiguousarray(faces).tobytes()).decode("ascii"),
        **looks,
    }
