"""A seven-joint arm of 18 kg. Sizes and masses are our own, in the class of today's light industrial arms."""

from __future__ import annotations

from parts import Joint, Link, Robot, Solid, box, capsule, rod, sphere

Y, Z = (0, 1, 0), (0, 0, 1)


def arm() -> Robot:
    """Seven joints; three axes meet in the shoulder, three in the wrist; q = 0 points straight up."""
    robot = Robot(
        "arm",
        """
A seven-joint arm, spherical-revolute-spherical: the first three axes meet in the shoulder (0.34 m above the
floor), the last three in the wrist; shoulder to elbow and elbow to wrist are 0.4 m each. Straight up at
q = 0. A gripper is fixed to the flange.
""",
    )

    def housing(r: float, half: float, z: float) -> list[Solid]:
        """A joint across the arm: dark drum with coloured lids."""
        drum = rod(r, (0, -half, z), (0, half, z), "charcoal")
        for s in (-1, 1):
            drum += rod(r * 0.72, (0, s * half, z), (0, s * (half + 0.006), z), "coral")
        return drum

    base = rod(0.105, (0, 0, 0), (0, 0, 0.025), "charcoal") + rod(0.085, (0, 0, 0.025), (0, 0, 0.14))
    base += rod(0.078, (0, 0, 0.14), (0, 0, 0.15), "charcoal")
    bodies = {
        "base": (3.4, base, rod(0.1, (0, 0, 0), (0, 0, 0.15))),
        "shoulder_turret": (
            2.8,
            rod(0.074, (0, 0, 0.0), (0, 0, 0.1))
            + sphere(0.074, (0, 0, 0.1))
            + housing(0.062, 0.085, 0.19)
            + capsule(0.066, (0, 0, 0.1), (0, 0, 0.17)),
            sphere(0.08, (0, 0, 0.19)),
        ),
        "upper_arm": (
            2.8,
            capsule(0.06, (0, 0, 0.05), (0, 0, 0.13)) + rod(0.057, (0, 0, 0.14), (0, 0, 0.2), "charcoal"),
            sphere(0.062, (0, 0, 0.12)),
        ),
        "upper_arm_roll": (
            2.3,
            rod(0.06, (0, 0, 0.001), (0, 0, 0.14)) + sphere(0.06, (0, 0, 0.14)) + housing(0.056, 0.076, 0.2),
            sphere(0.072, (0, 0, 0.2)),
        ),
        "forearm": (
            2.3,
            capsule(0.053, (0, 0, 0.05), (0, 0, 0.14)) + rod(0.049, (0, 0, 0.14), (0, 0, 0.2), "charcoal"),
            sphere(0.055, (0, 0, 0.12)),
        ),
        "forearm_roll": (
            1.7,
            rod(0.052, (0, 0, 0.001), (0, 0, 0.14))
            + sphere(0.052, (0, 0, 0.14))
            + housing(0.047, 0.064, 0.2),
            sphere(0.062, (0, 0, 0.2)),
        ),
        "wrist": (
            1.4,
            capsule(0.044, (0, 0, 0.035), (0, 0, 0.05)) + rod(0.042, (0, 0, 0.05), (0, 0, 0.1), "charcoal"),
            sphere(0.046, (0, 0, 0.06)),
        ),
        "flange": (0.4, rod(0.04, (0, 0, 0), (0, 0, 0.026), "steel"), sphere(0.04)),
        "gripper": (0.9, _gripper(), box((0.06, 0.14, 0.15), (0, 0, 0.075))),
    }
    robot.links = [Link(name, mass, visuals, touch) for name, (mass, visuals, touch) in bodies.items()]
    names = list(bodies)
    table = [
        # above the joint before [m], axis, limit [rad], effort [N m], velocity [rad/s]
        (0.15, Z, 2.96, 180, 1.7),
        (0.19, Y, 2.09, 180, 1.7),
        (0.2, Z, 2.96, 110, 1.9),
        (0.2, Y, 2.09, 110, 2.0),
        (0.2, Z, 2.96, 110, 2.4),
        (0.2, Y, 2.09, 40, 3.0),
        (0.1, Z, 3.05, 40, 3.0),
    ]
    for k, (z, axis, bound, effort, velocity) in enumerate(table, start=1):
        joint = Joint(
            f"joint_{k}", names[k - 1], names[k], (0, 0, z), axis, (-bound, bound), effort, velocity
        )
        joint.damping, joint.friction = effort / 300, effort / 400
        robot.joints.append(joint)
    robot.joints.append(Joint("gripper_mount", "flange", "gripper", (0, 0, 0.026)))
    return robot


def _gripper() -> list[Solid]:
    """A palm and two parallel fingers."""
    solids = rod(0.034, (0, 0, 0), (0, 0, 0.02), "charcoal") + box((0.056, 0.13, 0.05), (0, 0, 0.042))
    solids += box((0.03, 0.136, 0.012), (0, 0, 0.064), "charcoal")
    for s in (-1, 1):
        solids += box((0.024, 0.016, 0.07), (0, s * 0.042, 0.102), "charcoal")
        solids += box((0.022, 0.006, 0.04), (0, s * 0.0315, 0.117), "coral")
    return solids
