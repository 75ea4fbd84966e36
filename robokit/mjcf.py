"""MJCF export: the robot's tree as a model that MuJoCo loads.

Each moving body of robokit becomes a body of MuJoCo, with the inertia of all links that are fixed to it. The
other links become sites, so that their poses can be looked up by name. A fixed root becomes MuJoCo's world;
its own mass is not written. A moving link named "world", which is the name of MuJoCo's fixed frame, becomes
body "world_link" with a site "world". Features that MJCF cannot express cause a warning, or an error if the
model would move differently.

    robokit        MuJoCo                                              qpos of q
    revolute       hinge                                               the angle
    continuous     hinge without range                                 the angle
    prismatic      slide                                               the shift
    cylindrical    hinge NAME_R, slide NAME_T                          angle, shift
    planar         slides NAME_TX, NAME_TY, hinge NAME_RZ              x, y, angle
    spherical      ball                                                quaternion wxyz
    floating       free joint, at the root's frame                     position, quaternion wxyz
                   elsewhere slides NAME_TX, _TY, _TZ, ball NAME_R     position, quaternion wxyz
    helical        none: an error

:class:`robokit.interop.MujocoAdapter` converts q, v, a, tau and H between the robot and such a model.
"""

from __future__ import annotations

import functools
import math
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from robokit.algorithms.loop_dynamics import closed_loops
from robokit.conventions import LARGEST_ANGLE
from robokit.errors import ModelError, listed, warn
from robokit.files import output_path, write_text
from robokit.interop import MUJOCO_PARTS
from robokit.model.constraints import loop_models
from robokit.model.edit import couple
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.joints import plane_axes
from robokit.model.parts import Joint, LoopJoint, free_name
from robokit.model.robot import Robot, check_robot, children, joints_in_order, outward
from robokit.model.tree import NO_COORDINATE
from robokit.spatial import RigidInertia, Vector3
from robokit.spatial.rotation import rotation_to_quat_wxyz

# ---- Numbers and poses as attributes of MJCF elements --------------------------------------------


def numbers(values: Iterable[float]) -> str:
    """Numbers in decimal; reading them back gives the same bits."""
    return " ".join(repr(float(x)) for x in values)


def pose(place: Placement) -> dict[str, str]:
    """The attribute pos, and quat where the frame is rotated."""
    found = {"pos": numbers(place.position)}
    if not np.array_equal(place.rotation, np.eye(3)):
        found["quat"] = numbers(rotation_to_quat_wxyz(np.asarray(place.rotation, dtype=float).tolist()))
    return found


# ---- Bodies of the MJCF model: their names, inertias and joints ----------------------------------

UNLIMITED_POSITION = 1e6  # written for the missing side of a range that is limited on one side only [rad | m]
THEIR_WORLD = "world"  # name of MuJoCo's own fixed frame; no body may have it
LEAST_INERTIA = 1e-15  # mass and inertia below which MuJoCo refuses a moving body

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball"}


class Names:
    """Names in the MJCF model, each used once; ``body`` has those of bodies 0..N."""

    def __init__(self, robot: Robot) -> None:
        self.body = [robot.body_name(i) for i in range(robot.nbodies + 1)]
        self._world_link = free_name(f"{THEIR_WORLD}_link", set(robot.link_index))
        if THEIR_WORLD in self.body[1:]:
            self.body[self.body.index(THEIR_WORLD, 1)] = self._world_link
        self.sites = set(robot.link_names)
        self._joints = set(robot.all_joint_names)

    def of_link(self, name: str) -> str:
        """Name of the body that a link is."""
        return self._world_link if name == THEIR_WORLD else name

    def parts(self, joint: Joint) -> list[str]:
        """Names of the MuJoCo joints that stand for a joint of several degrees of freedom."""
        parts = [joint.name + end for end in MUJOCO_PARTS[joint.kind]]
        for name in parts:
            if name in self._joints:
                raise ModelError(
                    f"joint {name!r} has the name of a part of joint {joint.name!r}, which is {joint.kind} "
                    f"and becomes {', '.join(parts)} in MJCF: rename it"
                )
        return parts


def add_inertial(body: ET.Element, name: str, I: RigidInertia, said: list[str]) -> None:
    """Add mass, centre of mass and inertia; what MuJoCo will refuse is added to ``said``."""
    if not float(I.m) > LEAST_INERTIA:
        said.append(f"body {name!r} has no mass; MuJoCo refuses moving bodies without mass")
        return
    c = np.array([*I.h], dtype=float) / I.m
    about = np.array(I.Ibar.full().rows, dtype=float) - I.m * (c @ c * np.eye(3) - np.outer(c, c))
    refused = _refused(about)
    if refused:
        said.append(f"body {name!r} has {refused}; MuJoCo refuses it")
    _inertial(body, float(I.m), c, about)


def _refused(about: np.ndarray) -> str:
    """Why MuJoCo refuses an inertia about a centre of mass, (3, 3); "" if it does not."""
    moments = np.linalg.eigvalsh(about)
    if moments[0] <= LEAST_INERTIA:
        return f"a principal moment of {moments[0]:.3g} kg m^2"
    if moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-9):
        return (
            f"principal moments {', '.join(f'{x:.3g}' for x in moments)} kg m^2 that violate the triangle "
            "inequality"
        )
    return ""


def _inertial(body: ET.Element, mass: float, c: np.ndarray, about: np.ndarray) -> None:
    six = [about[0, 0], about[1, 1], about[2, 2], about[0, 1], about[0, 2], about[1, 2]]
    ET.SubElement(body, "inertial", pos=numbers(c), mass=repr(mass), fullinertia=numbers(six))


def add_joint(
    body: ET.Element,
    joint: Joint,
    parent: int,
    place: Placement,
    names: Names,
    said: list[str],
    inside: Placement | None = None,
) -> None:
    """Add the joint of a body: several MuJoCo joints where MJCF has none of its kind.

    MuJoCo applies the joints of a body in order, each in the frame that the ones before it have moved. Slides
    that come first are therefore shifts along the parent's axes. ``place`` is that of the joint's frame in
    the parent body, ``inside`` the pose of the body's frame in the joint's, with the joints behind it at
    zero; None where they are the same.
    """
    here = not place.position.any() and np.array_equal(place.rotation, np.eye(3))
    if joint.kind == "floating" and parent == 0 and here:
        # The coordinates of a free joint are the body's pose in the world, wherever the body is placed.
        ET.SubElement(body, "freejoint", name=joint.name)
        return
    x, y, z = np.eye(3)
    if joint.kind == "floating":
        kinds = zip(names.parts(joint), ("slide", "slide", "slide", "ball"), (x, y, z, None), strict=True)
    elif joint.kind == "planar":
        axes = [np.array([*t]) for t in plane_axes(Vector3(*joint.axis.tolist()))]
        kinds = zip(names.parts(joint), ("slide", "slide", "hinge"), (*axes, joint.axis), strict=True)
    elif joint.kind == "cylindrical":
        kinds = zip(names.parts(joint), ("hinge", "slide"), (joint.axis, joint.axis), strict=True)
    elif joint.kind in KINDS:
        axis = None if joint.kind == "spherical" else joint.axis
        kinds = zip([joint.name], [KINDS[joint.kind]], [axis], strict=True)
    else:
        raise ModelError(
            f"joint {joint.name!r} is {joint.kind}, which MJCF does not have; it has "
            f"{', '.join((*KINDS, *MUJOCO_PARTS))}"
        )
    for name, kind, axis in kinds:
        element = ET.SubElement(body, "joint", name=name, type=kind)
        if inside is not None and inside.position.any():
            element.set("pos", numbers(inside.inverse().position))
        if axis is not None:
            element.set("axis", numbers(axis if inside is None else inside.rotation.T @ axis))
        if joint.damping:
            element.set("damping", repr(joint.damping))
        if joint.armature:
            element.set("armature", repr(joint.armature))
        if joint.friction:
            element.set("frictionloss", repr(joint.friction))
        if joint.kind not in KINDS or joint.kind == "spherical":
            continue
        if joint.lower == joint.upper:
            said.append(
                f"joint {joint.name!r} has the limits {joint.lower:g} and {joint.upper:g}; MuJoCo takes no "
                "range of one position, and the joint is written without"
            )
        elif joint.lower > -LARGEST_ANGLE or joint.upper < LARGEST_ANGLE:  # files write 1e16 for none
            bounds = max(joint.lower, -UNLIMITED_POSITION), min(joint.upper, UNLIMITED_POSITION)
            element.set("range", numbers(bounds))
        # Effort 0 is what exporters write for "unknown".
        if 0.0 < joint.effort < math.inf:
            element.set("actuatorfrcrange", numbers((-joint.effort, joint.effort)))


# ---- Visual and collision shapes as geoms; mesh files as assets, one for each pair of file and scale

MESHES = (".stl", ".obj", ".msh")

STL_HEADER, STL_FACE, STL_FACES = 84, 50, 200_000
"""Binary STL: bytes before the faces, bytes of a face; the largest number of faces that MuJoCo reads."""

OPTIONS = {"visual": {"group": "2", "contype": "0", "conaffinity": "0"}, "collision": {"group": "3"}}


class Shapes:
    """Writes shapes, and collects the ones that are left out by reason.

    Mesh assets are added to the element ``assets``. Relative names lead from the folder of the file that is
    written, None for a text.
    """

    def __init__(self, assets: ET.Element, meshes: bool, folder: Path | None = None) -> None:
        self.assets, self._meshes, self._folder = assets, meshes, folder
        self._asset: dict[tuple[str, tuple[float, ...]], str] = {}
        self._taken: set[str] = set()
        self._left: dict[tuple[str, str], list[str]] = {}
        self._unreadable: dict[Path, str] = {}

    def add(
        self, body: ET.Element, what: str, link: str, placement: Placement, shapes: Sequence[Shape]
    ) -> None:
        """Add geoms for a link's shapes; ``what`` is "visual" or "collision"."""
        for k, shape in enumerate(shapes):
            found = self._geometry(what, f"{link}/{k}", shape)
            if found is None:
                continue
            if what == "visual" and shape.rgba is not None:
                found["rgba"] = numbers(shape.rgba)
            ET.SubElement(body, "geom", {**found, **OPTIONS[what], **pose(placement @ shape.placement)})

    def left_out(self) -> list[str]:
        """One line for each reason why shapes were left out."""
        return [
            f"{len(names)} {what}{'s' if len(names) > 1 else ''} left out, {why}: {listed(names, 5)}"
            for (what, why), names in self._left.items()
        ]

    def _geometry(self, what: str, name: str, shape: Shape) -> dict[str, str] | None:
        geometry = shape.geometry
        if isinstance(geometry, Mesh):
            return self._mesh(what, geometry) if self._meshes else None
        sizes: tuple[float, ...]
        if isinstance(geometry, Box):
            kind, sizes = "box", tuple(x / 2.0 for x in geometry.size)
        elif isinstance(geometry, Sphere):
            kind, sizes = "sphere", (geometry.radius,)
        else:
            assert isinstance(geometry, Cylinder | Capsule)
            kind = "capsule" if isinstance(geometry, Capsule) else "cylinder"
            sizes = (geometry.radius, geometry.length / 2.0)
        if min(sizes) <= 0.0:
            self._left.setdefault((what, "of no size"), []).append(f"{name!r} ({kind} {numbers(sizes)})")
            return None
        return {"type": kind, "size": numbers(sizes)}

    def _mesh(self, what: str, mesh: Mesh) -> dict[str, str] | None:
        if mesh.path is None:
            why = "whose mesh was not found"
        else:
            path = Path(mesh.path).resolve()
            if path not in self._unreadable:
                self._unreadable[path] = unreadable_mesh(path)
            why = self._unreadable[path]
        if why:
            self._left.setdefault((what, why), []).append(repr(mesh.filename))
            return None
        key = str(path), tuple(mesh.scale)
        if key not in self._asset:
            name = self._asset[key] = free_name(path.stem, self._taken)
            # "shell": thin and open meshes have no volume that MuJoCo could compute an inertia from.
            file = self._file(mesh.filename, path)
            options = {"name": name, "file": file, "scale": numbers(mesh.scale), "inertia": "shell"}
            ET.SubElement(self.assets, "mesh", options)
        return {"type": "mesh", "mesh": self._asset[key]}

    def _file(self, written: str, path: Path) -> str:
        """The name as written, if it leads from the folder to the file as MuJoCo follows it."""
        if self._folder is None or "://" in written:
            return str(path)
        return written if (self._folder / written).resolve() == path else str(path)


def unreadable_mesh(path: Path) -> str:
    """Why MuJoCo cannot read a mesh file; "" if it can."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return "whose path is not UTF-8, as XML must be"
    if path.suffix.lower() not in MESHES:
        return f"whose mesh is none of {', '.join(MESHES)}"
    if path.suffix.lower() != ".stl":
        return ""
    with path.open("rb") as file:
        head = file.read(STL_HEADER)
    faces = int.from_bytes(head[STL_HEADER - 4 :], "little")
    if path.stat().st_size != STL_HEADER + STL_FACE * faces:
        return "whose STL is written as text or incomplete; MuJoCo reads binary STL"
    return "" if 1 <= faces <= STL_FACES else f"whose STL does not have 1 to {STL_FACES} faces"


# ---- Mimic and loop joints as equality constraints -----------------------------------------------

AXIS_POINT_DISTANCE = 0.1  # distance between the two points that hold the axis of a loop's hinge [m]
Site = tuple[str, str, Placement]  # the site of an end of a loop: its name, and the link and pose that it has


def add_mimics(equality: ET.Element, robot: Robot) -> None:
    """Add a constraint for each mimic joint, to the joint at the end of its mimic chain."""
    full = robot if robot.coupling is not None else couple(robot)
    if full.coupling is None:
        return
    own = {joint.q_slice.start: joint.name for joint in full.joints}
    for joint in full.mimic_joints:
        k, multiplier, offset = full.coupling.q_from[full.tree.q_slice[joint.body].start]
        element = ET.SubElement(equality, "joint", joint1=joint.name)
        if k != NO_COORDINATE:
            element.set("joint2", own[k])
        element.set("polycoef", numbers((offset, multiplier if k != NO_COORDINATE else 0.0, 0.0, 0.0, 0.0)))


def add_loops(
    equality: ET.Element, tendons: ET.Element, robot: Robot, names: Names, said: list[str]
) -> Iterator[Site]:
    """Add constraints for loop joints; yields the sites that the constraints connect.

    A spherical joint connects one point of its two links, a revolute joint two points on its axis; a fixed
    joint welds the frames; a distance is a tendon whose length is held, in the element beside ``equality``.
    The other kinds let points slide, for which MJCF has no constraint.
    """
    for loop in robot.loop_joints:
        if loop.kind == "floating":
            continue  # no constraint
        if loop.kind == "distance":
            sites = [_site(names, loop, end, 0, np.zeros(3)) for end in ("predecessor", "successor")]
            spatial = ET.SubElement(tendons, "spatial", name=loop.name)
            for site, _, _ in sites:
                ET.SubElement(spatial, "site", site=site)
            # What the tendon's length is, beside that in the neutral configuration.
            more = loop.length - _neutral_length(robot, loop)
            ET.SubElement(equality, "tendon", tendon1=loop.name, polycoef=numbers((more, 0.0, 0.0, 0.0, 0.0)))
            yield from sites
            continue
        if loop.kind not in ("spherical", "revolute", "continuous", "fixed"):
            said.append(
                f"loop joint {loop.name!r} is {loop.kind}, for which MJCF has no constraint: the loop is "
                "left open"
            )
            continue
        points = [np.zeros(3)]
        if loop.kind in ("revolute", "continuous"):
            points.append(AXIS_POINT_DISTANCE * np.asarray(loop.axis, dtype=float))
        kind = "weld" if loop.kind == "fixed" else "connect"
        for k, point in enumerate(points):
            sites = [_site(names, loop, end, k, point) for end in ("predecessor", "successor")]
            ET.SubElement(equality, kind, site1=sites[0][0], site2=sites[1][0])
            yield from sites


def _site(names: Names, loop: LoopJoint, end: str, k: int, point: np.ndarray) -> Site:
    link = str(getattr(loop, end))
    at = getattr(loop, f"{end}_placement") @ Placement(position=point)
    return free_name(f"{loop.name}_{end}" + ("_axis" if k else ""), names.sites), link, at


def _neutral_length(robot: Robot, loop: LoopJoint) -> float:
    """Distance of the two ends of a loop joint in the neutral configuration [m]."""
    (model,) = (each for each in loop_models(robot) if each.name == loop.name)
    X = robot.tree.transforms(robot.split_q(robot.neutral().tolist()))
    (closed,) = closed_loops(robot.tree, [model], X)
    return float(closed.delta[0]) + loop.length


# ---- The whole MJCF model: options, assets, bodies in the tree's order, constraints --------------


def to_mjcf(
    robot: Robot,
    path: str | os.PathLike[str] | None = None,
    meshes: bool = True,
    visuals: bool = True,
    links: bool = False,
) -> str:
    """The robot as MJCF, for MuJoCo 3.3 and newer.

    Written are names, inertias, joints with damping, friction, position and effort limits, mimic and loop
    joints (as equality constraints, which MuJoCo enforces softly), visual shapes with their colours (group 2,
    without contacts), collision shapes (group 3) and gravity. Mesh files keep their relative names if these
    lead to the files from the folder of ``path``; otherwise they get absolute paths. Velocity limits,
    textures, safety controllers and calibrations are not written.

    Args:
        robot: the robot; if its mimic joints are coupled, all its joints are written.
        path: a file that the XML is written to as well.
        meshes: write shapes that are meshes; MuJoCo uses the convex hull of a collision mesh.
        visuals: write visual shapes.
        links: write each link as a body with its own inertia; by default links that are fixed to another are
            merged into it. Links without mass and shapes are sites in both.

    Returns:
        the XML.

    Raises:
        ModelError: a kind of joint that MJCF does not have (helical), or a joint whose name is needed for a
            part of another joint.
        WriteError: the file cannot be written.

    Warns:
        UserWarning: loop joints and ranges that MJCF cannot express, shapes that are left out, and bodies
            that MuJoCo will refuse.

    Example:
        >>> from robokit.mjcf import to_mjcf
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> to_mjcf(robot).splitlines()[0]
        '<mujoco model="double_pendulum">'
    """
    check_robot(robot)
    file = None if path is None else output_path("path", path)
    said: list[str] = []
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
    ET.SubElement(root, "option", gravity=numbers(robot.gravity))
    folder = None if file is None else file.absolute().parent
    shapes = Shapes(ET.SubElement(root, "asset"), meshes, folder)
    names = Names(robot)
    world = ET.SubElement(root, "worldbody")
    where = _bodies_of_links(world, robot, names, said) if links else None
    where = where or _merged_bodies(world, robot, names, said)
    for link in robot.links:
        body, placement = where[link.name]
        if visuals:
            shapes.add(body, "visual", link.name, placement, link.visuals)
        shapes.add(body, "collision", link.name, placement, link.collisions)
    tendons, equality = ET.SubElement(root, "tendon"), ET.SubElement(root, "equality")
    add_mimics(equality, robot)
    for site, name, in_link in add_loops(equality, tendons, robot, names, said):
        body, placement = where.get(name, (world, Placement()))  # an end in the world
        add_site(body, site, placement @ in_link)
    for element in (shapes.assets, tendons, equality):
        if not len(element):
            root.remove(element)
    for message in said + shapes.left_out():
        warn(f"MJCF of robot {robot.name!r}: {message}", UserWarning)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode") + "\n"
    if file is not None:
        write_text(file, text)
    return text


Where = dict[str, tuple[ET.Element, Placement]]
"""Name of a link -> the body that has it, and the link's pose in that."""


Step = tuple[Joint, Placement]  # a joint, and the place of its frame in the frame before it


def _children_in_order(robot: Robot) -> dict[str, list[Joint]]:
    """The joints on each link, in the order in which they are to be written."""
    order = {joint.name: k for k, joint in enumerate(joints_in_order(robot))}
    return {x: sorted(those, key=lambda j: order[j.name]) for x, those in children(robot).items()}


def _between_joints(robot: Robot) -> set[str]:
    """Links without mass and shapes that carry nothing but the next joint: MuJoCo has several on one body."""
    below = _children_in_order(robot)
    ends = {end for loop in robot.loop_joints for end in (loop.predecessor, loop.successor)}
    moved = {joint.child_link for joint in robot.body_joints if joint.kind != "floating"}
    return {
        link.name
        for link in robot.links
        if link.name in moved - ends
        and len(below[link.name]) == 1
        and below[link.name][0].kind != "floating"
        and not (link.mass or np.any(link.inertia) or link.visuals or link.collisions)
    }


def _add_joints(
    body: ET.Element, steps: Sequence[Step], on_world: bool, names: Names, said: list[str]
) -> None:
    """Add the joints of a body, the outermost last; fixed ones only have a place."""
    inside = Placement()
    insides = [inside]
    for _, place in reversed(steps[1:]):
        inside = place @ inside
        insides.append(inside)
    for (joint, place), pose_inside in zip(steps, reversed(insides), strict=True):
        if joint.kind != "fixed":
            own = None if len(steps) == 1 else pose_inside
            add_joint(body, joint, 0 if on_world else 1, place, names, said, own)


def _whole_place(steps: Sequence[Step]) -> Placement:
    return functools.reduce(operator.matmul, (place for _, place in steps))


def _merged_bodies(world: ET.Element, robot: Robot, names: Names, said: list[str]) -> Where:
    """The bodies of the robot's tree, with sites for the links that are merged into them."""
    bodies, tree = [world], robot.tree
    between = _between_joints(robot)
    passed: dict[int, list[Step]] = {}
    for i in tree.outward():
        X, joint, above = tree.XT[i], robot.body_joints[i - 1], tree.parent[i]
        place = Placement(np.array(X.E.T.rows, dtype=float), np.array([*X.r], dtype=float))
        steps = [*passed.pop(above, []), (joint, place)]
        alone = sum(link.body == i for link in robot.links) == 1
        if alone and robot.body_name(i) in between:
            passed[i] = steps
            bodies.append(bodies[above])
            continue
        attributes = {"name": names.body[i], **pose(_whole_place(steps))}
        bodies.append(ET.SubElement(bodies[above], "body", attributes))
        add_inertial(bodies[i], names.body[i], tree.I[i], said)
        _add_joints(bodies[i], steps, bodies[above] is world, names, said)
    for link in robot.links:
        if link.body == 0 or link.name != names.body[link.body]:
            add_site(bodies[link.body], link.name, link.placement)
    return {link.name: (bodies[link.body], link.placement) for link in robot.links}


def _bodies_of_links(world: ET.Element, robot: Robot, names: Names, said: list[str]) -> Where | None:
    """A body for each link; None, and nothing done, where MuJoCo refuses the inertia of a fixed one alone."""
    below = _children_in_order(robot)
    into = {joint.child_link: joint for joint in robot.body_joints}
    fixed = {joint.child_link: joint for joint in robot.fixed_joints}
    weighed = [x for x in robot.links if x.mass or np.any(x.inertia)]
    alone = [x for x in weighed if not x.mass > LEAST_INERTIA or _refused(np.asarray(x.inertia))]
    merged = [x.name for x in alone if x.name in fixed or any(y.kind == "fixed" for y in below[x.name])]
    if merged:
        shown = ", ".join(map(repr, merged[:5])) + (", ..." if len(merged) > 5 else "")
        said.append(
            f"links that are fixed to others are merged into them, as MuJoCo refuses the inertia of {shown}"
        )
        return None
    where: Where = {}
    between, passed = _between_joints(robot), dict[str, list[Step]]()
    for name in outward(robot, below):
        link, joint = robot.link(name), into.get(name) or fixed.get(name)
        parent, place = world, Placement()
        steps: list[Step] = []
        if joint is not None:
            parent, place = where.get(joint.parent_link, (world, place))
            before = passed.pop(joint.parent_link, [])
            steps = [*before, (joint, joint.origin if before else place @ joint.origin)]
            place = _whole_place(steps)
        if name in between:
            passed[name], where[name] = steps, (parent, Placement())
            continue
        held = all(each.kind == "fixed" for each, _ in steps)  # to another link, or the root of a fixed base
        if held and not (link.mass or np.any(link.inertia) or link.visuals or link.collisions):
            where[name] = parent, place
            if not (parent is world and name == THEIR_WORLD):
                add_site(parent, name, place)
            continue
        own = names.of_link(name)
        body = ET.SubElement(parent, "body", {"name": own, **pose(place)})
        if link.mass > LEAST_INERTIA:
            _inertial(body, float(link.mass), np.asarray(link.com, dtype=float), np.asarray(link.inertia))
        if not held:
            assert joint is not None
            I = robot.tree.I[link.body]
            if not float(I.m) > LEAST_INERTIA:
                said.append(f"body {own!r} has no mass; MuJoCo refuses moving bodies without mass")
            elif not any(y.kind == "fixed" for y in below[name]) and _refused(np.asarray(link.inertia)):
                said.append(f"body {own!r} has {_refused(np.asarray(link.inertia))}; MuJoCo refuses it")
            _add_joints(body, steps, parent is world, names, said)
        if own != name:
            add_site(body, name, Placement())
        where[name] = body, Placement()
    return where


def add_site(body: ET.Element, name: str, placement: Placement) -> None:
    """Add a frame to a body, in group 4, which MuJoCo's viewer hides by default."""
    ET.SubElement(body, "site", {"name": name, "size": "0.005", "group": "4", **pose(placement)})


__all__ = ["to_mjcf"]
