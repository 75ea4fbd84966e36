"""Texts and random expression graphs that the engine's tests share."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.memory import address
from robokit.spatial.control_flow import call, cond
from robokit.spatial.scalars import cos, maximum, minimum, sin, sqrt, where

Build = Callable[[list[Any]], Any]


def guard(condition: Any, function: Callable[[], Any], *fallbacks: Any) -> list[Any]:
    """A condition whose other branch computes nothing."""
    return list(cond(condition, function, lambda: fallbacks))


def called_often(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """A function that is recorded once, however often it is taken, where a test sets blocks.LONG to 0."""
    return list(call(function, *arguments))


_BINARY = [operator.add, operator.sub, operator.mul, maximum, minimum]
_UNARY = [operator.neg, abs, sin, cos, lambda x: sqrt(x * x + 1.0), lambda x: 1.0 / (x * x + 0.5)]
# Continuous, so that a comparison of two roundings of one number may fall either way.
_CHOICES = [
    lambda a, b: where(a < b, a * 2.0 + b, b * 2.0 + a),
    lambda a, b: where((a <= b) & (b > 0.5), (b - a) * (b - 0.5), 0.0),
    lambda a, b: where((a != b) | (a < 0.25), b - a, 0.0),
]


@st.composite
def recipes(draw: Any, inputs: int, steps: int) -> list[tuple[int, int, int]]:
    """A list of (operation, operand, operand): a random straight line."""
    kinds = len(_BINARY) + len(_UNARY) + len(_CHOICES) + 2
    line = []
    for k in range(draw(st.integers(1, steps))):
        operand = st.integers(0, inputs + k - 1)
        line.append((draw(st.integers(0, kinds - 1)), draw(operand), draw(operand)))
    return line


def follow(recipe: list[tuple[int, int, int]], inputs: list[Any]) -> list[Any]:
    """Every value of the line, on any scalars; kept near 1 so that rounding stays comparable."""
    values = list(inputs)
    for kind, i, j in recipe:
        a, b = values[i], values[j]
        if kind < len(_BINARY):
            x = _BINARY[kind](a, b)
        elif kind < len(_BINARY) + len(_UNARY):
            x = _UNARY[kind - len(_BINARY)](a)
        elif kind < len(_BINARY) + len(_UNARY) + len(_CHOICES):
            x = _CHOICES[kind - len(_BINARY) - len(_UNARY)](a, b)
        else:
            x = (0.0, 1.0)[kind - len(_BINARY) - len(_UNARY) - len(_CHOICES)]
        values.append(x * 0.5)
    return values


def chain(
    n: int,
) -> tuple[Callable[..., list[list[Any]]], list[tuple[str, int]], list[tuple[str, tuple[int, ...]]]]:
    """Positions and speeds along a planar chain of n links, and a symmetric matrix with zeros."""

    def function(q: list[Any], v: list[Any]) -> list[list[Any]]:
        angle: Any = 0.0
        x: Any = 0.0
        y: Any = 0.0
        speed: Any = 0.0
        out = []
        for k in range(n):
            angle, speed = angle + q[k], speed + v[k]
            x, y = x + (0.5 + 0.1 * k) * cos(angle), y + (0.5 + 0.1 * k) * sin(angle)
            out.append(x * speed - y * sin(q[k]) / (1.5 + cos(q[k])))
        matrix: list[Any] = [0.0] * (n * n)
        for i in range(n):
            for j in range(i + 1):
                if (i + j) % 3:
                    matrix[i * n + j] = matrix[j * n + i] = out[i] * out[j]
        return [out, matrix, [x * x + y * y]]

    return function, [("q", n), ("v", n)], [("x", (n,)), ("M", (n, n)), ("r", ())]


def states(rng: np.random.Generator, sizes: list[int], rows: int | None) -> list[np.ndarray]:
    return [rng.uniform(-2.0, 2.0, (n,) if rows is None else (rows, n)) for n in sizes]


def close(a: float, b: float, scale: float = 1.0) -> bool:
    return math.isclose(a, b, rel_tol=1e-11, abs_tol=1e-12 * scale)


def steps(kernel: LoopKernel, sizes: dict[str, int], arrays: list[np.ndarray], count: int) -> int:
    """Run a kernel again and again in machine code, in place; how often it ran while all stayed finite."""
    environment = kernel.environment(sizes, "float64")
    driver = kernel.driver("single", "float64")
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(driver)
    places = np.array([address(x) for x in arrays], np.uint64)
    done = run(address(places), address(environment), count)
    kernel.looked_at(environment)
    return done
