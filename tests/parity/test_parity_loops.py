"""Closed loops beside MuJoCo, whose equality constraints are made stiff."""

from __future__ import annotations

import numpy as np
import pytest
from loop_robots import closed_four_bar, free_four_bar, spatial_loop

import robokit as rk
from robokit.mjcf import to_mjcf

pytestmark = pytest.mark.parity


def swung(robot: rk.Robot, q, v, times, dt: float = 1e-4) -> np.ndarray:
    """MuJoCo's configurations at the times, its fourth-order method at a short step."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjSpec.from_string(to_mjcf(robot)).compile()
    model.opt.timestep, model.opt.integrator = dt, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.solver, model.opt.tolerance, model.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 1e-14, 200
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.eq_solref[:] = [-4e6, -4e3]
    model.eq_solimp[:] = [0.9999, 0.9999, 0.001, 0.5, 2]
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    found = []
    for k in range(1, round(times[-1] / dt) + 1):
        mujoco.mj_step(model, data)
        if np.isclose(k * dt, times, atol=0.1 * dt).any():
            found.append(data.qpos.copy())
    return np.array(found)


def test_the_four_bar_swings_as_mujocos():
    robot = free_four_bar()
    run = rk.simulate(robot, closed_four_bar(robot), duration=1.0, dt=1e-3, record_every=100)
    np.testing.assert_allclose(swung(robot, run.q[0], run.v[0], run.t[1:]), run.q[1:], atol=1e-7)


def test_a_spatial_loop_swings_as_mujocos():
    robot = spatial_loop()
    run = rk.simulate(robot, v0=[2.0, 0, 0, 0, 1.0], duration=0.5, dt=1e-3, record_every=100)
    np.testing.assert_allclose(swung(robot, run.q[0], run.v[0], run.t[1:]), run.q[1:], atol=1e-6)
