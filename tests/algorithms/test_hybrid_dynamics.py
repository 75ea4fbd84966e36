"""Hybrid dynamics and floating bases: what is computed belongs together as the RNEA and the ABA say."""

from __future__ import annotations

import dataclasses

import ladder
import numpy as np
import pytest
from ladder import State, follower, relative

import robokit as rk
from robokit.model import couple

PLAIN = {"engine": "python"}


def own_places(robot, names):
    return [k for name in names for k in range(robot.nv)[robot.joint(name).v_slice]]


def geared(robot):
    """The robot with a rotor on every joint but the base."""
    rng = np.random.default_rng(5)
    tree = robot.tree
    rotors = [()] + [
        tuple(rng.uniform(0.1, 0.5, j.kind.nv) * (j.kind.name != "floating")) for j in tree.joint[1:]
    ]
    return dataclasses.replace(robot, tree=dataclasses.replace(tree, armature=tuple(rotors)))


@pytest.mark.parametrize("which", [slice(0, 0), slice(0, None), slice(1, None), slice(0, None, 2)])
@pytest.mark.parametrize("rotors", [False, True])
def test_forces_and_accelerations_belong_together_and_keep_what_was_given(which, rotors):
    robot = ladder.random_tree(2, "floating", n=9)
    robot = geared(robot) if rotors else robot
    s, names = State(robot), robot.joint_names[which]
    tau, a = rk.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, names, **PLAIN)
    given = own_places(robot, names)
    assert (a[given] == s.a[given]).all() and (np.delete(tau, given) == np.delete(s.tau, given)).all()
    assert relative(rk.rnea(robot, s.q, s.v, a, **PLAIN), tau) < 1e-11
    assert relative(rk.aba(robot, s.q, s.v, tau, **PLAIN), a) < 1e-11


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_coupled_joints_too(base):
    robot = couple(geared(follower(base)))
    s, names = State(robot), [robot.joint_names[0], "e"]
    tau, a = rk.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, names, **PLAIN)
    given = own_places(robot, names)
    assert relative(a[given], s.a[given]) == 0.0
    assert relative(np.delete(tau, given), np.delete(s.tau, given)) == 0.0
    assert relative(rk.rnea(robot, s.q, s.v, a, **PLAIN), tau) < 1e-11


@pytest.mark.parametrize("coupled", [False, True])
def test_the_joints_move_a_free_base_so_that_nothing_pushes_it(coupled):
    robot = geared(follower("floating"))
    robot = couple(robot) if coupled else robot
    s = State(robot)
    base, tau = rk.floating_base_inverse_dynamics(robot, s.q, s.v, s.a[6:], **PLAIN)
    a = np.concatenate([base, s.a[6:]])
    assert relative(rk.rnea(robot, s.q, s.v, a, **PLAIN), np.concatenate([np.zeros(6), tau])) < 1e-12
    assert relative(rk.floating_base_forces(robot, s.q, s.v, a, **PLAIN), np.zeros(6)) < 1e-12
    all_but_base = robot.joint_names[1:]
    forces, hybrid = rk.hybrid_dynamics(robot, s.q, s.v, np.zeros(robot.nv), a, all_but_base, **PLAIN)
    assert relative(hybrid, a) < 1e-12 and relative(forces[6:], tau) < 1e-12


def test_the_momentum_of_a_free_body_keeps_to_gravity():
    robot = ladder.chain(4, "floating")
    s = State(robot)
    base, _ = rk.floating_base_inverse_dynamics(robot, s.q, s.v, s.a[6:], **PLAIN)
    A = rk.centroidal_momentum_matrix(robot, s.q, **PLAIN)
    rate = A @ np.concatenate([base, s.a[6:]]) + rk.centroidal_momentum_bias(robot, s.q, s.v, **PLAIN)
    assert relative(rate, np.concatenate([np.zeros(3), robot.total_mass * robot.gravity])) < 1e-12


def test_a_fixed_base_is_refused_in_words():
    robot = ladder.pendulum()
    for call in (rk.floating_base_inverse_dynamics, rk.floating_base_forces):
        with pytest.raises(rk.ModelError, match=f"^{call.__name__}: .* fixed base, .* base='floating'"):
            call(robot, [0.0], [0.0], [0.0])
        f = rk.functions[call.__name__]
        ways = (
            lambda f=f: f(robot, [0.0], [0.0], [0.0]),
            lambda f=f: f.derivative("q")(robot, [0.0], [0.0], [0.0]),
            lambda f=f: f.flat(robot),
        )
        for way in ways:
            with pytest.raises(rk.ModelError, match=f"^{call.__name__}.*: robot 'pendulum' has a fixed base"):
                way()


def test_names_of_prescribed_joints_are_checked():
    robot = ladder.pendulum()
    zero = np.zeros(1)
    with pytest.raises(rk.UnknownName, match=r"no joint with coordinates named 'hing'; did you mean 'hinge'"):
        rk.hybrid_dynamics(robot, zero, zero, zero, zero, ["hing"])
    with pytest.raises(rk.WrongType, match=r"^prescribed: expected a list of joint names, got str 'hinge'"):
        rk.hybrid_dynamics(robot, zero, zero, zero, zero, "hinge")


def test_a_massless_link_needs_its_acceleration_given():
    b = rk.ModelBuilder("light").link("a").link("b", 1.0, (0, 0, 1), np.eye(3)).link("c")
    robot = b.joint("shoulder", "revolute", "a", "b").joint("antenna", "revolute", "b", "c").build()
    zero, tau, a = np.zeros(2), np.array([1.0, 0.0]), np.array([0.0, 3.0])
    with pytest.raises(rk.SingularInertia, match="'antenna'"):
        rk.hybrid_dynamics(robot, zero, zero, tau, a, ["shoulder"])
    forces, found = rk.hybrid_dynamics(robot, zero, zero, tau, a, ["antenna"])
    assert found == pytest.approx([0.5, 3.0]) and forces == pytest.approx([1.0, 0.0])


def test_rotors_add_their_inertia_to_every_algorithm():
    robot = ladder.random_tree(3, "fixed", n=6)
    with_rotors = geared(robot)
    s, diagonal = State(robot), np.concatenate(with_rotors.tree.armature[1:])
    plain = ladder.Plain(with_rotors)
    assert relative(plain.crba(s.q), ladder.Plain(robot).crba(s.q) + np.diag(diagonal)) < 1e-14
    tau = plain.rnea(s.q, s.v, s.a)
    assert relative(tau, ladder.Plain(robot).rnea(s.q, s.v, s.a) + diagonal * s.a) < 1e-14
    assert relative(tau, plain.rnea_world(s.q, s.v, s.a)) < 1e-11
    assert relative(plain.aba(s.q, s.v, tau), s.a) < 1e-10
    assert relative(plain.columns(s.q), plain.crba(s.q)) < 1e-11
    more = plain.kinetic(s.q, s.v) - ladder.Plain(robot).kinetic(s.q, s.v)
    assert more == pytest.approx(0.5 * diagonal @ s.v**2)


@pytest.mark.parametrize("coupled", [False, True])
def test_external_forces_are_those_of_inverse_dynamics(coupled):
    robot = geared(follower("floating"))
    robot = couple(robot) if coupled else robot
    s, names = State(robot), [robot.joint_names[0], "e"]
    forces = {robot.link_names[-1]: np.array([0.3, -1.0, 2.0, 5.0, -4.0, 3.0])}
    tau, a = rk.hybrid_dynamics(robot, s.q, s.v, s.tau, s.a, names, forces, **PLAIN)
    given = own_places(robot, names)
    assert relative(a[given], s.a[given]) == 0.0
    assert relative(np.delete(tau, given), np.delete(s.tau, given)) == 0.0
    assert relative(rk.rnea(robot, s.q, s.v, a, forces, **PLAIN), tau) < 1e-11
    assert relative(rk.aba(robot, s.q, s.v, tau, forces, **PLAIN), a) < 1e-11
