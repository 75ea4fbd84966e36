"""Functions of robots as objects: the user's own, those of the table, and their derivatives.

A function is a row (table.py), robokit's or one made of a user's Python function (layout.py). From there
on both go the same way: layout, kernels, checks.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from robokit.arguments import check_call, one_of, real_array
from robokit.dynamics.build import Key, flat, kernel, parameters_for
from robokit.dynamics.choices import CHOICES, count, on_card, on_device, points
from robokit.dynamics.codegen import codegen
from robokit.dynamics.differentiate import Derivation, Flat
from robokit.dynamics.layout import (
    INPUTS,
    SPACES,
    Shape,
    input_of,
    kind_of,
    passed_values,
    shape_of,
    sized,
    watched,
)
from robokit.dynamics.other_libraries import (
    HostFunction,
    casadi_function,
    check_one_sample,
    host_function,
    jax_function,
    result_class,
    torch_function,
)
from robokit.dynamics.run import accelerations, body_forces, dtype_of, run
from robokit.dynamics.table import KERNELS, Algorithm
from robokit.engine.trace.graph import Program
from robokit.errors import FunctionError, ShapeError, UnknownName, WrongType
from robokit.model.robot import Robot, check_robot
from robokit.model.tree import Tree

__all__ = ["Function", "function"]


class Function:
    """A function of a robot's state, run as machine code: ``f(robot, q, v)``.

    One state or a batch, with ``out=``, ``engine=``, ``dtype=``, ``reproducible=`` and ``device=``, as
    :func:`rnea` takes them. It is compiled for a robot at the first call. Made by :func:`function`; robokit's
    are in :data:`functions`.

    Attributes:
        name: of the function.
        inputs: names of its inputs, in order.
        choices: names of what must be given by keyword: the link of a Jacobian.
        row: its algorithm, inputs and outputs.
        made_by: a function and the arguments from which it can be made again, for pickle.
    """

    def __init__(
        self, row: Algorithm, made_by: tuple[Any, ...], shapes: Mapping[str, Shape | str] | None = None
    ) -> None:
        """A function of a row; :func:`function` is the usual way.

        Args:
            row: of the table, or a user's.
            made_by: a function and its arguments that make this object again, a user's Python function first.
            shapes: of the inputs that are no arrays (n,) of one state.
        """
        self.made_by = made_by
        self.row, self.name, self.__name__ = row, row.name, row.name
        self.__qualname__: str = row.name
        self.inputs: tuple[str, ...] = tuple(row.inputs.split())
        for each in row.derived:
            if each.how == "hessian_vector":
                self.inputs = (*self.inputs, f"d{each.of[0]}")
        self.choices = tuple(row.about.split())
        self._shapes = dict(shapes or {})
        self._derived: dict[Derivation, Function] = {}
        spaces = {name: self._shapes.get(name, name) for name in self.inputs}
        self._special = {
            name: space
            for name, space in spaces.items()
            if space == "f_ext" or (isinstance(space, tuple) and len(space) != 1)
        }
        self._key: Key = row.name if KERNELS.get(row.name) is row else row

    def __repr__(self) -> str:
        return f"<Function {self.name}({', '.join(('robot', *self.inputs))})>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Pickled as functions are: by the name that it has in its module.

        One without such a name goes with its Python function, and so does one of the program itself. pickle
        finds that one by its name, in processes that have the program (multiprocessing's); cloudpickle takes
        it along.
        """
        made, *arguments = self.made_by
        if _named(self.__module__, self.__qualname__) is self:
            if self.__module__ != "__main__":
                return self.__qualname__
            if int(protocol) >= 4:  # earlier ones have no names with dots
                arguments[:2] = self.row.function, True
        return made, tuple(arguments)

    def __call__(
        self,
        robot: Robot,
        *arguments: Any,
        out: Any = None,
        engine: str | None = None,
        dtype: Any = None,
        reproducible: bool | None = None,
        device: Any = None,
        **named: Any,
    ) -> Any:
        """The outputs for one state or a batch.

        Args:
            robot: the robot. Inside another function: its tree; then this one's Python runs on the arguments.
            arguments: the inputs, in order, or by name: of one state, or with a leading B for a batch.
            out: an array, or one for each of several outputs, to write to.
            engine, dtype, reproducible, device: as in :func:`rnea`.
            named: inputs and choices by name.

        Returns:
            an array, a float, or a named tuple of them where there are several outputs.

        Raises:
            FunctionError: the function raised an error; the message has the line.
            ShapeError: a wrong shape or dtype.
            InvalidValue: NaN, infinity, a quaternion that is not of unit length, or an angle too large.
            TypeError: too many or too few inputs.
        """
        if robot.__class__ is Tree:
            return self._part(robot, arguments, named)
        if device is not None:
            engine = on_device(device, engine)
        key = self._key
        if named or self.choices or self._special or len(arguments) != len(self.inputs):
            check_robot(robot)
            dtype = dtype_of(dtype, out, *arguments, *(named[x] for x in self.inputs if x in named))
            key, arguments = self._bound(robot, arguments, named, engine, reproducible)
        try:
            if self.row.result.finite:
                result = accelerations(robot, key, out, engine, dtype, reproducible, *arguments)
            else:
                result = run(robot, key, out, engine, dtype, reproducible, *arguments)
        except FunctionError as error:
            raise error.with_traceback(None) from error.__cause__  # without a page of the engine's frames
        return self._named(robot, key, result) if type(result) is tuple else result

    def _part(self, tree: Tree, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The outputs of this function when it is called inside another function."""
        if self.row.derived:
            raise TypeError(
                f"{self.name} is a derivative, which cannot be called inside another function; define the "
                "whole function and differentiate that one"
            )
        flat = {name for name, space in self._shapes.items() if isinstance(space, tuple) and space}
        pairs = zip(self.inputs, arguments, strict=False)  # the function itself refuses too many or few
        values = [passed_values(x, name) if name in flat else x for name, x in pairs]
        named = {name: passed_values(x, name) if name in flat else x for name, x in named.items()}
        return self.row.function(tree, *values, *arguments[len(values) :], **named)

    def _bound(
        self,
        robot: Robot,
        positional: Sequence[Any],
        named: dict[str, Any],
        engine: str | None,
        reproducible: bool | None,
    ) -> tuple[Key, tuple[Any, ...]]:
        """The kernel's key and its arguments, flat."""
        wrong = [name for name in named if name not in self.inputs and name not in self.choices]
        if wrong:
            raise TypeError(
                f"{self.name} has no input {wrong[0]!r}; it takes {', '.join((*self.inputs, *self.choices))}"
            )
        key = self.key(robot, **{name: named[name] for name in self.choices if name in named})
        values = dict(zip(self.inputs, positional, strict=False))
        twice = [name for name in values if name in named]
        values |= {name: named[name] for name in named if name in self.inputs}
        if twice or len(positional) > len(self.inputs) or len(values) < len(self.inputs):
            raise TypeError(
                f"{self.name} takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), got "
                f"{len(positional)}" + (f" and {', '.join(named)} by name" if named else "")
            )
        arguments, several = [], count(self.row.about, key)
        for name in self.inputs:
            space = self._special.get(name)
            if isinstance(space, tuple):
                arguments.append(_row(name, values[name], sized(space, robot)))
            elif space == "f_ext":
                arguments.append(body_forces(robot, values["q"], values[name], engine, reproducible))
            elif several and name in INPUTS and INPUTS[name].each_link:
                arguments.append(points(values[name], several))
            else:
                arguments.append(values[name])
        return key, tuple(arguments)

    def _named(self, robot: Robot, key: Key, result: tuple[Any, ...]) -> Any:
        names = tuple(name for name, _ in kernel(robot, key).signature.outputs)
        return result_class(self.name, names)(*result)

    # -- derivatives -----------------------------------------------------------------------------

    def derivative(self, *of: str) -> Function:
        """The derivatives of all outputs with respect to some inputs, by forward mode on the recorded graph.

        With respect to a configuration they are taken along ``robot.integrate(q, eps e_k)``, so that there
        are nv of them. The output ``tau`` has the derivative ``dtau_dq``, of its shape with one axis more: nv
        long for a configuration, one for a number, nine, row by row, for an input of shape (3, 3).

        Args:
            of: names of inputs.

        Returns:
            a function of the same inputs.

        Raises:
            UnknownName: no such input.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> rk.functions["crba"].derivative("q")(robot, [0.5, 0.2]).shape
            (2, 2, 2)
        """
        return self._derive("derivative", of)

    def gradient(self, *of: str) -> Function:
        """As :meth:`derivative`, of outputs that are numbers, by reverse mode: at the cost of a few values.

        Raises:
            UnknownName: no such input.
            ShapeError: an output is no number (at the first call, if it takes the robot to tell).

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> slope = rk.functions["potential_energy"].gradient("q")
            >>> np.allclose(slope(robot, [0.5, 0.2]), rk.gravity_forces(robot, [0.5, 0.2]))
            True
        """
        return self._derive("gradient", of)

    def hessian_vector(self, of: str) -> Function:
        """H(x) dx, the second derivative of outputs that are numbers, along a direction dx.

        The direction is one more input, the last: ``dq`` for ``q``. For a configuration H is the second
        derivative of f(robot.integrate(q, dq)) where dq is 0, which is symmetric.

        Args:
            of: name of an input.

        Raises:
            UnknownName: no such input.
            ShapeError: an output is no number (at the first call, if it takes the robot to tell).

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> curvature = rk.functions["potential_energy"].hessian_vector("q")
            >>> stiffness, _ = rk.rnea_derivatives(robot, [0.5, 0.2], [0, 0], [0, 0])
            >>> np.allclose(curvature(robot, [0.5, 0.2], [1.0, 0.0]), stiffness[:, 0])
            True
        """
        return self._derive("hessian_vector", (of,))

    def _derive(self, how: str, of: Sequence[str]) -> Function:
        if not of:
            raise TypeError(f"{how}: give the names of inputs of {self.name!r}: {', '.join(self.inputs)}")
        for name in of:
            one_of("input", name, self.inputs)
        if len(set(of)) < len(of):
            raise TypeError(f"{how}: {', '.join(of)}: give each input once")
        if how == "hessian_vector" and f"d{of[0]}" in self.inputs:
            raise TypeError(
                f"{how}: the direction is called 'd{of[0]}', as an input of {self.name!r} is; rename that one"
            )
        derivation = Derivation(how, tuple(of))
        if derivation not in self._derived:
            row = replace(
                self.row,
                name=f"{self.name}_{how}_{'_'.join(of)}",
                growth="",
                derived=(*self.row.derived, derivation),
            )
            self._derived[derivation] = Function(row, (_derivative, self, how, *of), self._shapes)
        return self._derived[derivation]

    # -- for those who take it elsewhere ---------------------------------------------------------

    def key(self, robot: Robot, **choices: Any) -> Key:
        """Key of its kernels, for :func:`robokit.dynamics.build.kernel`."""
        wrong = [name for name in choices if name not in self.choices]
        if wrong:
            takes = f"it has {', '.join(self.choices)}" if self.choices else "it has none"
            raise TypeError(f"{self.name} has no choice {wrong[0]!r}: {takes}")
        arguments = []
        for name in self.choices:
            value = choices.get(name, CHOICES[name].default)
            if value is None:
                raise TypeError(f"{self.name} needs {name}=..., by name")
            arguments.append(CHOICES[name].read(robot, value))
        return (self._key, *arguments) if arguments else self._key

    def flat(self, robot: Robot, **choices: Any) -> Flat:
        """Its Python function on flat arrays for a robot, with the names and sizes of inputs and outputs."""
        check_robot(robot)
        return flat(self.row, robot, self.key(robot, **choices))

    def program(self, robot: Robot, **choices: Any) -> Program:
        """The recorded graph for a robot."""
        check_robot(robot)
        program: Program = kernel(robot, self.key(robot, **choices)).program()
        return program

    # -- in other languages and libraries ---------------------------------------------------------

    def codegen(
        self, robot: Robot, folder: Any = ".", *, dtype: Any = None, **choices: Any
    ) -> tuple[Path, Path, Path]:
        """Write it as C99: see :func:`robokit.codegen`.

        Args:
            robot: the robot.
            folder, dtype: as in :func:`robokit.codegen`.
            choices: what it is about, by name.

        Returns:
            the paths of the header, the source and the checking program.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> [path.name for path in rk.functions["crba"].codegen(robot, "c_code")]
            ['double_pendulum_crba.h', 'double_pendulum_crba.c', 'double_pendulum_crba_test.c']
        """
        return codegen(robot, self, folder, dtype=dtype, **choices)

    def to_casadi(self, robot: Robot, **choices: Any) -> Any:
        """The operations as a ``casadi.Function`` of named inputs and outputs; CasADi differentiates them.

        Arrays of more than two axes become matrices of their last one. Quaternions are taken to be unit.

        Args:
            robot: the robot.
            choices: what it is about, by name.

        Raises:
            MissingDependency: CasADi is not installed.
            RobokitError: the robot has samples of inertias.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> crba = rk.functions["crba"].to_casadi(robot)
            >>> np.allclose(np.array(crba([0.5, 0.2])), rk.crba(robot, [0.5, 0.2]))
            True
        """
        check_robot(robot)
        check_one_sample(robot)
        made = self.flat(robot, **choices)
        shapes = [self._shape(robot, name, size) for name, size in made.sizes]
        own = robot.parameters is not None and self.row.inertial  # numbers, as the machine code takes them
        numbers = parameters_for(self.row, robot).tolist() if own else ()
        return casadi_function(self.name, made, self.program(robot, **choices), shapes, numbers)

    def to_jax(self, robot: Robot, *, mode: str = "reverse", **choices: Any) -> Callable[..., Any]:
        """A function of JAX arrays of one state, for ``jax.jit``, ``jax.vmap`` (batches) and ``jax.grad``.

        It calls the machine code on the processor, in double precision; where JAX computes on a graphics card
        (:doc:`/gpu`) it runs there, inside the compiled program, in float32 or float64 as its arrays are. Its
        derivative is robokit's, of any order. By coordinates of a quaternion it is that of the function of
        the quaternion made unit.

        Args:
            robot: the robot.
            mode: "reverse" for ``jax.grad``, ``jax.vjp`` and ``jax.jacrev``, "forward" for ``jax.jvp`` and
                ``jax.jacfwd``.
            choices: what it is about, by name.

        Raises:
            MissingDependency: JAX is not installed.
            ShapeError: at a call: another shape, or JAX's double precision is off.
            TypeError: in ``jax.jvp``, ``jax.jacfwd`` or ``jax.hessian``, of a function of the mode "reverse".

        Example:
            >>> import jax
            >>> jax.config.update("jax_enable_x64", True)
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> height = rk.functions["potential_energy"].to_jax(robot)
            >>> np.allclose(jax.grad(height)(np.array([0.5, 0.2])), rk.gravity_forces(robot, [0.5, 0.2]))
            True
        """
        return jax_function(self.name, self._host(robot, choices), mode)

    def to_torch(self, robot: Robot, **choices: Any) -> Callable[..., Any]:
        """A function of PyTorch tensors of float64, of one state or with any leading axes, for autograd.

        It calls the machine code on the processor; tensors on a graphics card (:doc:`/gpu`), of float32 too,
        are computed there. Its derivative is robokit's, of any order; quaternions as in :meth:`to_jax`.

        Args:
            robot: the robot.
            choices: what it is about, by name.

        Raises:
            MissingDependency: PyTorch is not installed.
            ShapeError: at a call: another shape, or tensors of another dtype.

        Example:
            >>> import torch
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> q = torch.tensor([0.5, 0.2], dtype=torch.float64, requires_grad=True)
            >>> rk.functions["potential_energy"].to_torch(robot)(q).backward()
            >>> np.allclose(q.grad, rk.gravity_forces(robot, [0.5, 0.2]))
            True
        """
        return torch_function(self.name, self._host(robot, choices))

    def _host(self, robot: Robot, choices: dict[str, Any]) -> HostFunction:
        made = self.flat(robot, **choices)
        shapes = {name: self._shape(robot, name, size) for name, size in made.sizes}
        return host_function(robot, self.key(robot, **choices), shapes)

    def _shape(self, robot: Robot, name: str, size: int) -> tuple[int, ...]:
        """Shape of an input of one state."""
        space = self._special.get(name)
        if space == "f_ext":
            return (robot.nbodies + 1, 6)
        return sized(space, robot) if isinstance(space, tuple) else (size,)


PYTHON_OF = ".row.function"  # what leads from the name of a Function to its Python function, in a pickle


def _of_text(text: Callable[..., Any], watched: bool, *arguments: Any) -> Function:
    """The Function of a Python function, which was found by its name or came along; the one there, if any.

    Recipes of sweeps have this name.
    """
    name = text.__qualname__.removesuffix(PYTHON_OF) if watched else ""
    there = _named(text.__module__, name)
    if isinstance(there, Function) and there.row.function is text:
        return there
    inputs, outputs, name = arguments
    text = vars(text)["__wrapped__"] if watched else text
    made: Function = function(text, inputs=inputs, outputs=outputs, name=name)
    return made


def _named(module: str, name: str) -> Any:
    """What has this name in a module; None where nothing has."""
    try:
        return attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


def _derivative(function: Function, how: str, *of: str) -> Function:
    made: Function = getattr(function, how)(*of)
    return made


def _row(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """An input of one state or a batch as (n,) or (B, n)."""
    there = on_card(value)
    array = value if there else real_array(name, value, f"{shape} or {('B', *shape)}".replace("'", ""))
    lead = array.ndim - len(shape)
    if lead not in (0, 1) or tuple(array.shape[lead:]) != shape:
        raise ShapeError(f"{name}: expected shape {shape} or a batch of them, got {tuple(array.shape)}")
    if there:
        return array.reshape(*array.shape[:lead], math.prod(shape))
    return np.ascontiguousarray(array).reshape(*array.shape[:lead], math.prod(shape))


# ---- the way to them: a decorator for functions of the user's own, and robokit's own by name -------

INPUT_SPACES = ("q", "v", "a", "tau", "f_ext")  # what an input may be beside a shape


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

    It runs once for each robot, at the first call. Globals, closures and files are read then, and all later
    calls and derivatives for this robot use these values. With ``engine="python"`` it runs in every call.

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
        ShapeError: a size that is none, or a function that does not take the tree and the inputs in order.
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
    arguments = inputs if isinstance(inputs, Mapping) else {each: each for each in inputs}
    for what, names in (("input", arguments), ("output", outputs)):
        for each in names:
            if not isinstance(each, str) or not each.isidentifier():
                raise WrongType(f"name of an {what}", each, "a name of Python")
    for each in arguments:
        if each in TAKEN:
            raise WrongType("name of an input", each, f"another one: a call takes {', '.join(TAKEN)} itself")
    check_call("text", text, ("tree", *arguments), "outputs")
    _check_order(text, [*arguments])
    named = name or getattr(text, "__name__", "function").strip("<>")
    if arguments is not inputs:
        for each in arguments:
            if each not in INPUT_SPACES:
                raise UnknownName(
                    "input", each, INPUT_SPACES, f"(of others say the shape: inputs={{{each!r}: (3,)}})"
                )
    into = {each: shape_of(f"input {each!r}", what, INPUT_SPACES) for each, what in arguments.items()}
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
    again = dict(arguments) if arguments is inputs else tuple(arguments)
    made = Function(row, (_of_text, text, False, again, dict(outputs), name), into)
    made.__doc__, made.__module__ = text.__doc__, text.__module__
    made.__qualname__ = getattr(text, "__qualname__", named)
    row.function.__qualname__ = made.__qualname__ + PYTHON_OF
    return made


def _check_order(text: Callable[..., Any], inputs: list[str]) -> None:
    """Refuse parameters that have the names of the inputs in another order: inputs are passed by position."""
    try:
        taken = [*inspect.signature(text).parameters][1:]
    except (TypeError, ValueError):  # some functions of C do not say
        return
    if taken != inputs and sorted(taken) == sorted(inputs):
        raise ShapeError(
            f"text: expected parameters in the order of inputs, (tree, {', '.join(inputs)}), got "
            f"(tree, {', '.join(taken)}); inputs are passed by position"
        )


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
            made = Function(row, (_of_table, name))
            public = vars(sys.modules[__package__]).get(name, row.function)  # what help() shows
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
