"""Operation counts: a robot counted by hand, functions on scalars that count, Featherstone's formulas."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from ladder import OWN, ROBOTS, pendulum, random_tree

import robokit as rk
from robokit.algorithms.ltdl import ltdl, ltdl_solve
from robokit.dynamics.build import example_key, kernel
from robokit.dynamics.cost import GROWTH, OPERATIONS
from robokit.dynamics.table import KERNELS
from robokit.engine import maker
from robokit.engine.trace.ops import CONST
from robokit.model.tree import dof_depths, inertia_pattern

FORMULA = ("mul", "add", "div")
# As many additions as a rod on a hinge and a sled on a rail need with pencil and paper:
# tau = I a + m g l sin q, T = ((I v) v) / 2, p_G = (-l sin q, 0, -l cos q); tau = m a + m g.
HINGE = {
    "forward_kinematics": (0, 0, 0, 0, 1),
    "rnea": (2, 1, 0, 0, 1),
    "bias_forces": (1, 0, 0, 0, 1),
    "gravity_forces": (1, 0, 0, 0, 1),
    "crba": (0, 0, 0, 0, 0),
    "aba": (2, 1, 0, 0, 1),
    "forward_dynamics": (2, 1, 0, 0, 1),
    "center_of_mass": (2, 0, 0, 0, 1),
    "kinetic_energy": (3, 0, 0, 0, 0),
    "potential_energy": (1, 0, 0, 0, 1),
}
RAIL = {
    "forward_kinematics": (0, 0, 0, 0, 0),
    "rnea": (1, 1, 0, 0, 0),
    "gravity_forces": (0, 0, 0, 0, 0),
    "aba": (1, 1, 0, 0, 0),
    "centroidal_momentum": (1, 0, 0, 0, 0),
}


def sled() -> rk.Robot:
    b = rk.ModelBuilder("sled")
    b.link("rail").link("sled", 2.0, (0, 0, 0), np.eye(3))
    return b.joint("lift", "prismatic", "rail", "sled", axis=(0, 0, 1)).build()


class Counting:
    """A number that counts what is done with it."""

    def __init__(self, value: float, seen: Counter) -> None:
        self.value, self.seen = value, seen

    def _made(self, name: str, value: float) -> Counting:
        self.seen[name] += 1
        return Counting(value, self.seen)

    def __mul__(self, other: Counting) -> Counting:
        return self._made("mul", self.value * other.value)

    def __sub__(self, other: Counting) -> Counting:
        return self._made("add", self.value - other.value)

    def __truediv__(self, other: Counting) -> Counting:
        return self._made("div", self.value / other.value)

    def __rtruediv__(self, other: float) -> Counting:
        return self._made("div", other / self.value)


def factor_and_solve_counts(parent) -> tuple[Counter, Counter]:
    """What the plain functions of the factorisation and of the solve does on the tree."""
    n = len(parent)
    factored, solved = Counter(), Counter()
    pattern = inertia_pattern(parent)
    H = [
        [Counting(n + 1.0 if i == j else 0.5, factored) if pattern[i, j] else 0.0 for j in range(n)]
        for i in range(n)
    ]
    ltdl(parent, H)
    other = [[Counting(1.0, solved) for _ in range(n)] for _ in range(n)]
    ltdl_solve(parent, other, other[0] if n else [], [Counting(1.0, solved) for _ in range(n)])
    return factored, solved


@pytest.mark.parametrize(("robot", "by_hand"), [(pendulum(), HINGE), (sled(), RAIL)], ids=["hinge", "rail"])
def test_a_joint_costs_what_pencil_and_paper_need(robot, by_hand):
    cost = robot.cost()
    assert {name: tuple(getattr(cost[name], o) for o in OPERATIONS) for name in by_hand} == by_hand
    assert cost["rnea"].flops == sum(by_hand["rnea"][:4])


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", [name for name in OWN if name != "chain"])
def test_factorisation_costs_what_featherstones_formulas_say(name, base, monkeypatch):
    only = {name: GROWTH[name] for name in ("ltdl", "ltdl_solve")}
    monkeypatch.setattr("robokit.dynamics.cost.GROWTH", only)
    robot = rk.load_urdf(ROBOTS / f"{name}.urdf", base=base)
    cost, depth = robot.cost(), dof_depths(robot.tree.dof_parent)
    counted = factor_and_solve_counts(robot.tree.dof_parent)
    for row, plain in zip((cost["ltdl"], cost["ltdl_solve"]), counted, strict=True):
        assert row.formula == {o: getattr(row, o) for o in FORMULA} and not row.note
        # The function inverts the pivot of every row; the graph drops those that nothing needs.
        unused = {"div": int((depth == 1).sum())} if row is cost["ltdl"] else {}
        assert row.formula == {o: plain[o] - unused.get(o, 0) for o in FORMULA}
    # In Featherstone's words, with d the number of ancestors: d quotients and d (d + 1) / 2 updates a row.
    ancestors = depth - 1
    mul, div = cost["ltdl"].mul, cost["ltdl"].div
    assert mul == (ancestors * (ancestors + 3) // 2).sum() and div == (ancestors > 0).sum()
    assert cost["ltdl"].add == cost.D2 == (ancestors * (ancestors + 1) // 2).sum()


def test_a_long_chain_factorises_at_the_formulas_cost(monkeypatch):
    monkeypatch.setattr(
        "robokit.dynamics.cost.GROWTH", {name: GROWTH[name] for name in ("ltdl", "ltdl_solve")}
    )
    robot = rk.load_urdf(ROBOTS / "chain.urdf", base="fixed")
    cost = robot.cost()
    factored, solved = factor_and_solve_counts(robot.tree.dof_parent)
    assert cost["ltdl"].formula == {o: factored[o] - (o == "div") for o in FORMULA}
    assert cost["ltdl_solve"].formula == {o: solved[o] for o in FORMULA}
    for row in (cost["ltdl"], cost["ltdl_solve"]):
        assert row.formula == {o: getattr(row, o) for o in FORMULA}


def test_random_trees_factorise_at_the_formulas_cost(monkeypatch):
    monkeypatch.setattr("robokit.dynamics.cost.GROWTH", {"ltdl": GROWTH["ltdl"]})
    for seed in range(3):
        row = random_tree(seed, "floating").cost()["ltdl"]
        assert row.formula == {o: getattr(row, o) for o in FORMULA}


def test_costs_grow_as_the_sources_state():
    def flops(name: str, n: int) -> int:
        b = rk.ModelBuilder("chain")
        b.link("0")
        for i in range(n):
            b.link(f"{i + 1}", 1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]))
            placement = rk.Placement(position=(0.2, 0.1, 0.3))
            b.joint(f"j{i}", "revolute", f"{i}", f"{i + 1}", placement, axis=(1, 1, i % 2))
        return kernel(b.build(), name).flops

    degree = {"O(n)": 1, "O(n d)": 2, "O(n d^2)": 3}
    for name in ("rnea", "aba", "crba", "ltdl"):
        # Differences as often as the degree says are constant on a chain: a polynomial in n, no more.
        values = np.array([flops(name, n) for n in range(8, 8 + 2 * (degree[GROWTH[name]] + 2), 2)])
        assert (np.diff(values, degree[GROWTH[name]] + 1) == 0).all() and np.diff(values).min() > 0, name


def test_what_cannot_be_counted_is_said_in_words(monkeypatch):
    monkeypatch.setattr(maker, "NODE_BUDGET", 300)
    cost = rk.load_urdf(ROBOTS / "double_pendulum.urdf", base="floating").cost()
    assert (
        cost["ltdl"].formula is not None
        and cost["aba"].flops is None
        and "more than 300 operations" in cost["aba"].note
    )
    assert f"aba: {cost['aba'].note}" in str(cost) and cost["forward_kinematics"].flops is not None
    b = rk.ModelBuilder("ghost")
    ghost = b.link("a").link("b").joint("j", "revolute", "a", "b", axis=(0, 0, 1)).build().cost()
    assert "joint 'j' moves no inertia" in ghost["aba"].note and "mass" in ghost["center_of_mass"].note
    assert ghost["rnea"].flops == 0


def test_the_table_prints_and_can_be_read_by_programs():
    robot = rk.load_urdf(ROBOTS / "quadruped.urdf", base="floating")
    cost = robot.cost()
    assert list(cost) == list(GROWTH) and robot.kernels == {}
    lines = str(cost).splitlines()
    assert max(map(len, lines)) <= 80 and sum(line.split(maxsplit=1)[:1] == ["aba"] for line in lines) == 1
    read = json.loads(json.dumps(cost.as_dict()))
    assert read["algorithms"]["aba"]["flops"] == cost["aba"].flops and read["n"] == robot.nv
    with pytest.raises(rk.UnknownName, match="did you mean 'rnea'"):
        cost["rneaa"]


def test_counts_are_kept_with_the_robot_and_nobody_can_change_them(monkeypatch):
    robot = random_tree(0, n=3)
    first, expected = rk.cost(robot), rk.cost(robot).as_dict()
    monkeypatch.setattr("robokit.dynamics.cost.algorithm_cost", lambda *_: pytest.fail("counted again"))
    first["ltdl"].formula["mul"] = -1
    assert rk.cost(robot).as_dict() == expected
    pattern = rk.inertia_sparsity(robot)
    pattern[:] = False
    assert rk.inertia_sparsity(robot).any()


@pytest.mark.parametrize("name", ["aba", "constrained_dynamics", "impact"])
def test_nearly_all_that_is_recorded_is_needed(name):
    """What is recorded in vain is in no count, and takes most of a first call's time on a long robot."""
    robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
    program = kernel(robot, example_key(KERNELS[name], robot))._maker.program()
    recorded = sum(node[0] > CONST for node in program.nodes)
    assert len(program.order) > 0.975 * recorded
