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
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.engine.loops.fields import kernel_of
from robokit.model import Box, ModelBuilder, Robot, Shape, Sphere, couple, replace_armature

TABLES = (*SOLVER, *STEP, *FORCES)
ASKED = {"dt", "kept", "keeps", "ledger", "account", "seen", "corrected", "mean", "motion_dof", "whole_group"}
ASKED |= {"by_group", "row_group"}
GIVEN_HERE = {"account", "row_group"}
ARRAYS = [replace(a, role="inout") if a.name in GIVEN_HERE else a for a in TABLES if a.name in ASKED]
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
        wholes = len(robot_data(robot)["wholes"])
        self.robot, self.plain = robot, ladder.Plain(robot)
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        given = {
            **robot_data(robot),
            "n_H": sizes_of_matrices(robot_data(robot))["n_H"],
            "motion_dof": np.zeros(0, np.int32),
            "dt": np.array([DT]),
            "keeps": np.array([keeps]),
        }
        given |= {
            "motion_dof": np.zeros(0, np.int32),
            "kept": np.zeros((wholes, 11)),
            "account": np.zeros((wholes, 13)),
            "row_group": np.zeros(len(robot_data(robot)["row_whole"]), np.int32),
            "ledger": np.zeros(len(ENTRIES)),
        }
        self.kept = BEGIN(**given, q=q, v=v)["kept"]
        self.start = q, v
        # A step without forces: the centre of mass is thrown, and the rest is off.
        self.q1 = robot.integrate(q, off * rng.normal(size=robot.nv))
        self.v1 = v + off * rng.normal(size=robot.nv)
        given["account"][:, TOUCHED] = touched
        given["account"][-1, GIVEN] = self.work = account.get("work", 0.0)
        given["account"][-1, IMPULSE : IMPULSE + 6] = self.impulse = np.array(
            account.get("impulse", [0.0] * 6)
        )
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
    before = Step(robot, con.FREE, off, False, impulse=impulse)
    mean = (before.momentum(*before.start) + before.wanted())[3:] / (2 * robot.total_mass)
    step = Step(robot, con.FREE, off, False, impulse=impulse, work=0.01 + impulse[3:] @ mean)
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
        step = Step(robot, con.FREE, 0.0, True, work=work)
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
        assert step.after[-1, con.ENERGY_AT] == pytest.approx(inner_energy(step, step.q, step.v), rel=1e-9)


@pytest.mark.parametrize("touched", [False, True])
@pytest.mark.parametrize("work", [-0.05, 0.05])
def test_a_fixed_base_keeps_energy(touched: bool, work: float) -> None:
    step = Step(ladder.random_tree(0), con.FIXED, 0.0, touched, work=work)
    change = step.energy(step.q, step.v) - step.energy(*step.start)
    assert change == pytest.approx(min(work, 0.0) if touched else work, rel=1e-9, abs=1e-12)
    assert (step.q == step.q1).all()


def test_each_robot_of_a_world_keeps_its_own_momentum_path_and_energy() -> None:
    turned = rk.Placement(ladder.rotation(np.random.default_rng(2)), np.array([1.0, 2.0, 3.0]))
    tree, chain = ladder.random_tree(1, "floating"), ladder.chain(3, "floating")
    alone = [
        tree,
        rk.together({"two": (chain, turned)}),
        rk.together({"three": (ladder.chain(2, "floating"), turned)}),
    ]
    world = rk.together({"one": tree, "two": (chain, turned), "three": (ladder.chain(2, "floating"), turned)})
    mean = np.zeros(3)
    for off in (1e-5, 0.0):
        # The last one is given an impulse.
        step = Step(world, con.FREE, off, False, impulse=IMPULSE_GIVEN, work=IMPULSE_GIVEN[3:] @ mean)
        at = np.zeros(2, int)
        for robot in alone:
            own = [slice(k, k + n) for k, n in zip(at, (robot.nq, robot.nv), strict=True)]
            at += robot.nq, robot.nv
            before, after = ((q[own[0]], v[own[1]]) for q, v in (step.start, (step.q, step.v)))
            impulse = IMPULSE_GIVEN if robot is alone[-1] else np.zeros(6)
            weight = np.r_[np.zeros(3), robot.total_mass * robot.gravity * DT]
            momenta = [rk.centroidal_momentum(robot, *state) for state in (before, after)]
            wanted = momenta[0] + impulse + weight
            assert np.abs(momenta[1] - wanted).max() < 1e-12 * np.abs(wanted).max()
            mean = (momenta[0] + wanted)[3:] / (2 * robot.total_mass)
            way = rk.center_of_mass(robot, after[0]) - rk.center_of_mass(robot, before[0])
            assert np.abs(way - DT * mean).max() < 1e-13
            inner = [
                rk.kinetic_energy(robot, *state) - h[3:] @ h[3:] / (2 * robot.total_mass)
                for state, h in zip((before, after), momenta, strict=True)
            ]
            if off == 0.0 or robot is not alone[-1]:
                assert inner[1] == pytest.approx(inner[0], rel=1e-9)


def test_rest_stays_rest() -> None:
    robot = ladder.chain(4, "floating")
    q = robot.random_configuration(np.random.default_rng(0))
    wholes = len(robot_data(robot)["wholes"])
    given = {
        **robot_data(robot.with_gravity([0.0, 0.0, 0.0])),
        "n_H": sizes_of_matrices(robot_data(robot))["n_H"],
        "dt": np.array([DT]),
        "keeps": np.array([con.FREE]),
    }
    given |= {
        "motion_dof": np.zeros(0, np.int32),
        "account": np.zeros((wholes, 13)),
        "row_group": np.zeros(len(robot_data(robot)["row_whole"]), np.int32),
        "ledger": np.zeros(len(ENTRIES)),
        "kept": np.zeros((wholes, 11)),
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


def unexplained(run: rk.Trajectory, parts: dict[str, Robot], of: tuple[str, ...]) -> tuple[np.ndarray, float]:
    """Change of momentum of some robots of a world about its origin that their weight and contacts
    do not explain, (steps, 6), and the largest impulse.
    """
    dt, gravity = run.t[1] - run.t[0], run.robot.gravity
    L, com, mass, at = np.zeros((len(run.t), 6)), np.zeros((len(run.t), 3)), 0.0, np.zeros(2, int)
    for name, robot in parts.items():
        q, v = run.q[:, at[0] : at[0] + robot.nq], run.v[:, at[1] : at[1] + robot.nv]
        at += robot.nq, robot.nv
        if name in of:
            c, h = rk.center_of_mass(robot, q), rk.centroidal_momentum(robot, q, v)
            L += np.hstack([h[:, :3] + np.cross(c, h[:, 3:]), h[:, 3:]])
            com, mass = com + robot.total_mass * c, mass + robot.total_mass
    # The weight acts where the momentum brings the centre of mass in half a step.
    middle = com[:-1] / mass + 0.5 * dt * L[:-1, 3:] / mass
    given = np.hstack([np.cross(middle, mass * gravity), np.tile(mass * gravity, (len(middle), 1))])
    largest = 0.0
    for found in (run.contacts, run.body_contacts):
        for k, links in enumerate(zip(found.links, found.against, strict=True)):
            f, p = np.nan_to_num(found.forces[1:, k]), np.nan_to_num(found.points[1:, k])
            for sign, link in zip((1.0, -1.0), links, strict=True):
                if str(link).split("/")[0] in of:
                    given += sign * np.hstack([np.cross(p, f), f])
                    largest = max(largest, dt * float(np.abs(f).max()))
    return np.diff(L, axis=0) - dt * given, largest


def test_momentum_of_each_body_of_a_world_changes_by_its_own_contacts() -> None:
    """About a fixed point, in each step; what one body's spin missed changed the speed of others before."""
    rng = np.random.default_rng(2)
    humanoid = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    parts, q, v = dict[str, Robot](), list[float](), list[float]()
    for k in range(6):
        shape, mass = Box((0.2, 0.1 + 0.02 * k, 0.3)) if k < 4 else Sphere(0.1), 0.5 + k
        b = ModelBuilder("body").link("b", mass, inertia=mass * 0.01 * np.eye(3), collisions=[Shape(shape)])
        parts[f"b{k}"] = b.build("floating")
        turn = rng.normal(size=4)
        q += [*turn / np.linalg.norm(turn), *rng.uniform(-0.3, 0.3, size=2), 0.3 + 0.35 * k]
        v += [*6.0 * rng.normal(size=3), *rng.normal(size=3)]
    for k in range(2):
        parts[f"h{k}"] = humanoid
        q += [*rk.standing_configuration(humanoid, height=0.1, tilt=0.3, seed=k)]
        q[4 - humanoid.nq] += 0.8 * k - 2.2
        v += [*rng.normal(size=humanoid.nv)]
    world = rk.together(parts)
    run = rk.simulate(
        world, np.array(q), np.array(v), 0.5, 2e-3, ground=True, self_collision=True, record_every=1
    )
    touched = 0
    for name in parts:
        off, impulse = unexplained(run, parts, (name,))
        assert np.abs(off).max() < 1e-9 * max(impulse, 0.01)
        touched += impulse > 0.0
    assert touched > 6 and np.abs(run.body_contacts.forces).any()


def test_bodies_that_a_loop_ties_have_one_momentum_and_stay_tied() -> None:
    """A rigid motion of each by itself would open the loop."""
    shape, inertia = Shape(Box((0.2, 0.1, 0.3))), np.diag([0.01, 0.02, 0.03])
    body = ModelBuilder("box").link("b", 2.0, inertia=inertia, collisions=[shape]).build("floating")
    parts = {"a": body, "b": body, "c": body}
    ends = [rk.Placement(position=np.array([side, 0.0, 0.0])) for side in (0.15, -0.15)]
    builder = ModelBuilder.from_robot(rk.together(parts))
    world = builder.loop_joint("tie", "spherical", "a/b", "b/b", *ends).build("fixed")
    assert list(robot_data(world)["body_whole"]) == [0, 1, 1, 2]
    one = np.array([1.0, 0.0, 0.0, 0.0])
    q = np.r_[one, 0.0, 0.0, 1.0, one, 0.3, 0.0, 1.0, one, 0.1, 0.05, 1.4]
    v = np.r_[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 0.0, 0.0, -0.6, 3.0, 2.0, 1.0, 0.0, 0.0, -2.0]
    v[9:12] = np.cross(v[:3] + v[6:9], [0.15, 0.0, 0.0])
    run = rk.simulate(world, q, v, 0.4, 2e-3, ground=True, self_collision=True, record_every=1)
    assert np.abs(run.contacts.forces).any() and np.abs(run.body_contacts.forces).any()
    assert run.summary["loop_gap"] < 1e-12
    for of in (("a", "b"), ("c",)):
        assert np.abs(unexplained(run, parts, of)[0]).max() < 1e-12
    assert np.abs(unexplained(run, parts, ("a",))[0]).max() > 0.1  # the force of the loop


def test_what_touches_nothing_keeps_momentum_and_energy_while_others_collide() -> None:
    shape, inertia = Shape(Box((0.2, 0.1, 0.3))), np.diag([0.01, 0.02, 0.03])
    body = ModelBuilder("box").link("b", 2.0, inertia=inertia, collisions=[shape]).build("floating")
    far, near = [1.0, 0, 0, 0, 50.0, 0, 80.0], [0.9, 0.3, 0.3, 0.1, 0, 0, 0.3]
    v = [3.0, 2.0, -1.0, 0.5, 0.2, 0.0]
    world = rk.together({"near": body, "under": body, "far": body})
    q = np.array([*near[:6], 0.8, *near, *far])
    run = rk.simulate(world, q, np.tile(v, 3), 0.5, 2e-3, ground=True, self_collision=True, record_every=1)
    assert np.abs(run.contacts.forces).any() and np.abs(run.body_contacts.forces).any()
    h = rk.centroidal_momentum(body, run.q[:, 14:], run.v[:, 12:])
    assert np.abs(h[:, :3] - h[0, :3]).max() < 1e-13
    fall = h[0, 3:] + np.arange(len(h))[:, None] * 2e-3 * body.total_mass * body.gravity
    assert np.abs(h[:, 3:] - fall).max() < 1e-11
    energy = rk.kinetic_energy(body, run.q[:, 14:], run.v[:, 12:]) + rk.potential_energy(body, run.q[:, 14:])
    assert np.ptp(energy) < 1e-11 * energy[0]


def test_a_prescribed_joint_of_one_robot_leaves_another_its_energy() -> None:
    """Its own energy is not kept, as what moves it gives any; before, none in the world was."""
    inertia = np.diag([0.01, 0.02, 0.03])
    body = ModelBuilder("body").link("b", 2.0, inertia=inertia).build("floating")
    world = rk.together({"arm": rk.load_urdf(rk.find_robot("double_pendulum")), "far": body})
    wave = rk.PrescribedMotion(world.joints[0].name, lambda t: 0.3 * np.sin(5.0 * t))
    q, v = np.r_[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 4.0, 0.0, 60.0], np.r_[1.5, 0.0, 5.0, 7.0, -3.0, np.zeros(3)]
    run = rk.simulate(world, q, v, 0.5, 2e-3, motions=wave)
    q, v = run.q[:, 2:], run.v[:, 2:]
    energy = rk.kinetic_energy(body, q, v) + rk.potential_energy(body, q)
    assert np.ptp(energy) < 1e-13 * energy[0]


def test_what_touches_nothing_pays_for_no_bounce() -> None:
    """A bounce is as it is alone: it gained what the step of one that tumbles in the air had lost."""
    edges = np.array([0.2, 0.1, 0.3])
    inertia = 2.0 / 12.0 * np.diag(edges @ edges - edges**2)
    box = ModelBuilder("box").link("b", 2.0, inertia=inertia, collisions=[Shape(Box(tuple(edges)))])
    body = box.build("floating")
    far = np.array([1.0, 0.0, 0.0, 0.0, 5.0, 0.0, 8.0]), np.array([40.0, 30.0, -40.0, 0.0, 0.0, 0.0])
    ground = rk.Ground(friction=1.0, restitution=1.0)
    given: dict[str, Any] = {"duration": 0.5, "dt": 2e-3, "ground": ground, "self_collision": True}
    for seed in (0, 4):
        rng = np.random.default_rng(seed)
        turn = rng.normal(size=4)
        q = np.r_[turn / np.linalg.norm(turn), 0.0, 0.0, 0.4]
        v = np.r_[20.0 * rng.normal(size=3), 0.0, 0.0, 0.0]
        alone = rk.simulate(rk.together({"near": body}), q, v, **given)
        world = rk.together({"near": body, "far": body})
        beside = rk.simulate(world, np.r_[q, far[0]], np.r_[v, far[1]], **given)
        assert np.abs(alone.contacts.forces).any()
        assert np.abs(beside.v[:, :6] - alone.v).max() < 1e-6


@pytest.mark.parametrize("restitution", [0.0, 1.0])
def test_a_pile_never_has_more_energy_than_at_the_start(restitution: float) -> None:
    for seed, dt in enumerate((5e-4, 1e-3, 2e-3, 4e-3)):
        rng = np.random.default_rng(seed)
        parts, q, v = dict[str, Robot](), list[float](), list[float]()
        for k in range(4):
            mass, edges = rng.uniform(0.3, 3.0), rng.uniform(0.1, 0.22, size=3)
            inertia = mass / 12 * np.diag(edges @ edges - edges**2)
            b = ModelBuilder("body").link("b", mass, inertia=inertia, collisions=[Shape(Box(tuple(edges)))])
            parts[f"b{k}"] = b.build("floating")
            turn = rng.normal(size=4)
            q += [*turn / np.linalg.norm(turn), *rng.uniform(-0.04, 0.04, size=2), 0.3 + 0.4 * k]
            v += [*4.0 * rng.normal(size=3), *0.3 * rng.normal(size=3)]
        world, ground = rk.together(parts), rk.Ground(friction=0.6, restitution=restitution)
        run = rk.simulate(world, np.array(q), np.array(v), 1.0, dt, ground=ground, self_collision=True)
        energy = rk.kinetic_energy(world, run.q, run.v) + rk.potential_energy(world, run.q)
        assert np.abs(run.body_contacts.forces).any()
        assert energy.max() <= energy[0] * (1.0 + 1e-13)
