"""What kernels are on a card, without one: the same IR on this processor, and what ptxas makes of it.

On a host card the IR of a kernel has the bits of the processor's batches. On a real one it has them because
PTX fixes each rounding: the sums that are fused are written so, all others round.
"""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from host_card import HostCard
from ptxas_usage import Usage
from ptxas_usage import assembled as assembled_text

import robokit as rk
from robokit.dynamics.build import example_key, kernel
from robokit.dynamics.table import KERNELS
from robokit.engine.backend import llvm
from robokit.engine.cuda import assemble, driver, straight_code
from robokit.engine.cuda.straight_code import CardTarget
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.kernel import MANY_STATES, Kernel
from robokit.errors import ShapeError

REALS = {real.dtype: real for real in (FLOAT64, FLOAT32)}

needs_ptxas = pytest.mark.parity
"""ptxas is 340 MB: where Pinocchio and MuJoCo are, it is."""


def inputs(made: Kernel, rows: int) -> list[np.ndarray]:
    """Random states."""
    generator = np.random.default_rng(5)
    arrays = [generator.uniform(-1, 1, (rows, size)) for _, size in made.signature.inputs]
    for k, offset in made.signature.quaternions:
        part = arrays[k][:, offset : offset + 4]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return [a.astype(made.signature.dtype) for a in arrays]


def answers(made: Kernel, given: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Of the processor's batch."""
    found = made.batch(*given)
    return found if isinstance(found, tuple) else (found,)


def on_card(made: Kernel, given: list[np.ndarray], rows: int) -> list[np.ndarray]:
    """Of the host card, whose states are side by side."""
    columns = [np.ascontiguousarray(a.T) for a in given]
    sizes = [int(np.prod(shape, dtype=int)) for shape in made.signature.output_shapes]
    outs = [np.full((size, rows), np.nan, made.signature.dtype) for size in sizes]
    made.on_card(HostCard(0))([(a.ctypes.data, rows, 1) for a in (*columns, *outs)], rows)
    shapes = made.signature.output_shapes
    return [o.T.reshape(rows, *shape) for o, shape in zip(outs, shapes, strict=True)]


@pytest.fixture(params=["arm", "quadruped", "four_bar"])
def robot(request: pytest.FixtureRequest) -> rk.Robot:
    """Of a fixed base, of a floating one, with a loop."""
    return rk.load(request.param)


@pytest.mark.skipif(not llvm.has_fused_multiply_add(), reason="code of this processor fuses no products")
@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("reproducible", [False, True])
def test_bits_of_the_processor(robot: rk.Robot, dtype: str, reproducible: bool) -> None:
    for key in ("aba", "crba"):
        made = kernel(robot, key, dtype, reproducible)
        given = inputs(made, 37)
        for a, b in zip(answers(made, given), on_card(made, given, 37), strict=True):
            assert np.array_equal(a, b)


@pytest.mark.skipif(not llvm.has_fused_multiply_add(), reason="code of this processor fuses no products")
@pytest.mark.parametrize("dtype", REALS)
def test_bits_of_long_kernels(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By teams of warps, with calls in the program, and in pieces."""
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", "")
    made = kernel(rk.load("quadruped"), "aba_derivatives", dtype)
    program, real = made._maker.planned(MANY_STATES[dtype]).program, REALS[dtype]
    given = inputs(made, 37)
    wanted = answers(made, given)
    monkeypatch.setattr(straight_code, "LONG", 1000)
    monkeypatch.setattr(straight_code, "WORTH", 1)
    texts = (
        straight_code.team_code(program, "k", real, False, 100_000),
        straight_code.flat_code(program, "k", real),
    )
    assert driver.TEAM in texts[0] and len(assemble.modules(texts[0])) > 4
    assert len(assemble.modules(texts[1])) > 4
    for text in texts:
        shape = made.signature
        checks = {"quaternions": shape.quaternions, "bounds": shape.bounds, "finite": shape.finite}
        again = Kernel(shape.name, shape.inputs, shape.outputs, made.function, dtype=dtype, **checks)
        monkeypatch.setattr(CardTarget, "write", lambda *_, text=text: (text, 0))
        again._maker.symbol = "k"
        for a, b in zip(wanted, on_card(again, given, 37), strict=True):
            assert np.array_equal(a, b)


def test_a_card_has_all_of_a_program_whose_iterations_share_code_elsewhere() -> None:
    """ABA of a chain of 100: the processor has a tenth of its operations as code, and a table."""
    made = kernel(rk.load("chain"), "aba", reproducible=True)
    planned = made._maker.planned(CardTarget(FLOAT64, "sm_90"))
    assert planned.shared is not None and 10 * planned.shared.written < len(planned.program.order)
    given = inputs(made, 5)
    for a, b in zip(answers(made, given), on_card(made, given, 5), strict=True):
        assert np.array_equal(a, b)


def test_batches_of_any_size_and_layout() -> None:
    made = kernel(rk.load("arm"), "rnea")
    q, v, a = inputs(made, 70)
    wanted = made.batch(q, v[0], a)
    card = HostCard(0)
    run, n = made.on_card(card), q.shape[1]
    assert made.on_card(card) is run

    wide, out = np.zeros((n, 100)), np.full((70, n), np.nan)
    wide[:, 20:90] = q.T
    columns = [(wide[:, 20:].ctypes.data, 100, 1), (v.ctypes.data, 1, 0), (a.ctypes.data, 1, n)]
    for rows in (0, 1, 33, 70):
        out[:] = np.nan
        run([*columns, (out.ctypes.data, 1, n)], rows)
        assert np.array_equal(out[:rows], wanted[:rows]) and np.isnan(out[rows:]).all()
    assert len(card.launches) == 3

    with pytest.raises(ShapeError, match="rnea takes 4 arrays on the card, got 3"):
        run(columns, 1)
    with pytest.raises(ShapeError, match="rnea: numbers of a state more than 2147483647 numbers apart"):
        run([*columns, (out.ctypes.data, 2**31, 1)], 1)


def assembled(made: Kernel, arch: str, team: bool = False) -> list[Usage]:
    """What a kernel's functions use. Of its PTX: no address without a state space, no rounding left open."""
    real = REALS[made.signature.dtype]
    text, _ = CardTarget(real, arch, team).write(made._maker.planned(MANY_STATES[real.dtype]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assemble, "ptx", functools.cache(assemble.ptx))  # LLVM writes it once
        for part in assemble.modules(text):
            written = assemble.ptx(part)
            assert not re.search(r"\b(ld|st)(\.volatile)?(\.v[24])?\.[bfsu]\d", written)
            assert not re.search(r"\b(add|sub|mul|div|sqrt)(\.approx|\.full|\.ftz)*\.f(32|64)", written)
            own = re.sub(r"(?ms)^\.func[^{;]*\bsincos\(.*?^}", "", written)
            assert len(re.findall(r"\bfma\.rn", own)) <= len(re.findall(r"call \w+ @llvm\.fma", part))
        code, usages = assembled_text(text, arch)
    assert code.startswith(b"\x7fELF") and usages
    return usages


def spilled(usages: list[Usage]) -> int:
    """Bytes that a thread, or for a state a team of threads, writes to memory for want of registers."""
    return sum(each.stores for each in usages)


@needs_ptxas
def test_every_kernel_assembles() -> None:
    """For one architecture each, in single and double precision in turn."""
    fixed, floating = rk.load("arm"), rk.load("arm", base="floating")
    for k, (name, row) in enumerate(KERNELS.items()):
        robot = floating if row.floating else fixed
        made = kernel(robot, example_key(row, robot), list(REALS)[k % 2])
        usages = assembled(getattr(made, "_kernel", made), ("sm_80", "sm_90", "sm_100")[k % 3])
        assert max(each.registers for each in usages) <= 255, name


@needs_ptxas
@pytest.mark.parametrize(
    ("name", "arch", "dtype", "bounds"),
    [
        ("humanoid", "sm_80", "float32", {"rnea": 0, "crba": 0, "aba": 1500, "forward_kinematics": 0}),
        ("humanoid", "sm_90", "float64", {"rnea": 1200, "aba": 5000, "rnea_derivatives team": 5000}),
        ("example-robot-data:g1", "sm_90", "float32", {"aba": 2000, "aba_derivatives team": 3000}),
        ("example-robot-data:g1", "sm_100", "float32", {"rnea": 100, "rnea_derivatives": 4500}),
        ("chain", "sm_100", "float32", {"rnea": 4000, "aba": 1000}),
    ],
)
def test_spills_of_large_robots(name: str, arch: str, dtype: str, bounds: dict[str, int]) -> None:
    robot = rk.load(name)
    for key, most in bounds.items():
        name, _, team = key.partition(" ")
        assert spilled(assembled(kernel(robot, name, dtype), arch, bool(team))) <= most, key
