"""ROS 1 and ROS 2 bags and MCAP files, read without ROS by the packages rosbags and mcap."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from robokit.child_process import Child, OutOfBounds
from robokit.errors import MissingDependency, ShapeError, UrdfError, listed, nearest_names, one_line
from robokit.files import open_regular
from robokit.logs import bag_child
from robokit.logs.recording import Block, Poses, Recording
from robokit.model.robot import Robot

MESSAGES = 4096
"""Messages of one answer of the child, each of which has bounds of time and memory of its own."""

BAR = "{desc} {percentage:3.0f} % |{bar}| {remaining} left"

MISSING = {"mcap_protobuf": "mcap-protobuf-support", "google": "mcap-protobuf-support"}
"""Package on PyPI of a module, where the two differ."""

MOST_TOPICS = 20
"""Topics that a message lists."""


def read_bag(path: Path, topics: tuple[str, ...] = (), progress: bool = False) -> Recording:
    """The states of joints, poses and the description of the robot in a bag.

    Args:
        path: a .bag or .mcap file, a .db3 file, or the folder of a ROS 2 bag.
        topics: of states of joints, those to read; all by default.
        progress: whether to show a bar on stderr.

    Raises:
        ShapeError: not such a file, a damaged one, or one without states of joints; lists its topics.
        UnknownName: a topic that it has not.
        MissingDependency: rosbags or mcap is not installed.
    """
    _check_files(path)
    recording = Recording(str(path))
    try:
        with Child(bag_child.__file__, work="reads") as child:
            found = _ask(child, path, ("open", str(path.absolute())))
            recording.topics = found["topics"]
            wanted = _wanted(recording, topics)
            _ask(child, path, ("read", sorted(wanted)))
            _read(child, path, recording, progress)
    except OutOfBounds as problem:
        raise ShapeError(f"{path}: {problem}") from problem
    return recording


def topics_of(path: Path) -> dict[str, str]:
    """The type of each topic of a bag.

    Raises:
        ShapeError, MissingDependency: as in :func:`read_bag`.
    """
    _check_files(path)
    try:
        with Child(bag_child.__file__, work="reads") as child:
            found: dict[str, str] = _ask(child, path, ("open", str(path.absolute())))["topics"]
            return found
    except OutOfBounds as problem:
        raise ShapeError(f"{path}: {problem}") from problem


def robot_description(path: Path) -> str:
    """The text of /robot_description in a bag.

    Raises:
        ShapeError: there is none.
        MissingDependency: as in :func:`read_bag`.
    """
    recording = Recording(str(path))
    _check_files(path)
    try:
        with Child(bag_child.__file__, work="reads") as child:
            recording.topics = _ask(child, path, ("open", str(path.absolute())))["topics"]
            _ask(child, path, ("read", sorted(_descriptions(recording.topics))))
            _read(child, path, recording, False)
    except OutOfBounds as problem:
        raise ShapeError(f"{path}: {problem}") from problem
    return described(recording)


def described(recording: Recording) -> str:
    """The description of the robot in a recording.

    Raises:
        ShapeError: there is none.
    """
    if recording.description is None:
        raise ShapeError(
            f"robot: {recording.source} has no /robot_description (std_msgs/String); give the robot: "
            "read_log(path, robot)"
        )
    return recording.description


def robot_of_description(text: str, source: str, **options: Any) -> Robot:
    """The robot of a /robot_description.

    Args:
        text: of the URDF.
        source: the bag, for messages.
        options: of robokit.loads_urdf.

    Raises:
        UrdfError: it cannot become a robot.
    """
    from robokit.urdf import loads_urdf

    try:
        return loads_urdf(text, **options)
    except UrdfError as error:
        words = str(error).replace("<string>", f"{source}: /robot_description")
        raise UrdfError(words, error.diagnostics) from error


def _descriptions(kinds: dict[str, str]) -> set[str]:
    return {t for t, kind in kinds.items() if kind == bag_child.TEXT and t.endswith("robot_description")}


def _check_files(path: Path) -> None:
    """See that there are only regular files: a pipe would block whoever opens it."""
    files = [path] if not path.is_dir() else [path / "metadata.yaml"]
    for file in files:
        try:
            open_regular(file).close()
        except FileNotFoundError:
            if file is path:
                raise ShapeError(f"{path}: there is no such file") from None
            raise ShapeError(
                f"{path}: a folder without metadata.yaml, no ROS 2 bag; give its .db3 or .mcap file"
            ) from None
        except (OSError, ValueError) as problem:
            raise ShapeError(f"{file}: {problem}") from None


def _ask(child: Child, path: Path, question: Any) -> dict[str, Any]:
    found: dict[str, Any] = child.ask(question)
    if "missing" in found:
        name = str(found["missing"]).partition(".")[0]
        package = MISSING.get(name, name)
        raise MissingDependency(f"{path}: needs {package}: pip install 'robokit[logs]'")
    if "problem" in found:
        raise ShapeError(f"{path}: cannot be read as a bag: {one_line(str(found['problem']), 300)}")
    return found


def _wanted(recording: Recording, topics: tuple[str, ...]) -> set[str]:
    """The topics to read.

    Raises:
        ShapeError: a topic that is not there, or none that has states of joints.
    """
    kinds = recording.topics
    joints = {t for t, kind in kinds.items() if kind in bag_child.JOINTS or "JointState" in kind}
    for topic in topics:
        if topic not in kinds:
            near = nearest_names(topic, kinds) or sorted(joints)
            advice = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has " + _topics(kinds)
            raise ShapeError(f"topic: {recording.source} has no topic {topic!r}; {advice}")
    if not joints and not topics:
        raise ShapeError(
            f"{recording.source}: no topic has states of joints (sensor_msgs/JointState, "
            "control_msgs/DynamicJointState, foxglove.JointStates); " + _topics(kinds)
        )
    others = {t for t, kind in kinds.items() if kind in bag_child.POSES}
    return (set(topics) or joints) | others | _descriptions(kinds)


def _topics(kinds: dict[str, str]) -> str:
    if not kinds:
        return "it has no topics at all"
    topics = (f"{topic} ({kind or 'no type'})" for topic, kind in sorted(kinds.items()))
    return f"its topics: {listed(topics, MOST_TOPICS)}"


def _read(child: Child, path: Path, recording: Recording, progress: bool) -> None:
    bar = None
    if progress:
        from tqdm import tqdm

        bar = tqdm(total=1.0, desc="reading", leave=False, file=sys.stderr, bar_format=BAR)
    skipped: Counter[tuple[str, str]] = Counter()
    unstamped: Counter[str] = Counter()
    done, share = False, 0.0
    while not done:
        found = _ask(child, path, ("next", MESSAGES))
        done = found["done"]
        if bar is not None:
            bar.update(max(0.0, found["share"] - share))
        share = max(share, found["share"])
        for topic, names, number, stamps, received, values in found["blocks"]:
            unstamped[topic] += int(np.count_nonzero(stamps == 0))
            t = np.where(stamps == 0, received, stamps)
            recording.blocks.append(Block(topic, tuple(names), number, t, values))
        recording.poses += [Poses(*row) for row in found["poses"]]
        for _, text in found["texts"]:
            recording.description = text or recording.description
        for topic, why, n in found["skipped"]:
            skipped[topic, why] += n
        recording.notes += found["notes"]
    if bar is not None:
        bar.close()
    for (name, why), n in skipped.items():
        recording.notes.append(f"{name}: {n} message{'s' * (n > 1)} left out: {one_line(why, 200)}")
    for name, n in unstamped.items():
        if n:
            recording.notes.append(f"{name}: {n} messages without a stamp, taken at the time of recording")
