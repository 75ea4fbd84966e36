"""Loop joints: their ends, names and axes."""

from __future__ import annotations

from robokit.urdf.description import RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.rewrites import frame_pairs, second_parents


def check_frame_pairs(robot: RobotDescription, report: Report) -> None:
    """Pairs of frames that mark a loop which nothing closes."""
    for pair in frame_pairs(robot):
        message = (
            f"with link {pair.second!r} it marks a loop that is open here; loops='close' lets their origins "
            "coincide"
        )
        report.add("loop-frames", f"link {pair.first!r}", pair.line, message)


def check_second_parents(robot: RobotDescription, report: Report) -> None:
    """Joints that become loop joints, and have limits or forces that no loop joint has."""
    for joint in second_parents(robot):
        ranged = joint.type in ("revolute", "prismatic") and joint.limit is not None
        if ranged or joint.dynamics is not None:
            message = f"closes a loop at link {joint.child!r}: its limits, damping and friction do not act"
            report.add("loop-limits", f"joint {joint.name!r}", joint.line, message)


def check_loops(robot: RobotDescription, report: Report) -> None:
    """Checks that ends are links of different bodies, names are not taken, and axes are not zero."""
    if not robot.loops:
        return
    links = {link.name for link in robot.links}
    names = {joint.name: joint.line for joint in robot.joints}
    # Link -> the link that a fixed joint hangs it on: links of one body lead to the same end.
    rigid = {joint.child: joint.parent for joint in robot.joints if not joint.moves}
    bodies: dict[str | None, str | None] = {}
    for loop in robot.loops:
        where = f"loop joint {loop.name!r}"
        if loop.name in names:
            message = f"is defined a second time; the first one is on line {names[loop.name]}"
            report.add("joint-duplicate", where, loop.line, message)
        names.setdefault(loop.name, loop.line)
        for which, link in (("predecessor", loop.predecessor), ("successor", loop.successor)):
            if link is not None and link not in links:
                message = f"its {which} link {link!r} is not defined"
                report.add("link-undefined", where, loop.line, message, report.nearest(link, links))
        if loop.predecessor is not None and loop.predecessor == loop.successor:
            report.add("joint-self", where, loop.line, f"connects link {loop.successor!r} to itself")
        elif loop.predecessor is None or loop.successor is None:
            pass  # reported by the reader
        elif _body(loop.predecessor, rigid, bodies) == _body(loop.successor, rigid, bodies):
            message = (
                f"links {loop.predecessor!r} and {loop.successor!r} are one body: fixed joints connect them"
            )
            report.add("joint-self", where, loop.line, message)
        if loop.has_axis and not any(loop.axis):
            report.add("axis-zero", where, loop.line, "its axis is 0 0 0: it has no direction")


def _body(
    link: str | None, rigid: dict[str | None, str | None], known: dict[str | None, str | None]
) -> str | None:
    """The link at the upper end of the fixed joints above a link: the same for all links of a body."""
    path: dict[str | None, None] = {}
    while link in rigid and link not in known and link not in path:
        path[link] = None
        link = rigid[link]
    body = known.get(link, link)
    known.update(dict.fromkeys(path, body))
    return body
