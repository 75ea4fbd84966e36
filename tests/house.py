"""The house's rules: floors, words and lengths, and which module imports which.

Read by the tests; the manual draws the floors.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from robokit.interpreter import without_collector

PACKAGE = "robokit"

FLOORS: dict[str, list[tuple[str, ...]]] = {
    # Each part imports from the floors before its own; neighbours on one floor never import each other.
    "": [
        ("errors", "conventions", "interpreter", "spatial", "hooks", "stages"),
        ("arguments", "child_process_main", "disk_cache", "robot_names", "unknown_names", "dataclass_tools"),
        ("child_process", "files", "rotations", "serialize", "shipped_code"),
        ("model", "engine"),
        ("algorithms", "meshes", "interop"),
        # The MJCF export names joints as interop's MuJoCo adapter finds them.
        ("dynamics", "urdf", "mjcf"),
        ("collision",),
        ("contact",),
        ("sim", "ik", "identification", "momentum_observer"),
        ("formats",),
        ("viewer", "gym", "parity", "sdf"),
        ("sweeps", "logs", "conversion"),
        ("__init__",),
        ("cli",),
        ("__main__",),
    ],
    # The same inside the folders that have folders of their own.
    "engine": [
        ("memory",),
        ("signature", "trace"),
        ("passes",),
        ("emit",),
        ("backend",),
        ("single_calls", "batch_calls", "reproducible"),
        ("maker",),
        ("loops",),
        ("cuda",),
        ("kernel",),
        ("__init__",),
    ],
    "viewer": [
        ("mass_matrix_figure", "scene"),
        ("payload_keys",),
        ("motion_data",),
        ("live_data", "walk_data"),
        ("payload",),
        ("page",),
        ("server", "film", "notebook"),
        ("live",),
        ("__init__",),
    ],
    "contact": [
        ("fields", "robot_data", "materials", "vectors"),
        ("kinematics", "laws", "pattern", "groups"),
        ("linear", "distances"),
        ("articulated",),
        ("solver",),
        ("constraints",),
        ("closing_derivatives", "landings"),
        ("detection_derivatives",),
        ("constraint_derivatives",),
        ("step_derivatives",),
        ("accounts",),
        ("measures",),
        ("bounces", "monitor"),
        ("impacts",),
        ("step",),
        ("step_in_lanes", "step_of_robot", "step_control"),
        ("bounce_derivatives", "limit_derivatives"),
        ("landing_derivatives",),
        ("__init__",),
    ],
    "sim": [
        ("kernel_rows",),
        ("ground", "actuators", "force_elements", "motion"),
        ("distances", "joint_forces"),
        ("integrators",),
        ("step_kernel",),
        ("steppers",),
        ("starts", "page_step", "rollout_measures", "events"),
        ("contact_rows", "run_inputs", "sensors"),
        ("linear_steps",),
        ("trajectory", "graph_functions"),
        ("run_loop",),
        ("card_rows",),
        ("rollouts",),
        ("simulation", "former_names"),
        ("__init__",),
    ],
    "urdf": [
        ("description", "findings", "xacro_child"),
        ("source", "mesh_files"),
        ("xacro",),
        ("structure",),
        ("checks",),
        ("load", "write"),
        ("lint",),
        ("__init__",),
    ],
}


LONGEST_FUNCTION = 60  # lines of a function, without its docstring

LONGER = {
    "engine.emit.ir.sincos_body",
}
"""Functions that are longer still. This set only shrinks."""

RETIRED = {
    "acting": "contact forces",
    "answer": "report",
    "answers": "report",
    "asked": "..._tolerance, ..._threshold, with the quantity in the name",
    "bonds": "friction anchors",
    "books": "energy accounting",
    "calm": "..._threshold, with the quantity in the name",
    "carried": "solver state",
    "chosen": "monitor",
    "closing": "loop closure",
    "doubt": "warning",
    "doubts": "warnings",
    "draws": "distributions",
    "given": "inputs",
    "guard": "cond",
    "guards": "cond",
    "happened": "events",
    "kick": "contact solve",
    "ledger": "energy accounting",
    "ledgers": "energy accounting",
    "likewise": "for-loop, call, vmap",
    "listed": "interpreter",
    "loose": "free body",
    "made": "a noun",
    "meet": "pair contact",
    "meeting": "pair contact",
    "met": "pair contact",
    "paired": "superword parallelism",
    "plain": "what is left out",
    "played": "replay, interpreter",
    "press": "contact solve",
    "readings": "monitor",
    "respond": "Delassus operator",
    "settle": "contact solve",
    "settled": "contact solve",
    "shared": "call",
    "stretches": "basic blocks",
    "tiny": "..._threshold, with the quantity in the name",
    "touching": "ground contact",
    "trackers": "monitor",
    "turned": "rotated; a noun",
    "twin": "superword parallelism",
    "twins": "superword parallelism",
    "unforeseen": "warm start",
    "untrue": "..._tolerance, with the quantity in the name",
    "wound": "friction anchors",
}
"""Words in no name of a file, a public thing or a section -> the field's term (docs/glossary.rst)."""

RELEASED = {
    "Function.__init__.made_by",
    "Robot.__init__.shared_kernels",
    "Rollout.__init__.given",
    "Rollout.__init__.ledgers",
    "Rollout.given",
    "Rollout.ledgers",
    "Trajectory.answers",
    "WrongType.__init__.given",
}
"""Public names with such words, which were released and stay; no new ones come in."""

REMAINING = {
    "contact.closing_derivatives",
}
"""Modules with such words that still wait for a name. This set only shrinks."""


@dataclass(frozen=True)
class Import:
    """One import of a module of robokit by another, wherever it stands in the text.

    Attributes:
        source: dotted name of the module that imports, without "robokit.".
        target: dotted name of the module that is imported; "__init__" for the package itself.
        line: of the import.
    """

    source: str
    target: str
    line: int


def modules(root: Path) -> dict[str, Path]:
    """Dotted name without "robokit." -> file; a folder's own file goes by the folder's name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = list(path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """A file of the package, parsed once: all of them take a second."""
    with without_collector():
        return ast.parse(path.read_text(encoding="utf-8"))


def imports(root: Path) -> Iterator[Import]:
    """Every import of robokit's own modules: at the top, inside functions, and for types alone."""
    known = modules(root)
    for name, path in known.items():
        for node in statements(parsed(path)):
            for target in _targets(node, known):
                yield Import(name, target, node.lineno)  # type: ignore[attr-defined]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node but for expressions, most of a text, in which nothing is imported."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def _targets(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: relative import"
        if (node.module or "").partition(".")[0] == PACKAGE:
            module = (node.module or "").partition(".")[2]
            for alias in node.names:
                full = f"{module}.{alias.name}" if module else alias.name
                yield full if full in known else module or "__init__"
    elif isinstance(node, ast.Import):
        for alias in node.names:
            package, _, module = alias.name.partition(".")
            if package == PACKAGE:
                yield module if module in known else "__init__"


def place(module: str, folder: str = "") -> str:
    """The part of a folder that a module belongs to: engine.emit.ir is engine's in "", emit's in "engine"."""
    rest = module[len(folder) + 1 :] if folder and module != folder else module
    return "__init__" if module == folder else rest.split(".")[0]


def floor(part: str, folder: str = "") -> int:
    """Number of the floor that a part stands on, from 0.

    Raises:
        LookupError: it has none.
    """
    for k, parts in enumerate(FLOORS[folder]):
        if part in parts:
            return k
    raise LookupError(f"{folder or PACKAGE}: {part} stands on no floor; give it one in tests/house.py")


def circles(edges: set[tuple[str, str]]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others."""
    after: dict[str, set[str]] = {}
    for source, target in edges:
        after.setdefault(source, set()).add(target)
        after.setdefault(target, set())

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(after[start])
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo += after[node]
        return seen

    reach = {node: reachable(node) for node in after}
    groups = {
        tuple(sorted(other for other in reach[node] if node in reach[other]))
        for node in after
        if node in reach[node]
    }
    return [list(group) for group in sorted(groups)]
