"""The physical cases of benchmarks/fidelity.py keep their bounds: quick looks, robokit alone, by integrator.

A case has its own bounds; here stands which integrator must keep all of them. What "contact" misses is a
figure of the manual's page.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from robokit.sim.step.integrators import METHODS

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

WITHOUT_TOUCH = ("a01", "a04", "a05", "andrews", "heavy_top", "chaotic")
"""Cases in which nothing touches: they judge the default integrators, too."""

SETTLED = (
    *("capstan", "pushed_ball", "crowd", "dominoes", "free_cylinder", "towers", "ratios", "scale", "collide"),
    *("cart", "gripper", "tiles", "stairs", "crossed"),
    *("elastic", "balance", "anymal"),
)
"""Cases that only a settled step keeps."""

LONG = ("balance", "scale", "elastic", "anymal")
"""Whose quick look takes more than a second or two."""

NEW = [name for name in ("newton",) if name in METHODS]


@pytest.fixture(scope="module")
def cases():
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        module = importlib.import_module("fidelity")
        module.load_cases()
        yield sys.modules["fidelity_cases.table"], sys.modules["fidelity_cases.scenes"]
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - before:
            if name.startswith("fidelity") or name in ("measure", "mujoco_model"):
                sys.modules.pop(name)


def _chosen():
    for name in WITHOUT_TOUCH:
        yield from ((name, integrator) for integrator in (None, *NEW))
    for name in SETTLED:
        yield from ((name, integrator) for integrator in NEW)


def _marked(name, integrator):
    slow = [pytest.mark.slow] if name in LONG else []
    return pytest.param(name, integrator, id=f"{name}-{integrator or 'default'}", marks=slow)


@pytest.mark.parametrize("name, integrator", [_marked(*pair) for pair in _chosen()])
def test_a_case_keeps_its_bounds(cases, monkeypatch, name, integrator):
    table, scenes = cases
    monkeypatch.setattr(scenes, "INTEGRATOR", integrator)
    found = table.CASES[name].run(table.Look(quick=True, peer=False))
    judged = [figure for figure in found.figures if (figure.most, figure.least) != (None, None)]
    assert judged, "a case that wants nothing"
    wrong = [f"{f.what}: {f.robokit} {f.unit}, wanted {f.least} to {f.most}" for f in judged if not f.met]
    assert not wrong, "\n".join(wrong + found.notes)


def test_every_case_is_somebodys(cases):
    table, _ = cases
    ours = {name for name, case in table.CASES.items() if case.topic in TOPICS}
    assert ours == {*WITHOUT_TOUCH, *SETTLED, *MINUTES, *MISSED}


TOPICS = {"Piles", "Grips", "Edges", "Public references", "Laws of a step"}

MINUTES = {"heaps", "order", "energy", "still"}
"""Cases for benchmarks/fidelity.py alone: they take long."""

MISSED = {"continuity", "residuals", "a02"}
"""The same: figures that no integrator keeps so far."""
