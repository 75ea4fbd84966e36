"""The export menu: tables that are the trajectory's numbers, pictures and a film that show the view."""

from __future__ import annotations

import csv
import io
import time

import numpy as np
import pytest
import waiting
from PIL import Image
from viewer_cases import made_up_motion, zoo

from robokit.viewer import write_page
from robokit.viewer.scene import frame_indices

pytestmark = pytest.mark.browser

SIZE = (480, 420)


@pytest.fixture(scope="module")
def motion():
    return made_up_motion(zoo(), duration=0.4)


@pytest.fixture(scope="module")
def page(chromium, motion, tmp_path_factory):
    """One page for all of these tests, in a small window: drawing in software is slow."""
    viewport = {"width": SIZE[0], "height": SIZE[1]}
    opened = chromium.new_page(viewport=viewport, reduced_motion="reduce")
    opened.set_default_timeout(1e3 * waiting.PATIENCE)
    errors = []
    opened.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda e: errors.append(str(e)))
    opened.goto(write_page(motion, tmp_path_factory.mktemp("exports") / "zoo.html").as_uri())
    yield opened
    opened.close()
    assert errors == []


def exported(page, label):
    """Name and content of what an entry of the menu saves."""
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=label).click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def table(content):
    header, *rows = csv.reader(io.StringIO(content.decode("utf-8")))
    return dict(zip(header, np.array(rows).T, strict=True))


def test_the_states_are_the_trajectorys(page, motion):
    name, content = exported(page, "States")
    columns = table(content)
    chosen = frame_indices(motion.t)
    assert name == "zoo_states.csv"
    single = np.float32
    assert np.array_equal(single(columns["t [s]"]), single(motion.t[chosen]))
    robot = motion.robot
    for label, values in {
        "q revolute_joint [rad]": motion.q[:, robot.joint("revolute_joint").q_slice.start],
        "v prismatic_joint [m/s]": motion.v[:, robot.joint("prismatic_joint").v_slice.start],
        "q floating_joint z [m]": motion.q[:, robot.joint("floating_joint").q_slice.start + 6],
        "v spherical_joint z [rad/s]": motion.v[:, robot.joint("spherical_joint").v_slice.stop - 1],
        "linear momentum z [N s]": motion.momentum[:, 5],
        "contact force z [N]": motion.contact_force[:, 2],
    }.items():
        assert np.array_equal(single(columns[label]), single(values[chosen])), label
    assert sum(label.startswith("q ") for label in columns) == robot.nq
    assert sum(label.startswith("v ") for label in columns) == robot.nv


def test_the_curves_are_the_trajectorys(page, motion):
    _, content = exported(page, "Curves")
    columns = table(content)
    kinetic = columns["Energy: kinetic [J]"]
    given = kinetic != ""
    times = columns["t [s]"][given].astype(float)
    assert np.allclose(kinetic[given].astype(float), np.interp(times, motion.t, motion.energy.kinetic))
    assert float(max(columns["Contact force: z [N]"], key=float)) == pytest.approx(
        motion.contact_force[:, 2].max()
    )


def test_the_view_is_a_picture_with_its_background(page):
    _, content = exported(page, "View")
    picture = Image.open(io.BytesIO(content))
    box = page.locator("#canvas").bounding_box()
    assert np.allclose(picture.size, (2 * box["width"], 2 * box["height"]), atol=2)
    assert picture.convert("RGBA").getextrema()[3] == (255, 255)
    assert len(picture.convert("RGB").quantize(64).getcolors()) > 30  # a robot, not an empty sky


def test_the_plots_are_a_picture(page):
    _, content = exported(page, "Plots")
    picture = np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).astype(int)
    lines = np.ptp(picture, axis=2) > 100
    assert lines.any(axis=1).sum() > 10 and lines.any(axis=0).sum() > 0.5 * picture.shape[1]


# The bodies of each picture take 0.2 s more to place; window.slowed sums that up [ms].
SLOWLY_DRAWN = """() => {
  const { timeline } = robokit, seek = timeline.seek;
  window.slowed = 0;
  timeline.seek = (time) => {
    const began = performance.now();
    while (performance.now() < began + 200);
    window.slowed += performance.now() - began;
    return seek.call(timeline, time);
  };
}"""


def test_the_film_shows_the_motion_and_can_be_cancelled(page, tmp_path):
    import imageio_ffmpeg as ffmpeg

    page.evaluate(SLOWLY_DRAWN)
    began = time.monotonic()
    name, content = exported(page, "Film")
    elapsed = time.monotonic() - began
    film = tmp_path / name
    film.write_bytes(content)
    frames = ffmpeg.read_frames(str(film), pix_fmt="gray", bits_per_pixel=8)
    width, height = next(frames)["size"]
    pictures = [np.frombuffer(frame, np.uint8).reshape(height, width).astype(int) for frame in frames]
    # 0.4 s of motion; the film's clock stands still while pictures are drawn, however long that takes.
    slowed = page.evaluate("window.slowed") / 1000
    assert len(pictures) >= 6 and 0.3 < ffmpeg.count_frames_and_secs(str(film))[1] < elapsed - slowed
    assert slowed > 1.0
    assert np.abs(pictures[-1] - pictures[0]).max() > 60
    page.get_by_role("button", name="Export").click()
    saved = []
    page.on("download", lambda d: saved.append(d))
    page.get_by_role("menuitem", name="Film").click()
    page.get_by_role("button", name="Cancel").click()
    page.locator("#recording").wait_for(state="detached")
    assert saved == []


def test_the_menu_is_walked_by_keys_and_lies_inside_the_window(page):
    page.get_by_role("button", name="Export").press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent").startswith("States")
    box = page.locator("#export-menu").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= SIZE[0] and box["y"] + box["height"] <= SIZE[1]
    time = page.evaluate("robokit.timeline.time")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "export"
    assert page.evaluate("robokit.timeline.time") == time
