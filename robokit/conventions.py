"""The conventions, each chosen once; nothing else in robokit repeats them.

* 6-vectors are angular first: motion [omega; v], force [n; f], momentum [k; l].
* Quaternions are unit, wxyz, and rotate body coordinates into world coordinates.
* A floating base has q = [qw qx qy qz, px py pz] and v = [omega; v], both in base coordinates.
* World z points up. Gravity is an acceleration and enters the recursions as a_0 = -a_g.
* SI units, radians.
"""

GRAVITY = (0.0, 0.0, -9.81)  # acceleration of free fall in world axes [m/s^2]
FLOATING_BASE = "floating_base"  # the 6-dof joint of ``base="floating"`` between world and root link
WORLD = "world"  # name that messages and pictures give body 0 of a floating robot
LARGEST_ANGLE = 2.0**30  # of a configuration [rad]: a double resolves 2e-7 rad there; shifts have no limit
UNIT_QUATERNION_TOLERANCE = 1e-6  # how far |q|^2 of a quaternion argument may be from 1

SNAP = 1e-14
"""Entries of axes and rotations this close to 0 or +-1, and shifts [m] this close to 0, are that number.

An angle of pi/2 leaves 6e-17 in a rotation, some of them one behind the other 1e-15: noise that would cost
operations. What a file says with fewer digits is meant as it stands.
"""
