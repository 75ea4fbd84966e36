"""The wrenches of loop joints in steps of "contact", as they acted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.contact.materials import loop_numbers
from robokit.model.robot import Robot
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.contact_steps import ContactSteps


def loop_records(program: Program, steps: Sequence[np.ndarray], dt: float) -> np.ndarray:
    """The wrench [N m; N] of each loop on its successor, in its frame P on its predecessor, (T, L, 6).

    Args:
        program: the step.
        steps: from where the steps set out, and with what: q, v, tau, carried numbers, inputs, (T, ...) each.
        dt: time step [s].
    """
    taker, parameters = ContactSteps(program), np.array([dt])
    rows, after = [], []
    for q, v, tau, carried, *given in zip(*steps, strict=True):
        _, state = taker.iterate(
            q, v, tau, np.zeros(program.entries), carried, parameters, *given, steps=1
        )  # fmt: skip
        rows.append(taker.simulation(dt).arrays["loop_force"].copy())
        after.append(state[0])
    numbers = loop_numbers(program.robot)
    axes = numbers["loop_axes"].reshape(-1, 3, 3)
    g = np.array(rows).reshape(len(rows), -1, 6)
    turn = np.einsum("tlm,lmk->tlk", g[..., :3], axes)
    push = np.einsum("tlm,lmk->tlk", g[..., 3:] * numbers["loop_holds"], axes)
    # A thread turns as it pushes.
    thread = (g[..., 5] * numbers["loop_pitch"])[..., None] * axes[:, 2]
    arm = 0.5 * (_apart(program.robot, steps[0]) + _apart(program.robot, np.array(after)))
    return np.concatenate([turn + np.cross(arm, push) - thread, push], axis=-1)


def _apart(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Origin of each loop's frame S in axes of P, from that of P, in configurations (T, nq): (T, L, 3)."""
    X0, numbers = forward_kinematics(robot.tree, robot.split_q(list(q.T))), loop_numbers(robot)
    found = np.zeros((len(q), len(numbers["loop_bodies"]), 3))
    of_loops = zip(numbers["loop_bodies"].tolist(), numbers["loop_placement"], strict=True)
    for k, (bodies, places) in enumerate(of_loops):
        ends = zip(bodies, places, strict=True)
        (P, p), (_, s) = (_frame(X0[b] if b else None, place, len(q)) for b, place in ends)
        found[:, k] = np.einsum("tij,ti->tj", P, s - p)
    return found


def _frame(X: object, place: np.ndarray, T: int) -> tuple[np.ndarray, np.ndarray]:
    """Axes (T, 3, 3) and origin (T, 3) in the world of a frame on a body."""
    R, r = np.broadcast_to(np.eye(3), (T, 3, 3)), np.zeros((T, 3))
    if X is not None:
        E = [np.broadcast_to(x, T) for row in X.E.rows for x in row]  # type: ignore[attr-defined]
        R = np.stack(E, axis=-1).reshape(T, 3, 3).swapaxes(1, 2)
        r = np.stack([np.broadcast_to(x, T) for x in X.r], axis=-1)  # type: ignore[attr-defined]
    return R @ place[:9].reshape(3, 3), r + R @ place[9:]
