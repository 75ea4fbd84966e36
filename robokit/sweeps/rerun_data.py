"""What the page needs to run the rows of a robot again: the step as WebAssembly, the start of each row."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robokit.errors import RobokitError
from robokit.model.robot import Robot
from robokit.sim.recorded import first_carried
from robokit.sim.step.step_kernel import Program
from robokit.sweeps.row_inputs import in_planes, packed_input
from robokit.viewer.data.live_data import live_data_of
from robokit.viewer.page import joined, json_for_html
from robokit.viewer.payload import motionless_payload
from robokit.viewer.payload_keys import RerunData

WORKER = ("live/physics.js", "live/rerun.js", "live/worker.js")
"""The page's Worker, which also takes whole runs."""

INSTEAD = "the command below makes the page of this row"

MOST_BYTES = 40_000_000
"""Of the starts of rows, unpacked; rows beyond it are left to ``robokit replay``."""


@dataclass(frozen=True)
class RobotRows:
    """Rows of one robot, ready to be run.

    Attributes:
        name: of the robot in the table.
        robot: with the shapes that are drawn, without samples.
        program: the step of these rows.
        dt: time step [s].
        steps: of a row.
        places: of the rows among those of the page, ascending, (n,).
        q, v: their starts, (n, nq) and (n, nv).
        factors: parameters that inputs may be proportional to, (n,) each.
        hashes: of their last states, uint64 (n,); or None.
    """

    name: str
    robot: Robot
    program: Program
    dt: float
    steps: int
    places: np.ndarray
    q: np.ndarray
    v: np.ndarray
    factors: Sequence[np.ndarray]
    hashes: np.ndarray | None


def rerun_data(rows: RobotRows, max_triangles: int | None = None) -> RerunData:
    """What the page gets of them.

    Args:
        rows: of a robot.
        max_triangles: as of :func:`robokit.viewer.write_page`.
    """
    n, program = len(rows.places), rows.program
    none = RerunData(rows.name, "", rows.steps, "", [], [], None, False, "")
    if program.given.inputs:
        return replace(
            none,
            problem=f"pushes and actuators do not act in the page; {INSTEAD}",
        )
    parameters = program.parameters(rows.dt)
    inputs = {
        "q": rows.q,
        "v": rows.v,
        "carried": first_carried(program, rows.q, rows.v),
        "parameters": np.broadcast_to(parameters, (n, parameters.shape[-1])),
    }
    try:
        own = inputs["parameters"][0]
        live = live_data_of(program, rows.dt, rows.q[0], rows.v[0], joined(WORKER), True, own)
    except RobokitError as error:
        return replace(none, problem=f"{str(error).partition('; write')[0]}; {INSTEAD}")
    payload = replace(motionless_payload(rows.robot, program.ground, rows.q[0], max_triangles), live=live)
    factors = list(rows.factors)
    return RerunData(
        robot=rows.name,
        payload=_text(json_for_html(payload)),
        steps=rows.steps,
        places=_whole(rows.places),
        factors=[in_planes(factor) for factor in factors],
        inputs=[packed_input(name, values, factors) for name, values in inputs.items()],
        hashes=None if rows.hashes is None else in_planes(rows.hashes.astype(np.uint64)),
        inertial=program.open,
        problem="",
    )


def fitting(width: int, rows: int) -> int:
    """How many of the rows fit into a page whose rows hand so many different numbers to the step."""
    return min(rows, max(1000, MOST_BYTES // (8 * max(1, width))))


def _text(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8"), 6)).decode("ascii")


def _whole(numbers: np.ndarray) -> str:
    return base64.b64encode(zlib.compress(np.asarray(numbers, "<u4").tobytes(), 6)).decode("ascii")
