"""What simulate and rollout make of their arguments, and which of them they refuse."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.arguments import check_finite, check_values, real_array, real_number, whole_number
from robokit.collision.scene import touching_pairs
from robokit.conventions import UNIT_QUATERNION_TOLERANCE
from robokit.dynamics.build import angle_bounds, quaternion_offsets
from robokit.dynamics.singular import check_inertia
from robokit.engine.reproducible import wanted
from robokit.errors import InvalidValue, ShapeError, SimulationWarning, shown
from robokit.model.configurations import of_joint
from robokit.model.robot import Robot
from robokit.sim.collide import CollisionPairs, acting_pairs
from robokit.sim.ground import Ground
from robokit.sim.joints.joint_law import joint_law
from robokit.sim.motion.momentum_projection import may_keep_energy
from robokit.sim.record.recorded import BLOCK
from robokit.sim.run.ground_gaps import point_gaps, row_gaps
from robokit.sim.shapes.contact_points import ContactPoints
from robokit.sim.step.integrators import method
from robokit.sim.step.step_kernel import Between, Program
from robokit.sim.stepping.default_step import default_step

SWEEPS = 3
"""Of a step without a ground."""

FRAME = 5e-3
"""Time between recorded states by default [s]."""

LARGEST_CONTACT_STEP = 4e-3
"""Longest step with a ground that is not warned of [s]."""

MOST_STEPS = 1e10
"""Steps of a run; a year of them."""

BURIED = 0.1
"""A start with a point deeper than this is a mistake [m]."""


def check_start(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground) -> None:
    """Raise ShapeError for a start deep inside the ground, which would throw the robot away."""
    if not len(points):
        return
    depth = -point_gaps(robot, q, points, ground)
    k = int(depth.argmax())
    if depth[k] > BURIED:
        above = "" if ground.horizontal else ", ground=ground"
        remedy = (
            f"start from rk.standing_configuration(robot{above})"
            if robot.base == "floating"
            else "start elsewhere"
        )
        if ground.horizontal:
            remedy += f", or lower it with Ground(height={ground.height - depth[k]:.3g})"
        raise ShapeError(
            f"q0: a point of link {points.link[k]!r} starts {depth[k]:.3g} m below the ground; {remedy}"
        )


def check_starts(
    robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground, what: str = "q0"
) -> None:
    """The same for each row of q (B, nq), which the caller knows as ``what``; rows not finite are skipped."""
    for row, why in buried(robot, q, points, ground):
        raise ShapeError(why.replace("q0", f"{what}[{row}]", 1))


def buried(robot: Robot, q: np.ndarray, points: ContactPoints, ground: Ground) -> Iterator[tuple[int, str]]:
    """The rows of q (B, nq) that start deep inside the ground, and what :func:`check_start` says of them."""
    if not len(points):
        return
    rows = len(points.position) if points.position.ndim == 3 else ground.rows
    if rows is not None:  # one set of points, or one ground, a row
        q = np.broadcast_to(q, (rows, q.shape[1]))
    for start in range(0, len(q), BLOCK):
        some = q[start : start + BLOCK]
        here = points
        if points.position.ndim == 3:
            here = replace(points, position=points.position[start : start + BLOCK])
        with np.errstate(all="ignore"):
            over = ground.part(slice(start, start + BLOCK))
            deep = (-row_gaps(robot, some, here, over) > BURIED) & np.isfinite(some).all(axis=1)[:, None]
        for row in np.flatnonzero(deep.any(axis=1)).tolist():
            try:
                check_start(robot, some[row], points.sample(start + row), ground.row(start + row))
            except ShapeError as error:
                yield start + row, str(error)


def numbers(what: str, value: Any, n: int, robot: Robot | None = None) -> np.ndarray:
    """value as n finite numbers; with the robot, errors name the joint."""
    array = real_array(what, value, f"({n},)").copy()
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected shape ({n},), got {array.shape}")
    try:
        check_finite(what, array)
    except InvalidValue as error:
        raise (of_joint(robot, error) if robot else error) from None
    return array


def states(what: str, value: Any, n: int, least: int = 1, robot: Robot | None = None) -> np.ndarray:
    """value as rows of n numbers, (B, n) or (1, n); what is given for all rows must be finite."""
    array = real_array(what, value, f"({n},) or (B, {n})")
    if array.ndim == 1:
        return numbers(what, array, n, robot)[None]
    if array.ndim != 2 or array.shape[1] != n or len(array) < least:
        some = f" with B >= {least}" if least else ""
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}){some}, got {array.shape}")
    return array


def check_angles(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where an angle in q, (nq,) or (B, nq), is beyond the range of the sines."""
    finite = np.where(np.isfinite(q), q, 0.0)  # rows that are not finite are marked as such later
    check_values((what,), (finite,), (), [(0, k, most) for k, most in angle_bounds(robot)])


def check_quaternions(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        with np.errstate(all="ignore"):
            norms = np.atleast_1d(np.linalg.norm(q[..., k : k + 4], axis=-1))
            off = np.abs(norms * norms - 1.0) > UNIT_QUATERNION_TOLERANCE
        if off.any():
            row = int(off.argmax())
            place = f"{row}, {k}" if q.ndim == 2 else str(k)
            raise InvalidValue(
                f"{what}[{place}:{k + 4}] is a quaternion (wxyz) of norm {norms[row]:.6g}; a unit quaternion "
                "is needed: divide it by its norm",
                what,
                (row, k) if q.ndim == 2 else (k,),
            )


@dataclass(frozen=True)
class Setup:
    """What simulate and rollout make of the arguments that they share.

    Attributes:
        program: the step.
        dt: time step [s].
        steps: number of steps.
        every: steps between two records.
        summary: entries for the summary.
        left: pairs of bodies that do not act, because nobody asked for so many.
    """

    program: Program
    dt: float
    steps: int
    every: int
    summary: dict[str, Any]
    left: int = 0


def set_up(
    robot: Robot,
    duration: Any,
    dt: Any,
    ground: Any,
    integrator: Any,
    record_every: Any,
    joint_damping: Any,
    steps: int | None = None,
    dtype: str = "float64",
    many: bool = False,
    self_collision: Any = None,
    accuracy: Any = None,
    reproducible: Any = None,
) -> Setup:
    """Check the arguments that simulate and rollout share, and make the step of them.

    Warnings point at the caller's caller; for errors see :func:`robokit.simulate`.
    """
    duration = real_number("duration", duration, least=0.0)
    if record_every is not None:
        record_every = whole_number("record_every", record_every, 1)
    surface = _surface(robot, ground, many)
    if accuracy is not None:
        accuracy = real_number("accuracy", accuracy, above=0.0)
        if surface is None:
            raise ShapeError(f"accuracy: {accuracy:g} m/s is that of the contacts; there is no ground")
        surface = replace(surface, accuracy=accuracy)
    newton, between = isinstance(integrator, str) and integrator == "newton", Between()
    bodies: Sequence[tuple[int, int]] = ()
    if newton:
        bodies, between = touching_bodies(robot, self_collision, surface)
        pairs, left = None, 0
    else:
        pairs, left = acting_pairs(robot, self_collision, surface)
    name, row = method(integrator, surface is not None or pairs is not None)
    if name == "energy_momentum" and not may_keep_energy(robot.tree):
        raise ShapeError(
            f"integrator: 'energy_momentum' keeps the energy of one robot, and {robot.name!r} has several, "
            "of which one floats: take 'rkmk4'"
        )
    if surface is not None and surface.accuracy is not None:
        if dtype != "float64":
            raise ShapeError(f"accuracy: expected a rollout in double precision, got dtype={dtype!r}")
        if newton or not row.falls:
            solved = "; it solves every step to a tolerance" if newton else ""
            raise ShapeError(f"accuracy: expected integrator='contact', got {name!r}{solved}")
    if newton and surface is not None and (surface.slip is not None or surface.sweeps != Ground().sweeps):
        warnings.warn(
            "Ground: slip and sweeps do nothing with integrator='newton', which has true stiction and "
            "solves every step to a tolerance: leave them out",
            SimulationWarning,
            stacklevel=3,
        )
    chosen = dt is None
    dt = default_step(robot, row.falls) if chosen else real_number("dt", dt, above=0.0)
    steps = _steps(duration, dt) if steps is None else steps
    if surface is not None and dt > LARGEST_CONTACT_STEP:
        warnings.warn(
            f"dt = {dt:g} s is long for contact: take 4 ms or less", SimulationWarning, stacklevel=3
        )
    check_inertia(robot)
    damping = None if surface is not None else 0.0
    if joint_damping is not None:
        damping = real_number("joint_damping", joint_damping, least=0.0)
    law, defaulted = joint_law(robot, damping)
    sweeps = surface.sweeps if surface is not None else SWEEPS
    program = Program(
        robot, name, row, law, surface, sweeps, dtype, pairs=pairs, reproducible=wanted(reproducible),
        touching_bodies=bodies, between=between,
    )  # fmt: skip
    summary: dict[str, Any] = {
        "dt_chosen": chosen,
        "self_collision_pairs": len(bodies) if newton else 0 if pairs is None else len(pairs),
    }
    if left:
        summary["self_collision_pairs_left_out"] = left
    if defaulted:
        summary |= {
            "default_damping": "inertia" if damping is None else damping,
            "default_damping_joints": len(defaulted),
        }
    return Setup(program, dt, steps, record_every or max(1, round(FRAME / dt)), summary, left)


def touching_bodies(
    robot: Robot, given: Any, ground: Ground | None
) -> tuple[Sequence[tuple[int, int]], Between]:
    """Pairs of bodies that may touch each other, and the law between them.

    Args:
        robot: the robot.
        given: as of :func:`robokit.simulate`; by default they do where there is a ground.
        ground: of the run, or None.
    """
    if isinstance(given, CollisionPairs):
        pairs, _ = acting_pairs(robot, given, ground)
        return () if pairs is None else pairs.bodies, Between(given.friction, given.restitution)
    if given is not None and not isinstance(given, bool):
        acting_pairs(robot, given, ground)  # raises
    return (touching_pairs(robot) if (ground is not None if given is None else given) else ()), Between()


def _steps(duration: float, dt: float) -> int:
    """How many steps a duration takes."""
    if not duration / dt <= MOST_STEPS:
        raise ShapeError(
            f"duration: {duration:g} s are {duration / dt:.3g} steps of {dt:g} s; at most {MOST_STEPS:.0e} "
            "are taken: take a shorter duration or a longer dt"
        )
    if 0.0 < duration <= 0.5 * dt:
        raise ShapeError(f"duration: {duration:g} s is half a step of {dt:g} s or less: take a shorter dt")
    return round(duration / dt)


def _surface(robot: Robot, ground: Any, many: bool) -> Ground | None:
    """The ground that was given, True for that of default values, or None."""
    if ground is None or ground is False:
        return None
    surface = Ground() if ground is True else ground
    if not isinstance(surface, Ground):
        raise ShapeError(f"ground: expected rk.Ground(...), True or None, got {shown(ground)}")
    if surface.rows is not None and not many:
        raise ShapeError(
            f"ground: {surface.by_row} has {surface.rows} values, one a row of rk.rollout; give one here"
        )
    for given in (surface.friction, surface.restitution):
        for link in given if isinstance(given, Mapping) else ():
            robot.link(link)  # raises for a misspelt link, which would get the default
    return surface
