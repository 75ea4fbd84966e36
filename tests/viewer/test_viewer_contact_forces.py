"""One contact force everywhere: arrows, curve and Python agree at every frame."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from test_viewer_browser import Watch

import robokit as rk
from robokit.model import Box, ModelBuilder, Shape
from robokit.viewer import write_page
from robokit.viewer.payload import trajectory_payload


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4")


@pytest.fixture(scope="module")
def tumble():
    shape = Shape(Box((0.4, 0.2, 0.1)))
    robot = (
        ModelBuilder("box")
        .link("box", 3.0, inertia=np.diag([0.0125, 0.0425, 0.05]), visuals=(shape,), collisions=(shape,))
        .build("floating")
    )
    q0 = robot.configuration(base_position=(0.0, 0.0, 0.5))
    return rk.simulate(robot, q0, [3.0, 2.0, 1.0, 1.0, 0.0, 0.0], 0.8, 1e-3, rk.Ground())


def test_the_points_of_a_frame_add_up_to_its_force(tumble):
    frames = trajectory_payload(tumble).frames
    count = unpacked(frames.contact_count).astype(int)
    points, force = unpacked(frames.contacts).reshape(-1, 6), unpacked(frames.force).reshape(-1, 3)
    place = np.repeat(np.arange(len(count)), count)
    total = np.zeros_like(force)
    np.add.at(total, place, points[:, 3:])
    np.testing.assert_allclose(total, force, atol=1e-6 * np.abs(force).max())
    assert points[:, 5].min() > 0.0, "an arrow points down"
    every = np.concatenate([np.zeros((1, 3)), tumble.step_forces.total])
    shown = every[np.round(unpacked(frames.t) / 1e-3).astype(int)]
    np.testing.assert_allclose(force, shown, rtol=1e-6, atol=1e-7)
    recorded = np.isin(np.round(tumble.t, 6), np.round(unpacked(frames.t).astype(float), 6))
    np.testing.assert_allclose(every[tumble.marks], tumble.contact_force, atol=1e-7)
    assert recorded.sum() > 20


@pytest.mark.browser
def test_arrows_grow_with_the_root_of_the_force(chromium, tumble, tmp_path):
    watch = Watch(chromium)
    page = watch.open(write_page(tumble, tmp_path / "tumble.html"))
    lengths, sums, forces = page.evaluate(
        """() => {
          const { motion, overlays, timeline } = robokit, lengths = [], sums = [], forces = [];
          for (let k = 0; k < motion.count; k++) {
            timeline.seek(motion.t[k]);
            const sum = [0, 0, 0];
            for (let i = motion.contactStart[k]; i < motion.contactStart[k + 1]; i++) {
              const force = new MeshCat.THREE.Vector3().fromArray(motion.contacts, 6 * i + 3);
              lengths.push([force.length(), overlays.scale.arrow(force).length()]);
              force.toArray().forEach((x, axis) => { sum[axis] += x; });
            }
            sums.push(sum);
            forces.push(motion.vector(motion.force, k).toArray());
          }
          return [lengths, sums, forces];
        }"""
    )
    force, length = np.array(lengths).T
    assert force.max() > 10.0 * force.min()
    np.testing.assert_allclose(length / np.sqrt(force), length[0] / np.sqrt(force[0]), rtol=1e-6)
    np.testing.assert_allclose(sums, forces, atol=1e-5 * force.max())
    bars = page.evaluate("[...document.querySelectorAll('#force-scale div')].map((e) => e.textContent)")
    widths = page.evaluate(
        "[...document.querySelectorAll('#force-scale i')].map((e) => parseFloat(e.style.width))"
    )
    newton = [float(text.split()[0]) * (1000.0 if "kN" in text else 1.0) for text in bars]
    assert newton[1] <= newton[0] / 8.0 and newton[0] <= force.max() and widths[0] <= 160.0
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(newton[0] / newton[1]), rel=0.05)
    page.click("[data-key=contacts]")
    assert page.evaluate("document.getElementById('force-scale').hidden")
    watch.judge()


def test_the_largest_force_of_a_step_that_was_not_recorded_has_a_frame(tumble):
    peak = next(event for event in tumble.events if event.kind == "peak load")
    step = round(peak.time / 1e-3 - 0.5)
    assert step + 1 not in tumble.marks, "the test tests nothing"
    frames = trajectory_payload(tumble).frames
    t, force = unpacked(frames.t), unpacked(frames.force).reshape(-1, 3)
    k = int(np.abs(t - (peak.time + 0.5e-3)).argmin())
    assert t[k] == pytest.approx(peak.time + 0.5e-3, abs=1e-6) and np.all(np.diff(t) > 0)
    assert np.linalg.norm(force[k]) == pytest.approx(peak.size, rel=1e-6)
    # The frame lies on the fall, which records of every step show.
    every = rk.simulate(tumble.robot, tumble.q[0], tumble.v[0], 0.8, 1e-3, rk.Ground(), record_every=1)
    q = unpacked(frames.q).reshape(len(t), -1)
    np.testing.assert_allclose(q[k], every.q[step + 1], atol=1e-6)
