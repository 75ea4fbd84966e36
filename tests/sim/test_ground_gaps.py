"""How far robots are from the ground, and where they hang when they are lowered onto it."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box
from robokit.sim.starts import ground_gaps, lowered

FLAT = {
    "a solid": rk.Ground(plane=False, shapes=[rk.Solid(Box((4.0, 4.0, 0.2)), (0.0, 0.0, -0.1))]),
    "a height field": rk.Ground(
        terrain=rk.HeightField(np.zeros((41, 41)), cell=0.1, origin=(-2.0, -2.0, 0.0))
    ),
}


def starts(robot, n):
    rng = np.random.default_rng(2)
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    q[:, 4:6] = 0.0
    return q


def test_the_distance_from_a_slope_is_that_of_the_lowest_corner():
    robot, n = m.box(), np.array([0.3, -0.2, 1.0]) / np.sqrt(1.13)
    q, half = starts(robot, 20), 0.5 * np.array(robot.links[0].collisions[0].geometry.size)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    wanted = []
    for row in q:
        w, x, y, z = row[:4]
        R = np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        wanted.append(((corners @ R.T + row[4:] - [0.0, 0.0, 0.1]) @ n).min())
    ground = rk.Ground(normal=tuple(n), height=0.1)
    np.testing.assert_allclose(ground_gaps(robot, q, ground), wanted, atol=1e-14)


@pytest.mark.parametrize("flat", FLAT)
def test_flat_grounds_of_all_kinds_are_as_far_as_the_plane(flat):
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    q = starts(robot, 6)
    q[:, 6] = lowered(robot, q, rk.Ground(), 0.03)
    np.testing.assert_allclose(ground_gaps(robot, q, rk.Ground()), 0.03, atol=1e-14)
    np.testing.assert_allclose(ground_gaps(robot, q, FLAT[flat]), 0.03, atol=1e-9)
    np.testing.assert_allclose(lowered(robot, q, FLAT[flat], 0.03), q[:, 6], atol=1e-9)


def test_what_is_lowered_onto_a_step_hangs_over_its_edge():
    robot = m.box()
    step = rk.Solid(Box((1.0, 1.0, 0.4)), (0.5, 0.0, 0.2))
    q = np.tile(robot.neutral(), (2, 1))
    q[:, 4] = 0.0, -2.0  # half over the step, and beside it
    z = lowered(robot, q, rk.Ground(shapes=[step]), [0.01, 0.02])
    assert z[0] - z[1] == pytest.approx(0.4 - 0.01, abs=1e-9)


def test_a_robot_with_nothing_under_it_has_no_height():
    robot = m.box()
    q = np.tile(robot.neutral(), (1, 1))
    q[:, 4] = 9.0
    assert np.isnan(lowered(robot, q, FLAT["a solid"], 0.0)).all()
    with pytest.raises(rk.ShapeError, match="nothing is under the robot"):
        rk.standing_height(robot, q[0], ground=FLAT["a solid"])
