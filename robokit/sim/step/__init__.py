"""One time step of a robot, as a text for the engine.

step_kernel          the kernel, and what goes into it
problem              a robot and all that acts on it
integrators          methods, and the text of those for passive motion
drift_kick_drift     the step of falls
settle               its kick: contacts, limits, damping and friction in one solve
shared_sweeps        what all sweeps have in common, written once where code is dear
iterated_kick        a step in three parts, whose kick is iterated to an accuracy
effective_mass       how heavy bodies and joints are to a push
body_mobility        the same of all bodies and joints in one walk
implicit_sweep       the sweep that solves for velocities
moving_axes          configurations moved along velocities, and the velocity products that go with it
ground_law           the contact law's constants, and a plane as the bodies see it
body_points          the points of a body: where they are, how fast, their bristles
contact              the same linearised for a sweep
acting               the forces that act in the end
near_ground          which bodies can touch the ground in a step
surfaces             what a point can touch: distance, normal, velocity
ground_contacts      the points of all bodies on the ground
solid_contacts       where a solid touches a box or a capsule between its own points
uneven_contact       the points of a body on a ground of many surfaces
point_moments        inertias and forces at points
joint_law            damping, friction and limits of a robot's joints
joint_forces         the same linearised for a sweep
loop_impulses        what holds loop joints closed
given                actuators and forces from outside, as a step takes them
loop_wrenches        their forces, for what is reported
drives               forces of actuators, within their limits
outside              forces from outside: pushes, wrenches on the base
pair_shapes          what a step knows of the pairs of bodies that may touch
nearest_pairs        which bodies touch or are about to
shared_distances     what pairs repeat, written once: distances of two shapes, sorting in
pair_contact         the law of one contact between two bodies
pair_impulses        impulses between bodies, equal and opposite
momentum_projection  momentum kept to rounding
energy_momentum      energy, momentum and the path of the centre of mass kept to rounding
books                what a step enters into the ledger, and the momentum that it keeps
ledger               the running sums
measured             what is measured while a rollout runs, in every step
trackers             of the ground's forces, joint limits and velocities
carried              what a step hands to the next one besides q and v
"""
