"""H, C and gravity of both descriptions at random states: the one number that a controller would notice.

Every body is moved by products of exponentials in A's world, so that no frame of a link matters:

    H = sum m Jc^T Jc + Jw^T I Jw,   C = sum m Jc^T a + Jw^T (I alpha + w x I w),   gravity = -sum m Jc^T g

Source: Lynch and Park, Modern Robotics, sections 4.1 and 8.1. Differs: bodies by their centres of mass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from robokit.conventions import GRAVITY
from robokit.model.geometry import Placement
from robokit.parity.inertials import NO_MASS, ROUNDING_TOLERANCE, Rigid, number
from robokit.parity.matching import Alignment, Pairing, Tree, is_base_fixed, root_group
from robokit.parity.verdict import Dynamics, Finding
from robokit.spatial.rotation import quat_wxyz_to_rotation

STATE_COUNT = 3
"""Random states: what two robots have in common at one of them they hardly have at three."""

DRAW_COUNT = 4
"""How often A's numbers are moved by their rounding to see what that does."""

ROUNDING_MARGIN = 10.0
"""How many times more than such a draw all roundings together may do: they are dozens, and rarely add up."""

MACHINE_PRECISION = 1e-15
"""Rounding of the sums that poses and bodies are made of."""

NONE = 1e-12
"""Relative difference of H, C or gravity that the rounding of their own sums makes."""

WIDTHS = {"revolute": 1, "prismatic": 1, "spherical": 3, "planar": 3, "floating": 6}
"""Kind of a joint -> its number of velocities. Joints of other kinds are held at zero."""

NO_DYNAMICS = (
    "limits-", "effort-", "velocity-", "damping-", "friction-", "spring-", "mimic-", "mesh-", "shape-",
    "loop-", "joint-order", "axis-length", "rounded",
)  # fmt: skip
"""Beginnings of the causes that leave H, C and gravity as they are."""


@dataclass(frozen=True)
class Hinge:
    """A joint of either side: twists of its coordinates and a point that turns with them, in A's world.

    Attributes:
        kind: a key of ``WIDTHS``.
        first: number of its first velocity.
        axes: of its coordinates, (3, 3); the first row is the axis of a revolute or prismatic joint.
        anchor: (3,) [m].
    """

    kind: str
    first: int
    axes: np.ndarray
    anchor: np.ndarray


@dataclass(frozen=True)
class Mechanism:
    """Rigid groups of a side, parents first, at zero, in A's world.

    Attributes:
        parents: group that carries each group, -1 for none.
        hinges: how it moves against it; None where it is held.
        bodies: masses and inertias.
        heavy: mass on which gravity acts, and its centre, of each group.
        gravity: (3,) [m/s^2].
        armature: rotor inertia of each velocity.
    """

    parents: list[int]
    hinges: list[Hinge | None]
    bodies: list[Rigid]
    heavy: list[tuple[float, np.ndarray]]
    gravity: np.ndarray
    armature: np.ndarray


@dataclass(frozen=True)
class States:
    """Random positions and velocities.

    Attributes:
        moved: number of a joint's first velocity -> rotations and translations, (n, 3, 3) and (n, 3). A
            revolute joint has angles and a prismatic one lengths in their place, (n,).
        v: velocities (n, nv).
    """

    moved: dict[int, tuple[np.ndarray, np.ndarray]]
    v: np.ndarray


Answers = tuple[np.ndarray, np.ndarray, np.ndarray]
"""H (n, nv, nv), C (n, nv) and gravity (n, nv)."""


@dataclass(frozen=True)
class Rounding:
    """The largest differences of numbers that the comparison of bodies and joints takes for rounding.

    Masses, inertias, axes, gravity and rotor inertias are relative, centres of mass are parts of the size of
    their body and anchors of the size of the robot.
    """

    mass: float = MACHINE_PRECISION
    com: float = MACHINE_PRECISION
    inertia: float = MACHINE_PRECISION
    anchor: float = MACHINE_PRECISION
    axis: float = MACHINE_PRECISION
    gravity: float = MACHINE_PRECISION
    armature: float = MACHINE_PRECISION


def compared_dynamics(
    pairing: Pairing, alignment: Alignment, base: str | None, tolerance: float, size: float
) -> Dynamics | None:
    """The largest relative difference of H, C and gravity; None if nothing moves, or nothing has mass.

    Joints that only one side has, or that are of different kinds, are held at zero; mimic joints are free and
    loops open. The base is free unless A or B fixes it, or the caller says so.

    An entry H_ij is measured by sqrt(H_ii H_jj), and a force by the largest that the same accelerations can
    make. What rounding can do is measured too: all of A's numbers are moved by as much as B's numbers of
    that sort are off at most, larger differences than ``ROUNDING_TOLERANCE`` and the tolerance left out: they
    are no rounding.

    Args:
        pairing, alignment: what belongs together, and where it is.
        base: what A's base is to be, if the caller says so.
        tolerance: largest relative difference of two numbers that counts as none.
        size: of the robot [m].
    """
    made = _mechanisms(pairing, alignment, base)
    if made is None:
        return None
    a, b, names, ranges = made
    rng = np.random.default_rng(0)
    states = _states(a, ranges, rng)
    ours, scales = _answers(a, states)
    theirs, _ = _answers(b, states)
    off = _differences(ours, theirs, scales)
    noise = np.zeros(len(names))
    rounding = _rounding(pairing, a, b, max(ROUNDING_TOLERANCE, tolerance), size)
    for _ in range(DRAW_COUNT if max(part.max() for part in off) > NONE else 0):
        moved, _ = _answers(_shaken(a, rounding, size, rng), states)
        H, C, G = _differences(ours, moved, scales)
        noise = np.max([noise, H.max(axis=(0, 1)), C.max(axis=0), G.max(axis=0)], axis=0)
    return _largest_differences(off, ROUNDING_MARGIN * noise + NONE, names)


def dynamics_finding(found: Dynamics | None, findings: list[Finding], name: str) -> Iterator[Finding]:
    """The finding where H, C or gravity differ and no cause is known."""
    if found is None or not found.differs:
        return
    if any(not finding.cause.startswith(NO_DYNAMICS) for finding in findings):
        return
    text = f"{found.where} differs by a part {number(found.largest)}, and no cause is found"
    yield Finding("dynamics-differ", "robot", name, 0, text)


def _largest_differences(off: Answers, allowed: np.ndarray, names: list[str]) -> Dynamics:
    H, C, G = (part.max(axis=0) for part in off)
    pairs = np.maximum(allowed[:, None], allowed[None, :])
    beyond = [H / pairs, C / allowed, G / allowed]
    largest = [float(part.max()) for part in (H, C, G)]
    # What is most beyond rounding; where nothing is, what differs most.
    k = int(np.argmax([part.max() for part in beyond]))
    differs = float(beyond[k].max()) > 1.0
    if not differs:
        k = int(np.argmax(largest))
    place = np.unravel_index(int(np.argmax((beyond if differs else [H, C, G])[k])), (H, C, G)[k].shape)
    those = " and ".join(dict.fromkeys(names[i] for i in place))
    what = ("H", "C", "gravity")[k]
    rounding = float(allowed[list(place)].max())
    value = float((H, C, G)[k][place])
    return Dynamics(largest[0], largest[1], largest[2], f"{what} at {those}", value, rounding, differs)


def _differences(a: Answers, b: Answers, scales: Answers) -> Answers:
    H, C, G = (np.abs(x - y) / s for x, y, s in zip(a, b, scales, strict=True))
    return _finite(H), _finite(C), _finite(G)


def _finite(x: np.ndarray) -> np.ndarray:
    """The value; infinity for NaN, so that it counts as a difference."""
    return np.nan_to_num(x, nan=1e300, posinf=1e300)


def _mechanisms(
    pairing: Pairing, alignment: Alignment, base: str | None
) -> tuple[Mechanism, Mechanism, list[str], dict[int, tuple[float, float]]] | None:
    a, b = pairing.a, pairing.b
    roots = root_group(a), root_group(b)
    fixed = is_base_fixed(pairing, base)
    link = a.members[roots[0]][0]
    lay = alignment.maps[link]
    ours: dict[str, Hinge] = {}
    theirs: dict[str, Hinge] = {}
    names: list[str] = []
    ranges: dict[int, tuple[float, float]] = {}
    pose = a.side.bodies[link].pose
    root = None if fixed else Hinge("floating", 0, pose.rotation.T, pose.position)
    names += [] if root is None else ["the base"] * 6
    for joint in a.side.movable:
        other = pairing.joints.get(joint.name)
        if other is None or other.kind != joint.kind or joint.kind not in WIDTHS:
            continue
        axes = _axes(joint.axis)
        ours[joint.child] = Hinge(joint.kind, len(names), axes, joint.anchor)
        turned = lay.rotation @ other.axis
        # Frames of joints with several coordinates are the format's own; the axis is compared elsewhere.
        one = WIDTHS[joint.kind] == 1
        own = np.array([turned, *axes[1:]]) if one else axes
        theirs[other.child] = Hinge(joint.kind, len(names), own, lay.rotation @ other.anchor + lay.position)
        lower, upper = (math.nan if x is None else x for x in (joint.lower, joint.upper))
        ranges[len(names)] = (lower if abs(lower) < 10.0 else -3.0, upper if abs(upper) < 10.0 else 3.0)
        names += [joint.name] * WIDTHS[joint.kind]
    if not names:
        return None
    gravities = _gravities(pairing, lay if fixed else Placement())
    alone = a.side.format != b.side.format  # then the switches of A's <gazebo> elements are not compared
    armatures = _armatures(pairing, ours, len(names))
    first = _mechanism(a, ours, Placement(), root, roots[0], gravities[0], armatures[0], alone)
    second = _mechanism(b, theirs, lay, root, roots[1], gravities[1], armatures[1], False)
    if not any(body.mass > 0.0 for body in first.bodies):
        return None
    return first, second, names, ranges


def _axes(axis: np.ndarray) -> np.ndarray:
    """Three directions of which the first is the axis, as rows; the world's where there is none."""
    length = float(np.linalg.norm(axis))
    if length == 0.0:
        return np.eye(3)
    z = axis / length
    x = np.cross(z, np.eye(3)[int(np.abs(z).argmin())])
    x = x / np.linalg.norm(x)
    return np.array([z, x, np.cross(z, x)])


def _gravities(pairing: Pairing, lay: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Gravity in A and in B, in A's world; what a format leaves open is what the other says."""
    a, b = pairing.a.side.gravity, pairing.b.side.gravity
    default = np.array(GRAVITY)
    if a is None and b is not None:
        strength = float(np.linalg.norm(b))
        if abs(strength - 9.81) <= 2e-3 * 9.81:  # another default value, which whole_findings notes
            default = default * (strength / 9.81)
    ours = default if a is None else a
    theirs = ours if b is None else b
    return ours, lay.rotation @ theirs


def _armatures(pairing: Pairing, ours: dict[str, Hinge], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotor inertias where both sides know them."""
    found = np.zeros(n), np.zeros(n)
    for joint in pairing.a.side.movable:
        if joint.child in ours and WIDTHS[joint.kind] == 1:
            values = joint.armature, pairing.joints[joint.name].armature
            for side, value in zip(found, values, strict=True):
                side[ours[joint.child].first] = 0.0 if None in values else value
    return found


def _mechanism(
    tree: Tree,
    hinges: dict[str, Hinge],
    lay: Placement,
    root: Hinge | None,
    at: int,
    gravity: np.ndarray,
    armature: np.ndarray,
    alone: bool,
) -> Mechanism:
    bodies, heavy, how = [], [], []
    for g, members in enumerate(tree.members):
        total, acted = NO_MASS, NO_MASS
        for name in members:
            body = tree.side.bodies[name]
            own = Rigid(body.mass, body.com, body.inertia).at(lay @ body.pose)
            total = total + own
            acted = acted + Rigid(own.mass * (1.0 if alone else body.gravity), own.com, np.zeros((3, 3)))
        bodies.append(total)
        heavy.append((acted.mass, acted.com))
        carrier = tree.carrier[g]
        how.append(root if g == at else None if carrier is None else hinges.get(carrier.child))
    return Mechanism(list(tree.parent), how, bodies, heavy, gravity, armature)


def _states(m: Mechanism, ranges: dict[int, tuple[float, float]], rng: np.random.Generator) -> States:
    moved = {}
    nv = 0
    for hinge in m.hinges:
        if hinge is None:
            continue
        nv = max(nv, hinge.first + WIDTHS[hinge.kind])
        if hinge.kind in ("revolute", "prismatic"):
            lower, upper = ranges[hinge.first]
            q = rng.uniform(min(lower, upper), max(lower, upper), STATE_COUNT)
            moved[hinge.first] = (q, q)
        elif hinge.kind == "planar":
            moved[hinge.first] = (rng.uniform(-3.0, 3.0, STATE_COUNT), rng.standard_normal((STATE_COUNT, 2)))
        else:
            quaternions = rng.standard_normal((STATE_COUNT, 4))
            far = rng.standard_normal((STATE_COUNT, 3)) * (hinge.kind == "floating")
            moved[hinge.first] = (_rotations(quaternions), far)
    return States(moved, rng.standard_normal((STATE_COUNT, max(nv, len(m.armature)))))


def _rotations(quaternions: np.ndarray) -> np.ndarray:
    unit = quaternions / np.linalg.norm(quaternions, axis=1)[:, None]
    return np.moveaxis(np.array(quat_wxyz_to_rotation(unit.T).rows), 2, 0)


def _displacement(hinge: Hinge, states: States) -> tuple[np.ndarray, np.ndarray]:
    """What the joint does to the world behind it: x -> R x + p, (n, 3, 3) and (n, 3)."""
    first, second = states.moved[hinge.first]
    axis = hinge.axes[0]
    if hinge.kind == "prismatic":
        return np.broadcast_to(np.eye(3), (STATE_COUNT, 3, 3)), first[:, None] * axis
    if hinge.kind in ("revolute", "planar"):
        K = _skew(axis)
        R = np.eye(3) + np.sin(first)[:, None, None] * K + (1 - np.cos(first))[:, None, None] * (K @ K)
    else:
        R = hinge.axes.T @ first @ hinge.axes
    far = second @ hinge.axes[1:] if hinge.kind == "planar" else 0.0
    far = second @ hinge.axes if hinge.kind == "floating" else far
    return R, hinge.anchor - R @ hinge.anchor + far


def _twists(hinge: Hinge) -> np.ndarray:
    """Angular and linear velocity, at the world's origin, of the unit velocities at zero, (k, 6)."""
    turn = np.hstack([hinge.axes, np.cross(hinge.anchor, hinge.axes)])
    slide = np.hstack([np.zeros((3, 3)), hinge.axes])
    return {
        "revolute": turn[:1],
        "prismatic": slide[:1],
        "spherical": turn,
        "planar": np.vstack([turn[:1], slide[1:]]),
        "floating": np.vstack([turn, slide]),
    }[hinge.kind]


def _skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def _answers(m: Mechanism, states: States) -> tuple[Answers, Answers]:
    """H, C and gravity, and what their differences are measured by."""
    v, n = states.v, STATE_COUNT
    nv = v.shape[1]
    H, C, G = np.zeros((n, nv, nv)), np.zeros((n, nv)), np.zeros((n, nv))
    power, couples, weight = np.zeros(n), np.zeros((n, nv)), 0.0
    for g, (R, p, J, V, A) in enumerate(_motions(m, states)):
        body, (heavy, centre) = m.bodies[g], m.heavy[g]
        if body.mass == 0.0 and not body.inertia.any():
            continue
        c = R @ body.com + p
        Jw = J[:, :3]
        Jc = J[:, 3:] + np.cross(Jw, c[:, :, None], axis=1)
        inertia = R @ body.inertia @ np.swapaxes(R, 1, 2)
        H += body.mass * np.swapaxes(Jc, 1, 2) @ Jc + np.swapaxes(Jw, 1, 2) @ inertia @ Jw
        w, alpha = V[:, :3], A[:, :3]
        speed = V[:, 3:] + np.cross(w, c)
        a = A[:, 3:] + np.cross(alpha, c) + np.cross(w, speed)
        turning = lambda I, x: (I @ x[:, :, None])[:, :, 0]  # noqa: E731
        couple = turning(inertia, alpha) + np.cross(w, turning(inertia, w))
        C += body.mass * turning(np.swapaxes(Jc, 1, 2), a) + turning(np.swapaxes(Jw, 1, 2), couple)
        power += body.mass * (a * a).sum(axis=1)
        couples += np.linalg.norm(Jw, axis=1) * np.linalg.norm(couple, axis=1)[:, None]
        Jg = J[:, 3:] + np.cross(Jw, (R @ centre + p)[:, :, None], axis=1)
        G -= heavy * np.einsum("nij,i->nj", Jg, m.gravity)
        weight += body.mass * float(m.gravity @ m.gravity)
    H += np.diag(m.armature)
    own = np.sqrt(np.maximum(np.einsum("nii->ni", H), 0.0))
    own = np.where(own > 0.0, own, 1.0)
    tiny = 1e-300
    scales = own[:, :, None] * own[:, None, :], own * np.sqrt(power)[:, None] + couples + tiny
    return (H, C, G), (*scales, own * math.sqrt(weight) + tiny)


def _motions(m: Mechanism, states: States) -> Iterator[tuple[np.ndarray, ...]]:
    """Of each group: displacement R, p; columns J (n, 6, nv); velocity and bias acceleration (n, 6)."""
    n, nv = states.v.shape
    still = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 6, nv)), np.zeros((n, 6))
    done: list[tuple[np.ndarray, ...]] = []
    for parent, hinge in zip(m.parents, m.hinges, strict=True):
        R, p, J, V, A = done[parent] if parent >= 0 else (*still, np.zeros((n, 6)))
        if hinge is not None:
            turn, far = _displacement(hinge, states)
            p = (R @ far[:, :, None])[:, :, 0] + p
            R = R @ turn
            S = _twists(hinge)
            w = np.einsum("nij,kj->nik", R, S[:, :3])
            linear = np.einsum("nij,kj->nik", R, S[:, 3:]) + np.cross(p[:, :, None], w, axis=1)
            own = slice(hinge.first, hinge.first + len(S))
            J = J.copy()
            J[:, :, own] = np.concatenate([w, linear], axis=1)
            step = (J[:, :, own] @ states.v[:, own, None])[:, :, 0]
            V = V + step
            # The twists are fixed in the body, so that they change with its motion.
            turning = np.cross(V[:, :3], step[:, :3])
            sliding = np.cross(V[:, :3], step[:, 3:]) + np.cross(V[:, 3:], step[:, :3])
            A = A + np.concatenate([turning, sliding], axis=1)
        done.append((R, p, J, V, A))
        yield done[-1]


def _rounding(pairing: Pairing, a: Mechanism, b: Mechanism, most: float, size: float) -> Rounding:
    """How far B's numbers are off, where they are not far off."""
    off: dict[str, list[float]] = {each.name: [MACHINE_PRECISION] for each in fields(Rounding)}

    def differ(what: str, x: np.ndarray | float, y: np.ndarray | float, scale: float) -> None:
        far = float(np.abs(np.subtract(x, y)).max()) / (scale or 1.0)
        if far <= most:
            off[what].append(far)

    for g, h in pairing.groups.items():
        one, two = a.bodies[g], b.bodies[h]
        if one.mass > 0.0:
            differ("mass", one.mass, two.mass, one.mass)
            differ("com", one.com, two.com, Rigid(one.mass, np.zeros(3), one.inertia).size)
        differ("inertia", one.inertia, two.inertia, float(np.abs(one.inertia).max()))
        first, second = a.hinges[g], b.hinges[h]
        if first is not None and second is not None:
            differ("axis", first.axes[0], second.axes[0], 1.0)
            if first.kind != "prismatic":  # which has an axis everywhere; a revolute one has one line
                along = np.outer(first.axes[0], first.axes[0]) * (first.kind == "revolute")
                differ("anchor", np.zeros(3), (np.eye(3) - along) @ (second.anchor - first.anchor), size)
    differ("gravity", a.gravity, b.gravity, float(np.linalg.norm(a.gravity)))
    differ("armature", a.armature, b.armature, float(a.armature.max(initial=0.0)))
    return Rounding(**{what: max(all_) for what, all_ in off.items()})


def _shaken(m: Mechanism, by: Rounding, size: float, rng: np.random.Generator) -> Mechanism:
    """The mechanism with every number changed by its rounding error, up or down at random."""

    def sign(*shape: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], shape)

    bodies, heavy, hinges = [], [], []
    for body, (weight, centre), hinge in zip(m.bodies, m.heavy, m.hinges, strict=True):
        reach = Rigid(body.mass, np.zeros(3), body.inertia).size
        factor, off = 1.0 + by.mass * float(sign(1)[0]), by.com * reach * sign(3)
        turn = by.inertia * float(np.abs(body.inertia).max()) * sign(3, 3)
        bodies.append(Rigid(factor * body.mass, body.com + off, body.inertia + (turn + turn.T) / 2.0))
        heavy.append((factor * weight, centre + off))
        if hinge is not None and hinge.kind != "floating":
            axes = hinge.axes + by.axis * sign(3, 3)
            axes = axes / np.linalg.norm(axes, axis=1)[:, None]
            hinge = replace(hinge, axes=axes, anchor=hinge.anchor + by.anchor * size * sign(3))
        hinges.append(hinge)
    gravity = m.gravity + by.gravity * float(np.linalg.norm(m.gravity)) * sign(3)
    armature = m.armature * (1.0 + by.armature * sign(len(m.armature)))
    return replace(m, bodies=bodies, heavy=heavy, hinges=hinges, gravity=gravity, armature=armature)
