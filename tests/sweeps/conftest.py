"""Sweeps that several tests of this folder read."""

from __future__ import annotations

import pytest
from fake_recipe import FakeRecipe

import robokit as rk
from robokit.sweeps.run_sweep import run_sweep

RECIPE = FakeRecipe(45)


RUN = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "undisturbed"
    run_sweep(RECIPE, folder, chunk=10, workers=0)
    return folder


@pytest.fixture(scope="session")
def swings(tmp_path_factory):
    """A sweep of a robot: six rows in chunks of two."""
    folder = tmp_path_factory.mktemp("sweep") / "swings"
    starts = {"joint:upper_joint": rk.Uniform(0.0, 1.0)}
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    rk.sweep(robot, starts=starts, count=6, chunk=2, out=folder, **RUN)
    return folder
