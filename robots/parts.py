"""Solids, links and joints of the robots in this folder, and their URDF text.

Every link is drawn with plain solids (box, sphere, cylinder) of one density: its inertia is the sum of its
visuals' inertias, scaled to its mass. Where two solids overlap, the common part counts twice; that keeps
the rule short enough to check by hand. Lengths [m], masses [kg], angles [rad].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, pi, sin

import numpy as np

Vec = Sequence[float]
ORIGIN = (0.0, 0.0, 0.0)

PALETTE = {
    "ivory": (0.94, 0.90, 0.83),
    "sand": (0.80, 0.73, 0.63),
    "charcoal": (0.17, 0.18, 0.21),
    "coral": (0.91, 0.39, 0.22),
    "teal": (0.10, 0.47, 0.51),
    "glow": (0.45, 0.90, 0.95),
    "steel": (0.60, 0.62, 0.65),
}


@dataclass(frozen=True)
class Solid:
    """A box (size x, y, z), sphere (radius) or cylinder along its z (radius, length), placed in its link."""

    kind: str
    size: tuple[float, ...]
    at: Vec = ORIGIN
    rpy: Vec = ORIGIN
    material: str = "ivory"

    @property
    def volume(self) -> float:
        """Volume [m^3]."""
        match self.kind, self.size:
            case "box", (x, y, z):
                return x * y * z
            case "sphere", (r,):
                return 4 / 3 * pi * r**3
            case "cylinder", (r, length):
                return pi * r**2 * length
        raise ValueError(f"unknown solid {self.kind} {self.size}")

    def unit_inertia(self) -> np.ndarray:
        """Inertia over mass about the centre, link axes, (3, 3) [m^2]."""
        match self.kind, self.size:
            case "box", (x, y, z):
                d = (y * y + z * z, x * x + z * z, x * x + y * y)
                own = np.diag(d) / 12
            case "sphere", (r,):
                own = np.eye(3) * 0.4 * r * r
            case _, (r, length):
                own = np.diag([3 * r * r + length**2, 3 * r * r + length**2, 6 * r * r]) / 12
        R = rotation(self.rpy)
        return R @ own @ R.T


def rotation(rpy: Vec) -> np.ndarray:
    """URDF's roll, pitch, yaw about fixed x, y, z axes as a matrix: Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, cr), (sp, cp), (sy, cy) = ((sin(a), cos(a)) for a in rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def box(size: Vec, at: Vec = ORIGIN, material: str = "ivory", rpy: Vec = ORIGIN) -> list[Solid]:
    """A box with full edge lengths `size`."""
    return [Solid("box", tuple(size), at, rpy, material)]


def sphere(r: float, at: Vec = ORIGIN, material: str = "ivory") -> list[Solid]:
    """A ball."""
    return [Solid("sphere", (r,), at, ORIGIN, material)]


def rod(r: float, p: Vec, q: Vec, material: str = "ivory") -> list[Solid]:
    """A cylinder from point p to point q."""
    d = [b - a for a, b in zip(p, q, strict=True)]
    across = hypot(d[0], d[1])
    rpy = (0.0, atan2(across, d[2]), atan2(d[1], d[0]) if across else 0.0)
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return [Solid("cylinder", (r, hypot(across, d[2])), middle, rpy, material)]


def capsule(r: float, p: Vec, q: Vec, material: str = "ivory") -> list[Solid]:
    """A rod with a ball on each end: plain URDF has no capsule."""
    return rod(r, p, q, material) + sphere(r, p, material) + sphere(r, q, material)


def slab(r: float, half: Vec, at: Vec = ORIGIN, material: str = "ivory") -> list[Solid]:
    """A rectangle swept by a ball of radius r: half edges `half`, of which one is zero."""
    flat = min(range(3), key=lambda k: half[k])
    a, b = (k for k in range(3) if k != flat)

    def corner(sa: int, sb: int) -> Vec:
        point = list(at)
        point[a] += sa * half[a]
        point[b] += sb * half[b]
        return point

    solids = box([2 * r if k == flat else 2 * half[k] for k in range(3)], at, material)
    for s in (-1, 1):
        solids += rod(r, corner(s, -1), corner(s, 1), material)
        solids += rod(r, corner(-1, s), corner(1, s), material)
        solids += sphere(r, corner(s, -1), material) + sphere(r, corner(s, 1), material)
    return solids


@dataclass
class Link:
    """A body drawn with `visuals`, touching with `collisions`; mass spread evenly over the visuals.

    `density` is relative to the other links of the same body segment and only counts in `share_mass`.
    """

    name: str
    mass: float
    visuals: list[Solid]
    collisions: list[Solid] = field(default_factory=list)
    density: float = 1.0

    @property
    def volume(self) -> float:
        """Sum of the visuals' volumes [m^3]."""
        return sum(s.volume for s in self.visuals)

    def inertial(self) -> tuple[np.ndarray, np.ndarray]:
        """Centre of mass in the link (3,) [m] and inertia about it in link axes (3, 3) [kg m^2]."""
        share = [self.mass * s.volume / self.volume for s in self.visuals]
        com = sum(m * np.array(s.at) for m, s in zip(share, self.visuals, strict=True)) / self.mass
        inertia = np.zeros((3, 3))
        for m, s in zip(share, self.visuals, strict=True):
            c = np.array(s.at) - com
            inertia += m * (s.unit_inertia() + (c @ c) * np.eye(3) - np.outer(c, c))
        return com, inertia


def share_mass(mass: float, links: Iterable[Link]) -> None:
    """Spread one body segment's mass over its links by volume and relative density."""
    links = list(links)
    total = sum(link.density * link.volume for link in links)
    for link in links:
        link.mass = mass * link.density * link.volume / total


@dataclass
class Joint:
    """A joint; `limits` (lower, upper) [rad], None for continuous and fixed joints."""

    name: str
    parent: str
    child: str
    at: Vec = ORIGIN
    axis: Vec | None = None
    limits: tuple[float, float] | None = None
    effort: float = 0.0
    velocity: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    rpy: Vec = ORIGIN

    @property
    def kind(self) -> str:
        """URDF's joint type."""
        if self.axis is None:
            return "fixed"
        return "continuous" if self.limits is None else "revolute"


@dataclass
class Robot:
    """A robot to be written; `extra` holds lines of extension elements."""

    name: str
    about: str
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)

    def urdf(self) -> str:
        """The whole file."""
        used = {s.material for link in self.links for s in link.visuals}
        lines = ['<?xml version="1.0" encoding="utf-8"?>', "<!--"]
        lines += ["  " + line if line else "" for line in self.about.strip().splitlines()]
        lines += ["", "  Written by generate.py in this folder: change it there.", "-->"]
        lines.append(f'<robot name="{self.name}">')
        for name, rgb in PALETTE.items():
            if name in used:
                lines.append(f'  <material name="{name}"><color rgba="{numbers(rgb)} 1"/></material>')
        for link in self.links:
            lines += ["", *_link_lines(link)]
        for joint in self.joints:
            lines += ["", *_joint_lines(joint)]
        if self.extra:
            lines += ["", *("  " + line for line in self.extra)]
        return "\n".join([*lines, "</robot>", ""])


def numbers(values: Iterable[float]) -> str:
    """Numbers for an attribute: 9 digits, rounding dust below 1e-12 gone."""
    return " ".join(f"{round(float(v), 12) + 0.0:.9g}" for v in values)


def origin(at: Vec, rpy: Vec) -> str:
    """An <origin>, or nothing where it is the identity."""
    text = f' xyz="{numbers(at)}"' if any(at) else ""
    text += f' rpy="{numbers(rpy)}"' if any(rpy) else ""
    return f"<origin{text}/>" if text else ""


def _shape(tag: str, s: Solid) -> str:
    match s.kind:
        case "box":
            geometry = f'<box size="{numbers(s.size)}"/>'
        case "sphere":
            geometry = f'<sphere radius="{numbers(s.size)}"/>'
        case _:
            geometry = f'<cylinder radius="{numbers(s.size[:1])}" length="{numbers(s.size[1:])}"/>'
    paint = f'<material name="{s.material}"/>' if tag == "visual" else ""
    return f"    <{tag}>{origin(s.at, s.rpy)}<geometry>{geometry}</geometry>{paint}</{tag}>"


def _link_lines(link: Link) -> list[str]:
    com, inertia = link.inertial()
    pairs = {"xx": (0, 0), "xy": (0, 1), "xz": (0, 2), "yy": (1, 1), "yz": (1, 2), "zz": (2, 2)}
    entries = " ".join(f'i{key}="{numbers([inertia[ij]])}"' for key, ij in pairs.items())
    return [
        f'  <link name="{link.name}">',
        "    <inertial>",
        f'      <origin xyz="{numbers(com)}"/>',
        f'      <mass value="{numbers([link.mass])}"/>',
        f"      <inertia {entries}/>",
        "    </inertial>",
        *(_shape("visual", s) for s in link.visuals),
        *(_shape("collision", s) for s in link.collisions),
        "  </link>",
    ]


def _joint_lines(joint: Joint) -> list[str]:
    lines = [
        f'  <joint name="{joint.name}" type="{joint.kind}">',
        f'    <parent link="{joint.parent}"/>',
        f'    <child link="{joint.child}"/>',
    ]
    if place := origin(joint.at, joint.rpy):
        lines.append(f"    {place}")
    if joint.axis is not None:
        bounds = ""
        if joint.limits is not None:
            bounds = f'lower="{numbers(joint.limits[:1])}" upper="{numbers(joint.limits[1:])}" '
        lines += [
            f'    <axis xyz="{numbers(joint.axis)}"/>',
            f'    <limit {bounds}effort="{numbers([joint.effort])}" velocity="{numbers([joint.velocity])}"/>',
            f'    <dynamics damping="{numbers([joint.damping])}" friction="{numbers([joint.friction])}"/>',
        ]
    return [*lines, "  </joint>"]
