"""``<loop_joint>``: robokit's extension for joints that close a loop of the tree.

    <loop_joint name="closing_joint" type="revolute">
      <predecessor link="coupler"><origin xyz="0.36 0 0.15"/></predecessor>
      <successor link="rocker"><origin xyz="-0.125 0 0.3"/></successor>
      <axis xyz="0 1 0"/>
    </loop_joint>

It stands beside the joints; other URDF readers ignore it and see the open tree. The two origins place
the joint's frame on either link; the axis is in that frame. Types are those of the joint table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robokit.model.joints import JOINT_TABLE
from robokit.urdf.description import LoopDescription, Origin
from robokit.urdf.read.elements import Reader

if TYPE_CHECKING:
    from lxml import etree

_PARTS = frozenset(("predecessor", "successor", "axis"))


def read_loop(element: etree._Element, reader: Reader) -> LoopDescription:
    """One ``<loop_joint>``; problems go to the reader's report."""
    line = reader.line(element)
    name = reader.text(element, "name", "loop_joint")
    where = f"loop joint {name!r}"
    if name is None or not name.strip():
        reader.report.add("name-missing", "loop_joint", line, "has no name", 'add name="..."')
    reader.attributes(element, where, ("name", "type"))
    kind = reader.text(element, "type", where)
    accepted = "accepted: " + ", ".join(JOINT_TABLE)
    if kind is None:
        reader.report.add("joint-type-missing", where, line, "has no type", accepted)
    elif kind not in JOINT_TABLE:
        reader.report.add("joint-type-unknown", where, line, f"type={kind!r} is not a joint type", accepted)
    parts = reader.parts(element, where, _PARTS)
    ends = [_end(parts.get(which), reader, where, line, which) for which in ("predecessor", "successor")]
    axis = (1.0, 0.0, 0.0)
    if "axis" in parts:
        reader.attributes(parts["axis"], where, ("xyz",))
        axis = reader.triple(parts["axis"], "xyz", where, axis)
    (predecessor, p_origin), (successor, s_origin) = ends
    return LoopDescription(name or "", kind or "", predecessor, successor, p_origin, s_origin, axis, line)


def _end(
    element: etree._Element | None, reader: Reader, where: str, line: int, which: str
) -> tuple[str | None, Origin]:
    link = None
    origin = Origin()
    if element is not None:
        line = reader.line(element)
        reader.attributes(element, where, ("link",))
        link = reader.text(element, "link", where) or None
        for child in reader.parts(element, where, frozenset(("origin",))).values():
            origin = reader.origin(child, where)
    if link is None:
        message = f"has no <{which}>" if element is None else f"<{which}> names no link"
        reader.report.add("loop-end-missing", where, line, message, f'add <{which} link="..."/>')
    return link, origin
