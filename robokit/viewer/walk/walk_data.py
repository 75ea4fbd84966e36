"""Inside the algorithms as the page's data: recorded at some instants, packed, within a size."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robokit.algorithms.crba import crba
from robokit.dynamics.layout import INPUTS
from robokit.model.robot import Robot
from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.packing import deflated
from robokit.viewer.payload_keys import (
    AlgorithmData,
    FormData,
    InstantData,
    LetterData,
    ListingData,
    SweepData,
    WalkData,
)
from robokit.viewer.walk.line_captions import CAPTIONS
from robokit.viewer.walk.recorded_values import KINDS
from robokit.viewer.walk.text_recorder import Recorder, Step
from robokit.viewer.walk.text_statements import Place
from robokit.viewer.walk.walk_inputs import Instant, instants
from robokit.viewer.walk.walked_texts import ABA, CRBA, LTDL, RNEA, WALKED, Letter, Walked

MOST_BYTES = 300_000
"""What the walk may add to a page."""

MOST_STEPS = 8_000
"""Lines of one algorithm that are recorded; the humanoid's longest has 7,704."""

MANY_STEPS = 20_000
"""Lines of all algorithms above which a page shows one instant only."""

MOST_ROWS = 300
"""Rows of a mass matrix that is factorised here: plain Python takes its time."""


@dataclass(frozen=True)
class Walk:
    """An algorithm recorded at one instant.

    Attributes:
        steps: its lines.
        result: what it returned, or None.
        whole: whether it came to its end.
    """

    steps: list[Step]
    result: Any
    whole: bool


def walks(robot: Robot, instant: Instant, most: int = MOST_STEPS) -> dict[str, Walk]:
    """RNEA, CRBA, LTDL and ABA recorded at an instant, by key.

    ABA finds the accelerations, which the RNEA then takes. A robot with coupled joints has RNEA and CRBA
    alone, of its full tree: the coupling comes afterwards. So has one whose mass matrix is singular there.
    """
    tree = robot.tree
    q, v, tau = (
        split([float(x) for x in row])
        for split, row in (
            (robot.split_q, instant.q),
            (robot.split_v, instant.v),
            (robot.split_tau, instant.tau),
        )
    )
    forces = () if instant.f_ext is None else (INPUTS["f_ext"].split(robot, instant.f_ext.tolist()),)

    def walk(walked: Walked, *arguments: Any) -> Walk:
        recorder = Recorder(walked.recipe, tree.parent, tree.v_slice, most)
        result = recorder.run(walked.begin, *arguments)
        return Walk(recorder.steps, result, recorder.complete)

    found: dict[str, Walk] = {}
    a = [[0.0] * len(rates) for rates in v]
    if robot.coupling is None:
        try:
            H = crba(tree, q)
            if len(H) <= MOST_ROWS:
                found[LTDL.key] = walk(LTDL, tree.dof_parent, H)
            a = ABA.begin(tree, q, v, tau, *forces)
            found[ABA.key] = walk(ABA, tree, q, v, tau, *forces)
        except ArithmeticError:
            found.clear()
    found[RNEA.key] = walk(RNEA, tree, q, v, a, *forces)
    found[CRBA.key] = walk(CRBA, tree, q)
    return found


def walk_of_motion(
    trajectory: Trajectory, robot: Robot, chosen: np.ndarray, wanted: bool | Sequence[float]
) -> WalkData | None:
    """The walk of a motion's page.

    Args:
        trajectory: the Trajectory.
        robot: its robot.
        chosen: indices of its samples that the page shows, (T,).
        wanted: whether to make it, or at which times since the start [s].
    """
    if wanted is False:
        return None
    return walk_data(robot, instants(trajectory, robot, chosen, None if wanted is True else wanted))


def walk_data(robot: Robot, shown: Sequence[Instant], most_bytes: int = MOST_BYTES) -> WalkData | None:
    """The walk of a page.

    Args:
        robot: a single Robot.
        shown: instants; where they take too much room, only the one with the largest force stays, then
            the longest algorithms go too.
        most_bytes: room.

    Returns:
        None where there is nothing to walk through, or no room.
    """
    if robot.nbodies == 0 or not shown:
        return None
    recorded = _recorded(robot, shown)
    algorithms = [w for w in WALKED if w.key in recorded[0][1]]
    while algorithms:
        data = [_algorithm(w, [found[w.key] for _, found in recorded]) for w in algorithms]
        if sum(map(_size, data)) <= most_bytes:
            slices = robot.tree.v_slice
            return WalkData(
                instants=[InstantData(instant.t, instant.why) for instant, _ in recorded],
                rows=[i for i, dofs in enumerate(slices) for _ in range(dofs.stop - dofs.start)],
                kinds=list(KINDS),
                algorithms=data,
                notes=_notes(robot, [each for each, _ in recorded], algorithms, ABA.key in recorded[0][1]),
            )
        if len(recorded) > 1:
            dull = [each for each in recorded if each[0].why in ("", "start", "end")]
            recorded.remove(dull[-1] if dull else recorded[-1])
        else:
            del algorithms[max(range(len(data)), key=lambda k: len(data[k].steps))]
    return None


def _recorded(robot: Robot, shown: Sequence[Instant]) -> list[tuple[Instant, dict[str, Walk]]]:
    """The walks of the instants at which the same lines run, that of the largest force among them."""
    first = next((instant for instant in shown if instant.why not in ("start", "end")), shown[0])
    found = [(first, walks(robot, first))]
    if sum(len(walk.steps) for walk in found[0][1].values()) <= MANY_STEPS:
        outline = _outline(found[0][1])
        others = ((instant, walks(robot, instant)) for instant in shown if instant is not first)
        found += [each for each in others if _outline(each[1]) == outline]
    return sorted(found, key=lambda each: each[0].t)


def _outline(found: dict[str, Walk]) -> Any:
    """Everything but the numbers."""
    return {
        key: [
            (step.statement, step.indices, [(x.place, x.where, x.value[0]) for x in step.seen])
            for step in walk.steps
        ]
        for key, walk in found.items()
    }


def _notes(robot: Robot, shown: Sequence[Instant], algorithms: Sequence[Walked], solved: bool) -> list[str]:
    """What the numbers stand for; ``solved``: whether ABA has found accelerations."""
    notes = ["Vectors and inertias stand in the coordinates of their body, angular part first."]
    given = "q, q̇ and τ of the motion" if shown[0].why != "at rest" else "q; q̇ = 0, τ = 0"
    if any(instant.f_ext is not None for instant in shown):
        given += ", with the forces of the ground"
    taken = " RNEA takes the accelerations that ABA finds." if solved else " RNEA takes q̈ = 0."
    notes.append(f"Given: {given}; damping, friction and stops of joints are not part of these texts.{taken}")
    if robot.coupling is not None:
        notes.append("Coupled joints: RNEA and CRBA see the full tree, the coupling comes afterwards.")
    if LTDL in algorithms:
        notes.append("LTDL counts degrees of freedom from 0, as its text does; rows of H are counted from 1.")
    missing = [w.key.upper() for w in WALKED if w not in algorithms]
    if missing:
        notes.append(f"Left out for this robot: {', '.join(missing)}.")
    return notes


def _size(algorithm: AlgorithmData) -> int:
    """Bytes that it adds to a page."""
    return len(json.dumps(algorithm, default=vars))


def _algorithm(walked: Walked, at: Sequence[Walk]) -> AlgorithmData:
    """One algorithm at all instants."""
    files = list(dict.fromkeys(inspect.getsourcefile(f) or "" for f in walked.recipe.functions))
    letters: dict[tuple[str, bool], int] = {}
    places: list[Place] = []
    forms: dict[tuple[int, int, int, int, tuple[int, ...]], int] = {}
    values: dict[tuple[str, tuple[float, ...]], int] = {}
    numbers: list[int] = []
    for same in zip(*(walk.steps for walk in at), strict=True):
        step = same[0]
        for seen in step.seen:
            if (seen.place.text, seen.place.written) not in letters:
                letters[seen.place.text, seen.place.written] = len(places)
                places.append(seen.place)
        spoken = tuple(letters[seen.place.text, seen.place.written] for seen in step.seen)
        statement = step.statement
        form = (files.index(statement.file), statement.first, statement.last, step.stage, spoken)
        numbers.append(forms.setdefault(form, len(forms)))
        numbers += [index + 1 for index in step.indices]
        for k, seen in enumerate(step.seen):
            everywhere = tuple(x for other in same for x in other.seen[k].value[1])
            value = values.setdefault((seen.value[0], everywhere), len(values))
            numbers += [seen.where + 1, value]
    listings = [ListingData(Path(file).name, Path(file).read_text(encoding="utf-8")) for file in files]
    lines = [listing.text.split("\n") for listing in listings]
    table = [np.reshape(x, (len(at), -1)) for _, x in values]
    shapes = [(KINDS.index(kind), len(x) // len(at)) for kind, x in values]
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
        steps=deflated(numbers, "<u2"),
        shapes=deflated(shapes, "<u2"),
        values=deflated(np.concatenate(table, axis=1) if table else [], "<f4"),
        whole=at[0].whole,
    )


def _letter(walked: Walked, place: Place) -> LetterData:
    """How a value is written in books."""
    name = {"tree.joint[": "S", "tree.I[": "I"}.get(place.text.partition("[")[0] + "[", place.name)
    letter = walked.letters.get(name, Letter(name, ""))
    subscripts = place.text.replace("tree.parent[i]", "λ(i)").split("[")[1:]
    below = ", ".join(part.split("]")[0] for part in subscripts)
    entry = place.name == walked.recipe.matrix and place.depth > 0
    return LetterData(place.text, letter.symbol, below, letter.meaning, letter.unit, place.written, entry)
