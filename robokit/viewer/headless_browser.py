"""A page in a browser without a window: headless Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from robokit.errors import MissingDependency, RobokitError

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

PATIENCE = 120.0
"""Longest time that a page may take until it is drawn [s]."""


def check_browser() -> None:
    """See that Playwright and a Chromium are there, before any work.

    Raises:
        MissingDependency: one of them is not; the message says how to get it.
    """
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
    """A page of robokit's, open and drawn, as a Playwright page.

    Args:
        path: of the page.
        size: width and height of the window [px].

    Raises:
        MissingDependency: Playwright or Chromium is not there.
        RobokitError: the page does not come up.
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
    programs = [named] if named else [path for path in (None, system) if path or _has_own(playwright)]
    problem: Exception | None = None
    for program in programs:
        try:
            return playwright.chromium.launch(executable_path=program, **options)
        except Error as error:
            problem = error
    why = f" ({str(problem).strip().splitlines()[0]})" if problem else ""
    raise MissingDependency(
        f"pictures and films of the page need Chromium{why}: run 'playwright install chromium', install "
        "chromium, or name the program in ROBOKIT_CHROMIUM"
    ) from problem


def _has_own(playwright: Any) -> bool:
    """Whether Playwright has installed a Chromium."""
    return Path(playwright.chromium.executable_path).exists()


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
