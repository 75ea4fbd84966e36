"""benchmarks/fidelity.py and the manual's page: the cases are those of the file, and they run."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

KNOWN = json.loads((ROOT / "benchmarks" / "fidelity.json").read_text(encoding="utf-8"))["cases"]

LONG = {"convergence", "beside", "speed", "deepest", "operations", "admissible"}
LONG |= {"heaps", "continuity", "collide", "anymal", "order", "energy", "balance", "still", "crowd"}
"""Cases that take too long for a test, minutes some of them."""


@pytest.fixture(scope="module")
def fidelity():
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        module = importlib.import_module("fidelity")
        module.load_cases()
        yield module
    for name in set(sys.modules) - before:
        if name.startswith("fidelity") or name in ("measure", "models", "mujoco_model"):
            sys.modules.pop(name)


def test_the_page_shows_the_cases_that_there_are(fidelity):
    page = (ROOT / "docs" / "fidelity.rst").read_text(encoding="utf-8")
    assert list(KNOWN) == list(fidelity.CASES), "python benchmarks/fidelity.py --manual"
    topics = {case.topic for case in fidelity.CASES.values()}
    assert set(re.findall(r"^\.\. fidelity:: (.+)$", page, re.M)) == topics
    for name, case in fidelity.CASES.items():
        entry = KNOWN[name]
        assert (entry["title"], entry["topic"]) == (case.title, case.topic), name
        for plot in entry.get("plots", ()):
            assert (ROOT / "docs" / "_static" / f"fidelity_{plot['name']}.svg").exists(), plot["name"]
    assert "failed" not in {key for entry in KNOWN.values() for key in entry}


@pytest.mark.parametrize("name", ["stopping", "rotor"])
def test_a_case_runs(fidelity, name):
    entry = fidelity.one(name, fidelity.Look(quick=True, peer=False), True)
    assert entry["figures"] and not {"failed", "missing"} & set(entry)
    assert all(figure["robokit"] is not None for figure in entry["figures"])
    assert any("robokit" in line for line in fidelity.lines(entry))


def test_a_case_that_fails_says_so(fidelity, monkeypatch):
    def broken(look):
        raise ValueError("no such robot")

    case = fidelity.CASES["slope"]
    monkeypatch.setitem(fidelity.CASES, "slope", type(case)("slope", case.topic, case.title, "", broken))
    entry = fidelity.one("slope", fidelity.Look(), False)
    assert entry["failed"] == "ValueError: no such robot"
    assert "failed: ValueError" in "\n".join(fidelity.lines(entry))


@pytest.mark.parity
@pytest.mark.parametrize("name", [name for name in KNOWN if name not in LONG])
def test_every_case_runs(fidelity, name):
    assert "failed" not in fidelity.one(name, fidelity.Look(quick=True), True)


def test_figures_of_mujoco_are_kept(fidelity):
    def figure(what, ours, theirs):
        return {"what": what, "robokit": ours, "mujoco": theirs, "stiff": None}

    before = {
        "figures": [figure("creep", 2.0, 7.0), figure("only theirs", None, 3.0)],
        "plots": [{"name": "a", "lines": {"robokit": [[0], [1]], "MuJoCo": [[0], [2]]}}],
        "notes": ["MuJoCo: once.", "Not yet."],
    }
    entry = {
        "figures": [figure("creep", 1.0, None)],
        "plots": [{"name": "a", "lines": {"robokit": [[0], [5]]}}],
    }
    fidelity.keep(entry, before)
    assert entry["figures"] == [figure("creep", 1.0, 7.0), figure("only theirs", None, 3.0)]
    assert entry["plots"][0]["lines"] == {"robokit": [[0], [5]], "MuJoCo": [[0], [2]]}
    assert entry["notes"] == ["MuJoCo: once."]
