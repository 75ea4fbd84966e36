"""Robot: names, configurations and the manifold of q, single and in batches."""

from __future__ import annotations

import copy
import gc
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from dataclasses import replace

import ladder
import numpy as np
import pytest
import waiting
from ladder import State, relative
from numpy.testing import assert_allclose

import robokit as rk
from robokit import interpreter
from robokit.dataclass_tools import Derived, Recent, cached_attribute
from robokit.dynamics import gravity_forces
from robokit.errors import ShapeError, UnknownName
from robokit.model import ModelBuilder, couple
from robokit.model import robot as robot_module
from robokit.model.robot import MOST_GRAVITIES


def test_integrate_and_difference_are_inverse(built):
    s = State(built)
    q1 = built.integrate(s.q, s.v)
    assert relative(built.difference(s.q, q1), s.v) < 1e-13
    assert relative(built.integrate(s.q, np.zeros(built.nv)), s.q) < 1e-15
    assert np.abs(built.difference(s.q, s.q)).max() == pytest.approx(0.0, abs=1e-15)


def test_batches_are_rows_of_single_states(built):
    states = [State(built, k) for k in range(3)]
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    moved = built.integrate(q, v)
    assert moved.shape == (3, built.nq)
    assert_allclose(moved, [built.integrate(a, b) for a, b in zip(q, v, strict=True)], rtol=0, atol=1e-14)
    assert_allclose(built.difference(q, moved), v, rtol=0, atol=1e-12)
    # One state goes with a batch.
    assert_allclose(built.integrate(q[0], v)[1], built.integrate(q[0], v[1]), rtol=0, atol=1e-14)
    assert_allclose(built.integrate(q, v[0])[1], built.integrate(q[1], v[0]), rtol=0, atol=1e-14)


def test_rate_of_integrate_is_the_coordinate_rate(built):
    s, h = State(built), 1e-6
    numeric = (built.integrate(s.q, h * s.v) - built.integrate(s.q, -h * s.v)) / (2 * h)
    assert relative(numeric, ladder.coordinate_rate(built, s.q, s.v)) < 1e-8


def limited():
    b = ModelBuilder("limited").link("a")
    limits = {"both": (0.2, 0.4), "low": (5.0, None), "high": (None, -7.0), "none": (None, None)}
    for k, (name, (lower, upper)) in enumerate(limits.items()):
        parent = "a" if k == 0 else f"link{k - 1}"
        b.link(f"link{k}", 1.0).joint(name, "revolute", parent, f"link{k}", lower=lower, upper=upper)
    return b.build()


def test_random_configurations_respect_limits():
    robot, rng = limited(), np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(200)])
    assert q[:, 0].min() >= 0.2 and q[:, 0].max() <= 0.4 and np.ptp(q[:, 0]) > 0.15
    assert q[:, 1].min() >= 5.0
    assert q[:, 2].max() <= -7.0
    assert np.abs(q[:, 3]).max() <= np.pi and np.ptp(q[:, 3]) > 5.0


def test_random_configurations_are_drawn_joint_after_joint():
    robot = ModelBuilder("all").link("root", 1.0)
    for k in range(4):
        robot.link(f"l{k}", 1.0)
    robot.joint("a", "revolute", "root", "l0", lower=-0.3, upper=0.7).joint("b", "spherical", "l0", "l1")
    robot.joint("c", "prismatic", "l1", "l2", lower=0.1, upper=0.2).joint("d", "cylindrical", "l2", "l3")
    robot = robot.build("floating")
    free, _, ball = (robot.tree.joint[body] for body in (1, 2, 3))
    rng = np.random.default_rng(5)
    expected = [
        *free.random(rng, [-1] * 7, [1] * 7),
        rng.uniform(-0.3, 0.7),
        *ball.random(rng, [-1] * 4, [1] * 4),
    ]
    expected += [rng.uniform(0.1, 0.2), rng.uniform(-np.pi, np.pi), rng.uniform(-1, 1)]
    assert robot.random_configuration(5).tolist() == expected


def test_random_configurations_are_reproducible(built):
    a, b = (built.random_configuration(np.random.default_rng(4)) for _ in range(2))
    assert (a == b).all() and (a == built.random_configuration(4)).all()
    assert (a != built.random_configuration(5)).any()
    for joint in built.joints:
        if joint.kind in ("spherical", "floating"):
            assert np.linalg.norm(a[joint.q_slice][:4]) == pytest.approx(1.0, abs=1e-15)


def test_configuration_by_names():
    robot = ladder.random_tree(0, "floating")
    spherical = next(j for j in robot.joints if j.kind == "spherical")
    hinge = next(j for j in robot.joints if j.kind == "revolute")
    q = robot.configuration(
        base_position=(1, 2, 3),
        base_quat_wxyz=(0, 1, 0, 0),
        joints={hinge.name: 0.5, spherical.name: (0, 0, 1, 0)},
    )
    assert q[:7].tolist() == [0, 1, 0, 0, 1, 2, 3]
    assert q[hinge.q_slice].tolist() == [0.5] and q[spherical.q_slice].tolist() == [0, 0, 1, 0]
    rest = robot.neutral()
    rest[:7], rest[hinge.q_slice], rest[spherical.q_slice] = q[:7], q[hinge.q_slice], q[spherical.q_slice]
    assert (q == rest).all()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"base_quat_wxyz": (1, 1, 0, 0)}, "wxyz"),
        ({"base_position": (1, 2)}, "base_position"),
        ({"base_position": (1, 2, np.nan)}, "base_position"),
        ({"joints": {"joint1": (1, 2, 3, 4, 5, 6, 7, 8)}}, "joint1"),
    ],
)
def test_configuration_refuses_nonsense(kwargs, message):
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match=message):
        ladder.random_tree(0, "floating").configuration(**kwargs)


def test_random_configurations_come_by_the_number(built):
    one, many = np.random.default_rng(3), np.random.default_rng(3)
    rows = [built.random_configuration(one) for _ in range(4)]
    assert np.array_equal(built.random_configuration(many, 4), rows)
    assert one.random() == many.random()  # the generators stand at the same place
    assert np.array_equal(built.random_configuration(9, size=1)[0], built.random_configuration(9))
    assert built.random_configuration(9, 0).shape == (0, built.nq)
    for size in (-1, 2.5, (2, 3), True):
        with pytest.raises(ShapeError, match="size: expected a whole number"):
            built.random_configuration(9, size)


def test_a_mapping_alone_is_joints():
    robot = ladder.random_tree(0, "floating")
    hinge = next(j for j in robot.joints if j.kind == "revolute")
    pose = [0, 1, 0, 0, 1, 2, 3]
    q = robot.configuration({hinge.name: 0.5, robot.joint_names[0]: pose})
    expected = robot.configuration((1, 2, 3), (0, 1, 0, 0), {hinge.name: 0.5})  # as it was before
    assert np.array_equal(q, expected)
    q = robot.configuration({hinge.name: 0.5}, base_quat_wxyz=(0, 1, 0, 0))
    assert q[:7].tolist() == [0, 1, 0, 0, 0, 0, 0] and q[hinge.q_slice] == 0.5
    with pytest.raises(UnknownName, match=f"did you mean .*'{hinge.name}'"):
        robot.configuration({hinge.name + "x": 0.5})
    with pytest.raises(rk.WrongType, match="if joints are given, too"):
        robot.configuration({hinge.name: 0.5}, joints={hinge.name: 0.5})
    with pytest.raises(ShapeError, match="expected 7 numbers"):
        robot.configuration({robot.joint_names[0]: 1.0})
    fixed = ModelBuilder("f").link("a").link("b", 1.0).joint("weld", "fixed", "a", "b").build()
    with pytest.raises(ShapeError, match=r"weld.*the joint is fixed"):
        fixed.configuration({"weld": 0.0})


def test_configuration_of_a_fixed_base_has_no_base_pose():
    with pytest.raises(ShapeError, match="fixed base"):
        ladder.chain().configuration(base_position=(0, 0, 1))


def test_unknown_names_come_with_the_nearest():
    robot = ladder.chain()
    with pytest.raises(UnknownName, match="'joint1'"):
        robot.joint("jiont1")
    with pytest.raises(UnknownName, match="'link1'"):
        robot.link("lnk1")
    with pytest.raises(UnknownName):
        robot.frame("nothing like it")
    with pytest.raises(KeyError):
        robot.configuration(joints={"nope": 1.0})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.integrate(np.zeros(r.nq + 1), np.zeros(r.nv)), "q: expected"),
        (lambda r: r.integrate(r.neutral(), np.zeros(r.nv + 1)), "dv: expected"),
        (lambda r: r.difference(r.neutral(), np.zeros((2, 2, r.nq))), "q1: expected"),
        (lambda r: r.integrate(np.zeros((2, r.nq)), np.zeros((3, r.nv))), "batches of 2 and 3"),
        (lambda r: r.integrate("abc", np.zeros(r.nv)), "q: expected"),
        (lambda r: r.with_gravity((0, 0)), "gravity"),
    ],
)
def test_wrong_arrays_are_named(call, message):
    with pytest.raises(ShapeError, match=message):
        call(ladder.chain())


def test_with_gravity_makes_another_robot_and_leaves_the_first():
    robot = ladder.chain()
    moon = robot.with_gravity((0, 0, -1.62))
    assert moon.gravity.tolist() == [0, 0, -1.62] and robot.gravity.tolist() == [0, 0, -9.81]
    assert robot.with_gravity((0, 0, -1.62)) is moon
    assert robot.with_gravity(robot.gravity) is robot
    s = State(robot)
    assert relative(ladder.Plain(moon).gravity(s.q) * 9.81, ladder.Plain(robot).gravity(s.q) * 1.62) < 1e-13


def test_fingerprint_depends_on_the_mechanics_only():
    assert ladder.chain().fingerprint == ladder.chain().fingerprint
    assert ladder.chain().fingerprint != ladder.chain(base="floating").fingerprint
    assert ladder.chain().fingerprint != ladder.chain().with_gravity((0, 0, 0)).fingerprint


@pytest.mark.parametrize(("lower", "upper"), [(-1e16, 1e16), (-0.5, 1e16), (-1e16, 0.5), (None, None)])
def test_a_limit_beyond_what_angles_may_be_is_none(lower, upper):
    b = ModelBuilder("spinner").link("a").link("b", 1.0, inertia=np.eye(3))
    robot = b.joint("j", "revolute", "a", "b", lower=lower, upper=upper).build()
    drawn = np.array([robot.random_configuration(seed)[0] for seed in range(200)])
    low = lower if lower == -0.5 else -np.pi
    high = upper if upper == 0.5 else np.pi
    assert low <= drawn.min() < 0.9 * low + 0.1 * high
    assert high >= drawn.max() > 0.1 * low + 0.9 * high
    assert np.isfinite(gravity_forces(robot, drawn[:, None])).all()


@pytest.mark.parametrize("length", [0.0, 0.99, 1.5])
@pytest.mark.parametrize("rows", [None, 3])
def test_integrate_and_difference_refuse_quaternions_that_are_not_unit(length, rows):
    """The position would move by the square of the length."""
    robot = ladder.chain(2, base="floating")
    q, dv = robot.neutral(), np.ones(robot.nv)
    bad = q.copy()
    bad[:4] *= length
    if rows:
        q, bad = np.tile(q, (rows, 1)), np.vstack([np.tile(q, (rows - 1, 1)), bad])
    place = rf"\[{rows - 1}, 0:4\]" if rows else r"\[0:4\]"
    for call, name in (
        (lambda: robot.integrate(bad, dv), "q"),
        (lambda: robot.difference(bad, q), "q0"),
        (lambda: robot.difference(q, bad), "q1"),
    ):
        with pytest.raises(rk.InvalidValue, match=f"{name}: expected a unit quaternion .* at {name}{place}"):
            call()


def test_trees_joints_and_factors_are_shown_in_a_line():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    assert repr(robot.tree) == "<Tree: 3 bodies, 1 loop joint, nq 3, nv 3>"
    assert repr(robot.tree.joint[1]) == "<JointModel continuous, axis (0, 1, 0)>"
    H = rk.crba(robot, np.zeros((4, 3)))
    assert repr(rk.ltdl(robot, H)) == "<LTDLFactor of 'four_bar': nv 3 of 4 states>"


# ---- fingerprints --------------------------------------------------------------------------------
# What two robots differ in tells their code apart; robots that compute the same share it.

TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
SOME = np.diag([0.02, 0.03, 0.04])


def screw(pitch: float) -> rk.Robot:
    b = rk.ModelBuilder("screw").link("nut").link("bolt", 1.0, inertia=SOME)
    return b.joint("thread", "helical", "nut", "bolt", axis=(0, 0, 1), pitch=pitch).build()


def robot(
    parent: str = "upper",
    kind: str = "revolute",
    axis: tuple[float, float, float] = (0.0, 1.0, 0.0),
    pitch: float = 0.1,
    turn: np.ndarray | None = None,
    shift: tuple[float, float, float] = (0.1, 0.2, -0.3),
    carrier: str = "lower",
    tool_turn: np.ndarray | None = None,
    tool_shift: tuple[float, float, float] = (0.0, 0.1, 0.2),
    mass: float = 1.0,
    com: tuple[float, float, float] = (0.01, 0.02, -0.1),
    inertia: np.ndarray = SOME,
    root: float = 3.0,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    leader: str = "hinge",
    multiplier: float | None = None,
    offset: float = 0.3,
    limit: float = 2.0,
    damping: float = 0.0,
    name: str = "a",
) -> rk.Robot:
    """Two joints on one another, a third beside them, and a massless tool on a fixed joint."""

    def at(R: np.ndarray | None, p: tuple[float, float, float]) -> rk.Placement:
        return rk.Placement(np.eye(3) if R is None else R, np.array(p))

    b = rk.ModelBuilder(name).link("root", root, inertia=root * SOME).link("tool")
    b.link("upper", 1.0, (0.1, 0.0, -0.2), SOME).link("lower", mass, com, inertia).link(
        "side", 1.0, (0, 0, 1)
    )
    b.joint("hinge", "revolute", "root", "upper", at(None, (0, 0, 1)), axis=(1, 0, 0))
    b.joint("knee", kind, parent, "lower", at(turn, shift), axis, pitch, -limit, limit, damping=damping)
    mimic = None if multiplier is None else rk.Mimic(leader, multiplier, offset)
    b.joint("side", "revolute", "root", "side", at(None, (0, 1, 0)), axis=(1, 0, 0), mimic=mimic)
    b.joint("weld", "fixed", carrier, "tool", at(tool_turn, tool_shift))
    built = b.build(gravity=gravity)
    return built if multiplier is None else couple(built)


def answers(robot: rk.Robot, **how: str) -> np.ndarray:
    q = np.array([0.4, -0.7, 1.1])[: robot.nq]
    v, a = np.array([[0.3, -0.2, 0.5], [1.0, 0.6, -0.8]])[:, : robot.nv]
    poses = rk.forward_kinematics(robot, q, **how).matrices
    return np.concatenate([poses.ravel(), rk.rnea(robot, q, v, a, **how)])


COUPLED = {"multiplier": -2.0}
HELICAL = {"kind": "helical"}
DIFFERENT = {
    "parent": ({}, {"parent": "root"}),
    "kind of a joint": ({}, {"kind": "prismatic"}),
    "axis": ({}, {"axis": (0.0, 0.6, 0.8)}),
    "pitch": (HELICAL, HELICAL | {"pitch": 0.3}),
    "rotation of a joint": ({}, {"turn": TURNED}),
    "position of a joint": ({}, {"shift": (0.1, 0.2, -0.4)}),
    "body of a link": ({"tool_shift": (0, 0, 0)}, {"tool_shift": (0, 0, 0), "carrier": "upper"}),
    "rotation of a link": ({}, {"tool_turn": TURNED}),
    "position of a link": ({}, {"tool_shift": (0.0, 0.1, 0.3)}),
    "mass": ({}, {"mass": 2.0}),
    "centre of mass": ({}, {"com": (0.01, 0.02, -0.2)}),
    "inertia": ({}, {"inertia": 2.0 * SOME}),
    "gravity": ({}, {"gravity": (0.0, 1.0, -9.81)}),
    "multiplier of a coupled joint": (COUPLED, COUPLED | {"multiplier": 0.5}),
    "offset of a coupled joint": (COUPLED, COUPLED | {"offset": 0.4}),
    "leader of a coupled joint": (COUPLED, COUPLED | {"leader": "knee"}),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_robots_that_differ_do_not_share_code(what):
    first, second = (robot(**changes) for changes in DIFFERENT[what])
    assert first.fingerprint != second.fingerprint
    expected = [answers(each, engine="python") for each in (first, second)]
    for each, by_text in zip((first, second), expected, strict=True):
        assert relative(answers(each), by_text) < 1e-12
    assert relative(*expected) > 1e-3, "the difference shows"


@pytest.mark.parametrize("what", [w for w in DIFFERENT if w not in ("mass", "centre of mass", "inertia")])
def test_robots_with_given_inertias_that_differ_do_not_share_code(what):
    first, second = (robot(**changes) for changes in DIFFERENT[what])
    first, second = (each.with_inertias(each.inertial_parameters) for each in (first, second))
    assert first.fingerprint_without_inertias != second.fingerprint_without_inertias
    for each in (first, second):
        assert relative(answers(each), answers(each, engine="python")) < 1e-12


def test_screws_of_different_pitch_move_by_their_own():
    reach = [rk.forward_kinematics(screw(pitch), [1.2])["bolt"][1][2] for pitch in (0.1, 0.3)]
    assert reach == pytest.approx([0.12, 0.36], rel=1e-14)


@pytest.mark.parametrize("changes", [{"name": "b"}, {"limit": 1.0}, {"damping": 0.5}, {"root": 4.0}])
def test_what_no_equation_of_motion_holds_does_not_make_other_code(changes):
    assert robot(**changes).fingerprint == robot().fingerprint


def test_every_inertial_parameter_of_a_moving_body_tells_robots_apart():
    plain = robot()
    for k in range(10):
        P = np.array(plain.inertial_parameters)
        P[2, k] += 1e-6
        assert plain.with_inertias(P).fingerprint != plain.fingerprint
    stacked = plain.with_inertias(plain.inertial_parameters[None])
    assert stacked.fingerprint != plain.fingerprint
    assert stacked.fingerprint_without_inertias == plain.fingerprint_without_inertias


def test_every_number_of_a_placement_tells_robots_apart():
    plain = robot()
    for link in ("tool", "lower"):
        seen = {plain.fingerprint}
        k = plain.link_index[link]
        there = plain.link(link).placement
        for i in range(12):
            numbers = np.concatenate([there.rotation.ravel(), there.position])
            numbers[i] += 1e-9
            moved = replace(plain.links[k], placement=rk.Placement(numbers[:9].reshape(3, 3), numbers[9:]))
            links = (*plain.links[:k], moved, *plain.links[k + 1 :])
            seen.add(replace(plain, links=links).fingerprint)
        assert len(seen) == 13


# ---- attributes computed once --------------------------------------------------------------------
# Without a lock that a forked child could wait for, the same for all threads.

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def fresh(robot):
    """An equal robot of which nothing was asked yet."""
    return replace(robot, tree=replace(robot.tree))


def ends_well(pid: int) -> bool:
    """Whether a child ends with status 0; it is killed where it does not end."""
    ended = [(0, 0)]
    try:
        waiting.until(lambda: ended[-1][0] or ended.append(os.waitpid(pid, os.WNOHANG)), "the child's end")
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return ended[-1][1] == 0


@posix
def test_a_child_forked_while_a_thread_computes_an_attribute_computes_its_own(monkeypatch):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    computing, go_on, compute = threading.Event(), threading.Event(), robot_module.inertia_pattern

    def slow(dof_parent):
        if threading.current_thread() is not threading.main_thread():
            computing.set()
            go_on.wait(waiting.PATIENCE)
        return compute(dof_parent)

    monkeypatch.setattr(robot_module, "inertia_pattern", slow)
    first = fresh(robot)
    thread = threading.Thread(target=lambda: first.inertia_pattern)
    thread.start()
    assert computing.wait(waiting.PATIENCE)
    try:
        pid = os.fork()
        if pid == 0:  # the thread does not exist here: what it held would never be released
            os._exit(0 if fresh(robot).inertia_pattern.shape == (2, 2) else 1)
        assert ends_well(pid)
    finally:
        go_on.set()
        thread.join()


@posix
def test_children_forked_while_a_thread_uses_robots_for_the_first_time_end():
    robot, stop = rk.load_urdf(rk.find_robot("humanoid"), base="floating"), threading.Event()

    def use() -> None:
        one = fresh(robot)
        assert one.fingerprint == robot.fingerprint and one.link_index and one.tree.support

    def keep_using() -> None:
        while not stop.is_set():
            use()

    thread = threading.Thread(target=keep_using)
    thread.start()
    try:
        for _ in range(8):
            time.sleep(0.003)
            pid = os.fork()
            if pid == 0:
                use()
                os._exit(0)
            assert ends_well(pid)
    finally:
        stop.set()
        thread.join()


@posix
def test_no_child_is_forked_while_another_thread_imports_a_module(tmp_path, monkeypatch):
    monkeypatch.setattr(interpreter.wait_for_imports, "__defaults__", (waiting.PATIENCE,))
    (tmp_path / "imported_slowly.py").write_text("import time; time.sleep(0.3); DONE = True")
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("imported_slowly",))
    thread.start()
    while "imported_slowly" not in sys.modules:
        time.sleep(0.001)
    pid = os.fork()
    if pid == 0:  # the thread does not exist here: the lock of its module would never be released
        os._exit(0 if importlib.import_module("imported_slowly").DONE else 1)
    good = ends_well(pid)
    thread.join()
    del sys.modules["imported_slowly"]
    assert good


def test_a_fork_does_not_wait_for_ever_for_an_import(tmp_path, monkeypatch):
    (tmp_path / "imported_never.py").write_text("import robokit; robokit.go_on.wait()")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(rk, "go_on", threading.Event(), raising=False)
    thread = threading.Thread(target=importlib.import_module, args=("imported_never",))
    thread.start()
    while "imported_never" not in sys.modules:
        time.sleep(0.001)
    interpreter.wait_for_imports(patience=0.05)
    assert thread.is_alive()
    rk.go_on.set()
    thread.join()
    del sys.modules["imported_never"]


def test_all_threads_get_what_was_stored_first():
    barrier, found, made = threading.Barrier(4), [], []

    class Owner:
        @cached_attribute
        def value(self) -> object:
            """Documented."""
            barrier.wait(waiting.PATIENCE)  # all four compute
            made.append(object())
            return made[-1]

    owner, store = Owner(), Derived()

    def ask() -> None:
        found.append(owner.value)
        found.append(store.get("value", lambda: (barrier.wait(waiting.PATIENCE), object())[1]))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4
    assert len({id(each) for each in found}) == 2 and owner.value in found
    assert Owner.value.__doc__ == "Documented."


def test_what_a_value_of_raises_is_made_again():
    store, calls = Derived(), []

    def make() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError
        return 7

    with pytest.raises(ValueError):
        store.get("a", make)
    assert [store.get("a", make), store.get("a", make)] == [7, 7] and len(calls) == 2


def test_what_others_derived_from_a_robot_does_not_travel_with_it():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    assert robot.derived.get("test", lambda: 1) == 1
    rk.aba(robot, robot.neutral(), np.zeros(2), np.zeros(2))
    for twin in (pickle.loads(pickle.dumps(robot)), copy.copy(robot), copy.deepcopy(robot), fresh(robot)):
        assert twin.derived.get("test", lambda: 2) == 2
    assert robot.derived.get("test", lambda: 3) == 1


def test_what_was_asked_for_long_ago_and_is_not_in_use_goes():
    store, made = Recent(2), []

    class Value:
        pass

    def make() -> Value:
        made.append(1)
        return Value()

    first = store.get(0, make)
    gone = [weakref.ref(store.get(k, make)) for k in range(1, 5)]
    assert [each() is None for each in gone] == [True, True, False, False]
    assert store.get(0, make) is first and store.get(4, make) is gone[-1]()
    assert len(made) == 5


@pytest.mark.slow
@pytest.mark.parametrize("varied", [False, True])
def test_robots_under_many_gravities_do_not_pile_up(varied):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    if varied:
        robot = robot.with_inertias(robot.inertial_parameters)
    used, kernels = [], []
    for k in range(12):
        one = robot.with_gravity((0.0, 0.0, -1.0 - k))
        rk.gravity_forces(one, one.neutral() + 0.1)
        trajectory = rk.simulate(robot, duration=0.01, gravity=(0.0, 0.0, -1.0 - k))
        assert trajectory.robot is one, "the same robot while it is in use"
        used.append(weakref.ref(one))
        kernels.append(weakref.ref(getattr(made := one.kernels["gravity_forces"], "_kernel", made)))
    again = robot.with_gravity((0.0, 0.0, -12.0))
    assert again is one
    del one, again, made, trajectory
    gc.collect()
    assert sum(each() is not None for each in used) <= MOST_GRAVITIES
    assert sum(each() is not None for each in kernels) <= MOST_GRAVITIES
    assert len(robot.shared_kernels) <= MOST_GRAVITIES


def test_robots_of_other_inertias_under_one_gravity_share_their_kernels():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    gravity = (0.0, 0.0, -3.0)
    parameters = robot.inertial_parameters
    one = robot.with_inertias(parameters).with_gravity(gravity)
    rk.gravity_forces(one, one.neutral())
    made = list(one.kernels_of_all_inertias().values())
    other = robot.with_gravity(gravity).with_inertias(2.0 * parameters)
    rk.gravity_forces(other, one.neutral())
    assert list(other.kernels_of_all_inertias().values()) == made and len(made) == 1


# ---- copies --------------------------------------------------------------------------------------
# Robots travel: pickled, copied, to other processes.


def mass_matrix(robot):
    return rk.crba(robot, robot.neutral())


@pytest.mark.parametrize("name", ["humanoid", "four_bar"])
def test_a_copy_computes_the_same(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    H = mass_matrix(robot)
    rk.gravity_forces(robot.with_gravity((0, 0, -1.6)), robot.neutral())
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        assert twin is not robot and twin.joint_names == robot.joint_names
        assert twin.fingerprint == robot.fingerprint and not twin.kernels
        assert (mass_matrix(twin) == H).all()
        assert twin == robot and hash(twin) == hash(robot) and {robot: 1}[twin] == 1


def test_robots_are_equal_where_all_but_their_file_is(tmp_path):
    robot = rk.load_urdf(rk.find_robot("humanoid"))
    (tmp_path / "other.urdf").write_bytes(rk.find_robot("humanoid").read_bytes())
    other = rk.load_urdf(tmp_path / "other.urdf")
    assert other == robot and other.source != robot.source
    assert replace(robot, name="x") != robot != "humanoid"
    assert robot.with_gravity((0, 0, -1.6)) != robot == robot.with_gravity(robot.gravity)
    heavier = robot.inertial_parameters * 1.1
    assert robot.with_inertias(heavier) != robot
    assert robot.with_inertias(heavier) == robot.with_inertias(heavier)
    narrow = replace(robot.joints[0], lower=0.0, upper=0.1)
    assert replace(robot, joints=(narrow, *robot.joints[1:])) != robot


def test_a_spawned_process_takes_a_robot():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (H,) = pool.map(mass_matrix, [robot])
    assert np.array_equal(H, mass_matrix(robot))
