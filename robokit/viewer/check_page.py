"""The page of a check: the robot as glass, its equivalent inertia boxes inside, the findings beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from robokit.errors import Diagnostic
from robokit.files import output_path, write_text
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.robot import Robot
from robokit.viewer.page import render
from robokit.viewer.payload import pose_payload
from robokit.viewer.payload_keys import CheckData, FindingData, InertiaData, Payload
from robokit.viewer.scene import INERTIA_COLOUR

ODD = ("inertia-not-psd", "inertia-triangle", "inertia-implausible", "density-implausible", "com-outside")
"""Findings that make a link's box red."""

ODD_COLOUR = (0.88, 0.19, 0.19, 0.55)


def write_check_page(robot: Robot, diagnostics: Sequence[Diagnostic], path: str | Path) -> Path:
    """Write the page of a robot with its equivalent inertia boxes and the findings of the importer.

    Args:
        robot: the Robot.
        diagnostics: the findings, from :func:`robokit.urdf.check_urdf` or ``robot.diagnostics``.
        path: where to.

    Returns:
        The path of the file.

    Raises:
        MissingDependency: meshcat is not installed.

    Example:
        >>> from robokit.viewer import write_check_page
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> write_check_page(robot, robot.diagnostics, "check.html").name
        'check.html'
    """
    path = output_path("path", path, ".html")
    write_text(path, render(check_payload(robot, diagnostics)))
    return path


def check_payload(robot: Robot, diagnostics: Sequence[Diagnostic]) -> Payload:
    """The data of a robot's page with the findings, and with the boxes of doubtful inertias in red."""
    payload = pose_payload(robot, walk=False)
    findings = _findings(robot, diagnostics)
    odd = {finding.link for finding in findings if finding.code in ODD}
    nodes = []
    for node in payload.nodes:
        size = payload.geometries[node.geometry].size
        if node.role == "inertia" and size is not None:
            *rgb, alpha = ODD_COLOUR if node.link in odd else INERTIA_COLOUR
            # A box much larger than the robot would hide it.
            alpha *= min(1.0, 0.4 * payload.robot.size / max(size))
            node = replace(node, rgba=[*rgb, round(max(0.05, alpha), 3)])
        nodes.append(node)
    return replace(payload, nodes=nodes, check=CheckData(findings, _inertias(robot, odd)))


def _findings(robot: Robot, diagnostics: Sequence[Diagnostic]) -> list[FindingData]:
    """The findings, each with the link that its element belongs to."""
    places: dict[str, tuple[str | None, int | None]] = {
        f"link {link.name!r}": (link.name, link.body) for link in robot.links
    }
    places.update({f"joint {joint.name!r}": (joint.child_link, joint.body) for joint in robot.joints})
    found = []
    for d in diagnostics:
        # "link 'arm' inertial" belongs to "link 'arm'".
        owner = d.element if d.element in places else d.element.rpartition(" ")[0]
        link, body = places.get(owner, (None, None))
        found.append(FindingData(d.severity, d.code, d.element, d.line, d.message, d.hint, link, body))
    return found


def _inertias(robot: Robot, odd: set[str | None]) -> list[InertiaData]:
    """Mass, principal moments and equivalent box of every link with mass."""
    rows = []
    for link in robot.links:
        box = equivalent_box(link.mass, link.inertia)
        if box is not None:
            size, moments = box.size.tolist(), box.moments.tolist()
            rows.append(InertiaData(link.name, link.body, float(link.mass), size, moments, link.name in odd))
    return rows
