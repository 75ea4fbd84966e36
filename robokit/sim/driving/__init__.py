"""What drives a robot: actuators with their targets, keyframes, springs, prescribed motions, pushes.

actuators       Torque, PD, Velocity: what drives joints
joint_values    which joints an actuator drives, numbers by joint, rotors
signals         targets that change with time, as tables
keyframes       Keyframes: joint values at points in time
keyframe_files  their files
pushes          Push: forces from outside on links
springs         Spring, JointSpring: springs and dampers between points and at joints
prescribed      PrescribedMotion: joints that move as a function of time says
"""
