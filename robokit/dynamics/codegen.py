"""Functions of a robot as source code in other languages."""

from __future__ import annotations

import errno
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import one_of, path_argument
from robokit.dataclass_tools import frozen
from robokit.dynamics.build import Key, flat, kernel, kernel_of_own_inertias, row_of
from robokit.dynamics.choices import CHOICES, count
from robokit.dynamics.differentiate import Argument as Taken
from robokit.dynamics.layout import POSES
from robokit.dynamics.run import dtype_name
from robokit.dynamics.table import KERNELS, Algorithm
from robokit.engine.emit.ir import FLOAT32, FLOAT64, Real
from robokit.engine.kernel import Bound, Kernel
from robokit.engine.loops.c_source import c_source, comment, extern_c, header, identifier, number
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.passes.order import fused
from robokit.engine.passes.replay import evaluated
from robokit.engine.trace.graph import Program, TraceTooLarge
from robokit.errors import FunctionError, RobokitError, ShapeError, WriteError
from robokit.files import obstacle, output_path, write_texts
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot, check_robot

LANGUAGES = ("c",)

UNITS = {"v": ("rad/s", "m/s"), "a": ("rad/s^2", "m/s^2"), "tau": ("N m", "N")}
"""Units of the entries of revolute and of prismatic joints."""

CONFIGURATIONS = {
    "prismatic": "shift [m]",
    "cylindrical": "angle [rad], shift [m]",
    "planar": "angle [rad], x, y [m]",
    "spherical": "unit quaternion w x y z, to the parent's axes",
    "floating": "unit quaternion w x y z, position [m]",
}
"""What stands in q for each kind of joint; an angle for all others."""

STATES = 4  # random states that are tried for the checking program
NEVER_NEGATIVE = ("damping", "proximal")  # inputs that the public functions refuse below 0

INERTIAL = "inertial parameters of the bodies 0..N: m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz, body axes"


def codegen(
    robot: Robot, function: Any, folder: Any = ".", *, language: str = "c", dtype: Any = None, **choices: Any
) -> tuple[Path, Path, Path]:
    """Write a function of a robot as C99: a header, the source, and a program that checks them on one state.

    The source needs only math.h, keeps no state and allocates nothing. It consists of the same straight-line
    operations as the machine code. A user-defined function with loops is written with loops; it takes a
    workspace if it needs one, and returns a status if it may end early, as its header says. With a robot made
    by :meth:`Robot.with_inertias`, the inertial parameters are the last input of the code.

    Args:
        robot: the robot.
        function: name of an algorithm: "aba", "rnea", "crba", ...; with the ending "_f_ext" it takes external
            forces too, (N + 1, 6) in body coordinates. It may also be a :class:`Function`: your own, or a
            derivative.
        folder: folder for the files, created if it does not exist; files of the same names are replaced.
        language: "c".
        dtype: of all numbers, "float64" (the default) or "float32".
        choices: further arguments of this function, such as ``link="hand", axes="body"``.

    Returns:
        the paths of the header, the source and the checking program; their names are those of the robot and
        of the function, as ``arm_aba.h``, ``arm_aba.c`` and ``arm_aba_test.c``.

    Raises:
        UnknownName: no such function, language, dtype, link or axes.
        RobokitError: an argument in ``choices`` is missing or not accepted, or the function is too long for
            straight-line code.
        WriteError: the folder cannot be written to.
        SingularInertia: the function is undefined for this robot, whose mass matrix is singular.

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
    """Raise WriteError, before any work, unless files can be written to a folder, or it can be made."""
    wrong = obstacle(folder / "x") if os.path.isdir(folder) else obstacle(folder)
    if wrong is None and os.path.exists(folder) and not os.path.isdir(folder):
        wrong = errno.ENOTDIR, "it is a file; give the name of a folder"
    if wrong is not None:
        raise WriteError(f"folder: cannot write to {str(folder)!r}: {wrong[1]}", folder, wrong[0])


def write_code(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write texts by their names to a folder, all of them or none; then WriteError says why."""
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
    """The text of each file by its name; arguments and errors as in :func:`codegen`."""
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
    """The key of the kernel of a row of the table; choices that have a default may be left out.

    Raises UnknownName for no such function or value, ShapeError where a choice is missing or one too many.
    """
    called = getattr(function, "__name__", "")
    hint = f"(give its name, {called!r})" if called in KERNELS else ""
    row = KERNELS[one_of("function", function, KERNELS, hint)]
    about = row.about.split()
    for name in choices:
        if name not in about:
            takes = f"it has {', '.join(about)}" if about else "it has none"
            raise ShapeError(f"{function} has no choice {name!r}: {takes}")
    arguments = []
    for name in about:
        choice = CHOICES[name]
        value = choices.get(name, choice.default)
        if value is None:
            example = f"{name}={choice.example(robot)!r}"
            raise ShapeError(f"{function}: say which {name} it is about, for example {example}")
        arguments.append(choice.read(robot, value))
    return (row.name, *arguments) if about else row.name


def c_function(robot: Robot, key: Key, real: Any = FLOAT64) -> CFunction:
    """A kernel of the table to be written in C with a kind of real numbers; TraceTooLarge if it is too
    long.
    """
    row, made, about = row_of(key), kernel(robot, key), list(key[1:]) if isinstance(key, tuple) else []
    if robot.parameters is not None:  # an argument, as a user knows them
        made = kernel_of_own_inertias(robot, key)
    takes, shape = flat(row, robot, key).inputs, made.signature
    names: list[str] = []
    for symbol, _ in (*shape.inputs, *shape.outputs):
        names.append(identifier(symbol, names))
    said = [" ".join(x) if count(row.about, key) and x is about[0] else str(x) for x in about]
    name = identifier("_".join([robot.name, row.name, *said]))
    loops = made.with_loops(name, names)
    program = None if loops else fused(made.program())
    own: list[np.ndarray] = []
    if len(shape.inputs) > len(takes):
        own = [np.reshape(np.asarray(robot.parameters), (-1, COUNT * (robot.nbodies + 1)))[0]]
    states = ([*state, *own] for state in _states(robot, row, takes))
    numbers, results = _example(states, partial(evaluated, program) if program else _called(made), real.dtype)
    inputs: list[Argument] = []
    for k, ((symbol, size), values) in enumerate(zip(shape.inputs, numbers, strict=True)):
        if k < len(takes):
            meaning = row.input(symbol).meaning if symbol in row.inputs.split() else ""
            details = list(_entries(robot, "q" if takes[k].manifold else symbol))
            inputs.append(Argument(names[k], (size,), meaning, details, values))
        else:
            inputs.append(Argument(names[k], (size,), INERTIAL, (), values))
    outputs: list[Argument] = []
    meaning = row.result.meaning if not row.derived else ""
    for each, (_, size), values in zip(names[len(inputs) :], shape.outputs, results, strict=True):
        links = [f"{k}  {link}" for k, link in enumerate(robot.link_names if row.result is POSES else ())]
        outputs.append(Argument(each, size, meaning, links, values))
        meaning = ""
    return CFunction(name, list(_about(robot, row, said)), inputs, outputs, program, real, loops)


def _called(made: Kernel | Bound) -> Callable[..., list[list[float]]]:
    """A kernel on lists, as ``evaluated`` of a program is."""

    def run(*numbers: list[float]) -> list[list[float]]:
        found = made(*(np.array(x, made.signature.dtype) for x in numbers))
        return [np.ravel(x).tolist() for x in (found if len(made.signature.outputs) > 1 else (found,))]

    return run


def _example(
    states: Iterable[list[np.ndarray]], run: Callable[..., list[list[float]]], dtype: str
) -> tuple[list[list[float]], list[list[float]]]:
    """Inputs for the checking program, and the outputs there; FunctionError where the function runs at none.

    They are the first at which every output is finite and has an entry other than 0: zeros would compare
    nothing. Where there are none such, they are the first at which the most outputs are so.
    """
    best, found = -1, None
    problem: FunctionError | None = None
    for state in states:
        numbers = [np.asarray(x, dtype).astype(float).ravel().tolist() for x in state]
        try:
            results = run(*numbers)
        except FunctionError as error:
            problem = problem or error
            continue
        good = [any(x) and all(map(math.isfinite, x)) for x in results if len(x)]
        if sum(good) > best:
            best, found = sum(good), (numbers, results)
        if all(good):
            break
    if found is None:
        assert problem is not None
        raise problem
    return found


def _states(robot: Robot, row: Algorithm, takes: Sequence[Taken]) -> Iterator[list[np.ndarray]]:
    """Random states of a row; of a user's also with no number negative, and with whole single numbers.

    A single number may be an index or a count, and 1 and 0 are those of most functions.
    """
    for seed in range(STATES):
        state = example_state(robot, row, takes, seed)
        yield state
        free = [not each.manifold for each in takes]
        for signed in (state, [np.abs(x) if a else x for x, a in zip(state, free, strict=True)]):
            for value in (None, seed + 1.0, 0.0) if row.users else ():
                single = [a and value is not None and x.size == 1 for x, a in zip(signed, free, strict=True)]
                yield [np.array([value]) if a else x for x, a in zip(signed, single, strict=True)]


def example_state(robot: Robot, row: Algorithm, takes: Sequence[Taken], seed: int = 0) -> list[np.ndarray]:
    """Inputs of a row at a random state, of sizes that grow with the seed; matrices are those of a robot."""
    rng = np.random.default_rng(seed)
    one = robot if robot.samples is None else robot.sample(0)
    known: dict[str, Any] = {}

    def result(name: str, *inputs: Any) -> list[np.ndarray]:
        function = flat(KERNELS[name], one).function
        return [np.array(x, float) for x in function(*(list(map(float, x)) for x in inputs))]

    if row.of_dofs:
        (known["H"],) = result("crba", one.random_configuration(rng))
        known["L"], known["D"] = result("ltdl", known["H"])
    for each in takes:
        arguments = (
            one.random_configuration(rng) if each.manifold else (seed + 1.0) * rng.standard_normal(each.size)
        )
        known.setdefault(each.name, np.abs(arguments) if each.name in NEVER_NEGATIVE else arguments)
    return [known[each.name] for each in takes]


def _about(robot: Robot, row: Algorithm, about: list[str]) -> Iterator[str]:
    """What is computed, by the first line of the algorithm's docstring, and for which robot."""
    page = sys.modules[row.function.__module__].__doc__ if not row.users else row.function.__doc__
    page = (page or "a function of the user's own").strip()
    choices = "".join(f", {name} {value}" for name, value in zip(row.about.split(), about, strict=True))
    yield f"{row.name}{choices}: {page.splitlines()[0]}"
    yield ""
    coupled = ", mimic joints coupled" if robot.coupling is not None else ""
    x, y, z = robot.gravity
    yield f"Robot {robot.name}, {robot.base} base{coupled}: nq {robot.nq}, nv {robot.nv}."
    yield f"Gravity {x:g} {y:g} {z:g} m/s^2, in world axes."


def _entries(robot: Robot, kind: str) -> Iterator[str]:
    """Lines that say which entries of an input belong to which joint or body."""
    if kind == "q" or kind in UNITS:
        for joint in robot.joints:
            place = joint.q_slice if kind == "q" else joint.v_slice
            if kind == "q":
                what = CONFIGURATIONS.get(joint.kind, "angle [rad]")
            else:
                turning, sliding = UNITS[kind]
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
    elif kind == "f_ext":
        for i in range(robot.nbodies + 1):
            yield f"{6 * i}..{6 * i + 5}  {robot.body_name(i)}"


# ---- the files in C: a header, the source, and a program that checks them on one state -----------
# They say what their reader needs: what the function computes for which robot, how its arrays are laid out,
# the joints behind the entries of q and v, and units. They need nothing but a C99 compiler and math.h.

TOLERANCE = {"float64": 1e-8, "float32": 1e-2}
"""Largest error that the checking program lets pass, over the output's largest entry."""

_WIDTH = 100


@frozen
class Argument:
    """An array that the function takes or fills."""

    name: str  # an identifier of C
    shape: tuple[int, ...]  # of the array; () for one number
    meaning: str  # in a few words
    details: Sequence[str]  # more lines
    values: Sequence[float]  # of the state that the checking program runs

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@frozen
class CFunction:
    """A function to be written."""

    name: str  # of the function and of its files
    about: Sequence[str]  # what it computes, for which robot; lines
    inputs: Sequence[Argument]  # arrays that it reads
    outputs: Sequence[Argument]  # arrays that it fills
    program: Program | None  # what it computes; its inputs and outputs are these
    real: Real  # kind of its numbers
    # what it computes where it has loops whose length is known only when it runs
    loops: LoopKernel | None = None

    @property
    def kind(self) -> str:
        """Type of the numbers in C."""
        return "double" if self.real is FLOAT64 else "float"

    def macro(self, argument: Argument) -> str:
        """Name of the macro with an array's size."""
        return f"{self.name}_{argument.name}_size".upper()


def c_files(function: CFunction) -> dict[str, str]:
    """The text of each file by its name: header, source, checking program."""
    if function.loops is not None:
        arrays = (*function.inputs, *function.outputs)
        about = [*function.about, *(line for a in arrays for line in _numbering(a))]
        written = function.loops.c_source(function.real.dtype, "\n".join(about))
        return {**written, f"{function.name}_test.c": _test(function, written[f"{function.name}.h"])}
    assert function.program is not None
    source, workspace = c_source(
        function.program,
        function.name,
        [a.name for a in (*function.inputs, *function.outputs)],
        function.real,
    )
    name = function.name
    return {
        f"{name}.h": _header(function, workspace),
        f"{name}.c": f'{_head(function)}\n#include "{name}.h"\n\n#include <math.h>\n\n{source}',
        f"{name}_test.c": _test(function),
    }


def _numbering(argument: Argument) -> list[str]:
    """Lines that number the entries of an array, where its name does not say enough."""
    if not argument.details:
        return []
    return ["", f"{argument.name}: {argument.meaning}".rstrip(": "), *(f"    {x}" for x in argument.details)]


def _head(function: CFunction) -> str:
    return comment([f"{function.about[0]}", f"Written by robokit; {function.name}.h says more."])


def _header(function: CFunction, workspace: int) -> str:
    name = function.name
    lines = [
        *function.about,
        "",
        "Written by robokit. Angular first, quaternions w x y z, SI units, radians.",
    ]
    for word, arrays in (("Input", function.inputs), ("Output", function.outputs)):
        for argument in arrays:
            shape = "".join(f"[{n}]" for n in argument.shape) or "[1]"
            rows = ", row by row" if len(argument.shape) > 1 else ""
            lines += ["", f"{word} {argument.name}{shape}{rows}: {argument.meaning or 'see its docstring'}"]
            lines += [f"    {line}" for line in argument.details]
    stack = workspace * function.real.bytes
    lines += [
        "",
        "Outputs share no memory with inputs. Nothing is checked: quaternions must be of unit length and all",
        f"numbers finite. The function keeps no state and allocates nothing. It needs {stack} bytes of stack",
        "and what the compiler adds.",
        "",
        "With GCC, -std=c99 rounds each operation by itself. Fastest is, for most robots,",
        "-O3 -march=native -ffp-contract=fast -fno-tree-slp-vectorize. The check:",
        f"    cc -std=c99 -O2 {name}.c {name}_test.c -lm -o {name}_test && ./{name}_test",
    ]
    sizes = "".join(f"#define {function.macro(a)} {a.size}\n" for a in (*function.inputs, *function.outputs))
    return header(name, lines, f"{sizes}\n{extern_c(_prototype(function))}")


def _prototype(function: CFunction) -> str:
    arrays = [f"const {function.kind} *{a.name}" for a in function.inputs]
    arrays += [f"{function.kind} *{a.name}" for a in function.outputs]
    return f"void {function.name}({', '.join(arrays) or 'void'})"


_TEST = """
#include "{name}.h"

#include <math.h>
#include <stdio.h>

{stored}
/* Whether an output is as stored, to {tolerance:g} of its largest entry. */
static int right(const char *name, const {t} *got, const {t} *stored, int size)
{{
    double error = 0, largest = 0;
    int k, good = 1;
    for (k = 0; k < size; k++) {{
        if (fabs((double)stored[k]) > largest) largest = fabs((double)stored[k]);
    }}
    for (k = 0; k < size; k++) {{
        const double off = fabs((double)got[k] - (double)stored[k]);
        if (!(off <= {tolerance:g} * largest)) good = 0; /* NaN too */
        if (off > error) error = off;
    }}
    printf("%s: largest error %.3g of %.3g, %s\\n", name, error, largest, good ? "right" : "WRONG");
    return good;
}}

int main(void)
{{
{body}
}}
"""


def _test(function: CFunction, declared: str = "") -> str:
    """The program that checks the function on one state.

    ``declared`` is the header of one with loops, which may take a workspace and return a status.
    """
    t, name = function.kind, function.name
    stored = [_stored(function, f"{a.name}_given", a) for a in function.inputs]
    stored += [_stored(function, f"{a.name}_stored", a) for a in function.outputs]
    names = [f"{a.name}_given" for a in function.inputs] + [f"{a.name}_found" for a in function.outputs]
    body = ["int good = 1;"]
    body += [f"static {t} {a.name}_found[{max(a.size, 1)}];" for a in function.outputs]
    if function.loops is not None:
        room = function.loops.workspace(**{a.name: a.values for a in function.inputs})
        for kind, word, numbers in (("real", "work", t), ("integer", "whole_work", "int")):
            if f"{numbers} *{word}, int {word}_size" in declared:
                body.append(f"static {numbers} {word}[{max(room[kind], 1)}];")
                names += [word, str(max(room[kind], 1))]
    status = f"int {name}(" in declared
    body.append(f"{'good = 0 == ' if status else ''}{name}({', '.join(names)});")
    body += [
        f'good &= right("{a.name}", {a.name}_found, {a.name}_stored, {a.size});' for a in function.outputs
    ]
    body.append("return good ? 0 : 1;")
    return _head(function) + _TEST.format(
        name=name,
        stored="\n".join(stored),
        t=t,
        tolerance=TOLERANCE[function.real.dtype],
        body="\n".join(f"    {line}" for line in body),
    )


def _stored(function: CFunction, name: str, argument: Argument) -> str:
    words = ", ".join([number(x, function.real) for x in argument.values] or ["0"]) + ","
    indent = 4 * " "
    lines = textwrap.wrap(
        words, _WIDTH + 1, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    values = "\n".join(lines).removesuffix(",")
    return f"static const {function.kind} {name}[{max(argument.size, 1)}] = {{\n{values}}};\n"
