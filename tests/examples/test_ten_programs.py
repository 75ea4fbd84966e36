"""The ten first programs of the manual: each runs alone, is short, and does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import robokit as rk

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ten_programs.rst"
BLOCK = re.compile(
    r"^([^\n]+)\n-+\n(?:(?!^\.\. code-block)[^\n]*\n)*\.\. code-block:: python\n\n((?:   .*\n|\n)+)", re.M
)
PROGRAMS = {
    title: re.sub(r"^   ", "", code, flags=re.M).strip("\n")
    for title, code in BLOCK.findall(PAGE.read_text())
}

URDF = """<robot name="my_robot">
  <link name="base"><visual><geometry><box size="0.3 0.3 0.1"/></geometry></visual></link>
  <link name="beam">
    <inertial><origin xyz="0 0 0.2"/><mass value="2"/>
      <inertia ixx="0.03" iyy="0.03" izz="0.005" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="package://my_robot/meshes/beam.stl"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="beam"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="30" velocity="4"/></joint>
</robot>"""

TRIANGLE = """solid beam
facet normal 0 0 1
outer loop
vertex 0 0 0
vertex 0.1 0 0.4
vertex 0 0.1 0.4
endloop
endfacet
endsolid beam
"""


def own_robot(x):
    assert x["robot"].total_mass == 2.0 and x["page"].stat().st_size > 500_000
    (shape,) = x["robot"].link("beam").visuals
    assert "beam.stl" in str(shape.geometry)


def gradient(x):
    def value(q):
        return x["miss"](x["arm"], q, x["target"])

    steps = 1e-6 * np.eye(len(x["q"]))
    slope = [(value(x["q"] + e) - value(x["q"] - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(x["gradient"], slope, atol=1e-8)


def many(x):
    k = 4321
    np.testing.assert_allclose(
        rk.crba(x["robot"], x["q"][k]) @ x["a"][k] + rk.bias_forces(x["robot"], x["q"][k], x["v"][k]),
        x["tau"][k],
        atol=1e-7 * np.abs(x["a"][k]).max(),
    )


CHECKS = {
    "A robot of your own, with its meshes": own_robot,
    "Gravity compensation": lambda x: x["moved"] < 1e-6 or pytest.fail(str(x["moved"])),
    "Standing by position servos": lambda x: abs(np.ptp(x["height"])) < 0.05 or pytest.fail("it fell"),
    "Reaching for a point": lambda x: x["error"] < 1e-3 or pytest.fail(str(x["error"])),
    "Turning at a constant velocity": lambda x: np.testing.assert_allclose(
        x["run"].v[-1], [0.5, *[0.0] * 6], atol=0.02
    ),
    "Forward dynamics of ten thousand states": many,
    "A plot of the energies": lambda x: np.testing.assert_allclose(
        x["run"].energy.total, x["run"].energy.total[0], atol=1e-4
    ),
    "A function of your own, with its gradient": gradient,
    "A robot for MuJoCo": lambda x: np.testing.assert_array_equal(
        [x["model"].nq, x["model"].nv], [x["robot"].nq, x["robot"].nv]
    ),
    "A sweep with a measure of your own": lambda x: np.testing.assert_array_equal(
        np.sort(x["falls"].worst("spin", 3).column("spin").to_numpy())[::-1],
        np.sort(x["falls"].table().column("spin").to_numpy())[:-4:-1],
    ),
}


def test_there_are_ten_of_at_most_fifteen_lines():
    assert list(PROGRAMS) == list(CHECKS) and len(PROGRAMS) == 10
    assert {t: len(c.splitlines()) for t, c in PROGRAMS.items() if len(c.splitlines()) > 15} == {}


@pytest.mark.parametrize("title", CHECKS)
def test_it_runs_and_does_what_it_says(title, tmp_path, monkeypatch, recwarn):
    if "import mujoco" in PROGRAMS[title]:
        pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    for folder in ("meshes", "urdf"):
        (tmp_path / "my_robot" / folder).mkdir(parents=True)
    (tmp_path / "my_robot" / "meshes" / "beam.stl").write_text(TRIANGLE)
    (tmp_path / "my_robot" / "urdf" / "my_robot.urdf").write_text(URDF)
    namespace = {"__name__": "__main__"}
    exec(compile(PROGRAMS[title], title, "exec"), namespace)
    CHECKS[title](namespace)
    said = [str(w.message) for w in recwarn if issubclass(w.category, UserWarning)]
    assert [text for text in said if "MJCF has none" not in text] == []
