"""Contacts as constraints: what rests, slides, bounces, spins and rides, each by its own law."""

from __future__ import annotations

import numpy as np
import pytest
from step_of_forces import DenseStep, ForcesStep, law

import robokit as rk
from robokit.collision.fields import CYLINDER
from robokit.contact.constraints.contacts import TANGENTIAL

BODY = """<robot name="body"><link name="body"><inertial><mass value="{m}"/>
<inertia ixx="{x}" iyy="{y}" izz="{z}" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""

DT = 1e-3
SINK, TIME = 1e-4, 6e-3


LAW = {"friction", "restitution", "torsion", "rolling"}


def body(tmp_path, m=2.0, inertia=(0.02, 0.02, 0.02)):
    path = tmp_path / "body.urdf"
    x, y, z = inertia
    path.write_text(BODY.format(m=m, x=x, y=y, z=z))
    return rk.load_urdf(path, base="floating")


def stepped(robot, corners, dt=DT, tilt=0.0, kind=ForcesStep, **numbers):
    """A step of corners (or balls) of a body on a plane through the origin, tilted about y."""
    n = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    frame = np.array([[np.cos(tilt), 0.0, -np.sin(tilt)], [0.0, 1.0, 0.0], n])
    k = robot.total_mass * 9.81 / SINK
    given = {"pair_stiffness": k, "pair_damping": k * TIME}
    given = {name: np.array([numbers.pop(name, value)]) for name, value in given.items()}
    of_law = {"friction": 0.5, **{name: numbers.pop(name) for name in LAW & numbers.keys()}}
    radius = numbers.pop("radius", 0.0)
    step = kind(robot, dt, **law(**of_law), **given, **numbers)

    def find(x):
        R, p = x.R[1].reshape(3, 3), x.p[1] + x.seat[1] + x.origin
        count = 0
        for m, corner in enumerate(corners):
            place = R @ np.array(corner) + p - radius * n
            gap = n @ place
            if gap < 0.02:
                x.contact_bodies[count], x.contact_shapes[count] = (0, 1), (0, 1)
                x.contact_pair[count], x.contact_feature[count] = 0, m
                x.contact_place[count] = place - x.origin
                x.contact_frame[count], x.contact_gap[count] = frame.ravel(), gap
                count += 1
        x.counts[0] = count

    step.find = find
    return step


def start(z, v=(0.0, 0.0, 0.0), w=(0.0, 0.0, 0.0), tilt=0.0):
    q = np.array([np.cos(0.5 * tilt), 0.0, np.sin(0.5 * tilt), 0.0, np.sin(tilt) * z, 0.0, np.cos(tilt) * z])
    return q, np.array([*w, *v], dtype=float)


def world(q, v):
    """The linear velocity of a free base in world axes."""
    w, x, y, z = q[:4]
    u = np.array([x, y, z])
    return v[3:] + 2.0 * np.cross(u, w * v[3:] + np.cross(u, v[3:]))


def run(step, q, v, seconds):
    for _ in range(round(seconds / step.x.dt[0])):
        q, v = step.step(q, v)
    return q, v


CUBE = [(a, b, c) for a in (-0.1, 0.1) for b in (-0.1, 0.1) for c in (-0.1, 0.1)]


def test_a_box_rests_where_its_springs_carry_it(tmp_path):
    step = stepped(body(tmp_path), CUBE)
    q, v = run(step, *start(0.1), 0.4)
    assert q[6] == pytest.approx(0.1 - SINK / 4, rel=1e-9)
    assert np.abs(v).max() < 1e-9
    assert step.x.c_g[:4, 2] == pytest.approx(2.0 * 9.81 * DT / 4, rel=1e-6)


def test_a_sliding_box_stops_where_coulomb_says_and_does_not_rise(tmp_path):
    step = stepped(body(tmp_path), CUBE)
    q, v = run(step, *start(0.1 - SINK / 4), 0.1)
    v[3] = 2.0
    highest = 0.0
    x0 = q[4]
    for _ in range(500):
        q, v = step.step(q, v)
        highest = max(highest, q[6])
    # Kick to kick, the first one acts after half a step.
    assert q[4] - x0 == pytest.approx(2.0**2 / (2 * 0.5 * 9.81), rel=2e-3)
    assert highest < 0.1
    assert np.abs(v).max() < 1e-6


@pytest.mark.parametrize("share", [0.95, 1.05])
def test_a_box_on_a_slope_stays_inside_the_cone_and_slides_outside(tmp_path, share):
    tilt = float(np.arctan(0.5 * share))
    step = stepped(body(tmp_path), CUBE, tilt=tilt)
    q, v = run(step, *start(0.1, tilt=tilt), 0.3)
    at = np.hypot(q[4], q[6])
    q1, v = run(step, q, v, 0.5)
    moved = np.linalg.norm(q1[4:] - q[4:])
    if share < 1.0:
        assert moved < 1e-10 and at
    else:
        a = 9.81 * (np.sin(tilt) - 0.5 * np.cos(tilt))
        assert np.linalg.norm(v[3:]) == pytest.approx(a * 0.8, rel=2e-2)


@pytest.mark.parametrize("dt", [4e-3, 1e-3, 2.5e-4])
@pytest.mark.parametrize("e", [0.1, 0.5, 1.0])
def test_a_ball_bounces_at_its_restitution(tmp_path, dt, e):
    for fall in (0.5, 0.503, 0.511):  # the surface is reached at other parts of a step
        step = stepped(body(tmp_path), [(0, 0, 0)], dt=dt, radius=0.1, restitution=e)
        q, v = start(0.1 + fall)
        while v[5] <= 0.0:
            q, v = step.step(q, v)
        left = 9.81 * (q[6] - 0.1) + 0.5 * v[5] ** 2
        assert np.sqrt(left / (9.81 * fall)) == pytest.approx(e, abs=6e-4)


def test_ten_bounces_keep_the_height(tmp_path):
    step = stepped(body(tmp_path), [(0, 0, 0)], radius=0.1, restitution=1.0)
    q, v = start(0.1 + 0.2)
    bounces, before = 0, -1.0
    while bounces < 10:
        q, v = step.step(q, v)
        bounces += before < 0.0 < v[5]
        before = v[5]
    height = q[6] - 0.1 + 0.5 * v[5] ** 2 / 9.81
    assert height == pytest.approx(0.2, rel=1e-2)


@pytest.mark.parametrize("vx", [2.0, 0.5])
def test_an_oblique_bounce_slides_or_grips(tmp_path, vx):
    """A ball with 2/5 m r^2: friction gives mu (1 + e) u_n, or what stops the contact: 2/7 of its speed."""
    m, r, e, mu, un = 1.0, 0.1, 0.5, 0.2, 3.0
    I = 0.4 * m * r * r
    step = stepped(body(tmp_path, m, (I, I, I)), [(0, 0, 0)], radius=r, restitution=e, friction=mu)
    q, v = start(r + 1e-4, (vx, 0.0, -un))
    q, v = step.step(q, v)
    slid = mu * (1.0 + e) * un
    u = world(q, v)
    assert u[0] == pytest.approx(vx - min(slid, 2.0 / 7.0 * vx), rel=2e-3)
    assert u[2] == pytest.approx(e * un, rel=5e-3)


def test_spinning_friction_stops_a_top_as_its_arm_says(tmp_path):
    m, r, arm = 1.0, 0.1, 0.01
    I = 0.4 * m * r * r
    step = stepped(body(tmp_path, m, (I, I, I)), [(0, 0, 0)], radius=r, torsion=arm)
    q, v = run(step, *start(r - SINK), 0.1)
    v[2] = 10.0
    _, v1 = run(step, q, v, 0.05)
    assert v1[2] == pytest.approx(10.0 - arm * m * 9.81 / I * 0.05, rel=1e-6)
    _, v2 = run(step, q, v, 0.6)
    assert np.abs(v2).max() < 1e-6


def test_rolling_friction_slows_a_ball_as_its_arm_says(tmp_path):
    m, r, arm = 1.0, 0.1, 0.002
    I = 0.4 * m * r * r
    step = stepped(body(tmp_path, m, (I, I, I)), [(0, 0, 0)], radius=r, rolling=arm)
    q, v = run(step, *start(r - SINK), 0.1)
    v[1], v[3] = 10.0, 1.0 - SINK * 10.0
    q, v = run(step, q, v, 0.25)
    slowed = arm * m * 9.81 / r / (m + I / r**2)
    speed = np.linalg.norm(v[3:])
    assert speed == pytest.approx(1.0 - slowed * 0.25, rel=2e-3)


def test_a_belt_takes_a_box_along(tmp_path):
    belt = np.zeros((3, 6))
    belt[0, 3] = 0.3
    step = stepped(body(tmp_path), CUBE, surface_velocity=belt)
    _, v = run(step, *start(0.1), 0.3)
    assert v[3:] == pytest.approx([0.3, 0.0, 0.0], abs=1e-8)


def test_what_rides_on_a_turntable_stays_where_it_is_on_it(tmp_path):
    table = np.zeros((3, 6))
    table[0, 2] = 1.0
    step = stepped(body(tmp_path), CUBE, surface_velocity=table)
    q, v = run(step, *start(0.1 - SINK / 4), 0.05)
    q[4:6] = [0.3, 0.0]
    v[:] = [0.0, 0.0, 1.0, 0.0, 0.3, 0.0]
    step.x.bristle_pair[:] = -1
    q, v = run(step, q, v, 0.08)  # it leans outward first, as its friction does
    before = np.hypot(*q[4:6])
    assert before == pytest.approx(0.3, abs=2e-5)
    q, v = run(step, q, v, 0.4)
    assert np.hypot(*q[4:6]) == pytest.approx(before, abs=1e-8)


def test_restitution_depends_on_no_unit(tmp_path):
    """A bounce of a body a tenth as long: times and speeds shrink by the root of ten."""
    found = []
    for scale in (1.0, 0.1):
        root = scale**0.5
        k = 2.0 * 9.81 / (SINK * scale)
        step = stepped(
            body(tmp_path, 2.0, (0.02 * scale**2,) * 3),
            [[scale * a for a in corner] for corner in CUBE],
            dt=DT * root,
            restitution=0.5,
            pair_stiffness=k,
            pair_damping=k * TIME * root,
        )
        q, v = start(0.13 * scale, (0.2 * root, 0.0, -0.3 * root), (1.0 / root, 2.0 / root, 0.5 / root))
        for _ in range(150):
            q, v = step.step(q, v)
        found.append(q[4:] / scale)
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_python_and_machine_code_collect_the_same(tmp_path):
    steps = [stepped(body(tmp_path), CUBE, kind=DenseStep, engine=engine) for engine in ("python", None)]
    for step in steps:
        run(step, *start(0.1, (0.3, 0.0, 0.0), (0.1, 0.2, 0.3)), 0.01)
    assert steps[0].x.c_E == pytest.approx(steps[1].x.c_E, abs=1e-13)
    assert steps[0].x.bristle == pytest.approx(steps[1].x.bristle, abs=1e-15)
    assert (steps[0].x.bristle_feature == steps[1].x.bristle_feature).all()


def wobbling(tmp_path, kind, seconds=0.2):
    """(tilt [rad], energy over that at the start) of a thin coin on its rim whose middle is at rest.

    It stays so, turning by omega = sqrt(4 g sin(tilt) / r) about the diameter through its lowest point
    (Moffatt 2000, Euler's disk).
    """
    m, r, tilt = 0.1, 0.05, 0.3
    I = 0.25 * m * r * r
    k = m * 9.81 / 1e-5
    given = {
        "shape_kind": np.array([0, kind, 0], np.int32),
        "shape_size": np.array([[0, 0, 0], [r, 0, 0.0], [0, 0, 0]]),
    }
    step = stepped(
        body(tmp_path, m, (I, I, 2 * I)),
        [],
        dt=5e-4,
        pair_stiffness=k,
        pair_damping=k * 2e-3,
        **given,
    )

    def find(x):
        a = x.R[1].reshape(3, 3)[:, 2]
        down = a * a[2] - [0, 0, 1]
        place = x.p[1] + x.seat[1] + x.origin + r * down / np.linalg.norm(down)
        x.contact_bodies[0] = x.contact_shapes[0] = 0, 1
        x.contact_gap[0] = place[2]
        x.contact_place[0] = place - x.origin - [0.0, 0.0, 0.5 * place[2]]
        x.contact_frame[0] = np.eye(3).ravel()
        x.counts[0] = 1

    step.find = find
    q, v = start(0.0)
    q[:4] = [np.cos(0.5 * tilt), 0.0, np.sin(0.5 * tilt), 0.0]
    q[4:] = [0.0, 0.0, r * np.sin(tilt) - 1e-5]
    v[0] = np.sqrt(4.0 * 9.81 * np.sin(tilt) / r)  # the lowest point is on the body's x axis
    energies = []
    for _ in range(round(seconds / 5e-4)):
        q, v = step.step(q, v)
        spin = 0.5 * (I * v[0] ** 2 + I * v[1] ** 2 + 2 * I * v[2] ** 2)
        energies.append(spin + 0.5 * m * v[3:] @ v[3:] + m * 9.81 * q[6])
    a_z = 1.0 - 2.0 * (q[1] ** 2 + q[2] ** 2)
    return np.arccos(a_z), energies[-1] / energies[0]


def test_a_coin_that_wobbles_keeps_its_energy_and_its_tilt(tmp_path):
    tilt, energy = wobbling(tmp_path, CYLINDER)
    assert tilt == pytest.approx(0.3, abs=3e-4)
    assert energy == pytest.approx(1.0, abs=2e-3)
    assert wobbling(tmp_path, 0)[0] - 0.3 > 3e-3  # the contact does not know that it runs along a rim


def test_bristles_stay_with_their_contacts_when_others_come_and_go(tmp_path):
    """A bristle that is given to another contact drives a box uphill."""
    step = stepped(body(tmp_path), CUBE, tilt=0.4)
    q, v = run(step, *start(0.1, tilt=0.4), 0.3)
    find, turn = step.find, [0]

    def shuffled(x):
        find(x)
        turn[0] += 1
        order = np.roll(np.arange(4), turn[0])
        for name in ("contact_feature", "contact_place", "contact_gap"):
            array = getattr(x, name)
            array[:4] = array[order]

    kept = dict(zip(step.x.bristle_feature[:4].tolist(), step.x.bristle[:4].copy(), strict=True))
    assert {0, 1} <= set(kept) or len(kept) == 4
    step.find = shuffled
    q1, _ = run(step, q, v, 0.2)
    assert np.linalg.norm(q1[4:] - q[4:]) < 1e-10
    for feature, e in zip(step.x.bristle_feature[:4].tolist(), step.x.bristle[:4], strict=True):
        assert e == pytest.approx(kept[feature], abs=1e-12)


def stacked(tmp_path, light, heavy):
    """A step of a box on a box on the ground: bodies 1 and 2, edges of 20 cm, in each its own contacts."""
    world = rk.together(
        {"a": body(tmp_path, light, (0.0067 * light,) * 3), "b": body(tmp_path, heavy, (0.0067 * heavy,) * 3)}
    )
    k = (light + heavy) * 9.81 / SINK
    gains = {"pair_stiffness": np.array([k]), "pair_damping": np.array([k * TIME])}
    step = ForcesStep(world, DT, **law(friction=0.5), **gains)

    def find(x):
        for m in range(8):
            upper = m // 4
            corner = np.array(CUBE[2 * (m % 4)])
            place = x.R[1 + upper].reshape(3, 3) @ corner + x.p[1 + upper] + x.seat[1 + upper] + x.origin
            top = x.p[1][2] + x.seat[1][2] + x.origin[2] + 0.1 if upper else 0.0
            x.contact_bodies[m], x.contact_shapes[m] = (upper, 1 + upper), (upper, 1 + upper)
            x.contact_pair[m], x.contact_feature[m] = 2 * upper, m % 4
            x.contact_place[m], x.contact_frame[m] = place - x.origin, np.eye(3).ravel()
            x.contact_gap[m] = place[2] - top
        x.counts[0] = 8

    step.find = find
    return step


@pytest.mark.parametrize("light, heavy", [(1.0, 1.0), (1.0, 1000.0), (1000.0, 1.0)])
def test_a_box_rests_on_a_box_a_thousand_times_lighter_or_heavier(tmp_path, light, heavy):
    step = stacked(tmp_path, light, heavy)
    q, v = np.zeros(14), np.zeros(12)
    q[[0, 7]], q[6], q[13] = 1.0, 0.1, 0.3
    for _ in range(400):
        q, v = step.step(q, v)
    assert np.abs(v).max() < 1e-9
    assert step.iterations <= 2
    weights = step.x.c_g[:8, 2].reshape(2, 4).sum(axis=1) / DT / 9.81
    assert weights == pytest.approx([light + heavy, heavy], rel=1e-9)


@pytest.mark.parametrize("share", [0.95, 1.1])
def test_a_box_rides_on_a_cart_until_friction_gives_way(tmp_path, share):
    step = stacked(tmp_path, 4.0, 2.0)
    step.x.shape_friction[1:] = 0.0
    q, v = np.zeros(14), np.zeros(12)
    q[[0, 7]], q[6], q[13] = 1.0, 0.1, 0.3
    for _ in range(300):
        q, v = step.step(q, v)
    beside = q[11] - q[4]
    tau = np.zeros(12)
    tau[3] = 6.0 * share * 0.5 * 9.81
    for _ in range(300):
        q, v = step.step(q, v, tau)
    slid = (q[4] - q[11]) + beside
    if share < 1.0:
        assert abs(slid) < 2e-5  # what leans as it starts
        for _ in range(100):
            q, v = step.step(q, v, tau)
        assert q[4] - q[11] + beside == pytest.approx(slid, abs=1e-9)
    else:
        a = (tau[3] - 2.0 * 0.5 * 9.81) / 4.0 - 0.5 * 9.81
        assert slid == pytest.approx(0.5 * a * 0.3**2, rel=3e-2)


def test_what_springs_hold_after_a_step_they_hold_before_the_next(tmp_path):
    """A ball that slides and sticks while its spring swings."""
    step = stepped(body(tmp_path), [(0, 0, 0)], radius=0.1, pair_damping=1e-3)
    q, v = start(0.1 - 5 * SINK, (0.002, 0.0, 0.0))
    last, largest = None, 0.0
    for _ in range(20):
        q, v = step.step(q, v)
        before, after = stored_energy(step)
        if last is not None and step.x.counts[0]:
            assert before == pytest.approx(last, rel=1e-9)
        last = after if step.x.contact_gap[0] + DT * step.x.c_u[0, 2] < 0.0 else None
        largest = max(largest, before)
    k = step.x.pair_stiffness[0]
    assert largest > 0.5 * k * (4 * SINK) ** 2


def stored_energy(step):
    """Of the spring and the bristle of the only contact, before and after the step [J]."""
    x, k = step.x, step.x.pair_stiffness[0]
    before = x.contact_gap[0], x.contact_bristle[0]
    after = x.contact_gap[0] + DT * x.c_u[0, 2], x.bristle[0]
    return [0.5 * k * (min(phi, 0.0) ** 2 + TANGENTIAL * e @ e) for phi, e in (before, after)]
