"""Tasks of SimBenchmark, made anew: rolling, elastic bounces, a crowd of balls, a robot and balls in space.

Source: D. Kang, J. Hwangbo, "SimBenchmark: Physics engine benchmark for robotics applications" (2018); its
figures at 1 ms: squared error of a velocity RaiSim 4.1e-7, Bullet 5.7e-9, MuJoCo 6.9e-3.
"""

from __future__ import annotations

import math

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases import worlds as w
from fidelity_cases.peer import Peer, both
from fidelity_cases.table import Found, Look, case
from robokit.model import Box, Sphere


@case("pushed_ball", "Public references", "SimBenchmark: a ball rolls and a box slides under a force")
def pushed_ball(look: Look) -> Found:
    """A ball of 10 cm and 1 kg is pushed at its middle by 3 N for 4 s, friction 0.8: its acceleration is 5/7
    of that of a sliding one. A box of 10 kg is pushed by 1.5 times its friction of 0.4. Measured: the mean
    squared error of the speed, and the error of the distance.
    """
    found = Found()
    for label, body, mu, force, wanted in (
        ("ball rolls", w.Body(Sphere(0.1), 1.0, (0.0, 0.0, 0.1)), 0.8, 3.0, 3.0 * 5.0 / 7.0),
        ("box slides", w.Body(Box((0.4, 0.4, 0.1)), 10.0, (0.0, 0.0, 0.05)), 0.4, 6.0 * s.G, 0.2 * s.G),
    ):
        world = w.World([body], friction=mu)
        robot = world.robot()
        q0 = world.run(1.0).q[-1]
        link = robot.links[-1].name
        push = rk.Push(link, (force, 0.0, 0.0), duration=10.0)
        t = world.run(4.0, q=q0, v=np.zeros(6), pushes=push)

        def theirs(
            stiff: bool, world: w.World = world, force: float = force, wanted: float = wanted
        ) -> float:
            peer = world.peer(stiff=stiff)
            peer.step(1000)
            peer.start(peer.q)
            peer.data.xfrc_applied[1, 0] = force
            v = np.array([(peer.step(10), peer.data.qvel[0])[1] for _ in range(400)])
            return float(np.mean((v - wanted * 0.01 * np.arange(1, 401)) ** 2))

        x = t.q[:, 4] - q0[4]
        v = t.momentum[:, 3] / robot.total_mass
        error = float(np.mean((v - wanted * t.t) ** 2))
        found.add(f"{label}: squared error of the speed", "m²/s²", error, **both(look, theirs), most=1e-6)
        found.add(f"{label}: error of the way", "", abs(x[-1] / (0.5 * wanted * 16.0) - 1.0), most=1e-3)
    return found


@case("elastic", "Public references", "SimBenchmark: elastic bounces")
def elastic(look: Look) -> Found:
    """Balls of 5 cm fall from 0.5 and 1 m on the plane with a restitution of 1 and 0.8. Measured: the height
    of the tenth bounce at 1, and of the fourth at 0.8, compared with e^2n h, and the energy above the start,
    at 0.25 to 4 ms.
    """
    found = Found()
    for height in (0.5, 1.0)[: look.some(2, 1)]:
        for e in (1.0, 0.8):
            for dt in (0.25e-3, 1e-3, 4e-3):
                bounces = 10 if e == 1.0 else 4
                fall = math.sqrt(2.0 * height / s.G)
                end = fall * (1.0 + 2.0 * sum(e**k for k in range(1, bounces)) + e**bounces)  # highest
                world = w.World([w.Body(Sphere(0.05), 1.0, (0.0, 0.0, 0.05 + height))], restitution=e)
                t = world.run(end, dt, every=dt)
                wanted = e ** (2 * bounces)
                where = f"{height:g} m, e {e:g}, {1e3 * dt:g} ms: bounce {bounces}"
                error, above = _heights(t.energy.mechanical, height, wanted)
                errors, aboves = {}, {}
                if look.peer:
                    log = math.log(e)  # direct stiffness, with the damping that belongs to e
                    damping = -2.0 * log / math.hypot(math.pi, log) * math.sqrt(1e5)
                    peer = world.peer(dt, bounce=damping)
                    q, v = peer.states(round(end / dt), 1)
                    total = sum(x[:, 0] for x in s.rollout_energies(world.robot(), q[:, None], v[:, None]))
                    errors["mujoco"], aboves["mujoco"] = _heights(total, height, wanted)
                found.add(f"{where}, height error", "", error, **errors, most=0.01)
                if e == 1.0:
                    found.add(f"{where}, energy above the start", "", above, **aboves, most=1e-9)
    if look.peer:
        found.notes.append(
            "MuJoCo: with direct stiffness (solref) and the damping that belongs to the restitution."
        )
    return found


def _heights(energy: np.ndarray, height: float, wanted: float) -> tuple[float, float]:
    """Error of the height at the end, of that wanted, and energy above the start, of the fall's.

    Args:
        energy: of a ball of 1 kg and 5 cm [J].
        height: of the fall [m].
        wanted: share of it at the end.
    """
    left = (float(energy[-1]) - s.G * 0.05) / (s.G * height)
    return abs(left / wanted - 1.0), max((energy.max() - energy[0]) / (s.G * height), 0.0)


@case("crowd", "Public references", "SimBenchmark: balls dropped at once")
def crowd(look: Look) -> Found:
    """Balls of 1 kg and 10 cm on a grid of 22 cm with small offsets fall on the plane and each other, without
    restitution, friction 0.8, 2 s at 1 ms: 8, 27 and 666. Measured: the energy above what it was at the
    start, and the largest overlap.
    """
    found = Found()
    for count in (8, 27, 666)[: look.some(3, 1)]:
        world = w.World(_grid(count), friction=0.8)
        t = world.run(2.0)
        theirs = {}
        if look.peer and count < 100:
            theirs = both(
                look, lambda stiff, world=world: _overlap(world.peer(stiff=stiff).states(2000, 10)[0])
            )
        found.add(f"{count} balls: largest overlap", "mm", _overlap(t.q), **theirs, most=10.0)
        above = t.energy.mechanical.max() / t.energy.mechanical[0] - 1.0
        found.add(f"{count} balls: energy above the start", "of it", max(above, 0.0), most=1e-9)
    return found


def _grid(count: int) -> list[w.Body]:
    """Balls of 1 kg and 10 cm, 22 cm apart, with small offsets."""
    rng, bodies = np.random.default_rng(0), []
    side = max(2, round(count ** (1.0 / 3.0)))
    for k in range(count):
        i, j, z = k % side, k // side % side, k // side**2
        at = np.array([0.22 * i, 0.22 * j, 0.15 + 0.22 * z]) + rng.uniform(-0.005, 0.005, 3)
        bodies.append(w.Body(Sphere(0.1), 1.0, tuple(at)))
    return bodies


@case("elastic_crowd", "Public references", "SimBenchmark: elastic balls dropped at once")
def elastic_crowd(look: Look) -> Found:
    """27 of these balls, without friction and with a restitution of 1, 2 s at 0.25 to 4 ms. Measured: how far
    the energy rises above that of the start, and how much of it is lost by the end.
    """
    found, world = Found(), w.World(_grid(look.some(27, 8)), friction=0.0, restitution=1.0)
    for dt in (0.25e-3, 1e-3, 4e-3):
        t = world.run(2.0, dt)
        energy = {"robokit": t.energy.mechanical}
        if look.peer:
            q, v = world.peer(dt, bounce=0.0).states(round(2.0 / dt), round(1e-2 / dt))
            energy["mujoco"] = sum(s.rollout_energies(world.robot(), q[:, None], v[:, None]))[:, 0]
        above = {who: max(0.0, float(x.max() / x[0]) - 1.0) for who, x in energy.items()}
        lost = {who: 1.0 - float(x[-1] / x[0]) for who, x in energy.items()}
        found.add(f"{1e3 * dt:g} ms: energy above the start", "of it", **above, most=1e-9)
        found.add(f"{1e3 * dt:g} ms: energy lost", "of the start's", **lost, most=0.01)
    if look.peer:
        found.notes.append("MuJoCo: with direct stiffness (solref), undamped.")
    return found


@case("cradle", "Public references", "Newton's cradle: as many balls fly off as come")
def cradle(look: Look) -> Found:
    """Five balls of 1 kg and 10 cm that touch, in a row without gravity; one, two or three of them come with
    2 m/s and a restitution of 1. Measured: the largest difference of a ball's velocity after 40 ms from
    that of as many balls that fly off, and the change of the energy.
    """
    found = Found()
    for dt in (0.25e-3, 1e-3, 4e-3):
        off: dict[str, float] = {"robokit": 0.0}
        change: dict[str, float] = {"robokit": 0.0}
        for come in range(1, look.some(4, 3)):
            speeds = 2.0 * (np.arange(5) < come)
            bodies = [
                w.Body(
                    Sphere(0.1), 1.0, (0.2 * k - 0.01 * (k < come), 0.0, 0.0), v=(0.0,) * 3 + (v, 0.0, 0.0)
                )
                for k, v in enumerate(speeds.tolist())
            ]
            world = w.World(bodies, friction=0.0, restitution=1.0, plane=False, gravity=(0.0, 0.0, 0.0))
            ends = {"robokit": world.run(0.04, dt).v[-1]}
            if look.peer:
                ends["mujoco"] = world.peer(dt, bounce=0.0).states(round(0.04 / dt), round(0.04 / dt))[1][-1]
            for who, v in ends.items():
                x = v.reshape(5, 6)[:, 3]
                off[who] = max(off.get(who, 0.0), float(np.abs(x - speeds[::-1]).max()))
                change[who] = max(change.get(who, 0.0), abs(1.0 - float(x @ x / (speeds @ speeds))))
        found.add(f"{1e3 * dt:g} ms: velocities after the impacts, off by", "m/s", **off, most=2e-3)
        found.add(f"{1e3 * dt:g} ms: change of the energy", "of the start's", **change, most=1e-3)
    if look.peer:
        found.notes.append("MuJoCo: with direct stiffness (solref), undamped.")
    return found


def _overlap(q: np.ndarray) -> float:
    """Largest overlap of balls of 10 cm [mm]."""
    deepest = 0.0
    for x in w.places(q):
        away = np.linalg.norm(x[:, None] - x[None], axis=-1) + np.eye(len(x))
        deepest = max(deepest, 0.2 - away.min())
    return 1e3 * deepest


@case("anymal", "Public references", "SimBenchmark: a robot and balls that fly at it, momentum and energy")
def anymal(look: Look) -> Found:
    """ANYmal floats without gravity, joints undamped; four balls of 5 kg fly at it with 3 m/s and a
    restitution of 1, for 1 s at 1 ms. Measured: the largest changes of the total momentum, and the energy
    above the start.
    """
    found = Found()
    robot = s.with_joints(
        s.load("quadruped" if look.quick else "example-robot-data:anymal"), damping=0.0, friction=0.0
    )
    shot = w._body(Sphere(0.1), 5.0)
    world = rk.together({"robot": robot} | {f"ball{k}": shot for k in range(4)})
    q = [robot.neutral()]
    v = [np.zeros(robot.nv)]
    for k in range(4):
        angle = 0.5 * math.pi * k + 0.3
        way = np.array([math.cos(angle), math.sin(angle), 0.0])
        q.append(np.concatenate([[1.0, 0.0, 0.0, 0.0], 1.2 * way + [0.0, 0.0, 0.05 * k]]))
        v.append(np.concatenate([np.zeros(3), -3.0 * way]))
    q, v = np.concatenate(q), np.concatenate(v)
    pairs = rk.collision_pairs(world).with_law(restitution=1.0, friction=0.0)
    t = s.fall(world, q, v, duration=1.0, dt=1e-3, gravity=(0, 0, 0), self_collision=pairs, joint_damping=0.0,
               record_every=1)  # fmt: skip
    change = np.abs(t.momentum - t.momentum[0]).max(axis=0)

    def theirs(stiff: bool) -> float:
        peer = Peer(
            world.with_gravity((0, 0, 0)), 1e-3, stiff, 0.0, pairs=rk.collision_pairs(world), plane=False
        )
        peer.start(q, v)
        qs, vs = peer.states(1000, 10)
        p = np.array([rk.centroidal_momentum(world, x, y) for x, y in zip(qs, vs, strict=True)])[:, 3:]
        return float(np.abs(p - p[0]).max())

    found.add("change of the linear momentum", "N s", change[3:].max(), **both(look, theirs), most=1e-9)
    found.add("change of the angular momentum", "N m s", change[:3].max(), most=1e-9)
    above = t.energy.mechanical.max() / t.energy.mechanical[0] - 1.0
    found.add("energy above the start", "of it", max(above, 0.0), most=1e-9)
    found.add("energy at the end", "of the start's", t.energy.mechanical[-1] / t.energy.mechanical[0])
    return found
