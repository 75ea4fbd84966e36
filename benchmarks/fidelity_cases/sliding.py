"""Coulomb's law in motion: how far a box slides, and when it begins to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case

MU, SPEED = 0.5, 2.0


@case("stopping", "Sliding", "The stopping distance of a box")
def stopping(look: Look) -> Found:
    """A flat box at rest on the ground gets 2 m/s; friction 0.5. Measured: the distance until it rests,
    compared with v²/(2 µ g).
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
    """A block of 2 kg rests on the ground, friction 0.5, and is pushed: once by a force that grows linearly
    and reaches the friction limit after one second, and goes on to 1.1 times the limit; once by 0.9 times the
    limit for a second, then by 1.1 times. The speed at the end tells when sliding began. A box at rest is
    suddenly tilted to 1.1 times the slope at which it slides; it gains some speed while the soft ground takes
    up the load. A cart of 2 kg whose joint has dry friction is pushed from rest by 1.1 times that friction.
    Measured: how late sliding begins.
    """
    found = Found()
    for dt in (1e-3, 0.25e-3, 4e-3):
        for label, push, end in PUSHES:
            one = dt == 1e-3
            limits = {"most": 2.0, "least": -2.0} if one else {}
            late = 1e3 * _late(label, _pushed(dt, push, end), end)
            them = {}
            if one:

                def theirs(stiff: bool, label: str = label, push: Any = push, end: float = end) -> float:
                    return 1e3 * _late(label, _pushed_there(1e-3, push, end, stiff), end)

                them = both(look, theirs)
            where = f"{label}, {1e3 * dt:g} ms: sliding begins late by"
            found.add(where, "ms", late, **them, **limits)
    them = both(look, lambda stiff: 1e3 * _begun(0.2, _tilted_there(1e-3, stiff)))
    late = 1e3 * _begun(0.2, _tilted(1e-3))
    found.add("suddenly tilted, 1 ms: sliding begins late by", "ms", late, **them, most=2.0, least=-2.0)
    for force in (3.0, 0.3):
        them = both(look, lambda stiff, force=force: 1e3 * _joint_begun(force, _cart_there(force, stiff)))
        late = 1e3 * _joint_begun(force, _cart(force))
        what = f"a joint with {force:g} N of friction, 1 ms: sliding begins late by"
        found.add(what, "ms", late, **them, most=2.0, least=-2.0)
    return found


LIMIT = MU * 2.0 * s.G
"""Largest friction of the block [N]."""

PUSHES = (
    ("a growing force", lambda t: LIMIT * t, 1.1),
    ("0.9, then 1.1 times the limit", lambda t: LIMIT * (0.9 if t < 1.0 - 1e-9 else 1.1), 1.2),
)


def _late(label: str, speed: float, end: float) -> float:
    """How much later than at 1 s sliding began, by the speed at the end [s]."""
    if label == "a growing force":
        return end - 1.0 - math.sqrt(max(0.0, 2.0 * speed / (MU * s.G)))
    return end - 1.0 - speed / (0.1 * MU * s.G)


def _pushed(dt: float, push: Any, end: float) -> float:
    robot = s.pushed_block()
    options = {"dt": dt, "ground": s.ground(friction=MU), "joint_damping": 0.0}
    q0 = s.fall(robot, np.array([0.0, 0.05]), duration=2.0, **options).q[-1]
    t = s.fall(robot, q0, duration=end, controller=lambda t, q, v: [push(t), 0.0], **options)
    return float(t.v[-1, 0])


def _pushed_there(dt: float, push: Any, end: float, stiff: bool) -> float:
    peer = Peer(s.pushed_block(), dt, stiff, MU)
    peer.start([0.0, 0.05])
    peer.step(round(2.0 / dt))
    peer.start(peer.q)
    for k in range(round(end / dt)):
        peer.data.qfrc_applied[0] = push(k * dt)
        peer.step()
    return float(peer.v[0])


def _begun(T: float, v: float) -> float:
    """When sliding began, by the speed at time T on the slope [s]."""
    angle = math.atan(1.1 * MU)
    return T - v / (s.G * (math.sin(angle) - MU * math.cos(angle)))


def _tilted(dt: float) -> float:
    robot = s.box()
    options = {"dt": dt, "ground": s.ground(friction=MU)}
    q0 = s.fall(robot, s.at_height(robot, 0.05), duration=2.0, **options).q[-1]
    t = s.fall(robot, q0, duration=0.2, gravity=s.tilted(1.1 * MU), **options)
    return float(t.momentum[-1, 3] / 2.0)


def _tilted_there(dt: float, stiff: bool) -> float:
    peer = Peer(s.box(), dt, stiff, MU)
    peer.start(s.at_height(s.box(), 0.05))
    peer.step(round(2.0 / dt))
    peer.model.opt.gravity[:] = s.tilted(1.1 * MU)
    peer.start(peer.q)
    peer.step(round(0.2 / dt))
    return float(peer.v[3])


def _joint_begun(friction: float, v: float) -> float:
    """When the cart began to slide, by its speed after 0.4 s [s]."""
    return 0.4 - v / (0.1 * friction / 2.0)


def _cart(friction: float) -> float:
    t = rk.simulate(s.stiff_cart(friction), duration=0.4, dt=1e-3, actuators=rk.Torque(1.1 * friction))
    return float(t.v[-1, 0])


def _cart_there(friction: float, stiff: bool) -> float:
    peer = Peer(s.stiff_cart(friction), 1e-3, stiff, None, joint_friction=True)
    peer.start([0.0])
    peer.data.qfrc_applied[0] = 1.1 * friction
    peer.step(400)
    return float(peer.v[0])
