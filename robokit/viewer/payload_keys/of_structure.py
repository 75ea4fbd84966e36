"""The mass matrix: its pattern, its factors, what they cost."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.viewer.payload_keys.packed_tables import PackedBits


@dataclass(frozen=True)
class CountData:
    """Multiply-adds of factorising H and of solving with the factors.

    Attributes:
        entries: of H.
        zeros: of H, by structure.
        zeros_share: zeros / entries.
        factorise: H = LᵀDL on the tree.
        factorise_dense: of a dense matrix.
        solve: with the factors of LᵀDL.
        solve_dense: with dense factors.
        fill: entries that fill in at Cholesky's H = LLᵀ.
        cholesky_factorise: H = LLᵀ with its fill-in.
        cholesky_solve: with the factors of LLᵀ.
    """

    entries: int
    zeros: int
    zeros_share: float
    factorise: int
    factorise_dense: int
    solve: int
    solve_dense: int
    fill: int
    cholesky_factorise: int
    cholesky_solve: int


@dataclass(frozen=True)
class CostData:
    """Operations of one algorithm for one state, as ``robokit.cost`` counts them.

    Attributes:
        algorithm: its name in the dynamics.
        growth: as the textbooks state it, in bodies n and depth d.
        mul: multiplications; None, like the next three, where they are not known.
        add: additions and subtractions.
        div: divisions.
        sincos: pairs of a sine and a cosine.
        note: why there are no counts; "" where there are.
    """

    algorithm: str
    growth: str
    mul: int | None
    add: int | None
    div: int | None
    sincos: int | None
    note: str


@dataclass(frozen=True)
class StructureData:
    """Patterns of the mass matrix and of its factors.

    Attributes:
        n: rows of H, nv.
        pattern: where H can be nonzero, (n, n).
        cholesky: where L of H = LLᵀ can be nonzero, (n, n).
        counts: of factorisations and solves, by formula.
        costs: of the algorithms, counted.
    """

    n: int
    pattern: PackedBits
    cholesky: PackedBits
    counts: CountData
    costs: list[CostData]
