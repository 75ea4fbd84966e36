"""What a caller asks of inverse kinematics, read into the arrays of the kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import batch_size, check_finite, real_array
from robokit.caching import cached_attribute
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType, shown
from robokit.model.robot import Robot
from robokit.spatial.rotation import quat_wxyz_to_rotation

CENTER_OF_MASS = "center of mass"
"""Name of the centre of mass among the errors of a result, and among the weights."""

LARGEST_COORDINATE = 1e9
"""Largest coordinate of a target [m]."""

FORMS = (
    "a position (3,), a pose (R (3, 3), p (3,)) or (quat_wxyz (4,), p (3,)), or an array (4, 4), (3, 4) or "
    "(7,) [quat_wxyz, position]; each with a leading B for a batch"
)


@dataclass(frozen=True)
class TargetArrays:
    """Targets as arrays.

    Attributes:
        links: (name, whether its orientation has a target too) of each, in the robot's order.
        com: whether the centre of mass has one.
        goals: (G,) or (B, G): R by rows and p, or p, of each link; p of the centre of mass.
        points: the point of each link that is to be moved, in its frame [m], 3 numbers each.
        weights: of all rows of the error, (m,).
        is_default: whether neither points nor weights are given.
    """

    links: tuple[tuple[str, bool], ...]
    com: bool
    goals: np.ndarray
    points: list[float]
    weights: list[float]
    is_default: bool

    @property
    def counts(self) -> list[float]:
        """1 for each row that counts as error, 0 for those of weight 0."""
        return [float(w > 0.0) for w in self.weights]

    @cached_attribute
    def parts(self) -> list[tuple[str, bool]]:
        """(target, whether it is an angle) of each part of the error."""
        found = []
        for link, turned in self.links:
            found += [(link, True)] * turned + [(link, False)]
        return found + [(CENTER_OF_MASS, False)] * self.com


def read_targets(robot: Robot, targets: Any, at: Any, weights: Any, com: Any) -> TargetArrays:
    """Check targets and make arrays of them.

    Args:
        targets: {link: target}.
        at: {link: point}, or None.
        weights: {link: weights}, or None.
        com: target of the centre of mass, or None.

    Raises:
        UnknownName: no such link, or a point or weight for one without a target.
        WrongType: no mapping.
        ShapeError: a target, point or weight of a wrong shape or content, or no target at all.
        InvalidValue: NaN, infinity, or a quaternion that is not of unit length.
    """
    targets = _mapping("targets", targets, f"link names to targets; a target is {FORMS}")
    points, link_weights = (
        _mapping("at", at, "link names to points"),
        _mapping("weights", weights, "link names to weights"),
    )
    for link in targets:
        robot.link(link)
    known = [*targets, *[CENTER_OF_MASS] * (com is not None)]
    for link in points:
        if link not in targets:
            raise UnknownName("target", link, targets, "(argument at)")
    for name in link_weights:
        if name not in known:
            raise UnknownName("target", name, known, "(argument weights)")
    if not known:
        raise ShapeError("targets: expected at least one, {link: target} or center_of_mass=(x, y, z)")
    links, names, goals = [], [], []
    places: list[float] = []
    rows: list[float] = []
    for link in sorted(targets, key=robot.link_index.__getitem__) if len(targets) > 1 else targets:
        name = f"targets[{link!r}]"
        R, p = _pose(name, targets[link])
        links.append((link, R is not None))
        if R is None:
            names.append(name)
            goals.append(p)
        else:
            names += (name, name)
            goals += (R, p)
        rows += _weights(link, link_weights.get(link), 3 if R is None else 6)
        places += _point(link, points.get(link))
    if com is not None:
        names.append("center_of_mass")
        goals.append(_position("center_of_mass", com))
        rows += _weights(CENTER_OF_MASS, link_weights.get(CENTER_OF_MASS), 3)
    count = batch_size(names, goals)
    if count is not None:
        goals = [np.broadcast_to(g, (count, g.shape[-1])) for g in goals]
    is_default = not (points or link_weights)
    return TargetArrays(
        tuple(links), com is not None, np.concatenate(goals, axis=-1), places, rows, is_default
    )


def _mapping(name: str, value: Any, what: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise WrongType(name, value, f"a mapping from {what}")
    return value


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not (np.abs(array) <= LARGEST_COORDINATE).all():  # NaN is not either
        check_finite(name, array)
        raise ShapeError(
            f"{name}: expected numbers of at most {LARGEST_COORDINATE:g}, got {np.abs(array).max():g}"
        )
    return array


def _position(name: str, value: Any) -> np.ndarray:
    p = real_array(name, value, "(3,) or (B, 3)")
    if p.ndim not in (1, 2) or p.shape[-1] != 3:
        raise ShapeError(f"{name}: expected a position (3,) or (B, 3) [m], got shape {p.shape}")
    return _finite(name, p)


def _point(link: str, value: Any) -> list[float]:
    if value is None:
        return [0.0, 0.0, 0.0]
    p = real_array(f"at[{link!r}]", value, "(3,)")
    if p.shape != (3,):
        raise ShapeError(f"at[{link!r}]: expected a point (3,) in the link's frame [m], got shape {p.shape}")
    return _finite(f"at[{link!r}]", p).tolist()


def _weights(name: str, value: Any, rows: int) -> list[float]:
    if value is None:
        return [1.0] * rows
    w = real_array(f"weights[{name!r}]", value, f"a number or ({rows},)")
    if w.shape not in ((), (rows,)) or not (np.isfinite(w).all() and (w >= 0.0).all()):
        kind = "[angular; linear] of a pose" if rows == 6 else "of a point"
        raise ShapeError(
            f"weights[{name!r}]: expected a number or ({rows},) {kind}, finite and >= 0, got {shown(value)}"
        )
    return np.broadcast_to(w, rows).tolist()


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:
        return ()


def _pose(name: str, value: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """(R by rows (..., 9), p (..., 3)); None for R where only a position is asked for."""
    if isinstance(value, tuple | list) and len(value) == 2 and _shape(value[1])[-1:] == (3,):
        shape = _shape(value[0])
        if shape[-2:] == (3, 3):
            return _rotation(name, real_array(name, value[0], FORMS)), _position(name, value[1])
        if shape[-1:] == (4,):
            return _of_quaternion(name, real_array(name, value[0], FORMS)), _position(name, value[1])
    array = real_array(name, value, FORMS)
    shape = array.shape
    if shape[-2:] in ((4, 4), (3, 4)) and array.ndim in (2, 3):
        if shape[-2] == 4 and np.abs(array[..., 3, :] - (0.0, 0.0, 0.0, 1.0)).max(initial=0.0) > 1e-9:
            raise ShapeError(f"{name}: the last row of a pose (4, 4) must be (0, 0, 0, 1)")
        return _rotation(name, array[..., :3, :3]), _position(name, array[..., :3, 3])
    if shape[-1:] == (7,) and array.ndim in (1, 2):
        return _of_quaternion(name, array[..., :4]), _position(name, array[..., 4:])
    if shape[-1:] == (3,) and array.ndim in (1, 2):
        return None, _finite(name, array)
    raise ShapeError(f"{name}: expected {FORMS}; got shape {shape}")


def _rotation(name: str, R: np.ndarray) -> np.ndarray:
    if R.ndim not in (2, 3):
        raise ShapeError(f"{name}: expected a rotation (3, 3) or (B, 3, 3), got shape {R.shape}")
    nine = R.reshape(*R.shape[:-2], 9)
    single = nine.ndim == 1  # then Python's floats are quicker; and NumPy's own products of 3 x 3 are slow
    a, b, c, d, e, f, g, h, i = nine.tolist() if single else nine.T
    off = [a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0, a * d + b * e + c * f]
    off += [b * f - c * e - g, c * d - a * f - h, a * e - b * d - i]
    if not (all(abs(x) <= 1e-6 for x in off) if single else (np.abs(off) <= 1e-6).all()):
        raise ShapeError(
            f"{name}: expected a rotation matrix, R R^T = 1 and det R = 1, got one that is off by "
            f"{np.abs(off).max():.3g}"
        )
    return nine


def _of_quaternion(name: str, quat: np.ndarray) -> np.ndarray:
    if quat.ndim not in (1, 2):
        raise ShapeError(f"{name}: expected a quaternion (4,) or (B, 4), got shape {quat.shape}")
    norm = np.linalg.norm(quat, axis=-1)
    good = np.abs(norm**2 - 1.0) <= UNIT_QUATERNION_TOLERANCE
    if not good.all():
        got = f"{np.atleast_1d(norm)[~np.atleast_1d(good)][0]:.6g}"
        raise InvalidValue(
            f"{name}: expected a unit quaternion (quat_wxyz), got norm {got}; divide it by that", name
        )
    rows = quat_wxyz_to_rotation([quat[..., k] for k in range(4)]).rows
    return np.stack([x for row in rows for x in row], axis=-1)
