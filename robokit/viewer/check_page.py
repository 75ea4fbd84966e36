"""The page of a check: the robot as glass, its equivalent inertia boxes inside, the findings beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import Diagnostic
from robokit.viewer.page import render
from robokit.viewer.payload import pose_payload
from robokit.viewer.scene import INERTIA_COLOUR, inertia_box

ODD = ("inertia-not-psd", "inertia-triangle", "inertia-implausible", "density-implausible", "com-outside")
"""Codes whose links have a red box."""

ODD_COLOUR = (0.88, 0.19, 0.19, 0.55)


def write_check_page(robot: Any, diagnostics: Sequence[Diagnostic], path: str | Path) -> Path:
    """Write the page of a robot with its equivalent inertia boxes and what the importer found.

    Args:
        robot: the Robot.
        diagnostics: the findings, from :func:`robokit.urdf.check_urdf` or ``robot.diagnostics``.
        path: where to.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: meshcat is not installed.
    """
    path = Path(path)
    path.write_text(render(check_payload(robot, diagnostics)), encoding="utf-8")
    return path


def check_payload(robot: Any, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """The data of a robot's page, with ``check``: findings, the table of inertias, the mass of all links."""
    payload = pose_payload(robot)
    findings = [{**vars(d), "link": None, "body": None} for d in diagnostics]
    carriers = {f"link {link.name!r}": (link.name, link.body) for link in robot.links}
    carriers.update({f"joint {j.name!r}": (j.child_link, j.body) for j in robot.joints})
    for finding in findings:
        finding.pop("file")
        for words in (finding["element"], finding["element"].rpartition(" ")[0]):
            if words in carriers:
                finding["link"], finding["body"] = carriers[words]
    odd = {f["link"] for f in findings if f["code"] in ODD}
    size = payload["robot"]["size"]
    for node in payload["nodes"]:
        if node["role"] != "inertia":
            continue
        colour = ODD_COLOUR if node["link"] in odd else INERTIA_COLOUR
        # A box that dwarfs the robot would hide it.
        edge = max(payload["geometries"][node["geometry"]]["size"])
        node["rgba"] = [*colour[:3], round(max(0.05, colour[3] * min(1.0, 0.4 * size / edge)), 3)]
    rows = []
    for link in robot.links:
        inertia = inertia_box(link)
        if inertia is None:
            continue
        moments = np.linalg.eigvalsh(np.asarray(link.inertia, dtype=float))
        rows.append(
            {
                "link": link.name,
                "body": int(link.body),
                "mass": float(link.mass),
                "box": list(inertia[0].size),
                "moments": [float(x) for x in moments],
                "odd": link.name in odd,
            }
        )
    total = sum(float(link.mass) for link in robot.links)
    payload["check"] = {"findings": findings, "inertias": rows, "mass": total}
    return payload
