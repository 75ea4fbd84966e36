"""Inside the algorithms: the recorder saw what the algorithms compute, line by line of their files."""

from __future__ import annotations

import sys
import zlib
from base64 import b64decode
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from viewer_cases import made_up_motion, pendulum, zoo

import robokit as rk
from robokit.algorithms import composites, crba
from robokit.model import Mimic, ModelBuilder, couple
from robokit.viewer.page import json_for_html
from robokit.viewer.payload import pose_payload, trajectory_payload
from robokit.viewer.walk.line_captions import CAPTIONS
from robokit.viewer.walk.recorded_values import KINDS
from robokit.viewer.walk.text_statements import loops, statements
from robokit.viewer.walk.walk_data import walk_data, walks
from robokit.viewer.walk.walk_inputs import Instant, rest
from robokit.viewer.walk.walked_texts import WALKED

ROBOTS = Path(__file__).parents[2] / "robots"


def moving(robot):
    """A state in which everything moves and everything is pushed."""
    rng = np.random.default_rng(3)
    q = robot.neutral() + 0.2 * rng.normal(size=robot.nq)
    for joint in robot.joints:
        if joint.kind in ("floating", "spherical"):
            first = joint.q_slice.start
            q[first : first + 4] /= np.linalg.norm(q[first : first + 4])
    v, tau = rng.normal(size=(2, robot.nv))
    return Instant(0.0, "", q, v, tau, rng.normal(size=6 * (robot.nbodies + 1)))


@pytest.fixture(scope="module", params=["zoo", "quadruped"])
def robot(request):
    return zoo() if request.param == "zoo" else rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")


@pytest.fixture(scope="module")
def instant(robot):
    return moving(robot)


@pytest.fixture(scope="module")
def found(robot, instant):
    return walks(robot, instant)


def last(walk, text):
    """The numbers last written to a place, by what it belongs to."""
    return {
        seen.where: seen.value[1]
        for step in walk.steps
        for seen in step.seen
        if seen.place.written and seen.place.text == text
    }


def by_body(values):
    return list(chain(*(values[i] for i in sorted(values))))


def test_recorded_results_are_those_of_the_library(robot, instant, found):
    q, v, tau, f_ext = instant.q, instant.v, instant.tau, instant.f_ext.reshape(-1, 6)
    a = rk.aba(robot, q, v, tau, f_ext)
    H = rk.crba(robot, q)
    np.testing.assert_allclose(by_body(last(found["aba"], "qdd[i]")), a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_body(last(found["rnea"], "tau[i]")), tau, atol=1e-9 * np.abs(H).max())
    n = robot.nv
    filled = np.zeros((n, n))
    for where, (value,) in last(found["crba"], "H[i][j]").items():
        filled[where // (n + 1), where % (n + 1)] = filled[where % (n + 1), where // (n + 1)] = value
    np.testing.assert_allclose(filled, H, rtol=1e-12, atol=1e-12)
    factor = rk.ltdl(robot, H)
    rows = {where // (n + 1): row for where, row in last(found["ltdl"], "L[k]").items()}
    np.testing.assert_allclose([rows[k] for k in range(n)], factor.L, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(next(iter(last(found["ltdl"], "D").values())), factor.D, rtol=1e-9)


def test_intermediates_are_those_of_the_texts(robot, instant, found):
    tree = robot.tree
    q = robot.split_q(instant.q.tolist())
    expected = dict(composites.composite_inertias(tree, tree.transforms(q), tree.I))
    seen = last(found["crba"], "Ic")
    assert sorted(seen) == sorted(expected)
    for i, Ic in expected.items():
        assert seen[i] == (Ic.m, *Ic.h, *Ic.Ibar)


def test_velocities_stand_in_the_bodies_coordinates(robot, instant, found):
    poses = rk.forward_kinematics(robot, instant.q)
    seen = last(found["rnea"], "v[i]")
    for link in robot.links:
        if link.body == 0:
            continue
        jacobian = rk.link_jacobian(robot, instant.q, link.name)
        spin = jacobian[:3] @ instant.v
        place = robot.frame(link.name)[1].rotation
        turned = poses.rotation[robot.link_names.index(link.name)] @ np.asarray(place).T
        np.testing.assert_allclose(turned @ seen[link.body][:3], spin, atol=1e-9)


def test_every_step_is_a_line_of_its_file_with_a_caption(found):
    for walked in WALKED:
        walk = found[walked.key]
        assert walk.whole and walk.steps
        texts = {s.statement.file: Path(s.statement.file).read_text().split("\n") for s in walk.steps}
        for step in walk.steps:
            line = texts[step.statement.file][step.statement.first - 1].strip()
            assert line in CAPTIONS, line
            for seen in step.seen:
                assert seen.place.name in line or seen.place.text == "H[i][j]"
    lines = {line.strip() for text in texts_of_all() for line in text.split("\n")}
    assert not set(CAPTIONS) - lines, "captions of lines that are no more"


def texts_of_all():
    return {
        Path(s.file).read_text() for w in WALKED for f in w.recipe.functions for s in statements(f).values()
    }


def test_passes_are_the_loops_of_the_text(found):
    for walked in WALKED:
        assert len(loops(walked.recipe.functions[0])) == len(walked.passes)
        order = [step.stage for step in found[walked.key].steps if step.stage >= 0]
        assert order == sorted(order) and set(order) == set(range(len(walked.passes)))
    bodies = [s.indices[0] for s in found["rnea"].steps if s.stage == 0 and s.indices[0] >= 0]
    assert bodies == sorted(bodies)
    bodies = [s.indices[0] for s in found["crba"].steps if s.stage == 0 and s.indices[0] >= 0]
    assert bodies == sorted(bodies, reverse=True)


def test_the_force_of_the_crba_stands_in_the_coordinates_of_the_body_it_has_reached(found):
    for step in found["crba"].steps:
        i, j, _ = step.indices
        for seen in step.seen:
            if seen.place.text == "F" and not seen.place.written:
                assert seen.where == (i if j < 0 else j)


def unpacked(algorithm):
    return (
        np.frombuffer(zlib.decompress(b64decode(algorithm.steps)), "<u2").tolist(),
        np.frombuffer(zlib.decompress(b64decode(algorithm.shapes)), "<u2").reshape(-1, 2).tolist(),
        np.frombuffer(zlib.decompress(b64decode(algorithm.values)), "<f4"),
    )


def test_the_pages_tables_hold_what_was_recorded(robot, instant, found):
    data = walk_data(robot, [instant])
    for algorithm in data.algorithms:
        steps, shapes, values = unpacked(algorithm)
        starts = np.cumsum([0, *(count for _, count in shapes)])
        at = 0
        for step in found[algorithm.key].steps:
            form = algorithm.forms[steps[at]]
            assert (form.line, form.last, form.sweep) == (
                step.statement.first,
                step.statement.last,
                step.stage,
            )
            assert tuple(x - 1 for x in steps[at + 1 : at + 1 + len(step.indices)]) == step.indices
            at += 1 + len(step.indices)
            for letter, seen in zip(form.letters, step.seen, strict=True):
                assert algorithm.letters[letter].written == seen.place.text
                assert steps[at] - 1 == seen.where
                value = steps[at + 1]
                assert KINDS[shapes[value][0]] == seen.value[0]
                shown = values[starts[value] : starts[value + 1]]
                np.testing.assert_array_equal(shown, np.asarray(seen.value[1], "<f4"))
                at += 2
        assert at == len(steps)


def test_a_motion_has_three_instants_and_keeps_to_its_size(humanoid, fall):
    walk = trajectory_payload(fall).walk
    assert [instant.why for instant in walk.instants] == ["start", "largest force of the ground", "end"]
    assert walk.instants[1].t == pytest.approx(1.2)
    assert [a.key for a in walk.algorithms] == ["rnea", "crba", "ltdl", "aba"]
    assert len(json_for_html(walk)) < 300_000
    swing = made_up_motion(pendulum())
    assert trajectory_payload(swing, walk=False).walk is None
    assert [i.t for i in trajectory_payload(swing, walk=[0.5]).walk.instants] == [0.5]


def test_what_does_not_fit_is_left_out_and_said():
    robot = rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")
    instants = [moving(robot), replace(moving(robot), t=1.0)]
    walk = walk_data(robot, instants, most_bytes=56_000)
    assert len(walk.instants) == 1 and [a.key for a in walk.algorithms] == ["rnea", "crba", "aba"]
    assert any("Left out" in note and "LTDL" in note for note in walk.notes)
    assert len(json_for_html(walk)) <= 58_000  # its notes and instants besides
    assert walk_data(robot, rest(robot, robot.neutral()), most_bytes=100) is None


def test_coupled_joints_are_walked_in_the_full_tree():
    b = ModelBuilder("m").link("a").link("b", 1.0, inertia=np.eye(3)).link("c", 1.0, inertia=np.eye(3))
    b.joint("k", "revolute", "a", "b", mimic=Mimic("j", -2.0, 0.3)).joint("j", "prismatic", "a", "c")
    robot = couple(b.build())
    walk = walk_data(robot, rest(robot, robot.neutral()))
    assert [a.key for a in walk.algorithms] == ["rnea", "crba"] and walk.rows == [1, 2]
    assert any("full tree" in note for note in walk.notes)


def test_the_tracer_that_was_there_is_put_back():
    def tracer(*_):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        walks(pendulum(), rest(pendulum(), np.zeros(2))[0])
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_the_algorithms_are_untouched_by_the_recording():
    robot = pendulum()
    q = robot.split_q([0.3, -0.4])
    before = crba.crba(robot.tree, q)
    walks(robot, Instant(0.0, "", np.array([0.3, -0.4]), np.ones(2), np.ones(2)))
    assert crba.crba(robot.tree, q) == before
    assert crba.crba.__code__.co_filename.endswith("crba.py")


def test_a_pose_is_walked_at_rest():
    walk = pose_payload(pendulum()).walk
    assert [i.why for i in walk.instants] == ["at rest"]
    assert made_up_motion(pendulum()).robot.nv == len(walk.rows)
