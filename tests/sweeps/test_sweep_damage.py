"""Damaged chunks and changed sweep.json files: each is told by every reader, and no sound chunk is lost."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import shutil
import signal

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from fake_recipe import FakeRecipe

import robokit as rk
from robokit.errors import RobokitError
from robokit.sweeps import chunks
from robokit.sweeps.folder import SweepFile, difference, read_sweep_file, write_whole
from robokit.sweeps.run_sweep import run_sweep
from robokit.sweeps.table import SEAL_BYTES, RowTable, add_seal, content_hash, is_sealed, parquet_bytes

RECIPE = FakeRecipe(45)
RUN = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}
posix = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "undisturbed"
    run_sweep(RECIPE, folder, chunk=10, workers=0)
    return folder


@pytest.fixture(scope="module")
def swings(tmp_path_factory):
    """A sweep of a robot: six rows in chunks of two."""
    folder = tmp_path_factory.mktemp("sweep") / "swings"
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    rk.sweep(robot, starts=starts, count=6, chunk=2, out=folder, **RUN)
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def rows(folder):
    return content_hash(rk.open_sweep(folder).rows(), "")


@contextlib.contextmanager
def thin_rows(seconds):
    """What takes longer ends in an error, where the system has alarms."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def late(*_):
        raise AssertionError(f"not within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def at(share):
    def damage(path):
        flip(path, round(share * (8 * path.stat().st_size - 1)))

    damage.__name__ = f"bit at {share}"
    return damage


def truncated(path):
    path.write_bytes(path.read_bytes()[:-1])


def appended(path):
    path.write_bytes(path.read_bytes() + b"PAR1")


def empty(path):
    path.write_bytes(b"")


def exchanged(path):
    other = sorted(path.parent.iterdir())[0]
    shutil.copy(other, path)


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
    damage(chunks.chunk_files(folder)[2].path)
    with thin_rows(60):
        for columns in (None, ["row"]):
            with pytest.raises(
                RobokitError, match=r"20-\w+.parquet is damaged: it .*--resume '.*a b' computes"
            ):
                list(chunks.read_chunks(folder, columns))
        found = run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert found.computed == 10 and len(found.redone) == 1
    left = contents(folder)
    aside = [name for name in left if name.endswith("letter.txt")]
    assert len(aside) == (damage is a_folder)  # what was in a folder is kept beside the chunks
    assert {name: x for name, x in left.items() if name not in aside} == contents(undisturbed)


def test_a_seal_does_not_make_a_chunk_of_any_table(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "sealed")
    path = chunks.chunk_files(folder)[2].path
    recipe = read_sweep_file(folder).recipe
    (table,) = (t for t in chunks.read_chunks(folder, only=[chunks.chunk_files(folder)[2]]))
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
            list(chunks.read_chunks(folder))


def test_chunks_that_are_gone_altogether_are_computed_again(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "gone")
    shutil.rmtree(folder / "chunks")
    assert list(chunks.read_chunks(folder)) == []
    assert run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).computed == 45
    assert contents(folder) == contents(undisturbed)


def test_chunks_that_have_changed_places(undisturbed, tmp_path):
    folder = shutil.copytree(undisturbed, tmp_path / "swapped")
    one, other = (file.path for file in chunks.chunk_files(folder)[1:3])
    one.rename(folder / "aside"), other.rename(one), (folder / "aside").rename(other)
    with pytest.raises(RobokitError, match=f"{one.name} is damaged: it has other bytes .*, or another name"):
        list(chunks.read_chunks(folder))
    assert len(run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).redone) == 2
    assert contents(folder) == contents(undisturbed)


def test_nothing_is_removed_where_other_arithmetic_is_refused(undisturbed, tmp_path, monkeypatch):
    """The damaged chunk, too, stays until it is certain that its rows can be computed again."""

    def refused(*_):
        raise RobokitError("other arithmetic")

    folder = shutil.copytree(undisturbed, tmp_path / "other")
    truncated(chunks.chunk_files(folder)[2].path)
    left = contents(folder)
    monkeypatch.setattr("robokit.sweeps.run_sweep.check_same_bits", refused)
    with pytest.raises(RobokitError, match="other arithmetic"):
        run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left


@pytest.mark.slow
def test_every_bit_of_a_chunk_matters(undisturbed, tmp_path):
    folder, rng = shutil.copytree(undisturbed, tmp_path / "flipped"), random.Random(34)
    for _ in range(60):
        path = rng.choice(chunks.chunk_files(folder)).path
        flip(path, rng.randrange(8 * path.stat().st_size))
        with pytest.raises(RobokitError, match=f"{path.name} is damaged"):
            list(chunks.read_chunks(folder, ["row"]))
        assert len(run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True).redone) == 1
        assert contents(folder) == contents(undisturbed)


def test_every_reader_tells_it(swings, tmp_path):
    folder = shutil.copytree(swings, tmp_path / "swings")
    path = chunks.chunk_files(folder)[1].path
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


def test_checksums_of_pages_are_there_for_other_programs(undisturbed, tmp_path):
    path = chunks.chunk_files(shutil.copytree(undisturbed, tmp_path / "copy"))[1].path
    column = parquet.read_metadata(path).row_group(0).column(1)
    flip(path, 8 * (column.data_page_offset + column.total_compressed_size) - 20)
    with pytest.raises((OSError, pa.ArrowException), match=r"(?i)crc|checksum"):
        parquet.read_table(path, page_checksum_verification=True)


def test_a_seal_is_that_of_the_name_and_of_every_byte(undisturbed):
    path = chunks.chunk_files(undisturbed)[0].path
    content = path.read_bytes()
    assert is_sealed(content, path.name) and not is_sealed(content, f"1{path.name}")
    for short in (b"", b"PAR1", content[:-SEAL_BYTES], 3 * b"PAR1", content[:-8] + b"\xff\xff\xff\x7fPAR1"):
        assert not is_sealed(short, path.name)


def changed(folder, whole=None, seal=False, **recipe):
    """sweep.json with other values; ``seal``: as if they had been there from the beginning."""
    found = json.loads((folder / "sweep.json").read_text())
    found.update(whole or {})
    found["recipe"].update(recipe)
    if seal:
        text = json.dumps(found["recipe"], separators=(",", ":"))
        SweepFile(text, found["chunk"], found["count"], found["format"]).write(folder)
    else:
        (folder / "sweep.json").write_text(json.dumps(found))


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
    with thin_rows(60), pytest.raises(RobokitError, match=words):
        run_sweep(RECIPE, folder, chunk=10, workers=0, resume=True)
    if recipe and seal and whole.get("count") != 10**12:  # as the same recipe, so that the chunks decide
        found = FakeRecipe(**json.loads(read_sweep_file(folder).recipe))
        with pytest.raises(
            RobokitError, match=r"contradict each other: the chunk's recipe .* not .*; put the"
        ):
            run_sweep(found, folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == left


def test_a_chunk_of_another_sweep_is_moved_and_not_deleted(swings, tmp_path):
    folder, other = shutil.copytree(swings, tmp_path / "one"), tmp_path / "other"
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    rk.sweep(robot, starts=starts, count=6, chunk=2, seed=1, out=other, **RUN)
    stray = chunks.chunk_files(other)[0].path
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
    for file in chunks.chunk_files(swings):
        (folder / "chunks" / file.path.name).unlink()
    left = contents(folder)  # all are of another one now
    with pytest.raises(RobokitError, match="contradict each other: the chunk's recipe 'seed' is 1, not 0"):
        rk.open_sweep(folder).resume(workers=0)
    assert contents(folder) == left


def test_a_folder_of_robokit_0_2_goes_on(swings, tmp_path):
    """Its chunks have no seal, its sweep.json no hash; their values are compared with the file's name."""
    folder = shutil.copytree(swings, tmp_path / "old")
    given = read_sweep_file(folder)
    SweepFile(given.recipe, given.chunk, given.count, 1).write(folder)
    text = json.loads((folder / "sweep.json").read_text())
    del text["sha256"]
    (folder / "sweep.json").write_text(json.dumps(text))
    for file in chunks.chunk_files(folder):
        content = file.path.read_bytes()
        end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        file.path.write_bytes(content[: end - SEAL_BYTES] + content[end:])
        assert add_seal(file.path.read_bytes(), file.path.name) == content
    left = contents(folder)
    assert rows(folder) == rows(swings)
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 0 and contents(folder) == left
    path = chunks.chunk_files(folder)[0].path
    hashes = rk.open_sweep(folder).table()["final_hash"].to_numpy()
    flip(path, 8 * path.read_bytes().index(hashes[:2].tobytes()))
    with pytest.raises(RobokitError, match="is damaged"):
        rk.open_sweep(folder).table(["row"])
    assert rk.open_sweep(folder).resume(workers=0).summary.computed == 2
    assert rows(folder) == rows(swings)
    changed(folder, seed=0.0)
    left = contents(folder)
    with pytest.raises(RobokitError, match="seed"):
        rk.open_sweep(folder).resume(workers=0)
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
        with thin_rows(60):
            for read in (lambda s: s.table(), lambda s: s.replay(3), lambda s: s.resume(workers=0)):
                try:
                    read(rk.open_sweep(folder))
                except RobokitError as error:
                    refused += 1
                    assert "\n" not in str(error)
        assert refused == 3 or found == given
        assert contents(folder / "chunks") == chunks


def test_a_recipe_that_makes_no_sense_is_refused_by_name(swings):
    given = read_sweep_file(swings)
    for field, value, words in (
        ("duration", "long", "duration: expected a finite number > 0"),
        ("duration", 1e300, "steps of"),
        ("seed", 0.0, "seed: expected a whole number"),
        ("trajectories", [6], "trajectories: expected a whole number from 0 to 5"),
        ("dt", {}, "double_pendulum"),
        ("standing", {"double_pendulum": 1}, "standing.*expected true or false"),
        ("options", {"run": "code"}, "options: expected integrator and joint_damping"),
        ("measures", ["energie"], "no measure named 'energie'"),
        ("robots", {}, "robots: expected at least one"),
        ("robots", {"it": 7}, r"robots\['it'\]: expected an object, got 7"),
        ("robots", {"it": {}}, r"robots\['it'\]: 'name' is missing"),
        ("ground", 0.0, "ground: expected an object, got 0.0"),
        ("trajectories", "x", "trajectories: expected a list"),
        ("parameters", {"weight": {"kind": "constant", "value": 1.0}}, "no parameter of a sweep named"),
        ("parameters", {"mass": {"kind": "constant", "value": "x"}}, "mass: expected numbers"),
    ):
        with pytest.raises(rk.ModelError, match=words):
            rk.Recipe.from_json(json.dumps(json.loads(given.recipe) | {field: value}))


def test_a_sweep_of_very_many_chunks_begins_at_once(tmp_path):
    """They are not listed beforehand: 2^32 of them would take all memory."""
    with thin_rows(30), pytest.raises(RobokitError, match=r"rows 0 to 0 could not .*: row 0 cannot be"):
        run_sweep(EveryRow(2**32), tmp_path / "sweep", chunk=1, workers=0)


class EveryRow(FakeRecipe):
    """Rows of which none can be computed."""

    def compute_rows(self, first, last):
        raise RobokitError(f"row {first} cannot be")


@posix
def test_pipes_do_not_hold_anybody_up(swings, tmp_path):
    folder = shutil.copytree(swings, tmp_path / "swings")
    (folder / "sweep.json").unlink()
    os.mkfifo(folder / "sweep.json")
    with thin_rows(60):
        with pytest.raises(
            RobokitError,
            match=r"cannot read .*sweep.json: it is a pipe, a socket or a device, no regular file",
        ):
            rk.open_sweep(folder)
        with pytest.raises(RobokitError, match="no regular file"):
            run_sweep(RECIPE, folder, chunk=2, workers=0, resume=True)


def test_a_report_of_a_small_sweep_without_replay(swings, tmp_path):
    assert rk.open_sweep(swings).report(tmp_path / "page", replay=False).suffix == ".html"


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
    flip(chunks.chunk_files(folder)[0].path, 99)
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
