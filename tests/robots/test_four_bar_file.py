"""The four-bar linkage closes at q = 0, and its crank turns all the way round."""

from __future__ import annotations

import numpy as np


def origins(file):
    poses = file.poses()
    (loop,) = file.root.findall("loop_joint")
    for role in ("predecessor", "successor"):
        end = loop.find(role)
        R, p = poses[end.get("link")]
        yield p + R @ np.array([float(x) for x in end.find("origin").get("xyz").split()])


def test_the_loop_is_closed_at_zero(four_bar):
    a, b = origins(four_bar)
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_the_crank_can_turn_all_the_way_round(four_bar):
    p = {name: position for name, (_, position) in four_bar.poses().items()}
    top = next(iter(origins(four_bar)))
    corners = [p["crank"], p["coupler"], top, p["rocker"]]
    bars = [np.linalg.norm(b - a) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]
    np.testing.assert_allclose(bars, [0.15, 0.39, 0.325, 0.485])
    assert min(bars) == bars[0]
    assert min(bars) + max(bars) < sum(bars) / 2
