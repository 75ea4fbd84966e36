"""Inside the algorithms: their text, line by line, with what each line read and wrote."""

from __future__ import annotations

from dataclasses import dataclass

from robokit.viewer.payload_keys.packed_tables import Deflated, Whole


@dataclass(frozen=True)
class ProgramData:
    """All values of the lines as one list of operations on a state.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.

    Attributes:
        operations: names of the operations, as in ``robokit/engine/trace/ops.py``.
        codes: uint8: of each operation the place of its name.
        operands: first, second and third operands of the operations that have them: how many slots back, or
            -1 - slot of a constant or an input.
        constants: float64 numbers.
        inputs: places in gravity (3), q, v, tau, forces on the bodies 0..N (6 each), one after another.
    """

    operations: list[str]
    codes: Deflated
    operands: list[Whole]
    constants: Deflated
    inputs: Whole


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
        steps: form of each step.
        counters: of each step its indices, -1 where the line does not speak of one.
        places: of each value of each step the body that it belongs to, -1 for none; of an entry of the matrix
            row (n + 1) + column, with column n for a whole row.
        seen: of each value of each step its place among the values, as the difference to the one before.
        shapes: kind and count of numbers of each value.
        numbers: of all values: twice the slot of the program, and 1 more where the sign is turned; as the
            difference to the one before.
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
    steps: Whole
    counters: Whole
    places: Whole
    seen: Whole
    shapes: Whole
    numbers: Whole
    whole: bool


@dataclass(frozen=True)
class WalkData:
    """The algorithms, for every state that the page can show.

    Attributes:
        program: finds all values for a state.
        gravity: acceleration of free fall in world axes [m/s^2], where the page has no other.
        touched: body of each point of ``FramesData.contacts``; or None.
        rows: body of each row of the matrices.
        kinds: names of the kinds of values.
        algorithms: in the order of the page.
        notes: what the numbers stand for, and what is left out.
    """

    program: ProgramData
    gravity: list[float]
    touched: Whole | None
    rows: list[int]
    kinds: list[str]
    algorithms: list[AlgorithmData]
    notes: list[str]
