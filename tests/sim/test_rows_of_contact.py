"""Rows of rollouts on a ground are the runs of simulate; so are those of a file."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.signature import ArrayOf
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.sim import contact_rows, steppers
from robokit.sim.kernel_rows import KernelRows
from robokit.sim.rollouts import Batch
from robokit.sim.steppers import ContactState, ContactStepper, copied
from robokit.spatial.control_flow import for_range

GROUND = rk.Ground()
BOTH = {"dt": 1e-3, "duration": 0.3, "record_every": 20}


@pytest.fixture(scope="module")
def thrown():
    """Starts of five boxes that tumble on to the ground."""
    q0 = np.tile(m.box().neutral(), (5, 1))
    q0[:, -1] = 0.15
    return q0, np.random.default_rng(5).normal(size=(5, 6)) * 2.0


def test_a_row_that_fails_leaves_the_others_alone(thrown):
    good = rk.rollout(m.box(), *thrown, ground=GROUND, **BOTH)
    tau = np.zeros((300, 5, 6))
    tau[150:, 4] = 1e308
    with pytest.warns(UserWarning, match="finite"):
        bad = rk.rollout(m.box(), *thrown, tau=tau, ground=GROUND, **BOTH)
    assert bad.failed.tolist() == [4]
    assert np.isfinite(bad.q[7, 4]).all() and not np.isfinite(bad.q[8, 4]).all(), "after step 151"
    np.testing.assert_array_equal(bad.q[:, :4], good.q[:, :4])


@rk.function(inputs={"q": "q"}, outputs={"lowest": ()})
def lowest(tree, q):
    return {"lowest": q[1][6]}


def test_rows_do_not_depend_on_threads_records_and_neighbours(thrown):
    """Nor on arrays that grow in one of them: the last box falls on a floor of tiles, with more contacts."""
    tiles = [(0.05 * (k % 4), 0.05 * (k // 4), -0.01) for k in range(16)]
    solids = [rk.Solid(Box((0.04, 0.04, 0.02)), place) for place in tiles]
    ground = rk.Ground(height=-1.0, shapes=solids)
    q0, v0 = (x.copy() for x in thrown)
    q0[:4, 4], q0[4, 4:], v0[4] = 9.0, (0.075, 0.075, 0.11), 0.0
    own = rk.Measure(lowest, "min")
    tau = 0.01 * np.random.default_rng(0).normal(size=(300, 5, 6))
    many = [
        rk.rollout(m.box(), q0, v0, tau=tau, ground=ground, threads=n, **BOTH | more)
        for n, more in ((1, {}), (2, {"measures": own}), (5, {"record_every": 1}))
    ]
    for other, step in ((many[1], 1), (many[2], 20)):
        np.testing.assert_array_equal(many[0].q, other.q[::step])
    alone = rk.rollout(m.box(), q0[3], v0[3], tau=tau[:, 3:4], ground=ground, **BOTH)
    np.testing.assert_array_equal(alone.q[:, 0], many[0].q[:, 3])
    np.testing.assert_allclose(many[1].measures["lowest"], many[2].q[..., 6].min(axis=0))
    assert np.abs(many[0].v[-1, 4]).max() < 0.1 < np.abs(many[0].v[-1, 0]).max()


@pytest.fixture(scope="module")
def standing():
    """Starts of five quadrupeds, and joint forces of 600 steps beside motors whose targets stay the same."""
    robot, rng = m.quadruped(), np.random.default_rng(5)
    q0, v0 = np.tile(rk.standing_configuration(robot), (5, 1)), rng.normal(size=(5, robot.nv))
    motors = rk.PD(kp=60.0, kd=2.0, target=0.3 * rng.normal(size=robot.nv - 6))
    options = {"dt": 1e-3, "ground": GROUND, "actuators": motors, "reproducible": True}
    return robot, q0, v0, rng.normal(size=(600, 5, robot.nv)), options


@pytest.mark.parametrize("every", [1, 20])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_joint_forces_beside_motors_are_those_of_single_runs(standing, rows, every):
    robot, q0, v0, tau, options = standing
    q0, v0, tau = q0[:rows], v0[:rows], tau[:40, :rows]
    many = rk.rollout(robot, q0, v0, tau=tau, steps=40, record_every=every, **options)
    for row in range(rows):
        sim = rk.Simulation(robot, q0[row], v0[row], **options)
        for now in tau[:, row]:
            sim.step(tau=now)
        np.testing.assert_array_equal(many.q[-1, row], sim.q)
        np.testing.assert_array_equal(many.v[-1, row], sim.v)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_do_not_depend_on_the_clock(standing, monkeypatch, dtype):
    """How many rows and steps go at a time, by how long the last ones took, changes no bit of the results."""
    robot, q0, v0, tau, options = standing
    monkeypatch.setattr(contact_rows, "SUMMED_STEPS", 64)

    def run():
        more = {"steps": 600, "record_every": 100, "measures": True, "dtype": dtype, "threads": 1}
        return rk.rollout(robot, q0, v0, tau=tau, **options, **more)

    due = run()
    for seed in range(4):
        rng, looks = np.random.default_rng(seed), itertools.count()
        seconds = np.cumsum(10.0 ** rng.uniform(-2.0, 2.0, 10_000))
        clock = SimpleNamespace(perf_counter=lambda k=looks, s=seconds: s[next(k)], thread_time=lambda: 0.0)
        monkeypatch.setattr(contact_rows, "time", clock)
        found = run()
        assert next(looks) > 2 * 6 + 1, "more blocks than records"
        np.testing.assert_array_equal(found.q, due.q)
        np.testing.assert_array_equal(found.v, due.v)
        for name, x in due.measures.items():
            np.testing.assert_array_equal(found.measures[name], x, name)


def test_ctrl_c_keeps_what_all_rows_have_reached(thrown, monkeypatch):
    whole, record, calls = rk.rollout(m.box(), *thrown, ground=GROUND, **BOTH), Batch.record, []

    def interrupted(self, k, first, last):
        record(self, k, first, last)
        calls.append(k)
        if k == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(Batch, "record", interrupted)
    part = rk.rollout(m.box(), *thrown, ground=GROUND, threads=1, **BOTH)
    assert part.summary["interrupted"] and len(part.t) == 7 and calls[-1] == 7
    np.testing.assert_array_equal(part.q, whole.q[:7])


def test_a_row_has_the_forces_and_the_facts_of_its_run(thrown):
    rows = rk.rollout(m.box(), *thrown, ground=GROUND, **BOTH)
    one = rk.simulate(m.box(), rows.q[0, 3], rows.v[0, 3], ground=GROUND, **BOTH)
    row = rows.trajectory(3)
    np.testing.assert_array_equal(row.q, one.q)
    np.testing.assert_array_equal(rows.q[:, 3], one.q)
    near = 1e-9
    assert np.abs(one.contact_force).max() > 10.0
    np.testing.assert_allclose(row.contacts.forces.sum(axis=1), one.contact_force, rtol=near, atol=near)
    assert [event.kind for event in row.events] == [event.kind for event in one.events]


def test_a_row_of_single_precision_has_its_own_forces(thrown):
    rows = rk.rollout(m.box(), *thrown, ground=GROUND, dtype="float32", **BOTH)
    row = rows.trajectory(3)
    np.testing.assert_array_equal(rows.q[:, 3], row.q)
    assert np.abs(row.contact_force).max() > 10.0
    np.testing.assert_allclose(row.contacts.forces.sum(axis=1), row.contact_force, rtol=1e-4, atol=1e-3)


def test_rows_with_inertias_of_their_own_are_runs_of_such_robots():
    robot = m.quadruped()
    shares = np.array([0.3, 1.0, 4.0])[:, None, None]
    many = robot.with_inertias(robot.inertial_parameters * shares)
    q0 = rk.standing_configuration(robot)
    rows = rk.rollout(many, q0, ground=GROUND, **BOTH)
    for k in range(3):
        one = rk.simulate(many.sample(k), q0, ground=GROUND, **BOTH)
        np.testing.assert_allclose(rows.q[:, k], one.q, atol=1e-10)
    assert np.abs(rows.contact_force[-1, :, 2]).min() > 0.0


def test_a_flight_comes_back_from_its_file(tmp_path):
    q0 = m.box().neutral()
    q0[6] = 2.0
    run = rk.simulate(m.box(), q0, duration=0.05, ground=GROUND)
    again = rk.Trajectory.load(run.save(tmp_path / "flight.npz"))
    assert again.contacts.links == () and again.step_forces.links == run.step_forces.links


@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_a_link_that_is_fixed_to_the_world_has_the_friction_of_bodies(mu):
    """Not that of the ground: a box slides down it with g (sin - mu cos)."""
    tilt = 0.2
    c, s = math.cos(tilt), math.sin(tilt)
    R = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    top = Shape(Box((8.0, 1.0, 0.1)), Placement(R))
    table = ModelBuilder("table").link("top", 1.0, collisions=(top,)).build("fixed")
    cube = Shape(Box((0.2, 0.2, 0.2)))
    body = ModelBuilder("cube").link("body", 1.0, inertia=np.eye(3) / 150.0, collisions=(cube,))
    place = Placement(R, R @ np.array([-1.5, 0.0, 0.15]))
    world = rk.together({"table": table, "cube": (body.build("floating"), place)})
    pairs = rk.collision_pairs(world).with_law(friction=mu)
    run = rk.simulate(world, self_collision=pairs, ground=rk.Ground(height=-9.0, friction=0.9), **BOTH)
    assert run.v[-1, 3] == pytest.approx(0.3 * m.G * (s - mu * c), rel=1e-3)


def test_a_shape_may_have_a_tuple_as_its_place():
    low = Shape(Box((0.2, 0.2, 0.2)), Placement(position=(0.0, 0.0, -0.3)))
    robot = ModelBuilder("cube").link("body", 1.0, inertia=np.eye(3), collisions=(low,)).build("floating")
    run = rk.simulate(robot, [1.0, 0, 0, 0, 0, 0, 0.4], ground=GROUND, **BOTH)
    assert run.contact_force[-1, 2] == pytest.approx(m.G, rel=1e-3)


def test_runs_leave_their_arrays_to_the_next_ones(thrown, monkeypatch):
    """Which are no slower for that, and the same; one that runs within another has its own."""
    robot, (q0, v0) = m.quadruped(), (rk.standing_configuration(m.quadruped()), None)
    first = rk.simulate(robot, q0, v0, ground=True, **BOTH)
    inner = []

    def controller(t, q, v):
        if not inner:
            inner.append(rk.simulate(robot, q0, v0, ground=True, **BOTH))
        return np.zeros(robot.nv)

    outer = rk.simulate(robot, q0, v0, ground=True, controller=controller, **BOTH)
    made = []
    monkeypatch.setattr(ContactState, "__init__", lambda *_, **__: made.append(1))
    again = rk.simulate(robot, q0, v0, ground=True, **BOTH)
    for run in (inner[0], again):
        np.testing.assert_array_equal(run.q, first.q)
    np.testing.assert_allclose(outer.q, first.q, atol=1e-12)
    assert not made


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rollouts_leave_the_arrays_of_their_rows_to_the_next_ones(thrown, monkeypatch, dtype):
    """Which find nothing there of what was before, be it at rest or not finite."""
    robot, (q0, v0) = m.box(), thrown
    options = {"ground": GROUND, "dtype": dtype, "threads": 2, **BOTH}
    first = rk.rollout(robot, q0, v0, **options)
    with pytest.warns(UserWarning, match="finite"):
        rk.rollout(
            robot, q0[::-1], v0, tau=np.full((1, 5, 6), 1e300 if dtype == "float64" else 1e30), **options
        )
    made, make = [], KernelRows.__init__
    monkeypatch.setattr(
        KernelRows, "__init__", lambda self, *given, **more: made.append(make(self, *given, **more))
    )
    again = rk.rollout(robot, q0, v0, **options)
    assert not made and not len(again.failed)
    for name in ("q", "v", "contact_force", "deepest"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    rk.rollout(robot, q0[:3], v0[:3], **options)
    assert made, "other rows have their own arrays"


def test_copies_that_lie_together_are_the_same_arrays():
    rng = np.random.default_rng(1)
    arrays = {
        "ends": rng.integers(9, size=3).astype(np.int32),
        "q": rng.normal(size=(5, 3)),
        "none": np.zeros((0, 6)),
        "single": rng.normal(size=7).astype(np.float32),
        "part": rng.normal(size=(8, 2))[:5],
    }
    copies = copied(arrays)
    for name, x in arrays.items():
        assert copies[name].dtype == x.dtype and copies[name].flags.aligned and copies[name].flags.writeable
        np.testing.assert_array_equal(copies[name], x, strict=True, err_msg=name)
    memory = [*arrays.values(), *copies.values()]
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations(memory, 2))


@pytest.mark.parametrize("kept", [0, 1 << 24])
def test_what_is_noted_of_steps_does_not_depend_on_the_room_that_it_had(monkeypatch, thrown, kept):
    """Room for 4 steps grows on the way, that for 400 does not; it is handed over, or kept and copied."""
    monkeypatch.setattr(steppers, "KEPT_BYTES", kept)
    found = []
    for steps in (4, 400):
        monkeypatch.setattr(steppers, "NOTED_AT_START", {"n_noted": steps, "n_noted_contacts": 8 * steps})
        robot = m.box()  # another one, for which no room was made before
        runs = [rk.simulate(robot, q0, v0, ground=GROUND, **BOTH) for q0, v0 in zip(*thrown, strict=True)]
        found.append([run.step_forces.force for run in runs] + [run.contacts.points for run in runs])
    assert np.abs(found[0][0]).max() > 1.0
    for few, many in zip(*found, strict=True):
        np.testing.assert_array_equal(few, many)


@pytest.mark.parametrize("kept", [0, 1 << 24])
def test_who_begins_with_what_another_left_has_small_memory_of_it(monkeypatch, thrown, kept):
    monkeypatch.setattr(steppers, "KEPT_BYTES", kept)
    given = thrown[0][0], thrown[1][0]
    one = ContactStepper(rk.simulate(m.box(), *given, ground=GROUND, duration=1e-3).program, 1e-3)
    found = []
    for _ in range(2):
        one.begin(*given)
        assert one.take(200) == 200 and one.work
        found.append(one.q.copy())
        one.rest()
        assert bool(one.work) == (kept > 0)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 21])
def test_a_row_stops_where_any_of_its_numbers_is_not_finite(n, dtype):
    """Wherever in an array it stands, and whatever it is; all other rows take all their steps."""

    def keep(n, x):
        for_range(n, lambda k: x.__setitem__(k, 1.0 * x[k]))

    kernel = LoopKernel("keeps", keep, ["n"], [ArrayOf("x", ("n",), "inout")])
    x = np.ones((3 * n + 1, n), dtype)
    for row, bad in enumerate((np.nan, np.inf, -np.inf)):
        np.fill_diagonal(x[row * n :], bad)
    rows, done = KernelRows(kernel, {"n": n}, {"x": x}, {"x"}, dtype), np.zeros(3 * n + 1, np.int64)
    rows.run(0, len(x), {}, 4, done)
    assert rows.compiled
    np.testing.assert_array_equal(done, [1] * (3 * n) + [4])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rows", [1, 3])
def test_what_rows_are_given_may_lie_in_any_order(rows, order):
    """Inputs of steps and rows are read by their indices, as NumPy does, not as they lie in memory."""

    def add(n, x, u):
        for_range(n, lambda k: x.__setitem__(k, x[k] + u[k, 0] - 2.0 * u[k, 1]))

    kernel = LoopKernel("adds", add, ["n"], [ArrayOf("x", ("n",), "inout"), ArrayOf("u", ("n", 2))])
    u = np.asarray(np.random.default_rng(0).normal(size=(4, rows, 3, 2)), order=order)
    x, done = np.zeros((rows, 3)), np.zeros(rows, np.int64)
    KernelRows(kernel, {"n": 3}, {"x": x, "u": np.zeros((3, 2))}, {"x"}).run(0, rows, {"u": u}, 4, done)
    np.testing.assert_allclose(x, (u[..., 0] - 2.0 * u[..., 1]).sum(axis=0), rtol=0.0, atol=1e-14)
