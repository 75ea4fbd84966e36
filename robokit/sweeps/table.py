"""Rows of a sweep as columns of NumPy, as a Parquet file, and as a hash of their values.

The file is plain Parquet, written and read here without pyarrow, so that a sweep needs neither it nor Dask:

    PAR1 | column: dictionary page?, data page | column ... | seal | footer | length of the footer | PAR1

Each column is optional, has one page of data and is not compressed; where it has few different values, its
page holds places in a dictionary of them. The bytes follow from the rows and the recipe alone: nothing of
when, where or with which libraries they were written is in them.

The seal is a hash of the file's name and of all other bytes of the file. Each page has a checksum, too, which
other programs can verify; but those of Parquet cover neither the footer nor what is between the pages.

Source: the Parquet format (parquet.thrift) and Thrift's compact protocol.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robokit.errors import MissingDependency

HASH, FAILURE = "final_hash", "failure"
"""Columns beside parameters and measures: of the last state, 0 of a row that failed; and why it failed."""

HASH_LETTERS = 20
"""Hexadecimal digits of a chunk's hash in its name: 80 bits."""

SEAL_BYTES = 32
"""Bytes of a chunk's seal. It lies before the footer, where Parquet lets other data be."""

RECIPE_KEY = b"robokit.recipe"
"""Key of the recipe's text in the metadata of a file."""

FIELDS_KEY = b"robokit.fields"
"""Key of the units of the columns, as JSON: Parquet itself has no place for them."""

WRITER = b"robokit"
"""What wrote the file, as its footer says; files of robokit 0.2 were written by pyarrow."""


@dataclass(frozen=True, eq=False)
class RowTable:
    """Rows of a sweep, by column.

    Attributes:
        columns: by name, (n,) each: int64, uint64 or float64 numbers, or texts and None as objects.
        units: of the columns that have one, by name.
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
        """These columns alone."""
        units = {name: self.units[name] for name in names if name in self.units}
        return RowTable({name: self.columns[name] for name in names}, units)

    def take(self, rows: Any) -> RowTable:
        """The rows at these places: a slice, or whole numbers."""
        return RowTable({name: x[rows] for name, x in self.columns.items()}, self.units)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Each row as {column: value}."""
        values = [x.tolist() for x in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True)]

    def to_pydict(self) -> dict[str, list[Any]]:
        """Each column as a list."""
        return {name: x.tolist() for name, x in self.columns.items()}

    def to_pandas(self) -> Any:
        """The rows as a DataFrame of pandas."""
        import pandas

        return pandas.DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``, its fields with their units.

        Raises:
            MissingDependency: pyarrow is not installed.
        """
        pa = arrow()
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


def arrow(why: str = "a table of pyarrow needs it") -> Any:
    """The module pyarrow.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependency(f"{why}: pip install 'robokit[sweep]'") from error
    return pyarrow


# ---- the hash of the values --------------------------------------------------------------------


def content_hash(table: RowTable, recipe_hash: str) -> str:
    """Hash of a chunk's values and of the recipe that they come from.

    It is that of column names, types, which values are missing, and the bytes of the others.

    Args:
        table: the rows.
        recipe_hash: that of the recipe.
    """
    total = hashlib.sha256()
    _add(total, recipe_hash.encode())
    for name, values in table.columns.items():
        known = _present(values)
        _add(total, name.encode())
        _add(total, KINDS[values.dtype.char].hashed)
        _add(total, np.packbits(~known).tobytes())
        if values.dtype == object:
            texts = [text.encode() for text in values[known].tolist()]
            _add(total, np.asarray([len(text) for text in texts], "<i8").tobytes())
            _add(total, b"".join(texts))
        else:
            _add(total, _little_endian(values))
    return total.hexdigest()[:HASH_LETTERS]


def _add(total: Any, content: bytes) -> None:
    total.update(len(content).to_bytes(8, "little"))
    total.update(content)


def _present(values: np.ndarray) -> np.ndarray:
    """Which values there are, (n,): all numbers, NaN too, and the texts that are not None."""
    if values.dtype != object:
        return np.ones(len(values), bool)
    return np.fromiter((x is not None for x in values), bool, len(values))


def _little_endian(values: np.ndarray) -> bytes:
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


# ---- the seal ----------------------------------------------------------------------------------


def add_seal(content: bytes, name: str) -> bytes:
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
    return at >= SEAL_BYTES and content[at - SEAL_BYTES : at] == _seal(
        name, content[: at - SEAL_BYTES], content[at:]
    )


def _footer(content: bytes) -> int:
    """Where the footer begins: the last 8 bytes are its length and a mark."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _seal(name: str, *parts: bytes) -> bytes:
    total = hashlib.sha256()
    for part in (name.encode(), *parts):
        _add(total, part)
    return total.digest()


# ---- Thrift's compact protocol -----------------------------------------------------------------

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
"""Numbers of types."""


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _encode(kind: int, value: Any) -> bytes:
    if kind in (I32, I64):
        return _varint(2 * value if value >= 0 else -2 * value - 1)
    return _varint(len(value)) + value if kind == BINARY else bytes(value)


def _struct(*fields: tuple[int, int, Any]) -> bytes:
    """A struct of (number, type, value) fields, numbers ascending and less than 16 apart."""
    out, before = bytearray(), 0
    for number, kind, value in fields:
        out.append((number - before) << 4 | kind)
        out += _encode(kind, value)
        before = number
    return bytes(out) + b"\0"


def _list(kind: int, values: Iterable[Any]) -> bytes:
    items = [_encode(kind, value) for value in values]
    head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + _varint(len(items))
    return head + b"".join(items)


class _Reader:
    """Reads structs as {number: value} from bytes.

    Attributes:
        at: where the next byte is read.
    """

    def __init__(self, content: bytes, at: int) -> None:
        self.content, self.at = content, at

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def varint(self) -> int:
        total = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            total |= (byte & 0x7F) << shift
            if byte < 0x80:
                return total
        raise ValueError("a number of more than 64 bits")

    def value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            n = self.varint()
            return n >> 1 if n % 2 == 0 else -(n >> 1) - 1
        if kind == BINARY:
            n = self.varint()
            self.at += n
            return self.content[self.at - n : self.at]
        if kind == LIST:
            head = self.byte()
            n, inner = head >> 4 if head < 0xF0 else self.varint(), head & 0xF
            if n > len(self.content):
                raise ValueError(f"a list of {n}")
            return [self.byte() if inner in (TRUE, FALSE) else self.value(inner) for _ in range(n)]
        if kind == STRUCT:
            return self.struct()
        if kind in (TRUE, FALSE):  # a Boolean is its type; outside of lists
            return kind == TRUE
        if kind in (BYTE, DOUBLE):
            self.at += 1 if kind == BYTE else 8
            return None  # nobody asks for it
        raise ValueError(f"a field of type {kind}")

    def struct(self) -> dict[int, Any]:
        found, number = {}, 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.value(I32)
            found[number] = self.value(head & 0xF)
        return found


# ---- Parquet -----------------------------------------------------------------------------------

PLAIN, RLE, DICTIONARY = 0, 3, 8
"""Encodings of values."""


@dataclass(frozen=True)
class Kind:
    """A kind of column in Parquet.

    Attributes:
        physical: number of its physical type.
        converted: number of its converted type, or None.
        hashed: its name in the hash of the content.
        dtype: of its values.
    """

    physical: int
    converted: int | None
    hashed: bytes
    dtype: str


KINDS = {
    "l": Kind(2, None, b"int64", "<i8"),
    "L": Kind(2, 14, b"uint64", "<u8"),
    "d": Kind(5, None, b"double", "<f8"),
    "O": Kind(6, 0, b"text", "O"),
}
"""By NumPy's letter of the values' type."""
KINDS |= {"q": KINDS["l"], "Q": KINDS["L"]}


def parquet_bytes(table: RowTable, recipe: str) -> bytes:
    """A chunk's file; its structs and their numbers are those of parquet.thrift.

    Args:
        table: the rows.
        recipe: the recipe's text (JSON), for the file's metadata.
    """
    out, chunks, elements = bytearray(b"PAR1"), [], []
    for name, values in table.columns.items():
        kind = KINDS[values.dtype.char]
        pages, encodings = _pages(values)
        at = len(out)
        out += b"".join(pages)
        size = len(out) - at
        about = [
            (1, I32, kind.physical),
            (2, LIST, _list(I32, encodings)),
            (3, LIST, _list(BINARY, [name.encode()])),
            (4, I32, 0),  # not compressed
            (5, I64, len(values)),
            (6, I64, size),
            (7, I64, size),
            (9, I64, at + sum(map(len, pages[:-1]))),  # the page of the data
        ]
        if len(pages) == 2:
            about.append((11, I64, at))  # the page of the dictionary
        chunks.append(_struct((2, I64, at), (3, STRUCT, _struct(*about))))
        converted = [] if kind.converted is None else [(6, I32, kind.converted)]
        elements.append(_struct((1, I32, kind.physical), (3, I32, 1), (4, BINARY, name.encode()), *converted))
    rows = table.num_rows
    root = _struct((4, BINARY, b"schema"), (5, I32, len(elements)))
    group = _struct((1, LIST, _list(STRUCT, chunks)), (2, I64, len(out) - 4), (3, I64, rows))
    units = json.dumps({name: {"unit": unit} for name, unit in table.units.items()})
    pairs = [(RECIPE_KEY, recipe.encode()), (FIELDS_KEY, units.encode())]
    footer = _struct(
        (1, I32, 2),
        (2, LIST, _list(STRUCT, [root, *elements])),
        (3, I64, rows),
        (4, LIST, _list(STRUCT, [group])),
        (5, LIST, _list(STRUCT, [_struct((1, BINARY, key), (2, BINARY, value)) for key, value in pairs])),
        (6, BINARY, WRITER),
    )
    return bytes(out) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _pages(values: np.ndarray) -> tuple[list[bytes], tuple[int, ...]]:
    """The pages of a column, that of its data last, and the encodings in them."""
    known = _present(values)
    levels = _runs(known.astype(np.int64), 1)
    head = len(levels).to_bytes(4, "little") + levels
    if values.dtype == object:
        texts = [text.encode() for text in values[known].tolist()]
        different = sorted(set(texts))
        place = {text: k for k, text in enumerate(different)}
        places = np.array([place[text] for text in texts], np.int64)
        plain, dictionary = _texts(texts), _texts(different)
    else:  # compared by their bits: -0.0 is not 0.0, and NaN is NaN
        bits, places = np.unique(np.ascontiguousarray(values).view(np.int64), return_inverse=True)
        different, plain, dictionary = bits.tolist(), _little_endian(values), _little_endian(bits)
    width = max(1, (len(different) - 1).bit_length())
    indices = bytes([width]) + _runs(places, width)
    if not len(different) or len(dictionary) + len(indices) >= len(plain):
        return [_page(0, head + plain, (5, len(values), PLAIN))], (PLAIN, RLE)
    pages = [_page(2, dictionary, (7, len(different), PLAIN))]
    return [*pages, _page(0, head + indices, (5, len(values), DICTIONARY))], (PLAIN, RLE, DICTIONARY)


def _page(kind: int, content: bytes, about: tuple[int, int, int]) -> bytes:
    """A page with its header: ``about`` is the number of its own header, its values, and their encoding."""
    own, count, encoding = about
    levels = [(3, I32, RLE), (4, I32, RLE)] if own == 5 else []
    check = zlib.crc32(content)
    header = _struct(
        (1, I32, kind),
        (2, I32, len(content)),
        (3, I32, len(content)),
        (4, I32, check - 2**32 if check >= 2**31 else check),
        (own, STRUCT, _struct((1, I32, count), (2, I32, encoding), *levels)),
    )
    return header + content


def _texts(texts: Iterable[bytes]) -> bytes:
    return b"".join(len(text).to_bytes(4, "little") + text for text in texts)


def _runs(numbers: np.ndarray, width: int) -> bytes:
    """Numbers of so many bits, as one run of equal ones, or as packed bits, the lowest first."""
    n = len(numbers)
    if not n or (numbers == numbers[0]).all():
        return _varint(n << 1) + int(numbers[0] if n else 0).to_bytes(-(-width // 8), "little")
    padded = np.zeros(-(-n // 8) * 8, np.int64)
    padded[:n] = numbers
    bits = padded[:, None] >> np.arange(width) & 1
    return _varint(len(padded) // 8 << 1 | 1) + np.packbits(bits.astype(bool), bitorder="little").tobytes()


def _unpack_runs(content: bytes, count: int, width: int) -> np.ndarray:
    """What :func:`_runs` packed."""
    reader = _Reader(content, 0)
    head = reader.varint()
    if head % 2 == 0:
        value = content[reader.at : reader.at + -(-width // 8)]
        return np.full(count, int.from_bytes(value, "little"), np.int64)
    bits = np.unpackbits(np.frombuffer(content, np.uint8, offset=reader.at), bitorder="little")
    return bits[: (head >> 1) * 8 * width].reshape(-1, width)[:count].astype(np.int64) @ (
        np.int64(1) << np.arange(width, dtype=np.int64)
    )


class ParquetFile:
    """A chunk's file as its footer describes it; raises whatever bytes that are no such file lead to.

    Args:
        content: its bytes.

    Attributes:
        rows: number of rows.
        metadata: values by key.
        kinds: of the columns, by name.
    """

    def __init__(self, content: bytes) -> None:
        footer = _Reader(content, _footer(content)).struct()
        self.content, self.rows = content, int(footer[3])
        self.metadata: dict[bytes, bytes] = {pair[1]: pair[2] for pair in footer.get(5, ())}
        known = {(kind.physical, kind.converted): kind for kind in KINDS.values()}
        known[2, 18] = KINDS["l"]  # some versions of pyarrow say so of int64
        self.kinds: dict[str, Kind] = {x[4].decode(): known[x[1], x.get(6)] for x in footer[2][1:]}
        self._own = footer.get(6) == WRITER
        self._columns = [chunk[3] for chunk in footer[4][0][1]] if footer[4] else []

    def table(self, columns: Sequence[str] | None = None) -> RowTable:
        """Its rows.

        Args:
            columns: names of those that are wanted; None for all. Those that it does not have are left out.

        Raises:
            MissingDependency: pyarrow wrote it (earlier versions had it do so), and is not installed.
        """
        names = [name for name in self.kinds if columns is None or name in columns]
        about = json.loads(self.metadata.get(FIELDS_KEY, b"{}"))
        units = {name: about[name]["unit"] for name in names if about.get(name, {}).get("unit")}
        if not self._own:
            return RowTable(self._by_arrow(names), units)
        if self.rows > len(self.content):  # each row has a number of its own, of 8 bytes
            raise ValueError(f"{self.rows} rows in {len(self.content)} bytes")
        found = zip(self.kinds.items(), self._columns, strict=True)
        return RowTable({name: self._values(kind, x) for (name, kind), x in found if name in names}, units)

    def _values(self, kind: Kind, column: Mapping[int, Any]) -> np.ndarray:
        """The values of a column, from its metadata."""
        header, content = self._page(column[9])
        size = int.from_bytes(content[:4], "little")
        known = _unpack_runs(content[4 : 4 + size], self.rows, 1).astype(bool)
        count, content = int(known.sum()), content[4 + size :]
        if header[5][2] == DICTIONARY:
            inner, dictionary = self._page(column[11])
            values = _unpack_values(kind, dictionary, inner[7][1])
            values = values[_unpack_runs(content[1:], count, content[0])]
        else:
            values = _unpack_values(kind, content, count)
        if kind.dtype != "O":
            return values
        found = np.full(self.rows, None, object)
        found[known] = values
        return found

    def _page(self, at: int) -> tuple[dict[int, Any], bytes]:
        """Header and content of the page at a place."""
        reader = _Reader(self.content, at)
        header = reader.struct()
        return header, self.content[reader.at : reader.at + header[3]]

    def _by_arrow(self, names: list[str]) -> dict[str, np.ndarray]:
        pa = arrow("these rows were written by pyarrow")
        file = pa.parquet.ParquetFile(pa.BufferReader(self.content), page_checksum_verification=True)
        table = file.read(columns=names)
        return {name: np.asarray(table[name].to_numpy(), self.kinds[name].dtype) for name in names}


def _unpack_values(kind: Kind, content: bytes, count: int) -> np.ndarray:
    """Plain values of a page."""
    if kind.dtype != "O":
        return np.frombuffer(content, kind.dtype, count).astype(kind.dtype[1:])
    if 4 * count > len(content):
        raise ValueError(f"{count} texts in {len(content)} bytes")
    found, at = np.full(count, None, object), 0
    for k in range(count):
        end = at + 4 + int.from_bytes(content[at : at + 4], "little")
        found[k], at = content[at + 4 : end].decode(), end
    return found
