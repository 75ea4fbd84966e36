"""From a description that is free of errors to a robot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import Diagnostic
from robokit.model.builder import ModelBuilder
from robokit.model.drafts import JointDraft, LinkDraft, unit_numbers
from robokit.model.geometry import Mesh, Placement, Rows, Shape
from robokit.model.parts import Calibration, Mimic, Safety
from robokit.model.robot import Robot
from robokit.urdf.checks.check import fixed_base_name
from robokit.urdf.description import (
    InertialDescription,
    JointDescription,
    LinkDescription,
    MaterialDescription,
    RobotDescription,
    ShapeDescription,
)
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.own_base import own_base, without_own_base

NO_INERTIAL = InertialDescription(0.0, (0.0,) * 6)


def build(
    description: RobotDescription,
    base: str = "fixed",
    resolver: Resolver | None = None,
    diagnostics: Sequence[Diagnostic] = (),
) -> Robot:
    """The robot of a description that :func:`check_urdf` finds free of errors.

    Args:
        description: what the file says.
        base: "fixed" or "floating". A massless root on which all hangs by one floating joint is a floating
            base of its own: with "floating" it and the joint are left out.
        resolver: finds meshes and textures; a fresh one without folders by default.
        diagnostics: carried along on the robot.

    Example:
        >>> from robokit.urdf import build, check_urdf
        >>> description, findings = check_urdf(rk.find_robot("arm"))
        >>> build(description).name
        'arm'
    """
    resolver = resolver or Resolver()
    if base == "floating" and (root := own_base(description)) is not None:
        description = without_own_base(description, root)
    materials = description.material_table()
    for material in materials.values():
        if material.texture:
            resolver(material.texture)
    builder = ModelBuilder(description.name.strip() or "robot", source=description.file)
    own = [link.inertial or NO_INERTIAL for link in description.links]
    # One array is cut into those of the links: NumPy takes as long to make one as to make a row of it.
    coms = _rows(inertial.origin.xyz for inertial in own)
    inertias = _matrices(inertial.matrix_rows() for inertial in own)
    for link, inertial, com, inertia in zip(description.links, own, coms, inertias, strict=True):
        for shape in (*link.visuals, *link.collisions):
            if isinstance(shape.geometry, Mesh):
                resolver(shape.geometry.filename)
            if shape.material is not None and shape.material.texture:
                resolver(shape.material.texture)
        shapes = partial(_shapes, link, resolver, materials)
        builder.add(LinkDraft(link.name, inertial.mass, com, inertia, make_shapes=shapes))
    # Several quadrupeds call the fixed joint under their trunk "floating_base".
    renamed = {FLOATING_BASE: fixed_base_name(description)} if base == "floating" else {}
    joints = description.joints
    rotations = _matrices(joint.origin.rotation_rows() for joint in joints)
    positions = _rows(joint.origin.xyz for joint in joints)
    axes = _rows(unit_numbers(joint.type, joint.axis) for joint in joints)
    for joint, R, p, axis in zip(joints, rotations, positions, axes, strict=True):
        builder.add(_joint(joint, Placement(R, p), axis, renamed))
    for loop in description.loops:
        assert loop.predecessor is not None and loop.successor is not None  # an error stopped us otherwise
        builder.loop_joint(
            loop.name,
            loop.type,
            loop.predecessor,
            loop.successor,
            loop.predecessor_origin.placement(),
            loop.successor_origin.placement(),
            loop.axis,
        )
    return builder.build(base=base, diagnostics=list(diagnostics))


def _rows(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """Rows of three numbers as an array, (n, 3)."""
    return np.fromiter(chain.from_iterable(rows), float).reshape(-1, 3)


def _matrices(matrices: Iterable[Rows]) -> np.ndarray:
    """Matrices in plain floats as an array, (n, 3, 3)."""
    return _rows(chain.from_iterable(matrices)).reshape(-1, 3, 3)


def _shapes(
    link: LinkDescription, resolver: Resolver, materials: Mapping[str, MaterialDescription]
) -> tuple[tuple[Shape, ...], tuple[Shape, ...]]:
    """Visuals and collisions of a link, made at their first use: all their files have been looked up."""

    def shape(s: ShapeDescription) -> Shape:
        geometry, texture, written, rgba, material = s.geometry, None, None, None, s.material
        if isinstance(geometry, Mesh):
            geometry = Mesh(geometry.filename, geometry.scale, resolver(geometry.filename).path)
        if material is not None:
            material = material if material.defined else materials.get(material.name, material)
            rgba, written = material.rgba, material.texture
            texture = resolver(written).file if written else None
        return Shape(geometry, s.origin.placement(), rgba, texture, s.name, written)

    return tuple(map(shape, link.visuals)), tuple(map(shape, link.collisions))


def _joint(
    joint: JointDescription, placement: Placement, axis: np.ndarray, renamed: Mapping[str, str]
) -> JointDraft:
    assert joint.parent is not None and joint.child is not None  # an error stopped us otherwise
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    s, c = joint.safety, joint.calibration
    ranged = limit.range if limit and joint.type in ("revolute", "prismatic") else None
    lower, upper = ranged or (-math.inf, math.inf)
    return JointDraft(
        renamed.get(joint.name, joint.name),
        joint.type,
        joint.parent,
        joint.child,
        placement,
        axis,
        0.0,
        lower,
        upper,
        math.inf if limit is None or limit.effort is None else limit.effort,
        math.inf if limit is None or limit.velocity is None else limit.velocity,
        dynamics.damping if dynamics else 0.0,
        dynamics.friction if dynamics else 0.0,
        Mimic(renamed.get(mimic.joint, mimic.joint), mimic.multiplier, mimic.offset) if mimic else None,
        Safety(s.soft_lower_limit, s.soft_upper_limit, s.k_position, s.k_velocity) if s else None,
        Calibration(c.rising, c.falling, c.reference_position) if c else None,
        dynamics.armature if dynamics else 0.0,
    )
