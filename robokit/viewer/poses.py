"""Motion as numbers to draw: poses of bodies, frames at display rate, the box round a whole motion.

A pose is seven numbers: position x y z [m], then quaternion x y z w (the order of the page's 3D library).
"""

from __future__ import annotations

import numpy as np

from robokit.dynamics import forward_kinematics
from robokit.errors import ShapeError
from robokit.model.geometry import Placement
from robokit.model.robot import Robot
from robokit.spatial.rotation import rotation_to_quat_wxyz
from robokit.viewer.nodes import Node, Role, local_box

MAX_FPS = 60.0
MAX_FRAMES = 1200


def body_poses(robot: Robot, q: np.ndarray) -> np.ndarray:
    """World poses of all bodies.

    Args:
        q: configurations, (T, nq).

    Returns:
        Poses of bodies 0 to nbodies, (T, nbodies + 1, 7) [m, unit quaternion xyzw].
    """
    q = np.ascontiguousarray(np.atleast_2d(np.asarray(q, dtype=float)))
    poses = forward_kinematics(robot, q)
    rotation = np.asarray(poses.rotation).reshape(len(q), -1, 3, 3)
    position = np.asarray(poses.position).reshape(len(q), -1, 3)
    result = np.zeros((len(q), len(robot.tree.parent), 7))
    result[:, :, 6] = 1.0
    done: set[int] = set()
    for k, link in enumerate(robot.links):
        if link.body in done:
            continue
        done.add(link.body)
        body_in_link = link.placement.inverse()
        result[:, link.body, :3] = position[:, k] + rotation[:, k] @ body_in_link.position
        result[:, link.body, 3:] = quaternions_xyzw(rotation[:, k] @ body_in_link.rotation)
    return result


def pose_numbers(placement: Placement) -> list[float]:
    """A placement as seven numbers, rounded to a micrometre and a microradian."""
    quat = quaternions_xyzw(np.asarray(placement.rotation, dtype=float)[None])[0]
    numbers = [*np.asarray(placement.position, dtype=float), *quat]
    return [round(float(number), 7) for number in numbers]


def relative_pose(parent: np.ndarray, child: np.ndarray) -> list[float]:
    """Pose of a child in its parent from the world poses of both, (7,) each."""
    inverse = parent[3:] * np.array([-1.0, -1.0, -1.0, 1.0])
    position = rotate(inverse, child[:3] - parent[:3])
    a, b, s, t = inverse[:3], child[3:6], inverse[3], child[6]
    quat = np.append(s * b + t * a + np.cross(a, b), s * t - a @ b)
    return [round(float(x), 9) for x in (*position, *quat)]


def quaternions_xyzw(rotation: np.ndarray) -> np.ndarray:
    """Unit quaternions of rotation matrices, without jumps of sign along the first axis.

    Args:
        rotation: (T, 3, 3).

    Returns:
        (T, 4), scalar last.
    """
    w, *xyz = rotation_to_quat_wxyz(np.moveaxis(np.asarray(rotation, dtype=float), 0, 2))
    quat = np.stack([*xyz, w], axis=1)
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    if len(quat) > 1:
        turned = np.sum(quat[1:] * quat[:-1], axis=1) < 0
        quat[1:] *= np.where(np.cumsum(turned) % 2, -1.0, 1.0)[:, None]
    return quat


def frame_indices(t: np.ndarray, max_fps: float = MAX_FPS) -> np.ndarray:
    """Which samples of a trajectory become frames.

    Args:
        t: sample times, increasing, (T,) [s].
        max_fps: frames per second at most.

    Returns:
        Increasing indices, the first and the last sample among them.

    Raises:
        ShapeError: max_fps is not a positive number.
    """
    if not max_fps > 0:
        raise ShapeError(f"max_fps: expected a positive number of frames per second, got {max_fps!r}")
    t = np.asarray(t, dtype=float)
    if len(t) < 2:
        return np.arange(len(t))
    count = int(min(MAX_FRAMES, np.ceil((t[-1] - t[0]) * max_fps) + 1))
    if count >= len(t):
        return np.arange(len(t))
    wanted = np.linspace(t[0], t[-1], max(count, 2))
    right = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    nearest = np.where(wanted - t[right - 1] < t[right] - wanted, right - 1, right)
    return np.unique(np.concatenate([[0], nearest, [len(t) - 1]]))


def bounds(nodes: list[Node], poses: np.ndarray, role: Role = "visual") -> np.ndarray:
    """The box that holds the robot over a whole motion.

    Args:
        nodes: what is drawn.
        poses: body poses, (T, nbodies + 1, 7).
        role: which nodes count.

    Returns:
        Lowest and highest corner, (2, 3) [m]; a unit box about the origin where nothing is drawn.
    """
    corners: dict[int, list[np.ndarray]] = {}
    for node in nodes:
        if node.role != role:
            continue
        box = np.array(local_box(node.geometry))
        eight = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
        corners.setdefault(node.body, []).append(eight @ node.placement.rotation.T + node.placement.position)
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for body, points in corners.items():
        cloud = np.concatenate(points)
        low_body, high_body = cloud.min(axis=0), cloud.max(axis=0)
        ends = np.stack([low_body, high_body])
        cloud = np.array(
            [[ends[i, 0], ends[j, 1], ends[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)]
        )
        world = rotate(poses[:, body, None, 3:], cloud[None]) + poses[:, body, None, :3]
        low, high = np.minimum(low, world.min(axis=(0, 1))), np.maximum(high, world.max(axis=(0, 1)))
    if not np.all(np.isfinite(low)):
        return np.array([[-0.5] * 3, [0.5] * 3])
    return np.stack([low, high])


def sane_frames(t: np.ndarray, poses: np.ndarray, size: float) -> int:
    """How many frames at the start can be trusted: a view must not be fitted to a motion that blew up.

    A frame is trusted while all its numbers are finite and no body is farther from its first place than twice
    the first speed and three times the Earth's gravity could have carried it, and ten sizes of the robot.

    Args:
        t: times, increasing, (T,) [s].
        poses: body poses, (T, nbodies + 1, 7).
        size: the robot's, see :func:`robokit.viewer.scene.drawn_size` [m].

    Returns:
        At least 1 and at most T: all frames from here on are not to be trusted.
    """
    t = np.asarray(t, dtype=float) - t[0]
    position = poses[:, 1:, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        moved = np.linalg.norm(position - position[0], axis=2).max(axis=1, initial=0.0)
        speed = moved[1] / t[1] if len(t) > 1 and t[1] > 0 and np.isfinite(moved[1]) else 0.0
        reached = 10.0 * size + 2.0 * speed * t + 1.5 * 9.81 * t**2
        sane = np.isfinite(poses).all(axis=(1, 2)) & (moved <= reached)
    sane[0] = True
    return int(np.argmin(sane)) if not sane.all() else len(t)


def rotate(quat_xyzw: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors turned by unit quaternions, broadcast over leading axes, (..., 3)."""
    imaginary, real = quat_xyzw[..., :3], quat_xyzw[..., 3:]
    twice = 2.0 * np.cross(imaginary, vectors)
    return vectors + real * twice + np.cross(imaginary, twice)
