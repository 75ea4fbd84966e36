"""Attributes computed once: without a lock that a forked child could wait for, the same for all threads."""

import copy
import gc
import importlib
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest

import robokit as rk
from robokit import interpreter
from robokit.caching import Derived, Recent, cached_attribute
from robokit.model import robot as robot_module
from robokit.model.robot import MOST_GRAVITIES

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def fresh(robot):
    """An equal robot of which nothing was asked yet."""
    return replace(robot, tree=replace(robot.tree))


def ends_well(pid: int, seconds: float = 20.0) -> bool:
    """Whether a child ends with status 0 in time; it is killed where it does not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


@posix
def test_a_child_forked_while_a_thread_computes_an_attribute_computes_its_own(monkeypatch):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    computing, go_on, compute = threading.Event(), threading.Event(), robot_module.inertia_pattern

    def slow(dof_parent):
        if threading.current_thread() is not threading.main_thread():
            computing.set()
            go_on.wait(60.0)
        return compute(dof_parent)

    monkeypatch.setattr(robot_module, "inertia_pattern", slow)
    first = fresh(robot)
    thread = threading.Thread(target=lambda: first.inertia_pattern)
    thread.start()
    assert computing.wait(60.0)
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
    (tmp_path / "imported_never.py").write_text("import robokit; robokit.go_on.wait(60.0)")
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
            barrier.wait(60.0)  # all four compute
            made.append(object())
            return made[-1]

    owner, store = Owner(), Derived()

    def ask() -> None:
        found.append(owner.value)
        found.append(store.get("value", lambda: (barrier.wait(60.0), object())[1]))

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
