"""Every URDF of example-robot-data against Pinocchio, fixed and floating, at two random states.

H, A_G, C, tau and poses come from the algorithms' own texts on plain arrays, both states at once, so that
nothing is compiled for 67 files; that machine code and text agree is tested elsewhere.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from public import error

import robokit as rk
from robokit import robot_names
from robokit.algorithms.aba import aba
from robokit.algorithms.bias import bias_forces
from robokit.algorithms.centroidal import centroidal_momentum_matrix
from robokit.algorithms.crba import crba
from robokit.algorithms.kinematics import forward_kinematics
from robokit.algorithms.rnea import rnea
from robokit.dynamics.singular import singular_joint

pytestmark = pytest.mark.parity

TOLERANCE = 1e-10
STATES = 2
ALL = {path: name for name, path in sorted(robot_names.example_robots().items(), reverse=True)}
"""File to name: several names may lead to one file."""

REFUSED = {
    "alex_psyonic_hands.urdf": "mimic-unknown",  # mimics joints that are not there; Pinocchio ignores it
    "ur3.urdf": "no-links",  # Pinocchio: "does not contain a valid URDF model"
}
"""Files with no robot in them, by the codes of the importer."""


def flat(rows, states):
    """Scalars, or one array a state, as (states, ...)."""
    return np.array([np.broadcast_to(np.asarray(x, dtype=float), states) for x in rows]).reshape(-1, states).T


def ours(robot, q, v, a, tau) -> dict[str, np.ndarray]:
    tree, n = robot.tree, len(q)
    Q, V, A, T = tree.split_q(list(q.T)), *(tree.split_v(list(x.T)) for x in (v, a, tau))
    X0 = forward_kinematics(tree, Q)
    rotation, position = np.empty((n, len(robot.links), 3, 3)), np.empty((n, len(robot.links), 3))
    for k, link in enumerate(robot.links):
        X = X0[link.body]
        R = flat(chain(*X.E.T.rows), n).reshape(n, 3, 3)
        rotation[:, k] = R @ link.placement.rotation
        position[:, k] = R @ link.placement.position + flat(X.r, n)
    found = {
        "H": flat(chain(*crba(tree, Q)), n).reshape(n, robot.nv, robot.nv),
        "C": flat(chain(*bias_forces(tree, Q, V)), n),
        "tau": flat(chain(*rnea(tree, Q, V, A)), n),
        "rotation": rotation,
        "position": position,
    }
    if robot.total_mass > 0:
        found["A_G"] = flat(chain(*centroidal_momentum_matrix(tree, Q)), n).reshape(n, 6, robot.nv)
    if robot.nv and singular_joint(robot) is None:
        found["qdd"] = flat(chain(*aba(tree, Q, V, T)), n)
    return found


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("path", [p for p in ALL if p.name not in REFUSED], ids=ALL.get)
def test_agrees(path, base, record_error):
    from peers import PinocchioPeer

    robot, name = rk.load_urdf(path, base=base), ALL[path]
    peer = PinocchioPeer(robot, path)
    rng = np.random.default_rng([5, robot.nv])
    q = np.array([robot.random_configuration(rng) for _ in range(STATES)])
    v, a, tau = rng.standard_normal((3, STATES, robot.nv))
    got = ours(robot, q, v, a, tau)
    for k in range(STATES):
        expected = peer.quantities(q[k], v[k], a[k], tau[k], {})
        for what, values in got.items():
            assert values[k].shape == expected[what].shape
            worst = error(values[k], expected[what]) if values[k].size else 0.0
            record_error("pinocchio, all robots", name, base, what, worst)
            assert worst < TOLERANCE, what


def test_all_are_there():
    assert len(ALL) >= 69 and set(REFUSED) <= {path.name for path in ALL}


@pytest.mark.parametrize("file", REFUSED)
def test_refused_with_the_reason(file):
    path = next(path for path in ALL if path.name == file)
    with pytest.raises(rk.UrdfError) as refused:
        rk.load_urdf(path)
    assert REFUSED[file] in {d.code for d in refused.value.diagnostics}


def test_pinocchio_cannot_load_a_file_without_links():
    import pinocchio

    path = next(path for path in ALL if path.name == "ur3.urdf")
    with pytest.raises(ValueError, match="does not contain a valid URDF"):
        pinocchio.buildModelFromUrdf(str(path))
