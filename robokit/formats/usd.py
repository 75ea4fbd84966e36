"""USD with the UsdPhysics schema: bodies, joints, poses and collision shapes of its prims."""

from __future__ import annotations

import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.formats.description import (
    WORLD,
    DescribedActuator,
    DescribedBody,
    DescribedGround,
    DescribedJoint,
    DescribedLoop,
    DescribedScene,
    DescribedShape,
    Description,
    Law,
    cone_mesh,
    frame_along,
    inertia_about,
    parents_first,
    solid_of,
)
from robokit.formats.other_programs import one_line
from robokit.formats.sdf import WATER, free_coordinates
from robokit.model.geometry import RGBA, Placement
from robokit.model.parts import free_name
from robokit.spatial.rotation import quat_wxyz_to_rotation

KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsFixedJoint": "fixed",
    "PhysicsSphericalJoint": "spherical",
}

DEGREE = math.pi / 180.0

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}

UP = {"Z": Placement(), "Y": Placement(np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]))}
"""Axis of a stage that points up -> rotation into a world with z up."""

Edge = tuple[Any, str, str, Placement, Placement]  # joint, names of its two bodies, and its frame in either

FREEDOMS = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
"""Degrees of freedom of a joint without a type of its own, as limits and drives name them."""

NO_PART = ("Xform", "Scope", "Material", "Shader", "GeomSubset", "NodeGraph", "PhysicsScene", "")
"""Types of prims that hold others, or say how they look."""


def _refusal_text(refusal: Exception) -> str:
    """What USD says, without the places in its own code."""
    return re.sub(r"Error in '[^']*' at line \d+ in file \S+ : ", "", one_line(refusal))


def read_usd(path: str | os.PathLike[str], whole: bool = False) -> Description:
    """Read a USD stage; RobokitError for no stage, or no rigid bodies in it.

    ``whole``: read all that a robot can have: visual shapes, meshes, drives, masses of colliders; what it
    cannot have is told in ``said``.
    """
    from pxr import Tf, Usd

    try:
        stage = Usd.Stage.Open(os.fspath(path))
    except Exception as refusal:  # of any type: it is another program's
        raise RobokitError(f"{path}: USD cannot open it: {_refusal_text(refusal)}") from None
    try:
        return _Stage(path, stage, whole).description()
    except Tf.ErrorException as refusal:
        raise RobokitError(f"{path}: USD cannot read it: {_refusal_text(refusal)}") from None
    except _Mistyped as refusal:
        raise RobokitError(f"{path}: {refusal}") from None


class _Mistyped(Exception):
    """A value that is needed and is of another type than its attribute."""


class _Stage:
    """A stage and what is found in it.

    Attributes:
        metres, kilograms: units of the stage.
        up: rotation of the stage's world into one with z up.
        names: path of a rigid body -> its name in the description: its own, or the path where that is taken.
        joint_names: the same of joints.
    """

    def __init__(self, path: str | os.PathLike[str], stage: Any, whole: bool) -> None:
        from pxr import Usd, UsdGeom, UsdPhysics

        self.path, self.stage, self.whole = os.fspath(path), stage, whole
        self.metres = _unit(path, "metersPerUnit", UsdGeom.GetStageMetersPerUnit(stage))
        self.kilograms = _unit(path, "kilogramsPerUnit", UsdPhysics.GetStageKilogramsPerUnit(stage))
        letter = str(stage.GetMetadata("upAxis") or "Y")
        if letter not in UP:
            raise RobokitError(f"{path}: upAxis is {letter!r}; USD knows Y and Z")
        self.up = UP[letter]
        self.prims = list(stage.Traverse(Usd.TraverseInstanceProxies()))
        self.names: dict[str, str] = {}
        self.joint_names: dict[str, str] = {}
        self.bodies = {WORLD: DescribedBody(WORLD, Placement(), static=True)}
        self.still: list[str] = []
        self.scene = DescribedScene()
        self._said: dict[tuple[str, str, str], list[str]] = {}
        for prim in self.prims:
            for attribute in prim.GetAuthoredAttributes():
                # USD reads transforms itself, and a wrong one as nothing.
                if attribute.GetName().startswith("xformOp"):
                    _at_first(attribute)
                elif _mistyped(attribute, _raw(attribute)):
                    place = str(attribute.GetPath())
                    self.say("ignored", "attributes", place, "their values are of another type")

    def say(self, code: str, what: str, name: str, text: str) -> None:
        """Collect what the robot will not have, or has in another form, for the diagnostics."""
        self._said.setdefault((code, what, text), []).append(name)

    def description(self) -> Description:
        """Bodies, joints from the base outwards, loops."""
        from pxr import UsdPhysics

        for prim in self.prims:
            if prim.HasAPI(UsdPhysics.RigidBodyAPI):
                body = _body(prim, self.metres, self.kilograms, self.up)
                if body.name in self.bodies or body.name == WORLD:
                    body.name = str(prim.GetPath())
                self.names[str(prim.GetPath())] = body.name
                self.bodies[body.name] = body
                enabled = _get(prim.GetAttribute("physics:rigidBodyEnabled"), True)
                if not enabled or _get(prim.GetAttribute("physics:kinematicEnabled"), False):
                    self.still.append(body.name)
                if self.whole:
                    self._read_shapes(prim, body)
        if not self.names:
            raise RobokitError(f"{self.path}: no prim with PhysicsRigidBodyAPI: there is no robot in it")
        tree: list[Edge] = []
        closing: list[Edge] = []
        for prim in self.prims:
            if prim.IsA(UsdPhysics.Joint):
                path, name = str(prim.GetPath()), prim.GetName()
                self.joint_names[path] = path if name in self.joint_names.values() else name
        for prim in self.prims:
            edge = self._edge(UsdPhysics.Joint(prim)) if prim.IsA(UsdPhysics.Joint) else None
            if edge is not None:
                apart = _get(edge[0].GetExcludeFromArticulationAttr(), False) or self._rod(prim) > 0.0
                (closing if apart else tree).append(edge)
        held = {end for edge in tree for end in edge[1:3] if WORLD in edge[1:3]}
        joints, more = self._tree(tree)
        for joint in joints:
            if joint.kind == "floating" and joint.parent == WORLD and joint.child in set(self.still) - held:
                joint.kind = "fixed"
        side = Description("USD", self.path, Path(self.path).stem, self.bodies, joints, shapes="primitives")
        side.loops = [self._loop(edge) for edge in (*closing, *more)]
        side.bodies = parents_first(self.bodies, joints)
        side.base = "floating" if any(j.kind == "floating" for j in joints) else "fixed"
        for prim in self.prims:
            if prim.IsA(UsdPhysics.Scene):
                side.gravity = _gravity(UsdPhysics.Scene(prim), self.metres, self.up)
        if self.whole:
            self._read_rest(side)
        return side

    # ---- joints ---------------------------------------------------------------------------------

    def _edge(self, joint: Any) -> Edge | None:
        ends, frames = [], []
        for relation, position, turn in (
            (joint.GetBody0Rel(), joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
            (joint.GetBody1Rel(), joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
        ):
            targets = [str(t) for t in relation.GetTargets()]
            name, place, scale = self._end(targets[0] if targets else "")
            p = np.array(_get(position, (0.0, 0.0, 0.0)), dtype=float) * self.metres * scale
            q = _get(turn, None)
            ends.append(name)
            frames.append(place @ Placement(np.eye(3) if q is None else quaternion(q), p))
        if ends[0] == ends[1] or _get(joint.GetJointEnabledAttr(), True) is False:
            if ends[0] != ends[1]:
                self.say("ignored", "joints", joint.GetPrim().GetName(), "they are not enabled")
            return None
        return joint, ends[0], ends[1], frames[0], frames[1]

    def _end(self, target: str) -> tuple[str, Placement, np.ndarray]:
        """The body that an end of a joint is on, the pose in it of the prim that is named, its scale."""
        prim = self.stage.GetPrimAtPath(target) if target else None
        if not prim:
            return WORLD, self.up, np.ones(3)
        pose, scale = rigid_pose(prim, self.metres)
        above = prim
        while above and str(above.GetPath()) not in self.names:
            above = above.GetParent()
        if not above:
            return WORLD, self.up @ pose, scale
        name = self.names[str(above.GetPath())]
        if above == prim:
            return name, Placement(), scale
        origin, _ = rigid_pose(above, self.metres)
        return name, origin.inverse() @ pose, scale

    def _rod(self, prim: Any) -> float:
        """The length of a distance joint whose bounds are one [m]; 0 for what is none."""
        if prim.GetTypeName() != "PhysicsDistanceJoint":
            return 0.0
        least, most = (_get(prim.GetAttribute(f"physics:{end}Distance"), -1.0) for end in ("min", "max"))
        return float(most) * self.metres if 0.0 < least == most else 0.0

    def _loop(self, edge: Edge) -> DescribedLoop:
        joint, first, second, in_first, in_second = edge
        kind, axis, _ = self._freedom(joint.GetPrim())
        turn = frame_along(np.zeros(3), axis) if axis.any() else Placement()
        name = self.joint_names[str(joint.GetPath())]
        self.say("rewritten", "joints", name, "they close loops, and are loop joints of the robot")
        length = self._rod(joint.GetPrim())
        if length > 0.0:
            return DescribedLoop(name, "distance", first, second, in_first, in_second, 0, length)
        return DescribedLoop(name, kind, first, second, in_first @ turn, in_second @ turn)

    def _tree(self, edges: list[Edge]) -> tuple[list[DescribedJoint], list[Edge]]:
        """The joints from the base outwards, and those that close loops.

        Poses of the bodies become those at zero.
        """
        done, left = {WORLD}, list(enumerate(edges))
        joints: dict[int, list[DescribedJoint]] = {}
        while left:
            step = next(((k, e) for k, e in left if (e[1] in done) != (e[2] in done)), None)
            if step is None:
                loose = [e for _, e in left if e[1] not in done]
                if not loose:
                    break  # the remaining joints close loops
                children = {e[2] for _, e in left}
                root = next((e[1] for e in loose if e[1] not in children), loose[0][1])
                joints[-len(joints) - 1] = [DescribedJoint("", "floating", WORLD, root)]
                done.add(root)
                continue
            k, edge = step
            left.remove(step)
            joint, first, second, in_first, in_second = edge
            if first in done:
                parent, child, at, back, sign = first, second, in_first, in_second, 1.0
            else:
                parent, child, at, back, sign = second, first, in_second, in_first, -1.0
            frame = self.bodies[parent].pose @ at
            if parent != WORLD:  # a body on the world stays where the stage has it
                self.bodies[child].pose = frame @ back.inverse()
            joints[k] = self._joints(joint, parent, child, frame, sign)
            done.add(child)
        for name in list(self.bodies):
            if name not in done and not any(j.child == name for each in joints.values() for j in each):
                joints[-len(joints) - 1] = [DescribedJoint("", "floating", WORLD, name)]
        return [joint for k in sorted(joints) for joint in joints[k]], [edge for _, edge in left]

    def _freedom(self, prim: Any) -> tuple[str, np.ndarray, list[str]]:
        """Kind of a joint, its axis in its frame, and the names of its degrees of freedom if it is no kind.

        A joint without a type of its own is free in all directions that no limit locks.
        """
        from pxr import UsdPhysics

        kind = KINDS.get(prim.GetTypeName(), "")
        if kind in ("revolute", "prismatic"):
            typed = (UsdPhysics.RevoluteJoint if kind == "revolute" else UsdPhysics.PrismaticJoint)(prim)
            return kind, np.array(AXES[axis_letter(typed, "X")]), []
        if kind:
            return kind, np.zeros(3), []
        if prim.GetTypeName() != "PhysicsJoint":
            return "other", np.zeros(3), []
        free = [name for name in FREEDOMS if not _is_locked(prim, name)]
        turns = [name for name in free if name.startswith("rot")]
        shifts = [name for name in free if name.startswith("trans")]
        if not free:
            return "fixed", np.zeros(3), []
        if len(free) == 1:
            return "revolute" if turns else "prismatic", np.array(AXES[free[0][-1]]), free
        if len(free) == 6:
            return "floating", np.zeros(3), []
        if len(turns) == 3 and not shifts:
            return "spherical", np.zeros(3), []
        return "several", np.zeros(3), [*shifts, *turns]

    def _joints(
        self, joint: Any, parent: str, child: str, frame: Placement, sign: float
    ) -> list[DescribedJoint]:
        """The joint, or several with bodies without mass between them."""
        prim = joint.GetPrim()
        name = self.joint_names[str(prim.GetPath())]
        kind, axis, free = self._freedom(prim)
        if kind == "other":
            text = "they are no joints: their bodies move freely"
            self.say("left-out", f"{prim.GetTypeName()}s", name, text)
            return [DescribedJoint(name, "floating", parent, child, np.zeros(3), frame.position, None, None)]
        if kind != "several":
            letter = free[0] if free else ""
            return [self._joint(prim, name, kind, parent, child, frame, sign * axis, letter)]
        self.say("rewritten", "joints", name, f"with {' and '.join(free)} free: one joint for each of them")
        order = free if sign > 0.0 else list(reversed(free))
        between = [f"{name}_{letter}_body" for letter in order[:-1]]
        for each in between:
            self.bodies[each] = DescribedBody(
                each, Placement(self.bodies[child].pose.rotation, frame.position)
            )
        ends = [parent, *between, child]
        return [
            self._joint(
                prim,
                f"{name}_{letter}",
                "revolute" if letter.startswith("rot") else "prismatic",
                ends[k],
                ends[k + 1],
                frame,
                sign * np.array(AXES[letter[-1]]),
                letter,
            )
            for k, letter in enumerate(order)
        ]

    def _joint(
        self,
        prim: Any,
        name: str,
        kind: str,
        parent: str,
        child: str,
        frame: Placement,
        axis: np.ndarray,
        letter: str,
    ) -> DescribedJoint:
        """One joint; ``letter`` is its degree of freedom where the prim has no type of its own."""
        out = DescribedJoint(name, kind, parent, child, np.zeros(3), frame.position)
        if kind not in ("revolute", "prismatic"):
            out.lower = out.upper = None
            cone = [_get(prim.GetAttribute(f"physics:coneAngle{k}Limit"), -1.0) for k in (0, 1)]
            if kind == "spherical" and max(cone) >= 0.0:
                self.say("left-out", "limits of spherical joints", name, "a spherical joint has none")
            return out
        out.axis = frame.rotation @ axis
        _read_axis(out, prim, letter, self.metres, self.kilograms)
        out.laws = tuple(
            replace(law, leader=self.joint_names.get(law.leader, law.leader.rpartition("/")[2]))
            for law in out.laws or ()
        )
        drive = _drive(prim, letter or ("angular" if kind == "revolute" else "linear"))
        if drive and self.whole:
            self._read_drive(out, drive)
        return out

    def _read_drive(self, joint: DescribedJoint, drive: Any) -> None:
        gain = 1.0 / DEGREE if joint.kind == "revolute" else 1.0 / self.metres
        force = self.kilograms * self.metres * (self.metres if joint.kind == "revolute" else 1.0)
        stiffness, damping = (float(_get(a, 0.0)) for a in (drive.GetStiffnessAttr(), drive.GetDampingAttr()))
        if not (stiffness or damping):
            return
        if str(_get(drive.GetTypeAttr(), "force")) == "acceleration":
            text = "their gains are of an acceleration, which no actuator has"
            self.say("left-out", "drives", joint.name, text)
            return
        kind = "position" if stiffness else "velocity"
        gains = stiffness * gain * force, damping * gain * force
        self.scene.actuators.append(DescribedActuator(joint.name, kind, joint.name, *gains))
        for attribute in (drive.GetTargetPositionAttr(), drive.GetTargetVelocityAttr()):
            if _get(attribute, 0.0):
                text = "targets are given to the simulation: dataclasses.replace(actuator, target=...)"
                self.say("ignored", "targets of drives", joint.name, text)
                break

    # ---- shapes, masses of colliders, and the rest -----------------------------------------------

    def _read_shapes(self, prim: Any, body: DescribedBody) -> None:
        """Visual and collision shapes with meshes; mass and inertia where they are those of colliders."""
        from pxr import Usd, UsdGeom, UsdPhysics

        origin, _ = rigid_pose(prim, self.metres)
        seen, touching = [], []
        todo = [(prim, False)]
        while todo:
            each, collides = todo.pop()
            if each != prim and each.HasAPI(UsdPhysics.RigidBodyAPI):
                continue
            if each.HasAPI(UsdPhysics.CollisionAPI):
                collides = _at_first(UsdPhysics.CollisionAPI(each).GetCollisionEnabledAttr()) is not False
            todo += [(c, collides) for c in reversed(each.GetFilteredChildren(Usd.TraverseInstanceProxies()))]
            if not each.IsA(UsdGeom.Gprim):
                if each.GetTypeName() not in NO_PART and not each.IsA(UsdPhysics.Joint):
                    self.say("ignored", f"{each.GetTypeName()}s", each.GetName(), "it is not supported")
                continue
            shape = self._shape(each, origin)
            image, purposes = UsdGeom.Imageable(each), ("default", "render")
            shown = image.ComputeVisibility() != "invisible" and image.ComputePurpose() in purposes
            if shape is None:
                code = "left-out" if collides else "ignored"
                self.say(code, f"{each.GetTypeName()}s", each.GetName(), NO_SHAPE)
                continue
            if collides:
                touching.append((each, shape))
            if shown:
                seen.append(shape)
        body.visuals, body.collisions = tuple(seen), tuple(shape for _, shape in touching)
        self._read_mass(prim, body, touching)

    def _shape(self, prim: Any, origin: Placement) -> DescribedShape | None:
        rgba, texture = _looks(prim)
        more = {"rgba": rgba, "name": prim.GetName(), "texture": texture}
        more["texture_path"] = Path(texture) if texture and Path(texture).is_file() else None
        pose, scale = rigid_pose(prim, self.metres)
        if prim.GetTypeName() == "Mesh":
            made = _mesh(prim, origin, self.metres)
            if made is None:
                return None
            return DescribedShape("mesh", (1.0, 1.0, 1.0), Placement(), points=made[0], faces=made[1], **more)
        if prim.GetTypeName() == "Cone":
            from pxr import UsdGeom

            cone = UsdGeom.Cone(prim)
            points, faces = cone_mesh(_size(cone.GetRadiusAttr()), _size(cone.GetHeightAttr()))
            points = points @ TURNS[axis_letter(cone, "Z")].T * scale * self.metres
            self.say("rewritten", "Cones", prim.GetName(), f"a mesh of {len(faces)} triangles inside it")
            at = origin.inverse() @ pose
            return DescribedShape("mesh", (1.0, 1.0, 1.0), at, points=points, faces=faces, **more)
        found = _shape(prim, scale * self.metres)
        if found is None:
            return None
        kind, size, turn = found
        return DescribedShape(kind, size, origin.inverse() @ pose @ Placement(turn), **more)

    def _read_mass(self, prim: Any, body: DescribedBody, colliders: list[tuple[Any, DescribedShape]]) -> None:
        """What the mass API leaves to the colliders: their masses, densities and places."""
        from pxr import UsdPhysics

        own = UsdPhysics.MassAPI(prim)
        mass = float(_get(own.GetMassAttr(), 0.0)) * self.kilograms
        com = np.array(_get(own.GetCenterOfMassAttr(), (-np.inf,) * 3), dtype=float)
        moments = np.array(_get(own.GetDiagonalInertiaAttr(), (0.0, 0.0, 0.0)), dtype=float)
        if mass > 0.0 and np.isfinite(com).all() and moments.any():
            return
        density = float(_get(own.GetDensityAttr(), 0.0))
        parts = []
        for each, shape in colliders:
            solid = solid_of(shape)
            if solid is None:
                continue
            volume, center, about = solid
            said = UsdPhysics.MassAPI(each)
            rho = density or float(_get(said.GetDensityAttr(), 0.0)) or _material_density(each)
            rho = rho * self.kilograms / self.metres**3 if rho else WATER
            given = float(_get(said.GetMassAttr(), 0.0)) * self.kilograms if each != prim else 0.0
            rho = given / volume if given > 0.0 else rho
            R = shape.pose.rotation
            parts.append((rho * volume, R @ center + shape.pose.position, rho * R @ about @ R.T))
        total = sum(m for m, _, _ in parts)
        if not total > 0.0:
            return
        middle = sum((m * c for m, c, _ in parts), np.zeros(3)) / total
        factor = mass / total if mass > 0.0 else 1.0
        body.mass = total * factor
        if not np.isfinite(com).all():
            body.com = middle
        if not moments.any():
            body.inertia = factor * inertia_about(body.com, parts)
        self.say("rewritten", "bodies", body.name, "mass or inertia is that of their colliders")

    def _read_rest(self, side: Description) -> None:
        """Ground, pairs that never touch, and what is left."""
        from pxr import UsdGeom, UsdPhysics

        side.shapes, side.scene = "all", self.scene
        for prim in self.prims:
            owner = self._end(str(prim.GetPath()))[0]
            if owner == WORLD and prim.HasAPI(UsdPhysics.CollisionAPI) and prim.IsA(UsdGeom.Gprim):
                self._read_ground(prim)
            if prim.HasAPI(UsdPhysics.FilteredPairsAPI):
                pairs = UsdPhysics.FilteredPairsAPI(prim).GetFilteredPairsRel().GetTargets()
                others = [self._end(str(target))[0] for target in pairs]
                self.scene.apart += [(owner, x) for x in others if WORLD not in (owner, x) and x != owner]
            if prim.GetTypeName() == "PhysicsCollisionGroup":
                self.say("left-out", "collision groups", prim.GetName(), "a robot has pairs of links instead")
        for name in self.still:
            self.say("rewritten", "bodies", name, "kinematic or not enabled: they stand still")
        loose = [joint for joint in side.joints if joint.kind == "floating" and joint.parent == WORLD]
        taken = {joint.name for joint in side.joints}
        for joint in loose:
            joint.name = joint.name or free_name(f"{joint.child}_free", taken, "_joint")
        where = {joint.name: free_coordinates(self.bodies[joint.child].pose) for joint in loose}
        if any(each != (1.0, *(0.0,) * 6) for each in where.values()):
            self.scene.configurations["initial"] = where
        for (code, what, text), names in self._said.items():
            side.say(code, what, names, text)

    def _read_ground(self, prim: Any) -> None:
        """A collider that belongs to no body."""
        if prim.GetTypeName() == "Plane":
            from pxr import UsdGeom

            pose, _ = rigid_pose(prim, self.metres)
            turn = TURNS[axis_letter(UsdGeom.Plane(prim), "Z")]
            at = self.up @ pose @ Placement(turn)
            self.scene.grounds.append(DescribedGround("plane", at, name=prim.GetName()))
            return
        shape = self._shape(prim, Placement())
        if shape is None:
            self.say("left-out", f"{prim.GetTypeName()}s", prim.GetName(), NO_SHAPE)
            return
        self.scene.grounds.append(DescribedGround("solid", self.up, shape=shape))


NO_SHAPE = "a robot's shapes are boxes, spheres, cylinders, capsules and meshes"


def _unit(path: str | os.PathLike[str], name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise RobokitError(f"{path}: {name} is {value:g}; it has to be a number above 0")
    return float(value)


def _raw(attribute: Any) -> Any:
    """The value of an attribute, of one that changes with time the first; None if it has none."""
    from pxr import Usd

    return attribute.Get(Usd.TimeCode.EarliestTime())


def _mistyped(attribute: Any, value: Any) -> bool:
    kind = attribute.GetTypeName()
    return bool(kind) and value is not None and type(value) is not type(kind.defaultValue)


def _at_first(attribute: Any) -> Any:
    """The same; _Mistyped where the value is of another type than its attribute, which USD lets pass."""
    value = _raw(attribute)
    if _mistyped(attribute, value):
        raise _Mistyped(f"<{attribute.GetPath()}>: expected a {attribute.GetTypeName()}, got {value}")
    return value


def _size(attribute: Any) -> float:
    """A length of a shape; its schema's where the file says none."""
    return float(_at_first(attribute))


def _transform(prim: Any) -> np.ndarray:
    """From a prim's coordinates to the stage's, (4, 4), for row vectors; at the first time of a motion."""
    from pxr import Usd, UsdGeom

    cache = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())
    return np.array(cache.GetLocalToWorldTransform(prim), dtype=float)


def _get(attribute: Any, absent: Any) -> Any:
    value = _at_first(attribute) if attribute and attribute.HasAuthoredValue() else None
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
    return np.array(quat_wxyz_to_rotation((w / n, x / n, y / n, z / n)).rows)


def _body(prim: Any, metres: float, kilograms: float, up: Placement) -> DescribedBody:
    from pxr import UsdPhysics

    pose, scale = rigid_pose(prim, metres)
    body = DescribedBody(prim.GetName(), up @ pose)
    mass = UsdPhysics.MassAPI(prim)
    body.mass = float(_get(mass.GetMassAttr(), 0.0)) * kilograms
    com = np.array(_get(mass.GetCenterOfMassAttr(), (0.0, 0.0, 0.0)), dtype=float)
    if np.isfinite(com).all():  # minus infinity means that the file does not say it
        body.com = com * scale * metres
    moments = np.array(_get(mass.GetDiagonalInertiaAttr(), (0.0, 0.0, 0.0)), dtype=float)
    axes = _get(mass.GetPrincipalAxesAttr(), None)
    R = np.eye(3) if axes is None else quaternion(axes)
    body.inertia = R @ np.diag(moments * kilograms * metres**2) @ R.T
    shapes, mass_of_shapes = collision_shapes(prim, metres)
    body.collisions = tuple(shapes)
    if body.mass == 0.0 and mass_of_shapes is not None:
        body.mass = mass_of_shapes * kilograms / metres**3
    body.gravity = 0.0 if _get(prim.GetAttribute("physxRigidBody:disableGravity"), False) else 1.0
    return body


def _is_locked(prim: Any, name: str) -> bool:
    """Whether a degree of freedom has a limit whose lower end is above the upper."""
    low = _get(prim.GetAttribute(f"limit:{name}:physics:low"), -math.inf)
    high = _get(prim.GetAttribute(f"limit:{name}:physics:high"), math.inf)
    return bool(low > high) or low == high


def _drive(prim: Any, which: str) -> Any:
    """The drive of a degree of freedom; None if there is none."""
    from pxr import UsdPhysics

    drive = UsdPhysics.DriveAPI.Get(prim, which)
    return drive if drive and prim.HasAPI(UsdPhysics.DriveAPI, which) else None


def _read_axis(out: DescribedJoint, prim: Any, letter: str, metres: float, kilograms: float) -> None:
    """Limits, drive, passive forces and mimic laws of a joint of one coordinate."""
    kind = out.kind
    unit, gain = (DEGREE, 1.0 / DEGREE) if kind == "revolute" else (metres, 1.0 / metres)
    force_unit = kilograms * metres * (metres if kind == "revolute" else 1.0)  # forces; torques
    low, high = ("lowerLimit", "upperLimit") if not letter else ("low", "high")
    prefix = f"limit:{letter}:physics" if letter else "physics"
    out.lower = float(_get(prim.GetAttribute(f"{prefix}:{low}"), -math.inf)) * unit
    out.upper = float(_get(prim.GetAttribute(f"{prefix}:{high}"), math.inf)) * unit
    drive = _drive(prim, letter or ("angular" if kind == "revolute" else "linear"))
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


def _laws(prim: Any, unit: float) -> list[Law]:
    """Mimic laws, their leaders by path.

    PhysX has joint + gearing * leader + offset = 0, Newton joint = coef0 + coef1 * leader.
    """
    laws = []
    leader = prim.GetRelationship("newton:mimicJoint")
    if leader and leader.GetTargets():
        k, o = (_get(prim.GetAttribute(f"newton:mimicCoef{n}"), 1.0 * n) for n in (1, 0))
        laws.append(Law(str(leader.GetTargets()[0]), float(k), float(o) * unit))
    for which in (*FREEDOMS[3:], *FREEDOMS[:3]):
        leader = prim.GetRelationship(f"physxMimicJoint:{which}:referenceJoint")
        if leader and leader.GetTargets():
            gearing = _get(prim.GetAttribute(f"physxMimicJoint:{which}:gearing"), 1.0)
            offset = _get(prim.GetAttribute(f"physxMimicJoint:{which}:offset"), 0.0)
            laws.append(Law(str(leader.GetTargets()[0]), -float(gearing), -float(offset) * unit))
    return laws


def _gravity(scene: Any, metres: float, up: Placement) -> np.ndarray:
    direction = np.array(_get(scene.GetGravityDirectionAttr(), (0.0, 0.0, 0.0)), dtype=float)
    strength = float(_get(scene.GetGravityMagnitudeAttr(), -math.inf))
    g = strength * metres if math.isfinite(strength) and strength >= 0.0 else 9.81
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return np.array([0.0, 0.0, -g])
    return np.asarray(up.rotation @ direction * (g / length))


# ---- Poses and collision shapes of prims of a USD stage ------------------------------------------


TURNS = {
    "X": np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    "Y": np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "Z": np.eye(3),
}
"""Axis of a cylinder -> rotation that takes z there."""


def axis_letter(schema: Any, absent: str) -> str:
    """The axis of a joint or shape, "X", "Y" or "Z"; RobokitError for another word."""
    letter = str(_at_first(schema.GetAxisAttr()) or absent)
    if letter not in TURNS:
        raise RobokitError(f"{schema.GetPath()}: its axis is {letter!r}; expected X, Y or Z")
    return letter


def rigid_pose(prim: Any, metres: float) -> tuple[Placement, np.ndarray]:
    """Pose of a prim in the stage's world without its scale, and the scale, (3,)."""
    matrix = _transform(prim)
    # Rows are the prim's axes: USD multiplies row vectors.
    axes = matrix[:3, :3]
    scale = np.linalg.norm(axes, axis=1)
    scale[scale == 0.0] = 1.0
    return Placement((axes / scale[:, None]).T, matrix[3, :3] * metres), scale


def collision_shapes(body: Any, metres: float) -> tuple[list[DescribedShape], float | None]:
    """The colliders below a body, and the mass in stage units that a density gives them, None without one."""
    from pxr import Usd, UsdPhysics

    origin, _ = rigid_pose(body, metres)
    found: list[DescribedShape] = []
    for prim in Usd.PrimRange(body, Usd.TraverseInstanceProxies()):
        if prim != body and prim.HasAPI(UsdPhysics.RigidBodyAPI):
            continue
        if not prim.HasAPI(UsdPhysics.CollisionAPI):
            continue
        if _at_first(UsdPhysics.CollisionAPI(prim).GetCollisionEnabledAttr()) is False:
            continue
        pose, scale = rigid_pose(prim, metres)
        shape = _shape(prim, scale * metres)
        if shape is not None:
            kind, size, turn = shape
            own = origin.inverse() @ pose @ Placement(turn)
            found.append(DescribedShape(kind, size, own, prim.GetName()))
    density = _at_first(UsdPhysics.MassAPI(body).GetDensityAttr())
    volume = sum(solid[0] for solid in map(solid_of, found) if solid is not None)
    return found, float(density) * volume if density and volume else None


def _shape(prim: Any, scale: np.ndarray) -> tuple[str, tuple[float, ...], np.ndarray] | None:
    from pxr import UsdGeom

    kind = prim.GetTypeName()
    if kind == "Cube":
        edge = _size(UsdGeom.Cube(prim).GetSizeAttr())
        return "box", tuple(float(edge * s) for s in scale), np.eye(3)
    if kind == "Sphere":
        return "sphere", (_size(UsdGeom.Sphere(prim).GetRadiusAttr()) * float(scale.max()),), np.eye(3)
    if kind in ("Cylinder", "Capsule"):
        typed = UsdGeom.Cylinder(prim) if kind == "Cylinder" else UsdGeom.Capsule(prim)
        letter = axis_letter(typed, "Z")
        k = "XYZ".index(letter)
        across = float(np.delete(scale, k).max())
        size = (
            _size(typed.GetRadiusAttr()) * across,
            _size(typed.GetHeightAttr()) * float(scale[k]),
        )
        return kind.lower(), size, TURNS[letter]
    if kind == "Mesh":
        return "mesh", (1.0, 1.0, 1.0), np.eye(3)
    return None


def _mesh(prim: Any, origin: Placement, metres: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Points in the body's frame [m] and triangles of a mesh; None if it has none."""
    from pxr import UsdGeom

    typed = UsdGeom.Mesh(prim)
    attributes = typed.GetPointsAttr(), typed.GetFaceVertexCountsAttr(), typed.GetFaceVertexIndicesAttr()
    points, counts, corners = map(_at_first, attributes)
    if not points or not counts or not corners:
        return None
    matrix = _transform(prim)
    world = (np.array(points, dtype=float) @ matrix[:3, :3] + matrix[3, :3]) * metres
    own = (world - origin.position) @ origin.rotation
    counts, corners = np.array(counts), np.array(corners)
    ends = np.cumsum(counts)
    if ends[-1] != len(corners) or counts.min() < 0 or corners.min() < 0 or corners.max() >= len(own):
        return None
    faces = [
        (corners[end - n], corners[end - n + k], corners[end - n + k + 1])
        for n, end in zip(counts.tolist(), ends.tolist(), strict=True)
        for k in range(1, n - 1)
    ]
    left_handed = str(_at_first(typed.GetOrientationAttr())) == "leftHanded"
    mirrored = (np.linalg.det(matrix[:3, :3]) < 0.0) != left_handed
    triangles = np.array(faces, dtype=np.int64).reshape(-1, 3)
    return own, triangles[:, ::-1] if mirrored else triangles


def _looks(prim: Any) -> tuple[RGBA | None, str]:
    """Colour and texture of a shape: of its material, or the colour that it is displayed in."""
    from pxr import UsdGeom, UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    shader = None
    if material:
        shader = material.ComputeSurfaceSource()[0] or material.ComputeSurfaceSource(["mdl"])[0]
    if shader:
        colour, texture = _input(shader, 3, "diffuseColor", "diffuse_color_constant", "base_color")
        opacity, _ = _input(shader, 1, "opacity", "opacity_constant")
        if colour is not None or texture:
            r, g, b = (1.0, 1.0, 1.0) if colour is None else colour
            return (r, g, b, 1.0 if opacity is None else opacity[0]), texture
    gprim = UsdGeom.Gprim(prim)
    colour = _mean(gprim.GetDisplayColorPrimvar().ComputeFlattened(), 3) if gprim else None
    if colour is None:
        return None, ""
    opacity = _mean(gprim.GetDisplayOpacityPrimvar().ComputeFlattened(), 1)
    r, g, b = colour
    return (r, g, b, 1.0 if opacity is None else opacity[0]), ""


def _mean(values: Any, count: int) -> list[float] | None:
    """The mean of rows of ``count`` numbers; None for what is no numbers.

    A robot is not refused for its looks.
    """
    try:
        rows = np.array(values, dtype=float).reshape(-1, count)
    except (TypeError, ValueError):
        return None
    return [float(x) for x in rows.mean(axis=0)] if np.isfinite(rows).all() and len(rows) else None


def _input(shader: Any, count: int, *names: str) -> tuple[list[float] | None, str]:
    """The numbers of the first input that exists, and the image file that is connected to it."""
    for name in names:
        given = shader.GetInput(name)
        if not given:
            continue
        source = given.GetConnectedSources()[0] if given.HasConnectedSource() else []
        for each in source:
            from pxr import UsdShade

            file = UsdShade.Shader(each.source.GetPrim()).GetInput("file")
            asset = file.Get() if file else None
            if asset is not None and hasattr(asset, "resolvedPath"):
                return None, str(asset.resolvedPath or asset.path)
        value = _mean(given.Get(), count)
        if value is not None:
            return value, ""
    return None, ""


def _material_density(prim: Any) -> float:
    """Density of a collider's physics material in the stage's units; 0 if it says none."""
    from pxr import UsdPhysics, UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
    if not material or not material.GetPrim().HasAPI(UsdPhysics.MaterialAPI):
        return 0.0
    return float(_get(UsdPhysics.MaterialAPI(material.GetPrim()).GetDensityAttr(), 0.0))
