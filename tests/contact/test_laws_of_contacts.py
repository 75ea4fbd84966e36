"""Laws of contacts and rows: each is the nearest admissible impulse, with slopes that are its derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from robokit.contact import laws
from robokit.contact.constraints.contacts import impact
from robokit.contact.fields import FRICTION, LINE, SPIN

KINDS = [FRICTION, LINE, SPIN]
Case = dict[str, Any]


def cases(kind: int, count: int = 300) -> list[Case]:
    """Numbers of a law over many orders of magnitude, so that all of its branches are met."""
    rng = np.random.default_rng(kind)
    found = []
    for _ in range(count):
        R_n = 10 ** rng.uniform(-4, 2)
        R = R_n * 10 ** rng.uniform(-3, 1), R_n
        mu, arm, s = 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-2, 0.5), abs(rng.normal())
        u, aim = rng.normal(size=3), 0.3 * rng.normal(size=3)
        u[2] *= 10 ** rng.uniform(-1, 1.5)
        found.append({"kind": kind, "u": u, "R": R, "aim": aim, "mu": mu, "arm": arm, "s": s})
    return found


def law(case: Case, u: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Impulse and slopes as a matrix."""
    u = case["u"] if u is None else u
    g, G = laws.law(**{**case, "u": tuple(map(float, u)), "aim": tuple(map(float, case["aim"]))})
    a, b, d, e, f, n = G
    return np.array(g), np.array([[a, b, e], [b, d, f], [e, f, n]])


def compliance(case: Case) -> np.ndarray:
    """R of the three rows."""
    return np.array([case["R"][0], case["R"][0], case["R"][1]])


def inside(case: Case, g: np.ndarray, room: float = 1e-12) -> bool:
    """Whether an impulse is admissible."""
    tangent, size = np.hypot(g[0], g[1]), room * (np.abs(g).max() + 1e-300)
    if case["kind"] == FRICTION:
        return bool(g[2] >= -size and tangent <= case["mu"] * g[2] + size)
    if case["kind"] == SPIN:
        return bool(tangent <= case["mu"] * case["s"] + size and abs(g[2]) <= case["arm"] * case["s"] + size)
    return True


def admissible(case: Case, rng: np.random.Generator, size: float) -> np.ndarray:
    """Some admissible impulse."""
    if case["kind"] == LINE:
        return size * rng.normal(size=3)
    angle, share = rng.uniform(0, 2 * np.pi), rng.random()
    n = size * rng.random() if case["kind"] == FRICTION else rng.uniform(-1, 1) * case["arm"] * case["s"]
    most = case["mu"] * (n if case["kind"] == FRICTION else case["s"])
    return np.array([share * most * np.cos(angle), share * most * np.sin(angle), n])


@pytest.mark.parametrize("kind", KINDS)
def test_the_impulse_is_admissible_and_none_is_nearer(kind: int) -> None:
    rng = np.random.default_rng(1)
    for case in cases(kind):
        g, _ = law(case)
        assert inside(case, g)
        shift = np.array([0, 0, case["s"] if kind == FRICTION else 0.0])
        # The gradient of 1/2 h.R h + h.(u + s - aim) at h = g points away from no admissible impulse.
        gradient = compliance(case) * g + case["u"] + shift - case["aim"]
        size = compliance(case) * np.abs(g) + np.abs(case["u"]) + shift + np.abs(case["aim"])
        for _ in range(20):
            other = admissible(case, rng, 2 * np.abs(g).max() + 0.1)
            room = 1e-12 * size @ (np.abs(g) + np.abs(other))
            assert gradient @ (other - g) >= -room


@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_the_derivative_symmetric_and_never_negative(kind: int) -> None:
    smooth = 0
    for case in cases(kind):
        g, G = law(case)
        assert np.linalg.eigvalsh(G).min() >= -1e-12 * np.abs(G).max()
        h = 1e-6 * np.eye(3)
        ends = [(law(case, case["u"] + e), law(case, case["u"] - e)) for e in h]
        if any(np.abs(plus[1] - minus[1]).max() > 1e-3 * np.abs(G).max() for plus, minus in ends):
            continue  # on the edge between two branches
        smooth += 1
        differences = np.array([(minus[0] - plus[0]) / 2e-6 for plus, minus in ends]).T
        size = np.abs(G).max() + 1e-6 * np.abs(g).max()
        assert np.allclose(differences, G, rtol=0, atol=1e-5 * size + 1e-9)
    assert smooth > 200


def test_slopes_of_friction_with_another_expected_impulse_are_never_negative() -> None:
    rng, turned = np.random.default_rng(7), 0
    for case in cases(FRICTION):
        g, G = law(case)
        _, same = law({**case, "expected": tuple(g)})
        assert np.allclose(same, G, rtol=0, atol=1e-12 * np.abs(G).max())
        for expected in (10 * np.abs(g).max() * rng.normal(size=3), -g, np.zeros(3)):
            other, A = law({**case, "expected": tuple(expected)})
            assert np.array_equal(other, g)
            assert np.linalg.eigvalsh(A).min() >= -1e-12 * np.abs(A).max()
            turned += not np.allclose(A, G)
    assert turned > 20


def test_with_its_own_shift_friction_is_coulombs() -> None:
    """g_n = N0, |g_t| = mu N0 or the spring's, at any velocity; the shift is mu times the plastic slip."""
    slid = stuck = 0
    for case in cases(FRICTION):
        u, aim, (R_t, R_n), mu = case["u"], case["aim"], case["R"], case["mu"]
        s = laws.shift(u, R_t, R_n, aim, mu)
        g, _ = law({**case, "s": s})
        N, slip = max(0.0, -(u[2] - aim[2]) / R_n), np.hypot(*(u - aim)[:2])
        assert g[2] == pytest.approx(N, rel=1e-10, abs=1e-12)
        assert np.hypot(g[0], g[1]) == pytest.approx(min(slip / R_t, mu * N), rel=1e-9, abs=1e-12)
        assert s == pytest.approx(mu * max(0.0, slip - mu * R_t * N), abs=1e-12)
        slid, stuck = slid + (0 < mu * N < slip / R_t), stuck + (s == 0)
    assert slid > 20 and stuck > 20


def test_slopes_of_coulombs_law_are_its_derivative() -> None:
    """With the shift of each velocity; where it slides not symmetric."""
    slid = 0
    for case in cases(FRICTION):
        numbers = *case["R"], case["aim"], case["mu"]

        def impulse(u: np.ndarray, case: dict = case, numbers: tuple = numbers) -> np.ndarray:
            return law({**case, "u": u, "s": laws.shift(u, *numbers)})[0]

        def branch(u: np.ndarray, numbers: tuple = numbers, case: dict = case) -> tuple[bool, bool]:
            return laws.shift(u, *numbers) > 0.0, u[2] < case["aim"][2]

        u = case["u"]
        _, G = law({**case, "s": laws.shift(u, *numbers)})
        six = [G[i] for i in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
        a, b, d, e, f, n, v, w = laws.of_coulomb(six, laws.by_shift(u, *numbers))
        found = np.array([[a, b, e + w], [b, d, f - v], [e - w, f + v, n]])
        h = 1e-6 * np.eye(3)
        if any(branch(u + x) != branch(u - x) for x in h):
            continue
        wanted = np.array([(impulse(u - x) - impulse(u + x)) / 2e-6 for x in h]).T
        size = np.abs(wanted).max() + 1e-6 * np.abs(impulse(u)).max()
        assert np.allclose(found, wanted, rtol=0, atol=1e-4 * size + 1e-9)
        slid += abs(v) + abs(w) > 0
    assert slid > 20


def test_without_friction_nothing_holds_a_contact_at_rest() -> None:
    case = {**cases(FRICTION, 1)[0], "mu": 0.0, "s": 0.0, "u": np.array([0.0, 0.0, -1.0]), "aim": np.zeros(3)}
    g, G = law(case)
    assert g == pytest.approx([0, 0, 1 / case["R"][1]])
    assert pytest.approx(np.diag([0, 0, 1 / case["R"][1]])) == G


def test_a_line_of_infinite_compliance_is_free() -> None:
    g, G = law({**cases(LINE, 1)[0], "R": (np.inf, 2.0), "u": np.array([3.0, 4.0, 5.0]), "aim": np.zeros(3)})
    assert g.tolist() == [0, 0, -2.5] and G.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0.5]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_projection_is_admissible_and_changes_nothing_that_is(kind: int) -> None:
    rng = np.random.default_rng(2)
    for case in cases(kind, 100):
        numbers = case["kind"], case["mu"], case["arm"], case["s"]
        for g in (10 * rng.normal(size=3), -np.ones(3), np.zeros(3)):
            found = np.array(laws.project(numbers[0], tuple(g), *numbers[1:]))
            assert inside(case, found)
        g = admissible(case, rng, 3.0)
        assert np.allclose(laws.project(numbers[0], tuple(g), *numbers[1:]), g, rtol=1e-12)


def row_cases(speed: bool) -> list[dict[str, float]]:
    """Numbers of rows."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(400):
        low, high = sorted(3 * rng.normal(size=2))
        low, high = (low, high) if rng.random() < 0.7 else (0.0, np.inf)
        R = 10 ** rng.uniform(-3, 1)
        most = abs(rng.normal()) if speed else np.inf
        case = {"u": 2 * rng.normal(), "R": R, "aim": rng.normal(), "low": low, "high": high, "speed": most}
        found.append({**case, "speed_R": R * 1e-2 if speed else 1.0})
    return found


def test_a_row_is_clamped_and_gives_way_at_its_largest_speed() -> None:
    for case in row_cases(False):
        g, _ = laws.row(**case)
        assert g == pytest.approx(np.clip(-(case["u"] - case["aim"]) / case["R"], case["low"], case["high"]))
    for case in row_cases(True):
        g, _ = laws.row(**case)
        free, _ = laws.row(**{**case, "speed": np.inf})
        assert abs(g) <= abs(free) and g * free >= 0
        if np.sign(free) * case["u"] >= case["speed"]:
            assert g == 0
        if np.sign(free) * case["u"] <= case["speed"] - case["speed_R"] * abs(free):
            assert g == free


@pytest.mark.parametrize("speed", [False, True])
def test_a_row_never_grows_with_its_velocity_and_its_slope_is_the_derivative(speed: bool) -> None:
    law_of: Callable[..., Any] = laws.row
    for case in row_cases(speed):
        values = [law_of(**{**case, "u": u})[0] for u in np.linspace(-4, 4, 200)]
        # A row that may only brake has its bounds on one side of 0 and jumps nowhere.
        assert np.diff(values).max() <= 1e-9 * max(1.0, np.abs(values).max())
        plus, minus = (law_of(**{**case, "u": case["u"] + h}) for h in (1e-6, -1e-6))
        if plus[1] == minus[1]:
            assert (minus[0] - plus[0]) / 2e-6 == pytest.approx(law_of(**case)[1], rel=1e-5, abs=1e-6)


def test_at_a_bound_a_row_has_the_slope_of_the_chord_to_the_impulse_that_was_expected() -> None:
    chords = 0
    for case in row_cases(False):
        g, G = laws.row(**case)
        assert laws.row(**case, expected=g) == (g, G)
        low, high = case["low"], min(case["high"], 5.0)
        expected = float(np.random.default_rng(3).uniform(low, high))
        where = case["aim"] - case["R"] * expected  # there the law gives it
        found = laws.row(**case, expected=expected)
        assert found[0] == g and found[1] >= 0.0
        if G == 0.0:
            assert found[1] == pytest.approx((g - expected) / (where - case["u"]), rel=1e-9)
            chords += found[1] > 0.0
    assert chords > 50


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
