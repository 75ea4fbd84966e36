"""Steps in which a left and a right limb are computed at once: the numbers of the recorded operations."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.engine.backend.targets import OneState
from robokit.sim.run.run_arguments import set_up
from robokit.sim.run.run_inputs import RunInputs
from robokit.sim.run.run_loop import Run


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("name", ["quadruped", pytest.param("humanoid", marks=pytest.mark.slow)])
def test_a_fall_takes_the_recorded_steps(name, collide):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    rng = np.random.default_rng(0)
    q, v = rk.standing_configuration(robot), 2.0 * rng.normal(size=robot.nv)
    setup = set_up(robot, 1.0, 2e-3, rk.Ground(), None, None, None, self_collision=collide)
    run = Run(setup.program, q, v, 2e-3, 1, None, RunInputs(robot, [], [], 2e-3, 300, q[None], 1, False))
    assert run.kernel._maker.planned(OneState()).superword_seeds
    graph = run.kernel.program()
    state = run._arguments()
    for k in range(300):
        after = run.kernel(*state)
        if k % 60 == 0:
            wanted = graph.evaluate(*(x.tolist() for x in state))
            for found, row in zip(after, wanted, strict=True):
                np.testing.assert_allclose(found, row, rtol=1e-9, atol=1e-10 * (1.0 + np.abs(row).max()))
        q, v, ledger, carried = after
        state = (q, v, state[2], ledger, carried, *state[5:])
