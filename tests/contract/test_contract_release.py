"""A release says the same version everywhere, and the forms for reports can be read."""

from __future__ import annotations

import argparse
import importlib
import re
import tomllib
from pathlib import Path

import robokit
from robokit.cli.parser import make_parser

ROOT = Path(__file__).resolve().parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    assert robokit.__version__ == version
    assert re.search(r"^version: (.*)$", read("CITATION.cff"), re.M)[1] == version
    heading = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", read("CHANGELOG.md"), re.M)
    assert heading, f"CHANGELOG.md has no heading of {version} with a date"
    assert re.search(r"^date-released: (.*)$", read("CITATION.cff"), re.M)[1] == heading[1]
    assert f"rev: v{version}\n" in read("docs/cli.rst")


def test_an_issue_form_asks_for_what_the_parts_are_called():
    """The keys that GitHub's forms need, without a YAML reader: each part has a type, each field an id."""
    forms = [p for p in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if p.stem != "config"]
    assert len(forms) >= 3
    for path in forms:
        text = path.read_text(encoding="utf-8")
        assert re.match(r"name: .+\ndescription: .+\nlabels: \[.+\]\nbody:\n  - type: ", text), path.name
        parts = re.findall(r"^  - type: (\w+)\n(    id: \w+\n)?", text, re.M)
        assert all(found or kind == "markdown" for kind, found in parts), path.name


def test_contributing_names_what_is_there():
    for name in re.findall(r"`((?:robokit|tests|docs|\.ci)/[\w/.]+)`", read("CONTRIBUTING.md")):
        assert (ROOT / name).exists(), name


def test_the_page_of_stability_promises_what_is_there():
    page = read("docs/stability.rst")
    modules = re.findall(r":mod:`(robokit\.\w+)`", page)
    assert len(modules) >= 5
    for name in ["robokit", *modules]:
        try:
            module = importlib.import_module(name)
        except robokit.MissingDependency:  # an extra that is not installed here
            continue
        assert [each for each in module.__all__ if each.startswith("_") or not hasattr(module, each)] == [], (
            name
        )
    assert [
        doc for doc in re.findall(r":doc:`(\w+)`", page) if not (ROOT / f"docs/{doc}.rst").is_file()
    ] == []
    assert (ROOT / "SECURITY.md").is_file() and (ROOT / "robokit/py.typed").is_file()
    options = {option for action in subparsers() for option in action._option_string_actions}
    assert set(re.findall(r"``(--\w+)``", page)) <= options


def subparsers():
    parts = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return parts.choices.values()


def test_warnings_of_deprecation_say_when_a_name_goes():
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "robokit").rglob("*.py")}
    warned = {path: text.count("DeprecationWarning") for path, text in sources.items()}
    said = {path: len(re.findall(r"will be removed in robokit \d+\.\d+", sources[path])) for path in sources}
    assert any(warned.values()) and [str(path) for path in sources if said[path] < warned[path]] == []
