"""The folder of a sweep: whatever becomes of its files, it comes to the bytes of an undisturbed run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as parquet
import pytest
from fake_recipe import FakeRecipe

from robokit.errors import RobokitError
from robokit.sweeps import chunks
from robokit.sweeps import recipe as recipes
from robokit.sweeps.folder import canonical_json, hold_folder
from robokit.sweeps.run_sweep import default_chunk, run_sweep
from robokit.sweeps.table import RowTable, concatenate, content_hash, parquet_bytes

RECIPE = FakeRecipe(95)


class Other(FakeRecipe):
    """The same rows by other arithmetic."""

    def compute_rows(self, first, last):
        columns = super().compute_rows(first, last).columns
        return RowTable(columns | {"height": columns["height"] + 2.0**-52})


OTHER = Other(95)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "undisturbed"
    run_sweep(RECIPE, folder, chunk=10, workers=0)
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_every_row_is_there_once(undisturbed):
    found = concatenate(list(chunks.read_chunks(undisturbed))).to_pydict()
    assert found["row"] == list(range(95))
    assert found["height"] == np.sqrt(np.arange(95)).tolist()
    assert [k for k, why in zip(found["row"], found["failure"], strict=True) if why] == list(range(7, 95, 10))
    assert sorted(contents(undisturbed))[-1] == "sweep.json"
    assert len(contents(undisturbed)) == 11


def test_chunks_carry_the_recipe_and_units(undisturbed):
    schema = parquet.read_schema(chunks.chunk_files(undisturbed)[0].path)
    assert FakeRecipe.from_json(schema.metadata[b"robokit.recipe"].decode()) == RECIPE
    read = next(chunks.read_chunks(undisturbed, ["height"]))
    assert read.column_names == ["height"] and read.units == {"height": "m"}
    assert read.to_arrow().schema.field("height").metadata == {b"unit": b"m"}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["pandas", "polars", "duckdb"])
def test_other_programs_read_all_chunks_in_one_line(undisturbed, program):
    module, folder = pytest.importorskip(program), undisturbed / "chunks"
    if program == "pandas":
        heights = module.read_parquet(folder)["height"].to_numpy()
    elif program == "polars":
        heights = module.read_parquet(folder / "*.parquet")["height"].to_numpy()
    else:
        heights = module.sql(f"SELECT height FROM '{folder}/*.parquet' ORDER BY row").fetchnumpy()["height"]
    assert heights.tolist() == np.sqrt(np.arange(95)).tolist()


def truncated(path):
    path.write_bytes(path.read_bytes()[:-30])


def empty(path):
    path.write_bytes(b"")


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)


def renamed(path):
    path.rename(path.with_name("11" + path.name[2:]))


def doubled(path):
    shutil.copy(path, path.with_name(path.name[:3] + "0" * 20 + ".parquet"))


def exchanged(path):
    shutil.copy(sorted(path.parent.iterdir())[0], path)


DAMAGES = [truncated, empty, flipped, renamed, doubled, exchanged, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_chunk_is_made_again(undisturbed, tmp_path, damage):
    folder = shutil.copytree(undisturbed, tmp_path / "damaged")
    damage(chunks.chunk_files(folder)[4].path)
    found = run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert found.computed == 10
    assert (found.redone == ()) == (damage is Path.unlink)
    assert found.failures == 9
    assert contents(folder) == contents(undisturbed)


def test_nothing_is_computed_twice(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "whole")
    assert run_sweep(RECIPE, folder, chunk=77, workers=0, resume=True).computed == 0


def test_what_killed_processes_left_is_removed(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "left")
    name = chunks.chunk_files(folder)[0].path.stem
    for left in (f"chunks/.{name}.0123456789ab.tmp", ".sweep.0123456789ab.tmp", chunks.probe_name()):
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
        with pytest.raises(RobokitError, match=r"No space left.*make room; [1-4]0 of 95.*--resume .*full$"):
            run_sweep(RECIPE, folder, chunk=10, workers=0)
    assert not list(folder.rglob(".*"))
    run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == contents(undisturbed)


def test_a_folder_that_goes_away(tmp_path, monkeypatch):
    real = chunks.compute_chunk

    def compute(*arguments):
        if arguments[2] == 30:
            (tmp_path / "sweep").rename(tmp_path / "elsewhere")
        return real(*arguments)

    monkeypatch.setattr("robokit.sweeps.workers.compute_chunk", compute)
    with pytest.raises(RobokitError, match=r"sweep has gone .*bring it back; 30 of 95 rows"):
        run_sweep(RECIPE, tmp_path / "sweep", chunk=10, workers=0)


def test_a_worker_without_the_folder_hands_its_chunk_back(undisturbed, tmp_path):
    (tmp_path / "chunks").mkdir()
    for probe, handed in (("absent", True), ("probe", False)):
        (tmp_path / "probe").touch()
        place = chunks.Place(str(tmp_path), probe, 95, b"")
        text = canonical_json(RECIPE.to_json())
        done = chunks.compute_chunk(text, FakeRecipe.from_json, 20, 30, place)
        assert (done.content is not None) == handed
        assert (done.first, done.rows, done.failures) == (20, 10, 1)
        assert done.name == chunks.chunk_files(undisturbed)[2].path.name
    written = (tmp_path / "chunks" / done.name).read_bytes()
    assert written == (undisturbed / "chunks" / done.name).read_bytes()


def test_another_robokit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "source_digest", lambda: b"this")
    place = chunks.Place(str(tmp_path), "", 95, b"another")
    with pytest.raises(RobokitError, match=r"worker .* has another robokit, in .*; install the same one"):
        chunks.compute_chunk(RECIPE.to_json(), FakeRecipe.from_json, 0, 10, place)


def test_a_sweep_begun_by_other_arithmetic_does_not_go_on(tmp_path, monkeypatch):
    """Where the source has changed, a row that is there is computed again and must be the same."""

    class Dated(FakeRecipe):
        def to_json(self):
            return json.dumps(asdict(self) | {"versions": {"robokit": "0.1.9", "source": "abc"}})

        @classmethod
        def from_json(cls, text):
            return cls(**{name: x for name, x in json.loads(text).items() if name != "versions"})

    folder = tmp_path / "sweep"
    run_sweep(Dated(95), folder, chunk=10, workers=0)
    (folder / "chunks").joinpath(chunks.chunk_files(folder)[3].path.name).unlink()
    left = contents(folder)
    monkeypatch.setattr(Dated, "compute_rows", lambda self, *rows: OTHER.compute_rows(*rows))
    with pytest.raises(
        RobokitError, match=r"begun with robokit 0\.1\.9 .* row 0 comes out otherwise, in 'height'"
    ):
        run_sweep(Dated(95), folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left
    monkeypatch.setattr(Dated, "compute_rows", FakeRecipe.compute_rows)
    assert run_sweep(Dated(95), folder, chunk=10, workers=0, resume=True).computed == 10


def test_rows_that_cannot_be_computed_do_not_stop_the_others(tmp_path):
    with pytest.raises(RobokitError, match=r"rows 30 to 39 could .*ValueError: row 33 cannot be; 85 of 95"):
        run_sweep(FakeRecipe(95, raiser=33), tmp_path / "sweep", chunk=10, workers=0)
    assert len(list((tmp_path / "sweep" / "chunks").iterdir())) == 9


def test_an_interrupt_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"0 of 95 rows are kept; go on with: robokit sweep --resume"):
        run_sweep(RECIPE, tmp_path / "sweep", chunk=10, workers=0)


def test_rows_that_were_interrupted_are_not_taken_for_whole(monkeypatch):
    cut = SimpleNamespace(summary={"interrupted": True})
    monkeypatch.setattr(recipes, "rollout", lambda *_, **__: cut)
    robots = {"robot": SimpleNamespace(pairs=None)}
    recipe = SimpleNamespace(robots=robots, duration=1.0, dt={"robot": 1e-3}, options={})
    with pytest.raises(KeyboardInterrupt):
        recipes.run_rows(recipe, "robot", recipes.Runs(None, None, None, None, [], [], {}))


def test_folders_that_hold_something_else(undisturbed, tmp_path):
    def refused(folder, text, recipe=RECIPE, **options):
        with pytest.raises(RobokitError, match=text):
            run_sweep(recipe, folder, chunk=10, workers=0, **options)

    before = contents(undisturbed)
    refused(undisturbed, "holds a sweep already; go on with it by resume=True")
    refused(undisturbed, "holds another sweep: its 'count' is 95, not 96", FakeRecipe(96), resume=True)
    assert contents(undisturbed) == before
    (tmp_path / "notes.txt").touch()
    refused(tmp_path, r"is not empty \('?notes.txt")
    refused(tmp_path / "notes.txt", "is a file; give a folder")
    refused(tmp_path, "no sweep.json in .*: give the folder of a sweep", resume=True)
    refused(tmp_path / "none", "there is no folder", resume=True)
    (tmp_path / "sweep.json").write_text("{")
    refused(tmp_path, "is not the file of a sweep", resume=True)
    (tmp_path / "sweep.json").write_text('{"format": 99, "recipe": {}}')
    refused(tmp_path, "has format 99, this robokit reads 1", resume=True)


def test_two_commands_do_not_write_to_one_folder(undisturbed):
    with hold_folder(undisturbed), pytest.raises(RobokitError, match="is being written by another command"):
        run_sweep(RECIPE, undisturbed, chunk=10, workers=0, resume=True)


def test_the_name_follows_from_every_value_and_from_nothing_else():
    table = RECIPE.compute_rows(0, 30)
    name = content_hash(table, "recipe")
    assert name == content_hash(concatenate([table.take(slice(7)), table.take(slice(7, None))]), "recipe")
    assert name == content_hash(RowTable(table.columns, {"height": "km"}), "recipe")
    renamed = RowTable(dict(zip("abcd", table.columns.values(), strict=True)))
    others = [content_hash(table, "other recipe"), content_hash(renamed, "recipe")]
    for key, column in table.columns.items():
        for row in (0, 7, 29):
            for value in (None, "other") if column.dtype == object else (-1, column[row] + 1):
                changed = column.copy()
                changed[row] = value
                if changed.tolist() != column.tolist():
                    others.append(content_hash(RowTable(table.columns | {key: changed}), "recipe"))
    assert len({name, *others}) == len(others) + 1
    assert len(others) > 20


def test_the_same_rows_are_the_same_bytes():
    a, b = (
        parquet_bytes(table, "recipe") for table in (RECIPE.compute_rows(0, 30), RECIPE.compute_rows(0, 30))
    )
    assert a == b


def test_chunks_are_neither_many_nor_tiny():
    for count in (1, 100, 10**6, 10**9):
        for steps in (1, 500, 10**5, 10**9):
            rows = default_chunk(count, steps)
            assert 1 <= rows <= count
            assert -(-count // rows) <= 10_000
            assert rows >= min(count, 16)
    assert default_chunk(10**6, 500) == 2048
