"""Friction between bodies: a cart under a box, a rope of links around a drum, a gripper."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case
from robokit.model import Box, Cylinder, ModelBuilder, Placement, Shape, Sphere

MU = 0.5


class Pushed:
    """MuJoCo's motion of a world under constant joint forces."""

    def __init__(self, world: rk.Robot, stiff: bool, solids: Any = (), plane: bool = False) -> None:
        pairs = rk.collision_pairs(world)
        self.peer = Peer(world, 1e-3, stiff, MU, pairs=pairs, plane=plane, solids=solids)

    def run(self, q: Any, v: Any, tau: Any, seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """State after some time."""
        self.peer.start(q, v)
        self.peer.data.qfrc_applied[:] = tau
        self.peer.step(round(1e3 * seconds))
        return self.peer.q, self.peer.v


@cache
def cart() -> rk.Robot:
    """A flat cart of 1 kg on a rail along x, and a box of 2 kg on it."""
    builder = ModelBuilder("cart").link("rail")
    builder.link("cart", 1.0, inertia=np.eye(3) * 0.1, collisions=(Shape(Box((3.0, 1.0, 0.1))),))
    builder.joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0))
    return rk.together({"cart": builder.build("fixed"), "box": s.box((0.2, 0.2, 0.2), 2.0)})


def moved(world: rk.Robot, q: Any, v: Any, tau: Any, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """State of robokit under constant joint forces."""
    pairs = rk.collision_pairs(world).with_law(friction=MU)
    t = s.fall(world, q, v, duration=seconds, dt=1e-3, joint_damping=0.0, self_collision=pairs,
               controller=lambda t, q, v: tau, record_every=10)  # fmt: skip
    return t.q[-1], t.v[-1]


@case("cart", "Grips", "A box on a cart that accelerates")
def on_a_cart(look: Look) -> Found:
    """A box of 2 kg rests on a cart of 1 kg, friction 0.5. The cart is pushed so that it accelerates with
    0.98, then with 1.12 times µ g. Measured: how far the box slips in 0.5 s, compared with the closed form;
    friction has a spring that must stretch first.
    """
    found, world = Found(), cart()
    q0 = np.concatenate([[0.0], s.at_height(s.box(), 0.15)])
    zero = np.zeros(world.nv)

    def slip(run: Any, share: float) -> float:
        q, v = run(q0, zero, zero, 0.5)
        tau, a = zero.copy(), share * MU * s.G
        tau[0] = 3.0 * a if share < 1.0 else a + 2.0 * MU * s.G
        end, _ = run(q, v, tau, 0.5)
        return float((end[0] - q[0]) - (end[5] - q[5]))

    for share in (0.98, 1.12):
        wanted = 0.5 * (share - 1.0) * MU * s.G * 0.25 if share > 1.0 else 0.0

        def theirs(stiff: bool, share: float = share, wanted: float = wanted) -> float:
            return 1e3 * abs(slip(Pushed(world, stiff).run, share) - wanted)

        mine = 1e3 * abs(slip(lambda *x: moved(world, *x), share) - wanted)
        found.add(
            f"{share:g} of µ g: slip less {1e3 * wanted:.3g} mm", "mm", mine, **both(look, theirs), most=0.5
        )
    return found


@cache
def hand() -> rk.Robot:
    """Two fingers on slides along x, and a box of 1 kg between them."""
    builder = ModelBuilder("hand").link("palm")
    for name, side in (("left", -1.0), ("right", 1.0)):
        shape = Shape(Box((0.02, 0.06, 0.06)))
        builder.link(name, 0.2, inertia=np.eye(3) * 1e-3, collisions=(shape,))
        at = Placement(position=np.array([0.08 * side, 0.0, 0.0]))
        builder.joint(f"{name} slide", "prismatic", "palm", name, at, axis=(-side, 0, 0))
    return rk.together({"hand": builder.build("fixed"), "box": s.box((0.1, 0.1, 0.1), 1.0)})


@case("gripper", "Grips", "A gripper at 1.05 and 0.95 of what holds")
def gripper(look: Look) -> Found:
    """Two fingers press a box of 1 kg with three times the force that holds it, friction 0.5, and then for
    0.3 s with 1.05 or 0.95 times that force. Measured: how far the box comes down, compared with 0, or
    compared with the fall with 0.05 g.
    """
    found, world = Found(), hand()
    q0 = np.concatenate([[0.02, 0.02], s.at_height(s.box(), 0.0)])
    zero = np.zeros(world.nv)
    force = s.G / (2.0 * MU)

    def down(run: Any, share: float) -> float:
        tau = zero.copy()
        tau[:2] = 3.0 * force
        q, v = run(q0, zero, tau, 0.5)
        tau[:2] = share * force
        end, _ = run(q, v, tau, 0.3)
        return float(q[8] - end[8])

    for share in (1.05, 0.95):
        wanted = max(0.0, 0.5 * (1.0 - share) * s.G * 0.3**2)

        def theirs(stiff: bool, share: float = share, wanted: float = wanted) -> float:
            return 1e3 * abs(down(Pushed(world, stiff).run, share) - wanted)

        mine = 1e3 * abs(down(lambda *x: moved(world, *x), share) - wanted)
        most = 1e-3 if share > 1.0 else 0.02 * 1e3 * wanted
        what = f"{share:g}: way down in 0.3 s less {1e3 * wanted:.3g} mm"
        found.add(what, "mm", mine, **both(look, theirs), most=most)
    return found


LINKS, DRUM, BEAD = 40, 0.2, 0.005
"""Of the rope: its beads, radius of the drum and of a bead [m]."""


@cache
def rope() -> rk.Robot:
    """A planar chain of light beads on hinges about y, that slides along x at its left end."""
    builder = ModelBuilder("rope").link("world")
    step, mass = math.pi * (DRUM + BEAD) / LINKS, 1e-4
    inertia = np.eye(3) * 0.4 * mass * BEAD**2
    builder.link("x", mass, inertia=inertia)
    builder.joint("x", "prismatic", "world", "x", axis=(1, 0, 0))
    above, kind, axis = "x", "prismatic", (0, 0, 1)
    for k in range(LINKS + 9):
        at = None if k == 0 else Placement(position=np.array([0.0, 0.0, step]))
        builder.link(f"l{k}", mass, inertia=inertia, collisions=(Shape(Sphere(BEAD)),))
        if k == 0:
            builder.link("z", mass, inertia=inertia)
            builder.joint("z", kind, above, "z", axis=axis)
            builder.joint("turn 0", "continuous", "z", "l0", axis=(0, 1, 0), damping=1e-7)
        else:
            builder.joint(f"turn {k}", "continuous", above, f"l{k}", at, axis=(0, 1, 0), damping=1e-7)
        above = f"l{k}"
    return builder.build("fixed")


@case("capstan", "Grips", "A rope over a drum")
def capstan(look: Look) -> Found:
    """A chain of 49 light beads lies over half of a drum of 20 cm, friction 0.3, without gravity. Its left
    end is drawn down by 1 N, its right end by 0.95 or 1.05 times what holds: exp(µ π), for a polygon of n
    corners ((1 + µ tan(π/2n)) / (1 - µ tan(π/2n)))^n. Measured: the speed of the ends after 50 ms at 0.25
    ms.
    """
    found, robot, mu = Found(), rope(), 0.3
    corner, step = math.pi / LINKS, math.pi * (DRUM + BEAD) / LINKS
    q0 = np.zeros(robot.nq)
    q0[0], q0[1] = -step / (2.0 * math.sin(0.5 * corner)), -4.0 * step
    q0[6], q0[7 : 6 + LINKS], q0[6 + LINKS] = 0.5 * corner, corner, 0.5 * corner
    across = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
    solid = rk.Solid(Cylinder(DRUM, 0.2), Placement(across))
    drum = s.ground(friction=mu, plane=False, shapes=[solid])
    slope = mu * math.tan(0.5 * corner)
    ratio = ((1.0 + slope) / (1.0 - slope)) ** LINKS
    ends = "l0", f"l{LINKS + 8}"
    for share in (0.95, 1.05):
        forces = -1.0, -share * ratio
        pushes = [rk.Push(end, (0.0, 0.0, f), duration=1.0) for end, f in zip(ends, forces, strict=True)]
        t = s.fall(robot, q0, duration=0.05, dt=0.25e-3, ground=drum, self_collision=False, pushes=pushes,
                   joint_damping=0.0, gravity=(0, 0, 0))  # fmt: skip
        limits = {"most": 1e-3} if share < 1.0 else {"least": 0.1}

        def theirs(stiff: bool, forces: Any = forces) -> float:
            peer = Peer(robot.with_gravity((0, 0, 0)), 0.25e-3, stiff, mu, plane=False,
                        solids=[(solid.geometry, (0.0, 0.0, 0.0), across)])  # fmt: skip
            peer.start(q0)
            for end, force in zip(ends, forces, strict=True):
                peer.data.xfrc_applied[peer.model.body(robot.body_name(robot.link(end).body)).id, 2] = force
            peer.step(200)
            return abs(float(peer.v[1]))

        what = f"{share:g} of {ratio:.4g}: speed of the light end"
        found.add(what, "m/s", abs(float(t.v[-1, 1])), **both(look, theirs), **limits)
    return found
