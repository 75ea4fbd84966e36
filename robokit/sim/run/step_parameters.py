"""Parameters of a step with contacts: their values, and what they are worth in reverse mode.

    friction, restitution            of the ground, of all bodies alike
    pair_friction, pair_restitution  between bodies
    gravity                          (3,)
    inertias                         (N + 1, 10), as Robot.inertial_parameters
    target, velocity, feedforward, kp, kd   of actuators, (n,) in the order of their joints

The law of a motor is linear in its target, and in its gains but for b, lag and the factor of wanted speeds
(contact/constraints/motors.py), whose slopes are taken here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robokit.contact.constraints.motors import NEAR, SERIES
from robokit.errors import UnknownName
from robokit.sim.run.kept_steps import KeptSteps
from robokit.sim.stepping.linear_steps import LinearSteps

OF_PAIRS = {
    "friction": ("pair_friction", True),
    "restitution": ("pair_restitution", True),
    "pair_friction": ("pair_friction", False),
    "pair_restitution": ("pair_restitution", False),
}
"""Array of each, and whether it is of pairs with the ground."""

OF_MOTORS = ("target", "velocity", "feedforward", "kp", "kd")


def shape_of(kept: KeptSteps, name: str) -> tuple[int, ...]:
    """Of a parameter's value.

    Raises:
        UnknownName: there is none of this name.
    """
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(OF_PAIRS, ())
    shapes |= {"gravity": (3,), "inertias": (kept.robot.nbodies + 1, 10)}
    if kept.inputs is not None:
        shapes |= dict.fromkeys(OF_MOTORS, (len(kept.inputs.layout.drives),))
    if name not in shapes:
        raise UnknownName("parameter", name, tuple(shapes))
    return shapes[name]


class StepParameters:
    """Those of steps that are at work.

    Attributes:
        names: of all that there are.
    """

    def __init__(self, kept: KeptSteps, steps: LinearSteps) -> None:
        self.kept, self.steps = kept, steps
        x = steps.simulation.arrays
        self._entered: dict[str, np.ndarray] = {}
        self._ground = x["shape_body"][x["pair_shapes"][:, 0]] == 0
        self.names = [*OF_PAIRS, "gravity", "inertias", *(OF_MOTORS if kept.inputs is not None else ())]

    def values(self, names: Sequence[str]) -> list[np.ndarray]:
        """What the arrays of the steps have in their places, to be entered again."""
        x = self.steps.simulation.arrays
        arrays = {"gravity": "gravity", "inertias": "inertia"}
        found = {name: x[array].copy() for name, array in arrays.items()}
        found |= {name: x[array][self._ground == ground].copy() for name, (array, ground) in OF_PAIRS.items()}
        self._entered = {}
        return [found[name] if name in found else x["motor_gains"].copy() for name in names]

    def enter(self, names: Sequence[str], values: Sequence[np.ndarray]) -> None:
        """Let steps have these."""
        x = self.steps.simulation.arrays
        for name, value in zip(names, values, strict=True):
            if name in OF_PAIRS:
                array, ground = OF_PAIRS[name]
                x[array][self._ground == ground] = value
            elif name == "gravity":
                x["gravity"][:] = value
            elif name == "inertias":
                x["inertia"][1:] = value[1:]
            elif value.ndim == 2:  # all gains, as they were
                x["motor_gains"][:] = value
            else:
                self._entered[name] = value
                if name in ("kp", "kd"):
                    x["motor_gains"][:, ("kp", "kd").index(name)] = value

    def wanted(
        self, q0: np.ndarray, v0: np.ndarray, state: tuple[np.ndarray, np.ndarray]
    ) -> np.ndarray | None:
        """What actuators want at a state, with what was entered, (n,) [N m | N].

        Args:
            q0, v0: the state at the start, which positions that are not given are held at.
            state: q and v.
        """
        if self.kept.inputs is None:
            return None
        driven, x = self.kept.driven(q0), self.steps.simulation.arrays
        u = driven.at(0, *state)[0]
        if not self._entered:
            return u
        kind, place, speed = driven.kinds_and_wants(*state)
        given = driven.gains()
        more = u - given[0] * place - self._follow(*given) * speed
        pd, servo, own = kind == "PD", kind != "Torque", self._entered
        place = np.where(pd, own.get("target", place), 0.0)
        speed = np.select([pd, servo], [own.get("velocity", speed), own.get("target", speed)], 0.0)
        more = np.where(servo, own.get("feedforward", more), own.get("target", more))
        kp, kd = x["motor_gains"].T
        return np.asarray(kp * place + self._follow(kp, kd) * speed + more)

    def _follow(self, kp: np.ndarray, kd: np.ndarray) -> np.ndarray:
        """Factor of wanted speeds."""
        x = self.steps.simulation.arrays
        R = kp * x["dt"][0] ** 2 / x["motor_inertia"]
        return kd + 2.0 * x["dt"][0] * kp * R / (1.0 + 2.0 * R)

    def worth(self, q: np.ndarray, v: np.ndarray) -> dict[str, Any]:
        """What all of them are worth after a pullback; NaN where the step was not finite.

        Args:
            q, v: the state before the step.
        """
        found = self.steps.found
        if not found:
            return {name: np.full(shape_of(self.kept, name), np.nan) for name in self.names}
        of_pair = found["of_pair"]
        of: dict[str, Any] = {
            name: np.float64(of_pair[self._ground == ground, int("restitution" in array)].sum())
            for name, (array, ground) in OF_PAIRS.items()
        }
        of["gravity"], of["inertias"] = found["of_gravity"].copy(), found["of_inertia"].copy()
        return of if self.kept.inputs is None else of | self._of_motors(q, v, found["of_motor"])

    def _of_motors(self, q: np.ndarray, v: np.ndarray, of_force: np.ndarray) -> dict[str, np.ndarray]:
        x = {**self.steps.simulation.work, **self.steps.simulation.arrays}
        kp, kd, m, dt = x["motor_gains"][:, 0], x["motor_gains"][:, 1], x["motor_inertia"], x["dt"][0]
        dof = x["motor_dof"]
        here = x["coordinate"][x["joint_coordinate"][x["dof_body"][dof]]]
        before, after = x["v0"][x["dof_row"][dof]], x["y"][x["dof_row"][dof]]
        kind, place, speed = self.kept.driven(q).kinds_and_wants(q, v)
        place = self._entered.get("target", place)
        speed = np.select(
            [kind == "PD", kind != "Torque"],
            [self._entered.get("velocity", speed), self._entered.get("target", speed)],
            0.0,
        )
        alpha, slope = end_share_slope(dt * kd / m)
        R = kp * dt * dt / m
        extra, by_kp = 2.0 * dt * kp * R / (1.0 + 2.0 * R), 4.0 * dt * R * (1.0 + R) / (1.0 + 2.0 * R) ** 2
        by_kd = alpha + slope * dt * kd / m
        follow, servo, pd = kd + extra, kind != "Torque", kind == "PD"
        return {
            "target": of_force * np.select([pd, servo], [kp, follow], 1.0),
            "velocity": of_force * np.where(pd, follow, 0.0),
            "feedforward": np.where(servo, of_force, 0.0),
            "kp": of_force * np.where(pd, place - here + by_kp * (speed - after), 0.0),
            "kd": of_force * np.where(servo, speed - (1.0 - by_kd) * before - by_kd * after, 0.0),
        }


def end_share_slope(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """alpha = 1 / (1 - e^-z) - 1 / z and its slope, for z >= 0."""
    series, slope = np.zeros_like(z), np.zeros_like(z)
    for k, c in reversed(list(enumerate(SERIES))):
        series, slope = c + z * z * series, (2 * k + 1) * c + z * z * slope
    far = np.maximum(z, NEAR)
    less = -np.expm1(-far)
    direct, steep = 1.0 / less - 1.0 / far, 1.0 / far**2 - (1.0 - less) / less**2
    near = z < NEAR
    return np.where(near, 0.5 + z * series, direct), np.where(near, slope, steep)
