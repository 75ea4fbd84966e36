"""Towers, heaps, mass ratios, dominoes; starts that hardly differ; scale; robots that collide."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases import worlds as w
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case
from robokit.model import Box, Capsule, ModelBuilder, Placement, Shape

STILL, PLACE = 1e-9, 1.0
"""What rest means: largest speed [m/s, rad/s], and motion in the last two seconds [µm]."""


def rests(found: Found, look: Look, what: str, world: w.World, seconds: float) -> None:
    """Whether a pile is at rest in the last two seconds, and where its uppermost body has gone."""
    t = world.run(seconds)
    late = round(2.0 / 1e-2)
    mine = _rest(t.q, t.v, late) if "stopped" not in t.summary else [math.nan] * 3
    theirs: dict[bool, list[float]] = {}
    for stiff in (False, True) if look.peer else ():
        theirs[stiff] = _rest(*world.peer(stiff=stiff).states(round(1e3 * seconds), 10), late)
    wanted = {"largest speed at the end": ("m/s, rad/s", STILL), "motion in the last 2 s": ("µm", PLACE)}
    for k, (name, (unit, most)) in enumerate(wanted.items()):
        them = {"mujoco": theirs[False][k], "stiff": theirs[True][k]} if theirs else {}
        found.add(f"{what}: {name}", unit, mine[k], **them, most=most)
    them = {"mujoco": theirs[False][2], "stiff": theirs[True][2]} if theirs else {}
    found.add(f"{what}: largest way of a body from its start", "mm", mine[2], **them)


def _rest(q: np.ndarray, v: np.ndarray, late: int) -> list[float]:
    x = w.places(q)
    moved = np.linalg.norm(x[-late:] - x[-late], axis=-1).max()
    return [float(np.abs(v[-1]).max()), 1e6 * moved, 1e3 * np.linalg.norm(x[-1] - x[0], axis=-1).max()]


@case("towers", "Piles", "Towers of boxes")
def towers(look: Look) -> Found:
    """Boxes of 10 cm and 1 kg on each other, each second one 1 mm aside; friction 0.5, 1 ms, 10 s. Measured:
    the largest speed at the end, and how far any box moves in the last two seconds.
    """
    found = Found()
    for count in (5, 10, 20)[: look.some(3, 1)]:
        rests(found, look, f"{count} boxes", w.tower(count), look.some(10, 4))
    return found


@case("heaps", "Piles", "A heap of fifty mixed hulls")
def heaps(look: Look) -> Found:
    """Boxes and hulls of 16 corners, 8 to 24 cm and 0.5 to 2 kg, fall in nine columns at random angles;
    friction 0.5, 1 ms, 10 s. Measured: what is measured for towers.
    """
    found = Found()
    for count in (5, 20, 50)[: look.some(3, 1)]:
        world = w.heap(count, kinds="hb")
        rests(found, look, f"{count} bodies", world, look.some(10, 4))
    return found


@case("ratios", "Piles", "A thousand times the mass, above and below")
def ratios(look: Look) -> Found:
    """Two boxes of 10 cm on each other, 1 and 1000 kg, either below; and four, of 1, 10, 100 and 1000 kg from
    the ground up. Measured: what is measured for towers.
    """
    found = Found()
    for label, masses in (
        ("1000 kg on 1 kg", (1.0, 1000.0)),
        ("1 kg on 1000 kg", (1000.0, 1.0)),
        ("1, 10, 100, 1000 kg", (1.0, 10.0, 100.0, 1000.0)),
    ):
        rests(found, look, label, w.tower(len(masses), masses=masses), look.some(6, 4))
    return found


@case("dominoes", "Piles", "Eight dominoes")
def dominoes(look: Look) -> Found:
    """Dominoes of 2 x 6 x 12 cm and 0.1 kg, 8 cm apart, friction 0.6; the first gets 1.3 times the speed that
    tips it. Measured: when the last leans by 20 degrees, at 1 ms compared with 0.25 ms, and the energy's
    growth.
    """
    size, gap = np.array([0.02, 0.06, 0.12]), 0.08
    up = 0.5 * (math.hypot(size[0], size[2]) - size[2])
    speed = 1.3 * math.sqrt(2.0 * s.G * up / ((size[0] ** 2 + size[2] ** 2) / 3.0))
    bodies = [w.Body(Box(tuple(size)), 0.1, (gap * k, 0.0, 0.06)) for k in range(look.some(8, 4))]
    bodies[0] = replace(bodies[0], v=(0, speed, 0, 0.5 * speed * size[2], 0, 0.5 * speed * size[0]))
    world, found = w.World(bodies, friction=0.6), Found()

    def when(q: np.ndarray, dt: float) -> float:
        lean = np.degrees(np.arccos(1.0 - 2.0 * (q[:, -6] ** 2 + q[:, -5] ** 2)))
        return dt * float(np.argmax(lean > 20.0)) if lean.max() > 20.0 else math.nan

    runs = {dt: world.run(1.2, dt, every=1e-3) for dt in (1e-3, 0.25e-3)}
    at = {dt: when(t.q, 1e-3) for dt, t in runs.items()}

    def theirs(stiff: bool) -> float:
        a, b = (when(world.peer(dt, stiff).states(round(1.2 / dt), round(1e-3 / dt))[0], 1e-3) for dt in at)
        return abs(a / b - 1.0)

    late = abs(at[1e-3] / at[0.25e-3] - 1.0)
    found.add("time of the last: 1 ms beside 0.25 ms", "", late, **both(look, theirs), most=0.01)
    found.add("time of the last at 1 ms", "s", at[1e-3])
    total = runs[1e-3].energy.mechanical
    found.add(
        "energy above the start, of the start's", "", max(0.0, (total / total[0]).max() - 1.0), most=1e-9
    )
    return found


@case("continuity", "Piles", "Starts that differ by 1e-12")
def continuity(look: Look) -> Found:
    """Five (and ten) boxes of 10 cm fall on a heap, at random angles; again with 1e-12 m added to their
    positions at random. Measured: the largest difference in 0.4 s, and the median of ten heaps.
    """
    found = Found()
    for count in (5, 10)[: look.some(2, 1)]:
        mine, soft, hard = [], [], []
        for seed in range(look.some(10, 2)):
            rng = np.random.default_rng(seed)
            bodies = []
            for k in range(count):
                turn = rng.standard_normal(4)
                bodies.append(w.Body(Box((0.1,) * 3), 1.0, (*rng.uniform(-0.05, 0.05, 2), 0.09 + 0.15 * k),
                                     tuple(turn / np.linalg.norm(turn))))  # fmt: skip
            world = w.World(bodies)
            q, _ = world.start()
            away = q.reshape(-1, 7).copy()
            away[:, 4:] += 1e-12 * rng.choice((-1.0, 1.0), (count, 3))
            a, b = (world.run(0.4, q=x, every=1e-3).q for x in (q, away.ravel()))
            mine.append(_difference(a, b))
            for stiff, out in ((False, soft), (True, hard)) if look.peer and seed < 5 else ():
                peer, runs = world.peer(stiff=stiff), []
                for x in (q, away.ravel()):
                    peer.start(x)
                    runs.append(peer.states(400, 1)[0])
                out.append(_difference(*runs))
        for what, of in (("median", np.median), ("largest", np.max)):
            them = {"mujoco": of(soft), "stiff": of(hard)} if soft else {}
            most = 1e-8 if what == "largest" else None
            found.add(f"{count} boxes: difference in 0.4 s, {what}", "m", of(mine), **them, most=most)
    return found


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    n = min(len(a), len(b))
    return float(np.abs(w.places(a[:n]) - w.places(b[:n])).max())


def jointed(length: float, mass: float) -> rk.Robot:
    """Three boxes and a capsule on hinges, all lengths and masses multiplied; damping likewise."""
    damping = 0.02 * mass * length**1.5  # kg m²/s with time as the root of lengths
    builder = ModelBuilder("jointed")
    size = np.array([0.3, 0.2, 0.1]) * length
    square = size**2
    inertia = np.diag(square.sum() - square) * mass / 12.0
    for k in range(3):
        builder.link(f"box{k}", mass, inertia=inertia, collisions=(Shape(Box(tuple(size))),))
    bar = Capsule(0.04 * length, 0.2 * length)
    builder.link("bar", 0.5 * mass, inertia=np.diag([2e-3, 2e-3, 4e-4]) * mass * length**2,
                 collisions=(Shape(bar),))  # fmt: skip
    ends = (("box0", "box1", (0, 1, 0)), ("box1", "box2", (0, 0, 1)), ("box2", "bar", (0, 1, 0)))
    for parent, child, axis in ends:
        at = Placement(position=np.array([0.36 * length, 0.0, 0.0]))
        builder.joint(f"to {child}", "continuous", parent, child, at, axis=axis, damping=damping)
    return builder.build("floating")


@case("scale", "Piles", "A fall at a tenth of the length and a millionth of the mass")
def scale(look: Look) -> Found:
    """Three boxes and a capsule on damped hinges fall from 1 m, spinning, for 1.5 s at 1 ms; again with
    lengths times 0.1, masses times 1e-6, the ground's sink, times and steps as these want. Measured: the
    largest difference of the coordinates, over the size. MuJoCo's solver has thresholds with units, too.
    """
    found, end = Found(), 1.5
    sink, time = 1e-3, 20e-3

    def options(length: float) -> dict[str, Any]:
        root = math.sqrt(length)
        return {"dt": 1e-3 * root, "record_every": 5, "self_collision": True,
                "ground": s.ground(friction=0.6, sink=sink * length, time=time * root)}  # fmt: skip

    def start(robot: rk.Robot, length: float) -> tuple[np.ndarray, np.ndarray]:
        q = s.at_height(robot, 1.0 * length, (0.8, 0.3, 0.4, 0.2))
        v = np.concatenate([[3.0, -2.0, 4.0], [0.5, 0.3, 0.0], [2.0, -1.0, 3.0]])
        root = math.sqrt(length)
        return q, np.concatenate([v[:3] / root, v[3:6] * root, v[6:] / root])

    def own(q: np.ndarray, length: float) -> np.ndarray:
        q = q.copy()
        q[:, 4:7] /= length
        return q

    for label, length, mass in (
        ("a tenth of the length", 0.1, 1.0),
        ("a millionth of the mass", 1.0, 1e-6),
        ("both", 0.1, 1e-6),
    ):
        runs, peers = [], {False: [], True: []}
        for a, b in ((1.0, 1.0), (length, mass)):
            robot = jointed(a, b)
            q, v = start(robot, a)
            runs.append(own(s.fall(robot, q, v, duration=end * math.sqrt(a), **options(a)).q, a))
            for stiff in peers if look.peer else ():
                peer = Peer(robot, 1e-3 * math.sqrt(a), stiff, 0.6, pairs=rk.collision_pairs(robot))
                if not stiff:
                    peer.model.geom_solref[:, 0] = 20e-3 * math.sqrt(a)
                else:
                    peer.model.geom_solref[:, 0] = 2e-3 * math.sqrt(a)
                peer.start(q, v)
                peers[stiff].append(own(peer.states(round(end / 1e-3), 5)[0], a))
        them = {k: float(np.abs(peers[flag][0] - peers[flag][1]).max())
                for k, flag in (("mujoco", False), ("stiff", True)) if look.peer}  # fmt: skip
        n = min(map(len, runs))
        found.add(f"{label}: largest difference", "sizes, rad", np.abs(runs[0][:n] - runs[1][:n]).max(),
                  **them, most=1e-6)  # fmt: skip
    return found


@case("collide", "Piles", "Two robots collide in space")
def collide(look: Look) -> Found:
    """Two humanoids fly at each other with 2 and -1 m/s, slowly spinning, without gravity and ground, for
    2 s at 1 ms. Measured: the largest change of the momentum of both, and the energy above the start.
    """
    found = Found()
    robot = s.load("quadruped" if look.quick else "humanoid")
    world = rk.together({"a": robot, "b": robot})
    a, b = (s.at_height(robot, z) for z in (0.0, 0.15))
    b[4] = 1.0
    va, vb = np.zeros(robot.nv), np.zeros(robot.nv)
    va[:4], vb[:4] = (0.3, 0.2, 0.5, 2.0), (-0.2, 0.4, 0.1, -1.0)
    q, v = np.concatenate([a, b]), np.concatenate([va, vb])
    t = s.fall(world, q, v, duration=2.0, dt=1e-3, gravity=(0, 0, 0), self_collision=True, record_every=1)
    change = np.abs(t.momentum - t.momentum[0]).max(axis=0)
    lost = t.energy.kinetic[0] - t.energy.kinetic[-1]

    def theirs(stiff: bool) -> float:
        damped = s.same_joints(world).with_gravity((0, 0, 0))
        peer = Peer(damped, 1e-3, stiff, 0.8, pairs=rk.collision_pairs(world), plane=False)
        peer.start(q, v)
        qs, vs = peer.states(2000, 10)
        p = np.array([rk.centroidal_momentum(world, x, y) for x, y in zip(qs, vs, strict=True)])[:, 3:]
        return float(np.abs(p - p[0]).max())

    found.add("change of the linear momentum", "N s", change[3:].max(), **both(look, theirs), most=1e-9)
    found.add("change of the angular momentum", "N m s", change[:3].max(), most=1e-9)
    above = t.energy.mechanical.max() - t.energy.mechanical[0]
    moving = t.energy.kinetic[0]
    found.add("energy above the start", "of it", max(above, 0.0) / moving, most=1e-9)
    found.add("energy that the impact and the joints took", "J", lost, least=0.1)
    return found
