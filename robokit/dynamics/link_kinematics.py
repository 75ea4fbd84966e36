"""Where the links are and how they move: poses, Jacobians, velocities and accelerations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from robokit.dynamics.build import kernel
from robokit.dynamics.choices import axes_name, flag, link_name
from robokit.dynamics.run import run
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.model.robot import Robot, check_robot

__all__ = ["LinkPoses", "forward_kinematics", "link_acceleration", "link_jacobian", "link_velocity"]

ORIGIN = (0.0, 0.0, 0.0)
"""The point that is meant where none is given."""

_ORIGIN = np.zeros(3)
_ORIGIN.flags.writeable = False


def _point(at: Any) -> Any:
    """The point as single calls take it: a tuple would have to be converted each time."""
    return _ORIGIN if at is ORIGIN else at


def _run(
    robot: Robot,
    key: tuple[Any, ...],
    out: np.ndarray | None,
    engine: str | None,
    dtype: Any,
    reproducible: bool | None,
    *arguments: Any,
) -> np.ndarray:
    """Run a kernel about a link; its choices are checked where there is no kernel for them yet."""
    if out is None and engine is None and dtype is None:
        try:
            result = robot.kernels[key if reproducible is None else (key, reproducible)].fast(*arguments)
        except (AttributeError, KeyError, TypeError):  # no robot, no kernel yet, a link that is a list
            result = None
        if result is not None:
            return result
    check_robot(robot)
    link_name(robot, key[1])
    axes_name(robot, key[2])
    for classical in key[3:]:
        flag(robot, classical)
    return run(robot, key, out, engine, dtype, reproducible, *arguments)


class LinkPoses(Mapping[str, tuple[np.ndarray, np.ndarray]]):
    """World poses of all links: ``poses[link] = (R, p)``, x_world = R x_link + p.

    Attributes:
        matrices: [R p], (n, 3, 4) or (B, n, 3, 4), in link_names order; the others are views of it.
    """

    __slots__ = ("_links", "matrices")

    def __init__(self, links: Mapping[str, int], matrices: np.ndarray) -> None:
        self._links, self.matrices = links, matrices

    @property
    def rotation(self) -> np.ndarray:
        """(n, 3, 3) or (B, n, 3, 3)."""
        return self.matrices[..., :3]

    @property
    def position(self) -> np.ndarray:
        """(n, 3) or (B, n, 3) [m]."""
        return self.matrices[..., 3]

    @property
    def link_names(self) -> tuple[str, ...]:
        """The n names."""
        return tuple(self._links)

    def __getitem__(self, link: str) -> tuple[np.ndarray, np.ndarray]:
        k = self._links.get(link)
        if k is None:
            raise UnknownName("link", link, self.link_names)
        pose = self.matrices[..., k, :, :]
        return pose[..., :3], pose[..., 3]

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"<LinkPoses of {len(self)} links, rotation {self.rotation.shape}>"


def forward_kinematics(
    robot: Robot,
    q: Any,
    *,
    out: LinkPoses | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
) -> LinkPoses:
    """World poses of all links.

    Source: RBDA section 4.4.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype, reproducible: as in :func:`rnea`.
        out: poses of an earlier call with as many states, to write to; of this robot, or of one whose
            links have the same names.

    Returns:
        ``poses[link] = (R (3, 3), p (3,))``; all of them as .rotation, .position and .matrices.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> poses = rk.forward_kinematics(robot, [0.5, 0.2])
        >>> R, p = poses["lower"]
        >>> p.round(3)
        array([-0.24 ,  0.   , -0.439])
    """
    usual = engine is None and dtype is None and reproducible is None
    if out is None and usual:  # the short way: machine code makes the object too
        try:
            short = robot.kernels["link poses"]
            poses = short(q)
        except (AttributeError, KeyError, TypeError):  # not there yet, or no robot
            poses = None
        if poses is not None:
            return poses
    if out is None:
        matrices = run(robot, "forward_kinematics", None, engine, dtype, reproducible, q)
        if matrices.ndim == 3 and usual and "link poses" not in robot.kernels:
            ready = kernel(robot, "forward_kinematics")
            robot.kernels["link poses"] = ready.held(LinkPoses, robot.link_index)
        return LinkPoses(robot.link_index, matrices)
    if not isinstance(out, LinkPoses):
        raise WrongType("out", out, "LinkPoses, as forward_kinematics returns them")
    check_robot(robot)
    if out._links is not robot.link_index and out.link_names != robot.link_names:
        raise ShapeError(
            f"out: expected poses of the {len(robot.links)} links of robot {robot.name!r}, got poses of "
            f"{', '.join(out.link_names[:3])}, ...; take those that an earlier call with this robot returned"
        )
    run(robot, "forward_kinematics", out.matrices, engine, dtype, reproducible, q)
    return out


def link_jacobian(
    robot: Robot,
    q: Any,
    link: str,
    axes: str = "world",
    at: Any = ORIGIN,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
) -> np.ndarray:
    """J(q) of a point fixed in a link: J v = [omega; velocity of the point].

    Source: RBDA sections 2.3, 4.1; seeds 003, kappa(i).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible: as in :func:`rnea`.
        link: name of the link.
        axes: "world", or "body" for the link's own.
        at: the point in the link's frame [m], (3,) or (B, 3).

    Returns:
        J, (6, nv) or (B, 6, nv), rows [angular; linear].

    Raises:
        UnknownName: no such link or axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.link_jacobian(robot, [0.5, 0.2], "lower", at=(0, 0, -0.5)).round(3)
        array([[ 0.   ,  0.   ],
               [ 1.   ,  1.   ],
               [ 0.   ,  0.   ],
               [-0.821, -0.382],
               [ 0.   ,  0.   ],
               [ 0.562,  0.322]])
    """
    return _run(robot, ("link_jacobian", link, axes), out, engine, dtype, reproducible, q, _point(at))


def link_velocity(
    robot: Robot,
    q: Any,
    v: Any,
    link: str,
    axes: str = "world",
    at: Any = ORIGIN,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
) -> np.ndarray:
    """Velocity of a point fixed in a link: [omega; velocity of the point], which is link_jacobian @ v.

    Source: RBDA sections 2.3, 5.3 (eq. 5.7).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible: as in :func:`rnea`.
        link: name of the link.
        axes: of both vectors: "world", or "body" for the link's own. The point is the same for both.
        at: the point in the link's frame [m], (3,) or (B, 3).

    Returns:
        [omega; v] [rad/s; m/s], (6,) or (B, 6).

    Raises:
        UnknownName: no such link or axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.link_velocity(robot, [0.5, 0.2], [1.0, -2.0], "lower", at=(0, 0, -0.5)).round(3)
        array([ 0.   , -1.   ,  0.   , -0.056,  0.   , -0.082])
    """
    return _run(robot, ("link_velocity", link, axes), out, engine, dtype, reproducible, q, v, _point(at))


def link_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    link: str,
    axes: str = "world",
    at: Any = ORIGIN,
    classical: bool = False,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
) -> np.ndarray:
    """Acceleration of a point fixed in a link; gravity does not enter.

    The classical acceleration is that of the point itself, J a + (dJ/dt) v with the Jacobian in world axes;
    it is what an accelerometer feels, gravity apart. The spatial one is the rate of the spatial velocity,
    taken where the point is now; its linear part is smaller by omega x (velocity of the point).

    Source: RBDA sections 2.11, 5.3 (eq. 5.8).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, v, a, out, engine, dtype, reproducible: as in :func:`rnea`.
        link: name of the link.
        axes: of both vectors: "world", or "body" for the link's own. The point is the same for both.
        at: the point in the link's frame [m], (3,) or (B, 3).
        classical: True for the acceleration of the point, False for the spatial acceleration.

    Returns:
        [alpha; a] [rad/s^2; m/s^2], (6,) or (B, 6).

    Raises:
        UnknownName: no such link or axes.
        WrongType: classical is neither True nor False.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> a = rk.link_acceleration(robot, [0, 0], [2.0, 0], [0, 0], "lower", classical=True)
        >>> a.round(3)  # upwards, omega^2 r
        array([0., 0., 0., 0., 0., 2.])
    """
    key = ("link_acceleration", link, axes, classical)
    return _run(robot, key, out, engine, dtype, reproducible, q, v, a, _point(at))
