"""Errors and warnings about starts: bodies that overlap, links in the ground, spins too fast for a step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator

import numpy as np

from robokit.errors import ShapeError, SimulationWarning
from robokit.model.robot import Robot
from robokit.sim.body_pairs import body_names
from robokit.sim.starts.start_contacts import StartContacts, start_contacts
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.default_step import SPIN, fastest_spin

OVERLAP = 1e-3
"""Bodies that overlap by more at the start are worth a warning [m]."""

DEEP = 0.01
"""A link deeper in the ground than this is worth a warning [m]."""

BURIED = 0.1
"""A start deeper in the ground than this is a mistake [m]."""


def check_starts(program: Program, q: np.ndarray, what: str = "q0") -> StartContacts:
    """What overlaps at the starts (nq,) or (B, nq), which the caller knows as ``what``.

    Raises:
        ShapeError: a start deep inside the ground, which would throw the robot away.
    """
    found = start_contacts(program, np.atleast_2d(q))
    for row, why in buried(program, found):
        raise ShapeError(f"{what}{f'[{row}]' if q.ndim == 2 else ''}: {why}")
    return found


def buried(program: Program, found: StartContacts) -> Iterator[tuple[int, str]]:
    """The rows that start deep inside the ground, and what is to be said of them."""
    ground, robot = program.ground, program.robot
    for row in np.flatnonzero(found.depth > BURIED).tolist():
        assert ground is not None
        depth = found.depth[row]
        above = "" if ground.horizontal else ", ground=ground"
        remedy = (
            f"start from rk.standing_configuration(robot{above})"
            if robot.base == "floating"
            else "start elsewhere"
        )
        if ground.horizontal:
            remedy += f", or lower it with Ground(height={ground.height - depth:.3g})"
        yield row, f"link {found.link[row]!r} starts {depth:.3g} m below the ground; {remedy}"


def warn_of_start(program: Program, found: StartContacts, q: np.ndarray, v: np.ndarray, dt: float) -> float:
    """Warn of a start that no run should have.

    Args:
        program: the step.
        found: what overlaps there.
        q, v: the starts, (nq,) and (nv,), or rows of them; a single row goes with many.
        dt: time step [s].

    Returns:
        how deep in the ground the start is [m], where it was warned of that; else 0.
    """
    q, v = np.atleast_2d(q), np.atleast_2d(v)
    robot = program.robot if program.robot.samples is None else program.robot.sample(0)
    _of_bodies(robot, found)
    depth = _of_ground(found)
    _of_spin(robot, q, v, dt)
    return depth


def _warn(text: str) -> None:
    warnings.warn(text, SimulationWarning, stacklevel=5)


def _place(rows: int, row: int, count: int) -> str:
    """Which of the rows, in words."""
    if rows == 1:
        return "q0"
    return f"q0[{row}]" + (f" (and {count - 1} more)" if count > 1 else "")


def _of_bodies(robot: Robot, found: StartContacts) -> None:
    count = int((found.overlap > OVERLAP).sum())
    if count:
        row = int(found.overlap.argmax())
        names = body_names(robot)
        first, second = (names[i] for i in found.bodies[row].tolist())
        _warn(
            f"{_place(len(found.overlap), row, count)}: bodies {first!r} and "
            f"{second!r} overlap by {1e3 * found.overlap[row]:.3g} mm and push each other apart: start "
            "with them apart, or remove the pair with self_collision=rk.collision_pairs(robot).remove(...)"
        )


def _of_ground(found: StartContacts) -> float:
    count = int((found.depth > DEEP).sum())
    if not count:
        return 0.0
    row = int(found.depth.argmax())
    depth = float(found.depth[row])
    _warn(
        f"{_place(len(found.depth), row, count)}: link {found.link[row]!r} starts {1e3 * depth:.3g} mm "
        "inside the ground, which pushes it out: start from rk.standing_configuration(robot, ground=ground), "
        "or higher"
    )
    return depth


def two_digits(dt: float) -> float:
    """A step with two digits, not longer."""
    digits = 10.0 ** math.floor(math.log10(dt) - 1)
    return math.floor(dt / digits) * digits


def _of_spin(robot: Robot, q: np.ndarray, v: np.ndarray, dt: float) -> None:
    rows, (speed, row, body) = max(len(q), len(v)), fastest_spin(robot, q, v, SPIN / dt)
    if body:
        where, better = "v0" if rows == 1 else f"v0[{row}]", two_digits(SPIN / speed)
        _warn(
            f"{where}: body {robot.body_name(body)!r} spins at {speed:.3g} rad/s, {speed * dt:.2g} rad per "
            f"step of {dt:g} s, where {SPIN} is fine: use dt = {better:.2g}"
        )
