"""MJCF, or a URDF, as MuJoCo reads it: bodies, joints, equality constraints, tendons, ranges of effort."""

from __future__ import annotations

import contextlib
import math
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import Diagnostic, RobokitError, listed
from robokit.formats.description import (
    WORLD,
    DescribedActuator,
    DescribedBody,
    DescribedGround,
    DescribedJoint,
    DescribedLoop,
    DescribedScene,
    DescribedShape,
    DescribedSpring,
    Description,
    Law,
    Relation,
    ellipsoid_mesh,
    frame_along,
)
from robokit.formats.other_programs import one_line
from robokit.model.geometry import Placement
from robokit.spatial.rotation import quat_wxyz_to_rotation

KINDS = {0: "floating", 1: "spherical", 2: "prismatic", 3: "revolute"}  # free, ball, slide, hinge

SEVERAL = {
    ("prismatic", "prismatic", "prismatic", "spherical"): "floating",
    ("prismatic", "prismatic", "revolute"): "planar",
}
"""Types of all joints of one body -> the joint that they may be together."""

PARTS = re.compile(r"_(TX|TY|TZ|RZ|R)$")
"""What MuJoCo and robokit add to the name of a planar or floating joint for the joints that it becomes."""

GEOMS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box", 7: "mesh"}

GROUNDS = (0, 1)  # planes and height fields: on the fixed frame they are the scene's, not the robot's
NO_MESHES = "read without meshes"  # beginning of the note about meshes that MuJoCo cannot have


def read_mujoco(path: str | os.PathLike[str], folder: str = "") -> Description:
    """Read a file through MuJoCo, with its own defaults; RobokitError where it refuses the file.

    ``folder`` is where names of meshes start from, if that is not the file's own. Mesh files that are missing
    or that MuJoCo cannot read are left out; a note says so.
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
    """The model (``mujoco.MjModel``) and its ``MjSpec``; RobokitError where MuJoCo refuses the file.

    What MuJoCo says is added to ``notes``. ``lenient``: read a file without its meshes where it cannot be
    read with them. ``folder`` is as for ``read_mujoco``.
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
        name = name_of(model, "body", b)
        axes = placement_of(model.body_iquat[b], model.body_ipos[b])
        R = axes.rotation
        body = DescribedBody(
            name,
            Placement(data.xmat[b].reshape(3, 3).copy(), data.xpos[b].copy()),
            float(model.body_mass[b]),
            axes.position,
            R @ np.diag(model.body_inertia[b]) @ R.T,
            gravity=1.0 - float(model.body_gravcomp[b]),
            static=b == 0,
        )
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


def names_of(model: Any, kind: str, count: int) -> list[str]:
    """The names of all elements of a kind."""
    return [name_of(model, kind, k) for k in range(count)]


def _joints(model: Any, data: Any, b: int) -> list[DescribedJoint]:
    """The joints that carry a body, the outermost last: MuJoCo may have several on one body."""
    name, parent = name_of(model, "body", b), name_of(model, "body", int(model.body_parentid[b]))
    those = _joints_of(model, b)
    if not len(those):
        return [DescribedJoint("", "fixed", parent, name)]
    taken = {name_of(model, "body", k) for k in range(model.nbody)} if len(those) > 1 else set()
    between = [f"{name_of(model, 'joint', j)}_link" for j in those[:-1]]
    between = [f"{own}_frame" if own in taken else own for own in between]
    ends = [parent, *between, name]
    return [_joint(model, data, j, ends[k], ends[k + 1]) for k, j in enumerate(those)]


def _joints_of(model: Any, b: int) -> range:
    return range(int(model.body_jntadr[b]), int(model.body_jntadr[b] + model.body_jntnum[b]))


def _whole(model: Any, data: Any, b: int) -> tuple[DescribedJoint, list[str]] | None:
    """The one kind of joint that the joints of a body form, and their names; None if it has no name."""
    those = _joints_of(model, b)
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
        gear = gear_of(model, k)
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
        file = _path(model, int(model.mesh_pathadr[m])) or model.mesh(m).name
        return DescribedShape(kind, tuple(map(float, model.mesh_scale[m])), pose, file)
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


# ---- What couples joints and closes loops in a model of MuJoCo: equality constraints and fixed tendons


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
    return Law.of(leader, total)


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

    wraps = _wraps(model, t)
    if any(int(model.wrap_type[w]) != mujoco.mjtWrap.mjWRAP_JOINT for w in wraps):
        return None
    names = [(int(model.wrap_objid[w]), float(model.wrap_prm[w])) for w in wraps]
    return {name_of(model, "joint", j): factor for j, factor in names}


def _wraps(model: Any, t: int) -> range:
    """What a tendon runs over."""
    return range(int(model.tendon_adr[t]), int(model.tendon_adr[t] + model.tendon_num[t]))


def _active(model: Any, kind: int) -> Iterator[int]:
    return (k for k in range(model.neq) if int(model.eq_type[k]) == kind and model.eq_active0[k])


def loops_of(model: Any) -> list[DescribedLoop]:
    """Welds and connected points; two points that connect the same bodies are a hinge, more are a weld."""
    import mujoco

    found = []
    for k in _active(model, mujoco.mjtEq.mjEQ_WELD):
        data = model.eq_data[k]
        (a, at), (b, there) = _frames(model, k, data[3:6], data[6:10], data[0:3])
        found.append(DescribedLoop(_equality_name(model, k), "fixed", a, b, at, there))
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

    wraps = _wraps(model, t)
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
        bodies, none = list(ids), (1.0, 0.0, 0.0, 0.0)
        frames = [placement_of(none if turn is None else turn, point), placement_of(none, other)]
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


# ---- The range of effort that a model of MuJoCo allows a joint -----------------------------------

JOINT_TRANSMISSIONS = (0, 1)  # types that act on a joint; the gear's first number is their factor

FREE = (-math.inf, math.inf)

Range = tuple[float, float]


def actuators_of(model: Any, j: int) -> list[int]:
    """The actuators of a joint."""
    return [
        k
        for k in range(len(model.actuator_trnid))
        if int(model.actuator_trnid[k, 0]) == j and int(model.actuator_trntype[k]) in JOINT_TRANSMISSIONS
    ]


def gear_of(model: Any, k: int) -> float:
    """The first number of an actuator's gear; from MuJoCo 4 on, an actuator may have several forces."""
    first = getattr(model, "actuator_outadr", None)
    return float(model.actuator_gear[k if first is None else int(first[k]), 0])


def control_ranges(model: Any, k: int) -> list[Range]:
    """The limited ranges of an actuator's controls; from MuJoCo 4 on, it may have none, or several."""
    first, count = (getattr(model, f"actuator_ctrl{what}", None) for what in ("adr", "num"))
    those = [k] if first is None or count is None else range(int(first[k]), int(first[k]) + int(count[k]))
    return [
        (float(model.actuator_ctrlrange[c, 0]), float(model.actuator_ctrlrange[c, 1]))
        for c in those
        if model.actuator_ctrllimited[c]
    ]


def effort_range(model: Any, j: int) -> Range:
    """The least and the largest effort of a joint [N m | N], infinite where there is no limit.

    An actuator makes gain * control + bias, within its range of force, times its gear; what the actuators of
    a joint make together stays within the joint's own range.
    """
    lower = upper = 0.0
    own = actuators_of(model, j)
    for k in own:
        gear = gear_of(model, k)
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
    if plain and fixed and _follows_control(model, k):
        gain = float(model.actuator_gainprm[k, 0])
        for ends in control_ranges(model, k):
            lower, upper = sorted(gain * c + constant for c in ends)
    if model.actuator_forcelimited[k]:
        lower = max(lower, float(model.actuator_forcerange[k, 0]))
        upper = min(upper, float(model.actuator_forcerange[k, 1]))
    return lower, upper


def _follows_control(model: Any, k: int) -> bool:
    """Whether the control of an actuator acts, be it filtered.

    That of an integrator is the rate of what acts, and a muscle has a gain of its own.
    """
    from mujoco import mjtDyn

    filters = mjtDyn.mjDYN_NONE, mjtDyn.mjDYN_FILTER, mjtDyn.mjDYN_FILTEREXACT
    return int(model.actuator_dyntype[k]) in filters


# ==== mujoco scene ================================================================================
# What a model of MuJoCo has beside bodies and joints: looks, actuators, ground, keyframes, pairs that touch.
#
# What robokit's robots have no counterpart for is said, one diagnostic for each kind of thing.

UNNAMED = "MuJoCo Model"  # the name that MuJoCo gives a model without one
SEEN_GROUPS = 3  # MuJoCo's viewer shows the groups of geoms below it, unless told otherwise
GRAY = (0.5, 0.5, 0.5, 1.0)  # colour of a geom that has none: then its material's counts

MOTION_FLAGS = tuple(
    f"mjDSBL_{flag}"
    for flag in (
        *("CONSTRAINT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT", "PASSIVE", "SPRING", "DAMPER"),
        *("ACTUATION", "FILTERPARENT"),
    )
)
"""Flags of MuJoCo that switch off what moves a robot; PASSIVE is SPRING and DAMPER of older versions."""

TRANSMISSIONS = ("joint", "jointinparent", "slidercrank", "tendon", "site", "body", "relative orientation")
"""Names of MuJoCo's types of transmission."""


def read_mujoco_robot(path: str, folder: str = "") -> Description:
    """Read an MJCF with all that a robot and its surroundings can have of it.

    Arguments are as for ``read_mujoco``. Raises RobokitError where MuJoCo refuses the file, or it has no
    body.
    """
    notes: list[str] = []
    model, spec = compiled(Path(path), notes, lenient=False, folder=folder)
    if model.nbody == 1:
        raise RobokitError(
            f"{path}: no body in it; give the file of a robot, not one that only others include"
        )
    side = describe_model(model, "MJCF", path)
    side.name = Path(path).stem if spec.modelname in ("", UNNAMED) else str(spec.modelname)
    add_scene(side, model, data_at_zero(model), spec)
    side.said += [Diagnostic("warning", "reader", "the file", path, 0, note) for note in notes]
    return side


def add_scene(side: Description, model: Any, data: Any, spec: Any) -> None:
    """Add to the description of a model what it has beside bodies and joints.

    ``data`` is an ``MjData`` with the kinematics at zero, ``spec`` the ``mujoco.MjSpec`` that was compiled.
    """
    scene = side.scene = DescribedScene()
    scene.dt = float(model.opt.timestep)
    says = side.say
    _shapes(side, model, spec, says)
    _grounds(scene, model, data, spec, says)
    _apart(scene, model, says)
    _actuators(scene, model, says)
    _springs(side, scene, model, says)
    # Keyframes, and where the bodies are in the file itself ("initial").
    scene.configurations["initial"] = _configuration(model, model.qpos0)
    moving = []
    for k in range(model.nkey):
        name = name_of(model, "key", k)
        scene.configurations[name] = _configuration(model, model.key_qpos[k])
        if model.key_qvel[k].any() or model.key_act[k].any() or model.key_ctrl[k].any():
            moving.append(name)
    says("ignored", "keyframes", moving, "only positions are kept: no velocities, controls, activations")
    _say_of_joints(model, side, says)
    _say_of_constraints(model, says)
    _say_of_contacts(model, says)
    _say_of_the_rest(model, says)


Says = Callable[..., None]  # :meth:`Description.say` of the description that is read

# ---- Shapes: what is seen and what touches -------------------------------------------------------


def _shapes(side: Description, model: Any, spec: Any, says: Says) -> None:
    for body in side.bodies.values():
        body.collisions = body.visuals = ()
    moved, spheroids, planes, sdf, hidden = _meshes_apart(spec), [], [], [], []
    for k in range(model.ngeom):
        b = int(model.geom_bodyid[k])
        if not b:
            continue  # shapes of the world are its ground
        kind = int(model.geom_type[k])
        if kind in (0, 1):
            planes.append(name_of(model, "geom", k))
            continue
        if kind not in GEOMS and kind != 4:
            sdf.append(name_of(model, "geom", k))
            continue
        if kind == 4:
            spheroids.append(name_of(model, "geom", k))
        shape = _shape(model, k, moved)
        body = side.bodies[name_of(model, "body", b)]
        if _touches(model, k):
            body.collisions = (*body.collisions, shape)
        if int(model.geom_group[k]) < SEEN_GROUPS:
            body.visuals = (*body.visuals, shape)
        elif not _touches(model, k):
            hidden.append(name_of(model, "geom", k))
    says("rewritten", "ellipsoids", spheroids, "a convex mesh, at most 0.5 % inside")
    says("left-out", "surfaces of bodies", planes, "only planes and height fields of the world are read")
    says("left-out", "geoms of other types", sdf, "signed distance fields are not supported")
    says("ignored", "hidden geoms", hidden, "neither colliding nor in a visible group")
    textures = [str(model.tex(t).name) or f"texture_{t}" for t in range(model.ntex) if _is_plain(model, t)]
    says("ignored", "textures", textures, "only image files of 2d textures are shown")
    says("ignored", "skins", names_of(model, "skin", model.nskin), "not shown")


def _touches(model: Any, k: int) -> bool:
    paired = (model.pair_geom1 == k).any() or (model.pair_geom2 == k).any()
    return bool(model.geom_contype[k] or model.geom_conaffinity[k] or paired)


def _meshes_apart(spec: Any) -> set[str]:
    """Names of meshes that are not what their file says: they have no file, or are moved in it."""
    found = set()
    for mesh in spec.meshes:
        ending = str(mesh.file).rpartition(".")[2].lower()
        moved = np.any(np.asarray(mesh.refpos)) or not np.allclose(np.asarray(mesh.refquat), (1, 0, 0, 0))
        if moved or ending not in ("stl", "obj"):
            found.add(str(mesh.name))
    return found


def _shape(model: Any, k: int, apart: set[str]) -> DescribedShape:
    kind = int(model.geom_type[k])
    own = str(model.geom(k).name)
    looks: dict[str, Any] = {"name": own, "friction": _friction(model, k), **_looks(model, k)}
    world = model.geom_bodyid == 0
    if world.any():
        above = int(model.geom_priority[k]) - int(model.geom_priority[world].max())
        looks |= {"prior": above > 0, "friction": 0.0 if above < 0 else looks["friction"]}
    pose = placement_of(model.geom_quat[k], model.geom_pos[k])
    if kind == 4:
        points, faces = ellipsoid_mesh(model.geom_size[k])
        name = own or f"ellipsoid_{k}"
        return DescribedShape("mesh", (1.0,) * 3, pose, name, points=points, faces=faces, **looks)
    shape = described_shape(model, k)
    assert shape is not None
    if kind == 7:
        m = int(model.geom_dataid[k])
        name = str(model.mesh(m).name)
        if name in apart or int(model.mesh_pathadr[m]) < 0:
            points, faces = _points_and_faces(model, m)
            return DescribedShape("mesh", (1.0,) * 3, shape.pose, name, points=points, faces=faces, **looks)
    return DescribedShape(shape.kind, shape.size, shape.pose, shape.file, **looks)


def _points_and_faces(model: Any, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in the mesh's own frame, as written and scaled, and faces."""
    first, count = int(model.mesh_vertadr[m]), int(model.mesh_vertnum[m])
    face, faces = int(model.mesh_faceadr[m]), int(model.mesh_facenum[m])
    own = placement_of(model.mesh_quat[m], model.mesh_pos[m])  # MuJoCo's frame, at the centre of mass
    points = np.array(model.mesh_vert[first : first + count], dtype=float) @ own.rotation.T + own.position
    return points, np.array(model.mesh_face[face : face + faces], dtype=np.int64)


def _looks(model: Any, k: int) -> dict[str, Any]:
    """Colour of a geom, and the image of its material."""
    rgba, material = _rgba(model.geom_rgba[k]), int(model.geom_matid[k])
    if material < 0:
        return {"rgba": rgba}
    if np.allclose(rgba, GRAY):
        rgba = _rgba(model.mat_rgba[material])
    for t in np.ravel(model.mat_texid[material]):
        if t >= 0 and not _is_plain(model, int(t)):
            return {"rgba": rgba, "texture": _path(model, int(model.tex_pathadr[int(t)]))}
    return {"rgba": rgba}


def _rgba(row: Any) -> tuple[float, ...]:
    """A colour as it was written: MuJoCo keeps it in single precision."""
    return tuple(round(float(x), 6) for x in row)


def _is_plain(model: Any, t: int) -> bool:
    """Whether a texture is no image of a file on a surface: computed, a cube, or a sky."""
    return int(model.tex_type[t]) != 0 or int(model.tex_pathadr[t]) < 0


def _path(model: Any, at: int) -> str:
    return bytes(model.paths[at:]).split(b"\0", 1)[0].decode(errors="replace") if at >= 0 else ""


def _friction(model: Any, k: int) -> float:
    """Coulomb coefficient: a contact of dimension 1 has none."""
    return float(model.geom_friction[k, 0]) if int(model.geom_condim[k]) > 1 else 0.0


# ---- What is at rest: the world's own geoms and bodies that nothing moves ------------------------


def scenery(model: Any) -> set[int]:
    """Bodies at rest that carry nothing that moves: furniture. The world is among them."""
    moving = {b for b in range(model.nbody) if model.body_jntnum[b]}
    carries = set(moving)
    for b in sorted(moving, reverse=True):
        while b:
            carries.add(b)
            b = int(model.body_parentid[b])
    root_of = [int(model.body_rootid[b]) for b in range(model.nbody)]
    robots = {root_of[b] for b in carries} if moving else set(root_of)
    return {b for b in range(model.nbody) if root_of[b] not in robots} | {0}


def _grounds(scene: DescribedScene, model: Any, data: Any, spec: Any, says: Says) -> None:
    still, apart = scenery(model), _meshes_apart(spec)
    shown: list[str] = []
    uneven: list[str] = []
    for k in range(model.ngeom):
        if int(model.geom_bodyid[k]) not in still:
            continue
        name, kind = name_of(model, "geom", k), int(model.geom_type[k])
        if not _touches(model, k):
            shown.append(name)
            continue
        pose = Placement(data.geom_xmat[k].reshape(3, 3).copy(), data.geom_xpos[k].copy())
        friction = _friction(model, k)
        if kind == 0:
            spin, roll = (float(x) for x in model.geom_friction[k, 1:3])
            dim = int(model.geom_condim[k])
            more: dict[str, Any] = {"torsional": spin * (dim >= 4), "rolling": roll * (dim >= 6)}
            scene.grounds.append(DescribedGround("plane", pose, friction, name=name, **more))
        elif kind == 1:
            if not np.allclose(pose.rotation, np.eye(3), atol=1e-9):
                uneven.append(name)
                continue
            scene.grounds.append(_field(model, k, pose, friction))
        elif kind in GEOMS or kind == 4:
            shape = _shape(model, k, apart)
            here = placement_of(model.geom_quat[k], model.geom_pos[k])
            scene.grounds.append(DescribedGround("solid", pose @ here.inverse(), friction, shape))
        else:
            uneven.append(name)
    says("ignored", "geoms of the world", shown, "not shown: nothing can touch it")
    plane = next((g for g in scene.grounds if g.kind == "plane"), None)
    held = (plane.torsional, plane.rolling) if plane else (0.0, 0.0)
    turning = []
    for k in range(model.ngeom):
        if int(model.geom_bodyid[k]) not in still and _touches(model, k):
            dim, own = int(model.geom_condim[k]), model.geom_friction[k, 1:3]
            if (dim >= 4 and own[0] > held[0]) or (dim >= 6 and own[1] > held[1]):
                turning.append(name_of(model, "geom", k))
    text = "the ground's torsional and rolling friction holds for all links"
    says("rewritten", "geoms with condim 4 or 6", turning, text)
    says("left-out", "surfaces of the world", uneven, "a ground has planes, level height fields and solids")


def _field(model: Any, k: int, pose: Placement, friction: float) -> DescribedGround:
    f = int(model.geom_dataid[k])
    rows, columns = int(model.hfield_nrow[f]), int(model.hfield_ncol[f])
    at = int(model.hfield_adr[f])
    x, y, top, _ = (float(s) for s in model.hfield_size[f])
    heights = top * np.array(model.hfield_data[at : at + rows * columns], dtype=float)
    cell = 2.0 * x / (columns - 1), 2.0 * y / (rows - 1)
    corner = Placement(position=pose.position - np.array([x, y, 0.0]))
    return DescribedGround(
        "field", corner, friction, heights=heights.reshape(rows, columns).T.copy(), cell=cell
    )


def _apart(scene: DescribedScene, model: Any, says: Says) -> None:
    """Pairs of bodies that never touch: by their bits, or because the file excludes them."""
    still = scenery(model)
    geoms: dict[int, list[int]] = {}
    for k in range(model.ngeom):
        if _touches(model, k):
            geoms.setdefault(int(model.geom_bodyid[k]), []).append(k)
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in np.ravel(model.exclude_signature)}
    paired = {
        tuple(sorted((int(model.geom_bodyid[a]), int(model.geom_bodyid[b]))))
        for a, b in zip(np.ravel(model.pair_geom1), np.ravel(model.pair_geom2), strict=True)
    }
    partly, silent = [], []
    both = np.stack([model.geom_contype, model.geom_conaffinity], axis=1).tolist()
    bits = {b: frozenset(tuple(both[k]) for k in those) for b, those in geoms.items()}

    @lru_cache
    def meet(first: frozenset[tuple[int, int]], second: frozenset[tuple[int, int]]) -> tuple[bool, bool]:
        pairs = [bool(t1 & a2 or t2 & a1) for t1, a1 in first for t2, a2 in second]
        return any(pairs), all(pairs)

    robots = sorted(b for b in bits if b not in still)
    floors = frozenset().union(*(bits[b] for b in still if b in bits))
    for m, a in enumerate(robots):
        for b in robots[m + 1 :]:
            some, every = meet(bits[a], bits[b])
            out = (a, b) in excluded or (b, a) in excluded or not some
            if out and (a, b) not in paired:
                scene.apart.append((name_of(model, "body", a), name_of(model, "body", b)))
            elif not every:
                partly.append(f"{name_of(model, 'body', a)} and {name_of(model, 'body', b)}")
        if floors and not meet(bits[a], floors)[0]:
            silent.append(name_of(model, "body", a))
    says("rewritten", "pairs of bodies", partly, "in the file only some geoms collide; here all do")
    says("rewritten", "bodies", silent, "not colliding with the ground in the file; here it does")


# ---- What drives joints --------------------------------------------------------------------------


def _actuators(scene: DescribedScene, model: Any, says: Says) -> None:
    others: dict[str, list[str]] = {}
    scaled, delayed, clipped, pulling, disabled = [], [], [], [], []
    for k in range(len(model.actuator_trnid)):
        name = name_of(model, "actuator", k)
        if int(model.opt.disableactuator) >> int(model.actuator_group[k]) & 1:
            disabled.append(name)
            continue
        why = _not_taken(model, k)
        if why:
            others.setdefault(why, []).append(name)
            continue
        joint, gear = _transmission(model, k)
        effort = None
        if int(model.actuator_trntype[k]) not in JOINT_TRANSMISSIONS:
            pulling.append(name)
            effort = abs(gear) * max(map(abs, actuator_range(model, k)))
        constant, kp, kd = _bias(model, k)
        control = "position" if kp else "velocity" if kd else "torque"
        gain = kp if _is_pid(model, k) else float(model.actuator_gainprm[k, 0])
        if gain != {"position": kp, "velocity": kd, "torque": 1.0}[control] or constant or gear != 1.0:
            scaled.append(name)
        if int(model.actuator_dyntype[k]) or _has(model, "actuator_delay", k):
            delayed.append(name)
        if control_ranges(model, k):
            clipped.append(name)
        stiffness, damping = gear * gear * kp, gear * gear * kd
        scene.actuators.append(DescribedActuator(name, control, joint, stiffness, damping, effort))
    for why, names in others.items():
        says("left-out", "actuators", names, f"{why}: robokit drives joints of one coordinate")
    text = "acting on the joint that the tendon's others follow with mimic='couple'"
    says("rewritten", "actuators of tendons", pulling, text)
    text = "targets are forces, positions or velocities of the joint, without the file's factors and offsets"
    says("rewritten", "actuators", scaled, text)
    says("rewritten", "actuators", delayed, "acting at once; the file filters or delays the control")
    says("ignored", "disabled actuators", disabled, "left out")
    says("ignored", "ranges of control", clipped, "targets are not clipped; limits of force are kept")


def _bias(model: Any, k: int) -> tuple[float, float, float]:
    """Constant, stiffness and damping of an actuator's force."""
    import mujoco

    if int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE:
        return 0.0, 0.0, 0.0
    constant, by_position, by_velocity = (float(x) for x in model.actuator_biasprm[k, :3])
    return constant, 0.0 - by_position, 0.0 - by_velocity


def _is_pid(model: Any, k: int) -> bool:
    """Whether an actuator is MuJoCo 4's servo of position and velocity; with memory, it is no linear one."""
    import mujoco

    return int(model.actuator_gaintype[k]) == getattr(mujoco.mjtGain, "mjGAIN_PID", -1)


def _transmission(model: Any, k: int) -> tuple[str, float]:
    """The joint that an actuator drives, and the force on it per force of the actuator.

    A fixed tendon whose joints all follow one of them acts as if on that one: it has the sum of their forces,
    each as the joint moves with it. "" where there is no such joint.
    """
    gear, at = gear_of(model, k), int(model.actuator_trnid[k, 0])
    kind = TRANSMISSIONS[int(model.actuator_trntype[k])]
    if kind in ("joint", "jointinparent"):
        return name_of(model, "joint", at), gear
    factors = sum_of_joints(model, at) if kind == "tendon" else None
    if not factors:
        return "", 0.0
    follows = {
        name_of(model, "joint", j): laws[0]
        for j in range(model.njnt)
        if (laws := laws_of(model, j)) and not laws[0].curve and laws[0].leader
    }
    total: dict[str, float] = {}
    for name, factor in factors.items():
        for _ in range(model.njnt):  # a circle of laws has no leader
            if name not in follows:
                break
            factor *= follows[name].multiplier
            name = follows[name].leader
        total[name] = total.get(name, 0.0) + factor
    ((name, factor),) = total.items() if len(total) == 1 else [("", 0.0)]
    return (name, gear * factor) if factor else ("", 0.0)


def _not_taken(model: Any, k: int) -> str:
    """Why robokit has no such actuator; "" if it has."""
    import mujoco

    if int(model.actuator_trntype[k]) not in JOINT_TRANSMISSIONS:
        single = _transmission(model, k)[0]
        what = TRANSMISSIONS[int(model.actuator_trntype[k])]
        if not single:
            return f"acting on a {what}" + (" of joints that are not coupled" if what == "tendon" else "")
    elif KINDS[int(model.jnt_type[int(model.actuator_trnid[k, 0])])] not in ("revolute", "prismatic"):
        return "acting on a joint of several coordinates"
    biases = mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE
    if (
        (int(model.actuator_gaintype[k]) != mujoco.mjtGain.mjGAIN_FIXED and not _is_pid(model, k))
        or int(model.actuator_biastype[k]) not in biases
        or not _follows_control(model, k)
    ):
        return "with a force that is not linear in control, position and velocity"
    return "of negative stiffness or damping" if min(_bias(model, k)[1:]) < 0.0 else ""


# ---- Springs and dampers, of joints and of tendons -----------------------------------------------


def _springs(side: Description, scene: DescribedScene, model: Any, says: Says) -> None:
    """Springs of tendons between two sites or on one joint, and what is not linear in joints."""
    joints = {joint.name: joint for joint in side.joints}
    for j in range(model.njnt):
        joint = joints[name_of(model, "joint", j)]
        if joint.kind not in ("revolute", "prismatic"):
            continue
        stiff = _coefficients(model, "jnt_stiffness", j)[1:]
        damp = _coefficients(model, "dof_damping", int(model.jnt_dofadr[j]))[1:]
        for k in actuators_of(model, j):
            more = _coefficients(model, "actuator_damping", k)[1:]
            gear = abs(gear_of(model, k))
            damp = tuple(
                x + math.prod((y, *[gear] * n)) for n, (x, y) in enumerate(zip(damp, more, strict=True), 3)
            )
        if any(stiff + damp):
            own = DescribedSpring(joint.name, (0.0, *stiff), (0.0, *damp), joint.rest, joint.rest)
            joint.springs += (own,)
    others: dict[str, list[str]] = {}
    for t in range(model.ntendon):
        name = name_of(model, "tendon", t)
        stiff, damp = (_coefficients(model, f"tendon_{what}", t) for what in ("stiffness", "damping"))
        least, most = (float(x) for x in model.tendon_lengthspring[t])
        spring = DescribedSpring(name, stiff, damp, least, most)
        ends, factors = ends_of(model, t), sum_of_joints(model, t)
        acts = any(stiff + damp)
        ((joint_name, factor),) = factors.items() if factors and len(factors) == 1 else [("", 0.0)]
        if ends and ends[0][0] != ends[1][0]:
            points = tuple((body, pose.position) for body, pose in ends)
            scene.springs += [replace(spring, ends=points)] if acts else []
        elif acts and factor:
            joints[joint_name].springs += (_on_joint(spring, factor),)
        elif acts:
            what = "through space" if factors is None else "of several joints"
            others.setdefault(what, []).append(name)
    for what, names in others.items():
        text = "a tendon is a spring where it is between two sites, or on one joint"
        says("left-out", f"tendons with springs {what}", names, text)


def _coefficients(model: Any, name: str, k: int) -> tuple[float, ...]:
    """Coefficients of the powers of a force; before version 4, MuJoCo has the first."""
    first, more = getattr(model, name, None), getattr(model, f"{name}poly", None)
    rest = () if more is None else (float(x) for x in np.ravel(more[k]))
    return (0.0 if first is None else first_number(first[k]), *rest)


def _on_joint(spring: DescribedSpring, c: float) -> DescribedSpring:
    """A spring of length c q as one of the coordinate q of a joint, which feels c times the tension."""
    least, most = sorted((spring.least / c, spring.most / c))
    stiff = tuple(math.prod((x, *[c] * k)) for k, x in enumerate(spring.stiffness, 2))
    damp = tuple(math.prod((x, *[abs(c)] * k)) for k, x in enumerate(spring.damping, 2))
    return replace(spring, stiffness=stiff, damping=damp, least=least, most=most)


def _has(model: Any, name: str, k: int) -> bool:
    """Whether an element has numbers other than 0 in an array, which older versions of MuJoCo do not have."""
    array = getattr(model, name, None)
    return array is not None and bool(np.any(array[k]))


def _configuration(model: Any, qpos: Any) -> dict[str, tuple[float, ...]]:
    found = {}
    for j in range(model.njnt):
        at, kind = int(model.jnt_qposadr[j]), KINDS[int(model.jnt_type[j])]
        q = [float(x) for x in qpos[at : at + {"floating": 7, "spherical": 4}.get(kind, 1)]]
        if kind in ("floating", "spherical"):
            quat = np.array(q[-4:])
            quat = quat / (np.linalg.norm(quat) or 1.0)
            q = [*quat.tolist(), *q[:-4]]
        found[name_of(model, "joint", j)] = tuple(q)
    return found


# ---- What has no counterpart ---------------------------------------------------------------------


def _say_of_joints(model: Any, side: Description, says: Says) -> None:
    names = names_of(model, "joint", model.njnt)
    kinds = [KINDS[int(model.jnt_type[j])] for j in range(model.njnt)]
    several = [name_of(model, "body", b) for b in range(1, model.nbody) if int(model.body_jntnum[b]) > 1]
    text = "the joints follow each other, with links NAME_link without mass between them"
    says("rewritten", "bodies with several joints", several, text)
    balls = [n for j, n in enumerate(names) if kinds[j] == "spherical" and model.jnt_limited[j]]
    says("left-out", "limits of ball joints", balls, "a ball joint has none here")
    several_dofs = [(j, n) for j, n in enumerate(names) if kinds[j] in ("spherical", "floating")]
    springs = [n for j, n in several_dofs if any(_coefficients(model, "jnt_stiffness", j))]
    says("left-out", "springs of ball or free joints", springs, "only joints of one coordinate have springs")
    dof = model.jnt_dofadr
    free = [
        n
        for j, n in several_dofs
        if kinds[j] == "floating"
        and (first_number(model.dof_damping[dof[j]]) or model.dof_frictionloss[dof[j]])
    ]
    says("left-out", "damping or friction of free joints", free, "free joints have none here")
    yielding = [n for j, n in enumerate(names) if _has(model, "jnt_springyield", j)]
    says("left-out", "joints with springs that yield", yielding, "their springs are elastic here")
    curved = [n for j, n in several_dofs if any(_coefficients(model, "dof_damping", int(dof[j]))[1:])]
    says("left-out", "ball or free joints with nonlinear dampers", curved, "only the linear part is taken")
    mocap = [name_of(model, "body", b) for b in range(1, model.nbody) if int(model.body_mocapid[b]) >= 0]
    says("rewritten", "mocap bodies", mocap, "at rest")
    uneven = [
        j.name
        for j in side.joints
        if j.effort is not None
        and j.effort_lower is not None
        and not math.isclose(-j.effort_lower, j.effort)
        and math.isfinite(j.effort - j.effort_lower)
    ]
    text = "the larger of the two ends is the limit in both directions"
    says("rewritten", "ranges of effort", uneven, text)
    geared = [j.name for j in side.joints if j.kind == "floating" and j.armature]
    text = "it acts along the axes of the body, which turn with it; in MuJoCo along those of the world"
    says("rewritten", "free joints with armature", geared, text)


def _say_of_constraints(model: Any, says: Says) -> None:
    import mujoco

    names, types = names_of(model, "equality", model.neq), mujoco.mjtEq
    inactive = [n for k, n in enumerate(names) if not model.eq_active0[k]]
    says("ignored", "inactive constraints", inactive, "left out")
    kinds = types.mjEQ_CONNECT, types.mjEQ_WELD, types.mjEQ_JOINT, types.mjEQ_TENDON
    other = [n for k, n in enumerate(names) if int(model.eq_type[k]) not in kinds and model.eq_active0[k]]
    says("left-out", "constraints of other types", other, "connect, weld, joint and tendon are read")
    held = {t for t, _ in rods(model)}
    loose = []
    for k, n in enumerate(names):
        if int(model.eq_type[k]) == types.mjEQ_TENDON and model.eq_active0[k]:
            both = [int(t) for t in (model.eq_obj1id[k], model.eq_obj2id[k]) if t >= 0]
            if both[0] not in held and any(sum_of_joints(model, t) is None for t in both):
                loose.append(n)
    text = "a rod is a tendon between two sites of a constant length"
    says("left-out", "constraints of tendons through space", loose, text)
    acting = [
        n
        for t, n in enumerate(names_of(model, "tendon", model.ntendon))
        if model.tendon_limited[t]
        or model.tendon_frictionloss[t]
        or _has(model, "tendon_armature", t)
        or _has(model, "tendon_springyield", t)
    ]
    text = "limits, friction, armature and yield of tendons do not act"
    says("left-out", "tendons with more than a spring", acting, text)


def _say_of_contacts(model: Any, says: Says) -> None:
    touching = [(k, name_of(model, "geom", k)) for k in range(model.ngeom) if _touches(model, k)]
    pairs = list(enumerate(names_of(model, "pair", model.npair)))
    for kind, those in (("geom", touching), ("pair", pairs)):
        sticky = [n for k, n in those if _has(model, f"{kind}_adhesion", k)]
        says("left-out", f"{kind}s with adhesion", sticky, "contacts do not pull")
    driven = [n for k, n in touching if _has(model, "geom_surfacevel", k)]
    says("left-out", "geoms with a surface velocity", driven, "set Ground(velocity=...) for a conveyor belt")
    own = []
    for k, n in pairs:
        ends = int(model.pair_geom1[k]), int(model.pair_geom2[k])
        usual = np.maximum(*(model.geom_friction[g] for g in ends))[[0, 0, 1, 2, 2]]
        dim = max(int(model.geom_condim[g]) for g in ends)
        if int(model.pair_dim[k]) != dim or not np.allclose(model.pair_friction[k], usual):
            own.append(n)
    says("left-out", "pairs with friction of their own", own, "friction is that of the links")


def _say_of_the_rest(model: Any, says: Says) -> None:
    import mujoco

    sensors = names_of(model, "sensor", model.nsensor)
    says("ignored", "sensors", sensors, "a trajectory has its own measurements")
    says("ignored", "cameras", names_of(model, "cam", model.ncam), "the page has its own camera")
    says("ignored", "lights", names_of(model, "light", model.nlight), "the page has its own lights")
    flexes = [f"flex_{k}" for k in range(int(getattr(model, "nflex", 0)))]
    says("left-out", "flexes", flexes, "bodies are rigid")
    plugins = [f"plugin_{k}" for k in range(int(getattr(model, "nplugin", 0)))]
    says("left-out", "plugins", plugins, "programs for MuJoCo")
    option = model.opt
    fluid = [n for n in ("density", "viscosity") if getattr(option, n)] + ["wind"] * bool(option.wind.any())
    says("left-out", "options", fluid, "there is no fluid around a robot")
    override = ["o_friction"] * bool(option.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    says("left-out", "options", override, "friction is that of the geoms")
    off = [name for name in MOTION_FLAGS if option.disableflags & getattr(mujoco.mjtDisableBit, name, 0)]
    flags = [name.removeprefix("mjDSBL_").lower() for name in off]
    says("left-out", "disabled flags", flags, "what they switch off in MuJoCo acts here")
    soft = [
        what
        for what, array, usual in (
            ("solref", model.geom_solref, (0.02, 1.0)),
            ("solimp", model.geom_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
            ("margin", model.geom_margin, 0.0),
            ("solreffriction", model.dof_solref, (0.02, 1.0)),
            ("solimpfriction", model.dof_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
            ("solref of constraints", model.eq_solref, (0.02, 1.0)),
            ("solimp of constraints", model.eq_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
            ("solreflimit", model.jnt_solref, (0.02, 1.0)),
            ("solimplimit", model.jnt_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
        )
        if len(array) and not np.allclose(array, usual)
    ]
    says("ignored", "parameters of MuJoCo's solver", soft, "contacts, limits and loops follow robokit's law")
