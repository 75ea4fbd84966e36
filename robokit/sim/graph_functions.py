"""Steps, rollouts and distances as functions of JAX and PyTorch, with their derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robokit.arguments import whole_number
from robokit.dataclass_tools import cached_attribute
from robokit.dynamics.differentiate import velocity
from robokit.dynamics.other_libraries import (
    HostFunction,
    Shapes,
    check_one_sample,
    derived_shapes,
    jax_function,
    torch_function,
)
from robokit.errors import RobokitError
from robokit.model.robot import Robot, check_robot, quaternion_offsets
from robokit.sim.distances import CollisionPairs, Pairs, Query, query
from robokit.sim.ground import Ground
from robokit.sim.linear_steps import KeptSteps, LinearSteps, StepParameters, kept_steps, shape_of

# ==== step functions ==============================================================================
# Steps with contacts as functions of plain coordinates, with their linear maps: for JAX and PyTorch.
#
# Each step is a first one: contacts do not remember how far their bristles are bent, so that the state is all
# that there is and derivatives are complete. What stands on a slope creeps then, by some tenths of a
# millimetre a second.


class LibraryFunction(HostFunction):
    """What functions of steps and of distances have in common: first derivatives, in JAX and PyTorch.

    Attributes:
        name: "step" or "distance".
        how: "value", "pullback" or "pushforward".
    """

    name, how = "", "value"

    def __repr__(self) -> str:
        return f"<{self.name}({', '.join(name for name, _ in self.inputs)}) of {self.robot.name}>"

    def derived(self, how: str) -> LibraryFunction:
        """The function of its pullback or pushforward."""
        raise NotImplementedError

    @cached_attribute
    def pullback(self) -> LibraryFunction:
        """Inputs and a weight for each output -> the gradient of the weighted sum by each input."""
        return self._first("pullback")

    @cached_attribute
    def pushforward(self) -> LibraryFunction:
        """Inputs and a direction for each -> the change of each output along it."""
        return self._first("pushforward")

    def _first(self, how: str) -> LibraryFunction:
        if self.how != "value":
            raise RobokitError(f"{self.name}: only first derivatives are available")
        return self.derived(how)

    def to_jax(self, *, mode: str = "reverse") -> Callable[..., Any]:
        """The function of JAX arrays; ``jax.vmap`` makes batches.

        Args:
            mode: "reverse" for jax.grad, jax.vjp and jax.jacrev, "forward" for jax.jvp and jax.jacfwd.

        Raises:
            MissingDependency: JAX is not installed.
        """
        return jax_function(self.name, self, mode)

    def to_torch(self) -> Callable[..., Any]:
        """The function of PyTorch tensors of float64, which may have leading axes.

        Raises:
            MissingDependency: PyTorch is not installed.
        """
        return torch_function(self.name, self)


class StepFunction(LibraryFunction):
    """Steps from a state: q, v, tau and parameters in, states out; arrays may have leading axes.

    Attributes:
        kept: the step.
        steps: how many.
        parameters: names of those that are inputs.
        inputs, outputs: (name, shape) of each.
    """

    name = "step"

    def __init__(
        self, kept: KeptSteps, steps: int | None, parameters: Sequence[str], how: str = "value"
    ) -> None:
        """A function of so many steps, None for one without an axis; named parameters are inputs."""
        self.kept, self.steps, self.parameters, self.how = kept, steps, tuple(parameters), how
        self.robot = kept.robot
        axis = () if steps is None else (steps,)
        states = ("q", (self.robot.nq,)), ("v", (self.robot.nv,))
        inputs: Shapes = (
            *states,
            ("tau", (*axis, self.robot.nv)),
            *((name, shape_of(kept, name)) for name in self.parameters),
        )
        outputs: Shapes = tuple((f"{name}_next", (*axis, *shape)) for name, shape in states)
        self.inputs, self.outputs = derived_shapes(how, inputs, outputs)

    def derived(self, how: str) -> StepFunction:
        """See the base class."""
        return StepFunction(self.kept, self.steps, self.parameters, how)

    # ---- rows --------------------------------------------------------------------------------------------

    def rows(self, flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """As of the base class: one row after the other."""
        count = max((len(x) for x in flat if x.ndim == 2), default=1)
        several = any(x.ndim == 2 for x in flat)
        work = {"value": self._value, "pullback": self._pulled, "pushforward": self._pushed}[self.how]
        found = []
        for k in range(count):
            row = [
                (x[k] if x.ndim == 2 else x).reshape(shape)
                for x, (_, shape) in zip(flat, self.inputs, strict=True)
            ]
            with self.kept.steps() as steps:
                parameters = StepParameters(self.kept, steps)
                given = parameters.values(self.parameters)
                try:
                    found.append(work(steps, parameters, row))
                finally:
                    parameters.enter(self.parameters, given)
        made = tuple(np.array([row[k] for row in found]) for k in range(len(self.outputs)))
        return made if several else tuple(x[0] for x in made)

    def _walk(
        self, steps: LinearSteps, parameters: StepParameters, row: Sequence[np.ndarray], take: Any
    ) -> list[tuple[np.ndarray, ...]]:
        """All steps by ``take(q, v, tau)`` -> (q, v, ...): the states before them, with their joint forces,
        and that at the end.
        """
        q, v, tau, *values = row
        parameters.enter(self.parameters, values[: len(self.parameters)])
        way, q, taus = [], unit(self.robot, q), tau.reshape(-1, self.robot.nv)
        start = q
        for tau in taus:
            way.append((q, v, tau))
            steps.wanted = parameters.wanted(start, (q, v))
            q, v = (x.copy() for x in take(q, v, tau)[:2])
        return [*way, (q, v, taus[0])]

    def _value(
        self, steps: LinearSteps, parameters: StepParameters, row: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        way = self._walk(steps, parameters, row, steps.end)[1:]
        return [np.array([state[k] for state in way]) for k in (0, 1)]

    def _pulled(
        self, steps: LinearSteps, parameters: StepParameters, row: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        robot, own = self.robot, len(self.inputs) - 2
        way = self._walk(steps, parameters, row[:own], steps.end)
        w_q, w_v = (x.reshape(len(way) - 1, -1) for x in row[own:])
        of_q, of_v = np.zeros(robot.nv), np.zeros(robot.nv)
        of_tau = np.zeros((len(way) - 1, robot.nv))
        of = [np.zeros(shape) for _, shape in self.inputs[3:own]]
        for k in reversed(range(len(way) - 1)):
            M, size = rates(robot, way[k + 1][0])
            of_q, of_v = of_q + (M / size) @ w_q[k], of_v + w_v[k]
            q, v, tau = way[k]
            steps.wanted = parameters.wanted(way[0][0], (q, v))
            of_q, of_v, of_tau[k] = steps.pullback(q, v, tau, of_q, of_v)[2].copy()
            if of:
                worth = parameters.worth(q, v)
                of = [x + worth[name] for x, name in zip(of, self.parameters, strict=True)]
        return [rates(robot, way[0][0])[0].T @ of_q / norms(robot, row[0]), of_v, of_tau, *of]

    def _pushed(
        self, steps: LinearSteps, parameters: StepParameters, row: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        robot, own, nv = self.robot, len(self.inputs) // 2, self.robot.nv
        dq, dv, dtau, *of = row[own:]
        dtaus = iter(dtau.reshape(-1, nv))
        d = np.r_[rates(robot, unit(robot, row[0]))[0] @ (dq / norms(robot, row[0])), dv]
        found: list[tuple[np.ndarray, np.ndarray]] = []

        def take(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Any:
            nonlocal d
            end_q, end_v, slopes = steps(q, v, tau)
            end_q, end_v = end_q.copy(), end_v.copy()
            d = slopes @ np.r_[d, next(dtaus)]
            for r in range(2 * nv) if of else ():
                e = np.eye(2 * nv)[r]
                steps.pulled(e[:nv], e[nv:], again=r > 0)
                worth = parameters.worth(q, v)
                d[r] += sum((worth[name] * x).sum() for name, x in zip(self.parameters, of, strict=True))
            M, size = rates(robot, end_q)
            found.append(((M / size).T @ d[:nv], d[nv:].copy()))
            return end_q, end_v

        self._walk(steps, parameters, row[:own], take)
        return [np.array([each[k] for each in found]) for k in range(2)]


def step_function(
    robot: Robot,
    ground: Ground | bool | None = None,
    dt: float | None = None,
    *,
    steps: int | None = None,
    parameters: Sequence[str] = (),
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    actuators: Any = None,
    springs: Any = None,
    engine: str | None = None,
) -> StepFunction:
    """Steps with contact as a function, with derivatives in JAX and PyTorch.

    ``f(q, v, tau)`` gives the next q and v; with ``steps`` it is a rollout, tau has one row per step, and so
    have the states. ``f.to_jax()`` and ``f.to_torch()`` make functions of those libraries, whose derivatives
    are those of :func:`step_vjp`. There, q is a plain array, and quaternions are normalised inside. Each of
    several steps is computed like a first one, as in :func:`step_derivatives`: contacts do not remember the
    deflection of their bristles, so a body that stands on a slope creeps by some tenths of a millimetre per
    second.

    Args:
        robot: the robot.
        ground, dt, integrator, joint_damping, self_collision, actuators, springs: as in :func:`simulate`; a
            step with contact.
        steps: number of steps of a rollout; None for a single step.
        parameters: names of parameters that are additional inputs after tau, see :func:`step_vjp`.
        engine: as in :func:`rnea`.

    Returns:
        the function.

    Raises:
        as in :func:`step_derivatives`; UnknownName: there is no such parameter; RobokitError: a step without
            contact, or several robots or grounds.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> q, zero = rk.standing_configuration(robot), np.zeros(robot.nv)
        >>> run = rk.step_function(robot, ground=True, steps=3)
        >>> states, velocities = run(q, zero, np.zeros((3, robot.nv)))
        >>> states.shape
        (3, 19)
    """
    check_robot(robot)
    check_one_sample(robot)
    if steps is not None:
        steps = whole_number("steps", steps, 1)
    kept = kept_steps(
        robot, engine, actuators, dt=dt, ground=ground, integrator=integrator, joint_damping=joint_damping,
        self_collision=self_collision, springs=springs,
    )  # fmt: skip
    if not kept.contact or kept.rows:
        raise RobokitError(
            "step_function: expected a step with contact, of one robot and one ground; give a ground, or "
            "integrator='contact'"
        )
    for name in parameters:
        shape_of(kept, name)
    return StepFunction(kept, steps, parameters)


# ---- plain coordinates ------------------------------------------------------------------------------------


def unit(robot: Robot, q: np.ndarray) -> np.ndarray:
    """q with its quaternions made unit."""
    return q / norms(robot, q)


def norms(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Of each coordinate the norm of its quaternion, else 1."""
    found = np.ones(len(q))
    for k in quaternion_offsets(robot):
        found[k : k + 4] = np.linalg.norm(q[k : k + 4])
    return found


def rates(robot: Robot, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M with v = M q', (nv, nq), and the squares s of its orthogonal rows, (nv, 1): q' = (M / s)^T v."""
    M = np.array([np.broadcast_to(row, robot.nq) for row in velocity(robot, q.tolist(), [*np.eye(robot.nq)])])
    M = M.reshape(robot.nv, robot.nq)
    return M, (M * M).sum(axis=1)[:, None]


# ==== distance function ===========================================================================
# Distances of links as a function of plain coordinates, with its linear maps: for JAX and PyTorch.


class DistanceFunction(LibraryFunction):
    """Signed distances of pairs of links as a function of q; arrays may have leading axes.

    Attributes:
        pairs: names of the links of each pair.
        inputs, outputs: (name, shape) of each.
    """

    name = "distance"

    def __init__(self, robot: Robot, of: Query, how: str = "value") -> None:
        """A function; ``of`` measures with gradients."""
        self.robot, self.how, self._of = robot, how, of
        self.pairs: Pairs = of.pairs
        shapes = (("q", (robot.nq,)),), (("distance", (len(of.pairs),)),)
        self.inputs, self.outputs = derived_shapes(how, *shapes)

    def derived(self, how: str) -> DistanceFunction:
        """See the base class."""
        return DistanceFunction(self.robot, self._of, how)

    def rows(self, flat: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        """As in the base class."""
        several = any(x.ndim == 2 for x in flat)
        count = max((len(x) for x in flat if x.ndim == 2), default=1)
        q, *more = (np.broadcast_to(x, (count, x.shape[-1])) for x in flat)
        sizes = np.array([norms(self.robot, row) for row in q]).reshape(q.shape)
        at = np.ascontiguousarray(q / sizes)
        found = self._of.at(at, math.inf, None)
        if self.how == "value":
            made = found["distance"]
        else:
            M = np.array([rates(self.robot, row)[0] for row in at]).reshape(count, self.robot.nv, -1)
            if self.how == "pullback":
                made = np.einsum("bp,bpv,bvq->bq", more[0], found["gradient"], M) / sizes
            else:
                made = np.einsum("bpv,bvq,bq->bp", found["gradient"], M, more[0] / sizes)
        return (made if several else made[0],)


def distance_function(
    robot: Robot,
    a: str | Sequence[str] | None = None,
    b: str | Sequence[str] | None = None,
    *,
    ground: Ground | bool | None = None,
    pairs: CollisionPairs | str | None = None,
) -> DistanceFunction:
    """Signed distances of links as a function, with derivatives in JAX and PyTorch.

    ``f(q)`` returns the distances of :func:`distance`, (P,), in the order of ``f.pairs``; ``f.to_jax()`` and
    ``f.to_torch()`` return functions of these libraries. There, q is a plain array, and quaternions are
    normalised inside.

    Args:
        robot, a, b, ground, pairs: as in :func:`distance`.

    Raises:
        as :func:`distance`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("humanoid"))
        >>> f = rk.distance_function(robot, "left_hand", ["pelvis", "chest"])
        >>> (d,) = f(robot.neutral())
        >>> d.shape, f.pairs[0]
        ((2,), ('left_hand', 'pelvis'))
    """
    return DistanceFunction(robot, query(robot, a, b, ground, pairs, True))
