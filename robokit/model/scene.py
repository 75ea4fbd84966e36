"""Scene: what a robot's file says beside the robot, by the names of links and joints."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from robokit.conventions import WORLD


@dataclass(frozen=True, eq=False)
class Scene:
    """Contents of a robot's file beside the robot itself: ``robot.scene``, or None.

    To simulate the robot in its scene, pass ``robot.scene.ground``, ``robot.scene.actuators`` and
    ``robot.scene.springs`` to :func:`robokit.simulate`. Only ``apart`` applies automatically.

    Attributes:
        ground: ``rk.Ground`` with the planes, height fields and solids of the file, or None.
        actuators: ``rk.Torque``, ``rk.PD`` and ``rk.Velocity`` with the file's gains; they hold the start
            until their targets are set (``dataclasses.replace(actuator, target=...)``).
        springs: ``rk.JointSpring`` and ``rk.Spring``, of joints and tendons.
        configurations: name -> joint name -> its coordinates; ``robot.configuration(name)`` gives q.
        apart: pairs of links whose bodies never collide.
        dt: time step of the file [s], or None.
    """

    ground: Any = None
    actuators: tuple[Any, ...] = ()
    springs: tuple[Any, ...] = ()
    configurations: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    apart: tuple[tuple[str, str], ...] = ()
    dt: float | None = None

    def __repr__(self) -> str:
        """What there is, in one line."""
        drives = ", ".join(type(one).__name__ for one in self.actuators) or "no actuators"
        named = ", ".join(map(repr, self.configurations)) or "none"
        ground = "a ground" if self.ground is not None else "no ground"
        step = "" if self.dt is None else f", dt {self.dt:g} s"
        apart = f"{len(self.apart)} pairs of links apart"
        springs = f", {len(self.springs)} springs" if self.springs else ""
        return f"<Scene: {ground}, {drives}{springs}, configurations: {named}, {apart}{step}>"

    def of_parts(self, joints: Collection[str], bodies: Mapping[str, int]) -> Scene:
        """The scene of a robot with these joints, and links on these bodies.

        Actuators and springs of others are left out, and springs between links of one body.
        """
        kept = tuple(found for one in self.actuators if (found := _of_joints(one, joints)) is not None)
        springs = tuple(one for one in self.springs if _is_there(one, joints, {WORLD: 0, **bodies}))
        if kept == self.actuators and springs == self.springs:
            return self
        return replace(self, actuators=kept, springs=springs)


def _is_there(spring: Any, joints: Collection[str], bodies: Mapping[str, int]) -> bool:
    if hasattr(spring, "joint"):
        return spring.joint in joints
    return spring.a in bodies and spring.b in bodies and bodies[spring.a] != bodies[spring.b]


def _of_joints(actuator: Any, names: Collection[str]) -> Any:
    """An actuator without the joints that are not there; None if none is left."""
    own = getattr(actuator, "joints", None)
    if own is None:
        return actuator
    joints = tuple(name for name in own if name in names)
    if joints == tuple(own):
        return actuator
    mappings = {
        name: {joint: x for joint, x in value.items() if joint in names}
        for name, value in vars(actuator).items()
        if isinstance(value, Mapping)
    }
    return replace(actuator, joints=joints, **mappings) if joints else None
