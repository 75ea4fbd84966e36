"""A robot and a motion in a notebook cell: a small still, and a button that opens the page."""

from __future__ import annotations

import base64
import html
import io
import re
import urllib.error
import urllib.request

import numpy as np
import pytest
import waiting
from PIL import Image
from viewer_cases import EVIL, made_up_motion, pendulum

import robokit as rk
from robokit.errors import MissingDependency, RobokitError, WrongType
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape, Sphere
from robokit.viewer import embed, notebook
from robokit.viewer.notebook import MOST_PAGES, PAGES, SIZE, CellPages, still
from robokit.viewer.page import page_html

MOST = 100_000  # bytes of a cell


@pytest.fixture(autouse=True, scope="module")
def closed_afterwards():
    yield
    PAGES.close()


def _address(cell):
    (found,) = set(re.findall(r'href="([^"]*)"', cell))
    return html.unescape(found)


def _get(address, **headers):
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers=headers), timeout=waiting.PATIENCE
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read().decode()


def test_cells_are_small(humanoid, fall):
    for source in (humanoid, fall):
        cell = source._repr_html_()
        assert len(cell) < MOST and html.escape(repr(source), quote=True) in cell


def test_the_button_opens_the_whole_page():
    for source in (pendulum(), made_up_motion(pendulum(), duration=0.1)):
        status, page = _get(_address(source._repr_html_()))
        assert status == 200 and page == page_html(source)


def test_nothing_leaks_out_of_names():
    cell = pendulum(name=EVIL)._repr_html_()
    outside = re.sub(r'src="data:image/png;base64,[A-Za-z0-9+/=]*"', "", cell)
    assert "<script" not in cell and cell.count("<img") == 1 and EVIL not in outside
    assert set(re.findall(r"<(\w+)", cell)) == {"figure", "a", "img", "figcaption", "span", "br", "small"}
    assert html.escape(repr(pendulum(name=EVIL)), quote=True) in cell


def test_what_cannot_be_drawn_is_text_with_the_reason(monkeypatch):
    motion = made_up_motion(pendulum("<b>"), duration=0.1)
    motion.robot = None
    assert "<img" not in motion._repr_html_() and "needs the robot" in motion._repr_html_()

    def missing():
        raise MissingDependency("the viewer needs the meshcat package: pip install meshcat")

    monkeypatch.setattr(notebook, "meshcat_page", missing)
    cell = notebook.notebook_html(pendulum("<b>"))
    assert "&lt;Robot &#x27;&lt;b&gt;&#x27;" in cell and "pip install meshcat" in cell and "<b>" not in cell
    assert "<img" in cell and "href" not in cell


def test_pages_are_for_this_machine_and_for_who_knows_the_address():
    pages = CellPages()
    address = pages.add(lambda: "the page")
    port = address.split(":")[2].split("/")[0]
    assert _get(address) == (200, "the page")
    assert _get(address.replace("127.0.0.1", "localhost")) == (200, "the page")
    assert _get(address, Host=f"evil.example:{port}")[0] == 403
    status, text = _get(address[:-8] + "a.html")
    assert status == 404 and "run the cell again" in text
    assert address != pages.add(lambda: "the page") and len(address.split("/")[3]) > 20
    pages.close()
    with pytest.raises(urllib.error.URLError):
        _get(address)


def test_a_page_that_cannot_be_made_says_why_and_old_ones_are_let_go():
    def broken():
        raise RobokitError("<no> page")

    pages = CellPages()
    first = pages.add(broken)
    status, text = _get(first)
    assert status == 500 and "&lt;no&gt; page" in text
    for _ in range(MOST_PAGES):
        last = pages.add(lambda: "x")
    assert _get(first)[0] == 404 and _get(last)[0] == 200
    pages.close()


def test_the_whole_page_can_be_put_into_the_cell():
    robot = pendulum(name=EVIL)
    cell = embed(robot, height=300)._repr_html_()
    (found,) = re.findall(r'srcdoc="([^"]*)"', cell)
    assert html.unescape(found) == page_html(robot)
    assert "<script" not in cell and "<img" not in cell and cell.count("<iframe") == 1
    assert 'sandbox="allow-scripts allow-downloads"' in cell and "height:300px" in cell
    assert len(repr(embed(robot))) < 60
    with pytest.raises(WrongType, match="source: expected a Trajectory or a Robot"):
        embed("robot")


# ---- the still itself ---------------------------------------------------------------------------------


def _robot(*shapes):
    builder = ModelBuilder("shown")
    builder.link("body", mass=1.0, inertia=np.eye(3), visuals=shapes)
    return builder.build("fixed")


RED, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)


def _reddish(image):
    pixels = np.asarray(image, dtype=float)
    return pixels[..., 0] - pixels[..., 2] > 80, pixels[..., 2] - pixels[..., 0] > 80


def test_what_is_in_front_hides_what_is_behind(monkeypatch):
    away = np.array([np.cos(-0.5), np.sin(-0.5), 0.0])
    monkeypatch.setattr(notebook, "AZIMUTHS", (-0.5, -0.5))
    monkeypatch.setattr(notebook, "ELEVATION", 0.0)
    seen = []
    for way in (-0.8, 0.8):
        ball = Shape(Sphere(0.2), Placement(position=way * away), rgba=BLUE)
        seen.append(_reddish(still(_robot(Shape(Sphere(0.5), rgba=RED), ball))))
    (whole, hidden), (ring, before) = seen
    assert hidden.sum() == 0 and before.sum() > 500
    assert before.sum() < ring.sum() < whole.sum()


@pytest.mark.parametrize(
    ("geometry", "ratio"),
    [(Sphere(0.5), np.pi / 4), (Cylinder(0.25, 1.0), None), (Box((0.5, 0.5, 1.0)), None)],
    ids=["sphere", "cylinder", "box"],
)
def test_outlines_are_those_of_the_shapes(geometry, ratio):
    red, _ = _reddish(still(_robot(Shape(geometry, rgba=RED))))
    rows, columns = np.nonzero(red)
    high, wide = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert 0.7 * SIZE[1] < high < SIZE[1] and columns.min() > 0 and columns.max() < SIZE[0] - 1
    if ratio is None:
        assert wide < 0.9 * high
    else:
        assert wide == pytest.approx(high, rel=0.03) and red.sum() == pytest.approx(
            ratio * wide * high, rel=0.03
        )


def test_a_motion_shows_its_start_faint_and_its_end_solid():
    robot = _robot(Shape(Box((0.1, 0.1, 0.1)), rgba=RED))
    floating = ModelBuilder("flies")
    floating.link("body", mass=1.0, inertia=np.eye(3), visuals=(Shape(Box((0.4, 0.4, 0.4)), rgba=RED),))
    body = floating.build("floating")
    v = np.zeros(6)
    v[3] = 4.0
    run = rk.simulate(body, body.neutral(), v, duration=1.0, gravity=(0, 0, 0))
    pixels = np.asarray(still(run), dtype=float)
    strength = (pixels[..., 0] - pixels[..., 2]).max(axis=0)
    columns = np.flatnonzero(strength > 20)
    first, last = columns[: len(columns) // 4], columns[-len(columns) // 4 :]
    assert strength[first].max() < 0.5 * strength[last].max()
    assert robot.nbodies == 0


def test_a_still_is_a_png_of_its_size():
    cell = pendulum()._repr_html_()
    (data,) = re.findall(r"base64,([A-Za-z0-9+/=]*)", cell)
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.format == "PNG" and image.size == SIZE


@pytest.mark.browser
def test_the_button_opens_the_page_in_a_browser(chromium, shapes, tmp_path):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.3)
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>before</title>{motion._repr_html_()}", encoding="utf-8")
    context = chromium.new_context(viewport={"width": 1000, "height": 700}, reduced_motion="reduce")
    context.set_default_timeout(1e3 * waiting.PATIENCE)
    opened = context.new_page()
    opened.goto(file.as_uri())
    picture = opened.get_by_role("img")
    assert picture.evaluate("(image) => image.complete && image.naturalWidth") == SIZE[0]
    with context.expect_page() as made:
        opened.get_by_role("button", name="Open").click()
    page, errors = made.value, []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.get_by_role("button", name="To the start").wait_for()
    page.evaluate("robokit.timeline.seek(0.2)")
    assert page.locator("#clock").inner_text().startswith("0.200")
    context.close()
    assert errors == []


@pytest.mark.browser
def test_an_embedded_page_lives_in_the_cell(chromium, shapes, tmp_path):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.3)
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>before</title>{embed(motion).html}", encoding="utf-8")
    opened = chromium.new_page(viewport={"width": 1000, "height": 700}, reduced_motion="reduce")
    opened.set_default_timeout(1e3 * waiting.PATIENCE)
    errors = []
    opened.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda e: errors.append(str(e)))
    opened.goto(file.as_uri())
    cell = opened.frame_locator("iframe")
    cell.get_by_role("button", name="To the start").wait_for()
    frame = opened.frames[1]
    frame.evaluate("robokit.timeline.seek(0.2)")
    assert cell.locator("#clock").inner_text().startswith("0.200")
    cell.get_by_role("tab", name="Joints").click()
    cell.get_by_role("button", name="Export").click()
    with opened.expect_download() as download:
        cell.get_by_role("menuitem", name="States").click()
    assert download.value.suggested_filename == "pendulum_states.csv"
    opened.close()
    assert errors == []
