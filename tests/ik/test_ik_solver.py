"""The search: batches are their rows, random starts follow where the first does not arrive."""

from __future__ import annotations

import numpy as np
import pytest
from ik_arms import ONE, PYTHON, arm, inside, reachable

import robokit as rk
from robokit.ik import Search


def test_a_batch_is_its_rows_and_machine_code_is_the_text(seven_arm):
    robot = seven_arm
    _, R, p = reachable(robot, "l7", 12)
    start = reachable(robot, "l7", 12, seed=4)[0]
    for starts in (1, 20):  # random starts too are those of each row alone
        many = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=starts)
        assert many.converged.any() and many.converged.all() == (starts == 20)
        for k in range(12):
            one = rk.inverse_kinematics(robot, {"l7": (R[k], p[k])}, start[k], starts=starts)
            assert np.abs(one.q - many.q[k]).max() < 1e-7
            assert (one.converged, one.iterations) == (many.converged[k], many.iterations[k])
    plain = rk.inverse_kinematics(robot, {"l7": (R[0], p[0])}, start[0], **PYTHON)
    assert np.abs(plain.q - many.q[0]).max() < 1e-7
    shared = rk.inverse_kinematics(robot, {"l7": (R[0], p[0])}, start)
    assert shared.q.shape == start.shape and np.abs(shared.q[0] - many.q[0]).max() < 1e-7


def test_random_starts_find_what_one_does_not(seven_arm):
    robot = seven_arm
    _, R, p = reachable(robot, "l7", 60)
    start = reachable(robot, "l7", 60, seed=9)[0]
    once = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=1)
    often = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=40)
    assert not once.converged.all() and often.converged.all()
    assert (often.q[once.converged] == once.q[once.converged]).all()
    assert inside(robot, often.q) and (often.starts[~once.converged] > 1).all()
    row = int(np.flatnonzero(~once.converged)[0])
    single = [
        rk.inverse_kinematics(robot, {"l7": (R[row], p[row])}, start[row], starts=40, seed=1) for _ in "ab"
    ]
    assert single[0].converged and (single[0].q == single[1].q).all()


def test_more_starts_cost_nothing_where_the_first_arrives(seven_arm, monkeypatch):
    q, R, p = (x[0] for x in reachable(seven_arm, "l7"))
    monkeypatch.setattr(Search, "retry", None)  # calling it would fail
    assert rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, q + 0.1, **PYTHON).starts == 1


def test_the_message_says_how_many_starts_were_tried():
    robot = arm()
    found = rk.inverse_kinematics(robot, {"tip": (3.0, 0.0, 0.0)}, [0.1, 0.2], starts=3, **PYTHON)
    assert found.starts == 3 and "none of 3 starts came nearer" in found.message


def test_iterations_end_it_and_the_message_says_so(seven_arm):
    q, R, p = (x[0] for x in reachable(seven_arm, "l7"))
    cut = rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, q + 0.5, iterations=2, **ONE)
    assert not cut.converged and cut.iterations == 2 and "allow more iterations" in cut.message


def test_inertias_matter_to_the_center_of_mass_alone():
    robot = arm()
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 2.0])[:, None, None])
    assert rk.inverse_kinematics(varied, {"tip": (1.0, 0.5, 0.0)}, [0.1, 0.2], **PYTHON).converged
    with pytest.raises(rk.ShapeError, match=r"^center_of_mass: .*robot.sample"):
        rk.inverse_kinematics(varied, {}, [0.1, 0.2], center_of_mass=(0.5, 0.3, 0.0))
    one = rk.inverse_kinematics(varied.sample(1), {}, [0.1, 0.2], center_of_mass=(0.5, 0.3, 0.0), **PYTHON)
    assert one.converged
