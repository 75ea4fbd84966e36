"""The page as text: one file, nothing from outside, names that stay names, sizes within the promise."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from viewer_cases import EVIL, made_up_motion, pendulum

import robokit as rk
from robokit.errors import RobokitError, ShapeError, WrongType
from robokit.model import Box, ModelBuilder, Shape
from robokit.viewer import page_html, write_page
from robokit.viewer.page import ASSETS, inline_script, json_for_html
from robokit.viewer.payload import pose_payload, trajectory_payload


def data_of(text):
    return json.loads(re.search(r'id="robokit-data">(.*?)</script>', text, re.S).group(1))


@pytest.fixture(scope="module")
def text(fall):
    return page_html(fall)


def test_the_page_asks_for_nothing_from_outside(text):
    head = text[: text.index("robokit-data")]
    assert "default-src 'none'" in head
    assert not re.search(
        r"<(?:script|img|iframe)[^>]+src=|@import|<link(?![^>]+data:)", text[: text.index("MeshCat")]
    )
    assert text.count("<script") - text.count("</script") == text.count("<script") - 4


def test_a_five_second_fall_of_a_humanoid_stays_under_3_mb(humanoid, tmp_path):
    path = write_page(made_up_motion(humanoid, duration=5.0, rate=1000.0), tmp_path / "fall")
    assert path.name == "fall.html"
    assert path.stat().st_size < 3_000_000


def test_the_data_says_what_the_trajectory_says(text, fall, humanoid):
    data = data_of(text)
    assert data["robot"]["name"] == humanoid.name and data["robot"]["dof"] == humanoid.nv
    frames = data["frames"]
    q = np.frombuffer(base64.b64decode(frames["q"]), dtype="<f4").reshape(frames["count"], humanoid.nq)
    assert np.allclose(q[0], fall.q[0], atol=1e-6) and np.allclose(q[-1], fall.q[-1], atol=1e-6)
    poses = np.frombuffer(base64.b64decode(frames["poses"]), dtype="<f4").reshape(frames["count"], -1, 7)
    assert poses.shape[1] == humanoid.nbodies
    keys = ["energy", "force", "linear", "angular", "power", "drift"]
    assert [curve["key"] for curve in data["curves"]] == keys
    assert data["structure"]["counts"]["zeros"] == (~np.asarray(_pattern(humanoid))).sum()


def _pattern(robot):
    from robokit.model.tree import inertia_pattern

    return inertia_pattern(robot.tree.dof_parent)


def test_a_simulated_fall_becomes_a_page(tmp_path):
    robot = pendulum(shapes=(Shape(Box((0.05, 0.05, 0.5))),))
    trajectory = rk.simulate(robot, [0.5, 0.2], duration=0.2, dt=2e-3)
    data = data_of(trajectory.to_html(tmp_path / "swing.html").read_text())
    assert data["ground"] is None and data["frames"]["count"] == 13
    curve = data["curves"][0]
    t, *lines = (
        np.frombuffer(base64.b64decode(x), "<f4") for x in (curve["t"], *(s["y"] for s in curve["series"]))
    )
    energy = dict(zip((s["name"] for s in curve["series"]), lines, strict=True))
    assert set(np.float32(trajectory.t)) <= set(t)
    assert np.allclose(energy["total"], np.interp(t, trajectory.t, trajectory.energy.total), atol=1e-5)
    assert {"steps_per_second", "energy_balance"} <= {entry["key"] for entry in data["summary"]}


def test_the_figures_in_the_header_are_those_of_simulations():
    b = ModelBuilder("brick")
    b.link("brick", mass=1.0, inertia=np.eye(3) * 0.01, collisions=(Shape(Box((0.1, 0.1, 0.1))),))
    robot = b.build(base="floating")
    start = rk.standing_configuration(robot)
    trajectory = rk.simulate(robot, start, duration=0.01, dt=1e-3, ground=rk.Ground())
    labels = re.search(r"const LABELS = \{(.*?)\n\};", (ASSETS / "panels/header.js").read_text(), re.S).group(
        1
    )
    keys = re.findall(r"^  (\w+):", labels, re.M)
    assert len(keys) == 4 and set(keys) <= set(trajectory.summary)


STOPPED = {"time": 0.25, "reason": "The energy grew.", "remedy": "Take a smaller step."}


def test_a_run_that_stopped_early_says_when_why_and_what_to_do(shapes):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.2)
    assert trajectory_payload(motion).stopped is None
    motion.summary["stopped"] = STOPPED
    assert data_of(page_html(motion))["stopped"] == STOPPED


def test_a_stop_without_a_finite_time_is_at_the_last_state(shapes):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.2)
    motion.summary["stopped"] = {"time": float("nan"), "reason": "Not finite."}
    stopped = data_of(page_html(motion))["stopped"]
    assert stopped == {"time": motion.t[-1], "reason": "Not finite.", "remedy": ""}


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_mass_freedoms_and_base_are_those_of_the_robot(base):
    # A fixed root's own mass does not move: the humanoid has 75.0 kg, of which 66.6 kg move.
    robot = rk.load_urdf(rk.find_robot("humanoid"), base=base)
    shown = pose_payload(robot).robot
    assert (shown.base, shown.dof, shown.mass) == (base, robot.nv, robot.total_mass)
    assert shown.total_mass == pytest.approx(sum(link.mass for link in robot.links))
    assert (shown.mass < shown.total_mass - 1.0) == (base == "fixed")


def test_only_touching_points_are_stored(fall):
    frames = trajectory_payload(fall).frames
    count = np.frombuffer(base64.b64decode(frames.contact_count), dtype="<f4")
    assert (count == 2).all()


def test_names_cannot_leave_their_place(shapes):
    robot = pendulum(name=EVIL, links=(EVIL, "a & b < c"), shapes=shapes)
    text = page_html(made_up_motion(robot, duration=0.1))
    assert EVIL not in text and "<img" not in text and "window.pwned" in text
    assert "<title>&lt;/script&gt;" in text
    assert data_of(text)["links"][1]["name"] == EVIL
    # Everything of the robot stands between the tags of one element.
    assert text.count("</script>") == 4


def test_json_for_html_has_no_markup():
    text = json_for_html({"a": "<!--</script>&\u2028"})
    assert not set(text) & set("<>&\u2028") and json.loads(text) == {"a": "<!--</script>&\u2028"}


def test_scripts_cannot_end_their_element():
    assert "</script" not in inline_script("x = '</script>'") and "<!--" not in inline_script("'<!--'")


def test_the_page_of_a_pose_has_no_curves(humanoid):
    data = pose_payload(humanoid)
    assert data.frames.count == 1 and data.curves == []
    json_for_html(data)


def test_a_motion_without_ground_contacts_or_summary_is_shown():
    motion = made_up_motion(pendulum(), duration=0.2)
    motion.contact_force[:] = 0.0
    motion.ground, motion.summary = None, {}
    vars(motion)["contacts"] = None
    data = trajectory_payload(motion)
    assert data.ground is None and [figure.key for figure in data.summary] == ["energy_balance"]
    assert data.frames.contacts is None


def test_what_a_page_cannot_show_is_refused(fall):
    robot = pendulum()
    with pytest.raises(WrongType, match="source: expected a Trajectory or a Robot, got str"):
        page_html("robot.urdf")
    with pytest.raises(ShapeError, match=r"q: expected one configuration, shape \(2,\), got \(3, 2\)"):
        page_html(robot, np.zeros((3, 2)))
    with pytest.raises(ShapeError, match=r"got 3 samples of 'pendulum'.*robot\.sample\(k\)"):
        page_html(robot.with_inertias({"upper": (np.ones(3), None, None)}))
    with pytest.raises(RobokitError, match=r"Trajectory\.load\(path, robot="):
        page_html(replace(fall, robot=None))


def test_vendored_files_are_the_ones_listed():
    listed = dict(
        re.findall(r"\| `(\S+)` \| `([0-9a-f]{64})` \|", (ASSETS / "vendor" / "README.md").read_text())
    )
    assert len(listed) == 2
    for name, digest in listed.items():
        assert hashlib.sha256((ASSETS / "vendor" / name).read_bytes()).hexdigest() == digest
    assert "MIT License" in (ASSETS / "vendor" / "uPlot.LICENSE").read_text()


def test_importing_the_viewer_is_light():
    code = (
        "import sys, robokit.viewer; "
        "print([m for m in ('meshcat', 'matplotlib', 'trimesh', 'tornado', 'scipy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_the_ground_is_drawn_as_it_is(shapes):
    motion = made_up_motion(pendulum(shapes=shapes), duration=0.2)
    field = rk.HeightField([[0.0, 0.1], [0.2, 0.3], [0.0, 0.0]], cell=0.5)
    solids = [
        rk.Solid(Box((1.0, 2.0, 3.0)), (0.0, 0.0, 1.0), rgba=(1.0, 0.0, 0.0, 1.0)),
        rk.Solid(np.eye(4)[:, :3]),
    ]
    motion.ground = rk.Ground(height=0.2, tilt=0.3, shapes=solids, terrain=field, plane=True)
    data = data_of(page_html(motion))
    ground, shown = data["ground"], [data["geometries"][node["geometry"]] for node in data["ground"]["nodes"]]
    assert ground["plane"] and ground["height"] == 0.2
    np.testing.assert_allclose(ground["normal"], [np.sin(0.3), 0.0, np.cos(0.3)])
    assert [shape["type"] for shape in shown] == ["mesh", "box", "mesh"]
    # Four triangles of the field over 1 m by 0.5 m, and the four of the tetrahedron.
    assert [len(base64.b64decode(shown[k]["faces"])) // 6 for k in (0, 2)] == [4, 4]
    assert shown[0]["low"] == [0.0, 0.0, 0.0] and ground["nodes"][1]["rgba"] == [1.0, 0.0, 0.0, 1.0]
    assert {node["role"] for node in data["nodes"]} & {"ground"} == set()
