"""Makes the manual's pictures of the page, and README's: python docs/page_pictures.py

Needs Playwright and Chromium (extra ``film``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import robokit as rk
from robokit.viewer import write_film, write_page
from robokit.viewer.headless_browser import opened_page

STATIC = Path(__file__).parent / "_static"

SIZE = (1280, 800)

WALK = {"x": 886, "y": 128, "width": 394, "height": 308}
"""Of the page at SIZE: the upper part of the tab "Algorithms"."""

PULL = """() => { const { stage, data } = robokit, body = data.bodies.name.indexOf("left_hand");
  stage.world.updateMatrixWorld(true);
  const at = stage.bodies[body].getWorldPosition(new MeshCat.THREE.Vector3()).project(stage.viewer.camera);
  const edge = stage.host.getBoundingClientRect();
  return [edge.left + 0.5 * (1 + at.x) * edge.width, edge.top + 0.5 * (1 - at.y) * edge.height]; }"""

NEXT_ENTRY = """() => { const { walk } = robokit;
  do walk.go(walk.step + 1); while (!walk.matrix.fresh.length); }"""


def take(page: Any, name: str) -> None:
    """A picture of the page as it is."""
    page.wait_for_timeout(1500)
    page.screenshot(path=STATIC / f"{name}.png")


def main() -> None:
    """Write them."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    fall = rk.simulate(robot, rk.standing_configuration(robot, tilt=0.1), duration=3.0, ground=rk.Ground())
    peak = next(event for event in fall.events if event.kind == "peak load")
    with tempfile.TemporaryDirectory() as folder:
        path = write_page(fall, Path(folder) / "fall.html", live=True)
        write_film(fall, STATIC / "fall.gif", size=(560, 350), fps=12)
        with opened_page(path, SIZE) as page:
            page.evaluate(f"robokit.timeline.seek({peak.time})")
            page.evaluate("robokit.openTab('summary')")
            take(page, "page_summary")
            knee = robot.joint("left_knee").body
            page.evaluate(f"robokit.selection.select({knee})")
            page.evaluate("robokit.openTab('structure')")
            take(page, "page_structure")
            page.evaluate("robokit.openTab('walk')")
            page.wait_for_timeout(1500)
            for _ in range(4):
                page.evaluate(NEXT_ENTRY)
            take(page, "page_algorithms")
            page.screenshot(path=STATIC / "page_walk.png", clip=WALK)
            page.evaluate("robokit.openTab('curves')")
            take(page, "page_curves")
            page.evaluate("robokit.selection.select(null)")
            page.evaluate("robokit.timeline.seek(0.9)")
            page.click("#live")
            page.wait_for_timeout(4000)
            x, y = page.evaluate(PULL)
            page.mouse.move(x, y)
            page.mouse.down()
            for k in range(20):
                page.mouse.move(x, y - 15 * k)
                page.wait_for_timeout(100)
            take(page, "page_live")
            page.mouse.up()


if __name__ == "__main__":
    main()
