"""Inside the algorithms: the recorder saw what the algorithms compute, line by line of their files.

The page's program computes the same for any state.
"""

from __future__ import annotations

import re
import sys
import zlib
from base64 import b64decode
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from viewer_cases import made_up_motion, pendulum, zoo

import robokit as rk
from robokit.algorithms import composites, crba
from robokit.engine.trace.ops import OPERATIONS
from robokit.errors import WrongType
from robokit.model import Mimic, ModelBuilder, couple
from robokit.sim.trajectory import Contacts
from robokit.viewer.page import ASSETS, json_for_html, page_html
from robokit.viewer.payload import pose_payload, trajectory_payload
from robokit.viewer.walk_data import (
    CAPTIONS,
    KINDS,
    WALKED,
    State,
    loops,
    statements,
    touched_bodies,
    walk_data,
    walks,
)

ROBOTS = Path(__file__).parents[2] / "robots"


def moving(robot):
    """A state in which everything moves and everything is pushed."""
    rng = np.random.default_rng(3)
    q = robot.neutral() + 0.2 * rng.normal(size=robot.nq)
    for joint in robot.joints:
        if joint.kind in ("floating", "spherical"):
            first = joint.q_slice.start
            q[first : first + 4] /= np.linalg.norm(q[first : first + 4])
    rows = q, *rng.normal(size=(2, robot.nv)), rng.normal(size=6 * (robot.nbodies + 1))
    return State((0.3, -0.2, -9.0), *(row.tolist() for row in rows))


def still(robot, q):
    return State(robot.tree.gravity, list(q), *[[0.0] * robot.nv] * 2)


@pytest.fixture(scope="module", params=["zoo", "quadruped"])
def robot(request):
    return zoo() if request.param == "zoo" else rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")


@pytest.fixture(scope="module")
def state(robot):
    return moving(robot)


@pytest.fixture(scope="module")
def found(robot, state):
    return walks(robot, state)


@pytest.fixture(scope="module")
def page_data(robot):
    return walk_data(robot, pushed=True)


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


def test_recorded_results_are_those_of_the_library(robot, state, found):
    q, v, tau = (np.array(row) for row in (state.q, state.v, state.tau))
    f_ext = np.reshape(state.f_ext, (-1, 6))
    a = rk.aba(robot.with_gravity(state.gravity), q, v, tau, f_ext, engine="python")
    H = rk.crba(robot, q, engine="python")
    np.testing.assert_allclose(by_body(last(found["aba"], "qdd[i]")), a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_body(last(found["rnea"], "tau[i]")), tau, atol=1e-9 * np.abs(H).max())
    n = robot.nv
    filled = np.zeros((n, n))
    for where, (value,) in last(found["crba"], "H[i][j]").items():
        filled[where // (n + 1), where % (n + 1)] = filled[where % (n + 1), where // (n + 1)] = value
    np.testing.assert_allclose(filled, H, rtol=1e-12, atol=1e-12)
    factor = rk.ltdl(robot, H, engine="python")
    rows = {where // (n + 1): row for where, row in last(found["ltdl"], "L[k]").items()}
    np.testing.assert_allclose([rows[k] for k in range(n)], factor.L, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(next(iter(last(found["ltdl"], "D").values())), factor.D, rtol=1e-9)


def test_intermediates_are_those_of_the_texts(robot, state, found):
    tree = robot.tree
    q = robot.split_q(state.q)
    expected = dict(composites.composite_inertias(tree, tree.transforms(q), tree.I))
    seen = last(found["crba"], "Ic")
    assert sorted(seen) == sorted(expected)
    for i, Ic in expected.items():
        assert seen[i] == (Ic.m, *Ic.h, *Ic.Ibar)


def test_velocities_stand_in_the_bodies_coordinates(robot, state, found):
    poses = rk.forward_kinematics(robot, np.array(state.q), engine="python")
    seen = last(found["rnea"], "v[i]")
    for link in robot.links:
        if link.body == 0:
            continue
        jacobian = rk.link_jacobian(robot, np.array(state.q), link.name, engine="python")
        spin = jacobian[:3] @ state.v
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


def unpacked(text, dtype):
    return np.frombuffer(zlib.decompress(b64decode(text)), dtype)


def whole(text):
    """Whole numbers as the page's JavaScript reads them."""
    codes = unpacked(text, "u1").reshape(4, -1).T.copy().view("<u4").reshape(-1).astype(int)
    return np.where(codes & 1, -(codes >> 1) - 1, codes >> 1)


def evaluated(program, flat):
    """The program's slots for a state."""
    value = {operation.name: operation.value for operation in OPERATIONS}
    count = {operation.name: operation.operands for operation in OPERATIONS}
    slots = [*unpacked(program.constants, "<f8").tolist(), *(flat[k] for k in whole(program.inputs))]
    operands = [iter(whole(each).tolist()) for each in program.operands]
    for code in unpacked(program.codes, "u1").tolist():
        name = program.operations[code]
        taken = [next(each) for each in operands[: count[name]]]
        slots.append(value[name](*(slots[-back if back > 0 else -1 - back] for back in taken)))
    return slots


def test_the_pages_program_gives_what_the_lines_read_and_wrote(state, found, page_data):
    slots = np.array(evaluated(page_data.program, state.flat()))
    assert [a.key for a in page_data.algorithms] == list(found) == ["rnea", "crba", "ltdl", "aba"]
    for algorithm in page_data.algorithms:
        walk = found[algorithm.key]
        forms = [algorithm.forms[k] for k in whole(algorithm.steps)]
        assert [(f.line, f.last, f.sweep) for f in forms] == [
            (s.statement.first, s.statement.last, s.stage) for s in walk.steps
        ]
        assert whole(algorithm.counters).tolist() == list(chain(*(s.indices for s in walk.steps)))
        seen = [each for step in walk.steps for each in step.seen]
        letters = [algorithm.letters[k] for form in forms for k in form.letters]
        assert [x.written for x in letters] == [x.place.text for x in seen]
        assert whole(algorithm.places).tolist() == [x.where for x in seen]
        shapes = whole(algorithm.shapes).reshape(-1, 2)
        starts = np.cumsum([0, *shapes[:, 1]])
        refs = np.cumsum(whole(algorithm.numbers))
        numbers = np.where(refs & 1, -1.0, 1.0) * slots[refs >> 1]
        largest: dict[str, float] = {}
        for each in seen:
            size = max(map(abs, each.value[1]))
            largest[each.place.text] = max(size, largest.get(each.place.text, 1.0))
        for each, value in zip(seen, np.cumsum(whole(algorithm.seen)), strict=True):
            kind, expected = each.value
            assert KINDS[shapes[value, 0]] == kind
            shown = numbers[starts[value] : starts[value + 1]]
            np.testing.assert_allclose(shown, expected, rtol=0, atol=1e-12 * largest[each.place.text])


def test_the_page_has_every_operation_that_the_texts_record(page_data):
    script = (ASSETS / "walk" / "program.js").read_text(encoding="utf-8")
    names = set(re.findall(r'^  "([^"]+)": ', script, re.M))
    assert set(page_data.program.operations) <= names <= {each.name for each in OPERATIONS}


def test_the_page_knows_which_body_each_contact_is_on(humanoid):
    fall = made_up_motion(humanoid)
    links = ("pelvis", "nowhere", humanoid.links[-1].name)
    vars(fall)["contacts"] = Contacts(fall.contacts.points, fall.contacts.forces, links)
    touched = whole(touched_bodies(fall, humanoid, np.arange(5)))
    assert touched.tolist() == [1, 0] * 5  # the third never touches


def test_a_page_keeps_to_its_size_and_takes_no_times(humanoid):
    walk = walk_data(humanoid, pushed=True)
    assert [a.key for a in walk.algorithms] == ["rnea", "crba", "ltdl", "aba"]
    assert len(json_for_html(walk)) < 140_000
    swing = made_up_motion(pendulum())
    assert trajectory_payload(swing, walk=False).walk is None
    with pytest.raises(WrongType, match=r"walk: expected True or False, got list \[0.5\]"):
        page_html(swing, walk=[0.5])


def test_what_does_not_fit_is_left_out_and_said():
    robot = rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")
    walk = walk_data(robot, pushed=True, most_bytes=56_000)
    assert [a.key for a in walk.algorithms] == ["rnea", "crba", "aba"]
    assert any("Left out" in note and "LTDL" in note for note in walk.notes)
    assert len(json_for_html(walk)) <= 56_000
    short = walk_data(robot, pushed=True, most_bytes=24_000)
    assert [a.key for a in short.algorithms] == ["rnea"] and "RNEA takes q̈ = 0." in short.notes
    assert walk_data(robot, most_bytes=100) is None


def test_of_a_long_walk_the_page_has_the_beginning(monkeypatch):
    monkeypatch.setattr("robokit.viewer.walk_data.MOST_STEPS", 20)
    walk = walk_data(pendulum())
    assert [(a.key, a.whole, len(whole(a.steps))) for a in walk.algorithms] == [
        ("rnea", False, 20),
        ("crba", False, 20),
        ("aba", False, 20),
    ]
    assert "RNEA takes q̈ = 0." in walk.notes and "Left out for this robot: LTDL." in walk.notes


def test_coupled_joints_are_walked_in_the_full_tree():
    b = ModelBuilder("m").link("a").link("b", 1.0, inertia=np.eye(3)).link("c", 1.0, inertia=np.eye(3))
    b.joint("k", "revolute", "a", "b", mimic=Mimic("j", -2.0, 0.3)).joint("j", "prismatic", "a", "c")
    robot = couple(b.build())
    walk = walk_data(robot)
    assert [a.key for a in walk.algorithms] == ["rnea", "crba"] and walk.rows == [1, 2]
    assert any("full tree" in note for note in walk.notes)


def test_the_tracer_that_was_there_is_put_back():
    def tracer(*_):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        walks(pendulum(), still(pendulum(), [0.0, 0.0]))
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_the_algorithms_are_untouched_by_the_recording():
    robot = pendulum()
    q = robot.split_q([0.3, -0.4])
    before = crba.crba(robot.tree, q)
    walks(robot, still(robot, [0.3, -0.4]))
    assert crba.crba(robot.tree, q) == before
    assert crba.crba.__code__.co_filename.endswith("crba.py")


def test_nothing_pushes_a_pose():
    walk = pose_payload(pendulum()).walk
    assert walk.rows == [1, 2] and walk.touched is None
    assert whole(walk.program.inputs).max() < 3 + 3 * 2  # gravity, q, v, tau
