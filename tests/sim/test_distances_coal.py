"""Distances of real robots beside coal and Pinocchio's kinematics, and in JAX and PyTorch.

Pinocchio reads the URDF and the meshes itself; only their names are shared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robokit as rk
from robokit.interop import PinocchioAdapter

try:
    import pinocchio as pin
except ModuleNotFoundError:  # the light suite has none, and runs nothing of this file
    pin = None

pytestmark = pytest.mark.parity


def of_coal(robot: rk.Robot, pairs: Any, q: np.ndarray) -> np.ndarray:
    """Distances of pairs of links, (B, P): coal's of their shapes, meshes as hulls of all their points."""
    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromUrdf(str(robot.source), *root)
    kind = pin.GeometryType.COLLISION
    if not any(link.collisions for link in robot.links):
        kind = pin.GeometryType.VISUAL
    folders = [str(parent) for parent in Path(str(robot.source)).parents][:5]
    geometry = pin.buildGeomFromUrdf(model, str(robot.source), kind, package_dirs=folders)
    of: dict[str, list[int]] = {}
    for k, each in enumerate(geometry.geometryObjects):
        if hasattr(each.geometry, "buildConvexHull"):
            each.geometry.buildConvexHull(True, "Qt")
            each.geometry = each.geometry.convex
        of.setdefault(model.frames[each.parentFrame].name, []).append(k)
    first = []
    for a, b in pairs:
        first.append(len(geometry.collisionPairs))
        for i in of[a]:
            for j in of[b]:
                geometry.addCollisionPair(pin.CollisionPair(i, j))
    data, found = model.createData(), pin.GeometryData(geometry)
    for request in found.distanceRequests:
        request.gjk_tolerance = request.epa_tolerance = 1e-12
        request.gjk_max_iterations = request.epa_max_iterations = 400
    adapter, rows = PinocchioAdapter(robot, model), []
    for row in q:
        pin.computeDistances(model, data, geometry, found, adapter.q(row))
        each = [result.min_distance for result in found.distanceResults]
        rows.append(np.minimum.reduceat(each, first))
    return np.array(rows)


@pytest.mark.parametrize(
    ("name", "base", "overlaps"),
    [
        ("humanoid", "fixed", 2),
        ("quadruped", "floating", 0),
        ("example-robot-data:g1", "floating", 20),
        ("example-robot-data:talos", "fixed", 20),
        ("example-robot-data:panda", "fixed", 1),
    ],
)
def test_distances_are_coals(name: str, base: str, overlaps: int) -> None:
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(12)])
    ours = rk.distance(robot, q)
    theirs = of_coal(robot, ours.pairs, q)
    assert np.abs(ours.distance - theirs).max() < 1e-9
    assert ((theirs < 0.0) == (ours.distance < 0.0)).all() and (theirs < 0.0).sum() >= overlaps


def test_gradients_of_hulls_are_those_of_differences() -> None:
    robot = rk.load_urdf(rk.find_robot("example-robot-data:g1"), base="floating")
    rng, h, errors = np.random.default_rng(1), 1e-6, []
    for _ in range(4):
        q = robot.random_configuration(rng)
        ends = [np.array([robot.integrate(q, s * h * e) for e in np.eye(robot.nv)]) for s in (1, -1)]
        up, down = (rk.distance(robot, end, ground=True).distance for end in ends)
        exact = rk.distance(robot, q, ground=True, gradient=True).gradient
        errors.append(np.abs(exact - (up - down).T / (2 * h)).max(axis=1))
    assert np.quantile(errors, 0.995) < 1e-6  # between the two ends the nearest points may jump
    assert np.quantile(errors, 0.9) < 1e-8


@pytest.fixture(scope="module")
def hand():
    """Distances of a hand as a function, a configuration, and their Jacobian by central differences."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    f = rk.distance_function(robot, "left_hand", ["pelvis", "ground"], ground=True)
    q = robot.random_configuration(np.random.default_rng(0))
    q[:4] *= 1.2  # plain coordinates
    h = 1e-6 * np.eye(robot.nq)
    (up,), (down,) = f(q + h), f(q - h)
    return f, q, (up - down).T / 2e-6


def test_pairs_of_a_function_and_its_one_derivative(hand) -> None:
    f = hand[0]
    assert f.pairs == (("left_hand", "pelvis"), ("left_hand", "ground"))
    with pytest.raises(rk.RobokitError, match="only first derivatives"):
        _ = f.pullback.pullback


def test_a_function_for_jax(hand) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f, q, expected = hand
    reverse = jax.jacrev(f.to_jax())(jax.numpy.array(q))
    forward = jax.jacfwd(f.to_jax(mode="forward"))(jax.numpy.array(q))
    for found in (reverse, forward):
        np.testing.assert_allclose(np.ravel(found), expected.ravel(), atol=1e-8)


def test_a_function_for_pytorch(hand) -> None:
    torch = pytest.importorskip("torch")
    f, q, expected = hand
    x = torch.tensor(q, requires_grad=True)
    f.to_torch()(x)[0].backward()
    np.testing.assert_allclose(x.grad.numpy(), expected[0], atol=1e-8)
