"""Write the URDF files of this folder.

    python robots/generate.py [--output FOLDER]

Running it again writes the same bytes. The humanoid, the quadruped and the arm have a file each; the three
mechanisms, which are only a few lines long, are here.
"""

from __future__ import annotations

import argparse
from math import atan2
from pathlib import Path

from arm import arm
from humanoid import humanoid
from parts import Joint, Link, Robot, Solid, box, capsule, numbers, rod, sphere
from quadruped import quadruped

X, Y = (1, 0, 0), (0, 1, 0)


def double_pendulum() -> Robot:
    """Two rods with bobs, without damping: energy is conserved, motion is chaotic."""
    length = 0.5
    robot = Robot(
        "double_pendulum",
        """
Two rods with bobs that swing in the x-z plane and hang down at q = 0. No damping and no friction, so that the
total energy is constant.
""",
    )
    robot.links.append(
        Link(
            "mount",
            2.0,
            box((0.12, 0.14, 0.03), (0, 0, 0.045)) + rod(0.02, (0, -0.03, 0), (0, 0.03, 0), "charcoal"),
        )
    )
    for name, parent, mass, y, colour in (
        ("upper", "mount", 1.2, 0.0, "coral"),
        ("lower", "upper", 1.0, 0.035, "teal"),
    ):
        tip = (0, y, -length)
        visuals = rod(0.011, (0, y, 0), tip, "steel")
        visuals += rod(0.018, (0, y - 0.02, 0), (0, y + 0.02, 0), "charcoal")
        visuals += sphere(0.05, tip, colour)
        robot.links.append(Link(name, mass, visuals, sphere(0.05, tip)))
        at = (0, 0, 0) if parent == "mount" else (0, 0, -length)
        robot.joints.append(Joint(f"{name}_joint", parent, name, at, Y, effort=50, velocity=50))
    return robot


def four_bar() -> Robot:
    """A crank-rocker: three joints in the tree and one that closes the loop.

    Points at q = 0 in the x-z plane [m]: A and D on the ground, B between crank and coupler, C between
    coupler and rocker. Bars: crank AB 0.15, coupler BC 0.39, rocker DC 0.325, ground AD 0.485. The shortest
    and the longest sum to less than the other two (Grashof), so the crank turns all the way round.
    """
    A, B, C, D = (0, 0), (0, 0.15), (0.36, 0.3), (0.485, 0)
    robot = Robot(
        "four_bar",
        """
A planar four-bar linkage (crank-rocker) in the x-z plane: crank 0.15 m, coupler 0.39 m, rocker 0.325 m,
ground 0.485 m. URDF can only hold a tree, here ground-crank-coupler and ground-rocker; the joint that closes
the loop between coupler and rocker is the extension element <loop_joint> at the end, which other readers
ignore. Its two origins coincide at q = 0.
""",
    )

    def bar(end: tuple[float, float], layer: float, colour: str) -> list[Solid]:
        dx, dz = end
        length = (dx * dx + dz * dz) ** 0.5
        middle = (dx / 2, layer, dz / 2)
        visuals = box((length, 0.016, 0.028), middle, colour, (0, -atan2(dz, dx), 0))
        for x, z in ((0, 0), end):
            visuals += rod(0.014, (x, layer - 0.008, z), (x, layer + 0.008, z), colour)
        return visuals

    def pin(x: float, z: float, left: float, right: float) -> list[Solid]:
        return rod(0.007, (x, left, z), (x, right, z), "charcoal")

    def away(p: tuple[float, float], q: tuple[float, float]) -> tuple[float, float]:
        return (q[0] - p[0], q[1] - p[1])

    base = box((0.6, 0.1, 0.02), (D[0] / 2, 0, -0.06), "ivory")
    for x, _ in (A, D):
        base += box((0.04, 0.014, 0.06), (x, 0.022, -0.025), "ivory") + pin(x, 0, -0.012, 0.033)
    robot.links = [
        Link("ground", 4.0, base),
        Link("crank", 0.35, bar(away(A, B), 0.0, "coral") + pin(*away(A, B), -0.032, 0.012)),
        Link("coupler", 0.8, bar(away(B, C), -0.02, "teal") + pin(*away(B, C), -0.032, 0.012)),
        Link("rocker", 0.65, bar(away(D, C), 0.0, "sand")),
    ]
    for link in robot.links:
        link.collisions = [s for s in link.visuals if s.kind == "box"]
    damped = {"axis": Y, "effort": 20, "velocity": 20, "damping": 0.002, "friction": 0.001}
    robot.joints = [
        Joint("crank_joint", "ground", "crank", (A[0], 0, A[1]), **damped),
        Joint("coupler_joint", "crank", "coupler", (B[0] - A[0], 0, B[1] - A[1]), **damped),
        Joint("rocker_joint", "ground", "rocker", (D[0], 0, D[1]), **damped),
    ]
    ends = {"predecessor": ("coupler", away(B, C)), "successor": ("rocker", away(D, C))}
    robot.extra = ['<loop_joint name="closing_joint" type="revolute">']
    for role, (link, (x, z)) in ends.items():
        robot.extra.append(f'  <{role} link="{link}"><origin xyz="{numbers((x, 0, z))}"/></{role}>')
    robot.extra += [f'  <axis xyz="{numbers(Y)}"/>', "</loop_joint>"]
    return robot


def chain(count: int = 100) -> Robot:
    """A hanging chain of `count` links, axes y and x in turn."""
    pitch, r = 0.05, 0.014
    robot = Robot(
        "chain",
        f"""
A hanging chain of {count} links, {pitch * 1000:g} mm each, with revolute joints about y and x in turn: a deep
tree for tests of speed and accuracy.
""",
    )
    robot.links.append(Link("anchor", 1.0, box((0.1, 0.1, 0.02), (0, 0, 0.026), "charcoal") + sphere(0.018)))
    colours = ["ivory", "charcoal"]
    for k in range(1, count + 1):
        colour = "coral" if k % 10 == 0 else colours[k % 2]
        ends = (0, 0, -0.012), (0, 0, -pitch + 0.012)
        robot.links.append(Link(f"link_{k:03d}", 0.06, capsule(r, *ends, colour), sphere(r, ends[1])))
        robot.joints.append(
            Joint(
                f"joint_{k:03d}",
                robot.links[-2].name,
                robot.links[-1].name,
                (0, 0, 0 if k == 1 else -pitch),
                Y if k % 2 else X,
                (-1.2, 1.2),
                effort=10,
                velocity=50,
                damping=0.0005,
                friction=0.0002,
            )
        )
    return robot


ROBOTS = (humanoid, quadruped, arm, double_pendulum, four_bar, chain)


def main() -> None:
    """Write every robot."""
    parser = argparse.ArgumentParser(description="Write the URDF files of this folder.")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="folder to write to")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for make in ROBOTS:
        robot = make()
        (folder / f"{robot.name}.urdf").write_text(robot.urdf(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
