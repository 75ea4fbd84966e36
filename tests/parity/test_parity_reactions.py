"""Joint reactions beside Pinocchio's, and those of fixed joints beside MuJoCo's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ladder import relative
from test_parity import inputs, loaded

import robokit as rk

pytestmark = pytest.mark.parity

ROBOTS = [
    ("g1", "fixed"),
    ("panda", "fixed"),
    ("talos", "floating"),
    ("icub", "floating"),
    ("humanoid", "floating"),
]


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_pinocchio_finds_the_same_reactions(name, base, record_error):
    import pinocchio as pin
    from peers import PinocchioPeer

    robot, path = loaded(name, base)
    peer = PinocchioPeer(robot, path)
    model, data, to = peer.model, peer.data, peer.adapter
    x, worst = inputs(robot, 0), 0.0
    q, v, a = x["q"], x["v"], x["a"]
    pin.rnea(model, data, to.q(q), to.v(v), to.v(a))
    found = rk.joint_reactions(robot, q, v, a, engine="python")
    for k, joint in enumerate(model.names):
        if joint in robot.joint_names:
            f = data.f[k]  # on the joint's link, in its axes, linear first
            worst = max(worst, relative(found[joint], np.concatenate([f.angular, f.linear])))
    record_error("pinocchio", name, base, "reactions", worst)
    assert worst < 1e-10
    assert sum(joint in robot.joint_names for joint in model.names) > 5


def test_reactions_of_fixed_joints_are_those_of_mujoco():
    """MuJoCo keeps links behind fixed joints as bodies; cfrc_int is what acts between body and parent."""
    import mujoco

    path = rk.find_robot("quadruped")
    text = Path(path).read_text(encoding="utf-8")
    at = text.index(">", text.index("<robot")) + 1
    text = text[:at] + '<mujoco><compiler fusestatic="false" discardvisual="true"/></mujoco>' + text[at:]
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    robot = rk.load_urdf(path, base="fixed")
    x = inputs(robot, 3)
    q, v, a = x["q"], x["v"], x["a"]
    for k in range(model.njnt):
        joint = robot.joint(model.joint(k).name)
        data.qpos[model.jnt_qposadr[k]] = q[joint.q_slice][0]
        data.qvel[model.jnt_dofadr[k]] = v[joint.v_slice][0]
        data.qacc[model.jnt_dofadr[k]] = a[joint.v_slice][0]
    mujoco.mj_inverse(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    found = rk.joint_reactions(robot, q, v, a, frame="world")
    for joint in (*robot.joints, *robot.fixed_joints):
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, joint.child_link)
        if body < 0:
            continue
        n, f = data.cfrc_int[body, :3], data.cfrc_int[body, 3:]
        arm = data.subtree_com[model.body_rootid[body]] - data.xpos[body]
        assert relative(found[joint.name], np.concatenate([n + np.cross(arm, f), f])) < 1e-9, joint.name
    assert len(robot.fixed_joints) > 3
