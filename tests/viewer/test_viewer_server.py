"""The live view's server: whom it answers, and what a browser that leaves or stalls does to the others."""

from __future__ import annotations

import base64
import socket
import struct
import tracemalloc

import numpy as np
import pytest
import umsgpack
import waiting
from viewer_cases import made_up_motion, pendulum, scene_taken

from robokit.viewer import Viewer


@pytest.fixture
def viewer():
    with Viewer(pendulum()) as made:
        made.show(open_browser=False)
        yield made


def port_of(viewer):
    return int(viewer.url.split(":")[2].split("/")[0])


def ask(viewer, path="/static/", receive_buffer=None, **headers):
    """A raw request on a connection of its own: the socket and the status of the answer."""
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(waiting.PATIENCE)
    connection.connect(("127.0.0.1", port_of(viewer)))
    headers = {"Host": f"127.0.0.1:{port_of(viewer)}", **headers}
    version = "1.1" if headers["Host"] is not None else "1.0"
    lines = [f"GET {path} HTTP/{version}", *(f"{k}: {v}" for k, v in headers.items() if v is not None)]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1)
    return connection, int(head.split()[1])


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
}


def browser(viewer, **options):
    """The socket of a websocket that stands."""
    connection, status = ask(viewer, "/", **UPGRADE, **options)
    assert status == 101
    return connection


def messages(connection, until):
    """Commands received on a websocket, up to the one that fulfils a condition."""

    def exactly(n):
        data = b""
        while len(data) < n:
            piece = connection.recv(n - len(data))
            assert piece, "the server has closed the connection"
            data += piece
        return data

    found = []
    while not (found and until(found[-1])):
        opcode, size = exactly(2)
        if size > 125:
            size = struct.unpack(*((">H", exactly(2)) if size == 126 else (">Q", exactly(8))))[0]
        payload = exactly(size)
        if opcode & 0xF == 2:
            found.append(umsgpack.unpackb(payload))
    return found


def moves(value):
    """A condition: the transform that puts something at this x."""
    return lambda command: command["type"] == "set_transform" and command["matrix"][12] == value


def at(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:{port}",
        None,
    ],
)
@pytest.mark.parametrize(("path", "headers"), [("/static/", {}), ("/static/main.min.js", {}), ("/", UPGRADE)])
def test_a_foreign_host_is_refused(viewer, host, path, headers):
    # A page of evil.example whose name leads to 127.0.0.1 could read the scene otherwise.
    host = host and host.format(port=port_of(viewer))
    connection, status = ask(viewer, path, **{**headers, "Host": host})
    connection.close()
    assert status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_this_machine_is_answered(viewer, name):
    host = f"{name}:{port_of(viewer)}"
    for path, headers, expected in (("/static/", {}, 200), ("/", UPGRADE, 101)):
        connection, status = ask(viewer, path, **{**headers, "Host": host})
        connection.close()
        assert status == expected


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://evil.example", 403),
        ("null", 403),
        ("http://localhost:1", 403),
        ("https://127.0.0.1:{port}", 403),
        ("http://127.0.0.1:{port}", 101),
        ("http://localhost:{port}", 101),
        (None, 101),
    ],
)
def test_only_our_own_page_gets_a_websocket(viewer, origin, expected):
    origin = origin and origin.format(port=port_of(viewer))
    connection, status = ask(viewer, "/", **UPGRADE, Origin=origin)
    connection.close()
    assert status == expected


def test_a_browser_that_goes_away_takes_nothing_from_the_others(viewer, capfd):
    stays = browser(viewer)
    messages(stays, lambda command: command["path"].startswith("/Cameras"))
    for k in range(30):
        leaves = browser(viewer)
        # A reset: the server has not heard of it when it sends the next update.
        leaves.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        leaves.close()
        for j in range(10):
            viewer.meshcat["mark"].set_transform(at(k + j / 16))
        messages(stays, moves(k + 9 / 16))
    waiting.until(lambda: len(viewer.meshcat.window._browsers) == 1)
    assert capfd.readouterr().err == ""


def test_a_browser_that_never_reads_holds_no_more_than_the_scene(viewer):
    import meshcat.geometry as g

    stalled = browser(viewer, receive_buffer=4096)
    heavy = g.TriangularMeshGeometry(np.zeros((20_000, 3), np.float32), np.zeros((1, 3), np.uint32))
    viewer.meshcat["heavy"].set_object(heavy)
    tracemalloc.start()
    try:
        for k in range(400):  # 96 MB
            viewer.meshcat["heavy"].set_object(heavy)
            viewer.meshcat["mark"].set_transform(at(float(k)))
        seen = browser(viewer)
        messages(seen, moves(399.0))
        assert tracemalloc.get_traced_memory()[0] < 8e6
    finally:
        tracemalloc.stop()
    # When it reads on, it gets what is newest.
    late = messages(stalled, moves(399.0))
    assert sum(command["path"].endswith("/mark") for command in late) < 100


def test_a_server_with_a_stalled_browser_still_ends(viewer):
    stalled = browser(viewer, receive_buffer=4096)
    import meshcat.geometry as g

    heavy = g.TriangularMeshGeometry(np.zeros((400_000, 3), np.float32), np.zeros((1, 3), np.uint32))
    viewer.meshcat["heavy"].set_object(heavy)
    server = viewer.meshcat.window
    viewer.close()
    waiting.until(lambda: server.closed)
    stalled.close()


def test_what_a_browser_says_is_ignored(viewer, capfd):
    talks = browser(viewer)
    talks.sendall(bytes([0x81, 0x83, 0, 0, 0, 0]) + b"hi!")  # a masked text message
    talks.sendall(bytes([0x82, 0xFF]) + struct.pack(">Q", 1 << 40) + bytes(4))  # a message of a terabyte
    viewer.meshcat["mark"].set_transform(at(1.0))
    listens = browser(viewer)
    messages(listens, moves(1.0))
    assert capfd.readouterr().err == ""


def test_the_scene_does_not_grow_with_time(viewer):
    motion = made_up_motion(viewer.robot, duration=0.1)
    sizes = []
    for _ in range(3):
        viewer.play(motion)
        viewer.display(viewer.robot.neutral())
        sizes.append(len(scene_taken(viewer)))
    assert sizes[0] == sizes[1] == sizes[2]
