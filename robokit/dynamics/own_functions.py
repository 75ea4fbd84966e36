"""The way to functions as objects: a decorator for texts of the user's own, and robokit's own by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from robokit.arguments import check_call
from robokit.dynamics.function_objects import Function
from robokit.dynamics.own_text import SPACES, input_of, kind_of, shape_of, watched
from robokit.dynamics.table import KERNELS, Algorithm
from robokit.errors import UnknownName, WrongType

__all__ = ["function"]

INPUT_SPACES = ("q", "v", "a", "tau", "f_ext")
"""What an input may be beside a shape."""


TAKEN = ("robot", "out", "engine", "dtype", "reproducible", "device")
"""Names that inputs cannot have: arguments of every call."""


def function(
    text: Callable[..., Any] | None = None,
    *,
    inputs: Sequence[str] | Mapping[str, Any] = ("q",),
    outputs: Mapping[str, Any] | None = None,
    name: str = "",
) -> Any:
    """Decorator that compiles your own Python function for robots.

    ::

        @rk.function(inputs=("q", "v"), outputs={"p": (3,), "speed": ()})
        def hand(tree, q, v):
            ...
            return {"p": p, "speed": sqrt(u.dot(u))}

        p, speed = hand(robot, q, v)

    The function is called with the robot's tree and the inputs: q, v, a and tau by joint, as the algorithms
    take them (``q[i]`` or ``q["left_knee"]`` are the coordinates of a joint, one or several), others as flat
    lists of scalars. It may use ``+ - * / **``, with the functions of ``robokit.spatial.scalars`` (sin,
    cos, sqrt, where, ...) and ``robokit.spatial.elementary`` (exp, log, atan2, ...), or NumPy's of these
    names, with the vectors and transforms of ``robokit.spatial``, with the algorithms of
    ``robokit.algorithms`` and with other functions of this kind, ``f(tree, q, v)``. It must not branch on the
    value of a scalar: ``where``, and the loops and conditions of ``robokit.spatial.control_flow``, do that.
    It runs once for each robot, at the first call: what it reads beside its arguments (globals, closures,
    files) is read then, and all later calls and derivatives for this robot keep it. With ``engine="python"``
    it runs in every call.

    Args:
        text: the Python function.
        inputs: names; those of a state (q, v, a, tau, f_ext) mean what they do elsewhere. Or {name: what it
            is}: "q", "v", "a", "tau", "f_ext", or a shape such as (3,), () or ("nv", 3).
        outputs: {name: what it is}, a shape, or "q", "v", "a", "tau", "H", "J" for what an algorithm returns
            by joint. The function returns a dict of them, a list of them, or the only one.
        name: name of the function; by default that of the Python function.

    Returns:
        the function.

    Raises:
        WrongType: no function, inputs or outputs of a wrong type.
        ShapeError: a size that is none, or a text that does not take the tree and the inputs.
        UnknownName: a name without a meaning.

    Example:
        >>> from robokit.spatial.scalars import cos
        >>> @rk.function(inputs=("q", "v"), outputs={"height": ()})
        ... def height(tree, q, v):
        ...     (first,), (second,) = q[1], q[2]
        ...     return [-0.5 * cos(first) - 0.5 * cos(first + second)]
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> round(height(robot, [0.5, 0.2], [0, 0]), 4)
        -0.8212
        >>> height.gradient("q")(robot, [0.5, 0.2], [0, 0]).round(4)
        array([0.5618, 0.3221])
    """
    if text is None:
        return lambda text: function(text, inputs=inputs, outputs=outputs, name=name)
    if not callable(text):
        raise WrongType(
            "text", text, "a function (tree, q, ...) -> outputs", "write @rk.function(inputs=...)"
        )
    if isinstance(text, Function):
        raise WrongType("text", text, "a function (tree, q, ...) -> outputs", "it is such a function already")
    if not isinstance(outputs, Mapping) or not outputs:
        raise WrongType("outputs", outputs, "a dict {name: shape}", "for example {'p': (3,)}")
    if isinstance(inputs, str) or not isinstance(inputs, Mapping | Sequence):
        raise WrongType("inputs", inputs, "names such as ('q', 'v'), or a dict {name: shape}")
    given = inputs if isinstance(inputs, Mapping) else {each: each for each in inputs}
    for what, names in (("input", given), ("output", outputs)):
        for each in names:
            if not isinstance(each, str) or not each.isidentifier():
                raise WrongType(f"name of an {what}", each, "a name of Python")
    for each in given:
        if each in TAKEN:
            raise WrongType("name of an input", each, f"another one: a call takes {', '.join(TAKEN)} itself")
    check_call("text", text, ("tree", *given), "outputs")
    named = name or getattr(text, "__name__", "function").strip("<>")
    if given is not inputs:
        for each in given:
            if each not in INPUT_SPACES:
                raise UnknownName(
                    "input", each, INPUT_SPACES, f"(of others say the shape: inputs={{{each!r}: (3,)}})"
                )
    into = {each: shape_of(f"input {each!r}", what, INPUT_SPACES) for each, what in given.items()}
    out = {each: shape_of(f"output {each!r}", what, list(SPACES)) for each, what in outputs.items()}
    row = Algorithm(
        watched(named, text),
        " ".join(into),
        kind_of(named, text, out),
        " ".join(out),
        own={each: input_of(each, what) for each, what in into.items()},
        users=True,
        name=named,
    )
    made = Function(row, into)
    made.__doc__, made.__module__ = text.__doc__, text.__module__
    made.__qualname__ = getattr(text, "__qualname__", named)
    return made


def _of_table(name: str) -> Function:
    return functions[name]


class _Functions(Mapping[str, Function]):
    """All dynamics functions, by name."""

    def __init__(self) -> None:
        self._made: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._made:
            row = KERNELS.get(name)
            if row is None or row.of_dofs:
                raise UnknownName("function", name, list(self))
            made = Function(row, made_by=(_of_table, name))
            public = vars(sys.modules[__package__]).get(name, row.text)  # what help() shows
            made.__doc__ = public.__doc__
            self._made[name] = made
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, row in KERNELS.items() if not row.of_dofs)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<functions {', '.join(self)}>"


functions: Mapping[str, Function] = _Functions()
"""robokit's own functions as objects, by name: ``rk.functions["rnea"].derivative("q")``."""
