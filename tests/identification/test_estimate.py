"""Identification: parameters come back from motions, and what does not fit is said."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from ladder import relative
from measured_arm import COULOMB, MOTORS, VISCOUS, R, arm, guess, motion, predicted_forces, truth

import robokit as rk
from robokit.identification.estimate import nearest_possible
from robokit.model import replace_armature


def test_noise_free_data_give_every_combination_and_every_friction_back():
    q, v, a = motion(R)
    found = rk.identify(R, q, v, a, predicted_forces(R, q, v, a), friction=True, prior=guess(R))
    assert relative(found.base_values, found.base.values(truth(found))) < 1e-10
    assert relative(found.base.values(found.x), found.base.values(truth(found))) < 1e-6
    assert relative(found.viscous, VISCOUS) < 1e-6
    assert relative(found.coulomb, COULOMB) < 1e-6
    assert found.converged


def test_motors_are_told_from_bodies_where_gravity_tells_them():
    q, v, a = motion(R)
    tau = predicted_forces(R, q, v, a, friction=False, motors=True)
    found = rk.identify(R, q, v, a, tau, armature=True, prior=guess(R))
    # The first two joints feel their motors as they feel the bodies' inertia: only sums are determined.
    leaders = [found.names[k] for k in found.base.independent]
    assert "reach armature" in leaders and not {"turn armature", "lift armature"} & set(leaders)
    assert relative(found.armature[2], MOTORS[2]) < 1e-6
    new = motion(R, 20, 9)
    assert relative(found.predict(*new), predicted_forces(R, *new, friction=False, motors=True)) < 1e-7
    assert relative(rk.rnea(found.robot, *new), found.predict(*new)) < 1e-12


def test_motors_that_are_known_are_taken_off():
    known = replace_armature(R, dict(zip(R.joint_names, MOTORS, strict=True)))
    q, v, a = motion(R)
    tau = rk.rnea(known, q, v, a)
    found = rk.identify(known, q, v, a, tau)
    assert relative(found.base_values, found.base.values(R.inertial_parameters[1:])) < 1e-9
    assert relative(found.predict(q, v, a), tau) < 1e-7
    assert relative(rk.rnea(found.robot, q, v, a), tau) < 1e-7


def test_noise_and_deviations_are_those_of_the_data(noisy):
    assert np.allclose(noisy.noise, (0.3, 0.5, 1.0), rtol=0.1)
    assert np.allclose(noisy.residual, noisy.noise, rtol=0.05)
    true = noisy.base.values(truth(noisy))
    off = (noisy.base_values - true) / noisy.base_deviations
    assert 0.5 < np.sqrt(np.mean(off**2)) < 1.6
    spread = np.sqrt(np.diag(noisy.base.matrix @ noisy.covariance @ noisy.base.matrix.T))
    consistent = (noisy.base.values(noisy.x) - true) / spread
    assert 0.4 < np.sqrt(np.mean(consistent**2)) < 1.6


def test_what_a_motion_leaves_open_stays_at_the_prior_and_is_said():
    q, v, a = motion(R)
    q[:, 2], v[:, 2], a[:, 2] = 0.1, 0.0, 0.0
    prior = guess(R)
    with pytest.warns(UserWarning, match=r"excites \d+ of 18 combinations"):
        found = rk.identify(R, q, v, a, predicted_forces(R, q, v, a), friction=True, prior=prior)
    assert len(found.base) < found.possible_combinations
    assert not any("reach viscous" in text for text in found.base.expressions)
    assert relative(found.base.values(found.x), found.base.values(truth(found))) < 1e-6


def test_fixed_bodies_stay():
    q, v, a = motion(R)
    found = rk.identify(R, q, v, a, predicted_forces(R, q, v, a, friction=False), fixed=["lift link"])
    assert (found.parameters[1] == nearest_possible(R.inertial_parameters[1:])[1]).all()
    assert not any("lift link" in text for text in found.base.expressions)
    assert relative(found.residual, np.zeros(3)) < 1e-6


def test_a_floating_base_and_external_forces():
    robot = arm("floating")
    q, v, a = motion(robot, 200)
    f_ext = {"reach link": np.random.default_rng(1).standard_normal((200, 6))}
    tau = rk.rnea(robot, q, v, a, f_ext=f_ext)
    tau[:, 6:] += VISCOUS * v[:, 6:]
    found = rk.identify(robot, q, v, a, tau, f_ext=f_ext, friction="viscous", prior=guess(robot))
    assert len(found.base) == found.possible_combinations
    true = found.base.values([*robot.inertial_parameters[1:].ravel(), *VISCOUS])
    assert relative(found.base_values, true) < 1e-9
    assert relative(found.viscous, [0.0] * 6 + VISCOUS.tolist()) < 1e-6


def test_weights_leave_out_what_they_say():
    q, v, a = motion(R, 200)
    tau = predicted_forces(R, q, v, a)
    weights = np.ones_like(tau)
    tau[50:60, 1], weights[50:60, 1] = 1e3, 0.0
    found = rk.identify(R, q, v, a, tau, friction=True, weights=weights * 1e6)
    assert relative(found.base_values, found.base.values(truth(found))) < 1e-9


def test_too_few_states_wrong_names_and_wrong_forces_are_said():
    q, v, a = motion(R, 300)
    tau = predicted_forces(R, q, v, a)
    with pytest.raises(rk.ShapeError, match=r"5 states are too few for joint 'turn'"):
        rk.identify(R, q[:5], v[:5], a[:5], tau[:5])
    with pytest.raises(rk.ShapeError, match="prior: no body of robot 'small arm' has mass"):
        rk.identify(R, q, v, a, tau, prior=np.zeros((4, 10)))
    with pytest.raises(rk.UnknownName, match="friction"):
        rk.identify(R, q, v, a, tau, friction="stribeck")
    with pytest.raises(rk.UnknownName, match="link"):
        rk.identify(R, q, v, a, tau, fixed=["hand"])
    with pytest.raises(rk.WrongType, match=r"prior: expected a Robot or inertial parameters \(4, 10\)"):
        rk.identify(R, q, v, a, tau, prior="arm")
    with pytest.raises(rk.WrongType, match="robot"):
        rk.identify("arm", q, v, a, tau)
    with pytest.warns(UserWarning) as said:
        rk.identify(R, q, v, a, tau[::-1].copy(), friction=True)
    assert len(said) == R.nv
    assert str(said[0].message).startswith("identify: no parameters account for the force of joint 'turn'")
    with pytest.warns(UserWarning, match="no bodies that can exist account for the force of joint 'turn'"):
        rk.identify(R, q, v, a, -rk.rnea(R, q, v, a))


def test_forces_that_nobody_measured_are_said():
    q, v, a = motion(R, 300)
    tau = predicted_forces(R, q, v, a)
    for more in ({}, {"weights": np.ones(3)}, {"friction": True, "armature": True}):
        with pytest.raises(rk.ShapeError, match=r"^tau: expected measured forces, all are zero"):
            rk.identify(R, q, v, a, np.zeros_like(tau), **more)
    tau[:, 1] = 2.5
    with pytest.warns(UserWarning) as said:
        rk.identify(R, q, v, a, tau, friction=True)
    assert any("joint 'lift', which is 2.5 in all states: more than half" in str(w.message) for w in said)
    assert not any("joint 'turn', which is" in str(w.message) for w in said)


def test_a_free_swing_tells_one_body_from_another():
    pendulum = rk.load_urdf(rk.find_robot("double_pendulum"))
    q, v = np.random.default_rng(4).normal(size=(2, 200, 2))
    a = rk.aba(pendulum, q, v, np.zeros(2))
    wrong = pendulum.inertial_parameters.copy()
    wrong[2] *= 1.7
    found = rk.identify(pendulum, q, v, a, np.zeros_like(a), fixed=["upper"], prior=wrong)
    true = found.base.values(pendulum.inertial_parameters[1:])
    assert relative(found.base.values(found.parameters), true) < 1e-5


def test_loop_joints_whose_forces_are_not_given_are_said():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    q, v, a = motion(robot, 100)
    tau = rk.rnea(robot, q, v, a)
    with pytest.warns(UserWarning, match="robot 'four_bar' has loop joints, .*; give them as f_ext"):
        rk.identify(robot, q, v, a, tau)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.identify(robot, q, v, a, tau, f_ext=np.zeros((robot.nbodies + 1, 6)))


def test_outliers_are_said_and_weights_leave_them_out():
    q, v, a = motion(R, 400)
    rng = np.random.default_rng(5)
    tau = predicted_forces(R, q, v, a) + 0.05 * rng.standard_normal((400, 3))
    spikes = [30, 17, 211]
    bad = tau.copy()
    bad[spikes, 1] += 40.0
    with pytest.warns(
        UserWarning, match=r"outliers, 3 of the 400 forces of joint 'lift', .* state 17: .*weights="
    ) as said:
        rk.identify(R, q, v, a, bad, friction=True)
    assert len(said) == 1
    weights = np.full_like(tau, 20.0)
    weights[spikes, 1] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rk.identify(R, q, v, a, bad, friction=True, weights=weights)
        rk.identify(R, q, v, a, tau, friction=True)  # noise is none
        rk.identify(R, q, v, a, predicted_forces(R, q, v, a))  # nor is friction that is not fitted


def test_outliers_of_several_joints_are_all_said_and_nothing_else():
    # One spike of each joint, the second so large that it is most of that joint's mean square.
    q, v, a = motion(R, 400)
    rng = np.random.default_rng(5)
    tau = predicted_forces(R, q, v, a) + 0.05 * rng.standard_normal((400, 3))
    tau[17, 0] += 50.0
    tau[211, 1] -= 2000.0
    with pytest.warns(UserWarning) as said:
        rk.identify(R, q, v, a, tau, friction=True)
    assert len(said) == 1
    message = str(said[0].message)
    assert "1 of the 400 forces of joint 'turn', the first in state 17" in message
    assert "1 of the 400 forces of joint 'lift', the first in state 211" in message


def test_flags_are_true_or_false():
    q, v, a = motion(R, 40)
    for name in ("armature", "progress"):
        with pytest.raises(rk.WrongType, match=f"{name}: expected True or False, got str 'yes'"):
            rk.identify(R, q, v, a, predicted_forces(R, q, v, a), **{name: "yes"})
