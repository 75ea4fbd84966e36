"""Edited robots against the rows and columns of the old one's dynamics, and against smaller robots."""

from __future__ import annotations

import dataclasses
import math

import ladder
import numpy as np
import pytest
from ladder import ROBOTS, Plain, State, relative

import robokit as rk
from robokit.mjcf import to_mjcf
from robokit.model import (
    Box,
    Mimic,
    ModelBuilder,
    Placement,
    Shape,
    armature_by_dof,
    couple,
    graft,
    lock_joints,
    merge_links,
    remove_subtree,
    replace_armature,
    replace_inertia,
)
from robokit.urdf import dump

TOLERANCE = 1e-12


def own(name, base="fixed"):
    return rk.load_urdf(rk.find_robot(name), base=base)


def state(robot, seed=0):
    s = ladder.State(robot, seed)
    return s.q, s.v


def assert_same_dynamics(robot, other, q, v, other_q=None, other_v=None):
    """H, C, and the mass."""
    a, b = Plain(robot), Plain(other)
    other_q, other_v = q if other_q is None else other_q, v if other_v is None else other_v
    assert relative(b.crba(other_q), a.crba(q)) < TOLERANCE
    assert relative(b.bias(other_q, other_v), a.bias(q, v)) < TOLERANCE
    assert math.isclose(robot.total_mass, other.total_mass, rel_tol=TOLERANCE)


def columns(robot, names, what="v_slice"):
    return np.concatenate(
        [np.arange(s.start, s.stop) for s in (getattr(robot.joint(n), what) for n in names)]
    )


# ---- a builder from a robot


def test_a_builder_from_a_robot_gives_it_again(robot):
    again = ModelBuilder.from_robot(robot).build(robot.base, gravity=robot.gravity)
    assert again.fingerprint == robot.fingerprint
    assert again.all_joint_names == robot.all_joint_names and again.link_names == robot.link_names
    assert again.tree.loops == robot.tree.loops


def test_the_order_of_bodies_survives_fixed_joints_between_them():
    b = ModelBuilder("r")
    for name in "abcdefg":
        b.link(name, 1.0, inertia=np.eye(3))
    # Bodies d, c, f in this order, through fixed links before, between and behind them.
    b.joint("fg", "fixed", "a", "g").joint("fb", "fixed", "a", "b").joint("jd", "revolute", "b", "d")
    b.joint("jc", "revolute", "a", "c").joint("fe", "fixed", "a", "e").joint("jf", "revolute", "e", "f")
    robot = b.build()
    again = ModelBuilder.from_robot(robot).build()
    assert robot.joint_names == again.joint_names == ("jd", "jc", "jf")
    assert [j.name for j in again.fixed_joints] == [j.name for j in robot.fixed_joints] == ["fg", "fb", "fe"]


# ---- locking


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["humanoid", "quadruped", "arm"])
def test_locked_joints_leave_rows_and_columns(name, base):
    robot = own(name, base)
    q, v = state(robot)
    locked = robot.joint_names[1::3]
    kept = [n for n in robot.joint_names if n not in locked]
    v[columns(robot, locked)] = 0.0
    other = lock_joints(robot, {n: q[robot.joint(n).q_slice] for n in locked})
    assert other.joint_names == tuple(kept) and other.link_names == robot.link_names
    at, qat = columns(robot, kept), columns(robot, kept, "q_slice")
    assert relative(Plain(other).crba(q[qat]), Plain(robot).crba(q)[np.ix_(at, at)]) < TOLERANCE
    assert relative(Plain(other).bias(q[qat], v[at]), Plain(robot).bias(q, v)[at]) < TOLERANCE
    before, after = rk.forward_kinematics(robot, q), rk.forward_kinematics(other, q[qat])
    assert relative(after.position, before.position) < TOLERANCE
    assert relative(after.rotation, before.rotation) < TOLERANCE


def test_every_kind_can_be_locked():
    robot = ladder.random_tree(3)
    q, _ = state(robot)
    other = lock_joints(robot, {j.name: q[j.q_slice] for j in robot.joints})
    assert other.nv == 0 and other.total_mass == 0.0
    before, after = rk.forward_kinematics(robot, q), rk.forward_kinematics(other, [])
    assert relative(after.position, before.position) < TOLERANCE


def test_a_locked_base_stands_in_the_world():
    robot = own("quadruped", "floating")
    q, v = state(robot)
    v[:6] = 0.0
    other = lock_joints(robot, {"floating_base": q[:7]})
    assert (other.base, other.nv, other.link_names[0]) == ("fixed", robot.nv - 6, "world")
    assert relative(Plain(other).crba(q[7:]), Plain(robot).crba(q)[6:, 6:]) < TOLERANCE
    assert relative(Plain(other).bias(q[7:], v[6:]), Plain(robot).bias(q, v)[6:]) < TOLERANCE
    assert lock_joints(robot, {"floating_base": robot.neutral()[:7]}).link_names == robot.link_names


def followers():
    b = ModelBuilder("r").link("a")
    for name, above in ("ba", "cb", "dc"):
        b.link(name, 1.0, inertia=np.eye(3)).joint(
            f"j{name}", "revolute", above, name, mimic=Mimic("jb", 2.0, 0.5) if name != "b" else None
        )
    return b.build()


def test_who_follows_a_locked_joint_keeps_its_value():
    robot = lock_joints(followers(), {"jb": 0.25, "jd": 0.0})
    assert robot.joint("jc").mimic == Mimic("jb", 2.0, 1.0)
    assert robot.joint("jd").kind == "fixed" and robot.joint("jd").mimic is None


def test_locking_says_what_is_wrong():
    robot = lock_joints(own("arm"), {})
    first = robot.joint_names[0]
    with pytest.raises(rk.UnknownName, match="did you mean"):
        lock_joints(robot, {first[:-1]: 0.0})
    with pytest.raises(rk.ShapeError, match=first):
        lock_joints(robot, {first: [0.0, 0.0]})
    with pytest.raises(rk.ModelError, match="fixed already"):
        lock_joints(lock_joints(robot, {first: 0.0}), {first: 0.0})


# ---- removing


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_what_remains_is_the_robot_without_the_part(base):
    robot = own("humanoid", base)
    elbow = next(j for j in robot.joints if "elbow" in j.name)
    other = remove_subtree(robot, elbow.child_link)
    gone = {
        robot.link_names[k]
        for k, link in enumerate(robot.links)
        if elbow.body in robot.tree.support[link.body]
    }
    assert set(other.link_names) == set(robot.link_names) - gone
    b = ModelBuilder("rest")
    for link in robot.links:
        if link.name not in gone:
            b.link(link.name, link.mass, link.com, link.inertia)
    for j in (*robot.joints, *robot.fixed_joints):
        if j.child_link not in gone and j.name != "floating_base":
            b.joint(j.name, j.kind, j.parent_link, j.child_link, j.origin, j.axis)
    rest = b.build(base)
    q, v = state(rest)
    assert_same_dynamics(rest, other, q, v)
    lost = sum(link.mass for link in robot.links if link.name in gone)
    assert math.isclose(other.total_mass, robot.total_mass - lost, rel_tol=TOLERANCE)


def test_loops_go_with_their_ends():
    robot = own("four_bar")
    assert len(robot.loop_joints) == 1
    assert remove_subtree(robot, robot.loop_joints[0].successor).loop_joints == ()


def test_removing_says_what_is_wrong():
    robot = followers()
    with pytest.raises(rk.ModelError, match="root"):
        remove_subtree(robot, "a")
    with pytest.raises(rk.UnknownName):
        remove_subtree(robot, "z")
    assert remove_subtree(robot, "b").joint_names == ()
    b = ModelBuilder("r").link("a").link("b").link("c")
    b.joint("j", "revolute", "a", "b").joint("k", "revolute", "a", "c", mimic=Mimic("j"))
    with pytest.raises(rk.ModelError, match="'k' mimics joint 'j'"):
        remove_subtree(b.build(), "b")


# ---- grafting


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_graft_adds_its_block(base):
    robot, arm = own("quadruped", base), own("arm", "floating")
    rng = np.random.default_rng(3)
    placement = Placement(ladder.rotation(rng), np.array([0.1, 0.0, 0.2]))
    root = robot.link_names[0]
    other = graft(robot, arm, root, placement, "arm/")
    assert other.joint_names[: robot.nbodies] == robot.joint_names or base == "fixed"
    assert other.link_names == robot.link_names + tuple("arm/" + n for n in arm.link_names)
    q, _ = state(other)
    on_arm = [n for n in other.joint_names if n.startswith("arm/")]
    rest = [n for n in other.joint_names if n not in on_arm]
    assert tuple(n[4:] for n in on_arm) == arm.joint_names[1:] and tuple(rest) == robot.joint_names
    # The arm's block does not know the base it stands on; the legs' columns do not know the arm.
    alone = own("arm")
    a, qa = columns(other, on_arm), columns(other, on_arm, "q_slice")
    H = Plain(other).crba(q)
    assert relative(H[np.ix_(a, a)], Plain(alone).crba(q[qa])) < TOLERANCE
    legs = [n for n in rest if n != "floating_base"]
    k = columns(other, legs)
    before = Plain(robot).crba(q[columns(other, rest, "q_slice")])
    at = columns(robot, legs)
    assert relative(H[np.ix_(k, k)], before[np.ix_(at, at)]) < TOLERANCE
    assert np.all(H[np.ix_(a, k)] == 0.0)
    R, p = rk.forward_kinematics(other, q)[root]
    S, r = rk.forward_kinematics(other, q)[f"arm/{arm.link_names[0]}"]
    assert (
        relative(S, R @ placement.rotation) < TOLERANCE
        and relative(r, R @ placement.position + p) < TOLERANCE
    )


def test_a_robot_carries_itself_under_another_prefix():
    robot = own("four_bar")
    last = robot.link_names[-1]
    other = graft(robot, robot, last, prefix="second_")
    assert [p.name for p in other.loop_joints] == [
        robot.loop_joints[0].name,
        "second_" + robot.loop_joints[0].name,
    ]
    assert other.loop_joints[1].predecessor == "second_" + robot.loop_joints[0].predecessor
    twice = graft(followers(), followers(), "d", prefix="x")
    assert twice.joint("xjc").mimic == Mimic("xjb", 2.0, 0.5)
    with pytest.raises(rk.ModelError, match=r"both robots have the name .* prefix="):
        graft(robot, robot, last)
    with pytest.raises(rk.ModelError, match="joint="):
        graft(robot, robot, last, prefix="second_", joint=robot.joint_names[0])
    with pytest.raises(rk.UnknownName):
        graft(robot, robot, "nowhere", prefix="second_")


def test_what_is_removed_can_be_grafted_again():
    robot = own("quadruped")
    arm = own("arm")
    other = remove_subtree(graft(robot, arm, robot.link_names[-1], prefix="x"), "x" + arm.link_names[0])
    assert other.fingerprint == robot.fingerprint


# ---- merging


def with_fixed_links(base="fixed"):
    """A random tree in which a third of the joints is fixed, with boxes on its links."""
    robot = ladder.random_tree(6, base, ("revolute", "fixed", "prismatic"))
    box = Shape(Box((1.0, 2.0, 3.0)), Placement(position=np.array([1.0, 0.0, 0.0])))
    links = tuple(dataclasses.replace(link, visuals=(box,), collisions=(box,)) for link in robot.links)
    return dataclasses.replace(robot, links=links)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_merged_links_move_the_same(base):
    robot = with_fixed_links(base)
    other = merge_links(robot)
    assert len(robot.fixed_joints) >= 4 and other.fixed_joints == ()
    assert len(other.links) == len(robot.links) - len(robot.fixed_joints)
    q, v = state(robot)
    assert_same_dynamics(robot, other, q, v)
    assert sum(len(link.visuals) for link in other.links) == len(robot.links)
    # Every shape stands where it stood.
    places = []
    for r in (robot, other):
        poses = rk.forward_kinematics(r, q)
        at = [
            poses[link.name][0] @ s.placement.position + poses[link.name][1]
            for link in r.links
            for s in link.collisions
        ]
        places.append(np.array(sorted(map(tuple, np.round(at, 9)))))
    assert relative(*places) < 1e-8


def test_bodies_keep_their_order_when_links_merge():
    b = ModelBuilder("r")
    for name in "abcdgx":
        b.link(name, 1.0, inertia=np.eye(3))
    b.joint("G", "fixed", "a", "g").joint("F1", "fixed", "a", "b").joint("F2", "fixed", "g", "x")
    b.joint("m1", "revolute", "b", "c").joint("m2", "revolute", "x", "d")
    robot = b.build()
    assert robot.joint_names == ("m2", "m1")
    # The order of the fixed joints contradicts that of the bodies now; the bodies win.
    assert merge_links(robot, "g").joint_names == merge_links(robot).joint_names == ("m2", "m1")


def test_merging_one_link_keeps_what_hangs_on_it():
    robot = with_fixed_links()
    joint = next(j for j in robot.fixed_joints if any(k.parent_link == j.child_link for k in robot.joints))
    other = merge_links(robot, joint.child_link)
    assert set(robot.link_names) - set(other.link_names) == {joint.child_link}
    q, v = state(robot)
    assert_same_dynamics(robot, other, q, v)


def test_loops_move_over():
    b = ModelBuilder("r").link("a").link("b", 1.0, inertia=np.eye(3)).link("c")
    b.joint("j", "revolute", "a", "b")
    b.joint("k", "fixed", "b", "c", Placement(position=np.array([1.0, 0.0, 0.0])))
    b.loop_joint(
        "l", "spherical", "a", "c", successor_placement=Placement(position=np.array([0.0, 2.0, 0.0]))
    )
    (loop,) = merge_links(b.build()).loop_joints
    assert loop.successor == "b" and loop.successor_placement.position.tolist() == [1.0, 2.0, 0.0]


def test_merging_says_what_is_wrong():
    robot = with_fixed_links()
    moving = robot.joints[0].child_link
    with pytest.raises(rk.ModelError, match=f"'{moving}' is not behind a fixed joint"):
        merge_links(robot, [moving])
    with pytest.raises(rk.UnknownName):
        merge_links(robot, "nothing")
    followed = lock_joints(followers(), {"jb": 0.25})
    with pytest.raises(rk.ModelError, match="mimics the fixed joint 'jb'"):
        merge_links(followed)


def test_massless_links_merge():
    b = (
        ModelBuilder("r")
        .link("a")
        .link("b", 0.0, inertia=np.eye(3))
        .link("c", 2.0, (1, 0, 0), np.eye(3))
        .link("d")
    )
    b.joint("j", "revolute", "a", "b").joint("k", "fixed", "b", "c").joint("l", "fixed", "c", "d")
    link = merge_links(b.build()).link("b")
    assert (link.mass, link.com.tolist(), link.inertia.tolist()) == (2.0, [1, 0, 0], (2 * np.eye(3)).tolist())


# ---- inertias


def test_inertias_are_replaced():
    robot = own("arm")
    name = robot.joints[-1].child_link
    new = (3.0, (0.1, 0.2, 0.3), np.diag([1.0, 2.0, 2.5]))
    other = replace_inertia(robot, {name: new})
    link = other.link(name)
    assert (link.mass, tuple(link.com), np.diag(link.inertia).tolist()) == (3.0, new[1], [1.0, 2.0, 2.5])
    assert link.visuals == robot.link(name).visuals
    assert robot.link(name).mass != 3.0 and other.link_names == robot.link_names
    old = robot.link(name)
    back = replace_inertia(other, {name: (old.mass, old.com, old.inertia)})
    assert back.fingerprint == robot.fingerprint != other.fingerprint
    for bad in ((1.0, (0, 0, 0)), 3.0, (-1.0, (0, 0, 0), None), (1.0, (0, 0), None)):
        with pytest.raises(rk.ModelError, match=name):
            replace_inertia(robot, {name: bad})
    with pytest.raises(rk.UnknownName):
        replace_inertia(robot, {"nothing": new})


def test_edits_keep_gravity_base_and_findings():
    robot = own("quadruped", "floating").with_gravity((0.0, 0.0, -1.6))
    other = lock_joints(robot, {robot.joint_names[1]: 0.3})
    assert (other.base, other.tree.gravity) == ("floating", (0.0, 0.0, -1.6))
    assert (other.source, other.diagnostics) == (robot.source, robot.diagnostics)


GRIPPER = """<robot name="gripper"><link name="palm">INERTIAL</link><link name="left">INERTIAL</link>
<link name="right">INERTIAL</link><link name="tip">INERTIAL</link>
<joint name="drive" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.04" effort="1" velocity="1"/></joint>
<joint name="follow" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="0 -1 0"/>
<limit lower="0" upper="0.04" effort="1" velocity="1"/><mimic joint="drive"/></joint>
<joint name="bend" type="continuous"><parent link="right"/><child link="tip"/><axis xyz="1 0 0"/></joint>
</robot>""".replace(
    "INERTIAL",
    '<inertial><mass value="0.3"/>'
    '<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>',
)


def test_a_coupled_robot_stays_coupled_and_is_written_with_its_mimics():
    robot = rk.loads_urdf(GRIPPER, mimic="couple")
    assert robot.joint_names == ("drive", "bend")
    q = np.array([0.02, 0.3])
    text = rk.urdf.dump(robot)
    again = rk.loads_urdf(text, mimic="couple")
    np.testing.assert_allclose(rk.crba(again, q), rk.crba(robot, q), rtol=1e-14)
    locked = rk.model.lock_joints(robot, {"bend": 0.3})
    assert locked.joint_names == ("drive",) and locked.coupling is not None
    np.testing.assert_allclose(rk.crba(locked, q[:1]), rk.crba(robot, q)[:1, :1], rtol=1e-14)


# ---- rotor inertias ------------------------------------------------------------------------------
# From the file's transmissions, set by hand, written, and kept by every edit.

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
