"""What the end of a step puts right: momentum, energy, the path of the centre of mass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ladder
import numpy as np
import pytest

import robokit as rk
from robokit.contact import accounts as con
from robokit.contact.accounts import ENTRIES, GIVEN, IMPULSE, TOUCHED
from robokit.contact.fields import FORCES, MOTION, ROBOT, SOLVER, STATE, STEP
from robokit.contact.robot_data import robot_data
from robokit.engine.loops.fields import kernel_of
from robokit.model import Robot, couple, replace_armature

TABLES = (*SOLVER, *STEP, *FORCES)
ASKED = {"dt", "kept", "keeps", "ledger", "account", "mean", "motion_dof"}
ARRAYS = [replace(a, role="inout") if a.name == "account" else a for a in TABLES if a.name in ASKED]
BEGIN, CONSERVE = (
    kernel_of(f"test_{f.__name__}", f, (*ROBOT, *STATE, *MOTION, *ARRAYS)) for f in (con.begin, con.conserve)
)
DT = 1e-2


class Step:
    """The end of a step of a robot that is off by a little from what is kept.

    Attributes:
        robot: the robot.
        kept: what is kept at the start of the step.
        q, v: the state after it, and the ledger.
    """

    def __init__(self, robot: Robot, keeps: int, off: float, touched: bool, **account: Any) -> None:
        rng = np.random.default_rng(4)
        self.robot, self.plain = robot, ladder.Plain(robot)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        given = {
            **robot_data(robot),
            "motion_dof": np.zeros(0, np.int32),
            "dt": np.array([DT]),
            "keeps": np.array([keeps]),
        }
        given |= {
            "motion_dof": np.zeros(0, np.int32),
            "kept": np.zeros(12),
            "account": np.zeros(8),
            "ledger": np.zeros(len(ENTRIES)),
        }
        self.kept = BEGIN(**given, q=q, v=v)["kept"]
        self.start = q, v
        # A step without forces: the centre of mass is thrown, and the rest is off.
        self.q1 = robot.integrate(q, off * rng.normal(size=robot.nv))
        self.v1 = v + off * rng.normal(size=robot.nv)
        given["account"][TOUCHED] = touched
        given["account"][GIVEN] = self.work = account.get("work", 0.0)
        given["account"][IMPULSE : IMPULSE + 6] = self.impulse = np.array(account.get("impulse", [0.0] * 6))
        found = CONSERVE(**given | {"kept": self.kept}, q=self.q1, v=self.v1)
        self.q, self.v, self.ledger, self.after = (found[k] for k in ("q", "v", "ledger", "kept"))

    def full(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of all joints."""
        coupling = self.robot.tree.coupling
        return (q, v) if coupling is None else (np.array(coupling.full_q(q)), coupling.G @ v)

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """About the centre of mass, (6,)."""
        return self.plain.momentum(*self.full(q, v))

    def com(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass in the world."""
        return self.plain.com(self.full(q, np.zeros(self.robot.nv))[0])

    def energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """T + V [J]."""
        q, v = self.full(q, v)
        return self.plain.kinetic(q, v) + self.plain.potential(q)

    def wanted(self) -> np.ndarray:
        """Momentum after the step."""
        weight = self.robot.total_mass * self.robot.gravity * DT
        return self.momentum(*self.start) + self.impulse + np.concatenate([np.zeros(3), weight])


def placed() -> Robot:
    """A robot that floats, from a placement that is turned."""
    turned = rk.Placement(ladder.rotation(np.random.default_rng(2)), np.array([1.0, 2.0, 3.0]))
    return rk.together({"only": (ladder.chain(3, "floating"), turned)})


FLOATING: dict[str, Callable[[], Robot]] = {
    "chain": lambda: ladder.chain(4, "floating"),
    "tree": lambda: ladder.random_tree(1, "floating", kinds=("revolute", "planar", "spherical", "helical")),
    "rotors": lambda: replace_armature(ladder.chain(3, "floating"), 0.2),
    "followers": lambda: couple(ladder.follower()),
    "placed": placed,
}


IMPULSE_GIVEN = 1e-3 * np.array([0.1, -0.2, 0.3, 4.0, 5.0, -6.0])


def inner_energy(step: Step, q: np.ndarray, v: np.ndarray) -> float:
    """Kinetic energy about the centre of mass [J]."""
    q, v = step.full(q, v)
    lin = step.plain.momentum(q, v)[3:]
    return step.plain.kinetic(q, v) - lin @ lin / (2 * step.robot.total_mass)


@pytest.mark.parametrize("name", FLOATING)
@pytest.mark.parametrize("off", [0.0, 1e-4])
@pytest.mark.parametrize("impulse", [np.zeros(6), IMPULSE_GIVEN], ids=["free", "pushed"])
def test_a_floating_robot_keeps_momentum_path_and_energy(name: str, off: float, impulse: np.ndarray) -> None:
    robot = FLOATING[name]()
    # The work on the motion of the whole and on that about its centre of mass.
    before = Step(robot, con.FLOATS, off, False, impulse=impulse)
    mean = (before.momentum(*before.start) + before.wanted())[3:] / (2 * robot.total_mass)
    step = Step(robot, con.FLOATS, off, False, impulse=impulse, work=0.01 + impulse[3:] @ mean)
    wanted = step.wanted()
    assert np.abs(step.momentum(step.q, step.v) - wanted).max() < 1e-12 * np.abs(wanted).max()
    assert np.abs(step.com(step.q) - step.com(step.start[0]) - DT * mean).max() < 1e-13
    assert inner_energy(step, step.q, step.v) == pytest.approx(
        inner_energy(step, *step.start) + 0.01, rel=1e-6
    )


@pytest.mark.parametrize("name", FLOATING)
def test_a_step_with_contacts_makes_no_energy_and_moves_no_joint(name: str) -> None:
    robot = FLOATING[name]().with_gravity([0.0, 0.0, 0.0])
    base = robot.joints[0].q_slice
    for work in (-0.01, 0.01):
        step = Step(robot, con.FLOATS, 0.0, True, work=work)
        change = inner_energy(step, step.q, step.v) - inner_energy(step, *step.start)
        assert change == pytest.approx(min(work, 0.0), rel=1e-3, abs=1e-12)
        missing = step.momentum(step.q, step.v) - step.wanted()
        assert np.abs(missing).max() < 1e-12 * np.abs(step.wanted()).max()
        # The whole is moved to where its momentum brings it, and not turned.
        mean = (step.momentum(*step.start) + step.wanted())[3:] / (2 * robot.total_mass)
        assert np.abs(step.com(step.q) - step.com(step.start[0]) - DT * mean).max() < 1e-13
        moved = np.abs(step.q - step.q1)
        moved[base.start + 4 : base.stop] = 0.0
        assert moved.max() < 1e-14
        # What is lost is not given back.
        assert step.after[con.ENERGY_AT] == pytest.approx(inner_energy(step, step.q, step.v), rel=1e-9)


@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("work", [-0.05, 0.05])
def test_a_fixed_base_keeps_energy(touched: bool, work: float) -> None:
    step = Step(ladder.random_tree(0), con.FIXED, 0.0, touched, work=work)
    change = step.energy(step.q, step.v) - step.energy(*step.start)
    assert change == pytest.approx(min(work, 0.0) if touched else work, rel=1e-9, abs=1e-12)
    assert (step.q == step.q1).all()


def test_a_world_keeps_momentum_and_energy_of_all() -> None:
    turned = rk.Placement(ladder.rotation(np.random.default_rng(2)), np.array([1.0, 2.0, 3.0]))
    tree, chain = ladder.random_tree(1, "floating"), ladder.chain(3, "floating")
    world = rk.together({"one": tree, "two": (chain, turned), "three": (ladder.chain(2, "floating"), turned)})
    step = Step(world, con.TOGETHER, 1e-3, False, impulse=IMPULSE_GIVEN)
    wanted = step.wanted()
    assert np.abs(step.momentum(step.q1, step.v1) - wanted).max() > 1e-4
    assert np.abs(step.momentum(step.q, step.v) - wanted).max() < 1e-12 * np.abs(wanted).max()
    # All are moved alike, to where the momentum brings the whole.
    mean = (step.momentum(*step.start) + wanted)[3:] / (2 * world.total_mass)
    assert np.abs(step.com(step.q) - step.com(step.start[0]) - DT * mean).max() < 1e-13
    assert step.energy(step.q, step.v) == pytest.approx(step.energy(*step.start), rel=1e-9)
    bases = [j for j in world.joints if j.kind == "floating" and world.tree.parent[j.body] == 0]
    moved = np.ones(world.nq, dtype=bool)
    for joint in bases:
        moved[joint.q_slice.start + 4 : joint.q_slice.stop] = False
    assert (step.q == step.q1)[moved].all() and not (step.q == step.q1)[~moved].any()
    # By one rigid motion of all, and one factor of what moves otherwise.
    joints = np.ones(world.nv, dtype=bool)
    for joint in bases:
        joints[joint.v_slice] = False
    factor = (step.v / step.v1)[joints]
    assert np.ptp(factor) < 1e-12 and not (step.v == step.v1)[~joints].any()


def test_rest_stays_rest() -> None:
    robot = ladder.chain(4, "floating")
    q = robot.random_configuration(np.random.default_rng(0))
    given = {
        **robot_data(robot.with_gravity([0.0, 0.0, 0.0])),
        "dt": np.array([DT]),
        "keeps": np.array([con.FLOATS]),
    }
    given |= {
        "motion_dof": np.zeros(0, np.int32),
        "account": np.zeros(8),
        "ledger": np.zeros(len(ENTRIES)),
        "kept": np.zeros(12),
    }
    given["kept"] = BEGIN(**given, q=q, v=np.zeros(robot.nv))["kept"]
    found = CONSERVE(**given, q=q, v=np.zeros(robot.nv))
    assert np.abs(found["q"] - q).max() < 1e-15
    assert not found["v"].any()


@pytest.mark.parametrize("count", [1, 2])
def test_momentum_about_a_fixed_point_changes_by_the_forces_that_are_reported(count: int) -> None:
    """In each step, with points and forces of contacts; the centre of mass was off its path before."""
    alone = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    robot = alone if count == 1 else rk.together({"a": alone, "b": alone})
    start = [rk.standing_configuration(alone, height=0.02 + 0.5 * k, tilt=0.3, seed=k) for k in range(count)]
    v = np.tile(np.r_[np.zeros(6), 2.0 * np.random.default_rng(1).normal(size=alone.nv - 6)], count)
    dt = 2e-3
    run = rk.simulate(robot, np.concatenate(start), v, duration=0.3, dt=dt, ground=True, record_every=1)
    com = np.array([rk.center_of_mass(robot, q) for q in run.q])
    weight = robot.total_mass * robot.gravity
    forces, points = run.contacts.forces[1:], run.contacts.points[1:]
    assert (np.abs(forces).sum(axis=(1, 2)) > 0.0).mean() > 0.1
    # The weight acts where the momentum brings the centre of mass in half a step.
    middle = com[:-1] + 0.5 * dt * run.momentum[:-1, 3:] / robot.total_mass
    given = np.cross(points, forces).sum(axis=1) + np.cross(middle, weight)
    L = run.momentum[:, :3] + np.cross(com, run.momentum[:, 3:])
    assert np.abs(np.diff(L, axis=0) - dt * given).max() < 1e-10
