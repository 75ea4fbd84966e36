"""Forces as constraints: each is (J, R, aim, set).

contacts        friction, springs and dampers, bristles, restitution; friction against turning and rolling
joints          damping, dry friction, limits; joints whose motion is given
motors          servos, velocity and torque motors, with their limits
loops           joints that close loops; poses and velocities on which loops are closed
springs         springs and dampers between points and at joints
pushes          given forces on bodies and free bases
adding          a constraint or a row is written into the arrays
collecting      the table of all kinds
"""
