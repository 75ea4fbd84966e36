"""The hash of a state: one number for each row, which no change of a bit leaves as it is."""

from __future__ import annotations

import numpy as np

from robokit.sweeps.recipe import state_hash


def test_rows_have_the_hashes_that_they_have_alone():
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=(5, 7)), rng.normal(size=(5, 6))
    together = state_hash(q, v)
    assert together.dtype == np.uint64 and together.shape == (5,)
    assert [int(h) for h in together] == [int(state_hash(*one)) for one in zip(q, v, strict=True)]
    assert int(state_hash(np.zeros(2), np.ones(1))) == 12610246625012555911


def test_every_bit_counts():
    state = np.array([1.0, -2.0, 3.0])
    known = {int(state_hash(state[:2], state[2:]))}
    for k in range(3):
        for bit in range(64):
            other = state.copy()
            other.view(np.uint64)[k] ^= np.uint64(1 << bit)
            known.add(int(state_hash(other[:2], other[2:])))
    assert len(known) == 1 + 3 * 64
    assert state_hash(np.zeros(1), np.zeros(1)) != state_hash(-np.zeros(1), np.zeros(1))
