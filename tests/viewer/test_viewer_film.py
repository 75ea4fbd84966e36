"""Films and pictures of a motion: each frame for its own time; clear errors where a browser is missing."""

from __future__ import annotations

import resource
import sys
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image, ImageSequence
from viewer_cases import made_up_motion, pendulum

import robokit as rk
from robokit.cli import main
from robokit.errors import MissingDependency, ShapeError
from robokit.files import replacing
from robokit.viewer import write_film, write_picture
from robokit.viewer.film import _write_mp4, check_film, drawn_page, outside_loop, size_of

SMALL = (160, 120)


@pytest.fixture(scope="module")
def motion():
    from robokit.model import Shape, Sphere

    return made_up_motion(pendulum(shapes=(Shape(Sphere(0.1)),)), duration=0.3)


@pytest.mark.browser
def test_a_gif_shows_the_motion_in_its_own_time(motion, tmp_path):
    pictures = Image.open(write_film(motion, tmp_path / "fall.gif", SMALL, fps=20))
    shown = [np.asarray(frame.convert("L")).astype(int) for frame in ImageSequence.Iterator(pictures)]
    assert pictures.info["duration"] == 50 and len(shown) == 7 and shown[0].shape == SMALL[::-1]
    changes = [np.abs(b - a).max() for a, b in pairwise(shown)]
    assert min(changes) > 30


@pytest.mark.browser
def test_a_film_that_finds_no_room_is_an_error_and_leaves_nothing(tmp_path):
    rng = np.random.default_rng(0)

    def write(path):
        noise = (Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)) for _ in range(8))
        with replacing(path) as beside:
            _write_mp4(noise, beside, 20.0)

    write(tmp_path / "a.mp4")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (1000, (tmp_path / "a.mp4").stat().st_size - 500):  # at the first frames, and at the index
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(rk.WriteError, match=r"^cannot write '.*b\.mp4': ffmpeg did not finish"):
                write(tmp_path / "b.mp4")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.browser
def test_an_mp4_of_the_whole_page_has_every_frame_of_the_motion(motion, tmp_path, capsys):
    import imageio_ffmpeg as ffmpeg

    path = write_film(motion, tmp_path / "fall.mp4", (401, 300), 10, speed=0.5, panels=True, progress=True)
    frames = ffmpeg.read_frames(str(path))
    about = next(frames)
    assert about["size"] == (402, 300) and about["fps"] == 10 and about["codec"] == "h264"
    assert len(list(frames)) == 7
    assert "mp4" in capsys.readouterr().err


@pytest.mark.browser
def test_a_picture_is_the_same_each_time_and_of_its_instant(motion):
    def draw():
        with drawn_page(motion, SMALL, panels=False) as (duration, picture):
            return duration, [np.asarray(picture(at)).astype(int) for at in (0.1, 0.3, 0.1)]

    duration, (first, other, again) = outside_loop(draw)
    assert duration == pytest.approx(0.3) and np.array_equal(first, again)
    assert np.abs(other - first).max() > 60


def test_what_makes_no_film_is_refused(motion, tmp_path):
    with pytest.raises(ShapeError, match=r"path: expected a name that ends in \.mp4 or \.gif"):
        write_film(motion, tmp_path / "fall.avi")
    with pytest.raises(ShapeError, match=r"path: expected a name that ends in \.png or \.jpg"):
        write_picture(motion, tmp_path / "fall.gif")
    with pytest.raises(ShapeError, match="fps: expected a positive number"):
        check_film(tmp_path / "fall.gif", fps=0.0)
    for size in ((1, 2), (5000, 100), "ab", (1,)):
        with pytest.raises(ShapeError, match="size: expected width and height"):
            size_of(size)


@pytest.mark.browser
def test_what_is_missing_is_named(motion, tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CHROMIUM", str(tmp_path / "nowhere"))
    with pytest.raises(MissingDependency, match=r"ROBOKIT_CHROMIUM names .*nowhere"):
        write_picture(motion, tmp_path / "fall.png")
    monkeypatch.delenv("ROBOKIT_CHROMIUM")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingDependency, match=r"pip install 'robokit\[film\]'"):
        check_film(tmp_path / "fall.mp4")


def test_the_command_says_what_is_missing_before_it_simulates(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "playwright", None)
    monkeypatch.setattr(rk, "simulate", lambda *_, **__: pytest.fail("it simulates"), raising=False)
    page, gif = tmp_path / "page.html", tmp_path / "film.gif"
    assert main(["simulate", "double_pendulum", "--no-open", "-o", str(page), "--gif", str(gif)]) == 1
    assert capsys.readouterr().err == (
        "robokit: pictures and films of the page need Playwright: pip install 'robokit[film]'\n"
    )
    assert not page.exists()
    with pytest.raises(SystemExit, match="2"):
        main(["fall", "--png", "a.png", "--size", "12"])
    assert "WIDTHxHEIGHT" in capsys.readouterr().err
