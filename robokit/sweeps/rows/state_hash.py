"""A number for the last state of a row, by which two computations of it are compared to the last bit."""

from __future__ import annotations

import numpy as np

OFFSET = 0xCBF29CE484222325
PRIME = 0x100000001B3


def state_hash(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Hash of states: equal bits give equal numbers, other bits almost surely others.

    FNV-1a over the float64 numbers of q, then v, each taken as one 64-bit word. High bits are folded down
    after each word, for a product alone never carries them there. The report's page computes the same.

    Args:
        q: configurations, (nq,) or (B, nq).
        v: velocities, (nv,) or (B, nv).

    Returns:
        uint64, () or (B,).
    """
    words = np.concatenate([np.asarray(q, "<f8"), np.asarray(v, "<f8")], axis=-1).view("<u8")
    h = np.full(words.shape[:-1], OFFSET, np.uint64)
    with np.errstate(over="ignore"):
        for k in range(words.shape[-1]):
            h = (h ^ words[..., k]) * np.uint64(PRIME)
            h ^= h >> np.uint64(32)
    return np.asarray(h)
