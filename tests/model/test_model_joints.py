"""The joint table: every kind's S against its transform, and its manifold."""

from __future__ import annotations

import numpy as np
import pytest
from dense import joint_pose, joint_subspace, plane
from for_each import for_each
from ladder import ALL_KINDS
from numpy.testing import assert_allclose
from values import array

from robokit.model.joints import JOINT_TABLE, JointModel, plane_axes
from robokit.spatial import Vector3

MOVABLE = [k for k in ALL_KINDS if k != "fixed"]
AXES = [(0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (2 / 7, -3 / 7, 6 / 7)]
axes = for_each("axis", AXES)
kinds = for_each("kind", MOVABLE)


def model(kind, axis) -> JointModel:
    return JointModel(JOINT_TABLE[kind], Vector3(*axis), 0.3 if kind == "helical" else 0.0)


def state(joint: JointModel, seed: int = 3, spread: float = 0.8):
    rng = np.random.default_rng(seed)
    q = joint.random(rng, [-spread] * joint.kind.nq, [spread] * joint.kind.nq)
    return q, rng.uniform(-spread, spread, joint.kind.nv).tolist()


def pose(joint: JointModel, q) -> np.ndarray:
    """Pose of the moved body from X_J = (E, r): R = E^T, p = r."""
    X, T = joint.XJ(q), np.eye(4)
    T[:3, :3], T[:3, 3] = array(X.E).T, array(X.r)
    return T


def test_the_table_has_every_joint_of_the_sources():
    assert set(JOINT_TABLE) == set(ALL_KINDS)
    sizes = {k: (row.nq, row.nv) for k, row in JOINT_TABLE.items()}
    assert sizes == {
        "revolute": (1, 1),
        "continuous": (1, 1),
        "prismatic": (1, 1),
        "helical": (1, 1),
        "cylindrical": (2, 2),
        "planar": (3, 3),
        "spherical": (4, 3),
        "floating": (7, 6),
        "fixed": (0, 0),
    }


@axes
@kinds
def test_transform_against_the_matrix_exponential(kind, axis):
    joint = model(kind, axis)
    q, _ = state(joint)
    assert_allclose(pose(joint, q), joint_pose(kind, axis, joint.pitch, q), rtol=0, atol=1e-14)


@axes
@kinds
def test_motion_subspace_is_the_rate_of_the_transform(kind, axis):
    # T^-1 dT/dt is the body velocity S v, hats and all; T moves along integrate(q, t v).
    joint = model(kind, axis)
    q, v = state(joint)
    h = 1e-5

    def T(t):
        return pose(joint, joint.integrate(q, [t * x for x in v]))

    rate = np.linalg.inv(T(0.0)) @ (8 * (T(h) - T(-h)) - (T(2 * h) - T(-2 * h))) / (12 * h)
    S_v = array(joint.S * v)
    assert_allclose([rate[2, 1], rate[0, 2], rate[1, 0]], S_v[:3], atol=1e-10)
    assert_allclose(rate[:3, 3], S_v[3:], atol=1e-10)
    assert_allclose(rate[:3, :3] + rate[:3, :3].T, np.zeros((3, 3)), atol=1e-10)


@axes
@kinds
def test_motion_subspace_against_the_book(kind, axis):
    joint = model(kind, axis)
    assert_allclose(
        np.array([array(c) for c in joint.S.columns]).T, joint_subspace(kind, axis, joint.pitch), atol=0
    )


@axes
@kinds
def test_difference_inverts_integrate(kind, axis):
    joint = model(kind, axis)
    for seed in range(5):
        q, v = state(joint, seed, spread=1.7)
        assert_allclose(joint.difference(q, joint.integrate(q, v)), v, rtol=0, atol=1e-13)


@axes
@kinds
def test_integrate_inverts_difference(kind, axis):
    joint = model(kind, axis)
    for seed in range(5):
        (q0, _), (q1, _) = state(joint, seed), state(joint, seed + 100)
        again = joint.integrate(q0, joint.difference(q0, q1))
        assert_allclose(pose(joint, again), pose(joint, q1), rtol=0, atol=1e-13)


@axes
@kinds
def test_integrate_is_a_one_parameter_group(kind, axis):
    # Half the way twice is the whole way; a constant body velocity stays one.
    joint = model(kind, axis)
    q, v = state(joint)
    half = [0.5 * x for x in v]
    twice = joint.integrate(joint.integrate(q, half), half)
    assert_allclose(twice, joint.integrate(q, v), rtol=0, atol=1e-14)


@axes
@kinds
def test_neutral_is_the_undisplaced_joint(kind, axis):
    joint = model(kind, axis)
    assert_allclose(pose(joint, joint.neutral()), np.eye(4), atol=0)


@axes
def test_helical_joint_advances_by_its_pitch(axis):
    joint = model("helical", axis)
    assert_allclose(array(joint.XJ([2.0]).r), 0.6 * np.array(axis), rtol=1e-15)


@axes
def test_planar_axes_are_right_handed_and_documented(axis):
    t1, t2 = (array(t) for t in plane_axes(Vector3(*axis)))
    assert_allclose(np.cross(t1, t2), axis, atol=1e-15)
    assert_allclose(np.array([t1, t2]), np.array(plane(np.array(axis))), atol=1e-15)
    assert plane_axes(Vector3(0.0, 0.0, 1.0))[0].x == 1.0


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_quaternions_stay_unit_over_many_steps(kind):
    joint = model(kind, AXES[0])
    q, v = state(joint)
    for _ in range(2000):
        q = joint.integrate(q, [0.05 * x for x in v])
    assert np.linalg.norm(q[:4]) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_difference_takes_the_short_way_and_half_turns(kind):
    joint = model(kind, AXES[0])
    q0 = joint.neutral()
    q1 = list(q0)
    q1[:4] = [-np.cos(0.05), 0.0, 0.0, -np.sin(0.05)]
    assert_allclose(joint.difference(q0, q1)[:3], [0, 0, 0.1], atol=1e-15)
    q1[:4] = [0.0, 0.0, 1.0, 0.0]
    assert_allclose(joint.difference(q0, q1)[:3], [0, np.pi, 0], atol=1e-15)


@kinds
def test_random_configurations_are_spread_and_valid(kind):
    joint = model(kind, AXES[2])
    rng = np.random.default_rng(0)
    k = joint.kind
    samples = np.array([joint.random(rng, [-0.5] * k.nq, [2.0] * k.nq) for _ in range(300)])
    if k.quaternion is not None:
        quats = samples[:, :4]
        assert_allclose(np.linalg.norm(quats, axis=1), 1.0, rtol=1e-14)
        assert np.abs(quats.mean(axis=0)).max() < 0.12  # uniform on the sphere: no preferred side
        samples = samples[:, 4:]
    if samples.size:
        assert samples.min() >= -0.5 and samples.max() <= 2.0
        assert samples.min() < -0.3 and samples.max() > 1.8


@axes
@kinds
def test_near_is_the_motion_up_to_the_second_order(kind, axis):
    joint = model(kind, axis)
    q, v = state(joint)

    def apart(h):
        moved = [np.array(f(q, [h * x for x in v])) for f in (joint.near, joint.integrate)]
        return np.abs(moved[0] - moved[1]).max()

    # Of third order: a tenth of the step, a thousandth of the difference.
    assert apart(1e-2) < 2e-6
    assert apart(1e-3) < 2e-9


@axes
@kinds
def test_the_velocity_of_a_rate_is_the_one_that_gives_it(kind, axis):
    joint = model(kind, axis)
    q, v = state(joint)
    h = 1e-30
    rate = [x.imag / h for x in joint.near(q, [1j * h * x for x in v])]
    assert_allclose(joint.kind.velocity(q, rate, joint.axis), v, rtol=0, atol=1e-14)
