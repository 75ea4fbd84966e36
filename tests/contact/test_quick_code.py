"""Code that is there sooner: of one run, of what runs seldom, and the page's step that comes with robokit."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from robokit.engine import maker
from robokit.engine.backend import llvm
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import REALS
from robokit.sim import contact_page
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


def test_the_page_step_that_comes_with_robokit_is_of_this_source() -> None:
    """If not: python -m robokit.sim.contact_page"""
    assert contact_page.shipped_module() is not None


def test_a_page_step_of_another_source_is_passed_over(tmp_path, monkeypatch) -> None:
    file = tmp_path / "page_step.wasm.gz"
    monkeypatch.setattr(contact_page, "FILE", file)
    assert contact_page.shipped_module() is None
    content = gzip.compress(b"a module", mtime=0)
    file.write_bytes(contact_page.sources_digest() + content)
    assert contact_page.shipped_module() == content
    monkeypatch.setattr(contact_page, "SOURCES", ("spatial",))
    assert contact_page.shipped_module() is None
