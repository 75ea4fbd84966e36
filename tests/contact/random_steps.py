"""Random problems of a step: trees of bodies as numbers, with contacts, loops and rows, and dense matrices.

Velocity products are a made-up smooth function of the velocity, so that nothing here needs a robot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from robokit.contact import articulated, fields, groups, solver
from robokit.contact.kinematics import place_in_H
from robokit.contact.robot_data import banded, bands_of, blocks_of, sizes_of_matrices
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial import Matrix3, Symmetric3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.vectors import ArticulatedInertia

Arrays = dict[str, np.ndarray]

TREE = ["parent", "body_dofs", "dof_parent", "dof_body", "dof_row", "path", "ancestors", "gravity"]
TREE += ["row_path", "row_columns", "part_rows", "body_part", "column_row", "block_part", "body_tip"]
TREE += ["bands", "blocks", "block_mask", "wholes", "body_whole", "armature"]
MOTION = ("S", "S_by_row", "seat", "H", "V", "composite")
FORCES = ("motion_dof", "motion_values", "body_mobility")  # none, and of all bodies


def taken() -> list[Any]:
    """The arrays of the solver, all of them to be looked at."""
    robot = [a for a in fields.ROBOT if a.name in TREE]
    motion = [replace(a, role="in") for a in fields.MOTION if a.name in MOTION]
    motion += [replace(a, role="inout") for a in fields.MOTION if a.name == "W"]
    motion += [a for a in fields.FORCES if a.name in FORCES]
    rest = [replace(a, role="inout") for a in (*fields.CONSTRAINTS, *fields.SOLVER) if a.role == "work"]
    given = [real("inertias", "n_bodies", 36)]
    return [*robot, *motion, *given, *rest, *(a for a in fields.SOLVER if a.role != "work")]


def velocities(x: Any, v: Any, V: Any) -> None:
    """Of all bodies."""

    def body(b: Any) -> None:
        for c in range(6):
            V[b, c] = 0.0
        cond(x.parent[b] >= 0, lambda: _copy(V, b, x.parent[b]), lambda: None)

        def dof(n: Any) -> None:
            j = x.body_dofs[b, 0] + n

            def add() -> None:
                for c in range(6):
                    V[b, c] = V[b, c] + x.S[j, c] * v[x.dof_row[j]]

            cond(x.dof_row[j] >= 0, add, lambda: None)

        for_range(x.body_dofs[b, 1], dof)

    for_range(x.n_bodies, body)


def _copy(V: Any, b: Any, a: Any) -> None:
    for c in range(6):
        V[b, c] = V[a, c]


def bias(x: Any, out: Any) -> None:
    """Made-up weights and velocity products."""

    def mean(j: Any) -> Any:
        return 0.5 * (x.v0[j] + x.y[j])

    def entry(j: Any) -> None:
        out[j] = x.gravity[0] + x.gravity[1] * mean(j) * mean((j + 1) % x.nv)

    for_range(x.nv, entry)


def multiply(x: Any, vector: Any, out: Any) -> None:
    """H times a vector, by its lower half."""

    def clear(j: Any) -> None:
        out[j] = 0.0

    def row(j: Any) -> None:
        first = x.row_path[j, 0]

        def entry(m: Any) -> None:
            k = x.row_columns[first + m]
            out[j] = out[j] + x.H[place_in_H(x, j, k)] * vector[k]
            out[k] = out[k] + x.H[place_in_H(x, j, k)] * vector[j]

        for_range(x.row_path[j, 1], entry)
        out[j] = out[j] + x.H[place_in_H(x, j, j)] * vector[j]

    for_range(x.nv, clear)
    for_range(x.nv, row)


def inertia_of(x: Any, b: Any) -> ArticulatedInertia:
    """A made-up one, that is no rigid body's."""
    I = [
        [Matrix3([[x.inertias[b, 6 * (r + n) + c + m] for m in range(3)] for n in range(3)]) for c in (0, 3)]
        for r in (0, 3)
    ]
    return ArticulatedInertia(Symmetric3.upper(I[0][0]), I[0][1], Symmetric3.upper(I[1][1]))


@contextmanager
def made_up() -> Iterator[None]:
    """The solver with these functions in place of a robot's."""
    with pytest.MonkeyPatch.context() as patch:
        for function in (velocities, bias, multiply):
            patch.setattr(solver, function.__name__, function)
        patch.setattr(articulated, "inertia_of", inertia_of)
        yield


def kernel(name: str, function: Any, **options: Any) -> LoopKernel:
    """A kernel of the solver's arrays."""

    def run(x: Any) -> None:
        with made_up():
            function(x)

    return kernel_of(name, run, taken(), **options)


SOLVE = kernel("random_solve", lambda x: (articulated.couple(x), groups.connect(x), solver.solve(x)))


def random_tree(
    rng: np.random.Generator, n_bodies: int, coupled: bool = False, floating: float = 0.2
) -> Arrays:
    """Bodies 1.. on random parents, with 0 to 6 dofs; some dofs share a row, some stand still."""
    parent = np.array([-1, *(int(rng.integers(max(0, k - 3), k)) for k in range(1, n_bodies))], np.int32)
    counts = np.array([0, *rng.choice([0, 1, 1, 1, 1, 2, 3], n_bodies - 1)])
    floats = rng.random(n_bodies) < floating
    floats[0], floats[1] = False, True
    parent[floats], counts[floats] = 0, 6
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    n_dofs = int(counts.sum())
    body = np.repeat(np.arange(n_bodies), counts)
    tip = np.full(n_bodies, -1)
    dof_parent = np.full(n_dofs, -1)
    for b in range(n_bodies):
        at = tip[parent[b]] if parent[b] >= 0 else -1
        for j in range(first[b], first[b] + counts[b]):
            dof_parent[j], at = at, j
        tip[b] = at
    row = np.arange(n_dofs)
    gain = np.ones(n_dofs)
    if coupled:
        leads: list[int] = []
        for j in range(n_dofs):
            kind = rng.random() if j > 6 else 1.0
            if kind < 0.1:
                row[j] = -1
            elif kind < 0.4:
                row[j], gain[j] = int(rng.choice(leads)), rng.uniform(-2, 2)
            else:
                row[j] = len(leads)
                leads.append(len(leads))
    nv = int(row.max()) + 1
    S = rng.normal(size=(n_dofs, 6)) * np.where(row < 0, 0.0, gain)[:, None]
    above = [[] for _ in range(n_dofs)]
    for j in range(n_dofs):
        if dof_parent[j] >= 0:
            above[j] = [dof_parent[j], *above[dof_parent[j]]]
    lengths = np.array([len(a) for a in above])
    path = np.stack([np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths], 1)
    J = np.zeros((n_bodies, 6, nv))
    for b in range(n_bodies):
        j = tip[b]
        while j >= 0:
            if row[j] >= 0:
                J[b, :, row[j]] += S[j]
            j = dof_parent[j]
    rotors = 0.1 * rng.uniform(0.1, 1.0, nv)
    H, inertias = np.diag(rotors), np.zeros((n_bodies, 6, 6))
    for b in range(1, n_bodies):
        L = rng.normal(size=(6, 6)) * 10 ** rng.uniform(-1, 0.5)
        inertias[b] = L @ L.T
        H += J[b].T @ L @ L.T @ J[b]
    whole = {"parent": parent, "body_dofs": np.stack([first, counts], 1), "dof_parent": dof_parent}
    whole |= {
        "dof_body": body,
        "dof_row": row,
        "path": path,
        "ancestors": np.array([k for a in above for k in a], int),
    }
    columns: list[set[int]] = [set() for _ in range(nv)]
    for j in range(n_dofs):
        for k in above[j]:
            low, high = sorted((row[j], row[k]))
            columns[high] |= {low} if 0 <= low < high else set()
    own, counts = counts, np.array([len(c) for c in columns])
    whole |= _parts(n_bodies, parent, np.stack([first, own], 1), coupled, nv)
    whole["row_path"] = np.stack([np.concatenate([[0], np.cumsum(counts)[:-1]]), counts], 1)
    whole["row_columns"] = np.array([k for c in columns for k in sorted(c, reverse=True)], int)
    whole["body_tip"] = np.array([_tip(b, parent, first, own) for b in range(n_bodies)])
    bands, mask = bands_of([sorted(c) for c in columns])
    whole |= banded(bands)
    whole |= blocks_of(whole["part_rows"].tolist(), nv)
    x = {k: np.ascontiguousarray(a, np.int32) for k, a in whole.items()}
    wide = len(x["column_row"])
    x |= _of_wholes(parent, body, S)
    x |= {"block_mask": mask, "S_by_row": np.zeros((6, wide))}
    x["S_by_row"][:, : min(n_dofs, wide)] = x["S"].T[:, :wide]
    x["H"] = in_blocks(H, x["bands"])
    x |= {"armature": np.where(row < 0, 0.0, rotors[row]), "inertias": inertias.reshape(-1, 36)}
    return x | {"gravity": np.array([-9.81, 0.05, 0.0]), "J_bodies": J, "full_H": H}


def _of_wholes(parent: np.ndarray, dof_body: np.ndarray, S: np.ndarray) -> Arrays:
    """Each tree on the world is a whole of its own, whose first base is anywhere; that of the first is 0."""
    rng, n_bodies = np.random.default_rng(0), len(parent)
    bases, of = [1], np.zeros(n_bodies, np.int32)
    for b in range(1, n_bodies):
        of[b] = of[parent[b]] if parent[b] > 0 else len(bases)
        bases += [b] if parent[b] == 0 else []
    seats = rng.normal(size=(len(bases), 3))
    seats[:2] = 0.0
    seat = seats[of]
    own = np.hstack([S[:, :3], S[:, 3:] - np.cross(seat[dof_body], S[:, :3])])
    wholes = np.array([(b, 0) for b in bases], np.int32)
    return {"wholes": wholes, "body_whole": of, "seat": seat, "S": own, "body_mobility": rng.random(n_bodies)}


def random_problem(
    rng: np.random.Generator,
    tree: Arrays,
    contacts: int,
    loops: int = 0,
    rows: int = 0,
    dt: float = 1e-3,
    place: int = 3,
    by_bodies: bool = False,
) -> Arrays:
    """A step of that tree; bodies of contacts at random, neighbours of one pair together."""
    n_bodies, nv = len(tree["parent"]), len(tree["row_path"])
    n = contacts + loops + (contacts + 1) // 2
    x: Arrays = {a.name: None for a in taken()}  # type: ignore[misc]
    sizes = {"n_bodies": n_bodies, "nv": nv, "n_dofs": len(tree["dof_row"]), "n_constraints": n + place}
    sizes |= {"n_motions": 0, "n_rows": rows + place, "n_path": len(tree["ancestors"])}
    sizes |= {"n_entries": len(tree["row_columns"]), "n_parts": len(tree["part_rows"])}
    sizes |= {"n_wholes": len(tree["wholes"])}
    sizes |= {"n_columns": len(tree["column_row"]), "n_blocks": len(tree["block_part"])}
    sizes |= {"n_bands": len(tree["bands"]), "n_H_blocks": len(tree["blocks"])}
    sizes |= sizes_of_matrices(tree)
    sizes["n_fill"] = sizes["n_blocks"] * (sizes["n_blocks"] + 1) // 2
    if by_bodies:
        sizes |= {"n_deep": n_bodies + 1, "n_fill": 3 * n_bodies * (n_bodies + 1) // 2}
    for a in taken():
        x[a.name] = tree[a.name] if a.name in tree else a.zeros(sizes)
    x["held"][0] = 1.0
    moving = [b for b in range(1, n_bodies) if np.abs(tree["J_bodies"][b]).max() > 0]
    moving = moving if len(moving) > 1 else [0, *moving]
    pairs = sorted(
        (0, int(rng.choice(moving))) if rng.random() < 0.5 else tuple(sorted(rng.choice(moving, 2, False)))
        for _ in range(max(1, contacts // 3))
    )
    of = sorted(rng.choice(len(pairs), contacts)) if contacts else []
    spins = [k for k in range(contacts) if k % 2 == 0]
    kinds = [fields.FRICTION] * contacts + [fields.LINE] * loops + [fields.SPIN] * len(spins)
    for c, kind in enumerate(kinds):
        E = np.zeros((3, 6))
        T = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        p = rng.normal(size=3)
        E[:, :3], E[:, 3:] = np.cross(p, T), T
        bodies = pairs[of[c]] if kind == fields.FRICTION else tuple(sorted(rng.choice(moving, 2, False)))
        R_n = 10 ** rng.uniform(-2, 0)
        R = (R_n / rng.choice([6.0, 1.0, 30.0]), R_n)
        if kind == fields.FRICTION:
            x["c_mu"][c] = rng.choice([0.0, 0.3, 0.8, 1.5])
            x["c_aim"][c] = rng.normal(size=3) * [0.1, 0.1, 0.3]
        elif kind == fields.LINE:
            x["c_aim"][c] = 0.1 * rng.normal(size=3)
            R = (np.inf, R_n) if rng.random() < 0.3 else (1e-3, 1e-3)
        else:
            of_contact = spins[c - contacts - loops]
            x["c_of"][c], bodies, T = (
                of_contact,
                pairs[of[of_contact]],
                x["c_E"][of_contact].reshape(3, 6)[:, 3:],
            )
            E = np.concatenate([T, np.zeros((3, 3))], 1)
            x["c_mu"][c], x["c_arm"][c] = rng.uniform(0, 0.05), rng.uniform(0, 0.05)
        x["c_kind"][c], x["c_bodies"][c], x["c_R"][c] = kind, bodies, R
        seats = tree["seat"][list(bodies)]
        place = seats[sum(bodies) % 2 if 0 not in bodies else 1]  # of all of a pair the same
        E[:, :3] -= np.cross(place, E[:, 3:])
        x["c_E"][c], x["c_arms"][c] = E.ravel(), place - seats
        J = bodies_jacobian(tree, x, c)
        x["c_w"][c] = np.trace(J @ np.linalg.solve(tree["full_H"], J.T)) / 3.0
    for i in range(rows):
        weight = 1.0 / tree["full_H"][(j := int(rng.integers(nv))), j]
        low, high = sorted(rng.normal(size=2)) if rng.random() < 0.5 else (0.0, np.inf)
        speed = abs(rng.normal()) if rng.random() < 0.3 else np.inf
        numbers = {
            "r_row": j,
            "r_gain": rng.choice([1.0, -1.0, 0.5]),
            "r_R": weight * 10 ** rng.uniform(-6, 1),
        }
        numbers |= {"r_aim": rng.normal(), "r_low": low, "r_high": high, "r_speed": speed}
        for name, value in {**numbers, "r_speed_R": 1e-4 * weight}.items():
            x[name][i] = value
        x["r_w"][i] = numbers["r_gain"] ** 2 * np.linalg.inv(tree["full_H"])[j, j]
    x["n_of"][:] = len(kinds), rows, 0, 0, 0
    x["dt"], x["tolerance"], x["orders"] = np.array([dt]), np.array([1e-6]), np.array([1])
    x["span"] = np.array([dt])
    x["v0"][:], x["tau"][:] = rng.normal(size=nv), rng.normal(size=nv)
    x["guess"][:] = x["v0"]
    return x


def in_blocks(H: np.ndarray, bands: np.ndarray) -> np.ndarray:
    """The lower triangle of H as a step has it, (n_H, 4, 4), with ones in rows that fill the last block."""
    n = 4 * len(bands)
    full = np.eye(n)
    full[: len(H), : len(H)] = np.tril(H)
    found, before = np.zeros((int(bands[-1, 2]) + len(bands), 4, 4)), 0
    for k, place in enumerate(bands[:, 2].tolist()):
        for c in range(before - place, k + 1):
            found[place + c] = full[4 * k : 4 * k + 4, 4 * c : 4 * c + 4]
        before = place + k + 1
    return found


def whole_of_blocks(H: np.ndarray, bands: np.ndarray) -> np.ndarray:
    """The other way round: the lower triangle."""
    full, before = np.zeros((4 * len(bands),) * 2), 0
    for k, place in enumerate(bands[:, 2].tolist()):
        for c in range(before - place, k + 1):
            full[4 * k : 4 * k + 4, 4 * c : 4 * c + 4] = H[place + c]
        before = place + k + 1
    return full


def _tip(b: int, parent: np.ndarray, first: np.ndarray, count: np.ndarray) -> int:
    """The last dof on the path of a body."""
    while b >= 0 and not count[b]:
        b = int(parent[b])
    return int(first[b] + count[b] - 1) if b >= 0 else -1


def _parts(n_bodies: int, parent: np.ndarray, dofs: np.ndarray, coupled: bool, nv: int) -> Arrays:
    """Each body its own part if all float and none carries another, else all one."""
    if not coupled and (parent[1:] == 0).all():
        return {"part_rows": dofs[1:], "body_part": np.arange(-1, n_bodies - 1)}
    return {"part_rows": np.array([[0, nv]]), "body_part": np.arange(n_bodies) * 0}


def product_of_factors(x: Arrays) -> np.ndarray:
    """A = U D L of a step, U = L^T where it is symmetric, from what is in the blocks of its pattern."""
    n = len(x["Dinv"])
    L, U, taken = np.zeros((n, n)), np.zeros((n, n)), []
    for k, (first, count) in enumerate(zip(x["pattern_first"], x["pattern_length"], strict=True)):
        columns = x["pattern"][first : first + count]
        assert (np.diff(columns) < 0).all() and (columns < k).all()
        for c in (k, *columns):
            taken.append(at := x["A_row"][k] + x["depth"][c])
            for M, blocks in ((L, x["A"]), (U, x["A_skew"])):
                M[4 * k : 4 * k + 4, 4 * c : 4 * c + 4] = blocks[at]
    assert len(set(taken)) == len(taken) and max(taken) < x["filled"][0]
    L, U = (np.tril(M, -1) + np.eye(n) for M in (L, U))
    A = (U if x["n_of"][4] else L).T @ np.diag(1.0 / x["Dinv"]) @ L
    return A[np.ix_(x["place"], x["place"])]


def bodies_jacobian(tree: Arrays, x: Arrays, c: int) -> np.ndarray:
    """J of a constraint (3, nv)."""
    a, b = x["c_bodies"][c]
    E = x["c_E"][c].reshape(3, 6).copy()
    E[:, :3] += np.cross(tree["seat"][b] + x["c_arms"][c, 1], E[:, 3:])
    return E @ (tree["J_bodies"][b] - tree["J_bodies"][a])


def rows_jacobian(x: Arrays) -> np.ndarray:
    """J of the rows."""
    J = np.zeros((x["n_of"][1], len(x["y"])))
    for i in range(len(J)):
        J[i, x["r_row"][i]] = x["r_gain"][i]
    return J


def solved(x: Arrays, run: LoopKernel = SOLVE, engine: str | None = None) -> Arrays:
    """The arrays after the step."""
    given = {a.name: x[a.name] for a in run.arrays}
    return {**x, **run(engine=engine, **given)}
