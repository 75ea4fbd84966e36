"""Generated URDFs, odd white space, odd names and any order included, against Pinocchio's reading of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder import Plain
from public import error
from test_parity import inputs

from robokit.urdf import loads_urdf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "urdf"))
from urdf_strategies import urdfs

pytestmark = pytest.mark.parity

# Pinocchio 4 reads no planar joint from a URDF as robokit does (its velocities are of another frame), and its
# URDF reader loses a name with a tab or a line break.
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating")
NAMES = st.text(st.sampled_from("abzABZ019_/-. äλ&<>'\""), min_size=1, max_size=8).filter(str.strip)


@settings(max_examples=60)
@given(urdfs(kinds=KINDS, names=NAMES), st.sampled_from(["fixed", "floating"]), st.integers(0, 99))
def test_generated_robots_agree(text, base, seed):
    import pinocchio as pin

    from robokit.interop import PinocchioAdapter

    robot = loads_urdf(text, base=base, strict=True)
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromXML(text, *root)
    data, to, x = model.createData(), PinocchioAdapter(robot, model), inputs(robot, seed)
    q, v = to.q(x["q"]), to.v(x["v"])
    plain = Plain(robot)
    H = pin.crba(model, data, q)
    assert error(plain.crba(x["q"]), to.matrix_back(H)) < 1e-10
    assert error(plain.bias(x["q"], x["v"]), to.v_back(pin.nonLinearEffects(model, data, q, v))) < 1e-10
