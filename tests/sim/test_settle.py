"""The contact step against dense algebra, and the compiled step against its own text."""

import numpy as np
import pytest
import sim_models as m
from dense import Dense, skew
from dense_step import DenseStep
from ladder import relative
from scipy.spatial.transform import Rotation

import robokit as rk
from robokit.sim.joints.joint_law import joint_law
from robokit.sim.motion import ledger
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.effective_mass import effective_inertias, effective_masses
from robokit.sim.run.standing import standing_configuration
from robokit.sim.step.drift_kick_drift import kick
from robokit.sim.step.integrators import METHODS
from robokit.sim.step.settle import IMPOSSIBLE, Settled
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


HUMANOID = pytest.param(m.humanoid, marks=pytest.mark.slow)


def _program(robot: rk.Robot, sweeps: int) -> Program:
    law, _ = joint_law(robot, 0.1)
    return Program(robot, "contact", METHODS["contact"], law, GROUND, sweeps)


def _carried(program: Program, seed: int) -> np.ndarray:
    """Bristles and what was not foreseen, between the momentum (six numbers) and the energy (one)."""
    rng = np.random.default_rng(seed)
    kept = 1e-5 * rng.normal(size=program.layout.size)
    points = program.layout.points
    kept[6 : 6 + 2 * points] *= 20.0
    kept[6 + 2 * points : 6 + 3 * points] *= 1e6
    return kept


def _settled(program: Program, q, v, tau, carried) -> Settled:
    tree = program.robot.tree
    qs, vs, taus = tree.split_q(q.tolist()), tree.split_v(v.tolist()), tree.split_v(tau.tolist())
    p = program.problem(program.parameters(DT).tolist())
    return kick(p, qs, vs, taus, DT, Carried(program.layout, carried.tolist()))[1]


def _dense(program: Program, q, v, tau, carried) -> DenseStep:
    layout, robot = program.layout, program.robot
    anchors, unforeseen = np.empty((layout.points, 2)), np.empty(layout.points)
    order, bristles = program.points.order(robot.nbodies), 6 + 2 * layout.points
    anchors[order] = carried[6:bristles].reshape(-1, 2)
    unforeseen[order] = carried[bristles : bristles + layout.points]
    wound = {
        robot.joints[i - 1].v_slice.start + k: x
        for (i, k), x in zip(layout.wound, carried[bristles + layout.points : -1], strict=True)
    }
    mass = dict(zip(program.touching, program.masses, strict=True))
    past = anchors, unforeseen, wound
    return DenseStep(robot, q, v, tau, DT, program.joints, GROUND, program.sweeps, mass, *past)


@pytest.mark.parametrize("sweeps", [1, 2, 3])
@pytest.mark.parametrize("model", [m.quadruped, HUMANOID])
def test_the_sweeps_solve_the_dense_system(model, sweeps):
    robot = model()
    program, stops_used, released, went_on = _program(robot, sweeps), 0, 0, []
    for seed in range(4):
        q, v, tau = _landing(robot, seed)
        carried = _carried(program, seed)
        dense = _dense(program, q, v, tau, carried)
        assert dense.w.sum() >= 0.5, "nothing touches: the test tests nothing"
        stops_used += any(w for w, _ in dense.stops.values())
        released += dense.released
        went_on.append(dense.went_on)
        done = _settled(program, q, v, tau, carried)
        y = np.concatenate(done.y)
        assert relative(y, dense.y) < 1e-9
        assert np.abs(dense.y - dense.v).max() > 0.1
        q_next, *_ = program.text(
            q.tolist(),
            v.tolist(),
            tau.tolist(),
            [0.0] * ledger.SIZE,
            carried.tolist(),
            program.parameters(DT).tolist(),
        )
        assert relative(q_next, dense.q_next) < 1e-11
    assert stops_used, "no joint is at its limit: the test tests nothing"
    assert any(went_on) or sweeps < 3 or model is m.quadruped, "no step goes on: the test tests nothing"
    assert released or sweeps < 3 or model is m.quadruped, "no point is released: the test tests nothing"


def test_effective_masses_against_the_dense_inverse():
    robot = m.humanoid()
    program = _program(robot, 3)
    dense = Dense(robot, robot.neutral(), np.zeros(robot.nv))
    for i, mass in zip(program.touching, program.masses, strict=True):
        (link, *_) = [x for x in robot.links if x.body == i and x.mass > 0.0]
        J = dense.J[link.name]
        I = robot.tree.I[i]
        # The centre of mass of the whole body, in world axes.
        T = dense.T[link.name]
        P = link.placement
        c = T[:3, :3] @ (P.rotation.T @ (np.array(list(I.h)) / I.m - P.position)) + T[:3, 3]
        Jc = np.hstack([-skew(c), np.eye(3)]) @ J
        assert mass == pytest.approx(3.0 / np.trace(Jc @ np.linalg.solve(dense.H, Jc.T)), rel=1e-10)


@pytest.mark.filterwarnings("ignore:contacts did not settle")  # one step, and a hard one
@pytest.mark.parametrize("model", [m.quadruped, HUMANOID])
def test_forces_of_the_points_are_what_changes_the_momentum(model):
    """H (y - v') = dt (sum J_p^T f_p + joint forces), with the forces that trajectories show."""
    robot = model()
    program = _program(robot, 3)
    q, v, tau = _landing(robot, 1)
    carried = np.zeros(program.layout.size)
    done = _settled(program, q, v, tau, carried)
    dense = _dense(program, q, v, tau, carried)
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
        self_collision=False,
    )
    force = trajectory.contacts.forces[1]
    assert relative(force, dense.force) < 1e-9
    change = dense.H @ (np.concatenate(done.y) - dense.v)
    given = DT * np.einsum("mkv,mk->v", dense.J, force)
    for joint, (rub, stops) in zip(robot.joints, done.joint_force[1:], strict=True):
        given[joint.v_slice] += DT * (np.array(rub) + np.array(stops))
    w = dense.w_last
    middle = Dense(robot, dense.q, w)
    given += DT * (tau - middle.C - middle.G + middle.H[:, 3:6] @ np.cross(w[:3], w[3:6]))
    assert np.abs(force[:, 2]).max() > 1.0
    assert relative(given, change) < 1e-9
    # The ledger's impulse is the sum of the points' forces.
    assert trajectory.contact_force[1] == pytest.approx(force.sum(axis=0), rel=1e-9)


@pytest.mark.parametrize("model", [m.quadruped, HUMANOID])
def test_machine_code_and_text_agree_on_a_landing(model):
    robot = model()
    program = _program(robot, 3)
    kernel = program.kernel()
    for seed in range(3):
        q, v, tau = _landing(robot, seed)
        arguments = (q, v, tau, np.zeros(ledger.SIZE), _carried(program, seed), program.parameters(DT))
        for name, fast, plain in zip(
            ("q", "v", "ledger", "carried"), kernel(*arguments), kernel.python(*arguments), strict=True
        ):
            assert relative(fast, plain) < 1e-11, name
        assert kernel(*arguments)[2][ledger.AT["depth"]] == pytest.approx(0.004, abs=2e-3)


def test_mobilities_in_one_walk_are_those_of_one_solve_each():
    closed = m.quadruped()
    samples = closed.inertial_parameters * np.random.default_rng(0).uniform(0.8, 1.2, (3, 1, 1))
    dofs = [(i, k) for i, row in enumerate(closed.tree.v_slice) for k in range(row.stop - row.start)]
    many = closed.with_inertias(samples)
    for k in range(3):
        one = closed.with_inertias(samples[k])
        found = [*effective_masses(one, range(1, 5)), *effective_inertias(one, dofs)]
        rows = [*effective_masses(many, range(1, 5)), *effective_inertias(many, dofs)]
        assert [row[k] for row in rows] == found, "a row is, to the bit, its sample"
    alike = closed.with_inertias(closed.inertial_parameters)
    same = [*effective_masses(alike, range(1, 5)), *effective_inertias(alike, dofs)]
    assert same == pytest.approx([*effective_masses(closed, range(1, 5)), *effective_inertias(closed, dofs)])


def test_the_ground_is_asked_again_where_bodies_of_the_robot_may_touch_too(monkeypatch):
    robot, share = m.quadruped(), []
    law, _ = joint_law(robot, 0.1)
    program = Program(robot, "contact", METHODS["contact"], law, GROUND, 3, pairs=rk.collision_pairs(robot))
    q, v, tau = _landing(robot, 27)
    for let_pass in (1e9, IMPOSSIBLE):
        monkeypatch.setattr("robokit.sim.step.settle.IMPOSSIBLE", let_pass)
        done = _settled(program, q, v, tau, np.zeros(program.layout.size))
        bad = sum(acting.outside + acting.pulled for acting in done.contacts)
        share.append(bad / sum(acting.pressed for acting in done.contacts))
    assert share[0] > 0.01
    assert share[1] < 0.002
