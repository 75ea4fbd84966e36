"""The time step with contacts: Coulomb's law solved by Newton's method; one kernel, robots are data.

fields          the arrays that the modules share
robot_data      the arrays of a robot
vectors         vectors and inertias in rows of arrays
materials       parameters of the forces
kinematics      poses, velocities, mass matrix, velocity products, energies
laws            force laws: the impulse for a velocity, and its tangent
pattern         sparsity pattern of the Newton matrix
linear          this matrix, its factors and solutions
solver          the velocity at the end of a step
constraints/    each kind of force
bounces         restitution that creates no energy
accounts        energy accounting of a step
measures        the measures of rollouts: one class each
monitor         measures that are updated in every step
conservation    corrections of momentum, energy and centre of mass at the end of a step
step            the whole step, as a table of contents
step_control    steps that are divided until their error is below a tolerance
step_of_robot   the whole step of one robot that is known at compile time, for graphics cards
step_in_lanes   steps of several rows at once

drift_derivatives   derivatives of the two half steps of motion
closing_derivatives derivatives of the closing of loops
constraint_derivatives  derivatives of the forces of contacts and loops, whose points and normals move
unsymmetric         factors of an unsymmetric matrix with the same pattern
step_derivatives    derivatives of inverse dynamics, of the velocity update, and of a whole step
step_pullback       the same in reverse mode

distances           distances of links in a configuration, without a step
"""
