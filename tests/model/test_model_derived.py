"""Attributes computed once: without a lock that a forked child could wait for, the same for all threads."""

import copy
import os
import pickle
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import robokit as rk
from robokit.derived import Derived, cached_attribute
from robokit.model import robot as robot_module

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
