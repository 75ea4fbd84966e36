"""Writes logs with public tools: rosbags and mcap. Nothing of ROS."""

from __future__ import annotations

import json

import numpy as np

START = 1_700_000_000_000_000_000  # of the logs [ns]: a time of this century


def stamps(t):
    """Times since the start as stamps [ns]."""
    return START + np.round(np.asarray(t) * 1e9).astype(np.int64)


def joint_messages(names, t, q, v=None, tau=None, topic="/joint_states"):
    """(topic, type, stamp, fields) of sensor_msgs/JointState."""
    for k, stamp in enumerate(stamps(t)):
        rows = [np.asarray([] if x is None else x[k], float) for x in (q, v, tau)]
        fields = {"name": list(names), "position": rows[0], "velocity": rows[1], "effort": rows[2]}
        yield topic, "sensor_msgs/msg/JointState", int(stamp), fields


def pose_messages(t, pose, twist=None, topic="/odom", child="base", kind="odometry", parent="odom"):
    """(topic, type, stamp, fields) of poses [qw qx qy qz px py pz] of a frame."""
    for k, stamp in enumerate(stamps(t)):
        row = {
            "parent": parent,
            "child": child,
            "pose": pose[k],
            "twist": None if twist is None else twist[k],
        }
        name = {
            "odometry": "nav_msgs/msg/Odometry",
            "pose": "geometry_msgs/msg/PoseStamped",
            "tf": "tf2_msgs/msg/TFMessage",
        }[kind]
        yield topic, name, int(stamp), row


def _message(store, kind, stamp, fields):
    """The message as an object of rosbags."""
    T = store.types

    def header(frame=""):
        time = T["builtin_interfaces/msg/Time"](int(stamp // 10**9), int(stamp % 10**9))
        Header = T["std_msgs/msg/Header"]
        return Header(0, time, frame) if "seq" in Header.__dataclass_fields__ else Header(time, frame)

    if kind == "std_msgs/msg/String":
        return T[kind](fields["data"])
    if kind == "sensor_msgs/msg/JointState":
        return T[kind](
            header() if fields.get("stamped", True) else _no_header(T),
            fields["name"],
            *(np.asarray(fields[k], float) for k in ("position", "velocity", "effort")),
        )
    w, x, y, z, *p = map(float, fields["pose"])
    place = T["geometry_msgs/msg/Point"](*p)
    turn = T["geometry_msgs/msg/Quaternion"](x, y, z, w)
    V = T["geometry_msgs/msg/Vector3"]
    if kind.startswith("tf2"):
        one = T["geometry_msgs/msg/TransformStamped"](
            header(fields["parent"]), fields["child"], T["geometry_msgs/msg/Transform"](V(*p), turn)
        )
        return T[kind]([one])
    pose = T["geometry_msgs/msg/Pose"](place, turn)
    if kind.endswith("PoseStamped"):
        return T[kind](header(fields["parent"]), pose)
    twist = np.zeros(6) if fields["twist"] is None else np.asarray(fields["twist"], float)
    zeros = np.zeros(36)
    return T[kind](
        header(fields["parent"]),
        fields["child"],
        T["geometry_msgs/msg/PoseWithCovariance"](pose, zeros),
        T["geometry_msgs/msg/TwistWithCovariance"](
            T["geometry_msgs/msg/Twist"](V(*twist[3:]), V(*twist[:3])), zeros
        ),
    )


def _no_header(T):
    Header = T["std_msgs/msg/Header"]
    time = T["builtin_interfaces/msg/Time"](0, 0)
    return Header(0, time, "") if "seq" in Header.__dataclass_fields__ else Header(time, "")


def write_ros2(path, messages, storage="sqlite3"):
    """A ROS 2 bag, a folder, by rosbags."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    plugin = {"sqlite3": StoragePlugin.SQLITE3, "mcap": StoragePlugin.MCAP}[storage]
    with Writer(path, version=9, storage_plugin=plugin) as writer:
        connections = {}
        for topic, kind, stamp, fields in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            data = store.serialize_cdr(_message(store, kind, stamp, fields), kind)
            writer.write(connections[topic], fields.get("received", stamp), data)
    return path


def write_ros1(path, messages):
    """A ROS 1 bag by rosbags."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    with Writer(path) as writer:
        connections = {}
        for topic, kind, stamp, fields in messages:
            if topic not in connections:
                connections[topic] = writer.add_connection(topic, kind, typestore=store)
            data = store.serialize_ros1(_message(store, kind, stamp, fields), kind)
            writer.write(connections[topic], stamp, data)
    return path


def write_mcap_json(path, messages, flat=False):
    """An MCAP file with JSON messages by mcap."""
    from mcap.writer import Writer

    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("foxglove.JointStates", "jsonschema", b'{"type": "object"}')
        channels = {}
        for topic, _, stamp, fields in messages:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "json", schema)
            joints = [
                {"name": name, "position": float(x), "effort": float(y)}
                for name, x, y in zip(fields["name"], fields["position"], fields["effort"], strict=True)
            ]
            body = {"timestamp": {"sec": stamp // 10**9, "nsec": stamp % 10**9}, "joints": joints}
            writer.add_message(channels[topic], stamp, json.dumps(body).encode(), stamp)
        writer.finish()
    return path


def write_mcap_protobuf(path, messages):
    """An MCAP file with protobuf messages of foxglove's JointStates by mcap_protobuf."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
    from mcap_protobuf.writer import Writer

    F = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="foxglove/JointStates.proto", package="foxglove", syntax="proto3"
    )
    file.dependency.append("google/protobuf/timestamp.proto")
    joint = file.message_type.add(name="JointState")
    joint.field.add(name="name", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    for number, name in enumerate(("position", "velocity", "acceleration", "effort"), 2):
        joint.oneof_decl.add(name=f"_{name}")
        joint.field.add(
            name=name, number=number, type=F.TYPE_DOUBLE, label=F.LABEL_OPTIONAL,
            proto3_optional=True, oneof_index=number - 2,
        )  # fmt: skip
    states = file.message_type.add(name="JointStates")
    states.field.add(
        name="timestamp",
        number=1,
        type=F.TYPE_MESSAGE,
        label=F.LABEL_OPTIONAL,
        type_name=".google.protobuf.Timestamp",
    )
    states.field.add(
        name="joints", number=2, type=F.TYPE_MESSAGE, label=F.LABEL_REPEATED, type_name=".foxglove.JointState"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    States = message_factory.GetMessageClass(pool.FindMessageTypeByName("foxglove.JointStates"))
    with open(path, "wb") as out, Writer(out) as writer:
        for topic, _, stamp, fields in messages:
            message = States()
            message.timestamp.seconds, message.timestamp.nanos = divmod(stamp, 10**9)
            for name, x, y in zip(fields["name"], fields["position"], fields["effort"], strict=True):
                message.joints.add(name=name, position=x, effort=y)
            writer.write_message(topic, message, stamp, stamp)
    return path


def write_mcap_ros1(path, messages):
    """An MCAP file with messages of ROS 1, as a converted bag has them."""
    from mcap.writer import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    kind = "sensor_msgs/msg/JointState"
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start("ros1")
        text, _ = store.generate_msgdef(kind, ros_version=1)
        schema = writer.register_schema("sensor_msgs/JointState", "ros1msg", text.encode())
        channel = writer.register_channel("/joint_states", "ros1", schema)
        for _, _, stamp, fields in messages:
            data = bytes(store.serialize_ros1(_message(store, kind, stamp, fields), kind))
            writer.add_message(channel, stamp, data, stamp)
        writer.finish()
    return path
