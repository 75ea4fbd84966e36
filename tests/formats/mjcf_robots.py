"""MJCF robots of the kinds that people have: name -> text, and files that some of them need beside them."""

# ruff: noqa: E501

HUMANOID = """
<mujoco model="humanoid">
  <compiler angle="degree"/>
  <default>
    <joint damping="2" armature="0.01" limited="true" stiffness="0"/>
    <geom density="900" friction="0.8 0.005 0.0001" rgba="0.8 0.6 0.4 1"/>
    <default class="limb"><geom type="capsule" size="0.05"/></default>
  </default>
  <asset><material name="floor" rgba="0.3 0.3 0.3 1"/></asset>
  <worldbody>
    <light pos="0 0 3"/><camera name="side" pos="0 -3 1"/>
    <geom name="floor" type="plane" size="5 5 0.1" material="floor" friction="0.7"/>
    <body name="torso" pos="0 0 1.2">
      <freejoint name="root"/>
      <geom name="torso" type="capsule" fromto="0 -0.1 0 0 0.1 0" size="0.09"/>
      <geom name="head" pos="0 0 0.25" size="0.09"/>
      <site name="imu" pos="0 0 0.1"/>
      <body name="waist" pos="0 0 -0.2">
        <joint name="abdomen_z" axis="0 0 1" pos="0 0 0.05" range="-45 45"/>
        <joint name="abdomen_y" axis="0 1 0" pos="0 0 0.05" range="-60 30"/>
        <geom type="capsule" fromto="0 -0.06 0 0 0.06 0" size="0.08"/>
        <body name="right_thigh" pos="0 -0.1 -0.05" childclass="limb">
          <joint name="right_hip_x" axis="1 0 0" range="-25 10"/>
          <joint name="right_hip_z" axis="0 0 1" range="-60 35"/>
          <joint name="right_hip_y" axis="0 1 0" range="-110 20" armature="0.03"/>
          <geom fromto="0 0 0 0 0.01 -0.34"/>
          <body name="right_shin" pos="0 0.01 -0.4">
            <joint name="right_knee" axis="0 -1 0" pos="0 0 0.02" range="-160 2"/>
            <geom fromto="0 0 0 0 0 -0.3"/>
            <geom name="right_foot" type="sphere" pos="0 0 -0.35" size="0.07"/>
          </body>
        </body>
        <body name="left_thigh" pos="0 0.1 -0.05" childclass="limb">
          <joint name="left_hip_x" axis="-1 0 0" range="-25 10"/>
          <joint name="left_hip_z" axis="0 0 -1" range="-60 35"/>
          <joint name="left_hip_y" axis="0 1 0" range="-110 20" armature="0.03"/>
          <geom fromto="0 0 0 0 -0.01 -0.34"/>
          <body name="left_shin" pos="0 -0.01 -0.4">
            <joint name="left_knee" axis="0 -1 0" pos="0 0 0.02" range="-160 2"/>
            <geom fromto="0 0 0 0 0 -0.3"/>
            <geom name="left_foot" type="sphere" pos="0 0 -0.35" size="0.07"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="right_knee" gear="80"/><motor joint="left_knee" gear="80" ctrlrange="-1 1"/>
  </actuator>
  <sensor><gyro site="imu"/><accelerometer name="acc" site="imu"/></sensor>
  <contact><exclude body1="waist" body2="right_thigh"/></contact>
</mujoco>"""

QUADRUPED = """
<mujoco model="quadruped">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.004" cone="elliptic"/>
  <default>
    <default class="dog">
      <geom friction="0.6" contype="1" conaffinity="1" condim="3"/>
      <joint axis="0 1 0" damping="0.5" armature="0.01" frictionloss="0.2"/>
      <position kp="100" forcerange="-24 24" inheritrange="1"/>
      <default class="visual"><geom type="box" contype="0" conaffinity="0" group="2" mass="0"/></default>
      <default class="collision"><geom type="capsule" group="3"/></default>
      <default class="abduction"><joint axis="1 0 0" range="-1 1"/></default>
      <default class="hip"><joint range="-1.5 3.4"/></default>
      <default class="knee"><joint range="-2.7 -0.8"/></default>
      <default class="foot"><geom type="sphere" size="0.022" group="3"/></default>
    </default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 0.05"/>
    <body name="base" pos="0 0 0.4" childclass="dog">
      <inertial pos="0.02 0 0" mass="6.9" diaginertia="0.1 0.09 0.02" quat="0.98 0.1 0 0.1"/>
      <freejoint/>
      <geom class="visual" size="0.19 0.05 0.06" rgba="0.2 0.2 0.2 1"/>
      <geom class="collision" type="box" size="0.19 0.05 0.06"/>
      LEGS
    </body>
  </worldbody>
  <actuator>ACTUATORS</actuator>
  <keyframe><key name="home" qpos="0 0 0.27 1 0 0 0 HOME" ctrl="HOME"/></keyframe>
</mujoco>"""

_LEG = """
      <body name="N_hip" pos="X Y 0">
        <inertial pos="0 0 0" mass="0.7" diaginertia="0.0005 0.0006 0.0004"/>
        <joint class="abduction" name="N_hip_joint"/>
        <body name="N_thigh" pos="0 S0.08 0">
          <inertial pos="0 0 -0.03" mass="1.15" fullinertia="0.006 0.006 0.001 0.0001 0.0003 -0.0002"/>
          <joint class="hip" name="N_thigh_joint"/>
          <geom class="collision" size="0.016" fromto="0 0 0 0 0 -0.2"/>
          <body name="N_calf" pos="0 0 -0.213">
            <inertial pos="0 0 -0.1" mass="0.15" diaginertia="0.003 0.003 0.0001"/>
            <joint class="knee" name="N_calf_joint"/>
            <geom class="collision" size="0.012" fromto="0 0 0 0 0 -0.19"/>
            <geom class="foot" name="N" pos="0 0 -0.213"/>
          </body>
        </body>
      </body>"""
_LEGS = [("FL", "0.19", "0.05", ""), ("FR", "0.19", "-0.05", "-"), ("RL", "-0.19", "0.05", "")]
_LEGS += [("RR", "-0.19", "-0.05", "-")]
QUADRUPED = (
    QUADRUPED.replace(
        "LEGS",
        "".join(
            _LEG.replace("N", n).replace("X", x).replace("Y", y).replace("S0", f"{s}0")
            for n, x, y, s in _LEGS
        ),
    )
    .replace(
        "ACTUATORS",
        "".join(
            f'<position class="dog" name="{n}_{j}" joint="{n}_{j}_joint"/>'
            for n, *_ in _LEGS
            for j in ("hip", "thigh", "calf")
        ),
    )
    .replace("HOME", "0 0.9 -1.8 " * 4)
)

ARM_WITH_GRIPPER = """
<mujoco model="arm">
  <compiler angle="radian" autolimits="true"/>
  <option integrator="implicitfast"/>
  <default>
    <joint armature="0.1" damping="1" axis="0 0 1" range="-2.8 2.8"/>
    <general dyntype="none" biastype="affine" ctrlrange="-2.8 2.8" forcerange="-87 87"/>
    <default class="finger"><joint axis="0 1 0" type="slide" range="0 0.04"/></default>
  </default>
  <worldbody>
    <body name="link0">
      <inertial mass="0.6" pos="-0.04 0 0.05" fullinertia="0.003 0.004 0.005 0.0001 0.0001 0.0002"/>
      <geom type="cylinder" size="0.06 0.05" pos="0 0 0.05"/>
      <body name="link1" pos="0 0 0.333">
        <inertial mass="4.9" pos="0.003 0.002 -0.05" fullinertia="0.7 0.7 0.01 -0.0002 0.007 0.02"/>
        <joint name="joint1"/>
        <body name="link2" quat="1 -1 0 0">
          <inertial mass="0.65" pos="-0.003 -0.03 0.003" fullinertia="0.008 0.028 0.026 -0.004 0.01 0.0007"/>
          <joint name="joint2" range="-1.76 1.76"/>
          <body name="link3" pos="0 -0.316 0" quat="1 1 0 0">
            <joint name="joint3"/>
            <inertial mass="3.2" pos="0.03 0.04 -0.066" fullinertia="0.037 0.036 0.01 -0.004 -0.01 -0.012"/>
            <geom type="capsule" size="0.05 0.1" pos="0 0 -0.1"/>
            <body name="hand" pos="0 0 0.107" quat="0.92388 0 0 -0.382683">
              <inertial mass="0.73" pos="-0.01 0 0.03" diaginertia="0.001 0.0025 0.0017"/>
              <site name="tcp" pos="0 0 0.1" euler="0 0 0.5"/>
              <body name="left_finger" pos="0 0 0.0584">
                <inertial mass="0.015" pos="0 0 0" diaginertia="2.4e-6 2.4e-6 7.5e-7"/>
                <joint name="finger_joint1" class="finger"/>
                <geom type="box" size="0.01 0.005 0.02" pos="0 0.01 0.02" friction="1.5"/>
              </body>
              <body name="right_finger" pos="0 0 0.0584" quat="0 0 0 1">
                <inertial mass="0.015" pos="0 0 0" diaginertia="2.4e-6 2.4e-6 7.5e-7"/>
                <joint name="finger_joint2" class="finger"/>
                <geom type="box" size="0.01 0.005 0.02" pos="0 0.01 0.02" friction="1.5"/>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="split">
      <joint joint="finger_joint1" coef="0.5"/><joint joint="finger_joint2" coef="0.5"/>
    </fixed>
  </tendon>
  <equality><joint joint1="finger_joint1" joint2="finger_joint2" solimp="0.95 0.99 0.001"/></equality>
  <actuator>
    <general name="a1" joint="joint1" gainprm="4500" biasprm="0 -4500 -450"/>
    <general name="a2" joint="joint2" gainprm="4500" biasprm="0 -4500 -450"/>
    <general name="a3" joint="joint3" gainprm="3500" biasprm="0 -3500 -350"/>
    <general name="grip" tendon="split" forcerange="-100 100" ctrlrange="0 255"
             gainprm="0.01568627451 0 0" biasprm="0 -100 -10"/>
  </actuator>
  <keyframe><key name="home" qpos="0 0.3 0 0.04 0.04"/></keyframe>
</mujoco>"""

_FINGER = """
      <body name="Fp" pos="P 0 0.05">
        <joint name="F_mcp" axis="0 1 0" range="0 1.6"/>
        <geom type="capsule" size="0.008" fromto="0 0 0 0 0 0.04"/>
        <body name="Fm" pos="0 0 0.045">
          <joint name="F_pip" axis="0 1 0" range="0 1.6"/>
          <geom type="capsule" size="0.007" fromto="0 0 0 0 0 0.025"/>
          <body name="Fd" pos="0 0 0.03">
            <joint name="F_dip" axis="0 1 0" range="0 1.6"/>
            <geom type="capsule" size="0.006" fromto="0 0 0 0 0 0.02"/>
          </body>
        </body>
      </body>"""
HAND = """
<mujoco model="hand">
  <compiler angle="radian"/>
  <default><joint damping="0.02" armature="0.0002"/></default>
  <worldbody>
    <body name="palm" pos="0 0 0.1">
      <geom type="box" size="0.04 0.01 0.045" density="500"/>
      FINGERS
    </body>
  </worldbody>
  <tendon>
    <fixed name="pull"><joint joint="A_pip" coef="1"/><joint joint="A_dip" coef="-1.25"/></fixed>
  </tendon>
  <equality>
    <tendon tendon1="pull"/>
    <joint joint1="B_dip" joint2="B_pip" polycoef="0.05 0.8 0 0 0"/>
    <joint joint1="C_dip" joint2="C_pip" polycoef="0 1 0.2 0 0"/>
  </equality>
  <actuator><position joint="A_mcp" kp="3"/><position joint="B_mcp" kp="3" kv="0.1"/></actuator>
</mujoco>""".replace(
    "FINGERS",
    "".join(
        _FINGER.replace("F", f).replace("P", p) for f, p in zip("ABC", ("-0.03", "0", "0.03"), strict=True)
    ),
)

DRONE = """
<mujoco model="drone">
  <option density="1.225" viscosity="1.8e-5"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="frame" pos="0 0 0.3">
      <freejoint/>
      <inertial pos="0 0 0.026" mass="1.325" diaginertia="0.0409 0.0391 0.0698"/>
      <geom type="ellipsoid" size="0.12 0.08 0.03"/>
      <replicate count="4" euler="0 0 90" sep="-">
        <geom type="cylinder" size="0.06 0.01" pos="0.14 0.14 0.02"/>
        <site name="rotor" pos="0.14 0.14 0.03"/>
      </replicate>
    </body>
  </worldbody>
  <actuator>
    <motor name="thrust0" site="rotor-0" gear="0 0 1 0 0 -0.02" ctrlrange="0 13"/>
    <motor name="thrust1" site="rotor-1" gear="0 0 1 0 0 0.02" ctrlrange="0 13"/>
  </actuator>
</mujoco>"""

BIPED_WITH_LOOPS = """
<mujoco model="biped">
  <compiler angle="degree"/>
  <default><joint damping="0.1" armature="0.02"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="pelvis" pos="0 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.15 0.08" mass="10"/>
      <body name="thigh" pos="0 0.1 -0.1">
        <joint name="hip" axis="0 1 0" range="-50 80"/>
        <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.4" mass="2"/>
        <body name="rod" pos="0.08 0 -0.05">
          <joint name="rod_ball" type="ball"/>
          <geom type="capsule" size="0.01" fromto="0 0 0 0 0 -0.35" mass="0.2" contype="0" conaffinity="0"/>
        </body>
        <body name="shin" pos="0 0 -0.4">
          <joint name="knee" axis="0 1 0" range="-100 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 0.08 0 0" mass="0.3"/>
          <geom type="capsule" size="0.025" fromto="0 0 0 0 0 -0.4" mass="1"/>
          <body name="foot" pos="0 0 -0.42">
            <joint name="toe" axis="0 1 0" stiffness="30" springref="5" range="-40 40"/>
            <geom type="box" size="0.1 0.04 0.015" pos="0.03 0 0" mass="0.5"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><connect name="rod_end" body1="rod" body2="shin" anchor="0 0 -0.35"/></equality>
  <actuator><motor joint="hip" gear="25" ctrllimited="true" ctrlrange="-4 4"/></actuator>
</mujoco>"""

MOBILE_BASE = """
<mujoco model="rover">
  <default><default class="wheel">
    <joint axis="0 1 0" damping="0.05" armature="0.002"/>
    <geom type="cylinder" size="0.08 0.025" quat="1 1 0 0" friction="1.2 0.01 0.001" condim="6"/>
    <velocity kv="4" forcerange="-6 6"/>
  </default></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 1" condim="6" friction="1 0.01 0.001"/>
    <body name="chassis" pos="0 0 0.1">
      <joint name="free" type="free"/>
      <geom type="box" size="0.25 0.15 0.05" mass="9"/>
      <body name="caster" pos="-0.2 0 -0.05"><geom size="0.03" pos="0 0 0" mass="0.2" friction="0.01"/></body>
      <body name="left" pos="0.1 0.18 -0.02" childclass="wheel"><joint name="left_wheel"/><geom mass="0.8"/></body>
      <body name="right" pos="0.1 -0.18 -0.02" childclass="wheel"><joint name="right_wheel"/><geom mass="0.8"/></body>
      <body name="mast" pos="0 0 0.05"><joint name="lift" type="slide" axis="0 0 1" range="0 0.3"/>
        <geom type="box" size="0.03 0.03 0.2" pos="0 0 0.2" mass="1"/></body>
    </body>
  </worldbody>
  <actuator>
    <velocity class="wheel" joint="left_wheel"/><velocity class="wheel" joint="right_wheel"/>
    <position joint="lift" kp="500" dampratio="1"/>
  </actuator>
</mujoco>"""

_SIDE = """
      <body name="S_upper" pos="0 Y0.2 0.3" euler="0 0 Y20">
        <joint name="S_shoulder" axis="0 1 0" pos="0 Y0.02 0"/><joint name="S_roll" axis="1 0 0"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0 0"/>
        <body name="S_fore" pos="0.3 0 0"><joint name="S_elbow" axis="0 0 1" pos="0.01 0 0"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0.25 0 0"/></body>
      </body>"""
DUAL_ARM = """
<mujoco model="dual_arm">
  <default><joint damping="0.5"/></default>
  <worldbody>
    <geom name="table" type="box" size="0.4 0.6 0.02" pos="0.5 0 0" friction="0.5"/>
    <body name="pedestal" pos="-0.1 0 0.2" euler="0 0 10">
      <geom type="box" size="0.1 0.1 0.2"/>
      SIDES
    </body>
  </worldbody>
  <contact><exclude body1="l_fore" body2="r_fore"/></contact>
</mujoco>""".replace(
    "SIDES", _SIDE.replace("S_", "l_").replace("Y", "") + _SIDE.replace("S_", "r_").replace("Y", "-")
)

SNAKE = """
<mujoco model="snake">
  <option density="0"/>
  <default><geom type="capsule" size="0.03" density="800"/><joint damping="0.05" armature="0.003"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="head" pos="0 0 0.05">
      <joint name="slide_x" type="slide" axis="1 0 0" armature="0" damping="0"/>
      <joint name="slide_y" type="slide" axis="0 1 0" armature="0" damping="0"/>
      <joint name="slide_z" type="slide" axis="0 0 1" armature="0" damping="0"/>
      <joint name="spin" type="ball" damping="0" armature="0"/>
      <geom fromto="0 0 0 0.15 0 0"/>
      <body name="s1" pos="0.2 0 0"><joint name="y1" axis="0 0 1" pos="-0.02 0 0"/><joint name="p1" axis="0 1 0" pos="-0.02 0 0"/>
        <geom fromto="0 0 0 0.15 0 0"/>
        <body name="s2" pos="0.2 0 0"><joint name="y2" axis="0 0 1" pos="-0.02 0.01 0"/><joint name="p2" axis="0 1 0"/>
          <geom fromto="0 0 0 0.15 0 0"/></body></body>
    </body>
  </worldbody>
</mujoco>"""

BALLS = """
<mujoco model="balls">
  <default><joint type="ball" damping="0.02" armature="0.004"/></default>
  <worldbody>
    <body name="a" pos="0 0 1"><joint name="ja" range="0 1.2" limited="true"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0.05 -0.2"/>
      <body name="b" pos="0.2 0.05 -0.2" euler="20 30 40"><joint name="jb" pos="0.01 0.02 0.03"/>
        <geom type="box" size="0.05 0.04 0.1" pos="0.03 0 -0.1"/></body></body>
  </worldbody>
</mujoco>"""

MESHES = """
<mujoco model="meshes">
  <compiler meshdir="parts"/>
  <asset>
    <mesh name="wedge" file="wedge.obj" scale="0.1 0.2 -0.15"/>
    <mesh name="moved" file="wedge.obj" scale="0.1 0.1 0.1" refpos="0.3 0 0" refquat="1 0 0.3 0"/>
    <mesh name="tetra" vertex="0 0 0  0.2 0 0  0 0.2 0  0 0 0.2"/>
    <mesh name="thin" file="wedge.obj" scale="0.1 0.1 0.1" inertia="shell"/>
  </asset>
  <worldbody>
    <geom type="plane" size="2 2 1"/>
    <body name="body" pos="0 0 0.5" quat="0.9 0.1 0.2 0.3">
      <freejoint/>
      <geom type="mesh" mesh="wedge" pos="0.1 0 0" euler="10 20 30" rgba="1 0 0 1"/>
      <geom type="mesh" mesh="moved" pos="-0.2 0 0"/>
      <body name="arm" pos="0 0 0.2"><joint name="hinge" axis="1 1 0" pos="0 0 -0.05" damping="0.05"/>
        <geom type="mesh" mesh="tetra"/><geom type="mesh" mesh="thin" pos="0.2 0 0"/></body>
    </body>
  </worldbody>
</mujoco>"""

INCLUDING = """
<mujoco model="including">
  <include file="common/options.xml"/>
  <worldbody>
    <body name="stand"><geom type="box" size="0.1 0.1 0.1"/><include file="common/link.xml"/></body>
  </worldbody>
</mujoco>"""

COMPILER = """
<mujoco model="compiler">
  <compiler angle="degree" eulerseq="zyx" autolimits="false" inertiafromgeom="true" balanceinertia="true"
            boundmass="0.02" boundinertia="1e-5" coordinate="local"/>
  <worldbody>
    <body name="a" pos="0.1 0.2 0.3" euler="10 20 30">
      <joint name="limited" axis="1 2 3" range="-30 40" limited="true"/>
      <geom type="box" size="0.1 0.2 0.05" euler="5 6 7" pos="0.1 0 0"/>
      <inertial pos="9 9 9" mass="99" diaginertia="9 9 9"/>
      <body name="b" pos="0.3 0 0" axisangle="0 1 0 35">
        <joint name="free_of_limits" axis="0 0 1" range="-10 10" limited="false"/>
        <geom type="sphere" size="0.01" pos="0.05 0 0"/>
        <body name="c" pos="0.1 0 0" xyaxes="0 1 0 -1 0 0.2">
          <joint name="slider" type="slide" axis="0 1 1" range="-0.1 0.2" limited="true"/>
          <geom type="cylinder" size="0.03 0.1" zaxis="1 0 1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""

FRAMES = """
<mujoco model="frames">
  <default><default class="heavy"><geom density="4000"/><joint damping="0.2"/></default></default>
  <worldbody>
    <frame pos="0 0 0.5" euler="0 0 30">
      <body name="trunk">
        <freejoint/>
        <geom type="box" size="0.2 0.1 0.05"/>
        <frame pos="0.2 0 0" childclass="heavy">
          <body name="swing"><joint name="swing" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"/></body>
        </frame>
        <replicate count="3" offset="0 0.06 0" sep="_">
          <body name="toe" pos="-0.2 -0.06 0"><joint name="toe" axis="0 1 0" damping="0.1"/>
            <geom type="capsule" size="0.015" fromto="0 0 0 -0.1 0 -0.05"/></body>
        </replicate>
      </body>
    </frame>
    <geom type="plane" size="4 4 1"/>
  </worldbody>
</mujoco>"""

ATTACHED = """
<mujoco model="attached">
  <asset><model name="part" file="part.xml"/></asset>
  <worldbody>
    <geom type="plane" size="4 4 1"/>
    <body name="trunk" pos="0 0 0.6"><freejoint/><geom type="box" size="0.15 0.1 0.05"/>
      <frame pos="0.15 0 0"><attach model="part" body="limb" prefix="front_"/></frame>
      <frame pos="-0.15 0 0" euler="0 0 180"><attach model="part" body="limb" prefix="rear_"/></frame>
    </body>
  </worldbody>
</mujoco>"""

REFERENCES = """
<mujoco model="references">
  <compiler angle="degree"/>
  <option gravity="0.3 0 -3.7" timestep="0.001"/>
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="turn" axis="0 1 0" pos="0.1 0 0.05" ref="30" range="-20 80" springref="40" stiffness="5"
             armature="0.02" damping="0.3" frictionloss="0.1" solreflimit="0.01 1"/>
      <geom type="capsule" size="0.04" fromto="0 0 0 0.4 0 0"/>
      <body name="b" pos="0.4 0 0" euler="0 30 0">
        <joint name="shift" type="slide" axis="1 0 0.5" ref="0.1" range="0 0.3" damping="1"/>
        <geom type="box" size="0.1 0.05 0.05"/>
        <body name="c" pos="0.2 0 0"><joint name="twist" axis="1 0 0" ref="-15"/><joint name="bend" axis="0 1 0" ref="10"/>
          <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 0.1"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="turn" gear="10" armature="0.001" damping="0.01"/>
            <intvelocity joint="twist" kp="10" actrange="-1 1"/></actuator>
</mujoco>"""

SCENERY = """
<mujoco model="scenery">
  <asset><hfield name="hills" nrow="3" ncol="4" size="2 1.5 0.2 0.1"
         elevation="0 0.1 0.2 0.1  0.3 0.5 0.5 0.2  0 0 0.1 1"/></asset>
  <worldbody>
    <geom name="hills" type="hfield" hfield="hills" pos="0 0 -1"/>
    <geom name="ramp" type="plane" size="3 3 1" euler="0 8 0" friction="0.9"/>
    <geom name="step" type="box" size="0.2 0.5 0.05" pos="1 0 0.05"/>
    <geom name="poster" type="box" size="0.5 0.01 0.3" pos="0 2 1" contype="0" conaffinity="0"/>
    <body name="table" pos="-1 0 0"><geom type="cylinder" size="0.3 0.2" pos="0 0 0.2"/></body>
    <body name="ball" pos="0 0 0.6"><freejoint/><geom size="0.1" friction="0.4"/>
      <body name="tail" pos="0.1 0 0"><joint name="wag" axis="0 0 1" damping="0.01"/>
        <geom name="tail" type="capsule" size="0.02" fromto="0 0 0 0.2 0 0" contype="2" conaffinity="2"/></body></body>
  </worldbody>
  <contact><pair geom1="tail" geom2="step"/></contact>
</mujoco>"""

SEVERAL = """
<mujoco model="several">
  <worldbody>
    <geom type="plane" size="3 3 1"/>
    <body name="cart" pos="0 0 0.5"><joint name="rail" type="slide" axis="1 0 0" damping="0.1"/>
      <geom type="box" size="0.1 0.05 0.05"/>
      <body name="pole"><joint name="pivot" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.4"/></body></body>
    <body name="box" pos="0.5 0.5 0.2" euler="10 0 0"><freejoint name="box_free"/><geom type="box" size="0.1 0.1 0.1"/></body>
    <body name="ball" pos="-0.5 0.5 0.3"><freejoint name="ball_free"/><geom size="0.1"/></body>
  </worldbody>
</mujoco>"""

HELD = """
<mujoco model="held">
  <worldbody>
    <geom type="plane" size="3 3 1"/>
    <body name="target" mocap="true" pos="0 0 1"><geom size="0.02" contype="0" conaffinity="0"/></body>
    <body name="beam" pos="0 0 0.8"><freejoint/><geom type="box" size="0.3 0.05 0.05"/>
      <body name="tip" pos="0.3 0 0" gravcomp="1"><joint name="flap" axis="0 1 0" damping="0.1"/>
        <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0"/></body></body>
  </worldbody>
  <equality>
    <connect name="nail" body1="beam" anchor="-0.3 0 0"/>
    <weld name="off" body1="beam" body2="target" active="false"/>
  </equality>
</mujoco>"""

FOUR_BAR = """
<mujoco model="four_bar">
  <compiler angle="radian"/>
  <default><geom type="capsule" size="0.02"/><joint axis="0 1 0" damping="0.05"/></default>
  <worldbody>
    <body name="crank"><joint name="crank"/><geom fromto="0 0 0 0 0 0.2"/>
      <body name="coupler" pos="0 0 0.2"><joint name="coupler"/><geom fromto="0 0 0 0.5 0 0.1"/>
        <site name="end" pos="0.5 0 0.1"/></body></body>
    <body name="rocker" pos="0.5 0 0"><joint name="rocker"/><geom fromto="0 0 0 0 0 0.3"/><site name="top" pos="0 0 0.3"/></body>
  </worldbody>
  <equality><connect site1="end" site2="top"/></equality>
</mujoco>"""

FUSED = """
<mujoco model="fused">
  <compiler fusestatic="false" angle="radian"/>
  <worldbody>
    <geom type="plane" size="3 3 1"/>
    <body name="base" pos="0 0 0.4"><freejoint/><geom type="box" size="0.1 0.1 0.05"/>
      <body name="sensor_mount" pos="0.1 0 0.1" euler="0.3 0.2 0.1"><geom type="box" size="0.02 0.02 0.02"/>
        <body name="sensor"><geom type="cylinder" size="0.01 0.02" pos="0 0 0.03"/><site name="lens" pos="0 0 0.05"/></body>
        <body name="flag" pos="0 0 0.05"><joint name="wave" axis="0 0 1" pos="0.01 0 0" damping="0.02"/>
          <geom type="box" size="0.05 0.002 0.03" pos="0.05 0 0"/></body></body>
    </body>
  </worldbody>
</mujoco>"""

LINKAGE_GRIPPER = """
<mujoco model="linkage_gripper">
<compiler angle="radian" autolimits="true"/><option cone="elliptic" impratio="10"/>
<default><default class="gripper"><joint axis="1 0 0"/>
<default class="driver"><joint range="0 0.8" armature="0.005" damping="0.1" solreflimit="0.005 1"/></default>
<default class="follower"><joint range="-0.872664 0.872664" pos="0 -0.018 0.0065" solreflimit="0.005 1"/></default>
<default class="spring_link"><joint range="-0.29670597283 0.8" stiffness="0.05" springref="2.62" damping="0.00125"/></default>
<default class="coupler"><joint range="-1.57 0" solreflimit="0.005 1"/></default>
</default></default>
<worldbody><body name="base" childclass="gripper"><inertial mass="0.77" pos="0 0 0.03" diaginertia="0.0003 0.0003 0.0003"/>
<body name="right_driver" pos="0 0.03 0.055"><inertial mass="0.009" pos="0 0.017 0.003" diaginertia="1.7e-6 1.6e-6 2.8e-7"/><joint name="right_driver_joint" class="driver"/>
 <body name="right_coupler" pos="0 0.0315 -0.0041"><inertial mass="0.014" pos="0 0.003 0.01" diaginertia="2.3e-6 2.2e-6 6e-7"/><joint name="right_coupler_joint" class="coupler"/></body></body>
<body name="right_spring_link" pos="0 0.0132 0.0609"><inertial mass="0.022" pos="0 0.018 0.02" diaginertia="8e-6 7e-6 1.6e-6"/><joint name="right_spring_link_joint" class="spring_link"/>
 <body name="right_follower" pos="0 0.055 0.0375"><inertial mass="0.012" pos="0 -0.011 0.012" diaginertia="2e-6 1.8e-6 6e-7"/><joint name="right_follower_joint" class="follower"/></body></body>
<body name="left_driver" pos="0 -0.03 0.055" quat="0 0 0 1"><inertial mass="0.009" pos="0 0.017 0.003" diaginertia="1.7e-6 1.6e-6 2.8e-7"/><joint name="left_driver_joint" class="driver"/></body>
</body></worldbody>
<contact><exclude body1="base" body2="left_driver"/></contact>
<tendon><fixed name="split"><joint joint="right_driver_joint" coef="0.5"/><joint joint="left_driver_joint" coef="0.5"/></fixed></tendon>
<equality><connect anchor="0 -0.018 0.0065" body1="right_follower" body2="right_coupler" solimp="0.95 0.99 0.001" solref="0.005 1"/>
<joint joint1="right_driver_joint" joint2="left_driver_joint" polycoef="0 1 0 0 0"/></equality>
<actuator><general class="gripper" name="fingers_actuator" tendon="split" forcerange="-5 5" ctrlrange="0 255" gainprm="0.3137255 0 0" biastype="affine" biasprm="0 -100 -10"/></actuator>
</mujoco>"""

ROBOTS = {
    "humanoid": HUMANOID,
    "quadruped": QUADRUPED,
    "arm_with_gripper": ARM_WITH_GRIPPER,
    "hand": HAND,
    "drone": DRONE,
    "biped_with_loops": BIPED_WITH_LOOPS,
    "mobile_base": MOBILE_BASE,
    "dual_arm": DUAL_ARM,
    "snake": SNAKE,
    "balls": BALLS,
    "meshes": MESHES,
    "including": INCLUDING,
    "compiler": COMPILER,
    "frames": FRAMES,
    "attached": ATTACHED,
    "references": REFERENCES,
    "scenery": SCENERY,
    "several": SEVERAL,
    "held": HELD,
    "four_bar": FOUR_BAR,
    "fused": FUSED,
    "linkage_gripper": LINKAGE_GRIPPER,
}

FILES = {
    "parts/wedge.obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 0 0.6\nf 1 3 2\nf 1 2 5\nf 1 5 4\nf 1 4 3\n"
    "f 2 3 5\nf 3 4 5\n",
    "common/options.xml": '<mujocoinclude><compiler angle="radian"/><option timestep="0.003"/>'
    '<default><joint damping="0.1" armature="0.01"/></default></mujocoinclude>',
    "common/link.xml": '<mujocoinclude><body name="link" pos="0 0 0.1"><joint name="link" axis="0 1 0"/>'
    '<geom type="capsule" size="0.02" fromto="0 0 0 0.1 0 0.2"/></body></mujocoinclude>',
    "part.xml": '<mujoco model="part"><compiler angle="radian"/><default><geom density="500"/></default><worldbody>'
    '<body name="limb"><joint name="hip" axis="0 1 0" range="-1 1" damping="0.2"/>'
    '<geom type="capsule" size="0.02" fromto="0 0 0 0.1 0 -0.2"/><body name="lower" pos="0.1 0 -0.2">'
    '<joint name="knee" axis="0 1 0" damping="0.2"/><geom type="capsule" size="0.015" fromto="0 0 0 0 0 -0.2"/></body></body>'
    "</worldbody></mujoco>",
}


def write(folder):
    """Write all robots and their files into a folder; returns name -> path."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    paths = {name: folder / f"{name}.xml" for name in ROBOTS}
    for name, path in paths.items():
        path.write_text(ROBOTS[name])
    return paths
