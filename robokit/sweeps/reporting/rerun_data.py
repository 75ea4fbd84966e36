"""What the page needs to run the rows of a robot again: the step as WebAssembly, the start of each row."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.sim.driving.pushes import OutsideForces
from robokit.sim.rollouts import Rollout
from robokit.sim.step.step_kernel import Program
from robokit.sim.stepping.energies import first_carried
from robokit.sim.stepping.step_numbers import differ, row_numbers, scene_of
from robokit.sweeps.reporting.held_rows import within
from robokit.sweeps.reporting.row_inputs import PackedInput, factors_of, in_planes
from robokit.viewer.data.live_data import live_data_of
from robokit.viewer.page import WORKER as LIVE_WORKER
from robokit.viewer.page import joined, json_for_html
from robokit.viewer.payload import motionless_payload
from robokit.viewer.payload_keys import RerunData

WORKER = (*LIVE_WORKER[:-1], "live/rerun.js", LIVE_WORKER[-1])
"""The page's Worker, which also takes whole runs."""

BLOCK = 4096
"""Rows whose inputs are made at once."""

INSTEAD = "the command below makes the page of this row"

MOST_RERUN = 30_000
"""Rows of a robot that run again in the page: their inputs take about a second a thousand."""

MOST_BYTES = 16_000_000
"""Of the starts of rows, unpacked; rows beyond it are left to ``robokit replay``."""


@dataclass(frozen=True)
class Started:
    """Rows before their first step.

    Attributes:
        rollout: of them, without pushes and without a step.
        pushes: that act on them, or None.
    """

    rollout: Rollout
    pushes: OutsideForces | None

    @property
    def program(self) -> Program:
        """Their step, with places for the pushes."""
        program = self.rollout.program
        assert program is not None
        if self.pushes is None:
            return program
        places = self.pushes.places
        layout = replace(program.given, places=tuple((body, point is None) for body, point in places))
        points = [x for _, point in places if point is not None for x in point]
        return replace(program, given=layout, given_numbers=(*program.given_numbers, *points))

    def inputs(self, dt: float) -> dict[str, np.ndarray]:
        """What the first step of each row is given, and its pushes, (n, width) each.

        A push is nine numbers: its place, its first step, the one after its last, and the wrench.
        """
        program, q, v = self.program, self.rollout.q[0], self.rollout.v[0]
        n, found = len(q), {"q": q, "v": v}
        if program.contact:
            found |= _own_arrays(program, dt, n)
        else:
            parameters = program.parameters(dt)
            with np.errstate(all="ignore"):
                found["carried"] = first_carried(program, q, v)
            found["parameters"] = np.broadcast_to(parameters, (n, parameters.shape[-1]))
        if program.given.drives:
            wanted = self.rollout.given[0][0]
            found["drives"] = np.broadcast_to(wanted, (n, wanted.shape[-1]))
        if self.pushes is not None:
            spans: list[Any] = [*self.pushes.spans]
            spans += [(place, when, when + 1, wrench) for place, when, wrench in self.pushes.by_row]
            columns = [[place, first, last, *np.moveaxis(w, -1, 0)] for place, first, last, w in spans]
            one = [np.broadcast_to(x, n).astype(float) for column in columns for x in column]
            found["push_spans"] = np.stack(one, axis=1)
        return found


def _own_arrays(program: Program, dt: float, rows: int) -> dict[str, np.ndarray]:
    """Arrays of the step in which rows differ, (n, width) each, but for what driven joints want."""
    if not differ(program):
        return {}
    found = row_numbers(program, dt, scene_of(program), np.arange(rows))
    return {name: x.reshape(rows, -1) for name, x in found.items() if x.size and x.dtype == float}


@dataclass(frozen=True)
class RobotRows:
    """Rows of one robot, to be run again.

    Attributes:
        name: of the robot in the table.
        robot: with the shapes that are drawn, without samples.
        dt: time step [s].
        steps: of a row.
        places: of the rows among those of the page, ascending, (n,).
        special: which of them come first where not all fit, (n,).
        started: the start of the rows at these places, (k,).
        parameters: of the rows, (n,) each.
        hashes: of their last states, uint64 (n,); or None.
        problem: why they cannot run again in the page; "" where nothing is known of that.
    """

    name: str
    robot: Robot
    dt: float
    steps: int
    places: np.ndarray
    special: np.ndarray
    started: Callable[[np.ndarray], Started]
    parameters: Mapping[str, np.ndarray]
    hashes: np.ndarray | None
    problem: str = ""


def rerun_data(rows: RobotRows, max_triangles: int | None = None) -> tuple[RerunData, int]:
    """What the page gets of them, and how many of them it can run again.

    Args:
        rows: of a robot.
        max_triangles: as of :func:`robokit.viewer.write_page`.
    """
    none = RerunData(rows.name, "", rows.steps, "", [], [], None, False, "")
    if rows.problem:
        return replace(none, problem=f"{rows.problem}; {INSTEAD}"), 0
    first = rows.started(np.arange(1))
    program, start = first.program, first.inputs(rows.dt)
    try:
        q, v, own = start["q"][0], start["v"][0], start.get("parameters", np.zeros((1, 0)))[0]
        live = live_data_of(program, rows.dt, q, v, joined(WORKER), True, own, True)
    except RobokitError as error:
        return replace(none, problem=f"{str(error).partition('; write')[0]}; {INSTEAD}"), 0
    pose = q if np.isfinite(q).all() else rows.robot.neutral()
    payload = replace(
        motionless_payload(rows.robot, program.ground and program.ground.row(0), pose, max_triangles),
        live=live,
    )
    factors = factors_of(rows.parameters)
    chosen = within(len(rows.places), rows.special, fitting(rows, factors))
    n, own = len(chosen), [factor[chosen] for factor in factors]
    packed = {name: PackedInput(name, x.shape[1], own, n) for name, x in start.items()}
    for at in range(0, n, BLOCK):
        for name, values in rows.started(chosen[at : at + BLOCK]).inputs(rows.dt).items():
            packed[name].add(values)
    made = RerunData(
        robot=rows.name,
        payload=_text(json_for_html(payload)),
        steps=rows.steps,
        places=_whole(rows.places[chosen]),
        factors=[in_planes(factor) for factor in own],
        inputs=[one.packed() for one in packed.values()],
        hashes=None if rows.hashes is None else in_planes(rows.hashes[chosen].astype(np.uint64)),
        inertial=program.open,
        problem="",
    )
    return made, n


def fitting(rows: RobotRows, factors: Sequence[np.ndarray]) -> int:
    """How many of the rows fit into a page: as many as their own numbers leave room for."""
    n = len(rows.places)
    few = rows.started(np.arange(min(n, 64))).inputs(rows.dt)
    width = 0
    for name, values in few.items():
        one = PackedInput(name, values.shape[1], [factor[:64] for factor in factors], len(values))
        one.add(values)
        width += sum(entry.kept.dtype.itemsize for entry in one.entries.values() if entry.factor < 0)
    return min(n, MOST_RERUN, max(1000, MOST_BYTES // max(1, width)))


def _text(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")


def _whole(numbers: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.asarray(numbers, "<u4").tobytes(), 6)).decode("ascii")
