"""Edited and written robots against Pinocchio: its reduced models, and its reading of what robokit writes."""

from __future__ import annotations

import numpy as np
import pytest
from public import error, quantities
from test_parity import TOLERANCE, inputs, loaded

import robokit as rk
from robokit.model import lock_joints
from robokit.urdf import dump, loads_urdf

pytestmark = pytest.mark.parity


@pytest.fixture
def plain(monkeypatch):
    """Nothing is compiled: what is compared is how robots are read, and each is there for one state alone."""
    monkeypatch.setenv("ROBOKIT_ENGINE", "python")


def read(name: str, base: str):
    """The robot and its file, read anew: that of other tests has machine code, or shall have it."""
    _, path = loaded(name, base)
    return rk.load_urdf(path, base=base), path


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["g1", "talos", "humanoid"])
def test_locked_joints_are_pinocchios_reduced_model(name, base):
    import pinocchio as pin
    from peers import PinocchioPeer

    from robokit.interop import PinocchioAdapter

    robot, path = read(name, base)
    x = inputs(robot, 0)
    names = [n for n in robot.joint_names if n != "floating_base"][::2]
    locked = lock_joints(robot, {n: x["q"][robot.joint(n).q_slice] for n in names})
    peer = PinocchioPeer(robot, path)
    ids = [peer.model.getJointId(n) for n in names]
    peer.model = pin.buildReducedModel(peer.model, ids, peer.adapter.q(x["q"]))
    peer.data, peer.robot = peer.model.createData(), locked
    peer.adapter = PinocchioAdapter(locked, peer.model)
    x = inputs(locked, 1)
    got, expected = quantities(locked, **x), peer.quantities(**x)
    assert {k: e for k, v in expected.items() if not (e := error(got[k], v)) < TOLERANCE} == {}
    if base == "floating":
        assert locked.total_mass == pytest.approx(pin.computeTotalMass(peer.model), rel=TOLERANCE)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["g1", "talos", "icub", "quadruped", "arm"])
def test_pinocchio_reads_what_is_written(name, base, tmp_path):
    from peers import PinocchioPeer

    robot, _ = read(name, base)
    dump(robot, tmp_path / "written.urdf")
    peer, x = PinocchioPeer(robot, tmp_path / "written.urdf"), inputs(robot, 2)
    got, expected = quantities(robot, **x), peer.quantities(**x)
    assert {k: e for k, v in expected.items() if not (e := error(got[k], v)) < TOLERANCE} == {}


def test_every_example_is_read_again():
    from robokit.robot_names import example_robots

    count = 0
    for path in sorted(set(example_robots().values())):
        try:
            robot = rk.load_urdf(path)
        except rk.UrdfError:
            continue
        again = loads_urdf(dump(robot))
        assert again.joint_names == robot.joint_names and again.link_names == robot.link_names
        for a, b in zip(robot.tree.I, again.tree.I, strict=True):
            assert error(list(b.h), list(a.h)) < 1e-14 and a.m == b.m
        for a, b in zip(robot.tree.XT, again.tree.XT, strict=True):
            assert error(np.array(b.E.rows), np.array(a.E.rows)) < 1e-14
            assert error(list(b.r), list(a.r)) < 1e-14
        count += 1
    assert count > 60
