"""The file of a trajectory: a .npz of plain arrays, one of them text. Nothing in it runs."""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from robokit.errors import ShapeError

FREE = 128 << 20
"""Bytes that any file may unpack to."""

RATIO = 100
"""Times its own size that a larger file may unpack to: motion packs to a half, rest to a hundredth."""

MOST_TEXT = 64 << 20
"""Bytes of the text."""

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
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would wait for ever
        raise _refusal(path, "no regular file")
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as packed:
            _check_sizes(packed.infolist(), os.fstat(file.fileno()).st_size)
            arrays = {info.filename.removesuffix(".npy"): _array(packed, info) for info in packed.infolist()}
        about = json.loads(str(arrays.pop("about")))
        if not isinstance(about, dict):
            raise ValueError("its text is no record")
        for name, array in arrays.items():
            if array.dtype != np.float64:
                raise ValueError(f"{name} holds {array.dtype}, no float64")
    except (
        LookupError, TypeError, ValueError, EOFError, RuntimeError, RecursionError, NotImplementedError,
        zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise _refusal(path, error) from error
    return about, arrays


def _refusal(path: str | os.PathLike[str], why: Any) -> ShapeError:
    return ShapeError(f"{os.fspath(path)}: not a trajectory saved by robokit ({why})")


def _check_sizes(members: list[zipfile.ZipInfo], packed: int) -> None:
    if len({info.filename for info in members}) != len(members):
        raise ValueError("two arrays have one name")
    total, allowed = sum(info.file_size for info in members), FREE + RATIO * packed
    if total > allowed:
        raise ValueError(
            f"{packed:,} bytes would unpack to {total:,}; a file of this size may hold at most {allowed:,}"
        )


def _array(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, once its shape is known to fit the bytes that are there."""
    with packed.open(info) as file:
        shape, dtype = _header(file)
        size = dtype.itemsize
        for n in shape:
            size *= n
        if dtype.hasobject or size > info.file_size or (dtype.kind == "U" and size > MOST_TEXT):
            raise ValueError(f"{info.filename} says {shape} of {dtype}, which is not what it holds")
    with packed.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in reader:
        raise ValueError(f"array of version {version}")
    shape, _, dtype = reader[version](file)
    return shape, dtype
