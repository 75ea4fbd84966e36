"""rk.sweep and rk.open_sweep: trajectories beside the rows."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import robokit as rk


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
