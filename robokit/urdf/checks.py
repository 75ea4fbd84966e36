"""What is wrong with a description: every check in one call; inertias, axes, limits, masses and shapes."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.dataclass_tools import frozen
from robokit.errors import listed
from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere, square_gyrations, volume
from robokit.model.inertial_parameters import LARGEST_JUDGED, EquivalentBox, equivalent_box
from robokit.model.parts import free_name
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    Origin,
    RobotDescription,
)
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.structure import (
    HERE,
    LinkTree,
    MeshBox,
    OwnBase,
    Pose,
    check_files,
    check_frame_pairs,
    check_heads,
    check_loops,
    check_mimic_option,
    check_mimics,
    check_structure,
    compose,
    mesh_boxes,
    own_base,
    without_own_base,
)

# ==== physics =====================================================================================
# The physics of a description: inertias, axes, limits and damping, and joints that move no inertia.
#
# Values are never corrected. Tolerances are relative, wide enough for numbers printed with few digits.

INERTIA_TOLERANCE = 1e-3  # violation of an inertia's inequalities by rounding, over its largest moment
ZERO_GYRATION = 1e-12  # inertia per mass [m^2] below which it counts as zero: that of a body of a micrometre
DEFINITE_MINOR = 1e-9  # smallest minor, of an inertia scaled to 1, that no rounding can have made positive
AXIS_TOLERANCE = 1e-3  # deviation of an axis' length from 1 that rounding can explain


def check_inertias(robot: RobotDescription, report: Report) -> None:
    """Signs, positive definiteness and the triangle inequality of every link's inertia."""
    regular: list[tuple[LinkDescription, InertialDescription]] = []
    for link in robot.links:
        inertial = link.inertial
        if inertial is None:
            continue
        largest = max(map(abs, inertial.inertia))
        x, y, z = inertial.origin.xyz
        reach = x * x + y * y + z * z
        finite = math.isfinite(9.0 * largest + abs(inertial.mass) * reach)  # what turning and moving can give
        ordinary = largest > 0 and _surely_of_a_body(inertial, largest)
        if finite and ordinary and 0 < ZERO_GYRATION * inertial.mass < largest:
            continue
        where = f"link {link.name!r} inertial"
        if inertial.mass < 0:
            report.add("mass-negative", where, inertial.line, f"mass {inertial.mass:g} kg is below zero")
        if not finite:
            message = "the inertia about the link's origin is beyond the largest double, 1.8e308"
            report.add("number-not-finite", where, inertial.line, message, "mind the units: kg and metres")
            continue
        if largest <= ZERO_GYRATION * inertial.mass:
            if inertial.mass > 0:
                noise = f" (at most {largest:.1g} kg m^2)" if largest else ""
                message = f"mass {inertial.mass:g} kg, but the rotational inertia is zero{noise}"
                report.add("inertia-zero", where, inertial.line, message)
            continue
        if largest == 0:  # beside a negative mass
            continue
        if inertial.mass == 0:
            message = "has a rotational inertia, but its mass is zero"
            report.once("inertia-without-mass", "", where, inertial.line, message)
        if not ordinary:
            regular.append((link, inertial))
    if not regular:
        return
    table = np.array([inertial.inertia for _, inertial in regular])
    scale = np.abs(table).max(axis=1)
    # Scaled to order one, so that no size of robot overflows or vanishes.
    moments = np.linalg.eigvalsh((table / scale[:, None])[:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3))
    slack = INERTIA_TOLERANCE * np.abs(moments).max(axis=1)
    not_psd = moments[:, 0] < -slack
    triangle = ~not_psd & (moments[:, 0] + moments[:, 1] < moments[:, 2] - slack)
    for k in np.flatnonzero(not_psd | triangle):
        link, inertial = regular[k]
        shown = ", ".join(f"{m * scale[k]:.4g}" if abs(m) > 1e-12 else "0" for m in moments[k])
        if not_psd[k]:
            code, what = "inertia-not-psd", "one is negative, which no body has"
        else:
            code, what = "inertia-triangle", "the largest exceeds the sum of the other two, which no body has"
        message = f"principal moments {shown} kg m^2: {what}; taken as written"
        report.add(code, f"link {link.name!r} inertial", inertial.line, message)


def _surely_of_a_body(inertial: InertialDescription, largest: float) -> bool:
    """Whether the second moments, half the trace minus the inertia, are positive by far more than rounding.

    Then the moments are positive and satisfy the triangle inequality. Nearly every inertia passes, and no
    principal moments need to be found. The leading minors are compared (Sylvester's criterion).
    """
    xx, xy, xz, yy, yz, zz = [x / largest for x in inertial.inertia]
    a, b, c = 0.5 * (yy + zz - xx), 0.5 * (xx + zz - yy), 0.5 * (xx + yy - zz)
    minor = a * b - xy * xy
    return min(a, minor, minor * c - a * yz * yz - b * xz * xz - 2.0 * xy * xz * yz) > DEFINITE_MINOR


def check_joints(robot: RobotDescription, report: Report) -> None:
    """Axes, limits and dynamics of every joint."""
    for joint in robot.joints:
        if joint.has_axis and not abs(math.hypot(*joint.axis) - 1) <= AXIS_TOLERANCE:
            _check_axis(joint, report)
        if joint.type == "fixed":
            continue
        if not _has_usual_limit(joint):
            _check_limit(joint, report)
        dynamics = joint.dynamics
        if dynamics is None:
            continue
        for name, value in (("damping", dynamics.damping), ("friction", dynamics.friction)):
            if value < 0:
                message = f"{name} {value:g} is below zero: it adds energy"
                report.add(f"{name}-negative", f"joint {joint.name!r} dynamics", dynamics.line, message)
        if dynamics.armature < 0:
            message = (
                f"armature {dynamics.armature:g} is below zero, which no rotor has; taken as written: where "
                "it outweighs what the joint moves, H is not positive definite and nothing can be accelerated"
            )
            report.add("armature-negative", f"joint {joint.name!r} dynamics", dynamics.line, message)


def _check_axis(joint: JointDescription, report: Report) -> None:
    length = math.hypot(*joint.axis)
    where = f"joint {joint.name!r} axis"
    shown = " ".join(f"{x:g}" for x in joint.axis)
    if length == 0:
        message = f"the axis of this {joint.type} joint is {shown}: it has no direction"
        report.add("axis-zero", where, joint.axis_line, message)
    else:
        message = f"({shown}) has length {length:.4g}; it was normalised"
        report.add("axis-not-unit", where, joint.axis_line, message)


def _has_usual_limit(joint: JointDescription) -> bool:
    """Whether there is a range, an effort and a velocity, and nothing to say about them."""
    if joint.limit is None or joint.type not in ("revolute", "prismatic"):
        return False
    lower, upper, effort, velocity, _ = joint.limit
    if lower is None or upper is None or effort is None or velocity is None:
        return False
    return lower < upper and effort >= 0 and velocity >= 0


def _check_limit(joint: JointDescription, report: Report) -> None:
    limit, ranged = joint.limit, joint.type in ("revolute", "prismatic")
    if limit is None:
        if ranged:
            message = f"this {joint.type} joint has no <limit>: it is loaded without limits"
            report.add("limit-missing", f"joint {joint.name!r}", joint.line, message)
        return
    where = f"joint {joint.name!r} limit"
    if ranged:
        _check_range(joint, report)
    elif joint.type == "continuous" and (limit.lower or limit.upper):
        message = "position limits on a continuous joint are ignored"
        report.once("limit-on-continuous", "", where, limit.line, message)
    bounds = {"effort": limit.effort, "velocity": limit.velocity}
    missing = [name for name, value in bounds.items() if value is None]
    if missing and joint.type in ("revolute", "prismatic", "continuous"):
        message = f"<limit> has no {' and no '.join(missing)}: the joint is loaded without"
        report.add("limit-incomplete", where, limit.line, message, f"add {' and '.join(missing)}")
    for name, value in bounds.items():
        if value is not None and value < 0:
            report.add(f"limit-{name}-negative", where, limit.line, f"{name} {value:g} is below zero")


def _check_range(joint: JointDescription, report: Report) -> None:
    limit, where = joint.limit, f"joint {joint.name!r} limit"
    assert limit is not None
    if limit.range is None:
        message = "<limit> has neither lower nor upper: the joint is loaded without a range"
        report.add("limit-range-missing", where, limit.line, message)
        return
    lower, upper = limit.range
    if lower > upper:
        absent = "; lower is left out, which means 0" if limit.lower is None else ""
        absent = "; upper is left out, which means 0" if limit.upper is None else absent
        message = f"lower {lower:g} is above upper {upper:g}{absent}"
        report.add("limit-inverted", where, limit.line, message)
    elif lower == upper:
        message = f"lower and upper are both {lower:g}: the joint cannot move"
        report.once("limit-locked", "", where, limit.line, message)


# ---- masses of the whole robot -------------------------------------------------------------------
# Joints that move no inertia, moving bodies without mass, sums that overflow.


def check_masses(robot: RobotDescription, tree: LinkTree, base: str, report: Report) -> None:
    """Joints that move no inertia, which make H singular.

    A joint is reported when its whole subtree lacks what it needs: mass where it shifts, mass or rotational
    inertia where it turns; and when the one rigid body it turns has its point masses on the axis. Of nested
    such joints only the outermost is reported.
    """
    links = {link.name: link for link in robot.links}
    inertials = [links[name].inertial for name in tree.order]
    own_mass = [i is not None and i.mass > 0 for i in inertials]
    own_turn = [i is not None and any(i.inertia) for i in inertials]
    mass, turn = _subtree_flags(own_mass, tree), _subtree_flags(own_turn, tree)
    joints: list[JointDescription | None] = [tree.incoming.get(name) for name in tree.order]
    moving = [k for k, joint in enumerate(joints) if joint is not None and joint.moves]
    if not mass[0] and not turn[0]:
        names = [joints[k].name for k in moving]  # type: ignore[union-attr]
        if base == "floating":
            names.insert(0, FLOATING_BASE)
        if names:
            shown = listed(map(repr, names), 4)
            joined = f"joints {shown} move" if len(names) > 1 else f"joint {shown} moves"
            text = f"no link has a mass, so {joined} no inertia: kinematics works, but H is zero"
            report.add("massless-subtree", "robot", robot.line, text)
        return
    bodies = _bodies(tree)
    _check_seen(tree, links, bodies, base, [m or t for m, t in zip(mass, turn, strict=True)], report)
    counts = [0, *itertools.accumulate(own_mass)]  # of masses before a position
    covered = 0
    for k in moving:
        joint = joints[k]
        assert joint is not None
        if k < covered:
            continue
        lacks = _lacks(joint, k, mass, turn)
        if lacks is None and not turn[k] and joint.type in ("revolute", "continuous"):
            beyond = counts[tree.end[k]] - counts[k] - sum(own_mass[m] for m in bodies[k])
            lacks = None if beyond else _on_axis(bodies[k], joint, tree, links)
        if lacks is None:
            continue
        inner = 0
        if not mass[k] and not turn[k]:
            covered = tree.end[k]
            inner = bisect.bisect_left(moving, covered) - bisect.bisect_right(moving, k)
        more = f", like the {inner} beyond it" if inner else ""
        message = f"with link {joint.child!r} it moves {lacks}{more}: H is singular"
        report.add("massless-subtree", f"joint {joint.name!r}", joint.line, message)
    if base != "fixed" and own_base(robot) is None:
        told = _moves_what_the_base_moves(tree, joints, own_mass, own_turn, mass)
        if told is not None:
            _tell_base(robot, links[tree.order[0]], told, base, report)


def _tell_base(
    robot: RobotDescription, root: LinkDescription, joint: JointDescription, base: str, report: Report
) -> None:
    """Tell of a floating base that moves the same body as the one joint on the root."""
    if base == "floating":
        message = (
            f"the floating base carries no inertia of its own and moves the same body as joint "
            f"{joint.name!r}: H is singular"
        )
        report.add("massless-subtree", f"joint {FLOATING_BASE!r}", robot.line, message)
    else:
        message = (
            f"has no inertia and carries nothing but joint {joint.name!r}: with base='floating' "
            "both would move the same body, and H would be singular"
        )
        report.add("base-massless", f"link {root.name!r}", root.line, message)


def _bodies(tree: LinkTree) -> dict[int, list[int]]:
    """Position of a body's first link in the order -> positions of all its links, the first included."""
    bodies: dict[int, list[int]] = {}
    top: list[int] = []
    for k, name in enumerate(tree.order):
        joint = tree.incoming.get(name)
        top.append(k if joint is None or joint.moves else top[tree.parent[k]])
        bodies.setdefault(top[k], []).append(k)
    return bodies


def _check_seen(
    tree: LinkTree,
    links: dict[str, LinkDescription],
    bodies: dict[int, list[int]],
    base: str,
    heavy: list[bool],
    report: Report,
) -> None:
    """Warn of bodies that move and are seen although none of their links has an ``<inertial>``.

    ``base`` is "floating" where the root's body moves too. ``heavy`` says, by position in the tree's order,
    whether the link or one beyond it has mass or inertia: where none has, the finding about the joint that
    moves them says enough.
    """
    for k, body in bodies.items():
        members = [links[tree.order[m]] for m in body]
        if not heavy[k] or members[0].inertial or any(link.inertial for link in members):
            continue
        seen = next((link for link in members if link.visuals), None)
        if seen is None:
            continue
        if k or base == "floating":
            message = "moves and is visible, but neither it nor a link fixed to it has an <inertial>"
            report.add("inertial-missing", f"link {seen.name!r}", seen.line, message)


def check_sums(robot: RobotDescription, tree: LinkTree, report: Report) -> None:
    """Masses and inertias of links that are fixed to each other, whose sum is beyond the largest double.

    Distances are added up along the links, so that no rotation matters: the sum is an upper bound.
    """
    links = {link.name: link for link in robot.links}
    top: list[int] = []
    reach: list[float] = []  # distance of a link's frame from that of the body, at most [m]
    total = [0.0] * len(tree.order)
    mass = 0.0
    for k, name in enumerate(tree.order):
        joint, above = tree.incoming.get(name), tree.parent[k]
        welded = joint is not None and not joint.moves
        top.append(top[above] if welded else k)
        reach.append(reach[above] + math.hypot(*joint.origin.xyz) if joint is not None and welded else 0.0)
        inertial = links[name].inertial
        if inertial is None:
            continue
        body, weight = top[k], abs(inertial.mass)
        before = total[body], mass
        far = reach[k] + math.hypot(*inertial.origin.xyz) if weight else 0.0
        total[body] += 9.0 * max(map(abs, inertial.inertia)) + weight * far * far
        mass += weight
        if math.isfinite(total[body] + mass):
            continue
        what = ""
        if not math.isfinite(total[body]) and math.isfinite(before[0]):
            what = f"the inertia of link {tree.order[body]!r} and the links that are fixed to it is"
        elif not math.isfinite(mass) and math.isfinite(before[1]):
            what = "the mass of all links together is"
        if what:
            message = f"with this link, {what} beyond the largest double, 1.8e308"
            where = f"link {name!r} inertial"
            report.add("number-not-finite", where, inertial.line, message, "mind the units: kg and metres")


def _subtree_flags(own: list[bool], tree: LinkTree) -> list[bool]:
    total = list(own)
    for k in range(len(total) - 1, 0, -1):
        if total[k] and tree.parent[k] >= 0:
            total[tree.parent[k]] = True
    return total


def _lacks(joint: JointDescription, k: int, mass: list[bool], turn: list[bool]) -> str | None:
    if not mass[k] and not turn[k]:
        return "nothing that has mass or inertia"
    if not mass[k] and joint.type in ("prismatic", "planar", "floating"):
        return "nothing that has mass"
    return None


def _on_axis(
    body: list[int], joint: JointDescription, tree: LinkTree, links: dict[str, LinkDescription]
) -> str | None:
    """Whether the point masses of the one rigid body that the joint turns all lie on its axis."""
    axis = np.array([x / math.hypot(*joint.axis) for x in joint.axis])
    poses = {body[0]: HERE}
    for m in body:
        name = tree.order[m]
        if m != body[0]:
            poses[m] = compose(poses[tree.parent[m]], tree.incoming[name].origin)
        inertial = links[name].inertial
        if inertial is not None and inertial.mass > 0:
            R, p = poses[m]
            com = R @ np.array(inertial.origin.xyz) + p
            if np.linalg.norm(np.cross(axis, com)) > 1e-9 * (1.0 + np.linalg.norm(com)):
                return None
    return "point masses on its own axis only"


def _moves_what_the_base_moves(
    tree: LinkTree,
    joints: list[JointDescription | None],
    own_mass: list[bool],
    own_turn: list[bool],
    mass: list[bool],
) -> JointDescription | None:
    """The only joint on a root without inertia, if there is one: a floating base would move the same body.

    Beside floating joints, which can follow every motion of the base, one other joint is the only one, too.
    """
    on_base = [True] * len(joints)
    carried: list[JointDescription] = []
    for k, joint in enumerate(joints):
        if joint is not None:
            on_base[k] = on_base[tree.parent[k]] and not joint.moves
            if joint.moves and on_base[tree.parent[k]] and mass[k]:
                carried.append(joint)
        if on_base[k] and (own_mass[k] or own_turn[k]):
            return None
    others = [joint for joint in carried if joint.type != "floating"]
    return (others or carried)[0] if carried and len(others) < 2 else None


# ==== masses and shapes ===========================================================================
# Masses and inertias compared with the links' shapes and with each other: notes on what no real body has.
#
# Sections: extents of shapes (bounding boxes and volumes); masses and inertias beside them.


# ---- extents of shapes ---------------------------------------------------------------------------

LARGEST_LENGTH = 1e50  # longer lengths [m] are not judged: their powers overflow


@frozen
class Extent:
    """The room that shapes take, in one frame."""

    # low, high: corners of the bounding box, (3,) [m]
    low: np.ndarray
    high: np.ndarray
    most: float  # volume that the shapes cannot exceed [m^3]
    least: float  # volume that they have at least, that of the largest; 0 where only boxes are known [m^3]
    # squared radius of a circle that holds their outline seen along each axis, (3,) [m^2]. No mass inside has
    # a larger moment about its centre of mass than the mass times that: the mean square distance from the
    # mean is at most that from any other point, and so from the circle's centre.
    reach: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.high - self.low


def link_extent(link: LinkDescription, pose: Pose = HERE, mesh_box: MeshBox | None = None) -> Extent | None:
    """The room of all shapes of a link in the frame of ``pose``, or None where there is none of known size.

    Visuals and collisions count alike; of the volumes the larger of the two sums is taken. ``mesh_box`` gives
    the boxes of meshes; without it a mesh makes the room unknown.
    """
    low, high = np.full(3, math.inf), np.full(3, -math.inf)
    sums, largest = [0.0, 0.0], 0.0
    outlines: dict[tuple, np.ndarray] = {}  # of different shapes
    for kind, shapes in enumerate((link.visuals, link.collisions)):
        for shape in shapes:
            local = _local_box(shape.geometry, mesh_box)
            if local is None or not np.abs(local).max() < LARGEST_LENGTH:
                return None
            R, p = compose(pose, shape.origin)
            middle, half = R @ (0.5 * (local[0] + local[1])) + p, _half(shape.geometry, R, local)
            low, high = np.minimum(low, middle - half), np.maximum(high, middle + half)
            if isinstance(shape.geometry, Mesh):  # that of the box round it
                room = float(np.prod(local[1] - local[0]))
            else:
                room = abs(volume(shape.geometry))
                largest = max(largest, room)
            sums[kind] += room
            if len(outlines) < 2:
                outlines[shape.geometry, shape.origin[:3]] = _outline(shape.geometry, R)
    if not np.any(high > low) or not np.all(np.abs(np.append(low, high)) < LARGEST_LENGTH):
        return None
    reach = _half_diagonals(high - low)
    if len(outlines) == 1:
        reach = np.minimum(reach, *outlines.values())
    return Extent(low, high, min(max(sums), float(np.prod(high - low))), largest, reach)


def union(extents: Iterable[Extent]) -> Extent:
    """The room of several extents of one frame together."""
    parts = list(extents)
    low, high = np.min([e.low for e in parts], axis=0), np.max([e.high for e in parts], axis=0)
    most = min(sum(e.most for e in parts), float(np.prod(high - low)))
    return Extent(low, high, most, max(e.least for e in parts), _half_diagonals(high - low))


def _half_diagonals(size: np.ndarray) -> np.ndarray:
    """Squares of half the diagonals of a box's faces across each axis, (3,) [m^2]."""
    return ((size**2).sum() - size**2) / 4.0


def _outline(geometry: Geometry, R: np.ndarray) -> np.ndarray:
    """Squared radius of the circle round one round shape, seen along each axis of the result, (3,) [m^2]."""
    if isinstance(geometry, (Box, Mesh)):
        return np.full(3, math.inf)  # the box round it says as much
    r = abs(geometry.radius)
    if isinstance(geometry, Sphere):
        return np.full(3, r * r)
    along = np.abs(R[:, 2])
    if isinstance(geometry, Capsule):
        seen = 0.5 * abs(geometry.length) * np.sqrt(np.maximum(0.0, 1.0 - along**2))  # half of its axis
        return (seen + r) ** 2
    return np.where(along > 1.0 - 1e-12, r * r, math.inf)  # from the side the box says as much


@frozen
class RigidBody:
    """The rigid body that a link belongs to."""

    links: list[LinkDescription]  # its links
    poses: dict[str, Pose]  # link name -> its pose in the frame of the first

    @property
    def mass(self) -> float:
        """Sum of what its links weigh [kg]."""
        return sum(max(link.inertial.mass, 0.0) for link in self.links if link.inertial)

    def extent(self, mesh_box: MeshBox | None = None) -> Extent | None:
        """The room of all its shapes in the frame of the first link; None where one is not known."""
        extents = []
        for link in self.links:
            extent = link_extent(link, self.poses[link.name], mesh_box)
            if extent is not None:
                extents.append(extent)
            elif link.visuals or link.collisions:
                return None
        return union(extents) if extents else None


def rigid_bodies(robot: RobotDescription, tree: LinkTree) -> dict[str, RigidBody]:
    """Link name -> the body of all links that fixed joints join to it."""
    links = {link.name: link for link in robot.links}
    bodies: dict[str, RigidBody] = {}
    poses: dict[str, Pose] = {}
    for name in tree.order:
        joint = tree.incoming.get(name)
        if joint is None or joint.moves:
            bodies[name], poses[name] = RigidBody([], {}), HERE
        else:
            assert joint.parent is not None
            bodies[name], poses[name] = bodies[joint.parent], compose(poses[joint.parent], joint.origin)
        bodies[name].links.append(links[name])
        bodies[name].poses[name] = poses[name]
    return bodies


def _local_box(geometry: Geometry, mesh_box: MeshBox | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners in the shape's own frame; None for a mesh of unknown size."""
    if isinstance(geometry, Mesh):
        corners = mesh_box(geometry.filename) if mesh_box else None
        if corners is None:
            return None
        a, b = corners[0] * np.array(geometry.scale), corners[1] * np.array(geometry.scale)
        return np.minimum(a, b), np.maximum(a, b)
    if isinstance(geometry, Box):
        half = 0.5 * np.abs(np.array(geometry.size))
    elif isinstance(geometry, Sphere):
        half = np.full(3, abs(geometry.radius))
    else:
        caps = abs(geometry.radius) if isinstance(geometry, Capsule) else 0.0
        half = np.array([abs(geometry.radius)] * 2 + [0.5 * abs(geometry.length) + caps])
    return -half, half


def _half(geometry: Geometry, R: np.ndarray, local: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Half the edges of the box round the turned shape, (3,) [m]; round shapes stay tight."""
    if isinstance(geometry, Sphere):
        return local[1]
    if isinstance(geometry, Capsule):
        return np.abs(R[:, 2]) * 0.5 * abs(geometry.length) + abs(geometry.radius)
    if isinstance(geometry, Cylinder):
        across = np.sqrt(np.maximum(0.0, 1.0 - R[:, 2] ** 2))
        return np.abs(R[:, 2]) * 0.5 * abs(geometry.length) + across * abs(geometry.radius)
    return np.abs(R) @ (0.5 * (local[1] - local[0]))


# ---- masses and inertias beside shapes -----------------------------------------------------------
# A link is judged where the size of all its shapes is known. What looks odd about the link alone is judged
# again with all links that are welded to it, because masses are often given to one of them and shapes to
# another; only what is odd both times is reported.

LARGEST_DENSITY = 22_590.0  # density of osmium [kg/m^3]: no element is denser
ROUNDING_TOLERANCE = 1e-2  # relative error of two figures, and room for alloys beside pure osmium
SMALLEST_DENSITY = 1.2  # density of air [kg/m^3]: a shape that weighs less would float
COM_TOLERANCE = 0.25  # distance of the centre of mass from the bounding box, over its largest edge
INERTIA_EXCESS = 5.0  # largest moment of inertia, over the largest that the mass can have in the shapes

QUARTER_TURNS = (("x", [0, 2, 1]), ("y", [2, 1, 0]), ("z", [1, 0, 2]))
"""Axis of a quarter turn, and the moments of inertia about x, y, z after it."""

HOLLOW_CUBE_SHARE = 5.0 / 9.0
"""Moment of inertia of a cube whose mass lies in its walls, 5/18 m s^2, relative to the largest that a mass
can have inside the cube, 1/2 m s^2: hardly any part has more."""

INERTIA_DEFICIT = 1e-3  # least moment of inertia, over the full box: of a part of 1/30 of its size


def check_zero(robot: RobotDescription, report: Report) -> None:
    """Joints whose position zero is outside their limits, all in one note."""
    beyond = []
    for joint in robot.joints:
        limit = joint.limit
        if joint.type not in ("revolute", "prismatic") or limit is None or limit.range is None:
            continue
        lower, upper = limit.range
        if lower <= upper and not lower <= 0.0 <= upper:
            beyond.append((joint, f"{joint.name!r} [{lower:.4g}, {upper:.4g}]"))
    if not beyond:
        return
    shown = listed((text for _, text in beyond), 4)
    first = beyond[0][0]
    assert first.limit is not None
    where = f"joint {first.name!r} limit" if len(beyond) == 1 else "robot"
    message = f"position zero is outside the limits of joint{'s' * (len(beyond) > 1)} {shown}"
    report.add("limit-excludes-zero", where, first.limit.line, message)


def check_capsules(robot: RobotDescription, report: Report) -> None:
    """Capsules in a file of URDF 1.0."""
    if not robot.old:
        return
    for where, shape in robot.shapes():
        if isinstance(shape.geometry, Capsule):
            message = "<capsule>: URDF 1.1, and urdfdom leaves it out of a file of version 1.0"
            hint = 'write version="1.1" at <robot>'
            report.once("version-too-low", "capsule", where, shape.line, message, hint)


def check_plausible(
    robot: RobotDescription, tree: LinkTree, report: Report, mesh_box: MeshBox | None = None
) -> None:
    """Densities, centres of mass and inertias that the shapes of a link, or no material at all, explain.

    ``mesh_box`` gives the boxes of meshes; without it links with meshes are not judged by their shapes.
    """
    bodies: dict[str, RigidBody] | None = None
    rooms: dict[int, tuple[Extent | None, float]] = {}
    for link in robot.links:
        inertial = link.inertial
        if inertial is None or not 0 < inertial.mass < LARGEST_JUDGED:
            continue
        if not max(map(abs, (*inertial.inertia, *inertial.origin.xyz))) < LARGEST_JUDGED:
            continue
        own = link_extent(link, mesh_box=mesh_box)
        odd = {} if own is None else _oddities(link, inertial, own, mesh_box)
        # Without rotational inertia it has a warning.
        dense = max(map(abs, inertial.inertia)) > ZERO_GYRATION * inertial.mass and too_dense(
            inertial.mass, _mean_moment(inertial)
        )
        shape = _only_shape(link)
        turned = None if shape is None or own is None else _turned_solid(inertial, *shape)
        if not odd and not dense and not turned:
            continue
        bodies = bodies or rigid_bodies(robot, tree)
        body = bodies[link.name]
        told: dict[str, tuple[str, str | None]] = {}
        if odd:
            if id(body) not in rooms:  # once a body: thousands of links may be welded to one
                rooms[id(body)] = body.extent(mesh_box), body.mass
            told = _confirm_with_body(link, odd, own, body, *rooms[id(body)])
        if turned is not None:
            told.setdefault("inertia-implausible", turned)
        explained = {"density-implausible", "inertia-implausible"} & told.keys()  # of the same numbers
        if dense and not explained and too_dense(body.mass, _mean_moment_of(body)):
            least = least_mean_moment(inertial.mass)
            message = (
                f"mass {inertial.mass:.4g} kg with a mean moment of inertia of {_mean_moment(inertial):.3g} "
                "kg m^2: of the densest material, a ball of osmium (22,590 kg/m^3), it has at least "
                f"{least:.2g}"
            )
            told["mass-too-dense"] = message, None
        for code, (message, hint) in told.items():
            report.add(code, f"link {link.name!r} inertial", inertial.line, message, hint)


def least_mean_moment(mass: float) -> float:
    """Mean of the principal moments of inertia that a mass has at least, whatever its shape [kg m^2].

    The mean is 2/3 of the integral of r^2 dm about the centre of mass. With a density of at most rho, that is
    smallest where the mass lies as near as it can, in a ball of that density: mean >= 2/5 m R^2 with
    R^3 = 3 m / (4 pi rho). Each moment of its own may be smaller: that of a rod about its axis.
    """
    return 0.4 * mass * (0.75 * mass / (math.pi * LARGEST_DENSITY)) ** (2.0 / 3.0)


def too_dense(mass: float, mean_moment: float) -> bool:
    """Whether no material is so dense that this mass [kg] has so small a mean moment of inertia [kg m^2]."""
    return mean_moment < (1.0 - ROUNDING_TOLERANCE) * least_mean_moment(mass)


def _mean_moment(inertial: InertialDescription) -> float:
    xx, _, _, yy, _, zz = inertial.inertia
    return (xx + yy + zz) / 3.0


def _mean_moment_of(body: RigidBody) -> float:
    """Mean moment of inertia of all links of a body about their common centre of mass [kg m^2]."""
    weighed = [(link.inertial, body.poses[link.name]) for link in body.links if link.inertial is not None]
    masses = np.array([max(inertial.mass, 0.0) for inertial, _ in weighed])
    coms = np.array([R @ np.array(inertial.origin.xyz) + p for inertial, (R, p) in weighed])
    apart = ((coms - masses @ coms / masses.sum()) ** 2).sum(axis=1)
    return sum(_mean_moment(inertial) for inertial, _ in weighed) + 2.0 / 3.0 * float(masses @ apart)


def _oddities(
    link: LinkDescription, inertial: InertialDescription, own: Extent, mesh_box: MeshBox | None
) -> dict[str, tuple[str, str | None]]:
    """Code -> (message, hint) of what a link's own shapes do not explain, in its axes and in their own."""
    odd = {}
    shape = _only_shape(link)
    if shape is not None and shape[1].rotated:
        pose = shape[1].rotation().T, np.zeros(3)
        turned = link_extent(link, pose, mesh_box)
        if turned is not None:
            odd = dict(_judge(inertial, turned, own, inertial.mass, pose))
    return {**odd, **dict(_judge(inertial, own, own, inertial.mass))}


def _only_shape(link: LinkDescription) -> tuple[Geometry, Origin] | None:
    """The shape that a link has, and where; None where it has several."""
    found = {(shape.geometry, shape.origin[:3]): shape for shape in (*link.visuals, *link.collisions)}
    if len(found) != 1:
        return None
    (shape,) = found.values()
    return shape.geometry, shape.origin


def _turned_solid(
    inertial: InertialDescription, geometry: Geometry, origin: Origin
) -> tuple[str, str | None] | None:
    """What to say if the inertia is that of the link's only shape, filled evenly, turned by 90 degrees."""
    if isinstance(geometry, Mesh):
        return None
    R = origin.rotation()
    I = R.T @ inertial.matrix() @ R
    with np.errstate(all="ignore"):  # of shapes without a size, or whose powers vanish
        given, full = np.diag(I), inertial.mass * square_gyrations(geometry)
    if not full.min() > 0:
        return None
    if np.abs(I - np.diag(given)).max() > ROUNDING_TOLERANCE * full.max() or _near(given, full):
        return None
    for axis, turn in QUARTER_TURNS:
        if _near(given, full[turn]):
            written, right = (" ".join(f"{x:.3g}" for x in three) for three in (given, full))
            message = (
                f"moments of inertia {written} kg m^2 in the axes of its {type(geometry).__name__.lower()}, "
                f"which has {right}: they are those of the shape turned by 90 degrees about {axis}"
            )
            return message, _TURN_HINT
    return None


_MILLIMETRES_HINT = 'write metres; of meshes in millimetres, <mesh scale="0.001 0.001 0.001">'
_TURN_HINT = "exchange the moments of the two axes, or turn <inertial><origin rpy>"


def _near(given: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.all(np.abs(given - expected) <= ROUNDING_TOLERANCE * expected))


def _confirm_with_body(
    link: LinkDescription,
    odd: dict[str, tuple[str, str | None]],
    own: Extent | None,
    body: RigidBody,
    room: Extent | None,
    mass: float,
) -> dict[str, tuple[str, str | None]]:
    """Those of a link's oddities that its whole rigid body, of this extent and mass, has too."""
    if len(body.links) == 1:
        return odd
    if room is None:
        return {}
    assert link.inertial is not None and own is not None  # it has oddities
    whole = dict(_judge(link.inertial, room, own, mass, body.poses[link.name]))
    return {code: told for code, told in odd.items() if code in whole}


def _judge(
    inertial: InertialDescription, room: Extent, own: Extent, mass: float, pose: Pose = HERE
) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """(code, (message, hint)) of what an extent does not explain.

    ``room``, at ``pose`` in its own frame, is where the link's mass may be, ``mass`` that of all in it [kg];
    ``own`` are the link's own shapes, which say how small an inertia is odd.
    """
    R, p = pose
    com = R @ np.array(inertial.origin.xyz) + p
    edges = " x ".join(f"{x:.3g}" for x in room.size)
    if room.most > 0 and mass > (1.0 + ROUNDING_TOLERANCE) * LARGEST_DENSITY * room.most:
        density = f"{mass / room.most:.3g} kg/m^3, more than osmium has (22,590)"
        yield (
            "density-implausible",
            (f"mass {mass:.4g} kg in shapes of {_volume_text(room.most)}: {density}", None),
        )
    elif room.least > 0 and mass < SMALLEST_DENSITY * room.least:
        density = f"{mass / room.least:.3g} kg/m^3, less than air has (1.2)"
        yield (
            "density-implausible",
            (f"mass {mass:.4g} kg in a shape of {_volume_text(room.least)}: {density}", None),
        )

    outside = np.maximum(0.0, np.maximum(room.low - com, com - room.high))
    if np.linalg.norm(outside) > COM_TOLERANCE * room.size.max():
        where = " ".join(f"{x:.3g}" for x in inertial.origin.xyz)
        distance = f"{np.linalg.norm(outside):.3g} m outside the box of {edges} m round its shapes"
        yield "com-outside", (f"centre of mass ({where}) m lies {distance}", None)
        return  # an inertia about a wrong point says nothing more

    I = R @ inertial.matrix() @ R.T
    largest = float(np.linalg.eigvalsh(I)[-1]) if np.all(np.isfinite(I)) else 0.0
    if largest <= ZERO_GYRATION * inertial.mass:
        return  # a warning of its own
    bound = mass * room.reach
    bound = bound + 1e-6 * float(bound.max()) + 1e-300
    moments = np.diag(I)
    worst = int(np.argmax(moments / bound))
    full = inertial.mass * float((own.size**2).sum() - own.size.min() ** 2) / 12.0
    turn = _turn_that_fits(moments, bound)
    if moments[worst] > INERTIA_EXCESS * bound[worst] or turn:
        what = f"moment of inertia {moments[worst]:.3g} kg m^2 about {'xyz'[worst]}"
        most = f"{mass:.4g} kg inside {edges} m have at most {bound[worst]:.3g}"
        fits = f"; turned by 90 degrees about {turn} it would fit" if turn else ""
        yield "inertia-implausible", (f"{what}, but {most}{fits}", _TURN_HINT if turn else None)
    elif 0 < largest < INERTIA_DEFICIT * full:
        box = f"a full box of {' x '.join(f'{x:.3g}' for x in own.size)} m has {full:.3g}"
        small = 1e-6 * full  # with shapes that are a thousandth as large
        smaller = INERTIA_DEFICIT * small <= largest and np.all(moments <= INERTIA_EXCESS * 1e-6 * bound)
        message = f"largest moment of inertia {largest:.3g} kg m^2, but {box}"
        if smaller:
            message += f"; if its shapes are in millimetres, {small:.3g}"
        yield "inertia-implausible", (message, _MILLIMETRES_HINT if smaller else None)


def _turn_that_fits(moments: np.ndarray, bound: np.ndarray) -> str:
    """The axis of a quarter turn that brings moments of inertia within their bounds, "" where there is none.

    Shapes are often rougher than the link, so that moments a little above the bounds are common. Where two of
    them in exchange are those of an ordinary part inside the shapes, the axes are turned.
    """
    if np.all(moments <= (1.0 + ROUNDING_TOLERANCE) * bound):
        return ""
    best = min(QUARTER_TURNS, key=lambda turn: float((moments[turn[1]] / bound).max()))
    return best[0] if np.all(moments[best[1]] <= HOLLOW_CUBE_SHARE * bound) else ""


def _volume_text(cubic_metres: float) -> str:
    """A volume as text, in cubic centimetres, litres or cubic metres."""
    if cubic_metres < 1e-4:
        return f"{1e6 * cubic_metres:.3g} cm^3"
    return f"{1e3 * cubic_metres:.3g} l" if cubic_metres < 1.0 else f"{cubic_metres:.3g} m^3"


def link_boxes(robot: RobotDescription) -> Iterator[tuple[str, InertialDescription, EquivalentBox]]:
    """(link name, inertial, equivalent box) of every link that has a mass and an inertia."""
    for link in robot.links:
        inertial = link.inertial
        if inertial is None or not any(inertial.inertia):
            continue
        box = equivalent_box(inertial.mass, inertial.matrix())
        if box is not None:
            yield link.name, inertial, box


def total_mass(robot: RobotDescription) -> float:
    """Sum of all links' masses [kg]."""
    return sum(link.inertial.mass for link in robot.links if link.inertial is not None)


# ==== All verdicts on a parsed description, in one call ===========================================


def check(
    robot: RobotDescription,
    report: Report,
    resolver: Resolver,
    base: str = "fixed",
    plausible: bool = False,
    meshes: bool = False,
    mimic: str | None = None,
    z_up: bool = False,
) -> None:
    """Checks a description; every finding goes to the report, beside those of the parser.

    ``base``, "fixed" or "floating", decides which massless parts make H singular; "either" judges a fixed
    base and notes what would be singular with a floating one. ``plausible``: look beyond what loading needs:
    masses beside shapes (of meshes with ``meshes``), zero outside limits. ``mimic``: "independent" warns of
    mimic joints, whose coupling is dropped; "couple" finds those that cannot be coupled. ``z_up``: shapes
    were turned by the up axes of their meshes.
    """
    if report.has("xacro-unexpanded"):
        return  # its names are templates: whatever followed would be noise
    if base == "floating" and (own := own_base(robot)) is not None:
        _tell_own_base(robot, own, report)
        robot = without_own_base(robot, own)
    if not robot.name.strip():
        report.add("robot-name-empty", "robot", robot.line, "has no name")
    check_inertias(robot, report)
    check_joints(robot, report)
    _check_materials(robot, report)
    if base == "floating":
        _check_base_name(robot, report)
    check_files(robot, resolver, report)
    if not robot.links:
        return
    tree = check_structure(robot, report)
    check_mimics(robot, report)
    check_loops(robot, report)
    check_frame_pairs(robot, report)
    check_mimic_option(robot, mimic, report)
    mesh_box: MeshBox | None = None
    if plausible:
        check_heads(robot, resolver, report, z_up)
        mesh_box = mesh_boxes(robot, resolver, report) if meshes else None
        check_zero(robot, report)
        check_capsules(robot, report)
    # Judging masses needs a tree, and numbers that could all be read.
    if tree is None or report.has_errors:
        return
    check_sums(robot, tree, report)
    if report.has_errors:
        return
    check_masses(robot, tree, base, report)
    if plausible:
        check_plausible(robot, tree, report, mesh_box)


def _tell_own_base(robot: RobotDescription, own: OwnBase, report: Report) -> None:
    names = [link.name for link in robot.links if link.name in own.links]
    seen = any(link.visuals or link.collisions for link in robot.links if link.name in own.links)
    what = f"link{'s' * (len(names) > 1)} {listed(map(repr, names), 4)}" + (" with shapes" if seen else "")
    dynamics = own.joint.dynamics
    damped = dynamics is not None and any((dynamics.damping, dynamics.friction, dynamics.armature))
    lost = "origin and dynamics" if damped else "origin"
    message = f"is the floating base; {what}, which it hangs on, and its {lost} are left out"
    report.add("base-own", f"joint {own.joint.name!r}", own.joint.line, message)


def _check_base_name(robot: RobotDescription, report: Report) -> None:
    for joint in robot.joints:
        if joint.name != FLOATING_BASE:
            continue
        where = f"joint {joint.name!r}"
        if joint.moves:
            message = f"moves (type={joint.type!r}), and base='floating' adds a joint of the same name"
            report.add("base-floats-twice", where, joint.line, message)
        else:
            name = fixed_base_name(robot)
            message = f"is fixed and is renamed to {name!r}: base='floating' adds a joint of its name"
            report.add("joint-renamed", where, joint.line, message)
        return


def fixed_base_name(robot: RobotDescription) -> str:
    """A free name for a fixed joint that has the floating base's name."""
    return free_name(f"{FLOATING_BASE}_fixed", {joint.name for joint in robot.joints})


def _check_materials(robot: RobotDescription, report: Report) -> None:
    table = robot.material_table()
    for link in robot.links:
        for visual in link.visuals:
            material = visual.material
            if material is not None and material.name not in table and material.name and not material.defined:
                where = f"link {link.name!r} visual"
                message = f"material {material.name!r} is not defined; the default colour is used"
                report.once("material-undefined", material.name, where, material.line, message)
