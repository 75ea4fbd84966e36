"""Distributions: their JSON, their bounds, and errors that name the argument."""

from __future__ import annotations

import json

import pytest
from sweep_distributions import ALL

from robokit.errors import ShapeError, WrongType
from robokit.sweeps.distributions import Choice, Grid, Normal, Uniform, distribution, distribution_from_json


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
