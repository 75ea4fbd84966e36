"""Where a joint counts as one that moves nothing: none at all, or none but rounding; both sides."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import random_tree

import robokit as rk
from robokit.dynamics import singular
from robokit.model import couple

EDGE = 1e-13  # share of what a joint carries that must be its own

BODY = np.diag([0.2, 0.3, 0.4])


def refused(robot: rk.Robot, joint: str) -> None:
    """By every function that solves for accelerations, with the joint's name."""
    q, v = robot.random_configuration(1), np.ones(robot.nv)
    for call in (
        lambda: rk.aba(robot, q, v, v),
        lambda: rk.forward_dynamics(robot, q, v, v, method="crba"),
        lambda: rk.rollout(robot, steps=1),
    ):
        with pytest.raises(rk.SingularInertia) as caught:
            call()
        assert caught.value.joint == joint


def solved(robot: rk.Robot, accuracy: float) -> None:
    """H a + C = tau, beside the largest of its terms; H and C by plain Python."""
    rng = np.random.default_rng(3)
    q = robot.random_configuration(rng)
    v, tau = rng.standard_normal((2, robot.nv))
    H, C = rk.crba(robot, q, engine="python"), rk.bias_forces(robot, q, v, engine="python")
    for method in ("aba", "crba"):
        a = rk.forward_dynamics(robot, q, v, tau, method=method)
        terms = np.abs(H) @ np.abs(a) + np.abs(C) + np.abs(tau)
        assert (np.abs(H @ a + C - tau) <= accuracy * terms.max()).all()


def stacked(share: float, kind: str = "revolute") -> rk.Robot:
    """Two joints on one axis: the first's own body has this share of the second's inertia."""
    b = rk.ModelBuilder("stacked").link("root").link("inner", share, inertia=share * BODY)
    b.link("outer", 1.0, inertia=BODY)
    b.joint("first", kind, "root", "inner", axis=(0, 0, 1))
    return b.joint("second", kind, "inner", "outer", axis=(0, 0, 1)).build()


def coupled(share: float, size: float = 1.0) -> rk.Robot:
    """The same beside two joints of which one follows the other."""
    b = rk.ModelBuilder("coupled").link("root").link("inner", share * size, inertia=share * size * BODY)
    b.link("outer", size, inertia=size * BODY).link("leader", size, inertia=size * BODY).link(
        "follower", size, inertia=size * BODY
    )
    b.joint("first", "revolute", "root", "inner", axis=(0, 0, 1))
    b.joint("second", "revolute", "inner", "outer", axis=(0, 0, 1))
    b.joint("third", "revolute", "root", "leader", axis=(0, 0, 1))
    b.joint("fourth", "revolute", "leader", "follower", axis=(0, 0, 1), mimic=rk.Mimic("third", 0.5))
    return couple(b.build())


KINDS = ("revolute", "prismatic", "spherical", "cylindrical", "planar")


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_above_rounding_is_taken(kind):
    # What lies off a planar joint's axis makes the share of its turning less.
    for share in (1e-3, 1e-9, 1e-11) if kind == "planar" else (1e-3, 1e-9, 1e-12, 3.0 * EDGE):
        solved(stacked(share, kind), accuracy=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_below_rounding_is_refused(kind):
    for share in (0.3 * EDGE, 1e-15, 1e-30, 1e-300, 0.0):
        refused(stacked(share, kind), "first")


def test_of_coupled_joints_alike():
    for share in (1e-3, 1e-9, 1e-12, 3.0 * EDGE):
        solved(coupled(share), accuracy=1e-9)
    for share in (0.3 * EDGE, 1e-15, 1e-300, 0.0):
        refused(coupled(share), "first")
    for size in (1e-150, 1e-9, 1e100):
        a = rk.aba(coupled(0.5, size), np.zeros(3), np.zeros(3), size * np.ones(3))
        np.testing.assert_allclose(a, rk.aba(coupled(0.5), np.zeros(3), np.zeros(3), np.ones(3)), atol=1e-12)


@pytest.mark.parametrize("size", [1e-250, 1e-150, 1e-30, 1e-9, 1.0, 1e30, 1e100])
@pytest.mark.parametrize("kind", KINDS)
def test_no_size_of_body_is_too_small_or_too_large(size, kind):
    """Only what a joint carries counts: a body of its own, however light, is inertia."""
    b = rk.ModelBuilder("light").link("root").link("body", size, (0.1, 0.2, 0.3), size * BODY)
    robot = b.joint("j", kind, "root", "body", axis=(0, 0.6, 0.8)).build()
    q, v = robot.random_configuration(1), np.zeros(robot.nv)
    H, g = rk.crba(robot, q, engine="python"), rk.gravity_forces(robot, q, engine="python")
    a = rk.aba(robot, q, v, np.zeros(robot.nv))
    np.testing.assert_allclose((H / size) @ a, -g / size, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [*KINDS, "continuous", "helical", "floating"])
def test_a_tip_without_anything_is_refused_whatever_its_joint(kind):
    b = rk.ModelBuilder("tip").link("root").link("arm", 1.0, (0, 0, 0.1), BODY).link("tip")
    b.joint("shoulder", "revolute", "root", "arm", axis=(1, 0, 0))
    refused(b.joint("wrist", kind, "arm", "tip", axis=(0, 1, 0), pitch=0.1).build(), "wrist")


def test_a_coupled_tip_without_anything_is_refused():
    b = rk.ModelBuilder("tip").link("root").link("arm", 1.0, (0, 0, 0.1), BODY).link("a").link("b")
    b.joint("shoulder", "revolute", "root", "arm").joint("wrist", "revolute", "arm", "a")
    b.joint("after", "revolute", "a", "b", mimic=rk.Mimic("wrist"))
    refused(couple(b.build()), "wrist")


@pytest.mark.parametrize("along", [(0.6, 0.8, 0), (2 / 3, -1 / 3, 2 / 3)])
@pytest.mark.parametrize(("share", "singular"), [(0.0, True), (1e-14, True), (1e-11, False), (1e-6, False)])
def test_a_rod_on_a_ball_joint_is_refused_until_it_has_some_width(along, share, singular):
    u = np.array(along)
    rod = np.eye(3) - (1.0 - share) * np.outer(u, u)
    b = rk.ModelBuilder("rod").link("root").link("rod", 1.0, (0, 0, 0), rod)
    robot = b.joint("ball", "spherical", "root", "rod").build()
    if singular:
        refused(robot, "ball")
    else:
        a = rk.aba(robot, robot.neutral(), np.zeros(3), rod @ [1.0, 2.0, 3.0])
        np.testing.assert_allclose(a, [1.0, 2.0, 3.0], rtol=1e-15 / share)


# ---- robots with one set of inertias a sample


def tip() -> rk.Robot:
    b = rk.ModelBuilder("tip").link("root").link("arm", 1.0, (0, 0, 0.1), BODY).link("tip", 1.0, inertia=BODY)
    b.joint("shoulder", "revolute", "root", "arm", axis=(1, 0, 0))
    return b.joint("wrist", "revolute", "arm", "tip", axis=(0, 1, 0)).build()


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e-20, 1e-12, 1e-9])
@pytest.mark.parametrize("last", [False, True])
def test_one_empty_sample_among_light_ones_is_refused(size, last):
    """Exactly nothing is another pattern than next to nothing, in whatever order they come."""
    scale = np.array([size, size, 0.0] if last else [0.0, size, size])
    robot = tip().with_inertias({"tip": (scale, np.zeros(3), scale[:, None, None] * BODY)})
    refused(robot, "wrist")


@pytest.mark.parametrize("size", [1e-20, 1e-12, 1e-9])
def test_light_samples_are_taken(size):
    scale = np.array([size, 1.0, size])
    robot = tip().with_inertias({"tip": (scale, np.zeros(3), scale[:, None, None] * BODY)})
    q, v = robot.random_configuration(1), np.zeros(2)
    a = rk.aba(robot, q, v, np.zeros(2))
    for k in range(3):
        np.testing.assert_allclose(a[k], rk.aba(robot.sample(k), q, v, np.zeros(2)), rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("last", [False, True])
def test_a_rod_among_fuller_samples_is_refused(sign, last):
    """It differs from a regular sample only in a product of inertia, of either sign."""
    full, rod = np.diag([1.0, 1.0, 2.0]), np.array([[1.0, sign, 0.0], [sign, 1.0, 0.0], [0.0, 0.0, 2.0]])
    b = rk.ModelBuilder("rods").link("root").link("rod", 1.0, inertia=full)
    robot = b.joint("ball", "spherical", "root", "rod").build()
    robot = robot.with_inertias({"rod": (1.0, None, np.stack([full, rod] if last else [rod, full]))})
    refused(robot, "ball")


def test_links_whose_own_inertias_are_pivots_need_no_recursion(monkeypatch):
    """Where the short look says that nothing is singular, the recursion says so, too."""
    rng = np.random.default_rng(5)
    robots = [random_tree(seed, n=8) for seed in range(12)]
    looks, found = [], []
    for robot in robots:
        for power in (0.0, 6.0, 12.0, 30.0):
            shares = 10.0 ** rng.uniform(-power, 0.0, (len(robot.inertial_parameters), 1))
            scaled = robot.with_inertias(robot.inertial_parameters * shares)
            q = robot.random_configuration(rng)
            looks.append(
                singular._move_their_own(scaled.tree, scaled.tree.transforms(scaled.tree.split_q(q)))
            )
            with monkeypatch.context() as patch:
                patch.setattr(singular, "_move_their_own", lambda *_: False)
                found.append(singular.singular_joint(scaled, q) is not None)
    assert not any(own and joint for own, joint in zip(looks, found, strict=True))
    assert any(looks) and any(found)


def test_what_links_carry_is_beyond_floats():
    """m r^2 of 1e320 kg m^2: the inner joints move nothing beside it, and that is what is said."""
    b = rk.ModelBuilder("far").link("root")
    for k in range(3):
        b.link(f"link{k}", 1e200, inertia=np.eye(3))
        place = rk.Placement(position=(1e60, 0.0, 0.0))
        b.joint(f"joint{k}", "revolute", f"link{k - 1}" if k else "root", f"link{k}", place, axis=(0, 0, 1))
    assert singular.singular_joint(b.build()).name == "joint1"
