"""Robots with closed loops that the tests share."""

from __future__ import annotations

import dataclasses

import numpy as np
from ladder import ALL_KINDS, ROBOTS, inertia, rotation

import robokit as rk
from robokit.model import Box, ModelBuilder, Placement, Shape
from robokit.model.joints import JOINT_TABLE, JointModel
from robokit.spatial import Vector3

KINDS = [kind for kind in ALL_KINDS if kind != "floating"]  # kinds of loop joints that constrain anything

AXIS, PITCH = (0.36, 0.48, 0.8), 0.17


def two_arms(kind: str, seed: int = 0) -> rk.Robot:
    """A floating trunk with two arms of skew joints, a loop joint between their tips."""
    rng = np.random.default_rng(seed)
    b = ModelBuilder("arms").link("trunk", 2.0, (0.1, 0, 0), inertia(rng, 2.0))
    for side in "ab":
        above = "trunk"
        for k, joint in enumerate(("spherical", "helical", "prismatic", "revolute")):
            name = f"{side}{k}"
            b.link(name, 1.0 + k, rng.standard_normal(3) * 0.1, inertia(rng))
            at = Placement(rotation(rng), rng.standard_normal(3) * 0.2)
            b.joint(f"j{name}", joint, above, name, at, rng.standard_normal(3), pitch=0.1)
            above = name
    ends = [Placement(rotation(rng), rng.standard_normal(3) * 0.2) for _ in range(2)]
    b.loop_joint("loop", kind, "a3", "b3", *ends, axis=AXIS, pitch=PITCH if kind == "helical" else 0.0)
    return b.build("floating")


def closed_at(robot: rk.Robot, kind: str, q, moved) -> rk.Robot:
    """The robot with the successor's frame moved to where the joint is closed, its coordinates ``moved``."""
    (loop,) = robot.loop_joints
    (R, p), (S, s) = (rk.forward_kinematics(robot, q)[end] for end in (loop.predecessor, loop.successor))
    X = JointModel(JOINT_TABLE[kind], Vector3(*AXIS), loop.pitch).XJ(list(moved))
    step = Placement(np.array(X.E.rows).T, np.array(list(X.r)))
    at = Placement(S, s).inverse() @ Placement(R, p) @ loop.predecessor_placement @ step
    b = ModelBuilder.from_robot(robot)
    b._loops["loop"] = dataclasses.replace(b._loops["loop"], successor_placement=at)
    return b.build("floating")


def moving_arms(kind: str) -> tuple[rk.Robot, np.ndarray, np.ndarray]:
    """Two arms with their loop closed, and a state. Who simulates it without gravity shares its code."""
    rng, robot = np.random.default_rng(3), two_arms(kind)
    q = robot.random_configuration(rng)
    return closed_at(robot, kind, q, JOINT_TABLE[kind].neutral), q, rng.standard_normal(robot.nv)


def parallelogram(cranks: int = 3) -> rk.Robot:
    """A beam on equal cranks about y: each crank after the second repeats what the others hold."""
    b = ModelBuilder("parallelogram").link("ground")
    for k in range(cranks):
        b.link(f"crank{k}", 1.0, (0, 0, 0.25), np.eye(3) * 0.02)
        at = Placement(position=np.array([0.3 * k, 0, 0]))
        b.joint(f"hinge{k}", "continuous", "ground", f"crank{k}", at, axis=(0, 1, 0))
    tip = Placement(position=np.array([0, 0, 0.5]))
    b.link("beam", 2.0, (0.3, 0, 0), np.diag([0.01, 0.1, 0.1]))
    b.joint("pin", "continuous", "crank0", "beam", tip, axis=(0, 1, 0))
    for k in range(1, cranks):
        at = Placement(position=np.array([0.3 * k, 0, 0]))
        b.loop_joint(f"loop{k}", "revolute", "beam", f"crank{k}", at, tip, axis=(0, 1, 0))
    return b.build()


def peaucellier() -> rk.Robot:
    """Peaucellier's straight-line linkage about z: a rhombus on two long bars; a crank leads a corner.

    A bar of the length l is l / 2 [kg] and begins at its joint. Joints: pb (crank), oa, ab, ad, oc, cb, cd.
    """
    lengths = {"pb": 0.22, "oa": 0.5, "ab": 0.2, "ad": 0.2, "oc": 0.5, "cb": 0.2, "cd": 0.2}

    def along(length: float) -> Placement:
        return Placement(position=np.array([length, 0, 0]))

    b = ModelBuilder("peaucellier").link("base")
    for name, l in lengths.items():
        b.link(name, l / 2, (l / 2, 0, 0), np.diag([1e-6, l**3 / 24, l**3 / 24]))
        parent = "base" if name[0] in "po" else "o" + name[0]
        at = along(0.22 if name == "pb" else 0.0 if parent == "base" else 0.5)
        b.joint(name, "continuous", parent, name, at, axis=(0, 0, 1))
    for first, second in (("ab", "pb"), ("cb", "pb"), ("ad", "cd")):
        ends = along(lengths[first]), along(lengths[second])
        b.loop_joint(first + second, "revolute", first, second, *ends, axis=(0, 0, 1))
    return b.build()


def nearly_stretched(slack: float, base: str = "fixed") -> rk.Robot:
    """Three bars in a row on a box, hinged about y, whose ends are this much [m] closer than they can be."""
    size, lengths = np.array([0.3, 0.1, 0.04]), (0.1, 0.3, 0.1)
    inertia_of_box = np.diag((size**2).sum() - size**2) * 2.0 / 12.0
    b = ModelBuilder("stretched")
    b.link("base", 2.0, inertia=inertia_of_box, collisions=(Shape(Box(tuple(size))),))
    parent, end = "base", np.array([0.0, 0.0, 0.02])
    for k, length in enumerate(lengths):
        across = 0.5 * length**2 / 12.0
        b.link(f"link{k}", 0.5, com=(0.5 * length, 0.0, 0.0), inertia=np.diag([1e-5, across, across]))
        b.joint(f"pin{k}", "continuous", parent, f"link{k}", Placement(position=end), (0, 1, 0))
        parent, end = f"link{k}", np.array([length, 0.0, 0.0])
    far = Placement(position=np.array([sum(lengths) - slack, 0.0, 0.02]))
    b.loop_joint("last", "revolute", parent, "base", Placement(position=end), far, axis=(0, 1, 0))
    return b.build(base)


def bennett() -> rk.Robot:
    """Bennett's linkage: four hinges on skew axes, which move only while all four meet."""
    a, b = 0.3, 0.3 * np.sin(np.radians(70.0)) / np.sin(np.radians(30.0))
    short, long = (_hinge_after(x, np.radians(turn)) for x, turn in ((a, 30.0), (b, 70.0)))
    builder = ModelBuilder("bennett").link("link0", 3.0, (a / 2, 0, 0), np.eye(3) * 0.02)
    for k, place in enumerate((short, long, short), 1):
        builder.link(f"link{k}", 1.0, ((a if k == 2 else b) / 2, 0, 0), np.diag([1e-3, 0.02, 0.02]))
        builder.joint(f"hinge{k}", "continuous", f"link{k - 1}", f"link{k}", place, axis=(0, 0, 1))
    builder.loop_joint("hinge4", "revolute", "link3", "link0", long, Placement(), axis=(0, 0, 1))
    return builder.build()


def _hinge_after(length: float, twist: float) -> Placement:
    """Where the next axis is: along x, and turned about it."""
    c, s = np.cos(twist), np.sin(twist)
    return Placement(np.array([[1, 0, 0], [0, c, -s], [0, s, c]]), np.array([length, 0, 0]))


def delta(rod: float) -> rk.Robot:
    """A delta robot whose platform of 0.4 kg hangs on six rods of so many kg, with a ball at each end."""
    b = ModelBuilder("delta").link("frame")
    b.link("platform", 0.4, inertia=np.eye(3) * 5e-4)
    for k, angle in enumerate(np.radians((0.0, 120.0, 240.0))):
        c, s = np.cos(angle), np.sin(angle)
        R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        b.link(f"arm{k}", 0.5, (0.15, 0, 0), np.diag([1e-4, 4e-3, 4e-3]))
        b.joint(f"motor{k}", "continuous", "frame", f"arm{k}", Placement(R, R @ [0.2, 0, 0]), axis=(0, 1, 0))
        for y in (-0.04, 0.04):
            name, end = f"rod{k}{'-' if y < 0 else '+'}", Placement(position=np.array([0, 0, -0.6]))
            b.link(name, rod, (0, 0, -0.3), np.diag([0.03, 0.03, 7e-5]) * rod)
            b.joint(f"ball {name}", "spherical", f"arm{k}", name, Placement(position=np.array([0.3, y, 0])))
            foot = R @ [0.06, y, 0]
            if name == "rod0-":
                b.joint("carries", "spherical", name, "platform", Placement(position=end.position - foot))
            else:
                b.loop_joint(f"foot {name}", "spherical", name, "platform", end, Placement(position=foot))
    return b.build()


def jacobian(loops) -> np.ndarray:
    """K of all loops, (n_c, nv)."""
    return np.array([row for loop in loops for row in loop.jacobian()])


def free_four_bar(base: str = "fixed") -> rk.Robot:
    """The shipped four-bar without damping and friction."""
    robot = rk.load_urdf(ROBOTS / "four_bar.urdf", base=base)
    joints = tuple(dataclasses.replace(joint, damping=0.0, friction=0.0) for joint in robot.joints)
    return dataclasses.replace(robot, joints=joints)


def closed_four_bar(robot: rk.Robot, crank: float = 1.0) -> np.ndarray:
    """Its configuration at a crank angle."""
    q = robot.neutral()
    q[robot.joint("crank_joint").q_slice] = crank
    return rk.close_loops(robot, q, keep=["crank_joint"])


def spatial_loop(base: str = "fixed") -> rk.Robot:
    """The RSSR linkage: two cranks on skew axes, a coupler between ball joints, one of them a loop joint."""
    b = ModelBuilder("rssr").link("ground", 5.0, (0, 0, 0), np.eye(3) * 0.2)
    b.link("crank", 0.5, (0.1, 0, 0), np.diag([1e-4, 2e-3, 2e-3]))
    b.joint("a", "continuous", "ground", "crank", axis=(0, 0, 1))
    b.link("coupler", 0.8, (0, 0.25, 0), np.diag([5e-3, 1e-4, 5e-3]))
    tip = Placement(position=np.array([0.2, 0, 0]))
    b.joint("b", "spherical", "crank", "coupler", tip)
    b.link("rocker", 0.7, (0, 0, 0.2), np.diag([5e-3, 5e-3, 1e-4]))
    b.joint(
        "c",
        "continuous",
        "ground",
        "rocker",
        Placement(position=np.array([0.2, 0.5, -0.4])),
        axis=(0.6, 0.8, 0),
    )
    b.loop_joint(
        "d",
        "spherical",
        "coupler",
        "rocker",
        Placement(position=np.array([0, 0.5, 0.0])),
        Placement(position=np.array([0, 0, 0.4])),
    )
    return b.build(base)


def gripper(base: str = "fixed") -> rk.Robot:
    """Two fingers as Robotiq builds them: each a four-bar of knuckle, finger and inner knuckle."""
    b = ModelBuilder("gripper").link("palm", 0.8, (0, 0, 0.03), np.eye(3) * 1e-3)

    def rod(name, mass, com, size):
        b.link(
            name,
            mass,
            com,
            mass / 12 * np.diag([size**2, size**2, 1e-4]),
            collisions=(Shape(Box((0.01, 0.02, size)), Placement(position=np.array(com))),),
        )

    for side, s in (("left", 1.0), ("right", -1.0)):
        at = [Placement(position=np.array(p)) for p in ([0.03 * s, 0, 0.055], [0.0127 * s, 0, 0.0614])]
        rod(f"{side}_knuckle", 0.014, (0.016 * s, 0, -0.002), 0.03)
        rod(f"{side}_inner", 0.022, (0.019 * s, 0, 0.022), 0.05)
        rod(f"{side}_finger", 0.05, (0.005 * s, 0, 0.03), 0.06)
        b.joint(
            f"{side}_drive", "revolute", "palm", f"{side}_knuckle", at[0], (0, -s, 0), lower=-0.9, upper=0.9
        )
        b.joint(
            f"{side}_swing", "revolute", "palm", f"{side}_inner", at[1], (0, -s, 0), lower=-1.5, upper=1.5
        )
        hang = Placement(position=np.array([0.0315 * s, 0, -0.0041]))
        b.joint(f"{side}_tip", "continuous", f"{side}_knuckle", f"{side}_finger", hang, (0, -s, 0))
        pin = np.array([(0.03 + 0.0315 + 0.0055) * s, 0, 0.055 - 0.0041 + 0.0475])
        b.loop_joint(
            f"{side}_loop",
            "revolute",
            f"{side}_finger",
            f"{side}_inner",
            Placement(position=np.array([0.0055 * s, 0, 0.0475])),
            Placement(position=pin - np.array([0.0127 * s, 0, 0.0614])),
            axis=(0, 1, 0),
        )
    return b.build(base)
