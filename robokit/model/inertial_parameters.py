"""Inertial parameters of bodies as arrays, ten numbers each, and the check that a body can have them.

    [m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz]

m is the mass [kg], c the centre of mass [m] and I the rotational inertia about the body's origin
[kg m^2], in body coordinates. The equations of motion are linear in them. The order is that of
Pinocchio's ``toDynamicParameters``.

A row of scalars is either of floats or, for a batch of bodies, of NumPy arrays (B,).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.dataclass_tools import frozen
from robokit.errors import ModelError, UnknownName, shown
from robokit.model.geometry import Placement, turned, turned_inertia
from robokit.model.parts import Link
from robokit.spatial import RigidInertia, Symmetric3, Vector3

COUNT = 10

TRIANGLE_TOLERANCE = 1e-3  # share of the moments: descriptions round them


def row(I: RigidInertia) -> list[Any]:
    """The ten scalars of a rigid inertia."""
    s = I.Ibar
    return [I.m, *I.h, s.xx, s.xy, s.yy, s.xz, s.yz, s.zz]


def rigid_inertia(values: Sequence[Any]) -> RigidInertia:
    """The rigid inertia of ten scalars."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = values
    return RigidInertia(m, Vector3(hx, hy, hz), Symmetric3(xx, yy, zz, xy, xz, yz))


def inertias(values: Sequence[Any]) -> tuple[RigidInertia, ...]:
    """Rigid inertias of bodies 0..N from all their scalars in one row."""
    return tuple(rigid_inertia(values[k : k + COUNT]) for k in range(0, len(values), COUNT))


def columns(parameters: np.ndarray) -> list[Any]:
    """The scalars of parameters: floats from (N + 1, 10), arrays (B,) from (B, N + 1, 10)."""
    if parameters.ndim == 2:
        return parameters.reshape(-1).tolist()
    return list(parameters.reshape(len(parameters), -1).T)


@frozen
class Bodies:
    """The bodies and links of a robot whose inertial parameters are to be changed."""

    robot: str  # its name, for messages
    links: tuple[Link, ...]  # all links, in document order
    names: tuple[str, ...]  # of bodies 0..N
    floating: bool  # whether body 0 is the world under a floating base
    parameters: np.ndarray  # inertial parameters, (N + 1, 10) or (B, N + 1, 10)


def with_changes(bodies: Bodies, change: Any) -> tuple[np.ndarray, tuple[Link, ...]]:
    """Parameters of all bodies, (N + 1, 10) or (B, N + 1, 10), read-only, and all links that go with them.

    ``change`` is what :meth:`Robot.with_inertias` takes. Raises ModelError, which names the link, for wrong
    shapes or a mass or an inertia that no body has; UnknownName if there is no such link.
    """
    if isinstance(change, Mapping):
        parameters, links = _by_link(bodies, change)
    else:
        parameters, links = _by_body(bodies, change)
    if not len(parameters):
        raise ModelError("inertias: expected at least one sample, got none (B = 0)")
    parameters = np.ascontiguousarray(parameters)
    parameters.flags.writeable = False
    return parameters, links


def samples(links: Sequence[Link], k: int) -> tuple[Link, ...]:
    """The links of sample k."""
    return tuple(
        replace(
            link,
            mass=float(_one(link.mass, 0, k)),
            com=_one(link.com, 1, k),
            inertia=_one(link.inertia, 2, k),
        )
        for link in links
    )


def _one(value: Any, ndim: int, k: int) -> Any:
    return value[k] if np.ndim(value) > ndim else value


def _by_link(bodies: Bodies, change: Mapping[str, Any]) -> tuple[np.ndarray, tuple[Link, ...]]:
    links = list(bodies.links)
    place = {link.name: k for k, link in enumerate(links)}
    batches = [bodies.parameters.shape[:-2]]
    for name, given in change.items():
        k = place.get(name)
        if k is None:
            raise UnknownName("link", name, place, f"in robot {bodies.robot!r}")
        try:
            mass, com, inertia = given
        except (TypeError, ValueError):
            raise ModelError(
                f"link {name!r}: expected (mass, com (3,), inertia about the com (3, 3)), "
                f"None for what stays, got {shown(given)}"
            ) from None
        old = links[k]
        m = _numbers(f"mass of link {name!r}", old.mass if mass is None else mass, ())
        c = _numbers(f"com of link {name!r}", old.com if com is None else com, (3,))
        I = _numbers(f"inertia of link {name!r}", old.inertia if inertia is None else inertia, (3, 3))
        if not np.allclose(I, np.swapaxes(I, -1, -2), rtol=1e-9, atol=0.0):
            raise ModelError(f"inertia of link {name!r} is not symmetric")
        try:
            batch = np.broadcast_shapes(m.shape, c.shape[:-1], I.shape[:-2])
            np.broadcast_shapes(*batches, batch)
        except ValueError:
            raise ModelError(
                f"link {name!r}: batches of mass {m.shape}, com {c.shape} and inertia {I.shape} do not go "
                f"together with each other or with {max(batches)}; give the same B"
            ) from None
        batches.append(batch)
        _check([f"link {name!r}"], _link_row(m, np.zeros(3), I)[..., None, :])
        links[k] = replace(old, mass=_scalar(m), com=c, inertia=I)
    touched = {links[place[name]].body for name in change}
    batch = np.broadcast_shapes(*batches)
    out = np.array(np.broadcast_to(bodies.parameters, (*batch, len(bodies.names), COUNT)))
    for body in touched:
        out[..., body, :] = 0.0
    for link in links:  # in document order, as when the robot was built
        if link.body in touched:
            with np.errstate(over="ignore", invalid="ignore"):
                out[..., link.body, :] += _on_body(link, link.placement)
            if not np.isfinite(out[..., link.body, :]).all():
                raise ModelError(
                    f"link {link.name!r}: its mass and inertia are too large to be added to those of its "
                    "body: the sum is not finite"
                )
    return out, tuple(links)


def _on_body(link: Link, placement: Placement) -> np.ndarray:
    """Ten parameters of a link in its body's coordinates, (10,) or (B, 10)."""
    R = placement.rotation
    c = turned(R, np.asarray(link.com)) + placement.position
    return _link_row(np.asarray(link.mass), c, turned_inertia(R, link.inertia))


def _link_row(m: np.ndarray, c: np.ndarray, I: np.ndarray) -> np.ndarray:
    x, y, z = np.moveaxis(c, -1, 0)
    Ic = Symmetric3(*(I[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
    values = row(RigidInertia.about_com(m, Vector3(x, y, z), Ic))
    return np.stack(np.broadcast_arrays(*values), axis=-1)


def _by_body(bodies: Bodies, change: Any) -> tuple[np.ndarray, tuple[Link, ...]]:
    rows = len(bodies.names)
    accepted = f"({rows}, {COUNT}) or (B, {rows}, {COUNT})"
    given = np.array(real_array("inertias", change, accepted, ModelError))
    if given.ndim not in (2, 3) or given.shape[-2:] != (rows, COUNT):
        raise ModelError(
            f"inertias: expected {{link: (mass, com, inertia)}} or an array {accepted} "
            f"like robot.inertial_parameters (row 0 is the reference body), "
            f"got shape {given.shape}"
        )
    old = bodies.parameters
    if bodies.floating and np.any(given[..., 0, :] != 0.0):
        raise ModelError("inertias: row 0 is the world under a floating base and must be zero")
    if old.ndim == 3 and given.ndim == 3 and len(old) != len(given):
        differs = list(range(rows))
    else:
        differs = [i for i in range(rows) if np.any(given[..., i, :] != old[..., i, :])]
    rows_of = given if len(differs) == rows else given[..., differs, :]
    _check([f"link {bodies.names[i]!r}" for i in differs], rows_of)
    by_body = np.ascontiguousarray(np.moveaxis(given, 0, -1) if given.ndim == 3 else given)
    links = []
    for link in bodies.links:
        if link.body in differs:
            if link.name == bodies.names[link.body]:
                m, c, I = about_coms(by_body[link.body])
                link = replace(link, mass=_scalar(m), com=c, inertia=I)
            else:  # its share of the body is not known
                link = replace(link, mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3)))
        links.append(link)
    return given, tuple(links)


def about_coms(values: Sequence[Any]) -> tuple[Any, np.ndarray, np.ndarray]:
    """Mass, centre of mass (..., 3) and the inertia about it (..., 3, 3), of ten columns.

    The centre of a body without mass is its origin.
    """
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = values
    k = 1.0 / np.where(m > 0.0, m, 1.0)
    x, y, z = hx * k, hy * k, hz * k
    xx, yy, zz = xx - (hy * y + hz * z), yy - (hx * x + hz * z), zz - (hx * x + hy * y)
    xy, xz, yz = xy + hx * y, xz + hx * z, yz + hy * z
    I = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(*np.shape(m), 3, 3)
    return m, np.stack([x, y, z], axis=-1), I


def _scalar(m: np.ndarray) -> Any:
    """A mass as links hold it: a float, (B,) for samples."""
    return m if m.ndim else float(m)


def _numbers(what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    n = len(shape)
    expected = f"{shape} or (B, {', '.join(map(str, shape))})" if n else "() or (B,)"
    array = np.array(real_array(what, value, expected, ModelError))
    if array.ndim not in (n, n + 1) or array.shape[array.ndim - n :] != shape:
        raise ModelError(f"{what}: expected {expected}, got {shown(value)}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{what} must be finite, got {shown(value)}")
    return array


def _check(names: Sequence[str], parameters: np.ndarray) -> None:
    """Refuse parameters (..., len(names), 10) that no body has.

    The second moments tr(I)/2 - I about the centre of mass are those of a mass distribution, so they are
    positive semidefinite; that holds the triangle inequality and the definiteness of I at once.
    """

    def refuse(bad: np.ndarray, why: str) -> None:
        if np.any(bad):
            at = tuple(int(k) for k in np.argwhere(bad)[0])
            sample = f", sample {at[0]}" if len(at) > 1 else ""
            raise ModelError(f"{names[at[-1]]}{sample}: {why.format(p=parameters[at])}")

    with np.errstate(all="ignore"):
        refuse(~np.isfinite(parameters).all(axis=-1), "inertial parameters must be finite, got {p}")
        m = parameters[..., 0]
        refuse(m < 0.0, "the mass must not be negative, got {p[0]}")
        refuse((m == 0.0) & (parameters[..., 1:4] != 0.0).any(axis=-1), "a first moment without mass: {p}")
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.ascontiguousarray(np.moveaxis(parameters, -1, 0))
        scale = np.maximum.reduce([abs(x) for x in (xx, yy, zz, xy, xz, yz)])
        present = scale > 0.0
        scale = 1.0 / np.where(present, scale, 1.0)  # products of three moments would leave the range
        per_m = 1.0 / np.where(m > 0.0, m, 1.0)
        cx, cy, cz = hx * per_m, hy * per_m, hz * per_m
        hx, hy, hz = hx * scale, hy * scale, hz * scale
        half = 0.5 * (xx + yy + zz)
        a, d, e = (half - xx) * scale - hx * cx, -xy * scale - hx * cy, -xz * scale - hx * cz
        b, f = (half - yy) * scale - hy * cy, -yz * scale - hy * cz
        c = (half - zz) * scale - hz * cz
        slack = TRIANGLE_TOLERANCE * abs(a + b + c) + 1e-12
        a, b, c = a + slack, b + slack, c + slack
        second = a * b - d * d
        third = a * (b * c - f * f) - d * (d * c - e * f) + e * (d * f - b * e)
        positive = (a > 0.0) & (second > 0.0) & (third > 0.0)
        refuse(
            ~positive & present,
            "no body has this inertia about its centre of mass (its principal moments must not be negative, "
            "and the largest at most the sum of the others); parameters {p}",
        )


# ---- the equivalent box --------------------------------------------------------------------------
# The box of even density that has a body's mass and inertia: a picture of ten numbers.

LARGEST_JUDGED = 1e100  # numbers beyond are not judged: their products leave the floating-point range


@frozen
class EquivalentBox:
    """The homogeneous box with a given mass and rotational inertia."""

    moments: np.ndarray  # principal moments of inertia about the centre of mass, ascending, (3,) [kg m^2]
    axes: np.ndarray  # principal axes as columns in the axes of the inertia, right-handed, (3, 3)
    size: np.ndarray  # edge lengths along these axes, (3,) [m]; 0 where no body has such moments


def equivalent_box(mass: float, inertia: np.ndarray) -> EquivalentBox | None:
    """Principal moments, principal axes and equivalent box of a body of a mass [kg] and an inertia about
    its centre of mass, (3, 3) [kg m^2]; None without mass, and for numbers whose products overflow.
    """
    I = np.asarray(inertia, dtype=float)
    if not mass > 0 or not float(np.abs(I).max()) < LARGEST_JUDGED * min(mass, 1.0):
        return None
    moments, axes = np.linalg.eigh(I)
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return EquivalentBox(moments, axes, box_edges(mass, moments))


def box_edges(mass: Any, moments: np.ndarray) -> np.ndarray:
    """Edges a, b, c [m] of the box of even density: I1 = m (b² + c²) / 12, and so on round; 0 without one.

    Of a positive mass [kg], a number or (...), and principal moments (..., 3) [kg m^2]. Scalar by scalar, so
    that a body of many has the bits that it has alone.
    """
    x, y, z = np.moveaxis(moments, -1, 0)
    squares = 6.0 / np.asarray(mass)[..., None] * np.stack([y + z - x, z + x - y, x + y - z], axis=-1)
    return np.sqrt(np.maximum(squares, 0.0))
