"""Node, for the tests that run WebAssembly and the page's Worker without a browser: marked "node"."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


def path_of_node() -> str | None:
    """Node as it is installed, or the one that Playwright brings; None without either."""
    found, playwright = shutil.which("node"), find_spec("playwright")
    if found is None and playwright is not None and playwright.origin:
        own = Path(playwright.origin).parent / "driver" / "node"
        found = str(own) if own.exists() else None
    return found


def run_in_node(script: str, given: Any) -> Any:
    """What a script prints as JSON, given JSON as file 0; skips the test where there is no Node."""
    node = path_of_node()
    if node is None:
        pytest.skip("needs Node or Playwright")
    done = subprocess.run([node, "-e", script], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
