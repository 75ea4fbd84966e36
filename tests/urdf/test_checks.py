"""What is wrong with a description: its physics, and masses that do not fit the shapes."""

import math
import warnings

import numpy as np
import pytest
from for_each import for_each
from hypothesis import given
from hypothesis import strategies as st
from urdf_cases import INERTIAL, LIMIT, MASSLESS_TIP, inertial, joint, link, robot, solid, version

import robokit as rk
from robokit.mjcf import to_mjcf
from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.model.inertial_parameters import equivalent_box
from robokit.urdf import CODES, check_urdf, loads_urdf
from robokit.urdf.checks import (
    _surely_of_a_body,
    compose,
    link_boxes,
    link_extent,
    too_dense,
    total_mass,
    union,
)
from robokit.urdf.description import (
    InertialDescription,
    LinkDescription,
    Origin,
    RobotDescription,
    ShapeDescription,
)

# ---- physics -------------------------------------------------------------------------------------
# Both sides of every tolerance of the importer: what rounding explains is silent, a little more is told.


def codes(text):
    return [d.code for d in check_urdf(text)[1]]


# ---- inertias


def turned(moments, axis):
    """<inertial> of these principal moments, turned by 30 degrees about an axis; exact to rounding."""
    angle = " ".join("0.5235987755982988" if k == axis else "0" for k in range(3))
    x, y, z = map(repr, moments)
    return link(
        f'<inertial><origin rpy="{angle}"/><mass value="1"/>'
        f'<inertia ixx="{x}" ixy="0" ixz="0" iyy="{y}" iyz="0" izz="{z}"/></inertial>'
    )


@for_each("size", [1e-5, 1.0, 1e5])
@for_each("place", range(3))
@for_each(
    "moments, code",
    [
        # The largest moment L of 1, 1, L may exceed 2 by 1e-3 L.
        ((1.0, 1.0, 2.0), None),
        ((1.0, 1.0, 2.00195), None),
        ((1.0, 1.0, 2.00205), "inertia-triangle"),
        ((1.0, 0.5, 1.50145), None),
        ((1.0, 0.5, 1.50155), "inertia-triangle"),
        # The smallest may be 1e-3 of the largest below zero.
        ((1.0, 1.0, -0.98e-3), None),
        ((1.0, 1.0, -1.02e-3), "inertia-not-psd"),
        ((0.0, 1.0, 1.00095), None),
        ((0.0, 1.0, 1.00105), "inertia-triangle"),
    ],
)
def test_moments_may_miss_by_a_thousandth_of_the_largest(moments, code, place, size):
    moments = np.roll(size * np.array(moments), place).tolist()
    found = codes(turned(moments, place))
    assert found == ([code] if code else [])
    assert codes(inertial(*map(str, (1, *moments)))) == found


def test_a_moment_is_zero_below_a_micrometre_squared():
    for size, code in ((0.9e-12, ["inertia-zero"]), (1.1e-12, [])):
        for mass in (1e-3, 1.0, 1e3):
            i = repr(size * mass)
            assert codes(inertial(repr(mass), i, i, i)) == code


# ---- axes


def of_length(length, direction=(0.0, 0.6, 0.8)):
    return joint(f'<axis xyz="{" ".join(repr(length * x) for x in direction)}"/>{LIMIT}')


@for_each("direction", [(0.0, 0.6, 0.8), (0.0, 0.0, 1.0), (-1 / 3, 2 / 3, 2 / 3)])
@for_each(
    "length, told",
    [
        (1.0, False),
        (1.00098, False),
        (0.99902, False),
        (1.00102, True),
        (0.99898, True),
        (1.01, True),
        (0.99, True),
    ],
)
def test_the_length_of_an_axis_may_be_off_by_a_thousandth(length, told, direction):
    text = of_length(length, direction)
    assert codes(text) == (["axis-not-unit"] if told else [])
    axis = loads_urdf(text).joint("j").axis
    np.testing.assert_allclose(axis, direction, rtol=0, atol=2e-16)
    assert tuple(loads_urdf(text).tree.joint[1].S.columns[0].ang) == tuple(axis)


@pytest.mark.parametrize("off", [3e-12, 1e-11, 1e-9, 1e-7, 1e-5, 1e-4, 9e-4])
def test_an_axis_beside_a_coordinate_axis_is_not_that_axis(off):
    for length in (1.0, 5.0):
        axis = np.array(loads_urdf(of_length(length, (off, 0.0, 1.0))).joint("j").axis)
        assert axis[0] == pytest.approx(off, rel=2e-4) and axis[1] == 0.0
        assert math.hypot(*axis) == pytest.approx(1.0, abs=2e-12 + off**2)
        built = rk.ModelBuilder("m").link("a").link("b", 1.0, inertia=np.eye(3))
        built = built.joint("j", "revolute", "a", "b", axis=(length * off, 0, length)).build()
        np.testing.assert_allclose(built.joint("j").axis, axis, rtol=0, atol=1e-16)


@pytest.mark.parametrize("off", [1e-17, 1e-15, 8e-15])
def test_an_axis_off_by_rounding_is_the_coordinate_axis(off):
    for direction in ((off, 0.0, 1.0), (-off, off, -1.0), (1.0 - off, off, 0.0)):
        axis = loads_urdf(of_length(1.0, direction)).joint("j").axis
        assert sorted(np.abs(axis)) == [0.0, 0.0, 1.0]
        assert np.abs(axis - direction).max() <= 1.001 * off


def beside(off):
    """Two bodies with unequal moments, the second about an axis that misses z by so much."""
    b = rk.ModelBuilder("m").link("root", 1.0, inertia=np.eye(3))
    for k, I in enumerate(([1.0, 2.0, 2.5], [0.1, 0.3, 0.25])):
        b.link(f"l{k}", 1.0 + k, (0.3, 0.2 * k, -0.1), np.diag(I))
    place = rk.Placement(position=np.array([0.2, 0.1, 0.4]))
    b.joint("j0", "revolute", "root", "l0", place, axis=(0, off, 1))
    return b.joint("j1", "revolute", "l0", "l1", place, axis=(off, 0, 1)).build("floating")


@for_each("off", [0.0, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-4, 9e-4, 1e-2])
def test_motion_beside_a_coordinate_axis_is_about_the_axis(off):
    """Where an axis counts as a coordinate axis, work is left out: the rest must still be exact."""
    robot = beside(off)
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    v, tau = rng.standard_normal((2, robot.nv))
    H, C = rk.crba(robot, q, engine="python"), rk.bias_forces(robot, q, v, engine="python")
    a = rk.aba(robot, q, v, tau, engine="python")
    np.testing.assert_allclose(H @ a + C, tau, rtol=0, atol=1e-12)
    R0, p0 = rk.forward_kinematics(robot, q, engine="python")["l0"]
    R1, p1 = rk.forward_kinematics(robot, q, engine="python")["l1"]
    u = np.array([off, 0.0, 1.0]) / math.hypot(off, 1.0)
    c, s = math.cos(q[-1]), math.sin(q[-1])
    K = np.cross(np.eye(3), u)
    np.testing.assert_allclose(R0.T @ R1, np.eye(3) + s * K + (1 - c) * K @ K, rtol=0, atol=2e-12)
    np.testing.assert_allclose(R0.T @ (p1 - p0), (0.2, 0.1, 0.4), rtol=0, atol=1e-13)


@for_each("off, told", [(0.0, True), (3.9e-9, True), (4.1e-9, False), (1e-4, False)])
@for_each("place", ["3 {} 0", "3 0 {}", "-3 {} 0"])
def test_a_point_mass_is_on_its_axis_to_a_billionth(off, told, place):
    """The axis is x; the miss counts beside 1 m and the mass' distance from the joint."""
    point = f'<inertial><origin xyz="{place.format(off)}"/><mass value="1"/></inertial>'
    text = MASSLESS_TIP.replace('<link name="c"/>', f'<link name="c">{point}</link>')
    assert ("massless-subtree" in codes(text.replace("KIND", "revolute"))) is told


# ---- placements and MJCF


@pytest.mark.parametrize(("off", "kept"), [(8e-15, False), (3e-14, True), (1e-12, True), (1e-4, True)])
def test_only_rounding_is_taken_out_of_placements(off, kept):
    text = joint(f'<origin xyz="{off!r} 1 0" rpy="0 0 {off!r}"/>{LIMIT}')
    XT = loads_urdf(text).tree.XT[1]
    assert (XT.r.x, XT.E.rows[0][1]) == ((off, math.sin(off)) if kept else (0.0, 0.0))


def test_an_angle_of_few_digits_is_meant_as_it_stands():
    """A load turned by 5e-13 off the vertical weighs on its hinge; the torque is small, not zero."""
    text = f"""<robot name="r">
      <link name="a"/>
      <link name="b"><inertial>
        <origin xyz="0 0 -2"/>
        <mass value="3000"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
      </inertial></link>
      <joint name="j" type="continuous">
        <parent link="a"/>
        <child link="b"/>
        <origin rpy="0 {5e-13!r} 0"/>
        <axis xyz="0 1 0"/>
      </joint>
    </robot>"""
    robot = loads_urdf(text)
    torque = rk.gravity_forces(robot, robot.neutral())
    np.testing.assert_allclose(torque, 3000.0 * 9.81 * 2.0 * math.sin(5e-13), rtol=1e-12)


@pytest.mark.parametrize(("off", "passes"), [(0.9e-6, True), (1.1e-6, False)])
def test_a_rotation_is_orthonormal_to_a_millionth(off, passes):
    for R in (np.diag([(1.0 + off) ** 0.5, 1.0, 1.0]), np.eye(3) + off * np.eye(3, k=1)):
        b = rk.ModelBuilder("m").link("a").link("b", 1.0)
        if passes:
            b.joint("j", "revolute", "a", "b", rk.Placement(R, np.zeros(3)))
        else:
            with pytest.raises(rk.ModelError, match="not orthonormal"):
                b.joint("j", "revolute", "a", "b", rk.Placement(R, np.zeros(3)))


@pytest.mark.parametrize(("largest", "told"), [(2.0, False), (2.0 + 1e-9, False), (2.0 + 4e-9, True)])
def test_mjcf_tells_which_triangle_mujoco_refuses(largest, told):
    b = rk.ModelBuilder("m").link("a").link("b", 1.0, inertia=np.diag([1.0, 1.0, largest]))
    robot = b.joint("j", "revolute", "a", "b").build()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        to_mjcf(robot)
    assert any("triangle" in str(w.message) for w in said) is told


def test_inertias_that_pass_at_once_pass_by_their_moments():
    """What needs no principal moments has some of a body; both answers occur, close to the limit too."""
    rng = np.random.default_rng(5)
    passed = []
    for _ in range(400):
        axes, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        second = rng.uniform(0.0, 1.0, 3) * 10.0 ** rng.uniform(-8.0, 0.0, 3) - rng.choice([0.0, 1e-9, 1e-2])
        moments = (second.sum() - second) * 10.0 ** rng.integers(-9, 9)
        I = axes @ np.diag(moments) @ axes.T
        six = tuple(I[np.triu_indices(3)].tolist())
        passed.append(_surely_of_a_body(InertialDescription(1.0, six), max(map(abs, six))))
        if passed[-1]:
            low, middle, high = np.linalg.eigvalsh(I)
            assert low > 0 and low + middle > high
    assert 50 < sum(passed) < 350


# ---- plausible -----------------------------------------------------------------------------------
# Masses beside shapes: bounds that no body breaks, and no word about bodies that could exist.


NEW = ("density-implausible", "com-outside", "inertia-implausible", "base-massless", "limit-excludes-zero")


def codes_of(text, **options):
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


def test_shapes_in_millimetres_are_suspected_where_they_would_fit():
    for size, told in (("100 100 100", True), ("4 4 4", False), ("20000 20000 20000", False)):
        _, found = check_urdf(solid(shape=f'<box size="{size}"/>'), plausible=True)
        (note,) = [each for each in found if each.code == "inertia-implausible"]
        assert ("if its shapes are in millimetres, 0.00167" in note.message) == told
        assert ('scale="0.001 0.001 0.001"' in str(note.hint)) == told


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
    assert not set(codes_of(text)) & set(NEW)


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
    assert codes_of(welded.replace("KIND", "fixed")) == []
    found = codes_of(welded.replace("KIND", "revolute"))
    assert {"com-outside", "density-implausible"} <= set(found)


def test_a_welded_mesh_of_unknown_size_leaves_it_open():
    text = robot(WELDED.format('<geometry><mesh filename="none.stl"/></geometry>'))
    assert codes_of(text.replace("KIND", "fixed")) == ["mesh-unresolved"]
    assert "com-outside" in codes_of(text.replace("KIND", "revolute"))


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
    assert codes_of(path) == []
    assert codes_of(path, meshes=True) == ["inertia-implausible"]
    path.write_text(solid(shape='<mesh filename="box.stl" scale="0.001 0.001 -0.001"/>'))
    assert codes_of(path, meshes=True) == []


def test_a_mesh_that_cannot_be_read_is_a_warning(tmp_path):
    (tmp_path / "box.stl").write_text("no triangles")
    path = tmp_path / "r.urdf"
    path.write_text(solid(shape='<mesh filename="box.stl"/>'))
    assert codes_of(path) == []
    _, (warning,) = check_urdf(path, plausible=True, meshes=True)
    assert warning.code == "mesh-unreadable" and "'box.stl' cannot be read" in warning.message
    assert CODES["mesh-unreadable"].severity == warning.severity == "warning"


# ---- a base that would float

ARM = MASSLESS_TIP.replace("KIND", "fixed")


def test_a_massless_root_is_noted_for_a_base_that_may_float():
    assert codes_of(ARM) == []
    _, (note,) = check_urdf(ARM, base="either")
    assert (note.code, note.line, note.severity) == ("base-massless", 2, "note")
    assert "link 'a'" in note.element and "'j'" in note.message
    assert [d.code for d in check_urdf(ARM, base="floating")[1]] == ["massless-subtree"]
    assert codes_of(ARM.replace('<link name="a"/>', f'<link name="a">{INERTIAL}</link>'), base="either") == []


def test_a_massless_root_between_two_arms_is_fine():
    two = ARM.replace(
        "</robot>",
        f'<link name="d">{INERTIAL}</link><joint name="l" type="revolute"><parent link="a"/>'
        f'<child link="d"/>{LIMIT}</joint></robot>',
    )
    assert codes_of(two, base="either") == []


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
    assert codes_of(robot(f'<link name="a"/>{links}')) == []  # together they have the mass
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
    assert codes_of(text.replace("KIND", "fixed")) == []
    assert codes_of(text.replace("KIND", "revolute")) == ["mass-too-dense"]


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
    assert codes_of(bar(right, shape, rpy)) == []
    _, found = check_urdf(bar(turned, shape, rpy), plausible=True)
    (note,) = found
    assert note.code == "inertia-implausible" and "turned by 90 degrees about" in note.message
    assert "exchange the moments" in note.hint


def test_a_turned_inertia_of_a_body_of_two_parts_is_told_by_what_their_box_holds():
    flange = (
        '<collision><origin xyz="0.04 0 0"/><geometry><box size="0.004 0.02 0.03"/></geometry></collision>'
    )
    assert codes_of(bar(filled(0.08, 0.02, 0.03), others=flange)) == []
    _, (note,) = check_urdf(bar(filled(0.03, 0.02, 0.08), others=flange), plausible=True)
    assert "have at most" in note.message and "turned by 90 degrees about y it would fit" in note.message


@given(st.sampled_from([(0.08, 0.02, 0.03), (0.1, 0.1, 0.02), (0.05, 0.04, 0.03)]), st.floats(0.5, 5 / 3))
def test_ordinary_parts_hollow_or_with_a_core_are_not_called_turned(edges, spread):
    assert codes_of(bar(spread * filled(*edges), f'<box size="{edges[0]} {edges[1]} {edges[2]}"/>')) == []
