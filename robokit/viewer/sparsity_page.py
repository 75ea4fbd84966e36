"""The page of several robots side by side: trees, patterns of H and of its factors, operation counts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from robokit.errors import WrongType
from robokit.files import output_path, write_text
from robokit.model.robot import Robot
from robokit.viewer.page import filled, joined, json_for_html, own_scripts
from robokit.viewer.payload import structure_payload

SIDE_BY_SIDE_SCRIPTS = (
    "base/util.js", "base/branches.js", "panels/tree.js", "panels/matrix.js", "panels/operations.js",
    "panels/structure.js", "side_by_side.js",
)  # fmt: skip
"""The page's scripts: those of the structure panel, and one that puts robots side by side."""

SIDE_BY_SIDE_STYLES = (
    "styles/theme.css", "styles/header.css", "styles/panels.css", "styles/plots.css", "styles/structure.css",
    "styles/matrix.css", "styles/side_by_side.css",
)  # fmt: skip


def write_sparsity_page(robots: Sequence[Robot], path: str | Path) -> Path:
    """Write a page that compares the structure of robots: tree, H and its factors, operation counts of each.

    Args:
        robots: the Robots, in the order in which they are shown; the same one may come with other bases.
        path: where to; ".html" is appended where there is no suffix.

    Returns:
        The path of the file.

    Raises:
        WrongType: anything but a list of robots.

    Example:
        >>> from robokit.viewer import write_sparsity_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_sparsity_page([robot, rk.load_urdf(rk.find_robot("arm"))], "two.html").name
        'two.html'
    """
    path = output_path("path", path, ".html")
    write_text(path, sparsity_html(robots))
    return path


def sparsity_html(robots: Sequence[Robot]) -> str:
    """The text of the page, as :func:`write_sparsity_page` writes it.

    Args:
        robots: the Robots.

    Raises:
        WrongType: anything but a list of robots.
    """
    if isinstance(robots, (str, Robot)) or not isinstance(robots, Sequence) or not robots:
        raise WrongType("robots", robots, "a list of one Robot or more, as [robot]")
    payloads = [structure_payload(robot) for robot in robots]
    names = ", ".join(dict.fromkeys(robot.name for robot in robots))
    parts = {
        "title": html.escape(f"Sparsity: {names}"),
        "styles": joined(SIDE_BY_SIDE_STYLES),
        "page": own_scripts(SIDE_BY_SIDE_SCRIPTS),
        "data": json_for_html(payloads),
    }
    return filled("side_by_side.html", parts)
