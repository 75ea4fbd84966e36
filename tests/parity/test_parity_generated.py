"""Generated URDFs, odd white space, odd names and any order included, against Pinocchio's reading of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ladder import Plain
from public import error
from test_parity import inputs

from robokit.urdf import loads_urdf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "urdf"))
from urdf_strategies import urdfs

pytestmark = pytest.mark.parity

# No planar joints, and none that float inside the tree: their coordinates in Pinocchio are of another kind,
# and the adapter knows those of the base only. Pinocchio reads no numbers with tabs or line breaks between
# them, so it gets the text with single spaces; no name here has two.
KINDS = ("revolute", "continuous", "prismatic", "fixed")
NAMES = st.text(st.sampled_from("abzABZ019_/-. äλ&<>'\""), min_size=1, max_size=8).filter(
    lambda name: name.strip() and "  " not in name
)


@settings(max_examples=60)
@given(urdfs(kinds=KINDS, names=NAMES), st.sampled_from(["fixed", "floating"]), st.integers(0, 99))
def test_generated_robots_agree(text, base, seed):
    import pinocchio as pin

    from robokit.interop import PinocchioAdapter

    robot = loads_urdf(text, base=base, strict=True)
    assume(robot.nv > 0)
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model = pin.buildModelFromXML(re.sub(r"\s+", " ", text), *root)
    data, to, x = model.createData(), PinocchioAdapter(robot, model), inputs(robot, seed)
    q, v = to.q(x["q"]), to.v(x["v"])
    plain = Plain(robot)
    H = pin.crba(model, data, q)
    assert error(plain.crba(x["q"]), to.matrix_back(H)) < 1e-10
    assert error(plain.bias(x["q"], x["v"]), to.v_back(pin.nonLinearEffects(model, data, q, v))) < 1e-10
