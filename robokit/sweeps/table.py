"""Rows of a sweep as columns of NumPy, as a Parquet file, and as a hash of their values.

The hash is that of the values. It does not depend on how a version of pyarrow packs them, so the same rows
have the same hash on every machine. The bytes of the file follow from the rows, the recipe and the version of
pyarrow: nothing of when or where they were written is in them.

The seal is a hash of the file's name and of all other bytes of the file. Each page has a checksum, too, which
other programs can verify; but those of Parquet cover neither the footer nor what is between the pages.

pyarrow is imported where it is used: rows in memory do not need it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.errors import MissingDependency

HASH, FAILURE = "final_hash", "failure"
"""Columns beside parameters and measures: of the last state, 0 of a row that failed; and why it failed."""

HASH_LETTERS = 20  # hexadecimal digits of a chunk's hash in its name: 80 bits
SEAL_BYTES = 32  # Bytes of a chunk's seal. It lies before the footer, where Parquet lets other data be.

_RECIPE, _UNITS = "robokit.recipe", "robokit.fields"
"""Keys in the metadata of a file: the recipe's text, and the columns' units (JSON), for which Parquet itself
has no place."""

_FOLDER = "a sweep in a folder (out=FOLDER, -o FOLDER) needs pyarrow, unlike one without a folder"


@frozen(eq=False)
class RowTable:
    """Rows of a sweep, by column.

    Attributes:
        columns: columns by name, (n,) each: int64, uint64 or float64 numbers, or texts and None as objects.
        units: units by name, for the columns that have one.
    """

    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def failures(self) -> int:
        """Number of rows that failed."""
        return sum(why is not None for why in self.columns[FAILURE])

    def __repr__(self) -> str:
        return f"<RowTable: {self.num_rows:,} rows, {len(self.columns)} columns>"

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> np.ndarray:
        """The values of a column, (n,)."""
        return self.columns[name]

    def select(self, names: Sequence[str]) -> RowTable:
        """Only these columns."""
        units = {name: self.units[name] for name in names if name in self.units}
        return RowTable({name: self.columns[name] for name in names}, units)

    def take(self, rows: Any) -> RowTable:
        """The rows at these places: a slice, or whole numbers."""
        return RowTable({name: x[rows] for name, x in self.columns.items()}, self.units)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Each row as {column: value}."""
        values = [x.tolist() for x in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]

    def to_pandas(self) -> Any:
        """The rows as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table`` whose fields have units.

        Raises:
            MissingDependency: pyarrow is not installed.
        """
        pa = arrow("a table of pyarrow needs pyarrow")
        fields, arrays = [], []
        for name, x in self.columns.items():
            kind = pa.string() if x.dtype == object else pa.from_numpy_dtype(x.dtype)
            fields.append(pa.field(name, kind, metadata={b"unit": self.units.get(name, "").encode()}))
            arrays.append(pa.array(x, type=kind))
        return pa.table(arrays, schema=pa.schema(fields))


def public_table(table: RowTable) -> Any:
    """What users get of rows: a ``pyarrow.Table``, or the rows as they are where pyarrow is not installed."""
    try:
        return table.to_arrow()
    except MissingDependency:
        return table


def concatenate(tables: Sequence[RowTable]) -> RowTable:
    """The rows of several tables with the same columns, one after the other."""
    first = tables[0]
    if len(tables) == 1:
        return first
    return RowTable({name: np.concatenate([t[name] for t in tables]) for name in first.columns}, first.units)


def arrow(why: str = _FOLDER) -> Any:
    """The module pyarrow; MissingDependency, which says what needs it, where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency(f"{why}: pip install 'robokit[sweep]'") from error
    return pyarrow


# ---- the hash of the values, and the seal -------------------------------------------------------


def content_hash(table: RowTable, recipe_hash: str) -> str:
    """Hash of a chunk's values and of the hash of the recipe that they come from.

    It is that of column names, types, which values are missing, and the bytes of the others.
    """
    parts = [recipe_hash.encode()]
    for name, values in table.columns.items():
        known = np.fromiter((x is not None for x in values.tolist()), bool, len(values))
        kind = {"object": "text", "float64": "double"}.get(values.dtype.name, values.dtype.name)
        parts += [name.encode(), kind.encode(), np.packbits(~known).tobytes()]
        if values.dtype == object:
            texts = [text.encode() for text in values[known].tolist()]
            parts += [np.asarray([len(text) for text in texts], "<i8").tobytes(), b"".join(texts)]
        else:
            parts.append(values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
    return _sha256(*parts).hex()[:HASH_LETTERS]


def add_seal(content: bytes, name: str) -> bytes:
    """The bytes of a Parquet file with a seal among them, for the name that the file will have."""
    at = _footer(content)
    return content[:at] + _sha256(name.encode(), content[:at], content[at:]) + content[at:]


def is_sealed(content: bytes, name: str) -> bool:
    """Whether these are the bytes, to the last bit, that were sealed under this name."""
    at = _footer(content)
    begin = at - SEAL_BYTES
    return begin >= 0 and content[begin:at] == _sha256(name.encode(), content[:begin], content[at:])


def _footer(content: bytes) -> int:
    """Where the footer begins: the last 8 bytes are its length and a mark."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _sha256(*parts: bytes) -> bytes:
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.digest()


# ---- the file ----------------------------------------------------------------------------------


def parquet_bytes(table: RowTable, recipe: str) -> bytes:
    """A chunk's file, with the recipe's text (JSON) in its metadata; MissingDependency without pyarrow."""
    pa = arrow()
    rows, sink = table.to_arrow(), pa.BufferOutputStream()
    units = json.dumps({name: {"unit": table.units.get(name, "")} for name in table.columns})
    how = {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": False,
        "write_page_checksum": True,
    }
    how["store_schema"] = False  # it would hold the recipe once more
    with pa.parquet.ParquetWriter(sink, rows.schema, **how) as writer:
        writer.add_key_value_metadata({_RECIPE: recipe, _UNITS: units})
        writer.write_table(rows, row_group_size=max(1, table.num_rows))
    return bytes(sink.getvalue())


def read_parquet(content: bytes, columns: Sequence[str] | None = None) -> tuple[str, int, RowTable]:
    """The recipe's text in a chunk's file, the number of its rows, and these.

    Of the columns those that are named and there, or all. Raises ValueError without the columns of a sweep,
    MissingDependency without pyarrow, and what pyarrow raises for bytes that are no such file.
    """
    pa = arrow()
    file = pa.parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    if [file.schema_arrow.field(name).type for name in ("row", FAILURE)] != [pa.int64(), pa.string()]:
        raise ValueError("it has other columns than a sweep")
    # No thread of Arrow's: one that still held the bytes at the end of Python would abort the process.
    metadata, found = file.metadata.metadata, file.read(columns=columns, use_threads=False)
    about, names = json.loads(metadata.get(_UNITS.encode(), b"{}")), found.column_names
    units = {name: about[name]["unit"] for name in names if about.get(name, {}).get("unit")}
    values = [np.array(column.to_numpy()) for column in found.columns]
    table = RowTable(dict(zip(names, values, strict=True)), units)
    return metadata[_RECIPE.encode()].decode(), file.metadata.num_rows, table
