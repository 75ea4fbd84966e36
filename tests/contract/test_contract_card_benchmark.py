"""benchmarks/gpu.py and the manual's page: a sentence where there is no card, and tables of what is kept."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import waiting

ROOT = Path(__file__).resolve().parents[2]
KEPT = json.loads((ROOT / "benchmarks" / "gpu.json").read_text(encoding="utf-8"))


def test_without_a_card_one_sentence_says_so():
    # A card that is hidden is none; where there is no driver it is the same.
    hidden = {"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "gpu.py")],
        env=hidden, capture_output=True, text=True, timeout=waiting.PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and not done.stdout
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("benchmarks/gpu.py measures a card, and there is none") and 'device="cpu"' in line


@pytest.fixture
def tables(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("gpu_tables")


def test_the_manual_shows_every_robot_and_program_that_was_measured(tables):
    functions = "\n".join(tables.functions(KEPT))
    for row in KEPT["functions"]:
        assert "problem" not in row, row
        assert row["robot"] in functions and tables.rate(row["rates"]["8192"]) in functions
        assert row["error"] < (1e-12 if row["dtype"] == "float64" else 1e-5), row
    falls = "\n".join(tables.falls(KEPT))
    for row in KEPT["falls"]:
        assert all(tables.rate(row["rates"][n]) in falls for n in ("8192", "131072"))
    for row in KEPT["peers"]:
        assert "failed" in row or tables.rate(row["rate"] / 1e6) in falls
    assert KEPT["card"] in " ".join(tables.machine(KEPT))
