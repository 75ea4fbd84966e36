"""Inside the algorithms as the page's data: recorded once for all states, packed, within a size."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import CONST, OPERATIONS
from robokit.engine.trace.scalar import Scalar
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.stages import stage
from robokit.viewer.data.kept_data import kept
from robokit.viewer.data.packing import deflated, deflated_whole
from robokit.viewer.payload_keys import (
    AlgorithmData,
    FormData,
    LetterData,
    ListingData,
    ProgramData,
    SweepData,
    WalkData,
    Whole,
)
from robokit.viewer.walk import walked_texts
from robokit.viewer.walk.line_captions import CAPTIONS
from robokit.viewer.walk.text_recorder import KINDS, Place, Value
from robokit.viewer.walk.walked_texts import (
    ABA,
    LTDL,
    RNEA,
    WALKED,
    Letter,
    State,
    Walk,
    Walked,
    traced_state,
    walks,
)

MOST_BYTES = 300_000
"""Largest size of the walk in a page [bytes]."""


def walk_of_motion(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> WalkData | None:
    """The walk of a motion's page.

    Args:
        chosen: indices of its samples that the page shows, (T,).
    """
    pushed = trajectory.ground is not None or trajectory.contacts is not None
    return walk_data(robot, pushed, touched_bodies(trajectory, robot, chosen))


def touched_bodies(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> Whole | None:
    """The body of each point of ``FramesData.contacts``; None where points are not known."""
    contacts = trajectory.contacts
    if contacts is None:
        return None
    body = {link.name: link.body for link in robot.links}
    bodies = np.array([body.get(link, 0) for link in contacts.links], dtype=int)
    touch = np.any(contacts.forces[chosen] != 0.0, axis=-1)
    return deflated_whole(np.broadcast_to(bodies, touch.shape)[touch])


def walk_data(
    robot: Robot, pushed: bool = False, touched: Whole | None = None, most_bytes: int = MOST_BYTES
) -> WalkData | None:
    """The walk of a page.

    Args:
        robot: a single Robot.
        pushed: whether there may be forces on its bodies.
        touched: the body of each point of contact, or None.
        most_bytes: room; where it is too little, the longest algorithms are left out.

    Returns:
        None where there is nothing to walk through, or no room.
    """
    room = most_bytes - (len(touched) if touched else 0)

    def made(room: int) -> WalkData | None:
        key = pushed, room, walked_texts.MOST_STEPS, walked_texts.MOST_ENTRY_STEPS
        found: WalkData | None = kept(
            "walk of a page", robot, key, WalkData | None, lambda: _walk(robot, pushed, room)
        )
        return found

    found = made(most_bytes)
    if found is not None and len(json.dumps(found, default=vars)) > room:
        found = made(room)
    return None if found is None else replace(found, touched=touched)


def _walk(robot: Robot, pushed: bool, most_bytes: int) -> WalkData | None:
    """The walk without the touched bodies."""
    if robot.nbodies == 0:
        return None
    with stage("recording the algorithms"):
        return _within(robot, pushed, most_bytes)


def _within(robot: Robot, pushed: bool, most_bytes: int) -> WalkData | None:
    without: list[Walked] = []
    state = traced_state(robot, pushed)
    found = walks(robot, state)
    while found:
        data = _packed(robot, state, found)
        if len(json.dumps(data, default=vars)) <= most_bytes:
            return data
        longest = max((w for w in WALKED if w.key in found), key=lambda w: len(found[w.key].steps))
        without.append(longest)
        del found[longest.key]
        if longest is ABA:  # without the ABA, the RNEA takes other accelerations
            state = traced_state(robot, pushed)
            found = walks(robot, state, without=without)
    return None


def _packed(robot: Robot, state: State, found: dict[str, Walk]) -> WalkData:
    graph = state.q[0].graph
    algorithms = [w for w in WALKED if w.key in found]
    tables = [ValueTable(graph, found[w.key]) for w in algorithms]
    program = WalkProgram.of(graph, (ref for table in tables for ref in table.refs()))
    return WalkData(
        program=program.data(state),
        gravity=[float(g) for g in robot.tree.gravity],
        touched=None,
        rows=[i for i, dofs in enumerate(robot.tree.v_slice) for _ in range(dofs.stop - dofs.start)],
        kinds=list(KINDS),
        algorithms=[
            algorithm_data(w, found[w.key], table, program)
            for w, table in zip(algorithms, tables, strict=True)
        ],
        notes=_notes(robot, state, found),
    )


def _notes(robot: Robot, state: State, found: dict[str, Walk]) -> list[str]:
    """What the numbers stand for."""
    notes = [
        "Numbers are those of the state that the scene shows.",
        "Vectors and inertias stand in the coordinates of their body, angular part first.",
    ]
    given = "Given: q, q̇ and τ of the motion"
    if state.f_ext is None:
        notes.append(f"{given}; of a pose q, with q̇ = 0 and τ = 0.")
    else:
        notes.append(
            f"{given}, with the forces of the ground. Where physics runs in the page, τ = 0 and the hand's "
            "force is left out. Where sliders have set a pose, q̇ = 0 and τ = 0, and nothing pushes."
        )
    notes.append("Damping, friction and stops of joints are not part of these texts.")
    if RNEA.key in found:
        solved = ABA.key in found and found[ABA.key].whole
        notes.append("RNEA takes the accelerations that ABA finds." if solved else "RNEA takes q̈ = 0.")
    if robot.coupling is not None:
        notes.append("Coupled joints: RNEA and CRBA see the full tree, the coupling comes afterwards.")
    if LTDL.key in found:
        notes.append("LTDL counts degrees of freedom from 0, as its text does; rows of H are counted from 1.")
    missing = [w.key.upper() for w in WALKED if w.key not in found]
    if missing:
        notes.append(f"Left out for this robot: {', '.join(missing)}.")
    return notes


# ---- the recorded graph as the page's program ----------------------------------------------------


OPERANDS = 3
"""Largest number of operands of an operation."""


@dataclass(frozen=True)
class WalkProgram:
    """The part of a graph that some values need.

    Its numbers stand in slots: those of the constants, then of the inputs, then of the operations in order.

    Attributes:
        graph: the graph.
        constants, inputs, order: numbers of its nodes.
        slot: of each of these nodes.
    """

    graph: Graph
    constants: list[int]
    inputs: list[int]
    order: list[int]
    slot: dict[int, int]

    @classmethod
    def of(cls, graph: Graph, refs: Iterable[int]) -> WalkProgram:
        """The part that these signed references need."""
        nodes = graph.nodes
        needed = bytearray(len(nodes))
        for ref in refs:
            needed[abs(ref)] = 1
        for number in range(len(nodes) - 1, 0, -1):
            if needed[number] and nodes[number][0] > CONST:
                for operand in nodes[number][1:]:
                    needed[operand] = 1
        found = [number for number in range(1, len(nodes)) if needed[number]]
        constants = [number for number in found if nodes[number][0] == CONST]
        inputs = [number for number in found if nodes[number][0] < CONST]
        order = [number for number in found if nodes[number][0] > CONST]
        slot = {number: k for k, number in enumerate((*constants, *inputs, *order))}
        return cls(graph, constants, inputs, order, slot)

    def place(self, ref: int) -> int:
        """A signed reference as the page has it: twice the slot, and 1 more where its sign is turned."""
        return 2 * self.slot[abs(ref)] + (ref < 0)

    def data(self, state: State) -> ProgramData:
        """The page's data.

        Args:
            state: of the traced scalars that the graph began with.
        """
        nodes = self.graph.nodes
        place = {scalar.ref: k for k, scalar in enumerate(state.flat())}
        codes = [nodes[number][0] for number in self.order]
        used = sorted(set(codes))
        return ProgramData(
            operations=[OPERATIONS[code].name for code in used],
            codes=deflated([used.index(code) for code in codes], "u1"),
            operands=[deflated_whole(self._operands(k)) for k in range(OPERANDS)],
            constants=deflated([nodes[number][1] for number in self.constants], "<f8"),
            inputs=deflated_whole([place[number] for number in self.inputs]),
        )

    def _operands(self, k: int) -> Sequence[int]:
        """Operand k of the operations that have one: how far back it is, or -1 - slot of what is given."""
        first = len(self.constants) + len(self.inputs)
        found = []
        for number in self.order:
            operands = self.graph.nodes[number][1:]
            if k < len(operands):
                slot = self.slot[operands[k]]
                found.append(self.slot[number] - slot if slot >= first else -1 - slot)
        return found


# ---- one algorithm -------------------------------------------------------------------------------


class ValueTable:
    """The different values of an algorithm, as signed references into the graph.

    Attributes:
        rows: kind and references of each.
        places: where the values stand that the steps have seen, one after another.
    """

    def __init__(self, graph: Graph, walk: Walk) -> None:
        """The values of all steps of a walk."""
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
