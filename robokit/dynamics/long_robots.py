"""Robots with hundreds of joints: loops over the robot as data, in place of straight lines.

H of a chain of a thousand joints has half a million entries, and its factorisation 1e8 operations. None of
this can be written out as straight-line code. Above :data:`MOST` operations a robot's own code computes no
more than where its bodies are. The rest are loops (algorithms/world_axes.py, ltdl.py) whose code is the same
for all robots and is compiled once a machine. What they work with is kept with the robot.

- H with few entries, which can be written out, is filled with these.
- H^-1 and the derivatives of accelerations are solutions by articulated bodies, O(n) for each column.
- L and D follow the tree's branches, or come from LAPACK where that takes less time (:func:`_by_branches`).
  With P the permutation that reverses the order, P H P = (P L^T P) (P D P) (P L P) and P L^T P is a lower
  triangle: the factors of H = L^T D L are the reversed LDL^T ones of P H P. No entry outside the tree's
  pattern fills in, because RBDA 6.5 eliminates in that very order.
- Coupled joints, v_full = G v, get G^T A G of the matrices of all joints, and LAPACK's inverse.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from robokit import arguments as check
from robokit.algorithms import ltdl_loops as branches
from robokit.algorithms import world_axes
from robokit.dynamics.build import Key, kernel
from robokit.dynamics.layout import lower_entries, parameter_entries, parameter_pattern
from robokit.dynamics.table import KERNELS, WITH_FORCES, WITH_WORLD_FORCES
from robokit.engine import NotFinite
from robokit.engine.loops.kernel import ArrayOf, LoopKernel, LoopRunner
from robokit.engine.maker import engine
from robokit.engine.memory import address, result_array
from robokit.engine.signature import Signature
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot
from robokit.model.tree import dof_depths

MOST = 200_000  # operations that are written out

BRANCHES_FOR_LAPACK = 17.0
"""How long an operation along branches takes, in those of LAPACK's dense Cholesky: 1.1 ns over 0.065 ns (AMD
EPYC with AVX-512). There each waits for the place of the next ancestor; here vectors of neighbours go through
the processor."""


def long_way(robot: Robot, name: Key, dtype: str = "float64") -> Callable[..., Any] | None:
    """The function that replaces a kernel of too many operations; None if there are few enough.

    It takes the kernel's arguments, and ``out``. ``dtype`` is that of the result alone.
    """
    if not isinstance(name, str) or name not in WAYS or _cost(robot, WAYS[name][0]) <= MOST:
        return None
    found: Callable[..., Any] = robot.derived.get((name, dtype), lambda: _Way(robot, name, dtype))
    return found


def _cost(robot: Robot, what: str) -> int:
    """Operations to write out, roughly.

    The weights are such that :data:`MOST` of them take some two seconds to record and compile: 12 an entry
    of H, and so on. The places of a dense matrix count too, which are read or written one by one.
    """
    return robot.derived.get("costs written out", lambda: _costs(robot))[what]


def _costs(robot: Robot) -> dict[str, int]:
    depth = dof_depths(robot.dof_parent)
    entries, factors, places = int(depth.sum()), int((depth * (depth - 1)).sum()), robot.nv**2
    parameters = COUNT * int(parameter_pattern(robot).sum())
    return {
        "H": max(12 * entries, 4 * places),
        "entries": 12 * entries,
        "factors": max(3 * factors, 12 * places),
        "solution": max(12 * entries, 4 * places),
        "accelerations": 3 * factors,
        "regressor": 9 * parameters + 3 * robot.nv * COUNT * robot.nbodies,
        "derivatives": max(120 * entries, 8 * places),
        "inverse": 3 * len(depth) * entries,
        "derivatives of accelerations": 4 * len(depth) * entries,
    }


# ---- the robot as data -----------------------------------------------------------------------------------

Arrays = dict[str, np.ndarray]


def _data(robot: Robot) -> Arrays:
    """The robot's arrays as algorithms/world_axes.py takes them, those of all joints."""
    found: Arrays = robot.derived.get("as data", lambda: _as_data(robot))
    return found


def _as_data(robot: Robot) -> Arrays:
    tree, none = robot.tree, np.zeros((robot.nbodies + 1, 6))
    first, last = [s.start for s in tree.v_slice], [s.stop for s in tree.v_slice]
    path: list[list[tuple[int, int]]] = [[]]
    of_dof, above, carried = [], [], []
    for i in range(1, tree.n + 1):
        runs = path[tree.parent[i]]
        joined = bool(runs) and runs[-1][1] == first[i]
        path.append([*runs[:-1], (runs[-1][0], last[i])] if joined else [*runs, (first[i], last[i])])
        end, count = tree.subtree[i].stop, last[i] - first[i]
        of_dof += [path[i]] * count
        above += [(last[i], last[end - 1])] * count
        carried += [(COUNT * (i - 1), COUNT * (end - 1))] * count
    ends = np.cumsum([0, *map(len, of_dof)])
    whole = {
        "parent": (0, *tree.parent[1:]),
        "first": first,
        "last": last,
        "begin": ends[:-1],
        "end": ends[1:],
        "below": np.reshape([run for runs in of_dof for run in runs], (-1, 2)),
        "above": np.reshape(above, (-1, 2)),
        "carried": np.reshape(carried, (-1, 2)),
        "lambda": robot.dof_parent,
    }
    real = {
        "S": np.reshape([list(s) for joint in tree.joint[1:] for s in joint.S.columns], (-1, 6)),
        "rotors": [x for each in tree.armature[1:] for x in each] or [0.0] * tree.nv,
        "a0": list(tree.a0),
        "inertias": robot.inertial_parameters,
        "f_ext": none,
        "held": none,
        "qdd": np.zeros(tree.nv),
    }
    arrays = {name: np.array(x, np.int32) for name, x in whole.items()}
    return arrays | {name: np.array(x, float) for name, x in real.items()}


SHAPES: dict[tuple[int | str, ...], str] = {
    ("bodies",): "parent first last",
    ("dofs",): "begin end rotors qd qdd tau b x lambda Dinv D",
    ("dofs", 2): "above carried",
    ("runs", 2): "below",
    ("dofs", 6): "S s U",
    ("bodies", COUNT): "inertias Ic",
    ("bodies", 12): "pose Bc",
    ("bodies", 6): "f_ext held v a fc hc passed",
    ("bodies", 21): "IA",
    ("bodies", 3): "offset",
    (3,): "a0",
    (4, 6, "dofs"): "motions",
    (5, 6, "dofs"): "forces",
    (1, 6, "columns"): "units",
    (3, "dofs"): "place",
    (3, "columns"): "at",
    ("dofs", "dofs"): "H dq dv C L",
    ("dofs", "columns"): "Y",
}
WHOLE = ("parent", "first", "last", "begin", "end", "above", "carried", "below", "lambda")
COMMON = {*WHOLE, "S", "rotors", "a0", "s", "U", "Dinv", "offset"}
"""Arrays that all states share, or all vectors of a solution."""


def _loops(function: Callable[[Any], None], arguments: str, results: str, work: str = "") -> LoopKernel:
    """A function of algorithms/world_axes.py on arrays of :data:`SHAPES`; results hold what is added to."""
    shape_of = {name: shape for shape, names in SHAPES.items() for name in names.split()}
    arrays = [
        ArrayOf(
            name,
            shape_of[name],
            role,
            "integer" if name in WHOLE else "real",
            role == "in" and name in COMMON,
        )
        for role, names in (("in", arguments), ("inout", results), ("work", work))
        for name in names.split()
    ]
    sizes = list(dict.fromkeys(n for a in arrays for n in a.shape if isinstance(n, str)))
    names = [*sizes, *(a.name for a in arrays)]

    def run(*values: Any) -> None:
        function(SimpleNamespace(**dict(zip(names, values, strict=True))))

    return LoopKernel(f"long_{function.__name__.strip('_')}", run, sizes, arrays)


TREE = "parent first last S pose inertias rotors"
MOVES = TREE + " above begin end below qd qdd a0 f_ext held"
VECTORS = "motions forces place v a Ic Bc fc hc"
MASS_MATRIX = _loops(world_axes.mass_matrix, TREE + " above", "H", "motions forces place Ic")
BIAS = _loops(world_axes.bias, MOVES, "tau", VECTORS)
FORCES = _loops(world_axes.force_derivatives, MOVES, "dq dv", VECTORS + " tau")
CORIOLIS = _loops(world_axes.coriolis_matrix, MOVES, "C", VECTORS + " tau")
REGRESSOR = _loops(
    world_axes.regressor, "parent first last S pose carried qd qdd a0", "Y", "motions place units at v a"
)
FACTORS = _loops(world_axes.factors, TREE, "s U Dinv offset", "IA")
SOLVE = _loops(world_axes.solve, "parent first last s U Dinv offset b", "x", "passed")
MIRROR = _loops(world_axes.mirror, "", "H")


def _ltdl(x: Any) -> None:
    branches.factorise(x.dofs, getattr(x, "lambda"), x.H, x.L, x.D)


def _ltdl_solve(x: Any) -> None:
    branches.solve(x.dofs, getattr(x, "lambda"), x.L, x.D, x.x)


LTDL, LTDL_SOLVE = _loops(_ltdl, "lambda H", "L D"), _loops(_ltdl_solve, "lambda L D", "x")


class _Ready:
    """A kernel with the arrays and the memory for one state of a robot."""

    def __init__(self, run: LoopKernel, known: Arrays, sizes: dict[str, int]) -> None:
        self.run, self.sizes = run, sizes
        self.arrays = {a.name: known[a.name] if a.name in known else a.zeros(sizes) for a in run.taken}
        self.place = {name: k for k, name in enumerate(self.arrays)}
        self.pointers = np.array([address(x) for x in self.arrays.values()], np.uint64)
        self._compile()

    def _compile(self) -> None:
        self.version = self.run.version
        self.code = self.run.linked(1, "float64", self.sizes) if engine() != "python" else None
        if self.code is not None:
            of_two = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # one state has no mask
            self.function = self.run.counted(of_two(self.code[0]), "float64")
            self.at = address(self.pointers), self.code[1]

    def __call__(self, arguments: Arrays) -> None:
        if self.code is None or engine() == "python":
            self.run.on_memory(*self.sizes.values(), *({**self.arrays, **arguments}.values()))
            return
        for name, x in arguments.items():
            self.pointers[self.place[name]] = address(x)
        if self.version != self.run.version:
            self._compile()
        self.function(*self.at)


def _loop(robot: Robot, run: LoopKernel, **arguments: np.ndarray) -> None:
    """Run a kernel on one state, in its arrays; zeros stand for inputs that are not given."""
    spare: list[_Ready] = robot.derived.get((run, *((name, x.shape) for name, x in arguments.items())), list)
    try:
        ready = spare.pop()  # each thread has its own
    except IndexError:
        known = _data(robot)
        sizes = {"bodies": len(known["parent"]), "dofs": len(known["S"]), "runs": len(known["below"])}
        for a in run.taken:
            if a.name in arguments:
                sizes |= {
                    n: m for n, m in zip(a.shape, arguments[a.name].shape, strict=True) if isinstance(n, str)
                }
        ready = _Ready(run, known, {name: sizes[name] for name in run.sizes})
    ready(arguments)
    spare.append(ready)


# ---- calls -----------------------------------------------------------------------------------------------

Outs = Sequence[np.ndarray]  # results of one state, to write to

Fill = Callable[..., None]


class _Way:
    """A function that replaces a kernel; it takes the kernel's arguments, and ``out``."""

    def __init__(self, robot: Robot, name: str, dtype: str) -> None:
        row = KERNELS[name]
        inputs = [(each, row.input(each).size(robot)) for each in row.inputs.split()]
        outputs = list(zip(row.symbols.split(), row.result.shapes(robot), strict=True))
        self.robot, self.fill = robot, WAYS[name][1]
        self.signature = Signature(name, inputs, outputs, "float64", [], [], row.result.finite)
        self.shown = replace(self.signature, dtype=dtype)
        self.posed = inputs[0][0] == "q"
        parameters = robot.inertial_parameters
        self.inertias = np.ascontiguousarray(parameters)
        self.samples = [self.inertias.reshape(len(parameters), -1)] if parameters.ndim == 3 else []
        self.samples = self.samples if row.inertial else []

    def __call__(self, *arguments: Any, out: Any = None) -> Any:
        if self.fill is _mass_matrix and _cost(self.robot, "entries") <= MOST:
            return self._filled(kernel(self.robot, "crba_nonzeros")(*arguments), out)
        signature, posed = self.signature, self.posed
        arrays = signature.arrays(arguments)
        names = [*signature.input_names, *["samples"] * len(self.samples)]
        many = check.batch_size(names, [*arrays, *self.samples])
        poses = kernel(self.robot, "body_poses")(arrays[0]) if posed else None
        check.check_values(signature.input_names[posed:], arrays[posed:], ())
        outs = self.shown.outs(out, many)
        results = outs if self.shown.dtype == "float64" else signature.outs(None, many)
        for k in range(1 if many is None else many):
            state = [np.ascontiguousarray(x if x.ndim == 1 else x[k]) for x in arrays[posed:]]
            if poses is not None:
                pose = (poses if poses.ndim == 3 else poses[k]).reshape(-1, 12)
                state = [pose, self.inertias if self.inertias.ndim == 2 else self.inertias[k], *state]
            self.fill(self.robot, results if many is None else [x[k] for x in results], *state)
        if signature.finite and not all(np.isfinite(x).all() for x in results):
            raise NotFinite(signature.name, signature.answer(results))
        if results is not outs:
            for x, result in zip(outs, results, strict=True):
                x[...] = result
        return signature.answer(outs, out) if out is None else out

    def _filled(self, entries: np.ndarray, out: Any) -> Any:
        """H from the entries that the tree leaves; pages of zeros that none is in are never touched."""
        shape = (*entries.shape[:-1], *self.signature.output_shapes[0])
        if out is None:
            H = np.zeros(shape, self.shown.dtype)
        else:
            H = check.output("out", out, shape, self.shown.dtype)
            H.fill(0.0)
        flat = H.reshape(*entries.shape[:-1], -1)
        for places in _places(self.robot):
            flat[..., places] = entries
        return H if out is None else out


def _places(robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of one half of H are in a flat matrix, and those of the other half."""

    def found() -> tuple[np.ndarray, np.ndarray]:
        rows, columns = lower_entries(robot).T
        return rows * robot.nv + columns, columns * robot.nv + rows

    places: tuple[np.ndarray, np.ndarray] = robot.derived.get("places of H", found)
    return places


def _for_all(robot: Robot, run: LoopKernel, outs: Outs, names: str, **arguments: np.ndarray) -> None:
    """Matrices of all joints to add to; G^T A G of them, where joints follow others."""
    coupling, n = robot.coupling, robot.tree.nv
    found = outs if coupling is None else [np.empty((n, n)) for _ in outs]
    for A in found:
        A.fill(0.0)
    _loop(robot, run, **arguments, **dict(zip(names.split(), found, strict=True)))
    if coupling is not None:
        for out, A in zip(outs, found, strict=True):
            out[...] = coupling.G.T @ A @ coupling.G


def _full(robot: Robot, v: np.ndarray) -> np.ndarray:
    """Velocities of all joints, those that follow others included."""
    return v if robot.coupling is None else np.ascontiguousarray(robot.coupling.G @ v)


# ---- matrices --------------------------------------------------------------------------------------------


def _mass_matrix(robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray) -> None:
    _for_all(robot, MASS_MATRIX, outs, "H", pose=pose, inertias=inertias)


def _new_mass_matrix(robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> np.ndarray:
    H = result_array((robot.nv, robot.nv), "float64")
    _mass_matrix(robot, [H], pose, inertias)
    return H


def _entries(robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray) -> None:
    H = _new_mass_matrix(robot, pose, inertias)
    np.take(H.reshape(-1), _places(robot)[0], out=outs[0], mode="clip")


def _motion(
    robot: Robot, ending: str, pose: Any, inertias: Any, v: Any, a: Any = None, *f_ext: Any
) -> Arrays:
    """A state as the loops take it."""
    arguments = {"pose": pose, "inertias": inertias, "qd": _full(robot, v)}
    if a is not None:
        arguments["qdd"] = _full(robot, a)
    forces = {"held" if ending == WITH_WORLD_FORCES else "f_ext": f.reshape(-1, 6) for f in f_ext}
    return arguments | forces


def _rnea_derivatives(ending: str) -> Fill:
    return lambda robot, outs, *state: _for_all(
        robot, FORCES, outs, "dq dv", **_motion(robot, ending, *state)
    )


def _coriolis_matrix(robot: Robot, outs: Outs, *state: np.ndarray) -> None:
    _for_all(robot, CORIOLIS, outs, "C", **_motion(robot, "", *state))


def _regressor(robot: Robot, outs: Outs, pose: Any, _: Any, v: np.ndarray, a: np.ndarray) -> None:
    """Y, with motors' columns if there is a place for them."""
    (out,), coupling = outs, robot.coupling
    Y = out if coupling is None else np.empty((robot.tree.nv, out.shape[1]))
    Y.fill(0.0)
    _loop(robot, REGRESSOR, pose=pose, qd=_full(robot, v), qdd=_full(robot, a), Y=Y)
    if coupling is not None:
        np.matmul(coupling.G.T, Y, out=out)
    motors = out[:, COUNT * robot.nbodies :]
    if motors.size:
        np.fill_diagonal(motors, a)


def _regressor_entries(robot: Robot, outs: Outs, *state: np.ndarray) -> None:
    def found() -> np.ndarray:
        rows, columns = parameter_entries(robot).T
        return rows * (COUNT * robot.nbodies) + columns

    Y = result_array((robot.nv, COUNT * robot.nbodies), "float64")
    _regressor(robot, [Y], *state)
    np.take(Y.reshape(-1), robot.derived.get("places of Y", found), out=outs[0], mode="clip")


# ---- factors and solutions -------------------------------------------------------------------------------


def _by_branches(robot: Robot) -> bool:
    """Whether H is factorised along the tree's branches: fewer operations, at their price, than LAPACK's."""
    return BRANCHES_FOR_LAPACK * _cost(robot, "accelerations") < robot.nv**3


def _factorised(robot: Robot, H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and D of one matrix; NaN where it is not positive definite."""
    from scipy.linalg import LinAlgError, cholesky

    if _by_branches(robot):
        L, D = np.zeros(H.shape), np.zeros(len(H))
        _loop(robot, LTDL, H=np.ascontiguousarray(H), L=L, D=D)
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
        _loop(robot, LTDL_SOLVE, L=np.ascontiguousarray(L), D=np.ascontiguousarray(D), x=x)
        return x
    how = {"lower": True, "unit_diagonal": True, "check_finite": False}
    found: np.ndarray = solve_triangular(L, solve_triangular(L, b, trans="T", **how) / D, **how)
    return found


def _dense_solution(H: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x of H x = b; NaN where H is not positive definite."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        found: np.ndarray = cho_solve(cho_factor(H, check_finite=False), b, check_finite=False)
    except LinAlgError:
        return np.full_like(b, np.nan)
    return found


def _factors(robot: Robot, outs: Outs, H: np.ndarray) -> None:
    outs[0][...], outs[1][...] = _factorised(robot, H.reshape(robot.nv, -1))


def _solution(robot: Robot, outs: Outs, L: np.ndarray, D: np.ndarray, b: np.ndarray) -> None:
    outs[0][...] = _solved(robot, L.reshape(robot.nv, -1), D, b)


def _left(robot: Robot, ending: str, pose: Any, inertias: Any, v: Any, tau: Any, *f_ext: Any) -> np.ndarray:
    """tau - C: the forces that are left to accelerate the joints."""
    C = np.empty(robot.tree.nv)
    _loop(robot, BIAS, **_motion(robot, ending, pose, inertias, v, None, *f_ext), tau=C)
    left: np.ndarray = tau - (C if robot.coupling is None else robot.coupling.G.T @ C)
    return left


def _forward_dynamics(ending: str) -> Fill:
    def fill(robot: Robot, outs: Outs, pose: Any, inertias: Any, *state: np.ndarray) -> None:
        H, left = _new_mass_matrix(robot, pose, inertias), _left(robot, ending, pose, inertias, *state)
        if _by_branches(robot):
            outs[0][...] = _solved(robot, *_factorised(robot, H), left)
        else:
            outs[0][...] = _dense_solution(H, left)

    return fill


class _Solver:
    """Solutions of H x = b for many b."""

    def __init__(self, robot: Robot, pose: np.ndarray, inertias: np.ndarray) -> None:
        self.robot, n = robot, robot.nv
        if robot.coupling is None:
            new = {"s": (n, 6), "U": (n, 6), "Dinv": (n,), "offset": (robot.nbodies + 1, 3)}
            self.factors = {name: np.empty(shape) for name, shape in new.items()}
            _loop(robot, FACTORS, pose=pose, inertias=inertias, **self.factors)
            return
        try:
            self.inverse = np.linalg.inv(_new_mass_matrix(robot, pose, inertias))
        except np.linalg.LinAlgError:
            self.inverse = np.full((n, n), np.nan)

    def rows(self, B: np.ndarray) -> np.ndarray:
        """H^-1 of each row."""
        robot, x = self.robot, np.empty(B.shape)
        if robot.coupling is not None:
            return np.matmul(B, self.inverse, out=x)
        known = {**_data(robot), **self.factors, "b": B, "x": x}
        sizes = {"bodies": len(known["parent"]), "dofs": robot.nv}
        if engine() == "python":
            for b, one in zip(B, x, strict=True):
                SOLVE.on_memory(*(known[a.name] for a in SOLVE.taken[:-2]), b, one)
            return x
        runner: LoopRunner = robot.derived.get("solutions", lambda: LoopRunner(SOLVE, sizes))
        arguments = [known[a.name][None, None] if a.shared else known[a.name][None] for a in SOLVE.taken]
        runner.once(arguments, len(B))()
        return x

    def matrix(self, out: np.ndarray, found: np.ndarray | None = None) -> None:
        """H^-1, whose halves are equal up to rounding; made of what was found."""
        out[...] = self.rows(np.eye(len(out))) if found is None else found
        _loop(self.robot, MIRROR, H=out)


def _inverse(robot: Robot, outs: Outs, *state: np.ndarray) -> None:
    _Solver(robot, *state).matrix(outs[0])


def _aba_derivatives(ending: str) -> Fill:
    def fill(
        robot: Robot, outs: Outs, pose: np.ndarray, inertias: np.ndarray, v: np.ndarray, *others: np.ndarray
    ) -> None:
        solver, n = _Solver(robot, pose, inertias), robot.nv
        a = solver.rows(_left(robot, ending, pose, inertias, v, *others)[None])[0]
        _rnea_derivatives(ending)(robot, outs[:2], pose, inertias, v, a, *others[1:])
        B = np.empty((3, n, n))
        np.negative(outs[0].T, out=B[0])
        np.negative(outs[1].T, out=B[1])
        B[2] = np.eye(n)
        found = solver.rows(B.reshape(-1, n)).reshape(B.shape)
        outs[0][...], outs[1][...] = found[0].T, found[1].T
        solver.matrix(outs[2], found[2])

    return fill


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
