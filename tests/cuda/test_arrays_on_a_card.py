"""Arrays of PyTorch and JAX on a card, as functions of robots take and return them; the card is the host's.

The numbers to compare with are those of NumPy's arrays on the processor: the same text, written, compiled and
called another way.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import table_calls
from ladder import State, relative

import robokit as rk
from robokit.dynamics.choices import card_number
from robokit.dynamics.layout import INPUTS
from robokit.engine.cuda import arrays, driver, straight_code
from robokit.engine.cuda.arrays import View
from robokit.errors import DeviceError
from robokit.spatial.control_flow import while_loop

pytestmark = pytest.mark.parity

B = 5


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")


@pytest.fixture(scope="module")
def given(robot):
    return table_calls.batch_of(robot, [State(robot, seed) for seed in range(B)])


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


class Library(NamedTuple):
    """One of those whose arrays functions take: where PyTorch is not installed JAX shows the same."""

    put: Callable[[np.ndarray], Any]
    take: Callable[[Any], Any]
    address: Callable[[Any], int]
    kind: type
    words: str


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    module = pytest.importorskip(request.param)
    if request.param == "torch":
        kind = module.Tensor
        yield Library(module.tensor, module.from_dlpack, kind.data_ptr, kind, "a tensor of PyTorch")
        return
    before = module.config.jax_enable_x64
    module.config.update("jax_enable_x64", True)
    take = module.dlpack.from_dlpack
    yield Library(module.numpy.array, take, lambda x: x.unsafe_buffer_pointer(), module.Array, "a JAX array")
    module.config.update("jax_enable_x64", before)


def test_every_function_of_the_table_takes_their_arrays_and_numpys(card, library, robot, given):
    """With device= NumPy's; some in single precision."""
    for name, row in table_calls.PUBLIC.items():
        arrays = [x for x in table_calls.inputs(row) if x in given and given[x].ndim > 1]
        expected = table_calls.arrays(table_calls.call(name, robot, given))

        def same(result, error=1e-13, expected=expected):
            for x, y in zip(table_calls.arrays(result), expected, strict=True):
                assert relative(np.asarray(x, float), y) < error

        before = len(card.launches)
        same(found := table_calls.call(name, robot, given | {x: library.put(given[x]) for x in arrays}))
        assert len(card.launches) == before + 1, name
        first = found.matrices if isinstance(found, rk.LinkPoses) else found
        first = first.L if isinstance(first, rk.LTDLFactor) else first
        first = first[0] if isinstance(first, tuple) else first
        assert isinstance(first, library.kind), name
        copied = table_calls.call(name, robot, given, device="cuda")
        same(copied)
        assert all(type(x) is np.ndarray for x in table_calls.arrays(copied)) and not card.held
        if name in ("rnea", "aba", "crba", "constrained_dynamics", "link_jacobian"):
            single = {x: library.put(given[x].astype(np.float32)) for x in arrays}
            same(table_calls.call(name, robot, given | single), 2e-3)


def by_number(torch, x):
    """The same batch as the transposed of an array (n, B)."""
    return torch.tensor(np.ascontiguousarray(np.moveaxis(x, 0, -1))).movedim(-1, 0)


def test_every_function_of_the_table_takes_tensors_as_they_lie(card, torch, robot, given):
    """By number, and out= of both layouts; results lie by number."""
    for name in table_calls.PUBLIC:
        row = table_calls.PUBLIC[name]
        arrays = [x for x in table_calls.inputs(row) if x in given and given[x].ndim > 1]
        expected = table_calls.arrays(table_calls.call(name, robot, given))

        def same(result, error=1e-13, expected=expected):
            for x, y in zip(table_calls.arrays(result), expected, strict=True):
                assert relative(np.asarray(x, float), y) < error

        tensors = given | {x: torch.tensor(given[x]) for x in arrays}
        found = table_calls.call(name, robot, given | {x: by_number(torch, given[x]) for x in arrays})
        same(found)
        first = found.matrices if isinstance(found, rk.LinkPoses) else found
        first = first.L if isinstance(first, rk.LTDLFactor) else first
        first = first[0] if isinstance(first, tuple) else first
        assert first.stride(0) == 1, name
        if "out" in table_calls.TAKES[name] and len(expected) == 1 and name != "forward_kinematics":
            out = torch.full(expected[0].shape, np.nan, dtype=torch.float64)
            assert table_calls.call(name, robot, tensors, out=out) is out
            same(out)
            out = torch.empty((2 * B, *expected[0].shape[1:]), dtype=torch.float64)[::2]
            assert table_calls.call(name, robot, tensors, out=out) is out
            same(out)


def test_every_public_function_has_a_device():
    for name in table_calls.PUBLIC:
        assert "device" in inspect.signature(getattr(rk, name)).parameters, name


def test_links_points_and_forces_on_a_card(card, library, robot, given):
    q, v, a = (given[x] for x in "qva")
    tensors = [library.put(x) for x in (q, v, a)]
    wrench = np.arange(6.0) + np.arange(B)[:, None]
    for forces in ({"lower": [0, 0, 0, 5.0, 1.0, 0]}, {"lower": wrench, "upper": [1.0, 0, 0, 0, 0, 0]}):
        expected = rk.rnea(robot, q, v, a, forces)
        there = {k: library.put(x) if isinstance(x, np.ndarray) else x for k, x in forces.items()}
        assert relative(rk.rnea(robot, *tensors, there), expected) < 1e-13
        assert relative(rk.rnea(robot, q, v, a, forces, device="cuda"), expected) < 1e-13
    f = np.arange(B * (robot.nbodies + 1) * 6.0).reshape(B, -1, 6)
    expected = rk.aba(robot, q, v, a, f)
    assert relative(rk.aba(robot, *tensors, library.put(f)), expected) < 1e-12
    links, points = ["upper", "lower"], np.arange(B * 6.0).reshape(B, 2, 3)
    for at, there in (((0.0, 0.1, -0.5), (0.0, 0.1, -0.5)), (points, library.put(points))):
        expected = rk.link_velocity(robot, q, v, links, "body", at)
        assert relative(rk.link_velocity(robot, *tensors[:2], links, "body", there), expected) < 1e-13
    on = rk.Placement(rk.rotations.rpy_to_matrix([0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3]))
    for axes in ("world", "body"):
        expected = rk.link_jacobian(robot, q, "lower", axes, on)
        assert relative(rk.link_jacobian(robot, tensors[0], "lower", axes, on), expected) < 1e-13
    for at in (("lower", (0, 0, -0.5)), ("lower", on), ("lower", np.ones((4, 3))), "upper"):
        for x, y in zip(
            rk.forward_kinematics(robot, tensors[0], at=at),
            rk.forward_kinematics(robot, q, at=at),
            strict=True,
        ):
            assert isinstance(x, library.kind) and relative(x, y) < 1e-13


@rk.function(inputs={"q": "q", "K": (2, 3)}, outputs={"e": (), "u": (2,)})
def energies(tree, q, K):
    u = [sum(K[3 * i + j] * q[2][0] for j in range(3)) + i * q[3][0] for i in range(2)]
    return {"e": u[0] * u[1] * u[1], "u": u}


def test_functions_of_the_users_own_and_their_derivatives(card, library, robot, given):
    q, K = given["q"], np.arange(6.0).reshape(2, 3) + np.arange(B)[:, None, None]
    for f in (energies, energies.derivative("q", "K")):
        for x, y in zip(f(robot, library.put(q), library.put(K)), f(robot, q, K, device="cuda"), strict=True):
            assert isinstance(x, library.kind) and relative(x, y) < 1e-15
        for x, y in zip(f(robot, q, K, device="cuda"), f(robot, q, K), strict=True):
            assert relative(x, y) < 1e-14


@rk.function(inputs={"x": ()}, outputs={"root": (), "passes": ()})
def root(tree, x):
    """Newton's iteration, as long as it takes."""
    start = (x * x + 1.0, 0.0)
    step = lambda y, n: (0.5 * (y + start[0] / y), n + 1.0)  # noqa: E731
    found, passes = while_loop(lambda y, n: abs(y * y - start[0]) > 1e-9 * start[0], step, *start)
    return {"root": found, "passes": passes}


def test_functions_with_loops_of_their_own_length(card, library, robot):
    x = np.array([0.1, 2.0, -30.0, 400.0])
    for f in (root, root.derivative("x")):
        expected = f(robot, x)
        for _ in range(2):
            for given in ((library.put(x), {}), (x, {"device": "cuda"})):
                for a, b in zip(f(robot, given[0], **given[1]), expected, strict=True):
                    assert relative(a, b) < 1e-14
    assert len(set(root(robot, x).passes)) == 4


def test_single_states_and_robots_with_samples_of_inertias(card, library, robot, given):
    q, v, a = (given[x] for x in "qva")
    assert rk.kinetic_energy(robot, library.put(q[0]), library.put(v[0])).shape == ()
    found = rk.aba(robot, *(library.put(x[0]) for x in (q, v, a)))
    assert found.shape == (robot.nv,) and relative(found, rk.aba(robot, q[0], v[0], a[0])) < 1e-13
    many = robot.with_inertias(robot.inertial_parameters * np.linspace(1, 2, B)[:, None, None])
    expected = rk.rnea(many, q, v, a)
    for _ in range(2):
        assert relative(rk.rnea(many, *map(library.put, (q, v, a))), expected) < 1e-13
    assert relative(rk.rnea(many, q, v, a, device="cuda"), expected) < 1e-13


def test_gradients_of_tensors_are_those_of_robokit(card, torch, robot, given):
    """By autograd of a plain call, of to_torch, and of second order; a random functional of aba's result."""
    names, w = ("q", "v", "tau"), np.random.default_rng(1).normal(size=(B, robot.nv))
    expected = []
    for on_cpu in (True, False):
        tensors = [torch.tensor(given[x], requires_grad=True) for x in names]
        f = rk.functions["aba"].to_torch(robot) if on_cpu else lambda *x: rk.aba(robot, *x)
        before = len(card.launches)
        (f(*tensors) * torch.tensor(w)).sum().backward()
        assert len(card.launches) == before + 2
        expected.append([x.grad.numpy() for x in tensors])
    da_dv, da_dtau = rk.aba_derivatives(robot, *(given[x] for x in names))[1:]
    for k, D in ((1, da_dv), (2, da_dtau)):
        for grads in expected:
            assert relative(grads[k], np.einsum("bi,bij->bj", w, D)) < 1e-10
    single = [torch.tensor(given[x]).float().requires_grad_() for x in names]
    rk.aba(robot, *single).sum().backward()
    assert single[1].grad.dtype == torch.float32
    q = torch.tensor(given["q"][0], requires_grad=True)
    energy = rk.functions["potential_energy"].to_torch(robot)
    assert torch.autograd.gradgradcheck(energy, q)


def test_jax_runs_it_in_compiled_programs(card, given):
    jax = pytest.importorskip("jax")
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")  # programs keep their card
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        names = ("q", "v", "tau")
        arrays = [jax.numpy.array(given[x]) for x in names]
        expected = rk.aba(robot, *(given[x] for x in names))
        launches = len(card.launches)
        compiled = jax.jit(lambda q, v, tau: 2 * rk.aba(robot, q, v, tau))
        assert relative(compiled(*arrays), 2 * expected) < 1e-13
        assert isinstance(rk.aba(robot, *arrays), jax.Array)
        assert len(card.launches) == launches + 2
        assert relative(rk.aba(robot, arrays[0], given["v"][0].tolist(), arrays[2]), rk.aba(
            robot, given["q"], given["v"][0], given["tau"])) < 1e-13  # fmt: skip
        direct = jax.jit(jax.grad(lambda q, v, tau: rk.aba(robot, q, v, tau).sum(), argnums=(1, 2)))
        found = direct(*arrays[:2], arrays[2][0])
        D = rk.aba_derivatives(robot, given["q"], given["v"], given["tau"][0])[1:]
        assert relative(found[0], D[0].sum(axis=1)) < 1e-10
        assert relative(found[1], D[1].sum(axis=(0, 1))) < 1e-10
        pushed = jax.jit(lambda q, v, a: rk.rnea(robot, q, v, a, {"lower": [0, 0, 0, 5.0, 1.0, 0]}))
        expected = rk.rnea(robot, *(given[x] for x in "qva"), {"lower": [0, 0, 0, 5.0, 1.0, 0]})
        for k in range(2):
            assert relative(pushed(*(jax.numpy.array(given[x][k:]) for x in "qva")), expected[k:]) < 1e-13
        aba = rk.functions["aba"].to_jax(robot)
        slope = jax.jit(
            jax.vmap(jax.grad(lambda q, v, tau: aba(q, v, tau).sum(), argnums=(1, 2)), (0, 0, None))
        )
        found = slope(*arrays[:2], arrays[2][0])
        D = rk.aba_derivatives(robot, given["q"], given["v"], given["tau"][0])[1:]
        for x, y in zip(found, D, strict=True):
            assert relative(x, y.sum(axis=1)) < 1e-10
        forward = rk.functions["rnea"].to_jax(robot, mode="forward")
        by_a = jax.vmap(jax.jacfwd(forward, argnums=2))(*arrays)
        assert relative(by_a, rk.crba(robot, given["q"])) < 1e-12
        jax.config.update("jax_enable_x64", False)
        single = rk.functions["aba"].to_jax(robot)(*(jax.numpy.float32(given[x][0]) for x in names))
        assert single.dtype == "float32"
        assert relative(single, rk.aba(robot, *(given[x][0] for x in names))) < 1e-4
    finally:
        jax.config.update("jax_enable_x64", before)


def test_memory_of_a_card_is_an_array_of_any_library(card, library):
    """The same memory, number by number; whoever took it may outlive whoever gave it."""
    own = card.allocate(48)
    card.write(own, np.arange(6.0))
    view = View(card, own, (3, 2), "float64", None)
    taken = library.take(view)
    assert isinstance(taken, library.kind) and library.address(taken) == own
    assert np.asarray(view).tolist() == taken.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    told = view.__cuda_array_interface__
    assert told["shape"] == (3, 2) and told["strides"] == (8, 24) and told["data"] == (own, False)
    deep = View(card, own, (2, 1, 3), "float64", None)
    numbers = np.array([[[0.0, 2.0, 4.0]], [[1.0, 3.0, 5.0]]])
    assert np.array_equal(deep, numbers) and np.array_equal(library.take(deep), numbers)
    del view
    card.write(own, np.ones(6))
    assert taken.sum() == 6.0


def test_what_does_not_go_together_is_said_in_a_sentence(card, library, robot, given):
    q, v, a = (library.put(given[x]) for x in "qva")
    wrong = [
        (lambda: rk.rnea(robot, q, np.array(v), a), f"v: expected {library.words} on "),
        (
            lambda: rk.rnea(robot, q, library.put(given["v"].astype(np.float32)), a),
            "v: expected float64 as q is, got float32",
        ),
        (
            lambda: rk.rnea(robot, library.put(given["q"].astype(np.float16)), v, a),
            "q: expected float32 or float64 on a card, got float16",
        ),
        (lambda: rk.rnea(robot, q, v[:2], a), "v: expected a batch of 5 like q, got 2"),
        (lambda: rk.rnea(robot, q, v[:, :3], a), r"v: expected shape \(8,\) or \(B, 8\), got \(5, 3\)"),
        (lambda: rk.rnea(robot, q, v, a, dtype="float32"), "q: expected float32, got float64; convert it"),
        (lambda: rk.rnea(robot, q, v, a, device="cuda:1"), 'q: it is on cuda:0, and device="cuda:1"'),
        (lambda: rk.rnea(robot, q, v, a, device="cpu"), "copy them to the host"),
        (lambda: rk.rnea(robot, q, v, a, device="gpu"), 'device: expected "cpu", "cuda" or "cuda:1"'),
        (lambda: rk.rnea(robot, q, v, a, device="cuda", engine="python"), 'engine="python" runs on the'),
        (lambda: rk.rnea(robot, q, v, a, engine="python"), 'engine="python" runs on the processor, and'),
        (lambda: rk.rnea(robot, q, v, a, engine="fast"), "no engine named 'fast'"),
        (lambda: rk.joint_reactions(robot, q, v, a), "joint_reactions: expected NumPy's arrays"),
    ]
    for call, text in wrong:
        with pytest.raises(rk.RobokitError, match=text):
            call()
    assert issubclass(DeviceError, rk.RobokitError)


def test_devices_and_dtypes_may_be_pytorchs(card, torch, robot, given):
    q, v, a = (given[x] for x in "qva")
    wanted = rk.rnea(robot, q, v, a, dtype="float32")
    for device in (torch.device("cuda"), torch.device("cuda", 1), torch.device("cpu", 0)):
        tau = rk.rnea(robot, q, v, a, dtype=torch.float32, device=device)
        assert tau.dtype == np.float32 and np.array_equal(tau, wanted)


def test_cuda_is_the_card_on_which_the_arrays_are(card, torch, robot, given, monkeypatch):
    """As for PyTorch, for which "cuda" is any card; "cuda:0" is the first."""
    monkeypatch.setattr(type(arrays.TORCH), "number", lambda self, x: 1)
    monkeypatch.setattr(type(arrays.TORCH), "quick", lambda self, given: None)
    monkeypatch.setattr(type(arrays.TORCH), "stream", lambda self, number: 5)
    tensors = [torch.tensor(given[x]) for x in "qva"]
    launches = driver.card(1).launches
    for device in ("cuda", torch.device("cuda"), "cuda:1"):
        before = len(launches)
        rk.rnea(robot, *tensors, device=device)
        assert len(launches) == before + 1
        assert card_number(device, *tensors) == 1 and card_number("cuda", None) == 0
    with pytest.raises(DeviceError, match='it is on cuda:1, and device="cuda:0" is asked for'):
        rk.rnea(robot, *tensors, device="cuda:0")
    assert not card.launches


def test_the_engine_is_heard_beside_a_device(robot, given, monkeypatch):
    """engine="python" with device="cpu" is Python's arithmetic, not machine code's."""
    monkeypatch.setattr("robokit.engine.kernel.Kernel.python", lambda self, *given, out: "Python's")
    assert rk.rnea(robot, *(given[x] for x in "qva"), device="cpu", engine="python") == "Python's"


def test_compiled_programs_of_pytorch_call_it(card, torch, given):
    """Dynamo takes the call as it is, and says nothing of what is inside."""
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")  # without machine code
    q, v, a = (torch.tensor(given[x]) for x in "qva")
    for _ in range(2):
        compiled = torch.compile(lambda q: 2.0 * rk.rnea(robot, q, v, 3.0 * a), backend="eager")
        with warnings.catch_warnings():
            warnings.simplefilter("error" if "rnea" not in robot.kernels else "ignore")
            found = compiled(q)
        assert relative(found, 2.0 * rk.rnea(robot, given["q"], given["v"], 3.0 * given["a"])) < 1e-13
        torch.compiler.reset()


def test_tensors_that_are_no_arrays_are_told_from_others(card, torch, robot, given, monkeypatch):
    q, v, a = (torch.tensor(given[x]) for x in "qva")
    with pytest.raises(DeviceError, match=r"\.to_dense\(\)"):
        rk.rnea(robot, q, v.to_sparse(), a)
    monkeypatch.setattr(arrays, "PLATFORM", "cuda")  # tensors are in the processor's memory again
    with pytest.raises(rk.ShapeError, match=r"v: expected .* requires a gradient.*\.detach\(\)"):
        rk.rnea(robot, q, v.requires_grad_(), a)
    with pytest.raises(rk.ShapeError, match=r"a: expected .*, got no array \(.*meta"):
        rk.rnea(robot, q, v.detach(), a.to("meta"))


def test_an_out_that_does_not_fit_is_refused(card, torch, robot, given):
    q, v, a = (torch.tensor(given[x]) for x in "qva")
    for out, text in (
        (a[:2], r"out: expected float64 \(5, 8\)"),
        (np.empty((5, 8)), "out: expected a tensor of PyTorch"),
        (v[:1].expand(5, 8), "out: .*broadcast"),
    ):
        with pytest.raises(rk.RobokitError, match=text):
            rk.rnea(robot, q, v, a, out=out)


def test_a_function_that_is_too_long_for_a_card(card, library, given, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(straight_code, "MOST", 10)
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
    with pytest.raises(DeviceError, match=r"crba of robot .* has no code for a card .*more than 10"):
        rk.crba(robot, library.put(given["q"]))


class Foreign:
    """An array on a card of a library that nobody knows."""

    __cuda_array_interface__ = None


def test_arrays_of_an_unknown_library_are_refused(card, torch, robot, given):
    with pytest.raises(DeviceError, match=r"give arrays of PyTorch, CuPy or JAX"):
        rk.crba(robot, Foreign())
    assert "q" in INPUTS
