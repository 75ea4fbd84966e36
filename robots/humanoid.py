"""An adult of 1.75 m and 75 kg with the segment masses and lengths of a man of average build.

Masses and lengths: P. de Leva, "Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters",
J. Biomechanics 29(9), 1996, Table 4, men; lengths scaled from the table's 1.741 m. Heights of ankle and
shoulder, length of the foot: D. A. Winter, "Biomechanics and Motor Control of Human Movement", 4th ed.,
2009, Figure 4.1 (fractions of the stature, after Drillis and Contini). Ranges of motion: rounded from the
norms of the American Academy of Orthopaedic Surgeons. Damping, friction, effort and velocity are our own
round numbers, of the order of published ones.
"""

from __future__ import annotations

from math import radians

from parts import Joint, Link, Robot, Solid, box, capsule, rod, share_mass, slab, sphere

STATURE, MASS = 1.75, 75.0

# de Leva 1996, Table 4, men: share of the body mass [%].
SHARE = {
    "head": 6.94,  # with the neck
    "upper_trunk": 15.96,
    "middle_trunk": 16.33,
    "lower_trunk": 11.17,
    "upper_arm": 2.71,
    "forearm": 1.62,
    "hand": 0.61,
    "thigh": 14.16,
    "shank": 4.33,
    "foot": 1.37,
}
# The same table: length [mm] at a stature of 1741 mm.
LENGTH_MM = {
    "head_and_neck": 242.9,  # vertex to cervicale
    "upper_trunk": 170.7,  # suprasternale to xiphion
    "middle_trunk": 215.5,  # xiphion to omphalion
    "lower_trunk": 145.7,  # omphalion to the middle of the hips
    "upper_arm": 281.7,
    "forearm": 268.9,
    "thigh": 422.2,
    "shank": 440.3,  # knee to ankle joint centre
}
LENGTH = {name: round(mm / 1741 * STATURE, 3) for name, mm in LENGTH_MM.items()}

SOLE = round(-0.039 * STATURE, 3)  # below the ankle
HIP_HEIGHT = round(LENGTH["thigh"] + LENGTH["shank"] - SOLE, 3)  # above the ground, standing
SHOULDER = round(0.818 * STATURE - HIP_HEIGHT, 3)  # heights above the hips from here on
WAIST = LENGTH["lower_trunk"]
RIBS = round(WAIST + LENGTH["middle_trunk"], 3)
NECK = round(STATURE - LENGTH["head_and_neck"] - HIP_HEIGHT, 3)
HIP_Y, SHOULDER_Y = 0.09, 0.2

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)

# name: axis, lower [deg], upper [deg] (of the left side), effort [N m], velocity [rad/s],
# damping [N m s/rad], friction [N m]. Rotations about +y lean the trunk forward and swing a limb back.
JOINTS = {
    "waist_pitch": (Y, -25, 60, 200, 6, 3.0, 1.0),
    "waist_roll": (X, -25, 25, 200, 6, 3.0, 1.0),
    "waist_yaw": (Z, -45, 45, 120, 6, 2.0, 0.5),
    "neck_pitch": (Y, -50, 45, 40, 8, 0.4, 0.1),
    "head_yaw": (Z, -70, 70, 20, 10, 0.2, 0.05),
    "shoulder_pitch": (Y, -170, 50, 90, 12, 0.5, 0.1),
    "shoulder_roll": (X, -20, 160, 90, 12, 0.5, 0.1),
    "shoulder_yaw": (Z, -70, 80, 60, 14, 0.3, 0.1),
    "elbow": (Y, -145, 3, 70, 14, 0.2, 0.05),
    "forearm_yaw": (Z, -80, 80, 15, 16, 0.06, 0.02),
    "wrist_roll": (X, -75, 70, 15, 16, 0.05, 0.02),
    "wrist_pitch": (Y, -20, 30, 15, 16, 0.05, 0.02),
    "hip_pitch": (Y, -120, 20, 220, 10, 1.5, 0.5),
    "hip_roll": (X, -25, 45, 180, 10, 1.5, 0.5),
    "hip_yaw": (Z, -40, 45, 120, 10, 0.8, 0.3),
    "knee": (Y, -3, 140, 220, 12, 0.8, 0.3),
    "ankle_pitch": (Y, -20, 50, 140, 12, 0.4, 0.15),
    "ankle_roll": (X, -30, 20, 60, 12, 0.3, 0.1),
}


def humanoid() -> Robot:
    """31 joints: waist 3, neck 2, arms 7 each, legs 6 each; q = 0 stands upright, facing +x, arms down."""
    robot = Robot(
        "humanoid",
        f"""
An adult of {STATURE} m and {MASS:g} kg, standing upright at q = 0, facing +x. The root link 'pelvis' has its
origin midway between the hip joints, {HIP_HEIGHT} m above the soles.

Segment masses and lengths: P. de Leva, Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters,
J. Biomechanics 29(9), 1996, Table 4, men. Heights of ankle and shoulder: D. A. Winter, Biomechanics and Motor
Control of Human Movement, 2009, Figure 4.1. Within a segment the mass is spread over the links by volume.
""",
    )
    _trunk(robot)
    for side, s in (("left", 1), ("right", -1)):
        _arm(robot, side, s)
        _leg(robot, side, s)
    return robot


def _add(robot: Robot, joint: str, parent: str, link: Link, at: tuple, side: str = "") -> Link:
    """Hang a link on its parent by a joint of the table, mirrored for the right side."""
    axis, lower, upper, *rest = JOINTS[joint]
    if side == "right" and axis != Y:
        lower, upper = -upper, -lower
    limits = (round(radians(lower), 4), round(radians(upper), 4))
    name = f"{side}_{joint}" if side else joint
    robot.links.append(link)
    robot.joints.append(Joint(name, parent, link.name, at, axis, limits, *rest))
    return link


def _segment(name: str, links: list[Link]) -> None:
    share_mass(MASS * SHARE[name] / 100, links)


def _trunk(robot: Robot) -> None:
    pelvis = slab(0.08, (0, 0.078, 0.02), (0, 0, 0.045)) + capsule(0.062, (0, -0.03, -0.02), (0, 0.03, -0.02))
    pelvis += capsule(0.076, (0, -0.055, 0.115), (0, 0.055, 0.115), "charcoal")
    seat = [solid for s in (-1, 1) for solid in sphere(0.08, (-0.01, s * 0.075, 0.03))]
    root = Link("pelvis", 0, pelvis, seat)
    robot.links.append(root)
    _segment("lower_trunk", [root])

    half = round(LENGTH["middle_trunk"] / 2, 4)
    lumbar = Link("lumbar", 0, slab(0.074, (0, 0.05, 0.025), (0, 0, 0.05), "charcoal"))
    rise = round(RIBS - WAIST - half, 4)  # from the second joint of the waist to the third
    belly = slab(0.082, (0, 0.054, 0.022), (0, 0, 0.035))
    belly += capsule(0.08, (0, -0.05, rise - 0.018), (0, 0.05, rise - 0.018), "charcoal")
    abdomen = Link("abdomen", 0, belly)
    abdomen.collisions = [solid for s in (-1, 1) for solid in sphere(0.082, (0, s * 0.054, 0.03))]
    _add(robot, "waist_pitch", "pelvis", lumbar, (0, 0, WAIST))
    _add(robot, "waist_roll", "lumbar", abdomen, (0, 0, half))
    _segment("middle_trunk", [lumbar, abdomen])

    top = round(SHOULDER - RIBS, 3)
    chest = slab(0.098, (0, 0.058, 0.02), (0, 0, 0.074))
    chest += capsule(0.076, (0, -0.112, top - 0.004), (0, 0.112, top - 0.004))
    chest += rod(0.034, (0.085, 0, 0.082), (0.101, 0, 0.082), "charcoal")
    chest += rod(0.024, (0.09, 0, 0.082), (0.104, 0, 0.082), "glow")
    torso = Link("chest", 0, chest, box((0.19, 0.27, 0.2), (0, 0, 0.075)))
    _add(robot, "waist_yaw", "abdomen", torso, (0, 0, rise))
    _segment("upper_trunk", [torso])

    reach = 0.08  # from the base of the neck to the joint under the skull
    neck = Link("neck", 0, capsule(0.05, (0, 0, 0), (0.004, 0, reach), "charcoal"))
    _add(robot, "neck_pitch", "chest", neck, (-0.006, 0, round(NECK - RIBS, 3)))
    crown = round(STATURE - HIP_HEIGHT - NECK - reach, 3) - 0.088
    face = sphere(0.088, (0.004, 0, crown)) + sphere(0.081, (0.014, 0, crown - 0.034))
    face += sphere(0.066, (0.026, 0, crown - 0.072)) + sphere(0.074, (0.036, 0, crown - 0.022), "charcoal")
    for s in (-1, 1):
        face += sphere(0.012, (0.1, s * 0.027, crown - 0.012), "glow")
        face += rod(0.027, (0.004, s * 0.075, crown - 0.02), (0.004, s * 0.094, crown - 0.02), "coral")
    head = Link("head", 0, face)
    head.collisions = sphere(0.088, (0.004, 0, crown)) + sphere(0.066, (0.026, 0, crown - 0.072))
    _add(robot, "head_yaw", "neck", head, (0.004, 0, reach))
    _segment("head", [neck, head])


def _arm(robot: Robot, side: str, s: int) -> None:
    upper, fore = LENGTH["upper_arm"], LENGTH["forearm"]
    split = 0.16

    ball = Link(f"{side}_shoulder", 0, sphere(0.062, (0, s * 0.004, 0), "charcoal"))
    biceps = capsule(0.05, (0, s * 0.006, -0.055), (0, 0, -0.12))
    biceps += rod(0.046, (0, 0, -0.12), (0, 0, -split), "coral")
    arm_upper = Link(f"{side}_arm_upper", 0, biceps, sphere(0.06, (0, 0, -0.01)))
    arm_lower = Link(f"{side}_arm_lower", 0, capsule(0.043, (0, 0, -0.012), (0, 0, split - upper + 0.055)))
    arm_lower.collisions = sphere(0.043, (0, 0, -0.03))
    ball.density, arm_lower.density = 0.25, 1.6  # the shoulder's muscles belong to the trunk in the table
    _add(robot, "shoulder_pitch", "chest", ball, (0, s * SHOULDER_Y, round(SHOULDER - RIBS, 3)), side)
    _add(robot, "shoulder_roll", ball.name, arm_upper, (0, 0, 0), side)
    _add(robot, "shoulder_yaw", arm_upper.name, arm_lower, (0, 0, -split), side)
    _segment("upper_arm", [ball, arm_upper, arm_lower])

    turn = 0.14
    elbow = sphere(0.042, (0, 0, 0), "charcoal") + capsule(0.041, (0, 0, -0.055), (0, 0, -0.1))
    fore_upper = Link(f"{side}_forearm_upper", 0, elbow, sphere(0.042))
    cuff = capsule(0.034, (0, 0, 0), (0, 0, turn - fore + 0.035))
    cuff += rod(0.036, (0, 0, -0.07), (0, 0, -0.08), "coral")
    fore_lower = Link(f"{side}_forearm_lower", 0, cuff, sphere(0.034, (0, 0, -0.01)))
    _add(robot, "elbow", arm_lower.name, fore_upper, (0, 0, round(split - upper, 3)), side)
    _add(robot, "forearm_yaw", fore_upper.name, fore_lower, (0, 0, -turn), side)
    _segment("forearm", [fore_upper, fore_lower])

    wrist = Link(f"{side}_wrist", 0, sphere(0.03, (0, 0, 0), "charcoal"), sphere(0.03))
    hand = Link(f"{side}_hand", 0, _hand(s), box((0.08, 0.03, 0.16), (0, 0, -0.108)))
    _add(robot, "wrist_roll", fore_lower.name, wrist, (0, 0, round(turn - fore, 3)), side)
    _add(robot, "wrist_pitch", wrist.name, hand, (0, 0, 0), side)
    _segment("hand", [wrist, hand])


def _hand(s: int) -> list[Solid]:
    """Palm, four fingers and a thumb; the palm looks inward."""
    solids = slab(0.015, (0.026, 0, 0.026), (0, 0, -0.056))
    for x, tip in ((-0.0315, 0.15), (-0.0105, 0.171), (0.0105, 0.18), (0.0315, 0.169)):
        solids += capsule(0.0095, (x, 0, -0.09), (x * 1.05, -s * 0.006, -tip), "charcoal")
    return solids + capsule(0.0105, (0.032, -s * 0.004, -0.045), (0.055, -s * 0.018, -0.093), "charcoal")


def _leg(robot: Robot, side: str, s: int) -> None:
    thigh, shank = LENGTH["thigh"], LENGTH["shank"]
    split = 0.21

    ball = Link(f"{side}_hip", 0, sphere(0.076, (0, s * 0.004, 0), "charcoal"))
    quad = capsule(0.074, (0, s * 0.004, -0.085), (0, 0, -0.15))
    quad += rod(0.066, (0, 0, -0.17), (0, 0, -split - 0.014), "coral")
    thigh_upper = Link(f"{side}_thigh_upper", 0, quad, sphere(0.074, (0, s * 0.002, -0.125)))
    thigh_lower = Link(f"{side}_thigh_lower", 0, capsule(0.064, (0, 0, -0.02), (0, 0, split - thigh + 0.075)))
    thigh_lower.collisions = sphere(0.064, (0, 0, -0.08))
    _add(robot, "hip_pitch", "pelvis", ball, (0, s * HIP_Y, 0), side)
    _add(robot, "hip_roll", ball.name, thigh_upper, (0, 0, 0), side)
    _add(robot, "hip_yaw", thigh_upper.name, thigh_lower, (0, 0, -split), side)
    _segment("thigh", [ball, thigh_upper, thigh_lower])

    calf = sphere(0.058, (0.004, 0, 0), "charcoal") + capsule(0.054, (-0.008, 0, -0.09), (-0.008, 0, -0.16))
    calf += capsule(0.047, (-0.005, 0, -0.17), (-0.003, 0, -0.225))
    calf += capsule(0.041, (-0.002, 0, -0.24), (0, 0, -shank + 0.07))
    lower_leg = Link(f"{side}_shank", 0, calf, sphere(0.058, (0.004, 0, 0)))
    lower_leg.collisions += sphere(0.054, (-0.008, 0, -0.14)) + sphere(0.041, (-0.001, 0, -0.29))
    _add(robot, "knee", thigh_lower.name, lower_leg, (0, 0, round(split - thigh, 3)), side)
    _segment("shank", [lower_leg])

    heel, toe = -0.03, 0.15  # centres of the round ends of the sole
    ankle = Link(f"{side}_ankle", 0, sphere(0.041, (0, 0, 0), "charcoal"))
    sole = SOLE + 0.01
    shoe = box((toe - heel, 0.078, 0.02), ((toe + heel) / 2, 0, sole), "charcoal")
    for x, r in ((heel, 0.039), (toe, 0.046)):
        shoe += rod(r, (x, 0, SOLE), (x, 0, SOLE + 0.02), "charcoal")
    shoe += slab(0.034, (0.034, 0.004, 0), (0.004, 0, -0.022), "coral")
    shoe += slab(0.028, (0.06, 0.012, 0), (0.095, 0, SOLE + 0.038), "coral")
    shoe += capsule(0.036, (0.02, 0, -0.016), (0.085, 0, -0.03), "coral")
    foot = Link(f"{side}_foot", 0, shoe, box((0.256, 0.086, 0.03), (0.063, 0, SOLE + 0.015)))
    _add(robot, "ankle_pitch", lower_leg.name, ankle, (0, 0, -shank), side)
    _add(robot, "ankle_roll", ankle.name, foot, (0, 0, 0), side)
    _segment("foot", [ankle, foot])
