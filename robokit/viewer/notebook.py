"""A robot or a motion in a notebook: a small still, and a button that opens its page.

The cell holds the still alone, some tens of kilobytes, and so does the notebook that is saved. The page is
made when the button is pressed, and comes from this Python process: the button works while that runs, in a
browser on the same machine or where its ports are forwarded. :func:`embed` puts the whole page into the cell
instead.
"""

from __future__ import annotations

import base64
import html
import io
import math
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.arguments import whole_number
from robokit.dataclass_tools import frozen
from robokit.errors import MissingDependency, RobokitError, WrongType, warnings_into
from robokit.meshes.surface import revolve
from robokit.model.geometry import Box, Capsule, Sphere
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.viewer.page import meshcat_page, page_html
from robokit.viewer.payload import one_robot
from robokit.viewer.scene import (
    Drawable,
    Node,
    Triangles,
    body_poses,
    bounds,
    drawn_size,
    ground_nodes,
    rotate,
    sane_frames,
    scene,
)

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from PIL.Image import Image

# ==== A picture of a robot or a motion without a browser: triangles with a depth buffer, in NumPy =
# From where the page looks at first, in its colours. Of a motion the start and the middle are shown faint,
# the end solid.

SIZE = (480, 300)  # width and height [px]
FINER = 2  # pixels that are drawn for one of the picture, along each side: smooth edges

FIELD_OF_VIEW = math.radians(30.0)
ELEVATION = math.radians(17.0)
AZIMUTHS = (math.radians(-58.0), math.radians(-32.0))  # of motions along x and along y
LIGHT = np.array([0.45, -0.75, 1.5]) / math.sqrt(0.45**2 + 0.75**2 + 1.5**2)  # direction towards the light
AMBIENT = 0.55  # share of a colour that is seen where no light falls

SKY, HORIZON = (251, 252, 254), (217, 223, 232)
SHADOW = 0.2  # share of the light that a shadow takes away
FAINT = (0.22, 0.4, 1.0)  # how solid the start, the middle and the end of a motion are
FILLED = 0.9  # share of the height, or of the width, that is filled
UNMOVED = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])  # the pose of the world
ROUND = 18  # edges of a circle
AT_ONCE = 1_000_000  # pixels of triangles that are looked at together: about 100 MB
Corners = tuple[np.ndarray, np.ndarray, np.ndarray]  # corners and normals (n, 3, 3), colours (n, 3)


def still(source: Robot | Trajectory, size: tuple[int, int] = SIZE) -> Image:
    """A picture of a robot or a trajectory as a Pillow image."""
    from PIL import Image

    robot, poses, floor, around = _shown(source)
    nodes = [node for node in scene(robot) if node.role == "visual"]
    own = [(node.body, _in_body(node)) for node in nodes]
    layers = [_joined([_moved(corners, pose[body]) for body, corners in own]) for pose in poses]
    fixed = _joined([_moved(_in_body(node), UNMOVED) for node in around])
    points = np.concatenate([places.reshape(-1, 3) for places, _, _ in layers])
    camera = _Camera(points, (size[0] * FINER, size[1] * FINER))
    picture = camera.background()
    camera.paint(picture, fixed, 1.0)
    for corners, solid in zip(layers, FAINT[-len(layers) :], strict=True):
        camera.shade(picture, corners[0], floor, solid)
        camera.paint(picture, corners, solid)
    image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
    return image.resize(size, Image.Resampling.BOX)


def _shown(source: Robot | Trajectory) -> tuple[Robot, np.ndarray, float | None, list[Node]]:
    """The robot, its poses (K, bodies, 7), the height of what it stands on, and what else there is."""
    if isinstance(source, Robot):
        robot = one_robot(source)
        poses = body_poses(robot, robot.neutral()[None])
        lowest = float(bounds(scene(robot), poses)[0, 2])
        return robot, poses, min(0.0, lowest) if robot.base == "fixed" else lowest, []
    if source.robot is None:
        raise RobokitError("a picture needs the robot: Trajectory.load(path, robot=...)")
    robot = one_robot(source.robot)
    poses = body_poses(robot, source.q)
    last = sane_frames(source.t, poses, drawn_size(robot, scene(robot))) - 1
    # By time, not by number: rows may be unevenly spaced.
    middle = int(np.abs(source.t[: last + 1] - 0.5 * (source.t[0] + source.t[last])).argmin())
    ground = source.ground
    level = ground is not None and ground.plane and ground.horizontal
    chosen = sorted({0, middle, last})
    around = [] if ground is None else ground_nodes(ground)
    return robot, poses[chosen], ground.height if level and ground else None, around


class _Camera:
    """Looks at points, (n, 3) or none, which fill a picture of width and height [px]."""

    def __init__(self, points: np.ndarray, size: tuple[int, int]) -> None:
        self.wide, self.high = size
        points = np.ascontiguousarray(points.T)  # NumPy goes along rows of millions several times as fast
        low, high = (points.min(axis=1), points.max(axis=1)) if points.size else (np.zeros(3), np.ones(3))
        azimuth = AZIMUTHS[0 if high[0] - low[0] >= high[1] - low[1] else 1]
        flat = np.array([math.cos(azimuth), math.sin(azimuth), 0.0])
        self.away = math.cos(ELEVATION) * flat + np.array([0.0, 0.0, math.sin(ELEVATION)])
        right = np.array([-flat[1], flat[0], 0.0])
        self.axes = np.array([right, np.cross(self.away, right), self.away])
        tangent = FILLED * math.tan(0.5 * FIELD_OF_VIEW)
        middle = self.axes @ (0.5 * (low + high))  # in the picture's axes, as are all points
        points = self.axes @ points
        for _ in range(4):  # what is near is larger: the middle of the picture is not that of the box
            right, up, near = points - middle[:, None]
            sides = np.maximum(np.abs(right) * (self.high / self.wide), np.abs(up))
            distance = max(float((near + sides / tangent).max(initial=0.0)), 0.05)
            if points.size:
                across = np.stack([right, up]) / (distance - near)
                middle[:2] += 0.5 * distance * (across.min(axis=1) + across.max(axis=1))
        self.place = middle @ self.axes + distance * self.away
        self.scale = 0.5 * self.high / math.tan(0.5 * FIELD_OF_VIEW)
        self.nearest = 0.02 * distance

    def background(self) -> np.ndarray:
        """(high, wide, 3), 0 to 255."""
        down = np.clip((np.arange(self.high) / self.high - 0.3) / 0.7, 0.0, 1.0)[:, None, None]
        picture = (1.0 - down) * np.array(SKY, dtype=float) + down * np.array(HORIZON, dtype=float)
        return np.repeat(picture, self.wide, axis=1)

    def paint(self, picture: np.ndarray, corners: Corners, solid: float) -> None:
        """Draw triangles into a picture, mixed with what is there."""
        places, normals, colours = corners
        # Mesh files may have their faces turned: each is lit on the side that is seen.
        facing = np.einsum("tki,tki->tk", normals, self.place - places)
        light = np.einsum("tki,i->tk", np.where(facing[..., None] < 0.0, -normals, normals), LIGHT)
        bright = AMBIENT + (1.0 - AMBIENT) * np.clip(light, 0.0, 1.0)
        at, which, share = self._seen(places)
        colour = colours[which] * (share * bright[which]).sum(axis=1)[:, None]
        flat = picture.reshape(-1, 3)
        flat[at] = (1.0 - solid) * flat[at] + solid * colour

    def shade(self, picture: np.ndarray, places: np.ndarray, floor: float | None, solid: float) -> None:
        """Darken the floor where triangles keep the light from it."""
        from PIL import Image, ImageFilter

        if floor is None:
            return
        down = places - LIGHT * ((places[..., 2:] - floor) / LIGHT[2])
        at, _, _ = self._seen(down)
        mask = np.zeros(self.high * self.wide, dtype=np.uint8)
        mask[at] = 255
        image = Image.fromarray(mask.reshape(self.high, self.wide))
        soft = np.asarray(image.filter(ImageFilter.GaussianBlur(2 * FINER)), dtype=float) / 255.0
        picture *= 1.0 - SHADOW * solid * soft[..., None]

    def _seen(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pixels that triangles cover, the foremost triangle there, and the shares of its corners in it."""
        x = (places - self.place) @ self.axes.T
        depth = -x[..., 2]
        ahead = (depth > self.nearest).all(axis=1)
        numbers, x, depth = np.flatnonzero(ahead), x[ahead], depth[ahead]
        u = 0.5 * self.wide + self.scale * x[..., 0] / depth
        v = 0.5 * self.high - self.scale * x[..., 1] / depth
        # The first and the last pixel, along each side, whose middle a triangle can cover.
        last = np.array([self.wide - 1, self.high - 1])
        low = np.maximum(np.ceil(np.stack([u.min(axis=1), v.min(axis=1)], axis=1) - 0.5), 0.0)
        high = np.minimum(np.floor(np.stack([u.max(axis=1), v.max(axis=1)], axis=1) - 0.5), last)
        onto = (high >= low).all(axis=1)
        near = np.full(self.high * self.wide, 0.0)
        which = np.full(self.high * self.wide, -1)
        share = np.zeros((self.high * self.wide, 3))
        # Triangles of about the same size have pixels in arrays of one shape.
        sizes = 2 ** np.ceil(np.log2(np.maximum(high - low + 1.0, 1.0))).astype(int)
        order = np.flatnonzero(onto)
        order = order[np.lexsort(sizes[order].T)]
        begins = np.flatnonzero((sizes[order[1:]] != sizes[order[:-1]]).any(axis=1)) + 1
        for alike in np.split(order, begins):
            size = sizes[alike[:1]].ravel()
            step = max(1, AT_ONCE // int(size.prod()))
            for first in range(0, len(alike), step):
                self._fill(alike[first : first + step], size, u, v, depth, low, near, which, share)
        at = np.flatnonzero(which >= 0)
        return at, numbers[which[at]], share[at]

    def _fill(
        self,
        some: np.ndarray,
        size: np.ndarray,
        u: np.ndarray,
        v: np.ndarray,
        depth: np.ndarray,
        low: np.ndarray,
        near: np.ndarray,
        which: np.ndarray,
        share: np.ndarray,
    ) -> None:
        """Take triangles into the depth buffer, all with pixels in rectangles of one size: width, height.

        near: 1 / depth of the foremost triangle of each pixel; which: its number; share: of its corners.
        """
        column = low[some, 0][:, None, None] + np.arange(size[0])[None, None, :]
        row = low[some, 1][:, None, None] + np.arange(size[1])[None, :, None]
        a, b, c = (np.stack([u[some, k], v[some, k]], axis=-1)[:, :, None, None] for k in range(3))
        x, y = column + 0.5, row + 0.5
        area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            of_b = ((x - a[:, 0]) * (c[:, 1] - a[:, 1]) - (y - a[:, 1]) * (c[:, 0] - a[:, 0])) / area
            of_c = ((b[:, 0] - a[:, 0]) * (y - a[:, 1]) - (b[:, 1] - a[:, 1]) * (x - a[:, 0])) / area
            of_a = 1.0 - of_b - of_c
            inside = (of_a >= 0.0) & (of_b >= 0.0) & (of_c >= 0.0)
        inside &= (x < self.wide) & (y < self.high)
        found = np.nonzero(inside)
        if not len(found[0]):
            return
        shares = np.stack([of_a[found], of_b[found], of_c[found]], axis=-1)
        closeness = (shares / depth[some][found[0]]).sum(axis=1)
        at = (row[found[0], found[1], 0] * self.wide + column[found[0], 0, found[2]]).astype(np.int64)
        order = np.argsort(closeness, kind="stable")  # sorted, so that the foremost triangle is written last
        order = order[closeness[order] > near[at[order]]]
        at = at[order]
        near[at], which[at], share[at] = closeness[order], some[found[0][order]], shares[order]


def _in_body(node: Node) -> Corners:
    """The triangles of a node in the frame of its body."""
    places, normals, colours = _triangles(node.geometry, np.array(node.rgba[:3], dtype=float))
    R, p = np.asarray(node.placement.rotation, float), np.asarray(node.placement.position, float)
    return places @ R.T + p, normals @ R.T, 255.0 * np.broadcast_to(colours, (len(places), 3))


def _moved(corners: Corners, pose: np.ndarray) -> Corners:
    """Triangles of a body in the world."""
    places, normals, colours = corners
    return rotate(pose[3:], places) + pose[:3], rotate(pose[3:], normals), colours


def _joined(parts: Sequence[Corners]) -> Corners:
    nothing = (np.zeros((0, 3, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3)))
    places, normals, colours = (np.concatenate(arrays) for arrays in zip(nothing, *parts, strict=True))
    return places, normals, colours


def _triangles(geometry: Drawable, colour: np.ndarray) -> Corners:
    if isinstance(geometry, Triangles):
        places = np.asarray(geometry.vertices, dtype=float)[geometry.faces]
        if geometry.colours is not None:
            colour = colour * np.asarray(geometry.colours, dtype=float)[geometry.faces].mean(axis=1) / 255.0
        return places, _flat(places), colour
    if isinstance(geometry, Box):
        square = np.array([[1, -1, -1], [1, 1, -1], [1, 1, 1], [1, -1, -1], [1, 1, 1], [1, -1, 1]], float)
        sides = [np.roll(sign * square, k, axis=1) for k in range(3) for sign in (1.0, -1.0)]
        places = 0.5 * np.reshape(sides, (12, 3, 3)) * np.asarray(geometry.size, dtype=float)
        return places, _flat(places), colour
    # Outlines (distance from the axis, height, and the normal's parts) of what is round about z.
    r = float(geometry.radius)
    half = 0.0 if isinstance(geometry, Sphere) else 0.5 * float(geometry.length)
    if isinstance(geometry, (Sphere, Capsule)):
        turn = np.linspace(-0.5 * np.pi, 0.5 * np.pi, ROUND // 2 + 2)
        turn = np.concatenate([turn[turn < 0], [0.0, 0.0], turn[turn > 0]])
        ends = np.where(np.arange(len(turn)) < len(turn) // 2, -half, half)
        outline = np.stack([r * np.cos(turn), r * np.sin(turn) + ends, np.cos(turn), np.sin(turn)], axis=1)
    else:
        outline = np.array(
            [
                [0, -half, 0, -1],
                [r, -half, 0, -1],
                [r, -half, 1, 0],
                [r, half, 1, 0],
                [r, half, 0, 1],
                [0, half, 0, 1],
            ],
            dtype=float,
        )
    places, faces = revolve(outline[:, :2], ROUND)
    return places[faces], revolve(outline[:, 2:], ROUND)[0][faces], colour


def _flat(places: np.ndarray) -> np.ndarray:
    """The normals of flat triangles, repeated for each corner."""
    across = np.cross(places[:, 1] - places[:, 0], places[:, 2] - places[:, 0])
    size = np.linalg.norm(across, axis=1, keepdims=True)
    return np.repeat((across / np.where(size > 0.0, size, 1.0))[:, None], 3, axis=1)


# ==== in a notebook cell ==========================================================================

HEIGHT = 620  # height of a cell with a whole page in it [px]

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
        content = io.BytesIO()
        still(source).save(content, "PNG", optimize=True)
        picture = content.getvalue()
    except RobokitError as error:
        said, reason = (html.escape(text) for text in (repr(source), f"not drawn: {error}"))
        return f"<pre>{said}</pre><p><small>{reason}</small></p>"
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


@frozen
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
        height: height of the cell [px].

    Returns:
        An object that a notebook displays as the page, in the last line of a cell or with ``display``.

    Raises:
        WrongType: source is neither a Robot nor a Trajectory, or height is not a whole number.
        RobokitError: there is no page of it, such as of a trajectory without its robot.

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


# ---- the server of the pages ---------------------------------------------------------------------
# One thread answers on 127.0.0.1, only requests that name this machine as their host and know an address that
# cannot be guessed. It ends with the process, and nothing is written to disk.

MOST_PAGES = 20  # number of cells whose robots and motions are kept; older ones are dropped


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
        """The address of a page that ``make`` writes when it is asked for; OSError without a free port."""
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
            with self._making, warnings_into([]):  # the cell has shown these warnings
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


PAGES = CellPages()  # the pages of this process
