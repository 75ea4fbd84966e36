"""The live view's web server, which lives inside this process.

meshcat's own server is a second process that listens on every network interface and can outlive its script.
This one is a thread that listens on 127.0.0.1 only, so it ends with the script however the script ends.

It answers only requests that name this machine as their host, and takes websockets only from its own page:
otherwise a web page from elsewhere could read the scene through the user's browser, under a host name of its
own that leads to 127.0.0.1 (DNS rebinding).

Each browser has its own list of the commands that it has not received yet. So a browser that reads slowly, or
never, does not delay the others, and it gets the latest state of each part of the scene when it reads on. One
that goes away is removed silently.

This module needs tornado, which meshcat brings along; :mod:`robokit.viewer.live` imports it when it starts.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from pathlib import Path
from typing import Any

import tornado.httpserver
import tornado.netutil
import tornado.web
import tornado.websocket
from tornado.httputil import HTTPServerRequest

FIRST_PORT = 7000
PORTS = 200

LARGEST_MESSAGE = 65536  # bytes of a message from a browser; meshcat's page sends none unless asked
PING = 20.0  # seconds between pings of each browser; one that does not answer until the next is dropped
FAREWELL = 1.0  # seconds that browsers have at the end to receive what was sent before


class SceneServer:
    """Holds the scene, serves the page, and sends each browser the scene and its changes.

    It stands where meshcat's ViewerWindow stands: ``meshcat.Visualizer(window=SceneServer(folder))`` with the
    folder of meshcat's web page. ``web_url`` is the page's address, ``scene`` all commands that make the
    scene.
    """

    def __init__(self, page: Path) -> None:
        self.web_url = ""
        self.scene = SceneCommands()
        self._page = page
        self._browsers: set[_Browser] = set()
        self._ready = threading.Event()
        self._connected = threading.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="robokit-viewer", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        atexit.register(self.close)

    # ---- called from the script's thread ----------------------------------------------------------

    def send(self, command: Any) -> None:
        """Take a meshcat command into the scene and pass it on to the browsers."""
        import umsgpack

        message = command.lower()
        packed = umsgpack.packb(message)
        if not self.closed:
            self._loop.call_soon_threadsafe(self._put, message, packed)

    def wait_for_browser(self, timeout: float | None = None) -> bool:
        """Wait until a browser has received the scene, for at most so long [s]; whether one has."""
        return self._connected.wait(timeout)

    @property
    def closed(self) -> bool:
        """Whether the server has ended."""
        return not self._thread.is_alive() or self._loop.is_closed()

    def close(self) -> None:
        """End the server; what it has sent stays in the browsers. Calling it again does nothing."""
        atexit.unregister(self.close)
        if self.closed:
            return
        # The loop may end between the question and the call: then there is nothing left to stop.
        with contextlib.suppress(RuntimeError):
            asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
        self._thread.join(timeout=3.0)

    # ---- the server's thread ----------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._listen()
        except BaseException as problem:
            self._failure = problem
            self._loop.close()
            return
        finally:
            self._ready.set()
        self._loop.run_forever()
        self._loop.close()

    def _listen(self) -> None:
        for port in (*range(FIRST_PORT, FIRST_PORT + PORTS), 0):
            try:
                sockets = tornado.netutil.bind_sockets(port, "127.0.0.1")
                break
            except OSError:
                continue
        port = sockets[0].getsockname()[1]
        self.web_url = f"http://127.0.0.1:{port}/static/"
        files = {"path": str(self._page), "default_filename": "index.html"}
        application = _Application(
            [
                (r"/static/(.*)", _Files, files),
                (r"/favicon.ico", _NoIcon),
                (r"/", _Browser, {"server": self}),
            ],
            hosts=frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")),
            websocket_max_message_size=LARGEST_MESSAGE,
            websocket_ping_interval=PING,
            log_function=lambda handler: None,
        )
        self._server = tornado.httpserver.HTTPServer(application, max_body_size=LARGEST_MESSAGE)
        self._server.add_sockets(sockets)

    def _put(self, message: dict[str, Any], packed: bytes) -> None:
        self.scene.put(message, packed)
        for browser in self._browsers:
            browser.put(message, packed)

    def opened(self, browser: _Browser) -> SceneCommands:
        """A browser has connected; gives it all that it has to receive first."""
        self._browsers.add(browser)
        return self.scene.copy()

    def received(self) -> None:
        """A browser has received the scene."""
        self._connected.set()

    def gone(self, browser: _Browser) -> None:
        """A browser has gone away."""
        self._browsers.discard(browser)

    async def _stop(self) -> None:
        self._server.stop()
        for browser in self._browsers:
            browser.finish_sending()
        # A page opened a moment ago still gets its scene.
        end = self._loop.time() + FAREWELL
        while self._browsers and self._loop.time() < end:
            await asyncio.sleep(0.02)
        await self._server.close_all_connections()
        self._loop.call_soon(self._loop.stop)


class _Application(tornado.web.Application):
    """Routes of the server; whatever does not name this machine and our port as its host is refused."""

    def find_handler(self, request: HTTPServerRequest, **options: Any) -> Any:
        if request.headers.get("Host", "").lower() in self.settings["hosts"]:
            return super().find_handler(request, **options)
        return self.get_handler_delegate(request, _Refused)


def _refuse(handler: tornado.web.RequestHandler) -> None:
    """Answer 403 Forbidden."""
    handler.set_status(403)
    handler.set_header("Content-Type", "text/plain")
    handler.finish(f"Only for {' or '.join(sorted(handler.settings['hosts']))}.\n")


class _Refused(tornado.web.RequestHandler):
    """The answer to a request with a foreign host."""

    def prepare(self) -> None:
        _refuse(self)


class _Files(tornado.web.StaticFileHandler):
    """meshcat's page, never from the browser's cache: it changes with the installed meshcat."""

    def set_extra_headers(self, path: str) -> None:
        self.set_header("Cache-Control", "no-store")


class _NoIcon(tornado.web.RequestHandler):
    """No content, for the icon that every browser asks for."""

    def get(self) -> None:
        self.set_status(204)


class _Browser(tornado.websocket.WebSocketHandler):
    """The connection to one browser, and what it has not received yet."""

    def initialize(self, server: SceneServer) -> None:
        self.server = server
        self.sender: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        # A browser says which page opens the websocket. Other programs need not: they reach any port anyway.
        origin = self.request.headers.get("Origin")
        if origin is not None and origin.lower() not in {f"http://{host}" for host in self.settings["hosts"]}:
            _refuse(self)

    def check_origin(self, origin: str) -> bool:
        return True  # prepare has checked it

    def open(self, *_: str, **__: str) -> None:
        self.pending = self.server.opened(self)
        self.finishing = False
        self.wake = asyncio.Event()
        self.wake.set()
        self.sender = asyncio.create_task(self._send())

    def put(self, message: dict[str, Any], packed: bytes) -> None:
        """Send a command when the browser has received those before."""
        self.pending.put(message, packed)
        self.wake.set()

    def finish_sending(self) -> None:
        """Close the connection when the browser has received what is pending."""
        self.finishing = True
        self.wake.set()

    async def _send(self) -> None:
        # One message at a time: the rest stays where newer commands can take its place.
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            while not self.finishing:
                await self.wake.wait()
                self.wake.clear()
                while self.pending:
                    await self.write_message(self.pending.take(), binary=True)
                self.server.received()
        self.close()

    def on_message(self, message: str | bytes) -> None:
        """Nothing is asked of browsers, so nothing they say matters."""

    def on_close(self) -> None:
        self.server.gone(self)
        if self.sender is not None:
            self.sender.cancel()


# ---- the commands that a browser needs -----------------------------------------------------------

Key = tuple[str, str, str]


class SceneCommands:
    """Packed commands in the order in which a browser has to receive them.

    A command takes the place of earlier ones that it makes useless: a transform that of the same path, an
    object the old object with its properties, a deletion everything below its path. So the list grows with
    the scene and not with time: the server keeps the whole scene in one, and in another what a browser has
    not received yet.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def put(self, message: dict[str, Any], packed: bytes) -> None:
        """Take a command of meshcat: its message, with "type", "path" and perhaps a property, and its
        bytes.
        """
        kind, path = message["type"], "/".join(part for part in message["path"].split("/") if part)
        if kind == "delete":
            useless = [key for key in self._packed if not path or f"{key[0]}/".startswith(f"{path}/")]
        elif kind == "set_object":
            useless = [key for key in self._packed if key[:2] == (path, "set_property")]
        else:
            useless = []
        key = (path, kind, message.get("property", ""))
        for old in (*useless, key):
            self._packed.pop(old, None)
        self._packed[key] = packed

    def take(self) -> bytes:
        """Remove the first command and return it."""
        return self._packed.pop(next(iter(self._packed)))

    def copy(self) -> SceneCommands:
        """An independent copy of the commands."""
        other = SceneCommands()
        other._packed = dict(self._packed)
        return other

    def packed(self) -> list[bytes]:
        """All commands, first to last."""
        return list(self._packed.values())
