"""Small robots for the tests of sweeps."""

from __future__ import annotations

from robokit.urdf import loads_urdf

HOPPER = """
<robot name="{name}">
  <link name="trunk">
    <inertial><origin xyz="0.01 0 0.02"/><mass value="4"/>
      <inertia ixx="0.05" ixy="0.001" ixz="0" iyy="0.06" iyz="0.002" izz="0.04"/></inertial>
    <collision><geometry><box size="0.3 0.2 0.1"/></geometry></collision>
  </link>
  <link name="pack">
    <inertial><origin xyz="0 0 0.05"/><mass value="0.5"/>
      <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.002" iyz="0" izz="0.001"/></inertial>
  </link>
  <link name="leg">
    <inertial><origin xyz="0 0 -0.15"/><mass value="1.5"/>
      <inertia ixx="0.012" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.001"/></inertial>
    <collision><origin xyz="0 0 -0.3"/><geometry><sphere radius="0.04"/></geometry></collision>
  </link>
  <joint name="strap" type="fixed">
    <parent link="trunk"/><child link="pack"/><origin xyz="-0.1 0 0.05" rpy="0.3 0.2 0.1"/></joint>
  <joint name="hip" type="revolute">
    <parent link="trunk"/><child link="leg"/><origin xyz="0 0 -0.05" rpy="0 0.1 0.2"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="50" velocity="20"/><dynamics damping="0.2"/></joint>
</robot>
"""


def hopper(name="hopper", base="floating"):
    """A trunk with a pack on it, and a leg with a round foot."""
    return loads_urdf(HOPPER.format(name=name), base=base)
