"""Reads a bag in a process of its own, whose time and memory are bounded (:mod:`robokit.child_process`).

A chunk of a bag can unpack to any size, and a message can say any length. What comes back are arrays.

    ("open", path)          {"topics": {topic: type}}
    ("read", topics)        starts to read these
    ("next", most)          {"done": bool, "share": 0..1, "blocks": [...], "poses": [...], "texts": [...],
                            "skipped": [...], "notes": [...]}

or {"problem": words} or {"missing": package}. It imports nothing of robokit, so that the process starts soon.

A message with the states of joints may be, as a mapping (JSON) or an object (CDR, ROS 1, protobuf):

    {"name": ["hip", "knee"], "position": [0.1, 0.2], "velocity": [], "effort": []}   sensor_msgs/JointState
    {"joints": [{"name": "hip", "position": 0.1}, ...]}                               foxglove.JointStates
    {"joint_names": [...], "interface_values": [...]}                                 control_msgs
    {"hip": 0.1, "knee": 0.2}                                                         a mapping, JSON alone
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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

MAGIC = bytes((137, 77, 67, 65, 80, 48, 13, 10))  # how an MCAP file begins
LONGEST_RECORD = 1 << 30  # bytes of a record of an MCAP file

UNPACKED_BYTES, UNPACKED_RATIO = 128 << 20, 100
"""Bytes that files may unpack to, and times their own size for larger ones, as of archives of arrays."""

Message = tuple[str, str, int, Callable[[], Any], float]
"""Topic, type, receive time [ns], what decodes the message, share of the log that was read."""


class Problem(Exception):
    """What is wrong with a bag, in words."""


def answer(question: tuple[str, Any]) -> dict[str, Any]:
    """The answer to one question."""
    what, about = question
    try:
        if what == "open":
            path = Path(about)
            _STATE["bag"] = bag = _Mcap(path) if path.suffix.lower() == ".mcap" else _Rosbag(path)
            return {"topics": bag.topics}
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


class _Rosbag:
    """A ROS 1 bag, or a ROS 2 bag: a folder, or a database alone."""

    def __init__(self, path: Path) -> None:
        from rosbags import rosbag1, rosbag2

        self.notes: list[str] = []
        self._ros1 = path.suffix.lower() == ".bag"
        _bound_files(path)
        self._reader: Any = rosbag1.Reader(path) if self._ros1 else rosbag2.Reader(path)
        self._reader.open()
        self._decoders: dict[str, Callable[[bytes], Any]] = {}
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
            if kind not in self._decoders:
                self._decoders[kind] = self._decoder(connection)
            decode = self._decoders[kind]
            yield connection.topic, short_type(kind), t, functools.partial(decode, data), (t - first) / span

    def _decoder(self, connection: Any) -> Callable[[bytes], Any]:
        """What decodes messages of a connection's type.

        Messages of the standard packages are as they always were; older bags do not define any.
        """
        from rosbags.interfaces import MessageDefinitionFormat
        from rosbags.typesys import Stores, get_typestore

        kind, definition = connection.msgtype, connection.msgdef
        standard = get_typestore(Stores.ROS1_NOETIC if self._ros1 else Stores.ROS2_HUMBLE)
        if kind in standard.types or definition.format == MessageDefinitionFormat.NONE:
            decode = standard.deserialize_ros1 if self._ros1 else standard.deserialize_cdr
            return lambda data: decode(data, kind)
        is_idl = definition.format == MessageDefinitionFormat.IDL
        return _decoder_of(definition.data, kind, is_idl, self._ros1)


def _decoder_of(text: str, kind: str, is_idl: bool, ros1: bool) -> Callable[[bytes], Any]:
    """What decodes messages of a type that a text defines."""
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_idl(text) if is_idl else get_types_from_msg(text, kind))
    decode = store.deserialize_ros1 if ros1 else store.deserialize_cdr
    return lambda data: decode(data, kind)


def _bound_files(path: Path) -> None:
    """No file may be far larger than the bag that this process writes: rosbags unpacks files to disk."""
    try:
        import resource
    except ImportError:  # Windows
        return
    files = [path] if path.is_file() else list(path.iterdir())
    most = UNPACKED_BYTES + UNPACKED_RATIO * sum(file.stat().st_size for file in files)
    with contextlib.suppress(ValueError, OSError):  # a limit of the user's own may be lower
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


class _Mcap:
    """An MCAP file: messages of ROS 2 (CDR), ROS 1, JSON and protobuf."""

    def __init__(self, path: Path) -> None:
        from mcap.exceptions import McapError
        from mcap.reader import SeekingReader

        self.notes: list[str] = []
        self.topics: dict[str, str] = {}
        self._file, self._size = open(path, "rb"), max(os.path.getsize(path), 1)  # noqa: SIM115
        self._decoders: dict[int, Callable[[bytes], Any]] = {}
        if self._file.read(8) != MAGIC:
            raise Problem("not an MCAP file: it does not begin like one")
        self._file.seek(0)
        try:
            summary = SeekingReader(self._file, record_size_limit=LONGEST_RECORD).get_summary()
        except (McapError, OSError, struct.error):  # it does not end as one, or is too short to
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
            if summary is None and not self.topics:
                raise Problem("its recording ended before the first complete message")

    def messages(self, topics: set[str]) -> Iterator[Message]:
        """The messages of these topics."""
        return self._every(topics)

    def _every(self, topics: set[str] | None) -> Iterator[Message]:
        from mcap.exceptions import McapError
        from mcap.reader import NonSeekingReader, SeekingReader

        self._file.seek(0)
        kind = SeekingReader if self._whole else NonSeekingReader
        reader = kind(self._file, record_size_limit=LONGEST_RECORD)
        try:
            for schema, channel, message in reader.iter_messages(topics, log_time_order=False):
                yield (
                    channel.topic,
                    short_type(schema.name) if schema else "",
                    message.log_time,
                    lambda s=schema, c=channel, m=message: self._decode(s, c, m.data),  # type: ignore[misc]
                    self._file.tell() / self._size,
                )
        except (McapError, EOFError, ValueError, struct.error) as problem:
            if self._whole:
                raise
            if topics is not None:
                self.notes.append(f"the file breaks off ({type(problem).__name__}); what precedes is read")

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
        name = schema.name if "/msg/" in schema.name else schema.name.replace("/", "/msg/", 1)
        text = schema.data.decode("utf-8", "replace")
        return _decoder_of(text, name, schema.encoding == "ros2idl", encoding == "ros1")


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
            self.texts.append((topic, str(message_field(message, "data", ""))))
        elif kind in POSES:
            self._pose(topic, POSES[kind], received, message)
        else:
            state = joint_state(message)
            there = tuple(values is not None for values in state.values)
            row = (number, state.stamp, received, state.values)
            self.joints.setdefault((topic, state.names, there), []).append(row)

    def _pose(self, topic: str, kind: str, received: int, message: Any) -> None:
        several = message_field(message, "transforms")
        for one in [message] if several is None else list(several):
            parent = message_field(
                message_field(one, "header"),
                "frame_id",
                message_field(one, "parent_frame_id", message_field(one, "frame_id")),
            )
            child = message_field(one, "child_frame_id", "")
            pose = message_field(one, "pose", message_field(one, "transform", one))
            pose = message_field(pose, "pose", pose)  # within one with covariance
            p = message_field(pose, "position", message_field(pose, "translation"))
            r = message_field(pose, "orientation", message_field(pose, "rotation"))
            row = [float(message_field(p, k)) for k in "xyz"] + [float(message_field(r, k)) for k in "wxyz"]
            twist = message_field(message_field(one, "twist"), "twist")
            if twist is not None:
                row += [
                    float(message_field(message_field(twist, part), k))
                    for part in ("angular", "linear")
                    for k in "xyz"
                ]
            key = (topic, kind, str(parent or "").lstrip("/"), str(child or "").lstrip("/"), str(len(row)))
            self.poses.setdefault(key, []).append((stamp_of(one) or received, row))

    def answer(self) -> dict[str, Any]:
        """All of it as arrays."""
        blocks = []
        for (topic, names, there), rows in self.joints.items():
            numbers, stamps, received = (np.array([row[k] for row in rows], np.int64) for k in range(3))
            values = tuple(
                np.array([row[3][k] for row in rows], float).reshape(len(rows), len(names)) if has else None
                for k, has in enumerate(there)
            )
            blocks.append((topic, names, numbers, stamps, received, values))
        poses = []
        for (topic, kind, parent, child, _), rows in self.poses.items():
            t, table = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], float)
            poses.append(
                (topic, kind, parent, child, t, table[:, :7], table[:, 7:] if table.shape[1] > 7 else None)
            )
        skipped = [(topic, why, n) for (topic, why), n in self.skipped.items()]
        return {"blocks": blocks, "poses": poses, "texts": self.texts, "skipped": skipped}


# ---- states of joints ----------------------------------------------------------------------------

QUANTITIES = ("position", "velocity", "effort")  # [rad | m], [rad/s | m/s], [N m | N]


class JointState(NamedTuple):
    """The joints of one message."""

    names: tuple[str, ...]  # of the joints, n of them
    # of position, velocity and effort: n numbers each, or None where the message has none
    values: tuple[Sequence[float] | None, ...]
    stamp: int = 0  # when it was measured [ns], 0 where the message does not say


def message_field(message: Any, name: str, default: Any = None) -> Any:
    """A field of a message, which is a mapping or an object."""
    if isinstance(message, Mapping):
        return message.get(name, default)
    return getattr(message, name, default)


def stamp_of(message: Any) -> int:
    """When a message was measured, from its header or time stamp [ns]; 0 where it does not say."""
    stamp = message_field(message_field(message, "header"), "stamp")
    if stamp is None:
        stamp = message_field(message, "timestamp", message_field(message, "stamp"))
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):  # seconds
        return round(1e9 * stamp) if math.isfinite(stamp) else 0
    found = []
    for names in (("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")):
        found.append(next((x for name in names if (x := message_field(stamp, name)) is not None), 0))
    try:
        return int(found[0]) * 1_000_000_000 + int(found[1])
    except (TypeError, ValueError, OverflowError):
        return 0


def joint_state(message: Any) -> JointState:
    """The joints of a message; ValueError, which says how, where it is none or contradicts itself."""
    stamp = stamp_of(message)
    joints = message_field(message, "joints")
    if joints is not None and not isinstance(joints, str | bytes | int | float):
        return JointState(*_of_list(list(joints)), stamp)
    interfaces = message_field(message, "interface_values")
    if interfaces is not None:
        return JointState(
            *_of_interfaces(_names(message_field(message, "joint_names")), list(interfaces)), stamp
        )
    if message_field(message, "name") is not None and not isinstance(
        message_field(message, "name"), int | float
    ):
        names = _names(message_field(message, "name"))
        values = [_numbers(names, quantity, message_field(message, quantity)) for quantity in QUANTITIES]
        if names and all(x is None for x in values):
            raise ValueError(f"{len(names)} names without position, velocity and effort")
        return JointState(names, tuple(values), stamp)
    if isinstance(message, Mapping):
        numbers = {k: x for k, x in message.items() if k not in ("stamp", "timestamp", "header")}
        if numbers and all(_is_number(x) for x in numbers.values()):
            return JointState(
                tuple(map(str, numbers)), ([float(x) for x in numbers.values()], None, None), stamp
            )
    raise ValueError("no joint states: expected name and position, or numbers by joint")


def _of_list(joints: list[Any]) -> tuple[tuple[str, ...], tuple[list[float] | None, ...]]:
    """Names and values of a list of joints; NaN for a value that a joint lacks."""
    names = _names([message_field(joint, "name") for joint in joints])
    values: list[list[float] | None] = []
    for quantity in QUANTITIES:
        found = [_optional(joint, quantity) for joint in joints]
        values.append(None if all(math.isnan(x) for x in found) else found)
    return names, tuple(values)


def _optional(joint: Any, quantity: str) -> float:
    """A number that a joint may lack; protobuf's own question tells 0 from nothing."""
    has = getattr(joint, "HasField", None)
    if has is not None:
        try:
            if not has(quantity):
                return math.nan
        except ValueError:  # a field that is always there, or never
            pass
    value = message_field(joint, quantity)
    return float(value) if _is_number(value) else math.nan


def _of_interfaces(
    names: tuple[str, ...], interfaces: list[Any]
) -> tuple[tuple[str, ...], tuple[list[float] | None, ...]]:
    """The joints of a control_msgs/DynamicJointState, which has values by the name of an interface."""
    rows: list[dict[str, float]] = []
    for one in interfaces:
        keys, values = list(message_field(one, "interface_names", ())), list(message_field(one, "values", ()))
        rows.append({str(key): float(x) for key, x in zip(keys, values, strict=False)})
    if len(rows) != len(names):
        raise ValueError(f"{len(names)} names and {len(rows)} interface_values")
    out: list[list[float] | None] = []
    for quantity in QUANTITIES:
        out.append(
            [row.get(quantity, math.nan) for row in rows] if any(quantity in r for r in rows) else None
        )
    return names, tuple(out)


def _names(given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or given is None:
        raise ValueError("name: expected a list of joint names")
    try:
        return _checked_names(tuple(given))
    except TypeError:
        raise ValueError("name: expected a list of joint names") from None


@functools.lru_cache(16)  # a log says the same names again and again
def _checked_names(names: tuple[Any, ...]) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in names):
        raise ValueError("name: expected a list of joint names")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"joint {twice[:60]!r} is named twice")
    return names


def _numbers(names: tuple[str, ...], quantity: str, given: Any) -> Sequence[float] | None:
    if given is None:
        return None
    if hasattr(given, "dtype"):  # an array of a binary message
        values = given
    else:
        values = (
            list(given)
            if hasattr(given, "__iter__") and not isinstance(given, str | bytes | Mapping)
            else None
        )
        if values is None or not all(x is None or _is_number(x) for x in values):
            raise ValueError(f"{quantity}: expected a list of numbers")
        values = [math.nan if x is None else float(x) for x in values]
    if not len(values):
        return None
    if len(values) != len(names):
        raise ValueError(f"{len(names)} names and {len(values)} numbers of {quantity}")
    found: Sequence[float] = values
    return found


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)
