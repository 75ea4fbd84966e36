"""What two robots differ in tells their code apart; robots that compute the same share it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ladder import relative

import robokit as rk
from robokit.model import couple

TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
SOME = np.diag([0.02, 0.03, 0.04])


def screw(pitch: float) -> rk.Robot:
    b = rk.ModelBuilder("screw").link("nut").link("bolt", 1.0, inertia=SOME)
    return b.joint("thread", "helical", "nut", "bolt", axis=(0, 0, 1), pitch=pitch).build()


def robot(
    parent: str = "upper",
    kind: str = "revolute",
    axis: tuple[float, float, float] = (0.0, 1.0, 0.0),
    pitch: float = 0.1,
    turn: np.ndarray | None = None,
    shift: tuple[float, float, float] = (0.1, 0.2, -0.3),
    carrier: str = "lower",
    tool_turn: np.ndarray | None = None,
    tool_shift: tuple[float, float, float] = (0.0, 0.1, 0.2),
    mass: float = 1.0,
    com: tuple[float, float, float] = (0.01, 0.02, -0.1),
    inertia: np.ndarray = SOME,
    root: float = 3.0,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    leader: str = "hinge",
    multiplier: float | None = None,
    offset: float = 0.3,
    limit: float = 2.0,
    damping: float = 0.0,
    name: str = "a",
) -> rk.Robot:
    """Two joints on one another, a third beside them, and a massless tool on a fixed joint."""

    def at(R: np.ndarray | None, p: tuple[float, float, float]) -> rk.Placement:
        return rk.Placement(np.eye(3) if R is None else R, np.array(p))

    b = rk.ModelBuilder(name).link("root", root, inertia=root * SOME).link("tool")
    b.link("upper", 1.0, (0.1, 0.0, -0.2), SOME).link("lower", mass, com, inertia).link(
        "side", 1.0, (0, 0, 1)
    )
    b.joint("hinge", "revolute", "root", "upper", at(None, (0, 0, 1)), axis=(1, 0, 0))
    b.joint("knee", kind, parent, "lower", at(turn, shift), axis, pitch, -limit, limit, damping=damping)
    mimic = None if multiplier is None else rk.Mimic(leader, multiplier, offset)
    b.joint("side", "revolute", "root", "side", at(None, (0, 1, 0)), axis=(1, 0, 0), mimic=mimic)
    b.joint("weld", "fixed", carrier, "tool", at(tool_turn, tool_shift))
    built = b.build(gravity=gravity)
    return built if multiplier is None else couple(built)


def answers(robot: rk.Robot, **how: str) -> np.ndarray:
    q = np.array([0.4, -0.7, 1.1])[: robot.nq]
    v, a = np.array([[0.3, -0.2, 0.5], [1.0, 0.6, -0.8]])[:, : robot.nv]
    poses = rk.forward_kinematics(robot, q, **how).matrices
    return np.concatenate([poses.ravel(), rk.rnea(robot, q, v, a, **how)])


COUPLED = {"multiplier": -2.0}
HELICAL = {"kind": "helical"}
DIFFERENT = {
    "parent": ({}, {"parent": "root"}),
    "kind of a joint": ({}, {"kind": "prismatic"}),
    "axis": ({}, {"axis": (0.0, 0.6, 0.8)}),
    "pitch": (HELICAL, HELICAL | {"pitch": 0.3}),
    "rotation of a joint": ({}, {"turn": TURNED}),
    "position of a joint": ({}, {"shift": (0.1, 0.2, -0.4)}),
    "body of a link": ({"tool_shift": (0, 0, 0)}, {"tool_shift": (0, 0, 0), "carrier": "upper"}),
    "rotation of a link": ({}, {"tool_turn": TURNED}),
    "position of a link": ({}, {"tool_shift": (0.0, 0.1, 0.3)}),
    "mass": ({}, {"mass": 2.0}),
    "centre of mass": ({}, {"com": (0.01, 0.02, -0.2)}),
    "inertia": ({}, {"inertia": 2.0 * SOME}),
    "gravity": ({}, {"gravity": (0.0, 1.0, -9.81)}),
    "multiplier of a coupled joint": (COUPLED, COUPLED | {"multiplier": 0.5}),
    "offset of a coupled joint": (COUPLED, COUPLED | {"offset": 0.4}),
    "leader of a coupled joint": (COUPLED, COUPLED | {"leader": "knee"}),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_robots_that_differ_do_not_share_code(what):
    first, second = (robot(**changes) for changes in DIFFERENT[what])
    assert first.fingerprint != second.fingerprint
    expected = [answers(each, engine="python") for each in (first, second)]
    for each, by_text in zip((first, second), expected, strict=True):
        assert relative(answers(each), by_text) < 1e-12
    assert relative(*expected) > 1e-3, "the difference shows"


@pytest.mark.parametrize("what", [w for w in DIFFERENT if w not in ("mass", "centre of mass", "inertia")])
def test_robots_with_given_inertias_that_differ_do_not_share_code(what):
    first, second = (robot(**changes) for changes in DIFFERENT[what])
    first, second = (each.with_inertias(each.inertial_parameters) for each in (first, second))
    assert first.fingerprint_without_inertias != second.fingerprint_without_inertias
    for each in (first, second):
        assert relative(answers(each), answers(each, engine="python")) < 1e-12


def test_screws_of_different_pitch_move_by_their_own():
    reach = [rk.forward_kinematics(screw(pitch), [1.2])["bolt"][1][2] for pitch in (0.1, 0.3)]
    assert reach == pytest.approx([0.12, 0.36], rel=1e-14)


@pytest.mark.parametrize("changes", [{"name": "b"}, {"limit": 1.0}, {"damping": 0.5}, {"root": 4.0}])
def test_what_no_equation_of_motion_holds_does_not_make_other_code(changes):
    assert robot(**changes).fingerprint == robot().fingerprint


def test_every_inertial_parameter_of_a_moving_body_tells_robots_apart():
    plain = robot()
    for k in range(10):
        P = np.array(plain.inertial_parameters)
        P[2, k] += 1e-6
        assert plain.with_inertias(P).fingerprint != plain.fingerprint
    stacked = plain.with_inertias(plain.inertial_parameters[None])
    assert stacked.fingerprint != plain.fingerprint
    assert stacked.fingerprint_without_inertias == plain.fingerprint_without_inertias


def test_every_number_of_a_placement_tells_robots_apart():
    plain = robot()
    for link in ("tool", "lower"):
        seen = {plain.fingerprint}
        k = plain.link_index[link]
        there = plain.link(link).placement
        for i in range(12):
            numbers = np.concatenate([there.rotation.ravel(), there.position])
            numbers[i] += 1e-9
            moved = replace(plain.links[k], placement=rk.Placement(numbers[:9].reshape(3, 3), numbers[9:]))
            links = (*plain.links[:k], moved, *plain.links[k + 1 :])
            seen.add(replace(plain, links=links).fingerprint)
        assert len(seen) == 13
