"""Functions of the user's own, and derivatives of all functions: laws, agreement with the complex step."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import types
from pydoc import render_doc

import cloudpickle
import numpy as np
import pytest
import waiting
from ladder import State, chain, coordinate_rate, pendulum, random_tree, relative

import robokit as rk
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.rnea import rnea
from robokit.dynamics.choices import CHOICES
from robokit.engine.loops.recorded_once import RecordedOnce
from robokit.engine.trace.record import trace
from robokit.model import couple
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.elementary import atan2, exp, power, tanh
from robokit.spatial.scalars import maximum, minimum, sqrt, where

H = 1e-30


def complex_step(f, robot, state, names, of):
    """Exact derivatives of a function, by imaginary steps along each direction of an input."""
    plain, given = f.flat(robot).function, [getattr(state, x) for x in names]
    k = names.index(of)
    columns = []
    for e in np.eye(robot.nv):
        rate = coordinate_rate(robot, state.q, e) if of == "q" else e
        moved = [x + 1j * H * rate if i == k else x + 0j for i, x in enumerate(given)]
        columns.append(np.concatenate([np.ravel(x) for x in plain(*(x.tolist() for x in moved))]).imag / H)
    return np.array(columns).T


@pytest.fixture(scope="module", params=["fixed", "floating"])
def every_joint(request):
    """Each joint kind once."""
    return random_tree(0, request.param, n=9)


@pytest.mark.parametrize("name", ["rnea", "aba", "centroidal_momentum_matrix"])
def test_derivatives_of_the_functions_are_those_of_the_complex_step(every_joint, name):
    robot, f = every_joint, rk.functions[name]
    state, names = State(robot, 3), list(f.inputs)
    values = [getattr(state, x) for x in names]
    derived = f.derivative(*names)
    results = derived(robot, *values, engine="python")
    for of, got in zip(names, results if len(names) > 1 else (results,), strict=True):
        expected = complex_step(f, robot, state, names, of).reshape(got.shape)
        assert np.abs(expected).max() > 0.1
        assert relative(got, expected) < 1e-11


def test_machine_code_batches_and_single_precision_compute_the_same_derivative():
    robot, f = chain(1, "floating"), rk.functions["rnea"].derivative("q", "v")
    states = [State(robot, k) for k in range(3)]
    batch = [np.array([getattr(s, x) for s in states]) for x in ("q", "v", "a")]
    many = f(robot, *batch)
    assert many._fields == ("dtau_dq", "dtau_dv")
    rough = f(robot, *batch, dtype="float32")
    out = tuple(np.empty_like(x) for x in many)
    assert f(robot, *batch, out=out)[0] is out[0]
    for k, s in enumerate(states):
        one = f(robot, s.q, s.v, s.a)
        plain = f(robot, s.q, s.v, s.a, engine="python")
        for a, b, c, d, e in zip(one, plain, many, out, rough, strict=True):
            assert relative(a, b) < 1e-12
            assert relative(c[k], b) < 1e-12
            assert (d[k] == c[k]).all()
            assert e.dtype == np.float32 and relative(e[k], b) < 1e-4


def test_the_derivative_by_torque_is_the_inverse_of_the_mass_matrix(every_joint):
    s = State(every_joint, 5)
    got = rk.functions["aba"].derivative("tau")(every_joint, s.q, s.v, s.tau, engine="python")
    assert relative(got @ rk.crba(every_joint, s.q, engine="python"), np.eye(every_joint.nv)) < 1e-9


def test_derivatives_of_forward_and_inverse_dynamics_are_inverse(every_joint):
    robot, s = every_joint, State(every_joint, 6)
    a = rk.aba(robot, s.q, s.v, s.tau, engine="python")
    forward = rk.functions["aba"].derivative("q", "v")(robot, s.q, s.v, s.tau, engine="python")
    inverse = rk.functions["rnea"].derivative("q", "v")(robot, s.q, s.v, a, engine="python")
    mass = rk.crba(robot, s.q, engine="python")
    for x, y in zip(forward, inverse, strict=True):
        assert relative(-mass @ x, y) < 1e-9


def test_gradients_of_the_energies_are_momentum_and_gravity_forces(every_joint):
    robot, s = every_joint, State(every_joint, 7)
    momentum = rk.functions["kinetic_energy"].gradient("v")(robot, s.q, s.v, engine="python")
    assert relative(momentum, rk.crba(robot, s.q, engine="python") @ s.v) < 1e-12
    slope = rk.functions["potential_energy"].gradient("q")(robot, s.q, engine="python")
    assert relative(slope, rk.gravity_forces(robot, s.q, engine="python")) < 1e-12


def test_the_second_derivative_of_kinetic_energy_by_velocity_is_the_mass_matrix(every_joint):
    robot, s = every_joint, State(every_joint, 8)
    second = rk.functions["kinetic_energy"].hessian_vector("v")
    assert second.inputs == ("q", "v", "dv")
    mass = rk.crba(robot, s.q, engine="python")
    assert relative(second(robot, s.q, s.v, s.tau, engine="python"), mass @ s.tau) < 1e-12


def test_the_hessian_by_configuration_is_symmetric_and_a_second_difference(every_joint):
    robot, s = every_joint, State(every_joint, 9)
    second, n = rk.functions["potential_energy"].hessian_vector("q"), robot.nv
    hessian = np.array([second(robot, s.q, e, engine="python") for e in np.eye(n)])
    assert relative(hessian, hessian.T) < 1e-12

    def energy(d):
        return rk.potential_energy(robot, robot.integrate(s.q, d), engine="python")

    d = s.rng.standard_normal(n)
    h = 1e-3
    fourth = (
        -energy(2 * h * d)
        + 16 * energy(h * d)
        - 30 * energy(0 * d)
        + 16 * energy(-h * d)
        - energy(-2 * h * d)
    ) / (12 * h * h)
    assert abs(d @ hessian @ d - fourth) < 1e-6 * abs(fourth)


def test_derivatives_of_coupled_robots_follow_the_coupling():
    b = rk.ModelBuilder("pair").link("l0")
    for k in range(3):
        b.link(f"l{k + 1}", 1.0 + k, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))
        mimic = rk.Mimic("j0", -1.5, 0.2) if k == 2 else None
        b.joint(
            f"j{k}",
            "revolute",
            f"l{k}",
            f"l{k + 1}",
            rk.Placement(np.eye(3), (0, 0.3, 0.1)),
            (k == 0, 1, k == 1),
            mimic=mimic,
        )
    robot = couple(b.build("floating"))
    s, f = State(robot, 1), rk.functions["rnea"]
    (got,) = [f.derivative("q")(robot, s.q, s.v, s.a, engine="python")]
    assert relative(got, complex_step(f, robot, s, ["q", "v", "a"], "q")) < 1e-11


def test_samples_of_inertias_have_derivatives_of_their_own():
    robot = chain(3)
    scale = np.array([1.0, 1.7])[:, None, None]
    varied = robot.with_inertias(robot.inertial_parameters * scale)
    s, f = State(robot), rk.functions["rnea"].derivative("a")
    assert relative(f(varied, s.q, s.v, s.a)[1], 1.7 * rk.crba(robot, s.q)) < 1e-12
    second = rk.functions["kinetic_energy"].hessian_vector("v")
    assert relative(second(varied, s.q, s.v, s.a)[1], 1.7 * rk.crba(robot, s.q) @ s.a) < 1e-12


# -- functions of the user's own ---------------------------------------------------------------------


@rk.function(inputs={"q": "q", "v": "v", "target": (3,), "gain": ()}, outputs={"error": (3,), "speed": ()})
def reach(tree, q, v, target, gain):
    """Distance of the last body's origin from a target, and a speed."""
    p = forward_kinematics(tree, q)[-1].T
    rates = [x for row in v for x in row]
    origin = Vector3(0.0, 0.0, 0.0)
    error = forward_kinematics(tree, q)[-1].point(origin) - Vector3(*target) if p else origin
    return {"error": error * gain, "speed": sqrt(sum(x * x for x in rates))}


def test_a_function_of_ones_own_is_called_as_the_others_are():
    robot = chain(3)
    s = State(robot)
    one = reach(robot, s.q, s.v, [0.1, 0.2, 0.3], 2.0)
    last = rk.forward_kinematics(robot, s.q).position[-1]
    assert relative(one.error, 2.0 * (last - [0.1, 0.2, 0.3])) < 1e-12
    assert math.isclose(one.speed, np.linalg.norm(s.v))
    again = reach(robot, s.q, v=s.v, gain=2.0, target=[0.1, 0.2, 0.3], engine="python")
    assert relative(again.error, one.error) < 1e-12
    many = reach(robot, s.q, np.stack([s.v, 2.0 * s.v]), [0.1, 0.2, 0.3], np.array([2.0, 4.0]))
    assert relative(many.error, np.array([one.error, 2.0 * one.error])) < 1e-12
    assert relative(many.speed, np.array([one.speed, 2.0 * one.speed])) < 1e-12
    assert reach.name == "reach" and reach.__doc__.startswith("Distance")


def test_its_derivatives_are_functions_too():
    robot = chain(3)
    s = State(robot)
    jacobian = reach.derivative("q", "target")(robot, s.q, s.v, [0.1, 0.2, 0.3], 2.0)
    expected = 2.0 * rk.link_jacobian(robot, s.q, robot.link_names[-1])[3:]
    assert relative(jacobian.derror_dq, expected) < 1e-12
    assert (jacobian.derror_dtarget == -2.0 * np.eye(3)).all()
    assert reach.derivative("q") is reach.derivative("q")


def test_outputs_by_joint_and_configurations_as_inputs():
    @rk.function(
        inputs={"q": "q", "goal": "q", "a": "a"}, outputs={"tau": "tau", "same": "q", "n": ("nv", 2)}
    )
    def forces(tree, q, goal, a):
        tau = rnea(tree, goal, [[0.0] * len(x) for x in a], a)
        return tau, q, [[x, 2.0 * x] for row in a for x in row]

    robot = couple(random_tree(1, "floating", n=9))
    s, other = State(robot), State(robot, 1)
    got = forces(robot, s.q, other.q, s.a)
    assert relative(got.tau, rk.rnea(robot, other.q, 0 * s.v, s.a)) < 1e-12
    assert (got.same == s.q).all() and (got.n == np.stack([s.a, 2 * s.a], axis=-1)).all()
    with pytest.raises(rk.InvalidValue, match="goal: expected a unit quaternion"):
        forces(robot, s.q, 2.0 * other.q, s.a)


def test_an_error_in_the_function_names_its_line():
    @rk.function(inputs=("q",), outputs={"x": ()})
    def wrong(tree, q):
        return math.sin(q[1][0])  # the line that is named

    robot = pendulum()
    with pytest.raises(
        rk.FunctionError, match=r"wrong: TypeError: a traced scalar .*spatial.scalars"
    ) as caught:
        wrong(robot, [0.1])
    assert "the line that is named" in str(caught.value)
    assert caught.value.file == __file__ and isinstance(caught.value.__cause__, TypeError)
    frames, shown = caught.value.__traceback__, []
    while frames is not None:
        shown.append(frames.tb_frame.f_code.co_filename)
        frames = frames.tb_next
    assert len(shown) == 2  # this test and the call: no page of the engine's frames

    @rk.function(inputs=("q",), outputs={"x": ()})
    def branches(tree, q):
        return 1.0 if q[1][0] > 0.0 else 0.0

    with pytest.raises(rk.FunctionError, match=r"use where\(condition, a, b\)"):
        branches(robot, [0.1])
    assert branches(robot, [0.1], engine="python") == 1.0


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        ([1.0, 2.0], "output 'p': expected 3 numbers for shape .3,., got 2"),
        ({"r": [1.0, 2.0, 3.0]}, "expected a dict of the outputs p, got one of r"),
        (["a", "b", "c"], "output 'p': expected numbers, got 'a'"),
        ([1j, 2.0, 3.0], "output 'p': expected numbers, got 1j"),
        (None, "output 'p': got None: does the function return it"),
    ],
)
def test_a_function_that_returns_something_else_is_refused(returned, words):
    f = rk.function(lambda tree, q: returned, inputs=("q",), outputs={"p": (3,)}, name="f")
    with pytest.raises(rk.FunctionError, match=words):
        f(pendulum(), [0.1])


@pytest.mark.parametrize("engine", [None, "python"])
def test_a_matrix_of_the_transposed_shape_is_refused(engine):
    def rows(tree, q):
        return [[q[1][0], 1.0, 2.0], [3.0, 4.0, 5.0]]

    def given(python, shape):
        return rk.function(python, inputs=("q",), outputs={"A": shape})(pendulum(), [0.5], engine=engine)

    for python in (rows, lambda tree, q: np.array(rows(tree, q)), lambda tree, q: [rows(tree, q)]):
        np.testing.assert_array_equal(given(python, (2, 3)), [[0.5, 1, 2], [3, 4, 5]])
        with pytest.raises(rk.FunctionError, match=r"output 'A': expected shape \(3, 2\), got 2 by 3"):
            given(python, (3, 2))
    flat = given(lambda tree, q: [x for row in rows(tree, q) for x in row], (3, 2))
    np.testing.assert_array_equal(flat, [[0.5, 1], [2, 3], [4, 5]])


def test_systems_of_scalars_are_solved_by_functions_of_robokit():
    def python(tree, q, solve):
        A, b = [[2.0 + q[1][0] ** 2, q[1][0]], [q[1][0], 3.0]], [1.0, q[1][0]]
        return solve(A, b)

    from robokit.spatial.linear import ldl, ldl_solve

    kind = {"inputs": ("q",), "outputs": {"x": (2,)}}
    with pytest.raises(rk.FunctionError, match=r"np\.linalg solves no systems .* ldl_solve\(ldl\(A\), b\)"):
        rk.function(lambda tree, q: python(tree, q, np.linalg.solve), **kind)(pendulum(), [0.3])
    f = rk.function(lambda tree, q: python(tree, q, lambda A, b: ldl_solve(ldl(A), b)), **kind)
    np.testing.assert_allclose(f(pendulum(), [0.3]), np.linalg.solve([[2.09, 0.3], [0.3, 3.0]], [1.0, 0.3]))


def test_wrong_declarations_and_calls_are_refused():
    with pytest.raises(rk.UnknownName, match=r"no input named 'target'; .*inputs=\{'target': \(3,\)\}"):
        rk.function(lambda tree, target: target, inputs=("target",), outputs={"p": (3,)})
    with pytest.raises(rk.UnknownName, match=r"no space of output 'p' named 'x'; .* \(or a shape"):
        rk.function(lambda tree, q: q, inputs=("q",), outputs={"p": "x"})
    with pytest.raises(rk.UnknownName, match=r"no size of output 'p' named 'n'; did you mean 'nv'"):
        rk.function(lambda tree, q: q, inputs=("q",), outputs={"p": ("n",)})
    with pytest.raises(rk.WrongType, match=r"name of an output: expected a name of Python, got str 'p x'"):
        rk.function(lambda tree, q: q, inputs=("q",), outputs={"p x": ()})
    with pytest.raises(rk.ShapeError, match=r"in the order of inputs, \(tree, q, x\), got \(tree, x, q\)"):
        rk.function(lambda tree, x, q: x, inputs={"q": "q", "x": ()}, outputs={"p": ()})
    with pytest.raises(rk.WrongType, match="outputs: expected a dict"):
        rk.function(lambda tree, q: q, inputs=("q",), outputs=(3,))
    with pytest.raises(rk.UnknownName, match="input named 'p'"):
        reach.derivative("p")
    with pytest.raises(
        rk.ShapeError, match="rnea_gradient_q: gradient expects outputs that are numbers, got 'tau'"
    ):
        rk.functions["rnea"].gradient("q")(pendulum(), [0.1], [0.0], [0.0])
    with pytest.raises(rk.UnknownName, match="function named 'rnae'; did you mean 'rnea'"):
        rk.functions["rnae"]
    with pytest.raises(TypeError, match=r"reach takes 4 inputs .* got 2"):
        reach(pendulum(), [0.1], [0.2])
    with pytest.raises(TypeError, match="no input 'goal'"):
        reach(pendulum(), [0.1], [0.2], goal=[1, 2, 3])
    with pytest.raises(rk.ShapeError, match=r"gain: expected shape \(\) or a batch"):
        reach(pendulum(), [0.1], [0.2], [1, 2, 3], [[1.0]])
    with pytest.raises(rk.WrongType, match="robot"):
        reach("pendulum", [0.1], [0.2], [1, 2, 3], 1.0)


def test_the_link_of_a_jacobian_is_given_by_name():
    robot = chain(3)
    s, f = State(robot), rk.functions["link_jacobian"]
    at, link = np.array([0.1, 0.2, 0.3]), robot.link_names[-1]
    assert (f(robot, s.q, at, link=link, axes="world") == rk.link_jacobian(robot, s.q, link, at=at)).all()
    rate = f.derivative("q")(robot, s.q, at, link=link, axes="world") @ s.v
    moved = [rk.link_jacobian(robot, s.q + h * s.v, link, at=at) for h in (1e-6, -1e-6)]
    assert relative(rate, (moved[0] - moved[1]) / 2e-6) < 1e-8
    with pytest.raises(TypeError, match="needs link="):
        f(robot, s.q, at)


def test_external_forces_are_an_input():
    robot = chain(3, "floating")
    s, f = State(robot), rk.functions["rnea_f_ext"]
    push = {robot.link_names[-1]: np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])}
    assert relative(f(robot, s.q, s.v, s.a, push), rk.rnea(robot, s.q, s.v, s.a, f_ext=push)) < 1e-14


# -- what a function reads ----------------------------------------------------------------------------------

MODULE = """
import functools, os, types
import numpy as np
import robokit as rk

ABOVE, LIST, ARRAY, TABLE = 1.0, [1.0], np.ones(2), {"gain": 1.0}
CONFIG = types.SimpleNamespace(gain=1.0)

def decorated(function):
    @functools.wraps(function)
    def wrapped(*given):
        return function(*given)
    return wrapped

def closed(gain):
    def python(tree, q):
        return gain[0] * q[1][0]
    return python, gain

class Spring:
    gain = 1.0
    def of_q(self, tree, q):
        return self.gain * q[1][0]
    def __call__(self, tree, q):
        return self.gain * q[1][0]

def partly(gain, tree, q):
    return gain[0] * q[1][0]

def gained(tree, q, gain=LIST):
    return gain[0] * q[1][0]

def nested(tree, q):
    def inner(x):
        return gain() * x
    return inner(q[1][0])

def imports(tree, q):
    import stale_module
    return stale_module.gain() * q[1][0]

def reads(tree, q):
    with open(os.environ["STALE_FILE"]) as file:
        return float(file.read()) * q[1][0]

function = rk.function(inputs=("q",), outputs={"y": ()})
closure, cell = closed([1.0])
spring = Spring()
functions = {
    "function below": function(decorated(lambda tree, q: gain() * q[1][0])),
    "function inside": function(nested),
    "global": function(lambda tree, q: ABOVE * q[1][0]),
    "list": function(lambda tree, q: LIST[0] * q[1][0]),
    "array": function(lambda tree, q: ARRAY[1] * q[1][0]),
    "dict": function(lambda tree, q: TABLE["gain"] * q[1][0]),
    "attribute": function(lambda tree, q: CONFIG.gain * q[1][0]),
    "closure": function(closure),
    "default": function(gained),
    "method": function(spring.of_q),
    "callable": function(spring),
    "partial": function(functools.partial(partly, LIST)),
    "environment": function(lambda tree, q: float(os.environ["STALE_GAIN"]) * q[1][0]),
    "file": function(reads),
    "import": function(imports),
    "another": function(lambda tree, q: inner(tree, q)),
}
inner = function(lambda tree, q: LIST[0] * q[1][0])

def gain():
    return GAIN

ABOVE = LIST[0] = ARRAY[1] = TABLE["gain"] = CONFIG.gain = cell[0] = spring.gain = GAIN
"""

READ = [
    "function below", "function inside", "global", "list", "array", "dict", "attribute", "closure", "default",
    "method", "callable", "partial", "environment", "file", "import", "another",
]  # fmt: skip


@pytest.fixture
def read_again(monkeypatch, tmp_path):
    """The functions of a module as a process finds them that reads this gain; processes share the cache."""
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("STALE_FILE", str(tmp_path / "gain.txt"))

    def process(gain):
        monkeypatch.setenv("STALE_GAIN", str(gain))
        (tmp_path / "gain.txt").write_text(str(gain))
        module = types.ModuleType("stale_module")
        module.gain = lambda: gain
        monkeypatch.setitem(sys.modules, "stale_module", module)
        space = {"__name__": "somebody's", "GAIN": gain}
        exec(MODULE, space)
        return space["functions"]

    return process


@pytest.mark.parametrize("read", READ)
def test_machine_code_is_of_what_the_function_read_when_it_was_recorded(read_again, read):
    """Whatever an earlier process found, and compiled and kept on disk."""
    for gain in (2.0, 3.0, 2.0):
        read_now = read_again(gain)[read]
        assert read_now(pendulum(), [0.5]) == read_now(pendulum(), [0.5], engine="python") == 0.5 * gain
        assert read_now.gradient("q")(pendulum(), [0.5]) == [gain]


def test_what_was_recorded_is_found_on_disk(read_again, caplog):
    caplog.set_level("INFO", "robokit")
    for compiled in (1, 0):
        caplog.clear()
        read_again(2.0)["file"](pendulum(), [0.5])
        assert sum("compiled" in record.message for record in caplog.records) == compiled


def test_measures_are_of_what_their_function_read(read_again):
    robot, states = pendulum(), ([[0.5]], [[0.0]])
    for gain in (2.0, 3.0):
        measure = rk.Measure(read_again(gain)["list"], "final", name="y")
        found = rk.rollout(pendulum(), *states, steps=1, dt=1e-9, measures=[measure]).measures["y"]
        assert found == pytest.approx([0.5 * gain], abs=1e-9)
    assert robot.nq == 1


def test_a_function_runs_once_for_a_robot():
    """Single states, batches, single precision, derivatives and measures agree, whatever has changed."""
    runs = []

    @rk.function(inputs=("q",), outputs={"y": ()})
    def counted(tree, q):
        runs.append(tree)
        return len(runs) * q[1][0]

    robot = pendulum()
    assert counted(robot, [0.5]) == 0.5
    assert (counted(robot, [[0.5], [1.0]]) == [0.5, 1.0]).all()
    assert (counted(robot, [[0.5]] * 20, dtype="float32") == 0.5).all()
    assert counted.gradient("q")(robot, [0.5]) == 1.0 and counted(robot, [0.5], reproducible=True) == 0.5
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 2.0])[:, None, None])
    assert (counted(varied, [0.5]) == 1.0).all() and (counted(varied, [0.5], dtype="float32") == 1.0).all()
    assert len(runs) == 2
    assert counted(robot, [0.5], engine="python") == 1.5  # as it stands, for a debugger
    assert counted(pendulum(), [0.5]) == 2.0  # another robot


def test_a_function_without_inputs_is_recorded_too():
    gain = [2.0]
    f = rk.function(lambda tree: gain[0], inputs=(), outputs={"y": ()}, name="constant")
    robot = pendulum()
    assert f(robot) == 2.0
    gain[0] = 3.0
    assert f(robot) == 2.0 and f(pendulum()) == 3.0


@pytest.mark.parametrize("columns", [1, 8])
@pytest.mark.parametrize("name", ["rnea", "inverse_mass_matrix", "aba_derivatives"])
def test_replayed_a_function_is_as_quick_as_it_was_recorded(name, columns):
    """As many operations, iterations and columns side by side, for every target."""
    robot = chain(12, "floating")
    made = rk.functions[name].flat(robot)
    once = RecordedOnce(made.function, made.sizes, made.outputs)
    trace(made.function, made.sizes, made.outputs)  # what the tree derives at its first use
    straight, played = (
        trace(f, made.sizes, made.outputs, shares="large", columns=columns) for f in (made.function, once)
    )
    assert played.counts == straight.counts and len(played.marks) == len(straight.marks)
    assert [b.lanes for b in played.blocks] == [b.lanes for b in straight.blocks]


# -- joints by name, and places that do not exist ---------------------------------------------------------


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_joints_go_by_name_too(engine):
    robot = random_tree(0, "floating", kinds=("spherical", "revolute", "prismatic"), n=4)
    joints, s = robot.joints, State(robot)

    def python(tree, q, goal, v, a, tau):
        return [x for j in joints for row in (q, goal, v, a, tau) for x in row[j.name]]

    inputs = {"q": "q", "goal": "q", "v": "v", "a": "a", "tau": "tau"}
    f = rk.function(python, inputs=inputs, outputs={"y": (2 * robot.nq + 3 * robot.nv,)})
    by_q, by_v = (s.q, s.q), (s.v, s.a, s.tau)
    wanted = [[*(x[j.q_slice] for x in by_q), *(x[j.v_slice] for x in by_v)] for j in joints]
    found = f(robot, *by_q, *by_v, engine=engine)
    assert (found == np.concatenate([x for row in wanted for x in row])).all()


@pytest.mark.parametrize("engine", ["llvm", "python"])
@pytest.mark.parametrize(
    ("python", "words"),
    [
        (lambda tree, q, p: q[4][0], r"q\[4\]: q has the length 4, for the joints 1 to 3 of robot 'chain'"),
        (lambda tree, q, p: q[1][1], r"q\[1\]\[1\]: q\[1\] has 1 number, counted from 0"),
        (lambda tree, q, p: p[2], r"p\[2\]: p has 2 numbers, counted from 0"),
        (lambda tree, q, p: q["joint"][0], r"no joint of q named 'joint'"),
    ],
)
def test_a_place_that_does_not_exist_is_named(python, words, engine):
    f = rk.function(python, inputs={"q": "q", "p": (2,)}, outputs={"y": ()}, name="own")
    with pytest.raises(rk.FunctionError, match=f"own: .*{words}"):
        f(chain(3), [0.1, 0.2, 0.3], [0.0, 0.0], engine=engine)


# -- every function of the table ------------------------------------------------------------------------

UNSUITED = {"operational_space_inertia", "constrained_dynamics", "impact"}
"""Whose functions take the larger of two numbers, which complex numbers have not."""

WALKED = sorted(
    name
    for name in {*rk.functions} - UNSUITED
    if "f_ext" not in name and "columns" not in name and "world" not in name
)


@pytest.mark.parametrize("name", [name for name in WALKED if name != "aba_derivatives"])
def test_every_function_of_the_table_has_its_derivatives(name):
    robot = random_tree(2, "floating", kinds=("spherical", "revolute", "planar"), n=2)
    f, state = rk.functions[name], State(robot, 1)
    chosen = {choice: CHOICES[choice].example(robot) for choice in f.choices}
    made, rng = f.flat(robot, **chosen), np.random.default_rng(0)
    given = [getattr(state, x.name, rng.standard_normal(x.size)).tolist() for x in made.inputs]
    for k, each in enumerate(made.inputs):
        columns = []
        for e in np.eye(each.directions(robot)):
            rate = coordinate_rate(robot, state.q, e) if each.manifold else e
            moved = [x if i != k else (np.array(x) + 1j * H * rate).tolist() for i, x in enumerate(given)]
            columns.append([np.array(row, complex).imag / H for row in made.function(*moved)])
        got = f.derivative(each.name).flat(robot, **chosen).function(*given)
        for row, expected in zip(got, zip(*columns, strict=True), strict=True):
            assert relative(row, np.array(expected).T.ravel()) < 1e-11


def test_a_choice_may_be_a_list():
    robot = chain(3, "floating")
    s, f = State(robot, 1), rk.functions["hybrid_dynamics"]
    named = list(robot.joint_names[-2:])
    got = f.derivative("a")(robot, s.q, s.v, s.tau, s.a, prescribed=named, engine="python")
    assert got[0].shape[-1] == robot.nv


@pytest.mark.parametrize("looped", [False, True])
def test_a_choice_may_be_of_whole_numbers(looped):
    """In a straight line and in loops; a choice counts the turns of a loop, too."""

    @rk.function(inputs={"x": ()}, outputs={"y": (), "z": ()})
    def f(tree, x):
        steps = where(x > 0.5, 3, 2)
        return [steps * x * x, for_range(steps, lambda k, s: s + 0.5 * x, x) if looped else 0.5 * x]

    robot = pendulum()
    for x, n in ((0.7, 3.0), (0.2, 2.0)):
        found = f(robot, x)
        assert found.y == pytest.approx(n * x * x, rel=1e-15)
        assert found.z == pytest.approx(x + n * 0.5 * x if looped else 0.5 * x, rel=1e-15)
        assert f.derivative("x")(robot, x)[0] == pytest.approx(2.0 * n * x, rel=1e-14)


@pytest.mark.parametrize("batch", [False, True])
def test_a_function_may_use_arrays_of_numpy_and_opposites_of_comparisons(batch):
    """What a function does with numbers it does with traced scalars: one state, a batch, both engines."""
    robot = chain(2)

    def python(tree, q, v):
        x, u = np.concatenate(q), np.array([v[1][0], v[2][0]])
        lever = np.cross([x[0], x[1], 1.0], [0.0, 0.5, u[0]])
        low = where(~(x[0] > 0.3) | ((u[1] < 0.0) & (x[1] >= 0.0)), 1.0, 2.0)
        return {"p": np.array([[2.0, 1.0], [0.0, 3.0]]) @ x * low, "n": np.linalg.norm(lever) + np.exp(u) @ x}

    f = rk.function(python, inputs=("q", "v"), outputs={"p": (2,), "n": ()})
    rng = np.random.default_rng(4)
    q, v = rng.standard_normal((2, 2, 2)) if batch else rng.standard_normal((2, 2))  # two states: as x has
    rows = [
        python(None, [[], [a[0]], [a[1]]], [[], [b[0]], [b[1]]])
        for a, b in zip(np.atleast_2d(q), np.atleast_2d(v), strict=True)
    ]
    for engine in ("llvm", "python"):
        found = f(robot, q, v, engine=engine)
        assert relative(np.reshape(found.p, (-1, 2)), np.array([row["p"] for row in rows])) < 1e-14
        assert relative(np.ravel(found.n), np.array([row["n"] for row in rows])) < 1e-14


@rk.function(inputs=("q", "v"), outputs={"T": ()})
def twice_the_energy(tree, q, v):
    return 2.0 * rk.functions["kinetic_energy"](tree, q, v)


def test_functions_are_parts_of_other_functions_and_functions_are_pickled_by_name():
    robot, s = chain(2), State(chain(2))
    four = rk.function(
        lambda tree, q, v: 2.0 * twice_the_energy(tree, q, v=v), inputs=("q", "v"), outputs={"T": ()}
    )
    energy = rk.kinetic_energy(robot, s.q, s.v)
    assert relative(four(robot, s.q, s.v), 4.0 * energy) < 1e-14
    for f in (twice_the_energy, rk.functions["crba"], rk.functions["rnea"].derivative("q").gradient("v")):
        assert pickle.loads(pickle.dumps(f)) is f


def test_a_function_of_a_program_goes_to_other_processes_with_its_function():
    space = {"__name__": "__main__", "rk": rk}
    exec(
        "@rk.function(inputs=('v',), outputs={'y': ()})\ndef fast(tree, v):\n return v[1][0] * v[1][0]\n",
        space,
    )
    slope = space["fast"].gradient("v")  # which the function keeps
    again = pickle.loads(cloudpickle.dumps(space["fast"]))
    assert again is not space["fast"] and again(chain(1), [3.0], engine="python") == 9.0
    assert pickle.loads(cloudpickle.dumps(slope))(chain(1), [3.0]) == 6.0
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(space["fast"])


PROGRAM = """
import multiprocessing
import robokit as rk

@rk.function(inputs=("v",), outputs={"y": ()})
def fast(tree, v):
    return v[1][0] * v[1][0]

def plain(tree, v):
    return 2.0 * v[1][0]

twice = rk.function(plain, inputs={"v": "v"}, outputs={"y": ()})

def work(pair):
    f, robot = pair
    return f is fast, f(robot, [3.0, 0.0], engine="python")

if __name__ == "__main__":
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with multiprocessing.get_context("METHOD").Pool(1) as pool:
        print(pool.map(work, [(fast, robot), (twice, robot), (fast.gradient("v"), robot)]))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_functions_of_a_program_go_to_its_workers(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("METHOD", method))
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=waiting.PATIENCE)
    found = ran.stdout.strip()
    assert found == "[(True, 9.0), (False, 6.0), (False, array([6., 0.]))]", ran.stderr


@pytest.mark.parametrize("engine", ["llvm", "python"])
def test_numbers_may_be_arrays_of_one_number(engine):
    wrong = {
        "no axes": lambda tree, q: np.array(sqrt(q[1][0])),
        "in a list": lambda tree, q: [np.array(sqrt(q[1][0]))],
        "in a dict": lambda tree, q: {"y": np.array(sqrt(q[1][0]))},
        "one axis": lambda tree, q: np.array([sqrt(q[1][0])]),
    }
    for kind, python in wrong.items():
        for shape, one, rows in (((), 2.0, [2.0, 3.0]), ((1,), [2.0], [[2.0], [3.0]])):
            f = rk.function(python, outputs={"y": shape}, name="f")
            assert np.array_equal(f(chain(2), [4.0, 0.0], engine=engine), one), kind
            assert np.array_equal(f(chain(2), [[4.0, 0.0], [9.0, 0.0]], engine=engine), rows), kind


OF_NUMPY = {
    "whole numbers": lambda x: np.int64(3) * x + sqrt(np.int64(4)) + maximum(np.int64(2), x),
    "a choice": lambda x: where(x > 0.3, np.int32(7), x) + where(np.int8(0) < x, x, 0.0),
    "of single precision": lambda x: maximum(np.float32(0.25), x) + where(x > 0.3, np.float32(0.5), x),
    "without axes": lambda x: maximum(np.array(x), 0.25) + atan2(np.array(x), np.array(2.0)),
    "a condition": lambda x: (
        where(np.array(x > 0.3), x, 1.0) + cond(np.array(x > 0.3), lambda: x, lambda: 1.0)
    ),
    "compared": lambda x: where(np.array([y > 0.3 for y in (x, 0.2)]), np.array([x, 2.0]), 1.0).sum(),
    "with axes": lambda x: (
        where(x > 0.3, np.array([x, 2.0]), np.zeros(2)) @ maximum([1.0, x] * np.ones(2), 0.7)
    ),
    "of elements": lambda x: sum(tanh(np.array([x, 0.5 * x]))) + exp(np.array([[x], [0.0]]))[0, 0],
    "branches": lambda x: sum(cond(x > 0.3, lambda: np.array([x, x * x]), lambda: np.zeros(2))),
    "known ones": lambda x: minimum(x, np.array([0.2, 0.9])).sum(),
    "angles": lambda x: (atan2(x, np.array([1.0, 2.0])) - atan2(np.array([3.0, -1.0]), x)).sum(),
    "powers": lambda x: power(np.array([x, 2.0]), 1.3) @ power(np.array([2.0, 3.0]), np.array([x, 0.5])),
    "long and short doubles": lambda x: (
        np.longdouble(2) * x + maximum(np.longdouble(0.25), x) + minimum(np.float16(0.25), x)
    ),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numbers_and_arrays_of_numpy_are_those_that_they_hold(name):
    """In the functions of scalars, too: entry by entry, recorded as on plain numbers."""
    f = rk.function(lambda tree, q: OF_NUMPY[name](q[1][0]), outputs={"y": ()}, name="f")
    q = np.array([[0.4, 0.0], [0.1, 0.0]])
    plain = f(chain(2), q, engine="python")
    assert relative(f(chain(2), q), plain) < 1e-14
    step = f.derivative("q")(chain(2), q)[:, 0]
    ends = [f(chain(2), q + np.array([h, 0.0]), engine="python") for h in (1e-6, -1e-6)]
    assert relative(step, (ends[0] - ends[1]) / 2e-6) < 1e-8


def test_common_mistakes_in_a_function_are_explained():
    robot = chain(2)
    state = ([0.1, 0.2], [0.0, 0.0])

    def made(python):
        return rk.function(python, inputs=("q", "v"), outputs={"y": ()}, name="f")

    for python, words in (
        (lambda tree, q, v: q[1] * 2, r"expected 1 number for shape \(\), got 2.*q\[i\]\[0\] a number"),
        (lambda tree, q, v: np.sin(q[0]) if q[1][0] > 0 else 0.0, "and & and | instead of and and or"),
        (lambda tree, q, v: sqrt(q[1]), r"expected a scalar, got a list of them: take one, as q\[i\]\[0\]"),
        (lambda tree, q, v: q[1][0] > 0.0, r"got a comparison, which where\(condition, 1.0, 0.0\)"),
        (lambda tree, q, v: rk.crba(robot, q)[0, 0], r"such functions with the tree, f\(tree, q, ...\)"),
        (
            lambda tree, q, v: np.linalg.norm(np.frexp(q[1][0])),
            r"np\.frexp takes no scalars .*\n.*test_own_fun",
        ),
    ):
        with pytest.raises(rk.FunctionError, match=words.replace("|", r"\|")):
            made(python)(robot, *state)
    moved = rk.function(lambda tree, q: [1.0, 2.0], inputs=("q",), outputs={"y": "tau"})
    with pytest.raises(rk.FunctionError, match=r"'tau' is a list of the .*, got \[1.0, 2.0\]; .*\('nv',\)"):
        moved(robot, state[0])
    with pytest.raises(rk.FunctionError, match=r"q\[1\]\[5\]: q\[1\] has 1 number(.|\n)*test_own_fun"):
        made(lambda tree, q, v: (x[5] for x in q[1:]))(robot, *state)
    with pytest.raises(rk.ShapeError, match=r"text: expected a function \(tree, q, v\) -> outputs, got one"):
        made(lambda tree, q: 0.0)
    f = made(lambda tree, q, v: q[1][0])
    with pytest.raises(rk.WrongType, match="it is such a function already"):
        made(f)
    with pytest.raises(TypeError, match="give each input once"):
        f.derivative("q", "q")
    g = rk.function(lambda tree, q, dq: dq, inputs={"q": "q", "dq": ()}, outputs={"y": ()})
    with pytest.raises(TypeError, match="the direction is called 'dq'"):
        g.hessian_vector("q")


def test_robokits_functions_as_objects_have_their_own_help():
    for name, each in rk.functions.items():
        public = getattr(rk, name, None)
        assert each.__doc__ == (each.row.function if public is None else public).__doc__
        assert each.__doc__.splitlines()[0] in render_doc(each)
