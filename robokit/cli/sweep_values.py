"""Options of the command sweep whose values differ from row to row, and the servos that they mean."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import Any

from robokit.errors import RobokitError

DEGREE = math.pi / 180.0

OPTIONS: tuple[tuple[str, str, str, float, str], ...] = (
    ("--tilt", "tilt", "DEG", DEGREE, "angle by which the robot leans at the start"),
    ("--direction", "direction", "DEG", DEGREE, "where it leans and moves to: 0 for +x, counterclockwise"),
    ("--yaw", "yaw", "DEG", DEGREE, "angle by which it is turned about the vertical"),
    ("--drop-height", "height", "M", 1.0, "gap under its lowest point; default: 0.02"),
    ("--speed", "speed", "M/S", 1.0, "horizontal speed at the start, along the direction"),
    ("--spin", "spin", "DEG/S", DEGREE, "angular velocity about the vertical at the start"),
    ("--joint-noise", "joint_noise", "RAD|M", 1.0, "standard deviation of each joint at the start"),
    ("--mass", "mass", "FACTOR", 1.0, "factor of mass and inertia"),
    ("--friction", "friction", "MU", 1.0, "friction coefficient of the ground"),
    ("--restitution", "restitution", "SHARE", 1.0, "of its speed with which a point leaves the ground"),
    ("--ground-tilt", "ground_tilt", "DEG", DEGREE, "angle by which the ground descends towards +x"),
    ("--push", "push", "N*S", 1.0, "size of an impulse on the base"),
    ("--push-direction", "push_direction", "DEG", DEGREE, "its horizontal direction"),
    ("--push-time", "push_time", "S", 1.0, "when it comes"),
    ("--kp", "kp", "N*M/RAD", 1.0, "stiffness of servos that hold each joint where it starts"),
    ("--kd", "kd", "N*M*S/RAD", 1.0, "damping of these servos; default: 0"),
    ("--effort", "effort", "FACTOR", 1.0, "of each servo's largest force, that of the URDF"),
    ("--target-noise", "target_noise", "RAD|M", 1.0, "standard deviation of an error of each servo's target"),
)
"""(option, parameter, unit, radians or metres of that unit, help) of the commonest parameters."""


SERVOS = ("kp", "kd", "effort", "target", "target_noise")
"""Parameters, or beginnings of them, that need servos."""


def parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters by name, as distributions.

    Raises:
        RobokitError: a text is none; names the option.
    """
    from robokit.sweeps.distributions import Grid, Uniform, read_distribution

    given: dict[str, tuple[str, str, float]] = {}
    for option, name, _, scale, _ in OPTIONS:
        text = getattr(arguments, f"sweep_{name}")
        if text is not None:
            given[name] = (option, text, scale)
    for text in arguments.others:
        name, equals, values = text.partition("=")
        if not equals:
            raise RobokitError(f"--set {text}: expected NAME=VALUES, such as mass:torso=0.5:2")
        if name in given:
            raise RobokitError(f"--set {text}: {name} is given by {given[name][0]} already")
        given[name] = (f"--set {name}", values, 1.0)
    found = {}
    for name, (option, text, scale) in given.items():
        try:
            found[name] = read_distribution(text, scale)
            if scale != 1.0 and isinstance((found[name].values() or [0.0])[0], str):
                raise RobokitError(f"expected numbers of degrees, such as 10 or 0:20, got {text!r}")
        except RobokitError as error:
            raise RobokitError(f"{option}: {error}") from None
        if arguments.grid and type(found[name]) is Uniform:
            found[name] = Grid(found[name].low, found[name].high, arguments.grid)  # type: ignore[attr-defined]
    return found


def servos(names: Iterable[str]) -> Any:
    """The servos of a sweep with these parameters; None for none.

    Their gains are 1, or 0 where the command has none: so the factors ``kp`` and ``kd`` are the gains.

    Raises:
        RobokitError: a parameter changes what no servo has.
    """
    import robokit as rk

    given = list(names)
    driven = "kp" in given or "kd" in given
    for name in given:
        head, _, joint = name.partition(":")
        if head in SERVOS and not driven:
            raise RobokitError(f"{name}: there are no servos; give stiffness and damping: --kp 100 --kd 5")
        if joint and head in ("kp", "kd") and head not in given:
            raise RobokitError(f"{name}: this is a factor of --{head} on that joint; give --{head}, too")
    return rk.PD(kp=float("kp" in given), kd=float("kd" in given)) if driven else None
