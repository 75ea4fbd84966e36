"""Masses beside shapes: bounds that no body breaks, and no word about bodies that could exist."""

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from urdf_cases import INERTIAL, LIMIT, MASSLESS_TIP, link, robot, solid, version

from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.model.inertial_parameters import equivalent_box
from robokit.urdf import CODES, check_urdf, loads_urdf
from robokit.urdf.checks import compose, link_boxes, link_extent, too_dense, total_mass, union
from robokit.urdf.description import (
    InertialDescription,
    LinkDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
)

NEW = ("density-implausible", "com-outside", "inertia-implausible", "base-massless", "limit-excludes-zero")


def codes(text, **options):
    _, found = check_urdf(text, plausible=True, **options)
    return [d.code for d in found]


def test_the_new_findings_are_notes():
    assert {CODES[code].severity for code in NEW} == {"note"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (solid(mass="0.001", moment="0.0000017"), "less than air"),
        (solid(moment="0.000001"), "a full box of 0.1 x 0.1 x 0.1 m has 0.00167"),
        (solid(mass="25", moment="0.04"), "more than osmium"),
        (solid(moment="0.03", shape='<cylinder radius="0.05" length="0.1"/>'), "have at most"),
        (solid(moment="0.03", shape='<sphere radius="0.05"/>'), "have at most"),
        (version("1.1", solid(xyz="0 0 0.1", shape='<capsule radius="0.02" length="0.06"/>')), "outside"),
    ],
)
def test_what_no_body_has_is_told(text, words):
    _, found = check_urdf(text, plausible=True)
    (note,) = found
    assert words in note.message and note.line == 3


@for_each(
    "text",
    [
        solid(mass="20", moment="0.033"),  # tungsten
        solid(mass="0.02", moment="0.000033"),  # foam
        solid(moment="0.0049"),  # all mass near the corners
        solid(moment="0.0002"),  # a heavy core, nearly that of osmium
        solid(xyz="0.06 0.06 0.06"),  # a rough shape
        solid(mass="100", moment="0.17", shape='<mesh filename="none.stl"/>'),
        solid(mass="100", moment="0.17", shape='<box size="0 0 0"/>'),
        solid(mass="1e-9", moment="1e-9", shape='<mesh filename="none.stl"/>'),
    ],
)
def test_what_a_body_can_have_is_not(text):
    assert not set(codes(text)) & set(NEW)


WELDED = (
    '<link name="a"/><link name="b"><inertial><origin xyz="0 0 0.3"/><mass value="3"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/></inertial>'
    '<collision><geometry><sphere radius="0.01"/></geometry></collision></link>'
    '<link name="c"><visual>{}</visual></link>'
    '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>' + LIMIT + "</joint>"
    '<joint name="k" type="KIND"><parent link="b"/><child link="c"/><origin xyz="0 0 0.3" rpy="1.5708 0 0"/>'
    + LIMIT
    + "</joint>"
)
TUBE = '<geometry><cylinder radius="0.06" length="0.6"/></geometry><origin rpy="1.5708 0 0"/>'


def test_shapes_of_welded_links_count():
    welded = robot(WELDED.format(TUBE))
    assert codes(welded.replace("KIND", "fixed")) == []
    found = codes(welded.replace("KIND", "revolute"))
    assert {"com-outside", "density-implausible"} <= set(found)


def test_a_welded_mesh_of_unknown_size_leaves_it_open():
    text = robot(WELDED.format('<geometry><mesh filename="none.stl"/></geometry>'))
    assert codes(text.replace("KIND", "fixed")) == ["mesh-unresolved"]
    assert "com-outside" in codes(text.replace("KIND", "revolute"))


def write_box(path, size):
    """An ASCII STL of a box round the origin: four triangles have all of its corners."""
    x, y, z = (s / 2 for s in size)
    corners = [(i * x, j * y, k * z) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    lines = ["solid box"]
    for a, b, c in ((0, 1, 2), (3, 4, 5), (5, 6, 7), (1, 6, 3)):
        points = "".join(f"vertex {p[0]} {p[1]} {p[2]}\n" for p in (corners[a], corners[b], corners[c]))
        lines.append(f"facet normal 0 0 1\nouter loop\n{points}endloop\nendfacet")
    path.write_text("\n".join([*lines, "endsolid box"]))


def test_meshes_are_read_only_when_asked(tmp_path):
    write_box(tmp_path / "box.stl", (100, 100, 100))
    path = tmp_path / "r.urdf"
    path.write_text(solid(moment="0.17", shape='<mesh filename="box.stl" scale="0.001 0.001 -0.001"/>'))
    assert codes(path) == []
    assert codes(path, meshes=True) == ["inertia-implausible"]
    path.write_text(solid(shape='<mesh filename="box.stl" scale="0.001 0.001 -0.001"/>'))
    assert codes(path, meshes=True) == []


def test_a_mesh_that_cannot_be_read_is_a_warning(tmp_path):
    (tmp_path / "box.stl").write_text("no triangles")
    path = tmp_path / "r.urdf"
    path.write_text(solid(shape='<mesh filename="box.stl"/>'))
    assert codes(path) == []
    _, (warning,) = check_urdf(path, plausible=True, meshes=True)
    assert warning.code == "mesh-unreadable" and "'box.stl' cannot be read" in warning.message
    assert CODES["mesh-unreadable"].severity == warning.severity == "warning"


# ---- a base that would float

ARM = MASSLESS_TIP.replace("KIND", "fixed")


def test_a_massless_root_is_noted_for_a_base_that_may_float():
    assert codes(ARM) == []
    _, (note,) = check_urdf(ARM, base="either")
    assert (note.code, note.line, note.severity) == ("base-massless", 2, "note")
    assert "link 'a'" in note.element and "'j'" in note.message
    assert [d.code for d in check_urdf(ARM, base="floating")[1]] == ["massless-subtree"]
    assert codes(ARM.replace('<link name="a"/>', f'<link name="a">{INERTIAL}</link>'), base="either") == []


def test_a_massless_root_between_two_arms_is_fine():
    two = ARM.replace(
        "</robot>",
        f'<link name="d">{INERTIAL}</link><joint name="l" type="revolute"><parent link="a"/>'
        f'<child link="d"/>{LIMIT}</joint></robot>',
    )
    assert codes(two, base="either") == []


# ---- bodies without mass


SEEN_BOX = '<visual><geometry><box size="1 1 1"/></geometry></visual>'
ZERO = '<inertial><mass value="0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'


def row(*insides, fixed=()):
    """A row of links with these insides; the joints before the numbered links are fixed."""
    links = "".join(f'<link name="l{k}">{inside}</link>\n' for k, inside in enumerate(insides))
    joints = "".join(
        f'<joint name="j{k}" type="{"fixed" if k in fixed else "continuous"}"><origin xyz="1 0 0"/>'
        f'<parent link="l{k - 1}"/><child link="l{k}"/></joint>\n'
        for k in range(1, len(insides))
    )
    return robot(f"{links}{joints}")


@for_each(
    "text, base, told",
    [
        (row("", SEEN_BOX, INERTIAL), "fixed", ["link 'l1'"]),
        (row("", SEEN_BOX, INERTIAL), "floating", ["link 'l1'"]),
        (row("", SEEN_BOX, SEEN_BOX, INERTIAL), "fixed", ["link 'l1'", "link 'l2'"]),
        (row("", "", SEEN_BOX, INERTIAL, fixed=(2,)), "fixed", ["link 'l2'"]),
        (row(SEEN_BOX, INERTIAL), "fixed", []),  # what is fixed to the ground does not move
        (row(SEEN_BOX, INERTIAL), "floating", ["link 'l0'"]),
        (row("", SEEN_BOX, INERTIAL, fixed=(1,)), "fixed", []),
        (row("", SEEN_BOX, INERTIAL, INERTIAL, fixed=(2,)), "fixed", []),  # one body, and it has a mass
        (row("", "", INERTIAL), "fixed", []),  # frames between two joints are seen by nobody
        (row("", ZERO + SEEN_BOX, INERTIAL), "fixed", []),  # said to have no mass
    ],
)
def test_a_moving_body_that_is_seen_and_has_no_inertial_is_told(text, base, told):
    _, found = check_urdf(text, base)
    assert [d.element for d in found if d.code == "inertial-missing"] == told


@pytest.mark.parametrize("text", [row("", SEEN_BOX, SEEN_BOX), row("", INERTIAL, SEEN_BOX)])
def test_where_a_joint_moves_nothing_that_is_told_and_no_more(text):
    _, (finding,) = check_urdf(text)
    assert finding.code == "massless-subtree"


def test_a_joint_that_moves_nothing_names_its_link():
    _, (finding,) = check_urdf(row("", INERTIAL, SEEN_BOX))
    assert finding.element == "joint 'j2'" and "link 'l2'" in finding.message


# ---- figures


def test_the_equivalent_box_has_the_inertia():
    R = compose((np.eye(3), np.zeros(3)), Origin(rpy=(0.3, -0.4, 1.1)))[0]
    edges, mass = np.array([0.3, 0.2, 0.1]), 2.0
    moments = mass / 12 * (edges @ edges - edges**2)
    I = R @ np.diag(moments) @ R.T
    box = equivalent_box(mass, I)
    assert np.allclose(box.size, edges, rtol=1e-10)
    assert np.linalg.det(box.axes) == pytest.approx(1.0)
    assert np.allclose(box.axes @ np.diag(box.moments) @ box.axes.T, I, atol=1e-12)


def test_a_box_needs_a_mass_and_numbers_whose_products_are_finite():
    assert equivalent_box(0.0, np.eye(3)) is None
    assert equivalent_box(1.0, np.diag([1e200, 1.0, 1.0])) is None
    assert not equivalent_box(1.0, np.zeros((3, 3))).size.any()


def test_links_without_mass_or_inertia_have_no_box():
    numbers = {"a": (0.0, (1, 0, 0, 1, 0, 1)), "b": (1.0, (0,) * 6), "c": (1.0, (1, 0, 0, 1, 0, 1))}
    links = tuple(LinkDescription(name, InertialDescription(*given)) for name, given in numbers.items())
    ((name, inertial, box),) = link_boxes(RobotDescription("r", (LinkDescription("d"), *links), ()))
    assert name == "c" and inertial.mass == 1.0 and np.allclose(box.size, 6**0.5)


def test_total_mass():
    description, _ = check_urdf(
        link(INERTIAL).replace('<link name="a"/>', f'<link name="a">{INERTIAL}</link>')
    )
    assert total_mass(description) == 2.0


SHAPES = {
    "box": Box((0.2, 0.1, 0.4)),
    "sphere": Sphere(0.3),
    "cylinder": Cylinder(0.1, 0.5),
    "capsule": Capsule(0.1, 0.5),
}


@pytest.mark.parametrize("name", SHAPES)
def test_bounding_boxes_are_tight(name):
    geometry = SHAPES[name]
    origin = Origin((0.1, -0.2, 0.3), (0.4, 0.5, -0.6))
    extent = link_extent(LinkDescription("l", collisions=(ShapeDescription(geometry, origin),)))
    # The reach along a direction, from the shape's definition.
    R = origin.rotation()
    for axis in range(3):
        d = R[axis]
        if name == "box":
            reach = 0.5 * np.abs(d) @ np.array(geometry.size)
        elif name == "sphere":
            reach = geometry.radius
        elif name == "cylinder":
            reach = 0.5 * geometry.length * abs(d[2]) + geometry.radius * np.hypot(d[0], d[1])
        else:
            reach = 0.5 * geometry.length * abs(d[2]) + geometry.radius
        assert extent.high[axis] - origin.xyz[axis] == pytest.approx(reach)
        assert origin.xyz[axis] - extent.low[axis] == pytest.approx(reach)


@given(
    st.lists(st.floats(0.01, 2.0), min_size=3, max_size=3),
    st.lists(st.floats(-1.0, 1.0), min_size=24, max_size=24),
    st.floats(1.5, 20_000.0),
)
def test_point_masses_inside_the_shape_are_never_odd(size, places, density):
    """Any eight points in a box: an inertia that exists is not called impossible."""
    points = np.array(places).reshape(8, 3) * size * 0.5
    mass = density * float(np.prod(size))
    com = points.mean(axis=0)
    spread = (points - com).T @ (points - com) * mass / 8
    I = np.trace(spread) * np.eye(3) - spread
    text = link(
        f'<inertial><origin xyz="{" ".join(map(str, com))}"/><mass value="{mass}"/>'
        f'<inertia ixx="{I[0, 0]}" ixy="{I[0, 1]}" ixz="{I[0, 2]}" iyy="{I[1, 1]}" iyz="{I[1, 2]}" '
        f'izz="{I[2, 2]}"/></inertial>'
        f'<visual><geometry><box size="{" ".join(map(str, size))}"/></geometry></visual>'
    )
    _, found = check_urdf(text, plausible=True)
    assert not [
        d for d in found if "at most" in d.message or d.code in ("com-outside", "density-implausible")
    ]


@pytest.mark.parametrize("size", ["1e300", "1e160", "1e-300"])
@pytest.mark.filterwarnings("error")
def test_extreme_numbers_neither_warn_nor_fail(size):
    shapes = ('<box size="{0} {0} {0}"/>', '<capsule radius="{0}" length="{0}"/>', '<sphere radius="{0}"/>')
    for shape in shapes:
        check_urdf(solid(shape=shape.format(size)), plausible=True)
        check_urdf(solid(mass=size, moment=size, shape=shape.format("1")), plausible=True)
        check_urdf(solid(xyz=f"{size} 0 0", shape=shape.format("1")), plausible=True)


def test_zero_outside_the_limits_is_one_note():
    joints = "".join(
        f'<link name="l{k}">{INERTIAL}</link><joint name="j{k}" type="revolute"><parent link="a"/>'
        f'<child link="l{k}"/><limit lower="1" upper="2" effort="1" velocity="1"/></joint>'
        for k in range(6)
    )
    _, (note,) = check_urdf(robot(f'<link name="a"/>{joints}'), plausible=True)
    assert note.element == "robot" and note.message.endswith("'j3' [1, 2] and 2 more")
    assert loads_urdf(robot(f'<link name="a"/>{joints}'), strict=True).diagnostics == []


def test_odd_links_that_are_welded_together_are_measured_once(monkeypatch):
    """Linear time: the room of a rigid body is not worked out anew for each of its links."""
    calls = []
    monkeypatch.setattr("robokit.urdf.checks.union", lambda extents: calls.append(1) or union(extents))
    odd = INERTIAL + '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    links = "".join(
        f'<link name="l{k}">{odd}</link><joint name="j{k}" type="fixed"><parent link="a"/>'
        f'<child link="l{k}"/></joint>'
        for k in range(50)
    )
    assert codes(robot(f'<link name="a"/>{links}')) == []  # together they have the mass
    assert len(calls) == 1


def ball(mass, density):
    """Moment of inertia of a ball about each axis [kg m^2]."""
    return 0.4 * mass * (0.75 * mass / (np.pi * density)) ** (2 / 3)


@given(st.floats(1e-6, 1e6), st.floats(0.1, 10), st.floats(0.1, 10))
def test_no_body_of_any_material_is_too_dense(mass, flat, long):
    """Ellipsoids of osmium, from needles to plates: the ball has the smallest mean moment."""
    axes = np.array([flat, long, 1 / (flat * long)]) * (0.75 * mass / (np.pi * 22_590)) ** (1 / 3)
    squares = axes**2
    moments = mass * (squares.sum() - squares) / 5
    assert not too_dense(mass, moments.mean())
    assert moments.mean() >= ball(mass, 22_590) * (1 - 1e-12)


@given(st.floats(1e-6, 1e6))
def test_a_ball_of_more_than_osmium_is(mass):
    assert too_dense(mass, ball(mass, 23_000)) and not too_dense(mass, ball(mass, 22_590))


def test_a_mass_and_an_inertia_on_two_links_of_one_body_are_judged_together():
    heavy = '<inertial><mass value="5"/><inertia ixx="1e-5" ixy="0" ixz="0" iyy="1e-5" iyz="0" izz="1e-5"/>'
    text = robot(
        f'<link name="a">{heavy}</inertial></link>\n<link name="b">{INERTIAL}</link>\n'
        '<joint name="j" type="KIND"><parent link="a"/><child link="b"/>' + LIMIT + "</joint>"
    )
    assert codes(text.replace("KIND", "fixed")) == []
    assert codes(text.replace("KIND", "revolute")) == ["mass-too-dense"]


def bar(moments, shape='<box size="0.08 0.02 0.03"/>', rpy="0 0 0", others=""):
    xx, yy, zz = (f"{x:.3g}" for x in moments)
    return link(
        f'<inertial><mass value="0.2"/><inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
        f'</inertial><collision><origin rpy="{rpy}"/><geometry>{shape}</geometry></collision>{others}'
    )


def filled(a, b, c):
    return 0.2 / 12 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])


@pytest.mark.parametrize(
    ("shape", "rpy", "right", "turned"),
    [
        ('<box size="0.08 0.02 0.03"/>', "0 0 0", filled(0.08, 0.02, 0.03), filled(0.03, 0.02, 0.08)),
        ('<box size="0.03 0.02 0.025"/>', "0 0 0", filled(0.03, 0.02, 0.025), filled(0.02, 0.03, 0.025)),
        ('<box size="0.08 0.02 0.03"/>', "0 0 1.5707963", filled(0.02, 0.08, 0.03), filled(0.08, 0.02, 0.03)),
        (
            '<cylinder radius="0.01" length="0.06"/>',
            "1.5707963 0 0",
            0.2 * np.array([6.5e-5 / 2 + 0.06**2 / 12 - 7.5e-6, 5e-5, 6.5e-5 / 2 + 0.06**2 / 12 - 7.5e-6]),
            0.2 * np.array([0.000325, 0.000325, 5e-5]),
        ),
    ],
)
def test_an_inertia_that_is_turned_by_90_degrees(shape, rpy, right, turned):
    assert codes(bar(right, shape, rpy)) == []
    _, found = check_urdf(bar(turned, shape, rpy), plausible=True)
    (note,) = found
    assert note.code == "inertia-implausible" and "turned by 90 degrees about" in note.message
    assert "exchange the moments" in note.hint


def test_a_turned_inertia_of_a_body_of_two_parts_is_told_by_what_their_box_holds():
    flange = (
        '<collision><origin xyz="0.04 0 0"/><geometry><box size="0.004 0.02 0.03"/></geometry></collision>'
    )
    assert codes(bar(filled(0.08, 0.02, 0.03), others=flange)) == []
    _, (note,) = check_urdf(bar(filled(0.03, 0.02, 0.08), others=flange), plausible=True)
    assert "have at most" in note.message and "turned by 90 degrees about y it would fit" in note.message


@given(st.sampled_from([(0.08, 0.02, 0.03), (0.1, 0.1, 0.02), (0.05, 0.04, 0.03)]), st.floats(0.5, 5 / 3))
def test_ordinary_parts_hollow_or_with_a_core_are_not_called_turned(edges, spread):
    assert codes(bar(spread * filled(*edges), f'<box size="{edges[0]} {edges[1]} {edges[2]}"/>')) == []
