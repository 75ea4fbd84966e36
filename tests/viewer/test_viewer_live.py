"""The live viewer: it listens on this machine only, bakes motion, and ends with its script."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import umsgpack
import waiting
from meshcat.geometry import Mesh
from PIL import Image
from viewer_cases import made_up_motion, pendulum, scene_taken

from robokit.errors import RobokitError, ShapeError, UnknownName
from robokit.viewer import Viewer

SCRIPT = """
import sys, time
sys.path[:0] = {paths!r}
from viewer_cases import pendulum
from robokit.viewer import Viewer
viewer = Viewer(pendulum())
viewer.show(open_browser=False)
print(viewer.url, flush=True)
{ending}
"""


def alive(url):
    try:
        with urllib.request.urlopen(url, timeout=waiting.PATIENCE) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture
def viewer(shapes):
    with Viewer(pendulum(shapes=shapes)) as made:
        yield made


def test_it_listens_on_this_machine_only(viewer):
    viewer.show(open_browser=False)
    assert viewer.url.startswith("http://127.0.0.1:") and alive(viewer.url)
    port = int(viewer.url.split(":")[2].split("/")[0])
    with socket.socket() as other:
        # Any other address of the loopback network would answer to a server bound to every interface.
        other.settimeout(1.0)
        assert other.connect_ex(("127.0.0.2", port)) != 0


def test_it_ends_at_close_and_stays_closed(viewer):
    address = viewer.url
    assert alive(address)
    viewer.close()
    viewer.close()
    waiting.until(lambda: not alive(address))
    q = viewer.robot.neutral()
    motion = made_up_motion(viewer.robot, duration=0.1)
    for call in (
        lambda: viewer.url,
        lambda: viewer.show(open_browser=False),
        lambda: viewer.display(q),
        lambda: viewer.play(motion),
        lambda: viewer.look("front"),
        lambda: viewer.record(motion, "never.gif"),
        viewer.jupyter_cell,
    ):
        with pytest.raises(RobokitError, match="the viewer of 'pendulum' was closed; make a new one"):
            call()
    viewer.wait()
    assert "closed" in repr(viewer) and "closed" in viewer._repr_html_() and not alive(address)


def sent(viewer, kind):
    return [c for c in map(umsgpack.unpackb, scene_taken(viewer).packed()) if c["type"] == kind]


def test_it_looks_from_named_sides(viewer):
    places = {}
    for view in ("front", "right", "top"):
        viewer.look(view)
        (command,) = [c for c in sent(viewer, "set_property") if c["property"] == "position"]
        places[view] = np.array(command["value"]) / np.linalg.norm(command["value"])
    # In the camera's axes x is the robot's, y is up and z points to its right.
    for view, axis in (("front", [1, 0, 0]), ("right", [0, 0, 1]), ("top", [0, 1, 0])):
        assert np.allclose(places[view], axis, atol=0.04)
    with pytest.raises(UnknownName, match="no view named 'fornt'; did you mean 'front'"):
        viewer.look("fornt")


def test_colours_and_pictures_of_meshes_are_sent():
    from robokit.model.geometry import Placement
    from robokit.viewer.live import meshcat_geometry, meshcat_material
    from robokit.viewer.scene import Node, Triangles

    picture = io.BytesIO()
    Image.new("RGB", (2, 2), (200, 10, 10)).save(picture, "PNG")
    square = Triangles(
        np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]),
        np.array([[0, 1, 2], [0, 2, 3]]),
        colours=np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [0, 0, 0]]),
        uv=np.arange(12.0).reshape(2, 3, 2) / 12,
    )
    node = Node("link", 1, square, Placement(), (1, 1, 1, 1), "visual", picture=picture.getvalue())
    lowered = Mesh(meshcat_geometry(node.geometry), meshcat_material(node)).lower()
    attributes = lowered["geometries"][0]["data"]["attributes"]
    assert {name: a["itemSize"] for name, a in attributes.items()} == {
        "position": 3,
        "normal": 3,
        "color": 3,
        "uv": 2,
    }
    assert np.frombuffer(attributes["normal"]["array"].data, "<f4").reshape(6, 3)[0].tolist() == [0, 0, 1]
    assert np.allclose(np.frombuffer(attributes["uv"]["array"].data, "<f4"), square.uv.reshape(-1))
    assert lowered["materials"][0]["vertexColors"] and lowered["materials"][0]["map"]
    assert lowered["images"][0]["url"].startswith("data:image/")
    with pytest.warns(UserWarning, match="picture 'inside a mesh' of link 'link' is left out"):
        assert meshcat_material(replace(node, picture=b"nothing")).map is None


def test_display_moves_the_bodies(viewer):
    viewer.display(np.array([np.pi / 2, 0.0]))
    (transform,) = [c for c in sent(viewer, "set_transform") if c["path"].endswith("robot/2_lower")]
    matrix = np.array(transform["matrix"]).reshape(4, 4).T
    assert np.allclose(matrix[:3, 3], [-0.5, 0, 0], atol=1e-9)


def test_play_sends_one_animation(viewer):
    viewer.play(made_up_motion(viewer.robot, duration=0.5), speed=0.5)
    (animation,) = sent(viewer, "set_animation")
    clips = animation["animations"]
    assert len(clips) == 2 and clips[0]["clip"]["fps"] == 0.5
    assert clips[0]["clip"]["tracks"][0]["keys"][-1]["time"] == pytest.approx(0.5)


def test_a_wrong_configuration_is_named(viewer):
    with pytest.raises(ShapeError, match=r"q: expected one configuration, shape \(2,\), got \(3,\)"):
        viewer.display(np.zeros(3))
    with pytest.raises(ShapeError, match="speed"):
        viewer.play(made_up_motion(viewer.robot, duration=0.1), speed=0.0)


def test_a_notebook_cell_holds_the_page(viewer):
    assert f'<iframe src="{viewer.url}"' in viewer._repr_html_()


@pytest.mark.parametrize(
    ("ending", "stop"),
    [
        ("", None),
        ("raise ValueError('on purpose')", None),
        ("viewer.wait()", signal.SIGINT),
        ("time.sleep(1000)", signal.SIGKILL),
    ],
    ids=["end", "exception", "ctrl-c", "kill"],
)
def test_nothing_outlives_the_script(ending, stop):
    root = Path(__file__).parents[2]
    script = SCRIPT.format(paths=[str(root), str(root / "tests"), str(Path(__file__).parent)], ending=ending)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=dict(os.environ),
    )
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    if stop is not None:
        assert alive(address)
        process.send_signal(stop)
    process.wait(timeout=waiting.PATIENCE)
    assert not alive(address)
