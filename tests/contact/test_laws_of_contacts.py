"""Laws of contacts and rows where g = P(p), whatever w is, and that their tangents are tangents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from robokit.contact import laws
from robokit.contact.constraints.contacts import impact
from robokit.contact.fields import FRICTION, LINE, SPIN

KINDS = [FRICTION, LINE, SPIN]
Case = dict[str, Any]


def cases(kind: int, count: int = 200) -> list[Case]:
    """Numbers of a law over many orders of magnitude, so that all of its branches are met."""
    rng = np.random.default_rng(kind)
    found = []
    for _ in range(count):
        R_n = 10 ** rng.uniform(-4, 2)
        R = R_n * 10 ** rng.uniform(-3, 1), R_n
        mu, arm, N = 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-2, 0.5), abs(rng.normal())
        u, aim = rng.normal(size=3), 0.3 * rng.normal(size=3)
        u[2] *= 10 ** rng.uniform(-1, 1.5)
        w = R_n * 10 ** rng.uniform(-2, 2)
        found.append({"kind": kind, "u": u, "R": R, "aim": aim, "mu": mu, "arm": arm, "N": N, "w": w})
    return found


def together(found: list[Case]) -> Case:
    """Laws of one kind as one, of whose numbers each is a row."""
    names = ("u", "R", "aim", "mu", "arm", "N", "w")
    return {"kind": found[0]["kind"], **{name: np.array([case[name] for case in found]).T for name in names}}


def impulse(case: Case, u: np.ndarray) -> np.ndarray:
    """g of a law in closed form: another way to the same."""
    (R_t, R_n), mu = case["R"], case["mu"]
    x = case["aim"] - u
    if case["kind"] == LINE:
        return x / [R_t, R_t, R_n]
    slip = np.hypot(*x[:2])
    if case["kind"] == SPIN:
        share = min(1.0, mu * case["N"] * R_t / slip)
        bound = case["arm"] * case["N"]
        return np.array([*(x[:2] / R_t * share), np.clip(x[2] / R_n, -bound, bound)])
    N = max(0.0, x[2] / R_n)
    share = min(1.0, mu * N * R_t / slip)
    return np.array([*(x[:2] / R_t * share), N])


def tried(case: Case, u: np.ndarray, g: np.ndarray) -> list[Any]:
    """p, of one law or of many together."""
    R = case["R"][0], case["R"][0], case["R"][1]
    return [laws.tried(g[k], u[k], case["aim"][k], case["w"], R[k]) for k in range(3)]


def nearest(case: Case, p: Any) -> np.ndarray:
    """P(p)."""
    return np.array(laws.nearest(case["kind"], tuple(p), case["mu"], case["arm"], case["N"]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_impulse_of_a_law_is_where_it_is_its_own_nearest(kind: int) -> None:
    """Whatever w is; and no other one is, as P(p) leads back to it from another."""
    found = cases(kind)
    case, g = together(found), np.array([impulse(case, case["u"]) for case in found]).T
    size = np.abs(g).max(axis=0) + 1e-12
    assert (np.abs(nearest(case, tried(case, case["u"], g)) - g) <= 1e-9 * size).all()
    other = g + size * np.array([[0.1], [-0.2], [0.3]])
    for _ in range(2000):
        last, other = other, nearest(case, tried(case, case["u"], other))
        if np.array_equal(last, other):
            break  # there they stay
    slow = (case["w"] / (case["w"] + case["R"])).max(axis=0)
    assert (np.abs(other - g).max(axis=0) <= (1e-6 + slow**1000) * size).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_tangent_is_the_derivative_of_the_law(kind: int) -> None:
    smooth = 0
    for case in cases(kind):
        u = case["u"]
        g = impulse(case, u)
        numbers = case["mu"], case["arm"], case["N"]
        G, const = laws.tangent(kind, tried(case, u, g), case["R"], case["w"], *numbers)
        a, b, d, e, f, n, p, q = map(float, G)
        G = np.array([[a, b, e + q], [b, d, f - p], [e - q, f + p, n]])
        size = np.abs(G) @ np.abs(case["aim"] - u) + np.abs(g) + 1e-12
        assert (np.abs(G @ (case["aim"] - u) + const - g) <= 1e-9 * size.max()).all()
        h = 1e-6 * np.eye(3)
        plus, minus = ([impulse(case, u + s * e) for e in h] for s in (1, -1))
        second = np.abs(np.array(plus) + np.array(minus) - 2 * g).max()
        if second > 1e-4 * np.abs(np.array(plus) - np.array(minus)).max():
            continue  # on the edge between two states
        smooth += 1
        assert np.allclose((np.array(minus) - plus).T / 2e-6, G, rtol=0, atol=1e-4 * np.abs(G).max() + 1e-9)
    assert smooth > 150


@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_impulse_is_admissible_and_what_is_stays(kind: int) -> None:
    rng = np.random.default_rng(2)
    for case in cases(kind, 100):
        found = nearest(case, 10 * rng.normal(size=3))
        most, room = (case["mu"] * (found[2] if kind == FRICTION else case["N"])), 1 + 1e-12
        if kind != LINE:
            assert np.hypot(*found[:2]) <= most * room
        if kind == SPIN:
            assert abs(found[2]) <= case["arm"] * case["N"]
        assert kind != FRICTION or found[2] >= 0.0
        assert np.allclose(nearest(case, found), found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_friction_adds_as_it_grows_is_the_derivative_of_the_law(kind: int) -> None:
    rng, h, grew = np.random.default_rng(3), 1e-6, 0
    for case in cases(kind):
        p, s = tuple(10 * rng.normal(size=3)), rng.uniform(0.1, 0.9)

        def at(share: float, case: Case = case, p: Any = p) -> np.ndarray:
            return nearest({**case, "mu": share * case["mu"], "arm": share * case["arm"]}, p)

        acts, full = (s * case["mu"], s * case["arm"]), (case["mu"], case["arm"])
        found = np.array(laws.growth(kind, p, acts, full, case["N"]))
        assert np.allclose(found, (at(s + h) - at(s - h)) / (2 * h), rtol=1e-6, atol=1e-7)
        grew += bool(found.any())
    assert (kind == LINE) == (grew == 0)


def row_cases(speed: bool) -> list[dict[str, float]]:
    """Numbers of rows."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):
        low, high = sorted(3 * rng.normal(size=2))
        low, high = (low, high) if rng.random() < 0.7 else (0.0, np.inf)
        R = 10 ** rng.uniform(-3, 1)
        most = abs(rng.normal()) if speed else np.inf
        case = {"R": R, "aim": rng.normal(), "low": low, "high": high, "speed": most}
        found.append({**case, "speed_R": R * 1e-2 if speed else 1.0, "u": 2 * rng.normal()})
    return found


@pytest.mark.parametrize("speed", [False, True])
def test_a_row_is_clamped_gives_way_at_its_largest_speed_and_has_its_tangent(speed: bool) -> None:
    for case in row_cases(speed):
        w, u = 0.3 * case["R"], case["u"]

        def p(g: float, u: float, case: dict = case, w: float = w) -> tuple[float, ...]:
            ends = (laws.tried(g, u, aim, w, case["speed_R"]) for aim in (case["speed"], -case["speed"]))
            return laws.tried(g, u, case["aim"], w, case["R"]), *ends

        def found(u: float, case: dict = case, p: Any = p) -> float:
            def off(g_: float) -> float:
                free, forward, back = p(g_, u)
                return float(g_ - laws.row_nearest(free, case["low"], case["high"], forward, back))

            return brentq(off, -1e5, 1e5, xtol=1e-13, rtol=1e-14)

        wanted = np.clip((case["aim"] - u) / case["R"], case["low"], case["high"])
        if speed:
            room = [max(0.0, (case["speed"] - sign * u) / case["speed_R"]) for sign in (1, -1)]
            wanted = min(max(wanted, -room[1]), room[0])
        g = found(u)
        assert g == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        free, forward, back = p(g, u)
        numbers = {name: case[name] for name in ("R", "aim", "low", "high", "speed", "speed_R")}
        const, G = laws.row_tangent(free, *numbers.values(), forward, back)
        assert const - G * u == pytest.approx(g, rel=1e-7, abs=1e-7 + 1e-9 * abs(const))
        plus, minus = found(u + 1e-6), found(u - 1e-6)
        if abs(plus + minus - 2 * g) < 1e-9 / case["R"]:
            assert (minus - plus) / 2e-6 == pytest.approx(G, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("dt", [2.5e-4, 4e-3])
def test_an_impact_takes_as_much_speed_as_one_that_is_followed(dt: float) -> None:
    """dv/dt = -w d (1 + v^2 / c^2) v in many steps of the law, and in one: no farther off than Euler's."""
    d, w, c = 300.0, 0.7, 0.02
    for speed in (0.01, 0.1, 1.0, 10.0):

        def after(steps: int, v: float = speed) -> float:
            h = dt / steps
            for _ in range(steps):
                more, _ = impact(d * (v / c) ** 2, w * h * d, w * h)
                v /= 1.0 + w * h * (d + more)
            return v

        true = 1.0 / np.sqrt(((1 / speed**2 + 1 / c**2) * np.exp(2 * w * d * dt)) - 1 / c**2)
        assert after(4000) == pytest.approx(true, rel=1e-3)
        assert after(1) == pytest.approx(true, rel=w * d * dt)


def test_the_damping_of_an_impact_has_the_slope_that_is_said() -> None:
    for more in (0.1, 10.0, 1e6):
        (one, _), (_, slope), (other, _) = (impact(more * s, 0.3, 1e-3) for s in (1 - 1e-6, 1, 1 + 1e-6))
        assert (other - one) / (2e-6 * more) == pytest.approx(slope, rel=1e-6)
