"""Access: contrast in both themes, the system's theme until one is chosen, nothing serious that axe finds."""

from __future__ import annotations

import itertools
import re

import pytest
from test_viewer_browser import Watch, drawn, until

from robokit.viewer import write_page
from robokit.viewer.page import ASSETS

THEME = (ASSETS / "styles" / "theme.css").read_text(encoding="utf-8")
TEXT = ("text", "soft", "faint", "accent", "chosen", "bad", "doubtful", "remark")
BEHIND = ("surface", "raised", "accent-soft")


def luminance(colour):
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [":root", '[data-theme="dark"]'], ids=["light", "dark"])
def test_every_colour_of_text_can_be_read_on_every_background(theme):
    block = THEME[THEME.index(theme) :].split("}")[0]
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", block))
    for text, behind in itertools.product(TEXT, BEHIND):
        assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)


@pytest.fixture(scope="module")
def page(chromium, fall, tmp_path_factory):
    watch = Watch(chromium)
    yield watch.open(write_page(fall, tmp_path_factory.mktemp("access") / "fall.html"))
    watch.judge()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, theme):
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    page.emulate_media(color_scheme=theme)
    page.evaluate(axe.axe_script)
    page.evaluate("robokit.selection.select(5)")
    for key in page.evaluate("[...robokit.panels.known.keys()]"):
        page.evaluate(f"robokit.openTab('{key}')")
        drawn(page)
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
        serious = [
            (problem["id"], node["target"])
            for problem in found
            if problem["impact"] in ("serious", "critical")
            for node in problem["nodes"]
        ]
        assert serious == [], (theme, key)


def theme_of(page):
    return page.evaluate("document.documentElement.dataset.theme")


@pytest.mark.browser
def test_the_theme_is_the_systems_until_one_is_chosen_which_is_remembered(page):
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        until(page, f"document.documentElement.dataset.theme === '{scheme}'")
    page.get_by_role("button", name="Light or dark").click()
    assert theme_of(page) == "dark"
    page.emulate_media(color_scheme="light")
    assert theme_of(page) == "dark"
    page.evaluate("document.documentElement.dataset.theme = ''")
    assert page.evaluate("localStorage.getItem('robokit-theme')") == "dark"
    page.evaluate("localStorage.removeItem('robokit-theme')")


@pytest.mark.browser
def test_nothing_moves_by_itself_for_readers_who_want_less_motion(page):
    assert page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")
    moving = """() => [...document.querySelectorAll('*')].filter((e) => {
      const style = getComputedStyle(e);
      return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none';
    }).length"""
    assert page.evaluate(moving) == 0
    assert not page.evaluate("robokit.timeline.playing")
