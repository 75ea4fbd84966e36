"""What a model of MuJoCo has beside bodies and joints: looks, actuators, ground, keyframes, pairs that touch.

What robokit's robots have no counterpart for is said, one diagnostic for each kind of thing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import Diagnostic, RobokitError
from robokit.formats.description import (
    DescribedActuator,
    DescribedGround,
    DescribedScene,
    DescribedShape,
    DescribedSpring,
    Description,
    ellipsoid_mesh,
    finding,
)
from robokit.formats.mujoco import (
    GEOMS,
    JOINT_TRANSMISSIONS,
    KINDS,
    actuator_range,
    actuators_of,
    compiled,
    data_at_zero,
    describe_model,
    described_shape,
    ends_of,
    first_number,
    laws_of,
    name_of,
    placement_of,
    rods,
    sum_of_joints,
)
from robokit.model.geometry import Placement

UNNAMED = "MuJoCo Model"
"""The name that MuJoCo gives a model without one."""

SEEN_GROUPS = 3
"""MuJoCo's viewer shows the groups of geoms below it, unless told otherwise."""

GRAY = (0.5, 0.5, 0.5, 1.0)
"""Colour of a geom that has none: then its material's counts."""

MOTION_FLAGS = tuple(
    f"mjDSBL_{flag}"
    for flag in (
        *("CONSTRAINT", "EQUALITY", "FRICTIONLOSS", "LIMIT", "CONTACT", "PASSIVE", "SPRING", "DAMPER"),
        *("ACTUATION", "FILTERPARENT"),
    )
)
"""Flags of MuJoCo that switch off what moves a robot; PASSIVE is SPRING and DAMPER of older versions."""

TRANSMISSIONS = ("joint", "jointinparent", "slidercrank", "tendon", "site", "body")
"""Names of MuJoCo's types of transmission."""


def read_mujoco_robot(path: str, folder: str = "") -> Description:
    """Read an MJCF with all that a robot and its surroundings can have of it.

    Args:
        path, folder: as for :func:`robokit.formats.mujoco.read_mujoco`.

    Raises:
        RobokitError: MuJoCo refuses the file, or there is no body in it.
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
    """Add to a description what the model has beside bodies and joints.

    Args:
        side: of the model.
        model, data: ``mujoco.MjModel``, and an ``MjData`` with the kinematics at zero.
        spec: the ``mujoco.MjSpec`` that was compiled.
    """
    scene = side.scene = DescribedScene()
    scene.dt = float(model.opt.timestep)
    says = Says(side)
    _shapes(side, model, spec, says)
    _grounds(scene, model, data, spec, says)
    _apart(scene, model, says)
    _actuators(scene, model, says)
    _springs(side, scene, model, says)
    _configurations(scene, model, says)
    _say_of_joints(model, side, says)
    _say_of_constraints(model, says)
    _say_of_the_rest(model, says)


class Says:
    """Adds diagnostics to a description, one for each kind of thing."""

    def __init__(self, side: Description) -> None:
        self._side = side

    def __call__(self, code: str, what: str, names: Iterable[str], text: str, hint: str = "") -> None:
        """Say what becomes of some things; nothing where there are none."""
        found = finding(code, what, names, text, self._side.file, hint)
        self._side.said += [] if found is None else [found]


# Shapes: what is seen and what touches
# -------------------------------------


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
        if model.geom_contype[k] or model.geom_conaffinity[k] or _in_a_pair(model, k):
            body.collisions = (*body.collisions, shape)
        if int(model.geom_group[k]) < SEEN_GROUPS:
            body.visuals = (*body.visuals, shape)
        elif not _touches(model, k):
            hidden.append(name_of(model, "geom", k))
    says("rewritten", "ellipsoids", spheroids, "a convex mesh, at most 2 % inside")
    says("left-out", "surfaces of bodies", planes, "planes and height fields are taken of the world only")
    says("left-out", "geoms of other types", sdf, "signed distance fields are not taken")
    says("ignored", "hidden geoms", hidden, "neither touching nor in a group that is shown")
    textures = [str(model.tex(t).name) or f"texture_{t}" for t in range(model.ntex) if _is_plain(model, t)]
    says("ignored", "textures", textures, "only images of files on 2d materials are shown")
    skins = [str(model.skin(k).name) or f"skin_{k}" for k in range(model.nskin)]
    says("ignored", "skins", skins, "not shown")


def _touches(model: Any, k: int) -> bool:
    return bool(model.geom_contype[k] or model.geom_conaffinity[k] or _in_a_pair(model, k))


def _in_a_pair(model: Any, k: int) -> bool:
    return bool(model.npair) and bool((model.pair_geom1 == k).any() or (model.pair_geom2 == k).any())


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


# What is at rest: the world's own geoms and bodies that nothing moves
# --------------------------------------------------------------------


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
            scene.grounds.append(
                DescribedGround(
                    "plane",
                    pose,
                    friction,
                    None,
                    torsional=spin * (dim >= 4),
                    rolling=roll * (dim >= 6),
                    name=name,
                )
            )
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
            more = dim >= 4 and own[0] > held[0], dim >= 6 and own[1] > held[1]
            turning += [name_of(model, "geom", k)] if any(more) else []
    text = "the ground's own against turning and rolling counts for all links"
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
    says("rewritten", "pairs of bodies", partly, "in the file only some geoms touch; here all do")
    says("rewritten", "bodies", silent, "not touching the ground in the file; here it does")


# What drives joints
# ------------------


def _actuators(scene: DescribedScene, model: Any, says: Says) -> None:
    others: dict[str, list[str]] = {}
    scaled, delayed, clipped, pulling = [], [], [], []
    for k in range(model.nu):
        name = str(model.actuator(k).name) or f"actuator_{k}"
        why = _not_taken(model, k)
        if why:
            others.setdefault(why, []).append(name)
            continue
        joint, gear = _transmission(model, k)
        gain = float(model.actuator_gainprm[k, 0])
        effort = None
        if int(model.actuator_trntype[k]) not in JOINT_TRANSMISSIONS:
            pulling.append(name)
            effort = abs(gear) * max(map(abs, actuator_range(model, k)))
        constant, kp, kd = _bias(model, k)
        control = "position" if kp else "velocity" if kd else "torque"
        if gain != {"position": kp, "velocity": kd, "torque": 1.0}[control] or constant or gear != 1.0:
            scaled.append(name)
        if int(model.actuator_dyntype[k]):
            delayed.append(name)
        if model.actuator_ctrllimited[k]:
            clipped.append(name)
        stiffness, damping = gear * gear * kp, gear * gear * kd
        scene.actuators.append(DescribedActuator(name, control, joint, stiffness, damping, effort))
    for why, names in others.items():
        says("left-out", "actuators", names, f"{why}: robokit drives joints of one coordinate")
    text = "acting on the joint that the tendon's others follow with mimic='couple'"
    says("rewritten", "actuators of tendons", pulling, text)
    text = "targets are forces, positions or velocities of the joint, without the file's factors and offsets"
    says("rewritten", "actuators", scaled, text)
    says("rewritten", "actuators", delayed, "acting at once; the file filters the control")
    says("ignored", "ranges of control", clipped, "targets are not clipped; limits of force are kept")


def _bias(model: Any, k: int) -> tuple[float, float, float]:
    """Constant, stiffness and damping of an actuator's force."""
    import mujoco

    if int(model.actuator_biastype[k]) == mujoco.mjtBias.mjBIAS_NONE:
        return 0.0, 0.0, 0.0
    constant, by_position, by_velocity = (float(x) for x in model.actuator_biasprm[k, :3])
    return constant, 0.0 - by_position, 0.0 - by_velocity


def _transmission(model: Any, k: int) -> tuple[str, float]:
    """The joint that an actuator drives, and the force on it per force of the actuator.

    A fixed tendon whose joints all follow one of them acts as if on that one: it has the sum of their forces,
    each as the joint moves with it. "" where there is no such joint.
    """
    gear, at = float(model.actuator_gear[k, 0]), int(model.actuator_trnid[k, 0])
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
    bits = mujoco.mjtDyn
    if (
        int(model.actuator_gaintype[k]) != mujoco.mjtGain.mjGAIN_FIXED
        or int(model.actuator_biastype[k]) not in biases
        or int(model.actuator_dyntype[k]) not in (bits.mjDYN_NONE, bits.mjDYN_FILTER, bits.mjDYN_FILTEREXACT)
    ):
        return "with a force that is no linear law of control, position and velocity"
    return "of negative stiffness or damping" if min(_bias(model, k)[1:]) < 0.0 else ""


# Springs and dampers, of joints and of tendons
# ---------------------------------------------


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
            gear = abs(float(model.actuator_gear[k, 0]))
            damp = tuple(x + y * gear ** (n + 3) for n, (x, y) in enumerate(zip(damp, more, strict=True)))
        if any(stiff + damp):
            own = DescribedSpring(joint.name, (0.0, *stiff), (0.0, *damp), joint.rest, joint.rest)
            joint.springs += (own,)
    others: dict[str, list[str]] = {}
    for t in range(model.ntendon):
        name = str(model.tendon(t).name) or f"tendon_{t}"
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
    stiff = tuple(x * c ** (k + 2) for k, x in enumerate(spring.stiffness))
    damp = tuple(x * abs(c) ** (k + 2) for k, x in enumerate(spring.damping))
    return replace(spring, stiffness=stiff, damping=damp, least=least, most=most)


def _configurations(scene: DescribedScene, model: Any, says: Says) -> None:
    """Keyframes, and where the bodies are in the file itself ("initial")."""
    scene.configurations["initial"] = _configuration(model, model.qpos0)
    moving = []
    for k in range(model.nkey):
        name = str(model.key(k).name) or f"key_{k}"
        scene.configurations[name] = _configuration(model, model.key_qpos[k])
        if model.key_qvel[k].any() or model.key_act[k].any() or model.key_ctrl[k].any():
            moving.append(name)
    says("ignored", "keyframes", moving, "only positions are kept: no velocities, controls, activations")


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


# What has no counterpart
# -----------------------


def _say_of_joints(model: Any, side: Description, says: Says) -> None:
    names = [name_of(model, "joint", j) for j in range(model.njnt)]
    kinds = [KINDS[int(model.jnt_type[j])] for j in range(model.njnt)]
    several = [name_of(model, "body", b) for b in range(1, model.nbody) if int(model.body_jntnum[b]) > 1]
    says(
        "rewritten",
        "bodies with several joints",
        several,
        "the joints follow each other, with links NAME_link without mass between them",
    )
    balls = [n for j, n in enumerate(names) if kinds[j] == "spherical" and model.jnt_limited[j]]
    says("left-out", "limits of ball joints", balls, "a ball joint has none here")
    springs = [
        n
        for j, n in enumerate(names)
        if kinds[j] in ("spherical", "floating") and first_number(model.jnt_stiffness[j])
    ]
    says("left-out", "springs of ball or free joints", springs, "only joints of one coordinate have springs")
    free = [
        n
        for j, n in enumerate(names)
        if kinds[j] == "floating"
        and (
            first_number(model.dof_damping[model.jnt_dofadr[j]])
            or model.dof_frictionloss[model.jnt_dofadr[j]]
        )
    ]
    says("left-out", "damping or friction of free joints", free, "what is free has none here")
    curved = [n for j, n in enumerate(names) if kinds[j] in ("spherical", "floating") and _bent(model, j)]
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
    says(
        "rewritten", "ranges of effort", uneven, "the larger of the two ends is the limit in both directions"
    )


def _bent(model: Any, j: int) -> bool:
    return any(_coefficients(model, "dof_damping", int(model.jnt_dofadr[j]))[1:])


def _say_of_constraints(model: Any, says: Says) -> None:
    import mujoco

    names = [str(model.equality(k).name) or f"equality_{k}" for k in range(model.neq)]
    says(
        "ignored",
        "inactive constraints",
        [n for k, n in enumerate(names) if not model.eq_active0[k]],
        "left out",
    )
    kinds = (
        mujoco.mjtEq.mjEQ_CONNECT,
        mujoco.mjtEq.mjEQ_WELD,
        mujoco.mjtEq.mjEQ_JOINT,
        mujoco.mjtEq.mjEQ_TENDON,
    )
    other = [n for k, n in enumerate(names) if int(model.eq_type[k]) not in kinds and model.eq_active0[k]]
    says("left-out", "constraints of other types", other, "connect, weld, joint and tendon are taken")
    held = {t for t, _ in rods(model)}
    loose = []
    for k, n in enumerate(names):
        if int(model.eq_type[k]) == mujoco.mjtEq.mjEQ_TENDON and model.eq_active0[k]:
            both = [int(t) for t in (model.eq_obj1id[k], model.eq_obj2id[k]) if t >= 0]
            if both[0] not in held and any(sum_of_joints(model, t) is None for t in both):
                loose.append(n)
    text = "a rod is a tendon between two sites of a constant length"
    says("left-out", "constraints of tendons through space", loose, text)
    tendons = [str(model.tendon(t).name) or f"tendon_{t}" for t in range(model.ntendon)]
    acting = [
        n
        for t, n in enumerate(tendons)
        if model.tendon_limited[t]
        or model.tendon_frictionloss[t]
        or np.ravel(getattr(model, "tendon_armature", np.zeros(model.ntendon)))[t]
        or np.ravel(getattr(model, "tendon_springyield", np.zeros(model.ntendon)))[t]
    ]
    text = "limits, friction, armature and yield of tendons do not act"
    says("left-out", "tendons with more than a spring", acting, text)


def _say_of_the_rest(model: Any, says: Says) -> None:
    import mujoco

    def named(kind: str, count: int) -> list[str]:
        return [str(getattr(model, kind)(k).name) or f"{kind}_{k}" for k in range(count)]

    says("ignored", "sensors", named("sensor", model.nsensor), "a trajectory has its own measurements")
    says("ignored", "cameras", named("cam", model.ncam), "the page has its own camera")
    says("ignored", "lights", named("light", model.nlight), "the page has its own lights")
    says(
        "left-out",
        "flexes",
        [f"flex_{k}" for k in range(int(getattr(model, "nflex", 0)))],
        "bodies are rigid",
    )
    plugins = [f"plugin_{k}" for k in range(int(getattr(model, "nplugin", 0)))]
    says("left-out", "plugins", plugins, "programs for MuJoCo")
    option = model.opt
    fluid = [n for n in ("density", "viscosity") if getattr(option, n)] + ["wind"] * bool(option.wind.any())
    says("left-out", "options", fluid, "there is no fluid around a robot")
    off = [name for name in MOTION_FLAGS if option.disableflags & getattr(mujoco.mjtDisableBit, name, 0)]
    flags = [name.removeprefix("mjDSBL_").lower() for name in off]
    says("left-out", "disabled flags", flags, "what they switch off in MuJoCo acts here")
    soft = [
        what
        for what, array, usual in (
            ("solref", model.geom_solref, (0.02, 1.0)),
            ("solimp", model.geom_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
            ("margin", model.geom_margin, 0.0),
            ("solreflimit", model.jnt_solref, (0.02, 1.0)),
            ("solimplimit", model.jnt_solimp, (0.9, 0.95, 0.001, 0.5, 2.0)),
        )
        if len(array) and not np.allclose(array, usual)
    ]
    says("ignored", "parameters of MuJoCo's solver", soft, "contacts, limits and loops follow robokit's law")
