"""What rollouts measure in every step is what the events and figures of the same single run say."""

import pickle

import numpy as np
import pytest
import sim_models as m
from measured_runs import columns_of, differences, speeds_of

import robokit as rk
from robokit.algorithms.kinematics import forward_kinematics
from robokit.contact.measures import KINDS, MONITORS, SUBJECTS, Monitor
from robokit.spatial.control_flow import while_loop
from robokit.spatial.scalars import sqrt

ALL = tuple(rk.measures)


@rk.function(inputs={"q": "q", "v": "v", "t": (), "contact_force": (3,)}, outputs={"up": (), "push": ()})
def base_motion(tree, q, v, t, contact_force):
    """Height of the base a little later, and the sideways force of the ground."""
    x, y, _ = contact_force
    return {"up": forward_kinematics(tree, q)[1].r.z + 0.1 * v[1][5] * t, "push": sqrt(x * x + y * y)}


def fallen(robot, rows=3, speed=1.0, height=0.1, **arguments):
    q0 = rk.standing_configuration(robot, height=height, tilt=0.3)
    v0 = speed * np.random.default_rng(1).standard_normal((rows, robot.nv))
    return rk.rollout(robot, q0, v0, ground=arguments.pop("ground", True), measures=ALL, **arguments)


@pytest.fixture(scope="module")
def boxes():
    return fallen(m.box(), steps=700, dt=1e-3)


def test_a_box_that_comes_to_rest(boxes):
    for k in range(2):
        assert differences(boxes.measures, k, boxes.trajectory(k)) == []
    rests = np.isfinite(boxes.measures["rest_time"])
    assert rests.any() and boxes.measures["resting_height"][rests] == pytest.approx(0.1, abs=1e-3)
    assert (boxes.measures["peak_force_link"] == "box").all()
    assert not boxes.measures["failure"].any()


def test_records_and_rows_change_nothing(boxes):
    v0 = boxes.v[0]
    other = rk.rollout(
        m.box(), boxes.q[0, 0], v0[1:2], steps=700, dt=1e-3, ground=True, measures=ALL, record_every=700
    )
    for name, column in boxes.measures.items():
        assert other.measures[name][0] == column[1] or np.isnan(column[1]), name


def test_columns_are_those_of_the_table(boxes):
    columns = {column.name for row in rk.measures.values() for column in row.columns}
    named = {name.split("/")[0] + "/" + ("LINK" if "/box" in name else "JOINT") if "/" in name else name
             for name in boxes.measures}  # fmt: skip
    assert named == columns - {"limit_time/JOINT"}  # a box has no joints
    for name in rk.measures:
        assert f"{name}: " in str(rk.measures)


def test_the_deepest_point_is_reached_when_it_says(boxes):
    """A run that ends with that step has it, one that ends before has not."""
    step = boxes.measures["deepest_penetration_time"][0] / 1e-3 - 0.5
    start = m.box(), boxes.q[0, 0], boxes.v[0, 0]
    ends = [rk.simulate(*start, duration=1e-3 * (round(step) + k), dt=1e-3, ground=True) for k in (0, 1)]
    before, deepest = (run.summary["deepest_penetration"] for run in ends)
    assert before < deepest == boxes.measures["deepest_penetration"][0]


def test_bodies_overlap_as_their_places_say():
    """Two balls on a rail; a step finds them at its middle."""
    robot = m.sliders(masses=(1.0, 1.0)).with_gravity((0, 0, 0))
    start = {"v0": [1.0, -0.5], "duration": 0.4, "dt": 1e-3, "self_collision": True}
    run, rows = rk.simulate(robot, **start), rk.rollout(robot, measures="overlap", **start)
    x = run.notes.arrays["q"] + 0.5e-3 * run.notes.arrays["v"]
    overlap = 0.2 - (0.5 + x[:, 1] - x[:, 0])
    assert rows.measures["deepest_overlap"][0] == pytest.approx(overlap.max(), rel=1e-9)
    assert overlap.max() > 1e-6


def test_the_angular_momentum_at_the_end_is_within_that_of_all_records(boxes):
    for k in range(2):
        most = boxes.trajectory(k).summary["momentum_balance_angular"]
        assert boxes.measures["momentum_balance_angular"][k] <= 1.001 * most + 1e-15 < 1e-9


def test_the_fastest_body_is_as_fast_when_it_says(boxes):
    fall = fallen(m.quadruped(), rows=1, steps=200, dt=1e-3)
    for measures, run in ((boxes.measures, boxes.trajectory(0)), (fall.measures, fall.trajectory(0))):
        link, step = measures["greatest_speed_link"][0], measures["greatest_speed_time"][0] / 1e-3 - 0.5
        speed = speeds_of(run)[link][round(step)]
        assert speed == pytest.approx(measures["greatest_speed"][0], rel=1e-3)


ELSEWHERE = {
    "failure": "test_rows_that_fail_say_why_and_when",
    "failure_time": "test_rows_that_fail_say_why_and_when",
    "deepest_penetration_time": "test_the_deepest_point_is_reached_when_it_says",
    "limit_time/JOINT": "test_every_kind_of_run",
    "greatest_speed_link": "test_the_fastest_body_is_as_fast_when_it_says",
    "greatest_speed_time": "test_the_fastest_body_is_as_fast_when_it_says",
    "deepest_overlap": "test_bodies_overlap_as_their_places_say",
    "momentum_balance_angular": "test_the_angular_momentum_at_the_end_is_within_that_of_all_records",
}
"""Columns whose law is a test of its own."""


def test_every_measure_has_a_law(boxes):
    """Events, ledger and states of a single run say the same (measured_runs.py)."""
    said = {name.split("/")[0] + "/LINK" if "/" in name else name for name in columns_of(boxes.trajectory(0))}
    for name, measure in rk.measures.items():
        assert measure.columns and measure.text, name
        for column in measure.columns:
            law = column.name in said or ELSEWHERE.get(column.name) in globals()
            assert law, f"{name}: {column.name} has no law; add it to measured_runs.py"


def test_a_measure_cannot_be_defined_without_a_law():
    before = list(MONITORS), dict(rk.measures)
    with pytest.raises(TypeError, match="Lawless: a measure needs a law"):

        class Lawless(Monitor):
            name, columns = "lawless", (("x", "m", "no one knows"),)

    assert (MONITORS, dict(rk.measures)) == before
    assert all(measure.law for measure in rk.measures.values())


def test_each_kind_of_event_has_a_rank_of_its_own():
    assert sorted(kind.rank for kind in KINDS.values()) == list(range(len(KINDS)))
    assert {kind.subject for kind in KINDS.values()} <= set(SUBJECTS)


def test_measures_of_the_users_own_are_those_of_all_states():
    robot = m.box()
    q0 = rk.standing_configuration(robot, height=0.01, tilt=0.2)
    wanted = [rk.Measure(base_motion, how, name=how) for how in ("max", "min", "mean", "final")]
    wanted.append(rk.Measure(base_motion, "first_below", name="low", threshold=0.1))
    v0 = np.random.default_rng(0).standard_normal((2, robot.nv))
    run = rk.rollout(robot, q0, v0, steps=60, dt=1e-3, ground=True, record_every=1, measures=wanted)
    for k in range(2):
        every = [
            base_motion(robot, q, v, np.array([t]), f)
            for q, v, t, f in zip(run.q[:, k], run.v[:, k], run.t, run.contact_force[:, k], strict=True)
        ]
        for output in ("up", "push"):
            x = np.array([getattr(each, output) for each in every])
            said = {"max": x.max(), "min": x.min(), "mean": x.mean(), "final": x[-1]}
            for how, value in said.items():
                assert run.measures[f"{how}_{output}"][k] == pytest.approx(value, rel=1e-9, abs=1e-9), how
            assert run.measures[f"max_{output}_time"][k] == pytest.approx(run.t[x.argmax()])
            below = np.flatnonzero(x < 0.1)
            at = run.t[below[0]] if len(below) else np.nan
            assert run.measures[f"low_{output}"][k] == pytest.approx(at, nan_ok=True)
    assert run.measures["max_push"].max() > 0.0


def test_rows_that_fail_say_why_and_when():
    v0 = np.zeros((3, 6))
    v0[1] = np.nan
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        run = rk.rollout(m.box(), None, v0, steps=10, ground=rk.Ground(height=-5.0), measures=True)
    assert list(run.measures["failure"]) == [None, "the state is no longer finite", None]
    assert run.measures["failure_time"][1] == 0.0 and np.isnan(run.measures["failure_time"][[0, 2]]).all()
    for name, column in run.measures.items():
        if not name.startswith("failure"):
            assert column[1] is None or np.isnan(column[1]), name
    assert run.measures["peak_force"][0] == 0.0 and run.measures["peak_force_link"][0] is None


@pytest.mark.parametrize(
    "given, error, message",
    [
        (["peak_forse"], rk.UnknownName, "no measure named 'peak_forse'; did you mean 'peak_force'"),
        (7, rk.WrongType, "measures: expected True, or names"),
        ([base_motion], rk.WrongType, "say how to reduce it"),
        ([rk.Measure(base_motion), rk.Measure(base_motion, "min")], rk.ShapeError, "several are named"),
        ([rk.Measure(base_motion, link="foot")], rk.UnknownName, "no link that can touch the ground named"),
    ],
)
def test_wrong_measures(given, error, message):
    with pytest.raises(error, match=message):
        rk.rollout(m.box(), rk.standing_configuration(m.box()), steps=1, ground=True, measures=given)


def test_wrong_reductions():
    with pytest.raises(rk.UnknownName, match="no reduce named 'most'"):
        rk.Measure(base_motion, "most")
    with pytest.raises(rk.ShapeError, match="threshold: reduce='first_above' needs one"):
        rk.Measure(base_motion, "first_above")
    with pytest.raises(rk.UnknownName, match="no input of measure 'rnea' named 'a'"):
        rk.Measure(rk.functions["rnea"])


def test_without_measures_nothing_is_measured():
    run = rk.rollout(m.box(), rk.standing_configuration(m.box()), steps=1, ground=True)
    assert run.measures == {} and run.program.entries == run.program.sums


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, arguments",
    [
        (m.quadruped, {"self_collision": True}),
        (m.free_chain, {"ground": None, "integrator": "rkmk4"}),
        (m.free_chain, {"ground": None, "integrator": "contact", "gravity": (0, 0, 0)}),
        (m.box, {"dtype": "float32"}),
    ],
    ids=["self_collision", "rkmk4", "contact", "float32"],
)
def test_every_kind_of_run(model, arguments):
    robot = model()
    q0 = rk.standing_configuration(robot, height=0.02, tilt=0.3) if robot is not m.free_chain() else None
    v0 = 1.5 * np.random.default_rng(1).standard_normal((3, robot.nv))
    run = rk.rollout(robot, q0, v0, steps=300, dt=1e-3, measures=True, **{"ground": True, **arguments})
    loose = (1e-3, 1e-3) if "dtype" in arguments else ()
    for k in range(3):
        assert differences(run.measures, k, run.trajectory(k), *loose) == []
    if model is m.quadruped:
        assert run.measures["limit_hits"].sum() > 0
    if arguments.get("ground", True):
        assert run.measures["peak_force"].max() > 10.0


@pytest.mark.slow
def test_rows_with_masses_of_their_own_and_the_same_bits():
    robot, rng = m.box_with_bar(), np.random.default_rng(0)
    q0 = rk.standing_configuration(robot, height=0.02, tilt=0.3)
    v0, P = rng.standard_normal((5, robot.nv)), robot.inertial_parameters
    many = robot.with_inertias(P * rng.uniform(0.8, 1.2, (5, len(P), 1)))
    wanted = [*ALL, rk.Measure(rk.functions["kinetic_energy"], "max", name="most")]
    arguments = {"steps": 200, "dt": 1e-3, "ground": True, "reproducible": True, "record_every": 1}
    run = rk.rollout(many, q0, v0, measures=wanted, **arguments)
    bare = rk.rollout(many, q0, v0, **arguments)
    assert np.array_equal(bare.q, run.q), "what is measured changes nothing"
    assert run.measures["limit_hits"].sum() > 0 and run.measures["peak_force"].max() > 10.0
    assert differences(run.measures, 2, run.trajectory(2)) == []
    energy = rk.kinetic_energy(many.sample(2), run.q[:, 2], run.v[:, 2])
    assert run.measures["most"][2] == pytest.approx(energy.max(), rel=1e-12)
    part = rk.rollout(many.sample(2), q0, v0[2:3], measures=wanted, threads=1, **arguments)
    for name, column in run.measures.items():
        same = column[2:3] == part.measures[name]
        assert same.all() or np.isnan(column[2]), name


def test_a_measure_with_loops_of_unknown_length_is_refused_by_name():
    @rk.function(inputs=("q",), outputs={"c": ()})
    def counted(tree, q):
        return while_loop(lambda t: t < 3.0, lambda t: t + abs(q[1][0]) + 0.5, 0.0)

    with pytest.raises(rk.ShapeError, match="measure 'counted': its function has a loop"):
        rk.rollout(m.box(), steps=2, measures=[rk.Measure(counted)])


@pytest.mark.parametrize("actuators", [rk.PD(kp=40.0, kd=2.0, target=0.1), None])
def test_a_measured_row_of_passive_motion_repeats(actuators):
    """To the bit, by the step that was measured; it is NaN what the function is worth at the start."""

    @rk.function(inputs={"q": "q", "t": ()}, outputs={"quotient": ()})
    def quotient(tree, q, t):
        return {"quotient": (q[1][0] - q[1][0]) / t}

    measures = [*ALL, rk.Measure(quotient)]
    robot = rk.load_urdf(m.ROBOTS / "arm.urdf")
    rows = rk.rollout(robot, [[0.2] * 7, [0.4] * 7], duration=0.1, actuators=actuators, measures=measures)
    for k in range(2):
        assert np.array_equal(rows.trajectory(k).q, rows.q[:, k])
    assert list(rows.measures["quotient"]) == [0.0, 0.0]


def test_rollouts_with_measures_of_the_users_own_can_be_pickled():
    robot = m.pendulum()
    rows = rk.rollout(robot, [[0.5]], duration=0.1, measures=[rk.Measure(rk.functions["kinetic_energy"])])
    copied = pickle.loads(pickle.dumps(rows))
    assert copied == rows and copied.trajectory(0) == rows.trajectory(0)
