"""The file of a trajectory: a .npz of plain arrays, one of them text. Nothing in it runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robokit.errors import ShapeError
from robokit.files import read_arrays

Arrays = dict[str, np.ndarray]


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file.

    Args:
        path: where to.
        about: all that is no array, for JSON.
        arrays: by name.
    """
    everything: dict[str, Any] = {"about": np.array(json.dumps(about, default=_plain)), **arrays}
    with open(path, "wb") as file:
        np.savez_compressed(file, **everything)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else float(value)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """What :func:`write` wrote; sizes are checked before anything is unpacked.

    Raises:
        ShapeError: not such a file, or one that unpacks to far more than it holds.
        OSError: it cannot be opened.
    """
    try:
        arrays = read_arrays(path)
        about = json.loads(str(arrays.pop("about")))
        if not isinstance(about, dict):
            raise ValueError("its text is no record")
        for name, array in arrays.items():
            if array.dtype != np.float64:
                raise ValueError(f"{name} holds {array.dtype}, no float64")
    except (LookupError, ValueError, RecursionError) as error:
        why = f"{os.fspath(path)}: not a trajectory saved by robokit ({error})"
        raise ShapeError(why) from error
    return about, arrays
