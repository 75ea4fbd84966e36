"""Ctrl-C while the command is still being imported."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import waiting

ROOT = Path(__file__).parents[2]
ENTRY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["robokit"].split(":")

STARTED = f"""
import signal, sys

class CtrlC:  # somebody presses it as a module is looked for
    def find_spec(self, name, *_):
        if name == pressed:
            signal.raise_signal(signal.SIGINT)

sys.path.insert(0, {str(ROOT)!r})
pressed, how = sys.argv.pop(1), sys.argv.pop(1)
if how == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.meta_path.insert(0, CtrlC())
from {ENTRY[0]} import {ENTRY[1]} as command
sys.exit(command())
"""


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-c", STARTED, *arguments], capture_output=True, text=True, timeout=waiting.PATIENCE
    )


@pytest.mark.parametrize(
    "module",
    ["robokit", "numpy", "datetime", "robokit.dynamics", "robokit.urdf", "robokit.cli", "robokit.cli.parser"],
)
def test_ctrl_c_during_the_import_ends_the_command_quietly(module):
    done = run(module, "pressed", "robots")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "robokit: interrupted\n")


def test_where_ctrl_c_is_ignored_the_command_goes_on():
    done = run("robokit.dynamics", "ignored", "robots")
    assert done.returncode == 0 and "humanoid" in done.stdout and not done.stderr
