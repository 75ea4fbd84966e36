"""The law of the passive joint forces: damping, dry friction and limits of a robot's joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from robokit.algorithms.composites import composite_inertias
from robokit.errors import ModelError
from robokit.model.robot import Robot
from robokit.sim.ground.ground import weight
from robokit.sim.motion.effective_mass import effective_inertias
from robokit.spatial.scalars import Scalar, maximum, minimum, where

DAMPING_TIME = 0.5
"""Time in which damping that is assumed stops a joint that nothing else moves [s].

What swings freely shrinks by a factor of e in twice this time: a hand is at rest ten seconds after a fall.
"""

STUCK = 5e-6
"""Angle or distance that a bristle of dry friction is wound before the joint slides, at most [rad | m]."""

GIVING = 8e-4
"""Time constant of a bristle against the dof's own inertia, at most [s].

What is heavy for its friction would creep for long before a softer bristle is wound.
"""

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


def pressing(stop: Stop, q: Scalar, force: Scalar) -> Scalar:
    """The force of a stop on its joint at q, without what pulls: a stop in a step may pull a little."""
    at_upper, at_lower = minimum(force, 0.0), maximum(force, 0.0)
    if math.isinf(stop.lower) or math.isinf(stop.upper):
        return at_upper if math.isinf(stop.lower) else at_lower
    return where(q > 0.5 * (stop.lower + stop.upper), at_upper, at_lower)


@dataclass(frozen=True)
class Friction:
    """Dry friction of a dof: its most [N m | N], damping of its bristle, effective inertia of the dof."""

    most: float
    d: Scalar
    inertia: Scalar

    @property
    def k(self) -> Scalar:
        """Stiffness of the bristle [N m/rad | N/m]."""
        return maximum(self.most / STUCK, self.inertia * (1.0 / GIVING**2))


@dataclass(frozen=True)
class JointLaw:
    """Passive forces by joint number 0..N.

    Attributes:
        damping: [N m s/rad | N s/m] by dof.
        assumed: whether that damping is not from the description but follows from the inertia.
        friction: by dof, None where there is none.
        stop: limits, or None.
    """

    damping: tuple[tuple[Scalar, ...], ...]
    assumed: tuple[bool, ...]
    friction: tuple[tuple[Friction | None, ...], ...]
    stop: tuple[Stop | None, ...]

    @property
    def active(self) -> bool:
        """Whether there is any force at all."""
        damped = any(
            np.any(b) if isinstance(b, float | np.ndarray) else True for r in self.damping for b in r
        )
        return damped or any(map(any, self.friction)) or any(self.stop)

    @property
    def wound(self) -> tuple[tuple[int, int], ...]:
        """(joint, dof of the joint) with a bristle."""
        return tuple((i, k) for i, row in enumerate(self.friction) for k, f in enumerate(row) if f)

    @property
    def gains(self) -> list[Scalar]:
        """The part of the law that depends on the robot's inertias."""
        found = [gain for stop in self.stop if stop is not None for gain in (stop.k, stop.d)]
        found += [gain for row in self.friction for f in row if f is not None for gain in (f.d, f.inertia)]
        return found + [b for row, own in zip(self.damping, self.assumed, strict=True) if own for b in row]

    def with_gains(self, gains: Sequence[Scalar]) -> JointLaw:
        """The same law with other gains."""
        rest = iter(gains)

        def friction(f: Friction | None) -> Friction | None:
            return f and replace(f, d=next(rest), inertia=next(rest))

        stops = tuple(stop and replace(stop, k=next(rest), d=next(rest)) for stop in self.stop)
        rubs = tuple(tuple(friction(f) for f in row) for row in self.friction)
        damping = tuple(
            tuple(next(rest) for _ in row) if own else row
            for row, own in zip(self.damping, self.assumed, strict=True)
        )
        return replace(self, stop=stops, friction=rubs, damping=damping)


def assumed_damping(amount: float | str) -> str:
    """The damping that was assumed, in words.

    Args:
        amount: [N m s/rad], or "inertia" for the inertia that a joint carries over DAMPING_TIME.
    """
    return f"inertia / {DAMPING_TIME:g} s" if isinstance(amount, str) else f"{amount:g} N m s/rad"


def joint_law(robot: Robot, default_damping: float | None = 0.0) -> tuple[JointLaw, list[str]]:
    """The robot's passive joint forces, computed once.

    Args:
        default_damping: given to moving joints that have none, the floating base excepted
            [N m s/rad | N s/m]; None takes the inertia that the joint carries over DAMPING_TIME.

    Returns:
        the law, and the names of the joints that got the default.

    Raises:
        ModelError: dry friction below zero.
    """
    return robot.derived.get(("joint law", default_damping), lambda: _joint_law(robot, default_damping))


def _joint_law(robot: Robot, default_damping: float | None) -> tuple[JointLaw, list[str]]:
    damping: list[tuple[Any, ...]] = [()]
    assumed = [False]
    friction: list[tuple[Friction | None, ...]] = [()]
    stop: list[Stop | None] = [None]
    defaulted = []
    carried, turned = cache(partial(subtree_inertia, robot)), cache(partial(_turned_inertias, robot))
    for i, joint in enumerate(robot.body_joints, 1):
        nv = robot.tree.joint[i].kind.nv
        free = joint.kind == "floating"
        given = joint.damping or free or default_damping == 0.0
        own = not given and default_damping is None
        if given:
            damping.append((0.0 if free else joint.damping,) * nv)
        else:
            defaulted.append(joint.name)
            moved = carried()[i][0] if own else []
            damping.append(
                tuple(_plain(moved[k][k] / DAMPING_TIME) if own else default_damping for k in range(nv))
            )
        assumed.append(own)
        most = 0.0 if free else joint.friction
        if most < 0.0:
            raise ModelError(
                f"joint {joint.name!r}: its dry friction of {most:g} is below zero and would push it along; "
                "a simulation takes zero or more"
            )
        if most:
            friction.append(tuple(_friction(most, turned()[i, k]) for k in range(nv)))
        else:
            friction.append((None,) * nv)
        limited = math.isfinite(joint.lower) or math.isfinite(joint.upper)
        if nv == 1 and limited and joint.kind != "continuous":
            stop.append(_stop(joint, carried()[i], weight(robot)))
        else:
            stop.append(None)
    return JointLaw(tuple(damping), tuple(assumed), tuple(friction), tuple(stop)), defaulted


def _turned_inertias(robot: Robot) -> dict[tuple[int, int], Any]:
    """What the dofs of joints with dry friction turn with all others free, by joint and dof [kg m^2 | kg]."""
    rub = [i for i, joint in enumerate(robot.body_joints, 1) if joint.kind != "floating" and joint.friction]
    dofs = [(i, k) for i in rub for k in range(robot.tree.joint[i].kind.nv)]  # type: ignore[union-attr]
    return dict(zip(dofs, effective_inertias(robot, dofs), strict=True))


def _plain(x: Any) -> Any:
    return x if np.ndim(x) else float(x)


def _friction(most: float, inertia: Any) -> Friction:
    """A bristle that is critically damped against the dof's own inertia."""
    law = Friction(most, 0.0, _plain(inertia))
    return replace(law, d=_plain(2.0 * np.sqrt(inertia * law.k)))


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
    """Inertia S^T I^c S and mass of what each joint 0..N carries, in the neutral configuration.

    (B,) for samples. The joint's own rotor counts as carried: it must be stopped and damped, too.
    """
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    out: list[tuple[list[list[Any]], Any]] = [([], 0.0)] * (tree.n + 1)
    for i, Ic in composite_inertias(tree, X, tree.I):
        S = tree.joint[i].S  # type: ignore[union-attr]
        H = [list(S.T @ column) for column in S.of(Ic)]
        for k, rotor in enumerate(tree.armature[i] if tree.armature else ()):
            H[k][k] = H[k][k] + rotor
        out[i] = (H, Ic.m)
    return out
