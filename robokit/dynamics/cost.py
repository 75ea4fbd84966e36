"""What the algorithms cost on a robot: exact operation counts, beside their textbook growth.

The counts are those of the recorded graph, which is what the machine code computes: after folding what
depends on the robot alone, dropping what no output needs and computing equal operations once. A fused
multiply-add counts as two. Sines and cosines come in pairs and are counted apart.

Source: RBDA 6.5 for the formulas of the factorisation H = L^T D L and of its solve.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from robokit.dataclass_tools import frozen
from robokit.dynamics.build import example_key, kernel, kernel_of_own_inertias
from robokit.dynamics.table import ALGORITHMS, KERNELS
from robokit.engine.trace.graph import TraceTooLarge
from robokit.errors import SingularInertia, UnknownName
from robokit.model.robot import Robot, check_robot
from robokit.model.tree import dof_depths, ltdl_counts

GROWTH = {row.name: row.growth for row in ALGORITHMS if row.growth}
"""Kernels that are counted, and the growth that the sources state; forward_dynamics is method="crba"."""

OPERATIONS = ("mul", "add", "div", "sqrt", "sincos")


@frozen
class AlgorithmCost:
    """Operations of one algorithm on one state.

    Attributes:
        algorithm: name of the public function; "ltdl_solve" is ``LTDLFactor.solve``, "forward_dynamics" its
            method "crba".
        growth: order of the cost for n bodies (n degrees of freedom for ltdl) and depth d, as the sources
            state it.
        mul: multiplications, None if they are not known.
        add: additions and subtractions, or None.
        div: divisions, or None.
        sqrt: square roots, or None.
        sincos: pairs of a sine and a cosine, or None.
        before: flops with the bodies' own inertias, before what acts only through a parent is moved there
            (``model/regrouping.py``); equal to flops where nothing is moved, None if they are not known.
        formula: mul, add and div by Featherstone's formulas, if there are any.
        note: why there are no counts; "" if there are.
    """

    algorithm: str
    growth: str
    mul: int | None = None
    add: int | None = None
    div: int | None = None
    sqrt: int | None = None
    sincos: int | None = None
    before: int | None = None
    formula: dict[str, int] | None = None
    note: str = ""

    @property
    def flops(self) -> int | None:
        """Multiplications, additions, divisions and square roots; None if they are not known."""
        if self.mul is None or self.add is None or self.div is None or self.sqrt is None:
            return None
        return self.mul + self.add + self.div + self.sqrt

    def as_dict(self) -> dict[str, Any]:
        """All fields and ``flops`` as plain types, for JSON."""
        return {**dataclasses.asdict(self), "flops": self.flops}


@frozen
class Cost(Mapping[str, AlgorithmCost]):
    """Operation counts of a robot's algorithms: ``cost["aba"].flops``; ``print(cost)`` shows the table.

    Attributes:
        robot: its name.
        base: "fixed" or "floating".
        n: degrees of freedom.
        nbodies: moving bodies.
        depth: largest number of degrees of freedom from the base to a tip.
        D1: sum of d_i - 1 over the degrees of freedom, d_i their depths.
        D2: sum of d_i (d_i - 1) / 2.
        dense: multiply-adds of a dense factorisation, (n^3 - n) / 6, and of the solves with it, n^2 - n.
        rows: one per algorithm.
    """

    robot: str
    base: str
    n: int
    nbodies: int
    depth: int
    D1: int
    D2: int
    dense: tuple[int, int]
    rows: tuple[AlgorithmCost, ...]

    def __getitem__(self, algorithm: str) -> AlgorithmCost:
        for row in self.rows:
            if row.algorithm == algorithm:
                return row
        raise UnknownName("algorithm", str(algorithm), tuple(self))

    def __iter__(self) -> Iterator[str]:
        return (row.algorithm for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def as_dict(self) -> dict[str, Any]:
        """All fields as plain types, for JSON."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "rows"}
        return {
            **fields,
            "dense": list(self.dense),
            "algorithms": {k: row.as_dict() for k, row in self.items()},
        }

    def lines(self) -> Iterator[str]:
        """The table, at most 80 columns wide up to a million operations."""
        yield f"{self.robot}, {self.base} base: {self.nbodies} bodies, n = {self.n}, d = {self.depth}"
        yield ""
        numbers = ("mul", "add", "div", "sincos", "flops", "before")
        head = ["algorithm", *numbers, "growth"]
        cells = [
            [row.algorithm, *(_cell(_shown(row, name)) for name in numbers), row.growth] for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        for line in [head, *cells]:
            right = (cell.rjust(w) for cell, w in zip(line[1:-1], widths[1:-1], strict=True))
            yield " ".join([line[0].ljust(widths[0]), *right, " " + line[-1]])
        yield ""
        for row in self.rows:
            if row.note:
                yield f"{row.algorithm}: {row.note}"
        yield "For one state, after folding; div counts square roots too; flops are mul + add +"
        yield "div, before: with the bodies' own inertias, not regrouped; forward_dynamics"
        yield 'is its method "crba". The growth is in bodies n and depth d, for ltdl in degrees'
        yield "of freedom, each of depth d_i. Its formulas (RBDA 6.5) in multiply-adds:"
        yield f"  D1 = sum (d_i - 1) = {self.D1}, D2 = sum d_i (d_i - 1)/2 = {self.D2}"
        yield f"  ltdl        D2 = {self.D2} and D1 quotients, each a product with a reciprocal;"
        yield f"              a dense matrix takes (n^3 - n)/6 = {self.dense[0]}"
        yield f"  ltdl_solve  2 D1 = {2 * self.D1} and n quotients; a dense matrix takes {self.dense[1]}"


def cost(robot: Robot) -> Cost:
    """Exact operation counts of the robot's algorithms; nothing is compiled.

    Source: the recorded graphs; RBDA 6.5 for the formulas.  Cost: O(n d^2), seconds for a humanoid at the
    first call; the robot keeps them.

    Args:
        robot: the robot.

    Returns:
        the table.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> counts = rk.cost(robot)
        >>> counts["aba"].flops < counts["aba_derivatives"].flops
        True
    """
    check_robot(robot)
    kept = robot.derived.get("cost", lambda: _counted(robot))
    rows = (replace(row, formula=None if row.formula is None else dict(row.formula)) for row in kept.rows)
    return replace(kept, rows=tuple(rows))


def _counted(robot: Robot) -> Cost:
    depth = dof_depths(robot.dof_parent)
    counts = ltdl_counts(robot.dof_parent)
    stated = formulas(robot)
    return Cost(
        robot=robot.name,
        base=robot.base,
        n=robot.nv,
        nbodies=robot.nbodies,
        depth=int(depth.max(initial=0)),
        D1=int(counts["divisions"]),
        D2=int(counts["factorise"]),
        dense=(int(counts["factorise_dense"]), int(counts["solve_dense"])),
        rows=tuple(replace(algorithm_cost(robot, name), formula=stated.get(name)) for name in GROWTH),
    )


def formulas(robot: Robot) -> dict[str, dict[str, int]]:
    """Operations of the factorisation and of its solve by their formulas, without a recording.

    Source: RBDA 6.5.
    """
    counts = ltdl_counts(robot.dof_parent)
    D1, D2 = int(counts["divisions"]), int(counts["factorise"])
    return {
        "ltdl": {"mul": D2 + D1, "add": D2, "div": int((dof_depths(robot.dof_parent) > 1).sum())},
        "ltdl_solve": {"mul": 2 * D1, "add": 2 * D1, "div": robot.nv},
    }


def algorithm_cost(robot: Robot, name: str, before: bool = True) -> AlgorithmCost:
    """Exact operation counts of an algorithm of :data:`GROWTH`; nothing is compiled.

    ``before``: whether to count as well with the bodies' own inertias.
    """
    if KERNELS[name].floating and robot.base != "floating":
        return AlgorithmCost(name, GROWTH[name], note="not defined, the base is fixed")
    from robokit.dynamics.long_robots import long_way  # `import robokit` stays light

    # What the formulas of RBDA 6.5 count is counted even so.
    if name not in ("ltdl", "ltdl_solve") and long_way(robot, name) is not None:
        return AlgorithmCost(name, GROWTH[name], note="not counted: with so many joints, loops compute it")
    key = example_key(KERNELS[name], robot)
    fresh = key not in robot.kernels
    try:
        made = kernel(robot, key)
        numbers: Any = {k: made.counts[k] for k in OPERATIONS}
        if before:
            own = made if not KERNELS[name].sums else kernel_of_own_inertias(robot, key)
            numbers["before"] = own.flops
        return AlgorithmCost(name, GROWTH[name], **numbers)
    except TraceTooLarge as error:
        note = f"not counted, {error} to record"
    except SingularInertia as error:
        massless = KERNELS[name].massive
        why = "nothing that moves has mass" if massless else f"joint {error.joint!r} moves no inertia"
        note = f"not defined, {why}"
    finally:
        if fresh:  # recorded for its counts only: a humanoid's graphs would hold some ten megabytes
            robot.kernels.pop(key, None)
    return AlgorithmCost(name, GROWTH[name], note=note)


def _shown(row: AlgorithmCost, name: str) -> int | None:
    """A number of the table, where quotients and square roots are one column."""
    value: int | None = getattr(row, name)
    return value + (row.sqrt or 0) if name == "div" and value is not None else value


def _cell(value: int | None) -> str:
    return "-" if value is None else str(value)
