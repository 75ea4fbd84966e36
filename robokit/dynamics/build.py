"""Kernels of a robot: the functions of the table with their flat arrays, built at the first call.

The engine sees only the resulting function, the sizes of its inputs and a key; it knows no robots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.conventions import LARGEST_ANGLE
from robokit.dynamics.choices import CHOICES, count, link_by_link
from robokit.dynamics.differentiate import Argument, Flat
from robokit.dynamics.layout import Scalars, one_by_one
from robokit.dynamics.singular import check_inertia, check_mass
from robokit.dynamics.table import KERNELS, Algorithm
from robokit.engine import Bound, Kernel
from robokit.engine.backend.llvm import CompilerMissing
from robokit.engine.loops.recorded_once import RecordedOnce
from robokit.engine.maker import Identity
from robokit.engine.reproducible import wanted
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import DeviceError, ModelError
from robokit.model.inertial_parameters import COUNT, inertias
from robokit.model.inertial_parameters import row as ten_scalars
from robokit.model.regrouping import placements, regrouped, shifts, similar_inputs, slid, sparse
from robokit.model.robot import Robot, quaternion_offsets
from robokit.model.tree import Tree

Key = str | Algorithm | tuple[Any, ...]
"""Name of a kernel, or its row; with choices, if it has any: ("link_jacobian", "hand", "world").

In place of a link there may be a tuple of them.
"""


def kernel(
    robot: Robot, key: Key, dtype: str = "float64", reproducible: bool | None = None
) -> Kernel | Bound:
    """The robot's kernel of a key, built at the first call; ``reproducible`` as in :class:`Kernel`.

    Raises SingularInertia for a robot that has no answer in any configuration, UnknownName for a link or
    axes.
    """
    place: Any = key if dtype == "float64" else (key, dtype)
    if reproducible is not None:
        place = place, wanted(reproducible)
    found = robot.kernels.get(place)
    if found is None:
        row = row_of(key)
        if row.result.finite and not row.own_check:
            check_inertia(robot)
        if row.massive:
            check_mass(robot)
        if robot.parameters is None:
            found = _build(key, row, robot, flat(row, robot, key), robot.fingerprint, dtype, reproducible)
        else:
            found = _shared(key, row, robot, dtype, reproducible)
            if row.inertial:
                found = Bound(found, parameters_for(row, robot))
        found = robot.kernels.setdefault(place, found)  # another thread may have come first
    return found


def kernel_of_own_inertias(robot: Robot, key: Key) -> Kernel:
    """The kernel whose function gets the bodies' own inertias, not regrouped ones: to count operations."""
    row = replace(row_of(key), sums="")
    if robot.parameters is None or not row.inertial:
        return _build(key, row, robot, flat(row, robot, key), None)
    bare = without_inertias(robot)
    return _build(key, row, bare, flat(row, bare, key, parameters=True), None)


def row_of(key: Key) -> Algorithm:
    """The row of a kernel."""
    first = key[0] if isinstance(key, tuple) else key
    return first if isinstance(first, Algorithm) else KERNELS[first]


def flat(row: Algorithm, robot: Robot, key: Key = "", parameters: bool = False) -> Flat:
    """A row, of the table or a user's, for a robot on flat arrays: its function, inputs and outputs.

    Args:
        key: of the kernel, for the choices of an algorithm about a link.
        parameters: whether the inertial parameters of all bodies are one more input, the last; then the robot
            has none.

    Raises ModelError if the row is about floating bases, and the robot's is fixed.
    """
    if row.floating and robot.base != "floating":
        raise ModelError(
            f"{row.name}: robot {robot.name!r} has a fixed base, which nothing accelerates; load it with "
            "base='floating', or take rnea for its joint forces"
        )
    made = _written(row, robot, key, parameters)
    for derivation in row.derived:
        made = derivation(robot, row.name, made)
    return made


def _written(row: Algorithm, robot: Robot, key: Key, parameters: bool) -> Flat:
    """As :func:`flat`, without the derivatives."""
    function = _row_function(row, robot, key)
    links = count(row.about, key)
    inputs = []
    for name in row.inputs.split():
        each = row.input(name)
        times = links if each.each_link and links else 1
        inputs.append(Argument(name, times * each.size(robot), each.manifold))
    if parameters:

        def function(*arguments: Scalars) -> list[Scalars]:
            *others, numbers = arguments
            return _row_function(row, robot, key, tree_of_parameters(row, robot, numbers))(*others)

        inputs.append(Argument("inertial_parameters", COUNT * (robot.nbodies + 1)))
    about = chosen(row, robot, key) if row.result.of_choices else []
    alone = row.result.shapes(robot, *about)
    shapes = zip(row.symbols.split(), [(links, *s) for s in alone] if links else alone, strict=True)
    made = Flat(function, tuple(inputs), tuple(shapes), int(parameters))
    if not row.users:
        return made
    # The function of a user for a robot, always the same; it is a function of numbers.
    shared = made.constants > 0  # by all robots that differ in their inertias
    kept = robot.kernels_of_all_inertias() if shared else robot.kernels
    place = "recorded once", row.function, shared
    if place not in kept:
        kept.setdefault(place, RecordedOnce(one_by_one(made.function), made.sizes, made.outputs))
    once: RecordedOnce = kept[place]
    return replace(made, function=once, looped=once.looped)


def recorded_key(row: Algorithm, robot: Robot, parameters: bool = False) -> bytes:
    """What a user's function is on a robot, b"" for one of robokit's own; TraceTooLarge beyond the budget."""
    function = _written(row, robot, "", parameters).function
    return function.digest if isinstance(function, RecordedOnce) else b""


def flat_function(row: Algorithm, robot: Robot, key: Key = "") -> Callable[..., list[Scalars]]:
    """The function of a row on flat arrays: one sequence of scalars an input -> one an output.

    Args:
        row, robot, key: as in :func:`flat`.
    """
    return flat(row, robot, key).function


def _row_function(
    row: Algorithm, robot: Robot, key: Key, tree: Tree | None = None
) -> Callable[..., list[Scalars]]:
    """The flat function of the row itself, without the derivatives; ``tree`` replaces the function's."""
    names = row.inputs.split()
    choices = chosen(row, robot, key)
    coupled = robot.coupling is not None
    function = row.coupled if coupled and row.coupled else row.function

    def run(*values: Scalars) -> list[Scalars]:
        if count(row.about, key):
            *state, at = values
            frames, *rest = choices
            return [link_by_link(lambda x, frame: one((frame, *rest), *state, x)[0], at, frames)]
        return one(choices, *values)

    def one(choices: Sequence[Any], *values: Scalars) -> list[Scalars]:
        first: Any = robot.dof_parent if row.of_dofs else tree or tree_for(row, robot)
        arguments = [row.input(name).split(robot, x) for name, x in zip(names, values, strict=True)]
        place = len(arguments) - (names[-1:] == ["f_ext"])  # choices come before forces from outside
        result = function(first, *arguments[:place], *choices, *arguments[place:])
        if coupled and row.result.reduced is not None:
            result = row.result.reduced(robot.tree, result)
        return row.result.flat(robot, result)

    return run


def sizes(row: Algorithm, robot: Robot) -> list[tuple[str, int]]:
    """(name, number of scalars) of each input."""
    return flat(row, robot, example_key(row, robot)).sizes


def outputs(row: Algorithm, robot: Robot, key: Key = "") -> list[tuple[str, tuple[int, ...]]]:
    """(symbol, shape) of each output."""
    return list(flat(row, robot, key or example_key(row, robot)).outputs)


def chosen(row: Algorithm, robot: Robot, key: Key) -> list[Any]:
    """What a key's choices are to a row's function."""
    arguments = key[1:] if isinstance(key, tuple) else ()
    return [CHOICES[n].value_of(robot, x) for n, x in zip(row.about.split(), arguments, strict=True)]


def example_key(row: Algorithm, robot: Robot) -> Key:
    """The key of one of a row's kernels, for tables of costs and for tests."""
    about = [CHOICES[choice].example(robot) for choice in row.about.split()]
    return (row.name, *about) if about else row.name


def angle_bounds(robot: Robot) -> list[tuple[int, float]]:
    """(place, largest magnitude [rad]) of each angle in q; no joint that follows it turns further."""
    most: dict[int, float] = {}
    for i, joint in enumerate(robot.tree.joint):
        if joint.kind.angle:
            place, factor, offset = robot.tree.q_slice[i].start, 1.0, 0.0
            if robot.coupling is not None:
                place, factor, offset = robot.coupling.q_from[place]
            if place >= 0 and factor and abs(offset) < LARGEST_ANGLE:
                bound = (LARGEST_ANGLE - abs(offset)) / abs(factor)
                most[place] = min(bound, most.get(place, bound))
    return sorted(most.items())


def _shared(key: Key, row: Algorithm, robot: Robot, dtype: str, reproducible: bool | None) -> Kernel:
    """The kernel that serves all robots of this tree, whatever their inertias."""
    shared, place = robot.kernels_of_all_inertias(), (key, dtype, reproducible)
    found = shared.get(place)
    if found is None:
        bare = without_inertias(robot)
        code_key = robot.fingerprint_without_inertias + b"inertial parameters"
        found = _build(key, row, bare, flat(row, bare, key, row.inertial), code_key, dtype, reproducible)
        found = shared.setdefault(place, found)
    return found


def without_inertias(robot: Robot) -> Robot:
    """What the function of a shared kernel keeps of a robot: not the samples, which it would keep alive."""
    links = [replace(link, mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3))) for link in robot.links]
    return replace(robot, tree=replace(robot.tree, I=()), links=tuple(links), parameters=None)


def _build(
    key: Key,
    row: Algorithm,
    robot: Robot,
    made: Flat,
    code_key: bytes | None,
    dtype: str = "float64",
    reproducible: bool | None = None,
) -> Kernel:
    identity: Identity = None
    if code_key is not None:
        arguments = key[1:] if isinstance(key, tuple) else ()
        about = repr([CHOICES[n].key(robot, x) for n, x in zip(row.about.split(), arguments, strict=True)])
        derived = repr(row.derived) if row.derived else ""
        known = code_key + (about + derived).encode()
        identity = known
        if row.users:
            constants = made.constants > 0
            identity = lambda: known + recorded_key(row, robot, constants)  # noqa: E731
    manifolds = [k for k, each in enumerate(made.inputs) if each.manifold]
    kinds = [True if each.manifold else False if each.size == robot.nv else None for each in made.inputs]
    return Kernel(
        row.name,
        inputs=made.sizes,
        outputs=made.outputs,
        function=made.function,
        key=identity,
        quaternions=[(i, k) for i in manifolds for k in quaternion_offsets(robot)],
        finite=row.result.finite,
        dtype=dtype,
        bounds=[(i, k, most) for i in manifolds for k, most in angle_bounds(robot)],
        reproducible=reproducible,
        superword_seeds=similar_inputs(robot, kinds),
        looped=made.looped,
    )


def code_on_card(robot: Robot, own: Any, card: Any, rows: int | None = None) -> Any:
    """The code of a kernel on a card, ready for so many states; DeviceError if it cannot be made."""
    try:
        code = own.on_card(card)
        code.ready(rows)
    except (CompilerMissing, TraceTooLarge) as error:
        raise DeviceError(
            f'{own.name} of robot {robot.name!r} has no code for a card ({error}); use device="cpu"'
        ) from error
    return code


# ---- the trees that functions are given ---------------------------------------------------------------
# The functions stay those of the book. Where a row of the table says that only sums over the bodies matter,
# its function gets regrouped inertias in place of the bodies' own. Where also nothing given or returned is in
# the frame of a body, it gets frames that are slid along their joints' axes (model/regrouping.py).


def tree_for(algorithm: Algorithm, robot: Robot) -> Tree:
    """The tree that the algorithm's function is given."""
    if not algorithm.sums:
        return robot.tree
    to_ground, frames = algorithm.sums == "joints", _frames_are_free(algorithm)

    def made() -> Tree:
        tree = robot.tree
        if frames:
            tree = slid(tree, shifts(tree, to_ground, tree.I if robot.parameters is None else ()))
        return replace(tree, I=regrouped(tree, to_ground))

    return robot.derived.get(("regrouped tree", to_ground, frames), made)


def tree_of_parameters(algorithm: Algorithm, robot: Robot, parameters: Sequence[Any]) -> Tree:
    """The same for a kernel that takes the inertial parameters of :func:`parameters_for` as an input."""
    tree, I = robot.tree, inertias(parameters)
    if algorithm.sums:
        to_ground = algorithm.sums == "joints"
        I = sparse(tree, to_ground, I)
        if _frames_are_free(algorithm):
            tree = replace(tree, XT=placements(tree, shifts(tree, to_ground)))
    return replace(tree, I=I)


def _frames_are_free(algorithm: Algorithm) -> bool:
    """Whether nothing that the algorithm takes or returns is in the frame of a body or link."""
    return bool(algorithm.sums) and not algorithm.about and "f_ext" not in algorithm.inputs.split()


def parameters_for(algorithm: Algorithm, robot: Robot) -> np.ndarray:
    """Inertial parameters that the robot's kernel of the algorithm takes: (n,) or (B, n), n = 10 (N + 1)."""
    to_ground, frames = algorithm.sums == "joints", _frames_are_free(algorithm)

    def made() -> np.ndarray:
        tree, parameters = robot.tree, robot.inertial_parameters
        if algorithm.sums:
            if frames:
                tree = slid(tree, shifts(tree, to_ground))
            numbers = [x for I in regrouped(tree, to_ground) for x in ten_scalars(I)]
            parameters = np.stack([np.broadcast_to(x, parameters.shape[:-2]) for x in numbers], axis=-1)
        flat = parameters.reshape(*robot.inertial_parameters.shape[:-2], -1)
        return np.ascontiguousarray(flat.view(np.float64))  # not the dtype object of a pickled array

    return robot.derived.get(("regrouped parameters", algorithm.sums, frames), made)
