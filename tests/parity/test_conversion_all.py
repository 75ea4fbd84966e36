"""Every URDF of example-robot-data written as MJCF, SDF and URDF: the referee finds no difference.

The base is free, but where the root link is called "world", which programs take for the fixed world. MuJoCo
refuses five files for their own masses; their MJCF is written with a warning that says so.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import robokit as rk
from robokit import robot_names
from robokit.conversion import judged
from robokit.errors import RobokitError
from robokit.model.geometry import Mesh

pytestmark = [pytest.mark.parity, pytest.mark.slow]

NO_ROBOT = {"alex_psyonic_hands.urdf", "ur3.urdf"}  # files that the importer refuses: see test_parity_all

REFUSED_BY_MUJOCO = {
    "icub.urdf",
    "icub_reduced.urdf",
    "romeo.urdf",
    "romeo_laas_small.urdf",
    "romeo_small.urdf",
}
"""A moving body without mass or inertia, or with one that no body has."""

PARTS = 4  # of the files, so that several processes share them
NONE = 2.0**30  # a limit of this size is none


def robot_of(path):
    robot = rk.load(path, base="floating", mimic="independent")
    return robot if "world" not in robot.link_names else rk.load(path, mimic="independent")


def differences(robot, again, what):
    """Names of what is not the same after reading again, within 1e-12."""
    q, there = robot.random_configuration(4), again.neutral()
    order = np.zeros(robot.nv, dtype=int)
    for joint in robot.joints:
        other = again.joint(joint.name)
        there[other.q_slice] = q[joint.q_slice]
        order[joint.v_slice] = range(other.v_slice.start, other.v_slice.stop)
    # One state of each robot: the text is as good as code, and there is nothing to compile.
    H, other_H = (rk.crba(r, x, engine="python") for r, x in ((robot, q), (again, there)))
    found = [] if near(other_H[np.ix_(order, order)], H) else ["H"]
    here, moved = (rk.forward_kinematics(r, x, engine="python") for r, x in ((robot, q), (again, there)))
    lost = set(robot.link_names) - set(again.link_names)
    found += [n for n in lost if robot.link(n).mass or what is LIMITS]  # MJCF: several joints of one body
    found += [n for n in here if n not in lost and not all(map(near, moved[n], here[n]))]
    for joint in robot.joints:
        other = again.joint(joint.name)
        found += [f"{joint.name} {n}" for n in what if not same(getattr(joint, n), getattr(other, n))]
    for link in robot.links if what is LIMITS else ():  # MJCF: meshes that MuJoCo does not read are STL
        if list(map(shape_of, link.collisions)) != list(map(shape_of, again.link(link.name).collisions)):
            found.append(f"{link.name} collisions")
    return found


def shape_of(shape):
    geometry = shape.geometry
    return (geometry.path, geometry.scale) if isinstance(geometry, Mesh) else geometry


LIMITS = ("lower", "upper", "effort", "velocity", "damping", "friction", "armature")
PASSIVE = ("damping", "friction", "armature")


def near(a, b):
    return bool(np.abs(np.asarray(a) - b).max() <= 1e-12 * max(1.0, float(np.abs(b).max())))


def same(a, b):
    return a == b or (min(abs(a), abs(b)) >= NONE and a * b > 0.0)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("ending", [".xml", ".sdf", ".urdf"])
def test_the_referee_finds_no_difference(ending, part, tmp_path):
    files = [path for path in robot_names.example_files() if path.name not in NO_ROBOT][part::PARTS]
    wrong, refused = {}, set()
    for k, path in enumerate(files):
        robot, out = robot_of(path), tmp_path / f"{k}{ending}"
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rk.convert(robot, out, meshes="absolute")
        try:
            verdict = judged(robot, out)
            again = rk.load(out, base=robot.base)
        except RobokitError as problem:
            assert "MuJoCo cannot load" in str(problem), problem
            assert any("MuJoCo refuses" in str(each.message) for each in told), path.name
            refused.add(path.name)
            continue
        found = [f"{f.cause} {f.name}" for f in verdict.findings]
        found += differences(robot, again, PASSIVE if ending == ".xml" else LIMITS)
        if found:
            wrong[path.name] = found[:5]
    assert not wrong
    names = {path.name for path in files}
    assert refused == (REFUSED_BY_MUJOCO & names if ending == ".xml" else set())
