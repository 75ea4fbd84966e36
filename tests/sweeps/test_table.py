"""Rows as Parquet and as hashes: every bit comes back, the same rows are the same bytes."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from fake_recipe import FakeRecipe
from sweep_files import flip

from robokit.sweeps import folder as sweep_folder
from robokit.sweeps.table import (
    SEAL_BYTES,
    RowTable,
    concatenate,
    content_hash,
    is_sealed,
    parquet_bytes,
    read_parquet,
)

RECIPE = FakeRecipe(45)


def test_chunks_carry_the_recipe_and_units(undisturbed):
    schema = parquet.read_schema(sweep_folder.chunk_files(undisturbed)[0].path)
    assert FakeRecipe.from_json(schema.metadata[b"robokit.recipe"].decode()) == RECIPE
    read = next(sweep_folder.read_chunks(undisturbed, ["height"]))
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
    assert heights.tolist() == np.sqrt(np.arange(45)).tolist()


def renamed(path):
    path.rename(path.with_name("11" + path.name[2:]))


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
    """In one part or joined from several; the recipe's text is in them once."""
    whole = RECIPE.compute_rows(0, 30)
    joined = concatenate([whole.take(slice(7)), whole.take(slice(7, None))])
    content = parquet_bytes(whole, "the text of a recipe")
    assert content == parquet_bytes(joined, "the text of a recipe")
    assert content.count(b"the text of a recipe") == 1


def test_checksums_of_pages_are_there_for_other_programs(undisturbed, tmp_path):
    path = sweep_folder.chunk_files(shutil.copytree(undisturbed, tmp_path / "copy"))[1].path
    column = parquet.read_metadata(path).row_group(0).column(1)
    flip(path, 8 * (column.data_page_offset + column.total_compressed_size) - 20)
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)crc|checksum"):
        parquet.read_table(path, page_checksum_verification=True)


def test_a_seal_is_that_of_the_name_and_of_every_byte(undisturbed):
    path = sweep_folder.chunk_files(undisturbed)[0].path
    content = path.read_bytes()
    assert is_sealed(content, path.name) and not is_sealed(content, f"1{path.name}")
    for short in (b"", b"PAR1", content[:-SEAL_BYTES], 3 * b"PAR1", content[:-8] + b"\xff\xff\xff\x7fPAR1"):
        assert not is_sealed(short, path.name)


def every_kind(n):
    rng = np.random.default_rng(n)
    return RowTable(
        {
            "row": np.arange(n),
            "number": rng.normal(size=n),
            "few": rng.integers(0, 5, n) * 0.1,
            "constant": np.full(n, np.nan),
            "zeros": np.where(np.arange(n) % 2, 0.0, -0.0),
            "hash": rng.integers(0, 2**63, n).astype(np.uint64) * np.uint64(2),
            "name": np.array([["foot", "Füße", None][k % 3] for k in range(n)], object),
            "unique": np.array([f"row {k}" for k in range(n)], object),
            "failure": np.full(n, None, object),
        },
        {"number": "m"},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_reading_starts_no_thread(undisturbed):
    """A thread of Arrow's that still held the bytes when Python ended would abort the process."""
    program = (
        "import os, sys; from pathlib import Path; from robokit.sweeps import table; table.arrow()\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "before = threads(); table.read_parquet(Path(sys.argv[1]).read_bytes()); print(threads() - before)"
    )
    file = sweep_folder.chunk_files(undisturbed)[0].path
    run = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    assert run.stdout == "0\n"


@pytest.mark.parametrize("n", [0, 1, 300])
def test_every_bit_comes_back(n):
    table = every_kind(n)
    recipe, rows, again = read_parquet(parquet_bytes(table, '{"seed": 1}'))
    assert (recipe, rows, again.units) == ('{"seed": 1}', n, table.units)
    assert again.column_names == table.column_names
    for name, values in table.columns.items():
        assert again[name].dtype == values.dtype
        assert again[name].tolist() == values.tolist() or again[name].tobytes() == values.tobytes()
    assert repr(again.to_arrow().to_pylist()) == repr(table.to_pylist())
