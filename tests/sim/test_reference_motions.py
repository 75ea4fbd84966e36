"""Motions with closed forms: positions, velocities, accelerations, and the reactions of each kind of joint.

What validation suites of multibody programs compute, here beside what the book says. Passive methods are
compared at the records, steps of "contact" at the middle of the step that led to each.
"""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative
from scipy.integrate import solve_ivp

import robokit as rk

G, DT = 9.81, 1e-3
SMALL = {"rkmk4": 1e-8, "energy_momentum": 1e-8, "midpoint": 2e-5, "contact": 2e-5}


def at(*position, rotation=None):
    return rk.Placement(np.eye(3) if rotation is None else rotation, np.array(position, dtype=float))


def one_joint(
    kind, axis=(0, 0, 1), placement=None, mass=2.0, com=(0, 0, 0), inertia=(0.1, 0.2, 0.3), **options
):
    """A body on a joint of the world."""
    b = rk.ModelBuilder(kind).link("ground").link("body", mass, com, np.diag(inertia))
    return b.joint("joint", kind, "ground", "body", axis=axis, placement=placement, **options).build()


def times(run):
    """When accelerations and reactions are those of the motion."""
    if run.summary["integrator"] != "contact":
        return run.t
    return np.maximum(run.t - 0.5 * DT, 0.5 * DT)


def compare(robot, q, v, closed, method, frame="joint", **options):
    """A run beside ``closed(t)``: q, v at the records; a and reactions (T, 6) at the times of these."""
    run = rk.simulate(robot, q, v, duration=0.6, dt=DT, record_every=20, integrator=method, **options)
    there, then = closed(run.t), closed(times(run))
    found = {"q": run.q, "v": run.v, "a": run.a}
    for name, value in found.items():
        if name in there:
            expected = (then if name == "a" else there)[name]
            assert relative(value, np.broadcast_to(expected, value.shape)) < SMALL[method], (method, name)
    reactions = run.joint_reactions(frame)
    for joint, wrench in then.get("reactions", {}).items():
        assert relative(reactions[joint], wrench) < 50 * SMALL[method], (method, joint)
    return run


def stack(*columns):
    return np.stack(np.broadcast_arrays(*columns), axis=-1)


METHODS = ["rkmk4", "midpoint", "energy_momentum", "contact"]


@pytest.mark.parametrize("method", METHODS)
def test_a_pendulum_on_a_tilted_revolute_joint(method):
    """Its axis is tilted by 45 degrees: gravity along it is carried by the bearing."""
    c = np.sqrt(0.5)
    tilt = np.array([[1, 0, 0], [0, c, -c], [0, c, c]])  # the axis z of the joint is (0, -c, c)
    m, l, I = 2.0, 0.5, 0.3
    robot = one_joint(
        "continuous", placement=at(0, 0, 0, rotation=tilt), com=(l, 0, 0), inertia=(0.01, 0.3, I)
    )
    down = tilt.T @ [0, 0, -G]  # in the joint's frame: (0, -c g, -c g)
    path = solve_ivp(
        lambda t, y: [y[1], m * l * (np.cos(y[0]) * down[1] - np.sin(y[0]) * down[0]) / (I + m * l * l)],
        (0, 1), [0.3, 1.0], "DOP853", rtol=1e-12, atol=1e-12, dense_output=True,
    )  # fmt: skip

    def closed(t):
        theta, w = path.sol(t)
        alpha = m * l * (np.cos(theta) * down[1] - np.sin(theta) * down[0]) / (I + m * l * l)
        out, along = stack(np.cos(theta), np.sin(theta), 0.0), stack(-np.sin(theta), np.cos(theta), 0.0)
        force = m * (l * alpha[:, None] * along - l * (w**2)[:, None] * out - down)
        arm = l * out  # moments about the joint: those of the weight and of the bent way of the mass
        moment = np.cross(arm, force) + stack(0.0, 0.0, I * alpha)
        return {
            "q": theta[:, None],
            "v": w[:, None],
            "a": alpha[:, None],
            "reactions": {"joint": np.hstack([moment, force])},
        }

    compare(robot, [0.3], [1.0], closed, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_slide_on_an_inclined_prismatic_joint(method):
    s, c = np.sin(0.6), np.cos(0.6)
    R = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])  # x of the joint goes down
    robot = one_joint("prismatic", (1, 0, 0), at(0, 0, 1, rotation=R), com=(0.1, 0.2, 0.3))

    def closed(t):
        force = np.array([0, 0, 2.0 * G * c])  # in the joint's frame; nothing along it
        wrench = np.concatenate([np.cross([0.1, 0.2, 0.3], force), force])
        return {"q": (G * s * t**2 / 2)[:, None], "v": (G * s * t)[:, None], "a": [[G * s]],
                "reactions": {"joint": np.broadcast_to(wrench, (len(t), 6))}}  # fmt: skip

    compare(robot, [0.0], [0.0], closed, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_body_on_a_cylindrical_joint_falls_and_turns(method):
    """The axis is vertical, the centre of mass beside it: centrifugal force, and the weight falls free."""
    m, l, w = 2.0, 0.3, 6.0
    robot = one_joint("cylindrical", com=(l, 0, 0))

    def closed(t):
        theta = w * t
        force = stack(-m * l * w**2 * np.cos(theta), -m * l * w**2 * np.sin(theta), 0.0)
        return {"q": stack(theta, -G * t**2 / 2), "v": stack(w + 0 * t, -G * t), "a": [[0.0, -G]],
                "reactions": {"joint": np.hstack([np.zeros_like(force), force])}}  # fmt: skip

    compare(robot, [0.0, 0.0], [w, 0.0], closed, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_nut_runs_down_a_screw(method):
    m, C, h = 2.0, 0.3, 0.05
    robot = one_joint("helical", pitch=h, inertia=(0.2, 0.2, C))
    alpha = -m * G * h / (C + m * h * h)

    def closed(t):
        push = m * (G + h * alpha)  # along the thread, and the moment that turns the nut
        wrench = np.broadcast_to([0, 0, C * alpha, 0, 0, push], (len(t), 6))
        return {"q": (alpha * t**2 / 2)[:, None], "v": (alpha * t)[:, None], "a": [[alpha]],
                "reactions": {"joint": wrench}}  # fmt: skip

    compare(robot, [0.0], [0.0], closed, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_conical_pendulum_on_a_spherical_joint(method):
    """A rod at a steady angle: no moment in the joint, its force carries weight and way."""
    m, l, tilt = 2.0, 0.8, 0.7
    c, s = np.cos(tilt), np.sin(tilt)
    thin = m * l**2 / 3  # about the end of a rod from 0 to -l; none about its own axis
    robot = one_joint("spherical", com=(0, 0, -l / 2), inertia=(thin / 4, thin / 4, 1e-12))
    W = np.sqrt(m * G * l / 2 / (thin * c))  # of the precession about z
    start = rk.rotations.rotation_vector_to_quat_wxyz([0, -tilt, 0])  # its end at +x
    spin = rk.rotations.quat_wxyz_to_matrix(start).T @ [0, 0, W]

    def closed(t):
        r = l / 2 * s
        force = stack(-m * W**2 * r * np.cos(W * t), -m * W**2 * r * np.sin(W * t), m * G)
        turn = rk.rotations.rotation_vector_to_matrix(stack(0.0, 0.0, W * t))
        q = rk.rotations.matrix_to_quat_wxyz(turn @ rk.rotations.quat_wxyz_to_matrix(start))
        return {
            "q": q,
            "v": spin,
            "a": [[0.0, 0.0, 0.0]],
            "reactions": {"joint": np.hstack([0 * force, force])},
        }

    run = rk.simulate(robot, start, spin, duration=0.4, dt=DT, record_every=20, integrator=method)
    # Weight and gyroscopic moment cancel: no step may be judged by what is left of both.
    assert run.summary.get("contact_iterations_most", 1) <= 2 and not run.summary.get("steps_not_settled")
    signs = np.sign(np.sum(run.q * closed(run.t)["q"], axis=1))[:, None]
    assert relative(signs * run.q, closed(run.t)["q"]) < 10 * SMALL[method]
    found, then = run.joint_reactions("world")["joint"], closed(times(run))["reactions"]["joint"]
    assert relative(found, then) < 50 * SMALL[method]
    assert np.abs(run.a).max() < 1e-3 * W**2


@pytest.mark.parametrize("method", METHODS)
def test_a_top_that_precesses_steadily(method):
    """A gyroscope with its axis level: its support carries the weight and the way of its centre."""
    m, l, A, C, spin = 1.5, 0.2, 0.02, 0.01, 300.0
    robot = one_joint("spherical", mass=m, com=(l, 0, 0), inertia=(C, A, A))
    W = m * G * l / (C * spin)  # exact where the axis is level
    dt, tolerance = (1e-4, 3e-4) if method in ("contact", "midpoint") else (2.5e-4, 1e-6)
    run = rk.simulate(robot, None, [spin, 0.0, W], duration=0.2, dt=dt, record_every=100, integrator=method)
    t = np.maximum(run.t - 0.5 * dt, 0.5 * dt) if method == "contact" else run.t
    force = stack(-m * l * W**2 * np.cos(W * t), -m * l * W**2 * np.sin(W * t), m * G)
    found = run.joint_reactions("world")["joint"]
    assert relative(found[:, 3:], force) < 10 * tolerance
    assert np.abs(found[:, :3]).max() < 1e-9
    axis = rk.forward_kinematics(robot, run.q)["body"][0][:, :, 0]
    assert relative(axis, stack(np.cos(W * run.t), np.sin(W * run.t), 0.0)) < tolerance


@pytest.mark.parametrize("method", ["rkmk4", "contact"])
def test_a_rod_without_mass_pulls(method):
    """A distance constraint to the world under a body that floats."""
    length, m = 0.5, 2.0
    ball = rk.ModelBuilder("ball").link("ball", m, (0, 0, 0), 0.01 * np.eye(3))
    robot = ball.loop_joint("rod", "distance", "world", "ball", at(0, 0, 1), length=length).build("floating")
    q = robot.neutral()
    q[4:] = length * np.sin(1.0), 0.0, 1.0 - length * np.cos(1.0)
    path = solve_ivp(
        lambda t, y: [y[1], -G / length * np.sin(y[0])],
        (0, 1), [1.0, 0.0], rtol=1e-12, atol=1e-12, dense_output=True,
    )  # fmt: skip

    def closed(t):
        theta, w = path.sol(t)
        pull = m * (G * np.cos(theta) + length * w**2)
        force = pull[:, None] * stack(-np.sin(theta), 0.0, np.cos(theta))
        return {"reactions": {"rod": np.hstack([0 * force, force])}}

    run = compare(robot, q, None, closed, method, frame="world")
    assert np.abs(run.joint_reactions()["floating_base"]).max() < 1e-9


def test_springs_along_and_about_a_joint():
    """A mass on a spring and damper, and a wheel on a torsional one: damped swings."""
    m, k, d, x0 = 2.0, 80.0, 3.0, 0.1
    robot = one_joint("prismatic", (1, 0, 0))
    wheel = one_joint("continuous", inertia=(0.1, 0.2, m))
    z = d / (2 * m)
    w = np.sqrt(k / m - z * z)

    def closed(t):
        e = x0 * np.exp(-z * t)
        x = e * (np.cos(w * t) + z / w * np.sin(w * t))
        v = -e * (w + z * z / w) * np.sin(w * t)
        return {"q": x[:, None], "v": v[:, None], "a": (-(k * x + d * v) / m)[:, None]}

    spring = rk.Spring("ground", "body", (-1.0, 0, 0), (0, 0, 0), stiffness=k, damping=d, rest_length=1.0)
    run = compare(robot, [x0], [0.0], closed, "contact", springs=spring)
    bearing = np.array([0, 0, 0, 0, 0, m * G])
    assert relative(run.joint_reactions("joint")["joint"], np.broadcast_to(bearing, (len(run), 6))) < 1e-9
    hub = rk.JointSpring("joint", stiffness=k, damping=d)
    run = compare(wheel, [x0], [0.0], closed, "contact", springs=hub)
    # a spring at a joint is beside it: its moment is its own, the bearing has none about the axis
    assert np.abs(run.joint_reactions()["joint"][:, 2]).max() < 1e-9
    assert relative(-run.springs[0].force, m * run.a[:, 0]) < 1e-2


def test_a_bar_that_is_driven_about_a_joint():
    """Turned at a given rate: centrifugal force, weight, and the torque that the drive gives."""
    m, l, W = 2.0, 0.5, 8.0
    robot = one_joint("continuous", (0, 1, 0), com=(l, 0, 0))
    motion = rk.PrescribedMotion("joint", lambda t: W * t)

    def closed(t):
        c, s = np.cos(W * t), np.sin(W * t)
        force = stack(-m * l * W**2 * c, 0.0, m * l * W**2 * s + m * G)
        moment = np.cross(stack(l * c, 0.0, -l * s), force)
        return {"q": (W * t)[:, None], "v": [[W]], "reactions": {"joint": np.hstack([moment, force])}}

    compare(robot, [0.0], [W], closed, "contact", frame="world", motions=motion)


def test_a_slider_crank_at_constant_speed():
    """The piston's acceleration and what the guide and the pin carry, by the book."""
    r, l, W, m = 0.2, 0.7, 12.0, 1.5
    b = rk.ModelBuilder("slider_crank").link("frame")
    for name, mass in (("crank", 0.5), ("rod", 1e-6), ("piston", m)):
        b.link(name, mass, (0, 0, 0), 1e-8 * np.eye(3) if name == "rod" else 1e-3 * np.eye(3))
    b.joint("main", "continuous", "frame", "crank", axis=(0, 0, 1))
    b.joint("pin", "continuous", "crank", "rod", axis=(0, 0, 1), placement=at(r, 0, 0))
    b.joint("guide", "prismatic", "frame", "piston", axis=(1, 0, 0))
    b.loop_joint("wrist", "revolute", "rod", "piston", at(l, 0, 0), at(0, 0, 0), (0, 0, 1))
    robot = b.build(gravity=(0, 0, 0))

    def place(t):
        theta = W * t + 0.4
        phi = np.arcsin(r / l * np.sin(theta))
        return theta, phi, r * np.cos(theta) + l * np.cos(phi)

    def acceleration(t):
        theta, phi, _ = place(t)
        phi1 = r * W * np.cos(theta) / (l * np.cos(phi))
        phi2 = (-r * W**2 * np.sin(theta) + l * phi1**2 * np.sin(phi)) / (l * np.cos(phi))
        x2 = -r * W**2 * np.cos(theta) - l * (phi2 * np.sin(phi) + phi1**2 * np.cos(phi))
        return phi, x2

    theta, phi, x = place(0.0)
    phi1 = r * W * np.cos(theta) / (l * np.cos(phi))
    start = [theta, -phi - theta, x], [W, -phi1 - W, -r * W * np.sin(theta) - l * phi1 * np.sin(phi)]
    turned = rk.PrescribedMotion("main", lambda t: 0.4 + W * t)
    run = rk.simulate(robot, *start, duration=0.5, dt=DT, record_every=10, motions=turned)
    assert relative(run.q[:, 2], place(run.t)[2]) < 1e-6
    phi, x2 = acceleration(times(run))
    assert np.abs(run.a[:, 2] - x2).max() < 1e-6 * np.abs(x2).max()
    found = run.joint_reactions("world")
    size = m * np.abs(x2).max()
    # the rod has no mass: it pushes along itself, and the guide takes what is across
    assert np.abs(found["wrist"][:, 3] - m * x2).max() < 1e-5 * size
    assert np.abs(found["wrist"][:, 4] + m * x2 * np.tan(phi)).max() < 1e-5 * size
    assert np.abs(found["guide"][:, 4] - m * x2 * np.tan(phi)).max() < 1e-5 * size


@pytest.mark.parametrize("method", ["rkmk4", "contact"])
def test_a_rack_that_its_pinion_drives(method):
    """Coupled joints: the torque on the pinion also moves the rack, whose teeth pass m r alpha on."""
    m, I, r, torque = 3.0, 0.02, 0.1, 0.5
    b = rk.ModelBuilder("rack").link("frame").link("pinion", 1.0, (0, 0, 0), I * np.eye(3))
    b.link("rack", m, (0, 0, 0), 0.01 * np.eye(3))
    b.joint("pinion_joint", "continuous", "frame", "pinion", axis=(0, 1, 0))
    b.joint("rack_joint", "prismatic", "frame", "rack", axis=(1, 0, 0), mimic=rk.Mimic("pinion_joint", r))
    robot = rk.model.couple(b.build())
    alpha = torque / (I + m * r * r)
    run = rk.simulate(robot, duration=0.3, dt=DT, integrator=method, controller=lambda t, q, v: [torque])
    assert np.abs(run.a - alpha).max() < 1e-9 * alpha
    found = run.joint_reactions()
    np.testing.assert_allclose(found["rack_joint"][:, 3], m * r * alpha, rtol=1e-9)
    np.testing.assert_allclose(found["pinion_joint"][:, 1], I * alpha, rtol=1e-9)
