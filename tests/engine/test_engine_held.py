"""Answers that come in an object which the machine code makes."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import sys

import numpy as np
import pytest

import robokit as rk
from robokit.engine import single_calls
from robokit.engine.kernel import Kernel
from robokit.errors import UnknownName

pytestmark = [
    pytest.mark.usefixtures("compiled_well"),
    pytest.mark.skipif(
        not single_calls.layout_is_known(),
        reason="objects of this Python are not laid out as the machine code expects",
    ),
]


class Held:
    __slots__ = ("first", "second")


@pytest.fixture(scope="module")
def kernel():
    return Kernel("held", [("x", 3)], [("y", (2, 3))], lambda x: [[*x, *(2.0 * a for a in x)]])


def test_the_answer_and_its_owner_are_in_the_slots(kernel):
    owner = object()
    found = kernel.held(Held, owner)(np.array([1.0, 2.0, 3.0]))
    assert type(found) is Held and found.first is owner
    assert found.second.tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]


@pytest.mark.parametrize("given", [np.zeros(4), np.zeros((1, 3)), [0.0, 0.0, 0.0], np.full(3, np.nan)])
def test_what_the_kernel_does_not_take_is_declined(kernel, given):
    assert kernel.held(Held, None)(given) is None


def test_other_classes_and_several_outputs_are_declined(kernel):
    class Loose:
        pass

    class Three:
        __slots__ = ("a", "b", "c")

    assert (
        kernel.held(Loose, None) is single_calls.declined
        and kernel.held(Three, None) is single_calls.declined
    )
    two = Kernel("two", [("x", 1)], [("y", ()), ("z", ())], lambda x: [[x[0]], [x[0]]])
    assert two.held(Held, None) is single_calls.declined


def test_without_the_entry_it_is_declined(kernel, monkeypatch):
    monkeypatch.setattr(single_calls, "_shim", lambda: None)
    assert kernel.held(Held, None) is single_calls.declined


def test_no_object_is_lost_or_kept(kernel):
    owner, x = object(), np.array([1.0, 2.0, 3.0])
    make = kernel.held(Held, owner)
    make(x)
    before, counts = len(gc.get_objects()), (sys.getrefcount(owner), sys.getrefcount(Held))
    kept = [make(x) for _ in range(100)]
    assert sys.getrefcount(owner) == counts[0] + 100
    assert all(sys.getrefcount(each.second) == 2 for each in kept)
    kept.clear()
    assert make(np.full(3, np.nan)) is None
    assert (sys.getrefcount(owner), sys.getrefcount(Held)) == counts
    assert len(gc.get_objects()) < before + 50


def test_the_short_way_is_made_once():
    robot = rk.load_urdf(rk.find_robot("arm"))
    q = robot.neutral()
    rk.forward_kinematics(robot, q)
    made = robot.kernels["link poses"]
    for other in (q.tolist(), q.astype(np.float32), q):
        rk.forward_kinematics(robot, other)
    assert robot.kernels["link poses"] is made


def test_poses_outlive_their_robot_and_know_their_links():
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q = robot.neutral()
    slow, fast = rk.forward_kinematics(robot, q), rk.forward_kinematics(robot, q)
    names = robot.link_names
    assert type(robot.kernels["link poses"]).__name__ == "builtin_function_or_method"
    del robot
    gc.collect()
    for poses in (slow, fast, pickle.loads(pickle.dumps(fast))):
        assert type(poses) is rk.LinkPoses
        assert poses.link_names == tuple(poses) == names and len(poses) == len(names)
        np.testing.assert_array_equal(poses.matrices, slow.matrices)
        assert poses[names[-1]][1].tolist() == slow.position[-1].tolist()
        with pytest.raises(UnknownName, match="no link named 'tail'"):
            poses["tail"]


@pytest.mark.parametrize("field", ["type", "bytes", "float", "data", "ndim", "dims", "descr", "flags"])
def test_an_offset_that_is_wrong_is_noticed(monkeypatch, field):
    layout = single_calls.LAYOUT
    moved = dataclasses.replace(layout, **{field: getattr(layout, field) + 8})
    monkeypatch.setattr(single_calls, "LAYOUT", moved)
    assert not single_calls.layout_is_known()


def test_slots_that_lie_otherwise_are_noticed(monkeypatch):
    assert single_calls.can_hold(Held)
    layout = single_calls.LAYOUT
    monkeypatch.setattr(single_calls, "LAYOUT", dataclasses.replace(layout, slots=layout.slots[::-1]))
    assert not single_calls.can_hold(Held)


def test_where_objects_lie_otherwise_calls_go_through_ctypes(monkeypatch):
    monkeypatch.setattr(single_calls, "layout_is_known", lambda: False)
    monkeypatch.setattr(single_calls, "_shim", single_calls._shim.__wrapped__)  # as in a process's first call
    other = Kernel("slow", [("x", 3)], [("y", (2, 3))], lambda x: [[*x, *(2.0 * a for a in x)]])
    assert other(np.array([1.0, 2.0, 3.0])).tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    assert type(other.fast).__name__ == "function"
