"""The numbers of a program as the step of contact/step.py takes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from robokit.collision.fields import PAIRS, SHAPES
from robokit.contact.fields import FORCES
from robokit.contact.materials import (
    LEAST,
    body_numbers,
    joint_numbers,
    loop_numbers,
    mobilities,
    motor_numbers,
)
from robokit.contact.robot_data import robot_data
from robokit.sim.step.step_kernel import Program

Arrays = dict[str, np.ndarray]


def step_numbers(program: Program, dt: float) -> Arrays:
    """All arrays of a step that do not change in a run.

    Args:
        program: the step.
        dt: time step [s].
    """
    robot = program.robot
    found = {**robot_data(robot), **body_numbers(robot), **loop_numbers(robot)}
    found |= joint_numbers(robot, program.joints)
    found |= _motors(program, dt) | _pushes(program) | _geometry(program)
    return found


def _geometry(program: Program) -> Arrays:
    """Shapes, pairs of them and their numbers."""
    nothing = {n: 0 for a in (*SHAPES, *PAIRS) for n in a.shape if isinstance(n, str)}
    of_pairs = [a for a in FORCES if a.shape[0] == "n_pairs"]
    return {a.name: a.zeros(nothing) for a in (*SHAPES, *PAIRS, *of_pairs)}


def _motors(program: Program, dt: float) -> Arrays:
    """Driven joints: gains again from the numbers that today's law is made of."""
    robot, drives = program.robot, program.given.drives
    rest = iter(program.given_numbers)
    own = [{name: float(np.ravel(next(rest))[0]) for name in drive.parameters} for drive in drives]
    bodies = [drive.body for drive in drives]
    dofs = [robot.tree.v_slice[i].start for i in bodies]
    inertia = 1.0 / np.maximum(mobilities(robot).dof[dofs], LEAST)
    gains, limits = np.zeros((len(drives), 2)), np.full((len(drives), 2), math.inf)
    for k, (drive, given) in enumerate(zip(drives, own, strict=True)):
        inertia[k] = given.get("mass", inertia[k])
        limits[k] = given.get("effort", math.inf), given.get("speed", math.inf)
        if drive.servo:
            R = given["kp"] * dt * dt / inertia[k]
            extra = given["kp"] * dt * (2.0 * R / (1.0 + 2.0 * R))
            gains[k] = given["kp"], given["b"] + given["lag"] - extra
    return motor_numbers(robot, bodies, gains, limits, inertia)


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
