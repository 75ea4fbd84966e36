"""Arguments that a kernel refuses, and what it says."""

from __future__ import annotations

import math
import warnings

import ladder
import numpy as np
import pytest
from for_each import for_each

import robokit as rk
from robokit.arguments import check_quaternion
from robokit.engine.kernel import Kernel
from robokit.errors import InvalidValue, ShapeError


@pytest.fixture(scope="module")
def kernel():
    def function(q, v):
        return [[a * b for a, b in zip(q, v, strict=True)]]

    return Kernel("k", [("q", 7), ("v", 7)], [("y", (7,))], function, quaternions=[(0, 0)])


Q = np.array([1.0, 0, 0, 0, 0.1, 0.2, 0.3])
V = np.ones(7)


@for_each("rows", [None, 1, 4, 6, 33])
@for_each("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_named_with_their_place(kernel, rows, bad):
    q = Q.copy() if rows is None else np.tile(Q, (rows, 1))
    v = V.copy() if rows is None else np.tile(V, (rows, 1))
    v[-1 if rows is None else (-1, 6)] = bad
    place = "6" if rows is None else f"{rows - 1}, 6"
    with pytest.raises(InvalidValue, match=rf"v: expected finite numbers, got {bad} at v\[{place}\]"):
        kernel(q, v)


@for_each("rows", [None, 1, 4, 6, 33])
def test_a_quaternion_that_is_not_unit_is_named_with_its_norm(kernel, rows):
    q = Q.copy() if rows is None else np.tile(Q, (rows, 1))
    q[..., 0] *= 1.0 + 4e-7  # |q|^2 off by 8e-7: still accepted
    kernel(q, V)
    q[0 if rows is None else (-1, 0)] = 2.0
    with pytest.raises(InvalidValue, match=r"q: expected a unit quaternion \(quat_wxyz\).*of norm 2"):
        kernel(q, V)


def test_a_quaternion_of_any_length_is_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for length in (1e-200, 1e200):
            with pytest.raises(InvalidValue, match=r"q: expected a unit quaternion"):
                check_quaternion("q", np.array([length, 0.0, 0.0, 0.0]), 0)


@for_each(
    "v, message",
    [
        (np.ones(6), r"v: expected shape \(7,\) or \(B, 7\), got \(6,\)"),
        (np.ones((2, 6)), r"v: expected shape \(7,\) or \(B, 7\), got \(2, 6\)"),
        (np.ones((2, 1, 7)), r"v: expected shape .*got \(2, 1, 7\)"),
        (1.0, r"v: expected shape .*got \(\)"),
        (np.ones(7, complex), "v: expected real numbers.*complex"),
        (["a"] * 7, "v: expected real numbers.*text"),
        (np.array([None] * 7), "v: expected real numbers.*objects"),
        (None, "v: expected real numbers.*None"),
        (np.ones(7, bool), "v: expected real numbers.*booleans"),
        ([[1.0, 2.0], [1.0]], "v: expected .*ragged"),
    ],
)
def test_a_wrong_shape_or_dtype_says_both_forms_accepted(kernel, v, message):
    with pytest.raises(ShapeError, match=message):
        kernel(Q, v)


@for_each(
    "package, way",
    [("casadi", "to_casadi"), ("jax", "to_jax"), ("jaxlib", "to_jax"), ("torch", "detach")],
)
def test_symbols_of_other_libraries_name_the_way_for_them(kernel, package, way):
    def __array__(self, *_):  # noqa: N807
        raise TypeError("no numbers")

    symbol = type("Symbol", (), {"__module__": f"{package}.symbols", "__array__": __array__})()
    objects = np.zeros(7, object)
    objects[1] = symbol
    for given in (symbol, [0.0, symbol], [[symbol]], objects):
        with pytest.raises(ShapeError, match=f"^v: expected real numbers of shape .*{way}"):
            kernel(Q, given)


def test_batches_of_different_sizes_name_both(kernel):
    with pytest.raises(ShapeError, match="v: expected a batch of 3 like q, got 4"):
        kernel(np.tile(Q, (3, 1)), np.tile(V, (4, 1)))


@for_each(
    "out",
    [
        np.zeros(6),
        np.zeros(7, np.float32),
        np.zeros(14)[::2],
        np.zeros((1, 7)),
        [0.0] * 7,
        np.broadcast_to(0.0, 7),
    ],
)
def test_an_out_that_cannot_be_written_is_refused(kernel, out):
    with pytest.raises((ShapeError, TypeError), match="out"):
        kernel(Q, V, out=out)


def test_a_wrong_number_of_arguments_is_a_type_error(kernel):
    with pytest.raises(TypeError, match="2 arguments"):
        kernel(Q)
    with pytest.raises(TypeError, match="2 arguments"):
        kernel(Q, V, V)


def test_refused_calls_leak_nothing(kernel):
    import sys

    bad = Q * 2
    kernel(Q, V)
    before = sys.getrefcount(None), sys.getrefcount(bad)
    for _ in range(1000):
        assert kernel.fast(bad, V) is None
        assert kernel.fast(Q, None) is None
    after = sys.getrefcount(None), sys.getrefcount(bad)
    assert abs(after[0] - before[0]) < 100
    assert after[1] == before[1]


@for_each("rows", [None, 3, 70, 5000])
@for_each("dtype", ["float64", "float32"])
def test_an_out_that_is_an_input_gets_what_another_would(rows, dtype):
    robot = ladder.chain(8, base="floating")
    rng = np.random.default_rng(0)
    many = rows or 1
    q = np.stack([robot.random_configuration(rng) for _ in range(many)]).astype(dtype)
    v, a = rng.standard_normal((2, many, robot.nv)).astype(dtype)
    if rows is None:
        q, v, a = q[0], v[0], a[0]
    expected = rk.rnea(robot, q, v, a, dtype=dtype)
    for which in (1, 2):
        given = [q.copy(), v.copy(), a.copy()]
        assert rk.rnea(robot, *given, out=given[which], dtype=dtype) is given[which]
        assert np.array_equal(given[which], expected)
    for start, to in ((0, 1), (1, 0)):  # rows, or entries, that are written before they are read
        memory = np.zeros(v.size + robot.nv, dtype)
        shift = robot.nv if rows else 1
        source, target = (memory[k * shift :][: v.size].reshape(v.shape) for k in (start, to))
        source[...] = v
        assert np.array_equal(rk.rnea(robot, q, source, a, out=target, dtype=dtype), expected)


def test_poses_are_written_to_those_of_an_earlier_call():
    robot = ladder.chain(5, base="floating")
    first, second = (np.stack([robot.random_configuration(s) for s in seeds]) for seeds in ((1, 2), (3, 4)))
    poses, expected = rk.forward_kinematics(robot, first), rk.forward_kinematics(robot, second)
    assert rk.forward_kinematics(robot, second, out=poses) is poses
    assert np.array_equal(poses.matrices, expected.matrices)
    R, p = poses[robot.link_names[-1]]
    assert np.array_equal(np.concatenate([R, p[..., None]], axis=-1), poses.matrices[:, -1])
    assert np.array_equal(poses.rotation[:, -1], R) and np.array_equal(poses.position[:, -1], p)
    with pytest.raises(TypeError, match=r"out: expected LinkPoses.*got ndarray"):
        rk.forward_kinematics(robot, second, out=poses.matrices)
    with pytest.raises(ShapeError, match="out"):
        rk.forward_kinematics(robot, second[0], out=poses)


def test_poses_of_another_robots_links_are_not_written_to():
    first, other = (rk.load_urdf(rk.find_robot(name)) for name in ("double_pendulum", "four_bar"))
    poses = rk.forward_kinematics(first, first.neutral())
    before = poses.matrices.copy()
    with pytest.raises(rk.ShapeError, match=r"out: expected poses of the \d links of robot 'four_bar'"):
        rk.forward_kinematics(other, other.neutral(), out=poses)
    assert (poses.matrices == before).all()
    heavier = first.with_gravity((0.0, 0.0, -1.0))  # other objects, the same names
    assert rk.forward_kinematics(heavier, heavier.neutral(), out=poses) is poses
    with pytest.raises(rk.WrongType):
        rk.forward_kinematics("robot", first.neutral(), out=poses)


@for_each("rows", [None, 3, 64, 4096])
@for_each("dtype", ["float64", "float32"])
@for_each("shift", [0, 1, 3])
def test_outputs_need_memory_of_their_own(rows, dtype, shift):
    """One overwrote the other: in machine code, too, where only inputs were looked at."""
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    lead = () if rows is None else (rows,)
    q, shape = np.zeros((*lead, 2)), (*lead, 2, 2)
    memory = np.empty(2 * math.prod(shape), dtype)
    first, second = (memory[k : k + math.prod(shape)].reshape(shape) for k in (0, shift))
    with pytest.raises(rk.ShapeError, match=r"out\[0\] and out\[1\] share memory"):
        rk.rnea_derivatives(robot, q, q, q, out=(first, second), dtype=dtype)
    behind = memory[math.prod(shape) :].reshape(shape)
    rk.rnea_derivatives(robot, q, q, q, out=(first, behind), dtype=dtype)
    assert np.array_equal(first, rk.rnea_derivatives(robot, q, q, q, dtype=dtype)[0])
