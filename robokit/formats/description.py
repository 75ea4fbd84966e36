"""One description of a robot as the referee compares it, whatever the format it came from.

Poses and vectors "in the world" are those with every joint coordinate at zero. The world of a description is
its own: the referee lays the two worlds on each other.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.dataclass_tools import frozen
from robokit.errors import Diagnostic, RobokitError, Severity, listed
from robokit.files import replacing
from robokit.meshes.surface import revolve
from robokit.model.geometry import (
    RGBA,
    Box,
    Capsule,
    Cylinder,
    Placement,
    Primitive,
    Sphere,
    square_gyrations,
    volume,
)
from robokit.urdf.description import UNLIMITED, JointDescription, LinkDescription

CODES: dict[str, Severity] = {
    "file-refused": "error",
    "left-out": "warning",
    "reader": "warning",
    "rewritten": "note",
    "ignored": "note",
    "unjudged": "note",
}
"""Codes of diagnostics about files that are no URDF.

file-refused  the file cannot become a robot
left-out      it acts in the file, and the robot does not have it
reader        what the program that read the file said
rewritten     the robot has it in another form
ignored       it changes no motion, and the robot does not have it
unjudged      the robot's masses and limits were not looked at, for a URDF cannot say it
"""

WORLD = "world"  # name of the fixed frame in the formats that have one


@frozen
class Law:
    """A mimic law: position = offset + multiplier * x + curve[0] * x^2 + ... [rad | m]."""

    leader: str  # the joint whose position is x; "" if the law is constant
    # multiplier, offset: of the law's linear part
    multiplier: float
    offset: float
    curve: tuple[float, ...] = ()  # coefficients of the higher powers, () for a straight law

    @classmethod
    def of(cls, leader: str, series: np.polynomial.Polynomial) -> Law:
        """The law that a polynomial of the leader's position is."""
        offset, multiplier, *curve = (float(x) for x in [*series.coef, 0.0][: max(2, len(series.coef))])
        return cls(leader, multiplier, offset, tuple(curve))


@frozen
class Relation:
    """A linear relation between joints: the sum of factor * position is ``constant`` [rad | m]."""

    name: str  # of what makes it, such as a tendon
    factors: dict[str, float]  # name of a joint -> factor
    constant: float  # the sum


@frozen
class DescribedLoop:
    """A joint or constraint that closes a loop of the tree."""

    name: str  # "" where the format has none
    # "fixed", "revolute", "prismatic", "cylindrical", "planar", "spherical", "universal", "distance" or
    # "other"
    kind: str
    # predecessor, successor: names of the two bodies
    predecessor: str
    successor: str
    # predecessor_frame, successor_frame: pose of the joint's frame in either body; z is its axis, in the
    # second one of a universal joint the axis that is perpendicular to the first
    predecessor_frame: Placement
    successor_frame: Placement
    line: int = 0  # in the file, 0 if it is not known
    length: float = 0.0  # of a distance [m]


@frozen
class DescribedShape:
    """A collision or visual shape of a body."""

    kind: str  # "box", "sphere", "cylinder", "capsule", "mesh" or "other"
    size: tuple[float, ...]  # full edges; radius; radius and length (without caps); scale of a mesh [m | 1]
    pose: Placement  # in the body's frame
    file: str = ""  # name of the mesh file as written, "" for the other kinds
    line: int = 0  # in the file, 0 if it is not known
    path: Path | None = None  # the mesh file on disk, None where it was not found or is not known
    rgba: RGBA | None = None  # colour and opacity, None where the file says none
    texture: str = ""  # name of the image file as written, "" for none
    texture_path: Path | None = None  # the image file on disk, None where it was not found
    name: str = ""  # of the shape, "" for none
    # points, faces: of a mesh that has no file, (n, 3) [m] and (m, 3) numbers of points, scaled already
    points: np.ndarray | None = None
    faces: np.ndarray | None = None
    friction: float | None = None  # Coulomb coefficient, None where nothing is said
    prior: bool = False  # whether this friction counts on the ground, be the ground's larger or not

    @property
    def primitive(self) -> Primitive | None:
        """The box, sphere, cylinder or capsule that it is; None of a mesh or another kind."""
        if self.kind == "box":
            return Box((self.size[0], self.size[1], self.size[2]))
        if self.kind == "sphere":
            return Sphere(self.size[0])
        if self.kind == "cylinder":
            return Cylinder(self.size[0], self.size[1])
        return Capsule(self.size[0], self.size[1]) if self.kind == "capsule" else None


@dataclass
class DescribedBody:
    """A rigid body; links that a format has merged are one body."""

    name: str  # of the body
    pose: Placement  # of its frame in the world
    mass: float = 0.0  # [kg]
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))  # centre of mass in its frame, (3,) [m]
    # about the centre of mass, in the axes of its frame, (3, 3) [kg m^2]
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    # collisions, visuals: its shapes
    collisions: tuple[DescribedShape, ...] = ()
    visuals: tuple[DescribedShape, ...] = ()
    # names of other frames fixed to it -> pose in its frame
    frames: dict[str, Placement] = field(default_factory=dict)
    gravity: float = 1.0  # part of gravity that acts on it, 1 for all of it
    written: LinkDescription | None = None  # the link as a URDF writes it; None for other formats
    static: bool = False  # the fixed frame itself, or a body whose mass its format does not keep

    @property
    def line(self) -> int:
        """Line of the inertial, or of the link where there is none; 0 if it is not known."""
        if self.written is None:
            return 0
        return self.written.inertial.line if self.written.inertial else self.written.line


@frozen
class DescribedSpring:
    """A spring and damper at a joint or between two points.

    With x, how far its length is above ``most`` (or below ``least``, then negative), its tension is

        stiffness[0] x + stiffness[1] x^2 + ... + damping[0] rate + damping[1] rate |rate| + ...
    """

    name: str  # of what makes it
    # stiffness, damping: coefficients of the powers, () for none
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    # least, most: between these lengths it is slack [m], at a joint [rad | m]
    least: float
    most: float
    # of two points, each the name of a body and the point in its frame (3,) [m]; () at a joint
    ends: tuple[tuple[str, np.ndarray], ...] = ()


@dataclass
class DescribedJoint:
    """A joint. A number is None where the format, or what read it, cannot say it."""

    name: str  # "" where the format has a body fixed to another without a name for that
    # "revolute", "prismatic", "fixed", "floating", "planar", "spherical" or "other"; of an SDF also
    # "continuous" and "helical"
    kind: str
    # parent, child: names of bodies
    parent: str
    child: str
    axis: np.ndarray = field(default_factory=lambda: np.zeros(3))  # unit vector in the world, (3,)
    # a point on the axis in the world, (3,) [m]
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    # lower, upper: [rad | m], infinite if unlimited
    lower: float | None = -math.inf
    upper: float | None = math.inf
    # effort, velocity: [N m | N], [rad/s | m/s], infinite if unlimited
    effort: float | None = None
    velocity: float | None = None
    # damping, friction: [N m s/rad | N s/m], [N m | N]
    damping: float | None = None
    friction: float | None = None
    armature: float | None = None  # [kg m^2 | kg]
    # stiffness, rest: of a spring in the joint [N m/rad | N/m], and where it is at rest [rad | m]
    stiffness: float | None = None
    # mimic laws that drive it; more than one if it is driven more than once
    laws: tuple[Law, ...] | None = ()
    drives: int | None = None  # number of actuators on it, None if the format has none
    written: JointDescription | None = None  # the joint as a URDF writes it; None for other formats
    effort_lower: float | None = None  # the least effort, None for ``-effort``
    pitch: float = 0.0  # advance of a helical joint per angle [m/rad]
    rest: float = 0.0
    springs: tuple[DescribedSpring, ...] = ()  # more in the joint than ``stiffness`` and ``damping`` say

    @property
    def moves(self) -> bool:
        """Whether it has coordinates."""
        return self.kind != "fixed"

    @property
    def line(self) -> int:
        """Line in a URDF, 0 if it is not known."""
        return self.written.line if self.written else 0


@frozen
class DescribedActuator:
    """What drives a joint: stiffness (target - q) + damping (velocity - v), or a force."""

    name: str  # of the actuator
    kind: str  # "torque", "position" or "velocity"
    joint: str  # name of the joint, of one coordinate
    # stiffness, damping: as the joint feels them, gear included [N m/rad | N/m], [N m s/rad | N s/m]
    stiffness: float = 0.0
    damping: float = 0.0
    effort: float | None = None  # its most [N m | N], where the joint's own limit does not say it; else None


@frozen
class DescribedGround:
    """Something at rest that a robot can touch."""

    kind: str  # "plane" (its normal is z), "field", or "solid"
    pose: Placement  # in the world
    friction: float | None = None  # Coulomb coefficient, None where nothing is said
    shape: DescribedShape | None = None  # of a solid; its pose is in the frame of ``pose``
    heights: np.ndarray | None = None  # of a field, (nx, ny) [m], over the corner that ``pose`` is at
    cell: tuple[float, float] = (1.0, 1.0)  # distances between its heights along x and y [m]
    # torsional, rolling: friction against turning and rolling of a plane, as a lever arm [m]
    torsional: float = 0.0
    rolling: float = 0.0
    name: str = ""  # in the file, "" for none


@dataclass
class DescribedScene:
    """What a file says beside bodies and joints."""

    actuators: list[DescribedActuator] = field(default_factory=list)  # what drives the joints
    springs: list[DescribedSpring] = field(default_factory=list)  # between points
    grounds: list[DescribedGround] = field(default_factory=list)  # what is at rest
    apart: list[tuple[str, str]] = field(default_factory=list)  # pairs of bodies that never touch each other
    # name -> joint -> values in robokit's order (one, a quaternion wxyz, or a quaternion and a position); the
    # free joint of a base goes by its own name
    configurations: dict[str, dict[str, tuple[float, ...]]] = field(default_factory=dict)
    dt: float | None = None  # time step [s], None where nothing is said


@dataclass
class Description:
    """What a file says of a robot: the referee compares two of them, ``build_robot`` makes a robot of one.

    Each tree of bodies hangs on the fixed frame ``WORLD`` by a joint, fixed or floating; other bodies are not
    in the robot.
    """

    format: str  # "URDF", "MJCF", "SDF", "USD", with the program that read it if that is not robokit
    file: str  # path
    name: str  # of the robot
    bodies: dict[str, DescribedBody]  # by name, parents first
    joints: list[DescribedJoint]  # in the order of the format's coordinates; fixed joints are among them
    # "fixed" or "floating"; None if the format leaves it to the program that loads it
    base: str | None = None
    gravity: np.ndarray | None = None  # (3,) [m/s^2], None where nothing is said
    notes: list[str] = field(default_factory=list)  # what was left out or changed to read it
    # "all", "primitives" (meshes are not known) or "none": which collision shapes are known
    shapes: str = "all"
    # joints and constraints that close loops of the tree
    loops: list[DescribedLoop] = field(default_factory=list)
    # linear relations between joints that are no mimic laws
    relations: list[Relation] = field(default_factory=list)
    # joints that several joints of one body may be together, each with the names of these
    wholes: list[tuple[DescribedJoint, list[str]]] = field(default_factory=list)
    # what the file has and a robot cannot have, by name, for ``robot.diagnostics``
    said: list[Diagnostic] = field(default_factory=list)
    # the rest of the file, where it was read for a robot; None where it was read to be compared
    scene: DescribedScene | None = None

    @property
    def movable(self) -> list[DescribedJoint]:
        """The joints with coordinates, without the one that frees the base."""
        return [j for j in self.joints if j.moves and not (j.kind == "floating" and self.is_base(j))]

    def is_base(self, joint: DescribedJoint) -> bool:
        """Whether a joint connects the robot's first body to the fixed frame."""
        return joint.parent == WORLD and self.bodies[WORLD].static if WORLD in self.bodies else False

    def into(self) -> dict[str, DescribedJoint]:
        """Name of a body -> the joint that carries it."""
        return {joint.child: joint for joint in self.joints}

    def say(self, code: str, what: str, names: Iterable[str], text: str, hint: str = "") -> None:
        """Add a diagnostic, of ``CODES``, of things that are no part of a robot, or another part; of none,
        nothing.

        ``what`` is the kind of thing in the plural, such as "springs of joints"; ``text`` says what becomes
        of them, for one and for many alike, and ``hint`` what to do.
        """
        found = list(dict.fromkeys(names))
        if not found:
            return
        head = re.split(" of | with ", what)[0]
        one = head.removesuffix("ies") + "y" if head.endswith("ies") else head.removesuffix("s")
        kind = (one if len(found) == 1 else head) + what[len(head) :]
        element = f"{len(found)} {kind} ({listed(map(repr, found), 5)})"
        self.said.append(Diagnostic(CODES[code], code, element, self.file, 0, text, hint))


def check_numbers(side: Description) -> None:
    """Raise RobokitError unless the numbers of a description are numbers; limits alone may be infinite."""
    for body in side.bodies.values():
        parts = {"pose": np.append(body.pose.position, body.pose.rotation), "mass": body.mass}
        parts |= {"centre of mass": body.com, "inertia": body.inertia}
        for shape in body.collisions:
            parts["collision shape"] = np.array(
                [*shape.size, *shape.pose.position, *shape.pose.rotation.ravel()]
            )
            _check(f"body {body.name!r}", parts)
        _check(f"body {body.name!r}", parts)
    for joint in side.joints:
        _check(f"joint {joint.name!r}", {"axis": joint.axis, "anchor": joint.anchor})
        limits = {f"{name} limit": getattr(joint, name) for name in ("lower", "upper", "effort", "velocity")}
        rest = {name: getattr(joint, name) for name in ("damping", "friction", "armature", "stiffness")}
        laws = [x for law in joint.laws or () for x in (law.multiplier, law.offset)]
        _check(f"joint {joint.name!r}", {**rest, "mimic law": laws})
        _check(f"joint {joint.name!r}", limits, infinite=True)
    if side.gravity is not None:
        _check("the world", {"gravity": side.gravity})


def _check(element: str, parts: Mapping[str, Any], infinite: bool = False) -> None:
    for what, value in parts.items():
        numbers = np.array([] if value is None else value, dtype=float)
        bad = np.isnan(numbers) if infinite else ~np.isfinite(numbers)
        if bad.any():
            given = numbers[bad].ravel()[0]
            accepted = "a number or infinity" if infinite else "a finite number"
            raise RobokitError(f"{element}: its {what} is {given:g}; expected {accepted}")


def unlimited(side: Description) -> None:
    """Make limits that stand for none infinite."""
    for joint in side.joints:
        for name in ("lower", "upper", "effort_lower", "effort", "velocity"):
            x = getattr(joint, name)
            if x is not None and abs(x) >= UNLIMITED:
                setattr(joint, name, math.copysign(math.inf, x))


def frame_along(point: np.ndarray, axis: np.ndarray) -> Placement:
    """A frame at a point (3,) whose z is along an axis (3,)."""
    z = axis / (np.linalg.norm(axis) or 1.0)
    x = np.cross(z, np.eye(3)[int(np.abs(z).argmin())])
    x = x / (np.linalg.norm(x) or 1.0)
    return Placement(np.column_stack([x, np.cross(z, x), z]), np.asarray(point, dtype=float))


def parents_first(
    bodies: dict[str, DescribedBody],
    joints: Iterable[DescribedJoint | JointDescription],
    first: str = WORLD,
) -> dict[str, DescribedBody]:
    """The bodies in an order in which each comes after its parent, children in the order of the joints."""
    children: dict[Any, list[Any]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint.child)
    order, todo = [], [first]
    while todo:
        name = todo.pop()
        order.append(name)
        todo += reversed(children.get(name, []))
    return {name: bodies[name] for name in order}


def joints_outwards(joints: list[DescribedJoint]) -> list[DescribedJoint]:
    """The joints, each from the body that is nearer to the fixed frame to the one that is farther.

    A joint that is turned round has its axis negated: its coordinate stays what it is.
    """
    near, out, left = {WORLD}, dict[int, DescribedJoint](), list(enumerate(joints))
    while left:
        step = next(((k, j) for k, j in left if (j.parent in near) != (j.child in near)), None)
        if step is None:
            break
        left.remove(step)
        k, joint = step
        out[k] = joint if joint.parent in near else turned_round(joint)
        near.add(out[k].child)
    return [out.get(k, joint) for k, joint in enumerate(joints)]


def turned_round(joint: DescribedJoint) -> DescribedJoint:
    """The same joint from its child to its parent."""
    return replace(joint, parent=joint.child, child=joint.parent, axis=0.0 - joint.axis)


def with_composite_joints(side: Description, other: Description) -> Description:
    """The side with one joint for several of one body, where the other side has it so."""
    names = {joint.name for joint in other.joints}
    for whole, parts in side.wholes:
        alike = [j for j in other.movable if j.kind == whole.kind]
        if names & set(parts) or not any(j.name == whole.name or j.child == whole.child for j in alike):
            continue
        own = [joint for joint in side.joints if joint.name in parts]
        between = {joint.child for joint in own} - {whole.child}
        place = side.joints.index(own[0])
        rest = [joint for joint in side.joints if joint.name not in parts]
        bodies = {name: body for name, body in side.bodies.items() if name not in between}
        side = replace(side, joints=[*rest[:place], whole, *rest[place:]], bodies=bodies)
    return side


# ==== masses of shapes ============================================================================


def inertia_about(point: np.ndarray, parts: Sequence[tuple[float, np.ndarray, np.ndarray]]) -> np.ndarray:
    """Inertia (3, 3) about a point of bodies given by mass, centre and inertia about it, in one frame."""
    inertia = np.zeros((3, 3))
    for m, c, about in parts:
        d = c - point
        inertia += about + m * (d @ d * np.eye(3) - np.outer(d, d))
    return inertia


def solid_of(shape: DescribedShape) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Volume, centre and inertia about it at density 1 of a shape, in its frame; None if it has none."""
    primitive = shape.primitive
    if primitive is None:
        return _solid_mesh(shape) if shape.kind == "mesh" else None
    filled = volume(primitive)
    return filled, np.zeros(3), filled * np.diag(square_gyrations(primitive))


def _solid_mesh(shape: DescribedShape) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Volume, centre and inertia of a mesh: sums over the tetrahedra of its triangles and the origin."""
    from robokit.meshes.read_mesh import read_mesh

    if shape.points is not None and shape.faces is not None:
        corners = shape.points[shape.faces]
    elif shape.path is not None:
        try:
            pieces = [surface.vertices[surface.faces] for surface in read_mesh(shape.path)]
            corners = np.concatenate(pieces) * np.array(shape.size)
        except (ValueError, OSError):  # also of a file without triangles
            return None
    else:
        return None
    volumes = np.linalg.det(corners) / 6.0
    volume = float(volumes.sum())
    if not abs(volume) > 0.0:
        return None
    total = corners.sum(axis=1)
    center = np.einsum("k,ki->i", volumes, total) / (4.0 * volume)
    second = np.einsum("k,kci,kcj->ij", volumes, corners, corners) + np.einsum(
        "k,ki,kj->ij", volumes, total, total
    )
    second = second / 20.0 - volume * np.outer(center, center)
    sign = math.copysign(1.0, volume)  # faces with reversed winding
    return abs(volume), center, sign * (np.trace(second) * np.eye(3) - second)


# ==== kept meshes =================================================================================
# Meshes that a description holds itself, as files: a robot's meshes are files that others can read, too.

FOLDER = "meshes"  # name of the folder of these meshes, in the folder of compiled code


def file_of_mesh(name: str, points: np.ndarray, faces: np.ndarray) -> Path:
    """The binary STL of a mesh, named after it and its content, written where it is not there yet.

    ``points`` are (n, 3) [m], ``faces`` (m, 3) numbers of points.
    """
    content = stl_bytes(np.asarray(points, dtype="<f4")[np.asarray(faces, dtype=np.int64)])
    stem = re.sub(r"[^\w-]+", "_", Path(name).stem)[:40] or "mesh"
    path = _folder() / f"{stem}_{hashlib.sha256(content).hexdigest()[:16]}.stl"
    if not path.is_file() or path.stat().st_size != len(content):
        with replacing(path) as new:
            new.write_bytes(content)
    return path


def stl_bytes(corners: np.ndarray) -> bytes:
    """A binary STL of triangles, by their corners (m, 3, 3) [m]."""
    corners = np.asarray(corners, dtype="<f4")
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    rows = np.zeros(len(corners), dtype=[("numbers", "<f4", 12), ("count", "<u2")])
    rows["numbers"][:, :3] = normals / np.where(lengths > 0.0, lengths, 1.0)
    rows["numbers"][:, 3:] = corners.reshape(-1, 9)
    return bytes(80) + len(rows).to_bytes(4, "little") + rows.tobytes()


def is_kept(path: Path) -> bool:
    """Whether a file is one that :func:`file_of_mesh` made: others should not name it."""
    return path.is_relative_to(_folder())


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Where the files are kept; a temporary folder where there is no other."""
    try:
        folder = disk_cache.folder() / FOLDER
        disk_cache.make_folder(folder)
        disk_cache.check_folder(folder)
    except (OSError, RuntimeError, disk_cache.NotTrusted):
        return Path(tempfile.mkdtemp(prefix="robokit_"))
    return folder


ELLIPSOID_RINGS, ELLIPSOID_POINTS = 24, 48
"""Of the mesh that stands for an ellipsoid or a cone; an ellipsoid's is at most 0.5 % of its axes inside."""


def ellipsoid_mesh(radii: Any) -> tuple[np.ndarray, np.ndarray]:
    """Points and faces of a mesh inside an ellipsoid."""
    up = np.pi * np.arange(ELLIPSOID_RINGS + 1) / ELLIPSOID_RINGS
    outline = np.stack([np.sin(up), -np.cos(up)], axis=1)
    outline[[0, -1], 0] = 0.0
    points, faces = revolve(outline, ELLIPSOID_POINTS)
    return points * np.asarray(radii, dtype=float), faces


def cone_mesh(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and faces of a mesh inside a cone along z, centred, with its tip up."""
    outline = np.array([[0.0, -0.5], [1.0, -0.5], [0.0, 0.5]]) * (radius, length)
    return revolve(outline, ELLIPSOID_POINTS)
