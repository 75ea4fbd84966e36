"""What a log holds, before it is brought to a robot: blocks of samples as they were written."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

GAP = 10.0
"""Times the usual step: a longer one is a gap in a log, and a step back by more is a clock that was reset."""


@dataclass(frozen=True, eq=False)
class Block:
    """Messages of one topic, or rows of a table, that name the same joints in the same order.

    Attributes:
        topic: where they came from; "" for a table.
        names: of the joints, or of coordinates of joints with several ("wrist/qw").
        number: place of each message in the log, (M,).
        t: stamps [ns], (M,).
        values: position, velocity and effort, (M, n) each, or None where the messages have none.
    """

    topic: str
    names: tuple[str, ...]
    number: np.ndarray
    t: np.ndarray
    values: tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Poses:
    """Poses of a frame over time.

    Attributes:
        topic: where they came from.
        kind: "odometry", "pose" or "tf".
        parent, child: names of the frame that they are in and of the frame that moves; "" where not said.
        t: stamps [ns], (M,).
        pose: px, py, pz [m], qw, qx, qy, qz of the child in the parent, (M, 7).
        twist: angular and linear velocity in the child's axes [rad/s; m/s], (M, 6), or None.
    """

    topic: str
    kind: str
    parent: str
    child: str
    t: np.ndarray
    pose: np.ndarray
    twist: np.ndarray | None = None


@dataclass
class Recording:
    """All that was read of a log.

    Attributes:
        source: the file, for messages.
        blocks: states of joints.
        poses: motion of frames.
        description: URDF text of the robot, or None.
        topics: type of each topic of a bag.
        notes: what was noticed, in words.
    """

    source: str
    blocks: list[Block] = field(default_factory=list)
    poses: list[Poses] = field(default_factory=list)
    description: str | None = None
    topics: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
