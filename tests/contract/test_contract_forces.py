"""The two forms of f_ext: {link: wrench in the world} and an array in body coordinates."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from dense import Dense
from ladder import State, relative

import robokit as rk


@pytest.fixture(scope="module")
def case():
    robot = ladder.random_tree(1)
    s = State(robot)
    return robot, s, Dense(robot, s.q, s.v)


def in_bodies(robot, dense, wrenches):
    """World wrenches by link as rows in body coordinates: the definition, written out."""
    rows = np.zeros((robot.nbodies + 1, 6))
    for link, w in wrenches.items():
        body = robot.link(link).body
        T = dense.T[robot.body_name(body)]
        R, p = T[:3, :3], T[:3, 3]
        rows[body] += np.r_[R.T @ (w[:3] - np.cross(p, w[3:])), R.T @ w[3:]]
    return rows


def moved(robot, count=4):
    rng = np.random.default_rng(5)
    links = [link.name for link in robot.links if link.body > 0]
    return {str(k): rng.standard_normal(6) for k in rng.choice(links, count, replace=False)}


def test_wrenches_in_the_world_do_work_on_the_link_velocities(case):
    # tau(f) = tau(0) - sum of J^T f, moments about the world's origin.
    robot, s, dense = case
    wrenches = moved(robot)
    expected = dense.tau(s.a) - sum(dense.J[link].T @ w for link, w in wrenches.items())
    assert relative(rk.rnea(robot, s.q, s.v, s.a, f_ext=wrenches), expected) < 1e-12


def test_both_forms_agree_in_every_function(case):
    robot, s, dense = case
    wrenches = moved(robot)
    rows = in_bodies(robot, dense, wrenches)
    for call in (
        lambda f: rk.rnea(robot, s.q, s.v, s.a, f_ext=f),
        lambda f: rk.bias_forces(robot, s.q, s.v, f_ext=f),
        lambda f: rk.aba(robot, s.q, s.v, s.tau, f_ext=f),
        lambda f: rk.forward_dynamics(robot, s.q, s.v, s.tau, f_ext=f, method="crba"),
    ):
        assert relative(call(wrenches), call(rows)) < 1e-10
        assert relative(call(rows), call(None)) > 1e-3
        assert relative(call({}), call(None)) < 1e-12


def test_the_frame_matters(case):
    # World wrenches handed over as body coordinates give something else: the forms are not interchangeable.
    robot, s, _ = case
    wrenches = moved(robot)
    unchanged = np.zeros((robot.nbodies + 1, 6))
    for link, w in wrenches.items():
        unchanged[robot.link(link).body] += w
    tau = rk.rnea(robot, s.q, s.v, s.a, f_ext=wrenches)
    assert relative(rk.rnea(robot, s.q, s.v, s.a, f_ext=unchanged), tau) > 1e-3


def test_wrenches_on_links_of_one_body_add_up():
    b = ladder.ModelBuilder("r").link("a").link("b", 1.0).link("c", 1.0)
    b.joint("j", "revolute", "a", "b", axis=(0, 1, 0)).joint("f", "fixed", "b", "c")
    robot, w = b.build(), np.arange(6.0)
    one = rk.rnea(robot, [0.3], [0.0], [0.0], f_ext={"b": w})
    assert relative(rk.rnea(robot, [0.3], [0.0], [0.0], f_ext={"b": w / 2, "c": w / 2}), one) < 1e-14


def test_a_wrench_on_the_root_of_a_fixed_robot_does_nothing(case):
    robot, s, dense = case
    assert relative(rk.rnea(robot, s.q, s.v, s.a, f_ext={"link0": np.ones(6)}), dense.tau(s.a)) < 1e-12


def test_batches_of_wrenches(case):
    robot, s, _ = case
    batch = {k: np.stack([w, 2 * w, 0 * w]) for k, w in moved(robot).items()}
    got = rk.rnea(robot, s.q, s.v, s.a, f_ext=batch)
    assert got.shape == (3, robot.nv)
    for k in range(3):
        alone = rk.rnea(robot, s.q, s.v, s.a, f_ext={name: w[k] for name, w in batch.items()})
        assert relative(got[k], alone) < 1e-12


def test_an_upward_push_carries_the_weight():
    robot = ladder.chain(base="floating")
    s = State(robot)
    weight = robot.total_mass * 9.81
    G = rk.gravity_forces(robot, s.q)
    com = rk.center_of_mass(robot, s.q)
    lifted = rk.bias_forces(
        robot, s.q, 0 * s.v, f_ext={"link0": np.r_[np.cross(com, [0, 0, weight]), 0, 0, weight]}
    )
    assert np.abs(G[:6]).max() > 1.0
    assert np.abs(lifted[:6]).max() < 1e-10


@pytest.mark.parametrize(
    ("f_ext", "error", "message"),
    [
        ({"lnk3": np.zeros(6)}, rk.UnknownName, "link3"),
        ({"link3": np.zeros(5)}, rk.ShapeError, "link3"),
        ({"link3": "push"}, rk.ShapeError, "link3"),
        ({"link3": np.full(6, np.nan)}, rk.InvalidValue, r"nan at f_ext\['link3'\]\[0\] and 5 more"),
        (np.zeros(6), rk.ShapeError, "f_ext"),
        (np.zeros((2, 6)), rk.ShapeError, "f_ext"),
        (np.full((14, 6), np.inf), rk.InvalidValue, r"inf at f_ext\[0, 0\] and 83 more"),
    ],
)
def test_refusals(case, f_ext, error, message):
    robot, s, _ = case
    assert robot.nbodies + 1 == 14
    with pytest.raises(error, match=message):
        rk.rnea(robot, s.q, s.v, s.a, f_ext=f_ext)
