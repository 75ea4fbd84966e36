"""A robot as numbers: the arrays ROBOT of fields.py.

All joints but spherical and floating ones turn their body about an axis u by their first coordinate, and
shift it by each. In the axes of the parent, where the joint's frame is turned by R_0 and stands at r_0:

    R = turn_0 + cos(q_0) turn_1 + sin(q_0) turn_2        r = r_0 + sum of q_k slide_k

    turn_0 = R_0 u u^T        turn_1 = R_0 (1 - u u^T)        turn_2 = R_0 u x

Spherical and floating joints turn by a quaternion, and shift along the axes of R_0.

Source: RBDA table 4.1; mimic joints: model/tree.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.model.joints import JOINT_TABLE, JointModel, plane_axes
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.spatial import Matrix3, Transform

Arrays = dict[str, np.ndarray]

KINDS = tuple(JOINT_TABLE)  # kinds of joints in the order of their numbers
BLOCK = 4  # rows and columns of a block of A, and numbers of a vector: what linear.py works on
ROOM = 3  # blocks of A that a 6 x 6 matrix of a body, or of two, takes in deep trees (articulated.py)
FEW = 2  # parts whose order makes no difference to the fill (linear.py)

BY_DOF, BY_BODY, BY_PAIR = 128.0, 120.0, 0.75
"""Instructions of an iteration in which A is not symmetric: loads, products and stores of vectors of four.
By bodies: to eliminate a dof, and to add a body to its parent (articulated.py). By the matrix: of each two
entries of a row left of the diagonal, or of one with itself, in both triangles, four of them at a time."""

PLANAR, SPHERICAL, FLOATING = map(KINDS.index, ("planar", "spherical", "floating"))
"""Those whose motions are no sums: the last in the table, so that all before PLANAR are."""


def robot_data(robot: Robot) -> Arrays:
    """The arrays ROBOT of a robot, by name; made once and read-only.

    ``robot``: the robot, or several in one world. With B samples of inertias, ``inertia`` is (B, n_bodies,
    10).
    """
    found: Arrays = robot.derived.get("numbers of a step", lambda: _made(robot))
    return found


def _made(robot: Robot) -> Arrays:
    tree = robot.tree
    whole, real = _connectivity(tree), _joints(tree)
    whole_of_rows, real_of_rows = _coordinates(robot)
    real |= real_of_rows | {"inertia": robot.inertial_parameters, "gravity": robot.gravity}
    arrays = {name: np.array(values, np.int32) for name, values in (whole | whole_of_rows).items()}
    arrays |= {name: np.array(values, float) for name, values in real.items()}
    for each in arrays.values():
        each.flags.writeable = False
    return arrays


def _connectivity(tree: Tree) -> dict[str, Any]:
    """The connectivity of bodies and dofs."""
    return {
        "parent": tree.parent,
        "body_dofs": [(s.start, s.stop - s.start) for s in tree.v_slice],
        "joint_kind": [KINDS.index(joint.kind.name) for joint in tree.joint],
        "joint_coordinate": [s.start for s in tree.q_slice],
        "dof_parent": tree.dof_parent,
        "dof_body": [i for i in tree.outward() for _ in range(tree.joint[i].kind.nv)],
        "body_tip": _tips(tree),
        **_lists(_above(tree), "path", "ancestors"),
    }


def _above(tree: Tree) -> list[list[int]]:
    """For each dof, the dofs on the path to the root, the nearest first."""
    above: list[list[int]] = []
    for parent in tree.dof_parent:
        above.append([] if parent < 0 else [parent, *above[parent]])
    return above


def _tips(tree: Tree) -> list[int]:
    """The last dof on the path of each body, -1 where it does not move."""
    tips: list[int] = []
    for parent, s in zip(tree.parent, tree.v_slice, strict=True):
        tips.append(s.stop - 1 if s.stop > s.start else tips[parent] if parent >= 0 else -1)
    return tips


def _lists(rows: Sequence[Sequence[int]], where: str, what: str) -> dict[str, np.ndarray]:
    """Concatenated lists, with the first entry and the length of each."""
    counts = np.array([len(row) for row in rows], int)
    first = np.cumsum(counts) - counts
    return {where: np.stack([first, counts], 1), what: np.array([k for row in rows for k in row], int)}


def _joints(tree: Tree) -> dict[str, Any]:
    """Positions of joints, how they rotate and translate their bodies, and their columns of S."""
    each = list(zip(tree.joint, tree.XT, strict=True))
    columns = [list(column) for joint in tree.joint for column in joint.S.columns]
    return {
        "joint_placement": [[*_entries(X.E.T), *X.r] for X in tree.XT],
        "joint_turn": [_turns(joint, X.E.T) for joint, X in each],
        "joint_slide": [_slides(joint, X) for joint, X in each],
        "joint_axis": [list(joint.axis) for joint in tree.joint],
        "dof_axis": np.reshape(columns, (-1, 6)),
        "armature": [a for row in tree.armature[1:] for a in row] or [0.0] * tree.nv,
    }


def _entries(A: Matrix3) -> list[float]:
    return [x for row in A.rows for x in row]


def _turns(joint: JointModel, R_0: Matrix3) -> list[float]:
    """The three matrices of a joint's rotation in its parent's axes."""
    u = joint.axis
    along = Matrix3([[a * b for b in u] for a in u])
    if not joint.kind.angle:
        return [*_entries(R_0), *[0.0] * 18]
    parts = (along, Matrix3.identity() - along, Matrix3.skew(u))
    return [x for part in parts for x in _entries(R_0 @ part)]


def _slides(joint: JointModel, X: Transform) -> list[list[float]]:
    """Translation of the body by a unit of each coordinate, in its parent's axes."""
    u, kind = joint.axis, joint.kind.name
    along = {
        "prismatic": [u],
        "helical": [u * joint.pitch],
        "cylindrical": [u * 0.0, u],
        "planar": [u * 0.0, *plane_axes(u)],
    }.get(kind, [])
    found = [list(X.E.transpose_apply(d)) for d in along]
    return found + [[0.0] * 3] * (3 - len(found))


def _coordinates(robot: Robot) -> tuple[dict[str, Any], dict[str, Any]]:
    """How coordinates and dofs of the tree follow those of the robot, and where H has entries."""
    tree, coupling = robot.tree, robot.tree.coupling
    if coupling is None:
        q_from = [(k, 1.0, 0.0) for k in range(tree.nq)]
        v_from, own = [(k, 1.0) for k in range(tree.nv)], set(range(tree.nv))
    else:
        q_from, v_from, own = list(coupling.q_from), list(coupling.v_from), set(coupling.own_v)
    rows = [row for row, _ in v_from]
    columns, parts = _columns_of_H(tree, rows, robot.nv), _parts(tree, rows, robot.nv)
    bands, mask = bands_of(columns)
    whole = {
        "coordinate_from": [k for k, _, _ in q_from],
        "dof_row": rows,
        "joint_leads": [int(s.start in own and s.stop > s.start) for s in tree.v_slice],
        **_lists(columns, "row_path", "row_columns"),
        **banded(bands),
        **parts,
        **blocks_of(parts["part_rows"], robot.nv),
        **_wholes(tree, rows, robot.nv),
    }
    real = {
        "block_mask": mask,
        "coordinate_gain": [gain for _, gain, _ in q_from],
        "coordinate_offset": [offset for _, _, offset in q_from],
        "dof_gain": [gain if row >= 0 else 0.0 for row, gain in v_from],
    }
    return whole, real


def _parts(tree: Tree, rows: Sequence[int], nv: int) -> dict[str, Any]:
    """Bodies that joints connect without the world, and their rows.

    All are one part if the rows of a part are not consecutive, as with mimic joints across two parts.
    """
    root = [0] * (tree.n + 1)
    of_row = [0] * nv
    for i in tree.outward():
        root[i] = root[tree.parent[i]] or i
        for j in range(tree.nv)[tree.v_slice[i]]:
            if rows[j] >= 0:
                of_row[rows[j]] = root[i]
    first = [r for r in range(nv) if not r or of_row[r] != of_row[r - 1]]
    known = [of_row[r] for r in first]
    moved = {of_row[rows[j]]: None for j in range(tree.nv) if rows[j] >= 0}
    alone = len(known) == len(moved) and all(
        rows[j] < 0 or of_row[rows[j]] == root[i]
        for i in tree.outward()
        for j in range(tree.nv)[tree.v_slice[i]]
    )
    if not (alone and known):
        return {"part_rows": [[0, nv]], "body_part": [-1] + [0] * tree.n}
    number = {i: p for p, i in enumerate(known)}
    ends = [*first[1:], nv]
    return {
        "part_rows": [[a, b - a] for a, b in zip(first, ends, strict=True)],
        "body_part": [number.get(i, -1) for i in root],
    }


def _wholes(tree: Tree, rows: Sequence[int], nv: int) -> dict[str, Any]:
    """Mechanisms: trees, with those that loops or common rows connect to them.

    For each, the first base, and the number of floating bases; 0 if one is fixed, or a loop connects it to
    the world. Mechanism 0 is the world.
    """
    root = [0] * (tree.n + 1)
    of_row: list[int | None] = [None] * nv
    ties = list(tree.loops)
    for i in tree.outward():
        root[i] = root[tree.parent[i]] or i
        for j in range(tree.nv)[tree.v_slice[i]]:
            if rows[j] >= 0:
                first = of_row[rows[j]]
                of_row[rows[j]] = i if first is None else first
                ties.append((i, i if first is None else first))
    for a, b in ties:
        kept, gone = sorted((root[a], root[b]))
        if 0 < kept < gone:
            root = [kept if r == gone else r for r in root]
    bases = sorted({0, *root})
    number = {base: w for w, base in enumerate(bases)}
    children = Counter(root[i] for i in tree.children[0])
    fixed = {0, *(root[i] for i in tree.children[0] if tree.joint[i].kind.name != "floating")}
    fixed |= {root[max(tie)] for tie in ties if min(tie) == 0}
    return {
        "wholes": [(max(base, 1), 0 if base in fixed else children[base]) for base in bases],
        "body_whole": [number[r] for r in root],
        "row_whole": [0 if i is None else number[root[i]] for i in of_row],
    }


def blocks_of(part_rows: Sequence[Sequence[int]], nv: int) -> dict[str, Any]:
    """Columns of A and its blocks. Parts that are put in order have blocks of their own."""
    rows = [[*range(a, a + n)] for a, n in part_rows] if len(part_rows) > FEW else [[*range(nv)]]
    columns = [k for each in rows for k in (*each, *[-1] * (-len(each) % BLOCK))]
    return {
        "column_row": columns,
        "block_part": [p for p, each in enumerate(rows) for _ in range(0, len(each), BLOCK)],
    }


def bands_of(columns: Sequence[Sequence[int]]) -> tuple[list[list[int]], np.ndarray]:
    """Columns of the blocks of each four rows of H, descending; of each, 1 where there is an entry."""
    bands, mask = [], []
    for first in range(0, len(columns), BLOCK):
        rows = [{first + r, *own} for r, own in enumerate(columns[first : first + BLOCK])]
        bands.append(sorted({k // BLOCK for row in rows for k in row}, reverse=True))
        rows += [set[int]()] * (BLOCK - len(rows))
        for c in bands[-1]:
            mask.append([[float(BLOCK * c + n in row) for n in range(BLOCK)] for row in rows])
    return bands, np.reshape(mask, (-1, BLOCK, BLOCK))


def banded(bands: Sequence[Sequence[int]]) -> Arrays:
    """The arrays ``bands`` and ``blocks``; H has memory for all blocks within a band."""
    found = _lists(bands, "bands", "blocks")
    least = np.array([band[-1] for band in bands], int)
    widths = np.arange(1, len(bands) + 1) - least
    found["bands"] = np.column_stack([found["bands"], np.cumsum(widths) - widths - least])
    return found


def sizes_of_matrices(arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes of H and A at the start.

    For one robot there is memory for all blocks; for many parts, for those of H; for a deep tree, for the
    matrices of bodies, and as many between two bodies. A step that needs more asks for it.
    """
    bands, part, n = arrays["bands"], arrays["block_part"], len(arrays["block_part"])
    many, n_bodies = len(arrays["part_rows"]) > FEW, len(arrays["parent"])
    own = np.bincount(part[part >= 0]) if many else np.array([n])
    by_bodies = deep(arrays)
    return {
        "n_H": int(bands[-1, 2]) + len(bands) if len(bands) else 0,
        "n_fill": max(2 * ROOM * n_bodies * by_bodies, 1, int((own * (own + 1) // 2).sum())),
        "n_deep": (n_bodies + 1) * by_bodies,
    }


def deep(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether A is factored by bodies.

    That is so for a single tree whose joints have rows of their own, if factoring H takes more instructions
    by entries.
    """
    n, left = len(arrays["dof_row"]), arrays["row_path"][:, 1].astype(float)
    alone = len(arrays["part_rows"]) == 1 and arrays["wholes"][-1, 0] == 1 and len(left) == n
    of_bodies = BY_DOF * n + BY_BODY * len(arrays["parent"])
    return bool(alone and BY_PAIR * (left * (left + 1.0)).sum() > of_bodies)


def _columns_of_H(tree: Tree, rows: Sequence[int], nv: int) -> list[list[int]]:
    """Of each row of H its columns left of the diagonal, the nearest first."""
    columns: list[set[int]] = [set() for _ in range(nv)]
    for row, above in zip(rows, _above(tree), strict=True):
        for k in above:
            low, high = sorted((row, rows[k]))
            if 0 <= low < high:
                columns[high].add(low)
    return [sorted(row, reverse=True) for row in columns]
