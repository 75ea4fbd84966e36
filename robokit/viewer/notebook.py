"""A robot or a motion in a notebook: its page inside the cell.

The page is part of the cell's output: it needs no server and no port, so it works on a Jupyter elsewhere and
in a notebook that was saved.
"""

from __future__ import annotations

import html

from robokit.errors import MissingDependency, RobokitError
from robokit.model.robot import Robot
from robokit.sim.record import Trajectory
from robokit.viewer.page import page_html

HEIGHT = 620
"""Of a cell [px]."""


def notebook_html(source: Robot | Trajectory, height: int = HEIGHT) -> str:
    """The page of a robot or a motion as the HTML of a notebook's cell.

    Args:
        source: a Robot or a Trajectory.
        height: of the cell [px].

    Returns:
        An iframe that holds the whole page. What cannot be shown (a robot with samples of masses, a
        trajectory without its robot), or needs a package that is not there, is its text and the reason.
    """
    try:
        page = page_html(source)
    except MissingDependency as error:
        return _text(source, str(error))
    except RobokitError as error:
        return _text(source, f"not drawn: {error}")
    # Without allow-same-origin the page cannot reach the notebook around it.
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" title="{html.escape(repr(source), quote=True)}" '
        f'sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{int(height)}px;border:1px solid #d8dde5;border-radius:8px"></iframe>'
    )


def _text(source: Robot | Trajectory, reason: str) -> str:
    return f"<pre>{html.escape(repr(source))}</pre><p><small>{html.escape(reason)}</small></p>"
