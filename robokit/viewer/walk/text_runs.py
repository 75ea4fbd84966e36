"""RNEA, CRBA, LTDL and ABA run line by line on a state, whose numbers are plain or the tracer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from robokit.dynamics.layout import INPUTS
from robokit.dynamics.singular import singular_joint
from robokit.engine.trace.graph import Graph
from robokit.engine.trace.ops import INPUT
from robokit.engine.trace.scalar import Scalar
from robokit.model.robot import Robot
from robokit.viewer.walk.text_recorder import Recorder, Step
from robokit.viewer.walk.walked_texts import ABA, CRBA, LTDL, RNEA, WALKED, Walked

MOST_STEPS = 8_000
"""Lines of one algorithm that are recorded; the humanoid's CRBA has 1,073."""

MOST_ENTRY_STEPS = 16_000
"""The same for LTDL, whose lines take single numbers; that of TALOS has 13,593."""

MOST_NODES = 20_000_000
"""More than so many lines can record: they are what ends a long robot's walk."""


@dataclass(frozen=True)
class State:
    """What the algorithms are given.

    Attributes:
        gravity: acceleration of free fall in world axes, 3 numbers [m/s^2].
        q, v, tau: configuration, velocity, joint forces, nq and nv numbers.
        f_ext: of the ground on the bodies 0..N in their coordinates, 6 (N + 1) numbers [N m; N]; or None
            where nothing pushes.
    """

    gravity: Sequence[Any]
    q: Sequence[Any]
    v: Sequence[Any]
    tau: Sequence[Any]
    f_ext: Sequence[Any] | None = None

    def flat(self) -> list[Any]:
        """All of these numbers one after another: the inputs of the page's program."""
        return list(chain(self.gravity, self.q, self.v, self.tau, self.f_ext or ()))


@dataclass(frozen=True)
class Walk:
    """An algorithm that was recorded.

    Attributes:
        steps: its lines.
        result: what it returned, or None.
        whole: whether it came to its end.
    """

    steps: list[Step]
    result: Any
    whole: bool


def traced_state(robot: Robot, pushed: bool) -> State:
    """A state of traced scalars, of one graph.

    Args:
        robot: the robot.
        pushed: whether there are forces on the bodies.
    """
    graph = Graph(MOST_NODES)
    sizes = (3, robot.nq, robot.nv, robot.nv, 6 * (robot.nbodies + 1) if pushed else 0)
    rows = [
        [Scalar(graph, graph.add((INPUT, k, offset))) for offset in range(size)]
        for k, size in enumerate(sizes)
    ]
    return State(rows[0], rows[1], rows[2], rows[3], rows[4] if pushed else None)


def walks(robot: Robot, state: State, without: Sequence[Walked] = ()) -> dict[str, Walk]:
    """RNEA, CRBA, LTDL and ABA recorded at a state, by key.

    ABA finds the accelerations, which the RNEA then takes; LTDL takes the H of CRBA. A robot with coupled
    joints has RNEA and CRBA alone, of its full tree: the coupling comes afterwards. So has one whose mass
    matrix is singular. Without ABA, or where it does not come to its end, the accelerations are 0; without
    all of H there is no LTDL.

    Args:
        robot: the robot.
        state: floats, or scalars of one graph.
        without: what is left out.
    """
    tree = replace(robot.tree, gravity=tuple(state.gravity))  # type: ignore[arg-type]
    q, v, tau = robot.split_q(state.q), robot.split_v(state.v), robot.split_tau(state.tau)
    forces = () if state.f_ext is None else (INPUTS["f_ext"].split(robot, state.f_ext),)
    found: dict[str, Walk] = {}

    def walk(walked: Walked, *arguments: Any) -> Any:
        if walked in without:
            return None
        most = MOST_ENTRY_STEPS if walked is LTDL else MOST_STEPS
        recorder = Recorder(walked.recipe, tree.parent, tree.v_slice, most)
        result = recorder.run(walked.begin, *arguments)
        found[walked.key] = Walk(recorder.steps, result, recorder.complete)
        return result

    solved = robot.coupling is None
    if solved:
        solved = robot.derived.get("singular joint", lambda: singular_joint(robot)) is None
    a = walk(ABA, tree, q, v, tau, *forces) if solved else None
    walk(RNEA, tree, q, v, a or [[0.0] * len(rates) for rates in v], *forces)
    H = walk(CRBA, tree, q)
    if solved and H is not None:
        walk(LTDL, tree.dof_parent, H)
    return {walked.key: found[walked.key] for walked in WALKED if walked.key in found}
