"""Reverse mode of a step: the vector-Jacobian product of its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.arguments import check_finite
from robokit.dataclass_tools import short_repr
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.run.kept_steps import KeptSteps, kept_steps
from robokit.sim.run.linearised_step import check_depth, checked_states, each_row, step_derivatives
from robokit.sim.run.step_parameters import StepParameters
from robokit.sim.starts.given_states import states
from robokit.sim.stepping.linear_steps import LinearSteps


class StepGradient(NamedTuple):
    """A step, and the gradient of a scalar that depends on its result.

    Attributes:
        q: configuration after the step, (nq,) or (B, nq).
        v: velocity after the step, (nv,) or (B, nv).
        dq: gradient by the configuration before it, in the tangent space, (nv,) or (B, nv).
        dv: by the velocity before it.
        dtau: by the joint forces.
        parameters: by each parameter, see :func:`step_vjp`; an array with an axis for the rows where there
            are several. Empty without contact.
    """

    q: np.ndarray
    v: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    parameters: dict[str, np.ndarray]

    def __repr__(self) -> str:
        return short_repr(self)


def step_vjp(
    robot: Robot,
    q: Any,
    v: Any,
    dq: Any,
    dv: Any,
    tau: Any = None,
    ground: Ground | bool | None = None,
    dt: float | None = None,
    *,
    integrator: str | None = None,
    joint_damping: float | None = None,
    self_collision: Any = None,
    springs: Any = None,
    actuators: Any = None,
    engine: str | None = None,
) -> StepGradient:
    """One time step of the simulator in reverse mode: a vector-Jacobian product.

    From the gradient (dq, dv) of a scalar with respect to the next state, it computes the gradient with
    respect to this state, the joint forces and the parameters of the step, in one back substitution. For many
    steps, chain it. It is ``dq @ A[:nv] + dv @ A[nv:]`` of :func:`step_derivatives`, and costs less.

    ``parameters`` are "friction" and "restitution" of the ground, of all bodies alike, "pair_friction" and
    "pair_restitution" between bodies, "gravity" (3,), "inertias" (N + 1, 10) as
    :attr:`Robot.inertial_parameters`, and with actuators "target", "velocity", "feedforward", "kp" and "kd"
    (n,), in the order of their joints. Held are stiffness and damping of contacts and joints, and with loops
    how inertias weigh what closes them.

    Source: contact/step_pullback.py and contact/parameter_gradients.py.  Cost: about that of a step.

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
        v: velocity, (nv,) or (B, nv).
        dq: gradient by the next configuration, in its tangent space, (nv,) or (B, nv).
        dv: gradient by the next velocity, (nv,) or (B, nv).
        tau, ground, dt, integrator, joint_damping, self_collision, springs, actuators, engine: as of
            :func:`step_derivatives`.

    Returns:
        the next state and the gradients.

    Raises:
        as :func:`step_derivatives`.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
        >>> q, zero = rk.standing_configuration(robot), np.zeros(robot.nv)
        >>> height = np.eye(robot.nv)[5]
        >>> found = rk.step_vjp(robot, q, zero, zero, height, ground=True)
        >>> found.dtau.shape, sorted(found.parameters)[:3]
        ((18,), ['friction', 'gravity', 'inertias'])
    """
    given, single = checked_states(robot, q, v, tau, engine)
    for name, x in (("dq", dq), ("dv", dv)):
        given.append(states(name, x, robot.nv, 0))
        check_finite(name, given[-1])
        single = single and np.ndim(x) == 1
    options: dict[str, Any] = {
        "integrator": integrator, "joint_damping": joint_damping, "self_collision": self_collision,
        "springs": springs,
    }  # fmt: skip
    kept = kept_steps(robot, engine, actuators, dt=dt, ground=ground, **options)
    if not kept.contact:
        found = _by_columns(robot, given, ground, dt, options, engine)
    else:
        rows = []
        for own, row in each_row(kept, given, engine, joint_damping, self_collision):
            with own.steps() as steps:
                rows.append(_pulled(own, steps, row))
                check_depth(kept, steps, given[0])
        names = rows[0].parameters if rows else {}
        sizes = (robot.nq, *[robot.nv] * 4)
        arrays = [np.array([row[k] for row in rows]).reshape(len(rows), n) for k, n in enumerate(sizes)]
        found = _of(arrays, {name: np.array([row.parameters[name] for row in rows]) for name in names})
    if not single:
        return found
    return _of([x[0] for x in found[:5]], {name: x[0] for name, x in found.parameters.items()})


def _of(arrays: Sequence[np.ndarray], parameters: dict[str, np.ndarray]) -> StepGradient:
    q, v, dq, dv, dtau = arrays
    return StepGradient(q, v, dq, dv, dtau, parameters)


def _pulled(kept: KeptSteps, steps: LinearSteps, row: Sequence[np.ndarray]) -> StepGradient:
    """Of one state."""
    q, v, tau, dq, dv = row
    steps.wanted = kept.wanted(q, v)
    end_q, end_v, of = steps.pullback(q, v, tau, dq, dv)
    return _of([end_q, end_v, *of.copy()], StepParameters(kept, steps).worth(q, v))


def _by_columns(
    robot: Robot, given: Sequence[np.ndarray], ground: Any, dt: Any, options: dict[str, Any], engine: Any
) -> StepGradient:
    """Of a step without contact, by its forward derivatives."""
    q, v, tau, dq, dv = given
    step = step_derivatives(robot, q, v, tau, ground, dt, engine=engine, **options)
    nv, of = robot.nv, np.hstack(np.broadcast_arrays(dq, dv))
    of_x, of_tau = (np.einsum("...r,...rc->...c", of, M) for M in (step.A, step.B))
    count = max(len(of_x), len(step.q))
    ends = [np.broadcast_to(x, (count, x.shape[-1])) for x in (step.q, step.v)]
    return _of([*ends, of_x[:, :nv], of_x[:, nv:], of_tau], {})
