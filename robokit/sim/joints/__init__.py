"""What acts at joints and from outside: damping, friction, limits, actuators, loops, pushes.

joint_law      damping, friction and limits of a robot's joints
drives         forces of actuators, within their limits
step_inputs    actuators and forces from outside, as a step takes them
loop_impulses  what holds loop joints closed
"""
