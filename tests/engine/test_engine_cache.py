"""The cache: whatever happens to its files, only time is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robokit.engine import cache, compile
from robokit.engine.kernel import Kernel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch):
    """Counts compilations."""
    made = []
    real = compile.assemble
    monkeypatch.setattr(compile, "assemble", lambda ir: made.append(len(ir)) or real(ir))
    return made


def build(key: bytes | None = b"robot", factor: float = 2.0, traced: list | None = None) -> Kernel:
    def text(x):
        if traced is not None:
            traced.append(1)
        return [[a * factor + 1.0 for a in x]]

    return Kernel.build("scale", [("x", 6)], [("y", (6,))], text, key=key)


X = np.arange(6.0)
Y = X * 2.0 + 1.0


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.bin"))


def test_a_second_process_neither_traces_nor_compiles(folder, compiled):
    traced: list = []
    build(traced=traced)(X)
    assert (len(traced), len(compiled), len(files(folder))) == (1, 1, 1)
    kernel = build(traced=traced)
    assert (kernel(X) == Y).all()
    assert kernel.counts["mul"] == 6 or kernel.counts["mul"] == 5  # x[0]*2 is as good as any
    assert (len(traced), len(compiled)) == (1, 1)


def test_another_key_is_another_file(folder, compiled):
    assert (build(b"one", 2.0)(X) == Y).all()
    assert (build(b"two", 3.0)(X) == X * 3.0 + 1.0).all()
    assert len(files(folder)) == 2


def test_without_a_key_the_code_itself_is_the_key(folder, compiled):
    assert (build(None, 2.0)(X) == Y).all()
    assert (build(None, 3.0)(X) == X * 3.0 + 1.0).all()
    assert (build(None, 2.0)(X) == Y).all()
    assert len(compiled) == 2


def test_changed_source_makes_old_files_unused(folder, compiled, monkeypatch):
    build()(X)
    monkeypatch.setattr(cache, "source_digest", lambda: b"edited")
    build()(X)
    assert (len(compiled), len(files(folder))) == (2, 2)


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "garbage", "rename"])
def test_a_damaged_file_is_made_again(folder, compiled, damage):
    build()(X)
    (path,) = files(folder)
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "flip":
        path.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    elif damage == "garbage":
        path.write_bytes(os.urandom(500))
    else:
        build(b"other", 5.0)(X)
        (other,) = set(files(folder)) - {path}
        os.replace(other, path)
    before = len(compiled)
    assert (build()(X) == Y).all()
    assert len(compiled) == before + 1
    assert path.read_bytes() == content or damage == "rename"
    assert (build()(X) == Y).all()
    assert len(compiled) == before + 1


def test_a_folder_that_cannot_be_made_costs_only_time(tmp_path, compiled, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert (build()(X) == Y).all()
    assert (build()(X) == Y).all()
    assert len(compiled) == 2


def test_a_folder_that_refuses_files_costs_only_time(folder, compiled, monkeypatch):
    folder.mkdir()

    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(os, "replace", refuse)
    assert (build()(X) == Y).all()
    assert list(folder.iterdir()) == []


def test_a_text_too_long_is_remembered(folder, monkeypatch):
    from robokit.engine import make as module

    monkeypatch.setattr(module, "NODE_BUDGET", 10)
    traced: list = []
    for _ in range(2):
        assert (build(traced=traced)(X) == Y).all()
    assert len(traced) == 3  # recorded once in vain, then run twice


RACE = """
import numpy as np
from robokit.engine.kernel import Kernel
def text(x):
    y = list(x)
    for k in range(60):
        y = [a * 0.5 + b * x[0] for a, b in zip(y, y[1:] + y[:1])]
    return [y]
kernel = Kernel.build("race", [("x", 6)], [("y", (6,))], text, key=b"race")
single = kernel(np.arange(6.0) / 6)
batch = kernel(np.tile(np.arange(6.0) / 6, (5, 1)))
assert np.allclose(batch, single)
print(repr(single.tolist()))
"""


def test_processes_that_race_all_get_it_right(folder, tmp_path):
    script = tmp_path / "race.py"
    script.write_text(RACE)
    root = str(Path(cache.__file__).resolve().parents[2])
    env = {**os.environ, "PYTHONPATH": root, "ROBOKIT_CACHE_DIR": str(folder)}
    runs = [
        subprocess.Popen([sys.executable, script], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [run.communicate(timeout=60)[0] for run in runs]
    assert all(run.returncode == 0 for run in runs)
    assert len(set(answers)) == 1
    assert len(files(folder)) == 2
    assert not list(folder.glob("*.tmp"))


def test_the_oldest_files_go_first(folder, monkeypatch):
    monkeypatch.setattr(cache, "_LIMIT_BYTES", 1500)
    for k in range(4):
        cache.store(f"f{k}", {}, bytes(600))
        os.utime(folder / f"f{k}.bin", (k, k))
    assert not (folder / "f0.bin").exists()
    assert (folder / "f3.bin").exists()
