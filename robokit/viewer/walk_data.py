"""Inside the algorithms: what their source does, line by line, for any state that the page shows."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from robokit import disk_cache
from robokit.algorithms import composites, crba, ltdl, rnea
from robokit.algorithms.aba import aba
from robokit.dynamics.layout import INPUTS
from robokit.dynamics.singular import singular_joint
from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import CONST, INPUT, OPERATIONS
from robokit.engine.trace.scalar import Scalar
from robokit.model.robot import Robot
from robokit.serialize import from_json
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage
from robokit.viewer.curves import deflated, deflated_whole
from robokit.viewer.payload_keys import (
    AlgorithmData,
    FormData,
    LetterData,
    ListingData,
    ProgramData,
    SweepData,
    WalkData,
    Whole,
)
from robokit.viewer.text_recorder import KINDS, Place, Recipe, Recorder, Step, Value

# ==== Data of a page that follow from the robot alone and take long to make, kept on disk =========


def kept(label: str, robot: Robot, key: tuple[Any, ...], kind: Any, make: Callable[[], Any]) -> Any:
    """Load what is on disk, or make it now and store it.

    Args:
        label: for ``robokit cache``.
        robot: a single robot, on whose dynamics it depends.
        key: what else it depends on, of exact reprs.
        kind: its type: of the payload's classes, lists, tuples, text, numbers and None.
        make: makes it.
    """
    source = disk_cache.source_digest()
    names = [joint.name for joint in robot.body_joints]
    name = disk_cache.digest(
        "page",
        label,
        source,
        robot.fingerprint,
        robot.base,
        names,
        robot.tree.loops,
        key,
        sys.version_info[:2],
    )
    found = disk_cache.load(name) if source else None
    if found is not None:
        return from_json(kind, json.loads(found[1]))
    made = make()
    if source:
        content = json.dumps(made, separators=(",", ":"), default=vars).encode()
        disk_cache.store(name, {"kernel": label, "part": "page"}, content)
    return made


# ==== The algorithms that the page walks through: their functions, passes, symbols and units ======


@dataclass(frozen=True)
class Pass:
    """A loop over all bodies: what it is for, and whether it goes from the root to the tips."""

    title: str
    outward: bool


@dataclass(frozen=True)
class Letter:
    """A name of the text: its symbol (``I^A`` has a superscript), what it stands for, its unit."""

    symbol: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Walked:
    """An algorithm of the page."""

    key: str  # of the algorithm
    title: str  # its long name
    gives: str  # what goes in and what comes out
    recipe: Recipe  # what is recorded of it
    passes: tuple[Pass, ...]  # one for each loop of the main function
    letters: dict[str, Letter]  # by name in the text
    begin: Callable[..., Any]  # what is called


VELOCITY, ACCELERATION, FORCE = "rad/s; m/s", "rad/s²; m/s²", "N m; N"
INERTIA = "kg, kg m, kg m²"

SHARED = {
    "q": Letter("q", "joint position", "rad | m | unit quaternion"),
    "qd": Letter("q̇", "joint velocity", "rad/s | m/s"),
    "X": Letter("X", "from the parent's coordinates to the body's", "rotation E; origin r in m"),
    "S": Letter("S", "motion subspace: the directions that the joint leaves free"),
    "vJ": Letter("v^J", "velocity across the joint, S q̇", VELOCITY),
    "v": Letter("v", "velocity of the body", VELOCITY),
    "a": Letter("a", "acceleration of the body, gravity included as a₀ = −g", ACCELERATION),
    "I": Letter("I", "inertia of the body", INERTIA),
    "f_ext": Letter("f^x", "force of the ground on the body", FORCE),
}


def _recipe(main: Callable[..., Any], *others: Callable[..., Any], **options: Any) -> Recipe:
    return Recipe((main, *others), **options)


RNEA = Walked(
    "rnea",
    "Recursive Newton-Euler algorithm",
    "τ from q, q̇, q̈",
    _recipe(rnea.rnea, indices=("i", "p")),
    (
        Pass("velocities, accelerations and each body's own force", outward=True),
        Pass("forces summed up, projected on the joints", outward=False),
    ),
    SHARED
    | {
        "qdd": Letter("q̈", "joint acceleration", "rad/s² | m/s²"),
        "f": Letter("f", "force across the joint; before the sum, what moves the body alone", FORCE),
        "tau": Letter("τ", "joint force", "N m | N"),
    },
    rnea.rnea,
)

CRBA = Walked(
    "crba",
    "Composite-rigid-body algorithm",
    "H from q",
    _recipe(
        crba.composite,
        crba.crba,
        composites.composite_inertias,
        indices=("i", "j", "p"),
        matrix="H",
        blocks="_put",
    ),
    (Pass("inertias summed up; a force carried to the root fills H", outward=False),),
    SHARED
    | {
        "Ic": Letter("I^c", "composite inertia: the body with all bodies beyond it, joints locked", INERTIA),
        "F": Letter(
            "F", "force for unit acceleration of the composite about the joint, a column per dof", FORCE
        ),
        "block": Letter("S^T F", "block of H on the diagonal", "kg m² | kg m | kg"),
        "H": Letter("H", "entry of the mass matrix", "kg m² | kg m | kg"),
    },
    crba.crba,
)

LTDL = Walked(
    "ltdl",
    "Sparse factorisation H = LᵀDL",
    "L and D from H",
    _recipe(ltdl.ltdl, indices=("k", "i", "j"), matrix="L"),
    (Pass("rows eliminated along the branches", outward=False), Pass("unit diagonal of L", outward=True)),
    {
        "L": Letter("L", "entry: of H, then of what elimination leaves, in the end of L"),
        "H": Letter("H", "mass matrix", "kg m² | kg m | kg"),
        "D": Letter("D", "diagonal factor", "kg m² | kg"),
        "d": Letter("d", "1 / D of row k"),
        "a": Letter("a", "multiplier of row i"),
    },
    ltdl.ltdl,
)

ABA = Walked(
    "aba",
    "Articulated-body algorithm",
    "q̈ from q, q̇, τ",
    _recipe(aba, indices=("i", "p")),
    (
        Pass("velocities and each body's own inertia and bias force", outward=True),
        Pass("articulated inertias and bias forces", outward=False),
        Pass("accelerations", outward=True),
    ),
    SHARED
    | {
        "c": Letter("c", "velocity-product acceleration, v × v^J", ACCELERATION),
        "IA": Letter("I^A", "articulated inertia: the body with its subtree, joints free", INERTIA),
        "pA": Letter("p^A", "bias force of the articulated body", FORCE),
        "U": Letter("U", "I^A S, a column a dof"),
        "D": Letter("D", "S^T U, kept factorised", "kg m² | kg m | kg"),
        "rows": Letter("S^T U", "what becomes D", "kg m² | kg m | kg"),
        "u": Letter("u", "joint force left to accelerate: τ − S^T p^A", "N m | N"),
        "tau": Letter("τ", "joint force", "N m | N"),
        "Ia": Letter("I^a", "what the parent feels of I^A across the joint", INERTIA),
        "pa": Letter("p^a", "what the parent feels of p^A across the joint", FORCE),
        "qdd": Letter("q̈", "joint acceleration", "rad/s² | m/s²"),
    },
    aba,
)

WALKED = (RNEA, CRBA, LTDL, ABA)
"""All of them, in the order of the page."""


# ---- the algorithms run on a state ---------------------------------------------------------------

MOST_STEPS = 8_000
"""Lines of one algorithm that are recorded; the humanoid's CRBA has 1,073."""

MOST_ENTRY_STEPS = 16_000
"""Lines of LTDL that are recorded, which take single numbers; that of TALOS has 13,593."""

MOST_NODES = 20_000_000
"""More than so many lines can record: they are what ends a long robot's walk."""


@dataclass(frozen=True)
class State:
    """The inputs of the algorithms."""

    gravity: Sequence[Any]  # acceleration of free fall in world axes, 3 numbers [m/s^2]
    # q, v, tau: configuration, velocity, joint forces, nq and nv numbers
    q: Sequence[Any]
    v: Sequence[Any]
    tau: Sequence[Any]
    # of the ground on the bodies 0..N in their coordinates, 6 (N + 1) numbers [N m; N]; or None where nothing
    # pushes
    f_ext: Sequence[Any] | None = None

    def flat(self) -> list[Any]:
        """All of these numbers one after another: the inputs of the page's program."""
        return list(chain(self.gravity, self.q, self.v, self.tau, self.f_ext or ()))


@dataclass(frozen=True)
class Walk:
    """An algorithm that was recorded."""

    steps: list[Step]  # its lines
    result: Any  # what it returned, or None
    whole: bool  # whether it came to its end


def traced_state(robot: Robot, pushed: bool) -> State:
    """A state of traced scalars, of one graph.

    Args:
        pushed: whether there are forces on the bodies.
    """
    graph = Graph(MOST_NODES)
    sizes = (3, robot.nq, robot.nv, robot.nv, 6 * (robot.nbodies + 1) if pushed else 0)
    rows = [
        [Scalar(graph, graph.add((INPUT, k, offset))) for offset in range(size)]
        for k, size in enumerate(sizes)
    ]
    return State(rows[0], rows[1], rows[2], rows[3], rows[4] if pushed else None)


def walks(robot: Robot, state: State, without: Sequence[Walked] = ()) -> dict[str, Walk]:
    """RNEA, CRBA, LTDL and ABA recorded at a state, by key.

    ABA finds the accelerations, which the RNEA then takes; LTDL takes the H of CRBA. A robot with coupled
    joints has RNEA and CRBA alone, of its full tree: the coupling comes afterwards. So has one whose mass
    matrix is singular. Without ABA, or where it does not come to its end, the accelerations are 0; without
    all of H there is no LTDL.

    Args:
        state: floats, or scalars of one graph.
        without: what is left out.
    """
    tree = replace(robot.tree, gravity=tuple(state.gravity))  # type: ignore[arg-type]
    q, v, tau = robot.split_q(state.q), robot.split_v(state.v), robot.split_tau(state.tau)
    forces = () if state.f_ext is None else (INPUTS["f_ext"].split(robot, state.f_ext),)
    found: dict[str, Walk] = {}

    def walk(walked: Walked, *arguments: Any) -> Any:
        if walked in without:
            return None
        most = MOST_ENTRY_STEPS if walked is LTDL else MOST_STEPS
        recorder = Recorder(walked.recipe, tree.parent, tree.v_slice, most)
        result = recorder.run(walked.begin, *arguments)
        found[walked.key] = Walk(recorder.steps, result, recorder.complete)
        return result

    solved = robot.coupling is None
    if solved:
        solved = robot.derived.get("singular joint", lambda: singular_joint(robot)) is None
    a = walk(ABA, tree, q, v, tau, *forces) if solved else None
    walk(RNEA, tree, q, v, a or [[0.0] * len(rates) for rates in v], *forces)
    H = walk(CRBA, tree, q)
    if solved and H is not None:
        walk(LTDL, tree.dof_parent, H)
    return {walked.key: found[walked.key] for walked in WALKED if walked.key in found}


# ==== What each line of the algorithms does, in a sentence, by the line's own text ================

CAPTIONS = {
    # loops and branches, of several algorithms
    "for i in tree.outward():": "From the root to the tips: a parent comes before its children.",
    "for i in tree.inward():": "From the tips to the root: children come before their parent.",
    "p = tree.parent[i]": "The parent of body i.",
    "if p != 0:": "Is the parent a moving body?",
    "if f_ext is not None:": "Are there external forces?",
    "S = tree.joint[i].S": "The directions that joint i leaves free.",
    "X[i] = tree.X(i, q[i])": "From the parent's coordinates to the body's, at the joint position q.",
    "vJ = S * qd[i]": "What the joint itself adds to the velocity.",
    "v[0] = Motion.zero()": "The root stands still.",
    "a[0] = Motion(Vector3.zero(), tree.a0)": "The root accelerates with −g: so gravity enters.",
    # RNEA
    "X, v, a, f, tau = tree.lists(5)": "Lists for the quantities of each body.",
    "p, S, I = tree.parent[i], tree.joint[i].S, tree.I[i]": "Body i: its parent, its joint, its inertia.",
    "v[i] = X[i] @ v[p] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "a[i] = X[i] @ a[p] + S * qdd[i] + v[i].cross(vJ)": (
        "The parent's acceleration, the joint's, and the velocity-product acceleration."
    ),
    "f[i] = I @ a[i] + v[i].cross_force(I @ v[i])": "Newton and Euler: the force that moves this body alone.",
    "f[i] = f[i] - f_ext[i]": "Minus the external force, which the joint need not exert.",
    "tau[i] = rotor_forces(tree, i, tree.joint[i].S.T @ f[i], qdd[i])": (
        "The joint force: the component of f along the free directions, plus that of the rotor."
    ),
    "f[p] = f[p] + X[i].T @ f[i]": "The parent's joint carries the child's force too.",
    "return tau": "The joint forces of all joints.",
    # CRBA
    "return composite(tree, tree.transforms(q), tree.I)": "All transforms first, then the composites.",
    "H = [[0.0] * tree.nv for _ in range(tree.nv)]": "Zeros, which stay for joints on different branches.",
    "for i, Ic in composite_inertias(tree, X, I):": "The next body, with its composite inertia.",
    "F = S.of(Ic)": "The force that gives the composite unit acceleration about joint i.",
    "block = [S.T @ column for column in F]": "Its component about joint i itself: the diagonal of H.",
    "add_rotors(tree, i, block)": "The joint's rotor adds to the diagonal, if it has one.",
    "_put(H, tree, i, i, block)": "The diagonal entry of H is done.",
    "j = i": "Now from i to the root, along its branch.",
    "while tree.parent[j] != 0:": "Is there another joint on the way to the root?",
    "F = [X[j].T @ column for column in F]": "The same force, in the parent's coordinates.",
    "j = tree.parent[j]": "One body closer to the root.",
    "_put(H, tree, i, j, [tree.joint[j].S.T @ column for column in F])": (
        "What joint j feels of the force: the entries H(i, j) and H(j, i)."
    ),
    "return H": "All entries on common branches are there, the others stay 0.",
    "Ic = list(I)": "Each composite begins as the body alone.",
    "Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]": "The parent's composite gains body i's, in its own coordinates.",
    "yield i, Ic[i]": "I^c of body i is complete: everything beyond it is in.",
    # LTDL
    "n = len(parent)": "The number of degrees of freedom.",
    "L = [list(row) for row in H]": "L begins as a copy of H.",
    "for k in reversed(range(n)):": "From the last degree of freedom to the first, so that nothing fills in.",
    "d = 1.0 / L[k][k]": "The pivot of row k.",
    "i = parent[k]": "The row above k on its branch.",
    "while i >= 0:": "Still on the branch? Rows elsewhere have nothing to do with k.",
    "a = L[k][i] * d": "How much of row k goes into row i.",
    "while j >= 0:": "Only columns on the branch: the others are 0 and stay 0.",
    "L[i][j] = L[i][j] - L[k][j] * a": "Elimination: row i loses its share of row k.",
    "j = parent[j]": "The column before it on the branch.",
    "L[k][i] = a": "The multiplier is the entry of L.",
    "i = parent[i]": "The row before it on the branch.",
    "D = [L[k][k] for k in range(n)]": "What is left on the diagonal is D.",
    "for k in range(n):": "Row by row:",
    "L[k] = [*L[k][:k], 1.0, *[0.0] * (n - k - 1)]": "L gets ones on its diagonal and zeros above.",
    "return L, D": "H = LᵀDL, and L is as sparse as H.",
    # ABA
    "X, v, c, IA, pA, U, D, u, a, qdd = tree.lists(10)": "Lists for the quantities of each body.",
    "S, I = tree.joint[i].S, tree.I[i]": "Body i: its joint and its inertia.",
    "v[i] = X[i] @ v[tree.parent[i]] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "c[i] = v[i].cross(vJ)": "The acceleration due to velocities alone.",
    "IA[i] = I.articulated()": "The articulated inertia begins as the body alone.",
    "pA[i] = v[i].cross_force(I @ v[i])": "The force of the body at zero acceleration.",
    "pA[i] = pA[i] - f_ext[i]": "Minus the external force.",
    "p, S = tree.parent[i], tree.joint[i].S": "Body i: its parent and its joint.",
    "U[i] = S.of(IA[i])": "The force for unit acceleration about joint i, all joints beyond it free.",
    "rows = [S.T @ column for column in U[i]]": "What joint i feels of it: its apparent inertia.",
    "rotors = add_rotors(tree, i, rows)": "The joint's rotor adds to it, if it has one.",
    "D[i] = ldl(rows)": "Its factors, to solve with it.",
    "u[i] = [t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]": (
        "The joint force left for acceleration: tau minus the component of the bias force."
    ),
    "Ia = without_joint(IA[i], U[i], D[i])": "The parent does not feel inertia along the free directions.",
    "if not rotors:": "Without rotors, nothing is left along S:",
    "Ia = Ia.without(S.axes)": "these entries are exactly 0.",
    "pa = pA[i] + Ia @ c[i] + combine(U[i], ldl_solve(D[i], u[i]))": "The bias force that the parent feels.",
    "IA[p] = IA[p] + X[i].T @ Ia @ X[i]": "The parent's articulated inertia gains it, in own coordinates.",
    "pA[p] = pA[p] + X[i].T @ pa": "And so does its bias force.",
    "a[i] = X[i] @ a[tree.parent[i]] + c[i]": "The acceleration due to the parent.",
    "qdd[i] = ldl_solve(D[i], [ui - a[i].dot(column) for ui, column in zip(u[i], U[i], strict=True)])": (
        "The joint acceleration: what is left of u, divided by D."
    ),
    "a[i] = a[i] + S * qdd[i]": "The body's own acceleration, for its children.",
    "return qdd": "The accelerations of all joints.",
}
"""Sentences by line; where two algorithms have the same line, one sentence serves both."""


# ==== the page's data =============================================================================
# Inside the algorithms as the page's data: recorded once for all states, packed, within a size.

MOST_BYTES = 300_000
"""Largest size of the walk in a page [bytes]."""


def walk_of_motion(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> WalkData | None:
    """The walk of a motion's page.

    Args:
        chosen: indices of its samples that the page shows, (T,).
    """
    pushed = trajectory.ground is not None or trajectory.contacts is not None
    return walk_data(robot, pushed, touched_bodies(trajectory, robot, chosen))


def touched_bodies(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> Whole | None:
    """The body of each point of ``FramesData.contacts``; None where points are not known."""
    contacts = trajectory.contacts
    if contacts is None:
        return None
    body = {link.name: link.body for link in robot.links}
    bodies = np.array([body.get(link, 0) for link in contacts.links], dtype=int)
    touch = np.any(contacts.forces[chosen] != 0.0, axis=-1)
    return deflated_whole(np.broadcast_to(bodies, touch.shape)[touch])


def walk_data(
    robot: Robot, pushed: bool = False, touched: Whole | None = None, most_bytes: int = MOST_BYTES
) -> WalkData | None:
    """The walk of a page.

    Args:
        robot: a single Robot.
        pushed: whether there may be forces on its bodies.
        touched: the body of each point of contact, or None.
        most_bytes: room; where it is too little, the longest algorithms are left out.

    Returns:
        None where there is nothing to walk through, or no room.
    """
    room = most_bytes - (len(touched) if touched else 0)

    def made(room: int) -> WalkData | None:
        key = pushed, room, MOST_STEPS, MOST_ENTRY_STEPS
        found: WalkData | None = kept(
            "walk of a page", robot, key, WalkData | None, lambda: _walk(robot, pushed, room)
        )
        return found

    found = made(most_bytes)
    if found is not None and len(json.dumps(found, default=vars)) > room:
        found = made(room)
    return None if found is None else replace(found, touched=touched)


def _walk(robot: Robot, pushed: bool, most_bytes: int) -> WalkData | None:
    """The walk without the touched bodies."""
    if robot.nbodies == 0:
        return None
    with stage("recording the algorithms"):
        return _within(robot, pushed, most_bytes)


def _within(robot: Robot, pushed: bool, most_bytes: int) -> WalkData | None:
    without: list[Walked] = []
    state = traced_state(robot, pushed)
    found = walks(robot, state)
    while found:
        data = _packed(robot, state, found)
        if len(json.dumps(data, default=vars)) <= most_bytes:
            return data
        longest = max((w for w in WALKED if w.key in found), key=lambda w: len(found[w.key].steps))
        without.append(longest)
        del found[longest.key]
        if longest is ABA:  # without the ABA, the RNEA takes other accelerations
            state = traced_state(robot, pushed)
            found = walks(robot, state, without=without)
    return None


def _packed(robot: Robot, state: State, found: dict[str, Walk]) -> WalkData:
    graph = state.q[0].graph
    algorithms = [w for w in WALKED if w.key in found]
    tables = [ValueTable(graph, found[w.key]) for w in algorithms]
    program = WalkProgram.of(graph, (ref for table in tables for ref in table.refs()))
    return WalkData(
        program=program.data(state),
        gravity=[float(g) for g in robot.tree.gravity],
        touched=None,
        rows=[i for i, dofs in enumerate(robot.tree.v_slice) for _ in range(dofs.stop - dofs.start)],
        kinds=list(KINDS),
        algorithms=[
            algorithm_data(w, found[w.key], table, program)
            for w, table in zip(algorithms, tables, strict=True)
        ],
        notes=_notes(robot, state, found),
    )


def _notes(robot: Robot, state: State, found: dict[str, Walk]) -> list[str]:
    """What the numbers stand for."""
    notes = [
        "Numbers are those of the state that the scene shows.",
        "Vectors and inertias are in the coordinates of their body, angular part first.",
    ]
    given = "Given: q, q̇ and τ of the motion"
    if state.f_ext is None:
        notes.append(f"{given}; of a pose q, with q̇ = 0 and τ = 0.")
    else:
        notes.append(
            f"{given}, with the forces of the ground. In live runs, τ = 0 and pulls are left out. In poses "
            "set by sliders, q̇ = 0 and τ = 0, without external forces."
        )
    notes.append("These algorithms do not include joint damping, friction and limits.")
    if RNEA.key in found:
        solved = ABA.key in found and found[ABA.key].whole
        notes.append("RNEA takes the accelerations that ABA finds." if solved else "RNEA takes q̈ = 0.")
    if robot.coupling is not None:
        notes.append("Coupled joints: RNEA and CRBA see the full tree, the coupling comes afterwards.")
    if LTDL.key in found:
        notes.append("LTDL counts degrees of freedom from 0, as its source does; rows of H count from 1.")
    missing = [w.key.upper() for w in WALKED if w.key not in found]
    if missing:
        notes.append(f"Left out for this robot: {', '.join(missing)}.")
    return notes


# ---- the recorded graph as the page's program ----------------------------------------------------

OPERANDS = 3
"""Largest number of operands of an operation."""


@dataclass(frozen=True)
class WalkProgram:
    """The part of a graph that some values need.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.
    """

    graph: Graph  # the graph
    # constants, inputs, order: numbers of its nodes
    constants: list[int]
    inputs: list[int]
    order: list[int]
    slot: dict[int, int]  # of each of these nodes

    @classmethod
    def of(cls, graph: Graph, refs: Iterable[int]) -> WalkProgram:
        """The part that these signed references need."""
        nodes = graph.nodes
        needed = bytearray(len(nodes))
        for ref in refs:
            needed[abs(ref)] = 1
        for number in range(len(nodes) - 1, 0, -1):
            if needed[number] and nodes[number][0] > CONST:
                for operand in nodes[number][1:]:
                    needed[operand] = 1
        found = [number for number in range(1, len(nodes)) if needed[number]]
        constants = [number for number in found if nodes[number][0] == CONST]
        inputs = [number for number in found if nodes[number][0] < CONST]
        order = [number for number in found if nodes[number][0] > CONST]
        slot = {number: k for k, number in enumerate((*constants, *inputs, *order))}
        return cls(graph, constants, inputs, order, slot)

    def place(self, ref: int) -> int:
        """A signed reference as the page has it: twice the slot, and 1 more where its sign is turned."""
        return 2 * self.slot[abs(ref)] + (ref < 0)

    def data(self, state: State) -> ProgramData:
        """The page's data.

        Args:
            state: of the traced scalars that the graph began with.
        """
        nodes = self.graph.nodes
        place = {scalar.ref: k for k, scalar in enumerate(state.flat())}
        codes = [nodes[number][0] for number in self.order]
        used = sorted(set(codes))
        return ProgramData(
            operations=[OPERATIONS[code].name for code in used],
            codes=deflated([used.index(code) for code in codes], "u1"),
            operands=[deflated_whole(self._operands(k)) for k in range(OPERANDS)],
            constants=deflated([nodes[number][1] for number in self.constants], "<f8"),
            inputs=deflated_whole([place[number] for number in self.inputs]),
        )

    def _operands(self, k: int) -> Sequence[int]:
        """Operand k of the operations that have one: how far back it is, or -1 - slot of what is given."""
        first = len(self.constants) + len(self.inputs)
        found = []
        for number in self.order:
            operands = self.graph.nodes[number][1:]
            if k < len(operands):
                slot = self.slot[operands[k]]
                found.append(self.slot[number] - slot if slot >= first else -1 - slot)
        return found


# ---- one algorithm -------------------------------------------------------------------------------


class ValueTable:
    """The different values of an algorithm, as signed references into the graph.

    Attributes:
        rows: kind and references of each.
        places: where the values stand that the steps have seen, one after another.
    """

    def __init__(self, graph: Graph, walk: Walk) -> None:
        """The values of all steps of a walk."""
        self.graph = graph
        place: dict[tuple[str, tuple[int, ...]], int] = {}
        self.places = [
            place.setdefault(self._row(seen.value), len(place)) for step in walk.steps for seen in step.seen
        ]
        self.rows = list(place)

    def refs(self) -> Iterator[int]:
        """All references."""
        return chain.from_iterable(refs for _, refs in self.rows)

    def _row(self, value: Value) -> tuple[str, tuple[int, ...]]:
        kind, numbers = value
        return kind, tuple(x.ref if type(x) is Scalar else self.graph.constant(x) for x in numbers)


def algorithm_data(walked: Walked, walk: Walk, table: ValueTable, program: WalkProgram) -> AlgorithmData:
    """The page's data of one algorithm.

    Args:
        walked: the algorithm.
        walk: as it was recorded.
        table: its values.
        program: finds them.
    """
    files = list(dict.fromkeys(inspect.getsourcefile(f) or "" for f in walked.recipe.functions))
    letters: dict[tuple[str, bool], int] = {}
    places: list[Place] = []
    forms: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
    steps: list[int] = []
    for step in walk.steps:
        for seen in step.seen:
            if (seen.place.text, seen.place.written) not in letters:
                letters[seen.place.text, seen.place.written] = len(places)
                places.append(seen.place)
        spoken = tuple(letters[seen.place.text, seen.place.written] for seen in step.seen)
        statement = step.statement
        form = (files.index(statement.file), statement.first, statement.last, step.stage, spoken)
        steps.append(forms.setdefault(form, len(forms)))
    listings = [ListingData(Path(file).name, Path(file).read_text(encoding="utf-8")) for file in files]
    lines = [listing.text.split("\n") for listing in listings]
    every = [seen for step in walk.steps for seen in step.seen]
    return AlgorithmData(
        key=walked.key,
        title=walked.title,
        gives=walked.gives,
        listings=listings,
        sweeps=[SweepData(each.title, each.outward) for each in walked.passes],
        indices=list(walked.recipe.indices),
        by_dof=walked is LTDL,
        matrix=walked.recipe.matrix,
        letters=[_letter(walked, place) for place in places],
        forms=[
            FormData(*form[:4], list(form[4]), CAPTIONS.get(lines[form[0]][form[1] - 1].strip(), ""))
            for form in forms
        ],
        steps=deflated_whole(steps),
        counters=deflated_whole([step.indices for step in walk.steps]),
        places=deflated_whole([seen.where for seen in every]),
        seen=deflated_whole(np.diff(table.places, prepend=0)),
        shapes=deflated_whole([(KINDS.index(kind), len(refs)) for kind, refs in table.rows]),
        numbers=deflated_whole(np.diff([program.place(ref) for ref in table.refs()], prepend=0)),
        whole=walk.whole,
    )


def _letter(walked: Walked, place: Place) -> LetterData:
    """How a value is written in books."""
    name = {"tree.joint[": "S", "tree.I[": "I"}.get(place.text.partition("[")[0] + "[", place.name)
    letter = walked.letters.get(name, Letter(name, ""))
    subscripts = place.text.replace("tree.parent[i]", "λ(i)").split("[")[1:]
    below = ", ".join(part.split("]")[0] for part in subscripts)
    entry = place.name == walked.recipe.matrix and place.depth > 0
    return LetterData(place.text, letter.symbol, below, letter.meaning, letter.unit, place.written, entry)
