"""Generated robots load in silence; mutated ones load or are refused, never anything else."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from urdf_strategies import urdfs

from robokit.errors import RobokitError, UrdfError
from robokit.urdf import check_urdf, loads_urdf


@given(urdfs(), st.sampled_from(["fixed", "floating"]))
def test_generated_robots_are_silent(text, base):
    robot = loads_urdf(text, base=base, strict=True)
    assert robot.diagnostics == []
    assert len(robot.link_names) == text.count("<link ")
    assert len(robot.all_joint_names) == text.count("<joint ") + (base == "floating")
    assert len(robot.loop_joints) == text.count("<loop_joint ")
    assert sum(j.mimic is not None for j in robot.joints) == text.count("<mimic ")


@st.composite
def mutants(draw):
    text = draw(urdfs())
    for _ in range(draw(st.integers(1, 3))):
        tokens = list(re.finditer(r'"[^"]*"|<[^>]*>|[\w.]+', text))
        a, b = (draw(st.sampled_from(tokens)) for _ in range(2))
        new = draw(
            st.sampled_from(
                ["", '""', '"nan"', '"-1"', '"1e308"', '"1e-320"', '"0 0 0"', "<", "&", "\0", b[0]]
            )
        )
        text = text[: a.start()] + new + text[a.end() :]
    return text


@settings(max_examples=75)
@given(mutants(), st.sampled_from(["fixed", "floating"]))
def test_mutants_load_or_are_refused(text, base):
    description, found = check_urdf(text if text.lstrip()[:1] == "<" else text.encode(), base=base)
    try:
        robot = loads_urdf(text, base=base)
    except UrdfError as error:
        assert any(d.severity == "error" for d in error.diagnostics)
    except RobokitError:
        pass
    else:
        assert description is not None
        assert robot.diagnostics == found


@given(st.binary(max_size=200))
def test_noise_is_refused(data):
    try:
        loads_urdf(data)
    except UrdfError as error:
        assert error.diagnostics
    else:
        raise AssertionError("noise is no robot")
