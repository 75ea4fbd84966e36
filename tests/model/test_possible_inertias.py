"""Which inertias a body can have: all of those are taken, the others are refused, up to the tolerance."""

from __future__ import annotations

import ladder
import numpy as np
import pytest

import robokit as rk

TOLERANCE = 1e-3
"""Share of its moments by which with_inertias lets an inertia miss what a body has."""


def box() -> rk.Robot:
    b = rk.ModelBuilder("one").link("root").link("box", 1.0, inertia=np.eye(3))
    return b.joint("free", "floating", "root", "box").build()


ROBOT = box()


def inertia_of(second: np.ndarray) -> np.ndarray:
    """I = tr(P) 1 - P of the second moments P = integral r r^T dm."""
    return np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second


def turned(rng: np.random.Generator, moments: np.ndarray) -> np.ndarray:
    return np.array([R @ np.diag(d) @ R.T for d, R in ((d, ladder.rotation(rng)) for d in moments)])


def as_row(mass: float, com: np.ndarray, I: np.ndarray) -> np.ndarray:
    """The ten parameters of a body whose inertia about its centre of mass is I."""
    about = I + mass * (com @ com * np.eye(3) - np.outer(com, com))
    xx, xy, xz, yy, yz, zz = about[np.triu_indices(3)]
    return np.array([mass, *(mass * com), xx, xy, yy, xz, yz, zz])


def by_body(mass: float, com: np.ndarray, I: np.ndarray) -> np.ndarray:
    P = np.array(ROBOT.inertial_parameters)
    P[1] = as_row(mass, com, I)
    return P


def is_taken(change) -> bool:
    try:
        ROBOT.with_inertias(change)
    except rk.ModelError as error:
        assert "no body has this inertia" in str(error)
        return False
    return True


def test_inertias_of_point_masses_are_taken():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((4000, 4, 3)) * rng.uniform(0.0, 1.0, (4000, 1, 3)) ** 4
    points[::3, 2:] = 0.0  # in a plane
    points[::5, 1:] = 0.0  # on a line
    points -= points.mean(axis=1, keepdims=True)
    I = inertia_of(np.einsum("bki,bkj->bij", points, points))
    scale = 10.0 ** rng.uniform(-6, 4, 4000)
    I *= scale[:, None, None]
    mass, com = 4.0 * scale, rng.standard_normal((4000, 3)) * 0.1
    taken = ROBOT.with_inertias({"box": (mass, com, I)})
    assert taken.samples == 4000
    assert ROBOT.with_inertias(taken.inertial_parameters).samples == 4000
    assert is_taken({"box": (0.0, np.zeros(3), np.zeros((3, 3)))})


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-80, 1e80, 1e160, 1e300])
def test_no_size_of_body_is_out_of_range(size):
    com = np.array([0.1, 0.2, 0.3])
    for mass in (size, size**0.5):
        for moments, taken in (((1.0, 2.0, 2.5), True), ((1.0, 1.0, 2.1), False)):
            assert is_taken({"box": (mass, com, size * np.diag(moments))}) is taken
    assert is_taken(by_body(size, com, size * np.diag((1.0, 2.0, 2.5))))


@pytest.mark.parametrize("negative", [1, 2, 3])
def test_second_moments_with_a_negative_direction_are_refused(negative):
    rng = np.random.default_rng(negative)
    moments = rng.uniform(0.02, 1.0, (500, 3))
    moments[:, :negative] *= -1.0
    for I in inertia_of(turned(rng, moments)) * 10.0 ** rng.uniform(-3, 3, (500, 1, 1)):
        # A miss that the tolerance does not explain, in every axes.
        P = 0.5 * np.trace(I) * np.eye(3) - I
        assert np.linalg.eigvalsh(P)[0] < -2.0 * TOLERANCE * abs(np.trace(P))
        com = rng.standard_normal(3)
        assert not is_taken({"box": (1.0, com, I)}), I
        assert not is_taken(by_body(1.0, com, I)), I


def test_one_impossible_inertia_among_many_is_named():
    rng = np.random.default_rng(4)
    I = inertia_of(turned(rng, rng.uniform(0.1, 1.0, (300, 3))))
    for k in (0, 7, 299):
        given = I.copy()
        given[k] = inertia_of(turned(rng, np.array([[-0.2, -0.3, 1.0]])))[0]
        with pytest.raises(rk.ModelError, match=f"'box', sample {k}: no body"):
            ROBOT.with_inertias({"box": (1.0, None, given)})


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("size", [1e-7, 1.0, 1e7])
@pytest.mark.parametrize("oblique", [False, True])
def test_the_triangle_inequality_may_be_missed_by_the_tolerance(axis, size, oblique):
    """P with one negative entry: it may be as far below zero as the tolerance times the trace of P."""
    R = ladder.rotation(np.random.default_rng(axis)) if oblique else np.eye(3)
    for share, taken in ((0.0, True), (0.97, True), (1.03, False)):
        second = np.array([0.5, 0.5, 0.5])
        second[axis] = -share * TOLERANCE / (1.0 + share * TOLERANCE)  # of a trace of 1 with it
        I = size * R @ inertia_of(np.diag(second)) @ R.T
        com = np.array([0.01, 0.02, 0.03]) * size**0.5
        assert is_taken({"box": (1.0, com, I)}) is taken
        assert is_taken(by_body(1.0, com, I)) is taken


def test_the_triangle_in_principal_moments():
    """1, 1 and 2 + 4e-3: the largest exceeds the others' sum by the tolerance of all of them."""
    for largest, taken in ((2.0, True), (2.0039, True), (2.0041, False), (2.01, False), (2.1, False)):
        for moments in ((1, 1, largest), (1, largest, 1), (largest, 1, 1)):
            assert is_taken({"box": (1.0, (0, 0, 0), np.diag(moments))}) is taken, moments


def test_a_negative_moment_may_be_as_small_as_the_tolerance():
    for smallest, taken in ((-1.9e-3, True), (-2.1e-3, False)):
        assert is_taken({"box": (1.0, (0, 0, 0), np.diag([1.0, 1.0, smallest]))}) is taken
    for moment in (-1.0, -1e-9):
        assert not is_taken({"box": (1.0, (0, 0, 0), moment * np.eye(3))})


def test_an_inertia_that_is_not_symmetric_is_refused_beyond_rounding():
    for off, taken in ((5e-10, True), (2e-9, False)):
        I = np.eye(3) + 0.1 * (np.ones((3, 3)) - np.eye(3))
        I[0, 1] *= 1.0 + off
        for call in (
            lambda I=I: ROBOT.with_inertias({"box": (1.0, None, I)}),
            lambda I=I: rk.ModelBuilder("m").link("a", 1.0, inertia=I),
        ):
            if taken:
                call()
            else:
                with pytest.raises(rk.ModelError, match="not symmetric"):
                    call()
