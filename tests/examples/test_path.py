"""The code of the manual's path, and of its page of questions, runs page by page."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
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


def test_the_code_of_how_to_runs(tmp_path, monkeypatch):
    """That of the path runs below, in its fresh environment."""
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    path = ROOT / "docs" / "how_to.rst"
    exec(compile(code(path), str(path), "exec"), {"__name__": "__main__"})


WALL = """
# What an extra brings can be imported when its line "pip install '.[EXTRA]'" was met, and not before.
import os, sys
from importlib.abc import MetaPathFinder

EXTRAS = {
    "sweep": ("pyarrow", "dask", "distributed"),
    "film": ("playwright",),
    "xacro": ("xacro",),
    "casadi": ("casadi",),
    "jax": ("jax",),
    "torch": ("torch",),
    "parity": ("pinocchio", "mujoco", "pydrake"),
}

class Wall(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        for extra, packages in EXTRAS.items():
            if name in packages and not os.path.exists(os.path.join(sys.prefix, "extra_" + extra)):
                raise ModuleNotFoundError(f"No module named {name!r}: its extra is missing", name=name)

sys.meta_path.insert(0, Wall())
"""

PIP = """#!/bin/sh
# Stands for pip: the packages are those of the environment of the tests, for tests reach no network.
for word in "$@"; do case "$word" in
  .) ;;
  .\\[*\\]) touch "$VIRTUAL_ENV/extra_$(echo "$word" | tr -d '.[]')" ;;
  install) ;;
  *) echo "no package $word" >&2; exit 1 ;;
esac; done
"""

ROBOKIT = """#!/bin/sh
exec "$VIRTUAL_ENV/bin/python" -m robokit "$@"
"""


def commands(path: Path) -> list[str]:
    """What a reader types and runs, in the order of the page: its commands, and its Python as one program."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^\.\. code-block:: (console|python)\n\n((?:   .*\n|\n)+)", text, re.M)
    typed: list[str] = []
    for kind, block in blocks:
        if kind == "console":
            typed += re.findall(r"^   \$ (.*)$", block, re.M)
        elif f"python {path.stem}.py" not in typed:  # it stands where its first part does
            typed.append(f"python {path.stem}.py")
    return typed


def script(page: Path, folder: Path) -> str:
    """A page as a program of the shell that ends at the first command that fails."""
    (folder / f"{page.stem}.py").write_text(code(page), encoding="utf-8")
    lines = [line for line in commands(page) if not line.startswith(("git clone ", "cd "))]
    for k, line in enumerate(lines):
        if " -m venv " in line:  # what pip would fetch is the environment of the tests
            lines[k] = f"{line} --without-pip && . .venv/bin/activate && sh prepare"
    return "set -e\n[ ! -d .venv ] || . .venv/bin/activate\n" + "\n".join(lines) + "\n"


def test_the_path_is_walked_in_a_fresh_environment(tmp_path):
    """All commands of all pages, as they stand, one after the other in a copy of the repository."""
    for name in ("robokit", "robots"):
        shutil.copytree(ROOT / name, tmp_path / name)  # with its bytecode
    shutil.copy(ROOT / "robokit_command.py", tmp_path)
    packages = "\n".join(each for each in sys.path if Path(each).name in ("site-packages", "dist-packages"))
    site = "site=$(python -c \"import sysconfig; print(sysconfig.get_path('purelib'))\")"
    for name, text in (("wall.py", WALL), ("pip", PIP), ("robokit_shell", ROBOKIT)):
        (tmp_path / name).write_text(text)
    (tmp_path / "packages.pth").write_text(f"{tmp_path}\n{packages}\nimport wall\n")
    (tmp_path / "prepare").write_text(
        f"{site}\ncp wall.py packages.pth $site\ncp pip .venv/bin/pip\ncp robokit_shell .venv/bin/robokit\n"
        "chmod +x .venv/bin/pip .venv/bin/robokit\n"
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys._base_executable)
    taken = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL", "COV", "PYTEST"))}
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]])
    env = taken | {"PATH": path, "MPLBACKEND": "agg", "BROWSER": "true"}
    for page in PAGES:
        done = subprocess.run(
            ["bash", "-c", script(page, tmp_path)], cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{page.stem}: {done.stdout[-1000:]}{done.stderr[-2000:]}"
    assert {"humanoid_fall.html", "my_robot.urdf", "drop.html", "falls"} <= set(os.listdir(tmp_path))


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
    for path in (ROOT / "examples").glob("*.py"):  # what the gallery says of each is words, no listing
        assert not path.read_text(encoding="utf-8").split("\n\n")[1].startswith(" "), path
    for name in made_pictures.RECIPES:
        assert 1_000 < (made_pictures.KEPT / name).stat().st_size < 300_000, name
