"""The code of the manual's path runs, page by page."""

from __future__ import annotations

import itertools
import re
import sys
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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    exec(compile(code(path), str(path), "exec"), {"__name__": "__main__"})


def test_the_path_is_walked_without_a_gap():
    for path, following in itertools.pairwise(PAGES):
        assert f"Next: :doc:`{following.stem}`.\n" in path.read_text(encoding="utf-8")


def test_every_picture_is_kept_and_small_and_shown():
    sys.path.append(str(ROOT / "docs"))
    import made_pictures

    shown = set()
    for page in (ROOT / "docs" / "path").glob("*.rst"):
        shown |= set(re.findall(r"^\.\. made:: (\S+)$", page.read_text(encoding="utf-8"), re.M))
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert shown == {name for name in made_pictures.RECIPES if name.startswith("path/")}
    gallery = {name for name in made_pictures.RECIPES if name.startswith("gallery/")}
    assert {Path(name).stem for name in gallery} == examples
    for name in made_pictures.RECIPES:
        assert 1_000 < (made_pictures.KEPT / name).stat().st_size < 300_000, name
