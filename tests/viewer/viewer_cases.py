"""Robots and a made-up motion for the viewer: known numbers, no simulator."""

from __future__ import annotations

import threading

import numpy as np
import waiting

from robokit.model import ModelBuilder, Placement
from robokit.sim import Ground, Trajectory
from robokit.sim.trajectory import Contacts, Energy

EVIL = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"


def made_up_motion(robot, duration=2.0, rate=120.0):
    """A motion with every part that a Trajectory can have; its energy balance is exact by construction."""
    t = np.arange(0.0, duration + 0.5 / rate, 1.0 / rate)
    q, v = np.tile(robot.neutral(), (len(t), 1)), np.zeros((len(t), robot.nv))
    tilt = 0.5 * np.pi * np.clip(t / duration, 0.0, 1.0) ** 2
    for joint in robot.joints:
        if joint.kind == "floating":
            q[:, 0], q[:, 2] = np.cos(0.5 * tilt), np.sin(0.5 * tilt)
            q[:, 4], q[:, 6] = 0.6 * np.sin(tilt), 0.25 + 0.7 * np.cos(tilt)
        elif joint.q_slice.stop - joint.q_slice.start == 1:
            reach = min(0.4, joint.upper, -joint.lower) if joint.upper > 0 > joint.lower else 0.0
            q[:, joint.q_slice] = reach * np.sin(3.0 * t)[:, None]
            v[:, joint.v_slice] = 3.0 * reach * np.cos(3.0 * t)[:, None]
    kinetic, dissipated = 40.0 * t * np.exp(-t), 5.0 * t
    potential = 500.0 - kinetic - dissipated
    force = np.zeros((len(t), 3))
    force[:, 2] = robot.total_mass * 9.81 * (1.0 + 2.0 * np.exp(-(((t - 1.2) / 0.05) ** 2)))
    points = np.zeros((len(t), 3, 3))
    points[:, :, 0] = [0.1, 0.0, -0.1]
    forces = np.zeros((len(t), 3, 3))
    forces[:, :2] = 0.5 * force[:, None]
    momentum = np.stack([0 * t, np.sin(t), 0 * t, 10 * t, 0 * t, -20 * t], axis=1)
    found = Trajectory(
        t=t,
        q=q,
        v=v,
        energy=Energy(kinetic, potential, dissipated, np.zeros(len(t))),
        momentum=momentum,
        contact_force=force,
        robot=robot,
        ground=Ground(),
        summary={"steps_per_second": 412345.0, "energy_balance": 3.2e-6, "deepest_penetration": 2.6e-3},
    )
    # As Trajectory.load does: the contacts are given, not computed.
    vars(found)["contacts"] = Contacts(points, forces, ("a", "b", "c"))
    return found


def scene_taken(viewer):
    """The live view's scene, once the server has taken all that was sent before."""
    taken = threading.Event()
    viewer.meshcat.window._loop.call_soon_threadsafe(taken.set)
    assert taken.wait(waiting.PATIENCE)
    return viewer.meshcat.window.scene


def pendulum(name="pendulum", links=("upper", "lower"), shapes=()):
    """A double pendulum, without shapes unless given."""
    b = ModelBuilder(name)
    b.link("base")
    above = "base"
    for k, link in enumerate(links):
        b.link(link, mass=1.0, com=(0, 0, -0.25), inertia=np.diag([0.02, 0.02, 0.001]), visuals=shapes)
        place = Placement(position=np.array([0.0, 0.0, -0.5 if k else 0.0]))
        b.joint(
            f"{link}_joint", "revolute", above, link, placement=place, axis=(0, 1, 0), lower=-2.0, upper=2.0
        )
        above = link
    return b.build(base="fixed")


def zoo():
    """One joint of every kind, one on another."""
    b = ModelBuilder("zoo")
    b.link("base")
    above = "base"
    rng = np.random.default_rng(7)
    kinds = (
        "floating",
        "revolute",
        "continuous",
        "prismatic",
        "helical",
        "cylindrical",
        "planar",
        "spherical",
    )
    for kind in kinds:
        axis = rng.normal(size=3)
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        turn *= np.linalg.det(turn)
        b.link(kind, mass=0.5, inertia=np.diag([0.01, 0.012, 0.008]))
        place = Placement(turn, rng.uniform(-0.3, 0.3, 3))
        b.joint(
            f"{kind}_joint", kind, above, kind, placement=place, axis=axis / np.linalg.norm(axis), pitch=0.1
        )
        above = kind
    return b.build(base="fixed")
