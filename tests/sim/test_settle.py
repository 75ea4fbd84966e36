"""The contact sweep against dense algebra, and the compiled step against its own text."""

import numpy as np
import pytest
import sim_models as m
from dense import Dense
from dense_step import DenseStep
from ladder import relative
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.sim.standing import standing_configuration
from robokit.sim.step import ledger
from robokit.sim.step.contact import settle
from robokit.sim.step.integrators import METHODS, acceleration, along
from robokit.sim.step.joint_forces import joint_law
from robokit.sim.step.step_kernel import Program

DT = 1e-3
GROUND = rk.Ground(friction=0.6, height=0.25)


def _landing(robot: rk.Robot, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state in which some points touch, some slide and some joints are beyond their limits."""
    rng = np.random.default_rng(seed)
    q = standing_configuration(robot, -0.004, 0.4, seed, ground_height=GROUND.height)
    for joint in robot.joints[1:]:
        if rng.random() < 0.4:
            q[joint.q_slice] = joint.upper + 0.003 if rng.random() < 0.5 else joint.lower - 0.003
    q[6] = rk.standing_height(robot, q, -0.004, GROUND.height)
    v = 0.3 * rng.normal(size=robot.nv)
    w, x, y, z = q[:4]
    down = Rotation.from_quat([x, y, z, w]).inv().apply([0.5, 0.0, -1.0])
    v[3:6] += down  # forward and onto the ground
    return q, v, rng.normal(size=robot.nv)


def _program(robot: rk.Robot, iterations: int) -> Program:
    law, _ = joint_law(robot, 0.1)
    return Program(robot, "contact", METHODS["contact"], law, GROUND, iterations)


def _settled(program: Program, q, v, tau):
    tree = program.robot.tree
    qs, vs, taus = tree.split_q(q.tolist()), tree.split_v(v.tolist()), tree.split_v(tau.tolist())
    p = program.problem(program.parameters(DT).tolist())
    v_star = along(vs, DT, acceleration(tree, qs, vs, taus))
    return settle(
        tree, tree.transforms(qs), qs, vs, v_star, DT, p.joints, p.points, p.ground, program.iterations
    )


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("model", [m.quadruped, m.humanoid])
def test_the_sweep_solves_the_dense_system(model, iterations):
    robot = model()
    program, stops_used = _program(robot, iterations), 0
    for seed in range(3):
        q, v, tau = _landing(robot, seed)
        dense = DenseStep(robot, q, v, tau, DT, program.joints, GROUND, iterations)
        assert dense.w.sum() >= 0.5, "nothing touches: the test tests nothing"
        stops_used += dense.stops_used
        done = _settled(program, q, v, tau)
        y = np.concatenate(done.y)
        assert relative(y, dense.y) < 1e-10
        assert np.abs(dense.y - dense.v_star).max() > 0.1
        q_next, *_ = program.text(
            q.tolist(), v.tolist(), tau.tolist(), [0.0] * ledger.SIZE, program.parameters(DT).tolist()
        )
        assert relative(q_next, dense.q_next) < 1e-12
    assert stops_used, "no joint is at its limit: the test tests nothing"


@pytest.mark.filterwarnings("ignore:contacts did not settle")  # one step, and a hard one
@pytest.mark.parametrize("model", [m.quadruped, m.humanoid])
def test_forces_of_the_points_are_what_changes_the_momentum(model):
    """H (y - v*) = dt (sum J_p^T f_p + joint forces), with the forces that trajectories show."""
    robot = model()
    program = _program(robot, 2)
    q, v, tau = _landing(robot, 1)
    done = _settled(program, q, v, tau)
    dense = DenseStep(robot, q, v, tau, DT, program.joints, GROUND, 2)
    H = Dense(robot, q, v).H
    trajectory = rk.simulate(
        robot,
        q,
        v,
        duration=DT,
        dt=DT,
        ground=GROUND,
        controller=lambda t, q, v: tau,
        joint_damping=0.1,
        record_every=1,
    )
    assert relative(trajectory.contacts.points[0], dense.at) < 1e-13
    force = trajectory.contacts.forces[0]
    impulse = DT * np.einsum("mkv,mk->v", dense.J, force)
    for joint, (rub, stops) in zip(robot.joints, done.joint_force[1:], strict=True):
        impulse[joint.v_slice] += DT * (np.array(rub) + np.array(stops))
    change = H @ (np.concatenate(done.y) - dense.v_star)
    assert np.abs(force[:, 2]).max() > 1.0
    assert relative(impulse, change) < 1e-10
    # The book's impulse is the sum of the points' forces.
    assert trajectory.contact_force[1] == pytest.approx(force.sum(axis=0), rel=1e-9)


@pytest.mark.parametrize("model", [m.quadruped, m.humanoid])
def test_machine_code_and_text_agree_on_a_landing(model):
    robot = model()
    program = _program(robot, 2)
    kernel = program.kernel()
    for seed in range(3):
        q, v, tau = _landing(robot, seed)
        arguments = (q, v, tau, np.zeros(ledger.SIZE), program.parameters(DT))
        for name, fast, plain in zip(
            ("q", "v", "ledger"), kernel(*arguments), kernel.python(*arguments), strict=True
        ):
            assert relative(fast, plain) < 1e-11, name
        assert kernel(*arguments)[2][ledger.AT["depth"]] == pytest.approx(0.004, abs=1e-9)
