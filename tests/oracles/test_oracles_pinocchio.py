"""robokit's public functions against numbers that Pinocchio computed (make_oracles.py), joints by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ladder
import numpy as np
import pytest
from public import QUANTITIES, error, quantities

import robokit as rk

FILE = Path(__file__).with_name("oracles.npz")
REMEDY = "if the robot's file was changed on purpose, run make_oracles.py again"


@cache
def oracles() -> dict[str, dict[str, np.ndarray]]:
    """state id -> its arrays."""
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(FILE) as file:
        for key in file.files:
            state, _, quantity = key.rpartition("/")
            found.setdefault(state, {})[quantity] = file[key]
    return found


STATES = sorted(k for k in oracles() if k)


def evaluated(state: str):
    """(robokit's results in the oracle's order of rows and columns, the oracle's)."""
    name, base, _ = state.split("/")
    robot = rk.load_urdf(ladder.ROBOTS / f"{name}.urdf", base=base)
    x = oracles()[state]
    joints = dict(zip(x["joints"].tolist(), x["q"].tolist(), strict=True))
    q = robot.configuration(x.get("base_position"), x.get("base_quat_wxyz"), joints)
    order = list(range(6)) if base == "floating" else []
    order += [robot.joint(j).v_slice.start for j in joints]
    assert sorted(order) == list(range(robot.nv)), REMEDY
    inputs = {}
    for key in ("v", "a", "tau"):
        inputs[key] = np.empty(robot.nv)
        inputs[key][order] = x[key]
    f_ext = dict(zip(x["pushed"].tolist(), x["wrenches"], strict=True))
    # H of a hundred links takes a quarter of a minute to compile; the parity suite does that.
    got = quantities(robot, q, **inputs, f_ext=f_ext, compiled_h=robot.nv < 60)
    links = [robot.link_names.index(link) for link in x["links"]]
    assert sorted(links) == list(range(len(robot.link_names))), REMEDY
    got["rotation"], got["position"] = got["rotation"][links], got["position"][links]
    got["H"] = got["H"][np.ix_(order, order)][np.tril_indices(robot.nv)]
    got["A_G"] = got["A_G"][:, order]
    for key in ("C", "G", "tau", "qdd", "tau_f_ext", "qdd_f_ext"):
        got[key] = got[key][order]
    return got, {**x, "tau": x["tau_id"]}


# The chain of a hundred links takes long to compile.
@pytest.mark.parametrize(
    "state", [pytest.param(x, marks=[pytest.mark.slow] if x.startswith("chain") else []) for x in STATES]
)
def test_agrees_with_pinocchio(state):
    got, expected = evaluated(state)
    errors = {quantity: error(got[quantity], expected[quantity]) for quantity in QUANTITIES}
    assert max(errors.values()) < 1e-10, f"{errors}; {REMEDY}"


def test_the_oracle_covers_every_robot_of_ours_on_both_bases():
    covered = {tuple(s.split("/")[:2]) for s in STATES}
    assert covered == {(p.stem, b) for p in ladder.ROBOTS.glob("*.urdf") for b in ("fixed", "floating")}
    assert any("pinocchio" in v for v in oracles()[""]["versions"])
    assert FILE.stat().st_size < 500_000
