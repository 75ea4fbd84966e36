"""Mistakes over <inertial>."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from mutations.mutation import (
    Mutant,
    Mutation,
    differs,
    full,
    in_link_axes,
    massive,
    shuffled,
    six,
    with_link,
)
from robokit.model.geometry import Box, Cylinder, Sphere
from robokit.urdf.description import InertialDescription, Origin, RobotDescription

Wrong = Callable[[InertialDescription], InertialDescription | None]

TURN = (0.3, -0.5, 0.7)


def _each(wrong: Wrong) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        for link in shuffled(massive(robot), rng):
            changed = wrong(link.inertial)
            if changed is not None and differs(link.inertial, changed):
                yield Mutant(link.name, with_link(robot, link.name, inertial=changed))

    return make


def _turned(wrong: Wrong) -> Callable[..., Iterator[Mutant]]:
    """The same where the inertial has a rotation; a robot without is written with one first."""

    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        written = [link for link in massive(robot) if link.inertial.origin.rotated]
        for link in shuffled(written, rng):
            changed = wrong(link.inertial)
            if changed is not None and differs(link.inertial, changed):
                yield Mutant(link.name, with_link(robot, link.name, inertial=changed))
        for link in shuffled(massive(robot), rng):
            own = link.inertial
            origin = Origin(own.origin.xyz, TURN, None, own.origin.line)
            R = origin.rotation()
            own = own._replace(origin=origin, inertia=six(R.T @ own.matrix() @ R))
            changed = wrong(own)
            if changed is not None and differs(own, changed):
                first = with_link(robot, link.name, inertial=own)
                yield Mutant(link.name, with_link(robot, link.name, inertial=changed), first)

    return make


def _origin(own: InertialDescription, xyz: object = None, rpy: object = None) -> InertialDescription:
    o = own.origin
    xyz = o.xyz if xyz is None else tuple(map(float, xyz))  # type: ignore[call-overload]
    if rpy is None:
        return own._replace(origin=o._replace(xyz=xyz))
    return own._replace(origin=Origin(xyz, tuple(rpy), None, o.line))  # type: ignore[arg-type]


def _rotation_lost(own):
    return _origin(own, rpy=(0.0, 0.0, 0.0))


def _rotation_twice(own):
    R = own.origin.rotation()
    return own._replace(inertia=six(R @ full(own.inertia) @ R.T))


def _rotation_inverted(own):
    R = own.origin.rotation()
    return in_link_axes(own, R.T @ full(own.inertia) @ R)


def _one_sided(own):
    M = own.origin.rotation() @ full(own.inertia)
    return in_link_axes(own, (M + M.T) / 2.0)


def _in_degrees(own):
    return None if own.origin.quat_xyzw else _origin(own, rpy=[math.radians(x) for x in own.origin.rpy])


def _turned_com(own):
    return _origin(own, own.origin.rotation() @ np.array(own.origin.xyz))


def _com_lost(own):
    return _origin(own, (0.0, 0.0, 0.0))


def _com_twice(own):
    return _origin(own, 2.0 * np.array(own.origin.xyz))


def _com_negated(own):
    return _origin(own, -np.array(own.origin.xyz))


def _com_in_mm(own):
    return _origin(own, 1000.0 * np.array(own.origin.xyz))


def _pose_lost(own):
    if not any(own.origin.xyz):
        return None
    return own._replace(origin=Origin(line=own.origin.line))


def _about_origin(own):
    c, m = np.array(own.origin.xyz), own.mass
    return in_link_axes(own, own.matrix() + m * (c @ c * np.eye(3) - np.outer(c, c)))


def _products_negated(own):
    xx, xy, xz, yy, yz, zz = own.inertia
    return own._replace(inertia=(xx, -xy, -xz, yy, -yz, zz))


def _products_lost(own):
    xx, _, _, yy, _, zz = own.inertia
    return own._replace(inertia=(xx, 0.0, 0.0, yy, 0.0, zz))


def _other_order(own):
    xx, xy, xz, yy, yz, zz = own.inertia
    # Six numbers in MJCF's order, read in URDF's.
    return own._replace(inertia=(xx, yy, zz, xy, xz, yz))


def _axes_lost(own):
    moments = np.linalg.eigvalsh(own.matrix())
    return in_link_axes(own, np.diag(moments))


def _axes_inverted(own):
    moments, V = np.linalg.eigh(own.matrix())
    if np.linalg.det(V) < 0:
        V = -V
    return in_link_axes(own, V.T @ np.diag(moments) @ V)


def _mirrored(own):
    S = np.diag([1.0, -1.0, 1.0])
    return in_link_axes(own, S @ own.matrix() @ S, S @ np.array(own.origin.xyz))


def _point(own):
    return own._replace(inertia=(0.0,) * 6)


def _balanced(own):
    return in_link_axes(own, np.trace(own.matrix()) / 3.0 * np.eye(3))


def _ball(own):
    r = (3.0 * own.mass / (4.0 * math.pi * 1000.0)) ** (1.0 / 3.0)
    return in_link_axes(own, 0.4 * own.mass * r * r * np.eye(3))


def _default(own):
    return in_link_axes(own, np.eye(3), mass=1.0)


def _pounds(own):
    return own._replace(mass=own.mass * 0.45359237)


def _heavier(own):
    return own._replace(mass=1.1 * own.mass, inertia=tuple(1.1 * x for x in own.inertia))


def _mm2(own):
    return own._replace(inertia=tuple(1e6 * x for x in own.inertia))


def _clamped(own):
    moments, V = np.linalg.eigh(own.matrix())
    bound = 2.0 * moments[0] if moments[0] > 0 else 0.5 * moments[2]
    if moments[2] <= bound:
        return None
    return in_link_axes(own, V @ np.diag(np.maximum(moments, bound)) @ V.T)


def _least_mass(own):
    for bound in (0.01, 0.1, 1.0, 5.0, 20.0, 100.0):
        if own.mass < bound:
            return own._replace(mass=bound)
    return None


def _lost(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    for link in shuffled(massive(robot), rng):
        yield Mutant(link.name, with_link(robot, link.name, inertial=None))


def _total(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    if len(massive(robot)) < 3:
        return
    k = float(rng.uniform(0.5, 0.9))
    b = robot
    for link in robot.links:
        if link.inertial is not None:
            own = link.inertial
            scaled = own._replace(mass=k * own.mass, inertia=tuple(k * x for x in own.inertia))
            b = with_link(b, link.name, inertial=scaled)
    yield Mutant("", b)


def _of_one_shape(link, density: float | None) -> InertialDescription | None:
    """The inertial of a link's only collision shape."""
    if len(link.collisions) != 1:
        return None
    shape = link.collisions[0]
    g = shape.geometry
    if isinstance(g, Box):
        volume = float(np.prod(g.size))
        s = np.array(g.size) ** 2
        unit = np.diag([s[1] + s[2], s[0] + s[2], s[0] + s[1]]) / 12.0
    elif isinstance(g, Sphere):
        volume, unit = 4.0 / 3.0 * math.pi * g.radius**3, 0.4 * g.radius**2 * np.eye(3)
    elif isinstance(g, Cylinder):
        volume = math.pi * g.radius**2 * g.length
        side = (3.0 * g.radius**2 + g.length**2) / 12.0
        unit = np.diag([side, side, g.radius**2 / 2.0])
    else:
        return None
    if volume <= 0.0:
        return None
    own = link.inertial
    mass = own.mass if density is None else density * volume
    R = shape.origin.rotation()
    return in_link_axes(own, mass * R @ unit @ R.T, shape.origin.xyz, mass)


def _shape(density: float | None) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        for link in shuffled(massive(robot), rng):
            changed = _of_one_shape(link, density)
            if changed is not None and differs(link.inertial, changed):
                yield Mutant(link.name, with_link(robot, link.name, inertial=changed))

    return make


_TURNED = {
    "inertial-rotation-lost": _rotation_lost,
    "inertial-rotation-twice": _rotation_twice,
    "inertial-rotation-inverted": _rotation_inverted,
    "inertial-rotation-one-sided": _one_sided,
    "inertial-rotation-convention": _in_degrees,
    "inertial-origin-turned": _turned_com,
    "inertial-pose-lost": _pose_lost,
}

_EACH = {
    "inertial-origin-lost": _com_lost,
    "inertial-origin-twice": _com_twice,
    "inertial-origin-inverted": _com_negated,
    "inertial-origin-units": _com_in_mm,
    "inertia-about-link-origin": _about_origin,
    "products-sign": _products_negated,
    "products-lost": _products_lost,
    "inertia-order": _other_order,
    "principal-axes-lost": _axes_lost,
    "principal-axes-inverted": _axes_inverted,
    "inertial-mirrored": _mirrored,
    "inertia-lost": _point,
    "inertia-balanced": _balanced,
    "inertia-ball": _ball,
    "inertial-default": _default,
    "mass-scaled": _pounds,
    "inertia-scaled": _mm2,
    "inertia-clamped": _clamped,
    "mass-clamped": _least_mass,
}

INERTIALS = [
    *(Mutation(cause, _turned(wrong), kind="inertia") for cause, wrong in _TURNED.items()),
    *(Mutation(cause, _each(wrong), kind="inertia") for cause, wrong in _EACH.items()),
    Mutation("mass-scaled", _each(_heavier), kind="inertia"),
    Mutation("inertial-lost", _lost, kind="inertia"),
    Mutation("mass-density", _shape(1000.0), kind="inertia"),
    Mutation("inertia-from-shapes", _shape(None), kind="inertia"),
    Mutation("total-mass", _total, kind="inertia"),
]
