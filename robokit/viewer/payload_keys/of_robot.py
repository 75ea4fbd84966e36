"""The robot: header, tree, links and joints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RobotData:
    """The robot in the page's header.

    Attributes:
        name: the description's name.
        mass: of the moving bodies [kg].
        total_mass: of all links, those of a fixed root too [kg].
        dof: degrees of freedom, nv.
        base: "fixed" or "floating".
        bodies: number of moving bodies, N.
        joints: number of movable joints, a floating base not counted.
        size: the length that overlays are scaled by [m].
    """

    name: str
    mass: float
    total_mass: float
    dof: int
    base: str
    bodies: int
    joints: int
    size: float


@dataclass(frozen=True)
class BodiesData:
    """The tree.

    Attributes:
        name: of bodies 0..N.
        parent: lambda of bodies 0..N, -1 for body 0.
        inertial: of bodies 0..N in body coordinates: m, m c (3), I about the body's origin (xx, xy, yy, xz,
            yz, zz), fixed joints folded in [kg, kg m, kg m^2].
    """

    name: list[str]
    parent: list[int]
    inertial: list[list[float]]


@dataclass(frozen=True)
class LinkData:
    """A link: its frame, and its own mass, which its body carries.

    Attributes:
        name: of the link.
        body: number of the body that carries it.
        pose: of the link's frame in the body's frame.
        mass: [kg].
        moments: principal moments of inertia, ascending [kg m^2]; None without mass.
    """

    name: str
    body: int
    pose: list[float]
    mass: float
    moments: list[float] | None


@dataclass(frozen=True)
class JointData:
    """A joint: a row of the joint panel, and what forward kinematics needs.

    Attributes:
        name: of the joint.
        kind: row of the joint table.
        body: the body that it moves.
        q: first and end of its coordinates in q; both the same for a coupled mimic joint.
        v: first and end of its coordinates in v.
        axis: unit axis in joint coordinates, (3,).
        pitch: of a helical joint [m/rad].
        lower: position limit [rad | m], None where there is none.
        upper: position limit [rad | m], None where there is none.
        velocity: limit of its velocity [rad/s | m/s], None where there is none.
        effort: limit of its force [N m | N], None where there is none.
        follows: for a coupled mimic joint the index in q that it follows and the multiplier, else None.
        mimic: name of the joint that it mimics, or None.
        parent_link: name of the link that it hangs on.
        child_link: name of the link that it moves.
        placement: pose of its body in the parent body at the neutral configuration.
        rotor: inertia of its rotors as the joint feels it, by degree of freedom, on the diagonal of H
            [kg m^2 | kg]; empty for a joint without.
    """

    name: str
    kind: str
    body: int
    q: tuple[int, int]
    v: tuple[int, int]
    axis: list[float]
    pitch: float
    lower: float | None
    upper: float | None
    velocity: float | None
    effort: float | None
    follows: tuple[int, float] | None
    mimic: str | None
    parent_link: str
    child_link: str
    placement: list[float]
    rotor: list[float]
