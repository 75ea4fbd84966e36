"""Robots travel: pickled, copied, to other processes."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import robokit as rk


def mass_matrix(robot):
    return rk.crba(robot, robot.neutral())


@pytest.mark.parametrize("name", ["humanoid", "four_bar"])
def test_a_copy_computes_the_same(name):
    robot = rk.load_urdf(rk.find_robot(name), base="floating")
    H = mass_matrix(robot)
    rk.gravity_forces(robot.with_gravity((0, 0, -1.6)), robot.neutral())
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        assert twin is not robot and twin.joint_names == robot.joint_names
        assert twin.fingerprint == robot.fingerprint and not twin.kernels
        assert (mass_matrix(twin) == H).all()


def test_a_spawned_process_takes_a_robot():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (H,) = pool.map(mass_matrix, [robot])
    assert np.array_equal(H, mass_matrix(robot))
