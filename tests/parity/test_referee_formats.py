"""The referee on MJCF, SDF and USD, on a URDF through other programs, and its proof by mutation, a sample."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from other_formats import sdf, usd

import robokit as rk
from robokit.mjcf import to_mjcf
from robokit.parity import referee
from robokit.urdf import check_urdf

pytestmark = pytest.mark.parity

OURS = ("arm", "quadruped")


def described(name):
    """A robot's file and its description, without the passive forces that USD's own schema cannot say."""
    description, _ = check_urdf(rk.find_robot(name), "either")
    joints = (joint._replace(dynamics=None) for joint in description.joints)
    return description._replace(joints=tuple(joints))


@pytest.mark.parametrize("name", [*OURS, "example-robot-data:panda"])
def test_the_export_is_the_robot(name, tmp_path):
    file, out = rk.find_robot(name), tmp_path / "robot.xml"
    for base in ("fixed", "floating"):
        to_mjcf(rk.load_urdf(file, base=base), out, visuals=False)
        verdict = referee(file, out, base=base)
        assert verdict.same and verdict.joints == len(rk.load_urdf(file).joint_names)
        other = {"fixed": "floating", "floating": "fixed"}[base]
        cause = {"fixed": "base-welded", "floating": "base-freed"}[base]
        assert [f.cause for f in referee(file, out, base=other).findings] == [cause]


@pytest.mark.parametrize("through", ["mujoco", "drake", "pinocchio"])
@pytest.mark.parametrize("name", [*OURS, "example-robot-data:panda"])
def test_other_programs_read_the_same_robot(name, through):
    file = rk.find_robot(name)
    verdict = referee(file, file, through=through)
    assert verdict.same, verdict.findings
    assert verdict.joints == len(rk.load_urdf(file).joint_names)


def test_drake_replaces_an_impossible_inertia():
    file = rk.find_robot("example-robot-data:b1")
    (finding,) = referee(file, file, through="drake").findings
    assert (finding.cause, finding.name) == ("inertia-ball", "base")


@pytest.mark.parametrize("name", OURS)
def test_sdf(name, tmp_path):
    description, _ = check_urdf(rk.find_robot(name), "either")
    b = tmp_path / "robot.sdf"
    b.write_text(sdf(description))
    verdict = referee(rk.find_robot(name), b)
    assert verdict.same and verdict.bodies == len(description.links), verdict.findings
    first = next(joint for joint in description.joints if joint.moves)
    text = b.read_text()
    axis = f"<xyz>{' '.join(map(repr, first.axis))}</xyz>"
    b.write_text(text.replace(axis, f"<xyz>{' '.join(repr(-x) for x in first.axis)}</xyz>", 1))
    (finding,) = referee(rk.find_robot(name), b).findings
    assert (finding.cause, finding.name) == ("axis-flipped", first.name)


@pytest.mark.parametrize("name", OURS)
def test_usd(name, tmp_path):
    pytest.importorskip("pxr", reason="usd-core has no wheel for every machine")
    from robokit.urdf.xml_text import write

    description = described(name)
    a, b, c = (tmp_path / file for file in ("robot.urdf", "robot.usda", "inverted.usda"))
    a.write_text(write(description, []))
    usd(description, b)
    verdict = referee(a, b, base="fixed")
    assert verdict.same and verdict.bodies == len(description.links), verdict.findings
    assert [f.cause for f in referee(a, b, base="floating").findings] == ["base-welded"]
    usd(description, c, fixed=False, axes_inverted=True)
    verdict = referee(a, c, base="floating")
    assert {f.cause for f in verdict.findings} <= {"principal-axes-inverted", "principal-axes-lost"}
    turned = [
        link.name
        for link in description.links
        if link.inertial and np.abs(np.array(link.inertial.inertia)[[1, 2, 4]]).max() > 1e-6
    ]
    assert {f.name for f in verdict.findings} >= set(turned)


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    import referee as benchmark

    yield benchmark
    for name in [m for m in sys.modules if m.split(".")[0] in ("referee", "mutations", "measure")]:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["example-robot-data:ur5_gripper"])
def test_mistakes_are_named(benchmark, name, tmp_path):
    # The whole table, every public robot: python benchmarks/referee.py
    rows = list(benchmark.rows_of(rk.find_robot(name), ("URDF", "MJCF"), set(), tmp_path))
    done = [row for row in rows if not row.skipped]
    assert len(done) > 90
    wrong = [f"{r.format} {r.cause} {r.element}: {r.said or 'same'}" for r in done if not r.right]
    assert not wrong, "\n".join(wrong)
