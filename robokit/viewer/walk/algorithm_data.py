"""One algorithm as the page's data: its lines, and where the program has what they read and wrote."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from robokit.engine.trace.graph import Graph
from robokit.engine.trace.scalar import Scalar
from robokit.viewer.data.packing import deflated_whole
from robokit.viewer.payload_keys import AlgorithmData, FormData, LetterData, ListingData, SweepData
from robokit.viewer.walk.line_captions import CAPTIONS
from robokit.viewer.walk.recorded_values import KINDS, Value
from robokit.viewer.walk.text_runs import Walk
from robokit.viewer.walk.text_statements import Place
from robokit.viewer.walk.walk_program import WalkProgram
from robokit.viewer.walk.walked_texts import LTDL, Letter, Walked


class ValueTable:
    """The different values of an algorithm, as signed references into the graph.

    Attributes:
        rows: kind and references of each.
        places: where the values stand that the steps have seen, one after another.
    """

    def __init__(self, graph: Graph, walk: Walk) -> None:
        """Of all its steps."""
        self.graph = graph
        place: dict[tuple[str, tuple[int, ...]], int] = {}
        self.places = [
            place.setdefault(self._row(seen.value), len(place)) for step in walk.steps for seen in step.seen
        ]
        self.rows = list(place)

    def refs(self) -> Iterator[int]:
        """All references."""
        return chain.from_iterable(refs for _, refs in self.rows)

    def _row(self, value: Value) -> tuple[str, tuple[int, ...]]:
        kind, numbers = value
        return kind, tuple(x.ref if type(x) is Scalar else self.graph.constant(x) for x in numbers)


def algorithm_data(walked: Walked, walk: Walk, table: ValueTable, program: WalkProgram) -> AlgorithmData:
    """The page's data of one algorithm.

    Args:
        walked: the algorithm.
        walk: as it was recorded.
        table: its values.
        program: finds them.
    """
    files = list(dict.fromkeys(inspect.getsourcefile(f) or "" for f in walked.recipe.functions))
    letters: dict[tuple[str, bool], int] = {}
    places: list[Place] = []
    forms: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
    steps: list[int] = []
    for step in walk.steps:
        for seen in step.seen:
            if (seen.place.text, seen.place.written) not in letters:
                letters[seen.place.text, seen.place.written] = len(places)
                places.append(seen.place)
        spoken = tuple(letters[seen.place.text, seen.place.written] for seen in step.seen)
        statement = step.statement
        form = (files.index(statement.file), statement.first, statement.last, step.stage, spoken)
        steps.append(forms.setdefault(form, len(forms)))
    listings = [ListingData(Path(file).name, Path(file).read_text(encoding="utf-8")) for file in files]
    lines = [listing.text.split("\n") for listing in listings]
    every = [seen for step in walk.steps for seen in step.seen]
    return AlgorithmData(
        key=walked.key,
        title=walked.title,
        gives=walked.gives,
        listings=listings,
        sweeps=[SweepData(each.title, each.outward) for each in walked.passes],
        indices=list(walked.recipe.indices),
        by_dof=walked is LTDL,
        matrix=walked.recipe.matrix,
        letters=[_letter(walked, place) for place in places],
        forms=[
            FormData(*form[:4], list(form[4]), CAPTIONS.get(lines[form[0]][form[1] - 1].strip(), ""))
            for form in forms
        ],
        steps=deflated_whole(steps),
        counters=deflated_whole([step.indices for step in walk.steps]),
        places=deflated_whole([seen.where for seen in every]),
        seen=deflated_whole(np.diff(table.places, prepend=0)),
        shapes=deflated_whole([(KINDS.index(kind), len(refs)) for kind, refs in table.rows]),
        numbers=deflated_whole(np.diff([program.place(ref) for ref in table.refs()], prepend=0)),
        whole=walk.whole,
    )


def _letter(walked: Walked, place: Place) -> LetterData:
    """How a value is written in books."""
    name = {"tree.joint[": "S", "tree.I[": "I"}.get(place.text.partition("[")[0] + "[", place.name)
    letter = walked.letters.get(name, Letter(name, ""))
    subscripts = place.text.replace("tree.parent[i]", "λ(i)").split("[")[1:]
    below = ", ".join(part.split("]")[0] for part in subscripts)
    entry = place.name == walked.recipe.matrix and place.depth > 0
    return LetterData(place.text, letter.symbol, below, letter.meaning, letter.unit, place.written, entry)
