"""Layout in a browser: at every size, with every tab, each control can be reached and none covers another.

Nothing here knows which controls and tabs there are: new ones are checked as they come. Screenshots go to the
test's folder.
"""

from __future__ import annotations

import pytest
from test_viewer_browser import LAYOUT, PIXELS, Watch, drawn
from viewer_cases import made_up_motion

from robokit.viewer import write_page

pytestmark = pytest.mark.browser

SIZES = [(390, 844), (844, 390), (800, 600), (1024, 600), (1280, 800), (1920, 1080)]

# Controls that cannot be reached, pairs that lie over one another, and the heights of plots.
REACH = """() => {
  const name = (e) => e.id || e.getAttribute('aria-label') || e.textContent.slice(0, 30) || e.className;
  const controls = [...document.querySelectorAll('button, select, input, [role=tab], [tabindex="0"]')]
    .filter((e) => e.offsetParent !== null && !e.closest('#lane, dialog:not([open]), .mark'));
  // A scrolling box lets what lies below or above it be reached, not what lies beside it.
  const scroller = (e) => {
    for (let b = e.parentElement; b; b = b.parentElement) {
      if (/auto|scroll/.test(getComputedStyle(b).overflowY) && b.scrollHeight > b.clientHeight + 1) return b;
    }
    return null;
  };
  const boxes = controls.map((e) => ({ e, box: e.getBoundingClientRect(), inside: scroller(e) }));
  const outside = boxes.filter(({ box, inside }) => box.left < -1 || box.right > innerWidth + 1
    || (!inside && (box.top < -1 || box.bottom > innerHeight + 1)) || box.width < 1 || box.height < 1);
  const floating = (e) => e.closest('#selected, #switches');
  const over = [];
  const others = (i) => boxes.slice(i + 1);
  boxes.forEach(({ e: a, box: p, inside: s }, i) => others(i).forEach(({ e: b, box: q, inside: t }) => {
    if (s !== t || a.contains(b) || b.contains(a) || floating(a) !== floating(b)) return;
    const across = p.left < q.right - 1 && q.left < p.right - 1;
    if (across && p.top < q.bottom - 1 && q.top < p.bottom - 1) over.push([name(a), name(b)]);
  }));
  const low = [...document.querySelectorAll('.u-over')].filter((e) => e.offsetParent !== null)
    .map((e) => Math.round(e.getBoundingClientRect().height)).filter((high) => high < 120);
  const scrolls = document.documentElement.scrollWidth > innerWidth;
  return { outside: outside.map(({ e }) => name(e)), over, low, scrolls };
}"""
WELL = {"outside": [], "over": [], "low": [], "scrolls": False}


@pytest.fixture(scope="module")
def page(chromium, humanoid, tmp_path_factory):
    watch = Watch(chromium)
    yield watch.open(write_page(made_up_motion(humanoid), tmp_path_factory.mktemp("layout") / "fall.html"))
    watch.judge()


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_every_control_can_be_reached_and_none_covers_another(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    for key in page.evaluate("[...robokit.panels.known.keys()]"):
        page.evaluate(f"robokit.openTab('{key}')")
        drawn(page)
        assert page.evaluate(REACH) == WELL, key
        if size[0] >= 1280:
            assert page.evaluate(LAYOUT)["cut"] == [], key


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda s: f"{s[0]}x{s[1]}")
def test_small_views_keep_their_switches_in_a_sheet(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("robokit.selection.select(5)")
    switches, opener = page.locator("#switches"), page.locator("#layers")
    assert not switches.is_visible()
    opener.click()
    assert switches.is_visible() and opener.get_attribute("aria-expanded") == "true"
    assert page.evaluate(REACH) == WELL
    # The card of the selected link is one line, until it is unfolded.
    card = page.locator("#selected")
    assert card.bounding_box()["height"] < 40 and not card.locator("dl").is_visible()
    assert card.bounding_box()["x"] > opener.bounding_box()["x"] + opener.bounding_box()["width"]
    before = page.evaluate("robokit.overlays.on.momentum")
    switches.get_by_role("button", name="Momentum").click()
    page.keyboard.press("Escape")
    assert not switches.is_visible() and opener.evaluate("(button) => button === document.activeElement")
    assert page.evaluate("robokit.overlays.on.momentum") != before
    card.get_by_role("button", name="More about it").click()
    assert card.locator("[data-row=mass]").is_visible() and page.evaluate(REACH) == WELL
    inside, view = card.bounding_box(), page.locator("#view").bounding_box()
    assert inside["y"] + inside["height"] <= view["y"] + view["height"]
    card.get_by_role("button", name="Less about it").click()
    assert not card.locator("dl").is_visible()
    page.evaluate("robokit.selection.select(null)")


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_robot_is_large_at_every_size(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.evaluate("robokit.timeline.seek(0)")
    drawn(page)
    seen = page.evaluate(PIXELS)
    assert seen["bottom"] - seen["top"] > 0.4 * seen["height"]
    assert seen["left"] > 0 and seen["right"] < seen["width"] - 1 and seen["top"] > 0
