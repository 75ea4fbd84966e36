"""Thinned curves keep their peaks, however long the run and however few its records."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robokit as rk
from robokit.model import Box, Shape
from robokit.viewer import page_html
from robokit.viewer.motion_data import kept, peaks_between, without_repeats


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 300), st.integers(0, 2**31), st.booleans())
def test_a_thinned_curve_keeps_the_extremes_of_every_line(length, buckets, seed, broken):
    rng = np.random.default_rng(seed)
    lines = [np.cumsum(rng.normal(size=length)), rng.normal(size=length) ** 9]
    if broken:
        lines[0][rng.integers(length)] = np.nan
        lines[1][rng.integers(length)] = np.inf
    always = rng.integers(0, length, size=5)
    keep = kept(lines, always, buckets)
    assert np.all(np.diff(keep) > 0) and {0, length - 1, *always} <= set(keep)
    assert len(keep) <= 4 * buckets + 7
    for y in lines:
        sound = y[np.isfinite(y)]
        if len(sound):
            at = y[keep][np.isfinite(y[keep])]
            assert at.min() == sound.min() and at.max() == sound.max()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 2000), st.integers(2, 200), st.integers(0, 2**31))
def test_frames_and_the_peaks_between_them_hold_the_extremes(length, frames, seed):
    rng = np.random.default_rng(seed)
    t = 0.001 * np.arange(length)
    y = np.stack([np.cumsum(rng.normal(size=length)), rng.normal(size=length) ** 9, np.zeros(length)], axis=1)
    chosen = np.unique(np.linspace(0, length - 1, min(frames, length)).round().astype(int))
    for column, (at, values) in zip(y.T, peaks_between(t, y, t[chosen]), strict=True):
        assert np.all(np.diff(at) > 0) or len(at) < 2 or np.all(np.diff(at) >= 0)
        np.testing.assert_array_equal(values, column[np.round(at / 0.001).astype(int)])
        both = np.concatenate([column[chosen], values])
        assert both.min() == column.min() and both.max() == column.max()


def test_a_line_without_repeats_is_the_same_line():
    t, y = np.arange(9.0), np.array([0.0, 0, 0, 0, 5, 0, 0, 0, 0])
    short_t, short_y = without_repeats(t, y)
    assert list(short_t) == [0, 3, 4, 5, 8]
    np.testing.assert_array_equal(np.interp(t, short_t, short_y), y)


def box_with_flap() -> rk.Robot:
    inertia = np.diag([0.01, 0.02, 0.03])
    builder = rk.ModelBuilder("box").link(
        "box", 2.0, inertia=inertia, collisions=(Shape(Box((0.2, 0.3, 0.4))),)
    )
    builder.link("flap", 0.5, (0.0, 0.0, 0.1), 0.1 * inertia)
    builder.joint("hinge", "revolute", "box", "flap", axis=(0, 1, 0), damping=0.01)
    return builder.build("floating")


@pytest.fixture(scope="module")
def steps():
    """Every step of the fall's first second, and its start."""
    robot = box_with_flap()
    q = robot.configuration((0.0, 0.0, 0.5), (0.9659258262890683, 0.2588190451025207, 0.0, 0.0))
    v = np.array([0.7, -0.4, 0.5, 0.6, 0.3, -0.5, 1.0])
    return rk.simulate(robot, q, v, duration=1.0, dt=1e-3, ground=True, record_every=1), q, v


@pytest.mark.parametrize(("duration", "every"), [(1.0, 1), (1.0, 50), (4.0, None), (12.0, 20)])
def test_a_page_shows_the_peak_that_the_steps_had(steps, duration, every):
    whole, q, v = steps
    run = rk.simulate(whole.robot, q, v, duration=duration, dt=1e-3, ground=True, record_every=every)
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(run), re.S).group(1))
    (force,) = (curve for curve in data["curves"] if curve["key"] == "force")
    lines = {line["name"]: numbers(line["y"]) for line in force["series"]}
    peak = np.linalg.norm(whole.contact_force, axis=1)
    assert force["title"] == "Contact force" and force["hold"] == 1e-3
    assert lines["size"].max() == pytest.approx(peak.max(), rel=1e-6)
    assert numbers(force["t"])[lines["size"].argmax()] == pytest.approx(whole.t[peak.argmax()], abs=1e-6)
    for k, name in enumerate("xyz"):
        assert lines[name].max() == pytest.approx(whole.contact_force[:, k].max(), rel=1e-5, abs=1e-6)
    (link,) = data["link_forces"]
    assert (link["link"], numbers(link["y"]).max()) == ("box", pytest.approx(peak.max(), rel=1e-6))
    curves = {curve["key"]: curve for curve in data["curves"]}
    for key, expected in (
        ("energy", {"kinetic": whole.energy.kinetic, "potential": whole.energy.potential}),
        ("linear", dict(zip("xyz", whole.momentum[:, 3:].T, strict=True))),
        ("angular", dict(zip("xyz", whole.momentum[:, :3].T, strict=True))),
    ):
        shown = {line["name"]: numbers(line["y"]) for line in curves[key]["series"]}
        for name, y in expected.items():
            assert shown[name].max() >= y.max() - 1e-5 * np.ptp(y), (key, name)
            assert shown[name].min() <= y.min() + 1e-5 * np.ptp(y), (key, name)
        if key == "energy":
            balance = shown["kinetic"] + shown["potential"] + shown["dissipated"] - shown["total"]
            np.testing.assert_allclose(balance, 0.0, atol=1e-5 * shown["total"].max())
    if duration > 1.0:
        return  # the flap turns on
    frames = data["frames"]
    for letter, at, y in (("v", 6, whole.v[:, 6]), ("q", 7, whole.q[:, 7]), ("q", 6, whole.q[:, 6])):
        hinge = numbers(frames[letter]).reshape(frames["count"], -1)[:, at]
        more = [numbers(p["y"]) for p in frames["peaks"] if (p["line"], p["index"]) == (letter, at)]
        seen = np.concatenate([hinge, *more])
        assert seen.max() == pytest.approx(y.max(), rel=1e-5)
        assert seen.min() == pytest.approx(y.min(), rel=1e-5)


def test_the_curve_passes_through_the_force_of_every_frame(steps):
    run, *_ = steps
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(run), re.S).group(1))
    (force,) = (curve for curve in data["curves"] if curve["key"] == "force")
    frames = data["frames"]
    t, at = numbers(force["t"]), numbers(frames["t"])
    assert set(at) <= set(t)
    for line, expected in zip(force["series"][1:], numbers(frames["force"]).reshape(-1, 3).T, strict=True):
        np.testing.assert_array_equal(numbers(line["y"])[np.searchsorted(t, at)], expected)


def test_a_curve_that_knows_only_its_records_says_so(steps):
    run, q, v = steps
    few = rk.simulate(run.robot, q, v, duration=0.3, dt=1e-3, ground=True, record_every=5)
    few.inputs = None
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(few), re.S).group(1))
    (force,) = (curve for curve in data["curves"] if curve["key"] == "force")
    assert force["title"] == "Contact force, only of the steps that were recorded"


def test_power_is_what_the_ledger_lost_and_gained(steps):
    run, *_ = steps
    total = sum(run.losses.values())
    np.testing.assert_allclose(total, run.energy.dissipated, atol=1e-12)
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(run), re.S).group(1))
    (power,) = (curve for curve in data["curves"] if curve["key"] == "power")
    assert [line["name"] for line in power["series"]] == ["ground", "joints"]
    ground = numbers(power["series"][0]["y"])
    lost = np.diff(run.losses["contact"]) / 1e-3
    assert -ground.min() == pytest.approx(lost.max(), rel=1e-5)
