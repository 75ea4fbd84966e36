"""Factors L U of a matrix that is not symmetric, in the pattern of A; solutions of it and of its transpose.

    M = U L     U: ones on the diagonal, entries above it; L: entries on the diagonal and below it

Row i has entries in the columns of ``entries``, and column i in these rows. Eliminated from the last row to
the first, as symmetric matrices are in linear.py, this makes no other entries.

Source: RBDA section 6.5; the same elimination without symmetry.
"""

from __future__ import annotations

from typing import Any

from robokit.spatial.control_flow import for_range


def factor(x: Any, M: Any, inverse: Any) -> None:
    """M becomes its factors, (nv, nv); ``inverse``: that of their diagonal, (nv,)."""

    def row(m: Any) -> None:
        k = x.nv - 1 - m
        inverse[k] = 1.0 / M[k, k]

        def above(e: Any) -> None:
            i = x.entries[k, e]
            share = M[i, k] * inverse[k]

            def entry(z: Any) -> None:
                c = x.entries[k, z]
                M[i, c] = M[i, c] - share * M[k, c]

            for_range(x.entries_length[k], entry)
            M[i, k] = share

        for_range(x.entries_length[k], above)

    for_range(x.nv, row)


def back_substitute(x: Any, M: Any, inverse: Any, B: Any) -> None:
    """B becomes M^-1 B, by the factors; (nv, m): the columns go together."""

    def take(i: Any, share: Any, k: Any) -> None:
        def one(c: Any) -> None:
            B[i, c] = B[i, c] - share * B[k, c]

        for_range(B.shape[1], one)

    def up(m: Any) -> None:
        k = x.nv - 1 - m

        def entry(z: Any) -> None:
            i = x.entries[k, z]
            take(i, M[i, k], k)

        for_range(x.entries_length[k], entry)

    def down(k: Any) -> None:
        def entry(z: Any) -> None:
            i = x.entries[k, z]
            take(k, M[k, i], i)

        def scaled(c: Any) -> None:
            B[k, c] = B[k, c] * inverse[k]

        for_range(x.entries_length[k], entry)
        for_range(B.shape[1], scaled)

    for_range(x.nv, up)
    for_range(x.nv, down)


def back_substitute_transposed(x: Any, M: Any, inverse: Any, b: Any) -> None:
    """b becomes M^-T b, by the factors."""

    def up(m: Any) -> None:
        k = x.nv - 1 - m
        known = b[k] * inverse[k]
        b[k] = known

        def take(z: Any) -> None:
            i = x.entries[k, z]
            b[i] = b[i] - M[k, i] * known

        for_range(x.entries_length[k], take)

    def down(k: Any) -> None:
        def entry(z: Any, total: Any) -> Any:
            i = x.entries[k, z]
            return total - M[i, k] * b[i]

        b[k] = for_range(x.entries_length[k], entry, b[k])

    for_range(x.nv, up)
    for_range(x.nv, down)
