"""SDF export: the robot as a model of SDFormat 1.11, for Gazebo, Drake and robokit.

Every link becomes a link, and every joint a joint: a joint's pose is relative to its parent link, and the
child link's to the joint. Links that have neither mass nor shapes and are fixed to another become frames, as
Gazebo refuses links without mass. Features that SDF cannot express cause a warning, or an error if the model
would move differently.

    robokit        SDF
    revolute       revolute
    continuous     continuous
    prismatic      prismatic
    helical        screw
    spherical      ball
    fixed          fixed, or a frame
    floating       no joint: a link that hangs on nothing is free; only of a massless root of a fixed base
    planar         prismatic NAME_TX, NAME_TY and revolute NAME, with links without mass between them
    cylindrical    revolute NAME_R and prismatic NAME, likewise
    loop joints    joints to a link that another joint carries already

SDF has no rotor inertias; they are written as ``drake:rotor_inertia``, which Drake and robokit read. Mimic
laws are written twice, as SDF defines them and as ``drake:mimic``. :func:`robokit.load` reads both.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from robokit.errors import ModelError, listed, warn
from robokit.files import output_path, write_text
from robokit.formats.sdf import NAME
from robokit.interop import MUJOCO_PARTS
from robokit.mjcf import numbers
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.joints import plane_axes
from robokit.model.parts import Joint, Link, LoopJoint, free_name
from robokit.model.robot import Robot, check_robot, children, is_base, joints_in_order, outward
from robokit.spatial import Vector3
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.write import roll_pitch_yaw

VERSION = "1.11"

DRAKE = "http://drake.mit.edu"  # name of the XML namespace of Drake's extensions

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "helical": "screw",
    "spherical": "ball",
    "fixed": "fixed",
}

LOOP_CLOSED = 1e-9
"""How far the two ends of a loop may be apart at zero, over the size of their places and 1 m."""

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


def to_sdf(
    robot: Robot, path: str | os.PathLike[str] | None = None, meshes: bool = True, visuals: bool = True
) -> str:
    """The robot as SDF 1.11, which :func:`robokit.load` reads as the same robot.

    Args:
        robot: the robot; if its mimic joints are coupled, all its joints are written.
        path: a file that the XML is written to as well.
        meshes: write shapes that are meshes.
        visuals: write visual shapes.

    Returns:
        the XML. Meshes and textures keep their relative names if these lead to the files from the folder of
        ``path``; otherwise they get absolute paths.

    Raises:
        ModelError: SDF cannot express the robot: a floating joint inside the tree, a loop that is open in the
            neutral configuration.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: something is left out, renamed, or will be refused by Gazebo.

    Example:
        >>> from robokit.sdf import to_sdf
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> to_sdf(robot).splitlines()[1]
        '<sdf xmlns:robokit="https://robokit" version="1.11">'
    """
    check_robot(robot)
    file = None if path is None else output_path("path", path)
    writer = _Writer(robot, None if file is None else file.absolute().parent, meshes, visuals)
    root = writer.document()
    for message in writer.said:
        warn(f"SDF of robot {robot.name!r}: {message}", UserWarning)
    ET.register_namespace("drake", DRAKE)
    ET.register_namespace("robokit", NAME[1:].partition("}")[0])
    ET.indent(root)
    text = '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
    if file is not None:
        write_text(file, text)
    return text


class _Writer:
    """Writes one robot; ``said`` is what is left out, or differs in the file."""

    def __init__(self, robot: Robot, folder: Path | None, meshes: bool, visuals: bool) -> None:
        self.robot, self.meshes, self.visuals = robot, meshes, visuals
        self.resolver = None if folder is None else Resolver(folder)
        self.said: list[str] = []
        self._left: dict[str, list[str]] = {}
        below = children(robot)
        self.root_link = outward(robot, below)[0]
        self.into = {joint.child_link: joint for joints in below.values() for joint in joints}
        self.names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = set()
        self._name_all()

    # ---- names: of links, joints and frames of a model, each once -----------------------------------

    def _name_all(self) -> None:
        links, joints = list(self.robot.link_names), [j.name for j in self._joints()]
        self.world = self.root_link if self._is_world(self.root_link) else None
        for kind, name in [*(("link", n) for n in links), *(("joint", n) for n in joints)]:
            if name == self.world and kind == "link":
                self.names["link", name] = "world"
                continue
            free = name.replace("::", "_")
            if free == "world" or (free.startswith("__") and free.endswith("__")):
                free = f"{free.strip('_')}_{kind}"
            elif free in self._taken:
                free = f"{free}_{kind}"
            self.names[kind, name] = free = free_name(free, self._taken)
            if free != name:
                self.said.append(
                    f"{kind} {name!r} is called {free!r}: SDF gives a name once, and reserves some"
                )

    def _is_world(self, name: str) -> bool:
        """Whether a link stands for SDF's own fixed frame."""
        link = self.robot.link(name)
        bare = not (link.mass or np.any(link.inertia) or link.visuals or link.collisions)
        return self.robot.base == "fixed" and name == "world" and bare

    def _joints(self) -> list[Joint]:
        return [joint for joint in joints_in_order(self.robot) if not is_base(self.robot, joint)]

    def _link(self, name: str) -> str:
        return self.names["link", name]

    def _named(self, element: ET.Element, name: str) -> ET.Element:
        """The element, with the robot's name where SDF has another."""
        if element.get("name") != name and name != "world":
            element.set(NAME, name)
        return element

    # ---- the document ------------------------------------------------------------------------------

    def document(self) -> ET.Element:
        """The whole file."""
        robot = self.robot
        root = outer = ET.Element("sdf", version=VERSION)
        if tuple(robot.gravity) != STANDARD_GRAVITY:  # only a world has gravity
            outer = ET.SubElement(root, "world", name="default")
            _text(outer, "gravity", numbers(robot.gravity))
        model = ET.SubElement(outer, "model", name=robot.name or "robot")
        for link in robot.links:
            name, joint = link.name, self.into.get(link.name)
            if name == self.world:
                continue
            if joint is not None and self._is_frame(joint):
                frame = self._named(ET.SubElement(model, "frame", name=self._link(link.name)), link.name)
                frame.set("attached_to", self._link(joint.parent_link))
                _text(frame, "pose", _pose(joint.origin))
                continue
            element = self._named(ET.SubElement(model, "link", name=self._link(name)), name)
            if joint is not None and joint.kind == "floating":
                # SDF has no joint that floats: the link hangs on nothing.
                if joint.parent_link != self.world:
                    raise ModelError(
                        f"joint {joint.name!r} is floating; in SDF only a link that hangs on nothing is "
                        f"free: its parent {joint.parent_link!r} has to be a root called 'world' without "
                        "mass and shapes"
                    )
                _text(element, "pose", _pose(joint.origin))
            elif joint is not None:
                pose = ET.SubElement(element, "pose", relative_to=self.names["joint", joint.name])
                pose.text = _pose(Placement())
            if not link.mass > 0.0:
                self._say("links without mass, which Gazebo refuses", link.name)
            inertial = ET.SubElement(element, "inertial")
            _text(inertial, "pose", f"{numbers(link.com)} 0 0 0")
            _text(inertial, "mass", repr(float(link.mass)))
            inertia = ET.SubElement(inertial, "inertia")
            for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
                _text(inertia, f"i{'xyz'[i]}{'xyz'[j]}", repr(float(link.inertia[i, j])))
            self._shapes(element, link)
        for joint in self._joints():
            if joint.kind != "floating" and not self._is_frame(joint):
                self._joint(model, joint)
        if robot.base == "fixed" and self.world is None:
            root_link = self._link(self.root_link)
            name = free_name(f"world_to_{root_link}", self._taken)
            self._connect(model, name, "fixed", "world", root_link).set(NAME, "")
        for loop in robot.loop_joints:
            self._loop(model, loop)
        for what, names in self._left.items():
            self.said.append(f"{what}: {listed(map(repr, names), 5)}")
        return root

    def _say(self, what: str, name: str) -> None:
        self._left.setdefault(what, []).append(name)

    # ---- links -------------------------------------------------------------------------------------

    def _is_frame(self, joint: Joint | None) -> bool:
        """Whether what a joint carries is a frame: without mass and shapes, fixed to another link."""
        if joint is None or joint.kind != "fixed" or joint.parent_link == self.world:
            return False  # the world has no frames
        link = self.robot.link(joint.child_link)
        shapes = link.collisions or (link.visuals and self.visuals)
        return not (link.mass or np.any(link.inertia) or shapes)

    def _shapes(self, element: ET.Element, link: Link) -> None:
        for what, shapes in (
            ("visual", link.visuals if self.visuals else ()),
            ("collision", link.collisions),
        ):
            taken: set[str] = set()
            for k, shape in enumerate(shapes):
                if isinstance(shape.geometry, Mesh) and not self.meshes:
                    continue
                name = shape.name or f"{link.name}_{what}" + (f"_{k + 1}" if k else "")
                made = ET.SubElement(element, what, name=free_name(name, taken))
                _text(made, "pose", _pose(shape.placement))
                self._geometry(ET.SubElement(made, "geometry"), shape)
                if what == "visual":
                    self._material(made, shape)

    def _geometry(self, geometry: ET.Element, shape: Shape) -> None:
        given = shape.geometry
        if isinstance(given, Mesh):
            mesh = ET.SubElement(geometry, "mesh")
            _text(mesh, "uri", self._file(given.filename, given.path))
            if tuple(given.scale) != (1.0, 1.0, 1.0):
                _text(mesh, "scale", numbers(given.scale))
        elif isinstance(given, Box):
            _text(ET.SubElement(geometry, "box"), "size", numbers(given.size))
        elif isinstance(given, Sphere):
            _text(ET.SubElement(geometry, "sphere"), "radius", repr(float(given.radius)))
        else:
            assert isinstance(given, Cylinder | Capsule)
            round_one = ET.SubElement(geometry, type(given).__name__.lower())
            _text(round_one, "radius", repr(float(given.radius)))
            _text(round_one, "length", repr(float(given.length)))

    def _file(self, written: str, path: Path | None) -> str:
        """The name as written where that leads to the file, with Gazebo's model:// for ROS's package://."""
        leads = path is None or (self.resolver is not None and self.resolver(written).path == path)
        name = written if leads else str(path)
        return f"model://{name[10:]}" if name.startswith("package://") else name

    def _material(self, visual: ET.Element, shape: Shape) -> None:
        if shape.rgba is None and shape.texture is None and shape.texture_filename is None:
            return
        material = ET.SubElement(visual, "material")
        if shape.rgba is not None:
            for name in ("ambient", "diffuse"):
                _text(material, name, numbers(shape.rgba))
        texture = shape.texture_filename or shape.texture
        if texture is not None:
            metal = ET.SubElement(ET.SubElement(material, "pbr"), "metal")
            path = None if shape.texture is None else Path(shape.texture)
            _text(metal, "albedo_map", self._file(str(texture), path))

    # ---- joints ------------------------------------------------------------------------------------

    def _connect(
        self, model: ET.Element, name: str, kind: str, parent: str, child: str, at: Placement | None = None
    ) -> ET.Element:
        """A joint; its pose is in the parent."""
        joint = ET.SubElement(model, "joint", name=name, type=kind)
        if at is not None:
            pose = ET.SubElement(joint, "pose", relative_to="__model__" if parent == "world" else parent)
            pose.text = _pose(at)
        _text(joint, "parent", parent)
        _text(joint, "child", child)
        return joint

    def _joint(self, model: ET.Element, joint: Joint) -> None:
        parent, child = self._link(joint.parent_link), self._link(joint.child_link)
        own = self.names["joint", joint.name]
        if joint.kind in ("planar", "cylindrical"):
            self._several(model, joint, parent, child, own)
            return
        made = self._connect(model, own, KINDS[joint.kind], parent, child, joint.origin)
        self._named(made, joint.name)
        if joint.kind == "helical":
            _text(made, "screw_thread_pitch", repr(2.0 * math.pi * joint.pitch))
        if joint.kind != "fixed":
            self._axis(made, joint, None if joint.kind == "spherical" else joint.axis)

    def _several(self, model: ET.Element, joint: Joint, parent: str, child: str, own: str) -> None:
        """A joint of several coordinates as single joints, with massless links between them."""
        x, y = (np.array([*t]) for t in plane_axes(Vector3(*joint.axis.tolist())))
        parts = MUJOCO_PARTS[joint.kind]
        axes = [x, y, joint.axis] if joint.kind == "planar" else [joint.axis, joint.axis]
        at, last = joint.origin, parent
        for k, (end, axis) in enumerate(zip(parts, axes, strict=True)):
            inmost = k == len(parts) - 1
            name = own if inmost else free_name(own + end, self._taken)
            then = child if inmost else free_name(f"{own}{end}_link", self._taken)
            kind = "prismatic" if end.startswith("_T") else "revolute"
            made = self._connect(model, name, kind, last, then, at)
            self._axis(made, joint, axis, ranged=False)
            if not inmost:
                between = ET.SubElement(model, "link", name=then)
                ET.SubElement(between, "pose", relative_to=name).text = _pose(Placement())
                inertial = ET.SubElement(between, "inertial")
                _text(inertial, "mass", "0")
                inertia = ET.SubElement(inertial, "inertia")
                for entry in ("ixx", "iyy", "izz"):
                    _text(inertia, entry, "0")
            at, last = Placement(), then
        self._say("joints that become several, with links without mass between them", joint.name)

    def _axis(self, made: ET.Element, joint: Joint, axis: np.ndarray | None, ranged: bool = True) -> None:
        if joint.armature:
            _text(made, f"{{{DRAKE}}}rotor_inertia", repr(float(joint.armature)))
            _text(made, f"{{{DRAKE}}}gear_ratio", "1")
            self._say("rotors' inertias, which Drake and robokit read, and Gazebo does not", joint.name)
        if joint.safety is not None or joint.calibration is not None:
            self._say("safety controllers and calibrations are left out", joint.name)
        passive = joint.damping or joint.friction
        if axis is None and not passive:
            return
        element = ET.SubElement(made, "axis")
        if axis is not None:
            _text(element, "xyz", numbers(axis))
        if joint.mimic is not None and ranged:
            leader = self.names["joint", joint.mimic.joint]
            law = {name: repr(float(getattr(joint.mimic, name))) for name in ("multiplier", "offset")}
            mimic = ET.SubElement(element, "mimic", joint=leader)
            for name, text in {**law, "reference": "0"}.items():
                _text(mimic, name, text)
            ET.SubElement(made, f"{{{DRAKE}}}mimic", {"joint": leader, **law})
        said: dict[str, float] = {}
        if ranged and axis is not None:
            limits = {name: getattr(joint, name) for name in ("lower", "upper", "effort", "velocity")}
            said = {name: x for name, x in limits.items() if math.isfinite(x)}
        if said:
            limit = ET.SubElement(element, "limit")
            for name, value in said.items():
                _text(limit, name, repr(float(value)))
        if passive:
            dynamics = ET.SubElement(element, "dynamics")
            _text(dynamics, "damping", repr(float(joint.damping)))
            _text(dynamics, "friction", repr(float(joint.friction)))

    def _loop(self, model: ET.Element, loop: LoopJoint) -> None:
        if loop.kind == "floating":
            return  # no constraint
        kinds = {**KINDS, "universal": "universal"}
        if loop.kind not in kinds:
            raise ModelError(
                f"loop joint {loop.name!r} is {loop.kind}, without which the model would move differently; "
                f"SDF has {', '.join(kinds)}"
            )
        ends = [(loop.predecessor, loop.predecessor_placement), (loop.successor, loop.successor_placement)]
        at = [self._at_zero(link) @ placement for link, placement in ends]
        apart = float(np.linalg.norm(at[0].position - at[1].position))
        turned = float(np.abs(at[0].rotation - at[1].rotation).max())
        if loop.kind in ("revolute", "continuous", "prismatic", "helical"):
            turned = float(np.linalg.norm(at[0].rotation @ loop.axis - at[1].rotation @ loop.axis))
        elif loop.kind == "spherical":
            turned = 0.0
        axes: list[np.ndarray] = []
        if loop.kind == "universal":
            axes = [at[0].rotation @ loop.axis, at[1].rotation @ loop.axis2]
            turned = abs(float(axes[0] @ axes[1]))
        size = 1.0 + float(np.linalg.norm(at[0].position))
        if max(apart, turned) > LOOP_CLOSED * size:
            raise ModelError(
                f"loop joint {loop.name!r} is open with all joints at zero ({apart:.3g} m apart, "
                f"{turned:.3g} turned), where SDF has one frame for both ends"
            )
        if ends[1][0] == self.root_link:  # whoever reads it takes the joint that carries a link first
            ends.reverse()
            at.reverse()
            axes.reverse()
        (parent, _), (child, place) = ends
        name = free_name(loop.name.replace("::", "_"), self._taken)
        made = self._named(ET.SubElement(model, "joint", name=name, type=kinds[loop.kind]), loop.name)
        ET.SubElement(made, "pose", relative_to=self._link(child)).text = _pose(place)
        _text(made, "parent", self._link(parent))
        _text(made, "child", self._link(child))
        if loop.kind == "helical":
            _text(made, "screw_thread_pitch", repr(2.0 * math.pi * loop.pitch))
        if loop.kind in ("revolute", "continuous", "prismatic", "helical"):
            _text(ET.SubElement(made, "axis"), "xyz", numbers(loop.axis))
        for element, axis in zip(("axis", "axis2"), axes, strict=False):
            _text(ET.SubElement(made, element), "xyz", numbers(at[1].rotation.T @ axis))
        self._say("loop joints, which Drake refuses and Gazebo may", loop.name)

    def _at_zero(self, name: str) -> Placement:
        """Pose of a link with all joints at zero."""
        at, joint = Placement(), self.into.get(name)
        while joint is not None:
            at, joint = joint.origin @ at, self.into.get(joint.parent_link)
        return at


def _text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text


def _pose(place: Placement) -> str:
    """Position, then roll, pitch and yaw: to the last bit where they came from such angles."""
    return f"{numbers(place.position)} {numbers(roll_pitch_yaw(np.asarray(place.rotation, dtype=float)))}"


__all__ = ["to_sdf"]
