"""Velocities and accelerations of links and of the centre of mass, beside Pinocchio's, live."""

from __future__ import annotations

import numpy as np
import pytest
from public import error
from test_parity import inputs, loaded

import robokit as rk

pytestmark = pytest.mark.parity

ROBOTS = [
    *((name, base) for name in ("g1", "panda", "solo12") for base in ("fixed", "floating")),
    ("talos", "floating"),
    ("icub", "floating"),
    ("humanoid", "floating"),
]
TOLERANCE = 1e-10
SWAP = [3, 4, 5, 0, 1, 2]


@pytest.mark.parametrize(("name", "base"), ROBOTS)
def test_pinocchio_moves_links_and_center_of_mass_alike(name, base, record_error):
    import pinocchio as pin
    from peers import PinocchioPeer

    robot, path = loaded(name, base)
    peer = PinocchioPeer(robot, path)
    model, data, to = peer.model, peer.data, peer.adapter
    frames = {"world": pin.LOCAL_WORLD_ALIGNED, "body": pin.LOCAL}
    moving = [link.name for link in robot.links if link.body > 0]
    links, com = 0.0, 0.0
    for seed in range(2):
        x = inputs(robot, seed)
        q, v, a = x["q"], x["v"], x["a"]
        pq, pv, pa = to.q(q), to.v(v), to.v(a)
        pin.forwardKinematics(model, data, pq, pv, pa)
        for link in (moving[len(moving) // 2], moving[-1]):
            frame = model.getFrameId(link, pin.FrameType.BODY)
            for axes, there in frames.items():
                got = [rk.link_velocity(robot, q, v, link, axes, engine="python")]
                got += [
                    rk.link_acceleration(robot, q, v, a, link, axes, classical=c, engine="python")
                    for c in (False, True)
                ]
                calls = (pin.getFrameVelocity, pin.getFrameAcceleration, pin.getFrameClassicalAcceleration)
                expected = [call(model, data, frame, there).vector[SWAP] for call in calls]
                links = max(links, *map(error, got, expected))
        pin.centerOfMass(model, data, pq, pv, pa)
        com = max(com, error(rk.center_of_mass_velocity(robot, q, v), data.vcom[0]))
        com = max(com, error(rk.center_of_mass_acceleration(robot, q, v, a), data.acom[0]))
        pin.jacobianCenterOfMass(model, data, pq)
        J = np.array([to.v_back(row) for row in data.Jcom])
        com = max(com, error(rk.center_of_mass_jacobian(robot, q), J))
    record_error("pinocchio", name, base, "links", links)
    record_error("pinocchio", name, base, "com motion", com)
    assert max(links, com) < TOLERANCE
