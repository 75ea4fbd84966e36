"""Functions of plain coordinates for other libraries: linear maps, and PyTorch's adapter without PyTorch."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import ladder
import numpy as np
import pytest
from ladder import State, relative

import robokit as rk
from robokit.dynamics.other_libraries import host_function, library, torch_function
from robokit.robot_names import find_robot


@rk.function(inputs={"q": "q", "v": "v", "K": (2, 3), "gain": ()}, outputs={"power": (), "u": (2,)})
def pull(tree, q, v, K, gain):
    """What a text may be: several outputs, inputs of other shapes, a quaternion."""
    w, x, y, z = q[1][:4]
    u = [gain * (K[3 * i] * w * x + K[3 * i + 1] * y + K[3 * i + 2] * v[1][i] * z) for i in range(2)]
    return {"power": u[0] * v[1][0] + u[1] * u[1], "u": u}


@pytest.fixture(scope="module")
def robot():
    return ladder.random_tree(0, "floating", ("revolute",), n=1)


@pytest.fixture(scope="module")
def host(robot):
    return host_function(robot, pull.key(robot), {"K": (2, 3), "gain": ()})


def given(robot, rng, lead=()):
    q = np.empty((*lead, robot.nq))
    for place in np.ndindex(*lead):
        q[place] = robot.random_configuration(rng)
    shapes = [(robot.nv,), (2, 3), ()]
    return [q, *(rng.standard_normal((*lead, *shape)) for shape in shapes)]


def test_values_are_those_of_the_function_and_quaternions_are_made_unit(robot, host):
    x = given(robot, np.random.default_rng(0))
    expected = pull(robot, *x, engine="python")
    x[0][:4] *= 1.7
    for a, b in zip(host(*x), expected, strict=True):
        assert relative(a, b) < 1e-14


def test_the_linear_maps_are_difference_quotients_and_each_others_transpose(robot, host):
    rng = np.random.default_rng(1)
    x, dx = given(robot, rng), given(robot, rng)
    h = 1e-5
    for f, most in ((host, 1e-9), (host.pullback, 1e-8)):
        at = x if f is host else [*x, *(rng.standard_normal(shape) for _, shape in host.outputs)]
        along = dx if f is host else [*dx, *(rng.standard_normal(shape) for _, shape in host.outputs)]
        more, less = (f(*(a + s * h * d for a, d in zip(at, along, strict=True))) for s in (1, -1))
        change = f.pushforward(*at, *along)
        for a, b, d in zip(more, less, change, strict=True):
            assert relative(d, (a - b) / (2 * h)) < most
        weights = [rng.standard_normal(shape) for _, shape in f.outputs]
        gradient = f.pullback(*at, *weights)
        one = sum(np.sum(w * d) for w, d in zip(weights, change, strict=True))
        other = sum(np.sum(g * d) for g, d in zip(gradient, along, strict=True))
        assert abs(one - other) < 1e-12 * max(1.0, abs(one))
        assert [g.shape for g in gradient] == [shape for _, shape in f.inputs]


def test_leading_axes_are_batches(robot, host):
    rng = np.random.default_rng(2)
    x = given(robot, rng, (2, 3))
    many = host(*x)
    assert [y.shape for y in many] == [(2, 3), (2, 3, 2)]
    for place in np.ndindex(2, 3):
        for a, b in zip(host(*(y[place] for y in x)), many, strict=True):
            assert relative(a, b[place]) < 1e-14
    assert host(x[0], x[1][0, 0], x[2][0], x[3][0, 0])[1].shape == (2, 3, 2)
    assert host(*(y[:1, :1] for y in x))[1].shape == (1, 1, 2)
    with pytest.raises(rk.ShapeError, match=r"K: expected shape \(..., 2, 3\), got \(3, 2\)"):
        host(x[0], x[1], np.zeros((3, 2)), 1.0)
    with pytest.raises(rk.ShapeError, match=r"v: expected shape \(..., \d+\), got \(1,\)"):
        host(x[0], np.zeros(1), x[2], 1.0)
    with pytest.raises(rk.ShapeError, match=r"q \(2, 3\), v \(4,\), K \(\), gain \(\): .* leading axes"):
        host(x[0], np.zeros((4, robot.nv)), np.zeros((2, 3)), 1.0)


def test_the_adapter_of_pytorch_gives_and_takes_gradients_as_pytorch_asks(monkeypatch, robot, host):
    """With a stand-in for the little of PyTorch that it calls. PyTorch's wheels are gigabytes; its gradcheck
    and gradgradcheck of the same functions are run by hand (docs/export.rst says how)."""

    class Tensor(np.ndarray):
        device = "cpu"

        def detach(self):
            return self

        cpu = numpy = detach

        def to(self, device):
            return self

        def dim(self):
            return self.ndim

        def movedim(self, axis, to):
            return np.moveaxis(self, axis, to)

        def sum_to_size(self, shape):
            lead = self.ndim - len(shape)
            return self.sum(axis=tuple(range(lead)))

    def tensor(x):
        return np.asarray(x).view(Tensor)

    class Function:
        calls = ()

        @classmethod
        def apply(cls, *arguments):
            context = SimpleNamespace(save_for_backward=lambda *x: setattr(context, "saved_tensors", x))
            context.save_for_forward = context.save_for_backward
            found = cls.forward(*arguments)
            cls.setup_context(context, arguments, found)
            Function.calls = (*Function.calls, (cls, context))
            return found

    fake = SimpleNamespace(
        autograd=SimpleNamespace(Function=Function),
        as_tensor=tensor,
        from_numpy=tensor,
        zeros_like=np.zeros_like,
        float64=np.float64,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    f = torch_function("pull", host)
    rng = np.random.default_rng(3)
    x = given(robot, rng)
    x[0] = np.stack([robot.random_configuration(rng) for _ in range(4)])
    y = f(x[0], x[1], K=x[2], gain=x[3])
    assert relative(y.power, host(*x)[0]) == 0.0 and y.u.shape == (4, 2)
    call, context = Function.calls[0]
    weights = [tensor(rng.standard_normal(a.shape)) for a in y]
    none, *gradients = call.backward(context, *weights)
    assert none is None and [g.shape for g in gradients] == [a.shape for a in x]
    for g, a in zip(gradients, host.pullback(*x, *weights), strict=True):
        assert relative(g, a if g.ndim == a.ndim else a.sum(axis=0)) < 1e-13
    with pytest.raises(
        rk.ShapeError, match=r"q: expected a tensor of float64, got float32; use tensor.double"
    ):
        f(x[0].astype(np.float32), *x[1:])
    with pytest.raises(TypeError, match=r"pull takes 4 inputs \(q, v, K, gain\), got 2"):
        f(*x[:2])


@pytest.mark.parametrize("name", ["casadi", "jax", "torch"])
def test_what_is_not_installed_is_said_with_its_extra(monkeypatch, robot, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        rk.MissingDependency, match=rf"{name} is not installed .*pip install 'robokit\[{name}\]'"
    ):
        getattr(pull, f"to_{name}")(robot)
    with pytest.raises(rk.MissingDependency):
        library(name, name)


def test_robots_of_many_inertias_are_refused(robot):
    many = robot.with_inertias(np.stack([robot.inertial_parameters] * 2))
    with pytest.raises(rk.RobokitError, match=r"2 samples of inertias; take one, robot.sample\(k\)"):
        host_function(many, pull.key(many), {})
    with pytest.raises(rk.RobokitError, match=r"2 samples of inertias; take one, robot.sample\(k\)"):
        pull.to_casadi(many)


def test_a_state_and_a_robot_by_name():
    robot = rk.load_urdf(find_robot("double_pendulum"))
    s = State(robot)
    host = host_function(robot, rk.functions["crba"].key(robot), {})
    assert relative(host(s.q)[0], rk.crba(robot, s.q, engine="python")) < 1e-14
    assert host_function(robot, rk.functions["crba"].key(robot), {}) is host
