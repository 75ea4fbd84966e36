"""Runs of a sweep: whatever becomes of its files, it comes to the bytes of an undisturbed run."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from fake_recipe import FakeRecipe
from sweep_files import contents, not_for_ever

from robokit.errors import RobokitError
from robokit.sweeps import folder as sweep_folder
from robokit.sweeps.table import concatenate
from robokit.sweeps.workers import default_chunk, run_sweep

RECIPE = FakeRecipe(45)


def test_every_row_is_there_once(undisturbed):
    found = concatenate(list(sweep_folder.read_chunks(undisturbed)))
    assert found["row"].tolist() == list(range(45))
    assert found["height"].tolist() == np.sqrt(np.arange(45)).tolist()
    assert [k for k, why in zip(found["row"], found["failure"], strict=True) if why] == list(range(7, 45, 10))
    assert sorted(contents(undisturbed))[-1] == "sweep.json"
    assert len(contents(undisturbed)) == 6


def renamed(path):
    path.rename(path.with_name("11" + path.name[2:]))


def doubled(path):
    shutil.copy(path, path.with_name(path.name[:3] + "0" * 20 + ".parquet"))


DAMAGES = [renamed, doubled, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_chunk_is_made_again(undisturbed, tmp_path, damage):
    folder = shutil.copytree(undisturbed, tmp_path / "damaged")
    damage(sweep_folder.chunk_files(folder)[3].path)
    found = run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert found.computed == 10
    assert (found.redone == ()) == (damage is Path.unlink)
    assert found.failures == 4
    assert contents(folder) == contents(undisturbed)


def test_nothing_is_computed_twice(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "whole")
    assert run_sweep(RECIPE, folder, chunk=77, workers=0, resume=True).computed == 0


def test_what_killed_processes_left_is_removed(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "left")
    name = sweep_folder.chunk_files(folder)[0].path.stem
    for left in (f"chunks/.{name}.0123456789ab.tmp", ".sweep.0123456789ab.tmp", sweep_folder.probe_name()):
        (folder / left).write_bytes(b"half")
    (folder / "notes.txt").write_text("the user's own")
    run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == {"notes.txt": b"the user's own", **contents(undisturbed)}


@pytest.mark.parametrize("when", ["written", "renamed"])
def test_a_full_disk_is_one_line_and_loses_nothing(undisturbed, tmp_path, monkeypatch, when):
    folder, done = tmp_path / "full", []

    def full(*arguments):
        done.append(arguments)
        if len(done) > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    name = {"written": "fsync", "renamed": "replace"}[when]
    real = getattr(os, name)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        with pytest.raises(RobokitError, match=r"No space left.*make room; [1-4]0 of 45.*--resume .*full$"):
            run_sweep(RECIPE, folder, chunk=10, workers=0)
    assert not list(folder.rglob(".*"))
    run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == contents(undisturbed)


def test_a_folder_that_goes_away(tmp_path, monkeypatch):
    real = sweep_folder.compute_chunk

    def compute(*arguments):
        if arguments[2] == 30:
            (tmp_path / "sweep").rename(tmp_path / "elsewhere")
        return real(*arguments)

    monkeypatch.setattr("robokit.sweeps.workers.compute_chunk", compute)
    with pytest.raises(RobokitError, match=r"sweep has gone .*bring it back; 30 of 45 rows"):
        run_sweep(RECIPE, tmp_path / "sweep", chunk=10, workers=0)


def test_rows_that_cannot_be_computed_do_not_stop_the_others(tmp_path):
    with pytest.raises(RobokitError, match=r"rows 30 to 39 could .*ValueError: row 33 cannot be; 35 of 45"):
        run_sweep(FakeRecipe(45, raiser=33), tmp_path / "sweep", chunk=10, workers=0)
    assert len(list((tmp_path / "sweep" / "chunks").iterdir())) == 4


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"0 of 45 rows are kept; go on with: robokit sweep --resume"):
        run_sweep(RECIPE, tmp_path / "sweep", chunk=10, workers=0)


def test_chunks_are_neither_many_nor_tiny():
    for count in (1, 100, 10**6, 10**9):
        for steps in (1, 500, 10**5, 10**9):
            rows = default_chunk(count, steps)
            assert 1 <= rows <= count
            assert -(-count // rows) <= 10_000
            assert rows >= min(count, 16)
    assert default_chunk(10**6, 500) == 2048


def test_a_sweep_of_very_many_chunks_begins_at_once(tmp_path):
    """They are not listed beforehand: 2^32 of them would take all memory."""
    with not_for_ever(), pytest.raises(RobokitError, match=r"rows 0 to 0 could not .*: row 0 cannot be"):
        run_sweep(EveryRow(2**32), tmp_path / "sweep", chunk=1, workers=0)


class EveryRow(FakeRecipe):
    """Rows of which none can be computed."""

    def compute_rows(self, first, last):
        raise RobokitError(f"row {first} cannot be")
