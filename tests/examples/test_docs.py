"""The manual covers what there is: algorithms, commands, examples, public names, tests it cites."""

from __future__ import annotations

import json
import linecache
import pkgutil
import re
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path

import house
import numpy as np
import pytest

import robokit as rk
from robokit import dynamics
from robokit.cli.parser import make_parser

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "_ext"))

import from_source  # noqa: E402  (the folder above must be on the path first)
import house_picture  # noqa: E402

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.rst"))
ALL_PAGES = sorted(path for path in DOCS.rglob("*.rst") if "_build" not in path.parts)


def page(name: str) -> str:
    return (DOCS / f"{name}.rst").read_text(encoding="utf-8")


def reference() -> str:
    """All chapters of the API."""
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((DOCS / "api").glob("*.rst")))


@pytest.mark.parametrize("name", ["functions", "loops"])
def test_the_code_of_pages_on_functions_runs(name, monkeypatch):
    """All of it, in one program, as a reader types it."""
    robot = rk.load_urdf(rk.find_robot("arm"))
    states = [robot.random_configuration(np.random.default_rng(k)) for k in range(3)]
    names = {"rk": rk, "np": np, "robot": robot, "Q": np.array(states), "q": states[0]}
    names |= {"v": np.zeros(robot.nv), "tau": np.linspace(0.1, 0.5, robot.nv)}
    found = re.findall(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page(name), re.MULTILINE)
    source = "\n".join(textwrap.dedent(block) for block in found)
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, f"{name}.rst", (len(source), None, lines, f"{name}.rst"))
    exec(compile(source, f"{name}.rst", "exec"), names)
    if name == "functions":
        angle = names["touch"](robot, names["Q"], 0.5).angle
        assert ((angle >= 0.0) & (angle <= 1.5)).all()
    else:
        again = names["both"](q=names["q"], v=names["v"], tau=names["tau"])["again"]
        np.testing.assert_allclose(again, names["tau"], atol=1e-9)
        heights, places = np.arange(6.0).reshape(2, 3), np.array([[0.15, 9.0], [-1.0, 0.15]])
        assert names["field"](x=places, heights=heights)["out"].tolist() == [[5.0], [1.0]]


def test_every_algorithm_is_in_the_book():
    text, rows = page("algorithms"), from_source.index()
    files = [path.stem for path in (ROOT / "robokit" / "algorithms").glob("*.py") if path.stem != "__init__"]
    assert sorted(row.name for row in rows) == sorted(files)
    assert all(row.title and row.source and row.cost.startswith("O(") for row in rows)
    assert ".. algorithm-index::\n" in text and ".. other-algorithms::\n" in text
    for name in from_source.sections():
        assert f".. _{name}:" in text, f"the index links to {name}"


def test_an_algorithm_without_a_section_is_in_the_index_all_the_same(tmp_path, monkeypatch):
    said = (
        '"""Power of a motion: tau . v.\n\nSource: eq. 3, 4. `tau` has no signs.\nCost: O(n). One sum.\n"""\n'
    )
    (tmp_path / "power.py").write_text(said)
    monkeypatch.setattr(from_source, "ALGORITHMS", tmp_path)
    monkeypatch.setattr(from_source, "sections", list)
    (row,) = from_source.index()
    assert (row.name, row.title) == ("power", "Power of a motion: tau . v")
    assert (row.source, row.cost) == ("eq. 3, 4", "O(n)")
    (tmp_path / "power.py").write_text('"""Power."""\n')
    with pytest.raises(ValueError, match=r"power.py: its docstring has no line 'Source"):
        from_source.index()


def test_the_chapters_list_every_dynamics_function():
    shown = re.findall(r"^\.\. chapter:: (\w+)((?:[ \w]|\n +)*)$", reference(), re.M)
    assert sorted({chapter for chapter, _ in shown}) == from_source.chapters()
    listed = [names.split() or [name for _, name in from_source.public(chapter)] for chapter, names in shown]
    assert sorted(name for names in listed for name in names) == sorted(dynamics.__all__)  # each of them once
    kinds = {name: kind for chapter, _ in shown for kind, name in from_source.public(chapter)}
    assert all(isinstance(getattr(rk, name), type) == (kind == "class") for name, kind in kinds.items())


class Picture(HTMLParser):
    """Boxes, arrows and links of an SVG of the house."""

    def __init__(self, svg: str) -> None:
        super().__init__()
        self.arrows: list[set[str]] = []
        self.boxes: list[str] = []
        self.links: list[str] = []
        self.width, self.ends = 0.0, []
        self.feed(svg)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        kinds = (given.get("class") or "").split()
        if tag == "g" and "import" in kinds:
            self.arrows.append(set(kinds))
        if tag == "g" and "part" in kinds:
            self.boxes += [kind.removeprefix("at-") for kind in kinds if kind.startswith("at-")]
        if tag == "svg":
            self.width = float(given["viewbox"].split()[2])
        if tag == "rect":
            self.ends += [float(given["x"]), float(given["x"]) + float(given["width"])]
        if tag == "a":
            self.links.append(given["href"])


@pytest.mark.slow
@pytest.mark.parametrize("folder", house.FLOORS)
def test_the_picture_of_the_house_has_every_part_and_every_import(folder):
    drawn = Picture(house_picture.draw(folder))
    assert sorted(drawn.boxes) == sorted(part for parts in house.FLOORS[folder] for part in parts)
    assert min(drawn.ends) >= 0.0 and max(drawn.ends) <= drawn.width  # no box is cut off
    for link in drawn.links:
        assert f".. _{link.removeprefix('#')}:\n" in page("architecture"), f"no paragraph {link}"
    edges = house_picture.imports_between(folder)
    assert edges
    arrows = {frozenset({f"from-{a}", f"to-{b}"}) for a, b in edges}
    assert {frozenset(arrow - {"import", "drawn", "implied", "up"}) for arrow in drawn.arrows} == arrows


def test_only_arrows_that_no_others_imply_are_drawn():
    edges = {("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}
    assert house_picture.not_implied(edges) == edges - {("a", "c")}


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
    text = reference()
    modules = set(re.findall(r"^\.\. automodule:: ([\w.]+)$", text, re.M))
    named = set(re.findall(r"^\.\. auto(?:function|class|data):: robokit\.(\w+)$", text, re.M))
    named |= {name for chapter in from_source.chapters() for _, name in from_source.public(chapter)}
    for name, value in vars(rk).items():
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("robokit"):
            continue
        assert name in named or value.__module__ in modules, f"rk.{name} is not in docs/api"


def texts(*more: Path) -> list[tuple[str, Path, str]]:
    """(name, file, text) of every page."""
    assert len(ALL_PAGES) > 50
    return [(path.name, path, path.read_text(encoding="utf-8")) for path in (*ALL_PAGES, *more)]


def test_tests_and_files_that_a_page_names_exist():
    tests = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    missing = []
    for page_name, _, text in texts():
        for name in re.findall(r"``(test_\w+)``", text):
            if f"def {name}(" not in tests:
                missing.append(f"{page_name} names {name}")
        for name in re.findall(r"``((?:robokit|tests|robots|docs|examples)/[\w/.]+)``", text):
            if not (ROOT / name).exists():
                missing.append(f"{page_name} names {name}")
    assert not missing, "\n".join(missing)


def test_modules_and_what_they_hold_are_where_a_page_says():
    missing = []
    for page_name, _, text in texts(ROOT / "README.md"):
        lists = re.findall(r"^ *from (robokit[\w.]*) import ([\w, ]+)", text, re.M)
        named = {f"{module}.{name.strip()}" for module, names in lists for name in names.split(",")}
        for name in sorted(named | set(re.findall(r"(?<![\w/])robokit(?:\.[A-Za-z_]\w*)+", text))):
            if not name.endswith((".rst", ".md")):
                try:
                    pkgutil.resolve_name(name)
                except (ImportError, AttributeError) as problem:
                    missing.append(f"{page_name} names {name}: {problem}")
    assert not missing, "\n".join(missing)


def test_public_names_that_a_page_uses_exist():
    missing = [
        f"{page_name}: there is no rk.{name}"
        for page_name, _, text in texts(ROOT / "README.md")
        for name in re.findall(r"\brk\.([a-zA-Z_]+)", text)
        if name not in rk.__all__ and name not in rk._MODULES
    ]
    assert not missing, "\n".join(missing)


def test_what_a_page_quotes_from_a_file_is_there():
    missing = []
    for page_name, path, text in texts():
        for name, options in re.findall(r"^\.\. literalinclude:: (\S+)\n((?:   :.*\n)*)", text, re.M):
            quoted = (path.parent / name).resolve().read_text(encoding="utf-8")
            for option, value in re.findall(r":([\w-]+): (.*)\n", options):
                if option in ("start-at", "end-at", "end-before") and value not in quoted:
                    missing.append(f"{page_name}: {name} has no {value!r}")
                depths = (
                    re.search(rf"^{'    ' * depth}(def|class) {part}\b", quoted, re.M)
                    for depth, part in enumerate(value.split("."))
                )
                if option == "pyobject" and not all(depths):
                    missing.append(f"{page_name}: {name} has no {value}")
    assert not missing, "\n".join(missing)


def test_every_page_is_in_the_table_of_contents():
    listed = set(re.findall(r"^   (\w+)$", page("index"), re.M))
    assert listed == {path.stem for path in PAGES} - {"index"}


def readme_row(name: str) -> list[float | None]:
    """The figures of a row of the README's comparison: of robokit, Pinocchio, MuJoCo and Drake."""
    (row,) = re.findall(
        rf"^\| {re.escape(name)} \|(.*)\|$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE
    )
    cells = [re.search(r"[\d.]+", cell) for cell in row.split("|")]
    return [float(found[0]) if found else None for found in cells]


@pytest.mark.parametrize(
    ("row", "name", "of_batch"),
    [
        ("inverse dynamics, one call from Python", "rnea", False),
        ("mass matrix, one call", "crba", False),
        ("forward dynamics, one call", "aba", False),
        ("inverse dynamics, states a second on one core", "inverse dynamics", True),
        ("forward dynamics, states a second on one core", "forward dynamics", True),
    ],
)
def test_figures_of_the_readme_are_those_of_the_benchmarks(row, name, of_batch):
    found = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    if of_batch:
        rates = found["peers"]["g1"][name]
        ways = "robokit, 1 thread", "Pinocchio, pool of 1", "MuJoCo, loop", "Drake, loop"
        figures = [1e-6 * rates[way] for way in ways]
    else:
        (g1,) = (robot for robot in found["dynamics"] if robot["robot"].endswith("g1"))
        figures = [g1[name][who] for who in ("single", "pinocchio", "mujoco", "drake")]
    for said, figure in zip(readme_row(row), figures, strict=True):
        assert said == pytest.approx(figure, rel=0.05, abs=0.005), (row, figure)


def test_the_step_of_the_readme_is_that_of_the_gates():
    found = json.loads((ROOT / "benchmarks" / "gates.json").read_text("utf-8"))["rows"]
    step = found["single, G1, self-collision"]["figures"]
    ours, _, mujoco, _ = readme_row("a step of a fall with self-collision")
    assert (ours, mujoco) == pytest.approx((step["robokit"], step["mujoco"]), rel=0.05)
