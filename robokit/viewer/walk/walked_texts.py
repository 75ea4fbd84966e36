"""The algorithms that the page walks through: their functions, passes, symbols and units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from robokit.algorithms import composites, crba, ltdl, rnea
from robokit.algorithms.aba import aba
from robokit.viewer.walk.text_recorder import Recipe


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
    (
        Pass("rows eliminated along the branches", outward=False),
        Pass("unit diagonal of L", outward=True),
    ),
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
"""In the order of the page."""
