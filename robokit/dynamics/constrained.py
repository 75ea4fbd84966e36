"""Links that are held, and links felt from outside: operational space, constrained dynamics, impacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.algorithms.constrained_dynamics import PROXIMAL
from robokit.arguments import real_array
from robokit.dataclass_tools import short_repr
from robokit.dynamics import choices
from robokit.dynamics.devices import on_card, on_device
from robokit.dynamics.run import FExt, accelerations, dtype_name, dtype_of, with_forces
from robokit.errors import ShapeError
from robokit.model.robot import Robot, check_robot

__all__ = ["OperationalSpaceInertia", "constrained_dynamics", "impact", "operational_space_inertia"]

PROXIMAL_SINGLE = 1e-4
"""The proximal share in single precision."""

SINGULAR = ("inertias", "the frames cannot move in some direction here; give a damping, such as 1e-6")
"""What is not finite in a singular pose, and what to do."""

UNBOUNDED = (
    "accelerations and forces",
    "v, tau or f_ext are too large, or proximal is too small for constraints that repeat one another",
)
"""The same for constraints."""

NO_GAINS = (0.0, 0.0)
"""Baumgarte's gains by default: no stabilisation."""

_NO_GAINS = np.zeros(2)
_NO_GAINS.flags.writeable = False


class OperationalSpaceInertia(NamedTuple):
    """What :func:`operational_space_inertia` returns; m rows of J for all frames together.

    Attributes:
        inertia: Lambda, (m, m) or (B, m, m) [kg m^2 | kg m | kg].
        mobility: its inverse J H^-1 J^T, (m, m) or (B, m, m).
        inverse_jacobian: the dynamically consistent inverse H^-1 J^T Lambda, (nv, m) or (B, nv, m).
    """

    inertia: np.ndarray
    mobility: np.ndarray
    inverse_jacobian: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def operational_space_inertia(
    robot: Robot,
    q: Any,
    frames: Sequence[Any],
    damping: Any = 0.0,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> OperationalSpaceInertia:
    """The inertia that links show to forces from outside, all frames together.

    With the rows of J, [angular; linear] of a pose and linear of a position, in world axes at the point:
    Lambda = (J H^-1 J^T)^-1 and Jbar = H^-1 J^T Lambda. Forces F at the frames are joint forces J^T F; joint
    forces (1 - J^T Jbar^T) tau move none of the frames. J is :func:`link_jacobian`'s.

    Where the frames cannot move in some direction, Lambda is infinite: give a damping. Then
    Lambda = (mobility + damping S)^-1, with S the diagonal of typical mobilities of angles and of lengths,
    and a direction that cannot move weighs some 1 / damping times the others. ``mobility`` is never damped.

    Source: Khatib 1987; RBDA sections 6.5, 8.5.  Cost: O(n d^2 + m n d).

    Args:
        robot: the robot.
        q, engine, dtype, reproducible, device: as in :func:`rnea`.
        frames: names of links (their pose), :class:`Contact` objects or (link, at, "position" | "pose").
            Every list of frames has machine code of its own.
        damping: share of the typical mobility, (), (B,) or (B, 1); 1e-6 is a small one.
        out: three arrays to write to.

    Returns:
        (inertia, mobility, inverse_jacobian).

    Raises:
        UnknownName: no such link.
        ShapeError: the pose is singular and there is no damping, or the damping is negative.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("arm"))
        >>> q = robot.configuration(joints={"joint_4": -1.0})
        >>> found = rk.operational_space_inertia(robot, q, [rk.Contact(robot.link_names[-1])], damping=1e-6)
        >>> found.inertia.shape, found.inverse_jacobian.shape
        ((3, 3), (7, 3))
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    dtype = dtype_of(dtype, out, q, damping)
    e = _share("damping", damping)
    key = ("operational_space_inertia", choices.frames(robot, frames))
    return OperationalSpaceInertia(
        *accelerations(robot, key, out, engine, dtype, reproducible, q, e, refusal=SINGULAR)
    )


def constrained_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Sequence[Any] | None = None,
    stabilisation: Any = NO_GAINS,
    proximal: float | None = None,
    f_ext: FExt = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Forward dynamics with bilateral contacts and loop joints.

    H a + C = tau + J^T lambda and J a + J' v = -kp delta - kd J v, both ways: a contact can pull; C has
    the forces f_ext too. The rows of a contact are in world axes at its point, those of a loop joint in its
    frame on the predecessor. Constraints may repeat one another, as four corners of a foot do: the forces are
    then those of proximal iterations, which share the load among them. Where they contradict one another
    the accelerations are the nearest compromise, and J a + J' v says by how much. Without stabilisation the
    acceleration errors are zero and velocities drift apart slowly over many steps.

    Source: RBDA chapter 8.  Cost: O(n + m^2 d + m^3), m rows; O(n d^2) with coupled joints.

    Args:
        robot: the robot.
        q, v, f_ext, engine, dtype, reproducible, device: as in :func:`rnea`.
        tau: joint forces [N m | N], (nv,) or (B, nv).
        constraints: :class:`Contact` objects, or (link, at, "position" | "pose"), and names of loop joints;
            None for all loop joints of the robot. Every list of them has machine code of its own.
        stabilisation: Baumgarte's (kp, kd) [1/s^2, 1/s], (2,) or (B, 2); delta is how far a loop joint
            is from closed, and 0 for contacts, which are held where they are.
        proximal: share of the typical mobility that each iteration adds, 1e-8 (1e-4 in single precision).
        out: two arrays to write to.

    Returns:
        (a, lambda): accelerations [rad/s^2 | m/s^2], (nv,) or (B, nv), and the forces on the links by row
        [N m | N], (m,) or (B, m): 3 for a position [f], 6 for a pose [n; f], 6 less its degrees of freedom
        for a loop joint.

    Raises:
        UnknownName: no such link or loop joint.
        ShapeError: no constraint at all, or a gain below zero.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> hold = rk.Contact("mount", kind="pose")
        >>> a, force = rk.constrained_dynamics(robot, robot.neutral(), np.zeros(8), np.zeros(8), [hold])
        >>> round(float(force[5]), 3), round(robot.total_mass * 9.81, 3)  # it carries the whole weight
        (41.202, 41.202)
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    dtype = dtype_of(dtype, out, q, v, tau, f_ext, stabilisation, proximal)
    name, given = with_forces("constrained_dynamics", robot, q, f_ext, engine, reproducible)
    key = (name, choices.constraints(robot, constraints))
    gains = _NO_GAINS
    if stabilisation is not NO_GAINS:
        gains, here = stabilisation, not on_card(q, stabilisation)
        if here:
            gains = real_array("stabilisation", stabilisation, "(2,) or (B, 2)")
        if here and np.any(gains < 0.0):
            raise ShapeError(f"stabilisation: expected kp, kd >= 0, which close gaps, got {gains.min():.6g}")
    e = _proximal(proximal, dtype)
    state = (q, v, tau, gains, e, *given)
    return accelerations(robot, key, out, engine, dtype, reproducible, *state, refusal=UNBOUNDED)


def impact(
    robot: Robot,
    q: Any,
    v: Any,
    constraints: Sequence[Any] | None = None,
    restitution: Any = 0.0,
    proximal: float | None = None,
    *,
    out: Any = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Velocities after an impact that stops the constraints: J v+ = -restitution J v-.

    H (v+ - v-) = J^T impulses. With restitution 0 the kinetic energy that is lost is that of the change,
    (v+ - v-)^T H (v+ - v-) / 2; with 1 none is lost.

    Source: RBDA section 11.7.  Cost: as of :func:`constrained_dynamics`.

    Args:
        robot: the robot.
        q, v, engine, dtype, reproducible, device: as in :func:`rnea`; v before the impact.
        constraints, proximal: as in :func:`constrained_dynamics`.
        restitution: 0 (all sticks) to 1 (all rebounds), (), (B,) or (B, 1), of all rows.
        out: two arrays to write to.

    Returns:
        (v, impulses): velocities after it [rad/s | m/s], (nv,) or (B, nv), and the impulses on the links by
        row [N m s | N s], (m,) or (B, m).

    Raises:
        UnknownName: no such link or loop joint.
        ShapeError: no constraint at all, or a restitution outside 0 to 1.
        SingularInertia: a joint moves no inertia; the error names it.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
        >>> falling = np.array([0, 0, 0, 0, 0, -1.0, 0, 0])
        >>> v, impulse = rk.impact(robot, robot.neutral(), falling, [rk.Contact("lower", (0, 0, -0.55))])
        >>> round(float(impulse[2]), 3)  # [N s], upwards
        4.2
    """
    engine = engine if device is None else on_device(device, engine)
    check_robot(robot)
    key = ("impact", choices.constraints(robot, constraints))
    dtype = dtype_of(dtype, out, q, v, restitution, proximal)
    e = _share("restitution", restitution, most=1.0)
    state = (q, v, e, _proximal(proximal, dtype))
    return accelerations(robot, key, out, engine, dtype, reproducible, *state, refusal=UNBOUNDED)


_NONE = np.zeros(1)
_ALL = np.ones(1)
_DOUBLE, _SINGLE = np.array([PROXIMAL]), np.array([PROXIMAL_SINGLE])


def _share(name: str, given: Any, most: float = np.inf) -> np.ndarray:
    """A number from 0, or one for each state, as kernels take it."""
    if given.__class__ is float and (given == 0.0 or given == 1.0 <= most):
        return _ALL if given else _NONE
    if on_card(given):
        return given.reshape(-1, 1) if given.ndim else given.reshape(1)
    accepted = "(), (B,) or (B, 1)"
    array = real_array(name, given, accepted)
    if array.ndim > 2 or array.shape[1:] not in ((), (1,)):
        raise ShapeError(f"{name}: expected one number for each state, {accepted}, got shape {array.shape}")
    if not np.all((array >= 0.0) & (array <= most)):
        bound = f"from 0 to {most:g}" if most < np.inf else ">= 0"
        raise ShapeError(f"{name}: expected numbers {bound}, got {given!r}")
    # A single number is one of all states; a kernel takes those of a batch as rows.
    return array.reshape(1) if array.size == 1 and array.ndim < 2 else array.reshape(-1, 1)


def _proximal(given: float | None, dtype: Any) -> np.ndarray:
    if given is not None:
        return _share("proximal", given)
    return _SINGLE if dtype is not None and dtype_name(dtype) == "float32" else _DOUBLE
