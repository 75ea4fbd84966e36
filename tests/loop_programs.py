"""Random programs with loops, calls, conditions and memory: the same program at each run of one seed.

A program is data, made once from its seed; running it is Python over numbers of any kind. Its real numbers
stay below 4 in size and its whole ones below 50, so that nothing overflows.
"""

# ruff: noqa: RUF059 - statements choose operands, and not all use all of them

from __future__ import annotations

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from robokit.engine.loops.kernel import ArrayOf
from robokit.spatial.control_flow import call, cond, for_range, vmap, while_loop, whole, zeros
from robokit.spatial.scalars import cos, holds, maximum, minimum, register, sin, sqrt, where

SIZE = 5
ARRAYS = [
    ArrayOf("x", (SIZE,), "inout"),
    ArrayOf("y", (2, "n"), "inout"),
    ArrayOf("m", (SIZE,), "inout", "integer"),
    ArrayOf("k", (SIZE,), "in", "integer"),
    ArrayOf("table", (SIZE,), "in", shared=True),
    ArrayOf("index", (SIZE,), "in", "integer", shared=True),
]

STATEMENTS = ["real"] * 6 + ["whole"] * 3 + ["truth"] * 2 + ["store"] * 4 + ["memory"] * 2
NESTED = ["for", "for", "while", "most", "cond", "cond", "call", "call", "vmap"]


class Single(float):
    """A number of single precision: what doubles give, rounded once more, is right for these operations."""

    @staticmethod
    def _of(function):
        return lambda *numbers: Single(np.float32(function(*map(float, numbers))))

    __add__ = __radd__ = _of(float.__add__)
    __sub__, __rsub__ = _of(float.__sub__), _of(float.__rsub__)
    __mul__ = __rmul__ = _of(float.__mul__)
    __truediv__, __rtruediv__ = _of(float.__truediv__), _of(float.__rtruediv__)
    __neg__, __abs__, root = _of(float.__neg__), _of(float.__abs__), _of(math.sqrt)


register(
    Single,
    SimpleNamespace(
        sqrt=Single.root, maximum=max, minimum=min, where=lambda c, a, b: a if holds(c) else b
    ),
)  # fmt: skip


class Rounded:
    """An array of single precision for a program that Python runs."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, index):
        found = self.array[index]
        if isinstance(found, np.ndarray):
            return Rounded(found)
        return Single(found) if self.array.dtype == np.float32 else found.item()

    def __setitem__(self, index, value):
        self.array[index] = value


class Pools:
    """What is at hand: lists of numbers, of which statements choose by place."""

    def __init__(self, reals, wholes, truths, memory=()):
        self.reals, self.wholes, self.truths = list(reals), list(wholes), list(truths)
        self.memory = list(memory)

    def copy(self, reals=(), wholes=(), truths=()):
        return Pools(
            [*self.reals, *reals], [*self.wholes, *wholes], [*self.truths, *truths], self.memory
        )  # fmt: skip

    def choice(self, place):
        a, b, i, j, t = place
        return (
            self.reals[a % len(self.reals)], self.reals[b % len(self.reals)],
            self.wholes[i % len(self.wholes)], self.wholes[j % len(self.wholes)],
            self.truths[t % len(self.truths)],
        )  # fmt: skip

    def last(self):
        return self.reals[-1], self.wholes[-1], self.truths[-1]


def bounded(i):
    return minimum(maximum(i, -50), 50)


def inside(i, size):
    return minimum(maximum(i, 0), size - 1)


class Program:
    """A function of a size n and of ARRAYS."""

    arrays = ARRAYS

    def __init__(self, seed, angles=False, largest=22):
        self.seed, self.angles, self.number = seed, angles, float
        rng = random.Random(seed)
        self.budget = rng.randint(largest // 3, largest)
        self.functions = []
        self.callable = 0
        self.main = self.block(rng, 0, 4)
        # What a function calls comes after it, so no function calls itself.
        while len(self.functions) < self.callable:
            self.functions.append(None)
            self.budget = rng.randint(1, largest // 5)
            self.functions[-1] = self.block(rng, 1, 2)

    # -- the program --------------------------------------------------------------------------------

    def block(self, rng, depth, most):
        return [self.statement(rng, depth) for _ in range(rng.randint(1, most))]

    def statement(self, rng, depth):
        self.budget -= 1
        kind = rng.choice(STATEMENTS if self.budget < 0 or depth > 3 else STATEMENTS + 2 * NESTED)
        place = [rng.randrange(1 << 20) for _ in range(5)]
        how = rng.randrange(1 << 20)
        if kind in ("call", "vmap"):
            if self.callable < 4 and (self.callable == len(self.functions) or rng.random() < 0.5):
                self.callable += 1
            later = range(len(self.functions), self.callable)
            if not later:
                return "real", place, how, []
            return kind, place, how, [rng.choice(later), rng.randint(2, 5)]
        blocks = {"cond": 2, "for": 1, "while": 1, "most": 1}.get(kind, 0)
        return kind, place, how, [self.block(rng, depth + 1, 3) for _ in range(blocks)]

    # -- its run ------------------------------------------------------------------------------------

    def __call__(self, n, x, y, m, k, table, index):
        self.n, self.x, self.y, self.m, self.k = n, x, y, m, k
        self.table, self.index = table, index
        pools = Pools([x[0], x[1], y[0, 0]], [n, k[0], k[1]], [x[0] < x[1]])
        self.first = x[2] * self.number(0.5)
        self.made = [self.function(block) for block in self.functions]
        self.run(self.main, pools)
        x[SIZE - 1], m[SIZE - 1] = pools.reals[-1], pools.wholes[-1]
        y[1, 0] = where(pools.truths[-1], pools.reals[-1], pools.reals[len(pools.reals) // 2])

    def function(self, block):
        def called(a, pair, part):
            i, t = pair
            pools = Pools([a, part[inside(i, SIZE - 2)], self.first], [i, self.n], [t])
            self.run(block, pools)
            real, whole_, truth = pools.last()
            return real, [whole_, truth]

        return called

    def run(self, block, pools):
        for kind, place, how, rest in block:
            getattr(self, f"_{kind}")(pools, pools.choice(place), how, rest)

    def inner(self, block, pools):
        self.run(block, pools)
        return pools.last()

    def _real(self, pools, chosen, how, _):
        a, b, i, j, t = chosen
        c = self.number
        choices = [
            lambda: a + b,
            lambda: a * c(0.5) - b,
            lambda: a * b + a * c(0.25),
            lambda: a / (abs(b) + c(1.0)),
            lambda: a / c(3.0),
            lambda: sqrt(abs(a) + c(0.125)),
            lambda: maximum(a, b) - minimum(b, c(0.25)),
            lambda: where(t, a, b),
            lambda: self.x[inside(i, SIZE)],
            lambda: self.y[1, inside(j, self.n)],
            lambda: self.table[inside(j, SIZE)],
            lambda: self.x[inside(self.index[inside(i, SIZE)], SIZE)],
            lambda: i * c(0.0625) + a,
        ]
        if self.angles:
            choices += [lambda: sin(a) * cos(b)] * 2
        pools.reals.append(choices[how % len(choices)]() * c(0.5))

    def _whole(self, pools, chosen, how, _):
        a, b, i, j, t = chosen
        divisor = where(j == 0, 2, j)
        choices = [
            lambda: i + j,
            lambda: i - 2 * j,
            lambda: i * j,
            lambda: i // divisor,
            lambda: i % divisor,
            lambda: i // 3 + j % 4,
            lambda: abs(i) - maximum(i, j),
            lambda: where(t, i, j - 1),
            lambda: whole(a * self.number(8.0)),
            lambda: self.k[inside(i, SIZE)],
            lambda: self.m[inside(i, SIZE)],
            lambda: self.index[inside(j, SIZE)],
        ]
        pools.wholes.append(bounded(choices[how % len(choices)]()))

    def _truth(self, pools, chosen, how, _):
        a, b, i, j, t = chosen
        choices = [
            lambda: a < b,
            lambda: (i <= j) & t,
            lambda: (a > self.number(0.0)) | (i != j),
            lambda: ~t,
            lambda: ~(i < 3) | t & (a <= b),
        ]
        pools.truths.append(choices[how % len(choices)]())

    def _store(self, pools, chosen, how, _):
        a, b, i, j, t = chosen
        if how % 5 == 0:
            self.x[inside(i, SIZE)] = a
        elif how % 5 == 1:
            self.y[how % 2, inside(j, self.n)] = b
        elif how % 5 == 2:
            self.m[inside(i, SIZE)] = j
        elif how % 5 == 3:
            row = self.y[1]
            row[inside(i, self.n)] = row[inside(j, self.n)] * self.number(0.5)
        elif pools.memory:
            array, size = pools.memory[how // 5 % len(pools.memory)]
            array[inside(i, size), 1] = array[inside(j, size), 0] * self.number(0.5) + a * self.number(0.25)

    def _memory(self, pools, chosen, how, _):
        a, b, i, j, t = chosen
        size = [2, self.n, maximum(self.n - 1, 1), inside(i, 4) + 1, 12][how % 5]
        array = zeros(size, 2)
        array[inside(j, size), 0] = a
        pools.memory.append((array, size))
        pools.reals.append(array[inside(i, size), 0] + array[0, 1] * self.number(0.5))

    def _for(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen
        count = [minimum(i, 4), minimum(self.n, 3), 2, inside(j, 4)][how % 4]

        def body(k, r, m, u):
            return self.inner(rest[0], pools.copy([r], [m, k], [u]))

        self.keep(pools, for_range(count, body, a, j, t))

    def _while(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen
        most = inside(i, 4)

        def test(left, state):
            return (left < most) & (state[0] < self.number(2.0)) if how % 2 else (left < most) & state[2]

        def body(left, state):
            return left + 1, self.inner(rest[0], pools.copy([state[0]], [state[1], left], [state[2]]))

        self.keep(pools, while_loop(test, body, 0, (a, i, t))[1])

    def _most(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen

        def body(r, m, u):
            return self.inner(rest[0], pools.copy([r], [m], [u]))

        self.keep(pools, while_loop(lambda r, m, u: u | (m < 3), body, a, j, t, most=how % 4))

    def _cond(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen
        condition = [t, a < b, i < j, (i != 1) & t][how % 4]
        self.keep(pools, cond(condition, *(lambda s=s: self.inner(s, pools.copy()) for s in rest)))

    def _call(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen
        part = [self.x[1:], self.x, self.table, self.table[1:]][how % 4]
        real, (whole_, truth) = call(self.made[rest[0]], a, (i, t), part)
        self.keep(pools, (real, whole_, truth))

    def _vmap(self, pools, chosen, how, rest):
        a, b, i, j, t = chosen
        columns = range(rest[1])
        reals = [a * self.number(0.5) + b * self.number(0.125 * k) for k in columns]
        pairs = [(minimum(i + k, 20), t) for k in columns]
        found = vmap(self.made[rest[0]])(reals, pairs, [self.x[1:] for _ in columns])
        for real, (whole_, truth) in found:
            self.keep(pools, (real * self.number(0.5), whole_, truth))

    def keep(self, pools, found):
        pools.reals.append(found[0])
        pools.wholes.append(found[1])
        pools.truths.append(found[2])


class Several:
    """Programs one after the other, each on its own part of the arrays, which the first index chooses."""

    def __init__(self, programs):
        self.programs = programs
        self.arrays = [replace(a, shape=(len(programs), *a.shape)) for a in ARRAYS]

    def __call__(self, n, *arrays):
        for k, program in enumerate(self.programs):
            program(n, *(a[k] for a in arrays))

    def __setattr__(self, name, value):
        if name == "number":  # what reals are
            for program in self.programs:
                program.number = value
        else:
            super().__setattr__(name, value)
