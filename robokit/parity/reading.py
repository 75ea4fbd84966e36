"""The XML that the other engines are given: the file without what H, C and poses do not depend on."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from robokit.urdf.read.xacro import expand_xacro, is_xacro

LEFT_OUT = ("visual", "collision", "limit", "dynamics", "mimic", "safety_controller", "calibration")

THEIR_WORLD = "world"
"""Name of the fixed frame of MuJoCo and of Drake."""


def robot_text(
    path: str | os.PathLike[str],
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> bytes:
    """The XML of a URDF; a .xacro file is expanded, with these arguments.

    Raises:
        UrdfError: the file cannot be expanded.
        OSError: the file cannot be read.
    """
    return (
        expand_xacro(path, xacro_args, package_dirs).encode() if is_xacro(path) else Path(path).read_bytes()
    )


def without_other_links(text: bytes, links: Collection[str]) -> bytes:
    """A URDF without the links that a robot does not have, and the joints that hang on them.

    A root and a floating joint that are the floating base themselves are not in robokit's robot.

    Args:
        text: the XML.
        links: the robot's.
    """
    from lxml import etree

    root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    left_out = {link.get("name") for link in root.iterfind("link")} - set(links)
    if not left_out:
        return text
    for element in list(root):
        parent = element.find("parent") if element.tag == "joint" else None
        if (element.tag == "link" and element.get("name") in left_out) or (
            parent is not None and parent.get("link") in left_out
        ):
            root.remove(element)
    return bytes(etree.tostring(root))


def plain_text(text: bytes, world: str = THEIR_WORLD) -> str:
    """A URDF without shapes, limits, friction, mimic joints and extensions.

    MuJoCo cannot load a file without reading its meshes, and refuses revolute joints without limits.

    Args:
        text: the XML.
        world: new name of a link that is called "world".
    """
    from lxml import etree

    root = etree.fromstring(
        text, etree.XMLParser(remove_comments=True, resolve_entities=False, no_network=True)
    )
    for element in list(root.iter(*LEFT_OUT)):
        element.getparent().remove(element)
    for element in list(root):
        if element.tag not in ("link", "joint"):
            root.remove(element)
    for joint in root.iter("joint"):
        if joint.get("type") == "revolute":
            joint.set("type", "continuous")
    for element, name in [(e, key) for e in root.iter("link", "parent", "child") for key in ("name", "link")]:
        if element.get(name) == THEIR_WORLD:
            element.set(name, world)
    options = {"fusestatic": "false", "discardvisual": "true", "balanceinertia": "false", "strippath": "true"}
    etree.SubElement(etree.SubElement(root, "mujoco"), "compiler", options)
    return str(etree.tostring(root, encoding="unicode"))
