"""Whether this robokit computes the rows of a sweep that was begun elsewhere as they are there, to the bit.

Another version may have other arithmetic, and rows of both in one folder would belong to no sweep. So where
the source, the libraries or the machine have changed since the sweep was begun, a row that is there is
computed once more before others are added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.sweeps.recipes.recipe_fields import versions
from robokit.sweeps.running.chunk_content import content_hash
from robokit.sweeps.running.chunk_files import ChunkFile, read_chunks


def check_same_bits(recipe: Any, folder: Path, text: str, file: ChunkFile) -> None:
    """Refuse to go on with a sweep whose rows come out otherwise here.

    Args:
        recipe: of the sweep.
        folder: of the sweep.
        text: the recipe as the folder has it.
        file: a chunk that is there.

    Raises:
        RobokitError: one of its rows has other bits here.
    """
    begun = json.loads(text).get("versions")
    if begun is None or (begun == versions() and begun.get("source")):
        return
    kept = next(read_chunks(folder, only=[file]))
    sound = np.flatnonzero(kept["failure"].is_null()) if "failure" in kept.column_names else [0]
    place = int(sound[0]) if len(sound) else 0
    row = file.first + place
    again = recipe.compute(row, row + 1)
    if content_hash(again, recipe.hash) == content_hash(kept.slice(place, 1), recipe.hash):
        return
    columns = [name for name in kept.column_names if name in again.column_names]
    differ = [name for name in columns if not _same(kept[name][place], again[name][0])]
    what = f", in {differ[0]!r}" if differ else ""
    raise RobokitError(
        f"{folder} was begun with {_words(begun)}; here, with {_words(versions())}, row {row} comes out "
        f"otherwise{what}: the rows would not belong together; go on with that robokit, or begin a new sweep "
        "in another folder"
    )


def _same(a: Any, b: Any) -> bool:
    x, y = a.as_py(), b.as_py()
    return bool(x == y or (x != x and y != y))


def _words(made: dict[str, str]) -> str:
    source = f" (source {made['source']})" if made.get("source") else ""
    return f"robokit {made.get('robokit')}{source} on {made.get('processor', 'another machine')}"
