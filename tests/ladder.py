"""The ladder of test robots: pendulum, chain, random tree with every joint kind, our own robots.

Also the two helpers that most tests share: `Plain`, which runs the algorithms on flat sequences of any
scalar, and `relative`, the one measure of error.
"""

from __future__ import annotations

from itertools import chain as concat
from pathlib import Path

import numpy as np

from robokit.algorithms.aba import aba
from robokit.algorithms.bias import bias_forces, gravity_forces
from robokit.algorithms.center_of_mass import center_of_mass
from robokit.algorithms.centroidal import (
    centroidal_momentum,
    centroidal_momentum_bias,
    centroidal_momentum_matrix,
)
from robokit.algorithms.crba import crba
from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.forward_dynamics import forward_dynamics
from robokit.algorithms.mass_matrix_columns import mass_matrix_columns
from robokit.algorithms.rnea import rnea
from robokit.algorithms.rnea_world import rnea_world
from robokit.model import Box, Mimic, ModelBuilder, Placement, Robot, Shape
from robokit.spatial import Force, Vector3

ROBOTS = Path(__file__).resolve().parent.parent / "robots"
OWN = ("double_pendulum", "four_bar", "arm", "quadruped", "humanoid", "chain")
COORDINATE_KINDS = ("revolute", "continuous", "prismatic", "helical", "cylindrical")
ALL_KINDS = (*COORDINATE_KINDS, "planar", "spherical", "floating", "fixed")


def relative(got, expected) -> float:
    """Largest difference over the largest expected entry (at least 1)."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    assert got.shape == expected.shape, f"shapes {got.shape} and {expected.shape}"
    assert np.all(np.isfinite(got)), "not finite"
    return float(np.abs(got - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0)))


def rotation(rng: np.random.Generator) -> np.ndarray:
    """A uniformly random rotation matrix."""
    Q, R = np.linalg.qr(rng.standard_normal((3, 3)))
    Q = Q * np.sign(np.diag(R))
    return Q * np.linalg.det(Q)


def inertia(rng: np.random.Generator, mass: float = 1.0) -> np.ndarray:
    """A rotational inertia that a body of points could have."""
    points = rng.standard_normal((6, 3)) * 0.1
    points -= points.mean(axis=0)
    return mass / 6 * sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)


def box_with_bar(limit: float = 0.2, at: float = 0.2, length: float = 0.4) -> Robot:
    """A floating box with a bar on a hinge that has limits: it falls, hits its stops and slides.

    The hinge stops at -limit and limit [rad]; at and length [m] are the bar's distance and that of its ends.
    """
    builder, place = ModelBuilder("box_with_bar"), Placement(position=np.array([at, 0.0, 0.0]))
    box, bar = Shape(Box((0.4, 0.4, 0.3))), Shape(Box((length, 0.08, 0.08)), place)
    builder.link("box", 3.0, inertia=np.diag([0.05, 0.06, 0.07]), collisions=(box,))
    builder.link("bar", 1.0, (0.2, 0.0, 0.0), np.diag([0.002, 0.02, 0.02]), collisions=(bar,))
    builder.joint("hinge", "revolute", "box", "bar", place, axis=(0, 1, 0), lower=-limit, upper=limit)
    return builder.build("floating")


def pendulum() -> Robot:
    """A rod of 1 m and 2 kg on a hinge about y, its centre of mass 0.5 m below the hinge."""
    b = ModelBuilder("pendulum")
    b.link("ground").link("rod", 2.0, (0, 0, -0.5), np.diag([1 / 6, 1 / 6, 0.0]))
    return b.joint("hinge", "continuous", "ground", "rod", axis=(0, 1, 0)).build()


def chain(n: int = 5, base: str = "fixed") -> Robot:
    """An unbranched chain of skew revolute and prismatic joints."""
    return _random(
        "chain", [i - 1 for i in range(1, n + 1)], ("revolute", "continuous", "prismatic"), 11, base
    )


def random_tree(seed: int = 0, base: str = "fixed", kinds=ALL_KINDS, n: int = 14) -> Robot:
    """A branched tree in which every kind of ``kinds`` occurs, on generic and on coordinate axes."""
    rng = np.random.default_rng(1000 + seed)
    parent = [int(rng.integers(max(0, i - 4), i)) for i in range(1, n + 1)]
    return _random(f"tree{seed}", parent, kinds, seed, base)


def follower(base: str = "floating") -> Robot:
    """A branched robot with a mimic joint on each branch; their coordinates are its own."""
    robot = ModelBuilder("follower")
    rng = np.random.default_rng(3)
    for k in range(6):
        mass = float(rng.uniform(0.5, 2.0))
        robot.link(f"l{k}", mass, rng.uniform(-0.2, 0.2, 3), inertia(rng, mass))
    place = [Placement(rotation(rng), rng.uniform(-0.3, 0.3, 3)) for _ in range(5)]
    robot.joint("a", "revolute", "l0", "l1", place[0], (0, 1, 0))
    robot.joint("b", "revolute", "l1", "l2", place[1], (1, 2, 0), mimic=Mimic("a", -1.5, 0.2))
    robot.joint("c", "prismatic", "l0", "l3", place[2], (0, 0, 1))
    robot.joint("d", "revolute", "l3", "l4", place[3], (1, 0, 0), mimic=Mimic("c", 0.7, -0.1))
    robot.joint("e", "revolute", "l4", "l5", place[4], (0, 1, 1))
    return robot.build(base)


def _random(name: str, parent: list[int], kinds, seed: int, base: str) -> Robot:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(name)
    b.link("link0", *_body(rng))
    order = [kinds[i % len(kinds)] for i in rng.permutation(max(len(parent), len(kinds)))]
    for i, p in enumerate(parent, 1):
        b.link(f"link{i}", *_body(rng))
        generic = rng.random() < 0.6
        placement = Placement(rotation(rng) if generic else np.eye(3), rng.uniform(-0.4, 0.4, 3))
        axis = (
            rng.standard_normal(3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)] * rng.choice([-1, 1])
        )
        b.joint(f"joint{i}", order[i - 1], f"link{p}", f"link{i}", placement, axis, pitch=0.2)
    return b.build(base)


def _body(rng: np.random.Generator):
    mass = float(rng.uniform(0.3, 3.0))
    return mass, rng.uniform(-0.2, 0.2, 3), inertia(rng, mass)


class State:
    """A random q, v, a, tau and one external force a body, reproducible."""

    def __init__(self, robot: Robot, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, robot.nv])
        self.q = robot.random_configuration(rng)
        self.v, self.a, self.tau = rng.standard_normal((3, robot.nv))
        self.f_body = rng.standard_normal((robot.nbodies + 1, 6)) * 5.0
        self.rng = rng


class Plain:
    """The algorithms' plain function on flat q, v, a, tau of any scalar; f_ext is (N + 1, 6) in body axes."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.tree = robot, robot.tree

    def _q(self, q):
        return self.tree.split_q(_scalars(q))

    def _v(self, v):
        return self.tree.split_v(_scalars(v))

    def rnea(self, q, v, a, f_ext=None):
        return _flat(rnea(self.tree, self._q(q), self._v(v), self._v(a), forces(f_ext)))

    def rnea_world(self, q, v, a, f_ext=None):
        return _flat(rnea_world(self.tree, self._q(q), self._v(v), self._v(a), forces(f_ext)))

    def bias(self, q, v, f_ext=None):
        return _flat(bias_forces(self.tree, self._q(q), self._v(v), forces(f_ext)))

    def gravity(self, q):
        return _flat(gravity_forces(self.tree, self._q(q)))

    def crba(self, q):
        return np.array(crba(self.tree, self._q(q)))

    def columns(self, q):
        return np.array(mass_matrix_columns(self.tree, self._q(q)))

    def aba(self, q, v, tau, f_ext=None):
        return _flat(aba(self.tree, self._q(q), self._v(v), self._v(tau), forces(f_ext)))

    def forward_dynamics(self, q, v, tau, f_ext=None):
        return _flat(forward_dynamics(self.tree, self._q(q), self._v(v), self._v(tau), forces(f_ext)))

    def com(self, q):
        return np.array(list(center_of_mass(self.tree, self._q(q))))

    def kinetic(self, q, v):
        return kinetic_energy(self.tree, self._q(q), self._v(v))

    def potential(self, q):
        return potential_energy(self.tree, self._q(q))

    def cmm(self, q):
        return np.array(centroidal_momentum_matrix(self.tree, self._q(q)))

    def momentum(self, q, v):
        return np.array(list(centroidal_momentum(self.tree, self._q(q), self._v(v))))

    def momentum_bias(self, q, v):
        return np.array(list(centroidal_momentum_bias(self.tree, self._q(q), self._v(v))))


def forces(f_ext):
    """One Force a body from an (N + 1, 6) array, or None."""
    if f_ext is None:
        return None
    return [Force(Vector3(*row[:3]), Vector3(*row[3:])) for row in _scalars(f_ext)]


def _scalars(x):
    return x.tolist() if isinstance(x, np.ndarray) and x.dtype != object else x


def _flat(by_joint) -> np.ndarray:
    return np.array(list(concat(*by_joint)))


def coordinate_rate(robot: Robot, q, v) -> np.ndarray:
    """dq/dt of the body velocities v, written out kind by kind (independent of ``integrate``)."""
    out = np.zeros(robot.nq)
    for joint in robot.joints:
        x, u = np.asarray(q)[joint.q_slice], np.asarray(v)[joint.v_slice]
        if joint.kind in ("spherical", "floating"):
            w, p = x[0], x[1:4]
            rate = 0.5 * np.array([-p @ u[:3], *(w * u[:3] + np.cross(p, u[:3]))])
            if joint.kind == "floating":
                t = 2.0 * np.cross(p, u[3:])
                rate = np.concatenate([rate, u[3:] + w * t + np.cross(p, t)])
        elif joint.kind == "planar":
            c, s = np.cos(x[0]), np.sin(x[0])
            rate = np.array([u[0], c * u[1] - s * u[2], s * u[1] + c * u[2]])
        else:
            rate = u
        out[joint.q_slice] = rate
    return out


def along(robot: Robot, q, v, h: float = 1e-30) -> np.ndarray:
    """q moved by the imaginary time i h: what a complex step along the motion starts from."""
    return np.asarray(q) + 1j * h * coordinate_rate(robot, q, v)
