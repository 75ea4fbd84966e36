"""What one link or joint says about the physics: its inertia, axis, limits, damping.

Values are never corrected. Tolerances are relative, wide enough for numbers printed with few digits.
"""

from __future__ import annotations

import math

import numpy as np

from robokit.urdf.description import InertialDescription, JointDescription, LinkDescription, RobotDescription
from robokit.urdf.findings import Report

INERTIA_TOLERANCE = 1e-3
"""Violation of an inertia's inequalities that rounding can explain, relative to its largest moment."""

ZERO_GYRATION = 1e-12
"""Inertia per mass [m^2] below which it counts as zero: that of a body of a micrometre."""

SURELY = 1e-9
"""Smallest minor, of an inertia scaled to 1, that no rounding can have made positive."""

AXIS_TOLERANCE = 1e-3
"""Deviation of an axis' length from 1 that rounding can explain."""


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
            report.once(
                "inertia-without-mass",
                "",
                where,
                inertial.line,
                "has a rotational inertia, but its mass is zero",
            )
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
    return min(a, minor, minor * c - a * yz * yz - b * xz * xz - 2.0 * xy * xz * yz) > SURELY


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
                message = f"{name} {value:g} is below zero: it feeds energy in"
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
