"""Mistakes that MuJoCo makes itself when its file says so, and changes that only MJCF can have."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from mutations.mutation import Mutant
from robokit.urdf.description import RobotDescription

Made = tuple[str, Mutant] | None


@dataclass(frozen=True)
class Native:
    """A change of an MJCF text.

    Attributes:
        cause: code that the referee has to name.
        make: the changed text and the mutant, or None where the robot has not what it needs.
        base: base of the MJCF, "" for what A says.
    """

    cause: str
    make: Callable[[str, RobotDescription], Made]
    base: str = ""


def _gravity(value: str) -> Callable[[str, RobotDescription], Made]:
    def make(text: str, robot: RobotDescription) -> Made:
        return re.sub(r'gravity="[^"]*"', f'gravity="{value}"', text), Mutant("", robot)

    return make


def _attribute(attribute: str) -> Callable[[str, RobotDescription], Made]:
    """One more attribute for the first hinge or slide with a name."""

    def make(text: str, robot: RobotDescription) -> Made:
        found = re.search(
            r'<joint name="([^"]*)" type="(hinge|slide)"(?![^>]*' + attribute.split("=")[0] + "=)", text
        )
        if found is None:
            return None
        return text[: found.end()] + " " + attribute + text[found.end() :], Mutant(found.group(1), robot)

    return make


def _total(text: str, robot: RobotDescription) -> Made:
    if sum(bool(k.inertial and k.inertial.mass > 0) for k in robot.links) < 3 or text.count("<inertial") < 3:
        return None
    return text.replace("<compiler ", '<compiler settotalmass="3.21" '), Mutant("", robot)


def _twice(text: str, robot: RobotDescription) -> Made:
    found = re.search(r'<joint joint1="([^"]*)"[^>]*/>', text)
    if found is None:
        return None
    return text.replace(found.group(0), found.group(0) * 2), Mutant(found.group(1), robot)


def _driven(text: str, robot: RobotDescription) -> Made:
    found = re.search(r'<joint joint1="([^"]*)"[^>]*/>', text)
    if found is None:
        return None
    motor = f'<actuator><motor joint="{found.group(1)}"/></actuator>'
    return text.replace("</mujoco>", motor + "</mujoco>"), Mutant(found.group(1), robot)


def _base(base: str) -> Callable[[str, RobotDescription], Made]:
    def make(text: str, robot: RobotDescription) -> Made:
        return text, Mutant("", robot, base=base)

    return make


def _no_gravity(text: str, robot: RobotDescription) -> Made:
    links = {link.name for link in robot.links if link.inertial and link.inertial.mass > 0}
    for found in re.finditer(r'<body name="([^"]*)"', text):
        if found.group(1) in links:
            return text[: found.end()] + ' gravcomp="1"' + text[found.end() :], Mutant(found.group(1), robot)
    return None


def _range_of_effort(lower: float, upper: float) -> Callable[[str, RobotDescription], Made]:
    """Another range of effort, its ends times two factors."""

    def make(text: str, robot: RobotDescription) -> Made:
        for found in re.finditer(r'<joint name="([^"]*)"[^>]*actuatorfrcrange="(\S+) (\S+)"', text):
            ends = f"{lower * float(found.group(2))!r} {upper * float(found.group(3))!r}"
            changed = found.group(0).replace(f'{found.group(2)} {found.group(3)}"', f'{ends}"')
            return text.replace(found.group(0), changed), Mutant(found.group(1), robot)
        return None

    return make


def _motor(text: str, robot: RobotDescription) -> Made:
    """The range of effort by a motor: gear 4, gain 0.5, so that it makes twice its control, which is A's."""
    found = re.search(r'<joint name="([^"]*)"[^>]*( actuatorfrcrange="(\S+ \S+)")', text)
    if found is None:
        return None
    motor = f'<general joint="{found.group(1)}" gear="4" gainprm="0.5" ctrlrange="{found.group(3)}"/>'
    text = text.replace(found.group(0), found.group(0).replace(found.group(2), ""))
    motor = f"<actuator>{motor}</actuator></mujoco>"
    return text.replace("</mujoco>", motor), Mutant(found.group(1), robot)


def _curved(text: str, robot: RobotDescription) -> Made:
    found = re.search(r'<joint joint1="([^"]*)" joint2[^>]*polycoef="(\S+ \S+) 0.0', text)
    if found is None:
        return None
    return text[: found.end() - 3] + "0.3" + text[found.end() :], Mutant(found.group(1), robot)


NATIVES = [
    Native("effort-range", _range_of_effort(0.5, 1.0)),
    Native("effort-range", _range_of_effort(1.0, 0.5)),
    Native("effort-scaled", _motor),
    Native("mimic-curved", _curved),
    Native("gravity", _gravity("0 0 0")),
    Native("gravity", _gravity("0 -9.81 0")),
    Native("gravity", _gravity("0 0 -1.62")),
    Native("gravity-off", _no_gravity),
    Native("spring-added", _attribute('stiffness="5"')),
    Native("armature-added", _attribute('armature="0.01"')),
    Native("total-mass", _total),
    Native("mimic-twice", _twice),
    Native("mimic-twice", _driven),
    Native("base-freed", _base("fixed"), "floating"),
    Native("base-welded", _base("floating"), "fixed"),
]
