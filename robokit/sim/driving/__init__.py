"""What drives a robot: actuators with their targets, keyframes, springs, prescribed motions, pushes.

actuators       Torque, PD, Velocity: what drives joints
keyframes       Keyframes: joint values at points in time
pushes          Push: forces from outside on links
springs         Spring, JointSpring: springs and dampers between points and at joints
prescribed      PrescribedMotion: joints that move as a function of time says
"""
