"""The folder of a sweep and its sweep.json: what contradicts itself is refused, and nothing is deleted."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import shutil

import pytest
from fake_recipe import FakeRecipe
from sweep_files import changed, contents, flip, within

import robokit as rk
from robokit.errors import RobokitError
from robokit.sweeps import folder as sweep_folder
from robokit.sweeps.folder import SweepFile, difference, hold_folder, read_sweep_file, write_whole
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
    with within(60), pytest.raises(RobokitError, match=words):
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
        with within(60):
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
    with within(60):
        with pytest.raises(
            RobokitError,
            match=r"cannot read .*sweep.json: it is a pipe, a socket or a device, no regular file",
        ):
            rk.open_sweep(folder)
        with pytest.raises(RobokitError, match="no regular file"):
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
