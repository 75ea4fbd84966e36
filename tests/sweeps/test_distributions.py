"""Distributions: their JSON, their bounds, and errors that name the argument."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import special
from sweep_distributions import ALL

from robokit.errors import ShapeError, WrongType
from robokit.sweeps.distributions import (
    Choice,
    Grid,
    Normal,
    Uniform,
    distribution,
    distribution_from_json,
    logarithm,
    normal_quantile,
    philox,
    sobol_points,
    uniforms,
)


@pytest.mark.parametrize("given", ALL, ids=lambda x: f"{x.kind}")
def test_a_record_makes_the_same_distribution(given):
    again = distribution_from_json(json.loads(json.dumps(given.record())))
    assert again == given


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Uniform(2.0, 1.0), "low <= high"),
        (lambda: Uniform(0.0, float("inf")), "high"),
        (lambda: Normal(0.0, -1.0), "deviation"),
        (lambda: Normal(0.0, 1.0, low=50.0), "almost nothing"),
        (lambda: Choice([]), "at least one"),
        (lambda: Choice([1.0, 2.0], weights=[1.0]), "2 numbers"),
        (lambda: Choice([1.0, "a"]), r"\[1\]"),
        (lambda: Grid(0.0, 1.0), "count"),
    ],
)
def test_a_distribution_that_makes_no_sense_is_refused(make, words):
    with pytest.raises(ShapeError, match=words):
        make()


@pytest.mark.parametrize("given", [[1.0, 2.0], None, True, (0.0, 1.0), {}])
def test_what_is_no_distribution_is_refused(given):
    with pytest.raises(WrongType, match="tilt"):
        distribution("tilt", given)


# ---- random streams ------------------------------------------------------------------------------
# Random numbers by row: NumPy's Philox, Sobol points, and the quantile of the normal distribution.


def test_the_words_are_those_of_numpys_philox():
    counters = np.random.default_rng(0).integers(1, 2**63, (5, 4), dtype=np.uint64)
    for counter in counters:
        key = (int(counter[1]), int(counter[2]))
        before = counter.copy()
        before[0] -= np.uint64(1)  # NumPy counts up before it draws
        expected = np.random.Philox(counter=before, key=key).random_raw(4)
        got = philox([np.array([word]) for word in counter], key)
        assert [int(x[0]) for x in got] == expected.tolist()


def test_quantile_and_logarithm_agree_with_scipy():
    p = np.concatenate([uniforms(1, "p", np.arange(5000))[:, 0], 10.0 ** np.linspace(-300, -1, 2000)])
    assert np.allclose(normal_quantile(p), special.ndtri(p), rtol=2e-15, atol=1e-16)
    assert np.allclose(logarithm(p), np.log(p), rtol=5e-16, atol=0.0)


def test_sobol_points_are_more_even_than_random_ones():
    from scipy import stats  # takes half a second, in each process that collects tests

    def unevenness(points):
        return stats.qmc.discrepancy(points)

    names = ["a", "b", "c"]
    random = np.concatenate([uniforms(0, name, np.arange(512)) for name in names], axis=1)
    points = sobol_points(0, names, 0, 512)
    assert unevenness(points) < 0.1 * unevenness(random)
    assert (sobol_points(0, names, 200, 210) == points[200:210]).all()
    # Each half, quarter, ... of a dimension has as many points.
    assert (np.bincount((points[:, 1] * 64).astype(int), minlength=64) == 8).all()
