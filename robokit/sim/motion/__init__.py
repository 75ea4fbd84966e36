"""What all parts of a step build on: velocities and momenta of bodies, and what is kept of them.

implicit_sweep       the sweep that solves for velocities
moving_axes          configurations moved along velocities, and the velocity products that go with it
momentum_projection  momentum kept to rounding
effective_mass       how heavy single joints are to a push
carried              what a step hands to the next one besides q and v
ledger               the running sums of energy and momentum
robot_size           how large a robot is
state_facts          energies, momentum and poses of states, by the kinematics of the step
"""
