"""Seeing robots: one self-contained page, meshcat live, pictures of the mass matrix.

    write_page, page_html   a motion or a pose as one HTML file           page.py
    write_check_page        inertia boxes and the importer's findings     findings.py
    Viewer                  meshcat with Python in the loop               live.py
    sparsity_figure, draw_sparsity    tree, H and its factors             sparsity.py
    scene                   what there is to draw                         scene.py

matplotlib, meshcat and trimesh are imported only by what uses them.
"""

from robokit.viewer.check_page import write_check_page
from robokit.viewer.live import Viewer
from robokit.viewer.mass_matrix_figure import draw_sparsity, sparsity_figure
from robokit.viewer.nodes import Node
from robokit.viewer.page import page_html, write_page, write_pose_page
from robokit.viewer.scene import scene

__all__ = [
    "Node",
    "Viewer",
    "draw_sparsity",
    "page_html",
    "scene",
    "sparsity_figure",
    "write_check_page",
    "write_page",
    "write_pose_page",
]
