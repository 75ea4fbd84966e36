"""What check says about example-robot-data, against the counts that were reviewed by hand and frozen."""

import json
from importlib import metadata

import pytest
from check_examples import FROZEN, counts

from robokit.robot_names import EXAMPLES, own_robots
from robokit.urdf import CODES, check_urdf

pytestmark = pytest.mark.parity
TABLE = json.loads(FROZEN.read_text())

# Every warning here was looked at by hand: the file has what the code says.
JUSTIFIED = {
    "inertia-not-psd",
    "inertia-triangle",
    "inertia-zero",
    "limit-range-missing",
    "massless-subtree",
    "mesh-unresolved",
    "robot-name-empty",
}


def test_counts_are_the_frozen_ones():
    assert f"{EXAMPLES} {metadata.version(EXAMPLES)}" == TABLE["of"], "other data: review and freeze again"
    assert counts() == TABLE["files"]


def test_no_warning_is_unreviewed():
    codes = {code for found in TABLE["files"].values() for code in found}
    assert {code for code in codes if CODES[code].severity == "warning"} <= JUSTIFIED
    errors = {
        name.rpartition("/")[2]
        for name, found in TABLE["files"].items()
        for c in found
        if CODES[c].severity == "error"
    }
    assert errors == {"alex_psyonic_hands.urdf", "ur3.urdf"}


@pytest.mark.parametrize("name", own_robots())
def test_our_own_robots_are_clean_with_meshes_and_either_base(name):
    assert check_urdf(own_robots()[name], base="either", plausible=True, meshes=True)[1] == []
