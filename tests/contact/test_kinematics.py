"""Kinematics and dynamics of robots that are numbers, against the algorithms on trees, and against laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import ladder
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import robots

import robokit as rk
from robokit.contact import kinematics as kin
from robokit.contact.fields import MOTION, ROBOT
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.contact.vectors import about, force, vector
from robokit.engine.loops.fields import kernel_of, real
from robokit.interop import PinocchioAdapter
from robokit.model import ModelBuilder, Robot, couple, replace_armature
from robokit.spatial import Transform
from robokit.spatial.control_flow import for_range
from robokit.spatial.scalars import where
from tests.contact.random_steps import whole_of_blocks

Arrays = dict[str, np.ndarray]

SHOWN = (*ROBOT, *(replace(a, role="out") for a in MOTION))
STATE = (real("q", "nq"), real("v", "nv"))
RESULTS = [real(name, "nv", role="out") for name in ("C", "Hv", "tau")]
RESULTS += [real("of_whole", 11, role="out"), real("rate", 6, role="out"), real("wrench", "n_bodies", 6)]


def _everything(x: Any) -> None:
    kin.place_bodies(x, x.q)
    kin.velocities(x, x.v, x.V)
    kin.mass_matrix(x)
    kin.velocities(x, x.v, x.W)
    kin.bias(x, x.C)
    kin.multiply(x, x.v, x.Hv)

    def on_world(b: Any, *total: Any) -> tuple[Any, ...]:
        f = about(force(x.f, b), -vector(x.seat, b))
        return tuple(t + where(x.parent[b] == 0, more, 0.0) for t, more in zip(total, f, strict=True))

    for k, number in enumerate(for_range(x.n_bodies, on_world, *[0.0] * 6)):
        x.rate[k] = number
    m, h = kin.whole_mass(x)
    of_whole = [*kin.spatial_momentum(x, x.V), *(h * (1.0 / m))]
    of_whole += [kin.kinetic_energy(x, x.v, x.V), kin.potential_energy(x)]
    for k, number in enumerate(of_whole):
        x.of_whole[k] = number
    for_range(x.n_bodies, lambda b: _copy(x.wrench, x.f, b))
    kin.generalized(x, x.f, x.tau)


def _copy(source: Any, to: Any, b: Any) -> None:
    for k in range(6):
        to[b, k] = source[b, k]


EVERYTHING = kernel_of("test_kinematics", _everything, (*SHOWN, *STATE, *RESULTS))
STRICT = kernel_of(
    "strict_kinematics", _everything, (*SHOWN, *STATE, *RESULTS), reproducible=True, checked=True
)

MOVED = (real("q", "nq", role="inout"), real("v", "nv", role="inout"), real("h", 1))


def _advance(x: Any) -> None:
    kin.advance(x, x.q, x.v, x.v, x.h[0])


ADVANCE = kernel_of("test_advance", _advance, (*ROBOT, *MOVED))
STRICT_ADVANCE = kernel_of("strict_advance", _advance, (*ROBOT, *MOVED), reproducible=True, checked=True)


def everything(robot: Robot, q: np.ndarray, v: np.ndarray, engine: str | None = None) -> Arrays:
    """All that the loops find."""
    wrench = np.random.default_rng(5).normal(size=(robot.nbodies + 1, 6))
    data = robot_data(robot)
    n_H = sizes_of_matrices(data)["n_H"]
    found = EVERYTHING(engine=engine, **data, n_H=n_H, q=q, v=v, wrench=wrench)
    n = robot.nv
    H = whole_of_blocks(found["H"], data["bands"])
    assert not H[:n, n:].any()
    return {**found, "H": H[:n, :n], "given": wrench}


def advanced(robot: Robot, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """(q, v) after a time h."""
    moved = ADVANCE(**robot_data(robot), q=q, v=v, h=np.array([h]))
    return moved["q"], moved["v"]


# ---- the oracle -------------------------------------------------------------------------------------------


class Oracle:
    """The same by the algorithms on trees, and by dense matrices where joints follow others."""

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> None:
        self.robot, self.tree, coupling = robot, robot.tree, robot.tree.coupling
        self.G = np.eye(self.tree.nv) if coupling is None else coupling.G
        self.q = np.asarray(q if coupling is None else coupling.full_q(q), float)
        self.v = self.G @ v
        self.plain = ladder.Plain(robot)

    def bases(self) -> list[slice]:
        """Dofs of the bases that float."""
        tree = self.tree
        free = [i for i in tree.outward() if tree.parent[i] == 0 and tree.joint[i].kind.name == "floating"]
        return [tree.v_slice[i] for i in free]

    def poses(self) -> tuple[np.ndarray, np.ndarray]:
        """Rotations and origins of all bodies in the world."""
        X = [Transform.identity()]
        for i in self.tree.outward():
            X.append(self.tree.X(i, self.q[self.tree.q_slice[i]].tolist()) @ X[self.tree.parent[i]])
        return np.array([each.E.T.rows for each in X]), np.array([list(each.r) for each in X])

    def H(self) -> np.ndarray:
        """G^T H G, with rotors."""
        return self.G.T @ self.plain.crba(self.q) @ self.G

    def bias(self) -> np.ndarray:
        """Inverse dynamics of bases whose linear velocity stays in axes that do not turn."""
        a = np.zeros(self.tree.nv)
        for s in self.bases():
            base = self.v[s]
            a[s] = [0, 0, 0, *-np.cross(base[:3], base[3:])]
        return self.G.T @ self.plain.rnea(self.q, self.v, a)


def check(robot: Robot, q: np.ndarray, v: np.ndarray, tolerance: float = 1e-12) -> None:
    """All quantities at one state."""
    found, oracle = everything(robot, q, v), Oracle(robot, q, v)
    R, p = oracle.poses()
    size = 1.0 + np.abs(p - p[1:2]).max(initial=0.0)
    assert np.abs(found["R"].reshape(-1, 3, 3) - R).max() < tolerance
    places = found["p"] + found["seat"] + found["origin"]
    assert np.abs(places - p).max() < tolerance * (size + np.abs(p).max())
    H, C = oracle.H(), oracle.bias()
    near(found["H"], np.tril(H), tolerance)
    near(found["Hv"], H @ v, tolerance, np.abs(H) @ np.abs(v))
    energies = oracle.plain.kinetic(oracle.q, oracle.v), oracle.plain.potential(oracle.q)
    near(found["C"], C, tolerance, np.abs(C) + energies[0] + size * 10.0 * robot.total_mass)
    scale = np.abs(energies[0]) + 10.0 * robot.total_mass * (size + np.abs(p).max())
    near(found["of_whole"][9:], np.array(energies), tolerance, scale)
    near(
        found["of_whole"][6:9] + found["origin"],
        oracle.plain.com(oracle.q),
        tolerance * (size + np.abs(p).max()),
    )
    momentum, c = found["of_whole"][:6], found["of_whole"][6:9]
    about_G = np.concatenate([momentum[:3] - np.cross(c, momentum[3:]), momentum[3:]])
    expected = oracle.plain.momentum(oracle.q, oracle.v)
    near(about_G, expected, tolerance, 1.0 + np.abs(expected).max() * size)
    # Power: wrenches on bodies at the velocities of the bodies.
    assert v @ found["tau"] == pytest.approx((found["given"] * found["V"]).sum(), rel=1e-9, abs=1e-9)


def near(found: np.ndarray, expected: np.ndarray, tolerance: float, scale: Any = None) -> None:
    """Equal up to a share of the largest entry, or of a scale."""
    scale = np.abs(expected).max(initial=0.0) if scale is None else np.max(scale, initial=0.0)
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * scale


def state_of(robot: Robot, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A state at random."""
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), rng.normal(size=robot.nv)


# ---- robots -----------------------------------------------------------------------------------------------


@cache
def three() -> Robot:
    """A world of an arm, a floating tree of all kinds of joints and a robot that floats, at placements."""
    turned = rk.Placement(ladder.rotation(np.random.default_rng(2)), np.array([1.0, 2.0, 3.0]))
    tree, loose = ladder.random_tree(2, "floating"), ladder.chain(3, "floating")
    return rk.together({"arm": ladder.chain(4), "tree": (tree, turned), "loose": (loose, turned)})


def still() -> Robot:
    """A robot with followers of a fixed joint and of each other."""
    b = ModelBuilder("still").link("l0").joint("held", "fixed", "l0", "h").link("h", 1.0, (0.1, 0, 0))
    b.joint("a", "revolute", "h", "l1", axis=(0, 0, 1), mimic=rk.Mimic("held", 2.0, 0.3))
    b.joint("b", "revolute", "l1", "l2", axis=(1, 0, 1))
    b.joint("c", "prismatic", "l2", "l3", axis=(1, 0, 0), mimic=rk.Mimic("b", 1.0, 0.0))
    b.joint("d", "revolute", "l3", "l4", axis=(0, 1, 0), mimic=rk.Mimic("c", -2.0, 0.1))
    for k in range(1, 5):
        b.link(f"l{k}", 1.0 + k, (0.1, 0.2 * k, 0.0), np.diag([1.0, 1.2, 1.4]))
    return b.build()


ROBOTS: dict[str, Callable[[], Robot]] = {
    "tree of all kinds": lambda: ladder.random_tree(0),
    "floating tree of all kinds": lambda: ladder.random_tree(1, "floating"),
    "followers": lambda: couple(ladder.follower()),
    "followers of what stands still": lambda: couple(still()),
    "rotors": lambda: replace_armature(ladder.chain(5, "floating"), 0.3),
    "followers with rotors": lambda: couple(replace_armature(ladder.follower(), 0.3)),
    "three in a world": three,
}


@pytest.mark.parametrize("name", ROBOTS)
def test_everything_is_that_of_the_algorithms(name: str) -> None:
    robot = ROBOTS[name]()
    for seed in range(2):
        check(robot, *state_of(robot, seed))


@pytest.mark.parametrize("name", [name for name in ladder.OWN if name != "chain"])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_shipped_robots(name: str, base: str) -> None:
    robot = rk.load_urdf(ladder.ROBOTS / f"{name}.urdf", base=base)
    check(robot, *state_of(robot))


@given(robots(), st.integers(0, 99))
def test_random_trees(robot: Robot, seed: int) -> None:
    if robot.nv:
        check(robot, *state_of(robot, seed), 1e-11)


@pytest.mark.parametrize("name", ROBOTS)
def test_plain_python_computes_the_same_bits_and_no_index_is_out_of_range(name: str) -> None:
    robot = ROBOTS[name]()
    q, v = state_of(robot)
    data = robot_data(robot)
    given = {**data, "n_H": sizes_of_matrices(data)["n_H"], "q": q, "v": v}
    given["wrench"] = np.ones((robot.nbodies + 1, 6))
    compiled, plain = STRICT(**given), STRICT(engine="python", **given)
    assert [k for k in compiled if not np.array_equal(compiled[k], plain[k])] == []
    given = {**robot_data(robot), "q": q, "v": v, "h": np.array([0.1])}
    compiled, plain = STRICT_ADVANCE(**given), STRICT_ADVANCE(engine="python", **given)
    assert np.array_equal(compiled["q"], plain["q"]) and np.array_equal(compiled["v"], plain["v"])


def test_a_robot_is_the_same_far_from_the_origin() -> None:
    robot = ladder.random_tree(1, "floating")
    q, v = state_of(robot)
    near_by = everything(robot, q, v)
    q[4:7] += np.array([128.0, -64.0, 32.0])  # exact: these are powers of two, the base's place is rounded
    far = everything(robot, q, v)
    for name in ("H", "C", "S", "I", "V"):
        near(far[name], near_by[name], 1e-15)


# ---- motion -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
def test_advance_is_the_motion_of_each_joint(name: str) -> None:
    robot = ROBOTS[name]()
    q, v = state_of(robot)
    q1, v1 = advanced(robot, q, v, 0.3)
    expected = robot.integrate(q, 0.3 * v)
    R = Oracle(robot, q, v).poses()[0], Oracle(robot, q1, v).poses()[0]
    kept = v.copy()
    for joint in robot.joints:
        if joint.kind == "floating" and robot.tree.parent[joint.body] == 0:
            at, place = joint.v_slice.start, joint.q_slice.start + 4
            X = robot.tree.XT[joint.body]
            own = np.array(X.E.rows)  # the place of a base is in the axes of its joint
            expected[place : place + 3] = (
                q[place : place + 3] + 0.3 * own @ R[0][joint.body] @ v[at + 3 : at + 6]
            )
            kept[at + 3 : at + 6] = R[1][joint.body].T @ R[0][joint.body] @ v[at + 3 : at + 6]
    assert np.abs(q1 - expected).max() < 1e-13
    assert np.abs(v1 - kept).max() < 1e-13


def differences(robot: Robot, q: np.ndarray, v: np.ndarray, of: Callable[[Arrays], Any], h: float) -> Any:
    """Derivative by time of a quantity while the robot moves along v."""
    ends = [of(everything(robot, *advanced(robot, q, v, side * h))) for side in (1.0, -1.0)]
    return (ends[0] - ends[1]) / (2.0 * h)


@pytest.mark.parametrize("name", ROBOTS)
def test_power_of_the_bias_is_the_change_of_energy(name: str) -> None:
    robot = ROBOTS[name]()
    q, v = state_of(robot)
    rate = differences(robot, q, v, lambda x: x["of_whole"][9:].sum(), 1e-4)
    C = everything(robot, q, v)["C"]
    assert v @ C == pytest.approx(rate, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("name", ROBOTS)
def test_forces_of_the_bias_are_the_change_of_momentum(name: str) -> None:
    robot = ROBOTS[name]()
    q, v = state_of(robot)

    def about_world(x: Arrays) -> np.ndarray:
        h = x["of_whole"][:6]
        return np.concatenate([h[:3] + np.cross(x["origin"], h[3:]), h[3:]])

    x = everything(robot, q, v)
    weight = robot.total_mass * robot.gravity
    c, o, f = x["of_whole"][6:9] + x["origin"], x["origin"], x["rate"]
    force = f[3:] + weight
    moment = f[:3] + np.cross(o, f[3:]) + np.cross(c, weight)
    rate = differences(robot, q, v, about_world, 1e-4)
    assert np.abs(rate - np.concatenate([moment, force])).max() < 1e-6 * (1.0 + np.abs(rate).max())


# ---- data -------------------------------------------------------------------------------------------------


def test_data_are_made_once_and_cannot_be_changed() -> None:
    robot = ladder.random_tree(0)
    assert robot_data(robot) is robot_data(robot)
    assert set(robot_data(robot)) == {a.name for a in ROBOT}
    assert not any(x.flags.writeable for x in robot_data(robot).values())


def test_samples_have_their_own_inertias() -> None:
    robot = ladder.chain(3, "floating")
    both = robot.with_inertias(np.stack([robot.inertial_parameters, 2.0 * robot.inertial_parameters]))
    q, v = state_of(robot)
    assert robot_data(both)["inertia"].shape == (2, robot.nbodies + 1, 10)
    H = everything(robot, q, v)["H"]
    for k, share in enumerate((1.0, 2.0)):
        near(everything(both.sample(k), q, v)["H"], share * H, 1e-14)


def test_columns_of_H_cover_it() -> None:
    robot = couple(ladder.follower())
    data = robot_data(robot)
    pattern = np.eye(robot.nv, dtype=bool)
    for row, (first, count) in enumerate(data["row_path"]):
        pattern[row, data["row_columns"][first : first + count]] = True
    H = sum(np.abs(everything(robot, *state_of(robot, seed))["H"]) for seed in range(3))
    assert ((H > 0) <= pattern).all()
    assert pattern.sum() < robot.nv * (robot.nv + 1) // 2


@pytest.mark.parity
@pytest.mark.parametrize("name", ["g1", "talos", "panda"])
def test_pinocchio_agrees(name: str) -> None:
    import pinocchio

    path = rk.find_robot(name)
    model = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    robot = rk.load_urdf(path, base="floating")
    theirs, data = PinocchioAdapter(robot, model), model.createData()
    q, v = state_of(robot)
    found = everything(robot, q, v)
    H = theirs.matrix_back(pinocchio.crba(model, data, theirs.q(q)))
    near(found["H"], np.tril(H), 1e-12)
    a = np.zeros(robot.nv)
    a[3:6] = -np.cross(v[:3], v[3:6])
    C = theirs.v_back(pinocchio.rnea(model, data, theirs.q(q), theirs.v(v), theirs.v(a)))
    near(found["C"], C, 1e-12)
    assert found["of_whole"][9] == pytest.approx(
        pinocchio.computeKineticEnergy(model, data, theirs.q(q), theirs.v(v)), rel=1e-12
    )
