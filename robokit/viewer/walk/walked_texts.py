"""The algorithms that the page walks through: their functions, passes, symbols and units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from robokit.algorithms import composites, crba, ltdl, rnea
from robokit.algorithms.aba import aba
from robokit.dynamics.layout import INPUTS
from robokit.dynamics.singular import singular_joint
from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import INPUT
from robokit.engine.trace.scalar import Scalar
from robokit.model.robot import Robot
from robokit.viewer.walk.text_recorder import Recipe, Recorder, Step


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
    """An algorithm of the page.

    Attributes:
        key: of the algorithm.
        title: its long name.
        gives: what goes in and what comes out.
        recipe: what is recorded of it.
        passes: one for each loop of the main function.
        letters: by name in the text.
        begin: what is called.
    """

    key: str
    title: str
    gives: str
    recipe: Recipe
    passes: tuple[Pass, ...]
    letters: dict[str, Letter]
    begin: Callable[..., Any]


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
        "F": Letter("F", "force that moves the composite at unit joint acceleration, a column a dof", FORCE),
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
    """The inputs of the algorithms.

    Attributes:
        gravity: acceleration of free fall in world axes, 3 numbers [m/s^2].
        q, v, tau: configuration, velocity, joint forces, nq and nv numbers.
        f_ext: of the ground on the bodies 0..N in their coordinates, 6 (N + 1) numbers [N m; N]; or None
            where nothing pushes.
    """

    gravity: Sequence[Any]
    q: Sequence[Any]
    v: Sequence[Any]
    tau: Sequence[Any]
    f_ext: Sequence[Any] | None = None

    def flat(self) -> list[Any]:
        """All of these numbers one after another: the inputs of the page's program."""
        return list(chain(self.gravity, self.q, self.v, self.tau, self.f_ext or ()))


@dataclass(frozen=True)
class Walk:
    """An algorithm that was recorded.

    Attributes:
        steps: its lines.
        result: what it returned, or None.
        whole: whether it came to its end.
    """

    steps: list[Step]
    result: Any
    whole: bool


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
