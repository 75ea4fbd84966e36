"""Code that is there sooner: of one run, of what runs seldom, and the code that comes with robokit."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit import disk_cache, shipped_code
from robokit.collision import detect
from robokit.collision.scene import World, scene
from robokit.contact.step import _step_kernel
from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import REALS, Source
from robokit.errors import RobokitError
from robokit.model import Placement
from robokit.sim import steppers
from robokit.spatial.control_flow import for_range, zeros


def _sums(x):
    """Running sums, by way of an array of zeros whose size is known late."""
    total = zeros(x.n)

    def add(k):
        before = for_range(k, lambda m, s: s + x.given[m] * 0.1, 0.0)
        total[k] = before + x.given[k]
        x.out[k] = total[k]

    for_range(x.n, add)


def _kernel(**options):
    return kernel_of("sums", _sums, [real("given", "n"), real("out", "n", role="out")], **options)


def test_code_that_is_there_soon_has_the_same_bits(monkeypatch) -> None:
    given = np.random.default_rng(0).normal(size=50)
    soon = _kernel()(given=given)["out"]
    monkeypatch.setattr(maker, "TIERED", False)
    np.testing.assert_array_equal(_kernel()(given=given)["out"], soon)
    text = _kernel().text(1, REALS["float64"], "linked")
    assert llvm.soon(text) == text.replace(llvm.LOOPS, llvm.LOOPS + llvm.SOON, 1)


@pytest.mark.skipif(not llvm.images_possible(), reason="images are for x86-64 Linux")
def test_modules_with_loops_need_no_loader_of_llvm() -> None:
    """Zeros and copies are no calls of the C library, so the code is an image, compiled once."""
    text = _kernel().text(1, REALS["float64"], "linked")
    assert "llvm.memset" in text
    assert llvm.assemble(text).startswith(llvm.MAGIC)


SHIPPED = {"page_step.wasm.gz"} | {
    f"{kernel}.{instructions}.gz"
    for kernel in ("contact_step", "detect")
    for instructions in llvm.INSTRUCTIONS
}


def test_the_code_that_comes_with_robokit_is_of_this_source() -> None:
    """If not: python -m robokit.sim.page_step"""
    assert {path.name for path in shipped_code.FOLDER.iterdir()} == SHIPPED
    assert [name for name in SHIPPED if shipped_code.read(name) is None] == []


def test_code_of_another_source_is_passed_over(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(shipped_code, "FOLDER", tmp_path / "shipped")
    assert shipped_code.read("step") is None
    shipped_code.write("step", b"a module")
    assert gzip.decompress(shipped_code.read("step")) == b"a module"
    monkeypatch.setattr(shipped_code, "SOURCES", ("spatial",))
    shipped_code.sources_digest.cache_clear()
    try:
        assert shipped_code.read("step") is None
        monkeypatch.setattr(disk_cache, "source_file", lambda path: None)  # newer than this process
        shipped_code.sources_digest.cache_clear()
        with pytest.raises(RobokitError, match="run it again"):
            shipped_code.write("step", b"a module")
    finally:
        shipped_code.sources_digest.cache_clear()


@pytest.mark.skipif(not llvm.runs_machine_code(), reason="the code is for x86-64 with AVX2")
def test_code_that_comes_with_robokit_is_taken_unrecorded_and_has_the_bits_of_code_made_here(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(maker, "TIERED", True)
    robot = rk.load_urdf(rk.find_robot("humanoid"))
    arrays = scene(robot, World(Placement()), None).arrays
    rng = np.random.default_rng(3)
    R = Rotation.random(robot.nbodies + 1, rng=rng).as_matrix()
    p = rng.normal(scale=0.1, size=(robot.nbodies + 1, 3))
    make, found = detect.detect_kernel.__wrapped__, []
    for folder in (shipped_code.FOLDER, tmp_path / "none"):
        monkeypatch.setattr(shipped_code, "FOLDER", folder)
        kernel = make()
        monkeypatch.setattr(detect, "detect_kernel", lambda kernel=kernel: kernel)
        found.append(detect.contacts_at(arrays, R, p))
        assert ("graph" in vars(kernel)) == (folder == tmp_path / "none")
        assert kernel.soon(1, "float64")  # compiled for this processor once it has run for a while
    assert len(found[0]["contact_gap"]) > 20
    for name, wanted in found[1].items():
        np.testing.assert_array_equal(found[0][name], wanted, err_msg=name)
    # Another function under the same name does not take it.
    monkeypatch.setattr(shipped_code, "FOLDER", shipped_code.ROOT / "shipped")
    other = kernel_of("detect", detect.detect, detect.SHAPES, by_source=True)
    assert other._found(other._source_of(1, REALS["float64"], "linked soon"), shipped=True) is None
    # Nor is a file taken that is damaged.
    source, file = make()._source_of(1, REALS["float64"], "linked soon"), kernel.shipped_file("avx2")
    assert source.shipped(file) is not None
    (tmp_path / file).write_bytes((shipped_code.FOLDER / file).read_bytes()[:-100])
    monkeypatch.setattr(shipped_code, "FOLDER", tmp_path)
    assert source.shipped(file) is None


def test_the_fastest_code_that_this_processor_runs_is_taken(monkeypatch) -> None:
    flags = {"avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    monkeypatch.setattr(llvm, "images_possible", lambda: True)
    asked: list[str] = []
    monkeypatch.setattr(Source, "shipped", lambda _, file: asked.append(file))
    source = Source.of(detect.detect)
    for missing, wanted in ((set(), ["avx512", "avx2"]), ({"avx512vl"}, ["avx2"]), ({"fma"}, [])):
        monkeypatch.setattr(llvm, "processor_flags", lambda missing=missing: frozenset(flags - missing))
        asked.clear()
        assert detect.detect_kernel.__wrapped__()._found(source, shipped=True) is None
        assert asked == [f"detect.{instructions}.gz" for instructions in wanted]


@pytest.mark.skipif(not all(map(llvm.runs, llvm.INSTRUCTIONS)), reason="a processor without AVX-512")
def test_all_code_that_comes_with_robokit_has_the_same_bits(tmp_path, monkeypatch) -> None:
    """A fall with self-collision, in which a robot lands and slides."""
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))  # nothing is there that was compiled before
    monkeypatch.setattr(maker, "TIERED", True)
    found = []
    for instructions, processor in llvm.INSTRUCTIONS.items():
        kernel = _step_kernel.__wrapped__(False, ())
        monkeypatch.setattr(llvm, "INSTRUCTIONS", {instructions: processor})
        monkeypatch.setattr(steppers, "step_kernel", lambda *_, kernel=kernel: kernel)
        robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
        q = rk.standing_configuration(robot, height=0.02, tilt=0.2)
        options = {"ground": True, "self_collision": True, "record_every": 400}
        found.append(rk.simulate(robot, q, duration=0.4, dt=1e-3, **options))
        assert "graph" not in vars(kernel)  # it was not compiled here
    assert np.linalg.norm(found[0].contacts.forces[-1]) > 100.0
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name), err_msg=name)
