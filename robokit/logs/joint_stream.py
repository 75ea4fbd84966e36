"""States of joints that come in line by line, as JSON: what drives a live view.

{"name": ["hip", "knee"], "position": [0.1, 0.2]}      as sensor_msgs/JointState in JSON
{"hip": 0.1, "knee": 0.2}                              by joint
{"pose": {"position": {...}, "orientation": {...}}}    of a floating base, alone or beside joints
"""

from __future__ import annotations

import json
import math
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from robokit.conventions import FLOATING_BASE
from robokit.errors import nearest_names, one_line, quoted
from robokit.logs.bag_child import field, joint_state, stamp_of
from robokit.model.robot import Robot

LONGEST_LINE = 1 << 20
"""Characters of a line; longer ones are skipped in pieces."""

NAMED = 5
"""Bad lines that are named one by one; the others are counted."""

POLL = 0.02
"""Seconds between looks at a file that has not grown."""

STDIN = 0
"""File descriptor of standard input."""

LONGEST_WAIT = 1.0
"""Seconds that a line waits for its stamp at most."""


class JointStream:
    """Configurations from lines of JSON. Joints keep their last positions until a line names them again.

    Args:
        robot: the robot.
        warn: takes a text about a bad line.

    Attributes:
        q: the latest configuration, (nq,).
        states: lines that were taken.
        skipped: lines that were not.

    Example:
        >>> from robokit.logs.joint_stream import JointStream
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> stream = JointStream(robot, print)
        >>> stream.take('{"name": ["lower_joint"], "position": [0.5]}')
        True
        >>> stream.q
        array([0. , 0.5])
        >>> stream.take("[1, 2]")
        line 2 skipped: expected a JSON object, got a list
        False
    """

    def __init__(self, robot: Robot, warn: Callable[[str], None]) -> None:
        self.robot, self._warn = robot, warn
        self.q = robot.neutral()
        self.states = self.skipped = self._lines = 0
        self.stamp = 0
        self._places = {
            j.name: j.q_slice.start for j in robot.joints if j.q_slice.stop - j.q_slice.start == 1
        }
        self._followers = {j.name for j in robot.mimic_joints}
        self._strangers: set[str] = set()

    def take(self, line: str) -> bool:
        """Take a line; False, and a warning, where it is none. Empty lines are no lines."""
        self._lines += 1
        if not line.strip():
            return False
        try:
            q, stamp = self._read(line)
        except (ValueError, RecursionError) as problem:
            self.skipped += 1
            if self.skipped <= NAMED:
                self._warn(f"line {self._lines} skipped: {one_line(str(problem), 200)}")
            return False
        self.q, self.stamp = q, stamp
        self.states += 1
        return True

    def _read(self, line: str) -> tuple[np.ndarray, int]:
        if len(line) >= LONGEST_LINE:
            raise ValueError(f"longer than {LONGEST_LINE} characters")
        try:
            message = json.loads(line)
        except ValueError as problem:
            raise ValueError(f"no JSON ({problem})") from None
        if not isinstance(message, dict):
            raise ValueError(f"expected a JSON object, got a {type(message).__name__}")
        q, pose = self.q.copy(), message.pop("pose", None)
        if pose is not None:
            self._place(q, pose)
        rest = {
            k: x
            for k, x in message.items()
            if k not in ("header", "stamp", "timestamp", "child_frame_id", "twist")
        }
        if rest or pose is None:
            state = joint_state(message)
            positions = state.values[0]
            if positions is None:
                raise ValueError("no positions")
            self._set(q, state.names, positions)
        return q, stamp_of(message)

    def _set(self, q: np.ndarray, names: tuple[str, ...], positions: Any) -> None:
        known = [name for name in names if name in self._places or name in self._followers]
        strangers = [name for name in names if name not in self._places and name not in self._followers]
        for name, x in zip(names, positions, strict=True):
            if name in self._places:
                if not math.isfinite(x):
                    raise ValueError(f"position of {quoted(name)} is {x}")
                q[self._places[name]] = x
        if strangers and not known:
            near = nearest_names(strangers[0], self._places, 1)
            advice = (
                f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(list(self._places)[:6])}"
            )
            raise ValueError(f"no joint of the robot: {quoted(strangers[0])}{advice}")
        for name in set(strangers) - self._strangers:
            if len(self._strangers) < NAMED:
                self._warn(f"line {self._lines}: robot {self.robot.name!r} has no joint {quoted(name)}")
            self._strangers.add(name)

    def _place(self, q: np.ndarray, pose: Any) -> None:
        joint = next((j for j in self.robot.joints if j.name == FLOATING_BASE), None)
        if joint is None:
            raise ValueError("a pose, and the robot has a fixed base; --base floating moves it")
        pose = field(pose, "pose", pose)
        p, r = field(pose, "position"), field(pose, "orientation")
        try:
            numbers = [float(field(r, k)) for k in "wxyz"] + [float(field(p, k)) for k in "xyz"]
        except TypeError:
            raise ValueError("pose: expected position x, y, z and orientation x, y, z, w") from None
        size = math.hypot(*numbers[:4])
        if not all(map(math.isfinite, numbers)) or not 0.9 < size < 1.1:
            raise ValueError("pose: expected finite numbers and a quaternion of unit length")
        q[joint.q_slice] = [*(x / size for x in numbers[:4]), *numbers[4:]]

    def follow(self, file: IO[str], stop: Callable[[], bool] = lambda: False) -> Iterator[np.ndarray]:
        """Configurations of the lines of a file, as they come and not sooner than their stamps say.

        A regular file is followed as it grows until ``stop`` says so; a pipe ends, and so does standard
        input, also where it is a file.

        Args:
            file: open for reading.
            stop: whether to end.
        """
        grows = file.fileno() != STDIN and stat.S_ISREG(os.fstat(file.fileno()).st_mode)
        start: tuple[int, float] | None = None
        part = ""
        while not stop():
            line = file.readline(LONGEST_LINE)
            if not line:
                if not grows:
                    break
                time.sleep(POLL)
                continue
            part += line
            if not line.endswith("\n") and len(part) < LONGEST_LINE and grows:
                continue  # the rest of the line is still to be written
            taken, part = self.take(part), ""
            if not taken:
                continue
            if self.stamp:
                start = start or (self.stamp, time.monotonic())
                ahead = 1e-9 * (self.stamp - start[0]) - (time.monotonic() - start[1])
                if ahead > LONGEST_WAIT or ahead < -LONGEST_WAIT:  # a gap, or a clock that was reset
                    start = (self.stamp, time.monotonic())
                elif ahead > 0.0:
                    time.sleep(ahead)
            yield self.q
