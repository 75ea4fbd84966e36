"""Both sides of every tolerance of the importer: what rounding explains is silent, a little more is told."""

import math
import warnings

import numpy as np
import pytest
from for_each import for_each
from urdf_cases import LIMIT, MASSLESS_TIP, inertial, joint, link

import robokit as rk
from robokit.mjcf import to_mjcf
from robokit.urdf import check_urdf, loads_urdf
from robokit.urdf.checks import _surely_of_a_body
from robokit.urdf.description import InertialDescription


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
