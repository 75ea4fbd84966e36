"""A model of MuJoCo for the referee: MJCF, or a URDF as MuJoCo reads it."""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.geometry import Placement
from robokit.parity.sides.mujoco_couplings import laws_of, loops_of, relations_of
from robokit.parity.sides.mujoco_efforts import actuators_of, effort_range
from robokit.parity.sides.side import WORLD, Side, SideBody, SideJoint, SideShape
from robokit.parity.state import one_line

KINDS = {0: "floating", 1: "spherical", 2: "prismatic", 3: "revolute"}
"""MuJoCo's types of joints: free, ball, slide, hinge."""

SEVERAL = {
    ("prismatic", "prismatic", "prismatic", "spherical"): "floating",
    ("prismatic", "prismatic", "revolute"): "planar",
}
"""Types of all joints of one body -> the joint that they may be together."""

PARTS = re.compile(r"_(TX|TY|TZ|RZ|R)$")
"""What MuJoCo and robokit add to the name of a planar or floating joint for the joints that it becomes."""

GEOMS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box", 7: "mesh"}

GROUNDS = (0, 1)
"""Planes and height fields: on the fixed frame they are the scene's, not the robot's."""

NO_MESHES = "read without meshes"
"""Beginning of the note about meshes that MuJoCo cannot have."""


def mujoco_side(path: str | os.PathLike[str]) -> Side:
    """Read a file through MuJoCo, with MuJoCo's own defaults.

    Mesh files that are missing or that MuJoCo cannot read are left out; a note says so.

    Raises:
        RobokitError: MuJoCo refuses the file.
    """
    import mujoco

    notes: list[str] = []
    model, spec = _compiled(mujoco, Path(path), notes)
    urdf = Path(path).suffix.lower() in (".urdf", ".xacro")
    if model.nbody == 1 and not model.ngeom and not urdf:
        raise RobokitError(f"{path}: no body in it; give the file of a robot, with its <include>s beside it")
    side = model_side(model, "URDF through MuJoCo" if urdf else "MJCF", os.fspath(path))
    side.name = spec.modelname or side.name
    side.notes += notes
    if any(note.startswith(NO_MESHES) for note in notes):
        side.shapes = "primitives"
    if urdf:
        root = _merged_root(Path(path), side)
        if root:
            side.notes.append(
                f"MuJoCo merges the root link {root!r} into its fixed world: its mass is not compared"
            )
        side.base, side.gravity = None, None  # MuJoCo's own: a URDF says neither
    return side


def _merged_root(path: Path, side: Side) -> str:
    """The root link of a URDF that is part of the world in MuJoCo's model; "" if it has no mass."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    robot = etree.parse(str(path), parser).getroot()
    carried = {child.get("link") for child in robot.iterfind("joint/child")}
    for link in robot.iterfind("link"):
        name = link.get("name", "")
        if name not in carried and name not in side.bodies and link.find("inertial/mass") is not None:
            return name
    return ""


def _compiled(mujoco: Any, path: Path, notes: list[str]) -> tuple[Any, Any]:
    def parsed() -> Any:
        return mujoco.MjSpec.from_file(str(path))

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = _with_meshes_or_without(mujoco, parsed, path, notes)
    for message in dict.fromkeys(" ".join(str(each.message).split()) for each in said):
        notes.append(f"MuJoCo: {message[:160]}")
    return found


def _with_meshes_or_without(mujoco: Any, parsed: Any, path: Path, notes: list[str]) -> tuple[Any, Any]:
    try:
        spec = parsed()
        return spec.compile(), spec
    except Exception as refusal:  # of any type: it is another program's
        first = one_line(refusal)
    try:
        spec = parsed()
        for geom in list(spec.geoms):
            if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
                spec.delete(geom)
        for asset in (*spec.meshes, *spec.materials, *spec.textures):
            with contextlib.suppress(Exception):
                spec.delete(asset)
        model = spec.compile()
    except Exception as refusal:
        raise RobokitError(f"{path}: MuJoCo cannot load it: {one_line(refusal)}") from None
    notes.append(f"{NO_MESHES} ({first})")
    return model, spec


def model_side(model: Any, format: str, file: str = "") -> Side:
    """The side of a compiled model (``mujoco.MjModel``)."""
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    for j in range(model.njnt):  # the coordinates at zero; a free body and balls stay where they are
        if KINDS[int(model.jnt_type[j])] in ("prismatic", "revolute"):
            data.qpos[model.jnt_qposadr[j]] = 0.0
    mujoco.mj_kinematics(model, data)
    bodies, joints = {}, []
    for b in range(model.nbody):
        body = _body(model, data, b)
        for joint in _joints(model, data, b) if b else []:
            if joint.child != body.name:  # several joints are a chain with bodies without mass between them
                bodies[joint.child] = SideBody(joint.child, body.pose)
            joints.append(joint)
        bodies[body.name] = body
    for k in range(model.nsite):
        body = bodies[_name(model, "body", int(model.site_bodyid[k]))]
        body.frames[model.site(k).name] = _pose(model.site_quat[k], model.site_pos[k])
    for k in range(model.ngeom):
        shape = _shape(model, k)
        body = bodies[_name(model, "body", int(model.geom_bodyid[k]))]
        floor = body.static and int(model.geom_type[k]) in GROUNDS
        if not floor and shape is not None and (model.geom_contype[k] or model.geom_conaffinity[k]):
            body.collisions = (*body.collisions, shape)
    roots = [j for j in joints if j.parent == WORLD]
    side = Side(format, file, "", bodies, joints, gravity=np.array(model.opt.gravity))
    side.base = "floating" if any(j.kind == "floating" for j in roots) else "fixed"
    side.loops = loops_of(model)
    wholes = (_whole(model, data, b) for b in range(1, model.nbody))
    side.wholes = [each for each in wholes if each is not None]
    side.relations, apart = relations_of(model)
    if apart:
        side.notes.append(f"tendons that are no linear relation of joints are not compared: {apart}")
    if model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        side.gravity = np.zeros(3)
    return side


def _name(model: Any, kind: str, k: int) -> str:
    return str(getattr(model, kind)(k).name) or f"{kind} {k}"


def _body(model: Any, data: Any, b: int) -> SideBody:
    name = _name(model, "body", b)
    axes = _pose(model.body_iquat[b], model.body_ipos[b])
    R = axes.rotation
    return SideBody(
        name,
        Placement(data.xmat[b].reshape(3, 3).copy(), data.xpos[b].copy()),
        float(model.body_mass[b]),
        axes.position,
        R @ np.diag(model.body_inertia[b]) @ R.T,
        gravity=1.0 - float(model.body_gravcomp[b]),
        static=b == 0,
    )


def _joints(model: Any, data: Any, b: int) -> list[SideJoint]:
    """The joints that carry a body, the outermost last: MuJoCo may have several on one body."""
    name, parent = _name(model, "body", b), _name(model, "body", int(model.body_parentid[b]))
    those = range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))
    if not len(those):
        return [SideJoint("", "fixed", parent, name)]
    names = [_name(model, "joint", j) for j in those]
    between = [f"{name} before {after}" for after in names[1:]]
    ends = [parent, *between, name]
    return [_joint(model, data, j, ends[k], ends[k + 1]) for k, j in enumerate(those)]


def _whole(model: Any, data: Any, b: int) -> tuple[SideJoint, list[str]] | None:
    """What the joints of a body are together, and their names; None if that has no name."""
    those = range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))
    kind = SEVERAL.get(tuple(KINDS[int(model.jnt_type[j])] for j in those))
    if kind is None:
        return None
    names, last = [_name(model, "joint", j) for j in those], those[-1]
    own = PARTS.sub("", names[0])
    name, parent = _name(model, "body", b), _name(model, "body", int(model.body_parentid[b]))
    axis, anchor = data.xaxis[last].copy(), data.xanchor[last].copy()
    return SideJoint(own, kind, parent, name, axis, anchor, None, None, laws=None), names


def _joint(model: Any, data: Any, j: int, parent: str, child: str) -> SideJoint:
    own, kind = _name(model, "joint", j), KINDS[int(model.jnt_type[j])]
    axis, anchor = data.xaxis[j].copy(), data.xanchor[j].copy()
    if kind in ("floating", "spherical"):
        return SideJoint(own, kind, parent, child, axis, anchor, None, None, laws=None)
    v = int(model.jnt_dofadr[j])
    lower, upper = map(float, model.jnt_range[j]) if model.jnt_limited[j] else (-math.inf, math.inf)
    out = SideJoint(own, kind, parent, child, axis, anchor, lower, upper)
    out.effort_lower, out.effort = effort_range(model, j)
    out.damping, out.friction = _first(model.dof_damping[v]), float(model.dof_frictionloss[v])
    out.armature, out.stiffness = float(model.dof_armature[v]), _first(model.jnt_stiffness[j])
    out.laws, out.drives = laws_of(model, j), len(actuators_of(model, j))
    return out


def _first(value: Any) -> float:
    """The linear coefficient: newer versions of MuJoCo keep a polynomial."""
    return float(np.ravel(value)[0])


def _shape(model: Any, k: int) -> SideShape | None:
    kind = GEOMS.get(int(model.geom_type[k]), "other")
    pose, size = _pose(model.geom_quat[k], model.geom_pos[k]), tuple(map(float, model.geom_size[k]))
    if kind == "mesh":
        m = int(model.geom_dataid[k])
        # MuJoCo moves a mesh to its centre and principal axes; mesh_pos and mesh_quat undo that.
        pose = pose @ _pose(model.mesh_quat[m], model.mesh_pos[m]).inverse()
        at = int(model.mesh_pathadr[m])
        file = bytes(model.paths[at:]).split(b"\0", 1)[0].decode(errors="replace") if at >= 0 else ""
        return SideShape(kind, tuple(map(float, model.mesh_scale[m])), pose, file or model.mesh(m).name)
    sizes = {
        "box": tuple(2.0 * x for x in size),
        "sphere": size[:1],
        "cylinder": (size[0], 2.0 * size[1]),
        "capsule": (size[0], 2.0 * size[1]),
    }
    return SideShape(kind, sizes.get(kind, size), pose)


def _pose(quat_wxyz: Any, position: Any) -> Placement:
    w, x, y, z = (float(c) for c in quat_wxyz)
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return Placement(R, np.array([float(c) for c in position]))
