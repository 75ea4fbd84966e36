"""Starts of runs, checked: their states, what overlaps there, spins too fast for a step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_finite, check_quaternion, check_values, real_array
from robokit.caching import Spare
from robokit.collision.detect_kernel import Detector
from robokit.collision.scene import Scene
from robokit.dynamics.build import angle_bounds, quaternion_offsets
from robokit.errors import InvalidValue, ShapeError, SimulationWarning
from robokit.model.parts import Joint
from robokit.model.robot import Robot, of_joint
from robokit.sim.body_pairs import body_names
from robokit.sim.ground.ground import plane_of
from robokit.sim.motion.state_facts import state_poses
from robokit.sim.starts.ground_gaps import body_poses
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.default_step import SPIN, fastest_spin
from robokit.sim.stepping.step_numbers import ground_stiffness, scene_of


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


def check_coordinates(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where q has a quaternion that is not unit, or an angle beyond the range of sines.

    Args:
        q: configurations, (nq,) or (B, nq).
        what: they are to the caller.
    """
    check_quaternions(what, robot, q)

    def found() -> tuple[float, Any]:
        bounds = angle_bounds(robot)
        return min((most for _, most in bounds), default=math.inf), bounds

    least, bounds = robot.derived.get("bounds of angles", found)
    if np.abs(q).max(initial=0.0) <= least:
        return
    finite = np.where(np.isfinite(q), q, 0.0)  # rows that are not finite are marked as such later
    check_values((what,), (finite,), (), [(0, k, most) for k, most in bounds])


def check_quaternions(what: str, robot: Robot, q: np.ndarray) -> None:
    """Raise InvalidValue where a quaternion in q, (nq,) or (B, nq), is not unit."""
    for k in quaternion_offsets(robot):
        check_quaternion(what, q, k)


# ---- what overlaps -----------------------------------------------------------------------------------------


ROWS = 1024
"""Starts whose poses are computed together."""

FEW = 16
"""Starts that one after the other are quicker."""


@dataclass(frozen=True)
class StartContacts:
    """The deepest overlaps at the starts of B rows, 0 of what is not finite.

    Attributes:
        depth: in the ground [m], (B,).
        link: that is there, B names.
        overlap: of bodies [m], (B,).
        bodies: that overlap, (B, 2).
        energy: that the springs of all these contacts hold [J], (B,).
    """

    depth: np.ndarray
    link: list[str]
    overlap: np.ndarray
    bodies: np.ndarray
    energy: np.ndarray


def start_contacts(program: Program, q: np.ndarray) -> StartContacts:
    """What overlaps in the rows of q (B, nq)."""
    ground, robot = program.ground, program.robot
    B = len(q)
    if ground is not None and ground.rows is not None and B == 1:
        B = ground.rows
    found = StartContacts(np.zeros(B), [""] * B, np.zeros(B), np.zeros((B, 2), int), np.zeros(B))
    if not program.contact:
        return found
    scene = scene_of(program)
    if not len(scene.arrays["pair_shapes"]):
        return found
    k = ground_stiffness(program, 0)
    spare: Spare[tuple[Scene, Detector]] = robot.derived.get("spare detectors", lambda: Spare(2))
    _, detector = kept = spare.take(id(scene), lambda: (scene, Detector(scene.arrays, robot.nbodies + 1)))
    of_ground = np.array([not link for link in scene.links])
    normals = ground is not None and bool(ground.plane) and np.ndim(ground.normal) == 2
    for first in range(0, B, ROWS):
        some = q[first : first + ROWS] if len(q) == B else np.broadcast_to(q, (min(ROWS, B), q.shape[1]))
        with np.errstate(all="ignore"):
            poses = state_poses if len(some) <= FEW and robot.samples is None else body_poses
            R, p = poses(robot, some)
        for m in np.flatnonzero(np.isfinite(R).all(axis=(1, 2, 3)) & np.isfinite(p).all(axis=(1, 2))):
            row = first + int(m)
            if normals and ground is not None:
                plane, _ = plane_of(ground.row(row))
                placement = np.concatenate([plane.rotation.ravel(), plane.position])
                detector.arrays["shape_placement"][0] = placement
            contacts = detector.at(R[m], p[m])
            depth = -contacts["contact_gap"]
            if not len(depth):
                continue
            found.energy[row] = 0.5 * k * float(np.square(np.maximum(depth, 0.0)).sum())
            shapes = scene.arrays["pair_shapes"][contacts["contact_pair"]]
            inside = of_ground[shapes[:, 0]]
            for which, deepest in ((inside, found.depth), (~inside, found.overlap)):
                if which.any():
                    at = int(np.where(which, depth, -np.inf).argmax())
                    deepest[row] = max(float(depth[at]), 0.0)
                    if which is inside:
                        found.link[row] = scene.links[shapes[at, 1]]
                    else:
                        found.bodies[row] = contacts["contact_bodies"][at]
    if not normals:  # else its plane is not that of the scene
        spare.give(id(scene), kept)
    return found


# ---- errors and warnings -----------------------------------------------------------------------------------


OVERLAP = 1e-3
"""Bodies that overlap by more at the start are worth a warning [m]."""

DEEP = 0.01
"""A link deeper in the ground than this is worth a warning [m]."""

BURIED = 0.1
"""A start deeper in the ground than this is a mistake [m]."""

PAST_ANGLE, PAST_DEPTH = 0.05, 5e-3
"""A start this far past the limit of a joint is worth a warning [rad], of a slide [m]."""


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


def checked_starts(robot: Robot, program: Program, q: np.ndarray, v: np.ndarray, dt: float) -> float:
    """Refuse starts deep inside the ground, and warn of those that no run should have.

    Args:
        robot: as it was given; that of the program may have rotors besides.
        program: the step.
        q, v: the starts, (nq,) and (nv,), or rows of them; a single row goes with many.
        dt: time step [s].

    Returns:
        how deep in the ground the start is [m], where it was warned of that; else 0.

    Raises:
        ShapeError: as :func:`check_starts`.
    """
    found, one = check_starts(program, q), program.robot
    _of_limits(robot, q)
    one = one if one.samples is None else one.sample(0)
    _of_bodies(one, found)
    depth = _of_ground(found)
    _of_spin(one, np.atleast_2d(q), np.atleast_2d(v), dt)
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


def _of_limits(robot: Robot, q: np.ndarray) -> None:
    """Warn of a start past the limit of a joint: the spring of the stop throws the joint back.

    Args:
        q: configurations at the start, (nq,) or (B, nq).
    """
    joints = [j for j in robot.joints if _one_coordinate(j) and j.kind != "continuous"]
    if not joints:
        return
    at = q[..., [j.q_slice.start for j in joints]]
    past = np.stack([np.array([j.lower for j in joints]) - at, at - np.array([j.upper for j in joints])])
    of_rows = past.reshape(2, -1, len(joints))
    most = np.fmax.reduce(of_rows, axis=1, initial=-math.inf)
    least = np.array([PAST_DEPTH if j.kind == "prismatic" else PAST_ANGLE for j in joints])
    beyond = np.argwhere((most > least).T)
    if not len(beyond):
        return
    k, side = beyond[0]
    joint, unit = joints[k], "m" if joints[k].kind == "prismatic" else "rad"
    limit = (joint.lower, joint.upper)[side]
    _warn(
        f"q0: joint {joint.name!r} starts {most[side, k]:.3g} {unit} beyond its {('lower', 'upper')[side]} "
        f"limit, {limit:.4g} {unit}; the limit pushes it back: start within the limits"
    )


def _one_coordinate(joint: Joint) -> bool:
    return joint.q_slice.stop - joint.q_slice.start == 1


def _of_spin(robot: Robot, q: np.ndarray, v: np.ndarray, dt: float) -> None:
    rows, (speed, row, body) = max(len(q), len(v)), fastest_spin(robot, q, v, SPIN / dt)
    if body:
        where, better = "v0" if rows == 1 else f"v0[{row}]", two_digits(SPIN / speed)
        _warn(
            f"{where}: body {robot.body_name(body)!r} spins at {speed:.3g} rad/s, {speed * dt:.2g} rad per "
            f"step of {dt:g} s, where {SPIN} is fine: use dt = {better:.2g}"
        )
