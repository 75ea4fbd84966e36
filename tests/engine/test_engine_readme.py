"""What the engine's README shows runs as it stands, and is about as short as it says."""

from __future__ import annotations

import re
from pathlib import Path

import robokit.engine

PAGE = Path(robokit.engine.__file__).with_name("README.md")


def test_the_readme_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))  # it compiles
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(blocks) == 2 and sum(len(block.splitlines()) for block in blocks) <= 65


def test_the_readme_names_every_folder():
    folders = {path.parent.name for path in PAGE.parent.glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/`", PAGE.read_text(encoding="utf-8"), re.M)) == folders
