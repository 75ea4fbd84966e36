"""Coupling: joints that follow others lose their coordinates, q_full = G q + offset, v_full = G v.

A row of G has one entry: the joint's own coordinate (1), the one it follows at the end of its chain of
mimics (the product of the multipliers), or none (it follows a fixed joint and stands still).

Source: mimic element of URDF; equations of motion under v_full = G v, RBDA section 3.3 (H_r = G^T H G).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.caching import cached_attribute
from robokit.model.sparsity import inertia_pattern

NO_COORDINATE = -1
"""The coordinate of what stands still."""


@dataclass(frozen=True)
class Coupling:
    """G and offset, sparse: one entry a row.

    Attributes:
        nq, nv: lengths of the reduced q and v.
        q_from: (coordinate of the reduced q or -1, multiplier, offset) of each full coordinate.
        v_from: (coordinate of the reduced v or -1, multiplier) of each full velocity.
        dof_parent: parent of each reduced dof in a tree whose branches cover H_r and its factor L.
        own_q, own_v: place of each reduced coordinate and velocity in the full q and v.
    """

    nq: int
    nv: int
    q_from: tuple[tuple[int, float, float], ...]
    v_from: tuple[tuple[int, float], ...]
    dof_parent: tuple[int, ...]
    own_q: tuple[int, ...]
    own_v: tuple[int, ...]

    def full_q(self, q: Sequence[Any]) -> list[Any]:
        """G q + offset, as a list of scalars."""
        return [offset if k == NO_COORDINATE else _times(q[k], m) + offset for k, m, offset in self.q_from]

    def full_v(self, v: Sequence[Any]) -> list[Any]:
        """G v, as a list of scalars."""
        return [0.0 if k == NO_COORDINATE else _times(v[k], m) for k, m in self.v_from]

    def force_at_own(self, tau: Sequence[Any]) -> list[Any]:
        """Full forces whose projection is tau: tau at the joints that keep their coordinates, else 0."""
        full = [0.0] * len(self.v_from)
        for k, at in enumerate(self.own_v):
            full[at] = tau[k]
        return full

    @cached_attribute
    def G(self) -> np.ndarray:
        """The coupling matrix, (full nv, nv)."""
        G = np.zeros((len(self.v_from), self.nv))
        for row, (k, m) in enumerate(self.v_from):
            if k != NO_COORDINATE:
                G[row, k] = m
        return G


def _times(x: Any, m: float) -> Any:
    return x if m == 1.0 else x * m


def reduced_parents(dof_parent: Sequence[int], dof_of: Sequence[int], nv: int) -> tuple[int, ...]:
    """Elimination tree of H_r = G^T H G, taken from the last dof to the first as L^T D L does.

    Joints of different branches that share a coordinate couple their branches. The factor's entries lie on
    the paths of this tree, so that the sparse factorisation serves H_r as it does H; without mimics it is
    ``dof_parent`` itself.

    Source: elimination trees, J. W. H. Liu (1990); RBDA section 6.4.

    Args:
        dof_parent: of the full tree.
        dof_of: reduced dof of each full one, -1 for none.
        nv: number of reduced dofs.
    """
    above: list[set[int]] = [set() for _ in range(nv)]
    for i, j in np.argwhere(np.tril(inertia_pattern(dof_parent))).tolist():
        a, b = sorted((dof_of[i], dof_of[j]))
        if a != NO_COORDINATE and a != b:
            above[b].add(a)
    parents = [NO_COORDINATE] * nv
    for k in reversed(range(nv)):
        if above[k]:
            parents[k] = max(above[k])
            above[parents[k]] |= above[k] - {parents[k]}
    return tuple(parents)
