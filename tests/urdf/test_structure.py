"""The <loop_joint> extension: numbered above the tree, judged like any joint."""

import time

import numpy as np
import pytest
from urdf_cases import INERTIAL, LIMIT, LOOP

import robokit as rk
from robokit.urdf import check_urdf


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


# ---- the form of Robotiq's grippers, Drake and Isaac Sim


def gripper(left, right):
    """Two fingers, each a four-bar of knuckle, finger tip and inner knuckle; the loops as given."""
    parts = [link("palm")]
    for side, sign in (("left", 1), ("right", -1)):
        parts += [link(f"{side}_knuckle"), link(f"{side}_tip"), link(f"{side}_inner")]
        parts.append(turning(f"{side}_knuckle_joint", "palm", f"{side}_knuckle", f"{0.03 * sign} 0 0.05"))
        parts.append(turning(f"{side}_tip_joint", f"{side}_knuckle", f"{side}_tip", f"{0.03 * sign} 0 0.04"))
        parts.append(turning(f"{side}_inner_joint", "palm", f"{side}_inner", f"{0.013 * sign} 0 0.06"))
    return f'<robot name="gripper">\n{"".join(parts)}{left}{right}\n</robot>'


def link(name):
    return f'<link name="{name}">{INERTIAL}</link>\n'


def turning(name, parent, child, xyz):
    return (
        f'<joint name="{name}" type="revolute"><origin xyz="{xyz}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="0 1 0"/>{LIMIT}</joint>\n'
    )


def closed(side, form, kind="revolute"):
    """The joint between the tip and the inner knuckle of a side, in one of the forms that are in use."""
    sign = 1 if side == "left" else -1
    first = (f"{side}_tip", f"{-0.017 * sign} 0 0.01", "0.1 -0.2 0.3")
    second = (f"{side}_inner", f"{0.03 * sign} 0 0.04", "0.1 -0.2 0.3")
    ends = ""
    for tag, (name, xyz, rpy) in zip(form, (first, second), strict=True):
        if tag in ("predecessor", "successor"):
            ends += f'<{tag} link="{name}"><origin xyz="{xyz}" rpy="{rpy}"/></{tag}>'
        else:
            ends += f'<{tag} link="{name}" rpy="{rpy}" xyz="{xyz}"/>'
    return f'<loop_joint name="{side}_loop" type="{kind}">{ends}<axis xyz="0 0 1"/></loop_joint>'


def loops(robot):
    return [
        (
            *(p.name, p.kind, p.predecessor, p.successor, p.number),
            *(x.tolist() for at in ends(p) for x in (at.rotation, at.position)),
            p.axis.tolist(),
        )
        for p in robot.loop_joints
    ]


def ends(joint):
    return joint.predecessor_placement, joint.successor_placement


OURS = ("predecessor", "successor")
FORMS = {
    "robotiq": ("link1", "link2"),
    "isaac sim's manual": ("link1", "link1"),
    "mixed": ("link1", "successor"),
}


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_gripper_is_the_same_robot(form, kind):
    ours = rk.loads_urdf(gripper(*(closed(side, OURS, kind) for side in ("left", "right"))), strict=True)
    theirs = rk.loads_urdf(
        gripper(*(closed(side, FORMS[form], kind) for side in ("left", "right"))), strict=True
    )
    assert len(loops(ours)) == 2 and ours.diagnostics == theirs.diagnostics == []
    assert loops(theirs) == loops(ours)
    assert np.array_equal(theirs.tree.predecessor, ours.tree.predecessor)
    assert np.array_equal(theirs.tree.successor, ours.tree.successor)
    assert rk.urdf.dump(theirs) == rk.urdf.dump(ours)
    assert loops(rk.loads_urdf(rk.urdf.dump(theirs))) == loops(ours)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ('link1 link="left_tip"', "link1", "loop-end-missing"),
        ('link2 link="left_inner"', 'link2 link="left"', "link-undefined"),
        ('<link2 link="left_inner" rpy="0.1 -0.2 0.3" xyz="0.03 0 0.04"/>', "", "loop-end-missing"),
        ('xyz="0.03 0 0.04"/><axis', 'xyz="0.03 0"/><axis', "number-count"),
        ('link2 link="left_inner"', 'link2 link="left_tip"', "joint-self"),
        ('axis xyz="0 0 1"', 'axis xyz="0 0 0"', "axis-zero"),
    ],
)
def test_what_is_wrong_with_the_other_form_is_one_error(old, new, code):
    text = gripper(closed("left", FORMS["robotiq"]), "")
    assert text.count(old) == 1
    _, found = check_urdf(text.replace(old, new))
    assert [d.code for d in found if d.severity == "error"] == [code]
    assert found[0].element == "loop joint 'left_loop'"


def test_a_third_end_is_told_and_the_first_two_count():
    third = '<link2 link="palm"/><axis'
    robot = rk.loads_urdf(gripper(closed("left", FORMS["robotiq"]).replace("<axis", third), ""))
    assert [d.code for d in robot.diagnostics] == ["element-repeated"]
    assert robot.loop_joints[0].successor == "left_inner"


def test_what_is_odd_in_an_end_is_a_note():
    text = gripper(closed("left", FORMS["robotiq"]).replace("rpy=", "ryp="), "")
    assert {d.code for d in rk.loads_urdf(text).diagnostics} == {"attribute-unknown"}


def test_ten_thousand_loops_on_a_long_row_of_welded_links_take_no_square_of_time():
    n = 2000
    links = "".join(f'<link name="l{k}"/>' for k in range(n))
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l{k - 1}"/><child link="l{k}"/></joint>'
        for k in range(1, n)
    )
    many = "".join(
        f'<loop_joint name="p{k}" type="spherical"><link1 link="l{n - 1}"/><link2 link="l{n - 2}"/>'
        "</loop_joint>"
        for k in range(5 * n)
    )
    start = time.process_time()
    _, found = check_urdf(f'<robot name="r">{links}{joints}{many}</robot>')
    assert time.process_time() - start < 10
    assert {d.code for d in found} == {"joint-self"} and len(found) == 5 * n
