"""Rest is rest: a box on a slope, an arm held by friction, robots that have fallen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases import worlds as w
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case
from robokit.model import Box, Sphere

MU = 0.8


@case("slope", "Rest", "A box at 95 % of its friction cone, 60 s")
def slope(look: Look) -> Found:
    """A box of 2 kg on a slope whose tangent is 0.95 of the friction coefficient, 0.8, at 1 ms. It settles
    for 1 s; measured: how far its centre moves in the next 60 s.
    """
    found = Found()
    robot, seconds = s.box(), look.some(60, 10)
    q0 = s.at_height(robot, 0.05)
    lines = {}
    for share in (0.95, 0.5):
        tilt = s.tilted(share * MU)
        t = s.fall(robot, q0, duration=1.0 + seconds, ground=s.ground(friction=MU), gravity=tilt)
        start = int(np.searchsorted(t.t, 1.0))
        x = np.linalg.norm(t.q[:, 4:7] - t.q[start, 4:7], axis=1)

        def theirs(stiff: bool, tilt: Any = tilt, share: float = share) -> float:
            peer = Peer(robot.with_gravity(tilt), 1e-3, stiff, MU)
            peer.start(q0)
            q, _ = peer.states(1000 * (1 + seconds), 100)
            moved = np.linalg.norm(q[10:, 4:7] - q[10, 4:7], axis=1)
            if share > 0.9:
                lines["MuJoCo, stiff" if stiff else "MuJoCo"] = 0.1 * np.arange(len(moved)), 1e3 * moved
            return 1e6 * moved[-1]

        them = both(look, theirs)
        found.add(f"motion in {seconds} s at {share:.0%} of the cone", "µm", 1e6 * x[-1], **them, most=1.0)
        if share > 0.9:
            lines["robokit"] = t.t[start:] - 1.0, 1e3 * x[start:]
    t = s.fall(robot, _on_slope(robot, 0.95 * MU), duration=1.0 + seconds,
               ground=s.ground(friction=MU, tilt=math.atan(0.95 * MU)))  # fmt: skip
    start = int(np.searchsorted(t.t, 1.0))
    x = np.linalg.norm(t.q[:, 4:7] - t.q[start, 4:7], axis=1)
    found.add(f"motion in {seconds} s at 95 % on a tilted ground", "µm", 1e6 * x[-1], most=1.0)
    found.plot("slope", "Creep at 95 % of the cone", "s", "mm", lines)
    return found


def _on_slope(robot: rk.Robot, tangent: float) -> np.ndarray:
    """The box flat on a plane that descends towards +x."""
    half = 0.5 * math.atan(tangent)
    q = s.at_height(robot, 0.0, (math.cos(half), 0.0, math.sin(half), 0.0))
    q[4:7] = 0.05 * np.array([math.sin(2 * half), 0.0, math.cos(2 * half)])
    return q


@case("passed_over", "Rest", "A box on a slope while a ball and a plate pass over it")
def passed_over(look: Look) -> Found:
    """A box of 2 kg rests at 90 % of its friction cone, 0.5, at 1 ms. A ball of 50 g rolls over it, or a
    plate of 50 g slides over it, spinning. Their contacts with the box come and go, while the contacts of the
    box with the ground must keep their identity, and with it their bristles. Measured: how far the box has
    moved since 0.05 s, when it had settled, once they have passed; and how far it creeps in the next 10 s.
    """
    found, gravity = Found(), s.tilted(0.9 * 0.5)
    turn = (math.cos(0.2), 0.0, 0.0, math.sin(0.2))
    below = w.Body(Box((0.4, 0.4, 0.1)), 2.0, (0.0, 0.0, 0.05))
    for label, above in (
        ("ball", w.Body(Sphere(0.03), 0.05, (-0.17, -0.1, 0.13), v=(0.0, 0.0, 0.0, 0.0, 0.3, 0.0))),
        ("plate", w.Body(Box((0.1, 0.1, 0.01)), 0.05, (-0.14, 0.02, 0.105), turn, (0, 0, 8.0, 1.5, 0, 0))),
    ):
        world, seconds = w.World([below, above], friction=0.5, gravity=gravity), look.some(20, 6)

        def moved(q: np.ndarray, first: int, last: int = -1) -> float:
            x = w.places(q)[:, 0]
            return 1e6 * float(np.linalg.norm(x[last] - x[first]))

        q = world.run(float(seconds)).q
        theirs = {key: world.peer(stiff=stiff).states(1000 * seconds, 10)[0]
                  for key, stiff in (("mujoco", False), ("stiff", True)) if look.peer}  # fmt: skip
        half = 50 * seconds
        for what, first, last, most in (
            ("way of the box, once it has passed", 5, half, 1.0),
            (f"creep in the next {seconds / 2:g} s", half, -1, 1e-6),
        ):
            them = {key: moved(x, first, last) for key, x in theirs.items()}
            found.add(f"{label}: {what}", "µm", moved(q, first, last), **them, most=most)
    return found


@case("held_arm", "Rest", "An arm held by the dry friction of its joints, 60 s")
def held_arm(look: Look) -> Found:
    """robokit's arm, its joints bent. The dry friction of each joint is 1.05 times the torque of gravity on
    it (at least 0.1 N m), at 1 ms. Measured: the largest angle by which a joint moves in 60 s after the
    first.
    """
    robot = rk.load_urdf(rk.find_robot("arm"))
    q0 = np.array(
        [0.4 * j.lower + 0.6 * j.upper if np.isfinite(j.upper - j.lower) else 0.5 for j in robot.joints]
    )
    torque = np.abs(rk.rnea(robot, q0, np.zeros(robot.nv), np.zeros(robot.nv)))
    joints = [
        s.replace(j, friction=float(max(1.05 * x, 0.1))) for j, x in zip(robot.joints, torque, strict=True)
    ]
    robot = s.replace(robot, joints=tuple(joints))
    found, seconds = Found(), look.some(60, 10)
    t = s.fall(robot, q0, duration=1.0 + seconds, ground=s.ground(height=-5.0), record_every=100)
    moved = np.abs(t.q[10:] - t.q[10]).max(axis=1)

    def theirs(stiff: bool) -> float:
        peer = Peer(s.with_damping(robot), 1e-3, stiff, None, joint_friction=True)
        peer.start(q0)
        q, _ = peer.states(1000 * (1 + seconds), 100)
        return float(np.abs(q[10:] - q[10]).max())

    found.add(
        f"largest motion of a joint in {seconds} s", "rad", moved.max(), **both(look, theirs), most=1e-4
    )
    found.add("the same in the first second", "rad", np.abs(t.q[:11] - t.q[0]).max())
    return found


@case("fallen", "Rest", "Fallen robots between 10 and 30 s")
def fallen(look: Look) -> Found:
    """Robots fall from 2 cm, leaning 4 degrees, at 1 ms. Measured: the largest distance of any body's frame
    from its place at 10 s, until 30 s: the worst of three falls.
    """
    found, lines = Found(), {}
    end = look.some(30, 14)
    for label, name in [("humanoid", "humanoid"), ("G1", s.G1)][: look.some(2, 1)]:
        robot = s.load(name)
        worst, speed, theirs = 0.0, 0.0, {False: 0.0, True: 0.0}
        for seed in range(look.some(3, 1)):
            q0 = rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=seed)
            t = s.fall(robot, q0, duration=float(end), ground=s.ground(), record_every=100)
            moved = _moved(robot, t.q)
            worst, speed = max(worst, moved.max()), max(speed, np.abs(t.v[100:]).max())
            if seed == 0:
                lines[f"{label}, robokit"] = t.t[101:], 1e3 * np.maximum(moved[1:], 1e-15)
            for stiff in (False, True) if look.peer and seed == 0 else ():
                peer = Peer(s.same_joints(robot), 1e-3, stiff)
                peer.start(q0)
                away = _moved(robot, peer.states(1000 * end, 100)[0])
                theirs[stiff] = max(theirs[stiff], away.max())
                if not stiff:
                    lines[f"{label}, MuJoCo"] = t.t[101:], 1e3 * np.maximum(away[1:], 1e-15)
        them = {"mujoco": 1e3 * theirs[False], "stiff": 1e3 * theirs[True]} if look.peer else {}
        found.add(f"{label}: largest motion from 10 to {end} s", "mm", 1e3 * worst, **them, most=0.1)
        found.add(f"{label}: largest speed after 10 s", "rad/s, m/s", speed)
    found.plot("fallen", "Distance from the place at 10 s", "s", "mm", lines, log="y")
    if look.peer:
        found.notes.append("MuJoCo and the picture: the first of the falls only.")
    return found


def _moved(robot: rk.Robot, q: np.ndarray) -> np.ndarray:
    """Largest distance of a body's frame from its place at 10 s, states 0.1 s apart [m]."""
    if len(q) <= 100:
        return np.array([np.nan])
    places = rk.forward_kinematics(robot, q[100:]).position
    return np.linalg.norm(places - places[:1], axis=-1).max(axis=1)


@case("stand", "Joints", "The humanoid stands under PD control, is pushed, falls")
def stand(look: Look) -> Found:
    """PD control (kp 800 N m/rad, kd 40 N m s/rad, no effort limits) holds the humanoid's standing pose for
    10 s at 1 ms; then its chest gets 60 N s. Measured: how far the pelvis moves from 2 to 10 s, and its
    height 2 s later.
    """
    found, robot = Found(), s.load("humanoid")
    q0 = rk.standing_configuration(robot)
    chest = max((x for x in robot.links if x.body), key=lambda x: x.mass).name
    servo = rk.PD(kp=800.0, kd=40.0, effort=math.inf)
    push = rk.Push(chest, (60.0, 0.0, 0.0), start=10.0)
    t = s.fall(robot, q0, duration=12.0, ground=s.ground(), actuators=servo, pushes=push, record_every=20)
    still = np.linalg.norm(t.q[100:500, 4:7] - t.q[100, 4:7], axis=1).max()
    found.add("the pelvis moves from 2 to 10 s", "mm", 1e3 * still, most=1.0)
    found.add("height at 10 s, of that at the start", "", t.q[499, 6] / q0[6], least=0.95)
    found.add("height at 12 s, of that at the start", "", t.q[-1, 6] / q0[6], most=0.6)
    found.plot("stand", "Height of the pelvis", "s", "m", {"robokit": (t.t, t.q[:, 6])})
    return found
