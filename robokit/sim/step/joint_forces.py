"""Damping, dry friction and limits of the joints: forces on the diagonal of H.

    tau = -damping qd - friction qd / sqrt(qd^2 + fade^2) + stop

A stop is a contact in one dimension: max(0, -k phi - d phi') where phi is the distance left to the limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.algorithms.composites import composite_inertias
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim.ground import weight
from robokit.spatial.scalars import Scalar, is_zero, sqrt, where

FADE = 0.01
"""Speed below which dry friction in a joint fades out [rad/s | m/s]."""

STOP_TIME = 5e-3
"""Time constant of a stop against the joint's own inertia [s]."""

STOP_ANGLE = 0.01
"""Angle by which a stop gives way under the robot's weight at the subtree's radius of gyration [rad]."""

STOP_DEPTH = 1e-3
"""The same of a prismatic joint [m]."""


@dataclass(frozen=True)
class Stop:
    """Limits of a joint and the gains of its stops: numbers, (B,) for samples, or scalars of a kernel."""

    lower: float
    upper: float
    k: Scalar
    d: Scalar


@dataclass(frozen=True)
class JointLaw:
    """Passive forces by joint number 0..N.

    Attributes:
        damping: [N m s/rad | N s/m] by dof.
        friction: [N m | N] by dof.
        stop: limits, or None.
    """

    damping: tuple[tuple[float, ...], ...]
    friction: tuple[tuple[float, ...], ...]
    stop: tuple[Stop | None, ...]

    @property
    def active(self) -> bool:
        """Whether there is any force at all."""
        return any(any(row) for row in (*self.damping, *self.friction)) or any(self.stop)

    @property
    def gains(self) -> list[Scalar]:
        """k and d of all stops: the part of the law that depends on the robot's inertias."""
        return [gain for stop in self.stop if stop is not None for gain in (stop.k, stop.d)]

    def with_gains(self, gains: Sequence[Scalar]) -> JointLaw:
        """The same law with other gains of its stops."""
        rest = iter(gains)
        stops = (stop and replace(stop, k=next(rest), d=next(rest)) for stop in self.stop)
        return replace(self, stop=tuple(stops))


def joint_law(robot: Robot, default_damping: float = 0.0) -> tuple[JointLaw, list[str]]:
    """The robot's passive joint forces, computed once.

    Args:
        robot: the robot.
        default_damping: given to moving joints that have none, the floating base excepted.

    Returns:
        the law, and the names of the joints that got the default.
    """
    return robot.derived.get(("joint law", default_damping), lambda: _joint_law(robot, default_damping))


def _joint_law(robot: Robot, default_damping: float) -> tuple[JointLaw, list[str]]:
    damping: list[tuple[float, ...]] = [()]
    friction: list[tuple[float, ...]] = [()]
    stop: list[Stop | None] = [None]
    defaulted = []
    inertia = None
    for i, joint in enumerate(robot.body_joints, 1):
        nv = robot.tree.joint[i].kind.nv
        free = joint.kind == "floating"
        b = joint.damping
        if default_damping and not b and not free:
            b = default_damping
            defaulted.append(joint.name)
        damping.append((0.0 if free else b,) * nv)
        friction.append((0.0 if free else joint.friction,) * nv)
        limited = math.isfinite(joint.lower) or math.isfinite(joint.upper)
        if nv == 1 and limited and joint.kind != "continuous":
            inertia = inertia if inertia is not None else subtree_inertia(robot)
            stop.append(_stop(joint, inertia[i], weight(robot)))
        else:
            stop.append(None)
    return JointLaw(tuple(damping), tuple(friction), tuple(stop)), defaulted


def _stop(joint: Any, inertia: tuple[list[list[Any]], Any], W: Any) -> Stop:
    H, m = inertia[0][0][0], np.asarray(inertia[1])
    if joint.kind == "prismatic":
        k = W / STOP_DEPTH
    else:
        k = W * np.sqrt(np.where(m > 0.0, H / np.where(m > 0.0, m, 1.0), 0.0)) / STOP_ANGLE
    k = np.maximum(k, H / STOP_TIME**2)
    k = k if np.ndim(k) else float(k)
    return Stop(joint.lower, joint.upper, k, 2.0 * STOP_TIME * k)


def subtree_inertia(robot: Robot) -> list[tuple[list[list[Any]], Any]]:
    """S^T I^c S and mass of what each joint 0..N carries, in the neutral configuration; (B,) for samples."""
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    out: list[tuple[list[list[Any]], Any]] = [([], 0.0)] * (tree.n + 1)
    for i, Ic in composite_inertias(tree, X, tree.I):
        S = tree.joint[i].S  # type: ignore[union-attr]
        out[i] = ([list(S.T @ column) for column in S.of(Ic)], Ic.m)
    return out


class JointState:
    """The passive joint forces of one step, linearised at the last iterate of the solve."""

    def __init__(
        self,
        tree: Tree,
        law: JointLaw,
        q: Sequence[Sequence[Scalar]],
        v_star: Sequence[Sequence[Scalar]],
        dt: Scalar,
    ) -> None:
        self.tree, self.law, self.q, self.dt = tree, law, q, dt
        self.v_star = v_star
        self.w: list[list[Scalar]] | None = None
        self.rub: list[list[Scalar]] = []

    def _gaps(self, i: int) -> list[tuple[Scalar, float]]:
        """(distance left, its rate per qd) of the limits of joint i."""
        stop = self.law.stop[i]
        if stop is None:
            return []
        q = self.q[i][0]
        gaps: list[tuple[Scalar, float]] = []
        if math.isfinite(stop.lower):
            gaps.append((q - stop.lower, 1.0))
        if math.isfinite(stop.upper):
            gaps.append((stop.upper - q, -1.0))
        return gaps

    def linearise(self, x: Sequence[Sequence[Scalar]]) -> tuple[list[list[Scalar]], list[list[Scalar]]]:
        """Friction coefficients and active stops from the iterate x.

        Returns:
            slope b and force at rest of the linearised law, tau = force - b qd, by joint and dof.
        """
        dt, old = self.dt, self.w
        self.w, self.rub = [], []
        for i in range(self.tree.n + 1):
            stop = self.law.stop[i]
            row = []
            for m, (phi, sign) in enumerate(self._gaps(i)):
                assert stop is not None
                vn, vn_star = sign * x[i][0], sign * self.v_star[i][0]
                N = -(stop.k * phi + (stop.k * dt + stop.d) * vn)
                gate = (phi + dt * vn_star < 0.0) | (phi + dt * vn < 0.0)
                on = where(gate & (N > 0.0), 1.0, 0.0)
                row.append(on if old is None else 0.5 * (old[i][m] + on))
            self.w.append(row)
            self.rub.append(
                [
                    b + (f / sqrt(s * s + FADE * FADE) if f else 0.0)
                    for b, f, s in zip(self.law.damping[i], self.law.friction[i], x[i], strict=True)
                ]
            )

        slopes: list[list[Scalar]] = []
        rest: list[list[Scalar]] = []
        for i, rub in enumerate(self.rub):
            slope, force = list(rub), [0.0] * len(rub)
            stop = self.law.stop[i]
            if stop is not None:
                for w, (phi, sign) in zip(self.w[i], self._gaps(i), strict=True):
                    slope[0] = slope[0] + w * (stop.k * dt + stop.d)
                    force[0] = force[0] - sign * stop.k * w * phi
            slopes.append(slope)
            rest.append(force)
        return slopes, rest

    def forces(self, x: Sequence[Sequence[Scalar]]) -> list[tuple[list[Scalar], list[Scalar]]]:
        """(damping and friction, stops) of the linearised law at x, by joint and dof."""
        out = []
        for i in range(self.tree.n + 1):
            rub = [-(b * s) if not is_zero(b) else 0.0 for b, s in zip(self.rub[i], x[i], strict=True)]
            held: list[Scalar] = [0.0] * len(rub)
            law = self.law.stop[i]
            if law is not None:
                for w, (phi, sign) in zip(self.w[i], self._gaps(i), strict=True):  # type: ignore[index]
                    N = -w * (law.k * phi + (law.k * self.dt + law.d) * (sign * x[i][0]))
                    held[0] = held[0] + sign * N
            out.append((rub, held))
        return out
