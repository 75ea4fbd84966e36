"""Derivatives of steps by the implicit function theorem, against differences of the steps themselves."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import closed_four_bar, free_four_bar, nearly_stretched
from test_kinematics import ROBOTS, state_of

import robokit as rk
from robokit.contact.accounts import NOTHING
from robokit.contact.groups import SHARE
from robokit.contact.materials import motor_numbers
from robokit.model import ModelBuilder, Placement
from robokit.model.geometry import Box, Capsule, Cylinder, Geometry, Shape, Sphere
from robokit.sim.linear_steps import LinearSteps, kept_steps
from robokit.sim.run_inputs import set_up
from robokit.sim.steppers import ContactState, step_numbers
from tests.contact.random_steps import product_of_factors

pytestmark = pytest.mark.slow  # the kernels of derivatives take seconds to compile

DT = 2e-3

CUBE = Box((0.2, 0.2, 0.2))


def linear(robot: rk.Robot, ground: rk.Ground | None = None, dt: float = DT, **options) -> LinearSteps:
    """Steps that are solved to rounding, and whose end corrects nothing."""
    options = {"joint_damping": None, "self_collision": None, **options}
    damping, touch = options["joint_damping"], options["self_collision"]
    program = set_up(robot, 1.0, dt, ground, "contact", None, damping, self_collision=touch).program
    steps = LinearSteps(program, dt)
    steps.simulation.arrays["tolerance"][:] = 1e-13
    steps.simulation.arrays["keeps"][:] = NOTHING
    return steps


def acting(steps: LinearSteps) -> tuple[object, ...]:
    """What acts in the step that was taken last: an active set with derivatives."""
    x = {**steps.simulation.arrays, **steps.simulation.work}
    n, rows = x["n_of"][:2]
    last, *first = _acts(x, x["c_g"][:n], x["r_g"][:rows]), tuple(x["r_of"][:rows])
    if x["landed"][0]:  # there are two solutions
        first += _acts(x, x["c_g"][:n] + x["c_ahead"][:n, :3], x["r_first"][:rows, 2])
    return (*last, *first)


def _acts(x: dict, g: np.ndarray, r: np.ndarray) -> tuple[object, ...]:
    """What presses, what slides, and rows at a bound, of impulses."""
    slides = np.hypot(g[:, 0], g[:, 1]) > (1.0 - 1e-6) * x["c_mu"][: len(g)] * g[:, 2]
    low, high = (x[name][: len(r)] for name in ("r_low", "r_high"))
    at_bound = (r <= (1.0 - 1e-6) * low) | (r >= (1.0 - 1e-6) * high)
    return tuple(g[:, 2] > 0.0), tuple(slides & (g[:, 2] > 0.0)), tuple(at_bound)


def error(
    steps: LinearSteps, q: np.ndarray, v: np.ndarray, tau: np.ndarray | None = None, h: float = 1e-7
) -> float:
    """Of the derivatives along all directions in which nothing switches, relative to the largest of a row."""
    robot, tau = steps.robot, np.zeros(len(v)) if tau is None else tau
    nv = robot.nv
    _, _, found = steps(q, v, tau)
    found, same = found.copy(), acting(steps)
    checked, off = 0, np.zeros(2 * nv)
    for k in range(3 * nv):
        e = np.zeros(3 * nv)
        e[k] = h
        ends, switches = [], False
        for d in (e, -e):
            ends.append(steps(robot.integrate(q, d[:nv]), v + d[nv : 2 * nv], tau + d[2 * nv :])[:2])
            switches |= acting(steps) != same
        if switches:
            continue
        checked += 1
        slope = np.r_[robot.difference(ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]] / (2.0 * h)
        off = np.maximum(off, np.abs(slope - found[:, k]))
    assert checked > nv
    # Impulses that are solved to rounding, over 2 h, are off by that much.
    return float((off / (1.0 + np.abs(found).max(axis=1))).max())


def fallen(robot: rk.Robot, seconds: float, seed: int = 0, **how) -> tuple[np.ndarray, np.ndarray]:
    """A state on the way down, or at rest."""
    v = 0.3 * np.random.default_rng(seed).normal(size=robot.nv)
    q = rk.standing_configuration(robot)
    how = {"ground": rk.Ground(), "dt": DT, "integrator": "contact", **how}
    run = rk.simulate(robot, q, v, duration=seconds, **how)
    return run.q[-1].copy(), run.v[-1].copy()


@pytest.mark.parametrize("name", ROBOTS)
def test_free_motion_of_every_joint_kind(name: str) -> None:
    robot = ROBOTS[name]()
    q, v = state_of(robot)
    tau = np.random.default_rng(3).normal(size=robot.nv)
    assert error(linear(robot), q, v, tau, 1e-5) < 1e-7


def test_a_quadruped_that_stands_and_does_not_slide() -> None:
    robot = floating("quadruped")
    q, v = fallen(robot, 0.05, ground=rk.Ground(friction=20.0))
    assert error(linear(robot, rk.Ground(friction=20.0)), q, v) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadruped", "humanoid", "arm"])
@pytest.mark.parametrize("seconds", [0.1, 0.3, 1.0])
def test_robots_that_fall_with_limits_and_friction_of_their_joints(name: str, seconds: float) -> None:
    robot = floating(name)
    assert error(linear(robot, rk.Ground()), *fallen(robot, seconds)) < 2e-5


def floating(name: str) -> rk.Robot:
    return rk.load_urdf(rk.find_robot(name), base="floating")


def body(shape: Geometry) -> rk.Robot:
    builder = ModelBuilder("body")
    builder.link("body", mass=1.0, inertia=np.diag([0.004, 0.005, 0.006]), collisions=(Shape(shape),))
    return builder.build("floating")


def laid(robot: rk.Robot, turn: tuple[float, ...], height: float, v: tuple[float, ...]) -> tuple:
    """A body that is turned, and its velocity given in world axes."""
    q = robot.integrate(robot.neutral(), [*turn, 0, 0, 0])
    q[4:] = 0.1, -0.2, height
    R = rotation(q)
    return q, np.r_[R.T @ v[:3], R.T @ v[3:]]


def rotation(q: np.ndarray) -> np.ndarray:
    w, r = q[0], q[1:4]
    across = np.cross(np.eye(3), r)
    return np.eye(3) + 2.0 * w * across + 2.0 * across @ across


ON_GROUND = {
    "ball slides": (Sphere(0.1), (0.3, 0.2, 0.1), 0.0999, (1, 2, 3, 0.3, 0.1, -0.01), {}),
    "ball lands": (Sphere(0.1), (0.3, 0.2, 0.1), 0.1, (0.5, 0.2, 0.1, 0.3, 0.2, -1), {}),
    "ball bounces": (Sphere(0.1), (0, 0, 0), 0.0999, (1, 2, 3, 0.3, 0.1, -1), {"restitution": 0.5}),
    "ball bounces early in the step": (
        Sphere(0.1), (0.3, 0.2, 0.1), 0.1013, (1, 2, 3, 0.3, 0.1, -1), {"restitution": 0.5},
    ),
    "ball bounces late in the step": (
        Sphere(0.1), (0.3, 0.2, 0.1), 0.1026, (1, 2, 3, 0.3, 0.1, -1), {"restitution": 0.8},
    ),
    "box bounces on a corner": (
        CUBE, (0.8, 0.1, 0), 0.142, (0.5, 0.2, 0.1, 0.3, 0.2, -1), {"restitution": 0.5, "spin": 3.0},
    ),
    "ball turns": (
        Sphere(0.1), (0, 0, 0), 0.0999, (1, 2, 3, 0.3, 0.1, -0.01), {"torsional": 0.01, "rolling": 0.005},
    ),
    "ball spins": (Sphere(0.1), (0, 0, 0), 0.0999, (1, 2, 3, 0.3, 0.1, -0.01), {"torsional": 0.01}),
    "box on a corner": (CUBE, (0.8, 0.1, 0), 0.1405, (0.5, 0.2, 0.1, 0.3, 0.2, -1), {}),
    "capsule on its side": (Capsule(0.1, 0.3), (1.57, 0, 0), 0.0999, (0, 0, 3, 0.3, 0.1, -0.1), {}),
    "cylinder on its rim": (Cylinder(0.1, 0.3), (1.0, 0, 0), 0.1645, (0.1, 0.2, 3, 0.3, 0.1, -0.5), {}),
    "ball falls": (Sphere(0.1), (0.3, 0.2, 0.1), 0.1015, (1, 2, 3, 0.3, 0.1, -1), {}),
    "box falls flat": (CUBE, (0.003, 0.002, 0), 0.1017, (0.05, 0.02, 0.1, 0.3, 0.1, -1), {}),
    "capsule falls flat": (Capsule(0.1, 0.3), (1.572, 0, 0), 0.1014, (0, 0, 3, 0.3, 0.1, -1), {}),
    "ball on a turntable": (
        Sphere(0.1), (0.3, 0.2, 0.1), 0.0999, (1, 2, 3, 0.3, 0.1, -0.01), {"spin": 3.0, "torsional": 0.01},
    ),
    "box falls on a turntable": (
        CUBE, (0.8, 0.1, 0), 0.142, (0.5, 0.2, 0.1, 0.3, 0.2, -1), {"spin": 3.0, "velocity": (0.5, 0.2, 0.0)},
    ),
}  # fmt: skip


BOUND = {"cylinder on its rim": 5e-3}  # what a disc's rim adds to velocities, which is of order dt, is held


def _on_ground(name: str, **more) -> float:
    shape, turn, height, v, how = ON_GROUND[name]
    robot = body(shape)
    steps = linear(robot, rk.Ground(**how, **more))
    q, v = laid(robot, turn, height, v)
    steps(q, v, np.zeros(6))
    assert any(acting(steps)[0])
    return error(steps, q, v, h=3e-8)  # damping by the square of a speed bends differences


@pytest.mark.parametrize("name", ON_GROUND)
def test_a_body_that_sticks_to_the_ground(name: str) -> None:
    assert _on_ground(name, friction=20.0) < BOUND.get(name, 2e-7)


@pytest.mark.parametrize("name", ["ball slides", "box on a corner"])
def test_a_body_on_ground_that_is_harder_than_rounding_lets_it_be(name: str) -> None:
    """Its compliance is a share of the mobility, and does not change with the speed of an impact.

    The bound is rounding, beside slopes of 2^30: with the compliance of the ground as given it was 0.02.
    """
    assert _on_ground(name, friction=20.0, sink=1e-15) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_GROUND)
def test_a_body_that_slides_on_the_ground(name: str) -> None:
    assert _on_ground(name) < BOUND.get(name, 1e-6)


ROWS = {
    "balls that fly on": (Sphere(0.1), 5, 0.5, {"friction": 0.3}, (2.0, 0.0, 0.0)),
    "a tower of balls lands": (Sphere(0.1), 4, 0.6, {"friction": 0.5, "torsional": 0.01}, (0.0, 0.0, -1.0)),
    "a tower of boxes lands": (CUBE, 3, 0.9, {"friction": 0.0}, (0.0, 0.0, -1.0)),
}


@pytest.mark.parametrize("gap", [-5e-5, 1e-4])
@pytest.mark.parametrize("name", ROWS)
def test_impacts_that_follow_one_another(name: str, gap: float) -> None:
    """Bodies in a row, a little off it: derivatives held velocities after the impacts, and their times."""
    shape, count, restitution, how, come = ROWS[name]
    robot, rng = rk.together({str(k): body(shape) for k in range(count)}), np.random.default_rng(3)
    q, v = robot.neutral().reshape(count, 7), 0.01 * rng.normal(size=(count, 6))
    lands = come[2] < 0.0
    q[:, 4:] = 1e-3 * rng.normal(size=(count, 3))
    q[:, 6 if lands else 4] = (0.2 + gap) * np.arange(count)
    q[:, 6] += 0.1 - 1e-6 if lands else 1.0
    v[:, 3:] += np.array(come) * (1.0 if lands else np.eye(count)[0][:, None])
    ground = rk.Ground(restitution=restitution, **how)
    pairs = rk.collision_pairs(robot).with_law(restitution=restitution, friction=how["friction"])
    steps = linear(robot, ground, self_collision=pairs)
    given = q.ravel(), v.ravel(), np.zeros(robot.nv)
    M = steps(*given)[2].copy()
    assert (steps.simulation.work["contact_bounces"][:count] == 2).sum() >= count - 1
    of_q, of_v = rng.normal(size=(2, robot.nv))
    expected = np.r_[of_q, of_v] @ M
    assert (
        np.abs(steps.pullback(*given, of_q, of_v)[2].ravel() - expected).max() < 1e-10 * abs(expected).max()
    )
    assert error(steps, *given, h=1e-6 if gap < 0.0 else 2e-8) < 1e-7
    how = {"ground": ground, "self_collision": pairs, "dt": DT, "integrator": "contact"}
    found = rk.step_vjp(robot, *given[:2], of_q, of_v, **how)
    assert np.isfinite(found.dq).all() and np.isnan(found.parameters["restitution"])  # not known


@pytest.mark.parametrize("count", [1, 3])
def test_bounces_on_an_edge(count: int) -> None:
    """A ball, or several one upon the other: the normal turns as it moves, and gravity along it changes."""
    robot = rk.together({str(k): body(Sphere(0.1)) for k in range(count)})
    table = Shape(Box((1.0, 1.0, 1.0)), Placement(np.eye(3), (0.0, 0.0, -0.5)))
    ground = rk.Ground(height=-3.0, restitution=0.3, friction=0.4, shapes=[table])
    pairs = rk.collision_pairs(robot).with_law(restitution=0.3, friction=0.3)
    rng, away = np.random.default_rng(3), np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    q, v = robot.neutral().reshape(count, 7), 0.02 * rng.normal(size=(count, 6))
    q[:, 4:] = np.array([0.5, 0.1, 0.0]) + np.outer(0.1 - 1e-6 + (0.2 - 1e-6) * np.arange(count), away)
    q[1:, 5] += 1e-3 * rng.normal(size=count - 1)
    v[:, 3:] -= away
    steps = linear(robot, ground, self_collision=pairs)
    given = q.ravel(), v.ravel(), np.zeros(robot.nv)
    steps(*given)
    assert (steps.simulation.work["contact_bounces"][:count] == (2 if count > 1 else 1)).all()
    assert error(steps, *given) < 1e-7


def is_limited(steps: LinearSteps) -> bool:
    """Whether the step that was taken last gives back less than all of restitution."""
    x = steps.simulation.work
    n = x["counts"][0]
    of_bounces = x["contact_constraint"][:n][x["contact_bounces"][:n] > 0]
    return bool(len(of_bounces)) and not x["c_aim"][of_bounces, 2].any()


@pytest.mark.parametrize(("seed", "spin"), [(1, 0.0), (2, 0.0), (11, 0.0), (21, 0.0), (1, 2.0), (11, 2.0)])
def test_bounces_that_energy_limits(seed: int, spin: float) -> None:
    """Bodies that land and slide with friction, with a share of restitution: derivatives held the share."""
    rng = np.random.default_rng(seed)
    robot = body(Capsule(0.05, 0.4) if seed < 10 else Box((0.2, 0.3, 0.1)))
    steps = linear(robot, rk.Ground(friction=0.6, restitution=1.0, spin=spin))
    for _ in range(60):
        q, v = laid(
            robot, tuple(rng.normal(size=3)), 0.0, (*3.0 * rng.normal(size=3), *rng.normal(size=2), -1.5)
        )
        q[6] = rk.standing_height(robot, q) - 2e-4
        given = q, v, np.zeros(6)
        steps(*given)
        if is_limited(steps):
            break
    assert is_limited(steps)
    M = steps(*given)[2].copy()
    of_q, of_v = rng.normal(size=(2, 6))
    found, expected = steps.pullback(*given, of_q, of_v)[2].ravel(), np.r_[of_q, of_v] @ M
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    worth = {name: steps.found[name].copy() for name in ("of_shape", "of_gravity", "of_inertia")}
    assert error(steps, *given, h=1e-4) < 1e-5
    x = steps.simulation.arrays

    def number(name: str, at: tuple[int, ...], change: float) -> float:
        before = x[name][at]
        x[name][at] = before + change
        q1, v1, _ = steps(*given)
        x[name][at] = before
        return of_q @ robot.difference(q, q1) + of_v @ v1

    for found, name, at, h in (
        (worth["of_shape"][1, 0], "shape_friction", (1,), 1e-4),
        (worth["of_shape"][1, 1], "shape_restitution", (1,), 1e-4),
        (worth["of_gravity"][0], "gravity", (0,), 1e-3),
        (worth["of_inertia"][1, 0], "inertia", (1, 0), 1e-4),
        (worth["of_inertia"][1, 5], "inertia", (1, 5), 1e-5),
    ):
        slope = (number(name, at, h) - number(name, at, -h)) / (2.0 * h)
        assert abs(found - slope) < 1e-4 * (1.0 + abs(slope)), name


def test_bounces_that_energy_limits_in_some_groups() -> None:
    """Two bodies far apart, each with a share of its own, and a ball that bounces with all of restitution."""
    shapes = {"a": Capsule(0.05, 0.4), "b": Box((0.2, 0.3, 0.1)), "ball": Sphere(0.1)}
    robots = {name: body(shape) for name, shape in shapes.items()}
    ground, starts = rk.Ground(friction=0.6, restitution=1.0), []
    for k, robot in enumerate(robots.values()):
        rng, alone = np.random.default_rng(1 if k != 1 else 11), linear(robot, ground)
        for _ in range(60 if k < 2 else 1):
            v = (*3.0 * rng.normal(size=3), *rng.normal(size=2), -1.5)
            q, v = laid(robot, tuple(rng.normal(size=3)), 0.0, v)
            q[4], q[6] = 3.0 * k, rk.standing_height(robot, q) - 2e-4
            alone(q, v, np.zeros(6))
            if is_limited(alone):
                break
        assert is_limited(alone) == (k < 2)
        starts.append((q, v))
    robot = rk.together(robots)
    steps, given = (
        linear(robot, ground),
        (*map(np.concatenate, zip(*starts, strict=True)), np.zeros(robot.nv)),
    )
    M = steps(*given)[2].copy()
    shares = steps.simulation.work["by_group"][:3, SHARE]
    assert (shares[:2] < 1.0).all() and shares[0] != shares[1] and shares[2] == 1.0
    of = rng.normal(size=(2, robot.nv))
    found, expected = steps.pullback(*given, *of)[2].ravel(), of.ravel() @ M
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    worth = steps.found["of_shape"].copy()
    assert len(worth) == 4 and not worth[0].any()  # of the plane
    assert error(steps, *given, h=1e-4) < 1e-5
    blocks = M.reshape(2, 3, 6, -1, 3, 6)
    assert not any(blocks[:, k, :, :, n].any() for k in range(3) for n in range(3) if k != n)
    x = steps.simulation.arrays
    for shape, c in np.ndindex(worth.shape):
        ends, array = [], x[("shape_friction", "shape_restitution")[c]]
        before = array[shape]
        for change in (1e-4, -1e-4):
            array[shape] = before + change
            q, v, _ = steps(*given)
            ends.append(of[0] @ robot.difference(given[0], q) + of[1] @ v)
        array[shape] = before
        assert abs(worth[shape, c] - (ends[0] - ends[1]) / 2e-4) < 1e-4 * (1.0 + abs(worth[shape, c]))


def test_joint_forces_through_motors_where_energy_limits_bounces() -> None:
    """Forces of driven joints are impulses of their motors, some of them at their largest effort."""
    robot, rng = floating("quadruped"), np.random.default_rng(5)
    turn, joints = 0.5 * rng.normal(size=3), 0.2 * rng.normal(size=robot.nv - 6)
    q = robot.integrate(robot.neutral(), [*turn, 0, 0, 0, *joints])
    q[6], v = rk.standing_height(robot, q) - 1e-4, 0.5 * rng.normal(size=robot.nv)
    v[3:6] = rotation(q).T @ [*rng.normal(size=2), -1.0]
    servo = rk.PD(kp=60.0, kd=2.0, target=robot.neutral(), effort=6.5)
    given = {"dt": 1e-3, "ground": rk.Ground(friction=1.0, restitution=1.0), "integrator": "contact"}
    kept = kept_steps(robot, None, servo, **given, joint_damping=None, self_collision=None, springs=None)
    tau, w = 0.1 * rng.normal(size=robot.nv), rng.normal(size=(2, robot.nv))
    step = rk.step_derivatives(robot, q, v, tau, actuators=servo, **given)
    with kept.steps() as steps:
        assert is_limited(steps)  # the step that was just taken
    free = 0
    for k, e in enumerate(1e-4 * np.eye(robot.nv)):
        ends = [rk.step_derivatives(robot, q, v, tau + d, actuators=servo, **given).v for d in (e, -e)]
        assert np.abs((ends[0] - ends[1]) / 2e-4 - step.B[robot.nv :, k]).max() < 1e-5 * np.abs(step.B).max()
        free += step.B[:, k].any()
    assert 6 < free < robot.nv
    found = rk.step_vjp(robot, q, v, *w, tau, actuators=servo, **given)
    assert np.abs(found.dtau - w.ravel() @ step.B).max() < 1e-12 * np.abs(found.dtau).max()


@pytest.mark.parametrize("name", ["ball slides", "box on a corner"])
def test_a_body_on_a_height_field(name: str) -> None:
    shape, turn, _, v, _ = ON_GROUND[name]
    x = np.linspace(-1.0, 1.0, 5)
    field = rk.HeightField(0.1 * x[:, None] + 0.05 * x, cell=0.5, origin=(-1.0, -1.0))
    robot = body(shape)
    steps = linear(robot, rk.Ground(terrain=field, friction=20.0))
    q, v = laid(robot, turn, 0.3, v)
    for _ in range(200):  # down until it presses
        q[6] -= 1e-3
        steps(q, v, np.zeros(6))
        if any(acting(steps)[0]):
            break
    assert any(acting(steps)[0])
    assert error(steps, q, v) < 2e-7


def test_an_edge_across_an_edge_of_a_height_field() -> None:
    """A lying box on a ridge: the place at which they cross runs along the ridge."""
    x = np.linspace(-1.0, 1.0, 5)
    field = rk.HeightField(0.3 - 0.2 * abs(x[:, None]) + 0.05 * x, cell=0.5, origin=(-1.0, -1.0))
    robot = body(Box((0.9, 0.06, 0.06)))
    steps = linear(robot, rk.Ground(terrain=field))
    q, v = laid(robot, (0.0, 0.0, 0.3), 0.36, (0.5, 0.2, 0.1, 0.3, 0.2, -0.3))
    for _ in range(400):
        q[6] -= 5e-4
        steps(q, v, np.zeros(6))
        if any(acting(steps)[0]):
            break
    assert any(acting(steps)[0])
    assert error(steps, q, v) < 2e-7


def test_a_face_on_a_peak_of_a_height_field() -> None:
    """Triangles around the peak have edges that end there: it is one contact."""
    heights = np.random.default_rng(2).normal(scale=0.02, size=(5, 5))
    heights[2, 2] = 0.1
    field = rk.HeightField(heights, cell=(0.5, 0.4), origin=(-1.0, -0.8))
    robot = body(Box((0.1, 0.1, 0.1)))
    steps = linear(robot, rk.Ground(terrain=field))
    q, v = laid(robot, (0.009, -0.003, 0.7), 0.15 - 3e-4, (0.5, 0.2, 0.1, 0.3, 0.2, -0.5))
    q[4:6] = 0.01, 0.02
    steps(q, v, np.zeros(6))
    assert sum(acting(steps)[0]) == 1
    assert error(steps, q, v) < 2e-7


@pytest.mark.parametrize("seed", [23, 66, 99, 114])
def test_a_face_on_edges_of_a_height_field(seed: int) -> None:
    """Contacts of a face share one normal, across a ridge or along that of one edge or corner of them."""
    rng = np.random.default_rng(seed)
    field = rk.HeightField(rng.normal(scale=0.02, size=(5, 5)), cell=(0.5, 0.4), origin=(-1.0, -0.8))
    robot, ground = body(Box((0.1, 0.1, 0.1))), rk.Ground(terrain=field)
    steps = linear(robot, ground)
    q, v = laid(robot, (0.0, 0.0, rng.uniform(0, 3)), 0.15, (0.5, 0.2, 0.1, 0.3, 0.2, -0.5))
    q[4:6] = rng.uniform(-0.02, 0.02, 2)
    q[6] = rk.standing_height(robot, q, ground=ground) - 3e-4
    steps(q, v, np.zeros(6))
    assert any(acting(steps)[0])
    assert error(steps, q, v, h=1e-8) < 2e-7


PAIRS = {
    "balls": (Sphere(0.1), Sphere(0.15), (0, 0, 0), (0, 0, 0), 0.243),
    "ball on a face": (CUBE, Sphere(0.1), (0.1, 0, 0.3), (0, 0, 0), 0.2),
    "corner on a face": (CUBE, CUBE, (0, 0, 0.3), (0.7, 0.6, 0), 0.268),
    "face on a corner": (CUBE, CUBE, (0.7, 0.6, 0), (0, 0, 0.3), 0.268),
    "edges": (CUBE, CUBE, (0.785, 0, 0), (0, 0.785, 0.1), 0.282),
    "capsules": (Capsule(0.05, 0.3), Capsule(0.05, 0.3), (1.57, 0, 0), (0, 1.57, 0), 0.0985),
    "ball on a capsule": (Capsule(0.05, 0.3), Sphere(0.1), (1.57, 0, 0), (0, 0, 0), 0.148),
    "ball on a cylinder": (Cylinder(0.08, 0.2), Sphere(0.1), (1.3, 0.2, 0), (0, 0, 0), 0.1825),
    "ball on a rim": (Cylinder(0.08, 0.2), Sphere(0.1), (0.9, 0.0, 0), (0, 0, 0), 0.2155),
    "cylinders": (Cylinder(0.08, 0.2), Cylinder(0.06, 0.3), (1.4, 0, 0.2), (0.1, 1.5, 0.4), 0.143),
    "face on a rim": (Cylinder(0.08, 0.2), Box((0.5, 0.5, 0.2)), (0.02, 0.01, 0), (0, 0, 0.3), 0.2005),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_bodies_that_touch(name: str) -> None:
    one, other, turn, other_turn, height = PAIRS[name]
    both = {"a": (body(one), Placement()), "b": (body(other), Placement())}
    robot = rk.together(both)
    q = robot.integrate(robot.neutral(), [*turn, 0, 0, 0, *other_turn, 0, 0, 0])
    q[11:14] = 0.02, 0.01, height
    v = np.array([0.1, 0.2, 0.3, 0.05, 0.1, 0.0, 0.3, -0.2, 0.1, *(rotation(q[7:11]).T @ [0.1, 0.0, -0.6])])
    steps = linear(robot, self_collision=True)
    steps(q, v, np.zeros(12))
    assert any(acting(steps)[0])
    assert error(steps, q, v) < 2e-7


@pytest.mark.parametrize("state", [(0.0, 0.0), (0.0999, 1.0), (0.11, 0.5)])
def test_limit_damping_and_dry_friction_of_a_joint(state: tuple[float, float]) -> None:
    builder = ModelBuilder("slider")
    builder.link("rail")
    builder.link("cart", mass=2.0, inertia=np.eye(3) * 0.1)
    how = {"friction": 1.0, "damping": 2.0, "upper": 0.1, "lower": -0.1}
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0), **how)
    robot = builder.build("fixed")
    assert error(linear(robot), *np.array(state)[:, None], np.array([3.0])) < 1e-8


def driven(robot: rk.Robot, q: np.ndarray, v: np.ndarray, limits: tuple[float, float]) -> float:
    steps = linear(robot)
    # The step's arrays know motors; the public function gives none.
    numbers = motor_numbers(robot, range(1, robot.nbodies + 1), (50.0, 2.0), limits)
    numbers["motor_command"][:] = 5.0, 0.3
    program = set_up(robot, 1.0, DT, None, "contact", None, 0.0).program
    steps.simulation = ContactState(robot, DT, {**step_numbers(program, DT), **numbers}, tolerance=1e-13)
    steps.simulation.arrays["keeps"][:] = NOTHING
    return error(steps, q, v)


@pytest.mark.parametrize("limits", [(np.inf, np.inf), (1.0, np.inf), (np.inf, 0.4)])
def test_motors_free_and_at_their_limits(limits: tuple[float, float]) -> None:
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    assert driven(robot, np.array([0.3, 0.2]), np.array([0.4, -0.3]), limits) < 1e-8


def test_a_motor_at_its_largest_speed_whose_inertia_changes() -> None:
    """What holds it there is as soft as the joint's inertia says."""
    robot = rk.load_urdf(rk.find_robot("arm"))
    rng = np.random.default_rng(7)
    q, v, tau = 0.3 * rng.normal(size=robot.nq), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    given = {"dt": DT, "integrator": "contact", "actuators": rk.PD(kp=5e5, kd=20.0, target=q + 0.01)}
    step = rk.step_derivatives(robot, q, v, tau, **given)
    for k, e in enumerate(1e-6 * np.eye(robot.nv)):
        ends = [rk.step_derivatives(robot, q + side * e, v, tau, **given) for side in (1.0, -1.0)]
        slope = np.r_[ends[0].q - ends[1].q, ends[0].v - ends[1].v] / 2e-6
        assert np.abs(slope - step.A[:, k]).max() < 1e-7 * np.abs(step.A[:, : robot.nv]).max()


@pytest.mark.parametrize("speed", [0.99, 1.03])
def test_an_impact_that_a_motor_at_its_largest_speed_passes_on(speed: float) -> None:
    """It pushes a ball that hits one that touches another; at 1.03 m/s the limit acts in a turn."""
    builder = ModelBuilder("rail").link("base")
    for k, mass in enumerate((1.0, 2.0, 1.5)):
        at, shape = Placement(position=np.array([0.2 * k, 0.0, 0.0])), Shape(Sphere(0.1))
        builder.link(f"{k}", mass, inertia=0.01 * np.eye(3), collisions=(shape,))
        builder.joint(f"j{k}", "prismatic", "base", f"{k}", at)
    robot, tau = builder.build("fixed"), np.zeros(3)
    motor = rk.Velocity(gain=1e5, target=1.0, joints=["j0"], effort=np.inf, max_velocity=1.0)
    pairs = rk.collision_pairs(robot).with_law(restitution=0.5, friction=0.0)
    given = {"dt": DT, "integrator": "contact", "self_collision": pairs, "actuators": motor}
    q, v = np.array([1e-4, 0.0, -1e-5]), np.array([speed, 0.0, 0.0])
    step = rk.step_derivatives(robot, q, v, tau, **given)
    for k, e in enumerate(1e-6 * np.eye(6)):
        ends = [rk.step_derivatives(robot, q + d[:3], v + d[3:], tau, **given) for d in (e, -e)]
        slope = np.r_[ends[0].q - ends[1].q, ends[0].v - ends[1].v] / 2e-6
        assert np.abs(slope - step.A[:, k]).max() < 1e-8


def moving_four_bar(robot: rk.Robot) -> tuple[np.ndarray, np.ndarray]:
    """A state that its loop allows."""
    how = {"duration": 0.1, "dt": 1e-3, "integrator": "contact", "joint_damping": 0.0}
    run = rk.simulate(robot, closed_four_bar(robot), np.ones(robot.nv), **how)
    return run.q[-1], run.v[-1]


def test_loops_to_second_order() -> None:
    """How far the drift opens them is of that order, and its change is held."""
    robot = free_four_bar()
    q, v = moving_four_bar(robot)
    off = [error(linear(robot, dt=dt, joint_damping=0.0), q, v, h=1e-6) for dt in (4e-3, 1e-3)]
    assert off[1] < 0.1 * off[0] < 0.001


def test_a_landing_opens_loops_by_more() -> None:
    """By a term of first order of velocities: the change of the projection counts."""
    robot = free_four_bar("floating")
    q = closed_four_bar(robot)
    q[6] = 0.6
    how = {"ground": rk.Ground(), "dt": DT, "joint_damping": 0.0}
    run = rk.simulate(robot, q, duration=0.4, integrator="contact", record_every=1, **how)
    steps = linear(robot, how["ground"], joint_damping=0.0)
    for q, v in zip(run.q[150:], run.v[150:], strict=True):
        steps._taken(q, v, np.zeros(robot.nv))
        if steps.simulation.work["landed"][0]:
            break
    assert steps.simulation.work["landed"][0]
    assert error(steps, q, v, h=1e-6) < 1e-3


def test_without_velocity_products_and_drifts_it_is_the_last_factor() -> None:
    """dy/dtau = dt A^-1 of what sticks and is at rest: the matrix that the step was solved with."""
    robot = body(CUBE)
    q, v = fallen(robot, 1.0)
    steps = linear(robot, rk.Ground())
    _, _, found = steps(q, 0.0 * v, np.zeros(6))
    presses, slides, _, _ = acting(steps)
    assert sum(presses) == 4 and not any(slides)
    by_tau = found[6:, 12:]
    assert np.abs(by_tau @ product_of_factors(steps.simulation.work) / DT - np.eye(6)).max() < 1e-6


@pytest.mark.parametrize("name", ["quadruped", "cube"])
def test_the_step_is_the_simulators_own(name: str) -> None:
    """Up to the tolerance of a run's: derivatives are taken of a step that is solved to rounding."""
    robot = body(CUBE) if name == "cube" else floating(name)
    q, v = fallen(robot, 0.1)
    how = {"dt": DT, "ground": rk.Ground()}
    run = rk.simulate(robot, q, v, duration=DT, record_every=1, **how)
    step = rk.step_derivatives(robot, q, v, **how)
    assert np.abs(step.q - run.q[-1]).max() < 1e-7 and np.abs(step.v - run.v[-1]).max() < 1e-4
    assert step.A.shape == (2 * robot.nv,) * 2 and step.B.shape == (2 * robot.nv, robot.nv)


@pytest.mark.parametrize("name", ["quadruped", "loops"])
def test_reverse_mode_is_the_transpose(name: str) -> None:
    if name == "loops":
        robot = free_four_bar()
        q, v, ground = closed_four_bar(robot), np.ones(robot.nv), None
    else:
        robot, ground = floating(name), rk.Ground()
        q, v = fallen(robot, 0.1)
    steps, rng, tau = linear(robot, ground), np.random.default_rng(2), np.ones(robot.nv)
    q1, v1, M = steps(q, v, tau)
    M = M.copy()
    of_q, of_v = rng.normal(size=(2, robot.nv))
    q2, v2, found = steps.pullback(q, v, tau, of_q, of_v)
    assert (q1 == q2).all() and (v1 == v2).all()
    expected = np.r_[of_q, of_v] @ M
    assert np.abs(found.ravel() - expected).max() < 1e-8 * np.abs(expected).max()


def test_a_loop_that_the_step_holds_harder_has_no_more_rounding() -> None:
    """A linkage that is 1e-7 short of stretched, on the ground; both modes were 2e-6 apart."""
    robot, ground = nearly_stretched(1e-7, "floating"), rk.Ground()
    start = rk.close_loops(robot, np.array([1, 0, 0, 0, 0, 0, 0.02, 0.2, -0.3, 0.2]))
    run = rk.simulate(robot, start, duration=0.1, dt=1e-3, ground=ground, joint_damping=0.0)
    q, v, tau = run.q[-1], run.v[-1], np.zeros(robot.nv)
    steps = linear(robot, ground, dt=5e-4, joint_damping=0.0)
    M = steps(q, v, tau)[2].copy()
    assert steps.simulation.work["held"][0] < 1e-3
    of_q, of_v = np.random.default_rng(0).normal(size=(2, robot.nv))
    found = steps.pullback(q, v, tau, of_q, of_v)[2]
    expected = np.r_[of_q, of_v] @ M
    assert np.abs(found.ravel() - expected).max() < 2e-7 * np.abs(expected).max()


PARAMETERS = {"shape_friction": 1e-6, "shape_restitution": 1e-6, "gravity": 1e-5, "inertia": 1e-7}


HELD = {"quadruped": 2e-5, "loops": 3e-3}
"""Dry friction's compliance follows inertias, and how the end of a step closes loops."""

ROUNDING = 1e-13  # of the end of a step; a difference has that over the change of the parameter


def worth(steps: LinearSteps, state: tuple, weights: np.ndarray) -> dict[str, np.ndarray]:
    """What parameters are worth, the numbers of the step's arrays that they are."""
    steps.pullback(*state, *weights)
    of = {name: x.copy() for name, x in steps.found.items() if name.startswith("of_")}
    return {
        "shape_friction": of["of_shape"][:, 0],
        "shape_restitution": of["of_shape"][:, 1],
        "gravity": of["of_gravity"],
        "inertia": of["of_inertia"],
    }


@pytest.mark.parametrize("name", [*ON_GROUND, "quadruped", "loops"])
def test_what_friction_restitution_gravity_and_inertias_are_worth(name: str) -> None:
    """Against differences of the steps; bodies on the ground slide, stick, turn and bounce."""
    rng = np.random.default_rng(5)
    if name == "quadruped":
        robot = floating(name)
        (q, v), steps = fallen(robot, 0.1), linear(robot, rk.Ground())
    elif name == "loops":
        robot = free_four_bar()
        q, v = moving_four_bar(robot)
        steps = linear(robot, joint_damping=0.0)
    else:
        shape, turn, height, v, how = ON_GROUND[name]
        robot = body(shape)
        q, v = laid(robot, turn, height, v)
        steps = linear(robot, rk.Ground(**how))
    tau, weights = rng.normal(size=robot.nv), rng.normal(size=(2, robot.nv))
    found = worth(steps, (q, v, tau), weights)
    end, x, same = steps(q, v, tau)[0], steps.simulation.arrays, acting(steps)
    for parameter, h in PARAMETERS.items():
        if parameter == "shape_restitution" and not x[parameter].any():
            continue  # below 0 there is none
        if parameter == "inertia" and name == "loops":
            continue  # what closes them is weighted by inertias, which is held
        given = x[parameter].copy()
        along = rng.normal(size=given.shape) * (np.abs(given).max(axis=0) if parameter == "inertia" else 1.0)
        ends = []
        for step in (h, -h):
            x[parameter][...] = given + step * along
            q1, v1, _ = steps(q, v, tau)
            ends.append(weights[0] @ robot.difference(end, q1) + weights[1] @ v1)
            assert acting(steps) == same
        x[parameter][...] = given
        slope = (ends[0] - ends[1]) / (2.0 * h)
        expected = float((found[parameter] * along).sum())
        large = np.linalg.norm(found[parameter]) * np.linalg.norm(along)
        assert abs(slope - expected) < HELD.get(name, 1e-6) * large + ROUNDING / h, parameter


def test_robots_that_bounce_have_derivatives_in_every_step() -> None:
    """Also where one is passed on to a contact that gravity would not let return: NaN in 1 % of steps."""
    robot = floating("humanoid")
    q, v = rk.standing_configuration(robot), np.random.default_rng(1).normal(size=robot.nv)
    q[6] += 0.02
    how = {"ground": rk.Ground(restitution=0.5, friction=0.3), "dt": DT, "self_collision": True}
    run = rk.simulate(robot, q, v, duration=0.4, integrator="contact", record_every=1, **how)
    assert np.isfinite(rk.step_derivatives(robot, run.q, run.v, **how).A).all()


def test_plain_python_computes_the_same() -> None:
    robot = body(CUBE)
    q, v = laid(robot, (0.8, 0.1, 0), 0.1405, (0.5, 0.2, 0.1, 0.3, 0.2, -1))
    how = {"dt": DT, "ground": rk.Ground()}
    code, plain = (rk.step_derivatives(robot, q, v, engine=name, **how) for name in (None, "python"))
    for a, b in zip(code, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(b).max()))


def landing(steps: LinearSteps, q: np.ndarray, v: np.ndarray, count: int) -> np.ndarray:
    """Where a state that is lowered lands fast with so many contacts in the next step."""
    for _ in range(4000):
        steps._taken(q, v, np.zeros(len(v)))
        if steps.simulation.work["landed"][0] >= count:
            return q
        q = q - 1e-4 * np.eye(len(q))[6]
    raise AssertionError("nothing lands")


@pytest.mark.parametrize("friction", [0.2, 20.0])
def test_two_bodies_that_meet_in_the_air_at_several_points(friction: float) -> None:
    robot = rk.together({"a": body(CUBE), "b": body(Box((0.3, 0.1, 0.1)))})
    pairs = rk.collision_pairs(robot).with_law(friction=friction)
    steps = linear(robot, rk.Ground(), self_collision=pairs)
    low, high = (
        laid(body(CUBE), turn, z, v)
        for turn, z, v in (
            ((0, 0, 0.3), 2.3, (0.1, 0.2, 0.5, 0.1, 0, -1.5)),
            ((1e-3, 2e-3, 0.1), 2.0, (0.05, 0, 0.2, 0, 0, 1)),
        )
    )
    q, v = (np.r_[a, b] for a, b in zip(low, high, strict=True))
    q = landing(steps, q, v, 3)
    assert error(steps, q, v, h=3e-8) < 1e-6
    weights, x = np.random.default_rng(0).normal(size=(2, robot.nv)), steps.simulation.arrays
    steps.pullback(q, v, np.zeros(robot.nv), *weights)
    found, ends = steps.found["of_between"][0], []
    for mu in (friction - 1e-4, friction + 1e-4):
        x["between"][0] = mu
        ends.append([end.copy() for end in steps(q, v, np.zeros(robot.nv))[:2]])
    (q0, v0), (q1, v1) = ends
    slope = (weights[0] @ robot.difference(q0, q1) + weights[1] @ (v1 - v0)) / 2e-4
    assert (abs(found) > 1e-5) == (friction < 1.0)  # whether they slide
    assert found == pytest.approx(slope, rel=1e-6, abs=1e-10)


def test_robots_that_land() -> None:
    """Feet that land while the other one stands, joints at their limits, with motors and pairs of links."""
    robot = floating("humanoid")
    q, v = rk.standing_configuration(robot), np.random.default_rng(0).normal(size=robot.nv)
    how = {"ground": rk.Ground(friction=0.5), "dt": DT, "integrator": "contact", "self_collision": True}
    run = rk.simulate(robot, q, v, duration=0.5, record_every=1, **how)
    steps, checked = linear(robot, how["ground"], self_collision=True), 0
    for q, v in zip(run.q[::3], run.v[::3], strict=True):
        steps._taken(q, v, np.zeros(robot.nv))
        if steps.simulation.work["landed"][0] and checked < 3:
            assert error(steps, q, v) < 2e-5
            checked += 1
    assert checked == 3


def test_rows_of_states_inertias_and_grounds() -> None:
    robot = body(CUBE)
    states = [laid(robot, (0.8, 0.1, 0), z, (0.5, 0.2, 0.1, 0.3, 0.2, -1)) for z in (0.1405, 0.2)]
    q, v = (np.array(x) for x in zip(*states, strict=True))
    how = {"dt": DT, "integrator": "contact"}
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 1.5])[:, None, None])
    ground = rk.Ground(friction=[0.3, 0.9])
    for given, of_ground, alone in (
        (robot, rk.Ground(), lambda k: (robot, rk.Ground())),
        (varied, rk.Ground(), lambda k: (varied.sample(k), rk.Ground())),
        (robot, ground, lambda k: (robot, ground.row(k))),
    ):
        found = rk.step_derivatives(given, q, v, ground=of_ground, **how)
        for k in range(2):
            one, own = alone(k)
            expected = rk.step_derivatives(one, q[k], v[k], ground=own, **how)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a[k], b)
