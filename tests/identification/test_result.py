"""What an identification gives: predictions, a robot, a summary and a figure."""

from __future__ import annotations

import numpy as np
from ladder import relative
from measured_arm import R, motion, predicted_forces

import robokit as rk


def test_held_out_motion_is_predicted(noisy):
    q, v, a = motion(R, 100, 8)
    expected = predicted_forces(R, q, v, a)
    left = np.sqrt(np.mean((noisy.predict(q, v, a) - expected) ** 2, axis=0))
    assert (left < 0.25 * noisy.noise).all()


def test_the_robot_has_what_was_found(noisy):
    robot = noisy.robot
    assert np.allclose(robot.inertial_parameters[1:], noisy.parameters, rtol=1e-12, atol=1e-15)
    assert [joint.damping for joint in robot.joints] == noisy.viscous.tolist()
    assert [joint.friction for joint in robot.joints] == noisy.coulomb.tolist()
    q, v, a = motion(R, 3, 5)
    own = rk.rnea(robot, q, v, a) + noisy.viscous * v + noisy.coulomb * np.sign(v)
    assert relative(noisy.predict(q, v, a), own) < 1e-12


def test_the_summary_fits_eighty_columns_and_the_figure_is_written(noisy, tmp_path):
    text = str(noisy)
    assert max(map(len, text.splitlines())) <= 80
    assert "every body is possible" in text and "reach link" in text and "viscous" in text
    path = noisy.plot(tmp_path / "fit.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert repr(noisy).startswith("<Identification of 'small arm'")
