"""A release says the same version everywhere, and the forms for reports can be read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import robokit

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
