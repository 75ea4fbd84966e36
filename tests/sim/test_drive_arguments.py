"""Actuators, pushes and keyframes as they are given: what is taken, and what is refused in words."""

import contextlib
import io
import json
import math
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.sim.actuators import PD, Keyframes, Torque, Velocity, actuators_of
from robokit.sim.force_elements import OutsideForces, Push, pushes_of
from robokit.sim.run_inputs import DrivenJoints


def fit(robot, *actuators, steps=10, dt=1e-3, q0=None, rows=1):
    q0 = robot.neutral()[None] if q0 is None else q0
    return DrivenJoints(robot, actuators, dt, steps, q0, rows)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: PD(kp=-1.0), "kp=...*>= 0, got -1"),
        (lambda: PD(kp={"hip": -1.0}), "joint 'hip'.*>= 0"),
        (lambda: PD(kd=[1.0, math.nan]), "finite"),
        (lambda: Velocity(gain="much"), "gain"),
        (lambda: Torque(effort=-2.0), "effort"),
        (lambda: Torque(joints="hip"), "sequence of joint names"),
        (lambda: actuators_of(3.0), "actuators: expected rk.Torque"),
        (lambda: actuators_of([PD(), "x"]), r"actuators\[1\]"),
        (lambda: fit(m.humanoid(), PD(kp={"right_hipp_pitch": 1.0})), "did you mean 'right_hip_pitch'"),
        (
            lambda: fit(m.humanoid(), PD(kp=1.0, joints=["floating_base"])),
            "is floating; actuators drive joints",
        ),
        (
            lambda: fit(m.double_pendulum(), PD(kp=np.ones(3))),
            r"expected shape \(\), \(2,\) or \(B, 2\), got \(3,\)",
        ),
        (lambda: fit(m.double_pendulum(), PD(kp=1.0, target=np.ones((3, 2)))), r"target.*expected shape"),
        (lambda: fit(m.double_pendulum(), PD(kp=1.0, target={"shoulder": 1.0, "x": 2.0})), "driven joint"),
        (lambda: fit(m.double_pendulum(), PD(kp=1.0), Torque()), "is driven twice"),
        (lambda: fit(m.double_pendulum(), Torque(target=[math.inf, 0.0])), "finite"),
        (lambda: fit(m.box(), Torque()), "no joint of one degree of freedom"),
        (lambda: fit(m.double_pendulum(), Torque(joints=[])), "at least one joint"),
        (lambda: fit(m.double_pendulum(), PD(kp=np.ones((4, 2)))), "rk.rollout takes them"),
        (lambda: Keyframes([0.0], "ab", [[1.0, 2.0]]), "sequence of joint names"),
    ],
)
def test_refused(make, words):
    with pytest.raises(rk.RobokitError, match=words):
        make()


def test_gains_by_name_choose_the_joints():
    first, second = m.double_pendulum().joint_names
    drives = fit(m.double_pendulum(), PD(kp={second: 30.0}, kd=2.0, target={second: 0.5}))
    assert [joint.name for joint in drives.joints] == [second]
    assert drives.at(0)[0] == pytest.approx([15.0])
    with pytest.raises(rk.ShapeError, match=f"{first!r} is driven and has no value"):
        fit(m.double_pendulum(), PD(kp={first: 1.0, second: 1.0}, kd={second: 30.0}))


def test_targets_hold_the_start_and_take_whole_configurations():
    robot = m.humanoid()
    q0 = robot.random_configuration(1)
    q1 = robot.random_configuration(2)
    hold = fit(robot, PD(kp=2.0), q0=q0[None])
    go = fit(robot, PD(kp=2.0, target=q1), q0=q0[None])
    assert hold.table(np.arange(1))[0, 0] == pytest.approx(2.0 * q0[7:])
    assert go.table(np.arange(1))[0, 0] == pytest.approx(2.0 * q1[7:])
    assert hold.at(0)[1] > 1e9, "nothing changes later"


def test_targets_by_step_and_row():
    robot, T, B = m.double_pendulum(), 10, 3
    rng = np.random.default_rng(0)
    target = rng.normal(size=(T, B, 2))
    drives = fit(robot, PD(kp=2.0, kd=0.5, target=target), rows=B)
    assert drives.rows == B
    assert drives.whole_table() == pytest.approx(2.0 * target)
    gains = fit(robot, PD(kp=np.ones((B, 2)) * [[1], [2], [3]], target=target[:, :1]), rows=B)
    assert gains.whole_table() == pytest.approx(target[:, :1] * np.array([1, 2, 3])[:, None])
    assert np.shape(gains.parameters()[0]) == (B,)
    with pytest.raises(rk.ShapeError, match="no functions"):
        fit(robot, PD(kp=1.0, target=lambda t, q, v: q)).whole_table()
    with pytest.raises(rk.ShapeError, match=r"a function \(t, q, v\) -> .* one that takes \(t\)"):
        fit(robot, PD(kp=1.0, target=lambda t: 0.0))


def test_limits_are_those_of_the_description():
    drives = fit(m.humanoid(), PD(kp=1.0, kd=1.0))
    names = ("kp", "b", "lag", "effort", "speed", "mass")
    assert drives.drives[0].parameters == names
    numbers = dict(zip(names, drives.parameters()[:6], strict=True))
    joint = drives.joints[0]
    assert (numbers["effort"], numbers["speed"]) == (joint.effort, joint.velocity)
    assert numbers["mass"] > 0.0
    free = fit(m.humanoid(), PD(kp=1.0, kd=1.0, effort=math.inf, max_velocity=math.inf))
    assert free.drives[0].parameters == ("kp", "b", "lag")


# ---- keyframes -------------------------------------------------------------------------------------


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_three_formats_say_the_same(tmp_path):
    time, values = np.array([0.0, 0.5, 2.0]), np.array([[0.0, 1.0], [0.5, -1.0], [0.25, 0.0]])
    rows = "\n".join(f"{t}, {a}, {b}, k{i}" for i, (t, (a, b)) in enumerate(zip(time, values, strict=True)))
    text = write(tmp_path, "a.csv", f"time, hip, knee, name\n# remark\n{rows}\n")
    frames = [
        {"time": t, "name": f"k{i}", "values": list(x)}
        for i, (t, x) in enumerate(zip(time, values, strict=True))
    ]
    data = write(tmp_path, "a.json", json.dumps({"joints": ["hip", "knee"], "keyframes": frames}))
    np.savez(tmp_path / "a.npz", time=time, values=values, joints=["hip", "knee"], name=["k0", "k1", "k2"])
    for path in (text, data, tmp_path / "a.npz"):
        found = Keyframes.load(path)
        assert found.joints == ("hip", "knee") and found.name == ("k0", "k1", "k2")
        assert np.array_equal(found.time, time) and np.array_equal(found.values, values)


@pytest.mark.parametrize(
    "name, text, words",
    [
        (
            "a.csv",
            "time,hip\n0,1\n0.5,x\n",
            r"a.csv, line 3, column 2 \('hip'\): expected a finite number, got 'x'",
        ),
        ("a.csv", "time,hip\n0,1\n0.5\n", "line 3: expected 2 columns, got 1"),
        ("a.csv", "hip\n1\n", "column 'time'"),
        ("a.csv", "", "header"),
        ("a.csv", "time,time,hip\n0,1,0\n", "one column 'time', got 2"),
        ("a.csv", "time,hip\n1,0\n0,0\n", "a.csv.*ascending"),
        ("a.csv", "time,hip,hip\n1,0,0\n", "'hip' occurs twice"),
        ("a.json", '{"keyframes": [', "a.json, line 1, column"),
        ("a.json", '{"keyframes": [{"time": 0, "values": {"hip": "x"}}]}', "keyframe 0, joint 'hip'"),
        ("a.json", '{"keyframes": [{"values": {"hip": 1}}]}', "keyframe 0, 'time'"),
        (
            "a.json",
            '{"joints": ["a", "b"], "keyframes": [{"time": 0, "values": [1]}]}',
            "expected 2 'values'",
        ),
        ("a.json", "[" * 100000, "nested|line"),
        ("a.npz", "no", "not an .npz file, as"),
        ("a.txt", "", "ends in .csv, .json, .npz"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, name, text, words):
    with pytest.raises(rk.ShapeError, match=words):
        Keyframes.load(write(tmp_path, name, text))


def test_a_file_that_is_not_there_or_names_no_joint(tmp_path):
    with pytest.raises(rk.ShapeError, match="No such file"):
        Keyframes.load(tmp_path / "none.csv")
    path = write(tmp_path, "a.csv", "time,shoulderr\n0,1\n")
    with pytest.raises(rk.UnknownName, match=r"shoulderr.*a\.csv, joint 1 of 1"):
        Keyframes.load(path, m.double_pendulum())


@pytest.mark.parametrize("curve", ["linear", "cubic"])
def test_curves_go_through_the_keyframes(curve):
    frames = Keyframes(
        np.array([0.5, 1.0, 1.7, 2.0]), ("a", "b"), np.random.default_rng(0).normal(size=(4, 2)), (), curve
    )
    assert frames.at(frames.time)[0] == pytest.approx(frames.values)
    t = np.linspace(0.0, 2.5, 2001)
    x, rate = frames.at(t)
    assert x[[0, -1]] == pytest.approx(frames.values[[0, -1]], rel=1e-14)
    assert not rate[t < 0.5].any() and not rate[t > 2.0].any()
    h = 1e-6
    smooth = np.abs(t[:, None] - frames.time).min(axis=1) > 2 * h
    numeric = (frames.at(t + h)[0] - frames.at(t - h)[0]) / (2 * h)
    assert rate[smooth] == pytest.approx(numeric[smooth], abs=1e-6)
    if curve == "cubic":  # rates and accelerations have no jumps inside
        for k in (1, 2):
            bends = [frames.at(frames.time[[k]] + s)[1] for s in (-2 * h, -h, h, 2 * h)]
            assert (bends[1] - bends[0]) == pytest.approx(bends[3] - bends[2], abs=1e-7)


def test_a_keyframe_is_a_configuration():
    robot = m.humanoid()
    frames = Keyframes(np.array([0.0, 1.0]), ("right_knee",), np.array([[0.1], [0.7]]), ("up", "squat"))
    q = frames.configuration(robot, "squat")
    assert q[robot.joint("right_knee").q_slice] == [0.7] and q[0] == 1.0
    with pytest.raises(rk.UnknownName, match="squat"):
        frames.configuration(robot, "squad")


# ---- pushes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pushes, words",
    [
        ([("boxx", (1, 0, 0))], "did you mean 'box'"),
        ([("box", (1, 0))], r"force \(3,\) or moment and force \(6,\)"),
        ([("box", (1, 0, math.nan))], "finite"),
        ([("box", (1, 0, 0), (0, 0, 0), 0.02)], r"pushes\[0\]: starts at 0.02 s, after the last step"),
        ([("box", (1, 0, 0), (0, 0, 0), 0.0, -1.0)], "duration"),
        ([("box",)], r"pushes\[0\]"),
        ("box", "pushes"),
        (Push("box", np.zeros((2, 3))), None),
        ([Push("box", np.zeros((2, 3))), Push("box", np.zeros((3, 3)))], r"pushes\[1\]: expected 2"),
        (lambda: Push("box", (1, 0, 0), frame="lnk"), "frame"),
    ],
)
def test_pushes_that_make_no_sense(pushes, words):
    def make():
        return OutsideForces(m.box(), pushes_of(pushes() if callable(pushes) else pushes), 1e-3, 10)

    if words is None:
        assert make().rows == 2
        return
    with pytest.raises(rk.RobokitError, match=words):
        make()


def test_pushes_act_for_the_time_that_is_given():
    pushes = [
        Push("box", (10.0, 0, 0), (0.1, 0, 0), start=2e-3, duration=3.4e-3),
        Push("box", (0, 0, 0, 0, 0, 2.0), (0.1, 0, 0), start=4e-3),
        ("box", (0, 1.0, 0), (0, 0, 0), 0.0, 1.0),
    ]
    forces = OutsideForces(m.box(), pushes_of(pushes), 1e-3, 10)
    table = forces.table(10)
    assert table.shape == (10, 1, 12)
    assert table.sum(axis=0)[0, [3, 5, 10]] * 1e-3 == pytest.approx([0.034, 2.0, 0.01])
    assert table[:, 0, 3] == pytest.approx([0, 0, 10, 10, 10, 4, 0, 0, 0, 0])
    step, seen = 0, []
    while step < 10:
        wrench, change = forces.at(step)
        assert np.array_equal(table[step : min(change, 10), 0], np.tile(wrench, (min(change, 10) - step, 1)))
        seen.append(step)
        step = change
    assert seen == [0, 2, 4, 5, 6]


def test_a_point_of_the_world_is_a_moment_about_its_origin():
    forces = OutsideForces(
        m.box(), pushes_of(Push("box", (0, 0, 5.0), (2.0, 0, 0), duration=1.0, frame="world")), 1e-3, 10
    )
    assert forces.places == [(1, None)]
    assert forces.at(0)[0] == pytest.approx([0, -10.0, 0, 0, 0, 5.0])


# ---- keyframe files of strangers -------------------------------------------------------------------


def _zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method, compresslevel=9) as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return path


def _npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=True)
    return file.getvalue()


def _header(shape, descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


PARTS = {"time.npy": _npy([0.0, 1.0]), "joints.npy": _npy(["hip"]), "values.npy": _npy([[0.0], [1.0]])}


def _bomb():
    return _header((180 << 17, 1)) + bytes(180 << 20)


def hostile_archives():
    """Name, how it is packed, members that replace those of PARTS, what is said."""
    deep = b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': ('<f8', (" + b" " * 98 + b"\n"
    return [
        ("bomb", "deflated", {"values.npy": _bomb}, "would unpack to"),
        ("empty", "stored", {"values.npy": _header((1 << 40, 7))}, "not what it holds"),
        ("pickle", "deflated", {"joints.npy": _npy(np.array([{"a": 1}], dtype=object))}, "not what it holds"),
        ("lzma", "lzma", {}, "not packed as numpy.savez"),
        ("bzip2", "bzip2", {}, "not packed as numpy.savez"),
        ("tokens", "stored", {"values.npy": deep}, "not an .npz file"),
        ("short", "stored", {"values.npy": _npy([[0.0], [1.0]])[:-3]}, "array 'values'"),
        ("version", "stored", {"values.npy": b"\x93NUMPY\x09\x00"}, "array 'values'|version"),
        ("shapes", "stored", {"time.npy": _npy(np.zeros(3))}, r"got \(3,\), \(2, 1\)"),
        ("nan", "stored", {"values.npy": _npy([[0.0], [np.nan]])}, r"values\[1, 0\] \(joint 'hip'\)"),
    ]


@pytest.mark.parametrize(
    "kind, way, members, words", hostile_archives(), ids=lambda x: x if isinstance(x, str) else ""
)
def test_hostile_archives_of_keyframes_are_refused(tmp_path, kind, way, members, words):
    method = getattr(zipfile, f"ZIP_{way.upper()}")
    # Made here: whoever only collects the tests does without 180 MB.
    members = {name: content() if callable(content) else content for name, content in members.items()}
    path = _zipped(tmp_path / "a.npz", PARTS | members, method)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    with pytest.raises(rk.ShapeError, match=words):
        Keyframes.load(path)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_one_bit_of_a_packed_member_or_its_method_is_an_error_of_ours(tmp_path):
    np.savez_compressed(
        tmp_path / "a.npz", time=np.arange(50.0), values=np.zeros((50, 2)), joints=["hip", "knee"]
    )
    good = (tmp_path / "a.npz").read_bytes()
    for place in range(len(good)):  # zlib's, NotImplementedError, struct's and others came from these
        (tmp_path / "b.npz").write_bytes(good[:place] + bytes([good[place] ^ 0x11]) + good[place + 1 :])
        with contextlib.suppress(rk.ShapeError):
            Keyframes.load(tmp_path / "b.npz")


@pytest.mark.parametrize("ending", [".csv", ".json", ".npz"])
def test_pipes_devices_and_folders_are_not_read(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe{ending}")
    (tmp_path / f"endless{ending}").symlink_to("/dev/zero")
    (tmp_path / f"folder{ending}").mkdir()
    (tmp_path / f"circle{ending}").symlink_to(f"circle{ending}")
    for name in ("pipe", "endless", "folder", "circle"):
        with pytest.raises(rk.ShapeError, match=f"{name}{ending}: .*(not a regular file|[Ss]ymbolic links)"):
            Keyframes.load(tmp_path / f"{name}{ending}")


def test_the_work_grows_with_the_file_and_is_bounded(tmp_path):
    wide = ",".join(f"j{k}" for k in range(60_000))
    with pytest.raises(rk.ShapeError, match=r"line 1: 60,000 joints; at most 10,000"):
        Keyframes.load(write(tmp_path, "a.csv", f"time,{wide}\n0,{wide}\n"))
    with pytest.raises(rk.ShapeError, match=r"a\.csv, line \d+: a row of more than 1,048,576 characters"):
        Keyframes.load(write(tmp_path, "a.csv", 'time,hip\n0,"' + '","\n' * 300_000))
    with pytest.raises(rk.ShapeError, match=r"5,000,001 entries; at most 4,000,000"):
        Keyframes.load(write(tmp_path, "a.json", "[" + "[]," * 2_500_000))
    with pytest.raises(rk.ShapeError, match=r"a\.json: .*4300"):
        Keyframes.load(write(tmp_path, "a.json", '{"keyframes": [{"time": ' + "1" * 5000 + "}]}"))
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(rk.ShapeError, match=r"large.json: 1,073,741,824 bytes; at most"):
        Keyframes.load(tmp_path / "large.json")
    names = [f"joint {k}" for k in range(10_000)]
    text = write(tmp_path, "a.json", json.dumps({"keyframes": [{"time": t, "values": dict.fromkeys(names, t)}
                                                               for t in (0.0, 1.0)]}))  # fmt: skip
    assert Keyframes.load(text).joints == tuple(names)  # some minutes when each name is looked for in a list


def _mutated(rng, seeds):
    data = bytearray(seeds[rng.integers(len(seeds))])
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(len(data) + 1))
        how = rng.integers(5)
        if how == 0 and at < len(data):
            data[at] ^= 1 << rng.integers(8)
        elif how == 1:
            data[at : at + int(rng.integers(1, 40))] = b""
        elif how == 2:
            data[at:at] = data[at : at + int(rng.integers(1, 60))] * int(rng.integers(1, 20))
        elif how == 3:
            data[at : at + 1] = bytes(rng.integers(0, 256, rng.integers(1, 8), dtype=np.uint8))
        else:
            data[at:at] = [b'"', b"[", b"{", b",", b"\n", b"1e999", b"null", b"\xff\xfe", b"\0"][
                rng.integers(9)
            ]
    return bytes(data)


@pytest.mark.parametrize("count", [600, pytest.param(4_000, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:Reading")
def test_mutated_keyframe_files_end_in_an_error_of_ours_or_are_read(tmp_path, count):
    time, values = np.array([0.0, 0.5, 2.0]), np.array([[0.0, 1.0], [0.5, -1.0], [0.25, 0.0]])
    given = {"time": time, "values": values, "joints": ["hip", "knee"], "name": ["a", "b", "c"]}
    np.savez(tmp_path / "stored.npz", **given)
    np.savez_compressed(tmp_path / "packed.npz", **given)
    frames = [{"time": t, "name": "k", "values": list(x)} for t, x in zip(time, values, strict=True)]
    by_name = [{"time": t, "values": {"hip": 0.1, "knee": t}} for t in time]
    seeds = {
        ".csv": [b"time, hip, knee, name\n# remark\n0, 0, 1, a\n0.5, .5, -1, \"b, c\"\n2, .25, 0, d\n"],
        ".json": [json.dumps({"joints": ["hip", "knee"], "keyframes": frames}).encode(),
                  json.dumps({"keyframes": by_name}).encode()],
        ".npz": [(tmp_path / f"{name}.npz").read_bytes() for name in ("stored", "packed")],
    }  # fmt: skip
    rng, read = np.random.default_rng(count), 0
    for k in range(count):
        ending = (".csv", ".json", ".npz", ".npz")[k % 4]
        path = tmp_path / f"m{ending}"
        path.write_bytes(_mutated(rng, seeds[ending]))
        try:
            found = Keyframes.load(path)
        except rk.ShapeError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            assert np.isfinite(found.values).all() and len(found.time) == len(found.values)
            read += 1
    assert 0.01 < read / count < 0.5  # the mutations are neither harmless nor all fatal at the first byte
