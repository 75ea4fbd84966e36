"""Actuators: what drives the joints of a simulation.

    Torque     tau = target
    PD         tau = kp (target - q) + kd (velocity - v) + feedforward
    Velocity   tau = gain (target - v) + feedforward

Each drives joints of one degree of freedom, within the limits of effort and velocity. Here are the values as
they are given; robokit.sim.run.run_inputs fits them to a robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from robokit.arguments import real_array, real_number
from robokit.errors import ShapeError, WrongType, shown

Gains = float | Sequence[float] | Mapping[str, float] | np.ndarray
"""A number for all joints, a mapping joint name -> number, or an array in the order of v."""


ACCEPTED = "rk.Torque(...), rk.PD(...), rk.Velocity(...), or a list of these"


@dataclass(frozen=True, kw_only=True)
class Actuator:
    """Common attributes of all actuators.

    Attributes:
        joints: names of the driven joints; None for all with one degree of freedom, or for those that a
            mapping of gains names.
        effort: largest force [N m | N]; None for the limits of the description, math.inf for none.
        max_velocity: largest speed [rad/s | m/s]; None for that of the description, math.inf for none. Full
            effort is available up to this speed, and the actuator does not drive the joint faster.
        armature: inertia of the rotor as felt at the joint, including the squared gear ratio [kg m^2 | kg]; 0
            for the armature of the joint.
    """

    joints: Sequence[str] | None = None
    effort: Gains | None = None
    max_velocity: Gains | None = None
    armature: Gains = 0.0

    def __post_init__(self) -> None:
        kind = type(self).__name__
        names = self.joints
        if isinstance(names, str) or not isinstance(names, Sequence | type(None)):
            raise WrongType(f"{kind}(joints=...)", names, "a sequence of joint names, or None for all")
        for name in ("effort", "max_velocity"):
            if getattr(self, name) is not None:
                _check(f"{kind}({name}=...)", getattr(self, name), endless=True)
        for name in (*self.gains, "armature"):
            _check(f"{kind}({name}=...)", getattr(self, name))

    @property
    def gains(self) -> tuple[str, ...]:
        """Names of the arguments that are gains."""
        return tuple(f.name for f in fields(self) if f.name in ("kp", "kd", "gain"))


@dataclass(frozen=True)
class Torque(Actuator):
    """Joint forces as actuators.

    Attributes:
        target: joint forces [N m | N]: a number, a mapping from joint names, an array in the order of v
            (of the driven joints, or of all), an array with one row per step, :class:`Keyframes`, or a
            function (t, q, v) -> one of the first three. In rollouts also one row per state, as for ``tau``.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> lift = rk.Torque(rk.gravity_forces(robot, [0.5, 0.2]))
        >>> run = rk.simulate(robot, [0.5, 0.2], duration=0.05, actuators=lift)
        >>> bool(abs(run.v).max() < 1e-6)  # it stays, for now
        True
    """

    target: Any = 0.0


@dataclass(frozen=True)
class PD(Actuator):
    """Position servo: kp (target - q) + kd (velocity - v) + feedforward.

    The servo is part of the implicit step: no gain makes it unstable.

    Attributes:
        kp: stiffness [N m/rad | N/m].
        kd: damping [N m s/rad | N s/m].
        target: positions [rad | m], in the forms of :class:`Torque`, or a whole configuration; None holds the
            positions at the start, and so do joints that a mapping does not name.
        velocity: target velocities [rad/s | m/s]; None takes those of keyframes, otherwise 0.
        feedforward: joint forces [N m | N] that are added.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> hold = rk.PD(kp=500.0, kd=20.0)  # holds the start
        >>> run = rk.simulate(robot, [0.5, 0.2], duration=0.2, actuators=hold)
        >>> bool(abs(run.q - run.q[0]).max() < 0.02)
        True
    """

    kp: Gains = 0.0
    kd: Gains = 0.0
    target: Any = None
    velocity: Any = None
    feedforward: Any = 0.0


@dataclass(frozen=True)
class Velocity(Actuator):
    """Velocity servo: gain (target - v) + feedforward; implicit, as :class:`PD`.

    Attributes:
        gain: [N m s/rad | N s/m].
        target: velocities [rad/s | m/s], as of :class:`Torque`.
        feedforward: joint forces [N m | N] that are added.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> turn = rk.Velocity(gain=50.0, target={"upper_joint": 1.0})
        >>> run = rk.simulate(robot, duration=0.2, actuators=turn)
        >>> bool(0.8 < run.v[-1, 0] < 1.2)
        True
    """

    gain: Gains = 0.0
    target: Any = 0.0
    feedforward: Any = 0.0


def actuators_of(given: Any) -> tuple[Actuator, ...]:
    """What was given as ``actuators``: one or several.

    Raises:
        WrongType: something else.
    """
    if given is None:
        return ()
    if isinstance(given, Actuator):
        return (given,)
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise WrongType("actuators", given, ACCEPTED)
    for k, one in enumerate(given):
        if not isinstance(one, Torque | PD | Velocity):
            raise WrongType(f"actuators[{k}]", one, ACCEPTED)
    return tuple(given)


def _check(name: str, value: Any, endless: bool = False) -> None:
    """Refuse what is no number from 0, nor numbers from 0 by joint."""
    if isinstance(value, Mapping):
        for joint, number in value.items():
            if endless and number == math.inf:
                continue
            real_number(f"{name}, joint {shown(joint)}", number, least=0.0)
        return
    array = real_array(name, value, "() or (n,)")
    good = (array >= 0.0) & (np.isfinite(array) | endless)
    if not good.all():
        accepted = "numbers >= 0" if endless else "finite numbers >= 0"
        raise ShapeError(f"{name}: expected {accepted}, got {array[~good].ravel()[0]:g}")
