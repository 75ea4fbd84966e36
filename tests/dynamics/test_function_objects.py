"""What functions as objects take: choices and names of inputs; what is said of mistaken arguments."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from ladder import State, chain, relative

import robokit as rk


def test_what_q_is_is_said_where_a_list_is_taken_for_a_number():
    robot = chain(2)
    for function in (lambda tree, q: q[0][0], lambda tree, q: sum(q), lambda tree, q: q[3][0]):
        f = rk.function(function, inputs=("q",), outputs={"y": ()})
        with pytest.raises(
            rk.FunctionError, match=r"q\[i\] is the list of the coordinates of joint i, from joint 1"
        ):
            f(robot, [0.1, 0.2])


def test_a_derivative_is_no_part_of_a_text():
    slope = rk.functions["potential_energy"].gradient("q")
    f = rk.function(lambda tree, q: slope(tree, q), inputs=("q",), outputs={"y": (2,)})
    with pytest.raises(
        rk.FunctionError, match=r"potential_energy_gradient_q is a derivative, which cannot be called"
    ):
        f(chain(2), [0.1, 0.2])


@pytest.mark.parametrize("name", ["robot", "out", "engine", "dtype", "reproducible"])
def test_arguments_of_every_call_are_no_names_of_inputs(name):
    with pytest.raises(rk.WrongType, match=f"name of an input: .* a call takes robot, out, .*'{name}'"):
        rk.function(lambda *given: 0.0, inputs={name: ()}, outputs={"y": ()})


def test_choices_are_read_as_the_public_functions_read_them():
    """Names, contacts and tuples, in lists or tuples; what is wrong is said in the same words."""
    robot = chain(4)
    s, (first, *_, last) = State(robot), robot.link_names
    f = rk.functions["operational_space_inertia"]
    expected = rk.operational_space_inertia(robot, s.q, [last], 1e-3).inertia
    at = (0.0, 0.0, 0.0)
    for frames in ([last], (last,), [rk.Contact(last, at, "pose")], [[last, np.zeros(3), "pose"]]):
        assert relative(f(robot, s.q, 1e-3, frames=frames)[0], expected) < 1e-14
    held = rk.functions["constrained_dynamics"]
    a, _ = held(robot, s.q, s.v, s.tau, [0, 0], 1e-8, constraints=[(last, (0.1, 0, 0))])
    assert (
        relative(a, rk.constrained_dynamics(robot, s.q, s.v, s.tau, [rk.Contact(last, (0.1, 0, 0))])[0]) == 0
    )
    mixed = rk.functions["hybrid_dynamics"]
    names = list(robot.joint_names[2:])
    expected = rk.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, names)
    for given in (names, names[::-1], names * 2):
        assert relative(mixed(robot, s.q, s.v, s.tau, s.a, prescribed=given)[1], expected[1]) == 0.0
    for frames, error, words in (
        (last, rk.WrongType, "frames: expected a list of frames"),
        ([], rk.ShapeError, "frames: expected at least one"),
        (["hand"], rk.UnknownName, "no link named 'hand'"),
        ([(last, (0, 0))], rk.RobokitError, "at: expected finite numbers"),
    ):
        with pytest.raises(error, match=words):
            f(robot, s.q, 1e-3, frames=frames)
    with pytest.raises(rk.UnknownName, match="joint with coordinates named 'elbow'"):
        mixed(robot, s.q, s.v, s.tau, s.a, prescribed=["elbow"])
    with pytest.raises(rk.WrongType, match="classical: expected True or False, got int 1"):
        rk.functions["link_acceleration"](robot, s.q, s.v, s.a, at, link=first, classical=1)
    with pytest.raises(TypeError, match="crba has no choice 'link': it has none"):
        rk.functions["crba"].flat(robot, link=first)


def test_results_of_several_outputs_are_pickled_and_copied():
    """They go to other processes: of derivatives, of a user's function, with names that Python reserves."""
    robot = chain(2)
    s = State(robot)
    function = rk.function(
        lambda tree, q: {"class": q[1][0], "half": 0.5 * q[1][0]},
        inputs=("q",),
        outputs={"class": (), "half": ()},
    )
    for result in (rk.functions["rnea"].derivative("q", "v")(robot, s.q, s.v, s.a), function(robot, s.q)):
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
            assert type(again) is type(result) and again._fields == result._fields
            assert all(np.array_equal(a, b) for a, b in zip(again, result, strict=True))


def test_numbers_of_a_shape_that_are_used_as_a_matrix_say_how_to_make_one():
    def square(tree, x):
        return np.array(x).reshape(2, 2) @ np.array(x).reshape(2, 2)

    arm, given = rk.load("arm"), np.array([[1.0, 2.0], [3.0, 4.0]])
    of = rk.function(inputs={"x": (2, 2)}, outputs={"y": (2, 2)})
    assert np.array_equal(of(square)(arm, given), given @ given)
    for wrong in (lambda tree, x: x @ x, lambda tree, x: x[1][0], lambda tree, x: x[1, 0]):
        for engine in (None, "python"):
            with pytest.raises(rk.FunctionError, match=r"flat list, row by row: np.array\(x\).reshape"):
                of(wrong)(arm, given, engine=engine)
