"""Showing robots: a self-contained HTML page, a live view in meshcat, pictures of the mass matrix.

    scene                a robot and the ground as lists of nodes, placed on bodies, and poses of the bodies
    payload_keys         the keys of a page's data, for Python and JavaScript alike
    payload              the data of a page, of a motion or of a pose; events, tables by link and by joint
    motion_data          frames, curves and figures of a motion; contact forces; arrays as base64 text
    live_data            the step of a run as WebAssembly, its driven joints and their targets
    walk_data            inside the algorithms: their lines, what each reads and writes, the traced graph
    page                 the page: one HTML file, from payload and assets/; of a check; of two runs
    film                 films and pictures of a page, in Chromium without a window
    notebook             a robot or a motion in a notebook cell: a picture without a browser and a button
    live                 Viewer: meshcat with Python in the loop
    server               the live view's web server, and the commands that a browser needs
    mass_matrix_figure   the tree beside H and its factors, with matplotlib

matplotlib, meshcat and trimesh are imported only by what uses them.
"""

from robokit.viewer.film import write_film, write_picture
from robokit.viewer.live import Viewer
from robokit.viewer.mass_matrix_figure import draw_sparsity, sparsity_figure
from robokit.viewer.motion_data import Curve
from robokit.viewer.notebook import embed
from robokit.viewer.page import (
    compare,
    page_html,
    write_check_page,
    write_page,
    write_pose_page,
    write_sparsity_page,
)
from robokit.viewer.scene import Node, scene

__all__ = [
    "Curve",
    "Node",
    "Viewer",
    "compare",
    "draw_sparsity",
    "embed",
    "page_html",
    "scene",
    "sparsity_figure",
    "write_check_page",
    "write_film",
    "write_page",
    "write_picture",
    "write_pose_page",
    "write_sparsity_page",
]
