"""ModelBuilder: folding of fixed joints, layout, names, loop joints and its refusals."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from dense import Dense
from for_each import for_each
from ladder import Plain, State, relative

import robokit as rk
from robokit.errors import ModelError, RobokitError, UnknownName
from robokit.model import Mimic, ModelBuilder, Placement


def assembled(kind: str):
    """base -hinge- arm -(kind)- tool -(kind)- camera, the rigid parts either fixed or one link."""
    rng = np.random.default_rng(2)
    arm, tool, camera = (ladder._body(rng) for _ in range(3))
    P1, P2 = (Placement(ladder.rotation(rng), rng.uniform(-0.3, 0.3, 3)) for _ in range(2))
    b = ModelBuilder("assembled")
    b.link("base", 5.0)
    if kind == "fixed":
        b.link("arm", *arm).link("tool", *tool).link("camera", *camera)
        b.joint("bolt1", "fixed", "arm", "tool", P1).joint("bolt2", "fixed", "tool", "camera", P2)
    else:
        b.link("arm", *lumped([(Placement(), arm), (P1, tool), (P1 @ P2, camera)]))
    b.joint("hinge", "revolute", "base", "arm", Placement(np.eye(3), np.array([0, 0, 0.5])), axis=(1, 2, 0))
    return b


def lumped(parts):
    """Mass, com and inertia of several bodies as one, by the parallel-axis theorem."""
    mass = sum(body[0] for _, body in parts)
    coms = [P.rotation @ c + P.position for P, (_, c, _) in parts]
    com = sum(body[0] * c for (_, body), c in zip(parts, coms, strict=True)) / mass
    I = np.zeros((3, 3))
    for (P, (m, _, Ic)), c in zip(parts, coms, strict=True):
        d = c - com
        I += P.rotation @ Ic @ P.rotation.T + m * (d @ d * np.eye(3) - np.outer(d, d))
    return mass, com, (I + I.T) / 2


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_folding_fixed_joints_changes_no_mechanics(base):
    bolted, welded = assembled("fixed").build(base), assembled("welded").build(base)
    assert bolted.nbodies == welded.nbodies == (2 if base == "floating" else 1)
    s = State(bolted)
    one, other = Plain(bolted), Plain(welded)
    assert bolted.total_mass == pytest.approx(welded.total_mass, rel=1e-15)
    assert relative(one.com(s.q), other.com(s.q)) < 1e-14
    assert relative(one.crba(s.q), other.crba(s.q)) < 1e-14
    assert relative(one.gravity(s.q), other.gravity(s.q)) < 1e-14
    assert relative(one.bias(s.q, s.v), other.bias(s.q, s.v)) < 1e-14


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_links_behind_fixed_joints_keep_their_frames(base):
    robot = assembled("fixed").build(base)
    assert robot.frame("camera")[0] == robot.frame("arm")[0] == robot.joint("hinge").body
    s = State(robot)
    T = Dense(robot, s.q, s.v).T
    _, placement = robot.frame("camera")
    inside = np.linalg.inv(T["arm"]) @ T["camera"]
    assert relative(placement.rotation, inside[:3, :3]) < 1e-14
    assert relative(placement.position, inside[:3, 3]) < 1e-14
    assert [j.name for j in robot.fixed_joints] == ["bolt1", "bolt2"]
    assert robot.joint("bolt2").v_slice == slice(0, 0)


def test_total_mass_is_that_of_the_moving_bodies():
    robot = assembled("fixed").build()
    links = {link.name: link.mass for link in robot.links}
    assert robot.total_mass == pytest.approx(sum(links.values()) - 5.0)
    assert assembled("fixed").build("floating").total_mass == pytest.approx(sum(links.values()))


def test_layout_of_q_and_v(built):
    at_q = at_v = 0
    sizes = {"planar": (3, 3), "spherical": (4, 3), "floating": (7, 6), "cylindrical": (2, 2)}
    for i, joint in enumerate(built.joints, 1):
        nq, nv = sizes.get(joint.kind, (1, 1))
        assert joint.q_slice == slice(at_q, at_q + nq) and joint.v_slice == slice(at_v, at_v + nv)
        assert joint.body == i
        assert built.joint(joint.name) is joint
        assert built.body_name(i) == joint.child_link
        at_q, at_v = at_q + nq, at_v + nv
    assert (built.nq, built.nv) == (at_q, at_v) == (len(built.neutral()), len(State(built).v))


def test_floating_base_comes_first():
    robot = ladder.chain(base="floating")
    base = robot.joints[0]
    assert base.name == "floating_base" and base.kind == "floating"
    assert base.q_slice == slice(0, 7) and base.v_slice == slice(0, 6)
    assert robot.neutral()[:7].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert robot.body_name(0) == "world" and robot.frame("link0")[0] == 1


def test_joint_data_reach_the_robot():
    b = ModelBuilder("r").link("a").link("b", 1.0).link("c", 1.0)
    b.joint(
        "j",
        "prismatic",
        "a",
        "b",
        axis=(0, 3, 4),
        lower=-1,
        upper=2,
        effort=7,
        velocity=8,
        damping=0.5,
        friction=0.25,
    )
    b.joint("k", "revolute", "b", "c", mimic=Mimic("j", 2.0, 0.1))
    robot = b.build()
    j = robot.joint("j")
    assert j.axis.tolist() == [0, 0.6, 0.8]
    assert (j.lower, j.upper, j.effort, j.velocity, j.damping, j.friction) == (-1, 2, 7, 8, 0.5, 0.25)
    assert (j.parent_link, j.child_link, j.mimic) == ("a", "b", None)
    assert robot.joint("k").mimic == Mimic("j", 2.0, 0.1)
    assert robot.joint("k").lower == -np.inf and robot.joint("k").effort == np.inf


def test_loop_joints_are_numbered_after_the_tree():
    b = ModelBuilder("r")
    for name in "abcd":
        b.link(name, 1.0)
    b.joint("ab", "revolute", "a", "b").joint("bc", "revolute", "b", "c").joint("cd", "fixed", "c", "d")
    b.loop_joint("da", "revolute", "d", "a").loop_joint("ca", "spherical", "c", "b")
    robot = b.build()
    assert [(j.name, j.number) for j in robot.loop_joints] == [("da", 3), ("ca", 4)]
    assert robot.tree.predecessor == (-1, 0, 1, 2, 2) and robot.tree.successor == (0, 1, 2, 0, 1)
    assert robot.tree.n_joints == 4 and robot.nv == 2
    assert [c for mu in robot.tree.children for c in mu] == [1, 2]


def test_snapping_removes_rounding_noise_only():
    c, s = np.cos(np.pi / 2), np.sin(np.pi / 2)
    noisy = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    b = ModelBuilder("r").link("a").link("b", 1.0)
    robot = b.joint(
        "j", "revolute", "a", "b", Placement(noisy, np.array([1e-17, 0.3, 1e-6])), axis=(c, 0, 1)
    ).build()
    X = robot.tree.XT[1]
    assert X.E.rows == ((0, 1, 0), (-1, 0, 0), (0, 0, 1))
    assert list(X.r) == [0.0, 0.3, 1e-6]
    assert robot.joint("j").axis.tolist() == [0, 0, 1]


def hinge(b, **arguments):
    return b.joint("j", "revolute", "a", "b", **arguments)


REFUSALS = {
    "no link": (lambda b: b, ModelError, "no link"),
    "two links with the same name": (lambda b: b.link("a").link("a"), ModelError, "'a' already exists"),
    "two joints with the same name": (
        lambda b: (
            b.link("a").link("b").link("c").joint("j", "revolute", "a", "b").joint("j", "fixed", "b", "c")
        ),
        ModelError,
        "'j' already exists",
    ),
    "unknown kind": (lambda b: b.joint("j", "revolut", "a", "b"), UnknownName, "'revolute'"),
    "unknown link": (lambda b: b.link("a").joint("j", "fixed", "a", "bb"), UnknownName, "'bb'"),
    "unknown link of a loop": (
        lambda b: b.link("a").link("b").joint("j", "fixed", "a", "b").loop_joint("l", "revolute", "a", "c"),
        UnknownName,
        "'c'",
    ),
    "two roots": (lambda b: b.link("a").link("b"), ModelError, "one root"),
    "a cycle": (
        lambda b: b.link("a").link("b").joint("j", "fixed", "a", "b").joint("k", "fixed", "b", "a"),
        ModelError,
        "cycle",
    ),
    "a cycle beside the root": (
        lambda b: b.link("r").link("a").link("b").joint("j", "fixed", "a", "b").joint("k", "fixed", "b", "a"),
        ModelError,
        "cycle",
    ),
    "two parents": (
        lambda b: b.link("a").link("b").link("c").joint("j", "fixed", "a", "c").joint("k", "fixed", "b", "c"),
        ModelError,
        "two parents",
    ),
    "zero axis": (lambda b: b.joint("j", "revolute", "a", "b", axis=(0, 0, 0)), ModelError, "axis"),
    "negative mass": (lambda b: b.link("a", -1.0), ModelError, "mass"),
    "infinite mass": (lambda b: b.link("a", np.inf), ModelError, "mass"),
    "nan in the com": (lambda b: b.link("a", 1.0, (0, np.nan, 0)), ModelError, "com"),
    "asymmetric inertia": (
        lambda b: b.link("a", 1.0, inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]),
        ModelError,
        "symmetric",
    ),
    "inertia of the wrong shape": (lambda b: b.link("a", 1.0, inertia=np.eye(2)), ModelError, "inertia"),
    "a link without a name": (lambda b: b.link(" "), ModelError, "link needs a name"),
    "a number for a name": (lambda b: b.joint(3, "fixed", "a", "b"), ModelError, "joint needs a name"),
    "crossed limits": (
        lambda b: hinge(b, lower=1.0, upper=-1.0),
        ModelError,
        "'j': the lower limit 1 is above",
    ),
    "nan limit": (lambda b: hinge(b, upper=np.nan), ModelError, "upper limit of joint 'j'"),
    "nan effort": (lambda b: hinge(b, effort=np.nan), ModelError, "effort limit of joint 'j'"),
    "a word for a velocity": (lambda b: hinge(b, velocity="fast"), ModelError, "velocity limit of joint 'j'"),
    "infinite pitch": (lambda b: hinge(b, pitch=np.inf), ModelError, "pitch of joint 'j'"),
    "nan damping": (lambda b: hinge(b, damping=np.nan), ModelError, "damping of joint 'j'"),
    "infinite friction": (lambda b: hinge(b, friction=np.inf), ModelError, "friction of joint 'j'"),
    "a vector for a placement": (
        lambda b: hinge(b, placement=(0, 0, 1)),
        ModelError,
        "placement of joint 'j'",
    ),
    "a stretched rotation": (
        lambda b: hinge(b, placement=Placement(np.eye(3) * 1.00001)),
        ModelError,
        "'j': the rotation is not orthonormal",
    ),
    "a mirror": (lambda b: hinge(b, placement=Placement(np.diag([1, 1, -1.0]))), ModelError, "'j'.* mirrors"),
    "nan in a position": (
        lambda b: hinge(b, placement=Placement(position=np.array([0, np.nan, 0]))),
        ModelError,
        "position of the placement of joint 'j'",
    ),
    "a loop's mirror": (
        lambda b: b.loop_joint("l", "revolute", "a", "b", None, Placement(-np.eye(3))),
        ModelError,
        "successor placement of loop joint 'l'",
    ),
}


@for_each("case", REFUSALS)
def test_refusals_name_the_culprit(case):
    make, error, message = REFUSALS[case]
    with pytest.raises(error, match=message) as caught:
        make(ModelBuilder("wrong")).build()
    assert isinstance(caught.value, RobokitError)


def test_unknown_base_and_reserved_name():
    b = ModelBuilder("r").link("a").link("b", 1.0).joint("floating_base", "revolute", "a", "b")
    with pytest.raises(UnknownName, match="floating"):
        b.build("flying")
    with pytest.raises(ModelError, match="floating_base"):
        b.build("floating")


def test_what_only_importers_complain_about_is_allowed():
    b = ModelBuilder("r").link("a").link("b", 1.0, inertia=np.eye(3))
    b.joint("j", "revolute", "a", "b", lower=0.5, upper=0.5, effort=np.inf, damping=-1.0, friction=-0.1)
    joint = b.build().joint("j")
    assert (joint.lower, joint.upper, joint.damping, joint.friction) == (0.5, 0.5, -1.0, -0.1)


def test_a_link_takes_shapes_and_bare_geometries():
    box = rk.model.Box((1.0, 2.0, 3.0))
    for given in (box, [box], rk.model.Shape(box), [rk.model.Shape(box)], iter([box])):
        built = rk.ModelBuilder("r").link("a", 1.0, inertia=np.eye(3), collisions=given).build("floating")
        assert built.link("a").collisions == (rk.model.Shape(box),)
    for wrong in (3, "box", [box, 3], rk.model.Box):
        with pytest.raises(rk.WrongType, match="collisions: expected shapes or geometries"):
            rk.ModelBuilder("r").link("a", collisions=wrong)


@pytest.mark.parametrize("kind", ["cylindrical", "planar", "spherical", "floating"])
def test_limits_that_would_not_act_are_refused(kind):
    ends = ModelBuilder("limited").link("a", 1.0).link("b", 1.0)
    for bounds in ({"lower": -0.1, "upper": 0.1}, {"upper": 0.0}):
        with pytest.raises(ModelError, match=f"joint 'j': {kind} joints have no position limits"):
            ends.joint("j", kind, "a", "b", **bounds)
    assert ends.joint("j", kind, "a", "b", lower=-np.inf, upper=np.inf).build().joint("j").kind == kind


@pytest.mark.parametrize("what", ["mimic", "safety", "calibration"])
def test_what_belongs_to_a_joint_is_of_its_class(what):
    """A tuple in place of a Mimic made a joint that followed nothing."""
    b = ModelBuilder("r").link("a").link("b", 1.0)
    with pytest.raises(rk.WrongType, match=f"{what} of joint 'j'.*{what.title()}, or None, got tuple"):
        b.joint("j", "revolute", "a", "b", **{what: ("k", -1.0, 0.0)})
