"""Joints whose motion is prescribed: as it is given, and fitted to a robot and the steps of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_call, check_finite, real_array, real_number
from robokit.errors import InvalidValue, RobokitError, ShapeError, WrongType
from robokit.model.robot import Robot
from robokit.sim.actuators import Keyframes

PER_STEP = 8.0
"""Parts of a step in which the rate of a function of time is taken: five values around it leave an error of
(dt / 8)^4 / 30 of the fifth derivative."""

ONE_SIDED = (-25.0, 48.0, -36.0, 16.0, -3.0)
"""Weights of five values, the first and later ones, for twelve steps of a rate of fourth order."""


@dataclass(frozen=True)
class PrescribedMotion:
    """A joint that follows a given function of time, whatever acts on it.

    Recorded positions equal the function to the last digit; ``trajectory.prescribed_force`` is the force that
    this requires. The run starts on the motion.

    Attributes:
        joint: name of a joint with one degree of freedom; None with keyframes, for all joints that they name.
        q: a function of time -> position [rad | m]; :class:`Keyframes`; or an array of the positions at the
            start and at the ends of the steps, (steps + 1,), in rollouts also (steps + 1, B). A
            :class:`Simulation` that continues beyond the array stays at the last position. A rollout calls a
            function once per step, for all rows.
        v: velocity, as a function of time or an array like ``q`` [rad/s | m/s]. None: that of the keyframes,
            or fourth-order differences of functions and arrays.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> wave = rk.PrescribedMotion("upper_joint", lambda t: 0.3 * np.sin(5.0 * t))
        >>> run = rk.simulate(robot, duration=0.5, motions=wave)
        >>> bool((run.q[:, 0] == 0.3 * np.sin(5.0 * run.t)).all())
        True
    """

    joint: str | None
    q: Callable[[float], float] | Keyframes | Any
    v: Callable[[float], float] | Any = None

    def __post_init__(self) -> None:
        if self.joint is None and isinstance(self.q, Keyframes):
            return
        if not isinstance(self.joint, str):
            raise WrongType("PrescribedMotion(joint=...)", self.joint, "the name of a joint")
        for name in ("q", "v"):
            given = getattr(self, name)
            if isinstance(given, Keyframes) or (name == "v" and given is None):
                continue
            if callable(given):
                check_call(f"PrescribedMotion({name}=...)", given, ("t",), "one number")
                continue
            array = real_array(f"PrescribedMotion({name}=...)", given, "(steps + 1,) or (steps + 1, B)")
            if array.ndim not in (1, 2) or not array.size:
                raise ShapeError(
                    f"PrescribedMotion({name}=...): expected a function of time, rk.Keyframes or an array "
                    f"(steps + 1,) or (steps + 1, B), got shape {array.shape}"
                )
            check_finite(f"PrescribedMotion({name}=...)", array)
            object.__setattr__(self, name, array)
        if isinstance(self.q, Keyframes) and self.v is not None:
            raise ShapeError("PrescribedMotion(v=...): keyframes have velocities of their own; leave it out")

    def at_half_steps(self, dt: float) -> PrescribedMotion:
        """The same motion for steps of half the length; arrays get values in the middle of their steps."""
        if not isinstance(self.q, np.ndarray):
            return self
        law = _Law("motions", self.joint or "", self, dt)
        q = np.repeat(self.q, 2, axis=0)[:-1]
        q[1::2] = [law.position(k + 0.5) for k in range(len(self.q) - 1)]
        if not isinstance(self.v, np.ndarray):
            return PrescribedMotion(self.joint, q, self.v)
        v = np.repeat(self.v, 2, axis=0)[:-1]
        v[1::2] = 1.5 * np.diff(self.q, axis=0) / dt - 0.25 * (self.v[1:] + self.v[:-1])  # of the same cubic
        return PrescribedMotion(self.joint, q, v)


ACCEPTED = "rk.PrescribedMotion(...), or a list of these"


def motions_of(given: Any) -> tuple[PrescribedMotion, ...]:
    """What was given as ``motions``.

    Raises:
        WrongType: something else.
    """
    if given is None:
        return ()
    several = [given] if isinstance(given, PrescribedMotion) else given
    if not isinstance(several, Sequence) or isinstance(several, str):
        raise WrongType("motions", given, ACCEPTED)
    for k, each in enumerate(several):
        if not isinstance(each, PrescribedMotion):
            raise WrongType(f"motions[{k}]", each, ACCEPTED)
    return tuple(several)


class Motions:
    """Prescribed motions fitted to a robot and to the steps of a run.

    Attributes:
        bodies: of the joints.
        dofs, places: of these in v and q.
        rows: B where they differ from row to row, else None.
    """

    def __init__(self, robot: Robot, given: Sequence[PrescribedMotion], dt: float, steps: int) -> None:
        """Fit them.

        Raises:
            UnknownName: no such joint.
            ShapeError: a joint of several degrees of freedom, one that follows another, or that is prescribed
                twice; an array of another length.
        """
        self.dt, self.steps, self.rows = dt, steps, None
        self.names: list[str] = []
        self.bodies: list[int] = []
        self.dofs: list[int] = []
        self.places: list[int] = []
        self._laws: list[_Law] = []
        for k, motion in enumerate(given):
            names = [motion.joint] if motion.joint is not None else list(motion.q.joints)  # type: ignore[union-attr]
            for name in names:
                self._add(f"motions[{k}]", robot, name, motion)

    @classmethod
    def at_start(cls, robot: Robot, given: Sequence[PrescribedMotion], dt: Any) -> Motions:
        """Those of a run whose end is not known; ``dt`` as of ``simulate``, None for a usual one."""
        return cls(robot, given, USUAL if dt is None else real_number("dt", dt, above=0.0), UNKNOWN)

    def _add(self, what: str, robot: Robot, name: str, motion: PrescribedMotion) -> None:
        joint = robot.joint(name)
        if joint in robot.mimic_joints:
            raise ShapeError(
                f"{what}: joint {name!r} follows joint {joint.mimic.joint!r}; prescribe that one"  # type: ignore[union-attr]
            )
        if joint not in robot.joints or joint.v_slice.stop - joint.v_slice.start != 1:
            raise ShapeError(
                f"{what}: joint {name!r} cannot be prescribed; expected one with one degree of freedom of "
                f"its own, this is {joint.kind}"
            )
        if name in self.names:
            raise ShapeError(f"{what}: the motion of joint {name!r} is prescribed twice")
        law = _Law(what, name, motion, self.dt)
        if law.count is not None and law.count < self.steps + 1 and self.steps < UNKNOWN:
            raise ShapeError(
                f"{what}: expected {self.steps + 1} positions, one more than there are steps, got {law.count}"
            )
        if law.rows is not None:
            if self.rows not in (None, law.rows):
                raise ShapeError(f"{what}: expected {self.rows} rows, got {law.rows}")
            self.rows = law.rows
        self.names.append(name)
        self.bodies.append(joint.body)
        self.dofs.append(joint.v_slice.start)
        self.places.append(joint.q_slice.start)
        self._laws.append(law)

    def __bool__(self) -> bool:
        return bool(self.names)

    def start(
        self, q: np.ndarray, v: np.ndarray, rows: np.ndarray | None = None, step: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (nq,) and (nv,), or rows of them, put on the motions as they are after so many steps.

        Args:
            rows: which of a batch they are, if not all.
            step: taken until then.
        """
        if not self:
            return q, v
        q, v = np.array(q, float), np.array(v, float)
        if self.rows is not None and rows is None:
            q, v = (np.array(np.broadcast_to(x, (self.rows, x.shape[-1]))) for x in (q, v))
        for place, dof, law in zip(self.places, self.dofs, self._laws, strict=True):
            for x, k, value in ((q, place, law.position(step)), (v, dof, law.velocity(step))):
                x[..., k] = value if rows is None or not np.ndim(value) else value[rows]
        return q, v

    def at(self, step: int) -> np.ndarray:
        """The numbers of a step, (3 n,) or (B, 3 n)."""
        columns = []
        for law in self._laws:
            middle, end = law.position(step + 0.5), law.position(step + 1.0)
            columns += [middle, end, law.velocity(step + 1.0)]
        return np.stack(np.broadcast_arrays(*columns), axis=-1).astype(float)

    def table(self, steps: int) -> np.ndarray:
        """Those of all steps, (T, B or 1, 3 n)."""
        each = [np.atleast_2d(self.at(step)) for step in range(max(1, steps))]
        return np.stack(each)


USUAL = 1e-3
"""Step that rates at a start are found with where none is given yet [s]."""

UNKNOWN = 1_000_000_000
"""Steps from which a run has no end that is known."""


class _Law:
    """Position and velocity of one joint, at times in steps.

    Attributes:
        count: of positions in an array, else None.
        rows: B of an array by rows, else None.
    """

    def __init__(self, what: str, name: str, motion: PrescribedMotion, dt: float) -> None:
        self.what, self.dt, self.motion, self.name = what, dt, motion, name
        q, v = motion.q, motion.v
        self.count = len(q) if isinstance(q, np.ndarray) else None
        self.rows = q.shape[1] if isinstance(q, np.ndarray) and q.ndim == 2 else None
        if isinstance(q, Keyframes) and name not in q.joints:
            raise ShapeError(f"{what}: the keyframes have no joint {name!r}")
        if isinstance(q, np.ndarray) and isinstance(v, np.ndarray) and v.shape != q.shape:
            raise ShapeError(f"{what}: v: expected the shape of q, {q.shape}, got {v.shape}")
        if isinstance(q, np.ndarray) and v is None:
            self._rates = _differences(q, dt)
        elif isinstance(v, np.ndarray):
            self._rates = v

    def position(self, step: float) -> Any:
        """At so many steps."""
        q = self.motion.q
        if isinstance(q, Keyframes):
            return q.at([step * self.dt])[0][0, q.joints.index(self.name)]
        if callable(q):
            return self._number(q, step * self.dt)
        k = min(int(step), len(q) - 1)
        if k == step or k + 1 >= len(q):
            return q[k]
        # In the middle of a step: the cubic through both ends and their rates.
        rates = self._rates if not callable(self.motion.v) else [self.velocity(k), self.velocity(k + 1)]
        first, last = (rates[k], rates[k + 1]) if not isinstance(rates, list) else rates
        return 0.5 * (q[k] + q[k + 1]) + 0.125 * self.dt * (first - last)

    def velocity(self, step: float) -> Any:
        """At the end of so many steps."""
        q, v = self.motion.q, self.motion.v
        if isinstance(q, Keyframes):
            return q.at([step * self.dt])[1][0, q.joints.index(self.name)]
        if callable(v):
            return self._number(v, step * self.dt)
        if isinstance(q, np.ndarray) or isinstance(v, np.ndarray):
            k = int(step)
            return self._rates[k] if k < len(self._rates) else 0.0 * self._rates[-1]  # it stays at the last
        t, h = step * self.dt, self.dt / PER_STEP
        if t < 2.0 * h:  # nothing is known of times before the start
            five = [self._number(q, t + k * h) for k in range(5)]
            return sum(w * x for w, x in zip(ONE_SIDED, five, strict=True)) / (12.0 * h)
        far, near, then, later = (self._number(q, t + k * h) for k in (-2, -1, 1, 2))
        return (8.0 * (then - near) - (later - far)) / (12.0 * h)

    def _number(self, f: Callable[[float], float], t: float) -> float:
        try:
            found = np.asarray(f(t), dtype=float)
        except RobokitError:
            raise
        except Exception as error:
            raise InvalidValue(
                f"{self.what}: the function of joint {self.name!r} failed at t = {t:.6g} s: "
                f"{type(error).__name__}: {error}"
            ) from error
        if found.size != 1 or not np.isfinite(found).all():
            raise InvalidValue(
                f"{self.what}: the function of joint {self.name!r} gave {found!r} at t = {t:.6g} s; expected "
                "one finite number"
            )
        return float(found.reshape(()))


def _differences(q: np.ndarray, dt: float) -> np.ndarray:
    """Rates of positions at equal times, (T, ...): of fourth order, of fewer than five of second order."""
    if len(q) < 5:
        return np.gradient(q, dt, axis=0) if len(q) > 1 else np.zeros_like(q)
    found = np.zeros_like(q)
    found[2:-2] = (8.0 * (q[3:-1] - q[1:-3]) - (q[4:] - q[:-4])) / (12.0 * dt)
    for k, s in ((0, 1.0), (1, 1.0), (-1, -1.0), (-2, -1.0)):
        end = q[:5] if s > 0 else q[:-6:-1]
        weights = ONE_SIDED if k in (0, -1) else (-3.0, -10.0, 18.0, -6.0, 1.0)
        found[k] = s * sum(w * x for w, x in zip(weights, end, strict=True)) / (12.0 * dt)
    return found
