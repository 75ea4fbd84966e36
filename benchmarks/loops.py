"""Kernels with loops beside the same loops in C: single calls, batches, single precision.

python benchmarks/loops.py
python benchmarks/loops.py --rows 16       batches that stay in the processor's caches
python benchmarks/loops.py --derivatives   instead of C, kernels of values and derivatives

LDL^T of dense matrices, sweeps of projected Gauss-Seidel over contacts between bodies, and the support vertex
of a hull. C is compiled by ``cc -O3 -march=native``. Both run on the same arrays, in turns. The last columns
are a row's time in a batch, times lanes, as a part of the time of one state; where the loops of one state go
through vectors too, as those of LDL^T do, that part is 1 at best.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine, minima, one_core

from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.target.llvm import vector_width
from robokit.spatial.control_flow import for_range
from robokit.spatial.scalars import maximum, minimum, where

C = r"""
void ldlt(int n, T *restrict A) {
  for (int k = 0; k < n; k++) {
    T inverse = 1 / A[k * n + k];
    for (int i = k + 1; i < n; i++) {
      T x = A[i * n + k] * inverse;
      for (int j = k + 1; j <= i; j++) A[i * n + j] -= x * A[k * n + j];
    }
    for (int i = k + 1; i < n; i++) { A[k * n + i] = A[i * n + k]; A[i * n + k] *= inverse; }
  }
}
void sweeps(int turns, int contacts, const int *restrict a, const int *restrict b, const T *restrict J,
            const T *restrict W, const T *restrict rhs, const T *restrict D, T *restrict v, T *restrict g) {
  for (int s = 0; s < turns; s++) for (int c = 0; c < contacts; c++) for (int r = 0; r < 3; r++) {
    const T *Jr = J + (c * 3 + r) * 12, *Wr = W + (c * 3 + r) * 12;
    T *va = v + a[c] * 6, *vb = v + b[c] * 6, u = rhs[c * 3 + r];
    for (int k = 0; k < 6; k++) u += Jr[k] * va[k];
    for (int k = 0; k < 6; k++) u += Jr[6 + k] * vb[k];
    T old = g[c * 3 + r], now = old - u * D[c * 3 + r], most = (T)0.8 * g[c * 3];
    now = r == 0 ? (now > 0 ? now : 0) : now < -most ? -most : now > most ? most : now;
    g[c * 3 + r] = now;
    for (int k = 0; k < 6; k++) va[k] += Wr[k] * (now - old);
    for (int k = 0; k < 6; k++) vb[k] += Wr[6 + k] * (now - old);
  }
}
void support(int n, const T *restrict V, const T *restrict d, int *restrict out) {
  T best = -1e30f; int at = 0;
  for (int k = 0; k < n; k++) {
    T x = V[3 * k] * d[0] + V[3 * k + 1] * d[1] + V[3 * k + 2] * d[2];
    if (x > best) { best = x; at = k; }
  }
  out[0] = at;
}
"""


def ldlt(n: Any, A: Any) -> None:
    """LDL^T in place: L below the diagonal, D on it, D L^T above."""

    def column(k: Any) -> None:
        inverse = 1.0 / A[k, k]

        def row(r: Any) -> None:
            i = k + 1 + r
            x = A[i, k] * inverse

            def entry(c: Any) -> None:
                A[i, k + 1 + c] = A[i, k + 1 + c] - x * A[k, k + 1 + c]

            for_range(r + 1, entry)

        def scaled(r: Any) -> None:
            A[k, k + 1 + r] = A[k + 1 + r, k]
            A[k + 1 + r, k] = A[k + 1 + r, k] * inverse

        for_range(n - 1 - k, row)
        for_range(n - 1 - k, scaled)

    for_range(n, column)


def sweeps(turns: Any, contacts: Any, bodies: Any, a: Any, b: Any, *arrays: Any) -> None:
    """Projected Gauss-Seidel: impulses g of contacts with friction 0.8, velocities v of bodies."""
    J, W, rhs, D, v, g = arrays

    def contact(c: Any) -> None:
        sides = v[a[c]], v[b[c]]
        for r in range(3):
            u = rhs[c, r]
            for side, body in enumerate(sides):
                for k in range(6):
                    u = u + J[c, r, 6 * side + k] * body[k]
            old, most = g[c, r], 0.8 * g[c, 0]
            now = old - u * D[c, r]
            now = maximum(now, 0.0) if r == 0 else maximum(-most, minimum(now, most))
            g[c, r] = now
            for side, body in enumerate(sides):
                for k in range(6):
                    body[k] = body[k] + W[c, r, 6 * side + k] * (now - old)

    for_range(turns, lambda _: for_range(contacts, contact))


def support(n: Any, V: Any, d: Any, out: Any) -> None:
    """The vertex that is farthest along d."""

    def vertex(k: Any, best: Any, at: Any) -> tuple[Any, Any]:
        x = V[k, 0] * d[0] + V[k, 1] * d[1] + V[k, 2] * d[2]
        return where(best < x, x, best), where(best < x, k, at)

    out[0] = for_range(n, vertex, -1e30, 0)[1]


def contact_arrays(same: bool) -> list[ArrayOf]:
    """Of :func:`sweeps`, where all rows have the same pairs of bodies or each its own."""
    per_row = [ArrayOf(name, ("contacts",), "in", "integer", same) for name in "ab"]
    numbers = [ArrayOf("J", ("contacts", 3, 12)), ArrayOf("W", ("contacts", 3, 12))]
    numbers += [ArrayOf("rhs", ("contacts", 3)), ArrayOf("D", ("contacts", 3))]
    return [*per_row, *numbers, ArrayOf("v", ("bodies", 6), "inout"), ArrayOf("g", ("contacts", 3), "inout")]


SIZES = ["turns", "contacts", "bodies"]
LDLT = LoopKernel("ldlt", ldlt, ["n"], [ArrayOf("A", ("n", "n"), "inout")])
SWEEPS = LoopKernel("sweeps", sweeps, SIZES, contact_arrays(False))
SAME = LoopKernel("sweeps_same", sweeps, SIZES, contact_arrays(True))
SUPPORT = LoopKernel(
    "support",
    support,
    ["n"],
    [ArrayOf("V", ("n", 3), shared=True), ArrayOf("d", (3,)), ArrayOf("out", (1,), "out", "integer")],
)


def compiled(folder: Path, dtype: str) -> ctypes.CDLL:
    """The loops in C."""
    library = folder / f"{dtype}.so"
    flags = ["-O3", "-march=native", f"-DT={'double' if dtype == 'float64' else 'float'}"]
    command = ["cc", *flags, "-fPIC", "-shared", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=C, text=True, check=True)
    return ctypes.CDLL(str(library))


def compare(
    name: str,
    kernels: Sequence[LoopKernel],
    sizes: dict[str, int],
    arrays: Sequence[np.ndarray],
    in_c: Callable[..., None],
    rows: int,
    dtype: str,
) -> None:
    """Measure one problem and print its line."""
    for_c = [x.copy() for x in arrays]
    numbers = [sizes[n] for n in kernels[0].sizes if n != "bodies"]
    given = [*numbers, *(x.ctypes.data_as(ctypes.c_void_p) for x in for_c)]
    single = kernels[0].single(sizes, arrays, dtype)
    batches = []
    for kernel in kernels:
        many = [
            x if a.shared else np.repeat(x[None], rows, 0) for a, x in zip(kernel.arrays, arrays, strict=True)
        ]
        batches.append(kernel.batch(sizes, many, rows, dtype))
    single()
    in_c(*given)
    assert all(np.allclose(x, y, rtol=1e-4, atol=1e-5) for x, y in zip(arrays, for_c, strict=True))
    calls: dict[str, Callable[[], object]] = {"one": single, "c": lambda: in_c(*given)}
    calls |= {str(k): batch for k, batch in enumerate(batches)}
    one, c, *whole = minima(calls).values()
    lanes = vector_width() * 8 // np.dtype(dtype).itemsize
    parts = "".join(f"{seconds / rows * lanes / one:>10.2f}" for seconds in whole)
    print(f"  {dtype:<9}{name:<26}{one * 1e6:>9.2f}{c * 1e6:>9.2f}{one / c:>8.2f}{parts}", flush=True)


def derivatives(name: str, kernel: LoopKernel, wrt: str, sizes: dict[str, int], rows: int) -> None:
    """Measure values beside values and derivatives, along one direction and along four, and print a line."""
    rng = np.random.default_rng(0)
    calls: dict[str, Callable[[], object]] = {}
    for each in (kernel, kernel.forward(wrt), kernel.forward(wrt, directions=4)):
        arrays = []
        for a in each.arrays:
            shape = tuple(sizes[n] if isinstance(n, str) else n for n in a.shape)
            x = np.eye(shape[0]) if a.name == "A" else rng.uniform(0.1, 0.2, shape)
            arrays.append(rng.integers(0, 9, shape).astype(np.int32) if a.kind == "integer" else x)
        many = [
            x if a.shared else np.repeat(x[None], rows, 0) for a, x in zip(each.arrays, arrays, strict=True)
        ]
        calls[f"{len(calls)} one"] = each.single(sizes, arrays)
        calls[f"{len(calls)} many"] = each.batch(sizes, many, rows)
    value, batch, one, batches, four, batches_of_four = minima(calls).values()
    ratios = one / value, four / value, batches / batch, batches_of_four / batch
    print(f"  {name:<26}{value * 1e6:>9.2f}" + "".join(f"{x:>9.2f}" for x in ratios), flush=True)


def all_derivatives(rows: int) -> None:
    """Values and derivatives, in units of the values."""
    print(f"{'':<28}{'us':>9}{'1 dir.':>9}{'4 dir.':>9}{'batch':>9}{'4 dir.':>9}")
    with one_core():
        for n in (12, 35):
            derivatives(f"LDL^T, n = {n}", LDLT, "A", {"n": n}, rows)
        for n in (8, 24):
            sizes = {"turns": 10, "contacts": n, "bodies": 20}
            derivatives(f"10 sweeps, {n} contacts, by rhs", SAME, "rhs", sizes, rows)


def main() -> None:
    """Measure all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4096, help="of a batch")
    parser.add_argument("--derivatives", action="store_true", help="values and derivatives instead of C")
    rows = parser.parse_args().rows
    print(machine())
    if parser.parse_args().derivatives:
        all_derivatives(rows)
        return
    print(f"microseconds a call; batches of {rows}\n{'':<37}{'robokit':>9}{'C':>9}{'ratio':>8}{'batch':>10}")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, one_core():
        for dtype in ("float64", "float32"):
            c = compiled(Path(folder), dtype)
            for n in (12, 35, 60):
                A = np.eye(n, dtype=dtype)  # factored again and again it stays what it is
                compare(f"LDL^T, n = {n}", [LDLT], {"n": n}, [A], c.ldlt, rows, dtype)
            for n in (8, 24):
                a = rng.integers(0, 20, n).astype(np.int32)
                b = ((a + rng.integers(1, 20, n)) % 20).astype(np.int32)
                J = rng.normal(size=(n, 3, 12)).astype(dtype)
                rhs, D = rng.normal(size=(n, 3)).astype(dtype), np.full((n, 3), 0.3, dtype)
                arrays = [a, b, J, 0.1 * J, rhs, D, np.zeros((20, 6), dtype), np.zeros((n, 3), dtype)]
                sizes = {"turns": 10, "contacts": n, "bodies": 20}
                compare(f"10 sweeps, {n} contacts", [SWEEPS, SAME], sizes, arrays, c.sweeps, rows, dtype)
            for n in (32, 500):
                V, d = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=3).astype(dtype)
                arrays = [V, d, np.zeros(1, np.int32)]
                compare(f"support, {n} vertices", [SUPPORT], {"n": n}, arrays, c.support, rows, dtype)
    print("second batch column of the sweeps: all rows have the same pairs of bodies")


if __name__ == "__main__":
    main()
