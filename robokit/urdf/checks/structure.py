"""The tree behind a description: names, parents, roots, cycles.

Everything is iterative and linear in the number of links and joints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from robokit.urdf.description import JointDescription, RobotDescription
from robokit.urdf.findings import Report


@dataclass(frozen=True)
class LinkTree:
    """A description whose links form one tree.

    Attributes:
        order: link names depth first, joints in document order, the root first.
        incoming: link name -> the joint that carries it; not for the root.
        end: position in ``order`` -> position behind the last link of that link's subtree.
        parent: position in ``order`` -> position of the parent link, -1 for the root.
    """

    order: list[str]
    incoming: dict[str, JointDescription]
    end: list[int]
    parent: list[int]


def check_structure(robot: RobotDescription, report: Report) -> LinkTree | None:
    """The tree of the links, or None where they form none; problems go to the report."""
    links = _unique(robot.links, "link", report)
    _unique(robot.joints, "joint", report)
    edges, loose = _edges(robot.joints, links, report)
    incoming = _incoming(edges, report)

    roots = [name for name in links if name not in incoming]
    tree = _walk(roots, links, edges, incoming)
    _check_cycles(tree, edges, incoming, report)
    # A joint whose child is misspelt leaves a root behind: its own message says enough.
    if len(roots) > 1 + loose:
        element = ", ".join(map(repr, roots[:6])) + (", ..." if len(roots) > 6 else "")
        line = links[roots[1]].line
        message = f"{len(roots)} links have no parent joint: {element}; a robot has one root"
        report.add("tree-two-roots", f"link {roots[1]!r}", line, message)
    if report.failed or len(roots) != 1 or len(tree.order) != len(links):
        return None
    return tree


def _unique(items: Collection, what: str, report: Report) -> dict:
    """Items by name, the first of each name; those without a name are left out (the reader reports them)."""
    table: dict = {item.name: item for item in items}
    if len(table) == len(items) and "" not in table:
        return table
    table = {}
    for item in items:
        if not item.name:
            continue
        first = table.setdefault(item.name, item)
        if first is not item:
            message = f"is defined a second time; the first one is on line {first.line}"
            report.add(f"{what}-duplicate", f"{what} {item.name!r}", item.line, message)
    return table


def _edges(
    joints: Iterable[JointDescription], links: dict, report: Report
) -> tuple[list[JointDescription], int]:
    """Joints between two defined links, and the number of joints whose child is unknown."""
    edges, loose = [], 0
    for joint in joints:
        if joint.parent in links and joint.child in links and joint.parent != joint.child:
            edges.append(joint)
            continue
        where = f"joint {joint.name!r}"
        for which, link, line in (
            ("parent", joint.parent, joint.parent_line),
            ("child", joint.child, joint.child_line),
        ):
            if link is not None and link not in links:
                message = f"its {which} link {link!r} is not defined"
                report.add("link-undefined", where, line, message, report.nearest(link, links))
        if joint.child not in links:
            loose += 1
        elif joint.parent == joint.child:
            loose += 1
            report.add("joint-self", where, joint.child_line, f"connects link {joint.parent!r} to itself")
        else:
            edges.append(joint)  # still carries its child
    return edges, loose


def _incoming(edges: list[JointDescription], report: Report) -> dict[str, JointDescription]:
    incoming: dict[str, JointDescription] = {}
    for joint in edges:
        assert joint.child is not None
        first = incoming.setdefault(joint.child, joint)
        if first is not joint:
            message = f"is the child of joint {first.name!r} (line {first.line}) and of joint {joint.name!r}"
            hint = (
                f"if they close a loop: loops='close' (on the command line --loops close) makes joint "
                f"{joint.name!r} a loop joint; or write a <loop_joint>"
            )
            report.add("link-two-parents", f"link {joint.child!r}", joint.child_line, message, hint)
    return incoming


def _walk(
    roots: list[str], links: dict, edges: list[JointDescription], incoming: dict[str, JointDescription]
) -> LinkTree:
    """Depth-first walk from all roots; of several joints into a link the first counts."""
    children: dict[str, list[str]] = {name: [] for name in links}
    for joint in edges:
        if incoming[joint.child] is joint and joint.parent in children:  # type: ignore[index]
            children[joint.parent].append(joint.child)  # type: ignore[index, arg-type]
    order: list[str] = []
    parent: list[int] = []
    stack = [(name, -1) for name in reversed(roots)]
    while stack:
        name, above = stack.pop()
        here = len(order)
        order.append(name)
        parent.append(above)
        below = children[name]
        if below:
            stack += [(child, here) for child in reversed(below)]
    end = list(range(1, len(order) + 1))
    for here in range(len(order) - 1, 0, -1):
        above = parent[here]
        if above >= 0 and end[above] < end[here]:
            end[above] = end[here]
    return LinkTree(order, incoming, end, parent)


def _check_cycles(
    tree: LinkTree, edges: list[JointDescription], incoming: dict[str, JointDescription], report: Report
) -> None:
    place = {name: k for k, name in enumerate(tree.order)}
    # A second joint into a link closes a circle where its parent lies below that link.
    for joint in edges:
        if incoming[joint.child] is joint:  # type: ignore[index]
            continue
        child, parent = place.get(joint.child or ""), place.get(joint.parent or "")
        if child is not None and parent is not None and child <= parent < tree.end[child]:
            message = f"its child {joint.child!r} already carries its parent {joint.parent!r}"
            report.add("tree-cycle", f"joint {joint.name!r}", joint.line, message)
    # What no root reaches hangs on a circle: follow the parents until one repeats.
    done = set(place)
    for name in incoming:
        if name in done:
            continue
        path: dict[str, int] = {}
        while name not in done and name not in path and name in incoming:
            path[name] = len(path)
            name = incoming[name].parent or ""
        if name in path:
            circle = list(path)[path[name] :]
            round_trip = [circle[-1], *circle][::-1] if len(circle) <= 8 else circle[7::-1]
            shown = " -> ".join(map(repr, round_trip)) + (" -> ..." if len(circle) > 8 else "")
            joint = incoming[name]
            message = f"{len(circle)} links carry each other in a circle: {shown}"
            report.add("tree-cycle", f"joint {joint.name!r}", joint.line, message)
        done.update(path)
