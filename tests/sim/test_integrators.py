"""Free motion: what is conserved, and how fast the rest of the error vanishes."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.sim.integrators import METHODS, RK4, Tableau

# Error of the energy over 10 s at 1 ms stays below this [J].
DRIFT = {"euler": 0.5, "midpoint": 2e-4, "rkmk4": 1e-9}
ORDER = {"euler": 1, "midpoint": 2, "rkmk4": 4}


def _spin(robot, seed=0):
    return np.random.default_rng(seed).normal(size=robot.nv)


def test_tableau_asserts_its_own_mathematics():
    assert sum(RK4.b) == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match="add up to 1"):
        Tableau(a=((), (0.5,)), b=(0.5, 0.4), order=1)
    with pytest.raises(ValueError, match="lower triangular"):
        Tableau(a=((0.5,), (0.5,)), b=(0.5, 0.5), order=1)
    with pytest.raises(ValueError, match="sum b c"):
        Tableau(a=((), (0.1,)), b=(0.5, 0.5), order=2)


@pytest.mark.parametrize("name", ORDER)
def test_double_pendulum_keeps_its_energy(name):
    trajectory = rk.simulate(m.double_pendulum(), [1.0, 0.5], duration=10.0, integrator=name)
    assert np.abs(trajectory.energy.total - trajectory.energy.total[0]).max() < DRIFT[name]


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("model", [m.free_chain, m.brick, m.double_pendulum])
def test_error_shrinks_with_the_order(name, model):
    robot = model()
    v0 = _spin(robot)
    # Far from rounding, so coarse steps for the fourth order.
    dt = {1: 1e-3, 2: 4e-3, 4: 1e-2}[ORDER[name]]

    def end(step, integrator=name):
        trajectory = rk.simulate(robot, None, v0, duration=0.4, dt=step, integrator=integrator)
        return trajectory.q[-1], trajectory.v[-1]

    q_ref, v_ref = end(1e-3 / 2, "rkmk4")
    errors = []
    for step in (dt, dt / 2):
        q, v = end(step)
        errors.append(np.linalg.norm(robot.difference(q_ref, q)) + np.linalg.norm(v - v_ref))
    order = np.log2(errors[0] / errors[1])
    assert order > ORDER[name] - 0.35, f"errors {errors} shrink with order {order:.2f}"


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("model", [m.free_chain, m.brick])
def test_free_flight_conserves_momentum_to_rounding(name, model):
    robot = model()
    trajectory = rk.simulate(
        robot, None, 3 * _spin(robot), duration=2.0, dt=2e-3, integrator=name, gravity=(0, 0, 0)
    )
    change = np.abs(trajectory.momentum - trajectory.momentum[0]).max()
    assert change < 1e-11 * np.abs(trajectory.momentum).max()


@pytest.mark.parametrize("name", ORDER)
def test_a_throw_falls_as_galileo_says(name):
    """Linear momentum grows by M g t exactly, angular momentum about the centre of mass does not."""
    robot = m.free_chain()
    trajectory = rk.simulate(robot, None, _spin(robot), duration=1.0, integrator=name)
    expected = trajectory.momentum[0] + np.outer(trajectory.t, [0, 0, 0, 0, 0, -m.G * robot.total_mass])
    assert np.abs(trajectory.momentum - expected).max() < 1e-10
    assert trajectory.summary["momentum_balance_linear"] < 1e-10
    assert trajectory.summary["momentum_balance_angular"] < 1e-10


def test_rkmk4_keeps_the_energy_of_a_tumbling_humanoid():
    robot = m.without_limits(m.humanoid())
    v0 = _spin(robot)
    trajectory = rk.simulate(robot, None, v0, duration=2.0, gravity=(0, 0, 0), integrator="rkmk4")
    assert trajectory.summary["energy_balance"] < 1e-6 * trajectory.energy.kinetic[0]


def test_quaternions_stay_unit():
    trajectory = rk.simulate(
        m.free_chain(), None, 5 * _spin(m.free_chain()), duration=2.0, integrator="euler"
    )
    assert np.abs(np.linalg.norm(trajectory.q[:, :4], axis=1) - 1).max() < 1e-12


def test_unknown_integrator_names_the_nearest():
    with pytest.raises(rk.UnknownName, match="rkmk4"):
        rk.simulate(m.box(), integrator="rkmk")
    with pytest.raises(rk.UnknownName, match="contact"):
        rk.simulate(m.box(), integrator="rkmk4", ground=rk.Ground())


def test_every_method_is_in_the_documented_table():
    from robokit.sim import integrators

    for name, row in METHODS.items():
        line = next(x for x in integrators.__doc__.splitlines() if x.split()[:1] == [name])
        assert line.split()[1:3] == [str(row.order), str(row.calls)]
