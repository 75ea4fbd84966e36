"""Coulomb's law in motion: how far a box slides, and when it begins to."""

from __future__ import annotations

import math

import numpy as np

from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case

MU, SPEED = 0.5, 2.0


@case("stopping", "Sliding", "The stopping distance of a box")
def stopping(look: Look) -> Found:
    """A flat box at rest on the ground gets 2 m/s; friction 0.5. Counted is the distance until it rests,
    beside v²/(2 µ g).
    """
    found = Found()
    robot = s.box()
    wanted = SPEED**2 / (2.0 * MU * s.G)
    for dt in (1e-3, 0.25e-3, 4e-3):
        options = {"dt": dt, "ground": s.ground(friction=MU)}
        q0 = s.fall(robot, s.at_height(robot, 0.05), duration=2.0, **options).q[-1]
        t = s.fall(robot, q0, [0, 0, 0, SPEED, 0, 0], duration=1.5, record_every=round(4e-3 / dt), **options)
        k = int(np.argmax(np.abs(t.v[:, 3]) < 2e-3)) or -1  # creep afterwards is another case
        far = t.q[k, 4] - q0[4]

        def theirs(stiff: bool, dt: float = dt) -> float:
            peer = Peer(robot, dt, stiff, MU)
            peer.start(s.at_height(robot, 0.05))
            peer.step(round(2.0 / dt))
            start = peer.q
            peer.start(start, [0, 0, 0, SPEED, 0, 0])
            q, v = peer.states(round(1.5 / dt), round(4e-3 / dt))
            stop = int(np.argmax(np.abs(v[:, 3]) < 2e-3)) or -1
            return abs((q[stop, 4] - start[4]) / wanted - 1.0)

        them = both(look, theirs) if dt == 1e-3 else {}
        limit = 1e-3 if dt == 1e-3 else None
        found.add(f"error of the distance at {1e3 * dt:g} ms", "", abs(far / wanted - 1), **them, most=limit)
        if dt == 1e-3:
            lift = np.abs(t.q[:k, 6] - q0[6]).max()
            found.add("the box's height changes meanwhile by", "mm", 1e3 * lift)
    return found


@case("onset", "Sliding", "The start of sliding")
def onset(look: Look) -> Found:
    """A box at rest. Suddenly it is tilted to 1.1 times the tangent at which it slides; its later motion says
    when sliding began. The same for a block pushed by a force that grows by its limit in a second: its speed
    when the force is 1.1 times the limit says when.
    """
    found = Found()
    for dt in (1e-3, 0.25e-3, 4e-3):
        limit = 2.0 if dt == 1e-3 else None
        late = _tilted(dt)

        def theirs(stiff: bool, dt: float = dt) -> float:
            return _tilted_there(dt, stiff)

        them = both(look, theirs) if dt == 1e-3 else {}
        found.add(f"tilted, {1e3 * dt:g} ms: sliding begins late by", "ms", 1e3 * late, **them,
                  most=limit, least=None if limit is None else -2.0)  # fmt: skip
    for dt in (1e-3, 4e-3):
        limit = 2.0 if dt == 1e-3 else None
        found.add(f"pushed, {1e3 * dt:g} ms: sliding begins late by", "ms", 1e3 * _pushed(dt),
                  most=limit, least=None if limit is None else -2.0)  # fmt: skip
    return found


def _begun(T: float, v: float, tangent: float) -> float:
    """When sliding began, by the speed at time T on the slope [s]."""
    angle = math.atan(tangent)
    return T - v / (s.G * (math.sin(angle) - MU * math.cos(angle)))


def _tilted(dt: float) -> float:
    robot, tangent = s.box(), 1.1 * MU
    options = {"dt": dt, "ground": s.ground(friction=MU)}
    q0 = s.fall(robot, s.at_height(robot, 0.05), duration=2.0, **options).q[-1]
    t = s.fall(robot, q0, duration=0.2, gravity=s.tilted(tangent), **options)
    return _begun(t.t[-1], t.momentum[-1, 3] / 2.0, tangent)


def _tilted_there(dt: float, stiff: bool) -> float:
    robot, tangent = s.box(), 1.1 * MU
    peer = Peer(robot, dt, stiff, MU)
    peer.start(s.at_height(robot, 0.05))
    peer.step(round(2.0 / dt))
    start = peer.q
    peer.model.opt.gravity[:] = s.tilted(tangent)
    peer.start(start)
    peer.step(round(0.2 / dt))
    return _begun(0.2, peer.v[3], tangent)


def _pushed(dt: float) -> float:
    robot = s.pushed_block()
    most = MU * 2.0 * s.G
    options = {"dt": dt, "ground": s.ground(friction=MU), "joint_damping": 0.0}
    q0 = s.fall(robot, np.array([0.0, 0.05]), duration=2.0, **options).q[-1]
    q0[0] = 0.0
    t = s.fall(robot, q0, duration=1.1, controller=lambda t, q, v: [most * t, 0.0], **options)
    return 0.1 - math.sqrt(max(0.0, 2.0 * t.v[-1, 0] / (MU * s.G)))
