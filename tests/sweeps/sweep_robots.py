"""Small robots, and sweeps of them, for the tests of sweeps."""

from __future__ import annotations

import numpy as np

import robokit as rk
from robokit.sweeps.distributions import Choice, Normal, Sobol, Uniform
from robokit.sweeps.recipe import make_recipe
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


STARTS = {
    "tilt": Uniform(0.0, 0.8),
    "direction": Uniform(-3.0, 3.0),
    "height": Uniform(0.0, 0.1),
    "speed": Uniform(0.0, 1.0),
    "spin": Normal(0.0, 1.0),
    "joint_noise": 0.2,
    "joint_velocity:hip": Uniform(-1.0, 1.0),
}

OTHERS = {
    "mass": Uniform(0.8, 1.2),
    "mass:pack": Sobol(0.5, 2.0),
    "com_x:trunk": Uniform(-0.05, 0.05),
    "friction": Uniform(0.2, 1.0),
    "push": Uniform(0.0, 2.0),
    "push_time": Uniform(0.0, 0.015),
    "push_link": Choice(["trunk", "leg"]),
}

DURATION = 0.02

WAVE = rk.Keyframes(np.array([0.0, 0.01, 0.02]), ("hip",), np.array([[0.0], [0.3], [0.1]]))


def recipe_of(robot, actuators, parameters, **more):
    given = {"count": 5, "duration": 0.02, "dt": 1e-3, "ground": None, "measures": ["energy"]} | more
    return make_recipe(robot, actuators=actuators, parameters=parameters, **given)
