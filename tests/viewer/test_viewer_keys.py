"""The keyboard in a browser: the focused control comes first, arrows walk the tabs, "?" lists the keys."""

from __future__ import annotations

import pytest
from test_viewer_browser import Watch

from robokit.viewer import write_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(chromium, fall, tmp_path_factory):
    watch = Watch(chromium)
    opened = watch.open(write_page(fall, tmp_path_factory.mktemp("keys") / "fall.html"))
    opened.evaluate("robokit.timeline.speed = 1e-3")  # so slow that it does not end by itself
    yield opened
    watch.judge()


def test_space_and_enter_press_the_focused_button_and_do_nothing_else(page):
    chip = page.get_by_role("button", name="Frames", exact=True)
    for key in ("Space", "Enter"):
        before = chip.get_attribute("aria-pressed")
        chip.press(key)
        assert chip.get_attribute("aria-pressed") != before
        assert not page.evaluate("robokit.timeline.playing")
    page.locator("#play").press("Space")
    assert page.evaluate("robokit.timeline.playing")
    page.locator("#play").press("Enter")
    assert not page.evaluate("robokit.timeline.playing")


def test_space_plays_where_no_control_has_the_focus(page):
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert page.evaluate("robokit.timeline.playing")
    page.keyboard.press("Space")
    assert not page.evaluate("robokit.timeline.playing")


def test_arrows_walk_the_tabs_and_go_round(page):
    page.evaluate("robokit.timeline.seek(1)")
    page.get_by_role("tab").first.focus()
    tabs = page.get_by_role("tab").all()
    for k in (*range(1, len(tabs)), 0):
        page.keyboard.press("ArrowRight")
        assert [tab.get_attribute("aria-selected") for tab in tabs].index("true") == k
        assert tabs[k].evaluate("(tab) => tab === document.activeElement")
        assert [tab.get_attribute("tabindex") for tab in tabs].count("0") == 1
        panel = page.locator(f"#{tabs[k].get_attribute('aria-controls')}")
        assert panel.get_attribute("role") == "tabpanel" and panel.is_visible()
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert tabs[0].get_attribute("aria-selected") == "true"
    assert page.evaluate("robokit.timeline.time") == 1


def test_a_joint_slider_keeps_its_arrows(page):
    page.get_by_role("tab", name="Joints").click()
    page.get_by_role("slider", name="left_knee").press("ArrowRight")
    assert page.evaluate("robokit.timeline.time") == 1
    page.get_by_role("button", name="Back to the motion").click()


def test_arrows_on_the_scrub_bar_step_by_frames(page):
    page.locator("#scrub").press("ArrowLeft")
    assert page.evaluate("robokit.timeline.time") == pytest.approx(59 / 60, abs=2e-3)


def test_a_question_mark_lists_every_key(page):
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    assert dialog.is_visible()
    assert dialog.locator("dt").count() == page.evaluate("robokit.shortcuts.known.size") >= 12
    assert "Play or pause" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
