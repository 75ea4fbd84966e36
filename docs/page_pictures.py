"""Makes the manual's pictures of the page, and README's: python docs/page_pictures.py

Needs Playwright and Chromium (extra ``film``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import robokit as rk
from robokit.viewer import Curve, write_film, write_page
from robokit.viewer.film import opened_page

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


def zero_moment_point(run: rk.Trajectory) -> np.ndarray:
    """Of a run on level ground, (T, 2) [m]; masked where hardly anything presses."""
    contacts = run.contacts
    normal = contacts.forces[..., 2]
    total = normal.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        point = (normal[..., None] * contacts.points[..., :2]).sum(axis=1) / total
    return np.ma.masked_array(point, np.broadcast_to(total < 20.0, point.shape))


def own_curves(folder: Path) -> None:
    """Curves of one's own."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    start = rk.standing_configuration(robot)
    push = rk.Push("chest", (160.0, 0.0, 0.0), start=0.3, duration=0.15)
    hold = rk.PD(kp=900.0, kd=60.0)
    run = rk.simulate(robot, start, duration=2.5, ground=True, actuators=hold, pushes=push)
    curves = {
        "zero-moment point": Curve(zero_moment_point(run), "m", labels=("forward", "left")),
        "height of the head": Curve(lambda t, q, v: rk.forward_kinematics(robot, q)["head"].position[2], "m"),
    }
    with opened_page(run.to_html(folder / "own.html", curves=curves, follow="chest"), SIZE) as page:
        page.evaluate("robokit.timeline.seek(0.9)")
        take(page, "page_own_curves")


def contact_frames(folder: Path) -> None:
    """A transparent robot whose contacts have frames."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    ground = rk.Ground(tilt=0.1)
    start = rk.standing_configuration(robot, tilt=0.1, ground=ground)
    run = rk.simulate(robot, start, duration=1.5, ground=ground)
    with opened_page(run.to_html(folder / "frames.html"), SIZE) as page:
        page.evaluate("robokit.timeline.seek(1.4); robokit.cameras.opacity(0.35)")
        page.evaluate("robokit.cameras.follow(true, 'left_shank')")
        page.evaluate("document.querySelector('[data-key=contactFrames]').click()")
        take(page, "page_contact_frames")


def live_motors(folder: Path) -> None:
    """Targets that are moved by sliders."""
    robot = rk.load_urdf(rk.find_robot("arm"))
    run = rk.simulate(
        robot, robot.neutral() + 0.3, duration=1.0, ground=True, actuators=rk.PD(kp=400.0, kd=40.0)
    )
    with opened_page(run.to_html(folder / "arm.html", live=True), SIZE) as page:
        page.click("#live")
        page.wait_for_timeout(1500)
        for joint, target in (("joint_2", "-0.6"), ("joint_4", "1.3"), ("joint_6", "0.9")):
            page.get_by_label(f"Target position of {joint}").fill(target)
        take(page, "page_live_motors")


def main() -> None:
    """Write them."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    fall = rk.simulate(robot, rk.standing_configuration(robot, tilt=0.1), duration=3.0, ground=rk.Ground())
    peak = next(event for event in fall.events if event.kind == "peak load")
    with tempfile.TemporaryDirectory() as folder:
        for make in (own_curves, contact_frames, live_motors):
            make(Path(folder))
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
