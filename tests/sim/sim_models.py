"""Small robots that the simulator's tests share."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from pathlib import Path

import ladder
import numpy as np

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape, Sphere

ROBOTS = Path(__file__).resolve().parents[2] / "robots"
G = 9.81

box_with_bar = cache(ladder.box_with_bar)


@cache
def box(size: float = 0.2, mass: float = 1.0) -> rk.Robot:
    builder = ModelBuilder("box")
    inertia = np.eye(3) * mass * size**2 / 6
    builder.link("box", mass=mass, inertia=inertia, collisions=(Shape(Box((size,) * 3)),))
    return builder.build("floating")


@cache
def brick() -> rk.Robot:
    """Three different moments of inertia and a centre of mass off its frame."""
    builder = ModelBuilder("brick")
    builder.link("brick", mass=2.0, com=(0.1, -0.2, 0.05), inertia=np.diag([0.01, 0.03, 0.035]))
    return builder.build("floating")


@cache
def ball(radius: float = 0.1) -> rk.Robot:
    builder = ModelBuilder("ball")
    builder.link("ball", mass=1.0, inertia=np.eye(3) * 0.4 * radius**2, collisions=(Shape(Sphere(radius)),))
    return builder.build("floating")


def pendulum(**joint) -> rk.Robot:
    """A point mass of 1 kg on 0.5 m about y, a little inertia around it."""
    builder = ModelBuilder("pendulum")
    builder.link("base")
    builder.link("bob", mass=1.0, com=(0, 0, -0.5), inertia=np.eye(3) * 0.01)
    builder.joint("hinge", joint.pop("kind", "revolute"), "base", "bob", axis=(0, 1, 0), **joint)
    return builder.build("fixed")


@cache
def double_pendulum() -> rk.Robot:
    return rk.load_urdf(ROBOTS / "double_pendulum.urdf")


@cache
def humanoid() -> rk.Robot:
    return rk.load_urdf(ROBOTS / "humanoid.urdf", base="floating")


@cache
def quadruped() -> rk.Robot:
    return rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")


def slider(**joint) -> rk.Robot:
    """A cart of 2 kg on a rail along x."""
    builder = ModelBuilder("slider")
    builder.link("rail")
    builder.link("cart", mass=2.0, inertia=np.eye(3) * 0.1)
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0), **joint)
    return builder.build("fixed")


BALL = Shape(Sphere(0.1))


def sliders(shapes=(BALL, BALL), masses=(1.0, 2.0), apart=0.5) -> rk.Robot:
    """Links "ball0", "ball1", ... of a shape each on one rail along x, at equal distances [m]."""
    builder = ModelBuilder("sliders").link("rail")
    for k, (shape, mass) in enumerate(zip(shapes, masses, strict=True)):
        builder.link(f"ball{k}", mass, inertia=np.eye(3) * 0.01, collisions=(shape,))
        place = Placement(position=np.array([apart * k, 0.0, 0.0]))
        builder.joint(f"slide{k}", "prismatic", "rail", f"ball{k}", place, axis=(1, 0, 0))
    return builder.build("fixed")


@cache
def free_chain() -> rk.Robot:
    """A floating body with joints of many kinds: the manifolds of every integrator."""
    builder = ModelBuilder("free_chain")
    inertia = np.diag([0.02, 0.03, 0.015])
    for k in range(5):
        builder.link(f"l{k}", mass=1.0 + k, com=(0.05, 0.02 * k, -0.1), inertia=inertia * (1 + k))
    place = Placement(position=np.array([0.1, 0.0, 0.2]))
    builder.joint("ball", "spherical", "l0", "l1", place)
    builder.joint("hinge", "continuous", "l1", "l2", place, axis=(0.6, 0.0, 0.8))
    builder.joint("screw", "helical", "l0", "l3", place, axis=(0, 1, 0), pitch=0.1)
    builder.joint("table", "planar", "l3", "l4", place, axis=(0, 0, 1))
    return builder.build("floating")


@cache
def tumbler() -> rk.Robot:
    """Three floating bodies, two hinges."""
    builder = ModelBuilder("tumbler")
    for k in range(3):
        inertia = np.diag([0.02, 0.03, 0.015]) * (1 + k)
        builder.link(f"l{k}", mass=1.0 + k, com=(0.05, 0.02 * k, -0.1), inertia=inertia)
    place = Placement(position=np.array([0.1, 0.0, 0.2]))
    builder.joint("one", "continuous", "l0", "l1", place, axis=(0.6, 0.0, 0.8))
    builder.joint("two", "continuous", "l1", "l2", place, axis=(0, 1, 0))
    return builder.build("floating")


def without_limits(robot: rk.Robot) -> rk.Robot:
    joints = tuple(
        dataclasses.replace(j, lower=-math.inf, upper=math.inf, damping=0.0, friction=0.0)
        for j in robot.joints
    )
    return dataclasses.replace(robot, joints=joints)


def tilted(angle: float) -> tuple[float, float, float]:
    """Gravity of a world in which the ground z = 0 is a slope that falls towards +x."""
    return (G * math.sin(angle), 0.0, -G * math.cos(angle))
