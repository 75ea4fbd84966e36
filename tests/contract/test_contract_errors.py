"""Errors of the public functions name the argument and say what they got."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import re
import threading
import warnings

import ladder
import numpy as np
import pytest
import table_calls
import waiting
from for_each import for_each
from ladder import State

import robokit as rk
from robokit.cli.common import WrongUsage
from robokit.errors import OptionError, warn, warnings_into

CALLS = {name: table_calls.inputs(table_calls.PUBLIC[name]) for name in table_calls.of_states()}
ARGUMENTS = [(name, argument) for name, arguments in CALLS.items() for argument in arguments]


@pytest.fixture(scope="module")
def robot():
    """Small, with a floating base: it has a quaternion."""
    b = ladder.ModelBuilder("small").link("a", 1.0, inertia=np.eye(3)).link("b", 1.0, (0, 0, 0.2), np.eye(3))
    b.link("c", 1.0, (0, 0.1, 0), np.eye(3)).joint("k", "revolute", "b", "c")
    return b.joint("j", "revolute", "a", "b").build("floating")


def with_one(robot, argument, change):
    """Values of all arguments, one of them changed."""
    given = table_calls.values(robot, State(robot))
    return given | {argument: change(given[argument].copy())}


def at(x, i, value):
    x = x.copy()
    x[..., i] = value
    return x


WRONG = {
    "too long": lambda x: np.append(x, 0.0),
    "too short": lambda x: x[:-1],
    "three axes": lambda x: x[None, None],
    "a number": lambda x: 0.0,
    "nan": lambda x: at(x, -1, np.nan),
    "infinite": lambda x: at(x, -1, np.inf),
    "nan in a batch": lambda x: at(np.stack([x, x]), -1, np.nan),
    "text": lambda x: "neutral",
    "nothing": lambda x: None,
    "complex": lambda x: x + 1j,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_are_named(robot, wrong):
    offenders = []
    for name, argument in ARGUMENTS:
        given = with_one(robot, argument, WRONG[wrong])
        try:
            found: object = table_calls.call(name, robot, given)
        except Exception as error:
            found = error
        kind = isinstance(found, rk.ShapeError | rk.InvalidValue)
        caught = isinstance(found, rk.RobokitError) and isinstance(found, ValueError)
        if not kind or not caught or not re.match(rf"{argument}\b", str(found)):
            offenders.append(f"{name}, {argument}: {found!r}")
    assert len(ARGUMENTS) > 60 and not offenders, "\n".join(offenders)


@for_each("name", CALLS)
def test_quaternions_must_be_unit(robot, name):
    for batch in (False, True):
        given = with_one(robot, "q", lambda q, b=batch: at(np.stack([q, q]) if b else q, slice(0, 4), 0.7))
        with pytest.raises(rk.InvalidValue, match=r"^q\b.*wxyz"):
            table_calls.call(name, robot, given)


def test_a_quaternion_off_by_rounding_is_taken(robot):
    q = State(robot).q
    q[:4] *= 1 + 1e-8
    assert np.isfinite(rk.crba(robot, q)).all()


def test_messages_say_what_was_given_and_what_is_accepted(robot):
    with pytest.raises(rk.ShapeError, match=rf"\({robot.nq},\).*\({robot.nq + 1},\)"):
        rk.crba(robot, np.zeros(robot.nq + 1))
    with pytest.raises(rk.InvalidValue, match="nan"):
        rk.kinetic_energy(robot, robot.neutral(), np.full(robot.nv, np.nan))


def test_batches_must_be_of_one_size(robot):
    q = np.tile(robot.neutral(), (3, 1))
    with pytest.raises(rk.ShapeError, match=r"^v\b"):
        rk.kinetic_energy(robot, q, np.zeros((2, robot.nv)))


def test_wrong_out_is_named(robot):
    s = State(robot)
    for out in (np.empty(robot.nv + 1), np.empty(robot.nv, dtype=np.float32), np.empty((2, robot.nv))):
        with pytest.raises(rk.ShapeError, match=r"^out\b"):
            rk.rnea(robot, s.q, s.v, s.a, out=out)
    with pytest.raises((rk.ShapeError, TypeError), match="out"):
        rk.rnea(robot, s.q, s.v, s.a, out=[0.0] * robot.nv)


def test_singular_inertia_names_the_joint():
    b = ladder.ModelBuilder("light").link("a").link("b", 1.0, (0, 0, 1), np.eye(3)).link("c")
    b.joint("shoulder", "revolute", "a", "b").joint("antenna", "revolute", "b", "c")
    robot = b.build()
    zero = np.zeros(2)
    for method in ("aba", "crba"):
        with pytest.raises(rk.SingularInertia, match="antenna") as caught:
            rk.forward_dynamics(robot, zero, zero, zero, method=method)
        assert caught.value.joint == "antenna"
    with pytest.raises(rk.SingularInertia, match="antenna"):
        rk.ltdl(robot, rk.crba(robot, zero))
    # The rest of the mechanics does not mind.
    assert np.isfinite(rk.rnea(robot, zero, zero, zero)).all()


def test_an_overflow_in_a_large_batch_names_its_state_without_looking_at_all(robot, monkeypatch):
    looked = []
    monkeypatch.setattr("robokit.dynamics.run.singular_joint", lambda robot, q: looked.append(q))
    s = State(robot)
    v = np.tile(s.v, (500, 1))
    for rows, message in (
        ([411], r"state 411 \(and 0 more\)"),
        (range(100, 500), r"state 100 \(and 399 more\)"),
    ):
        v[rows] = 1e200
        for method in ("aba", "crba"):
            looked.clear()
            with pytest.raises(rk.ShapeError, match=f"accelerations of {message} are not finite"):
                rk.forward_dynamics(robot, np.tile(s.q, (500, 1)), v, s.tau, method=method)
            assert 1 <= len(looked) <= 32
    with pytest.raises(rk.ShapeError, match="the accelerations are not finite"):
        rk.aba(robot, s.q, 1e200 * s.v, s.tau)


def test_a_robot_without_mass_has_no_center():
    robot = ladder.ModelBuilder("ghost").link("a").link("b").joint("j", "revolute", "a", "b").build()
    with pytest.raises(rk.SingularInertia, match="mass"):
        rk.center_of_mass(robot, [0.0])


def test_ltdl_refuses_what_is_no_mass_matrix(robot):
    n = robot.nv
    with pytest.raises(rk.ShapeError, match=r"^H\b"):
        rk.ltdl(robot, np.eye(n + 1))
    with pytest.raises(rk.InvalidValue, match=r"^H\b"):
        rk.ltdl(robot, np.full((n, n), np.nan))
    with pytest.raises(rk.SingularInertia):
        rk.ltdl(robot, -np.eye(n))


def test_every_error_is_a_robokit_error():
    from robokit import errors

    kinds = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, Exception)]
    kinds = [x for x in kinds if not issubclass(x, Warning)]
    assert len(kinds) >= 8 and all(issubclass(x, rk.RobokitError) for x in kinds)
    drawn = errors.__doc__
    assert all(x.__name__ in drawn for x in kinds)


SINGLE = rk.Diagnostic("error", "mass-negative", "link 'a'", "a.urdf", 3, "a mass of -1 kg")
RAISED = [
    rk.RobokitError("m"),
    rk.LoadError("m", [SINGLE]),
    rk.UrdfError("m", [SINGLE]),
    OptionError("m"),
    rk.ModelError("m"),
    rk.ShapeError("m"),
    rk.InvalidValue("m", "q", (0, 3)),
    rk.WrongType("robot", 3, "a robot", "load one"),
    rk.UnknownName("joint", "knee", ["left_knee", "hip"], "(of a leg)"),
    rk.FunctionError("m", "f.py", 7),
    rk.SingularInertia("m", "wrist"),
    rk.DeviceError("m"),
    rk.WriteError("m", "a/b.urdf", 13),
    rk.SimulationError("m", {"t": 1.0}),
    rk.MissingDependency("m"),
    WrongUsage("m"),
]
STATE = (
    "diagnostics",
    "argument",
    "place",
    "message",
    "file",
    "line",
    "joint",
    "filename",
    "errno",
    "strerror",
)


def _raise(error):
    raise error


def test_errors_survive_pickle_and_copies_with_attributes_and_notes():
    public = {
        each for each in vars(rk).values() if isinstance(each, type) and issubclass(each, rk.RobokitError)
    }
    assert public <= {type(each) for each in RAISED}
    for error in RAISED:
        error.add_note("row 3")
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error) and str(again) == str(error) and again.args == error.args
            assert vars(again) == vars(error) and again.__notes__ == ["row 3"]
            for name in STATE:
                assert getattr(again, name, None) == getattr(error, name, None)


def test_a_pool_raises_the_error_of_its_worker():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for error in RAISED:
            with pytest.raises(type(error), match=re.escape(str(error))):
                pool.apply_async(_raise, (error,)).get(waiting.PATIENCE)


def test_calls_leave_the_filters_of_warnings_alone(tmp_path, monkeypatch):
    """Those are of all threads: a call that changes and restores them undoes what others do meanwhile."""
    builder = ladder.ModelBuilder("ball").link("a", 1.0, inertia=np.eye(3)).link("b", 1.0, inertia=np.eye(3))
    robot = builder.joint("j", "spherical", "a", "b").build("fixed")  # which a URDF cannot say
    run = rk.simulate(robot, duration=0.01)
    with monkeypatch.context() as patched:
        patched.setattr(warnings, "catch_warnings", lambda *_, **__: pytest.fail("filters are changed"))
        run.save(tmp_path / "run.npz")
    with pytest.warns(UserWarning, match="left out") as told:
        done = rk.convert(rk.load_urdf(rk.find_robot("humanoid")), tmp_path / "a.xml")
    assert [str(each.message) for each in told if "left out" in str(each.message)] == list(done.said)


def test_warnings_of_one_thread_are_not_those_of_another():
    told, inside, done = [], threading.Event(), threading.Event()

    def other():
        with warnings_into(told):
            warn("mine")
            inside.set()
            done.wait(waiting.PATIENCE)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(waiting.PATIENCE)
    with pytest.warns(rk.SimulationWarning, match="yours"):
        warn("yours")
    done.set()
    thread.join()
    assert told == ["mine"]
