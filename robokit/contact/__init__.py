"""A step of any robot with contacts: one convex problem, one kernel; robots are data.

fields          the arrays by which the modules meet
robot_data      a robot as numbers
vectors         vectors and inertias in rows of arrays
materials       numbers of the forces
kinematics      poses, velocities, mass matrix, velocity products, energies
derivatives     of inverse dynamics
laws            contacts and rows: impulse and slope of a velocity
pattern         where the matrix of a step has entries
linear          that matrix, its factors and solutions
solver          the velocity at the end of a step
constraints/    each kind of force
bounces         restitution that makes no energy
accounts        what a step enters into the ledger
measures        the measures of rollouts: one class each
monitor         what is measured while many steps are taken
conservation    momentum, energy and the path of the centre of mass at its end
step            the order of these
step_control    steps that are divided until their error is below a tolerance
step_of_robot   the same of a robot that is known when it is compiled, for cards
step_in_lanes   the same of several rows at once

contact_motions     how places and normals of contacts move with the bodies
drift_derivatives   of the way before and after the kick
closing_derivatives of what closes loops
constraint_derivatives  of what contacts and loops do
unsymmetric         factors of a matrix with the same pattern
step_derivatives    of the velocity after the kick, and of a whole step
step_pullback       the same backwards
parameter_gradients what friction, restitution, gravity, inertias and motors are worth there

distances           of links, at given configurations, without any step
"""
