"""The page of several robots side by side: its numbers are Python's, and it works in a browser."""

from __future__ import annotations

import json
import re

import pytest
from test_viewer_browser import Watch, until
from viewer_cases import EVIL, pendulum

import robokit as rk
from robokit.cli import main
from robokit.errors import WrongType
from robokit.model.tree import ltdl_counts
from robokit.viewer import write_sparsity_page

NAMES = ("arm", "quadruped")


@pytest.fixture(scope="module")
def robots():
    return [rk.load_urdf(rk.find_robot(name), base="floating") for name in NAMES]


@pytest.fixture(scope="module")
def path(robots, tmp_path_factory):
    return write_sparsity_page(robots, tmp_path_factory.mktemp("sparsity") / "robots")


def test_the_page_holds_the_robots_and_no_scene(path, robots):
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="robokit-data">(.*?)</script>', text, re.S)[1])
    assert path.suffix == ".html" and len(text) < 150_000 and "WebGLRenderer" not in text
    for found, robot in zip(data, robots, strict=True):
        assert found["robot"]["name"] == robot.name and found["nodes"] == [] == found["geometries"]
        assert found["structure"]["counts"]["factorise"] == ltdl_counts(robot.dof_parent)["factorise"]
        cost = rk.cost(robot)
        named = [cost[name].mul for name in ("rnea", "crba", "ltdl", "aba")]
        assert [c["mul"] for c in found["structure"]["costs"]] == named


def test_names_never_run(tmp_path):
    robot = pendulum(name=EVIL)
    assert EVIL not in write_sparsity_page([robot], tmp_path / "evil.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("given", [[], "arm.urdf", None, pendulum(), ["arm.urdf"]], ids=repr)
def test_anything_but_a_list_of_robots_is_refused(tmp_path, given):
    with pytest.raises(WrongType):
        write_sparsity_page(given, tmp_path / "x.html")


def test_the_command_writes_one_page_for_several_robots(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["sparsity", *NAMES, "--html", "out", "--no-open"]) == 0
    said = capsys.readouterr().out
    assert "arm, fixed base" in said and "quadruped, fixed base" in said and "out.html (0." in said
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]


@pytest.mark.parametrize("more", [[], ["--html", "x.html", "-o", "x.png"]], ids=["no page", "a picture, too"])
def test_a_picture_shows_one_robot(tmp_path, capsys, monkeypatch, more):
    monkeypatch.chdir(tmp_path)
    assert main(["sparsity", *NAMES, *more]) == 2
    assert "2 were given" in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.browser
def test_the_page_compares_robots(chromium, path, robots):
    watch = Watch(chromium, (1280, 900))
    page = watch.open(path)
    rows = page.locator("#summary tbody tr").all_inner_texts()
    for row, robot in zip(rows, robots, strict=True):
        counts = ltdl_counts(robot.dof_parent)
        assert row.split()[:4] == [robot.name, "floating", str(robot.nbodies), str(robot.nv)]
        assert f"{round(100 * counts['zeros_share'])} %" in row and f"{counts['factorise']} (" in row
    second = page.get_by_role("article", name="quadruped")
    second.locator(".row", has_text="front_left_thigh").click()
    assert page.locator(".row.chosen").count() == 1
    assert "λ = 2" in second.locator(".sets").inner_text()
    robot = robots[1]
    i, j = (robot.joint(f"front_{side}_knee").v_slice.start for side in ("left", "right"))
    page.evaluate(f"robokit.shown[1].matrix.move([{i}, {j}])")
    assert "front_left_shank and front_right_shank part at trunk" in second.locator(".cell").inner_text()
    page.locator("#kinds").get_by_role("button", name="L of Cholesky").click()
    until(page, "robokit.shown.every((one) => one.matrix.kind === 'cholesky')")
    assert "54 entries" in second.locator(".figures").inner_text()
    page.get_by_role("button", name="Light or dark").click()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    watch.judge()
