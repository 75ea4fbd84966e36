"""A description becomes a robot: bodies are links, joints are joints, through the ModelBuilder."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import frozen
from robokit.errors import LoadError, RobokitError, UnknownName
from robokit.formats.description import (
    WORLD,
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
    file_of_mesh,
)
from robokit.model.builder import ModelBuilder
from robokit.model.edit import couple
from robokit.model.geometry import Geometry, Mesh, Placement, Shape
from robokit.model.joints import JOINT_TABLE, LOOP_TABLE
from robokit.model.parts import Mimic, Scene, free_name
from robokit.model.robot import Robot
from robokit.spatial.scalars import maximum, minimum

CLOSE = 1e-12  # distance of an anchor from a link's axis, over the link's place and 1 m, that is rounding


def build_robot(
    side: Description,
    base: str | None = None,
    root: str | None = None,
    mimic: str | None = None,
    strict: bool = False,
) -> Robot:
    """The robot of a description; ``base`` is "fixed" or "floating", None as the file says.

    ``root`` names the body whose tree is the robot, where the file has several trees; ``mimic`` is as for
    :func:`robokit.load_urdf`; ``strict`` refuses warnings like errors. Raises LoadError where the description
    is no robot, or is refused; UnknownName where there is no tree of that root.
    """
    try:
        robot = _Build(side, base, root).robot()
    except (LoadError, UnknownName):
        raise
    except RobokitError as problem:
        raise LoadError(f"{side.file}: {problem}", side.said) from problem
    found = [d for d in robot.diagnostics if d.severity == "warning"]
    if strict and found:
        lines = "\n".join(f"  {each}" for each in found[:20])
        raise LoadError(f"{side.file}: {len(found)} warnings (refused by strict=True)\n{lines}", found)
    return couple(robot) if mimic == "couple" else robot


class _Build:
    """Makes one robot of a description."""

    def __init__(self, side: Description, base: str | None, root: str | None) -> None:
        self.side = replace(side, said=list(side.said))
        self.into = {joint.child: joint for joint in side.joints}
        self.children: dict[str, list[DescribedJoint]] = {}
        for joint in side.joints:
            self.children.setdefault(joint.parent, []).append(joint)
        self.links = set(side.bodies)
        self.joints = {joint.name for joint in side.joints if joint.name}
        self.builder = ModelBuilder(side.name or Path(side.file).stem, side.file)
        self._choose(base, root)

    # ---- which bodies, and what carries them -----------------------------------------------------

    def _choose(self, base: str | None, root: str | None) -> None:
        """See which trees are the robot, and whether its base floats."""
        trees = [joint.child for joint in self.children.get(WORLD, [])]
        moving = [name for name in trees if any(self.into[b].moves for b in self._below(name))]
        robots = moving or trees
        self.still = {b for tree in set(trees) - set(robots) for b in self._below(tree)}
        self.loops = [self._to_world(loop, self.still) for loop in self.side.loops]
        if root is not None:
            if root not in robots:
                raise UnknownName("root of a tree", root, robots, f"in {self.side.file}")
            self.side.say("rewritten", "trees", [t for t in robots if t != root], "root= leaves them out")
            robots = [root]
        world = self.side.bodies.get(WORLD)
        if not robots and (world is None or not world.collisions):
            raise LoadError(f"{self.side.file}: there is no body in it")
        floats = len(robots) == 1 and self.into[robots[0]].kind == "floating"
        self.base = base or ("floating" if floats else "fixed")
        if self.base == "floating" and len(robots) > 1:
            shown = ", ".join(map(repr, robots[:8])) + (", ..." if len(robots) > 8 else "")
            raise LoadError(
                f"{self.side.file}: base='floating' is for one robot, and there are {len(robots)} trees of "
                f"bodies: {shown}; root=NAME chooses one, base='fixed' takes all in one world"
            )
        inside = {b for tree in robots for b in self._below(tree)}
        held = any(WORLD in (x.predecessor, x.successor) for x in self._loops(inside | {WORLD}))
        rests = len(robots) == 1 and not self.into[robots[0]].moves
        alone = floats or (rests and (self.base == "floating" or self._is_world(robots[0])))
        if held and self.base == "fixed":  # the end of the loop is then the world
            alone = False
        self.root = robots[0] if alone else WORLD
        names = [name for tree in robots for name in self._below(tree)]
        self.bodies = names if alone else [WORLD, *names]
        self.free = self.into[robots[0]] if alone and floats else None

    def _to_world(self, loop: DescribedLoop, still: set[str]) -> DescribedLoop:
        """A loop that holds something to furniture, as one that holds it to the world."""
        for end in ("predecessor", "successor"):
            if (name := getattr(loop, end)) in still:
                frame = self._pose(name) @ getattr(loop, f"{end}_frame")
                loop = replace(loop, **{end: WORLD, f"{end}_frame": frame})
        return loop

    def _is_world(self, name: str) -> bool:
        """Whether a body that no joint of the file holds is the world: its frame is the world's."""
        pose, world = self.side.bodies[name].pose, self.side.bodies.get(WORLD)
        bare = not self.into[name].name and (world is None or not world.frames)
        here = max(np.abs(pose.position).max(), np.abs(pose.rotation - np.eye(3)).max()) <= CLOSE
        return bool(bare and here)

    def _below(self, name: str) -> Iterable[str]:
        todo = [name]
        while todo:
            each = todo.pop()
            yield each
            todo += reversed([joint.child for joint in self.children.get(each, [])])

    def _loops(self, inside: set[str]) -> list[DescribedLoop]:
        return [x for x in self.loops if {x.predecessor, x.successor} <= inside]

    # ---- the robot ------------------------------------------------------------------------------

    def robot(self) -> Robot:
        """The robot."""
        placed: set[str] = set()
        mimics = self._mimics()
        for name in self.bodies:
            body = self.side.bodies.get(name) or DescribedBody(name, Placement())
            if name == WORLD:
                body = DescribedBody(WORLD, Placement(), frames=body.frames)
            shapes = [
                tuple(made for shape in those if (made := self._shape(body.name, shape)) is not None)
                for those in (body.visuals, body.collisions)
            ]
            self.builder.link(body.name, body.mass, body.com, 0.5 * (body.inertia + body.inertia.T), *shapes)
            if name != self.root:
                self._joint(self.into[name], mimics)
            placed.add(name)
            self._frames(body)
        kept = self._loops(placed | {WORLD})
        for loop in kept:
            self._loop(loop)
        apart = [
            x.name or f"{x.predecessor} to {x.successor}" for x in self.loops if not any(x is y for y in kept)
        ]
        self.side.say("left-out", "loops", apart, "one of its ends is not on this robot")
        self.side.say(
            "left-out",
            "bodies with gravity of their own",
            [name for name in self.bodies if name in placed and self._gravity(name) != 1.0],
            "all of gravity acts",
            "rk.gravity_forces gives the joint forces that hold the robot",
        )
        if self.free is not None:
            self.builder.base_armature = self.free.armature or 0.0
        self.builder.scene = self._scene(placed)
        gravity = None if self.side.gravity is None else self.side.gravity.tolist()
        return self.builder.build(self.base, self.side.said, gravity)

    def _joint(self, joint: DescribedJoint, mimics: Mapping[str, Mimic]) -> None:
        """The joint that carries a body; where it is not at the body's frame, with a link of its own."""
        parent, child = self._pose(joint.parent), self._pose(joint.child)
        kind = joint.kind
        name = joint.name or free_name(
            f"{joint.child}_{'free' if kind == 'floating' else 'fixed'}", self.joints, "_joint"
        )
        if kind == "revolute" and _limit(joint.lower) is None and _limit(joint.upper) is None:
            kind = "continuous"
        if kind not in JOINT_TABLE:
            raise LoadError(
                f"{self.side.file}: joint {name!r} is {kind!r}; robots have {', '.join(JOINT_TABLE)}",
                self.side.said,
            )
        if joint.parent == WORLD and kind == "floating":  # its coordinates are the body's pose in the world
            at = Placement(child.rotation, child.position)
            self._add_joint(name, joint, kind, parent.inverse(), at, mimics)
            return
        frame = child if _at_frame(kind, joint, child) else Placement(child.rotation, joint.anchor)
        link = joint.child
        if frame is not child:
            link = free_name(f"{name}_link", self.links, "_frame")
            self.builder.link(link)
        self._add_joint(name, joint, kind, parent.inverse() @ frame, frame, mimics, link)
        if frame is not child:
            fixed = free_name(f"{name}_to_{joint.child}", self.joints, "_joint")
            self.builder.joint(fixed, "fixed", link, joint.child, frame.inverse() @ child)

    def _add_joint(
        self,
        name: str,
        joint: DescribedJoint,
        kind: str,
        placement: Placement,
        frame: Placement,
        mimics: Mapping[str, Mimic],
        child: str | None = None,
    ) -> None:
        axis = frame.rotation.T @ np.asarray(joint.axis, dtype=float)
        single = JOINT_TABLE[kind].nv == 1
        self.builder.joint(
            name,
            kind,
            joint.parent,
            child or joint.child,
            placement,
            axis if axis.any() else (1.0, 0.0, 0.0),
            joint.pitch,
            _limit(joint.lower) if single else None,
            _limit(joint.upper) if single else None,
            self._effort(joint) if single else None,
            _limit(joint.velocity) if single else None,
            joint.damping or 0.0,
            joint.friction or 0.0,
            mimics.get(name),
            armature=joint.armature or 0.0,
        )

    def _effort(self, joint: DescribedJoint) -> float | None:
        ends = [abs(x) for x in (joint.effort, joint.effort_lower) if x is not None and math.isfinite(x)]
        return max(ends) if joint.effort is not None and ends else None

    def _frames(self, body: DescribedBody) -> None:
        for name, pose in body.frames.items():
            if name == body.name and not pose.position.any() and np.array_equal(pose.rotation, np.eye(3)):
                continue  # it is the body's own
            link = free_name(name, self.links, "_frame")
            self.builder.link(link)
            self.builder.joint(
                free_name(f"{name}_fixed", self.joints, "_joint"), "fixed", body.name, link, pose
            )

    def _loop(self, loop: DescribedLoop) -> None:
        name = free_name(loop.name or f"{loop.predecessor}_{loop.successor}", self.joints, "_joint")
        if loop.kind not in LOOP_TABLE:
            self.side.say("left-out", "loops", [name], f"its kind is {loop.kind!r}")
            return
        if self._rigid(loop.predecessor) == self._rigid(loop.successor):
            self.side.say("left-out", "loops", [name], "both of its ends are of one rigid body")
            return
        between, at, there = (loop.predecessor, loop.successor), loop.predecessor_frame, loop.successor_frame
        more: dict[str, Any] = {"length": loop.length} if loop.kind == "distance" else {}
        if loop.kind == "universal":
            more = {"axis2": (1.0, 0.0, 0.0)}
            there = there @ Placement(np.roll(np.eye(3), 1, axis=0).T)  # whose x is the z of before
        self.builder.loop_joint(name, loop.kind, *between, at, there, axis=(0.0, 0.0, 1.0), **more)

    def _rigid(self, name: str) -> str:
        """The body nearest to the root that a body is fixed to."""
        while name not in (WORLD, self.root) and not self.into[name].moves:
            name = self.into[name].parent
        return WORLD if name == self.root and self.base == "fixed" else name

    def _gravity(self, name: str) -> float:
        body = self.side.bodies.get(name)
        return 1.0 if body is None or name == WORLD else body.gravity

    def _pose(self, name: str) -> Placement:
        return Placement() if name == WORLD else self.side.bodies[name].pose

    # ---- mimic laws -----------------------------------------------------------------------------

    def _mimics(self) -> dict[str, Mimic]:
        """Joint -> the straight law that it follows; what is no such law is said."""
        found: dict[str, Mimic] = {}
        names = {joint.name for joint in self.side.joints if joint.child in set(self.bodies)}
        laws = [(j.name, law) for j in self.side.joints if j.name in names for law in j.laws or ()]
        bent, doubled, held = [], [], []
        for name, law in [*laws, *_laws_of(self.side.relations, names)]:
            if name in found or _leads_to(found, law.leader, name):
                doubled.append(name)
            elif law.curve:
                bent.append(name)
            elif law.leader not in names:
                held.append(name)
            else:
                found[name] = Mimic(law.leader, law.multiplier, law.offset)
        several = [r.name for r in self.side.relations if not _pair_of(r, names)]
        self.side.say("left-out", "couplings of joints", bent, "only linear laws couple joints")
        self.side.say("left-out", "couplings of joints", doubled, "a joint follows one other, the first")
        self.side.say(
            "left-out", "couplings of joints", held, "a constraint that holds a joint at a position"
        )
        self.side.say("left-out", "couplings of joints", several, "a relation of more than two joints")
        if found:
            self.side.say(
                "rewritten",
                "couplings of joints",
                list(found),
                "a mimic joint; mimic='couple' lets it follow",
            )
        return found

    # ---- shapes and the scene ---------------------------------------------------------------------

    def _shape(self, body: str, shape: DescribedShape) -> Shape | None:
        geometry = _geometry(shape)
        if geometry is None:
            self.side.say("left-out", "shapes", [shape.name or body], f"its kind is {shape.kind!r}")
            return None
        texture = shape.texture_path or (Path(shape.texture) if shape.texture else None)
        rgba = None if shape.rgba is None else tuple(min(max(float(x), 0.0), 1.0) for x in shape.rgba)
        return Shape(
            geometry,
            shape.pose,
            rgba,  # type: ignore[arg-type]
            None if texture is None or not texture.is_file() else str(texture),
            shape.name or None,
            shape.texture or None,
        )

    def _scene(self, placed: set[str]) -> Scene | None:
        given = self.side.scene
        if given is None:
            return None
        return Scene(
            self._ground(given.grounds, placed),
            self._actuators(given, placed),
            self._springs(given, placed),
            self._configurations(given, placed),
            tuple(pair for pair in given.apart if set(pair) <= placed),
            given.dt,
        )

    def _actuators(self, given: DescribedScene, placed: set[str]) -> tuple[Any, ...]:
        """The actuators, one of a kind."""
        from robokit.sim.actuators import PD, Actuator, Torque, Velocity

        names = {joint.name for joint in self.side.joints if joint.child in placed}
        gains: dict[str, dict[str, list[float]]] = {}
        for one in given.actuators:
            if one.joint in names:
                gains.setdefault(one.kind, {}).setdefault(one.joint, [0.0, 0.0])
                both = gains[one.kind][one.joint]
                both[0] += one.stiffness
                both[1] += one.damping
        servos, speeds, torques = (gains.get(k, {}) for k in ("position", "velocity", "torque"))
        for joint in [j for j in speeds if j in servos]:
            servos[joint][1] += speeds.pop(joint)[1]
        extra = [joint for joint in torques if joint in servos or joint in speeds]
        torques = {joint: x for joint, x in torques.items() if joint not in extra}
        self.side.say(
            "rewritten", "joints", extra, "of a servo and a motor, the servo: feedforward= is the motor"
        )
        actuators: list[Actuator] = []
        if servos:
            kp, kd = ({joint: x[k] for joint, x in servos.items()} for k in (0, 1))
            actuators.append(PD(joints=tuple(servos), kp=kp, kd=kd, effort=_efforts(given, servos)))
        if speeds:
            gain = {j: x[1] for j, x in speeds.items()}
            actuators.append(Velocity(joints=tuple(speeds), gain=gain, effort=_efforts(given, speeds)))
        if torques:
            actuators.append(Torque(joints=tuple(torques), effort=_efforts(given, torques)))
        return tuple(actuators)

    def _springs(self, given: DescribedScene, placed: set[str]) -> tuple[Any, ...]:
        """The springs of joints and of tendons."""
        found: list[Any] = []
        joints, tendons, apart = [], [], []
        for joint in [x for x in self.side.joints if x.child in placed]:
            own = joint.springs
            if joint.stiffness:
                own = (DescribedSpring(joint.name, (joint.stiffness,), (), joint.rest, joint.rest), *own)
            found += [law for spring in own for law in _laws_of_spring(spring, joint.name)]
            joints += [joint.name] if own else []
        for spring in given.springs:
            ends = [self._place(*end) for end in spring.ends]
            if {body for body, _ in ends} <= placed | {WORLD} and ends[0][0] != ends[1][0]:
                found += _laws_of_spring(replace(spring, ends=tuple(ends)))
                tendons.append(spring.name)
            else:
                apart.append(spring.name)
        text = "acting in runs with springs=robot.scene.springs"
        self.side.say("rewritten", "springs of joints", joints, text)
        self.side.say("rewritten", "tendons with springs", tendons, text)
        self.side.say("left-out", "tendons with springs", apart, "one of its ends is not on this robot")
        return tuple(found)

    def _place(self, body: str, point: np.ndarray) -> tuple[str, np.ndarray]:
        """A point of a body; of furniture, one of the world."""
        if body not in self.still:
            return body, point
        pose = self._pose(body)
        return WORLD, pose.rotation @ point + pose.position

    def _friction(self, shape: DescribedShape, ground: float | None) -> float | None:
        """Friction of a shape on the plane: MuJoCo takes the larger of the two, Gazebo the smaller."""
        own = 1.0 if shape.friction is None and self.side.format == "SDF" else shape.friction
        if own is None or ground is None or shape.prior:
            return own
        return min(own, ground) if self.side.format == "SDF" else max(own, ground)

    def _configurations(self, given: DescribedScene, placed: set[str]) -> dict[str, Any]:
        """Configurations of the robot's joints, the free joint of its base under the name it has there."""
        names = {joint.name: joint.name for joint in self.side.joints if joint.child in placed}
        if self.free is not None:
            names.pop(self.free.name, None)
            names |= {self.free.name: FLOATING_BASE} if self.base == "floating" else {}
        found = {
            name: {names[joint]: x for joint, x in values.items() if joint in names}
            for name, values in given.configurations.items()
        }
        return {name: values for name, values in found.items() if values}

    def _ground(self, grounds: Sequence[DescribedGround], placed: set[str]) -> Any:
        from robokit.sim.ground import Ground, HeightField, Solid

        if not grounds:
            return None
        planes = [g for g in grounds if g.kind == "plane"]
        plane = next((g for g in planes if g.pose.rotation[2, 2] > CLOSE), None)
        others = [g.name for g in planes if g is not plane]
        self.side.say("left-out", "planes of the world", others, "a ground has one, whose normal points up")
        fields = [g for g in grounds if g.kind == "field"]
        base = None if plane is None else plane.friction
        friction: dict[str, float] = {}
        for name in self.bodies:
            if name in placed and name in self.side.bodies:
                shapes = self.side.bodies[name].collisions
                those = [x for s in shapes if (x := self._friction(s, base)) is not None]
                friction.update({name: max(those)} if those else {})
        self.side.say("left-out", "height fields", [g.name for g in fields[1:]], "a ground has one")
        everywhere = set(friction.values())
        arguments: dict[str, Any] = {"plane": plane is not None}
        if everywhere or base is not None:
            arguments["friction"] = friction if len(everywhere) > 1 else next(iter(everywhere), base)
        if plane is not None:
            normal = plane.pose.rotation[:, 2]
            arguments["height"] = float(normal @ plane.pose.position / normal[2])
            if abs(normal[2] - 1.0) > CLOSE:
                arguments["normal"] = tuple(normal.tolist())
            arguments |= {"torsional": plane.torsional, "rolling": plane.rolling}
        if fields:
            f = fields[0]
            corner = tuple(f.pose.position.tolist())
            arguments["terrain"] = HeightField(f.heights, f.cell, corner, f.friction)
        solids = []
        for g in grounds:
            if g.kind != "solid" or g.shape is None:
                continue
            geometry: Any = _geometry(g.shape) if g.shape.points is None else g.shape.points
            if geometry is not None:
                solids.append(Solid(geometry, g.pose @ g.shape.pose, g.friction, g.shape.rgba))
        if not (plane or fields or solids):
            return None
        return Ground(shapes=solids, **arguments)


def _efforts(scene: DescribedScene, joints: Collection[str]) -> dict[str, float] | None:
    """Limits of actuators that their joints' own do not say; None where there are none."""
    found = {one.joint: one.effort for one in scene.actuators if one.effort is not None}
    return {joint: found[joint] for joint in joints if joint in found} or None


def _laws_of_spring(spring: DescribedSpring, joint: str | None = None) -> list[Any]:
    """A spring as springs of robokit: linear ones, or one with a function as its law."""
    from robokit.sim.force_elements import JointSpring, Spring

    between: dict[str, Any] = {}
    if joint is None:
        (a, at_a), (b, at_b) = spring.ends
        between = {"a": a, "b": b, "at_a": at_a, "at_b": at_b}

    def law(name: str, rest: float, **numbers: Any) -> Any:
        if joint is not None:
            return JointSpring(joint, name=name, rest=rest, **numbers)
        return Spring(**between, name=name, rest_length=max(rest, 0.0), **numbers)

    name, ends = spring.name, (spring.least, spring.most)
    numbers = (*spring.stiffness, *spring.damping)
    if min(numbers) < 0.0 or any((*spring.stiffness[1:], *spring.damping[1:])):
        return [law(name, ends[0], force=PowerLaw(spring.stiffness, spring.damping, *ends))]
    stiff, damp = (sum(numbers[:1]) for numbers in (spring.stiffness, spring.damping))
    if ends[0] == ends[1] or not stiff:
        return [law(name, ends[0], stiffness=stiff, damping=damp)]
    sides = []
    for acts, rest in zip(("push", "pull"), ends, strict=True):
        if math.isfinite(rest) and (rest > 0.0 or acts == "pull" or joint is not None):  # else it never acts
            sides.append(law(f"{name}_{acts}", rest, stiffness=stiff, acts=acts))
    if len(sides) == 1 and not damp:
        return [replace(sides[0], name=name)]
    return sides + ([law(f"{name}_damper", ends[0], damping=damp)] if damp else [])


@frozen
class PowerLaw:
    """A tension (length, rate) -> force, of powers: that of a ``DescribedSpring``."""

    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    least: float
    most: float

    def __call__(self, length: Any, rate: Any) -> Any:
        """The tension."""
        x = maximum(length - self.most, 0.0) + minimum(length - self.least, 0.0)
        size = maximum(rate, 0.0 - rate)
        spring, damper = 0.0, 0.0
        for k in reversed(self.stiffness):
            spring = (spring + k) * x
        for d in reversed(self.damping):
            damper = d + damper * size
        return spring + damper * rate


def _limit(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _at_frame(kind: str, joint: DescribedJoint, child: Placement) -> bool:
    """Whether the joint moves its child about the child's own frame: its axis runs through the origin."""
    if kind in ("fixed", "prismatic", "floating"):
        return True
    apart = np.asarray(joint.anchor, dtype=float) - child.position
    if kind in ("revolute", "continuous", "helical", "cylindrical"):
        axis = np.asarray(joint.axis, dtype=float)
        apart = apart - axis * (axis @ apart)
    elif kind == "planar":
        apart = np.zeros(3)
    return float(np.linalg.norm(apart)) <= CLOSE * (1.0 + float(np.linalg.norm(child.position)))


def _geometry(shape: DescribedShape) -> Geometry | None:
    if shape.kind != "mesh":
        return shape.primitive
    if shape.points is not None and shape.faces is not None:
        kept = file_of_mesh(shape.name or shape.file, shape.points, shape.faces)
        return Mesh(str(kept), (1.0, 1.0, 1.0), kept)
    path = shape.path or (Path(shape.file) if Path(shape.file).is_file() else None)
    return Mesh(shape.file or str(path), (shape.size[0], shape.size[1], shape.size[2]), path)


def _leads_to(found: Mapping[str, Mimic], name: str, end: str) -> bool:
    """Whether a joint follows another one, or is it."""
    while name != end and name in found:
        name = found[name].joint
    return name == end


def _pair_of(relation: Relation, names: set[str]) -> list[tuple[str, float]]:
    """The two joints of a relation, the one with the smaller factor last; [] if there are not two."""
    pairs = [(name, x) for name, x in relation.factors.items() if x]
    good = len(pairs) == 2 and all(name in names for name, _ in pairs)
    return pairs if good else []


def _laws_of(relations: Sequence[Relation], names: set[str]) -> list[tuple[str, Law]]:
    """Relations of two joints as mimic laws of the second."""
    found = []
    for relation in relations:
        pair = _pair_of(relation, names)
        if pair:
            (leader, a), (follower, b) = pair
            found.append((follower, Law(leader, -a / b, relation.constant / b)))
    return found
