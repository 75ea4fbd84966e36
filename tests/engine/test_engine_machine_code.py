"""Machine code that the engine writes itself has the bits of LLVM's code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ladder
import numpy as np
import pytest
from engine_cases import called_often, follow, guard, recipes
from hypothesis import given, settings
from hypothesis import strategies as st

import robokit as rk
from robokit.dynamics import build
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.table import KERNELS
from robokit.engine import Kernel
from robokit.engine.backend import llvm
from robokit.engine.backend.targets import ManyStates, OneState
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.maker import Code
from robokit.errors import RobokitError
from robokit.spatial.scalars import floor, sin, where

pytestmark = pytest.mark.skipif(not llvm.runs_machine_code(), reason="another processor or system")

INPUTS, OUTPUTS, ROWS = 5, 40, 37


class InTwo(ManyStates):
    """A value is two registers of 32 bytes; where vectors have 64 it always is."""

    @property
    def lanes(self) -> int:
        return 64 // self.real.bytes


TARGETS = {
    "single": OneState(),
    "float64": ManyStates(FLOAT64),
    "float32": ManyStates(FLOAT32),
    "float64 in two": InTwo(FLOAT64),
    "float32 in two": InTwo(FLOAT32),
}


def codes(kernel, target) -> list[Code]:
    """What LLVM makes of a kernel, and what the engine writes."""
    made, found = kernel._maker.planned(target), []
    for soon in (False, True):
        text, workspace = target.write(replace(made, baseline=soon))
        assert soon or "@code() " not in text
        meta = {"workspace": workspace, "baseline": False}
        found.append(Code(target, target.assemble(text), kernel._maker.symbol, meta))
    return found


def answers(kernel, code, arguments) -> list[np.ndarray]:
    """The bits of all outputs, where all NaN are one."""
    if code.target.name == "single":
        run = kernel._builtin(code)
        rows = [run(*(x[k] for x in arguments)) for k in range(len(arguments[0]))]
        found = [np.stack(x) for x in zip(*[r if isinstance(r, tuple) else (r,) for r in rows], strict=True)]
    else:
        kernel._runner = kernel._runner_of(code)
        result = kernel.batch(*arguments, threads=1)
        found = list(result) if isinstance(result, tuple) else [result]
    return [np.where(np.isnan(x), np.nan, x).view(f"i{x.itemsize}") for x in found]


def same_bits(kernel, target, arguments) -> None:
    well, soon = (answers(kernel, code, arguments) for code in codes(kernel, target))
    for a, b in zip(well, soon, strict=True):
        np.testing.assert_array_equal(a, b)


def any_text(outside, within, shared):
    """Every operation, infinities and NaN among the values, and more of these than there are registers."""

    def function(x: list[Any]) -> list[list[Any]]:
        a = [*x, 1.0 / x[0], (1.0 / x[0]) * x[1], floor(3.0 * x[2]), floor(4.0 * x[3])]
        values = follow(outside, a)
        some = guard(x[4] < 0.25, lambda: follow(within, values[-6:])[-4:], 1.0, -x[1], x[2], values[-1])
        inner = guard(x[1] <= x[2], lambda: guard(x[2] != 0.5, lambda: [sin(some[0]) * x[3]], 2.0), 0.0)
        twice = [
            y
            for k in (0, 1)
            for y in called_often(lambda u, w: tuple(follow(shared, [u, w])[-2:]), x[k], some[k])
        ]
        signs = [where(c, 1.0, 2.0) for y in (x[1], a[6]) for c in (x[0] < y, x[0] <= y, x[0] == y)]
        found = [*signs, *twice, *inner, *some, *reversed(values)][: OUTPUTS - 1]
        total = found[0]
        for k, value in enumerate(found):
            total = total * 0.5 + value if k % 3 else 0.25 * value - total
        return [[total, *found, *[0.0] * (OUTPUTS - 1 - len(found))]]

    return function


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=4)
@given(
    outside=recipes(INPUTS + 4, 60), within=recipes(6, 30), shared=recipes(2, 25), seed=st.integers(0, 2**20),
    reproducible=st.booleans(),
)  # fmt: skip
def test_any_text_has_the_bits_of_llvm(name, outside, within, shared, seed, reproducible):
    target = TARGETS[name]
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (ROWS, INPUTS))
    x[rng.random(x.shape) < 0.1] = 0.0
    x[rng.random(x.shape) < 0.1] = -0.0
    x[rng.random(x.shape) < 0.05] *= 1e30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("robokit.engine.trace.record.LONG", 0)
        kernel = Kernel(
            "any_text", [("x", INPUTS)], [("y", (OUTPUTS,))], any_text(outside, within, shared),
            dtype=target.real.dtype, reproducible=reproducible,
        )  # fmt: skip
        same_bits(kernel, target, [x.astype(target.real.dtype)])


def kernels(robot, names):
    """Each of the kernels that the robot has, and arguments."""
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(11)])
    for name in names:
        about = [
            CHOICES[each].read(robot, CHOICES[each].example(robot)) for each in KERNELS[name].about.split()
        ]
        try:
            kernel = build.kernel(robot, (name, *about) if about else name)
        except RobokitError:
            continue  # not for this base
        arguments = [q if x == "q" else rng.uniform(0.1, 1.0, (11, n)) for x, n in kernel.signature.inputs]
        if KERNELS[name].inputs == "H":
            arguments = [rk.crba(robot, q).reshape(11, -1)]
        yield kernel, arguments


@pytest.mark.parametrize("target", ["single", "float64"])
@pytest.mark.parametrize("name", ["aba", "inverse_mass_matrix"])
def test_limbs_in_pairs_and_columns_in_lanes_have_the_bits_of_llvm(name, target):
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    for kernel, arguments in kernels(robot, [name]):
        planned = replace(kernel._maker.planned(TARGETS[target]), baseline=True)
        text, _ = TARGETS[target].write(planned)
        assert "@code() " in text and "define internal void @chunk" not in text
        same_bits(kernel, TARGETS[target], arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("seed", "joints", "base"), [(3, 3, "fixed"), (34, 8, "floating")])
def test_every_algorithm_has_the_bits_of_llvm(name, seed, joints, base):
    """On a short tree, and on one that forks and has all kinds of joints: long code that calls functions."""
    robot = ladder.random_tree(seed, base, n=joints)
    for kernel, arguments in kernels(robot, [name]):
        for target in ("single", "float64"):
            same_bits(kernel, TARGETS[target], arguments)


@pytest.mark.parametrize("missing", ["avx2", "fma"])
def test_another_processor_gets_llvms_code(missing, monkeypatch):
    kernel = Kernel("elsewhere", [("x", 2)], [("y", ())], lambda x: [[x[0] * x[1] + 0.25]])
    target = OneState()
    planned = replace(kernel._maker.planned(target), baseline=True)
    flags = llvm.processor_flags() - {missing}
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "processor_flags", lambda: flags)
        text, _ = target.write(planned)
    assert text.startswith(llvm.BASELINE) and "define internal void @chunk0" in text
    assert "define internal void @chunk0" not in target.write(planned)[0]
