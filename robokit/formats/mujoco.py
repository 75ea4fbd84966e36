"""MJCF, or a URDF, as MuJoCo reads it: bodies, joints, equality constraints, tendons, ranges of effort."""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError, listed
from robokit.formats.description import (
    WORLD,
    DescribedBody,
    DescribedJoint,
    DescribedLoop,
    DescribedShape,
    Description,
    Law,
    Relation,
    frame_along,
)
from robokit.formats.other_programs import one_line
from robokit.model.geometry import Placement
from robokit.spatial.rotation import quat_wxyz_to_rotation

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


def read_mujoco(path: str | os.PathLike[str], folder: str = "") -> Description:
    """Read a file through MuJoCo, with MuJoCo's own defaults.

    Args:
        folder: where names of meshes start from, if that is not the file's own folder.

    Mesh files that are missing or that MuJoCo cannot read are left out; a note says so.

    Raises:
        RobokitError: MuJoCo refuses the file.
    """
    notes: list[str] = []
    model, spec = compiled(Path(path), notes, folder=folder)
    urdf = Path(path).suffix.lower() in (".urdf", ".xacro")
    if model.nbody == 1 and not model.ngeom and not urdf:
        raise RobokitError(f"{path}: no body in it; give the file of a robot, with its <include>s beside it")
    side = describe_model(model, "URDF through MuJoCo" if urdf else "MJCF", os.fspath(path))
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


def _merged_root(path: Path, side: Description) -> str:
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


def compiled(path: Path, notes: list[str], lenient: bool = True, folder: str = "") -> tuple[Any, Any]:
    """The model (``mujoco.MjModel``) and its ``MjSpec``.

    Args:
        notes: what MuJoCo says is added.
        lenient: read a file without its meshes where it cannot be read with them.
        folder: as for ``read_mujoco``.

    Raises:
        RobokitError: MuJoCo refuses the file.
    """
    import mujoco

    def parsed() -> Any:
        spec = mujoco.MjSpec.from_file(str(path))
        spec.modelfiledir = folder or spec.modelfiledir
        return spec

    told: list[str] = []
    mujoco.set_mju_user_warning(told.append)  # else MuJoCo writes MUJOCO_LOG.TXT where the user is
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = _with_meshes_or_without(mujoco, parsed, path, notes, lenient)
    finally:
        mujoco.set_mju_user_warning(None)
    for message in dict.fromkeys(" ".join(text.split()) for text in [*told, *(str(x.message) for x in said)]):
        notes.append(f"MuJoCo: {message}")
    return found


def _with_meshes_or_without(
    mujoco: Any, parsed: Any, path: Path, notes: list[str], lenient: bool
) -> tuple[Any, Any]:
    try:
        spec = parsed()
        return spec.compile(), spec
    except Exception as refusal:  # of any type: it is another program's
        first = one_line(refusal)
        if not lenient:
            raise RobokitError(f"{path}: MuJoCo cannot load it: {first}") from None
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


def describe_model(model: Any, format: str, file: str = "") -> Description:
    """The side of a compiled model (``mujoco.MjModel``)."""
    import mujoco

    data = data_at_zero(model)
    bodies, joints = {}, []
    for b in range(model.nbody):
        body = _body(model, data, b)
        for joint in _joints(model, data, b) if b else []:
            if joint.child != body.name:  # several joints are a chain with bodies without mass between them
                place = Placement(body.pose.rotation, joint.anchor)
                bodies[joint.child] = DescribedBody(joint.child, place)
            joints.append(joint)
        bodies[body.name] = body
    for k in range(model.nsite):
        body = bodies[name_of(model, "body", int(model.site_bodyid[k]))]
        body.frames[model.site(k).name] = placement_of(model.site_quat[k], model.site_pos[k])
    for k in range(model.ngeom):
        shape = described_shape(model, k)
        body = bodies[name_of(model, "body", int(model.geom_bodyid[k]))]
        floor = body.static and int(model.geom_type[k]) in GROUNDS
        if not floor and shape is not None and (model.geom_contype[k] or model.geom_conaffinity[k]):
            body.collisions = (*body.collisions, shape)
    roots = [j for j in joints if j.parent == WORLD]
    side = Description(format, file, "", bodies, joints, gravity=np.array(model.opt.gravity))
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


def data_at_zero(model: Any) -> Any:
    """``MjData`` with all coordinates at zero; a free body and balls stay where they are."""
    import mujoco

    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    for j in range(model.njnt):
        if KINDS[int(model.jnt_type[j])] in ("prismatic", "revolute"):
            data.qpos[model.jnt_qposadr[j]] = 0.0
    mujoco.mj_kinematics(model, data)
    return data


def name_of(model: Any, kind: str, k: int) -> str:
    """The name of an element of a model, or its kind and number."""
    return str(getattr(model, kind)(k).name) or f"{kind}_{k}"


def _body(model: Any, data: Any, b: int) -> DescribedBody:
    name = name_of(model, "body", b)
    axes = placement_of(model.body_iquat[b], model.body_ipos[b])
    R = axes.rotation
    return DescribedBody(
        name,
        Placement(data.xmat[b].reshape(3, 3).copy(), data.xpos[b].copy()),
        float(model.body_mass[b]),
        axes.position,
        R @ np.diag(model.body_inertia[b]) @ R.T,
        gravity=1.0 - float(model.body_gravcomp[b]),
        static=b == 0,
    )


def _joints(model: Any, data: Any, b: int) -> list[DescribedJoint]:
    """The joints that carry a body, the outermost last: MuJoCo may have several on one body."""
    name, parent = name_of(model, "body", b), name_of(model, "body", int(model.body_parentid[b]))
    those = range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))
    if not len(those):
        return [DescribedJoint("", "fixed", parent, name)]
    taken = {name_of(model, "body", k) for k in range(model.nbody)} if len(those) > 1 else set()
    between = [f"{name_of(model, 'joint', j)}_link" for j in those[:-1]]
    between = [f"{own}_frame" if own in taken else own for own in between]
    ends = [parent, *between, name]
    return [_joint(model, data, j, ends[k], ends[k + 1]) for k, j in enumerate(those)]


def _whole(model: Any, data: Any, b: int) -> tuple[DescribedJoint, list[str]] | None:
    """The one kind of joint that the joints of a body form, and their names; None if it has no name."""
    those = range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))
    kind = SEVERAL.get(tuple(KINDS[int(model.jnt_type[j])] for j in those))
    if kind is None:
        return None
    names, last = [name_of(model, "joint", j) for j in those], those[-1]
    own = PARTS.sub("", names[0])
    name, parent = name_of(model, "body", b), name_of(model, "body", int(model.body_parentid[b]))
    axis, anchor = data.xaxis[last].copy(), data.xanchor[last].copy()
    return DescribedJoint(own, kind, parent, name, axis, anchor, None, None, laws=None), names


def _joint(model: Any, data: Any, j: int, parent: str, child: str) -> DescribedJoint:
    own, kind = name_of(model, "joint", j), KINDS[int(model.jnt_type[j])]
    axis, anchor = data.xaxis[j].copy(), data.xanchor[j].copy()
    v = int(model.jnt_dofadr[j])
    if kind in ("floating", "spherical"):
        out = DescribedJoint(own, kind, parent, child, axis, anchor, None, None, laws=None)
        out.damping, out.friction = first_number(model.dof_damping[v]), float(model.dof_frictionloss[v])
        out.armature = float(model.dof_armature[v])
        return out
    lower, upper = map(float, model.jnt_range[j]) if model.jnt_limited[j] else (-math.inf, math.inf)
    out = DescribedJoint(own, kind, parent, child, axis, anchor, lower, upper)
    out.effort_lower, out.effort = effort_range(model, j)
    out.damping, out.friction = first_number(model.dof_damping[v]), float(model.dof_frictionloss[v])
    out.armature, out.stiffness = float(model.dof_armature[v]), first_number(model.jnt_stiffness[j])
    for k in actuators_of(model, j):  # an actuator has a rotor and damping of its own, from MuJoCo 4 on
        gear = float(model.actuator_gear[k, 0])
        for name in ("armature", "damping"):
            table = getattr(model, f"actuator_{name}", None)
            more = 0.0 if table is None else gear * gear * first_number(table[k])
            setattr(out, name, (getattr(out, name) or 0.0) + more)
    out.rest = float(model.qpos_spring[model.jnt_qposadr[j]])
    out.laws, out.drives = laws_of(model, j), len(actuators_of(model, j))
    return out


def first_number(value: Any) -> float:
    """The linear coefficient: newer versions of MuJoCo keep a polynomial."""
    return float(np.ravel(value)[0])


def described_shape(model: Any, k: int) -> DescribedShape | None:
    """A geom as a shape in its body's frame."""
    kind = GEOMS.get(int(model.geom_type[k]), "other")
    pose, size = placement_of(model.geom_quat[k], model.geom_pos[k]), tuple(map(float, model.geom_size[k]))
    if kind == "mesh":
        m = int(model.geom_dataid[k])
        # MuJoCo moves a mesh to its centre and principal axes; mesh_pos and mesh_quat undo that.
        pose = pose @ placement_of(model.mesh_quat[m], model.mesh_pos[m]).inverse()
        at = int(model.mesh_pathadr[m])
        file = bytes(model.paths[at:]).split(b"\0", 1)[0].decode(errors="replace") if at >= 0 else ""
        return DescribedShape(kind, tuple(map(float, model.mesh_scale[m])), pose, file or model.mesh(m).name)
    sizes = {
        "box": tuple(2.0 * x for x in size),
        "sphere": size[:1],
        "cylinder": (size[0], 2.0 * size[1]),
        "capsule": (size[0], 2.0 * size[1]),
    }
    return DescribedShape(kind, sizes.get(kind, size), pose)


def placement_of(quat_wxyz: Any, position: Any) -> Placement:
    """A quaternion (4,) and a position (3,) as a pose."""
    R = quat_wxyz_to_rotation([float(c) for c in quat_wxyz]).rows
    return Placement(np.array(R), np.array([float(c) for c in position]))


# What couples joints and closes loops in a model of MuJoCo: equality constraints and fixed tendons
# -------------------------------------------------------------------------------------------------


def laws_of(model: Any, j: int) -> tuple[Law, ...]:
    """Mimic laws: equality constraints between two joints, about their reference positions."""
    import mujoco

    laws = []
    for k in _active(model, mujoco.mjtEq.mjEQ_JOINT):
        if int(model.eq_obj1id[k]) != j:
            continue
        other, data = int(model.eq_obj2id[k]), model.eq_data[k]
        own = float(model.qpos0[model.jnt_qposadr[j]])
        if other < 0:
            laws.append(Law("", 0.0, own + float(data[0])))
            continue
        theirs = float(model.qpos0[model.jnt_qposadr[other]])
        laws.append(_law(name_of(model, "joint", other), data[:5], theirs, own))
    return tuple(laws)


def _law(leader: str, factors: np.ndarray, reference: float, own: float) -> Law:
    """The law own + sum of factors[k] (x - reference)^k in powers of x."""
    about, total = np.polynomial.Polynomial([-reference, 1.0]), np.polynomial.Polynomial([own])
    for k, factor in enumerate(factors):
        if factor:
            total = total + float(factor) * about**k
    offset, multiplier, *curve = (float(x) for x in [*total.coef, 0.0, 0.0][: max(2, len(total.coef))])
    return Law(leader, multiplier, offset, tuple(curve))


def relations_of(model: Any) -> tuple[list[Relation], str]:
    """Equality constraints of fixed tendons, and the names of the tendons that are something else."""
    import mujoco

    found, used = [], set()
    for k in _active(model, mujoco.mjtEq.mjEQ_TENDON):
        first, second, data = int(model.eq_obj1id[k]), int(model.eq_obj2id[k]), model.eq_data[k]
        ours, theirs = sum_of_joints(model, first), {} if second < 0 else sum_of_joints(model, second)
        if ours is None or theirs is None or (second >= 0 and data[2:5].any()):
            continue
        # length - length0 = data[0] + data[1] (length of the other - length0 of the other)
        constant, factor = float(model.tendon_length0[first] + data[0]), float(data[1])
        factors = dict(ours)
        if second >= 0:
            constant -= factor * float(model.tendon_length0[second])
            for name, x in theirs.items():
                factors[name] = factors.get(name, 0.0) - factor * x
        found.append(Relation(str(model.tendon(first).name), factors, constant))
        used |= {first, second}
    used |= {t for t, _ in rods(model)}
    apart = [str(model.tendon(t).name) or f"tendon {t}" for t in range(model.ntendon) if t not in used]
    return found, listed(apart, 3)


def sum_of_joints(model: Any, t: int) -> dict[str, float] | None:
    """The factors of the joints of a fixed tendon; None for one that runs through space."""
    import mujoco

    wraps = range(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
    if any(int(model.wrap_type[w]) != mujoco.mjtWrap.mjWRAP_JOINT for w in wraps):
        return None
    names = [(int(model.wrap_objid[w]), float(model.wrap_prm[w])) for w in wraps]
    return {name_of(model, "joint", j): factor for j, factor in names}


def _active(model: Any, kind: int) -> Iterator[int]:
    return (k for k in range(model.neq) if int(model.eq_type[k]) == kind and model.eq_active0[k])


def loops_of(model: Any) -> list[DescribedLoop]:
    """Welds and connected points; two points that connect the same bodies are a hinge, more are a weld."""
    import mujoco

    found = []
    for k in _active(model, mujoco.mjtEq.mjEQ_WELD):
        first, second = _frames(
            model, k, model.eq_data[k, 3:6], model.eq_data[k, 6:10], model.eq_data[k, 0:3]
        )
        found.append(
            DescribedLoop(_equality_name(model, k), "fixed", first[0], second[0], first[1], second[1])
        )
    points: dict[tuple[str, str], list[tuple[str, np.ndarray, np.ndarray]]] = {}
    for k in _active(model, mujoco.mjtEq.mjEQ_CONNECT):
        (a, at), (b, there) = _frames(model, k, model.eq_data[k, 0:3], None, model.eq_data[k, 3:6])
        if (b, a) in points:
            a, at, b, there = b, there, a, at
        points.setdefault((a, b), []).append((_equality_name(model, k), at.position, there.position))
    for (a, b), those in points.items():
        kind, at, there = _joint_of_points(those)
        found.append(DescribedLoop(those[0][0], kind, a, b, at, there))
    return found + [rod for _, rod in rods(model)]


def rods(model: Any) -> Iterator[tuple[int, DescribedLoop]]:
    """Tendons between two sites whose length is held, by number."""
    import mujoco

    for k in _active(model, mujoco.mjtEq.mjEQ_TENDON):
        t, data = int(model.eq_obj1id[k]), model.eq_data[k]
        ends = ends_of(model, t)
        if int(model.eq_obj2id[k]) >= 0 or not ends:
            continue
        length = float(model.tendon_length0[t] + data[0])
        (a, at), (b, there) = ends
        yield t, DescribedLoop(str(model.tendon(t).name), "distance", a, b, at, there, 0, length)


def ends_of(model: Any, t: int) -> list[tuple[str, Placement]]:
    """The bodies and sites in them of a tendon between two sites; [] for any other."""
    import mujoco

    wraps = range(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))
    if [int(model.wrap_type[w]) for w in wraps] != [mujoco.mjtWrap.mjWRAP_SITE] * 2:
        return []
    sites = [int(model.wrap_objid[w]) for w in wraps]
    names = [name_of(model, "body", int(model.site_bodyid[site])) for site in sites]
    frames = [placement_of(model.site_quat[site], model.site_pos[site]) for site in sites]
    return list(zip(names, frames, strict=True))


def _equality_name(model: Any, k: int) -> str:
    import mujoco

    own = str(model.equality(k).name)
    if own or int(model.eq_objtype[k]) != mujoco.mjtObj.mjOBJ_SITE:
        return own
    return str(model.site(int(model.eq_obj1id[k])).name).removesuffix("_predecessor")


def _frames(
    model: Any, k: int, point: np.ndarray, turn: np.ndarray | None, other: np.ndarray
) -> tuple[tuple[str, Placement], tuple[str, Placement]]:
    """The bodies of a constraint, each with the frame in it that is held."""
    import mujoco

    ids = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == mujoco.mjtObj.mjOBJ_SITE:
        bodies = [int(model.site_bodyid[s]) for s in ids]
        frames = [placement_of(model.site_quat[s], model.site_pos[s]) for s in ids]
    else:
        bodies = list(ids)
        frames = [
            placement_of((1.0, 0, 0, 0) if turn is None else turn, point),
            placement_of((1.0, 0, 0, 0), other),
        ]
    names = [name_of(model, "body", b) for b in bodies]
    return (names[0], frames[0]), (names[1], frames[1])


def _joint_of_points(points: list[tuple[str, np.ndarray, np.ndarray]]) -> tuple[str, Placement, Placement]:
    """Kind and frames of what holds points (of one body, of the other) together."""
    _, at, there = points[0]
    rest = [(p - at, q - there) for _, p, q in points[1:] if np.linalg.norm(p - at) > 1e-9]
    if not rest:
        return "spherical", Placement(position=at), Placement(position=there)
    (x, y), *more = rest
    aside = next(((p, q) for p, q in more if np.linalg.norm(np.cross(x, p)) > 1e-9), None)
    if aside is None:
        return "revolute", frame_along(at, x), frame_along(there, y)
    return "fixed", _three(at, x, aside[0]), _three(there, y, aside[1])


def _three(origin: np.ndarray, x: np.ndarray, y: np.ndarray) -> Placement:
    """The frame with x along one vector and y in the plane of both."""
    first = x / np.linalg.norm(x)
    third = np.cross(x, y) / np.linalg.norm(np.cross(x, y))
    return Placement(np.column_stack([first, np.cross(third, first), third]), origin)


# The range of effort that a model of MuJoCo allows a joint
# ---------------------------------------------------------

JOINT_TRANSMISSIONS = (0, 1)
"""Types of transmission that act on a joint; the gear's first number is their factor."""

FREE = (-math.inf, math.inf)

Range = tuple[float, float]


def actuators_of(model: Any, j: int) -> list[int]:
    """The actuators of a joint."""
    return [
        k
        for k in range(model.nu)
        if int(model.actuator_trnid[k, 0]) == j and int(model.actuator_trntype[k]) in JOINT_TRANSMISSIONS
    ]


def effort_range(model: Any, j: int) -> Range:
    """The least and the largest effort of a joint [N m | N], infinite where there is no limit.

    An actuator makes gain * control + bias, within its range of force, times its gear; what the actuators of
    a joint make together stays within the joint's own range.
    """
    lower = upper = 0.0
    own = actuators_of(model, j)
    for k in own:
        gear = float(model.actuator_gear[k, 0])
        least, most = sorted(gear * x for x in actuator_range(model, k)) if gear else (0.0, 0.0)
        lower, upper = lower + least, upper + most
    if not own:
        lower, upper = FREE
    if model.jnt_actfrclimited[j]:
        lower = max(lower, float(model.jnt_actfrcrange[j, 0]))
        upper = min(upper, float(model.jnt_actfrcrange[j, 1]))
    return lower, upper


def actuator_range(model: Any, k: int) -> Range:
    """The least and the largest force of an actuator, gear left out, infinite where there is no limit."""
    import mujoco

    lower, upper = FREE
    constant = float(model.actuator_biasprm[k, 0]) if int(model.actuator_biastype[k]) else 0.0
    plain = int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE or (
        # A bias of position or velocity makes forces that no range of controls bounds.
        int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_AFFINE
        and not model.actuator_biasprm[k, 1:3].any()
    )
    fixed = int(model.actuator_gaintype[k]) == mujoco.mjtGain.mjGAIN_FIXED
    # The control of an integrator is the rate of what acts, and a muscle has a gain of its own.
    dynamic = int(model.actuator_dyntype[k]) not in (
        mujoco.mjtDyn.mjDYN_NONE,
        mujoco.mjtDyn.mjDYN_FILTER,
        mujoco.mjtDyn.mjDYN_FILTEREXACT,
    )
    if plain and fixed and not dynamic and model.actuator_ctrllimited[k]:
        gain = float(model.actuator_gainprm[k, 0])
        lower, upper = sorted(gain * float(c) + constant for c in model.actuator_ctrlrange[k])
    if model.actuator_forcelimited[k]:
        lower = max(lower, float(model.actuator_forcerange[k, 0]))
        upper = min(upper, float(model.actuator_forcerange[k, 1]))
    return lower, upper
