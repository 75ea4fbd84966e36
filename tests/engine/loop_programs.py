"""Random functions with loops, conditions, gathers and stores: the same choices at each run of one seed."""

from __future__ import annotations

import random

from robokit.engine.loops.kernel import ArrayOf
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, sqrt, where

SIZE = 6
ARRAYS = [
    ArrayOf("x", (SIZE,), "inout"),
    ArrayOf("y", (SIZE,), "inout"),
    ArrayOf("k", (SIZE,), "in", "integer"),
    ArrayOf("table", (SIZE,), "in", shared=True),
]


def inside(index):
    return minimum(maximum(index, 0), SIZE - 1)


class Program:
    """A function of a size n and of ARRAYS."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, n, x, y, k, table):
        self.arrays = x, y, k, table
        reals, _ = self.block(random.Random(self.seed), [x[0], x[1], 0.5], [n, k[0], 1], 0)
        y[0], x[SIZE - 1] = reals[-1], reals[len(reals) // 2]

    def block(self, rng, reals, ints, depth):
        """Some statements; what is at hand after them. The body of a loop has random numbers of its own."""
        for _ in range(rng.randint(1, 3)):
            reals, ints = self.expressions(rng, reals, ints)
            kind, inner = rng.randint(0, 5), rng.randint(0, 1 << 30)
            a, b, i = rng.choice(reals), rng.choice(reals), rng.choice(ints)
            if kind == 0:
                self.arrays[0][inside(i)] = a
            elif kind == 1:
                self.arrays[1][rng.randint(0, SIZE - 1)] = a
            elif depth < 3:
                found = [self.turns, self.choice, self.until, self.turns][kind - 2](
                    inner, reals, ints, depth, a, b, i
                )
                reals, ints = [*reals, found[0]], [*ints, found[1]]
        return reals, ints

    def inner(self, seed, reals, ints, depth):
        reals, ints = self.block(random.Random(seed), reals, ints, depth + 1)
        return reals[-1], minimum(ints[-1], 9)

    def turns(self, seed, reals, ints, depth, a, b, i):
        count = (minimum(i, 4), ints[0], 2)[seed % 3]
        return for_range(
            count, lambda k, r, m: self.inner(seed, [*reals, r], [*ints, k, m], depth), a, ints[-1]
        )

    def choice(self, seed, reals, ints, depth, a, b, i):
        return cond(
            a < b,
            lambda: self.inner(seed, reals, ints, depth),
            lambda: self.inner(seed + 1, reals, ints, depth),
        )

    def until(self, seed, reals, ints, depth, a, b, i):
        most = minimum(i, 3)
        body = lambda r, m: (self.inner(seed, [*reals, r], [*ints, m], depth)[0], m + 1)  # noqa: E731
        return while_loop(lambda r, m: (m < most) & (r < 4.0), body, a, 0)

    def expressions(self, rng, reals, ints):
        for _ in range(rng.randint(1, 3)):
            a, b, i, j = rng.choice(reals), rng.choice(reals), rng.choice(ints), rng.choice(ints)
            kind = rng.randint(0, 9)
            if kind < 7:
                reals = [*reals, self.real(kind, a, b, i, j) * 0.5]
            else:
                ints = [*ints, self.whole(kind, a, b, i, j)]
        return reals, ints

    def real(self, kind, a, b, i, j):
        x, _, _, table = self.arrays
        return [
            lambda: a + b,
            lambda: a * 0.5 - b,
            lambda: where(a < b, a, b * 1.25),
            lambda: sqrt(abs(a) + 1.0),
            lambda: x[inside(i)],
            lambda: table[inside(j)] * 0.75,
            lambda: i * 0.25 + a * 0.5,
        ][kind]()

    def whole(self, kind, a, b, i, j):
        k = self.arrays[2]
        return [lambda: minimum(i + j, 7), lambda: k[inside(i)], lambda: where(a < b, i, j - 1)][kind - 7]()
