"""The live viewer: meshcat with Python in the loop.

    with robokit.viewer.Viewer(robot) as viewer:
        viewer.show()
        viewer.display(q)
        viewer.look("front")
        viewer.play(trajectory, speed=0.5)
        viewer.record(trajectory, "fall.mp4")
        viewer.wait()

The browser gets a whole motion at once and plays it by itself.
"""

from __future__ import annotations

import html
import math
import re
import time
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError, ShapeError, WrongType, library
from robokit.meshes.surface import revolve
from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.trajectory import Trajectory
from robokit.viewer.film import SIZE, angles_of, direction, write_film
from robokit.viewer.page import meshcat_page
from robokit.viewer.payload import one_configuration, one_robot
from robokit.viewer.scene import (
    Drawable,
    Node,
    Triangles,
    body_poses,
    bounds,
    frame_indices,
    ground_nodes,
    picture_of,
    rotate,
    scene,
)

# ==== Shapes, surfaces and placements in meshcat's terms ==========================================

REPEAT = 1000  # three.js' number of a picture that repeats


def meshcat_geometry(geometry: Drawable) -> Any:
    """A geometry as one of meshcat's."""
    import meshcat.geometry as g

    if isinstance(geometry, Box):
        return g.Box(list(geometry.size))
    if isinstance(geometry, Sphere):
        return g.Sphere(geometry.radius)
    if isinstance(geometry, Cylinder):
        return g.Cylinder(geometry.length, geometry.radius)
    triangles = capsule_triangles(geometry) if isinstance(geometry, Capsule) else geometry
    if triangles.uv is not None or triangles.colours is not None:
        return _painted(triangles)
    return g.TriangularMeshGeometry(
        np.asarray(triangles.vertices, dtype=np.float32), np.asarray(triangles.faces, dtype=np.uint32)
    )


def _painted(triangles: Triangles) -> Any:
    """Triangles with colours or picture coordinates, which their corners have one by one."""
    import meshcat.geometry as g

    corners = triangles.faces.reshape(-1)
    edges = triangles.vertices[triangles.faces]
    normals = np.zeros_like(triangles.vertices)
    across = np.cross(edges[:, 1] - edges[:, 0], edges[:, 2] - edges[:, 0])
    np.add.at(normals, corners, np.repeat(across, 3, axis=0))
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    attributes = {"position": triangles.vertices[corners], "normal": normals[corners]}
    if triangles.colours is not None:
        attributes["color"] = triangles.colours[corners] / 255.0
    if triangles.uv is not None:
        attributes["uv"] = triangles.uv.reshape(-1, 2)
    packed = {name: g.pack_numpy_array(np.asarray(a, np.float32).T) for name, a in attributes.items()}

    class Painted(g.Geometry):  # type: ignore[misc]
        def lower(self, _: Any) -> dict[str, Any]:
            return {"uuid": self.uuid, "type": "BufferGeometry", "data": {"attributes": packed}}

    return Painted()


def meshcat_material(node: Node) -> Any:
    """The surface of a node as one of meshcat's materials; a picture that cannot be read is left out.

    Warns:
        UserWarning: a picture that cannot be read.
    """
    import meshcat.geometry as g

    red, green, blue = (round(255 * channel) for channel in node.rgba[:3])
    opacity = float(node.rgba[3])
    painted = isinstance(node.geometry, Triangles) and node.geometry.colours is not None
    return g.MeshLambertMaterial(
        color=(red << 16) + (green << 8) + blue,
        opacity=opacity,
        transparent=opacity < 1.0,
        vertexColors=painted and node.role == "visual",
        map=_texture(node),
    )


def _texture(node: Node) -> Any:
    """The picture of a node as one of meshcat's textures, or None."""
    import meshcat.geometry as g

    uri = picture_of(node)
    if uri is None:
        return None

    class Picture(g.Image):  # type: ignore[misc]
        def lower(self, _: Any) -> dict[str, Any]:
            return {"uuid": self.uuid, "url": uri}

    return g.ImageTexture(Picture(), wrap=[REPEAT, REPEAT])


def capsule_triangles(capsule: Capsule, around: int = 24, rings: int = 8) -> Triangles:
    """A capsule as one closed surface, wound outward: a tube along z with a half sphere on each end.

    Its rings, so many on each half sphere, have ``around`` corners.
    """
    up = np.insert(np.linspace(-np.pi / 2, np.pi / 2, 2 * rings), rings, [0.0, 0.0])
    shift = np.where(np.arange(len(up)) <= rings, -0.5, 0.5) * capsule.length
    outline = np.stack([capsule.radius * np.cos(up), capsule.radius * np.sin(up) + shift], axis=1)
    return Triangles(*revolve(outline, around))


# ==== the live view ===============================================================================

SHOWN = {"visual": True, "collision": False, "inertia": False, "axis": False}
"""Which roles are shown at the start; the controls of meshcat's page switch them."""


class Viewer:
    """A robot in meshcat, in a browser window or a notebook cell.

    The server runs in this process on 127.0.0.1 and ends at :meth:`close`, at the end of the script, on
    Ctrl-C and on an exception. A closed viewer cannot be reopened.

    Args:
        robot: the Robot.
        max_triangles: a mesh is simplified to about this many triangles; None shares a number that browsers
            draw smoothly among all meshes.
    """

    def __init__(self, robot: Robot, max_triangles: int | None = None) -> None:
        self.robot = one_robot(robot)
        self._nodes = scene(robot, max_triangles)
        self._server: Any = None
        self._meshcat: Any = None
        names = (robot.body_name(i) for i in range(len(robot.tree.parent)))
        self._names = [f"{i}_{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}" for i, name in enumerate(names)]
        self._closed = False
        self._stage = LiveStage()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else self._server.web_url if self._server else "not shown yet"
        return f"<Viewer of {self.robot.name!r}: {state}>"

    def _repr_html_(self) -> str:
        """The view as a notebook cell."""
        return f"<pre>{html.escape(repr(self))}</pre>" if self._closed else self.jupyter_cell()

    @property
    def url(self) -> str:
        """The address of the page; starts the server if it is not running."""
        return str(self._start().window.web_url)

    @property
    def meshcat(self) -> Any:
        """The meshcat.Visualizer of this viewer, for your own drawings."""
        return self._start()

    def show(self, open_browser: bool = True, timeout: float = 10.0) -> Viewer:
        """Start the server, send the robot at its neutral configuration and open a browser window.

        Args:
            open_browser: whether to open one; otherwise visit :attr:`url`.
            timeout: how long to wait for the browser [s], so that the script may end afterwards.

        Returns:
            The viewer itself.

        Raises:
            MissingDependency: meshcat is not installed.
            RobokitError: the viewer was closed.
        """
        self._start()
        if open_browser and webbrowser.open(self.url, new=2):
            self._server.wait_for_browser(timeout)
        return self

    def display(self, q: np.ndarray) -> None:
        """Show a configuration.

        Args:
            q: (nq,) [rad | m | unit quaternion wxyz].

        Raises:
            ShapeError: q is not one configuration.
        """
        poses = body_poses(self.robot, one_configuration(self.robot, q)[None])[0]
        root = self._start()["robot"]
        for body in range(1, len(poses)):
            pose = poses[body]
            matrix = np.eye(4)
            matrix[:3, :3] = rotate(pose[None, 3:], np.eye(3)).T
            matrix[:3, 3] = pose[:3]
            root[self._names[body]].set_transform(matrix)

    def play(
        self, trajectory: Trajectory, speed: float = 1.0, repetitions: int = 1, max_fps: float = 60.0
    ) -> None:
        """Send a motion as one animation and play it; meshcat's controls pause, scrub and repeat it.

        Args:
            trajectory: the Trajectory.
            speed: seconds of motion per second.
            repetitions: how many times.
            max_fps: largest number of frames per second.

        Raises:
            ShapeError: a speed that is not positive.
        """
        if not 0 < speed < np.inf:
            raise ShapeError(f"speed: expected a positive number, got {speed!r}")
        root = self._start()["robot"]
        from meshcat.animation import Animation, AnimationClip, AnimationTrack

        t = np.asarray(trajectory.t, dtype=float)
        chosen = frame_indices(t, max_fps)
        times = (t[chosen] - t[0]).tolist()
        poses = body_poses(self.robot, np.asarray(trajectory.q)[chosen])
        ground = trajectory.ground
        height = ground.height if ground is not None and ground.plane else None
        self._stage.frame(bounds(self._nodes, poses), height)
        if ground is not None:
            self._stage.show_ground(ground)
        animation = Animation()
        for body in range(1, poses.shape[1]):
            tracks = {
                name: AnimationTrack(name, kind, times, poses[:, body, part].tolist())
                for name, kind, part in (
                    ("position", "vector3", slice(3)),
                    ("quaternion", "quaternion", slice(3, 7)),
                )
            }
            # meshcat divides key times by fps: with fps = speed they are the trajectory's seconds.
            animation.clips[root[self._names[body]].path] = AnimationClip(tracks, fps=speed)
        self._start().set_animation(animation, play=True, repetitions=repetitions)

    def look(self, view: str) -> None:
        """Place the camera.

        Args:
            view: "front", "back", "left", "right", "top" or "corner".

        Raises:
            UnknownName: there is no such view.
        """
        angles_of(view)
        self._start()
        self._stage.look(view)

    def record(
        self,
        trajectory: Trajectory,
        path: str | Path,
        size: tuple[int, int] = SIZE,
        fps: float = 30.0,
        speed: float = 1.0,
    ) -> Path:
        """Write a motion as a film, with the camera of this viewer.

        The film shows the view of robokit's page (:func:`robokit.viewer.write_film`); no browser window is
        opened.

        Args:
            trajectory: the Trajectory.
            path: path of the film, with the suffix ".mp4" or ".gif".
            size: width and height [px].
            fps: frames per second.
            speed: seconds of motion per second of film.

        Returns:
            The path of the file.

        Raises:
            RobokitError: the viewer was closed.
            MissingDependency: Playwright, Chromium, or for an MP4 imageio-ffmpeg is not there.
        """
        self._check_open()
        if not isinstance(trajectory, Trajectory):
            raise WrongType("trajectory", trajectory, "a Trajectory")
        return write_film(trajectory, path, size, fps, speed, look=self._stage.view)

    def wait(self) -> None:
        """Keep the script alive until Ctrl-C or :meth:`close`."""
        try:
            while self._server is not None and not self._server.closed:
                time.sleep(0.2)
        except KeyboardInterrupt:
            pass

    def close(self) -> None:
        """Stop the server; the browser keeps the last picture. Calling it again does nothing."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        self._server = self._meshcat = None

    def jupyter_cell(self, height: int = 480) -> str:
        """HTML of a notebook cell that contains the view.

        Args:
            height: height of the cell [px].

        Returns:
            An iframe on the running server.
        """
        address = html.escape(self.url, quote=True)
        return f'<iframe src="{address}" style="width:100%;height:{int(height)}px;border:0"></iframe>'

    def _check_open(self) -> None:
        """Raise RobokitError if the viewer was closed."""
        if self._closed:
            raise RobokitError(f"the viewer of {self.robot.name!r} was closed; make a new one: Viewer(robot)")

    def _start(self) -> Any:
        """The Visualizer with the robot in it, made at the first use; RobokitError after :meth:`close`."""
        self._check_open()
        if self._meshcat is None:
            page = meshcat_page()
            meshcat = library("meshcat", "live", "the live view")
            from robokit.viewer.server import SceneServer

            self._server = SceneServer(page)
            self._meshcat = self._stage.meshcat = meshcat.Visualizer(window=self._server)
            root = self._meshcat["robot"]
            switched: set[tuple[int, str]] = set()
            for k, node in enumerate(self._nodes):
                place = root[self._names[node.body]][node.role]
                send_node(place[str(k)], node)
                if (node.body, node.role) not in switched:
                    switched.add((node.body, node.role))
                    place.set_property("visible", SHOWN[node.role])
            for key, colour in (("top_color", [0.98, 0.99, 1.0]), ("bottom_color", [0.83, 0.86, 0.91])):
                self._meshcat["/Background"].set_property(key, colour)
            neutral = self.robot.neutral()
            self.display(neutral)
            poses = body_poses(self.robot, neutral[None])
            box = bounds(self._nodes, poses)
            self._stage.frame(box, float(box[0, 2]) if self.robot.base == "floating" else 0.0)
        return self._meshcat


# ---- camera, grid and ground ---------------------------------------------------------------------

FIELD_OF_VIEW = 36

FAR = 1.75  # distance of the camera over the diagonal of what it shows


class LiveStage:
    """Camera, grid and ground of a live view.

    ``meshcat``: the Visualizer, once there is one; ``view``: name of the side from which the camera looks.
    """

    def __init__(self) -> None:
        self.meshcat: Any = None
        self.view = "corner"
        self._reach = 1.0
        self._grid = np.eye(4)

    def frame(self, box: np.ndarray, ground: float | None) -> None:
        """Bring a box, (2, 3) [m], into view and the grid to the ground's height [m], None without a plane.

        meshcat's camera always turns about the origin of the page's scene. So the scene is moved instead of
        the camera.
        """
        shift = np.eye(4)
        shift[:3, 3] = -box.mean(axis=0)
        for path in ("/meshcat", "/Axes"):
            self.meshcat[path].set_transform(shift)
        shift[2, 3] += ground or 0.0
        self._grid = shift
        self.meshcat["/Grid"].set_transform(shift)
        self.meshcat["/Grid"].set_property("visible", ground is not None)
        self._reach = float(np.linalg.norm(np.ptp(box, axis=0)))
        self.meshcat["/Cameras/default/rotated/<object>"].set_property("fov", FIELD_OF_VIEW)
        self.look(self.view)

    def look(self, view: str) -> None:
        """Put the camera on one side of the robot: one of :data:`robokit.viewer.film.LOOKS`."""
        self.view = view
        x, y, z = FAR * self._reach * direction(view)
        # In the camera's axes y is up.
        camera = self.meshcat["/Cameras/default/rotated/<object>"]
        camera.set_property("position", [float(x), float(z), float(-y)])

    def show_ground(self, ground: Ground) -> None:
        """Tilt the grid as the plane, and show height field and solids in place of those before."""
        x, _, z = ground.up
        self._grid[:3, 2] = ground.up
        self._grid[:3, 0] = np.array([z, 0.0, -x]) / math.hypot(x, z)
        self._grid[:3, 1] = np.cross(self._grid[:3, 2], self._grid[:3, 0])
        self.meshcat["/Grid"].set_transform(self._grid)
        self.meshcat["ground"].delete()
        for k, node in enumerate(ground_nodes(ground)):
            send_node(self.meshcat["ground"][str(k)], node)


def send_node(place: Any, node: Node) -> None:
    """Put a node's shape, surface and placement at a path of meshcat's scene."""
    place.set_object(meshcat_geometry(node.geometry), meshcat_material(node))
    # meshcat's cylinders lie along y.
    matrix = np.eye(4)
    matrix[:3, :3] = node.placement.rotation
    matrix[:3, 3] = node.placement.position
    if isinstance(node.geometry, Cylinder):
        matrix[:3, :3] = matrix[:3, :3] @ np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    place.set_transform(matrix)
