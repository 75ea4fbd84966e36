"""Singular mass matrices are refused with the joint's name; so are matrices that LTDL would misread."""

import numpy as np
import pytest

import robokit as rk

INERTIA = np.diag([0.02, 0.03, 0.025])


def massless_tip():
    b = rk.ModelBuilder("tip").link("base").link("a", mass=1.0, inertia=INERTIA).link("b")
    b.joint("j1", "revolute", "base", "a").joint("j2", "revolute", "a", "b", axis=(0, 0.6, 0.8))
    return b.build()


def massless_base():
    """Base and first joint turn about one axis: singular, though no exact zero ever shows."""
    b = rk.ModelBuilder("root").link("base")
    b.link("a", mass=1.0, com=(0.1, 0.05, -0.3), inertia=INERTIA)
    return b.joint("j1", "revolute", "base", "a", axis=(0, 1, 0.3)).build("floating")


@pytest.mark.parametrize(("make", "joint"), [(massless_tip, "j2"), (massless_base, "floating_base")])
@pytest.mark.parametrize("rows", [None, 3])
def test_forward_dynamics_names_the_joint(make, joint, rows):
    robot = make()
    q, v = robot.random_configuration(1), np.ones(robot.nv)
    if rows is not None:
        q, v = np.tile(q, (rows, 1)), np.ones((rows, robot.nv))
    for call in (
        lambda: rk.aba(robot, q, v, v),
        lambda: rk.forward_dynamics(robot, q, v, v, method="crba"),
        lambda: rk.simulate(robot, duration=0.01),
    ):
        with pytest.raises(rk.SingularInertia, match=joint) as caught:
            call()
        assert caught.value.joint == joint


def test_a_configuration_that_happens_to_be_singular_is_found_when_it_comes():
    """A point mass slides onto the first axis: H is regular elsewhere."""
    b = rk.ModelBuilder("points").link("base").link("a").link("b", mass=1.0, com=(1.0, 0, 0))
    b.joint("j1", "revolute", "base", "a", axis=(0, 0, 1))
    b.joint("j2", "prismatic", "a", "b", axis=(1, 0, 0))
    robot = b.build()
    good, bad = np.array([0.3, 0.5]), np.array([0.3, -1.0])
    assert np.isfinite(rk.aba(robot, good, np.zeros(2), np.ones(2))).all()
    for q in (bad, np.stack([good, bad])):
        with pytest.raises(rk.SingularInertia, match=r"j1.*in this configuration"):
            rk.aba(robot, q, np.zeros(2), np.ones(2))


def test_ltdl_refuses_what_it_would_not_read():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    H = rk.crba(robot, robot.neutral())
    with pytest.raises(rk.ShapeError, match="symmetric"):
        rk.ltdl(robot, np.tril(H))
    with pytest.raises(rk.ShapeError, match="no path between"):
        rk.ltdl(robot, H + 1.0)
    with pytest.raises(rk.SingularInertia, match="not positive definite"):
        rk.ltdl(robot, -H)
    dense, sparse = rk.ltdl(robot, H), rk.ltdl(robot, rk.crba(robot, robot.neutral(), sparse=True))
    assert np.allclose(dense.L, sparse.L, rtol=1e-13, atol=1e-15)


def test_every_sample_is_looked_at_where_their_zeros_are_alike():
    # A full body, and a rod that lies obliquely: it moves nothing about its own length.
    b = rk.ModelBuilder("ball").link("a").link("b", 1.0, inertia=np.eye(3))
    robot = b.joint("ball", "spherical", "a", "b").build()
    along = np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    rod, full = np.eye(3) - np.outer(along, along), np.eye(3)
    full[0, 1] = full[1, 0] = -0.1
    rest = np.zeros(3)
    for inertia in (np.stack([full, rod]), rod):
        varied = robot.with_inertias({"b": (None, None, inertia)})
        with pytest.raises(rk.SingularInertia, match="'ball'"):
            rk.aba(varied, robot.neutral(), rest, rest)
    fine = robot.with_inertias({"b": (None, None, np.stack([full, 2.0 * full]))})
    assert np.isfinite(rk.aba(fine, robot.neutral(), rest, np.ones(3))).all()
