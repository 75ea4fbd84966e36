"""A name of another library says what it is here; nothing else changes for names that do not exist."""

from __future__ import annotations

import pytest

import robokit as rk
from robokit.unknown_names import ELSEWHERE


def test_every_name_that_is_said_exists():
    for name in ELSEWHERE.values():
        owner, _, attribute = name.rpartition(".")
        assert attribute in (dir(rk.Robot) if owner == "Robot" else rk.__all__), name


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("mass_matrix", "'crba'"),
        ("inverse_dynamics", "'rnea'"),
        ("nonLinearEffects", "'bias_forces'"),
        ("computeJointTorqueRegressor", "'regressor'"),
        ("computeABADerivatives", "'aba_derivatives'"),
        ("CalcMassMatrix", "'crba'"),
        ("integrate", "'Robot.integrate'"),
        ("load_urd", "'load_urdf' or 'loads_urdf'"),
    ],
)
def test_the_message_says_what_it_is_called_here(name, ours):
    with pytest.raises(
        AttributeError, match=f"module 'robokit' has no attribute '{name}'; did you mean {ours}"
    ):
        getattr(rk, name)


def test_what_nothing_is_like_gets_no_advice():
    for name in ("zzzz", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
            getattr(rk, name)
    assert not hasattr(rk, "mass_matrix")
