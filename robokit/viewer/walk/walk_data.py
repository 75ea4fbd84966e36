"""Inside the algorithms as the page's data: recorded once for all states, packed, within a size."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from robokit.model.robot import Robot
from robokit.sim.record import Trajectory
from robokit.stages import stage
from robokit.viewer.data.kept_data import kept
from robokit.viewer.data.packing import deflated_whole
from robokit.viewer.payload_keys import WalkData, Whole
from robokit.viewer.walk import text_runs
from robokit.viewer.walk.algorithm_data import ValueTable, algorithm_data
from robokit.viewer.walk.recorded_values import KINDS
from robokit.viewer.walk.text_runs import State, Walk, traced_state, walks
from robokit.viewer.walk.walk_program import WalkProgram
from robokit.viewer.walk.walked_texts import ABA, LTDL, RNEA, WALKED, Walked

MOST_BYTES = 300_000
"""What the walk may add to a page."""


def walk_of_motion(trajectory: Trajectory, robot: Robot, chosen: np.ndarray) -> WalkData | None:
    """The walk of a motion's page.

    Args:
        trajectory: the Trajectory.
        robot: its robot.
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
        key = pushed, room, text_runs.MOST_STEPS, text_runs.MOST_ENTRY_STEPS
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
        if longest is ABA:  # the RNEA takes other accelerations then
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
