"""The code of the manual's path runs, page by page."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "docs" / f"{name}.rst"
    for name in re.findall(
        r"^   (path/\w+)$", (ROOT / "docs" / "start.rst").read_text(encoding="utf-8"), re.M
    )
]
BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", re.M)


def code(path: Path) -> str:
    """All Python of a page, from its top to its end."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    return "\n".join(re.sub(r"^   ", "", block, flags=re.M) for block in blocks)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_code_of_a_page_runs(path, tmp_path, monkeypatch):
    if path.stem == "sweep":
        pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile(code(path), str(path), "exec"), {"__name__": "__main__"})


def test_the_path_is_walked_without_a_gap():
    for path, following in itertools.pairwise(PAGES):
        assert f"Next: :doc:`{following.stem}`.\n" in path.read_text(encoding="utf-8")
