"""The ports on the manual's pages "Coming from ...": the other program's answer, and robokit's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import robokit as rk

pytestmark = pytest.mark.parity

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "coming_from"
CASES = {
    "pinocchio": ("pinocchio", "quadruped", 1e-12),
    "mujoco": ("mujoco", "double_pendulum", 1e-12),  # the same step of fourth order
    "drake": ("pydrake", "arm", 1e-12),
    "pybullet": ("pybullet", "arm", 1e-7),  # poses pass through single precision
    "yourdfpy": ("yourdfpy", "arm", 1e-12),
}


def test_every_page_has_its_port():
    assert {path.stem.removeprefix("port_") for path in FOLDER.glob("port_*.py")} == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_port_gives_the_same_answers(name):
    package, robot, tolerance = CASES[name]
    pytest.importorskip(package)
    spec = importlib.util.spec_from_file_location(f"port_{name}", FOLDER / f"port_{name}.py")
    port = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(port)
    path = str(rk.find_robot(robot))
    theirs, ours = port.theirs(path), port.here(path)
    assert theirs.keys() == ours.keys()
    for quantity, expected in theirs.items():
        assert np.abs(expected).max() > 0.01, f"{quantity} says nothing"
        error = np.abs(ours[quantity] - expected).max() / max(1.0, np.abs(expected).max())
        assert error < tolerance, f"{name}, {quantity}: {ours[quantity]} and {expected}, {error:.1e}"
