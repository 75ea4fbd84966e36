"""Rewrites of a description before a robot is built, and checks of its structure: tree, loops, files."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from robokit.conventions import WORLD
from robokit.dataclass_tools import frozen
from robokit.model.builder import PERPENDICULAR
from robokit.model.geometry import Mesh
from robokit.model.joints import JOINT_TABLE
from robokit.model.parts import free_name
from robokit.spatial.rotation import rotation_to_quat_wxyz
from robokit.urdf.description import (
    JointDescription,
    LoopDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
)
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver

# ==== rewrites of a description ===================================================================
# Descriptions rewritten before a robot is built from them.
#
# * ``own_base``, ``without_own_base``: a floating base that the file describes itself is left out, where
#   ``base="floating"`` adds one;
# * ``with_loops``: pairs of frames and second parents become loop joints (``loops="close"``);
# * ``with_z_up``: shapes are turned by the up axis of their meshes (``mesh_up_axis="apply"``).


# ---- the file's own floating base ----------------------------------------------------------------
# Files for other programs often begin with a massless link "world" and a joint of type floating. What they
# describe is a robot with a floating base, and ``base="floating"`` must not add a second joint below it.


class OwnBase(NamedTuple):
    """The floating base of a file."""

    joint: JointDescription  # the floating joint
    links: frozenset[str]  # names of the root and the links that are fixed to it


def own_base(robot: RobotDescription) -> OwnBase | None:
    """The floating base that the file describes, None where it describes none.

    The root and the links fixed to it have neither mass nor inertia, no loop ends at them, and all that they
    carry hangs on one floating joint.
    """
    floating = [joint for joint in robot.joints if joint.type == "floating"]
    if not floating:
        return None
    carried = {joint.child for joint in robot.joints}
    roots = [link.name for link in robot.links if link.name not in carried]
    if len(roots) != 1 or len(carried) != len(robot.joints):
        return None
    below: dict[str | None, list[JointDescription]] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint)
    body, moving, todo = set(), [], roots
    while todo:
        name = todo.pop()
        body.add(name)
        for joint in below.get(name, ()):
            if joint.moves:
                moving.append(joint)
            elif joint.child is not None and joint.child not in body:
                todo.append(joint.child)
    tied = any({loop.predecessor, loop.successor} & body for loop in robot.loops)
    if len(moving) != 1 or moving[0].type != "floating" or tied or moving[0].child is None:
        return None
    weighed = [link.inertial for link in robot.links if link.name in body and link.inertial is not None]
    if any(inertial.mass or any(inertial.inertia) for inertial in weighed):
        return None
    return OwnBase(moving[0], frozenset(body))


def without_own_base(robot: RobotDescription, own: OwnBase) -> RobotDescription:
    """The same robot without its root and floating joint: its root is what the joint carries."""
    return robot._replace(
        links=tuple(link for link in robot.links if link.name not in own.links),
        joints=tuple(j for j in robot.joints if j is not own.joint and j.parent not in own.links),
    )


# ---- loops without <loop_joint> ------------------------------------------------------------------
# Two forms are common. CAD exporters (onshape-to-robot) mark the place where a loop was cut by two massless
# links, closing_NAME_1 and closing_NAME_2, fixed to the two bodies; the loop is closed where their origins
# coincide. And some files give a link two parents, which makes no tree. Neither says all that a loop joint
# needs, so that they are closed on request only (``loops="close"``):
#
# * a pair of frames becomes a spherical loop joint: the file says only that their origins coincide;
# * of the joints with the same child, the first whose parent a root reaches stays in the tree. The others
#   become loop joints of their own type at the same place; their limits, damping and friction do not act.

_FRAME = re.compile(r"closing_(.+)_([12])")


class FramePair(NamedTuple):
    """Two links that mark where a loop was cut."""

    name: str  # of the loop, what stands between "closing_" and the number
    # first, second: names of the links
    first: str
    second: str
    line: int  # of the first


def frame_pairs(robot: RobotDescription) -> list[FramePair]:
    """The pairs of frames of a description that no loop joint closes yet."""
    found: dict[str, dict[str, tuple[str, int]]] = {}
    for link in robot.links:
        if link.name.startswith("closing_") and (match := _FRAME.fullmatch(link.name)):
            found.setdefault(match[1], {})[match[2]] = link.name, link.line
    if not found:
        return []
    bodies = body_of_links(robot)
    closed = {frozenset((loop.predecessor, loop.successor)) for loop in robot.loops}
    pairs = []
    for name, ends in found.items():
        if len(ends) < 2:
            continue
        (first, line), (second, _) = ends["1"], ends["2"]
        if bodies[first] != bodies[second] and frozenset((first, second)) not in closed:
            pairs.append(FramePair(name, first, second, line))
    return pairs


def body_of_links(robot: RobotDescription) -> dict[str, str]:
    """Link -> the link at the upper end of the fixed joints above it: the same for all links of a body."""
    above = {joint.child: joint.parent for joint in robot.joints if not joint.moves}
    bodies: dict[str, str] = {}
    for link in robot.links:
        path: dict[str, None] = {}
        name = link.name
        while name in above and name not in path and name not in bodies and above[name] is not None:
            path[name] = None
            name = above[name]  # type: ignore[assignment]
        bodies.update(dict.fromkeys([*path, name], bodies.get(name, name)))
    return bodies


def second_parents(robot: RobotDescription) -> list[JointDescription]:
    """The joints to take out of the tree so that every link has one parent at most.

    Of several joints that carry a link, the first whose parent a root reaches stays.
    """
    incoming: dict[str | None, list[JointDescription]] = {}
    for joint in robot.joints:
        incoming.setdefault(joint.child, []).append(joint)
    if all(len(joints) == 1 for joints in incoming.values()):
        return []
    below: dict[str | None, list[JointDescription]] = {}
    for joints in incoming.values():
        below.setdefault(joints[0].parent, []).append(joints[0])
    chosen = {child: joints[0] for child, joints in incoming.items()}
    todo = [link.name for link in robot.links if link.name not in incoming]
    reached: set[str | None] = set()
    while todo:
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                todo += [joint.child for joint in below.get(name, ()) if joint.child is not None]
        for child, joints in incoming.items():
            other = next((joint for joint in joints if joint.parent in reached), None)
            if child not in reached and other is not None and child is not None:
                chosen[child] = other
                todo.append(child)
                break
    kept = {id(joint) for joint in chosen.values()}
    return [joint for joint in robot.joints if id(joint) not in kept and joint.child is not None]


def with_loops(robot: RobotDescription) -> RobotDescription:
    """The same robot with its pairs of frames and second parents as loop joints."""
    second = second_parents(robot)
    out = {id(joint) for joint in second}
    joints = tuple(joint for joint in robot.joints if id(joint) not in out)
    robot = robot._replace(joints=joints, loops=(*robot.loops, *map(_from_joint, second)))
    taken = {joint.name for joint in robot.joints} | {loop.name for loop in robot.loops}
    pairs = [
        LoopDescription(free_name(f"closing_{x.name}", taken), "spherical", x.first, x.second, line=x.line)
        for x in frame_pairs(robot)
    ]
    return robot._replace(loops=(*robot.loops, *pairs))


def _from_joint(joint: JointDescription) -> LoopDescription:
    """A joint of the tree as one that closes a loop: its frame is the child's."""
    more: dict[str, Any] = {"predecessor_origin": joint.origin, "axis": joint.axis, "line": joint.line}
    return LoopDescription(joint.name, joint.type, joint.parent, joint.child, **more)


# ---- shapes turned to z up -----------------------------------------------------------------------
# A mesh whose file says that y is up is turned by 90 degrees about x, as by a reader that honours the axis:
# the shape's origin is turned and the scale's factors change places, so that the mesh file is read as it is.


def with_z_up(robot: RobotDescription, resolver: Resolver) -> RobotDescription:
    """The same robot with its shapes of meshes turned where the file says that x or y is up."""
    from robokit.meshes.collada import TO_Z_UP, up_axis

    axes: dict[str, str] = {}

    def turned(shape: ShapeDescription) -> ShapeDescription:
        mesh = shape.geometry
        if not isinstance(mesh, Mesh):
            return shape
        if mesh.filename not in axes:
            axes[mesh.filename] = up_axis(resolver(mesh.filename).path)
        if axes[mesh.filename] == "Z":
            return shape
        R = np.array(TO_Z_UP[axes[mesh.filename]])
        # The scale acts along z-up axes: S R = R (R^T S R).
        x, y, z = (np.abs(R).T @ mesh.scale).tolist()
        w, *xyz = rotation_to_quat_wxyz((shape.origin.rotation() @ R).tolist())
        origin = shape.origin._replace(rpy=(0.0, 0.0, 0.0), quat_xyzw=(*xyz, w))
        return shape._replace(geometry=Mesh(mesh.filename, (x, y, z), mesh.path), origin=origin)

    links = (
        link._replace(
            visuals=tuple(map(turned, link.visuals)), collisions=tuple(map(turned, link.collisions))
        )
        for link in robot.links
    )
    return robot._replace(links=tuple(links))


# ==== checks of the structure =====================================================================
# Checks of a description's structure: the tree of its links, mimic and loop joints, mesh and texture files.
#
# Everything is iterative and linear in the number of links and joints.


# ==== mesh and texture files ======================================================================
# Mesh and texture files that are not there, are Git LFS pointers, or say which axis is up; and meshes that
# cannot be read.

MeshBox = Callable[[str], tuple[np.ndarray, np.ndarray] | None]
"""File name of a mesh as written -> lowest and highest corner in its file's frame, or None."""


def check_files(robot: RobotDescription, resolver: Resolver, report: Report) -> None:
    """Warns of meshes and textures that are not there, once for each file or missing package."""
    present: set[str] = set()
    for where, shape in robot.shapes():
        geometry = shape.geometry
        if not isinstance(geometry, Mesh) or geometry.filename in present:
            continue
        if resolver(geometry.filename).file is not None:
            present.add(geometry.filename)
        else:
            _missing(geometry.filename, "mesh", where, shape.line, resolver, report)
    for material in robot.material_table().values():
        if material.texture and resolver(material.texture).file is None:
            where = f"material {material.name!r}"
            _missing(material.texture, "texture", where, material.line, resolver, report)


def check_heads(robot: RobotDescription, resolver: Resolver, report: Report, z_up: bool) -> None:
    """What the first bytes of meshes and textures say: Git LFS pointers, and COLLADA's up axis.

    Each is told once, with the number of its files: one command fetches all of a repository. ``z_up``: shapes
    were turned by the up axes already; other arguments are as for :func:`check_files`.
    """
    from robokit.meshes.collada import up_axis
    from robokit.meshes.untrusted import FETCH, POINTER, head_of

    seen: set[str] = set()

    def pointer(name: str, what: str, where: str, line: int) -> bool:
        path = resolver(name).path
        if path is None or name in seen:
            return True
        seen.add(name)
        if head_of(path, 32).startswith(POINTER):
            message = f"{what} {name!r} is a Git LFS pointer, not the file itself"
            report.once("mesh-lfs-pointer", what, where, line, message, FETCH)
            return True
        return False

    for where, shape in robot.shapes():
        if not isinstance(shape.geometry, Mesh):
            continue
        name = shape.geometry.filename
        if pointer(name, "mesh", where, shape.line):
            continue
        up = "Z" if z_up else up_axis(resolver(name).path)
        if up != "Z":
            message = f"mesh {name!r} says that {up.lower()} is up; it is read as if z were, as in RViz"
            report.once("mesh-up-axis", "", where, shape.line, message)
    for material in robot.material_table().values():
        if material.texture:
            pointer(material.texture, "texture", f"material {material.name!r}", material.line)


def mesh_boxes(robot: RobotDescription, resolver: Resolver, report: Report) -> MeshBox:
    """Reads every mesh once; warns of those that cannot be read.

    Returns lowest and highest corner (3,) in the file's own frame and unit by file name as written, None
    where there is no such box.
    """
    boxes: dict[str, tuple[np.ndarray, np.ndarray] | None] = {}
    for where, shape in robot.shapes():
        if isinstance(shape.geometry, Mesh) and shape.geometry.filename not in boxes:
            name = shape.geometry.filename
            boxes[name], problem = _mesh_box(resolver(name).path)
            if problem:
                message = f"mesh {name!r} cannot be read: {problem}"
                report.add("mesh-unreadable", where, shape.line, message)
    return boxes.get


def _mesh_box(path: Path | None) -> tuple[tuple[np.ndarray, np.ndarray] | None, str]:
    """The box of a mesh file, and why there is none."""
    if path is None:  # a missing file has a finding of its own
        return None, ""
    from robokit.meshes.read_mesh import read_mesh  # seven modules that loading does without
    from robokit.meshes.untrusted import POINTER, head_of

    if head_of(path, 32).startswith(POINTER):  # it has a finding of its own, too
        return None, ""
    try:
        points = [surface.vertices for surface in read_mesh(path) if len(surface.vertices)]
    except Exception as problem:  # each reader fails in its own way, and none may stop the check
        said = getattr(problem, "strerror", None) or str(problem).strip()
        return None, said or f"no further reason is known ({type(problem).__name__})"
    if not points:
        return None, "it holds no triangles"
    corners = np.concatenate(points)
    return (corners.min(axis=0), corners.max(axis=0)), ""


def _missing(filename: str, what: str, where: str, line: int, resolver: Resolver, report: Report) -> None:
    found = resolver(filename)
    tried = "; tried " + ", ".join(found.tried) if found.tried else ""
    if found.reason:
        tried = f": {found.reason}{tried}"
    if found.package is not None:
        message = f"{what} {filename!r} was not found: there is no package {found.package!r}"
        kind = f"package {found.package}"
        same = _same_name(found.package, resolver.roots, resolver)
        hint = f"pass package_dirs=[the folder that holds {found.package!r}]"
        if same is not None:
            hint = f"did you mean {same!r}? the names differ in case"
        report.once(f"{what}-unresolved", kind, where, line, message + tried, hint)
    else:
        packaged = filename.startswith(("package:", "model:"))
        advice = None if packaged else "correct the name; dynamics do not need it"
        message = f"{what} {filename!r} was not found{tried}"
        near = _near_file(found.tried, resolver, report)
        report.once(f"{what}-unresolved", filename, where, line, message, near or advice)


def _near_file(tried: Iterable[str], resolver: Resolver, report: Report) -> str | None:
    """A hint with the file that is there under nearly the same name."""
    for path in tried:
        there = _other_capitals(Path(path), resolver)
        if there is not None:
            same = os.path.commonpath((there, path))
            return f"did you mean {os.path.relpath(there, same)!r}? the names differ in case"
    for path in tried:
        files = resolver.entries(os.path.dirname(path))
        near = report.nearest(Path(path).name, files) if files else None
        if near is not None:
            return near
    return None


def _other_capitals(path: Path, resolver: Resolver) -> Path | None:
    """The file whose path differs from this one in capitals only, if there is one."""
    missing: list[str] = []
    here = path
    while not here.is_dir():
        if here.parent == here:
            return None
        missing.append(here.name)
        here = here.parent
    for name in reversed(missing):
        same = name if (here / name).exists() else _same_name(name, [str(here)], resolver)
        if same is None:
            return None
        here = here / same
    return here if here.is_file() else None


def _same_name(name: str, folders: Iterable[str], resolver: Resolver) -> str | None:
    """The first entry of folders whose name differs from this one in capitals only."""
    folded = name.casefold()
    for folder in folders:
        for entry in resolver.entries(folder):
            if entry.casefold() == folded and entry != name:
                return entry
    return None


# ==== links, joints and loops =====================================================================

Pose = tuple[np.ndarray, np.ndarray]  # rotation (3, 3) and position (3,) [m] of a frame in another

HERE: Pose = (np.eye(3), np.zeros(3))


def compose(outer: Pose, origin: Origin) -> Pose:
    """Pose of an origin's frame, given in a frame whose pose is ``outer``."""
    R, p = outer
    inner = origin.rotation() if origin.rotated else np.eye(3)
    return R @ inner, R @ np.array(origin.xyz) + p


@frozen
class LinkTree:
    """A description whose links form one tree."""

    order: list[str]  # link names depth first, joints in document order, the root first
    incoming: dict[str, JointDescription]  # link name -> the joint that carries it; not for the root
    end: list[int]  # position in ``order`` -> position behind the last link of that link's subtree
    parent: list[int]  # position in ``order`` -> position of the parent link, -1 for the root


def check_structure(robot: RobotDescription, report: Report) -> LinkTree | None:
    """The tree of the links, or None where they form none; problems go to the report."""
    links = _unique(robot.links, "link", report)
    _unique(robot.joints, "joint", report)
    edges, dangling = _edges(robot.joints, links, report)
    incoming: dict[str, JointDescription] = {}
    for joint in edges:
        assert joint.child is not None
        first = incoming.setdefault(joint.child, joint)
        if first is not joint:
            message = f"is the child of joint {first.name!r} (line {first.line}) and of joint {joint.name!r}"
            hint = (
                f"if they close a loop: loops='close' (on the command line --loops close) makes joint "
                f"{joint.name!r} a loop joint; or write a <loop_joint>"
            )
            report.add("link-two-parents", f"link {joint.child!r}", joint.child_line, message, hint)

    roots = [name for name in links if name not in incoming]
    tree = _walk(roots, links, edges, incoming)
    _check_cycles(tree, edges, incoming, report)
    # A joint whose child is misspelt leaves a root behind: its own message says enough.
    if len(roots) > 1 + dangling:
        element = ", ".join(map(repr, roots[:6])) + (", ..." if len(roots) > 6 else "")
        line = links[roots[1]].line
        message = f"{len(roots)} links have no parent joint: {element}; a robot has one root"
        report.add("tree-two-roots", f"link {roots[1]!r}", line, message)
    if report.has_errors or len(roots) != 1 or len(tree.order) != len(links):
        return None
    return tree


def _unique(items: Collection, what: str, report: Report) -> dict:
    """Items by name, the first of each name; those without a name are left out (the reader reports them)."""
    table: dict = {item.name: item for item in items}
    if len(table) == len(items) and "" not in table:
        return table
    table = {}
    for item in items:
        if not item.name:
            continue
        first = table.setdefault(item.name, item)
        if first is not item:
            message = f"is defined a second time; the first one is on line {first.line}"
            report.add(f"{what}-duplicate", f"{what} {item.name!r}", item.line, message)
    return table


def _edges(
    joints: Iterable[JointDescription], links: dict, report: Report
) -> tuple[list[JointDescription], int]:
    """Joints between two defined links, and the number of joints whose child is unknown."""
    edges, dangling = [], 0
    for joint in joints:
        if joint.parent in links and joint.child in links and joint.parent != joint.child:
            edges.append(joint)
            continue
        where = f"joint {joint.name!r}"
        for which, link, line in (
            ("parent", joint.parent, joint.parent_line),
            ("child", joint.child, joint.child_line),
        ):
            if link is not None and link not in links:
                message = f"its {which} link {link!r} is not defined"
                report.add("link-undefined", where, line, message, report.nearest(link, links))
        if joint.child not in links:
            dangling += 1
        elif joint.parent == joint.child:
            dangling += 1
            report.add("joint-self", where, joint.child_line, f"connects link {joint.parent!r} to itself")
        else:
            edges.append(joint)  # still carries its child
    return edges, dangling


def _walk(
    roots: list[str], links: dict, edges: list[JointDescription], incoming: dict[str, JointDescription]
) -> LinkTree:
    """Depth-first walk from all roots; of several joints into a link the first counts."""
    children: dict[str, list[str]] = {name: [] for name in links}
    for joint in edges:
        if incoming[joint.child] is joint and joint.parent in children:  # type: ignore[index]
            children[joint.parent].append(joint.child)  # type: ignore[index, arg-type]
    order: list[str] = []
    parent: list[int] = []
    stack = [(name, -1) for name in reversed(roots)]
    while stack:
        name, above = stack.pop()
        here = len(order)
        order.append(name)
        parent.append(above)
        stack += [(child, here) for child in reversed(children[name])]
    end = list(range(1, len(order) + 1))
    for here in range(len(order) - 1, 0, -1):
        above = parent[here]
        if above >= 0 and end[above] < end[here]:
            end[above] = end[here]
    return LinkTree(order, incoming, end, parent)


def _check_cycles(
    tree: LinkTree, edges: list[JointDescription], incoming: dict[str, JointDescription], report: Report
) -> None:
    place = {name: k for k, name in enumerate(tree.order)}
    # A second joint into a link closes a circle where its parent lies below that link.
    for joint in edges:
        if incoming[joint.child] is joint:  # type: ignore[index]
            continue
        child, parent = place.get(joint.child or ""), place.get(joint.parent or "")
        if child is not None and parent is not None and child <= parent < tree.end[child]:
            message = f"its child {joint.child!r} already carries its parent {joint.parent!r}"
            report.add("tree-cycle", f"joint {joint.name!r}", joint.line, message)
    # What no root reaches hangs on a circle: follow the parents until one repeats.
    done = set(place)
    for name in incoming:
        if name in done:
            continue
        path: dict[str, int] = {}
        while name not in done and name not in path and name in incoming:
            path[name] = len(path)
            name = incoming[name].parent or ""
        if name in path:
            circle = list(path)[path[name] :]
            round_trip = [circle[-1], *circle][::-1] if len(circle) <= 8 else circle[7::-1]
            shown = " -> ".join(map(repr, round_trip)) + (" -> ..." if len(circle) > 8 else "")
            joint = incoming[name]
            message = f"{len(circle)} links carry each other in a circle: {shown}"
            report.add("tree-cycle", f"joint {joint.name!r}", joint.line, message)
        done.update(path)


# ---- mimic joints --------------------------------------------------------------------------------


def check_mimics(robot: RobotDescription, report: Report) -> None:
    """Mimics of unknown joints, of themselves, of fixed joints, in a circle, and with laws that overflow."""
    if all(joint.mimic is None for joint in robot.joints):
        return
    joints: dict[str, JointDescription] = {}
    for joint in robot.joints:
        joints.setdefault(joint.name, joint)
    follows: dict[str, str] = {}
    for joint in joints.values():
        mimic, where = joint.mimic, f"joint {joint.name!r} mimic"
        if mimic is None:
            continue
        if mimic.joint == joint.name:
            report.add("mimic-self", where, mimic.line, "mimics itself")
        elif mimic.joint not in joints:
            message = f"mimics joint {mimic.joint!r}, which is not defined"
            report.add("mimic-unknown", where, mimic.line, message, report.nearest(mimic.joint, joints))
        else:
            follows[joint.name] = mimic.joint
            if not joint.moves:
                message = "this joint is fixed, so the mimic moves nothing"
                report.add("mimic-on-fixed", where, mimic.line, message)
            elif not joints[mimic.joint].moves:
                message = f"joint {mimic.joint!r} is fixed, so there is nothing to follow"
                report.add("mimic-of-fixed", where, mimic.line, message)
    _check_circles(joints, follows, report)
    _check_laws(joints, follows, report)


def _check_circles(joints: dict[str, JointDescription], follows: dict[str, str], report: Report) -> None:
    done: set[str] = set()
    for name in follows:
        path: dict[str, int] = {}
        while name in follows and name not in done and name not in path:
            path[name] = len(path)
            name = follows[name]
        if name in path:
            circle = list(path)[path[name] :]
            mimic = joints[circle[0]].mimic
            assert mimic is not None
            shown = " -> ".join(map(repr, [*circle[:8], "..." if len(circle) > 8 else circle[0]]))
            report.add(
                "mimic-cycle", f"joint {circle[0]!r} mimic", mimic.line, f"mimics in a circle: {shown}"
            )
        done.update(path)


def _check_laws(joints: dict[str, JointDescription], follows: dict[str, str], report: Report) -> None:
    """Laws of whole chains of mimics; of a chain only the first joint whose law overflows is reported."""
    laws: dict[str, tuple[float, float]] = {}
    for name in follows:
        chain: dict[str, None] = {}
        while name in follows and name not in laws and name not in chain:
            chain[name] = None
            name = follows[name]
        if name in chain:  # a circle, which has a finding
            laws.update(dict.fromkeys(chain, (1.0, 0.0)))
            continue
        multiplier, offset = laws.get(name, (1.0, 0.0))
        for joint in reversed(chain):
            mimic = joints[joint].mimic
            assert mimic is not None
            was_finite = math.isfinite(multiplier) and math.isfinite(offset)
            multiplier, offset = mimic.multiplier * multiplier, mimic.multiplier * offset + mimic.offset
            laws[joint] = multiplier, offset
            if was_finite and not (math.isfinite(multiplier) and math.isfinite(offset)):
                message = (
                    "the multipliers and offsets along its chain of mimics make a number beyond the largest "
                    "double, 1.8e308"
                )
                where = f"joint {joint!r} mimic"
                report.add("number-not-finite", where, mimic.line, message, "correct the multipliers")


def check_mimic_option(robot: RobotDescription, mimic: str | None, report: Report) -> None:
    """What ``mimic`` asks for: laws that "independent" drops, or mimics that "couple" cannot couple."""
    if mimic == "independent":
        _check_dropped_mimics(robot, report)
    elif mimic == "couple":
        _check_coupled_mimics(robot, report)


def _check_coupled_mimics(robot: RobotDescription, report: Report) -> None:
    """Mimics that mimic='couple' refuses: with or of a joint that has several coordinates."""
    joints = {joint.name: joint for joint in reversed(robot.joints)}
    for joint in robot.joints:
        followed = joints.get(joint.mimic.joint) if joint.mimic is not None and joint.moves else None
        if followed is None:
            continue
        assert joint.mimic is not None
        for end in (joint, followed):
            kind = JOINT_TABLE.get(end.type)
            if kind is not None and kind.nv > 1:
                message = (
                    f"mimics {followed.name!r}, and {end.name!r} is {end.type} and has several coordinates: "
                    "mimic='couple' takes joints with one"
                )
                report.add("mimic-not-coupled", f"joint {joint.name!r} mimic", joint.mimic.line, message)
                break


def _check_dropped_mimics(robot: RobotDescription, report: Report) -> None:
    """Warns once of all mimic joints that move, whose laws mimic='independent' drops."""
    free = [joint for joint in robot.joints if joint.moves and joint.mimic is not None]
    if not free:
        return
    names = ", ".join(repr(joint.name) for joint in free[:8]) + (", ..." if len(free) > 8 else "")
    many = f"{len(free)} joints that mimic others" if len(free) > 1 else "1 joint that mimics another"
    message = f"mimic='independent' drops the law of {many} in the file: {names}"
    assert free[0].mimic is not None
    report.add("mimic-independent", "joints", free[0].mimic.line, message)


# ---- loop joints ---------------------------------------------------------------------------------


def check_frame_pairs(robot: RobotDescription, report: Report) -> None:
    """Pairs of frames that mark a loop which nothing closes."""
    for pair in frame_pairs(robot):
        message = (
            f"with link {pair.second!r} it marks a loop that is open here; loops='close' lets their origins "
            "coincide"
        )
        report.add("loop-frames", f"link {pair.first!r}", pair.line, message)


def check_second_parents(robot: RobotDescription, report: Report) -> None:
    """Joints that become loop joints, and have limits or forces that no loop joint has."""
    for joint in second_parents(robot):
        ranged = joint.type in ("revolute", "prismatic") and joint.limit is not None
        if ranged or joint.dynamics is not None:
            message = f"closes a loop at link {joint.child!r}: its limits, damping and friction do not act"
            report.add("loop-limits", f"joint {joint.name!r}", joint.line, message)


def check_loops(robot: RobotDescription, report: Report) -> None:
    """Checks that ends are links of different bodies, names are not taken, and axes are not zero."""
    if not robot.loops:
        return
    links = {link.name for link in robot.links}
    names = {joint.name: joint.line for joint in robot.joints}
    bodies = body_of_links(robot)
    for loop in robot.loops:
        where = f"loop joint {loop.name!r}"
        if loop.name in names:
            message = f"is defined a second time; the first one is on line {names[loop.name]}"
            report.add("joint-duplicate", where, loop.line, message)
        names.setdefault(loop.name, loop.line)
        for which, link in (("predecessor", loop.predecessor), ("successor", loop.successor)):
            if link is not None and link not in links and link != WORLD:
                message = f"its {which} link {link!r} is not defined"
                report.add("link-undefined", where, loop.line, message, report.nearest(link, links))
        if loop.predecessor is not None and loop.predecessor == loop.successor:
            report.add("joint-self", where, loop.line, f"connects link {loop.successor!r} to itself")
        elif loop.predecessor is None or loop.successor is None:
            pass  # reported by the reader
        elif bodies.get(loop.predecessor, loop.predecessor) == bodies.get(loop.successor, loop.successor):
            message = (
                f"links {loop.predecessor!r} and {loop.successor!r} are one body: fixed joints connect them"
            )
            report.add("joint-self", where, loop.line, message)
        if loop.has_axis and not any(loop.axis):
            report.add("axis-zero", where, loop.line, "its axis is 0 0 0: it has no direction")
        elif loop.axis2 is not None:
            first, second = (np.array(x) / (np.linalg.norm(x) or 1.0) for x in (loop.axis, loop.axis2))
            if not second.any():
                report.add("axis-zero", where, loop.line, "its axis2 is 0 0 0: it has no direction")
            elif abs(first @ second) > PERPENDICULAR:
                angle = math.degrees(math.acos(min(1.0, abs(first @ second))))
                report.add("loop-axes", where, loop.line, f"its axes are at {angle:.4g} degrees")
