"""A robot and a motion in a notebook cell: the whole page, in a frame that cannot reach out."""

from __future__ import annotations

import html
import re

import pytest
from viewer_cases import EVIL, made_up_motion, pendulum

from robokit.errors import MissingDependency
from robokit.viewer import page
from robokit.viewer.notebook import notebook_html
from robokit.viewer.page import page_html


def test_the_cell_holds_the_whole_page_and_nothing_of_it_leaks():
    robot = pendulum(name=EVIL)
    cell = robot._repr_html_()
    (found,) = re.findall(r'srcdoc="([^"]*)"', cell)
    assert html.unescape(found) == page_html(robot)
    assert "<script" not in cell and "<img" not in cell and cell.count("<iframe") == 1
    assert 'sandbox="allow-scripts allow-downloads"' in cell


def test_what_cannot_be_drawn_is_text_with_the_reason(monkeypatch):
    motion = made_up_motion(pendulum("<b>"), duration=0.1)
    motion.robot = None
    assert "<iframe" not in motion._repr_html_() and "needs the robot" in motion._repr_html_()

    def missing():
        raise MissingDependency("the viewer needs the meshcat package: pip install meshcat")

    monkeypatch.setattr(page, "meshcat_page", missing)
    cell = notebook_html(pendulum("<b>"))
    assert "&lt;Robot &#x27;&lt;b&gt;&#x27;" in cell and "pip install meshcat" in cell and "<b>" not in cell


@pytest.mark.browser
def test_the_page_lives_in_the_cell(chromium, shapes, tmp_path):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.3)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><title>before</title>{motion._repr_html_()}", encoding="utf-8")
    opened = chromium.new_page(viewport={"width": 1000, "height": 700})
    errors = []
    opened.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda e: errors.append(str(e)))
    opened.goto(notebook.as_uri())
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
