"""Kernels with loops beside the same loops in C: single calls, batches, single precision, the machine's peak.

python benchmarks/loops.py
python benchmarks/loops.py --rows 16       batches that stay in the processor's caches
python benchmarks/loops.py --derivatives   instead of C, kernels of values and derivatives
python benchmarks/loops.py --json loops.json

LDL^T of dense matrices, sweeps of projected Gauss-Seidel over contacts between bodies, and the support vertex
of a hull. C is compiled by ``cc -O3 -march=native`` for one state; of a batch it takes row after row. Both
work on the same arrays, in turns, on one core. The sweeps stand there twice: with pairs of bodies of each
row's own, and with the same ones for all rows.

one, row: microseconds of a state alone and of a row of a batch, beside C's; "C/" is how often C's time holds
    ours, more is better
lanes: a row's time, times the lanes of a vector, over the time of one state: 1 where lanes cost nothing.
    Loops of one state that go through vectors too, as those of LDL^T do, cannot reach it
peak: multiply-adds a second over what registers alone allow (peak.py): of a state, of a row
MB, bw: what a batch reads and writes, and the time that memory takes for as much in a copy over the time of
    the batch. Near 1, where the batch is larger than the caches, memory is the limit and lanes cannot help
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measure import commit, machine, minima, one_core, prepare_to_measure
from peak import bytes_per_second, flops_per_second

from robokit.engine.backend.llvm import vector_width
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
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
void ldlt_rows(int rows, int n, T *A) {
  for (int k = 0; k < rows; k++) ldlt(n, A + k * n * n);
}
void sweeps_rows(int rows, int turns, int contacts, const int *a, const int *b, const T *J, const T *W,
                 const T *rhs, const T *D, T *v, T *g) {
  for (int k = 0; k < rows; k++, a += contacts, b += contacts, J += contacts * 36, W += contacts * 36,
       rhs += contacts * 3, D += contacts * 3, v += BODIES * 6, g += contacts * 3)
    sweeps(turns, contacts, a, b, J, W, rhs, D, v, g);
}
void support_rows(int rows, int n, const T *V, const T *d, int *out) {
  for (int k = 0; k < rows; k++) support(n, V, d + k * 3, out + k);
}
"""

BODIES = 20


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
    flags = [
        "-O3",
        "-march=native",
        f"-DT={'double' if dtype == 'float64' else 'float'}",
        f"-DBODIES={BODIES}",
    ]
    command = ["cc", *flags, "-fPIC", "-shared", "-x", "c", "-", "-o", library]
    subprocess.run(command, input=C, text=True, check=True)
    return ctypes.CDLL(str(library))


@dataclass
class Machine:
    """What it can do at most: operations in double precision and bytes, a second."""

    flops: float
    bytes: float


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    """To an array's first entry."""
    return x.ctypes.data_as(ctypes.c_void_p)


def compare(
    name: str,
    kernel: LoopKernel,
    sizes: dict[str, int],
    arrays: Sequence[np.ndarray],
    c: tuple[Callable[..., None], Callable[..., None]],
    flops: float,
    rows: int,
    dtype: str,
    most: Machine,
) -> dict[str, Any]:
    """Measure one problem.

    Args:
        name: of the problem.
        kernel: of robokit.
        sizes: of the kernel.
        arrays: of one state.
        c: the function for one state, and that for rows.
        flops: additions and multiplications of a state.
        rows: of a batch.
        dtype: of the arrays.
        most: the machine.
    """

    def repeated(like: Sequence[np.ndarray]) -> list[np.ndarray]:
        pairs = zip(kernel.arrays, like, strict=True)
        return [x.copy() if a.shared else np.repeat(x[None], rows, 0) for a, x in pairs]

    numbers = [sizes[n] for n in kernel.sizes if n != "bodies"]
    for_c = [x.copy() for x in arrays]
    one = kernel.single(sizes, arrays, dtype)
    given = [*numbers, *map(pointer, for_c)]
    one()
    c[0](*given)
    assert all(np.allclose(x, y, rtol=1e-4, atol=1e-5) for x, y in zip(arrays, for_c, strict=True))
    batch = kernel.batch(sizes, repeated(arrays), rows, dtype)
    # C wants the pairs of bodies in every row.
    rows_for_c = [
        np.repeat(x[None], rows, 0) if a.kind == "integer" or not a.shared else x.copy()
        for a, x in zip(kernel.arrays, arrays, strict=True)
    ]
    given_rows = [rows, *numbers, *map(pointer, rows_for_c)]
    calls: dict[str, Callable[[], object]] = {"one": one, "c": lambda: c[0](*given)}
    calls |= {"batch": batch, "c_batch": lambda: c[1](*given_rows)}
    t = minima(calls, 2.0)
    size = np.dtype(dtype).itemsize
    lanes, peak = vector_width() * 8 // size, most.flops * 8 / size
    moved = rows * sum(
        x.nbytes * (1 + (a.role == "inout"))
        for a, x in zip(kernel.arrays, arrays, strict=True)
        if not a.shared
    )
    return {
        "name": name,
        "dtype": dtype,
        "one": t["one"] * 1e6,
        "c": t["c"] * 1e6,
        "row": t["batch"] / rows * 1e6,
        "c_row": t["c_batch"] / rows * 1e6,
        "lanes": t["batch"] / rows * lanes / t["one"],
        "peak_one": flops / t["one"] / peak,
        "peak_row": flops * rows / t["batch"] / peak,
        "megabytes": moved / 1e6,
        "bandwidth": moved / most.bytes / t["batch"],
    }


HEADING = (
    f"{'':<32}{'one':>8}{'C':>8}{'C/':>6}{'row':>9}{'C':>8}{'C/':>6}{'lanes':>7}{'peak, one':>11}{'row':>6}"
    f"{'MB':>7}{'bw':>6}"
)


def line(x: dict[str, Any]) -> str:
    """A row of the table."""
    one, c, row, of_c = (x[k] for k in ("one", "c", "row", "c_row"))
    return (
        f"{x['dtype']:<9}{x['name']:<23}{one:8.2f}{c:8.2f}{c / one:6.2f}{row:9.3f}"
        f"{of_c:8.2f}{of_c / row:6.2f}{x['lanes']:7.2f}{x['peak_one']:11.1%}{x['peak_row']:6.1%}"
        f"{x['megabytes']:7.1f}{x['bandwidth']:6.2f}"
    )


def problems(dtype: str, folder: Path, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Name, kernel, sizes, arrays, functions in C and operations of each problem."""
    c = compiled(folder, dtype)
    for n in (12, 35, 60):
        A = np.eye(n, dtype=dtype)  # factored again and again it stays what it is
        flops = sum(2 * m + m * (m + 1) for m in range(n))
        yield f"LDL^T, n = {n}", LDLT, {"n": n}, [A], (c.ldlt, c.ldlt_rows), flops
    for n in (8, 24):
        a = rng.integers(0, BODIES, n).astype(np.int32)
        b = ((a + rng.integers(1, BODIES, n)) % BODIES).astype(np.int32)
        J = rng.normal(size=(n, 3, 12)).astype(dtype)
        rhs, D = rng.normal(size=(n, 3)).astype(dtype), np.full((n, 3), 0.3, dtype)
        sizes = {"turns": 10, "contacts": n, "bodies": BODIES}
        for kernel, whose in ((SWEEPS, "own pairs"), (SAME, "same")):
            free = np.zeros((BODIES, 6), dtype), np.zeros((n, 3), dtype)
            arrays = [a, b, J, 0.1 * J, rhs, D, *free]
            functions = c.sweeps, c.sweeps_rows
            yield f"{n} contacts, {whose}", kernel, sizes, arrays, functions, 10 * n * 3 * 52
    for n in (32, 500):
        V, d = rng.normal(size=(n, 3)).astype(dtype), rng.normal(size=3).astype(dtype)
        arrays = [V, d, np.zeros(1, np.int32)]
        yield f"support, {n} vertices", SUPPORT, {"n": n}, arrays, (c.support, c.support_rows), 5 * n


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4096, help="of a batch")
    parser.add_argument("--derivatives", action="store_true", help="values and derivatives instead of C")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    print(machine())
    if arguments.derivatives:
        all_derivatives(arguments.rows)
        return
    found = []
    with tempfile.TemporaryDirectory() as folder, one_core():
        most = Machine(flops_per_second(), bytes_per_second())
        print(f"peak {most.flops / 1e9:.0f} Gflop/s in double precision, copies {most.bytes / 1e9:.1f} GB/s")
        print(f"microseconds; batches of {arguments.rows}; sweeps are ten\n{HEADING}")
        for dtype in ("float64", "float32"):
            for problem in problems(dtype, Path(folder), np.random.default_rng(0)):
                found.append(compare(*problem, arguments.rows, dtype, most))
                print(line(found[-1]), flush=True)
    if arguments.json:
        about = {"machine": machine(), "commit": commit(), "rows": arguments.rows, "peak": vars(most)}
        arguments.json.write_text(json.dumps(about | {"loops": found}, indent=1) + "\n")


if __name__ == "__main__":
    prepare_to_measure()
    main()
