"""USD with the UsdPhysics schema: bodies, joints, poses and collision shapes of its prims."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.formats.description import (
    WORLD,
    DescribedBody,
    DescribedJoint,
    DescribedLoop,
    DescribedShape,
    Description,
    Law,
    frame_along,
    parents_first,
)
from robokit.formats.other_programs import one_line
from robokit.model.geometry import Placement

KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsFixedJoint": "fixed",
    "PhysicsSphericalJoint": "spherical",
}

DEGREE = math.pi / 180.0

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

UP = {
    "Z": Placement(),
    "Y": Placement(np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])),
}
"""Axis of a stage that points up -> rotation into a world with z up."""

Edge = tuple[Any, str, str, Placement, Placement]
"""Joint, names of its two bodies, and its frame in either."""


def _refusal_text(refusal: Exception) -> str:
    """What USD says, without the places in its own code."""
    return re.sub(r"Error in '[^']*' at line \d+ in file \S+ : ", "", one_line(refusal))


def read_usd(path: str | os.PathLike[str]) -> Description:
    """Read a USD stage.

    Raises:
        RobokitError: no stage, or no rigid bodies in it.
    """
    from pxr import Usd, UsdGeom, UsdPhysics

    try:
        stage = Usd.Stage.Open(os.fspath(path))
    except Exception as refusal:  # of any type: it is another program's
        raise RobokitError(f"{path}: USD cannot open it: {_refusal_text(refusal)}") from None
    metres = _unit(path, "metersPerUnit", UsdGeom.GetStageMetersPerUnit(stage))
    kilograms = _unit(path, "kilogramsPerUnit", UsdPhysics.GetStageKilogramsPerUnit(stage))
    letter = str(stage.GetMetadata("upAxis") or "Y")
    if letter not in UP:
        raise RobokitError(f"{path}: upAxis is {letter!r}; USD knows Y and Z")
    up = UP[letter]
    bodies = {WORLD: DescribedBody(WORLD, Placement(), static=True)}
    names: dict[str, str] = {}
    prims = list(stage.Traverse(Usd.TraverseInstanceProxies()))
    for prim in prims:
        if prim.HasAPI(UsdPhysics.RigidBodyAPI):
            body = _body(prim, metres, kilograms, up)
            if body.name in bodies:
                body.name = str(prim.GetPath())
            names[str(prim.GetPath())] = body.name
            bodies[body.name] = body
    if not names:
        raise RobokitError(f"{path}: no prim with PhysicsRigidBodyAPI: there is no robot in it")
    edges = []
    for prim in prims:
        if prim.IsA(UsdPhysics.Joint):
            edge = _edge(UsdPhysics.Joint(prim), names, bodies, metres)
            edges += [] if edge is None else [edge]
    apart = [bool(_get(edge[0].GetExcludeFromArticulationAttr(), False)) for edge in edges]
    closing = [edge for edge, out in zip(edges, apart, strict=True) if out]
    tree = [edge for edge, out in zip(edges, apart, strict=True) if not out]
    joints, more = _tree(tree, bodies, metres, kilograms)
    side = Description("USD", os.fspath(path), Path(path).stem, bodies, joints, shapes="primitives")
    side.bodies = parents_first(bodies, joints)
    side.loops = [_loop(edge) for edge in (*closing, *more)]
    loose = [j for j in joints if j.kind == "floating"]
    side.base = "floating" if loose else "fixed"
    for prim in prims:
        if prim.IsA(UsdPhysics.Scene):
            side.gravity = _gravity(UsdPhysics.Scene(prim), metres, up)
    return side


def _unit(path: str | os.PathLike[str], name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise RobokitError(f"{path}: {name} is {value:g}; it has to be a number above 0")
    return float(value)


def _get(attribute: Any, absent: Any) -> Any:
    value = attribute.Get() if attribute and attribute.HasAuthoredValue() else None
    return absent if value is None else value


def _first_attribute(prim: Any, *names: str) -> float | None:
    """The first of several attributes that is written."""
    for name in names:
        value = _get(prim.GetAttribute(name), None)
        if value is not None:
            return float(value)
    return None


def quaternion(q: Any) -> np.ndarray:
    """Rotation matrix of a Gf quaternion."""
    w, (x, y, z) = float(q.GetReal()), (float(c) for c in q.GetImaginary())
    n = math.sqrt(w * w + x * x + y * y + z * z)
    if n == 0.0:
        return np.eye(3)
    w, x, y, z = w / n, x / n, y / n, z / n
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _body(prim: Any, metres: float, kilograms: float, up: Placement) -> DescribedBody:
    from pxr import UsdPhysics

    pose, scale = rigid_pose(prim, metres)
    body = DescribedBody(prim.GetName(), up @ pose)
    mass = UsdPhysics.MassAPI(prim)
    body.mass = float(_get(mass.GetMassAttr(), 0.0)) * kilograms
    com = np.array(_get(mass.GetCenterOfMassAttr(), (0.0, 0.0, 0.0)), dtype=float)
    if np.isfinite(com).all():  # minus infinity stands for "not said"
        body.com = com * scale * metres
    moments = np.array(_get(mass.GetDiagonalInertiaAttr(), (0.0, 0.0, 0.0)), dtype=float)
    axes = _get(mass.GetPrincipalAxesAttr(), None)
    R = np.eye(3) if axes is None else quaternion(axes)
    body.inertia = R @ np.diag(moments * kilograms * metres**2) @ R.T
    shapes, density = collision_shapes(prim, metres)
    body.collisions = tuple(DescribedShape(*shape) for shape in shapes)
    if body.mass == 0.0 and density is not None:
        body.mass = density * kilograms / metres**3
    body.gravity = 0.0 if _get(prim.GetAttribute("physxRigidBody:disableGravity"), False) else 1.0
    return body


def _edge(joint: Any, names: dict[str, str], bodies: dict[str, DescribedBody], metres: float) -> Edge | None:
    ends = []
    for relation in (joint.GetBody0Rel(), joint.GetBody1Rel()):
        targets = [str(t) for t in relation.GetTargets()]
        body = names.get(targets[0]) if targets else WORLD
        ends.append(WORLD if body is None else body)
    if ends[0] == ends[1] or _get(joint.GetJointEnabledAttr(), True) is False:
        return None
    frames = []
    for position, turn in (
        (joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
        (joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
    ):
        p = np.array(_get(position, (0.0, 0.0, 0.0)), dtype=float) * metres
        q = _get(turn, None)
        frames.append(Placement(np.eye(3) if q is None else quaternion(q), p))
    return joint, ends[0], ends[1], frames[0], frames[1]


def _loop(edge: Edge) -> DescribedLoop:
    joint, first, second, in_first, in_second = edge
    prim = joint.GetPrim()
    kind, turn = KINDS.get(prim.GetTypeName(), "other"), Placement()
    if kind in ("revolute", "prismatic"):
        letter = str(_get(prim.GetAttribute("physics:axis"), "X"))
        turn = frame_along(np.zeros(3), np.array(AXES[letter]))
    return DescribedLoop(prim.GetName(), kind, first, second, in_first @ turn, in_second @ turn)


def _tree(
    edges: list[Edge], bodies: dict[str, DescribedBody], metres: float, kilograms: float
) -> tuple[list[DescribedJoint], list[Edge]]:
    """The joints from the base outwards, and those that close loops.

    Poses of the bodies become those at zero.
    """
    done, left = {WORLD}, list(enumerate(edges))
    joints: dict[int, DescribedJoint] = {}
    while left:
        step = next(((k, e) for k, e in left if (e[1] in done) != (e[2] in done)), None)
        if step is None:
            loose = [e for _, e in left if e[1] not in done]
            if not loose:
                break  # what is left closes loops
            children = {e[2] for _, e in left}
            root = next((e[1] for e in loose if e[1] not in children), loose[0][1])
            joints[-len(joints) - 1] = DescribedJoint("", "floating", WORLD, root)
            done.add(root)
            continue
        k, edge = step
        left.remove(step)
        joint, first, second, in_first, in_second = edge
        if first in done:
            parent, child, at, back, sign = first, second, in_first, in_second, 1.0
        else:
            parent, child, at, back, sign = second, first, in_second, in_first, -1.0
        frame = bodies[parent].pose @ at
        if parent != WORLD:  # a body on the world stays where the stage has it
            bodies[child].pose = frame @ back.inverse()
        joints[k] = _joint(joint, parent, child, frame, sign, metres, kilograms)
        done.add(child)
    for name in bodies:
        if name not in done:
            joints[-len(joints) - 1] = DescribedJoint("", "floating", WORLD, name)
    return [joints[k] for k in sorted(joints)], [edge for _, edge in left]


def _joint(
    joint: Any, parent: str, child: str, frame: Placement, sign: float, metres: float, kilograms: float
) -> DescribedJoint:
    from pxr import UsdPhysics

    prim = joint.GetPrim()
    kind = KINDS.get(prim.GetTypeName(), "other")
    out = DescribedJoint(prim.GetName(), kind, parent, child, np.zeros(3), frame.position)
    if kind not in ("revolute", "prismatic"):
        out.lower = out.upper = None
        return out
    typed = (UsdPhysics.RevoluteJoint if kind == "revolute" else UsdPhysics.PrismaticJoint)(prim)
    out.axis = sign * frame.rotation @ np.array(AXES[axis_letter(typed, "X")])
    unit, gain = (DEGREE, 1.0 / DEGREE) if kind == "revolute" else (metres, 1.0 / metres)
    force_unit = kilograms * metres * (metres if kind == "revolute" else 1.0)  # forces; torques
    out.lower = float(_get(typed.GetLowerLimitAttr(), -math.inf)) * unit
    out.upper = float(_get(typed.GetUpperLimitAttr(), math.inf)) * unit
    which = "angular" if kind == "revolute" else "linear"
    drive = UsdPhysics.DriveAPI.Get(prim, which)
    force = float(_get(drive.GetMaxForceAttr(), math.inf)) * force_unit if drive else math.inf
    said = _first_attribute(prim, "newton:effortLimit")
    plain = _first_attribute(prim, "urdf:limit:effort")
    out.effort = said * force_unit if said is not None else force
    if plain is not None and not math.isfinite(out.effort):
        out.effort = plain
    velocity = _first_attribute(prim, "newton:velocityLimit", "physxJoint:maxJointVelocity")
    plain = _first_attribute(prim, "urdf:limit:velocity")
    out.velocity = velocity * unit if velocity is not None else math.inf if plain is None else plain
    damping = _first_attribute(prim, "newton:damping")
    out.damping = (
        damping * gain * force_unit
        if damping is not None
        else _first_attribute(prim, "urdf:dynamics:damping") or 0.0
    )
    out.friction = (
        _first_attribute(prim, "newton:friction", "physxJoint:jointFriction", "urdf:dynamics:friction") or 0.0
    )
    out.armature = _first_attribute(prim, "newton:armature", "physxJoint:armature") or 0.0
    out.stiffness = 0.0
    gains = [float(_get(a, 0.0)) for a in (drive.GetStiffnessAttr(), drive.GetDampingAttr())] if drive else []
    out.drives = int(any(gains))
    out.laws = tuple(_laws(prim, unit if kind == "revolute" else 1.0))
    return out


def _laws(prim: Any, unit: float) -> list[Law]:
    """Mimic laws: PhysX has joint + gearing * leader + offset = 0, Newton joint = coef0 + coef1 * leader."""
    laws = []
    leader = prim.GetRelationship("newton:mimicJoint")
    if leader and leader.GetTargets():
        k, o = _first_attribute(prim, "newton:mimicCoef1"), _first_attribute(prim, "newton:mimicCoef0")
        laws.append(Law(leader.GetTargets()[0].name, 1.0 if k is None else k, (o or 0.0) * unit))
    for which in ("rotX", "rotY", "rotZ", "transX", "transY", "transZ"):
        leader = prim.GetRelationship(f"physxMimicJoint:{which}:referenceJoint")
        if leader and leader.GetTargets():
            gearing = _first_attribute(prim, f"physxMimicJoint:{which}:gearing")
            offset = _first_attribute(prim, f"physxMimicJoint:{which}:offset") or 0.0
            laws.append(
                Law(leader.GetTargets()[0].name, -(1.0 if gearing is None else gearing), -offset * unit)
            )
    return laws


def _gravity(scene: Any, metres: float, up: Placement) -> np.ndarray:
    direction = np.array(_get(scene.GetGravityDirectionAttr(), (0.0, 0.0, 0.0)), dtype=float)
    strength = float(_get(scene.GetGravityMagnitudeAttr(), -math.inf))
    g = strength * metres if math.isfinite(strength) and strength >= 0.0 else 9.81
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return np.array([0.0, 0.0, -g])
    return np.asarray(up.rotation @ direction * (g / length))


# Poses and collision shapes of prims of a USD stage
# --------------------------------------------------

Shape = tuple[str, tuple[float, ...], Placement, str]
"""Kind, size, pose in the body and name of the prim, as a DescribedShape has them."""

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
