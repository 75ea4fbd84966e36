"""One time step of a robot, as a text for the engine.

step_kernel          the kernel, and what goes into it
integrators          methods
contact              contacts, limits, damping and friction in one solve
point_moments        inertias and forces at points
joint_forces         damping, friction and limits of joints
momentum_projection  momentum kept to rounding
energy_momentum      energy, momentum and the path of the centre of mass kept to rounding
ledger               what a step adds to the running sums
"""
