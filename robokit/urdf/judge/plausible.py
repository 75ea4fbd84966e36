"""Compares masses and inertias with the shapes of their links: notes on what no real body has.

A link is judged where the size of all its shapes is known. What looks odd about the link alone is judged
again with all links that are welded to it, because masses are often given to one of them and shapes to
another; only what is odd both times is reported.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robokit.model.inertia_box import LARGEST, EquivalentBox, equivalent_box
from robokit.urdf.description import InertialDescription, LinkDescription, RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.judge.extent import Extent, MeshBox, Pose, Welded, link_extent, welded_bodies
from robokit.urdf.judge.physics import ZERO_GYRATION
from robokit.urdf.judge.structure import LinkTree

DENSEST = 23_000.0
"""No element is denser than osmium, 22,590 kg/m^3."""

LIGHTEST = 1.2
"""Density of air [kg/m^3]: a shape that weighs less would float."""

OUTSIDE = 0.25
"""Accepted distance of the centre of mass from the bounding box, relative to the box's largest edge."""

INERTIA_EXCESS = 5.0
"""Largest accepted moment of inertia, relative to the largest that the mass can have inside the shapes."""

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
    shown = ", ".join(text for _, text in beyond[:4])
    shown += f" and {len(beyond) - 4} more" if len(beyond) > 4 else ""
    first = beyond[0][0]
    assert first.limit is not None
    where = f"joint {first.name!r} limit" if len(beyond) == 1 else "robot"
    message = f"position zero is outside the limits of joint{'s' * (len(beyond) > 1)} {shown}"
    report.add("limit-excludes-zero", where, first.limit.line, message)


def check_plausible(
    robot: RobotDescription, tree: LinkTree, report: Report, mesh_box: MeshBox | None = None
) -> None:
    """Densities, centres of mass and inertias that the shapes of a link do not explain.

    Args:
        robot: a description without errors.
        tree: its links.
        report: gets the notes.
        mesh_box: gives the boxes of meshes; without it links with meshes are not judged.
    """
    bodies: dict[str, Welded] | None = None
    rooms: dict[int, tuple[Extent | None, float]] = {}
    for link in robot.links:
        inertial = link.inertial
        if inertial is None or not 0 < inertial.mass < LARGEST:
            continue
        if not max(map(abs, (*inertial.inertia, *inertial.origin.xyz))) < LARGEST:
            continue
        own = link_extent(link, mesh_box=mesh_box)
        odd = {} if own is None else dict(_judge(inertial, own, own, inertial.mass))
        if own is None or not odd:
            continue
        bodies = bodies or welded_bodies(robot, tree)
        body = bodies[link.name]
        if id(body) not in rooms:  # once a body: thousands of links may be welded to one
            rooms[id(body)] = body.extent(mesh_box), body.mass
        for code, message in _confirmed(link, odd, own, body, *rooms[id(body)]).items():
            report.add(code, f"link {link.name!r} inertial", inertial.line, message)


def _confirmed(
    link: LinkDescription, odd: dict[str, str], own: Extent, body: Welded, room: Extent | None, mass: float
) -> dict[str, str]:
    """Those of a link's oddities that its whole rigid body, of this extent and mass, has too."""
    if len(body.links) == 1:
        return odd
    if room is None:
        return {}
    assert link.inertial is not None  # it has oddities
    whole = dict(_judge(link.inertial, room, own, mass, body.poses[link.name]))
    return {code: message for code, message in odd.items() if code in whole}


def _judge(
    inertial: InertialDescription, room: Extent, own: Extent, mass: float, pose: Pose | None = None
) -> Iterator[tuple[str, str]]:
    """(code, message) of what an extent does not explain.

    Args:
        inertial: the link's.
        room: where its mass may be.
        own: the link's own shapes, which say how small an inertia is odd.
        mass: of all that is in the room [kg].
        pose: of the link in the frame of the room; none where they are the same.
    """
    R, p = pose or (np.eye(3), np.zeros(3))
    com = R @ np.array(inertial.origin.xyz) + p
    edges = " x ".join(f"{x:.3g}" for x in room.size)
    if room.most > 0 and mass > DENSEST * room.most:
        density = f"{mass / room.most:.3g} kg/m^3, more than osmium has (22,590)"
        yield "density-implausible", f"mass {mass:.4g} kg in shapes of {_volume(room.most)}: {density}"
    elif room.least > 0 and mass < LIGHTEST * room.least:
        density = f"{mass / room.least:.3g} kg/m^3, less than air has (1.2)"
        yield "density-implausible", f"mass {mass:.4g} kg in a shape of {_volume(room.least)}: {density}"

    outside = np.maximum(0.0, np.maximum(room.low - com, com - room.high))
    if np.linalg.norm(outside) > OUTSIDE * room.size.max():
        where = " ".join(f"{x:.3g}" for x in inertial.origin.xyz)
        distance = f"{np.linalg.norm(outside):.3g} m outside the box of {edges} m round its shapes"
        yield "com-outside", f"centre of mass ({where}) m lies {distance}"
        return  # an inertia about a wrong point says nothing more

    I = R @ inertial.matrix() @ R.T
    largest = float(np.linalg.eigvalsh(I)[-1]) if np.all(np.isfinite(I)) else 0.0
    if largest <= ZERO_GYRATION * inertial.mass:
        return  # a warning of its own
    # What lies within an edge of length s has a mean square distance of at most (s/2)^2 from its mean.
    bound = mass * ((room.size**2).sum() - room.size**2) / 4.0
    slack = 1e-6 * float(bound.max())
    worst = int(np.argmax(np.diag(I) / (bound + slack + 1e-300)))
    full = inertial.mass * float((own.size**2).sum() - own.size.min() ** 2) / 12.0
    if I[worst, worst] > INERTIA_EXCESS * (bound[worst] + slack) + 1e-300:
        most = f"{mass:.4g} kg inside {edges} m have at most {bound[worst]:.3g}"
        yield "inertia-implausible", f"moment of inertia {I[worst, worst]:.3g} kg m^2, but {most}"
    elif 0 < largest < INERTIA_DEFICIT * full:
        box = f"a full box of {' x '.join(f'{x:.3g}' for x in own.size)} m has {full:.3g}"
        yield "inertia-implausible", f"largest moment of inertia {largest:.3g} kg m^2, but {box}"


def _volume(cubic_metres: float) -> str:
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
