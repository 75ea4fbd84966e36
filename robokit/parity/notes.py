"""Known differences between the engines: what was converted or left out so that the figures compare."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.parity import engines

_DYNAMICS = {
    "MuJoCo": "its dynamics include damping and friction; they are left out, since H and C have neither",
    "Drake": "its dynamics include damping; it is left out",
}

_ARMATURE = {
    "MuJoCo": "its armature, a rotor inertia on H's diagonal, is set to 0",
    "Drake": "<transmission> is left out: it would add rotor inertias to H's diagonal",
}

_MIMIC = {
    "Pinocchio": "reads them, and keeps their coordinates unless told otherwise",
    "MuJoCo": "drops them",
    "Drake": "keeps their coordinates, and couples them in discrete time only",
}


def known_differences(engine: str, robot: Robot, singular: Joint | None) -> list[str]:
    """Known differences that apply to this robot and engine, a sentence each."""
    notes = []
    if robot.base == "floating":
        how = engines.ENGINES[engine].base_velocity
        notes.append(f"base velocity is {how}; robokit's is [omega; v] in base axes (converted)")
    if engine == "Pinocchio" and robot.base == "floating":
        notes.append("base quaternion is xyzw after the position; robokit's is wxyz before it (converted)")
    mimics = [joint for joint in robot.body_joints if joint.mimic is not None]
    if mimics:
        done = (
            "all are compared as free coordinates"
            if robot.coupling is None
            else "its answers are projected by the coupling matrix G"
        )
        notes.append(f"mimic joints {_some(mimics)}: it {_MIMIC.get(engine, 'drops them')}; {done}")
    if any(joint.damping or joint.friction for joint in robot.body_joints) and engine in _DYNAMICS:
        notes.append(_DYNAMICS[engine])
    if robot.tree.armature:
        notes.append("the rotor inertias of its joints are set to robokit's")
    elif engine in _ARMATURE:
        notes.append(_ARMATURE[engine])
    if robot.fixed_joints:
        notes.append(f"links behind fixed joints ({len(robot.fixed_joints)}) are compared as frames, by name")
    if robot.base == "fixed" and any(link.mass for link in robot.links if link.body == 0):
        notes.append("mass and CoM are those of the moving bodies, without the fixed root")
    if engine != "Pinocchio" and "world" in robot.link_names:
        notes.append("link 'world' was renamed: its own fixed frame has that name")
    if singular is not None:
        notes.append(f"accelerations are not compared: H is singular at joint {singular.name!r}")
    return notes


def _some(joints: Sequence[Joint]) -> str:
    shown = ", ".join(repr(joint.name) for joint in joints[:3])
    return f"({len(joints)}: {shown}{', ...' if len(joints) > 3 else ''})"
