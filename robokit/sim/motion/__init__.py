"""What all parts of a step build on: velocities and momenta of bodies, and what is kept of them.

implicit_sweep       the sweep that solves for velocities
moving_axes          configurations moved along velocities, and the velocity products that go with it
momentum_projection  momentum kept to rounding
effective_mass       how heavy single joints are to a push
ledger               the running sums of energy and momentum
state_facts          energies, momentum and poses of states, by the kinematics of the step
"""
