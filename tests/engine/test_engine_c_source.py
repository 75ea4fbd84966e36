"""C: every operation, constants and cuts give what the recorded graph gives, to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from c_compiler import caller, compiled
from engine_cases import chain, follow, guard

from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.loops import c_source
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.record import trace
from robokit.spatial.scalars import cos, floor, sin, sqrt, where


def everything(x):
    """All operations, constants of every kind, outputs that are inputs or constants."""
    a, b, c = x
    truth = (a < b) & ~(b == c) | (c <= 0.25)
    (guarded,) = guard(a > b, lambda: [sqrt(abs(a)) / 3.0], 0.125)
    within = guard(a > b, lambda: [guard(a * c < b, lambda: [sin(a + c)], 0.0)[0] + 1.0, a * b], 0.0, 0.0)
    # once more under both conditions, after what depends on the first time
    within += guard(a > b, lambda: guard(a * c < b, lambda: [cos(within[0] * c)], 0.0), 0.0)
    values = [a * b, a + b, a - c, a / b, sqrt(a), sin(a), cos(a), abs(a), floor(a)]
    values += [where(truth, a, b), guarded, *within, sin(-b) * -2.5, a * 1e-300, c * 1e300, 1.0 / (c - a)]
    values += [-a, c, 4.0, -0.5, math.inf, -math.inf, math.nan]
    values += [x * 0.1 for x in follow([(k, 0, 1) for k in range(16)], [a, b, c])]
    return [values, [b]]


def text_of(monkeypatch, size, real):
    monkeypatch.setattr(c_source, "SIZE", size)
    count = len(everything([1.0, 2.0, 3.0])[0])
    program = trace(everything, [("x", 3)], [("y", (count,)), ("z", ())])
    return program, c_source.c_source(program, "f", ["x", "y", "z"], real)[0]


@pytest.mark.parametrize("size", [4, 500])
def test_every_operation_is_exact(monkeypatch, tmp_path, size):
    program, text = text_of(monkeypatch, size, FLOAT64)
    assert ("f_3(" in text) is (size == 4)
    source = tmp_path / "f.c"
    source.write_text(f"void f(const double *, double *, double *);\n#include <math.h>\n{text}")
    call = caller(compiled(tmp_path, [source]), "f")
    some = (-2.5, 0.0, 0.25, 1.0, 3.0, 1e200, math.nan)
    with np.errstate(all="ignore"):
        for x in ([a, b, c] for a in some for b in some for c in some):
            y, z = call([x], [(len(program.results[0]),), ()])
            expected = evaluated(program, x)
            np.testing.assert_array_equal(y, expected[0], err_msg=str(x))
            np.testing.assert_array_equal(z, expected[1][0])


def test_single_precision_calls_the_functions_of_single_precision(monkeypatch, tmp_path):
    program, text = text_of(monkeypatch, 500, FLOAT32)
    assert "sinf(" in text and "sqrtf(" in text and "double" not in text and "INFINITY" in text
    source = tmp_path / "f.c"
    source.write_text(f"void f(const float *, float *, float *);\n#include <math.h>\n{text}")
    y, z = caller(compiled(tmp_path, [source], "-Wdouble-promotion"), "f", "float32")(
        [[0.7, -1.25, 0.5]], [(len(program.results[0]),), ()]
    )
    expected = evaluated(program, [0.7, -1.25, 0.5])
    finite = np.abs(expected[0]) < 1e30
    np.testing.assert_allclose(y[finite], np.array(expected[0])[finite], rtol=1e-5, atol=1e-6)
    assert z == -1.25


def test_what_crosses_a_cut_arrives(monkeypatch, tmp_path):
    monkeypatch.setattr(c_source, "SIZE", 25)
    function, inputs, outputs = chain(9)
    program = trace(function, inputs, outputs)
    written, workspace = c_source.c_source(program, "f", ["q", "v", "x", "M", "r"])
    assert written.count("static APART") > 10 and 0 < workspace < len(program.order) // 2
    source = tmp_path / "f.c"
    head = "void f(const double *, const double *, double *, double *, double *);\n#include <math.h>\n"
    source.write_text(head + written)
    rng = np.random.default_rng(0)
    call = caller(compiled(tmp_path, [source]), "f")
    for _ in range(20):
        q, v = rng.standard_normal((2, 9))
        for got, expected in zip(
            call([q, v], [s for _, s in outputs]), evaluated(program, q, v), strict=True
        ):
            np.testing.assert_array_equal(np.ravel(got), expected)


@pytest.mark.parametrize("value", [0.1, -1e-310, 5e-324, 1.7976931348623157e308, 2.0**60, -0.0, 1 / 3])
def test_constants_are_read_back_as_they_were(value):
    assert float(c_source.number(value).strip("()")) == value
    assert math.copysign(1.0, float(c_source.number(value).strip("()"))) == math.copysign(1.0, value)
    single = c_source.number(value, FLOAT32).strip("()")
    assert single == "INFINITY" or np.float32(single.removesuffix("f")) == np.float32(value)
