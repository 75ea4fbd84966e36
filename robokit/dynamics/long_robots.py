"""Robots with hundreds of joints: loops over the robot as data, in place of straight lines.

H of a chain of a thousand joints has half a million entries, and its factorisation 1e8 operations. None of
this can be written out as straight-line code. Above :data:`MOST` operations a robot's own code computes no
more than where its bodies are. The rest are loops (algorithms/world_axes.py, ltdl.py) whose code is the same
for all robots and is compiled once a machine: the vectors of each dof, then the powers of all pairs that a
path connects.

- H^-1 and the derivatives of accelerations are solutions by articulated bodies, O(n) for each column.
- L and D follow the tree's branches, or come from LAPACK where that takes less time (:func:`_by_branches`).
  With P the permutation that reverses the order, P H P = (P L^T P) (P D P) (P L P) and P L^T P is a lower
  triangle: the factors of H = L^T D L are the reversed LDL^T ones of P H P. No entry outside the tree's
  pattern fills in, because RBDA 6.5 eliminates in that very order.
- Coupled joints, v_full = G v, get G^T A G of the matrices of all joints, and LAPACK's inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.algorithms import ltdl_loops as branches
from robokit.algorithms import world_axes
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.layout import lower_entries, parameter_entries, parameter_pattern
from robokit.dynamics.table import KERNELS, WITH_FORCES, WITH_WORLD_FORCES
from robokit.engine import NotFinite
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.maker import engine
from robokit.engine.memory import result_array
from robokit.engine.signature import Signature
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.sparsity import dof_depths

MOST = 200_000
"""Operations that are written out."""

BRANCHES_FOR_LAPACK = 17.0
"""How long an operation along branches takes, in those of LAPACK's dense Cholesky: 1.1 ns over 0.065 ns (AMD
EPYC with AVX-512). There each waits for the place of the next ancestor; here vectors of neighbours go through
the processor."""


def long_way(robot: Robot, name: Key, dtype: str = "float64") -> Callable[..., Any] | None:
    """The function that replaces a kernel of too many operations; None if there are few enough.

    Args:
        robot: the robot.
        name: of the kernel. What is returned takes its arguments, and ``out``.
        dtype: of the result; the computation is in double precision all the same.
    """
    if not isinstance(name, str) or name not in WAYS or _cost(robot, WAYS[name][0]) <= MOST:
        return None

    def run(*arguments: Any, out: Any = None) -> Any:
        return _run(robot, name, dtype, arguments, out)

    return run


def is_written_out(robot: Robot, name: str) -> bool:
    """Whether a kernel is code for this robot."""
    return long_way(robot, name) is None


def _cost(robot: Robot, what: str) -> int:
    """Operations to write out, roughly.

    The weights are such that :data:`MOST` of them take two seconds to record and compile: 24 an entry of
    H, and so on. The places of a dense matrix count too, which are read or written one by one.
    """
    return robot.derived.get("costs written out", lambda: _costs(robot))[what]


def _costs(robot: Robot) -> dict[str, int]:
    depth = dof_depths(robot.dof_parent)
    entries, factors, places = int(depth.sum()), int((depth * (depth - 1)).sum()), robot.nv**2
    parameters = COUNT * int(parameter_pattern(robot).sum())
    return {
        "H": max(24 * entries, 8 * places),
        "entries": 24 * entries,
        "factors": max(3 * factors, 12 * places),
        "solution": max(28 * entries, 8 * places),
        "accelerations": 3 * factors,
        "regressor": 9 * parameters + 3 * robot.nv * COUNT * robot.nbodies,
        "derivatives": max(120 * entries, 8 * places),
        "inverse": 3 * len(depth) * entries,
        "derivatives of accelerations": 4 * len(depth) * entries,
    }


# ---- the robot as data -----------------------------------------------------------------------------------

Fill = Callable[..., None]

Runs = list[tuple[int, int]]
"""Runs of neighbouring columns, (start, stop) each."""


def _spans(rows: Sequence[Runs]) -> dict[str, np.ndarray]:
    """Runs of columns by row, as algorithms/world_axes.py takes them."""
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    runs = np.array([run for row in rows for run in row], np.int32).reshape(-1, 2)
    return {"begin": ends[:-1].copy(), "end": ends[1:].copy(), "spans": runs}


@dataclass(frozen=True)
class Data:
    """A robot as algorithms/world_axes.py takes it.

    Attributes:
        tree: the arrays that most texts take.
        rotors, a0: armatures by dof; minus the acceleration of free fall.
        below: by dof, the dofs of its body and of those that carry it; above: the dofs that it carries.
        lower, upper: the entries of H before the diagonal, and those from there on.
        carried: of ten columns for each body, those of the dof's body and of those that it carries.
    """

    tree: dict[str, np.ndarray]
    rotors: np.ndarray
    a0: np.ndarray
    below: dict[str, np.ndarray]
    above: dict[str, np.ndarray]
    lower: dict[str, np.ndarray]
    upper: dict[str, np.ndarray]
    carried: dict[str, np.ndarray]

    @property
    def sizes(self) -> dict[str, int]:
        """Of the texts."""
        return {"bodies": len(self.tree["parent"]), "dofs": len(self.tree["S"])}

    def run(
        self, run: LoopKernel, sizes: dict[str, int] | None = None, **given: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Run a kernel on one state; returns all its arrays, those of the tree and new ones among them."""
        known = {**self.tree, "rotors": self.rotors, "a0": self.a0, **given}
        sizes = {**self.sizes, **(sizes or {})}
        for a in run.arrays:
            if a.name not in known:
                known[a.name] = np.empty([sizes[n] if isinstance(n, str) else n for n in a.shape])
        _loop(run, sizes, known)
        return known

    def square(self, outs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Zeros for all dofs: the results themselves, where no joints follow others."""
        n = self.sizes["dofs"]
        found = [x if x.shape == (n, n) else np.empty((n, n)) for x in outs]
        for x in found:
            x.fill(0.0)
        return found


def _data(robot: Robot) -> Data:
    found: Data = robot.derived.get("as data", lambda: _as_data(robot))
    return found


def _as_data(robot: Robot) -> Data:
    tree = robot.tree
    first, last = [s.start for s in tree.v_slice], [s.stop for s in tree.v_slice]
    path: list[Runs] = [[]]
    rows: dict[str, list[Runs]] = {name: [] for name in ("below", "above", "lower", "upper", "carried")}
    for i in range(1, tree.n + 1):
        above = path[tree.parent[i]]
        joined = bool(above) and above[-1][1] == first[i]
        runs, start = (above[:-1], above[-1][0]) if joined else (above, first[i])
        path.append([*runs, (start, last[i])])
        end = tree.subtree[i].stop
        for k in range(first[i], last[i]):
            rows["below"].append(path[i])
            rows["above"].append([(last[i], last[end - 1])])
            rows["lower"].append([*runs, (start, k)])
            rows["upper"].append([(k, last[end - 1])])
            rows["carried"].append([(COUNT * (i - 1), COUNT * (end - 1))])
    columns = [list(s) for joint in tree.joint[1:] for s in joint.S.columns]
    arrays = {
        "parent": np.array((0, *tree.parent[1:]), np.int32),
        "first": np.array(first, np.int32),
        "last": np.array(last, np.int32),
        "S": np.array(columns, float).reshape(-1, 6),
    }
    rotors = [x for each in tree.armature[1:] for x in each] or [0.0] * tree.nv
    spans = {name: _spans(each) for name, each in rows.items()}
    return Data(arrays, np.array(rotors, float), np.array(list(tree.a0), float), **spans)


def _inertias(robot: Robot) -> np.ndarray:
    found: np.ndarray = robot.derived.get("inertias", lambda: np.ascontiguousarray(robot.inertial_parameters))
    return found


def _lambda(robot: Robot) -> np.ndarray:
    found: np.ndarray = robot.derived.get("lambda", lambda: np.array(robot.dof_parent, np.int32))
    return found


SIZES = ("bodies", "dofs")
TREE = [ArrayOf(name, ("bodies",), kind="integer", shared=True) for name in ("parent", "first", "last")]
COLUMNS = [*TREE, ArrayOf("S", ("dofs", 6), shared=True)]
INERTIAS = ArrayOf("inertias", ("bodies", COUNT))
POSE = ArrayOf("pose", ("bodies", 12))
A0 = ArrayOf("a0", (3,), shared=True)


def _of_bodies(role: str, **counts: int) -> list[ArrayOf]:
    return [ArrayOf(name, ("bodies", count), role) for name, count in counts.items()]


def _of_dofs(role: str, *names: str) -> list[ArrayOf]:
    return [ArrayOf(name, ("dofs",), role) for name in names]


def _sets(role: str, **counts: int) -> list[ArrayOf]:
    return [ArrayOf(name, (count, 6, "dofs"), role) for name, count in counts.items()]


PLACE = ArrayOf("place", (3, "dofs"), "out")
VECTORS = LoopKernel(
    "long_vectors",
    world_axes.vectors,
    SIZES,
    [
        *COLUMNS, INERTIAS, POSE, *_of_dofs("in", "rotors", "qd", "qdd"), A0,
        *_of_bodies("in", f_ext=6, held=6),
        *_sets("out", motions=4, forces=6), PLACE, *_of_dofs("out", "tau"),
        *_of_bodies("work", v=6, a=6, Ic=COUNT, Bc=12, fc=6, hc=6),
    ],
)  # fmt: skip
COMPOSITES = LoopKernel(
    "long_composites",
    world_axes.composites,
    SIZES,
    [*COLUMNS, INERTIAS, POSE, *_sets("out", motions=1, forces=1), PLACE, *_of_bodies("work", Ic=COUNT)],
)
EQUATIONS = LoopKernel(
    "long_equations",
    world_axes.equations,
    (*SIZES, "columns"),
    [
        *COLUMNS, POSE, *_of_dofs("in", "qd", "qdd"), A0, *_sets("out", motions=1), PLACE,
        ArrayOf("forces", (1, 6, "columns"), "out"), ArrayOf("at", (3, "columns"), "out"),
        *_of_bodies("work", v=6, a=6),
    ],
)  # fmt: skip
ARTICULATED = LoopKernel(
    "long_factors",
    world_axes.factors,
    SIZES,
    [
        *COLUMNS, INERTIAS, POSE, *_of_dofs("in", "rotors"),
        ArrayOf("motions", ("dofs", 6), "out"), ArrayOf("U", ("dofs", 6), "out"), *_of_dofs("out", "Dinv"),
        ArrayOf("offset", ("bodies", 3), "out"), *_of_bodies("work", IA=21),
    ],
)  # fmt: skip
ACCELERATIONS = LoopKernel(
    "long_accelerations",
    world_axes.accelerations,
    SIZES,
    [
        *TREE,
        *(ArrayOf(name, ("dofs", 6), shared=True) for name in ("motions", "U")),
        ArrayOf("Dinv", ("dofs",), shared=True),
        ArrayOf("offset", ("bodies", 3), shared=True),
        *_of_dofs("in", "b"),
        *_of_dofs("out", "x"),
        *_of_bodies("work", carried=6),
    ],
)
ROWS = [
    *(ArrayOf(name, ("rows",), kind="integer", shared=True) for name in ("begin", "end")),
    ArrayOf("spans", ("runs", 2), kind="integer", shared=True),
]


def _powers(name: str, forces_are_of_rows: bool) -> LoopKernel:
    return LoopKernel(
        name,
        world_axes.powers(forces_are_of_rows),
        ["rows", "columns", "terms", "runs"],
        [
            *ROWS, ArrayOf("R", ("terms", 6, "rows")), ArrayOf("at_row", (3, "rows")),
            ArrayOf("C", ("terms", 6, "columns")), ArrayOf("at_column", (3, "columns")),
            ArrayOf("out", ("rows", "columns"), "inout"),
        ],
    )  # fmt: skip


ROWS_OF_FORCES, ROWS_OF_MOTIONS = _powers("long_forces", True), _powers("long_motions", False)
MIRRORED = LoopKernel(
    "long_mirrored", world_axes.mirrored, ["rows", "runs"], [*ROWS, ArrayOf("H", ("rows", "rows"), "inout")]
)
LAMBDA = ArrayOf("parent", ("dofs",), kind="integer", shared=True)


def _square(name: str, role: str) -> ArrayOf:
    return ArrayOf(name, ("dofs", "dofs"), role)


LTDL = LoopKernel(
    "long_ltdl",
    branches.factorise,
    ["dofs"],
    [LAMBDA, _square("H", "in"), _square("L", "inout"), *_of_dofs("out", "D")],
)


LTDL_SOLVE = LoopKernel(
    "long_ltdl_solve",
    branches.solve,
    ["dofs"],
    [LAMBDA, _square("L", "in"), *_of_dofs("in", "D"), *_of_dofs("inout", "x")],
)


def _loop(
    run: LoopKernel, sizes: dict[str, int], arrays: dict[str, np.ndarray], rows: int | None = None
) -> None:
    """Run a kernel on one state or some rows, in its arrays."""
    given = [arrays[a.name] for a in run.arrays]
    if engine() == "python":
        for row in range(1 if rows is None else rows):
            own = [x if rows is None or a.shared else x[row] for a, x in zip(run.arrays, given, strict=True)]
            run.on_memory(*(sizes[n] for n in run.sizes), *own)
    elif rows is None:
        run.single(sizes, given)()
    else:
        run.batch(sizes, given, rows)()


# ---- calls -----------------------------------------------------------------------------------------------


def _run(robot: Robot, name: str, dtype: str, arguments: Sequence[Any], out: Any) -> Any:
    """Each state of a call: its poses, inertias and other arguments go to the function of the table."""
    row, fill = KERNELS[name], WAYS[name][1]
    inputs = [(each, row.input(each).size(robot)) for each in row.inputs.split()]
    outputs = list(zip(row.symbols.split(), row.result.shapes(robot), strict=True))
    signature = Signature(name, inputs, outputs, "float64", [], [], row.result.finite)
    arrays, shown = signature.arrays(arguments), replace(signature, dtype=dtype)
    inertias, posed = _inertias(robot), inputs[0][0] == "q"
    samples = [inertias.reshape(len(inertias), -1)] if row.inertial and inertias.ndim == 3 else []
    names = [*signature.input_names, *["samples"] * len(samples)]
    many = check.batch_size(names, [*arrays, *samples])
    poses = kernel(robot, "body_poses")(arrays[0]) if posed else None
    check.check_values(signature.input_names[posed:], arrays[posed:], ())
    outs = shown.outs(out, many)
    results = outs if dtype == "float64" else signature.outs(None, many)
    for k in range(1 if many is None else many):
        state = [np.ascontiguousarray(x if x.ndim == 1 else x[k]) for x in arrays[posed:]]
        if poses is not None:
            pose = (poses if poses.ndim == 3 else poses[k]).reshape(-1, 12)
            state = [pose, inertias if inertias.ndim == 2 else inertias[k], *state]
        fill(robot, results if many is None else [x[k] for x in results], *state)
    if signature.finite and not all(np.isfinite(x).all() for x in results):
        raise NotFinite(name, signature.answer(results))
    if results is not outs:
        for x, result in zip(outs, results, strict=True):
            x[...] = result
    return signature.answer(outs, out) if out is None else out


def _full(robot: Robot, v: np.ndarray) -> np.ndarray:
    """Velocities of all joints, the followers' too."""
    return v if robot.coupling is None else np.ascontiguousarray(robot.coupling.G @ v)


def _new(*shape: int) -> np.ndarray:
    return result_array(shape, "float64")


def _reduce(robot: Robot, outs: Sequence[np.ndarray], *matrices: np.ndarray) -> None:
    """G^T A G, where joints follow others; else the matrices are the results themselves."""
    if robot.coupling is not None:
        G = robot.coupling.G
        for out, A in zip(outs, matrices, strict=True):
            out[...] = G.T @ A @ G


def _reduced_force(robot: Robot, tau: np.ndarray) -> np.ndarray:
    return tau if robot.coupling is None else robot.coupling.G.T @ tau


# ---- matrices --------------------------------------------------------------------------------------------


def _add_powers(
    run: LoopKernel,
    out: np.ndarray,
    spans: dict[str, np.ndarray],
    rows: np.ndarray | Sequence[np.ndarray],
    columns: np.ndarray | Sequence[np.ndarray],
    at_row: np.ndarray,
    at_column: np.ndarray | None = None,
) -> None:
    sizes = {"rows": out.shape[0], "columns": out.shape[1], "terms": len(rows), "runs": len(spans["spans"])}
    at_column = at_row if at_column is None else at_column
    given = {
        "R": np.array(rows),
        "C": np.array(columns),
        "at_row": at_row,
        "at_column": at_column,
        "out": out,
    }
    _loop(run, sizes, {**spans, **given})


def _mirror(spans: dict[str, np.ndarray], H: np.ndarray) -> None:
    _loop(MIRRORED, {"rows": len(H), "runs": len(spans["spans"])}, {**spans, "H": H})


Outs = Sequence[np.ndarray]
"""Results of one state, to write to."""


def _mass_matrix(robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray) -> None:
    data = _data(robot)
    found = data.run(COMPOSITES, inertias=inertias, pose=pose)
    (H,) = data.square(outs)
    _add_powers(ROWS_OF_MOTIONS, H, data.upper, found["motions"], found["forces"], found["place"])
    _mirror(data.lower, H)
    H.reshape(-1)[:: len(H) + 1] += data.rotors
    _reduce(robot, outs, H)


def _new_mass_matrix(robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> np.ndarray:
    H = _new(robot.nv, robot.nv)
    _mass_matrix(robot, [H], pose, inertias)
    return H


def _entries(robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray) -> None:
    def found() -> np.ndarray:
        rows, columns = lower_entries(robot).T
        return rows * robot.nv + columns

    places = robot.derived.get("places of H", found)
    np.take(_new_mass_matrix(robot, pose, inertias).reshape(-1), places, out=outs[0], mode="clip")


def _vectors(
    robot: Robot,
    ending: str,
    pose: np.ndarray,
    inertias: np.ndarray,
    v: np.ndarray,
    a: np.ndarray,
    f_ext: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """The vectors of each dof of all joints, and tau."""
    none = np.zeros((robot.nbodies + 1, 6))
    f = none if f_ext is None else f_ext.reshape(-1, 6)
    moving, held = (none, f) if ending == WITH_WORLD_FORCES else (f, none)
    v, a = _full(robot, v), _full(robot, a)
    return _data(robot).run(VECTORS, inertias=inertias, pose=pose, qd=v, qdd=a, f_ext=moving, held=held)


def _forces_by_state(robot: Robot, outs: Outs, found: dict[str, np.ndarray]) -> None:
    """dtau/dq and dtau/dv from their vectors."""
    data, at = _data(robot), found["place"]
    s, psi, psi2, both = found["motions"]
    by_q, by_v, U, W, turned, _ = found["forces"]
    dq, dv = data.square(outs)
    _add_powers(ROWS_OF_FORCES, dq, data.below, (W, U, -turned), (psi, psi2, s), at)
    _add_powers(ROWS_OF_MOTIONS, dq, data.above, (s,), (by_q,), at)
    _add_powers(ROWS_OF_FORCES, dv, data.below, (W, U), (s, both), at)
    _add_powers(ROWS_OF_MOTIONS, dv, data.above, (s,), (by_v,), at)
    _reduce(robot, outs, dq, dv)


def _rnea_derivatives(ending: str) -> Fill:
    return lambda robot, outs, *state: _forces_by_state(robot, outs, _vectors(robot, ending, *state))


def _coriolis_matrix(robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray, v: np.ndarray) -> None:
    found = _vectors(robot, "", pose, inertias, v, np.zeros(robot.nv))
    data, at = _data(robot), found["place"]
    s, psi, _, both = found["motions"]
    _, by_v, U, W, _, own = found["forces"]
    (C,) = data.square(outs)
    _add_powers(ROWS_OF_FORCES, C, data.below, (0.5 * W, U), (s, both - psi), at)
    _add_powers(ROWS_OF_MOTIONS, C, data.above, (s,), (0.5 * by_v + own,), at)
    _reduce(robot, outs, C)


# ---- factors and solutions -------------------------------------------------------------------------------


def _by_branches(robot: Robot) -> bool:
    """Whether H is factorised along the tree's branches: fewer operations, at their price, than LAPACK's."""
    return BRANCHES_FOR_LAPACK * _cost(robot, "accelerations") < robot.nv**3


def _factorised(robot: Robot, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and D of one matrix; NaN where it is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    if _by_branches(robot):
        L, D = np.zeros_like(H), np.empty(len(H))
        given = {"parent": _lambda(robot), "H": np.ascontiguousarray(H), "L": L, "D": D}
        _loop(LTDL, {"dofs": len(H)}, given)
        return L, D
    try:
        C = cholesky(H[::-1, ::-1], lower=True, check_finite=False)
    except LinAlgError:
        return np.full_like(H, np.nan), np.full(len(H), np.nan)
    diagonal = np.diagonal(C)
    return np.ascontiguousarray((C / diagonal)[::-1, ::-1].T), diagonal[::-1] ** 2


def _solved(robot: Robot, L: np.ndarray, D: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x of L^T D L x = b, of one matrix and one vector."""
    from scipy.linalg import solve_triangular

    if _by_branches(robot):
        x = b.copy()
        given = {"parent": _lambda(robot), "L": np.ascontiguousarray(L), "D": D.copy(), "x": x}
        _loop(LTDL_SOLVE, {"dofs": len(x)}, given)
        return x
    how = {"lower": True, "unit_diagonal": True, "check_finite": False}
    found: np.ndarray = solve_triangular(L, solve_triangular(L, b, trans="T", **how) / D, **how)
    return found


def _factors(robot: Robot, outs: Outs, H: np.ndarray) -> None:
    outs[0][...], outs[1][...] = _factorised(robot, H.reshape(robot.nv, -1))


def _solution(robot: Robot, outs: Outs, L: np.ndarray, D: np.ndarray, b: np.ndarray) -> None:
    outs[0][...] = _solved(robot, L.reshape(robot.nv, -1), D, b)


def _left(
    robot: Robot, ending: str, pose: Any, inertias: Any, v: Any, tau: np.ndarray, *f_ext: Any
) -> np.ndarray:
    """tau - C, the forces that accelerate the joints."""
    C = _vectors(robot, ending, pose, inertias, v, np.zeros(robot.nv), *f_ext)["tau"]
    return tau - _reduced_force(robot, C)


def _forward_dynamics(ending: str) -> Fill:
    def fill(robot: Robot, outs: Outs, pose: Any, inertias: Any, *state: np.ndarray) -> None:
        factors = _factorised(robot, _new_mass_matrix(robot, pose, inertias))
        outs[0][...] = _solved(robot, *factors, _left(robot, ending, pose, inertias, *state))

    return fill


class _Solver:
    """Solutions of H x = b for many b."""

    def __init__(self, robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> None:
        self.robot = robot
        if robot.coupling is None:
            self.factors = _data(robot).run(ARTICULATED, inertias=inertias, pose=pose)
        else:
            self.inverse = _dense_inverse(_new_mass_matrix(robot, pose, inertias))

    def rows(self, B: np.ndarray, out: np.ndarray) -> np.ndarray:
        """H^-1 of each row, written to ``out``."""
        if self.robot.coupling is not None:
            return np.matmul(B, self.inverse, out=out)
        data = _data(self.robot)
        carried = np.empty((data.sizes["bodies"], 6))
        known = {**self.factors, "b": np.ascontiguousarray(B), "x": out, "carried": carried}
        _loop(ACCELERATIONS, data.sizes, known, len(B))
        return out

    def matrix(self, out: np.ndarray) -> None:
        """H^-1."""
        self.rows(np.eye(self.robot.nv), out)
        _mirror(_before(self.robot), out)  # both halves are equal up to rounding


def _before(robot: Robot) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = robot.derived.get(
        "before the diagonal", lambda: _spans([[(0, k)] for k in range(robot.nv)])
    )
    return found


def _dense_inverse(H: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return np.full(H.shape, np.nan)


def _inverse(robot: Robot, outs: Outs, *state: np.ndarray) -> None:
    _Solver(robot, *state).matrix(outs[0])


def _aba_derivatives(ending: str) -> Fill:
    def fill(
        robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray, v: np.ndarray, *others: np.ndarray
    ) -> None:
        solver = _Solver(robot, pose, inertias)
        left = _left(robot, ending, pose, inertias, v, *others)[None]
        a = solver.rows(left, np.empty_like(left))[0]
        inverse, turned = outs[2], _new(*outs[0].shape)
        _forces_by_state(robot, outs[:2], _vectors(robot, ending, pose, inertias, v, a, *others[1:]))
        for x in outs[:2]:
            np.negative(x.T, out=turned)
            x[...] = solver.rows(turned, inverse).T
        solver.matrix(inverse)

    return fill


# ---- regressors ------------------------------------------------------------------------------------------


def _regressor(
    robot: Robot, outs: Outs, pose: np.ndarray, _: np.ndarray, v: np.ndarray, a: np.ndarray
) -> None:
    """Y, with motors' columns if there is a place for them."""
    data, (out,) = _data(robot), outs
    sizes = {"columns": out.shape[1]}
    found = data.run(EQUATIONS, sizes, pose=pose, qd=_full(robot, v), qdd=_full(robot, a))
    Y = out if robot.coupling is None else np.empty((data.sizes["dofs"], out.shape[1]))
    Y.fill(0.0)
    s, f, place, at = (found[name] for name in ("motions", "forces", "place", "at"))
    _add_powers(ROWS_OF_MOTIONS, Y, data.carried, s, f, place, at)
    if robot.coupling is not None:
        np.matmul(robot.coupling.G.T, Y, out=out)
    motors = out[:, COUNT * robot.nbodies :]
    if motors.size:
        np.fill_diagonal(motors, a)


def _regressor_entries(robot: Robot, outs: Outs, *state: np.ndarray) -> None:
    def found() -> np.ndarray:
        rows, columns = parameter_entries(robot).T
        return rows * (COUNT * robot.nbodies) + columns

    Y = _new(robot.nv, COUNT * robot.nbodies)
    _regressor(robot, [Y], *state)
    np.take(Y.reshape(-1), robot.derived.get("places of Y", found), out=outs[0], mode="clip")


_BY_FORCES = ("", WITH_FORCES, WITH_WORLD_FORCES)

WAYS: dict[str, tuple[str, Fill]] = {
    "crba": ("H", _mass_matrix),
    "crba_nonzeros": ("entries", _entries),
    "ltdl": ("factors", _factors),
    "ltdl_solve": ("solution", _solution),
    "forward_dynamics": ("accelerations", _forward_dynamics("")),
    "forward_dynamics_f_ext": ("accelerations", _forward_dynamics(WITH_FORCES)),
    "regressor": ("regressor", _regressor),
    "regressor_armature": ("regressor", _regressor),
    "regressor_nonzeros": ("regressor", _regressor_entries),
    "coriolis_matrix": ("derivatives", _coriolis_matrix),
    "inverse_mass_matrix": ("inverse", _inverse),
    **{"rnea_derivatives" + each: ("derivatives", _rnea_derivatives(each)) for each in _BY_FORCES},
    **{
        "aba_derivatives" + each: ("derivatives of accelerations", _aba_derivatives(each))
        for each in _BY_FORCES
    },
}
"""For each kernel what may make it too long, and what computes one state in its place.

That takes the robot, the arrays of the results and, where the kernel takes q, the poses and inertias of the
bodies; then the kernel's other arguments.
"""
