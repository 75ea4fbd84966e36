"""SimulationWarning: starts that overlap, that spin too fast for the step, and pairs that are left out."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Placement, Shape, Sphere
from robokit.sim.starts import entered, half_widths, start_contacts


def said(run, *arguments, **how):
    """The SimulationWarnings of a run, and the files that they point at."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run(*arguments, **how)
    assert all(x.filename == __file__ for x in found)
    return [str(x.message) for x in found if issubclass(x.category, rk.SimulationWarning)]


@pytest.fixture(scope="module")
def two_balls():
    """Two balls of 0.1 m on one rail, which come together; they touch where their shifts sum to 0.8 m."""
    b = rk.ModelBuilder("balls").link("rail")
    for name, side in (("left", -1), ("right", 1)):
        ball = (Shape(Sphere(0.1)),)
        b.link(name, mass=1.0, inertia=np.eye(3) * 0.004, collisions=ball)
        place = Placement(position=np.array([0.5 * side, 0, 1.0]))
        b.joint(f"{name}_slide", "prismatic", "rail", name, place, (-side, 0, 0), lower=-1.0, upper=1.0)
    return b.build()


HOW = {"duration": 2e-3, "dt": 1e-3, "ground": None, "self_collision": True}


def test_bodies_that_overlap_are_named_with_the_depth(two_balls):
    words = said(rk.simulate, two_balls, [0.4, 0.42], **HOW)
    assert len(words) == 1 and re.match(r"q0: bodies 'left' and 'right' overlap by 20 mm and push", words[0])
    assert not said(rk.simulate, two_balls, [0.4, 0.3999], **HOW)
    assert not said(rk.simulate, two_balls, [0.4, 0.42], **(HOW | {"self_collision": False}))
    rows = np.array([[0.4, 0.3], [0.4, 0.41], [0.4, 0.45]])
    words = said(rk.rollout, two_balls, rows, **HOW)
    assert len(words) == 1 and "q0[2] (and 1 more): bodies 'left' and 'right' overlap by 50 mm" in words[0]
    assert not said(rk.rollout, two_balls, rows[:1], **HOW)


def test_a_start_in_the_ground_is_named_with_the_depth():
    q = rk.standing_configuration(m.box())
    run = {"duration": 2e-3, "dt": 1e-3, "ground": rk.Ground()}
    assert not said(rk.simulate, m.box(), q, **run)
    low = q - [0, 0, 0, 0, 0, 0, 0.03]
    words = said(rk.simulate, m.box(), low, **run)
    assert len(words) == 1  # not once more at the end, for the same depth
    assert re.match(r"q0: link '\w+' starts (29|30|31)(\.\d+)? mm inside the ground, which pushes", words[0])
    words = said(rk.rollout, m.box(), [q, low, q], **run)
    assert re.match(r"q0\[1\]: link '\w+' starts (29|30|31)(\.\d+)? mm inside", words[0])


@pytest.mark.parametrize("dt", [1e-3, 4e-3])
def test_a_spin_too_fast_for_the_step_names_the_body_and_the_step_to_take(dt):
    robot, v = m.box(), np.zeros(6)
    run = {"duration": 2 * dt, "dt": dt}
    v[:3] = 0.29 / dt / np.sqrt(3.0)
    assert not said(rk.simulate, robot, robot.neutral(), v, **run)
    v[:3] *= 2.0
    (words,) = said(rk.simulate, robot, robot.neutral(), v, **run)
    assert words.startswith("v0: body ") and "0.58 rad per step" in words
    better = float(re.search(r"use dt = ([\d.e-]+)", words)[1])
    assert 0.8 < better * 0.58 / dt / 0.3 <= 1.0
    assert not said(rk.simulate, robot, robot.neutral(), v, duration=2 * better, dt=better)
    (words,) = said(rk.rollout, robot, robot.neutral(), [0 * v, v], **run)
    assert words.startswith("v0[1]: body ")


def test_joints_that_turn_against_each_other_are_no_spin():
    robot = m.double_pendulum()
    run = {"duration": 0.01, "dt": 5e-3}
    assert not said(rk.simulate, robot, [0.0, 0.0], [40.0, -40.0], **run)
    (words,) = said(rk.simulate, robot, [0.0, 0.0], [40.0, 40.0], **run)
    assert (
        "'lower' spins at 80 rad/s, 0.4 rad per step of 0.005 s, where 0.3 is fine: use dt = 0.0037" in words
    )


@pytest.mark.parametrize("name", ["arm", "double_pendulum", "four_bar", "quadruped", "humanoid"])
def test_good_starts_are_silent(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    from robokit.sim.run_inputs import set_up
    from robokit.sim.starts import checked_starts

    setup = set_up(robot, 1e-3, 1e-3, True, None, None, None)  # no step is compiled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = rk.standing_configuration(robot)
        checked_starts(robot, setup.program, q, np.zeros(robot.nv), 1e-3)


def cube(times, sink):
    """A cube of 40 cm, or its copy at another scale that is as heavy; lengths and times of its contacts."""
    edge = 0.4 * times
    robot = rk.ModelBuilder("cube").link(
        "cube", 1.0, inertia=np.eye(3) * edge**2 / 6.0, collisions=(Shape(Box((edge,) * 3)),)
    )
    return robot.build("floating"), [1.0, *[0.0] * 5, 0.5 * edge], rk.Ground(sink=sink)


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_a_scene_and_its_copies_at_other_scales_get_the_same_warnings(times):
    """Lengths go with the size, times with its root: no robot is warned of what is the same at any scale."""
    robot, at, ground = cube(times, 1e-3 * times if times > 1.0 else None)
    dt = 1e-3 * times**0.5

    def words(low, dt):
        return said(
            rk.simulate, robot, at - np.eye(7)[6] * low * times, duration=2 * dt, dt=dt, ground=ground
        )

    assert not words(5e-3, dt) and not words(5e-3, 3.9e-3 * max(1.0, times**0.5))
    (deep,) = words(0.012, dt)
    assert f"starts {12.0 * times:.3g} mm inside the ground" in deep
    if times >= 1.0:
        with pytest.raises(rk.ShapeError, match="below the ground"):
            words(0.11, dt)
        (long,) = words(0.0, 4.1e-3 * times**0.5)
        assert f"take {4.0 * times**0.5:.3g} ms or less" in long


@pytest.mark.parametrize("times", [0.1, 1.0, 10.0])
def test_how_deep_a_fall_may_go_goes_with_the_robot(times):
    robot, at, ground = cube(times, 1e-3 * times if times > 1.0 else None)
    dt = 1e-3 * times**0.5
    depths = []
    for fast in (2.0, 20.0):
        v = [0.0] * 5 + [-fast * times**0.5]
        words = said(rk.simulate, robot, at, v, duration=0.1 * times**0.5, dt=dt, ground=ground)
        depths.append(sum("penetrated the ground" in each for each in words))
        assert all(f"({10.0 * times:.3g} mm is fine)" in each for each in words if "penetrated" in each)
    assert depths == [0, 1]


# ---- runs that end up wrong --------------------------------------------------------------------------------


def cubes(mass, edge):
    """A cube of a milligram and a millimetre on the ground, one of that mass and edge on it; their start."""
    world = {}
    for name, heavy, a in (("small", 1e-6, 1e-3), ("big", mass, edge)):
        shape = (Shape(Box((a,) * 3)),)
        inertia = np.eye(3) * heavy * a**2 / 6.0
        one = rk.ModelBuilder(name).link("cube", heavy, inertia=inertia, collisions=shape)
        world[name] = one.build("floating")
    return rk.together(world), [1, *[0.0] * 5, 5e-4, 1, *[0.0] * 5, 1e-3 + 0.5 * edge]


ON_GROUND = {"dt": 1e-3, "ground": rk.Ground(), "self_collision": True}


@pytest.mark.parametrize("edge", [1e-3, 0.1])
@pytest.mark.parametrize("run", [rk.simulate, rk.rollout])
def test_a_mass_that_goes_through_a_light_body_is_named_with_it(run, edge):
    """The small cube has the big one's weight to carry; up to a ton it does."""
    for mass, through in ((1e3, False), (1e6, True), (1e9, True), (1e12, True)):
        robot, q = cubes(mass, edge)
        words = [x for x in said(run, robot, q, **(ON_GROUND | {"duration": 0.3})) if "mm deep in" in x]
        assert len(words) == through, (mass, words)
        assert all("'small/cube'" in x and "'big/cube'" in x and "(0.5" in x for x in words)


@pytest.mark.parametrize("geometry, half", [
    (Box((0.3, 0.02, 0.1)), 0.01),
    (Sphere(0.03), 0.03),
    (Capsule(0.02, 0.3), 0.02),
    (Cylinder(0.2, 0.01), 0.005),
    (Cylinder(0.01, 0.2), 0.01),
])  # fmt: skip
def test_half_of_the_least_width_of_a_shape_is_known_whichever_way_it_lies(geometry, half):
    """Where it is on a link is no part of it."""
    turn = Placement(np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0], np.array([1.0, 2.0, 3.0]))
    turn = turn if np.linalg.det(turn.rotation) > 0 else Placement(-turn.rotation, turn.position)
    shape = (Shape(geometry, turn),)
    robot = rk.ModelBuilder("one").link("b", 1.0, inertia=np.eye(3), collisions=shape).build("floating")
    program = rk.simulate(robot, duration=2e-3, ground=rk.Ground(height=-5.0)).program
    world, own = half_widths(program)
    assert world == np.inf and own == pytest.approx(half, rel=1e-12)


def nodding(damping):
    """A box with a head whose two gimbals have no inertia of their own."""
    b = rk.ModelBuilder("nods").link(
        "b", 4.0, inertia=np.diag([0.02, 0.03, 0.04]), collisions=(Shape(Box((0.2, 0.3, 0.4))),)
    )
    b.link("pitch", 0.1).link("roll", 0.1).link("yaw", 1.3, com=(0.02, 0.0, 0.11))
    places, axes = ((0.0, 0.0, 0.2), (0.01, 0.0, 0.0), (0.0, 0.0, 0.0)), np.eye(3)[[1, 0, 2]]
    for parent, name, place, axis in zip(
        ("b", "pitch", "roll"), ("pitch", "roll", "yaw"), places, axes, strict=True
    ):
        where = Placement(position=np.array(place))
        b.joint(f"to {name}", "revolute", parent, name, where, axis=axis, damping=damping)
    return b.build("floating")


@pytest.mark.parametrize("dt, missed", [(1e-3, True), (5e-4, False)])
def test_steps_that_miss_half_of_the_energy_say_so_and_name_what_is_fast(dt, missed):
    """The projection hides it: the balance is 1 % of it. With half the step, less than 1 % is missed."""
    robot, rng = nodding(1e-2), np.random.default_rng(1)
    q = rk.standing_configuration(robot, height=0.1, tilt=0.4, seed=1)
    how = {"duration": 0.6, "dt": dt, "ground": rk.Ground(restitution=1.0)}
    words = said(
        rk.simulate, robot, q, 0.3 * rng.normal(size=robot.nv), actuators=rk.PD(60.0, 2.0, effort=5.0), **how
    )
    assert sum("energy errors of the steps" in x and "'yaw'" in x for x in words) == missed, words


def test_a_plate_that_is_thrown_into_a_thin_wall_is_named_with_the_wall():
    """A corner that the hit turns into the wall within the step is no contact of the step."""
    edges, x = np.array([0.3, 0.3, 1e-3]), np.random.default_rng(3).normal(size=4)
    x /= np.linalg.norm(x)
    s, v = x[0], -x[1:]
    fly = np.array([10.0, 0.0, 0.0])
    plate = rk.ModelBuilder("plate").link(
        "plate", 0.1, inertia=np.eye(3) * 1e-4, collisions=(Shape(Box(tuple(edges))),)
    )
    wall = rk.Solid(Box((1e-3, 4.0, 4.0)), Placement(position=np.array([0.0, 0.0, 1.0])))
    how = {"duration": 0.05, "ground": rk.Ground(shapes=[wall], restitution=0.2, height=-9.0)}
    start = [*x, -0.45, 0.0, 1.2], [0.0] * 3 + [*(fly + 2.0 * np.cross(v, np.cross(v, fly) + s * fly))]
    for dt, deep in ((1e-3, True), (1.25e-4, False)):
        words = said(rk.simulate, plate.build("floating"), *start, dt=dt, gravity=(0, 0, 0), **how)
        assert sum("body 'plate' is" in w and "deep in solid 0 at t = 0.03" in w for w in words) == deep
        assert sum("a contact of link 'plate' penetrated" in w for w in words) == deep, words


def test_what_a_long_run_misses_is_measured_by_all_that_moved_in_it():
    """A pendulum over a ground that it never touches: each swing misses as much as the one before."""
    how = {"dt": 0.05, "duration": 50.0, "joint_damping": 0.0, "ground": rk.Ground(height=-5.0)}
    with pytest.warns(rk.SimulationWarning) as found:  # of the step, which is long
        s = rk.simulate(m.pendulum(), [2.0], **how).summary
    assert s["energy_corrected"] > 0.5 * s["energy_exchanged"]
    assert not any("energy errors of the steps" in str(each.message) for each in found)


@pytest.mark.parametrize("shape", [Cylinder(0.01, 0.4), Capsule(0.01, 0.38), Box((0.02, 0.02, 0.4))])
def test_how_far_a_shape_may_be_in_another_one_is_half_of_what_lies_along_the_normal(shape):
    """A rod 15 mm deep in a cube: end on, less than a tenth is inside; lengthwise, its middle is."""
    rod = (
        rk.ModelBuilder("rod")
        .link("rod", 1.0, inertia=np.eye(3), collisions=(Shape(shape),))
        .build("floating")
    )
    cube = (Shape(Box((1.0, 1.0, 1.0))),)
    cube = rk.ModelBuilder("cube").link("cube", 1.0, inertia=np.eye(3), collisions=cube).build("floating")
    slabs = [
        rk.Solid(Box((1.0, 1.0, thick)), Placement(position=np.array([x, 0.0, -0.5 * thick])))
        for x, thick in ((3.0, 0.02), (6.0, 0.04))
    ]
    ground, both = rk.Ground(height=-9.0, shapes=slabs), rk.together({"cube": cube, "rod": rod})
    program = rk.simulate(
        both, [1, *[0.0] * 6, 1, *[0.0] * 5, 3.0], duration=1e-3, dt=1e-3, ground=ground, self_collision=True
    ).program
    on, across = [1.0, 0, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0]
    for x, top, turn, half, other in (
        (0.0, 0.5, on, 0.2, None),
        (0.0, 0.5, across, 0.01, "body 'cube/cube'"),
        (3.0, 0.0, on, 0.2, "solid 0"),  # through which it may go
        (6.0, 0.0, across, 0.01, None),  # in which it lies, as in a plane
    ):
        q = np.array([[1, *[0.0] * 6, *turn, x, 0.0, top + half - 0.015]])
        found = entered(program, q)
        if other is None:
            assert found is None
        else:
            depth, thin, row, whose = found
            assert (depth, thin, row) == (pytest.approx(0.015, rel=1e-9), pytest.approx(0.01, rel=1e-9), 0)
            assert whose == [other, "body 'rod/rod'"]


@pytest.mark.parametrize("seed", [1, 3])
def test_the_link_that_was_deepest_in_the_ground_is_named(seed):
    """The last record that had less depth says where to look; here all steps are looked at."""
    robot, v = rk.load(rk.find_robot("quadruped"), base="floating"), np.zeros(18)
    q, v[5] = rk.standing_configuration(robot, height=0.1, tilt=0.6, seed=seed), -20.0
    with pytest.warns(rk.SimulationWarning) as said:
        run = rk.simulate(robot, q, v, duration=0.3, dt=4e-3, ground=True, record_every=7)
    found = start_contacts(run.program, run.notes.kicks[0])
    assert run.summary["deepest_penetration"] == pytest.approx(found.depth.max(), rel=1e-9)
    link = found.link[int(found.depth.argmax())]
    assert any(f"a contact of link {link!r} penetrated" in str(each.message) for each in said), link


def test_a_run_that_goes_on_does_not_name_the_link_that_was_deepest_before_it():
    """Nothing tells which one it was: the notes of that step are of another simulation."""
    robot, v = rk.load(rk.find_robot("quadruped"), base="floating"), np.zeros(18)
    q, v[5] = rk.standing_configuration(robot, height=0.1, tilt=0.6, seed=1), -20.0
    first, later = (rk.Simulation(robot, q, v, dt=4e-3, ground=True, record_every=7) for _ in range(2))
    for _ in range(20):
        first.step()
    assert any("a contact of link" in text for text in said(first.trajectory))
    later.restore(first.state())
    for _ in range(9):
        later.step()
    assert any("a contact penetrated" in text for text in said(later.trajectory))
