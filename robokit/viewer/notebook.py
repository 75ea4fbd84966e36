"""A robot or a motion in a notebook: a small still, and a button that opens its page.

The cell holds the still alone, some tens of kilobytes, and so does the notebook that is saved. The page is
made when the button is pressed, and comes from this Python process: the button works while that runs, in a
browser on the same machine or where its ports are forwarded. :func:`embed` puts the whole page into the cell
instead.
"""

from __future__ import annotations

import base64
import html
import os
import secrets
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robokit.arguments import whole_number
from robokit.errors import MissingDependency, RobokitError, WrongType
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.viewer.meshcat_page import meshcat_page
from robokit.viewer.page import page_html
from robokit.viewer.still import SIZE, still_png

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEIGHT = 620
"""Height of a cell with a whole page in it [px]."""

BUTTON = (
    "display:inline-block;padding:5px 14px;border-radius:8px;background:#1d5ae0;color:#fff;font-weight:600;"
    "text-decoration:none;white-space:nowrap"
)


def notebook_html(source: Robot | Trajectory) -> str:
    """A still of a robot or a motion and the button that opens its page, as the HTML of a notebook's cell.

    Args:
        source: a Robot or a Trajectory.

    Returns:
        A figure with nothing but a picture and a link. What cannot be shown (a robot with samples of masses,
        a trajectory without its robot), or needs a package that is not there, is its text and the reason.
    """
    try:
        picture = still_png(source)
    except RobokitError as error:
        return _text(source, f"not drawn: {error}")
    name = html.escape(repr(source), quote=True)
    width, height = SIZE
    data = base64.b64encode(picture).decode("ascii")
    image = (
        f'<img src="data:image/png;base64,{data}" alt="{name}" width="{width}" height="{height}" '
        'style="display:block;max-width:100%;height:auto;border-radius:8px">'
    )
    try:
        meshcat_page()
        address = html.escape(PAGES.add(lambda: page_html(source)), quote=True)
    except (MissingDependency, OSError) as error:
        button, note = "", html.escape(str(error))
    else:
        link = f'<a href="{address}" target="_blank" rel="noopener"'
        image = f"{link}>{image}</a>"
        button = f'{link} role="button" style="{BUTTON}">Open</a>'
        note = "opens its page while this Python runs; to keep it: " + (
            'trajectory.to_html("page.html")'
            if isinstance(source, Trajectory)
            else 'robokit.viewer.write_page(robot, "page.html")'
        )
    return (
        f'<figure style="margin:0;width:{width}px;max-width:100%">{image}'
        f'<figcaption style="display:flex;gap:12px;align-items:center;margin-top:8px">{button}'
        f"<span>{name}<br><small>{note}</small></span></figcaption></figure>"
    )


@dataclass(frozen=True)
class Embedded:
    """A page inside a notebook's cell; see :func:`embed`."""

    html: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<Embedded: a page of {len(self.html) / 1e6:.1f} MB>"


def embed(source: Robot | Trajectory, height: int = HEIGHT) -> Embedded:
    """The whole page of a robot or a motion in a notebook cell.

    It is part of the cell's output, one to three megabytes, so it also works with a remote Jupyter and in a
    saved notebook.

    Args:
        source: a Robot or a Trajectory.
        height: of the cell [px].

    Returns:
        An object that a notebook displays as the page, in the last line of a cell or with ``display``.

    Raises:
        WrongType: neither of them, or height is no whole number.
        RobokitError: what has no page, such as a trajectory without its robot.

    Example:
        >>> from robokit.viewer import embed
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> embed(robot)._repr_html_()[:15]
        '<iframe srcdoc='
    """
    if not isinstance(source, (Robot, Trajectory)):
        raise WrongType("source", source, "a Trajectory or a Robot")
    height = whole_number("height", height, 1)
    # Without allow-same-origin the page cannot reach the notebook around it.
    return Embedded(
        f'<iframe srcdoc="{html.escape(page_html(source), quote=True)}" '
        f'title="{html.escape(repr(source), quote=True)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{height}px;border:1px solid #d8dde5;border-radius:8px"></iframe>'
    )


def _text(source: Robot | Trajectory, reason: str) -> str:
    return f"<pre>{html.escape(repr(source))}</pre><p><small>{html.escape(reason)}</small></p>"


# ---- the server of the pages ---------------------------------------------------------------------
# One thread answers on 127.0.0.1, only requests that name this machine as their host and know an address that
# cannot be guessed. It ends with the process, and nothing is written to disk.


MOST_PAGES = 20
"""Number of cells whose robots and motions are kept; older ones are dropped."""


class CellPages:
    """Pages by address; the server starts with the first of them."""

    def __init__(self) -> None:
        self._makers: OrderedDict[str, Callable[[], str]] = OrderedDict()
        self._server: ThreadingHTTPServer | None = None
        self._process = 0
        # Robots derive what they need at the first use: one page at a time is made.
        self._making = threading.Lock()
        self._adding = threading.Lock()

    def add(self, make: Callable[[], str]) -> str:
        """The address of a page that ``make`` writes when it is asked for.

        Raises:
            OSError: no port can be opened.
        """
        with self._adding:
            if self._server is None or self._process != os.getpid():  # a fork has no thread that answers
                from http.server import ThreadingHTTPServer

                self._process = os.getpid()
                self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
                self._server.daemon_threads = True
                threading.Thread(target=self._server.serve_forever, name="robokit-cells", daemon=True).start()
            path = f"/{secrets.token_urlsafe(18)}.html"
            self._makers[path] = make
            while len(self._makers) > MOST_PAGES:
                self._makers.popitem(last=False)
            return f"http://127.0.0.1:{self._server.server_port}{path}"

    def close(self) -> None:
        """Stop the server and drop all pages."""
        with self._adding:
            if self._server is not None:
                self._server.shutdown()
                self._server.server_close()
            self._server = None
            self._makers.clear()

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text of the page at a path."""
        make = self._makers.get(path)
        if make is None:
            return 404, _note("This page is no longer kept: run the cell again.")
        try:
            with self._making, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the cell has shown these warnings
                return 200, make()
        except Exception as problem:  # the browser shows the reason
            return 500, _note(f"The page was not made. {problem}")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        from http.server import BaseHTTPRequestHandler

        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                port = pages._server.server_port if pages._server else 0
                known = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
                if self.headers.get("Host", "").lower() not in known:
                    status, text = 403, _note("Only for this machine.")
                else:
                    status, text = pages.answer(self.path)
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Log nothing: the notebook is not a log."""

        return Handler


def _note(text: str) -> str:
    return f'<!doctype html><meta charset="utf-8"><title>robokit</title><p>{html.escape(text)}</p>'


PAGES = CellPages()
"""The pages of this process."""
