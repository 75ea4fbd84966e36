"""Two runs in one page: the ghost is the second run, the differences are those of the trajectories."""

from __future__ import annotations

import base64

import numpy as np
import pytest
import waiting
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.cli import main
from robokit.errors import ShapeError, WrongType
from robokit.model import Shape, Sphere
from robokit.viewer import compare
from robokit.viewer.page import ghost_data
from robokit.viewer.payload import trajectory_payload
from robokit.viewer.scene import body_poses


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


@pytest.fixture(scope="module")
def runs():
    robot = pendulum(shapes=(Shape(Sphere(0.1)),))
    first, second = made_up_motion(robot, duration=1.0), made_up_motion(robot, duration=0.8, rate=200.0)
    second.q *= 1.5
    second.contact_force[:, 2] *= 2.0
    return first, second


def test_the_differences_are_those_of_the_runs(runs):
    first, second = runs
    ghost = ghost_data(first, second, ("one", "other"), trajectory_payload(second).frames)
    (pair,) = [curve for curve in ghost.pairs if curve.key == "force"]
    (apart,) = [curve for curve in ghost.differences if curve.key == "com"]
    t = floats(apart.t)
    assert t[-1] == pytest.approx(0.8) and [line.name for line in pair.series] == ["one", "other"]
    for line, run in zip(pair.series, runs, strict=True):
        expected = np.interp(floats(pair.t), run.t, run.contact_force[:, 2])
        assert np.allclose(floats(line.y), expected, rtol=1e-5)
    coms = [
        np.stack([np.interp(t, run.t, x) for x in rk.center_of_mass(run.robot, run.q).T], axis=1)
        for run in runs
    ]
    distance = np.linalg.norm(coms[1] - coms[0], axis=1)
    assert distance.max() > 0.05 and np.allclose(floats(apart.series[0].y), distance, atol=1e-5)
    (force,) = [figure for figure in ghost.figures if figure.label == "largest contact force"]
    assert (force.first, force.second) == tuple(run.contact_force[:, 2].max() for run in runs)


def test_what_cannot_be_compared_is_refused(runs, humanoid, tmp_path):
    first, second = runs
    with pytest.raises(ShapeError, match=r"b: expected a run of the same robot as a, 'pendulum'.*'humanoid'"):
        compare(first, made_up_motion(humanoid, duration=0.1), tmp_path / "x.html")
    with pytest.raises(WrongType, match="b"):
        compare(first, "second", tmp_path / "x.html")
    for labels in (("same", "same"), "ab", ("one",), ("one", 2)):
        with pytest.raises(ShapeError, match="labels: expected two different texts"):
            compare(first, second, tmp_path / "x.html", labels)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("fricton=1", "no option 'fricton'; did you mean friction?"),
        ("dt", "expected NAME=VALUE"),
        ("dt=fast", "dt: expected a number, got 'fast'"),
        ("self_collision=2", "self_collision: expected on or off"),
    ],
)
def test_the_command_names_what_it_does_not_know(given, says, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["fall", "--compare", given])
    assert says in capsys.readouterr().err


def test_the_command_compares_two_runs(tmp_path, capsys):
    page = tmp_path / "both.html"
    run = ["simulate", "double_pendulum", "--duration", "0.1", "--no-open", "-o", str(page)]
    assert main([*run, "--compare", "dt=0.0005"]) == 0
    assert "compared      dt = 1 ms beside dt = 0.5 ms" in capsys.readouterr().out
    assert '"labels":["dt = 1 ms","dt = 0.5 ms"]' in page.read_text(encoding="utf-8")
    assert main([*run, "--compare", "friction=1"]) == 2
    assert "there is no ground; add --ground" in capsys.readouterr().err


@pytest.mark.browser
def test_the_ghost_moves_in_step_and_the_tab_reads_both(chromium, runs, tmp_path):
    first, second = runs
    page = chromium.new_page(viewport={"width": 1280, "height": 700}, reduced_motion="reduce")
    page.set_default_timeout(1e3 * waiting.PATIENCE)
    errors = []
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(compare(first, second, tmp_path / "both.html", ("one <b>", "other")).as_uri())
    for time in (0.0, 0.5):  # where it opens, and elsewhere
        if time:
            page.evaluate(f"robokit.timeline.seek({time})")
        seen = page.evaluate("robokit.ghost.bodies.slice(1).map((body) => body.position.toArray())")
        q = np.array([[np.interp(time, second.t, x) for x in second.q.T]])
        assert np.allclose(seen, body_poses(second.robot, q)[0, 1:, :3], atol=2e-3)
    assert page.locator("#runs .run").all_text_contents() == ["one <b>", "other (ghost)"]
    row = page.locator(".compared tr", has_text="largest contact force")
    values = [
        float(text.replace("\u202f", "").replace(" ", "")) for text in row.locator("td").all_inner_texts()[:2]
    ]
    assert values == pytest.approx([run.contact_force[:, 2].max() for run in runs], rel=1e-2)
    page.locator("#panel-compare").get_by_role("button", name="Joint").click()
    shown = page.locator("#panel-compare .legend b").all_inner_texts()
    expected = [np.interp(0.5, run.t, run.q[:, 0]) for run in runs]
    assert [float(text.replace("−", "-")) for text in shown[:2]] == pytest.approx(expected, abs=2e-3)
    page.locator("#switches").get_by_role("button", name="Ghost").click()
    assert page.evaluate("robokit.ghost.group.visible") is False
    page.close()
    assert errors == []
