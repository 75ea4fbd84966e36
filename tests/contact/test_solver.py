"""The solver of a step on random trees with contacts, loops and rows, against what it is meant to find."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from robokit.contact import articulated, groups, linear, pattern, solver
from robokit.contact.fields import FRICTION, LINE, SPIN
from tests.contact.random_steps import (
    Arrays,
    bodies_jacobian,
    kernel,
    product_of_factors,
    random_problem,
    random_tree,
    rows_jacobian,
    solved,
)


def problem(seed: int, largest: int = 20, contacts: int = 12, loops: int = 3, rows: int = 8) -> Any:
    """A tree and a step of it; every other one has dofs that share a row."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(4, largest)), coupled=bool(seed % 2))
    counts = (int(rng.integers(0, n + 1)) for n in (contacts, loops, rows))
    return tree, random_problem(rng, tree, *counts)


def jacobian(tree: Arrays, x: Arrays) -> np.ndarray:
    """J of all constraints, then of all rows."""
    parts = [bodies_jacobian(tree, x, c) for c in range(x["n_of"][0])]
    return np.concatenate([*parts, rows_jacobian(x)])


def impulses(x: Arrays) -> np.ndarray:
    """g of all constraints, then of all rows."""
    return np.concatenate([x["c_g"][: x["n_of"][0]].ravel(), x["r_g"][: x["n_of"][1]]])


def unbalanced(tree: Arrays, x: Arrays) -> float:
    """Largest error of H y = b + J^T g, relative to the momentum."""
    momentum = tree["full_H"] @ x["y"]
    left = momentum - x["b"] - jacobian(tree, x).T @ impulses(x)
    return float(np.abs(left).max() / np.abs(momentum).max())


# ---- linear algebra ---------------------------------------------------------------------------------------


def _linear(x: Any) -> None:
    pattern.symbolic(x)
    linear.assemble(x, x.n_of[0], x.n_of[1])
    linear.factor(x)
    linear.back_substitute(x, x.d)


LINEAR = kernel("random_linear", _linear)


def with_slopes(rng: np.random.Generator, x: Arrays, skew: float) -> np.ndarray:
    """Random slopes of a step, with a part w x, w along the tangents; G of all constraints and rows."""
    n, rows = x["n_of"][:2]
    G = np.zeros((3 * n + rows,) * 2)
    for c in range(n):
        L = rng.normal(size=(3, 3))
        M = G[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] = L @ L.T * 10 ** rng.uniform(-2, 2)
        x["c_G"][c] = M[0, 0], M[0, 1], M[1, 1], M[0, 2], M[1, 2], M[2, 2], 0.0, 0.0
        if skew:
            v, w = x["c_G"][c, 6:] = skew * M[2, 2] * rng.normal(size=2)
            G[3 * c : 3 * c + 3, 3 * c : 3 * c + 3] += [[0.0, 0.0, w], [0.0, 0.0, -v], [-w, v, 0.0]]
    x["n_of"][4] = skew > 0.0
    x["r_G"][:rows] = rng.random(rows)
    G[3 * n :, 3 * n :] = np.diag(x["r_G"][:rows])
    return G


@pytest.mark.parametrize("skew", [0.0, 0.5])
def test_factors_of_random_trees_with_random_pairs_solve_the_dense_system(skew: float) -> None:
    for seed in range(30):
        tree, x = problem(seed, 25)
        rng = np.random.default_rng(seed)
        G = with_slopes(rng, x, skew)
        J = jacobian(tree, x)
        b = x["d"][:] = rng.normal(size=len(x["y"]))
        found = solved(x, LINEAR)
        A = tree["full_H"] + J.T @ G @ J
        assert np.abs(A @ found["d"] - b).max() <= 1e-9 * np.abs(A).max() * np.abs(found["d"]).max()
        near = np.abs(product_of_factors(found) - A) <= 1e-11 * np.abs(A).max()
        assert near.all(), "U D L = A, and nothing is outside of the pattern"


def tree_by_bodies(seed: int, contacts: int = 12, loops: int = 3, rows: int = 8) -> Any:
    """A single tree and a step of it that is solved by bodies."""
    rng = np.random.default_rng(seed)
    while True:
        tree = random_tree(rng, int(rng.integers(4, 25)), floating=0.0)
        if tree["wholes"][-1, 0] == 1 and len(tree["part_rows"]) == 1:
            break
    x = random_problem(rng, tree, contacts, loops, rows, by_bodies=True)
    for name in ("A", "A_skew", "Dinv", "K", "worth", "p_and_V"):
        x[name][:] = np.nan  # as memory may be
    return tree, x


def _by_bodies(x: Any) -> None:
    articulated.couple(x)
    articulated.assemble(x, x.n_of[0], x.n_of[1])
    articulated.factor(x)
    articulated.back_substitute(x, x.d)


BY_BODIES = kernel("random_by_bodies", _by_bodies)


@pytest.mark.parametrize("skew", [0.0, 0.5])
def test_articulated_inertias_of_random_trees_solve_the_dense_system(skew: float) -> None:
    """Joints with up to six dofs, and none; pairs on branches and in line. D are the pivots of A."""
    for seed in range(60):
        tree, x = tree_by_bodies(seed)
        rng = np.random.default_rng(seed)
        G = with_slopes(rng, x, skew)
        J = jacobian(tree, x)
        b = x["d"][:] = rng.normal(size=len(x["y"]))
        found = solved(x, BY_BODIES)
        A = tree["full_H"] + J.T @ G @ J
        assert np.abs(A @ found["d"] - b).max() <= 1e-9 * np.abs(A).max() * np.abs(found["d"]).max()
        minors = [np.linalg.det(A[k:, k:]) for k in range(len(b))] + [1.0]  # those that are left of A
        assert found["Dinv"][: len(b)] == pytest.approx(np.divide(minors[1:], minors[:-1]), rel=1e-6)


def test_couplings_that_have_no_room_are_written_nowhere() -> None:
    """Loops are closed before a step asks for more room."""
    for seed in range(10):
        _, x = tree_by_bodies(seed, contacts=24)
        room, whole = 6 * len(x["parent"]), {}
        for name in ("A", "A_skew", "arcs", "pattern"):
            whole[name] = np.full((9 * room, *x[name].shape[1:]), 7, x[name].dtype)
            x[name] = whole[name][:room]
        filled = solved(x, BY_BODIES)["filled"][0]
        assert filled > room or seed
        assert all((memory[room:] == 7).all() for memory in whole.values())


def test_steps_by_bodies_are_those_by_the_matrix() -> None:
    for seed in range(60):
        tree, x = tree_by_bodies(seed)
        found = solved(x)
        assert found["n_of"][0] and found["solved"][2] == 0 and unbalanced(tree, found) <= 2e-8
        other = solved(x | {"orders": np.array([0])})  # as derivatives take them
        assert found["solved"][0] == other["solved"][0]
        assert found["y"] == pytest.approx(other["y"], rel=1e-8, abs=1e-8 * np.abs(other["y"]).max())


def test_a_heap_of_loose_bodies_is_eliminated_in_an_order_that_makes_less_fill() -> None:
    rng, n = np.random.default_rng(5), 60
    for _ in range(5):
        tree = random_tree(rng, 31, floating=1.0)
        x = random_problem(rng, tree, n)
        x["c_bodies"][:n] = np.sort([rng.choice(30, 2, replace=False) + 1 for _ in range(n)], axis=1)
        x["c_G"][:n, [0, 2, 5]] = rng.uniform(1.0, 2.0, (n, 3))
        b = x["d"][:] = rng.normal(size=len(x["y"]))
        J, G = jacobian(tree, x)[: 3 * n], np.diag(x["c_G"][:n, [0, 2, 5]].ravel())
        A = tree["full_H"] + J.T @ G @ J
        entries = []
        for x["orders"][0] in (0, 1):
            found = solved(x, LINEAR)
            assert len(set(found["place"])) == len(b) and found["place"].max() < len(found["Dinv"])
            assert np.abs(A @ found["d"] - b).max() <= 1e-9 * np.abs(A).max() * np.abs(found["d"]).max()
            entries.append(found["pattern_length"].sum())
        assert entries[1] < 0.8 * entries[0]


def test_contacts_with_the_world_make_no_fill() -> None:
    rng = np.random.default_rng(3)
    tree = random_tree(rng, 15)
    x = random_problem(rng, tree, 9)
    x["c_bodies"][:, 0] = 0
    found = solved(x, LINEAR)
    x["n_of"][:] = 0
    assert (found["pattern_length"] == solved(x, LINEAR)["pattern_length"]).all()


# ---- the solution -----------------------------------------------------------------------------------------


def admissible(x: Arrays, found: Arrays) -> bool:
    """Whether all impulses of contacts and rows are, to rounding."""
    friction = [c for c in range(x["n_of"][0]) if x["c_kind"][c] == FRICTION]
    if not all(inside_cone(x["c_mu"][c], found["c_g"][c]) for c in friction):
        return False
    rows = slice(0, x["n_of"][1])
    g, low, high = found["r_g"][rows], x["r_low"][rows], x["r_high"][rows]
    return bool(((np.minimum(low, 0.0) <= g) & (g <= np.maximum(high, 0.0))).all())


def inside_cone(mu: float, g: np.ndarray) -> bool:
    return bool(g[2] >= 0.0 and np.hypot(g[0], g[1]) <= mu * g[2] * (1.0 + 1e-12))


def test_every_random_step_settles_and_keeps_the_momentum(capsys: pytest.CaptureFixture[str]) -> None:
    """Harder than any robot: friction up to 1.5, tangents as stiff as normals. One follows a path."""
    iterations: Counter[int] = Counter()
    left, paths = [], 0
    for seed in range(150):
        tree, x = problem(seed)
        found = solved(x)
        assert found["solved"][3] == 0 and (found["solved"][2] > 0) == (
            found["solved"][1] > x["tolerance"][0]
        )
        assert found["solved"][2] == 0
        left.append(unbalanced(tree, found))
        assert admissible(x, found)
        iterations[int(found["solved"][0])] += 1
        paths += found["less"][2] > 0.0
    assert paths <= 1
    with capsys.disabled():
        print("\niterations:", dict(sorted(iterations.items())))
    taken = np.array(list(iterations.elements()))
    assert np.median(taken) <= 6 and np.quantile(taken, 0.98) <= 20 and taken.max() <= 200  # 4, 18, 187 found
    assert np.quantile(left, 0.99) <= 1e-9 and max(left) <= 2e-8


def test_newtons_method_settles_most_heaps_of_hundreds_of_forces() -> None:
    """Some forces settle later than others. With 30 iterations in all, 7 of 8 followed paths, now 3.

    In a heap of 666 balls one such path had thousands of points.
    """
    paths, iterations = 0, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 41, floating=1.0)
        x = random_problem(rng, tree, 120)
        found = solved(x)
        assert found["solved"][2] == 0 and unbalanced(tree, found) <= 1e-12 and admissible(x, found)
        paths += found["less"][2] > 0.0
        iterations.append(found["solved"][0])
    assert paths <= 4 and np.mean(iterations) <= 85 and max(iterations) <= 150  # 3, 67, 116 found


def test_where_a_path_does_not_get_to_its_end_another_one_does() -> None:
    """One of 6,000 random steps whose path from a tenth of friction took more iterations than there are."""
    tree, x = problem(1403)
    found = solved(x)
    assert found["solved"][2] == 0 and unbalanced(tree, found) <= 2e-8 and admissible(x, found)


def _direction(x: Any) -> None:
    """The direction after a third of the first, and the share of it where a force changes its state."""
    pattern.symbolic(x)
    solver.begin_solution(x)
    solver.linearise(x)
    solver.direction(x)
    solver.go(x, 0.3)
    solver.linearise(x)
    solver.direction(x)
    x.solved[0] = solver.first_change(x, 1.0)


DIRECTION = kernel("random_direction", _direction)


def states(x: Arrays, share: float) -> list[bool]:
    """What each force does at a share of a direction: touches, slips, turns; is at one of its bounds."""

    def impulse(c: int) -> np.ndarray:
        return x["c_g"][c] + share * x["c_expected"][c]

    found = []
    for c in range(x["n_of"][0]):
        kind, w, (R_t, R_n) = x["c_kind"][c], x["c_w"][c], x["c_R"][c]
        p = w * impulse(c) + x["c_aim"][c] - x["c_u"][c] - share * x["c_du"][c]
        p /= w + np.array([R_t, R_t, R_n])
        N = impulse(x["c_of"][c])[2] if kind == SPIN else p[2]
        if kind in (FRICTION, SPIN):
            found += [N > 0.0, N > 0.0 and np.hypot(*p[:2]) > x["c_mu"][c] * N]
        if kind == SPIN:
            found += [N > 0.0 and s * p[2] > x["c_arm"][c] * N for s in (1.0, -1.0)]
    for i in range(x["n_of"][1]):
        j, g = x["r_row"][i], x["r_g"][i] + share * x["r_expected"][i]
        p = x["r_w"][i] * g + x["r_aim"][i] - x["r_gain"][i] * (x["y"][j] + share * x["d"][j])
        p /= x["r_w"][i] + x["r_R"][i]
        found += [bool(p < x["r_low"][i]), bool(p > x["r_high"][i])]
    return [bool(one) for one in found]


def test_a_direction_changes_no_state_before_the_first_change_and_one_there() -> None:
    """Open contacts have no friction that could end: searches came to a stand at where it would have."""
    seen = 0
    for seed in range(200):
        found = solved(problem(seed)[1], DIRECTION)
        share = found["solved"][0]
        if 1e-6 < share < 1.0:
            seen += 1
            here = states(found, 1e-8)
            assert states(found, share * (1.0 - 2e-6) - 2e-9) == here, seed
            assert states(found, share) != here, seed
    assert seen > 50


def test_plain_python_finds_the_same() -> None:
    for seed in range(6):
        _, x = problem(seed, 6, 5)
        one, other = solved(x, engine="python"), solved(x)
        assert one["solved"][0] == other["solved"][0]
        assert np.allclose(one["y"], other["y"], rtol=0, atol=1e-9 * np.abs(one["y"]).max())


def test_what_memory_held_before_a_step_changes_no_bit() -> None:
    """Searches took bounds of friction from where only paths write them."""
    problems = [problem(seed)[1] for seed in (*range(40), 102)]  # of the last the solution is followed
    for x in problems[::2]:
        if np.isfinite(x["c_R"]).all():  # then its loops are held
            x["n_of"][3] = (x["c_kind"] == LINE).sum()
    given = ("composite", "c_last", "V")
    own = [
        name
        for name, a in problems[0].items()
        if a.dtype.kind == "f" and name not in given and not any(x[name].any() for x in problems)
    ]
    assert {"c_full", "c_du", "c_G", "along", "less", "d", "Jg"} <= set(own)
    for x in problems:
        one = solved(x)
        other = solved({**x, **{name: np.full_like(x[name], np.nan) for name in own}})
        assert np.array_equal(one["y"], other["y"]) and np.array_equal(one["solved"], other["solved"])


@pytest.mark.slow
def test_a_reproducible_kernel_has_the_bits_of_plain_python() -> None:
    run = kernel(
        "random_solve_reproducible",
        lambda x: (pattern.symbolic(x), groups.connect(x), solver.solve(x)),
        reproducible=True,
    )
    for seed in range(4):
        _, x = problem(seed, 7, 6)
        one, other = solved(x, run, engine="python"), solved(x, run)
        assert all(np.array_equal(one[name], other[name]) for name in ("y", "c_g", "r_g", "c_u", "solved"))


def gaps(x: Arrays, c: int, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """g of a contact, and R g + u - aim + shift: both in cones that are dual to each other."""
    R = np.array([x["c_R"][c, 0]] * 2 + [x["c_R"][c, 1]])
    if np.isinf(R[0]):  # free
        assert (x["c_g"][c][:2] == 0).all()
        return x["c_g"][c], np.array([0, 0, R[2] * x["c_g"][c, 2] + u[2] - x["c_aim"][c, 2]])
    return x["c_g"][c], R * x["c_g"][c] + u - x["c_aim"][c] + np.array([0, 0, shift(x, c, u)])


def shift(x: Arrays, c: int, u: np.ndarray) -> float:
    """De Saxce's of a contact: mu times the slip beyond what its compliance gives."""
    if x["c_kind"][c] != FRICTION:
        return 0.0
    mu, (R_t, R_n), v = x["c_mu"][c], x["c_R"][c], u - x["c_aim"][c]
    return float(mu * max(0.0, np.hypot(*v[:2]) - mu * R_t * max(0.0, -v[2] / R_n)))


def test_impulses_and_velocities_are_complementary() -> None:
    """The cones' conditions, which have one solution: g in the cone, w in the dual one, g.w = 0."""
    for seed in range(50):
        tree, x = problem(seed)
        x["tolerance"][:] = 1e-10
        found = solved(x)
        assert found["solved"][2] == 0
        scale = np.abs(found["c_g"]).max(initial=1e-9)
        for c in range(x["n_of"][0]):
            u = bodies_jacobian(tree, found, c) @ found["y"]
            assert np.allclose(u, found["c_u"][c], rtol=0, atol=1e-9 * (1 + np.abs(u).max()))
            g, w = gaps(found, c, u)
            size, speed = np.abs(g).max() + 1e-6 * scale, np.abs(w).max() + np.abs(u).max() + 1e-9
            if x["c_kind"][c] == FRICTION:
                mu = x["c_mu"][c]
                assert g[2] >= -1e-7 * size and np.hypot(*g[:2]) <= mu * g[2] + 1e-7 * size
                assert mu * np.hypot(*w[:2]) <= w[2] + 1e-7 * speed
                assert abs(g @ w) <= 1e-7 * size * speed
            elif x["c_kind"][c] == LINE:
                assert np.abs(w).max() <= 1e-7 * speed
        for i in range(x["n_of"][1]):
            g, u = found["r_g"][i], x["r_gain"][i] * found["y"][x["r_row"][i]]
            if np.isinf(x["r_speed"][i]):
                wanted = np.clip((x["r_aim"][i] - u) / x["r_R"][i], x["r_low"][i], x["r_high"][i])
                room = 1e-7 * (abs(u) + abs(x["r_aim"][i])) / x["r_R"][i]
                assert abs(g - wanted) <= room + 1e-9 * scale


def test_a_general_minimiser_finds_the_same_impulses() -> None:
    """The dual problem with the last shift: minimise 1/2 g.(J H^-1 J^T + R) g + g.(J y* - aim) over cones."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, 7)
        x = random_problem(rng, tree, 4)
        x["c_kind"][4:] = FRICTION
        x["n_of"][0] = 4
        x["c_mu"][:4] = 0.7
        x["tolerance"][:] = 1e-10
        found = solved(x)
        J, H = jacobian(tree, x), tree["full_H"]
        shifts = np.array([[0, 0, shift(found, c, found["c_u"][c])] for c in range(4)])
        R = np.stack([x["c_R"][:4, 0], x["c_R"][:4, 0], x["c_R"][:4, 1]], 1)
        W = J @ np.linalg.solve(H, J.T) + np.diag(R.ravel())
        start = J @ np.linalg.solve(H, found["b"]) + (shifts - x["c_aim"][:4]).ravel()
        result = minimize(
            lambda g, W=W, start=start: 0.5 * g @ W @ g + g @ start,
            np.tile([0.0, 0.0, 1.0], 4),
            jac=lambda g, W=W, start=start: W @ g + start,
            constraints=[
                {"type": "ineq", "fun": lambda g, k=k: 0.7 * g[3 * k + 2] - np.hypot(g[3 * k], g[3 * k + 1])}
                for k in range(4)
            ],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        assert np.allclose(result.x, found["c_g"][:4].ravel(), rtol=0, atol=2e-4 * np.abs(result.x).max())


# ---- steps that do not settle -----------------------------------------------------------------------------


def test_a_step_that_does_not_settle_is_admissible_and_takes_energy() -> None:
    """At a tolerance that nothing reaches the balance of momentum is exact."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, int(rng.integers(4, 15)), coupled=bool(seed % 2))
        x = random_problem(rng, tree, int(rng.integers(1, 12)))
        x["c_aim"][:], x["tolerance"][:] = 0.0, -1.0
        found = solved(x)
        assert found["solved"][0] > solver.CAP + 2 * solver.CAP_LATER and found["solved"][2] == 1
        assert unbalanced(tree, found) <= 1e-12
        for c in range(x["n_of"][0]):
            g, kind = found["c_g"][c], x["c_kind"][c]
            if kind == FRICTION:
                assert g[2] >= 0 and np.hypot(*g[:2]) <= x["c_mu"][c] * g[2] * (1 + 1e-12)
            if kind == SPIN:
                N = found["c_g"][x["c_of"][c], 2]
                assert np.hypot(*g[:2]) <= x["c_mu"][c] * N + 1e-12 and abs(g[2]) <= x["c_arm"][c] * N + 1e-12
        H, free = tree["full_H"], np.linalg.solve(tree["full_H"], found["b"])
        gain = found["y"] @ H @ found["y"] - free @ H @ free
        assert gain <= 1e-9 * (free @ H @ free)


def test_where_nothing_acts_rounding_is_enough() -> None:
    tree, x = problem(2)
    x["n_of"][:], x["tau"][:], x["gravity"] = 0, 0.0, np.array([0.0, 1e-13, 0.0])
    x["guess"] = 1.1 * x["v0"]
    found = solved(x)
    assert found["solved"][0] == 1 and found["solved"][2] == 0
    assert np.allclose(found["y"], x["v0"], rtol=0, atol=1e-11 * np.abs(x["v0"]).max())
    assert unbalanced(tree, found) <= 1e-12


def test_what_is_not_finite_is_said() -> None:
    _, x = problem(1)
    x["tau"][0] = np.nan
    found = solved(x)
    assert found["solved"][3] == 1 and np.isnan(found["y"]).all()


# ---- units ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mass, time", [(2.0**-20, 1.0), (2.0**30, 1.0), (1.0, 2.0**-7), (2.0**-20, 2.0**5)])
def test_units_of_mass_and_time_change_no_bit(mass: float, time: float) -> None:
    """Powers of two are exact."""
    impulse = mass / time
    factors = {"tau": impulse / time, "v0": 1 / time, "guess": 1 / time, "c_aim": 1 / time, "r_aim": 1 / time}
    factors |= {"c_w": 1 / mass, "r_w": 1 / mass}
    factors |= {"H": mass, "c_R": 1 / mass, "r_R": 1 / mass, "r_speed_R": 1 / mass, "r_speed": 1 / time}
    factors |= {"r_low": impulse, "r_high": impulse, "dt": time, "span": time}
    for seed in range(20):
        _, x = problem(seed)
        other = x | {name: x[name] * factor for name, factor in factors.items()}
        other["gravity"] = x["gravity"] * [impulse / time, mass, 1.0]
        one, other = solved(x), solved(other)
        assert one["solved"].tolist() == other["solved"].tolist()
        assert (one["y"] == other["y"] * time).all()
        assert (impulses(one) == impulses(other) / impulse).all()
