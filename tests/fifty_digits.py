"""The functions under test over numbers of 60 digits, and their derivatives as difference quotients of these.

The quotient of a step of 1e-25 has some 35 right digits, and shares nothing with any way to differentiate.
"""

from __future__ import annotations

from types import SimpleNamespace

import mpmath as mp
import numpy as np

from robokit.spatial.control_flow import Memory
from robokit.spatial.scalars import holds, register

DIGITS, STEP = 60, mp.mpf(10) ** -25

register(
    mp.mpf,
    SimpleNamespace(
        sin=mp.sin,
        cos=mp.cos,
        sqrt=mp.sqrt,
        floor=mp.floor,
        atan2=mp.atan2,
        where=lambda condition, a, b: a if holds(condition) else b,
        maximum=lambda a, b: b if b > a else a,
        minimum=lambda a, b: b if b < a else a,
        library=mp,
    ),
)


def exact(x):
    """Numbers with all their digits, in an array of the same shape."""
    x = np.asarray(x)
    found = np.empty(x.shape, object)
    found.ravel()[:] = [mp.mpf(float(each)) for each in x.ravel()]
    return found


def along(function, x, d):
    """The derivative along a direction of a function of arrays that returns an array, as floats."""
    with mp.workdps(DIGITS):
        x, d = [exact(each) for each in x], [exact(each) for each in d]
        after = function(*(a + STEP * b for a, b in zip(x, d, strict=True)))
        before = function(*(a - STEP * b for a, b in zip(x, d, strict=True)))
        return floats([(a - b) / (2 * STEP) for a, b in zip(np.ravel(after), np.ravel(before), strict=True)])


def floats(x):
    return np.array([float(each) for each in np.ravel(x)])


def of_kernel(kernel, sizes, integers=()):
    """A kernel's function of its inputs of real numbers, which returns its outputs: on numbers of any kind.

    Args:
        kernel: whose function is run.
        sizes: of its arrays.
        integers: arrays of whole numbers, by name.
    """
    integers = dict(integers)

    def run(*given):
        reals, arrays = iter(given), []
        for a in kernel.arrays:
            if a.name in integers:
                arrays.append(np.array(integers[a.name], object))  # a copy: it may be written
            elif a.role == "in":
                arrays.append(next(reals))
            elif a.role == "inout":
                arrays.append(next(reals).copy())
            else:
                shape = tuple(sizes[n] if isinstance(n, str) else n for n in a.shape)
                arrays.append(exact(np.zeros(shape)))
        # Memory, which called functions may write.
        kernel.function(*(sizes[n] for n in kernel.sizes), *(x.view(Memory) for x in arrays))
        return np.concatenate(
            [x.ravel() for a, x in zip(kernel.arrays, arrays, strict=True) if "out" in a.role]
        )

    return run
