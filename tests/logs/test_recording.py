"""What a log holds: bags, and states of joints line by line."""

import contextlib
import json
import threading
import time
import warnings

import log_files
import numpy as np
import pytest
import waiting
from log_files import joint_messages, pose_messages

import robokit as rk
from robokit.child_process import Child
from robokit.logs import bag_child, recording
from robokit.logs.bag_child import joint_state
from robokit.logs.recording import NAMED, JointStream, read_bag

# ---- Bags that public tools write are read back, bit by bit; nothing of ROS is there -------------

DT = 2e-3


@pytest.fixture(autouse=True, scope="module")
def one_reader():
    """One process reads all bags of this file: each start imports rosbags anew, for half a second."""
    with Child(bag_child.__file__, work="reads") as child, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "Child", lambda *_, **__: contextlib.nullcontext(child))
        yield


def test_a_bag_is_read_by_a_process_that_ends(robot, run, tmp_path, monkeypatch):
    started = []

    class Noted(Child):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(recording, "Child", Noted)
    read(write(tmp_path / "a", joints(robot, run)), rk.load_urdf(rk.find_robot("double_pendulum")))
    assert started and not any(child.runs for child in started)


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")


@pytest.fixture(scope="module")
def run(robot):
    """A floating pendulum that flies, spins and swings."""
    push = rk.Torque(lambda t, q, v: [np.sin(20 * t), np.cos(15 * t)])
    start = [1.0, 2.0, 3.0, 0.5, 0.2, 1.0, 0.3, -0.4]
    return rk.simulate(robot, v0=start, duration=0.4, dt=DT, record_every=1, actuators=push)


def joints(robot, run, **options):
    rows = run.q[:, 7:], run.v[:, 6:], run.actuator_force[:, 6:]
    return list(joint_messages(robot.joint_names[1:], run.t, *rows, **options))


def odometry(run, twist=True, **options):
    return list(pose_messages(run.t, run.q[:, :7], run.v[:, :6] if twist else None, **options))


def write(path, *parts):
    return log_files.write_ros2(path, sorted((m for part in parts for m in part), key=lambda m: m[2]), "mcap")


def read(path, robot, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        log = rk.read_log(path, robot, **options)
    return log, [str(w.message) for w in found]


@pytest.mark.parametrize("kind", ["sqlite3", "ros1", "database alone", "file alone"])
def test_every_storage_gives_every_bit(robot, run, tmp_path, kind):
    root = robot.joints[0].child_link
    messages = [*joints(robot, run), *odometry(run, child=root)]
    described = ("/robot_description", "std_msgs/msg/String", log_files.START, {"data": rk.urdf.dump(robot)})
    messages = sorted([described, *messages], key=lambda m: m[2])
    if kind == "ros1":
        path = log_files.write_ros1(tmp_path / "run.bag", messages)
    else:
        storage = "sqlite3" if kind in ("sqlite3", "database alone") else "mcap"
        path = log_files.write_ros2(tmp_path / "run", messages, storage)
        ending = {"database alone": "*.db3", "file alone": "*.mcap"}.get(kind)
        path = path if ending is None else next(path.glob(ending))
    log, said = read(
        path, None
    )  # the robot is the one of /robot_description, and floats as there is odometry
    assert said == [] and log.robot.base == "floating" and log.robot.joint_names == robot.joint_names
    assert np.array_equal(log.q[:, 7:], run.q[:, 7:]) and np.array_equal(log.v[:, 6:], run.v[:, 6:])
    assert np.allclose(log.q[:, :7], run.q[:, :7], atol=1e-14) and np.allclose(log.v, run.v, atol=1e-14)
    assert np.array_equal(log.tau[:, 6:], run.actuator_force[:, 6:])
    assert log.summary["base_topic"] == "/odom" and np.allclose(log.t, run.t, atol=1e-9)


def test_messages_of_ros1_in_mcap(robot, run, tmp_path):
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    log, said = read(log_files.write_mcap_ros1(tmp_path / "run.mcap", joints(robot, run)), fixed)
    assert said == [] and np.array_equal(log.q, run.q[:, 7:]) and np.array_equal(log.v, run.v[:, 6:])


def test_states_of_ros2_control_are_by_interface():
    rows = [("position", "effort"), ("velocity", "position")]
    values = [{"interface_names": names, "values": [1.0 + k, 3.0]} for k, names in enumerate(rows)]
    found = joint_state({"joint_names": ["a", "b"], "interface_values": values})
    position, velocity, effort = (np.array(x) for x in found.values)
    assert found.names == ("a", "b") and position.tolist() == [1.0, 3.0]
    assert np.isnan(velocity[0]) and velocity[1] == 2.0 and effort[0] == 3.0 and np.isnan(effort[1])


@pytest.mark.parametrize("kind", ["json", "protobuf"])
def test_messages_of_foxglove(robot, run, tmp_path, kind):
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    if kind == "protobuf":
        pytest.importorskip("mcap_protobuf")
    write = {"json": log_files.write_mcap_json, "protobuf": log_files.write_mcap_protobuf}[kind]
    log, said = read(write(tmp_path / "run.mcap", joints(robot, run)), fixed)
    assert np.array_equal(log.q, run.q[:, 7:]) and np.array_equal(log.tau, run.actuator_force[:, 6:])
    assert len(said) == 1 and "no velocities of any joint" in said[0]
    assert np.abs(log.v - run.v[:, 6:])[2:-2].max() < 0.01


def test_bases_from_poses_frames_and_odd_twists(robot, run, tmp_path):
    root, states = robot.joints[0].child_link, joints(robot, run)
    R, p = rk.forward_kinematics(robot, run.q)["lower"]
    turns = np.array([_quaternion(each) for each in R])
    lower = list(pose_messages(run.t, np.column_stack([turns, p]), child="lower"))
    world = run.v[:, :6].copy()
    axes = rk.forward_kinematics(robot, run.q)[root][0]
    for k in (0, 3):
        world[:, k : k + 3] = np.einsum("tij,tj->ti", axes, run.v[:, k : k + 3])
    shifted = run.q[:, :7] - [0, 0, 0, 0, 1, 2, 3]
    frames = [
        *pose_messages(run.t, shifted, topic="/tf", kind="tf", child=root, parent="odom"),
        *pose_messages(
            run.t[:1], [[1, 0, 0, 0, 1, 2, 3]], topic="/tf_static", kind="tf", child="odom", parent="map"
        ),
    ]
    cases = {
        "velocities of the base are differences": [*odometry(run, twist=False, child=root)],
        "is no link of the robot": [*odometry(run, child="imu_7")],
        "/mocap": [*odometry(run, topic="/mocap", kind="pose")],
        "its twist is in axes of the world": [*pose_messages(run.t, run.q[:, :7], world, child=root)],
        "differences of its poses": lower,
        "/tf: velocities of the base": frames,
    }
    for number, (text, messages) in enumerate(cases.items()):
        log, said = read(write(tmp_path / str(number), states, messages), robot)
        assert any(text in one for one in said), (text, said)
        signs = np.sign(np.sum(log.q[:, :4] * run.q[:, :4], axis=1, keepdims=True))
        assert np.allclose(log.q[:, :4] * signs, run.q[:, :4], atol=1e-12), text
        assert np.allclose(log.q[:, 4:], run.q[:, 4:], atol=1e-12), text
        assert np.abs(log.v - run.v)[2:-2].max() < 0.02, text
    log, said = read(write(tmp_path / "none", states), robot)
    assert any("does not say how the base moves" in one for one in said)
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    _, said = read(tmp_path / "0", fixed)
    assert any("/odom says how the base moves" in one for one in said)


def _quaternion(R):
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat()[[3, 0, 1, 2]]


def test_topics_orders_and_publishers(robot, run, tmp_path):
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    states = joints(robot, run)
    for _, _, _, fields in states[::2]:  # every other message has them the other way round
        for key in ("name", "position", "velocity", "effort"):
            fields[key] = list(fields[key])[::-1]
    commands = joints(robot, run, topic="/joint_commands")
    for *_, fields in commands:
        fields["position"] = fields["position"] + 1.0
    log, said = read(write(tmp_path / "a", states, commands), fixed)
    assert np.array_equal(log.q, run.q[:, 7:]) and any(
        "/joint_commands: the same joints" in one for one in said
    )
    log, _ = read(tmp_path / "a", fixed, topic="/joint_commands")
    assert np.array_equal(log.q, run.q[:, 7:] + 1.0)
    with pytest.raises(rk.ShapeError, match="did you mean '/joint_states'"):
        rk.read_log(tmp_path / "a", fixed, topic="/joint_state")
    names, q = robot.joint_names[1:], run.q[:, 7:]
    left = list(joint_messages(names[:1], run.t, q[:, :1]))
    right = list(joint_messages(names[1:], run.t + 7e-4, q[:, 1:]))
    log, said = read(write(tmp_path / "b", left, right), fixed)
    assert any("several messages: interpolated" in one for one in said)
    # the first message of the left joint after one of the right joint is the second
    assert np.allclose(log.q[:, 0], q[1:, 0], atol=1e-12)
    assert np.allclose(log.q[:, 1], np.interp(run.t[1:] - 7e-4, run.t, q[:, 1]), atol=1e-9)


def test_messages_without_stamps_or_that_contradict_themselves(robot, run, tmp_path):
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    states = joints(robot, run)
    for *_, fields in states:
        fields["stamped"] = False
    states[5][3]["position"] = np.zeros(1)
    log, said = read(write(tmp_path / "a", states), fixed)
    assert len(log.t) == len(run.t) - 1 and np.allclose(np.diff(log.t)[:3], DT)
    assert any("200 messages without a stamp" in one for one in said)
    assert any("1 message left out: 2 names and 1 numbers of position" in one for one in said)


def test_a_recording_that_broke_off_is_read_to_its_end(robot, run, tmp_path):
    fixed = rk.load_urdf(rk.find_robot("double_pendulum"))
    path = log_files.write_mcap_json(tmp_path / "run.mcap", joints(robot, run))
    path.write_bytes(path.read_bytes()[:-2000])
    log, said = read(path, fixed)
    assert len(log.t) > 100 and any("no index, as one whose recording broke off" in one for one in said)


BAD = {
    "no.mcap": (b"hello", "does not begin like one"),
    "begun.mcap": (b"\x89MCAP0\r\n", "ended before the first complete message"),
    "no.bag": (b"hello", "magic"),
    "no.db3": (b"hello", "not a database"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_bag_is_an_error(robot, tmp_path, name):
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(rk.ShapeError, match=f"(?i){message}"):
        rk.read_log(tmp_path / name, robot)
    with pytest.raises(rk.ShapeError, match=r"folder without metadata\.yaml"):
        rk.read_log(tmp_path, robot)
    with pytest.raises(rk.ShapeError, match=r"there is no file '.*none\.mcap'; give a CSV"):
        rk.read_log(tmp_path / "there_is_none.mcap", robot)


def test_a_bag_says_what_it_has_instead(robot, run, tmp_path):
    path = write(tmp_path / "a", odometry(run))
    with pytest.raises(rk.ShapeError, match=r"no topic has states of joints.*/odom \(nav_msgs/Odometry\)"):
        rk.read_log(path, robot)
    with pytest.raises(rk.ShapeError, match="no /robot_description"):
        rk.read_log(write(tmp_path / "b", joints(robot, run)), None)
    broken = ("/robot_description", "std_msgs/msg/String", log_files.START, {"data": "<robot"})
    with pytest.raises(rk.UrdfError, match=r"d: /robot_description.*xml-syntax"):
        rk.read_log(write(tmp_path / "d", [broken], joints(robot, run)), None)
    with pytest.raises(rk.ShapeError, match="did you mean '/odom'"):
        rk.read_log(write(tmp_path / "c", joints(robot, run), odometry(run)), robot, base_topic="/odo")


def test_chunks_that_unpack_without_end_are_bounded(tmp_path):
    """A chunk of 3 GiB of zeros packs into 12 MB; the process that reads it may have 2 GiB."""
    import lz4.frame
    from mcap.data_stream import RecordBuilder
    from mcap.records import Chunk
    from mcap.writer import Writer

    packed = lz4.frame.LZ4FrameCompressor(block_linked=False, auto_flush=True)
    data = packed.begin() + 192 * packed.compress(bytes(1 << 24)) + packed.flush()
    with open(tmp_path / "bomb.mcap", "wb") as file:
        Writer(file).start()
        chunk = RecordBuilder()
        Chunk("lz4", data, 1, 0, 0, 192 << 24).write(chunk)
        file.write(chunk.end())
    with pytest.raises(rk.ShapeError, match=r"memory|resize buffer"):
        read_bag(tmp_path / "bomb.mcap")


@pytest.mark.parametrize("package", ["rosbags", "mcap"])
def test_without_the_packages_it_is_said_what_to_install(robot, run, tmp_path, monkeypatch, package):
    path = {"rosbags": tmp_path / "a.bag", "mcap": tmp_path / "a.mcap"}[package]
    path.write_bytes(b"any")
    hidden = tmp_path / "hidden" / package
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text(f"raise ImportError('hidden', name={package!r})")
    monkeypatch.syspath_prepend(hidden.parent)
    with pytest.raises(rk.MissingDependency, match=rf"needs {package}: pip install 'robokit\[logs\]'"):
        rk.read_log(path, robot)


# ---- States of joints that come in line by line --------------------------------------------------


@pytest.fixture
def stream():
    said = []
    found = JointStream(rk.load_urdf(rk.find_robot("double_pendulum"), base="floating"), said.append)
    found.said = said
    return found


def test_lines_of_every_form_move_the_joints_that_they_name(stream):
    assert stream.take('{"name": ["upper_joint", "lower_joint"], "position": [0.1, 0.2], "velocity": []}')
    assert stream.q[7:].tolist() == [0.1, 0.2]
    assert stream.take('{"lower_joint": 0.3}') and stream.q[7:].tolist() == [0.1, 0.3]
    joints = [{"name": "upper_joint", "position": 0.4}]
    assert stream.take(json.dumps({"joints": joints, "timestamp": {"sec": 1, "nsec": 5}}))
    assert stream.q[7:].tolist() == [0.4, 0.3] and stream.stamp == 1_000_000_005
    pose = {"position": {"x": 1, "y": 2, "z": 3}, "orientation": {"x": 0, "y": 0, "z": 1, "w": 0}}
    assert stream.take(json.dumps({"pose": pose}))
    assert stream.take(json.dumps({"header": {}, "child_frame_id": "a", "pose": {"pose": pose}, "twist": {}}))
    assert stream.q.tolist() == [0, 0, 0, 1, 1, 2, 3, 0.4, 0.3]
    assert (stream.states, stream.skipped, stream.said) == (5, 0, [])


BAD_LINES = {
    "not json": "no JSON",
    "[1]": "expected a JSON object, got a list",
    '{"name": ["uper_joint"], "position": [1]}': "did you mean 'upper_joint'",
    '{"name": ["upper_joint"], "position": [1, 2]}': "1 names and 2 numbers of position",
    '{"name": ["upper_joint", "upper_joint"], "position": [1, 2]}': "named twice",
    '{"name": ["upper_joint"], "position": ["1"]}': "expected a list of numbers",
    '{"name": [{}], "position": [1]}': "expected a list of joint names",
    '{"upper_joint": NaN}': "is nan",
    '{"upper_joint": true}': "no joint states",
    '{"name": ["upper_joint"], "velocity": [1]}': "no positions",
    '{"pose": {"position": 1}}': "expected position x, y, z",
    "[" * 100_000: "no JSON|recursion",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:30])
def test_bad_lines_are_named_and_change_nothing(stream, line):
    before = stream.q.copy()
    assert not stream.take("") and not stream.take(line)
    assert np.array_equal(stream.q, before) and stream.skipped == 1
    (text,) = stream.said
    assert text.startswith("line 2 skipped: ") and any(part in text for part in BAD_LINES[line].split("|"))


def test_only_some_bad_lines_are_named(stream):
    for _ in range(3 * NAMED):
        stream.take("x")
    assert len(stream.said) == NAMED and stream.skipped == 3 * NAMED


def test_a_file_is_followed_as_it_grows(stream, tmp_path):
    path, ended = tmp_path / "states.jsonl", threading.Event()
    path.write_text('{"upper_joint": 1}\n')
    seen = []
    with open(path, encoding="utf-8") as file:

        def follow():
            seen.extend(q[7] for q in stream.follow(file, ended.is_set))

        reader = threading.Thread(target=follow)
        reader.start()
        with open(path, "a", encoding="utf-8") as more:
            for text in ('{"upper_jo', 'int": 2}\n{"upper', '_joint": 3}\n'):
                more.write(text)
                more.flush()
                time.sleep(0.05)
        waiting.until(lambda: stream.states == 3)
        ended.set()
        reader.join()
    assert seen == [1, 2, 3] and stream.said == []


def test_standard_input_ends_also_where_it_is_a_file(stream, tmp_path):
    path = tmp_path / "states.jsonl"
    path.write_text('{"upper_joint": 1}\n{"upper_joint": 2}')
    with open(path, encoding="utf-8") as file:

        class Redirected:
            fileno, readline = staticmethod(lambda: 0), file.readline

        assert [q[7] for q in stream.follow(Redirected())] == [1, 2]


def test_lines_with_stamps_come_at_their_times(stream, tmp_path):
    path = tmp_path / "states.jsonl"
    path.write_text("".join(f'{{"stamp": {0.05 * k + 1}, "upper_joint": {k}}}\n' for k in range(5)))
    times = []
    with open(path, encoding="utf-8") as file:
        start = time.monotonic()
        for _ in stream.follow(file, lambda: len(times) == 5):
            times.append(time.monotonic() - start)
    assert times[-1] >= 0.19
