"""Memory that somebody else reads, writes or has the address of, while a kernel runs on a card."""

from __future__ import annotations

import gc
import inspect
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import table_calls
from ladder import State, relative

import robokit as rk
from robokit.engine.cuda import arrays, loops
from robokit.engine.cuda.driver import Memory
from robokit.engine.cuda.loops import Loops
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.errors import DeviceError
from robokit.spatial.control_flow import for_range, while_loop

pytestmark = pytest.mark.parity

B = 6


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@pytest.fixture(scope="module")
def given(robot):
    batch = table_calls.batch_of(robot, [State(robot, seed) for seed in range(B)])
    return [batch[x] for x in "qva"]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_out_may_have_memory_in_common_with_inputs(card, torch, robot, given):
    """As with NumPy's arrays: each state is computed from what was there before the call."""
    q, v, a = given
    expected = rk.rnea(robot, q, v, a)
    tensors = [torch.tensor(x) for x in given]
    for place, out in (
        (room := torch.empty(B + 1, 2, dtype=torch.float64))[:-1], room[1:],
    ), ((line := torch.empty(B, 3, dtype=torch.float64))[:, :2], line[:, 1:]):  # fmt: skip
        place[:] = tensors[2]
        assert rk.rnea(robot, *tensors[:2], place, out=out) is out
        assert relative(out, expected) < 1e-13
    own = tensors[2].clone()
    assert relative(rk.rnea(robot, *tensors[:2], own, out=own), expected) < 1e-13
    assert relative(own, expected) < 1e-13


def test_tensors_that_torch_follows_forward_and_in_its_transforms(card, torch, robot, given):
    """dtau = H da, by all ways that PyTorch has."""
    q, v, a = (torch.tensor(x) for x in given)
    da = torch.ones_like(a)
    H = rk.crba(robot, given[0])
    expected = H.sum(axis=-1)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        found = forward.unpack_dual(rk.rnea(robot, q, v, forward.make_dual(a, da)))
        assert relative(found.tangent, expected) < 1e-12
    pushed = torch.func.jvp(lambda a: rk.rnea(robot, q, v, a), (a,), (da,))[1]
    assert relative(pushed, expected) < 1e-12
    each = torch.func.vmap(torch.func.jacrev(lambda q, v, a: rk.rnea(robot, q, v, a), argnums=2))(q, v, a)
    assert relative(each, H) < 1e-12
    assert relative(torch.func.vmap(lambda q: rk.crba(robot, q))(q), H) < 1e-13


def test_constants_that_a_graph_has_the_address_of_stay(card, torch, monkeypatch):
    """Others of a long program take their place in the list of those that are kept."""
    library = arrays.TORCH
    monkeypatch.setattr(arrays, "_recorded", [])
    usual, recorded = np.array([0.5, 7.0]), np.array([0.5, 8.0])
    library.kept(recorded, 0)
    monkeypatch.setattr(card, "capturing", lambda stream=0: True)
    held = weakref.ref(library.kept(recorded, 0))
    monkeypatch.setattr(card, "capturing", lambda stream=0: False)
    gone = weakref.ref(library.kept(usual, 0))
    for k in range(arrays.KEPT + 1):
        library.kept(np.array([float(k)]), 0)
    gc.collect()
    assert held() is not None and gone() is None


def test_outputs_that_share_memory_are_refused(card, torch, robot, given):
    tensors, room = [torch.tensor(x) for x in given], torch.empty(B, 2, 6, dtype=torch.float64)
    for outs in ([room[..., :2]] * 3, [torch.empty(B, 2, 2).double(), *[torch.empty(B, 2, 2).double()] * 2]):
        with pytest.raises(rk.ShapeError, match=r"out\[\d\] and out\[\d\] share memory"):
            rk.aba_derivatives(robot, *tensors, out=outs)
    rk.aba_derivatives(robot, *tensors, out=[room[..., 2 * k : 2 * k + 2] for k in range(3)])
    assert relative(room, np.concatenate(rk.aba_derivatives(robot, *given), axis=2)) < 1e-12


class Streams:
    """Asserts that no two streams are busy at the same time: what is on one waits for the other.

    Attributes:
        busy: streams that nobody waited for.
    """

    def __init__(self, card, monkeypatch) -> None:
        self.busy: set[int] = set()
        for name in ("write", "read", "copy", "fill", "launch", "synchronize", "free"):
            self._watch(card, name, monkeypatch)
        monkeypatch.setattr(card, "event", self._event)

    def _event(self, stream: int) -> SimpleNamespace:
        made = SimpleNamespace()
        made.record = lambda stream: setattr(made, "before", lambda other: self.busy.discard(stream))
        made.record(stream)
        return made

    def _watch(self, card, name, monkeypatch) -> None:
        usual = getattr(card, name)
        signature = inspect.signature(usual)

        def call(*given, **named):
            stream = signature.bind(*given, **named).arguments.get("stream", 0)
            if name != "synchronize":  # memory is given back, too, after all that is done with it
                assert self.busy <= {stream}, f"{name} on stream {stream}, {self.busy} is busy"
            if name not in ("synchronize", "free"):
                self.busy.add(stream)
            if name in ("read", "synchronize"):
                self.busy.discard(stream)
            return usual(*given, **named)

        monkeypatch.setattr(card, name, call)


@pytest.mark.parametrize("ground", [None, pytest.param(True, marks=pytest.mark.slow)])
def test_a_simulation_keeps_to_the_stream_of_its_caller(card, torch, robot, given, monkeypatch, ground):
    monkeypatch.setattr(type(arrays.TORCH), "stream", lambda self, number: 7)
    streams = Streams(card, monkeypatch)
    ground = None if ground is None else rk.Ground(height=-9.0)
    q, tau = torch.tensor(given[0]), torch.ones(B, robot.nv, dtype=torch.float64)
    sim = rk.Simulation(robot, q, batch=B, device="cuda", dt=1e-3, ground=ground)
    start = sim.state()
    for way in (tau, given[0], None):
        sim.step(tau=way, steps=3)
        assert 7 in streams.busy and not sim.failed.any()
        sim.step(tau=way)
        sim.reset(q, rows=np.arange(B) < 2)
    sim.step(tau=tau)
    sim.state()
    sim.step(tau=tau)
    sim.restore(start)
    sim.step(tau=tau)
    monkeypatch.setattr(type(arrays.TORCH), "stream", lambda self, number: 8)
    assert not sim.failed.any() and not streams.busy  # it waits for the other stream's step


@rk.function(inputs={"x": ()}, outputs={"root": ()})
def root(tree, x):
    """Newton's iteration."""
    step = lambda y: 0.5 * (y + (x * x + 1.0) / y)  # noqa: E731
    return {"root": while_loop(lambda y: abs(y * y - x * x - 1.0) > 1e-12 * (x * x + 1.0), step, x * x + 1.0)}


def test_functions_with_loops_on_several_streams(card, torch, robot, monkeypatch):
    streams, x = Streams(card, monkeypatch), torch.arange(4.0).double()
    for stream in (7, 8, 8, 0):
        monkeypatch.setattr(type(arrays.TORCH), "stream", lambda self, number, stream=stream: stream)
        assert relative(root(robot, x), np.sqrt(np.arange(4.0) ** 2 + 1.0)) < 1e-10
        assert streams.busy == {stream}


def test_a_recorded_graph_has_memory_of_its_own(card, torch, robot, monkeypatch):
    """Calls beside its replays would write to the same numbers; the calls of one graph follow each other."""
    fills, fill = [], card.fill
    monkeypatch.setattr(card, "fill", lambda *given: (fills.append(given), fill(*given))[0])
    x, own = torch.arange(4.0).double(), []
    for graph in (0, 5, 5, 0, 6, 0):
        monkeypatch.setattr(card, "capturing", lambda stream=0, graph=graph: graph)
        fills.clear()
        assert relative(root(robot, x), np.sqrt(np.arange(4.0) ** 2 + 1.0)) < 1e-10
        own.append(fills[-1][0])  # cleared before the call
    assert own[0] == own[3] == own[5] and own[1] == own[2] and len(set(own)) == 3


def test_memory_is_given_back_after_all_that_is_done_with_it(card, monkeypatch):
    """Also what others do with it, on the stream that is theirs when nobody has it any more."""
    streams = Streams(card, monkeypatch)
    memory = Memory(card, {"a": 8, "b": 16})
    place, others = memory["a"], [7]
    memory.others.append(lambda: others[0])
    for stream in (7, 8):
        with memory.on(stream):
            card.fill(place, 8, 0, stream)
    assert streams.busy == {8}
    others[0] = 9
    streams.busy.add(9)
    del memory
    assert not streams.busy and place not in card.held
    held = Memory(card, {"a": 8})
    place = held["a"]
    held.others.append(lambda: 7)
    monkeypatch.setattr(card, "capturing", lambda stream=0: 3 * (stream == 7))
    del held
    assert place in card.held  # of a graph that is recorded


def test_codes_of_other_sizes_are_made_once_and_not_kept_for_good(card, monkeypatch):
    monkeypatch.setattr(loops, "KEPT", 2)
    kernel = LoopKernel(
        "twice", lambda n, x, y: for_range(n, lambda i: y.__setitem__(i, x[i] + x[i])), ["n"],
        [ArrayOf("x", ("n",)), ArrayOf("y", ("n",), "out")],
    )  # fmt: skip
    assembled, load = [], card.load
    monkeypatch.setattr(card, "load", lambda code: (time.sleep(0.05), assembled.append(code), load(code))[2])

    def call(n: int) -> None:
        made = Loops(card, kernel, {"n": n}, ["tile"] * 2, "float64", {}, 3)
        made.write("x", np.ones((1, n)))
        made.run(1)
        assert (made.read("y") == 2.0).all()

    threads = [threading.Thread(target=call, args=(4,)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(assembled) == 1
    for n in (5, 6, 5, 4):
        call(n)
    assert len(assembled) == 4


def test_threads_that_call_a_function_with_loops(card, robot, monkeypatch):
    launch = card.launch

    def slowly(*given, **named):
        launch(*given, **named)
        time.sleep(2e-3)

    monkeypatch.setattr(card, "launch", slowly)
    x = np.arange(8.0).reshape(2, 4) + 0.5
    root(robot, x[0], device="cuda")
    found = [None, None]

    def call(k: int) -> None:
        found[k] = [root(robot, x[k], device="cuda") for _ in range(5)]

    threads = [threading.Thread(target=call, args=(k,)) for k in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for k in range(2):
        for each in found[k]:
            assert relative(each, np.sqrt(x[k] ** 2 + 1.0)) < 1e-10


def test_what_was_allocated_is_freed_where_the_rest_does_not_fit(card, robot, monkeypatch):
    x = np.ones(3)
    root(robot, x, device="cuda")
    gc.collect()
    before, allocate, sizes = len(card.held), card.allocate, []

    def little(size: int, stream: int = 0) -> int:
        sizes.append(size)
        if len(sizes) == 6:
            raise DeviceError("too little memory")
        return allocate(size, stream)

    monkeypatch.setattr(card, "allocate", little)
    with pytest.raises(DeviceError, match="too little"):
        root(robot, np.ones(77), device="cuda")
    gc.collect()
    assert len(sizes) == 6 and len(card.held) == before
