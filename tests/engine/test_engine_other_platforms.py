"""Where neither our loader of images nor our entry from Python can be used, LLVM's loader and ctypes do all.

Images are for Linux on x86-64, the entry is for 64-bit CPython with the GIL. As a script this file switches
both off and writes its answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import waiting

from robokit.spatial.control_flow import for_range

pytestmark = pytest.mark.slow


def switch_both_off() -> None:
    """As on another platform."""
    from robokit.engine import single_calls
    from robokit.engine.backend import llvm

    llvm.images_possible = lambda: False
    single_calls.layout_is_known = lambda: False

    def refuse(*_: Any) -> None:
        raise AssertionError("an image on a platform that has none")

    llvm.Image = llvm.image = refuse


def squares(tree, x):
    """Of a loop whose length is known when it runs."""
    return for_range(2, lambda i, y: y + x[i] * x[i], 0.0)


def answers() -> dict[str, np.ndarray]:
    """Single states, batches, objects of poses, ``out=``, simulations and rollouts, by name."""
    import robokit as rk

    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    q, v, a = np.array([0.5, 0.2]), np.array([1.0, -2.0]), np.array([0.3, 0.4])
    many = [np.tile(x, (9, 1)) * np.linspace(0.5, 1.0, 9)[:, None] for x in (q, v, a)]
    found = {
        "rnea": rk.rnea(robot, q, v, a),
        "rnea, batch": rk.rnea(robot, *many),
        "rnea, out": rk.rnea(robot, *many, out=np.empty((9, 2))),
        "aba": rk.aba(robot, q, v, a),
        "aba, batch": rk.aba(robot, *many),
        "poses": rk.forward_kinematics(robot, q).matrices,
        "single precision": rk.crba(robot, many[0], dtype="float32"),
    }
    run = rk.simulate(robot, q, v, duration=0.02)
    energy = np.empty(())
    assert rk.kinetic_energy(robot, q, v, out=energy) is energy
    with pytest.raises(rk.ShapeError, match="share memory"):
        rk.rnea_derivatives(robot, q, v, a, out=(both := np.empty((2, 2)), both))
    own = rk.function(squares, inputs={"x": (2,)}, outputs={"y": ()}, name="squares")
    humanoid = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    fall = rk.simulate(humanoid, rk.standing_configuration(humanoid), duration=0.05, ground=rk.Ground())
    runs = rk.rollout(robot, many[0], many[1], duration=0.02)
    return found | {
        "simulate": np.hstack([run.q, run.v]),
        "fall": np.hstack([fall.q, fall.v]),
        "own loop": own(robot, q),
        "its gradient": own.derivative("x")(robot, many[0]),
        "rollout": np.concatenate([runs.q, runs.v], axis=2),
    }


def test_without_images_and_entry_everything_works(tmp_path):
    root = Path(__file__).resolve().parents[2]
    paths = os.pathsep.join([str(root), str(root / "tests")])
    env = {**os.environ, "PYTHONPATH": paths, "ROBOKIT_CACHE_DIR": str(tmp_path / "cache")}
    env.pop("ROBOKIT_ENGINE", None)
    for process in ("first", "again"):  # the second finds LLVM's objects in the cache
        done = subprocess.run(
            [sys.executable, "-W", "error", __file__, str(tmp_path / process)],
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=waiting.PATIENCE,
        )
        assert done.returncode == 0, done.stderr
    found = [np.load(tmp_path / f"{process}.npz") for process in ("first", "again")]
    for name, expected in answers().items():
        for each in found:
            assert np.allclose(each[name], expected, rtol=1e-13, atol=1e-13), name


if __name__ == "__main__":
    switch_both_off()
    np.savez(sys.argv[1], **answers())
    from robokit.engine import single_calls

    assert single_calls._shim() is None and "llvmlite" in sys.modules
