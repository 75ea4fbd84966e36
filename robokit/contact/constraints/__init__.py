"""Forces as constraints: each is (J, R, aim, set).

contacts        friction, springs and dampers, bristles, restitution
spin            friction against turning and rolling
damping         of joints
dry_friction    of joints
limits          stops of joints
motors          servos, velocity and torque motors, with their limits
loops           joints that close loops
springs         springs and dampers between points and at joints
prescribed      joints whose motion is given
pushes          given forces on bodies and free bases
adding          a constraint or a row is written into the arrays
collecting      the table of all kinds
closing         poses and velocities on which loops are closed
"""
