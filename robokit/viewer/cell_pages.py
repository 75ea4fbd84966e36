"""The pages behind the stills of a notebook: made when they are asked for, by this process.

One thread answers on 127.0.0.1, only requests that name this machine as their host and know an address that
cannot be guessed. It ends with the process, and nothing is written to disk.
"""

from __future__ import annotations

import html
import os
import secrets
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_PAGES = 20
"""Whose robots and motions are kept; those of older cells are let go."""


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
        """End the server and let all go."""
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
                warnings.simplefilter("ignore")  # the cell has shown them
                return 200, make()
        except Exception as problem:  # whoever clicked sees why
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
                """Nothing: the notebook is not a log."""

        return Handler


def _note(text: str) -> str:
    return f'<!doctype html><meta charset="utf-8"><title>robokit</title><p>{html.escape(text)}</p>'


PAGES = CellPages()
"""Those of this process."""
