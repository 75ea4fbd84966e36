"""Energies, momenta and contact forces of recorded states.

The texts of the algorithms run here with NumPy arrays in place of scalars, many states at once. Nothing is
compiled, because these figures are needed only once for each recorded state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.derived import Recent
from robokit.model.robot import Robot
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.momentum_projection import momentum_at_base
from robokit.sim.record.newton_loops import newton_loops
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.shapes.contact_shapes import Ball, ContactShape
from robokit.sim.step.energy_momentum import kept_energy
from robokit.sim.step.loop_wrenches import loop_wrenches
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.iterated_steps import iterates, kick_again
from robokit.sim.stepping.start_momentum import start_momentum
from robokit.sim.touching.ground_law import Axes, ground_axes
from robokit.spatial import Vector3

BLOCK = 2048
"""States at a time: arrays of this length stay in the cache."""


def in_blocks(
    text: Callable[..., Sequence[Any]], width: int, *arrays: np.ndarray, block: int = BLOCK
) -> np.ndarray:
    """text(columns of each array, ...) -> width scalars, for all rows: (T, width)."""
    T = len(arrays[0])
    out = np.zeros((T, width))
    for start in range(0, T, block):
        part = slice(start, min(start + block, T))
        for k, x in enumerate(text(*(list(a[part].T) for a in arrays))):
            out[part, k] = x
    return out


def energies(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy [J], (T,) each."""
    tree = robot.tree

    def text(qs: Any, vs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs)
        return [kinetic_energy(tree, rows, robot.split_v(vs)), potential_energy(tree, rows)]

    # Masses of one's own: a row for each.
    both = in_blocks(text, 2, q, v, block=BLOCK if robot.samples is None else len(q))
    return both[:, 0], both[:, 1]


def momenta(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Centroidal momentum [angular; linear], world axes, (T, 6) [N m s; N s]; zero where nothing moves."""
    tree = robot.tree
    if robot.total_mass == 0.0:
        return np.zeros((len(q), 6))
    return in_blocks(
        lambda qs, vs: list(centroidal_momentum(tree, robot.split_q(qs), robot.split_v(vs))), 6, q, v
    )


def first_carried(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What the first step is handed besides q and v, for rows of states (B, ...): (B, C)."""
    robot, layout = program.robot, program.layout
    out = np.zeros((len(q), layout.size))
    if program.newton:  # the step itself looks at what it is to keep
        return out[:, :1] * 0.0
    if program.reproducible:
        if (layout.momentum and np.any(robot.total_mass)) or layout.energy:
            kept = start_momentum(replace(program, dtype="float64"), q, v)
            out[:, : 6 * layout.momentum] = kept[:, : 6 * layout.momentum]
            if layout.energy:
                out[:, -1] = kept[:, 6]
        return out
    block = BLOCK if robot.samples is None else len(q)  # masses of one's own: a row for each

    def measured(text: Callable[..., Any], width: int) -> np.ndarray:
        return in_blocks(
            lambda qs, vs: list(text(robot.tree, robot.split_q(qs), robot.split_v(vs))),
            width, q, v, block=block,
        )  # fmt: skip

    if layout.momentum and np.any(robot.total_mass):
        out[:, :6] = measured(momentum_at_base, 6)
    if layout.energy:
        out[:, -1:] = measured(lambda *state: [kept_energy(*state)], 1)
    return out


def even(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows as one array; zeros follow what is shorter than others."""
    longest = max(map(len, rows))
    if all(len(row) == longest for row in rows):
        return np.array(rows)
    return np.array([np.concatenate([row, np.zeros(longest - len(row))]) for row in rows])


def contact_forces(
    program: Program, q: np.ndarray, steps: Sequence[np.ndarray], dt: float
) -> tuple[np.ndarray, np.ndarray]:
    """World positions [m] at each state, and forces [N] in the step that led to it, of the points, (T, K, 3).

    Args:
        program: the step.
        q: configurations of the states, (T, nq).
        steps: from where the steps set out, and with what: q, v, tau, carried numbers, inputs, (T, ...) each.
        dt: time step [s].
    """
    robot, points = program.robot, program.points
    assert points is not None
    tree, K = robot.tree, len(points)
    parameters = [float(x) for x in program.parameters(dt)]
    given = steps[4:]
    order, n = points.order(tree.n), len(given)

    def text(after: Any, qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows, speeds, efforts = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p, carry = program.problem(parameters, inputs[:n]), Carried(program.layout, kept)
        qm, done = kick_again(program, p, rows, speeds, efforts, dt, carry, inputs[n:])
        X0, Xm = forward_kinematics(tree, robot.split_q(after)), forward_kinematics(tree, qm)
        at: list[Any] = []
        for acting in done.contacts:
            body, E = acting.body, Xm[acting.body.i].E
            for place, force in zip(body.p, acting.point_forces(), strict=True):
                at.append((X0[body.i].point(place), E.transpose_apply(force)))
        scalars: list[Any] = [None] * (6 * K)
        for number, (where, force) in zip(order, at, strict=True):
            scalars[6 * number : 6 * number + 6] = [*where, *force]
        return scalars

    settled = iterates(program, dt, steps[0], steps[1], steps[2], steps[3], given)
    both = in_blocks(text, 6 * K, q, *steps, *settled).reshape(len(q), K, 6)
    both[0, :, 3:] = 0.0
    return both[..., :3], both[..., 3:]


def loop_forces(
    program: Program,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray | None,
    carried: np.ndarray,
    given: Sequence[np.ndarray],
    dt: float,
) -> dict[str, np.ndarray]:
    """The wrench [N m; N] of each loop joint on its successor in the step after each state, (T, 6) by name.

    Axes and origin are those of the joint's frame on its predecessor.
    """
    robot, loops = program.robot, program.loops
    if loops is None:
        return {}
    if program.newton:
        own = np.zeros((len(q), robot.nv)) if tau is None else tau
        each = newton_loops(program, (q, v, own, carried, *given), dt)
        return {model.name: each[:, k] for k, model in enumerate(loops.models)}
    parameters = [float(x) for x in program.parameters(dt)]

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p = program.problem(parameters, inputs)
        found = loop_wrenches(program.method.step, p, *rows, dt, Carried(program.layout, kept))
        return [x for wrench in found for x in wrench]

    zero = np.zeros((len(q), robot.nv)) if tau is None else tau
    both = in_blocks(text, 6 * len(loops.models), q, v, zero, carried, *given)
    return {model.name: both[:, 6 * k : 6 * k + 6] for k, model in enumerate(loops.models)}


def heights(robot: Robot, q: Sequence[float], points: ContactPoints) -> np.ndarray:
    """Height of the contact points over the world origin, (K,) [m]; (B, K) for a robot with samples.

    Those of the last configuration are kept: a start is looked at several times.
    """

    def make() -> np.ndarray:
        X0 = forward_kinematics(robot.tree, robot.split_q(list(q)))
        up = Vector3(0.0, 0.0, 1.0)
        z = [X0[i].point(shape.at(X0[i].E @ up)).z for i, shape in placed(points)]
        return np.stack(np.broadcast_arrays(*z), axis=-1) if z else np.zeros(0)

    kept: Recent[np.ndarray] = robot.derived.get("last heights", lambda: Recent(1))
    return kept.get((points, tuple(q)), make)


def row_heights(robot: Robot, q: np.ndarray, points: ContactPoints) -> np.ndarray:
    """The same for every row of q (B, nq), B up to BLOCK, of points of one sample or of B: (B, K) [m]."""
    tree, up = robot.tree, Vector3(0.0, 0.0, 1.0)

    def text(qs: Any) -> Sequence[Any]:
        axes = ground_axes(tree, tree.transforms(robot.split_q(qs)), Axes.of_plane(up, 0.0))
        return [axes[i].n.dot(shape.at(axes[i].n)) + axes[i].z for i, shape in placed(points)]

    return in_blocks(text, len(points), q)


def placed(points: ContactPoints) -> list[tuple[int, ContactShape]]:
    """(body, shape) of every point; where there are samples, their positions are arrays, (B,) each."""
    shapes = [
        Ball(tuple(points.position[..., k, :].T)) if moves and points.position.ndim == 3 else shape
        for k, (shape, moves) in enumerate(zip(points.shape, points.of_inertia, strict=True))
    ]
    return list(zip(points.body.tolist(), shapes, strict=True))
