"""Inverse kinematics: what it returns meets the targets, keeps the limits, and says where it cannot."""

from __future__ import annotations

import ladder
import numpy as np
import pytest
from ladder import State

import robokit as rk
from robokit.ik.solve import default_start
from robokit.ik.solver import Search
from robokit.model import couple

PYTHON = {"engine": "python"}
ONE = {**PYTHON, "starts": 1}
LENGTHS = (1.0, 0.7)


def arm(lower=-3.0, upper=3.0, n=2):
    """Hinges about z in a row, links along x; the tip is the link after the last."""
    b = rk.ModelBuilder("arm").link("l0")
    for k in range(n):
        shift = LENGTHS[(k - 1) % 2] if k else 0.0
        b.link(f"l{k + 1}", 1.0, (0.3, 0, 0), np.eye(3) * 0.01)
        place = rk.Placement(np.eye(3), (shift, 0, 0))
        b.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, (0, 0, 1), lower=lower, upper=upper)
    tip = rk.Placement(np.eye(3), (LENGTHS[(n - 1) % 2], 0, 0))
    return b.link("tip").joint("end", "fixed", f"l{n}", "tip", tip).build()


def seven():
    """An arm of seven hinges about changing axes, with limits."""
    b = rk.ModelBuilder("seven").link("l0")
    for k in range(7):
        b.link(f"l{k + 1}", 1.0, (0, 0, 0.1), np.eye(3) * 0.01)
        place = rk.Placement(np.eye(3), (0.0, 0.05 * (k % 3), 0.25))
        axis = (0, 0, 1) if k % 2 == 0 else (0, 1, 0)
        b.joint(f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, axis, lower=-2.5, upper=2.5)
    return b.build()


@pytest.fixture(scope="module")
def seven_arm():
    return seven()


def reachable(robot, link, count=1, seed=3):
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    R, p = rk.forward_kinematics(robot, q)[link]
    return q, R, p


def inside(robot, q):
    """Whether all joints with limits keep them, those that follow included."""
    full = np.array(robot.coupling.full_q(list(np.atleast_2d(q).T)) if robot.coupling else np.atleast_2d(q).T)
    for joint in robot.body_joints:
        at = robot.tree.q_slice[joint.body]
        if at.stop == at.start + 1:
            x = np.broadcast_to(full[at.start], len(np.atleast_2d(q)))
            if not ((x >= joint.lower - 1e-12) & (x <= joint.upper + 1e-12)).all():
                return False
    return True


@pytest.mark.parametrize("form", ["pair", "matrix", "rows", "quaternion", "seven"])
def test_every_form_of_a_pose_is_reached(seven_arm, form):
    robot = seven_arm
    q, R, p = (x[0] for x in reachable(robot, "l7"))
    w = np.sqrt(1.0 + np.trace(R)) / 2.0
    quat = np.r_[w, np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)]
    rows = np.c_[R, p]
    target = {
        "pair": (R, p),
        "matrix": np.r_[rows, [[0, 0, 0, 1]]],
        "rows": rows,
        "quaternion": (quat, p),
        "seven": np.r_[quat, p],
    }[form]
    found = rk.inverse_kinematics(robot, {"l7": target}, q + 0.3 * np.sin(np.arange(7)))
    assert found.converged and found.error < 1e-6 and found.message == ""
    pose = rk.forward_kinematics(robot, found.q)["l7"]
    assert np.abs(pose[0] - R).max() < 2e-6 and np.abs(pose[1] - p).max() < 1e-6
    assert found.position_error["l7"] == pytest.approx(np.linalg.norm(pose[1] - p), abs=1e-12)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_points_and_poses_of_a_tree_with_every_kind_of_joint(base):
    robot = ladder.random_tree(0, base)
    goal, start = State(robot, 1).q, State(robot, 2).q
    links, at = (robot.link_names[-1], robot.link_names[7]), np.array([0.1, 0.2, -0.3])
    poses = rk.forward_kinematics(robot, goal, **PYTHON)
    (R, p), (R2, p2) = poses[links[0]], poses[links[1]]
    targets = {links[1]: p2 + R2 @ at, links[0]: (R, p)}
    found = rk.inverse_kinematics(robot, targets, start, at={links[1]: at}, **PYTHON)
    assert found.converged, found.message
    poses = rk.forward_kinematics(robot, found.q, **PYTHON)
    assert np.abs(poses[links[0]][0] - R).max() < 2e-6 and np.abs(poses[links[0]][1] - p).max() < 1e-6
    assert np.abs(poses[links[1]][0] @ at + poses[links[1]][1] - p2 - R2 @ at).max() < 1e-6
    for joint in robot.joints:
        k = robot.tree.joint[joint.body].kind.quaternion
        if k is not None:
            assert np.linalg.norm(found.q[joint.q_slice][k : k + 4]) == pytest.approx(1.0, abs=1e-12)


def test_a_batch_is_its_rows_and_machine_code_is_the_text(seven_arm):
    robot = seven_arm
    _, R, p = reachable(robot, "l7", 12)
    start = reachable(robot, "l7", 12, seed=4)[0]
    for starts in (1, 20):  # random starts too are those of each row alone
        many = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=starts)
        assert many.converged.any() and many.converged.all() == (starts == 20)
        for k in range(12):
            one = rk.inverse_kinematics(robot, {"l7": (R[k], p[k])}, start[k], starts=starts)
            assert np.abs(one.q - many.q[k]).max() < 1e-7
            assert (one.converged, one.iterations) == (many.converged[k], many.iterations[k])
    plain = rk.inverse_kinematics(robot, {"l7": (R[0], p[0])}, start[0], **PYTHON)
    assert np.abs(plain.q - many.q[0]).max() < 1e-7
    shared = rk.inverse_kinematics(robot, {"l7": (R[0], p[0])}, start)
    assert shared.q.shape == start.shape and np.abs(shared.q[0] - many.q[0]).max() < 1e-7


def test_limits_are_kept_by_every_answer(seven_arm):
    robot = seven_arm
    rng = np.random.default_rng(5)
    anywhere = {"l7": (np.array([ladder.rotation(rng) for _ in range(200)]), rng.uniform(-2, 2, (200, 3)))}
    start = rng.uniform(-4.0, 4.0, (200, 7))  # outside too
    found = rk.inverse_kinematics(robot, anywhere, start)
    assert inside(robot, found.q) and not found.converged.all()
    free = rk.inverse_kinematics(robot, anywhere, start, limits=False)
    assert not inside(robot, free.q)
    assert free.error.mean() < found.error.mean()


def test_limits_of_joints_that_follow():
    b = rk.ModelBuilder("hand").link("l0")
    for k in range(3):
        b.link(f"l{k + 1}", 1.0, (0.2, 0, 0), np.eye(3) * 0.01)
        mimic = rk.Mimic("j0", -2.0, 0.1) if k == 2 else None
        place = rk.Placement(np.eye(3), (0.5 * (k > 0), 0, 0))
        b.joint(
            f"j{k}", "revolute", f"l{k}", f"l{k + 1}", place, (0, 0, 1), lower=-1.0, upper=1.0, mimic=mimic
        )
    robot = couple(b.build())
    goal = np.array([0.3, -0.6])
    R, p = rk.forward_kinematics(robot, goal, **PYTHON)["l3"]
    target, at = {"l3": p + R @ (0.5, 0, 0)}, {"l3": (0.5, 0, 0)}
    found = rk.inverse_kinematics(robot, target, [0.2, -0.4], at=at, **PYTHON)
    assert found.converged and np.abs(found.q - goal).max() < 1e-5
    # From here the other way is shorter, and ends where the follower's limit is: -2 q + 0.1 = 1.
    stuck = rk.inverse_kinematics(robot, target, np.zeros(2), at=at, **ONE)
    assert not stuck.converged and stuck.q[0] == pytest.approx(-0.45) and inside(robot, stuck.q)
    for angle in np.linspace(-3, 3, 9):
        far = (3 * np.cos(angle), 3 * np.sin(angle), 0.0)
        found = rk.inverse_kinematics(robot, {"l3": far}, np.zeros(2), **ONE)
        assert not found.converged and inside(robot, found.q)


def test_out_of_reach_the_nearest_point_is_found():
    robot, far = arm(), np.array([2.0, 1.5, 0.4])
    found = rk.inverse_kinematics(robot, {"tip": far}, [0.5, 0.9], **ONE)
    nearest = np.r_[far[:2] / np.linalg.norm(far[:2]) * sum(LENGTHS), 0.0]
    assert not found.converged
    assert found.error == pytest.approx(np.linalg.norm(far - nearest), rel=1e-8)
    assert "target of 'tip' missed by 0.894 m" in found.message and "out of reach" in found.message


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_far_away_it_reaches_out_all_the_same(far):
    robot = arm(n=3)
    found = rk.inverse_kinematics(robot, {"tip": (far, far, 0.0)}, [0.1, 0.2, -0.3], **ONE)
    assert not found.converged and "out of reach" in found.message
    np.testing.assert_allclose(found.q, [np.pi / 4, 0.0, 0.0], atol=1e-2)


def test_nearest_within_the_limits():
    # The elbow wants to bend to where its limit does not let it.
    robot = arm(-1.0, 1.0)
    found = rk.inverse_kinematics(robot, {"tip": (0.2, 0.1, 0.0)}, [0.0, 0.5], **ONE)
    assert not found.converged and inside(robot, found.q)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 401)] * 2), axis=-1)
    x = sum(
        n * np.stack([np.cos(a), np.sin(a)], -1)
        for n, a in zip(LENGTHS, (grid[..., 0], grid.sum(-1)), strict=True)
    )
    least = np.linalg.norm(x - (0.2, 0.1), axis=-1).min()
    assert found.error <= least + 1e-9 or found.error < 1.2 * least


@pytest.mark.parametrize("start", [(0.0, 0.0), (0.0, 1e-9), (1.0, 0.0)])
def test_from_and_to_singular_configurations(start):
    robot = arm()
    stretched = rk.inverse_kinematics(robot, {"tip": (0.0, sum(LENGTHS), 0.0)}, [0.3, 0.8], **PYTHON)
    assert stretched.converged and np.abs(stretched.q - [np.pi / 2, 0.0]).max() < 5e-3
    inward = rk.inverse_kinematics(robot, {"tip": (1.0, 0.6, 0.0)}, start, **ONE)
    assert np.isfinite(inward.q).all() and (inward.converged or inward.message)


def test_more_rows_than_joints_and_a_goal_that_is_met_already(seven_arm):
    robot = arm()
    q = np.array([0.4, -0.9])
    poses = rk.forward_kinematics(robot, q, **PYTHON)
    both = {"tip": poses["tip"], "l1": poses["l1"][1], "l2": poses["l2"][1]}
    found = rk.inverse_kinematics(robot, both, [0.1, -0.2], **PYTHON)
    assert found.converged and np.abs(found.q - q).max() < 1e-6
    there = rk.inverse_kinematics(robot, both, q, **PYTHON)
    assert (there.q == q).all() and there.iterations == 1 and there.converged


def test_weights_leave_axes_free():
    robot = seven()
    q, R, p = (x[0] for x in reachable(robot, "l7"))
    start = q + 0.4 * np.cos(np.arange(7))
    direction = rk.inverse_kinematics(
        robot, {"l7": (R, p)}, start, weights={"l7": (1, 1, 0, 0, 0, 0)}, **PYTHON
    )
    got = rk.forward_kinematics(robot, direction.q, **PYTHON)["l7"]
    assert direction.converged and np.abs(got[0][:, 2] - R[:, 2]).max() < 1e-5
    assert np.abs(got[1] - p).max() > 1e-3
    height = rk.inverse_kinematics(robot, {"l7": p}, start, weights={"l7": (0, 0, 2)}, **PYTHON)
    got = rk.forward_kinematics(robot, height.q, **PYTHON)["l7"][1]
    assert height.converged and abs(got[2] - p[2]) < 1e-6 and np.abs(got[:2] - p[:2]).max() > 1e-3


def test_a_posture_is_kept_as_near_as_the_target_lets_it(seven_arm):
    robot = seven_arm
    q, _, p = (x[0] for x in reachable(robot, "l7"))
    rest = np.full(7, 0.2)
    plain = rk.inverse_kinematics(robot, {"l7": p}, q + 0.5)
    drawn = rk.inverse_kinematics(robot, {"l7": p}, q + 0.5, posture=rest)
    assert plain.converged and drawn.converged
    assert np.linalg.norm(drawn.q - rest) < 0.9 * np.linalg.norm(plain.q - rest)
    # The best of all: its distance grows along every motion that keeps the target, up to the soft weight.
    J = rk.link_jacobian(robot, drawn.q, "l7")[3:]
    slope = np.linalg.svd(J)[2][3:] @ (drawn.q - rest)
    assert np.abs(slope).max() < 0.1 * np.linalg.norm(drawn.q - rest)


def test_the_center_of_mass_goes_where_it_is_wanted_and_feet_stay():
    robot = ladder.random_tree(1, "floating", kinds=("revolute",), n=6)
    q = State(robot, 1).q
    feet = [robot.link_names[k] for k in (-1, 3)]
    stay = {f: rk.forward_kinematics(robot, q, **PYTHON)[f] for f in feet[:1]}
    goal = rk.center_of_mass(robot, q, **PYTHON) + np.array([0.02, -0.03, 0.01])
    found = rk.inverse_kinematics(robot, stay, q, center_of_mass=goal, **PYTHON)
    assert found.converged and found.position_error["center of mass"] < 1e-6
    assert np.abs(rk.center_of_mass(robot, found.q, **PYTHON) - goal).max() < 1e-6
    assert np.abs(rk.forward_kinematics(robot, found.q, **PYTHON)[feet[0]][1] - stay[feet[0]][1]).max() < 1e-6


def test_joints_that_move_no_target_keep_their_values():
    robot = ladder.random_tree(1, "fixed", kinds=("revolute",), n=6)
    q = State(robot, 1).q
    link = robot.link_names[2]
    supports = set(robot.tree.support[robot.link(link).body])
    p = rk.forward_kinematics(robot, State(robot, 2).q, **PYTHON)[link][1]
    found = rk.inverse_kinematics(robot, {link: p}, q, **PYTHON)
    others = [j.q_slice.start for j in robot.joints if j.body not in supports]
    assert others and (found.q[others] == q[others]).all()


def test_random_starts_find_what_one_does_not(seven_arm):
    robot = seven_arm
    _, R, p = reachable(robot, "l7", 60)
    start = reachable(robot, "l7", 60, seed=9)[0]
    once = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=1)
    often = rk.inverse_kinematics(robot, {"l7": (R, p)}, start, starts=40)
    assert not once.converged.all() and often.converged.all()
    assert (often.q[once.converged] == once.q[once.converged]).all()
    assert inside(robot, often.q) and (often.starts[~once.converged] > 1).all()
    row = int(np.flatnonzero(~once.converged)[0])
    single = [
        rk.inverse_kinematics(robot, {"l7": (R[row], p[row])}, start[row], starts=40, seed=1) for _ in "ab"
    ]
    assert single[0].converged and (single[0].q == single[1].q).all()


def test_what_can_be_reached_is_reached_without_being_asked_for_more(seven_arm):
    _, R, p = reachable(seven_arm, "l7", 100)
    once = rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, starts=1)
    found = rk.inverse_kinematics(seven_arm, {"l7": (R, p)})
    assert once.converged.mean() < 0.97 and found.converged.all() and inside(seven_arm, found.q)
    assert (found.q[once.converged] == once.q[once.converged]).all()


def test_zero_outside_the_limits_is_no_start():
    robot = arm(-2.5, -0.1)
    assert default_start(robot, True).tolist() == [-1.3, -1.3] and not default_start(robot, False).any()
    one_sided = arm(0.2, np.inf)
    assert default_start(one_sided, True).tolist() == [0.2, 0.2]
    q, _, p = (x[0] for x in reachable(robot, "tip"))
    found = rk.inverse_kinematics(robot, {"tip": p}, **ONE)
    assert found.converged and np.abs(found.q - q).max() < 1e-5


def test_more_starts_cost_nothing_where_the_first_arrives(seven_arm, monkeypatch):
    q, R, p = (x[0] for x in reachable(seven_arm, "l7"))
    monkeypatch.setattr(Search, "retry", None)  # calling it would fail
    assert rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, q + 0.1, **PYTHON).starts == 1


def test_the_message_says_how_many_starts_were_tried():
    robot = arm()
    found = rk.inverse_kinematics(robot, {"tip": (3.0, 0.0, 0.0)}, [0.1, 0.2], starts=3, **PYTHON)
    assert found.starts == 3 and "none of 3 starts came nearer" in found.message


def test_a_link_that_nothing_moves_and_no_states(seven_arm):
    fixed = rk.inverse_kinematics(seven_arm, {"l0": (0.1, 0, 0)}, np.zeros(7), **ONE)
    assert not fixed.converged and fixed.error == pytest.approx(0.1)
    assert rk.inverse_kinematics(seven_arm, {"l0": np.zeros(3)}, np.zeros(7)).converged
    none = rk.inverse_kinematics(seven_arm, {"l7": (0.1, 0, 0)}, np.empty((0, 7)))
    assert none.q.shape == (0, 7) and none.message == ""


def test_iterations_end_it_and_the_message_says_so(seven_arm):
    q, R, p = (x[0] for x in reachable(seven_arm, "l7"))
    cut = rk.inverse_kinematics(seven_arm, {"l7": (R, p)}, q + 0.5, iterations=2, **ONE)
    assert not cut.converged and cut.iterations == 2 and "allow more iterations" in cut.message


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"targets": {}}, rk.ShapeError, "^targets: expected at least one"),
        ({"targets": {"hand": (0, 0, 0)}}, rk.UnknownName, "no link named 'hand'"),
        ({"targets": [0, 0, 0]}, rk.WrongType, "^targets: expected a mapping"),
        (
            {"targets": {"tip": (0, 0)}},
            rk.ShapeError,
            r"^targets\['tip'\]: expected a position .* shape \(2,\)",
        ),
        ({"targets": {"tip": "there"}}, rk.ShapeError, r"^targets\['tip'\]: expected real numbers"),
        ({"targets": {"tip": (0, 0, np.nan)}}, rk.InvalidValue, r"^targets\['tip'\]: expected finite"),
        ({"targets": {"tip": (0, 0, 1e300)}}, rk.ShapeError, "at most 1e"),
        ({"targets": {"tip": (2 * np.eye(3), (0, 0, 0))}}, rk.ShapeError, "rotation matrix"),
        ({"targets": {"tip": (-np.eye(3), (0, 0, 0))}}, rk.ShapeError, "rotation matrix"),
        ({"targets": {"tip": ((1, 1, 0, 0), (0, 0, 0))}}, rk.InvalidValue, "unit quaternion .* norm 1.41421"),
        ({"targets": {"tip": np.ones((4, 4))}}, rk.ShapeError, "last row"),
        ({"targets": {"tip": np.zeros((2, 3)), "l1": np.zeros((3, 3))}}, rk.ShapeError, "batch of"),
        ({"q0": (0, 0, 0)}, rk.ShapeError, r"^q0: expected shape \(2,\)"),
        ({"q0": (0, np.inf)}, rk.InvalidValue, "^q0: expected finite"),
        ({"q0": (0, 1e12)}, rk.InvalidValue, "^q0: expected an angle"),
        ({"q0": np.zeros((2, 2)), "targets": {"tip": np.zeros((3, 3))}}, rk.ShapeError, "batch of 2 like q0"),
        ({"at": {"l1": (0, 0, 0)}}, rk.UnknownName, "no target named 'l1'"),
        ({"at": {"tip": (0, 0)}}, rk.ShapeError, r"^at\['tip'\]: expected a point"),
        ({"weights": {"tip": (1, 1)}}, rk.ShapeError, r"^weights\['tip'\]: expected a number or \(3,\)"),
        ({"weights": {"tip": -1}}, rk.ShapeError, r"^weights\['tip'\]"),
        ({"weights": {"center of mass": 1}}, rk.UnknownName, "no target named 'center of mass'"),
        ({"center_of_mass": (0, 0)}, rk.ShapeError, "^center_of_mass: expected a position"),
        ({"posture": (0, 0, 0)}, rk.ShapeError, "^posture: expected shape"),
        ({"posture": (0, 0), "posture_weight": -1}, rk.ShapeError, "^posture_weight"),
        ({"limits": 3}, rk.WrongType, "^limits: expected True or False"),
        ({"starts": 0}, rk.ShapeError, "^starts: expected a whole number >= 1"),
        ({"starts": 2, "seed": "x", "targets": {"tip": (9, 9, 9)}}, rk.ShapeError, "^seed"),
        ({"seed": "x"}, rk.ShapeError, "^seed: expected a whole number >= 0"),
        ({"seed": -1}, rk.ShapeError, "^seed"),
        ({"tolerance": 0}, rk.ShapeError, "^tolerance"),
        ({"iterations": 1.5}, rk.ShapeError, "^iterations"),
        ({"engine": "fortran"}, rk.UnknownName, "no engine named 'fortran'"),
        ({"robot": "arm"}, rk.WrongType, "^robot: expected a Robot"),
    ],
)
def test_wrong_arguments(change, error, message):
    given = {"robot": arm(), "targets": {"tip": (1.0, 0.5, 0.0)}, "q0": (0.1, 0.2)} | PYTHON | change
    with pytest.raises(error, match=message):
        rk.inverse_kinematics(**given)


def test_inertias_matter_to_the_center_of_mass_alone():
    robot = arm()
    varied = robot.with_inertias(robot.inertial_parameters * np.array([1.0, 2.0])[:, None, None])
    assert rk.inverse_kinematics(varied, {"tip": (1.0, 0.5, 0.0)}, [0.1, 0.2], **PYTHON).converged
    with pytest.raises(rk.ShapeError, match=r"^center_of_mass: .*robot.sample"):
        rk.inverse_kinematics(varied, {}, [0.1, 0.2], center_of_mass=(0.5, 0.3, 0.0))
    one = rk.inverse_kinematics(varied.sample(1), {}, [0.1, 0.2], center_of_mass=(0.5, 0.3, 0.0), **PYTHON)
    assert one.converged
