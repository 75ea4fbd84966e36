"""The robots of example-robot-data: what real files look like. Every warning here was looked at by hand."""

import pytest

from robokit.robot_names import example_robots
from robokit.urdf import check_urdf

pytestmark = pytest.mark.parity

# Files with a defect that no reading of theirs can mend.
REFUSED = {"alex_psyonic_hands.urdf": {"mimic-unknown"}, "ur3.urdf": {"no-links"}}

JUSTIFIED = {
    "inertia-not-psd",
    "inertia-triangle",
    "inertia-zero",
    "limit-range-missing",
    "massless-subtree",
    "mesh-unresolved",
    "robot-name-empty",
}

SILENT = {
    "a1.urdf",
    "borinot_flying_arm_2.urdf",
    "double_pendulum_continuous.urdf",
    "g1_29dof_with_hand_rev_1_0.urdf",
    "hextilt_flying_arm_5.urdf",
    "human.urdf",
    "iris.urdf",
    "laikago.urdf",
    "simple_humanoid_classical.urdf",
}


def test_example_robots():
    paths = sorted(set(example_robots().values()))
    assert len(paths) > 50
    silent = set()
    for path in paths:
        _, found = check_urdf(path)
        errors = {d.code for d in found if d.severity == "error"}
        assert errors == REFUSED.get(path.name, set()), found
        assert {d.code for d in found if d.severity == "warning"} <= JUSTIFIED
        if not found:
            silent.add(path.name)
    assert silent >= SILENT
