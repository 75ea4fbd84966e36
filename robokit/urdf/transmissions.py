"""``<transmission>``: the inertia of a motor's rotor, as the joint behind its gear feels it.

    <transmission name="knee_drive">
      <type>SimpleTransmission</type>
      <joint name="knee"/>
      <actuator name="knee_motor">
        <drake:rotor_inertia value="3e-5"/>
        <drake:gear_ratio value="100"/>
      </actuator>
    </transmission>

    armature = gear_ratio^2 rotor_inertia

So Drake reads them. ``<rotorInertia>`` and ``<motorInertia>`` [kg m^2 | kg] beside ROS's
``<mechanicalReduction>``, of the actuator, the joint or the whole, are taken too. Several motors on one joint
add up. What drives several joints is left out, as is everything else that a transmission says.

Source: RBDA section 9.6; the elements, Drake's page on its URDF parser and ROS's on transmissions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from robokit.urdf.description import DynamicsDescription, JointDescription
from robokit.urdf.numbers import NumberError, parse_numbers
from robokit.urdf.reader import Reader

if TYPE_CHECKING:
    from lxml import etree

_INERTIA = ("rotor_inertia", "rotorInertia", "motorInertia", "motor_inertia")
_RATIO = ("gear_ratio", "mechanicalReduction", "mechanical_reduction")


class Rotor(NamedTuple):
    """A rotor's inertia at its joint.

    Attributes:
        joint: name of the joint.
        armature: [kg m^2 | kg].
        where, line: place in the file.
    """

    joint: str
    armature: float
    where: str
    line: int


def read_transmission(element: etree._Element, reader: Reader) -> list[Rotor]:
    """The rotors of one ``<transmission>``; what has none is noted as ignored."""
    where = f"transmission {element.get('name') or ''!r}"
    joints = [child for child in element if reader.tag(child) == "joint"]
    actuators = [child for child in element if reader.tag(child) == "actuator"]
    found = []
    for actuator in actuators:
        inertia = _number(_INERTIA, (actuator,), reader, where)
        if inertia is None or len(joints) != 1:
            continue
        ratio = _number(_RATIO, (actuator, joints[0], element), reader, where)
        joint = reader.text(joints[0], "name", where) or ""
        armature = inertia if ratio is None else inertia * ratio * ratio
        if not math.isfinite(armature):
            message = f"rotor inertia {inertia:g} times the square of {ratio:g} is more than a number can be"
            reader.report.add("number-not-finite", where, reader.line(actuator), message)
            continue
        found.append(Rotor(joint, armature, where, reader.line(actuator)))
    if not found:
        reader.ignored("transmission", element)
    return found


def with_rotors(
    joints: list[JointDescription], rotors: list[Rotor], reader: Reader
) -> list[JointDescription]:
    """The joints with the rotors that drive them."""
    if not rotors:
        return joints
    place = {joint.name: k for k, joint in enumerate(joints)}
    for rotor in rotors:
        k = place.get(rotor.joint)
        if k is None or not joints[k].moves:
            what = "which does not move" if k is not None else "which is not there"
            message = f"its rotor drives joint {rotor.joint!r}, {what}: it is left out"
            reader.report.add("transmission-joint", rotor.where, rotor.line, message)
            continue
        own = joints[k].dynamics or DynamicsDescription(line=rotor.line)
        joints[k] = joints[k]._replace(dynamics=own._replace(armature=own.armature + rotor.armature))
    return joints


def _number(
    names: tuple[str, ...], places: tuple[etree._Element, ...], reader: Reader, where: str
) -> float | None:
    """The first number of these names, in a ``value`` or as text; None where there is none."""
    for place in places:
        for child in place:
            if reader.tag(child).rpartition(":")[2] not in names:
                continue
            if child.get("value") is not None:
                return reader.number(child, "value", where, None, None)
            try:
                return parse_numbers(child.text or "", 1)[0]
            except NumberError as problem:
                message = f"<{reader.tag(child)}>: {problem}"
                reader.report.add(problem.code, where, reader.line(child), message, problem.hint)
                return None
    return None
