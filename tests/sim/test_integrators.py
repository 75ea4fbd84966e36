"""Free motion: what is conserved, and how fast the rest of the error vanishes."""

import numpy as np
import pytest
import sim_models as m
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.sim.integrators import METHODS, STAGES, WEIGHTS

# Error of the energy over 10 s at 1 ms stays below this [J].
DRIFT = {"contact": 0.5, "midpoint": 2e-4, "rkmk4": 1e-9, "energy_momentum": 1e-13}
ORDER = {"contact": 2, "midpoint": 2, "rkmk4": 4, "energy_momentum": 4}
PROJECTED = ["contact", "midpoint", "rkmk4"]
"""Methods whose momentum alone is corrected; the fourth has tests of its own (test_energy_momentum.py)."""


def _spin(robot, seed=0):
    return np.random.default_rng(seed).normal(size=robot.nv)


def test_stages_and_weights_meet_the_conditions_of_order_4():
    A, b = np.zeros((4, 4)), np.array(WEIGHTS)
    for k, row in enumerate(STAGES):
        A[k, :k] = row
    c = A.sum(axis=1)
    met = (
        b.sum(),
        b @ c,
        b @ c**2,
        b @ (A @ c),
        b @ c**3,
        b @ (c * (A @ c)),
        b @ (A @ c**2),
        b @ (A @ (A @ c)),
    )
    assert np.allclose(met, [1, 1 / 2, 1 / 3, 1 / 6, 1 / 4, 1 / 8, 1 / 12, 1 / 24], rtol=0.0, atol=1e-15)


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
    # A rigid body that keeps energy and momentum has little left to err in.
    assert order > ORDER[name] - 0.35 or errors[0] < 1e-11, f"errors {errors} shrink with order {order:.2f}"


def _double_pendulum_reference(robot, state, t):
    def rate(_, x):
        return np.r_[x[2:], rk.aba(robot, x[:2], x[2:], np.zeros(2))]

    return solve_ivp(rate, (0, t), state, "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]


@pytest.mark.parametrize("name", ORDER)
def test_double_pendulum_against_another_integrator(name):
    """SciPy's Dormand-Prince of order 8 on rk.aba: the error vanishes with the order, and to nothing."""
    robot, start, t = m.double_pendulum(), np.array([2.0, 1.0, 0.0, 0.5]), 0.5
    expected = _double_pendulum_reference(robot, start, t)
    errors = []
    for dt in (5e-3, 2.5e-3):
        run = rk.simulate(robot, start[:2], start[2:], duration=t, dt=dt, integrator=name)
        errors.append(np.linalg.norm(np.r_[run.q[-1], run.v[-1]] - expected))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(ORDER[name], abs=0.15)
    assert errors[1] < {"contact": 0.2, "midpoint": 1e-3, "rkmk4": 5e-8, "energy_momentum": 5e-8}[name]


@pytest.mark.parametrize("name", ORDER)
def test_a_tumbling_brick_against_eulers_equations(name):
    """A free body by Euler's equations about its centre of mass and a quaternion, by SciPy."""
    robot = m.brick()
    inertia, com, t = np.array([0.01, 0.03, 0.035]), np.array([0.1, -0.2, 0.05]), 0.5
    w0, u0 = np.array([1.0, 6.0, 0.5]), np.array([0.3, -0.2, 1.0])

    def rate(_, x):
        quat, w = x[:4], x[4:]
        spin = 0.5 * np.r_[-quat[1:] @ w, quat[0] * w + np.cross(quat[1:], w)]
        return np.r_[spin, np.cross(inertia * w, w) / inertia]

    end = solve_ivp(rate, (0, t), np.r_[1, 0, 0, 0, w0], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    R = Rotation.from_quat(np.r_[end[1:4], end[0]]).as_matrix()
    velocity = u0 + np.cross(w0, com)  # of the centre of mass, at the start
    position = com + velocity * t + 0.5 * t**2 * robot.gravity - R @ com
    errors = []
    for dt in (5e-3, 2.5e-3):
        run = rk.simulate(robot, None, np.r_[w0, u0], duration=t, dt=dt, integrator=name)
        w, x, y, z = run.q[-1, :4]
        turned = (Rotation.from_matrix(R).inv() * Rotation.from_quat([x, y, z, w])).magnitude()
        errors.append(np.r_[turned, run.q[-1, 4:] - position, run.v[-1, :3] - end[4:]])
    rotation, shift = ([np.linalg.norm(e[part]) for e in errors] for part in (slice(0, 1), slice(1, 4)))
    assert np.log2(rotation[0] / rotation[1]) == pytest.approx(ORDER[name], abs=0.3)
    assert np.log2(shift[0] / shift[1]) == pytest.approx(ORDER[name], abs=0.3)
    assert (
        np.linalg.norm(errors[1])
        < {"contact": 0.2, "midpoint": 5e-3, "rkmk4": 1e-6, "energy_momentum": 1e-6}[name]
    )


@pytest.mark.parametrize("name", PROJECTED)
def test_centre_of_mass_follows_the_parabola(name):
    robot = m.free_chain()
    worst = []
    for dt in (2e-3, 1e-3):
        run = rk.simulate(robot, None, _spin(robot), duration=1.0, dt=dt, integrator=name)
        com, t = rk.center_of_mass(robot, run.q), run.t[:, None]
        expected = com[0] + t * run.momentum[0, 3:] / robot.total_mass + 0.5 * t**2 * robot.gravity
        worst.append(np.abs(com - expected).max())
    assert worst[0] < {"contact": 1e-13, "midpoint": 2e-6, "rkmk4": 1e-10}[name]
    if name == "contact":  # puts the centre of mass there
        return
    # Momenta are exact: what is left is that of the positions, and it vanishes with the order.
    assert np.log2(worst[0] / worst[1]) == pytest.approx(ORDER[name], abs=0.25)


@pytest.mark.parametrize("name", ORDER)
def test_momentum_that_the_projection_gives_back_vanishes_with_the_order(name):
    """Conservation is not only the projection's work: the steps themselves miss as little as they should."""
    robot = m.free_chain()
    dt = {1: 2e-3, 2: 4e-3, 4: 1e-2}[ORDER[name]]
    coarse, fine = (
        rk.simulate(
            robot, None, _spin(robot), duration=0.4, dt=step, integrator=name, gravity=(0, 0, 0)
        ).summary
        for step in (dt, dt / 2)
    )
    for part in ("momentum_corrected_angular", "momentum_corrected_linear"):
        assert np.log2(coarse[part] / fine[part]) == pytest.approx(ORDER[name], abs=0.1)


@pytest.mark.parametrize("name", ["midpoint", "rkmk4"])
def test_momentum_without_the_projection(name, monkeypatch):
    """The text of the steps with the projection taken out, on plain floats."""
    from robokit.sim import integrators, motion
    from robokit.sim.joint_forces import joint_law
    from robokit.sim.step_kernel import Program

    robot = m.free_chain().with_gravity((0, 0, 0))
    monkeypatch.setattr(integrators, "keep", lambda step, q, v, *rest: (q, v))
    program = Program(robot, name, METHODS[name], joint_law(robot)[0])
    v0 = _spin(robot)
    before = rk.centroidal_momentum(robot, robot.neutral(), v0)
    missing = []
    for steps in (10, 20):
        state = [robot.neutral().tolist(), v0.tolist(), [0.0] * motion.SIZE, [0.0] * program.layout.size]
        for _ in range(steps):
            state = program.text(*state[:2], [0.0] * robot.nv, *state[2:], [0.2 / steps])
        missing.append(np.abs(rk.centroidal_momentum(robot, state[0], state[1]) - before).max())
    assert missing[1] > 1e-12, "the projection is still there: the test tests nothing"
    assert np.log2(missing[0] / missing[1]) > ORDER[name] - 0.3


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
        m.free_chain(), None, 5 * _spin(m.free_chain()), duration=2.0, integrator="contact"
    )
    assert np.abs(np.linalg.norm(trajectory.q[:, :4], axis=1) - 1).max() < 1e-12


def test_unknown_integrator_names_the_nearest():
    with pytest.raises(rk.UnknownName, match="did you mean 'rkmk4'"):
        rk.simulate(m.box(), integrator="rkmk")
    with pytest.raises(rk.UnknownName, match="did you mean 'midpoint'"):
        rk.simulate(m.box(), integrator="midpont")
    with pytest.raises(rk.UnknownName, match="contact"):
        rk.simulate(m.box(), integrator="rkmk4", ground=rk.Ground())


@pytest.mark.parametrize("run", [rk.simulate, rk.rollout, rk.Simulation])
def test_the_former_name_of_contact_warns_where_it_is_given(run):
    """Python shows warnings of names that will go only where they point at the program that is run."""
    options = {} if run is rk.Simulation else {"duration": 1e-3}
    with pytest.warns(DeprecationWarning, match="'euler' is now 'contact'") as said:
        made = run(m.box(), integrator="euler", **options)
    assert [each.filename for each in said] == [__file__]
    assert run is rk.Simulation or made.summary["integrator"] == "contact"


def test_every_method_is_in_the_documented_table():
    from robokit.sim import integrators

    for name, row in METHODS.items():
        line = next(x for x in integrators.__doc__.splitlines() if x.split()[:1] == [name])
        assert line.split()[1] == str(row.order)
