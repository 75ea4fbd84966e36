"""A server for meshcat's web page that lives inside this process.

meshcat's own server is a second process that listens on every network interface and can outlive its script.
This one is a thread that listens on 127.0.0.1 only, so it ends with the script however the script ends.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from typing import Any

from robokit.errors import MissingDependency

FIRST_PORT = 7000
PORTS = 200


class SceneServer:
    """Holds the scene, serves the page and sends each browser the scene and its changes.

    It stands where meshcat's ViewerWindow stands: ``meshcat.Visualizer(window=SceneServer())``.

    Attributes:
        web_url: the page's address.
    """

    def __init__(self) -> None:
        try:
            from meshcat.servers.tree import SceneTree
        except ImportError as problem:
            raise MissingDependency(
                "the live viewer needs the meshcat package (0.3.2 or later): pip install meshcat"
            ) from problem
        self.web_url = ""
        self.websocket_pool: set[Any] = set()
        self._tree = SceneTree()
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
            self._loop.call_soon_threadsafe(self._store, message["type"], message["path"], packed)

    def wait_for_browser(self, timeout: float | None = None) -> bool:
        """Wait until a browser has opened the page [s]; tells whether one has."""
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

    # ---- called by meshcat's websocket handler, in the server's thread ----------------------------

    def send_scene(self, websocket: Any) -> None:
        """Send a browser that has just connected everything there is."""
        from meshcat.servers.tree import walk

        for node in walk(self._tree):
            for data in (node.object, *node.properties, node.transform, node.animation):
                if data is not None:
                    websocket.write_message(data, binary=True)
        self._connected.set()

    def send_image(self, data: str) -> None:
        """An image that a browser sends back; nobody has asked for one."""

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
        import tornado.httpserver
        import tornado.netutil
        import tornado.web
        from meshcat.servers import zmqserver

        files = {"path": zmqserver.VIEWER_ROOT, "default_filename": zmqserver.VIEWER_HTML}
        application = tornado.web.Application(
            [
                (r"/static/(.*)", zmqserver.StaticFileHandlerNoCache, files),
                (r"/favicon.ico", _nothing(tornado.web.RequestHandler)),
                (r"/", _quiet(zmqserver.WebSocketHandler), {"bridge": self}),
            ]
        )
        for port in (*range(FIRST_PORT, FIRST_PORT + PORTS), 0):
            try:
                sockets = tornado.netutil.bind_sockets(port, "127.0.0.1")
                break
            except OSError:
                continue
        self._server = tornado.httpserver.HTTPServer(application)
        self._server.add_sockets(sockets)
        self.web_url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/static/"

    def _store(self, kind: str, path: str, data: bytes) -> None:
        from meshcat.servers.tree import SceneTree, find_node

        names = [name for name in path.split("/") if name]
        for websocket in list(self.websocket_pool):
            websocket.write_message(data, binary=True)
        if kind == "delete":
            if names:
                find_node(self._tree, names[:-1]).pop(names[-1], None)
            else:
                self._tree = SceneTree()
            return
        node = find_node(self._tree, names)
        if kind == "set_object":
            node.object, node.properties = data, []
        elif kind == "set_transform":
            node.transform = data
        elif kind == "set_property":
            node.properties.append(data)
        elif kind == "set_animation":
            node.animation = data

    async def _stop(self) -> None:
        self._server.stop()
        for websocket in list(self.websocket_pool):
            # Closing queues behind what was written, so that a page opened a moment ago gets its scene.
            websocket.close()
        for _ in range(20):
            if not self.websocket_pool:
                break
            await asyncio.sleep(0.05)
        await self._server.close_all_connections()
        self._loop.call_soon(self._loop.stop)


def _nothing(handler: Any) -> Any:
    """A handler that answers with nothing, for the icon that every browser asks for."""

    class NoContent(handler):  # type: ignore[misc]
        def get(self) -> None:
            self.set_status(204)

    return NoContent


def _quiet(handler: Any) -> Any:
    """Meshcat's websocket handler without its prints."""

    class QuietHandler(handler):  # type: ignore[misc]
        def open(self, *args: str, **kwargs: str) -> None:
            self.bridge.websocket_pool.add(self)
            self.bridge.send_scene(self)

        def on_close(self) -> None:
            self.bridge.websocket_pool.discard(self)

    return QuietHandler
