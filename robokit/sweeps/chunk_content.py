"""A chunk's rows as a Parquet file, and the hash that its content decides.

The hash is that of the values: column names, types, which values are missing, and the bytes of the others.
It does not depend on how a version of Parquet's library packs them, so the same rows have the same name on
every machine. The bytes of the file are the same wherever the version of pyarrow is: nothing of when or where
it was written is in it.

The seal is a hash of the file's name and of all other bytes of the file. Each page has a checksum, too, which
other programs can verify; but those of Parquet cover neither the footer nor what is between the pages.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit.errors import MissingDependency

if TYPE_CHECKING:
    import pyarrow


HASH_LETTERS = 20
"""Hexadecimal digits of a chunk's hash in its name: 80 bits."""

SEAL = 32
"""Bytes of a chunk's seal. It lies before the footer, where Parquet lets other data be."""

RECIPE_KEY = b"robokit.recipe"
"""Key of the recipe's text in the metadata of a chunk's schema."""

FIELDS_KEY = b"robokit.fields"
"""Key of what the columns' own metadata says (units), as JSON: Parquet itself keeps none of a column."""

_OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "data_page_version": "1.0",
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": False,
    "write_statistics": True,
    "write_page_checksum": True,
    "store_schema": False,  # it would hold the recipe once more
}


def arrow() -> Any:
    """The module pyarrow, with its ``compute`` and ``parquet``.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency("a sweep is kept as Parquet: pip install 'robokit[sweep]'") from error
    return pyarrow


def parquet_bytes(table: pyarrow.Table, recipe: str) -> bytes:
    """A chunk's file.

    Args:
        table: the rows.
        recipe: the recipe's text (JSON), for the metadata of the schema.
    """
    pa = arrow()
    about = {
        field.name: {key.decode(): value.decode() for key, value in field.metadata.items()}
        for field in table.schema
        if field.metadata
    }
    table = table.replace_schema_metadata(None)
    sink = pa.BufferOutputStream()
    with pa.parquet.ParquetWriter(sink, table.schema, **_OPTIONS) as writer:
        writer.add_key_value_metadata({RECIPE_KEY.decode(): recipe, FIELDS_KEY.decode(): json.dumps(about)})
        writer.write_table(table.combine_chunks(), row_group_size=max(1, table.num_rows))
    return bytes(sink.getvalue())


def sealed(content: bytes, name: str) -> bytes:
    """The bytes of a Parquet file with a seal among them.

    Args:
        content: the file's bytes.
        name: that the file will have.
    """
    at = _footer(content)
    return content[:at] + _seal(name, content[:at], content[at:]) + content[at:]


def is_sealed(content: bytes, name: str) -> bool:
    """Whether these are the bytes, to the last bit, that were sealed under this name."""
    at = _footer(content)
    return at >= SEAL and content[at - SEAL : at] == _seal(name, content[: at - SEAL], content[at:])


def recipe_of(content: bytes) -> str:
    """The text of the recipe in the bytes of a chunk's file."""
    pa = arrow()
    found = pa.parquet.read_metadata(pa.BufferReader(content)).metadata
    return str(found[RECIPE_KEY].decode())


def _footer(content: bytes) -> int:
    """Where the footer begins: the last 8 bytes are its length and a mark."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _seal(name: str, *parts: bytes) -> bytes:
    total = hashlib.sha256()
    for part in (name.encode(), *parts):
        _add(total, part)
    return total.digest()


def as_computed(table: pyarrow.Table) -> pyarrow.Table:
    """The table of a chunk's file with what its columns' metadata said, and without that of the schema."""
    pa = arrow()
    about = json.loads((table.schema.metadata or {}).get(FIELDS_KEY, b"{}"))
    fields = [field.with_metadata(about.get(field.name)) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def content_hash(table: pyarrow.Table, recipe_hash: str) -> str:
    """Hash of a chunk's values and of the recipe that they come from.

    Args:
        table: the rows.
        recipe_hash: that of the recipe.

    Raises:
        TypeError: a column of a type that is not known here.
    """
    total = hashlib.sha256()
    _add(total, recipe_hash.encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        _add(total, name.encode())
        _add_values(total, column.combine_chunks())
    return total.hexdigest()[:HASH_LETTERS]


def _add(total: Any, content: bytes) -> None:
    total.update(len(content).to_bytes(8, "little"))
    total.update(content)


def _add_values(total: Any, array: Any) -> None:
    """The type, which values are missing, and the others."""
    types = arrow().types
    missing = np.asarray(array.is_null())
    array = array.drop_null()
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    texts = types.is_string(kind) or types.is_large_string(kind)
    _add(total, b"text" if texts else str(kind).encode())
    _add(total, np.packbits(missing).tobytes())
    if texts:
        encoded = [text.encode() for text in array.to_pylist()]
        _add(total, np.asarray([len(text) for text in encoded], "<i8").tobytes())
        _add(total, b"".join(encoded))
    elif types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        values = np.ascontiguousarray(array.to_numpy(zero_copy_only=False))
        _add(total, values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes())
    elif not types.is_null(kind):
        raise TypeError(f"a chunk cannot hold a column of type {kind}")
