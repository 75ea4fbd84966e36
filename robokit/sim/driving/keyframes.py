"""Keyframes: joint values at points in time, from a file or from arrays.

Files, by their ending:

    .csv    a header "time, joint, joint, ..." (a column "name" may be there too), then a row a keyframe
    .json   {"joints": [...], "keyframes": [{"time": 0, "name": "stand", "values": [...]}, ...]}; values may
            be a mapping from joints, and "joints" is then not needed
    .npz    arrays time (K,), joints (n,), values (K, n), and name (K,) if there are names

The readers are in robokit.sim.driving.keyframe_files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_finite, one_of, path_argument, real_array
from robokit.dataclass_tools import short_repr
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType, shown
from robokit.model.arguments import not_a_robot
from robokit.model.robot import Robot
from robokit.sim.driving import keyframe_files

CURVES = ("linear", "cubic")


@dataclass(frozen=True, eq=False)
class Keyframes:
    """Values of named joints over time, interpolated between keyframes: targets of actuators.

    Values before the first and after the last keyframe are constant.

    Attributes:
        time: (K,) ascending [s].
        joints: n joint names.
        values: (K, n) [rad | m].
        name: of each keyframe, "" where it has none.
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
        for label, array in (("time", time), ("values", values)):
            check_finite(f"Keyframes({label}=...)", array)
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
            robot: if given, every joint must be one of its.
            curve: between the keyframes, "linear" or "cubic".

        Raises:
            ShapeError: a file that holds no keyframes; names the file, the line or the keyframe, the column
                and the joint.
            UnknownName: a joint that the robot does not have, or no such curve.
        """
        path = path_argument("path", path)
        time, joints, values, name = keyframe_files.read(path)
        if robot is not None:
            if not isinstance(robot, Robot):
                raise not_a_robot(robot)
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
        u, v = (self._rates()[k + j] * h for j in (0, 1))
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
            q: configuration whose other joints stay, (nq,); neutral by default.

        Raises:
            UnknownName: no such keyframe, or a joint that the robot does not have.
            ShapeError: no keyframe of that number.
        """
        if not isinstance(robot, Robot):
            raise not_a_robot(robot)
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
