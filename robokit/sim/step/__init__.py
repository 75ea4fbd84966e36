"""One time step of a robot, as a text for the engine.

step_kernel          the kernel, and what goes into it
integrators          methods
contact              contacts, limits, damping and friction in one solve
surfaces             what a point can touch: distance, normal, velocity
point_moments        inertias and forces at points
joint_forces         damping, friction and limits of joints
loop_impulses        what holds loop joints closed
drives               forces of actuators, within their limits
outside              forces from outside: pushes, wrenches on the base
momentum_projection  momentum kept to rounding
ledger               what a step adds to the running sums
"""
