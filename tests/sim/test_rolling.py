"""Wheels, discs and coins: they roll on their lowest point without bumps, stand, and wobble down."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import sim_models as m
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Mesh, ModelBuilder, Placement, Shape, Sphere

RADIUS, WIDTH = 0.1, 0.05
LYING = np.array([math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0])  # turns the axis z into -y


def _wheel(shape, mass=1.0, radius=RADIUS, width=WIDTH) -> rk.Robot:
    across = mass * (3.0 * radius**2 + width**2) / 12.0
    builder = ModelBuilder("wheel")
    builder.link(
        "disc",
        mass=mass,
        inertia=np.diag([across, across, 0.5 * mass * radius**2]),
        collisions=(Shape(shape),),
    )
    return builder.build("floating")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, rk.Robot]:
    """A cylinder, and the same as a mesh of 64 segments."""
    import trimesh

    path = tmp_path_factory.mktemp("meshes") / "disc.stl"
    trimesh.creation.cylinder(radius=RADIUS, height=WIDTH, sections=64).export(path)
    return {
        "cylinder": _wheel(Cylinder(RADIUS, WIDTH)),
        "mesh": _wheel(Mesh("disc.stl", path=path)),
    }


@pytest.mark.parametrize("kind", ["cylinder", "mesh"])
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_wheel_rolls_five_metres_and_keeps_its_speed(wheels, kind, speed):
    v0 = np.array([0.0, 0.0, -speed / RADIUS, speed, 0.0, 0.0])
    q0 = np.array([*LYING, 0.0, 0.0, RADIUS])
    run = rk.simulate(wheels[kind], q0, v0, duration=5.0 / speed, dt=1e-3, ground=rk.Ground())
    x = run.q[:, 4]
    kept = (x[-1] - x[-11]) / (run.t[-1] - run.t[-11]) / speed
    assert kept == pytest.approx(1.0, abs=1e-6) and x[-1] == pytest.approx(5.0, rel=1e-4)
    assert abs(run.q[-1, 5]) < 1e-6


def test_a_ball_of_a_mesh_rolls_as_a_ball(tmp_path):
    import trimesh

    path = tmp_path / "ball.stl"
    trimesh.creation.icosphere(subdivisions=3, radius=RADIUS).export(path)
    builder = ModelBuilder("ball")
    inertia = np.eye(3) * 0.4 * RADIUS**2
    builder.link("ball", mass=1.0, inertia=inertia, collisions=(Shape(Mesh("ball.stl", path=path)),))
    angle = 0.15
    q0 = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, RADIUS]
    run = rk.simulate(builder.build("floating"), q0, ground=rk.Ground(), gravity=m.tilted(angle))
    assert run.q[-1, 4] == pytest.approx(0.5 * m.G * math.sin(angle) / 1.4, rel=1e-4)


def test_a_mesh_of_an_ellipsoid_rocks_as_an_ellipsoid(tmp_path):
    """About its longest axis, little, on the radius b^2/c, its middle at c; facets would stop it."""
    import trimesh

    a, b, c = 0.1, 0.05, 0.03
    egg = trimesh.creation.icosphere(subdivisions=3)
    egg.apply_scale([a, b, c])
    egg.export(tmp_path / "egg.stl")
    builder, inertia = ModelBuilder("egg"), np.diag([b * b + c * c, a * a + c * c, a * a + b * b]) / 5.0
    egg = Mesh("egg.stl", path=tmp_path / "egg.stl")
    builder.link("egg", mass=1.0, inertia=inertia, collisions=(Shape(egg),))
    rate = math.sqrt(m.G * (b * b / c - c) / (inertia[0, 0] + c * c))
    start, speed = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, c], 0.02 * rate
    v0 = [speed, 0.0, 0.0, 0.0, -speed * c, 0.0]
    run = rk.simulate(builder.build("floating"), start, v0, duration=2.0, dt=1e-3, ground=rk.Ground())
    tilt = 2.0 * np.arctan2(run.q[:, 1], run.q[:, 0])
    np.testing.assert_allclose(tilt, 0.02 * np.sin(rate * run.t), atol=1e-3)


def test_a_thin_disc_rolls_upright_and_stands():
    """Tilted by a tenth of a milliradian: its rim of 1 cm holds it, also where its spin alone would not."""
    radius, width = 0.25, 0.01
    disc = _wheel(Cylinder(radius, width), radius=radius, width=width)
    turn = 0.25 * math.pi + 0.5e-4
    for speed in (0.0, 0.5):
        q0 = np.array([math.cos(turn), math.sin(turn), 0.0, 0.0, 0.0, 0.0, radius])
        v0 = [0.0, 0.0, -speed / radius, speed, 0.0, 0.0]
        run = rk.simulate(disc, q0, v0, duration=4.0, ground=rk.Ground())
        assert np.linalg.norm(run.v[-1]) == pytest.approx(np.linalg.norm(v0), rel=1e-3, abs=1e-3)
        assert abs(1.0 - 2.0 * (run.q[:, 1] ** 2 + run.q[:, 2] ** 2)).max() < 2e-4  # its axis stays level


TIP, HIGH = 0.004, 0.1  # radius of a top's tip, and its distance from the middle [m]
RIM, HALF = 0.1, 0.005  # radius of a disc and half its width [m]
BALL, OFF = 0.05, np.array([0.02, 0.0, 0.01])  # radius of a ball, and its centre from the middle [m]


def _tip(n):
    return np.array([0.0, 0.0, -HIGH]) - TIP * n


def _ball(n):
    return OFF - BALL * n


def _rim(n):
    across = np.array([n[0], n[1], 0.0])
    return -RIM * across / np.linalg.norm(across) - np.array([0.0, 0.0, math.copysign(HALF, n[2])])


def _matrix(wxyz):
    return Rotation.from_quat(np.roll(wxyz, -1)).as_matrix()


def _leaning(tilt):
    return np.array([math.cos(0.5 * tilt), math.sin(0.5 * tilt), 0.0, 0.0])


@cache
def _rolled(place, moments, tilt, spin, duration):
    """A body of 1 kg that rolls without slip: turn wxyz, angular velocity in its axes and x, y at the end.

    ``place``: of the contact from the middle, for the direction up, both in body axes. The force there
    keeps the body's point at rest, so the middle moves at w x place the other way. ``moments``: of inertia
    about the body's axes [kg m^2]. It starts turned by ``tilt`` about x, with the angular velocity ``spin``.
    """
    inertia = np.diag(moments)

    def rate(_, s):
        w, turn = s[4:7], _matrix(s[:4])
        up = turn.T @ [0.0, 0.0, 1.0]
        p, way, h = place(up), np.cross(up, w), 1e-6
        moved = (place(up + h * way) - place(up - h * way)) / (2.0 * h)
        cross = np.cross(np.eye(3), p)
        gravity = m.G * up
        rest = np.cross(p, gravity - np.cross(w, moved + np.cross(w, p))) - np.cross(w, inertia @ w)
        turns = 0.5 * np.array([-s[1:4] @ w, *(s[0] * w + np.cross(s[1:4], w))])
        return [*turns, *np.linalg.solve(inertia - cross @ cross, rest), *(turn @ np.cross(p, w))[:2]]

    start = [*_leaning(tilt), *spin, 0.0, 0.0]
    found = solve_ivp(rate, (0.0, duration), start, rtol=1e-9, atol=1e-11, method="DOP853")
    return found.y[:, -1]


@pytest.mark.parametrize("dt", [1e-3, 2.5e-4])
@pytest.mark.parametrize("middle", [(0.0, 0.0, 0.0), (-0.02, 0.01, 0.05)])
@pytest.mark.parametrize("kind", ["top", "disc", "ball"])
def test_what_rolls_on_a_place_that_moves_on_follows_rigid_body_dynamics(kind, middle, dt):
    """A top on its ball tip precesses at 100 rad/s, a disc of 1 cm leans and rolls round on its rim, and a
    ball rolls whose middle is not that of its mass; wherever the middle of mass is in the link's axes.
    """
    if kind == "ball":
        shape = Shape(Sphere(BALL), Placement(position=OFF))
        place, tilt, moments, spin = _ball, 0.3, (2e-3, 3e-3, 4e-3), (15.0, 5.0, 10.0)
    elif kind == "top":
        shape = Shape(Sphere(TIP), Placement(position=np.array([0.0, 0.0, -HIGH])))
        place, tilt, moments, spin = _tip, 0.5, (2e-3, 2e-3, 3e-3), (0.0, 0.0, 100.0)
    else:
        shape, across = Shape(Cylinder(RIM, 2.0 * HALF)), (3.0 * RIM**2 + 4.0 * HALF**2) / 12.0
        place, tilt, moments, spin = _rim, 1.0, (across, across, 0.5 * RIM**2), (0.0, 2.0, 9.0)
    shape = replace(shape, placement=Placement(position=shape.placement.position + middle))
    body = (
        ModelBuilder(kind)
        .link(kind, 1.0, middle, inertia=np.diag(moments), collisions=(shape,))
        .build("floating")
    )
    turn, w = _leaning(tilt), np.array(spin)
    up = _matrix(turn).T @ [0.0, 0.0, 1.0]
    at = [0.0, 0.0, -place(up) @ up] - _matrix(turn) @ middle
    q0, v0 = [*turn, *at], [*w, *np.cross(place(up) + middle, w)]
    ground = rk.Ground(friction=5.0, sink=1e-6)
    run = rk.simulate(body, q0, v0, duration=1.0, dt=dt, ground=ground)
    found = _rolled(place, moments, tilt, spin, 1.0)
    # The body's friction and depth are not those of rigid bodies; along the normal rims are of first order.
    bound = 2.0 * (dt / 1e-3) ** (1.5 if kind == "top" else 1.0)
    axis, wanted = (_matrix(q)[:, 2] for q in (run.q[-1, :4], found[:4]))
    assert np.abs(axis - wanted).max() < 1e-3 * bound
    end = run.q[-1, 4:] + _matrix(run.q[-1, :4]) @ middle
    assert np.linalg.norm(end[:2] - found[7:]) < 3e-4 * bound


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_coin_that_wobbles_about_its_middle_neither_rises_nor_gains_energy(dt, flat):
    """Euler's disc: with W^2 sin(tilt) r = 4 g its middle rests, and the lowest point runs round at W."""
    radius, width, mass, tilt = 0.04, 0.003, 0.03, 0.5
    coin = _wheel(Cylinder(radius, width), mass, radius, width)
    rate = math.sqrt(4.0 * m.G / (radius * math.sin(tilt)))
    low = radius * math.sin(tilt) + 0.5 * width * math.cos(tilt)
    q0 = [math.cos(0.5 * tilt), math.sin(0.5 * tilt), 0.0, 0.0, 0.0, 0.0, low]
    v0 = [0.0, -rate * math.sin(tilt), 0.0, 0.0, 0.0, 0.0]
    level = rk.Ground() if flat else rk.Ground(terrain=rk.HeightField(np.zeros((3, 3)), 1.0, (-1.0, -1.0)))
    run = rk.simulate(coin, q0, v0, duration=2.0, dt=dt, ground=level)
    axis = 1.0 - 2.0 * (run.q[:, 1] ** 2 + run.q[:, 2] ** 2)
    assert np.arccos(axis) == pytest.approx(tilt, abs=0.02)
    E = run.energy.mechanical
    settled = E[run.t > 0.1]  # the ground gives way at first
    assert settled.max() < E[0] and settled == pytest.approx(settled[0], rel=2e-3)


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_discs_that_roll_and_fall_flat_never_have_more_energy_than_at_the_start(dt):
    """Forty, leaning by .1 to 1.4, with friction 2; their points run round by up to a radian a step."""
    rng, disc = np.random.default_rng(7), _wheel(Cylinder(RIM, 2.0 * HALF), 1.0, RIM, 2.0 * HALF)
    q, v = np.zeros((40, 7)), np.zeros((40, 6))
    for k in range(40):
        tilt = rng.uniform(0.1, 1.4)
        q[k, :2] = math.cos(0.5 * tilt), math.sin(0.5 * tilt)
        up = _matrix(q[k, :4]).T @ [0.0, 0.0, 1.0]
        w, place = rng.normal(size=3) * [4.0, 4.0, 15.0], _rim(up)
        q[k, 6], v[k] = -place @ up, [*w, *np.cross(place, w)]
    ground = rk.Ground(friction=2.0)
    run = rk.rollout(disc, q, v, duration=1.0, dt=dt, ground=ground, joint_damping=0.0, record_every=1)
    across = (3.0 * RIM**2 + 4.0 * HALF**2) / 12.0
    spin = (run.v[..., :3] ** 2) @ [across, across, 0.5 * RIM**2]
    E = 0.5 * (spin + (run.v[..., 3:] ** 2).sum(axis=-1)) + m.G * run.q[..., 6]
    # As before: most of it in the first step, which does not know that they roll.
    assert ((E - E[0]).max(axis=0) / E[0]).max() < 2e-5 * (dt / 1e-3) ** 2


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 4e-3])
def test_rolling_friction_holds_a_ball_on_a_slope(dt):
    """At 0.95 of what it can hold the ball stays where it is, to rounding; at 1.1 it rolls."""
    radius, lever = 0.1, 0.01
    for share in (0.95, 1.1):
        angle = math.atan(share * lever / radius)
        run = rk.simulate(
            m.ball(radius),
            [1, 0, 0, 0, 0, 0, radius],
            duration=3.0,
            dt=dt,
            ground=rk.Ground(rolling=lever),
            gravity=m.tilted(angle),
        )
        if share < 1.0:
            assert abs(run.q[-1, 4] - run.q[len(run) // 2, 4]) < 1e-12 and run.q[-1, 4] < 1e-5
        else:
            pulls = m.G * (math.sin(angle) - lever / radius * math.cos(angle)) / 1.4
            assert run.q[-1, 4] == pytest.approx(0.5 * pulls * 9.0, rel=2e-3)


@pytest.mark.parametrize("dt", [1e-4, 1e-3, 4e-3])
def test_torsional_friction_holds_a_capsule_on_a_slope(dt):
    """It lies across the slope and does not turn, also after it was spun."""
    radius, lever = 0.05, 0.01
    long = 4.0 * radius
    shape = (Shape(Capsule(radius, long)),)
    capsule = ModelBuilder("c").link("c", 1.0, inertia=np.diag([5e-3, 5e-3, 1e-3]), collisions=shape)
    ground = rk.Ground(torsional=lever, rolling=lever)
    gravity = m.tilted(math.atan(0.95 * lever / radius))
    for spin in (0.0, 1.0):
        start, speed = [*LYING, 0.0, 0.0, radius], [0.0, spin, 0.0, 0.0, 0.0, 0.0]
        run = rk.simulate(capsule.build("floating"), start, speed, 1.0, dt, ground, gravity=gravity)
        assert np.abs(run.v[-1]).max() < 1e-12


@pytest.mark.parametrize("law", ["torsional", "rolling"])
def test_a_ball_whose_frame_is_its_lowest_point_is_slowed_down_as_any(law):
    """No arm says how it turns: its only point is at the body's origin."""
    ends = []
    for up in (0.0, 0.1):
        ball = Shape(Sphere(0.1), Placement(position=np.array([0.0, 0.0, 0.1 - up])))
        builder = ModelBuilder("ball")
        builder.link("ball", 1.0, (0.0, 0.0, 0.1 - up), np.diag([4e-3] * 3), collisions=(ball,))
        start, speed = [1.0, *[0.0] * 5, up], [0.0, 0.0, 5.0, 0.0, 0.0, 0.0]
        run = rk.simulate(builder.build("floating"), start, speed, 0.1, ground=rk.Ground(**{law: 0.01}))
        ends.append(run.v[-1])
    np.testing.assert_allclose(ends[0][:3], ends[1][:3], atol=1e-3)
    assert ends[0][2] < 3.0 if law == "torsional" else ends[0][2] > 4.9


@pytest.mark.parametrize("kind", ["cylinder", "mesh"])
def test_a_cylinder_stands_at_rest_and_comes_to_stand(wheels, kind):
    for tilt in (0.0, 0.3):
        q0 = np.array([math.cos(0.5 * tilt), math.sin(0.5 * tilt), *[0.0] * 5])
        q0[6] = rk.standing_height(wheels[kind], q0)
        run = rk.simulate(wheels[kind], q0, duration=1.0, dt=1e-3, ground=rk.Ground())
        assert np.abs(run.v[-1]).max() < 1e-4  # 1e-5, or rounding, by where on its rim it came down
        assert 2.0 * math.hypot(*run.q[-1, 1:3]) < 1e-6  # upright
        # What carries it holds its weight, and without a torque about its middle.
        points, forces = run.contacts.points[-1], run.contacts.forces[-1]
        touching = np.abs(forces).max(axis=1) > 0.0
        arms = points[touching] - run.q[-1, 4:]
        assert touching.sum() >= 3 and forces.sum(axis=0) == pytest.approx([0.0, 0.0, 9.81], abs=1e-3)
        assert np.abs(np.cross(arms, forces[touching]).sum(axis=0)).max() < 1e-3


def test_a_wheel_is_braked_by_friction_until_it_rolls(wheels):
    # Without spin at first, a disc ends at 2/3 of its speed, whatever friction there is.
    q0 = np.array([*LYING, 0.0, 0.0, RADIUS])
    for mu in (0.1, 0.5):
        ground = rk.Ground(friction=mu)
        run = rk.simulate(wheels["cylinder"], q0, [0, 0, 0, 1.0, 0, 0], duration=1.5, dt=1e-3, ground=ground)
        speed = (run.q[-1, 4] - run.q[-11, 4]) / (run.t[-1] - run.t[-11])
        assert speed == pytest.approx(2.0 / 3.0, rel=1e-3)


@pytest.mark.parametrize("tilt", [0.15, 0.4])
def test_a_coin_wobbles_at_the_rate_of_eulers_disc(tilt):
    # A thin disc that rolls on its edge with its centre at rest precesses at Omega^2 = 4 g / (R sin(tilt)).
    # It turns about the diameter through its lowest point. The error is of first order: 3 to 9 % at 1 ms.
    coin = _wheel(Cylinder(RADIUS, 5e-4), 0.2, RADIUS, 5e-4)
    rate = math.sqrt(4.0 * 9.81 / (RADIUS * math.sin(tilt)))
    q0 = np.array([math.cos(0.5 * tilt), math.sin(0.5 * tilt), *[0.0] * 5])
    q0[6] = rk.standing_height(coin, q0) - 2.5e-5
    v0 = [0.0, rate * math.sin(tilt), 0.0, 0.0, 0.0, 0.0]
    run = rk.simulate(coin, q0, v0, duration=1.0, dt=1e-4, ground=rk.Ground(sink=1e-4))
    w, x, y, z = run.q[:, :4].T
    axis = np.stack([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])
    turned = np.unwrap(np.arctan2(axis[1], axis[0]))
    assert turned[-1] - turned[0] == pytest.approx(rate, rel=0.01)
    assert np.arccos(axis[2]) == pytest.approx(np.full(len(run.t), tilt), abs=0.012)
    assert np.abs(run.q[-1, 4:6]).max() < 0.05 * RADIUS
    energy = run.energy.mechanical
    assert -0.02 * 0.2 * 9.81 * RADIUS < energy[-1] - energy[0] <= 0.0


def test_a_coin_on_its_edge_falls_and_never_gains_energy():
    coin = _wheel(Cylinder(0.012, 0.002), 0.006, 0.012, 0.002)
    tilt = 1.2
    q0 = np.array([math.cos(0.5 * tilt), math.sin(0.5 * tilt), *[0.0] * 5])
    q0[6] = rk.standing_height(coin, q0)
    run = rk.simulate(coin, q0, [0, 8.0, 3.0, 0, 0, 0], duration=0.5, dt=2.5e-4, ground=rk.Ground(sink=1e-4))
    upright = 1.0 - 2.0 * (run.q[:, 1] ** 2 + run.q[:, 2] ** 2)
    assert upright[-1] > 0.8 > upright[0]
    assert run.energy.mechanical.max() - run.energy.mechanical[0] <= 1e-3 * run.energy.mechanical[0]
    assert run.summary["deepest_penetration"] < 1e-3
    assert run.summary["shape_error"] == 0.0


def bicycle() -> rk.Robot:
    """The benchmark's, x ahead and z up; its wheels have edges of 0.1 um."""
    lean = math.pi / 10.0  # of the steering axis
    builder = ModelBuilder("bicycle")
    frame = np.array([[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]])
    fork = np.array([[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]])
    along_y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    builder.link("frame", 85.0, (0.3, 0.0, 0.9), frame).link("fork", 4.0, (-0.2, 0.0, 0.7), fork)
    for name, mass, radius, across, about in (
        ("rear", 2.0, 0.3, 0.0603, 0.12),
        ("front", 3.0, 0.35, 0.1405, 0.28),
    ):
        edge = Shape(Cylinder(radius, 1e-7), Placement(along_y))
        builder.link(name, mass, inertia=np.diag([across, about, across]), collisions=edge)

    def at(x: float, z: float) -> Placement:
        return Placement(position=np.array([x, 0.0, z]))

    builder.joint("rear", "continuous", "frame", "rear", at(0.0, 0.3), (0, 1, 0))
    axis = (-math.sin(lean), 0, math.cos(lean))
    builder.joint("steer", "continuous", "frame", "fork", at(1.1, 0.0), axis)
    builder.joint("front", "continuous", "fork", "front", at(-0.08, 0.35), (0, 1, 0))
    return builder.build("floating")


def test_a_bicycle_without_a_rider_weaves_as_the_benchmark():
    """Its linear equations of leaning and steering, M q'' + v C q' + (g K0 + v^2 K2) q = 0, at 5 m/s.

    Source: J. Meijaard, J. Papadopoulos, A. Ruina, A. Schwab, Proceedings of the Royal Society A 463 (2007).
    """
    M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
    C = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.6854039739756]])
    K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
    K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
    v, rate = 5.0, 0.02
    robot = bicycle()
    v0 = np.zeros(robot.nv)
    v0[0], v0[3] = rate, v
    for wheel, radius in (("rear", 0.3), ("front", 0.35)):
        v0[robot.joint(wheel).v_slice] = v / radius
    ground = rk.Ground(friction=2.0, sink=1e-6)
    run = rk.simulate(
        robot, v0=v0, duration=1.2, dt=1e-3, ground=ground, joint_damping=0.0, self_collision=False
    )

    def changes(t: float, x: np.ndarray) -> np.ndarray:
        return np.append(x[2:], -np.linalg.solve(M, v * C @ x[2:] + (m.G * K0 + v * v * K2) @ x[:2]))

    known = solve_ivp(changes, (0.0, run.t[-1]), [0.0, 0.0, rate, 0.0], t_eval=run.t, rtol=1e-9, atol=1e-12)
    R = Rotation.from_quat(np.roll(run.q[:, :4], -1, axis=1)).as_matrix()
    steered = -run.q[:, robot.joint("steer").q_slice][:, 0]  # the benchmark's z is down
    assert np.ptp(known.y[0]) > 5e-3
    np.testing.assert_allclose(np.arcsin(R[:, 2, 1]), known.y[0], atol=4e-5)
    np.testing.assert_allclose(steered, known.y[1], atol=6e-5)


def test_a_wheel_rolls_over_flush_tiles_as_over_a_plane():
    robot = _wheel(Cylinder(0.1, 0.15), 2.0, 0.1, 0.15)
    q, v = [*LYING, 0.03, 0.01, 0.1], [0.0, 0.0, -15.0, 1.5, 0.0, 0.0]
    tiles = [rk.Solid(Box((0.25, 1.0, 0.1)), (0.25 * k, 0.0, -0.05)) for k in range(-1, 7)]
    ground = rk.Ground(friction=0.5, plane=False, shapes=tiles)
    run = rk.simulate(robot, q, v, duration=0.8, dt=1e-3, ground=ground)
    assert abs(run.momentum[-1, 3] / 2.0 - 1.5) < 1e-9
    assert abs(run.v[-1, 2] + 15.0) < 1e-8


@pytest.mark.parametrize("size", [4.0, 100.0])
def test_a_ball_meets_the_edge_of_a_thin_slab_on_a_floor_of_any_size(size):
    """The edge is above the floor: no contact of flush faces, however large the floor is."""
    robot = m.ball()
    thin = 0.003
    slab = rk.Solid(Box((1.0, 1.0, thin)), (0.7, 0.0, 0.5 * thin))  # its edge is at x = 0.2
    shapes = [rk.Solid(Box((size, size, 1.0)), (0.0, 0.0, -0.5)), slab]
    run = rk.simulate(
        robot, [1, 0, 0, 0, -0.2, 0, 0.1], [0, 0, 0, 0.8, 0, 0], duration=0.8, dt=1e-3,
        ground=rk.Ground(plane=False, shapes=shapes), record_every=1,
    )  # fmt: skip
    x, z = run.q[:, 4], run.q[:, 6] - thin
    away = np.hypot(np.maximum(0.2 - x, 0.0), z)
    assert run.q[-1, 6] > 0.1 + 0.9 * thin
    assert away.min() > 0.1 - 2e-4


def test_a_ball_rolls_along_two_capsules_as_along_two_cylinders():
    # Between its ends a capsule is straight: the place of a contact moves along with all of the ball's speed.
    radius, thin, apart, slope = 0.05, 0.005, 0.06, 0.2
    ball = m.ball(radius)
    turn = Rotation.from_euler("y", slope).as_matrix()
    lying = Rotation.from_euler("y", math.pi / 2 + slope).as_matrix()
    up, down = turn @ [0, 0, 1], turn @ [1, 0, 0]
    height = math.sqrt((radius + thin) ** 2 - apart**2 / 4)
    start = height * up - down
    for shape in (Cylinder(thin, 6.0), Capsule(thin, 6.0)):
        rails = [rk.Solid(shape, Placement(lying, np.array([0, y, 0]))) for y in (-apart / 2, apart / 2)]
        ground = rk.Ground(plane=False, shapes=rails, friction=0.3)
        run = rk.simulate(ball, [1, 0, 0, 0, *start], dt=4e-3, duration=1.0, ground=ground, joint_damping=0.0)
        way = run.q[:, 4:7] - start
        lever = radius * height / (radius + thin)
        expected = 9.81 * math.sin(slope) / (1 + 0.4 * (radius / lever) ** 2)
        assert way[-1] @ down == pytest.approx(0.5 * expected, rel=1e-4)
        assert np.abs(way @ up).max() < 2e-5  # 0.49 mm if it rolled on as between two balls


def test_a_rod_that_rocks_on_an_edge_is_second_order():
    # The edge is where it is: along the rod, the place of the contact does not roll on.
    inertia, at = np.eye(3) * 4e-3, Placement(Rotation.from_euler("y", math.pi / 2).as_matrix())
    b = ModelBuilder("rod")
    b.link("rod", 1.0, (0, 0, -0.06), inertia, collisions=(Shape(Capsule(0.04, 0.6), at),))
    turn = Rotation.from_euler("y", math.pi / 4).as_matrix()
    roof = rk.Solid(Box((0.2, 1.0, 0.2)), Placement(turn, np.array([0, 0, -0.1 * math.sqrt(2)])))
    ground = rk.Ground(plane=False, shapes=[roof], friction=8.0)
    q = np.array([math.cos(0.3), 0, math.sin(0.3), 0, 0.04 * math.sin(0.6), 0, 0.04 * math.cos(0.6)])
    options = {"ground": ground, "joint_damping": 0.0, "duration": 2.0}
    angles = []
    for dt in (4e-3, 2e-3, 2.5e-4):
        run = rk.simulate(b.build("floating"), q, dt=dt, record_every=round(0.02 / dt), **options)
        angles.append(2 * np.arctan2(run.q[:, 2], run.q[:, 0]))
    long, half = (np.abs(angle - angles[2]).max() for angle in angles[:2])
    assert long < 5e-4 and half < 0.3 * long
