"""Whole runs in the page's Worker, with the actuators and pushes of a row: the bits of Python."""

from __future__ import annotations

import json

import numpy as np
import pytest
from node_program import run_in_node
from test_viewer_worker import NODE, toy

import robokit as rk
from robokit.sim.steppers import first_carried
from robokit.sweeps.report import WORKER, RowStarts
from robokit.viewer.live_data import live_data_of
from robokit.viewer.page import joined, json_for_html

STEPS, DT = 300, 1e-3


def rerun_in_node(live, inputs):
    """The Worker's answer to a row's run from these inputs."""
    message = {
        "kind": "rerun",
        "number": 1,
        "inputs": {k: np.ravel(x).tolist() for k, x in inputs.items()},
        "steps": STEPS,
    }
    text = NODE.replace(
        "for (const message of messages)",
        "for (const message of messages) for (const [key, x] of Object.entries(message.inputs ?? {})) "
        "message.inputs[key] = Float64Array.from(x);\n  for (const message of messages)",
    )
    found = run_in_node(text, {"live": json.loads(json_for_html(live)), "messages": [message]})[-1]
    assert found["kind"] == "rerun", found
    assert found["run"]["done"] == STEPS and found["run"]["finite"]
    return found


@pytest.mark.node
def test_a_row_with_a_motor_and_a_push_has_the_bits_of_python():
    robot = toy()
    q = robot.neutral()
    q[6] = 0.3
    first, last, wrench = 50, 120, [0.5, 0.0, 0.0, 30.0, 0.0, 20.0]
    run = rk.simulate(
        robot,
        q,
        duration=STEPS * DT,
        dt=DT,
        ground=True,
        reproducible=True,
        record_every=STEPS,
        actuators=rk.PD(30.0, 1.0, 0.3, joints=["hinge"]),
        pushes=rk.Push("box", wrench, start=first * DT, duration=(last - first) * DT, frame="world"),
    )
    program = run.program
    own = program.parameters(DT)
    live = live_data_of(program, DT, run.q[0], run.v[0], joined(WORKER), True, own, True)
    inputs = {
        "q": run.q[0],
        "v": run.v[0],
        "carried": first_carried(program, run.q[:1], run.v[:1])[0],
        "parameters": own,
        "drives": run.inputs.given[0][0],
        "push_spans": [0, first, last, *wrench],
    }
    found = rerun_in_node(live, inputs)
    np.testing.assert_array_equal(found["run"]["q"], run.q[-1])
    np.testing.assert_array_equal(found["run"]["v"], run.v[-1])
    # The push moved it, and the motor lifts the bar.
    assert run.q[-1, 4] > 0.01 and run.q[-1, 7] > 0.1


@pytest.mark.node
def test_rows_with_masses_slopes_and_friction_of_their_own_have_the_bits_of_python():
    robot = toy()
    mass, slopes = np.array([0.8, 1.3]), [(0.0, 0.0, 1.0), (0.1, 0.05, 1.0)]
    many = robot.with_inertias(robot.inertial_parameters * mass[:, None, None])
    ground = rk.Ground(friction=(0.2, 0.9), normal=slopes)
    q = np.tile(robot.neutral(), (2, 1))
    q[:, 6] = 0.5
    how = {"dt": DT, "ground": ground, "reproducible": True}
    rows = rk.rollout(many, q, steps=STEPS, record_every=STEPS, **how)
    inputs = RowStarts(rk.rollout(many, q, steps=0, **how), None).inputs(DT)
    assert {"inertia", "shape_friction", "shape_placement"} <= set(inputs)
    live = live_data_of(rows.program, DT, q[0], rows.v[0, 0], joined(WORKER), True, None, True)
    for row in range(2):
        found = rerun_in_node(live, {name: x[row] for name, x in inputs.items()})
        np.testing.assert_array_equal(found["run"]["q"], rows.q[-1, row])
        np.testing.assert_array_equal(found["run"]["v"], rows.v[-1, row])
