"""Forces from outside: pushes, and wrenches on a base that floats."""

import numpy as np
import pytest
import sim_models as m

import robokit as rk

METHODS = ["contact", "midpoint", "rkmk4"]
NONE = (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("way", ["push", "controller", "tau"])
def test_a_push_accelerates_a_floating_box(name, way):
    """98 N on 10 kg: 9.8 m/s after a second, 4.9 m away."""
    box = m.box(mass=10.0)
    options = {"duration": 1.0, "integrator": name, "gravity": NONE}
    wrench = [0, 0, 0, 98.0, 0, 0]
    if way == "tau":
        run = rk.rollout(box, tau=wrench, **options).trajectory(0)
    elif way == "push":
        run = rk.simulate(box, pushes=[("box", (98.0, 0, 0), NONE, 0.0, 1.0)], **options)
    else:
        run = rk.simulate(box, controller=lambda t, q, v: wrench, **options)
    assert run.v[-1] == pytest.approx([0, 0, 0, 9.8, 0, 0], abs=1e-12)
    assert run.q[-1, 4] == pytest.approx(4.9, abs=1e-9)
    assert run.energy.work[-1] == pytest.approx(98.0 * 4.9, rel=1e-12)
    assert run.summary["momentum_balance_linear"] < 1e-10
    assert run.summary["energy_balance"] < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_an_impulse_is_the_change_of_momentum(name):
    box = m.box(mass=10.0)
    J, at = np.array([5.0, 1.0, 2.0]), np.array([0.1, 0.05, -0.02])
    run = rk.simulate(box, duration=0.1, integrator=name, gravity=NONE, pushes=("box", J, at, 0.05))
    k = int(np.searchsorted(run.t, 0.05 + 1e-9))
    assert not run.v[:k].any()
    assert run.momentum[-1, 3:] == pytest.approx(J, rel=1e-14)
    # It turns the box by a thousandth within the step over which rkmk4 spreads it.
    assert run.momentum[-1, :3] == pytest.approx(np.cross(at, J), rel=2e-3 if name == "rkmk4" else 1e-12)
    assert np.abs(np.diff(run.momentum[k:], axis=0)).max() < 1e-13


@pytest.mark.parametrize("name", METHODS)
def test_balances_close_in_free_flight(name):
    """Several pushes on a tumbling chain: momentum to rounding, energy to the error of free motion."""
    robot = m.tumbler()
    rng = np.random.default_rng(0)
    q, v = robot.random_configuration(0), rng.normal(size=robot.nv)
    pushes = [
        rk.Push("l1", rng.normal(size=3) * 5, (0.1, 0, 0.2), 0.02, 0.06),
        rk.Push("l2", rng.normal(size=6) * 3, (0, 0.1, 0), 0.03, 0.05),
        rk.Push("l0", rng.normal(size=3) * 4, (0.3, 0, 0), 0.0, 0.08, frame="world"),
    ]

    def base(t, q, v):
        return [0.1, -0.2, 0.3, 1.0, 2.0, -1.0, *np.zeros(robot.nv - 6)]

    options = {"duration": 0.1, "integrator": name, "dt": 5e-4}
    run = rk.simulate(robot, q, v, pushes=pushes, controller=base, **options)
    free = rk.simulate(robot, q, v, **options)
    assert run.summary["momentum_balance_linear"] < 1e-11
    assert run.summary["momentum_balance_angular"] < 1e-11
    moved = np.abs(run.energy.work).max()
    assert moved > 0.2
    if name == "rkmk4":
        assert run.summary["energy_balance"] < 1e-9 * run.summary["energy_exchanged"]
    else:
        assert run.summary["energy_balance"] < 10 * free.summary["energy_balance"] + 3e-5 * moved
    # What the projection had to add is the error of the method, not the pushes.
    given = np.linalg.norm(run.momentum[-1, 3:] - free.momentum[-1, 3:])
    assert given > 0.3
    assert run.summary["momentum_corrected_linear"] < 0.01 * given


@pytest.mark.parametrize("name", METHODS)
def test_a_push_is_a_force_of_the_dynamics(name):
    """The first step's acceleration is that of aba with the same f_ext."""
    robot = m.tumbler()
    rng = np.random.default_rng(3)
    q, v = robot.random_configuration(1), rng.normal(size=robot.nv) * 0.1
    force, point, dt = np.array([3.0, -2.0, 5.0]), np.array([0.05, 0.1, -0.2]), 1e-6
    pushed = rk.simulate(
        robot, q, v, duration=dt, dt=dt, integrator=name, pushes=("l2", force, point, 0.0, 1.0)
    )
    free = rk.simulate(robot, q, v, duration=dt, dt=dt, integrator=name)
    J = rk.link_jacobian(robot, q, "l2", at=point)
    expected = np.linalg.solve(rk.crba(robot, q), J[3:].T @ force)
    assert (pushed.v[-1] - free.v[-1]) / dt == pytest.approx(expected, abs=1e-3)


def test_pushes_in_rollouts_are_those_of_simulations():
    robot = m.tumbler()
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(k) for k in range(3)])
    wrenches = rng.normal(size=(3, 6)) * 4
    both = [("l1", (2.0, 0, 1.0), (0.1, 0, 0), 0.01, 0.02)]
    options = {"duration": 0.05, "integrator": "contact"}
    many = rk.rollout(robot, q, **options, pushes=[rk.Push("l2", wrenches, (0, 0, 0.1), 0.0, 0.03), *both])
    for k in range(3):
        one = rk.simulate(
            robot, q[k], **options, pushes=[rk.Push("l2", wrenches[k], (0, 0, 0.1), 0.0, 0.03), *both]
        )
        assert many.q[:, k] == pytest.approx(one.q, abs=1e-12)
        row = many.trajectory(k)
        assert np.array_equal(row.q, many.q[:, k])
        assert row.energy.work == pytest.approx(one.energy.work, abs=1e-12)
    with pytest.raises(rk.ShapeError, match="pushes: expected one set of numbers, got 3 rows"):
        rk.simulate(robot, q[0], duration=0.05, pushes=rk.Push("l2", wrenches))
    with pytest.raises(rk.ShapeError, match="expected 1 row or 2, as pushes"):
        rk.rollout(robot, q, duration=0.05, pushes=rk.Push("l2", wrenches[:2]))


@pytest.mark.parametrize(
    ("start", "duration"), [(0.0333, 0.0777), (0.0004, 0.0004), (0.02, 0.05), (0.0019, 0.0002)]
)
def test_a_push_may_begin_and_end_within_a_step(start, duration):
    """The velocity and the way of a free box are those of the times given."""
    run = rk.simulate(
        m.box(), duration=0.15, pushes=("box", (5.0, 0, 0), (0, 0, 0), start, duration), gravity=(0, 0, 0)
    )
    mass = m.box().total_mass
    gained = 5.0 / mass * duration
    assert run.v[-1, 3] == pytest.approx(gained, rel=1e-12)
    assert run.q[-1, 4] == pytest.approx(gained * (0.15 - start - 0.5 * duration), abs=0.5e-3 * gained)


def test_a_box_on_the_ground_slides_when_pushed_enough():
    """Coulomb: below mu m g it stays, above it accelerates with the difference."""
    box = m.box(mass=10.0)
    q = rk.standing_configuration(box)
    options = {"duration": 0.5, "ground": rk.Ground(friction=0.5)}
    low = (0.0, 0.0, -0.1)
    stays = rk.simulate(box, q, pushes=("box", (40.0, 0, 0), low, 0.1, 0.4), **options)
    slides = rk.simulate(box, q, pushes=("box", (60.0, 0, 0), low, 0.1, 0.4), **options)
    assert abs(stays.q[-1, 4]) < 2e-4
    assert slides.v[-1, 3] == pytest.approx((60.0 - 0.5 * 98.1) / 10.0 * 0.4, rel=0.02)
    assert slides.contacts.forces[-2].sum(axis=0)[2] == pytest.approx(98.1, rel=1e-2)
    assert slides.contact_force[-1, 2] == pytest.approx(98.1, rel=1e-2)


@pytest.mark.parametrize(
    "pushes, words",
    [
        (("boxx", (1, 0, 0)), "did you mean 'box'"),
        (("box", (1, 0, 0), NONE, 2.0), "after the last step"),
        (("box", (1, 0)), "force"),
        (3, "pushes"),
    ],
)
@pytest.mark.parametrize("run", [rk.simulate, rk.rollout])
def test_refused(run, pushes, words):
    with pytest.raises(rk.RobokitError, match=words):
        run(m.box(), duration=0.01, pushes=pushes)
