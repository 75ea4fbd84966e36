"""Showing robots: a self-contained HTML page, a live view in meshcat, pictures of the mass matrix.

    nodes                a thing to draw: shape, colour, placement on a body, pictures as data URIs
    scene                a robot and the ground as lists of nodes
    poses                poses of bodies, frames of a motion, bounding boxes
    payload_keys         the keys of a page's data, for Python and JavaScript alike
    payload              the data of a page, of a motion or of a pose
    data/                its parts: frames, curves and figures of a motion, patterns of the mass matrix
    walk/                inside the algorithms: their own text recorded line by line
    page                 the page: one HTML file, from payload and assets/
    sparsity_page        the page of several robots side by side: trees, patterns, counts
    check_page           the page of a check: findings and inertia boxes
    comparison           two runs in one page
    film                 films and pictures of a page
    still                a picture without a browser, in NumPy
    notebook             a robot or a motion in a notebook cell: a still and a button
    looks                from where a camera looks
    headless_browser     a page in Chromium without a window
    live                 Viewer: meshcat with Python in the loop
    meshcat_shapes       shapes, surfaces and placements in meshcat's terms
    server               the live view's web server, and the commands that a browser needs
    meshcat_page         where meshcat's own web page is
    mass_matrix_figure   the tree beside H and its factors, with matplotlib

matplotlib, meshcat and trimesh are imported only by what uses them.
"""

from robokit.viewer.check_page import write_check_page
from robokit.viewer.comparison import compare
from robokit.viewer.data.own_curves import Curve
from robokit.viewer.film import write_film, write_picture
from robokit.viewer.live import Viewer
from robokit.viewer.mass_matrix_figure import draw_sparsity, sparsity_figure
from robokit.viewer.nodes import Node
from robokit.viewer.notebook import embed
from robokit.viewer.page import page_html, write_page, write_pose_page
from robokit.viewer.scene import scene
from robokit.viewer.sparsity_page import write_sparsity_page

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
