"""The arrays of a step with contacts: what each holds, its shape and who writes it.

The robot is data. Vectors of the step are in world axes, about one origin (that of body 1), so that the columns
of all joints and bodies can be compared without transforms. Degrees of freedom are those of the tree; those
that follow others share a row of the unknown with them (``dof_row``, ``dof_gain``), and their columns S have the gain
in them: V_b = sum over the dofs j of b's path of S_j v[dof_row[j]].
"""

from __future__ import annotations

from robokit.engine.loops.fields import real, whole

ROBOT = (
    whole("parent", "n_bodies"),  # lambda; of the world -1
    whole("body_dofs", "n_bodies", 2),  # first dof of a body's joint, and how many
    whole("joint_kind", "n_bodies"),  # row of the joint table (contact/robot_data.py)
    real("joint_axes", "n_bodies", 9),  # rows t1, t2, axis (model.joints.plane_axes), in the joint's frame
    real("joint_pitch", "n_bodies"),  # of a screw [m/rad]
    real("joint_placement", "n_bodies", 12),  # rotation by rows and origin: x_parent = R x_joint + r
    whole("joint_coordinate", "n_bodies"),  # first of a joint's coordinates of the tree
    whole("coordinate_from", "n_coordinates"),  # place in q of each coordinate of the tree, or -1
    real("coordinate_gain", "n_coordinates"),
    real("coordinate_offset", "n_coordinates"),
    whole("dof_parent", "n_dofs"),  # the dof before it on its path, or -1
    whole("dof_body", "n_dofs"),
    whole("dof_row", "n_dofs"),  # its place in v, or -1: it stands still
    real("dof_gain", "n_dofs"),
    real("dof_axis", "n_dofs", 6),  # column of S in body coordinates, constant
    real("armature", "n_dofs"),  # of rotors [kg m^2 | kg]
    whole("path", "n_dofs", 2),  # first of a dof's entries of `ancestors`, and how many
    whole("ancestors", "n_path"),  # the dofs above it, nearest first, itself not
    real("inertia", "n_bodies", 10),  # m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz in body coordinates
    real("gravity", 3),  # [m/s^2]
)
"""The robot, or several in one world."""

MOTION = (
    real("R", "n_bodies", 9, role="work"),  # see collision/fields.py
    real("p", "n_bodies", 3, role="work"),
    real("origin", 3, role="work"),
    real("S", "n_dofs", 6, role="work"),  # columns: angular first, about the step's origin, gain included
    real("I", "n_bodies", 10, role="work"),  # inertias like `inertia`, in world axes about the origin
    real("V", "n_bodies", 6, role="work"),  # velocities of the bodies at the kick's beginning
    real("H", "nv", "nv", role="work"),  # mass matrix, rows >= columns
)
"""The robot at the middle of the step, where the forces act."""

CONSTRAINTS = (
    # Contacts and loops: three rows each, u = E (V_b - V_a)
    whole("c_kind", "n_constraints", role="work"),  # FRICTION, LINE, SPIN
    whole("c_bodies", "n_constraints", 2, role="work"),  # a and b
    whole("c_of", "n_constraints", role="work"),  # SPIN: the contact that it belongs to, an earlier one
    real("c_E", "n_constraints", 18, role="work"),  # three rows, angular first: t1, t2, n
    real("c_R", "n_constraints", 2, role="work"),  # compliance R_t, R_n [1/(kg)]: of the tangents, of the normal
    real("c_aim", "n_constraints", 3, role="work"),  # velocities that they aim at [m/s]
    real("c_mu", "n_constraints", role="work"),  # coefficient of friction; SPIN: arm of rolling [m]
    real("c_arm", "n_constraints", role="work"),  # SPIN: arm of torsion [m]
    real("c_shift", "n_constraints", role="work"),  # De Saxce's; SPIN: the normal impulse of its contact [N s]
    real("c_u", "n_constraints", 3, role="work"),  # velocities
    real("c_du", "n_constraints", 3, role="work"),  # along the search direction
    real("c_g", "n_constraints", 3, role="work"),  # impulses [N s]
    real("c_G", "n_constraints", 6, role="work"),  # -dg/du: 11, 12, 22, 13, 23, 33
    real("c_G_last", "n_constraints", 6, role="work"),  # that the last factor was made of
    # Rows of single coordinates: u = gain y[row]
    whole("r_row", "n_rows", role="work"),  # place in v
    real("r_gain", "n_rows", role="work"),
    real("r_R", "n_rows", role="work"),  # compliance
    real("r_aim", "n_rows", role="work"),
    real("r_low", "n_rows", role="work"),  # least and largest impulse [N m s | N s]
    real("r_high", "n_rows", role="work"),
    real("r_speed", "n_rows", role="work"),  # largest speed at which it gives way, infinite for none
    real("r_speed_R", "n_rows", role="work"),  # compliance beyond it
    real("r_g", "n_rows", role="work"),
    real("r_G", "n_rows", role="work"),
    real("r_G_last", "n_rows", role="work"),
    whole("n_of", 2, role="work"),  # how many constraints and rows there are
)
"""All forces that depend on the velocity to come."""

FRICTION, LINE, SPIN = range(3)

SOLVER = (
    real("dt", 1),  # [s]
    real("tolerance", 1),  # of the residual, relative to the impulses of the step
    real("v0", "nv", role="work"),  # velocity at the kick's beginning
    real("tau", "nv", role="work"),  # given forces: joints, pushes [N m | N]
    real("guess", "nv", role="work"),  # velocity that the iteration begins with
    real("y", "nv", role="work"),  # the solution: velocity at its end
    real("Hv0", "nv", role="work"),
    real("b", "nv", role="work"),  # H v0 + dt (tau - C)
    real("residual", "nv", role="work"),
    real("d", "nv", role="work"),  # search direction
    real("Hy", "nv", role="work"),
    real("Hd", "nv", role="work"),
    real("A", "nv", "nv", role="work"),  # H + J^T G J, then its factors, rows >= columns
    real("Dinv", "nv", role="work"),
    whole("pattern", "nv", "nv", role="work"),  # columns of the entries of each row of A, descending
    whole("pattern_length", "nv", role="work"),
    real("K", "n_bodies", 36, role="work"),
    real("solved", 4, role="work"),  # iterations, relative residual, whether at the cap, spare
)
