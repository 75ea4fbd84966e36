"""A run from its arguments to its results; what simulate and rollout share.

run_arguments    what simulate and rollout make of their arguments, and which they refuse
run_inputs       actuators and pushes as inputs of the steps
run_loop         the loop over the steps of one simulation, and its reasons to stop
run_results      what a run recorded, as a trajectory with its summary
run_warnings     warnings about a run's result
energy_growth    when a simulation has made energy out of nothing
half_step        how far a run can be trusted: the same with half the step
step_derivatives  how the next state changes with this one, the joint forces and parameters
step_functions   steps and rollouts for JAX and PyTorch
distance_function  distances of links for JAX and PyTorch
"""
