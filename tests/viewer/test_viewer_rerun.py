"""Whole runs in the page's Worker, with the actuators and pushes of a row: the bits of Python."""

from __future__ import annotations

import json

import numpy as np
import pytest
from node_program import run_in_node
from test_viewer_worker import NODE, toy

import robokit as rk
from robokit.sim.record.recorded import first_carried
from robokit.sweeps.reporting.rerun_data import WORKER
from robokit.viewer.data.live_data import live_data_of
from robokit.viewer.page import joined, json_for_html

STEPS, DT = 300, 1e-3


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
    given = {"live": json.loads(json_for_html(live)), "messages": [message]}
    found = run_in_node(text, given)[-1]
    assert found["kind"] == "rerun", found
    assert found["run"]["done"] == STEPS and found["run"]["finite"]
    np.testing.assert_array_equal(found["run"]["q"], run.q[-1])
    np.testing.assert_array_equal(found["run"]["v"], run.v[-1])
    # The push moved it, and the motor lifts the bar.
    assert run.q[-1, 4] > 0.01 and run.q[-1, 7] > 0.1
