"""Functions about a link, for several links at once: what they give for each, one after the other.

What links have in common, as the joints between the reference and the place where their branches part, is
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from robokit.arguments import real_array
from robokit.dynamics.devices import on_card
from robokit.errors import ShapeError
from robokit.model.robot import Robot

Scalars = Sequence[Any]

ORIGIN = (0.0, 0.0, 0.0)
"""The point of a link if none is given: its origin."""


def link_names(robot: Robot, link: Any) -> str | tuple[str, ...]:
    """The name of a link, or the names of several.

    Raises:
        ShapeError: an empty list.
        UnknownName: no such link, or no name.
    """
    if not isinstance(link, (list, tuple)):
        return robot.link(link).name
    if not link:
        raise ShapeError("link: expected at least one name, got an empty list")
    return tuple(robot.link(each).name for each in link)


def count(about: str, key: Any) -> int | None:
    """How many links a kernel is about; None where it is not about a list of them.

    Args:
        about: names of its choices, as its row has them.
        key: of the kernel.
    """
    several = about.startswith("link") and isinstance(key, tuple) and type(key[1]) is tuple
    return len(key[1]) if several else None


def points(at: Any, several: int) -> np.ndarray:
    """The points of several links as kernels take them, (3 k,) or (B, 3 k).

    Args:
        at: one point for all of them (3,), one for each (k, 3), or those of a batch (B, k, 3) [m].
        several: k.

    Raises:
        ShapeError: another shape, or no numbers.
    """
    if at is ORIGIN:
        return _origins(several)
    if on_card(at):
        return at.reshape(*at.shape[:-2], 3 * several) if at.ndim > 1 else at.tile((several,))
    accepted = f"(3,), ({several}, 3) or (B, {several}, 3), a point for each of the {several} links"
    array = real_array("at", at, accepted)
    if array.shape == (3,):
        tiled = np.tile(array, several)
        tiled.flags.writeable = False
        return tiled
    if array.ndim not in (2, 3) or array.shape[-2:] != (several, 3):
        raise ShapeError(f"at: expected {accepted}, got shape {array.shape}")
    return np.ascontiguousarray(array).reshape(*array.shape[:-2], 3 * several)


@cache
def _origins(several: int) -> np.ndarray:
    made = np.zeros(3 * several)
    made.flags.writeable = False
    return made


def link_by_link(text: Callable[[Any, Any], Scalars], at: Scalars, frames: Sequence[Any]) -> list[Any]:
    """The results of a function for each link, in one flat list.

    Args:
        text: of one point and one frame.
        at: the points, flat.
        frames: as the text takes them.
    """
    each = (text(at[3 * k : 3 * k + 3], frame) for k, frame in enumerate(frames))
    return list(chain.from_iterable(each))
