"""What becomes of a joint's <origin> if a reader goes wrong in a known way."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.causes.inertial_candidates import LENGTHS, negated, rotation
from robokit.parity.causes.inertial_causes import CLEAR, ROUGH, number
from robokit.parity.sides.side import SideJoint
from robokit.urdf.description import JointDescription

Wrong = tuple[str, str, Placement]
"""Code of the cause, what it says of the origin, and the placement that it makes."""


def origin_causes(joint: JointDescription) -> Iterator[Wrong]:
    """The known ways, the more usual first."""
    P, rpy = joint.origin.placement(), joint.origin.rpy
    R, p, line = P.rotation, P.position, joint.origin.line
    zero, one = np.zeros(3), np.eye(3)
    if joint.origin.rotated:
        it = f"the origin's rotation of line {line}"
        yield "origin-rotation-lost", f"{it} left out", Placement(one, p)
        yield "origin-rotation-twice", f"{it} applied twice", Placement(R @ R, p)
        yield "origin-rotation-inverted", f"{it} applied backwards", Placement(R.T, p)
        degrees = math.pi / 180.0
        if joint.origin.quat_xyzw is None:
            for text, S in (
                ("read as degrees", rotation(tuple(x * degrees for x in rpy))),
                ("in degrees, read as radians", rotation(tuple(x / degrees for x in rpy))),
            ):
                yield "origin-degrees", f"{it} {text}", Placement(S, p)
            for text, S in (
                ("read in the order x, y, z of moving axes", rotation(rpy, "xyz")),
                ("read as yaw, pitch, roll", rotation(rpy[::-1])),
                *negated(rpy),
            ):
                yield "origin-rotation-convention", f"{it} {text}", Placement(S, p)
        yield (
            "origin-position-turned",
            f"its position turned by its rotation (line {line})",
            Placement(R, R @ p),
        )
        back = f"its position turned back by its rotation (line {line})"
        yield "origin-position-turned", back, Placement(R, R.T @ p)
    if p.any():
        it = f"the origin's position of line {line}"
        yield "origin-position-lost", f"{it} left out", Placement(R, zero)
        yield "origin-position-twice", f"{it} applied twice", Placement(R, 2.0 * p)
        yield "origin-position-inverted", f"{it} negated", Placement(R, -p)
        for k in LENGTHS:
            yield "origin-units", f"{it} times {k:g}", Placement(R, k * p)
        for k, letter in enumerate("xyz"):
            mirrored = p.copy()
            mirrored[k] = -p[k]
            yield "origin-mirrored", f"{it} mirrored in {letter}", Placement(R, mirrored)
    if joint.origin.rotated and p.any():
        yield "origin-lost", f"the whole origin of line {line} left out", Placement()


def placement_text(
    joint: SideJoint, right: Placement, theirs: Placement, tolerance: float, size: float
) -> tuple[str, str, tuple[str, ...]] | None:
    """Cause, verdict and other causes of a joint that B places otherwise; None if it does not.

    Args:
        joint: of A.
        right, theirs: pose of the child's frame in the parent's, in A and in B.
        tolerance, size: of angles [rad]; of distances as a part of the size of the robot [m].
    """
    reach = max(tolerance * size, 10 * tolerance * float(np.abs(theirs.position).max()))
    if _near(right, theirs, 3 * tolerance, 3 * reach):
        return None
    if joint.written is not None:
        found: list[tuple[str, str]] = []
        for k in (1.0, 10.0):  # B's numbers may be rounded
            if k > 1.0 and (found or _near(theirs, right, CLEAR * k * tolerance, CLEAR * k * reach)):
                break
            found = [
                (cause, text)
                for cause, text, wrong in origin_causes(joint.written)
                if _near(wrong, theirs, 10 * k * tolerance, 10 * k * reach)
                and not _near(wrong, right, CLEAR * k * tolerance, k * reach)
            ]
        if found:
            also = tuple(dict.fromkeys(cause for cause, _ in found[1:] if cause != found[0][0]))
            return found[0][0], f"B has the joint with {found[0][1]}", also
    far = float(np.linalg.norm(theirs.position - right.position))
    turn = right.rotation.T @ theirs.rotation
    angle = math.acos(min(1.0, max(-1.0, (float(np.trace(turn)) - 1.0) / 2.0)))
    own = float(np.abs(right.position).max())
    rough = far <= max(ROUGH * own, 0.1 * ROUGH * size) and angle <= ROUGH
    parts = [f"{number(far * 1e3)} mm away"] if far > reach else []
    parts += [f"turned by {number(math.degrees(angle))} deg"] if angle > tolerance else []
    place = " and ".join(parts) or "elsewhere"
    if rough:
        return "rounded", f"B has the joint's origin rounded ({place})", ()
    if joint.written is not None:
        shifted = _zero(joint, right.inverse() @ theirs, tolerance, reach)
        if shifted is not None:
            return "zero-position", shifted, ()
    return "origin-differs", f"B has the joint {place}; no known cause fits", ()


def _near(a: Placement, b: Placement, tolerance: float, reach: float) -> bool:
    far = float(np.abs(a.position - b.position).max())
    return float(np.abs(a.rotation - b.rotation).max()) <= tolerance and far <= reach


def _zero(joint: SideJoint, off: Placement, tolerance: float, reach: float) -> str | None:
    """The same joint with another zero: the child is turned about, or shifted along, the axis."""
    assert joint.written is not None
    axis = np.array(joint.written.axis) / (math.hypot(*joint.written.axis) or 1.0)
    if joint.kind == "revolute" and float(np.abs(off.position).max()) <= 10 * reach:
        if float(np.abs(off.rotation @ axis - axis).max()) > 10 * tolerance:
            return None
        w = off.rotation
        sine = float(axis @ np.array([w[2, 1] - w[1, 2], w[0, 2] - w[2, 0], w[1, 0] - w[0, 1]])) / 2.0
        angle = math.atan2(sine, (float(np.trace(w)) - 1.0) / 2.0)
        return f"B's zero is A's {number(angle)} rad ({number(math.degrees(angle))} deg)"
    if joint.kind == "prismatic" and float(np.abs(off.rotation - np.eye(3)).max()) <= 10 * tolerance:
        shift = float(off.position @ axis)
        if float(np.abs(off.position - shift * axis).max()) <= 10 * reach:
            return f"B's zero is A's {number(shift)} m"
    return None
