"""Logs of a real robot as trajectories: ``read_log``.

Blocks of samples become series by joint, these one table at the times of the joint that has the most, and the
table the states of the robot. What is guessed, missing or odd on the way is warned of, in one line each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import path_argument, real_number
from robokit.conventions import FLOATING_BASE, LARGEST_ANGLE
from robokit.dataclass_tools import frozen
from robokit.dynamics import centroidal_momentum, forward_kinematics, kinetic_energy, potential_energy
from robokit.errors import ShapeError, UnknownName, WrongType, counted, listed, nearest_names, quoted, warn
from robokit.files import open_regular, read_arrays
from robokit.logs.bag_child import POSES, QUANTITIES
from robokit.logs.recording import (
    GAP,
    NANOSECONDS,
    Block,
    Coordinates,
    Poses,
    Recording,
    described,
    read_bag,
    read_table,
    robot_of_description,
    topics_of,
)
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot
from robokit.sim.trajectory import PARTS, Energy, Trajectory
from robokit.spatial.rotation import quat_wxyz_to_rotation, rotation_to_quat_wxyz

# ==== base motion =================================================================================
# How the base of a floating robot moved, from odometry, poses or the tree of frames (tf) of a log.

ODD_TWIST = 0.3  # share of a velocity that a twist may miss the pose's rate by; else its axes are looked at


@frozen(eq=False)
class BaseMotion:
    """The motion of a floating base."""

    topic: str  # where it came from
    q: np.ndarray  # unit quaternion wxyz and position [m], (T, 7)
    v: np.ndarray  # angular and linear velocity in base axes [rad/s; m/s], (T, 6)
    notes: list[str]  # what was noticed


def base_motion(
    robot: Robot, recording: Recording, t: np.ndarray, q: np.ndarray, topic: str | None = None
) -> BaseMotion | None:
    """The motion of a floating base at stamps t [ns], (T,); None of one that is fixed, or where the log does
    not say.

    q are configurations with the joints' positions, (T, nq). Raises ShapeError for a topic that has no poses.
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
            if not any(name.startswith(FLOATING_BASE) for x in recording.blocks for name in x.names):
                recording.notes.append("the log does not say how the base moves: it stays where it is")
            return None
        # Rotation and position of the first frame of the chain in the outermost one.
        R, p = _interpolated(chain[0], t)
        for edge in chain[1:]:
            R_up, p_up = _interpolated(edge, t)
            R, p = R_up @ R, p_up + np.einsum("tij,tj->ti", R_up, p)
        frame, name, twist, times = chain[0].child, chain[0].topic, None, chain[0].t
    notes = _late(name, t, times)
    root = next(j.child_link for j in robot.joints if j.name == FLOATING_BASE)
    if frame not in links and frame:
        notes.append(f"{name}: frame {frame!r} is no link of the robot, taken as {root!r}")
    if frame in links and frame != root:
        # The base's pose from that of the link.
        at_origin = q.copy()
        at_origin[:, :7] = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        R_link, p_link = forward_kinematics(robot, at_origin)[frame]
        R_base = R @ np.swapaxes(R_link, 1, 2)
        R, p = R_base, p - np.einsum("tij,tj->ti", R_base, p_link)
        twist = None
    base = np.column_stack([continuous(np.stack(rotation_to_quat_wxyz(np.moveaxis(R, 0, 2)), axis=1)), p])
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
    return replace(parts[0], t=t[kept], pose=pose[kept], twist=None if twist is None else twist[kept])


def _chain(edges: Sequence[Poses], links: set[str]) -> list[Poses]:
    """Frames from a link of the robot up to the outermost one; empty where no link hangs on another frame."""
    of_child = {e.child: e for e in edges if len(e.t)}
    start = next((e for e in of_child.values() if e.child in links and e.parent not in links), None)
    chain: list[Poses] = []
    while start is not None and start not in chain:
        chain.append(start)
        start = of_child.get(start.parent)
    return chain


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


def quaternion_rates(quaternions: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """2 vec(q* r): of first derivatives the angular velocity in body axes, of second ones its derivative.

    Source: dq/dt = q omega / 2, and d2q/dt2 = q (alpha - |omega|^2 / 2) / 2. Quaternions are wxyz, (T, 4), as
    are their first or second derivatives, ``rates``.
    """
    w, u = quaternions[:, :1], quaternions[:, 1:]
    found = w * rates[:, 1:] - rates[:, :1] * u - np.cross(u, rates[:, 1:])
    return 2.0 * found / np.sum(quaternions**2, axis=1, keepdims=True)


def rates_of(kind: str, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Velocities of a "floating" or "spherical" joint at times t, (T,) [s], from its positions.

    q has quaternions and, for a floating one, positions, (T, 7 or 4).
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


# ==== read ========================================================================================

BAGS = (".bag", ".mcap", ".db3")  # endings of bags; a folder is a bag of ROS 2
ROWS = 65536  # states whose energies are computed at once

DEGREES = 180.0 / math.pi


def read_log(
    path: str | os.PathLike[str],
    robot: Robot | None = None,
    *,
    topic: str | Sequence[str] | None = None,
    base: str | None = None,
    base_topic: str | None = None,
    start: float | None = None,
    end: float | None = None,
    rate: float | None = None,
    time_unit: str | None = None,
    degrees: bool = False,
    rename: Mapping[str, str] | None = None,
    missing: Mapping[str, float] | None = None,
    progress: bool = False,
) -> Trajectory:
    """Read the log of a real robot as a trajectory, matching joints by name.

    Formats are CSV (a header with joint names, alone or with position, velocity or effort), NumPy
    (.npz with t, q, v, tau, names; .npy), ROS 1 bags, ROS 2 bags (sqlite3 and MCAP) and MCAP files with
    sensor_msgs/JointState, control_msgs/DynamicJointState or foxglove.JointStates in CDR, ROS 1, JSON or
    protobuf. ROS is not needed. Bags are read in a separate process, with limited time and memory.

    The motion of a floating base comes from nav_msgs/Odometry, geometry_msgs/PoseStamped or /tf. Missing
    velocities are computed as differences of positions. Efforts are the joint forces ``tau``; that of a joint
    without efforts is 0. ``summary`` says what was found: "joints", "measured" (joints with positions),
    "velocities" and "efforts" (joints that have these), "start" (time of the first sample [s]), "source",
    "base_topic".

    Args:
        path: the file, or the folder of a ROS 2 bag.
        robot: the robot; None: that of /robot_description in the bag.
        topic: topics of joint states in a bag, one or several; by default all, and if two report the same
            joints, the one called joint_states.
        base: "fixed" or "floating", for a robot from /robot_description; None: floating if the log contains
            the motion of the base.
        base_topic: topic of the base's motion; by default odometry, otherwise a pose, otherwise /tf.
        start, end: part of the log to read [s], from its first sample.
        rate: samples per second [1/s], for a table without times.
        time_unit: unit of a table's times, "s", "ms", "us" or "ns"; guessed, with a warning, if None.
        degrees: whether angles and their rates are in degrees.
        rename: names in the log -> joints of the robot.
        missing: positions [rad | m] of joints that are not in the log; by default neutral.
        progress: whether to show a bar on stderr.

    Returns:
        the trajectory, whose times begin at the first sample, with ``tau`` (None if there are no efforts),
        energies and momenta; its ``work`` is that of the efforts.

    Raises:
        ShapeError: the file is not a log, is damaged, or contains no joints of the robot; or no robot is
            given and the log contains none.
        UnknownName: ``rename`` or ``missing`` names a joint that the robot does not have.
        WrongType: robot is not a Robot.
        MissingDependency: rosbags or mcap is not installed: pip install 'robokit[logs]'.

    Warns:
        UserWarning: something in the log is missing, inconsistent, or had to be guessed.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.1, record_every=1)
        >>> log = rk.read_log(run.to_csv("swing.csv"), robot)
        >>> bool(abs(log.q - run.q).max() < 1e-6)
        True
    """
    path = path_argument("path", path)
    if not path.exists():
        raise ShapeError(
            f"path: there is no file {str(path)!r}; give a CSV or NumPy table, a ROS bag, or an MCAP file"
        )
    if robot is not None:
        check_robot(robot)
    topics = (topic,) if isinstance(topic, str) else tuple(topic or ())
    if time_unit is not None and time_unit not in NANOSECONDS:
        raise ShapeError(f"time_unit: expected s, ms, us or ns, got {time_unit!r}")
    if rate is not None:
        rate = real_number("rate", rate, above=0.0)
    for what, given in (("rename", rename), ("missing", missing)):
        if not isinstance(given, Mapping | None):
            raise WrongType(what, given, "a mapping by name, or None")
    options = _Options(base_topic, start, end, degrees, rename or {}, missing or {})
    if robot is not None:
        for option, names in (("rename", options.rename.values()), ("missing", options.missing)):
            for name in names:
                known = {*robot.joint_names, *(j.name for j in robot.mimic_joints)}
                if name not in known:
                    raise UnknownName("joint", name, known, f"in robot {robot.name!r} ({option})")
    if is_bag(path):
        recording = read_bag(path, topics, progress)
        robot = robot or _described(recording, base)
    else:
        if robot is None:
            raise ShapeError(f"robot: {path} does not describe its robot; give one: read_log(path, robot)")
        if path.suffix.lower() == ".npz" and (own := _own_file(path, robot)) is not None:
            return own
        if topics:
            raise ShapeError(f"topic: {path} is a table, which has no topics")
        recording = read_table(path, coordinates_of(robot), rate, time_unit, rename)
    return _trajectory(recording, robot, options)


def is_bag(path: Path) -> bool:
    """Whether a path is that of a bag, by its ending, or a folder."""
    return path.is_dir() or path.suffix.lower() in BAGS


def base_of(path: Path) -> str:
    """The base of a log, "floating" where topics or columns say how it moves; ShapeError for a bad bag."""
    if is_bag(path):
        kinds = topics_of(path).values()
        return "floating" if any(POSES.get(kind) in ("odometry", "pose") for kind in kinds) else "fixed"
    try:
        if path.suffix.lower() == ".npz":
            names = " ".join(read_arrays(path))
        else:
            with open_regular(path) as file:
                names = file.readline(1 << 20).decode("utf-8", "replace")
    except (OSError, ValueError):
        return "fixed"  # reading the file reports what is wrong
    return "floating" if FLOATING_BASE in names else "fixed"


@frozen
class _Options:
    """Arguments of :func:`read_log` that say how a recording is brought to a robot."""

    base_topic: str | None
    start: float | None
    end: float | None
    degrees: bool
    rename: Mapping[str, str]
    missing: Mapping[str, float]


def _described(recording: Recording, base: str | None) -> Robot:
    """The robot of /robot_description; ShapeError without one, UrdfError where it cannot become a robot."""
    text = described(recording)
    if base not in (None, "fixed", "floating"):
        raise ShapeError(f"base: expected 'fixed' or 'floating', got {base!r}")
    robot = robot_of_description(text, recording.source, base=base or "fixed")
    root = robot.links[0].name
    moves = any(p.kind != "tf" or p.child == root for p in recording.poses)
    if base is None and moves:
        robot = robot_of_description(text, recording.source, base="floating")
    return robot


def _own_file(path: Path, robot: Robot) -> Trajectory | None:
    """The trajectory of a file that ``Trajectory.save`` wrote; None for others."""
    try:
        if not read_arrays(path, ("about",)):
            return None
    except (OSError, ValueError):
        return None
    return Trajectory.load(path, robot=robot)


# ---- names -----------------------------------------------------------------------------------------------


def parts_of(joint: Joint, of_v: bool) -> list[str]:
    """Names of a joint's coordinates, or of its velocities."""
    place = joint.v_slice if of_v else joint.q_slice
    parts = PARTS.get(joint.kind)
    if place.stop - place.start == 1 or parts is None:
        return [joint.name]
    return [f"{joint.name}/{part}" for part in parts[of_v]]


def coordinates_of(robot: Robot) -> Coordinates:
    """The names that the columns of a table may have."""
    q, v = ([n for joint in robot.joints for n in parts_of(joint, k)] for k in (False, True))
    single = tuple(n for joint in robot.joints for n in parts_of(joint, True) if n == joint.name)
    return Coordinates((*q, *(j.name for j in robot.mimic_joints)), tuple(v), single)


# ---- series by joint -------------------------------------------------------------------------------------


@frozen(eq=False)
class _Series:
    """Samples of joints that are always in the same messages."""

    names: tuple[str, ...]  # of the joints, n
    t: np.ndarray  # increasing stamps [ns], (M,)
    values: np.ndarray  # position, velocity, effort, (3, M, n); NaN for what is not there


def _series(topic: str, blocks: Sequence[Block], notes: list[str]) -> Iterator[_Series]:
    """The joints of one topic, those that are in the same messages together; stamps in order."""
    homes: dict[str, list[int]] = {}
    for k, block in enumerate(blocks):
        for name in block.names:
            homes.setdefault(name, []).append(k)
    groups: dict[tuple[int, ...], list[str]] = {}
    for name, where in homes.items():
        groups.setdefault(tuple(where), []).append(name)
    said: set[str] = set()
    for places, names in groups.items():
        parts = []
        for k in places:
            columns = [blocks[k].names.index(name) for name in names]
            empty = np.full((len(blocks[k].t), len(names)), np.nan)
            parts.append([empty if x is None else x[:, columns] for x in blocks[k].values])
        order = np.argsort(np.concatenate([blocks[k].number for k in places]), kind="stable")
        t = np.concatenate([blocks[k].t for k in places])[order]
        values = np.stack([np.concatenate([part[m] for part in parts])[order] for m in range(3)])
        kept, more = _in_order(t)
        said.update(more)
        yield _Series(tuple(names), t[kept], values[:, kept])
    notes += [f"{topic or 'the table'}: {text}" for text in sorted(said)]


def _in_order(t: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Indices that bring stamps into order, one of each, and what was wrong with them in words."""
    notes: list[str] = []
    kept = np.arange(len(t))
    steps = np.diff(t)
    if (steps > 0).all():
        return kept, notes
    forward = steps[steps > 0]
    usual = float(np.median(forward if len(forward) else -steps))  # all in reverse: the last row comes first
    resets = np.flatnonzero(steps < -GAP * usual)
    if len(resets):
        edges = np.concatenate([[0], resets + 1, [len(t)]])
        longest = int(np.argmax(np.diff(edges)))
        kept = kept[edges[longest] : edges[longest + 1]]
        back = 1e-9 * -float(steps[resets].min())
        notes.append(
            f"the clock goes back by {back:.3g} s ({len(resets)} time{'s' * (len(resets) > 1)}), as when a "
            f"log is played twice: of {len(resets) + 1} parts the longest is read, {len(kept)} samples"
        )
    late = int(np.count_nonzero(np.diff(t[kept]) < 0))
    if late:
        kept = kept[np.argsort(t[kept], kind="stable")]
        notes.append(f"{counted(late, 'stamp')} out of order, sorted")
    last = np.append(np.diff(t[kept]) > 0, True)
    if not last.all():
        notes.append(f"{counted(int(np.count_nonzero(~last)), 'stamp')} twice: the later sample counts")
    return kept[last], notes


def _selected(recording: Recording, known: set[str]) -> list[_Series]:
    """The series of a recording; of topics with the same ``known`` joints of the robot those of one."""
    by_topic: dict[str, list[Block]] = {}
    for block in recording.blocks:
        by_topic.setdefault(block.topic, []).append(block)

    def rank(topic: str) -> tuple[Any, ...]:
        names = {name for block in by_topic[topic] for name in block.names}
        return (
            not topic.endswith("joint_states"),
            -len(names & known),
            -sum(len(b.t) for b in by_topic[topic]),
        )

    taken: set[str] = set()
    found, left = list[_Series](), list[str]()
    for topic in sorted(by_topic, key=rank):
        names = {name for block in by_topic[topic] for name in block.names} & known
        if names and not names - taken:
            left.append(topic)
            continue
        for series in _series(topic, by_topic[topic], recording.notes):
            own = [k for k, name in enumerate(series.names) if name not in taken]
            if own:
                found.append(_Series(tuple(series.names[k] for k in own), series.t, series.values[:, :, own]))
        taken |= names
    if left:
        recording.notes.append(
            f"{', '.join(left)}: the same joints as in {next(iter(sorted(by_topic, key=rank)))}; not read, "
            "topic= (--topic) takes others"
        )
    return [s for s in found if len(s.t)]


def _with_followed(robot: Robot, series: list[_Series], notes: list[str]) -> list[_Series]:
    """The series, and those of joints that only mimic joints in the log tell of."""
    if robot.coupling is None:
        return series
    there = {name for s in series for name in s.names}
    for joint in robot.mimic_joints:
        k, m, offset = robot.coupling.q_from[robot.tree.q_slice[joint.body].start]
        followed = next((j.name for j in robot.joints if j.q_slice.start == k), None)
        if followed is None or followed in there or joint.name not in there or not m:
            continue
        own = next(s for s in series if joint.name in s.names)
        x = own.values[:, :, own.names.index(joint.name)]
        values = np.stack([(x[0] - offset) / m, x[1] / m, x[2] * m])[:, :, None]
        series = [*series, _Series((followed,), own.t, values)]
        there.add(followed)
        notes.append(f"{followed!r} is taken from {joint.name!r}, which mimics it")
    return series


# ---- one table at common times ---------------------------------------------------------------------------


def _interval(series: Sequence[_Series], options: _Options, source: str) -> tuple[np.ndarray, int]:
    """The times of the samples [ns], (T,): those of the series with the most, and the log's first sample.

    A series that covers less than half of the longest, such as a gripper that spoke once, shortens nothing.
    """
    spans = [int(s.t[-1] - s.t[0]) for s in series]
    long = [s for s, span in zip(series, spans, strict=True) if 2 * span >= max(spans)]
    first, last = max(int(s.t[0]) for s in long), min(int(s.t[-1]) for s in long)
    most = max(long, key=lambda s: (len(s.t), len(s.names)))
    t = most.t[(most.t >= first) & (most.t <= last)]
    origin = int(t[0]) if len(t) else first
    for name, wanted in (("start", options.start), ("end", options.end)):
        if wanted is not None:
            limit = origin + round(1e9 * real_number(name, wanted))
            t = t[t >= limit] if name == "start" else t[t <= limit]
    if len(t) < 2:
        if last == first:
            raise ShapeError(f"{source}: all samples are of one time, and a trajectory needs two")
        if last < first:
            raise ShapeError(f"{source}: its joints were not recorded at the same time")
        span, count = f"{(last - first) * 1e-9:.4g} s", f"{len(t)} sample{'s' * (len(t) != 1)}"
        raise ShapeError(
            f"{source}: {count} between start and end, a trajectory needs 2; the log covers {span}"
        )
    return t, origin


def _trajectory(recording: Recording, robot: Robot, options: _Options) -> Trajectory:
    """The recording as states of the robot."""
    source = recording.source
    new = options.rename.get
    blocks = [replace(x, names=tuple(new(name, name) for name in x.names)) for x in recording.blocks]
    recording = Recording(source, blocks, recording.poses, None, recording.topics, recording.notes)
    known = {*coordinates_of(robot).q, *coordinates_of(robot).v}
    series = _with_followed(robot, _selected(recording, known), recording.notes)
    used = [s for s in series if known & set(s.names)]
    if not used:
        _no_joint(robot, sorted({name for s in series for name in s.names}), source)
    t, origin = _interval(used, options, source)
    table = _Table(robot, t, used, options)
    _tell_names(robot, table, series, options)
    q, v, tau = table.states()
    base = base_motion(robot, recording, t, q, options.base_topic)
    if base is not None:
        q[:, :7], v[:, :6] = base.q, base.v
    notes = recording.notes + table.notes + ([] if base is None else base.notes) + gaps(t)
    notes += check_states(robot, table.measured, q, options.degrees)
    for note in [*notes, *check_rates(robot, t, table.velocities, q, v)]:
        warn(f"{source}: {note}", UserWarning)
    summary = {
        "robot": robot.name, "source": source, "dt": float(np.median(np.diff(t))) * 1e-9,
        "start": origin * 1e-9, "joints": list(robot.joint_names), "measured": table.measured,
        "velocities": table.velocities, "efforts": table.efforts,
        "base_topic": "" if base is None else base.topic,
    }  # fmt: skip
    return logged_trajectory(robot, (t - origin) * 1e-9, q, v, tau if table.efforts else None, summary)


def logged_trajectory(
    robot: Robot, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray | None, summary: dict[str, Any]
) -> Trajectory:
    """Measured states as a trajectory, with energies, momenta and the work of the forces."""
    T = len(t)
    kinetic, potential, momentum = np.zeros(T), np.zeros(T), np.zeros((T, 6))
    for first in range(0, T, ROWS):
        part = slice(first, first + ROWS)
        kinetic[part] = kinetic_energy(robot, q[part], v[part])
        potential[part] = potential_energy(robot, q[part])
        if robot.total_mass > 0:
            momentum[part] = centroidal_momentum(robot, q[part], v[part])
    power = np.zeros(T) if tau is None else np.einsum("ij,ij->i", tau, v)
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(t))])
    energy = Energy(kinetic, potential, np.zeros(T), work)
    return Trajectory(t, q, v, energy, momentum, np.zeros((T, 3)), robot, tau, summary=summary)


def _no_joint(robot: Robot, names: list[str], source: str) -> None:
    joints = [name for name in robot.joint_names if name != FLOATING_BASE]
    own, other_names = (listed(map(quoted, each)) or "none" for each in (joints, names))
    near = [n for name in names[:100] for n in nearest_names(name, joints, 1)][:1]
    other = next((name for name in names if near and nearest_names(name, near, 1)), "")
    hint = f"; rename={{{other!r}: {near[0]!r}}} joins two names" if near else ""
    raise ShapeError(
        f"{source}: none of its joints is one of robot {robot.name!r}: the log has "
        f"{other_names}; the robot has {own}{hint}"
    )


def _tell_names(robot: Robot, table: _Table, series: Sequence[_Series], options: _Options) -> None:
    """Note joints of the log that the robot lacks, and joints of the robot that the log lacks."""
    coordinates = coordinates_of(robot)
    known = {*coordinates.q, *coordinates.v, *(j.name for j in robot.fixed_joints)}
    strangers = sorted({name for s in series for name in s.names} - known)
    lacking = [j.name for j in robot.joints if j.name not in table.measured and j.name != FLOATING_BASE]
    if strangers:
        hints = [(name, near[0]) for name in strangers[:100] if (near := nearest_names(name, lacking, 1))]
        pairs = ", ".join(f"{a!r} is {b!r}" for a, b in hints[:3])
        hint = f"; perhaps {pairs}: rename= (--rename)" if hints else ""
        table.notes.append(
            f"{len(strangers)} joint{'s' * (len(strangers) > 1)} that robot {robot.name!r} has not: "
            f"{listed(strangers)}{hint}"
        )
    lacking = [name for name in lacking if name not in options.missing]
    if lacking:
        table.notes.append(
            f"no positions of {len(lacking)} of {len(robot.joints)} joints, which stay at 0: "
            f"{listed(lacking)}; missing= (--missing) gives others"
        )


class _Table:
    """The samples of all joints at common times.

    ``measured``, ``velocities``, ``efforts``: joints with each of them, in the robot's order; ``notes``: what
    was noticed.
    """

    def __init__(self, robot: Robot, t: np.ndarray, series: Sequence[_Series], options: _Options) -> None:
        self.robot, self.t, self.options = robot, t, options
        self.notes: list[str] = []
        self._where = {name: (s, k) for s in series[::-1] for k, name in enumerate(s.names)}
        self._broken: dict[str, int] = {}
        self._values: dict[tuple[str, int], np.ndarray] = {}
        joints = [
            (joint.name, [parts_of(joint, of_v) for of_v in (False, True, True)]) for joint in robot.joints
        ]
        self.measured, self.velocities, self.efforts = (
            [n for n, parts in joints if all(np.isfinite(self._column(p, m)).all() for p in parts[m])]
            for m in range(3)
        )
        held = [s for s in series if s.t[0] > t[0] or s.t[-1] < t[-1]]
        late = [
            n for s in held if max(s.t[0] - t[0], t[-1] - s.t[-1]) > 0.01 * (t[-1] - t[0]) for n in s.names
        ]
        if late:
            self.notes.append(f"held where they have no samples, at the start or the end: {listed(late)}")
        if len({len(s.t) for s in series}) > 1 or any(not np.array_equal(s.t, series[0].t) for s in series):
            self.notes.append(
                "joints come in several messages: interpolated to the times of those with the most"
            )
        for text, count in self._broken.items():
            self.notes.append(counted(count, "sample") + text)

    def _column(self, name: str, m: int) -> np.ndarray:
        """Values at the common times, (T,); NaN where the log has none."""
        if (name, m) not in self._values:
            self._values[name, m] = self._interpolated(name, m)
        return self._values[name, m]

    def _interpolated(self, name: str, m: int) -> np.ndarray:
        if name not in self._where:
            return np.full(len(self.t), np.nan)
        series, k = self._where[name]
        values = series.values[m, :, k]
        joints = (*self.robot.joints, *self.robot.mimic_joints)
        kind = next((joint.kind for joint in joints if joint.name == name), "")
        if self.options.degrees and kind in ("revolute", "continuous") and m < 2:
            values = values / DEGREES
        if kind in ("revolute", "continuous") and m == 0:
            values = np.where(np.abs(values) <= LARGEST_ANGLE, values, np.nan)
        bad = int(np.count_nonzero(~np.isfinite(values)))
        if 0 < bad < len(values):
            self._broken[f" of {name!r} ({QUANTITIES[m]}) without a usable number: interpolated"] = bad
        # Straight between samples; NaN are left out, all NaN stay. Joints that turn without end may jump
        # from pi to -pi.
        t, turns = self.t, kind == "continuous" and m == 0
        good = np.isfinite(values)
        if not good.any():
            return np.full(len(t), np.nan)
        if good.all() and len(series.t) == len(t) and np.array_equal(series.t, t):
            return values
        known = np.unwrap(values[good]) if turns else values[good]
        return np.interp((t - t[0]).astype(float), (series.t[good] - t[0]).astype(float), known)

    def states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (T, nq), v (T, nv) and tau (T, nv)."""
        robot, T = self.robot, len(self.t)
        q = np.tile(robot.neutral(), (T, 1))
        v, tau = np.zeros((T, robot.nv)), np.zeros((T, robot.nv))
        measured, velocities, efforts = set(self.measured), set(self.velocities), set(self.efforts)
        differences, unwrapped = list[str](), list[str]()
        for joint in robot.joints:
            name = joint.name
            for place, part in enumerate(parts_of(joint, False), joint.q_slice.start):
                if name in measured:
                    q[:, place] = self._column(part, 0)
                elif name in self.options.missing:
                    q[:, place] = self.options.missing[name]
            self._make_unit(joint, q)
            if name in measured and joint.kind == "continuous":
                smooth = np.unwrap(q[:, joint.q_slice.start])
                if not np.allclose(smooth, q[:, joint.q_slice.start]):
                    unwrapped.append(name)
                    q[:, joint.q_slice.start] = smooth
            for place, part in enumerate(parts_of(joint, True), joint.v_slice.start):
                if name in velocities:
                    v[:, place] = self._column(part, 1)
                if name in efforts:
                    tau[:, place] = self._column(part, 2)
            if name in measured and name not in velocities and len(self.t) > 1:
                differences.append(name)
                v[:, joint.v_slice] = self._differences(joint, q)
        if differences:
            whose = "any joint" if len(differences) == len(self.measured) else listed(differences)
            self.notes.append(f"no velocities of {whose}: they are differences of its positions")
        if unwrapped:
            self.notes.append(f"turns of +-pi are taken out of {listed(unwrapped)}")
        lacking = [name for name in self.measured if name not in self.efforts and name != FLOATING_BASE]
        if self.efforts and lacking:
            self.notes.append(f"no efforts of {listed(lacking)}: 0")
        self._check_followers(q)
        return q, v, tau

    def _make_unit(self, joint: Joint, q: np.ndarray) -> None:
        offset = self.robot.tree.joint[joint.body].kind.quaternion
        if offset is None or joint.name not in self.measured:
            return
        place = slice(joint.q_slice.start + offset, joint.q_slice.start + offset + 4)
        size = np.linalg.norm(q[:, place], axis=1, keepdims=True)
        if not (abs(size - 1.0) < 0.1).all():
            raise ShapeError(f"the quaternion of {joint.name!r} is not of unit length: {size.min():.3g}")
        q[:, place] /= size

    def _differences(self, joint: Joint, q: np.ndarray) -> np.ndarray:
        t = (self.t - self.t[0]) * 1e-9
        if joint.kind in ("floating", "spherical"):
            return rates_of(joint.kind, t, q[:, joint.q_slice])
        return np.gradient(q[:, joint.q_slice], t, axis=0)

    def _check_followers(self, q: np.ndarray) -> None:
        """Note coupled mimic joints that the log has elsewhere than the joint that they follow says."""
        coupling = self.robot.coupling
        for joint in self.robot.mimic_joints if coupling is not None else ():
            assert coupling is not None
            logged = self._column(joint.name, 0)
            k, m, offset = coupling.q_from[self.robot.tree.q_slice[joint.body].start]
            followed = self.robot.joints[[j.q_slice.start for j in self.robot.joints].index(k)]
            if not np.isfinite(logged).all():
                continue
            off = float(np.abs(m * q[:, k] + offset - logged).max())
            if off > 0.05 * max(float(np.ptp(logged)), float(np.abs(logged).max())):
                self.notes.append(
                    f"{joint.name!r} is up to {off:.3g} off the position that its mimic law of "
                    f"{followed.name!r} gives"
                )


# ---- what is odd about the states: units, signs, gaps --------------------------------------------


def gaps(t: np.ndarray) -> list[str]:
    """Gaps between stamps [ns], in words."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    long = np.flatnonzero(steps > GAP * usual)
    if not len(long):
        return []
    k = long[np.argmax(steps[long])]
    return [
        f"{len(long)} gap{'s' * (len(long) > 1)} without samples, the longest {steps[k] * 1e-9:.3g} s at "
        f"t = {(t[k] - t[0]) * 1e-9:.4g} s"
    ]


def check_states(robot: Robot, measured: list[str], q: np.ndarray, degrees: bool) -> list[str]:
    """What is odd about measured states q, (T, nq), in words; ``degrees``: they were taken as degrees."""
    notes = []
    outside, turned = [], []
    for joint in robot.joints:
        if joint.name not in measured or joint.q_slice.stop - joint.q_slice.start != 1:
            continue
        x = q[:, joint.q_slice.start]
        low, high = joint.lower, joint.upper
        if joint.kind == "continuous":
            low, high = -2 * math.pi, 2 * math.pi
        if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
            continue
        slack = 0.05 * (high - low)
        past = max(low - float(x.min()), float(x.max()) - high)
        if past <= slack:
            continue
        outside.append((past, joint.name))
        as_radians = x * (math.pi / 180)
        if joint.kind in ("revolute", "continuous") and past > high - low:
            turned.append(as_radians.min() >= low - slack and as_radians.max() <= high + slack)
    if turned and all(turned) and not degrees:
        notes.append(
            f"{len(turned)} joints are far past their limits, and within them as degrees: if the log is in "
            "degrees, degrees=True (--degrees)"
        )
    elif outside:
        past, name = max(outside)
        notes.append(
            f"{len(outside)} joint{'s are' if len(outside) > 1 else ' is'} past limits of the description, "
            f"{name!r} by {past:.3g}; look at units, zeros and signs of the log"
        )
    return notes


WINDOWS = 20  # parts of a log in which velocities are compared with changes of position: noise averages out
ODD_SHARE = 0.3  # fraction of a joint's path that velocities may miss


STANDS_STILL = 10.0  # times the path that noise makes of a joint at rest: joints with less are not compared


def check_rates(robot: Robot, t: np.ndarray, names: list[str], q: np.ndarray, v: np.ndarray) -> list[str]:
    """Measured velocities that are not the rates of the positions, in words.

    t are stamps [ns], (T,), ``names`` joints with measured velocities, q and v the states, (T, nq) and (T,
    nv).
    """
    seconds = (t - t[0]) * 1e-9
    edges = np.unique(np.linspace(0, len(t) - 1, WINDOWS + 1).astype(int))
    odd = []
    for joint in robot.joints:
        if joint.name not in names or joint.q_slice.stop - joint.q_slice.start != 1:
            continue
        speed = v[:, joint.v_slice.start]
        way = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(seconds))])
        of_v, of_q = np.diff(way[edges]), np.diff(q[edges, joint.q_slice.start])
        size = float(np.linalg.norm(of_q))
        x = q[:, joint.q_slice.start]
        # What noise alone makes of the ways: second differences of white noise have 6 times its variance.
        noise = float(np.std(np.diff(x, 2)) / np.sqrt(6.0) * np.sqrt(2.0 * len(of_q))) if len(x) > 2 else 0.0
        if size > STANDS_STILL * noise and float(np.linalg.norm(of_v - of_q)) > ODD_SHARE * size:
            odd.append((joint.name, float(of_v @ of_q) / size**2))
    if not odd:
        return []
    factors = listed((f"{name} {factor:.3g}" for name, factor in odd), 4)
    return [
        "velocities are not the rates of the positions, but these multiples of them: "
        f"{factors} (-1: a sign; 57.3 or 0.0175: degrees; 0: not measured)"
    ]
