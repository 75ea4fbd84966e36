"""Functions that write a file: one clear error before any work where it cannot be written."""

from __future__ import annotations

import errno
import os
import resource
import sys

import numpy as np
import pytest

import robokit as rk
from robokit import files as written_files
from robokit.mjcf import to_mjcf
from robokit.urdf import dump
from robokit.viewer import compare, draw_sparsity, write_check_page, write_page, write_sparsity_page


@pytest.fixture(scope="module")
def robot():
    return rk.load_urdf(rk.find_robot("double_pendulum"))


@pytest.fixture(scope="module")
def run(robot):
    return rk.simulate(robot, [1.0, 0.0], duration=0.02)


@pytest.fixture(scope="module")
def found(robot):
    q, v, a = np.random.default_rng(0).normal(size=(3, 60, 2))
    return rk.identify(robot, q, v, a, rk.rnea(robot, q, v, a))


WRITERS = {
    "save.npz": lambda robot, run, found, path: run.save(path),
    "run.html": lambda robot, run, found, path: run.to_html(path, walk=False),
    "pose.html": lambda robot, run, found, path: write_page(robot, path, walk=False),
    "both.html": lambda robot, run, found, path: compare(run, run, path),
    "check.html": lambda robot, run, found, path: write_check_page(robot, robot.diagnostics, path),
    "pattern.html": lambda robot, run, found, path: write_sparsity_page([robot], path),
    "pattern.svg": lambda robot, run, found, path: draw_sparsity(robot, path),
    "fit.png": lambda robot, run, found, path: found.plot(path),
    "robot.urdf": lambda robot, run, found, path: dump(robot, path),
    "robot.xml": lambda robot, run, found, path: to_mjcf(robot, path),
    "code": lambda robot, run, found, path: rk.codegen(robot, "rnea", path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_is_not_there_is_said(robot, run, found, name, tmp_path):
    path = tmp_path / "none" / name
    with pytest.raises(rk.WriteError) as caught:
        WRITERS[name](robot, run, found, path)
    assert isinstance(caught.value, rk.RobokitError) and isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENOENT
    assert "cannot write" in str(caught.value) and str(tmp_path / "none") in str(caught.value)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "code"])
def test_a_folder_is_no_file(robot, run, found, name, tmp_path):
    path = tmp_path / name
    path.mkdir()
    with pytest.raises(rk.WriteError, match=r"^path: .* is a folder; give the name of a file$"):
        WRITERS[name](robot, run, found, path)


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "code"])
def test_links_are_followed_and_only_those_that_lead_to_a_file(robot, run, found, name, tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / name
    for end, number in (("none/x", errno.ENOENT), (name, errno.ELOOP), ("folder", errno.EISDIR)):
        link.symlink_to(end)
        with pytest.raises(rk.WriteError) as caught:
            WRITERS[name](robot, run, found, link)
        assert caught.value.errno == number
        link.unlink()
    link.symlink_to("folder/real.dat")
    for _ in range(2):  # it dangles, then it does not
        WRITERS[name](robot, run, found, link)
        assert link.is_symlink() and os.listdir(tmp_path / "folder") == ["real.dat"]


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("folder_takes_files", [True, False])
def test_a_full_disk_leaves_what_was_there(
    robot, run, found, name, folder_takes_files, tmp_path, monkeypatch
):
    files = [tmp_path / name]
    if name == "code":
        WRITERS[name](robot, run, found, files[0])
        files = list(files[0].iterdir())
    new = name == "code" and not folder_takes_files
    words = "permission denied" if new else "File too large"
    for path in files:
        path.write_text("before")
    if not folder_takes_files:
        can = os.access
        monkeypatch.setattr(os, "access", lambda path, mode: not os.path.isdir(path) and can(path, mode))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(rk.WriteError, match=words):
            WRITERS[name](robot, run, found, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(files) == sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert {path.read_text() for path in files} == {"before"}


def test_a_file_in_a_folder_that_takes_no_others_gets_its_content_back(tmp_path, monkeypatch):
    can, file = os.access, tmp_path / "a.txt"
    file.write_text("before")
    monkeypatch.setattr(os, "access", lambda path, mode: not os.path.isdir(path) and can(path, mode))
    written_files.write_text(file, "after, which is longer")
    assert file.read_text() == "after, which is longer" and os.listdir(tmp_path) == ["a.txt"]
    fill, full = written_files._fill, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def cut(out, content):
        fill(out, content[:3])
        if content == b"more":
            raise full
        fill(out, content)

    monkeypatch.setattr(written_files, "_fill", cut)
    with pytest.raises(rk.WriteError, match="No space left"):
        written_files.write_text(file, "more")
    assert file.read_text() == "after, which is longer"


def test_code_goes_to_no_folder_that_is_a_file(robot, tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(rk.WriteError, match=r"^folder: cannot write to "):
        rk.codegen(robot, "rnea", file)


def test_figures_have_an_ending_that_can_be_written(robot, found, tmp_path):
    for write in (found.plot, lambda path: draw_sparsity(robot, path)):
        with pytest.raises(
            rk.ShapeError, match=r"^path: expected a name that ends in .*\.png, .* got '.*fit\.xyz'"
        ):
            write(tmp_path / "fit.xyz")
        path = write(tmp_path / "fit")
        assert path.name == "fit.png" and path.stat().st_size > 0


def test_a_disk_that_takes_no_more_is_said(found, tmp_path, monkeypatch):
    full = tmp_path / "full.txt"
    with (
        pytest.raises(rk.WriteError, match=r"^cannot write .*full\.txt': No space left on device$") as caught,
        written_files.writing(full),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC and caught.value.strerror == "No space left on device"
    assert caught.value.filename == str(full)
    # Root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(rk.WriteError, match=r"^path: cannot write .*fit\.png': permission denied"):
        found.plot(tmp_path / "fit.png")
