"""Reads a bag in a process of its own, whose time and memory are bounded (:mod:`robokit.child_process`).

A chunk of a bag can unpack to any size, and a message can say any length. What comes back are arrays.

    ("open", path)          {"topics": {topic: type}, "size": bytes, "notes": [...]}
    ("read", topics)        starts to read these
    ("next", most)          {"done": bool, "share": 0..1, "blocks": [...], "poses": [...], "texts": [...]}

or {"problem": words} or {"missing": package}.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from robokit.logs.joint_states import field, joint_state, stamp_of

JOINTS = ("sensor_msgs/JointState", "control_msgs/DynamicJointState", "foxglove.JointStates")
POSES = {
    "nav_msgs/Odometry": "odometry",
    "geometry_msgs/PoseStamped": "pose",
    "geometry_msgs/PoseWithCovarianceStamped": "pose",
    "geometry_msgs/TransformStamped": "tf",
    "tf2_msgs/TFMessage": "tf",
    "tf/tfMessage": "tf",
    "foxglove.FrameTransform": "tf",
    "foxglove.PoseInFrame": "pose",
}
TEXT = "std_msgs/String"

Message = tuple[str, str, int, Callable[[], Any], float]
"""Topic, type, receive time [ns], what decodes the message, share of the log that was read."""


class Problem(Exception):
    """What is wrong with a bag, in words."""


def answer(question: tuple[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    what, about = question
    try:
        if what == "open":
            _STATE["bag"] = bag = _bag(Path(about))
            return {"topics": bag.topics, "notes": bag.notes}
        if what == "read":
            _STATE["messages"] = _STATE["bag"].messages(set(about))
            return {}
        return _next(_STATE["messages"], about)
    except ImportError as problem:
        return {"missing": str(problem.name or problem)}
    except MemoryError:
        raise
    except Problem as problem:
        return {"problem": str(problem)}
    except Exception as problem:  # each library has its own errors for damage
        return {"problem": f"{type(problem).__name__}: {problem}"}


_STATE: dict[str, Any] = {}


def short_type(name: str) -> str:
    """A type's name as ROS 1 writes it: "sensor_msgs/JointState"."""
    return name.replace("/msg/", "/")


def _bag(path: Path) -> Any:
    if path.suffix.lower() == ".mcap":
        return _Mcap(path)
    return _Rosbag(path)


class _Rosbag:
    """A ROS 1 bag, or a ROS 2 bag: a folder, or a database alone."""

    def __init__(self, path: Path) -> None:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore

        self.notes: list[str] = []
        # A database of ROS 2 before Iron says nothing of its types: those of the sensors have not changed.
        self._reader = AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE))
        self._reader.open()
        self.topics = {c.topic: short_type(c.msgtype) for c in self._reader.connections}

    def messages(self, topics: set[str]) -> Iterator[Message]:
        """The messages of these topics."""
        reader = self._reader
        wanted = [c for c in reader.connections if c.topic in topics]
        if not wanted:
            return
        first, span = reader.start_time, max(reader.end_time - reader.start_time, 1)
        for connection, t, data in reader.messages(connections=wanted):
            kind = connection.msgtype
            yield (
                connection.topic,
                short_type(kind),
                t,
                lambda data=data, kind=kind: reader.deserialize(data, kind),  # type: ignore[misc]
                (t - first) / span,
            )


class _Mcap:
    """An MCAP file: messages of ROS 2 (CDR), ROS 1, JSON and protobuf."""

    def __init__(self, path: Path) -> None:
        from mcap.exceptions import McapError
        from mcap.reader import SeekingReader

        self.notes: list[str] = []
        self.topics: dict[str, str] = {}
        self._file, self._size = open(path, "rb"), max(os.path.getsize(path), 1)  # noqa: SIM115
        self._decoders: dict[int, Callable[[bytes], Any]] = {}
        limit = 1 << 30
        try:
            summary = SeekingReader(self._file, record_size_limit=limit).get_summary()
        except McapError as problem:
            if type(problem).__name__ == "InvalidMagic" and self._begins_badly():
                raise Problem("no MCAP file: it does not begin as one") from None
            summary = None
        self._whole = summary is not None and bool(summary.channels)
        if self._whole and summary is not None:
            schemas = summary.schemas
            self.topics = {
                c.topic: short_type(s.name) if (s := schemas.get(c.schema_id)) else ""
                for c in summary.channels.values()
            }
        else:
            self.notes.append("the file has no index, as one whose recording broke off: read to its end")
            self.topics = {topic: kind for topic, kind, *_ in self._every(None)}

    def _begins_badly(self) -> bool:
        self._file.seek(0)
        return self._file.read(8) != bytes((137, 77, 67, 65, 80, 48, 13, 10))

    def messages(self, topics: set[str]) -> Iterator[Message]:
        """The messages of these topics."""
        return self._every(topics)

    def _every(self, topics: set[str] | None) -> Iterator[Message]:
        from mcap.exceptions import McapError
        from mcap.reader import NonSeekingReader, SeekingReader

        self._file.seek(0)
        kind = SeekingReader if self._whole else NonSeekingReader
        reader = kind(self._file, record_size_limit=1 << 30)
        try:
            for schema, channel, message in reader.iter_messages(topics, log_time_order=False):
                yield (
                    channel.topic,
                    short_type(schema.name) if schema else "",
                    message.log_time,
                    lambda s=schema, c=channel, m=message: self._decode(s, c, m.data),  # type: ignore[misc]
                    self._file.tell() / self._size,
                )
        except (McapError, EOFError, ValueError) as problem:
            if self._whole:
                raise
            if topics is not None:
                self.notes.append(f"the file breaks off ({type(problem).__name__}); what came before counts")

    def _decode(self, schema: Any, channel: Any, data: bytes) -> Any:
        encoding = channel.message_encoding
        if encoding == "json":
            return json.loads(data)
        if channel.id not in self._decoders:
            self._decoders[channel.id] = self._decoder(schema, encoding)
        return self._decoders[channel.id](data)

    def _decoder(self, schema: Any, encoding: str) -> Callable[[bytes], Any]:
        if encoding == "protobuf":
            from mcap_protobuf.decoder import DecoderFactory

            found = DecoderFactory().decoder_for(encoding, schema)
            if found is None:
                raise Problem(f"{schema.name}: protobuf without a schema of protobuf")
            return found
        if encoding not in ("cdr", "ros1"):
            raise Problem(f"messages in the encoding {encoding!r}; cdr, ros1, json and protobuf are read")
        from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

        name = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/", 1)
        store = get_typestore(Stores.EMPTY)
        text = schema.data.decode("utf-8", "replace")
        store.register(
            get_types_from_idl(text) if schema.encoding == "ros2idl" else get_types_from_msg(text, name)
        )
        if encoding == "ros1":
            return lambda data: store.deserialize_ros1(data, name)
        return lambda data: store.deserialize_cdr(data, name)


# ---- batches of messages -----------------------------------------------------------------------


def _next(messages: Iterator[Message], most: int) -> dict[str, Any]:
    """The next messages, at most so many."""
    batch = _Batch()
    share, done = 0.0, True
    for k, (topic, kind, received, decode, share) in enumerate(messages, 1):  # noqa: B007
        number = _STATE["count"] = _STATE.get("count", 0) + 1
        try:
            batch.take(topic, kind, number, received, decode())
        except (ImportError, MemoryError, Problem):
            raise
        except Exception as problem:  # a damaged message is no reason to lose the others
            batch.skipped[topic, str(problem)[:200]] += 1
        if k >= most:
            done = False
            break
    return batch.answer() | {"done": done, "share": share, "notes": _STATE["bag"].notes if done else []}


class _Batch:
    """Messages, gathered by topic and by the joints or frames that they are about."""

    def __init__(self) -> None:
        self.joints: dict[tuple[Any, ...], list[Any]] = {}
        self.poses: dict[tuple[str, ...], list[Any]] = {}
        self.texts: list[tuple[str, str]] = []
        self.skipped: Counter[tuple[str, str]] = Counter()

    def take(self, topic: str, kind: str, number: int, received: int, message: Any) -> None:
        """Take a message in."""
        if kind == TEXT:
            self.texts.append((topic, str(field(message, "data", ""))))
        elif kind in POSES:
            self._pose(topic, POSES[kind], received, message)
        else:
            state = joint_state(message)
            there = tuple(values is not None for values in state.values)
            row = (number, state.stamp, received, [x for values in state.values if values for x in values])
            self.joints.setdefault((topic, state.names, there), []).append(row)

    def _pose(self, topic: str, kind: str, received: int, message: Any) -> None:
        several = field(message, "transforms")
        for one in [message] if several is None else list(several):
            parent = field(
                field(one, "header"), "frame_id", field(one, "parent_frame_id", field(one, "frame_id"))
            )
            child = field(one, "child_frame_id", "")
            pose = field(one, "pose", field(one, "transform", one))
            pose = field(pose, "pose", pose)  # within one with covariance
            p = field(pose, "position", field(pose, "translation"))
            r = field(pose, "orientation", field(pose, "rotation"))
            row = [float(field(p, k)) for k in "xyz"] + [float(field(r, k)) for k in "wxyz"]
            twist = field(field(one, "twist"), "twist")
            if twist is not None:
                row += [float(field(field(twist, part), k)) for part in ("angular", "linear") for k in "xyz"]
            key = (topic, kind, str(parent or "").lstrip("/"), str(child or "").lstrip("/"), str(len(row)))
            self.poses.setdefault(key, []).append((stamp_of(one) or received, row))

    def answer(self) -> dict[str, Any]:
        """All of it as arrays."""
        blocks = []
        for (topic, names, there), rows in self.joints.items():
            numbers, stamps, received = (np.array([row[k] for row in rows], np.int64) for k in range(3))
            table = np.array([row[3] for row in rows], float).reshape(len(rows), sum(there), len(names))
            columns = iter(np.swapaxes(table, 0, 1))
            values = tuple(next(columns) if has else None for has in there)
            blocks.append((topic, names, numbers, stamps, received, values))
        poses = []
        for (topic, kind, parent, child, _), rows in self.poses.items():
            t, table = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], float)
            poses.append(
                (topic, kind, parent, child, t, table[:, :7], table[:, 7:] if table.shape[1] > 7 else None)
            )
        skipped = [(topic, why, n) for (topic, why), n in self.skipped.items()]
        return {"blocks": blocks, "poses": poses, "texts": self.texts, "skipped": skipped}
