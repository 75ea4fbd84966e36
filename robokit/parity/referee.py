"""The referee reads two descriptions of one robot and says what differs, and why."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from robokit.arguments import one_of
from robokit.conventions import GRAVITY
from robokit.dataclass_tools import frozen
from robokit.errors import RobokitError, listed
from robokit.formats.description import (
    WORLD,
    DescribedLoop,
    Description,
    frame_along,
    parents_first,
    turned_round,
    with_composite_joints,
)
from robokit.formats.load import read_description
from robokit.model.geometry import Placement
from robokit.parity.bodies import Bodies, Shapes, joint_findings, mimic_findings
from robokit.parity.inertials import NO_MASS, ROUNDING_TOLERANCE, Rigid, number
from robokit.parity.matching import (
    Aligner,
    Alignment,
    Pairing,
    Tree,
    is_base_fixed,
    is_static,
    pair_descriptions,
    plain_name,
    rigid_groups,
    root_group,
)
from robokit.parity.verdict import Dynamics, Finding, Verdict
from robokit.spatial.rotation import quat_wxyz_to_rotation
from robokit.urdf.mesh_files import Resolver, folders

# ==== dynamics ====================================================================================
# H, C and gravity of both descriptions at random states: the one number that a controller would notice.
#
# Every body is moved by products of exponentials in A's world, so that no frame of a link matters:
#
#     H = sum m Jc^T Jc + Jw^T I Jw,   C = sum m Jc^T a + Jw^T (I alpha + w x I w),   gravity = -sum m Jc^T g
#
# Source: Lynch and Park, Modern Robotics, sections 4.1 and 8.1. Differs: bodies by their centres of mass.

STATE_COUNT = 3  # random states: what two robots have in common at one of them they hardly have at three
DRAW_COUNT = 4  # how often A's numbers are moved by their rounding to see what that does
ROUNDING_MARGIN = 10.0  # how much more all roundings, dozens, may do than such a draw: they rarely add up
MACHINE_PRECISION = 1e-15  # rounding of the sums that poses and bodies are made of
NONE = 1e-12  # relative difference of H, C or gravity that the rounding of their own sums makes

WIDTHS = {"revolute": 1, "prismatic": 1, "spherical": 3, "planar": 3, "floating": 6}
"""Kind of a joint -> its number of velocities. Joints of other kinds are held at zero."""

NO_DYNAMICS = (
    "limits-", "effort-", "velocity-", "damping-", "friction-", "spring-", "mimic-", "mesh-", "shape-",
    "loop-", "joint-order", "axis-length", "rounded",
)  # fmt: skip
"""Beginnings of the causes that leave H, C and gravity as they are."""


@frozen
class Hinge:
    """A joint of either side: twists of its coordinates and a point that turns with them, in A's world."""

    kind: str  # a key of ``WIDTHS``
    first: int  # number of its first velocity
    axes: np.ndarray  # of its coordinates, (3, 3); the first row is the axis of a revolute or prismatic joint
    anchor: np.ndarray  # (3,) [m]


@frozen
class Mechanism:
    """Rigid groups of a side, parents first, at zero, in A's world."""

    parents: list[int]  # group that carries each group, -1 for none
    hinges: list[Hinge | None]  # how it moves against it; None where it is held
    bodies: list[Rigid]  # masses and inertias
    heavy: list[tuple[float, np.ndarray]]  # mass on which gravity acts, and its centre, of each group
    gravity: np.ndarray  # (3,) [m/s^2]
    armature: np.ndarray  # rotor inertia of each velocity


@frozen
class States:
    """Random positions and velocities."""

    # number of a joint's first velocity -> rotations and translations, (n, 3, 3) and (n, 3). A revolute joint
    # has angles and a prismatic one lengths in their place, (n,).
    moved: dict[int, tuple[np.ndarray, np.ndarray]]
    v: np.ndarray  # velocities (n, nv)


Answers = tuple[np.ndarray, np.ndarray, np.ndarray]  # H (n, nv, nv), C (n, nv) and gravity (n, nv)


@frozen
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
    make. What rounding can do is measured too: all of A's numbers are moved by as much as B's numbers of that
    sort are off at most, larger differences than ``ROUNDING_TOLERANCE`` and the tolerance left out: they are
    no rounding. ``pairing``, ``alignment``: what belongs together, and where it is; ``base``: what A's base
    is to be, if the caller says so; ``tolerance``: largest relative difference of two numbers that counts as
    none; ``size``: of the robot [m].
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
    ranges: dict[int, tuple[float, float]] = {}
    pose = a.side.bodies[link].pose
    root = None if fixed else Hinge("floating", 0, pose.rotation.T, pose.position)
    names = [] if root is None else ["the base"] * 6
    for joint in a.side.movable:
        other = pairing.joints.get(joint.name)
        if other is None or other.kind != joint.kind or joint.kind not in WIDTHS:
            continue
        # Three directions of which the first is the axis, as rows; the world's where there is none.
        axes = frame_along(np.zeros(3), joint.axis).rotation.T[[2, 0, 1]] if joint.axis.any() else np.eye(3)
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
    n = len(names)
    armatures = np.zeros(n), np.zeros(n)
    for each in pairing.a.side.movable:
        if each.child in ours and WIDTHS[each.kind] == 1:
            values = each.armature, pairing.joints[each.name].armature
            for side, value in zip(armatures, values, strict=True):
                side[ours[each.child].first] = 0.0 if None in values else value
    first = _mechanism(a, ours, Placement(), root, roots[0], gravities[0], armatures[0], alone)
    second = _mechanism(b, theirs, lay, root, roots[1], gravities[1], armatures[1], False)
    if not any(body.mass > 0.0 for body in first.bodies):
        return None
    return first, second, names, ranges


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
            unit = quaternions / np.linalg.norm(quaternions, axis=1)[:, None]
            moved[hinge.first] = (np.moveaxis(np.array(quat_wxyz_to_rotation(unit.T).rows), 2, 0), far)
    return States(moved, rng.standard_normal((STATE_COUNT, max(nv, len(m.armature)))))


def _displacement(hinge: Hinge, states: States) -> tuple[np.ndarray, np.ndarray]:
    """What the joint does to the world behind it: x -> R x + p, (n, 3, 3) and (n, 3)."""
    first, second = states.moved[hinge.first]
    axis = hinge.axes[0]
    if hinge.kind == "prismatic":
        return np.broadcast_to(np.eye(3), (STATE_COUNT, 3, 3)), first[:, None] * axis
    if hinge.kind in ("revolute", "planar"):
        K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
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


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products along the second axis, (n, 3) or (n, 3, k): NumPy's take 2.5 times as long."""
    x, y, z, u, v, w = (each[:, k] for each in (a, b) for k in range(3))
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=1)


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
        Jc = J[:, 3:] + _cross(Jw, c[:, :, None])
        inertia = R @ body.inertia @ np.swapaxes(R, 1, 2)
        H += body.mass * np.swapaxes(Jc, 1, 2) @ Jc + np.swapaxes(Jw, 1, 2) @ inertia @ Jw
        w, alpha = V[:, :3], A[:, :3]
        speed = V[:, 3:] + _cross(w, c)
        a = A[:, 3:] + _cross(alpha, c) + _cross(w, speed)
        turning = lambda I, x: (I @ x[:, :, None])[:, :, 0]  # noqa: E731
        couple = turning(inertia, alpha) + _cross(w, turning(inertia, w))
        C += body.mass * turning(np.swapaxes(Jc, 1, 2), a) + turning(np.swapaxes(Jw, 1, 2), couple)
        power += body.mass * (a * a).sum(axis=1)
        couples += np.linalg.norm(Jw, axis=1) * np.linalg.norm(couple, axis=1)[:, None]
        Jg = J[:, 3:] + _cross(Jw, (R @ centre + p)[:, :, None])
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
            linear = np.einsum("nij,kj->nik", R, S[:, 3:]) + _cross(p[:, :, None], w)
            own = slice(hinge.first, hinge.first + len(S))
            J = J.copy()
            J[:, :, own] = np.concatenate([w, linear], axis=1)
            step = (J[:, :, own] @ states.v[:, own, None])[:, :, 0]
            V = V + step
            # The twists are fixed in the body, so that they change with its motion.
            turning = _cross(V[:, :3], step[:, :3])
            sliding = _cross(V[:, :3], step[:, 3:]) + _cross(V[:, 3:], step[:, :3])
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


# ==== structure ===================================================================================
# The tree, its loops and the robot as a whole: what joints hang on, base, gravity, the order of joints.


def counterpart(pairing: Pairing, g: int) -> int | None:
    """The group of B that a group of A is part of: its own, or that of the nearest body that it hangs on."""
    while g >= 0 and g not in pairing.groups:
        g = pairing.a.parent[g]
    return pairing.groups.get(g)


def nearest_paired_group(pairing: Pairing, h: int) -> int | None:
    """The paired group of B that one of its groups is part of: its own, or that of the nearest body above."""
    found = set(pairing.groups.values())
    while h >= 0 and h not in found:
        h = pairing.b.parent[h]
    return h if h >= 0 else None


def tree_findings(pairing: Pairing) -> Iterator[Finding]:
    """One finding for each joint that hangs on another body, and each link that is fixed to another one.

    Bodies that only one side has, such as those at a joint that the other has welded, count as part of the
    nearest body that they hang on.
    """
    a, b = pairing.a, pairing.b
    for g, joint in enumerate(a.carrier):
        h = pairing.groups.get(g)
        if joint is None or h is None or a.parent[g] < 0 or b.parent[h] < 0:
            continue
        ours, theirs = counterpart(pairing, a.parent[g]), nearest_paired_group(pairing, b.parent[h])
        if ours is not None and theirs is not None and ours != theirs:
            text = f"B hangs it on {_group_name(b, theirs)}; A on {joint.parent!r}"
            yield Finding("joint-parent", "joint", joint.name, joint.line, text)
    for name, (body, _) in pairing.direct.items():
        link = a.side.bodies[name]
        if link.static or b.side.bodies[body].static != is_static(b, b.group[body]):
            continue
        ours, theirs = counterpart(pairing, a.group[name]), nearest_paired_group(pairing, b.group[body])
        if ours is not None and theirs is not None and ours != theirs:
            into = a.into.get(name)
            on = f"{into.parent!r}" if into is not None and not into.moves else _group_name(a, a.group[name])
            text = f"B has it on {_group_name(b, theirs)}; A on {on}"
            line = (into.line if into is not None else 0) or link.line
            yield Finding("link-on-another-body", "link", name, line, text)


def _group_name(tree: Tree, g: int) -> str:
    """A rigid body by its first link, with the joint that carries it."""
    carrier = tree.carrier[g]
    by = f" (behind {carrier.name!r})" if carrier is not None and carrier.name else ""
    return f"{tree.members[g][0]!r}{by}"


def with_the_same_root(a: Description, b: Description) -> tuple[Description, Finding | None]:
    """B from A's root outwards, and the finding where B's root is another body.

    Where nothing holds the root, the same bodies and joints can be written from another one outwards: so one
    exchanged root is one difference, and not one for each joint on the way.
    """
    ours, theirs = rigid_groups(a), rigid_groups(b)
    g, h = root_group(ours), root_group(theirs)
    root = next((name for name in ours.members[g] if name in b.bodies), None)
    if is_static(ours, g) or root is None or any(theirs.group.get(name) == h for name in ours.members[g]):
        return b, None
    path, up = [], theirs.into.get(root)
    while up is not None and not (up.kind == "floating" and theirs.side.is_base(up)):
        path.append(up)
        up = theirs.into.get(up.parent)
    old, through = path[-1].parent, next(joint for joint in path if joint.moves)
    text = f"B's root is {old!r}; A's is {root!r}, which hangs in B on {through.name!r}"
    found = Finding("root-differs", "robot", a.name or "robot", 0, text)
    if is_static(theirs, h):
        return b, found
    turned = {id(joint): turned_round(joint) for joint in path}
    joints = [turned.get(id(joint), joint) for joint in b.joints]
    joints = [replace(j, child=root) if j.kind == "floating" and j.child == old else j for j in joints]
    floats = WORLD in b.bodies and b.bodies[WORLD].static
    bodies = parents_first(b.bodies, joints, WORLD if floats else root)
    return replace(b, joints=joints, bodies=bodies), found


# ---- Joints and constraints that close loops: missing, added, or elsewhere -----------------------

LOOP_POSITIONS = (0.0, 0.7, -0.4)
"""Positions of a loop's joint at which A's loop is held against B's [rad | m]: three tell any two apart."""

Ends = tuple[int | None, int | None]  # groups of B that a loop connects


class Loops:
    """The comparison of all loops of two sides; ``maps``: link of A -> map from B's world to A's."""

    def __init__(self, pairing: Pairing, maps: dict[str, Placement], tolerance: float, size: float) -> None:
        self.pairing, self.maps, self.tolerance, self.size = pairing, maps, tolerance, size

    def findings(self) -> Iterator[Finding]:
        """One finding for each loop that differs."""
        a, b = self.pairing.a.side, self.pairing.b.side
        left = [loop for loop in b.loops if self._holds(loop)]
        for loop in a.loops:
            ends = self._ends_of_a(loop)
            alike = [other for other in left if set(self._ends_of_b(other)) == set(ends)]
            other = min(alike, key=lambda other: self._off(loop, other), default=None)
            other = other or next((each for each in left if each.name == loop.name and loop.name), None)
            if other is None:
                text = f"B has no loop joint between {loop.predecessor!r} and {loop.successor!r}"
                yield Finding("loop-missing", "joint", loop.name, loop.line, text)
                continue
            left.remove(other)
            found = self._one(loop, other, ends)
            if found is not None:
                yield Finding(found[0], "joint", loop.name, loop.line, found[1])
        for loop in left:
            text = f"only B has it: it closes a loop between {loop.predecessor!r} and {loop.successor!r}"
            yield Finding("loop-added", "joint", loop.name or "loop", 0, text)

    def _one(self, a: DescribedLoop, b: DescribedLoop, ends: Ends) -> tuple[str, str] | None:
        if set(self._ends_of_b(b)) != set(ends):
            where = f"{b.predecessor!r} and {b.successor!r} for {a.predecessor!r} and {a.successor!r}"
            return "loop-differs", f"B closes the loop between other bodies: {where}"
        if a.kind != b.kind:
            return "loop-differs", f"B's loop joint is {b.kind}, A's {a.kind}"
        off = self._off(a, b)
        if off <= 10.0 * self.tolerance:
            return None
        if off <= ROUNDING_TOLERANCE:
            return "rounded", "B's loop joint is A's rounded"
        return "loop-differs", f"B has the loop joint elsewhere, {number(off * self.size)} m or rad away"

    def _ends_of_a(self, loop: DescribedLoop) -> Ends:
        group = self.pairing.a.group  # the world is in none where the root link is free in it
        first, second = (group.get(name, -1) for name in (loop.predecessor, loop.successor))
        return counterpart(self.pairing, first), counterpart(self.pairing, second)

    def _ends_of_b(self, loop: DescribedLoop) -> Ends:
        group = self.pairing.b.group
        first, second = (group[name] for name in (loop.predecessor, loop.successor))
        return nearest_paired_group(self.pairing, first), nearest_paired_group(self.pairing, second)

    def _holds(self, loop: DescribedLoop) -> bool:
        """Whether a loop of B connects two bodies that can move against each other."""
        group = self.pairing.b.group
        return group[loop.predecessor] != group[loop.successor]

    def _off(self, a: DescribedLoop, b: DescribedLoop) -> float:
        """How far B's loop is from being held where A's is, as a part of the size of the robot."""
        if a.kind != b.kind:
            return math.inf
        pose = self.pairing.a.side.bodies
        if a.predecessor not in pose or a.successor not in pose:
            return 0.0
        first = pose[a.predecessor].pose @ a.predecessor_frame
        second = pose[a.successor].pose @ a.successor_frame
        theirs = [(b.predecessor, b.predecessor_frame), (b.successor, b.successor_frame)]
        if self._ends_of_b(b) != self._ends_of_a(a):
            theirs.reverse()
        there = self.pairing.b.side.bodies
        ends = (a.predecessor, theirs[0]), (a.successor, theirs[1])
        third, fourth = (self.maps[link] @ there[body].pose @ frame for link, (body, frame) in ends)
        largest = 0.0
        for x in LOOP_POSITIONS:
            moved = first @ _allowed_pose(a, x) @ second.inverse()  # the successor, held by A's loop
            apart = third.inverse() @ moved @ fourth
            largest = max(largest, _violation(b, apart, self.size))
        return largest


def _allowed_pose(loop: DescribedLoop, x: float) -> Placement:
    """The successor's frame in the predecessor's at some position that the joint allows."""
    kind, z, c, s = loop.kind, np.array([0.0, 0.0, x]), math.cos(x), math.sin(x)
    about_z = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    if kind == "revolute":
        return Placement(about_z)
    if kind == "prismatic":
        return Placement(position=z)
    if kind == "cylindrical":
        return Placement(about_z, z)
    if kind == "planar":
        return Placement(about_z, np.array([x, -x, 0.0]))
    if kind == "spherical":
        return Placement(about_z @ np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]]))
    if kind == "distance":
        return Placement(about_z, loop.length * np.array([s, 0.0, c]))
    if kind == "universal":  # about z, then about x of what that has turned, which is z of the other
        across = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        return Placement(about_z @ across @ about_z)
    return Placement()


def _violation(loop: DescribedLoop, apart: Placement, size: float) -> float:
    """By how much a relative pose violates the joint; lengths as parts of the size."""
    kind = loop.kind
    if kind == "distance":
        return abs(float(np.linalg.norm(apart.position)) - loop.length) / size
    turn, far = apart.rotation - np.eye(3), apart.position / size
    if kind in ("revolute", "cylindrical", "planar"):
        turn = turn[:, 2]
    elif kind == "spherical":
        turn = np.zeros(3)
    elif kind == "universal":
        turn = apart.rotation[2:, 2]
    if kind in ("prismatic", "cylindrical"):
        far = far[:2]
    elif kind == "planar":
        far = far[2:]
    return max(float(np.abs(turn).max()), float(np.abs(far).max()))


# ---- What concerns the whole robot: base, gravity, the order of the joints, one factor on every mass

DEFAULT_GRAVITY_TOLERANCE = 2e-3
"""Relative difference of a gravity from 9.81 m/s^2 that is only another default, where A says none."""

Text = tuple[str, str]


def whole_findings(
    pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float, notes: list[str]
) -> Iterator[Finding]:
    """Findings of the robot as a whole.

    ``maps``: link of A -> map from B's world to A's; ``base``: what A's is to be, if the caller says so;
    ``notes`` gets what is not compared.
    """
    a, b = pairing.a.side, pairing.b.side
    found = [*_base(a, b, base, notes), *_gravity(a, b, tolerance, notes), *_order(pairing, notes)]
    found += _tilt(pairing, maps, base, tolerance)
    for cause, text in found:
        yield Finding(cause, "robot", a.name or "robot", 0, text)
    alone = [name for name, body in a.bodies.items() if not body.gravity and a.format != b.format]
    if alone:
        notes.append(f"A's <gazebo> elements switch gravity off for {len(alone)} links; this is not compared")
    for name, body in a.bodies.items():
        home = pairing.home.get(name)
        if (
            name not in alone
            and home is not None
            and body.mass > 0.0
            and b.bodies[home].gravity != body.gravity
            and not b.bodies[home].static
        ):
            theirs = b.bodies[home].gravity
            text = f"B lets {number(theirs)} of gravity act on it, A {number(body.gravity)}"
            if {theirs, body.gravity} == {0.0, 1.0}:
                text = f"gravity acts on it in {'A, not in B' if body.gravity else 'B, not in A'}"
            yield Finding("gravity-off", "link", name, body.written.line if body.written else 0, text)


def _base(a: Description, b: Description, base: str | None, notes: list[str]) -> Iterator[Text]:
    ours = base or a.base
    both_urdf = a.format == b.format == "URDF"
    if both_urdf and base is None and a.base != b.base:
        if b.base == "fixed":
            yield "base-welded", "B welds the base to a link 'world'; A leaves it to the program"
        elif a.base == "fixed":
            what = "a floating joint" if b.base == "floating" else "nothing: its link 'world' is gone"
            yield "base-freed", f"A welds the base to its link 'world'; B holds it by {what}"
        elif b.base == "floating":
            yield "base-freed", "B holds the base by a floating joint; A leaves it to the program"
        else:
            yield "base-welded", "A's base has a floating joint; B's has none"
    elif ours is not None and b.base is not None and ours != b.base:
        if b.base == "fixed":
            yield "base-welded", "B's base is welded to the world; A's is free"
        else:
            yield "base-freed", "B's base is free; A's is welded to the world"
    elif ours is None and b.base is not None:
        notes.append(f"B's base is {b.base}; A does not say (--base fixed or --base floating compares it)")


def _gravity(a: Description, b: Description, tolerance: float, notes: list[str]) -> Iterator[Text]:
    if b.gravity is None and a.gravity is None:
        return
    if b.gravity is None and a.format != b.format:
        return
    ours = np.array(GRAVITY) if a.gravity is None else a.gravity
    theirs = np.array(GRAVITY) if b.gravity is None else b.gravity
    g = float(np.linalg.norm(ours))
    off = float(np.abs(theirs - ours).max())
    if off <= (DEFAULT_GRAVITY_TOLERANCE if a.gravity is None else tolerance) * max(g, 1.0):
        if off > max(tolerance, 1e-6) * g:
            notes.append(f"B's gravity is {_vector(theirs)} m/s^2; A says none, and robokit's is 9.81")
        return
    said = f"{_vector(theirs)} for {_vector(ours)} m/s^2"
    if not theirs.any():
        yield "gravity", f"B has no gravity: {said}"
    elif float(np.abs(theirs + ours).max()) <= 1e-3 * g:
        yield "gravity", f"B's gravity points up: {said}"
    elif abs(float(np.linalg.norm(theirs)) - g) <= DEFAULT_GRAVITY_TOLERANCE * g:
        yield "gravity", f"B's gravity points elsewhere: {said}"
    else:
        yield "gravity", f"B's gravity has another strength: {said}"


def _tilt(pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float) -> Iterator[Text]:
    """Whether a fixed base is turned against gravity."""
    a = pairing.a
    root = a.members[root_group(a)][0]
    if not is_base_fixed(pairing, base):
        return
    down = pairing.b.side.gravity if pairing.b.side.gravity is not None else np.array(GRAVITY)
    off = float(np.linalg.norm(maps[root].rotation @ down - down)) / max(float(np.linalg.norm(down)), 1e-300)
    if off > max(10.0 * tolerance, ROUNDING_TOLERANCE):
        angle = math.degrees(2.0 * math.asin(min(1.0, off / 2.0)))
        yield "base-tilted", f"B's base is fixed {number(angle)} deg from where A's is against gravity"


def _vector(v: np.ndarray) -> str:
    return " ".join(number(float(x) + 0.0) for x in v)


def _order(pairing: Pairing, notes: list[str]) -> Iterator[Text]:
    a, b = pairing.a.side, pairing.b.side
    ours = {id(theirs): name for name, theirs in pairing.joints.items()}
    theirs = [ours[id(joint)] for joint in b.movable if id(joint) in ours]
    kept = set(theirs)
    movable = [joint for joint in a.movable if joint.name in kept]
    written = [joint.name for joint in movable]
    into = a.into()
    deep = [into[name].name for name in a.bodies if name in into and into[name].name in kept]
    depth: dict[str, int] = {}
    for name in a.bodies:
        depth[name] = depth[into[name].parent] + 1 if name in into else 0
    broad = [joint.name for joint in sorted(movable, key=lambda joint: depth[joint.child])]
    if theirs == written:
        return
    if theirs == deep:  # as tree walks give them, and as writers write them
        if a.format == b.format:
            notes.append("B writes the joints depth first, A in another order; programs number them alike")
        return
    known = {"breadth first": broad, "alphabetical": sorted(written), "reversed": written[::-1]}
    how = next((name for name, order in known.items() if order == theirs), "")
    k, (mine, other) = next(
        (k, pair) for k, pair in enumerate(zip(written, theirs, strict=True)) if pair[0] != pair[1]
    )
    said = f" ({how})" if how else ""
    text = f"B's joints come in another order{said}: number {k + 1} is {other!r}, in A {mine!r}"
    if "through" in b.format:
        notes.append(f"{text}; match by name")
    else:
        yield "joint-order", text


def shared_factor(findings: list[Finding], massive: int) -> list[Finding]:
    """The findings with one of the robot in the place of a factor that every mass has."""
    scaled = [f for f in findings if f.cause == "mass-scaled"]
    if massive < 2 or len(scaled) < 0.8 * massive:
        return findings
    count = Counter(f.text.partition(":")[0] for f in scaled)
    text, most = count.most_common(1)[0]
    if most < 0.8 * massive:
        return findings
    rest = [f for f in findings if f not in scaled or f.text.partition(":")[0] != text]
    what = text.removeprefix("B's ")
    whole = Finding("total-mass", "robot", "robot", 0, f"all {most} links: B's {what}")
    return [whole, *rest]


# ==== referee =====================================================================================

DEFAULT_TOLERANCE = 1e-6  # largest relative difference that counts as none, unless the caller says otherwise

PathLike = str | os.PathLike[str]


def referee(
    a: PathLike,
    b: PathLike,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    through: str = "robokit",
    package_dirs: Sequence[PathLike] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Verdict:
    """Compare two descriptions of one robot, and find the cause of each difference.

    Bodies are matched by name, and by their place in the tree, geometry and mass where names differ; joints
    by the bodies that they carry, axis and anchor. Everything is compared in one world with all joints at
    zero. Links that fixed joints hold together may be merged in either description. Beside the causes, mass
    matrix, velocity forces and gravity at random states are compared: where they differ by more than rounding
    makes, the robots are not the same even if no cause is found.

    Args:
        a: a URDF or xacro, the reference. Findings name its elements and lines.
        b: another description: URDF, xacro, MJCF (read by MuJoCo), SDF (read by Drake) or USD (read by
            usd-core).
        base: required base, "fixed" or "floating"; by default that of A, if it has one.
        tolerance: largest relative difference that counts as equal.
        through: the program that reads b if it is a URDF: "robokit", "mujoco", "drake" or "pinocchio".
        package_dirs: folders searched first for ``package://`` files.
        xacro_args: values of the arguments of .xacro files.
        loops: of the URDFs that robokit reads, as for :func:`robokit.load_urdf`.

    Returns:
        the verdict: ``.same``, ``.findings``, ``.notes``, ``.dynamics``.

    Raises:
        UrdfError: a file that is no tree of links and joints.
        RobokitError: a file that cannot be read.
        MissingDependency: MuJoCo, Drake, Pinocchio or usd-core is needed and not installed.
    """
    if base is not None:
        one_of("base", base, ("fixed", "floating"))
    if not 0.0 < tolerance < 0.1:
        raise RobokitError(f"tolerance is {tolerance!r}; it is a relative difference above 0 and below 0.1")
    first = read_description(a, "robokit", package_dirs, xacro_args, loops)
    if first.format != "URDF":
        raise RobokitError(
            f"{os.fspath(a)} is {first.format}; the first file is the URDF or xacro that the other is "
            "compared with"
        )
    second = read_description(b, through, package_dirs, xacro_args, loops)
    return compare_descriptions(first, second, base, tolerance, package_dirs)


def compare_descriptions(
    a: Description,
    b: Description,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    package_dirs: Sequence[PathLike] = (),
) -> Verdict:
    """The verdict over two descriptions that have been read; arguments as for :func:`referee`."""
    b, other_root = with_the_same_root(a, with_composite_joints(b, a))
    pairing = pair_descriptions(a, b)
    aligner = Aligner(pairing, tolerance)
    alignment = aligner.align()
    resolver = Resolver(Path(a.file).absolute().parent, folders(package_dirs))

    def find(name: str) -> Path | None:
        return resolver(name).path

    bodies = Bodies(pairing, alignment, tolerance, find)
    shapes = Shapes(pairing, alignment.maps, tolerance, find)
    verdict = Verdict(a.file, b.file, a.format, b.format, tolerance=tolerance)
    verdict.bodies = sum(not a.bodies[name].static for name in pairing.home)
    verdict.joints = len(pairing.joints)
    found = [*alignment.findings, *bodies.findings()]
    for name in bodies.extra():
        text = f"only B has it: {b.bodies[name].mass:.4g} kg"
        found.append(Finding("link-added", "link", name, 0, text))
    found += joint_findings(pairing, alignment, tolerance, aligner.size)
    found += mimic_findings(pairing, tolerance)
    found += tree_findings(pairing)
    found += Loops(pairing, alignment.maps, tolerance, aligner.size).findings()
    found += shapes.findings()
    found.sort(key=lambda f: (f.line == 0, f.line))
    found = shared_factor(found, bodies.massive)
    whole = [other_root] if other_root is not None else []
    whole += whole_findings(pairing, alignment.maps, base, tolerance, verdict.notes)
    rounded = [f for f in found if f.cause == "rounded"]
    verdict.findings = [*whole, *(f for f in found if f.cause != "rounded")]
    verdict.notes += [*b.notes, *bodies.notes, *shapes.notes]
    verdict.dynamics = compared_dynamics(pairing, alignment, base, tolerance, aligner.size)
    verdict.findings += dynamics_finding(verdict.dynamics, verdict.findings, a.name or "robot")
    if rounded:
        names = list(dict.fromkeys(f.name for f in rounded))
        verdict.notes.append(f"B's numbers are rounded: {listed(names, 3)}")
    named = sum(plain_name(name) == plain_name(theirs.name) for name, theirs in pairing.joints.items())
    alike, names_of_a = len(pairing.direct) + named, len(a.bodies) + len(a.movable)
    if alike < names_of_a / 4 and len(verdict.findings) > len(a.bodies):
        verdict.notes.insert(0, "hardly a name is the same, and most differs: B may be another robot")
    if pairing.unnamed:
        pairs = [f"{x} is {y}" for x, y in pairing.unnamed.items() if a.bodies[x].mass or b.bodies[y].mass]
        if pairs:
            verdict.notes.append(f"matched by geometry: {listed(pairs, 3)}")
    if alignment.reframed:
        verdict.notes.append(
            f"B places {len(alignment.reframed)} link frames elsewhere; the bodies are where A's are"
        )
    return verdict
