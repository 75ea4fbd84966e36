"""Actuators: what drives the joints of a simulation.

    Torque     tau = target
    PD         tau = kp (target - q) + kd (velocity - v) + feedforward
    Velocity   tau = gain (target - v) + feedforward

Each drives joints of one degree of freedom, within the limits of effort and velocity. Here are the values as
they are given, and as numbers by joint and by step; robokit.sim.run_inputs fits them to a robot.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.arguments import (
    check_call,
    check_finite,
    one_of,
    path_argument,
    real_array,
    real_number,
    several,
)
from robokit.dataclass_tools import frozen, short_repr
from robokit.errors import InvalidValue, RobokitError, ShapeError, UnknownName, WrongType, one_line, shown
from robokit.files import check_size, open_regular, read_arrays, read_regular
from robokit.model.parts import Joint
from robokit.model.robot import Robot, check_robot

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


@frozen
class Torque(Actuator):
    """Joint forces as actuators.

    Attributes:
        target: joint forces [N m | N]: a number, a mapping from joint names, an array in the order of v
            (of the driven joints, or of all), an array with one row per step, :class:`Keyframes`, or a
            function (t, q, v) -> one of the first three. In rollouts it may also have one row per state, as
            ``tau``.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> lift = rk.Torque(rk.gravity_forces(robot, [0.5, 0.2]))
        >>> run = rk.simulate(robot, [0.5, 0.2], duration=0.05, actuators=lift)
        >>> bool(abs(run.v).max() < 1e-6)  # it stays, for now
        True
    """

    target: Any = 0.0


@frozen
class PD(Actuator):
    """Position servo: kp (target - q) + kd (velocity - v) + feedforward.

    The servo is part of the implicit step: no gain makes it unstable.

    Attributes:
        kp: stiffness [N m/rad | N/m].
        kd: damping [N m s/rad | N s/m].
        target: positions [rad | m], in the forms of :class:`Torque`, or a whole configuration; None holds the
            positions at the start; joints that a mapping does not name hold theirs, too.
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


@frozen
class Velocity(Actuator):
    """Velocity servo: gain (target - v) + feedforward; implicit, as :class:`PD`.

    Attributes:
        gain: [N m s/rad | N s/m].
        target: velocities [rad/s | m/s], as in :class:`Torque`.
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
    """What was given as ``actuators``, one or several, as a list; WrongType for anything else."""
    return several("actuators", given, (Torque, PD, Velocity), ACCEPTED)


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
    """Numbers of the driven joints, (n,) or (B, n); a mapping may omit joints that have a default.

    Raises UnknownName for another joint, ShapeError for a wrong shape or a joint without a number.
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
    """The robot with its actuators' rotor inertias on the diagonal of H, not its joints' own armature.

    Without rotors it is the robot itself. The same rotors give the same object, and with it the same machine
    code. Raises as :class:`~robokit.sim.run_inputs.DrivenJoints`.
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
            raise ShapeError(f"{what}: expected one number per joint, got shape {found.shape}")
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


@frozen
class Layout:
    """Where the values of n joints are, and how many steps and rows a run has."""

    joints: tuple[str, ...]  # their names
    columns: Sequence[int]  # their places in an array of all joints
    size: int  # of such an array: nv, or nq for positions
    steps: int  # of the run
    rows: int | None  # of a rollout, 1 in a simulation; None where nothing else says how many there are

    @property
    def accepted(self) -> str:
        """The shapes that are taken, in words."""
        n, T = len(self.joints), self.steps
        B: Any = self.rows
        shapes = ["()", f"({n},)"] + [f"({B}, {n})"] * (B is not None and B > 1)
        if T < UNKNOWN:
            shapes += [f"({T}, {n})", f"({T}, {'B' if B is None else B}, {n})"]
        full = f" (or {self.size} for {n})" if self.size != n else ""
        return f"{', '.join(shapes[:-1])} or {shapes[-1]}{full}"


class Signal:
    """The values of some joints at each step.

    ``table``: (T or 1, B or 1, n); None where they come from keyframes or a function; ``keyframes``: with the
    columns that the joints have in them, or None; ``function``: (t, q, v) -> values, or None.
    """

    def __init__(self, name: str, value: Any, layout: Layout, default: np.ndarray) -> None:
        """Take the ``value`` of the argument ``name``; None, and joints left out, for ``default``, (1, B or
        1, n).

        Raises ShapeError for a wrong shape or content, UnknownName for a joint that is not in the layout.
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
        """Rates of change in the middle of the steps; None for signals that are not keyframes."""
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
                check_finite(f"{self.name}, joint {joint!r}", given)
                out[..., layout.joints.index(joint)] = given
            return out
        accepted = layout.accepted if several else f"() or ({n},)"
        array = real_array(self.name, value, accepted)
        check_finite(self.name, array)
        shape = array.shape
        if array.ndim == 0:
            return np.full((1, 1, n), float(array))
        if shape[-1] == n:
            pass
        elif shape[-1] == layout.size:
            array = array[..., list(layout.columns)]
        else:
            raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}")
        T, B = layout.steps, layout.rows
        if array.ndim == 1:
            return array[None, None]
        if several and array.ndim == 2:
            if B is not None and len(array) == T == B and B > 1:
                raise ShapeError(
                    f"{self.name}: {shape} could be one row per state or one per step; give ({T}, 1, {n}) or "
                    f"(1, {B}, {n})"
                )
            if len(array) in (T, B):
                return array[:, None] if len(array) == T else array[None]
        if several and array.ndim == 3 and len(array) in (1, T) and (B is None or array.shape[1] in (1, B)):
            return array
        tables = "" if T < UNKNOWN else "; for values that change give a function (t, q, v) or Keyframes"
        raise ShapeError(f"{self.name}: expected shape {accepted}, got {shape}{tables}")


# ==== keyframes ===================================================================================
# Keyframes: joint values at points in time, from a file or from arrays.
#
# Files, by their ending; errors name the file, the line, the column and the joint:
#
#     .csv    a header "time, joint, joint, ..." (a column "name" may be there too), then a row a keyframe
#     .json   {"joints": [...], "keyframes": [{"time": 0, "name": "stand", "values": [...]}, ...]}; values may
#             be a mapping from joints, and "joints" is then not needed
#     .npz    arrays time (K,), joints (n,), values (K, n), and name (K,) if there are names

CURVES = ("linear", "cubic")


@frozen
class Keyframes:
    """Values of named joints over time, interpolated between keyframes: targets of actuators.

    Before the first and after the last keyframe, values are constant.

    Attributes:
        time: (K,) ascending [s].
        joints: n joint names.
        values: (K, n) [rad | m].
        name: name of each keyframe, "" if it has none.
        curve: "linear", or "cubic": a spline with continuous accelerations, at rest at both ends.

    Example:
        >>> wave = rk.Keyframes(np.array([0.0, 1.0, 2.0]), ("upper_joint",), np.array([[0.0], [0.5], [0.0]]))
        >>> position, velocity = wave.at([0.0, 0.5, 1.0])
        >>> position.ravel()
        array([0.  , 0.25, 0.5 ])
    """

    time: np.ndarray
    joints: tuple[str, ...]
    values: np.ndarray
    name: tuple[str, ...] = ()
    curve: str = "cubic"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        one_of("curve", self.curve, CURVES)
        time = real_array("Keyframes(time=...)", self.time, "(K,)")
        values = real_array("Keyframes(values=...)", self.values, "(K, n)")
        if isinstance(self.joints, str) or not isinstance(self.joints, Iterable):
            raise WrongType("Keyframes(joints=...)", self.joints, "a sequence of joint names")
        joints = tuple(map(str, self.joints))
        if time.ndim != 1 or not len(time) or values.shape != (len(time), len(joints)):
            raise ShapeError(
                f"Keyframes: expected times (K,) and values (K, {len(joints)}) of {len(joints)} joints, got "
                f"{time.shape} and {values.shape}"
            )
        for label, given in (("time", time), ("values", values)):
            check_finite(f"Keyframes({label}=...)", given)
        if (np.diff(time) <= 0.0).any():
            k = int((np.diff(time) <= 0.0).argmax())
            raise ShapeError(
                f"Keyframes(time=...): expected ascending times, got {time[k]:g} s and then {time[k + 1]:g} s"
            )
        if len(set(joints)) < len(joints):
            twice = min(joint for joint, count in Counter(joints).items() if count > 1)
            raise ShapeError(f"Keyframes(joints=...): {shown(twice)} occurs twice")
        name = tuple(map(str, self.name)) or ("",) * len(time)
        if len(name) != len(time):
            raise ShapeError(f"Keyframes(name=...): expected {len(time)} names, got {len(name)}")
        for attribute, value in (("time", time), ("values", values), ("joints", joints), ("name", name)):
            object.__setattr__(self, attribute, value)

    @staticmethod
    def load(path: str | os.PathLike[str], robot: Robot | None = None, curve: str = "cubic") -> Keyframes:
        """Read a .csv, .json or .npz file.

        Args:
            path: the file.
            robot: if given, every joint must be one of this robot's.
            curve: between the keyframes, "linear" or "cubic".

        Raises:
            ShapeError: the file contains no valid keyframes; the message names the file, the line or the
                keyframe, the column and the joint.
            UnknownName: there is no such joint, or no such kind of curve.
        """
        path = path_argument("path", path)
        time, joints, values, name = read(path)
        if robot is not None:
            check_robot(robot)
            known = set(robot.joint_names)
            for column, joint in enumerate(joints, 1):
                if joint not in known:
                    where = f"({os.fspath(path)}, joint {column} of {len(joints)})"
                    raise UnknownName("joint", joint, robot.joint_names, where)
        try:
            return Keyframes(time, joints, values, name, curve)
        except (InvalidValue, ShapeError) as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from None

    def at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values and their rates of change at the times t (T,): (T, n) each [rad | m; rad/s | m/s]."""
        t = np.clip(np.asarray(t, dtype=float), self.time[0], self.time[-1])
        if len(self.time) == 1:
            held = np.repeat(self.values, len(t), axis=0)
            return held, np.zeros_like(held)
        k = np.clip(np.searchsorted(self.time, t, side="right") - 1, 0, len(self.time) - 2)
        h = np.diff(self.time)[k][:, None]
        s = (t - self.time[k])[:, None] / h
        a, b = self.values[k], self.values[k + 1]
        moving = ((t > self.time[0]) & (t < self.time[-1]))[:, None]
        if self.curve == "linear":
            return a + s * (b - a), np.where(moving, (b - a) / h, 0.0)
        rates = self._rates()
        u, v = rates[k] * h, rates[k + 1] * h
        c, d = 3.0 * (b - a) - 2.0 * u - v, 2.0 * (a - b) + u + v
        return a + s * (u + s * (c + s * d)), np.where(moving, (u + s * (2.0 * c + 3.0 * s * d)) / h, 0.0)

    def _rates(self) -> np.ndarray:
        """Rates of the cubic spline at the keyframes, zero at both ends, (K, n)."""
        K, h = len(self.time), np.diff(self.time)
        rates = np.zeros_like(self.values)
        if K == 2:
            return rates
        # Tridiagonal, and solved by plain arithmetic: LAPACK has other bits on other processors.
        slope = np.diff(self.values, axis=0) / np.square(h)[:, None]
        right, pivots = 3.0 * (slope[:-1] + slope[1:]), 2.0 / h[:-1] + 2.0 / h[1:]
        for k in range(1, K - 2):
            share = 1.0 / (h[k] * pivots[k - 1])
            pivots[k] -= share / h[k]
            right[k] -= share * right[k - 1]
        for k in range(K - 3, -1, -1):
            rates[k + 1] = (right[k] - rates[k + 2] / h[k + 1]) / pivots[k]
        return rates

    def configuration(self, robot: Robot, which: str | int = 0, q: Any = None) -> np.ndarray:
        """A keyframe as a configuration of the robot, (nq,).

        Args:
            robot: the robot.
            which: name or number of the keyframe.
            q: configuration of the joints that the keyframe does not name, (nq,); neutral by default.

        Raises:
            UnknownName: no such keyframe, or a joint that the robot does not have.
            ShapeError: there is no keyframe of that number.
        """
        check_robot(robot)
        if isinstance(which, str):
            known = [name for name in self.name if name]
            if which not in known:
                raise UnknownName("keyframe", which, known)
            which = self.name.index(which)
        if not isinstance(which, int | np.integer) or not -len(self.time) <= which < len(self.time):
            raise ShapeError(f"which: expected a name or a number below {len(self.time)}, got {shown(which)}")
        out = robot.neutral() if q is None else np.array(real_array("q", q, f"({robot.nq},)"), dtype=float)
        if out.shape != (robot.nq,):
            raise ShapeError(f"q: expected shape ({robot.nq},), got {out.shape}")
        for joint, value in zip(self.joints, self.values[which], strict=True):
            out[robot.joint(joint).q_slice] = value
        return out


# ---- files -------------------------------------------------------------------------------------------------

LARGEST_FILE = 256 << 20  # bytes of a .csv, which is read row by row, and of numbers in a .npz
LARGEST_JSON = 64 << 20  # bytes of a .json, which is in memory as objects that are some times larger
MOST_ENTRIES = 4_000_000  # entries of a .json: each takes far more memory than its characters
LONGEST_ROW = 1 << 20  # characters of a row of a .csv; one of a humanoid has a thousand
MOST_JOINTS = 10_000  # more than any robot has: names and columns beyond are those of another file

Table = tuple[np.ndarray, tuple[str, ...], np.ndarray, tuple[str, ...]]
"""Times (K,), n joints, values (K, n), K names."""


class _Wrong(ValueError):
    """What is wrong in a file, for a message after the file's name."""


def read(path: Path) -> Table:
    """Read a file by its ending.

    Raises:
        ShapeError: another ending, no such file, no regular or a damaged one, one that would take far more
            memory than keyframes do, or no keyframes in it.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ShapeError(f"{path}: expected a file of keyframes that ends in {', '.join(READERS)}")
    try:
        return reader(path)
    except _Wrong as error:
        raise ShapeError(f"{path}{error}") from None
    except UnicodeDecodeError:
        raise ShapeError(f"{path}: expected text in UTF-8") from None
    except OSError as error:
        raise ShapeError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ShapeError(f"{path}: {one_line(str(error), 300)}") from None


def _csv(path: Path) -> Table:
    with open_regular(path) as raw:
        check_size(path.stat().st_size, LARGEST_FILE)
        rows = _rows(raw)
        line, header = next(rows, (0, []))
        if not header:
            raise _Wrong(": expected a header 'time, joint, ...', found nothing")
        at, columns, named = _columns(line, header)
        time, values, names = array("d"), array("d"), []
        for line, row in rows:
            if len(row) != len(header):
                raise _Wrong(f", line {line}: expected {len(header)} columns, got {len(row)}")
            try:
                numbers = [float(row[k]) for k in (at, *columns)]
            except ValueError:
                numbers = [math.nan]
            if not all(map(math.isfinite, numbers)):
                bad = next(k for k in (at, *columns) if not _is_finite(row[k]))
                where = f", line {line}, column {bad + 1} ({shown(header[bad])})"
                raise _Wrong(f"{where}: expected a finite number, got {shown(row[bad])}")
            time.append(numbers[0])
            values.extend(numbers[1:])
            names.append("" if named is None else row[named])
    if not time:
        raise _Wrong(": expected at least one joint and one keyframe")
    joints = tuple(header[k] for k in columns)
    return np.array(time), joints, np.array(values).reshape(len(time), len(joints)), tuple(names)


def _rows(raw: IO[bytes]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are neither empty nor remarks, with the line at which each ends."""
    text, left = io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""), LONGEST_ROW

    def lines() -> Iterator[str]:
        nonlocal left
        while piece := text.readline(left + 1):
            left -= len(piece)
            if left < 0:
                raise _Wrong(f", line {reader.line_num + 1}: a row of more than {LONGEST_ROW:,} characters")
            yield piece

    reader = csv.reader(lines(), skipinitialspace=True)
    try:
        for row in reader:
            left = LONGEST_ROW
            cells = [cell.strip() for cell in row]
            if any(cells) and not cells[0].startswith("#"):
                yield reader.line_num, cells
    except csv.Error as error:
        raise _Wrong(f", line {reader.line_num}: {error}") from None


def _columns(line: int, header: list[str]) -> tuple[int, list[int], int | None]:
    """Where the times, the joints' values and the names, if any, stand in a row."""
    if "time" not in header:
        raise _Wrong(f", line {line}: expected a column 'time' in the header, got {shown(header[:20])}")
    for name in ("time", "name"):
        if header.count(name) > 1:
            raise _Wrong(f", line {line}: expected one column {name!r}, got {header.count(name)}")
    columns = [k for k, name in enumerate(header) if name not in ("time", "name")]
    _check_joints(f", line {line}", len(columns))
    for k in columns:
        if not header[k]:
            raise _Wrong(f", line {line}, column {k + 1}: expected the name of a joint")
    if not columns:
        raise _Wrong(": expected at least one joint and one keyframe")
    return header.index("time"), columns, header.index("name") if "name" in header else None


def _check_joints(where: str, count: int) -> None:
    if count > MOST_JOINTS:
        raise _Wrong(f"{where}: {count:,} joints; at most {MOST_JOINTS:,} are read")


def _json(path: Path) -> Table:
    content = read_regular(path, LARGEST_JSON)
    entries = sum(map(content.count, (b",", b"[", b"{")))
    if entries > MOST_ENTRIES:
        raise _Wrong(f": {entries:,} entries; at most {MOST_ENTRIES:,} are read; write it as .npz")
    try:
        data = json.loads(content.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise _Wrong(f", line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _Wrong(": nested too deeply for keyframes") from None
    frames = data.get("keyframes") if isinstance(data, dict) else None
    if not isinstance(frames, list) or not frames or not all(isinstance(x, dict) for x in frames):
        raise _Wrong(": expected an object with a list 'keyframes' of objects")
    joints = data.get("joints")
    if joints is None:
        first = frames[0].get("values")
        joints = list(first) if isinstance(first, dict) else None
    if not isinstance(joints, list) or not joints or not all(isinstance(x, str) for x in joints):
        raise _Wrong(": expected 'joints', a list of joint names, or values that name them")
    _check_joints("", len(joints))
    time, values, names = array("d"), array("d"), []
    for k, frame in enumerate(frames):
        where = f", keyframe {k}"
        time.append(_number(f"{where}, 'time'", frame.get("time")))
        values.extend(_frame_values(where, joints, frame.get("values")))
        name = frame.get("name")
        if isinstance(name, list | dict):
            raise _Wrong(f"{where}, 'name': expected text, got {shown(name)}")
        names.append("" if name is None else str(name))
    return np.array(time), tuple(joints), np.array(values).reshape(len(time), len(joints)), tuple(names)


def _frame_values(where: str, joints: list[str], row: Any) -> list[float]:
    """The values of a keyframe in the order of the joints."""
    if isinstance(row, dict):
        for joint in (*(row.keys() - set(joints)), *(x for x in joints if x not in row)):
            raise _Wrong(f"{where}: expected a value for each of 'joints'; look at {shown(joint)}")
        row = [row[joint] for joint in joints]
    if not isinstance(row, list) or len(row) != len(joints):
        raise _Wrong(f"{where}: expected {len(joints)} 'values', got {shown(row)}")
    if all(isinstance(x, float) and math.isfinite(x) for x in row):
        return row
    return [_number(f"{where}, joint {shown(joint)}", x) for joint, x in zip(joints, row, strict=True)]


def _npz(path: Path) -> Table:
    try:
        arrays = read_arrays(path, ("time", "joints", "values", "name"))
    except ValueError as error:
        raise _Wrong(f": not an .npz file, as numpy.savez writes it ({one_line(str(error), 300)})") from None
    for name in ("time", "joints", "values"):
        if name not in arrays:
            raise _Wrong(f": expected an array {name!r}; it has {', '.join(arrays) or 'none'}")
    time, values, joints = arrays["time"], arrays["values"], arrays["joints"]
    names = arrays.get("name", np.zeros(0, str))
    if joints.dtype.kind != "U" or joints.ndim != 1 or names.dtype.kind != "U" or names.ndim > 1:
        raise _Wrong(": expected names as an array of text (n,) in 'joints' and 'name'")
    if values.ndim != 2 or values.dtype.kind not in "fiu" or time.dtype.kind not in "fiu":
        raise _Wrong(": expected numbers (K,) in 'time' and (K, n) in 'values'")
    _check_joints("", len(joints))
    K, n = values.shape
    if time.shape != (K,) or joints.shape != (n,) or names.size not in (0, K):
        raise _Wrong(
            f": expected times (K,), values (K, n), n joints and K names or none, got {time.shape}, "
            f"{values.shape}, {joints.shape} and {names.shape}"
        )
    check_size(8 * values.size, LARGEST_FILE)  # as float64, whatever it is in the file
    with np.errstate(over="ignore"):
        time, values = time.astype(float), values.astype(float)
    if not np.isfinite(values).all():
        k, j = divmod(int(np.isfinite(values).ravel().argmin()), n)
        raise _Wrong(f": values[{k}, {j}] (joint {shown(str(joints[j]))}) is not finite")
    return time, tuple(joints.tolist()), values, tuple(names.ravel().tolist())


def _number(where: str, given: Any) -> float:
    """A finite number of a file."""
    if isinstance(given, bool) or given is None or not _is_finite(given):
        raise _Wrong(f"{where}: expected a finite number, got {shown(given)}")
    return float(given)


def _is_finite(given: Any) -> bool:
    try:
        return math.isfinite(float(given))
    except (TypeError, ValueError, OverflowError):
        return False


READERS: dict[str, Callable[[Path], Table]] = {".csv": _csv, ".json": _json, ".npz": _npz}  # by the ending


# ==== prescribed motion ===========================================================================
# Joints whose motion is prescribed: as it is given, and fitted to a robot and the steps of a run.


PER_STEP = 8.0
"""Parts of a step in which the rate of a function of time is taken: five values around it leave an error of
(dt / 8)^4 / 30 of the fifth derivative."""

ONE_SIDED = (-25.0, 48.0, -36.0, 16.0, -3.0)
"""Weights of five values, the first and later ones, for twelve steps of a rate of fourth order."""


@frozen
class PrescribedMotion:
    """A joint that follows a given function of time, whatever acts on it.

    Recorded positions equal the function to the last digit; ``trajectory.prescribed_force`` is the force that
    this requires. The run starts on the motion.

    Attributes:
        joint: name of a joint with one degree of freedom; None with keyframes, for all joints that they name.
        q: a function of time -> position [rad | m]; :class:`Keyframes`; or an array of the positions at the
            start and at the ends of the steps, (steps + 1,), in rollouts also (steps + 1, B). A
            :class:`Simulation` that continues beyond the array stays at the last position. A rollout calls a
            function once per step, for all rows.
        v: velocity, as a function of time or an array like ``q`` [rad/s | m/s]. None: that of the keyframes,
            or fourth-order differences of functions and arrays.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> wave = rk.PrescribedMotion("upper_joint", lambda t: 0.3 * np.sin(5.0 * t))
        >>> run = rk.simulate(robot, duration=0.5, motions=wave)
        >>> bool((run.q[:, 0] == 0.3 * np.sin(5.0 * run.t)).all())
        True
    """

    joint: str | None
    q: Callable[[float], float] | Keyframes | Any
    v: Callable[[float], float] | Any = None

    def __post_init__(self) -> None:
        if self.joint is None and isinstance(self.q, Keyframes):
            return
        if not isinstance(self.joint, str):
            raise WrongType("PrescribedMotion(joint=...)", self.joint, "the name of a joint")
        for name in ("q", "v"):
            given = getattr(self, name)
            if isinstance(given, Keyframes) or (name == "v" and given is None):
                continue
            if callable(given):
                check_call(f"PrescribedMotion({name}=...)", given, ("t",), "one number")
                continue
            array = real_array(f"PrescribedMotion({name}=...)", given, "(steps + 1,) or (steps + 1, B)")
            if array.ndim not in (1, 2) or not array.size:
                raise ShapeError(
                    f"PrescribedMotion({name}=...): expected a function of time, rk.Keyframes or an array "
                    f"(steps + 1,) or (steps + 1, B), got shape {array.shape}"
                )
            check_finite(f"PrescribedMotion({name}=...)", array)
            object.__setattr__(self, name, array)
        if isinstance(self.q, Keyframes) and self.v is not None:
            raise ShapeError("PrescribedMotion(v=...): keyframes have velocities of their own; leave it out")

    def at_half_steps(self, dt: float) -> PrescribedMotion:
        """The same motion for steps of half the length; arrays get values in the middle of their steps."""
        if not isinstance(self.q, np.ndarray):
            return self
        law = _Law("motions", self.joint or "", self, dt)
        q = np.repeat(self.q, 2, axis=0)[:-1]
        q[1::2] = [law.position(k + 0.5) for k in range(len(self.q) - 1)]
        if not isinstance(self.v, np.ndarray):
            return PrescribedMotion(self.joint, q, self.v)
        v = np.repeat(self.v, 2, axis=0)[:-1]
        v[1::2] = 1.5 * np.diff(self.q, axis=0) / dt - 0.25 * (self.v[1:] + self.v[:-1])  # of the same cubic
        return PrescribedMotion(self.joint, q, v)


class Motions:
    """Prescribed motions fitted to a robot and to the steps of a run.

    ``bodies``: of the joints; ``dofs``, ``places``: of these in v and q; ``rows``: B where they differ from
    row to row, else None.
    """

    def __init__(self, robot: Robot, given: Sequence[PrescribedMotion], dt: float, steps: int) -> None:
        """Fit them.

        Raises UnknownName for a joint that is not there; ShapeError for one of several degrees of freedom,
        one that follows another or is prescribed twice, and for an array of another length.
        """
        self.dt, self.steps, self.rows = dt, steps, None
        self.names: list[str] = []
        self.bodies: list[int] = []
        self.dofs: list[int] = []
        self.places: list[int] = []
        self._laws: list[_Law] = []
        for k, motion in enumerate(given):
            names = [motion.joint] if motion.joint is not None else list(motion.q.joints)  # type: ignore[union-attr]
            for name in names:
                self._add(f"motions[{k}]", robot, name, motion)

    @classmethod
    def at_start(cls, robot: Robot, given: Sequence[PrescribedMotion], dt: Any) -> Motions:
        """The motions for a run whose end is not known; ``dt`` as in ``simulate``, None for the usual one."""
        return cls(robot, given, USUAL if dt is None else real_number("dt", dt, above=0.0), UNKNOWN)

    def _add(self, what: str, robot: Robot, name: str, motion: PrescribedMotion) -> None:
        joint = robot.joint(name)
        if joint in robot.mimic_joints:
            raise ShapeError(
                f"{what}: joint {name!r} follows joint {joint.mimic.joint!r}; prescribe that one"  # type: ignore[union-attr]
            )
        if joint not in robot.joints or joint.v_slice.stop - joint.v_slice.start != 1:
            raise ShapeError(
                f"{what}: joint {name!r} cannot be prescribed; expected one with one degree of freedom of "
                f"its own, this is {joint.kind}"
            )
        if name in self.names:
            raise ShapeError(f"{what}: the motion of joint {name!r} is prescribed twice")
        law = _Law(what, name, motion, self.dt)
        if law.count is not None and law.count < self.steps + 1 and self.steps < UNKNOWN:
            raise ShapeError(
                f"{what}: expected {self.steps + 1} positions, one more than there are steps, got {law.count}"
            )
        if law.rows is not None:
            if self.rows not in (None, law.rows):
                raise ShapeError(f"{what}: expected {self.rows} rows, got {law.rows}")
            self.rows = law.rows
        self.names.append(name)
        self.bodies.append(joint.body)
        self.dofs.append(joint.v_slice.start)
        self.places.append(joint.q_slice.start)
        self._laws.append(law)

    def __bool__(self) -> bool:
        return bool(self.names)

    def start(
        self, q: np.ndarray, v: np.ndarray, rows: np.ndarray | None = None, step: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (nq,) and (nv,), or rows of them, put on the motions as they are after ``step`` steps.

        ``rows``: numbers of those of a batch, if they are not all.
        """
        if not self:
            return q, v
        q, v = np.array(q, float), np.array(v, float)
        if self.rows is not None and rows is None:
            q, v = (np.array(np.broadcast_to(x, (self.rows, x.shape[-1]))) for x in (q, v))
        for place, dof, law in zip(self.places, self.dofs, self._laws, strict=True):
            for x, k, value in ((q, place, law.position(step)), (v, dof, law.velocity(step))):
                x[..., k] = value if rows is None or not np.ndim(value) else value[rows]
        return q, v

    def at(self, step: int) -> np.ndarray:
        """The numbers of a step, (3 n,) or (B, 3 n)."""
        columns = []
        for law in self._laws:
            middle, end = law.position(step + 0.5), law.position(step + 1.0)
            columns += [middle, end, law.velocity(step + 1.0)]
        return np.stack(np.broadcast_arrays(*columns), axis=-1).astype(float)

    def table(self, steps: int) -> np.ndarray:
        """Positions, velocities and accelerations in all steps, (T, B or 1, 3 n)."""
        each = [np.atleast_2d(self.at(step)) for step in range(max(1, steps))]
        return np.stack(each)


USUAL = 1e-3  # step that rates at a start are found with where none is given yet [s]
UNKNOWN = 1_000_000_000  # steps from which a run has no end that is known


class _Law:
    """Position and velocity of one joint, at times in steps.

    ``count``: of positions in an array, else None; ``rows``: B of an array by rows, else None.
    """

    def __init__(self, what: str, name: str, motion: PrescribedMotion, dt: float) -> None:
        self.what, self.dt, self.motion, self.name = what, dt, motion, name
        q, v = motion.q, motion.v
        self.count = len(q) if isinstance(q, np.ndarray) else None
        self.rows = q.shape[1] if isinstance(q, np.ndarray) and q.ndim == 2 else None
        if isinstance(q, Keyframes) and name not in q.joints:
            raise ShapeError(f"{what}: the keyframes have no joint {name!r}")
        if isinstance(q, np.ndarray) and isinstance(v, np.ndarray) and v.shape != q.shape:
            raise ShapeError(f"{what}: v: expected the shape of q, {q.shape}, got {v.shape}")
        if isinstance(q, np.ndarray) and v is None:
            self._rates = _differences(q, dt)
        elif isinstance(v, np.ndarray):
            self._rates = v

    def position(self, step: float) -> Any:
        """At so many steps."""
        q = self.motion.q
        if isinstance(q, Keyframes):
            return q.at([step * self.dt])[0][0, q.joints.index(self.name)]
        if callable(q):
            return self._number(q, step * self.dt)
        k = min(int(step), len(q) - 1)
        if k == step or k + 1 >= len(q):
            return q[k]
        # In the middle of a step: the cubic through both ends and their rates.
        rates = self._rates if not callable(self.motion.v) else [self.velocity(k), self.velocity(k + 1)]
        first, last = (rates[k], rates[k + 1]) if not isinstance(rates, list) else rates
        return 0.5 * (q[k] + q[k + 1]) + 0.125 * self.dt * (first - last)

    def velocity(self, step: float) -> Any:
        """At the end of so many steps."""
        q, v = self.motion.q, self.motion.v
        if isinstance(q, Keyframes):
            return q.at([step * self.dt])[1][0, q.joints.index(self.name)]
        if callable(v):
            return self._number(v, step * self.dt)
        if isinstance(q, np.ndarray) or isinstance(v, np.ndarray):
            k = int(step)
            return self._rates[k] if k < len(self._rates) else 0.0 * self._rates[-1]  # it stays at the last
        t, h = step * self.dt, self.dt / PER_STEP
        if t < 2.0 * h:  # nothing is known of times before the start
            five = [self._number(q, t + k * h) for k in range(5)]
            return sum(w * x for w, x in zip(ONE_SIDED, five, strict=True)) / (12.0 * h)
        far, near, then, later = (self._number(q, t + k * h) for k in (-2, -1, 1, 2))
        return (8.0 * (then - near) - (later - far)) / (12.0 * h)

    def _number(self, f: Callable[[float], float], t: float) -> float:
        try:
            found = np.asarray(f(t), dtype=float)
        except RobokitError:
            raise
        except Exception as error:
            raise InvalidValue(
                f"{self.what}: the function of joint {self.name!r} failed at t = {t:.6g} s: "
                f"{type(error).__name__}: {error}"
            ) from error
        if found.size != 1 or not np.isfinite(found).all():
            raise InvalidValue(
                f"{self.what}: the function of joint {self.name!r} gave {found!r} at t = {t:.6g} s; expected "
                "one finite number"
            )
        return float(found.reshape(()))


def _differences(q: np.ndarray, dt: float) -> np.ndarray:
    """Rates of positions at equal times, (T, ...): of fourth order, of fewer than five of second order."""
    if len(q) < 5:
        return np.gradient(q, dt, axis=0) if len(q) > 1 else np.zeros_like(q)
    found = np.zeros_like(q)
    found[2:-2] = (8.0 * (q[3:-1] - q[1:-3]) - (q[4:] - q[:-4])) / (12.0 * dt)
    for k, s in ((0, 1.0), (1, 1.0), (-1, -1.0), (-2, -1.0)):
        end = q[:5] if s > 0 else q[:-6:-1]
        weights = ONE_SIDED if k in (0, -1) else (-3.0, -10.0, 18.0, -6.0, 1.0)
        found[k] = s * sum(w * x for w, x in zip(weights, end, strict=True)) / (12.0 * dt)
    return found
