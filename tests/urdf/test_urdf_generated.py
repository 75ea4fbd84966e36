"""Generated robots load in silence; mutated ones load or are refused, never anything else."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from robokit.errors import RobokitError, UrdfError
from robokit.urdf import check_urdf, loads_urdf

number = st.floats(-3, 3).map(lambda x: repr(round(x, 6)))
size = st.floats(0.01, 3).map(lambda x: repr(round(x, 6)))
name = st.text(st.sampled_from("abzABZ019_/-. äλ"), min_size=1, max_size=8)
triple = st.tuples(number, number, number).map(" ".join)
origin = st.builds('<origin xyz="{}" rpy="{}"/>'.format, triple, triple) | st.just("")
geometry = st.one_of(
    st.builds('<box size="{} {} {}"/>'.format, size, size, size),
    st.builds('<sphere radius="{}"/>'.format, size),
    st.builds('<cylinder radius="{}" length="{}"/>'.format, size, size),
)


@st.composite
def inertials(draw):
    a, b, c = (draw(st.floats(0.01, 2)) for _ in range(3))  # second moments: any such body exists
    return (
        f'<inertial>{draw(origin)}<mass value="{draw(size)}"/><inertia ixx="{b + c!r}" ixy="0" ixz="0" '
        f'iyy="{a + c!r}" iyz="0" izz="{a + b!r}"/></inertial>'
    )


@st.composite
def urdfs(draw):
    """A random tree; elements shuffled, so that order carries no meaning."""
    names = draw(st.lists(name, min_size=1, max_size=7, unique=True))
    parts = []
    for k, link in enumerate(names):
        shape = (
            f"<visual>{draw(origin)}<geometry>{draw(geometry)}</geometry></visual>"
            if draw(st.booleans())
            else ""
        )
        parts.append(f'<link name="{link}">{draw(inertials())}{shape}</link>')
        if k == 0:
            continue
        kind = draw(st.sampled_from(["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]))
        lower, upper, effort, velocity = (draw(size) for _ in range(4))
        limit = f'<limit lower="-{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/>'
        parts.append(
            f'<joint name="{link}" type="{kind}">{draw(origin)}<axis xyz="{draw(st.sampled_from(AXES))}"/>'
            f'<parent link="{names[draw(st.integers(0, k - 1))]}"/><child link="{link}"/>'
            f"{limit if kind in ('revolute', 'prismatic') else ''}</joint>"
        )
    return '<robot name="r">\n' + "\n".join(draw(st.permutations(parts))) + "\n</robot>"


AXES = ["1 0 0", "0 -1 0", "0 0 1", "0.6 0.8 0"]


@given(urdfs(), st.sampled_from(["fixed", "floating"]))
def test_generated_robots_are_silent(text, base):
    robot = loads_urdf(text, base=base, strict=True)
    assert robot.diagnostics == []
    assert len(robot.link_names) == text.count("<link ")
    assert len(robot.all_joint_names) == text.count("<joint ") + (base == "floating")


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


@settings(max_examples=150)
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
