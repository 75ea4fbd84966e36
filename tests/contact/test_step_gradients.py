"""Reverse mode of public steps and rollouts, their parameters, and forward derivatives beside differences."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk

pytestmark = pytest.mark.slow  # the kernels of derivatives take seconds to compile

DT = 1e-3


def fallen(name: str, seconds: float) -> tuple[rk.Robot, np.ndarray, np.ndarray]:
    """A robot on its way down, or on the ground."""
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    v = 0.3 * np.random.default_rng(0).normal(size=robot.nv)
    q = rk.standing_configuration(robot)
    run = rk.simulate(robot, q, v, duration=seconds, dt=DT, ground=rk.Ground(), integrator="contact")
    return robot, run.q[-1].copy(), run.v[-1].copy()


@pytest.mark.parametrize("seconds", [0.05, 0.3])
@pytest.mark.parametrize(
    "name",
    ["quadruped", "humanoid", pytest.param("example-robot-data:g1", marks=pytest.mark.parity)],
)
def test_forward_derivatives_of_public_steps(name: str, seconds: float) -> None:
    """Along random directions of each of q, v and tau, by steps that have all that a run has."""
    robot, q, v = fallen(name, seconds)
    nv, h, rng = robot.nv, 1e-7, np.random.default_rng(1)
    how = {"dt": DT, "ground": rk.Ground(), "integrator": "contact"}
    step = rk.step_derivatives(robot, q, v, **how)
    M = np.hstack([step.A, step.B])
    for k in range(9):
        e = np.zeros((3, nv))
        e[k % 3] = rng.normal(size=nv)
        ends = [
            rk.step_derivatives(robot, robot.integrate(q, d * e[0]), v + d * e[1], d * e[2], **how)
            for d in (h, -h)
        ]
        slope = np.r_[robot.difference(ends[1].q, ends[0].q), ends[0].v - ends[1].v] / (2.0 * h)
        assert np.abs(slope - M @ e.ravel()).max() < 1e-6 * (1.0 + np.abs(M).max())


@pytest.fixture(scope="module")
def driven() -> tuple[rk.Robot, np.ndarray, np.ndarray, dict]:
    robot, q, v = fallen("quadruped", 0.05)
    servo = {"kp": 60.0, "kd": 2.0, "target": q + 0.1, "velocity": 0.2, "effort": 6.5}
    return robot, q, v, {"dt": DT, "integrator": "contact", "servo": servo, "friction": 0.5}


def arguments(how: dict, **other) -> dict:
    """Of a step, with one of its parameters changed."""
    servo = {**how["servo"], **{k: x for k, x in other.items() if k != "friction"}}
    ground = rk.Ground(friction=other.get("friction", how["friction"]))
    return {"dt": DT, "integrator": "contact", "ground": ground, "actuators": rk.PD(**servo)}


def test_reverse_mode_and_what_parameters_are_worth(driven) -> None:
    robot, q, v, how = driven
    rng = np.random.default_rng(4)
    dq, dv, tau = rng.normal(size=(3, robot.nv))
    given = arguments(how)
    step, found = (
        rk.step_derivatives(robot, q, v, tau, **given),
        rk.step_vjp(robot, q, v, dq, dv, tau, **given),
    )
    assert (step.q == found.q).all() and (step.v == found.v).all()
    w = np.r_[dq, dv]
    for a, b in ((w @ step.A, np.r_[found.dq, found.dv]), (w @ step.B, found.dtau)):
        assert np.abs(a - b).max() < 1e-12 * np.abs(a).max()
    at_limit = np.abs(found.parameters["feedforward"]) == 0.0
    assert at_limit.any() and not at_limit.all()
    # Joint forces are added to the actuator's, within its effort.
    assert (found.dtau[6:][at_limit] == 0.0).all()

    along = rng.normal(size=robot.nq)
    changes = {
        "friction": (lambda h: 0.5 + h, 1.0, 1e-6),
        "target": (lambda h: how["servo"]["target"] + h * along, along[7:], 1e-5),
        "velocity": (lambda h: 0.2 + h, 1.0, 1e-3),
        "kp": (lambda h: 60.0 + h, 1.0, 1e-3),
        "kd": (lambda h: 2.0 + h, 1.0, 1e-4),
    }
    for name, (value, direction, h) in changes.items():
        ends = [rk.step_derivatives(robot, q, v, tau, **arguments(how, **{name: value(d)})) for d in (h, -h)]
        number = [dq @ robot.difference(step.q, end.q) + dv @ end.v for end in ends]
        slope, expected = (number[0] - number[1]) / (2.0 * h), np.sum(found.parameters[name] * direction)
        assert abs(slope - expected) < 1e-6 * (1.0 + abs(expected)), name


def test_gains_of_servos_that_follow_keyframes() -> None:
    """Wanted velocities are those of the keyframes: what gains are worth, beside differences."""
    robot, h = rk.load_urdf(rk.find_robot("arm")), 1e-5
    ends = np.stack([np.zeros(robot.nv), np.ones(robot.nv)])
    target = rk.Keyframes(np.array([0.0, 1.0]), robot.joint_names, ends, curve="linear")
    q, v, w = (
        np.full(robot.nq, 0.1),
        np.full(robot.nv, 0.2),
        np.random.default_rng(1).normal(size=(2, robot.nv)),
    )

    def step(**gains: float) -> rk.sim.StepGradient:
        servo = rk.PD(**({"kp": 30.0, "kd": 2.0} | gains), target=target)
        return rk.step_vjp(robot, q, v, *w, dt=1e-2, integrator="contact", actuators=servo)

    for name, x in (("kp", 30.0), ("kd", 2.0)):
        low, high = (w[0] @ end.q + w[1] @ end.v for end in (step(**{name: x - h}), step(**{name: x + h})))
        assert step().parameters[name].sum() == pytest.approx((high - low) / (2.0 * h), rel=1e-5)


def test_rows_and_steps_without_contact() -> None:
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    q, dq, dv = np.random.default_rng(3).normal(size=(3, 4, 2))
    found = rk.step_vjp(robot, q, 0.5 * q, dq, dv[0], dt=DT)
    assert found.parameters == {} and found.dtau.shape == (4, 2)
    for k in range(4):
        step = rk.step_derivatives(robot, q[k], 0.5 * q[k], dt=DT)
        expected = np.r_[dq[k], dv[0]] @ step.A
        np.testing.assert_allclose(np.r_[found.dq[k], found.dv[k]], expected, rtol=1e-12)
    several = rk.step_vjp(robot, q, 0.5 * q, dq, dv[0], dt=DT, integrator="contact")
    one = rk.step_vjp(robot, q[1], 0.5 * q[1], dq[1], dv[0], dt=DT, integrator="contact")
    assert several.parameters["gravity"].shape == (4, 3)
    assert (several.dq[1] == one.dq).all()
    np.testing.assert_array_equal(several.parameters["inertias"][1], one.parameters["inertias"])


def test_gradients_of_a_rollout(driven) -> None:
    """Plain coordinates, quaternions made unit; parameters are inputs; through five steps."""
    robot, q, v, how = driven
    f = rk.step_function(robot, steps=5, parameters=("friction", "target", "gravity"), **arguments(how))
    rng = np.random.default_rng(7)
    given = [1.01 * q[:4], v, 0.1 * rng.normal(size=(5, robot.nv)), np.array(0.5), q[7:], robot.gravity]
    given[0] = np.r_[given[0], q[4:]]
    ends = f(*given)
    assert ends[0].shape == (5, robot.nq) and ends[1].shape == (5, robot.nv)
    weights = [rng.normal(size=x.shape) for x in ends]
    gradients = f.pullback(*given, *weights)
    for k, gradient in enumerate(gradients):
        e, h = rng.normal(size=gradient.shape), 1e-7
        numbers = []
        for d in (h, -h):
            moved = [x + d * e if m == k else x for m, x in enumerate(given)]
            numbers.append(sum((w * x).sum() for w, x in zip(weights, f(*moved), strict=True)))
        slope, expected = (numbers[0] - numbers[1]) / (2.0 * h), (gradient * e).sum()
        directions = [e if m == k else np.zeros_like(x) for m, x in enumerate(given)]
        changes = f.pushforward(*given, *directions)
        assert abs(slope - expected) < 5e-5 * (1.0 + abs(expected)), f.inputs[k][0]
        along = sum((w * x).sum() for w, x in zip(weights, changes, strict=True))
        assert abs(along - expected) < 1e-9 * (1.0 + abs(expected)), f.inputs[k][0]


def test_what_is_refused(driven) -> None:
    robot, q, v, how = driven
    with pytest.raises(rk.UnknownName, match="parameter named"):
        rk.step_function(robot, ground=True, integrator="contact", parameters=("slip",))
    with pytest.raises(rk.RobokitError, match="with contact"):
        rk.step_function(robot)
    with pytest.raises(rk.ShapeError, match="actuators"):
        rk.step_derivatives(robot, q, v, actuators=rk.PD(kp=1.0))
    with pytest.raises(rk.RobokitError, match="only first derivatives"):
        _ = rk.step_function(robot, **arguments(how)).pullback.pullback


@pytest.mark.parametrize("restitution", [None, 0.5, 1.0])
def test_gains_of_servos_where_a_robot_lands_or_bounces(restitution) -> None:
    """A damper opposes an impact as well: what gains are worth, beside differences, in steps of a fall."""
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    rng, gains = np.random.default_rng(2), {"kp": 60.0, "kd": 2.0}
    start = rk.standing_configuration(robot, tilt=0.2, height=0.01, seed=3)
    how = {"dt": DT, "ground": rk.Ground(restitution=restitution)}
    fall = {"duration": 0.2, "actuators": rk.PD(**gains), "record_every": 1}
    run = rk.simulate(robot, start, -0.4 * np.eye(robot.nv)[5], **how, **fall)
    hit = np.abs(np.diff(run.v, axis=0)).max(axis=1)
    for k in np.argsort(hit)[-6:]:
        q, v, w = run.q[k], run.v[k], rng.normal(size=(2, robot.nv))

        def step(q=q, v=v, w=w, **other: float) -> rk.sim.StepGradient:
            servo = rk.PD(**(gains | other), target=start, effort=20.0)
            return rk.step_vjp(robot, q, v, *w, **how, actuators=servo)

        found = step().parameters
        for name, x in gains.items():
            low, high = (step(**{name: x + d}) for d in (-1e-4, 1e-4))
            slope = (w[0] @ robot.difference(low.q, high.q) + w[1] @ (high.v - low.v)) / 2e-4
            assert found[name].sum() == pytest.approx(slope, rel=1e-5, abs=1e-8), (k, name)
