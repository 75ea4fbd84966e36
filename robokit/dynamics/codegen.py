"""Functions of a robot as source code in other languages."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import one_of, path_argument
from robokit.dynamics.build import Key, flat, kernel, kernel_of_own_inertias, row_of
from robokit.dynamics.c_files import Argument, CFunction, c_files
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.differentiate import Argument as Taken
from robokit.dynamics.layout import POSES
from robokit.dynamics.run import dtype_name
from robokit.dynamics.several_links import count
from robokit.dynamics.table import KERNELS, Algorithm
from robokit.engine.emit.c_source import identifier
from robokit.engine.emit.ir import FLOAT32, FLOAT64
from robokit.engine.kernel import Bound, Kernel
from robokit.engine.passes.order import fused
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import FunctionError, RobokitError, WriteError
from robokit.files import obstacle, output_path, write_texts
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot, check_robot

LANGUAGES = ("c",)

UNITS = {"v": ("rad/s", "m/s"), "a": ("rad/s^2", "m/s^2"), "tau": ("N m", "N")}
"""Of the entries that turn and of those that slide."""

CONFIGURATIONS = {
    "prismatic": "shift [m]",
    "cylindrical": "angle [rad], shift [m]",
    "planar": "angle [rad], x, y [m]",
    "spherical": "unit quaternion w x y z, to the parent's axes",
    "floating": "unit quaternion w x y z, position [m]",
}
"""What stands in q for each kind of joint; an angle for all others."""

NEVER_NEGATIVE = ("damping", "proximal")
"""Inputs that the public functions refuse below 0."""

INERTIAL = "inertial parameters of the bodies 0..N: m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz, body axes"


def codegen(
    robot: Robot,
    function: Any,
    folder: Any = ".",
    *,
    language: str = "c",
    dtype: Any = None,
    **choices: Any,
) -> tuple[Path, Path, Path]:
    """Write a function of a robot as C99: a header, the source, and a program that checks them on one state.

    The source needs only math.h, keeps no state and allocates nothing. It consists of the same straight-line
    operations as the machine code. A user-defined function with loops is written with loops; it takes a
    workspace if it needs one, and returns a status if it may end early, as its header says. With a robot made
    by :meth:`Robot.with_inertias`, the inertial parameters are the last input of the code.

    Args:
        robot: the robot.
        function: name of an algorithm: "aba", "rnea", "crba", ...; with the ending "_f_ext" it takes external
            forces too, (N + 1, 6) in body coordinates. Or a :class:`Function`: your own, or a derivative.
        folder: where the files go, made if it is missing; files of the same names are replaced.
        language: "c".
        dtype: of all numbers, "float64" (the default) or "float32".
        choices: other arguments of the function of that name: ``link="hand", axes="body"``.

    Returns:
        the paths of the header, the source and the checking program; their names are those of the robot and
        of the function, as ``arm_aba.h``, ``arm_aba.c`` and ``arm_aba_test.c``.

    Raises:
        UnknownName: no such function, language, dtype, link or axes.
        RobokitError: a choice is missing or too many, or the function is too long to be written as a straight
            line.
        WriteError: the folder cannot be written to.
        SingularInertia: the function has no answer for this robot.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> [path.name for path in rk.codegen(robot, "aba", "c_code")]
        ['double_pendulum_aba.h', 'double_pendulum_aba.c', 'double_pendulum_aba_test.c']
    """
    place = path_argument("folder", folder)
    check_folder(place)
    header, source, test = write_code(place, code_files(robot, function, language, dtype, choices))
    return header, source, test


def check_folder(folder: Path) -> None:
    """See that files can be written to a folder, or that it can be made, before any work.

    Raises:
        WriteError: they cannot.
    """
    wrong = obstacle(folder / "x") if os.path.isdir(folder) else obstacle(folder)
    if wrong is None and os.path.exists(folder) and not os.path.isdir(folder):
        wrong = errno.ENOTDIR, "it is a file; give the name of a folder"
    if wrong is not None:
        raise WriteError(f"folder: cannot write to {str(folder)!r}: {wrong[1]}", folder, wrong[0])


def write_code(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by their names to a folder, all of them or none.

    Raises:
        WriteError: the folder cannot be made, or takes no such files.
    """
    made = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(f"folder: cannot write to {str(folder)!r}: {reason}", folder, error.errno) from error
    paths = {output_path("folder", folder / name): text for name, text in texts.items()}
    try:
        write_texts(paths, encoding="ascii")
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise
    return list(paths)


def code_files(
    robot: Robot, function: Any, language: str, dtype: Any, choices: Mapping[str, Any]
) -> dict[str, str]:
    """The text of each file by its name; arguments and errors as of :func:`codegen`."""
    check_robot(robot)
    one_of("language", language, LANGUAGES)
    real = FLOAT32 if dtype is not None and dtype_name(dtype) == "float32" else FLOAT64
    own = getattr(function, "key", None)  # of a Function, which is made on top of this file
    key = own(robot, **choices) if callable(own) else function_key(robot, function, choices)
    try:
        return c_files(c_function(robot, key, real))
    except TraceTooLarge as error:
        long = f"{row_of(key).name} of robot {robot.name!r} is too long to be written without loops"
        raise RobokitError(f"{long}: {error}") from None


def function_key(robot: Robot, function: str, choices: Mapping[str, Any]) -> Key:
    """The key of a function's kernel.

    Args:
        robot: the robot.
        function: name of a row of the table.
        choices: by name; those that have a default may be left out.

    Raises:
        UnknownName: no such function, or a value that a choice does not take.
        RobokitError: a choice is missing, or the function has none of that name.
    """
    called = getattr(function, "__name__", "")
    hint = f"(give its name, {called!r})" if called in KERNELS else ""
    row = KERNELS[one_of("function", function, KERNELS, hint)]
    about = row.about.split()
    for name in choices:
        if name not in about:
            takes = f"it has {', '.join(about)}" if about else "it has none"
            raise RobokitError(f"{function} has no choice {name!r}: {takes}")
    given = []
    for name in about:
        choice = CHOICES[name]
        value = choices.get(name, choice.default)
        if value is None:
            example = f"{name}={choice.example(robot)!r}"
            raise RobokitError(f"{function}: say which {name} it is about, for example {example}")
        given.append(choice.read(robot, value))
    return (row.name, *given) if about else row.name


def c_function(robot: Robot, key: Key, real: Any = FLOAT64) -> CFunction:
    """A kernel of the table as it is to be written in C.

    Args:
        robot: the robot.
        key: of the kernel.
        real: kind of the numbers.

    Raises:
        TraceTooLarge: the text is too long.
    """
    row, made, about = row_of(key), kernel(robot, key), list(key[1:]) if isinstance(key, tuple) else []
    if robot.parameters is not None:  # an argument, as a user knows them
        made = kernel_of_own_inertias(robot, key)
    takes, shape = flat(row, robot, key).inputs, made.signature
    state = example_state(robot, row, takes)
    numbers = [np.asarray(x, real.dtype).astype(float).ravel().tolist() for x in state]
    if len(shape.inputs) > len(takes):
        one = np.reshape(np.asarray(robot.parameters), (-1, COUNT * (robot.nbodies + 1)))[0]
        numbers.append(one.astype(real.dtype).astype(float).tolist())
    inputs: list[Argument] = []
    for k, ((name, size), values) in enumerate(zip(shape.inputs, numbers, strict=True)):
        own = identifier(name, [x.name for x in inputs])
        if k < len(takes):
            meaning = row.input(name).meaning if name in row.inputs.split() else ""
            details = list(_entries(robot, "q" if takes[k].manifold else name))
            inputs.append(Argument(own, (size,), meaning, details, values))
        else:
            inputs.append(Argument(own, (size,), INERTIAL, (), values))
    outputs: list[Argument] = []
    meaning = row.result.meaning if not row.derived else ""
    names = [each.name for each in inputs]
    for symbol, _ in shape.outputs:
        names.append(identifier(symbol, names))
    said = [" ".join(x) if count(row.about, key) and x is about[0] else str(x) for x in about]
    name = identifier("_".join([robot.name, row.name, *said]))
    loops = made.with_loops(name, names)
    program = None if loops else fused(made.program())
    if program is not None:
        results = program.evaluate(*numbers)
    else:
        numbers, results = _run_somewhere(made, numbers)
        inputs = [replace(each, values=x) for each, x in zip(inputs, numbers, strict=True)]
    for (symbol, size), values in zip(shape.outputs, results, strict=True):
        own = identifier(symbol, [x.name for x in (*inputs, *outputs)])
        links = [f"{k}  {link}" for k, link in enumerate(robot.link_names if row.result is POSES else ())]
        outputs.append(Argument(own, size, meaning, links, values))
        meaning = ""
    return CFunction(name, list(_about(robot, row, said)), inputs, outputs, program, real, loops)


def _run_somewhere(
    made: Kernel | Bound, numbers: list[list[float]]
) -> tuple[list[list[float]], list[list[float]]]:
    """A state at which a function with loops runs to its end, and its outputs there.

    At a random one a number may be no index of the function's; 1 and 0 are those of most.

    Raises:
        FunctionError: there is none among these.
    """
    single = [k for k, x in enumerate(numbers) if len(x) == 1]
    for value in (None, 1.0, 0.0):
        if value is not None:
            numbers = [[value] if k in single else x for k, x in enumerate(numbers)]
        try:
            found = made(*(np.array(x, made.signature.dtype) for x in numbers))
        except FunctionError:
            if value == 0.0:
                raise
        else:
            outputs = found if len(made.signature.outputs) > 1 else (found,)
            return numbers, [np.ravel(x).tolist() for x in outputs]
    raise AssertionError


def example_state(robot: Robot, row: Algorithm, takes: Sequence[Taken]) -> list[np.ndarray]:
    """Inputs of a row at a random state; matrices are those of a robot."""
    rng = np.random.default_rng(0)
    one = robot if robot.samples is None else robot.sample(0)
    known: dict[str, Any] = {}

    def result(name: str, *inputs: Any) -> list[np.ndarray]:
        text = flat(KERNELS[name], one).text
        return [np.array(x, float) for x in text(*(list(map(float, x)) for x in inputs))]

    if row.of_dofs:
        (known["H"],) = result("crba", one.random_configuration(rng))
        known["L"], known["D"] = result("ltdl", known["H"])
    for each in takes:
        given = one.random_configuration(rng) if each.manifold else rng.standard_normal(each.size)
        known.setdefault(each.name, np.abs(given) if each.name in NEVER_NEGATIVE else given)
    return [known[each.name] for each in takes]


def _about(robot: Robot, row: Algorithm, about: list[str]) -> Iterator[str]:
    """What is computed, after the first line of the book's page, and for which robot."""
    page = sys.modules[row.text.__module__].__doc__ if not row.users else row.text.__doc__
    page = (page or "a function of the user's own").strip()
    choices = "".join(f", {name} {value}" for name, value in zip(row.about.split(), about, strict=True))
    yield f"{row.name}{choices}: {page.splitlines()[0]}"
    yield ""
    coupled = ", mimic joints coupled" if robot.coupling is not None else ""
    x, y, z = robot.gravity
    yield f"Robot {robot.name}, {robot.base} base{coupled}: nq {robot.nq}, nv {robot.nv}."
    yield f"Gravity {x:g} {y:g} {z:g} m/s^2, in world axes."


def _entries(robot: Robot, given: str) -> Iterator[str]:
    """What stands where in an input."""
    if given == "q" or given in UNITS:
        for joint in robot.joints:
            place = joint.q_slice if given == "q" else joint.v_slice
            if given == "q":
                what = CONFIGURATIONS.get(joint.kind, "angle [rad]")
            else:
                turning, sliding = UNITS[given]
                turns = [any(tuple(c.ang)) for c in robot.tree.joint[joint.body].S.columns]
                what = (
                    ", ".join(
                        f"{n} [{unit}]"
                        for n, unit in ((sum(turns), turning), (len(turns) - sum(turns), sliding))
                        if n
                    )
                    if len(turns) > 1
                    else f"[{turning if turns[0] else sliding}]"
                )
            places = f"{place.start}" if place.stop == place.start + 1 else f"{place.start}..{place.stop - 1}"
            yield f"{places}  {joint.name} ({joint.kind}): {what}"
    elif given == "f_ext":
        for i in range(robot.nbodies + 1):
            yield f"{6 * i}..{6 * i + 5}  {robot.body_name(i)}"
