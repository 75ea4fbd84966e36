"""Pushes: forces from outside on links, for a time or at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_finite, one_of, real_array, real_number
from robokit.errors import ShapeError, WrongType, shown
from robokit.model.robot import Robot

FRAMES = ("link", "world")

ROUNDED = 1e-6
"""Part of a step that a push may be longer or shorter by rounding."""

Place = tuple[int, tuple[float, float, float] | None]
"""Body and point in its coordinates [m]; None where the wrench is about the world's origin."""


@dataclass(frozen=True, eq=False)
class Push:
    """An external force on a link.

    Attributes:
        link: its name.
        wrench: (3,) force [N], or (6,) moment about the point and force [N m; N], in world axes. If
            ``duration`` is 0, an impulse [N s], [N m s; N s], applied within one step. In rollouts also (B,
            3) or (B, 6), one per row.
        point: (3,) point at which it acts [m].
        start: time at which it begins [s]; for an impulse in rollouts also (B,), one per row.
        duration: how long it acts [s]; 0 for an impulse. A step that it covers in part gets that part.
        frame: frame of ``point``: "link", so that it moves with the link, or "world", so that it does not
            move.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> kick = rk.Push("lower", (0.5, 0, 0), (0, 0, -0.5))  # an impulse of 0.5 N s
        >>> run = rk.simulate(robot, duration=0.05, pushes=kick)
        >>> bool(abs(run.v[-1]).max() > 1.0)
        True
    """

    link: str
    wrench: Any
    point: Any = (0.0, 0.0, 0.0)
    start: Any = 0.0
    duration: float = 0.0
    frame: str = "link"

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise WrongType("Push(link=...)", self.link, "the name of a link")
        wrench = real_array("Push(wrench=...)", self.wrench, "(3,) or (6,)")
        if wrench.ndim not in (1, 2) or wrench.shape[-1] not in (3, 6) or not len(wrench):
            raise ShapeError(
                f"Push(wrench=...): expected a force (3,) or moment and force (6,), got shape {wrench.shape}"
            )
        point = real_array("Push(point=...)", self.point, "(3,)")
        if point.shape != (3,):
            raise ShapeError(f"Push(point=...): expected shape (3,), got {point.shape}")
        for name, array in (("wrench", wrench), ("point", point)):
            check_finite(f"Push({name}=...)", array)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "duration", real_number("Push(duration=...)", self.duration, least=0.0))
        object.__setattr__(self, "start", self._start())
        one_of("frame", self.frame, FRAMES)

    @property
    def rows(self) -> int | None:
        """B where there is one wrench or one start a row of a rollout, else None."""
        if isinstance(self.start, np.ndarray):
            return len(self.start)
        return len(self.wrench) if self.wrench.ndim == 2 else None

    def _start(self) -> Any:
        """When it begins: a number, or (B,)."""
        if np.ndim(self.start) == 0:
            return real_number("Push(start=...)", self.start, least=0.0)
        given = real_array("Push(start=...)", self.start, "() or (B,)")
        if given.ndim != 1 or not len(given) or not (np.isfinite(given) & (given >= 0.0)).all():
            raise ShapeError(f"Push(start=...): expected times >= 0, got {shown(self.start)}")
        if self.duration != 0.0:
            raise ShapeError("Push(start=...): one per row goes with impulses alone; leave out duration")
        if self.wrench.ndim == 2 and len(self.wrench) != len(given):
            raise ShapeError(
                f"Push(start=...): expected {len(self.wrench)} times, one per row as the wrench has, "
                f"got {len(given)}"
            )
        return given


def pushes_of(given: Any) -> tuple[Push, ...]:
    """What was given as ``pushes``: one or several, as Push or as tuples of its first five attributes.

    Raises:
        WrongType: something else.
    """
    if given is None:
        return ()
    if isinstance(given, Push) or (isinstance(given, tuple) and given and isinstance(given[0], str)):
        given = [given]
    accepted = "rk.Push(...), a tuple (link, wrench, point, start, duration), or a list of these"
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise WrongType("pushes", given, accepted)
    found = []
    for k, one in enumerate(given):
        if not isinstance(one, Push):
            if not isinstance(one, tuple | list) or not 2 <= len(one) <= 5:
                raise WrongType(f"pushes[{k}]", one, accepted)
            one = Push(*one)
        found.append(one)
    return tuple(found)


def _covered(push: Push, dt: float) -> list[tuple[int, int, float]]:
    """(first step, step after the last, factor of the wrench) of the steps that a push covers.

    A step that it covers in part gets that part, so that impulse and time are those asked for.
    """
    if push.duration == 0.0:
        first = round(push.start / dt)
        return [(first, first + 1, 1.0 / dt)]
    start, end = push.start / dt, (push.start + push.duration) / dt
    first, last = math.floor(start + ROUNDED), math.ceil(end - ROUNDED)
    if last - first < 2:
        return [(first, first + 1, end - start)]
    whole = [first + (start - first > ROUNDED), last - (last - end > ROUNDED)]
    parts = [
        (first, whole[0], first + 1 - start),
        (whole[0], whole[1], 1.0),
        (whole[1], last, end - last + 1),
    ]
    return [part for part in parts if part[1] > part[0]]


class OutsideForces:
    """Pushes fitted to a robot and to the steps of a run.

    Attributes:
        places: where they act: (body, point in it or None).
        links: of these places.
        rows: B where wrenches differ from row to row of a rollout, else None.
    """

    def __init__(self, robot: Robot, pushes: Sequence[Push], dt: float, steps: int) -> None:
        """Fit them.

        Raises:
            UnknownName: no such link.
            ShapeError: a link that cannot move, a start after the end of the run, or different numbers of
                rows.
        """
        self.places: list[Place] = []
        self.links: list[str] = []
        self.rows: int | None = None
        self.spans: list[tuple[int, int, int, np.ndarray]] = []
        """(place, first step, step after the last, wrench (6,) or (B, 6)) of each push."""
        self.by_row: list[tuple[int, np.ndarray, np.ndarray]] = []
        """(place, step (B,), wrench (6,) or (B, 6)) of each impulse with a time by row."""
        for k, push in enumerate(pushes):
            body, placement = robot.frame(push.link)
            if body == 0:
                raise ShapeError(
                    f"pushes[{k}]: link {push.link!r} is fixed to the world and cannot be pushed"
                )
            latest = float(np.max(push.start))
            if latest >= steps * dt - 0.5 * dt:
                raise ShapeError(
                    f"pushes[{k}]: starts at {latest:g} s, after the last step of the run, which ends at "
                    f"{steps * dt:g} s"
                )
            if push.rows is not None:
                if self.rows not in (None, push.rows):
                    raise ShapeError(
                        f"pushes[{k}]: expected {self.rows} wrenches, one per row, got {push.rows}"
                    )
                self.rows = push.rows
            self._add(push, body, placement, dt, steps)

    def _add(self, push: Push, body: int, placement: Any, dt: float, steps: int) -> None:
        wrench = push.wrench
        if wrench.shape[-1] == 3:
            wrench = np.concatenate([np.zeros_like(wrench), wrench], axis=-1)
        point: tuple[float, float, float] | None = None
        if push.frame == "link":
            x, y, z = (placement.rotation @ push.point + placement.position).tolist()
            point = (x, y, z)
        else:  # about the world's origin
            moment = wrench[..., :3] + np.cross(push.point, wrench[..., 3:])
            wrench = np.concatenate([moment, wrench[..., 3:]], axis=-1)
        known = list(zip(self.places, self.links, strict=True))
        at = ((body, point), push.link)
        if at not in known:
            self.places.append(at[0])
            self.links.append(at[1])
        place = known.index(at) if at in known else len(known)
        if isinstance(push.start, np.ndarray):
            when = np.minimum(np.rint(push.start / dt).astype(int), steps - 1)
            self.by_row.append((place, when, wrench * (1.0 / dt)))
            return
        for first, last, share in _covered(push, dt):
            if first < steps:
                self.spans.append((place, first, min(last, steps), wrench * share))

    def __bool__(self) -> bool:
        return bool(self.places)

    def at(self, step: int) -> tuple[np.ndarray, int]:
        """The wrenches of a step by place, (6 P,) or (B, 6 P), and the next step at which they change."""
        shape = () if self.rows is None else (self.rows,)
        out, change = np.zeros((*shape, len(self.places), 6)), np.iinfo(np.int64).max
        for place, first, last, wrench in self.spans:
            if first <= step < last:
                out[..., place, :] += wrench
            change = min([change, *(k for k in (first, last) if k > step)])
        for place, when, wrench in self.by_row:
            out[..., place, :] += np.where((when == step)[:, None], wrench, 0.0)
            later = np.concatenate([when, when + 1])
            change = min([change, *later[later > step].tolist()])
        return out.reshape(*shape, -1), int(change)

    def table(self, steps: int) -> np.ndarray:
        """The wrenches of all steps, (T, B or 1, 6 P)."""
        out = np.zeros((max(1, steps), self.rows or 1, len(self.places), 6))
        for place, first, last, wrench in self.spans:
            out[first:last, :, place] += wrench
        for place, when, wrench in self.by_row:
            out[when, np.arange(len(when)), place] += wrench
        return out.reshape(len(out), len(out[0]), -1)
