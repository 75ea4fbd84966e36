"""How far a run can be trusted: it is taken once more with half the step, and the two are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.algorithms.center_of_mass import center_of_mass
from robokit.model.robot import Robot
from robokit.sim.actuators import Actuator
from robokit.sim.record import Trajectory
from robokit.sim.stepping.energies import in_blocks
from robokit.sim.stepping.step_numbers import size_of

AGREEMENT = 0.01
"""Distance of the centres of mass up to which the runs agree, over the robot's size."""


def with_rows_twice(actuators: Sequence[Actuator], steps: int) -> list[Actuator]:
    """The same actuators for twice the steps: targets with one row a step have each row twice."""
    out = []
    for one in actuators:
        changed: dict[str, Any] = {}
        for name in ("target", "velocity", "feedforward"):
            value = getattr(one, name, None)
            if isinstance(value, np.ndarray | list | tuple) and np.ndim(value) > 1 and len(value) == steps:
                changed[name] = np.repeat(np.asarray(value), 2, axis=0)
        out.append(replace(one, **changed) if changed else one)
    return out


def compare(run: Trajectory, finer: Trajectory) -> dict[str, Any]:
    """What half the step changes.

    Args:
        run: the run.
        finer: the same with half the step, and recorded at the same times, as far as it came.

    Returns:
        dt of the finer run [s]; largest distance of the centres of mass and that at the end [m]; the robot's
        size [m]; the time until which they agree within AGREEMENT of it [s]; with a ground the time of the
        first contact [s] and the largest normal force of a step [N], or None, and how much they change (the
        force relative to the larger); "stopped", the finer run's reason to stop early, or None; all
        of it in "words".
    """
    robot = run.program.robot if run.program is not None else run.robot
    assert robot is not None
    n = min(len(run), len(finer))
    apart = np.linalg.norm(centers(robot, run.q[:n]) - centers(robot, finer.q[:n]), axis=1)
    size = size_of(robot)
    far = np.flatnonzero(~(apart <= AGREEMENT * size))
    last = int(far[0]) - 1 if len(far) else n - 1
    found: dict[str, Any] = {
        "dt": finer.summary["dt"],
        "center_of_mass_largest": float(apart.max()),
        "center_of_mass_end": float(apart[-1]),
        "size": size,
        "agrees_until": float(run.t[max(last, 0)]),
        "agrees": last == len(run) - 1,
        "stopped": finer.summary["stopped"]["reason"] if "stopped" in finer.summary else None,
    }
    if run.ground is not None:
        (touched, again), (force, other) = zip(*(_contact(x) for x in (run, finer)), strict=True)
        both = touched is not None and again is not None
        found |= {
            "first_contact": touched,
            "first_contact_change": again - touched if both else None,
            "peak_force": force,
            "peak_force_change": (other - force) / max(force, other) if force and other else None,
        }
    found["words"] = words(found)
    return found


def words(estimate: Mapping[str, Any]) -> str:
    """The same in a line."""
    largest, end = (1e3 * estimate[f"center_of_mass_{k}"] for k in ("largest", "end"))
    text = f"half the step moves the centre of mass by up to {largest:.2g} mm ({end:.2g} mm at the end)"
    if estimate.get("first_contact_change") is not None:
        text += f", the first contact by {1e3 * estimate['first_contact_change']:.2g} ms"
    if estimate.get("peak_force_change") is not None:
        text += f", the peak force by {100 * estimate['peak_force_change']:.2g} %"
    if estimate["stopped"]:
        text += f"; it stopped early: {estimate['stopped'].rstrip('.')}"
    until = "throughout" if estimate["agrees"] else f"until {estimate['agrees_until']:.4g} s"
    return f"{text}; within {100 * AGREEMENT:g} % of the robot's size {until}"


def centers(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Centres of mass of states (T, nq), (T, 3) [m]; 0 of a robot without mass."""
    if not robot.total_mass:
        return np.zeros((len(q), 3))
    return in_blocks(lambda qs: list(center_of_mass(robot.tree, robot.split_q(qs))), 3, q)


def _contact(run: Trajectory) -> tuple[float | None, float]:
    """(time of the first contact or None, largest normal force of a step)."""
    facts = run.step_facts
    assert facts is not None
    total = facts.normal.sum(axis=1)
    steps = np.flatnonzero(total > 0.0)
    middles = 0.5 * (facts.edges[1:] + facts.edges[:-1]) * run.summary["dt"]
    time = float(middles[steps[0]]) if len(steps) else None
    return time, float(total.max(initial=0.0))
