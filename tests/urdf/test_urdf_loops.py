"""The <loop_joint> extension: numbered above the tree, judged like any joint."""

import numpy as np
import pytest
from urdf_cases import LOOP

import robokit as rk


def test_a_loop_joint_gets_a_number_above_the_tree_and_both_frames():
    robot = rk.load_urdf(rk.find_robot("four_bar"))
    (loop,) = robot.loop_joints
    assert robot.diagnostics == []
    assert loop.number == robot.tree.n + 1 == 4
    assert robot.tree.predecessor[4] == robot.frame("coupler")[0]
    assert robot.tree.successor[4] == robot.frame("rocker")[0]
    poses = rk.forward_kinematics(robot, robot.neutral())
    ends = []
    for link, placement in (
        (loop.predecessor, loop.predecessor_placement),
        (loop.successor, loop.successor_placement),
    ):
        R, p = poses[link]
        ends.append(R @ placement.position + p)
    assert np.allclose(*ends, atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('type="spherical"', 'type="ball"', "joint-type-unknown"),
        (' type="spherical"', "", "joint-type-missing"),
        ('name="l"', "", "name-missing"),
        ('successor link="c"', 'successor link="x"', "link-undefined"),
        ('successor link="c"', 'successor link="a"', "joint-self"),
        ('name="l"', 'name="j"', "joint-duplicate"),
        ('type="spherical">', 'type="revolute"><axis xyz="0 0 0"/>', "axis-zero"),
    ],
)
def test_a_bad_loop_joint_is_an_error_that_names_it(old, new, code):
    assert old in LOOP
    with pytest.raises(rk.UrdfError) as caught:
        rk.loads_urdf(LOOP.replace(old, new))
    assert [d.code for d in caught.value.diagnostics if d.severity == "error"] == [code]


def test_a_loop_inside_one_rigid_body_is_an_error():
    with pytest.raises(rk.UrdfError, match="'a' and 'c' are one body: fixed joints connect them"):
        rk.loads_urdf(LOOP.replace('type="revolute"', 'type="fixed"'))
