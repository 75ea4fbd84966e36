"""The manual covers what there is: algorithms, commands, examples, public names, tests it cites."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import robokit as rk
from robokit.cli.parser import make_parser

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))


def page(name: str) -> str:
    return (DOCS / f"{name}.rst").read_text(encoding="utf-8")


def test_every_algorithm_is_in_the_book():
    shown = re.findall(r"^\.\. literalinclude:: \.\./robokit/algorithms/(\w+)\.py$", page("algorithms"), re.M)
    files = [path.stem for path in (ROOT / "robokit" / "algorithms").glob("*.py") if path.stem != "__init__"]
    assert sorted(shown) == sorted(files)
    for name in files:
        assert f".. _{name}:" in page("algorithms") and f":ref:`{name} <{name}>`" in page("algorithms"), name


def test_every_command_is_on_the_page_of_the_command_line():
    (commands,) = (action.choices for action in make_parser()._actions if action.choices)
    text = page("cli")
    for name in commands:
        assert re.search(rf"^robokit {name}\n-+$", text, re.M), f"no section for robokit {name}"
        assert re.search(rf"^\.\. command:: {name}\b", text, re.M), f"no output of robokit {name}"


def test_every_example_is_in_the_manual():
    shown = re.findall(r"^\.\. example:: (\w+)$", page("examples"), re.M)
    assert shown == [path.stem for path in sorted((ROOT / "examples").glob("*.py"))]


def test_every_severity_of_the_importer_has_its_entries():
    assert re.findall(r"^\.\. diagnostics:: (\w+)$", page("diagnostics"), re.M) == [
        "error",
        "warning",
        "note",
    ]


def test_every_bad_file_is_shown_with_what_is_said():
    files = sorted(path.name for path in (DOCS / "_ext" / "urdf").glob("*.urdf"))
    text = page("bad_files")
    assert sorted(re.findall(r"^\.\. literalinclude:: _ext/urdf/(\S+)$", text, re.M)) == files
    assert sorted(re.findall(r"^\.\. command:: check (\S+)$", text, re.M)) == files


def test_every_public_name_is_in_the_reference():
    text = page("api")
    modules = set(re.findall(r"^\.\. automodule:: ([\w.]+)$", text, re.M))
    named = set(re.findall(r"^\.\. auto(?:function|class):: robokit\.(\w+)$", text, re.M))
    for name, value in vars(rk).items():
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("robokit"):
            continue
        assert name in named or value.__module__ in modules, f"rk.{name} is not in docs/api.rst"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_tests_and_files_that_a_page_names_exist(path):
    text = path.read_text(encoding="utf-8")
    tests = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"``(test_\w+)``", text):
        assert f"def {name}(" in tests, f"{path.name} names {name}, which is not there"
    for name in re.findall(r"``((?:robokit|tests|robots|docs|examples)/[\w/.]+)``", text):
        assert (ROOT / name).exists(), f"{path.name} names {name}, which is not there"


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^   (\w+)$", page("index"), re.M))
    assert listed == {path.stem for path in PAGES} - {"index"}
