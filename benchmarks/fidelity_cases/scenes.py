"""Small robots, and robokit's ways to move them."""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases.table import NotYet
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape, Sphere
from robokit.sim import run_loop
from robokit.sim.steppers import energies

G = 9.81
G1 = "example-robot-data:g1"


@cache
def load(name: str) -> rk.Robot:
    """A robot on a floating base, by its name."""
    with quiet():
        return rk.load_urdf(rk.find_robot(name), base="floating")


@cache
def box(size: tuple[float, float, float] = (0.4, 0.4, 0.1), mass: float = 2.0) -> rk.Robot:
    """A floating box."""
    x, y, z = (s * s for s in size)
    inertia = np.diag([y + z, x + z, x + y]) * mass / 12.0
    builder = ModelBuilder("box")
    builder.link("box", mass=mass, inertia=inertia, collisions=(Shape(Box(size)),))
    return builder.build("floating")


@cache
def ball(radius: float, density: float = 1000.0) -> rk.Robot:
    """A floating ball."""
    mass = density * 4.0 / 3.0 * math.pi * radius**3
    inertia = np.eye(3) * 0.4 * mass * radius**2
    builder = ModelBuilder("ball")
    builder.link("ball", mass=mass, inertia=inertia, collisions=(Shape(Sphere(radius)),))
    return builder.build("floating")


@cache
def cylinder(radius: float = 0.1, length: float = 0.2, mass: float = 2.0) -> rk.Robot:
    """A floating cylinder; its axis is z."""
    across = mass * (3 * radius**2 + length**2) / 12.0
    inertia = np.diag([across, across, 0.5 * mass * radius**2])
    builder = ModelBuilder("cylinder")
    shape = Shape(Cylinder(radius, length))
    builder.link("cylinder", mass=mass, inertia=inertia, collisions=(shape,))
    return builder.build("floating")


@cache
def rotor() -> rk.Robot:
    """A rotor (about z) in two gimbals (about y in x) on a fixed base."""
    builder = ModelBuilder("rotor").link("base")
    builder.link("outer", 0.1, inertia=np.diag([2e-4, 2e-4, 2e-4]))
    builder.link("inner", 0.1, inertia=np.diag([1e-4, 1e-4, 1e-4]))
    builder.link("disc", 1.0, inertia=np.diag([2.5e-3, 2.5e-3, 5e-3]))
    builder.joint("x", "continuous", "base", "outer", axis=(1, 0, 0))
    builder.joint("y", "continuous", "outer", "inner", axis=(0, 1, 0))
    builder.joint("z", "continuous", "inner", "disc", axis=(0, 0, 1))
    return builder.build("fixed")


@cache
def two_carts() -> rk.Robot:
    """Two balls of 1 kg and 10 cm on sliders along x, one metre apart."""
    builder = ModelBuilder("two carts").link("rail")
    for name, x in (("left", -0.5), ("right", 0.5)):
        builder.link(name, 1.0, inertia=np.eye(3) * 0.004, collisions=(Shape(Sphere(0.1)),))
        place = Placement(position=np.array([x, 0.0, 1.0]))
        builder.joint(f"{name} slide", "prismatic", "rail", name, place, axis=(1, 0, 0))
    return builder.build("fixed")


@cache
def pushed_block() -> rk.Robot:
    """A block of 2 kg that may move along x and z, on a fixed base: joint forces push it."""
    builder = ModelBuilder("pushed block").link("base")
    builder.link("carriage", 1e-6, inertia=np.eye(3) * 1e-9)
    builder.link("block", 2.0, inertia=np.eye(3) * 0.03, collisions=(Shape(Box((0.4, 0.4, 0.1))),))
    builder.joint("x", "prismatic", "base", "carriage", axis=(1, 0, 0))
    builder.joint("z", "prismatic", "carriage", "block", axis=(0, 0, 1))
    return builder.build("fixed")


@cache
def stiff_cart(friction: float) -> rk.Robot:
    """A cart of 2 kg on a rail along x, whose joint has dry friction [N]."""
    builder = ModelBuilder("stiff cart").link("rail").link("cart", 2.0, inertia=np.eye(3) * 0.1)
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0), friction=friction)
    return builder.build("fixed")


def with_joints(robot: rk.Robot, **changed: Any) -> rk.Robot:
    """The robot with fields of all its joints (but the base's) changed."""
    joints = (j if j.kind == "floating" else replace(j, **changed) for j in robot.joints)
    return replace(robot, joints=tuple(joints))


def same_joints(robot: rk.Robot) -> rk.Robot:
    """The robot with the joint damping that a fall assumes written down, and without dry friction.

    So robokit and MuJoCo get the same joints.
    """
    joints = []
    for j in robot.joints:
        free = {} if j.kind == "floating" else {"damping": j.damping or 0.1, "friction": 0.0}
        joints.append(replace(j, **free))
    return replace(robot, joints=tuple(joints))


def with_damping(robot: rk.Robot, damping: float = 0.1) -> rk.Robot:
    """The robot with a damping for the joints that have none."""
    joints = (j if j.kind == "floating" else replace(j, damping=j.damping or damping) for j in robot.joints)
    return replace(robot, joints=tuple(joints))


def tilted(tangent: float) -> tuple[float, float, float]:
    """Gravity of a world in which the ground z = 0 is a slope that falls towards +x."""
    angle = math.atan(tangent)
    return G * math.sin(angle), 0.0, -G * math.cos(angle)


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings: what they say is measured."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def in_processor_time() -> Iterator[None]:
    """The times of steps in a summary are those of the processor: others may use it, too."""
    run_loop.time = SimpleNamespace(perf_counter=time.process_time)  # type: ignore[assignment]
    try:
        yield
    finally:
        run_loop.time = time  # type: ignore[assignment]


def ground(**options: Any) -> rk.Ground:
    """The ground.

    Raises:
        NotYet: it has no such option.
    """
    known = {f.name for f in fields(rk.Ground)}
    for name in options:
        if name not in known:
            raise NotYet(f"Ground({name}=) is not there")
    return rk.Ground(**options)


def knows(name: str) -> bool:
    """Whether simulate has an argument of that name."""
    return name in inspect.signature(rk.simulate).parameters


def alone(options: dict[str, Any]) -> dict[str, Any]:
    """Options with self-collision off, where there is one."""
    return {"self_collision": False, **options} if knows("self_collision") else options


def fall(robot: rk.Robot, q: Any = None, v: Any = None, **options: Any) -> rk.Trajectory:
    """simulate without warnings; of a run that failed, what there is, with ``summary["stopped"]``.

    Raises:
        NotYet: simulate has no such option.
    """
    for name in options:
        if not knows(name):
            raise NotYet(f"simulate({name}=) is not there")
    with quiet():
        try:
            return rk.simulate(robot, q, v, **options)
        except rk.SimulationError as error:
            return error.trajectory


def many(robot: rk.Robot, q: Any, v: Any, **options: Any) -> rk.Rollout:
    """Rollout without warnings, self-collision off."""
    with quiet():
        if "self_collision" in inspect.signature(rk.rollout).parameters:
            options = {"self_collision": False, **options}
        return rk.rollout(robot, q, v, **options)


def rollout_energies(robot: rk.Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy of the states of a rollout, (T, B) each [J]."""
    T, B, _ = q.shape
    with quiet():
        both = energies(robot, q.reshape(T * B, -1).astype(float), v.reshape(T * B, -1).astype(float))
    return both[0].reshape(T, B), both[1].reshape(T, B)


def loop_gap(robot: rk.Robot, q: np.ndarray) -> float:
    """The largest distance of the two origins of a loop joint, of configurations (T, nq) [m]."""
    poses, widest = rk.forward_kinematics(robot, np.ascontiguousarray(q)), 0.0
    for loop in robot.loop_joints:
        (R, p), (S, o) = poses[loop.predecessor], poses[loop.successor]
        apart = R @ loop.predecessor_placement.position + p - S @ loop.successor_placement.position - o
        widest = max(widest, float(np.linalg.norm(apart, axis=-1).max()))
    return widest


def centres(robot: rk.Robot, q: np.ndarray) -> np.ndarray:
    """Centres of mass, (..., 3) of configurations (..., nq) [m]; NaN where q is."""
    flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]), dtype=float)
    good = np.isfinite(flat).all(axis=1)
    out = np.full((len(flat), 3), np.nan)
    if good.any():
        out[good] = rk.center_of_mass(robot, flat[good])
    return out.reshape(*q.shape[:-1], 3)


def at_height(robot: rk.Robot, z: float, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> np.ndarray:
    """A floating robot's neutral configuration at a height."""
    turn = np.array(quat, float)
    return robot.configuration(base_position=(0, 0, z), base_quat_wxyz=turn / np.linalg.norm(turn))


def random_starts(robot: rk.Robot, rows: int, spin: float, low: float = 0.02, high: float = 0.5) -> Any:
    """Random poses above the ground, within the joints' limits, and random velocities.

    Args:
        robot: on a floating base.
        rows: their number.
        spin: largest rate of the base about each axis and of each joint [rad/s].
        low, high: of the lowest point over the ground [m].
    """
    rng = np.random.default_rng(11)
    q, v = np.empty((rows, robot.nq)), np.zeros((rows, robot.nv))
    for k in range(rows):
        q[k] = robot.random_configuration(rng)
        q[k, 4:6] = 0.0
        q[k, 6] = rk.standing_height(robot, q[k], clearance=rng.uniform(low, high))
        v[k] = rng.uniform(-spin, spin, robot.nv)
        v[k, 3:6] = rng.uniform(-0.5, 0.5, 3)
    return q, v
