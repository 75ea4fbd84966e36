"""The page's address holds what is shown; opening it shows the same."""

from __future__ import annotations

import pytest
from test_viewer_browser import Watch, until

from robokit.viewer import write_page

pytestmark = pytest.mark.browser

STATE = """() => {
  const { address, timeline, selection, panels, overlays, stage } = robokit;
  const { camera, controls } = stage.viewer;
  const numbers = [...camera.position.toArray(), ...controls.target.toArray()].map((x) => x.toFixed(3));
  const { momentum, com } = overlays.on;
  return [timeline.time.toFixed(3), selection.link, panels.current, momentum, com, numbers];
}"""


def test_the_address_restores_time_camera_overlays_tab_and_selection(chromium, fall, tmp_path):
    path = write_page(fall, tmp_path / "fall.html")
    first = Watch(chromium)
    page = first.open(path)
    page.wait_for_timeout(500)
    assert page.evaluate("location.hash") == ""
    before = page.evaluate("history.length")
    page.evaluate("for (let k = 0; k < 20; k++) robokit.timeline.seek(0.05 * k)")
    page.evaluate("robokit.timeline.seek(1.25)")
    page.get_by_role("button", name="Momentum").click()
    page.get_by_role("button", name="CoM").click()
    page.evaluate("robokit.openTab('structure')")
    page.evaluate("robokit.selection.select(5)")
    page.mouse.move(400, 400)
    page.mouse.down()
    page.mouse.move(500, 380, steps=3)
    page.mouse.up()
    page.evaluate("robokit.selection.select(5)")
    state = page.evaluate(STATE)
    until(page, "/camera=/.test(location.hash) && /link=/.test(location.hash)")
    page.wait_for_timeout(500)
    assert page.evaluate("history.length") == before
    hash = page.evaluate("location.hash")

    second = Watch(chromium)
    page = second.page
    page.goto(path.as_uri() + hash)
    until(page, "window.robokit !== undefined")
    assert page.evaluate(STATE) == state
    page.evaluate("location.hash = '#t=0.5&tab=nonsense&link=nobody&camera=1,2&show=visual'")
    until(page, "robokit.timeline.time === 0.5")
    assert page.evaluate("robokit.selection.link") is None
    assert page.evaluate("robokit.overlays.on.contacts") is False
    second.judge()
    first.judge()
