"""The report of a sweep: its rows as columns, and what a row needs to run again in the page."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.viewer.payload_keys.packed_tables import Deflated


@dataclass(frozen=True)
class ColumnData:
    """A parameter or a measure of the rows.

    Attributes:
        name: of the column in the sweep's table.
        title: in words.
        unit: "" where it has none.
        about: what it is, a sentence; may be empty.
        role: "parameter" or "measure".
        labels: what the values count, of a column of texts; else None.
        values: of the rows that the page holds: float32, all lowest bytes first and so on; NaN for none.
        low, high: range of the bins, over all rows of the sweep; places of the labels.
        counts: rows of the sweep in each bin.
        missing: rows of the sweep without a value.
        whole: whether all values are whole numbers.
    """

    name: str
    title: str
    unit: str
    about: str
    role: str
    labels: list[str] | None
    values: Deflated
    low: float
    high: float
    counts: list[int]
    missing: int
    whole: bool


@dataclass(frozen=True)
class ReasonData:
    """Why rows failed, and how many of the sweep did so."""

    text: str
    count: int


@dataclass(frozen=True)
class PartData:
    """Entries of an input that are kept in the same way.

    An entry is that of the base, or the base times a factor of the row, and the difference to it, counted in
    the float64 numbers between them; or kept as it is.

    Attributes:
        entries: their places in the input.
        factor: place of the factor; -1 for none.
        bytes: of a difference, 1 or 2; 8 for the number itself.
        values: (n, entries), all lowest bytes first and so on.
    """

    entries: list[int]
    factor: int
    bytes: int
    values: Deflated


@dataclass(frozen=True)
class InputData:
    """An input of the step, for each row: q, v, carried or parameters.

    Attributes:
        name: of the input.
        base: float64: that of the first row.
        parts: entries that are not the same in all rows.
    """

    name: str
    base: Deflated
    parts: list[PartData]


@dataclass(frozen=True)
class RerunData:
    """What the rows of one robot need to run again.

    Attributes:
        robot: its name in the table.
        payload: data of the row's page as JSON, without its motion.
        steps: of a row.
        places: uint32: of these rows among those of the page, (n,), ascending.
        factors: float64 numbers of the rows, (n,), all lowest bytes first and so on.
        inputs: of the step.
        hashes: uint64, in the same way: the hash of each row's last state; or None.
        inertial: whether the inertial parameters of its bodies, 10 each, are among the inputs of a row.
        problem: why rows cannot run in the page; "" where they can.
    """

    robot: str
    payload: Deflated
    steps: int
    places: Deflated
    factors: list[Deflated]
    inputs: list[InputData]
    hashes: Deflated | None
    inertial: bool
    problem: str


@dataclass(frozen=True)
class ReportData:
    """Everything that the report of a sweep shows.

    Attributes:
        title: name of the sweep's folder.
        robots: names of its robots.
        rows: of the sweep.
        held: rows that the page holds.
        sample: which these are, a sentence; "" where they are all.
        figures: label and value, for the header.
        recipe: label and text, in words.
        openings: name of a program and the line that opens the table in it.
        numbers: uint32: of the rows that the page holds, ascending.
        columns: of the table.
        sorted_by, across, up, tinted: places of the columns that the table and the scatter show first.
        reasons: why rows failed, the most frequent first.
        page: text of the page that shows a row, with the mark for its data.
        command: what writes the page of a row without this page; ROW stands for the row's number.
        reruns: for each robot.
    """

    title: str
    robots: str
    rows: int
    held: int
    sample: str
    figures: list[tuple[str, str]]
    recipe: list[tuple[str, str]]
    openings: list[tuple[str, str]]
    numbers: Deflated
    columns: list[ColumnData]
    sorted_by: int
    across: int
    up: int
    tinted: int
    reasons: list[ReasonData]
    page: Deflated
    command: str
    reruns: list[RerunData]
