"""Random numbers by row: what a row draws depends on the seed, the row's number and the parameter's name.

There is no state that one row would leave to the next: row k draws the same numbers in every chunk, and a
parameter draws the same numbers whatever other parameters a sweep has.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(2011), Philox4x64-10; S. Joe, F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional
projections" (2008).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence

import numpy as np

MULTIPLIERS = (np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157))
WEYL = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B))
ROUNDS = 10
HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)

SOBOL_BITS = 32
"""Binary digits of a coordinate of a Sobol point; there are 2^32 points."""

SHIFT_ROW = np.uint64(0xFFFFFFFFFFFFFFFF)
"""The row that no sweep has: it draws the shift of a Sobol sequence."""

LARGEST_SEED = 2**64 - 1


def philox(counter: Sequence[np.ndarray], key: tuple[int, int]) -> list[np.ndarray]:
    """Four random words of 64 bits for each counter.

    Args:
        counter: its four words, arrays of uint64 of one shape.
        key: two words.
    """
    c = [np.asarray(word, dtype=np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        for _ in range(ROUNDS):
            high0, low0 = _product(MULTIPLIERS[0], c[0])
            high1, low1 = _product(MULTIPLIERS[1], c[2])
            c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
            k = [word + step for word, step in zip(k, WEYL, strict=True)]
    return c


def _product(a: np.uint64, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """High and low half of the product of two words, of 128 bits."""
    a0, a1 = a & LOW_HALF, a >> HALF
    b0, b1 = b & LOW_HALF, b >> HALF
    low, cross = a0 * b0, a1 * b0
    middle = a0 * b1 + (low >> HALF)
    total = cross + (middle & LOW_HALF)
    return a1 * b1 + (middle >> HALF) + (total >> HALF), a * b


def stream_of(name: str) -> int:
    """The number of the stream of a parameter: 64 bits of the SHA-256 of its name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def words(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Random words of 64 bits, (rows, count)."""
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    row = np.repeat(np.asarray(rows, dtype=np.uint64), len(blocks))
    block = np.tile(blocks, len(rows))
    stream = np.full(len(row), stream_of(name), dtype=np.uint64)
    found = philox([row, block, stream, np.zeros_like(row)], (seed, 0))
    return np.stack(found, axis=-1).reshape(len(rows), 4 * len(blocks))[:, :count]


def uniforms(seed: int, name: str, rows: np.ndarray, count: int = 1) -> np.ndarray:
    """Numbers between 0 and 1, both excluded, (rows, count)."""
    return _between(words(seed, name, rows, count) >> np.uint64(12), 52)


def _between(whole: np.ndarray, bits: int) -> np.ndarray:
    """(whole + 1/2) 2^-bits: exact, and never 0 or 1, for bits up to 52."""
    return (whole.astype(float) + 0.5) * 2.0**-bits


def sobol_points(seed: int, names: Sequence[str], first: int, last: int) -> np.ndarray:
    """Points first..last of a Sobol sequence with a dimension for each name, in (0, 1), (rows, names).

    The digits of each coordinate are flipped at random, the same ones in all points: a digital shift, which
    leaves the sequence as even as it was. Digits beyond the 32nd are drawn for each point.
    """
    from scipy.stats import qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numbers of points that are no power of two
        sequence = qmc.Sobol(max(1, len(names)), scramble=False, bits=SOBOL_BITS)
        if first:
            sequence.fast_forward(first)
        points = sequence.random(last - first)[:, : len(names)]
    whole = (points * 2.0**SOBOL_BITS).astype(np.uint64)
    rows = np.arange(first, last, dtype=np.uint64)
    for k, name in enumerate(names):
        shift = words(seed, name, np.array([SHIFT_ROW]))[0, 0] >> np.uint64(64 - SOBOL_BITS)
        rest = words(seed, name, rows)[:, 0] >> np.uint64(12 + SOBOL_BITS)
        whole[:, k] = ((whole[:, k] ^ shift) << np.uint64(52 - SOBOL_BITS)) | rest
    return _between(whole, 52)
