"""The house: modules on floors, imports downward only, no circles, short functions, the field's words.

And the text: light imports, citations, docstrings. One process parses all of it.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import house
import pytest

import robokit

ROOT = Path(robokit.__file__).resolve().parent
DOCS = ROOT.parent / "docs"


@pytest.fixture(scope="module")
def found():
    """Every import inside robokit; its files are parsed, which processes that only collect do without."""
    return list(house.imports(ROOT))


@pytest.mark.parametrize("folder", house.FLOORS)
def test_every_part_stands_on_one_floor(folder):
    inside = ROOT / folder.replace(".", "/")
    parts = {p.stem for p in inside.glob("*.py")} | {p.parent.name for p in inside.glob("*/__init__.py")}
    listed = [part for floor in house.FLOORS[folder] for part in floor]
    assert sorted(listed) == sorted(parts)


def test_every_folder_with_folders_has_floors():
    nested = {p.parents[1].relative_to(ROOT).as_posix() for p in ROOT.glob("*/*/__init__.py")}
    assert nested <= set(house.FLOORS)
    assert not list(ROOT.glob("*/*/*/__init__.py")), "two levels of folders are enough"


@pytest.mark.parametrize("folder", house.FLOORS)
def test_imports_go_down(found, folder):
    wrong = []
    for each in found:
        if folder and not (_inside(each.source, folder) and _inside(each.target, folder)):
            continue
        source, target = house.place(each.source, folder), house.place(each.target, folder)
        if source != target and house.floor(target, folder) >= house.floor(source, folder):
            wrong.append(f"{each.source}:{each.line} imports {each.target}")
    assert not wrong, "\n".join(wrong)


def _inside(module, folder):
    return module == folder or module.startswith(folder + ".")


def test_no_modules_import_each_other_in_a_circle(found):
    # Imports inside functions and those for types alone count too: a circle hidden by either is one.
    assert house.circles({(each.source, each.target) for each in found}) == []


def test_a_circle_would_be_found():
    assert house.circles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == [["a", "b", "c"]]
    assert house.circles({("a", "a")}) == [["a"]]
    assert house.circles({("a", "b"), ("a", "c"), ("b", "c")}) == []


def test_hidden_imports_are_seen(tmp_path):
    (tmp_path / "low.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from robokit.high import X\n"
        "def f():\n    import robokit.high\n    from robokit import high\n"
    )
    (tmp_path / "high.py").write_text("")
    found = [(each.target, each.line) for each in house.imports(tmp_path)]
    assert found == [("high", 3), ("high", 5), ("high", 6)]


def test_folders_say_what_is_in_them():
    for path in ROOT.rglob("__init__.py"):
        if path.parent == ROOT or path.parent.name == "algorithms":  # there the files themselves say it
            continue
        index = ast.get_docstring(house.parsed(path)) or ""
        words = set(index.replace(".py", " ").split())
        missing = [p.stem for p in path.parent.glob("*.py") if p.stem not in words and p != path]
        assert not missing, f"{path.relative_to(ROOT)} does not name {missing}"


def test_functions_fit_a_page():
    long = set()
    for name, path in house.modules(ROOT).items():
        for node in house.statements(house.parsed(path)):
            if not isinstance(node, ast.FunctionDef):
                continue
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            if node.end_lineno - first.lineno >= house.LONGEST_FUNCTION:
                long.add(f"{name}.{node.name}")
    assert sorted(long - house.LONGER) == [], f"more than {house.LONGEST_FUNCTION} lines"
    assert sorted(house.LONGER - long) == [], "these have become shorter: take them from house.LONGER"


def test_sums_do_not_depend_on_the_version_of_python():
    texts = [
        f"{name}, line {node.lineno}"
        for name, path in house.modules(ROOT).items()
        if name.partition(".")[0] in ("algorithms", "collision", "contact", "spatial")
        for node in ast.walk(house.parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum"
    ]
    assert not texts, "from Python 3.12 on sum compensates for rounding: robokit.spatial.scalars.added"


def words(name):
    """The words of a name, in small letters: AnyName_of.thing has any, name, of, thing."""
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))


def advised(names):
    """The names that have a word of house.RETIRED, each with the field's term."""
    return {
        name: ", ".join(house.RETIRED[word] for word in sorted(words(name) & set(house.RETIRED)))
        for name in names
        if words(name) & set(house.RETIRED)
    }


def test_words_are_found():
    assert set(advised(["sim.books", "GivenStates", "giving", "narrow_phase"])) == {
        "sim.books",
        "GivenStates",
    }


def test_files_are_named_in_the_words_of_the_field():
    found = advised(house.modules(ROOT))
    assert {name: term for name, term in found.items() if name not in house.REMAINING} == {}
    assert sorted(house.REMAINING - set(found)) == [], (
        "these have other names now: take them from house.REMAINING"
    )


def test_public_names_are_words_of_the_field():
    names = set(robokit.__all__)
    for name in robokit.__all__:
        thing = getattr(robokit, name)
        if inspect.isclass(thing):
            names |= {f"{name}.{own}" for own in dir(thing) if not own.startswith("_")}
            thing, name = thing.__init__, f"{name}.__init__"
        if inspect.isfunction(thing):
            names |= {f"{name}.{argument}" for argument in inspect.signature(thing).parameters}
    found = advised(names)
    assert {name: term for name, term in found.items() if name not in house.RELEASED} == {}
    assert sorted(house.RELEASED - set(found)) == []


def titles(path):
    """The section titles of a page of the manual."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [a for a, b in itertools.pairwise(lines) if a.strip() and re.fullmatch(r"([=~^\"'-])\1{2,}", b)]


def test_sections_are_named_in_the_words_of_the_field():
    found = {path.name: advised(titles(path)) for path in DOCS.rglob("*.rst")}
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


def test_the_glossary_says_where_its_terms_are():
    text = (DOCS / "glossary.rst").read_text(encoding="utf-8")
    entries = re.findall(r"(?m)^   (\S.*)\n((?:      .*\n)+)", text)
    assert len(entries) > 50
    wrong = [term for term, meaning in entries if not re.search(r"``[a-z_/.0-9]+``\.\n$", meaning)]
    missing = [
        place for place in re.findall(r": ``([a-z_/.0-9]+)``\.\n", text) if not (ROOT / place).exists()
    ]
    assert wrong == [] and missing == []
    terms = [term.lower() for term, _ in entries]
    assert len(terms) == len(set(terms))
    assert advised(terms) == {}


# -- The text itself: light imports, citations, docstrings ----------------------------------------------

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


def imported(node, early=True):
    """(module, line, whether it runs at import) of every import below a node, but those for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((a.name, child.lineno, early) for a in child.names)
        elif isinstance(child, ast.ImportFrom):
            names = (
                [f"robokit.{a.name}" for a in child.names] if child.module == "robokit" else [child.module]
            )
            yield from ((name, child.lineno, early) for name in names)
        elif not isinstance(child, ast.expr) and not _typing_only(child):
            yield from imported(child, early and not isinstance(child, ast.FunctionDef))


def _typing_only(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_heavy_packages_are_imported_where_they_are_used():
    assert len(FILES) > 100
    early = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for path in FILES
        for module, line, at_import in imported(house.parsed(path))
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
        text = ast.get_docstring(house.parsed(path)) or ""
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
        for module, line, _ in imported(house.parsed(path)):
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
        tree = house.parsed(path)
        if not ast.get_docstring(tree):
            silent.append(f"{path.relative_to(ROOT)} has no docstring")
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            overloads = public and any(getattr(x, "id", "") == "overload" for x in node.decorator_list)
            if public and not overloads and not ast.get_docstring(node):
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no docstring")
    assert not silent, "\n".join(silent)
