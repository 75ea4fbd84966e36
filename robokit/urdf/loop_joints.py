"""``<loop_joint>``: a joint that closes a loop of the tree, an extension of URDF.

    <loop_joint name="closing_joint" type="revolute">
      <predecessor link="coupler"><origin xyz="0.36 0 0.15"/></predecessor>
      <successor link="rocker"><origin xyz="-0.125 0 0.3"/></successor>
      <axis xyz="0 1 0"/>
    </loop_joint>

It stands beside the joints; other URDF readers ignore it and see the open tree. The two origins place
the joint's frame on either link; the axis is in that frame. Types are those of the joint table.

Grippers of Robotiq and files for Drake and Isaac Sim write the same joint as

    <loop_joint name="closing_joint" type="revolute">
      <link1 link="coupler" xyz="0.36 0 0.15" rpy="0 0 0"/>
      <link2 link="rocker" xyz="-0.125 0 0.3" rpy="0 0 0"/>
      <axis xyz="0 1 0"/>
    </loop_joint>

where Isaac Sim's own manual calls both ends ``<link1>``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robokit.model.joints import JOINT_TABLE
from robokit.urdf.description import LoopDescription, Origin
from robokit.urdf.reader import Reader

if TYPE_CHECKING:
    from lxml import etree

_ENDS = ("predecessor", "successor")
_END_OF = {
    "predecessor": "predecessor",
    "successor": "successor",
    "link1": "predecessor",
    "link2": "successor",
}
_PARTS = frozenset((*_END_OF, "axis"))


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
    parts = _parts(element, reader, where)
    ends = [_end(parts.get(which), reader, where, line, which) for which in _ENDS]
    axis = (1.0, 0.0, 0.0)
    if "axis" in parts:
        reader.attributes(parts["axis"], where, ("xyz",))
        axis = reader.triple(parts["axis"], "xyz", where, axis)
    (predecessor, p_origin), (successor, s_origin) = ends
    return LoopDescription(name or "", kind or "", predecessor, successor, p_origin, s_origin, axis, line)


def _parts(element: etree._Element, reader: Reader, where: str) -> dict[str, etree._Element]:
    """The two ends, whatever they are called, and the axis."""
    children = list(reader.children(element, where, _PARTS))
    tags = [tag for tag, _ in children]
    twice = tags.count("link1") == 2 and not {"successor", "link2"} & set(tags)
    found: dict[str, etree._Element] = {}
    for tag, child in children:
        part = _END_OF.get(tag, tag)
        if twice and part in found and tag == "link1":
            part = "successor"
        if part in found:
            reader.repeated(tag, child, where)
        else:
            found[part] = child
    return found


def _end(
    element: etree._Element | None, reader: Reader, where: str, line: int, which: str
) -> tuple[str | None, Origin]:
    link = None
    origin = Origin()
    if element is not None:
        line = reader.line(element)
        link = reader.text(element, "link", where) or None
        if reader.tag(element) == which:
            reader.attributes(element, where, ("link",))
            for child in reader.parts(element, where, frozenset(("origin",))).values():
                origin = reader.origin(child, where)
        else:
            origin = reader.origin(element, where, ("link",))
            reader.parts(element, where, frozenset())
    if link is None:
        tag = which if element is None else reader.tag(element)
        message = f"has no <{which}>" if element is None else f"<{tag}> names no link"
        reader.report.add("loop-end-missing", where, line, message, f'add <{tag} link="..."/>')
    return link, origin
