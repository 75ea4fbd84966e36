"""What a URDF file says, element by element.

The classes mirror the file: attributes keep URDF's names and defaults, order is the file's order, and
``line`` is the line of the element's start tag (0 where there is none). Nothing is corrected here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robokit.model.geometry import RGBA, Geometry, Placement, Rows
from robokit.model.parts import Calibration, Safety
from robokit.spatial.rotation import quat_wxyz_to_rotation
from robokit.spatial.scalars import sine_and_cosine

Triple = tuple[float, float, float]

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")  # URDF's joint types

OWN_TYPES = ("spherical", "cylindrical")
"""Types of joints that robokit reads beside URDF's, where <robot> has the attribute ``OWN_MARK``."""

OWN_MARK = "own_joint_types"
"""Attribute of <robot> in a text that only robokit is to read: the robot of a saved run or of a sweep."""

AXIS_TYPES = ("revolute", "continuous", "prismatic", "planar", "helical", "cylindrical", "universal")
"""Types that use the axis; the last three only in loop joints."""


class Origin(NamedTuple):
    """``<origin>``: pose of a frame in its parent's frame."""

    xyz: Triple = (0.0, 0.0, 0.0)  # position [m]
    rpy: Triple = (0.0, 0.0, 0.0)  # roll, pitch, yaw about the parent's fixed x, y, z in this order [rad]
    # URDF 1.2's alternative to rpy (x, y, z, w), or None
    quat_xyzw: tuple[float, float, float, float] | None = None
    line: int = 0  # line in the file

    @property
    def rotated(self) -> bool:
        """Whether the axes differ from the parent's."""
        return self.rpy != (0.0, 0.0, 0.0) or self.quat_xyzw is not None

    def rotation(self) -> np.ndarray:
        """Rotation from the frame into its parent, (3, 3): Rz(yaw) Ry(pitch) Rx(roll)."""
        return np.array(self.rotation_rows())

    def rotation_rows(self) -> Rows:
        """Rotation from the frame into its parent in plain floats: three rows of three."""
        if self.quat_xyzw is not None:
            n = math.hypot(*self.quat_xyzw)
            x, y, z, w = (c / n for c in self.quat_xyzw)
            return quat_wxyz_to_rotation((w, x, y, z)).rows
        if self.rpy == (0.0, 0.0, 0.0):
            return _UPRIGHT
        (r, p, y) = self.rpy
        (sr, cr), (sp, cp), (sy, cy) = map(sine_and_cosine, (r, p, y))
        return [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]

    def placement(self) -> Placement:
        """The pose as a Placement."""
        return Placement(self.rotation(), np.array(self.xyz))


_UPRIGHT: Rows = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class InertialDescription(NamedTuple):
    """``<inertial>``."""

    mass: float  # [kg]
    # ixx, ixy, ixz, iyy, iyz, izz about the centre of mass in the origin's axes [kg m^2]
    inertia: tuple[float, float, float, float, float, float]
    origin: Origin = Origin()  # centre of mass and the axes of the inertia, in the link's frame
    line: int = 0  # line in the file

    def matrix(self) -> np.ndarray:
        """Rotational inertia about the centre of mass in link axes, (3, 3) [kg m^2]."""
        return np.array(self.matrix_rows())

    def matrix_rows(self) -> Rows:
        """Rotational inertia about the centre of mass in link axes in plain floats, three rows [kg m^2]."""
        xx, xy, xz, yy, yz, zz = self.inertia
        I = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        if not self.origin.rotated:
            return I
        # R I R^T in plain floats: quicker than NumPy on 3 x 3, and silent where numbers of the file overflow.
        R = self.origin.rotation_rows()
        RI = [[a * p + b * q + c * r for p, q, r in I] for a, b, c in R]
        (xx, _, _), (xy, yy, _), (xz, yz, zz) = ([a * p + b * q + c * r for p, q, r in R] for a, b, c in RI)
        return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


class MaterialDescription(NamedTuple):
    """``<material>``: rgba in 0..1 or None, texture file name as written or None."""

    name: str
    rgba: RGBA | None = None
    texture: str | None = None
    line: int = 0

    @property
    def defined(self) -> bool:
        """Whether it says more than a name."""
        return self.rgba is not None or self.texture is not None


class ShapeDescription(NamedTuple):
    """``<visual>`` or ``<collision>``: a geometry at an origin in the link's frame."""

    geometry: Geometry
    origin: Origin = Origin()
    name: str | None = None
    material: MaterialDescription | None = None
    line: int = 0


class LinkDescription(NamedTuple):
    """``<link>``; inertial is None where the file has none."""

    name: str
    inertial: InertialDescription | None = None
    visuals: tuple[ShapeDescription, ...] = ()
    collisions: tuple[ShapeDescription, ...] = ()
    line: int = 0


UNLIMITED = 1e16
"""Limits from here on are none. Readers of URDF refuse a <limit> without effort and velocity, so it has to
name them; SDF writes this number, too."""


class LimitDescription(NamedTuple):
    """``<limit>``; None where the file does not say."""

    # lower, upper: [rad | m]
    lower: float | None = None
    upper: float | None = None
    effort: float | None = None  # [N m | N]
    velocity: float | None = None  # [rad/s | m/s]
    line: int = 0  # line in the file

    @property
    def range(self) -> tuple[float, float] | None:
        """Lower and upper limit; one that is left out is 0, as URDF says; None where both are left out."""
        if self.lower is None and self.upper is None:
            return None
        return _or_infinity(self.lower or 0.0), _or_infinity(self.upper or 0.0)

    @property
    def bounds(self) -> tuple[float, float]:
        """Effort and velocity, infinite where there is no limit."""
        effort, velocity = (math.inf if x is None else _or_infinity(x) for x in (self.effort, self.velocity))
        return effort, velocity


def _or_infinity(x: float) -> float:
    return math.copysign(math.inf, x) if abs(x) >= UNLIMITED else x


class DynamicsDescription(NamedTuple):
    """``<dynamics>``: damping [N m s/rad | N s/m], Coulomb friction [N m | N]."""

    damping: float = 0.0
    friction: float = 0.0
    line: int = 0
    # inertia of the motors' rotors as the joint feels it [kg m^2 | kg], an extension of URDF; that of the
    # file's transmissions is added
    armature: float = 0.0


class MimicDescription(NamedTuple):
    """``<mimic>``: position = multiplier * position of ``joint`` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0
    line: int = 0


class JointDescription(NamedTuple):
    """``<joint>``."""

    # name, type: as written; type is "" where it was missing
    name: str
    type: str
    # parent, child: link names, None where they were missing
    parent: str | None
    child: str | None
    # pose of the joint frame, which is the child's frame at zero, in the parent's frame
    origin: Origin = Origin()
    axis: Triple = (1.0, 0.0, 0.0)  # in the joint frame, as written (not normalised)
    # limit, dynamics, safety, calibration, mimic: None where the file has none
    limit: LimitDescription | None = None
    dynamics: DynamicsDescription | None = None
    safety: Safety | None = None
    calibration: Calibration | None = None
    mimic: MimicDescription | None = None
    # line, parent_line, child_line, axis_line: lines in the file
    line: int = 0
    parent_line: int = 0
    child_line: int = 0
    axis_line: int = 0

    @property
    def moves(self) -> bool:
        """Whether the joint has coordinates."""
        return self.type != "fixed"

    @property
    def has_axis(self) -> bool:
        """Whether the type uses the axis."""
        return self.type in AXIS_TYPES


class LoopDescription(NamedTuple):
    """``<loop_joint>``, an extension of URDF: a joint that closes a loop of the tree."""

    # name, type: as written; type is "" where it was missing
    name: str
    type: str
    # predecessor, successor: link names, None where they were missing
    predecessor: str | None
    successor: str | None
    # predecessor_origin, successor_origin: pose of the joint frame in either link
    predecessor_origin: Origin = Origin()
    successor_origin: Origin = Origin()
    axis: Triple = (1.0, 0.0, 0.0)  # in the joint frame, as written (not normalised)
    line: int = 0  # line in the file
    axis2: Triple | None = None  # of a universal joint on its successor, likewise; None where it was missing
    length: float | None = None  # of a distance joint [m], likewise
    pitch: float = 0.0  # of a helical joint [m/rad]

    @property
    def has_axis(self) -> bool:
        """Whether the type uses the axis."""
        return self.type in AXIS_TYPES


class RobotDescription(NamedTuple):
    """``<robot>``: links, joints, loops and top-level materials in the file's order, duplicates included.

    ``old`` is whether the file declares URDF 1.0, which has no capsules.
    """

    name: str
    links: tuple[LinkDescription, ...]
    joints: tuple[JointDescription, ...]
    materials: tuple[MaterialDescription, ...] = ()
    file: str = "<string>"
    line: int = 0
    loops: tuple[LoopDescription, ...] = ()
    old: bool = False

    def shapes(self) -> Iterator[tuple[str, ShapeDescription]]:
        """All visuals and collisions, with where they are: "link 'arm' visual"."""
        for link in self.links:
            yield from ((f"link {link.name!r} visual", shape) for shape in link.visuals)
            yield from ((f"link {link.name!r} collision", shape) for shape in link.collisions)

    def material(self, name: str) -> MaterialDescription | None:
        """The first definition of a material: top level first, then inside the visuals."""
        return self.material_table().get(name)

    def material_table(self) -> dict[str, MaterialDescription]:
        """All defined materials by name, the first definition of each."""
        inline = [v.material for link in self.links for v in link.visuals if v.material]
        table: dict[str, MaterialDescription] = {}
        for material in (*self.materials, *inline):
            if material.defined:
                table.setdefault(material.name, material)
        return table
