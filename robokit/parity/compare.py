"""One robot beside every installed engine's reading of its file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.dynamics import (
    aba,
    bias_forces,
    center_of_mass,
    centroidal_momentum_matrix,
    crba,
    forward_kinematics,
    rnea,
)
from robokit.dynamics.singular import singular_joint
from robokit.model.builder import ModelBuilder
from robokit.model.robot import Robot
from robokit.parity import engines
from robokit.parity.notes import known_differences
from robokit.parity.reading import robot_text
from robokit.parity.state import Answering, Answers, State, one_line

TOLERANCE = 1e-10
"""Relative error up to which engines agree."""

QUANTITIES = ("mass", "CoM", "H", "C", "tau", "qdd", "A_G", "rotation", "position")


@dataclass
class Comparison:
    """One engine beside robokit.

    Attributes:
        engine: its name.
        version: of the installed package.
        errors: largest relative error of each quantity.
        failure: why there are none, or "".
        notes: differences that are known, whatever the file.
        changes: what the engine made of this file, and what was done about it.
        uncertain: relative error of the accelerations that rounding may make, H being what it is.
    """

    engine: str
    version: str
    errors: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    uncertain: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether every quantity is within the tolerance, accelerations within their uncertainty."""
        return not self.failure and all(e <= self.tolerance(what) for what, e in self.errors.items())

    def tolerance(self, what: str) -> float:
        """The relative error up to which a quantity agrees."""
        return max(TOLERANCE, self.uncertain) if what == "qdd" else TOLERANCE

    @property
    def worst(self) -> float:
        """The largest of the errors; infinite where the engine refuses the file."""
        return float("inf") if self.failure else max(self.errors.values(), default=0.0)


def compare(
    path: str | os.PathLike[str], robot: Robot, states: int = 3, seed: int = 0, run: str | None = None
) -> list[Comparison]:
    """Compare a robot with what the installed engines make of its file.

    Compared are mass and centre of mass of the moving bodies, mass matrix, bias forces, inverse and forward
    dynamics, centroidal momentum matrix and the pose of every link, at random states within the joints'
    limits, with velocities, accelerations and forces of the standard normal distribution. Where the robot has
    coupled mimic joints, the engines' answers for all joints are projected by its G: H_r = G^T H G,
    tau_r = G^T tau, A_G G, and accelerations are those of H_r. Accelerations are left out where H is
    singular.

    Args:
        path: the URDF.
        robot: the robot that robokit loaded from it.
        states: random states, with the errors' maximum over them.
        seed: of the states.
        run: what robokit runs on, "llvm" or "python"; as ``engine`` of :func:`robokit.rnea`.

    Returns:
        one comparison for each installed engine; none where none is installed.
    """
    found: list[Comparison] = []
    full = (
        robot
        if robot.coupling is None
        else ModelBuilder.from_robot(robot).build(robot.base, (), tuple(robot.gravity))
    )
    singular = singular_joint(robot)
    text = robot_text(path)
    told = [(x, own_answers(robot, x, run)) for x in _states(robot, states, seed, singular is None)]
    # A program's rounding in H comes back in the accelerations times its condition number.
    conditions = [float(np.linalg.cond(ours["H"])) for _, ours in told if "qdd" in ours]
    uncertain = max(conditions, default=0.0) * float(np.finfo(float).eps)
    for name in installed():
        engine = engines.ENGINES[name]
        comparison = Comparison(name, _version(engine.package), uncertain=uncertain)
        comparison.notes = known_differences(name, robot, singular)
        found.append(comparison)
        try:
            answers = engine.open(text, full, comparison.changes)
            for x, ours in told:
                theirs = answers(x) if robot.coupling is None else _projected(robot, x, answers)
                for what in [name for name in QUANTITIES if name in theirs and name in ours]:
                    error = relative_error(theirs[what], ours[what])
                    comparison.errors[what] = max(comparison.errors.get(what, 0.0), error)
        except Exception as refusal:  # another program's, whatever its type
            comparison.failure = one_line(refusal)
            comparison.errors.clear()
        if TOLERANCE < comparison.errors.get("qdd", 0.0) <= uncertain:
            comparison.changes.append(f"H is ill conditioned: rounding may change qdd by {uncertain:.0e}")
    return found


def _states(robot: Robot, count: int, seed: int, regular: bool) -> Iterator[State]:
    """Random states; no forces where H is singular, since no accelerations are asked."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
        yield State(q, v, a, tau if regular and robot.nv else None)


def installed() -> list[str]:
    """Names of the engines that can be imported."""
    return [name for name, e in engines.ENGINES.items() if importlib.util.find_spec(e.module) is not None]


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference beside the largest expected entry, or beside 1e-3 where that is smaller."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if got.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
    return error if np.isfinite(error) else float("inf")


def own_answers(robot: Robot, x: State, run: str | None = None) -> Answers:
    """What robokit says of a state: every quantity by name."""
    poses = forward_kinematics(robot, x.q, engine=run)
    out = {
        "rotation": poses.rotation,
        "position": poses.position,
        "mass": np.array(robot.total_mass),
        "H": np.asarray(crba(robot, x.q, engine=run)),
        "C": bias_forces(robot, x.q, x.v, engine=run),
        "tau": rnea(robot, x.q, x.v, x.a, engine=run),
    }
    if robot.total_mass > 0:
        out["CoM"] = center_of_mass(robot, x.q, engine=run)
        out["A_G"] = centroidal_momentum_matrix(robot, x.q, engine=run)
    if x.tau is not None:
        out["qdd"] = aba(robot, x.q, x.v, x.tau, engine=run)
    return out


def _projected(robot: Robot, x: State, answers: Answering) -> Answers:
    """What an engine that keeps the coordinates of mimic joints says of the coupled robot."""
    assert robot.coupling is not None
    G = robot.coupling.G
    q = np.array(robot.coupling.full_q(x.q.tolist()))
    out = answers(State(q, G @ x.v, G @ x.a, None))
    out["H"] = G.T @ out["H"] @ G
    out["C"], out["tau"] = G.T @ out["C"], G.T @ out["tau"]
    if "A_G" in out:
        out["A_G"] = out["A_G"] @ G
    if x.tau is not None:
        out["qdd"] = np.linalg.solve(out["H"], x.tau - out["C"])
    return out


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
