"""A four-legged robot of 18 kg. Sizes and masses are our own, in the class of small walking robots."""

from __future__ import annotations

from parts import Joint, Link, Robot, box, capsule, rod, slab, sphere

X, Y = (1, 0, 0), (0, 1, 0)
THIGH = SHANK = 0.22
FOOT_RADIUS = 0.024
HIP_BEND, KNEE_BEND = 0.75, -1.5  # of the standing pose, part of the joint origins


def quadruped() -> Robot:
    """12 joints: abduction, hip and knee of four legs; q = 0 stands with bent knees, facing +x."""
    robot = Robot(
        "quadruped",
        f"""
A four-legged robot with 12 joints. At q = 0 it stands with bent knees, facing +x: the bend ({HIP_BEND} rad
at the hip, {KNEE_BEND} rad at the knee) is part of the joint origins.
""",
    )
    trunk = slab(0.05, (0.15, 0.042, 0)) + slab(0.032, (0.13, 0.03, 0), (-0.01, 0, 0.034), "charcoal")
    for s in (-1, 1):
        trunk += rod(0.046, (s * 0.15, 0, 0), (s * 0.235, 0, 0), "charcoal")
        trunk += capsule(0.012, (-0.12, s * 0.088, 0), (0.12, s * 0.088, 0), "coral")
    robot.links.append(Link("trunk", 8.16, trunk, box((0.46, 0.18, 0.1))))

    face = slab(0.034, (0.02, 0.032, 0), (0.02, 0, 0.0)) + slab(
        0.026, (0, 0.03, 0.002), (0.05, 0, 0), "charcoal"
    )
    for s in (-1, 1):
        face += sphere(0.011, (0.072, s * 0.022, 0.003), "glow")
    robot.links.append(Link("head", 1.2, face, sphere(0.05, (0.03, 0, 0))))
    robot.joints.append(Joint("head_mount", "trunk", "head", (0.25, 0, 0.03)))

    for end, sx in (("front", 1), ("hind", -1)):
        for side, sy in (("left", 1), ("right", -1)):
            _leg(robot, f"{end}_{side}", sx, sy)
    return robot


def _leg(robot: Robot, leg: str, sx: int, sy: int) -> None:
    hip = rod(0.044, (-sx * 0.03, 0, 0), (sx * 0.034, 0, 0), "ivory")
    hip += rod(0.042, (0, sy * 0.02, 0), (0, sy * 0.06, 0), "charcoal")
    robot.links.append(Link(f"{leg}_hip", 0.7, hip))

    thigh = rod(0.046, (0, -sy * 0.022, 0), (0, sy * 0.022, 0), "ivory")
    thigh += rod(0.03, (0, sy * 0.018, 0), (0, sy * 0.027, 0), "coral")
    thigh += capsule(0.03, (0, 0, -0.02), (0, 0, -0.11)) + capsule(0.024, (0, 0, -0.1), (0, 0, -THIGH))
    robot.links.append(Link(f"{leg}_thigh", 1.1, thigh, sphere(0.046) + sphere(0.028, (0, 0, -THIGH))))

    shank = rod(0.023, (0, -0.029, 0), (0, 0.029, 0), "charcoal")
    shank += capsule(0.018, (0, 0, 0), (0, 0, -0.1), "charcoal") + capsule(
        0.013, (0, 0, -0.1), (0, 0, -SHANK), "charcoal"
    )
    robot.links.append(Link(f"{leg}_shank", 0.3, shank))
    robot.links.append(Link(f"{leg}_foot", 0.06, sphere(FOOT_RADIUS, material="coral"), sphere(FOOT_RADIUS)))

    spread = (-0.6, 0.9) if sy > 0 else (-0.9, 0.6)
    hip_at, thigh_at = (sx * 0.2, sy * 0.055, 0), (0, sy * 0.085, 0)
    common = {"damping": 0.08, "friction": 0.1}
    robot.joints += [
        Joint(f"{leg}_abduction", "trunk", f"{leg}_hip", hip_at, X, spread, 40, 25, **common),
        Joint(
            f"{leg}_hip_pitch",
            f"{leg}_hip",
            f"{leg}_thigh",
            thigh_at,
            Y,
            (-1.8, 2.2),
            40,
            25,
            rpy=(0, HIP_BEND, 0),
            **common,
        ),
        Joint(
            f"{leg}_knee",
            f"{leg}_thigh",
            f"{leg}_shank",
            (0, 0, -THIGH),
            Y,
            (-1.15, 0.9),
            50,
            22,
            rpy=(0, KNEE_BEND, 0),
            **common,
        ),
        Joint(f"{leg}_foot_mount", f"{leg}_shank", f"{leg}_foot", (0, 0, -SHANK)),
    ]
