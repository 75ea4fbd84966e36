"""robokit parity where no other engine is installed."""

from __future__ import annotations

from robokit import parity
from robokit.cli import main


def test_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(parity, "ENGINES", {"Absent": ("no_such_engine_module", None)})
    assert main(["parity", "double_pendulum"]) == 1
    assert "pip install pin or mujoco" in capsys.readouterr().err
