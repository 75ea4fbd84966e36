"""The folder of a sweep and its sweep.json: what contradicts itself is refused, and nothing is deleted."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import shutil
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from fake_recipe import FakeRecipe
from sweep_files import at, changed, contents, empty, exchanged, flip, not_for_ever, truncated

import robokit as rk
from robokit.errors import RobokitError
from robokit.sweeps import folder as sweep_folder
from robokit.sweeps.folder import (
    SweepFile,
    canonical_json,
    difference,
    hold_folder,
    read_sweep_file,
    write_whole,
)
from robokit.sweeps.table import RowTable, add_seal, content_hash, parquet_bytes
from robokit.sweeps.workers import run_sweep

RECIPE = FakeRecipe(45)


RUN = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}


posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")


CHANGES = [
    ({"chunk": -5}, {}, "'chunk': expected a whole number >= 1, got -5"),
    ({"chunk": 10.0}, {}, "'chunk': expected a whole number"),
    ({"chunk": 5}, {}, "is not as it was written|10 rows begin with row 0"),
    ({"chunk": 20}, {}, "is not as it was written|10 rows begin with row 0"),
    ({"count": 30}, {}, "contradicts itself: its 'count' is 30, its recipe's 45"),
    ({"count": 30}, {"count": 30}, "'count' is 30, not 45"),
    ({"count": 10**12}, {"count": 10**12}, "'count': expected a whole number from 1 to 4294967296"),
    ({"count": 10**4299}, {}, "'count': expected a whole number"),
    ({"count": True}, {}, "'count': expected a whole number"),
    ({}, {"pause": 0}, "'pause' is (0, not 0.0|0.0, not 0);"),
    ({}, {"killer": -1.0}, "'killer' is (-1.0, not -1|-1, not -1.0);"),
    ({"recipe": []}, None, "'recipe': expected an object"),
    ({"format": "2"}, {}, "has format '2', this robokit reads 1 and 2"),
    ({"format": 0}, {}, "has format 0"),
]


@pytest.mark.parametrize("seal", [False, True], ids=["changed", "written anew"])
@pytest.mark.parametrize(("whole", "recipe", "words"), CHANGES)
def test_what_contradicts_the_chunks_is_refused_and_nothing_is_deleted(
    undisturbed, tmp_path, whole, recipe, words, seal
):
    folder = shutil.copytree(undisturbed, tmp_path / "changed")
    if recipe is None:
        (folder / "sweep.json").write_text(
            json.dumps(json.loads((folder / "sweep.json").read_text()) | whole)
        )
    else:
        changed(folder, whole, seal and whole.get("format", 2) == 2, **recipe)
    left = contents(folder)
    with not_for_ever(), pytest.raises(RobokitError, match=words):
        run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    if recipe and seal and whole.get("count") != 10**12:  # as the same recipe, so that the chunks decide
        found = FakeRecipe(**json.loads(read_sweep_file(folder).recipe))
        with pytest.raises(
            RobokitError, match=r"contradict each other: the chunk's recipe .* not .*; put the"
        ):
            run_sweep(found, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left


VALUES = [
    *(
        None,
        True,
        0,
        -5,
        7,
        0.0,
        1.5,
        1e300,
        10**12,
        10**400,
        float("nan"),
        float("inf"),
        "",
        "x",
        "\udcff\0",
    ),
    *([], [1], [None, "a"], {}, {"kind": []}, [[1, 2], [3]], {"shape": [-1], "float64": ""}),
]


def _places(value, place=()):
    yield place
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[key], (*place, key))


def _mutated(given, rng):
    *above, last = rng.choice([place for place in _places(given) if place])
    found = copy.deepcopy(given)
    inside = found
    for key in above:
        inside = inside[key]
    old = inside[last]
    if rng.random() < 0.1:
        del inside[last]
    elif type(old) in (int, float) and rng.random() < 0.5:
        inside[last] = rng.choice([float(old), -old, old + 1, 1000 * old, str(old)])
    else:
        inside[last] = rng.choice(VALUES)
    return found


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_no_value_of_sweep_json_is_a_bare_error(swings, tmp_path, count):
    """Half of them with a hash that fits, as of somebody who means it; the chunks stay in any case."""
    folder, rng = shutil.copytree(swings, tmp_path / "swings"), random.Random(count)
    chunks = contents(folder / "chunks")
    given = json.loads((folder / "sweep.json").read_text())
    for k in range(count):
        found = _mutated(given, rng)
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            if k % 2:
                text = json.dumps(found["recipe"], separators=(",", ":"))
                found["count"] = found["recipe"]["count"]
                found["sha256"] = SweepFile(text, found["chunk"], found["count"], found["format"]).hash
        (folder / "sweep.json").write_text(json.dumps(found))
        refused = 0
        with not_for_ever():
            for read in (lambda s: s.table(), lambda s: s.replay(3), lambda s: s.resume(workers=0)):
                try:
                    read(rk.open_sweep(folder))
                except RobokitError as error:
                    refused += 1
                    assert "\n" not in str(error)
        assert refused == 3 or found == given
        assert contents(folder / "chunks") == chunks


@posix
def test_pipes_do_not_hold_anybody_up(swings, tmp_path):
    folder = shutil.copytree(swings, tmp_path / "swings")
    (folder / "sweep.json").unlink()
    os.mkfifo(folder / "sweep.json")
    with not_for_ever():
        with pytest.raises(
            RobokitError,
            match=r"cannot read .*sweep.json: it is a pipe, a socket or a device, not a regular file",
        ):
            rk.open_sweep(folder)
        with pytest.raises(RobokitError, match="not a regular file"):
            run_sweep(RECIPE, folder, chunk=2, workers=0, resume=True)


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname == "Darwin", reason="names are text there")
def test_folders_whose_names_are_no_text(swings, tmp_path):
    folder = tmp_path / os.fsdecode(b"f\xff 'alls")
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    rk.sweep(robot, starts=starts, count=6, chunk=2, out=folder, **RUN)
    assert contents(folder) == contents(swings)
    found = rk.open_sweep(folder)
    page = found.report(folder / "page.html", replay=False).read_text()
    assert r"f\\xff \\x27alls" in page and "alls/chunks" in page
    found.replay(1).to_html(folder / "row.html")
    flip(sweep_folder.chunk_files(folder)[0].path, 99)
    with pytest.raises(RobokitError, match=r"--resume \$'.*f\\xff \\x27alls' computes"):
        found.table()
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 2


def test_half_a_file_is_no_file(tmp_path):
    write_whole(tmp_path / "whole", b"content")
    assert contents(tmp_path) == {"whole": b"content"}


def test_difference_of_two_recipes_is_looked_for_inside_lists():
    measure = {"name": "height", "reduce": "max", "source": "a" * 64, "text": "x" * 400}
    mine = json.dumps({"count": 2, "measures": ["energy", measure]})
    theirs = json.dumps({"count": 2, "measures": ["energy", {**measure, "source": "b" * 64}]})
    assert difference(theirs, mine).startswith("'measures/1/source' is 'bbb")
    longer = json.dumps(
        {"count": 2, "measures": ["energy", {**measure, "text": "x" * 200 + "y" + "x" * 199}]}
    )
    assert difference(longer, mine) == "'measures/1/text' has other content"
    assert difference(json.dumps({"count": 2, "measures": []}), mine).startswith(
        "'measures' is [], not ['energy'"
    )


def test_folders_that_hold_something_else(undisturbed, tmp_path):
    def refused(folder, text, recipe=RECIPE, **options):
        with pytest.raises(RobokitError, match=text):
            run_sweep(recipe, folder, chunk=10, workers=0, **options)

    before = contents(undisturbed)
    refused(undisturbed, "holds a sweep already; go on with it by resume=True")
    refused(undisturbed, "holds another sweep: its 'count' is 45, not 46", FakeRecipe(46), resume=True)
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


# ---- Damaged chunks: each is told by every reader, and its rows are computed again ---------------


def rows(folder):
    return content_hash(rk.open_sweep(folder).rows(), "")


def appended(path):
    path.write_bytes(path.read_bytes() + b"PAR1")


def rewritten(path):
    """The same rows by another program."""
    parquet.write_table(parquet.read_table(path), path)


def a_folder(path):
    path.unlink()
    path.mkdir()
    (path / "letter.txt").write_text("the user's own")


def a_link_to_nothing(path):
    path.unlink()
    path.symlink_to("nothing")


def a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def a_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES = [at(0.0), at(0.3), at(0.6), at(0.8), at(0.97), at(1.0), truncated, appended, empty, exchanged]


DAMAGES += [rewritten, a_folder, a_link_to_nothing, *([a_pipe, a_device] if hasattr(os, "mkfifo") else [])]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_every_damage_is_told_and_its_rows_are_computed_again(undisturbed, tmp_path, damage):
    folder = shutil.copytree(undisturbed, tmp_path / "a b")
    damage(sweep_folder.chunk_files(folder)[2].path)
    with not_for_ever():
        for columns in (None, ["row"]):
            with pytest.raises(
                RobokitError, match=r"20-\w+.parquet is damaged: it .*--resume '.*a b' computes"
            ):
                list(sweep_folder.read_chunks(folder, columns))
        found = run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert found.computed == 10 and len(found.redone) == 1
    left = contents(folder)
    aside = [name for name in left if name.endswith("letter.txt")]
    assert len(aside) == (damage is a_folder)  # what was in a folder is kept beside the chunks
    assert {name: x for name, x in left.items() if name not in aside} == contents(undisturbed)


def test_a_seal_does_not_make_a_chunk_of_any_table(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "sealed")
    path = sweep_folder.chunk_files(folder)[2].path
    recipe = read_sweep_file(folder).recipe
    (table,) = (t for t in sweep_folder.read_chunks(folder, only=[sweep_folder.chunk_files(folder)[2]]))
    height = table["height"]
    for columns in (
        {name: x for name, x in table.columns.items() if name != "row"},
        {name: x for name, x in table.columns.items() if name != "height"},
        table.columns | {"row": height},
        table.columns | {"failure": height},
    ):
        other = RowTable(columns)
        path.write_bytes(add_seal(parquet_bytes(other, recipe), path.name))
        with pytest.raises(RobokitError, match=f"{path.name} is damaged"):
            list(sweep_folder.read_chunks(folder))


def test_chunks_that_are_gone_altogether_are_computed_again(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "gone")
    shutil.rmtree(folder / "chunks")
    assert list(sweep_folder.read_chunks(folder)) == []
    assert run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).computed == 45
    assert contents(folder) == contents(undisturbed)


def test_chunks_that_have_changed_places(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "swapped")
    one, other = (file.path for file in sweep_folder.chunk_files(folder)[1:3])
    one.rename(folder / "aside"), other.rename(one), (folder / "aside").rename(other)
    with pytest.raises(RobokitError, match=f"{one.name} is damaged: it has other bytes .*, or another name"):
        list(sweep_folder.read_chunks(folder))
    assert len(run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).redone) == 2
    assert contents(folder) == contents(undisturbed)


def test_nothing_is_removed_where_other_arithmetic_is_refused(undisturbed, tmp_path, monkeypatch):
    """The damaged chunk, too, stays until it is certain that its rows can be computed again."""

    def refused(*_):
        raise RobokitError("other arithmetic")

    folder = shutil.copytree(undisturbed, tmp_path / "other")
    truncated(sweep_folder.chunk_files(folder)[2].path)
    left = contents(folder)
    monkeypatch.setattr("robokit.sweeps.workers.check_same_bits", refused)
    with pytest.raises(RobokitError, match="other arithmetic"):
        run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left


@pytest.mark.slow
def test_every_bit_of_a_chunk_matters(undisturbed, tmp_path):
    folder, rng = shutil.copytree(undisturbed, tmp_path / "flipped"), random.Random(34)
    for _ in range(60):
        path = rng.choice(sweep_folder.chunk_files(folder)).path
        flip(path, rng.randrange(8 * path.stat().st_size))
        with pytest.raises(RobokitError, match=f"{path.name} is damaged"):
            list(sweep_folder.read_chunks(folder, ["row"]))
        assert len(run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).redone) == 1
        assert contents(folder) == contents(undisturbed)


def test_every_reader_tells_it(swings, tmp_path):
    folder = shutil.copytree(swings, tmp_path / "swings")
    path = sweep_folder.chunk_files(folder)[1].path
    values = rk.open_sweep(folder).table()["joint:upper_joint"].to_numpy()
    place = path.read_bytes().index(values[2].tobytes()) if values[2].tobytes() in path.read_bytes() else 300
    flip(path, 8 * place)

    def told(read):
        with pytest.raises(RobokitError, match=f"{path.name} is damaged.*--resume"):
            read(rk.open_sweep(folder))

    for read in (
        *(len, repr, lambda s: s.table(), lambda s: s.table(["row"]), lambda s: s.failures),
        *(lambda s: s.worst("energy_balance"), lambda s: s.row(3), lambda s: s.replay(3)),
        lambda s: s.report(tmp_path / "page.html", replay=False),
    ):
        told(read)
    assert rk.open_sweep(folder).row(0)["row"] == 0  # another chunk
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 2
    assert contents(folder) == contents(swings)


def test_a_chunk_of_another_sweep_is_moved_and_not_deleted(swings, tmp_path):
    folder, other = shutil.copytree(swings, tmp_path / "one"), tmp_path / "other"
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    rk.sweep(robot, starts=starts, count=6, chunk=2, seed=1, out=other, **RUN)
    stray = sweep_folder.chunk_files(other)[0].path
    shutil.copy(stray, folder / "chunks")
    with pytest.raises(
        RobokitError, match=r"contradict each other: the chunk's recipe 'seed' is 1, not 0|once"
    ):
        rk.open_sweep(folder).table()
    found = rk.open_sweep(folder).resume(workers=0).summary
    assert found.computed == 0
    assert re.search("is of another sweep, whose 'seed' is 1, not 0; it was moved to", found.redone[0])
    left = contents(folder)
    (moved,) = left.keys() - contents(swings).keys()
    assert left.pop(moved) == stray.read_bytes() and left == contents(swings)
    shutil.copytree(other / "chunks", folder / "chunks", dirs_exist_ok=True)
    for file in sweep_folder.chunk_files(swings):
        (folder / "chunks" / file.path.name).unlink()
    left = contents(folder)  # all are of another one now
    with pytest.raises(RobokitError, match="contradict each other: the chunk's recipe 'seed' is 1, not 0"):
        rk.open_sweep(folder).resume(workers=0)
    assert contents(folder) == left


def packed_otherwise(content, recipe):
    """The rows of a chunk's file, as another version of pyarrow might pack them."""
    rows, sink = parquet.read_table(pa.BufferReader(content)), pa.BufferOutputStream()
    about = {b"robokit.recipe": recipe, b"robokit.fields": rows.schema.metadata[b"robokit.fields"]}
    rows = rows.replace_schema_metadata(None)
    with parquet.ParquetWriter(sink, rows.schema, compression="snappy", store_schema=False) as writer:
        writer.add_key_value_metadata(about)
        writer.write_table(rows)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("layout", [1, 2])
def test_a_folder_of_robokit_0_2_goes_on(swings, tmp_path, layout):
    """In the first layout, chunks have no seals: their values are compared with their names."""
    folder = shutil.copytree(swings, tmp_path / "old")
    given = read_sweep_file(folder)
    SweepFile(given.recipe, given.chunk, given.count, layout).write(folder)
    for file in sweep_folder.chunk_files(folder):
        content = packed_otherwise(file.path.read_bytes(), given.recipe)
        file.path.write_bytes(content if layout == 1 else add_seal(content, file.path.name))
    if layout == 1:
        text = json.loads((folder / "sweep.json").read_text())
        del text["sha256"]
        (folder / "sweep.json").write_text(json.dumps(text))
    left = contents(folder)
    assert rows(folder) == rows(swings)
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 0 and contents(folder) == left
    path = sweep_folder.chunk_files(folder)[0].path
    flip(path, 4 * path.stat().st_size)
    with pytest.raises(RobokitError, match="is damaged"):
        rk.open_sweep(folder).table(["row"])
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 2
    assert rows(folder) == rows(swings)
    changed(folder, seed=0.0)
    left = contents(folder)
    with pytest.raises(RobokitError, match="seed"):
        rk.open_sweep(folder).resume(workers=0)
    assert contents(folder) == left


class Other(FakeRecipe):
    """The same rows by other arithmetic."""

    def compute_rows(self, first, last):
        columns = super().compute_rows(first, last).columns
        return RowTable(columns | {"height": columns["height"] + 2.0**-52})


OTHER = Other(45)


def test_a_worker_without_the_folder_hands_its_chunk_back(undisturbed, tmp_path):
    (tmp_path / "chunks").mkdir()
    for probe, handed in (("absent", True), ("probe", False)):
        (tmp_path / "probe").touch()
        place = sweep_folder.Place(str(tmp_path), probe, 45, b"")
        text = canonical_json(RECIPE.to_json())
        done = sweep_folder.compute_chunk(text, FakeRecipe.from_json, 20, 30, place)
        assert (done.content is not None) == handed
        assert (done.first, done.rows, done.failures) == (20, 10, 1)
        assert done.name == sweep_folder.chunk_files(undisturbed)[2].path.name
    written = (tmp_path / "chunks" / done.name).read_bytes()
    assert written == (undisturbed / "chunks" / done.name).read_bytes()


def test_another_robokit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_folder, "source_digest", lambda: b"this")
    place = sweep_folder.Place(str(tmp_path), "", 45, b"another")
    with pytest.raises(RobokitError, match=r"worker .* has another robokit, in .*; install the same one"):
        sweep_folder.compute_chunk(RECIPE.to_json(), FakeRecipe.from_json, 0, 10, place)


def test_a_sweep_begun_by_other_arithmetic_does_not_go_on(tmp_path, monkeypatch):
    """Where the source has changed, a row that is there is computed again and must be the same."""

    class Dated(FakeRecipe):
        def to_json(self):
            return json.dumps(asdict(self) | {"versions": {"robokit": "0.1.9", "source": "abc"}})

        @classmethod
        def from_json(cls, text):
            return cls(**{name: x for name, x in json.loads(text).items() if name != "versions"})

    folder = tmp_path / "sweep"
    run_sweep(Dated(45), folder, chunk=10, workers=0)
    (folder / "chunks").joinpath(sweep_folder.chunk_files(folder)[3].path.name).unlink()
    left = contents(folder)
    monkeypatch.setattr(Dated, "compute_rows", lambda self, *rows: OTHER.compute_rows(*rows))
    with pytest.raises(
        RobokitError, match=r"begun with robokit 0\.1\.9 .* row 0 comes out otherwise, in 'height'"
    ):
        run_sweep(Dated(45), folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left
    monkeypatch.setattr(Dated, "compute_rows", FakeRecipe.compute_rows)
    assert run_sweep(Dated(45), folder, chunk=10, workers=0, resume=True).computed == 10
