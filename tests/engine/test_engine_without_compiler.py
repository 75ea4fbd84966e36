"""Where llvmlite is missing, every public function gives the same answers in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import every_answer
import numpy as np
import pytest
import waiting

import robokit


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The answers of a process without llvmlite."""
    folder = tmp_path_factory.mktemp("plain")
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(robokit.__file__).resolve().parents[1]),
        "ROBOKIT_CACHE_DIR": str(folder / "cache"),  # empty: nothing compiled earlier can help
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", every_answer.__file__, folder / "answers.npz"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=waiting.PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    assert not (folder / "cache").exists()
    return np.load(folder / "answers.npz")


@pytest.mark.slow
def test_every_public_function_answers_the_same(plain):
    compiled = every_answer.every_answer()
    assert set(plain.files) == set(compiled) and len(compiled) > 40
    for name, expected in compiled.items():
        got = plain[name]
        assert got.shape == expected.shape and got.dtype == expected.dtype, name
        scale = max(1.0, np.abs(expected).max(initial=0.0))
        assert np.abs(got * 1.0 - expected * 1.0).max(initial=0.0) < 1e-10 * scale, name
