"""Films and pictures of a motion, which fall and simulate write beside the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robokit.cli.output_files import writable
from robokit.cli.plumbing import tell
from robokit.errors import RobokitError


def add_films(sub: argparse.ArgumentParser, positive: Callable[[str], float]) -> None:
    """The options of films and pictures.

    Args:
        sub: parser of a command.
        positive: type of a positive number.
    """
    group = sub.add_argument_group("films and pictures (need Chromium and robokit[film])")
    group.add_argument("--mp4", metavar="FILE", help="write a film")
    group.add_argument("--gif", metavar="FILE", help="write an animated picture")
    group.add_argument("--png", metavar="FILE", help="write a picture of one instant")
    group.add_argument("--at", type=_time, metavar="S", help="of --png; default: the middle")
    group.add_argument("--size", type=_size, metavar="WxH", help="in pixels; default: 1280x720, GIF 640x360")
    group.add_argument("--fps", type=positive, metavar="N", help="frames a second; default: 30, GIF 20")
    group.add_argument(
        "--look",
        type=_look,
        metavar="SIDE",
        help="from the front, back, left, right, top or corner; default: where the motion is longest",
    )
    group.add_argument("--whole-page", action="store_true", help="show the panels too, not only the view")


def _size(text: str) -> tuple[int, int]:
    from robokit.viewer.film import size_of

    sides = text.lower().replace("×", "x").split("x")
    try:
        return size_of((int(sides[0]), int(sides[1])))
    except (ValueError, IndexError, RobokitError):
        raise argparse.ArgumentTypeError(
            f"expected WIDTHxHEIGHT of 16 to 4096 pixels, such as 1280x720, got {text!r}"
        ) from None


def _look(text: str) -> str:
    from robokit.viewer.looks import angles_of

    try:
        angles_of(text)
    except RobokitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _time(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a time of 0 s or more, got {text!r}")
    return value


def wanted_films(arguments: argparse.Namespace) -> list[Path]:
    """The files that the options ask for, checked before any work.

    Raises:
        RobokitError: a file cannot be written, or what makes it is not installed.
    """
    files = [
        writable(name, suffix)
        for suffix in (".mp4", ".gif", ".png")
        if (name := getattr(arguments, suffix[1:])) is not None
    ]
    if files:
        from robokit.viewer.film import check_film
        from robokit.viewer.headless_browser import check_browser

        check_browser()
        for file in files:
            if file.suffix.lower() != ".png":
                check_film(file)
    return files


def write_films(arguments: argparse.Namespace, page: Path, files: list[Path]) -> None:
    """Write the films and pictures of a page, with a progress bar on a terminal; say what was written."""
    from robokit.viewer.film import SIZE, write_film, write_picture

    progress = sys.stderr is not None and sys.stderr.isatty()
    for file in files:
        kind = file.suffix.lower()
        size = arguments.size or ((640, 360) if kind == ".gif" else SIZE)
        options: dict[str, Any] = {"size": size, "panels": arguments.whole_page, "look": arguments.look}
        if kind == ".png":
            write_picture(page, file, at=arguments.at, **options)
        else:
            fps = arguments.fps or (20.0 if kind == ".gif" else 30.0)
            write_film(page, file, fps=fps, progress=progress, **options)
        label = "picture" if kind == ".png" else "film"
        tell(f"  {label:<13} {file} ({file.stat().st_size / 1e6:.2f} MB)")
