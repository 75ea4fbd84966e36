"""Rows that cannot start, and disks that fill up beside the rows."""

from __future__ import annotations

import errno

import numpy as np
import pytest
import sweep_robots

import robokit as rk
from robokit.sweeps.distributions import Choice, Uniform
from robokit.sweeps.make_recipe import make_recipe


@pytest.mark.slow
def test_a_row_that_cannot_start_is_a_row_with_a_reason():
    robot = sweep_robots.hopper()
    given = {"count": 12, "duration": 0.002, "dt": 1e-3, "measures": ["energy"]}
    deep = make_recipe(robot, starts={"height": Uniform(-0.4, 0.1)}, **given)
    why = deep.compute(0, 12)["failure"].to_pylist()
    heights = deep.rows(0, 12)["height"]
    assert [x is not None for x in why] == (heights < -0.1).tolist() and None in why
    assert any("below the ground" in x for x in why if x)
    bar = rk.load_urdf(rk.find_robot("four_bar"))
    given |= {"ground": None, "count": 40}
    loops = make_recipe(bar, starts={"joint_noise": 5.0}, parameters={"mass": Uniform(0.5, 2.0)}, **given)
    table = loops.compute(0, 40)
    failed = [k for k, x in enumerate(table["failure"].to_pylist()) if x]
    for k in (*failed[:2], 7, 20):  # the loops of a row close as they do alone
        alone = loops.compute(k, k + 1)
        assert alone["final_hash"][0] == table["final_hash"][k] and alone["failure"][0] == table["failure"][k]
    spin = make_recipe(bar, starts={f"joint:{bar.joint_names[0]}": Choice([0.1, 1e12])}, **given)
    why = spin.compute(0, 40)["failure"].to_pylist()
    assert None in why and "beyond" in next(x for x in why if x)


def test_a_disk_that_fills_up_with_trajectories_loses_no_row(tmp_path, monkeypatch):
    pendulum = rk.load_urdf(rk.find_robot("double_pendulum"))
    run = {"ground": None, "duration": 0.002, "measures": ["energy"], "workers": 0}

    def full(self, path):
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = tmp_path / "a b"
    with monkeypatch.context() as patch:
        patch.setattr(rk.Trajectory, "save", full)
        with pytest.raises(rk.RobokitError, match=r"make room; all rows are kept; go on .*--resume '.*a b'"):
            rk.sweep(pendulum, count=3, trajectories=[1], out=folder, **run)
    assert list((folder / "trajectories").iterdir()) == []
    sweep = rk.open_sweep(folder)
    assert len(sweep) == 3 and sweep.row(2)["row"] == 2
    sweep.resume(workers=0)
    again = rk.Trajectory.load(folder / "trajectories" / "1.npz")
    np.testing.assert_array_equal(again.q, sweep.replay(1).q)
    for wrong in ({"workers": 2}, {"scheduler": "x"}, {"trajectories": [1]}):
        with pytest.raises(rk.ShapeError, match="out=FOLDER"):
            rk.sweep(pendulum, count=3, **({**run, **wrong}))
