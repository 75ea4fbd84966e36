"""The source itself: light imports, citations, docstrings."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from house import parsed, statements

import robokit

ROOT = Path(robokit.__file__).resolve().parent
HEAVY = (
    "lxml",
    "trimesh",
    "PIL",
    "xacro",
    "scipy",
    "matplotlib",
    "meshcat",
    "tqdm",
    "threadpoolctl",
    "sympy",
    "jax",
    "casadi",
    "llvmlite",
    "pandas",
    "IPython",
)
FILES = sorted(ROOT.rglob("*.py"))
ALGORITHMS = sorted(p for p in (ROOT / "algorithms").glob("*.py") if p.stem != "__init__")


def imports(path: Path):
    """(module, line, runs at import) of every import of robokit's own modules."""
    tree = parsed(path)
    quiet = {id(n) for block in statements(tree) if _typing_only(block) for n in statements(block)}
    lazy = {id(n) for f in statements(tree) if isinstance(f, ast.FunctionDef) for n in statements(f)}
    for node in statements(tree):
        if id(node) in quiet:
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            if node.module == "robokit":
                yield from ((f"robokit.{a.name}", node.lineno, id(node) not in lazy) for a in node.names)
            else:
                yield node.module, node.lineno, id(node) not in lazy
        elif isinstance(node, ast.Import):
            yield from ((a.name, node.lineno, id(node) not in lazy) for a in node.names)


def _typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_heavy_packages_are_imported_where_they_are_used():
    assert len(FILES) > 100
    early = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in FILES
        for module, line, at_import in imports(path)
        if at_import and module.split(".")[0] in HEAVY
    ]
    assert not early, "\n".join(early)


def test_import_robokit_is_light():
    code = "import sys, json, robokit; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent
    )
    loaded = set(json.loads(done.stdout))
    assert "robokit" in loaded and "numpy" in loaded
    assert loaded.isdisjoint(HEAVY), f"import robokit also imports {sorted(loaded.intersection(HEAVY))}"


def test_each_algorithm_cites_its_source_and_cost():
    silent = []
    for path in ALGORITHMS:
        text = ast.get_docstring(parsed(path)) or ""
        source = text.partition("Source:")[2].partition("Cost:")[0]
        if not any(word in source for word in ("RBDA", "seeds", "notes", "Wensing")):
            silent.append(f"{path.name} cites no source")
        if "O(" not in text.partition("Cost:")[2]:
            silent.append(f"{path.name} says no cost")
    assert ALGORITHMS and not silent, "\n".join(silent)


def test_algorithms_use_the_scalars_they_are_given():
    # No NumPy, no math, no engine: only operators and spatial's functions.
    others = []
    for path in ALGORITHMS:
        for module, line, _ in imports(path):
            top = module.split(".")
            allowed = {"__future__", "itertools", "collections", "typing"}
            if top[0] not in allowed and (
                top[0] != "robokit" or top[1] not in ("algorithms", "model", "spatial")
            ):
                others.append(f"{path.name}:{line}: {module}")
    assert not others, "\n".join(others)


def test_every_module_and_public_definition_has_a_docstring():
    silent = []
    for path in FILES:
        tree = parsed(path)
        if not ast.get_docstring(tree):
            silent.append(f"{path.relative_to(ROOT)} has no docstring")
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            overloads = public and any(getattr(x, "id", "") == "overload" for x in node.decorator_list)
            if public and not overloads and not ast.get_docstring(node):
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no docstring")
    assert not silent, "\n".join(silent)
