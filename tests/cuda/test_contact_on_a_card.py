"""Contact steps on a card: on a host card, whose memory is NaN at first, they have the bits of rows."""

from __future__ import annotations

import numpy as np
import pytest
from ptxas_usage import assembled

import robokit as rk
from robokit.engine.loops.fields import KnownKernel, once
from robokit.engine.loops.kernel import ArrayOf
from robokit.model import ModelBuilder, Shape, Sphere
from robokit.sim import card_rows, steppers
from robokit.spatial.control_flow import cond, for_range, while_loop

ROWS = 5


def fallen(name, **options):
    """A robot, some starts above the ground, and the options of two rollouts that are to be the same."""
    robot = rk.load(name, base="floating")
    rng = np.random.default_rng(0)
    q = np.tile(rk.standing_configuration(robot), (ROWS, 1))
    v = rng.normal(size=(ROWS, robot.nv))
    return robot, q, v, {"steps": 150, "dt": 2e-3, "reproducible": True, "ground": True, **options}


def rough(robot):
    """Ground of cells, on which a quadruped with motors and limits walks, is pushed, and bounces."""
    rng = np.random.default_rng(1)
    terrain = rk.HeightField(rng.uniform(-0.04, 0.0, (40, 40)), cell=0.1)
    return {
        "ground": rk.Ground(terrain=terrain, friction=np.linspace(0.3, 1.0, ROWS), restitution=0.3),
        "actuators": rk.PD(kp=60.0, kd=2.0, target=rng.normal(size=(ROWS, robot.nv - 6)) * 0.3),
        "pushes": [rk.Push(robot.link_names[0], [120.0, 30.0, 0.0], start=0.05, duration=0.1)],
        "tau": rng.normal(size=(150, ROWS, robot.nv)) * 0.1,
        "measures": True,
    }


def same(robot, q, v, options):
    there, here = (rk.rollout(robot, q, v, device=device, **options) for device in ("cuda", "cpu"))
    for name in ("q", "v"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    for name, value in here.summary.items():
        if "seconds" not in name and "second" not in name and name != "device":
            np.testing.assert_array_equal(there.summary[name], value, name)
    for name, column in here.measures.items():
        np.testing.assert_array_equal(there.measures[name], column, name)
    return there


@pytest.mark.slow
@pytest.mark.parametrize(("name", "collide"), [("quadruped", False), ("humanoid", True)])
def test_a_robot_falls_as_on_the_processor(card, name, collide):
    """A few iterations a pass: states of a tile are at different steps, and all come to the end."""
    same(*fallen(name, self_collision=collide))


@pytest.mark.slow
def test_rough_ground_motors_pushes_and_bounces_and_too_little_place(card, monkeypatch):
    """Rows that have no place for their contacts wait, and go on in larger arrays."""
    few = {"n_contacts": 2, "n_near": 2, "n_constraints": 2}
    monkeypatch.setattr(card_rows, "PLACES", few)
    monkeypatch.setattr(steppers, "AT_START", few | {"n_rows": 0})
    monkeypatch.setattr(card_rows, "HELD_BYTES", 40 * ROWS * 8 * 60)  # inputs of some steps at a time
    robot, q, v, options = fallen("quadruped")
    made = []
    make = card_rows.ContactOnCard._make

    def noted(own, stream=0):
        make(own, stream)
        made.append(dict(own.sizes))

    monkeypatch.setattr(card_rows.ContactOnCard, "_make", noted)
    options |= rough(robot)
    same(robot, q, v, options)
    assert len(made) > 1 and made[-1]["n_contacts"] > made[0]["n_contacts"]
    count = len(made)
    rk.rollout(robot, q, v, device="cuda", **(options | {"steps": 100, "tau": options["tau"][:100]}))
    assert len(made) == count + 1 and made[-1] == made[-2]  # the next rows have the places from the start


@pytest.mark.slow
def test_impacts_that_are_passed_on_and_loops_that_bounce(card):
    """Balls in a row, each gap and restitution of its own, land on each other; a linkage bounces, too."""
    ball = ModelBuilder("ball").link("ball", 1.0, inertia=np.eye(3) * 4e-3, collisions=(Shape(Sphere(0.1)),))
    balls = rk.together({f"{k}": ball.build("floating") for k in range(3)})
    q, v = np.zeros((ROWS, 3, 7)), np.zeros((ROWS, 3, 6))
    q[..., 0], q[..., 6] = 1.0, 0.105 + 0.2 * np.arange(3)
    q[1:, 2, 6] += [0.0, 1e-6, 1e-3, 1e-2]
    v[..., 5] = -np.linspace(0.1, 2.0, ROWS)[:, None]
    ground = rk.Ground(restitution=np.linspace(0.2, 1.0, ROWS))
    options = {"steps": 60, "dt": 2e-3, "reproducible": True, "ground": ground}
    pairs = rk.collision_pairs(balls).with_law(restitution=1.0)
    run = same(balls, q.reshape(ROWS, -1), v.reshape(ROWS, -1), {"self_collision": pairs, **options})
    assert run.v[-1].reshape(ROWS, 3, 6)[-1, 2, 5] > 0.5  # thrown up by those below
    same(*fallen("four_bar", **options, self_collision=True))


@pytest.mark.slow
def test_single_precision_stays_beside_the_processors(card):
    robot, q, v, options = fallen("quadruped", dtype="float32", steps=60)
    there, here = (rk.rollout(robot, q, v, device=device, **options) for device in ("cuda", "cpu"))
    assert np.abs(there.q[-1] - here.q[-1]).max() < 2e-3 and not len(there.failed)


@pytest.mark.parity  # ptxas comes with the tests that need other programs
@pytest.mark.slow
def test_the_steps_code_is_assembled_within_bounds(card, monkeypatch, tmp_path):
    """On the ground alone all of the solver's linear algebra is a straight line; what spills is a bound."""

    class Assembled(Exception):
        """In place of a run, for which the code would be compiled once more, for the host."""

    def used(text):
        raise Assembled(assembled(text, "sm_90")[1])

    monkeypatch.setattr(card, "assemble", used)
    for collide, most in ((True, 60_000), (False, 90_000)):
        robot, q, v, options = fallen("quadruped", self_collision=collide, dtype="float32", steps=1)
        monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))  # where no code is
        with pytest.raises(Assembled) as raised:
            rk.rollout(robot, q, v, device="cuda", **options)
        (usage,) = raised.value.args
        assert max(each.registers for each in usage) <= 255
        assert sum(each.frame for each in usage) < most and sum(each.stores for each in usage) < most


def test_a_known_kernel_computes_nothing_that_is_known():
    """Loops over what is known unroll, products with 0 vanish, and straight lines read nothing twice."""
    parent = np.array([-1, 0, 1, 1])

    def sums(x, out):
        def body(b):
            up = x.parent[b]
            out[b] = cond(up < 0, lambda: x.own[b], lambda: out[up] + x.gain[b] * x.own[b])

        for_range(x.n, body)
        left = while_loop(lambda k: k < x.n, lambda k: k + 1, 1)
        out[0] = out[0] + 1.0 * left

    def function(x):
        once(x, sums, x.out)
        for_range(x.turns[0], lambda _: once(x, sums, x.out))

    arrays = [ArrayOf("parent", ("n",), kind="integer"), ArrayOf("own", ("n",)), ArrayOf("gain", ("n",))]
    arrays += [ArrayOf("turns", (1,), kind="integer"), ArrayOf("out", ("n",), "inout")]
    known = {"parent": parent, "gain": np.array([1.0, 0.0, 2.0, 3.0])}

    def made(unrolls):
        return KnownKernel("sums", function, arrays, {"n": 4}, known, unrolls, {}, {})

    own, out = np.array([[1.0, 5.0, 7.0, 9.0]]), np.zeros((1, 4))
    given = {**known, "own": own, "turns": np.array([2]), "out": out}
    found = [made(unrolls)(**given)["out"] for unrolls in ([], [sums])]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(found[0], [[5.0, 1.0, 15.0, 28.0]])
    one = {name: x[0] if x.ndim == 2 else x for name, x in given.items()}
    known, unknown = (made(unrolls).counts(**one) for unrolls in ([sums], []))
    assert known["mul"] == 2 * 3 < unknown["mul"] and known["load"] < unknown["load"] // 2
