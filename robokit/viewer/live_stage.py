"""What stands round the robot in meshcat's live view: camera, grid and ground."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.sim.ground import Ground
from robokit.viewer.ground_nodes import ground_nodes
from robokit.viewer.looks import direction
from robokit.viewer.meshcat_shapes import meshcat_geometry, meshcat_material, node_matrix
from robokit.viewer.nodes import Node

FIELD_OF_VIEW = 36

FAR = 1.75
"""Distance of the camera over the diagonal of what it shows."""


class LiveStage:
    """Camera, grid and ground of a live view.

    Attributes:
        meshcat: the Visualizer, once there is one.
        view: name of the side from which the camera looks.
    """

    def __init__(self) -> None:
        self.meshcat: Any = None
        self.view = "corner"
        self._reach = 1.0
        self._grid = np.eye(4)

    def frame(self, box: np.ndarray, ground: float | None) -> None:
        """Bring a box into view and the grid to the ground.

        meshcat's camera always turns about the origin of the page's scene. So the scene is moved instead of
        the camera.

        Args:
            box: lowest and highest corner, (2, 3) [m].
            ground: its height [m], or None where there is no plane.
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
        """Put the camera on one side of the robot.

        Args:
            view: one of :data:`robokit.viewer.looks.LOOKS`.
        """
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
    place.set_transform(node_matrix(node))
