"""Pictures and films of a motion: its page in headless Chromium, one instant after another.

    robokit.viewer.write_film(trajectory, "fall.mp4", size=(1280, 720), fps=30)
    robokit.viewer.write_picture(trajectory, "fall.png", at=0.8)

Each frame is drawn for its own time, so a film does not depend on how fast the machine draws.
"""

from __future__ import annotations

import base64
import contextlib
import io
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from robokit.arguments import one_of
from robokit.errors import MissingDependency, RobokitError, ShapeError, UnknownName, WrongType, library
from robokit.files import output_path, replacing
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage
from robokit.viewer.page import write_page

if TYPE_CHECKING:
    from PIL.Image import Image

# ==== A page in a browser without a window: headless Chromium, driven by Playwright ===============

T = TypeVar("T")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""Programs that are tried, if ROBOKIT_CHROMIUM does not name one and Playwright has installed none."""

FLAGS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
"""No network at the start, and WebGL in software: the same pictures on every machine."""

PATIENCE = 120.0  # longest time that a page may take until it is drawn [s]


def check_browser() -> None:
    """Raise MissingDependency, which says how to get them, unless Playwright and a Chromium are there."""
    try:
        import playwright  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "pictures and films of the page need Playwright: pip install 'robokit[film]'"
        ) from error
    named = os.environ.get("ROBOKIT_CHROMIUM")
    if named and not (shutil.which(named) or Path(named).is_file()):
        raise MissingDependency(f"ROBOKIT_CHROMIUM names {named!r}, which is not there")


@contextlib.contextmanager
def opened_page(path: Path, size: tuple[int, int]) -> Iterator[Any]:
    """A page of robokit's, open and drawn, as a Playwright page, in a window of width and height [px].

    Raises MissingDependency without Playwright or Chromium, RobokitError if the page does not come up.
    """
    check_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = _launched(playwright)
        try:
            # A page does not play by itself for readers who want less motion.
            viewport = {"width": size[0], "height": size[1]}
            page = browser.new_page(viewport=viewport, reduced_motion="reduce")
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.goto(path.resolve().as_uri())
            end = time.monotonic() + PATIENCE
            while not page.evaluate("Boolean(window.robokit && robokit.exports && robokit.exports.ready())"):
                if problems or time.monotonic() > end:
                    raise RobokitError(
                        f"{path}: the page was not drawn ({'; '.join(problems) or 'too slow'})"
                    )
                page.wait_for_timeout(50)
            yield page
        finally:
            with contextlib.suppress(Exception):  # after Ctrl-C it has gone already
                browser.close()


def _launched(playwright: Any) -> Any:
    """Chromium: the one that ROBOKIT_CHROMIUM names, Playwright's own, or the system's."""
    from playwright.sync_api import Error

    options: dict[str, Any] = {"args": [*FLAGS], "handle_sigint": False}
    if sys.platform == "linux" and os.geteuid() == 0:
        options["args"].append("--no-sandbox")  # Chromium's sandbox refuses to run as root
    named = os.environ.get("ROBOKIT_CHROMIUM")
    system = next((found for found in map(shutil.which, NAMES) if found), None)
    own: list[str | None] = [None] if Path(playwright.chromium.executable_path).exists() else []
    problem: Exception | None = None
    for program in [named] if named else own + [system] * bool(system):
        try:
            return playwright.chromium.launch(executable_path=program, **options)
        except Error as error:
            problem = error
    why = f" ({str(problem).strip().splitlines()[0]})" if problem else ""
    raise MissingDependency(
        f"pictures and films of the page need Chromium{why}: run 'playwright install chromium', install "
        "chromium, or name the program in ROBOKIT_CHROMIUM"
    ) from problem


def outside_loop(work: Callable[[], T]) -> T:
    """Call a function, in a thread of its own where an event loop runs in this one, as in a notebook."""
    import asyncio
    import concurrent.futures

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


# ==== where a camera stands: the names of views from around the robot =============================
# x is forward, y to the left and z up, as in the robot's base at its neutral configuration.

LOOKS = {
    "front": (0.0, 0.03),
    "back": (math.pi, 0.03),
    "left": (0.5 * math.pi, 0.03),
    "right": (-0.5 * math.pi, 0.03),
    "top": (-0.5 * math.pi, 0.5 * math.pi - 0.001),
    "corner": (-0.25 * math.pi, 0.26),
}
"""Azimuth and elevation of the camera as seen from the robot [rad]."""


def angles_of(look: Any) -> tuple[float, float]:
    """Azimuth and elevation [rad] of a named view; UnknownName if there is none."""
    return LOOKS[one_of("view", look, LOOKS)]


def direction(look: Any) -> np.ndarray:
    """Unit vector from the robot to the camera, world axes, (3,); UnknownName if there is no such view."""
    azimuth, elevation = angles_of(look)
    flat = math.cos(elevation)
    return np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), math.sin(elevation)])


# ==== films and pictures ==========================================================================

SIZE = (1280, 720)  # width and height of a film [px]
LARGEST = 4096  # longest side of a film or picture [px]

MOST_FRAMES = 20_000

FORMATS = (".mp4", ".gif")

Source = Trajectory | Robot | str | Path


def write_film(
    source: Source,
    path: str | Path,
    size: tuple[int, int] = SIZE,
    fps: float = 30.0,
    speed: float = 1.0,
    panels: bool = False,
    progress: bool = False,
    look: str | None = None,
    follow: bool | str | None = None,
) -> Path:
    """Write a motion as a film.

    Args:
        source: a Trajectory, or the path of a page that robokit has written.
        path: path of the film, with the suffix ".mp4" (H.264) or ".gif".
        size: width and height [px]; odd numbers are made even.
        fps: frames per second; a GIF takes the nearest of 100, 50, 33.3, 25, 20, ...
        speed: seconds of motion per second of film.
        panels: whether to show the whole page and not only its 3D view.
        progress: show a progress bar.
        look: side of the camera, one of :data:`robokit.viewer.film.LOOKS` ("front", "left", ...); by default
            across the motion.
        follow: name of a link that the camera follows, True for the centre of mass, False for
            neither; None for the camera with which the page opens.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: Playwright, Chromium, or for an MP4 imageio-ffmpeg is not there.
        ShapeError: a size, fps or speed that is not positive, or another suffix of ``path``.
        WriteError: the file cannot be written.
        UnknownName: there is no such side of the camera, or no such link.

    Example:
        >>> from robokit.viewer import write_film
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.5)
        >>> write_film(run, "swing.gif", size=(160, 120), fps=5).name
        'swing.gif'
    """
    path = output_path("path", path)
    check_film(path, size, fps, speed)
    if path.suffix.lower() == ".gif":
        fps = 100 / max(1, round(100 / fps))  # frames of a GIF last whole hundredths of a second

    def work() -> None:
        with (
            stage("opening the page in Chromium"),
            drawn_page(source, size, panels, look, follow) as (duration, picture),
        ):
            last = duration * fps / speed
            count = max(2, math.floor(last + 1e-6) + 1)
            if count > MOST_FRAMES:
                raise ShapeError(
                    f"fps: expected at most {MOST_FRAMES:,} frames, got {count:,}; take a lower fps, or a "
                    "larger speed"
                )
            times: Iterable[float] = [min(k * speed / fps, duration) for k in range(count)]
            if progress:
                from tqdm import tqdm

                times = tqdm(times, desc=path.suffix[1:], unit="frame", leave=False)
            frames = (picture(time) for time in times)
            with stage("" if progress else f"drawing {count} frames"), replacing(path) as beside:
                if path.suffix.lower() == ".mp4":
                    _write_mp4(frames, beside, fps)
                else:
                    _write_gif(frames, beside, fps, [picture(part * duration) for part in (0.0, 0.5, 1.0)])

    outside_loop(work)
    return path


def write_picture(
    source: Source,
    path: str | Path,
    at: float | None = None,
    size: tuple[int, int] = SIZE,
    panels: bool = False,
    look: str | None = None,
    follow: bool | str | None = None,
) -> Path:
    """Write one instant of a motion, or a robot's pose, as a picture.

    Args:
        source: a Trajectory, a Robot, or the path of a page that robokit has written.
        path: path of the picture, with the suffix ".png" or ".jpg".
        at: time since the start [s]; the middle of the motion by default.
        size: width and height [px].
        panels: whether to show the whole page and not only its 3D view.
        look: side of the camera, as in :func:`write_film`.
        follow: what the camera follows, as in :func:`write_film`.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: Playwright or Chromium is not there.
        UnknownName: there is no such side of the camera, or no such link.
        ShapeError: a size that is not positive, another suffix of ``path``, or a time that is not a number.
        WriteError: the file cannot be written.

    Example:
        >>> from robokit.viewer import write_picture
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_picture(robot, "pendulum.png", size=(320, 240), look="front").name
        'pendulum.png'
    """
    path = output_path("path", path)
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg"):
        raise ShapeError(f"path: expected a name that ends in .png or .jpg, got {str(path)!r}")
    if at is not None and not (np.isfinite(at) and at >= 0):
        raise ShapeError(f"at: expected a time of 0 s or more, got {at!r}")
    size_of(size)

    def work() -> None:
        with drawn_page(source, size, panels, look, follow) as (duration, picture):
            drawn = picture(0.5 * duration if at is None else min(at, duration))
            with replacing(path) as beside:
                drawn.save(beside)

    outside_loop(work)
    return path


def check_film(path: Path, size: tuple[int, int] = SIZE, fps: float = 30.0, speed: float = 1.0) -> None:
    """See that a film can be made, before any work; errors as of :func:`write_film`."""
    if path.suffix.lower() not in FORMATS:
        raise ShapeError(f"path: expected a name that ends in {' or '.join(FORMATS)}, got {str(path)!r}")
    size_of(size)
    for name, value in (("fps", fps), ("speed", speed)):
        if not 0 < value < math.inf:
            raise ShapeError(f"{name}: expected a positive number, got {value!r}")
    check_browser()
    if path.suffix.lower() == ".mp4":
        _ffmpeg()


def size_of(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height, if they make a picture; ShapeError unless both are whole numbers of 16 to 4096."""
    try:
        width, height = (int(side) for side in size)
    except (TypeError, ValueError):
        width = height = 0
    if not (16 <= width <= LARGEST and 16 <= height <= LARGEST):
        raise ShapeError(f"size: expected width and height of 16 to {LARGEST} px, got {size!r}")
    return width, height


@contextmanager
def drawn_page(
    source: Source,
    size: tuple[int, int],
    panels: bool,
    look: str | None = None,
    follow: bool | str | None = None,
) -> Iterator[tuple[float, Callable[[float], Image]]]:
    """The length of a motion [s], and a function that draws an instant of it."""
    from PIL import Image

    angles = None if look is None else angles_of(look)
    with tempfile.TemporaryDirectory() as folder:
        made = isinstance(source, (Trajectory, Robot))
        file = write_page(source, Path(folder) / "film.html") if made else Path(source)  # type: ignore[arg-type]
        # Even sides, which H.264 asks for.
        width, height = size_of(size)
        window = (width + width % 2, height + height % 2)
        with opened_page(file, window) as page:
            if follow is not None:
                _follow(page, follow)
            if not panels:
                page.evaluate("robokit.exports.onlyView()")
            if angles is not None:
                page.evaluate("angles => robokit.exports.look(...angles)", angles)
            duration = float(page.evaluate("robokit.timeline ? robokit.motion.duration : 0"))

            def picture(time: float) -> Image.Image:
                if panels:
                    page.evaluate("time => { robokit.timeline?.seek(time); }", time)
                    data = page.screenshot()
                else:
                    text = page.evaluate("time => robokit.exports.frameAt(time)", time)
                    data = base64.b64decode(text.partition(",")[2])
                return Image.open(io.BytesIO(data)).convert("RGB").resize(window)

            yield duration, picture


def _follow(page: Any, follow: bool | str) -> None:
    """Let the camera of an open page follow a link, or the centre of mass.

    Raises WrongType for anything else and for a page that does not move, UnknownName if there is no such
    link.
    """
    if not isinstance(follow, bool | str):
        raise WrongType("follow", follow, "the name of a link, True, False or None")
    links = page.evaluate("robokit.data.links.map(({ name }) => name)")
    if isinstance(follow, str) and follow not in links:
        raise UnknownName("link", follow, links, "in the page")
    if not page.evaluate("robokit.stage.framing.canFollow"):
        raise WrongType("follow", follow, "None for a robot that does not move", "give a Trajectory")
    name = follow if isinstance(follow, str) else None
    page.evaluate("([on, name]) => robokit.cameras.follow(on, name)", [follow is not False, name])


def _ffmpeg() -> Any:
    return library("imageio_ffmpeg", "film", "an MP4")


UNFINISHED = "ffmpeg did not finish the film; is the disk full?"


def _write_mp4(frames: Iterator[Image], path: Path, fps: float) -> None:
    """H.264 in the colours that every player knows."""
    writer = None
    try:
        for frame in frames:
            if writer is None:
                writer = _ffmpeg().write_frames(
                    str(path), frame.size, fps=fps, quality=8, macro_block_size=2, ffmpeg_log_level="error"
                )
                writer.send(None)
            writer.send(frame.tobytes())
    except OSError as error:  # with ffmpeg's whole command as its text
        raise OSError(UNFINISHED) from error
    finally:
        if writer is not None:
            writer.close()
    if not _is_whole(path):  # ffmpeg's exit status is not to be had
        raise OSError(UNFINISHED)


def _is_whole(path: Path) -> bool:
    """Whether an MP4's boxes fill the file and the index, which is written last, is one of them."""
    with path.open("rb") as file:
        end, kinds, place = os.fstat(file.fileno()).st_size, [], 0
        while place < end:
            file.seek(place)
            head = file.read(16)
            size, kind = int.from_bytes(head[:4], "big"), head[4:8]
            size = int.from_bytes(head[8:], "big") if size == 1 else size
            if size < 8 or place + size > end:
                return False
            kinds.append(kind)
            place += size
    return b"moov" in kinds


def _write_gif(frames: Iterator[Image], path: Path, fps: float, samples: list[Image]) -> None:
    """A GIF that repeats; all frames share the palette of a few of them, so that nothing flickers."""
    from PIL import Image

    width, height = samples[0].size
    joined = Image.new("RGB", (width, height * len(samples)))
    for k, sample in enumerate(samples):
        joined.paste(sample, (0, k * height))
    palette = joined.quantize(256)
    every = (frame.quantize(palette=palette) for frame in frames)
    first = next(every)
    first.save(path, save_all=True, append_images=every, duration=round(1000 / fps), loop=0)
