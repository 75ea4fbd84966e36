"""The time step with contacts: Coulomb's law solved by Newton's method; one kernel, robots are data.

fields          the arrays that the modules share
robot_data      the arrays of a robot
vectors         vectors and inertias in rows of arrays
materials       parameters of the forces
kinematics      poses, velocities, mass matrix, velocity products, energies
laws            force laws: the impulse for a velocity, and its tangent
pattern         sparsity of the Newton matrix: the order of elimination, the fill, where blocks are
groups          what constraints connect in a step
linear          the Newton matrix, its factors and solutions
articulated     the same of deep trees without the matrix, by articulated inertias
solver          the velocity at the end of a step
constraints/    each kind of force
landings        impacts without restitution: the whole of one in the step in which something lands
bounces         restitution that creates no energy
impacts         impacts that touching contacts pass on
accounts        energy accounting of a step; corrections of momentum, energy and centre of mass at its end
measures        the measures of rollouts: one class each
monitor         measures that are updated in every step
step            the whole step, as a table of contents
step_control    steps that are divided until their error is below a tolerance
step_of_robot   the whole step of one robot that is known at compile time, for graphics cards
step_in_lanes   steps of several rows at once

closing_derivatives derivatives of the two half steps of motion, and of the closing of loops
detection_derivatives   how contacts move with their bodies
constraint_derivatives  derivatives of the forces of contacts and loops, whose points and normals move
step_derivatives    derivatives of inverse dynamics, velocity update and whole step; forward and reverse
bounce_derivatives  derivatives of what bounces aim at, and of impacts that touching contacts pass on
limit_derivatives   derivatives of bounces that energy limits
landing_derivatives derivatives of steps in which something lands or bounces

distances           distances of links in a configuration, without a step
"""
