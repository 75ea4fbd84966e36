"""The cache: whatever happens to its files, only time is lost."""

from __future__ import annotations

import builtins
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import llvmlite
import numpy as np
import pytest
import waiting

from robokit import disk_cache
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch):
    """Counts compilations."""
    made = []
    real = llvm.assemble
    monkeypatch.setattr(llvm, "assemble", lambda ir: made.append(len(ir)) or real(ir))
    return made


def build(key: bytes | None = b"robot", factor: float = 2.0, traced: list | None = None) -> Kernel:
    def function(x):
        if traced is not None:
            traced.append(1)
        return [[a * factor + 1.0 for a in x]]

    return Kernel("scale", [("x", 6)], [("y", (6,))], function, key=key)


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
    monkeypatch.setattr(disk_cache, "source_digest", lambda: b"edited")
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
    from robokit.engine import maker

    monkeypatch.setattr(maker, "NODE_BUDGET", 10)
    traced: list = []
    for _ in range(2):
        assert (build(traced=traced)(X) == Y).all()
    assert len(traced) == 3  # recorded once in vain, then run twice


RACE = """
import sys
import numpy as np
from robokit.engine.kernel import Kernel
from robokit.engine.backend import llvm
real = llvm.assemble
kernels = lambda text: text.startswith(llvm.BASELINE)  # not what calls from Python go through
llvm.assemble = lambda text: (kernels(text) and print("compiled", file=sys.stderr)) or real(text)
def function(x):
    y = list(x)
    for k in range(60):
        y = [a * 0.5 + b * x[0] for a, b in zip(y, y[1:] + y[:1])]
    return [y]
kernel = Kernel("race", [("x", 6)], [("y", (6,))], function, key=b"race")
single = kernel(np.arange(6.0) / 6)
batch = kernel(np.tile(np.arange(6.0) / 6, (5, 1)))
assert np.allclose(batch, single)
print(repr(single.tolist()))
"""


def test_processes_that_race_all_get_it_right(folder, tmp_path):
    script = tmp_path / "race.py"
    script.write_text(RACE)
    time.sleep(1.1)  # a file younger than a second may be newer than what runs: its kernels have other names
    root = str(Path(disk_cache.__file__).resolve().parents[1])
    env = {**os.environ, "PYTHONPATH": root, "ROBOKIT_CACHE_DIR": str(folder)}
    runs = [
        subprocess.Popen([sys.executable, script], env=env, stdout=-1, stderr=-1, text=True) for _ in range(3)
    ]
    answers, compiled = zip(*(run.communicate(timeout=waiting.PATIENCE) for run in runs), strict=True)
    assert all(run.returncode == 0 for run in runs)
    assert len(set(answers)) == 1
    assert len(files(folder)) == 3  # single, batch, and the call from Python
    assert "".join(compiled).count("compiled") == 2  # single and batch, each by one while the others waited
    assert len(list(folder.iterdir())) == 3


def name(k: int) -> str:
    return f"{k:064x}"


def test_the_oldest_files_go_first(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 1500)
    for k in range(4):
        disk_cache.store(name(k), {}, bytes(600))
        os.utime(folder / f"{name(k)}.bin", (k, k))
    assert not (folder / f"{name(0)}.bin").exists()
    assert (folder / f"{name(3)}.bin").exists()


def test_the_folder_is_looked_through_now_and_then(folder, monkeypatch):
    """A look at all files at each new one took as long as compiling, where there were thousands."""
    limit = 300_000
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", limit)
    looks, prune = [], disk_cache._prune
    monkeypatch.setattr(disk_cache, "_prune", lambda where: looks.append(1) or prune(where))
    for k in range(1200):
        disk_cache.store(name(k), {}, bytes(500))  # twice the limit in all
    assert 60 < len(looks) < 300
    assert 0.9 * limit < sum(path.stat().st_size for path in files(folder)) < 1.1 * limit


def test_files_of_others_in_the_folder_stay(folder, monkeypatch):
    folder.mkdir()
    for other in ("photo.bin", "notes.tmp", f"{name(1)}.txt"):
        (folder / other).write_bytes(bytes(600))
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 100)
    disk_cache.store(name(0), {}, bytes(600))
    disk_cache.store(name(1), {}, b"")
    assert [path.name for path in files(folder)] == [f"{name(1)}.bin", "photo.bin"]
    assert len(disk_cache.clear()) == 1
    assert sorted(p.name for p in folder.iterdir()) == sorted(["photo.bin", "notes.tmp", f"{name(1)}.txt"])


def test_what_killed_processes_left_goes_after_a_while(folder, monkeypatch):
    monkeypatch.setattr(disk_cache, "_LIMIT_BYTES", 4000)  # so that any new file is large enough for a look
    folder.mkdir()
    old, new = (folder / f"{name(0)}.{pid}.{'ab' * 6}.tmp" for pid in (1, 2))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    disk_cache.store(name(1), {}, b"")
    assert not old.exists() and new.exists()


def test_an_interrupted_write_leaves_nothing(folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            disk_cache.store(name(0), {}, b"code")
    assert list(folder.iterdir()) == []


def test_a_read_only_folder_is_read(folder, compiled, monkeypatch):
    build()(X)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    opened = os.open

    def read_only(path, flags, *rest):
        return refuse() if flags & (os.O_WRONLY | os.O_RDWR) else opened(path, flags, *rest)

    # Permissions do not bind root, so the system calls that write are refused themselves.
    monkeypatch.setattr(os, "open", read_only)
    for call in ("utime", "replace", "mkdir", "unlink"):
        monkeypatch.setattr(os, call, refuse)
    assert (build()(X) == Y).all() and len(compiled) == 1
    assert (build(b"other", 3.0)(X) == X * 3.0 + 1.0).all() and len(compiled) == 2
    assert len(files(folder)) == 1


FULL = """
import os, resource, sys
sys.dont_write_bytecode = True  # it would be cut short too, and stay
import numpy as np
from robokit import disk_cache
from robokit.engine.kernel import Kernel
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))  # a write stops in the middle
def function(x):
    y = list(x)
    for k in range(40):
        y = [a * 0.5 + b * x[0] for a, b in zip(y, y[1:] + y[:1])]
    return [y]
x = np.arange(6.0) / 6
for _ in range(2):
    kernel = Kernel("full", [("x", 6)], [("y", (6,))], function, key=b"full")
    assert np.allclose(kernel(x), kernel.python(x), rtol=1e-13)
print(len(list(disk_cache.folder().iterdir())))
disk_cache.store("0" * 64, {}, b"small")
print(len(list(disk_cache.folder().iterdir())))
"""


def python(script: str, folder: Path, **options) -> str:
    """Output of a script in a process of its own."""
    root = str(Path(disk_cache.__file__).resolve().parents[1])
    env = {**os.environ, "PYTHONPATH": root, "ROBOKIT_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=waiting.PATIENCE, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of file sizes")
def test_a_disk_that_fills_up_in_the_middle_of_a_file_costs_only_time(folder):
    assert python(FULL, folder).split() == ["1", "2"]  # the call from Python is small enough


UMASK = """
import os
import numpy as np
from robokit import disk_cache
from robokit.engine.backend import llvm
from robokit.engine.kernel import Kernel
made = []
real = llvm.assemble
llvm.assemble = lambda ir: made.extend([1] * ir.startswith(llvm.BASELINE)) or real(ir)
kernel = Kernel("umask", [("x", 2)], [("y", (2,))], lambda x: [[x[0] + x[1], x[0] * x[1]]])
assert kernel(np.array([2.0, 3.0])).tolist() == [5.0, 6.0]
print(len(made), *{oct(path.stat().st_mode & 0o777) for path in disk_cache.folder().glob("*.bin")})
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no umask")
@pytest.mark.parametrize(("mask", "mode"), [(0o000, "0o644"), (0o077, "0o600")])
def test_no_umask_lets_others_write_code(folder, mask, mode):
    assert python(UMASK, folder, umask=mask).split() == ["1", mode]
    assert folder.stat().st_mode & 0o077 == 0
    assert python(UMASK, folder, umask=0o027).split() == ["0", mode]


def test_another_llvmlite_or_processor_makes_files_of_its_own(folder, compiled, monkeypatch):
    build()(X)
    for k, other in enumerate(("0.99.0|linux|x86_64|znver9", "0.99.0|linux|x86_64|znver8")):
        monkeypatch.setattr(llvm, "identity", lambda other=other: other)
        build()(X)
        build(None)(X)
        assert (len(compiled), len(files(folder))) == (3 + 2 * k, 3 + 2 * k)
    monkeypatch.undo()
    assert llvm.identity().startswith(llvmlite.__version__)


def test_source_edited_after_its_import_is_no_key(folder, compiled, monkeypatch):
    # The process would file what its old function computes under the name of the new one.
    traced: list = []
    build(traced=traced)(X)
    monkeypatch.setattr(disk_cache, "_LOADED", 0.0)
    disk_cache.source_digest.cache_clear()
    try:
        assert disk_cache.source_digest() == b""
        assert (build(traced=traced)(X) == Y).all()
        assert (build(factor=3.0, traced=traced)(X) == X * 3.0 + 1.0).all()  # the same key, edited
        assert (build(traced=traced)(X) == Y).all()
        assert (len(traced), len(compiled)) == (4, 3)
    finally:
        monkeypatch.undo()
        disk_cache.source_digest.cache_clear()


def test_a_text_without_a_source_file_is_known_by_its_code(folder):
    space: dict = {}
    for factor in (2.0, 3.0):
        exec(
            builtins.compile(f"def function(x): return [[a * {factor} for a in x]]", "<stdin>", "exec"), space
        )
        kernel = Kernel("typed", [("x", 6)], [("y", (6,))], space["function"], key=b"typed")
        assert (kernel(X) == X * factor).all()


def test_entries_say_what_they_are_for(folder):
    build()(X)
    build()(np.tile(X, (3, 1)))
    (folder / f"{name(0)}.bin").write_bytes(b"damaged")
    found = disk_cache.entries()
    assert sorted((e.kernel, e.part) for e in found) == [("", ""), ("scale", "batch"), ("scale", "single")]
    assert all(e.size == e.path.stat().st_size for e in found)
    assert len(disk_cache.clear()) == 3 and disk_cache.entries() == [] and (build()(X) == Y).all()


def twice(first: dict, second: dict, function1, function2=None) -> tuple[Kernel, Kernel]:
    """Two kernels of one name and one key, whose functions are in one file: only their shapes differ."""
    common = {"key": b"robot"}
    return (
        Kernel("k", function=function1, **common, **first),
        Kernel("k", function=function2 or function1, **common, **second),
    )


def ones(n: int) -> dict:
    return {"inputs": [("x", n)], "outputs": [("y", (n,))]}


def double(x):
    return [[a * 2.0 for a in x]]


@pytest.mark.parametrize("sizes", [(3, 6), (8, 16), (1, 2)])
def test_kernels_of_other_sizes_are_other_files(folder, sizes):
    first, second = twice(*map(ones, sizes), double)
    for kernel, n in ((first, sizes[0]), (second, sizes[1])):
        for shape in ((n,), (5, n)):
            x = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
            assert (kernel(x) == 2.0 * x).all()
    assert len(files(folder)) == 4


def test_kernels_of_more_inputs_are_other_files(folder):
    less = {"inputs": [("x", 4)], "outputs": [("y", (4,))]}
    more = {"inputs": [("x", 4), ("z", 4)], "outputs": [("y", (4,))]}
    first, second = twice(less, more, double, lambda x, z: [[a * b for a, b in zip(x, z, strict=True)]])
    x = np.arange(1.0, 5.0)
    assert (first(x) == 2.0 * x).all() and (second(x, x) == x * x).all()
    with pytest.raises(ValueError, match="z: expected finite"):
        second(x, np.full(4, np.nan))


def test_kernels_of_more_outputs_are_other_files(folder):
    more = {"inputs": [("x", 4)], "outputs": [("y", (4,)), ("z", (2,))]}
    first, second = twice(ones(4), more, double, lambda x: [[a * 2.0 for a in x], [x[0], x[1]]])
    x = np.arange(1.0, 5.0)
    assert (first(x) == 2.0 * x).all() and (first(np.tile(x, (5, 1))) == 2.0 * x).all()
    for shape in ((), (5,)):
        given = np.broadcast_to(x, (*shape, 4)).copy()
        y, z = np.zeros((*shape, 4)), np.zeros((*shape, 2))
        second(given, out=(y, z))
        assert (y == 2.0 * given).all() and (z == given[..., :2]).all()


def test_kernels_that_check_a_quaternion_are_other_files(folder):
    first, second = twice(ones(4), ones(4) | {"quaternions": [(0, 0)]}, double)
    x = np.ones(4)
    assert (first(x) == 2.0).all()
    for given in (x, np.tile(x, (7, 1))):
        with pytest.raises(ValueError, match="unit quaternion"):
            second(given)


def test_kernels_that_check_their_outputs_are_other_files(folder):
    first, second = twice(ones(4), ones(4) | {"finite": True}, lambda x: [[1.0 / a for a in x]])
    x = np.array([1.0, 0.0, 1.0, 1.0])
    for given in (x, np.tile(x, (7, 1))):
        assert np.isinf(first(given)).any()
        with pytest.raises(ArithmeticError, match="not finite"):
            second(given)


def test_kernels_that_feed_back_something_else_are_other_files(folder):
    both = {"inputs": [("x", 2), ("w", 2)], "outputs": [("y", (2,)), ("z", (2,))]}
    kernels = twice(
        both | {"feedback": {"y": "x", "z": "w"}},
        both | {"feedback": {"y": "w", "z": "x"}},
        lambda x, w: [[a * 2.0 for a in x], [a * 3.0 for a in w]],
    )
    for kernel, expected in zip(kernels, ([8.0, 27.0], [18.0, 12.0]), strict=True):
        state = [np.ones((1, 1, 2)), np.ones((1, 1, 2))]
        kernel.rollout_runner().of_one_row(state)(3)
        assert [x[0, 0].tolist() for x in state] == [[number] * 2 for number in expected]


def test_kernels_in_single_precision_are_other_files(folder):
    first, second = twice(ones(4), ones(4) | {"dtype": "float32"}, double)
    x = np.ones((9, 4))
    assert (first(x) == 2.0).all() and (second(x) == 2.0).all()
    assert second(x).dtype == np.float32 and len(files(folder)) == 2
