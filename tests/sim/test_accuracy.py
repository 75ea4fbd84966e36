"""Steps that are iterated to an accuracy: they reach it, and their forces are possible."""

import warnings

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.engine.loops.kernel import ArrayOf, LoopKernel
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.sim.stepping import iterated_steps
from robokit.sim.stepping.acceleration import Known, memory, mix
from robokit.spatial.control_flow import for_range

ACCURACY = 1e-9
MU = 0.6


def _chain() -> rk.Robot:
    """Three boxes on two hinges, with limits, damping and dry friction."""
    builder = ModelBuilder("chain")
    shape = Shape(Box((0.3, 0.1, 0.06)), Placement(position=(0.15, 0.0, 0.0)))
    for k in range(3):
        inertia = np.diag([1e-3, 5e-3, 5e-3])
        builder.link(f"l{k}", mass=0.8, com=(0.15, 0, 0), inertia=inertia, collisions=(shape,))
    for k in range(2):
        builder.joint(
            f"j{k}", "revolute", f"l{k}", f"l{k + 1}", placement=Placement(position=(0.3, 0.0, 0.0)),
            axis=(0, 1, 0) if k else (0, 0, 1), lower=-0.6, upper=0.6, damping=0.01, friction=0.05,
        )  # fmt: skip
    return builder.build("floating")


def _start(robot: rk.Robot, height: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    q = rk.standing_configuration(robot, height=height, tilt=0.4, seed=1)
    v = np.zeros(robot.nv)
    v[:6] = [2.0, 3.0, -1.0, 1.5, 0.4, -0.5]
    return q, v


def _shares(t: rk.Trajectory) -> tuple[float, float]:
    """(pulled, outside) of the whole impulse, of every step's forces."""
    force = t.contacts.forces
    normal, tangential = force[..., 2], np.linalg.norm(force[..., :2], axis=-1)
    pulled = np.maximum(-normal, 0.0).sum() / normal.sum()
    return pulled, np.maximum(tangential - MU * np.maximum(normal, 0.0), 0.0).sum() / normal.sum()


@pytest.mark.parametrize(
    ("model", "steps"),
    [(m.box, 400), (_chain, 250), pytest.param(m.quadruped, 800, marks=pytest.mark.slow)],
)
def test_every_step_of_a_fall_reaches_it_and_its_forces_are_possible(model, steps):
    robot = model()
    q, v = _start(robot)
    v = v if model is not m.quadruped else None
    ground = rk.Ground(friction=MU, accuracy=ACCURACY)
    t = rk.simulate(robot, q, v, duration=1e-3 * steps, dt=1e-3, ground=ground, record_every=1)
    assert t.summary["accuracy"] == ACCURACY
    assert t.summary["steps_not_settled"] == 0
    assert t.summary["first_not_settled"] is None
    assert t.summary["residual_largest"] <= ACCURACY
    assert 1.0 < t.summary["sweeps_mean"] < 30.0
    weight = robot.total_mass * m.G
    assert t.contact_force[:, 2].max() > weight, "nothing fell: the test tests nothing"
    assert max(_shares(t)) <= 1e-9
    assert np.abs(t.contacts.forces.sum(axis=1) - t.contact_force).max() <= 1e-9 * weight
    assert t.summary["contact_impulse_pulled"] <= 1e-9
    assert t.summary["contact_impulse_outside"] <= 1e-9


@pytest.mark.slow
def test_rows_move_as_single_runs_and_fail_alone():
    robot, ground = m.box(), rk.Ground(friction=MU)
    q, v = _start(robot)
    starts = np.stack([v, 0.5 * v, np.full(robot.nv, np.nan), 0.0 * v])
    options = {"duration": 0.15, "dt": 1e-3, "ground": ground, "record_every": 5, "accuracy": ACCURACY}
    with pytest.warns(UserWarning, match="1 of 4 rows"):
        many = rk.rollout(robot, q, starts, **options)
    assert many.failed.tolist() == [2]
    assert many.summary["steps_not_settled"] == 0
    for k in (0, 1, 3):
        one = rk.simulate(robot, q, starts[k], **options)
        assert np.abs(many.q[:, k] - one.q).max() < 1e-7
    row = many.trajectory(0)
    assert np.array_equal(row.q, many.q[:, 0])


def test_a_hard_step_is_what_fifty_sweeps_come_near():
    """A box that lands on an edge, sliding and turning: three sweeps are further off than fifty."""
    robot = m.box()
    q, v = _start(robot, -2e-5)

    def after(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ground = rk.Ground(friction=MU, **options)
            return rk.simulate(robot, q, v, duration=1e-3, dt=1e-3, ground=ground).v[-1]

    exact = after(accuracy=1e-12)
    three, fifty = (np.abs(after(sweeps=n) - exact).max() for n in (3, 50))
    assert fifty <= 1e-5
    assert fifty < three


def test_steps_that_miss_it_are_counted_and_said(monkeypatch):
    monkeypatch.setattr(iterated_steps, "MOST_SWEEPS", 3)
    robot = m.box()
    q, v = _start(robot)
    with pytest.warns(
        UserWarning, match=r"steps did not settle to the accuracy 1e-09 m/s, the first at t = "
    ):
        t = rk.simulate(robot, q, v, duration=0.1, dt=1e-3, ground=rk.Ground(friction=MU, accuracy=1e-9))
    assert 0 < t.summary["steps_not_settled"] < t.summary["steps"]
    assert t.summary["residual_largest"] > ACCURACY
    assert 0.0 <= t.summary["first_not_settled"] < 0.1


def test_a_step_does_not_depend_on_what_was_computed_before():
    """Its memory holds whatever another step left there; the same start gives the same bits."""
    robot = m.box()
    q, v = _start(robot, -2e-5)
    options = {"duration": 0.01, "dt": 1e-3, "ground": rk.Ground(friction=MU, accuracy=ACCURACY)}
    first = rk.simulate(robot, q, v, **options)
    step = iterated_steps.stepper(first.program)
    given = [first.q[0], first.v[0], np.zeros(robot.nv), np.zeros(first.program.entries), first.carried[0]]
    alone = step(*given, first.program.parameters(1e-3))
    for _ in range(3):
        step(*given[:1], 0.5 * v, *given[2:], first.program.parameters(1e-3))
    for a, b in zip(alone, step(*given, first.program.parameters(1e-3)), strict=True):
        assert np.array_equal(a, b)


def test_an_accuracy_needs_a_ground_and_double_precision():
    robot = m.box()
    with pytest.raises(rk.ShapeError, match=r"accuracy: .* there is no ground"):
        rk.simulate(robot, accuracy=1e-9)
    with pytest.raises(rk.ShapeError, match=r"Ground\(accuracy=...\): expected a finite number > 0"):
        rk.Ground(accuracy=0.0)
    with pytest.raises(rk.ShapeError, match="double precision"):
        rk.rollout(robot, ground=rk.Ground(height=-1.0), accuracy=1e-9, dtype="float32")


def test_the_acceleration_solves_linear_iterations():
    """y <- M y + b, of each row by itself: with four differences known, exact for four unknowns."""
    rng = np.random.default_rng(0)
    M, b = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4))
    M *= 0.9 / np.abs(np.linalg.eigvals(M)).max(axis=1)[:, None, None]

    def text(turns, M, b, y, g, *work):
        def turn(_, *known):
            for i in range(4):
                g[i] = b[i] + sum((M[i, k] * y[k] for k in range(4)), 0.0)
            return mix(4, y, g, *work, Known(*known))

        for_range(turns, turn, *Known())

    arrays = [
        ArrayOf("M", (4, 4)),
        ArrayOf("b", (4,)),
        ArrayOf("y", (4,), "inout"),
        ArrayOf("g", (4,), "work"),
    ]
    kernel = LoopKernel("linear", text, ["turns"], [*arrays, *memory(4)])
    y = kernel(turns=12, M=M, b=b, y=np.zeros((3, 4)), engine="python")["y"]
    solved = np.linalg.solve(np.eye(4) - M, b[:, :, None])[:, :, 0]
    assert np.abs(y - solved).max() < 1e-6
