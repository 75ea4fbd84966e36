"""Names that do not exist, of functions and of arguments: the error says which one was meant."""

from __future__ import annotations

import inspect
import pickle
import warnings

import pytest
from for_each import for_each

import robokit as rk
from robokit import dynamics
from robokit.unknown_names import ELSEWHERE, KEYWORDS, MARK


@pytest.fixture(scope="module")
def pendulum():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@for_each(
    "call, meant",
    [
        (lambda r: rk.simulate(r, timestep=0.001), "'dt'"),
        (lambda r: rk.simulate(r, r.neutral(), gravity_vector=(0, 0, 0)), "'gravity'"),
        (lambda r: rk.simulate(r, durration=1.0), "'duration'"),
        (lambda r: rk.rollout(r, num_threads=2), "'threads'"),
        (lambda r: rk.simulate(r, tau=[0.0, 0.0]), "'controller' or 'actuators'"),
        (lambda r: rk.load_urdf("a.urdf", floating_base=True), "'base'"),
        (lambda r: rk.loads_urdf("<robot/>", Base="fixed"), "'base'"),
        (lambda r: rk.inverse_kinematics(r, goal={}), "'targets'"),
        (lambda r: rk.Ground(mu=0.5), "'friction'"),
        (lambda r: rk.PD(stiffness=10.0, kd=1.0), "'kp'"),
        (lambda r: rk.Uniform(lo=0.0, high=1.0), "'low'"),
        (lambda r: r.configuration(joint={}), "'joints'"),
        (lambda r: rk.ModelBuilder("a").link("b", masss=1.0), "'mass'"),
        (lambda r: rk.Trajectory.load(filename="a.npz"), "'path'"),
    ],
)
def test_an_unknown_keyword_says_which_was_meant(pendulum, call, meant):
    with pytest.raises(
        TypeError, match=rf"got an unexpected keyword argument '.*'; did you mean {meant}"
    ) as e:
        call(pendulum)
    assert "\n" not in str(e.value)


def test_what_nothing_is_like_says_what_there_is(pendulum):
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzzz'; it takes robot, q0, v0"):
        rk.simulate(pendulum, zzzz=1)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'robot'$"):
        rk.simulate()


def test_an_error_of_a_users_function_is_left_alone(pendulum):
    def controller(t, q, v):
        return len(timestep=2)

    with pytest.raises(TypeError, match=r"^len\(\) takes no keyword arguments$"):
        rk.simulate(pendulum, duration=0.01, controller=controller)


def public_functions():
    """Public functions, but for those of single states, which take a microsecond."""
    names = set(rk.__all__) - set(dynamics.__all__)
    return sorted(name for name in names if inspect.isfunction(getattr(rk, name)))


def test_every_public_function_and_constructor_answers():
    assert len(public_functions()) > 15
    assert all(MARK in vars(getattr(rk, name)) for name in public_functions())
    for name in sorted(set(rk.__all__) - set(dynamics.__all__)):
        thing = getattr(rk, name)
        if isinstance(thing, type) and not issubclass(thing, Exception):
            own = thing.__init__ is not object.__init__
            assert hasattr(thing.__init__, MARK) or not own, name


def test_every_keyword_that_is_said_exists():
    known = {
        parameter
        for name in rk.__all__
        if callable(thing := getattr(rk, name))
        and not (inspect.isclass(thing) and issubclass(thing, Exception))
        for parameter in inspect.signature(thing).parameters
    }
    known |= set(inspect.signature(rk.Robot.random_configuration).parameters)
    assert {ours for several in KEYWORDS.values() for ours in several} <= known


@for_each("name", public_functions())
def test_a_public_function_is_pickled_by_its_name(name):
    function = getattr(rk, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_a_warning_names_the_line_of_the_caller(pendulum):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rk.simulate(pendulum, [9.0, 0.0], duration=0.01, dt=0.005, ground=True)
    assert caught and all(each.filename == __file__ for each in caught)


def test_warnings_from_below_name_the_line_of_the_caller_too(pendulum, tmp_path):
    """Of conversion, a method that is not exact, settings that do nothing, and meshes that are not there."""
    file = tmp_path / "robot.urdf"
    mesh = '<visual><geometry><mesh filename="none.stl"/></geometry></visual>'
    file.write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    pose, tau = [[0.1, 0.2]], [[0.0, 0.0]]
    calls = [
        lambda: rk.convert(pendulum, tmp_path / "robot.xml"),
        lambda: rk.forward_dynamics(pendulum, pose, tau, tau, method="crba", dtype="float32"),
        lambda: rk.Ground(sweeps=3),
        lambda: rk.simulate(rk.load_urdf(file), duration=0.01).to_html(tmp_path / "page.html"),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught and all(each.filename == __file__ for each in caught), [str(x) for x in caught]


def test_dir_is_what_is_public():
    assert dir(rk) == sorted(rk.__all__)
    assert len(set(rk.__all__)) == len(rk.__all__)
    import robokit.sim

    assert robokit.sim.simulate is rk.simulate


# A name of another library says what it is here; nothing else changes for names that do not exist
# ------------------------------------------------------------------------------------------------


def test_every_name_that_is_said_exists():
    for name in ELSEWHERE.values():
        owner, _, attribute = name.rpartition(".")
        known = {*dir(rk.Robot), *rk.Robot.__dataclass_fields__}
        assert attribute in known if owner == "Robot" else hasattr(rk, name), name


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("mass_matrix", "'crba'"),
        ("inverse_dynamics", "'rnea'"),
        ("nonLinearEffects", "'bias_forces'"),
        ("computeJointTorqueRegressor", "'regressor'"),
        ("computeABADerivatives", "'aba_derivatives'"),
        ("CalcMassMatrix", "'crba'"),
        ("integrate", "'Robot.integrate'"),
        ("load_urd", "'load_urdf' or 'loads_urdf'"),
    ],
)
def test_the_message_says_what_it_is_called_here(name, ours):
    with pytest.raises(
        AttributeError, match=f"module 'robokit' has no attribute '{name}'; did you mean {ours}"
    ):
        getattr(rk, name)


def test_what_nothing_is_like_gets_no_advice():
    for name in ("zzzz", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(rk, name)
    assert not hasattr(rk, "mass_matrix")


@for_each(
    "name, meant",
    [
        ("mass", "'total_mass'"),
        ("dof", "'nv'"),
        ("q_max", "'joints'"),
        ("neutrall", "'neutral'"),
        ("mass_matrix", "'robokit.crba'"),
        ("aba", "'robokit.aba'"),
    ],
)
def test_an_attribute_that_a_robot_does_not_have_says_what_is_here(pendulum, name, meant):
    with pytest.raises(
        AttributeError, match=f"'Robot' object has no attribute '{name}'; did you mean {meant}"
    ):
        getattr(pendulum, name)


def test_an_error_in_a_property_of_a_robot_is_left_alone(pendulum, monkeypatch):
    monkeypatch.setattr(rk.Robot, "nbodies", property(lambda robot: (0.5).nothing))
    with pytest.raises(AttributeError, match="'float' object has no attribute 'nothing'"):
        _ = pendulum.nbodies
    assert not hasattr(pendulum, "_nothing_at_all") and pickle.loads(pickle.dumps(pendulum)) == pendulum


def test_an_attribute_that_a_run_does_not_have_says_what_is_here(pendulum):
    run = rk.simulate(pendulum, duration=0.01)
    for name, meant in (
        ("time", "'t'"),
        ("position", "'q'"),
        ("plot", "'to_html'"),
        ("summaryy", "'summary'"),
    ):
        with pytest.raises(AttributeError, match=f"'{name}'; did you mean {meant}"):
            getattr(run, name)
    with pytest.raises(AttributeError, match="'Rollout' object has no attribute 'time'; did you mean 't'"):
        _ = rk.rollout(pendulum, steps=1).time
    with pytest.raises(AttributeError, match=r"has no attribute 'plot'$"):
        _ = rk.rollout(pendulum, steps=1).plot
    assert pickle.loads(pickle.dumps(run)) == run


def test_capitals_do_not_hide_a_name(pendulum):
    with pytest.raises(rk.UnknownName, match="did you mean 'aba'"):
        _ = rk.functions["ABA"]
    with pytest.raises(rk.UnknownName, match="did you mean 'upper_joint'"):
        pendulum.joint("UpperJoint")
