"""Warnings about the start of a run: bodies that overlap, points in the ground, spins too fast for a step."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from robokit.errors import SimulationWarning
from robokit.model.robot import Robot
from robokit.sim.collide.gaps import overlaps
from robokit.sim.collide.pair_list import CollisionPairs
from robokit.sim.motion.implicit_sweep import body_velocities
from robokit.sim.run.ground_gaps import row_gaps
from robokit.sim.run.run_warnings import DEEP
from robokit.sim.step.step_kernel import Program

OVERLAP = 1e-3
"""Bodies that overlap by more at the start are worth a warning [m]. A pair with slack has so much room."""

SPIN = 0.3
"""A body that turns by more in a step is worth a warning [rad]. The sine of the half is off its series' first
term by 0.4 %, which the axes of a step, those of its middle, leave out; at 1 rad it is 4 %."""

ROWS = 1024
"""Starts that are looked at together."""


def warn_of_start(program: Program, q: np.ndarray, v: np.ndarray, dt: float, left: int = 0) -> float:
    """Warn of a start that no run should have.

    Args:
        program: the step.
        q, v: the starts, (nq,) and (nv,), or rows of them; a single row goes with many.
        dt: time step [s].
        left: pairs of bodies that can meet and do not act, because nobody asked for so many.

    Returns:
        how deep in the ground the start is [m], where it was warned of that; else 0.
    """
    q, v = np.atleast_2d(q), np.atleast_2d(v)
    robot = program.robot if program.robot.samples is None else program.robot.sample(0)
    if left:
        _warn(
            f"the {left} pairs of bodies of robot {robot.name!r} that can meet go through each other: so "
            "many act only where they are asked for; give self_collision=True, or fewer of "
            "rk.collision_pairs(robot), or self_collision=False"
        )
    if program.pairs is not None:
        _of_bodies(robot, program.pairs, q)
    depth = 0.0
    if program.ground is not None and program.points is not None and len(program.points):
        depth = _of_ground(program, q)
    if np.abs(v).sum(axis=1).max(initial=0.0) * dt > SPIN:  # no body turns faster than all joints together
        _of_spin(robot, q, v, dt)
    return depth


def _warn(text: str) -> None:
    warnings.warn(text, SimulationWarning, stacklevel=5)


def _place(rows: int, row: int, count: int) -> str:
    """Which of the rows, in words."""
    if rows == 1:
        return "q0"
    return f"q0[{row}]" + (f" (and {count - 1} more)" if count > 1 else "")


def _of_bodies(robot: Robot, pairs: CollisionPairs, q: np.ndarray) -> None:
    deepest, found = (OVERLAP, 0, (0, 0)), 0
    for first in range(0, len(q), ROWS):
        some = q[first : first + ROWS]
        depth = np.zeros(len(some))
        for shapes, rows, over in overlaps(robot, pairs, some):
            depth[rows] = np.maximum(depth[rows], over)
            k = int(over.argmax())
            if over[k] > deepest[0]:
                deepest = (float(over[k]), first + int(rows[k]), shapes)
        found += int((depth > OVERLAP).sum())
    if found:
        depth_, row, shapes = deepest
        i, j = (pairs.shapes[k].body for k in shapes)
        _warn(
            f"{_place(len(q), row, found)}: bodies {robot.body_name(i)!r} and {robot.body_name(j)!r} overlap "
            f"by {1e3 * depth_:.3g} mm and push each other apart: start with them apart, or take the pair "
            "away with self_collision=rk.collision_pairs(robot).remove(...)"
        )


def _of_ground(program: Program, q: np.ndarray) -> float:
    points, ground = program.points, program.ground
    assert points is not None and ground is not None
    many = points.position.ndim == 3 or ground.rows is not None  # points or a ground of each row's own
    if many and len(q) == 1:
        q = np.broadcast_to(q, (len(points.position) if ground.rows is None else ground.rows, q.shape[1]))
    deepest, found = (DEEP, 0, ""), 0
    for first in range(0, len(q), ROWS):
        here = points
        if points.position.ndim == 3:
            here = replace(points, position=points.position[first : first + ROWS])
        with np.errstate(all="ignore"):
            over = ground.part(slice(first, first + ROWS))
            depth = -row_gaps(program.robot, q[first : first + ROWS], here, over)
        depth[~np.isfinite(depth)] = 0.0
        found += int((depth.max(axis=1) > DEEP).sum())
        row, k = divmod(int(depth.argmax()), depth.shape[1])
        if depth[row, k] > deepest[0]:
            deepest = (float(depth[row, k]), first + row, points.link[k])
    if found:
        depth_, row, link = deepest
        _warn(
            f"{_place(len(q), row, found)}: link {link!r} starts {1e3 * depth_:.3g} mm inside the ground, "
            "which pushes it out: start from rk.standing_configuration(robot, ground=ground), or higher"
        )
        return depth_
    return 0.0


def _of_spin(robot: Robot, q: np.ndarray, v: np.ndarray, dt: float) -> None:
    fastest, rows = (SPIN / dt, 0, 0), max(len(q), len(v))
    for first in range(0, rows, ROWS):
        x, y = (a if len(a) == 1 else a[first : first + ROWS] for a in (q, v))
        with np.errstate(all="ignore"):
            X = robot.tree.transforms(robot.split_q(list(x.T)))
            turning = body_velocities(robot.tree, X, robot.split_v(list(y.T)))
            for i, V in enumerate(turning[1:], 1):
                speed = np.nan_to_num(np.atleast_1d(np.sqrt(V.ang.dot(V.ang) + 0.0 * y.T[0])), posinf=0.0)
                k = int(speed.argmax())
                if speed[k] > fastest[0]:
                    fastest = (float(speed[k]), first + k, i)
    speed, row, body = fastest
    if body:
        digits = 10.0 ** math.floor(math.log10(SPIN / speed) - 1)
        where, better = "v0" if rows == 1 else f"v0[{row}]", math.floor(SPIN / speed / digits) * digits
        _warn(
            f"{where}: body {robot.body_name(body)!r} spins at {speed:.3g} rad/s, {speed * dt:.2g} rad a "
            f"step of {dt:g} s, of which {SPIN} are fine: take dt = {better:.2g}"
        )
