"""Rotor inertias of joints: from the file's transmissions, set by hand, written, and kept by every edit."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import ROBOTS, State, relative

import robokit as rk
from robokit.mjcf import to_mjcf
from robokit.model import armature_by_dof, couple, lock_joints, replace_armature
from robokit.urdf import dump

DRAKE = """<transmission name="a"><type>SimpleTransmission</type><joint name="shoulder"/>
<actuator name="m"><drake:rotor_inertia value="3e-5"/><drake:gear_ratio value="100"/></actuator>
</transmission>"""
ROS = """<transmission name="b"><joint name="elbow"><mechanicalReduction>50</mechanicalReduction></joint>
<actuator name="n"><rotorInertia>1e-4</rotorInertia></actuator>
<actuator name="o"><rotorInertia>2e-4</rotorInertia><mechanicalReduction>10</mechanicalReduction></actuator>
</transmission>"""


def two(*more: str, dynamics: str = "") -> str:
    """Two joints in a row, and transmissions."""
    moments = " ".join(
        f'{x}="{0.1 if x[1] == x[2] else 0}"' for x in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    )
    body = f'<inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia {moments}/></inertial>'
    links = "".join(f'<link name="{x}">{body}</link>' for x in "abc")
    ends = [("shoulder", "a", "b"), ("elbow", "b", "c")]
    joints = "".join(
        f'<joint name="{n}" type="continuous"><parent link="{p}"/><child link="{c}"/>'
        f'<axis xyz="0 1 0"/>{dynamics}</joint>'
        for n, p, c in ends
    )
    return f'<robot name="two" xmlns:drake="http://drake.mit.edu">{links}{joints}{"".join(more)}</robot>'


def test_transmissions_give_the_square_of_the_ratio_times_the_rotor():
    robot = rk.loads_urdf(two(DRAKE, ROS, dynamics='<dynamics armature="0.01"/>'), strict=True)
    expected = [0.01 + 3e-5 * 100**2, 0.01 + 1e-4 * 50**2 + 2e-4 * 10**2]
    assert [joint.armature for joint in robot.joints] == pytest.approx(expected, rel=1e-15)
    assert armature_by_dof(robot) == pytest.approx(expected, rel=1e-15)
    assert robot.diagnostics == []


@pytest.mark.parametrize(
    ("transmission", "code"),
    [
        (DRAKE.replace('<drake:rotor_inertia value="3e-5"/>', ""), "physics-ignored"),
        (
            DRAKE.replace('<joint name="shoulder"/>', '<joint name="shoulder"/><joint name="elbow"/>'),
            "physics-ignored",
        ),
        (DRAKE.replace("shoulder", "wrist"), "transmission-joint"),
        (ROS.replace("1e-4", "much"), "number-invalid"),
        (DRAKE.replace("3e-5", "-3e-5"), "armature-negative"),
        (ROS.replace(">50<", ">1e200<"), "number-not-finite"),
    ],
)
def test_what_a_transmission_cannot_say_is_reported(transmission, code):
    from robokit.urdf import check_urdf

    _, found = check_urdf(two(transmission))
    assert code in {d.code for d in found}


@pytest.mark.parametrize("mimic", ["", '<mimic joint="shoulder"/>'])
def test_a_negative_rotor_that_outweighs_its_joint_is_said_at_load_and_by_name(mimic):
    text = two(dynamics='<dynamics armature="0.1"/>')
    head, tail = text.rsplit('<dynamics armature="0.1"/>', 1)
    robot = rk.loads_urdf(f'{head}<dynamics armature="-100"/>{mimic}{tail}')
    (said,) = [d for d in robot.diagnostics if d.code == "armature-negative"]
    assert "joint 'elbow'" in said.element and "H is not positive definite" in said.message
    words = r"the armature of joint 'elbow' is -100, .* robokit\.model\.replace_armature"
    with pytest.raises(rk.SingularInertia, match=words):
        rk.aba(robot, *np.zeros((3, robot.nv)))
    right = replace_armature(robot, {"elbow": 0.1})
    assert np.linalg.eigvalsh(rk.crba(right, np.zeros(right.nq))).min() > 0.0


def test_written_and_read_again_it_is_the_same():
    robot = rk.loads_urdf(two(DRAKE))
    again = rk.loads_urdf(dump(robot), strict=True)
    assert again.tree.armature == robot.tree.armature and again.fingerprint == robot.fingerprint
    assert 'armature="0.3"' in to_mjcf(robot, meshes=False)


def test_set_by_hand_and_kept_by_edits():
    robot = rk.load_urdf(ROBOTS / "arm.urdf")
    assert robot.tree.armature == ()
    name = robot.joint_names[2]
    geared = replace_armature(robot, {name: 0.2})
    assert geared.joint(name).armature == 0.2 and robot.joint(name).armature == 0.0
    s = State(robot)
    H = rk.crba(geared, s.q, engine="python") - rk.crba(robot, s.q, engine="python")
    assert relative(H, np.diag(armature_by_dof(geared))) < 1e-14
    kept = lock_joints(geared, {robot.joint_names[0]: 0.3})
    assert armature_by_dof(kept).tolist() == armature_by_dof(geared)[1:].tolist()
    assert armature_by_dof(rk.together({"r": geared})).tolist() == armature_by_dof(geared).tolist()
    assert replace_armature(geared, {name: 0.0}).tree.armature == ()
    assert set(armature_by_dof(replace_armature(robot, 0.1))) == {0.1}
    built = rk.ModelBuilder.from_robot(geared).build()
    assert built.tree.armature == geared.tree.armature


def test_rotors_of_followers_act_through_their_multiplier():
    full = replace_armature(ladder.follower("floating"), {"a": 0.3, "b": 0.2, "e": 0.1})
    robot = couple(full)
    assert armature_by_dof(robot)[6:].tolist() == pytest.approx([0.3 + 1.5**2 * 0.2, 0.0, 0.1])
    s = State(robot)
    plain = couple(ladder.follower("floating"))
    H = rk.crba(robot, s.q, engine="python") - rk.crba(plain, s.q, engine="python")
    assert relative(H, np.diag(armature_by_dof(robot))) < 1e-14


def test_a_massless_link_behind_a_rotor_is_no_singularity():
    b = rk.ModelBuilder("light").link("a").link("b", 1.0, (0, 0, 1), np.eye(3)).link("c")
    b.joint("shoulder", "revolute", "a", "b").joint("drum", "revolute", "b", "c", armature=0.5)
    zero = np.zeros(2)
    assert rk.aba(b.build(), zero, zero, np.array([0.0, 1.0]), engine="python")[1] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("armature", "error", "message"),
    [
        ({"hing": 0.1}, rk.UnknownName, "no joint that moves named 'hing'; did you mean 'hinge'"),
        ({"hinge": -0.1}, rk.ModelError, r"^armature of joint 'hinge' must be finite and not negative"),
        ("heavy", rk.WrongType, r"^armature: expected a number, or a mapping"),
    ],
)
def test_wrong_rotors_are_named(armature, error, message):
    with pytest.raises(error, match=message):
        replace_armature(ladder.pendulum(), armature)


def test_the_base_has_no_motor():
    robot = ladder.chain(2, "floating")
    with pytest.raises(rk.ModelError, match="'floating_base' is the floating base, which no motor drives"):
        replace_armature(robot, {"floating_base": 1.0})
    with pytest.raises(rk.ModelError, match="armature of joint 'j' must be finite and not negative"):
        rk.ModelBuilder("r").joint("j", "revolute", "a", "b", armature=-1.0)
