"""The numbered kinematic tree: the sets lambda, mu, nu, kappa and what stands at each number; coupled joints.

Body 0 is the reference (the world, or the fixed root). Bodies 1..N are numbered depth first, so the
parent has the smaller number and every subtree nu(i) is a contiguous range. Joint i connects
lambda(i) to i; loop joints are N+1..N_J, with predecessor p and successor s but no part in the tree.

Source: seeds 003 (connectivity), RBDA section 4.1 (regular numbering).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from robokit.conventions import GRAVITY
from robokit.dataclass_tools import cached_attribute, frozen
from robokit.errors import ModelError
from robokit.model.joints import JOINT_TABLE, NO_JOINT, JointModel
from robokit.spatial import RigidInertia, Transform, Vector3
from robokit.spatial.scalars import Scalar, is_zero, iterations

# ==== structure of the mass matrix and of its factors, from the tree alone ========================
# Everything here is a pure function of ``dof_parent``: for each of the n degrees of freedom the index of the
# one before it on the way to the base, -1 where there is none. Joints of several degrees of freedom are
# chains.
#
# Source: RBDA 6.3 to 6.5 (branch-induced sparsity, LTDL factorisation and its cost).


def check_parents(dof_parent: Sequence[int]) -> np.ndarray:
    """The parent of each degree of freedom as (n,) int; ModelError for one that is not in [-1, i)."""
    parents = np.asarray(dof_parent, dtype=int).reshape(-1)
    wrong = np.flatnonzero((parents < -1) | (parents >= np.arange(len(parents))))
    if len(wrong):
        i = int(wrong[0])
        raise ModelError(f"dof_parent[{i}] is {int(parents[i])}; a parent is -1 (none) or smaller than {i}")
    return parents


def dof_depths(dof_parent: Sequence[int]) -> np.ndarray:
    """Number of degrees of freedom from the base to each one, itself included: d[i] = 1 + d[parent of i]."""
    parents = check_parents(dof_parent)
    depth = np.zeros(len(parents), dtype=int)
    for i, parent in enumerate(parents):
        depth[i] = 1 if parent < 0 else depth[parent] + 1
    return depth


def inertia_pattern(dof_parent: Sequence[int]) -> np.ndarray:
    """Where the mass matrix H can differ from zero, boolean (n, n), by the dofs' parents (-1 for none).

    H[i, j] is zero by structure exactly when neither degree of freedom carries the other.
    """
    parents = check_parents(dof_parent)
    n = len(parents)
    lower = np.zeros((n, n), dtype=bool)
    for i, parent in enumerate(parents):
        if parent >= 0:
            lower[i] = lower[parent]
        lower[i, i] = True
    return lower | lower.T


def cholesky_fill(pattern: np.ndarray) -> np.ndarray:
    """Pattern of the factor L of plain Cholesky, H = L Lᵀ, in the order given, by the pattern of H, (n, n).

    Elimination goes from the first row down, so a base that everything hangs on is eliminated first and
    couples all branches: entries that H lacks fill in. L of H = Lᵀ D L has no such fill-in.
    """
    factor = np.tril(np.asarray(pattern, dtype=bool))
    n = len(factor)
    for k in range(n):
        # Column k of L takes part in the update of every later column it has an entry for; by the
        # elimination tree it is enough to pass the pattern on to the first of them.
        below = np.flatnonzero(factor[k + 1 :, k]) + k + 1
        if len(below):
            factor[below, below[0]] = True
    return factor


def factorisation_counts(factor: np.ndarray) -> dict[str, int]:
    """Multiply-adds of a Cholesky factorisation ("factorise") and of the two triangular solves ("solve").

    By the lower triangular boolean pattern of L, (n, n); divisions are not counted.
    """
    below = np.asarray(factor, dtype=bool).sum(axis=0).astype(int) - 1
    return {"factorise": int((below * (below + 1) // 2).sum()), "solve": int(2 * below.sum())}


def ltdl_counts(dof_parent: Sequence[int]) -> dict[str, int | float]:
    """Exact operation counts of H = Lᵀ D L on the tree, beside those of a dense factorisation.

    With d[i] the depth of a degree of freedom: factorisation sum d (d - 1) / 2 multiply-adds against
    (n³ - n) / 6; the two triangular solves 2 sum (d - 1) against n² - n. Divisions are counted apart.

    Args:
        dof_parent: parent of each degree of freedom, -1 for none, (n,).

    Returns:
        n; entries (n²), nonzeros and zeros of H, zeros_share; factorise, factorise_dense, factorise_ratio,
        divisions; solve, solve_dense, solve_ratio. A ratio is dense / tree, 1.0 where both are zero.
    """
    depth = dof_depths(dof_parent)
    n = len(depth)
    off_diagonal = int((depth - 1).sum())
    nonzeros = n + 2 * off_diagonal
    factorise = int((depth * (depth - 1) // 2).sum())
    factorise_dense = (n**3 - n) // 6
    solve, solve_dense = 2 * off_diagonal, n * n - n
    return {
        "n": n,
        "entries": n * n,
        "nonzeros": nonzeros,
        "zeros": n * n - nonzeros,
        "zeros_share": (n * n - nonzeros) / (n * n) if n else 0.0,
        "factorise": factorise,
        "factorise_dense": factorise_dense,
        "factorise_ratio": _ratio(factorise_dense, factorise),
        "divisions": off_diagonal,
        "solve": solve,
        "solve_dense": solve_dense,
        "solve_ratio": _ratio(solve_dense, solve),
    }


def _ratio(dense: int, sparse: int) -> float:
    """How many times fewer operations; infinite where the tree leaves nothing to do."""
    if sparse == 0:
        return 1.0 if dense == 0 else float("inf")
    return dense / sparse


# ==== the numbered tree ===========================================================================


def depth_first(parent: Sequence[int]) -> list[int]:
    """A regular numbering by parents (-1 for roots): old numbers depth first, children in their order."""
    children: list[list[int]] = [[] for _ in parent]
    stack: list[int] = []
    for i, p in enumerate(parent):
        (children[p] if p >= 0 else stack).append(i)
    stack.reverse()
    order = []
    while stack:
        i = stack.pop()
        order.append(i)
        stack.extend(reversed(children[i]))
    return order


@frozen(eq=False)
class Tree:
    """Connectivity of N bodies, and their joints, placements and inertias.

    Index 0 of every per-body tuple stands for the reference body.

    Attributes:
        parent: lambda(i) for i in 0..N; -1 for the reference.
        loops: (p, s) of the loop joints N+1..N_J.
        joint: joint model of joint i; joint[0] is a fixed one.
        XT: transform from body lambda(i) to joint i's frame on it.
        I: rigid inertia of body i in body-i coordinates.
        gravity: acceleration of free fall in world axes [m/s^2].
        coupling: joints that follow others; the recursions do not use it.
        armature: inertia of each joint's rotor as the joint feels it, by dof [kg m^2 | kg]; empty for none.
            It adds to the diagonal of H, and so to the RNEA, the ABA and the kinetic energy (RBDA 9.6). It
            affects neither the robot's momentum nor gravity forces.
    """

    parent: tuple[int, ...]
    loops: tuple[tuple[int, int], ...] = ()
    joint: tuple[JointModel, ...] = ()
    XT: tuple[Transform, ...] = ()
    I: tuple[RigidInertia, ...] = ()
    gravity: tuple[float, float, float] = GRAVITY
    name: tuple[str, ...] = field(default=())
    coupling: Coupling | None = None
    armature: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.parent or self.parent[0] != -1:
            raise ModelError("a tree starts with the reference body: parent[0] must be -1")
        for i, p in enumerate(self.parent[1:], 1):
            if not 0 <= p < i:
                raise ModelError(f"regular numbering needs 0 <= parent[{i}] < {i}, got {p}")
        # nu(i) contiguous: i's parent must be i-1 or an ancestor of i-1.
        open_path = [0]
        for i, p in enumerate(self.parent[1:], 1):
            while open_path and open_path[-1] != p:
                open_path.pop()
            if not open_path:
                raise ModelError(f"body {i} reopens the finished subtree of body {p}: number depth first")
            open_path.append(i)
        n = self.n
        for p, s in self.loops:
            if not (0 <= p <= n and 0 <= s <= n and p != s):
                raise ModelError(f"a loop joint needs two different bodies of 0..{n}, got {p} and {s}")

    def __repr__(self) -> str:
        parts = [f"{self.n} bodies"]
        if self.loops:
            parts.append(f"{len(self.loops)} loop joint{'s' * (len(self.loops) > 1)}")
        if self.joint:
            parts.append(f"nq {self.nq}, nv {self.nv}")
        return f"<Tree: {', '.join(parts)}>"

    @property
    def n(self) -> int:
        """N, the number of moving bodies and of tree joints."""
        return len(self.parent) - 1

    @property
    def n_joints(self) -> int:
        """N_J, tree joints and loop joints."""
        return self.n + len(self.loops)

    @cached_attribute
    def children(self) -> tuple[tuple[int, ...], ...]:
        """mu(i) for i in 0..N."""
        mu: list[list[int]] = [[] for _ in self.parent]
        for i in self.outward():
            mu[self.parent[i]].append(i)
        return tuple(map(tuple, mu))

    @cached_attribute
    def subtree(self) -> tuple[range, ...]:
        """nu(i) for i in 0..N: the bodies that joint i supports, i included; contiguous ranges."""
        end = list(range(1, self.n + 2))
        for i in self.inward():
            p = self.parent[i]
            end[p] = max(end[p], end[i])
        return tuple(range(i, e) for i, e in enumerate(end))

    @cached_attribute
    def support(self) -> tuple[tuple[int, ...], ...]:
        """kappa(i) for i in 0..N: the joints between body i and the reference, root first."""
        kappa: list[tuple[int, ...]] = [()]
        for i in self.outward():
            kappa.append((*kappa[self.parent[i]], i))
        return tuple(kappa)

    @cached_attribute
    def predecessor(self) -> tuple[int, ...]:
        """p(i) for i in 0..N_J; p(0) = -1."""
        return (*self.parent, *(p for p, _ in self.loops))

    @cached_attribute
    def successor(self) -> tuple[int, ...]:
        """s(i) for i in 0..N_J."""
        return (*range(self.n + 1), *(s for _, s in self.loops))

    def outward(self) -> Iterable[int]:
        """Bodies 1..N, parents first."""
        return iterations(range(1, self.n + 1))

    def inward(self) -> Iterable[int]:
        """Bodies N..1, children first."""
        return iterations(range(self.n, 0, -1))

    # ---- coordinates ---------------------------------------------------------------------------

    @cached_attribute
    def q_slice(self) -> tuple[slice, ...]:
        """Where joint i's coordinates stand in q."""
        return self._slices("nq")

    @cached_attribute
    def v_slice(self) -> tuple[slice, ...]:
        """Where joint i's velocities stand in v."""
        return self._slices("nv")

    def _slices(self, what: str) -> tuple[slice, ...]:
        found, at = [], 0
        for joint in self.joint:
            k = getattr(joint.kind, what)
            found.append(slice(at, at + k))
            at += k
        return tuple(found)

    @property
    def nq(self) -> int:
        """Length of q."""
        return self.q_slice[-1].stop

    @property
    def nv(self) -> int:
        """Length of v."""
        return self.v_slice[-1].stop

    def split_q(self, q: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Coordinates q by joint, as the algorithms take them."""
        return [q[s] for s in self.q_slice]

    def split_v(self, v: Sequence[Scalar]) -> list[Sequence[Scalar]]:
        """Velocities, accelerations or forces by joint, as the algorithms take them."""
        return [v[s] for s in self.v_slice]

    @cached_attribute
    def dof_parent(self) -> tuple[int, ...]:
        """lambda on degrees of freedom: the dof that moves dof k, -1 at the root.

        A joint with several velocities counts as a chain of single ones (RBDA section 6.5).
        """
        parent: list[int] = []
        for i in self.outward():
            p = self.parent[i]
            above = self.v_slice[p].stop - 1 if p > 0 else -1
            for k in range(self.v_slice[i].start, self.v_slice[i].stop):
                parent.append(above)
                above = k
        return tuple(parent)

    @cached_attribute
    def a0(self) -> Vector3:
        """Linear part of a_0 = -a_g, which stands for gravity in the recursions."""
        return Vector3(*(0.0 if is_zero(g) else -g for g in self.gravity))

    def X(self, i: int, q: Sequence[Scalar]) -> Transform:
        """^iX_lambda(i) = X_J(q_i) X_T(i)."""
        return self.joint[i].XJ(q) @ self.XT[i]

    def transforms(self, q: Sequence[Sequence[Scalar]]) -> list[Transform]:
        """^iX_lambda(i) for i in 1..N; the unit transform at 0."""
        return [Transform.identity(), *(self.X(i, q[i]) for i in self.outward())]

    def lists(self, count: int) -> list[list[Any]]:
        """Lists with a place for each body 0..N, for the quantities of an algorithm, initially ()."""
        return [[()] * (self.n + 1) for _ in range(count)]


def plain_tree(parent: Sequence[int], loops: Sequence[tuple[int, int]] = ()) -> Tree:
    """A tree from its connectivity alone, with revolute joints about z, for its sets mu, nu and kappa.

    Args:
        parent: lambda(i) for bodies 1..N.
        loops: (predecessor, successor) of each loop joint.

    Example:
        >>> from robokit.model import plain_tree
        >>> tree = plain_tree([0, 1, 1])  # bodies 2 and 3 both hang on body 1
        >>> tree.support[3], tree.children[1]
        ((1, 3), (2, 3))
    """
    row = JOINT_TABLE["revolute"]
    joint = JointModel(row, Vector3(0.0, 0.0, 1.0))
    n = len(parent)
    return Tree(
        parent=(-1, *parent),
        loops=tuple(loops),
        joint=(NO_JOINT, *[joint] * n),
        XT=(Transform.identity(),) * (n + 1),
        I=(RigidInertia.zero(),) * (n + 1),
    )


# ---- coupling ------------------------------------------------------------------------------------
# Joints that follow others lose their coordinates, q_full = G q + offset, v_full = G v. A row of G has one
# entry: the joint's own coordinate (1), the one it follows at the end of its chain of mimics (the product of
# the multipliers), or none (it follows a fixed joint and stands still).
#
# Source: mimic element of URDF; equations of motion under v_full = G v, RBDA section 3.3 (H_r = G^T H G).

NO_COORDINATE = -1  # index of the coordinate of joints that do not move: none


@frozen
class Coupling:
    """The matrix G and the offset of coupled mimic joints, q_full = G q + offset; each row of G has at most
    one entry.

    Attributes:
        nq, nv: lengths of the reduced q and v.
        q_from: (coordinate of the reduced q or -1, multiplier, offset) of each full coordinate.
        v_from: (coordinate of the reduced v or -1, multiplier) of each full velocity.
        dof_parent: parent of each reduced dof in a tree whose branches cover H_r and its factor L.
        own_q, own_v: place of each reduced coordinate and velocity in the full q and v.
    """

    nq: int
    nv: int
    q_from: tuple[tuple[int, float, float], ...]
    v_from: tuple[tuple[int, float], ...]
    dof_parent: tuple[int, ...]
    own_q: tuple[int, ...]
    own_v: tuple[int, ...]

    def full_q(self, q: Sequence[Any]) -> list[Any]:
        """G q + offset, as a list of scalars."""
        return [offset if k == NO_COORDINATE else _times(q[k], m) + offset for k, m, offset in self.q_from]

    def full_v(self, v: Sequence[Any]) -> list[Any]:
        """G v, as a list of scalars."""
        return [0.0 if k == NO_COORDINATE else _times(v[k], m) for k, m in self.v_from]

    def force_at_own(self, tau: Sequence[Any]) -> list[Any]:
        """Forces of all joints that project to tau: tau where a joint keeps its coordinates, otherwise 0."""
        full = [0.0] * len(self.v_from)
        for k, at in enumerate(self.own_v):
            full[at] = tau[k]
        return full

    @cached_attribute
    def G(self) -> np.ndarray:
        """The coupling matrix, (full nv, nv)."""
        G = np.zeros((len(self.v_from), self.nv))
        for row, (k, m) in enumerate(self.v_from):
            if k != NO_COORDINATE:
                G[row, k] = m
        return G


def _times(x: Any, m: float) -> Any:
    return x if m == 1.0 else x * m


def reduced_parents(dof_parent: Sequence[int], dof_of: Sequence[int], nv: int) -> tuple[int, ...]:
    """Elimination tree of H_r = G^T H G, taken from the last dof to the first as L^T D L does.

    Joints of different branches that share a coordinate couple their branches. The factor's entries lie on
    the paths of this tree, so that the sparse factorisation serves H_r as it does H; without mimics it is
    ``dof_parent`` itself. ``dof_of`` is the reduced dof of each full one, -1 for none; ``nv`` their number.

    Source: elimination trees, J. W. H. Liu (1990); RBDA section 6.4.
    """
    above: list[set[int]] = [set() for _ in range(nv)]
    for i, j in np.argwhere(np.tril(inertia_pattern(dof_parent))).tolist():
        a, b = sorted((dof_of[i], dof_of[j]))
        if a != NO_COORDINATE and a != b:
            above[b].add(a)
    parents = [NO_COORDINATE] * nv
    for k in reversed(range(nv)):
        if above[k]:
            parents[k] = max(above[k])
            above[parents[k]] |= above[k] - {parents[k]}
    return tuple(parents)
