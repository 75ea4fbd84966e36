"""The parameters of rows: they follow their distributions and do not depend on the chunk."""

from __future__ import annotations

import numpy as np
from sweep_distributions import ALL

from robokit.sweeps.distributions import Grid
from robokit.sweeps.parameters import draw_parameters, grid_size

MANY = 20_000


def test_draws_follow_their_distributions():
    from scipy import stats  # takes half a second, in each process that collects tests

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
