"""One robot compared with what every installed engine makes of its file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
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
from robokit.errors import MissingDependency
from robokit.model.builder import ModelBuilder
from robokit.model.robot import Robot
from robokit.parity import engines
from robokit.parity.notes import known_differences
from robokit.parity.peer_faults import peer_faults
from robokit.parity.reading import robot_text, without_other_links
from robokit.parity.state import Answering, Answers, State, one_line

TOLERANCE = 1e-10
"""Largest relative error that counts as agreement."""

QUANTITIES = ("mass", "CoM", "H", "C", "tau", "qdd", "A_G", "rotation", "position")


@dataclass
class Comparison:
    """One engine compared with robokit.

    Attributes:
        engine: name of the engine.
        version: version of its package.
        errors: quantity -> largest relative error.
        failure: why there are no errors to show; "" if there are.
        imported: whether the engine itself could be imported; if not, ``failure`` says nothing of the file.
        notes: known differences between the engine and robokit that apply to this robot.
        changes: what the engine changed or refused in this file, and what was done about it.
        uncertain: relative error of the accelerations that rounding can cause: H's condition number times
            the machine precision.
    """

    engine: str
    version: str
    errors: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    uncertain: float = 0.0
    imported: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the error of every quantity is within its tolerance."""
        return not self.failure and all(e <= self.tolerance(what) for what, e in self.errors.items())

    def tolerance(self, what: str) -> float:
        """Largest relative error of a quantity that counts as agreement."""
        return max(TOLERANCE, self.uncertain) if what == "qdd" else TOLERANCE

    @property
    def worst(self) -> float:
        """The largest of the errors; infinite if the engine cannot load the file."""
        return float("inf") if self.failure else max(self.errors.values(), default=0.0)


def compare(
    path: str | os.PathLike[str],
    robot: Robot,
    states: int = 3,
    seed: int = 0,
    run: str | None = None,
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> list[Comparison]:
    """Compare a robot with what the installed engines make of its file.

    Compared are mass and centre of mass of the moving bodies, mass matrix, bias forces, inverse and forward
    dynamics, centroidal momentum matrix and the pose of every link. The states are random: configurations
    within the joint limits; velocities, accelerations and forces with standard normal distribution. If the
    robot has coupled mimic joints, the engines' answers for all joints are projected by its coupling matrix
    G: H_r = G^T H G, tau_r = G^T tau, A_G G, and the accelerations are solved with H_r. Accelerations are not
    compared where H is singular.

    Args:
        path: the URDF.
        robot: the robot that robokit loaded from it.
        states: number of random states; each error is the largest over them.
        seed: seed of the random states.
        run: robokit's own engine, "llvm" or "python", as ``engine`` of :func:`robokit.rnea`.
        xacro_args, package_dirs: as for :func:`robokit.load_urdf`.

    Returns:
        one comparison for each installed engine.

    Example:
        >>> from robokit.parity import compare
        >>> path = rk.find_robot("double_pendulum")
        >>> found = compare(path, rk.load_urdf(path), states=1, run="python")
        >>> all(one.agrees for one in found)  # one comparison for each engine that is installed
        True
    """
    found: list[Comparison] = []
    full = (
        robot
        if robot.coupling is None
        else ModelBuilder.from_robot(robot).build(robot.base, (), tuple(robot.gravity))
    )
    singular = singular_joint(robot)
    text = robot_text(path, xacro_args, package_dirs)
    if robot.base == "floating":
        text = without_other_links(text, robot.link_names)
    told = [(x, own_answers(robot, x, run)) for x in _states(robot, states, seed, singular is None)]
    # Rounding errors in H appear in the accelerations multiplied by H's condition number.
    conditions = [float(np.linalg.cond(ours["H"])) for _, ours in told if "qdd" in ours]
    uncertain = max(conditions, default=0.0) * float(np.finfo(float).eps)
    for name in installed():
        engine = engines.ENGINES[name]
        comparison = Comparison(name, _version(engine.package), uncertain=uncertain)
        # They are given the file with fusestatic="false".
        comparison.notes = peer_faults(engine.program, lambda: text, fuses=False)
        comparison.notes += known_differences(name, robot, singular)
        found.append(comparison)
        try:
            answers = engines.opened(name, text, full, comparison.changes)
            for x, ours in told:
                theirs = answers(x) if robot.coupling is None else _projected(robot, x, answers)
                for what in [name for name in QUANTITIES if name in theirs and name in ours]:
                    error = relative_error(theirs[what], ours[what])
                    comparison.errors[what] = max(comparison.errors.get(what, 0.0), error)
        except MissingDependency as problem:
            comparison.failure, comparison.imported = str(problem), False
        except Exception as refusal:  # of any type: what another program answers may have any shape
            comparison.failure = one_line(refusal)
            comparison.errors.clear()
        if TOLERANCE < comparison.errors.get("qdd", 0.0) <= uncertain:
            comparison.changes.append(f"H is ill conditioned: rounding may change qdd by {uncertain:.0e}")
    return found


def _states(robot: Robot, count: int, seed: int, regular: bool) -> Iterator[State]:
    """Random states; without forces if H is singular, because then no accelerations are asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
        yield State(q, v, a, tau if regular and robot.nv else None)


def installed() -> list[str]:
    """Names of the engines that are installed."""
    return [name for name, e in engines.ENGINES.items() if importlib.util.find_spec(e.module) is not None]


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference, divided by the largest expected entry (or by 1e-3 if that is larger)."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if got.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
    return error if np.isfinite(error) else float("inf")


def own_answers(robot: Robot, x: State, run: str | None = None) -> Answers:
    """robokit's own quantities of a state, by name."""
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
    """Answers for the coupled robot of an engine in which mimic joints are coordinates of their own."""
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
