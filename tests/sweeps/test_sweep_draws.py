"""What rows draw: the streams, the distributions, and that a row does not depend on its chunk."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import special, stats

from robokit.errors import ShapeError, WrongType
from robokit.sweeps.distributions import (
    Choice,
    Grid,
    Normal,
    Sobol,
    Uniform,
    distribution,
    distribution_from_json,
)
from robokit.sweeps.parameters import draw_parameters, grid_size
from robokit.sweeps.random_streams import logarithm, normal_quantile, philox, sobol_points, uniforms

MANY = 20_000
ALL = [
    Uniform(-1.0, 3.0),
    Normal(2.0, 0.5),
    Normal(0.0, 1.0, low=-0.5, high=2.0),
    Normal(1.0, 0.0),
    Choice([1.0, 2.0, 5.0], weights=[1, 0, 3]),
    Choice(["a", "b"]),
    Grid(0.0, 1.0, 5),
    Grid(["x", "y"]),
    Sobol(0.1, 0.2),
    distribution("x", 4),
    distribution("x", "word"),
]


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


@pytest.mark.parametrize("given", ALL, ids=lambda x: f"{x.kind}")
def test_a_record_makes_the_same_distribution(given):
    again = distribution_from_json(json.loads(json.dumps(given.record())))
    assert again == given


def test_draws_follow_their_distributions():
    rows = draw_parameters({str(k): x for k, x in enumerate(ALL)}, 3, 0, MANY)
    truncated = stats.truncnorm(-0.5, 2.0)
    for k, law in ((0, stats.uniform(-1.0, 4.0)), (1, stats.norm(2.0, 0.5)), (2, truncated)):
        assert stats.kstest(rows[str(k)], law.cdf).pvalue > 1e-3
    assert (rows["3"] == 1.0).all()
    assert set(rows["4"]) == {1.0, 5.0} and abs((rows["4"] == 5.0).mean() - 0.75) < 0.02
    assert abs((rows["5"] == "a").mean() - 0.5) < 0.02
    assert abs(np.corrcoef(rows["0"], rows["1"])[0, 1]) < 0.03
    assert rows["2"].min() >= -0.5 and rows["2"].max() <= 2.0


def test_a_row_is_the_same_in_every_chunk_and_beside_other_parameters():
    parameters = {str(k): x for k, x in enumerate(ALL)}
    whole = draw_parameters(parameters, 7, 0, 300)
    for first, last in ((0, 1), (17, 18), (100, 257), (299, 300)):
        part = draw_parameters(parameters, 7, first, last)
        assert all((part[name] == whole[name][first:last]).all() for name in parameters)
    alone = draw_parameters({"1": ALL[1]}, 7, 0, 300)
    assert (alone["1"] == whole["1"]).all()
    assert not (draw_parameters({"1": ALL[1]}, 8, 0, 300)["1"] == whole["1"]).any()


def test_grids_make_all_combinations():
    parameters = {"tilt": Grid(0.0, 1.0, 3), "robot": Grid(["a", "b"]), "speed": Grid([5.0, 6.0])}
    assert grid_size(parameters) == 12
    rows = draw_parameters(parameters, 0, 0, 24)
    first = list(zip(*(rows[name][:12].tolist() for name in parameters), strict=True))
    assert len(set(first)) == 12
    assert rows["robot"][:4].tolist() == ["a", "b", "a", "b"]
    assert rows["tilt"][:12].tolist() == [0.0] * 4 + [0.5] * 4 + [1.0] * 4
    assert (rows["tilt"][12:] == rows["tilt"][:12]).all()


def test_sobol_points_are_more_even_than_random_ones():
    def unevenness(points):
        return stats.qmc.discrepancy(points)

    names = ["a", "b", "c"]
    random = np.concatenate([uniforms(0, name, np.arange(512)) for name in names], axis=1)
    points = sobol_points(0, names, 0, 512)
    assert unevenness(points) < 0.1 * unevenness(random)
    assert (sobol_points(0, names, 200, 210) == points[200:210]).all()
    # Each half, quarter, ... of a dimension has as many points.
    assert (np.bincount((points[:, 1] * 64).astype(int), minlength=64) == 8).all()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Uniform(2.0, 1.0), "low <= high"),
        (lambda: Uniform(0.0, float("inf")), "high"),
        (lambda: Normal(0.0, -1.0), "deviation"),
        (lambda: Normal(0.0, 1.0, low=50.0), "next to nothing"),
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
