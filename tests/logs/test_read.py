"""Logs of every format say the same; what is odd about one is said, and what is none is an error."""

import warnings

import log_files
import numpy as np
import pytest

import robokit as rk

T = 200
t = 0.01 * np.arange(T)
q = np.stack([np.sin(3 * t), 0.5 * np.cos(2 * t)], axis=1)
v = np.stack([3 * np.cos(3 * t), -np.sin(2 * t)], axis=1)
tau = np.stack([np.cos(t), np.sin(t)], axis=1)
NAMES = ("upper_joint", "lower_joint")


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@pytest.fixture(scope="module")
def floating():
    return rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")


def read(path, robot, **options):
    """The log, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        log = rk.read_log(path, robot, **options)
    return log, [str(w.message) for w in found]


def table(path, header, rows, mark=","):
    lines = [mark.join(map(str, row)) for row in rows]
    path.write_text("\n".join([*([header] if header else []), *lines]) + "\n")
    return path


def same(log, velocities=False, efforts=False):
    assert np.allclose(log.q, q, rtol=0, atol=1e-9)
    assert np.allclose(log.t, t, rtol=0, atol=1e-6)
    assert np.allclose(log.v, v, rtol=0, atol=1e-9 if velocities else 0.05)
    assert (log.tau is not None) == efforts and (not efforts or np.allclose(log.tau, tau, atol=1e-9))


HEADERS = {
    "names": ("time,upper_joint,lower_joint", ()),
    "quantities": (
        "t,upper_joint_position,lower_joint_pos,upper_joint_vel,lower_joint_velocity,upper_joint_effort,"
        "lower_joint_torque",
        ("v", "tau"),
    ),
    "paths": ("__time,/joint_states/upper_joint/position,/joint_states/lower_joint/position", ()),
    "numbers": ("time,q0,q1,dq0,dq1,tau0,tau1", ("v", "tau")),
    "franka": ("time,q_1,q_2,dq_1,dq_2,tau_J_1,tau_J_2", ("v", "tau")),
    "brackets": ("time [s],position[0],position[1],velocity[0],velocity[1]", ("v",)),
    "none": ("", ("v",)),
    "comment": ("# time,upper_joint,lower_joint", ()),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_tables_of_every_header_say_the_same(robot, tmp_path, kind):
    header, more = HEADERS[kind]
    rows = np.column_stack([t, q, *([v] if "v" in more else []), *([tau] if "tau" in more else [])])
    log, said = read(table(tmp_path / "log.csv", header, rows), robot)
    same(log, "v" in more, "tau" in more)
    assert ("no velocities of any joint" in " ".join(said)) == ("v" not in more)
    assert ("robot's order" in " ".join(said)) == (kind in ("numbers", "franka", "brackets", "none"))
    assert log.summary["velocities"] == (list(NAMES) if "v" in more else [])


@pytest.mark.parametrize("mark", [";", "\t", " "])
def test_other_marks_and_decimal_commas(robot, tmp_path, mark):
    rows = np.column_stack([t, q]).tolist()
    if mark == ";":
        rows = [[str(x).replace(".", ",") for x in row] for row in rows]
    same(read(table(tmp_path / "log.csv", mark.join(("time", *NAMES)), rows, mark), robot)[0])


@pytest.mark.parametrize(
    ("header", "times", "said"),
    [
        ("time", 1e3 * t, "is read as ms: its usual step is 10"),
        ("timestamp", [str(log_files.START + int(x)) for x in np.round(1e9 * t)], None),
        ("stamp_us", 1e6 * t, None),
        ("%time", [str(log_files.START + int(x)) for x in np.round(1e9 * t)], None),
    ],
)
def test_units_of_time(robot, tmp_path, header, times, said):
    rows = [[x, *row] for x, row in zip(times, q, strict=True)]
    log, texts = read(table(tmp_path / "log.csv", f"{header},upper_joint,lower_joint", rows), robot)
    same(log)
    assert any(said in text for text in texts) if said else len(texts) == 1


def test_a_table_without_times_takes_a_rate(robot, tmp_path):
    path = table(tmp_path / "log.csv", ",".join(NAMES), q)
    same(read(path, robot, rate=100.0)[0])
    with pytest.raises(rk.ShapeError, match=r"no column of time.*rate="):
        rk.read_log(path, robot)


def test_degrees_are_suspected_and_turned(robot, tmp_path):
    rows = np.column_stack([t, np.degrees(q)])
    path = table(tmp_path / "log.csv", "time,upper_joint,lower_joint", rows)
    assert any("in degrees" in text for text in read(path, robot)[1])
    log, texts = read(path, robot, degrees=True)
    same(log)
    assert not any("in degrees" in text for text in texts)
    same(read(table(tmp_path / "log.csv", "time,upper_joint [deg],lower_joint_deg", rows), robot)[0])


def test_velocities_that_are_no_rates_are_named(robot, tmp_path):
    rows = np.column_stack([t, q, np.degrees(v[:, 0]), -v[:, 1]])
    path = table(tmp_path / "log.csv", "time,upper_joint,lower_joint,upper_joint_vel,lower_joint_vel", rows)
    text = next(text for text in read(path, robot)[1] if "not the rates" in text)
    assert "upper_joint 57.3" in text and "lower_joint -1" in text


def test_numpy_files(robot, tmp_path):
    whole = {"t": t, "q": q[:, ::-1], "dq": v[:, ::-1], "tau": tau[:, ::-1], "names": np.array(NAMES[::-1])}
    np.savez(tmp_path / "a.npz", **whole)
    log, said = read(tmp_path / "a.npz", robot)
    same(log, True, True)
    assert said == []
    np.savez(tmp_path / "b.npz", time=t, upper_joint=q[:, 0], lower_joint=q[:, 1])
    np.save(tmp_path / "c.npy", np.column_stack([t, q, v, tau]))
    kinds = [("time", float), ("upper_joint", float), ("lower_joint", float)]
    np.save(tmp_path / "d.npy", np.array(list(zip(t, *q.T, strict=True)), dtype=kinds))
    same(read(tmp_path / "b.npz", robot)[0])
    same(read(tmp_path / "c.npy", robot)[0], True, True)
    same(read(tmp_path / "d.npy", robot)[0])


def test_what_robokit_writes_is_read_without_a_word(floating, tmp_path):
    start = np.concatenate([[1.0, 2.0, 3.0, 0.5, 0.2, 0.1], np.ones(floating.nv - 6)])
    run = rk.simulate(
        floating, v0=start, duration=0.02, dt=1e-3, record_every=1, actuators=rk.PD(kp=50, kd=5)
    )
    log, said = read(run.to_csv(tmp_path / "run.csv"), floating)
    assert said == [] and np.allclose(log.q, run.q, rtol=0, atol=1e-14) and np.array_equal(log.v, run.v)
    assert np.array_equal(read(run.save(tmp_path / "run.npz"), floating)[0].q, run.q)
    # energies are those of the states, and a log can be kept and shown as any run
    assert np.allclose(log.energy.kinetic, run.energy.kinetic) and np.allclose(
        log.momentum, run.momentum, atol=1e-9
    )
    assert np.array_equal(rk.Trajectory.load(log.save(tmp_path / "log.npz")).q, log.q)


def test_the_effort_of_a_run_is_its_actuators_force_where_there_is_one(robot, tmp_path):
    held = NAMES[0]
    run = rk.simulate(
        robot,
        duration=0.02,
        dt=1e-3,
        controller=lambda t, q, v: np.array([0.3, 0.5]),
        actuators=rk.PD(joints=(held,), kp=50, kd=5, target=0.2),
    )
    log, said = read(run.to_csv(tmp_path / "run.csv"), robot)
    k = robot.joint_names.index(held)
    assert said == [] and not np.allclose(run.actuator_force[:, k], run.tau[:, k])
    assert np.array_equal(log.tau[:, k], run.actuator_force[:, k])
    assert np.array_equal(log.tau[:, 1 - k], run.tau[:, 1 - k])


def test_forces_of_springs_and_prescribed_joints_are_no_efforts(robot, tmp_path):
    springs = [rk.JointSpring(name, stiffness=5.0) for name in NAMES]  # named after their joints
    wave = rk.PrescribedMotion("upper_joint", lambda t: 0.3 * np.sin(5.0 * t))
    for given in ({"springs": springs}, {"motions": wave}):
        run = rk.simulate(robot, duration=0.02, dt=1e-3, record_every=1, **given)
        log, said = read(run.to_csv(tmp_path / "run.csv"), robot)
        assert said == [] and log.tau is None and log.summary["efforts"] == []
    # the same columns in another program's table are named as not read
    header = "time [s],upper_joint,lower_joint,spring/upper_joint/force,contact_force/x"
    path = table(tmp_path / "log.csv", header, np.column_stack([t, q, tau]))
    log, said = read(path, robot)
    assert log.tau is None
    assert any("not read: 'spring/upper_joint/force', 'contact_force/x'" in text for text in said)


ODD = {
    "twice and out of order": (np.r_[0:5, 4, 7, 5, 6, 8:T], ["1 stamp twice", "1 stamp out of order"]),
    "played twice": (np.r_[0:150, 0:100], ["the clock goes back by 1.49 s", "150 samples"]),
    "gap": (np.r_[0:50, 120:T], ["1 gap without samples, the longest 0.71 s"]),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_stamps_are_said(robot, tmp_path, kind):
    order, texts = ODD[kind]
    path = table(tmp_path / "log.csv", "time,upper_joint,lower_joint", np.column_stack([t, q])[order])
    log, said = read(path, robot)
    assert all(any(text in one for one in said) for text in texts), said
    assert (np.diff(log.t) > 0.0).all()
    assert np.allclose(log.q[:, 0], np.sin(3 * log.t), atol=1e-9)


def test_broken_samples_are_interpolated_and_counted(robot, tmp_path):
    rows = np.column_stack([t, q]).astype(str).tolist()
    rows[10][1], rows[11][1], rows[20][2], rows[-1] = "nan", "", "inf", ["3.0"]
    log, said = read(table(tmp_path / "log.csv", "time,upper_joint,lower_joint", rows), robot)
    assert any("2 samples of 'upper_joint' (position) without a usable number" in text for text in said)
    assert any("1 sample of 'lower_joint'" in text for text in said)
    assert any("line 201, the last one, breaks off" in text for text in said)
    assert np.abs(log.q - q[:-1]).max() < 1e-3


def test_joints_that_are_missing_unknown_or_renamed(robot, tmp_path):
    path = table(tmp_path / "log.csv", "time,uper_joint,elbow", np.column_stack([t, q]))
    with pytest.raises(rk.ShapeError, match="did you mean 'upper_joint'"):
        rk.read_log(path, robot)
    same(read(path, robot, rename={"uper_joint": "upper_joint", "elbow": "lower_joint"})[0])
    swapped = table(tmp_path / "b.csv", "time,lower_joint,upper_joint", np.column_stack([t, q]))
    same(read(swapped, robot, rename={"upper_joint": "lower_joint", "lower_joint": "upper_joint"})[0])
    log, said = read(path, robot, rename={"uper_joint": "upper_joint"}, missing={"lower_joint": 0.25})
    assert (log.q[:, 1] == 0.25).all() and any("not read: 'elbow'" in text for text in said)
    _, said = read(path, robot, rename={"uper_joint": "upper_joint"})
    assert any("no positions of 1 of 2 joints, which stay at 0: lower_joint" in text for text in said)
    with pytest.raises(rk.UnknownName, match="lower_joint"):
        rk.read_log(path, robot, missing={"lower": 1.0})
    with pytest.raises(rk.WrongType, match="rename: expected a mapping"):
        rk.read_log(path, robot, rename=["lower"])


def test_start_and_end(robot, tmp_path):
    path = table(tmp_path / "log.csv", "time,upper_joint,lower_joint", np.column_stack([t, q]))
    log, _ = read(path, robot, start=0.5, end=1.0)
    assert log.t[0] == 0.5 and log.t[-1] == 1.0 and np.allclose(log.q, q[50:101])
    with pytest.raises(rk.ShapeError, match=r"0 samples between start and end.*covers 1.99 s"):
        rk.read_log(path, robot, start=5.0)


@pytest.mark.parametrize("order", ["shuffled", "backwards"])
def test_rows_in_any_order_are_sorted(robot, tmp_path, order):
    rows = np.column_stack([t, q])[::-1]
    if order == "shuffled":  # its steps look like seconds, and are no unit
        rows = np.random.default_rng(0).permutation(rows)
    log, said = read(table(tmp_path / "log.csv", "time,upper_joint,lower_joint", rows), robot)
    same(log)
    assert "out of order, sorted" in " ".join(said) and "read as" not in " ".join(said)


BAD = {
    "cell": ("time,upper_joint\n0,1\n1,x\n", "line 3, column 'upper_joint': expected a number, got 'x'"),
    "row": ("time,upper_joint,lower_joint\n0,1,2\n0.1,3\n0.2,1,1\n", "line 3 has fewer than 3 cells"),
    "empty": ("", "an empty file"),
    "one": ("time,upper_joint\n0,1\n", "all samples are of one time"),
    "header": ("time,upper_joint\n", "a header without any row"),
    "never": ("time,upper_joint\n1e300,1\nnan,2\n", "column 'time' of time holds no times"),
    "binary": ("time\0", "neither a table of text nor"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_table_is_an_error(robot, tmp_path, kind):
    text, message = BAD[kind]
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(rk.ShapeError, match=message):
        rk.read_log(tmp_path / "log.csv", robot)
    with pytest.raises(rk.ShapeError, match=r"there is no file '.*no\.csv'; give a CSV"):
        rk.read_log(tmp_path / "no.csv", robot)


def test_followers_of_mimic_joints_are_checked(tmp_path):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = f"""<robot name="gripper"><link name="palm"/>
      <link name="left">{body}</link><link name="right">{body}</link>
      <joint name="finger" type="revolute"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
        <limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
      <joint name="other" type="revolute"><parent link="palm"/><child link="right"/><axis xyz="1 0 0"/>
        <limit lower="-2" upper="2" effort="1" velocity="1"/><mimic joint="finger" multiplier="-1"/></joint>
      </robot>"""
    robot = rk.loads_urdf(text, mimic="couple")
    x = np.sin(t)
    path = table(tmp_path / "a.csv", "time,finger,other", np.column_stack([t, x, -x]))
    assert len(read(path, robot)[1]) == 1  # that there are no velocities
    path = table(tmp_path / "a.csv", "time,finger,other", np.column_stack([t, x, x]))
    assert any("'other' is up to" in text for text in read(path, robot)[1])
    log, said = read(table(tmp_path / "a.csv", "time,other", np.column_stack([t, -x])), robot)
    assert np.allclose(log.q[:, 0], x) and any("taken from 'other'" in text for text in said)


def test_joints_that_turn_without_end_lose_their_jumps(tmp_path):
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    robot = rk.loads_urdf(f"""<robot name="wheel"><link name="axle"/><link name="tyre">{body}</link>
      <joint name="turn" type="continuous"><parent link="axle"/><child link="tyre"/></joint></robot>""")
    angle = 3.0 * t
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    log, said = read(table(tmp_path / "a.csv", "time,turn", np.column_stack([t, wrapped])), robot)
    assert np.allclose(log.q[:, 0], angle) and any("turns of +-pi are taken out of turn" in x for x in said)
    assert np.allclose(log.v, 3.0)
    degrees = table(tmp_path / "b.csv", "time,turn", np.column_stack([t, np.degrees(wrapped)]))
    assert np.allclose(read(degrees, robot, degrees=True)[0].q[:, 0], angle)
    assert "wheel" in read(degrees, robot, degrees=True)[0].report()[0]
