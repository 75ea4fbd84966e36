"""The step of a robot that is known when it is compiled, for graphics cards.

If nothing touches except the world, the factors of A have the entries of H. Everything that the tree decides,
factors and solutions too, is then straight-line code. Otherwise the factors are loops anyway, and
straight-line code beside them made steps no faster (one run of G1 on an H200), but the code longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robokit.contact.accounts import _see
from robokit.contact.bounces import give_less
from robokit.contact.kinematics import (
    advance,
    bias,
    generalized,
    mass_matrix,
    multiply,
    place_bodies,
    velocities,
)
from robokit.contact.landings import begin_impact, end_impact, let_land
from robokit.contact.linear import assemble, back_substitute, factor
from robokit.contact.monitor import NOTES
from robokit.contact.pattern import symbolic
from robokit.contact.robot_data import BLOCK, FEW
from robokit.contact.solver import attempt, begin_solution, end_solution, gives_up
from robokit.contact.step import ARRAYS, fits, from_middle, give, go_back, step, to_middle
from robokit.contact.vectors import nothing, put
from robokit.engine.cuda.loops import BESIDE
from robokit.engine.loops.fields import KnownKernel, once, whole
from robokit.engine.signature import ArrayOf
from robokit.spatial.control_flow import cond

Arrays = Mapping[str, np.ndarray]

FEW_TURNS = 4
"""Iterations of a pass: the slowest of 32 states takes several times those of the mean, which is 2.4 in falls
of G1, and the others go on to their next steps in the meantime."""

OF_TREE = (advance, place_bodies, velocities, mass_matrix, multiply, bias, generalized, _see)
"""Functions that only the tree decides."""

OF_PATTERN = (assemble, factor, back_substitute)  # those that the pattern of A decides


def kernel_of_robot(
    arrays: Arrays,
    sizes: Mapping[str, int],
    rows_differ: set[str],
    reproducible: bool = False,
    springs: Any = (),
    few: int = FEW_TURNS,
) -> KnownKernel:
    """The kernel of steps of a robot.

    Args:
        arrays: of its step, by name.
        sizes: of these.
        rows_differ: names of inputs that rows have of their own, or that change.
        reproducible: whether its results are the same bits everywhere.
        springs: tensions that are functions.
        few: iterations of a step in one pass; where a state needs more, its step goes on in the next, and
            ``turns`` is not 0. With 0 every pass is a step.
    """
    taken = [*(a for a in ARRAYS if a not in NOTES), TURNS]
    contents = {
        a.name: arrays[a.name]
        for a in taken
        if a.role == "in" and a.name not in rows_differ and a.name in KNOWN
    }
    # Columns of the entries of each row of H, the diagonal too.
    entries = []
    for r in range(sizes["nv"]):
        first, count = arrays["row_path"][r].tolist()
        entries.append({r, *arrays["row_columns"][first : first + count].tolist()})
    zeros, instead = {"H": _zeros_of_H(arrays["bands"], entries, sizes)}, dict[Any, Any]()
    unrolls: list[Callable[..., Any]] = []
    if alone(arrays, sizes):
        found = _pattern(entries, sizes) | {"dof_place": arrays["dof_row"]}
        of_A = _zeros_of_A(found, entries, sizes)
        taken = [replace(a, role="in") if a.name in found else a for a in taken]
        contents |= found
        zeros |= {"A": of_A, "A_skew": of_A}
        unrolls += [*OF_TREE, *OF_PATTERN]
        instead[symbolic] = lambda _: None

    def whole_step(x: Any) -> None:
        x.by_matrix = reproducible
        if springs:
            x.spring_functions = springs
        if few:
            cond(x.needed[0] > 0, nothing, lambda: _pass(x, few))
        else:
            step(x)

    taken = [_apart(a, sizes) for a in taken]
    name = "contact_of_robot" + "_of_springs" * bool(springs)
    return KnownKernel(name, whole_step, taken, sizes, contents, unrolls, zeros, instead, reproducible)


def _apart(a: ArrayOf, sizes: Mapping[str, int]) -> ArrayOf:
    """A work array whose rows begin at multiples of the number of states that a card stores side by side.

    Short rows begin at multiples of half of it. All numbers of a row then have one address and a known
    distance from it.
    """
    shape, half = a.at(sizes), BESIDE // 2
    width = shape[-1] if shape else 0
    if a.role != "work" or len(shape) < 2 or width % half == 0 or half % width == 0:
        return a
    step = half if width < half else BESIDE
    return replace(a, shape=(*shape[:-1], -(-width // step) * step))


def _pass(x: Any, few: int) -> None:
    """A step, or a part of it: states that converge early wait for others for so many iterations at most."""
    cond(x.turns[0] == 0, lambda: _begin(x), nothing)
    cond(x.turns[0] > 0, lambda: _turn(x, few), nothing)


def _begin(x: Any) -> None:
    to_middle(x)
    cond(fits(x), lambda: _given(x), lambda: go_back(x))


def _given(x: Any) -> None:
    give(x)
    begin_solution(x)
    x.turns[0] = 1


def _turn(x: Any, few: int) -> None:
    it, e, settled = once(x, attempt, 0, x.turns[0] - 1, few)
    x.turns[0] = it + 1
    over = (settled > 0) | gives_up(x, 0, it, e)
    cond(over, lambda: _end(x, (it, e, settled)), nothing)


def _end(x: Any, found: Any) -> None:
    impact = cond(x.span[0] > 0.0, lambda: _first(x, found), lambda: _second(x, found))
    cond(impact, lambda: put(x.turns, 0, 1), lambda: _go_on(x))


def _first(x: Any, found: Any) -> Any:
    """Finish the first solution; returns whether a second one has begun."""
    once(x, end_solution, *found)
    lands = let_land(x) > 0
    cond(lands, lambda: begin_impact(x), nothing)
    return lands


def _second(x: Any, found: Any) -> Any:
    """Finish the second solution (landings.py)."""
    end_impact(x, *found)
    return False


def _go_on(x: Any) -> None:
    give_less(x)
    from_middle(x)
    x.turns[0] = 0


TURNS = whole("turns", 1, role="inout")  # 0 between two steps, else one more than the iterations so far

KNOWN = (
    "parent",
    "body_dofs",
    "joint_kind",
    "joint_placement",
    "joint_turn",
    "joint_slide",
    "joint_axis",
    "joint_coordinate",
    "joint_leads",
    "coordinate_from",
    "coordinate_gain",
    "coordinate_offset",
    "dof_parent",
    "dof_body",
    "dof_row",
    "dof_gain",
    "dof_axis",
    "armature",
    "path",
    "ancestors",
    "row_path",
    "row_columns",
    "part_rows",
    "body_part",
    "bands",
    "blocks",
    "block_mask",
    "block_part",
    "column_row",
    "body_tip",
    "wholes",
    "body_whole",
    "row_whole",
    "inertia",
    "gravity",
    "orders",
    "keeps",
    "push_body",
    "push_in_world",
)
"""Inputs whose numbers are in the code."""


def alone(arrays: Arrays, sizes: Mapping[str, int]) -> bool:
    """Whether only joints couple bodies, and A is a matrix (not as in articulated.py)."""
    moves = arrays["body_tip"][arrays["shape_body"]] >= 0
    several = np.flatnonzero(moves & (arrays["shape_runs"][:, 1] > 0))
    before = np.concatenate([[0], np.cumsum(moves)])[arrays["runs"]]
    spans = arrays["shape_runs"][several].tolist()
    return (
        not any((before[at : at + n, 1] > before[at : at + n, 0]).any() for at, n in spans)
        and sizes["n_loops"] == sizes["n_springs"] == 0
        and sizes["n_parts"] <= FEW
        and sizes["n_deep"] == 0
    )


def _zeros_of_H(bands: np.ndarray, entries: list[set[int]], sizes: Mapping[str, int]) -> frozenset[int]:
    rows = [*entries, *({r} for r in range(len(entries), BLOCK * len(bands)))]
    places = {k: int(place) for k, place in enumerate(bands[:, 2])}
    return _all_but({(places[r // BLOCK], r, c) for r, row in enumerate(rows) for c in row}, sizes["n_H"])


def _all_but(entries: set[tuple[int, int, int]], blocks: int) -> frozenset[int]:
    """Positions of all blocks except these, out of so many.

    The block of row r and column c is at the position of c plus a first number.
    """
    at = {((row + c // BLOCK) * BLOCK + r % BLOCK) * BLOCK + c % BLOCK for row, r, c in entries}
    return frozenset(range(BLOCK * BLOCK * blocks)) - at


def _filled(entries: list[set[int]]) -> list[set[int]]:
    """Columns of the entries of the factors of a matrix with these entries."""
    rows = [set(row) for row in entries]
    for k in reversed(range(len(rows))):
        for i in rows[k] - {k}:
            rows[i] |= {j for j in rows[k] if j <= i}
    return rows


def _zeros_of_A(
    found: Mapping[str, np.ndarray], entries: list[set[int]], sizes: Mapping[str, int]
) -> frozenset[int]:
    rows = _filled(entries)
    rows += [{r} for r in range(len(rows), BLOCK * sizes["n_blocks"])]
    depth = found["depth"].tolist()
    at = {
        (int(found["A_row"][r // BLOCK]) + depth[c // BLOCK] - c // BLOCK, r, c)
        for r, row in enumerate(rows)
        for c in row
    }
    return _all_but(at, sizes["n_fill"])


def _pattern(entries: list[set[int]], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The result of :func:`symbolic`, computed at compile time."""
    n, rows = sizes["n_blocks"], _filled(entries)
    blocks = [{c // BLOCK for r in rows[BLOCK * k : BLOCK * (k + 1)] for c in r} - {k} for k in range(n)]
    for k in reversed(range(n)):  # handed on as a whole
        if blocks[k]:
            blocks[max(blocks[k])] |= blocks[k] - {max(blocks[k])}
    pattern, first, end = np.zeros(sizes["n_fill"], np.int32), [0] * n, 0
    for k in reversed(range(n)):
        first[k], end = end, end + len(blocks[k])
        pattern[first[k] : end] = sorted(blocks[k], reverse=True)
    depth, row, end = [0] * n, [0] * n, 0
    for k, each in enumerate(blocks):
        depth[k] = 1 + depth[max(each)] if each else 0
        row[k] = end - min((depth[c] for c in each), default=depth[k])
        end = row[k] + depth[k] + 1
    lists = {"pattern_first": first, "pattern_length": [len(each) for each in blocks], "filled": [end]}
    lists |= {"depth": depth, "A_row": row, "place": [*range(sizes["nv"])]}
    return {"pattern": pattern} | {name: np.array(each, np.int32) for name, each in lists.items()}
