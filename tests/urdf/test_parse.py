"""The parser: one file with every element, and what a slip in any of them gives."""

from robokit.urdf import check_urdf

EVERYTHING = """<robot name="r">
<link name="a">
  <inertial><origin rpy="0 0 1"/><mass value=" 2 "/>
    <inertia izz="1" iyy="1" ixx="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual name="v"><geometry><box size="1 2 3"/></geometry>
    <material name=""><color rgba="1 0 0 1"/><texture/></material></visual>
  <collision><geometry><capsule length="1" radius="2"/></geometry></collision>
  <collision><origin xyz="1 2 3"/><geometry><cylinder radius="1" length="2"/></geometry></collision>
</link>
<link name="b"><visual><geometry><sphere radius="1"/></geometry></visual></link>
<link name="c"/>
<joint type="revolute" name="j"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
  <limit effort="1" velocity="2" upper="1"/><dynamics friction="-0"/><calibration falling="1"/>
  <safety_controller k_velocity="3"/></joint>
<joint name="k" type="prismatic"><parent link="b"/><child link="c"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="j" offset="-0"/></joint>
</robot>"""


SLIPS = (
    ('value=" 2 "', 'value="1_0"', "number-invalid"),
    ('iyz="0"', 'iyz="0 0"', "number-count"),
    ('iyz="0"', 'iyz="" ixx2="1"', "number-count"),
    ('iyz="0"', 'iyz="&#x661;"', "number-invalid"),
    ('xyz="1 2 3"', 'xyz="1 2 1e999"', "number-not-finite"),
    ('xyz="1 2 3"', 'quat_xyzw="0 0 0 1"', "quat-needs-version"),
    ('radius="2"', 'radius="-0"', "geometry-zero-size"),
    ("<texture/>", '<texture filename="a.png"/>', "texture-unresolved"),
    ('<material name="">', '<material name="$(m)">', "xacro-unexpanded"),
    ('<parent link="a"/>', '<parent link="a"/><parent link="b"/>', "element-repeated"),
    ('<sphere radius="1"/>', '<sphere radius="1"/><box size="1 1 1"/>', "element-repeated"),
    ('k_velocity="3"', "", "safety-incomplete"),
    ('joint="j" offset', 'joint="${j}" offset', "xacro-unexpanded"),
    ('<mimic joint="j"', '<mimic joint="j" ofset="1"', "attribute-unknown"),
    ('<axis xyz="0 1 0"/>', '<axis rpy="0 1 0"/>', "attribute-missing"),
    ('upper="1"/>', 'upper="nan"/>', "number-not-finite"),
    ("<mass", "<mas", "mass-missing"),
    ("<joint type", "<joint typ", "joint-type-missing"),
    ('name="j">', 'name=" ">', "name-missing"),
)


def test_every_slip_is_found():
    _, usual = check_urdf(EVERYTHING)
    assert {d.code for d in usual} == {"massless-subtree"}  # link b has shapes only
    for old, new, code in SLIPS:
        assert old in EVERYTHING
        _, found = check_urdf(EVERYTHING.replace(old, new, 1))
        assert code in {d.code for d in found}, (old, new)
