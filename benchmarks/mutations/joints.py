"""Mistakes over limits, passive forces and mimic laws of joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from mutations.mutation import Mutant, Mutation, movable, shuffled, with_joint
from robokit.urdf.description import DynamicsDescription, LimitDescription, MimicDescription, RobotDescription


def _each(wrong: Callable) -> Callable[..., Iterator[Mutant]]:
    def make(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
        for joint in shuffled(movable(robot), rng):
            changed = wrong(joint, robot)
            if changed is not None:
                yield Mutant(joint.name, with_joint(robot, joint.name, **changed))

    return make


def _range(wrong: Callable, turning: bool = False) -> Callable:
    """A change of position limits, where there are two different ones."""

    def change(joint, robot):
        limit = joint.limit
        if joint.type not in ("revolute", "prismatic") or limit is None or limit.range is None:
            return None
        lower, upper = limit.range
        if upper - lower < 1e-3 or max(-lower, upper) > 1e5 or (turning and joint.type != "revolute"):
            return None
        new = wrong(lower, upper)
        if new is None or max(abs(new[0] - lower), abs(new[1] - upper)) < 1e-3:
            return None
        return {"limit": limit._replace(lower=float(new[0]), upper=float(new[1]))}

    return change


def _limit(name: str, wrong: Callable, turning: bool = False) -> Callable:
    """A change of the limit of effort or velocity, where there is one."""

    def change(joint, robot):
        value = getattr(joint.limit, name) if joint.limit else None
        if not value or value < 0 or (turning and joint.type == "prismatic"):
            return None
        return {"limit": joint.limit._replace(**{name: wrong(value)})}

    return change


def _passive(name: str, wrong: Callable, turning: bool = False) -> Callable:
    """A change of damping or friction, where there is some."""

    def change(joint, robot):
        value = getattr(joint.dynamics, name) if joint.dynamics else 0.0
        if value <= 0 or (turning and joint.type == "prismatic"):
            return None
        return {"dynamics": joint.dynamics._replace(**{name: wrong(value)})}

    return change


def _added(name: str, value: float) -> Callable:
    def change(joint, robot):
        own = joint.dynamics or DynamicsDescription()
        if getattr(own, name):
            return None
        return {"dynamics": own._replace(**{name: value})}

    return change


def _swapped_limits(joint, robot):
    limit = joint.limit
    if not limit or not limit.effort or not limit.velocity or abs(limit.effort - limit.velocity) < 1e-3:
        return None
    return {"limit": limit._replace(effort=limit.velocity, velocity=limit.effort)}


def _swapped_passive(joint, robot):
    own = joint.dynamics
    if own is None or abs(own.damping - own.friction) < 1e-6 or not own.damping or not own.friction:
        return None
    return {"dynamics": own._replace(damping=own.friction, friction=own.damping)}


def _unlimited(joint, robot):
    if joint.type != "revolute" or not joint.limit or joint.limit.range is None:
        return None
    lower, upper = joint.limit.range
    if lower == upper or max(-lower, upper) > 1e5:  # unlimited already
        return None
    return {"type": "continuous"}


def _limited(joint, robot):
    if joint.type != "continuous":
        return None
    own = joint.limit or LimitDescription(effort=0.0, velocity=0.0)
    return {"type": "revolute", "limit": own._replace(lower=-math.pi, upper=math.pi)}


def _other_type(joint, robot):
    return (
        {"type": "prismatic", "limit": joint.limit or LimitDescription()}
        if joint.type == "revolute"
        else None
    )


def _welded(joint, robot):
    followed = {j.mimic.joint for j in robot.joints if j.mimic}
    return {"type": "fixed", "mimic": None} if joint.name not in followed and joint.mimic is None else None


def _freed(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    inertial = {link.name: link.inertial for link in robot.links}
    for joint in shuffled([j for j in robot.joints if j.type == "fixed" and inertial[j.child]], rng):
        if inertial[joint.child].mass > 1e-6 and min(np.diag(inertial[joint.child].matrix())) > 1e-12:
            limit = LimitDescription(-1.0, 1.0, 1.0, 1.0)
            b = with_joint(robot, joint.name, type="revolute", axis=(0.0, 0.0, 1.0), limit=limit)
            yield Mutant(joint.name, b)


def _mimic(wrong: Callable) -> Callable:
    def change(joint, robot):
        if joint.mimic is None:
            return None
        new = wrong(joint.mimic, joint, robot)
        return None if new == joint.mimic else {"mimic": new}

    return change


def _another_leader(law, joint, robot):
    following = {j.name for j in robot.joints if j.mimic}
    free = [j.name for j in movable(robot) if j.name not in following and j.name != law.joint]
    return law._replace(joint=free[0]) if free else law


def _follows(joint, robot):
    following = {j.name for j in robot.joints if j.mimic}
    others = [j.name for j in movable(robot) if j.name != joint.name and j.name not in following]
    if (
        joint.mimic is not None
        or not others
        or any(j.mimic and j.mimic.joint == joint.name for j in robot.joints)
    ):
        return None
    return {"mimic": MimicDescription(others[0], 0.5, 0.1)}


def _squared(law, joint, robot):
    k = law.multiplier
    return law._replace(multiplier=k * k) if abs(abs(k) - 1.0) > 1e-3 else law


def _inverted(law, joint, robot):
    k = law.multiplier
    return law._replace(multiplier=1.0 / k) if abs(abs(k) - 1.0) > 1e-3 else law


def _driven(robot: RobotDescription, rng: np.random.Generator) -> Iterator[Mutant]:
    """A transmission on a mimic joint."""
    for joint in shuffled([j for j in movable(robot) if j.mimic is not None], rng):
        text = (
            f'<transmission name="extra"><type>transmission_interface/SimpleTransmission</type>'
            f'<joint name="{joint.name}"/><actuator name="extra"/></transmission>'
        )
        yield Mutant(joint.name, robot, extension=text)


JOINTS = [
    Mutation("limits-degrees", _each(_range(lambda l, u: (math.degrees(l), math.degrees(u)), True))),
    Mutation("limits-degrees", _each(_range(lambda l, u: (math.radians(l), math.radians(u)), True))),
    Mutation("limits-swapped", _each(_range(lambda l, u: (u, l))), mjcf=False),
    Mutation("limits-negated", _each(_range(lambda l, u: (-u, -l)))),
    Mutation("limits-shifted", _each(_range(lambda l, u: (l + 0.3, u + 0.3)))),
    Mutation("limits-scaled", _each(_range(lambda l, u: (0.9 * l, 0.9 * u) if l and u else None))),
    Mutation("limits-differ", _each(_range(lambda l, u: (l, u + 0.2)))),
    Mutation("limits-differ", _each(_range(lambda l, u: (l - 0.2, u)))),
    Mutation("limits-lost", _each(_unlimited)),
    Mutation("limits-added", _each(_limited)),
    Mutation("effort-lost", _each(_limit("effort", lambda x: 0.0))),
    Mutation("effort-scaled", _each(_limit("effort", lambda x: 1.5 * x))),
    Mutation("effort-velocity-swapped", _each(_swapped_limits), mjcf=False),
    Mutation("velocity-lost", _each(_limit("velocity", lambda x: 0.0)), mjcf=False),
    Mutation("velocity-degrees", _each(_limit("velocity", math.degrees, True)), mjcf=False),
    Mutation("velocity-scaled", _each(_limit("velocity", lambda x: 1.5 * x)), mjcf=False),
    Mutation("damping-lost", _each(_passive("damping", lambda x: 0.0))),
    Mutation("damping-degrees", _each(_passive("damping", math.radians, True))),
    Mutation("damping-scaled", _each(_passive("damping", lambda x: 3.0 * x))),
    Mutation("damping-added", _each(_added("damping", 1.0))),
    Mutation("friction-lost", _each(_passive("friction", lambda x: 0.0))),
    Mutation("friction-scaled", _each(_passive("friction", lambda x: 3.0 * x))),
    Mutation("friction-added", _each(_added("friction", 1e-4))),
    Mutation("damping-friction-swapped", _each(_swapped_passive)),
    Mutation("armature-added", _each(_added("armature", 0.01))),
    Mutation("joint-type", _each(_other_type)),
    Mutation("joint-welded", _each(_welded)),
    Mutation("joint-freed", _freed),
    Mutation("mimic-dropped", _each(_mimic(lambda law, joint, robot: None))),
    Mutation("mimic-multiplier", _each(_mimic(lambda law, j, r: law._replace(multiplier=-law.multiplier)))),
    Mutation("mimic-twice", _each(_mimic(_squared))),
    Mutation("mimic-twice", _driven, mjcf=False),
    Mutation("mimic-inverted", _each(_mimic(_inverted))),
    Mutation("mimic-offset", _each(_mimic(lambda law, j, r: law._replace(offset=law.offset + 0.2)))),
    Mutation("mimic-leader", _each(_mimic(_another_leader))),
    Mutation("mimic-added", _each(_follows)),
]
