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
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.algorithms import ltdl as branches
from robokit.algorithms import world_axes
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.layout import lower_entries, parameter_entries
from robokit.dynamics.table import WITH_FORCES, WITH_WORLD_FORCES
from robokit.engine import NotFinite
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.engine.maker import engine
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.sparsity import dof_depths

MOST = 200_000
"""Operations that are written out."""

BRANCHES_FOR_LAPACK = 8.0
"""How long an operation along branches takes, in those of LAPACK's dense Cholesky: there each waits for the
place of the next ancestor, here vectors of neighbours go through the processor."""


def long_way(robot: Robot, name: Key, dtype: str = "float64") -> Callable[..., Any] | None:
    """The function that replaces a kernel of too many operations; None if there are few enough.

    Args:
        robot: the robot.
        name: of the kernel. What is returned takes its arguments, and ``out``.
        dtype: of the result; the computation is in double precision all the same.
    """
    if not isinstance(name, str) or name not in WAYS:
        return None
    needs, way = WAYS[name]
    if _cost(robot, needs) <= MOST:
        return None

    def run(*arguments: Any, out: Any = None) -> Any:
        results = way(robot, *arguments)
        several = isinstance(results, tuple)
        if out is None:
            if dtype == "float64":
                return results
            return tuple(x.astype(dtype) for x in results) if several else results.astype(dtype)
        outs = out if several else (out,)
        if len(outs) != (len(results) if several else 1):
            raise check.ShapeError(f"out: expected {len(results)} arrays, got {len(outs)}")
        for x, result in zip(outs, results if several else (results,), strict=True):
            check.output("out", x, result.shape, dtype)[...] = result
        return out

    return run


def is_written_out(robot: Robot, name: str) -> bool:
    """Whether a kernel is code for this robot."""
    return long_way(robot, name) is None


def _cost(robot: Robot, what: str) -> int:
    """Operations to write out, roughly.

    Some 12 an entry of H, RBDA 6.5 for the factors, 4 an entry for a solution, 6 an entry of the
    regressor. The places of a dense matrix count too: to read one takes as long to compile as 2
    operations, to write one as 4.
    """
    return robot.derived.get("costs written out", lambda: _costs(robot))[what]


def _costs(robot: Robot) -> dict[str, int]:
    depth = dof_depths(robot.dof_parent)
    entries, factors, places = int(depth.sum()), int((depth * (depth - 1)).sum()), robot.nv**2
    return {
        "H": max(12 * entries, 4 * places),
        "entries": 12 * entries,
        "factors": max(factors, 6 * places),
        "solution": max(4 * entries, 2 * places),
        "accelerations": factors,
        "regressor": 6 * len(parameter_entries(robot)) + 2 * robot.nv * COUNT * robot.nbodies,
        "derivatives": max(120 * entries, 8 * places),
        "inverse": 2 * len(depth) * entries,
        "derivatives of accelerations": 4 * len(depth) * entries,
    }


# ---- the robot as data -----------------------------------------------------------------------------------

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
        _loop(run, sizes, **known)
        return known


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
        *COLUMNS, INERTIAS, POSE, *_of_dofs("in", "rotors", "qd", "qdd"), A0, *_of_bodies("in", f_ext=6, held=6),
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


def _loop(run: LoopKernel, sizes: dict[str, int], **arrays: np.ndarray) -> None:
    """Run a kernel on one state, in its arrays."""
    given = [arrays[a.name] for a in run.arrays]
    if engine() == "python":
        run._python(sizes, given, None)
    else:
        run.single(sizes, given)()


# ---- arguments of a batch --------------------------------------------------------------------------------


def _each(
    robot: Robot,
    names: Sequence[str],
    given: Sequence[Any],
    one: Callable[..., Any],
    shapes: Sequence[tuple[int, ...]],
) -> Any:
    """What a function gives for each state: one of the robot, its pose, its inertias and the other arguments.

    Args:
        robot: the robot.
        names: of the arguments, "q" first.
        given: the same, as they were given.
        one: the function.
        shapes: of its results.
    """
    of_one = {"q": robot.nq, "f_ext": 6 * (robot.nbodies + 1)}
    sizes = [of_one.get(name, robot.nv) for name in names]
    arrays = [check.argument(name, x, n) for name, x, n in zip(names, given, sizes, strict=True)]
    inertias = _inertias(robot)
    samples = [("samples", inertias.reshape(len(inertias), -1))] if inertias.ndim == 3 else []
    many = check.batch_size([*names, *(n for n, _ in samples)], [*arrays, *(x for _, x in samples)])
    check.check_values(names[1:], arrays[1:], ())
    poses = kernel(robot, "body_poses")(arrays[0])
    results = [np.empty(() if many is None else (many, *shape)) for shape in shapes]
    for k in range(1 if many is None else many):
        pose = poses if poses.ndim == 3 else poses[k]
        own = [np.ascontiguousarray(x if x.ndim == 1 else x[k]) for x in arrays[1:]]
        found = one(robot, pose.reshape(-1, 12), inertias if inertias.ndim == 2 else inertias[k], *own)
        if many is None:
            return found
        for result, x in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
            result[k] = x
    return tuple(results) if len(results) > 1 else results[0]


def _full(robot: Robot, v: np.ndarray) -> np.ndarray:
    """Velocities of all joints, the followers' too."""
    return v if robot.coupling is None else np.ascontiguousarray(robot.coupling.G @ v)


def _reduced(robot: Robot, A: np.ndarray) -> np.ndarray:
    """G^T A G, where joints follow others."""
    return A if robot.coupling is None else robot.coupling.G.T @ A @ robot.coupling.G


# ---- matrices --------------------------------------------------------------------------------------------


def _add_powers(
    run: LoopKernel,
    out: np.ndarray,
    spans: dict[str, np.ndarray],
    rows: Sequence[np.ndarray],
    columns: Sequence[np.ndarray],
    at_row: np.ndarray,
    at_column: np.ndarray | None = None,
) -> None:
    sizes = {"rows": out.shape[0], "columns": out.shape[1], "terms": len(rows), "runs": len(spans["spans"])}
    R, C = np.array(rows), np.array(columns)
    at_column = at_row if at_column is None else at_column
    _loop(run, sizes, **spans, R=R, C=C, at_row=at_row, at_column=at_column, out=out)


def _mirror(spans: dict[str, np.ndarray], H: np.ndarray) -> None:
    _loop(MIRRORED, {"rows": len(H), "runs": len(spans["spans"])}, **spans, H=H)


def _mass_matrix(robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> np.ndarray:
    data = _data(robot)
    found = data.run(COMPOSITES, inertias=inertias, pose=pose)
    H = np.zeros((robot.tree.nv,) * 2)
    _add_powers(ROWS_OF_MOTIONS, H, data.upper, found["motions"], found["forces"], found["place"])
    _mirror(data.lower, H)
    H.flat[:: len(H) + 1] += data.rotors
    return _reduced(robot, H)


def mass_matrix(robot: Robot, q: Any) -> np.ndarray:
    """H, (nv, nv) or (B, nv, nv).

    Args:
        robot: the robot.
        q: configuration, (nq,) or (B, nq).
    """
    return _each(robot, ["q"], [q], _mass_matrix, [(robot.nv, robot.nv)])


def _entries(robot: Robot, q: Any) -> np.ndarray:
    rows, columns = robot.derived.get("lower entries", lambda: np.array(lower_entries(robot)).T)
    return mass_matrix(robot, q)[..., rows, columns]


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


def _forces_by_state(robot: Robot, found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """dtau/dq and dtau/dv from their vectors."""
    data, at = _data(robot), found["place"]
    s, psi, psi2, both = found["motions"]
    by_q, by_v, U, W, turned, _ = found["forces"]
    dq, dv = np.zeros((2, data.sizes["dofs"], data.sizes["dofs"]))
    _add_powers(ROWS_OF_FORCES, dq, data.below, (W, U, -turned), (psi, psi2, s), at)
    _add_powers(ROWS_OF_MOTIONS, dq, data.above, (s,), (by_q,), at)
    _add_powers(ROWS_OF_FORCES, dv, data.below, (W, U), (s, both), at)
    _add_powers(ROWS_OF_MOTIONS, dv, data.above, (s,), (by_v,), at)
    return _reduced(robot, dq), _reduced(robot, dv)


def _rnea_derivatives(ending: str) -> Callable[..., Any]:
    def one(robot: Robot, *state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _forces_by_state(robot, _vectors(robot, ending, *state))

    def run(robot: Robot, *given: Any) -> Any:
        return _each(robot, ["q", "v", "a", "f_ext"][: len(given)], given, one, [(robot.nv, robot.nv)] * 2)

    return run


def _coriolis_matrix(robot: Robot, q: Any, v: Any) -> np.ndarray:
    def one(robot: Robot, pose: np.ndarray, inertias: np.ndarray, v: np.ndarray) -> np.ndarray:
        found = _vectors(robot, "", pose, inertias, v, np.zeros(robot.nv))
        data, at = _data(robot), found["place"]
        s, psi, _, both = found["motions"]
        _, by_v, U, W, _, own = found["forces"]
        C = np.zeros((data.sizes["dofs"],) * 2)
        _add_powers(ROWS_OF_FORCES, C, data.below, (0.5 * W, U), (s, both - psi), at)
        _add_powers(ROWS_OF_MOTIONS, C, data.above, (s,), (0.5 * by_v + own,), at)
        return _reduced(robot, C)

    return _each(robot, ["q", "v"], [q, v], one, [(robot.nv, robot.nv)])


# ---- factors and solutions -------------------------------------------------------------------------------


def _by_branches(robot: Robot) -> bool:
    """Whether H is factorised along the tree's branches: fewer operations, at their price, than LAPACK's."""
    return 3.0 * BRANCHES_FOR_LAPACK * _cost(robot, "accelerations") < 2.0 * robot.nv**3


def _factorised(robot: Robot, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and D of one matrix; NaN where it is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    if _by_branches(robot):
        L, D = np.zeros_like(H), np.empty(len(H))
        _loop(LTDL, {"dofs": len(H)}, parent=_lambda(robot), H=np.ascontiguousarray(H), L=L, D=D)
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
        _loop(LTDL_SOLVE, {"dofs": len(x)}, parent=_lambda(robot), L=np.ascontiguousarray(L), D=D.copy(), x=x)
        return x
    how = {"lower": True, "unit_diagonal": True, "check_finite": False}
    found: np.ndarray = solve_triangular(L, solve_triangular(L, b, trans="T", **how) / D, **how)
    return found


def _matrix(robot: Robot, name: str, flat: Any) -> np.ndarray:
    flat = check.argument(name, flat, robot.nv**2)
    check.check_values([name], [flat], ())
    return flat.reshape(*flat.shape[:-1], robot.nv, robot.nv)


def _factors(robot: Robot, H: Any) -> tuple[np.ndarray, np.ndarray]:
    H = _matrix(robot, "H", H)
    if H.ndim == 2:
        return _factorised(robot, H)
    L, D = np.empty(H.shape), np.empty(H.shape[:-1])
    for k, each in enumerate(H):
        L[k], D[k] = _factorised(robot, each)
    return L, D


def _solution(robot: Robot, L: Any, D: Any, b: Any) -> np.ndarray:
    D, b = (check.argument(name, x, robot.nv) for name, x in (("D", D), ("b", b)))
    check.check_values(["D", "b"], [D, b], ())
    L = _matrix(robot, "L", L)
    batch = np.broadcast_shapes(L.shape[:-2], D.shape[:-1], b.shape[:-1])
    L, D, b = (np.broadcast_to(x, (*batch, *x.shape[-n:])) for x, n in ((L, 2), (D, 1), (b, 1)))
    x = np.empty(b.shape)
    for place in np.ndindex(batch):
        x[place] = _solved(robot, L[place], D[place], b[place])
    return x


def _forward_dynamics(ending: str) -> Callable[..., Any]:
    def one(
        robot: Robot,
        pose: np.ndarray,
        inertias: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        *f_ext: np.ndarray,
    ) -> np.ndarray:
        C = _vectors(robot, ending, pose, inertias, v, np.zeros(robot.nv), *f_ext)["tau"]
        factors = _factorised(robot, _mass_matrix(robot, pose, inertias))
        return _solved(robot, *factors, tau - _reduced_force(robot, C))

    def run(robot: Robot, *given: Any) -> Any:
        a = _each(robot, ["q", "v", "tau", "f_ext"][: len(given)], given, one, [(robot.nv,)])
        if not np.isfinite(a).all():
            raise NotFinite("forward_dynamics", a)
        return a

    return run


def _reduced_force(robot: Robot, tau: np.ndarray) -> np.ndarray:
    return tau if robot.coupling is None else robot.coupling.G.T @ tau


class _Solver:
    """Solutions of H x = b for many b."""

    def __init__(self, robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> None:
        self.robot = robot
        if robot.coupling is None:
            self.factors = _data(robot).run(ARTICULATED, inertias=inertias, pose=pose)
        else:
            self.inverse = _dense_inverse(_mass_matrix(robot, pose, inertias))

    def rows(self, B: np.ndarray) -> np.ndarray:
        """H^-1 of each row."""
        if self.robot.coupling is not None:
            return B @ self.inverse
        data = _data(self.robot)
        known = {**self.factors, "b": np.ascontiguousarray(B), "x": np.empty(B.shape)}
        known["carried"] = np.empty((data.sizes["bodies"], 6))
        given = [known[a.name] for a in ACCELERATIONS.arrays]
        if engine() == "python":
            ACCELERATIONS._python(data.sizes, given, len(B))
        else:
            ACCELERATIONS.batch(data.sizes, given, len(B))()
        return known["x"]

    def matrix(self) -> np.ndarray:
        """H^-1."""
        found = self.rows(np.eye(self.robot.nv))
        _mirror(_before(self.robot), found)  # both halves are equal up to rounding
        return found


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


def _inverse(robot: Robot, q: Any) -> np.ndarray:
    found = _each(robot, ["q"], [q], lambda *state: _Solver(*state).matrix(), [(robot.nv, robot.nv)])
    if not np.isfinite(found).all():
        raise NotFinite("inverse_mass_matrix", found)
    return found


def _aba_derivatives(ending: str) -> Callable[..., Any]:
    def one(
        robot: Robot,
        pose: np.ndarray,
        inertias: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        *f_ext: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        solver = _Solver(robot, pose, inertias)
        C = _vectors(robot, ending, pose, inertias, v, np.zeros(robot.nv), *f_ext)["tau"]
        a = solver.rows((tau - _reduced_force(robot, C))[None])[0]
        by_state = _forces_by_state(robot, _vectors(robot, ending, pose, inertias, v, a, *f_ext))
        return (*(np.ascontiguousarray(solver.rows(-x.T).T) for x in by_state), solver.matrix())

    def run(robot: Robot, *given: Any) -> Any:
        shapes = [(robot.nv, robot.nv)] * 3
        found = _each(robot, ["q", "v", "tau", "f_ext"][: len(given)], given, one, shapes)
        if not all(np.isfinite(x).all() for x in found):
            raise NotFinite("aba_derivatives", found)
        return found

    return run


# ---- regressors ------------------------------------------------------------------------------------------


def _regressor_of_one(
    robot: Robot, pose: np.ndarray, inertias: np.ndarray, v: np.ndarray, a: np.ndarray
) -> np.ndarray:
    data = _data(robot)
    columns = COUNT * robot.nbodies
    found = data.run(EQUATIONS, {"columns": columns}, pose=pose, qd=_full(robot, v), qdd=_full(robot, a))
    Y = np.zeros((data.sizes["dofs"], columns))
    _add_powers(
        ROWS_OF_MOTIONS, Y, data.carried, found["motions"], found["forces"], found["place"], found["at"]
    )
    return Y if robot.coupling is None else robot.coupling.G.T @ Y


def regressor(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    """Y, (nv, 10 N) or (B, nv, 10 N)."""
    shape = robot.nv, COUNT * robot.nbodies
    return _each(robot, ["q", "v", "a"], [q, v, a], _regressor_of_one, [shape])


def _regressor_armature(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    Y = regressor(robot, q, v, a)
    rates = check.argument("a", a, robot.nv)[..., None] * np.eye(robot.nv)
    return np.concatenate([Y, np.broadcast_to(rates, (*Y.shape[:-1], robot.nv))], axis=-1)


def _regressor_entries(robot: Robot, q: Any, v: Any, a: Any) -> np.ndarray:
    rows, columns = robot.derived.get("entries of Y", lambda: np.array(parameter_entries(robot)).T)
    return regressor(robot, q, v, a)[..., rows, columns]


_BY_FORCES = ("", WITH_FORCES, WITH_WORLD_FORCES)

WAYS: dict[str, tuple[str, Callable[..., Any]]] = {
    "crba": ("H", mass_matrix),
    "crba_nonzeros": ("entries", _entries),
    "ltdl": ("factors", _factors),
    "ltdl_solve": ("solution", _solution),
    "forward_dynamics": ("accelerations", _forward_dynamics("")),
    "forward_dynamics_f_ext": ("accelerations", _forward_dynamics(WITH_FORCES)),
    "regressor": ("regressor", regressor),
    "regressor_armature": ("regressor", _regressor_armature),
    "regressor_nonzeros": ("regressor", _regressor_entries),
    "coriolis_matrix": ("derivatives", _coriolis_matrix),
    "inverse_mass_matrix": ("inverse", _inverse),
    **{"rnea_derivatives" + each: ("derivatives", _rnea_derivatives(each)) for each in _BY_FORCES},
    **{
        "aba_derivatives" + each: ("derivatives of accelerations", _aba_derivatives(each))
        for each in _BY_FORCES
    },
}
"""For each kernel what may make it too long, and the other way."""
