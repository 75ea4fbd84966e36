"""Laws of whole steps: order in free flight, conservation, and that places for arrays change nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import working_memory

import robokit as rk
from robokit.contact.accounts import FIXED, FREE
from robokit.contact.robot_data import robot_data
from robokit.model import Box, ModelBuilder, Placement, Shape, Sphere
from robokit.sim import contact_rows
from robokit.sim.motion import facts_and_spins, state_facts
from robokit.sim.run_inputs import set_up
from robokit.sim.steppers import ContactState, energies, keeps, step_numbers


def floating(name: str) -> rk.Robot:
    return rk.load_urdf(rk.find_robot(name), base="floating")


def start(robot: rk.Robot, seed: int = 0, height: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q, v = robot.neutral(), 0.5 * rng.normal(size=robot.nv)
    if robot.base == "floating":
        q[6] = height
    return q, v


def simulation(robot: rk.Robot, dt: float, ground: bool = False) -> ContactState:
    program = set_up(robot, 1.0, dt, ground or None, "contact", None, None).program
    return ContactState(robot, dt, step_numbers(program, dt))


def test_free_flight_is_of_second_order() -> None:
    robot = floating("double_pendulum")
    q, v = start(robot)
    kw = {"duration": 0.4, "joint_damping": 0.0}
    exact = rk.simulate(robot, q, v, dt=2e-4, integrator="rkmk4", **kw).q[-1]
    errors = [
        np.abs(rk.simulate(robot, q, v, dt=dt, integrator="contact", **kw).q[-1] - exact).max()
        for dt in (8e-3, 4e-3, 2e-3)
    ]
    assert np.all(np.log2(np.divide(errors[:-1], errors[1:])) > 1.7), errors


def test_momentum_and_energy_of_free_flight_are_kept() -> None:
    robot = floating("double_pendulum")
    run = rk.simulate(robot, *start(robot), duration=0.5, dt=2e-3, integrator="contact", joint_damping=0.0)
    assert run.summary["momentum_balance_angular"] < 1e-12
    assert run.summary["momentum_balance_linear"] < 1e-10
    assert run.summary["energy_balance"] < 1e-9 * run.summary["energy_exchanged"]


def test_joint_forces_motors_and_pushes_act_as_in_rkmk4() -> None:
    robot = floating("humanoid")
    kw = {
        "duration": 0.1,
        "actuators": rk.PD(kp=50, kd=2),
        "pushes": [(robot.body_name(1), [30, 0, 0], [0, 0, 0.1], 0.02, 0.05)],
        "v0": 0.3 * np.random.default_rng(1).normal(size=robot.nv),
        "controller": lambda t, q, v: np.r_[np.zeros(6), 0.1 * np.ones(robot.nv - 6)],
    }
    one, other = (rk.simulate(robot, integrator=name, **kw) for name in ("contact", "rkmk4"))
    assert np.abs(one.q - other.q).max() < 2e-4
    assert one.energy.work[-1] == pytest.approx(other.energy.work[-1], rel=5e-3)
    assert one.summary["momentum_balance_linear"] < 1e-10
    assert one.summary["energy_balance"] < 1e-2 * one.summary["energy_exchanged"]


def test_plain_python_gives_the_same_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = floating("double_pendulum")
    states = []
    for name in ("auto", "python"):
        if name == "python":
            monkeypatch.setattr("robokit.sim.steppers.engine", lambda: "python")
        s = simulation(robot, 2e-3)
        s.arrays["q"][:], s.arrays["v"][:] = start(robot)
        assert s.take(5) == 5
        states.append(np.r_[s.arrays["q"], s.arrays["v"]])
    np.testing.assert_allclose(*states, rtol=1e-12, atol=1e-12)


def test_what_is_kept_follows_from_what_holds_the_robot() -> None:
    humanoid, pendulum = floating("humanoid"), rk.load_urdf(rk.find_robot("double_pendulum"))
    assert keeps(humanoid) == FREE
    assert keeps(pendulum) == FIXED
    both = rk.together({"a": floating("double_pendulum"), "b": floating("double_pendulum")})
    assert keeps(both) == FREE
    assert list(robot_data(both)["wholes"][:, 0]) == [1, 1, 4]
    beside = rk.together({"arm": pendulum, "free": floating("double_pendulum")})
    assert keeps(beside) == FREE
    assert list(robot_data(beside)["body_whole"]) == [0, 1, 1, 2, 2, 2]
    assert list(robot_data(beside)["wholes"][:, 1]) == [0, 0, 1]


def falling(robot: rk.Robot, places: int | None = None) -> ContactState:
    s = simulation(robot, 1e-3, ground=True)
    if places is not None:
        s.make_room(dict.fromkeys(("n_contacts", "n_near", "n_constraints", "n_rows"), places))
    s.arrays["q"][:], s.arrays["v"][:] = start(robot, height=1.0)
    return s


def test_places_that_are_too_few_change_nothing() -> None:
    robot = floating("humanoid")
    few, many = falling(robot), falling(robot, 400)
    assert few.take(700) == many.take(700) == 700
    assert few.sizes["n_contacts"] < 400
    for name in ("q", "v", "ledger", "kept", "change"):
        assert np.array_equal(few.arrays[name], many.arrays[name]), name
    assert np.array_equal(few.packed(), many.packed())


def heap(n: int) -> tuple[rk.Robot, np.ndarray]:
    """Balls and boxes that nearly touch, each a little beside the one below, and their q."""
    inertia = 1.7e-3 * np.eye(3)
    ball, box = (
        ModelBuilder("body").link("body", 1.0, inertia=inertia, collisions=(Shape(shape),)).build("floating")
        for shape in (Sphere(0.05), Box((0.1, 0.1, 0.1)))
    )
    world = rk.together({f"body{k}": (box, ball)[k % 2] for k in range(n)})
    side, q = round(n ** (1 / 3)), world.neutral().reshape(n, 7)
    places = np.array([(k % side, k // side % side, k // side**2) for k in range(n)])
    q[:, 4:] = 0.104 * places + [0.0, 0.0, 0.055] + np.random.default_rng(0).uniform(-0.002, 0.002, (n, 3))
    return world, q.ravel()


def heaped(world: rk.Robot, q: np.ndarray, **given: Any) -> ContactState:
    program = set_up(world, 1.0, 1e-3, True, "contact", None, None, self_collision=True).program
    s = ContactState(world, 1e-3, step_numbers(program, 1e-3), **given)
    s.arrays["q"][:] = q
    return s


def test_a_heap_that_grows_has_the_bits_of_one_with_room() -> None:
    """More and more bodies touch: what the factors of A, contacts and constraints take grows with them."""
    world, q = heap(64)
    grown, large = heaped(world, q), heaped(world, q)
    first, room = dict(grown.sizes), {"n_contacts": 900, "n_near": 900, "n_constraints": 900, "n_fill": 8256}
    large.make_room(room)
    assert grown.take(300) == large.take(300) == 300
    for size in room:
        assert first[size] < grown.sizes[size] < room[size] == large.sizes[size], size
    for name in ("q", "v", "ledger", "kept", "change"):
        assert np.array_equal(grown.arrays[name], large.arrays[name]), name
    assert np.array_equal(grown.packed(), large.packed())


def test_rows_of_heaps_that_grow_have_the_bits_of_single_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one's room, and steps that are taken again for it, change no row."""
    grown, own = set(), contact_rows.enlarged
    monkeypatch.setattr(contact_rows, "enlarged", lambda *which: grown.update(more := own(*which)) or more)
    world, q = heap(27)
    rows = np.tile(q.reshape(27, 7), (3, 1, 1))
    rows[1, :, 4:6] *= 9.0  # nothing but the ground is touched
    rows[2, :, 6] += 0.1
    given = {"duration": 0.2, "dt": 1e-3, "integrator": "contact", "ground": True, "self_collision": True}
    many = rk.rollout(world, rows.reshape(3, -1), **given)
    assert grown >= {"n_fill", "n_contacts", "n_constraints"}
    for k, row in enumerate(rows):
        one = rk.simulate(world, row.ravel(), **given)
        assert np.array_equal(many.q[-1, k], one.q[-1]) and np.array_equal(many.v[-1, k], one.v[-1])


def test_memory_of_a_step_goes_with_what_touches() -> None:
    """But for what is noted of steps.

    All blocks of 343 bodies' A would be 30 MB. Of 58,653 pairs of bodies some 15 for each are candidates.
    """
    n, taken = 343, {}
    s = heaped(*heap(n))
    s.take(150)
    assert s.sizes["n_contacts"] > n
    for a in s.kernel.arrays:
        if "n_noted" not in a.shape:
            taken[a.name] = math.prod(a.at(s.sizes)) * (4 if a.kind == "integer" else 8)
    assert sum(taken[name] for name in ("A", "A_skew", "H", "pattern", "arcs")) < 8_000 * n
    assert sum(taken.values()) < 24_000 * n


def test_what_is_packed_is_all_that_the_next_step_needs() -> None:
    robot = floating("humanoid")
    one, other = falling(robot), falling(robot)
    one.take(600)
    for name in ("q", "v"):
        other.arrays[name][:] = one.arrays[name]
    other.unpack(one.packed())
    assert one.take(50) == other.take(50) == 50
    assert np.array_equal(one.arrays["q"], other.arrays["q"])


def test_a_fall_comes_to_rest_and_makes_no_energy() -> None:
    robot = floating("humanoid")
    q, _ = start(robot, height=1.0)
    run = rk.simulate(robot, q, duration=4.0, dt=1e-3, ground=True)
    assert (run.energy.total - run.energy.total[0]).max() < 1e-6
    assert np.diff(run.energy.total).max() < 1e-2
    assert np.abs(run.v[-1]).max() < 1e-6
    assert run.summary["deepest_penetration"] < 5e-3
    assert run.summary["momentum_balance_linear"] < 1e-8
    assert run.summary["steps_not_settled"] <= 4
    assert run.summary["contact_impulse_pulled"] == run.summary["contact_impulse_outside"] == 0.0


def test_a_row_of_a_rollout_is_the_single_run() -> None:
    robot = floating("humanoid")
    rows = np.array([start(robot, seed, 1.0)[0] for seed in range(2)])
    v = np.array([start(robot, seed, 1.0)[1] for seed in range(2)])
    kw = {"duration": 0.5, "dt": 1e-3, "ground": True}
    found = rk.rollout(robot, rows, v, **kw)
    for k in range(2):
        run = rk.simulate(robot, rows[k], v[k], **kw)
        assert np.array_equal(found.q[:, k], run.q)
        assert np.array_equal(found.v[:, k], run.v)


def test_recorded_contact_forces_are_those_that_acted() -> None:
    robot = floating("humanoid")
    q, _ = start(robot, height=1.0)
    run = rk.simulate(robot, q, duration=0.6, dt=1e-3, ground=True)
    contacts = run.contacts
    assert contacts is not None and contacts.forces[-1, :, 2].max() > 0.0
    np.testing.assert_allclose(contacts.forces.sum(axis=1), run.contact_force, atol=1e-7)
    assert np.abs(contacts.points[contacts.forces[..., 2] > 0.0][:, 2]).max() < 5e-3


def test_energies_and_momentum_of_states_are_those_of_the_algorithms() -> None:
    robot = floating("humanoid")
    q, v = map(np.array, zip(*(start(robot, seed) for seed in range(3)), strict=True))
    found = state_facts(robot, q, v)
    np.testing.assert_allclose(found[:, :2], np.transpose(energies(robot, q, v)), rtol=1e-12)
    np.testing.assert_allclose(found[:, 2:], rk.centroidal_momentum(robot, q, v), atol=1e-11)
    spin, body = facts_and_spins(robot, q, v)[:, 8:].T
    speeds = [np.linalg.norm(rk.link_velocity(robot, q, v, name)[:, :3], axis=1) for name in robot.link_names]
    np.testing.assert_allclose(spin, np.max(speeds, axis=0), rtol=1e-12)
    fastest = [robot.link(robot.link_names[k]).body for k in np.argmax(speeds, axis=0)]
    assert body.tolist() == fastest


def boxes_beside_an_arm() -> rk.Trajectory:
    """A fall of two boxes onto the ground and a solid; all made anew, and so their memory."""
    box = ModelBuilder("box").link(
        "box", 1.0, inertia=2e-3 * np.eye(3), collisions=(Shape(Box((0.2, 0.1, 0.1))),)
    )
    body, arm = box.build(base="floating"), rk.load_urdf(rk.find_robot("double_pendulum"))
    place, beside = (Placement(position=np.array(r)) for r in ((0.3, 0.02, 0.12), (2.0, 0.0, 1.5)))
    world = rk.together({"a": body, "b": (body, place), "c": (arm, beside)})
    ground = rk.Ground(shapes=[rk.Solid(Box((0.4, 0.4, 0.2)), (0.35, 0.0, 0.0))])
    q = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.06, 1.0, 0.0, 0.0, 0.0, 0.05, 0.0, 0.04, 0.4, 0.1])
    return rk.simulate(world, q, np.full(world.nv, 0.3), duration=0.2, ground=ground)


def test_a_step_reads_nothing_of_its_working_memory_that_it_has_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = []
    for numbers in ((0.0, 0), (np.nan, 1)):
        working_memory.fill(monkeypatch, *numbers)
        runs.append(boxes_beside_an_arm().v)
    np.testing.assert_array_equal(*runs)
