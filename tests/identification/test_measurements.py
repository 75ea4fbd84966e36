"""Measured motion: checks that name the argument, chunks, and one thread for BLAS."""

from __future__ import annotations

import numpy as np
import pytest
from ladder import relative
from measured_arm import R, motion, predicted_forces
from threadpoolctl import threadpool_info, threadpool_limits

import robokit as rk
from robokit.identification import measurements
from robokit.model import couple


def test_coupled_joints_have_one_row():
    b = rk.ModelBuilder("pair").link("l0")
    for k in (1, 2):
        b.link(f"l{k}", 1.0 + k, (0.1, 0.2 * k, 0.3), np.eye(3) * 0.2)
        mimic = rk.Mimic("j1", -2.0, 0.1) if k == 2 else None
        b.joint(f"j{k}", "continuous", f"l{k - 1}", f"l{k}", axis=(0, 1, 0), mimic=mimic)
    robot = couple(b.build())
    q, v, a = motion(robot, 100)
    tau = rk.rnea(robot, q, v, a) + 0.3 * v
    found = rk.identify(robot, q, v, a, tau, friction="viscous")
    assert relative(found.viscous, [0.3]) < 1e-6
    assert relative(found.residual, [0.0]) < 1e-6


def test_chunks_give_what_all_states_at_once_give(monkeypatch):
    q, v, a = motion(R, 100)
    tau = predicted_forces(R, q, v, a) + np.random.default_rng(0).standard_normal((100, 3))
    whole = rk.identify(R, q, v, a, tau, friction=True)
    monkeypatch.setattr(measurements, "CHUNK", 17)
    parts = rk.identify(R, q, v, a, tau, friction=True)
    assert relative(parts.x, whole.x) < 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": np.zeros(3)}, r"q: expected the states of a motion"),
        ({"v": np.zeros((4, 3))}, r"v: expected as many states as q, 30, got 4"),
        ({"tau": np.full((30, 3), np.nan)}, r"tau: expected finite numbers"),
        ({"tau": np.zeros((30, 2))}, r"tau: expected shape \(3,\) or \(B, 3\)"),
        ({"weights": -np.ones(3)}, r"weights: expected 1 over standard deviations"),
        ({"prior": np.zeros((2, 10))}, r"prior: expected the 4 bodies"),
        ({"prior": -R.inertial_parameters}, r"prior: expected masses >= 0, got -"),
        ({"prior_deviation": 0}, r"prior_deviation: expected a finite number > 0"),
    ],
)
def test_bad_arguments_are_named(change, message):
    q, v, a = motion(R, 30)
    given = {"q": q, "v": v, "a": a, "tau": predicted_forces(R, q, v, a)} | change
    with pytest.raises((rk.ShapeError, rk.InvalidValue), match=f"^{message}"):
        rk.identify(R, **given)


def test_blas_has_one_thread_meanwhile_and_then_as_many_as_before(monkeypatch):
    decompositions = {name: getattr(np.linalg, name) for name in ("qr", "svd", "lstsq", "eigvalsh", "solve")}
    seen: dict[str, set[int]] = {name: set() for name in decompositions}

    def threads() -> int:
        return max((x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas"), default=0)

    def counted(name):
        def call(*arguments, **options):
            seen[name].add(threads())
            return decompositions[name](*arguments, **options)

        return call

    with threadpool_limits(limits=3, user_api="blas"):
        if threads() != 3:
            pytest.skip("a BLAS whose threads cannot be set")
        for name in decompositions:
            monkeypatch.setattr(np.linalg, name, counted(name))
        swing = rk.excitation(R, 5.0, effort=2, rate=20.0)
        rk.identify(R, swing.q, swing.v, swing.a, rk.rnea(R, swing.q, swing.v, swing.a))
        rk.base_parameters(R, swing.q, swing.v, swing.a)
        assert threads() == 3
    assert all(numbers == {1} for numbers in seen.values())
