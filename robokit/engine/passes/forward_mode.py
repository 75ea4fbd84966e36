"""Forward mode: each node has a dictionary {direction: tangent} of the directions that it depends on.

Source: A. Griewank, A. Walther, Evaluating Derivatives, SIAM 2008, sections 3.1 and 7.1 (sparse vectors).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from robokit.engine.passes.played_back import JUMPS, chosen
from robokit.engine.trace.ops import ADD, DIV, GUARD, INPUT, MUL, OPERATIONS, SELECT, SUB
from robokit.engine.trace.program import Program

Tangents = dict[int, Any]


def tangents(
    program: Program, value: Sequence[Any], seeds: Mapping[tuple[int, int], Tangents]
) -> list[list[Tangents]]:
    """Forward mode.

    Args:
        program: what to differentiate.
        value: of each node, as :func:`replayed` gives them.
        seeds: (input, offset) -> {direction: derivative of that scalar along the direction}.

    Returns:
        for each output the derivatives of its scalars; a direction that makes no difference is missing.
    """
    nodes = program.nodes
    found: list[Tangents | None] = [None] * len(nodes)
    for number, node in enumerate(nodes):
        if node[0] == INPUT and node[1:] in seeds:
            found[number] = _without_zeros(seeds[node[1:]].items())
    for number in program.order:
        node = nodes[number]
        op = node[0]
        if op == MUL:
            _, a, b = node
            da, db = found[a], found[b]
            if da is None and db is None:
                continue
            va, vb = value[a], value[b]
            if db is None:
                found[number] = _scaled(da, vb)
            elif da is None:
                found[number] = _scaled(db, va)
            else:
                total = {k: d * vb for k, d in da.items()}
                for k, d in db.items():
                    total[k] = total[k] + d * va if k in total else d * va
                found[number] = _without_zeros(total.items())
        elif op in (ADD, SUB):
            _, a, b = node
            da, db = found[a], found[b]
            if db is None:
                found[number] = da
            elif da is None:
                found[number] = db if op == ADD else {k: -d for k, d in db.items()}
            else:
                total = dict(da)
                if op == ADD:
                    for k, d in db.items():
                        total[k] = total[k] + d if k in total else d
                else:
                    for k, d in db.items():
                        total[k] = total[k] - d if k in total else -d
                found[number] = _without_zeros(total.items())
        elif op in (SELECT, GUARD):
            _, c, a, b = node
            da, db = found[a] or {}, found[b] or {}
            if da or db:
                both = da if not db else da | db
                condition = value[c]
                found[number] = _without_zeros(
                    (k, chosen(condition, da.get(k, 0.0), db.get(k, 0.0), op)) for k in both
                )
        elif op not in JUMPS:
            known = [found[operand] for operand in node[1:]]
            if any(known):
                found[number] = _general(op, value[number], [value[n] for n in node[1:]], known)
    return [[(found[r] or {}) if type(r) is int else {} for r in row] for row in program.results]


def _general(op: int, y: Any, operands: Sequence[Any], known: Sequence[Tangents | None]) -> Tangents | None:
    """Tangents of a quotient, or of a function of one number: by its slope, which is computed once."""
    if op == DIV:
        (a, b), (da, db) = operands, known
        # 1 / b is y itself where a is 1.
        inverse = y if type(a) is float and a == 1.0 else 1.0 / b
        if db is None:
            return _scaled(da, inverse)
        lost = _scaled(db, -y)
        total = dict(da or {})
        for k, d in (lost or {}).items():
            total[k] = total[k] + d if k in total else d
        return _scaled(_without_zeros(total.items()), inverse)
    slope = OPERATIONS[op].slopes[0]
    assert slope is not None
    return _scaled(known[0], slope(1.0, y, *operands))


def _scaled(d: Tangents | None, factor: Any) -> Tangents | None:
    if d is None or (type(factor) is float and factor == 0.0):
        return None
    return {k: x * factor for k, x in d.items()}


def _without_zeros(items: Iterable[tuple[int, Any]]) -> Tangents | None:
    """The tangents that can be other than 0; None for none."""
    kept = {k: d for k, d in items if d.__class__ is not float or d != 0.0}
    return kept or None
