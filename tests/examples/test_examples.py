"""Every example runs without a window, writes its file and passes its own check."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import waiting

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHORTER = {
    "00_fall_in_the_browser": ["--duration", "1.0"],
    "01_double_pendulum_energy": ["--duration", "5.0"],
    "04_centroidal_momentum": ["--duration", "1.0"],
    "05_robot_in_code": ["--duration", "2.0"],
    "06_pushed_humanoids": ["--duration", "0.25", "--robots", "60"],
    "07_robots_not_quite_alike": ["--robots", "100"],
    "08_stand_and_push": ["--stand", "1.0"],
    "25_ten_thousand_falls": ["--falls", "24", "--rounds", "3"],
}
NEEDS = {"25_ten_thousand_falls": "torch"}
"""What the environment of .ci/run does not have: PyTorch is larger than all the rest."""

LENGTH = 60
LONGER = {
    "18_velocity_ik_with_limits": 70,
    "20_swing_up_by_ilqr": 80,
    "21_catch_a_push": 85,
    "22_model_predictive_control": 75,
    "25_ten_thousand_falls": 65,
}

each = pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)


@each
def test_example_runs_and_its_check_holds(path, tmp_path):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    # A display would be a mistake: --headless must not need one.
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(path), "--headless", *SHORTER.get(path.stem, [])],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=waiting.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "an example says what it found"
    (written,) = tmp_path.iterdir()
    assert written.suffix in (".html", ".png") and written.stat().st_size > 10_000


@each
def test_example_reads_as_a_page(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    doc = ast.get_docstring(tree) or ""
    title = doc.split("\n", 1)[0]
    assert title.endswith((".", "?")) and len(doc.split("\n\n")) >= 3, "a docstring with a title and text"
    assert "\nCheck: " in doc, "the text says what is checked"
    assert len(source.splitlines()) <= LONGER.get(path.stem, LENGTH)
    last = tree.body[-1]
    assert isinstance(last, ast.Assert) and last.msg is not None, "it ends with a check that explains itself"


def test_examples_are_numbered_from_zero():
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(len(EXAMPLES)))
    assert all(re.fullmatch(r"\d\d_[a-z_]+", path.stem) for path in EXAMPLES)
