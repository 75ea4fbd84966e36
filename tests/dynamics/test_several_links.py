"""Functions about a list of links give what they give for each of them."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State, relative

import robokit as rk
from robokit.engine.trace.ops import flops

CALLS = {
    "link_jacobian": lambda s: (s.q,),
    "link_velocity": lambda s: (s.q, s.v),
    "link_acceleration": lambda s: (s.q, s.v, s.a),
}


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("quadruped"), base="floating")


def links_of(robot):
    """The last link, the first, one in the middle twice."""
    names = robot.link_names
    middle = names[len(names) // 2]
    return [names[-1], names[0], middle, middle]


def states(robot, rows):
    rng = np.random.default_rng(7)
    q = np.stack([robot.random_configuration(rng) for _ in range(rows)])
    return q, rng.standard_normal((rows, robot.nv)), rng.standard_normal((rows, robot.nv))


@pytest.mark.parametrize("engine", [None, "python"])
@pytest.mark.parametrize("name", CALLS)
def test_each_link_as_if_it_were_alone(name, engine, robot):
    function, s, links = getattr(rk, name), State(robot), links_of(robot)
    points = np.random.default_rng(3).standard_normal((4, 3))
    given = CALLS[name](s)
    more = {"classical": True} if name == "link_acceleration" else {}
    for axes in ("world", "body"):
        ours = function(robot, *given, links, axes, points, engine=engine, **more)
        assert ours.shape == ((4, 6, robot.nv) if name == "link_jacobian" else (4, 6))
        for one, link, at in zip(ours, links, points, strict=True):
            assert relative(one, function(robot, *given, link, axes, at, engine=engine, **more)) < 1e-14
    at_origins = function(robot, *given, tuple(links), engine=engine)
    for one, link in zip(at_origins, links, strict=True):
        assert relative(one, function(robot, *given, link, engine=engine)) < 1e-14
    together = function(robot, *given, links, at=points[0], engine=engine)
    same = function(robot, *given, links, at=np.tile(points[0], (4, 1)), engine=engine)
    np.testing.assert_array_equal(together, same)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CALLS)
def test_batches_of_points_and_arrays_to_write_to(name, dtype, robot):
    function, links = getattr(rk, name), links_of(robot)
    given = [x.astype(dtype) for x in states(robot, 5)[: len(CALLS[name](State(robot)))]]
    points = np.random.default_rng(4).standard_normal((5, 4, 3)).astype(dtype)
    ours = function(robot, *given, links, at=points, dtype=dtype)
    close = 1e-13 if dtype == "float64" else 3e-5
    for k in range(4):
        alone = function(robot, *given, links[k], at=np.ascontiguousarray(points[:, k]), dtype=dtype)
        assert relative(ours[:, k], alone) < close
    out = np.empty_like(ours)
    assert function(robot, *given, links, at=points, dtype=dtype, out=out) is out
    np.testing.assert_array_equal(out, ours)


def test_coupled_joints():
    robot = ladder.follower()
    s, links = State(robot), [robot.link_names[-1], robot.link_names[1]]
    J = rk.link_jacobian(robot, s.q, links)
    for one, link in zip(J, links, strict=True):
        assert relative(one, rk.link_jacobian(robot, s.q, link)) < 1e-14
    assert relative(rk.link_velocity(robot, s.q, s.v, links), J @ s.v) < 1e-13


def test_one_name_in_a_list_is_a_list(robot):
    s, link = State(robot), robot.link_names[-1]
    assert rk.link_jacobian(robot, s.q, [link]).shape == (1, 6, robot.nv)
    assert rk.link_jacobian(robot, s.q, np.str_(link)).shape == (6, robot.nv)


def test_what_links_have_in_common_is_computed_once(robot):
    feet = [name for name in robot.link_names if name.endswith("foot")]
    function = rk.functions["link_velocity"]
    assert len(feet) == 4
    together = flops(function.program(robot, link=feet).counts)
    alone = [flops(function.program(robot, link=foot).counts) for foot in feet]
    assert together < 0.95 * sum(alone)


def test_functions_as_objects_take_lists_and_their_derivatives_too(robot):
    s, links = State(robot), links_of(robot)[:3]
    f, at = rk.functions["link_jacobian"], np.arange(9.0).reshape(3, 3) / 10
    J = rk.link_jacobian(robot, s.q, links, at=at)
    for points in (at, at.tolist()):
        np.testing.assert_array_equal(f(robot, s.q, points, link=links), J)
    rate = f.derivative("q")(robot, s.q, at, link=links) @ s.v
    moved = [rk.link_jacobian(robot, robot.integrate(s.q, h * s.v), links, at=at) for h in (1e-6, -1e-6)]
    assert relative(rate, (moved[0] - moved[1]) / 2e-6) < 1e-8


@pytest.mark.parametrize(
    ("link", "at", "error", "words"),
    [
        ([], None, rk.ShapeError, "link: expected at least one name, got an empty list"),
        (["no"], None, rk.UnknownName, "no link named 'no'"),
        ([["a"]], None, rk.UnknownName, "no link named"),
        ([3], None, rk.UnknownName, "no link named 3"),
        (
            "two",
            np.zeros((3, 3)),
            rk.ShapeError,
            r"at: expected .* \(B, 2, 3\), .* got shape",
        ),
        ("two", np.zeros(6), rk.ShapeError, r"a point for each of the 2 links, got shape \(6,\)"),
        (
            "two",
            [[0, 0, np.nan], [0, 0, 0]],
            rk.InvalidValue,
            r"at: expected finite numbers, got nan at at\[2\]",
        ),
        ("two", "x", rk.ShapeError, "at: expected"),
    ],
)
def test_what_is_wrong_is_said(link, at, error, words, robot):
    link = list(robot.link_names[:2]) if link == "two" else link
    more = {} if at is None else {"at": at}
    with pytest.raises(error, match=words):
        rk.link_jacobian(robot, robot.neutral(), link, **more)
    with pytest.raises(error, match=words):
        rk.functions["link_jacobian"](robot, robot.neutral(), link=link, at=more.get("at", (0, 0, 0)))
