"""Actuators: what drives the joints of a simulation.

    Torque     tau = target
    PD         tau = kp (target - q) + kd (velocity - v) + feedforward
    Velocity   tau = gain (target - v) + feedforward

Each drives joints of one degree of freedom, within the limits of effort and velocity. Here are the values as
they are given, and as numbers by joint and by step; robokit.sim.run.run_inputs fits them to a robot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robokit.arguments import check_call, check_finite, real_array, real_number
from robokit.errors import ShapeError, UnknownName, WrongType, shown
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.sim.driving.keyframes import Keyframes

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


# ---- values by joint --------------------------------------------------------------------------------------


def label_of(actuators: Sequence[Actuator], k: int) -> str:
    """Actuator k in messages."""
    kind = type(actuators[k]).__name__
    return f"actuators[{k}]: {kind}" if len(actuators) > 1 else kind


def by_joint(
    what: str, value: Any, joints: Sequence[Joint], nv: int, default: Sequence[float] | None = None
) -> np.ndarray:
    """Numbers of the driven joints, (n,) or (B, n); a mapping may leave out what has a default.

    Raises:
        UnknownName: a joint that is not one of these.
        ShapeError: a wrong shape, or a joint without a number.
    """
    names, n = tuple(joint.name for joint in joints), len(joints)
    if isinstance(value, Mapping):
        for name in value:
            if name not in names:
                raise UnknownName("driven joint", name, names, f"({what})")
        given = dict(zip(names, default, strict=True)) if default is not None else {}
        given |= value
        for name in names:
            if name not in given:
                raise ShapeError(f"{what}: joint {name!r} is driven and has no value")
        value = [given[name] for name in names]
    array = real_array(what, value, f"(), ({n},) or (B, {n})")
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape[-1] == nv != n:
        array = array[..., [joint.v_slice.start for joint in joints]]
    if array.ndim > 2 or array.shape[-1] != n:
        raise ShapeError(f"{what}: expected shape (), ({n},) or (B, {n}), got {np.shape(value)}")
    return array


def with_rotors(robot: Robot, actuators: Sequence[Actuator]) -> Robot:
    """The robot with the inertias of its actuators' rotors on the diagonal of H; itself without any.

    They take the place of the joints' own armature.

    The same rotors give the same object, and with it the same machine code.

    Raises:
        UnknownName, ShapeError: as :class:`~robokit.sim.run.run_inputs.DrivenJoints`.
    """
    rotors: dict[int, float] = {}
    for k, actuator in enumerate(actuators):
        if not isinstance(actuator.armature, Mapping | np.ndarray | Sequence) and not actuator.armature:
            continue
        label = label_of(actuators, k)
        joints = driven(label, robot, actuator)
        what = f"{label}(armature=...)"
        found = by_joint(what, actuator.armature, joints, robot.nv, [0.0] * len(joints))
        if found.ndim > 1:
            raise ShapeError(f"{what}: expected one number a joint, got shape {found.shape}")
        rotors |= {joint.body: x for joint, x in zip(joints, found.tolist(), strict=True) if x}
    if not rotors:
        return robot
    tree = robot.tree
    own = tree.armature or ((), *((0.0,) * joint.kind.nv for joint in tree.joint[1:]))
    armature = [()] + [(rotors[i],) if i in rotors else own[i] for i in tree.outward()]
    variant = replace(tree, armature=tuple(armature))
    return robot.derived.get(
        ("rotors", variant.armature), lambda: replace(robot, tree=variant, shared_kernels={})
    )


def driven(label: str, robot: Robot, actuator: Actuator) -> list[Joint]:
    """The joints of an actuator: those named, those that its gains name, or all that can be driven."""
    named = next((g for name in actuator.gains if isinstance(g := getattr(actuator, name), Mapping)), None)
    names = actuator.joints if actuator.joints is not None else named
    if names is None and isinstance(actuator, Torque) and isinstance(actuator.target, Mapping):
        names = actuator.target
    if names is None:
        found = [j for j in robot.joints if _can_be_driven(robot, j)]
        if not found:
            raise ShapeError(f"{label}: robot {robot.name!r} has no joint of one degree of freedom")
        return found
    known = [joint.name for joint in robot.joints]
    out = []
    for name in names:
        if name not in known:
            raise UnknownName("joint that can be driven", name, known, f"in robot {robot.name!r} ({label})")
        joint = robot.joint(name)
        if not _can_be_driven(robot, joint):
            raise ShapeError(
                f"{label}: joint {shown(name)} is {joint.kind}; actuators drive joints of one degree of "
                "freedom, a controller or tau= the others"
            )
        out.append(joint)
    if not out:
        raise ShapeError(f"{label}(joints=...): expected at least one joint, got none")
    return out


def _can_be_driven(robot: Robot, joint: Joint) -> bool:
    kind = robot.tree.joint[joint.body].kind
    return kind.nv == 1 and kind.nq == 1


# ---- values that change with time --------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Where the values of n joints are, and how many steps and rows a run has.

    Attributes:
        joints: their names.
        columns: their places in an array of all joints.
        size: of such an array: nv, or nq for positions.
        steps: of the run.
        rows: of a rollout, 1 in a simulation; None where nothing else says how many there are.
    """

    joints: tuple[str, ...]
    columns: Sequence[int]
    size: int
    steps: int
    rows: int | None

    @property
    def accepted(self) -> str:
        """The shapes that are taken, in words."""
        n, T = len(self.joints), self.steps
        B: Any = self.rows
        several = f", ({B}, {n})" if B is not None and B > 1 else ""
        B = "B" if B is None else B
        full = f" (or {self.size} for {n})" if self.size != n else ""
        return f"(), ({n},){several}, ({T}, {n}) or ({T}, {B}, {n}){full}"


class Signal:
    """The values of some joints at each step.

    Attributes:
        table: (T or 1, B or 1, n); None where they come from keyframes or a function.
        keyframes: with the columns that the joints have in them, or None.
        function: (t, q, v) -> values, or None.
    """

    def __init__(self, name: str, value: Any, layout: Layout, default: np.ndarray) -> None:
        """Take what was given.

        Args:
            name: of the argument, for messages.
            value: what was given; None for the default.
            layout: of the joints.
            default: (1, B or 1, n), of joints that are not named.

        Raises:
            ShapeError: a wrong shape or content.
            UnknownName: a joint that is not one of these.
        """
        self.name, self.layout, self.default = name, layout, default
        self.table: np.ndarray | None = None
        self.keyframes: Keyframes | None = None
        self.function = None
        if isinstance(value, Keyframes):
            for joint in value.joints:
                if joint not in layout.joints:
                    raise UnknownName("driven joint", joint, layout.joints, f"({name})")
            self.keyframes = value
            self.columns = [layout.joints.index(joint) for joint in value.joints]
        elif callable(value):
            check_call(name, value, ("t", "q", "v"), "values of the driven joints")
            self.function = value
        else:
            self.table = default if value is None else self._rows(value, several=True)

    @property
    def rows(self) -> int | None:
        """B where there is one set of values a row, else None."""
        return None if self.table is None or self.table.shape[1] == 1 else self.table.shape[1]

    def last(self, dt: float) -> int:
        """The step from which the values stay the same."""
        if self.function is not None:
            return self.layout.steps
        if self.keyframes is not None:
            return int(np.ceil(self.keyframes.time[-1] / dt)) + 1
        assert self.table is not None
        return 0 if len(self.table) == 1 else self.layout.steps

    def at(self, steps: np.ndarray, dt: float, q: Any = None, v: Any = None) -> np.ndarray:
        """The values in the middle of steps (T,): (T or 1, B or 1, n)."""
        if self.keyframes is not None:
            return self._curves((steps + 0.5) * dt)[0]
        if self.function is not None:
            return self._rows(self.function((steps[0] + 0.5) * dt, q.copy(), v.copy()), several=False)
        assert self.table is not None
        return self.table if len(self.table) == 1 else self.table[np.minimum(steps, len(self.table) - 1)]

    def rates(self, steps: np.ndarray, dt: float) -> np.ndarray | None:
        """Rates of change in the middle of the steps; None for what is not keyframes."""
        return None if self.keyframes is None else self._curves((steps + 0.5) * dt)[1]

    def _curves(self, t: np.ndarray) -> list[np.ndarray]:
        assert self.keyframes is not None
        out = []
        for base, curve in zip((self.default, 0.0 * self.default), self.keyframes.at(t), strict=True):
            whole = np.repeat(base, len(t), axis=0)
            whole[:, :, self.columns] = curve[:, None]
            out.append(whole)
        return out

    def _rows(self, value: Any, several: bool) -> np.ndarray:
        """(T or 1, B or 1, n) of a number, a mapping or an array; only one row if not several."""
        layout, n = self.layout, len(self.layout.joints)
        if isinstance(value, Mapping):
            out = self.default.copy()
            for joint, number in value.items():
                if joint not in layout.joints:
                    raise UnknownName("driven joint", joint, layout.joints, f"({self.name})")
                given = real_array(f"{self.name}, joint {joint!r}", number, "()")
                if given.ndim:
                    raise ShapeError(f"{self.name}, joint {joint!r}: expected one number, got {given.shape}")
                out[..., layout.joints.index(joint)] = given
            return self._finite(out)
        accepted = layout.accepted if several else f"() or ({n},)"
        array = real_array(self.name, value, accepted)
        shape = array.shape
        if array.ndim == 0:
            return self._finite(np.full((1, 1, n), float(array)))
        if shape[-1] == n:
            pass
        elif shape[-1] == layout.size:
            array = array[..., list(layout.columns)]
        else:
            raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}")
        T, B = layout.steps, layout.rows
        if array.ndim == 1:
            return self._finite(array[None, None])
        if several and array.ndim == 2:
            if B is not None and len(array) == T == B and B > 1:
                raise ShapeError(
                    f"{self.name}: {shape} could be one row a state or one a step; give ({T}, 1, {n}) or "
                    f"(1, {B}, {n})"
                )
            if len(array) in (T, B):
                return self._finite(array[:, None] if len(array) == T else array[None])
        if several and array.ndim == 3 and len(array) in (1, T) and (B is None or array.shape[1] in (1, B)):
            return self._finite(array)
        raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}")

    def _finite(self, array: np.ndarray) -> np.ndarray:
        check_finite(self.name, array)
        return array
