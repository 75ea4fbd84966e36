"""Inside the algorithms: their text, line by line, with what each line read and wrote."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.viewer.payload_keys.packed_tables import Deflated


@dataclass(frozen=True)
class InstantData:
    """An instant whose values the page has.

    Attributes:
        t: since the start [s].
        why: what is special about it, or "".
    """

    t: float
    why: str


@dataclass(frozen=True)
class ListingData:
    """A source file: its name and all of its text."""

    file: str
    text: str


@dataclass(frozen=True)
class SweepData:
    """A loop over all bodies: what it is for, and whether it goes from the root to the tips."""

    title: str
    outward: bool


@dataclass(frozen=True)
class LetterData:
    """A value of the text.

    Attributes:
        written: as the text writes it, as ``v[p]``.
        symbol: as a book writes it; ``I^A`` has a superscript.
        below: its subscript.
        meaning: in words.
        unit: of its numbers.
        out: whether the line writes it; else it reads it.
        entry: whether it is an entry or a row of the algorithm's matrix.
    """

    written: str
    symbol: str
    below: str
    meaning: str
    unit: str
    out: bool
    entry: bool


@dataclass(frozen=True)
class FormData:
    """What steps of one line have in common.

    Attributes:
        listing: place of its file in the algorithm's listings.
        line: its first line in the file, from 1.
        last: its last line.
        sweep: place of its pass, -1 outside of all.
        letters: places of the values that it reads and writes.
        says: what the line does, a sentence.
    """

    listing: int
    line: int
    last: int
    sweep: int
    letters: list[int]
    says: str


@dataclass(frozen=True)
class AlgorithmData:
    """An algorithm as it ran.

    Attributes:
        key: of the algorithm.
        title: its long name.
        gives: what goes in and what comes out.
        listings: its source files.
        sweeps: its passes.
        indices: names of its indices, that of the body or dof at work first.
        by_dof: whether the indices count degrees of freedom, not bodies.
        matrix: letter of the matrix that fills, or "".
        letters, forms: of its lines.
        steps: uint16 numbers. Of each step: place of its form; each index + 1, or 0 where the line does not
            speak of it; then for each of the form's letters a body + 1 (of an entry row (n + 1) + column + 1)
            and the place of its value.
        shapes: uint16 numbers: kind and count of numbers of each value.
        values: float32 numbers of all values, instant after instant.
        whole: whether these are all of its steps.
    """

    key: str
    title: str
    gives: str
    listings: list[ListingData]
    sweeps: list[SweepData]
    indices: list[str]
    by_dof: bool
    matrix: str
    letters: list[LetterData]
    forms: list[FormData]
    steps: Deflated
    shapes: Deflated
    values: Deflated
    whole: bool


@dataclass(frozen=True)
class WalkData:
    """The algorithms at some instants of the motion.

    Attributes:
        instants: in order of time.
        rows: body of each row of the matrices.
        kinds: names of the kinds of values.
        algorithms: in the order of the page.
        notes: what the numbers stand for, and what is left out.
    """

    instants: list[InstantData]
    rows: list[int]
    kinds: list[str]
    algorithms: list[AlgorithmData]
    notes: list[str]
