"""The humanoid against the published tables, and against its own mirror image."""

from __future__ import annotations

import numpy as np
import pytest

MASS, STATURE, HIP = 75.0, 1.75, 0.935

# de Leva 1996, Table 4, men: share of mass [%], centre of mass from the upper end [% of the length],
# length [mm at 1741 mm], and the radius of gyration about the transverse axis [% of the length].
# The upper end is given as the link at whose origin it lies, or as a height above the hips [m].
TABLE = {
    "lower_trunk": (("pelvis",), 11.17, "lumbar", 61.15, 145.7, 55.1),
    "middle_trunk": (("lumbar", "abdomen"), 16.33, "chest", 45.02, 215.5, 38.3),
    "upper_trunk": (("chest",), 15.96, 0.535, 29.99, 170.7, 45.4),
    "head": (("neck", "head"), 6.94, STATURE - HIP, 50.02, 242.9, 31.5),
    "upper_arm": (("_shoulder", "_arm_upper", "_arm_lower"), 2.71, "_shoulder", 57.72, 281.7, 26.9),
    "forearm": (("_forearm_upper", "_forearm_lower"), 1.62, "_forearm_upper", 45.74, 268.9, 26.5),
    "hand": (("_wrist", "_hand"), 0.61, "_hand", 36.24, 189.9, 23.5),
    "thigh": (("_hip", "_thigh_upper", "_thigh_lower"), 14.16, "_hip", 40.95, 422.2, 32.9),
    "shank": (("_shank",), 4.33, "_shank", 43.95, 440.3, 24.6),
}


def segments():
    for name, (links, *rest) in TABLE.items():
        for side in ("left", "right") if links[0].startswith("_") else ("",):
            yield pytest.param(side, links, *rest, id=f"{side}_{name}" if side else name)


@pytest.mark.parametrize("side, links, share, top, com_percent, length_mm, gyration", list(segments()))
def test_segment_agrees_with_the_table(humanoid, side, links, share, top, com_percent, length_mm, gyration):
    length = length_mm / 1741 * STATURE
    mass, com, inertia = humanoid.whole([side + link for link in links])
    assert mass == pytest.approx(share / 100 * MASS, rel=1e-6)
    height = humanoid.poses()[side + top][1][2] if isinstance(top, str) else top
    assert abs(height - com_percent / 100 * length - com[2]) < 0.04
    assert abs(np.sqrt(inertia[1, 1] / mass) - gyration / 100 * length) < 0.03


def test_foot_mass_and_length(humanoid):
    mass, com, _ = humanoid.whole(["left_ankle", "left_foot"])
    assert mass == pytest.approx(0.0137 * MASS, rel=1e-6)
    ankle = humanoid.poses()["left_ankle"][1]
    assert abs(com[0] - ankle[0] - 0.045) < 0.02


def test_total_mass_and_height_of_the_centre_of_mass(humanoid):
    mass, com, _ = humanoid.whole(humanoid.bodies)
    assert abs(mass - MASS) < 1e-6
    assert abs(com[1]) < 1e-9
    assert 0.55 < (com[2] + HIP) / STATURE < 0.58  # 0.56 to 0.57 in standing adults


def test_limb_lengths_are_those_of_the_table(humanoid):
    p = {name: position for name, (_, position) in humanoid.poses().items()}
    for upper, lower, mm in (
        ("left_hip", "left_shank", 422.2),
        ("left_shank", "left_ankle", 440.3),
        ("left_shoulder", "left_forearm_upper", 281.7),
        ("left_forearm_upper", "left_wrist", 268.9),
    ):
        assert abs(p[upper][2] - p[lower][2] - mm / 1741 * STATURE) < 1e-3


def test_left_and_right_are_mirror_images(humanoid):
    mirror = np.diag([1.0, -1.0, 1.0])
    poses = humanoid.poses()
    left = [name for name in humanoid.bodies if name.startswith("left_")]
    assert len(left) == 13
    for name in left:
        other = name.replace("left", "right")
        a, b = humanoid.bodies[name], humanoid.bodies[other]
        assert a.mass == b.mass
        np.testing.assert_allclose(mirror @ a.com, b.com, atol=1e-12)
        np.testing.assert_allclose(mirror @ a.inertia @ mirror, b.inertia, atol=1e-12)
        np.testing.assert_allclose(mirror @ poses[name][1], poses[other][1], atol=1e-12)
        for shapes, others in ((a.visuals, b.visuals), (a.collisions, b.collisions)):
            rest = [(kind, *size, *place) for kind, size, place, _ in others]
            for kind, size, place, _ in shapes:
                image = [*size, *(mirror @ place)]
                rest.remove(next(s for s in rest if s[0] == kind and np.allclose(s[1:], image, atol=1e-12)))
            assert rest == []


def test_joint_limits_are_mirrored(humanoid):
    joints = {j.get("name"): j for j in humanoid.root.findall("joint")}
    for name, joint in joints.items():
        if not name.startswith("left_"):
            continue
        other = joints[name.replace("left", "right")]
        axis = joint.find("axis").get("xyz")
        assert axis == other.find("axis").get("xyz")
        a, b = joint.find("limit"), other.find("limit")
        lower, upper = float(a.get("lower")), float(a.get("upper"))
        expected = (lower, upper) if axis == "0 1 0" else (-upper, -lower)
        assert (float(b.get("lower")), float(b.get("upper"))) == expected
        assert joint.find("dynamics").attrib == other.find("dynamics").attrib


def test_joint_counts(humanoid):
    names = [j.get("name") for j in humanoid.root.findall("joint")]
    assert len(names) == 31
    assert sum(n.startswith("left_") for n in names) == 13
    assert sum(n.startswith("waist_") for n in names) == 3
