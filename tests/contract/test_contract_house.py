"""The house: every module on its floor, imports downward only, no circles."""

from __future__ import annotations

import ast
from pathlib import Path

import house
import pytest

import robokit

ROOT = Path(robokit.__file__).resolve().parent


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
    assert nested == set(house.FLOORS) - {""}
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
        index = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        words = set(index.replace(".py", " ").split())
        missing = [p.stem for p in path.parent.glob("*.py") if p.stem not in words and p != path]
        assert not missing, f"{path.relative_to(ROOT)} does not name {missing}"
