"""States of joints that come in line by line."""

import json
import threading
import time

import numpy as np
import pytest

import robokit as rk
from robokit.logs.recording import NAMED, JointStream


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


BAD = {
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


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:30])
def test_bad_lines_are_named_and_change_nothing(stream, line):
    before = stream.q.copy()
    assert not stream.take("") and not stream.take(line)
    assert np.array_equal(stream.q, before) and stream.skipped == 1
    (text,) = stream.said
    assert text.startswith("line 2 skipped: ") and any(part in text for part in BAD[line].split("|"))


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
        for _ in range(200):
            if stream.states == 3:
                break
            time.sleep(0.02)
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
