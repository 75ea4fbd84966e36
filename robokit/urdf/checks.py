"""What is wrong with a description: all checks, and masses that do not fit the shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import listed
from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Mesh, Sphere
from robokit.model.inertial_parameters import LARGEST_JUDGED, EquivalentBox, equivalent_box
from robokit.urdf.description import InertialDescription, LinkDescription, Origin, RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.physics import ZERO_GYRATION, check_inertias, check_joints, check_masses, check_sums
from robokit.urdf.rewrites import OwnBase, own_base, without_own_base
from robokit.urdf.structure import (
    HERE,
    LinkTree,
    MeshBox,
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
)

# ==== masses and shapes ===========================================================================
# Masses and inertias compared with the links' shapes and with each other: notes on what no real body has.
#
# Sections: extents of shapes (bounding boxes and volumes); masses and inertias beside them.


# ---- extents of shapes ---------------------------------------------------------------------------

LARGEST_LENGTH = 1e50
"""Longer lengths [m] are not judged: their powers overflow."""


@dataclass(frozen=True)
class Extent:
    """The room that shapes take, in one frame.

    Attributes:
        low, high: corners of the bounding box, (3,) [m].
        most: volume that the shapes cannot exceed [m^3].
        least: volume that they have at least, that of the largest; 0 where only boxes are known [m^3].
        reach: squared radius of a circle that holds their outline seen along each axis, (3,) [m^2]. No mass
            inside has a larger moment about its centre of mass than the mass times that: the mean square
            distance from the mean is at most that from any other point, and so from the circle's centre.
    """

    low: np.ndarray
    high: np.ndarray
    most: float
    least: float
    reach: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """Edge lengths of the bounding box, (3,) [m]."""
        return self.high - self.low


def link_extent(link: LinkDescription, pose: Pose = HERE, mesh_box: MeshBox | None = None) -> Extent | None:
    """The room of all shapes of a link, or None where it has none or one whose size is not known.

    Args:
        link: visuals and collisions count alike; of the volumes the larger of the two sums is taken.
        pose: of the link in the frame of the result.
        mesh_box: gives the boxes of meshes; without it a mesh makes the room unknown.
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
            volume = _shape_volume(shape.geometry, local)
            sums[kind] += volume
            if not isinstance(shape.geometry, Mesh):
                largest = max(largest, volume)
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


@dataclass(frozen=True)
class RigidBody:
    """The rigid body that a link belongs to.

    Attributes:
        links: its links.
        poses: link name -> its pose in the frame of the first.
    """

    links: list[LinkDescription]
    poses: dict[str, Pose]

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


def _shape_volume(geometry: Geometry, local: tuple[np.ndarray, np.ndarray]) -> float:
    """Volume of a shape [m^3]; of a mesh that of the box round it."""
    if isinstance(geometry, (Box, Mesh)):
        return float(np.prod(local[1] - local[0]))
    radius = abs(geometry.radius)
    ball = 4.0 / 3.0 * math.pi * radius**3
    if isinstance(geometry, Sphere):
        return ball
    return math.pi * radius**2 * abs(geometry.length) + (ball if isinstance(geometry, Capsule) else 0.0)


# ---- masses and inertias beside shapes -----------------------------------------------------------
# A link is judged where the size of all its shapes is known. What looks odd about the link alone is judged
# again with all links that are welded to it, because masses are often given to one of them and shapes to
# another; only what is odd both times is reported.

LARGEST_DENSITY = 22_590.0
"""Density of osmium [kg/m^3]: no element is denser."""

ROUNDING_TOLERANCE = 1e-2
"""Relative error of numbers that a file gives with two figures, and room for alloys beside pure osmium."""

SMALLEST_DENSITY = 1.2
"""Density of air [kg/m^3]: a shape that weighs less would float."""

COM_TOLERANCE = 0.25
"""Accepted distance of the centre of mass from the bounding box, relative to the box's largest edge."""

INERTIA_EXCESS = 5.0
"""Largest accepted moment of inertia, relative to the largest that the mass can have inside the shapes."""

QUARTER_TURNS = (("x", [0, 2, 1]), ("y", [2, 1, 0]), ("z", [1, 0, 2]))
"""Axis of a quarter turn, and the moments of inertia about x, y, z after it."""

HOLLOW_CUBE_SHARE = 5.0 / 9.0
"""Moment of inertia of a cube whose mass lies in its walls, 5/18 m s^2, relative to the largest that a mass
can have inside the cube, 1/2 m s^2: hardly any part has more."""

INERTIA_DEFICIT = 1e-3
"""Smallest accepted moment of inertia, relative to the full box: that of a part of 1/30 of its size."""


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
    for link in robot.links:
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for shape in shapes:
                if isinstance(shape.geometry, Capsule):
                    message = "<capsule>: URDF 1.1, and urdfdom leaves it out of a file of version 1.0"
                    hint = 'write version="1.1" at <robot>'
                    where = f"link {link.name!r} {kind}"
                    report.once("version-too-low", "capsule", where, shape.line, message, hint)


def check_plausible(
    robot: RobotDescription, tree: LinkTree, report: Report, mesh_box: MeshBox | None = None
) -> None:
    """Densities, centres of mass and inertias that the shapes of a link, or no material at all, explain.

    Args:
        robot: a description without errors.
        tree: its links.
        report: gets the notes.
        mesh_box: gives the boxes of meshes; without it links with meshes are not judged by their shapes.
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
        dense = max(map(abs, inertial.inertia)) > ZERO_GYRATION * inertial.mass and _too_dense(inertial)
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
            told["mass-too-dense"] = _dense_message(inertial), None
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


def _too_dense(inertial: InertialDescription) -> bool:
    return too_dense(inertial.mass, _mean_moment(inertial))


def _mean_moment_of(body: RigidBody) -> float:
    """Mean moment of inertia of all links of a body about their common centre of mass [kg m^2]."""
    weighed = [(link.inertial, body.poses[link.name]) for link in body.links if link.inertial is not None]
    masses = np.array([max(inertial.mass, 0.0) for inertial, _ in weighed])
    coms = np.array([R @ np.array(inertial.origin.xyz) + p for inertial, (R, p) in weighed])
    apart = ((coms - masses @ coms / masses.sum()) ** 2).sum(axis=1)
    return sum(_mean_moment(inertial) for inertial, _ in weighed) + 2.0 / 3.0 * float(masses @ apart)


def _dense_message(inertial: InertialDescription) -> str:
    least = least_mean_moment(inertial.mass)
    return (
        f"mass {inertial.mass:.4g} kg with a mean moment of inertia of {_mean_moment(inertial):.3g} kg m^2: "
        f"of the densest material, a ball of osmium (22,590 kg/m^3), it has at least {least:.2g}"
    )


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
        given, full = np.diag(I), inertial.mass * np.asarray(_square_gyrations(geometry))
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


_TURN_HINT = "exchange the moments of the two axes, or turn <inertial><origin rpy>"


def _near(given: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.all(np.abs(given - expected) <= ROUNDING_TOLERANCE * expected))


def _square_gyrations(geometry: Geometry) -> np.ndarray:
    """Moments of inertia per mass of an evenly filled shape about its axes, (3,) [m^2]."""
    if isinstance(geometry, Box):
        squares = np.array(geometry.size) ** 2
        return (squares.sum() - squares) / 12.0
    assert not isinstance(geometry, Mesh)
    r = geometry.radius
    if isinstance(geometry, Sphere):
        return np.full(3, 0.4 * r * r)
    L = geometry.length
    if not isinstance(geometry, Capsule):
        return np.array([(3.0 * r * r + L * L) / 12.0] * 2 + [0.5 * r * r])
    # A cylinder and two half balls, whose centres of mass lie 3/8 r beyond its ends.
    tube, ball = math.pi * r * r * L, 4.0 / 3.0 * math.pi * r**3
    across = tube * (3.0 * r * r + L * L) / 12.0 + ball * (0.4 * r * r + 0.375 * r * L + 0.25 * L * L)
    along = tube * 0.5 * r * r + ball * 0.4 * r * r
    return np.array([across, across, along]) / (tube + ball)


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

    Args:
        inertial: the link's.
        room: where its mass may be.
        own: the link's own shapes, which say how small an inertia is odd.
        mass: of all that is in the room [kg].
        pose: of the link in the frame of the room.
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
        yield "inertia-implausible", (f"largest moment of inertia {largest:.3g} kg m^2, but {box}", None)


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


# ==== all checks ==================================================================================
# All verdicts on a parsed description, in one call.


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
    """Checks a description; every finding goes to the report.

    Args:
        robot: the description.
        report: the findings so far, those of the parser, and those to come.
        resolver: finds meshes and textures.
        base: "fixed" or "floating": decides which massless parts make H singular. "either" judges a
            fixed base and notes what would be singular with a floating one.
        plausible: whether to look beyond what loading needs: masses beside shapes, zero outside limits.
        meshes: whether meshes are read for that, for their size.
        mimic: "independent" warns of mimic joints, whose coupling is dropped; "couple" finds those that
            cannot be coupled.
        z_up: whether shapes were turned by the up axes of their meshes.
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
    taken = {joint.name for joint in robot.joints}
    name = f"{FLOATING_BASE}_fixed"
    while name in taken:
        name += "_"
    return name


def _check_materials(robot: RobotDescription, report: Report) -> None:
    table = robot.material_table()
    for link in robot.links:
        for visual in link.visuals:
            material = visual.material
            if material is not None and material.name not in table and material.name and not material.defined:
                where = f"link {link.name!r} visual"
                message = f"material {material.name!r} is not defined; the default colour is used"
                report.once("material-undefined", material.name, where, material.line, message)
