"""The arrays of a step with contacts: what each holds, its shape and who writes it.

The robot is data. Vectors of the step are in world axes, those of a mechanism about its first base, so the
columns of its joints and bodies can be compared without transforms. Degrees of freedom are those of the tree;
those that follow others share a row of the unknown with them (``dof_row``, ``dof_gain``), and their columns S
have the gain in them: V_b = sum over the dofs j of b's path of S_j v[dof_row[j]].
"""

from __future__ import annotations

from robokit.collision.fields import FACES, POINTS, ROW
from robokit.engine.loops.fields import real, whole

ROBOT = (
    whole("parent", "n_bodies"),  # lambda; of the world -1
    whole("body_dofs", "n_bodies", 2),  # first dof of a body's joint, and how many
    whole("joint_kind", "n_bodies"),  # row of the joint table (contact/robot_data.py)
    real("joint_placement", "n_bodies", 12),  # rotation by rows and origin: x_parent = R x_joint + r
    real("joint_turn", "n_bodies", 27),  # three matrices by rows, see contact/robot_data.py
    real("joint_slide", "n_bodies", 3, 3),  # by coordinate, what its unit shifts the body by
    real("joint_axis", "n_bodies", 3),  # in the joint's frame
    whole("joint_coordinate", "n_bodies"),  # first of a joint's coordinates of the tree
    whole("joint_leads", "n_bodies"),  # 1 where it has coordinates of its own in q, 0 where it follows others
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
    whole("row_path", "nv", 2),  # first of a row's entries of `row_columns`, and how many
    whole("row_columns", "n_entries"),  # columns of H left of the diagonal, nearest first; without followers
    # these two are `path` and `ancestors`
    whole("part_rows", "n_parts", 2),  # of each part, bodies that H couples: first row, and how many
    whole("body_part", "n_bodies"),  # the part of each body, -1 of those that do not move
    whole("wholes", "n_wholes", 2),  # of each mechanism, trees that loops connect: its first base, and how
    # many bases float, 0 where one is fixed or connected to the world. The first is the world: body 1
    whole("body_whole", "n_bodies"),  # that a body belongs to
    whole("row_whole", "nv"),  # and a row of v
    whole("bands", "n_bands", 3),  # of each four rows of H: first of their entries of `blocks`, how many, and
    # what added to a block's column is its place in `H`
    whole("blocks", "n_H_blocks"),  # columns of the blocks in which four rows of H have entries, descending:
    # four columns each. The first one is on the diagonal
    real("block_mask", "n_H_blocks", 4, 4),  # 1 where these are entries, rows >= columns; 0 elsewhere
    whole("block_part", "n_blocks"),  # the part of each block of four rows of A, or -1 (linear.py)
    whole("column_row", "n_columns"),  # row of v of each column of A, -1 of those that fill its blocks
    whole("body_tip", "n_bodies"),  # the last dof on the path of a body, -1 where it does not move
    real("inertia", "n_bodies", 10),  # m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz in body coordinates
    real("gravity", 3),  # [m/s^2]
)
"""The robot, or several in one world."""

MOTION = (
    real("R", "n_bodies", 9, role="work"),  # see collision/fields.py
    real("p", "n_bodies", 3, role="work"),
    real("seat", "n_bodies", 3, role="work"),  # here the first base of a body's mechanism; 0 of the world
    real("origin", 3, role="work"),
    real("S", "n_dofs", 6, role="work"),  # columns: angular first, about the seat, gain included
    real("I", "n_bodies", 10, role="work"),  # inertias like `inertia`, in world axes about the seat
    real("V", "n_bodies", 6, role="work"),  # velocities of the bodies at the kick's beginning
    real("S_by_row", 6, "n_columns", role="work"),  # columns S, where dofs are rows in their order
    real("H", "n_H", 4, 4, role="work"),  # mass matrix: of each four rows the blocks from their first one to
    # the diagonal, 0 where one of `blocks` has no entry; rows of the last four beyond nv are those of ones
    real(
        "multiplied", "n_columns", role="work"
    ),  # a vector that H is multiplied by, to the end of the last four
    real("multiples", "n_columns", role="work"),  # H^T times it, without the diagonal
    real("row_sums", "n_columns", role="work"),  # H times it
    real("coordinate", "n_coordinates", role="work"),  # those of the tree
    real("composite", "n_bodies", 12, role="work"),  # like I, of a body and all that it carries. Rows of 10
    # take three times as long, as what is written does not lie in memory as what is read next
    real("W", "n_bodies", 6, role="work"),  # velocities that velocity products are taken at
    real("a", "n_bodies", 6, role="work"),  # accelerations of bodies while the joints' are 0
    real("f", "n_bodies", 6, role="work"),  # forces on bodies
)
"""The robot at the middle of the step, where the forces act."""

DERIVATIVES = (
    real("rates", "n_dofs", 18, role="work"),  # by dof: how its axis moves, three motions
    real("slopes", "n_dofs", 24, role="work"),  # and the forces that come of it, four
    real("B", "n_bodies", 12, role="work"),  # Coriolis matrices K and p, of a body and all that it carries
)
"""What derivatives of inverse dynamics work with, beside MOTION."""

STEP_DERIVATIVES = (
    real("next", 2, "nv", 3, "nv", role="out"),  # rows of the next q and v, by q, v and tau
    real("r_q", "nv", "nv", role="work"),  # changes of the residual r by q and by v in the middle of the step
    real("r_v", "nv", "nv", role="work"),
    real("r_y", "nv", "nv", role="work"),  # and by y; then factors of it
    real("r_y_inverse", "nv", role="work"),
    whole("entries", "nv", "nv", role="work"),  # columns of the entries of each row of A, descending
    whole("entries_length", "nv", role="work"),
    real("acceleration", "nv", role="work"),  # (y - v) / dt
    real("tangents", 2, "n_bodies", 108, role="work"),  # P, Q, W of a joint (closing_derivatives.py)
    real("dy", "nv", 3, "nv", role="work"),  # changes of y
    real("own_change", "nv", role="work"),  # of forces whose compliance is a share of 1 / H_jj, by H_jj
    whole("loaded", "n_bodies", role="work"),  # 1 where constraints act on what a body carries
    whole("loaded_bodies", "n_bodies", role="work"),  # these, outward
    real("V_y", "n_bodies", 6, role="work"),  # velocities of bodies at y, and before
    real("V_before", "n_bodies", 6, role="work"),
    real("F", "n_bodies", 6, role="work"),  # impulses of constraints on a body and all that it carries
    real("c_slopes", "n_constraints", 9, role="work"),  # -dg/du by rows
    real("c_F", "n_constraints", 6, role="work"),  # impulse on b, about the origin as all in derivatives
    real("c_aims", "n_constraints", 5, role="work"),  # change of a contact's aim_n by its gap; of its aim
    # along t1, t2, n by its speed before; of that speed by its gap
    real("c_by_N", "n_constraints", 3, role="work"),  # of SPIN: change by the normal impulse of its contact
    real("c_less_N", "n_constraints", 3, role="work"),  # -change of that, in r_q, r_y, r_v
    real("contact_motion", 6, "n_contacts", 7),  # changes of its normal, place and gap, as b moves by units
    real("by_motion", "n_bodies", 108, role="work"),  # A, U, Z (constraint_derivatives.py)
    whole("struck", 1),  # 1 in the second solution of a landing, 2 where what touches is as soft there as in
    # the first one
    # Along one coordinate of v
    whole("moved", "n_bodies", role="work"),  # 1 where it moves the body
    real("X", "n_bodies", 6, role="work"),  # motions of the bodies, and changes of V_y and V_before
    real("X_y", "n_bodies", 6, role="work"),
    real("X_before", "n_bodies", 6, role="work"),
    real("f_q", "n_bodies", 6, role="work"),  # forces on bodies, less what constraints add: to r_q, r_y, r_v
    real("f_y", "n_bodies", 6, role="work"),
    real("f_v", "n_bodies", 6, role="work"),
    # Of loops (closing_derivatives.py)
    real("end_S", "n_dofs", 6),  # at the closed end of the step: S, R, p and the rows of loops
    real("end_R", "n_bodies", 9),
    real("end_p", "n_bodies", 3),
    real("end_E", "n_constraints", 18),  # in the places that their constraints have in the step
    real("end_v", "nv"),
    real("q_next", "nq", role="out"),  # where the step ends, before loops are closed again
    real("v_next", "nv", role="out"),
    real("f_z", "n_bodies", 6, role="work"),
    real("f_o", "n_bodies", 6, role="work"),
    real("z", "nv", "nv", role="work"),  # H + J^T J / R, then its factors
    real("z_inverse", "nv", role="work"),
    real("opening", "nv", "nv", role="work"),  # J^T dJ/dq v / R at the end
    real("P", "nv", "nv", role="work"),  # what keeps loops closed of a change
    real("product", "nv", "nv", role="work"),
    real("closed", "nv", 3, "nv", role="work"),
)
"""What derivatives of a step work with, beside DERIVATIVES and arrays of the step."""

DETECTION_DERIVATIVES = (
    real("contact_motion", 6, "n_contacts", 7, role="out"),
    real("found_again", "n_contacts", 7, role="work"),  # normal, place, gap
    real("cell_moves", 3, 10, 3, role="work"),  # changes of what detection works with
    real("points_move", 3, POINTS, ROW, role="work"),
    real("faces_move", 3, FACES, 4, role="work"),
)
"""What derivatives of detection work with (detection_derivatives.py)."""

BOUNCE_AIMS = (
    real("aims", "n_constraints", 2, role="out"),  # aims of bounces, on the way and after it
    real("aim_rates", "n_constraints", 2, 3, "nv", role="out"),  # their changes by q and v in the middle, tau
    whole("through_motors", 1),  # 1 where joint forces of driven joints go through their motors
    real("turned", "nv", 3, "nv", role="work"),  # of the velocity after a turn, by these
    real("turning", "nv", 3, "nv", role="work"),  # of that of a solution
    real("c_comes", "n_constraints", 3, "nv", role="work"),  # of the normal velocity before the step,
    real("c_falls", "n_constraints", 3, "nv", role="work"),  # of ``contact_fall``,
    real("c_gaps", "n_constraints", 3, "nv", role="work"),  # of the gap and its time (``c_passed``),
    real("c_whens", "n_constraints", 3, "nv", role="work"),
    real("c_hits", "n_constraints", 3, "nv", role="work"),  # of the time of a bounce in a turn,
    real("c_aimed", "n_constraints", 3, "nv", role="work"),  # of the aims there,
    real("c_passes", "n_constraints", 3, "nv", role="work"),  # and of the impulse in all turns
    real("c_then", "n_constraints", 2, role="work"),  # gap and time as the turn began
    whole("soonest", "n_parts", role="work"),  # of each group, the first to bounce in a turn
    real("c_normal", "n_constraints", "nv", role="work"),  # along each coordinate: normal velocity,
    real("c_closer", "n_constraints", "nv", role="out"),  # change of the gap,
    real("c_now", "n_constraints", "nv", role="work"),  # and of the normal velocity that y has
    real("weightless", 3, role="work"),
    whole("with_parameters", 1),  # 1 where it is asked what parameters are worth
    real("of_aims", "n_constraints", 2),  # what the aims are worth
)
"""What derivatives of the aims of bounces work with, beside those of steps (bounce_derivatives.py)."""

LANDING_DERIVATIVES = (
    whole("through_motors", 1),  # 1 where joint forces of driven joints go through their motors
    real("y_after", "nv", role="work"),  # the second solution: velocity and impulses
    real("c_g_after", "n_constraints", 3, role="work"),
    real("c_R_first", "n_constraints", 2, role="work"),  # compliance in the first one
    real("r_R_first", "n_rows", role="work"),
    real("r_way", "nv", "nv", role="work"),  # of the residual of the second solution by the first one
    whole("struck", 1, role="inout"),
    whole("with_parameters", 1),  # 1 where it is asked what parameters are worth
    real("felt", "nv", role="work"),  # impulse of a unit of the joint forces [s]
    real("dy_way", "nv", 3, "nv", role="work"),  # of the first solution, then of the way
    real("of_way", "nv", role="work"),  # what the way is worth, then the first solution
    whole("limited", 1),  # 1 where energy limits bounces
    real("aims", "n_constraints", 2),  # see BOUNCE_AIMS
    real("c_closer", "n_constraints", "nv"),
    real("aim_rates", "n_constraints", 2, 3, "nv"),
    real("of_aims", "n_constraints", 2, role="out"),
    real("r_tau", "nv", "nv", role="work"),  # changes of the residual by tau, through these aims
    # Of bounces that energy limits (limit_derivatives.py): what the step has left
    real("y_now", "nv", role="work"),
    real("ahead_now", "nv", role="work"),
    real("c_g_now", "n_constraints", 3, role="work"),
    real("c_way_now", "n_constraints", 5, role="work"),  # ``c_ahead``
    real("c_u_now", "n_constraints", 3, role="work"),
    real("c_u_bounced", "n_constraints", 3, role="work"),
    real("Jg_now", "nv", role="work"),
    real("weight", "nv", role="work"),  # momentum of gravity over a second [N m | N]
    real("dy_now", "nv", 3, "nv", role="work"),  # changes of y and of the way, at a share that is held
    real("dy_ahead", "nv", 3, "nv", role="work"),
    real("c_weight", "n_constraints", 3, role="work"),  # of velocities along c_E, in W
    real("W_of", 3, "nv", role="work"),  # changes of W by q and v in the middle and by tau, but for those by
    real("W_after", "nv", role="work"),  # the velocity after a solution
    real("W_way", "nv", role="work"),  # and that of its way
    real("W_y", "nv", role="work"),  # these of y and of the way at the share
    real("W_ahead", "nv", role="work"),
    real("W_q", "nv", role="work"),  # by q and v before the step
    real("W_v", "nv", role="work"),
    real("W_by_start", 3, "nv", role="work"),  # by q, v and tau, at a share that is held
    real("of_y", "nv", role="work"),  # what y is worth, and the way
    real("of_ahead", "nv", role="work"),
    real("share_by_W", "nv", role="work"),  # how the share of a row's group changes with W, or 0
    # Of loops (closing_derivatives.py)
    real("weightless", 3, role="work"),
    real("bent", "nv", "nv", role="work"),  # dH d by q in the middle; by v
    real("unchanged", "nv", "nv", role="work"),
    real("dy_bent", "nv", 3, "nv", role="work"),  # and by q, v and tau before the step
)
"""What derivatives of landings work with (landing_derivatives.py)."""

STEP_PULLBACK = (
    real("of_end", 2, "nv"),  # how a number changes with the next q and v
    real("of_start", 3, "nv", role="out"),  # and with q, v and tau
    real("of_q", "nv", role="work"),
    real("of_v", "nv", role="work"),
    real("of_middle", "nv", role="work"),
    real("mu", "nv", role="work"),  # of the momentum that the kick leaves unbalanced
    whole("again", 1),  # 1: the last call's factors, of the same step
    # Of parameters (step_derivatives.py)
    real("V_mu", "n_bodies", 6, role="work"),
    real("of_shape", "n_shapes", 2, role="out"),  # friction and restitution of a link's shape on the ground
    real("of_between", 2, role="out"),  # as `between`
    real("of_gravity", 3, role="out"),
    real("of_motor", "n_motors", role="out"),  # force
    real("of_drag", "n_motors", role="out"),  # b of its law (constraints/motors.py)
    real("of_inertia", "n_bodies", 10, role="out"),  # as `inertia`
)
"""Reverse mode of a step (step_derivatives.py)."""

CONSTRAINTS = (
    # Contacts and loops: three rows each, u = E (V_b - V_a), all about one place
    whole("c_kind", "n_constraints", role="work"),  # FRICTION, LINE, SPIN, SPRING
    whole("c_bodies", "n_constraints", 2, role="work"),  # a and b
    whole("c_of", "n_constraints", role="work"),  # SPIN: the constraint of its contact, an earlier one; else
    # FRICTION: the number of its contact; LINE: twice that of its loop, and one more for positions; SPRING:
    # that of the spring
    real("c_E", "n_constraints", 18, role="work"),  # three rows, angular first: t1, t2, n
    real("c_arms", "n_constraints", 2, 3, role="work"),  # their place from the seats of a and b [m]
    # impulse of the first solution less that of the second (landings.py), and the tangential velocities; 0
    # where nothing lands
    real("c_ahead", "n_constraints", 5, role="work"),
    real("c_first", "n_constraints", 8, role="work"),  # of the first one: compliance, aim, impulse before
    real(
        "c_R", "n_constraints", 2, role="work"
    ),  # compliance R_t, R_n [1/(kg)]: of the tangents, of the normal
    real("c_aim", "n_constraints", 3, role="work"),  # velocities that they aim at [m/s]
    real("c_mu", "n_constraints", role="work"),  # coefficient of friction; SPIN: arm of rolling [m]; SPRING:
    # least impulse [N s | N m s]
    real("c_arm", "n_constraints", role="work"),  # SPIN: arm of torsion [m]; SPRING: largest impulse
    real("c_own", "n_constraints", 5, role="work"),  # R and aim, while the law is softer
    real("c_about", "n_constraints", 3, role="work"),  # impulse at which that makes no difference [N s]
    real("c_full", "n_constraints", 2, role="work"),  # mu and arm, while they are less
    real("c_w", "n_constraints", role="work"),  # mobility of what it acts on, roughly [1/kg | 1/(kg m^2)]
    real("c_last", "n_constraints", 3, role="work"),  # FRICTION: impulse of the step before [N s]; else 0
    real("c_u", "n_constraints", 3, role="work"),  # velocities
    real("c_du", "n_constraints", 3, role="work"),  # along the search direction
    real("c_g", "n_constraints", 3, role="work"),  # impulses [N s]
    real("c_G", "n_constraints", 8, role="work"),  # -dg/du: 11, 12, 22, 13, 23, 33 of the symmetric part;
    # of the skew one, w x, w along t1 and t2
    real("c_by_load", "n_constraints", 3, role="work"),  # SPIN: impulses over the normal one of its contact
    real("c_expected", "n_constraints", 3, role="work"),  # impulses that the tangents of the laws have, then
    # how the direction changes those that there are
    real("c_change", "n_constraints", 3, role="work"),  # these changes, while another direction is looked at
    # Rows of single coordinates: u = gain y[row]
    whole("r_kind", "n_rows", role="work"),  # DAMPING, DRY, STOP, MOTOR, PRESCRIBED
    whole("r_of", "n_rows", role="work"),  # the dof, stop, motor or prescribed joint
    whole("r_row", "n_rows", role="work"),  # place in v
    real("r_gain", "n_rows", role="work"),
    real("r_R", "n_rows", role="work"),  # compliance
    real("r_aim", "n_rows", role="work"),
    real("r_low", "n_rows", role="work"),  # least and largest impulse [N m s | N s]
    real("r_high", "n_rows", role="work"),
    real("r_speed", "n_rows", role="work"),  # largest speed at which it gives way, infinite for none
    real("r_speed_R", "n_rows", role="work"),  # compliance beyond it
    real("r_w", "n_rows", role="work"),  # mobility of the dof, roughly
    real("r_loose", "n_rows", role="work"),  # that of the neutral pose, infinite of what has no inertia there
    real("r_first", "n_rows", 3, role="work"),  # likewise: compliance, aim, impulse
    real("r_g", "n_rows", role="work"),
    real("r_G", "n_rows", role="work"),
    real("r_expected", "n_rows", role="work"),
    real("r_change", "n_rows", role="work"),
    whole("n_of", 5, role="work"),  # how many constraints and rows are needed, also beyond the place that
    # there is; how many of the contacts bounce; of loops whose forces are found; 1 where A is not symmetric
)
"""All forces that depend on the velocity to come."""

FRICTION, LINE, SPIN, SPRING = range(4)  # kinds of constraints
DAMPING, DRY, STOP, MOTOR, PRESCRIBED = range(5)  # kinds of rows
MIDDLE, END, SPEED = range(3)  # places in ``motion_values``

STATE = (
    real("q", "nq", role="inout"),  # while forces are collected: at the middle of the step
    real("v", "nv", role="inout"),
)
"""The robot's state."""

FORCES = (
    # Contacts
    real("pair_stiffness", 1),  # of all pairs: k [N/m]
    real("pair_damping", 1),  # d [N s/m]
    real("pair_impact", 1),  # of an impact, over its speed^2: d' [N s^3/m^3]
    whole("ground_shapes", 1),  # how many shapes, the first ones, are the ground's, no link's
    # Coulomb's coefficient of a link's shape on the ground; of the ground's its own, or -1 for the link's
    real("shape_friction", "n_shapes"),
    # share of the speed of approach with which a link's shape leaves the ground
    real("shape_restitution", "n_shapes"),
    real("ground_arms", 2),  # of the ground's friction against turning about the normal, and rolling [m]
    real("between", 2),  # friction and restitution of two links, be one fixed to the world
    real("body_mobility", "n_bodies"),  # how far it gives way, neutral (materials.Mobilities) [1/kg]
    real("dof_mobility", "n_dofs"),  # the diagonal of H^-1, neutral [1/(kg m^2) | 1/kg]
    # Joints
    real("damping", "n_dofs"),  # [N m s/rad | N s/m]
    real("dry_friction", "n_dofs"),  # [N m | N]
    whole("stop_dof", "n_stops"),  # of each limit of a joint
    real("stop_side", "n_stops"),  # 1 of a lower, -1 of an upper one
    real("stop_bound", "n_stops"),  # [rad | m]
    real("stop_range", "n_stops"),  # between the joint's two limits, infinite where there is one [rad | m]
    real("stop_gains", "n_stops", 2),  # stiffness k and damping d
    whole("motor_dof", "n_motors"),
    real("motor_gains", "n_motors", 2),  # kp and kd
    real("motor_inertia", "n_motors"),  # that it moves, roughly [kg m^2 | kg]
    real("motor_limits", "n_motors", 2),  # largest effort and speed, infinite for none
    real("motor_command", "n_motors", 2),  # kp q* + all that is given [N m | N], and v* [rad/s | m/s]
    whole("motion_dof", "n_motions"),  # of prescribed joints
    real("motion_values", "n_motions", 3),  # q at the middle of the step and at its end, and v there
    # Springs and dampers
    whole("spring_bodies", "n_springs", 2),  # a and b; only a may be the world
    real("spring_points", "n_springs", 6),  # on a and b, in their coordinates [m]
    whole("spring_dof", "n_springs"),  # of one at a joint; -1 between two points
    whole("spring_law", "n_springs"),  # number of the user's function, or -1: linear
    real("spring_numbers", "n_springs", 4),  # stiffness, damping, length at rest, preload
    real("spring_bounds", "n_springs", 2),  # least and largest tension [N | N m]
    real("spring_step", "n_springs"),  # change of length that slopes are taken with [m | rad]
    # Loop joints
    whole("loop_bodies", "n_loops", 2),  # predecessor and successor
    real("loop_placement", "n_loops", 2, 12),  # of the joint's frame on each, as `joint_placement`
    real("loop_axes", "n_loops", 9),  # rows t1, t2, axis in that frame
    real("loop_pitch", "n_loops"),  # of a screw [m/rad], else 0
    real("loop_length", "n_loops"),  # of a rod [m], else 0
    whole("loop_turns", "n_loops"),  # rotations that it holds: 0, 1 (of a cross), 2 (tilts of the axis) or 3
    real("loop_holds", "n_loops", 3),  # 1 for each of t1, t2, axis along which it holds positions
    real("loop_mobility", "n_loops", 2),  # of all that moves, to turn [1/(kg m^2)] and to move [1/kg]
)
"""Numbers of the forces that constraints are made of (contact/materials.py)."""

FORCE_MEMORY = (
    whole(
        "bristle_pair", "n_contacts", role="inout"
    ),  # contacts that pressed in the last step, ascending; -1
    whole("bristle_feature", "n_contacts", role="inout"),
    # how far it is bent, in world axes [m]; impulse of turning friction along the axes of the contact [N m s]
    real("bristle", "n_contacts", 6, role="inout"),
    # impulse along n [N s]; 0: it bounced and leaves
    real("bristle_normal", "n_contacts", role="inout"),
    real("dry_force", "n_dofs", role="inout"),  # dry friction [N m | N]
    real("loop_force", "n_loops", 6, role="inout"),  # by row: rotations, positions [N m | N]
    real("motion_force", "n_motions", role="inout"),  # that prescribed joints take [N m | N]
    real("motion_push", "n_motions", role="work"),  # impulse that they take while loops are closed
    real("spring_state", "n_springs", 6, role="work"),  # length and rate before the kick, tension there, its
    # slopes by these, and the part of the second that is not implicit
    real("q_drifted", "nq", role="work"),  # while loops are closed for the kick
    real("q_kick", "nq", role="work"),  # the configuration at which the forces act, loops closed
    real("contact_bristle", "n_contacts", 2, role="work"),  # along t1, t2, as the step began [m]
    real("contact_surface", "n_contacts", 3, role="work"),  # velocity of a belt along t1, t2, spin about n
    real("contact_rolls", "n_contacts", 3, role="work"),  # at which it rolls, along t1, t2, n [m/s]
    real("contact_hit", "n_contacts", role="work"),  # speed of its impact, at most 0 [m/s]
    whole("contact_bounces", "n_contacts", role="work"),  # 1: it bounces; 2: one after
    # another (impacts.py); -1: it leaves after that; -2: it comes fast, and bounces in the next step
    real(
        "contact_fall", "n_contacts", role="work"
    ),  # acceleration of what bounces towards the surface [m/s^2]
    real("contact_back", "n_contacts", 3, role="work"),  # velocities after an impact at which it aims [m/s]
    whole("contact_constraint", "n_contacts", role="work"),  # its constraint
)
"""What forces hand to the next step, and what they keep during one. All -1 and 0 at the start."""

SOLVER = (
    real("dt", 1),  # [s]
    real("tolerance", 1),  # of the residual, relative to the impulses of the step
    whole("orders", 1),  # 1 where parts are eliminated in the order that makes little fill, 0 in their own
    real("v0", "nv", role="work"),  # velocity at the kick's beginning
    real("span", 1, role="work"),  # how long forces act: dt, or 0 of impacts (impacts.py) [s]
    real("tau", "nv", role="work"),  # given forces: joints, pushes [N m | N]
    real("guess", "nv", role="work"),  # velocity that the iteration begins with
    real("first", 4, role="work"),  # of the first solution (landings.py): of ``solved``; held[0]
    whole("landed", 2, role="work"),  # contacts that land fast; 1 where their impact was not rigid
    real("ahead", "nv", role="work"),  # velocity of the way to the end of the step (landings.py)
    real("y", "nv", role="work"),  # the solution: velocity at its end
    real("row_mobility", "nv", role="work"),  # 1 / H_jj [1/(kg m^2) | 1/kg]
    real("Hv0", "nv", role="work"),
    real("b", "nv", role="work"),  # H v0 + dt (tau - C)
    real("residual", "nv", role="work"),  # H y - b - J^T g
    real("less", 3, role="work"),  # share of friction that does not act; how the direction changes it; path
    real("errors", 7, role="work"),  # squares of the error: of the momentum, and of the laws [J]; least error
    # of an attempt, and its iteration; share of a direction that was cut short, halved with each one since;
    # compliance that tangents have beside their own, over the mobility; 1 where the last direction was cut
    real("held", 3, role="work"),  # loops and prescribed joints: compliance over that of the first iteration;
    # square of their error of the laws [J]; that of all in the iteration before
    real("d", "nv", role="work"),  # search direction
    real("along", "nv", role="work"),  # change of y along a path, by the share of friction
    real("Hy", "nv", role="work"),
    real("Hd", "nv", role="work"),
    real(
        "A", "n_fill", 4, 4, role="work"
    ),  # H + J^T G J, then its factors, rows > columns, by blocks: that of
    # row k and column c is at A_row[k] + depth[c] (pattern.py)
    real("A_skew", "n_fill", 4, 4, role="work"),  # skew part of A below its diagonal; then U^T
    whole("A_row", "n_blocks", role="work"),
    whole("depth", "n_blocks", role="work"),  # of a row of blocks in the elimination tree
    real("Dinv", "n_columns", role="work"),
    whole("place", "nv", role="work"),  # of each row in A: the last one is eliminated first
    whole("dof_place", "n_dofs", role="work"),  # that of its row, or -1: it stands still
    whole("place_row", "n_columns", role="work"),  # and the row of each place, or -1
    whole(
        "arcs", "n_fill", 4, role="work"
    ),  # two parts that are coupled while parts are ordered, and the next
    # arcs of the first and the second one: twice their number, one more of a second one, or -1
    whole("part_links", "n_parts", 4, role="work"),  # see pattern.py
    whole("weight_first", "n_columns", role="work"),  # the first part of each weight, or -1
    whole("part_weight", "n_parts", role="work"),  # rows of those beside each, -1 once placed
    whole("pair_parts", "n_parts", role="work"),  # those beside one
    real("permuted", "n_columns", role="work"),  # what is solved for, by place
    real(
        "shares", "n_blocks", 2, 4, 4, role="work"
    ),  # of a row of blocks, and of U^T, while it is eliminated
    whole("pattern", "n_fill", role="work"),  # columns of the blocks of each row of A, descending
    whole("pattern_first", "n_blocks", role="work"),
    whole("pattern_length", "n_blocks", role="work"),
    whole("filled", 1, role="work"),  # blocks that A needs room for
    whole("links", "n_blocks", 4, role="work"),  # see pattern.py
    # Of deep trees (articulated.py), by body, with one more row:
    whole("coupled", "n_deep", 7, role="work"),  # lists of the bodies that it is coupled with
    real("p_and_V", "n_deep", 2, 8, role="work"),  # force that is left on it, and its velocity
    real("worth", "n_deep", 6, 2, 8, role="work"),  # of a dof of another one: M s, s^T M
    whole("next_clique", "n_constraints", role="work"),  # the next one of the same last row, or -1
    whole("pair_dofs", "n_dofs", role="work"),  # dofs on the path of one of two bodies alone, descending
    real("pair_signs", "n_dofs", role="work"),  # 1 for those of b, -1 for those of a
    whole("pair_blocks", "n_dofs", role="work"),  # their blocks
    real("pair_S", "n_dofs", 6, role="work"),  # their columns with these signs, about the place of K
    real("pair_S_by_row", 6, "n_columns", role="work"),  # these by columns of A, 0 where there is none
    real("K", "n_bodies", 36, role="work"),  # S^T K S is what constraints with the world add to A:
    # 21 numbers of the symmetric part of K, 15 of the skew one; of deep trees with inertias of bodies
    whole("has_K", "n_bodies", role="work"),  # 1 where there is one
    real("V_y", "n_bodies", 6, role="work"),  # velocities of the bodies at y
    real("Vd", "n_bodies", 6, role="work"),  # and along the search direction
    real("pushed", "n_bodies", 6, role="work"),  # impulses on the bodies
    real("mean", "nv", role="work"),  # (v0 + y) / 2
    real("C", "nv", role="work"),  # velocity products and gravity there [N m | N]
    real("C_guess", "nv", role="work"),  # of the guess
    real("y_of_C", "nv", role="work"),  # y of that mean velocity
    real("Jg", "nv", role="work"),  # J^T g
    real("y_bounced", "nv", role="work"),  # what restitution that makes energy (bounces.py) adds to y,
    real("ahead_bounced", "nv", role="work"),  # to the way and
    real("c_bounced", "n_constraints", 8, role="work"),  # to the impulses and ``c_ahead``
    real("r_bounced", "n_rows", role="work"),
    whole("group", "n_parts", role="work"),  # of each part: the first of those that are connected (groups.py)
    whole("row_group", "nv", role="work"),
    whole("c_group", "n_constraints", role="work"),
    real("by_group", "n_parts", 18, role="work"),
    real("c_error", "n_constraints", role="work"),  # squares of the error of each law [J]
    real("r_error", "n_rows", role="work"),
    real("solved", 4, role="work"),  # iterations; relative residual; 1 where that is above the tolerance; 1
    # where something is not finite, and y is NaN then
    real("c_passed", "n_constraints", 4, role="work"),  # impulse along the normal in all turns of impacts
    # [N s]; product of the restitutions of its bounces in them; how far above the surface it is [m], and
    # when [s]
    real("passed", 3, role="work"),  # the first three of all turns of impacts (impacts.py)
)

STEP = (
    # What is given besides
    real("joint_forces", "nv"),  # held over the step [N m | N]
    whole("push_body", "n_pushes"),
    real("push_point", "n_pushes", 3),  # in body coordinates [m]
    whole("push_in_world", "n_pushes"),  # 1 where the wrench is about the world's origin instead
    real("push_wrench", "n_pushes", 6),  # moment and force, in world axes [N m; N]
    whole("keeps", 1),  # what the end of a step corrects (accounts.py); -1: it stops after the kick
    # What is handed to the next step
    real("change", "nv", role="inout"),  # last change of the velocity by a kick
    real("kept", "n_wholes", 11, role="inout"),  # of each whole: wanted momentum about its centre of mass,
    # wanted energy, place of the centre of mass in the world; of whole 0: 1 once these are known
    whole("needed", 9, role="inout"),  # 1 where there was no place, and nothing happens any more; then the
    # contacts, near pairs, candidates, constraints, rows, blocks of A, notes and noted contacts that the step
    # needed
    # Accounts (accounts.py)
    real("ledger", "n_ledger", role="inout"),
    real("outside_impulse", 6, role="inout"),  # of pushes, about the centre of mass [N m s; N s]
    real("motor_sums", "n_motors", 2, role="inout"),  # force times dt [N m s | N s]; time at a limit [s]
    # Work arrays
    real("q_before", "nq", role="work"),
    real("v_before", "nv", role="work"),
    whole("near_pair_before", "n_near", role="work"),
    real("near_direction_before", "n_near", 3, role="work"),
    whole("near_corners_before", "n_near", 6, role="work"),
    real("middle", 3, role="out"),  # origin of the contacts, that of the step at its middle [m]
    real("account", "n_wholes", 18, role="work"),  # of the step, of each whole: energy given; what touches;
    # impulse about its centre of mass; where that is on its path, from the seat; mass; 1 where a joint of
    # it is prescribed; of landings: D, and its normal part on the ground and on links
    real("seen", "n_wholes", 17, role="work"),  # of each whole: inertia, momentum, energy (accounts.py)
    real("corrected", "n_wholes", 21, role="work"),  # and its correction
    whole("whole_group", "n_wholes", role="work"),  # its group
)
"""What a step is given, hands on and accounts for."""
