"""The numbers of a program as the step of contact/step.py takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.caching import Recent
from robokit.collision.fields import FIELD
from robokit.collision.scene import ERROR, Scene, scene, touches_as_its_inertia
from robokit.contact.materials import (
    LEAST,
    Surface,
    body_numbers,
    joint_numbers,
    loop_numbers,
    mobilities,
    motor_numbers,
    pair_numbers,
    sizes,
)
from robokit.contact.measures import KEPT
from robokit.contact.robot_data import robot_data
from robokit.model.robot import Robot
from robokit.sim.ground import Ground, plane_of, weight, world_of
from robokit.sim.step_kernel import Kept, Program


def size_of(robot: Robot) -> float:
    """Longest edge of a box around the joints and centres of mass in the neutral configuration [m].

    At least twice the largest radius of gyration of a body.
    """
    tree = robot.tree
    X0 = forward_kinematics(tree, robot.split_q(robot.neutral().tolist()))
    places, gyration = [], 0.0
    for i in tree.outward():
        m, h = tree.I[i].m, tree.I[i].h
        places.append(list(X0[i].r))
        if m > 0.0:
            c = h * (1.0 / m)
            places.append(list(X0[i].point(c)))
            xx, yy, zz, *_ = tree.I[i].Ibar
            spread = 0.5 * (xx + yy + zz) / m - c.dot(c)
            gyration = max(gyration, float(spread) ** 0.5 if spread > 0.0 else 0.0)
    return max(float(np.ptp(np.array(places, float), axis=0).max()) if places else 0.0, 2.0 * gyration)


# ---- arrays of the step -----------------------------------------------------------------------------------


Arrays = dict[str, np.ndarray]


def step_numbers(program: Program, dt: float) -> Arrays:
    """All arrays of a step that do not change in a run.

    Args:
        dt: time step [s].
    """
    robot, scene = program.robot, scene_of(program)
    found = {**robot_data(robot), **_bodies(program, 0), **loop_numbers(robot)}
    one = robot if robot.samples is None else robot.sample(0)
    found |= program.springs.numbers(robot, size_of(one) or 1.0)
    found |= prescribed_numbers(robot, program.given.motions)
    found |= _measured(program, scene, found)
    found |= _control(program)
    return found | _motors(program, dt, 0) | _pushes(program) | scene.arrays | _pairs(program, scene, 0)


def prescribed_numbers(robot: Robot, bodies: Sequence[int]) -> Arrays:
    """Joints whose motion is prescribed."""
    dofs = [robot.tree.v_slice[body].start for body in bodies]
    return {"motion_dof": np.array(dofs, np.int32), "motion_values": np.zeros((len(dofs), 3))}


def _control(program: Program) -> Arrays:
    """What a step that is divided takes besides."""
    if program.accuracy is None:
        return {}
    return {
        "accuracy": np.array([program.accuracy]),
        "coordinate_weight": coordinate_weights(program.robot),
        "part": np.zeros(3, np.int32),
    }


def coordinate_weights(robot: Robot) -> np.ndarray:
    """What makes a small change of each entry of q an angle [rad], or a share of the robot's size, (nq,)."""
    lengths = {"prismatic": (0,), "cylindrical": (1,), "planar": (1, 2), "floating": (4, 5, 6)}
    weights = np.ones(robot.nq)
    one = robot if robot.samples is None else robot.sample(0)
    for joint in robot.joints:
        first, kind = joint.q_slice.start, robot.tree.joint[joint.body].kind
        if kind.quaternion is not None:
            weights[first + kind.quaternion : first + kind.quaternion + 4] = 2.0
        for k in lengths.get(kind.name, ()):
            weights[first + k] = 1.0 / (size_of(one) or 1.0)
    return weights


def _bodies(program: Program, row: int) -> Arrays:
    """Numbers of bodies and joints that inertias decide."""
    robot, joints = program.robot, program.joints
    found = body_numbers(robot) | {"inertia": robot_data(robot)["inertia"]}
    if robot.samples is not None:
        found |= {name: found[name][row] for name in ("inertia", "body_mobility", "dof_mobility")}
    gains = [gain[row] if np.ndim(gain) else gain for gain in joints.gains]
    return found | joint_numbers(robot, joints.with_gains(gains))


def differ(program: Program) -> bool:
    """Whether rows of a batch differ in their inertias, in the ground, or in the numbers of motors."""
    drives = sum(len(drive.parameters) for drive in program.given.drives)
    several = any(np.ndim(x) > 0 for x in list(program.given_numbers)[:drives])
    several = several or program.robot.samples is not None
    return several or (program.ground is not None and program.ground.rows is not None)


def row_numbers(program: Program, dt: float, scene: Scene, rows: np.ndarray) -> Arrays:
    """The arrays in which rows of a batch differ, (n, ...) each.

    Args:
        dt: time step [s].
        scene: of the first row.
        rows: numbers of some rows, (n,).
    """
    robot, ground, found = program.robot, program.ground, dict[str, np.ndarray]()
    samples = robot.samples is not None
    if samples and touches_as_its_inertia(robot):
        common = step_numbers(program, dt)
        each = [step_numbers(program.sample(row), dt) for row in rows.tolist()]
        found = {name: np.array([x[name] for x in each], order="C") for name in common}
        return {name: x for name, x in found.items() if (x != common[name]).any()}
    if program.given.drives:
        moved = _motors(program, dt, rows)
        found |= {name: moved[name] for name in ("motor_gains", "motor_limits", "motor_inertia")}
    if samples or (ground is not None and ground.rows is not None):
        found |= _pairs(program, scene, rows)
    if samples:
        bodies = [_bodies(program, row) for row in rows.tolist()]
        found |= {name: np.array([x[name] for x in bodies]) for name in bodies[0]}
    if ground is not None and ground.plane and np.ndim(ground.normal) == 2:
        places = np.repeat(scene.arrays["shape_placement"][None], len(rows), axis=0)
        for place, row in zip(places, rows.tolist(), strict=True):
            plane, _ = plane_of(ground.row(row))
            place[0] = np.concatenate([plane.rotation.ravel(), plane.position])
        found["shape_placement"] = places
    return {name: np.array(x, order="C") for name, x in found.items()}


def _pairs(program: Program, scene: Scene, row: int | np.ndarray) -> Arrays:
    """Numbers of the pairs of shapes, of a row, or of some: (n, ...) each."""
    robot, found = program.robot, scene
    law = program.ground or Ground()
    shapes, pairs = found.arrays, found.arrays["pair_shapes"]
    k, d = (_at(x, row) for x in _gains(program, found, law))
    links = {link.body: link.name for link in reversed(robot.links)}
    names = [links.get(b, "") for b in range(robot.nbodies + 1)]
    own = np.full(len(found.solid), math.nan)
    for shape in np.flatnonzero(found.solid >= 0).tolist():
        mu = law.shapes[found.solid[shape]].friction
        own[shape] = math.nan if mu is None else mu
    if law.terrain is not None and law.terrain.friction is not None:
        own[shapes["shape_kind"] == FIELD] = law.terrain.friction
    surface = Surface(
        np.array([not name for name in found.links]),
        np.stack([_at(law.coefficient(name), row) for name in names], axis=-1),
        np.stack([_at(law.bounce(name), row) for name in names], axis=-1),
        own,
        law.torsional,
        law.rolling,
    )
    between = (program.between.friction, program.between.restitution)
    return pair_numbers(shapes, pairs, (k, d, _at(weight(robot), row)), surface, between)


def _gains(program: Program, scene: Scene, law: Ground) -> tuple[Any, Any]:
    """Stiffness [N/m] and damping [N s/m] of a contact, one a row where they differ."""
    robot, error = program.robot, _error(program)
    size, steady = robot.derived.get(("sizes that touch", error), lambda: sizes(robot, scene.arrays))
    return law.gains(robot, size, steady)


def ground_stiffness(program: Program, row: int) -> float:
    """Stiffness of a contact with the ground [N/m]."""
    law = (program.ground or Ground()).row(row)
    return float(_at(_gains(program, scene_of(program), law)[0], row))


def _at(x: Any, row: int | np.ndarray) -> np.ndarray:
    """A number, or that of a row, or those of some."""
    each = np.ravel(x)
    return np.asarray(each[np.minimum(row, len(each) - 1)], float)


def scene_of(program: Program) -> Scene:
    """What can touch in a program, kept with it; those of a robot on a plane are kept with the robot."""
    found = vars(program).get("scene")
    if found is None:
        found = vars(program)["scene"] = _scene(program)
    return found


def _scene(program: Program) -> Scene:
    ground, error, bodies = program.ground, _error(program), tuple(program.touching_bodies)
    world = None if ground is None else world_of(ground)
    if ground is not None and not ground.only_plane:
        return scene(program.robot, world, bodies, error)
    about: tuple[Any, ...] = (error, bodies)
    if world is not None and world.plane is not None:
        about += (*world.plane.rotation.ravel().tolist(), *world.plane.position.tolist(), *world.velocity)
    kept: Recent[Scene] = program.robot.derived.get("scenes of steps", lambda: Recent(4))
    return kept.get(about, lambda: scene(program.robot, world, bodies, error))


def _error(program: Program) -> float:
    """How far meshes may reach out of their hulls [m]."""
    return ERROR if program.ground is None else program.ground.shape_error


def _measured(program: Program, scene: Scene, numbers: Arrays) -> Arrays:
    """What the monitor keeps (contact/monitor.py); ``numbers``: of the robot and its joints."""
    layout = program.measured
    at, numbers_of = np.full(len(KEPT), -1, np.int32), [each.name for each in KEPT]
    links = {name: k for k, name in enumerate(program.touching_links)}
    stops = [i for i, stop in enumerate(program.joints.stop) if stop is not None]
    for tracker in layout.trackers:
        if isinstance(tracker, Kept) and tracker.start:
            at[numbers_of.index(tracker.name)] = layout.part(tracker).start
    return {
        "measured_at": at,
        "link_of_shape": np.array([links.get(name, -1) for name in scene.links], np.int32),
        "joint_of_stop": np.array(
            [stops.index(int(b)) for b in numbers["dof_body"][numbers["stop_dof"]]], np.int32
        ),
        "measured": np.zeros(layout.size),
        "link_force": np.zeros((len(links) + 1, 4)),
        "stop_force": np.zeros(len(stops)),
    }


def _motors(program: Program, dt: float, row: int | np.ndarray) -> Arrays:
    """Driven joints: gains again from the numbers that today's law is made of; of a row, or of some."""
    robot, drives = program.robot, program.given.drives
    rest = iter(program.given_numbers)
    own = [{name: _at(next(rest), row) for name in drive.parameters} for drive in drives]
    bodies = [drive.body for drive in drives]
    dofs = [robot.tree.v_slice[i].start for i in bodies]
    dof = mobilities(robot).dof if robot.samples is None else mobilities(robot).dof[row]
    lead, n = np.shape(row), len(drives)
    inertia = np.array(np.broadcast_to(1.0 / np.maximum(dof[..., dofs], LEAST), (*lead, n)))
    gains, limits = np.zeros((*lead, n, 2)), np.full((*lead, n, 2), math.inf)
    for k, (drive, given) in enumerate(zip(drives, own, strict=True)):
        inertia[..., k] = given.get("mass", inertia[..., k])
        limits[..., k, 0], limits[..., k, 1] = given.get("effort", math.inf), given.get("speed", math.inf)
        if drive.servo:
            R = given["kp"] * dt * dt / inertia[..., k]
            extra = given["kp"] * dt * (2.0 * R / (1.0 + 2.0 * R))
            gains[..., k, 0], gains[..., k, 1] = given["kp"], given["b"] + given["lag"] - extra
    numbers = {"motor_gains": gains, "motor_limits": limits, "motor_inertia": inertia}
    return motor_numbers(robot, bodies, inertia=np.zeros(n)) | numbers


def _pushes(program: Program) -> Arrays:
    """Places of the pushes."""
    places, rest = program.given.places, iter(program.given_numbers)
    skipped = sum(len(drive.parameters) for drive in program.given.drives)
    numbers: list[Any] = list(rest)[skipped:]
    points = np.zeros((len(places), 3))
    for k, (_, world) in enumerate(places):
        if not world:
            points[k], numbers = [float(np.ravel(z)[0]) for z in numbers[:3]], numbers[3:]
    return {
        "push_body": np.array([body for body, _ in places], np.int32),
        "push_point": points,
        "push_in_world": np.array([world for _, world in places], np.int32),
        "push_wrench": np.zeros((len(places), 6)),
    }
