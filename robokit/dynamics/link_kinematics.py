"""Where the links are and how they move: poses, Jacobians, velocities, accelerations; energies, momentum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from robokit.arguments import check_finite, real_array
from robokit.dynamics.build import kernel
from robokit.dynamics.choices import ORIGIN, axes_name, beside, flag, link_names, on_card, on_device, points
from robokit.dynamics.run import dtype_of, run
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.model.geometry import Placement
from robokit.model.robot import Robot, check_robot

# ==== where the links are and how they move: poses, Jacobians, velocities and accelerations =======


__all__ = [
    "LinkPose",
    "LinkPoses",
    "center_of_mass",
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_bias",
    "centroidal_momentum_matrix",
    "forward_kinematics",
    "kinetic_energy",
    "link_acceleration",
    "link_jacobian",
    "link_velocity",
    "potential_energy",
]


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
    if isinstance(arguments[-1], Placement):
        on = arguments[-1]
        at = on.position.tolist() if on_card(*arguments) else on.position
        found = _run(robot, key, out, engine, dtype, reproducible, *arguments[:-1], at)
        return _in_axes_of(on, key[0], found) if key[2] == "body" else found
    _check(robot, *key)
    dtype = dtype_of(dtype, out, *(x for x in arguments if x is not _ORIGIN))
    return run(robot, key, out, engine, dtype, reproducible, *arguments)


def _in_axes_of(on: Placement, name: str, found: np.ndarray) -> np.ndarray:
    """Rotate what is in the link's axes into the axes of a frame on the link, in place."""
    if on_card(found):
        R = beside(found, on.rotation)
        if name == "link_jacobian":
            return (R.T @ found.reshape(*found.shape[:-2], 2, 3, found.shape[-1])).reshape(found.shape)
        return (found.reshape(*found.shape[:-1], 2, 3) @ R).reshape(found.shape)
    if name == "link_jacobian":
        both = found.reshape(*found.shape[:-2], 2, 3, found.shape[-1])
        both[...] = on.rotation.T @ both
    else:
        both = found.reshape(*found.shape[:-1], 2, 3)
        both[...] = both @ on.rotation
    return found


def _check(robot: Robot, _: str, link: Any, axes: Any, *classical: Any) -> None:
    """Check what a function is about."""
    check_robot(robot)
    link_names(robot, link)
    axes_name(robot, axes)
    for each in classical:
        flag(robot, each)


def _run_several(
    robot: Robot,
    key: tuple[Any, ...],
    out: np.ndarray | None,
    engine: str | None,
    dtype: Any,
    reproducible: bool | None,
    *arguments: Any,
) -> np.ndarray:
    """Run a kernel about a list of links, or find out what else was given for the link."""
    name, link, *others = key
    *state, at = arguments
    if link.__class__ is list or link.__class__ is tuple:
        links = tuple(link)
        key = name, links, *others
        try:
            known = key in robot.kernels
        except (AttributeError, TypeError):  # no robot, a name that is a list
            known = False
        if not known:
            _check(robot, *key)
        dtype = dtype_of(dtype, out, *arguments)
        return run(robot, key, out, engine, dtype, reproducible, *state, points(at, len(links)))
    _check(robot, *key)  # a name of a class of its own remains
    return _run(robot, (name, str(link), *others), out, engine, dtype, reproducible, *state, _point(at))


class LinkPose(NamedTuple):
    """World pose of a link: x_world = rotation x_link + position.

    Attributes:
        rotation: (3, 3) or (B, 3, 3).
        position: (3,) or (B, 3) [m].
    """

    rotation: np.ndarray
    position: np.ndarray


class LinkPoses(Mapping[str, LinkPose]):
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

    def __getitem__(self, link: str) -> LinkPose:
        k = self._links.get(link)
        if k is None:
            raise UnknownName("link", link, self.link_names)
        pose = self.matrices[..., k, :, :]
        return LinkPose(pose[..., :3], pose[..., 3])

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"<LinkPoses of {len(self)} links, rotation {self.rotation.shape}>"


@overload
def forward_kinematics(
    robot: Robot,
    q: Any,
    *,
    at: None = None,
    out: LinkPoses | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> LinkPoses: ...


@overload
def forward_kinematics(
    robot: Robot,
    q: Any,
    *,
    at: Any,
    out: None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> tuple[np.ndarray, np.ndarray]: ...


def forward_kinematics(
    robot: Robot,
    q: Any,
    *,
    at: Any = None,
    out: LinkPoses | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> LinkPoses | tuple[np.ndarray, np.ndarray]:
    """World poses of all links, or of one frame that is fixed to a link.

    Source: RBDA section 4.4.  Cost: O(n).

    Args:
        robot: the robot.
        q, engine, dtype, reproducible, device: as in :func:`rnea`.
        at: (link, point) for a point of a link (3,) [m] and the link's axes, (link, :class:`Placement`) for a
            frame placed on the link, or the name of a link. Several points of a link are (k, 3).
        out: poses of an earlier call with as many states, to write to; of this robot, or of one whose
            links have the same names. Not with ``at``.

    Returns:
        ``poses[link] = (R (3, 3), p (3,))``, also ``poses[link].rotation`` and ``.position``; all of them as
        .rotation, .position and .matrices. With ``at`` that one (R, p), (3, 3) and (3,), or (B, 3, 3) and
        (B, 3); of several points p is (k, 3) or (B, k, 3).

    Raises:
        UnknownName: no such link.
        WrongType, ShapeError: ``at`` is neither of these.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> poses = rk.forward_kinematics(robot, [0.5, 0.2])
        >>> R, p = poses["lower"]
        >>> p.round(3)
        array([-0.24 ,  0.   , -0.439])
        >>> R, p = rk.forward_kinematics(robot, [0.5, 0.2], at=("lower", (0, 0, -0.5)))  # its tip
        >>> p.round(3)
        array([-0.562,  0.   , -0.821])
    """
    engine = engine if device is None else on_device(device, engine)
    if at is not None:
        if out is not None:
            raise WrongType("out", out, "None where at is given")
        all_of_them = forward_kinematics(robot, q, engine=engine, dtype=dtype, reproducible=reproducible)
        return _placed(robot, all_of_them, at)
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
        if matrices.ndim == 3 and matrices.dtype == float and usual and "link poses" not in robot.kernels:
            ready = kernel(robot, "forward_kinematics")
            short = ready.held(LinkPoses, robot.link_index)
            if short is not None:
                robot.kernels["link poses"] = short
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


def _placed(robot: Robot, poses: LinkPoses, at: Any) -> tuple[np.ndarray, np.ndarray]:
    """World pose of what ``at`` of :func:`forward_kinematics` says."""
    pair = (at, ORIGIN) if isinstance(at, str) else at
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise WrongType("at", at, "(link, point (3,)), (link, rk.Placement(...)) or the name of a link")
    link, place = pair
    robot.link(link)
    R, p = poses[link]
    if isinstance(place, Placement):
        return R @ beside(R, place.rotation), p + R @ beside(R, place.position)
    points: Any = place if on_card(place) else real_array("at", place, "(link, (3,)) or (link, (k, 3))")
    if points.ndim not in (1, 2) or points.shape[-1] != 3:
        raise ShapeError(f"at: expected (link, point) with a point (3,) or points (k, 3), got {points.shape}")
    if not on_card(points):
        check_finite("at", points)
        points = beside(R, points)
    if points.ndim == 1:
        return R, p + R @ points
    return R, p[..., None, :] + points @ R.swapaxes(-1, -2)


def link_jacobian(
    robot: Robot,
    q: Any,
    link: str | Sequence[str],
    axes: str = "world",
    at: Any = ORIGIN,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """J(q) of a point fixed in a link: J v = [omega; velocity of the point].

    Source: RBDA sections 2.3, 4.1; seeds 003, kappa(i).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        link: name of the link, or a list of k names.
        axes: "world", or "body" for the link's own.
        at: the point in the link's frame [m], (3,) or (B, 3); of several links one for all of them (3,), or
            one for each, (k, 3) or (B, k, 3). Of one link also a :class:`Placement`, a frame on it whose axes
            "body" then means.

    Returns:
        J, (6, nv) or (B, 6, nv), rows [angular; linear]; of a list of links (k, 6, nv) or (B, k, 6, nv).

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
        >>> rk.link_jacobian(robot, [0.5, 0.2], ["upper", "lower"]).shape
        (2, 6, 2)
    """
    engine = engine if device is None else on_device(device, engine)
    key = ("link_jacobian", link, axes)
    if link.__class__ is not str:
        return _run_several(robot, key, out, engine, dtype, reproducible, q, at)
    return _run(robot, key, out, engine, dtype, reproducible, q, _point(at))


def link_velocity(
    robot: Robot,
    q: Any,
    v: Any,
    link: str | Sequence[str],
    axes: str = "world",
    at: Any = ORIGIN,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Velocity of a point fixed in a link: [omega; velocity of the point], which is link_jacobian @ v.

    Source: RBDA sections 2.3, 5.3 (eq. 5.7).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        link: name of the link, or a list of k names.
        axes: of both vectors: "world", or "body" for the link's own. The point is the same for both.
        at: the point in the link's frame [m], (3,) or (B, 3); of several links one for all of them (3,), or
            one for each, (k, 3) or (B, k, 3). Of one link also a :class:`Placement`, a frame on it whose axes
            "body" then means.

    Returns:
        [omega; v] [rad/s; m/s], (6,) or (B, 6); of a list of links (k, 6) or (B, k, 6).

    Raises:
        UnknownName: no such link or axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.link_velocity(robot, [0.5, 0.2], [1.0, -2.0], "lower", at=(0, 0, -0.5)).round(3)
        array([ 0.   , -1.   ,  0.   , -0.056,  0.   , -0.082])
    """
    engine = engine if device is None else on_device(device, engine)
    key = ("link_velocity", link, axes)
    if link.__class__ is not str:
        return _run_several(robot, key, out, engine, dtype, reproducible, q, v, at)
    return _run(robot, key, out, engine, dtype, reproducible, q, v, _point(at))


def link_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    link: str | Sequence[str],
    axes: str = "world",
    at: Any = ORIGIN,
    classical: bool = False,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Acceleration of a point fixed in a link; gravity does not enter.

    The classical acceleration is that of the point itself, J a + (dJ/dt) v with the Jacobian in world axes;
    it is what an accelerometer feels, gravity apart. The spatial one is the rate of the spatial velocity,
    taken where the point is now; its linear part is smaller by omega x (velocity of the point).

    Source: RBDA sections 2.11, 5.3 (eq. 5.8).  Cost: O(d), d the link's depth.

    Args:
        robot: the robot.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.
        link: name of the link, or a list of k names.
        axes: of both vectors: "world", or "body" for the link's own. The point is the same for both.
        at: the point in the link's frame [m], (3,) or (B, 3); of several links one for all of them (3,), or
            one for each, (k, 3) or (B, k, 3). Of one link also a :class:`Placement`, a frame on it whose axes
            "body" then means.
        classical: True for the acceleration of the point, False for the spatial acceleration.

    Returns:
        [alpha; a] [rad/s^2; m/s^2], (6,) or (B, 6); of a list of links (k, 6) or (B, k, 6).

    Raises:
        UnknownName: no such link or axes.
        WrongType: classical is neither True nor False.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> a = rk.link_acceleration(robot, [0, 0], [2.0, 0], [0, 0], "lower", classical=True)
        >>> a.round(3)  # upwards, omega^2 r
        array([0., 0., 0., 0., 0., 2.])
    """
    engine = engine if device is None else on_device(device, engine)
    key = ("link_acceleration", link, axes, classical)
    if link.__class__ is not str:
        return _run_several(robot, key, out, engine, dtype, reproducible, q, v, a, at)
    return _run(robot, key, out, engine, dtype, reproducible, q, v, a, _point(at))


# ==== centre of mass, energies and centroidal momentum ============================================


def center_of_mass(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Centre of mass of the moving bodies in the world.

    Source: dynamics notes eq. 20.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        p_G [m], (3,) or (B, 3).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass(robot, [0.5, 0.2]).round(3)
        array([-0.336,  0.016, -0.538])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass", out, engine, dtype, reproducible, q)


def center_of_mass_jacobian(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """J_G(q) of the centre of mass of the moving bodies: J_G v is its velocity in the world.

    Source: dynamics notes eq. 20: the linear rows of A_G over M.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        J_G, (3, nv) or (B, 3, nv), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_jacobian(robot, [0.5, 0.2]).round(3)
        array([[-0.538, -0.143],
               [ 0.   ,  0.   ],
               [ 0.336,  0.12 ]])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_jacobian", out, engine, dtype, reproducible, q)


def center_of_mass_velocity(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Velocity of the centre of mass of the moving bodies in the world: l_G / M.

    Source: dynamics notes eq. 20, 21.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [m/s], (3,) or (B, 3), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_velocity(robot, [0.5, 0.2], [1.0, -2.0]).round(3)
        array([-0.253,  0.   ,  0.096])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_velocity", out, engine, dtype, reproducible, q, v)


def center_of_mass_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Acceleration of the centre of mass of the moving bodies in the world; gravity does not enter.

    M times it is the sum of all outer forces, weight included.

    Source: dynamics notes eq. 20, 22: the linear rows of A_G a + (d/dt A_G) v, over M.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, a, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [m/s^2], (3,) or (B, 3), in world axes.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.center_of_mass_acceleration(robot, [0.5, 0.2], [0, 0], [1.0, 1.0]).round(3)
        array([-0.681,  0.   ,  0.456])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "center_of_mass_acceleration", out, engine, dtype, reproducible, q, v, a)


def kinetic_energy(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> Any:
    """Kinetic energy of the moving bodies.

    Source: seeds 000, T = 1/2 sum v_i^T I_i v_i.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        T [J], a float or (B,).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> round(rk.kinetic_energy(robot, [0.5, 0.2], [1.0, -2.0]), 4)
        0.1388
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "kinetic_energy", out, engine, dtype, reproducible, q, v)


def potential_energy(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> Any:
    """Potential energy in uniform gravity, zero where the centre of mass is at the origin's height.

    Source: V = -a_g . M p_G.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        V [J], a float or (B,).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> round(rk.potential_energy(robot, [0.5, 0.2]), 4)
        -11.617
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "potential_energy", out, engine, dtype, reproducible, q)


def centroidal_momentum_matrix(
    robot: Robot,
    q: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """A_G(q) with h_G = A_G v: rows [angular; linear] in world axes about the centre of mass.

    Source: dynamics notes eq. 20-25, from link momenta.  Cost: O(n).

    Args:
        robot: the robot.
        q, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        A_G, (6, nv) or (B, 6, nv).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> A_G = rk.centroidal_momentum_matrix(robot, [0.5, 0.2])
        >>> np.allclose(A_G @ [1.0, -2.0], rk.centroidal_momentum(robot, [0.5, 0.2], [1.0, -2.0]))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum_matrix", out, engine, dtype, reproducible, q)


def centroidal_momentum(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """h_G = [k_G; l_G] in world axes about the centre of mass.

    Source: dynamics notes eq. 21.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        h_G [N m s; N s], (6,) or (B, 6).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rk.centroidal_momentum(robot, [0.5, 0.2], [1.0, -2.0]).round(3)
        array([-0.004, -0.082, -0.004, -0.557,  0.   ,  0.211])
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum", out, engine, dtype, reproducible, q, v)


def centroidal_momentum_bias(
    robot: Robot,
    q: Any,
    v: Any,
    *,
    out: np.ndarray | None = None,
    engine: str | None = None,
    dtype: Any = None,
    reproducible: bool | None = None,
    device: Any = None,
) -> np.ndarray:
    """Rate of h_G at zero acceleration, without gravity: (d/dt A_G) v.

    Source: dynamics notes eq. 22, 26.  Cost: O(n).

    Args:
        robot: the robot.
        q, v, out, engine, dtype, reproducible, device: as in :func:`rnea`.

    Returns:
        [N m; N], (6,) or (B, 6).

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> q, v, a = [0.5, 0.2], [1.0, -2.0], [0.3, 0.4]
        >>> rate = rk.centroidal_momentum_matrix(robot, q) @ a + rk.centroidal_momentum_bias(robot, q, v)
        >>> np.allclose(rate[3:], (1.2 + 1.0) * rk.center_of_mass_acceleration(robot, q, v, a))
        True
    """
    engine = engine if device is None else on_device(device, engine)
    return run(robot, "centroidal_momentum_bias", out, engine, dtype, reproducible, q, v)
