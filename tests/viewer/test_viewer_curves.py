"""The plots of a page: each curve, by its name, holds what its name says."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Shape
from robokit.viewer import page_html


def numbers(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@pytest.fixture(scope="module")
def tumble():
    """A box that falls on an edge while it turns and is pushed: no curve is zero, none is another."""
    inertia = np.diag([0.01, 0.02, 0.03])
    shape = Shape(Box((0.2, 0.3, 0.4)))
    builder = rk.ModelBuilder("box").link("box", 2.0, (0.02, 0.01, 0.0), inertia, collisions=(shape,))
    builder.link("flap", 0.5, (0.0, 0.0, 0.1), 0.1 * inertia)
    builder.joint("hinge", "revolute", "box", "flap", axis=(0, 1, 0), damping=0.01)
    robot = builder.build("floating")
    q = robot.configuration((0.0, 0.0, 0.32), (0.9659258262890683, 0.2588190451025207, 0.0, 0.0))
    v = np.array([0.7, -0.4, 0.5, 0.6, 0.3, -0.5, 1.0])
    tau = np.array([0.0] * 6 + [0.05])
    return rk.simulate(robot, q, v, duration=0.4, ground=True, controller=lambda t, q, v: tau, record_every=1)


@pytest.fixture(scope="module")
def data(tumble):
    return json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(tumble), re.S).group(1))


def series(run) -> dict[str, tuple[str, str, dict[str, np.ndarray]]]:
    """Title, unit and lines of each plot, from the robot and its states where they tell."""
    h = rk.centroidal_momentum(run.robot, run.q, run.v)
    xyz = dict(zip("xyz", range(3), strict=True))
    pushed = run.contact_force
    force = {"size": np.linalg.norm(pushed, axis=1)} | {k: pushed[:, i] for k, i in xyz.items()}
    rates = {"work": run.energy.work, "ground": -run.losses["contact"], "joints": -run.losses["friction"]}
    rates = {k: np.diff(y, prepend=y[0]) / run.summary["dt"] for k, y in rates.items()}
    return {
        "energy": (
            "Energy",
            "J",
            {
                "kinetic": rk.kinetic_energy(run.robot, run.q, run.v),
                "potential": rk.potential_energy(run.robot, run.q),
                "dissipated": run.energy.dissipated,
                "work": run.energy.work,
                "total": run.energy.total,
            },
        ),
        "force": ("Contact force", "N", force),
        "linear": ("Linear momentum", "N s", {k: h[:, 3 + i] for k, i in xyz.items()}),
        "angular": ("Angular momentum about the CoM", "N m s", {k: h[:, i] for k, i in xyz.items()}),
        "power": ("Power, mean since the sample before", "W", rates),
        "drift": (
            "Energy balance: total minus its initial value",
            "J",
            {"drift": run.energy.total - run.energy.total[0]},
        ),
    }


def test_every_curve_holds_what_its_name_says(tumble, data):
    expected = series(tumble)
    assert [curve["key"] for curve in data["curves"]] == list(expected)
    for curve in data["curves"]:
        title, unit, lines = expected[curve["key"]]
        assert (curve["title"], curve["unit"]) == (title, unit)
        assert [line["name"] for line in curve["series"]] == list(lines)
        np.testing.assert_allclose(numbers(curve["t"]), tumble.t - tumble.t[0], atol=1e-6)
        for line in curve["series"]:
            y = lines[line["name"]]
            np.testing.assert_allclose(numbers(line["y"]), y, rtol=1e-6, atol=1e-6 * (1e-3 + np.ptp(y)))


def test_no_two_lines_of_this_motion_are_alike(tumble):
    """What the test above needs: another line's numbers would be seen."""
    lines = [y for _, _, each in series(tumble).values() for y in each.values()]
    for k, a in enumerate(lines):
        assert np.ptp(a) > 0.0
        assert all(np.abs(a - b).max() > 1e-3 * np.ptp(a) for b in lines[:k])
    np.testing.assert_allclose(tumble.momentum, rk.centroidal_momentum(tumble.robot, tumble.q, tumble.v))


def test_linear_momentum_is_that_of_the_centre_of_mass(tumble, data):
    """By Newton, not by the function that the ledger uses."""
    (curve,) = (c for c in data["curves"] if c["title"].startswith("Linear"))
    com, mass = rk.center_of_mass(tumble.robot, tumble.q), tumble.robot.total_mass
    for i, line in enumerate(curve["series"]):
        ahead = mass * np.diff(com[:40, i]) / np.diff(tumble.t[:40])
        y = numbers(line["y"])[:40]
        np.testing.assert_allclose(0.5 * (y[1:] + y[:-1]), ahead, atol=2e-2)


def test_frames_hold_what_their_names_say(tumble, data):
    frames = data["frames"]
    t = numbers(frames["t"])
    at = np.searchsorted(tumble.t, t - 1e-6)
    given = {"q": tumble.q, "v": tumble.v, "tau": tumble.tau, "momentum": tumble.momentum}
    given |= {"force": tumble.contact_force, "com": rk.center_of_mass(tumble.robot, tumble.q)}
    for name, x in given.items():
        got = numbers(frames[name]).reshape(len(t), -1)
        np.testing.assert_allclose(got, x[at], rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_thinned_curve_keeps_its_times(tumble):
    run = rk.simulate(tumble.robot, duration=4.0, dt=1e-3, record_every=1)
    page = json.loads(re.search(r'id="robokit-data">(.*?)</script>', page_html(run), re.S).group(1))
    for curve in page["curves"]:
        t = numbers(curve["t"])
        assert 600 < len(t) < len(run.t) and t[-1] == pytest.approx(4.0)
        _, _, lines = series(run)[curve["key"]]
        for line in curve["series"]:
            y = np.interp(t, run.t, lines[line["name"]])
            np.testing.assert_allclose(numbers(line["y"]), y, rtol=1e-4, atol=1e-6)
