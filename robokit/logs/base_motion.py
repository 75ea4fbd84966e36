"""How the base of a floating robot moved, from odometry, poses or the tree of frames (tf) of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.dynamics import forward_kinematics
from robokit.errors import ShapeError, nearest_names
from robokit.logs.recording import Poses, Recording
from robokit.model.robot import Robot
from robokit.spatial.rotation import quat_wxyz_to_rotation, rotation_to_quat_wxyz

ODD_TWIST = 0.3
"""Share of a velocity by which a twist may differ from the rate of its pose before its axes are looked at."""


@dataclass(frozen=True, eq=False)
class BaseMotion:
    """The motion of a floating base.

    Attributes:
        topic: where it came from.
        q: unit quaternion wxyz and position [m], (T, 7).
        v: angular and linear velocity in base axes [rad/s; m/s], (T, 6).
        notes: what was noticed.
    """

    topic: str
    q: np.ndarray
    v: np.ndarray
    notes: list[str]


def base_motion(
    robot: Robot, recording: Recording, t: np.ndarray, q: np.ndarray, topic: str | None = None
) -> BaseMotion | None:
    """The motion of a floating base at stamps t; None of one that is fixed, or where the log does not say.

    Args:
        recording: of the log.
        t: stamps [ns], (T,).
        q: configurations with the joints' positions, (T, nq).
        topic: where it is taken from.

    Raises:
        ShapeError: a topic that has no poses.
    """
    links = set(robot.link_names)
    poses = _of_topic(recording, topic)
    direct = [p for p in poses if p.kind != "tf"]
    if robot.base != "floating":
        if direct:
            recording.notes.append(
                f"{direct[0].topic} says how the base moves, and the robot has a fixed base: "
                'base="floating" uses it'
            )
        return None
    direct.sort(key=lambda p: (p.kind != "odometry", -len(p.t)))
    if direct:
        found = direct[0]
        R, p = _interpolated(found, t)
        frame, name, twist = found.child, found.topic, found.twist
        times = found.t
    else:
        chain = _chain([p for p in poses if p.kind == "tf"], links)
        if not chain:
            if not any(
                x.names and any(n.startswith(FLOATING_BASE) for n in x.names) for x in recording.blocks
            ):
                recording.notes.append("the log does not say how the base moves: it stays where it is")
            return None
        R, p = _composed(chain, t)
        frame, name, twist, times = chain[0].child, chain[0].topic, None, chain[0].t
    notes = _late(name, t, times)
    root = next(j.child_link for j in robot.joints if j.name == FLOATING_BASE)
    if frame not in links and frame:
        notes.append(f"{name}: frame {frame!r} is no link of the robot, taken as {root!r}")
    if frame in links and frame != root:
        R, p = _of_root(robot, frame, R, p, q)
        twist = None
    base = np.column_stack([_quaternions(R), p])
    rate = rates_of("floating", (t - t[0]) * 1e-9, base)
    return BaseMotion(name, base, _velocity(name, twist, times, t, R, rate, notes), notes)


def _of_topic(recording: Recording, topic: str | None) -> list[Poses]:
    poses: dict[tuple[str, ...], list[Poses]] = {}
    for p in recording.poses:
        if topic is None or p.topic == topic:
            poses.setdefault((p.topic, p.kind, p.parent, p.child), []).append(p)
    if topic is not None and not poses:
        known = sorted({p.topic for p in recording.poses})
        near = nearest_names(topic, known) or known
        advice = (
            f"did you mean {' or '.join(map(repr, near[:3]))}?" if near else "the log has no poses at all"
        )
        raise ShapeError(f"base_topic: {recording.source} has no poses in topic {topic!r}; {advice}")
    return [_together(parts) for parts in poses.values()]


def _together(parts: Sequence[Poses]) -> Poses:
    """All poses of one frame together, in the order of their stamps."""
    t, pose = np.concatenate([p.t for p in parts]), np.concatenate([p.pose for p in parts])
    twists = [p.twist for p in parts]
    twist = None if any(x is None for x in twists) else np.concatenate([x for x in twists if x is not None])
    good = np.isfinite(pose).all(axis=1) & (np.linalg.norm(pose[:, 3:], axis=1) > 0.5)
    _, order = np.unique(t[good], return_index=True)
    kept = np.flatnonzero(good)[order]
    first = parts[0]
    return Poses(
        first.topic, first.kind, first.parent, first.child, t[kept], pose[kept],
        None if twist is None else twist[kept],
    )  # fmt: skip


def _chain(edges: Sequence[Poses], links: set[str]) -> list[Poses]:
    """Frames from a link of the robot up to the outermost one; empty where no link hangs on another frame."""
    of_child = {e.child: e for e in edges if len(e.t)}
    start = next((e for e in of_child.values() if e.child in links and e.parent not in links), None)
    chain: list[Poses] = []
    while start is not None and start not in chain:
        chain.append(start)
        start = of_child.get(start.parent)
    return chain


def _composed(chain: Sequence[Poses], t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of the first frame of a chain in the outermost one, (T, 3, 3), (T, 3)."""
    R, p = _interpolated(chain[0], t)
    for edge in chain[1:]:
        R_up, p_up = _interpolated(edge, t)
        R, p = R_up @ R, p_up + np.einsum("tij,tj->ti", R_up, p)
    return R, p


def _interpolated(poses: Poses, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (T, 3, 3) and positions (T, 3) at stamps t; held before the first and after the last."""
    if not len(poses.t):
        raise ShapeError(f"{poses.topic}: no pose with finite numbers and a quaternion of unit length")
    own, at = (poses.t - t[0]).astype(float), (t - t[0]).astype(float)
    quaternions = continuous(poses.pose[:, 3:] / np.linalg.norm(poses.pose[:, 3:], axis=1, keepdims=True))
    columns = [np.interp(at, own, x) for x in (*poses.pose[:, :3].T, *quaternions.T)]
    return rotations(np.stack(columns[3:], axis=1)), np.stack(columns[:3], axis=1)


def continuous(quaternions: np.ndarray) -> np.ndarray:
    """Quaternions (T, 4) with signs such that each is near the one before."""
    signs = np.sign(np.einsum("ti,ti->t", quaternions[1:], quaternions[:-1]))
    return quaternions * np.cumprod(np.concatenate([[1.0], np.where(signs < 0.0, -1.0, 1.0)]))[:, None]


def rotations(quaternions: np.ndarray) -> np.ndarray:
    """Rotation matrices (T, 3, 3) of quaternions wxyz (T, 4) of any length."""
    unit = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    return np.moveaxis(np.array(quat_wxyz_to_rotation(unit.T).rows), 2, 0)


def _quaternions(R: np.ndarray) -> np.ndarray:
    """Unit quaternions wxyz (T, 4) of rotations (T, 3, 3), each near the one before."""
    return continuous(np.stack(rotation_to_quat_wxyz(np.moveaxis(R, 0, 2)), axis=1))


def _of_root(
    robot: Robot, link: str, R: np.ndarray, p: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pose of the base from that of a link, (T, 3, 3) and (T, 3)."""
    at_origin = q.copy()
    at_origin[:, :7] = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    R_link, p_link = forward_kinematics(robot, at_origin)[link]
    R_base = R @ np.swapaxes(R_link, 1, 2)
    return R_base, p - np.einsum("tij,tj->ti", R_base, p_link)


def quaternion_rates(quaternions: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """2 vec(q* r): of first derivatives the angular velocity in body axes, of second ones its derivative.

    Source: dq/dt = q omega / 2, and d2q/dt2 = q (alpha - |omega|^2 / 2) / 2.

    Args:
        quaternions: wxyz, (T, 4).
        rates: their first or second derivatives, (T, 4).
    """
    w, u = quaternions[:, :1], quaternions[:, 1:]
    found = w * rates[:, 1:] - rates[:, :1] * u - np.cross(u, rates[:, 1:])
    return 2.0 * found / np.sum(quaternions**2, axis=1, keepdims=True)


def rates_of(kind: str, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Velocities of a joint with a quaternion, from its positions.

    Args:
        kind: "floating" or "spherical".
        t: times [s], (T,).
        q: quaternions and, for a floating one, positions, (T, 7 or 4).
    """
    quaternions = continuous(q[:, :4])
    omega = quaternion_rates(quaternions, np.gradient(quaternions, t, axis=0))
    if kind == "spherical":
        return omega
    R = rotations(quaternions)
    return np.column_stack([omega, np.einsum("tji,tj->ti", R, np.gradient(q[:, 4:], t, axis=0))])


def _velocity(
    name: str,
    twist: np.ndarray | None,
    own: np.ndarray,
    t: np.ndarray,
    R: np.ndarray,
    rate: np.ndarray,
    notes: list[str],
) -> np.ndarray:
    """The twist of odometry in base axes at stamps t; the rate of the pose where there is none."""
    if twist is None or not np.isfinite(twist).all() or not twist.any():
        notes.append(f"{name}: velocities of the base are differences of its poses")
        return rate
    at = np.stack(
        [np.interp((t - t[0]).astype(float), (own - t[0]).astype(float), x) for x in twist.T], axis=1
    )
    rotated = np.column_stack([np.einsum("tji,tj->ti", R, at[:, k : k + 3]) for k in (0, 3)])
    size = np.linalg.norm(rate) or 1.0
    off, off_rotated = (float(np.linalg.norm(x - rate)) / size for x in (at, rotated))
    if off > ODD_TWIST and off_rotated < 0.5 * off:
        notes.append(f"{name}: its twist is in axes of the world, not of the base as it should be: rotated")
        return rotated
    if off > 1.0:
        notes.append(f"{name}: its twist is not the rate of its pose: differences of poses are used")
        return rate
    return at


def _late(name: str, t: np.ndarray, own: np.ndarray) -> list[str]:
    """In words, that poses do not cover the samples."""
    span = float(t[-1] - t[0])
    lacking = max(float(own[0] - t[0]), float(t[-1] - own[-1])) if len(own) > 1 else 0.0
    if lacking <= 0.01 * span:
        return []
    return [f"{name}: no poses for {lacking * 1e-9:.3g} s at the start or the end, where the base is held"]
