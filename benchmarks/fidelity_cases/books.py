"""The ledger: energy and momentum in free flight, in falls, under pushes."""

from __future__ import annotations

import math

import numpy as np
from models import frictionless

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.table import Found, Look, case


@case("free_flight", "The ledger", "The ledger in free flight")
def free_flight(look: Look) -> Found:
    """G1 without damping, friction and limits tumbles (normally distributed speeds, 1 rad/s) and falls for 1
    s at 1 ms, far above the ground; its bodies pass through each other. Measured: what the ledger misses,
    over what moved; the energy error in J compared with a step of half the length says the order.
    """
    found = Found()
    robot = frictionless(s.load("quadruped" if look.quick else s.G1))
    v0 = np.random.default_rng(1).standard_normal(robot.nv)
    q0 = robot.neutral()
    q0[6] = 20.0
    ways = {"with a ground (default)": s.alone({"ground": s.ground()}), "rkmk4": {"integrator": "rkmk4"}}
    for label, way in ways.items():
        errors = []
        for dt in (1e-3, 0.5e-3):
            t = s.fall(robot, q0, v0, duration=1.0, dt=dt, joint_damping=0.0, **way)
            errors.append(t.summary["energy_balance"])
            if dt == 1e-3:
                moved = t.summary["energy_exchanged"]
                found.add(f"{label}: energy missed, of what moved", "", errors[0] / moved, most=1e-9)
                linear = t.summary["momentum_balance_linear"]
                found.add(f"{label}: momentum missed", "N s", linear, most=1e-9 * robot.total_mass * s.G)
        found.add(f"{label}: energy missed at 1 ms", "J", errors[0])
        found.add(f"{label}: order of that error", "", math.log2(errors[0] / max(errors[1], 1e-300)))
    return found


@case("fall_energy", "The ledger", "The energy of falls of four seconds")
def fall_energy(look: Look) -> Found:
    """Falls from 2 cm, leaning 4 degrees. Measured: the largest error of the ledger's energy: the error of
    the time steps.
    """
    found = Found()
    wanted = {"humanoid": 0.15, "G1": 0.12}
    robots = (("humanoid", "humanoid"), ("G1", s.G1), ("quadruped", "quadruped"))
    for label, name in robots[: look.some(3, 1)]:
        robot = s.load(name)
        for dt in (1e-3, 0.25e-3, 4e-3):
            misses, closed = [], []
            for seed in range(look.some(5, 1)):
                q0 = rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=seed)
                t = s.fall(robot, q0, duration=4.0, dt=dt, ground=s.ground())
                misses.append(t.summary["energy_balance"])
                closed.append(t.summary["momentum_balance_linear"])
            most = wanted.get(label) if dt == 1e-3 else None
            found.add(f"{label}, {1e3 * dt:g} ms: energy's error, mean", "J", np.mean(misses), most=most)
            if dt == 1e-3:
                found.add(f"{label}: energy's error, worst", "J", max(misses))
                found.add(f"{label}: momentum missed", "N s", max(closed), most=1e-8)
    return found


@case("pushes", "The ledger", "A floating box is pushed")
def pushes(look: Look) -> Found:
    """A box of 2 kg, falling above the ground, is pushed with 98 N for 0.1 s, or gets the same as an impulse.
    Measured: the error of its momentum, 9.8 N s, and of the ledger's energy.
    """
    found, robot = Found(), s.box()
    q0 = s.at_height(robot, 3.0)
    force = np.array([98.0, 0.0, 0.0])
    wrench = np.array([0.0, 0.0, 0.0, 98.0, 0.0, 0.0])
    ways = {
        "a push": {"pushes": rk.Push("box", force, duration=0.1)},
        "an impulse": {"pushes": rk.Push("box", 0.1 * force)},
        "off the centre": {"pushes": rk.Push("box", force, point=(0.0, 0.1, 0.05), duration=0.1)},
        "joint forces of the base": {"controller": lambda t, q, v: wrench * (t < 0.1 - 1e-9)},
    }
    for label, way in ways.items():
        t = s.fall(robot, q0, duration=0.3, ground=s.ground(), record_every=1, **way)
        found.add(f"{label}: error of the momentum", "N s", abs(t.momentum[-1, 3] - 9.8), most=1e-9)
        moved = t.summary["energy_exchanged"]
        found.add(f"{label}: energy's error, of what moved", "", t.summary["energy_balance"] / moved)
    return found


@case("pushed_fall", "The ledger", "Momentum of a fall under pushes")
def pushed_fall(look: Look) -> Found:
    """The humanoid stands and is pushed on its chest with 200 N for 0.2 s and hit with 5 N s, at 1 ms, and
    falls. Measured: what the ledger of momentum misses, over all impulses of the ground.
    """
    found = Found()
    robots = (("humanoid", "humanoid"), ("G1", s.G1))
    for label, name in (("quadruped", "quadruped"),) if look.quick else robots:
        robot = s.load(name)
        link = max((x for x in robot.links if x.body), key=lambda x: x.mass).name
        q0 = rk.standing_configuration(robot, height=0.01, seed=0)
        pushes = [
            rk.Push(link, (200.0, 0.0, 0.0), point=(0.0, 0.0, 0.1), start=0.1, duration=0.2),
            rk.Push(link, (0.0, 5.0, 0.0), start=0.5),
        ]
        t = s.fall(robot, q0, duration=2.0, ground=s.ground(), pushes=pushes)
        total = robot.total_mass * s.G * 2.0
        for part in ("linear", "angular"):
            missed = t.summary[f"momentum_balance_{part}"] / total
            found.add(f"{label}: {part} momentum missed, of the impulse", "", missed, most=1e-9)
        moved = t.summary["energy_exchanged"]
        found.add(f"{label}: energy's error, of what moved", "", t.summary["energy_balance"] / moved)
    return found


@case("energy_momentum", "The ledger", "The integrator that keeps energy and momentum")
def energy_momentum(look: Look) -> Found:
    """10 s of passive motion at 1 ms: the double pendulum, and G1 tumbling without gravity. Measured: the
    errors of energy and momentum, relative to their largest values.
    """
    found, seconds = Found(), float(look.some(10, 1))
    pendulum = frictionless(rk.load_urdf(rk.find_robot("double_pendulum")))
    swing = pendulum.configuration(joints={pendulum.joint_names[0]: 2.0, pendulum.joint_names[1]: 0.5})
    label = "quadruped" if look.quick else "G1"
    tumbler = frictionless(s.load("quadruped" if look.quick else s.G1))
    v0 = np.random.default_rng(1).standard_normal(tumbler.nv)
    for name in ("energy_momentum", "rkmk4"):
        limit = 1e-12 if name == "energy_momentum" else None
        t = s.fall(pendulum, swing, duration=seconds, dt=1e-3, integrator=name)
        error = np.abs(t.energy.total - t.energy.total[0]).max() / np.abs(t.energy.total).max()
        found.add(f"{name}, double pendulum: energy", "", error, most=limit)
        t = s.fall(
            tumbler, tumbler.neutral(), v0, duration=seconds, dt=1e-3, integrator=name, gravity=(0, 0, 0)
        )
        error = np.abs(t.energy.kinetic - t.energy.kinetic[0]).max() / t.energy.kinetic.max()
        found.add(f"{name}, {label}: energy", "", error, most=limit)
        for part, what in ((slice(0, 3), "angular"), (slice(3, 6), "linear")):
            size = np.abs(t.momentum[:, part]).max()
            error = np.abs(t.momentum[:, part] - t.momentum[0, part]).max() / size
            found.add(f"{name}, {label}: {what} momentum", "", error, most=limit)
        found.add(f"{name}, {label}: steps a second", "1/s", t.summary["steps_per_second"])
    return found
