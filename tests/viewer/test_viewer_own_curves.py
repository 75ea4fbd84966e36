"""Curves of the caller's own: in the page as they were given, refused by name where they do not fit."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from test_viewer_browser import Watch, drawn
from test_viewer_curves import numbers
from viewer_cases import EVIL, made_up_motion, pendulum

import robokit as rk
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.model import Box, Shape
from robokit.viewer import Curve, page_html, write_page


@pytest.fixture(scope="module")
def swing():
    return made_up_motion(pendulum(shapes=(Shape(Box((0.1, 0.1, 0.5))),)), duration=1.0, rate=100.0)


def own(run, curves):
    """The plots of the caller in the page's data: {name: (unit, t, {label: y})}."""
    html = page_html(run, walk=False, curves=curves)
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', html, re.S).group(1))
    return {
        curve["title"]: (
            curve["unit"],
            numbers(curve["t"]),
            {line["name"]: numbers(line["y"]) for line in curve["series"]},
        )
        for curve in data["curves"]
        if curve["key"].startswith("own ")
    }


def test_arrays_functions_and_curves_are_there_as_they_were_given(swing):
    robot, t = swing.robot, swing.t
    steps = np.linspace(0.25, 0.75, 7)
    found = own(
        swing,
        {
            "plain": 2.0 * t,
            "two": np.stack([t, -t], axis=1),
            "tip": Curve(lambda t, q, v: rk.forward_kinematics(robot, q)["lower"].position, "m"),
            "log": Curve(steps**2, "N", labels=("sensor",), t=steps),
        },
    )
    assert list(found) == ["plain", "two", "tip", "log"]
    unit, times, lines = found["plain"]
    np.testing.assert_allclose([times, lines["plain"]], [t, 2.0 * t], atol=1e-6)
    assert unit == "" and list(found["two"][2]) == ["x", "y"]
    unit, times, lines = found["tip"]
    place = rk.forward_kinematics(robot, swing.q)["lower"][1]
    assert unit == "m" and list(lines) == ["x", "y", "z"]
    np.testing.assert_allclose(np.stack(list(lines.values()), axis=1), place, atol=1e-6)
    unit, times, lines = found["log"]
    assert unit == "N"
    np.testing.assert_allclose([times, lines["sensor"]], [steps, steps**2], atol=1e-6)


def test_what_is_masked_is_a_gap_also_in_a_thinned_curve():
    run = made_up_motion(pendulum(), duration=4.0, rate=1000.0)
    t = run.t
    known = (t < 1.0) | (t > 1.5)
    found = own(run, {"pressure": Curve(np.ma.masked_invalid(np.where(known, np.sin(9.0 * t), np.nan)))})
    _, times, lines = found["pressure"]
    y = lines["pressure"]
    assert len(times) < len(t) and np.all(np.isfinite(y) == ((times < 1.0) | (times > 1.5)))
    assert abs(times[np.isfinite(y) & (times < 1.2)].max() - 1.0) < 2e-3
    np.testing.assert_allclose(y[np.isfinite(y)], np.sin(9.0 * times[np.isfinite(y)]), atol=1e-5)


BAD = [
    (lambda t: t[:-1], r"curves\['zmp'\]: expected shape \(101,\) or \(101, k\).*got \(100,\).*Curve"),
    (lambda t: np.zeros((101, 2, 2)), r"curves\['zmp'\]: .*\(101, 2, 2\)"),
    (lambda t: np.where(t == 0.5, np.nan, t), r"curves\['zmp'\]: 1 of 101 .*t = 0.5 s; .*masked_invalid"),
    (lambda t: Curve(t, t=t[::-1]), r"curves\['zmp'\]: t: expected finite times that increase.*0.99 after 1"),
    (lambda t: Curve(t, t=t + 9.0), r"curves\['zmp'\]: t: the times 9 to 10 s lie outside of the run"),
    (
        lambda t: Curve(lambda t, q, v: 0.0, t=t),
        r"curves\['zmp'\]: t: a function is evaluated at the recorded",
    ),
    (lambda t: lambda t, q, v: q[: 1 + (t > 0.5)], r"curves\['zmp'\]: .*shape \(1,\) at first and \(2,\)"),
    (lambda t: Curve(t, labels=("a", "b")), r"curves\['zmp'\]: labels: expected 1 different texts"),
]


@pytest.mark.parametrize("make, message", BAD)
def test_the_error_names_the_curve(swing, make, message):
    with pytest.raises(ShapeError, match=message):
        page_html(swing, walk=False, curves={"zmp": make(swing.t)})


def test_other_things_are_no_curves(swing):
    for curves in ([1.0], {3: swing.t}, {"": swing.t}, {"zmp": Curve(swing.t, unit=1.0)}):
        with pytest.raises(WrongType, match="curves"):
            page_html(swing, walk=False, curves=curves)
    with pytest.raises(WrongType, match=r"curves: .*None for a Robot.*give a Trajectory"):
        page_html(swing.robot, curves={"zmp": swing.t})

    def fails(t, q, v):
        return 1.0 / (t - t)

    with pytest.raises(ZeroDivisionError) as caught:
        page_html(swing, walk=False, curves={"zmp": fails})
    assert "curves['zmp']: raised by the function at t = 0 s" in caught.value.__notes__


def test_the_camera_follows_links_only(swing):
    with pytest.raises(UnknownName, match="no link named 'lowr'; did you mean 'lower'"):
        page_html(swing, follow="lowr")
    with pytest.raises(WrongType, match="follow: expected the name of a link"):
        page_html(swing, follow=3)


@pytest.mark.browser
def test_the_page_opens_on_them_and_shows_what_was_given(chromium, swing, tmp_path):
    from test_viewer_plots import LEGEND, value

    y = np.stack([np.sin(swing.t), np.cos(swing.t)], axis=1)
    curves = {EVIL: Curve(y, "m", labels=("forward", EVIL)), "second": swing.t, "third": -swing.t}
    watch = Watch(chromium)
    page = watch.open(write_page(swing, tmp_path / "own.html", walk=False, curves=curves))
    assert page.get_by_role("tab", name="Curves").get_attribute("aria-selected") == "true"
    assert page.evaluate(
        "robokit.curves.panes.map((pane) => pane.select.selectedOptions[0].textContent)"
    ) == [
        EVIL,
        "second",
        "third",
    ]
    page.evaluate("robokit.timeline.seek(0.5)")
    drawn(page)
    shown = page.evaluate(LEGEND, 0)
    assert value(shown["forward"]) == pytest.approx(np.sin(0.5), abs=1e-3)
    assert value(shown[EVIL]) == pytest.approx(np.cos(0.5), abs=1e-3)
    assert page.evaluate("window.pwned") is None
    # Plots are added and taken away; two stay.
    page.get_by_role("button", name="Add a plot").click()
    assert page.locator(".plot").count() == 4
    for _ in range(2):
        page.get_by_role("button", name="Remove this plot").first.click()
    assert page.locator(".plot").count() == 2
    assert page.get_by_role("button", name="Remove this plot").count() == 0
    watch.judge()
